//! Inspecting a data file without opening the database: its header, extents, tables, pages. Read-only.
//!
//! Rules
//! 1. Nothing is recovered: changes that are only in the redo log are not visible.
//! 2. An unreadable part is described in words, and the rest is shown.

use super::table::{RawTable, RawTree};
use crate::error::{Error, Result};
use crate::page::{Node, PageType, header, node};
use crate::space::layout::{CHUNK_PAGES, CHUNKS, EXTENT_PAGES, SpaceLayout};
use crate::space::{Extent, SEGMENT_CHANGE_BUFFER, SEGMENT_SYSTEM, SEGMENT_UNDO, read_entry};
use crate::store::bootstrap::{self, InspectedStore};
use crate::store::{FileHeader, PageLocation, PageSource, StoreSegments};
use crate::table::catalog_trees::CATALOG_TREES;
use crate::types::PageNo;
use highwater_storage::{AlignedBuf, Device};
use std::collections::BTreeMap;

/// Use of a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SegmentUse {
    /// Pages in use.
    pub pages_used: u64,
    /// Pages it owns that are free.
    pub pages_free: u64,
    /// Extents it owns alone.
    pub extents: u64,
    /// Chunks of 8 pages it owns in extents shared with others.
    pub fragments: u64,
}

/// The use of the extents of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtentUse {
    /// Extents.
    pub extents: u64,
    /// Extents without an owner.
    pub free_extents: u64,
    /// Extents that several own, or one in part.
    pub shared_extents: u64,
    /// Chunks in them without an owner.
    pub free_fragments: u64,
    /// By segment number.
    pub segments: BTreeMap<u32, SegmentUse>,
}

/// Size and fill of a tree; `rows_estimate` from a sample of leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeSize {
    /// Levels, 1 = the root is a leaf.
    pub levels: u64,
    /// Records, estimated.
    pub records_estimate: u64,
    /// Fill of the sampled leaves in percent.
    pub fill_percent: u64,
}

/// A data file being looked at.
pub struct RawFile<'d> {
    pages: Box<dyn PageSource + 'd>,
    len: u64,
    page_count: u64,
    header: std::result::Result<FileHeader, String>,
    /// By group: the entries of its extent map, if it is readable.
    maps: Vec<Option<Vec<Extent>>>,
    pub(super) tables: Vec<RawTable>,
    catalog_problem: Option<String>,
}

