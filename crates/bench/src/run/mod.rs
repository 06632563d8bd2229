//! The driver: client threads, warm-up, intervals, the end.
//!
//! Rules
//! 1. Each client records into its own `Recorder` under a lock, which only the driver takes too, at the end of an
//!    interval, to replace the recorder by an empty one.
//! 2. A transaction's latency runs from its first attempt to its success: a retry after a deadlock is part of it, and
//!    counts as one error. (The workload determines what is retried.) A transaction that still fails when the run stops
//!    is not counted, but its time until then is among the latencies of all.
//! 3. The run ends after the requested seconds or transactions, whichever come first, or when no client has work. The
//!    clock stops when the last client has finished its transaction.
//! 4. The first error that is not retryable stops every client and is the run's result.
//! 5. Nothing of the warm-up is counted.
//! 6. A request to stop ([`interrupt`]) ends the run as an error; or, with `keep_interrupted` and once measuring has
//!    begun, as an end of the measurement like any other.

mod clients;
mod load;
mod measurement;
mod recorder;

use crate::error::Result;
use crate::interrupt;
use crate::result::RunResult;
use crate::store::Store;
use crate::summary::interval_line;
use crate::threads;
use crate::workload::{Workload, note_spoiled};
use clients::Shared;
pub use load::load;
use measurement::Measurement;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Length of a run and number of its threads.
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
    /// Whether a measurement that a request to stop has shortened is a result.
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

/// Runs a loaded workload and measures it. `line` gets a line for each interval.
///
/// # Errors
/// The first error of a client that is not retryable.
pub fn run<S: Store>(
    store: &S,
    workload: &dyn Workload<S>,
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
    use crate::result::Queries;
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
        let options = |seconds| {
            let (warmup_s, report_interval_s) = (0.1, seconds / 5.0);
            RunOptions { threads: 2, seconds, warmup_s, report_interval_s, ..RunOptions::default() }
        };
        // A thread that gets no processor is late, but not by the time of a long run.
        let is_punctual = [0.5, 1.0, 2.0, 4.0, 8.0, 16.0].into_iter().any(|seconds| {
            let mut lines = Vec::new();
            let result = run(&store, &workload, &options(seconds), &mut |l| lines.push(l.to_string())).unwrap();
            println!("{} s, {lines:?}", result.elapsed_s);
            assert!(result.elapsed_s >= seconds && lines.iter().all(|line| line.contains("thds: 2 tps: ")));
            result.elapsed_s < 4.0 * seconds && (3..=6).contains(&lines.len())
        });
        assert!(is_punctual);
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
