//! `stream-journal`: write amplification of ordered journaling with doublewrite, of data journaling, and of data
//! journaling whose journal has a stream of its own, with a small and a large journal.
//!
//! Source: Choi, Kang, Kim, Seo, Lee, Eom, "Multi-streaming data journaling": Samsung PM953, ext4, tpcc-mysql.
//!
//! Choices
//! 1. Up to `quick`, recorded traces of such runs are replayed ([`replay`]), whole ones or the samples that the program
//!    carries ([`sampled`]); from `standard` on a real MySQL runs on a mounted device ([`live`]).
//! 2. Ordered journaling was recorded with the small journal only. Its figure with the small journal also represents
//!    the large one, as in the document.
//! 3. Highwater has its journal inside ([`own`]); it runs at every scale, on a device in process, with doublewrite,
//!    with the journal in the common stream, with the journal in its own stream, and without a journal.
//! 4. Replays are repeated with more and with less spare flash than the device has, because the order of the modes
//!    depends on it.

mod claims;
mod figures;
mod live;
mod notes;
mod own;
mod own_claims;
mod plan;
mod replay;
mod sampled;

use super::{About, Cell, CellResult, Claim, Experiment, Figure, Plan, Row, Scale, SubjectKind, Workspace};
use highwater_bench::Result;
use plan::is_live;
use std::collections::BTreeMap;

/// The experiment.
#[derive(Debug)]
pub(super) struct StreamJournal;

const ABOUT: About = About {
    name: "stream-journal",
    summary: "Write amplification of ordered journaling with doublewrite, data journaling, and data journaling in a \
              stream of its own",
    source: "Choi, Kang, Kim, Seo, Lee, Eom: data journaling on a multi-stream SSD",
    subjects: &[SubjectKind::Highwater, SubjectKind::Mysql],
    devices: &["samsung-pm953-960gb", "simple-2gb", "datacenter-nvme"],
    repetitions: [1; 4],
    server_repetitions: None,
    required: &[],
};

impl Experiment for StreamJournal {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn runs_subjects(&self, scale: Scale) -> bool {
        is_live(scale)
    }

    fn mounts(&self, plan: &Plan) -> bool {
        is_live(plan.scale) && plan.subjects.contains(&SubjectKind::Mysql)
    }

    fn cells(&self, plan: &Plan) -> Vec<Cell> {
        plan::cells(plan)
    }

    fn measure(&self, plan: &Plan, cell: &Cell, workspace: &mut Workspace<'_>) -> Result<CellResult> {
        match is_live(plan.scale) {
            _ if cell.kind()? == SubjectKind::Highwater => own::measure(plan, cell, workspace),
            true => live::measure(plan, cell, workspace),
            false => replay::measure(plan, cell, workspace),
        }
    }

    fn paper(&self, cell: &Cell) -> BTreeMap<String, f64> {
        plan::paper(cell)
    }

    fn claims(&self, plan: &Plan, rows: &[Row]) -> Vec<Claim> {
        let has = |kind| plan.subjects.contains(&kind);
        let of_server = if has(SubjectKind::Mysql) { claims::claims(plan, rows) } else { Vec::new() };
        let own = if has(SubjectKind::Highwater) { own_claims::claims(rows) } else { Vec::new() };
        of_server.into_iter().chain(own).collect()
    }

    fn figures(&self, rows: &[Row]) -> Vec<Figure> {
        figures::figures(rows)
    }

    fn notes(&self, plan: &Plan) -> Vec<String> {
        notes::notes(plan)
    }
}

#[cfg(test)]
mod stream_journal_test;
