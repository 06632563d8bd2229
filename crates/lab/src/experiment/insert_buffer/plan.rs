//! The media and settings, and the options and load of each.

use crate::experiment::measurement::{MIN_SERVER_POOL_BYTES, Measurement, MeasurementSpec, log_bytes};
use crate::experiment::metric::{self, Axis, Metric};
use crate::experiment::{Cell, CellResult, DeviceChoice, Plan, Scale, SubjectKind, Workspace, setting};
use crate::subject::{Load, Settings};
use highwater_bench::Result;
use highwater_bench::run::RunOptions;
use highwater_bench::workload::sysbench::{Config, Profile, RandType};
use std::collections::BTreeMap;

pub(super) const MEDIUM: Axis = Axis::new("medium");
pub(super) const BUFFERING: Axis = Axis::new("change_buffering");

pub(super) const SSD: &str = "SSD";
pub(super) const HDD: &str = "hard disk";
pub(super) const MEDIA: [&str; 2] = [SSD, HDD];
pub(super) const OFF: &str = "off";
pub(super) const DISK: &str = "disk";
pub(super) const MEMORY: &str = "memory";
pub(super) const BUFFERINGS: [&str; 3] = [OFF, DISK, MEMORY];

pub(super) const SSD_PRESET: &str = "samsung-850-pro-256gb";
pub(super) const HDD_PRESET: &str = "wd10ezex-1tb";
/// Both devices, one after another.
pub(super) const BOTH: &str = "samsung-850-pro-256gb+wd10ezex-1tb";

pub(super) const SECONDARY_INDEXES: usize = 6;
const TABLES: u64 = 2;
pub(super) const THREADS: usize = 16;
/// Bytes of a row, its entries in the secondary indexes included.
const ROW_BYTES: u64 = 330;
/// Milliseconds in the old part of the LRU list after which a page may become young. In the paper a page crossed that
/// part in more than InnoDB's default, a second; through these pools it crosses in milliseconds. Servers need this
/// setting; Highwater has it too, but its list has a second rule, by pages that came in instead of by time.
const OLD_BLOCKS_TIME_MS: u64 = 1;
/// Committed transactions that purge may be behind: on the virtual clock transactions are done as fast as the
/// processors allow, and what purge leaves undone would not be measured.
const MAX_PURGE_LAG: u64 = 100;
const PAPER_POOL_BYTES: u64 = 1 << 30;

/// Ratio of data to pool: 100 in the paper.
pub(super) fn data_to_pool(scale: Scale) -> u64 {
    scale.of([20, 100, 100, 100])
}

pub(super) fn pool_bytes(scale: Scale) -> u64 {
    scale.of([MIN_SERVER_POOL_BYTES, MIN_SERVER_POOL_BYTES, 8 << 20, PAPER_POOL_BYTES])
}

/// Twice the pool.
pub(super) fn log_of(scale: Scale) -> u64 {
    log_bytes(2 * pool_bytes(scale))
}

/// Transactions before the measured ones, and those.
pub(super) fn transactions(scale: Scale, medium: &str, subject: SubjectKind) -> (u64, u64) {
    match (medium, subject.is_server()) {
        (HDD, true) => scale.of([(5, 15), (25, 100), (50, 150), (20_000, 50_000)]),
        (_, true) => scale.of([(100, 200), (2_000, 2_000), (2_000, 4_000), (1_000_000, 3_000_000)]),
        _ => scale.of([(500, 500), (4_000, 4_000), (6_000, 8_000), (1_000_000, 3_000_000)]),
    }
}

/// The media of the plan's device.
pub(super) fn media(device: &DeviceChoice) -> Vec<&'static str> {
    MEDIA.into_iter().filter(|medium| device.name() == BOTH || device.name() == preset_of(medium)).collect()
}

fn preset_of(medium: &str) -> &'static str {
    if medium == HDD { HDD_PRESET } else { SSD_PRESET }
}

pub(super) fn cells(plan: &Plan) -> Vec<Cell> {
    let mut cells = Vec::new();
    for repetition in 0..plan.repetitions.max(plan.server_repetitions) {
        for medium in media(&plan.device) {
            for subject in plan.subjects.iter().filter(|subject| repetition < plan.repetitions_of(**subject)) {
                let setting = |buffering| setting([(MEDIUM, medium), (BUFFERING, buffering)]);
                let cell = |buffering| Cell::new(*subject, preset_of(medium), setting(buffering), repetition);
                cells.extend(BUFFERINGS.map(cell));
            }
        }
    }
    cells
}

