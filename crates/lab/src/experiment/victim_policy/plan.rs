//! The policies, and the settings and load of each.

use crate::experiment::measurement::{MeasurementSpec, log_bytes};
use crate::experiment::metric::{self, Axis};
use crate::experiment::{Cell, CellResult, Plan, Scale, Workspace, setting};
use crate::subject::{Load, Settings};
use highwater_bench::Result;
use highwater_bench::run::RunOptions;
use highwater_bench::workload::sysbench::{Config, Profile, RandType};
use std::collections::BTreeMap;

pub(super) const POLICY: Axis = Axis::new("victim_policy");
pub(super) const RAW: &str = "raw";
pub(super) const WAR: &str = "war";
pub(super) const LRU_CLEAN: &str = "lru-clean";
pub(super) const POLICIES: [&str; 3] = [RAW, WAR, LRU_CLEAN];
const ROW_BYTES: u64 = 240;
const TABLES: u64 = 4;
/// The pool is a tenth of the data.
const DATA_TO_POOL: u64 = 10;

pub(super) fn data_bytes(scale: Scale) -> u64 {
    scale.of([64 << 20, 320 << 20, 640 << 20, 10 << 30])
}

pub(super) fn threads(scale: Scale) -> usize {
    scale.of([8, 32, 32, 64])
}

/// Seconds of warm-up and of measuring.
pub(super) fn seconds(scale: Scale) -> (f64, f64) {
    scale.of([(0.5, 1.5), (5.0, 12.0), (10.0, 40.0), (60.0, 600.0)])
}

pub(super) fn cells(plan: &Plan) -> Vec<Cell> {
    plan.cells(&POLICIES, |policy, _| vec![setting([(POLICY, policy)])])
}

pub(super) fn measure(plan: &Plan, cell: &Cell, workspace: &mut Workspace<'_>) -> Result<CellResult> {
    let data_bytes = data_bytes(plan.scale);
    let (warmup_s, seconds) = seconds(plan.scale);
    let load = Config {
        profile: Profile::ReadWrite,
        tables: TABLES,
        table_size: data_bytes / ROW_BYTES / TABLES,
        rand_type: RandType::Uniform,
        seed: plan.seed_of(cell),
        ..Config::default()
    };
    let pool = data_bytes / DATA_TO_POOL;
    let settings = Settings {
        buffer_pool_bytes: pool,
        log_bytes: log_bytes(data_bytes / 8),
        flush_neighbors: "0".into(),
        lru_scan_depth: (pool / (16 << 10) / 8).clamp(100, 1024),
        extra: BTreeMap::from([(POLICY.name().to_string(), cell.get(POLICY).to_string())]),
        ..Settings::default()
    };
    let spec = MeasurementSpec {
        settings,
        data_bytes,
        options: RunOptions { threads: threads(plan.scale), seconds, warmup_s, ..RunOptions::default() },
        ..MeasurementSpec::of(plan, cell, Load::Sysbench(load))
    };
    let taken = spec.run(workspace)?;
    let mut measured = taken.measured();
    for counter in [
        metric::FREE_FRAME_WAITS,
        metric::FREE_FRAME_WAIT_US,
        metric::DIRTY_VICTIMS,
        metric::SINGLE_PAGE_FLUSH_US,
        metric::DOUBLEWRITE_WAIT_US,
    ] {
        measured.put(counter, taken.counter(counter));
    }
    let waited_us = taken.counter(metric::FREE_FRAME_WAIT_US);
    let per_transaction = waited_us / taken.result.transactions.max(1) as f64;
    measured.put(metric::FREE_FRAME_WAIT_US_PER_TRANSACTION, per_transaction);
    for (metric, percentile) in
        [(metric::PAGE_READ_US_P50, 50.0), (metric::PAGE_READ_US_P95, 95.0), (metric::PAGE_READ_US_P99, 99.0)]
    {
        measured.put(metric, taken.page_read_us(percentile).unwrap_or(f64::NAN));
    }
    Ok(measured)
}
