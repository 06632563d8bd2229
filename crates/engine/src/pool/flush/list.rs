//! Flush list: dirty frames by the LSN of their oldest change, and the marks of pages being written.
//!
//! Rules
//! 1. A frame is on the list iff its `oldest_lsn` is set.
//! 2. From head to tail `oldest_lsn` never grows; the tail holds the checkpoint back.
//! 3. A change of a page that is being written is noted separately ([`crate::pool::frames`], `dirty`). When the write
//!    is done, the frame stays on the list at the LSN of that change; without such a change it leaves the list.
//! 4. A frame's first change enters it at the head, in LSN order: callers come one at a time, in log order.
//!
//! Crash: losing the list is harmless; redo from the tail's LSN rebuilds the pages.

use crate::pool::frame_list::FrameList;
use crate::pool::frames::{FrameNo, Frames, NIL};
use crate::types::Lsn;

/// The list. Kept under the pool's flush-list mutex.
pub(super) struct FlushList {
    frame_list: FrameList,
}

impl FlushList {
    /// An empty list over `frames` frames.
    pub(super) fn new(frames: usize) -> FlushList {
        FlushList { frame_list: FrameList::new(frames) }
    }

    pub(super) fn len(&self) -> usize {
        self.frame_list.len
    }

    /// Start of the oldest change not in the store.
    pub(super) fn oldest_lsn(&self, frames: &Frames) -> Option<Lsn> {
        if self.frame_list.tail == NIL { None } else { frames.get(self.frame_list.tail).oldest_lsn() }
    }

    /// The frame that holds the checkpoint back, and where.
    pub(super) fn tail(&self, frames: &Frames) -> Option<(FrameNo, Lsn)> {
        self.oldest_lsn(frames).map(|lsn| (self.frame_list.tail, lsn))
    }

    /// Notes a change that starts at `lsn`; the caller holds the frame's latch exclusively.
    pub(super) fn note_change(&mut self, frames: &Frames, frame: FrameNo, lsn: Lsn) {
        debug_assert!(frames.get(frame).latch.is_held_exclusively(), "frame {frame} is changed without its latch");
        debug_assert_ne!(lsn, Lsn(0), "a change of frame {frame} that counts as none");
        if frames.get(frame).dirty.note(lsn.0) {
            self.insert_sorted(frames, frame, lsn);
        }
    }

    /// Marks a dirty page as being written; the caller holds its latch (shared is enough) and copies it now.
    /// False if there is nothing to write or it is being written already.
    pub(super) fn begin_write(&mut self, frames: &Frames, frame: FrameNo) -> bool {
        debug_assert!(frames.get(frame).latch.is_held(), "frame {frame} is copied without its latch");
        frames.get(frame).dirty.begin_write()
    }

    /// Ends the write of the copy of `begin_write`, which is durable in the store.
    pub(super) fn end_write(&mut self, frames: &Frames, frame: FrameNo) {
        self.frame_list.remove(frame);
        let oldest = frames.get(frame).dirty.oldest();
        let rewritten = frames.get(frame).dirty.end_write();
        debug_assert!(
            rewritten == 0 || rewritten >= oldest,
            "the change at {rewritten} is older than that at {oldest}"
        );
        if rewritten != 0 {
            self.insert_sorted(frames, frame, Lsn(rewritten));
        }
    }

    /// Up to `limit` frames from the tail whose oldest change starts before `before`, not being written.
    pub(super) fn oldest(&self, frames: &Frames, before: Lsn, limit: usize) -> Vec<FrameNo> {
        let mut chosen = Vec::with_capacity(limit.min(self.frame_list.len));
        let mut at = self.frame_list.tail;
        while at != NIL && chosen.len() < limit && frames.get(at).oldest_lsn().is_some_and(|lsn| lsn < before) {
            if !frames.get(at).dirty.is_flushing() {
                chosen.push(at);
            }
            at = self.frame_list.prev(at);
        }
        chosen
    }

    fn insert_sorted(&mut self, frames: &Frames, frame: FrameNo, lsn: Lsn) {
        self.insert_in_order(frames, frame, lsn);
        self.check_state(frames, frame);
    }

    /// Rules 1 and 2 at the place of a frame, and at the tail.
    fn check_state(&self, frames: &Frames, frame: FrameNo) {
        if !cfg!(debug_assertions) {
            return;
        }
        let oldest = |frame: FrameNo| if frame == NIL { None } else { frames.get(frame).oldest_lsn() };
        let (before, own, after) = (self.frame_list.prev(frame), oldest(frame), self.frame_list.next(frame));
        debug_assert!(own.is_some(), "the clean frame {frame} is on the flush list");
        debug_assert!(before == NIL || oldest(before) >= own, "frame {frame} is newer than {before} before it");
        debug_assert!(after == NIL || own >= oldest(after), "frame {frame} is older than {after} behind it");
        let tail = oldest(self.frame_list.tail);
        debug_assert!(tail.is_some() && tail <= own, "the tail at {tail:?} is newer than frame {frame}");
    }

    fn insert_in_order(&mut self, frames: &Frames, frame: FrameNo, lsn: Lsn) {
        let (mut after, mut before) = (self.frame_list.head, self.frame_list.tail);
        // From both ends: a change that was pending is often as old as the tail.
        loop {
            if after == NIL || frames.get(after).oldest_lsn().is_none_or(|other| other <= lsn) {
                return self.frame_list.insert_before(frame, after);
            }
            if frames.get(before).oldest_lsn().is_some_and(|other| other >= lsn) {
                return self.frame_list.insert_before(frame, self.frame_list.next(before));
            }
            (after, before) = (self.frame_list.next(after), self.frame_list.prev(before));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_during_the_write_keeps_the_page_dirty() {
        let frames = Frames::new(3, 4096).unwrap();
        let mut list = FlushList::new(3);
        list.note_change(&frames, 0, Lsn(10));
        list.note_change(&frames, 1, Lsn(20));
        list.note_change(&frames, 0, Lsn(30));
        assert_eq!(list.oldest_lsn(&frames), Some(Lsn(10)));
        assert!(list.begin_write(&frames, 0));
        assert!(!list.begin_write(&frames, 0));
        assert_eq!(list.oldest(&frames, Lsn(100), 9), vec![1]);
        list.note_change(&frames, 0, Lsn(40));
        list.note_change(&frames, 2, Lsn(50));
        list.note_change(&frames, 0, Lsn(60));
        list.end_write(&frames, 0);
        assert_eq!(frames.get(0).oldest_lsn(), Some(Lsn(40)));
        assert_eq!(list.oldest_lsn(&frames), Some(Lsn(20)));
        assert_eq!(list.oldest(&frames, Lsn(100), 9), vec![1, 0, 2]);
        assert_eq!(list.oldest(&frames, Lsn(50), 9), vec![1, 0]);
        assert!(list.begin_write(&frames, 1));
        list.end_write(&frames, 1);
        assert!(frames.get(1).oldest_lsn().is_none());
        assert_eq!(list.len(), 2);
    }
}
