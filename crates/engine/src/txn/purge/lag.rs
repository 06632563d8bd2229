//! The lag of purge, as values: limits and delays, warnings, damage that was met.

use crate::error::Error;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::collections::VecDeque;
use std::time::Duration;

/// InnoDB's `max_purge_lag` and `max_purge_lag_delay`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LagLimits {
    /// Length of the history list above which changes of rows are delayed; 0 = never.
    pub max_purge_lag: u64,
    /// Longest delay, in microseconds.
    pub max_delay_us: u64,
}

impl LagLimits {
    /// Delay of the change of a row in microseconds, by InnoDB's formula: 5 ms at the limit, 10 ms more for each
    /// further multiple of the limit.
    pub(crate) fn delay_us(&self, history: u64) -> u64 {
        if self.max_purge_lag == 0 || history <= self.max_purge_lag {
            return 0;
        }
        let tenths_of_ms = u128::from(history) * 100 / u128::from(self.max_purge_lag) - 50;
        u64::try_from(tenths_of_ms * 100).unwrap_or(u64::MAX).min(self.max_delay_us)
    }
}

/// The limits in force; they may change at any time.
#[derive(Debug, Default)]
pub(crate) struct LagLimitsInForce {
    max_purge_lag: AtomicU64,
    max_delay_us: AtomicU64,
}

impl LagLimitsInForce {
    pub(crate) fn set(&self, limits: LagLimits) {
        self.max_delay_us.store(limits.max_delay_us, Relaxed);
        self.max_purge_lag.store(limits.max_purge_lag, Relaxed);
    }

    /// Whether changes may be delayed.
    #[inline]
    pub(super) fn are_set(&self) -> bool {
        self.max_purge_lag.load(Relaxed) != 0
    }

    pub(super) fn get(&self) -> LagLimits {
        let (max_purge_lag, max_delay_us) = (self.max_purge_lag.load(Relaxed), self.max_delay_us.load(Relaxed));
        LagLimits { max_purge_lag, max_delay_us }
    }
}

/// The work that waits for purge, and what delays it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PurgeState {
    /// Transactions whose undo is not purged.
    pub history_list_length: u64,
    /// Undo records of transactions that have begun and ended since the opening and are not purged.
    pub purge_pending_records: u64,
    /// Bytes of the data file that undo pages take.
    pub undo_bytes: u64,
    /// For how long the oldest open snapshot has been open; zero if none is.
    pub oldest_view_age: Duration,
    /// Undo records skipped, streams and rollbacks abandoned, because of damaged pages.
    pub skipped: u64,
    /// The last of the errors that caused it, 16 at most.
    pub damage: Vec<String>,
}

/// Lengths of the history list and bytes of undo from which a warning is given.
const LONG_HISTORY: u64 = 100_000;
const MUCH_UNDO_BYTES: u64 = 256 << 20;
/// From this age on a snapshot is named as the reason why purge is behind.
const OLD_VIEW: Duration = Duration::from_secs(1);

/// Warns when purge falls behind: once, and again whenever the numbers have doubled.
#[derive(Clone, Copy, Debug, Default)]
pub struct PurgeWatch {
    told_history: u64,
    told_undo_bytes: u64,
    reported_skipped: u64,
}

