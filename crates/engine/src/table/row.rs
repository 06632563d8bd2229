//! Rows as bytes.
//!
//! Layout: NULL bitmap (a bit for each nullable column, 1 = NULL) | fixed-size columns in declared order | ends of the variable-length
//! columns, u16 or u32 each, counted from the start of the variable part | the variable part.
//!
//! Rules
//! 1. The width of the ends follows from the table's definition alone: u16 iff the longest possible variable part is at most 65,535 bytes.
//! 2. A NULL column keeps zero bytes (fixed) or an empty range (variable), so that equal rows are equal bytes.
//! 3. Reading never panics and never leaves the bytes, whatever they are: what is missing reads as zero or empty.
//!    [`RowRef::verify`] tells whether bytes are a row.
//! 4. Integers are little-endian. Values are stored as `value.rs` says.

use super::datetime::DateTime;
use super::decimal::Decimal;
use super::schema::TableDefinition;
use super::types::Type;
use super::value::{Stored, Value, ValueRef, array, fit, misfit, unfit, unfit_decimal};
use crate::error::{Error, Result};
use std::fmt;
use std::sync::Arc;

/// Longest encoded row, in bytes.
pub const MAX_ROW_BYTES: usize = 16 << 20;

const NOT_NULLABLE: u16 = u16::MAX;

/// Where one column is.
#[derive(Clone, Copy, Debug)]
struct Slot {
    ty: Type,
    /// Number of its bit in the bitmap.
    null_bit: u16,
    /// Length of a fixed-size column, 0 for a variable-length one.
    fixed_bytes: u8,
    /// Offset of a fixed-size column, or number of the variable-length one.
    place: u32,
}

