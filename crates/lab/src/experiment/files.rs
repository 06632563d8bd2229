//! The output folder.
//!
//! | file | what |
//! |---|---|
//! | `plan.json` | what the folder is of; a resumed run must be of the same |
//! | `cells/ID.json` | one finished measurement |
//! | `result.json`, `rows.csv`, `report.html` | the outcome |
//!
//! Rule: a file is written beside its place and renamed, so that one that is there is whole.

use super::{Cell, Experiment, Measured, Outcome, Plan, report};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What an output folder is of.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Identity {
    experiment: String,
    scale: String,
    seed: u64,
    device: String,
    repetitions: u32,
    server_repetitions: u32,
    subjects: Vec<String>,
}

impl Identity {
    fn of(experiment: &dyn Experiment, plan: &Plan) -> Identity {
        Identity {
            experiment: experiment.name().into(),
            scale: plan.scale.to_string(),
            seed: plan.seed,
            device: plan.device.name().into(),
            repetitions: plan.repetitions,
            server_repetitions: plan.server_repetitions,
            subjects: plan.subjects.iter().map(ToString::to_string).collect(),
        }
    }

    /// The first thing in which two differ: its name, the folder's, ours.
    fn difference(&self, wanted: &Identity) -> Option<(&'static str, String, String)> {
        let pairs = [
            ("experiment", self.experiment.clone(), wanted.experiment.clone()),
            ("scale", self.scale.clone(), wanted.scale.clone()),
            ("seed", self.seed.to_string(), wanted.seed.to_string()),
            ("device", self.device.clone(), wanted.device.clone()),
            ("repetitions", self.repetitions.to_string(), wanted.repetitions.to_string()),
            ("repetitions of servers", self.server_repetitions.to_string(), wanted.server_repetitions.to_string()),
            ("subjects", self.subjects.join(","), wanted.subjects.join(",")),
        ];
        pairs.into_iter().find(|(_, found, wanted)| found != wanted)
    }
}

/// A finished cell as it is kept.
#[derive(Serialize, Deserialize)]
struct Finished {
    cell: Cell,
    measured: Measured,
    seconds: f64,
}

/// The cells' files.
pub(super) struct Folder {
    root: PathBuf,
}

impl Folder {
    /// Takes the plan's folder: an empty one, or with `resume` one of the same plan.
    pub(super) fn open(experiment: &dyn Experiment, plan: &Plan, resume: bool) -> Result<Folder> {
        let root = plan.out_dir.clone();
        std::fs::create_dir_all(root.join("cells")).map_err(|e| Error::file(root.join("cells"), e))?;
        let folder = Folder { root };
        let wanted = Identity::of(experiment, plan);
        match folder.identity()? {
            None if folder.is_empty()? => write_json(&folder.root.join("plan.json"), &wanted)?,
            None => return Err(folder.refused("is not empty and holds no experiment; take another folder")),
            Some(_) if !resume => {
                return Err(
                    folder.refused("holds an experiment already; go on with it (--resume) or take another folder")
                );
            }
            Some(found) => {
                if let Some((what, found, wanted)) = found.difference(&wanted) {
                    let reason = format!("cannot be resumed: its {what} is {found}, this run's is {wanted}");
                    return Err(folder.refused(&reason));
                }
            }
        }
        Ok(folder)
    }

    fn refused(&self, reason: &str) -> Error {
        Error::Usage(format!("{} {reason}", self.root.display()))
    }

    fn identity(&self) -> Result<Option<Identity>> {
        read_json(&self.root.join("plan.json"))
    }

    /// Whether there is nothing but the folder of cells, itself empty.
    fn is_empty(&self) -> Result<bool> {
        let names = |path: &Path| -> Result<BTreeSet<String>> {
            let entries = std::fs::read_dir(path).map_err(|e| Error::file(path, e))?;
            Ok(entries.filter_map(|e| e.ok()?.file_name().into_string().ok()).collect())
        };
        let cells = self.root.join("cells");
        Ok(names(&self.root)?.iter().all(|name| name == "cells") && names(&cells)?.is_empty())
    }

    fn path(&self, cell: &Cell) -> PathBuf {
        self.root.join("cells").join(format!("{}.json", cell.id))
    }

    /// What an earlier run measured for the cell, and how many seconds it took.
    pub(super) fn find(&self, cell: &Cell) -> Result<Option<(Measured, f64)>> {
        let Some(found) = read_json::<Finished>(&self.path(cell))? else { return Ok(None) };
        if found.cell != *cell {
            return Err(Error::Usage(format!("{} is of another cell", self.path(cell).display())));
        }
        Ok(Some((found.measured, found.seconds)))
    }

    /// Keeps a finished cell.
    pub(super) fn keep(&self, cell: &Cell, measured: &Measured, seconds: f64) -> Result<()> {
        let finished = Finished { cell: cell.clone(), measured: measured.clone(), seconds };
        write_json(&self.path(cell), &finished)
    }
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

fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<()> {
    let text = serde_json::to_string_pretty(value).map_err(|e| Error::Usage(format!("as JSON: {e}")))?;
    write(path, &(text + "\n"))
}

fn write(path: &Path, text: &str) -> Result<()> {
    let beside = path.with_extension("new");
    std::fs::write(&beside, text).map_err(|e| Error::file(&beside, e))?;
    std::fs::rename(&beside, path).map_err(|e| Error::file(path, e))
}

/// Writes `result.json`, `rows.csv` and `report.html`.
///
/// # Errors
/// [`Error::File`] when a file cannot be written.
pub fn write_outcome(experiment: &dyn Experiment, outcome: &Outcome, folder: &Path) -> Result<()> {
    write_json(&folder.join("result.json"), outcome)?;
    write(&folder.join("rows.csv"), &csv(outcome))?;
    write(&folder.join("report.html"), &report::html(outcome, &experiment.figures(&outcome.rows))?)
}

/// Reads a `result.json`.
///
/// # Errors
/// [`Error::Usage`] when there is none, or something else.
pub fn read_outcome(path: &Path) -> Result<Outcome> {
    read_json(path)?.ok_or_else(|| Error::Usage(format!("{} does not exist", path.display())))
}

/// A field of CSV.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.into() }
}

/// One line a row: setting, then for each value its median, least, greatest, and the paper's.
fn csv(outcome: &Outcome) -> String {
    let names = |pick: fn(&super::Row) -> Vec<&String>| -> Vec<String> {
        outcome.rows.iter().flat_map(pick).cloned().collect::<BTreeSet<_>>().into_iter().collect()
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
    let mut out = head.iter().map(|text| field(text)).collect::<Vec<_>>().join(",") + "\n";
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
        out += &(line.iter().map(|text| field(text)).collect::<Vec<_>>().join(",") + "\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_with_commas_are_quoted() {
        assert_eq!(field("a,b"), "\"a,b\"");
        assert_eq!(field("say \"x\""), "\"say \"\"x\"\"\"");
        assert_eq!(field("plain"), "plain");
    }
}
