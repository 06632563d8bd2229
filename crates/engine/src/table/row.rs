//! Reading rows in place; `owned_row.rs` has rows that own their bytes.
//!
//! Rule: reading never panics on any bytes and never goes beyond them: missing parts read as zero or empty.
//! [`RowRef::verify`] shows whether bytes are a valid row.

use super::column_index::ColumnIndex;
use super::date::{Date, Time};
use super::datetime::DateTime;
use super::decimal::Decimal;
use super::row_layout::{ABSENT, ALWAYS_NULL, ColumnSlot, FIXED, NARROWER, NOT_NULLABLE, RowLayout, VARIABLE};
use super::types::Type;
use super::unread::UnreadColumns;
use super::uuid::Uuid;
use super::value::ValueRef;
use super::value_form::{Stored, array, exactly, fit, is_in_range, unfit, unfit_decimal, word24};
use crate::error::Result;
use std::fmt;

/// A row read in place.
#[derive(Clone, Copy)]
pub struct RowRef<'a> {
    pub(super) layout: &'a RowLayout,
    bytes: &'a [u8],
    /// Columns that `bytes` does not have.
    unread: Option<&'a UnreadColumns<'a>>,
}

impl<'a> RowRef<'a> {
    pub(crate) fn new(layout: &'a RowLayout, bytes: &'a [u8]) -> RowRef<'a> {
        RowRef { layout, bytes, unread: None }
    }

    /// The row whose columns in `unread` are not in its bytes.
    pub(crate) fn with_unread(self, unread: &'a UnreadColumns<'a>) -> RowRef<'a> {
        RowRef { unread: Some(unread), ..self }
    }

    /// Number of columns.
    pub fn columns(self) -> usize {
        self.layout.columns()
    }

    /// The encoded row.
    pub fn as_bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// The column as the table's present layout keeps it; what is missing is zero or empty.
    #[inline]
    pub(crate) fn load(self, column: usize) -> Stored<'a> {
        let slot = &self.layout.slots[column];
        if self.null(slot) {
            return Stored::Null;
        }
        let raw = self.raw(slot);
        match slot.form {
            VARIABLE => Stored::Bytes(raw),
            1 => Stored::Word(u8::from_le_bytes(array(raw)).into()),
            2 => Stored::Word(u16::from_le_bytes(array(raw)).into()),
            3 => Stored::Word(word24(raw).into()),
            4 => Stored::Word(u32::from_le_bytes(array(raw)).into()),
            8 => Stored::Word(u64::from_le_bytes(array(raw))),
            FIXED => Stored::Bytes(raw),
            NARROWER | ABSENT => self.load_of_older(slot),
            _ => Stored::Wide(u128::from_le_bytes(array(raw))),
        }
    }

    /// As [`load`](Self::load), of a column that this layout does not have, or has in another type.
    #[cold]
    fn load_of_older(self, slot: &ColumnSlot) -> Stored<'a> {
        if let Type::Fixed(len) = slot.ty {
            return Stored::Bytes(exactly(len, self.raw(slot)));
        }
        match (fit(slot.ty, self.value_of_older(slot)), slot.ty.fixed_bytes()) {
            (Some(Stored::Word(word)), Some(bytes)) => Stored::Word(word & (u64::MAX >> (64 - 8 * bytes))),
            (Some(stored), _) => stored,
            (None, None) => Stored::Bytes(&[]),
            (None, Some(bytes)) if bytes > 8 => Stored::Wide(0),
            (None, Some(_)) => Stored::Word(0),
        }
    }

    /// The value of a column that this layout does not have, or has in another type; NULL is zero or empty.
    #[cold]
    fn value_of_older(self, slot: &ColumnSlot) -> ValueRef<'a> {
        match (unfit(slot.kept, self.raw(slot)), slot.ty) {
            (ValueRef::Decimal(d), Type::Decimal(_, scale)) => ValueRef::Decimal(d.rescale(scale).unwrap_or(d)),
            (value, _) => value,
        }
    }

    /// The column's value; NULL is zero or empty.
    #[inline]
    fn value(self, slot: &ColumnSlot) -> ValueRef<'a> {
        if slot.form >= NARROWER { self.value_of_older(slot) } else { unfit(slot.ty, self.raw(slot)) }
    }

    #[inline]
    fn null(self, slot: &ColumnSlot) -> bool {
        match slot.null_bit {
            NOT_NULLABLE => false,
            ALWAYS_NULL => true,
            bit => self.bytes.get(usize::from(bit / 8)).is_some_and(|byte| byte >> (bit % 8) & 1 == 1),
        }
    }

    #[inline]
    fn raw(self, slot: &ColumnSlot) -> &'a [u8] {
        match slot.form {
            VARIABLE => self.variable(slot.place as usize),
            NARROWER | ABSENT => self.raw_of_older(slot),
            FIXED => self.raw_fixed(slot),
            bytes => self.fixed(slot.place as usize, usize::from(bytes)),
        }
    }

    #[inline]
    fn fixed(self, at: usize, bytes: usize) -> &'a [u8] {
        self.bytes.get(at..at + bytes).unwrap_or(&[])
    }

    fn raw_fixed(self, slot: &ColumnSlot) -> &'a [u8] {
        let Type::Fixed(len) = slot.ty else { return &[] };
        exactly(len, self.fixed(slot.place as usize, usize::from(len)))
    }

    #[cold]
    fn raw_of_older(self, slot: &ColumnSlot) -> &'a [u8] {
        match slot.form {
            ABSENT => &self.layout.defaults[slot.place as usize],
            _ => self.fixed(slot.place as usize, slot.kept.fixed_bytes().unwrap_or(0)),
        }
    }

    #[inline]
    pub(super) fn variable(self, number: usize) -> &'a [u8] {
        let base = self.layout.variable_at;
        let start = if number == 0 { 0 } else { self.end(number - 1) };
        let bytes = self.bytes.get(base.saturating_add(start)..base.saturating_add(self.end(number))).unwrap_or(&[]);
        match self.unread {
            None => bytes,
            Some(unread) => unread.column(number, bytes),
        }
    }

    #[inline]
    fn end(self, number: usize) -> usize {
        let (at, narrow) = (self.layout.ends_at + number * self.layout.end_bytes, self.layout.end_bytes == 2);
        let tail = self.bytes.get(at..).unwrap_or(&[]);
        if narrow {
            tail.first_chunk().map_or(0, |end| usize::from(u16::from_le_bytes(*end)))
        } else {
            tail.first_chunk().map_or(0, |end| u32::from_le_bytes(*end) as usize)
        }
    }

    /// Whether the bytes are a row of this table: a layout that the table has, right length, no bits of the NULL bitmap
    /// without a column, ends in order, text that is UTF-8, JSON that is JSON, NULLs without bytes.
    ///
    /// # Errors
    /// `Corrupt` says what is wrong.
    pub fn verify(self) -> Result<()> {
        self.verify_shape()?;
        self.layout.slots.iter().enumerate().try_for_each(|(i, slot)| self.verify_column(i, slot, true))
    }

    /// As [`verify`](Self::verify), for the leaf's part of a row with columns on overflow pages: texts may be cut
    /// anywhere.
    pub(crate) fn verify_part(self) -> Result<()> {
        self.verify_shape()?;
        self.layout.slots.iter().enumerate().try_for_each(|(i, slot)| self.verify_column(i, slot, false))
    }

    fn verify_shape(self) -> Result<()> {
        let base = self.layout.variable_at;
        if self.layout.number == 0 || self.bytes.first() != Some(&self.layout.number) {
            return Err(self.layout.unknown_number(self.bytes));
        }
        if self.bytes.len() < base {
            return Err(self.layout.not_a_row("it is too short"));
        }
        if !self.unused_bits_are_zero() {
            return Err(self.layout.not_a_row("its NULL bitmap has bits of no column"));
        }
        let mut previous = 0;
        for number in 0..self.layout.variable {
            let end = self.end(number);
            if end < previous {
                return Err(self.layout.not_a_row("the ends of its columns are out of order"));
            }
            previous = end;
        }
        match base + previous == self.bytes.len() {
            true => Ok(()),
            false => Err(self.layout.not_a_row("its columns do not add up to its length")),
        }
    }

    /// Bits of the bitmap after those of the nullable columns: equal rows are equal bytes.
    fn unused_bits_are_zero(self) -> bool {
        let bits = self.layout.null_bits;
        bits.is_multiple_of(8) || self.bytes[1 + bits / 8] >> (bits % 8) == 0
    }

    fn verify_column(self, i: usize, slot: &ColumnSlot, is_whole: bool) -> Result<()> {
        let raw = self.raw(slot);
        let wrong = |reason: &str| Err(self.layout.not_a_row(&format!("column {}: {reason}", self.layout.names[i])));
        let has_value = match slot.ty {
            Type::Text(_) | Type::Binary(_) | Type::Json(_) => !raw.is_empty(),
            _ => raw.iter().any(|&b| b != 0),
        };
        if self.null(slot) && has_value && slot.form != ABSENT {
            return wrong("NULL with a value");
        }
        match slot.ty {
            _ if slot.form == ABSENT => Ok(()),
            Type::Text(_) | Type::Json(_) if is_whole && simdutf8::basic::from_utf8(raw).is_err() => {
                wrong("text that is not UTF-8")
            }
            Type::Text(max) | Type::Binary(max) | Type::Json(max) if raw.len() > max as usize => {
                wrong("longer than its type allows")
            }
            Type::Json(_) if is_whole && !self.null(slot) && fit(slot.ty, ValueRef::Bytes(raw)).is_none() => {
                wrong("no JSON")
            }
            Type::Bool | Type::Time if slot.form < NARROWER && !is_in_range(slot.ty, raw) => {
                wrong("no value of its type")
            }
            _ => Ok(()),
        }
    }

    /// The column's value. Columns are named by their position or by their name; see [`ColumnIndex`].
    ///
    /// # Panics
    /// If there is no such column, as indexing a slice does.
    pub fn get(self, column: impl ColumnIndex) -> ValueRef<'a> {
        let (_, slot) = self.slot(column);
        if self.null(slot) { ValueRef::Null } else { self.value(slot) }
    }

    /// The bytes that the column keeps, of a fixed-size type exactly its length; `None`: NULL. For rows of the present
    /// layout.
    pub(crate) fn stored_bytes(self, column: usize) -> Option<&'a [u8]> {
        let slot = self.layout.slots.get(column).filter(|slot| !self.null(slot))?;
        let raw = self.raw(slot);
        match slot.ty.fixed_bytes() {
            Some(len) => Some(exactly(len as u8, raw)),
            None => Some(raw),
        }
    }

    /// Every column's value, in order.
    pub fn values(self) -> impl Iterator<Item = ValueRef<'a>> {
        (0..self.columns()).map(move |column| self.get(column))
    }

    /// Whether the column is NULL. Panics if there is no such column.
    #[inline]
    pub fn is_null(self, column: impl ColumnIndex) -> bool {
        self.null(self.slot(column).1)
    }

    /// Value of an unsigned integer column; NULL reads as 0.
    ///
    /// # Panics
    /// If the column does not exist or is of another type: a mistake in the program, independent of the row.
    #[inline]
    pub fn u64(self, column: impl ColumnIndex) -> u64 {
        let (column, slot) = self.slot(column);
        match self.value(slot) {
            ValueRef::UInt(n) => n,
            _ => self.wrong_type(column, "an unsigned integer"),
        }
    }

    /// Value of a signed integer column, or of an unsigned one of at most 32 bits; NULL reads as 0. Panics as `u64`
    /// does.
    #[inline]
    pub fn i64(self, column: impl ColumnIndex) -> i64 {
        let (column, slot) = self.slot(column);
        match (slot.ty, self.value(slot)) {
            (_, ValueRef::Int(n)) => n,
            (Type::U8 | Type::U16 | Type::U24 | Type::U32, ValueRef::UInt(n)) => n as i64,
            _ => self.wrong_type(column, "a signed integer"),
        }
    }

    /// Value of a floating point column; NULL reads as 0. Panics as `u64` does.
    #[inline]
    pub fn f64(self, column: impl ColumnIndex) -> f64 {
        let (column, slot) = self.slot(column);
        match self.value(slot) {
            ValueRef::F64(x) => x,
            _ => self.wrong_type(column, "a floating point number"),
        }
    }

    /// Value of a decimal column; NULL reads as 0. Panics as `u64` does.
    #[inline]
    pub fn decimal(self, column: impl ColumnIndex) -> Decimal {
        let (column, slot) = self.slot(column);
        match slot.ty {
            Type::Decimal(_, scale) if slot.form < NARROWER => unfit_decimal(slot.ty, scale, self.raw(slot)),
            _ => match self.value(slot) {
                ValueRef::Decimal(d) => d,
                _ => self.wrong_type(column, "a decimal number"),
            },
        }
    }

    /// Value of a date-time column; NULL reads as 1970-01-01. Panics as `u64` does.
    #[inline]
    pub fn datetime(self, column: impl ColumnIndex) -> DateTime {
        let (column, slot) = self.slot(column);
        match self.value(slot) {
            ValueRef::DateTime(t) => t,
            _ => self.wrong_type(column, "a date and time"),
        }
    }

    /// Value of a column of truth values; NULL reads as false. Panics as `u64` does.
    #[inline]
    pub fn bool(self, column: impl ColumnIndex) -> bool {
        let (column, slot) = self.slot(column);
        match self.value(slot) {
            ValueRef::Bool(b) => b,
            _ => self.wrong_type(column, "true or false"),
        }
    }

    /// Value of a date column; NULL reads as 1970-01-01. Panics as `u64` does.
    #[inline]
    pub fn date(self, column: impl ColumnIndex) -> Date {
        let (column, slot) = self.slot(column);
        match self.value(slot) {
            ValueRef::Date(d) => d,
            _ => self.wrong_type(column, "a date"),
        }
    }

    /// Value of a column of times of day; NULL reads as midnight. Panics as `u64` does.
    #[inline]
    pub fn time(self, column: impl ColumnIndex) -> Time {
        let (column, slot) = self.slot(column);
        match self.value(slot) {
            ValueRef::Time(t) => t,
            _ => self.wrong_type(column, "a time of day"),
        }
    }

    /// Value of a UUID column; NULL reads as the one of zeros. Panics as `u64` does.
    #[inline]
    pub fn uuid(self, column: impl ColumnIndex) -> Uuid {
        let (column, slot) = self.slot(column);
        match self.value(slot) {
            ValueRef::Uuid(u) => u,
            _ => self.wrong_type(column, "a UUID"),
        }
    }

    /// Value of a text or JSON column; NULL reads as "". (A damaged row's text ends before the first byte that is not
    /// UTF-8.) Panics as `u64` does.
    #[inline]
    pub fn str(self, column: impl ColumnIndex) -> &'a str {
        let (column, slot) = self.slot(column);
        let (Type::Text(_) | Type::Json(_)) = slot.ty else { self.wrong_type(column, "text") };
        let raw = self.raw(slot);
        match simdutf8::basic::from_utf8(raw) {
            Ok(text) => text,
            Err(_) => raw.utf8_chunks().next().map_or("", |chunk| chunk.valid()),
        }
    }

    /// Value of a text, JSON, binary or `Fixed` column as bytes; NULL reads as empty, or as zeros. Panics as `u64`
    /// does.
    #[inline]
    pub fn bytes(self, column: impl ColumnIndex) -> &'a [u8] {
        let (column, slot) = self.slot(column);
        match slot.ty {
            Type::Text(_) | Type::Binary(_) | Type::Fixed(_) | Type::Json(_) => self.raw(slot),
            _ => self.wrong_type(column, "bytes"),
        }
    }

    #[inline]
    fn slot(self, column: impl ColumnIndex) -> (usize, &'a ColumnSlot) {
        match self.find(column).and_then(|position| Some((position, self.layout.slots.get(position)?))) {
            Some(found) => found,
            None => panic!("a row of {} columns has no column {}", self.layout.slots.len(), column.show()),
        }
    }

    /// The column's position, if there is such a column.
    #[inline]
    pub(super) fn find(self, column: impl ColumnIndex) -> Option<usize> {
        column.position(&self.layout.names).filter(|position| *position < self.layout.slots.len())
    }

    #[cold]
    fn wrong_type(self, column: usize, wanted: &str) -> ! {
        panic!(
            "column {} ({}) is read as {wanted} but has type {}",
            column, self.layout.names[column], self.layout.slots[column].ty
        )
    }
}

impl fmt::Debug for RowRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        for (name, value) in self.layout.names.iter().zip(self.values()) {
            map.entry(&format_args!("{name}"), &format_args!("{value}"));
        }
        map.finish()
    }
}

#[cfg(test)]
#[path = "row_test.rs"]
mod tests;
