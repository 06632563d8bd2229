//! The wait of a client before it retries a transaction after a conflict.
//!
//! Rules
//! 1. After the first conflict of a transaction the client retries at once, because the other transaction has often
//!    ended. After each later conflict it waits, twice as long each time, up to [`MAX`]. Otherwise the retries would
//!    keep a store busy that refuses a conflicting transaction at once instead of letting it wait for a lock.
//! 2. A part of the wait is random, so that two clients do not meet again. The rule is the same for every store.

use std::time::Duration;

/// The wait after the second conflict.
const FIRST: Duration = Duration::from_micros(20);
/// The longest wait.
const MAX: Duration = Duration::from_micros(640);

/// The wait after this many consecutive conflicts: a value in its upper half, at the fraction `drawn` from 0 to 1.
fn wait(conflicts: u64, drawn: f64) -> Duration {
    let Some(doublings) = conflicts.checked_sub(2) else { return Duration::ZERO };
    let whole = (FIRST * (1 << doublings.min(16))).min(MAX);
    whole.mul_f64(0.5 + drawn / 2.0)
}

/// Waits after this many consecutive conflicts.
pub(crate) fn pause(conflicts: u64) {
    if conflicts > 1 {
        std::thread::sleep(wait(conflicts, fastrand::f64()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest() {
        let waits = |drawn| [0, 1, 2, 3, 7, 8, 1_000_000].map(|conflicts| wait(conflicts, drawn).as_micros());
        assert_eq!(waits(1.0), [0, 0, 20, 40, 640, 640, 640]);
        assert_eq!(waits(0.0), [0, 0, 10, 20, 320, 320, 320]);
    }
}
