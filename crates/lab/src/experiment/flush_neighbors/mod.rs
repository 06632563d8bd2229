//! `flush-neighbors`: the flushing of a dirty page's neighbors in its extent, and its cost, at five database sizes.
//!
//! Source: Shin, Park, Lee, "flush neighbors" (KIISE 2017): MySQL 5.6.25, sysbench OLTP, 1,000,000 requests, Samsung
//! 850 Pro, 8 GB of RAM.
//!
//! Choices
//! 1. The paper does not state the pool. TPS are constant from 1 to 5 GB and fall from 10 GB on, so the pool is
//!    between: half of the memory, 4 GB, is assumed.
//! 2. A cell is a number of transactions, as in the paper, not of seconds: so options are compared over the same work.
//!    Pages are counted from the first to the last transaction, as `Innodb_buffer_pool_pages_flushed` was; the dirty
//!    pages left then are counted separately, for the cost to the same, clean, end state.
//! 3. TPS are compared run by run: each option's with the other's of the same size and repetition, which ran directly
//!    after one another ([`Speed`](super::judge::Speed)). A ratio with too large a spread decides nothing. Counts of
//!    pages that are small, or differ little, decide nothing either.
//! 4. At the scale `standard` a server's cell takes about eight times as long as Highwater's, some ten minutes, so a
//!    server is measured once and Highwater three times.
//! 5. `lru_scan_depth` is not divided: InnoDB frees that many frames once a second, and seconds do not scale. With
//!    less, user threads flush single pages, which have no neighbors, and the experiment measures those. It is at most
//!    a quarter of the pool, as Highwater has it too.
//! 6. At the smaller scales sizes and pool are divided by the same number; the log is not, because not every subject
//!    allows one below 4 MiB. At the scale `quick` more requests compensate for that, so the log wraps around several
//!    times, as the paper's did.
//! 7. At the scale `quick` the sizes 1 and 20 GB are left out: a 128th of 1 GB is 500 pages in eight extents, and one
//!    batch cleans nearly all of it, whatever the option.

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
