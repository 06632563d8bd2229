//! The covered columns of an entry: whole values of some columns, in addition to the key.
//!
//! The columns are consecutive. Each is a varint, 0 for NULL, otherwise one more than the number of the following
//! bytes. These are the bytes of the row, for numbers except floats without high bytes that carry no information.
//!
//! Rules
//! 1. The bytes are a function of the row's values, as the key is. A longer text or binary type does not change them.
//! 2. Decoding checks every length; bytes that do not decode are `Corrupt`.

use super::definition::{IndexDefinition, TableDefinition};
use super::row::RowRef;
use super::types::Type;
use super::value::Value;
use super::value_form::{Stored, unfit};
use crate::error::{Error, Result};
use crate::page::varint::{self, VarintReader};
use std::ops::Range;

#[derive(Clone, Debug)]
struct CoveredColumn {
    column: usize,
    ty: Type,
}

/// The columns that the entries of an index keep in addition to the key, in order.
#[derive(Clone, Debug, Default)]
pub struct CoveredLayout(Vec<CoveredColumn>);

impl CoveredLayout {
    /// The covered columns of an index.
    pub fn new(table: &TableDefinition, index: &IndexDefinition) -> CoveredLayout {
        let covered = |column: usize| {
            let of = &table.columns[column];
            CoveredColumn { column, ty: of.ty }
        };
        CoveredLayout(index.kept_columns(table).into_iter().map(covered).collect())
    }

    /// Positions of the columns.
    pub fn columns(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().map(|covered| covered.column)
    }

    /// Whether there are none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Longest possible encoding.
    pub(crate) fn max_bytes(&self) -> usize {
        let bytes = |covered: &CoveredColumn| covered.ty.max_bytes() + varint::MAX_BYTES;
        self.0.iter().map(bytes).sum()
    }

    /// Appends what an entry of this row keeps.
    #[inline]
    pub(crate) fn encode_row(&self, row: RowRef<'_>, out: &mut Vec<u8>) {
        for covered in &self.0 {
            match row.load(covered.column) {
                Stored::Null => out.push(0),
                Stored::Word(word) => covered.put_number(&word.to_le_bytes(), out),
                Stored::Wide(wide) => covered.put_number(&wide.to_le_bytes(), out),
                Stored::Bytes(bytes) => put(bytes, out),
            }
        }
    }

    /// Whether the two rows of one table differ in one of the columns.
    #[inline]
    pub(crate) fn differs(&self, old: RowRef<'_>, new: RowRef<'_>) -> bool {
        self.0.iter().any(|covered| old.load(covered.column) != new.load(covered.column))
    }

    /// The values of the columns, in order.
    ///
    /// # Errors
    /// `Corrupt` if the bytes are not what an entry keeps.
    pub fn decode(&self, bytes: &[u8]) -> Result<Vec<Value>> {
        let (mut reader, mut buffer) = (VarintReader::new(bytes), Vec::new());
        let values = self.0.iter().map(|covered| covered.decode(&mut reader, &mut buffer)).collect();
        let values: Option<Vec<Value>> = values;
        values.filter(|_| reader.is_at_end()).ok_or_else(|| damaged(bytes))
    }

    /// Appends each column's bytes, as a row stores them, to `out`, and calls back with its position and their range;
    /// `None`: it is NULL.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub(crate) fn append_stored(
        &self,
        bytes: &[u8],
        out: &mut Vec<u8>,
        mut take: impl FnMut(usize, Option<Range<usize>>),
    ) -> Result<()> {
        let mut reader = VarintReader::new(bytes);
        for covered in &self.0 {
            let start = out.len();
            let is_value = covered.append_stored(&mut reader, out).ok_or_else(|| damaged(bytes))?;
            take(covered.column, is_value.then_some(start..out.len()));
        }
        if reader.is_at_end() { Ok(()) } else { Err(damaged(bytes)) }
    }
}

#[cold]
fn damaged(bytes: &[u8]) -> Error {
    Error::Corrupt(format!("covered columns of {} bytes do not decode", bytes.len()))
}

fn put(bytes: &[u8], out: &mut Vec<u8>) {
    varint::put(out, bytes.len() as u64 + 1);
    out.extend_from_slice(bytes);
}

impl CoveredColumn {
    fn is_signed(&self) -> bool {
        self.ty.is_signed_integer() || matches!(self.ty, Type::Decimal(..) | Type::DateTime | Type::Date)
    }

