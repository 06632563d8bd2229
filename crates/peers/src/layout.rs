//! The layout of rows and index entries in a key-value engine.
//!
//! Rules
//! 1. A row is its primary key and a value with all other columns; no column is kept twice.
//! 2. A key is the parts of its columns, one after another, and compares as bytes: integers most significant byte
//!    first, the sign turned round; text with a zero byte at its end, so it may hold none; a nullable column begins
//!    with a byte that says whether it has a value. Bytes are not escaped, so they can only be the last part, without
//!    indexes.
//! 3. A value is the bits of its nulls, the columns of fixed size at fixed places, the ends of the texts, the texts. A
//!    column is found without looking at the others.
//! 4. An index entry is a key without value: the columns of the index, then those of the primary key that are not among
//!    them.

use crate::definition::Definition;
use crate::failure::failed;
use highwater::{Type, ValueRef};
use highwater_bench::Result;

/// Most columns of a key.
const MAX_PARTS: usize = 16;

/// Where a column is.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// The part of the primary key.
    Key(usize),
    /// At this offset of the value.
    Fixed(usize),
    /// The nth text of the value.
    Text(usize),
}

#[derive(Clone, Debug)]
struct Slot {
    ty: Type,
    width: usize,
    /// The bit of its null in the value, for a nullable column there.
    null_bit: Option<usize>,
    nullable: bool,
    place: Place,
}

/// A secondary index.
#[derive(Clone, Debug)]
pub(crate) struct IndexLayout {
    pub(crate) name: String,
    /// The columns a scan may name.
    columns: Vec<usize>,
    /// The index's columns, then the missing columns of the primary key.
    key: Vec<usize>,
    /// The place in `key` of each column of the primary key.
    primary: Vec<usize>,
}

/// The places of a table's columns.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// Name of the table.
    pub(crate) name: String,
    slots: Vec<Slot>,
    primary: Vec<usize>,
    /// The column that numbers itself.
    pub(crate) auto_increment: Option<usize>,
    /// Secondary indexes.
    pub(crate) indexes: Vec<IndexLayout>,
    fixed_end: usize,
    texts: usize,
}

fn positions(columns: &[(String, Type, bool)], names: &[String]) -> Result<Vec<usize>> {
    let of = |name: &String| columns.iter().position(|column| column.0 == *name);
    names.iter().map(|name| of(name).ok_or_else(|| failed("table", format_args!("no column {name}")))).collect()
}

impl Definition {
    /// The places of its columns.
    ///
    /// # Errors
    /// A type or column that there is not; a key that cannot be laid out.
    pub(crate) fn layout(&self) -> Result<Layout> {
        let parsed = |(name, ty, nullable): &(String, String, bool)| {
            let ty: Type = ty.parse().map_err(|_| failed("table", format!("no type {ty}")))?;
            Ok((name.clone(), ty, *nullable))
        };
        let columns = self.columns.iter().map(parsed).collect::<Result<Vec<_>>>()?;
        let primary = positions(&columns, &self.primary_key)?;
        let mut slots = Vec::new();
        let nulls = (0..columns.len()).filter(|n| columns[*n].2 && !primary.contains(n)).count();
        let (mut offset, mut texts, mut bits) = (nulls.div_ceil(8), 0, 0);
        for (n, (_, ty, nullable)) in columns.iter().enumerate() {
            let width = ty.fixed_bytes().unwrap_or(0);
            let in_key = primary.iter().position(|column| *column == n);
            let place = match (in_key, width) {
                (Some(part), _) => Place::Key(part),
                (None, 0) => Place::Text(texts),
                (None, _) => Place::Fixed(offset),
            };
            match place {
                Place::Text(_) => texts += 1,
                Place::Fixed(_) => offset += width,
                Place::Key(_) => {}
            }
            let has_bit = *nullable && in_key.is_none();
            let null_bit = has_bit.then_some(bits);
            bits += usize::from(has_bit);
            slots.push(Slot { ty: *ty, width, null_bit, nullable: *nullable, place });
        }
        let auto_increment = match &self.auto_increment {
            Some(name) => Some(positions(&columns, std::slice::from_ref(name))?[0]),
            None => None,
        };
        let indexes = self.indexes.iter().map(|(name, names)| {
            let of = positions(&columns, names)?;
            let key: Vec<usize> = of.iter().chain(primary.iter().filter(|c| !of.contains(c))).copied().collect();
            let at = |column: &usize| key.iter().position(|c| c == column).unwrap_or_default();
            Ok(IndexLayout { name: name.clone(), primary: primary.iter().map(at).collect(), columns: of, key })
        });
        let indexes = indexes.collect::<Result<Vec<_>>>()?;
        let is_open = |column: &usize| matches!(slots[*column].ty, Type::Binary(_));
        let open = primary.iter().position(is_open).is_some_and(|n| n + 1 < primary.len() || !indexes.is_empty());
        if open || indexes.iter().any(|index| index.columns.iter().any(is_open)) {
            return Err(failed("table", "bytes can only be the last part of a primary key, without indexes"));
        }
        if indexes.iter().any(|index| index.key.len() > MAX_PARTS) {
            return Err(failed("table", format!("a key has more than {MAX_PARTS} columns")));
        }
        Ok(Layout { name: self.name.clone(), slots, primary, auto_increment, indexes, fixed_end: offset, texts })
    }
}

