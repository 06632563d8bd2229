//! The sizes and options, the settings and load of each, and the paper's figures.

use crate::experiment::measurement::{MIN_SERVER_POOL_BYTES, MeasurementSpec, log_bytes};
use crate::experiment::metric::{self, Axis};
use crate::experiment::{Cell, CellResult, Plan, Scale, SubjectKind, Workspace, figures_of, setting};
use crate::subject::{Load, Settings};
use highwater_bench::Result;
use highwater_bench::run::RunOptions;
use highwater_bench::workload::sysbench::{Config, Profile};
use std::collections::BTreeMap;

pub(super) const SIZE: Axis = Axis::new("size");
pub(super) const OPTION: Axis = Axis::new("flush_neighbors");

pub(super) const SIZES: [&str; 5] = ["1 GB", "5 GB", "10 GB", "20 GB", "50 GB"];
pub(super) const OPTIONS: [&str; 3] = ["0", "1", "2"];
/// Highwater's own choice, an option that servers do not have.
pub(super) const AUTO: &str = "auto";
pub(super) const POOL_BYTES: u64 = 4 << 30;
pub(super) const REQUESTS: u64 = 1_000_000;
/// MySQL 5.6's default: two files of 48 MiB.
pub(super) const LOG_BYTES: u64 = 96 << 20;
/// MySQL 5.6's default.
const LRU_SCAN_DEPTH: u64 = 1024;
pub(super) const TABLES: u64 = 2;
/// Bytes of a sysbench row in an InnoDB table, its index included.
const ROW_BYTES: u64 = 240;
pub(super) const THREADS: usize = 8;

/// Table 2: pages flushed; table 3: transactions per second.
pub(super) const PAPER: [[(f64, f64); 3]; 5] = [
    [(148_505.0, 2068.68), (171_623.0, 2035.11), (188_764.0, 2015.71)],
    [(193_548.0, 2019.44), (212_482.0, 1996.82), (218_332.0, 1980.82)],
    [(692_128.0, 1315.79), (765_790.0, 1309.57), (807_061.0, 1289.55)],
    [(1_144_276.0, 914.72), (1_236_026.0, 910.79), (1_344_994.0, 896.64)],
    [(2_799_107.0, 430.02), (2_914_321.0, 425.54), (2_976_420.0, 422.92)],
];

/// By what the paper's sizes are divided.
pub(super) fn divisor(scale: Scale) -> u64 {
    scale.of([1024, 128, 64, 1])
}

/// Transactions of a cell. At quick the log is larger in proportion, so more are needed until it has gone round several
/// times and the smallest database has flushed enough pages to compare.
pub(super) fn requests(scale: Scale) -> u64 {
    scale.of([976, 15_000, 15_625, REQUESTS])
}

fn size_bytes(size: &str, scale: Scale) -> u64 {
    let gigabytes: u64 = size.trim_end_matches(" GB").parse().unwrap_or(1);
    gigabytes * 1_000_000_000 / divisor(scale)
}

pub(super) fn sizes(scale: Scale) -> &'static [&'static str] {
    match scale {
        Scale::Smoke => &SIZES[..2],
        Scale::Quick => &[SIZES[1], SIZES[2], SIZES[4]],
        _ => &SIZES,
    }
}

pub(super) fn cells(plan: &Plan) -> Vec<Cell> {
    plan.cells(sizes(plan.scale), |size, subject| {
        let auto = (subject == SubjectKind::Highwater).then_some(AUTO);
        OPTIONS.into_iter().chain(auto).map(|option| setting([(SIZE, size), (OPTION, option)])).collect()
    })
}

pub(super) fn settings(cell: &Cell, scale: Scale) -> Settings {
    let buffer_pool_bytes = (POOL_BYTES / divisor(scale)).max(MIN_SERVER_POOL_BYTES);
    Settings {
        buffer_pool_bytes,
        log_bytes: log_bytes(LOG_BYTES / divisor(scale)),
        flush_neighbors: cell.get(OPTION).into(),
        lru_scan_depth: (buffer_pool_bytes / (16 << 10) / 4).min(LRU_SCAN_DEPTH),
        ..Settings::default()
    }
}

pub(super) fn measure(plan: &Plan, cell: &Cell, workspace: &mut Workspace<'_>) -> Result<CellResult> {
    let data_bytes = size_bytes(cell.get(SIZE), plan.scale);
    let load = Config {
        profile: Profile::ReadWrite,
        tables: TABLES,
        table_size: data_bytes / ROW_BYTES / TABLES,
        seed: plan.seed_of(cell),
        ..Config::default()
    };
    let events = requests(plan.scale);
    let spec = MeasurementSpec {
        settings: settings(cell, plan.scale),
        data_bytes,
        options: RunOptions { threads: THREADS, seconds: 0.0, events, ..RunOptions::default() },
        ..MeasurementSpec::of(plan, cell, Load::Sysbench(load))
    };
    let mut measured = spec.run(workspace)?.measured();
    let clean = measured.value(metric::PAGES_FLUSHED) + measured.value(metric::PAGES_DIRTY_AT_END);
    measured.put(metric::PAGES_FLUSHED_TO_CLEAN, clean);
    put_single_page_share(&mut measured);
    Ok(measured)
}

/// The share of pages flushed that user threads flushed alone; absent where the subject does not count them.
pub(super) fn put_single_page_share(measured: &mut CellResult) {
    let (single, all) = (measured.value(metric::PAGES_FLUSHED_SINGLE_PAGE), measured.value(metric::PAGES_FLUSHED));
    measured.put(metric::SINGLE_PAGE_PCT, single * 100.0 / all.max(1.0));
}

pub(super) fn paper(cell: &Cell) -> BTreeMap<String, f64> {
    let size = SIZES.iter().position(|size| *size == cell.get(SIZE));
    let option = OPTIONS.iter().position(|option| *option == cell.get(OPTION));
    let Some((size, option)) = size.zip(option) else { return BTreeMap::new() };
    let (flushed, tps) = PAPER[size][option];
    figures_of(&[(metric::PAGES_FLUSHED, flushed), (metric::TPS, tps)])
}
