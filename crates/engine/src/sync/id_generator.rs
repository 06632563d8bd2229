//! Ids that are unique in this process.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Generates the numbers from 1 on, each once in this process. (The atomic is the standard library's even under the
/// model checker, because a static outlives the checker's schedules.)
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
