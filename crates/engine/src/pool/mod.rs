//! Buffer pool: a fixed number of frames, the pages in them, and what is flushed and evicted when.
//!
//! Terms: a *frame* is memory for one page; a page is *resident* when a frame holds it; *dirty* when its newest bytes
//! are not in the data file.
//!
//! Rules
//! 1. Whoever waits for I/O or for a free frame holds no latch. With latches held only `try_*` calls are made, to which a page
//!    that somebody is reading in is as good as missing; on a miss everything is released, `load` called, and the work starts
//!    again.
//! 2. A latched page stays, and an extent map that a mini-transaction has pinned to change it at its commit; any other is found again by number, or, unchanged, by the frame it was in
//!    and that frame's version.
//! 3. A page is written only after the redo up to its LSN is durable, from a copy, so its latch is not held meanwhile.
//! 4. A page that does not verify never becomes resident.
//!
//! Lock order: set-aside mutex < LRU mutex; page latches (tree order) < log mutex < flush-list mutex; LRU mutex < try-latch < page-table shard;
//! the free-list mutex is last and alone.
//!
//! Differs from InnoDB: no buf_fix_count, no instances, no SX latch (pages are written from copies), inner tree pages
//! are read without latching at all.

mod batches;
pub mod cleaner;
mod dirty;
mod evict;
mod flush;
mod flush_list;
mod frame;
mod free_list;
mod guard;
mod hash;
mod kinship;
pub mod latency;
mod lru;
pub mod lru_flusher;
mod neighbors;
mod optimistic;
pub mod pace;
pub mod pacing_model;
pub mod policy;
mod read;
mod set_aside;
#[cfg(test)]
mod tests;
/// What [`dirty`] is made of; a model checker gives it others.
mod atomic {
    pub(super) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
}

pub use crate::page::PageBytes;
pub use flush::FlushReason;
pub use frame::FrameNo;
pub use guard::{PageVersion, SharedPage};
pub use optimistic::OptimisticPage;

use crate::config::{Options, VictimPolicy};
use crate::error::Result;
use crate::log::Log;
use crate::stats::Stats;
use crate::store::{BATCH_PAGES, PageStore};
use crate::sync::poison::Poison;
use crate::sync::wake::Wake;
use crate::types::{Lsn, PageNo};
use batches::Batches;
use flush_list::FlushList;
use frame::Frames;
use free_list::FreeList;
use hash::PageTable;
use latency::{Histogram, LatencySnapshot};
use lru::Lru;
use pace::Pace;
use parking_lot::Mutex;
use set_aside::SetAside;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, fence,
};

/// Fewest frames a pool works with.
pub const MIN_FRAMES: usize = 64;

/// A part of the pool that is written all the time, on cache lines of its own: who only finds pages does not pay for it.
#[repr(align(64))]
struct Lone<T>(T);

impl<T> Deref for Lone<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

/// The buffer pool of one database.
pub struct Pool {
    frames: Frames,
    table: PageTable,
    free: Lone<FreeList>,
    lru: Lone<Mutex<Lru>>,
    /// Moves to the head of the LRU list so far; the unit of a frame's `young_stamp`.
    lru_clock: Lone<AtomicU32>,
    /// Pool time in milliseconds, moved on by the cleaner; starts at 1.
    now_ms: AtomicU32,
    old_blocks_time_ms: u32,
    lru_scan_depth: usize,
    flush_list: Lone<Mutex<FlushList>>,
    /// A leaf: nothing is taken under it.
    passed_by: Mutex<flush::PassedBy>,
    batches: Batches,
    store: Arc<dyn PageStore>,
    log: Arc<Log>,
    stats: Arc<Stats>,
    poison: Arc<Poison>,
    cleaner: Wake,
    lru_flusher: Wake,
    /// Threads keep frames free; without them, who needs a frame does everything alone.
    threads: AtomicBool,
    victim_policy: VictimPolicy,
    set_aside: Mutex<SetAside>,
    /// Pages became clean since the LRU list's cursor was last sent back.
    cleaned: AtomicBool,
    free_target: AtomicUsize,
    pace: Pace,
    give_up_ms: AtomicU64,
    /// 0, 1 or 2; see `flush_neighbors`.
    flush_neighbors: AtomicU8,
    /// Pages that arrived in frames so far.
    arrivals: Lone<AtomicU32>,
    page_read_latency: Histogram,
    free_frame_wait_latency: Histogram,
}

