//! Secondary entries: insert, delete-mark, remove; the search for duplicates.
//!
//! Rules
//! 1. Each change of an entry is a mini-transaction of its own, made while its row is locked by the transaction that makes
//!    it. It raises the leaf's max_trx_id to that transaction's id.
//! 2. An entry is only delete-marked by deletes and updates. It is removed by purge, or by the rollback of the change that
//!    made it, when no version of the row that anybody may still see has it.
//! 3. Unique: "no other row has these columns" and the insert of the entry are one step under a striped mutex. A row that
//!    is being changed by another transaction is waited for, whatever its entry looks like.

use super::attempt::{Attempt, Stop, claim_gap, settle};
use crate::btree::{BTree, Seek};
use crate::error::{Error, Result};
use crate::mtr::Mtr;
use crate::txn::lock::{LockMode, RowName};
use crate::txn::read::resolve_unlocked;
use crate::txn::stored::{DELETE_MARKED, EntryValue, ROW_HEADER_BYTES, RowHeader, entry_value};
use crate::txn::system::TxnSystem;
use crate::txn::table_trees::{Entry, TableTrees};
use crate::txn::transaction::TxnBody;
use crate::types::TxnId;

/// Inserts the entry, or takes the delete-mark off it.
pub(crate) fn insert(
    system: &TxnSystem,
    body: &mut TxnBody,
    rows: &dyn TableTrees,
    i: usize,
    entry: &[u8],
    made: Entry,
    key: &[u8],
) -> Result<()> {
    let tree = rows.index(i);
    let limit_bytes = BTree::max_key_bytes(system.ctx.pool.page_bytes());
    if entry.len() > limit_bytes {
        return Err(Error::KeyTooLong { bytes: entry.len(), limit_bytes });
    }
    loop {
        let stripe = made.unique.then(|| {
            let row = RowName { index: tree.id(), key: &entry[..made.prefix_bytes] };
            system.unique[row.hash() as usize % system.unique.len()].lock()
        });
        if made.unique
            && let Err(stop) = check_duplicates(system, body, rows, i, &entry[..made.prefix_bytes], key)
        {
            drop(stripe);
            let waited_for = std::mem::take(&mut body.buffers.key);
            let settled = settle(system, body, rows.clustered(), &waited_for, stop);
            body.buffers.key = waited_for;
            settled?;
            continue;
        }
        let mut mtr = system.ctx.mtr()?;
        match try_insert(system, body, tree, entry, made, &mut mtr) {
            Ok(()) => {
                mtr.commit();
                return Ok(());
            }
            Err(stop) => {
                mtr.abandon();
                drop(stripe);
                settle(system, body, tree, entry, stop)?;
            }
        }
    }
}

fn try_insert(
    system: &TxnSystem,
    body: &TxnBody,
    tree: &BTree,
    entry: &[u8],
    made: Entry,
    mtr: &mut Mtr<'_>,
) -> Attempt<()> {
    let leaf = tree.leaf_mut(mtr, entry)?;
    let found = leaf.search(mtr, entry);
    if let Ok(slot) = found
        && !EntryValue::decode(leaf.value(mtr, slot), entry.len())?.delete_marked
    {
        return Ok(());
    }
    claim_gap(system, body, tree.id(), entry)?;
    match found {
        Ok(slot) => leaf.splice(mtr, slot, 0, 1, &[0]),
        Err(slot) => {
            let value = entry_value(made.prefix_bytes);
            if !leaf.fits(mtr, entry.len(), value.len()) {
                return Err(Stop::MakeRoom(entry.len() + value.len()));
            }
            leaf.insert(mtr, slot, entry, &value);
        }
    }
    leaf.raise_max_trx_id(mtr, body.id.0);
    Ok(())
}

/// Delete-marks the entry, which must be there.
pub(crate) fn delete_mark(
    system: &TxnSystem,
    body: &TxnBody,
    rows: &dyn TableTrees,
    i: usize,
    entry: &[u8],
) -> Result<()> {
    if set_mark(system, body.id, rows.index(i), entry, true)? {
        return Ok(());
    }
    Err(Error::Corrupt(format!("index {} of table {} lacks the entry of a row", rows.index_name(i), rows.name())))
}

/// Sets or clears the delete-mark of an entry. False if there is no such entry.
pub(crate) fn set_mark(system: &TxnSystem, by: TxnId, tree: &BTree, entry: &[u8], marked: bool) -> Result<bool> {
    let mut mtr = system.ctx.mtr()?;
    let leaf = tree.leaf_mut(&mut mtr, entry)?;
    let Ok(slot) = leaf.search(&mtr, entry) else { return Ok(false) };
    if EntryValue::decode(leaf.value(&mtr, slot), entry.len())?.delete_marked != marked {
        leaf.splice(&mut mtr, slot, 0, 1, &[if marked { DELETE_MARKED } else { 0 }]);
        leaf.raise_max_trx_id(&mut mtr, by.0);
        mtr.commit();
    }
    Ok(true)
}

