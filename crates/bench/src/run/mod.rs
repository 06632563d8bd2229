//! The driver: client threads, warm-up, intervals, the end.
//!
//! Rules
//! 1. Each client records into its own `Recorder` behind a lock that only the driver's interval tick ever contends for. A tick swaps in an
//!    empty one.
//! 2. A transaction's latency runs from its first attempt to its success: a retry after a deadlock is part of it, and one error.
//! 3. The run ends after so many seconds or so many transactions, whichever comes first, or when every client is out of work. The clock
//!    stops when the last client has finished its transaction.
//! 4. The first error that is not retryable stops every client and is the run's result.
//! 5. Nothing of the warm-up is counted.
//! 6. A request to stop ([`interrupt`]) ends the run as an error; or, with `keep_interrupted` and once measuring has begun, as an end of
//!    the measurement like any other.

use crate::cpu::CpuTimes;
use crate::error::{Error, Result};
use crate::interrupt;
use crate::result::{Interval, KindResult, LatencyUs, Queries, RunResult, bytes_written, counters};
use crate::store::Store;
use crate::summary::interval_line;
use crate::threads;
use crate::workload::{Client, Outcome, Workload, note_spoiled};
use hdrhistogram::Histogram;
use highwater::stats::StatsSnapshot;
use highwater_device::usage::{DeviceUsage, Mark};
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How long and with how many threads.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Client threads.
    pub threads: usize,
    /// Seconds to measure; 0 is no limit.
    pub seconds: f64,
    /// Transactions to measure; 0 is no limit.
    pub events: u64,
    /// Seconds to run before measuring.
    pub warmup_s: f64,
    /// Seconds between interval lines and samples.
    pub report_interval_s: f64,
    /// Whether a measurement that a request to stop cut short is a result.
    pub keep_interrupted: bool,
}

impl Default for RunOptions {
    fn default() -> RunOptions {
        RunOptions {
            threads: 1,
            seconds: 10.0,
            events: 0,
            warmup_s: 0.0,
            report_interval_s: 1.0,
            keep_interrupted: false,
        }
    }
}

/// Longest latency told apart, in nanoseconds; longer ones count as this.
const MAX_LATENCY_NS: u64 = 3_600_000_000_000;

/// Two digits: every percentile is within 1 %.
const LATENCY_DIGITS: u8 = 2;

type Latencies = Histogram<u64>;

fn latencies() -> Latencies {
    Latencies::new_with_bounds(1, MAX_LATENCY_NS, LATENCY_DIGITS).expect("constant bounds are valid")
}

/// What one client, or all of them, did.
struct Recorder {
    kinds: Vec<Latencies>,
    rolled_back: Vec<u64>,
    queries: Queries,
    errors: u64,
    busy: Duration,
}

impl Recorder {
    fn new(kinds: usize) -> Recorder {
        Recorder {
            kinds: (0..kinds).map(|_| latencies()).collect(),
            rolled_back: vec![0; kinds],
            queries: Queries::default(),
            errors: 0,
            busy: Duration::ZERO,
        }
    }

    fn record(&mut self, outcome: &Outcome, latency: Duration, errors: u64) {
        self.kinds[outcome.kind].saturating_record(latency.as_nanos().min(u128::from(MAX_LATENCY_NS)) as u64);
        self.rolled_back[outcome.kind] += u64::from(outcome.rolled_back);
        self.queries.read += u64::from(outcome.reads);
        self.queries.write += u64::from(outcome.writes);
        self.queries.other += u64::from(outcome.other);
        self.errors += errors;
        self.busy += latency;
    }

    fn transactions(&self) -> u64 {
        self.kinds.iter().map(Histogram::len).sum()
    }

    fn all_latencies(&self) -> Latencies {
        let mut all = latencies();
        for kind in &self.kinds {
            // The bounds are the same, so nothing can be out of range.
            let _ = all.add(kind);
        }
        all
    }

