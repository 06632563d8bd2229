//! Fail-stop: after the first failure that could have hurt durability nothing more is written.
//!
//! Rules
//! 1. Once set, never cleared; the first reason stays.
//! 2. Checked before every write, at every wait that a writer would end, and after every read of a user.
//! 3. Who waits for another transaction, not for a writer, is told when it is set ([`OnStop`]): after the setting, so that who
//!    checks and then waits, under a mutex that the telling takes, misses nothing.
//! 4. Closing a database stops it the same way; what comes later finds it closed, not failed ([`CLOSED`]).
//! 5. Set before the call that failed returns. So whoever has heard of a failed commit reads nothing any more.

use crate::error::{Error, Result};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// Somebody with waiters to wake when the database stops. Whoever sets the switch may hold latches and mutexes: so this takes
/// none but the mutex of its waiters, under which nobody sets the switch.
pub trait OnStop: Send + Sync {
    /// The database has stopped.
    fn stopped(&self);
}

/// The reason of a stop that is no failure.
pub const CLOSED: &str = "the database is closed";

/// The switch. One per database, shared by pool, log and everything that waits.
#[derive(Default)]
pub struct Poison {
    set: AtomicBool,
    reason: Mutex<String>,
    told: Mutex<Vec<Weak<dyn OnStop>>>,
}

impl std::fmt::Debug for Poison {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Poison").field("set", &self.set).field("reason", &self.reason).finish_non_exhaustive()
    }
}

impl Poison {
    /// Stops the database.
    pub fn set(&self, reason: &str) {
        let mut first = self.reason.lock();
        if self.set.load(Ordering::Acquire) {
            return;
        }
        first.push_str(reason);
        self.set.store(true, Ordering::Release);
        drop(first);
        let told: Vec<_> = self.told.lock().iter().filter_map(Weak::upgrade).collect();
        told.iter().for_each(|waker| waker.stopped());
    }

    /// Has `waker` told when the database stops, as long as it lives.
    pub fn tell(&self, waker: &Arc<dyn OnStop>) {
        let mut told = self.told.lock();
        told.retain(|waker| waker.strong_count() > 0);
        told.push(Arc::downgrade(waker));
    }

    /// Whether the database has stopped.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.set.load(Ordering::Acquire)
    }

    /// `Err(Error::Poisoned)` once the database has stopped, `Err(Error::Closed)` if it was closed.
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.is_set() { Err(self.error()) } else { Ok(()) }
    }

    #[cold]
    fn error(&self) -> Error {
        match &**self.reason.lock() {
            CLOSED => Error::Closed,
            reason => Error::Poisoned(reason.to_string()),
        }
    }
}
