//! The part of the pool with the flush list, which writes dirty pages to the store.
//!
//! Lock order: page latches < flush-list mutex. The other mutexes here are leaves: no lock is taken under them.

use super::batches::Batches;
use super::bulk_loaded::BulkLoadedPages;
use super::in_flight::PagesInFlight;
use super::list::FlushList;
use super::reason::FlushReason;
use super::select::FlushSelection;
use super::starvation::OldestPageStarvation;
use crate::config::FlushNeighbors;
use crate::error::Result;
use crate::log::Log;
use crate::pool::frames::{FrameNo, ResidentPages};
use crate::stats::Stats;
use crate::store::{FlushLane, PageStore};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use crate::sync::poison::Poison;
use crate::sync::sharded::CachePadded;
use crate::types::{Lsn, PageNo};
use std::sync::Arc;

/// The dirty ones of the resident pages, and the way from them to the store.
pub(crate) struct PageFlusher {
    pub(super) pages: ResidentPages,
    pub(super) list: CachePadded<Mutex<FlushList>>,
    pub(super) oldest_starvation: Mutex<OldestPageStarvation>,
    filled: BulkLoadedPages,
    pub(super) batches: Batches,
    pub(super) in_flight: PagesInFlight,
    pub(super) selection: FlushSelection,
    /// Batches of pages that became clean.
    pub(super) cleanings: AtomicU32,
    /// Threads flush pages and keep frames free; without them, a thread that needs a frame does everything alone.
    threads: AtomicBool,
    pub(super) store: Arc<dyn PageStore>,
    pub(super) log: Arc<Log>,
    pub(super) stats: Arc<Stats>,
    pub(super) poison: Arc<Poison>,
}

impl PageFlusher {
    /// `pages` are flushed to `store`, which has pages of `page_bytes`.
    pub(crate) fn new(
        pages: ResidentPages,
        store: Arc<dyn PageStore>,
        log: Arc<Log>,
        stats: Arc<Stats>,
        poison: Arc<Poison>,
    ) -> PageFlusher {
        let frames = pages.frames();
        PageFlusher {
            list: CachePadded(Mutex::new(FlushList::new(frames.len()))),
            oldest_starvation: Mutex::default(),
            filled: BulkLoadedPages::default(),
            batches: Batches::new(frames.page_bytes()),
            in_flight: PagesInFlight::default(),
            selection: FlushSelection::default(),
            cleanings: AtomicU32::new(0),
            threads: AtomicBool::new(false),
            pages,
            store,
            log,
            stats,
            poison,
        }
    }

    #[inline]
    pub(crate) fn pages(&self) -> &ResidentPages {
        &self.pages
    }

    /// Smallest LSN a checkpoint may not pass; `None` when nothing is dirty.
    pub(crate) fn oldest_dirty_lsn(&self) -> Option<Lsn> {
        self.list.lock().oldest_lsn(self.pages.frames())
    }

    pub(crate) fn dirty_count(&self) -> usize {
        self.list.lock().len()
    }

    /// Notes in the flush list that the mini-transaction starting at `lsn` changed these frames, which the caller holds
    /// exclusively. Called in log order.
    pub(crate) fn note_changes(&self, changed: impl Iterator<Item = FrameNo> + Clone, lsn: Lsn) {
        // A frame that is dirty and not being written stays so while its latch is held: nothing to note.
        if changed.clone().any(|f| !self.pages.get(f).dirty.is_noted()) {
            let mut list = self.list.lock();
            changed.for_each(|f| list.note_change(self.pages.frames(), f, lsn));
        }
    }

    /// Names a page that a load has filled; returns whether enough are named for [`PageFlusher::flush_bulk_loaded`].
    /// The caller may hold latches.
    pub(crate) fn note_bulk_loaded(&self, page_no: PageNo) -> bool {
        self.filled.add(page_no)
    }

    /// Flushes the filled pages named first, if enough wait; returns how many.
    ///
    /// # Errors
    /// As [`PageFlusher::flush_oldest`].
    pub(crate) fn flush_bulk_loaded(&self) -> Result<usize> {
        let frames = self.filled.take(&self.pages);
        if frames.is_empty() { Ok(0) } else { self.flush_frames(&frames, FlushReason::BulkLoad) }
    }

    #[cfg(test)]
    pub(crate) fn bulk_loaded_count(&self) -> usize {
        self.filled.len()
    }

    /// Chooses what is flushed with a page from now on; `Auto`, which is resolved at opening, stands for `Off`.
    pub(crate) fn set_neighbors(&self, mode: FlushNeighbors) {
        self.selection.set_neighbors(mode);
    }

    /// Microseconds that writing a batch took lately, smoothed; 0 when there was none yet.
    pub(crate) fn batch_us(&self, lane: FlushLane) -> u64 {
        self.batches.us(lane)
    }

    /// Batches of pages that became clean so far, modulo 2^32.
    pub(crate) fn cleanings(&self) -> u32 {
        self.cleanings.load(Relaxed)
    }

    /// Whether threads run that flush pages and keep frames free.
    pub(crate) fn threads_run(&self) -> bool {
        self.threads.load(Relaxed)
    }

    pub(crate) fn set_threads(&self, run: bool) {
        self.threads.store(run, Relaxed);
    }
}
