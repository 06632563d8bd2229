//! The interface of victim policies.

use crate::error::Result;
use crate::pool::frames::FrameNo;
use crate::pool::lru::cache::PageCache;
use crate::pool::lru::demand::FrameDemand;

/// Search depth of InnoDB for a clean page before it writes a dirty one.
const INNODB_SEARCH_DEPTH: usize = 100;

/// A victim policy. It is called without latches.
pub(crate) trait Victims: Send + Sync {
    /// Search depth, from the tail, of a thread for a clean victim.
    fn search_depth(&self, scan_depth: usize) -> usize {
        INNODB_SEARCH_DEPTH.min(scan_depth)
    }

    /// Whether the search continues from the LRU list's cursor, within the old part and before the pages that came in
    /// lately.
    fn by_cursor(&self) -> bool {
        false
    }

    /// A thread took free frames, and fewer than half of those that are kept free are left.
    fn on_few_free(&self, _cache: &PageCache) {}

    /// Takes `count` frames (all or none) that the policy holds back; returns whether it did.
    fn take_from_reserve(&self, _cache: &PageCache, _count: usize, _out: &mut Vec<FrameNo>) -> bool {
        false
    }

    /// Makes a victim clean for a thread that found none; with `others_work` it may leave the work to the LRU flusher.
    /// Returns whether it cleaned a page itself.
    fn make_clean(&self, cache: &PageCache, others_work: bool) -> Result<bool>;

    /// Writes the pages that were deferred; returns how many.
    fn write_deferred(&self, _cache: &PageCache) -> Result<usize> {
        Ok(0)
    }

    /// The LRU flusher's work to keep frames free, in one step: a round of InnoDB's page cleaner, if it is time for
    /// one; returns how many pages it flushed.
    fn keep_free(&self, cache: &PageCache, demand: &mut FrameDemand, now_ms: u64) -> Result<usize> {
        if !demand.begins_round(now_ms) {
            return Ok(0);
        }
        cache.refill(cache.free_target(), self.by_cursor())
    }
}
