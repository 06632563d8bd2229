//! Changing rows: the operations and what one attempt at a leaf needs.

pub(crate) mod attempt;
pub(crate) mod diff;
pub(crate) mod entry;
mod row;

pub use row::MAX_ROW_BYTES;
pub(crate) use row::{delete, insert, lock_absence, update};
