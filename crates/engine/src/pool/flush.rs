//! Writing dirty pages: copy under the latch, then log, doublewrite, data, and only then clean.
//!
//! Order of one batch (each step needs the one before)
//! 1. Per page, under its shared latch: mark as being written, copy, seal the copy.
//! 2. Make the redo durable up to the newest page LSN in the batch (log before data).
//! 3. Write the copies to the store; durable and findable when this returns.
//! 4. Take the pages off the flush list, or move them up if they changed meanwhile.
//!
//! A page whose latch cannot be had at once is passed by. If that is the oldest one, which holds the checkpoint back, and it
//! was passed by [`MISSES`] times, its latch is waited for, with nothing else held: what the latch's holder waits for never
//! waits for this thread.
//!
//! An error in 2 or 3 stops the database: what reached the disk is not known.

use super::frame::{FrameNo, NO_PAGE};
use super::{Pool, neighbors};
use crate::config::FlushNeighbors;
use crate::error::Result;
use crate::page;
use crate::store::{BATCH_PAGES, Batch, Lane};
use crate::types::{Lsn, PageNo};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// Why pages are flushed; each flushed page is counted once under its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushReason {
    /// They are at the tail of the LRU list and frames are needed.
    LruList,
    /// Too many frames are dirty.
    DirtyPct,
    /// The checkpoint has to keep up with the redo.
    CheckpointAge,
    /// Nothing is being changed.
    Idle,
    /// The checkpoint age is above its sync watermark.
    Sync,
    /// A thread found no free frame.
    SinglePage,
    /// Closing, or the end of recovery.
    Shutdown,
}

/// What becomes of a page that somebody holds exclusively.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Patience {
    PassBy,
    Wait,
}

/// A page to be flushed.
#[derive(Clone, Copy)]
struct Job {
    page_no: PageNo,
    frame: FrameNo,
    /// It goes with another one.
    neighbor: bool,
}

/// Copies of dirty pages, and where they were made.
struct Copies {
    batch: Batch,
    frames: Vec<FrameNo>,
    /// How many of them go with another page.
    neighbors: usize,
}

/// Flushes that may pass the oldest page by.
const MISSES: u32 = 4;

/// The page that was oldest at the last flush, and how often it was passed by.
#[derive(Default)]
pub struct PassedBy {
    oldest: Option<(FrameNo, Lsn)>,
    misses: u32,
}

impl PassedBy {
    /// Notes what became of the oldest page; says whether it is time to wait for it.
    fn note(&mut self, oldest: (FrameNo, Lsn), is_missed: bool) -> bool {
        self.misses = match is_missed {
            true if self.oldest == Some(oldest) => self.misses + 1,
            true => 1,
            false => 0,
        };
        self.oldest = is_missed.then_some(oldest);
        self.misses >= MISSES
    }
}

impl Pool {
    /// Flushes those of `frames` that are dirty and not latched exclusively right now, and their neighbors; says how many.
    ///
    /// # Errors
    /// An I/O error, after which the database is poisoned.
    pub(crate) fn flush_frames(&self, frames: &[FrameNo], reason: FlushReason) -> Result<usize> {
        self.flush_jobs(&self.jobs(frames, reason), reason, Patience::PassBy)
    }

