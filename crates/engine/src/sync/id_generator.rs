//! Serial numbers of a process.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Numbers from 1 on, each of them issued once in this process. (Its atomic is never the model checker's, because a
/// static outlives the checker's schedules.)
pub struct IdGenerator(AtomicU64);

impl IdGenerator {
    pub const fn new() -> IdGenerator {
        IdGenerator(AtomicU64::new(1))
    }

    #[inline]
    pub fn next(&self) -> u64 {
        self.0.fetch_add(1, Relaxed)
    }
}
