//! The part of the pool that loads pages: the store and the log that it reads from, and the pending changes of pages
//! that are not resident ([`crate::pool::pending`]).

use crate::error::Result;
use crate::log::Log;
use crate::page::{PageType, header};
use crate::pool::flush::PageFlusher;
use crate::pool::frames::{Content, FrameNo, ResidentPages, SharedPage};
use crate::pool::lru::PageCache;
use crate::pool::pending::PendingChanges;
use crate::pool::supply::FrameSupply;
use crate::stats::{Histogram, LatencySnapshot, Stats};
use crate::store::PageStore;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::poison::Poison;
use crate::sync::sharded::CachePadded;
use crate::types::{IndexId, Lsn, PageNo};
use std::sync::{Arc, OnceLock};

/// The ways of pages into frames.
pub(crate) struct PageLoader {
    pub(super) supply: FrameSupply,
    pending: OnceLock<Arc<dyn PendingChanges>>,
    /// From finding that a page is not resident until it is readable, the wait for a frame included.
    pub(super) page_read: CachePadded<Histogram>,
    pub(super) store: Arc<dyn PageStore>,
    pub(super) log: Arc<Log>,
    pub(super) stats: Arc<Stats>,
    pub(super) poison: Arc<Poison>,
}

impl PageLoader {
    pub(crate) fn new(
        supply: FrameSupply,
        store: Arc<dyn PageStore>,
        log: Arc<Log>,
        stats: Arc<Stats>,
        poison: Arc<Poison>,
    ) -> PageLoader {
        let page_read = CachePadded(Histogram::default());
        PageLoader { supply, pending: OnceLock::new(), page_read, store, log, stats, poison }
    }

    #[inline]
    pub(crate) fn supply(&self) -> &FrameSupply {
        &self.supply
    }

    #[inline]
    pub(crate) fn cache(&self) -> &PageCache {
        self.supply.cache()
    }

    #[inline]
    pub(crate) fn flusher(&self) -> &PageFlusher {
        self.cache().flusher()
    }

    #[inline]
    pub(crate) fn pages(&self) -> &ResidentPages {
        self.cache().pages()
    }

    /// The store that pages come from and go to.
    pub(crate) fn store(&self) -> &Arc<dyn PageStore> {
        &self.store
    }

    /// From finding that a page is not resident until it is readable, the wait for a frame included.
    pub(crate) fn page_read_latency(&self) -> LatencySnapshot {
        self.page_read.snapshot()
    }

    /// Sets the object that the pool asks for pending changes; once, when the database is recovered.
    pub(crate) fn set_pending(&self, pending: Arc<dyn PendingChanges>) {
        assert!(self.pending.set(pending).is_ok(), "one change buffer for a pool");
    }

    /// Smallest LSN a checkpoint may not pass; `None` when nothing is dirty or pending.
    pub(crate) fn oldest_lsn(&self) -> Option<Lsn> {
        // In this order: rule 2 of `crate::pool::pending`.
        let pending = self.pending.get().and_then(|pending| pending.oldest_lsn());
        [pending, self.flusher().oldest_dirty_lsn()].into_iter().flatten().min()
    }

    /// The LSN up to which the log must be durable before a checkpoint at [`PageLoader::oldest_lsn`], which is read
    /// first: rule 3 of `crate::pool::pending`.
    pub(crate) fn carried_lsn(&self) -> Lsn {
        self.pending.get().map_or(Lsn(0), |pending| pending.carried_lsn())
    }

    /// Applies the pending changes of a page that was read into the frame, which the caller holds exclusively; says
    /// what there is of the page then.
    pub(super) fn apply_pending(&self, page: PageNo, frame: FrameNo) -> Result<Content> {
        let Some(pending) = self.pending.get() else { return Ok(Content::Whole) };
        // SAFETY: the caller holds the frame's latch exclusively.
        let bytes = unsafe { self.pages().frames().bytes_mut(frame) };
        if header::page_type(bytes)? != PageType::Leaf {
            return Ok(Content::Whole);
        }
        pending.merge(page, bytes, &mut |lsn| self.flusher().note_changes(std::iter::once(frame), lsn))
    }

