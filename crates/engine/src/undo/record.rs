//! Undo records as bytes.
//!
//! ```text
//! every record   length u16 | kind u8 | flags u8 | body | length u16
//! Header         trx_id u64 | trx_no u64              (flags = state of the transaction)
//! Insert         table u32 | key length u16 | key
//! Update         table u32 | prev trx_id u48 | prev roll_ptr u48 | key length u16 | key | prefix u16 | suffix u16
//!                | with CHAINS: number u8 | overflow references
//!                | with ENTRY_KEYS: length u16 of the entries | entries | old middle
//! entry          index u32 | length u16 | index columns
//! Delete         as Update; the old middle is empty
//! Overflow       table u32 | first page u32 | stamp u64  (a chain of pages this transaction wrote)
//! Xid            time u64 | records u64 | format id i32 | lengths u8 u8 | global id | branch qualifier
//! ```
//! The length in front lets purge and recovery walk forward, the one at the end lets rollback walk backward. A length
//! of zero, or no space for one, ends a page's records: pages are formatted with zeros and records are only ever
//! appended.
//!
//! `flags` of Update and Delete are the row's old flags, plus [`ENTRIES_CHANGED`], [`ENTRY_KEYS`] and [`CHAINS`]. The
//! kind byte carries two bits that are set later, in place: [`DEAD`] once the record has been rolled back, [`FREEING`]
//! once the overflow chains that the record names belong to it alone and are being freed.
//!
//! Purge finds the pages and entries of an old version without another version: the record names the overflow chains
//! that the new version no longer has (a deletion: all chains of the row), and a change that moves secondary entries
//! stores their index columns, or the whole old payload if that is not longer.

use crate::error::{Error, Result};
use crate::row::diff::DiffRange;
use crate::row::format::{DELETE_MARKED, OVERFLOW, OVERFLOW_REF_BYTES, OverflowRef, RowHeader, get_u48};
use crate::types::{IndexId, PageNo, RollPtr, TableId, TxnId};
use crate::undo::xid::Xid;

/// The record has been rolled back.
pub(crate) const DEAD: u8 = 0x80;
/// The overflow chains that this record names are being freed.
pub(crate) const FREEING: u8 = 0x40;
/// Flag: the change moved secondary entries, so purge has to look at the record.
pub(crate) const ENTRIES_CHANGED: u8 = 4;
/// Flag: the record has the entries it moved; otherwise they follow from the old row, which is whole.
pub(super) const ENTRY_KEYS: u8 = 8;
/// Flag: the record names overflow chains.
pub(super) const CHAINS: u8 = 16;

/// Offset of the kind byte in a record.
pub(crate) const KIND_AT: usize = 2;
/// Offset of a header record's state byte; `trx_no` is at [`HEADER_TRX_NO_AT`].
pub(crate) const HEADER_STATE_AT: usize = 3;
/// Offset of a header record's `trx_no`.
pub(crate) const HEADER_TRX_NO_AT: usize = 12;
pub(crate) const HEADER_RECORD_BYTES: usize = 22;
const MIN_RECORD_BYTES: usize = 6;

/// The kind of change that a record undoes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UndoKind {
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
    /// The transaction is prepared under this name, if its header says that it is prepared.
    Xid,
}

/// The outcome of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum TxnState {
    /// Running, or cut off by a crash.
    Active = 1,
    /// Its changes are whole and durable; its coordinator says how it ends. Its last record is the Xid record.
    Prepared = 2,
    Committed = 3,
    /// Rolled back completely.
    RolledBack = 4,
}

/// One record, borrowed from the bytes of its page (or from a copy of the record).
#[derive(Clone, Copy, Debug)]
pub(crate) struct UndoRecord<'a> {
    pub(crate) kind: UndoKind,
    pub(crate) dead: bool,
    pub(crate) freeing: bool,
    pub(crate) flags: u8,
    /// Whole length in bytes.
    pub(crate) bytes: usize,
    body: &'a [u8],
}

