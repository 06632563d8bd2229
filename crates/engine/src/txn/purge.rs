//! Purge: takes away what no snapshot can see any more.
//!
//! Terms. The *purge view* is a copy of the oldest open view (or a view of the moment if none is open). A transaction whose
//! commit number is below the view's `low_limit_no` had ended for every open view: what its changes replaced can go.
//!
//! Rules
//! 1. Transactions are purged in the order of their numbers, records in the order they were written.
//! 2. The purge view only advances, at the start of a step; who must keep it still (rollback) holds it shared.
//! 3. A secondary entry is removed iff it is delete-marked and no version from the newest down to the first that the purge
//!    view sees has it. Between the question and the removal the entry's leaf must not have changed (its page LSN says so).
//! 4. A row is removed iff its newest version is the deletion being purged; its entries go first.
//! 5. An overflow chain goes with the version that had it: with the Update record that replaced it, or with the removed row.
//! 6. Every step may be repeated: after a crash purge starts again at the front of each stream, at the first transaction
//!    that was not known to be done when pages were last given back.
//!
//! Crash: a half-freed chain is found again by the undo record, which is kept until all its transaction is purged.

use super::attempt::Stop;
use super::overflow;
use super::read::{resolve_unlocked, stored_row};
use super::read_view::ReadView;
use super::row::{EntryValue, OverflowRef, RowHeader};
use super::rows::Rows;
use super::system::TrxSystem;
use super::undo::record::{Change, FREEING, Kind, State};
use super::undo::{OwnedRecord, Place, RECORDS_AT, StreamFront, mark, pointer_to, scan_page};
use super::versions::EntryOf;
use crate::error::{Error, Result};
use crate::mtr::Mtr;
use crate::page::header;
use crate::types::{Lsn, PageNo};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};

/// Where purge stands.
#[derive(Debug, Default)]
pub(crate) struct PurgeState {
    fronts: HashMap<usize, StreamFront>,
    view: ReadView,
}

impl TrxSystem {
    /// Purges what can go, up to about `max_records` undo records. Returns how many were looked at; 0 means that there is
    /// nothing to do for now. Steps of several threads go one after the other.
    ///
    /// # Errors
    /// I/O or corruption; the step may be tried again.
    pub fn purge_step(&self, max_records: usize) -> Result<usize> {
        let state = &mut *self.purge.lock();
        {
            let mut view = self.purge_view.write();
            self.copy_oldest_view(&mut view);
            state.view.copy_from(&view);
        }
        self.meet_new_fronts(state)?;
        let mut done = 0;
        while done < max_records {
            let Some(Reverse((number, stream))) = self.pop_ended(state.view.low_limit_no) else { break };
            let (looked_at, ended) = self
                .purge_some(state, stream, max_records - done)
                .inspect_err(|_| self.ended.lock().push(Reverse((number, stream))))?;
            done += looked_at;
            if ended {
                self.end_of_transaction(state, stream)?;
            } else {
                self.ended.lock().push(Reverse((number, stream)));
            }
        }
        Ok(done)
    }

