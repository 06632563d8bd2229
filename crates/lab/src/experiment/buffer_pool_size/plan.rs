//! The pools, the settings and load of each, and the paper's figures.

use crate::experiment::measurement::{MIN_SERVER_POOL_BYTES, MeasurementSpec, log_bytes};
use crate::experiment::metric::{self, Axis};
use crate::experiment::{Cell, CellResult, DeviceChoice, Plan, Scale, Workspace, figures_of, setting};
use crate::subject::{Load, Settings};
use highwater_bench::Result;
use highwater_bench::run::RunOptions;
use highwater_bench::workload::tpcc::{Config, Mix};
use std::collections::BTreeMap;

pub(super) const POOL: Axis = Axis::new("pool");
pub(super) const SHARES: [&str; 5] = ["15 %", "30 %", "45 %", "60 %", "75 %"];
pub(super) const WAREHOUSE_BYTES: u64 = 100_000_000;
const PAPER_WAREHOUSES: u64 = 100;
/// The number of clients: [`MANY`] ([`threads`]) or [`ONE`].
pub(super) const CLIENTS: Axis = Axis::new("clients");
pub(super) const MANY: &str = "many";
pub(super) const ONE: &str = "one";
/// The pools that are measured with one client too.
pub(super) const ONE_SHARES: [&str; 3] = [SHARES[0], SHARES[2], SHARES[4]];
const LOG_BYTES: u64 = 96 << 20;
/// 1,024 for each of the paper's eight pool instances.
const LRU_SCAN_DEPTH: u64 = 8 * 1024;
/// The paper's log has a device of its own: the 850 PRO; the data is on the 960 PRO.
pub(super) const LOG_DEVICE: &str = "samsung-850-pro-256gb";

/// The paper's figures that it states: at 15 % and at 75 %, and the log's requests for all.
const PAPER_LRU: [f64; 5] = [98.0, f64::NAN, f64::NAN, f64::NAN, 54.0];
const PAPER_READS: [f64; 5] = [2683.0, f64::NAN, f64::NAN, f64::NAN, 1725.0];
const PAPER_WRITES: [f64; 5] = [2470.0, f64::NAN, f64::NAN, f64::NAN, 3363.0];
pub(super) const PAPER_LOG: [f64; 5] = [6.0, 8.0, 21.0, 32.0, 43.0];

pub(super) fn warehouses(scale: Scale) -> u64 {
    scale.of([1, 4, 5, PAPER_WAREHOUSES])
}

pub(super) fn threads(scale: Scale) -> usize {
    scale.of([4, 16, 16, 64])
}

/// Seconds of warm-up and of measuring.
pub(super) fn seconds(scale: Scale) -> (f64, f64) {
    scale.of([(0.5, 1.0), (6.0, 8.0), (10.0, 15.0), (300.0, 1800.0)])
}

pub(super) fn log_of(scale: Scale) -> u64 {
    log_bytes(LOG_BYTES * warehouses(scale) / PAPER_WAREHOUSES)
}

pub(super) fn cells(plan: &Plan) -> Vec<Cell> {
    plan.cells(&SHARES, |share, _| {
        let one = ONE_SHARES.contains(&share).then_some(ONE);
        [MANY].into_iter().chain(one).map(|clients| setting([(POOL, share), (CLIENTS, clients)])).collect()
    })
}

pub(super) fn settings(cell: &Cell, scale: Scale) -> Settings {
    let data_bytes = warehouses(scale) * WAREHOUSE_BYTES;
    let share: u64 = cell.get(POOL).trim_end_matches(" %").parse().unwrap_or(100);
    Settings {
        buffer_pool_bytes: (data_bytes * share / 100).max(MIN_SERVER_POOL_BYTES),
        log_bytes: log_of(scale),
        flush_neighbors: "0".into(),
        lru_scan_depth: (LRU_SCAN_DEPTH * warehouses(scale) / PAPER_WAREHOUSES).clamp(100, 1024),
        ..Settings::default()
    }
}

fn log_device(plan: &Plan) -> DeviceChoice {
    match &plan.device {
        DeviceChoice::Local => DeviceChoice::Local,
        DeviceChoice::Preset(_) => DeviceChoice::Preset(LOG_DEVICE.into()),
    }
}

pub(super) fn measure(plan: &Plan, cell: &Cell, workspace: &mut Workspace<'_>) -> Result<CellResult> {
    let (warmup_s, seconds) = seconds(plan.scale);
    let clients = if cell.get(CLIENTS) == ONE { 1 } else { threads(plan.scale) };
    let load = Config {
        warehouses: warehouses(plan.scale),
        mix: Mix::TpccMysql,
        seed: plan.seed_of(cell),
        ..Config::default()
    };
    let spec = MeasurementSpec {
        settings: settings(cell, plan.scale),
        log: Some(log_device(plan)),
        data_bytes: warehouses(plan.scale) * WAREHOUSE_BYTES,
        options: RunOptions { threads: clients, seconds, warmup_s, ..RunOptions::default() },
        ..MeasurementSpec::of(plan, cell, Load::Tpcc(load))
    };
    let taken = spec.run(workspace)?;
    let mut measured = taken.measured();
    let (lru, list) = (taken.counter(metric::PAGES_FLUSHED_LRU_LIST), taken.flush_list());
    if lru + list > 0.0 {
        measured.put(metric::LRU_LIST_PCT, lru * 100.0 / (lru + list));
        measured.put(metric::FLUSH_LIST_PCT, list * 100.0 / (lru + list));
    }
    measured.put(metric::POOL_BYTES, settings(cell, plan.scale).buffer_pool_bytes as f64);
    measured.put(metric::DATA_READS_PER_S, taken.rate(metric::PAGES_READ));
    measured.put(metric::DATA_WRITES_PER_S, taken.rate(metric::PAGES_FLUSHED));
    measured.put(metric::LOG_WRITES_PER_S, taken.rate(metric::LOG_WRITES));
    measured.put(metric::LOG_BYTES_PER_S, taken.rate(metric::REDO_BYTES_WRITTEN));
    measured.put(metric::NEW_ORDERS_PER_MIN, taken.result.new_orders_per_min.unwrap_or(0.0));
    Ok(measured)
}

pub(super) fn paper(cell: &Cell) -> BTreeMap<String, f64> {
    let n = SHARES.iter().position(|share| *share == cell.get(POOL));
    let Some(n) = n.filter(|_| cell.get(CLIENTS) != ONE) else { return BTreeMap::new() };
    figures_of(&[
        (metric::LRU_LIST_PCT, PAPER_LRU[n]),
        (metric::FLUSH_LIST_PCT, 100.0 - PAPER_LRU[n]),
        (metric::DATA_READS_PER_S, PAPER_READS[n]),
        (metric::DATA_WRITES_PER_S, PAPER_WRITES[n]),
        (metric::LOG_WRITES_PER_S, PAPER_LOG[n]),
    ])
}
