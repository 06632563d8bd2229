//! Secondary entries: insert, delete-mark, remove.
//!
//! Rules
//! 1. Each change of an entry is a separate mini-transaction, made while the transaction has the row locked. It raises
//!    the leaf's max_trx_id to that transaction's id.
//! 2. An entry is only delete-marked by deletes and updates. It is removed by purge, or by the rollback of the change
//!    that made it, when no version of the row that may still be seen has it.
//!    A change of an entry whose leaf is not in the pool may become pending (`crate::change_buffer`).
//!    A change of an entry of an index that is being built is noted for its builder (`entry_log.rs`).
//! 3. The value of an entry that is not delete-marked is that of the row's newest version. So an existing entry,
//!    delete-marked or not, gets its whole new value, and rollback restores the old value.
//! 4. Unique: "no other row has these columns" and the insert of the entry are one step under a striped mutex
//!    (`duplicates.rs`).

use super::attempt::{Attempt, Blocked, check_gap_lockable, unblock, unblock_rollback};
use crate::btree::{BTree, LeafMut};
use crate::change_buffer::{Added, PendingChange, Reached};
use crate::error::{Error, Result};
use crate::mtr::Mtr;
use crate::page::node::LeafChange;
use crate::row::format::{DELETE_MARKED, EntryValue, entry_header};
use crate::txn::entry_log::{EntryChange, EntryLog};
use crate::txn::row_op::RowOp;
use crate::txn::system::TxnSystem;
use crate::txn::table_trees::{IndexEntry, TableTrees};
use crate::txn::transaction::Txn;
use crate::types::TxnId;

impl RowOp<'_> {
    /// Inserts the entry of the row in index `i`, or clears its delete-mark and gives it the row's value.
    pub(super) fn insert_entry(&mut self, i: usize, entry: &[u8], made: IndexEntry, row: &[u8]) -> Result<()> {
        let mut value = std::mem::take(&mut self.txn.buffers.entry_value);
        put_entry_value(self.table, i, made, row, &mut value);
        let inserted = self.insert_entry_value(i, entry, made, &value);
        self.txn.buffers.entry_value = value;
        inserted
    }

    fn insert_entry_value(&mut self, i: usize, entry: &[u8], made: IndexEntry, value: &[u8]) -> Result<()> {
        let RowOp { system, table, key, .. } = *self;
        let tree = table.index(i);
        let limit_bytes = tree.limits().max_key_bytes;
        if entry.len() > limit_bytes {
            let key = format!("the key of index {} of table {}", table.index_name(i), table.name());
            return Err(Error::KeyTooLong { key, bytes: entry.len(), limit_bytes });
        }
        let op = EntryOp { system, table, i, tree, key, entry, value, made };
        debug_assert_eq!(op.entry.get(made.prefix_bytes..), Some(op.key), "an entry ends with the key of its row");
        if table.entry_log(i).is_some_and(|log| log.take(entry, EntryChange::Put(value))) {
            return Ok(());
        }
        loop {
            let mut stripe = made.unique.then(|| system.unique.lock(op.tree, op.columns()));
            if let Some(searched) = &mut stripe
                && let Err((other, blocked)) = op.check_duplicates(self.txn, searched)
            {
                drop(stripe);
                if matches!(blocked, Blocked::Expired) {
                    RowOp { system, txn: self.txn, table, key: &other }.delete_expired()?;
                    continue;
                }
                if matches!(blocked, Blocked::Fail(Error::DuplicateKey { .. })) {
                    self.txn.note_duplicate(&other);
                }
                unblock(system, self.txn, table, (table.clustered(), &other), blocked)?;
                continue;
            }
            match op.try_insert(self.txn, system.ctx.mtr()?) {
                Ok(added) => {
                    if system.changes.make_room_for_added(&added)? {
                        return Ok(());
                    }
                }
                Err(blocked) => {
                    drop(stripe);
                    unblock(system, self.txn, table, (op.tree, entry), blocked)?;
                }
            }
        }
    }

    /// Replaces the value of the existing entry of the row in index `i` by the row's.
    pub(super) fn rewrite_entry(&mut self, i: usize, entry: &[u8], made: IndexEntry, row: &[u8]) -> Result<()> {
        let mut value = std::mem::take(&mut self.txn.buffers.entry_value);
        put_entry_value(self.table, i, made, row, &mut value);
        let stored = StoredEntry::of(self.system, self.table, i, entry);
        let rewritten = stored.restore(self.txn.id, &value);
        self.txn.buffers.entry_value = value;
        rewritten
    }

    /// Delete-marks the row's entry in index `i`, which must be there.
    pub(super) fn delete_mark_entry(&self, i: usize, entry: &[u8]) -> Result<()> {
        let entry = StoredEntry::of(self.system, self.table, i, entry);
        if entry.set_mark(self.txn.id, true)? {
            return Ok(());
        }
        let (index, table) = (self.table.index_name(i), self.table.name());
        Err(Error::Corrupt(format!("index {index} of table {table} lacks the entry of a row")))
    }
}

/// Replaces `out` with the value of the live entry of a row.
pub(crate) fn put_entry_value(table: &dyn TableTrees, i: usize, made: IndexEntry, row: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&entry_header(made.prefix_bytes));
    table.covered(i, row, out);
}

/// The insertion of an entry.
pub(super) struct EntryOp<'a> {
    pub(super) system: &'a TxnSystem,
    pub(super) table: &'a dyn TableTrees,
    /// The index and its tree.
    pub(super) i: usize,
    pub(super) tree: &'a BTree,
    /// The row's key.
    pub(super) key: &'a [u8],
    pub(super) entry: &'a [u8],
    pub(super) value: &'a [u8],
    pub(super) made: IndexEntry,
}

