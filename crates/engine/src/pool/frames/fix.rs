//! Reaching a resident page: latched shared or exclusively, by a latch-free view, or pinned.

use super::{FrameNo, Frames, NO_PAGE, OptimisticPage, PageVersion, SharedPage};
use crate::error::Result;
use crate::page::PageBytes;
use crate::pool::Pool;
use crate::sync::atomic::{Ordering::Acquire, Ordering::Relaxed, fence};
use crate::types::PageNo;

impl Pool {
    /// A view of a resident page that takes no latch; `None` if it is not resident, or not merged. Waits while the page
    /// is latched exclusively, or read in: the caller holds no latch.
    #[inline]
    pub fn optimistic(&self, page: PageNo) -> Option<OptimisticPage<'_>> {
        let (frame, version) = self.table.view(&self.frames, page)?;
        self.promote(frame);
        Some(OptimisticPage::new(&self.frames, frame, page, version))
    }

    /// A latch-free view of a page iff it is where it was seen, unchanged.
    #[inline]
    pub fn optimistic_at(&self, seen: PageVersion) -> Option<OptimisticPage<'_>> {
        let view = OptimisticPage::new(&self.frames, seen.frame, seen.page_no, seen.version);
        view.validate().then_some(view)
    }

    /// Has what every look at a page reads first fetched into the processor's cache, if the page is resident: the state
    /// of its frame, its header and first slots, and its fences. It waits for none of them: where the page lies is a
    /// guess, nearly always right.
    #[inline]
    pub fn prefetch(&self, page: PageNo) {
        if let Some(view) = self.lookup_unlatched(page) {
            view.prefetch();
        }
    }

    /// As [`Pool::prefetch`], and a small page from what `start` says to its end, for a thread that reads all of that.
    #[inline]
    pub fn prefetch_from(&self, page: PageNo, start: impl Fn(&OptimisticPage<'_>) -> usize) {
        if let Some(view) = self.lookup_unlatched(page) {
            view.prefetch();
            view.prefetch_from(start(&view));
        }
    }

    /// Has the place in the page table that leads to a page fetched, for who will ask for the page a little later.
    #[inline]
    pub fn prefetch_table_slot(&self, page: PageNo) {
        self.table.prefetch(page);
    }

    /// A view that is good for nothing but fetching.
    #[inline]
    fn lookup_unlatched(&self, page: PageNo) -> Option<OptimisticPage<'_>> {
        self.table.lookup_unlatched(page).map(|frame| OptimisticPage::new(&self.frames, frame, page, 0))
    }

    /// Whether the page is resident, merged or not, or being read in.
    #[inline]
    pub fn is_resident(&self, page: PageNo) -> bool {
        self.table.find(&self.frames, page).is_some()
    }

    /// Shared latch, loading the page if need be. The caller holds no latch.
    pub fn fix_s(&self, page: PageNo) -> Result<SharedPage<'_>> {
        loop {
            if let Some(guard) = self.try_fix_s(page) {
                return Ok(guard);
            }
            self.load(page)?;
        }
    }

    /// Shared latch if the page is resident and whole, waiting for the latch only.
    #[inline]
    pub fn try_fix_s(&self, page: PageNo) -> Option<SharedPage<'_>> {
        let frame = self.table.latch_s(&self.frames, page)?;
        self.promote(frame);
        Some(SharedPage::adopt(self, frame))
    }

    /// Shared latch iff the page is where it was seen, unchanged.
    pub fn fix_s_if(&self, seen: PageVersion) -> Option<SharedPage<'_>> {
        let guard = self.latch_s_at(seen.frame, seen.page_no, seen.version)?;
        self.promote(seen.frame);
        Some(guard)
    }

    /// Shared latch on a frame iff it is at `version`, at which it held `page`.
    #[inline]
    fn latch_s_at(&self, frame: FrameNo, page: PageNo, version: u64) -> Option<SharedPage<'_>> {
        self.frames.get(frame).latch_s_at(page, version).then(|| {
            debug_assert!(self.frames.get(frame).has(page), "frame {frame} had another page at the same version");
            SharedPage::adopt(self, frame)
        })
    }

    /// Exclusive latch on a page that is resident and whole, waiting for the latch only; else `None`. The caller
    /// releases the latch.
    #[inline]
    pub(crate) fn try_latch_x(&self, page: PageNo) -> Option<FrameNo> {
        let frame = self.table.latch_x(&self.frames, page)?;
        self.promote(frame);
        Some(frame)
    }

    /// Exclusive latch on a page that is resident and not merged, waiting for the latch only; else `None`. The caller
    /// releases the latch.
    pub(crate) fn try_latch_unmerged(&self, page: PageNo) -> Option<FrameNo> {
        self.table.latch_unmerged(&self.frames, page)
    }

    /// Exclusive latch on the page of `view` iff it is unchanged.
    #[inline]
    pub(crate) fn upgrade(&self, view: OptimisticPage<'_>) -> Option<FrameNo> {
        let state = self.frames.get(view.frame);
        let still = || state.has(view.page_no());
        let is_latched = state.latch.lock_exclusive_if(view.version, still);
        debug_assert!(!is_latched || still(), "frame {} had another page at the same version", view.frame);
        is_latched.then_some(view.frame)
    }

    /// Shared latch on the page of `view` iff it is unchanged.
    #[inline]
    pub fn latch_s(&self, view: OptimisticPage<'_>) -> Option<SharedPage<'_>> {
        self.latch_s_at(view.frame, view.page_no(), view.version)
    }

    /// Eight bytes of a page as they are now, without a latch and without waiting; `None` if the page is not resident
    /// and whole. A thread may be changing them.
    pub(crate) fn peek_u64(&self, page: PageNo, offset: usize) -> Option<u64> {
        let frame = self.table.find(&self.frames, page)?;
        let state = self.frames.get(frame);
        if !state.has(page) {
            return None;
        }
        let word = OptimisticPage::new(&self.frames, frame, page, 0).u64_at(offset);
        // The bytes are read before the page number is compared: if they were another page's, the number shows it.
        fence(Acquire);
        state.has(page).then_some(word)
    }

    /// The frames themselves, for mini-transactions.
    #[inline]
    pub(crate) fn frames(&self) -> &Frames {
        &self.frames
    }

    /// Keeps a resident page from being evicted until [`Pool::unpin`], waiting for its latch only; `None` if it is not
    /// resident.
    pub(crate) fn pin(&self, page: PageNo) -> Option<FrameNo> {
        let guard = self.try_fix_s(page)?;
        let frame = guard.version().frame;
        self.frames.get(frame).pins.fetch_add(1, Relaxed);
        Some(frame)
    }

    /// Ends one [`Pool::pin`].
    pub(crate) fn unpin(&self, frame: FrameNo) {
        // Changes of the page are ordered by its latch; the count orders nothing.
        let before = self.frames.get(frame).pins.fetch_sub(1, Relaxed);
        debug_assert!(before > 0, "frame {frame} is unpinned more often than pinned");
        debug_assert_ne!(self.frames.get(frame).page_no(), NO_PAGE, "the page of the pinned frame {frame} has left");
    }

    /// The frame of a resident page.
    #[cfg(test)]
    pub(crate) fn frame_of(&self, page_no: PageNo) -> Option<FrameNo> {
        self.table.find(&self.frames, page_no)
    }

    /// LSN of a resident page, if it is resident.
    #[cfg(test)]
    pub fn resident_lsn(&self, page_no: PageNo) -> Option<crate::types::Lsn> {
        self.try_fix_s(page_no).map(|guard| crate::page::header::lsn(&guard))
    }
}
