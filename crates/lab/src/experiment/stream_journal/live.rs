//! A real MySQL with a TPC-C load on a mounted device that keeps time.
//!
//! Rules
//! 1. The database is loaded once, into a folder; each cell gets a new aged device and a copy of the folder.
//! 2. A cell that wrote little shows the write amplification of a device that is not yet in a steady state. So the
//!    warm-up lasts until the load has written the device's capacity once, and counters begin at zero after it.

use super::plan::{JOURNAL, MODE, SMALL, places};
use crate::experiment::journaled::Mode;
use crate::experiment::metric::{self, series};
use crate::experiment::{Cell, CellResult, DeviceChoice, Plan, Scale, Workspace};
use crate::subject::copy_folder;
use crate::subject::{Files, Installed, Load, Running, Settings, SubjectKind};
use highwater_bench::result::RunResult;
use highwater_bench::run::RunOptions;
use highwater_bench::workload::tpcc;
use highwater_bench::{Error, Result};
use highwater_device::age::Age;
use highwater_device::disk::{DiskOptions, TimeMode};
use highwater_device::mount::{Mount, MountSample};
use highwater_device::preset;
use std::path::PathBuf;

const THREADS: usize = 16;
const INTERVAL_S: f64 = 5.0;
/// The warm-up consists of steps of this many seconds; at most this many steps.
const WARMUP_STEP_S: f64 = 10.0;
const WARMUP_STEPS: u64 = 360;
const MIB: u64 = 1 << 20;

/// The sizes of a scale.
struct Size {
    warehouses: u64,
    capacity_bytes: u64,
    small_journal_bytes: u64,
    large_journal_bytes: u64,
    seconds: f64,
}

fn size(scale: Scale) -> Size {
    let full = scale == Scale::Full;
    Size {
        warehouses: if full { 100 } else { 5 },
        capacity_bytes: if full { 20 << 30 } else { 1 << 30 },
        small_journal_bytes: if full { 10 * MIB } else { 4 * MIB },
        large_journal_bytes: if full { 400 * MIB } else { 32 * MIB },
        seconds: if full { 18_000.0 } else { 60.0 },
    }
}

fn settings(mode: Mode, scale: Scale) -> Settings {
    let bytes = scale.of([64, 64, 64, 1280]) * MIB;
    Settings { buffer_pool_bytes: bytes, log_bytes: bytes, doublewrite: mode.doublewrite(), ..Settings::default() }
}

fn load(plan: &Plan, seed: u64) -> Load {
    let (warehouses, mix) = (size(plan.scale).warehouses, tpcc::Mix::TpccMysql);
    Load::Tpcc(tpcc::Config { warehouses, mix, seed, ..tpcc::Config::default() })
}

fn installed() -> Result<Installed> {
    SubjectKind::Mysql.find().map_err(|missing| Error::Usage(missing.to_string()))
}

pub(super) fn measure(plan: &Plan, cell: &Cell, workspace: &mut Workspace<'_>) -> Result<CellResult> {
    let installed = installed()?;
    let template = template(plan, &installed, workspace)?;
    let mode = Mode::of(cell.get(MODE))?;
    workspace.step("ageing a device and mounting it")?;
    let place = workspace.work_dir().join("mnt");
    let mut mount = mode.mount(disk(plan)?, journal_bytes(plan, cell), &place)?;
    workspace.step("copying the database")?;
    let files = Files::in_folder(place.join("mysql"));
    copy_folder(&template, &files.data)?;
    let running = Running::start(&installed, &files, &settings(mode, plan.scale))?;
    let measured = run(plan, cell, &running, &mut mount, workspace);
    let stopped = running.stop();
    let measured = measured?;
    stopped?;
    mount.unmount()?;
    Ok(measured)
}

fn disk(plan: &Plan) -> Result<DiskOptions> {
    let DeviceChoice::Preset(name) = &plan.device else {
        return Err(Error::Usage("the journal's stream needs an emulated device, not this disk".into()));
    };
    let config = preset::find(name)?.config().scaled_to((size(plan.scale).capacity_bytes / 4096) as u32);
    let age = Age { overwrites: 1.0, seed: plan.seed, ..Age::default() };
    Ok(DiskOptions { time: TimeMode::Real, age, ..DiskOptions::new(config) })
}

fn journal_bytes(plan: &Plan, cell: &Cell) -> u64 {
    let size = size(plan.scale);
    if cell.get(JOURNAL) == SMALL { size.small_journal_bytes } else { size.large_journal_bytes }
}

/// The folder with the loaded database.
fn template(plan: &Plan, installed: &Installed, workspace: &mut Workspace<'_>) -> Result<PathBuf> {
    let (done, new) = (workspace.work_dir().join("template"), workspace.work_dir().join("template.new"));
    if done.is_dir() {
        return Ok(done);
    }
    workspace.step("loading the database")?;
    let settings =
        Settings { buffer_pool_bytes: 1 << 30, flush_log_at_trx_commit: 0, ..settings(Mode::Ordered, plan.scale) };
    let running = Running::start(installed, &Files::in_folder(&new), &settings)?;
    let load = load(plan, plan.seed);
    let progress = workspace.load(load.units());
    let loaded = running.load(&load, 4, &*progress);
    let stopped = running.stop();
    loaded?;
    stopped?;
    std::fs::rename(&new, &done).map_err(|e| Error::file(&done, e))?;
    Ok(done)
}

