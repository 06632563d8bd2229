//! Experiments: the source documents' measurements, repeated on every subject.
//!
//! Rules
//! 1. An experiment is a list of *cells* (one measurement each), a way to measure one, and *claims* computed from the
//!    measured values. Everything else (order, resuming, medians, files, the report) is the framework's.
//! 2. A cell's id is unique and the same for the same plan, so that an interrupted run can continue.
//! 3. Claims and figures see rows only, never a subject: the same rows give the same claims.
//! 4. A figure of the paper is never in a column of measured values.

mod aggregate;
mod all;
mod buffer_pool_size;
mod figure;
mod files;
mod flush_method;
mod flush_neighbors;
mod insert_buffer;
mod journal_power_cut;
mod journaled;
mod judge;
mod measurement;
mod metric;
mod outcome;
mod page_store;
mod page_types;
mod peers;
mod plan;
mod registry;
pub mod report;
mod request;
mod runner;
mod stall;
mod stream_journal;
#[cfg(test)]
mod testing;
mod victim_policy;

pub use crate::measure::{DeviceChoice, Workspace};
pub use crate::subject::SubjectKind;
pub use all::{Overview, Part, State, run_all};
pub use figure::Figure;
pub use files::{Resume, has_cells, read_outcome, write_outcome};
pub use metric::{Axis, Info, Metric, Series};
pub use outcome::{CellResult, Claim, Outcome, Row, Verdict};
pub use plan::{Cell, Plan, Scale, Setting, setting};
pub use registry::{all, find};
pub use request::Request;
pub use runner::run;

use highwater_bench::Result;
use outcome::figures_of;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The description of an experiment.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Name on the command line.
    pub name: &'static str,
    /// One line: what is varied and what is looked at.
    pub summary: &'static str,
    /// The document that it repeats.
    pub source: &'static str,
    /// Subjects it can run on.
    pub subjects: &'static [SubjectKind],
    /// Devices it can run on: `local` or names of presets, the default first.
    pub devices: &'static [&'static str],
    /// Default number of measurements of each cell, by scale.
    pub repetitions: [u32; 4],
    /// The same for the cells of a server, if it differs.
    pub server_repetitions: Option<[u32; 4]>,
    /// Values without which a kept cell is measured again.
    pub required: &'static [Metric],
}

/// One of the source documents' experiments.
pub trait Experiment: Sync {
    /// Its description.
    fn about(&self) -> &About;
    /// The subjects on which it runs by default.
    fn default_subjects(&self) -> &'static [SubjectKind] {
        self.about().subjects
    }
    /// Default number of measurements of each cell.
    fn repetitions(&self, scale: Scale, _device: &DeviceChoice) -> u32 {
        scale.of(self.about().repetitions)
    }
    /// The same for the cells of a server.
    fn server_repetitions(&self, scale: Scale, device: &DeviceChoice) -> u32 {
        self.about().server_repetitions.map_or_else(|| self.repetitions(scale, device), |times| scale.of(times))
    }
    /// Whether the plan mounts emulated devices, which requires root.
    fn mounts(&self, plan: &Plan) -> bool {
        plan.device != DeviceChoice::Local && plan.subjects.iter().any(|s| *s != SubjectKind::Highwater)
    }
    /// Whether the subjects run at this scale, and so must be installed; false if recordings of them are replayed.
    fn runs_subjects(&self, _scale: Scale) -> bool {
        true
    }
    /// Other programs that measure at the same time: their measurements are not mixed with this program's.
    fn programs(&self) -> Vec<PathBuf> {
        Vec::new()
    }
    /// Whether a run can set the number of clients.
    fn lets_clients_be_chosen(&self) -> bool {
        false
    }
    /// Whether a run can leave settings out.
    fn lets_settings_be_chosen(&self) -> bool {
        false
    }
    /// The workloads that a run can be limited to; none if there is only one.
    fn workloads(&self) -> Vec<&'static str> {
        Vec::new()
    }
    /// Whether a run of all experiments includes it.
    fn is_of_all(&self) -> bool {
        true
    }
    /// The measurements in the order to take them: repetitions outermost, so that settings are interleaved.
    fn cells(&self, plan: &Plan) -> Vec<Cell>;
    /// Takes one measurement.
    ///
    /// # Errors
    /// Any error of the measurement; the run stops there and can be resumed.
    fn measure(&self, plan: &Plan, cell: &Cell, workspace: &mut Workspace<'_>) -> Result<CellResult>;
    /// The paper's figures for this cell's setting, under the names of the measured values; empty if it has none.
    fn paper(&self, _cell: &Cell) -> BTreeMap<String, f64> {
        BTreeMap::new()
    }
    /// The paper's claims for each subject.
    fn claims(&self, plan: &Plan, rows: &[Row]) -> Vec<Claim>;
    /// Tables and charts, compared with the paper's.
    fn figures(&self, rows: &[Row]) -> Vec<Figure>;
    /// Ratios kept, and what differs from the paper.
    fn notes(&self, plan: &Plan) -> Vec<String>;
    /// The reasons why claims do not hold, if the rows show them; these texts follow the notes.
    fn explanations(&self, _rows: &[Row]) -> Vec<String> {
        Vec::new()
    }
}
