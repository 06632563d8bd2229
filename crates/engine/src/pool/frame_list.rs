//! A doubly linked list over frame numbers, for the LRU list and the flush list.

use super::frames::{FrameNo, NIL};

/// The links live in two arrays.
pub(super) struct FrameList {
    prev: Box<[FrameNo]>,
    next: Box<[FrameNo]>,
    pub head: FrameNo,
    pub tail: FrameNo,
    pub len: usize,
}

impl FrameList {
    /// An empty list over `frames` frames.
    pub(super) fn new(frames: usize) -> FrameList {
        let frame_list = || vec![NIL; frames].into_boxed_slice();
        FrameList { prev: frame_list(), next: frame_list(), head: NIL, tail: NIL, len: 0 }
    }

    /// Towards the head.
    pub(super) fn prev(&self, frame: FrameNo) -> FrameNo {
        self.prev[frame as usize]
    }

    /// Towards the tail.
    pub(super) fn next(&self, frame: FrameNo) -> FrameNo {
        self.next[frame as usize]
    }

    /// Whether `after` follows `before`; `NIL` is what is before the head and after the tail.
    fn are_neighbors(&self, before: FrameNo, after: FrameNo) -> bool {
        let next = if before == NIL { self.head } else { self.next(before) };
        let prev = if after == NIL { self.tail } else { self.prev(after) };
        (next, prev) == (after, before)
    }

    /// Inserts before `at`; `NIL` = at the tail.
    pub(super) fn insert_before(&mut self, frame: FrameNo, at: FrameNo) {
        let before = if at == NIL { self.tail } else { self.prev(at) };
        debug_assert_ne!(frame, at, "frame {frame} is to be inserted before itself");
        debug_assert!(self.are_neighbors(before, at), "{before} and {at} are no neighbors");
        self.prev[frame as usize] = before;
        self.next[frame as usize] = at;
        if before == NIL {
            self.head = frame
        } else {
            self.next[before as usize] = frame
        }
        if at == NIL {
            self.tail = frame
        } else {
            self.prev[at as usize] = frame
        }
        self.len += 1;
    }

    /// Removes a member.
    pub(super) fn remove(&mut self, frame: FrameNo) {
        let (before, after) = (self.prev(frame), self.next(frame));
        debug_assert!(self.are_neighbors(before, frame), "frame {frame} is not on the list");
        debug_assert!(self.are_neighbors(frame, after), "frame {frame} is not on the list");
        if before == NIL {
            self.head = after
        } else {
            self.next[before as usize] = after
        }
        if after == NIL {
            self.tail = before
        } else {
            self.prev[after as usize] = before
        }
        self.len -= 1;
    }
}
