//! Secondary entries: insert, delete-mark, remove; the search for duplicates.
//!
//! Rules
//! 1. Each change of an entry is a mini-transaction of its own, made while its row is locked by the transaction that
//!    makes it. It raises the leaf's max_trx_id to that transaction's id.
//! 2. An entry is only delete-marked by deletes and updates. It is removed by purge, or by the rollback of the change
//!    that made it, when no version of the row that may still be seen has it.
//!    A change of an entry whose leaf is not in the pool may become pending (`crate::change_buffer`).
//! 3. Unique: "no other row has these columns" and the insert of the entry are one step under a striped mutex. A row
//!    that is being changed by another transaction is waited for, whatever its entry looks like.

use super::attempt::{Attempt, Stop, claim_gap, settle, settle_rollback};
use crate::btree::{BTree, LeafMut, Seek};
use crate::change_buffer::{Added, PendingChange, Reached};
use crate::error::{Error, Result};
use crate::mtr::Mtr;
use crate::page::node::LeafChange;
use crate::txn::lock::{LockMode, RowName};
use crate::txn::read::StoredRow;
use crate::txn::row_op::RowOp;
use crate::txn::stored::{DELETE_MARKED, EntryValue, ROW_HEADER_BYTES, RowHeader, entry_value};
use crate::txn::system::TxnSystem;
use crate::txn::table_trees::{Entry, TableTrees};
use crate::txn::transaction::Txn;
use crate::types::TxnId;

impl RowOp<'_> {
    /// Inserts the row's entry in index `i`, or clears its delete-mark.
    pub(super) fn insert_entry(&mut self, i: usize, entry: &[u8], made: Entry) -> Result<()> {
        let RowOp { system, table, key, .. } = *self;
        let limit_bytes = BTree::max_key_bytes(system.ctx.pool.page_bytes());
        if entry.len() > limit_bytes {
            return Err(Error::KeyTooLong { bytes: entry.len(), limit_bytes });
        }
        let op = EntryOp { system, table, i, tree: table.index(i), key, entry, made };
        loop {
            let stripe = made.unique.then(|| {
                let columns = RowName { index: op.tree.id(), key: op.columns() };
                system.unique[columns.hash() as usize % system.unique.len()].lock()
            });
            if made.unique
                && let Err((other, stop)) = op.check_duplicates(self.txn)
            {
                drop(stripe);
                settle(system, self.txn, table.clustered(), &other, stop)?;
                continue;
            }
            match op.try_insert(self.txn, system.ctx.mtr()?) {
                Ok(added) => {
                    if system.changes.settle(&added)? {
                        return Ok(());
                    }
                }
                Err(stop) => {
                    drop(stripe);
                    settle(system, self.txn, op.tree, entry, stop)?;
                }
            }
        }
    }

    /// Delete-marks the row's entry in index `i`, which must be there.
    pub(super) fn delete_mark_entry(&self, i: usize, entry: &[u8]) -> Result<()> {
        let entry = StoredEntry { system: self.system, tree: self.table.index(i), entry };
        if entry.set_mark(self.txn.id, true)? {
            return Ok(());
        }
        let (index, table) = (self.table.index_name(i), self.table.name());
        Err(Error::Corrupt(format!("index {index} of table {table} lacks the entry of a row")))
    }
}

/// The insertion of an entry.
struct EntryOp<'a> {
    system: &'a TxnSystem,
    table: &'a dyn TableTrees,
    /// The index and its tree.
    i: usize,
    tree: &'a BTree,
    /// The row's key.
    key: &'a [u8],
    entry: &'a [u8],
    made: Entry,
}