    fn add(&mut self, other: &Recorder) {
        for (mine, theirs) in self.kinds.iter_mut().zip(&other.kinds) {
            let _ = mine.add(theirs);
        }
        for (mine, theirs) in self.rolled_back.iter_mut().zip(&other.rolled_back) {
            *mine += theirs;
        }
        self.queries.read += other.queries.read;
        self.queries.write += other.queries.write;
        self.queries.other += other.queries.other;
        self.errors += other.errors;
        self.busy += other.busy;
    }

    fn clear(&mut self) {
        self.kinds.iter_mut().filter(|k| !k.is_empty()).for_each(Histogram::reset);
        self.rolled_back.fill(0);
        self.queries = Queries::default();
        self.errors = 0;
        self.busy = Duration::ZERO;
    }
}

fn latency_us(latencies: &Latencies) -> LatencyUs {
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
        max: us(latencies.max()),
    }
}

/// What clients and driver share.
struct Shared {
    recorders: Vec<Mutex<Recorder>>,
    stop: AtomicBool,
    measuring: AtomicBool,
    /// Transactions still to start, when the run is limited by them.
    events_left: AtomicU64,
    events_limited: bool,
    running: Mutex<usize>,
    finished: Condvar,
    /// Open once every client has its thread.
    gate: Mutex<bool>,
    opened: Condvar,
    failure: Mutex<Option<Error>>,
}

impl Shared {
    fn new(options: &RunOptions, kinds: usize) -> Shared {
        Shared {
            recorders: (0..options.threads).map(|_| Mutex::new(Recorder::new(kinds))).collect(),
            stop: AtomicBool::new(false),
            measuring: AtomicBool::new(false),
            events_left: AtomicU64::new(options.events),
            events_limited: options.events > 0,
            running: Mutex::new(options.threads),
            finished: Condvar::new(),
            gate: Mutex::new(false),
            opened: Condvar::new(),
            failure: Mutex::new(None),
        }
    }

    /// `None` when no more transactions are to start; otherwise whether the next one counts (the warm-up does not).
    fn next_counts(&self) -> Option<bool> {
        if self.stop.load(Relaxed) || interrupt::is_requested() {
            return None;
        }
        let counts = self.measuring.load(Relaxed);
        if counts && self.events_limited {
            self.events_left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).ok()?;
        }
        Some(counts)
    }

    fn client_loop<C: Client>(&self, client: &mut C, recorder: &Mutex<Recorder>) -> Result<()> {
        while let Some(counts) = self.next_counts() {
            let started = Instant::now();
            let mut errors = 0;
            let outcome = loop {
                match client.run() {
                    Err(error) if error.is_retryable() => {
                        errors += 1;
                        if self.stop.load(Relaxed) {
                            recorder.lock().errors += if counts { errors } else { 0 };
                            return Ok(());
                        }
                    }
                    other => break other?,
                }
            };
            let Some(outcome) = outcome else { return Ok(()) };
            if counts {
                recorder.lock().record(&outcome, started.elapsed(), errors);
            }
        }
        Ok(())
    }

    /// Runs a client until the end and tells the driver.
    fn client_thread<C: Client>(&self, mut client: C, recorder: &Mutex<Recorder>) {
        // Counted down even if the client panics, or the driver would wait for ever.
        struct Leave<'a>(&'a Shared);
        impl Drop for Leave<'_> {
            fn drop(&mut self) {
                *self.0.running.lock() -= 1;
                self.0.finished.notify_all();
            }
        }
        let leave = Leave(self);
        let mut open = self.gate.lock();
        self.opened.wait_while(&mut open, |open| !*open);
        drop(open);
        if let Err(error) = self.client_loop(&mut client, recorder) {
            self.stop.store(true, Relaxed);
            self.failure.lock().get_or_insert(error);
        }
        drop(leave);
    }

    /// Lets the clients begin.
    fn open_gate(&self) {
        *self.gate.lock() = true;
        self.opened.notify_all();
    }

    /// Ends the run before it begins: so many clients have no thread.
    fn call_off(&self, missing: usize, error: Error) {
        self.stop.store(true, Relaxed);
        self.failure.lock().get_or_insert(error);
        *self.running.lock() -= missing;
    }

    /// Waits until `deadline` or until every client has finished; returns how many still run.
    fn wait_until(&self, deadline: Option<Instant>) -> usize {
        let mut running = self.running.lock();
        while *running > 0 {
            match deadline {
                None => self.finished.wait(&mut running),
                Some(deadline) => {
                    if self.finished.wait_until(&mut running, deadline).timed_out() {
                        break;
                    }
                }
            }
        }
        *running
    }
}