/// Where the columns of a table's rows are, and what they are called.
#[derive(Debug)]
pub struct RowLayout {
    names: Vec<String>,
    slots: Vec<Slot>,
    /// Where the ends begin.
    ends_at: usize,
    /// Bytes of one end, 2 or 4.
    end_bytes: usize,
    /// Variable-length columns.
    variable: usize,
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
            slots.push(Slot { ty: column.ty, null_bit, fixed_bytes, place });
            offset += usize::from(fixed_bytes);
            variable += u32::from(fixed_bytes == 0);
            longest = longest.saturating_add(if fixed_bytes == 0 { column.ty.max_bytes() } else { 0 });
        }
        let names = definition.columns.iter().map(|c| c.name.clone()).collect();
        let end_bytes = if longest <= usize::from(u16::MAX) { 2 } else { 4 };
        RowLayout { names, slots, ends_at: offset, end_bytes, variable: variable as usize }
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.slots.len()
    }

    /// Where the variable part begins.
    fn variable_at(&self) -> usize {
        self.ends_at + self.variable * self.end_bytes
    }

    fn bad_value(&self, column: usize, reason: impl Into<String>) -> Error {
        let column = self.names.get(column).cloned().unwrap_or_else(|| format!("number {column}"));
        Error::BadValue { column, reason: reason.into() }
    }

    /// Replaces `out` with the row made of `values`, one for each column; `generated` (column, number) stands in for a NULL there.
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
                column: "all".to_string(),
                reason: format!("{} values given for {} columns", values.len(), self.slots.len()),
            });
        }
        out.clear();
        out.resize(self.variable_at(), 0);
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

    fn set_null(&self, slot: &Slot, column: usize, out: &mut [u8]) -> Result<()> {
        if slot.null_bit == NOT_NULLABLE {
            return Err(self.bad_value(column, "NULL in a column that is never NULL"));
        }
        out[usize::from(slot.null_bit / 8)] |= 1 << (slot.null_bit % 8);
        Ok(())
    }

    /// Makes the row's present end the end of variable-length column `number`.
    #[inline]
    fn set_end(&self, number: usize, out: &mut [u8]) {
        let end = (out.len() - self.variable_at()) as u32;
        let at = self.ends_at + number * self.end_bytes;
        out[at..at + self.end_bytes].copy_from_slice(&end.to_le_bytes()[..self.end_bytes]);
    }

    /// Replaces `out` with `old` changed by `changes`.
    ///
    /// # Errors
    /// `RowTooLarge`; `Corrupt` if `old` is no row of this table.
    pub(crate) fn rebuild(&self, old: &[u8], changes: &Changes<'_>, out: &mut Vec<u8>) -> Result<()> {
        let fixed_part = old.get(..self.variable_at()).ok_or_else(|| self.not_a_row("it is too short"))?;
        let moves = changes.edits.iter().any(|edit| self.slots[edit.column].fixed_bytes == 0);
        out.clear();
        out.extend_from_slice(if moves { fixed_part } else { old });
        for edit in &changes.edits {
            let slot = &self.slots[edit.column];
            if slot.null_bit != NOT_NULLABLE {
                let (byte, bit) = (usize::from(slot.null_bit / 8), 1u8 << (slot.null_bit % 8));
                let null = matches!(edit.new, New::Null);
                out[byte] = if null { out[byte] | bit } else { out[byte] & !bit };
            }
            let place = slot.place as usize;
            match edit.new {
                New::Word(word) => put_word(&mut out[place..], word, slot.fixed_bytes),
                New::Wide(wide) => out[place..][..16].copy_from_slice(&wide.to_le_bytes()),
                New::Null if slot.fixed_bytes != 0 => out[place..][..usize::from(slot.fixed_bytes)].fill(0),
                // Variable-length: below.
                New::Null | New::Bytes { .. } => {}
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
                Some(Edit { new: New::Bytes { start, end }, .. }) => &changes.bytes[*start..*end],
                Some(_) => &[],
                None => old.variable(slot.place as usize),
            };
            out.extend_from_slice(bytes);
            self.set_end(slot.place as usize, out);
        }
    }

    #[cold]
    fn not_a_row(&self, reason: &str) -> Error {
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

#[derive(Clone, Copy, Debug)]
struct Edit {
    column: usize,
    new: New,
}

/// A new value as its column keeps it; see [`Stored`].
#[derive(Clone, Copy, Debug)]
enum New {
    Null,
    Word(u64),
    Wide(u128),
    /// Where they are in [`Changes::bytes`].
    Bytes {
        start: usize,
        end: usize,
    },
}

/// New values for some columns of a row; see `modify`. Values are checked and copied as they are put.
#[derive(Debug)]
pub struct Changes<'t> {
    layout: &'t RowLayout,
    edits: smallvec::SmallVec<[Edit; 8]>,
    bytes: smallvec::SmallVec<[u8; 128]>,
    error: Option<Error>,
}

impl<'t> Changes<'t> {
    pub(crate) fn new(layout: &'t RowLayout) -> Changes<'t> {
        Changes { layout, edits: smallvec::SmallVec::new(), bytes: smallvec::SmallVec::new(), error: None }
    }

    /// Sets column `column`. A value that does not fit makes the whole call fail, naming the column.
    #[inline]
    pub fn put<'v>(&mut self, column: usize, value: impl Into<ValueRef<'v>>) {
        if let Err(error) = self.try_put(column, value.into()) {
            self.error.get_or_insert(error);
        }
    }

    #[inline]
    fn try_put(&mut self, column: usize, value: ValueRef<'_>) -> Result<()> {
        let layout = self.layout;
        let slot = layout.slots.get(column).ok_or_else(|| layout.bad_value(column, "there is no such column"))?;
        let stored = fit(slot.ty, value).ok_or_else(|| layout.bad_value(column, misfit(slot.ty, value)))?;
        let new = match stored {
            Stored::Word(word) => New::Word(word),
            Stored::Wide(wide) => New::Wide(wide),
            Stored::Bytes(bytes) => {
                let start = self.bytes.len();
                self.bytes.extend_from_slice(bytes);
                New::Bytes { start, end: self.bytes.len() }
            }
            Stored::Null if slot.null_bit == NOT_NULLABLE => {
                return Err(layout.bad_value(column, "NULL in a column that is never NULL"));
            }
            Stored::Null => New::Null,
        };
        self.edits.push(Edit { column, new });
        Ok(())
    }

