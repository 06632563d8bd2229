//! What is to be measured: the plan and its cells.

use super::{DeviceChoice, SubjectKind};
use highwater_bench::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// How much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Seconds: shows that the laboratory works; too small for claims to mean anything.
    Smoke,
    /// The whole experiment on one subject in at most three minutes.
    Quick,
    /// Half an hour.
    Standard,
    /// The papers' sizes.
    Full,
}

impl Scale {
    /// All of them.
    pub const ALL: [Scale; 4] = [Scale::Smoke, Scale::Quick, Scale::Standard, Scale::Full];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Scale::Smoke => "smoke",
            Scale::Quick => "quick",
            Scale::Standard => "standard",
            Scale::Full => "full",
        }
    }

    /// One of four values, by scale.
    pub fn pick<T>(self, smoke: T, quick: T, standard: T, full: T) -> T {
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
        let found = Scale::ALL.into_iter().find(|scale| scale.name() == text);
        let names = Scale::ALL.map(Scale::name).join(", ");
        found.ok_or_else(|| Error::Usage(format!("there is no scale {text:?}; there are: {names}")))
    }
}

/// What to measure, on what, how often.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How much.
    pub scale: Scale,
    /// On which subjects, in this order.
    pub subjects: Vec<SubjectKind>,
    /// Where their data lie.
    pub device: DeviceChoice,
    /// How often each cell is measured.
    pub repetitions: u32,
    /// How often each cell of a server is.
    pub server_repetitions: u32,
    /// Seed of everything random.
    pub seed: u64,
    /// Folder for databases while the experiment runs; emptied afterwards.
    pub work_dir: PathBuf,
    /// Folder of the results.
    pub out_dir: PathBuf,
    /// Folder of recorded traces; none: where the environment says.
    pub traces: Option<PathBuf>,
    /// A line for each subject that was left out, for the notes.
    pub skipped: Vec<String>,
}

impl Plan {
    /// How often each cell of a subject is measured.
    pub fn repetitions_of(&self, subject: SubjectKind) -> u32 {
        if subject.is_server() { self.server_repetitions } else { self.repetitions }
    }
}

#[cfg(test)]
impl Plan {
    /// A plan for tests of claims, which are made from rows.
    pub(super) fn on_paper(scale: Scale, device: &str, subjects: &[SubjectKind]) -> Plan {
        Plan {
            scale,
            subjects: subjects.to_vec(),
            device: DeviceChoice::from(device.to_string()),
            repetitions: 1,
            server_repetitions: 1,
            seed: 1,
            work_dir: "work".into(),
            out_dir: "out".into(),
            traces: None,
            skipped: Vec::new(),
        }
    }
}

/// Names and values of a setting.
pub fn setting<const N: usize>(pairs: [(&str, String); N]) -> BTreeMap<String, String> {
    pairs.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
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
    /// What is varied.
    pub setting: BTreeMap<String, String>,
    /// 0 for the first time.
    pub repetition: u32,
}

impl Cell {
    /// A cell; its id is made of everything else.
    pub fn new(subject: SubjectKind, device: &str, setting: BTreeMap<String, String>, repetition: u32) -> Cell {
        let varied: Vec<String> = setting.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let text = format!("{subject}-{device}-{}-{}", varied.join("-"), repetition + 1);
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-_=.".contains(c);
        let id = text.chars().map(|c| if allowed(c) { c } else { '_' }).collect();
        Cell { id, subject: subject.to_string(), device: device.to_string(), setting, repetition }
    }

    /// A value of the setting; empty when there is none.
    pub fn get(&self, name: &str) -> &str {
        self.setting.get(name).map_or("", String::as_str)
    }

    /// Which subject.
    ///
    /// # Errors
    /// [`Error::Usage`] for a cell of nothing we know.
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
            let setting = setting([("size", size.to_string()), ("flush_neighbors", "auto".into())]);
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
