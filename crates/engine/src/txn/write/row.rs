//! Row operations: insert, update, delete.
//!
//! Order within an operation
//! 1. Overflow pages of the new version, each group registered in undo or linked in the mini-transaction that allocates it.
//! 2. The clustered row and its undo record, in one mini-transaction: from here on the row is locked.
//! 3. Each secondary entry, in a mini-transaction of its own. Old entries are delete-marked, not removed: older snapshots
//!    find the row by them.
//!
//! Invariant: while a row's newest version is of an ended transaction, the entries of that row that are not delete-marked
//! are exactly those of that version. Rollback restores entries before it restores the row, to keep it.
//!
//! A failed operation is undone by its caller (`Txn::statement`).

use super::attempt::{Attempt, Stop, claim, claim_gap, latch_undo, settle};
use super::diff::Middle;
use super::entry;
use crate::btree::{BTree, LeafMut};
use crate::error::{Error, Result};
use crate::mtr::{Latched, Mtr};
use crate::txn::lock::{LockMode, RowName};
use crate::txn::overflow;
use crate::txn::stored::{DELETE_MARKED, OVERFLOW, OVERFLOW_REF_BYTES, OverflowRef, ROW_HEADER_BYTES, RowHeader};
use crate::txn::system::TxnSystem;
use crate::txn::table_trees::TableTrees;
use crate::txn::transaction::{Buffers, RowChange, TxnBody, closed};
use crate::txn::undo::record::{self, NewChange};
use crate::types::RollPtr;
use std::sync::atomic::Ordering::Relaxed;

pub const MAX_ROW_BYTES: usize = 16 << 20;

/// Header bytes that every change rewrites: flags to roll pointer.
const REWRITTEN_BYTES: usize = 14;

/// A changed part that begins at most so many bytes into the row goes into one operation with the header: the bytes between
/// them cost less than a second operation does. (Fixed-size columns are in front of the row.)
const NEAR_BYTES: usize = 40;

/// Longest payload that stays in its leaf.
fn max_inline_bytes(system: &TxnSystem) -> usize {
    BTree::max_value_bytes(system.ctx.pool.page_bytes()) - ROW_HEADER_BYTES
}

/// Replaces `buffers.value` with a stored value whose header is still to be written, writing overflow pages if need be.
/// Returns the row's flags.
fn store_payload(system: &TxnSystem, body: &mut TxnBody, rows: &dyn TableTrees, payload: &[u8]) -> Result<u8> {
    if payload.len() > MAX_ROW_BYTES {
        return Err(Error::RowTooLarge { bytes: payload.len(), limit_bytes: MAX_ROW_BYTES });
    }
    body.buffers.value.clear();
    body.buffers.value.extend_from_slice(&[0; ROW_HEADER_BYTES]);
    if payload.len() <= max_inline_bytes(system) {
        body.buffers.value.extend_from_slice(payload);
        return Ok(0);
    }
    let reference = overflow::write(system, body, rows, payload)?;
    body.buffers.value.extend_from_slice(&reference.encode());
    Ok(OVERFLOW)
}

fn check_key(system: &TxnSystem, key: &[u8]) -> Result<()> {
    let limit_bytes = BTree::max_key_bytes(system.ctx.pool.page_bytes());
    if key.len() > limit_bytes {
        return Err(Error::KeyTooLong { bytes: key.len(), limit_bytes });
    }
    Ok(())
}

/// Appends the undo record in `buffers.record`.
fn append_undo(body: &mut TxnBody, mtr: &mut Mtr<'_>, undo_page: Latched) -> RollPtr {
    let undo = body.undo.as_mut().expect("`latch_undo` found the undo log");
    let roll_ptr = undo.append(mtr, undo_page, body.id, &body.buffers.record);
    body.holder.weight.store(undo.records, Relaxed);
    roll_ptr
}

