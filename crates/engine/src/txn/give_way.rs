//! Giving way between transactions: where more threads change rows than there are processors, the system takes the
//! processor from a thread when its slice is over, in the middle of a transaction, and all who need its rows, its
//! latches or its mutexes wait until it runs again. A thread that offers its processor between two transactions begins
//! the next one with a new slice.
//!
//! Rules
//! 1. A thread gives way after a commit, when it holds nothing.
//! 2. It does so only while at least as many other transactions are active as there are processors: then one of them,
//!    at least, does not run.
//! 3. It counts them shard by shard, one each time: to look at all would take a cache line from every other processor.
//! 4. Commits that are synced wait for the device: a thread that makes them gives its processor up anyway.
//! 5. A checker repeats schedules: what its threads do depends on no clock, so there nobody gives way.

use super::system::TxnSystem;
use crate::sync::processors;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// A thread looks and gives way once in so long, at most. A slice has a few milliseconds; giving way costs about a
/// microsecond.
const INTERVAL: Duration = Duration::from_micros(100);

/// What a thread knows of those who are active.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Crowd {
    /// The shard to look at next, and the transactions that were active in those before it.
    shard: usize,
    active: usize,
    /// Whether there were as many as processors when all shards had been looked at.
    is_crowded: bool,
}

impl Crowd {
    /// What is known when so many are active in the shard that was to be looked at, the last one or not.
    fn saw(self, active: usize, is_last: bool, processors: usize) -> Crowd {
        let active = self.active + active;
        match is_last {
            true => Crowd { shard: 0, active: 0, is_crowded: active >= processors },
            false => Crowd { shard: self.shard + 1, active, ..self },
        }
    }
}

thread_local! {
    static LAST: Cell<Option<Instant>> = const { Cell::new(None) };
    static CROWD: Cell<Crowd> = const { Cell::new(Crowd { shard: 0, active: 0, is_crowded: false }) };
}

impl TxnSystem {
    /// Gives way, if it is time to and others wait for a processor.
    pub(super) fn give_way(&self) {
        if cfg!(shuttle) {
            return;
        }
        let now = Instant::now();
        if LAST.get().is_some_and(|last| now.duration_since(last) < INTERVAL) {
            return;
        }
        LAST.set(Some(now));
        let crowd = CROWD.get();
        // Of another database with more shards, perhaps.
        let shard = crowd.shard.min(self.active.shards() - 1);
        let crowd = crowd.saw(self.active.count_in(shard), shard + 1 == self.active.shards(), processors());
        CROWD.set(crowd);
        if crowd.is_crowded {
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answers after each of these shards, round after round.
    fn answers(counts: &[usize], shards: usize, processors: usize) -> Vec<bool> {
        let mut crowd = Crowd::default();
        let looked = counts.iter().enumerate().map(|(n, active)| {
            assert_eq!(crowd.shard, n % shards);
            crowd = crowd.saw(*active, n % shards + 1 == shards, processors);
            crowd.is_crowded
        });
        looked.collect()
    }

    #[test]
    fn the_crowd_is_counted_round_by_round() {
        let full = [1, 0, 1, 1];
        let half = [0, 1, 0, 0];
        assert_eq!(answers(&[full, half].concat(), 4, 3), [false, false, false, true, true, true, true, false]);
        assert_eq!(answers(&[full, full].concat(), 4, 4), [false; 8]);
        assert_eq!(answers(&[2, 1, 2], 1, 2), [true, false, true]);
    }
}
