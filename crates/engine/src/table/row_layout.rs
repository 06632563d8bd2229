//! Rows as bytes: the place of each column. `row_builder.rs` builds and rebuilds rows.
//!
//! Layout: layout number u8 | NULL bitmap (a bit for each nullable column, 1 = NULL) | fixed-size columns in the
//! layout's order | ends of the variable-length columns, u16 or u32 each, counted from the start of the variable part |
//! the variable part.
//!
//! Rules
//! 1. The width of the ends follows from the layout's columns alone: u16 iff the longest possible variable part is at
//!    most 65,535 bytes.
//! 2. A NULL column keeps zero bytes (fixed) or an empty range (variable), so that equal rows of one layout are equal
//!    bytes.
//! 3. Reading never panics on any bytes and never goes beyond them: missing parts read as zero or empty.
//!    [`RowRef::verify`](super::row::RowRef::verify) shows whether bytes are a valid row.
//! 4. Integers are little-endian. `value_form.rs` defines how values are stored.
//! 5. A layout is resolved for the table's present columns. A column that rows of the layout lack reads as its default;
//!    a narrower type as the same value of the wider one; a dropped column is skipped. Rows are built only in the
//!    table's present layout (`row_layouts.rs`), which has each column in its own type.

use super::column_index::{ColumnIndex, sealed::Sealed};
use super::definition::{Column, MAX_COLUMNS, TableDefinition};
use super::definition_record::{ColumnIds, FIRST_LAYOUT, LayoutColumn};
use super::types::Type;
use super::value_form::stored_bytes;
use crate::error::{Error, Result};
use std::collections::HashMap;
use std::sync::Arc;

/// In the place of a bit's number: the column is never NULL.
pub(super) const NOT_NULLABLE: u16 = u16::MAX;
/// In the place of a bit's number: the column is NULL in each row of the layout.
pub(super) const ALWAYS_NULL: u16 = u16::MAX - 1;

/// Forms other than 1, 2, 3, 4, 8 and 16, which are the bytes of a fixed-size column.
pub(super) const VARIABLE: u8 = 0;
/// A column of a `Fixed` type.
pub(super) const FIXED: u8 = u8::MAX - 2;
/// A fixed-size column that rows of the layout keep in another type.
pub(super) const NARROWER: u8 = u8::MAX - 1;
/// Rows of the layout do not have the column.
pub(super) const ABSENT: u8 = u8::MAX;

/// The place of one column.
#[derive(Clone, Copy, Debug)]
pub(super) struct ColumnSlot {
    pub(super) ty: Type,
    /// The type that the bytes have.
    pub(super) kept: Type,
    /// Number of its bit after the row's first bit.
    pub(super) null_bit: u16,
    pub(super) form: u8,
    /// Offset of a fixed-size column, number of the variable-length one, or of the default.
    pub(super) place: u32,
}

/// The places and names of a table's columns in rows of one layout.
#[derive(Debug)]
pub(crate) struct RowLayout {
    /// The first byte of each row; 0 for a layout that is not known.
    pub(super) number: u8,
    pub(super) names: Vec<String>,
    pub(super) slots: Vec<ColumnSlot>,
    /// The values of columns that a row does not have.
    pub(super) defaults: Vec<Vec<u8>>,
    pub(super) null_bits: usize,
    /// Offset of the ends.
    pub(super) ends_at: usize,
    /// Bytes of one end, 2 or 4.
    pub(super) end_bytes: usize,
    /// Variable-length columns.
    pub(super) variable: usize,
    /// Offset of the variable part.
    pub(super) variable_at: usize,
}

/// The columns of a table as rows have them that are written now.
pub(crate) fn present_columns(definition: &TableDefinition, columns: &ColumnIds) -> Vec<LayoutColumn> {
    let column = |(column, id): (&Column, &u16)| LayoutColumn { id: *id, ty: column.ty, nullable: column.nullable };
    definition.columns.iter().zip(&columns.ids).map(column).collect()
}