fn is_signed(ty: Type) -> bool {
    matches!(ty, Type::I8 | Type::I16 | Type::I32 | Type::I64 | Type::Decimal(..) | Type::DateTime)
}

/// A value of fixed size as a number.
fn number_of(value: ValueRef<'_>) -> Result<i64> {
    Ok(match value {
        ValueRef::Int(n) => n,
        ValueRef::UInt(n) => n as i64,
        ValueRef::F64(x) => x.to_bits() as i64,
        ValueRef::Decimal(d) => d.unscaled() as i64,
        ValueRef::DateTime(t) => t.unix_us(),
        other => return Err(failed("row", format!("{other} is not a number"))),
    })
}

fn bytes_of(value: ValueRef<'_>) -> Result<&[u8]> {
    match value {
        ValueRef::Text(text) => Ok(text.as_bytes()),
        ValueRef::Bytes(bytes) => Ok(bytes),
        other => Err(failed("row", format!("{other} is no text"))),
    }
}

impl Slot {
    fn push_part(&self, value: ValueRef<'_>, out: &mut Vec<u8>) -> Result<()> {
        if self.nullable {
            out.push(u8::from(!value.is_null()));
            if value.is_null() {
                return Ok(());
            }
        }
        if self.width == 0 {
            let bytes = bytes_of(value)?;
            if let Type::Binary(_) = self.ty {
                out.extend_from_slice(bytes);
                return Ok(());
            }
            if bytes.contains(&0) {
                return Err(failed("row", "text of a key holds a zero byte"));
            }
            out.extend_from_slice(bytes);
            out.push(0);
            return Ok(());
        }
        let turned = if is_signed(self.ty) { 1u64 << (self.width * 8 - 1) } else { 0 };
        let bits = number_of(value)? as u64 ^ turned;
        out.extend_from_slice(&bits.to_be_bytes()[8 - self.width..]);
        Ok(())
    }

    /// Bytes of the part that `key` begins with.
    fn part_bytes(&self, key: &[u8]) -> usize {
        match self.nullable {
            _ if matches!(self.ty, Type::Binary(_)) => key.len(),
            true if key.first() == Some(&0) => 1,
            nullable => {
                let head = usize::from(nullable);
                let rest = &key[head.min(key.len())..];
                let end = if self.width > 0 { self.width } else { text_end(rest) + 1 };
                (head + end).min(key.len())
            }
        }
    }

    fn number_in_key(&self, part: &[u8]) -> i64 {
        let bytes = &part[usize::from(self.nullable).min(part.len())..];
        let bits = bytes.iter().fold(0u64, |bits, byte| bits << 8 | u64::from(*byte));
        let turned = if is_signed(self.ty) { 1u64 << (self.width * 8 - 1) } else { 0 };
        self.extended(bits ^ turned)
    }

    fn number_in_value(&self, bytes: &[u8]) -> i64 {
        self.extended(bytes.iter().rev().fold(0u64, |bits, byte| bits << 8 | u64::from(*byte)))
    }

    /// The number of `width` bytes with its sign.
    fn extended(&self, bits: u64) -> i64 {
        let unused = 64 - self.width as u32 * 8;
        if is_signed(self.ty) { ((bits << unused) as i64) >> unused } else { bits as i64 }
    }
}

