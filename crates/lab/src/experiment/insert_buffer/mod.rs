//! `insert-buffer`: the benefit of buffering changes of secondary indexes, and the cost of the buffer itself.
//!
//! Source: SKKU, "insert buffer": sysbench with 50 threads for an hour, a database of 100 GB (10 tables), a buffer pool
//! of 1 GB, Samsung 850 Pro and WD10EZEX. Buffering off, on, and on with the buffer's pages on a ramdisk.
//!
//! Choices
//! 1. The settings have one name for all subjects. `off`: no buffering. `disk`: the buffer's pages are pages of the
//!    database, `innodb_change_buffering=all`. `memory`: Highwater's buffer in memory, durable by the redo log; on a
//!    server `all` with the system tablespace, which holds the buffer, on a file system in memory, as in the paper.
//! 2. InnoDB's doublewrite buffer is in the system tablespace too. It is off in all three settings of InnoDB, so that
//!    `memory` saves the buffer's I/O and no other. Highwater's doublewrite file is a separate file and stays on.
//! 3. Six secondary indexes with random keys instead of sysbench's one, so that the changes of a transaction reach many
//!    leaves; row numbers and keys are uniform: the paper's 16 index pages read by 18 requests show that nearly every
//!    request missed its pool.
//! 4. The work is fixed: every setting runs the same number of transactions, and before them the same number to fill
//!    the buffer, so that merges are measured too. Only a server on the hard disk cannot fill it in the time; the
//!    paper's could not either (its buffer's pages were hardly read).
//! 5. Highwater runs on the device's virtual clock: its time is the sum of the device's times for sequential requests,
//!    without processor time. So runs of one setting differ by a percent, independent of the machine's load. For the
//!    hard disk, which has one arm, this is the speed with any number of clients; for the SSD it is that of one.
//!    `max_purge_lag` bounds the lag of purge, which the virtual clock does not slow.
//! 6. InnoDB's pages are counted by the mounted device, which recognises them, as the paper did with blktrace;
//!    Highwater counts its own. Reads and writes are compared for each transaction.

mod claims;
mod figures;
mod notes;
mod paper;
mod plan;

use super::{About, Cell, CellResult, Claim, Experiment, Figure, Plan, Row, SubjectKind, Workspace, metric};
use highwater_bench::Result;
use std::collections::BTreeMap;

/// The experiment.
#[derive(Debug)]
pub(super) struct InsertBuffer;

const ABOUT: About = About {
    name: "insert-buffer",
    summary: "Transactions per second, pages read and written by type and merges with change buffering off, on disk \
              and in memory, on an SSD and on a hard disk",
    source: "SKKU, \"insert buffer\"",
    subjects: &SubjectKind::WITH_PLUGIN,
    devices: &[plan::BOTH, plan::SSD_PRESET, plan::HDD_PRESET],
    repetitions: [1, 2, 3, 1],
    server_repetitions: Some([1; 4]),
    required: &[metric::TPS, metric::INDEX_PAGES_READ, metric::INDEX_PAGES_WRITTEN],
};

impl Experiment for InsertBuffer {
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
        paper::paper(cell)
    }

    fn claims(&self, _: &Plan, rows: &[Row]) -> Vec<Claim> {
        claims::claims(rows)
    }

    fn figures(&self, rows: &[Row]) -> Vec<Figure> {
        figures::figures(rows)
    }

    fn notes(&self, plan: &Plan) -> Vec<String> {
        notes::notes(plan)
    }
}

#[cfg(test)]
mod insert_buffer_test;
