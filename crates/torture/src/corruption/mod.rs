//! Damage of the files of a small database: every flipped byte, swapped pages, lost writes, older files.
//!
//! How a trial goes
//! 1. A small database is made whose contents are known, with every kind of page: rows with and without overflow pages,
//!    a unique and a non-unique index, deleted rows, undo. It is closed, or it stops without closing, so that the next
//!    opening recovers it ([`Small`]).
//! 2. Its files are damaged in one place ([`Damage`]). The files do not change: the damage is an overlay over them, and
//!    the engine's writes are an overlay over both.
//! 3. The database is opened without threads and checked, and all rows are read by every index, forward and backward
//!    ([`Verdict`]). Flips that do not hide each other are tried together ([`grouped`]).
//!
//! The loss with one damaged page, by its owner and type, is declared ([`DECLARED`]) and compared: at rest
//! ([`costs_what_is_declared`]) and under load ([`lives`]).
//!
//! Rules
//! 1. No damage may lead to a panic, a hang, or rows other than the right ones without an error.
//! 2. A flipped byte is reported with its page or file. If nothing depends on the byte ([`places::ByteRole`]), the
//!    check finds nothing and all rows are right.
//! 3. Redo that was synced last, and that nothing else shows to have been synced, cannot be distinguished from a torn
//!    write if it is damaged (`log/damage.rs` of the engine). There the rows may be those after an earlier commit, if
//!    that is not older than the log's last mark.

mod at_rest;
mod cases;
mod damage;
mod database;
mod declared;
mod groups;
mod judge;
mod places;
mod sweep;
mod under_load;
mod whole;

pub use at_rest::costs_what_is_declared;
pub use cases::{Case, Kind, cases};
pub use damage::{Damage, damaged};
pub use database::{File, Files, Left, STORES, Small, Store, options};
pub use declared::{DECLARED, Declared, Loss, PageKind, declared, kind_of, table};
pub use groups::grouped;
pub use judge::Verdict;
pub use places::ByteRole;
pub use sweep::{Failure, Tally, flips, run, run_groups};
pub use under_load::{Lives, lives};
pub use whole::Whole;