    fn flush_jobs(&self, jobs: &[Job], reason: FlushReason, patience: Patience) -> Result<usize> {
        let mut flushed = 0;
        for jobs in jobs.chunks(BATCH_PAGES) {
            self.poison.check()?;
            let mut copies = self.copy_dirty(jobs, patience);
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

    /// The pages in `frames` and their neighbors, by page number, each once.
    fn jobs(&self, frames: &[FrameNo], reason: FlushReason) -> Vec<Job> {
        let mut jobs: Vec<Job> = frames.iter().map(|frame| self.job(*frame)).collect();
        let mode = self.flush_neighbors();
        if reason != FlushReason::SinglePage && mode != FlushNeighbors::Off {
            self.add_neighbors(&mut jobs, mode, reason);
        }
        // A page asked for comes before the same page as a neighbor, and stays.
        jobs.sort_unstable_by_key(|job| (job.page_no, job.neighbor));
        jobs.dedup_by_key(|job| job.page_no);
        jobs
    }

    fn job(&self, frame: FrameNo) -> Job {
        Job { page_no: self.frames.get(frame).page_no(), frame, neighbor: false }
    }

    fn add_neighbors(&self, jobs: &mut Vec<Job>, mode: FlushNeighbors, reason: FlushReason) {
        let dirty = |page_no| self.dirty_frame(page_no, reason == FlushReason::LruList);
        let mut pages = Vec::new();
        for job in jobs.iter().filter(|job| job.page_no != NO_PAGE) {
            neighbors::add(mode, job.page_no, |p| dirty(p).is_some(), &mut pages);
        }
        pages.sort_unstable();
        pages.dedup();
        jobs.extend(
            pages.into_iter().filter_map(|page_no| Some(Job { page_no, frame: dirty(page_no)?, neighbor: true })),
        );
    }

    /// The frame of a resident page that is dirty and not being written; with `old_only`, one about to leave the pool. It may
    /// miss one now and then: that neighbor is not flushed this time.
    fn dirty_frame(&self, page_no: PageNo, old_only: bool) -> Option<FrameNo> {
        let frame = self.table.glance(&self.frames, page_no)?;
        let state = self.frames.get(frame);
        let old = !old_only || state.young_stamp.load(Relaxed) == 0;
        (old && state.oldest_lsn().is_some() && !state.dirty.is_flushing()).then_some(frame)
    }

    /// Copies of the pages that are (still) there and dirty.
    fn copy_dirty(&self, jobs: &[Job], patience: Patience) -> Copies {
        let (batch, frames) = (self.batches.take(jobs.len()), Vec::with_capacity(jobs.len()));
        let mut copies = Copies { batch, frames, neighbors: 0 };
        for job in jobs {
            let state = self.frames.get(job.frame);
            let latch = || match patience {
                Patience::PassBy => state.latch.try_lock_shared(),
                Patience::Wait => state.latch.lock_shared_while(|| state.page_no() == job.page_no),
            };
            if state.oldest_lsn().is_none() || !latch() {
                continue;
            }
            // The frame may hold another page by now, which nobody asked to flush.
            let same = state.page_no() == job.page_no;
            if same && self.flush_list.lock().begin_write(&self.frames, job.frame) {
                // SAFETY: the frame's latch is held shared until the end of this block.
                copies.batch.push(unsafe { self.frames.bytes(job.frame) }, job.page_no);
                copies.frames.push(job.frame);
                copies.neighbors += usize::from(job.neighbor);
            }
            state.latch.unlock_shared();
        }
        copies
    }

    fn write_batch(&self, batch: &mut Batch, reason: FlushReason) -> Result<()> {
        self.log.flush_to(batch.newest_lsn())?;
        let lane = match reason {
            FlushReason::LruList => Lane::LruList,
            FlushReason::SinglePage => Lane::SinglePage,
            _ => Lane::FlushList,
        };
        let start = Instant::now();
        self.store.write(batch, lane)?;
        self.batches.note_us(lane, start.elapsed().as_micros() as u64);
        Ok(())
    }

    fn finish(&self, written: &[FrameNo]) {
        let mut list = self.flush_list.lock();
        written.iter().for_each(|frame| list.end_write(&self.frames, *frame));
        drop(list);
        self.cleaned.store(true, Relaxed);
    }

    fn count(&self, flushed: usize, neighbors: usize, reason: FlushReason) {
        let stats = &self.stats;
        let counter = match reason {
            FlushReason::LruList => &stats.pages_flushed_lru_list,
            FlushReason::DirtyPct => &stats.pages_flushed_dirty_pct,
            FlushReason::CheckpointAge => &stats.pages_flushed_checkpoint_age,
            FlushReason::Idle => &stats.pages_flushed_idle,
            FlushReason::Sync => &stats.pages_flushed_sync,
            FlushReason::SinglePage => &stats.pages_flushed_single_page,
            FlushReason::Shutdown => &stats.pages_flushed_shutdown,
        };
        counter.add((flushed - neighbors) as u64);
        stats.pages_flushed_neighbor.add(neighbors as u64);
        stats.pages_flushed.add(flushed as u64);
    }

    /// What is flushed with a page; never `Auto`.
    pub fn flush_neighbors(&self) -> FlushNeighbors {
        match self.flush_neighbors.load(Relaxed) {
            1 => FlushNeighbors::Contiguous,
            2 => FlushNeighbors::Extent,
            _ => FlushNeighbors::Off,
        }
    }

    /// Chooses what is flushed with a page from now on; `Auto`, which only the opener can resolve, means nothing.
    pub fn set_flush_neighbors(&self, mode: FlushNeighbors) {
        let value = match mode {
            FlushNeighbors::Off | FlushNeighbors::Auto => 0,
            FlushNeighbors::Contiguous => 1,
            FlushNeighbors::Extent => 2,
        };
        self.flush_neighbors.store(value, Relaxed);
    }

    /// Flushes up to `limit` of the oldest pages whose first change is before `before`, and their neighbors; says how many.
    /// The caller holds no latch.
    ///
    /// # Errors
    /// An I/O error, after which the database is poisoned.
    pub fn flush_oldest(&self, before: Lsn, limit: usize, reason: FlushReason) -> Result<usize> {
        let (frames, oldest) = {
            let list = self.flush_list.lock();
            (list.oldest(&self.frames, before, limit), list.tail(&self.frames))
        };
        let flushed = self.flush_frames(&frames, reason)?;
        let Some((frame, lsn)) = oldest.filter(|(frame, _)| frames.first() == Some(frame)) else { return Ok(flushed) };
        // Not a miss if somebody else writes it.
        let is_missed = || {
            let state = self.frames.get(frame);
            state.oldest_lsn() == Some(lsn) && !state.dirty.is_flushing()
        };
        if !self.passed_by.lock().note((frame, lsn), is_missed()) {
            return Ok(flushed);
        }
        Ok(flushed + self.flush_jobs(&self.still_dirty(&frames), reason, Patience::Wait)?)
    }

    /// Those of the frames that are dirty and not being written.
    fn still_dirty(&self, frames: &[FrameNo]) -> Vec<Job> {
        let is_dirty = |frame: &&FrameNo| {
            let state = self.frames.get(**frame);
            state.oldest_lsn().is_some() && !state.dirty.is_flushing()
        };
        frames.iter().filter(is_dirty).map(|frame| self.job(*frame)).collect()
    }

    /// Flushes every dirty page (close, recovery, tests). Pages changed meanwhile by others may stay dirty.
    ///
    /// # Errors
    /// An I/O error, after which the database is poisoned.
    pub fn flush_all(&self) -> Result<()> {
        while self.dirty_count() > 0 {
            if self.flush_oldest(Lsn(u64::MAX), BATCH_PAGES, FlushReason::Shutdown)? == 0 {
                std::thread::yield_now();
                self.poison.check()?;
            }
        }
        Ok(())
    }

    /// Whether the page is resident with bytes that differ from the data file's.
    pub fn is_dirty(&self, page_no: PageNo) -> bool {
        self.table.find(&self.frames, page_no).is_some_and(|f| self.frames.get(f).oldest_lsn().is_some())
    }

    /// The frame of a resident page.
    #[cfg(test)]
    pub(crate) fn frame_of(&self, page_no: PageNo) -> Option<FrameNo> {
        self.table.find(&self.frames, page_no)
    }

    /// LSN of a resident page, if it is resident.
    pub fn resident_lsn(&self, page_no: PageNo) -> Option<Lsn> {
        self.try_fix_s(page_no).map(|guard| page::header::lsn(&guard))
    }
}
