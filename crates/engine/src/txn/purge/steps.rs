//! Purge: takes away what no snapshot can see any more.
//!
//! Terms. The *purge view* is a copy of the oldest open view (or a view of the moment if none is open). A transaction whose
//! commit number is below the view's `low_limit_no` had ended for every open view: what its changes replaced can go.
//!
//! Rules
//! 1. What each stream holds is purged in the order it was written, by one thread at a time: who pops the stream from
//!    `ended` owns its front until he puts it back. Streams are independent, several threads purge several of them side by
//!    side, those with the smallest numbers first.
//! 2. The purge view only advances, when no thread purges by it: who purges holds it shared for a step, as does who must
//!    keep it still (rollback). So all threads purge by one view, and a version walk, which ends at the first version that
//!    view sees, meets no record that another thread may purge.
//! 3. A secondary entry is removed iff it is delete-marked and no version from the newest down to the first that the purge
//!    view sees has it. Between the question and the removal the entry's leaf must not have changed (its page LSN says so).
//! 4. A row is removed iff its newest version is the deletion being purged; its entries go first.
//! 5. An overflow chain goes with the version that had it: with the Update record that replaced it, or with the removed row.
//! 6. Every step may be repeated: after a crash purge starts again at the front of each stream, at the first transaction
//!    that was not known to be done when pages were last given back.
//! 7. Damage stops nobody else. A record whose pages cannot be read is set aside: counted, told, and passed over, so that
//!    what it should have removed stays (delete-marked, seen by nobody). A stream whose own pages cannot be read is set
//!    aside as a whole: what is behind the damage stays, and nobody binds it again.
//!
//! Crash: a half-freed chain is found again by the undo record, which is kept until all its transaction is purged.

use crate::error::{Error, Result};
use crate::mtr::Mtr;
use crate::page::header;
use crate::space::reserve::{self, Purpose};
use crate::txn::overflow;
use crate::txn::read::EntryOf;
use crate::txn::read::ReadView;
use crate::txn::read::{resolve_unlocked, stored_row};
use crate::txn::stored::{EntryValue, OverflowRef, RowHeader};
use crate::txn::system::TxnSystem;
use crate::txn::table_trees::TableTrees;
use crate::txn::undo::record::{Change, FREEING, Kind, next_entry};
use crate::txn::undo::{OwnedRecord, Place, RECORDS_AT, StreamFront, mark, number_at, pointer_to, scan_page};
use crate::txn::write::attempt::Stop;
use crate::types::{Lsn, PageNo};
use std::cmp::Reverse;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

/// In `ended`: the number of the stream's oldest transaction has to be read first. No transaction has it.
const UNREAD: u64 = 0;

/// How long a stream must have been free to be given back, in milliseconds.
const STREAMS_IDLE_MS: u64 = 1000;

/// What becomes of a stream after a step.
enum Next {
    /// It waits, its oldest transaction having this number.
    Wait(u64),
    /// Its oldest transaction is purged.
    End,
}

impl TxnSystem {
    /// Purges what can go, up to about `max_records` undo records. Returns how many were looked at; 0 means that there is
    /// nothing to do for now. Several threads may call it.
    ///
    /// # Errors
    /// What damage does not explain; the step may be tried again.
    pub fn purge_step(&self, max_records: usize) -> Result<usize> {
        let _entitled = reserve::entitle(Purpose::Cleaning);
        match self.purge_by_view(max_records)? {
            0 => {
                self.advance_purge_view();
                self.purge_by_view(max_records)
            }
            done => Ok(done),
        }
    }

    /// A step of one of the threads. The first of them gives idle streams back as well, however much there is to purge.
    ///
    /// # Errors
    /// As [`TxnSystem::purge_step`].
    pub fn purge_round(&self, max_records: usize, is_first: bool) -> Result<usize> {
        let done = self.purge_step(max_records)?;
        if is_first {
            self.give_back_streams_step()?;
        }
        Ok(done)
    }

    /// Whether so many streams wait that a thread has something to do that has `others` beside it.
    pub fn purge_needs(&self, others: usize) -> bool {
        self.ended.lock().len() > others
    }

    fn advance_purge_view(&self) {
        let mut view = self.purge_view.write();
        self.copy_oldest_view(&mut view);
    }

    fn purge_by_view(&self, max_records: usize) -> Result<usize> {
        let view = self.purge_view.read();
        let mut done = 0;
        while done < max_records {
            let Some(Reverse((number, stream))) = self.pop_ended(view.low_limit_no) else { break };
            let Some(mut front) = self.undo.take_front(stream) else {
                // The entry stands for one transaction at least.
                self.set_stream_aside(stream, 1, &Error::Corrupt(format!("undo stream {stream} is unknown to purge")));
                continue;
            };
            let purged = match number {
                UNREAD => number_at(&self.ctx, &mut front).map(|number| (0, Next::Wait(number))),
                _ => self
                    .purge_some(&view, &mut front, max_records - done)
                    .map(|(looked_at, ended)| (looked_at, if ended { Next::End } else { Next::Wait(number) })),
            };
            match purged {
                Ok((looked_at, next)) => {
                    done += looked_at;
                    match next {
                        Next::Wait(number) => self.put_back(front, number),
                        Next::End => self.end_of_transaction(front),
                    }
                }
                Err(error) if error.is_damage() => self.set_stream_aside(stream, front.pending.load(Acquire), &error),
                Err(error) => {
                    self.put_back(front, number);
                    return Err(error);
                }
            }
        }
        Ok(done)
    }

