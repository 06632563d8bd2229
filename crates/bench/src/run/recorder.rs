//! Counts of the clients: latencies by kind, statements, errors.

use crate::result::{LatencyUs, Queries};
use crate::workload::Outcome;
use hdrhistogram::Histogram;
use std::time::Duration;

/// Maximum recorded latency in nanoseconds; a longer one is recorded as this.
const MAX_LATENCY_NS: u64 = 3_600_000_000_000;

/// Two digits: every percentile is within 1 %.
const LATENCY_DIGITS: u8 = 2;

pub(super) type Latencies = Histogram<u64>;

fn latencies() -> Latencies {
    Latencies::new_with_bounds(1, MAX_LATENCY_NS, LATENCY_DIGITS).expect("constant bounds are valid")
}

fn nanoseconds(latency: Duration) -> u64 {
    latency.as_nanos().min(u128::from(MAX_LATENCY_NS)) as u64
}

/// The counts of one client, or of all clients.
pub(super) struct Recorder {
    pub(super) kinds: Vec<Latencies>,
    /// Times until the end of the run, of transactions that had not succeeded by then.
    unfinished: Latencies,
    pub(super) rolled_back: Vec<u64>,
    pub(super) queries: Queries,
    pub(super) errors: u64,
    pub(super) busy: Duration,
}

impl Recorder {
    pub(super) fn new(kinds: usize) -> Recorder {
        Recorder {
            kinds: (0..kinds).map(|_| latencies()).collect(),
            unfinished: latencies(),
            rolled_back: vec![0; kinds],
            queries: Queries::default(),
            errors: 0,
            busy: Duration::ZERO,
        }
    }

    pub(super) fn record(&mut self, outcome: &Outcome, latency: Duration, errors: u64) {
        self.kinds[outcome.kind].saturating_record(nanoseconds(latency));
        self.rolled_back[outcome.kind] += u64::from(outcome.rolled_back);
        self.queries.read += u64::from(outcome.reads);
        self.queries.write += u64::from(outcome.writes);
        self.queries.other += u64::from(outcome.other);
        self.errors += errors;
        self.busy += latency;
    }

    /// Records a transaction that had not succeeded when the run stopped, with its time so far.
    pub(super) fn give_up(&mut self, so_far: Duration, errors: u64) {
        self.unfinished.saturating_record(nanoseconds(so_far));
        self.errors += errors;
    }

    /// Number of transactions that succeeded.
    pub(super) fn transactions(&self) -> u64 {
        self.kinds.iter().map(Histogram::len).sum()
    }

    pub(super) fn all_latencies(&self) -> Latencies {
        let mut all = latencies();
        for kind in self.kinds.iter().chain([&self.unfinished]) {
            // The bounds are the same, so nothing can be out of range.
            let _ = all.add(kind);
        }
        all
    }

    pub(super) fn add(&mut self, other: &Recorder) {
        for (mine, theirs) in self.kinds.iter_mut().zip(&other.kinds) {
            let _ = mine.add(theirs);
        }
        let _ = self.unfinished.add(&other.unfinished);
        for (mine, theirs) in self.rolled_back.iter_mut().zip(&other.rolled_back) {
            *mine += theirs;
        }
        self.queries.read += other.queries.read;
        self.queries.write += other.queries.write;
        self.queries.other += other.queries.other;
        self.errors += other.errors;
        self.busy += other.busy;
    }

    pub(super) fn clear(&mut self) {
        self.kinds.iter_mut().chain([&mut self.unfinished]).filter(|k| !k.is_empty()).for_each(Histogram::reset);
        self.rolled_back.fill(0);
        self.queries = Queries::default();
        self.errors = 0;
        self.busy = Duration::ZERO;
    }
}

pub(super) fn latency_us(latencies: &Latencies) -> LatencyUs {
    if latencies.is_empty() {
        return LatencyUs::default();
    }
    let us = |ns: u64| ns as f64 / 1000.0;
    LatencyUs {
        min: us(latencies.min()),
        mean: latencies.mean() / 1000.0,
        p50: us(latencies.value_at_quantile(0.50)),
        p95: us(latencies.value_at_quantile(0.95)),
        p99: us(latencies.value_at_quantile(0.99)),
        p999: us(latencies.value_at_quantile(0.999)),
        max: us(latencies.max()),
    }
}
