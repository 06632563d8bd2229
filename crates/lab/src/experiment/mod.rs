//! Experiments: the source documents' measurements, repeated on every subject.
//!
//! Rules
//! 1. An experiment is a list of *cells* (one measurement each), a way to measure one, and *claims* computed from what was measured. Everything else
//!    (order, resuming, medians, files, the report) is the framework's.
//! 2. A cell's id is unique and the same for the same plan, so that a run can go on where it stopped.
//! 3. Claims and figures see rows only, never a subject: the same rows give the same claims.
//! 4. A figure of the paper never stands in a measured column.

mod aggregate;
mod buffer_pool_size;
mod files;
mod flush_method;
mod flush_neighbors;
mod journal_power_cut;
mod journaled;
mod judge;
mod outcome;
mod plan;
mod registry;
pub mod report;
mod request;
mod runner;
mod stall;
mod stream_journal;
mod trial;
mod victim_policy;

pub use crate::measure::{DeviceChoice, Workspace};
pub use crate::subject::SubjectKind;
pub use files::{Resume, has_cells, read_outcome, write_outcome};
pub use highwater_report::{Chart, Line, Table};
pub use outcome::{Claim, Figure, Measured, Outcome, Row};
pub use plan::{Cell, Plan, Scale, setting};
pub use registry::{all, find};
pub use request::Request;
pub use runner::run;

use highwater_bench::Result;
use std::collections::BTreeMap;

/// One of the source documents' experiments.
pub trait Experiment: Sync {
    /// Name on the command line.
    fn name(&self) -> &'static str;
    /// One line: what is varied and what is looked at.
    fn about(&self) -> &'static str;
    /// Which document it rebuilds.
    fn source(&self) -> &'static str;
    /// Subjects it can run on; all of them are the default.
    fn subjects(&self) -> &'static [SubjectKind];
    /// Devices it can run on: `local` or names of presets, the default first.
    fn devices(&self) -> &'static [&'static str] {
        &["local"]
    }
    /// How often each cell is measured unless asked otherwise.
    fn repetitions(&self, scale: Scale, _device: &DeviceChoice) -> u32 {
        match scale {
            Scale::Smoke | Scale::Quick => 1,
            Scale::Standard | Scale::Full => 3,
        }
    }
    /// How often each cell of a server is, where that differs.
    fn server_repetitions(&self, scale: Scale, device: &DeviceChoice) -> u32 {
        self.repetitions(scale, device)
    }
    /// Whether the plan mounts emulated devices, which only root may.
    fn mounts(&self, plan: &Plan) -> bool {
        plan.device != DeviceChoice::Local && plan.subjects.iter().any(|s| *s != SubjectKind::Highwater)
    }
    /// Whether the subjects run at this scale, and so must be installed; not so where recordings of them are replayed.
    fn runs_subjects(&self, scale: Scale) -> bool {
        let _ = scale;
        true
    }
    /// The measurements in the order to take them: repetitions outermost, so that settings are interleaved.
    ///
    /// # Errors
    /// When the plan cannot be carried out.
    fn cells(&self, plan: &Plan) -> Result<Vec<Cell>>;
    /// Takes one measurement.
    ///
    /// # Errors
    /// Whatever went wrong; the run stops there and can be resumed.
    fn measure(&self, plan: &Plan, cell: &Cell, workspace: &mut Workspace<'_>) -> Result<Measured>;
    /// Values without which a kept cell is measured again.
    fn required(&self) -> &'static [&'static str] {
        &[]
    }
    /// The paper's figures for this cell's setting, under the names of the measured values; empty if it has none.
    fn paper(&self, cell: &Cell) -> BTreeMap<String, f64>;
    /// The paper's claims for each subject.
    fn claims(&self, plan: &Plan, rows: &[Row]) -> Vec<Claim>;
    /// Tables and charts beside the paper's.
    fn figures(&self, rows: &[Row]) -> Vec<Figure>;
    /// Ratios kept, and what differs from the paper.
    fn notes(&self, plan: &Plan) -> Vec<String>;
    /// Why lost claims were lost, as far as the rows show it; they follow the notes.
    fn explanations(&self, rows: &[Row]) -> Vec<String> {
        let _ = rows;
        Vec::new()
    }
}
