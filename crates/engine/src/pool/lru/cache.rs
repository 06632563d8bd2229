//! The part of the pool with the LRU list of the resident pages: it evicts clean pages for others, and flushes dirty
//! ones at the tail of the LRU list.

use super::recency::Lru;
use crate::config::Options;
use crate::error::Result;
use crate::pool::flush::{FlushReason, PageFlusher};
use crate::pool::frames::{FrameNo, ResidentPages};
use crate::pool::pacing::policy;
use crate::stats::Stats;
use crate::store::{BATCH_PAGES, FlushLane, SINGLE_PAGES};
use crate::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use crate::sync::notify::Notify;
use std::sync::Arc;
use std::time::Instant;

/// A batch of victims is meant to take no longer than this: threads may wait for its frames.
const AIM_US: u64 = 20_000;
const STEP_BATCHES: usize = 8;

/// Resident pages in the order of their use.
pub(crate) struct PageCache {
    flusher: PageFlusher,
    lru: Lru,
    /// Free frames that the LRU flusher keeps ready, and what wakes it.
    free_target: AtomicUsize,
    lru_flusher: Notify,
    stats: Arc<Stats>,
}

impl PageCache {
    pub(crate) fn new(options: &Options, flusher: PageFlusher, stats: Arc<Stats>) -> PageCache {
        let frames = flusher.pages().frames().len();
        PageCache {
            lru: Lru::new(options, frames, stats.clone()),
            free_target: AtomicUsize::new((options.lru_scan_depth as usize).min(frames / 8).max(4)),
            lru_flusher: Notify::default(),
            flusher,
            stats,
        }
    }

    #[inline]
    pub(crate) fn pages(&self) -> &ResidentPages {
        self.flusher.pages()
    }

    #[inline]
    pub(crate) fn flusher(&self) -> &PageFlusher {
        &self.flusher
    }

    #[inline]
    pub(crate) fn lru(&self) -> &Lru {
        &self.lru
    }

    /// The notification that wakes the LRU flusher.
    pub(crate) fn lru_notify(&self) -> &Notify {
        &self.lru_flusher
    }

    /// Free frames that the LRU flusher keeps ready.
    pub(crate) fn free_target(&self) -> usize {
        self.free_target.load(Relaxed)
    }

    /// Changes how many frames the LRU flusher keeps ready.
    pub(crate) fn set_free_target(&self, frames: usize) {
        self.free_target.store(frames, Relaxed);
    }

    /// Evicts up to `want` clean pages among the last `depth` of the LRU list (`by_cursor`: as [`Lru::evict`] says);
    /// says how many.
    pub(crate) fn evict(&self, depth: usize, want: usize, by_cursor: bool) -> usize {
        let evicted = self.lru.evict(self.pages(), || self.flusher.cleanings(), depth, want, by_cursor);
        let count = evicted.len();
        self.note_evicted(count);
        if count > 0 {
            self.pages().release_frames(evicted);
        }
        count
    }

    /// Counts pages that were evicted.
    pub(crate) fn note_evicted(&self, pages: usize) {
        self.stats.pages_evicted.add(pages as u64);
    }

    /// Up to `want` dirty frames among the last `depth` of the LRU list, least recently used first.
    pub(crate) fn dirty_tail(&self, depth: usize, want: usize) -> Vec<FrameNo> {
        self.lru.dirty_tail(self.pages(), depth, want)
    }

    /// Flushes the least recently used dirty page that no other thread is flushing, as a single page; returns false if
    /// there is none.
    pub(crate) fn flush_one_page(&self) -> Result<bool> {
        let start = Instant::now();
        let mut flushed = 0;
        for victim in self.dirty_tail(self.lru.scan_depth(), SINGLE_PAGES) {
            flushed = self.flusher.flush_frames(&[victim], FlushReason::SinglePage)?;
            if flushed > 0 {
                break;
            }
        }
        self.stats.single_page_flush_us.add(start.elapsed().as_micros() as u64);
        Ok(flushed > 0)
    }

    /// Evicts clean pages, and flushes dirty ones at the tail, until `target` frames are free or no progress is made.
    pub(crate) fn refill(&self, target: usize, by_cursor: bool) -> Result<usize> {
        let max = self.batch_pages();
        let mut flushed = 0;
        for _ in 0..STEP_BATCHES {
            let want = target.saturating_sub(self.pages().free().len());
            let evicted = self.evict(self.lru.scan_depth(), want, by_cursor);
            if evicted >= want {
                break;
            }
            let dirty = self.dirty_tail(self.lru.scan_depth(), max);
            let wrote = self.flusher.flush_frames(&dirty, FlushReason::LruList)?;
            flushed += wrote;
            if evicted == 0 && wrote == 0 {
                break;
            }
        }
        Ok(flushed)
    }

    /// Pages of a batch of victims.
    pub(crate) fn batch_pages(&self) -> usize {
        policy::batch_pages(BATCH_PAGES, self.flusher.batch_us(FlushLane::LruList), AIM_US)
    }
}
