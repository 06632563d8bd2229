//! Keys as byte strings that compare (memcmp) as the values do.
//!
//! Rules
//! 1. Columns are encoded one after the other; no encoding is a prefix of another of the same column, so a composite
//!    key sorts by its first column, then its second, and so on, and all keys that begin with some columns' values are
//!    one range of bytes.
//! 2. A nullable column starts with a marker: 0 = NULL (and nothing more), 1 = a value follows. NULL sorts first.
//! 3. Integers, times and decimals: big-endian, sign bit flipped where there is one. Floats: big-endian bits, sign bit
//!    flipped if positive, all bits if negative; the one NaN sorts last. Text and binary: bytes with 00 as `01 01` and
//!    01 as `01 02`, then 00. `Fixed`: its bytes.
//! 4. Equal stored bytes (see `value_form.rs`) encode equally and the reverse: comparing stored bytes tells whether a
//!    key changes.

use super::row::RowRef;
use super::schema::{Column, TableDefinition};
use super::types::Type;
use super::value::{Value, ValueRef};
use super::value_form::{Stored, exactly, fit_bound, float_below, misfit, unfit};
use crate::error::{Error, Result};

const NULL_MARKER: u8 = 0;
const VALUE_MARKER: u8 = 1;
const END: u8 = 0;
const ESCAPE: u8 = 1;

/// One column of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPart {
    /// Position of the column in its table.
    pub column: usize,
    /// Its type.
    pub ty: Type,
    /// Whether it may be NULL.
    pub nullable: bool,
}

/// The columns of a key, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyLayout {
    parts: Vec<KeyPart>,
    /// For each part: its bytes if it is an unsigned integer that is never NULL, else 0. Nearly all keys are made of
    /// such columns; their encoding is the number's high end first, and needs no look at the type.
    plain_bytes: Vec<u8>,
}

impl KeyLayout {
    /// The key made of `columns` (positions) of a table.
    pub fn new(definition: &TableDefinition, columns: &[usize]) -> KeyLayout {
        let part = |&column: &usize| {
            let Column { ty, nullable, .. } = definition.columns[column];
            KeyPart { column, ty, nullable }
        };
        let parts: Vec<KeyPart> = columns.iter().map(part).collect();
        let plain_bytes = parts.iter().map(plain_bytes).collect();
        KeyLayout { parts, plain_bytes }
    }

    /// The columns.
    pub fn parts(&self) -> &[KeyPart] {
        &self.parts
    }

    /// Longest possible encoding.
    pub fn max_bytes(&self) -> usize {
        let bytes = |part: &KeyPart| match part.ty.fixed_bytes() {
            Some(bytes) => bytes + usize::from(part.nullable),
            None => part.ty.max_bytes() * 2 + 1 + usize::from(part.nullable),
        };
        self.parts.iter().map(bytes).sum()
    }

    /// Appends the key of a row; returns whether one of its columns is NULL.
    #[inline]
    pub(crate) fn encode_row(&self, row: RowRef<'_>, out: &mut Vec<u8>) -> bool {
        let mut has_null = false;
        for (part, &plain) in self.parts.iter().zip(&self.plain_bytes) {
            let stored = row.load(part.column);
            if let Stored::Word(word) = stored
                && plain != 0
            {
                put_plain(word, plain, out);
                continue;
            }
            has_null |= matches!(stored, Stored::Null);
            encode_part(part, stored, out);
        }
        has_null
    }

    /// Whether the two rows of one table differ in a column of this key.
    #[inline]
    pub(crate) fn differs(&self, old: RowRef<'_>, new: RowRef<'_>) -> bool {
        self.parts.iter().any(|part| old.load(part.column) != new.load(part.column))
    }

    /// Appends the encoding of the key's first `values.len()` columns.
    ///
    /// # Errors
    /// `BadValue` if there are more values than columns or one does not fit its column.
    pub(crate) fn encode_values(
        &self,
        table: &TableDefinition,
        values: &[ValueRef<'_>],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        if values.len() > self.parts.len() {
            return Err(self.wrong_count(table, values.len()));
        }
        for ((part, &plain), &value) in self.parts.iter().zip(&self.plain_bytes).zip(values) {
            if let ValueRef::UInt(n) = value
                && plain != 0
                && n <= u64::MAX >> unused_bits(plain)
            {
                put_plain(n, plain, out);
                continue;
            }
            match fit_bound(part.ty, value) {
                Some(Stored::Null) if !part.nullable => {
                    return Err(bad_value(table, part, "NULL in a column that is never NULL".to_string()));
                }
                Some(stored) => encode_part(part, stored, out),
                None => return Err(bad_value(table, part, misfit(part.ty, value))),
            }
        }
        Ok(())
    }