    /// Keeps purge from working while the guard lives.
    pub(crate) fn hold_purge(&self) -> impl Drop + '_ {
        self.purge.lock()
    }

    /// Ended transactions whose undo is not purged yet.
    pub fn history_list_length(&self) -> u64 {
        self.history.load(Relaxed)
    }

    fn pop_ended(&self, limit: u64) -> Option<Reverse<(u64, usize)>> {
        let mut ended = self.ended.lock();
        let Reverse((number, _)) = ended.peek()?;
        if *number < limit { ended.pop() } else { None }
    }

    fn meet_new_fronts(&self, state: &mut PurgeState) -> Result<()> {
        for mut front in self.undo.take_new_fronts() {
            let number = front.number;
            if front.untold {
                let first = self.number_at(&mut front)?;
                self.ended.lock().push(Reverse((first, number)));
            }
            state.fronts.insert(number, front);
        }
        Ok(())
    }

    /// Moves `front` to the next transaction header and reads its number.
    fn number_at(&self, front: &mut StreamFront) -> Result<u64> {
        loop {
            let mut found = None;
            let (offset, next) = scan_page(&self.ctx, front.at, |_, record, _| {
                if record.kind == Kind::Header {
                    found = Some(record.header()?);
                }
                Ok(found.is_none())
            })?;
            front.at.offset = offset;
            match found {
                Some((_, State::Active, _)) => {
                    return Err(Error::corrupt_page(front.at.page, "an active transaction is to be purged"));
                }
                Some((_, _, number)) => return Ok(number),
                None if next == PageNo(0) => {
                    return Err(Error::corrupt_page(front.at.page, "an undo stream lacks a transaction to purge"));
                }
                None => front.at = Place { page: next, offset: RECORDS_AT },
            }
        }
    }

    /// Purges up to `budget` records of the transaction at the front of a stream. Returns how many it looked at and whether
    /// that was the rest.
    fn purge_some(&self, state: &mut PurgeState, stream: usize, budget: usize) -> Result<(usize, bool)> {
        if !state.fronts.contains_key(&stream) {
            self.meet_new_fronts(state)?;
        }
        let PurgeState { fronts, view } = state;
        let Some(front) = fronts.get_mut(&stream) else {
            return Err(Error::Corrupt(format!("undo stream {stream} is unknown to purge")));
        };
        let before = (front.at, front.inside);
        let mut work = Vec::new();
        let purged = self.collect(front, budget, &mut work).and_then(|(looked_at, ended)| {
            work.iter().try_for_each(|record| self.purge_record(view, record))?;
            self.stats.purged_records.add(looked_at as u64);
            Ok((looked_at, ended))
        });
        if purged.is_err() {
            (front.at, front.inside) = before;
        }
        purged
    }

    /// Copies the records that need work. Returns how many it passed and whether the transaction ends there.
    fn collect(&self, front: &mut StreamFront, budget: usize, work: &mut Vec<OwnedRecord>) -> Result<(usize, bool)> {
        let mut looked_at = 0;
        loop {
            let (page, mut inside, mut ended) = (front.at.page, front.inside, false);
            let (offset, next) = scan_page(&self.ctx, front.at, |offset, record, bytes| {
                ended = inside && record.kind == Kind::Header;
                if ended || looked_at >= budget {
                    return Ok(false);
                }
                inside |= record.kind == Kind::Header;
                looked_at += 1;
                if record.needs_purge() {
                    work.push(OwnedRecord { place: Place { page, offset }, bytes: bytes.to_vec() });
                }
                Ok(true)
            })?;
            (front.at.offset, front.inside) = (offset, inside);
            if ended || looked_at >= budget {
                return Ok((looked_at, ended));
            }
            if next == PageNo(0) {
                return Ok((looked_at, true));
            }
            front.at = Place { page: next, offset: RECORDS_AT };
        }
    }

    fn end_of_transaction(&self, state: &mut PurgeState, stream: usize) -> Result<()> {
        let Some(front) = state.fronts.get_mut(&stream) else { return Ok(()) };
        front.inside = false;
        front.purged += 1;
        let length = self.history.fetch_sub(1, Relaxed).saturating_sub(1);
        self.stats.history_list_length.set(length);
        if front.pending.fetch_sub(1, AcqRel) > 1 {
            let number = self.number_at(front)?;
            self.ended.lock().push(Reverse((number, stream)));
        }
        self.undo.free_front(front)?;
        Ok(())
    }

    fn purge_record(&self, view: &ReadView, owned: &OwnedRecord) -> Result<()> {
        let record = owned.parse()?;
        let change = record.change()?;
        let Some(rows) = self.rows(change.table)? else { return Ok(()) };
        let purge = Purge { system: self, view, rows: &*rows, key: change.key, place: owned.place };
        match record.kind {
            _ if record.freeing => purge.free_chain(&change),
            Kind::Delete => purge.delete(&change),
            _ => purge.update(&change, record.entries_changed()),
        }
    }
}

/// One record being purged.
struct Purge<'a> {
    system: &'a TrxSystem,
    view: &'a ReadView,
    rows: &'a dyn Rows,
    key: &'a [u8],
    place: Place,
}

