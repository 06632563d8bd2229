//! `journal-power-cut`: does data journaling make InnoDB's doublewrite buffer unnecessary? MySQL 5.6 under load, with
//! repeated power cuts.
//!
//! Source: the `stream-journal` document claims that it does; Percona, which had advised it, withdrew the advice after
//! corruptions. A seed chooses the outcome of a cut among those that the device's promises allow ([`cycle`]).

mod claims;
mod cycle;
mod pages;
mod plan;

use super::{About, Cell, CellResult, Claim, Experiment, Figure, Plan, Row, SubjectKind, Workspace};
use highwater_bench::Result;

/// The experiment.
#[derive(Debug)]
pub(super) struct JournalPowerCut;

const ABOUT: About = About {
    name: "journal-power-cut",
    summary: "Databases damaged by power cuts: ordered journaling with and without doublewrite, data journaling \
              without",
    source: "Choi, Kang, Kim, Seo, Lee, Eom; and Percona's withdrawn advice on data journaling",
    subjects: &[SubjectKind::Mysql],
    devices: &["samsung-850-pro-256gb", "samsung-960-pro-512gb"],
    repetitions: [1; 4],
    server_repetitions: None,
    required: &[],
};

impl Experiment for JournalPowerCut {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn mounts(&self, _: &Plan) -> bool {
        true
    }

    fn cells(&self, plan: &Plan) -> Vec<Cell> {
        plan::cells(plan)
    }

    fn measure(&self, plan: &Plan, cell: &Cell, workspace: &mut Workspace<'_>) -> Result<CellResult> {
        plan::measure(plan, cell, workspace)
    }

    fn claims(&self, _: &Plan, rows: &[Row]) -> Vec<Claim> {
        claims::claims(rows)
    }

    fn figures(&self, rows: &[Row]) -> Vec<Figure> {
        vec![Figure::Table(claims::table(rows))]
    }

    fn notes(&self, plan: &Plan) -> Vec<String> {
        plan::notes(plan)
    }
}

#[cfg(test)]
mod journal_power_cut_test;
