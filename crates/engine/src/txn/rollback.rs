//! Rollback: of a statement, to a savepoint, of a transaction, after a crash.
//!
//! Rules
//! 1. Records are undone newest first. Each is undone entries first, row last; the row is restored and the record
//!    marked dead in one mini-transaction. A crash in between repeats the record, and repeating any step changes
//!    nothing.
//! 2. Rows stay locked by their transaction id until their oldest version is back; rollback never waits for a lock.
//! 3. The purge view is held from the check of what older snapshots need until the removal.
//! 4. Rollback may take the space that is reserved (`space::reserve`): it works on a full disk.
//! 5. A partial rollback keeps the locks that protect what the transaction has read. At levels where reads lock ranges,
//!    a restored row stays locked, explicitly; so does the absence of a removed row, and of its unique columns. (InnoDB
//!    makes implicit locks explicit at the same levels.)
//! 6. A rollback does not read again the records that an earlier partial rollback has undone: repeated rollbacks to the
//!    same savepoint would otherwise read all of them each time.
//! 7. If the version to restore is a deletion that every snapshot sees, the row is removed instead: purge may have
//!    passed that deletion while the row was in use, and does not return to it.
//! 8. The cost of a rollback is proportional to its undo records, even if the transaction has changed one row many
//!    times: of the transaction's own versions below the removed one only a few are checked for its entries
//!    (`read::entry_visibility`). If there are more, an entry is removed although one of them may have it; the
//!    restoration of that version inserts it again. Until the transaction ends, no other thread takes the unique
//!    columns of such an entry.

use super::overflow::{self, OwnedChain};
use super::overflow_columns::Wanted;
use super::read::{EntryOf, OwnVersions, ReadView, StoredRow, Version, resolve};
use super::system::TxnSystem;
use super::table_trees::IndexEntry;
use super::transaction::{Txn, TxnState as TransactionState};
use super::write::{Attempt, Blocked, StoredEntry, put_entry_value, unblock_rollback};
use crate::error::{Error, Result};
use crate::lock::{Holder, RowName};
use crate::mtr::Mtr;
use crate::row::diff::DiffRange;
use crate::row::format::{ROW_HEADER_BYTES, RowHeader};
use crate::space::reserve::{self, SpacePriority};
use crate::types::TxnId;
use crate::undo::record::{DEAD, FREEING, OVERFLOW_FIRST_PAGE_AT, TxnState, UndoChange, UndoKind, UndoRecord};
use crate::undo::{OwnedRecord, UndoLog, UndoPlace, mark, pointer_to, read_record, record_before};

/// Undoes what was done since the undo log ended at `at` (`None`: before the first write).
pub(crate) fn roll_back_to(system: &TxnSystem, txn: &mut Txn, at: Option<UndoPlace>) -> Result<()> {
    debug_assert!(at.is_none() || txn.undo.is_some(), "{} goes back to {at:?}, and has no undo", txn.id);
    let of = Of { trx_id: txn.id, goes_on: Some(&txn.holder), keeps_all: txn.locks_ranges() };
    match &mut txn.undo {
        Some(undo) => undo_down_to(system, undo, &mut txn.own_versions, of, at),
        None => Ok(()),
    }
}

/// Undoes everything and ends the transaction, but for its locks and view.
pub(crate) fn roll_back_all(system: &TxnSystem, txn: &mut Txn) -> Result<()> {
    debug_assert_ne!(txn.state, TransactionState::Prepared, "rule 4 of two phases: {} is undone", txn.id);
    if let Some(undo) = &mut txn.undo {
        let of = Of { trx_id: txn.id, goes_on: None, keeps_all: false };
        undo_down_to(system, undo, &mut txn.own_versions, of, None)?;
    }
    txn.finish(system, TxnState::RolledBack).map(drop)
}

/// Whose changes are undone.
#[derive(Clone, Copy)]
struct Of<'a> {
    trx_id: TxnId,
    /// The transaction, if it continues.
    goes_on: Option<&'a Holder>,
    /// Whether it keeps everything locked that it undoes (rule 5).
    keeps_all: bool,
}

