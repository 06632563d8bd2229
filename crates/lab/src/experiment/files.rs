//! The output folder.
//!
//! | file | what |
//! |---|---|
//! | `plan.json` | the identity of the folder; a resumed run must have the same plan |
//! | `cells/ID.json` | one finished measurement |
//! | `result.json`, `rows.csv`, `report.html` | the outcome |
//!
//! Rules
//! 1. A file is renamed when it is completely written ([`OutputFile`]), so an existing file is complete.
//! 2. A folder is checked before anything is created in it: a refused folder stays unchanged.
//! 3. A stored cell that cannot be read, or lacks a value that claims need, counts as not measured.
//! 4. Cells of different builds are not mixed unless the user allows it ([`Resume::AnyBuild`]). Each cell has the build
//!    that measured it, and the outcome names all builds. A build is this program and the programs that measure for it
//!    ([`Experiment::programs`]).

use super::{Cell, CellResult, Experiment, Metric, Outcome, Plan, report};
use highwater_bench::environment::build;
use highwater_bench::{Error, Result};
use highwater_storage::OutputFile;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The identity of an output folder: its experiment and plan.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Identity {
    experiment: String,
    scale: String,
    seed: u64,
    device: String,
    repetitions: u32,
    /// Absent in folders of earlier builds: there servers were measured as often as Highwater.
    #[serde(default)]
    server_repetitions: Option<u32>,
    subjects: Vec<String>,
    /// Empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    workloads: Vec<String>,
    /// Empty: the experiment's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    clients: Vec<u32>,
    /// `NAME=VALUE`; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    only: Vec<String>,
    /// `NAME=VALUE`; empty: the defaults.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    highwater_options: Vec<String>,
}

/// Whether to continue an earlier run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    /// Begin again, in an empty folder.
    No,
    /// Continue a run of this build.
    SameBuild,
    /// Continue, whichever build measured the rest.
    AnyBuild,
}

/// `NAME=VALUE` of each.
fn texts(choices: &[(String, String)]) -> Vec<String> {
    choices.iter().map(|(name, value)| format!("{name}={value}")).collect()
}

impl Identity {
    fn of(experiment: &dyn Experiment, plan: &Plan) -> Identity {
        Identity {
            experiment: experiment.about().name.into(),
            scale: plan.scale.to_string(),
            seed: plan.seed,
            device: plan.device.name().into(),
            repetitions: plan.repetitions,
            server_repetitions: Some(plan.server_repetitions),
            subjects: plan.subjects.iter().map(ToString::to_string).collect(),
            workloads: plan.workloads.clone(),
            clients: plan.clients.clone(),
            only: texts(&plan.only),
            highwater_options: texts(&plan.highwater_options),
        }
    }

    /// The first thing in which two differ: its name, the folder's, ours.
    fn difference(&self, wanted: &Identity) -> Option<(&'static str, String, String)> {
        let of_servers = |identity: &Identity| identity.server_repetitions.unwrap_or(identity.repetitions).to_string();
        let numbers = |of: &[u32]| of.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let pairs = [
            ("experiment", self.experiment.clone(), wanted.experiment.clone()),
            ("scale", self.scale.clone(), wanted.scale.clone()),
            ("seed", self.seed.to_string(), wanted.seed.to_string()),
            ("device", self.device.clone(), wanted.device.clone()),
            ("repetitions", self.repetitions.to_string(), wanted.repetitions.to_string()),
            ("repetitions of servers", of_servers(self), of_servers(wanted)),
            ("subjects", self.subjects.join(","), wanted.subjects.join(",")),
            ("workloads", self.workloads.join(","), wanted.workloads.join(",")),
            ("clients", numbers(&self.clients), numbers(&wanted.clients)),
            ("only", self.only.join(","), wanted.only.join(",")),
            ("Highwater's options", self.highwater_options.join(","), wanted.highwater_options.join(",")),
        ];
        pairs.into_iter().find(|(_, found, wanted)| found != wanted)
    }
}

/// A finished cell as it is kept.
#[derive(Serialize, Deserialize)]
struct Finished {
    cell: Cell,
    measured: CellResult,
    seconds: f64,
    /// The build that measured it; empty in folders of earlier builds.
    #[serde(default)]
    build: String,
}

pub(super) struct Folder {
    root: PathBuf,
    /// The identity to write into a new folder.
    new: Option<Identity>,
    required: &'static [Metric],
    build: String,
}

