//! The layouts that rows of a table have.
//!
//! Rules
//! 1. Rows are written in the present layout. Those that were written before a change of the table's columns keep their
//!    layout until they are updated: then the whole row is written in the present one.
//! 2. A row's first byte selects its layout. An unknown number is damage: reading such a row for a user is an error;
//!    for an index entry, which cannot fail, its columns read as zero, empty or NULL.
//! 3. Each layout of a table can be resolved for its present columns: no type became narrower, no column lost its NULL,
//!    and a column that was added to rows has a default or may be NULL ([`check_resolvable`]).

use super::catalog_entry::TableEntry;
use super::changes::Changes;
use super::definition_record::{FIRST_LAYOUT, LayoutColumn};
use super::owned_row::Row;
use super::row::RowRef;
use super::row_layout::{RowLayout, present_columns};
use crate::error::Result;
use std::sync::Arc;

/// The layouts of a table's rows.
#[derive(Debug)]
pub struct RowLayouts {
    present: Arc<RowLayout>,
    /// By number, from [`FIRST_LAYOUT`].
    older: Vec<Arc<RowLayout>>,
    /// For rows with another number.
    unknown: Arc<RowLayout>,
}

impl RowLayouts {
    pub(crate) fn of_table(table: &TableEntry) -> RowLayouts {
        let resolved = |number: u8, kept: &[LayoutColumn]| {
            Arc::new(RowLayout::resolved(number, kept, &table.definition, &table.columns))
        };
        let older: Vec<_> =
            (FIRST_LAYOUT..=u8::MAX).zip(&table.older_layouts).map(|(number, kept)| resolved(number, kept)).collect();
        let present = resolved(table.record.layout, &present_columns(&table.definition, &table.columns));
        debug_assert_eq!(present.number, table.record.layout, "the layout of {}", table.definition.name);
        let layouts = RowLayouts { present, older, unknown: resolved(0, &[]) };
        layouts.check();
        layouts
    }

    /// Rule 1: each layout has its number, and all have the columns of the table.
    fn check(&self) {
        debug_assert_eq!(self.unknown.number, 0, "the layout of rows that have none");
        debug_assert_eq!(usize::from(self.present.number), 1 + self.older.len(), "the layouts before the present one");
        let is_numbered = |(number, layout): (u8, &Arc<RowLayout>)| layout.number == number;
        debug_assert!((FIRST_LAYOUT..=u8::MAX).zip(&self.older).all(is_numbered), "the layouts are not numbered");
        let all = self.older.iter().chain([&self.unknown]);
        let has_columns = |layout: &Arc<RowLayout>| layout.columns() == self.columns();
        debug_assert!(all.into_iter().all(has_columns), "a layout of other columns than the present one's");
    }

    /// The layout in which rows are written.
    #[inline]
    pub(crate) fn present(&self) -> &RowLayout {
        &self.present
    }

    /// Whether a row has the present layout.
    #[inline]
    pub(crate) fn is_present(&self, row: &[u8]) -> bool {
        row.first() == Some(&self.present.number)
    }

    /// Number of columns that the table has.
    pub(crate) fn columns(&self) -> usize {
        self.present.columns()
    }

    /// Makes `out` a row in the present layout, which may be one of another layout.
    ///
    /// # Errors
    /// `Corrupt` if the table has no such layout; `RowTooLarge` if the row is too large in the present one.
    pub(crate) fn fill_present(&self, row: &[u8], out: &mut Row) -> Result<()> {
        let layout = self.known(row)?;
        if Arc::ptr_eq(layout, &self.present) {
            out.fill(layout, row);
            return Ok(());
        }
        let mut converted = Vec::new();
        self.present.convert(RowRef::new(layout, row), &mut converted)?;
        out.fill(&self.present, &converted);
        Ok(())
    }

    /// An empty row of the present layout.
    pub(crate) fn empty_row(&self) -> Row {
        Row::new(&self.present)
    }

