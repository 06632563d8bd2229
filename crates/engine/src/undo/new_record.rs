//! Writing undo records; see `record.rs` for their bytes.

use super::record::{
    CHAINS, ENTRIES_CHANGED, ENTRY_KEYS, HEADER_RECORD_BYTES, OVERFLOW_RECORD_BYTES, PreparedMark, TxnState,
};
use crate::row::diff::DiffRange;
use crate::row::format::{DELETE_MARKED, OVERFLOW, OVERFLOW_REF_BYTES, OverflowRef, RowHeader, put_u48};
use crate::types::{IndexId, PageNo, TableId, TxnId};

/// Bytes in front of the key of an Update or Delete record.
const CHANGE_FIXED_BYTES: usize = 22;
/// Bytes in front of the name in an Xid record.
const XID_FIXED_BYTES: usize = 26;
/// Bytes in front of the key of an Insert record.
const INSERT_FIXED_BYTES: usize = 10;

/// The first `N` bytes of a record, up to its key length field; `rest` bytes and the length at the end follow.
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
    let (mut bytes, length) = fixed::<{ HEADER_RECORD_BYTES - 2 }>(1, TxnState::Active as u8, 0);
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

/// The change that [`put_change`] records.
pub(crate) struct NewChange<'a> {
    /// Delete, else Update.
    pub(crate) delete: bool,
    pub(crate) table: TableId,
    pub(crate) key: &'a [u8],
    pub(crate) old: RowHeader,
    pub(crate) entries_changed: bool,
    pub(crate) middle: DiffRange,
    pub(crate) old_middle: &'a [u8],
    /// Overflow chains that the new version no longer has.
    pub(crate) chains: &'a [OverflowRef],
    /// Entries the change moves, of [`put_entry`]; if entries changed and this is `None`, the middle is the whole row.
    pub(crate) entries: Option<&'a [u8]>,
}

/// Appends the record of an update or a delete.
pub(crate) fn put_change(out: &mut Vec<u8>, change: &NewChange<'_>) {
    let NewChange { old, key, middle, old_middle, .. } = change;
    let changed = if change.entries_changed { ENTRIES_CHANGED } else { 0 };
    let keys = if change.entries.is_some() { ENTRY_KEYS } else { 0 };
    let chains = if change.chains.is_empty() { 0 } else { CHAINS };
    let flags = old.flags & (DELETE_MARKED | OVERFLOW) | changed | keys | chains;
    let kind = if change.delete { 4 } else { 3 };
    let entries_bytes = change.entries.map_or(0, |entries| 2 + entries.len());
    let chains_bytes = if chains == 0 { 0 } else { 1 + change.chains.len() * OVERFLOW_REF_BYTES };
    let rest = key.len() + 4 + chains_bytes + entries_bytes + old_middle.len();
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
    if chains != 0 {
        // A row has at most 255 references.
        out.push(change.chains.len() as u8);
        change.chains.iter().for_each(|reference| out.extend_from_slice(&reference.encode()));
    }
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

/// Appends the record of a transaction that is being prepared.
pub(crate) fn put_xid(out: &mut Vec<u8>, mark: &PreparedMark) {
    let (global, branch) = (mark.xid.global(), mark.xid.branch());
    let (mut bytes, length) = fixed::<XID_FIXED_BYTES>(6, 0, global.len() + branch.len());
    bytes[4..12].copy_from_slice(&mark.unix_us.to_le_bytes());
    bytes[12..20].copy_from_slice(&mark.records.to_le_bytes());
    bytes[20..24].copy_from_slice(&mark.xid.format_id().to_le_bytes());
    // A part of a name has at most 64 bytes.
    (bytes[24], bytes[25]) = (global.len() as u8, branch.len() as u8);
    out.extend_from_slice(&bytes);
    out.extend_from_slice(global);
    out.extend_from_slice(branch);
    out.extend_from_slice(&length);
}

/// Appends an entry for [`NewChange::entries`].
pub(crate) fn put_entry(out: &mut Vec<u8>, index: IndexId, columns: &[u8]) {
    out.extend_from_slice(&index.0.to_le_bytes());
    out.extend_from_slice(&length_bytes(columns.len()));
    out.extend_from_slice(columns);
}
