//! LRU flusher: keeps frames free ahead of demand, in a thread separate from the page cleaner.
//!
//! One [`LruFlusher::step`] does a bounded amount of work. A thread calls it in production; tests and simulators call
//! it directly. The victim policy decides how many frames are kept free and which pages are written for that
//! ([`crate::pool::lru::Victims`]): with `raw` and `war`, which copy what InnoDB does, the tail is scanned once in
//! `ROUND_MS`, and demand does not wake the flusher.

use super::policy;
use crate::error::Result;
use crate::pool::{FlushReason, Pool};
use crate::store::{BATCH_PAGES, FlushLane};

/// Milliseconds between two rounds of InnoDB's page cleaner.
const ROUND_MS: u64 = 1000;
/// A batch of victims is meant to take no longer than this: threads may wait for its frames.
const AIM_US: u64 = 20_000;
/// Batches in a step.
const STEP_BATCHES: usize = 8;

/// The flusher's memory between steps.
#[derive(Debug, Default)]
pub struct LruFlusher {
    taken: u64,
    last_ms: u64,
    demand_per_s: f64,
    next_round_ms: u64,
}

impl LruFlusher {
    /// A flusher before its first step.
    pub fn new() -> LruFlusher {
        LruFlusher::default()
    }

    /// One bounded step; `now_ms` is any monotonic clock. Returns how many pages it flushed.
    pub fn step(&mut self, pool: &Pool, now_ms: u64) -> Result<usize> {
        pool.set_now_ms(now_ms);
        let written = pool.lru.victims.write_deferred(pool)?;
        Ok(written + pool.lru.victims.keep_free(pool, self, now_ms)?)
    }

    /// A round of InnoDB's page cleaner, if it is time for one; says how many pages it flushed.
    pub fn round(&mut self, pool: &Pool, now_ms: u64) -> Result<usize> {
        if now_ms < self.next_round_ms {
            return Ok(0);
        }
        self.next_round_ms = now_ms + ROUND_MS;
        pool.refill(pool.free_target())
    }

    /// Frames taken per second. A rise is seen at once and forgotten over a second or so.
    pub fn demand_per_s(&mut self, pool: &Pool, now_ms: u64) -> f64 {
        let elapsed_ms = now_ms.saturating_sub(self.last_ms);
        if elapsed_ms >= 5 {
            let taken = pool.free.taken();
            let now = (taken - self.taken) as f64 * 1000.0 / elapsed_ms as f64;
            let kept = self.demand_per_s * (-(elapsed_ms as f64) / 1000.0).exp();
            self.demand_per_s = kept.max(now);
            (self.taken, self.last_ms) = (taken, now_ms);
        }
        self.demand_per_s
    }
}

impl Pool {
    /// Evicts clean pages, and flushes dirty ones at the tail, until `target` frames are free or no progress is made.
    pub(in crate::pool) fn refill(&self, target: usize) -> Result<usize> {
        let max = self.lru_batch_pages();
        let mut flushed = 0;
        for _ in 0..STEP_BATCHES {
            let want = target.saturating_sub(self.free_count());
            let evicted = self.evict_clean(self.lru.scan_depth(), want);
            if evicted >= want {
                break;
            }
            let dirty = self.dirty_tail(self.lru.scan_depth(), max);
            let wrote = self.flush_frames(&dirty, FlushReason::LruList)?;
            flushed += wrote;
            if evicted == 0 && wrote == 0 {
                break;
            }
        }
        Ok(flushed)
    }

    /// Pages of a batch of victims.
    pub(in crate::pool) fn lru_batch_pages(&self) -> usize {
        policy::batch_pages(BATCH_PAGES, self.flush.batch_us(FlushLane::LruList), AIM_US)
    }
}