impl Pool {
    /// A pool of `options.buffer_pool_size` bytes over the store.
    ///
    /// # Errors
    /// The system has no memory for it.
    pub fn new(
        options: &Options,
        store: Arc<dyn PageStore>,
        log: Arc<Log>,
        stats: Arc<Stats>,
        poison: Arc<Poison>,
    ) -> Result<Pool> {
        let page_bytes = store.page_bytes();
        let count = (options.buffer_pool_size as usize / page_bytes).max(MIN_FRAMES);
        let pool = Pool {
            frames: Frames::new(count, page_bytes)?,
            table: PageTable::new(count),
            free: Lone(FreeList::new(count)),
            lru: Lone(Mutex::new(Lru::new(count, options.old_blocks_pct as usize))),
            lru_clock: Lone(AtomicU32::new(1)),
            now_ms: AtomicU32::new(1),
            old_blocks_time_ms: u32::try_from(options.old_blocks_time_ms).unwrap_or(u32::MAX),
            lru_scan_depth: (options.lru_scan_depth as usize).min(count / 4).max(8),
            flush_list: Lone(Mutex::new(FlushList::new(count))),
            passed_by: Mutex::default(),
            batches: Batches::new(page_bytes),
            store,
            log,
            stats,
            poison,
            cleaner: Wake::default(),
            lru_flusher: Wake::default(),
            threads: AtomicBool::new(false),
            victim_policy: options.victim_policy,
            set_aside: Mutex::new(SetAside::new(BATCH_PAGES.min(count / 16))),
            cleaned: AtomicBool::new(false),
            free_target: AtomicUsize::new((options.lru_scan_depth as usize).min(count / 8).max(4)),
            pace: Pace::default(),
            give_up_ms: AtomicU64::new(evict::GIVE_UP_MS),
            flush_neighbors: AtomicU8::new(0),
            arrivals: Lone(AtomicU32::new(0)),
            page_read_latency: Histogram::default(),
            free_frame_wait_latency: Histogram::default(),
        };
        pool.set_flush_neighbors(options.flush_neighbors);
        Ok(pool)
    }

    /// Slows users above the async watermark. The caller holds no latch.
    #[inline]
    pub(crate) fn keep_pace(&self) {
        if let Some(waited) = self.pace.wait(|| self.log.end_lsn()) {
            self.stats.sync_flush_waits.inc();
            self.stats.sync_flush_wait_us.add(waited.as_micros() as u64);
        }
    }

    /// Threads run that call the cleaner's and the LRU flusher's steps, or no more.
    pub(crate) fn set_threads(&self, run: bool) {
        self.threads.store(run, Relaxed);
        if !run {
            self.pace.set(None, self.log.end_lsn());
        }
    }

    /// From finding that a page is not resident until it is readable, the wait for a frame included.
    pub fn page_read_latency(&self) -> LatencySnapshot {
        self.page_read_latency.snapshot()
    }

    /// Waits of threads that found no free frame.
    pub fn free_frame_wait_latency(&self) -> LatencySnapshot {
        self.free_frame_wait_latency.snapshot()
    }

    /// Where its pages come from and go to.
    pub fn store(&self) -> &Arc<dyn PageStore> {
        &self.store
    }

    #[inline]
    pub fn page_bytes(&self) -> usize {
        self.frames.page_bytes()
    }

