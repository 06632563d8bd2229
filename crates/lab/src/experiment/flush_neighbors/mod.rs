//! `flush-neighbors`: what else of an extent is flushed with a dirty page, and what it costs, at five database sizes.
//!
//! Source: Shin, Park, Lee, "flush neighbors" (KIISE 2017): MySQL 5.6.25, sysbench OLTP, 1,000,000 requests, Samsung
//! 850 Pro, 8 GB of RAM.
//!
//! Choices
//! 1. The pool is not stated. TPS stay from 1 to 5 GB and fall from 10 GB on, so it is between: half of the memory, 4
//!    GB, is taken.
//! 2. A cell is a number of transactions, as in the paper, not of seconds: so options are compared over the same work.
//!    Pages are counted from the first to the last transaction, as `Innodb_buffer_pool_pages_flushed` was; the dirty
//!    pages left then are counted separately, for the cost to the same, clean, end state.
//! 3. TPS are compared run by run: each option's with the other's of the same size and repetition, which were taken
//!    directly after one another ([`Speed`](super::judge::Speed)). A ratio with too large a spread decides nothing.
//!    Counts of pages that are small, or differ little, decide nothing either.
//! 4. At standard a server's cell takes about eight times as long as Highwater's, so a server is measured once where
//!    Highwater is measured three times: each some ten minutes.
//! 5. `lru_scan_depth` is not divided: InnoDB frees that many frames once a second at every scale, and a second is a
//!    second. With less, user threads flush single pages, which have no neighbors, and the experiment measures those.
//!    It is at most a quarter of the pool, as Highwater has it too.
//! 6. At the smaller scales sizes and pool are divided by the same number; the log is not, which not every subject has
//!    below 4 MiB. At quick more requests make up for it: the log goes round several times, as the paper's did.
//! 7. At quick the sizes 1 and 20 GB are left out: a 128th of 1 GB is 500 pages in eight extents, and one batch cleans
//!    nearly all of it, whatever the option.

mod claims;
mod figures;
mod notes;
mod plan;

use super::{About, Cell, CellResult, Claim, Experiment, Figure, Plan, Row, SubjectKind, Workspace, metric};
use highwater_bench::Result;
use std::collections::BTreeMap;

/// The experiment.
#[derive(Debug)]
pub(super) struct FlushNeighbors;

const ABOUT: About = About {
    name: "flush-neighbors",
    summary: "Pages flushed and transactions per second with flush_neighbors 0, 1 and 2 at five database sizes",
    source: "Shin, Park, Lee, KIISE 2017",
    subjects: &SubjectKind::WITH_PLUGIN,
    devices: &["local", "samsung-850-pro-256gb", "samsung-960-pro-512gb", "datacenter-nvme", "wd10ezex-1tb"],
    repetitions: [1, 3, 3, 3],
    server_repetitions: Some([1, 1, 1, 3]),
    required: &[metric::TPS, metric::PAGES_FLUSHED],
};

impl Experiment for FlushNeighbors {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn default_subjects(&self) -> &'static [SubjectKind] {
        &SubjectKind::OF_LAB
    }

    fn cells(&self, plan: &Plan) -> Vec<Cell> {
        plan::cells(plan)
    }

    fn measure(&self, plan: &Plan, cell: &Cell, workspace: &mut Workspace<'_>) -> Result<CellResult> {
        plan::measure(plan, cell, workspace)
    }

    fn paper(&self, cell: &Cell) -> BTreeMap<String, f64> {
        plan::paper(cell)
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
mod flush_neighbors_test;
