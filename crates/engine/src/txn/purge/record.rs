//! Purge of one undo record: it removes everything that only the version before the change needed.

use crate::change_buffer::{Added, PendingChange};
use crate::error::{Error, Result};
use crate::mtr::Mtr;
use crate::page::header;
use crate::page::node::LeafChange;
use crate::row::format::{EntryValue, OverflowRef, RowHeader};
use crate::txn::entry_log::EntryLog;
use crate::txn::overflow;
use crate::txn::overflow_columns::{Wanted, retain_named};
use crate::txn::read::{EntryOf, Histories, ReadView, StoredRow, resolve};
use crate::txn::system::TxnSystem;
use crate::txn::write::{Attempt, Blocked};
use crate::types::{Lsn, PageNo, TxnId};
use crate::undo::record::{FREEING, UndoChange, next_entry};
use crate::undo::{UndoPlace, mark, pointer_to};

/// One record being purged.
pub(super) struct Purge<'a> {
    pub(super) system: &'a TxnSystem,
    pub(super) view: &'a ReadView,
    pub(super) histories: &'a mut Histories,
    pub(super) row: StoredRow<'a>,
    /// The place of the record.
    pub(super) place: UndoPlace,
}

impl Purge<'_> {
    /// Removes the entries and overflow chains that only the version before an update needed.
    pub(super) fn update(&mut self, change: &UndoChange<'_>, entries_changed: bool) -> Result<()> {
        if let Some(entries) = change.entries {
            self.moved_entries(entries)?;
        } else if entries_changed {
            self.entries(&self.old_row(change)?)?;
        }
        self.free_chains(change)
    }

    /// The row before a change whose record has the whole old payload, with the columns that its entries are built
    /// from. Chains that the record does not name may be freed already. An index that needs their columns is younger
    /// than the change, and each entry of this version in it is also one of a newer version.
    fn old_row(&self, change: &UndoChange<'_>) -> Result<Vec<u8>> {
        let mut row = change.old_middle.to_vec();
        let named: Vec<OverflowRef> = change.chains().map(|(_, reference)| reference).collect();
        if change.old.is_overflow() && retain_named(&named, &mut row)? {
            resolve(self.row.ctx, self.row.table, Wanted::ENTRIES, &change.old, &mut row)?;
        }
        Ok(row)
    }

    /// Removes a deleted row, if it was not inserted again.
    pub(super) fn delete(&mut self, change: &UndoChange<'_>) -> Result<()> {
        let mut row = Vec::new();
        let Some(header) = self.row.newest(&mut row)? else { return Ok(()) };
        if !self.is_ours(&header) {
            return Ok(());
        }
        if self.row.table.index_count() > 0 {
            let stored = StoredRow { wanted: Wanted::ENTRIES, ..self.row };
            if !stored.resolve_unlocked(&header, &header, &mut row)? {
                return Ok(());
            }
            self.entries(&row)?;
        }
        if self.remove_row()? { self.free_chains(change) } else { Ok(()) }
    }

    fn is_ours(&self, header: &RowHeader) -> bool {
        header.is_delete_marked() && header.roll_ptr == pointer_to(self.place)
    }

    /// Purges the entries that the record names. Those of a dropped index are skipped.
    fn moved_entries(&mut self, mut entries: &[u8]) -> Result<()> {
        let mut entry = Vec::new();
        while let Some((index, columns)) = next_entry(&mut entries)? {
            if let Some(i) = (0..self.row.table.index_count()).find(|i| self.row.table.index(*i).id() == index) {
                entry.clear();
                entry.extend_from_slice(columns);
                entry.extend_from_slice(self.row.key);
                self.entry(i, &entry)?;
            }
        }
        Ok(())
    }

    fn entries(&mut self, row: &[u8]) -> Result<()> {
        let mut entry = Vec::new();
        for i in 0..self.row.table.index_count() {
            entry.clear();
            self.row.table.entry(i, self.row.key, row, &mut entry)?;
            self.entry(i, &entry)?;
        }
        Ok(())
    }

    /// Removes an entry; see rule 3.
    fn entry(&mut self, i: usize, entry: &[u8]) -> Result<()> {
        if self.row.table.entry_log(i).is_some_and(EntryLog::is_open) {
            return Ok(());
        }
        let tree = self.row.table.index(i);
        if self.system.changes.takes(tree) && self.remove_unread(i, entry)? {
            return Ok(());
        }
        loop {
            let Some(seen) = self.marked_entry(i, entry)? else { return Ok(()) };
            let of = EntryOf { row: self.row, i, entry, purge_view: self.view };
            if of.is_needed(self.histories)? {
                return Ok(());
            }
            let mut mtr = self.row.ctx.mtr()?;
            let leaf = tree.leaf_mut(&mut mtr, entry)?;
            let page = leaf.latched;
            if (mtr.page_no(page), header::lsn(mtr.page(page))) == seen
                && let Ok(slot) = leaf.search(&mtr, entry)
            {
                let before = leaf.used_bytes(&mtr);
                leaf.remove(&mut mtr, slot);
                let underfull = leaf.underfull(&mtr, before);
                mtr.commit();
                return if underfull { tree.tidy(self.row.ctx, entry) } else { Ok(()) };
            }
        }
    }

    /// Buffers the removal of an entry if its leaf is not in the pool; false if the leaf has to be read. The leaf must
    /// not change between the check of the versions and this: a transaction that inserts the entry again changes its
    /// row first. An entry that no version needs is delete-marked or missing.
    fn remove_unread(&mut self, i: usize, entry: &[u8]) -> Result<bool> {
        let (ctx, changes, tree) = (self.row.ctx, &self.system.changes, self.row.table.index(i));
        let Some(watch) = tree.non_resident_leaf(ctx, entry)?.and_then(|leaf| changes.watch(&leaf)) else {
            return Ok(false);
        };
        let of = EntryOf { row: self.row, i, entry, purge_view: self.view };
        if of.is_needed(self.histories)? {
            return Ok(true);
        }
        let pending = PendingChange { change: LeafChange::Remove { key: entry }, trx_id: TxnId(0) };
        loop {
            let mut mtr = ctx.mtr()?;
            let Some(leaf) = tree.non_resident_leaf_in(&mut mtr, entry)? else { return Ok(false) };
            match changes.add_if_watched(mtr, &leaf, &pending, &watch)? {
                Added::Done => return Ok(true),
                lack @ Added::TooFull(_) => changes.make_room_for_added(&lack).map(drop)?,
                _ => return Ok(false),
            }
        }
    }

    /// Page and page LSN of an entry, if it is there and delete-marked.
    fn marked_entry(&self, i: usize, entry: &[u8]) -> Result<Option<(PageNo, Lsn)>> {
        let mut mtr = self.row.ctx.mtr()?;
        let leaf = self.row.table.index(i).leaf_mut(&mut mtr, entry)?;
        let Ok(slot) = leaf.search(&mtr, entry) else { return Ok(None) };
        let marked = EntryValue::decode(leaf.value(&mtr, slot), entry.len())?.delete_marked;
        Ok(marked.then(|| (mtr.page_no(leaf.latched), header::lsn(mtr.page(leaf.latched)))))
    }

    /// Removes the deleted row if its newest version is still this record's; the undo record owns its overflow chains
    /// then.
    fn remove_row(&self) -> Result<bool> {
        loop {
            let mut mtr = self.row.ctx.mtr()?;
            match self.try_remove_row(&mut mtr) {
                Ok(None) => return Ok(false),
                Ok(Some(underfull)) => {
                    mtr.commit();
                    if underfull {
                        self.row.table.clustered().tidy(self.row.ctx, self.row.key)?;
                    }
                    return Ok(true);
                }
                Err(Blocked::Load(page)) => {
                    mtr.abandon();
                    self.row.ctx.pool.load(page)?;
                }
                Err(Blocked::Fail(error)) => return Err(error),
                Err(stop) => return Err(Error::Corrupt(format!("purge was stopped by {stop:?}"))),
            }
        }
    }

    fn try_remove_row(&self, mtr: &mut Mtr<'_>) -> Attempt<Option<bool>> {
        let leaf = self.row.table.clustered().leaf_mut(mtr, self.row.key)?;
        let Ok(slot) = leaf.search(mtr, self.row.key) else { return Ok(None) };
        let header = RowHeader::decode(leaf.value(mtr, slot))?;
        if !self.is_ours(&header) {
            return Ok(None);
        }
        let before = leaf.used_bytes(mtr);
        if header.is_overflow() {
            let page = mtr.try_fix_x(self.place.page).ok_or(Blocked::Load(self.place.page))?;
            leaf.remove(mtr, slot);
            mark(mtr, page, self.place, FREEING);
        } else {
            leaf.remove(mtr, slot);
        }
        debug_assert!(leaf.search(mtr, self.row.key).is_err(), "rule 4: the row is there that purge has removed");
        Ok(Some(leaf.underfull(mtr, before)))
    }

    pub(super) fn free_chains(&self, change: &UndoChange<'_>) -> Result<()> {
        overflow::free_named(self.system, self.place, change)
    }
}
