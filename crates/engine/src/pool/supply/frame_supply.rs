//! Taking a free frame: from the free list; else by evicting a clean page; else by the victim policy.
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

use crate::config::Options;
use crate::error::{Error, Result};
use crate::pool::frames::{FrameNo, ResidentPages, held_latches};
use crate::pool::lru::{FrameDemand, PageCache, Victims, victims_of};
use crate::stats::{Histogram, LatencySnapshot, Stats};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use crate::sync::poison::Poison;
use crate::sync::sharded::CachePadded;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum time of a thread's search for frames.
const FREE_FRAME_TIMEOUT_MS: u64 = 20_000;
/// Pause between two searches.
const NAP: Duration = Duration::from_millis(2);
/// Time for which a thread relies on the LRU flusher before it flushes a page itself.
const TIMEOUT: Duration = Duration::from_millis(500);
/// Rounds of waiting after which a thread searches the whole list although nothing became clean (rule 4).
const SEARCH_ANYWAY: u32 = 8;
/// Searches for clean victims with a dirty tail after which a thread writes a page itself, if the engine's threads do
/// not run (rule 5).
const CLEAN_IN_A_ROW: u32 = 64;
/// Clean pages evicted at once by a thread that found no free frame.
const EVICT_BATCH: usize = 16;

/// The frames that hold no page, and the ways to more of them.
pub(crate) struct FrameSupply {
    cache: PageCache,
    victims: Box<dyn Victims>,
    /// Frames that are not in use, without memory.
    pub(super) withdrawn: Mutex<Vec<FrameNo>>,
    free_frame_timeout_ms: AtomicU64,
    /// Searches for clean victims since a thread without others wrote a page.
    clean_in_a_row: AtomicU32,
    /// Waits of threads that found no free frame.
    free_frame_wait: CachePadded<Histogram>,
    stats: Arc<Stats>,
    poison: Arc<Poison>,
}

impl FrameSupply {
    pub(crate) fn new(options: &Options, cache: PageCache, stats: Arc<Stats>, poison: Arc<Poison>) -> FrameSupply {
        FrameSupply {
            victims: victims_of(options.victim_policy, cache.pages().frames().len()),
            withdrawn: Mutex::default(),
            free_frame_timeout_ms: AtomicU64::new(FREE_FRAME_TIMEOUT_MS),
            clean_in_a_row: AtomicU32::new(0),
            free_frame_wait: CachePadded(Histogram::default()),
            cache,
            stats,
            poison,
        }
    }

    #[inline]
    pub(crate) fn cache(&self) -> &PageCache {
        &self.cache
    }

    #[inline]
    pub(crate) fn pages(&self) -> &ResidentPages {
        self.cache.pages()
    }

    /// Waits of threads that found no free frame.
    pub(crate) fn free_frame_wait_latency(&self) -> LatencySnapshot {
        self.free_frame_wait.snapshot()
    }

    /// One step of the LRU flusher: writes the pages that were deferred, and keeps frames free; returns how many pages
    /// it flushed.
    ///
    /// # Errors
    /// An I/O or poison error.
    pub(crate) fn keep_free(&self, demand: &mut FrameDemand, now_ms: u64) -> Result<usize> {
        let written = self.write_deferred()?;
        Ok(written + self.victims.keep_free(&self.cache, demand, now_ms)?)
    }

