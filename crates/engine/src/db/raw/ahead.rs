//! Rows that a cursor has read ahead.
//!
//! Rules
//! 1. A cursor that reads some columns, upward and without locks, copies these columns of several rows of a leaf while
//!    it has the leaf latched once. A move to the next row then only reads memory. It delivers the same rows as without
//!    read-ahead, because a scan has one view.
//! 2. It begins after [`STEPS_BEFORE`] moves, with few rows, and copies more each time, so that a short scan copies few
//!    rows that are not read.
//! 3. A change by the cursor's own transaction, and a move downward, discard the remaining copies; the cursor continues
//!    from its present row.

use super::{RawColumn, RawRow};
use crate::db::cursor::Cursor;
use crate::db::write_txn::WriteTxn;
use crate::error::{Error, Result};
use crate::table::{Row, RowLayouts};
use crate::txn::RowInPlace;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// Moves to the next row after a seek, before rows are read ahead.
const STEPS_BEFORE: usize = 3;
/// Rows in the first read-ahead.
const FIRST_ROWS: usize = 8;
/// Bytes after which no row is added.
const MAX_BYTES: usize = 64 << 10;

/// The place of a row in the buffer.
#[derive(Debug)]
struct Place {
    key: Range<usize>,
    /// Its first column among all.
    first: usize,
}

/// A value that is NULL: outside of the buffer.
const NULL: Range<usize> = usize::MAX..usize::MAX;

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct ReadAheadRows {
    /// Positions of the columns that are copied.
    columns: Vec<usize>,
    bytes: Vec<u8>,
    values: Vec<Range<usize>>,
    rows: Vec<Place>,
    /// The current row is the previous one; 0: there is none.
    next: usize,
    steps: usize,
    limit: usize,
    /// Scratch.
    converted: Option<Row>,
}

impl ReadAheadRows {
    /// For rows of which these columns are requested.
    pub(super) fn new(columns: &[usize]) -> ReadAheadRows {
        ReadAheadRows { columns: columns.to_vec(), limit: FIRST_ROWS, ..ReadAheadRows::default() }
    }

    /// Begins again, with a seek.
    pub(super) fn restart(&mut self) {
        self.forget();
        (self.steps, self.limit) = (0, FIRST_ROWS);
    }

    /// Checks what is kept between two calls.
    fn check(&self) {
        let (rows, columns) = (self.rows.len(), self.columns.len());
        debug_assert!(self.next <= rows, "the row {} of {rows} is current", self.next);
        debug_assert_eq!(self.values.len(), rows * columns, "{rows} rows have not a value for each column");
        let is_in_place = |(n, row): (usize, &Place)| row.first == n * columns && row.key.end <= self.bytes.len();
        debug_assert!(self.rows.iter().enumerate().all(is_in_place), "rule 1: a row has the columns of another");
    }

    fn forget(&mut self) {
        self.bytes.clear();
        self.values.clear();
        self.rows.clear();
        self.next = 0;
    }

    /// Moves by one row, if it was read ahead.
    #[inline]
    pub(super) fn step(&mut self) -> bool {
        let is_there = self.next < self.rows.len();
        self.next += usize::from(is_there);
        is_there
    }

    /// Leaves the rows: moves `cursor` to the current position.
    pub(super) fn leave(&mut self, cursor: &mut Cursor) {
        self.check();
        if let Some(key) = self.key() {
            cursor.stand_at(key, self.next == self.rows.len());
        }
        self.forget();
    }

    /// Reads some rows ahead and moves to the first of them; false if it is too early, or there is no row.
    pub(super) fn read(&mut self, cursor: &mut Cursor, txn: &mut WriteTxn) -> Result<bool> {
        debug_assert!(self.rows.is_empty(), "rule 3: rows are read ahead behind {} others", self.rows.len());
        self.steps += 1;
        if self.steps <= STEPS_BEFORE || !cursor.may_look_ahead() {
            return Ok(false);
        }
        let version = Arc::clone(cursor.version_and_index().0);
        let mut failed = None;
        let read = loop {
            match cursor.look_ahead(txn, &mut |row| self.copy(&version.layouts, &row, &mut failed)) {
                Ok(true) if self.rows.is_empty() => {}
                read => break read,
            }
        };
        if let Some(error) = read.err().or(failed) {
            self.forget();
            return Err(error);
        }
        self.check();
        self.limit = self.limit.saturating_mul(4);
        Ok(self.step())
    }

    /// Adds a row; returns whether the buffer has space for another one.
    fn copy(&mut self, layouts: &RowLayouts, row: &RowInPlace<'_>, failed: &mut Option<Error>) -> ControlFlow<()> {
        match self.push(layouts, row) {
            Ok(()) if self.rows.len() < self.limit && self.bytes.len() < MAX_BYTES => return ControlFlow::Continue(()),
            Ok(()) => {}
            Err(error) => *failed = Some(error),
        }
        ControlFlow::Break(())
    }

    fn push(&mut self, layouts: &RowLayouts, row: &RowInPlace<'_>) -> Result<()> {
        let start = self.bytes.len();
        row.append_key(&mut self.bytes);
        let place = Place { key: start..self.bytes.len(), first: self.values.len() };
        let converted = match layouts.is_present(row.payload) {
            true => None,
            false => {
                let converted = self.converted.get_or_insert_with(|| layouts.empty_row());
                layouts.fill_present(row.payload, converted)?;
                Some(converted)
            }
        };
        let read = converted.map_or_else(|| layouts.row(row.payload), |row| row.as_ref());
        for column in &self.columns {
            let value = read.stored_bytes(*column).map_or(NULL, |value| append(&mut self.bytes, value));
            self.values.push(value);
        }
        self.rows.push(place);
        Ok(())
    }

    fn current(&self) -> Option<&Place> {
        self.rows.get(self.next.checked_sub(1)?)
    }

    /// Key of the current row, if it was read ahead.
    #[inline]
    pub(super) fn key(&self) -> Option<&[u8]> {
        self.current().map(|row| &self.bytes[row.key.clone()])
    }

    /// The columns of the current row, if it was read ahead.
    #[inline]
    pub(super) fn values(&self) -> Option<impl Iterator<Item = RawColumn<'_>>> {
        let first = self.current()?.first;
        let values = &self.values[first..first + self.columns.len()];
        Some(values.iter().map(|value| self.bytes.get(value.clone())))
    }

    /// Makes `row` the current row; false if that was not read ahead.
    pub(super) fn read_row(&self, layouts: &RowLayouts, row: &mut RawRow) -> bool {
        let Some(values) = self.values() else { return false };
        row.entry_row().set(layouts.columns(), self.columns.iter().copied().zip(values));
        true
    }
}

fn append(bytes: &mut Vec<u8>, value: &[u8]) -> Range<usize> {
    let start = bytes.len();
    bytes.extend_from_slice(value);
    start..bytes.len()
}
