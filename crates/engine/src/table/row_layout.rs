//! Rows as bytes: where each column is, how a row is built and rebuilt.
//!
//! Layout: NULL bitmap (a bit for each nullable column, 1 = NULL) | fixed-size columns in declared order | ends of the
//! variable-length columns, u16 or u32 each, counted from the start of the variable part | the variable part.
//!
//! Rules
//! 1. The width of the ends follows from the table's definition alone: u16 iff the longest possible variable part is at
//!    most 65,535 bytes.
//! 2. A NULL column keeps zero bytes (fixed) or an empty range (variable), so that equal rows are equal bytes.
//! 3. Reading never panics and never goes beyond the bytes, whatever they are: what is missing reads as zero or empty.
//!    [`RowRef::verify`] tells whether bytes are a row.
//! 4. Integers are little-endian. `value_form.rs` defines how values are stored.

use super::changes::{Changes, Edit, NewValue};
use super::row::RowRef;
use super::schema::TableDefinition;
use super::types::Type;
use super::value::ValueRef;
use super::value_form::{Stored, fit, misfit};
use crate::error::{Error, Result};
use crate::txn::MAX_ROW_BYTES;
use std::sync::Arc;

pub(super) const NOT_NULLABLE: u16 = u16::MAX;

/// Where one column is.
#[derive(Clone, Copy, Debug)]
pub(super) struct ColumnSlot {
    pub(super) ty: Type,
    /// Number of its bit in the bitmap.
    pub(super) null_bit: u16,
    /// Length of a fixed-size column, 0 for a variable-length one.
    pub(super) fixed_bytes: u8,
    /// Offset of a fixed-size column, or number of the variable-length one.
    pub(super) place: u32,
}

/// Where the columns of a table's rows are, and what they are called.
#[derive(Debug)]
pub struct RowLayout {
    pub(super) names: Vec<String>,
    pub(super) slots: Vec<ColumnSlot>,
    /// Where the ends begin.
    pub(super) ends_at: usize,
    /// Bytes of one end, 2 or 4.
    pub(super) end_bytes: usize,
    /// Variable-length columns.
    pub(super) variable: usize,
    /// Where the variable part begins.
    pub(super) variable_at: usize,
}

impl RowLayout {
    /// The layout for a table.
    pub fn new(definition: &TableDefinition) -> RowLayout {
        let nullable = definition.columns.iter().filter(|c| c.nullable).count();
        let (mut bits, mut offset, mut variable, mut longest) = (0u16, nullable.div_ceil(8), 0u32, 0usize);
        let mut slots = Vec::with_capacity(definition.columns.len());
        for column in &definition.columns {
            let null_bit = if column.nullable { bits } else { NOT_NULLABLE };
            bits += u16::from(column.nullable);
            let (fixed_bytes, place) = match column.ty.fixed_bytes() {
                Some(bytes) => (bytes as u8, offset as u32),
                None => (0, variable),
            };
            slots.push(ColumnSlot { ty: column.ty, null_bit, fixed_bytes, place });
            offset += usize::from(fixed_bytes);
            variable += u32::from(fixed_bytes == 0);
            longest = longest.saturating_add(if fixed_bytes == 0 { column.ty.max_bytes() } else { 0 });
        }
        let names = definition.columns.iter().map(|c| c.name.clone()).collect();
        let end_bytes = if longest <= usize::from(u16::MAX) { 2 } else { 4 };
        let variable = variable as usize;
        RowLayout { names, slots, ends_at: offset, end_bytes, variable, variable_at: offset + variable * end_bytes }
    }