/// The stored result of a cell.
pub(super) enum Kept {
    /// Its values, how many seconds it took, and which build measured it.
    Measured(CellResult, f64, String),
    /// Nothing that can be used, and why.
    Unusable(String),
    /// Nothing.
    Missing,
}

impl Folder {
    /// Checks the plan's folder, which must be empty or missing, or with `resume` of the same plan. Creates nothing.
    ///
    /// # Errors
    /// [`Error::Usage`] for every other folder.
    pub(super) fn look(experiment: &dyn Experiment, plan: &Plan, resume: Resume) -> Result<Folder> {
        let (root, required) = (plan.out_dir.clone(), experiment.about().required);
        let mut folder = Folder { root, new: None, required, build: build(&experiment.programs()) };
        let wanted = Identity::of(experiment, plan);
        match read_json::<Identity>(&folder.root.join("plan.json")).map_err(usage)? {
            None if folder.is_empty().map_err(usage)? => folder.new = Some(wanted),
            None => return Err(folder.refused("is not empty and holds no experiment; take another folder")),
            Some(_) if resume == Resume::No => {
                return Err(
                    folder.refused("holds an experiment already; continue with it (--resume) or take another folder")
                );
            }
            Some(found) => folder.check_same(&found, &wanted, resume)?,
        }
        Ok(folder)
    }

    fn check_same(&self, found: &Identity, wanted: &Identity, resume: Resume) -> Result<()> {
        if let Some((what, found, wanted)) = found.difference(wanted) {
            return Err(self.refused(&format!("cannot be resumed: its {what} is {found}, this run's is {wanted}")));
        }
        if resume == Resume::AnyBuild { Ok(()) } else { self.check_builds() }
    }

    /// Refuses cells of other builds. What cannot be read is measured again anyway.
    fn check_builds(&self) -> Result<()> {
        #[derive(Deserialize)]
        struct Build {
            #[serde(default)]
            build: String,
        }
        let cells = self.root.join("cells");
        let entries = std::fs::read_dir(&cells).into_iter().flatten().flatten();
        let read = |entry: std::fs::DirEntry| read_json::<Build>(&entry.path()).ok().flatten();
        let Some(other) = entries.filter_map(read).find(|kept| kept.build != self.build) else { return Ok(()) };
        let found = if other.build.is_empty() { "unknown" } else { &other.build };
        let ours = &self.build;
        Err(self.refused(&format!(
            "cannot be resumed: its build is {found}, this one is {ours}; --any-build continues nevertheless and mixes \
             them"
        )))
    }

    /// The programs that measure: what they measure now is kept as of this build.
    pub(super) fn build(&self) -> &str {
        &self.build
    }

    /// Makes what is missing of the folder.
    ///
    /// # Errors
    /// [`Error::Usage`] when it cannot be made.
    pub(super) fn create(&self) -> Result<()> {
        let cells = self.root.join("cells");
        std::fs::create_dir_all(&cells).map_err(|e| usage(Error::file(&cells, e)))?;
        match &self.new {
            Some(identity) => write_json(&self.root.join("plan.json"), identity).map_err(usage),
            None => Ok(()),
        }
    }

    fn refused(&self, reason: &str) -> Error {
        Error::Usage(format!("{} {reason}", self.root.display()))
    }

    /// Whether the folder has at most an empty folder of cells.
    fn is_empty(&self) -> Result<bool> {
        let names = |path: &Path| -> Result<BTreeSet<String>> {
            match std::fs::read_dir(path) {
                Ok(entries) => Ok(entries.filter_map(|e| e.ok()?.file_name().into_string().ok()).collect()),
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(BTreeSet::new()),
                Err(e) => Err(Error::file(path, e)),
            }
        };
        let cells = self.root.join("cells");
        Ok(names(&self.root)?.iter().all(|name| name == "cells") && names(&cells)?.is_empty())
    }

    fn path(&self, cell: &Cell) -> PathBuf {
        self.root.join("cells").join(format!("{}.json", cell.id))
    }

