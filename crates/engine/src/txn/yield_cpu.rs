//! Yielding the CPU between transactions. With more threads than processors the system preempts a thread at the end of
//! its slice, in the middle of a transaction, and all threads that need its rows, latches or mutexes wait until it runs
//! again. Threads that yield between two transactions take short turns instead.
//!
//! Rules
//! 1. A client yields the CPU after a commit, a purge thread after a step, when it holds no lock. If no thread waits
//!    for the processor, it continues at once.
//! 2. A thread with synced commits does not yield: it waits for the device anyway.
//! 3. Yielding helps only among threads that yield. Linux treats a yielding thread as if it had used its slice, so
//!    computing threads of the application would leave the database a fraction of its share. So a thread that does not
//!    get the processor back within short turns yields eight times less often, then eight times less often again, at
//!    last once a second, until it gets the processor back in time.
//! 4. Under a model checker no thread yields: schedules must be repeatable, so they cannot depend on a clock.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// A thread yields the CPU once in this time. A slice has a few milliseconds; yielding the CPU costs less than a
/// microsecond.
const TURN: Duration = Duration::from_micros(200);
/// Longest time between two yields of a thread that did not get the processor back in time.
const MAX_TURN: Duration = Duration::from_secs(1);
/// Longest time that the turns of other threads take if they yield too: less than a slice.
const ROUND: Duration = Duration::from_micros(2500);

/// Time until the next yield of a thread that yielded after `turn` and was `away` (rule 3).
fn next_turn(turn: Duration, away: Duration) -> Duration {
    if away <= ROUND { TURN } else { (turn * 8).min(MAX_TURN) }
}

thread_local! {
    /// Time at which this thread yields the CPU next, and the length of its turn.
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