/// The driver's side of the measurement.
struct Measurement<'a, S: Store> {
    store: &'a S,
    shared: &'a Shared,
    spare: Recorder,
    interval: Recorder,
    total: Recorder,
    by_thread: Vec<(u64, Duration)>,
    started: Instant,
    last_tick: Instant,
    first_stats: StatsSnapshot,
    last_stats: StatsSnapshot,
    last_cpu: CpuTimes,
    first_mark: Option<Mark>,
    intervals: Vec<Interval>,
}

impl<'a, S: Store> Measurement<'a, S> {
    /// Begins to measure now.
    fn begin(store: &'a S, shared: &'a Shared, kinds: usize) -> Measurement<'a, S> {
        shared.measuring.store(true, Relaxed);
        let (now, stats) = (Instant::now(), store.stats());
        Measurement {
            store,
            shared,
            spare: Recorder::new(kinds),
            interval: Recorder::new(kinds),
            total: Recorder::new(kinds),
            by_thread: vec![(0, Duration::ZERO); shared.recorders.len()],
            started: now,
            last_tick: now,
            first_stats: stats,
            last_stats: stats,
            last_cpu: CpuTimes::now(std::process::id()),
            first_mark: store.disk().map(Mark::of),
            intervals: Vec::new(),
        }
    }

    /// Collects the interval that ends now.
    fn tick(&mut self) -> &Interval {
        self.interval.clear();
        for (recorder, (transactions, busy)) in self.shared.recorders.iter().zip(&mut self.by_thread) {
            std::mem::swap(&mut *recorder.lock(), &mut self.spare);
            *transactions += self.spare.transactions();
            *busy += self.spare.busy;
            self.interval.add(&self.spare);
            self.spare.clear();
        }
        self.total.add(&self.interval);
        let (now, stats, cpu) = (Instant::now(), self.store.stats(), CpuTimes::now(std::process::id()));
        let length_s = now.duration_since(self.last_tick).as_secs_f64().max(1e-9);
        let growth = stats.since(&self.last_stats);
        self.intervals.push(Interval {
            at_s: now.duration_since(self.started).as_secs_f64(),
            length_s,
            tps: self.interval.transactions() as f64 / length_s,
            queries: self.interval.queries,
            errors_per_s: self.interval.errors as f64 / length_s,
            latency_us: latency_us(&self.interval.all_latencies()),
            pool_pages_free: stats.pool_pages_free,
            pool_pages_dirty: stats.pool_pages_dirty,
            pool_pages_data: stats.pool_pages_data,
            checkpoint_age_bytes: stats.checkpoint_age_bytes,
            log_syncs: growth.log_syncs,
            log_sync_us: growth.log_sync_us,
            cpu_withheld_pct: cpu.since(&self.last_cpu).withheld_pct,
            pages: (&growth).into(),
            bytes_written: bytes_written(&growth),
        });
        self.last_tick = now;
        self.last_stats = stats;
        self.last_cpu = cpu;
        &self.intervals[self.intervals.len() - 1]
    }

    fn result<W: Workload<S>>(self, workload: &W) -> RunResult {
        let elapsed_s = self.last_tick.duration_since(self.started).as_secs_f64().max(1e-9);
        let growth = self.last_stats.since(&self.first_stats);
        let committed = |kind: usize| self.total.kinds[kind].len() - self.total.rolled_back[kind];
        let kinds = workload.kinds().iter().enumerate().filter(|(n, _)| !self.total.kinds[*n].is_empty());
        RunResult {
            workload: workload.name(),
            config: workload.options(),
            elapsed_s,
            transactions: self.total.transactions(),
            tps: self.total.transactions() as f64 / elapsed_s,
            new_orders_per_min: workload.new_order_kind().map(|kind| committed(kind) as f64 * 60.0 / elapsed_s),
            errors: self.total.errors,
            rolled_back: self.total.rolled_back.iter().sum(),
            queries: self.total.queries,
            latency_us: latency_us(&self.total.all_latencies()),
            kinds: kinds
                .map(|(n, name)| {
                    let latencies = &self.total.kinds[n];
                    let (transactions, rolled_back) = (latencies.len(), self.total.rolled_back[n]);
                    (name.to_string(), KindResult { transactions, rolled_back, latency_us: latency_us(latencies) })
                })
                .collect(),
            transactions_by_thread: self.by_thread.iter().map(|t| t.0).collect(),
            execution_s_by_thread: self.by_thread.iter().map(|t| t.1.as_secs_f64()).collect(),
            pages: (&growth).into(),
            bytes_written: bytes_written(&growth),
            counters: counters(&self.first_stats, &self.last_stats),
            device: self.store.disk().zip(self.first_mark).map(|(disk, mark)| DeviceUsage::since(disk, &mark)),
            intervals: self.intervals,
            ..RunResult::default()
        }
    }
}

