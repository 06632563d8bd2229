//! LRU flusher: keeps frames free ahead of demand, in a thread separate from the page cleaner.
//!
//! One [`LruFlusher::step`] does a bounded amount of work. A thread calls it in production; tests and simulators call
//! it directly. The victim policy decides how many frames are kept free and which pages are written for that
//! ([`crate::pool::lru::Victims`]): with `raw` and `war`, which copy what InnoDB does, the tail is scanned once a
//! second, and demand does not wake the flusher.

use crate::error::Result;
use crate::pool::buffer_pool::Pool;
use crate::pool::lru::FrameDemand;

/// The flusher's memory between steps.
#[derive(Debug, Default)]
pub(crate) struct LruFlusher {
    demand: FrameDemand,
}

impl LruFlusher {
    /// A flusher before its first step.
    pub(crate) fn new() -> LruFlusher {
        LruFlusher::default()
    }

    /// One bounded step; `now_ms` is any monotonic clock. Returns how many pages it flushed.
    ///
    /// # Errors
    /// An I/O or poison error.
    pub(crate) fn step(&mut self, pool: &Pool, now_ms: u64) -> Result<usize> {
        pool.keep_free(&mut self.demand, now_ms)
    }
}
