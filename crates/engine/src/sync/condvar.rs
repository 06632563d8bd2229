//! A condition variable that works after a `fork`.
//!
//! `parking_lot` keeps waiting threads in one table for the whole process. A forked child inherits the table with the
//! parent's threads in it, which do not run there, and whose memory is reused. A database that the child opens would
//! use these entries. So threads with long waits, such as idle background threads, wait on a condition variable of
//! `std`, which the kernel identifies by its address alone.
//!
//! Rules
//! 1. A thread increments `waiting` and locks `signals` while it holds the caller's mutex, and releases the caller's
//!    mutex afterwards. So a notification after a change under the caller's mutex finds the thread.
//! 2. A wait may end early, as with any condition variable.
//! 3. Threads are woken while `signals` is held: a thread that begins to wait after the notification does not consume
//!    it.

use parking_lot::MutexGuard;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Use it with one mutex of the engine at a time.
#[derive(Debug, Default)]
pub(crate) struct Condvar {
    /// Threads that wait (rule 1).
    waiting: AtomicU32,
    /// Notifications so far.
    signals: Mutex<u64>,
    changed: std::sync::Condvar,
}

/// Whether a wait timed out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimedOut(bool);

impl TimedOut {
    pub(crate) fn timed_out(self) -> bool {
        self.0
    }
}

impl Condvar {
    pub(crate) fn new() -> Condvar {
        Condvar::default()
    }

    /// Waits for a notification.
    pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        self.wait_for(guard, Duration::from_secs(3600));
    }

    /// Waits for a notification or until `timeout` has passed.
    pub(crate) fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, timeout: Duration) -> TimedOut {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let signals = self.signals.lock().unwrap_or_else(PoisonError::into_inner);
        let before = *signals;
        let timed_out = MutexGuard::unlocked(guard, || {
            let waited = self.changed.wait_timeout_while(signals, timeout, |signals| *signals == before);
            waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
        });
        let waiting = self.waiting.fetch_sub(1, Ordering::SeqCst);
        debug_assert!(waiting > 0, "rule 1: a thread has waited that was not counted");
        TimedOut(timed_out)
    }

    /// Waits for a notification or until `deadline`.
    pub(crate) fn wait_until<T>(&self, guard: &mut MutexGuard<'_, T>, deadline: Instant) -> TimedOut {
        self.wait_for(guard, deadline.saturating_duration_since(Instant::now()))
    }

    /// Wakes one thread that waits.
    #[inline]
    pub(crate) fn notify_one(&self) {
        self.notify(std::sync::Condvar::notify_one);
    }

    /// Wakes every thread that waits.
    #[inline]
    pub(crate) fn notify_all(&self) {
        self.notify(std::sync::Condvar::notify_all);
    }

    #[inline]
    fn notify(&self, wake: impl FnOnce(&std::sync::Condvar)) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            let mut signals = self.signals.lock().unwrap_or_else(PoisonError::into_inner);
            *signals += 1;
            // Rule 3.
            wake(&self.changed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_wait_times_out_and_a_notification_is_not_lost() {
        let shared = Arc::new((parking_lot::Mutex::new(0_u32), Condvar::new()));
        assert!(shared.1.wait_for(&mut shared.0.lock(), Duration::from_millis(5)).timed_out());
        let threads = (0..4).map(|_| {
            let shared = shared.clone();
            std::thread::spawn(move || {
                for _ in 0..1000 {
                    let mut turn = shared.0.lock();
                    while *turn == 0 {
                        shared.1.wait(&mut turn);
                    }
                    *turn -= 1;
                }
            })
        });
        let threads: Vec<_> = threads.collect();
        for n in 0..4000 {
            *shared.0.lock() += 1;
            if n % 3 == 0 { shared.1.notify_all() } else { shared.1.notify_one() }
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(*shared.0.lock(), 0);
    }
}