impl PurgeWatch {
    /// The warning to be given now, in a line; `None` if there is none.
    pub fn look(&mut self, state: &PurgeState) -> Option<String> {
        if state.skipped > self.reported_skipped {
            self.reported_skipped = state.skipped;
            let last = state.damage.last().map_or("", String::as_str);
            return Some(format!(
                "{} undo records, streams or transactions are skipped because of damage: {last}",
                state.skipped
            ));
        }
        let (history, undo_bytes) = (state.history_list_length, state.undo_bytes);
        if history < LONG_HISTORY && undo_bytes < MUCH_UNDO_BYTES {
            (self.told_history, self.told_undo_bytes) = (0, 0);
            return None;
        }
        if history < LONG_HISTORY.max(2 * self.told_history)
            && undo_bytes < MUCH_UNDO_BYTES.max(2 * self.told_undo_bytes)
        {
            return None;
        }
        (self.told_history, self.told_undo_bytes) = (history, undo_bytes);
        let mib = undo_bytes >> 20;
        let why = match state.oldest_view_age {
            age if age >= OLD_VIEW => format!("a snapshot has been open for {} s", age.as_secs()),
            _ => "purge is slower than the writers; see --purge-threads, --max-purge-lag".to_string(),
        };
        Some(format!("the history list has grown to {history} transactions, {mib} MiB of undo: {why}"))
    }
}

/// The last errors that purge passed over.
#[derive(Debug, Default)]
pub(crate) struct PurgeDamage(Mutex<VecDeque<String>>);

/// Errors remembered.
const MAX_ERRORS: usize = 16;

impl PurgeDamage {
    pub(super) fn all(&self) -> Vec<String> {
        self.0.lock().iter().cloned().collect()
    }

    pub(crate) fn note(&self, error: &Error) {
        let mut errors = self.0.lock();
        let text = error.to_string();
        if errors.contains(&text) {
            return;
        }
        if errors.len() == MAX_ERRORS {
            errors.pop_front();
        }
        errors.push_back(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_is_that_of_innodb() {
        let table = [
            // limit, longest, history, delay
            (0, 1_000_000, u64::MAX, 0),
            (1000, 1_000_000, 0, 0),
            (1000, 1_000_000, 1000, 0),
            (1000, 1_000_000, 1001, 5_000),
            (1000, 1_000_000, 1500, 10_000),
            (1000, 1_000_000, 2000, 15_000),
            (1000, 1_000_000, 11_000, 105_000),
            (1000, 20_000, 11_000, 20_000),
            (1000, 0, 11_000, 0),
            (1, 10_000_000, u64::MAX, 10_000_000),
            (u64::MAX, 10_000_000, u64::MAX, 0),
        ];
        for (max_purge_lag, max_delay_us, history, delay_us) in table {
            let limits = LagLimits { max_purge_lag, max_delay_us };
            assert_eq!(limits.delay_us(history), delay_us, "{limits:?} {history}");
        }
    }

    #[test]
    fn the_watch_tells_once_and_again_when_it_got_twice_as_bad() {
        let mut watch = PurgeWatch::default();
        let mut look = |history_list_length, mib: u64, seconds| {
            let oldest_view_age = Duration::from_secs(seconds);
            let undo_bytes = mib << 20;
            watch.look(&PurgeState { history_list_length, undo_bytes, oldest_view_age, ..PurgeState::default() })
        };
        assert_eq!(look(99_999, 255, 1000), None);
        let told = look(100_000, 3, 7).unwrap();
        assert_eq!(
            told,
            "the history list has grown to 100000 transactions, 3 MiB of undo: a snapshot has been open for 7 s"
        );
        assert_eq!(look(199_999, 100, 8), None);
        assert!(look(200_000, 100, 0).unwrap().contains("--max-purge-lag"));
        assert!(look(10, 256, 0).is_some(), "few transactions may write much");
        assert_eq!(look(10, 511, 0), None);
        assert!(look(10, 512, 0).is_some());
        assert_eq!(look(0, 0, 0), None);
        assert!(look(100_000, 0, 0).is_some(), "again after it had caught up");
    }

    #[test]
    fn damage_is_told_when_there_is_more() {
        let mut watch = PurgeWatch::default();
        let mut state = PurgeState { skipped: 1, damage: vec!["page 7 is bad".to_string()], ..PurgeState::default() };
        assert!(watch.look(&state).unwrap().ends_with("page 7 is bad"));
        assert_eq!(watch.look(&state), None);
        state.skipped = 2;
        assert!(watch.look(&state).is_some());
    }
}