/// Body of an Update or Delete record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UndoChange<'a> {
    pub(crate) table: TableId,
    /// Header of the version before.
    pub(crate) old: RowHeader,
    pub(crate) key: &'a [u8],
    pub(crate) middle: DiffRange,
    pub(crate) old_middle: &'a [u8],
    /// The entries the change moved, if the record has them; see [`next_entry`].
    pub(crate) entries: Option<&'a [u8]>,
    /// References to the overflow chains that the version after does not have, and their offset in the record.
    chains: &'a [u8],
    chains_at: usize,
}

/// The contents of an Xid record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PreparedMark {
    pub(crate) xid: Xid,
    /// Time of the prepare in microseconds since 1970.
    pub(crate) unix_us: u64,
    /// Undo records that it had written.
    pub(crate) records: u64,
}

pub(crate) const OVERFLOW_RECORD_BYTES: usize = 22;
/// Offset in an Overflow record of its first-page field.
pub(crate) const OVERFLOW_FIRST_PAGE_AT: usize = 8;

fn corrupt(what: &str) -> Error {
    Error::Corrupt(format!("an undo record {what}"))
}

impl<'a> UndoRecord<'a> {
    /// Reads the record at the start of `bytes`; `None` where records end.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Option<UndoRecord<'a>>> {
        let Some(&[low, high]) = bytes.first_chunk::<2>() else { return Ok(None) };
        let length = usize::from(u16::from_le_bytes([low, high]));
        if length == 0 {
            return Ok(None);
        }
        if length < MIN_RECORD_BYTES || length > bytes.len() || bytes[length - 2..length] != [low, high] {
            return Err(corrupt("has no proper length"));
        }
        let kind = match bytes[KIND_AT] & !(DEAD | FREEING) {
            1 => UndoKind::Header,
            2 => UndoKind::Insert,
            3 => UndoKind::Update,
            4 => UndoKind::Delete,
            5 => UndoKind::Overflow,
            6 => UndoKind::Xid,
            other => return Err(corrupt(&format!("is of unknown kind {other}"))),
        };
        Ok(Some(UndoRecord {
            kind,
            dead: bytes[KIND_AT] & DEAD != 0,
            freeing: bytes[KIND_AT] & FREEING != 0,
            flags: bytes[3],
            bytes: length,
            body: &bytes[4..length - 2],
        }))
    }

    /// Id, state and commit number of a Header record.
    pub(crate) fn header(&self) -> Result<(TxnId, TxnState, u64)> {
        let mut body = Reader(self.body);
        let state = match self.flags {
            1 => TxnState::Active,
            2 => TxnState::Prepared,
            3 => TxnState::Committed,
            4 => TxnState::RolledBack,
            other => return Err(corrupt(&format!("gives a transaction the unknown state {other}"))),
        };
        if self.kind != UndoKind::Header {
            return Err(corrupt("was taken for a transaction header"));
        }
        Ok((TxnId(body.u64()?), state, body.u64()?))
    }

    /// Table and key of an Insert, Update or Delete record.
    pub(crate) fn row(&self) -> Result<(TableId, &'a [u8])> {
        let mut body = Reader(self.body);
        let table = TableId(body.u32()?);
        match self.kind {
            UndoKind::Insert => {}
            UndoKind::Update | UndoKind::Delete => drop(body.take(12)?),
            UndoKind::Header | UndoKind::Overflow | UndoKind::Xid => return Err(corrupt("of a row was expected")),
        }
        let key_bytes = usize::from(body.u16()?);
        Ok((table, body.take(key_bytes)?))
    }

    /// Everything in an Update or Delete record.
    pub(crate) fn change(&self) -> Result<UndoChange<'a>> {
        if !matches!(self.kind, UndoKind::Update | UndoKind::Delete) {
            return Err(corrupt("of a changed row was expected"));
        }
        let mut body = Reader(self.body);
        let table = TableId(body.u32()?);
        let (trx_id, roll_ptr) = (TxnId(body.u48()?), RollPtr(body.u48()?));
        let key_bytes = usize::from(body.u16()?);
        let key = body.take(key_bytes)?;
        let middle = DiffRange { prefix: body.u16()?.into(), suffix: body.u16()?.into() };
        let mut chains = &[][..];
        if self.flags & CHAINS != 0 {
            let count = usize::from(body.u8()?);
            chains = body.take(count * OVERFLOW_REF_BYTES)?;
        }
        let chains_at = 4 + self.body.len() - body.0.len() - chains.len();
        let mut entries = None;
        if self.flags & ENTRY_KEYS != 0 {
            let length = usize::from(body.u16()?);
            entries = Some(body.take(length)?);
        }
        let old_middle = body.0;
        let old = RowHeader { flags: self.flags & (DELETE_MARKED | OVERFLOW), trx_id, roll_ptr };
        Ok(UndoChange { table, old, key, middle, old_middle, entries, chains, chains_at })
    }

    /// Table, first page and stamp of an Overflow record; page 0 when the chain is gone.
    pub(crate) fn overflow(&self) -> Result<(TableId, PageNo, u64)> {
        if self.kind != UndoKind::Overflow {
            return Err(corrupt("of an overflow chain was expected"));
        }
        let mut body = Reader(self.body);
        Ok((TableId(body.u32()?), PageNo(body.u32()?), body.u64()?))
    }

    /// The name in an Xid record, and what is known of its transaction.
    pub(crate) fn xid(&self) -> Result<PreparedMark> {
        if self.kind != UndoKind::Xid {
            return Err(corrupt("of a prepared transaction was expected"));
        }
        let mut body = Reader(self.body);
        let (unix_us, records, format_id) = (body.u64()?, body.u64()?, i32::from_le_bytes(body.array()?));
        let [global_bytes, branch_bytes] = body.array()?;
        let (global, branch) = (body.take(global_bytes.into())?, body.take(branch_bytes.into())?);
        if !body.0.is_empty() {
            return Err(corrupt("has more than a name"));
        }
        let xid =
            Xid::new(format_id, global, branch).map_err(|error| corrupt(&format!("has a wrong name: {error}")))?;
        Ok(PreparedMark { xid, unix_us, records })
    }

    /// Whether the change moved secondary entries.
    pub(crate) fn entries_changed(&self) -> bool {
        self.flags & ENTRIES_CHANGED != 0
    }

    /// Whether purge has anything to do for this record.
    pub(crate) fn needs_purge(&self) -> bool {
        !self.dead
            && match self.kind {
                UndoKind::Delete => true,
                UndoKind::Update => self.flags & (ENTRIES_CHANGED | CHAINS) != 0,
                UndoKind::Header | UndoKind::Insert | UndoKind::Overflow | UndoKind::Xid => false,
            }
    }
}

impl UndoChange<'_> {
    /// Turns the payload after this record's change into the payload before it.
    pub(crate) fn apply(&self, payload: &mut Vec<u8>) -> Result<()> {
        self.middle.swap(payload, self.old_middle)
    }

    /// The overflow chains that the version after does not have and that are not freed yet: the offset in the record of
    /// the reference to each, and the reference.
    pub(crate) fn chains(&self) -> impl Iterator<Item = (usize, OverflowRef)> + '_ {
        let all = self.chains.as_chunks::<OVERFLOW_REF_BYTES>().0.iter().enumerate();
        let all = all.map(|(n, bytes)| (self.chains_at + n * OVERFLOW_REF_BYTES, OverflowRef::read(bytes)));
        all.filter(|(_, reference)| reference.first != PageNo(0))
    }
}

/// Splits the first of a change's entries off: its index and its index columns; `None` at the end.
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

    fn u8(&mut self) -> Result<u8> {
        self.array().map(u8::from_le_bytes)
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

#[cfg(test)]
#[path = "record_test.rs"]
mod tests;
