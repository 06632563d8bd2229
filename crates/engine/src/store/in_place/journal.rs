//! The journal: images of pages that are about to be written to their places, in a ring that is written from front to
//! back. It is the data journaling of a file system, inside the engine, and replaces the doublewrite areas.
//!
//! A batch is appended to the ring in one write and synced; then its pages are written to their places without a sync.
//! The ring keeps their images until the places are durable. So a batch costs one sync instead of two. After each lap
//! of the ring one sync of the data file makes everything durable in its place, and the whole ring is free again.
//!
//! Rules (crash order)
//! 1. A batch is durable in the ring before its first page is written to its place.
//! 2. Batches are written to the ring one after another, in the order of their numbers; only their syncs are shared. So
//!    when a batch is durable, all earlier batches are, and the scan follows them in order ([`super::journal_scan`]).
//! 3. A segment is overwritten only if every batch in it is durable in its place. For that a thread waits until no
//!    batch is on its way ([`InFlight`]), syncs the data file, and may then enter all segments but the present one (a
//!    *turn*). If a batch failed, the turn fails, so the images that repair its torn pages are never overwritten. The
//!    present segment holds the newest durable batch, and is kept until newer ones are durable: the scan always reaches
//!    the batch in the log's header. After a turn, or an opening, a second segment is entered only when a batch in the
//!    first one is durable, because that batch records that the overwritten batches are retired. Until then only the
//!    oldest segment may be torn.
//! 4. [`PageJournal::mark`] goes into the log's header with each checkpoint. So a journal that was lost, or is of
//!    another time, is detected: without it pages in place may be old although they verify.
//! 5. On a device that prefers discards, unneeded segments are discarded after a turn, once a durable batch records
//!    that they are unneeded.
//!
//! Lock order: a batch in flight (or the exclusive right), the position, a sync.

use super::doublewrite;
use super::journal_scan::{self, JournalDirectory, JournalLayout, Mark, ScannedJournal};
use crate::error::Result;
use crate::stats::Stats;
use crate::store::shared_sync::SharedSync;
use crate::store::{FileHeader, PageBatch};
use crate::sync::atomic::{AtomicU64, Ordering::SeqCst};
use crate::sync::{Mutex, RwLock, RwLockReadGuard};
use highwater_storage::{Device, Placement};
use std::sync::Arc;
use std::time::Instant;

/// A batch that is in the ring and not yet, or not wholly, written to its places: until this is dropped.
pub(super) type InFlight<'j> = RwLockReadGuard<'j, ()>;

/// Numbers that each opening skips. Of the batches in flight at a power cut an early one may be lost and a later one be
/// on the device, where no scan finds it; its number must not be reused.
const UNKNOWN: u64 = 1024;

/// The journal in use.
pub(super) struct PageJournal {
    file: SharedSync,
    layout: JournalLayout,
    database_id: u64,
    segments: u64,
    in_flight: RwLock<()>,
    position: Mutex<Position>,
    /// Number of the newest batch that is durable in the ring.
    durable: AtomicU64,
    /// All batches up to this number are durable in their places.
    retired: AtomicU64,
    discards: bool,
    stats: Arc<Stats>,
}

/// The position of the next batch.
struct Position {
    segment: u64,
    at: u64,
    /// Number of the next batch.
    next: u64,
    /// Number of the first batch since everything was durable in its place.
    first: u64,
    /// Segments after this one that may be overwritten.
    free: u64,
    /// Whether they hold unneeded images that were not discarded yet.
    is_discard_due: bool,
}

impl PageJournal {
    /// Opens a journal of about `journal_bytes` in the file, which has been scanned and repaired: every page in it is
    /// durable at its place. Extends the file to the needed length.
    ///
    /// # Errors
    /// The file cannot be made long enough.
    pub(super) fn open(
        file: Arc<dyn Device>,
        header: FileHeader,
        journal_bytes: u64,
        scanned: &ScannedJournal,
        stats: Arc<Stats>,
    ) -> Result<PageJournal> {
        let layout = JournalLayout::new(header.page_bytes);
        let segments = layout.segments_of(journal_bytes);
        let end = layout.offset_of(segments);
        if file.len_bytes()? < end {
            file.set_len_bytes(end)?;
            file.sync()?;
        }
        doublewrite::show_use(&*file, header.database_id)?;
        let segment = scanned.segment.min(segments - 1);
        let (at, next) = (layout.offset_of(segment + 1), scanned.newest + UNKNOWN + 1);
        let position = Position { segment, at, next, first: next, free: segments - 1, is_discard_due: false };
        Ok(PageJournal {
            discards: file.prefers_discards(),
            file: SharedSync::new(file),
            layout,
            database_id: header.database_id,
            segments,
            in_flight: RwLock::default(),
            position: Mutex::new(position),
            durable: AtomicU64::new(scanned.newest),
            retired: AtomicU64::new(scanned.newest),
            stats,
        })
    }

