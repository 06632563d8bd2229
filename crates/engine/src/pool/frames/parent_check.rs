//! The marks of tree pages that were compared with their parents since they were read in.
//!
//! A page on disk may be an older version of itself (a write that the device lost, a restored block): its checksum is
//! right, but its fences may differ from the separators of its parent. So a descent compares each page with its parent,
//! once. A number in the frame records the comparison.
//!
//! Rules
//! 1. A page that was just read is not compared. A page created in memory needs no comparison; its parent is not
//!    recorded yet.
//! 2. The number is computed from the arrivals of both pages: after a parent was evicted and read again, all its
//!    children are compared again. Before a comparison it is computed from the child's arrival. The result of a
//!    comparison is computed before both pages are validated, and replaces only the number that was found then: a page
//!    that entered the frame later does not count as compared.
//! 3. The number records that the comparison was made once. It stays true, because a mini-transaction that changes
//!    fences or separators latches both pages.

use super::frame::{Frame, FrameNo};
use super::optimistic::OptimisticPage;
use super::resident::ResidentPages;
use crate::sync::atomic::Ordering::Relaxed;

/// The page was created in the pool: it needs no comparison, and its parent is not noted. (Other marks are odd.)
const MADE_HERE: u32 = 2;
/// The bits that are 0 only while a page needs its first comparison.
const IS_KNOWN: u32 = 3;

/// A child's number before and after a comparison.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParentCheck {
    before: u32,
    compared: u32,
}

/// The number of a page that was not compared.
fn unknown(arrival: u32) -> u32 {
    arrival << 2
}

/// The mark of a child that was compared with this parent.
#[inline(always)]
fn mark(parent: &Frame, child: &Frame) -> u32 {
    (parent.arrival.load(Relaxed).wrapping_mul(0x9E37_79B1) ^ child.arrival.load(Relaxed)) | 1
}

impl ResidentPages {
    /// Numbers the arrival of a page in a frame, which the caller holds exclusively.
    pub(crate) fn note_arrival(&self, frame: FrameNo, read_in: bool) {
        let state = self.get(frame);
        let arrival = self.next_arrival();
        state.arrival.store(arrival, Relaxed);
        state.known_child_of.store(unknown(arrival) | if read_in { 0 } else { MADE_HERE }, Relaxed);
    }

    /// Whether the page in a frame, which is latched, was compared with this parent.
    #[inline(always)]
    pub(crate) fn is_known_child(&self, parent: &OptimisticPage<'_>, child: FrameNo) -> bool {
        let child = self.get(child);
        child.known_child_of.load(Relaxed) == mark(parent.frame_state(), child)
    }

    /// The mark of the frame's page after its comparison with this parent. Computed before the pages that are not
    /// latched are validated.
    pub(crate) fn parent_check(&self, parent: &OptimisticPage<'_>, child: FrameNo) -> ParentCheck {
        let child = self.get(child);
        ParentCheck { before: child.known_child_of.load(Relaxed), compared: mark(parent.frame_state(), child) }
    }

    /// Notes that the page that was in a frame then is that child; does nothing if the page has left the frame.
    pub(crate) fn note_checked_child(&self, child: FrameNo, parent_check: ParentCheck) {
        let ParentCheck { before, compared } = parent_check;
        // Fails also if another thread was faster: it noted the same or a newer parent.
        let _ = self.get(child).known_child_of.compare_exchange(before, compared, Relaxed, Relaxed);
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
        self.frame_state().known_child_of.load(Relaxed) & IS_KNOWN != 0
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::small_parts;
    use crate::types::PageNo;

    /// Another page comes into the child's or the parent's frame between comparison and note.
    #[test]
    fn only_the_pages_that_were_compared_are_noted() {
        let core = small_parts();
        let (pool, pages) = (&core.ctx.pool, core.ctx.pool.pages());
        let view = |page| {
            pool.load(PageNo(page)).unwrap();
            pool.optimistic(PageNo(page)).unwrap()
        };
        let (parent, child) = (view(0), view(1));
        pages.note_arrival(child.frame(), true);
        assert!(!child.is_known_child() && !child.is_known_child_of(&parent));
        pool.note_checked_child(child.frame(), pool.parent_check(&parent, child.frame()));
        assert!(child.is_known_child() && child.is_known_child_of(&parent));
        for moved in [child, parent] {
            pages.note_arrival(child.frame(), true);
            let parent_check = pool.parent_check(&parent, child.frame());
            pages.note_arrival(moved.frame(), true);
            pool.note_checked_child(child.frame(), parent_check);
            assert!(!child.is_known_child_of(&parent));
        }
        let parent_check = pool.parent_check(&parent, child.frame());
        pages.note_arrival(child.frame(), true);
        pool.note_checked_child(child.frame(), parent_check);
        assert!(!child.is_known_child(), "as a child of any parent");
        pages.note_arrival(child.frame(), false);
        assert!(child.is_known_child() && !child.is_known_child_of(&parent));
    }
}
