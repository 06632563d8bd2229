//! One measurement of a workload on a subject at a place, for most experiments.

use super::metric::{self, Metric, info};
use super::page_types::PageTypes;
use super::{Cell, CellResult, DeviceChoice, Plan, Workspace};
use crate::measure::{PlaceSpec, SizedDevice, Testbed};
use crate::subject::{Load, MemoryGroup, Running, Settings};
use highwater::LatencySnapshot;
use highwater_bench::Result;
use highwater_bench::cpu::{CpuTimes, CpuUse};
use highwater_bench::result::RunResult;
use highwater_bench::run::RunOptions;
use highwater_device::ssd::counters::Counters;
use std::collections::BTreeMap;

/// The least redo log that every subject takes, in bytes.
pub(super) const MIN_LOG_BYTES: u64 = 4 << 20;

/// The least buffer pool that every server takes, in bytes: MariaDB 10.11 with pages of 16 KiB refuses 5 MiB.
pub(super) const MIN_SERVER_POOL_BYTES: u64 = 6 << 20;

/// Counters that every experiment keeps.
const COUNTERS: [Metric; 7] = [
    metric::PAGES_READ,
    metric::PAGES_FLUSHED,
    metric::PAGES_FLUSHED_LRU_LIST,
    metric::PAGES_FLUSHED_NEIGHBOR,
    metric::PAGES_FLUSHED_SINGLE_PAGE,
    metric::PAGES_FLUSHED_SYNC,
    metric::REDO_BYTES,
];

/// The reasons of flushes from the flush list.
const FLUSH_LIST: [Metric; 5] = [
    metric::PAGES_FLUSHED_DIRTY_PCT,
    metric::PAGES_FLUSHED_CHECKPOINT_AGE,
    metric::PAGES_FLUSHED_IDLE,
    metric::PAGES_FLUSHED_BULK_LOAD,
    metric::PAGES_FLUSHED_SYNC,
];

/// A log of about `bytes` that every subject takes: whole steps of 2 MiB.
pub(super) fn log_bytes(bytes: u64) -> u64 {
    bytes.max(MIN_LOG_BYTES).next_multiple_of(2 << 20)
}

pub(super) struct MeasurementSpec<'a> {
    pub cell: &'a Cell,
    pub load: Load,
    pub settings: Settings,
    pub device: &'a DeviceChoice,
    pub log: Option<DeviceChoice>,
    pub data_bytes: u64,
    pub mounted: bool,
    /// Whether Highwater's device in process uses the virtual clock.
    pub virtual_time: bool,
    /// Whether pages of each type are counted, of InnoDB by the mounted device.
    pub page_types: bool,
    /// Whether a server's system tablespace is in memory.
    pub system_in_memory: bool,
    /// Options of the subject with which its data are loaded, and the database made.
    pub load_options: BTreeMap<String, String>,
    /// The size of the data's emulated device; `None`: ample.
    pub sized_device: Option<SizedDevice>,
    /// Transactions to run before the measured ones, besides `warmup_s`; 0 = no warm-up.
    pub warmup_events: u64,
    pub options: RunOptions,
}

pub(super) struct Measurement {
    pub result: RunResult,
    /// Counters of the data's emulated device during the measurement.
    pub device: Option<Counters>,
    /// The counters from the beginning up to the end of each interval of the result.
    pub device_over_time: Vec<Counters>,
    pub device_capacity_bytes: Option<u64>,
    /// Pages of each type that were read and written during the measurement; `None` if they were not counted.
    pub page_types: Option<PageTypes>,
    /// Processor time meanwhile; the process is the subject's: the server, or this one.
    cpu: CpuUse,
    /// Seconds of processor time of every process of the measurement, where it is known.
    own_s: Option<f64>,
    /// Latency of page misses, for Highwater.
    page_reads: Option<LatencySnapshot>,
}