    /// Makes the batch durable in the ring. Its pages may be written to their places as long as the caller keeps what
    /// this returns; it keeps it until they are, or until it has stopped `data`.
    ///
    /// # Errors
    /// An I/O error, or the data file was stopped.
    pub(super) fn write(&self, batch: &mut PageBatch, data: &SharedSync) -> Result<InFlight<'_>> {
        loop {
            let in_flight = self.in_flight.read();
            data.check()?;
            if let Some(number) = self.append(batch)? {
                self.stats.journal_syncs.add(u64::from(self.file.sync()?));
                self.durable.fetch_max(number, SeqCst);
                self.discard_free();
                return Ok(in_flight);
            }
            drop(in_flight);
            self.turn(data)?;
        }
    }

    /// Writes the batch after the last one; returns its number, or `None` if there is no space (rule 2).
    fn append(&self, batch: &mut PageBatch) -> Result<Option<u64>> {
        let mut position = self.position.lock();
        self.file.check()?;
        let bytes = self.layout.batch_bytes(batch.entries().len());
        if position.at + bytes > self.layout.offset_of(position.segment + 1) && !self.enter_next(&mut position) {
            return Ok(None);
        }
        let (number, offset) = (position.next, position.at);
        let directory = JournalDirectory { number, retired: self.retired.load(SeqCst), offset };
        let (block, entries) = batch.front_and_entries();
        journal_scan::put_directory(block, entries, self.database_id, directory);
        let written = self.file.device().write_at(offset, batch.with_front(), Placement::Journal);
        written.map_err(|error| error.into()).inspect_err(|error| self.file.stop(error))?;
        self.stats.bytes_written_journal.add(bytes);
        position.next += 1;
        position.at += bytes;
        self.check_state(&position);
        debug_assert!(number > directory.retired, "batch {number} is retired before it is written");
        Ok(Some(number))
    }

    /// Rule 3: the position is in a segment of the ring, and the images that may be overwritten follow it.
    fn check_state(&self, position: &Position) {
        let Position { segment, at, next, first, free, .. } = *position;
        debug_assert!(segment < self.segments, "segment {segment} of {}", self.segments);
        debug_assert!(free < self.segments, "{free} segments are free of {}, and one is in use", self.segments);
        let (start, end) = (self.layout.offset_of(segment), self.layout.offset_of(segment + 1));
        debug_assert!((start..=end).contains(&at), "{at} is not in segment {segment}, from {start} to {end}");
        debug_assert!(first <= next, "batch {first} is the first of those before {next}");
        debug_assert!(self.retired.load(SeqCst) < next, "a batch is retired that comes after {next}");
        debug_assert!(self.durable.load(SeqCst) < next, "a batch is durable that comes after {next}");
    }

    fn enter_next(&self, position: &mut Position) -> bool {
        let is_second = position.free < self.segments - 1;
        if position.free == 0 || is_second && self.durable.load(SeqCst) < position.first {
            return false;
        }
        self.check_state(position);
        position.free -= 1;
        position.segment = (position.segment + 1) % self.segments;
        position.at = self.layout.offset_of(position.segment);
        self.check_state(position);
        true
    }

    /// Waits for the batches on their way; makes everything durable in its place if no segment is free (rule 3).
    fn turn(&self, data: &SharedSync) -> Result<()> {
        let since = Instant::now();
        let _alone = self.in_flight.write();
        let mut position = self.position.lock();
        if position.free == 0 {
            self.sync_and_retire(&mut position, data)?;
        }
        self.stats.journal_waits.inc();
        self.stats.journal_wait_us.add(since.elapsed().as_micros() as u64);
        Ok(())
    }

    /// No batch is on its way.
    fn sync_and_retire(&self, position: &mut Position, data: &SharedSync) -> Result<()> {
        self.check_state(position);
        data.check()?;
        self.stats.data_syncs.add(u64::from(data.sync()?));
        self.retired.store(position.next - 1, SeqCst);
        position.first = position.next;
        position.free = self.segments - 1;
        position.is_discard_due = self.discards;
        let durable = self.durable.load(SeqCst);
        debug_assert!(durable < position.next, "rule 3: batch {durable} was on its way when the places were synced");
        self.check_state(position);
        Ok(())
    }

    /// Makes every page durable in its place, so that nothing in the ring is needed. The next write begins a segment.
    ///
    /// # Errors
    /// An I/O error, or the data file was stopped.
    pub(super) fn empty(&self, data: &SharedSync) -> Result<()> {
        let _alone = self.in_flight.write();
        let mut position = self.position.lock();
        self.sync_and_retire(&mut position, data)?;
        position.at = self.layout.offset_of(position.segment + 1);
        debug_assert!(!self.mark().is_needed, "nothing in the ring is needed once it is empty");
        Ok(())
    }

    /// The journal's mark for the log's header.
    pub(super) fn mark(&self) -> Mark {
        let newest = self.durable.load(SeqCst);
        Mark { newest, is_needed: newest > self.retired.load(SeqCst) }
    }

    /// Rule 5. The position is held, so that no thread enters a segment meanwhile.
    fn discard_free(&self) {
        if !self.discards {
            return;
        }
        let mut position = self.position.lock();
        if !std::mem::take(&mut position.is_discard_due) {
            return;
        }
        let (from, to) = (position.segment + 1, position.segment + 1 + position.free);
        let (first, second) = (from..to.min(self.segments), 0..to.saturating_sub(self.segments));
        let is_present = |range: &std::ops::Range<u64>| range.contains(&position.segment);
        debug_assert!(![&first, &second].into_iter().any(is_present), "rule 3: the present segment is discarded");
        for range in [first, second].into_iter().filter(|range| !range.is_empty()) {
            let at = self.layout.offset_of(range.start);
            // Advice: a refusal changes nothing.
            let _ = self.file.device().discard(at, self.layout.offset_of(range.end) - at);
        }
    }
}

#[cfg(test)]
#[path = "journal_test/mod.rs"]
mod tests;
