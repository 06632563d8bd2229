//! The demand for frames per second, and the times at which InnoDB's page cleaner would begin a round.

use super::cache::PageCache;

/// Milliseconds between two rounds of InnoDB's page cleaner.
const ROUND_MS: u64 = 1000;

/// State of the LRU flusher between its steps.
#[derive(Debug, Default)]
pub(crate) struct FrameDemand {
    taken: u64,
    last_ms: u64,
    demand_per_s: f64,
    next_round_ms: u64,
}

impl FrameDemand {
    /// Whether it is time for a round of InnoDB's page cleaner, which begins then.
    pub(crate) fn begins_round(&mut self, now_ms: u64) -> bool {
        let begins = now_ms >= self.next_round_ms;
        if begins {
            self.next_round_ms = now_ms + ROUND_MS;
        }
        begins
    }

    /// Frames taken per second. A rise is seen at once and forgotten over a second or so.
    pub(crate) fn per_s(&mut self, cache: &PageCache, now_ms: u64) -> f64 {
        let elapsed_ms = now_ms.saturating_sub(self.last_ms);
        if elapsed_ms >= 5 {
            let taken = cache.pages().free().taken();
            let now = (taken - self.taken) as f64 * 1000.0 / elapsed_ms as f64;
            let kept = self.demand_per_s * (-(elapsed_ms as f64) / 1000.0).exp();
            self.demand_per_s = kept.max(now);
            (self.taken, self.last_ms) = (taken, now_ms);
        }
        self.demand_per_s
    }
}
