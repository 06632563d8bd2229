//! Filters of a front end on entries, before their rows are looked up.
//!
//! Rule: a filter sees only columns of an entry's key. They are the same in every version of the row that has the
//! entry, so a rejected entry would also be rejected with its row.

use super::RawRow;
use super::entry::EntryColumns;
use crate::error::{Error, Result};
use crate::table::version::TableVersion;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The verdict of a filter ([`RawCursor::set_filter`](super::RawCursor::set_filter)) on an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawVerdict {
    /// Its row is delivered.
    Take,
    /// It is passed.
    Skip,
    /// It is after the end of the range: the move finds no row.
    End,
    /// The move is [`Error::Interrupted`].
    Interrupt,
}

/// A filter, and what it looks at.
pub(super) struct RawFilter {
    columns: Vec<usize>,
    judge: Box<dyn FnMut(&RawRow) -> RawVerdict + Send>,
    /// Of the index in use.
    entry_columns: Option<EntryColumns>,
    row: RawRow,
}

impl RawFilter {
    pub(super) fn new(columns: &[usize], judge: Box<dyn FnMut(&RawRow) -> RawVerdict + Send>) -> RawFilter {
        RawFilter { columns: columns.to_vec(), judge, entry_columns: None, row: RawRow::default() }
    }

    /// For the entries of an index.
    ///
    /// # Errors
    /// `Usage` if their keys lack one of the columns.
    pub(super) fn open(&mut self, version: &Arc<TableVersion>, index: Option<usize>) -> Result<()> {
        let found = index.and_then(|index| EntryColumns::new(version, index, &self.columns));
        self.entry_columns = found.filter(EntryColumns::are_in_keys);
        let reason = "the keys of the index have not all columns of the filter";
        self.entry_columns.as_ref().map(|_| ()).ok_or_else(|| Error::Usage(reason.to_string()))
    }

    pub(super) fn ask(&mut self, entry: &[u8]) -> Result<ControlFlow<(), bool>> {
        debug_assert!(self.entry_columns.is_some(), "a filter is asked before it knows its index");
        if let Some(columns) = &self.entry_columns {
            debug_assert!(columns.are_in_keys(), "rule: a filter sees covered columns, which change with the row");
            columns.read(entry, &[], &mut self.row)?;
        }
        match (self.judge)(&self.row) {
            RawVerdict::Take => Ok(ControlFlow::Continue(true)),
            RawVerdict::Skip => Ok(ControlFlow::Continue(false)),
            RawVerdict::End => Ok(ControlFlow::Break(())),
            RawVerdict::Interrupt => Err(Error::Interrupted),
        }
    }
}
