//! Buffer pool: frames, the pages in them, and what is flushed and evicted when.
//!
//! Terms: a *frame* is memory for one page; a page is *resident* when a frame holds it; *dirty* when its newest bytes
//! are not in the store.
//!
//! Rules
//! 1. A thread that waits for I/O or for a free frame holds no latch. A thread that loads a page holds no redo space,
//!    because `load` may merge buffered operations of the page, which takes redo space. A thread with latches makes
//!    only `try_*` calls. To these a page that another thread is reading, or that is unmerged, is missing. On a miss
//!    the thread releases everything, calls `load`, and starts again.
//! 2. A latched page stays in its frame, and so does a pinned page (an extent map that a mini-transaction will change
//!    at its commit). Any other page must be looked up again by its number, or by its frame and that frame's version if
//!    it has not changed.
//! 3. A page is written only after the redo up to its LSN is durable. The write uses a copy, so it holds no latch.
//! 4. A page that does not verify never becomes resident.
//! 5. An error while pages are written stops the database, because the state of the store is unknown.
//!
//! Lock order: mutex of deferred victims < LRU mutex; page latches (tree order) < log mutex < flush-list mutex; LRU
//! mutex < try-latch < page-table shard; the free-list mutex is last and alone.
//!
//! Differs from InnoDB: no buf_fix_count, no instances, no SX latch (pages are written from copies), inner tree pages
//! are read without latching at all.
//!
//! | folder | what |
//! |---|---|
//! | `frames` | frames, page table, free list, loading and latching pages |
//! | `lru` | LRU list, eviction, victim policies |
//! | `flush` | dirty marks, flush list, writing batches |
//! | `cleaner` | page cleaner, LRU flusher, pacing |
//! | `resize` | withdrawing frames, and returning them |
//! | `pending` | changes of pages that are not resident: the change buffer, as the pool sees it |

pub mod cleaner;
mod flush;
mod frame_list;
mod frames;
mod lru;
pub mod pending;
#[cfg(test)]
mod pool_test;
mod read_ahead;
mod resize;

pub use flush::FlushReason;
pub use frames::{Content, FrameNo, OptimisticPage, PageVersion, SharedPage, held_latches, release_freed_memory};

use crate::config::Options;
use crate::error::Result;
use crate::log::Log;
use crate::stats::{Histogram, LatencySnapshot, Stats};
use crate::store::PageStore;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use crate::sync::poison::Poison;
use crate::sync::sharded::CachePadded;
use cleaner::CleanerPart;
use flush::FlushPart;
use frames::{Frames, FreeList, NIL, NO_PAGE, PageTable};
use lru::LruPart;
use pending::PendingChanges;
use read_ahead::ReadAhead;
pub(crate) use read_ahead::ReadBuffer;
use std::sync::{Arc, OnceLock};

/// Fewest frames a pool works with.
pub const MIN_FRAMES: usize = 64;

/// The buffer pool of one database.
pub struct Pool {
    frames: Frames,
    table: PageTable,
    free: CachePadded<FreeList>,
    /// Frames that are not in use, without memory, and how many are in use.
    withdrawn: Mutex<Vec<FrameNo>>,
    in_use: AtomicUsize,
    /// Pages that arrived in frames so far.
    arrivals: CachePadded<AtomicU32>,
    lru: LruPart,
    flush: FlushPart,
    cleaner: CleanerPart,
    latencies: CachePadded<Latencies>,
    store: Arc<dyn PageStore>,
    log: Arc<Log>,
    stats: Arc<Stats>,
    poison: Arc<Poison>,
    pending: OnceLock<Arc<dyn PendingChanges>>,
    read_ahead: ReadAhead,
}

/// How long threads wait for the pool.
#[derive(Default)]
struct Latencies {
    page_read: Histogram,
    free_frame_wait: Histogram,
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
        let in_use = (options.buffer_pool_size as usize / page_bytes).max(MIN_FRAMES);
        let count = (options.buffer_pool_size_max as usize / page_bytes).max(in_use);
        let pool = Pool {
            frames: Frames::new(count, page_bytes)?,
            table: PageTable::new(count).map_err(|_| frames::no_memory(count))?,
            free: CachePadded(FreeList::new(count)),
            arrivals: CachePadded(AtomicU32::new(0)),
            withdrawn: Mutex::default(),
            in_use: AtomicUsize::new(count),
            lru: LruPart::new(options, count),
            flush: FlushPart::new(count, page_bytes),
            cleaner: CleanerPart::default(),
            latencies: CachePadded(Latencies::default()),
            store,
            log,
            stats,
            poison,
            pending: OnceLock::new(),
            read_ahead: ReadAhead::default(),
        };
        pool.set_flush_neighbors(options.flush_neighbors);
        pool.resize(in_use)?;
        pool.set_lru_options(options);
        Ok(pool)
    }

    /// From finding that a page is not resident until it is readable, the wait for a frame included.
    pub fn page_read_latency(&self) -> LatencySnapshot {
        self.latencies.page_read.snapshot()
    }

    /// Waits of threads that found no free frame.
    pub fn free_frame_wait_latency(&self) -> LatencySnapshot {
        self.latencies.free_frame_wait.snapshot()
    }

    /// Pages looked at from the tail of the LRU list: the option, within what a pool of this size allows.
    pub fn lru_scan_depth(&self) -> usize {
        self.lru.scan_depth()
    }

    /// The store that its pages come from and go to.
    pub fn store(&self) -> &Arc<dyn PageStore> {
        &self.store
    }

    #[inline]
    pub fn page_bytes(&self) -> usize {
        self.frames.page_bytes()
    }

    /// Frames in use: all but the withdrawn ones ([`resize`]).
    pub fn frame_count(&self) -> usize {
        self.in_use.load(Relaxed)
    }

    /// Frames on the free list.
    pub fn free_count(&self) -> usize {
        self.free.len()
    }

    /// Refreshes the pool's gauges.
    pub(crate) fn publish_gauges(&self) {
        let free = self.free.len();
        self.stats.pool_pages_free.set(free as u64);
        let unused = free + self.frames.without_memory();
        self.stats.pool_pages_data.set(self.frames.len().saturating_sub(unused) as u64);
        self.stats.pool_pages_dirty.set(self.dirty_count() as u64);
    }
}

/// Every flushed page was counted under one reason.
#[cfg(debug_assertions)]
impl Drop for Pool {
    fn drop(&mut self) {
        let stats = self.stats.snapshot();
        if !std::thread::panicking() {
            assert_eq!(stats.pages_flushed, stats.pages_flushed_by_reason(), "{stats:?}");
        }
    }
}