impl EntryOp<'_> {
    /// The index columns of the entry.
    fn columns(&self) -> &[u8] {
        &self.entry[..self.made.prefix_bytes]
    }

    fn try_insert(&self, txn: &Txn, mtr: Mtr<'_>) -> Attempt<Added> {
        let value = entry_value(self.made.prefix_bytes);
        let change = LeafChange::Put { key: self.entry, value: &value };
        let claim = || claim_gap(self.system, txn, self.tree.id(), self.entry);
        match self.system.changes.reach(mtr, self.tree, &PendingChange { change, trx_id: txn.id }, claim)? {
            Reached::Leaf(mtr, leaf) => {
                let stored = StoredEntry { system: self.system, tree: self.tree, entry: self.entry };
                stored.put(mtr, leaf, &value, txn.id, claim).map(|()| Added::Done)
            }
            Reached::Absent(added) => Ok(added),
        }
    }

    /// Looks for another row with these index columns. The error names the row at which the search stopped.
    fn check_duplicates(&self, txn: &Txn) -> std::result::Result<(), (Vec<u8>, Stop)> {
        let others = self.other_rows().map_err(|error| (Vec::new(), Stop::Fail(error)))?;
        for other in others {
            if let Err(stop) = self.check_other(txn, &other) {
                return Err((other, stop));
            }
        }
        Ok(())
    }

    /// Keys of the other rows that have, had or may again have an entry with these index columns.
    fn other_rows(&self) -> Result<Vec<Vec<u8>>> {
        let columns = self.columns();
        let mut found = Vec::new();
        let mut entry = Vec::new();
        let mut from = columns.to_vec();
        loop {
            let leaf = self.tree.leaf(&self.system.ctx, Seek::Covers(&from))?;
            let all_ended = leaf.max_trx_id() < self.system.min_active();
            let start = leaf.search(&from).unwrap_or_else(|slot| slot);
            for slot in start..leaf.len() {
                leaf.key_into(slot, &mut entry);
                if !entry.starts_with(columns) {
                    return Ok(found);
                }
                let value = EntryValue::decode(leaf.value(slot), entry.len())?;
                let other = &entry[value.prefix_bytes..];
                // A delete-mark that an ended transaction has set stays.
                let stays_marked = value.delete_marked && all_ended;
                if value.prefix_bytes == columns.len() && other != self.key && !stays_marked {
                    found.push(other.to_vec());
                }
            }
            match leaf.upper() {
                Some(upper) if upper.starts_with(columns) || upper < columns => from = upper.to_vec(),
                _ => return Ok(found),
            }
        }
    }

    fn check_other(&self, txn: &Txn, other: &[u8]) -> Attempt<()> {
        let mut row = Vec::new();
        if !self.read_ended_row(txn, other, &mut row)? {
            return Ok(());
        }
        let mut entry = Vec::new();
        let made = self.table.entry(self.i, other, &row, &mut entry);
        if entry[..made.prefix_bytes] == *self.columns() {
            let (table, index) = (self.table.name().to_string(), self.table.index_name(self.i).to_string());
            return Err(Stop::Fail(Error::DuplicateKey { table, index }));
        }
        Ok(())
    }

    /// Copies the newest version of a row that no other transaction holds. False if there is none.
    fn read_ended_row(&self, txn: &Txn, key: &[u8], row: &mut Vec<u8>) -> Attempt<bool> {
        let tree = self.table.clustered();
        let stored = StoredRow::new(&self.system.ctx, self.table, key);
        loop {
            let leaf = tree.leaf(&self.system.ctx, Seek::Covers(key))?;
            let Ok(slot) = leaf.search(key) else { return Ok(false) };
            let value = leaf.value(slot);
            let header = RowHeader::decode(value)?;
            // Asked under the latch: if its transaction has ended and the version is still here, it was committed.
            if header.trx_id != txn.id
                && let Some(holder) = self.system.holder_of(header.trx_id)
            {
                let implicit = Some((header.trx_id, holder));
                return Err(Stop::WaitRow { index: tree.id(), mode: LockMode::Shared, implicit });
            }
            if header.is_delete_marked() {
                return Ok(false);
            }
            // That there is such a row is a read.
            let (name, mode) = (RowName { index: tree.id(), key }, txn.lock_of_read(LockMode::None));
            if mode != LockMode::None && !txn.wrote(&header) && !self.system.locks.try_lock_row(&txn.holder, name, mode)
            {
                return Err(Stop::WaitRow { index: name.index, mode, implicit: None });
            }
            row.clear();
            row.extend_from_slice(&value[ROW_HEADER_BYTES..]);
            drop(leaf);
            if stored.resolve_unlocked(&header, &header, row)? {
                return Ok(true);
            }
        }
    }
}

