//! The catalog of a data file without opening the database: its tables and their trees.
//!
//! Rules
//! 1. It is read page by page from the root of one of its trees, without trusting links: a page of another tree is not
//!    entered.
//! 2. A salvage reads every page instead, independent of the roots.

use super::file::RawFile;
use super::table::{RawTable, raw_table};
use crate::error::{Error, Result};
use crate::page::{Node, header};
use crate::space::layout::EXTENT_PAGES;
use crate::table::catalog_entry::Gathered;
use crate::table::catalog_trees::{CATALOG_TREES, CatalogTree};
use crate::types::PageNo;
use std::collections::{BTreeMap, HashSet};

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