/// See [`crate::txn::Txn::insert`].
pub(crate) fn insert(
    system: &TxnSystem,
    body: &mut TxnBody,
    rows: &dyn TableTrees,
    key: &[u8],
    row: &[u8],
) -> Result<()> {
    check_key(system, key)?;
    let flags = store_payload(system, body, rows, row)?;
    loop {
        let mut mtr = system.ctx.mtr()?;
        match try_insert(system, body, rows, key, flags, &mut mtr) {
            Ok(()) => {
                mtr.commit();
                break;
            }
            Err(stop) => {
                mtr.abandon();
                settle(system, body, rows.clustered(), key, stop)?;
            }
        }
    }
    system.stats.rows_inserted.inc();
    for i in 0..rows.index_count() {
        let mut entry = std::mem::take(&mut body.buffers.new_entry);
        entry.clear();
        let made = rows.entry(i, key, row, &mut entry);
        let inserted = entry::insert(system, body, rows, i, &entry, made, key);
        body.buffers.new_entry = entry;
        inserted?;
    }
    Ok(())
}

fn try_insert(
    system: &TxnSystem,
    body: &mut TxnBody,
    rows: &dyn TableTrees,
    key: &[u8],
    flags: u8,
    mtr: &mut Mtr<'_>,
) -> Attempt<()> {
    let tree = rows.clustered();
    let leaf = tree.leaf_mut(mtr, key)?;
    let slot = match leaf.search(mtr, key) {
        Ok(slot) => return insert_over(system, body, rows, key, flags, mtr, leaf, slot),
        Err(slot) => slot,
    };
    claim_gap(system, body, tree.id(), key)?;
    body.buffers.record.clear();
    record::put_insert(&mut body.buffers.record, rows.id(), key);
    let undo_page = latch_undo(body, mtr, body.buffers.record.len())?;
    if !leaf.fits(mtr, key.len(), body.buffers.value.len()) {
        return Err(Stop::MakeRoom(key.len() + body.buffers.value.len()));
    }
    let roll_ptr = append_undo(body, mtr, undo_page);
    let header = RowHeader { flags, trx_id: body.id, roll_ptr };
    body.buffers.value[..ROW_HEADER_BYTES].copy_from_slice(&header.encode());
    leaf.insert(mtr, slot, key, &body.buffers.value);
    Ok(())
}

/// Inserts where a row with this key is: an update if that row is delete-marked.
#[expect(clippy::too_many_arguments, reason = "one attempt, split for reading")]
fn insert_over(
    system: &TxnSystem,
    body: &mut TxnBody,
    rows: &dyn TableTrees,
    key: &[u8],
    flags: u8,
    mtr: &mut Mtr<'_>,
    leaf: LeafMut,
    slot: usize,
) -> Attempt<()> {
    let index = rows.clustered().id();
    let old_value = leaf.value(mtr, slot);
    let old = RowHeader::decode(old_value)?;
    let old_bytes = old_value.len();
    claim(system, body, RowName { index, key }, &old, LockMode::Exclusive)?;
    if !old.is_delete_marked() {
        let (table, index) = (rows.name().to_string(), "PRIMARY".to_string());
        return Err(Stop::Fail(Error::DuplicateKey { table, index }));
    }
    claim_gap(system, body, index, key)?;
    let buffers = &mut body.buffers;
    buffers.record.clear();
    record::put_change(
        &mut buffers.record,
        &NewChange {
            delete: false,
            table: rows.id(),
            key,
            old,
            entries_changed: rows.index_count() > 0,
            middle: Middle::WHOLE,
            old_middle: &old_value[ROW_HEADER_BYTES..],
            entries: None,
        },
    );
    let growth = buffers.value.len().saturating_sub(old_bytes);
    let undo_page = latch_undo(body, mtr, body.buffers.record.len())?;
    if !leaf.fits_growth(mtr, slot, growth) {
        return Err(Stop::MakeRoom(growth));
    }
    let roll_ptr = append_undo(body, mtr, undo_page);
    let header = RowHeader { flags, trx_id: body.id, roll_ptr };
    body.buffers.value[..ROW_HEADER_BYTES].copy_from_slice(&header.encode());
    leaf.splice(mtr, slot, 0, old_bytes, &body.buffers.value);
    Ok(())
}

/// What an update found.
enum Found {
    Nothing,
    Unchanged,
    Changed,
}

