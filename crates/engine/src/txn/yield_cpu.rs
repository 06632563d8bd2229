//! Yielding the CPU between transactions: where more threads run than there are processors, the system takes the
//! processor from a thread when its slice is over, in the middle of a transaction, and all who need its rows, its
//! latches or its mutexes wait until it runs again; the others wait for as many slices as there are threads before
//! them. Threads that offer their processor between two transactions take short turns instead.
//!
//! Rules
//! 1. A client yields the CPU after a commit, a purge thread after a step, when they hold nothing. If no thread waits
//!    for the processor, they go on at once.
//! 2. Commits that are synced wait for the device: a thread that makes them gives its processor up anyway.
//! 3. Only among threads that yield the CPU too is it worth it. Others take it as a gift: Linux counts a thread that
//!    yields the CPU as one that has used its slice, so threads of the application that only compute would leave the
//!    database a fraction of its share. So a thread that was away for longer than short turns take yields the CPU eight
//!    times less often, then eight times again, at last once a second, until it comes back in time.
//! 4. A checker repeats schedules: what its threads do depends on no clock, so there no thread yields the CPU.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// A thread yields the CPU once in this time. A slice has a few milliseconds; yielding the CPU costs less than a
/// microsecond.
const TURN: Duration = Duration::from_micros(200);
/// The longest that a thread goes on which was away for too long.
const MAX_TURN: Duration = Duration::from_secs(1);
/// How long the turns of others take, at most, if they yield the CPU too: less than a slice.
const ROUND: Duration = Duration::from_micros(2500);

/// How long a thread goes on that gave way after `turn` and was `away` (rule 3).
fn next_turn(turn: Duration, away: Duration) -> Duration {
    if away <= ROUND { TURN } else { (turn * 8).min(MAX_TURN) }
}

thread_local! {
    /// When this thread yields the CPU next, and how long its turn is.
    static TURN_ENDS: Cell<(Option<Instant>, Duration)> = const { Cell::new((None, TURN)) };
}

/// Yields the CPU, if it is time to.
pub(crate) fn yield_cpu() {
    if cfg!(shuttle) {
        return;
    }
    let now = Instant::now();
    let (ends, turn) = TURN_ENDS.get();
    if ends.is_some_and(|ends| now < ends) {
        return;
    }
    std::thread::yield_now();
    let back = Instant::now();
    let turn = next_turn(turn, back - now);
    TURN_ENDS.set((Some(back + turn), turn));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_away_for_too_long_yields_less_and_less_often() {
        let (long, short) = (Duration::from_millis(3), Duration::from_micros(200));
        let after = |times| (0..times).fold(TURN, |turn, _| next_turn(turn, long));
        assert_eq!(after(1), TURN * 8);
        assert_eq!(after(9), MAX_TURN);
        assert_eq!(next_turn(after(9), short), TURN);
    }
}