impl Purge<'_> {
    /// Takes away what the version before an update left behind.
    fn update(&self, change: &Change<'_>, entries_changed: bool) -> Result<()> {
        if entries_changed {
            let mut row = change.old_middle.to_vec();
            if let Some(reference) = change.old_overflow()? {
                overflow::read(&self.system.ctx, reference, &mut row)?;
            }
            self.entries(&row)?;
        }
        self.free_chain(change)
    }

    /// Takes a deleted row away, if it has not come back.
    fn delete(&self, change: &Change<'_>) -> Result<()> {
        let mut row = Vec::new();
        let Some(header) = stored_row(&self.system.ctx, self.rows, self.key, &mut row)? else { return Ok(()) };
        if !self.is_ours(&header) {
            return Ok(());
        }
        if self.rows.index_count() > 0 {
            if !resolve_unlocked(&self.system.ctx, self.rows, self.key, &header, &header, &mut row)? {
                return Ok(());
            }
            self.entries(&row)?;
        }
        if self.remove_row()? { self.free_chain(change) } else { Ok(()) }
    }

    fn is_ours(&self, header: &RowHeader) -> bool {
        header.is_delete_marked() && header.roll_ptr == pointer_to(self.place)
    }

    fn entries(&self, row: &[u8]) -> Result<()> {
        let mut entry = Vec::new();
        for i in 0..self.rows.index_count() {
            entry.clear();
            self.rows.entry(i, self.key, row, &mut entry);
            self.entry(i, &entry)?;
        }
        Ok(())
    }

    /// Removes an entry; see rule 3.
    fn entry(&self, i: usize, entry: &[u8]) -> Result<()> {
        let tree = self.rows.index(i);
        loop {
            let Some(seen) = self.marked_entry(i, entry)? else { return Ok(()) };
            let of = EntryOf { rows: self.rows, i, key: self.key, entry, purge_view: self.view };
            if of.is_needed(&self.system.ctx)? {
                return Ok(());
            }
            let mut mtr = self.system.ctx.mtr()?;
            let leaf = tree.leaf_mut(&mut mtr, entry)?;
            let page = leaf.latched;
            if (mtr.page_no(page), header::lsn(mtr.page(page))) == seen
                && let Ok(slot) = leaf.search(&mtr, entry)
            {
                leaf.remove(&mut mtr, slot);
                let underfull = leaf.underfull(&mtr);
                mtr.commit();
                return if underfull { tree.shrink(&self.system.ctx, entry) } else { Ok(()) };
            }
        }
    }

    /// Page and page LSN of an entry, if it is there and delete-marked.
    fn marked_entry(&self, i: usize, entry: &[u8]) -> Result<Option<(PageNo, Lsn)>> {
        let mut mtr = self.system.ctx.mtr()?;
        let leaf = self.rows.index(i).leaf_mut(&mut mtr, entry)?;
        let Ok(slot) = leaf.search(&mtr, entry) else { return Ok(None) };
        let marked = EntryValue::decode(leaf.value(&mtr, slot), entry.len())?.delete_marked;
        Ok(marked.then(|| (mtr.page_no(leaf.latched), header::lsn(mtr.page(leaf.latched)))))
    }

    /// Removes the deleted row if it is still ours; its undo record owns its overflow chain then.
    fn remove_row(&self) -> Result<bool> {
        loop {
            let mut mtr = self.system.ctx.mtr()?;
            match self.try_remove_row(&mut mtr) {
                Ok(None) => return Ok(false),
                Ok(Some(underfull)) => {
                    mtr.commit();
                    if underfull {
                        self.rows.clustered().shrink(&self.system.ctx, self.key)?;
                    }
                    return Ok(true);
                }
                Err(Stop::Load(page)) => {
                    mtr.abandon();
                    self.system.ctx.pool.load(page)?;
                }
                Err(Stop::Fail(error)) => return Err(error),
                Err(stop) => return Err(Error::Corrupt(format!("purge was stopped by {stop:?}"))),
            }
        }
    }

    fn try_remove_row(&self, mtr: &mut Mtr<'_>) -> std::result::Result<Option<bool>, Stop> {
        let leaf = self.rows.clustered().leaf_mut(mtr, self.key)?;
        let Ok(slot) = leaf.search(mtr, self.key) else { return Ok(None) };
        let header = RowHeader::decode(leaf.value(mtr, slot))?;
        if !self.is_ours(&header) {
            return Ok(None);
        }
        if header.is_overflow() {
            let page = mtr.try_fix_x(self.place.page).ok_or(Stop::Load(self.place.page))?;
            leaf.remove(mtr, slot);
            mark(mtr, page, self.place, FREEING);
        } else {
            leaf.remove(mtr, slot);
        }
        Ok(Some(leaf.underfull(mtr)))
    }

    fn free_chain(&self, change: &Change<'_>) -> Result<()> {
        let Some(OverflowRef { first, stamp, .. }) = change.old_overflow()? else { return Ok(()) };
        overflow::free(self.system, self.place, change.first_page_at, FREEING, first, stamp)
    }
}
