//! The driver's part of a measurement: it collects the results of clients and store for each interval.

use super::clients::Shared;
use super::recorder::{Recorder, latency_us};
use crate::cpu::CpuTimes;
use crate::result::{Interval, KindResult, RunResult};
use crate::store::{Store, StoreStats};
use crate::workload::Workload;
use highwater_device::usage::{DeviceUsage, Mark};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// The driver's side of the measurement.
pub(super) struct Measurement<'a, S: Store> {
    store: &'a S,
    pub(super) shared: &'a Shared,
    spare: Recorder,
    interval: Recorder,
    total: Recorder,
    by_thread: Vec<(u64, Duration)>,
    pub(super) started: Instant,
    pub(super) last_tick: Instant,
    first_stats: StoreStats,
    last_stats: StoreStats,
    last_cpu: CpuTimes,
    first_mark: Option<Mark>,
    pub(super) intervals: Vec<Interval>,
}

impl<'a, S: Store> Measurement<'a, S> {
    /// Begins to measure now.
    pub(super) fn begin(store: &'a S, shared: &'a Shared, kinds: usize) -> Measurement<'a, S> {
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
            first_stats: stats.clone(),
            last_stats: stats,
            last_cpu: CpuTimes::now(std::process::id()),
            first_mark: store.disk().map(Mark::of),
            intervals: Vec::new(),
        }
    }

    /// Collects the interval that ends now.
    pub(super) fn tick(&mut self) -> &Interval {
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
            cpu_withheld_pct: cpu.since(&self.last_cpu).withheld_pct,
            ..Interval::counted(&growth)
        });
        self.last_tick = now;
        self.last_stats = stats;
        self.last_cpu = cpu;
        &self.intervals[self.intervals.len() - 1]
    }

    pub(super) fn result(self, workload: &dyn Workload<S>) -> RunResult {
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
            bytes_written: growth.bytes_written(),
            counters: growth.by_name(),
            device: self.store.disk().zip(self.first_mark).map(|(disk, mark)| DeviceUsage::since(disk, &mark)),
            intervals: self.intervals,
            ..RunResult::default()
        }
    }
}
