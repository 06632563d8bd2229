//! Noting that a page was used: when it becomes young, and when it moves to the head of the LRU list.

use crate::pool::{FrameNo, Pool};
use crate::sync::atomic::Ordering::Relaxed;

impl Pool {
    /// Moves pool time on.
    pub(crate) fn set_now_ms(&self, now_ms: u64) {
        self.lru.now_ms.store((now_ms as u32).max(1), Relaxed);
    }

    /// Notes that the page was used.
    #[inline]
    pub(in crate::pool) fn promote(&self, frame: FrameNo) {
        let stamp = self.frames.get(frame).young_stamp.load(Relaxed);
        // Negative if the page became young after the clock was published.
        let age = self.lru.published.load(Relaxed).wrapping_sub(stamp) as i32;
        if stamp == 0 || age > (self.frame_count() / 4) as i32 {
            self.promote_slow(frame, stamp);
        }
    }

    fn promote_slow(&self, frame: FrameNo, stamp: u32) {
        let state = self.frames.get(frame);
        if stamp == 0 {
            let now = self.lru.now_ms.load(Relaxed);
            let first = state.first_access_ms.load(Relaxed);
            if first == 0 {
                state.first_access_ms.store(now, Relaxed);
                return;
            }
            let passed_by = self.arrivals.load(Relaxed).wrapping_sub(state.arrival.load(Relaxed));
            if now.wrapping_sub(first) < self.lru.old_blocks_time_ms.load(Relaxed)
                && passed_by < self.lru.old_arrivals.load(Relaxed)
            {
                return;
            }
        }
        let mut lru = self.lru.list.lock();
        if lru.contains(frame) {
            let clock = self.lru.clock.fetch_add(1, Relaxed).wrapping_add(1).max(1);
            if clock.wrapping_sub(self.lru.published.load(Relaxed)) > self.lru.lag.load(Relaxed) {
                self.lru.published.store(clock, Relaxed);
            }
            lru.make_young(&self.frames, frame, clock);
            self.stats.pages_made_young.inc();
        }
    }

    /// Frames on the LRU list.
    pub fn lru_count(&self) -> usize {
        self.lru.list.lock().len()
    }
}
