//! Giving way between transactions: where more threads change rows than there are processors, the system takes the
//! processor from a thread when its slice is over, in the middle of a transaction, and all who need its rows, its
//! latches or its mutexes wait until it runs again. A thread that offers its processor between two transactions begins
//! the next one with a new slice.
//!
//! Rules
//! 1. A thread gives way after a commit, when it holds nothing.
//! 2. It does so only while at least as many other transactions are active as there are processors: then one of them,
//!    at least, does not run.
//! 3. Commits that are synced wait for the device: a thread that makes them gives its processor up anyway.

use super::system::TxnSystem;
use crate::sync::processors;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// A thread gives way once in so long, at most. A slice has a few milliseconds; giving way costs about a microsecond.
const INTERVAL: Duration = Duration::from_micros(100);

thread_local! {
    static LAST: Cell<Option<Instant>> = const { Cell::new(None) };
}

impl TxnSystem {
    /// Gives way, if it is time to and others wait for a processor.
    pub(super) fn give_way(&self) {
        let now = Instant::now();
        if LAST.get().is_some_and(|last| now.duration_since(last) < INTERVAL) {
            return;
        }
        LAST.set(Some(now));
        if self.active_count() >= processors() {
            std::thread::yield_now();
        }
    }
}
