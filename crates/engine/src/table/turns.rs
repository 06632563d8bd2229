//! The turns of a schema change that waits for transactions: the times for which it bars new ones, and lets them pass.
//!
//! Rules
//! 1. After the first, short bar, transactions are barred for at most two fifths of the wait, and for at most a fifth
//!    of it at a time. So an idle transaction delays the others, but none of them reaches its own timeout if that has
//!    the same length.
//! 2. Each bar is twice as long as the previous one, so a schema change completes among any number of transactions with
//!    a length of up to a tenth of its timeout.
//! 3. The first bar is short, because most transactions are short, and because a transaction inside may wait for a
//!    barred one until the bar ends.

use std::time::Duration;

/// Longer than most transactions.
const FIRST_BAR: Duration = Duration::from_millis(100);
const PASS_TO_BAR: u32 = 3;

/// One turn: transactions are barred, then they pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) bar: Duration,
    pub(super) pass: Duration,
}

/// The turns of a wait, without end.
#[derive(Debug)]
pub(super) struct Turns {
    next_bar: Duration,
    longest_bar: Duration,
}

impl Default for Turns {
    fn default() -> Turns {
        Turns { next_bar: FIRST_BAR, longest_bar: Duration::MAX }
    }
}

impl Turns {
    /// Turns of which none bars longer than four tenths of a second: for a change concurrently with writers, which
    /// waits for the end of short transactions only.
    pub(super) fn short() -> Turns {
        Turns { longest_bar: 4 * FIRST_BAR, ..Turns::default() }
    }
}

impl Iterator for Turns {
    type Item = Turn;

    fn next(&mut self) -> Option<Turn> {
        let bar = self.next_bar;
        self.next_bar = bar.saturating_mul(2).min(self.longest_bar);
        Some(Turn { bar, pass: bar.saturating_mul(PASS_TO_BAR) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bars of a wait that ends by this timeout.
    fn bars(timeout: Duration) -> Vec<Duration> {
        let mut begin = Duration::ZERO;
        let begun = Turns::default().map_while(|turn| {
            let bar = turn.bar.min(timeout.checked_sub(begin)?);
            begin += turn.bar + turn.pass;
            Some(bar)
        });
        begun.collect()
    }

    #[test]
    fn short_turns_stay_short() {
        let bars: Vec<_> = Turns::short().take(20).map(|turn| turn.bar.as_millis()).collect();
        assert_eq!(bars[..4], [100, 200, 400, 400]);
        assert_eq!(bars[19], 400);
    }

    #[test]
    fn transactions_pass_most_of_the_time_and_a_long_bar_comes_too() {
        for ms in (1..2_000).chain((2_000..100_000).step_by(37)).chain([1 << 30]) {
            let (timeout, bars) = (Duration::from_millis(ms), bars(Duration::from_millis(ms)));
            let (longest, sum) = (*bars.iter().max().unwrap(), bars.iter().sum::<Duration>());
            assert!(longest <= timeout / 5 + FIRST_BAR * 4 / 5, "{timeout:?}: {longest:?} at one stretch");
            assert!(sum <= FIRST_BAR + timeout * 2 / 5, "{timeout:?}: {sum:?} in all");
            assert!(longest >= timeout / 10 || bars.len() == 1, "{timeout:?}: {longest:?} is too short");
        }
    }
}