fn text_end(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len())
}

impl Layout {
    /// The index of that name.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn index(&self, name: &str) -> Result<usize> {
        let found = self.indexes.iter().position(|index| index.name == name);
        found.ok_or_else(|| failed("scan", format!("table {} has no index {name}", self.name)))
    }

    /// Appends the primary key of a whole row.
    pub(crate) fn push_primary(&self, row: &[ValueRef<'_>], out: &mut Vec<u8>) -> Result<()> {
        self.primary.iter().try_for_each(|column| self.slots[*column].push_part(row[*column], out))
    }

    /// Appends the first parts of the primary key, or of an index's.
    pub(crate) fn push_parts(&self, index: Option<usize>, parts: &[ValueRef<'_>], out: &mut Vec<u8>) -> Result<()> {
        self.push_parts_from(index, 0, parts, out)
    }

    /// Appends parts of a key from the one at place `first` on.
    pub(crate) fn push_parts_from(
        &self,
        index: Option<usize>,
        first: usize,
        parts: &[ValueRef<'_>],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let columns = index.map_or(&self.primary, |index| &self.indexes[index].key);
        let slots = columns[first..].iter().map(|column| &self.slots[*column]);
        slots.zip(parts).try_for_each(|(slot, part)| slot.push_part(*part, out))
    }

    /// Appends the value of a whole row.
    pub(crate) fn push_value(&self, row: &[ValueRef<'_>], out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        out.resize(start + self.fixed_end + self.texts * 2, 0);
        let texts_start = out.len();
        for (slot, value) in self.slots.iter().zip(row) {
            match slot.place {
                Place::Key(_) => {}
                Place::Fixed(_) => self.put_fixed(slot, *value, &mut out[start..])?,
                Place::Text(n) => {
                    self.put_null(slot, value.is_null(), &mut out[start..])?;
                    out.extend_from_slice(if value.is_null() { b"" } else { bytes_of(*value)? });
                    self.put_end(n, out.len() - texts_start, &mut out[start..])?;
                }
            }
        }
        Ok(())
    }

    fn put_null(&self, slot: &Slot, is_null: bool, value: &mut [u8]) -> Result<()> {
        match slot.null_bit {
            Some(bit) if is_null => value[bit / 8] |= 1 << (bit % 8),
            Some(bit) => value[bit / 8] &= !(1 << (bit % 8)),
            None if is_null => return Err(failed("row", format!("a column of {} may not be NULL", self.name))),
            None => {}
        }
        Ok(())
    }

    fn put_fixed(&self, slot: &Slot, new: ValueRef<'_>, value: &mut [u8]) -> Result<()> {
        let Place::Fixed(offset) = slot.place else { return Ok(()) };
        self.put_null(slot, new.is_null(), value)?;
        let number = if new.is_null() { 0 } else { number_of(new)? };
        value[offset..offset + slot.width].copy_from_slice(&number.to_le_bytes()[..slot.width]);
        Ok(())
    }

    fn put_end(&self, n: usize, end: usize, value: &mut [u8]) -> Result<()> {
        let end = u16::try_from(end).map_err(|_| failed("row", format!("the texts have {end} bytes")))?;
        let at = self.fixed_end + n * 2;
        value[at..at + 2].copy_from_slice(&end.to_le_bytes());
        Ok(())
    }

    fn end_of(&self, n: usize, value: &[u8]) -> usize {
        let at = self.fixed_end + n * 2;
        usize::from(u16::from_le_bytes([value[at], value[at + 1]]))
    }

    /// Where the nth text of a value is.
    fn text_range(&self, n: usize, value: &[u8]) -> std::ops::Range<usize> {
        let texts = self.fixed_end + self.texts * 2;
        let start = if n == 0 { 0 } else { self.end_of(n - 1, value) };
        texts + start..texts + self.end_of(n, value)
    }

    /// Changes a column of a row's value.
    ///
    /// # Errors
    /// A column of the primary key; a value that is not of its type.
    pub(crate) fn change(&self, column: usize, new: ValueRef<'_>, value: &mut Vec<u8>) -> Result<()> {
        let slot = &self.slots[column];
        match slot.place {
            Place::Key(_) => Err(failed("row", format!("a key column of {} cannot be changed", self.name))),
            Place::Fixed(_) => self.put_fixed(slot, new, value),
            Place::Text(n) => {
                self.put_null(slot, new.is_null(), value)?;
                let bytes = if new.is_null() { b"" } else { bytes_of(new)? };
                let range = self.text_range(n, value);
                let (old, new) = (range.len(), bytes.len());
                value.splice(range, bytes.iter().copied());
                let ends = (n..self.texts).map(|n| (n, self.end_of(n, value))).collect::<Vec<_>>();
                ends.into_iter().try_for_each(|(n, end)| self.put_end(n, end + new - old, value))
            }
        }
    }

    /// The columns of an index, as bits.
    pub(crate) fn columns_of(&self, index: usize) -> u64 {
        self.indexes[index].columns.iter().fold(0, |bits, column| bits | 1 << column)
    }

    /// Appends the entry of a row in an index.
    pub(crate) fn push_entry(&self, index: usize, row: &RowBytes<'_>, out: &mut Vec<u8>) {
        for column in &self.indexes[index].key {
            let slot = &self.slots[*column];
            if let Place::Key(n) = slot.place {
                out.extend_from_slice(self.part(n, row.key));
                continue;
            }
            // What is in a row was checked when it was written: it is of its type.
            let value = match row.is_null(*column) {
                true => ValueRef::Null,
                false if slot.width > 0 => ValueRef::Int(row.number(*column)),
                false => ValueRef::Bytes(row.bytes(*column)),
            };
            let _ = slot.push_part(value, out);
        }
    }

    /// Appends the primary key that an entry of an index holds.
    pub(crate) fn push_primary_of(&self, index: usize, entry: &[u8], out: &mut Vec<u8>) {
        let (mut ends, mut end) = ([0; MAX_PARTS + 1], 0);
        let layout = &self.indexes[index];
        for (n, column) in layout.key.iter().enumerate() {
            end += self.slots[*column].part_bytes(&entry[end..]);
            ends[n + 1] = end;
        }
        layout.primary.iter().for_each(|n| out.extend_from_slice(&entry[ends[*n]..ends[*n + 1]]));
    }

    /// The nth part of a primary key.
    fn part<'k>(&self, n: usize, key: &'k [u8]) -> &'k [u8] {
        let mut start = 0;
        for column in &self.primary[..n] {
            start += self.slots[*column].part_bytes(&key[start..]);
        }
        &key[start..start + self.slots[self.primary[n]].part_bytes(&key[start..])]
    }
}

/// A row, in place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowBytes<'r> {
    /// Of its table.
    pub(crate) layout: &'r Layout,
    /// Its primary key.
    pub(crate) key: &'r [u8],
    /// Its other columns.
    pub(crate) value: &'r [u8],
}