    /// As [`encode_values`](Self::encode_values), for all columns of the key.
    #[inline]
    pub(crate) fn encode_full(
        &self,
        table: &TableDefinition,
        values: &[ValueRef<'_>],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        if values.len() != self.parts.len() {
            return Err(self.wrong_count(table, values.len()));
        }
        self.encode_values(table, values, out)
    }

    /// As [`encode_values`](Self::encode_values), for an end of a range. True if a value lies between two that its
    /// column can keep: the encoding ends with the lower one then, and the end of the range lies behind all keys that
    /// begin like that.
    pub(crate) fn encode_edge(
        &self,
        table: &TableDefinition,
        values: &[ValueRef<'_>],
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        let mut below = self.parts.iter().zip(values).map(|(part, value)| float_below(part.ty, *value));
        let Some(at) = below.position(|below| below.is_some()) else {
            return self.encode_values(table, values, out).map(|()| false);
        };
        let mut values = values.to_vec();
        values[at] = float_below(self.parts[at].ty, values[at]).into();
        self.encode_values(table, &values, &mut Vec::new())?;
        self.encode_values(table, &values[..=at], out).map(|()| true)
    }

    /// As [`encode_values`](Self::encode_values), but the last value, text or binary, is the beginning of the column's
    /// values.
    pub(crate) fn encode_start(
        &self,
        table: &TableDefinition,
        values: &[ValueRef<'_>],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        self.encode_values(table, values, out)?;
        let last = values.len().checked_sub(1).and_then(|last| self.parts.get(last));
        match last {
            Some(part) if part.ty.fixed_bytes().is_none() && !values[values.len() - 1].is_null() => {
                out.pop();
                Ok(())
            }
            Some(part) => Err(bad_value(table, part, "a prefix search needs a text or binary column".to_string())),
            None => Ok(()),
        }
    }

    /// Reads a whole key; returns its values and how many bytes it took.
    ///
    /// # Errors
    /// `Corrupt` if the bytes are no key of this layout.
    pub fn decode(&self, key: &[u8]) -> Result<(Vec<Value>, usize)> {
        let mut rest = key;
        let mut values = Vec::with_capacity(self.parts.len());
        let mut buffer = Vec::new();
        for part in &self.parts {
            match decode_part(part, &mut rest, &mut buffer) {
                Some(value) => values.push(value),
                None => return Err(Error::Corrupt(format!("a key of {} bytes does not decode", key.len()))),
            }
        }
        Ok((values, key.len() - rest.len()))
    }

    #[cold]
    fn wrong_count(&self, table: &TableDefinition, values: usize) -> Error {
        let names: Vec<&str> = self.parts.iter().map(|part| table.columns[part.column].name.as_str()).collect();
        Error::BadValue {
            column: names.join(", "),
            reason: format!("{values} values given for a key of {} columns", names.len()),
        }
    }
}

#[cold]
fn bad_value(table: &TableDefinition, part: &KeyPart, reason: String) -> Error {
    Error::BadValue { column: table.columns[part.column].name.clone(), reason }
}

/// See [`KeyLayout::plain_bytes`].
fn plain_bytes(part: &KeyPart) -> u8 {
    match part.ty {
        _ if part.nullable => 0,
        Type::U8 => 1,
        Type::U16 => 2,
        Type::U24 => 3,
        Type::U32 => 4,
        Type::U64 => 8,
        _ => 0,
    }
}

/// Bits of a word that a number of `bytes`, 1 to 8, leaves unused.
#[inline]
fn unused_bits(bytes: u8) -> u32 {
    64 - 8 * u32::from(bytes)
}

/// Appends the low `bytes`, 1 to 8, of a number, the highest first.
#[inline]
fn put_plain(number: u64, bytes: u8, out: &mut Vec<u8>) {
    // Eight bytes, then fewer: an append of a length known to the compiler is one check and one store.
    let end = out.len() + usize::from(bytes);
    out.extend_from_slice(&(number << unused_bits(bytes)).to_be_bytes());
    out.truncate(end);
}

/// Appends one column. (NULL in a column that is never NULL is damage; it encodes as zero or empty.)
#[inline]
fn encode_part(part: &KeyPart, stored: Stored<'_>, out: &mut Vec<u8>) {
    if part.nullable {
        if matches!(stored, Stored::Null) {
            return out.push(NULL_MARKER);
        }
        out.push(VALUE_MARKER);
    }
    match stored {
        Stored::Word(word) => encode_word(part.ty, word, out),
        Stored::Wide(wide) => out.extend_from_slice(&(wide ^ 1 << 127).to_be_bytes()),
        Stored::Bytes(bytes) => match part.ty {
            Type::Fixed(len) => out.extend_from_slice(exactly(len, bytes)),
            _ => encode_bytes(bytes, out),
        },
        Stored::Null if part.ty.fixed_bytes().is_none() => encode_bytes(&[], out),
        Stored::Null => encode_word(part.ty, 0, out),
    }
}

#[inline]
fn encode_word(ty: Type, word: u64, out: &mut Vec<u8>) {
    match ty {
        Type::U64 => out.extend_from_slice(&word.to_be_bytes()),
        Type::U32 => out.extend_from_slice(&(word as u32).to_be_bytes()),
        Type::U16 => out.extend_from_slice(&(word as u16).to_be_bytes()),
        Type::U8 => out.push(word as u8),
        Type::I32 => out.extend_from_slice(&(word as u32 ^ 1 << 31).to_be_bytes()),
        Type::I16 => out.extend_from_slice(&(word as u16 ^ 1 << 15).to_be_bytes()),
        Type::U24 => out.extend_from_slice(&(word as u32).to_be_bytes()[1..]),
        Type::I24 => out.extend_from_slice(&(word as u32 ^ 1 << 23).to_be_bytes()[1..]),
        Type::Fixed(len) => out.extend_from_slice(exactly(len, &[])),
        Type::I8 => out.push(word as u8 ^ 1 << 7),
        Type::F64 => out.extend_from_slice(&order_f64(word).to_be_bytes()),
        Type::F32 => out.extend_from_slice(&order_f32(word as u32).to_be_bytes()),
        // I64, DateTime and small decimals.
        _ => out.extend_from_slice(&(word ^ 1 << 63).to_be_bytes()),
    }
}

#[inline]
fn order_f64(bits: u64) -> u64 {
    if bits >> 63 == 0 { bits ^ 1 << 63 } else { !bits }
}

#[inline]
fn order_f32(bits: u32) -> u32 {
    if bits >> 31 == 0 { bits ^ 1 << 31 } else { !bits }
}

#[inline]
fn encode_bytes(mut bytes: &[u8], out: &mut Vec<u8>) {
    while let Some(at) = bytes.iter().position(|&b| b <= ESCAPE) {
        out.extend_from_slice(&bytes[..at]);
        out.extend_from_slice(&[ESCAPE, bytes[at] + 1]);
        bytes = &bytes[at + 1..];
    }
    out.extend_from_slice(bytes);
    out.push(END);
}

fn decode_part(part: &KeyPart, rest: &mut &[u8], buffer: &mut Vec<u8>) -> Option<Value> {
    if part.nullable {
        match take::<1>(rest)?[0] {
            NULL_MARKER => return Some(Value::Null),
            VALUE_MARKER => {}
            _ => return None,
        }
    }
    buffer.clear();
    match part.ty.fixed_bytes() {
        None => decode_bytes(rest, buffer)?,
        Some(len) => {
            if rest.len() < len {
                return None;
            }
            let (bytes, tail) = rest.split_at(len);
            *rest = tail;
            match part.ty {
                Type::Fixed(_) => buffer.extend_from_slice(bytes),
                _ => buffer.extend(bytes.iter().rev()),
            }
            unorder(part.ty, buffer);
        }
    }
    Some(unfit(part.ty, buffer).to_value())
}

/// Turns the (already little-endian) bytes of a fixed-size key column into stored bytes.
fn unorder(ty: Type, bytes: &mut [u8]) {
    let Some(top) = bytes.len().checked_sub(1) else { return };
    match ty {
        Type::U8 | Type::U16 | Type::U24 | Type::U32 | Type::U64 | Type::Fixed(_) => {}
        Type::F32 | Type::F64 if bytes[top] & 0x80 == 0 => bytes.iter_mut().for_each(|b| *b = !*b),
        _ => bytes[top] ^= 0x80,
    }
}

fn decode_bytes(rest: &mut &[u8], out: &mut Vec<u8>) -> Option<()> {
    loop {
        match take::<1>(rest)?[0] {
            END => return Some(()),
            ESCAPE => out.push(take::<1>(rest)?[0].checked_sub(1).filter(|b| *b <= ESCAPE)?),
            plain => out.push(plain),
        }
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk::<N>()?;
    *rest = tail;
    Some(*head)
}

/// The smallest byte string greater than every one that begins with `prefix`; `None` if there is none.
pub(crate) fn successor(mut prefix: Vec<u8>) -> Option<Vec<u8>> {
    while let Some(last) = prefix.pop() {
        if last < u8::MAX {
            prefix.push(last + 1);
            return Some(prefix);
        }
    }
    None
}

#[cfg(test)]
#[path = "key_test.rs"]
mod tests;