/// An entry by its key.
#[derive(Clone, Copy)]
pub(crate) struct StoredEntry<'a> {
    pub(crate) system: &'a TxnSystem,
    pub(crate) tree: &'a BTree,
    pub(crate) entry: &'a [u8],
}

impl StoredEntry<'_> {
    /// Sets or clears the delete-mark, for transaction `by`. False if it is known that there is no such entry.
    pub(crate) fn set_mark(self, by: TxnId, marked: bool) -> Result<bool> {
        let flag = if marked { DELETE_MARKED } else { 0 };
        let change = LeafChange::Flag { key: self.entry, flag };
        let Some((mut mtr, leaf)) = self.reach(&PendingChange { change, trx_id: by })? else { return Ok(true) };
        let Ok(slot) = leaf.search(&mtr, self.entry) else { return Ok(false) };
        if EntryValue::decode(leaf.value(&mtr, slot), self.entry.len())?.delete_marked != marked {
            leaf.splice(&mut mtr, slot, 0, 1, &[flag]);
            leaf.raise_max_trx_id(&mut mtr, by.0);
            mtr.commit();
        }
        Ok(true)
    }

    /// Removes the entry, if it is there. The caller knows that no version needs it.
    pub(crate) fn remove(self) -> Result<()> {
        let change = LeafChange::Remove { key: self.entry };
        let Some((mut mtr, leaf)) = self.reach(&PendingChange { change, trx_id: TxnId(0) })? else { return Ok(()) };
        let Ok(slot) = leaf.search(&mtr, self.entry) else { return Ok(()) };
        leaf.remove(&mut mtr, slot);
        let underfull = leaf.underfull(&mtr);
        mtr.commit();
        if underfull { self.tree.tidy(&self.system.ctx, self.entry) } else { Ok(()) }
    }

    /// Puts back an entry that rollback needs: clears its delete-mark, or inserts it if it is not there.
    pub(crate) fn restore(self, by: TxnId, made: Entry) -> Result<()> {
        let value = entry_value(made.prefix_bytes);
        let change = LeafChange::Put { key: self.entry, value: &value };
        while let Some((mtr, leaf)) = self.reach(&PendingChange { change, trx_id: by })? {
            match self.put(mtr, leaf, &value, by, || Ok(())) {
                Ok(()) => break,
                Err(stop) => settle_rollback(&self.system.ctx, self.tree, self.entry, stop)?,
            }
        }
        Ok(())
    }

    /// Inserts the entry into its leaf, which is latched, or clears its delete-mark, if `allow` does not object.
    fn put(
        self,
        mut mtr: Mtr<'_>,
        leaf: LeafMut,
        value: &[u8],
        by: TxnId,
        allow: impl FnOnce() -> Attempt<()>,
    ) -> Attempt<()> {
        let found = leaf.search(&mtr, self.entry);
        if let Ok(slot) = found
            && !EntryValue::decode(leaf.value(&mtr, slot), self.entry.len())?.delete_marked
        {
            return Ok(());
        }
        allow()?;
        match found {
            Ok(slot) => leaf.splice(&mut mtr, slot, 0, 1, &[0]),
            Err(slot) => {
                if !leaf.fits(&mtr, self.entry.len(), value.len()) {
                    return Err(Stop::MakeRoom(self.entry.len() + value.len()));
                }
                let most_bytes = LeafChange::Put { key: self.entry, value }.most_bytes();
                self.tree.note_growth(&mut mtr, leaf, most_bytes).map_err(Stop::Load)?;
                leaf.insert(&mut mtr, slot, self.entry, value);
            }
        }
        leaf.raise_max_trx_id(&mut mtr, by.0);
        mtr.commit();
        Ok(())
    }

    /// Latches the entry's leaf; `None` if the change is pending now.
    fn reach(&self, pending: &PendingChange<'_>) -> Result<Option<(Mtr<'_>, LeafMut)>> {
        let changes = &self.system.changes;
        loop {
            match changes.reach(self.system.ctx.mtr()?, self.tree, pending, || Result::Ok(()))? {
                Reached::Leaf(mtr, leaf) => return Ok(Some((mtr, leaf))),
                Reached::Absent(added) => {
                    if changes.settle(&added)? {
                        return Ok(None);
                    }
                }
            }
        }
    }
}
