//! Victim policy `lru-clean`: the least recently used *clean* page is the victim; user threads write no pages.
//!
//! The LRU flusher keeps as many frames free as [`policy::free_target`] says, from clean pages as long as there are
//! some; dirty pages at the very tail are written in batches before their frames are needed.

use super::Victims;
use crate::error::Result;
use crate::pool::cleaner::{LruFlusher, policy};
use crate::pool::{FlushReason, Pool};
use crate::store::FlushLane;

pub struct LruClean;

impl Victims for LruClean {
    /// The cursor goes through the old part a few steps at a time.
    fn search_depth(&self, scan_depth: usize) -> usize {
        4 * scan_depth
    }

    fn by_cursor(&self) -> bool {
        true
    }

    fn on_few_free(&self, pool: &Pool) {
        pool.lru_notify().wake();
    }

    fn make_clean(&self, pool: &Pool, others_work: bool) -> Result<bool> {
        if others_work { Ok(false) } else { pool.flush_one_page() }
    }

    fn keep_free(&self, pool: &Pool, flusher: &mut LruFlusher, now_ms: u64) -> Result<usize> {
        let demand_per_s = flusher.demand_per_s(pool, now_ms);
        let batch_us = pool.flush.batch_us(FlushLane::LruList);
        let target = policy::free_target(demand_per_s, batch_us, pool.frame_count(), pool.lru.scan_depth());
        pool.set_free_target(target);
        Ok(pool.refill(target)? + clean_ahead(pool, target)?)
    }
}

/// Writes the dirty pages whose frames will be needed next, once there are enough for a batch. Does nothing while more
/// than twice `target` frames are free.
fn clean_ahead(pool: &Pool, target: usize) -> Result<usize> {
    if pool.free_count() > 2 * target {
        return Ok(0);
    }
    let max = pool.lru_batch_pages();
    let next = pool.dirty_tail(target, max);
    if next.len() < (max / 4).min(target) {
        return Ok(0);
    }
    pool.flush_frames(&next, FlushReason::LruList)
}
