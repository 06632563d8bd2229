//! Runs an experiment cell by cell; each result is stored as soon as it is measured.
//!
//! Rules
//! 1. A cell that an earlier run finished is not measured again (`--resume`), unless the stored result is unusable,
//!    which is reported.
//! 2. The first failed cell ends the run; measured cells stay, and the error says how to continue.
//! 3. The work folder is a new one below the plan's, named by this process, and is removed at the end, also after an
//!    error. The next run removes the work folder of a killed one.

use super::files::{Folder, Kept, Resume, usage, write_outcome};
use super::{Cell, CellResult, Experiment, Outcome, Plan, Workspace, aggregate};
use crate::measure::Watch;
use highwater_bench::environment::environment;
use highwater_bench::interrupt;
use highwater_bench::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Runs the experiment and writes everything into the plan's output folder.
///
/// # Errors
/// [`Error::Usage`] for a folder that cannot be used; the failed cell's error.
pub fn run(experiment: &dyn Experiment, plan: &Plan, resume: Resume, watch: &mut dyn Watch) -> Result<Outcome> {
    let cells = experiment.cells(plan);
    let folder = Folder::look(experiment, plan, resume)?;
    let work = WorkFolder::new(&plan.work_dir).map_err(usage)?;
    folder.create()?;
    let plan = Plan { work_dir: work.path.clone(), ..plan.clone() };
    let mut builds = BTreeSet::new();
    let measured = measure_all(experiment, &plan, cells, &folder, &mut builds, watch)?;
    let outcome = outcome(experiment, &plan, &builds, aggregate::rows(experiment, &measured));
    write_outcome(experiment, &outcome, &plan.out_dir)?;
    Ok(outcome)
}

fn outcome(experiment: &dyn Experiment, plan: &Plan, builds: &BTreeSet<String>, rows: Vec<super::Row>) -> Outcome {
    let about = experiment.about();
    let mut notes = experiment.notes(plan);
    notes.extend(experiment.explanations(&rows));
    notes.extend(plan.skipped.iter().cloned());
    let builds = builds.iter().map(|build| if build.is_empty() { "unknown" } else { build }).collect::<Vec<_>>();
    if builds.len() > 1 {
        notes.push(format!(
            "Measured by {} builds of the laboratory, and of Highwater: {}.",
            builds.len(),
            builds.join(", ")
        ));
    }
    Outcome {
        experiment: about.name.into(),
        about: about.summary.into(),
        source: about.source.into(),
        scale: plan.scale,
        config: config(plan, builds.join(",")),
        claims: experiment.claims(plan, &rows),
        notes,
        rows,
    }
}

fn config(plan: &Plan, builds: String) -> BTreeMap<String, String> {
    let subjects = plan.subjects.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let pairs = [
        ("seed", plan.seed.to_string()),
        ("repetitions", plan.repetitions.to_string()),
        ("repetitions_of_servers", plan.server_repetitions.to_string()),
        ("device", plan.device.name().to_string()),
        ("subjects", subjects),
        ("builds", builds),
        ("highwater_version", env!("CARGO_PKG_VERSION").to_string()),
    ];
    let chosen = pairs.into_iter().map(|(name, value)| (name.to_string(), value));
    chosen.chain(environment(Some(&plan.work_dir))).collect()
}

fn measure_all(
    experiment: &dyn Experiment,
    plan: &Plan,
    cells: Vec<Cell>,
    folder: &Folder,
    builds: &mut BTreeSet<String>,
    watch: &mut dyn Watch,
) -> Result<Vec<(Cell, CellResult)>> {
    let mut finished = BTreeMap::new();
    for (number, cell) in cells.iter().enumerate() {
        match folder.find(cell)? {
            Kept::Measured(found, seconds, build) => {
                finished.insert(number, (found, seconds));
                builds.insert(build);
            }
            Kept::Unusable(reason) => watch.line(&format!("{reason}; measured again")),
            Kept::Missing => {}
        }
    }
    watch.begin(cells.len(), finished.len());
    let mut pace = Pace { seconds: finished.values().map(|f| f.1).sum(), cells: finished.len() };
    let mut measured: BTreeMap<usize, CellResult> = finished.into_iter().map(|(n, found)| (n, found.0)).collect();
    let mut workspace = Workspace::new(&plan.work_dir, watch);
    for (number, cell) in cells.iter().enumerate() {
        if measured.contains_key(&number) {
            continue;
        }
        let left = pace.left(cells.len() - measured.len());
        let (found, seconds) =
            measure(experiment, plan, cell, number + 1, left, &mut workspace).map_err(|e| explained(cell, e))?;
        folder.keep(cell, &found, seconds)?;
        builds.insert(folder.build().into());
        pace.add(seconds);
        measured.insert(number, found);
    }
    Ok(cells.into_iter().enumerate().filter_map(|(n, cell)| Some((cell, measured.remove(&n)?))).collect())
}

fn measure(
    experiment: &dyn Experiment,
    plan: &Plan,
    cell: &Cell,
    number: usize,
    left: Option<Duration>,
    workspace: &mut Workspace<'_>,
) -> Result<(CellResult, f64)> {
    interrupt::check()?;
    let text = format!("{} on {}: {}", cell.subject, cell.device, cell.describe());
    workspace.begin_cell(number, &text, left);
    let started = Instant::now();
    let measured = experiment.measure(plan, cell, workspace)?;
    Ok((measured, started.elapsed().as_secs_f64()))
}

/// Adds the cell to an error. After a request to stop every error counts as its consequence, because the signal also
/// ends the measuring programs.
fn explained(cell: &Cell, error: Error) -> Error {
    match error {
        _ if interrupt::is_requested() => Error::Interrupted,
        Error::Interrupted => Error::Interrupted,
        Error::Usage(reason) => Error::Usage(reason),
        error => Error::During { what: cell.id.clone(), source: Box::new(error) },
    }
}

/// The durations of cells, for the estimate of the remaining time.
struct Pace {
    seconds: f64,
    cells: usize,
}

impl Pace {
    fn add(&mut self, seconds: f64) {
        self.seconds += seconds;
        self.cells += 1;
    }

    fn left(&self, cells: usize) -> Option<Duration> {
        (self.cells > 0).then(|| Duration::from_secs_f64(self.seconds / self.cells as f64 * cells as f64))
    }
}

const WORK_PREFIX: &str = "highwater-lab-";

/// The folder databases are in while an experiment runs.
struct WorkFolder {
    path: PathBuf,
}

impl WorkFolder {
    fn new(parent: &Path) -> Result<WorkFolder> {
        std::fs::create_dir_all(parent).map_err(|e| Error::file(parent, e))?;
        remove_leftovers(parent);
        let path = parent.join(format!("{WORK_PREFIX}{}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(|e| Error::file(&path, e))?;
        // Servers and mounts need absolute paths.
        let path = path.canonicalize().map_err(|e| Error::file(&path, e))?;
        Ok(WorkFolder { path })
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        // There is no caller to return an error to; the next run tries again.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Removes the work folders of processes that are gone.
fn remove_leftovers(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        let owner = name.strip_prefix(WORK_PREFIX).and_then(|pid| pid.parse::<u32>().ok());
        if owner.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
#[path = "runner_test.rs"]
mod tests;