impl<'a> MeasurementSpec<'a> {
    /// A measurement of a load with the default settings and all files on the plan's device.
    pub(super) fn of(plan: &'a Plan, cell: &'a Cell, load: Load) -> MeasurementSpec<'a> {
        MeasurementSpec {
            cell,
            load,
            settings: Settings::default(),
            device: &plan.device,
            log: None,
            data_bytes: 0,
            mounted: false,
            virtual_time: false,
            page_types: false,
            system_in_memory: false,
            load_options: BTreeMap::new(),
            sized_device: None,
            warmup_events: 0,
            options: RunOptions::default(),
        }
    }

    /// Makes the place, runs the workload, stops the subject, removes the place.
    pub(super) fn run(&self, workspace: &mut Workspace<'_>) -> Result<Measurement> {
        let kind = self.cell.kind()?;
        let installed = kind.find().map_err(|missing| crate::Error::Usage(missing.to_string()))?;
        // Highwater runs in this process, so this process goes into the memory group.
        let limit = self.settings.memory_limit_bytes.filter(|_| !kind.is_server());
        let mut settings = self.settings.clone();
        settings.memory_limit_bytes = settings.memory_limit_bytes.filter(|_| limit.is_none());
        let want = PlaceSpec {
            installed: &installed,
            load: &self.load,
            settings: &settings,
            device: self.device,
            log: self.log.as_ref(),
            data_bytes: self.data_bytes,
            mounted: self.mounted,
            virtual_time: self.virtual_time,
            classify: self.page_types,
            system_in_memory: self.system_in_memory,
            load_options: &self.load_options,
            sized_device: self.sized_device.as_ref(),
        };
        let place = Testbed::prepare(workspace, &want)?;
        let group = limit.map(|bytes| MemoryGroup::new(bytes)?.enter()).transpose()?;
        workspace.step("starting")?;
        let running = place.start()?;
        let taken = self.measure(&place, &running, workspace);
        // The first failure is the one to report.
        let stopped = running.stop();
        drop(group);
        let taken = taken?;
        stopped?;
        place.close()?;
        Ok(taken)
    }

    /// Warm-up, then the run that counts.
    fn measure(&self, place: &Testbed, running: &Running, workspace: &mut Workspace<'_>) -> Result<Measurement> {
        let RunOptions { threads, warmup_s, .. } = self.options;
        if warmup_s > 0.0 || self.warmup_events > 0 {
            workspace.step("warming up")?;
            let events = self.warmup_events;
            let warmup = RunOptions { threads, seconds: warmup_s, events, ..RunOptions::default() };
            running.run(&warmup_load(&self.load), &warmup, &mut |line| workspace.tick(line))?;
        }
        workspace.step("measuring")?;
        let pid = running.pid().unwrap_or_else(std::process::id);
        let before = (place.data_counters(), page_reads(running), CpuTimes::now(pid));
        let here = CpuTimes::now(std::process::id());
        let pages = place.data_pages();
        let options = RunOptions { warmup_s: 0.0, ..self.options.clone() };
        let mut over_time = Vec::new();
        let result = running.run(&self.load, &options, &mut |line| {
            over_time.extend(place.data_counters());
            workspace.tick(line);
        })?;
        let cpu = CpuTimes::now(pid).since(&before.2);
        let clients_s = CpuTimes::now(std::process::id()).since(&here).process_s;
        // A server's clients are in this process, but sysbench's.
        let own_s = match (running.pid(), &self.load) {
            (None, _) => cpu.process_s,
            (Some(_), Load::Sysbench(_)) => None,
            (Some(_), _) => cpu.process_s.zip(clients_s).map(|(server, clients)| server + clients),
        };
        let device = place.data_counters().zip(before.0).map(|(now, before)| now.since(&before));
        let since_begin = |now: Counters| before.0.map(|begin| now.since(&begin));
        let device_over_time = over_time.into_iter().filter_map(since_begin).collect();
        let device_capacity_bytes = place.data_capacity_bytes();
        let page_reads = page_reads(running).zip(before.1).map(|(now, before)| now.since(&before));
        let is_highwater = self.cell.kind()?.is_highwater();
        let page_types = self.page_types.then(|| match is_highwater {
            true => PageTypes::counted(&result),
            false => PageTypes::of_device(&place.data_pages()).since(&PageTypes::of_device(&pages)),
        });
        Ok(Measurement { result, device, device_over_time, device_capacity_bytes, page_types, cpu, own_s, page_reads })
    }
}