impl RowLayout {
    pub(crate) fn new(definition: &TableDefinition) -> RowLayout {
        let columns = ColumnIds::first(definition.columns.len());
        RowLayout::resolved(FIRST_LAYOUT, &present_columns(definition, &columns), definition, &columns)
    }

    /// The layout with this number, whose rows have these columns (rule 5).
    pub(crate) fn resolved(
        number: u8,
        kept: &[LayoutColumn],
        definition: &TableDefinition,
        columns: &ColumnIds,
    ) -> RowLayout {
        let null_bits = kept.iter().filter(|column| column.nullable).count();
        // The first byte is the number.
        let (mut bit, mut offset, mut variable, mut longest) = (8u16, 1 + null_bits.div_ceil(8), 0u32, 0usize);
        let mut places = HashMap::with_capacity(kept.len());
        for column in kept {
            let null_bit = if column.nullable { bit } else { NOT_NULLABLE };
            bit += u16::from(column.nullable);
            let bytes = column.ty.fixed_bytes();
            let place = if bytes.is_some() { offset as u32 } else { variable };
            places.insert(column.id, (column.ty, null_bit, place));
            offset += bytes.unwrap_or(0);
            variable += u32::from(bytes.is_none());
            longest = longest.saturating_add(if bytes.is_none() { column.ty.max_bytes() } else { 0 });
        }
        let end_bytes = if longest <= usize::from(u16::MAX) { 2 } else { 4 };
        let (variable, mut defaults) = (variable as usize, Vec::new());
        let slot = |(column, id): (&Column, &u16)| match places.get(id) {
            Some((kept, null_bit, place)) => {
                let form = match column.ty.fixed_bytes() {
                    None => VARIABLE,
                    Some(_) if matches!(column.ty, Type::Fixed(_)) => FIXED,
                    Some(bytes) if kept.keeps_bytes_of(column.ty) => bytes as u8,
                    Some(_) => NARROWER,
                };
                ColumnSlot { ty: column.ty, kept: *kept, null_bit: *null_bit, form, place: *place }
            }
            None => absent_slot(column, &mut defaults),
        };
        let slots = definition.columns.iter().zip(&columns.ids).map(slot).collect();
        let names = definition.columns.iter().map(|c| c.name.clone()).collect();
        let variable_at = offset + variable * end_bytes;
        let layout =
            RowLayout { number, names, slots, defaults, null_bits, ends_at: offset, end_bytes, variable, variable_at };
        layout.check();
        layout
    }

    /// The parts of a row are in their order, and each column is in one of them.
    fn check(&self) {
        let RowLayout { ends_at, end_bytes, variable, variable_at, .. } = *self;
        debug_assert_eq!(self.names.len(), self.slots.len(), "the columns of a layout");
        debug_assert_eq!(variable_at, ends_at + variable * end_bytes, "where the variable columns begin");
        debug_assert!(ends_at > self.null_bits.div_ceil(8), "the NULL bitmap of {} columns", self.null_bits);
        let is_inside = |slot: &ColumnSlot| match slot.form {
            VARIABLE => (slot.place as usize) < variable,
            ABSENT => (slot.place as usize) < self.defaults.len(),
            _ => slot.place as usize + slot.kept.fixed_bytes().unwrap_or(0) <= ends_at,
        };
        debug_assert!(self.slots.iter().all(is_inside), "a column of {:?} is outside of its part", self.names);
        debug_assert!(matches!(end_bytes, 2 | 4), "rule 1: ends of {end_bytes} bytes");
        let bits = 8..8 + self.null_bits;
        let is_bit = |slot: &ColumnSlot| match slot.null_bit {
            NOT_NULLABLE | ALWAYS_NULL => true,
            bit => bits.contains(&usize::from(bit)),
        };
        debug_assert!(self.slots.iter().all(is_bit), "a column of {:?} has a bit outside of the bitmap", self.names);
    }