    /// The result of an earlier run for the cell.
    pub(super) fn find(&self, cell: &Cell) -> Result<Kept> {
        let found = match read_json::<Finished>(&self.path(cell)) {
            Ok(None) => return Ok(Kept::Missing),
            Ok(Some(found)) => found,
            Err(Error::Usage(reason)) => return Ok(Kept::Unusable(reason)),
            Err(error) => return Err(error),
        };
        let path = self.path(cell);
        if found.cell != *cell {
            return Err(Error::Usage(format!("{} is of another cell", path.display())));
        }
        let values = &found.measured.values;
        if values.is_empty() {
            return Ok(Kept::Unusable(format!("{} has no values", path.display())));
        }
        match self.required.iter().find(|metric| !values.contains_key(metric.name())) {
            Some(metric) => Ok(Kept::Unusable(format!("{} has no {}", path.display(), metric.name()))),
            None => Ok(Kept::Measured(found.measured, found.seconds, found.build)),
        }
    }

    /// Keeps a finished cell.
    pub(super) fn keep(&self, cell: &Cell, measured: &CellResult, seconds: f64) -> Result<()> {
        let finished = Finished { cell: cell.clone(), measured: measured.clone(), seconds, build: self.build.clone() };
        write_json(&self.path(cell), &finished)
    }
}

/// A folder that cannot be used is an error of the user's.
pub(super) fn usage(error: Error) -> Error {
    Error::Usage(error.to_string())
}

/// Whether an output folder has a finished cell.
pub fn has_cells(out_dir: &Path) -> bool {
    let is_cell = |entry: std::fs::DirEntry| entry.path().extension().is_some_and(|kind| kind == "json");
    std::fs::read_dir(out_dir.join("cells")).is_ok_and(|entries| entries.flatten().any(is_cell))
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::file(path, e)),
    };
    let parsed = serde_json::from_str(&text);
    parsed.map(Some).map_err(|e| Error::Usage(format!("{} cannot be read: {e}", path.display())))
}

pub(super) fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<()> {
    let text = serde_json::to_string_pretty(value).map_err(|e| Error::Usage(format!("as JSON: {e}")))?;
    write(path, (text + "\n").as_bytes())
}

pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    OutputFile::write(path, bytes).map_err(|e| Error::file(path, e))
}

/// Writes `result.json`, `rows.csv` and `report.html`.
///
/// # Errors
/// [`Error::File`] when a file cannot be written.
pub fn write_outcome(experiment: &dyn Experiment, outcome: &Outcome, folder: &Path) -> Result<()> {
    write_json(&folder.join("result.json"), outcome)?;
    write(&folder.join("rows.csv"), &csv(outcome)?)?;
    write(&folder.join("report.html"), report::html(outcome, &experiment.figures(&outcome.rows))?.as_bytes())
}

/// Reads a `result.json`.
///
/// # Errors
/// [`Error::Usage`] if the file is missing, or not a result.
pub fn read_outcome(path: &Path) -> Result<Outcome> {
    read_json(path)?.ok_or_else(|| Error::Usage(format!("{} does not exist", path.display())))
}

/// One line a row: setting, then for each value its median, least, greatest, and the paper's.
fn csv(outcome: &Outcome) -> Result<Vec<u8>> {
    let names = |pick: fn(&super::Row) -> Vec<&String>| -> BTreeSet<String> {
        outcome.rows.iter().flat_map(pick).cloned().collect()
    };
    let settings = names(|row| row.setting.keys().collect());
    let values = names(|row| row.measured.keys().collect());
    let papers = names(|row| row.paper.keys().collect());
    let mut head: Vec<String> = ["subject", "device"].map(String::from).to_vec();
    head.extend(settings.iter().cloned());
    head.push("repetitions".into());
    for name in &values {
        head.extend([name.clone(), format!("{name} least"), format!("{name} greatest")]);
    }
    head.extend(papers.iter().map(|name| format!("{name} paper")));
    let mut writer = csv::Writer::from_writer(Vec::new());
    let failed = |e: &dyn std::fmt::Display| Error::Usage(format!("as CSV: {e}"));
    writer.write_record(&head).map_err(|e| failed(&e))?;
    for row in &outcome.rows {
        let number = |map: &BTreeMap<String, f64>, name: &str| map.get(name).map_or(String::new(), f64::to_string);
        let mut line = vec![row.subject.clone(), row.device.clone()];
        line.extend(settings.iter().map(|name| row.get(name).to_string()));
        line.push(row.repetitions.to_string());
        for name in &values {
            let spread = row.spread.get(name);
            let end = |n: usize| spread.map_or(String::new(), |s| s[n].to_string());
            line.extend([number(&row.measured, name), end(0), end(1)]);
        }
        line.extend(papers.iter().map(|name| number(&row.paper, name)));
        writer.write_record(&line).map_err(|e| failed(&e))?;
    }
    writer.into_inner().map_err(|e| failed(&e))
}
