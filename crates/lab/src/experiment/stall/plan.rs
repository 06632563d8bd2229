//! The settings and the load.

use super::seconds;
use crate::experiment::measurement::{MeasurementSpec, log_bytes};
use crate::experiment::metric::{self, Axis, info};
use crate::experiment::{Cell, CellResult, Plan, Scale, Workspace, setting};
use crate::subject::{Load, Settings};
use highwater_bench::Result;
use highwater_bench::run::RunOptions;
use highwater_bench::workload::sysbench::{Config, Profile, RandType};

const LOG: Axis = Axis::new("log");
const ROW_BYTES: u64 = 240;
const TABLES: u64 = 8;
const THREADS: usize = 8;
/// The log is the dirty volume divided by this.
const DIRTY_TO_LOG: u64 = 8;

fn data_bytes(scale: Scale) -> u64 {
    scale.of([64 << 20, 256 << 20, 512 << 20, 4 << 30])
}

/// Seconds of warm-up and of measuring.
fn seconds(scale: Scale) -> (f64, f64) {
    scale.of([(1.0, 4.0), (10.0, 60.0), (20.0, 180.0), (60.0, 3600.0)])
}

pub(super) fn cells(plan: &Plan) -> Vec<Cell> {
    let log = format!("1/{DIRTY_TO_LOG} of the dirty volume");
    plan.cells(&[log.as_str()], |log, _| vec![setting([(LOG, log)])])
}

pub(super) fn measure(plan: &Plan, cell: &Cell, workspace: &mut Workspace<'_>) -> Result<CellResult> {
    let data_bytes = data_bytes(plan.scale);
    let log_bytes = log_bytes(data_bytes / DIRTY_TO_LOG);
    let (warmup_s, seconds) = seconds(plan.scale);
    let load = Config {
        profile: Profile::WriteOnly,
        tables: TABLES,
        table_size: data_bytes / ROW_BYTES / TABLES,
        rand_type: RandType::Uniform,
        seed: plan.seed_of(cell),
        ..Config::default()
    };
    let settings = Settings {
        buffer_pool_bytes: data_bytes * 2,
        log_bytes,
        flush_neighbors: "0".into(),
        max_dirty_pages_pct: 90,
        ..Settings::default()
    };
    let spec = MeasurementSpec {
        settings,
        data_bytes,
        options: RunOptions { threads: THREADS, seconds, warmup_s, ..RunOptions::default() },
        ..MeasurementSpec::of(plan, cell, Load::Sysbench(load))
    };
    let taken = spec.run(workspace)?;
    let mut measured = taken.measured();
    for counter in [metric::SYNC_FLUSH_WAITS, metric::LOG_WAITS, metric::LOG_WAIT_US, metric::FREE_FRAME_WAITS] {
        measured.put(counter, taken.counter(counter));
    }
    seconds::put(&mut measured, &taken.result.intervals);
    measured.put_info(info::LOG_BYTES, log_bytes.to_string());
    Ok(measured)
}

/// Notes on the measurement, and caveats.
pub(super) fn notes(plan: &Plan) -> Vec<String> {
    let data = data_bytes(plan.scale);
    let (warmup_s, seconds) = seconds(plan.scale);
    vec![
        format!(
            "{} MiB of rows, all in the pool, every row written to with equal chance: the dirty volume is the \
             database. Redo log {} MiB.",
            data >> 20,
            log_bytes(data / DIRTY_TO_LOG) >> 20
        ),
        format!(
            "sysbench write-only, {THREADS} threads, every commit synced; {warmup_s} s of warm-up, then {seconds} s \
             judged, second by second."
        ),
        "Other programs on the machine or its disk make seconds slow too; on an emulated device (--device) its disk \
         does not matter."
            .into(),
        "Not every server counts sync flushing and single-page flushing; what a server does not count is absent, and \
         the claim about it then says so and does not hold."
            .into(),
    ]
}