impl<'a> Of<'a> {
    fn keeps(&self) -> Option<&'a Holder> {
        self.goes_on.filter(|_| self.keeps_all)
    }
}

/// `None`: down to the transaction's first record.
fn undo_down_to(
    system: &TxnSystem,
    undo: &mut UndoLog,
    own_versions: &mut Option<Box<OwnVersions>>,
    of: Of<'_>,
    target: Option<UndoPlace>,
) -> Result<()> {
    let _entitled = reserve::entitle(SpacePriority::Cleaning);
    let Some(start) = undo.start() else { return Ok(()) };
    let (tail, target) = (undo.tail(), target.unwrap_or(start));
    let mut at = tail;
    let mut record = OwnedRecord { place: at, bytes: Vec::new() };
    let mut versions = own_versions.take().unwrap_or_default();
    while at != target {
        // Rule 6.
        if let Some((_, begin)) = undo.undone.pop_if(|(end, _)| *end == at) {
            at = begin;
            continue;
        }
        match record_before(&system.ctx, at)? {
            Err(page_before) => at = page_before,
            Ok(start) => {
                let is_before = start.page == at.page && start.offset < at.offset;
                debug_assert!(is_before, "rule 1: {start:?} is undone after {at:?}");
                record.place = start;
                read_record(&system.ctx, start, &mut record.bytes)?;
                undo_record(system, of, &mut versions, record.place, &record.parse()?)?;
                at = start;
            }
        }
    }
    if tail != target {
        undo.undone.push((tail, target));
    }
    *own_versions = Some(versions).filter(|versions| !versions.is_empty());
    Ok(())
}

fn undo_record(
    system: &TxnSystem,
    of: Of<'_>,
    versions: &mut OwnVersions,
    place: UndoPlace,
    record: &UndoRecord<'_>,
) -> Result<()> {
    if record.kind == UndoKind::Header {
        return Err(Error::corrupt_page(place.page, "rollback met another transaction's header"));
    }
    // Its transaction was to be prepared; no row has changed.
    if record.kind == UndoKind::Xid {
        return Ok(());
    }
    if record.kind == UndoKind::Overflow {
        let (table, first, stamp) = record.overflow()?;
        let chain = OwnedChain { record: place, first_page_at: OVERFLOW_FIRST_PAGE_AT, first, stamp };
        return match system.table(table)? {
            Some(_) => overflow::free(system, chain, 0),
            None => Ok(()),
        };
    }
    if record.dead && !record.freeing {
        return Ok(());
    }
    let (table, key) = record.row()?;
    // A dropped table takes its rows and chains with it.
    let Some(table) = system.table(table)? else { return Ok(()) };
    // Before an entry is changed: an undone half would differ from the row.
    table.check_entries()?;
    let undo = Undo { system, of, row: StoredRow::new(&system.ctx, &*table, key), place };
    match record.kind {
        UndoKind::Insert => {
            undo.forget(versions);
            undo.insert()
        }
        _ if record.dead => overflow::free_named(system, place, &record.change()?),
        _ => undo.change(record, &record.change()?, versions),
    }
}

/// One record being undone.
struct Undo<'a> {
    system: &'a TxnSystem,
    of: Of<'a>,
    row: StoredRow<'a>,
    place: UndoPlace,
}

/// The outcome for the row.
enum Outcome<'a> {
    Removed,
    Restored(&'a UndoChange<'a>, &'a [u8]),
}

