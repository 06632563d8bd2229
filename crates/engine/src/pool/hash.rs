//! Page table: which frame holds a page.
//!
//! Rules
//! 1. Chains are linked through `Frame::hash_next`. They change only under the bucket's shard mutex.
//! 2. `find` takes no mutex. It may miss a page while its chain changes (a false `None`); it may return a frame that
//!    has moved on. So the caller latches and compares `page_no`, and decides "not here" only by `find_locked`.

use super::frame::{FrameNo, Frames, NIL};
use crate::types::PageNo;
use parking_lot::{Mutex, MutexGuard};
use std::sync::atomic::{AtomicU32, Ordering};

const SHARDS: usize = 64;
/// A chain longer than this is being rewired under our feet.
const CHAIN_LIMIT: usize = 128;

/// The table.
pub struct PageTable {
    heads: Box<[AtomicU32]>,
    shards: [Mutex<()>; SHARDS],
}

/// Proof that the page's shard is locked.
pub struct ShardGuard<'t>(#[expect(dead_code, reason = "held for its lifetime only")] MutexGuard<'t, ()>);

impl PageTable {
    /// An empty table for `frames` frames.
    pub fn new(frames: usize) -> PageTable {
        let buckets = (frames * 2).next_power_of_two().max(SHARDS);
        PageTable {
            heads: (0..buckets).map(|_| AtomicU32::new(NIL)).collect(),
            shards: std::array::from_fn(|_| Mutex::new(())),
        }
    }

    #[inline]
    fn bucket(&self, page: PageNo) -> usize {
        // Fibonacci hashing: the high bits of the product are well mixed.
        let mixed = u64::from(page.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as usize & (self.heads.len() - 1)
    }

    /// Locks the page's part of the table.
    pub fn lock(&self, page: PageNo) -> ShardGuard<'_> {
        ShardGuard(self.shards[self.bucket(page) % SHARDS].lock())
    }

    /// The frame that probably holds the page (rule 2).
    #[inline]
    pub fn find(&self, frames: &Frames, page: PageNo) -> Option<FrameNo> {
        let mut at = self.heads[self.bucket(page)].load(Ordering::Acquire);
        for _ in 0..CHAIN_LIMIT {
            if at == NIL {
                return None;
            }
            let frame = frames.get(at);
            if frame.page_no() == page {
                return Some(at);
            }
            at = frame.hash_next.load(Ordering::Acquire);
        }
        None
    }

    /// The frame that holds the page.
    pub fn find_locked(&self, frames: &Frames, page: PageNo, _lock: &ShardGuard<'_>) -> Option<FrameNo> {
        let mut at = self.heads[self.bucket(page)].load(Ordering::Acquire);
        while at != NIL {
            if frames.get(at).page_no() == page {
                return Some(at);
            }
            at = frames.get(at).hash_next.load(Ordering::Acquire);
        }
        None
    }

    /// Enters the frame under its page number (set by the caller before).
    pub fn insert(&self, frames: &Frames, frame: FrameNo, _lock: &ShardGuard<'_>) {
        let head = &self.heads[self.bucket(frames.get(frame).page_no())];
        frames.get(frame).hash_next.store(head.load(Ordering::Relaxed), Ordering::Release);
        head.store(frame, Ordering::Release);
    }

    /// Takes the frame out (its page number is still set).
    pub fn remove(&self, frames: &Frames, frame: FrameNo, _lock: &ShardGuard<'_>) {
        let mut link = &self.heads[self.bucket(frames.get(frame).page_no())];
        loop {
            let at = link.load(Ordering::Relaxed);
            assert_ne!(at, NIL, "frame {frame} is not in its chain");
            if at == frame {
                break;
            }
            link = &frames.get(at).hash_next;
        }
        link.store(frames.get(frame).hash_next.load(Ordering::Relaxed), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_inserted_and_only_that() {
        let frames = Frames::new(200, 4096).unwrap();
        let table = PageTable::new(4);
        for n in 0..200 {
            frames.get(n).set_page_no(PageNo(n * 7));
            table.insert(&frames, n, &table.lock(PageNo(n * 7)));
        }
        for n in (0..200).step_by(2) {
            table.remove(&frames, n, &table.lock(PageNo(n * 7)));
        }
        for n in 0..200 {
            let page = PageNo(n * 7);
            let expected = (n % 2 == 1).then_some(n);
            assert_eq!(table.find_locked(&frames, page, &table.lock(page)), expected);
            assert_eq!(table.find(&frames, page), expected);
        }
        assert_eq!(table.find(&frames, PageNo(1)), None);
    }
}
