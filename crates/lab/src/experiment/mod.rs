//! Experiments: the source documents' measurements, repeated on every subject.
//!
//! Rules
//! 1. An experiment is a list of *cells* (one measurement each), a way to measure one, and *claims* computed from what
//!    was measured. Everything else (order, resuming, medians, files, the report) is the framework's.
//! 2. A cell's id is unique and the same for the same plan, so that an interrupted run can continue.
//! 3. Claims and figures see rows only, never a subject: the same rows give the same claims.
//! 4. A figure of the paper never is in a measured column.

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

/// What an experiment is.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Name on the command line.
    pub name: &'static str,
    /// One line: what is varied and what is looked at.
    pub summary: &'static str,
    /// Which document it rebuilds.
    pub source: &'static str,
    /// Subjects it can run on.
    pub subjects: &'static [SubjectKind],
    /// Devices it can run on: `local` or names of presets, the default first.
    pub devices: &'static [&'static str],
    /// How often each cell is measured unless asked otherwise, by scale.
    pub repetitions: [u32; 4],
    /// How often each cell of a server is, where that differs.
    pub server_repetitions: Option<[u32; 4]>,
    /// Values without which a kept cell is measured again.
    pub required: &'static [Metric],
}

/// One of the source documents' experiments.
pub trait Experiment: Sync {
    /// What it is.
    fn about(&self) -> &About;
    /// The subjects on which it runs by default.
    fn default_subjects(&self) -> &'static [SubjectKind] {
        self.about().subjects
    }
    /// How often each cell is measured unless asked otherwise.
    fn repetitions(&self, scale: Scale, _device: &DeviceChoice) -> u32 {
        scale.of(self.about().repetitions)
    }
    /// How often each cell of a server is.
    fn server_repetitions(&self, scale: Scale, device: &DeviceChoice) -> u32 {
        self.about().server_repetitions.map_or_else(|| self.repetitions(scale, device), |times| scale.of(times))
    }
    /// Whether the plan mounts emulated devices, which only root may.
    fn mounts(&self, plan: &Plan) -> bool {
        plan.device != DeviceChoice::Local && plan.subjects.iter().any(|s| *s != SubjectKind::Highwater)
    }
    /// Whether the subjects run at this scale, and so must be installed; not so where recordings of them are replayed.
    fn runs_subjects(&self, _scale: Scale) -> bool {
        true
    }
    /// Other programs that measure at the same time: their measurements are not mixed with this program's.
    fn programs(&self) -> Vec<PathBuf> {
        Vec::new()
    }
    /// Whether a run can say how many clients there are.
    fn lets_clients_be_chosen(&self) -> bool {
        false
    }
    /// Whether a run can leave settings out.
    fn lets_settings_be_chosen(&self) -> bool {
        false
    }
    /// The workloads that a run can be limited to; none where there is one only.
    fn workloads(&self) -> Vec<&'static str> {
        Vec::new()
    }
    /// Whether it is one of those that a run of all experiments runs.
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
    /// Why claims do not hold, as far as the rows show it; these texts follow the notes.
    fn explanations(&self, _rows: &[Row]) -> Vec<String> {
        Vec::new()
    }
}
