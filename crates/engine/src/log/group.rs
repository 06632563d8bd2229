//! Group commit: the leader and the waiting threads.
//!
//! Rules
//! 1. There is at most one leader. A thread that finds no leader becomes it; any other thread waits, parked, in
//!    `waiting`.
//! 2. When the leader is done it wakes the threads it served and makes the first of the others the next leader; it
//!    wakes that one first, so that the device is idle as shortly as possible.
//! 3. A thread's slot is in `waiting` at most once, and is removed by the thread that wakes it.
//!
//! `log_test/group_model.rs` checks them for every order of the threads' steps (loom).

use super::sync::Mutex;
use super::sync::atomic::{AtomicU8, Ordering};
use super::sync::thread::{self, Thread};
use crate::types::Lsn;
use std::sync::Arc;

/// The resource that a group makes durable.
pub(super) trait Durable {
    type Error;

    /// Everything before this is durable.
    fn durable_lsn(&self) -> Lsn;

    fn has_stopped(&self) -> bool;

    /// An error if it has stopped.
    fn check(&self) -> Result<(), Self::Error>;

    /// The leader's work: makes everything before `lsn` durable, or more. If it fails, it has stopped.
    fn write_and_sync(&self, lsn: Lsn) -> Result<(), Self::Error>;
}

/// The role of a thread that has joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Write and sync, then call [`CommitGroup::finish`].
    Leader,
    /// Check again: a leader got this far, or the database has stopped.
    Served,
}

/// The queue of threads that wait for durability.
#[derive(Default)]
pub(super) struct CommitGroup {
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    leading: bool,
    waiting: Vec<(Lsn, Arc<Slot>)>,
}

const WAITING: u8 = 0;
const SERVED: u8 = 1;
const LEADER: u8 = 2;

struct Slot {
    state: AtomicU8,
    thread: Thread,
}

super::sync::thread_local! {
    static SLOT: Arc<Slot> = Slot::of_this_thread();
}

impl Slot {
    fn of_this_thread() -> Arc<Slot> {
        Arc::new(Slot { state: AtomicU8::new(WAITING), thread: thread::current() })
    }

    fn wake(&self, state: u8) {
        self.state.store(state, Ordering::Release);
        self.thread.unpark();
    }

    fn wait(&self) -> Role {
        loop {
            match self.state.load(Ordering::Acquire) {
                SERVED => return Role::Served,
                LEADER => return Role::Leader,
                _ => thread::park(),
            }
        }
    }
}

impl CommitGroup {
    /// Returns when everything before `lsn` is durable; one thread works for all that wait.
    ///
    /// # Errors
    /// `log` has stopped, or stops with this.
    pub(super) fn flush_to<D: Durable>(&self, log: &D, lsn: Lsn) -> Result<(), D::Error> {
        loop {
            log.check()?;
            if log.durable_lsn() >= lsn {
                return Ok(());
            }
            match self.join(lsn, || log.durable_lsn() >= lsn || log.has_stopped()) {
                Role::Served => {}
                Role::Leader => {
                    let result = log.write_and_sync(lsn);
                    let durable = log.durable_lsn();
                    debug_assert!(result.is_err() || durable >= lsn, "a leader made {durable} durable, not {lsn}");
                    self.finish(durable, log.has_stopped());
                    result?;
                }
            }
        }
    }

    /// Becomes the leader, or waits until it is served or becomes the leader. `done` is called once more under the
    /// queue's lock.
    fn join(&self, lsn: Lsn, done: impl Fn() -> bool) -> Role {
        let mut queue = self.queue.lock();
        if done() {
            return Role::Served;
        }
        if !queue.leading {
            queue.leading = true;
            return Role::Leader;
        }
        // A thread that is ending may have lost its own.
        let slot = SLOT.try_with(Arc::clone).unwrap_or_else(|_| Slot::of_this_thread());
        slot.state.store(WAITING, Ordering::Relaxed);
        let is_slot = |(_, other): &(Lsn, Arc<Slot>)| Arc::ptr_eq(other, &slot);
        debug_assert!(!queue.waiting.iter().any(is_slot), "rule 3: a thread waits twice");
        queue.waiting.push((lsn, Arc::clone(&slot)));
        drop(queue);
        slot.wait()
    }

    /// Ends the lead: each thread that waits for an LSN up to `durable` (every thread, if `stopped`) is served, the
    /// next one leads.
    fn finish(&self, durable: Lsn, stopped: bool) {
        let mut queue = self.queue.lock();
        debug_assert!(queue.leading, "rule 1: the lead of no leader ends");
        let mut served = std::mem::take(&mut queue.waiting);
        if !stopped {
            queue.waiting = served.extract_if(.., |(lsn, _)| *lsn > durable).collect();
        }
        let next = if queue.waiting.is_empty() { None } else { Some(queue.waiting.remove(0)) };
        queue.leading = next.is_some();
        drop(queue);
        if let Some((_, slot)) = next {
            slot.wake(LEADER);
        }
        served.iter().for_each(|(_, slot)| slot.wake(SERVED));
    }

    /// Threads that wait for a leader.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.queue.lock().waiting.len()
    }

    /// Wakes every waiting thread, to check again.
    pub(super) fn wake_all(&self) {
        let waiting = std::mem::take(&mut self.queue.lock().waiting);
        waiting.iter().for_each(|(_, slot)| slot.wake(SERVED));
    }
}
