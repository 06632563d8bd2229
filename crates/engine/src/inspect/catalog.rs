//! The catalog of a data file without opening the database: its tables and their trees.
//!
//! Rules
//! 1. It is read page by page from the root of one of its trees, without trusting links: a page of another tree is not
//!    entered.
//! 2. A salvage reads every page instead, independent of the roots.

use super::file::RawFile;
use crate::config::Collations;
use crate::error::{Error, Result};
use crate::page::{Node, header};
use crate::space::layout::EXTENT_PAGES;
use crate::table::catalog_entry::{Gathered, TableEntry};
use crate::table::catalog_trees::{CATALOG_TREES, CatalogTree};
use crate::table::covered::CoveredLayout;
use crate::table::key::KeyLayout;
use crate::table::schema::PRIMARY;
use crate::table::{RowLayouts, TableDefinition};
use crate::types::PageNo;
use std::collections::{BTreeMap, HashSet};

/// A tree of a table, as the catalog has it.
#[derive(Clone, Debug)]
pub struct RawTree {
    /// Its name; "PRIMARY" for the rows.
    pub name: String,
    /// Its number, which its pages carry.
    pub id: u32,
    /// Its segment.
    pub segment: u32,
    /// Its root page.
    pub root: PageNo,
    /// Whether two rows may have the same entry.
    pub unique: bool,
    /// How its keys begin.
    pub key: KeyLayout,
    /// The layout of the covered columns of its entries.
    pub covered: CoveredLayout,
    /// Longest key that it takes.
    pub max_key_bytes: u16,
}

/// A table, as the catalog has it.
#[derive(Debug)]
pub struct RawTable {
    /// Its number, which undo records carry.
    pub id: u32,
    /// What it is.
    pub definition: TableDefinition,
    /// Owner of its overflow pages.
    pub overflow_segment: u32,
    /// No auto-increment number at or above this was given.
    pub auto_increment_bound: u64,
    /// Its trees, that of the rows first.
    pub trees: Vec<RawTree>,
    /// How its rows are laid out.
    pub layouts: RowLayouts,
}

impl RawFile<'_> {
    /// Reads the catalog again, from every leaf of its trees that verifies, whether or not a root leads there. Returns
    /// errors for the records and tables that cannot be read.
    pub(crate) fn gather_catalog(&mut self) -> Vec<Error> {
        let mut leaves = Vec::new();
        for page_no in (0..self.page_count() as u32).map(PageNo) {
            let is_free = self.extent(page_no.0 / EXTENT_PAGES).is_some() && self.owner(page_no).is_none();
            let page = self.node_of(page_no, |owner| CATALOG_TREES.iter().any(|tree| tree.id.0 == owner));
            leaves.extend(page.ok().filter(|page| !is_free && Node::new(page).is_leaf()));
        }
        // If two leaves cover a key, the newer one counts, even if it does not have the key.
        leaves.sort_by_key(|page| header::lsn(page));
        self.tables.clear();
        let (mut records, mut gathered) = (BTreeMap::new(), Gathered::default());
        for found in leaves.iter().map(|page| Node::new(page)) {
            let is_covered = |key: &[u8]| {
                found.lower().is_none_or(|lower| key >= lower) && found.upper().is_none_or(|upper| key < upper)
            };
            records.retain(|key: &Vec<u8>, _| !is_covered(key));
            records.extend((0..found.count()).map(|slot| (found.key(slot), found.value(slot).to_vec())));
        }
        let mut wrong: Vec<Error> = records.iter().filter_map(|(key, value)| gathered.add(key, value).err()).collect();
        for table in gathered.finish_each().0 {
            match table {
                Ok(table) => self.tables.push(raw_table(table)),
                Err(error) => wrong.push(error),
            }
        }
        wrong
    }

    /// The tables, from the first tree of the catalog that can be read.
    pub(super) fn read_either_catalog(&self) -> Result<Vec<RawTable>> {
        let roots = crate::space::header::read_roots(&self.sound_page(PageNo(0))?)?;
        let set = CATALOG_TREES.into_iter().filter(|tree| roots[tree.root_slot].0 != 0);
        let mut read = set.map(|tree| self.read_catalog(tree, roots[tree.root_slot]));
        // A new database may have none yet.
        let first = read.next().unwrap_or_else(|| Ok(Vec::new()));
        first.or_else(|error| read.find_map(Result::ok).ok_or(error))
    }

    fn read_catalog(&self, tree: CatalogTree, root: PageNo) -> Result<Vec<RawTable>> {
        let mut gathered = Gathered::default();
        let mut seen = HashSet::new();
        let mut to_visit = vec![root];
        let mut key = Vec::new();
        while let Some(page_no) = to_visit.pop() {
            let page = self.node(page_no, tree.id.0)?;
            if !seen.insert(page_no) {
                return Err(Error::corrupt_page(page_no, "the catalog refers to this page twice"));
            }
            let found = Node::new(&page);
            if !found.is_leaf() {
                to_visit.extend((0..=found.count()).map(|slot| found.child(slot)));
                continue;
            }
            for slot in 0..found.count() {
                found.key_into(slot, &mut key);
                gathered.add(&key, found.value(slot))?;
            }
        }
        let (tables, _) = gathered.finish()?;
        Ok(tables.into_iter().map(raw_table).collect())
    }
}

fn raw_table(entry: TableEntry) -> RawTable {
    let layouts = RowLayouts::of_table(&entry);
    let TableEntry { id, record, definition, indexes, .. } = entry;
    let rows = RawTree {
        name: PRIMARY.to_string(),
        id: record.clustered.id.0,
        segment: record.clustered.segment.0,
        root: record.clustered.root,
        unique: true,
        covered: CoveredLayout::default(),
        max_key_bytes: record.clustered.max_key_bytes,
        key: KeyLayout::new(&definition, &definition.primary_key, &Collations::default()),
    };
    let secondary = indexes.iter().zip(&definition.indexes).map(|(index, positioned)| RawTree {
        name: positioned.name.clone(),
        id: index.tree.id.0,
        segment: index.tree.segment.0,
        root: index.tree.root,
        unique: positioned.unique,
        key: KeyLayout::new(&definition, &positioned.columns, &Collations::default()),
        covered: CoveredLayout::new(&definition, positioned),
        max_key_bytes: index.tree.max_key_bytes,
    });
    RawTable {
        id: id.0,
        trees: std::iter::once(rows).chain(secondary).collect(),
        layouts,
        overflow_segment: record.overflow.0,
        auto_increment_bound: record.auto_increment_bound,
        definition,
    }
}