    pub fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// Smallest LSN a checkpoint may not pass; `None` when nothing is dirty.
    pub fn oldest_dirty_lsn(&self) -> Option<Lsn> {
        self.flush_list.lock().oldest_lsn(&self.frames)
    }

    pub fn dirty_count(&self) -> usize {
        self.flush_list.lock().len()
    }

    /// Frames on the LRU list.
    pub fn lru_count(&self) -> usize {
        self.lru.lock().len()
    }

    /// Frames on the free list.
    pub fn free_count(&self) -> usize {
        self.free.len()
    }

    /// A view of a resident page that takes no latch; `None` if it is not resident. Waits while the page is latched
    /// exclusively, or read in: the caller holds no latch.
    #[inline]
    pub fn optimistic(&self, page: PageNo) -> Option<OptimisticPage<'_>> {
        loop {
            let frame = self.table.find(&self.frames, page)?;
            let state = self.frames.get(frame);
            let Some(version) = state.latch.version() else {
                if state.latch.lock_shared_while(|| state.page_no() == page) {
                    state.latch.unlock_shared();
                }
                continue;
            };
            let view = OptimisticPage::new(&self.frames, frame, page, version);
            if state.page_no() == page && view.validate() {
                self.touch(frame);
                return Some(view);
            }
        }
    }

    /// Shared latch, loading the page if need be. The caller holds no latch.
    ///
    /// # Errors
    /// Those of [`Pool::load`].
    pub fn fix_s(&self, page: PageNo) -> Result<SharedPage<'_>> {
        loop {
            if let Some(guard) = self.try_fix_s(page) {
                return Ok(guard);
            }
            self.load(page)?;
        }
    }

    /// Shared latch if the page is resident and not being read in, waiting for the latch only.
    #[inline]
    pub fn try_fix_s(&self, page: PageNo) -> Option<SharedPage<'_>> {
        loop {
            let frame = self.table.find(&self.frames, page)?;
            let state = self.frames.get(frame);
            if !state.latch.lock_shared_while(|| state.has(page)) {
                if state.is_reading() && state.page_no() == page {
                    return None;
                }
                continue;
            }
            if state.page_no() == page {
                self.touch(frame);
                return Some(SharedPage::adopt(self, frame));
            }
            state.latch.unlock_shared();
        }
    }

    /// Shared latch iff the page is where it was seen, unchanged.
    pub fn fix_s_if(&self, seen: PageVersion) -> Option<SharedPage<'_>> {
        let guard = self.latch_s_at(seen.frame, seen.page_no, seen.version)?;
        self.touch(seen.frame);
        Some(guard)
    }

    /// Shared latch on a frame iff it is at `version`, at which it held `page`.
    #[inline]
    fn latch_s_at(&self, frame: FrameNo, page: PageNo, version: u64) -> Option<SharedPage<'_>> {
        let state = self.frames.get(frame);
        if !state.latch.lock_shared_while(|| state.has(page)) {
            return None;
        }
        // Adopted at once: whatever becomes of it, the hold is given back.
        let guard = SharedPage::adopt(self, frame);
        (state.latch.held_version() == version).then_some(guard)
    }

    /// Exclusive latch on a page that is resident and not being read in, waiting for the latch only; else `None`. The caller
    /// owns the hold.
    #[inline]
    pub(crate) fn try_latch_x(&self, page: PageNo) -> Option<FrameNo> {
        loop {
            let frame = self.table.find(&self.frames, page)?;
            let state = self.frames.get(frame);
            if !state.latch.lock_exclusive_while(|| state.has(page)) {
                if state.is_reading() && state.page_no() == page {
                    return None;
                }
                continue;
            }
            if state.page_no() == page {
                self.touch(frame);
                return Some(frame);
            }
            state.latch.unlock_exclusive(false);
        }
    }

    /// Exclusive latch on the page of `view` iff it is unchanged.
    #[inline]
    pub(crate) fn upgrade(&self, view: OptimisticPage<'_>) -> Option<FrameNo> {
        let state = self.frames.get(view.frame);
        let still = || state.has(view.page_no());
        state.latch.lock_exclusive_if(view.version, still).then_some(view.frame)
    }

    /// Shared latch on the page of `view` iff it is unchanged.
    #[inline]
    pub fn latch_s(&self, view: OptimisticPage<'_>) -> Option<SharedPage<'_>> {
        self.latch_s_at(view.frame, view.page_no(), view.version)
    }

    /// Eight bytes of a page as they are at this moment, whoever has it latched, without waiting; `None` if the page is not
    /// resident or being read in. They may be in the middle of a change.
    pub(crate) fn glimpse(&self, page: PageNo, offset: usize) -> Option<u64> {
        let frame = self.table.find(&self.frames, page)?;
        let state = self.frames.get(frame);
        if !state.has(page) {
            return None;
        }
        let word = OptimisticPage::new(&self.frames, frame, page, 0).u64_at(offset);
        // The bytes are looked at before the page number, which would tell that they were another page's.
        fence(Acquire);
        state.has(page).then_some(word)
    }

    /// The frames themselves, for mini-transactions.
    #[inline]
    pub(crate) fn frames(&self) -> &Frames {
        &self.frames
    }

    /// Notes in the flush list that the mini-transaction starting at `lsn` changed these frames, which the caller holds
    /// exclusively. Called in log order.
    pub(crate) fn note_changes(&self, changed: impl Iterator<Item = FrameNo> + Clone, lsn: Lsn) {
        // A frame that is dirty and not being written stays so while we hold its latch: nothing to note.
        if changed.clone().any(|f| !self.frames.get(f).dirty.is_noted()) {
            let mut list = self.flush_list.lock();
            changed.for_each(|f| list.note_change(&self.frames, f, lsn));
        }
    }

    /// Moves pool time on.
    pub(crate) fn set_now_ms(&self, now_ms: u64) {
        self.now_ms.store((now_ms as u32).max(1), Relaxed);
    }

    /// Notes a use of the page in the LRU list's terms.
    #[inline]
    fn touch(&self, frame: FrameNo) {
        let stamp = self.frames.get(frame).young_stamp.load(Relaxed);
        let age = self.lru_clock.load(Relaxed).wrapping_sub(stamp);
        if stamp == 0 || age as usize > self.frames.len() / 4 {
            self.touch_slow(frame, stamp);
        }
    }

    fn touch_slow(&self, frame: FrameNo, stamp: u32) {
        let state = self.frames.get(frame);
        if stamp == 0 {
            let now = self.now_ms.load(Relaxed);
            let first = state.first_access_ms.load(Relaxed);
            if first == 0 {
                state.first_access_ms.store(now, Relaxed);
            }
            if first == 0 || now.wrapping_sub(first) < self.old_blocks_time_ms {
                return;
            }
        }
        let mut lru = self.lru.lock();
        if lru.contains(frame) {
            let clock = self.lru_clock.fetch_add(1, Relaxed).wrapping_add(1).max(1);
            lru.make_young(&self.frames, frame, clock);
            self.stats.pages_made_young.inc();
        }
    }

    /// Refreshes the pool's gauges.
    pub(crate) fn publish_gauges(&self) {
        let free = self.free.len();
        self.stats.pool_pages_free.set(free as u64);
        self.stats.pool_pages_data.set((self.frames.len() - free) as u64);
        self.stats.pool_pages_dirty.set(self.dirty_count() as u64);
    }
}

/// Every flushed page was counted once, whatever the mix.
#[cfg(debug_assertions)]
impl Drop for Pool {
    fn drop(&mut self) {
        let stats = self.stats.snapshot();
        if !std::thread::panicking() {
            assert_eq!(stats.pages_flushed, stats.pages_flushed_by_reason(), "{stats:?}");
        }
    }
}
