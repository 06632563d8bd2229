//! Undo records as bytes.
//!
//! ```text
//! every record   length u16 | kind u8 | flags u8 | body | length u16
//! Header         trx_id u64 | trx_no u64              (flags = state of the transaction)
//! Insert         table u32 | key length u16 | key
//! Update         table u32 | prev trx_id u48 | prev roll_ptr u48 | key length u16 | key | prefix u16 | suffix u16
//!                | with ENTRY_KEYS: length u16 of the entries | entries | old middle
//! entry          index u32 | length u16 | index columns
//! Delete         as Update; the old middle is empty, or the overflow reference of the row
//! Overflow       table u32 | first page u32 | stamp u64  (a chain of pages this transaction wrote)
//! ```
//! The length in front lets purge and recovery walk forward, the one behind lets rollback walk backward. A length of
//! zero, or no room for one, ends a page's records: pages are formatted with zeros and records are only ever appended.
//!
//! `flags` of Update and Delete are the row's old flags, plus [`ENTRIES_CHANGED`] and [`ENTRY_KEYS`]. The kind byte carries two bits that are
//! set later, in place: [`DEAD`] once the record has been rolled back, [`FREEING`] once purge has begun to free the
//! overflow chain the record refers to.
//!
//! Purge needs no other version to find the pages and entries an old version left behind: an old payload that is an
//! overflow reference is stored whole (prefix and suffix zero), and a change that moves secondary entries stores the index
//! columns of those it moved, or the old payload whole where that is no longer.

use crate::error::{Error, Result};
use crate::txn::stored::{DELETE_MARKED, OVERFLOW, OverflowRef, RowHeader, get_u48, put_u48};
use crate::txn::write::Middle;
use crate::types::{IndexId, PageNo, RollPtr, TableId, TxnId};

/// The record has been rolled back.
pub(crate) const DEAD: u8 = 0x80;
/// Purge frees the overflow chain this record refers to.
pub(crate) const FREEING: u8 = 0x40;
/// Flag: the change moved secondary entries, so purge has to look at the record.
pub(crate) const ENTRIES_CHANGED: u8 = 4;
/// Flag: the record has the entries it moved; otherwise they follow from the old row, which is whole.
const ENTRY_KEYS: u8 = 8;

/// Offset of the kind byte in a record.
pub(crate) const KIND_AT: usize = 2;
/// Offset of a header record's state byte; `trx_no` is at [`HEADER_TRX_NO_AT`].
pub(crate) const HEADER_STATE_AT: usize = 3;
/// Offset of a header record's `trx_no`.
pub(crate) const HEADER_TRX_NO_AT: usize = 12;
/// Bytes of a header record.
pub(crate) const HEADER_RECORD_BYTES: usize = 22;
const MIN_RECORD_BYTES: usize = 6;

/// What a record undoes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Starts a transaction.
    Header,
    /// A row was inserted.
    Insert,
    /// A row was changed, or inserted over a delete-marked one.
    Update,
    /// A row was delete-marked.
    Delete,
    /// Overflow pages were allocated.
    Overflow,
}

/// What became of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    /// Running, or cut off by a crash. (2 is kept for PREPARED.)
    Active = 1,
    Committed = 3,
    /// Rolled back, wholly.
    RolledBack = 4,
}

/// One record, borrowed from the bytes of its page (or from a copy of the record).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    pub(crate) kind: Kind,
    pub(crate) dead: bool,
    pub(crate) freeing: bool,
    pub(crate) flags: u8,
    /// Whole length in bytes.
    pub(crate) bytes: usize,
    body: &'a [u8],
}

/// Body of an Update or Delete record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change<'a> {
    pub(crate) table: TableId,
    /// Header of the version before.
    pub(crate) old: RowHeader,
    pub(crate) key: &'a [u8],
    pub(crate) middle: Middle,
    pub(crate) old_middle: &'a [u8],
    /// The entries the change moved, if the record has them; see [`next_entry`].
    pub(crate) entries: Option<&'a [u8]>,
    /// Offset in the record of the first-page field of an overflow reference (meaningful if `old` is an overflow row).
    pub(crate) first_page_at: usize,
}

