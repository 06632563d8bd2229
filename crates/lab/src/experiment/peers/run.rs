//! One measurement: the loaded data, a copy of them, the process or server that is measured, its values.

use super::flash::Flash;
use super::plan::{DURABLE, Point, cache, data, memory, seconds};
use crate::experiment::metric::{self, info};
use crate::experiment::{Cell, CellResult, DeviceChoice, Plan, Workspace};
use crate::subject::{SubjectKind, copy_apart, copy_file, copy_sparse};
use highwater_bench::peers::{self, Answer, Contents, PeerWorkload, Request, Task, Verify};
use highwater_bench::result::Interval;
use highwater_bench::{Error, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Threads of a load, and memory for it: data that are larger than memory are still loaded in a large one, except for
/// the measured load.
const LOAD_THREADS: usize = 2;
const LOAD_CACHE_BYTES: u64 = 1 << 30;

/// Facts about loaded data, stored with the data.
const LOADED: &str = "loaded.json";

pub(super) fn measure(plan: &Plan, cell: &Cell, workspace: &mut Workspace<'_>) -> Result<CellResult> {
    let point = Point::of(&cell.setting)?;
    let folder = workspace.new_folder("cell");
    let kind = cell.kind()?;
    if plan.device != DeviceChoice::Local {
        workspace.step("making the emulated device")?;
    }
    let mut flash = Flash::mount(plan, &point, &folder)?;
    let place = flash.as_ref().map_or_else(|| folder.clone(), Flash::folder);
    let mut request = request(plan, cell, &point, place.join("database"))?;
    let limit = Some(memory(plan.scale, &point, kind));
    let loaded = match point.workload {
        PeerWorkload::BulkLoad | PeerWorkload::Redb => None,
        _ => {
            let template = template(plan, cell, &point, workspace)?;
            workspace.step("copying the data")?;
            copy_apart(&template.join("database"), &request.folder, &|_| &request.folder, copy_of(plan, kind))?;
            let loaded = peers::read::<Contents>(&template.join(LOADED))?;
            request.loaded_digest = Some(loaded.digest.clone());
            Some(loaded)
        }
    };
    workspace.step("measuring")?;
    flash.iter_mut().for_each(Flash::start);
    let taken = kind.compare(&request, limit, &folder)?;
    let mut measured = taken.answer.as_ref().map_or_else(CellResult::default, |answer| {
        let loaded = loaded.as_ref().or((point.workload == PeerWorkload::BulkLoad).then_some(&answer.contents));
        measured(&point, answer, loaded)
    });
    if let Some(flash) = flash {
        let values = taken.answer.iter().flat_map(|answer| flash.values(answer.run.transactions as f64));
        values.for_each(|(metric, value)| measured.put(metric, value));
        flash.close()?;
    }
    std::fs::remove_dir_all(&folder).map_err(|e| Error::file(&folder, e))?;
    measured.put(metric::ENDED_BY_MEMORY_LIMIT, f64::from(u8::from(taken.answer.is_none())));
    measured.put_info(info::MEMORY_LIMIT, taken.memory_limit);
    Ok(measured)
}

/// InnoDB takes the space of its files before it writes into them, its redo log's first of all: a copy of them has no
/// holes, but on an emulated device, where what is free in them is to be free.
fn copy_of(plan: &Plan, kind: SubjectKind) -> fn(&Path, &Path) -> Result<()> {
    if kind.is_server() && plan.device == DeviceChoice::Local { copy_file } else { copy_sparse }
}

fn request(plan: &Plan, cell: &Cell, point: &Point<'_>, folder: PathBuf) -> Result<Request> {
    let (warmup_s, seconds) = seconds(plan);
    let is_load = point.workload == PeerWorkload::BulkLoad;
    Ok(Request {
        subject: cell.subject.clone(),
        workload: point.workload,
        task: if is_load { Task::Load } else { Task::Run },
        folder,
        data_bytes: data(plan.scale, point),
        cache_bytes: cache(plan.scale, point, cell.kind()?),
        beyond_memory: point.is_beyond(),
        durable: point.commits == DURABLE,
        clients: point.clients(),
        warmup_s,
        seconds,
        // Reading rows by an index takes minutes where they do not fit memory; a template is verified in a large one.
        verify: if point.is_beyond() { Verify::Rows } else { Verify::Indexes },
        seed: plan.seed_of(cell),
        options: options(plan, cell.kind()?),
        loaded_digest: None,
    })
}

/// Options of a subject that the plan asks for.
fn options(plan: &Plan, subject: SubjectKind) -> BTreeMap<String, String> {
    if subject == SubjectKind::Highwater { plan.highwater_options.iter().cloned().collect() } else { BTreeMap::new() }
}

/// The folder of the loaded data of a subject; other kinds of data are removed first.
fn template(plan: &Plan, cell: &Cell, point: &Point<'_>, workspace: &mut Workspace<'_>) -> Result<PathBuf> {
    let group = format!("{} {} ", point.workload.data(), point.data);
    let key = format!("{group}{}", cell.subject);
    workspace.keep_templates(&group)?;
    if let Some(folder) = workspace.template(&key) {
        return Ok(folder);
    }
    let folder = workspace.new_folder("template");
    workspace.step("loading the data")?;
    let load = Request {
        task: Task::Load,
        clients: LOAD_THREADS,
        durable: false,
        cache_bytes: LOAD_CACHE_BYTES,
        verify: Verify::Indexes,
        seed: plan.seed,
        ..request(plan, cell, point, folder.join("database"))?
    };
    let taken = cell.kind()?.compare(&load, None, &folder)?;
    let Some(answer) = taken.answer else {
        return Err(Error::Server(format!("{} ended while it loaded the data", cell.subject)));
    };
    refuse_broken(&cell.subject, &answer)?;
    peers::write(&folder.join(LOADED), &answer.contents)?;
    workspace.keep_template(key, folder.clone());
    Ok(folder)
}

/// Nothing is measured on data that were not loaded right.
fn refuse_broken(subject: &str, answer: &Answer) -> Result<()> {
    match answer.conditions.iter().find(|one| !one.holds) {
        None => Ok(()),
        Some(one) => {
            Err(Error::Data(format!("{subject} after the load: {} ({}): {}", one.condition, one.text, one.detail)))
        }
    }
}

fn measured(point: &Point<'_>, answer: &Answer, loaded: Option<&Contents>) -> CellResult {
    let mut measured = CellResult::default();
    let transactions = match point.workload {
        PeerWorkload::BulkLoad => answer.loaded_rows as f64,
        _ => answer.run.transactions as f64,
    };
    for (metric, value) in of_process(answer, transactions) {
        measured.put(metric, value);
    }
    for (metric, value) in of_run(point, answer) {
        measured.put(metric, value);
    }
    for (name, value, unit) in &answer.steps {
        measured.put_named(&step_name(name, unit), *value);
    }
    let total = answer.steps.iter().map(|(_, value, _)| value).sum::<f64>();
    if total > 0.0 {
        measured.put(metric::STEPS_MS, total);
    }
    let seconds = whole_seconds(&answer.run.intervals);
    measured.put_series(metric::series::TPS, seconds.iter().map(|one| [one.at_s, one.tps]).collect());
    measured.put_info(info::SUBJECT_VERSION, answer.version.clone());
    if let Some(loaded) = loaded {
        measured.put_info(info::LOADED_DIGEST, loaded.digest.clone());
    }
    if let Some(broken) = answer.conditions.iter().find(|one| !one.holds) {
        measured.put_info(info::FIRST_FINDING, format!("{}: {}", broken.condition, broken.detail));
    }
    measured
}

/// The name of a step's value: `redb_bulk_load_ms`.
pub(super) fn step_name(name: &str, unit: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let text: String = name.chars().map(plain).collect();
    format!("redb_{}_{unit}", text.trim_end_matches('_').replace("__", "_"))
}

/// Not a number where nothing was counted.
fn counted(count: Option<u64>) -> f64 {
    count.map_or(f64::NAN, |count| count as f64)
}

fn of_process(answer: &Answer, transactions: f64) -> Vec<(metric::Metric, f64)> {
    let (process, per) = (&answer.process, 1.0 / transactions);
    let until_closed = transactions + answer.warmup_transactions as f64;
    let client_cpu_s = process.client_cpu_s.unwrap_or(f64::NAN);
    // A server's clients do the work that is in the process of an embedded engine.
    let all_cpu_s = process.cpu_s + process.client_cpu_s.unwrap_or(0.0);
    // redb's benchmark, which has steps, looks at what it reads. All else is verified by conditions.
    let is_verified = !(answer.conditions.is_empty() && answer.steps.is_empty());
    let broken = counted(is_verified.then(|| answer.conditions.iter().filter(|one| !one.holds).count() as u64));
    let mut values = vec![
        (metric::SPACE_BYTES, answer.space_bytes as f64),
        (metric::PEAK_MEMORY_BYTES, answer.peak_memory_bytes as f64),
        (metric::SUBJECT_CPU_S, process.cpu_s),
        (metric::CLIENT_CPU_S, client_cpu_s),
        (metric::CPU_OTHERS_PCT, process.cpu_others_pct.unwrap_or(f64::NAN)),
        (metric::CLOSE_S, answer.close_s),
        (metric::CONDITIONS_BROKEN, broken),
        (metric::ROWS, answer.contents.rows as f64),
        (metric::INDEX_ENTRIES, counted(answer.contents.entries)),
    ];
    if transactions > 0.0 {
        values.extend([
            (metric::CPU_US_PER_TRANSACTION, all_cpu_s * 1e6 * per),
            (metric::CLIENT_CPU_US_PER_TRANSACTION, client_cpu_s * 1e6 * per),
            (metric::WRITTEN_BYTES_PER_TRANSACTION, process.written_bytes as f64 * per),
            (metric::DEVICE_HOST_BYTES_PER_TRANSACTION, counted(process.device_written_bytes) * per),
            (
                metric::DEVICE_HOST_BYTES_CLOSED_PER_TRANSACTION,
                counted(answer.device_written_bytes_closed) / until_closed,
            ),
            (metric::READ_BYTES_PER_TRANSACTION, process.read_bytes as f64 * per),
            (metric::INSTRUCTIONS_PER_TRANSACTION, counted(process.instructions) * per),
        ]);
    }
    values
}

fn of_run(point: &Point<'_>, answer: &Answer) -> Vec<(metric::Metric, f64)> {
    let run = &answer.run;
    match point.workload {
        PeerWorkload::Redb => Vec::new(),
        // Rows a second, until the database is closed: what is not written then is not loaded.
        PeerWorkload::BulkLoad => vec![
            (metric::TPS, answer.loaded_rows as f64 / (run.elapsed_s + answer.close_s)),
            (metric::ELAPSED_S, run.elapsed_s + answer.close_s),
        ],
        _ => {
            let seconds = whole_seconds(&run.intervals);
            let worst = seconds.iter().map(|one| one.tps).fold(f64::NAN, f64::min);
            vec![
                (metric::TPS, run.tps),
                (metric::TRANSACTIONS, run.transactions as f64),
                (metric::RETRIES, run.errors as f64),
                (metric::TPS_WORST_SECOND, worst),
                (metric::LATENCY_P50_US, run.latency_us.p50),
                (metric::LATENCY_P99_US, run.latency_us.p99),
                (metric::LATENCY_P999_US, run.latency_us.p999),
                (metric::LATENCY_MAX_US, run.latency_us.max),
                (metric::NEW_ORDERS_PER_MIN, run.new_orders_per_min.unwrap_or(f64::NAN)),
            ]
        }
    }
}

/// Intervals that are not the rest at the end.
fn whole_seconds(intervals: &[Interval]) -> Vec<&Interval> {
    const MIN_S: f64 = 0.5;
    intervals.iter().filter(|one| one.length_s >= MIN_S).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_until_closed_are_those_of_the_warm_up_too() {
        let process = peers::Process { device_written_bytes: Some(600), ..Default::default() };
        let answer =
            Answer { process, device_written_bytes_closed: Some(1_200), warmup_transactions: 100, ..Answer::default() };
        let values: BTreeMap<&str, f64> =
            of_process(&answer, 200.0).iter().map(|(metric, value)| (metric.name(), *value)).collect();
        assert_eq!(values[metric::DEVICE_HOST_BYTES_PER_TRANSACTION.name()], 3.0);
        assert_eq!(values[metric::DEVICE_HOST_BYTES_CLOSED_PER_TRANSACTION.name()], 4.0);
        assert!(values[metric::CONDITIONS_BROKEN.name()].is_nan(), "nothing was verified");
    }
}
