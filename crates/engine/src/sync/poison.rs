//! Fail-stop: after the first failure that could affect durability nothing more is written.
//!
//! Rules
//! 1. Once set, never cleared; the first reason stays.
//! 2. Checked before every write, at every wait that a writer would end, and after every read of a user.
//! 3. [`Poison::set`] is the only way to stop a database. It wakes every thread that waits for space in the log, for a
//!    commit, for a lock ([`OnStop`]). It wakes them after the switch is set: a thread that checks the switch and then
//!    waits, both under the mutex that `stopped` takes, cannot miss it.
//! 4. Closing a database stops it the same way; later calls find it closed, not failed ([`CLOSED`]).
//! 5. In a forked child process the database is stopped from the begin ([`Error::Forked`]): memory and locks have the
//!    state of a random moment of the parent's threads, and the files are the parent's. The child waits for nothing,
//!    and writes and closes nothing.
//! 6. The switch is set before the call that failed returns. So once a thread knows of a failed commit, no read
//!    succeeds.

use crate::error::{Error, Result};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::event::event;
use highwater_storage::Owner;
use std::sync::{Arc, Weak};

/// Has waiters that must wake when the database stops. The thread that sets the switch may hold latches and mutexes, so
/// `stopped` takes only the mutex of its waiters, and no thread sets the switch while it holds that one.
pub trait OnStop: Send + Sync {
    fn stopped(&self);

    /// A wait for a lock is interrupted: wakes at least that waiter, if it is one of these.
    fn interrupted(&self) {}
}

/// The reason of a stop that is not a failure.
pub(crate) const CLOSED: &str = "the database is closed";

/// The fail-stop switch. Once it is set the database is poisoned: it has stopped and must be opened again. One per
/// database, shared by pool, log and everything that waits; the devices of the page store have one each of their own.
///
/// Aligned: every call reads it, and neighboring data in memory may change as often.
#[derive(Default)]
#[repr(align(128))]
pub struct Poison {
    set: AtomicBool,
    owner: Owner,
    reason: Mutex<String>,
    wakers: Mutex<Wakers>,
}

/// Each table of a database has one, so adding one must not cost as much as there are.
#[derive(Default)]
struct Wakers {
    list: Vec<Weak<dyn OnStop>>,
    /// Number of live ones when dropped ones were last removed.
    kept: usize,
}

impl Wakers {
    /// Adds one. Dropped ones are removed when there may be as many of them as of others.
    fn add(&mut self, waker: Weak<dyn OnStop>) {
        if self.list.len() > 2 * self.kept + SPARE_WAKERS {
            self.list.retain(|waker| waker.strong_count() > 0);
            self.kept = self.list.len();
        }
        self.list.push(waker);
    }
}

const SPARE_WAKERS: usize = 16;

impl std::fmt::Debug for Poison {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Poison").field("set", &self.set).field("reason", &self.reason).finish_non_exhaustive()
    }
}

impl Poison {
    /// Stops the database and wakes all waiters.
    pub fn set(&self, reason: &str) {
        // A thread of the parent's may hold the mutexes.
        if !self.owner.is_this_process() {
            return;
        }
        debug_assert!(!reason.is_empty(), "rule 1: a database stops without a reason");
        let mut first = self.reason.lock();
        if self.set.load(Ordering::Acquire) {
            return;
        }
        first.push_str(reason);
        self.set.store(true, Ordering::Release);
        drop(first);
        if reason != CLOSED {
            event!(ERROR, reason = reason, "the database stopped");
        }
        self.wakers().iter().for_each(|waker| waker.stopped());
    }

    fn wakers(&self) -> Vec<Arc<dyn OnStop>> {
        self.wakers.lock().list.iter().filter_map(Weak::upgrade).collect()
    }

    /// Wakes waiters for locks whose interruption is raised.
    pub fn wake_interrupted(&self) {
        if self.owner.is_this_process() {
            self.wakers().iter().for_each(|waker| waker.interrupted());
        }
    }

    /// Calls `waker` when the database stops, as long as it lives.
    pub fn wake_on_stop(&self, waker: &Arc<impl OnStop + 'static>) {
        self.wakers.lock().add(Arc::downgrade(waker) as Weak<dyn OnStop>);
    }

    /// Whether the database has stopped.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.set.load(Ordering::Acquire) || !self.owner.is_this_process()
    }

    /// `Err(Error::Forked)` in a process that did not open the database.
    #[inline]
    pub fn check_owner(&self) -> Result<()> {
        if self.owner.is_this_process() { Ok(()) } else { Err(Error::Forked) }
    }

    /// `Err(Error::Poisoned)` once the database has stopped, `Err(Error::Closed)` if it was closed.
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.is_set() { Err(self.error()) } else { Ok(()) }
    }

    /// The error with which the database has stopped.
    #[cold]
    pub fn error(&self) -> Error {
        if self.check_owner().is_err() {
            return Error::Forked;
        }
        match &**self.reason.lock() {
            CLOSED => Error::Closed,
            reason => Error::Poisoned(reason.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Counted(AtomicBool);

    impl OnStop for Counted {
        fn stopped(&self) {
            self.0.store(true, Ordering::Release);
        }
    }

    #[test]
    fn dropped_wakers_are_removed_and_the_others_called() {
        let (poison, counted) = (Poison::default(), || Arc::new(Counted(AtomicBool::new(false))));
        let kept: Vec<_> = (0..100).map(|_| counted()).collect();
        kept.iter().for_each(|waker| poison.wake_on_stop(waker));
        let counts: Vec<usize> = (0..1000)
            .map(|_| {
                poison.wake_on_stop(&counted());
                poison.wakers.lock().list.len()
            })
            .collect();
        assert!(counts.iter().all(|count| *count <= 2 * 101 + SPARE_WAKERS + 1), "{:?}", counts.iter().max());
        assert!(counts.windows(2).filter(|pair| pair[1] < pair[0]).count() < 20, "they are searched seldom");
        poison.set("reason");
        assert!(kept.iter().all(|waker| waker.0.load(Ordering::Acquire)));
    }
}
