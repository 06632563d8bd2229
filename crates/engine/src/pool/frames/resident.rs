//! The resident pages: frames, the page table that leads to them, the free list.
//!
//! Rules
//! 1. A lookup here takes no note of the use of a page; the layer above ([`crate::pool::lru`]) does.
//! 2. A page enters and leaves the page table under the exclusive latch of its frame.

use super::frame::{Frame, FrameNo, Frames, no_memory};
use super::free_list::FreeList;
use super::guard::{PageVersion, SharedPage};
use super::optimistic::OptimisticPage;
use super::page_table::PageTable;
use crate::error::Result;
use crate::page::PageBytes;
use crate::sync::atomic::{
    AtomicU32, AtomicUsize,
    Ordering::{Acquire, Relaxed},
    fence,
};
use crate::sync::sharded::CachePadded;
use crate::types::PageNo;

/// The resident pages with their frames, and the free frames.
pub(crate) struct ResidentPages {
    frames: Frames,
    table: PageTable,
    free: CachePadded<FreeList>,
    /// Pages that arrived in frames so far.
    arrivals: CachePadded<AtomicU32>,
    /// Frames in use: all but the withdrawn ones.
    in_use: AtomicUsize,
}

impl ResidentPages {
    /// `count` free frames of `page_bytes` each.
    ///
    /// # Errors
    /// The system has no memory for them.
    pub(crate) fn new(count: usize, page_bytes: usize) -> Result<ResidentPages> {
        Ok(ResidentPages {
            frames: Frames::new(count, page_bytes)?,
            table: PageTable::new(count).map_err(|_| no_memory(count))?,
            free: CachePadded(FreeList::new(count)),
            arrivals: CachePadded(AtomicU32::new(0)),
            in_use: AtomicUsize::new(count),
        })
    }

    #[inline]
    pub(crate) fn frames(&self) -> &Frames {
        &self.frames
    }

    /// The state of a frame.
    #[inline]
    pub(crate) fn get(&self, frame: FrameNo) -> &Frame {
        self.frames.get(frame)
    }

    pub(crate) fn free(&self) -> &FreeList {
        &self.free
    }

    /// Frames in use.
    #[inline]
    pub(crate) fn frame_count(&self) -> usize {
        self.in_use.load(Relaxed)
    }

    /// Notes how many frames are in use.
    pub(crate) fn set_frame_count(&self, frames: usize) {
        self.in_use.store(frames, Relaxed);
    }

    /// Gives unused frames back.
    pub(crate) fn release_frames(&self, frames: impl IntoIterator<Item = FrameNo>) {
        self.free.put(frames.into_iter().inspect(|frame| self.frames.check_free(*frame)));
    }

    /// Pages that arrived so far, modulo 2^32.
    pub(crate) fn arrivals(&self) -> u32 {
        self.arrivals.load(Relaxed)
    }

    /// The number of the next arrival.
    pub(super) fn next_arrival(&self) -> u32 {
        self.arrivals.fetch_add(1, Relaxed)
    }

    /// The frame that holds the page, or held it a moment ago; `None` = the page is not resident.
    #[inline]
    pub(crate) fn find(&self, page: PageNo) -> Option<FrameNo> {
        self.table.find(&self.frames, page)
    }

    /// The frame that probably holds the page; `None` proves nothing.
    pub(crate) fn peek(&self, page: PageNo) -> Option<FrameNo> {
        self.table.peek(&self.frames, page)
    }

    /// Whether the page is resident with bytes that differ from the store's.
    pub(crate) fn is_dirty(&self, page: PageNo) -> bool {
        self.find(page).is_some_and(|frame| self.get(frame).oldest_lsn().is_some())
    }

