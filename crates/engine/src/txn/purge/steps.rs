//! The steps of purge: the choice of streams and records, and the handling of damaged ones; the lag of purge.

use super::lag::PurgeState;
use super::record::Purge;
use crate::error::{Error, Result};
use crate::space::SEGMENT_UNDO;
use crate::space::reserve::{self, SpacePriority};
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use crate::txn::read::{Histories, ReadView, StoredRow};
use crate::txn::system::TxnSystem;
use crate::types::PageNo;
use crate::undo::record::UndoKind;
use crate::undo::{OwnedRecord, RECORDS_AT, StreamFront, UndoPlace, number_at, scan_page};
use std::time::Duration;

/// In `ended`: the number of the stream's oldest transaction has to be read first. No transaction has it.
const UNREAD: u64 = 0;

/// Time in milliseconds for which a stream must have been idle before it is freed.
const STREAMS_IDLE_MS: u64 = 1000;

/// The next action for a stream after a step.
enum Next {
    /// It waits; its oldest transaction has this number.
    Wait(u64),
    /// Its oldest transaction is purged.
    End,
}

/// By what one step purges.
struct ByView<'a> {
    view: &'a ReadView,
    /// Of rows with many versions.
    histories: &'a mut Histories,
}

/// Whether what needs a read that fails is tried once more (rule 7).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tries {
    First,
    Last,
}

impl TxnSystem {
    /// Purges up to about `max_records` undo records that no view needs. Returns how many were processed; 0 means that
    /// there is nothing to do for now. Several threads may call it.
    ///
    /// # Errors
    /// Any error but damage; the step may be tried again.
    pub(crate) fn purge_step(&self, max_records: usize) -> Result<usize> {
        let _entitled = reserve::entitle(SpacePriority::Cleaning);
        match self.purge_by_view(max_records)? {
            0 => {
                self.advance_purge_view();
                self.purge_by_view(max_records)
            }
            done => Ok(done),
        }
    }

    /// A step of one purge thread. The first thread also frees idle streams, however much there is to purge.
    ///
    /// # Errors
    /// As [`TxnSystem::purge_step`].
    pub(crate) fn purge_round(&self, max_records: usize, is_first: bool) -> Result<usize> {
        let done = self.purge_step(max_records)?;
        if is_first {
            self.free_idle_streams_step()?;
        }
        Ok(done)
    }

    /// Whether enough streams wait to keep one more thread busy when `others` threads run already.
    pub(crate) fn purge_needs(&self, others: usize) -> bool {
        self.ended.gather() > others
    }

    fn advance_purge_view(&self) {
        let mut view = self.purge_view.write();
        let before = if cfg!(debug_assertions) { view.clone() } else { ReadView::default() };
        self.copy_oldest_view(&mut view);
        debug_assert!(view.follows(&before), "rule 2: the purge view {before:?} goes back to {view:?}");
    }

    fn purge_by_view(&self, max_records: usize) -> Result<usize> {
        self.ended.gather();
        let view = self.purge_view.read();
        let mut histories = self.purge_histories.take().unwrap_or_default();
        let purged = self.purge_streams(&mut ByView { view: &view, histories: &mut histories }, max_records);
        // If nothing was found, the view is about to change.
        if matches!(purged, Ok(1..)) {
            self.purge_histories.keep(histories);
        }
        purged
    }

    fn purge_streams(&self, by: &mut ByView<'_>, max_records: usize) -> Result<usize> {
        let mut done = 0;
        while done < max_records {
            let Some((number, stream)) = self.ended.take(by.view.low_limit_no) else { break };
            let Some(mut front) = self.undo.take_front(stream) else {
                // The entry stands for one transaction at least.
                let error = Error::Corrupt(format!("undo stream {stream} is unknown to purge"));
                self.skip_stream(stream, || 1, &error);
                continue;
            };
            debug_assert_eq!(front.number, stream, "the front of another stream is purged");
            debug_assert!(number < by.view.low_limit_no, "{number} is purged, which a view may not see as ended");
            let budget = max_records - done;
            let purged = match self.purge_front(by, &mut front, number, budget, Tries::First) {
                Err(error) if error.is_failed_read() => self.purge_front(by, &mut front, number, budget, Tries::Last),
                purged => purged,
            };
            match purged {
                Ok((looked_at, next)) => {
                    done += looked_at;
                    match next {
                        Next::Wait(number) => self.put_back(front, number),
                        Next::End => self.end_of_transaction(front),
                    }
                }
                Err(error) if error.is_damage() => {
                    self.skip_stream(stream, || front.pending.load(Acquire), &error);
                }
                Err(error) if error.is_of_collation() => {
                    // Purge waits here until a program that knows the collation opens the database.
                    self.put_back(front, number);
                    return Ok(done);
                }
                Err(error) => {
                    self.put_back(front, number);
                    return Err(error);
                }
            }
        }
        Ok(done)
    }

