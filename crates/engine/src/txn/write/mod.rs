//! Changing rows: insert, update, delete.
//!
//! | file | concept |
//! |---|---|
//! | `insert.rs`, `update.rs`, `delete.rs` | the three operations |
//! | `insert_many.rs` | insertion of many rows at once |
//! | `version.rs` | a new version: its stored value and its undo record |
//! | `attempt.rs` | one attempt at a leaf, and why it must be repeated |
//! | `entry.rs`, `duplicates.rs`, `unique.rs` | secondary entries; the search for duplicates |
//! | `diff.rs` | the common parts of two versions of a row |
//!
//! Order within an operation
//! 1. Overflow pages of the new version, each group registered in undo or linked in the mini-transaction that allocates
//!    it.
//! 2. The clustered row and its undo record, in one mini-transaction: from here on the row is locked.
//! 3. Each secondary entry, in a mini-transaction of its own. Old entries are delete-marked, not removed: older
//!    snapshots find the row by them.
//!
//! Invariant: once the transaction that wrote a row's newest version has ended, the entries of the row that are not
//! delete-marked are exactly those of that version. Therefore rollback restores entries before it restores the row.

mod attempt;
mod delete;
mod duplicates;
mod entry;
mod insert;
mod insert_many;
mod unique;
mod update;
mod version;

pub(super) use attempt::{Attempt, Blocked, check_lockable, latch_undo, unblock, unblock_rollback};
pub(crate) use entry::StoredEntry;
pub(super) use entry::put_entry_value;
pub(crate) use insert_many::{NewRows, RowsOp};
pub(crate) use unique::Unique;
