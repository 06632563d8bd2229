//! LRU flusher: keeps frames free ahead of demand, in a thread of its own beside the page cleaner.
//!
//! One [`LruFlusher::step`] does a bounded amount of work. A thread calls it in production; tests and simulators call it
//! directly.
//!
//! Rules
//! 1. With victim policy `lru-clean` free frames are kept as [`policy::free_target`] says, from clean pages as far as there
//!    are any; dirty pages at the very tail are written in batches before their frames are needed.
//! 2. With `raw` and `war`, which copy what InnoDB does, it scans the tail once in `ROUND_MS` and is not woken by demand;
//!    with `war` it also writes the pages that were set aside, as soon as there are any.

use super::policy;
use super::{FlushReason, Pool};
use crate::config::VictimPolicy;
use crate::error::Result;
use crate::store::{BATCH_PAGES, Lane};
use crate::sync::wake::Wake;

/// Milliseconds between two rounds of InnoDB's page cleaner.
const ROUND_MS: u64 = 1000;
/// A batch of victims is meant to take no longer than this: threads may wait for its frames.
const AIM_US: u64 = 20_000;
const STEP_BATCHES: usize = 8;

/// The flusher's memory between steps.
#[derive(Debug, Default)]
pub struct LruFlusher {
    taken: u64,
    last_ms: u64,
    demand_per_s: f64,
    next_round_ms: u64,
}

impl Pool {
    /// The bell that wakes the LRU flusher.
    pub fn lru_wake(&self) -> &Wake {
        &self.lru_flusher
    }
}

impl LruFlusher {
    /// One that has seen nothing yet.
    pub fn new() -> LruFlusher {
        LruFlusher::default()
    }

    /// One bounded step; `now_ms` is any clock that never goes back. Says how many pages it flushed.
    ///
    /// # Errors
    /// An I/O error, after which the database is poisoned.
    pub fn step(&mut self, pool: &Pool, now_ms: u64) -> Result<usize> {
        pool.set_now_ms(now_ms);
        if pool.victim_policy == VictimPolicy::LruClean {
            self.learn_demand(pool, now_ms);
            let batch_us = pool.batches.us(Lane::LruList);
            let target = policy::free_target(self.demand_per_s, batch_us, pool.frame_count(), pool.lru_scan_depth);
            pool.set_free_target(target);
            return Ok(refill(pool, target)? + clean_ahead(pool, target)?);
        }
        let mut flushed = pool.write_set_aside()?;
        if now_ms >= self.next_round_ms {
            self.next_round_ms = now_ms + ROUND_MS;
            flushed += refill(pool, pool.free_target())?;
        }
        Ok(flushed)
    }

    /// Demand rises at once and is forgotten over a second or so.
    fn learn_demand(&mut self, pool: &Pool, now_ms: u64) {
        let elapsed_ms = now_ms.saturating_sub(self.last_ms);
        if elapsed_ms < 5 {
            return;
        }
        let taken = pool.free.taken();
        let now = (taken - self.taken) as f64 * 1000.0 / elapsed_ms as f64;
        let kept = self.demand_per_s * (-(elapsed_ms as f64) / 1000.0).exp();
        self.demand_per_s = kept.max(now);
        (self.taken, self.last_ms) = (taken, now_ms);
    }
}

/// Evicts clean pages, and flushes dirty ones at the tail, until `target` frames are free or nothing moves.
fn refill(pool: &Pool, target: usize) -> Result<usize> {
    let most = policy::batch_pages(BATCH_PAGES, pool.batches.us(Lane::LruList), AIM_US);
    let mut flushed = 0;
    for _ in 0..STEP_BATCHES {
        let want = target.saturating_sub(pool.free_count());
        let evicted = pool.evict_clean(pool.lru_scan_depth, want);
        if evicted >= want {
            break;
        }
        let dirty = pool.dirty_tail(pool.lru_scan_depth, most);
        let wrote = pool.flush_frames(&dirty, FlushReason::LruList)?;
        flushed += wrote;
        if evicted == 0 && wrote == 0 {
            break;
        }
    }
    Ok(flushed)
}

/// Writes the dirty pages that will be needed next, once they are worth a batch. None is needed while more than twice
/// as many frames are free as are kept.
fn clean_ahead(pool: &Pool, target: usize) -> Result<usize> {
    if pool.free_count() > 2 * target {
        return Ok(0);
    }
    let most = policy::batch_pages(BATCH_PAGES, pool.batches.us(Lane::LruList), AIM_US);
    let next = pool.dirty_tail(target, most);
    if next.len() < (most / 4).min(target) {
        return Ok(0);
    }
    pool.flush_frames(&next, FlushReason::LruList)
}