    /// Processes the oldest transaction of a stream, which has this number: reads its number if that is unread, or
    /// purges up to `budget` of its records. Returns how many.
    fn purge_front(
        &self,
        by: &mut ByView<'_>,
        front: &mut StreamFront,
        number: u64,
        budget: usize,
        tries: Tries,
    ) -> Result<(usize, Next)> {
        if number == UNREAD {
            return number_at(&self.ctx, front).map(|number| (0, Next::Wait(number)));
        }
        let (looked_at, ended) = self.purge_some(by, front, budget, tries)?;
        Ok((looked_at, if ended { Next::End } else { Next::Wait(number) }))
    }

    /// Gives the stream to other threads; `number` is that of its oldest transaction.
    fn put_back(&self, front: StreamFront, number: u64) {
        let stream = front.number;
        self.undo.put_front(front);
        self.ended.put_back((number, stream));
    }

    /// Frees undo streams left over from a peak of writers, if a second has passed since the last time. Returns
    /// how many.
    ///
    /// # Errors
    /// As [`TxnSystem::purge_step`].
    pub(crate) fn free_idle_streams_step(&self) -> Result<usize> {
        let (now, last) = (self.now_ms(), self.streams_looked_at_ms.load(Relaxed));
        if now < last + STREAMS_IDLE_MS {
            return Ok(0);
        }
        self.streams_looked_at_ms.store(now, Relaxed);
        self.undo.free_idle(|error| self.note_stream_skipped(error))
    }

    /// Frees every undo stream that no transaction uses and that is purged, so that none has pages at the end of the
    /// file.
    ///
    /// # Errors
    /// As [`TxnSystem::purge_step`].
    pub(crate) fn free_idle_streams(&self) -> Result<()> {
        // A stream that was used before the first call counts as unused in the second one.
        for _ in 0..2 {
            self.undo.free_idle_but(0, |error| self.note_stream_skipped(error))?;
        }
        Ok(())
    }