impl<'r> RowBytes<'r> {
    /// A column of fixed size.
    pub(crate) fn number(&self, column: usize) -> i64 {
        let slot = &self.layout.slots[column];
        match slot.place {
            Place::Key(n) => slot.number_in_key(self.layout.part(n, self.key)),
            Place::Fixed(offset) => slot.number_in_value(&self.value[offset..offset + slot.width]),
            Place::Text(_) => 0,
        }
    }

    /// A text.
    pub(crate) fn bytes(&self, column: usize) -> &'r [u8] {
        let slot = &self.layout.slots[column];
        match slot.place {
            Place::Key(n) => {
                let part = &self.layout.part(n, self.key)[usize::from(slot.nullable)..];
                if let Type::Binary(_) = slot.ty { part } else { &part[..text_end(part)] }
            }
            Place::Fixed(_) => b"",
            Place::Text(n) => &self.value[self.layout.text_range(n, self.value)],
        }
    }

    /// Whether the column has no value.
    pub(crate) fn is_null(&self, column: usize) -> bool {
        let slot = &self.layout.slots[column];
        match slot.place {
            Place::Key(n) => slot.nullable && self.layout.part(n, self.key).first() == Some(&0),
            _ => slot.null_bit.is_some_and(|bit| self.value[bit / 8] & 1 << (bit % 8) != 0),
        }
    }
}

#[cfg(test)]
#[path = "layout_test.rs"]
mod tests;
