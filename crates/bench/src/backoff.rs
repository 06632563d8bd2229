//! How long a client waits before it tries again what met a conflict.
//!
//! Rules
//! 1. After the first conflict of a transaction it does not wait: the other one is often gone. From the second one on
//!    it waits, twice as long each time up to [`MAX`]: a store that refuses at once, instead of letting a client wait
//!    for a lock, would else be kept busy by those that cannot continue.
//! 2. A part of the wait is drawn, so that clients that met do not meet again. The same for every store.

use std::time::Duration;

/// The wait after the second conflict.
const FIRST: Duration = Duration::from_micros(20);
/// The longest wait.
const MAX: Duration = Duration::from_micros(640);

/// The wait after this many conflicts in a row; `drawn`, from 0 to 1, says where in its upper half.
fn wait(conflicts: u64, drawn: f64) -> Duration {
    let Some(doublings) = conflicts.checked_sub(2) else { return Duration::ZERO };
    let whole = (FIRST * (1 << doublings.min(16))).min(MAX);
    whole.mul_f64(0.5 + drawn / 2.0)
}

/// Waits after this many conflicts in a row.
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