impl<'d> RawFile<'d> {
    /// Reads header, extent maps and catalog, as far as they can be read.
    ///
    /// # Errors
    /// [`Error::Incompatible`] if the page size can neither be read nor guessed. An I/O error.
    pub fn open(data: &'d dyn Device) -> Result<RawFile<'d>> {
        let InspectedStore { pages, header } = bootstrap::look(data)?;
        let (len, page_count) = (pages.len_bytes()?, pages.pages()?);
        let (maps, tables) = (Vec::new(), Vec::new());
        let mut file = RawFile { pages, len, page_count, header, maps, tables, catalog_problem: None };
        file.maps = (0..file.groups()).map(|group| file.read_map(group)).collect();
        match file.read_either_catalog() {
            Ok(tables) => file.tables = tables,
            Err(error) => file.catalog_problem = Some(error.to_string()),
        }
        Ok(file)
    }

    /// The file header, or why it cannot be read.
    pub fn header(&self) -> &std::result::Result<FileHeader, String> {
        &self.header
    }

    /// Bytes of a page, as the header says or as the pages look.
    pub fn page_bytes(&self) -> usize {
        self.pages.page_bytes()
    }

    /// Bytes of the file's pages.
    pub fn len_bytes(&self) -> u64 {
        self.len
    }

    /// The segments of a page store out of place; `None` in place.
    pub fn store_segments(&self) -> Option<StoreSegments> {
        self.pages.segments()
    }

    /// Extents that page 0 counts, if it can be read; there may be more in the redo log.
    pub fn extents(&self) -> Option<u32> {
        crate::space::header::read_extents(&self.sound_page(PageNo(0)).ok()?).ok()
    }

    /// Whole pages in the file.
    pub fn page_count(&self) -> u64 {
        self.page_count
    }

    /// The arithmetic of this page size.
    pub fn layout(&self) -> SpaceLayout {
        SpaceLayout::new(self.page_bytes())
    }

    /// Tables in use, as far as the catalog can be read.
    pub fn tables(&self) -> &[RawTable] {
        &self.tables
    }

    /// The error of reading the catalog.
    pub fn catalog_problem(&self) -> Option<&str> {
        self.catalog_problem.as_deref()
    }

    /// A page's bytes, not verified.
    ///
    /// # Errors
    /// The page is beyond the end, or an I/O error.
    pub fn page(&self, page_no: PageNo) -> Result<Vec<u8>> {
        let mut bytes = AlignedBuf::zeroed(self.page_bytes());
        self.pages.read(page_no, &mut bytes)?;
        Ok(bytes.to_vec())
    }

    /// The location of a page in the data file; `None` beyond its end.
    ///
    /// # Errors
    /// An I/O error.
    pub fn place(&self, page_no: PageNo) -> Result<Option<PageLocation>> {
        self.pages.place(page_no)
    }

    /// A page that verifies.
    pub(super) fn sound_page(&self, page_no: PageNo) -> Result<Vec<u8>> {
        let page = self.page(page_no)?;
        header::verify(&page, page_no)?;
        Ok(page)
    }

    fn groups(&self) -> u32 {
        let extents = self.page_count().div_ceil(u64::from(EXTENT_PAGES));
        self.layout().groups(extents as u32)
    }

    fn read_map(&self, group: u32) -> Option<Vec<Extent>> {
        let page = self.sound_page(self.layout().map_page(group)).ok()?;
        let is_map = header::page_type(&page).is_ok_and(|found| found == PageType::ExtentMap);
        is_map.then(|| (0..self.layout().group_extents() as usize).map(|i| read_entry(&page, i)).collect())
    }

    /// The entry of an extent in its extent map, also beyond the end of the file; `None` if the map cannot be read.
    pub fn extent(&self, number: u32) -> Option<Extent> {
        let per_group = self.layout().group_extents();
        let map = self.maps.get((number / per_group) as usize)?.as_ref()?;
        map.get((number % per_group) as usize).copied()
    }

    /// The last extent of which a page is used, also beyond the end of the file. (A chunk without used pages may still
    /// have an owner there, which means nothing.)
    pub fn last_used_extent(&self) -> Option<u32> {
        let extents = self.maps.len() as u32 * self.layout().group_extents();
        (0..extents).rev().find(|n| self.extent(*n).is_some_and(|extent| extent.used != 0))
    }

    /// Sums the extents up.
    pub fn extent_use(&self) -> ExtentUse {
        let mut sum = ExtentUse::default();
        for number in 0..(self.page_count() / u64::from(EXTENT_PAGES)) as u32 {
            sum.extents += 1;
            let Some(extent) = self.extent(number).map(Extent::without_idle_owners) else { continue };
            let unowned = extent.owners.iter().filter(|owner| **owner == 0).count() as u64;
            let whole = unowned == 0 && extent.owners.iter().all(|owner| *owner == extent.owners[0]);
            match unowned {
                8 => sum.free_extents += 1,
                _ if whole => {}
                _ => {
                    sum.shared_extents += 1;
                    sum.free_fragments += unowned;
                }
            }
            for chunk in 0..CHUNKS {
                sum.add_chunk(&extent, chunk, whole);
            }
        }
        sum
    }

    /// Owner of a page as the extent map has it: `None` = free or not known.
    pub fn owner(&self, page_no: PageNo) -> Option<u32> {
        let extent = self.extent(page_no.0 / EXTENT_PAGES)?;
        let at = page_no.0 % EXTENT_PAGES;
        (extent.used >> at & 1 == 1).then(|| extent.owners[(at / CHUNK_PAGES) as usize])
    }

    /// The name of a segment.
    pub fn segment_name(&self, segment: u32) -> Option<String> {
        match segment {
            n if n == SEGMENT_SYSTEM.0 => return Some("file header and extent maps".to_string()),
            n if n == SEGMENT_UNDO.0 => return Some("undo".to_string()),
            n if n == SEGMENT_CHANGE_BUFFER.0 => return Some("change buffer".to_string()),
            _ => {}
        }
        if let Some(tree) = CATALOG_TREES.iter().find(|tree| tree.segment.0 == segment) {
            return Some(tree.name.to_string());
        }
        self.tables.iter().find_map(|table| {
            let name = &table.definition.name;
            if table.overflow_segment == segment {
                return Some(format!("table {name}, overflow pages"));
            }
            let tree = table.trees.iter().find(|tree| tree.segment == segment)?;
            Some(format!("table {name}, index {}", tree.name))
        })
    }

    /// The owner of a page, as text.
    pub fn name_of(&self, page_no: PageNo) -> Option<String> {
        self.segment_name(self.owner(page_no)?)
    }

    /// Table and tree that a tree page's owner number stands for.
    pub fn tree(&self, id: u32) -> Option<(&RawTable, &RawTree)> {
        self.tables.iter().find_map(|table| Some((table, table.trees.iter().find(|tree| tree.id == id)?)))
    }

    /// The table of a number.
    pub fn table(&self, id: u32) -> Option<&RawTable> {
        self.tables.iter().find(|table| table.id == id)
    }

    /// Levels of a tree and an estimate of its records, from leaves in different places; `leaf_pages_at_most` = pages
    /// of its segment.
    ///
    /// # Errors
    /// A page on the way cannot be read.
    pub fn tree_size(&self, tree: &RawTree, pages: u64) -> Result<TreeSize> {
        /// Leaves looked at.
        const SAMPLES: usize = 16;
        let root = self.node(tree.root, tree.id)?;
        let levels = u64::from(header::level(&root)) + 1;
        let (mut records, mut used, mut inner) = (0, 0, 0);
        for sample in 0..SAMPLES {
            let mut page = root.clone();
            let mut fanout_product = 1;
            while header::level(&page) > 0 {
                let found = Node::new(&page);
                let children = found.count() + 1;
                let child = found.child((sample * children / SAMPLES).min(children - 1));
                let level = header::level(&page);
                page = self.node(child, tree.id)?;
                if header::level(&page) + 1 != level {
                    return Err(Error::corrupt_page(child, "its level does not follow its parent's"));
                }
                if level == 1 {
                    fanout_product = children;
                }
            }
            let leaf = Node::new(&page);
            records += leaf.count() as u64;
            used += leaf.used_bytes() as u64;
            inner += fanout_product as u64;
        }
        let samples = SAMPLES as u64;
        // Nearly all inner pages are on level 1, one for each `fanout` leaves.
        let fanout = (inner / samples).max(1);
        let leaves = if levels == 1 { 1 } else { (pages * fanout / (fanout + 1)).max(1) };
        let capacity = Node::new(&root).capacity_bytes().max(1) as u64;
        Ok(TreeSize {
            levels,
            records_estimate: records * leaves / samples,
            fill_percent: used * 100 / samples / capacity,
        })
    }

    /// A sound node of a tree.
    pub(super) fn node(&self, page_no: PageNo, tree: u32) -> Result<Vec<u8>> {
        self.node_of(page_no, |owner| owner == tree)
    }

    /// A sound node of one of some trees.
    pub(super) fn node_of(&self, page_no: PageNo, is_wanted: impl Fn(u32) -> bool) -> Result<Vec<u8>> {
        let page = self.sound_page(page_no)?;
        node::check(&page, page_no)?;
        if !is_wanted(header::owner(&page)) {
            return Err(Error::corrupt_page(page_no, format!("it is a page of index {}", header::owner(&page))));
        }
        Ok(page)
    }
}

impl ExtentUse {
    fn add_chunk(&mut self, extent: &Extent, chunk: u32, whole: bool) {
        let owner = extent.owners[chunk as usize];
        if owner == 0 {
            return;
        }
        let used = u64::from((extent.used >> (chunk * CHUNK_PAGES) & 0xff).count_ones());
        let segment = self.segments.entry(owner).or_default();
        segment.pages_used += used;
        segment.pages_free += u64::from(CHUNK_PAGES) - used;
        if whole {
            segment.extents += u64::from(chunk == 0);
        } else {
            segment.fragments += 1;
        }
    }
}
