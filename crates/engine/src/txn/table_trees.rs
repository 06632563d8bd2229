//! What the transaction layer needs from the layer above: a table as bytes.
//!
//! The transaction layer has no schema. It stores `(key, payload)` pairs in a clustered tree and asks the table for the
//! keys of its secondary entries. [`TableTrees::entry`] and [`TableTrees::entry_changes`] may run under a leaf latch
//! and therefore only look at the bytes they are given.

use crate::btree::BTree;
use crate::types::{SegmentId, TableId, TxnId};
use std::sync::Arc;

/// What [`TableTrees::entry`] appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    /// Length of the index-column part of the entry key, in bytes; the clustered key follows it.
    pub prefix_bytes: usize,
    /// Whether no other row may have the same index columns (a unique index, and none of the columns is NULL).
    pub unique: bool,
}

/// A table as the transaction layer sees it.
pub trait TableTrees: Send + Sync {
    /// Its number in the catalog.
    fn id(&self) -> TableId;
    /// Its name, for messages.
    fn name(&self) -> &str;
    /// The tree that holds the rows.
    fn clustered(&self) -> &BTree;
    /// Owner of the pages of rows too large for a leaf.
    fn overflow_segment(&self) -> SegmentId;
    fn index_count(&self) -> usize;
    /// Tree of secondary index `i`.
    fn index(&self, i: usize) -> &BTree;
    /// Whether what transaction `id` wrote had been committed when secondary index `i` was built: of the versions of a
    /// row by such ones it has the entry of the newest only.
    fn is_before_index(&self, i: usize, id: TxnId) -> bool;
    /// Name of secondary index `i`, for messages.
    fn index_name(&self, i: usize) -> &str;
    /// Appends to `out` the entry key of secondary index `i` for this row: index columns, then the clustered key.
    fn entry(&self, i: usize, key: &[u8], row: &[u8], out: &mut Vec<u8>) -> IndexEntry;
    /// Whether a change from `old_row` to `new_row` can change the entry of index `i`. May say true needlessly.
    fn entry_changes(&self, i: usize, old_row: &[u8], new_row: &[u8]) -> bool;
}

/// Finds tables by number, for rollback and purge.
pub trait Tables: Send + Sync {
    /// The table, or `None` when it has been dropped.
    fn table(&self, id: TableId) -> Option<Arc<dyn TableTrees>>;
}