    /// A view of a resident page that takes no latch; `None` if it is not resident, or not merged. Waits while the page
    /// is latched exclusively, or read in: the caller holds no latch.
    #[inline]
    pub(crate) fn view(&self, page: PageNo) -> Option<OptimisticPage<'_>> {
        let (frame, version) = self.table.view(&self.frames, page)?;
        Some(OptimisticPage::new(&self.frames, frame, page, version))
    }

    /// A latch-free view of a page iff it is where it was seen, unchanged.
    #[inline]
    pub(crate) fn view_at(&self, seen: PageVersion) -> Option<OptimisticPage<'_>> {
        let view = OptimisticPage::new(&self.frames, seen.frame, seen.page_no, seen.version);
        view.validate().then_some(view)
    }

    /// Has what every look at a page reads first fetched into the processor's cache, if the page is resident: the state
    /// of its frame, its header and first slots, and its fences. It waits for none of them: the frame of the page is a
    /// guess, nearly always right.
    #[inline]
    pub(crate) fn prefetch(&self, page: PageNo) {
        if let Some(view) = self.lookup_unlatched(page) {
            view.prefetch();
        }
    }

    /// As [`ResidentPages::prefetch`], and a small page from what `start` says to its end, for a thread that reads all
    /// of that.
    #[inline]
    pub(crate) fn prefetch_from(&self, page: PageNo, start: impl Fn(&OptimisticPage<'_>) -> usize) {
        if let Some(view) = self.lookup_unlatched(page) {
            view.prefetch();
            view.prefetch_from(start(&view));
        }
    }

    /// Prefetches the slot of a page in the page table, for a lookup that follows soon.
    #[inline]
    pub(crate) fn prefetch_table_slot(&self, page: PageNo) {
        self.table.prefetch(page);
    }

    /// A view that is good for nothing but fetching.
    #[inline]
    fn lookup_unlatched(&self, page: PageNo) -> Option<OptimisticPage<'_>> {
        self.table.lookup_unlatched(page).map(|frame| OptimisticPage::new(&self.frames, frame, page, 0))
    }

    /// Shared latch if the page is resident and whole, waiting for the latch only.
    #[inline]
    pub(crate) fn latch_s(&self, page: PageNo) -> Option<SharedPage<'_>> {
        let frame = self.table.latch_s(&self.frames, page)?;
        Some(SharedPage::adopt(&self.frames, frame))
    }

    /// Shared latch on a page iff it is where it was seen, unchanged.
    #[inline]
    pub(crate) fn latch_s_at(&self, seen: PageVersion) -> Option<SharedPage<'_>> {
        let state = self.frames.get(seen.frame);
        state.latch_s_at(seen.page_no, seen.version).then(|| {
            debug_assert!(state.has(seen.page_no), "frame {} had another page at the same version", seen.frame);
            SharedPage::adopt(&self.frames, seen.frame)
        })
    }

    /// Exclusive latch on a page that is resident and whole, waiting for the latch only; else `None`. The caller
    /// releases the latch.
    #[inline]
    pub(crate) fn latch_x(&self, page: PageNo) -> Option<FrameNo> {
        self.table.latch_x(&self.frames, page)
    }

    /// Exclusive latch on a page that is resident and not merged, waiting for the latch only; else `None`. The caller
    /// releases the latch.
    pub(crate) fn latch_unmerged(&self, page: PageNo) -> Option<FrameNo> {
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

    /// Eight bytes of a page as they are now, without a latch and without waiting; `None` if the page is not resident
    /// and whole. A thread may be changing them.
    pub(crate) fn peek_u64(&self, page: PageNo, offset: usize) -> Option<u64> {
        let frame = self.find(page)?;
        let state = self.frames.get(frame);
        if !state.has(page) {
            return None;
        }
        let word = OptimisticPage::new(&self.frames, frame, page, 0).u64_at(offset);
        // The bytes are read before the page number is compared: if they were another page's, the number shows it.
        fence(Acquire);
        state.has(page).then_some(word)
    }

    /// Enters `page` into the page table in `frame` (held exclusively); the frame that already has it, if any.
    pub(crate) fn enter(&self, page: PageNo, frame: FrameNo) -> Option<FrameNo> {
        let other = self.table.enter(&self.frames, page, frame);
        if other.is_none() {
            self.frames.get(frame).first_access_ms.store(0, Relaxed);
        }
        other
    }

    /// Takes the page out of the page table; the caller holds its frame exclusively.
    pub(crate) fn unmap(&self, frame: FrameNo) {
        let state = self.frames.get(frame);
        debug_assert!(state.latch.is_held_exclusively(), "the page of frame {frame} leaves while others latch it");
        debug_assert_eq!(state.oldest_lsn(), None, "the page of frame {frame} leaves with changes");
        debug_assert_eq!(state.pins.load(Relaxed), 0, "the page of frame {frame} leaves although it is pinned");
        self.table.unmap(&self.frames, frame);
    }

    /// Whether two pages are in one chain of the page table.
    #[cfg(test)]
    pub(crate) fn is_same_chain(&self, page: PageNo, other: PageNo) -> bool {
        self.table.is_same_chain(page, other)
    }
}
