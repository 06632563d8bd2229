//! The plan of measurements and its cells.

use super::{Axis, DeviceChoice, SubjectKind};
use highwater_bench::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Seconds: shows that the laboratory works; too small to judge claims.
    Smoke,
    /// The whole experiment on one subject in at most three minutes.
    Quick,
    /// 15 to 45 minutes on all subjects.
    Standard,
    /// The papers' sizes.
    Full,
}

highwater_storage::names!(Scale { Smoke => "smoke", Quick => "quick", Standard => "standard", Full => "full" });

impl Scale {
    /// One of four values: for smoke, quick, standard and full.
    pub fn of<T>(self, [smoke, quick, standard, full]: [T; 4]) -> T {
        match self {
            Scale::Smoke => smoke,
            Scale::Quick => quick,
            Scale::Standard => standard,
            Scale::Full => full,
        }
    }
}

impl std::fmt::Display for Scale {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Scale {
    type Err = Error;

    fn from_str(text: &str) -> Result<Scale> {
        let what = || format!("there is no scale {text:?}; there are: {}", Scale::names());
        Scale::named(text).ok_or_else(|| Error::Usage(what()))
    }
}

/// The plan: cells, device, repetitions.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The scale.
    pub scale: Scale,
    /// On which subjects, in this order.
    pub subjects: Vec<SubjectKind>,
    /// The selected workloads of the experiment; empty: all.
    pub workloads: Vec<String>,
    /// Numbers of clients, ascending, of an experiment that lets them be chosen; empty: the experiment's.
    pub clients: Vec<u32>,
    /// Names and values (with `-` for a space) that settings must have to be measured, of an experiment that lets them
    /// be chosen; of one name any of its values.
    pub only: Vec<(String, String)>,
    /// Names and values of Highwater's options that are not its defaults, of such an experiment.
    pub highwater_options: Vec<(String, String)>,
    /// The device of their data.
    pub device: DeviceChoice,
    /// Number of measurements of each cell.
    pub repetitions: u32,
    /// The same for the cells of a server.
    pub server_repetitions: u32,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Folder for databases while the experiment runs; emptied afterwards.
    pub work_dir: PathBuf,
    /// Folder of the results.
    pub out_dir: PathBuf,
    /// Folder of recorded traces; `None`: from the environment, or the sampled traces in the program.
    pub traces: Option<PathBuf>,
    /// A line for each subject that was left out, for the notes.
    pub skipped: Vec<String>,
}

impl Plan {
    /// Whether a setting is selected by `only`.
    pub fn wants(&self, setting: &Setting) -> bool {
        let has =
            |(name, value): &(String, String)| setting.get(name).is_some_and(|own| own.replace(' ', "-") == *value);
        self.only.iter().all(|(name, _)| self.only.iter().filter(|choice| choice.0 == *name).any(has))
    }
}

impl Plan {
    /// Number of measurements of each cell of a subject.
    pub fn repetitions_of(&self, subject: SubjectKind) -> u32 {
        if subject.is_server() { self.server_repetitions } else { self.repetitions }
    }

    /// The cells, repetition after repetition: for each of the `outer` values, for each subject, the settings that it
    /// has there.
    pub(super) fn cells<'o>(
        &self,
        outer: &[&'o str],
        settings: impl Fn(&'o str, SubjectKind) -> Vec<Setting>,
    ) -> Vec<Cell> {
        let mut cells = Vec::new();
        for repetition in 0..self.repetitions.max(self.server_repetitions) {
            for value in outer {
                for subject in self.subjects.iter().filter(|kind| repetition < self.repetitions_of(**kind)) {
                    let cell = |setting| Cell::new(*subject, self.device.name(), setting, repetition);
                    cells.extend(settings(value, *subject).into_iter().map(cell));
                }
            }
        }
        cells
    }

    /// The seed of a cell: each repetition has its own.
    pub(super) fn seed_of(&self, cell: &Cell) -> u64 {
        self.seed + u64::from(cell.repetition)
    }
}

/// The axes and their values.
pub type Setting = BTreeMap<String, String>;

/// A setting.
pub fn setting<const N: usize>(pairs: [(Axis, &str); N]) -> Setting {
    pairs.into_iter().map(|(axis, value)| (axis.name().to_string(), value.to_string())).collect()
}

/// One measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// Unique in a plan, and the same whenever the plan is made again. A file name.
    pub id: String,
    /// Name of the subject.
    pub subject: String,
    /// Name of the device.
    pub device: String,
    /// The setting.
    pub setting: Setting,
    /// 0 for the first time.
    pub repetition: u32,
}

impl Cell {
    /// A cell; its id is made of everything else.
    pub fn new(subject: SubjectKind, device: &str, setting: Setting, repetition: u32) -> Cell {
        let varied: Vec<String> = setting.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let text = format!("{subject}-{device}-{}-{}", varied.join("-"), repetition + 1);
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-_=.".contains(c);
        let id = text.chars().map(|c| if allowed(c) { c } else { '_' }).collect();
        Cell { id, subject: subject.to_string(), device: device.to_string(), setting, repetition }
    }

    /// A value of the setting; empty if the axis is missing.
    pub fn get(&self, axis: Axis) -> &str {
        self.setting.get(axis.name()).map_or("", String::as_str)
    }

    /// The subject.
    ///
    /// # Errors
    /// [`Error::Usage`] for an unknown subject.
    pub fn kind(&self) -> Result<SubjectKind> {
        self.subject.parse()
    }

    /// The setting for a reader: `flush_neighbors 0, size 1 GB`.
    pub fn describe(&self) -> String {
        self.setting
            .iter()
            .map(|(name, value)| format!("{} {value}", name.replace('_', " ")))
            .collect::<Vec<_>>()
            .join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_file_names_and_tell_cells_apart() {
        let cell = |size: &str, repetition| {
            let setting = setting([(Axis::new("size"), size), (Axis::new("flush_neighbors"), "auto")]);
            Cell::new(SubjectKind::Highwater, "local", setting, repetition)
        };
        assert_eq!(cell("1/2 GB", 0).id, "highwater-local-flush_neighbors=auto-size=1_2_GB-1");
        assert_ne!(cell("1", 0).id, cell("1", 1).id);
        assert_ne!(cell("1", 0).id, cell("2", 0).id);
        assert_eq!(cell("1 GB", 0).describe(), "flush neighbors auto, size 1 GB");
    }

    #[test]
    fn unknown_names_are_refused_with_the_known_ones() {
        let error = "huge".parse::<Scale>().unwrap_err().to_string();
        assert!(error.contains("huge") && error.contains("quick, standard"), "{error}");
        let error = "oracle".parse::<SubjectKind>().unwrap_err().to_string();
        assert!(error.contains("oracle") && error.contains("highwater, mysql, mariadb"), "{error}");
    }
}
