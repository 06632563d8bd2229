//! Writing dirty pages: copy under the latch, make the redo durable, write to the store, and only then mark as clean.
//!
//! Order of one batch (each step needs the previous one)
//! 1. Per page, under its shared latch: mark as being written, copy, stamp the copy, note whether redo recreates it.
//! 2. Make the redo durable up to the newest page LSN of the batch (log before data).
//! 3. Write the copies to the store; durable and findable when this returns.
//! 4. Take the pages off the flush list, or move them up if they changed meanwhile.
//!
//! An error in 2 or 3 stops the database, because the state of the disk is unknown.

use super::flusher::PageFlusher;
use super::reason::FlushReason;
use super::select::FlushTarget;
use crate::error::Result;
use crate::pool::frames::{Content, FrameNo};
use crate::store::{BATCH_PAGES, PageBatch};
use crate::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// The handling of a page that another thread has latched exclusively.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LatchMode {
    Try,
    Wait,
}

/// Copies of dirty pages, and their frames.
struct Copies {
    batch: PageBatch,
    frames: Vec<FrameNo>,
    /// Number of them that are flushed as neighbors.
    neighbors: usize,
}

impl PageFlusher {
    /// Flushes those of `frames` that are dirty and not latched exclusively right now, and their neighbors; returns how
    /// many.
    pub(crate) fn flush_frames(&self, frames: &[FrameNo], reason: FlushReason) -> Result<usize> {
        self.flush_targets(&self.selection.targets(&self.pages, frames, reason), reason, LatchMode::Try)
    }

    pub(super) fn flush_targets(
        &self,
        targets: &[FlushTarget],
        reason: FlushReason,
        latch_mode: LatchMode,
    ) -> Result<usize> {
        let mut flushed = 0;
        for targets in targets.chunks(BATCH_PAGES) {
            self.poison.check()?;
            let mut copies = self.copy_dirty(targets, latch_mode);
            if !copies.frames.is_empty() {
                if let Err(error) = self.write_batch(&mut copies.batch, reason) {
                    self.poison.set(&error.to_string());
                    return Err(error);
                }
                self.finish(&copies.frames);
                self.count(copies.frames.len(), copies.neighbors, reason);
                flushed += copies.frames.len();
            }
            self.batches.put(copies.batch);
        }
        Ok(flushed)
    }

    /// Copies of the pages that are (still) there and dirty.
    fn copy_dirty(&self, targets: &[FlushTarget], latch_mode: LatchMode) -> Copies {
        let (batch, frames) = (self.batches.take(targets.len()), Vec::with_capacity(targets.len()));
        let mut copies = Copies { batch, frames, neighbors: 0 };
        debug_assert!(targets.is_sorted_by_key(|target| target.page_no), "a batch is in the order of its pages");
        for target in targets {
            let state = self.pages.get(target.frame);
            let latch = || match latch_mode {
                LatchMode::Try => state.latch.try_lock_shared(),
                LatchMode::Wait => state.latch.lock_shared_while(|| state.page_no() == target.page_no),
            };
            if state.oldest_lsn().is_none() || !latch() {
                continue;
            }
            // The frame may hold another page by now, which is not to be flushed.
            let same = state.page_no() == target.page_no;
            if same && self.list.lock().begin_write(self.pages.frames(), target.frame) {
                // SAFETY: the frame's latch is held shared until the end of this block.
                let bytes = unsafe { self.pages.frames().bytes(target.frame) };
                let is_coming = state.has_only(target.page_no, Content::Reading);
                debug_assert!(!is_coming, "page {} is written while it is read", target.page_no);
                copies.batch.push(bytes, target.page_no);
                if state.dirty.is_recreated_by_redo() {
                    copies.batch.last_is_recreated_by_redo();
                }
                copies.frames.push(target.frame);
                copies.neighbors += usize::from(target.neighbor);
            }
            state.latch.unlock_shared();
        }
        copies
    }

    pub(crate) fn write_batch(&self, batch: &mut PageBatch, reason: FlushReason) -> Result<()> {
        self.log.flush_to(batch.newest_lsn())?;
        debug_assert!(self.log.durable_lsn() >= batch.newest_lsn(), "a page is written before its redo is durable");
        let lane = reason.lane();
        let start = Instant::now();
        self.in_flight.begin(batch);
        let written = self.store.write(batch, lane);
        self.in_flight.end(batch);
        written?;
        // Without threads, time decides nothing.
        if self.threads_run() {
            self.batches.note_us(lane, start.elapsed().as_micros() as u64);
        }
        Ok(())
    }

    fn finish(&self, written: &[FrameNo]) {
        debug_assert!(written.len() <= BATCH_PAGES, "{} pages are in one batch", written.len());
        let mut list = self.list.lock();
        written.iter().for_each(|frame| list.end_write(self.pages.frames(), *frame));
        drop(list);
        self.cleanings.fetch_add(1, Relaxed);
    }

    fn count(&self, flushed: usize, neighbors: usize, reason: FlushReason) {
        let stats = &self.stats;
        let counter = match reason {
            FlushReason::LruList => &stats.pages_flushed_lru_list,
            FlushReason::DirtyPct => &stats.pages_flushed_dirty_pct,
            FlushReason::CheckpointAge => &stats.pages_flushed_checkpoint_age,
            FlushReason::Idle => &stats.pages_flushed_idle,
            FlushReason::BulkLoad => &stats.pages_flushed_bulk_load,
            FlushReason::Sync => &stats.pages_flushed_sync,
            FlushReason::SinglePage => &stats.pages_flushed_single_page,
            FlushReason::Shutdown | FlushReason::ShutdownHelper => &stats.pages_flushed_shutdown,
        };
        counter.add((flushed - neighbors) as u64);
        stats.pages_flushed_neighbor.add(neighbors as u64);
        stats.pages_flushed.add(flushed as u64);
    }
}