    /// The same rows with these columns only, in this order.
    ///
    /// # Errors
    /// `BadValue` for a column that there is not.
    pub(crate) fn projected(&self, columns: &[usize]) -> Result<Arc<RowLayout>> {
        let (mut names, mut slots) = (Vec::with_capacity(columns.len()), Vec::with_capacity(columns.len()));
        for &column in columns {
            slots.push(*self.slots.get(column).ok_or_else(|| self.no_column(column))?);
            names.push(self.names[column].clone());
        }
        Ok(Arc::new(RowLayout { names, slots, defaults: self.defaults.clone(), ..*self }))
    }

    /// The layout of rows of their own that have these columns of a table and no others, in this order.
    ///
    /// # Errors
    /// `BadValue` for a column that there is not.
    pub(crate) fn of_columns(table: &TableDefinition, columns: &[usize]) -> Result<RowLayout> {
        let missing = |column: usize| Error::BadValue {
            column: column.show(),
            reason: format!("table {} has {} columns", table.name, table.columns.len()),
        };
        let column = |&column: &usize| table.columns.get(column).cloned().ok_or_else(|| missing(column));
        Ok(RowLayout::of_own_columns(columns.iter().map(column).collect::<Result<_>>()?))
    }

    fn of_own_columns(columns: Vec<Column>) -> RowLayout {
        RowLayout::new(&TableDefinition {
            name: String::new(),
            columns,
            primary_key: Vec::new(),
            auto_increment: None,
            expires: None,
            long_keys: false,
            log_changes: false,
            indexes: Vec::new(),
            attachment: Vec::new(),
        })
    }

    /// The layout of rows of their own that have these columns, each of which may be NULL. An error as text.
    pub(crate) fn of_named_types(columns: Vec<(String, Type)>) -> std::result::Result<RowLayout, String> {
        if columns.len() > MAX_COLUMNS {
            return Err(format!("a row of {} columns", columns.len()));
        }
        let column = |(name, ty)| Column { name, ty, nullable: true, default: None, collation: None };
        Ok(RowLayout::of_own_columns(columns.into_iter().map(column).collect()))
    }

    /// Name and type of each column.
    pub(crate) fn named_types(&self) -> impl Iterator<Item = (&str, Type)> {
        self.names.iter().map(String::as_str).zip(self.slots.iter().map(|slot| slot.ty))
    }

    /// Number of columns.
    pub(crate) fn columns(&self) -> usize {
        self.slots.len()
    }

    #[cold]
    pub(super) fn no_column(&self, column: impl ColumnIndex) -> Error {
        Error::BadValue { column: column.show(), reason: "there is no such column".to_string() }
    }

    pub(super) fn bad_value(&self, column: usize, reason: impl Into<String>) -> Error {
        let column = self.names.get(column).cloned().unwrap_or_else(|| format!("number {column}"));
        Error::BadValue { column, reason: reason.into() }
    }

    #[cold]
    pub(super) fn unknown_number(&self, row: &[u8]) -> Error {
        let number = row.first().map_or("no".to_string(), |number| format!("the unknown {number}"));
        self.not_a_row(&format!("it has {number} for the number of its layout"))
    }

    #[cold]
    pub(super) fn not_a_row(&self, reason: &str) -> Error {
        Error::Corrupt(format!("a row of {} columns does not decode: {reason}", self.slots.len()))
    }
}

/// A column that rows of a layout lack.
fn absent_slot(column: &Column, defaults: &mut Vec<Vec<u8>>) -> ColumnSlot {
    let default = column.default.as_ref().and_then(|value| stored_bytes(column.ty, value));
    let null_bit = if default.is_none() && column.nullable { ALWAYS_NULL } else { NOT_NULLABLE };
    defaults.push(default.unwrap_or_default());
    let place = (defaults.len() - 1) as u32;
    ColumnSlot { ty: column.ty, kept: column.ty, null_bit, form: ABSENT, place }
}
