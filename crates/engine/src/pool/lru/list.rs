//! LRU list with midpoint insertion: a young part at the head, an old part at the tail.
//!
//! Rules
//! 1. A page read from disk enters at the head of the old part; it becomes young when it is used again after
//!    `old_blocks_time_ms`, or after as many other pages have come in as half of the old part has (on a fast device no
//!    page stays for that time). So one scan passes through the old part and leaves the young part alone.
//! 2. The old part is `old_pct` per cent of the list, give or take `TOLERANCE`, once the list has `MIN_FOR_OLD` frames.
//! 3. `young_stamp` of a frame is 0 iff it is in the old part.
//! 4. The cursor: the frames between the tail and the cursor held no clean page when it passed them. It moves with its
//!    frame, and moves back when a page enters nearer the tail. When pages become clean, it starts at the tail again.
//! 5. A young frame moves to the head only when a quarter of the pool has passed it (the mutex is not taken for a page
//!    that is near the head anyway).

use crate::pool::frame_list::FrameList;
use crate::pool::frames::{FrameNo, Frames, NIL};
use crate::sync::atomic::Ordering::Relaxed;

const TOLERANCE: usize = 20;
const MIN_FOR_OLD: usize = 64;

/// The list. Kept under the pool's LRU mutex.
pub(super) struct LruList {
    frame_list: FrameList,
    /// First frame of the old part, `NIL` if there is none.
    old: FrameNo,
    old_len: usize,
    old_pct: usize,
    member: Box<[bool]>,
    /// Frame at which the search for a clean page continues; `NIL`: the tail.
    cursor: FrameNo,
    /// Value of `entries` when the frame came to the list or to its head.
    entered: Box<[u32]>,
    entries: u32,
}

