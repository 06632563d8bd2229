//! From a page's number to its frame, and out of the page table again.
//!
//! Rules
//! 1. A frame from the table is a guess: the thread latches it, or notes its version, and compares the page number
//!    *afterwards*. Only then the page cannot leave, or cannot leave unnoticed.
//! 2. A thread waits for the latch of a frame only while the frame has its page. A thread that takes the page out of
//!    the frame wakes it: it releases the latch, or nudges it if the frame stays latched ([`PageTable::forget`]).
//! 3. Nothing here waits for I/O, except that a view waits while a page is read in.
//!
//! `pool_test/lookup_model.rs` checks them for every order of the threads' steps (loom).

use super::frame::{Content, Frame, FrameNo, Frames, NO_PAGE};
use super::page_table::PageTable;
use crate::types::PageNo;

impl Frame {
    /// Shared latch iff the frame is at `version`, at which it held `page`.
    #[inline]
    pub(crate) fn latch_s_at(&self, page: PageNo, version: u64) -> bool {
        if !self.latch.lock_shared_while(|| self.has(page)) {
            return false;
        }
        let same = self.latch.held_version() == version;
        if !same {
            self.latch.unlock_shared();
        }
        same
    }
}

impl PageTable {
    /// The frame of a resident page, and the frame's version at that time; `None` if the page is not resident, or not
    /// merged. Waits while the page is latched exclusively, or is being read.
    #[inline]
    pub(super) fn view(&self, frames: &Frames, page: PageNo) -> Option<(FrameNo, u64)> {
        loop {
            let frame = self.find(frames, page)?;
            let state = frames.get(frame);
            let Some(version) = state.latch.version() else {
                if state.latch.lock_shared_while(|| state.page_no() == page) {
                    state.latch.unlock_shared();
                }
                continue;
            };
            if state.has(page) && state.latch.is_version(version) {
                return Some((frame, version));
            }
            if state.has_only(page, Content::Unmerged) {
                return None;
            }
        }
    }

    /// Shared latch on a page that is resident and whole; the caller releases it.
    #[inline]
    pub(super) fn latch_s(&self, frames: &Frames, page: PageNo) -> Option<FrameNo> {
        loop {
            let frame = self.find(frames, page)?;
            let state = frames.get(frame);
            if state.latch.lock_shared_while(|| state.has(page)) {
                if state.has(page) {
                    return Some(frame);
                }
                state.latch.unlock_shared();
            }
            if state.lacks(page) {
                return None;
            }
        }
    }

    /// Exclusive latch on a page that is resident and whole; the caller releases it.
    #[inline]
    pub(super) fn latch_x(&self, frames: &Frames, page: PageNo) -> Option<FrameNo> {
        loop {
            let frame = self.find(frames, page)?;
            let state = frames.get(frame);
            if state.latch.lock_exclusive_while(|| state.has(page)) {
                if state.has(page) {
                    return Some(frame);
                }
                state.latch.unlock_exclusive(false);
            }
            if state.lacks(page) {
                return None;
            }
        }
    }

    /// Exclusive latch on a page that is resident and not merged; the caller releases it.
    pub(super) fn latch_unmerged(&self, frames: &Frames, page: PageNo) -> Option<FrameNo> {
        let frame = self.find(frames, page)?;
        let state = frames.get(frame);
        let is_unmerged = || state.has_only(page, Content::Unmerged);
        if !state.latch.lock_exclusive_while(is_unmerged) {
            return None;
        }
        if is_unmerged() {
            return Some(frame);
        }
        state.latch.unlock_exclusive(false);
        None
    }

    /// Enters `page` in `frame`, which the caller holds exclusively; the frame that already has the page, if any.
    pub(super) fn enter(&self, frames: &Frames, page: PageNo, frame: FrameNo) -> Option<FrameNo> {
        let lock = self.lock(page);
        let other = self.find_locked(frames, page, &lock);
        if other.is_none() {
            frames.get(frame).set_page_no(page);
            self.insert(frames, frame, &lock);
        }
        other
    }

    /// Takes the page of a frame out of the table; the caller holds the frame exclusively, and continues to.
    pub(super) fn unmap(&self, frames: &Frames, frame: FrameNo) {
        let state = frames.get(frame);
        let lock = self.lock(state.page_no());
        self.remove(frames, frame, &lock);
        state.set_page_no(NO_PAGE);
        state.set_content(Content::Whole);
        drop(lock);
        // A thread that found the frame before may be waiting for its latch, which a free frame never gives: wake it.
        state.latch.nudge();
    }
}