/// Runs a loaded workload and measures it. Each interval's line goes to `line`.
///
/// # Errors
/// The first error of a client that cannot simply be retried.
pub fn run<S: Store, W: Workload<S>>(
    store: &S,
    workload: &W,
    options: &RunOptions,
    line: &mut dyn FnMut(&str),
) -> Result<RunResult> {
    note_spoiled(store, workload)?;
    let clients = (0..options.threads).map(|n| workload.client(store, n)).collect::<Result<Vec<_>>>()?;
    let kinds = workload.kinds().len();
    let shared = Shared::new(options, kinds);
    let (measurement, keep) = std::thread::scope(|scope| {
        for (n, (client, recorder)) in clients.into_iter().zip(&shared.recorders).enumerate() {
            let work = || shared.client_thread(client, recorder);
            if let Err(error) = threads::spawn(scope, n, options.threads, work) {
                shared.call_off(options.threads - n, error);
                break;
            }
        }
        // Without a warm-up the clock and the counters start before the first client does.
        let mut begun = (options.warmup_s <= 0.0).then(|| Measurement::begin(store, &shared, kinds));
        shared.open_gate();
        if begun.is_none() {
            shared.wait_until(Some(Instant::now() + Duration::from_secs_f64(options.warmup_s)));
        }
        let keep = options.keep_interrupted && !interrupt::is_requested();
        (drive(begun.take().unwrap_or_else(|| Measurement::begin(store, &shared, kinds)), options, line), keep)
    });
    if let Some(error) = shared.failure.lock().take() {
        return Err(error);
    }
    if !keep {
        interrupt::check()?;
    }
    let mut result = measurement.result(workload);
    result.config.extend(driver_options(options));
    Ok(result)
}

fn driver_options(options: &RunOptions) -> [(String, String); 5] {
    [
        ("threads".into(), options.threads.to_string()),
        ("seconds".into(), options.seconds.to_string()),
        ("events".into(), options.events.to_string()),
        ("warmup_s".into(), options.warmup_s.to_string()),
        ("report_interval_s".into(), options.report_interval_s.to_string()),
    ]
}