impl EntryOp<'_> {
    /// The index columns of the entry.
    pub(super) fn columns(&self) -> &[u8] {
        &self.entry[..self.made.prefix_bytes]
    }

    fn try_insert(&self, txn: &Txn, mtr: Mtr<'_>) -> Attempt<Added> {
        let change = LeafChange::Put { key: self.entry, value: self.value };
        let check_lockable = || check_gap_lockable(self.system, txn, self.tree.id(), self.entry);
        match self.system.changes.reach(mtr, self.tree, &PendingChange { change, trx_id: txn.id }, check_lockable)? {
            Reached::Leaf(mtr, leaf) => {
                let stored = StoredEntry { system: self.system, tree: self.tree, entry: self.entry, log: None };
                stored.put(mtr, leaf, self.value, txn.id, check_lockable).map(|()| Added::Done)
            }
            Reached::Absent(added) => Ok(added),
        }
    }
}

/// An entry by its key.
#[derive(Clone, Copy)]
pub(crate) struct StoredEntry<'a> {
    pub(crate) system: &'a TxnSystem,
    pub(crate) tree: &'a BTree,
    pub(crate) entry: &'a [u8],
    /// The log of changes while the index is being built.
    pub(crate) log: Option<&'a EntryLog>,
}

impl<'a> StoredEntry<'a> {
    /// An entry of index `i` of a table.
    #[inline]
    pub(crate) fn of(system: &'a TxnSystem, table: &'a dyn TableTrees, i: usize, entry: &'a [u8]) -> StoredEntry<'a> {
        StoredEntry { system, tree: table.index(i), entry, log: table.entry_log(i) }
    }

    /// Logs a change for the builder if the index is being built; false if it has to go to the tree.
    #[inline]
    fn log_takes(&self, change: EntryChange<'_>) -> bool {
        self.log.is_some_and(|log| log.take(self.entry, change))
    }
}

impl StoredEntry<'_> {
    /// Sets or clears the delete-mark, for transaction `by`. False if there is certainly no such entry.
    pub(crate) fn set_mark(self, by: TxnId, marked: bool) -> Result<bool> {
        debug_assert!(marked || self.log.is_none(), "an entry is put, not unmarked");
        if self.log_takes(EntryChange::Mark) {
            return Ok(true);
        }
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
        if self.log_takes(EntryChange::Remove) {
            return Ok(());
        }
        let change = LeafChange::Remove { key: self.entry };
        let Some((mut mtr, leaf)) = self.reach(&PendingChange { change, trx_id: TxnId(0) })? else { return Ok(()) };
        let Ok(slot) = leaf.search(&mtr, self.entry) else { return Ok(()) };
        let before = leaf.used_bytes(&mtr);
        leaf.remove(&mut mtr, slot);
        let underfull = leaf.underfull(&mtr, before);
        mtr.commit();
        if underfull { self.tree.tidy(&self.system.ctx, self.entry) } else { Ok(()) }
    }

    /// Gives the entry of a locked row this value, clears its delete-mark, and inserts it if it is not there.
    pub(crate) fn restore(self, by: TxnId, value: &[u8]) -> Result<()> {
        if self.log_takes(EntryChange::Put(value)) {
            return Ok(());
        }
        let change = LeafChange::Put { key: self.entry, value };
        while let Some((mtr, leaf)) = self.reach(&PendingChange { change, trx_id: by })? {
            match self.put(mtr, leaf, value, by, || Ok(())) {
                Ok(()) => break,
                Err(blocked) => unblock_rollback(&self.system.ctx, self.tree, self.entry, blocked)?,
            }
        }
        Ok(())
    }

    /// Inserts the entry into its latched leaf, or replaces the value of the existing one (rule 3), if `allow` permits
    /// it.
    fn put(
        self,
        mut mtr: Mtr<'_>,
        leaf: LeafMut,
        value: &[u8],
        by: TxnId,
        allow: impl FnOnce() -> Attempt<()>,
    ) -> Attempt<()> {
        let found = leaf.search(&mtr, self.entry);
        let old = found.map(|slot| leaf.value(&mtr, slot));
        if let Ok(old) = old {
            // It shall be an entry.
            EntryValue::decode(old, self.entry.len())?;
            if old == value {
                return Ok(());
            }
        }
        let old_bytes = old.map_or(0, <[u8]>::len);
        allow()?;
        match found {
            Ok(slot) => {
                let growth = value.len().saturating_sub(old_bytes);
                if growth > 0 {
                    if !leaf.fits_growth(&mtr, slot, growth) {
                        return Err(Blocked::MakeRoom(growth));
                    }
                    self.tree.note_growth(&mut mtr, leaf, growth).map_err(Blocked::Load)?;
                }
                leaf.splice(&mut mtr, slot, 0, old_bytes, value);
            }
            Err(slot) => {
                if !leaf.fits(&mtr, self.entry.len(), value.len()) {
                    return Err(Blocked::MakeRoom(self.entry.len() + value.len()));
                }
                let max_bytes = LeafChange::Put { key: self.entry, value }.max_bytes();
                self.tree.note_growth(&mut mtr, leaf, max_bytes).map_err(Blocked::Load)?;
                leaf.insert(&mut mtr, slot, self.entry, value);
            }
        }
        debug_assert_ne!(by, TxnId(0), "rule 1: no transaction changes an entry");
        let stored = leaf.search(&mtr, self.entry).map(|slot| leaf.value(&mtr, slot));
        debug_assert_eq!(stored, Ok(value), "rule 3: an entry has not its whole new value");
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
                    if changes.make_room_for_added(&added)? {
                        return Ok(None);
                    }
                }
            }
        }
    }
}
