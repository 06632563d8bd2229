//! Transactions over byte strings: isolation, undo, locks, purge.
//!
//! A row is a `(key, payload)` pair in the clustered tree of a table, its secondary entries are keys in trees of their own;
//! the table layer says which ([`Rows`]). This layer makes several changes one transaction: others see all of it or nothing,
//! a rollback leaves no trace, snapshots read without waiting.
//!
//! | file | concept |
//! |---|---|
//! | `system.rs` | what transactions share, order of a commit |
//! | `active.rs`, `holders.rs` | ids, who is active, the cut a view is made by |
//! | `trx.rs` | a transaction's life, statements, savepoints |
//! | `read_view.rs` | what a snapshot sees |
//! | `row.rs`, `diff.rs` | bytes of rows and entries |
//! | `attempt.rs`, `write.rs`, `secondary.rs`, `overflow.rs` | row operations |
//! | `read.rs`, `scan.rs`, `scan_batch.rs`, `scan_seen.rs` | reading by snapshot or with locks |
//! | `undo/`, `versions.rs`, `rollback.rs`, `purge.rs` | older versions: kept, needed by whom, put back, taken away |
//! | `purge_lag.rs` | how far purge is behind, how writers are slowed for it |
//! | `lock.rs`, `lock_rows.rs`, `lock_range.rs`, `interval_tree.rs` | explicit locks |
//! | `lock_queue.rs`, `lock_waits.rs`, `deadlock.rs` | waiting for them |
//!
//! Latch order: leaf, undo page, undo directory page; then the mutexes, none of them around I/O except the stripes of
//! unique checks, the purge view and the one that makes new streams come one at a time: stripe, purge view, then a shard of
//! locks, the waits (`lock.rs`), holders, list of views, shard of the active set.

/// What `active.rs` works with; `tests/active_set.rs` gives it loom's.
mod atomic {
    pub(super) use parking_lot::Mutex;
    pub(super) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
}

mod active;
mod attempt;
mod deadlock;
mod diff;
mod holders;
mod interval_tree;
mod lock;
mod lock_queue;
mod lock_range;
mod lock_rows;
mod lock_waits;
pub(crate) mod overflow;
pub(crate) mod purge;
mod purge_lag;
mod read;
mod read_view;
mod rollback;
pub mod row;
mod rows;
mod scan;
mod scan_batch;
mod scan_seen;
mod secondary;
mod system;
mod trx;
pub(crate) mod undo;
mod versions;
mod write;

pub use lock::LockMode;
pub use purge_lag::{LagLimits, PurgeState, PurgeWatch};
pub use rows::{Entry, Rows, Tables};
pub use scan::{Cursor, ScanOptions};
pub use system::TrxSystem;
pub use trx::{Isolation, RowChange, Savepoint, Trx, TrxOptions};
pub use write::MAX_ROW_BYTES;

#[cfg(test)]
mod lock_test;
#[cfg(test)]
mod tests;