/// Offset in an Overflow record of its first-page field.
pub(crate) const OVERFLOW_FIRST_PAGE_AT: usize = 8;

fn corrupt(what: &str) -> Error {
    Error::Corrupt(format!("an undo record {what}"))
}

impl<'a> Record<'a> {
    /// Reads the record at the start of `bytes`; `None` where records end.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Option<Record<'a>>> {
        let Some(&[low, high]) = bytes.first_chunk::<2>() else { return Ok(None) };
        let length = usize::from(u16::from_le_bytes([low, high]));
        if length == 0 {
            return Ok(None);
        }
        if length < MIN_RECORD_BYTES || length > bytes.len() || bytes[length - 2..length] != [low, high] {
            return Err(corrupt("has no proper length"));
        }
        let kind = match bytes[KIND_AT] & !(DEAD | FREEING) {
            1 => Kind::Header,
            2 => Kind::Insert,
            3 => Kind::Update,
            4 => Kind::Delete,
            5 => Kind::Overflow,
            other => return Err(corrupt(&format!("is of unknown kind {other}"))),
        };
        Ok(Some(Record {
            kind,
            dead: bytes[KIND_AT] & DEAD != 0,
            freeing: bytes[KIND_AT] & FREEING != 0,
            flags: bytes[3],
            bytes: length,
            body: &bytes[4..length - 2],
        }))
    }

    /// Id, state and commit number of a Header record.
    pub(crate) fn header(&self) -> Result<(TxnId, State, u64)> {
        let mut body = Reader(self.body);
        let state = match self.flags {
            1 => State::Active,
            3 => State::Committed,
            4 => State::RolledBack,
            other => return Err(corrupt(&format!("gives a transaction the unknown state {other}"))),
        };
        if self.kind != Kind::Header {
            return Err(corrupt("was taken for a transaction header"));
        }
        Ok((TxnId(body.u64()?), state, body.u64()?))
    }

    /// Table and key of an Insert, Update or Delete record.
    pub(crate) fn row(&self) -> Result<(TableId, &'a [u8])> {
        let mut body = Reader(self.body);
        let table = TableId(body.u32()?);
        match self.kind {
            Kind::Insert => {}
            Kind::Update | Kind::Delete => drop(body.take(12)?),
            Kind::Header | Kind::Overflow => return Err(corrupt("of a row was expected")),
        }
        let key_bytes = usize::from(body.u16()?);
        Ok((table, body.take(key_bytes)?))
    }

    /// Everything in an Update or Delete record.
    pub(crate) fn change(&self) -> Result<Change<'a>> {
        if !matches!(self.kind, Kind::Update | Kind::Delete) {
            return Err(corrupt("of a changed row was expected"));
        }
        let mut body = Reader(self.body);
        let table = TableId(body.u32()?);
        let (trx_id, roll_ptr) = (TxnId(body.u48()?), RollPtr(body.u48()?));
        let key_bytes = usize::from(body.u16()?);
        let key = body.take(key_bytes)?;
        let middle = Middle { prefix: body.u16()?.into(), suffix: body.u16()?.into() };
        let mut entries = None;
        if self.flags & ENTRY_KEYS != 0 {
            let length = usize::from(body.u16()?);
            entries = Some(body.take(length)?);
        }
        let old_middle = body.0;
        let old = RowHeader { flags: self.flags & (DELETE_MARKED | OVERFLOW), trx_id, roll_ptr };
        let first_page_at = 4 + self.body.len() - old_middle.len() + 4;
        Ok(Change { table, old, key, middle, old_middle, entries, first_page_at })
    }

    /// Table, first page and stamp of an Overflow record; page 0 when the chain is gone.
    pub(crate) fn overflow(&self) -> Result<(TableId, PageNo, u64)> {
        if self.kind != Kind::Overflow {
            return Err(corrupt("of an overflow chain was expected"));
        }
        let mut body = Reader(self.body);
        Ok((TableId(body.u32()?), PageNo(body.u32()?), body.u64()?))
    }

    /// Whether the change moved secondary entries.
    pub(crate) fn entries_changed(&self) -> bool {
        self.flags & ENTRIES_CHANGED != 0
    }

    /// Whether purge has anything to do for this record.
    pub(crate) fn needs_purge(&self) -> bool {
        !self.dead
            && match self.kind {
                Kind::Delete => true,
                Kind::Update => self.flags & (ENTRIES_CHANGED | OVERFLOW) != 0,
                Kind::Header | Kind::Insert | Kind::Overflow => false,
            }
    }
}

