//! Building or rebuilding an index: filling a new tree from the rows of its table, in bounded memory, by an external
//! merge sort. Writers continue meanwhile (`online`).
//!
//! The rows are read in the order of the primary key; their entries are collected and sorted. If all of them fit
//! [`batch_bytes`], the tree is built from them. Otherwise each batch becomes a sorted run in a temporary file, and the
//! tree is built from the merged runs. In both cases it is built from its leaves up: no page of it is read, and each is
//! written once.
//!
//! Rules
//! 1. Only the builder uses the tree: writers log their changes. So the builder needs no undo and no locks: on an error
//!    the caller drops the whole tree.
//! 2. Every row that the builder's view sees gets its entry. Older versions get none: snapshots from before the build
//!    do not use the index.
//! 3. Uniqueness is checked on consecutive entries when they are added to the tree.
//! 4. Memory: at most a batch, also for the blocks of the merged runs.
//! 5. The temporary file is useless after a crash, so it is never synced. Its blocks are verified: a damaged block is
//!    an error.
//!
//! | file | what |
//! |---|---|
//! | `batch` | entries in memory, and sorting them |
//! | `runs` | the temporary file: writing and reading runs |
//! | `online` | an online index build, from its begin to its end |
//! | `catch_up`, `change_queue` | concurrent changes of writers are applied |
//! | `merge` | merging runs, as many at a time as memory allows |

mod batch;
mod catch_up;
mod change_queue;
mod merge;
mod online;
mod runs;

pub use online::BuildProgress;
pub(super) use online::Built;

use super::scan::Range;
use super::write_txn::{HAS_NOT_ENDED, WriteTxn};
use crate::btree::{BTree, Builder};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::row::format::entry_header;
use crate::table::Table;
use crate::table::value::Value;
use crate::table::version::TableVersion;
use crate::txn::TableTrees;
use batch::{BuildEntry, EntryBatch};
use runs::Runs;

/// Bytes of entries held in memory at once, at least and at most.
const MIN_BATCH_BYTES: usize = 1 << 20;
pub(super) const MAX_BATCH_BYTES: usize = 64 << 20;
/// The part of the buffer pool's size that they take in addition to the pool.
const POOL_PART: usize = 8;
/// Fill factor of the pages of a new tree, which leaves space for later insertions.
const FILL_PERCENT: usize = 90;
/// Rows, and entries, between two looks at other work.
const OFTEN: u64 = 256;

/// Bytes of entries held in memory at once.
pub(super) fn batch_bytes(ctx: &Context) -> usize {
    let pool_bytes = ctx.pool.frame_count() * ctx.pool.page_bytes();
    (pool_bytes / POOL_PART).clamp(MIN_BATCH_BYTES, MAX_BATCH_BYTES)
}

/// Fills the last index of a table.
struct IndexFill<'b> {
    ctx: &'b Context,
    version: &'b TableVersion,
    batch_bytes: usize,
    runs: Runs<'b>,
    /// Called now and then, with the rows that were read so far, or all of them and the entries in the tree.
    between: &'b mut dyn FnMut(BuildProgress) -> Result<()>,
    /// After `DuplicateKey`: the primary key of the second of the two rows.
    duplicate: Vec<u8>,
}

impl IndexFill<'_> {
    /// Fills the tree from the rows that `txn` sees.
    fn fill(&mut self, txn: &mut WriteTxn, table: &Table) -> Result<()> {
        let index = self.version.index_count() - 1;
        let (mut batch, rows) = self.gather(txn, table, index)?;
        let IndexFill { ctx, version, batch_bytes, runs, between, duplicate } = self;
        let mut tree = NewTree::of(ctx, version, index, duplicate);
        let txn = txn.txn.as_ref().expect(HAS_NOT_ENDED);
        let mut take = |entry: BuildEntry<'_>| {
            tree.push(entry)?;
            if tree.entries.is_multiple_of(OFTEN) {
                txn.check_interrupt()?;
                between(BuildProgress { rows, entries: tree.entries, changes_left: 0 })?;
            }
            Ok(())
        };
        if runs.is_empty() {
            batch.sort();
            batch.entries().try_for_each(take)?;
        } else {
            runs.write(&mut batch)?;
            drop(batch);
            merge::merge(runs, *batch_bytes, &mut take)?;
        }
        debug_assert_eq!(tree.entries, rows, "rule 2: rows that the view sees have no entry");
        tree.builder.finish().map(drop)
    }

    /// Reads the rows; what does not fit one batch becomes runs. Returns the last batch and the number of rows.
    fn gather(&mut self, txn: &mut WriteTxn, table: &Table, index: usize) -> Result<(EntryBatch, u64)> {
        let (read, _) = txn.use_for_scan(table, None)?;
        let all = Range { limit: usize::MAX, ..Range::default() };
        let mut cursor = txn.cursor(&read, None, &all)?;
        let (mut batch, mut rows, mut key) = (EntryBatch::default(), 0, Vec::new());
        while txn.next(&mut cursor)? {
            let row = cursor.payload();
            key.clear();
            self.version.key_of(row, &mut key);
            self.version.check_keys(&key, row)?;
            batch.add(self.version, index, &key, row)?;
            rows += 1;
            if batch.memory_bytes() >= self.batch_bytes {
                self.runs.write(&mut batch)?;
            }
            if rows % OFTEN == 0 {
                (self.between)(BuildProgress { rows, entries: 0, changes_left: 0 })?;
            }
        }
        Ok((batch, rows))
    }
}

/// The tree on its way.
struct NewTree<'t, 'c> {
    version: &'t TableVersion,
    index: usize,
    builder: Builder<'t, 'c>,
    entries: u64,
    /// The index columns of the last entry, if they have to be unique.
    last: Vec<u8>,
    /// See [`IndexFill`].
    duplicate: &'t mut Vec<u8>,
    /// The value of an entry.
    value: Vec<u8>,
}

impl<'t, 'c> NewTree<'t, 'c> {
    fn of(ctx: &'c Context, version: &'t TableVersion, index: usize, duplicate: &'t mut Vec<u8>) -> NewTree<'t, 'c> {
        let tree: &BTree = version.index(index);
        let builder = tree.builder(ctx, FILL_PERCENT, 0);
        NewTree { version, index, builder, entries: 0, last: Vec::new(), duplicate, value: Vec::new() }
    }

    /// The next entry, in ascending order.
    fn push(&mut self, entry: BuildEntry<'_>) -> Result<()> {
        if self.version.definition.indexes[self.index].unique {
            self.check_unique(&entry)?;
        }
        self.entries += 1;
        self.value.clear();
        self.value.extend_from_slice(&entry_header(entry.columns_bytes));
        self.value.extend_from_slice(entry.covered);
        self.builder.push(entry.key, &self.value).map_err(|error| match error {
            Error::Usage(_) => Error::Corrupt("two rows of a table have the same primary key".to_string()),
            other => other,
        })
    }

    /// Rule 3. Rows with a NULL are equal to none.
    fn check_unique(&mut self, entry: &BuildEntry<'_>) -> Result<()> {
        let columns = entry.columns();
        let layout = &self.version.indexes[self.index].key;
        if columns == self.last && !layout.decode(columns)?.0.contains(&Value::Null) {
            self.duplicate.extend_from_slice(&entry.key[columns.len()..]);
            let index = self.version.index_name(self.index).to_string();
            return Err(Error::DuplicateKey { table: self.version.name().to_string(), index });
        }
        self.last.clear();
        self.last.extend_from_slice(columns);
        Ok(())
    }
}

#[cfg(test)]
#[path = "index_build_test.rs"]
mod tests;
