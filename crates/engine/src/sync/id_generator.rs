//! Serial numbers of a process.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Numbers from 1 on, none of which is given twice in this process. (Never a checker's atomic: a static outlives the
/// schedules.)
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
