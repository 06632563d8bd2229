//! The expected lifetime of a page's image, a pure function of the intervals between its writes, and the group of
//! segments for it.
//!
//! Pages with similar lifetimes share a segment: its images die together, and cleaning it copies less. Time is counted
//! in bytes appended to the store, because these fill segments.
//!
//! | group | the page is written again within |
//! |---|---|
//! | 0 | a full turn of the store, or longer, or unknown |
//! | 1 | half of one |
//! | ... | half of the time of the group before |
//! | [`GROUPS`] - 1 | any shorter time |
//!
//! The estimate is the mean of the logarithms of the last intervals, the newest with a weight of a half. For a page
//! that the cleaner finds alive, its age is a lower bound.

use highwater_storage::Placement;

/// Groups of segments.
pub(super) const GROUPS: usize = Placement::LIFETIMES.len();

/// Bytes of the clock's tick.
const TICK_BYTES: u64 = 64 << 10;
const TICK_BITS: u32 = 24;
const TICK_MASK: u32 = (1 << TICK_BITS) - 1;
/// Steps of a factor of two.
const STEPS: f64 = 8.0;

/// The write history of a page in 32 bits: the tick of its last write, and the logarithm of its write interval; 0: no
/// history. An overflow of the clock (after a terabyte) only makes an estimate wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WriteHistory(pub u32);

impl WriteHistory {
    /// After another write, when `now` bytes have been appended.
    pub(super) fn written(self, now: u64) -> WriteHistory {
        let interval = self.interval_of(now).map(|newest| match self.estimate() {
            Some(before) => (before + newest) / 2.0,
            None => newest,
        });
        WriteHistory::new(now, interval)
    }

    /// After its image was copied: the page was not written since.
    pub(super) fn survived(self, now: u64) -> WriteHistory {
        let age = self.interval_of(now);
        let estimate = match (self.estimate(), age) {
            (Some(before), Some(age)) => Some(before.max(age)),
            (before, age) => before.or(age),
        };
        // The last write stays what it was.
        WriteHistory(self.0 & TICK_MASK | encode(estimate) << TICK_BITS)
    }

    /// The group of a page, in a store of `capacity` bytes that is divided into `groups` of them.
    pub(super) fn group(self, capacity: u64, groups: usize) -> usize {
        let Some(estimate) = self.estimate() else { return 0 };
        let turns = ((capacity / TICK_BYTES).max(1) as f64).log2() - estimate;
        (turns.floor().max(0.0) as usize).min(groups - 1)
    }

    fn new(now: u64, estimate: Option<f64>) -> WriteHistory {
        debug_assert!(
            encode(estimate) < 1 << (u32::BITS - TICK_BITS),
            "the estimate {estimate:?} has more than a byte"
        );
        // Tick 0 is left out, so that 0 means nothing.
        WriteHistory(tick(now).max(1) | encode(estimate) << TICK_BITS)
    }

    /// Logarithm of the ticks since its last write.
    fn interval_of(self, now: u64) -> Option<f64> {
        let last = self.0 & TICK_MASK;
        (last != 0).then(|| f64::from((tick(now).wrapping_sub(last) & TICK_MASK).max(1)).log2())
    }

    fn estimate(self) -> Option<f64> {
        let code = self.0 >> TICK_BITS;
        (code != 0).then(|| f64::from(code - 1) / STEPS)
    }
}

fn tick(now: u64) -> u32 {
    (now / TICK_BYTES) as u32 & TICK_MASK
}

/// 0 = unknown; at most 24 factors of two.
fn encode(estimate: Option<f64>) -> u32 {
    estimate.map_or(0, |log| (log * STEPS).round() as u32 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const CAPACITY: u64 = 1024 * MIB;

    fn after(intervals: &[u64]) -> (WriteHistory, u64) {
        let mut now = MIB;
        let mut history = WriteHistory::default().written(now);
        for interval in intervals {
            now += interval;
            history = history.written(now);
        }
        (history, now)
    }

    #[test]
    fn pages_that_are_written_twice_as_often_are_a_group_higher() {
        for (interval, group) in [(2048, 0), (1024, 0), (500, 1), (250, 2), (120, 3), (60, 4), (30, 5), (1, 5)] {
            let (history, _) = after(&[interval * MIB; 4]);
            assert_eq!(history.group(CAPACITY, GROUPS), group, "every {interval} MiB");
            assert_eq!(history.group(CAPACITY, 1), 0);
        }
    }

    #[test]
    fn nothing_is_known_of_a_page_that_was_written_once() {
        assert_eq!(WriteHistory::default().group(CAPACITY, GROUPS), 0);
        assert_eq!(after(&[]).0.group(CAPACITY, GROUPS), 0);
    }

    #[test]
    fn a_page_that_becomes_cold_moves_down() {
        let (history, now) = after(&[MIB; 8]);
        assert_eq!(history.group(CAPACITY, GROUPS), GROUPS - 1);
        let survived = history.survived(now + 300 * MIB);
        assert_eq!(survived.group(CAPACITY, GROUPS), 1);
        assert_eq!(survived.survived(now + 2000 * MIB).group(CAPACITY, GROUPS), 0);
        let (warmer, _) = after(&[512 * MIB, MIB, MIB, MIB]);
        assert!(warmer.group(CAPACITY, GROUPS) > 2);
    }
}