    /// Writes the pages that the victim policy has deferred; returns how many.
    ///
    /// # Errors
    /// An I/O or poison error.
    pub(crate) fn write_deferred(&self) -> Result<usize> {
        self.victims.write_deferred(&self.cache)
    }

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
        out[had..].iter().for_each(|frame| self.pages().frames().check_free(*frame));
        Ok(())
    }

    fn take_free_or_make(&self, count: usize, out: &mut Vec<FrameNo>) -> Result<()> {
        match self.pages().free().take(count, out) {
            Some(rest) => {
                if rest < self.cache.free_target() / 2 {
                    self.victims.on_few_free(&self.cache);
                }
                Ok(())
            }
            None => self.take_frames_slow(count, out),
        }
    }

    /// As [`FrameSupply::take_frames`], for callers that need the memory, not the frames: it is returned to the system
    /// until [`FrameSupply::return_frames`].
    ///
    /// # Errors
    /// As there.
    pub(crate) fn reserve_frames(&self, count: usize, out: &mut Vec<FrameNo>) -> Result<()> {
        let had = out.len();
        self.take_frames(count, out)?;
        // SAFETY: a frame that was taken from the free list is latched exclusively for the thread that took it, and
        // this one makes no slice of it.
        unsafe { self.pages().frames().release_memory(&out[had..]) };
        Ok(())
    }

    /// Releases frames that were deferred.
    pub(crate) fn return_frames(&self, frames: impl ExactSizeIterator<Item = FrameNo>) {
        self.pages().frames().note_returned(frames.len());
        self.pages().release_frames(frames);
    }

    /// Changes how long `take_frames` looks before it gives up.
    #[cfg(test)]
    pub(crate) fn set_free_frame_timeout_ms(&self, free_frame_timeout_ms: u64) {
        self.free_frame_timeout_ms.store(free_frame_timeout_ms, Relaxed);
    }

    #[cold]
    fn take_frames_slow(&self, count: usize, out: &mut Vec<FrameNo>) -> Result<()> {
        let is_tail_dirty = self.cache.lru().is_tail_dirty(self.pages());
        self.stats.dirty_victims.add(u64::from(is_tail_dirty));
        let by_itself = is_tail_dirty && !self.cache.flusher().threads_run();
        if by_itself && self.clean_in_a_row.fetch_add(1, Relaxed) >= CLEAN_IN_A_ROW {
            self.clean_in_a_row.store(0, Relaxed);
            self.cache.flush_one_page()?;
        }
        self.evict_clean(EVICT_BATCH.max(count));
        if self.pages().free().take(count, out).is_some() || self.victims.take_from_reserve(&self.cache, count, out) {
            return Ok(());
        }
        self.stats.free_frame_waits.inc();
        let start = Instant::now();
        let result = self.make_frames(count, out, start);
        let waited = start.elapsed();
        self.stats.free_frame_wait_us.add(waited.as_micros() as u64);
        self.free_frame_wait.record(waited);
        result
    }

    fn make_frames(&self, count: usize, out: &mut Vec<FrameNo>, start: Instant) -> Result<()> {
        let (mut round, mut searched) = (0, None);
        loop {
            self.poison.check()?;
            if self.victims.take_from_reserve(&self.cache, count, out) {
                return Ok(());
            }
            let progress = self.make_clean(start)?;
            // Where nothing became clean since, a search finds what was latched then, and that is rare.
            let cleanings = self.cache.flusher().cleanings();
            round += 1;
            if round % SEARCH_ANYWAY == 0 {
                self.cache.evict(usize::MAX, EVICT_BATCH.max(count), false);
            } else if searched.replace(cleanings) != Some(cleanings) || progress {
                self.evict_clean(EVICT_BATCH.max(count));
            }
            if self.pages().free().take(count, out).is_some() {
                return Ok(());
            }
            if start.elapsed().as_millis() as u64 > self.free_frame_timeout_ms.load(Relaxed) {
                return Err(Error::PoolExhausted {
                    frames: self.pages().frame_count(),
                    waited_ms: start.elapsed().as_millis() as u64,
                });
            }
            if !progress {
                self.pages().free().wait(NAP);
            }
        }
    }

    /// Makes a victim clean for a thread that found none; returns whether it cleaned a page itself.
    fn make_clean(&self, start: Instant) -> Result<bool> {
        self.cache.lru_notify().wake();
        let others_work = self.cache.flusher().threads_run() && start.elapsed() < TIMEOUT;
        self.victims.make_clean(&self.cache, others_work)
    }

    /// Evicts up to `want` clean pages among the last of the LRU list (`lru-clean`: from the cursor on, within the old
    /// part and before the pages that came in lately), as far as the policy looks for a clean victim.
    fn evict_clean(&self, want: usize) {
        let depth = self.victims.search_depth(self.cache.lru().scan_depth());
        self.cache.evict(depth, want, self.victims.by_cursor());
    }
}
