//! The parser of sysbench 1.0's output.
//!
//! Rules
//! 1. Numbers are taken from the lines sysbench names; an unknown line is ignored, a missing one is an error that names
//!    it.
//! 2. Milliseconds become microseconds. Percentiles other than the one printed come from the histogram
//!    (`--histogram=on`).

use highwater_bench::result::{LatencyUs, Queries};
use highwater_bench::{Error, Result};

/// One line of `--report-interval`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct IntervalLine {
    pub(super) at_s: f64,
    pub(super) threads: u64,
    pub(super) tps: f64,
    pub(super) reads_per_s: f64,
    pub(super) writes_per_s: f64,
    pub(super) other_per_s: f64,
    pub(super) p95_us: f64,
    pub(super) errors_per_s: f64,
}

/// The number that follows `name` in `line`.
fn after(line: &str, name: &str) -> Option<f64> {
    let rest = line.split_once(name)?.1.trim_start();
    let end = rest.find(|c: char| !matches!(c, '0'..='9' | '.' | '-' | 'e')).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// Reads a line such as
/// `[ 1s ] thds: 4 tps: 50.00 qps: 1000.00 (r/w/o: 700.00/200.00/100.00) lat (ms,95%): 5.50 err/s: 0.00 ...`.
pub(super) fn interval(line: &str) -> Option<IntervalLine> {
    let line = line.trim();
    if !line.starts_with('[') {
        return None;
    }
    let mut kinds = line.split_once("(r/w/o: ")?.1.split_once(')')?.0.split('/').map(|n| n.parse::<f64>().ok());
    Some(IntervalLine {
        at_s: after(line, "[")?,
        threads: after(line, "thds:")? as u64,
        tps: after(line, "tps:")?,
        reads_per_s: kinds.next()??,
        writes_per_s: kinds.next()??,
        other_per_s: kinds.next()??,
        p95_us: after(line, "lat (ms,95%):")? * 1000.0,
        errors_per_s: after(line, "err/s:")?,
    })
}

/// The summary at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Totals {
    pub(super) elapsed_s: f64,
    pub(super) transactions: u64,
    pub(super) errors: u64,
    pub(super) queries: Queries,
    pub(super) latency_us: LatencyUs,
}

/// Reads the summary out of everything sysbench printed.
///
/// # Errors
/// [`Error::Data`] names the line that is missing.
pub(super) fn totals(text: &str) -> Result<Totals> {
    let number = |name: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(name));
        let found = line.and_then(|line| after(line, name));
        found.ok_or_else(|| Error::Data(format!("sysbench printed no {name:?}: {}", end_of(text))))
    };
    let buckets = histogram(text);
    let p95 = number("95th percentile:")? * 1000.0;
    Ok(Totals {
        elapsed_s: number("total time:")?,
        transactions: number("total number of events:")? as u64,
        errors: number("ignored errors:")? as u64,
        queries: Queries {
            read: number("read:")? as u64,
            write: number("write:")? as u64,
            other: number("other:")? as u64,
        },
        latency_us: LatencyUs {
            min: number("min:")? * 1000.0,
            mean: number("avg:")? * 1000.0,
            p50: quantile(&buckets, 0.50).unwrap_or(0.0),
            p95,
            p99: quantile(&buckets, 0.99).unwrap_or(0.0),
            p999: quantile(&buckets, 0.999).unwrap_or(0.0),
            max: number("max:")? * 1000.0,
        },
    })
}

fn end_of(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(6)..].join(" | ")
}

/// Latency in microseconds and count of each bucket: lines such as `       1.044 |****                  42`.
fn histogram(text: &str) -> Vec<(f64, u64)> {
    let lines = text.lines().filter_map(|line| {
        let (latency, rest) = line.split_once('|')?;
        let count = rest.trim_start_matches(['*', ' ']).trim();
        Some((latency.trim().parse::<f64>().ok()? * 1000.0, count.parse().ok()?))
    });
    lines.collect()
}

fn quantile(buckets: &[(f64, u64)], quantile: f64) -> Option<f64> {
    let total: u64 = buckets.iter().map(|bucket| bucket.1).sum();
    let wanted = (total as f64 * quantile).ceil() as u64;
    let mut seen = 0;
    buckets
        .iter()
        .find(|bucket| {
            seen += bucket.1;
            seen >= wanted
        })
        .map(|bucket| bucket.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of sysbench 1.0.20 in a run of three seconds.
    const RECORDED: &str = include_str!("recorded.txt");

    #[test]
    fn intervals_are_read() {
        let lines: Vec<IntervalLine> = RECORDED.lines().filter_map(interval).collect();
        assert_eq!(lines.len(), 3);
        let first = IntervalLine {
            at_s: 1.0,
            threads: 4,
            tps: 307.10,
            reads_per_s: 4311.30,
            writes_per_s: 1228.38,
            other_per_s: 618.18,
            p95_us: 44_170.0,
            errors_per_s: 0.0,
        };
        assert_eq!(lines[0], first);
        assert_eq!(interval("[ 2s ] thds: 4 tps: many"), None);
        assert_eq!(interval("Threads started!"), None);
    }

    #[test]
    fn our_own_interval_lines_are_read_alike() {
        let line = "[ 10s ] thds: 4 tps: 50.00 qps: 1000.00 (r/w/o: 700.00/200.00/100.00) lat (ms,95%): 5.50 err/s: \
                    0.25 reconn/s: 0.00";
        let found = interval(line).unwrap();
        assert_eq!((found.at_s, found.tps, found.other_per_s, found.p95_us), (10.0, 50.0, 100.0, 5_500.0));
        assert_eq!(found.errors_per_s, 0.25);
    }

    #[test]
    fn the_summary_is_read() {
        let totals = totals(RECORDED).unwrap();
        assert_eq!((totals.transactions, totals.errors, totals.elapsed_s), (849, 0, 3.0155));
        assert_eq!(totals.queries, Queries { read: 11_886, write: 3_396, other: 1_698 });
        let l = totals.latency_us;
        let found = [l.min, l.mean, l.max, l.p50, l.p95, l.p99].map(|us| us.round() as u64);
        assert_eq!(found, [960, 14_170, 140_250, 8_428, 42_610, 61_083]);
    }

    #[test]
    fn a_summary_that_is_cut_off_names_what_is_missing() {
        let cut = RECORDED.split("General statistics").next().unwrap();
        let error = totals(cut).unwrap_err().to_string();
        assert!(error.contains("95th percentile:") && error.contains("reconnects"), "{error}");
    }

    #[test]
    fn quantiles_are_of_all_transactions() {
        let buckets = [(1.0, 1), (2.0, 98), (3.0, 1)];
        assert_eq!(quantile(&buckets, 0.5), Some(2.0));
        assert_eq!(quantile(&buckets, 0.99), Some(2.0));
        assert_eq!(quantile(&buckets, 1.0), Some(3.0));
        assert_eq!(quantile(&[], 0.5), None);
    }
}