impl Change<'_> {
    /// Turns the payload this record's change made into the one before.
    pub(crate) fn apply(&self, payload: &mut Vec<u8>) -> Result<()> {
        self.middle.swap(payload, self.old_middle)
    }

    /// The overflow reference of the old version, if it was an overflow row whose chain is not freed yet.
    pub(crate) fn old_overflow(&self) -> Result<Option<OverflowRef>> {
        if !self.old.is_overflow() {
            return Ok(None);
        }
        let reference = OverflowRef::decode(self.old_middle)?;
        Ok((reference.first != PageNo(0)).then_some(reference))
    }
}

/// Takes the first of a change's entries off: its index and its index columns; `None` at the end.
pub(crate) fn next_entry<'a>(entries: &mut &'a [u8]) -> Result<Option<(IndexId, &'a [u8])>> {
    if entries.is_empty() {
        return Ok(None);
    }
    let mut rest = Reader(entries);
    let index = IndexId(rest.u32()?);
    let length = usize::from(rest.u16()?);
    let columns = rest.take(length)?;
    *entries = rest.0;
    Ok(Some((index, columns)))
}

/// Appends an entry for [`NewChange::entries`].
pub(crate) fn put_entry(out: &mut Vec<u8>, index: IndexId, columns: &[u8]) {
    out.extend_from_slice(&index.0.to_le_bytes());
    out.extend_from_slice(&length_bytes(columns.len()));
    out.extend_from_slice(columns);
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(bytes).ok_or_else(|| corrupt("is cut short"))?;
        self.0 = tail;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (head, tail) = self.0.split_first_chunk::<N>().ok_or_else(|| corrupt("is cut short"))?;
        self.0 = tail;
        Ok(*head)
    }

    fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u48(&mut self) -> Result<u64> {
        self.array::<6>().map(|bytes| get_u48(&bytes))
    }

    fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }
}

/// Bytes in front of the key of an Update or Delete record.
const CHANGE_FIXED_BYTES: usize = 22;
/// Bytes in front of the key of an Insert record.
const INSERT_FIXED_BYTES: usize = 10;

/// The bytes of a record of `rest` bytes in all up to its key length field; `N` of them.
fn fixed<const N: usize>(kind: u8, flags: u8, rest: usize) -> ([u8; N], [u8; 2]) {
    let mut bytes = [0; N];
    // A record always fits a page, and pages have at most 16 KiB; a longer one is refused by `UndoLog::extend`.
    let length = u16::try_from(N + rest + 2).unwrap_or(u16::MAX).to_le_bytes();
    bytes[..2].copy_from_slice(&length);
    (bytes[2], bytes[3]) = (kind, flags);
    (bytes, length)
}

fn length_bytes(bytes: usize) -> [u8; 2] {
    u16::try_from(bytes).unwrap_or(u16::MAX).to_le_bytes()
}

/// Appends a transaction header in state Active.
pub(crate) fn put_header(out: &mut Vec<u8>, trx_id: TxnId) {
    let (mut bytes, length) = fixed::<{ HEADER_RECORD_BYTES - 2 }>(1, State::Active as u8, 0);
    bytes[4..12].copy_from_slice(&trx_id.0.to_le_bytes());
    out.extend_from_slice(&bytes);
    out.extend_from_slice(&length);
}

/// Appends the record of an insert.
pub(crate) fn put_insert(out: &mut Vec<u8>, table: TableId, key: &[u8]) {
    let (mut bytes, length) = fixed::<INSERT_FIXED_BYTES>(2, 0, key.len());
    bytes[4..8].copy_from_slice(&table.0.to_le_bytes());
    bytes[8..10].copy_from_slice(&length_bytes(key.len()));
    out.extend_from_slice(&bytes);
    out.extend_from_slice(key);
    out.extend_from_slice(&length);
}