    /// Columns that were put, in order, repetitions included.
    pub(crate) fn columns(&self) -> impl Iterator<Item = usize> + '_ {
        self.edits.iter().map(|edit| edit.column)
    }

    /// The first value that did not fit.
    pub(crate) fn take_error(&mut self) -> Option<Error> {
        self.error.take()
    }
}

/// A row read in place.
#[derive(Clone, Copy)]
pub struct RowRef<'a> {
    layout: &'a RowLayout,
    bytes: &'a [u8],
}

macro_rules! getters {
    ($($(#[$doc:meta])* $name:ident -> $type:ty;)*) => {
        impl Row {
            $($(#[$doc])* #[inline] pub fn $name(&self, column: usize) -> $type { self.as_ref().$name(column) })*
        }
    };
}

impl<'a> RowRef<'a> {
    pub(crate) fn new(layout: &'a RowLayout, bytes: &'a [u8]) -> RowRef<'a> {
        RowRef { layout, bytes }
    }

    /// Number of columns.
    pub fn columns(self) -> usize {
        self.layout.columns()
    }

    /// The encoded row.
    pub fn as_bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// The same row, owned.
    pub(crate) fn to_row(self, layout: &Arc<RowLayout>) -> Row {
        Row { layout: Arc::clone(layout), bytes: self.bytes.to_vec() }
    }

    /// Bytes the column keeps; `None` = NULL.
    #[inline]
    pub(crate) fn stored(self, column: usize) -> Option<&'a [u8]> {
        let slot = &self.layout.slots[column];
        (!self.null(slot)).then(|| self.raw(slot))
    }

    /// The column as it is kept; what is missing is zero or empty.
    #[inline]
    pub(crate) fn load(self, column: usize) -> Stored<'a> {
        let slot = &self.layout.slots[column];
        if self.null(slot) {
            return Stored::Null;
        }
        let raw = self.raw(slot);
        match slot.fixed_bytes {
            0 => Stored::Bytes(raw),
            1 => Stored::Word(u8::from_le_bytes(array(raw)).into()),
            2 => Stored::Word(u16::from_le_bytes(array(raw)).into()),
            4 => Stored::Word(u32::from_le_bytes(array(raw)).into()),
            8 => Stored::Word(u64::from_le_bytes(array(raw))),
            _ => Stored::Wide(u128::from_le_bytes(array(raw))),
        }
    }

    #[inline]
    fn null(self, slot: &Slot) -> bool {
        slot.null_bit != NOT_NULLABLE
            && self.bytes.get(usize::from(slot.null_bit / 8)).is_some_and(|byte| byte >> (slot.null_bit % 8) & 1 == 1)
    }

    #[inline]
    fn raw(self, slot: &Slot) -> &'a [u8] {
        if slot.fixed_bytes == 0 {
            return self.variable(slot.place as usize);
        }
        self.bytes.get(slot.place as usize..slot.place as usize + usize::from(slot.fixed_bytes)).unwrap_or(&[])
    }

    #[inline]
    fn variable(self, number: usize) -> &'a [u8] {
        let base = self.layout.variable_at();
        let start = if number == 0 { 0 } else { self.end(number - 1) };
        self.bytes.get(base.saturating_add(start)..base.saturating_add(self.end(number))).unwrap_or(&[])
    }

    #[inline]
    fn end(self, number: usize) -> usize {
        let at = self.layout.ends_at + number * self.layout.end_bytes;
        match self.bytes.get(at..at + self.layout.end_bytes) {
            Some(&[a, b]) => usize::from(u16::from_le_bytes([a, b])),
            Some(wide) => u32::from_le_bytes(array(wide)) as usize,
            None => 0,
        }
    }

    /// Whether the bytes are a row of this table: right length, ends in order, text that is UTF-8, NULLs without bytes.
    ///
    /// # Errors
    /// `Corrupt` says what is wrong.
    pub fn verify(self) -> Result<()> {
        let base = self.layout.variable_at();
        if self.bytes.len() < base {
            return Err(self.layout.not_a_row("it is too short"));
        }
        let mut previous = 0;
        for number in 0..self.layout.variable {
            let end = self.end(number);
            if end < previous {
                return Err(self.layout.not_a_row("the ends of its columns are out of order"));
            }
            previous = end;
        }
        if base + previous != self.bytes.len() {
            return Err(self.layout.not_a_row("its columns do not add up to its length"));
        }
        self.layout.slots.iter().enumerate().try_for_each(|(i, slot)| self.verify_column(i, slot))
    }

    fn verify_column(self, i: usize, slot: &Slot) -> Result<()> {
        let raw = self.raw(slot);
        let wrong = |reason: &str| Err(self.layout.not_a_row(&format!("column {}: {reason}", self.layout.names[i])));
        if self.null(slot) && raw.iter().any(|&b| b != 0) {
            return wrong("NULL with a value");
        }
        match slot.ty {
            Type::Text(_) if std::str::from_utf8(raw).is_err() => wrong("text that is not UTF-8"),
            Type::Text(max) | Type::Binary(max) if raw.len() > max as usize => wrong("longer than its type allows"),
            _ => Ok(()),
        }
    }

    /// The column's value.
    ///
    /// # Panics
    /// If there is no such column, as indexing a slice does.
    pub fn get(self, column: usize) -> ValueRef<'a> {
        let slot = self.slot(column);
        if self.null(slot) { ValueRef::Null } else { unfit(slot.ty, self.raw(slot)) }
    }

    /// Every column's value, in order.
    pub fn values(self) -> impl Iterator<Item = ValueRef<'a>> {
        (0..self.columns()).map(move |column| self.get(column))
    }

    /// Whether the column is NULL. Panics if there is no such column.
    #[inline]
    pub fn is_null(self, column: usize) -> bool {
        self.null(self.slot(column))
    }

    /// Value of an unsigned integer column; NULL reads as 0.
    ///
    /// # Panics
    /// If the column does not exist or is of another type: a mistake in the program, whatever the row holds.
    #[inline]
    pub fn u64(self, column: usize) -> u64 {
        let slot = self.slot(column);
        match (slot.ty, unfit(slot.ty, self.raw(slot))) {
            (_, ValueRef::UInt(n)) => n,
            _ => self.wrong_type(column, "an unsigned integer"),
        }
    }

    /// Value of a signed integer column, or of an unsigned one of at most 32 bits; NULL reads as 0. Panics as `u64` does.
    #[inline]
    pub fn i64(self, column: usize) -> i64 {
        let slot = self.slot(column);
        match (slot.ty, unfit(slot.ty, self.raw(slot))) {
            (_, ValueRef::Int(n)) => n,
            (Type::U8 | Type::U16 | Type::U32, ValueRef::UInt(n)) => n as i64,
            _ => self.wrong_type(column, "a signed integer"),
        }
    }

    /// Value of a floating point column; NULL reads as 0. Panics as `u64` does.
    #[inline]
    pub fn f64(self, column: usize) -> f64 {
        let slot = self.slot(column);
        match unfit(slot.ty, self.raw(slot)) {
            ValueRef::F64(x) => x,
            _ => self.wrong_type(column, "a floating point number"),
        }
    }

    /// Value of a decimal column; NULL reads as 0. Panics as `u64` does.
    #[inline]
    pub fn decimal(self, column: usize) -> Decimal {
        let slot = self.slot(column);
        match slot.ty {
            Type::Decimal(_, scale) => unfit_decimal(slot.ty, scale, self.raw(slot)),
            _ => self.wrong_type(column, "a decimal number"),
        }
    }

    /// Value of a date-time column; NULL reads as 1970-01-01. Panics as `u64` does.
    #[inline]
    pub fn datetime(self, column: usize) -> DateTime {
        let slot = self.slot(column);
        match unfit(slot.ty, self.raw(slot)) {
            ValueRef::DateTime(t) => t,
            _ => self.wrong_type(column, "a date and time"),
        }
    }

    /// Value of a text column; NULL reads as "". (A damaged row's text ends before the first byte that is not UTF-8.) Panics as `u64` does.
    #[inline]
    pub fn str(self, column: usize) -> &'a str {
        let slot = self.slot(column);
        let Type::Text(_) = slot.ty else { self.wrong_type(column, "text") };
        let raw = self.raw(slot);
        match std::str::from_utf8(raw) {
            Ok(text) => text,
            Err(_) => raw.utf8_chunks().next().map_or("", |chunk| chunk.valid()),
        }
    }

    /// Value of a text or binary column as bytes; NULL reads as empty. Panics as `u64` does.
    #[inline]
    pub fn bytes(self, column: usize) -> &'a [u8] {
        let slot = self.slot(column);
        match slot.ty {
            Type::Text(_) | Type::Binary(_) => self.raw(slot),
            _ => self.wrong_type(column, "bytes"),
        }
    }

    #[inline]
    fn slot(self, column: usize) -> &'a Slot {
        match self.layout.slots.get(column) {
            Some(slot) => slot,
            None => panic!("a row of {} columns has no column number {column}", self.layout.slots.len()),
        }
    }

    #[cold]
    fn wrong_type(self, column: usize, wanted: &str) -> ! {
        panic!(
            "column {} ({}) is read as {wanted} but has type {}",
            column, self.layout.names[column], self.layout.slots[column].ty
        )
    }
}

