//! Rows of the raw API.

use crate::error::Result;
use crate::table::{Row, RowLayouts, RowRef};
use std::ops::Range;

/// A column of a row or a key: the bytes that it keeps, `None` for NULL. The [module](super) says which bytes.
pub type RawColumn<'c> = Option<&'c [u8]>;

/// A row that was read; reused for the next one, it needs no new memory.
#[derive(Clone, Debug, Default)]
pub struct RawRow {
    /// In the present layout of its table.
    row: Option<Row>,
    /// The columns of the row in an entry.
    entry: EntryRow,
    is_of_entry: bool,
}

impl RawRow {
    /// The bytes that a column keeps: of a fixed-size type exactly its length. `None`: it is NULL, or there is no such
    /// column. A long column that was not requested ([`RawRead::columns`](super::RawRead::columns)) may be empty, and
    /// in a row that was read from an entry ([`RawRead::covering`](super::RawRead::covering)) only requested columns
    /// have bytes.
    #[inline]
    pub fn column(&self, column: usize) -> RawColumn<'_> {
        if self.is_of_entry {
            return self.entry.column(column);
        }
        self.row.as_ref().and_then(|row| row.as_ref().stored_bytes(column))
    }

    /// Number of columns; 0 before a row was read.
    pub fn columns(&self) -> usize {
        if self.is_of_entry { self.entry.columns() } else { self.row.as_ref().map_or(0, Row::columns) }
    }

    /// The same row, as the typed API shows it; `None` before a row was read, and of one that was read from an entry.
    pub fn typed(&self) -> Option<RowRef<'_>> {
        self.row.as_ref().filter(|_| !self.is_of_entry).map(Row::as_ref)
    }

    /// Becomes a row of a table.
    ///
    /// # Errors
    /// `Corrupt` if the table has no such layout.
    pub(super) fn fill(&mut self, layouts: &RowLayouts, bytes: &[u8]) -> Result<()> {
        self.is_of_entry = false;
        layouts.fill_present(bytes, self.row.get_or_insert_with(|| layouts.empty_row()))
    }

    /// Becomes this row.
    pub(super) fn set(&mut self, row: Row) {
        (self.row, self.is_of_entry) = (Some(row), false);
    }

    /// Becomes what an entry has of a row.
    pub(super) fn entry_row(&mut self) -> &mut EntryRow {
        self.is_of_entry = true;
        &mut self.entry
    }
}

/// Bytes of columns that were read from an entry.
#[derive(Clone, Debug, Default)]
pub(super) struct EntryRow {
    pub(super) bytes: Vec<u8>,
    /// By position in the table; `None`: NULL, or not in the entry.
    pub(super) columns: Vec<Option<Range<usize>>>,
}

impl EntryRow {
    #[inline]
    pub(super) fn column(&self, column: usize) -> RawColumn<'_> {
        self.columns.get(column)?.clone().map(|range| &self.bytes[range])
    }

    /// Number of columns of the table.
    pub(super) fn columns(&self) -> usize {
        self.columns.len()
    }

    /// Replaces the row by one of `columns` columns with these values, by position; the others are NULL.
    pub(super) fn set<'c>(&mut self, columns: usize, values: impl Iterator<Item = (usize, RawColumn<'c>)>) {
        self.bytes.clear();
        self.columns.clear();
        self.columns.resize(columns, None);
        for (column, value) in values {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(value.unwrap_or_default());
            self.columns[column] = value.map(|_| start..self.bytes.len());
        }
    }
}