    /// The same rows with these columns only, in this order.
    ///
    /// # Errors
    /// `BadValue` for a column that there is not.
    pub(crate) fn projected(&self, columns: &[usize]) -> Result<Arc<RowLayout>> {
        let (mut names, mut slots) = (Vec::with_capacity(columns.len()), Vec::with_capacity(columns.len()));
        for &column in columns {
            let missing = || self.bad_value(column, "there is no such column");
            slots.push(*self.slots.get(column).ok_or_else(missing)?);
            names.push(self.names[column].clone());
        }
        Ok(Arc::new(RowLayout { names, slots, ..*self }))
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn bad_value(&self, column: usize, reason: impl Into<String>) -> Error {
        let column = self.names.get(column).cloned().unwrap_or_else(|| format!("number {column}"));
        Error::BadValue { column, reason: reason.into() }
    }

    /// Replaces `out` with the row made of `values`, one for each column; `generated` (column, number) stands in for a
    /// NULL there.
    ///
    /// # Errors
    /// `BadValue` names the column whose value does not fit; `RowTooLarge`.
    #[inline]
    pub(crate) fn encode(
        &self,
        values: &[ValueRef<'_>],
        generated: Option<(usize, ValueRef<'_>)>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        if values.len() != self.slots.len() {
            return Err(Error::BadValue {
                column: "(row)".to_string(),
                reason: format!("{} values given for {} columns", values.len(), self.slots.len()),
            });
        }
        out.clear();
        out.resize(self.variable_at, 0);
        for (i, (slot, &value)) in self.slots.iter().zip(values).enumerate() {
            let value = match generated {
                Some((column, number)) if column == i => number,
                _ => value,
            };
            match fit(slot.ty, value) {
                Some(Stored::Word(word)) => put_word(&mut out[slot.place as usize..], word, slot.fixed_bytes),
                Some(Stored::Wide(wide)) => out[slot.place as usize..][..16].copy_from_slice(&wide.to_le_bytes()),
                Some(Stored::Bytes(bytes)) => {
                    out.extend_from_slice(bytes);
                    self.set_end(slot.place as usize, out);
                }
                Some(Stored::Null) => {
                    self.set_null(slot, i, out)?;
                    if slot.fixed_bytes == 0 {
                        self.set_end(slot.place as usize, out);
                    }
                }
                None => return Err(self.bad_value(i, misfit(slot.ty, value))),
            }
        }
        check_row_bytes(out.len())
    }

    fn set_null(&self, slot: &ColumnSlot, column: usize, out: &mut [u8]) -> Result<()> {
        if slot.null_bit == NOT_NULLABLE {
            return Err(self.bad_value(column, "NULL in a column that is never NULL"));
        }
        out[usize::from(slot.null_bit / 8)] |= 1 << (slot.null_bit % 8);
        Ok(())
    }

    /// Makes the row's present end the end of variable-length column `number`.
    #[inline]
    pub(super) fn set_end(&self, number: usize, out: &mut [u8]) {
        let end = (out.len() - self.variable_at) as u32;
        let at = self.ends_at + number * self.end_bytes;
        out[at..at + self.end_bytes].copy_from_slice(&end.to_le_bytes()[..self.end_bytes]);
    }

    /// Replaces `out` with `old` changed by `changes`.
    ///
    /// # Errors
    /// `RowTooLarge`; `Corrupt` if `old` is no row of this table.
    pub(crate) fn rebuild(&self, old: &[u8], changes: &Changes<'_>, out: &mut Vec<u8>) -> Result<()> {
        let fixed_part = old.get(..self.variable_at).ok_or_else(|| self.not_a_row("it is too short"))?;
        let moves = changes.edits.iter().any(|edit| self.slots[edit.column].fixed_bytes == 0);
        out.clear();
        out.extend_from_slice(if moves { fixed_part } else { old });
        for edit in &changes.edits {
            let slot = &self.slots[edit.column];
            if slot.null_bit != NOT_NULLABLE {
                let (byte, bit) = (usize::from(slot.null_bit / 8), 1u8 << (slot.null_bit % 8));
                let null = matches!(edit.new, NewValue::Null);
                out[byte] = if null { out[byte] | bit } else { out[byte] & !bit };
            }
            let place = slot.place as usize;
            match edit.new {
                NewValue::Word(word) => put_word(&mut out[place..], word, slot.fixed_bytes),
                NewValue::Wide(wide) => out[place..][..16].copy_from_slice(&wide.to_le_bytes()),
                NewValue::Null if slot.fixed_bytes != 0 => out[place..][..usize::from(slot.fixed_bytes)].fill(0),
                // Variable-length: below.
                NewValue::Null | NewValue::Bytes { .. } => {}
            }
        }
        if moves {
            self.rebuild_variable(RowRef::new(self, old), changes, out);
        }
        check_row_bytes(out.len())
    }

    fn rebuild_variable(&self, old: RowRef<'_>, changes: &Changes<'_>, out: &mut Vec<u8>) {
        for (i, slot) in self.slots.iter().enumerate().filter(|(_, slot)| slot.fixed_bytes == 0) {
            // The last edit of a column counts.
            let bytes = match changes.edits.iter().rev().find(|edit| edit.column == i) {
                Some(Edit { new: NewValue::Bytes { start, end }, .. }) => &changes.bytes[*start..*end],
                Some(_) => &[],
                None => old.variable(slot.place as usize),
            };
            out.extend_from_slice(bytes);
            self.set_end(slot.place as usize, out);
        }
    }

    #[cold]
    pub(super) fn not_a_row(&self, reason: &str) -> Error {
        Error::Corrupt(format!("a row of {} columns does not decode: {reason}", self.slots.len()))
    }
}

/// Writes the low `len` bytes of a number, 1, 2, 4 or 8.
#[inline]
fn put_word(out: &mut [u8], word: u64, len: u8) {
    let bytes = word.to_le_bytes();
    match len {
        8 => out[..8].copy_from_slice(&bytes),
        4 => out[..4].copy_from_slice(&bytes[..4]),
        2 => out[..2].copy_from_slice(&bytes[..2]),
        _ => out[0] = bytes[0],
    }
}

fn check_row_bytes(bytes: usize) -> Result<()> {
    if bytes > MAX_ROW_BYTES {
        return Err(Error::RowTooLarge { bytes, limit_bytes: MAX_ROW_BYTES });
    }
    Ok(())
}
