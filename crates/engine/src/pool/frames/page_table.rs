//! Page table: the frame of each resident page.
//!
//! Rules
//! 1. Chains are linked through `Frame::hash_next`. They change only under the bucket's shard mutex.
//! 2. `peek` takes no mutex. The frame that it has reached may leave its chain and enter another, which it then
//!    follows. So it may miss a resident page (a false `None`), and may return a frame that now holds another page.
//! 3. `find` first searches without a latch; it returns `None` only after a search under the shard mutex, while the
//!    chain does not change. So its `None` is true, and its frame is a guess: the caller latches it and compares
//!    `page_no`.
//! 4. The shard mutexes are last in the lock order: no other lock is taken under one, and one may be taken under any
//!    latch.

use super::frame::{FrameNo, Frames, NIL};
use super::memory::{Mapped, fetch};
use super::sync::atomic::{AtomicU32, Ordering};
use super::sync::{Mutex, MutexGuard};
use crate::types::PageNo;
use std::io;

const SHARDS: usize = 64;
/// Steps of an unlatched lookup. A longer walk has probably been led from chain to chain.
const PEEK_STEPS: usize = 128;

pub(super) struct PageTable {
    heads: Mapped<AtomicU32>,
    shards: Box<[Shard]>,
}

/// The mutex of a part of the table, on a cache line of its own.
#[derive(Default)]
#[repr(align(64))]
struct Shard(Mutex<()>);

/// Proof that the page's shard is locked.
pub(super) struct ShardGuard<'t>(#[expect(dead_code, reason = "held for its lifetime only")] MutexGuard<'t, ()>);

impl PageTable {
    /// An empty table for `frames` frames.
    ///
    /// # Errors
    /// The system has no such memory.
    pub(super) fn new(frames: usize) -> io::Result<PageTable> {
        let buckets = (frames * 2).next_power_of_two().max(SHARDS);
        let heads = Mapped::new(buckets, || AtomicU32::new(NIL))?;
        Ok(PageTable { heads, shards: (0..SHARDS).map(|_| Shard::default()).collect() })
    }

    #[inline]
    fn bucket(&self, page: PageNo) -> usize {
        // Fibonacci hashing: the high bits of the product are well mixed.
        let mixed = u64::from(page.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as usize & (self.heads.len() - 1)
    }

    /// Whether two pages are in one chain.
    #[cfg(test)]
    pub(super) fn is_same_chain(&self, page: PageNo, other: PageNo) -> bool {
        self.bucket(page) == self.bucket(other)
    }

    /// Locks the page's part of the table.
    pub(super) fn lock(&self, page: PageNo) -> ShardGuard<'_> {
        ShardGuard(self.shards[self.bucket(page) % SHARDS].0.lock())
    }

    /// The frame that holds the page, or held it a moment ago; `None` = the page is not here (rule 3).
    #[inline]
    pub(super) fn find(&self, frames: &Frames, page: PageNo) -> Option<FrameNo> {
        self.peek(frames, page).or_else(|| self.find_locking(frames, page))
    }

    /// The frame that holds the page, if any page of its chain is here: for what may be wrong.
    #[inline]
    pub(super) fn lookup_unlatched(&self, page: PageNo) -> Option<FrameNo> {
        let first = self.heads[self.bucket(page)].load(Ordering::Acquire);
        (first != NIL).then_some(first)
    }

    /// Has the head of the page's chain fetched into the processor's cache.
    #[inline]
    pub(super) fn prefetch(&self, page: PageNo) {
        fetch(std::ptr::from_ref(&self.heads[self.bucket(page)]).cast());
    }

    /// The frame that probably holds the page; `None` proves nothing (rule 2).
    #[inline]
    pub(super) fn peek(&self, frames: &Frames, page: PageNo) -> Option<FrameNo> {
        let mut at = self.heads[self.bucket(page)].load(Ordering::Acquire);
        for _ in 0..PEEK_STEPS {
            if at == NIL {
                return None;
            }
            let frame = frames.get(at);
            if frame.page_no() == page {
                return Some(at);
            }
            #[cfg(test)]
            meanwhile::happen(at);
            at = frame.hash_next.load(Ordering::Acquire);
        }
        None
    }

    #[cold]
    fn find_locking(&self, frames: &Frames, page: PageNo) -> Option<FrameNo> {
        self.find_locked(frames, page, &self.lock(page))
    }

    /// The frame that holds the page.
    pub(super) fn find_locked(&self, frames: &Frames, page: PageNo, _lock: &ShardGuard<'_>) -> Option<FrameNo> {
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
    pub(super) fn insert(&self, frames: &Frames, frame: FrameNo, _lock: &ShardGuard<'_>) {
        let head = &self.heads[self.bucket(frames.get(frame).page_no())];
        frames.get(frame).hash_next.store(head.load(Ordering::Relaxed), Ordering::Release);
        head.store(frame, Ordering::Release);
    }

    /// Takes the frame out (its page number is still set).
    pub(super) fn remove(&self, frames: &Frames, frame: FrameNo, _lock: &ShardGuard<'_>) {
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

/// A hook for tests: runs when an unlatched lookup of their thread has reached a frame.
#[cfg(test)]
pub(crate) mod meanwhile {
    use super::FrameNo;
    use std::cell::RefCell;

    type Event = Box<dyn FnOnce()>;

    crate::sync::thread_local! {
        static NEXT: RefCell<Option<(FrameNo, Event)>> = const { RefCell::new(None) };
    }

    /// Has `event` happen once, when an unlatched lookup of this thread has reached `frame`.
    pub(crate) fn on(frame: FrameNo, event: Event) {
        NEXT.set(Some((frame, event)));
    }

    /// Whether the event is still to come.
    pub(crate) fn is_pending() -> bool {
        NEXT.with_borrow(Option::is_some)
    }

    pub(crate) fn happen(frame: FrameNo) {
        if let Some((_, event)) = NEXT.with_borrow_mut(|next| next.take_if(|(at, _)| *at == frame)) {
            event();
        }
    }
}
