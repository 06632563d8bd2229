//! Mini-transactions: latches held and redo collected, until one atomic commit.
//!
//! Rules
//! 1. Latch phase first: fix all pages, then change. Calls that may do I/O (`fix_x`, `Context::mtr`) are made while no
//!    latch is held; with latches held use `try_fix_x`, and on `None` drop the mtr (nothing is changed yet), load the
//!    page, start again.
//! 2. A changed mtr is committed. Dropping it unfinished (a panic, a bug) poisons the database: memory no longer
//!    matches any log.
//! 3. Latch order: tree pages top-down and left to right, then undo pages, then, at commit and by page number, the
//!    pages of deferred changes (file header, extent maps). Extent maps are pinned in the latch phase, so that the
//!    commit finds them; the file header is always resident.
//! 4. Redo space is reserved before the first latch, so a commit never waits for a checkpoint. It is released while a
//!    page is loaded ([`Mtr::load`]): otherwise threads that hold redo space and wait for a merge, which also needs
//!    some, could keep the log full for ever.
//! 5. `commit` appends the redo, stamps page LSNs, marks pages dirty in log order, then releases every latch.
//!
//! Differs from InnoDB: no savepoints inside an mtr, no latch types but exclusive; allocation changes are applied last.

mod buffers;
mod commit;
mod mini_transaction;

pub(crate) use mini_transaction::{END_REDO_BYTES, MTR_REDO_BYTES, Mtr, PageHandle};
