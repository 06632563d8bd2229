//! Durations as a small histogram to which many threads add without a lock.
//!
//! Rules
//! 1. Buckets grow with the value: eight to each power of two, so a percentile is right within an eighth.
//! 2. Adding changes the counter of one bucket and the sum; reading takes a copy, which may miss concurrent additions.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Buckets to a power of two, as a power of two.
const SUB_BITS: u32 = 3;
/// Values from here on (18 minutes) share the last bucket.
const TOP_NS: u64 = 1 << 40;
const BUCKETS: usize = ((40 - SUB_BITS + 1) << SUB_BITS) as usize + 1;

/// A histogram of durations.
#[derive(Debug)]
pub(crate) struct Histogram {
    buckets: Box<[AtomicU64]>,
    sum_ns: AtomicU64,
}

/// A histogram at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatencySnapshot {
    buckets: Vec<u64>,
    sum_ns: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(), sum_ns: AtomicU64::new(0) }
    }
}

impl Histogram {
    /// Adds one duration.
    pub(crate) fn record(&self, took: Duration) {
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let bucket = bucket_of(ns);
        debug_assert!(ns >= TOP_NS || ns <= upper_ns(bucket), "rule 1: {ns} ns are counted as fewer");
        self.buckets[bucket].fetch_add(1, Relaxed);
        self.sum_ns.fetch_add(ns, Relaxed);
    }

    /// The present state.
    pub(crate) fn snapshot(&self) -> LatencySnapshot {
        let buckets = self.buckets.iter().map(|b| b.load(Relaxed)).collect();
        LatencySnapshot { buckets, sum_ns: self.sum_ns.load(Relaxed) }
    }
}

impl LatencySnapshot {
    /// Durations in it.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// All of them together, in microseconds.
    pub fn sum_us(&self) -> u64 {
        self.sum_ns / 1000
    }

    /// The number of durations of at most `us` microseconds, exact to a bucket.
    pub fn count_within_us(&self, us: u64) -> u64 {
        let limit_ns = us.saturating_mul(1000);
        let within = self.buckets.iter().enumerate().take_while(|(bucket, _)| upper_ns(*bucket) <= limit_ns);
        within.map(|(_, n)| n).sum()
    }

    /// The duration in microseconds that `percent` (0 to 100) of them do not exceed; 0 when there are none.
    pub fn percentile(&self, percent: f64) -> f64 {
        let count = self.count();
        let wanted = (count as f64 * percent.clamp(0.0, 100.0) / 100.0).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (bucket, n) in self.buckets.iter().enumerate() {
            seen += n;
            if seen >= wanted {
                return upper_ns(bucket) as f64 / 1000.0;
            }
        }
        0.0
    }

    /// The durations that were added since `earlier`.
    pub fn since(&self, earlier: &LatencySnapshot) -> LatencySnapshot {
        let difference = |(now, then): (&u64, &u64)| now.saturating_sub(*then);
        let buckets = self.buckets.iter().zip(&earlier.buckets).map(difference).collect();
        LatencySnapshot { buckets, sum_ns: difference((&self.sum_ns, &earlier.sum_ns)) }
    }
}

fn bucket_of(ns: u64) -> usize {
    if ns >= TOP_NS {
        return BUCKETS - 1;
    }
    if ns < 1 << SUB_BITS {
        return ns as usize;
    }
    let shift = ns.ilog2() - SUB_BITS;
    (((shift + 1) << SUB_BITS) as u64 + (ns >> shift) - (1 << SUB_BITS)) as usize
}

/// The largest value of the bucket.
fn upper_ns(bucket: usize) -> u64 {
    let (power, sub) = (bucket as u64 >> SUB_BITS, bucket as u64 & ((1 << SUB_BITS) - 1));
    if power == 0 { sub } else { ((sub + (1 << SUB_BITS) + 1) << (power - 1)) - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket() {
        let mut values: Vec<u64> =
            (0..40).flat_map(|p| [(1 << p) - 1, 1 << p, (1 << p) + 1, (1 << p) * 11 / 8]).collect();
        values.sort_unstable();
        for ns in values.into_iter().filter(|ns| *ns < TOP_NS) {
            let bucket = bucket_of(ns);
            assert!(upper_ns(bucket) >= ns, "{ns}");
            assert!(bucket == 0 || upper_ns(bucket - 1) < ns, "{ns}");
            assert!(upper_ns(bucket) - ns <= ns / 8 + 1, "{ns}");
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
        assert_eq!(bucket_of(TOP_NS - 1), BUCKETS - 2);
    }

    #[test]
    fn percentiles() {
        let histogram = Histogram::default();
        assert_eq!(histogram.snapshot().percentile(99.0), 0.0);
        (1..=1000).for_each(|us| histogram.record(Duration::from_micros(us)));
        let all = histogram.snapshot();
        assert_eq!((all.count(), all.sum_us()), (1000, 500_500));
        for (percent, exact) in [(50.0, 500.0), (99.0, 990.0), (100.0, 1000.0), (0.0, 1.0)] {
            let found = all.percentile(percent);
            assert!((exact..=exact * 1.13).contains(&found), "{percent}: {found}");
        }
        histogram.record(Duration::from_secs(5));
        let later = histogram.snapshot().since(&all);
        assert_eq!((later.count(), later.sum_us()), (1, 5_000_000));
        assert!(later.percentile(1.0) >= 5e6);
    }
}