/// See [`crate::txn::Txn::update`].
pub(crate) fn update(
    system: &TxnSystem,
    body: &mut TxnBody,
    rows: &dyn TableTrees,
    key: &[u8],
    change: &mut RowChange<'_>,
) -> Result<bool> {
    // Set once the new version's overflow pages are written: the old header and the new flags.
    let mut prepared = None;
    let found = loop {
        let mut mtr = system.ctx.mtr()?;
        let stop = match try_update(system, body, rows, key, change, prepared, &mut mtr) {
            Ok(Found::Changed) => {
                mtr.commit();
                break Found::Changed;
            }
            Ok(found) => break found,
            Err(stop) => stop,
        };
        mtr.abandon();
        match stop {
            Stop::Overflow(old) if prepared.is_none() => match prepare_overflow(system, body, rows, change, old)? {
                Some(flags) => prepared = Some((old, flags)),
                None => break Found::Unchanged,
            },
            stop => settle(system, body, rows.clustered(), key, stop)?,
        }
    };
    match found {
        Found::Nothing => return Ok(false),
        Found::Unchanged => return Ok(true),
        Found::Changed => system.stats.rows_updated.inc(),
    }
    if !body.buffers.changed.is_empty() {
        move_entries(system, body, rows, key)?;
    }
    Ok(true)
}

fn try_update(
    system: &TxnSystem,
    body: &mut TxnBody,
    rows: &dyn TableTrees,
    key: &[u8],
    change: &mut RowChange<'_>,
    prepared: Option<(RowHeader, u8)>,
    mtr: &mut Mtr<'_>,
) -> Attempt<Found> {
    let tree = rows.clustered();
    let leaf = tree.leaf_mut(mtr, key)?;
    let Ok(slot) = leaf.search(mtr, key) else {
        lock_absence(system, body, rows, key);
        return Ok(Found::Nothing);
    };
    let value = leaf.value(mtr, slot);
    let old = RowHeader::decode(value)?;
    let row = RowName { index: tree.id(), key };
    claim(system, body, row, &old, LockMode::Exclusive)?;
    if old.is_delete_marked() {
        lock_absence(system, body, rows, key);
        return Ok(Found::Nothing);
    }
    let payload = &value[ROW_HEADER_BYTES..];
    if let Some((expected, flags)) = prepared {
        if expected != old {
            return Err(Stop::Overflow(old));
        }
        return change_row(body, rows, key, mtr, leaf, slot, flags);
    }
    let buffers = &mut body.buffers;
    buffers.new_row.clear();
    let changed = old.is_overflow() || closed(|| change(payload, &mut buffers.new_row))?;
    if changed && !old.is_overflow() && buffers.new_row.len() <= max_inline_bytes(system) {
        return change_row(body, rows, key, mtr, leaf, slot, 0);
    }
    buffers.old_row.clear();
    buffers.old_row.extend_from_slice(payload);
    // The row stays as it is for now: lock it explicitly.
    if !system.locks.try_lock_row(&body.holder, row, LockMode::Exclusive) {
        return Err(Stop::WaitRow { index: row.index, mode: LockMode::Exclusive, implicit: None });
    }
    if changed { Err(Stop::Overflow(old)) } else { Ok(Found::Unchanged) }
}

/// Runs `change` outside the latch, on a locked row of which the old or the new version is too large for its leaf. Leaves
/// both rows in `old_row` and `new_row` and the stored new value in `value`; returns its flags, `None` if nothing changes.
fn prepare_overflow(
    system: &TxnSystem,
    body: &mut TxnBody,
    rows: &dyn TableTrees,
    change: &mut RowChange<'_>,
    old: RowHeader,
) -> Result<Option<u8>> {
    if old.is_overflow() {
        let reference = OverflowRef::decode(&body.buffers.old_row)?;
        overflow::read(&system.ctx, reference, &mut body.buffers.old_row)?;
    }
    let buffers = &mut body.buffers;
    buffers.new_row.clear();
    if !closed(|| change(&buffers.old_row, &mut buffers.new_row))? {
        return Ok(None);
    }
    let new_row = std::mem::take(&mut buffers.new_row);
    let flags = store_payload(system, body, rows, &new_row);
    body.buffers.new_row = new_row;
    flags.map(Some)
}

