//! The result of an experiment: `result.json`.
//!
//! Rules
//! 1. Field names stay the same across releases.
//! 2. A row is a setting's median over its repetitions, with the least and the greatest value.

use super::metric::{Info, Metric, Series};
use super::{Scale, Setting, SubjectKind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The result of one cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    /// Numbers by name; units in the name.
    pub values: BTreeMap<String, f64>,
    /// Series by name: points (x, y).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub series: BTreeMap<String, Vec<[f64; 2]>>,
    /// Texts by name: versions, what a policy chose.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub info: BTreeMap<String, String>,
}

impl CellResult {
    /// Adds a number; a value that is not a number (not counted, not measured) stays absent.
    pub fn put(&mut self, metric: Metric, value: f64) {
        self.put_named(metric.name(), value);
    }

    /// As [`CellResult::put`], for a name that holds a part of the device's.
    pub(super) fn put_named(&mut self, name: &str, value: f64) {
        if value.is_finite() {
            self.values.insert(name.to_string(), value);
        }
    }

    pub(super) fn put_series(&mut self, name: Series, points: Vec<[f64; 2]>) {
        self.series.insert(name.name().to_string(), points);
    }

    pub(super) fn put_info(&mut self, name: Info, text: String) {
        self.info.insert(name.name().to_string(), text);
    }

    /// A number; not a number when it was not measured.
    pub fn value(&self, metric: Metric) -> f64 {
        self.values.get(metric.name()).copied().unwrap_or(f64::NAN)
    }
}

/// Figures of a document by the names of the measured values; those that it does not state are not a number and left
/// out.
pub(super) fn figures_of(figures: &[(Metric, f64)]) -> BTreeMap<String, f64> {
    let stated = figures.iter().filter(|(_, value)| value.is_finite());
    stated.map(|(metric, value)| (metric.name().to_string(), *value)).collect()
}

/// A setting's measurements.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Name of the subject.
    pub subject: String,
    /// Name of the device.
    pub device: String,
    /// The setting.
    pub setting: Setting,
    /// Medians over the repetitions.
    pub measured: BTreeMap<String, f64>,
    /// Least and greatest over the repetitions.
    pub spread: BTreeMap<String, [f64; 2]>,
    /// Number of repetitions.
    pub repetitions: u32,
    /// Every repetition's value, in the order in which they were taken; only of what every repetition has.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub runs: BTreeMap<String, Vec<f64>>,
    /// The paper's figures for this setting, under the same names.
    pub paper: BTreeMap<String, f64>,
    /// Series of the first repetition.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub series: BTreeMap<String, Vec<[f64; 2]>>,
    /// Texts of the first repetition.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub info: BTreeMap<String, String>,
}

impl Row {
    /// A value of the setting; empty if the axis is missing.
    pub fn get(&self, axis: impl AsRef<str>) -> &str {
        self.setting.get(axis.as_ref()).map_or("", String::as_str)
    }

    /// A median; not a number when it was not measured.
    pub fn value(&self, metric: Metric) -> f64 {
        self.measured.get(metric.name()).copied().unwrap_or(f64::NAN)
    }

    /// Least and greatest over the repetitions.
    pub fn spread(&self, metric: Metric) -> Option<[f64; 2]> {
        self.spread.get(metric.name()).copied()
    }

    /// The greatest over the repetitions: for what must not happen in any of them.
    pub fn max(&self, metric: Metric) -> f64 {
        self.spread(metric).map_or_else(|| self.value(metric), |[_, max]| max)
    }

    /// A value of each repetition, in order; the median alone where they are not kept.
    pub fn runs(&self, metric: Metric) -> Vec<f64> {
        self.runs.get(metric.name()).cloned().unwrap_or_else(|| vec![self.value(metric)])
    }

    /// The paper's figure, if it states one.
    pub fn paper(&self, metric: Metric) -> Option<f64> {
        self.paper.get(metric.name()).copied()
    }

    /// A text.
    pub fn info(&self, name: Info) -> Option<&str> {
        self.info.get(name.name()).map(String::as_str)
    }
}

/// The verdict on a statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// They do.
    Holds,
    /// They show something else, or nothing was measured.
    #[default]
    Lost,
    /// The numbers are too small, or runs of the same setting differ too much.
    Undecided,
}

impl Verdict {
    /// For people.
    pub fn text(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Lost => "does not hold",
            Verdict::Undecided => "too small to tell",
        }
    }
}

impl From<bool> for Verdict {
    fn from(holds: bool) -> Verdict {
        if holds { Verdict::Holds } else { Verdict::Lost }
    }
}

/// A statement of the paper about a subject, and whether the rows show it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The statement.
    pub text: String,
    /// About which subject.
    pub subject: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The numbers.
    pub detail: String,
}

/// Everything about a run of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Its name.
    pub experiment: String,
    /// One line about it.
    pub about: String,
    /// The document it rebuilds.
    pub source: String,
    /// The scale of the measurements.
    pub scale: Scale,
    /// Everything that was chosen: seed, repetitions, device, subjects, version.
    pub config: BTreeMap<String, String>,
    /// The paper's statements.
    pub claims: Vec<Claim>,
    /// Ratios kept, what differs from the paper, what was left out.
    pub notes: Vec<String>,
    /// The measurements.
    pub rows: Vec<Row>,
}

impl Outcome {
    /// Whether a claim is lost; a claim that is too small to decide is not.
    pub fn has_lost(&self) -> bool {
        self.claims.iter().any(|claim| claim.verdict == Verdict::Lost)
    }

    /// The subjects there are rows of, in order.
    pub fn subjects(&self) -> Vec<&str> {
        subjects(&self.rows)
    }
}

/// The subjects of rows, in order.
pub(super) fn subjects(rows: &[Row]) -> Vec<&str> {
    let mut names = Vec::new();
    for row in rows {
        if !names.contains(&row.subject.as_str()) {
            names.push(row.subject.as_str());
        }
    }
    names
}

/// A subject as the reports write it.
pub(super) fn title_of(subject: &str) -> &str {
    let known = [
        (SubjectKind::Highwater, "Highwater"),
        (SubjectKind::Mysql, "MySQL 5.6"),
        (SubjectKind::Mariadb, "MariaDB 10.11"),
        (SubjectKind::Myrocks, "MyRocks"),
        (SubjectKind::MariadbHighwater, "Highwater in MariaDB"),
        (SubjectKind::Rocksdb, "RocksDB"),
        (SubjectKind::Wiredtiger, "WiredTiger"),
        (SubjectKind::Lmdb, "LMDB"),
        (SubjectKind::Sqlite, "SQLite"),
    ];
    known.into_iter().find(|(kind, _)| kind.name() == subject).map_or(subject, |(_, title)| title)
}