    /// Stops purge while the guard lives.
    pub(crate) fn hold_purge(&self) -> impl Drop + '_ {
        self.purge_view.write()
    }

    /// Ended transactions whose undo is not purged yet.
    pub(crate) fn history_list_length(&self) -> u64 {
        self.history.get()
    }

    /// Purges up to `budget` records of the transaction at the front of a stream. Returns how many it processed and
    /// whether these were the last.
    fn purge_some(
        &self,
        by: &mut ByView<'_>,
        front: &mut StreamFront,
        budget: usize,
        tries: Tries,
    ) -> Result<(usize, bool)> {
        let before = (front.at, front.inside);
        let mut work = Vec::new();
        let purged = self.collect(front, budget, &mut work).and_then(|(looked_at, ended)| {
            work.iter().try_for_each(|record| match self.purge_record(by, record) {
                Err(error) if error.is_damage() && (tries == Tries::Last || !error.is_failed_read()) => {
                    self.skip_record(&error);
                    Ok(())
                }
                purged => purged,
            })?;
            Ok((looked_at, ended))
        });
        debug_assert!(
            purged.as_ref().map_or(true, |(looked_at, _)| *looked_at <= budget),
            "more than {budget} records"
        );
        match &purged {
            Ok((looked_at, _)) => {
                self.stats.purged_records.add(*looked_at as u64);
                if front.uncounted == 0 {
                    self.purge_pending_records.sub(*looked_at as u64);
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
                ended = inside && record.kind == UndoKind::Header;
                if ended || looked_at >= budget {
                    return Ok(false);
                }
                inside |= record.kind == UndoKind::Header;
                looked_at += 1;
                if record.needs_purge() {
                    work.push(OwnedRecord { place: UndoPlace { page, offset }, bytes: bytes.to_vec() });
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
            front.at = UndoPlace { page: next, offset: RECORDS_AT };
        }
    }

    /// Counts a transaction as purged, frees pages, and hands the stream on. As long as `pending` counts the
    /// transaction no other thread puts the stream into `ended`; so the front is put back before `pending` is lowered.
    fn end_of_transaction(&self, mut front: StreamFront) {
        let (stream, pending) = (front.number, front.pending.clone());
        front.inside = false;
        front.purged += 1;
        front.uncounted = front.uncounted.saturating_sub(1);
        self.history.sub(1);
        if let Err(error) = self.undo.free_front(&mut front) {
            // The pages wait for the next transaction to be purged, or for the next opening.
            match error.is_damage() {
                true => self.skip_record(&error),
                false => self.stats.purge_retries.inc(),
            }
        }
        self.undo.put_front(front);
        let waiting = pending.fetch_sub(1, AcqRel);
        debug_assert!(waiting > 0, "a transaction of stream {stream} is purged that was not counted");
        if waiting > 1 {
            self.ended.put_back((UNREAD, stream));
        }
    }

    /// Passes over a record whose pages cannot be read.
    fn skip_record(&self, error: &Error) {
        self.stats.purge_records_skipped.inc();
        self.purge_damage.note(error);
    }

    /// Takes a stream whose own pages cannot be read out of purge for good, with the `lost` transactions in it. Its
    /// front is dropped.
    fn skip_stream(&self, stream: usize, lost: impl FnOnce() -> u64, error: &Error) {
        self.undo.mark_unusable(stream);
        // Asked afterwards: no transaction that ends from now on is counted.
        self.history.sub(lost());
        self.note_stream_skipped(error);
    }

    /// Counts and names a stream that is not used for damage.
    pub(in crate::txn) fn note_stream_skipped(&self, error: &Error) {
        self.stats.purge_streams_skipped.inc();
        self.purge_damage.note(error);
    }

    fn purge_record(&self, by: &mut ByView<'_>, owned: &OwnedRecord) -> Result<()> {
        let record = owned.parse()?;
        let change = record.change()?;
        let Some(table) = self.table(change.table)? else { return Ok(()) };
        table.check_entries()?;
        let row = StoredRow::new(&self.ctx, &*table, change.key);
        let ByView { view, histories } = by;
        let mut purge = Purge { system: self, view, histories, row, place: owned.place };
        match record.kind {
            _ if record.freeing => purge.free_chains(&change),
            UndoKind::Delete => purge.delete(&change),
            _ => purge.update(&change, record.entries_changed()),
        }
    }
}

/// The state of purge for users, and the delay of writers.
impl TxnSystem {
    /// The lag of purge. Sets the gauges among the counters too.
    pub(crate) fn purge_state(&self) -> PurgeState {
        let pages = self.space.segments().into_iter().find(|(id, _)| *id == SEGMENT_UNDO).map_or(0, |(_, n)| n);
        let stats = &self.stats;
        let state = PurgeState {
            history_list_length: self.history_list_length(),
            purge_pending_records: self.purge_pending_records.get(),
            undo_bytes: u64::from(pages) * self.ctx.pool.page_bytes() as u64,
            oldest_view_age: Duration::from_millis(self.oldest_view_age_ms()),
            skipped: stats.purge_records_skipped.get()
                + stats.purge_streams_skipped.get()
                + stats.rollbacks_skipped.get(),
            damage: self.purge_damage.all(),
        };
        stats.history_list_length.set(state.history_list_length);
        stats.undo_bytes.set(state.undo_bytes);
        stats.purge_pending_records.set(state.purge_pending_records);
        stats.oldest_view_age_s.set(state.oldest_view_age.as_secs());
        state
    }

    /// Delays a change of a row as `max_purge_lag` says. The caller holds no latch.
    #[inline]
    pub(crate) fn delay_for_purge(&self) {
        if self.lag_limits.are_set() {
            self.delay();
        }
    }

    fn delay(&self) {
        let delay_us = self.lag_limits.get().delay_us(self.history_list_length());
        if delay_us > 0 && !self.ctx.poison.is_set() {
            crate::sync::thread::sleep(Duration::from_micros(delay_us));
            self.stats.purge_lag_delays.inc();
            self.stats.purge_lag_delay_us.add(delay_us);
        }
    }
}