    /// Appends a number. `bytes` begins with its little-endian bytes.
    fn put_number(&self, bytes: &[u8], out: &mut Vec<u8>) {
        let whole = &bytes[..self.ty.max_bytes().min(bytes.len())];
        if matches!(self.ty, Type::F32 | Type::F64) {
            return put(whole, out);
        }
        let is_negative = self.is_signed() && whole.last().is_some_and(|high| high & 0x80 != 0);
        let fill = if is_negative { 0xff } else { 0 };
        let mut len = whole.iter().rposition(|byte| *byte != fill).map_or(0, |last| last + 1);
        // Its sign has to be seen.
        if self.is_signed() && (len == 0 && is_negative || len > 0 && (whole[len - 1] & 0x80 != 0) != is_negative) {
            len += 1;
        }
        debug_assert!(len <= whole.len(), "a number of {} bytes is kept in {len}", whole.len());
        put(&whole[..len], out);
    }

    fn decode(&self, reader: &mut VarintReader<'_>, buffer: &mut Vec<u8>) -> Option<Value> {
        buffer.clear();
        let is_value = self.append_stored(reader, buffer)?;
        Some(if is_value { unfit(self.ty, buffer).to_value() } else { Value::Null })
    }

    /// Reads the column, and appends the bytes that a row stores of it; false: it is NULL.
    fn append_stored(&self, reader: &mut VarintReader<'_>, out: &mut Vec<u8>) -> Option<bool> {
        let Some(len) = usize::try_from(reader.number()?).ok()?.checked_sub(1) else { return Some(false) };
        let bytes = reader.bytes(len)?;
        let is_whole = match (self.ty, self.ty.fixed_bytes()) {
            (Type::Fixed(whole), _) => bytes.len() == usize::from(whole),
            (Type::Text(max) | Type::Json(max), _) => bytes.len() <= max as usize && std::str::from_utf8(bytes).is_ok(),
            (ty, None) => bytes.len() <= ty.max_bytes(),
            (_, Some(whole)) => len <= whole,
        };
        if !is_whole {
            return None;
        }
        out.extend_from_slice(bytes);
        if let Some(whole) = self.ty.fixed_bytes() {
            let is_negative = self.is_signed() && bytes.last().is_some_and(|high| high & 0x80 != 0);
            let fill = if is_negative { 0xff } else { 0 };
            out.extend(std::iter::repeat_n(fill, whole - len));
        }
        Some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::super::row_layout::RowLayout;
    use super::super::testing::{refs, same, table_and_rows};
    use super::*;
    use proptest::prelude::*;

    fn layout(table: &TableDefinition) -> CoveredLayout {
        let covered = (0..table.columns.len()).collect();
        CoveredLayout::new(table, &IndexDefinition { name: "i".into(), columns: Vec::new(), covered, unique: false })
    }

    proptest! {
        #[test]
        fn values_come_back(
            (table, rows) in table_and_rows(1),
            cut in any::<prop::sample::Index>(),
        ) {
            let row_layout = RowLayout::new(&table);
            let (mut row, mut bytes) = (Vec::new(), Vec::new());
            row_layout.encode(&refs(&rows[0]), None, &mut row).unwrap();
            layout(&table).encode_row(RowRef::new(&row_layout, &row), &mut bytes);
            prop_assert!(bytes.len() <= layout(&table).max_bytes());
            let values = layout(&table).decode(&bytes).unwrap();
            for (i, column) in table.columns.iter().enumerate() {
                prop_assert!(same(column.ty, values[i].as_ref(), rows[0][i].as_ref()));
            }
            prop_assert!(layout(&table).decode(&bytes[..cut.index(bytes.len())]).is_err());
            bytes.push(0);
            prop_assert!(layout(&table).decode(&bytes).is_err());
        }

        #[test]
        fn a_wider_type_keeps_the_bytes(number in any::<i32>()) {
            let bytes = |ty| {
                let mut out = Vec::new();
                CoveredColumn { column: 0, ty }.put_number(&i64::from(number).to_le_bytes(), &mut out);
                out
            };
            let narrow = bytes(Type::I32);
            prop_assert_eq!(&narrow, &bytes(Type::I64));
            prop_assert!(narrow.len() <= 5 && (!(-128..128).contains(&number) || narrow.len() <= 2));
            let layout = CoveredLayout(vec![CoveredColumn { column: 0, ty: Type::I64 }]);
            prop_assert_eq!(layout.decode(&narrow).unwrap(), [Value::Int(number.into())]);
        }

        #[test]
        fn garbage_never_panics((table, _) in table_and_rows(1), bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = layout(&table).decode(&bytes);
        }
    }
}