fn run(
    plan: &Plan,
    cell: &Cell,
    running: &Running,
    mount: &mut Mount,
    workspace: &mut Workspace<'_>,
) -> Result<CellResult> {
    let size = size(plan.scale);
    let load = load(plan, plan.seed + u64::from(cell.repetition));
    let options =
        |seconds| RunOptions { threads: THREADS, seconds, report_interval_s: INTERVAL_S, ..RunOptions::default() };
    mount.reset_counters();
    for step in 0..WARMUP_STEPS {
        let written = mount.sample().totals.host_written_bytes;
        if written >= size.capacity_bytes {
            break;
        }
        workspace.step(&format!("warming up, {} % of the device written", written * 100 / size.capacity_bytes))?;
        let seed = warmup_seed(plan.seed + u64::from(cell.repetition), step);
        running.run(&self::load(plan, seed), &options(WARMUP_STEP_S), &mut |_| {})?;
    }
    workspace.step("measuring")?;
    mount.reset_counters();
    let mut samples = Vec::new();
    let result = running.run(&load, &options(size.seconds), &mut |_| samples.push(mount.sample()))?;
    samples.push(mount.sample());
    Ok(measured(&result, &samples, mount))
}

/// Of a step of the warm-up: with the seed of another, or of the measurement, it would change the same rows again.
fn warmup_seed(seed: u64, step: u64) -> u64 {
    seed.wrapping_add((step + 1) << 32)
}

fn measured(result: &RunResult, samples: &[MountSample], mount: &Mount) -> CellResult {
    let mut measured = CellResult::default();
    let access = mount.access();
    let group = |name: &str| access.groups.iter().find(|group| group.name == name);
    let per_block = |name: &str| group(name).map_or(0.0, |group| group.writes_per_written_block);
    if let Some(sample) = samples.last() {
        let totals = &sample.totals;
        let host = totals.host_written_bytes as f64;
        for (name, value) in [
            (metric::WRITE_AMPLIFICATION, totals.write_amplification),
            (metric::HOST_WRITTEN_BYTES, host),
            (metric::MEDIA_WRITTEN_BYTES, totals.media_written_bytes as f64),
            (metric::COPIED_BYTES, totals.copied_bytes as f64),
            (metric::JOURNAL_SHARE, group("journal").map_or(0.0, |group| group.written_bytes as f64 / host)),
        ] {
            measured.put(name, value);
        }
        for stream in &sample.streams {
            measured.put_named(&metric::stream_write_amplification(&stream.stream), stream.write_amplification);
        }
    }
    measured.put(metric::JOURNAL_WRITES_PER_BLOCK, per_block("journal"));
    measured.put(metric::OTHER_WRITES_PER_BLOCK, per_block("main"));
    measured.put(metric::NOPM, result.new_orders_per_min.unwrap_or(f64::NAN));
    measured.put(metric::LATENCY_P95_US, result.latency_us.p95);
    let point =
        |s: &MountSample| [s.totals.host_written_bytes as f64 / f64::from(1 << 30), s.totals.write_amplification];
    measured.put_series(series::WAF_OVER_TIME, samples.iter().map(point).collect());
    let by_place = places(&access.heat_written_blocks, mount.disk().capacity_bytes());
    measured.put_series(series::WRITES_BY_PLACE, by_place);
    measured
}

pub(super) fn notes(plan: &Plan) -> Vec<String> {
    let size = size(plan.scale);
    let database_mib = size.warehouses * 110;
    vec![
        format!(
            "MySQL 5.6.24, {} warehouses (about {database_mib} MiB, growing), tpcc-mysql's mix, {THREADS} \
             connections, pool and redo log {} MiB each, on a device of {} MiB whose requests take the time of the \
             model: journal : database : device = {} : {database_mib} : {} and {} : {database_mib} : {}.",
            size.warehouses,
            settings(Mode::Ordered, plan.scale).log_bytes / MIB,
            size.capacity_bytes / MIB,
            size.small_journal_bytes / MIB,
            size.capacity_bytes / MIB,
            size.large_journal_bytes / MIB,
            size.capacity_bytes / MIB,
        ),
        format!(
            "Before each measurement the device was filled once and overwritten once at random, the database copied \
             onto it, and the load run until it had written the device's capacity; then {} s were measured.",
            size.seconds
        ),
        "Server, file system and device model share this machine's processors; the document had a machine for each."
            .into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_step_of_the_warm_up_draws_other_numbers_than_the_measurement() {
        let seeds = (1..4).flat_map(|seed| (0..WARMUP_STEPS).map(move |step| warmup_seed(seed, step)).chain([seed]));
        let all: Vec<u64> = seeds.collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
    }
}
