//! Victim policies: what happens when a frame is needed and the least recently used page is dirty. Each policy is a
//! file of its own behind [`Victims`].
//!
//! | policy | a thread that finds no clean victim | frames are kept free |
//! |---|---|---|
//! | `raw` (InnoDB's read after write) | writes the dirty page at the tail, then reads | a round a second |
//! | `war` (write after read) | leaves the dirty page in its frame and reads into another one | a round a second |
//! | `lru_clean` (the default) | waits for the LRU flusher | ahead of demand |

mod lru_clean;
mod raw;
mod war;

use crate::config::VictimPolicy;
use crate::error::Result;
use crate::pool::cleaner::LruFlusher;
use crate::pool::{FrameNo, Pool};
use lru_clean::LruClean;
use raw::Raw;
use war::War;

/// How far InnoDB looks for a clean page before it writes a dirty one.
const INNODB_SEARCH_DEPTH: usize = 100;

/// A victim policy. Its calls are made with no latch held.
pub trait Victims: Send + Sync {
    /// How far from the tail a thread looks for a clean victim.
    fn search_depth(&self, scan_depth: usize) -> usize {
        INNODB_SEARCH_DEPTH.min(scan_depth)
    }

    /// Whether the search continues from the LRU list's cursor, within the old part and before the pages that came in
    /// lately.
    fn by_cursor(&self) -> bool {
        false
    }

    /// A thread took free frames, and fewer than half of those that are kept free are left.
    fn on_few_free(&self, _pool: &Pool) {}

    /// Takes `count` frames (all or none) that the policy holds back; says whether it did.
    fn take_from_reserve(&self, _pool: &Pool, _count: usize, _out: &mut Vec<FrameNo>) -> bool {
        false
    }

    /// What a thread does that found no clean victim; with `others_work` it may leave the work to the LRU flusher.
    /// Says whether it cleaned a page itself.
    fn make_clean(&self, pool: &Pool, others_work: bool) -> Result<bool>;

    /// Writes the pages that were deferred; says how many.
    fn write_deferred(&self, _pool: &Pool) -> Result<usize> {
        Ok(0)
    }

    /// The LRU flusher's work to keep frames free, in one step; says how many pages it flushed.
    fn keep_free(&self, pool: &Pool, flusher: &mut LruFlusher, now_ms: u64) -> Result<usize> {
        flusher.round(pool, now_ms)
    }
}

/// The policy of the option, for a pool of `frames`.
pub fn of(policy: VictimPolicy, frames: usize) -> Box<dyn Victims> {
    match policy {
        VictimPolicy::Raw => Box::new(Raw),
        VictimPolicy::War => Box::new(War::new(frames)),
        VictimPolicy::LruClean => Box::new(LruClean),
    }
}