/// What [`put_change`] records.
pub(crate) struct NewChange<'a> {
    /// Delete, else Update.
    pub(crate) delete: bool,
    pub(crate) table: TableId,
    pub(crate) key: &'a [u8],
    pub(crate) old: RowHeader,
    pub(crate) entries_changed: bool,
    pub(crate) middle: Middle,
    pub(crate) old_middle: &'a [u8],
    /// Entries the change moves, of [`put_entry`]; with entries changed and without these the middle is the whole.
    pub(crate) entries: Option<&'a [u8]>,
}

/// Appends the record of an update or a delete.
pub(crate) fn put_change(out: &mut Vec<u8>, change: &NewChange<'_>) {
    let NewChange { old, key, middle, old_middle, .. } = change;
    let changed = if change.entries_changed { ENTRIES_CHANGED } else { 0 };
    let keys = if change.entries.is_some() { ENTRY_KEYS } else { 0 };
    let flags = old.flags & (DELETE_MARKED | OVERFLOW) | changed | keys;
    let kind = if change.delete { 4 } else { 3 };
    let entries_bytes = change.entries.map_or(0, |entries| 2 + entries.len());
    let rest = key.len() + 4 + entries_bytes + old_middle.len();
    let (mut bytes, length) = fixed::<CHANGE_FIXED_BYTES>(kind, flags, rest);
    bytes[4..8].copy_from_slice(&change.table.0.to_le_bytes());
    put_u48(&mut bytes[8..], old.trx_id.0);
    put_u48(&mut bytes[14..], old.roll_ptr.0);
    bytes[20..].copy_from_slice(&length_bytes(key.len()));
    let [prefix, suffix] = [middle.prefix, middle.suffix].map(length_bytes);
    out.reserve(CHANGE_FIXED_BYTES + rest + 2);
    out.extend_from_slice(&bytes);
    out.extend_from_slice(key);
    out.extend_from_slice(&[prefix[0], prefix[1], suffix[0], suffix[1]]);
    if let Some(entries) = change.entries {
        out.extend_from_slice(&length_bytes(entries.len()));
        out.extend_from_slice(entries);
    }
    out.extend_from_slice(old_middle);
    out.extend_from_slice(&length);
}

/// Appends the record of a new overflow chain.
pub(crate) fn put_overflow(out: &mut Vec<u8>, table: TableId, first: PageNo, stamp: u64) {
    let (mut bytes, length) = fixed::<{ OVERFLOW_RECORD_BYTES - 2 }>(5, 0, 0);
    bytes[4..8].copy_from_slice(&table.0.to_le_bytes());
    bytes[8..12].copy_from_slice(&first.0.to_le_bytes());
    bytes[12..].copy_from_slice(&stamp.to_le_bytes());
    out.extend_from_slice(&bytes);
    out.extend_from_slice(&length);
}

/// Bytes of an Overflow record.
pub(crate) const OVERFLOW_RECORD_BYTES: usize = 22;

#[cfg(test)]
mod tests {
    use super::*;