    #[inline]
    pub(crate) fn of(&self, row: &[u8]) -> &Arc<RowLayout> {
        if self.is_present(row) { &self.present } else { self.older_of(row) }
    }

    #[cold]
    fn older_of(&self, row: &[u8]) -> &Arc<RowLayout> {
        let at = row.first().and_then(|number| number.checked_sub(FIRST_LAYOUT));
        at.and_then(|at| self.older.get(usize::from(at))).unwrap_or(&self.unknown)
    }

    /// A row, read in place.
    #[inline]
    pub(crate) fn row<'a>(&'a self, bytes: &'a [u8]) -> RowRef<'a> {
        RowRef::new(self.of(bytes), bytes)
    }

    /// A row that a user reads, in place.
    ///
    /// # Errors
    /// `Corrupt` if the table has no such layout.
    #[inline]
    pub(crate) fn read<'a>(&'a self, bytes: &'a [u8]) -> Result<RowRef<'a>> {
        self.known(bytes).map(|layout| RowRef::new(layout, bytes))
    }

    /// A row that a user reads, copied.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    #[inline]
    pub(crate) fn to_row(&self, bytes: &[u8]) -> Result<Row> {
        self.known(bytes).map(|layout| RowRef::new(layout, bytes).to_row(layout))
    }

    /// As [`to_row`](Self::to_row), with these columns only, in this order.
    ///
    /// # Errors
    /// As [`read`](Self::read); `BadValue` for a column that there is not.
    pub(crate) fn to_row_of(&self, bytes: &[u8], columns: &[usize]) -> Result<Row> {
        let layout = self.known(bytes)?.projected(columns)?;
        Ok(RowRef::new(&layout, bytes).to_row(&layout))
    }

    /// The same rows with these columns only, in this order.
    ///
    /// # Errors
    /// `BadValue` for a column that there is not.
    pub(crate) fn projected(&self, columns: &[usize]) -> Result<Arc<RowLayouts>> {
        let older = self.older.iter().map(|layout| layout.projected(columns)).collect::<Result<_>>()?;
        let (present, unknown) = (self.present.projected(columns)?, self.unknown.projected(columns)?);
        let projected = RowLayouts { present, older, unknown };
        projected.check();
        Ok(Arc::new(projected))
    }

    /// Checks that these columns exist.
    ///
    /// # Errors
    /// `BadValue` for a column that does not exist.
    pub(crate) fn check_columns(&self, columns: &[usize]) -> Result<()> {
        match columns.iter().find(|column| **column >= self.present.columns()) {
            Some(&column) => Err(self.present.no_column(column)),
            None => Ok(()),
        }
    }

    #[inline]
    fn known(&self, row: &[u8]) -> Result<&Arc<RowLayout>> {
        let layout = self.of(row);
        if layout.number != 0 { Ok(layout) } else { Err(layout.unknown_number(row)) }
    }

    /// Replaces `out` with `old` changed by `changes`, in the present layout.
    ///
    /// # Errors
    /// `RowTooLarge`; `Corrupt` if `old` is no row of this table.
    #[inline]
    pub(crate) fn rebuild(&self, old: &[u8], changes: &Changes<'_>, out: &mut Vec<u8>) -> Result<()> {
        if old.first() == Some(&self.present.number) {
            return self.present.rebuild(old, changes, out);
        }
        self.rebuild_older(old, changes, out)
    }

    #[cold]
    fn rebuild_older(&self, old: &[u8], changes: &Changes<'_>, out: &mut Vec<u8>) -> Result<()> {
        let (row, mut converted) = (self.read(old)?, Vec::new());
        self.present.convert(row, &mut converted)?;
        debug_assert!(self.is_present(&converted), "a row is converted to a layout that is not the present one");
        self.present.rebuild(&converted, changes, out)
    }
}

#[cfg(test)]
#[path = "row_layouts_test.rs"]
mod tests;
