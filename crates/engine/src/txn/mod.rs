//! Transactions over byte strings: isolation, undo, purge; their locks are in [`crate::lock`], older versions of
//! rows in [`crate::undo`].
//!
//! A row is a `(key, payload)` pair in the clustered tree of a table, its secondary entries are keys in other trees;
//! the table layer derives them ([`TableTrees`]). This layer combines several changes to one transaction: others see
//! all of it or nothing, a rollback leaves no trace, snapshots read without waiting.
//!
//! | file or module | concept |
//! |---|---|
//! | `transaction.rs`, `life.rs`, `options.rs`, `savepoint.rs` | a transaction and its life |
//! | `prepared.rs` | two phases: prepared transactions |
//! | `ended.rs` | assertions about an ended transaction |
//! | `recovered.rs` | transactions that had not ended when the database went down |
//! | `row_op.rs`, `row_closure.rs` | an operation on one row: its context, its life as a statement |
//! | `auto_increment_lock.rs` | the lock under which a statement takes consecutive numbers |
//! | `statement.rs` | a statement of several calls: its view, how it is undone |
//! | `system.rs` | state that transactions share, order of a commit |
//! | `active.rs`, `holders.rs` | ids, who is active, the cut a view is made by |
//! | `changed_rows.rs` | the rows that a transaction has changed, for the change log |
//! | `expiry.rs` | rows that expire |
//! | `entry_log.rs` | changes of the entries of an index that is being built |
//! | `table_trees.rs` | a table as this layer sees it |
//! | `write/` | row operations, the entries they move |
//! | `overflow.rs`, `overflow_columns.rs` | chains of overflow pages; rows whose columns are on such |
//! | `read/` | views, versions of rows, scans |
//! | `rollback.rs`, `purge/` | older versions: restored, removed |
//!
//! Latch order: leaf, undo page, undo directory page; then the mutexes. None of them is held around I/O except the
//! stripes of unique checks, the purge view and the mutex that serializes the creation of undo streams. Their order:
//! stripe, purge view, then a shard of locks, the waits (`lock`), holders, a list of views, the newest view, the state
//! of the last cut (`known`), a shard of the active set.

/// The atomics of `active.rs` and `read/views.rs`; their models in `txn_test` use loom's.
mod atomic {
    pub(super) use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
    pub(super) use crate::sync::{Mutex, MutexGuard};
}

mod active;
pub(crate) mod auto_increment_lock;
mod changed_rows;
mod ended;
mod entry_log;
mod expiry;
mod holders;
mod life;
mod options;
pub(crate) mod overflow;
pub(crate) mod overflow_columns;
mod prepared;
pub(crate) mod purge;
mod read;
mod recovered;
mod rollback;
mod row_closure;
mod row_op;
mod savepoint;
mod statement;
mod system;
mod table_trees;
mod transaction;
mod write;
mod yield_cpu;

pub(crate) use changed_rows::ChangedRow;
pub(crate) use entry_log::{EntryChange, EntryLog, LoggedChange, LoggedChanges};
pub(crate) use options::Access;
pub use options::{Isolation, TxnOptions};
pub(crate) use overflow::MAX_ROW_BYTES;
pub(crate) use overflow_columns::{Outside, Wanted};
pub(crate) use purge::LagLimits;
pub use purge::{PurgeState, PurgeWatch};
pub(crate) use read::{EntryFilter, RowCursor, RowInPlace, RowVisitor, ScanOptions};
pub(crate) use read::{ReadView, StoredRow, ViewHandle, resolve};
pub(crate) use row_closure::{check_outside_closures, check_outside_row_closure, closed, telling};
pub(crate) use row_op::RowOp;
pub use savepoint::Savepoint;
pub(crate) use system::TxnSystem;
pub(crate) use table_trees::{ColumnRewrite, IndexEntry, TableTrees, Tables};
pub(crate) use transaction::Txn;
pub(crate) use transaction::{KEPT_ROW_BYTES, RecoveredPrepared};
pub(crate) use write::StoredEntry;
pub(crate) use write::{NewRows, RowsOp};
pub(crate) use yield_cpu::yield_cpu;

#[cfg(test)]
mod txn_test;