impl LruList {
    /// An empty list over `frames` frames.
    pub(super) fn new(frames: usize, old_pct: usize) -> LruList {
        let member = vec![false; frames].into_boxed_slice();
        LruList {
            frame_list: FrameList::new(frames),
            old: NIL,
            old_len: 0,
            old_pct,
            member,
            cursor: NIL,
            entered: vec![0; frames].into_boxed_slice(),
            entries: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.frame_list.len
    }

    /// Whether the frame is on the list.
    pub(super) fn contains(&self, frame: FrameNo) -> bool {
        self.member[frame as usize]
    }

    /// Rules 2 and 3 where they can break: at the ends of the two parts; and the cursor is on the list.
    fn check_state(&self, frames: &Frames) {
        if !cfg!(debug_assertions) {
            return;
        }
        let (len, old, cursor) = (self.frame_list.len, self.old, self.cursor);
        let is_young = |frame: FrameNo| frames.get(frame).young_stamp.load(Relaxed) != 0;
        debug_assert_eq!(len == 0, self.frame_list.tail == NIL, "{len} frames, the tail is {}", self.frame_list.tail);
        debug_assert_eq!(old == NIL, self.old_len == 0, "the old part of {} frames begins at {old}", self.old_len);
        debug_assert!(self.old_len <= len, "{} of {len} frames are old", self.old_len);
        debug_assert!(len < MIN_FOR_OLD || self.old_len > 0, "none of {len} frames is old");
        debug_assert!(cursor == NIL || self.contains(cursor), "the cursor is at frame {cursor}, which is not here");
        if old != NIL {
            let last_young = self.frame_list.prev(old);
            debug_assert!(self.contains(old) && !is_young(old), "the old part begins at {old}, which is not in it");
            debug_assert!(last_young == NIL || is_young(last_young), "{last_young} is old, before the old part");
            debug_assert!(!is_young(self.frame_list.tail), "the tail {} is young", self.frame_list.tail);
        }
    }

    /// Least recently used frame.
    pub(super) fn tail(&self) -> FrameNo {
        self.frame_list.tail
    }

    /// The next one towards the head.
    pub(super) fn toward_head(&self, frame: FrameNo) -> FrameNo {
        self.frame_list.prev(frame)
    }

    /// Frame at which the search for a clean page continues.
    pub(super) fn cursor(&self) -> FrameNo {
        if self.cursor == NIL { self.frame_list.tail } else { self.cursor }
    }

    /// Leaves the cursor at a frame of the list; `NIL` = at the tail.
    pub(super) fn set_cursor(&mut self, frame: FrameNo) {
        debug_assert!(frame == NIL || self.contains(frame), "the cursor moves to frame {frame}, which is not here");
        self.cursor = frame;
    }

    /// Whether the frame is in the young part of a list that has an old one.
    fn is_beyond_old(&self, frames: &Frames, frame: FrameNo) -> bool {
        self.old != NIL && frames.get(frame).young_stamp.load(Relaxed) != 0
    }

    /// Whether the search for a clean page ends here: the young part, or pages that came in lately. (If those were
    /// taken, a page just read would be evicted before it is used, whenever all others are dirty.)
    pub(super) fn ends_search(&self, frames: &Frames, frame: FrameNo) -> bool {
        let (fresh, age) = self.fresh(frame);
        self.is_beyond_old(frames, frame) || age < fresh
    }

    /// Entries to the list that make a page no longer fresh, and those since it came.
    fn fresh(&self, frame: FrameNo) -> (u32, u32) {
        let part = if self.old == NIL { self.frame_list.len } else { self.old_len };
        (part as u32 / 2, self.entries.wrapping_sub(self.entered[frame as usize]))
    }

    fn note_entry(&mut self, frame: FrameNo) {
        self.entries = self.entries.wrapping_add(1);
        self.entered[frame as usize] = self.entries;
    }

    /// Enters a page just read: at the head of the old part.
    pub(super) fn insert_old(&mut self, frames: &Frames, frame: FrameNo) {
        if self.old == NIL {
            return self.insert_young(frames, frame, 1);
        }
        debug_assert!(!self.contains(frame), "frame {frame} is on the list already");
        self.member[frame as usize] = true;
        self.note_entry(frame);
        self.frame_list.insert_before(frame, self.old);
        if self.cursor != NIL && self.is_beyond_old(frames, self.cursor) {
            self.cursor = frame;
        }
        self.old = frame;
        self.old_len += 1;
        frames.get(frame).young_stamp.store(0, Relaxed);
        self.rebalance(frames, 1);
    }

    /// Enters at the head; `stamp` (not 0) is the LRU clock.
    pub(super) fn insert_young(&mut self, frames: &Frames, frame: FrameNo, stamp: u32) {
        debug_assert!(!self.contains(frame), "frame {frame} is on the list already");
        debug_assert_ne!(stamp, 0, "rule 3: the stamp of the old part");
        self.member[frame as usize] = true;
        self.note_entry(frame);
        self.frame_list.insert_before(frame, self.frame_list.head);
        frames.get(frame).young_stamp.store(stamp, Relaxed);
        self.rebalance(frames, stamp);
    }

    /// Takes a frame out.
    pub(super) fn remove(&mut self, frames: &Frames, frame: FrameNo) {
        debug_assert!(self.contains(frame), "frame {frame} is not on the list");
        if frames.get(frame).young_stamp.load(Relaxed) == 0 {
            if self.old == frame {
                self.old = self.frame_list.next(frame);
            }
            self.old_len -= 1;
        }
        self.member[frame as usize] = false;
        if self.cursor == frame {
            self.cursor = self.frame_list.prev(frame);
        }
        self.frame_list.remove(frame);
        self.rebalance(frames, 1);
    }

    /// Moves a frame to the head.
    pub(super) fn make_young(&mut self, frames: &Frames, frame: FrameNo, stamp: u32) {
        self.remove(frames, frame);
        self.insert_young(frames, frame, stamp);
    }

    fn rebalance(&mut self, frames: &Frames, stamp: u32) {
        let target = if self.frame_list.len < MIN_FOR_OLD { 0 } else { self.frame_list.len * self.old_pct / 100 };
        while self.old_len < target.saturating_sub(TOLERANCE.min(target)) || (self.old_len == 0 && target > 0) {
            let frame = if self.old == NIL { self.frame_list.tail } else { self.frame_list.prev(self.old) };
            frames.get(frame).young_stamp.store(0, Relaxed);
            self.old = frame;
            self.old_len += 1;
        }
        while self.old_len > target + TOLERANCE || (target == 0 && self.old_len > 0) {
            let frame = self.old;
            frames.get(frame).young_stamp.store(stamp.max(1), Relaxed);
            self.old = self.frame_list.next(frame);
            self.old_len -= 1;
        }
        self.check_state(frames);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn assert_consistent(lru: &LruList, frames: &Frames, members: &[FrameNo]) {
        let mut walk = vec![];
        let mut at = lru.tail();
        while at != NIL {
            walk.push(at);
            at = lru.toward_head(at);
        }
        walk.reverse();
        assert_eq!(walk.len(), members.len());
        let olds = walk.iter().filter(|f| frames.get(**f).young_stamp.load(Relaxed) == 0).count();
        assert_eq!(olds, lru.old_len);
        assert!(walk[walk.len() - olds..].iter().all(|f| frames.get(*f).young_stamp.load(Relaxed) == 0));
        assert_eq!(lru.old, if olds == 0 { NIL } else { walk[walk.len() - olds] });
        if walk.len() >= MIN_FOR_OLD {
            assert!(olds.abs_diff(walk.len() * 37 / 100) <= TOLERANCE + 1, "{olds} of {}", walk.len());
        }
    }

    proptest! {
        #[test]
        fn old_part_stays_its_share(steps in proptest::collection::vec((0..4u8, 0..200u32), 1..600)) {
            let frames = Frames::new(200, 4096).unwrap();
            let mut lru = LruList::new(200, 37);
            let mut members: Vec<FrameNo> = vec![];
            for (stamp, (kind, frame)) in steps.into_iter().enumerate() {
                let stamp = stamp as u32 + 1;
                let member = members.contains(&frame);
                match kind {
                    0 | 1 if !member => { lru.insert_old(&frames, frame); members.push(frame) }
                    2 if member => lru.make_young(&frames, frame, stamp),
                    3 if member => { lru.remove(&frames, frame); members.retain(|f| *f != frame) }
                    _ => continue,
                }
                assert_consistent(&lru, &frames, &members);
            }
        }
    }

    #[test]
    fn a_scan_does_not_empty_the_young_part() {
        let frames = Frames::new(400, 4096).unwrap();
        let mut lru = LruList::new(400, 37);
        (0..200).for_each(|f| lru.insert_young(&frames, f, f + 1));
        for f in 200..400 {
            lru.insert_old(&frames, f);
            let tail = lru.tail();
            lru.remove(&frames, tail);
        }
        let mut at = lru.tail();
        let mut hot = 0;
        while at != NIL {
            hot += usize::from(at < 200);
            at = lru.toward_head(at);
        }
        assert!(hot >= 200 * 63 / 100 - TOLERANCE, "only {hot} hot pages survived the scan");
    }
}