/// Applies an update. The new row is in `new_row`; with an overflow row on either side, the full old row is in `old_row` and
/// the stored new value in `value`.
fn change_row(
    body: &mut TxnBody,
    rows: &dyn TableTrees,
    key: &[u8],
    mtr: &mut Mtr<'_>,
    leaf: LeafMut,
    slot: usize,
    flags: u8,
) -> Attempt<Found> {
    let old_value = leaf.value(mtr, slot);
    let old = RowHeader::decode(old_value)?;
    let old_payload = &old_value[ROW_HEADER_BYTES..];
    let any_overflow = old.is_overflow() || flags & OVERFLOW != 0;
    let buffers = &mut body.buffers;
    let old_row = if any_overflow { &buffers.old_row } else { old_payload };
    let new_payload = if any_overflow { &buffers.value[ROW_HEADER_BYTES..] } else { &buffers.new_row };
    buffers.changed.clear();
    buffers.changed.extend((0..rows.index_count()).filter(|i| rows.entry_changes(*i, old_row, &buffers.new_row)));
    let entries_changed = !buffers.changed.is_empty();
    let splice = Middle::of(old_payload, new_payload);
    let moved = !any_overflow && entries_changed && {
        put_moved_entries(rows, &buffers.changed, key, old_payload, &mut buffers.entries);
        2 + buffers.entries.len() + splice.cut(old_payload).len() < old_payload.len()
    };
    let entries = moved.then_some(&buffers.entries[..]);
    let middle = if any_overflow || entries_changed && !moved { Middle::WHOLE } else { splice };
    buffers.record.clear();
    let old_middle = middle.cut(old_payload);
    record::put_change(
        &mut buffers.record,
        &NewChange { delete: false, table: rows.id(), key, old, entries_changed, middle, old_middle, entries },
    );
    let growth = new_payload.len().saturating_sub(old_payload.len());
    let old_bytes = old_payload.len();
    if entries_changed && !any_overflow {
        buffers.old_row.clear();
        buffers.old_row.extend_from_slice(old_payload);
    }
    let undo_page = latch_undo(body, mtr, body.buffers.record.len())?;
    if growth > 0 && !leaf.fits_growth(mtr, slot, growth) {
        return Err(Stop::MakeRoom(growth));
    }
    let roll_ptr = append_undo(body, mtr, undo_page);
    let header = RowHeader { flags, trx_id: body.id, roll_ptr };
    let Buffers { record: scratch, value, new_row, .. } = &mut body.buffers;
    let new_payload = if any_overflow { &value[ROW_HEADER_BYTES..] } else { new_row };
    write_version(mtr, leaf, slot, &header, splice, old_bytes, new_payload, scratch);
    Ok(Found::Changed)
}

/// Replaces `out` with the old entries of the indexes in `changed`, as undo keeps them: without the row's key.
fn put_moved_entries(rows: &dyn TableTrees, changed: &[usize], key: &[u8], old_row: &[u8], out: &mut Vec<u8>) {
    out.clear();
    let mut entry = Vec::new();
    for i in changed {
        entry.clear();
        let made = rows.entry(*i, key, old_row, &mut entry);
        record::put_entry(out, rows.index(*i).id(), &entry[..made.prefix_bytes]);
    }
}

/// Turns the stored value, with a payload of `old_bytes`, into `header` and `new_payload`, the payloads differing by
/// `splice`.
#[expect(clippy::too_many_arguments, reason = "the last step of `change_row`, split for reading")]
#[inline]
fn write_version(
    mtr: &mut Mtr<'_>,
    leaf: LeafMut,
    slot: usize,
    header: &RowHeader,
    splice: Middle,
    old_bytes: usize,
    new_payload: &[u8],
    scratch: &mut Vec<u8>,
) {
    let (header, Middle { prefix, suffix }) = (header.encode(), splice);
    let (removed, added) = (old_bytes - suffix - prefix, splice.cut(new_payload));
    if prefix <= NEAR_BYTES {
        scratch.clear();
        scratch.extend_from_slice(&header);
        scratch.extend_from_slice(&new_payload[..prefix + added.len()]);
        leaf.splice(mtr, slot, 0, ROW_HEADER_BYTES + prefix + removed, scratch);
        return;
    }
    leaf.splice(mtr, slot, 0, REWRITTEN_BYTES, &header[..REWRITTEN_BYTES]);
    if removed > 0 || !added.is_empty() {
        leaf.splice(mtr, slot, ROW_HEADER_BYTES + prefix, removed, added);
    }
}

