//! Getting a free frame: from the free list, by evicting a clean page, by flushing one page.
//!
//! Rules
//! 1. Called with no latch held (pool rule 1).
//! 2. In steady load the cleaner keeps the free list filled; what happens here is the exception and is counted.
//! 3. Never waits for ever: after `GIVE_UP_MS` the caller gets an error.

use super::frame::{FrameNo, NIL, NO_PAGE};
use super::{FlushReason, Pool};
use crate::error::{Error, Result};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// How long a thread looks for frames before it gets an error.
pub(super) const GIVE_UP_MS: u64 = 20_000;
/// How long it waits before it looks again.
const NAP: Duration = Duration::from_millis(2);
/// Clean pages evicted at once by a thread that found no free frame.
const EVICT_BATCH: usize = 16;

impl Pool {
    /// Takes `count` free frames (all or none), making some if there are none.
    ///
    /// # Errors
    /// [`Error::PoolExhausted`] when nothing could be freed for a long time; an I/O or poison error.
    pub(crate) fn take_frames(&self, count: usize, out: &mut Vec<FrameNo>) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        match self.free.take(count, out) {
            Some(rest) => {
                if rest < self.free_target() / 2 {
                    self.cleaner.wake();
                }
                Ok(())
            }
            None => self.take_frames_slow(count, out),
        }
    }

    /// Changes how long `take_frames` looks before it gives up.
    #[cfg(test)]
    pub(crate) fn set_give_up_ms(&self, give_up_ms: u64) {
        self.give_up_ms.store(give_up_ms, Relaxed);
    }

    /// Gives unused frames back.
    pub(crate) fn give_frames(&self, frames: impl IntoIterator<Item = FrameNo>) {
        self.free.put(frames);
    }

    /// Free frames the cleaner keeps ready.
    pub(crate) fn free_target(&self) -> usize {
        self.lru_scan_depth.min(self.frames.len() / 8).max(4)
    }

    #[cold]
    fn take_frames_slow(&self, count: usize, out: &mut Vec<FrameNo>) -> Result<()> {
        self.stats.free_frame_waits.inc();
        self.stats.dirty_victims.add(u64::from(self.is_tail_dirty()));
        let start = Instant::now();
        let result = self.make_frames(count, out, start);
        let waited = start.elapsed();
        self.stats.free_frame_wait_us.add(waited.as_micros() as u64);
        self.free_frame_wait_latency.record(waited);
        result
    }

    fn make_frames(&self, count: usize, out: &mut Vec<FrameNo>, start: Instant) -> Result<()> {
        self.cleaner.wake();
        loop {
            let evicted = self.evict_clean(self.lru_scan_depth, EVICT_BATCH.max(count));
            if self.free.take(count, out).is_some() {
                return Ok(());
            }
            self.poison.check()?;
            let progress = evicted > 0 || self.flush_one_page()?;
            if start.elapsed().as_millis() as u64 > self.give_up_ms.load(Relaxed) {
                return Err(Error::PoolExhausted {
                    frames: self.frames.len(),
                    waited_ms: start.elapsed().as_millis() as u64,
                });
            }
            if !progress {
                self.free.wait(NAP);
            }
        }
    }

    /// Evicts up to `want` clean pages among the last `depth` of the LRU list; says how many.
    pub(crate) fn evict_clean(&self, depth: usize, want: usize) -> usize {
        let mut evicted = Vec::with_capacity(want.min(self.frames.len()));
        let mut lru = self.lru.lock();
        let mut at = lru.tail();
        for _ in 0..depth {
            if at == NIL || evicted.len() == want {
                break;
            }
            let next = lru.toward_head(at);
            if self.detach_if_clean(at) {
                lru.remove(&self.frames, at);
                evicted.push(at);
            }
            at = next;
        }
        drop(lru);
        let count = evicted.len();
        self.stats.pages_evicted.add(count as u64);
        if count > 0 {
            self.free.put(evicted);
        }
        count
    }

    /// Takes a clean, unlatched page out of the page table; its frame stays latched exclusively.
    fn detach_if_clean(&self, frame: FrameNo) -> bool {
        let state = self.frames.get(frame);
        if state.oldest_lsn().is_some() || !state.latch.try_lock_exclusive() {
            return false;
        }
        if state.oldest_lsn().is_some() || state.is_flushing() {
            state.latch.unlock_exclusive(false);
            return false;
        }
        self.forget(frame);
        true
    }

    /// Takes the page out of the page table; the caller holds its frame exclusively.
    pub(super) fn forget(&self, frame: FrameNo) {
        let state = self.frames.get(frame);
        let lock = self.table.lock(state.page_no());
        self.table.remove(&self.frames, frame, &lock);
        state.set_page_no(NO_PAGE);
        drop(lock);
        // Who found the frame before waits for its latch, which a free frame never gives.
        state.latch.nudge();
    }

    /// Flushes the least recently used dirty page alone; false if there is none to flush.
    fn flush_one_page(&self) -> Result<bool> {
        let victim = self.dirty_tail(self.lru_scan_depth, 1);
        let start = Instant::now();
        let flushed = self.flush_frames(&victim, FlushReason::SinglePage)?;
        self.stats.single_page_flush_us.add(start.elapsed().as_micros() as u64);
        Ok(flushed > 0)
    }

    /// Whether the least recently used page is dirty.
    fn is_tail_dirty(&self) -> bool {
        let tail = self.lru.lock().tail();
        tail != NIL && self.frames.get(tail).oldest_lsn().is_some()
    }

    /// Up to `want` dirty frames among the last `depth` of the LRU list, least recently used first.
    pub(crate) fn dirty_tail(&self, depth: usize, want: usize) -> Vec<FrameNo> {
        let mut dirty = Vec::new();
        let lru = self.lru.lock();
        let mut at = lru.tail();
        for _ in 0..depth {
            if at == NIL || dirty.len() == want {
                break;
            }
            let state = self.frames.get(at);
            if state.oldest_lsn().is_some() && !state.is_flushing() {
                dirty.push(at);
            }
            at = lru.toward_head(at);
        }
        dirty
    }
}
