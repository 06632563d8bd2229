//! Fail-stop: after the first failure that could have hurt durability nothing more is written.
//!
//! Rules
//! 1. Once set, never cleared; the first reason stays.
//! 2. Checked before every write and at every wait that a writer would end.

use crate::error::{Error, Result};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The switch. One per database, shared by pool, log and everything that waits.
#[derive(Debug, Default)]
pub struct Poison {
    set: AtomicBool,
    reason: Mutex<String>,
}

impl Poison {
    /// Stops the database.
    pub fn set(&self, reason: &str) {
        let mut first = self.reason.lock();
        if !self.set.load(Ordering::Acquire) {
            first.push_str(reason);
            self.set.store(true, Ordering::Release);
        }
    }

    /// Whether the database has stopped.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.set.load(Ordering::Acquire)
    }

    /// `Err(Error::Poisoned)` once the database has stopped.
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.is_set() { Err(Error::Poisoned(self.reason.lock().clone())) } else { Ok(()) }
    }
}