impl Undo<'_> {
    /// The transaction has no version of the row any more.
    fn forget(&self, versions: &mut OwnVersions) {
        versions.forget(self.row.table.clustered().id(), self.row.key);
    }

    /// The row as the record's change left it; `None` if that is undone already.
    fn changed_row(&self) -> Result<Option<(RowHeader, Vec<u8>)>> {
        let mut payload = Vec::new();
        let header = self.row.newest(&mut payload)?;
        Ok(header.filter(|header| self.made(header)).map(|header| (header, payload)))
    }

    fn entry<'e>(&'e self, i: usize, entry: &'e [u8]) -> StoredEntry<'e> {
        StoredEntry::of(self.system, self.row.table, i, entry)
    }

    /// Replaces the payload of a version by its row, with the columns of its entries.
    fn resolve(&self, version: &RowHeader, payload: &mut Vec<u8>) -> Result<()> {
        resolve(self.row.ctx, self.row.table, Wanted::ENTRIES, version, payload)
    }

    fn made(&self, header: &RowHeader) -> bool {
        header.trx_id == self.of.trx_id && header.roll_ptr == pointer_to(self.place)
    }

    fn insert(&self) -> Result<()> {
        let Some((header, mut row)) = self.changed_row()? else { return Ok(()) };
        if self.row.table.index_count() > 0 {
            self.resolve(&header, &mut row)?;
        }
        self.remove_entries(&row)?;
        self.put_row(&Outcome::Removed, DEAD)
    }

    fn remove_entries(&self, row: &[u8]) -> Result<()> {
        let mut entry = Vec::new();
        for i in 0..self.row.table.index_count() {
            entry.clear();
            let made = self.row.table.entry(i, self.row.key, row, &mut entry)?;
            self.keep_columns(self.of.keeps(), i, &entry, made);
            self.entry(i, &entry).remove()?;
        }
        Ok(())
    }

    fn change(&self, record: &UndoRecord<'_>, change: &UndoChange<'_>, versions: &mut OwnVersions) -> Result<()> {
        if change.old.trx_id != self.of.trx_id {
            self.forget(versions);
        }
        let Some((header, stored)) = self.changed_row()? else { return Ok(()) };
        let mut old_stored = stored.clone();
        if record.kind == UndoKind::Update {
            change.apply(&mut old_stored)?;
        }
        let purge_view = self.system.purge_view.read();
        let gone = change.old.is_delete_marked() && purge_view.sees(change.old.trx_id);
        if record.entries_changed() {
            let (mut new_row, mut old_row) = (stored, old_stored.clone());
            self.resolve(&header, &mut new_row)?;
            self.resolve(&change.old, &mut old_row)?;
            if gone {
                self.remove_entries(&new_row)?;
                self.remove_entries(&old_row)?;
            } else {
                let new_row = (record.kind == UndoKind::Update).then_some(&new_row[..]);
                let old = Version { header: change.old, payload: old_stored.clone() };
                self.restore_entries(&purge_view, versions, &old, &old_row, new_row)?;
            }
        }
        if !gone {
            return self.put_row(&Outcome::Restored(change, &old_stored), DEAD);
        }
        // An insertion over the deleted row: it names all chains of that one.
        let freeing = if change.old.is_overflow() { FREEING } else { 0 };
        self.put_row(&Outcome::Removed, DEAD | freeing)?;
        drop(purge_view);
        overflow::free_named(self.system, self.place, change)
    }

    /// Takes the entries of the new row (none if it was deleted) away and puts those of the old one back.
    fn restore_entries(
        &self,
        purge_view: &ReadView,
        versions: &mut OwnVersions,
        old: &Version,
        old_row: &[u8],
        new_row: Option<&[u8]>,
    ) -> Result<()> {
        let (mut old_entry, mut new_entry, mut value) = (Vec::new(), Vec::new(), Vec::new());
        for i in 0..self.row.table.index_count() {
            old_entry.clear();
            let made = self.row.table.entry(i, self.row.key, old_row, &mut old_entry)?;
            put_entry_value(self.row.table, i, made, old_row, &mut value);
            if let Some(new_row) = new_row {
                new_entry.clear();
                let made = self.row.table.entry(i, self.row.key, new_row, &mut new_entry)?;
                if new_entry == old_entry && !old.header.is_delete_marked() {
                    // It stays, with what it had in addition to its key.
                    if self.row.table.entry_changes(i, old_row, new_row) {
                        self.entry(i, &old_entry).restore(self.of.trx_id, &value)?;
                    }
                    continue;
                }
                self.keep_columns(self.of.keeps(), i, &new_entry, made);
                let entry = EntryOf { row: self.row, i, entry: &new_entry, purge_view };
                let needed = entry.is_needed_from(old, self.of.trx_id, versions)?;
                if !needed.own_too {
                    self.keep_columns(self.of.goes_on, i, &new_entry, made);
                }
                if needed.is_needed {
                    self.entry(i, &new_entry).set_mark(self.of.trx_id, true)?;
                } else {
                    self.entry(i, &new_entry).remove()?;
                }
            }
            if !old.header.is_delete_marked() {
                self.entry(i, &old_entry).restore(self.of.trx_id, &value)?;
            }
        }
        Ok(())
    }

    /// Restores or removes the clustered row and sets `bits` in the undo record, in one mini-transaction.
    fn put_row(&self, outcome: &Outcome<'_>, bits: u8) -> Result<()> {
        let tree = self.row.table.clustered();
        loop {
            let mut mtr = self.row.ctx.mtr()?;
            match self.try_put_row(&mut mtr, outcome, bits) {
                Ok(underfull) => {
                    mtr.commit();
                    return if underfull { tree.tidy(self.row.ctx, self.row.key) } else { Ok(()) };
                }
                Err(blocked) => {
                    mtr.abandon();
                    unblock_rollback(self.row.ctx, tree, self.row.key, blocked)?;
                }
            }
        }
    }

    fn try_put_row(&self, mtr: &mut Mtr<'_>, outcome: &Outcome<'_>, bits: u8) -> Attempt<bool> {
        let leaf = self.row.table.clustered().leaf_mut(mtr, self.row.key)?;
        let Ok(slot) = leaf.search(mtr, self.row.key) else { return Ok(false) };
        let value = leaf.value(mtr, slot);
        if !self.made(&RowHeader::decode(value)?) {
            return Ok(false);
        }
        let (payload, before) = (&value[ROW_HEADER_BYTES..], leaf.used_bytes(mtr));
        let undo_page = |mtr: &mut Mtr<'_>| mtr.try_fix_x(self.place.page).ok_or(Blocked::Load(self.place.page));
        match outcome {
            Outcome::Removed => {
                let undo_page = undo_page(mtr)?;
                self.keep_row(true);
                leaf.remove(mtr, slot);
                mark(mtr, undo_page, self.place, bits);
                debug_assert!(
                    leaf.search(mtr, self.row.key).is_err(),
                    "rule 1: the row is there that is to be removed"
                );
            }
            Outcome::Restored(change, old_stored) => {
                let middle = DiffRange::of(payload, old_stored);
                let (at, removed) = (ROW_HEADER_BYTES + middle.prefix, middle.cut(payload).len());
                let growth = old_stored.len().saturating_sub(payload.len());
                if growth > 0 && !leaf.fits_growth(mtr, slot, growth) {
                    return Err(Blocked::MakeRoom(growth));
                }
                let undo_page = undo_page(mtr)?;
                self.keep_row(change.old.is_delete_marked());
                leaf.splice(mtr, slot, 0, ROW_HEADER_BYTES, &change.old.encode());
                leaf.splice(mtr, slot, at, removed, middle.cut(old_stored));
                mark(mtr, undo_page, self.place, bits);
                let (header, row) = leaf.value(mtr, slot).split_at(ROW_HEADER_BYTES);
                debug_assert_eq!(header, change.old.encode(), "rule 1: the header of a restored row");
                debug_assert!(row == &old_stored[..], "rule 1: a restored row is not the version before");
            }
        }
        Ok(leaf.underfull(mtr, before))
    }

    /// Keeps the row locked, which has lost its implicit lock when its leaf is unlatched; and its absence, if it is
    /// `absent` then.
    fn keep_row(&self, absent: bool) {
        let (Some(holder), index, key) = (self.of.keeps(), self.row.table.clustered().id(), self.row.key) else {
            return;
        };
        self.system.locks.keep_row(holder, RowName { index, key });
        if absent {
            self.system.locks.lock_point(holder, index, key);
        }
    }

    /// Keeps others than `holder` from inserting the unique columns of an entry that is about to go. (Until it has
    /// gone, they wait for its row.)
    fn keep_columns(&self, holder: Option<&Holder>, i: usize, entry: &[u8], made: IndexEntry) {
        if let Some(holder) = holder.filter(|_| made.unique) {
            self.system.locks.lock_prefix(holder, self.row.table.index(i).id(), &entry[..made.prefix_bytes]);
        }
    }
}
