//! The pool's calls for the layers above. Each one calls a method of a part of the pool, whose documentation applies.

use super::buffer_pool::Pool;
use super::flush::FlushReason;
use super::frames::{FrameNo, Frames, OptimisticPage, PageVersion, ParentCheck, SharedPage};
use super::pending::PendingChanges;
use crate::config::FlushNeighbors;
use crate::error::{Error, Result};
use crate::store::PageStore;
use crate::types::{IndexId, Lsn, PageNo};
use std::sync::Arc;

/// Pages that are resident.
impl Pool {
    /// A view of a resident page that takes no latch; `None` if it is not resident, or not merged. Waits while the page
    /// is latched exclusively, or read in: the caller holds no latch.
    #[inline]
    pub(crate) fn optimistic(&self, page: PageNo) -> Option<OptimisticPage<'_>> {
        self.cache().view(page)
    }

    /// A latch-free view of a page iff it is where it was seen, unchanged.
    #[inline]
    pub(crate) fn optimistic_at(&self, seen: PageVersion) -> Option<OptimisticPage<'_>> {
        self.pages().view_at(seen)
    }

    /// Has what every look at a page reads first fetched into the processor's cache, if the page is resident.
    #[inline]
    pub(crate) fn prefetch(&self, page: PageNo) {
        self.pages().prefetch(page);
    }

    /// As [`Pool::prefetch`], and a small page from what `start` says to its end, for a thread that reads all of that.
    #[inline]
    pub(crate) fn prefetch_from(&self, page: PageNo, start: impl Fn(&OptimisticPage<'_>) -> usize) {
        self.pages().prefetch_from(page, start);
    }

    /// Prefetches the slot of a page in the page table, for a lookup that follows soon.
    #[inline]
    pub(crate) fn prefetch_table_slot(&self, page: PageNo) {
        self.pages().prefetch_table_slot(page);
    }

    /// Whether the page is resident, merged or not, or being read in.
    #[inline]
    pub(crate) fn is_resident(&self, page: PageNo) -> bool {
        self.pages().find(page).is_some()
    }

    /// Shared latch, loading the page if necessary. The caller holds no latch.
    ///
    /// # Errors
    /// As [`Pool::load`].
    pub(crate) fn fix_s(&self, page: PageNo) -> Result<SharedPage<'_>> {
        self.loader().fix_s(page)
    }

    /// Shared latch if the page is resident and whole, waiting for the latch only.
    #[inline]
    pub(crate) fn try_fix_s(&self, page: PageNo) -> Option<SharedPage<'_>> {
        self.cache().latch_s(page)
    }

    /// Shared latch iff the page is where it was seen, unchanged.
    pub(crate) fn fix_s_if(&self, seen: PageVersion) -> Option<SharedPage<'_>> {
        self.cache().latch_s_at(seen)
    }

    /// Exclusive latch on a page that is resident and whole, waiting for the latch only; else `None`. The caller
    /// releases the latch.
    #[inline]
    pub(crate) fn try_latch_x(&self, page: PageNo) -> Option<FrameNo> {
        self.cache().latch_x(page)
    }

    /// Exclusive latch on a page that is resident and not merged, waiting for the latch only; else `None`. The caller
    /// releases the latch.
    pub(crate) fn try_latch_unmerged(&self, page: PageNo) -> Option<FrameNo> {
        self.pages().latch_unmerged(page)
    }

    /// Exclusive latch on the page of `view` iff it is unchanged.
    #[inline]
    pub(crate) fn upgrade(&self, view: OptimisticPage<'_>) -> Option<FrameNo> {
        self.pages().upgrade(view)
    }

    /// Shared latch on the page of `view` iff it is unchanged.
    #[inline]
    pub(crate) fn latch_s(&self, view: OptimisticPage<'_>) -> Option<SharedPage<'_>> {
        self.pages().latch_s_at(view.page_version())
    }

    /// Eight bytes of a page as they are now, without a latch and without waiting; `None` if the page is not resident
    /// and whole. A thread may be changing them.
    pub(crate) fn peek_u64(&self, page: PageNo, offset: usize) -> Option<u64> {
        self.pages().peek_u64(page, offset)
    }

    /// The frames themselves, for mini-transactions.
    #[inline]
    pub(crate) fn frames(&self) -> &Frames {
        self.pages().frames()
    }

    /// Keeps a resident page from being evicted until [`Pool::unpin`], waiting for its latch only; `None` if it is not
    /// resident.
    pub(crate) fn pin(&self, page: PageNo) -> Option<FrameNo> {
        self.cache().pin(page)
    }

    /// Ends one [`Pool::pin`].
    pub(crate) fn unpin(&self, frame: FrameNo) {
        self.cache().unpin(frame);
    }

    /// Whether the page in a frame, which is latched, was compared with this parent.
    #[inline(always)]
    pub(crate) fn is_known_child(&self, parent: &OptimisticPage<'_>, child: FrameNo) -> bool {
        self.pages().is_known_child(parent, child)
    }

    /// The mark of the frame's page after its comparison with this parent. Computed before the pages that are not
    /// latched are validated.
    pub(crate) fn parent_check(&self, parent: &OptimisticPage<'_>, child: FrameNo) -> ParentCheck {
        self.pages().parent_check(parent, child)
    }

    /// Notes that the page that was in a frame then is that child; does nothing if the page has left the frame.
    pub(crate) fn note_checked_child(&self, child: FrameNo, parent_check: ParentCheck) {
        self.pages().note_checked_child(child, parent_check);
    }
}