    /// Merges the pending changes of an unmerged leaf.
    #[cold]
    pub(super) fn merge_waiting(&self, page: PageNo) -> Result<()> {
        self.pending.get().map_or(Ok(()), |pending| pending.merge_waiting(page))
    }

    /// Marks a leaf of this index, if it is resident, as unmerged: operations that wait for it were found at opening.
    /// No thread uses the pool yet.
    pub(crate) fn mark_unmerged(&self, page: PageNo, index: IndexId) {
        let Some(frame) = self.cache().latch_x(page) else { return };
        // SAFETY: the frame was just latched exclusively.
        let bytes = unsafe { self.pages().frames().bytes(frame) };
        let is_leaf = matches!(header::page_type(bytes), Ok(PageType::Leaf)) && header::owner(bytes) == index.0;
        if is_leaf {
            self.pages().get(frame).set_content(Content::Unmerged);
        }
        self.pages().get(frame).latch.unlock_exclusive(is_leaf);
    }

    /// An unmerged leaf, which the caller has latched exclusively, has everything now.
    pub(crate) fn mark_merged(&self, frame: FrameNo) {
        let state = self.pages().get(frame);
        debug_assert!(state.latch.is_held_exclusively(), "the merged leaf in frame {frame} is not latched");
        debug_assert!(
            state.has_only(state.page_no(), Content::Unmerged),
            "the leaf in frame {frame} was merged before"
        );
        self.pages().get(frame).set_content(Content::Whole);
    }

    /// Shared latch, loading the page if necessary. The caller holds no latch.
    ///
    /// # Errors
    /// As [`PageLoader::load`].
    pub(crate) fn fix_s(&self, page: PageNo) -> Result<SharedPage<'_>> {
        loop {
            if let Some(guard) = self.cache().latch_s(page) {
                return Ok(guard);
            }
            self.load(page)?;
        }
    }

    /// Lets `change` work on the page's bytes under its exclusive latch, without redo; `fresh` pages are not read.
    /// A page that `change` says it changed becomes dirty since `lsn`. For recovery, and for the log's mark in page 0.
    pub(crate) fn change_unlogged(
        &self,
        page: PageNo,
        fresh: bool,
        lsn: Lsn,
        change: impl FnOnce(&mut [u8]) -> Result<bool>,
    ) -> Result<()> {
        let frame = if fresh { self.fresh_frame(page)? } else { self.latched_frame(page)? };
        // SAFETY: both ways to the frame leave this thread with its latch held exclusively, until below.
        let changed = change(unsafe { self.pages().frames().bytes_mut(frame) });
        debug_assert!(lsn > Lsn(0), "a change of page {page} that no checkpoint would wait for");
        if let Ok(true) = changed {
            self.flusher().note_changes(std::iter::once(frame), lsn);
        }
        self.pages().get(frame).latch.unlock_exclusive(true);
        changed.map(drop)
    }

    fn fresh_frame(&self, page: PageNo) -> Result<FrameNo> {
        let mut spare = Vec::with_capacity(1);
        self.supply.take_frames(1, &mut spare)?;
        let frame = self.install(page, spare[0]);
        if frame != spare[0] {
            self.pages().release_frames(spare);
        }
        Ok(frame)
    }

    fn latched_frame(&self, page: PageNo) -> Result<FrameNo> {
        loop {
            if let Some(frame) = self.cache().latch_x(page) {
                return Ok(frame);
            }
            self.load(page)?;
        }
    }

    /// Loads the page if necessary and takes it off the LRU list: it stays until the pool is dropped.
    pub(crate) fn make_resident(&self, page: PageNo) -> Result<()> {
        let frame = self.latched_frame(page)?;
        self.pages().get(frame).kept.store(true, Relaxed);
        self.cache().lru().take_out(self.pages(), frame);
        self.pages().get(frame).latch.unlock_exclusive(false);
        Ok(())
    }
}
