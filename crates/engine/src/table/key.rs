//! Keys as byte strings that compare (memcmp) as the values do.
//!
//! Rules
//! 1. Columns are encoded in sequence; no encoding is a prefix of another of the same column, so a composite key sorts
//!    by its first column, then its second, and so on, and all keys that begin with some columns' values are one range
//!    of bytes.
//! 2. A nullable column starts with a marker: 0 = NULL (and nothing more), 1 = a value follows. NULL sorts first.
//! 3. Integers, times and decimals: big-endian, sign bit flipped where there is one. Floats: big-endian bits, sign bit
//!    flipped if positive, all bits if negative; the one NaN sorts last. Text and binary: bytes with 00 as `01 01` and
//!    01 as `01 02`, then 00. `Fixed`: its bytes.
//! 4. Equal stored bytes (see `value_form.rs`) encode equally, and the reverse if the column is whole and has no
//!    collation: a comparison of stored bytes shows whether a key may change.
//! 5. A prefix column has only its first bytes. With a collation the text's weights replace its bytes (the prefix is
//!    then of the weights). Such a key does not contain the value. A descending column has all bytes inverted, marker
//!    and end included: NULL sorts last.

use super::definition::{Column, IndexColumn, TableDefinition};
pub use super::key_part::KeyPart;
pub(crate) use super::key_part::append_stored;
use super::key_part::{END, decode_part};
use super::row::RowRef;
use super::types::Type;
use super::value::{Value, ValueRef};
use super::value_form::{Stored, adjacent_float, fit_bound, misfit};
use crate::config::{Collation, Collations};
use crate::error::{Error, Result};

/// Position of an end of a range among the keys that begin with its encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EdgePlace {
    /// In front of them or after them, as the end is inclusive or exclusive.
    AsAsked,
    /// Behind them: its last value is between two that the column can keep.
    Behind,
    /// Among them: only the beginning of its last value counts.
    Among,
}

/// The columns of a key, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyLayout {
    parts: Vec<KeyPart>,
    /// For each part: its bytes if it is an ascending unsigned integer that is never NULL, else 0. Nearly all keys have
    /// such columns only; the encoding is big-endian and does not depend on the type.
    plain_bytes: Vec<u8>,
}

impl KeyLayout {
    /// The layout of a key of these columns of a table.
    pub fn new(definition: &TableDefinition, columns: &[IndexColumn], collations: &Collations) -> KeyLayout {
        let part = |&IndexColumn { column, descending, prefix_bytes }: &IndexColumn| {
            let Column { ty, nullable, ref collation, .. } = definition.columns[column];
            let collation = collation.as_ref().map(|name| collations.get(name));
            KeyPart { column, ty, nullable, descending, prefix_bytes, collation }
        };
        let parts: Vec<KeyPart> = columns.iter().map(part).collect();
        let plain_bytes = parts.iter().map(plain_bytes).collect();
        KeyLayout { parts, plain_bytes }
    }

    /// The columns.
    pub fn parts(&self) -> &[KeyPart] {
        &self.parts
    }

    /// Bytes of a key whose values are as long as their columns allow, none of them with bytes that are escaped; of a
    /// collation as if the weights were the bytes.
    pub(crate) fn unescaped_bytes(&self) -> usize {
        self.parts().iter().map(KeyPart::unescaped_bytes).sum()
    }

    /// Longest possible encoding. (Weights have no limit of their own.)
    pub fn max_bytes(&self) -> usize {
        let bytes = |part: &KeyPart| match part.ty.fixed_bytes() {
            Some(bytes) => bytes + usize::from(part.nullable),
            None => {
                let whole = if part.collation.is_some() { usize::MAX / 4 } else { part.ty.max_bytes() };
                whole.min(part.prefix_bytes.map_or(usize::MAX, usize::from)) * 2 + 1 + usize::from(part.nullable)
            }
        };
        self.parts.iter().map(bytes).fold(0, usize::saturating_add)
    }

    /// The collation of one of its columns that this program does not know.
    pub(crate) fn unknown_collation(&self) -> Option<&Collation> {
        self.parts.iter().filter_map(|part| part.collation.as_ref()).find(|collation| !collation.is_known())
    }

    /// Whether it has the values of all of its columns.
    pub(crate) fn is_reversible(&self) -> bool {
        self.parts.iter().all(KeyPart::is_reversible)
    }

    /// Whether one of its columns has a collation.
    pub(crate) fn has_collation(&self) -> bool {
        self.parts.iter().any(|part| part.collation.is_some())
    }

    /// Appends the key of a row; returns whether one of its columns is NULL.
    ///
    /// # Errors
    /// `Collation`; never if no column has one.
    #[inline]
    pub(crate) fn encode_row(&self, row: RowRef<'_>, out: &mut Vec<u8>) -> Result<bool> {
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
            part.encode(stored, out)?;
        }
        Ok(has_null)
    }

    /// Whether the two rows of one table differ in a column of this key; then the key may differ.
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
                Some(stored) => part.encode(stored, out)?,
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

    /// As [`encode_values`](Self::encode_values), for an end of a range: up to the first value that is between two that
    /// its column can keep (then the encoding ends with the previous column), or of which only the beginning counts.
    pub(crate) fn encode_edge(
        &self,
        table: &TableDefinition,
        values: &[ValueRef<'_>],
        out: &mut Vec<u8>,
    ) -> Result<EdgePlace> {
        for (at, (part, value)) in self.parts.iter().zip(values).enumerate() {
            if let Some(before) = adjacent_float(part.ty, *value, part.descending) {
                let mut values = values.to_vec();
                values[at] = before.into();
                self.encode_values(table, &values, &mut Vec::new())?;
                self.encode_values(table, &values[..=at], out)?;
                return Ok(EdgePlace::Behind);
            }
            if part.cuts(*value)? {
                self.encode_values(table, values, &mut Vec::new())?;
                self.encode_values(table, &values[..=at], out)?;
                return Ok(EdgePlace::Among);
            }
        }
        self.encode_values(table, values, out).map(|()| EdgePlace::AsAsked)
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
                let end = out.pop();
                let expected = if part.descending { !END } else { END };
                debug_assert_eq!(end, Some(expected), "the last value of a prefix search is cut");
                Ok(())
            }
            Some(part) => Err(bad_value(table, part, "a prefix search needs a text or binary column".to_string())),
            None => Ok(()),
        }
    }

    /// Reads a whole key; returns its values and how many bytes it took. Of a column whose value the key does not have
    /// ([`KeyPart::is_reversible`]) these are the beginning, or as bytes the weights.
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
        _ if part.nullable || part.descending => 0,
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
    debug_assert!(number <= u64::MAX >> unused_bits(bytes), "the number {number} has more than {bytes} bytes");
    // Eight bytes, then fewer: an append of a length known to the compiler is one check and one store.
    let end = out.len() + usize::from(bytes);
    out.extend_from_slice(&(number << unused_bits(bytes)).to_be_bytes());
    out.truncate(end);
}

/// The smallest byte string above all strings that begin with `prefix`; `None` if there is none.
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
