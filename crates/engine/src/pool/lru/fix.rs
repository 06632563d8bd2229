//! Reaching a resident page: latched shared or exclusively, by a latch-free view, or pinned. Each counts as a use of
//! the page.

use super::cache::PageCache;
use crate::pool::frames::{FrameNo, NO_PAGE, OptimisticPage, PageVersion, SharedPage};
use crate::sync::atomic::Ordering::Relaxed;
use crate::types::PageNo;

impl PageCache {
    /// A view of a resident page that takes no latch; `None` if it is not resident, or not merged. Waits while the page
    /// is latched exclusively, or read in: the caller holds no latch.
    #[inline]
    pub(crate) fn view(&self, page: PageNo) -> Option<OptimisticPage<'_>> {
        let view = self.pages().view(page)?;
        self.promote(view.frame());
        Some(view)
    }

    /// Shared latch if the page is resident and whole, waiting for the latch only.
    #[inline]
    pub(crate) fn latch_s(&self, page: PageNo) -> Option<SharedPage<'_>> {
        let guard = self.pages().latch_s(page)?;
        self.promote(guard.frame());
        Some(guard)
    }

    /// Shared latch iff the page is where it was seen, unchanged.
    pub(crate) fn latch_s_at(&self, seen: PageVersion) -> Option<SharedPage<'_>> {
        let guard = self.pages().latch_s_at(seen)?;
        self.promote(guard.frame());
        Some(guard)
    }

    /// Exclusive latch on a page that is resident and whole, waiting for the latch only; else `None`. The caller
    /// releases the latch.
    #[inline]
    pub(crate) fn latch_x(&self, page: PageNo) -> Option<FrameNo> {
        let frame = self.pages().latch_x(page)?;
        self.promote(frame);
        Some(frame)
    }

    #[inline]
    fn promote(&self, frame: FrameNo) {
        self.lru().promote(self.pages(), frame);
    }

    /// Keeps a resident page from being evicted until [`PageCache::unpin`], waiting for its latch only; `None` if it is
    /// not resident.
    pub(crate) fn pin(&self, page: PageNo) -> Option<FrameNo> {
        let guard = self.latch_s(page)?;
        let frame = guard.frame();
        self.pages().get(frame).pins.fetch_add(1, Relaxed);
        Some(frame)
    }

    /// Ends one [`PageCache::pin`].
    pub(crate) fn unpin(&self, frame: FrameNo) {
        let state = self.pages().get(frame);
        // Changes of the page are ordered by its latch; the count orders nothing.
        let before = state.pins.fetch_sub(1, Relaxed);
        debug_assert!(before > 0, "frame {frame} is unpinned more often than pinned");
        debug_assert_ne!(state.page_no(), NO_PAGE, "the page of the pinned frame {frame} has left");
    }
}
