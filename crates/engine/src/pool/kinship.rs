//! Which tree pages have been compared with their parents since they were read in.
//!
//! A page on disk may be an older version of itself (a write that the device lost, a restored block): its checksum is right, but
//! its fences need not be what its parent says. So a descent compares each page with its parent, once: whether that has
//! been done, is a number in the frame.
//!
//! Rules
//! 1. A page read in is known as nobody's child. One made in memory is right by itself: it is only unknown whose child it is.
//! 2. The number stands for the arrivals of both pages: a parent that was evicted and read again knows none of its children.
//! 3. It is a memory of a comparison that was made, not of what is true now: pages in memory change together, by
//!    mini-transactions that latch both.

use super::frame::{Frame, FrameNo};
use super::{OptimisticPage, Pool};
use std::sync::atomic::Ordering::Relaxed;

/// Known to be right, but not as whose child; no mark is even.
const MADE_HERE: u32 = 2;

/// The mark of a child that was compared with this parent.
#[inline(always)]
fn mark(parent: &Frame, child: &Frame) -> u32 {
    (parent.arrival.load(Relaxed).wrapping_mul(0x9E37_79B1) ^ child.arrival.load(Relaxed)) | 1
}

impl Pool {
    /// Numbers the arrival of a page in a frame, which the caller holds exclusively.
    pub(super) fn note_arrival(&self, frame: FrameNo, read_in: bool) {
        let state = self.frames.get(frame);
        state.arrival.store(self.arrivals.fetch_add(1, Relaxed), Relaxed);
        state.known_child_of.store(if read_in { 0 } else { MADE_HERE }, Relaxed);
    }

    /// Whether the page in a frame, which is latched, was compared with this parent.
    #[inline(always)]
    pub(crate) fn is_known_child(&self, parent: &OptimisticPage<'_>, child: FrameNo) -> bool {
        let child = self.frames.get(child);
        child.known_child_of.load(Relaxed) == mark(parent.frame_state(), child)
    }

    /// Notes that the page in a frame was compared with this parent.
    pub(crate) fn note_child(&self, parent: &OptimisticPage<'_>, child: FrameNo) {
        let child = self.frames.get(child);
        child.known_child_of.store(mark(parent.frame_state(), child), Relaxed);
    }
}

impl OptimisticPage<'_> {
    /// Whether the page was compared with this parent.
    #[inline(always)]
    pub(crate) fn is_known_child_of(&self, parent: &OptimisticPage<'_>) -> bool {
        self.frame_state().known_child_of.load(Relaxed) == mark(parent.frame_state(), self.frame_state())
    }

    /// Whether the page was compared with some parent since it was read in.
    #[inline(always)]
    pub(crate) fn is_known_child(&self) -> bool {
        self.frame_state().known_child_of.load(Relaxed) != 0
    }
}