/// Delete-marks old and inserts new entries after an update; the rows are in `old_row` and `new_row`.
fn move_entries(system: &TxnSystem, body: &mut TxnBody, rows: &dyn TableTrees, key: &[u8]) -> Result<()> {
    for n in 0..body.buffers.changed.len() {
        let i = body.buffers.changed[n];
        let (mut old, mut new) =
            (std::mem::take(&mut body.buffers.old_entry), std::mem::take(&mut body.buffers.new_entry));
        old.clear();
        new.clear();
        rows.entry(i, key, &body.buffers.old_row, &mut old);
        let made = rows.entry(i, key, &body.buffers.new_row, &mut new);
        let mut moved = Ok(());
        if old != new {
            moved = entry::delete_mark(system, body, rows, i, &old)
                .and_then(|()| entry::insert(system, body, rows, i, &new, made, key));
        }
        (body.buffers.old_entry, body.buffers.new_entry) = (old, new);
        moved?;
    }
    Ok(())
}

/// See [`crate::txn::Txn::delete`].
pub(crate) fn delete(system: &TxnSystem, body: &mut TxnBody, rows: &dyn TableTrees, key: &[u8]) -> Result<bool> {
    let old = loop {
        let mut mtr = system.ctx.mtr()?;
        match try_delete(system, body, rows, key, &mut mtr) {
            Ok(Some(old)) => {
                mtr.commit();
                break old;
            }
            Ok(None) => return Ok(false),
            Err(stop) => {
                mtr.abandon();
                settle(system, body, rows.clustered(), key, stop)?;
            }
        }
    };
    system.stats.rows_deleted.inc();
    if old.is_overflow() && rows.index_count() > 0 {
        let reference = OverflowRef::decode(&body.buffers.old_row)?;
        overflow::read(&system.ctx, reference, &mut body.buffers.old_row)?;
    }
    for i in 0..rows.index_count() {
        let mut entry = std::mem::take(&mut body.buffers.old_entry);
        entry.clear();
        rows.entry(i, key, &body.buffers.old_row, &mut entry);
        let marked = entry::delete_mark(system, body, rows, i, &entry);
        body.buffers.old_entry = entry;
        marked?;
    }
    Ok(true)
}

/// Delete-marks the row; leaves its payload in `old_row` if there are indexes.
fn try_delete(
    system: &TxnSystem,
    body: &mut TxnBody,
    rows: &dyn TableTrees,
    key: &[u8],
    mtr: &mut Mtr<'_>,
) -> Attempt<Option<RowHeader>> {
    let tree = rows.clustered();
    let leaf = tree.leaf_mut(mtr, key)?;
    let Ok(slot) = leaf.search(mtr, key) else {
        lock_absence(system, body, rows, key);
        return Ok(None);
    };
    let value = leaf.value(mtr, slot);
    let old = RowHeader::decode(value)?;
    claim(system, body, RowName { index: tree.id(), key }, &old, LockMode::Exclusive)?;
    if old.is_delete_marked() {
        lock_absence(system, body, rows, key);
        return Ok(None);
    }
    let payload = &value[ROW_HEADER_BYTES..];
    let buffers = &mut body.buffers;
    if rows.index_count() > 0 {
        buffers.old_row.clear();
        buffers.old_row.extend_from_slice(payload);
    }
    let old_middle = if old.is_overflow() { payload } else { &[] };
    debug_assert!(!old.is_overflow() || payload.len() == OVERFLOW_REF_BYTES);
    buffers.record.clear();
    let entries_changed = rows.index_count() > 0;
    record::put_change(
        &mut buffers.record,
        &NewChange {
            delete: true,
            table: rows.id(),
            key,
            old,
            entries_changed,
            middle: Middle::WHOLE,
            old_middle,
            entries: None,
        },
    );
    let undo_page = latch_undo(body, mtr, body.buffers.record.len())?;
    let roll_ptr = append_undo(body, mtr, undo_page);
    let header = RowHeader { flags: old.flags | DELETE_MARKED, trx_id: body.id, roll_ptr }.encode();
    leaf.splice(mtr, slot, 0, REWRITTEN_BYTES, &header[..REWRITTEN_BYTES]);
    Ok(Some(old))
}

/// Keeps others from inserting a row that this transaction was told does not exist. Its leaf is latched.
pub(crate) fn lock_absence(system: &TxnSystem, body: &TxnBody, rows: &dyn TableTrees, key: &[u8]) {
    if body.locks_ranges() {
        system.locks.lock_point(&body.holder, rows.clustered().id(), key);
    }
}