/// The load with other random numbers: a run after a warm-up with the same ones would change the same rows again.
/// (sysbench takes seeds of 31 bits.)
fn warmup_load(load: &Load) -> Load {
    let mut load = load.clone();
    match &mut load {
        Load::Sysbench(config) => config.seed = config.seed.wrapping_add(1 << 30),
        Load::Tpcc(config) => config.seed = config.seed.wrapping_add(1 << 30),
        Load::UserTable(_) | Load::Ycsb(_) => {}
    }
    load
}

fn page_reads(running: &Running) -> Option<LatencySnapshot> {
    match running {
        Running::Highwater(store) => Some(store.database().page_read_latency()),
        Running::Server(_) => None,
    }
}

impl Measurement {
    /// Microseconds that `percentile` percent of the page misses did not exceed.
    pub(super) fn page_read_us(&self, percentile: f64) -> Option<f64> {
        self.page_reads.as_ref().map(|reads| reads.percentile(percentile))
    }

    /// Growth of a counter during the measurement; of a gauge its value at the end; not a number where the subject has
    /// no such counter.
    pub(super) fn counter(&self, counter: Metric) -> f64 {
        self.result.counters.get(counter.name()).map_or(f64::NAN, |value| *value as f64)
    }

    /// Growth of a counter per second.
    pub(super) fn rate(&self, counter: Metric) -> f64 {
        self.counter(counter) / self.result.elapsed_s.max(1e-9)
    }

    /// Pages flushed from the flush list, whatever the reason.
    pub(super) fn flush_list(&self) -> f64 {
        FLUSH_LIST.iter().map(|reason| self.counter(*reason)).filter(|pages| pages.is_finite()).sum()
    }

    /// Share of all processors' time that other programs used.
    fn others_pct(&self) -> Option<f64> {
        let processors = std::thread::available_parallelism().ok()?.get() as f64;
        let own = self.own_s? * 100.0 / (self.result.elapsed_s.max(1e-9) * processors);
        Some((self.cpu.machine_pct? - own).max(0.0))
    }

    /// The values every experiment keeps.
    pub(super) fn measured(&self) -> CellResult {
        let mut measured = CellResult::default();
        let r = &self.result;
        for counter in COUNTERS {
            measured.put(counter, self.counter(counter));
        }
        for (metric, value) in [
            (metric::TPS, r.tps),
            (metric::ELAPSED_S, r.elapsed_s),
            (metric::TRANSACTIONS, r.transactions as f64),
            (metric::LATENCY_P99_US, r.latency_us.p99),
            (metric::PAGES_FLUSHED_FLUSH_LIST, self.flush_list()),
            (metric::PAGES_DIRTY_AT_END, self.counter(metric::POOL_PAGES_DIRTY)),
        ] {
            measured.put(metric, value);
        }
        // Of all processors, whatever ran; and of the subject's process: the server, or Highwater with its clients and
        // device.
        for (metric, value) in [
            (metric::CPU_PCT, self.cpu.machine_pct),
            (metric::CPU_WITHHELD_PCT, self.cpu.withheld_pct),
            (metric::CPU_OTHERS_PCT, self.others_pct()),
            (metric::SUBJECT_CPU_S, self.cpu.process_s),
        ] {
            measured.put(metric, value.unwrap_or(f64::NAN));
        }
        if let Some(device) = &self.device {
            measured.put(metric::DEVICE_HOST_WRITTEN_BYTES, device.hbmw() as f64);
            measured.put(metric::DEVICE_MEDIA_WRITTEN_BYTES, device.mbmw() as f64);
            measured.put(metric::DEVICE_READ_BYTES, device.read_blocks as f64 * 4096.0);
        }
        for name in [info::SUBJECT_VERSION, info::FLUSH_NEIGHBORS, info::INNODB_FLUSH_NEIGHBORS] {
            if let Some(value) = r.config.get(name.name()) {
                measured.put_info(name, value.clone());
            }
        }
        measured
    }
}
