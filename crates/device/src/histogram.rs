//! Latencies in classes of about 3 % width, from nanoseconds to hours, in fixed memory.

use serde::{Deserialize, Serialize};

const SUB_BITS: u32 = 5;
const CLASSES: usize = (64 - SUB_BITS as usize) << SUB_BITS;

/// A histogram of nanoseconds.
#[derive(Clone)]
pub struct Histogram {
    counts: Box<[u64]>,
    total: u64,
    sum_ns: u128,
    max_ns: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: vec![0; CLASSES].into_boxed_slice(), total: 0, sum_ns: 0, max_ns: 0 }
    }
}

impl Histogram {
    /// Counts one value.
    pub fn record(&mut self, ns: u64) {
        self.counts[class_of(ns)] += 1;
        self.total += 1;
        self.sum_ns += u128::from(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// The value below which the share `q` of all values lies (upper edge of its class).
    pub fn quantile_ns(&self, q: f64) -> u64 {
        let rank = (self.total as f64 * q).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (class, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return upper_edge(class).min(self.max_ns);
            }
        }
        self.max_ns
    }

    /// The figures a report shows.
    pub fn summary(&self) -> Latency {
        let us = |ns: u64| ns as f64 / 1000.0;
        Latency {
            requests: self.total,
            mean_us: if self.total == 0 { 0.0 } else { self.sum_ns as f64 / self.total as f64 / 1000.0 },
            p50_us: us(self.quantile_ns(0.5)),
            p99_us: us(self.quantile_ns(0.99)),
            p999_us: us(self.quantile_ns(0.999)),
            max_us: us(self.max_ns),
        }
    }
}

/// Latency of a kind of request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Requests counted.
    pub requests: u64,
    /// Mean.
    pub mean_us: f64,
    /// Median.
    pub p50_us: f64,
    /// 99 of 100 are faster.
    pub p99_us: f64,
    /// 999 of 1000 are faster.
    pub p999_us: f64,
    /// The slowest.
    pub max_us: f64,
}

fn class_of(ns: u64) -> usize {
    let bits = 64 - ns.leading_zeros();
    let shift = bits.saturating_sub(SUB_BITS + 1);
    (((shift as usize) << SUB_BITS) + (ns >> shift) as usize).min(CLASSES - 1)
}

fn upper_edge(class: usize) -> u64 {
    let shift = (class >> SUB_BITS).saturating_sub(1);
    let low = (class - (shift << SUB_BITS)) as u64;
    ((low + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_continuous_and_narrow() {
        let mut previous = None;
        for class in 0..CLASSES - 1 {
            let edge = upper_edge(class);
            assert_eq!(class_of(edge), class);
            assert!(previous.is_none_or(|p: u64| p < edge && class_of(p + 1) == class));
            previous = Some(edge);
        }
    }

    #[test]
    fn quantiles_are_right_within_a_class() {
        let mut histogram = Histogram::default();
        (1..=1000u64).for_each(|i| histogram.record(i * 1000));
        let summary = histogram.summary();
        assert!((summary.p50_us / 500.0 - 1.0).abs() < 0.04, "{summary:?}");
        assert!((summary.p99_us / 990.0 - 1.0).abs() < 0.04, "{summary:?}");
        assert_eq!((summary.max_us, summary.requests, summary.mean_us), (1000.0, 1000, 500.5));
        assert_eq!(Histogram::default().summary().p99_us, 0.0);
    }
}