    /// Lets others have the stream, of whose oldest transaction `number` is the number.
    fn put_back(&self, front: StreamFront, number: u64) {
        let stream = front.number;
        self.undo.put_front(front);
        self.ended.lock().push(Reverse((number, stream)));
    }

    /// Gives back undo streams that a peak of writers has left, if a second has gone by since the last time. Returns how many.
    ///
    /// # Errors
    /// As [`TxnSystem::purge_step`].
    pub fn give_back_streams_step(&self) -> Result<usize> {
        let (now, last) = (self.now_ms(), self.streams_looked_at_ms.load(Relaxed));
        if now < last + STREAMS_IDLE_MS {
            return Ok(0);
        }
        self.streams_looked_at_ms.store(now, Relaxed);
        self.undo.give_back_idle(|error| self.note_stream_set_aside(error))
    }

    /// Keeps purge from working while the guard lives.
    pub(crate) fn hold_purge(&self) -> impl Drop + '_ {
        self.purge_view.write()
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

    /// Purges up to `budget` records of the transaction at the front of a stream. Returns how many it looked at and whether
    /// that was the rest.
    fn purge_some(&self, view: &ReadView, front: &mut StreamFront, budget: usize) -> Result<(usize, bool)> {
        let before = (front.at, front.inside);
        let mut work = Vec::new();
        let purged = self.collect(front, budget, &mut work).and_then(|(looked_at, ended)| {
            work.iter().try_for_each(|record| match self.purge_record(view, record) {
                Err(error) if error.is_damage() => {
                    self.set_record_aside(&error);
                    Ok(())
                }
                purged => purged,
            })?;
            Ok((looked_at, ended))
        });
        match &purged {
            Ok((looked_at, _)) => {
                self.stats.purged_records.add(*looked_at as u64);
                if front.uncounted == 0 {
                    self.unpurged_records.fetch_sub(*looked_at as u64, Relaxed);
                }
            }
            Err(_) => (front.at, front.inside) = before,
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

    /// Counts a transaction as purged, gives pages back, and hands the stream on. As long as `pending` counts the transaction
    /// nobody else puts the stream into `ended`, so the front is back before it does not.
    fn end_of_transaction(&self, mut front: StreamFront) {
        let (stream, pending) = (front.number, front.pending.clone());
        front.inside = false;
        front.purged += 1;
        front.uncounted = front.uncounted.saturating_sub(1);
        let length = self.history.fetch_sub(1, Relaxed).saturating_sub(1);
        self.stats.history_list_length.set(length);
        if let Err(error) = self.undo.free_front(&mut front) {
            // The pages wait for the next transaction to be purged, or for the next opening.
            self.set_record_aside(&error);
        }
        self.undo.put_front(front);
        if pending.fetch_sub(1, AcqRel) > 1 {
            self.ended.lock().push(Reverse((UNREAD, stream)));
        }
    }

    /// Passes a record over whose pages cannot be read.
    fn set_record_aside(&self, error: &Error) {
        self.stats.purge_records_set_aside.inc();
        self.purge_damage.note(error);
    }

    /// Never purges a stream again whose own pages cannot be read, nor the `lost` transactions in it. Its front is dropped.
    fn set_stream_aside(&self, stream: usize, lost: u64, error: &Error) {
        let length = self.history.fetch_sub(lost, Relaxed).saturating_sub(lost);
        self.stats.history_list_length.set(length);
        self.undo.set_aside(stream);
        self.note_stream_set_aside(error);
    }

    fn note_stream_set_aside(&self, error: &Error) {
        self.stats.purge_streams_set_aside.inc();
        self.purge_damage.note(error);
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
    system: &'a TxnSystem,
    view: &'a ReadView,
    rows: &'a dyn TableTrees,
    key: &'a [u8],
    place: Place,
}

impl Purge<'_> {
    /// Takes away what the version before an update left behind.
    fn update(&self, change: &Change<'_>, entries_changed: bool) -> Result<()> {
        if let Some(entries) = change.entries {
            self.moved_entries(entries)?;
        } else if entries_changed {
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

    /// Entries as the record names them. Those of indexes that are gone are gone.
    fn moved_entries(&self, mut entries: &[u8]) -> Result<()> {
        let mut entry = Vec::new();
        while let Some((index, columns)) = next_entry(&mut entries)? {
            if let Some(i) = (0..self.rows.index_count()).find(|i| self.rows.index(*i).id() == index) {
                entry.clear();
                entry.extend_from_slice(columns);
                entry.extend_from_slice(self.key);
                self.entry(i, &entry)?;
            }
        }
        Ok(())
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
                return if underfull { tree.tidy(&self.system.ctx, entry) } else { Ok(()) };
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
                        self.rows.clustered().tidy(&self.system.ctx, self.key)?;
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