/// Removes an entry, if it is there. The caller knows that nobody needs it.
pub(crate) fn remove(system: &TxnSystem, tree: &BTree, entry: &[u8]) -> Result<()> {
    let mut mtr = system.ctx.mtr()?;
    let leaf = tree.leaf_mut(&mut mtr, entry)?;
    let Ok(slot) = leaf.search(&mtr, entry) else { return Ok(()) };
    leaf.remove(&mut mtr, slot);
    let underfull = leaf.underfull(&mtr);
    mtr.commit();
    if underfull { tree.tidy(&system.ctx, entry) } else { Ok(()) }
}

/// Looks for another row with these index columns. `Err` with a wait leaves the other row's key in `buffers.key`.
fn check_duplicates(
    system: &TxnSystem,
    body: &mut TxnBody,
    rows: &dyn TableTrees,
    i: usize,
    prefix: &[u8],
    key: &[u8],
) -> Attempt<()> {
    for other in other_rows(system, rows, i, prefix, key)? {
        check_other(system, body, rows, i, prefix, &other).inspect_err(|_| body.buffers.key = other)?;
    }
    Ok(())
}

/// Keys of the rows other than `key` that have, had or may again have an entry with these index columns.
fn other_rows(system: &TxnSystem, rows: &dyn TableTrees, i: usize, prefix: &[u8], key: &[u8]) -> Result<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    let mut entry = Vec::new();
    let mut from = prefix.to_vec();
    loop {
        let leaf = rows.index(i).leaf(&system.ctx, Seek::Covers(&from))?;
        let all_ended = leaf.max_trx_id() < system.min_active();
        let start = leaf.search(&from).unwrap_or_else(|slot| slot);
        for slot in start..leaf.len() {
            leaf.key_into(slot, &mut entry);
            if !entry.starts_with(prefix) {
                return Ok(found);
            }
            let value = EntryValue::decode(leaf.value(slot), entry.len())?;
            let other = &entry[value.prefix_bytes..];
            // A delete-mark of an ended transaction stays.
            if value.prefix_bytes == prefix.len() && other != key && !(value.delete_marked && all_ended) {
                found.push(other.to_vec());
            }
        }
        match leaf.upper() {
            Some(upper) if upper.starts_with(prefix) || upper < prefix => from = upper.to_vec(),
            _ => return Ok(found),
        }
    }
}

fn check_other(
    system: &TxnSystem,
    body: &TxnBody,
    rows: &dyn TableTrees,
    i: usize,
    prefix: &[u8],
    other: &[u8],
) -> Attempt<()> {
    let mut row = Vec::new();
    if !read_ended_row(system, body, rows, other, &mut row)? {
        return Ok(());
    }
    let mut entry = Vec::new();
    let made = rows.entry(i, other, &row, &mut entry);
    if entry[..made.prefix_bytes] == *prefix {
        let (table, index) = (rows.name().to_string(), rows.index_name(i).to_string());
        return Err(Stop::Fail(Error::DuplicateKey { table, index }));
    }
    Ok(())
}

/// Copies the newest version of a row that is no other transaction's. False if there is none.
fn read_ended_row(
    system: &TxnSystem,
    body: &TxnBody,
    rows: &dyn TableTrees,
    key: &[u8],
    row: &mut Vec<u8>,
) -> Attempt<bool> {
    let tree = rows.clustered();
    loop {
        let leaf = tree.leaf(&system.ctx, Seek::Covers(key))?;
        let Ok(slot) = leaf.search(key) else { return Ok(false) };
        let value = leaf.value(slot);
        let header = RowHeader::decode(value)?;
        // Asked under the latch: if its transaction has ended and the version is still here, it was committed.
        if header.trx_id != body.id
            && let Some(holder) = system.holder_of(header.trx_id)
        {
            let implicit = Some((header.trx_id, holder));
            return Err(Stop::WaitRow { index: tree.id(), mode: LockMode::Shared, implicit });
        }
        if header.is_delete_marked() {
            return Ok(false);
        }
        row.clear();
        row.extend_from_slice(&value[ROW_HEADER_BYTES..]);
        drop(leaf);
        if resolve_unlocked(&system.ctx, rows, key, &header, &header, row)? {
            return Ok(true);
        }
    }
}

/// Puts an entry back that rollback needs: clears its delete-mark, or inserts it if it is not there.
pub(crate) fn restore(system: &TxnSystem, by: TxnId, tree: &BTree, entry: &[u8], made: Entry) -> Result<()> {
    while !set_mark(system, by, tree, entry, false)? {
        let mut mtr = system.ctx.mtr()?;
        let leaf = tree.leaf_mut(&mut mtr, entry)?;
        let Err(slot) = leaf.search(&mtr, entry) else { continue };
        let value = entry_value(made.prefix_bytes);
        if leaf.fits(&mtr, entry.len(), value.len()) {
            leaf.insert(&mut mtr, slot, entry, &value);
            leaf.raise_max_trx_id(&mut mtr, by.0);
            mtr.commit();
            return Ok(());
        }
        mtr.abandon();
        tree.make_room(&system.ctx, entry, entry.len() + value.len())?;
    }
    Ok(())
}