    fn one(bytes: &[u8]) -> Record<'_> {
        Record::parse(bytes).unwrap().unwrap()
    }

    #[test]
    fn headers() {
        let mut bytes = Vec::new();
        put_header(&mut bytes, TxnId(0x1234_5678_9abc));
        assert_eq!(bytes.len(), HEADER_RECORD_BYTES);
        assert_eq!(one(&bytes).header().unwrap(), (TxnId(0x1234_5678_9abc), State::Active, 0));
        bytes[HEADER_STATE_AT] = State::Committed as u8;
        bytes[HEADER_TRX_NO_AT..HEADER_TRX_NO_AT + 8].copy_from_slice(&99u64.to_le_bytes());
        assert_eq!(one(&bytes).header().unwrap(), (TxnId(0x1234_5678_9abc), State::Committed, 99));
        bytes[HEADER_STATE_AT] = 77;
        assert!(one(&bytes).header().is_err());
    }

    #[test]
    fn rows() {
        let mut bytes = Vec::new();
        put_insert(&mut bytes, TableId(7), b"key");
        assert_eq!(one(&bytes).row().unwrap(), (TableId(7), &b"key"[..]));
        assert!(!one(&bytes).needs_purge() && one(&bytes).change().is_err());
        bytes.clear();
        let old = RowHeader { flags: 0, trx_id: TxnId(5), roll_ptr: RollPtr::new(PageNo(9), 64) };
        let (old_row, mut row) = (b"name=Ada;n=1;".to_vec(), b"name=Grace;n=1;".to_vec());
        let middle = Middle::of(&old_row, &row);
        let old_middle = middle.cut(&old_row);
        let mut entries = Vec::new();
        put_entry(&mut entries, IndexId(3), b"Ada");
        put_entry(&mut entries, IndexId(9), b"");
        let change = NewChange {
            delete: false,
            table: TableId(7),
            key: b"key",
            old,
            entries_changed: true,
            middle,
            old_middle,
            entries: Some(&entries),
        };
        put_change(&mut bytes, &change);
        let record = one(&bytes);
        assert_eq!((record.row().unwrap(), record.bytes), ((TableId(7), &b"key"[..]), bytes.len()));
        assert!(record.needs_purge() && record.entries_changed());
        let change = record.change().unwrap();
        assert_eq!((change.old, change.key), (old, &b"key"[..]));
        change.apply(&mut row).unwrap();
        assert_eq!(row, old_row);
        let mut left = change.entries.unwrap();
        assert_eq!(next_entry(&mut left).unwrap(), Some((IndexId(3), &b"Ada"[..])));
        assert_eq!(next_entry(&mut left).unwrap(), Some((IndexId(9), &b""[..])));
        assert_eq!(next_entry(&mut left).unwrap(), None);
        assert!(next_entry(&mut &entries[..8]).is_err(), "cut short");
        bytes[KIND_AT] |= DEAD;
        assert!(one(&bytes).dead && !one(&bytes).needs_purge());
    }

    #[test]
    fn overflow_references_can_be_found_in_place() {
        let mut bytes = Vec::new();
        let reference = OverflowRef { total_bytes: 1 << 20, first: PageNo(0x0102_0304), stamp: 99 };
        let old = RowHeader { flags: OVERFLOW, ..RowHeader::default() };
        put_change(
            &mut bytes,
            &NewChange {
                delete: true,
                table: TableId(1),
                key: b"k",
                old,
                entries_changed: false,
                middle: Middle::WHOLE,
                old_middle: &reference.encode(),
                entries: None,
            },
        );
        let change = one(&bytes).change().unwrap();
        assert_eq!(change.old_overflow().unwrap(), Some(reference));
        assert_eq!(bytes[change.first_page_at..][..4], [4, 3, 2, 1]);
        bytes.clear();
        put_overflow(&mut bytes, TableId(3), PageNo(0x0102_0304), 99);
        assert_eq!(bytes.len(), OVERFLOW_RECORD_BYTES);
        assert_eq!(bytes[OVERFLOW_FIRST_PAGE_AT..][..4], [4, 3, 2, 1]);
        assert_eq!(one(&bytes).overflow().unwrap(), (TableId(3), PageNo(0x0102_0304), 99));
    }

    #[test]
    fn broken_records_are_refused() {
        assert!(Record::parse(&[]).unwrap().is_none() && Record::parse(&[0, 0, 9, 9]).unwrap().is_none());
        let mut bytes = Vec::new();
        put_insert(&mut bytes, TableId(7), b"key");
        for at in 0..bytes.len() {
            for value in [0, 1, 5, 0x7f, 0xff] {
                let mut broken = bytes.clone();
                broken[at] = value;
                if let Ok(Some(record)) = Record::parse(&broken) {
                    // Whatever it says, it stays within its bytes.
                    let _ = (record.row(), record.change().is_ok(), record.header(), record.overflow());
                }
            }
            assert!(!matches!(Record::parse(&bytes[..at]), Ok(Some(_))));
        }
    }
}
