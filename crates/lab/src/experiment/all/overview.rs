//! The result of a run of all experiments: its `result.json`.
//!
//! Rules
//! 1. Field names stay the same across releases.

use crate::experiment::{Experiment, Outcome, Request, Scale};
use highwater_bench::Result;
use highwater_bench::environment::environment;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Every experiment's part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Overview {
    /// The scale of the measurements.
    pub scale: Scale,
    /// The configuration of all experiments.
    pub config: BTreeMap<String, String>,
    /// One after the other.
    pub experiments: Vec<Part>,
}

/// The outcome of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It has an outcome.
    Finished,
    /// It ended with an error.
    Failed,
    /// It was not run.
    LeftOut,
}

/// An experiment's part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Its name, and its folder's.
    pub experiment: String,
    /// One line about it.
    pub about: String,
    /// The document it rebuilds.
    pub source: String,
    /// Its outcome.
    pub state: State,
    /// The reason for a missing outcome.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Seconds in this run; an earlier run may have measured a part.
    pub seconds: f64,
    /// The outcome.
    pub outcome: Option<Outcome>,
}

impl Overview {
    pub(super) fn new(request: &Request) -> Overview {
        let subjects = request.subjects.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(",");
        let config = [
            ("subjects", if subjects.is_empty() { "all that are installed".into() } else { subjects }),
            ("device", request.device.clone().unwrap_or("each experiment's default".into())),
            ("seed", request.seed.to_string()),
        ];
        let chosen = config.into_iter().map(|(name, value)| (name.to_string(), value));
        let work_dir = request.work_dir.as_ref().unwrap_or(&request.out_dir);
        let config = chosen.chain(environment(Some(work_dir))).collect();
        Overview { scale: request.scale, config, experiments: Vec::new() }
    }

    /// The outcomes there are.
    pub fn outcomes(&self) -> impl Iterator<Item = &Outcome> {
        self.experiments.iter().filter_map(|part| part.outcome.as_ref())
    }

    /// Names of the experiments that failed.
    pub fn failed(&self) -> Vec<&str> {
        let failed = self.experiments.iter().filter(|part| part.state == State::Failed);
        failed.map(|part| part.experiment.as_str()).collect()
    }

    /// Whether a claim of an experiment is lost.
    pub fn has_lost(&self) -> bool {
        self.outcomes().any(Outcome::has_lost)
    }
}

impl Part {
    fn new(experiment: &dyn Experiment, state: State, reason: String) -> Part {
        let about = experiment.about();
        Part {
            experiment: about.name.into(),
            about: about.summary.into(),
            source: about.source.into(),
            state,
            reason,
            seconds: 0.0,
            outcome: None,
        }
    }

    pub(super) fn left_out(experiment: &dyn Experiment, reason: &str) -> Part {
        Part::new(experiment, State::LeftOut, reason.into())
    }

    pub(super) fn of(experiment: &dyn Experiment, outcome: Result<Outcome>, seconds: f64) -> Part {
        match outcome {
            Ok(outcome) => {
                Part { outcome: Some(outcome), seconds, ..Part::new(experiment, State::Finished, String::new()) }
            }
            Err(error) => Part { seconds, ..Part::new(experiment, State::Failed, error.to_string()) },
        }
    }

    /// A line about a part without an outcome.
    pub fn failure(&self) -> Option<String> {
        match self.state {
            State::Finished => None,
            State::Failed => Some(format!("{} failed: {}", self.experiment, self.reason)),
            State::LeftOut => Some(format!("{} left out: {}", self.experiment, self.reason)),
        }
    }
}
