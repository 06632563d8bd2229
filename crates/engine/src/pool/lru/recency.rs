//! The use of a page: when the page becomes young, and when it moves to the head of the LRU list.
//!
//! Lock order: LRU mutex < try-latch < page-table shard.

use super::list::LruList;
use crate::config::Options;
use crate::pool::frames::{FrameNo, ResidentPages};
use crate::stats::Stats;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use crate::sync::sharded::CachePadded;
use std::sync::Arc;

/// The LRU list and its clock.
pub(crate) struct Lru {
    pub(super) list: CachePadded<Mutex<LruList>>,
    /// Moves to the head of the list so far; the unit of a frame's `young_stamp`.
    clock: CachePadded<AtomicU32>,
    /// The clock as it was lately, which every use of a page reads: it is written seldom.
    published: CachePadded<AtomicU32>,
    /// The most by which it may lag.
    lag: AtomicU32,
    /// Pool time in milliseconds, moved on by the cleaner; starts at 1.
    now_ms: AtomicU32,
    old_blocks_time_ms: AtomicU32,
    /// Pages that come in while a page passes through the first half of the old part.
    old_arrivals: AtomicU32,
    /// Pages looked at from the tail of the list: the option, within what a pool of this size allows.
    scan_depth: AtomicUsize,
    /// Batches of pages that had become clean when the list's cursor was last sent back.
    pub(super) searched: AtomicU32,
    stats: Arc<Stats>,
}

impl Lru {
    /// An empty list for `frames` frames.
    pub(crate) fn new(options: &Options, frames: usize, stats: Arc<Stats>) -> Lru {
        Lru {
            list: CachePadded(Mutex::new(LruList::new(frames, options.old_blocks_pct as usize))),
            clock: CachePadded(AtomicU32::new(1)),
            published: CachePadded(AtomicU32::new(1)),
            lag: AtomicU32::new(lag_of(frames)),
            now_ms: AtomicU32::new(1),
            old_blocks_time_ms: AtomicU32::new(old_blocks_time_ms(options)),
            old_arrivals: AtomicU32::new(old_arrivals_of(options, frames)),
            scan_depth: AtomicUsize::new(scan_depth_of(options, frames)),
            searched: AtomicU32::new(0),
            stats,
        }
    }

    /// Changes what can be changed while the pool is in use; `frames` are those in use.
    pub(crate) fn set_options(&self, options: &Options, frames: usize) {
        self.old_blocks_time_ms.store(old_blocks_time_ms(options), Relaxed);
        self.scan_depth.store(scan_depth_of(options, frames), Relaxed);
        self.lag.store(lag_of(frames), Relaxed);
        self.old_arrivals.store(old_arrivals_of(options, frames), Relaxed);
    }

    /// Moves pool time on.
    pub(crate) fn set_now_ms(&self, now_ms: u64) {
        self.now_ms.store((now_ms as u32).max(1), Relaxed);
    }

    /// Pages looked at from the tail of the list.
    pub(crate) fn scan_depth(&self) -> usize {
        self.scan_depth.load(Relaxed)
    }

    /// Frames on the list.
    pub(crate) fn len(&self) -> usize {
        self.list.lock().len()
    }

    /// Notes that the page was used.
    #[inline]
    pub(crate) fn promote(&self, pages: &ResidentPages, frame: FrameNo) {
        let stamp = pages.get(frame).young_stamp.load(Relaxed);
        // Negative if the page became young after the clock was published.
        let age = self.published.load(Relaxed).wrapping_sub(stamp) as i32;
        if stamp == 0 || age > (pages.frame_count() / 4) as i32 {
            self.promote_slow(pages, frame, stamp);
        }
    }

    fn promote_slow(&self, pages: &ResidentPages, frame: FrameNo, stamp: u32) {
        let state = pages.get(frame);
        if stamp == 0 {
            let now = self.now_ms.load(Relaxed);
            let first = state.first_access_ms.load(Relaxed);
            if first == 0 {
                state.first_access_ms.store(now, Relaxed);
                return;
            }
            let passed_by = pages.arrivals().wrapping_sub(state.arrival.load(Relaxed));
            if now.wrapping_sub(first) < self.old_blocks_time_ms.load(Relaxed)
                && passed_by < self.old_arrivals.load(Relaxed)
            {
                return;
            }
        }
        let mut list = self.list.lock();
        if list.contains(frame) {
            let clock = self.clock.fetch_add(1, Relaxed).wrapping_add(1).max(1);
            if clock.wrapping_sub(self.published.load(Relaxed)) > self.lag.load(Relaxed) {
                self.published.store(clock, Relaxed);
            }
            list.make_young(pages.frames(), frame, clock);
            self.stats.pages_made_young.inc();
        }
    }

    /// Enters a page just read.
    pub(crate) fn insert_old(&self, pages: &ResidentPages, frame: FrameNo) {
        self.list.lock().insert_old(pages.frames(), frame);
    }

    /// Takes a frame out, if it is on the list.
    pub(crate) fn take_out(&self, pages: &ResidentPages, frame: FrameNo) {
        let mut list = self.list.lock();
        if list.contains(frame) {
            list.remove(pages.frames(), frame);
        }
    }
}

fn old_blocks_time_ms(options: &Options) -> u32 {
    u32::try_from(options.old_blocks_time_ms).unwrap_or(u32::MAX)
}

fn lag_of(frames: usize) -> u32 {
    (frames / 64) as u32
}

fn old_arrivals_of(options: &Options, frames: usize) -> u32 {
    (frames as u64 * options.old_blocks_pct / 100 / 2) as u32
}

/// The option, within what a pool of this size allows.
fn scan_depth_of(options: &Options, frames: usize) -> usize {
    (options.lru_scan_depth as usize).min(frames / 4).max(8)
}
