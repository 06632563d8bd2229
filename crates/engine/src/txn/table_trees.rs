//! The interface that the table layer implements for the transaction layer: a table as bytes.
//!
//! The transaction layer has no schema. It stores `(key, payload)` pairs in a clustered tree and asks the table for the
//! keys of its secondary entries, for their covered bytes, and for the columns that can move to overflow pages. All of
//! this, except the trees, reads only the given bytes, so it may run under a leaf latch.

use super::entry_log::EntryLog;
use crate::btree::BTree;
use crate::error::Result;
use crate::types::{SegmentId, TableId, TxnId};
use std::sync::Arc;

/// The result of [`TableTrees::entry`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    /// Length of the index-column part of the entry key, in bytes; the clustered key follows it.
    pub prefix_bytes: usize,
    /// Whether no other row may have the same index columns (a unique index, and none of the columns is NULL).
    pub unique: bool,
}

/// Appends the new bytes of a variable-length column, of which it gets number and bytes.
pub(crate) type ColumnRewrite<'f> = dyn FnMut(u16, &[u8], &mut Vec<u8>) + 'f;

/// A table as the transaction layer sees it.
pub(crate) trait TableTrees: Send + Sync {
    /// Its number in the catalog.
    fn id(&self) -> TableId;
    /// Its name, for messages.
    fn name(&self) -> &str;
    /// Whether changes of its rows go to the change log.
    fn logs_changes(&self) -> bool {
        false
    }
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
    /// The log of changes of the entries of secondary index `i` while it is being built; `None` if the index is
    /// complete.
    fn entry_log(&self, _i: usize) -> Option<&EntryLog> {
        None
    }
    /// Whether its rows expire.
    #[inline]
    fn has_expiry(&self) -> bool {
        false
    }
    /// Expiry time of a row in microseconds since 1970; `None`: never.
    fn expiry(&self, _row: &[u8]) -> Option<i64> {
        None
    }
    /// Name of secondary index `i`, for messages.
    fn index_name(&self, i: usize) -> &str;
    /// Checks that entries of rows can be encoded.
    ///
    /// # Errors
    /// `Collation`: the program lacks the function of one.
    fn check_entries(&self) -> Result<()>;
    /// Appends to `out` the entry key of secondary index `i` for this row: index columns, then the clustered key.
    ///
    /// # Errors
    /// `Collation`.
    fn entry(&self, i: usize, key: &[u8], row: &[u8], out: &mut Vec<u8>) -> Result<IndexEntry>;
    /// Appends to `out` what the entry of index `i` for this row has in addition to its key.
    fn covered(&self, i: usize, row: &[u8], out: &mut Vec<u8>);
    /// Whether a change from `old_row` to `new_row` can change the entry of index `i`, its key or its covered columns.
    /// May say true needlessly.
    fn entry_changes(&self, i: usize, old_row: &[u8], new_row: &[u8]) -> bool;
    /// Whether such a change may leave the key of the entry unchanged.
    fn may_keep_key(&self, i: usize) -> bool;
    /// Whether the entry of index `i`, its covered columns included, needs more bytes of variable-length column
    /// `number` than `row` has, which may lack the end of the column.
    fn entry_needs(&self, i: usize, row: &[u8], number: u16) -> bool;
    /// Position in the table of variable-length column `number` of this row; `None` if the table has no such column.
    fn column_of(&self, row: &[u8], number: u16) -> Option<usize>;
    /// Bytes of variable-length column `number` of this row; none if there is no such column.
    fn column_bytes<'r>(&'r self, row: &'r [u8], number: u16) -> &'r [u8];
    /// Replaces `out` with this row, in which the bytes of each variable-length column are what `column` appends for
    /// it: it gets number and bytes, in order.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::error::Error::Corrupt) if `row` is not a row.
    fn rebuild_columns(&self, row: &[u8], column: &mut ColumnRewrite<'_>, out: &mut Vec<u8>) -> Result<()>;
    /// The numbers of the variable-length columns of a row to move to overflow pages, so that the row has at most
    /// `room` bytes with their references. Columns in `moved` are already there. If the row would still be too long,
    /// some of the columns.
    fn overflow_columns(&self, row: &[u8], moved: &[u16], room: usize) -> Vec<u16>;
}

/// Finds tables by number, for rollback and purge.
pub(crate) trait Tables: Send + Sync {
    /// The table, or `None` when it has been dropped.
    fn table(&self, id: TableId) -> Option<Arc<dyn TableTrees>>;
}
