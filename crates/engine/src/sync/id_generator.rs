//! Serial numbers of a process.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Numbers from 1 on, each of them issued once in this process. (Its atomic is never the model checker's, because a
/// static outlives the checker's schedules.)
pub(crate) struct IdGenerator(AtomicU64);

impl IdGenerator {
    pub(crate) const fn new() -> IdGenerator {
        IdGenerator(AtomicU64::new(1))
    }

    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.0.fetch_add(1, Relaxed)
    }
}
