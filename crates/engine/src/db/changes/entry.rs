//! The encoding of changes. The changes of a transaction are one stream of bytes, which is divided into parts; each
//! part is a row of the change log's table.
//!
//! ```text
//! begin     7 u8 | time i64                        of the transaction: the time in microseconds since 1970
//! table     1 u8 | id u32 | length u16 | name      before the first change of each table
//! insert    2 u8 | table u32 | length u16 | key | length u32 | row
//! update    3 u8 | as insert: the row as it is then
//! delete    4 u8 | table u32 | length u16 | key
//! changed   5 u8 | table u32                       the table itself is about to be changed, truncated or dropped
//! end       6 u8                                   of the transaction
//! ```
//! Integers are little-endian. Keys and rows are bytes as the table's trees have them; columns that are on overflow
//! pages are in the row.

use crate::error::{Error, Result};
use crate::table::definition::MAX_TABLE_NAME_BYTES;
use crate::txn::MAX_ROW_BYTES;
use crate::types::TableId;

/// A change, borrowed from the bytes of its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry<'a> {
    Begin { unix_us: i64 },
    Table { id: TableId, name: &'a str },
    Insert { table: TableId, key: &'a [u8], row: &'a [u8] },
    Update { table: TableId, key: &'a [u8], row: &'a [u8] },
    Delete { table: TableId, key: &'a [u8] },
    TableChanged { table: TableId },
    End,
}

/// Appends a change.
pub(super) fn put(entry: &Entry<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    match *entry {
        Entry::Begin { unix_us } => {
            out.push(7);
            out.extend_from_slice(&unix_us.to_le_bytes());
        }
        Entry::Table { id, name } => {
            put_head(1, id, out);
            put_short(name.as_bytes(), out);
        }
        Entry::Insert { table, key, row } => put_row(2, table, key, row, out),
        Entry::Update { table, key, row } => put_row(3, table, key, row, out),
        Entry::Delete { table, key } => {
            put_head(4, table, out);
            put_short(key, out);
        }
        Entry::TableChanged { table } => put_head(5, table, out),
        Entry::End => out.push(6),
    }
    let is_read_again = || read(&out[start..]).is_ok_and(|read| read == Some((*entry, out.len() - start)));
    debug_assert!(is_read_again(), "a change is not read as it is written: {entry:?}");
}

fn put_head(kind: u8, table: TableId, out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(&table.0.to_le_bytes());
}

/// Names and keys are shorter than a page.
fn put_short(bytes: &[u8], out: &mut Vec<u8>) {
    debug_assert!(bytes.len() <= usize::from(u16::MAX), "a key or name of {} bytes", bytes.len());
    out.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn put_row(kind: u8, table: TableId, key: &[u8], row: &[u8], out: &mut Vec<u8>) {
    put_head(kind, table, out);
    put_short(key, out);
    debug_assert!(row.len() <= MAX_ROW_BYTES, "a row of {} bytes, which no reader takes", row.len());
    out.extend_from_slice(&(row.len() as u32).to_le_bytes());
    out.extend_from_slice(row);
}

/// Reads the change at the beginning of `bytes`, and returns its length too; `None` if it continues in the next part.
///
/// # Errors
/// [`Error::Corrupt`] if no change begins so.
pub(super) fn read(bytes: &[u8]) -> Result<Option<(Entry<'_>, usize)>> {
    let mut reader = Reader { bytes, at: 0 };
    let entry = reader.entry()?;
    Ok(entry.map(|entry| (entry, reader.at)))
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

fn corrupt(what: &str) -> Error {
    Error::Corrupt(format!("the change log: {what}"))
}

impl<'a> Reader<'a> {
    fn entry(&mut self) -> Result<Option<Entry<'a>>> {
        let Some([kind]) = self.array() else { return Ok(None) };
        match kind {
            1..=5 => {}
            6 => return Ok(Some(Entry::End)),
            7 => return Ok(self.array().map(i64::from_le_bytes).map(|unix_us| Entry::Begin { unix_us })),
            other => return Err(corrupt(&format!("a change of unknown kind {other}"))),
        }
        let Some(table) = self.array().map(u32::from_le_bytes).map(TableId) else { return Ok(None) };
        if kind == 5 {
            return Ok(Some(Entry::TableChanged { table }));
        }
        let Some(short) = self.array().map(u16::from_le_bytes).and_then(|len| self.take(len.into())) else {
            return Ok(None);
        };
        match kind {
            1 => name_of(short).map(|name| Some(Entry::Table { id: table, name })),
            4 => Ok(Some(Entry::Delete { table, key: short })),
            kind => Ok(self.row()?.map(|row| match kind {
                2 => Entry::Insert { table, key: short, row },
                _ => Entry::Update { table, key: short, row },
            })),
        }
    }

    fn row(&mut self) -> Result<Option<&'a [u8]>> {
        let Some(len) = self.array().map(u32::from_le_bytes) else { return Ok(None) };
        match len as usize {
            len if len > MAX_ROW_BYTES => Err(corrupt(&format!("a row of {len} bytes"))),
            len => Ok(self.take(len)),
        }
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N).and_then(|bytes| bytes.first_chunk().copied())
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..)?.get(..len)?;
        self.at += len;
        Some(taken)
    }
}

fn name_of(bytes: &[u8]) -> Result<&str> {
    let name = std::str::from_utf8(bytes).ok().filter(|name| name.len() <= MAX_TABLE_NAME_BYTES);
    name.ok_or_else(|| corrupt("the name of a table is too long or not UTF-8"))
}

/// The number in a key of the table.
pub(super) fn sequence_in(key: &[u8]) -> Option<u64> {
    key.first_chunk().map(|bytes: &[u8; 8]| u64::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_survive_a_round_trip_and_every_cut_asks_for_more() {
        let (table, key, row) = (TableId(77), &b"key"[..], &[9u8; 300][..]);
        let entries = [
            Entry::Begin { unix_us: -7 },
            Entry::Table { id: table, name: "people" },
            Entry::Insert { table, key, row },
            Entry::Update { table, key, row: b"" },
            Entry::Delete { table, key },
            Entry::TableChanged { table },
            Entry::End,
        ];
        for entry in entries {
            let mut bytes = Vec::new();
            put(&entry, &mut bytes);
            assert!((0..bytes.len()).all(|len| read(&bytes[..len]).unwrap().is_none()), "{entry:?}");
            let len = bytes.len();
            bytes.push(6);
            assert_eq!(read(&bytes).unwrap(), Some((entry, len)));
        }
    }

    #[test]
    fn what_is_no_change_is_refused() {
        assert!(read(&[0]).is_err() && read(&[8]).is_err());
        assert!(read(&[1, 0, 0, 0, 0, 1, 0, 0xff]).is_err());
        assert!(read(&[2, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]).is_err());
        assert_eq!((sequence_in(&[0; 7]), sequence_in(&[0, 0, 0, 0, 0, 0, 1, 0, 9])), (None, Some(256)));
    }
}