/// Reads and creation of pages, and frames.
impl Pool {
    /// Reads the page into the pool if it is not there, or waits while another thread does; merges its pending changes.
    /// The caller holds no latch and no redo space.
    ///
    /// # Errors
    /// [`Error::CorruptPage`], an I/O error, [`Error::PoolExhausted`].
    pub(crate) fn load(&self, page: PageNo) -> Result<()> {
        self.loader().load(page)
    }

    /// Reads the page as [`Pool::load`] does. If it cannot be read, or its pending changes do not fit, `lose` may
    /// replace its bytes by those of a lost page; `lost` is called when that is durable.
    ///
    /// # Errors
    /// As [`Pool::load`], also when the page was lost; a failed write.
    pub(crate) fn load_or_lose(
        &self,
        page: PageNo,
        lose: impl FnOnce(&Error, &mut [u8]) -> bool,
        lost: impl FnOnce(),
    ) -> Result<()> {
        self.loader().load_or_lose(page, lose, lost)
    }

    /// Takes a clean page out of the pool, if it is there. For recovery: no other thread uses the pool.
    pub(crate) fn drop_clean(&self, page: PageNo) {
        self.loader().drop_clean(page);
    }

    /// A frame for a page just allocated, latched exclusively, contents undefined. Uses `spare` (held exclusively)
    /// unless the page is still resident from before it was freed; returns the frame used.
    pub(crate) fn install(&self, page: PageNo, spare: FrameNo) -> FrameNo {
        self.loader().install(page, spare)
    }

    /// Lets `change` work on the page's bytes under its exclusive latch, without redo; `fresh` pages are not read.
    /// A page that `change` says it changed becomes dirty since `lsn`. For recovery, and for the log's mark in page 0.
    ///
    /// # Errors
    /// As [`Pool::load`]; an error of `change`.
    pub(crate) fn change_unlogged(
        &self,
        page: PageNo,
        fresh: bool,
        lsn: Lsn,
        change: impl FnOnce(&mut [u8]) -> Result<bool>,
    ) -> Result<()> {
        self.loader().change_unlogged(page, fresh, lsn, change)
    }

    /// Loads the page if necessary and takes it off the LRU list: it stays until the pool is dropped.
    ///
    /// # Errors
    /// As [`Pool::load`].
    pub(crate) fn make_resident(&self, page: PageNo) -> Result<()> {
        self.loader().make_resident(page)
    }

    /// Sets the object that the pool asks for pending changes; once, when the database is recovered.
    pub(crate) fn set_pending(&self, pending: Arc<dyn PendingChanges>) {
        self.loader().set_pending(pending);
    }

    /// Marks a leaf of this index, if it is resident, as unmerged: operations that wait for it were found at opening.
    /// No thread uses the pool yet.
    pub(crate) fn mark_unmerged(&self, page: PageNo, index: IndexId) {
        self.loader().mark_unmerged(page, index);
    }

    /// An unmerged leaf, which the caller has latched exclusively, has everything now.
    pub(crate) fn mark_merged(&self, frame: FrameNo) {
        self.loader().mark_merged(frame);
    }

    /// The store that its pages come from and go to.
    pub(crate) fn store(&self) -> &Arc<dyn PageStore> {
        self.loader().store()
    }

    /// Takes `count` free frames (all or none), making some if there are none.
    ///
    /// # Errors
    /// [`Error::PoolExhausted`] when nothing could be freed for a long time; an I/O or poison error.
    pub(crate) fn take_frames(&self, count: usize, out: &mut Vec<FrameNo>) -> Result<()> {
        self.loader().supply().take_frames(count, out)
    }

    /// As [`Pool::take_frames`], for who needs no frames but as much memory less in the pool: theirs goes back to the
    /// system until [`Pool::return_frames`].
    ///
    /// # Errors
    /// As there.
    pub(crate) fn reserve_frames(&self, count: usize, out: &mut Vec<FrameNo>) -> Result<()> {
        self.loader().supply().reserve_frames(count, out)
    }

    /// Releases frames that were reserved.
    pub(crate) fn return_frames(&self, frames: impl ExactSizeIterator<Item = FrameNo>) {
        self.loader().supply().return_frames(frames);
    }

    /// Gives unused frames back.
    pub(crate) fn release_frames(&self, frames: impl IntoIterator<Item = FrameNo>) {
        self.pages().release_frames(frames);
    }

    /// Changes how many frames are in use. The caller holds no latch.
    ///
    /// # Errors
    /// [`Error::BadOption`] for more than there are, or too few; [`Error::PoolExhausted`] if too few come free: the
    /// pool is as it was then. An I/O error.
    pub(crate) fn resize(&self, frames: usize) -> Result<()> {
        self.loader().supply().resize(frames)
    }

