//! The layout of the data file: arithmetic only.
//!
//! Extent-map page: header, then one 72-byte entry per extent of the group: use bits u64, then eight chunk owners u32
//! (0 = not owned), then the free class of each page, four bits each ([`super::free_class`]). The first two pages of a
//! group are the file header (of group 0; unused in others) and the map.

use crate::page::HEADER_BYTES;
pub(crate) use crate::types::EXTENT_PAGES;
use crate::types::{PageNo, SegmentId};
use std::ops::Range;

/// Owner of file headers and extent maps.
pub(crate) const SEGMENT_SYSTEM: SegmentId = SegmentId(u32::MAX);
/// Owner of the catalog's tree.
pub(crate) const SEGMENT_CATALOG: SegmentId = SegmentId(1);
/// Owner of undo pages.
pub(crate) const SEGMENT_UNDO: SegmentId = SegmentId(2);
/// Owner of the change buffer's tree.
pub(crate) const SEGMENT_CHANGE_BUFFER: SegmentId = SegmentId(3);
/// Owner of the catalog's second tree.
pub(crate) const SEGMENT_CATALOG_COPY: SegmentId = SegmentId(4);
/// Chunks of an extent.
pub(crate) const CHUNKS: u32 = 8;
pub(crate) const CHUNK_PAGES: u32 = EXTENT_PAGES / CHUNKS;
/// Most extents of a file: page numbers have 32 bits.
pub(crate) const MAX_EXTENTS: u32 = u32::MAX / EXTENT_PAGES;
/// Offset of a map's entries.
pub(crate) const ENTRIES_AT: usize = HEADER_BYTES;
pub(crate) const ENTRY_BYTES: usize = 72;
/// Offset of the owners in an entry.
pub(crate) const OWNERS_AT: usize = 8;
/// Offset of the free classes in an entry.
pub(crate) const CLASSES_AT: usize = 40;
/// Bits of a page's free class.
pub(crate) const CLASS_BITS: u32 = 4;
/// Pages whose free classes share a u64.
const CLASS_WORD_PAGES: u32 = u64::BITS / CLASS_BITS;

/// The arithmetic for one page size.
#[derive(Clone, Copy, Debug)]
pub struct SpaceLayout {
    page_bytes: usize,
    group_extents: u32,
}

impl SpaceLayout {
    /// For pages of `page_bytes`.
    pub fn new(page_bytes: usize) -> SpaceLayout {
        SpaceLayout { page_bytes, group_extents: ((page_bytes - ENTRIES_AT) / ENTRY_BYTES) as u32 }
    }

    /// This layout with this many extents in a group at most: smaller groups make tests of several groups cheap.
    pub fn with_groups_of(self, max_extents: u32) -> SpaceLayout {
        SpaceLayout { group_extents: self.group_extents.min(max_extents), ..self }
    }

    /// Bytes of a page.
    pub fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// Bytes of an extent.
    pub fn extent_bytes(&self) -> u64 {
        u64::from(EXTENT_PAGES) * self.page_bytes as u64
    }

    /// Groups that `extents` extents reach into.
    pub fn groups(&self, extents: u32) -> u32 {
        extents.div_ceil(self.group_extents)
    }

    /// Extents a whole group has.
    pub fn group_extents(&self) -> u32 {
        self.group_extents
    }

    /// Pages of a whole group.
    pub fn group_pages(&self) -> u32 {
        self.group_extents * EXTENT_PAGES
    }

    /// Extents of `group` in a file of `extents`.
    pub fn extents_in_group(&self, group: u32, extents: u32) -> u32 {
        (extents - group * self.group_extents).min(self.group_extents)
    }

    /// Whether the extent is the first of its group: it has the map.
    pub fn begins_group(&self, extent: u32) -> bool {
        extent.is_multiple_of(self.group_extents)
    }

    /// The map of a group.
    pub fn map_page(&self, group: u32) -> PageNo {
        PageNo(group * self.group_pages() + 1)
    }

    /// The group whose map the page is.
    pub fn group_mapped_by(&self, page: PageNo) -> Option<u32> {
        let group = page.0 / self.group_pages();
        (self.map_page(group) == page).then_some(group)
    }

    /// Whether the page is taken and never written: the one in front of a map, but for page 0.
    pub fn is_unused(&self, page: PageNo) -> bool {
        page.0 != 0 && page.0.is_multiple_of(self.group_pages())
    }

    /// The place of a page's description: the map, the offset of its extent's use bits, the offset of its chunk's
    /// owner.
    pub fn entry_of(&self, page: PageNo) -> (PageNo, u16, u16) {
        let extent = page.0 / EXTENT_PAGES;
        let map = self.map_page(extent / self.group_extents);
        let entry = ENTRIES_AT + (extent % self.group_extents) as usize * ENTRY_BYTES;
        let chunk = (page.0 % EXTENT_PAGES / CHUNK_PAGES) as usize;
        (map, entry as u16, (entry + OWNERS_AT + chunk * 4) as u16)
    }

    /// The place of a page's free class: the map, the offset of its u64, the lowest bit.
    pub fn class_of(&self, page: PageNo) -> (PageNo, u16, u32) {
        let (map, entry, _) = self.entry_of(page);
        let index = page.0 % EXTENT_PAGES;
        let word = CLASSES_AT as u16 + (index / CLASS_WORD_PAGES) as u16 * 8;
        (map, entry + word, index % CLASS_WORD_PAGES * CLASS_BITS)
    }
}

/// The page bits of a set of chunks (bit per chunk).
pub(crate) fn chunk_mask(chunks: u8) -> u64 {
    (0..CHUNKS).filter(|c| chunks >> c & 1 == 1).map(|c| 0xff_u64 << (c * CHUNK_PAGES)).sum()
}

/// The pages of some extents.
pub(super) fn pages_of(extents: Range<u32>) -> Range<u32> {
    extents.start * EXTENT_PAGES..extents.end * EXTENT_PAGES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_stay_inside_their_map() {
        for page_bytes in [4096, 8192, 16384] {
            let layout = SpaceLayout::new(page_bytes);
            let last = PageNo(layout.group_extents() * EXTENT_PAGES - 1);
            let (map, bits, owner) = layout.entry_of(last);
            assert_eq!(map, PageNo(1));
            assert!(usize::from(bits) + 8 <= page_bytes && usize::from(owner) + 8 <= page_bytes);
            let (map, word, shift) = layout.class_of(last);
            assert!(map == PageNo(1) && usize::from(word) + 8 <= page_bytes && shift == 60);
            let next = PageNo(last.0 + 1);
            assert_eq!(layout.entry_of(next), (PageNo(next.0 + 1), ENTRIES_AT as u16, (ENTRIES_AT + OWNERS_AT) as u16));
            assert_eq!(layout.groups(layout.group_extents()), 1);
            assert_eq!(layout.groups(layout.group_extents() + 1), 2);
        }
    }

    #[test]
    fn chunk_masks_cover_their_pages() {
        assert_eq!(chunk_mask(0), 0);
        assert_eq!(chunk_mask(0b1000_0001), 0xff00_0000_0000_00ff);
        assert_eq!(chunk_mask(0xff), u64::MAX);
    }
}