/// Ticks until the end, then waits for the clients.
fn drive<'a, S: Store>(
    mut measurement: Measurement<'a, S>,
    options: &RunOptions,
    line: &mut dyn FnMut(&str),
) -> Measurement<'a, S> {
    let shared = measurement.shared;
    let started = measurement.started;
    let end = (options.seconds > 0.0).then(|| started + Duration::from_secs_f64(options.seconds));
    let interval = Duration::from_secs_f64(options.report_interval_s.max(0.01));
    let mut next = started + interval;
    loop {
        let running = shared.wait_until(Some(end.map_or(next, |end| next.min(end))));
        if running == 0 || end.is_some_and(|end| Instant::now() >= end) {
            break;
        }
        line(&interval_line(measurement.tick(), running));
        // A late tick (a stalled machine) must not be followed by a burst of early ones.
        next = (next + interval).max(Instant::now() + interval / 2);
    }
    shared.stop.store(true, Relaxed);
    shared.wait_until(None);
    let full = measurement.last_tick.elapsed() > interval / 2;
    measurement.tick();
    if full {
        let last = &measurement.intervals[measurement.intervals.len() - 1];
        line(&interval_line(last, options.threads));
    }
    measurement
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::model::Model;
    use crate::workload::sysbench::{Config, Profile, Sysbench};
    use crate::workload::{Silent, load_or_reuse};

    fn loaded(profile: Profile) -> (Model, Sysbench) {
        let store = Model::default();
        let workload = Sysbench::new(Config { profile, table_size: 200, ..Config::default() });
        load_or_reuse(&store, &workload, 1, &Silent).unwrap();
        (store, workload)
    }

    #[test]
    fn stops_after_the_events_and_counts_them() {
        let (store, workload) = loaded(Profile::ReadWrite);
        let options = RunOptions { threads: 3, seconds: 0.0, events: 500, ..RunOptions::default() };
        let result = run(&store, &workload, &options, &mut |_| {}).unwrap();
        assert_eq!((result.transactions, result.errors, result.rolled_back), (500, 0, 0));
        assert_eq!(result.queries, Queries { read: 7_000, write: 2_000, other: 1_000 });
        assert_eq!(result.transactions_by_thread.iter().sum::<u64>(), 500);
        assert_eq!(result.intervals.iter().map(|i| (i.tps * i.length_s).round() as u64).sum::<u64>(), 500);
        let latency = result.latency_us;
        assert!(0.0 < latency.min && latency.min <= latency.p50 && latency.p50 <= latency.p99, "{latency:?}");
        assert!(latency.p99 <= latency.max, "{latency:?}");
        assert_eq!(result.kinds["read_write"].transactions, 500);
        assert_eq!(result.config["threads"], "3");
        assert_eq!(result.counters["trx_commits"], 500);
    }

    #[test]
    fn stops_after_the_seconds_with_a_line_an_interval() {
        let (store, workload) = loaded(Profile::PointSelect);
        let options =
            RunOptions { threads: 2, seconds: 0.5, warmup_s: 0.1, report_interval_s: 0.1, ..RunOptions::default() };
        let mut lines = Vec::new();
        let result = run(&store, &workload, &options, &mut |l| lines.push(l.to_string())).unwrap();
        assert!((0.5..2.0).contains(&result.elapsed_s), "{}", result.elapsed_s);
        assert!((3..=6).contains(&lines.len()), "{lines:?}");
        assert!(lines[0].contains("thds: 2 tps: "), "{lines:?}");
    }

    #[test]
    fn a_deadlock_is_retried_and_counted() {
        let (store, workload) = loaded(Profile::WriteOnly);
        store.fail_next();
        let options = RunOptions { seconds: 0.0, events: 10, ..RunOptions::default() };
        let result = run(&store, &workload, &options, &mut |_| {}).unwrap();
        assert_eq!((result.transactions, result.errors), (10, 1));
    }

    #[test]
    fn data_that_were_deleted_are_not_used_again() {
        let (store, workload) = loaded(Profile::Delete);
        let options = RunOptions { seconds: 0.0, events: 10, ..RunOptions::default() };
        run(&store, &workload, &options, &mut |_| {}).unwrap();
        let error = load_or_reuse(&store, &workload, 1, &Silent).unwrap_err();
        assert!(error.to_string().contains("spoiled_by=sysbench oltp_delete"), "{error}");
    }

    #[test]
    fn another_error_ends_the_run() {
        let store = Model::default();
        let workload = Sysbench::new(Config::default());
        let error = run(&store, &workload, &RunOptions::default(), &mut |_| {}).unwrap_err();
        assert!(error.to_string().contains("sbtest1 is missing"), "{error}");
    }
}
