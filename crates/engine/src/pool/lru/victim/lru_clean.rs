//! Victim policy `lru-clean`: the least recently used *clean* page is the victim; user threads write no pages.
//!
//! The LRU flusher keeps as many frames free as [`policy::free_target`] says, from clean pages as long as there are
//! some; dirty pages at the very tail are written in batches before their frames are needed.

use super::victims::Victims;
use crate::error::Result;
use crate::pool::flush::FlushReason;
use crate::pool::lru::cache::PageCache;
use crate::pool::lru::demand::FrameDemand;
use crate::pool::pacing::policy;
use crate::store::FlushLane;

pub(super) struct LruClean;

impl Victims for LruClean {
    /// The cursor traverses the old part a few steps at a time.
    fn search_depth(&self, scan_depth: usize) -> usize {
        4 * scan_depth
    }

    fn by_cursor(&self) -> bool {
        true
    }

    fn on_few_free(&self, cache: &PageCache) {
        cache.lru_notify().wake();
    }

    fn make_clean(&self, cache: &PageCache, others_work: bool) -> Result<bool> {
        if others_work { Ok(false) } else { cache.flush_one_page() }
    }

    fn keep_free(&self, cache: &PageCache, demand: &mut FrameDemand, now_ms: u64) -> Result<usize> {
        let demand_per_s = demand.per_s(cache, now_ms);
        let batch_us = cache.flusher().batch_us(FlushLane::LruList);
        let target = policy::free_target(demand_per_s, batch_us, cache.pages().frame_count(), cache.lru().scan_depth());
        cache.set_free_target(target);
        Ok(cache.refill(target, self.by_cursor())? + clean_ahead(cache, target)?)
    }
}

/// Writes the dirty pages whose frames will be needed next, once there are enough for a batch. Does nothing while more
/// than twice `target` frames are free.
fn clean_ahead(cache: &PageCache, target: usize) -> Result<usize> {
    if cache.pages().free().len() > 2 * target {
        return Ok(0);
    }
    let max = cache.batch_pages();
    let next = cache.dirty_tail(target, max);
    if next.len() < (max / 4).min(target) {
        return Ok(0);
    }
    cache.flusher().flush_frames(&next, FlushReason::LruList)
}
