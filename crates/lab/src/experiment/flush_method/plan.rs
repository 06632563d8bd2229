//! The pools and methods, and the settings and load of each.

use crate::experiment::measurement::{MIN_SERVER_POOL_BYTES, MeasurementSpec, log_bytes};
use crate::experiment::metric::{self, Axis};
use crate::experiment::{Cell, CellResult, DeviceChoice, Plan, Scale, SubjectKind, Workspace, setting};
use crate::subject::{Load, Settings};
use highwater::config::{FlushMethod, OptionValue};
use highwater_bench::run::RunOptions;
use highwater_bench::workload::user_table::Config;
use highwater_bench::{Error, Result};

pub(super) const POOL: Axis = Axis::new("pool");
pub(super) const METHOD: Axis = Axis::new("flush_method");

pub(super) const FSYNC: &str = "fsync";
pub(super) const O_DIRECT: &str = "O_DIRECT";
pub(super) const METHODS: [&str; 3] = [FSYNC, O_DIRECT, "O_DSYNC"];
pub(super) const POOLS: [&str; 5] = ["16 MB", "32 MB", "64 MB", "128 MB", "256 MB"];
pub(super) const DATA_BYTES: u64 = 500 << 20;
pub(super) const MEMORY_BYTES: u64 = 4 << 30;
/// MySQL 5.5's default: two files of 5 MiB.
pub(super) const LOG_BYTES: u64 = 10 << 20;
/// Highwater takes no less.
const MIN_POOL_BYTES: u64 = 1 << 20;
pub(super) const ROWS_PER_TRANSACTION: u64 = 100;
pub(super) const THREADS: usize = 4;

/// The emulated hard disks, on which a run takes a hundred times as long as on flash; they are so slow that one run is
/// enough.
pub(super) const DISKS: [&str; 2] = ["sata-7200rpm-500gb", "wd10ezex-1tb"];

pub(super) fn is_disk(device: &DeviceChoice) -> bool {
    DISKS.contains(&device.name())
}

/// By what the paper's sizes are divided.
pub(super) fn divisor(plan: &Plan) -> u64 {
    if is_disk(&plan.device) { plan.scale.of([50, 50, 16, 1]) } else { plan.scale.of([50, 12, 3, 1]) }
}

pub(super) fn pools(scale: Scale) -> &'static [&'static str] {
    if scale == Scale::Smoke { &POOLS[3..] } else { &POOLS }
}

/// The pools that differ for a subject, and those that would be the same as the next larger one.
pub(super) fn distinct_pools(plan: &Plan, subject: SubjectKind) -> (Vec<&'static str>, Vec<&'static str>) {
    let pools = pools(plan.scale);
    let bytes = |pool: &str| pool_bytes(pool, divisor(plan), subject);
    let numbered: Vec<(usize, &str)> = pools.iter().copied().enumerate().collect();
    let (same, distinct): (Vec<_>, Vec<_>) =
        numbered.into_iter().partition(|(n, pool)| pools.get(n + 1).is_some_and(|next| bytes(pool) == bytes(next)));
    let names = |list: Vec<(usize, &'static str)>| list.into_iter().map(|(_, pool)| pool).collect();
    (names(distinct), names(same))
}

/// At the quick scale and on disks O_DSYNC, of which the document says only that it exists, is measured with the
/// smallest and the largest pool.
fn methods(plan: &Plan, pools: &[&str], pool: &str) -> &'static [&'static str] {
    let is_short = plan.scale == Scale::Quick || is_disk(&plan.device);
    let is_end = pools.first() == Some(&pool) || pools.last() == Some(&pool);
    if is_short && !is_end { &METHODS[..2] } else { &METHODS }
}

pub(super) fn min_pool_bytes(subject: SubjectKind) -> u64 {
    if subject.is_server() { MIN_SERVER_POOL_BYTES } else { MIN_POOL_BYTES }
}

pub(super) fn pool_bytes(pool: &str, by: u64, subject: SubjectKind) -> u64 {
    let megabytes: u64 = pool.trim_end_matches(" MB").parse().unwrap_or(128);
    ((megabytes << 20) / by).max(min_pool_bytes(subject))
}

pub(super) fn cells(plan: &Plan) -> Vec<Cell> {
    plan.cells(pools(plan.scale), |pool, subject| {
        let (distinct, _) = distinct_pools(plan, subject);
        let methods = if distinct.contains(&pool) { methods(plan, &distinct, pool) } else { &[] };
        methods.iter().map(|method| setting([(POOL, pool), (METHOD, method)])).collect()
    })
}

pub(super) fn measure(plan: &Plan, cell: &Cell, workspace: &mut Workspace<'_>) -> Result<CellResult> {
    let by = divisor(plan);
    let (pool, log) = (pool_bytes(cell.get(POOL), by, cell.kind()?), log_bytes(LOG_BYTES / by));
    let settings = Settings {
        buffer_pool_bytes: pool,
        log_bytes: log,
        flush_method: FlushMethod::parse(cell.get(METHOD)).map_err(Error::Usage)?,
        flush_neighbors: "1".into(),
        lru_scan_depth: 100,
        memory_limit_bytes: Some(MEMORY_BYTES / by),
        ..Settings::default()
    };
    let data = DATA_BYTES / by;
    let load = Config { bytes: data, rows_per_transaction: ROWS_PER_TRANSACTION, seed: plan.seed_of(cell) };
    let spec = MeasurementSpec {
        settings,
        data_bytes: 2 * DATA_BYTES / by,
        mounted: true,
        options: RunOptions { threads: THREADS, seconds: 0.0, ..RunOptions::default() },
        ..MeasurementSpec::of(plan, cell, Load::UserTable(load))
    };
    let taken = spec.run(workspace)?;
    let mut measured = taken.measured();
    put_sizes(&mut measured, pool, log, data);
    measured.put(metric::LOAD_MB_PER_S, data as f64 / 1e6 / taken.result.elapsed_s.max(1e-9));
    Ok(measured)
}

/// The sizes that a cell really had.
pub(super) fn put_sizes(measured: &mut CellResult, pool: u64, log: u64, data: u64) {
    for (metric, bytes) in [(metric::POOL_BYTES, pool), (metric::LOG_BYTES, log), (metric::DATA_BYTES, data)] {
        measured.put(metric, bytes as f64);
    }
    measured.put(metric::POOL_TO_DATA_PCT, percent(pool, data));
    measured.put(metric::LOG_TO_DATA_PCT, percent(log, data));
}

pub(super) fn percent(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole as f64
}
