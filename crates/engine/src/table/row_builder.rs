//! Builds rows of a layout: from values, from a row of another layout, from a row and changes of some columns.
//!
//! Rule: a row that was built passes [`RowRef::verify`] and reads back the same values, and equal rows are equal bytes
//! (rule 2 of `row_layout.rs`).

use super::changes::{Changes, Edit, NewValue};
use super::new_columns::NewColumns;
use super::row::RowRef;
use super::row_layout::{ColumnSlot, FIXED, NOT_NULLABLE, RowLayout, VARIABLE};
use super::value::ValueRef;
use super::value_form::{Stored, fit, misfit};
use crate::error::{Error, Result};
use crate::txn::MAX_ROW_BYTES;

impl RowLayout {
    /// Replaces `out` with the row of `values`, one for each column; `generated` (column, number) replaces a NULL
    /// there.
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
        self.encode_columns(values, generated, out)
    }

    /// As [`encode`](Self::encode), for what either API takes.
    #[inline]
    pub(crate) fn encode_columns<N: NewColumns + ?Sized>(
        &self,
        new: &N,
        generated: Option<(usize, ValueRef<'_>)>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        self.encode_of_any_length(new, generated, out)?;
        check_row_bytes(out.len())
    }

    /// As [`encode_columns`](Self::encode_columns), for a row that is not stored in a table.
    #[inline]
    pub(crate) fn encode_of_any_length<N: NewColumns + ?Sized>(
        &self,
        new: &N,
        generated: Option<(usize, ValueRef<'_>)>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        if new.count() != self.slots.len() {
            return Err(Error::BadValue {
                column: "(row)".to_string(),
                reason: format!("{} values given for {} columns", new.count(), self.slots.len()),
            });
        }
        self.begin_row(out);
        for (i, slot) in self.slots.iter().enumerate() {
            let stored = match generated {
                Some((column, number)) if column == i => fit(slot.ty, number).ok_or_else(|| misfit(slot.ty, number)),
                _ => new.stored(i, slot.ty),
            };
            match stored {
                Ok(stored) => self.put(i, slot, stored, out)?,
                Err(reason) => return Err(self.bad_value(i, reason)),
            }
        }
        debug_assert!(RowRef::new(self, out).verify().is_ok(), "a row is not read as it is written");
        Ok(())
    }

    /// Replaces `out` with a row of another layout, in this one.
    ///
    /// # Errors
    /// `RowTooLarge`; `BadValue` if the row is damaged.
    pub(super) fn convert(&self, row: RowRef<'_>, out: &mut Vec<u8>) -> Result<()> {
        self.begin_row(out);
        for (i, slot) in self.slots.iter().enumerate() {
            self.put(i, slot, row.load(i), out)?;
        }
        let reads = RowRef::new(self, out).verify_part().is_ok();
        debug_assert!(reads || row.verify_part().is_err(), "a row is not read in the layout that it is converted to");
        check_row_bytes(out.len())
    }

    #[inline]
    fn begin_row(&self, out: &mut Vec<u8>) {
        out.clear();
        out.resize(self.variable_at, 0);
        out[0] = self.number;
    }

    /// Puts a column's value into the row, which has the values of all columns before it.
    #[inline]
    fn put(&self, column: usize, slot: &ColumnSlot, stored: Stored<'_>, out: &mut Vec<u8>) -> Result<()> {
        match stored {
            Stored::Word(word) => put_word(&mut out[slot.place as usize..], word, slot.form),
            Stored::Wide(wide) => out[slot.place as usize..][..16].copy_from_slice(&wide.to_le_bytes()),
            Stored::Bytes(bytes) if slot.form == FIXED => {
                out[slot.place as usize..][..bytes.len()].copy_from_slice(bytes)
            }
            Stored::Bytes(bytes) => {
                out.extend_from_slice(bytes);
                self.set_end(slot.place as usize, out);
            }
            Stored::Null => {
                self.set_null(slot, column, out)?;
                if slot.form == VARIABLE {
                    self.set_end(slot.place as usize, out);
                }
            }
        }
        Ok(())
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
        debug_assert!(number < self.variable, "a column of {} has the number {number}", self.variable);
        debug_assert!(self.end_bytes == 4 || end <= u32::from(u16::MAX), "a row of {end} bytes with short ends");
        out[at..at + self.end_bytes].copy_from_slice(&end.to_le_bytes()[..self.end_bytes]);
    }

    /// Replaces `out` with `old`, a row of this layout, changed by `changes`.
    ///
    /// # Errors
    /// `RowTooLarge`; `Corrupt` if `old` is not a row of this table.
    pub(crate) fn rebuild(&self, old: &[u8], changes: &Changes<'_>, out: &mut Vec<u8>) -> Result<()> {
        let fixed_part = old.get(..self.variable_at).ok_or_else(|| self.not_a_row("it is too short"))?;
        let moves = changes.edits.iter().any(|edit| self.slots[edit.column].form == VARIABLE);
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
                NewValue::Word(word) => put_word(&mut out[place..], word, slot.form),
                NewValue::Wide(wide) => out[place..][..16].copy_from_slice(&wide.to_le_bytes()),
                NewValue::Bytes { start, end } if slot.form == FIXED => {
                    out[place..][..end - start].copy_from_slice(&changes.bytes[start..end]);
                }
                NewValue::Null if slot.form != VARIABLE => {
                    out[place..][..slot.ty.fixed_bytes().unwrap_or(0)].fill(0);
                }
                // Variable-length: below.
                NewValue::Null | NewValue::Bytes { .. } => {}
            }
        }
        if moves {
            self.rebuild_variable(RowRef::new(self, old), changes, out);
        }
        let reads = |row: &[u8]| RowRef::new(self, row).verify_part().is_ok();
        debug_assert!(!reads(old) || reads(out), "a changed row is not read as it is written");
        check_row_bytes(out.len())
    }

    fn rebuild_variable(&self, old: RowRef<'_>, changes: &Changes<'_>, out: &mut Vec<u8>) {
        for (i, slot) in self.slots.iter().enumerate().filter(|(_, slot)| slot.form == VARIABLE) {
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
}

/// Writes the low `len` bytes of a number, 1, 2, 3, 4 or 8.
#[inline]
fn put_word(out: &mut [u8], word: u64, len: u8) {
    let bytes = word.to_le_bytes();
    match len {
        8 => out[..8].copy_from_slice(&bytes),
        4 => out[..4].copy_from_slice(&bytes[..4]),
        3 => out[..3].copy_from_slice(&bytes[..3]),
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
