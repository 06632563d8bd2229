//! Getting a free frame: from the free list, by evicting a clean page, by the victim policy if there is none.
//!
//! Rules
//! 1. Called with no latch held (pool rule 1).
//! 2. In steady load the LRU flusher keeps the free list filled; a thread that evicts itself is the exception and is
//!    counted. (With `raw` and `war` it is normal, as in InnoDB.)
//! 3. The wait is bounded: after `FREE_FRAME_TIMEOUT_MS` the caller gets an error.
//! 4. A thread that repeatedly finds no victim searches the whole list, as InnoDB does: `lru-clean` searches the old
//!    part, which may have no evictable page while the young part has many.
//! 5. If the engine's threads do not run, no other thread writes the dirty pages at the tail. So after
//!    [`CLEAN_IN_A_ROW`] searches the searching thread writes one. Otherwise the clean pages could be too few: a
//!    mini-transaction that needs two pages would evict one for the other, for ever.

use super::list::LruList;
use crate::error::{Error, Result};
use crate::pool::frames::held_latches;
use crate::pool::{FlushReason, FrameNo, NIL, Pool};
use crate::store::SINGLE_PAGES;
use crate::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// How long a thread looks for frames before it gets an error.
pub(super) const FREE_FRAME_TIMEOUT_MS: u64 = 20_000;
/// How long it waits before it looks again.
const NAP: Duration = Duration::from_millis(2);
/// How long a thread relies on the LRU flusher before it flushes a page itself.
const TIMEOUT: Duration = Duration::from_millis(500);
/// Rounds of waiting after which a thread searches the whole list although nothing became clean (rule 4).
const SEARCH_ANYWAY: u32 = 8;
/// Searches for clean victims, while the tail is dirty, after which a thread without others writes a page.
const CLEAN_IN_A_ROW: u32 = 64;
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
        held_latches::expect_none("a frame is taken");
        let had = out.len();
        self.take_free_or_make(count, out)?;
        debug_assert_eq!(out.len(), had + count, "all frames that were asked for, or none");
        out[had..].iter().for_each(|frame| self.frames.check_free(*frame));
        Ok(())
    }

    fn take_free_or_make(&self, count: usize, out: &mut Vec<FrameNo>) -> Result<()> {
        match self.free.take(count, out) {
            Some(rest) => {
                if rest < self.free_target() / 2 {
                    self.lru.victims.on_few_free(self);
                }
                Ok(())
            }
            None => self.take_frames_slow(count, out),
        }
    }

    /// As [`Pool::take_frames`], for who needs no frames but as much memory less in the pool: theirs goes back to the
    /// system until [`Pool::return_frames`].
    ///
    /// # Errors
    /// As there.
    pub(crate) fn reserve_frames(&self, count: usize, out: &mut Vec<FrameNo>) -> Result<()> {
        let had = out.len();
        self.take_frames(count, out)?;
        // SAFETY: a frame that was taken from the free list is latched exclusively for the thread that took it, and
        // this one makes no slice of it.
        unsafe { self.frames.release_memory(&out[had..]) };
        Ok(())
    }

    /// Releases frames that were deferred.
    pub(crate) fn return_frames(&self, frames: impl ExactSizeIterator<Item = FrameNo>) {
        self.frames.note_returned(frames.len());
        self.release_frames(frames);
    }

    /// Changes how long `take_frames` looks before it gives up.
    #[cfg(test)]
    pub(crate) fn set_free_frame_timeout_ms(&self, free_frame_timeout_ms: u64) {
        self.lru.free_frame_timeout_ms.store(free_frame_timeout_ms, Relaxed);
    }

    /// Gives unused frames back.
    pub(crate) fn release_frames(&self, frames: impl IntoIterator<Item = FrameNo>) {
        self.free.put(frames.into_iter().inspect(|frame| self.frames.check_free(*frame)));
    }

    /// Free frames that the LRU flusher keeps ready.
    pub(crate) fn free_target(&self) -> usize {
        self.lru.free_target.load(Relaxed)
    }

    /// Changes how many frames the LRU flusher keeps ready.
    pub(crate) fn set_free_target(&self, frames: usize) {
        self.lru.free_target.store(frames, Relaxed);
    }

    #[cold]
    fn take_frames_slow(&self, count: usize, out: &mut Vec<FrameNo>) -> Result<()> {
        let is_tail_dirty = self.is_tail_dirty();
        self.stats.dirty_victims.add(u64::from(is_tail_dirty));
        let by_itself = is_tail_dirty && !self.cleaner.threads_run();
        if by_itself && self.lru.clean_in_a_row.fetch_add(1, Relaxed) >= CLEAN_IN_A_ROW {
            self.lru.clean_in_a_row.store(0, Relaxed);
            self.flush_one_page()?;
        }
        self.evict_clean(self.clean_search_depth(), EVICT_BATCH.max(count));
        if self.free.take(count, out).is_some() || self.lru.victims.take_from_reserve(self, count, out) {
            return Ok(());
        }
        self.stats.free_frame_waits.inc();
        let start = Instant::now();
        let result = self.make_frames(count, out, start);
        let waited = start.elapsed();
        self.stats.free_frame_wait_us.add(waited.as_micros() as u64);
        self.latencies.free_frame_wait.record(waited);
        result
    }

    fn make_frames(&self, count: usize, out: &mut Vec<FrameNo>, start: Instant) -> Result<()> {
        let (mut round, mut searched) = (0, None);
        loop {
            self.poison.check()?;
            if self.lru.victims.take_from_reserve(self, count, out) {
                return Ok(());
            }
            let progress = self.make_clean(start)?;
            // Where nothing became clean since, a search finds what was latched then, and that is rare.
            let cleanings = self.lru.cleanings();
            round += 1;
            if round % SEARCH_ANYWAY == 0 {
                self.evict(usize::MAX, EVICT_BATCH.max(count), false);
            } else if searched.replace(cleanings) != Some(cleanings) || progress {
                self.evict_clean(self.clean_search_depth(), EVICT_BATCH.max(count));
            }
            if self.free.take(count, out).is_some() {
                return Ok(());
            }
            if start.elapsed().as_millis() as u64 > self.lru.free_frame_timeout_ms.load(Relaxed) {
                return Err(Error::PoolExhausted {
                    frames: self.frame_count(),
                    waited_ms: start.elapsed().as_millis() as u64,
                });
            }
            if !progress {
                self.free.wait(NAP);
            }
        }
    }

    /// What a thread does that found no clean victim; says whether it cleaned a page itself.
    fn make_clean(&self, start: Instant) -> Result<bool> {
        self.cleaner.lru_flusher.wake();
        let others_work = self.cleaner.threads_run() && start.elapsed() < TIMEOUT;
        self.lru.victims.make_clean(self, others_work)
    }

    /// How far from the tail a thread looks for a clean victim.
    fn clean_search_depth(&self) -> usize {
        self.lru.victims.search_depth(self.lru.scan_depth())
    }

    /// Evicts up to `want` clean pages among the last `depth` of the LRU list (`lru-clean`: among `depth` from the
    /// cursor on, within the old part and before the pages that came in lately); says how many.
    pub(crate) fn evict_clean(&self, depth: usize, want: usize) -> usize {
        self.evict(depth, want, self.lru.victims.by_cursor())
    }

    /// Evicts every clean page.
    #[cfg(any(test, shuttle))]
    pub(crate) fn evict_all_clean(&self) -> usize {
        self.evict(usize::MAX, usize::MAX, false)
    }

    fn evict(&self, depth: usize, want: usize, by_cursor: bool) -> usize {
        let mut evicted = Vec::with_capacity(want.min(self.frames.len()));
        let mut lru = self.lru.list.lock();
        let cleanings = self.lru.cleanings();
        let on = by_cursor && self.lru.searched.swap(cleanings, Relaxed) == cleanings;
        let mut at = if on { lru.cursor() } else { lru.tail() };
        for _ in 0..depth {
            if at == NIL || evicted.len() == want || (by_cursor && lru.ends_search(&self.frames, at)) {
                break;
            }
            let next = lru.toward_head(at);
            if self.detach_if_clean(at) {
                lru.remove(&self.frames, at);
                evicted.push(at);
            }
            at = next;
        }
        // At the end the search starts again: pages that were latched when it passed may be free now.
        let at_end = at == NIL || lru.ends_search(&self.frames, at);
        lru.set_cursor(if by_cursor && !at_end { at } else { NIL });
        drop(lru);
        let count = evicted.len();
        self.stats.pages_evicted.add(count as u64);
        if count > 0 {
            self.release_frames(evicted);
        }
        count
    }

    /// Takes a clean, unlatched page out of the page table; its frame stays latched exclusively.
    pub(super) fn detach_if_clean(&self, frame: FrameNo) -> bool {
        let state = self.frames.get(frame);
        if state.oldest_lsn().is_some() || !state.latch.try_lock_exclusive() {
            return false;
        }
        let stays = state.kept.load(Relaxed) || state.pins.load(Relaxed) > 0;
        if stays || state.oldest_lsn().is_some() || state.dirty.is_flushing() {
            state.latch.unlock_exclusive(false);
            return false;
        }
        debug_assert!(!state.dirty.is_recreated_by_redo(), "the clean page of frame {frame} counts as changed");
        self.unmap(frame);
        true
    }

    /// Flushes one page alone, the least recently used dirty one that no other thread takes first; false if there is
    /// none.
    pub(super) fn flush_one_page(&self) -> Result<bool> {
        let start = Instant::now();
        let mut flushed = 0;
        for victim in self.dirty_tail(self.lru.scan_depth(), SINGLE_PAGES) {
            flushed = self.flush_frames(&[victim], FlushReason::SinglePage)?;
            if flushed > 0 {
                break;
            }
        }
        self.stats.single_page_flush_us.add(start.elapsed().as_micros() as u64);
        Ok(flushed > 0)
    }

    /// Whether the least recently used page is dirty.
    fn is_tail_dirty(&self) -> bool {
        let tail = self.lru.list.lock().tail();
        tail != NIL && self.frames.get(tail).oldest_lsn().is_some()
    }

    /// Up to `want` dirty frames among the last `depth` of the LRU list, least recently used first.
    pub(crate) fn dirty_tail(&self, depth: usize, want: usize) -> Vec<FrameNo> {
        self.dirty_at_tail(&self.lru.list.lock(), depth, want)
    }

    /// The same, on the locked list.
    pub(super) fn dirty_at_tail(&self, lru: &LruList, depth: usize, want: usize) -> Vec<FrameNo> {
        let mut dirty = Vec::new();
        let mut at = lru.tail();
        for _ in 0..depth {
            if at == NIL || dirty.len() == want {
                break;
            }
            let state = self.frames.get(at);
            if state.oldest_lsn().is_some() && !state.dirty.is_flushing() {
                dirty.push(at);
            }
            at = lru.toward_head(at);
        }
        dirty
    }
}