pub(super) fn settings(subject: SubjectKind, buffering: &str, scale: Scale) -> Settings {
    let pool = pool_bytes(scale);
    let own = |name| subject.option_of_highwater(name);
    let (option, value, old_blocks_time) = match (subject.is_highwater(), buffering) {
        (true, _) => (own(BUFFERING.name()), buffering, own("old_blocks_time_ms")),
        (false, OFF) => ("innodb_change_buffering".into(), "none", "innodb_old_blocks_time".into()),
        (false, _) => ("innodb_change_buffering".into(), "all", "innodb_old_blocks_time".into()),
    };
    let mut extra = BTreeMap::from([(option, value.to_string()), (old_blocks_time, OLD_BLOCKS_TIME_MS.to_string())]);
    if !subject.is_server() {
        extra.insert("max_purge_lag".into(), MAX_PURGE_LAG.to_string());
    }
    Settings {
        buffer_pool_bytes: pool,
        log_bytes: log_of(scale),
        flush_neighbors: "0".into(),
        doublewrite: subject.is_highwater(),
        lru_scan_depth: (pool / (16 << 10) / 4).clamp(96, 1024),
        extra,
        ..Settings::default()
    }
}

pub(super) fn measure(plan: &Plan, cell: &Cell, workspace: &mut Workspace<'_>) -> Result<CellResult> {
    let (subject, medium, buffering) = (cell.kind()?, cell.get(MEDIUM), cell.get(BUFFERING));
    let data_bytes = pool_bytes(plan.scale) * data_to_pool(plan.scale);
    let load = Config {
        profile: Profile::ReadWrite,
        tables: TABLES,
        table_size: data_bytes / ROW_BYTES / TABLES,
        secondary_indexes: SECONDARY_INDEXES,
        rand_type: RandType::Uniform,
        seed: plan.seed_of(cell),
        ..Config::default()
    };
    let (warmup_events, events) = transactions(plan.scale, medium, subject);
    let device = DeviceChoice::Preset(preset_of(medium).into());
    let spec = MeasurementSpec {
        settings: settings(subject, buffering, plan.scale),
        device: &device,
        data_bytes,
        // Servers need a mounted device, which takes real time.
        virtual_time: !subject.is_server(),
        page_types: true,
        system_in_memory: !subject.is_highwater() && buffering == MEMORY,
        warmup_events,
        options: RunOptions { threads: THREADS, seconds: 0.0, events, ..RunOptions::default() },
        ..MeasurementSpec::of(plan, cell, Load::Sysbench(load))
    };
    Ok(measured(&spec.run(workspace)?, spec.virtual_time))
}

const COUNTERS: [Metric; 7] = [
    metric::CHANGE_BUFFER_BYTES,
    metric::CHANGE_BUFFER_CARRIED_BYTES,
    metric::CHANGE_BUFFER_MERGES,
    metric::CHANGE_BUFFER_MERGED_INSERTS,
    metric::CHANGE_BUFFER_MERGED_DELETE_MARKS,
    metric::CHANGE_BUFFER_MERGED_DELETES,
    metric::CHANGE_BUFFER_OPS_BUFFERED,
];

fn measured(taken: &Measurement, virtual_time: bool) -> CellResult {
    let (mut measured, result) = (taken.measured(), &taken.result);
    for counter in COUNTERS {
        measured.put(counter, taken.counter(counter));
    }
    let pages = taken.page_types.unwrap_or_default();
    for (metric, pages) in [
        (metric::INDEX_PAGES_READ, pages.index_reads),
        (metric::INDEX_PAGES_WRITTEN, pages.index_writes),
        (metric::CHANGE_BUFFER_PAGES_READ, pages.change_buffer_reads),
        (metric::CHANGE_BUFFER_PAGES_WRITTEN, pages.change_buffer_writes),
    ] {
        measured.put(metric, pages as f64);
    }
    let device_s = result.device.as_ref().map_or(f64::NAN, |device| device.device_s);
    let seconds = if virtual_time { device_s } else { result.elapsed_s };
    measured.put(metric::ELAPSED_S, seconds);
    measured.put(metric::TPS, result.transactions as f64 / seconds);
    measured.put(metric::REQUESTS_PER_S, (result.queries.read + result.queries.write) as f64 / seconds);
    if virtual_time {
        // Latencies are by the machine's clock.
        measured.values.remove(metric::LATENCY_P99_US.name());
    }
    put_merge_ratio(&mut measured);
    measured
}

/// Merged operations, and their number per merged leaf; absent if the subject does not count them, or merged none.
pub(super) fn put_merge_ratio(measured: &mut CellResult) {
    let of = [
        metric::CHANGE_BUFFER_MERGED_INSERTS,
        metric::CHANGE_BUFFER_MERGED_DELETE_MARKS,
        metric::CHANGE_BUFFER_MERGED_DELETES,
    ];
    let ops: f64 = of.iter().map(|metric| measured.value(*metric)).sum();
    measured.put(metric::CHANGE_BUFFER_OPS_MERGED, ops);
    measured.put(metric::OPS_PER_MERGED_LEAF, ops / measured.value(metric::CHANGE_BUFFER_MERGES));
}