    #[inline]
    pub(crate) fn page_bytes(&self) -> usize {
        self.pages().frames().page_bytes()
    }

    /// Frames in use: all but the withdrawn ones.
    pub(crate) fn frame_count(&self) -> usize {
        self.pages().frame_count()
    }

    /// Frames on the free list.
    pub(crate) fn free_count(&self) -> usize {
        self.pages().free().len()
    }

    /// Frames on the LRU list.
    pub(crate) fn lru_count(&self) -> usize {
        self.cache().lru().len()
    }

    /// Pages looked at from the tail of the LRU list: the option, within what a pool of this size allows.
    pub(crate) fn lru_scan_depth(&self) -> usize {
        self.cache().lru().scan_depth()
    }
}

/// Dirty pages.
impl Pool {
    /// Smallest LSN a checkpoint may not pass; `None` when nothing is dirty or pending.
    pub(crate) fn oldest_lsn(&self) -> Option<Lsn> {
        self.loader().oldest_lsn()
    }

    /// The LSN up to which the log has to be durable before a checkpoint at [`Pool::oldest_lsn`]; the caller reads
    /// `oldest_lsn` first.
    pub(crate) fn carried_lsn(&self) -> Lsn {
        self.loader().carried_lsn()
    }

    /// As [`Pool::oldest_lsn`], of dirty pages alone.
    pub(crate) fn oldest_dirty_lsn(&self) -> Option<Lsn> {
        self.flusher().oldest_dirty_lsn()
    }

    pub(crate) fn dirty_count(&self) -> usize {
        self.flusher().dirty_count()
    }

    /// Whether the page is resident with bytes that differ from the store's.
    pub(crate) fn is_dirty(&self, page_no: PageNo) -> bool {
        self.pages().is_dirty(page_no)
    }

    /// Notes in the flush list that the mini-transaction starting at `lsn` changed these frames, which the caller holds
    /// exclusively. Called in log order.
    #[inline]
    pub(crate) fn note_changes(&self, changed: impl Iterator<Item = FrameNo> + Clone, lsn: Lsn) {
        self.flusher().note_changes(changed, lsn);
    }

    /// Flushes up to `limit` of the oldest pages whose first change is before `before`, and their neighbors; returns
    /// how many. The caller holds no latch.
    ///
    /// # Errors
    /// An I/O or poison error.
    pub(crate) fn flush_oldest(&self, before: Lsn, limit: usize, reason: FlushReason) -> Result<usize> {
        self.flusher().flush_oldest(before, limit, reason)
    }

    /// Flushes every dirty page (close, recovery, tests). Pages changed meanwhile by others may stay dirty.
    ///
    /// # Errors
    /// An I/O or poison error.
    pub(crate) fn flush_all(&self) -> Result<()> {
        self.flusher().flush_all()
    }

    /// Flushes every page whose first change is before `before`. It ends however many pages others change meanwhile.
    ///
    /// # Errors
    /// An I/O or poison error.
    pub(crate) fn flush_before(&self, before: Lsn) -> Result<()> {
        self.flusher().flush_before(before)
    }

    /// Chooses what is flushed with a page from now on; `Auto`, which is resolved at opening, stands for `Off`.
    pub(crate) fn set_flush_neighbors(&self, mode: FlushNeighbors) {
        self.flusher().set_neighbors(mode);
    }
}

/// Calls for tests and models.
#[cfg(any(test, shuttle))]
impl Pool {
    /// Evicts every clean page.
    pub(crate) fn evict_all_clean(&self) -> usize {
        self.cache().evict(usize::MAX, usize::MAX, false)
    }

    /// Flushes those of `frames` that are dirty and not latched exclusively right now, and their neighbors; returns how
    /// many.
    pub(crate) fn flush_frames(&self, frames: &[FrameNo], reason: FlushReason) -> Result<usize> {
        self.flusher().flush_frames(frames, reason)
    }

    /// Up to `want` dirty frames among the last `depth` of the LRU list, least recently used first.
    #[cfg(shuttle)]
    pub(crate) fn dirty_tail(&self, depth: usize, want: usize) -> Vec<FrameNo> {
        self.cache().dirty_tail(depth, want)
    }

    /// The frame of a resident page.
    #[cfg(test)]
    pub(crate) fn frame_of(&self, page_no: PageNo) -> Option<FrameNo> {
        self.pages().find(page_no)
    }

    /// LSN of a resident page, if it is resident.
    #[cfg(test)]
    pub(crate) fn resident_lsn(&self, page_no: PageNo) -> Option<Lsn> {
        self.try_fix_s(page_no).map(|guard| crate::page::header::lsn(&guard))
    }

    /// Changes how long `take_frames` looks before it gives up.
    #[cfg(test)]
    pub(crate) fn set_free_frame_timeout_ms(&self, free_frame_timeout_ms: u64) {
        self.loader().supply().set_free_frame_timeout_ms(free_frame_timeout_ms);
    }
}