/// A row, owning its bytes; columns are decoded when asked for.
#[derive(Clone)]
pub struct Row {
    layout: Arc<RowLayout>,
    bytes: Vec<u8>,
}

getters! {
    /// Value of an unsigned integer column; NULL reads as 0. Panics if the column does not exist or is of another type.
    u64 -> u64;
    /// Value of a signed integer column, or of an unsigned one of at most 32 bits; NULL reads as 0. Panics as `u64` does.
    i64 -> i64;
    /// Value of a floating point column; NULL reads as 0. Panics as `u64` does.
    f64 -> f64;
    /// Value of a decimal column; NULL reads as 0. Panics as `u64` does.
    decimal -> Decimal;
    /// Value of a date-time column; NULL reads as 1970-01-01. Panics as `u64` does.
    datetime -> DateTime;
    /// Value of a text column; NULL reads as "". Panics as `u64` does.
    str -> &str;
    /// Value of a text or binary column as bytes; NULL reads as empty. Panics as `u64` does.
    bytes -> &[u8];
    /// The column's value. Panics if there is no such column.
    get -> ValueRef<'_>;
    /// Whether the column is NULL. Panics if there is no such column.
    is_null -> bool;
}

impl Row {
    /// The row, borrowed.
    #[inline]
    pub fn as_ref(&self) -> RowRef<'_> {
        RowRef { layout: &self.layout, bytes: &self.bytes }
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.layout.columns()
    }

    /// Every column's value, in order.
    pub fn values(&self) -> impl Iterator<Item = ValueRef<'_>> {
        self.as_ref().values()
    }

    /// Every column's value, owned.
    pub fn to_values(&self) -> Vec<Value> {
        self.values().map(ValueRef::to_value).collect()
    }
}

impl PartialEq for Row {
    /// Whether all columns have the same values.
    fn eq(&self, other: &Row) -> bool {
        self.values().eq(other.values())
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

impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(f)
    }
}

#[cfg(test)]
#[path = "row_test.rs"]
mod tests;
