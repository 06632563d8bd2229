//! Histograms of latencies, from nanoseconds to hours, exact to 1 %.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Significant digits of the histogram: a value and its class differ by less than 1 %.
const SIGNIFICANT_DIGITS: u8 = 2;

/// Latencies of a kind of request in nanoseconds. Mean and maximum are exact.
#[derive(Clone)]
pub struct Latencies {
    histogram: Histogram<u64>,
    sum_ns: u128,
    max_ns: u64,
}

impl Default for Latencies {
    fn default() -> Latencies {
        let histogram = Histogram::new(SIGNIFICANT_DIGITS).expect("two digits are allowed");
        Latencies { histogram, sum_ns: 0, max_ns: 0 }
    }
}

impl Latencies {
    /// Counts one value.
    pub fn record(&mut self, ns: u64) {
        // Only a histogram of a fixed size refuses values.
        let _ = self.histogram.record(ns);
        self.sum_ns += u128::from(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// The figures of a report.
    pub fn summary(&self) -> Latency {
        let us = |ns: u64| ns as f64 / 1000.0;
        let quantile = |q: f64| us(self.histogram.value_at_quantile(q).min(self.max_ns));
        let requests = self.histogram.len();
        Latency {
            requests,
            mean_us: if requests == 0 { 0.0 } else { self.sum_ns as f64 / requests as f64 / 1000.0 },
            p50_us: quantile(0.5),
            p99_us: quantile(0.99),
            p999_us: quantile(0.999),
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
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// Maximum.
    pub max_us: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_one_percent() {
        let mut latencies = Latencies::default();
        (1..=1000u64).for_each(|i| latencies.record(i * 1000));
        let summary = latencies.summary();
        assert!((summary.p50_us / 500.0 - 1.0).abs() < 0.01, "{summary:?}");
        assert!((summary.p99_us / 990.0 - 1.0).abs() < 0.01, "{summary:?}");
        assert_eq!((summary.max_us, summary.requests, summary.mean_us), (1000.0, 1000, 500.5));
        assert_eq!(Latencies::default().summary().p99_us, 0.0);
    }

    #[test]
    fn the_longest_wait_fits() {
        let mut latencies = Latencies::default();
        [0, u64::MAX >> 1].into_iter().for_each(|ns| latencies.record(ns));
        assert_eq!(latencies.summary().requests, 2);
    }
}
