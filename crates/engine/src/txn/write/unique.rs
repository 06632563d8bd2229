//! The stripes of unique checks, and the state of the last search in each; see rules 1 and 2 of `duplicates.rs`.

use crate::btree::BTree;
use crate::lock::RowName;
use crate::sync::{Mutex, MutexGuard};
use crate::types::{IndexId, PageNo};

/// Number of stripes.
const STRIPES: usize = 256;

/// The stripes; columns belong to one by their hash.
#[derive(Debug)]
pub(crate) struct Unique(Box<[Mutex<Searched>]>);

impl Default for Unique {
    fn default() -> Unique {
        Unique((0..STRIPES).map(|_| Mutex::default()).collect())
    }
}

impl Unique {
    /// The stripe of these columns.
    pub(crate) fn lock(&self, tree: &BTree, columns: &[u8]) -> MutexGuard<'_, Searched> {
        let name = RowName { index: tree.id(), key: columns };
        self.0[name.hash() as usize % self.0.len()].lock()
    }
}

/// The start of the search for the last searched columns.
#[derive(Debug, Default)]
pub(crate) struct Searched {
    index: IndexId,
    root: PageNo,
    prefix_bytes: usize,
    /// An entry; all before it with the same columns are passed.
    from: Vec<u8>,
}

impl Searched {
    fn knows(&self, tree: &BTree, columns: &[u8]) -> bool {
        (self.index, self.root) == (tree.id(), tree.root())
            && self.prefix_bytes == columns.len()
            && self.from.starts_with(columns)
    }

    /// The start of a search for these columns.
    pub(crate) fn start<'s>(&'s self, tree: &BTree, columns: &'s [u8]) -> &'s [u8] {
        if self.knows(tree, columns) { &self.from } else { columns }
    }

    /// Searches for these columns begin at `entry` at the latest.
    pub(super) fn begin_at(&mut self, tree: &BTree, columns: &[u8], entry: &[u8]) {
        if self.knows(tree, columns) && *entry < *self.from {
            self.from.clear();
            self.from.extend_from_slice(entry);
        }
    }

    /// Searches for these columns begin at `entry`.
    pub(super) fn remember(&mut self, tree: &BTree, columns: &[u8], entry: Vec<u8>) {
        debug_assert!(entry.starts_with(columns), "rule 2: an entry of other columns is remembered");
        (self.index, self.root) = (tree.id(), tree.root());
        (self.prefix_bytes, self.from) = (columns.len(), entry);
    }
}
