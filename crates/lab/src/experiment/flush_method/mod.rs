//! `flush-method`: fsync (the documents' fdatasync), O_DIRECT and O_DSYNC, loading the `user` table with its
//! NAME_INDEX, with pools from far too small to sufficient.
//!
//! Source: a blog's measurement of 2010: MySQL 5.5.7, 4 GB of RAM, SATA disk of 7200 rpm, 500 MB of rows, pools of 16
//! to 256 MB.
//!
//! Choices
//! 1. Buffered writes leave pages in the operating system's cache, which is why they win with a small pool. So the
//!    cache is limited as that machine's memory limited it: the subject runs in a memory control group of eight times
//!    the data.
//! 2. On an emulated device Highwater too goes through a mounted file system: without one there is no cache to compare
//!    with.
//! 3. Each subject has a smallest pool, to which smaller pools of the document are raised. Only the largest of those is
//!    measured: its ratio to the data is the nearest to the document's. Claims are about measured pools only. Each row
//!    has the sizes of pool, log and data that were used.
//! 4. The document does not say how many rows a transaction had. With one row per transaction only the disk's sync
//!    would be measured, so a transaction has [`ROWS_PER_TRANSACTION`](plan::ROWS_PER_TRANSACTION).

mod claims;
mod figures;
mod notes;
mod plan;

use super::{About, Cell, CellResult, Claim, DeviceChoice, Experiment, Figure, Plan, Row, Scale};
use super::{SubjectKind, Workspace, metric};
use highwater_bench::Result;

/// The experiment.
#[derive(Debug)]
pub(super) struct FlushMethods;

const ABOUT: About = About {
    name: "flush-method",
    summary: "Loading the user table with flush methods fsync (fdatasync), O_DIRECT and O_DSYNC, with pools of a \
              thirtieth to half of the data",
    source: "blog, 2010",
    subjects: &SubjectKind::WITH_PLUGIN,
    devices: &["local", "sata-7200rpm-500gb", "wd10ezex-1tb", "samsung-850-pro-256gb"],
    repetitions: [1, 3, 3, 1],
    server_repetitions: Some([1; 4]),
    required: &[metric::LOAD_MB_PER_S],
};

impl Experiment for FlushMethods {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn default_subjects(&self) -> &'static [SubjectKind] {
        &SubjectKind::OF_LAB
    }

    fn mounts(&self, plan: &Plan) -> bool {
        plan.device != DeviceChoice::Local
    }

    fn repetitions(&self, scale: Scale, device: &DeviceChoice) -> u32 {
        if plan::is_disk(device) { 1 } else { scale.of(ABOUT.repetitions) }
    }

    fn server_repetitions(&self, scale: Scale, device: &DeviceChoice) -> u32 {
        if plan::is_disk(device) { 1 } else { scale.of(ABOUT.server_repetitions.unwrap_or(ABOUT.repetitions)) }
    }

    fn cells(&self, plan: &Plan) -> Vec<Cell> {
        plan::cells(plan)
    }

    fn measure(&self, plan: &Plan, cell: &Cell, workspace: &mut Workspace<'_>) -> Result<CellResult> {
        plan::measure(plan, cell, workspace)
    }

    fn claims(&self, plan: &Plan, rows: &[Row]) -> Vec<Claim> {
        claims::claims(plan, rows)
    }

    fn figures(&self, rows: &[Row]) -> Vec<Figure> {
        figures::figures(rows)
    }

    fn notes(&self, plan: &Plan) -> Vec<String> {
        notes::notes(plan)
    }
}

#[cfg(test)]
mod flush_method_test;
