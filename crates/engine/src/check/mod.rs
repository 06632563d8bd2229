//! Checking a whole database: every page, tree, list and cross-reference.
//!
//! Terms
//! - *claim*: a structure (tree, undo stream, overflow chain, extent map) leads to a page. Every used page is claimed
//!   once.
//! - *digest*: the sum of the hashes of an index's live entries, in buckets. Rows and index give the same one iff the
//!   entries are those of the rows.
//!
//! Steps: pages in file order (`pages`); the change buffer's tree (`waiting`); trees with their rows and entries
//! (`tables`), and, where the digests of rows and entries differ, which ones (`compare`); undo streams (`undo`); claims
//! against the extent maps (`pages`).
//!
//! Rules
//! 1. A check runs on a quiet database: the caller excludes writers, schema changes and purge. So the newest version of
//!    every row is committed, and the data file equals memory after a flush.
//! 2. Damage is a finding, and the check continues with the rest. An error means that it cannot continue.
//! 3. Memory is bounded: two bits per page, the digests of one table, one row.
//! 4. No latch is held during another read.
//! 5. What cannot be reached because of a damaged page (pages below it, its rows) is reported once, not row by row.
//! 6. The database must be open during the whole check. A concurrent close ends it with
//!    [`Error::Closed`](crate::Error::Closed): transactions that end meanwhile are not rolled back, which would look
//!    like damage. The check tests this before each page, because a close waits for purge, and purge for the check; and
//!    at the end.

mod bitmap;
mod checker;
mod compare;
mod digest;
mod entries;
mod pages;
pub(crate) mod report;
mod rows;
mod tables;
mod undo;
mod waiting;
mod walk;

pub(crate) use checker::{Subject, run};
pub use report::{CheckCounts, CheckReport, Finding, NotCompared, OnProgress};
pub(crate) use walk::show_key;

#[cfg(test)]
pub(crate) mod check_test;
