//! `stall`: the throughput in each second of a write-only load whose redo log is an eighth of the dirty volume.
//!
//! Such a small log requires continuous flushing. A server that delays this stops all writers when the log is full: the
//! stall that InnoDB's users report most. The claims: the worst second has at least half the median's throughput; no
//! page is flushed by sync flushing, and none as a single page by a client thread.
//!
//! Choices
//! 1. Everything fits the pool and every row is written to with equal chance, so the dirty volume is the whole
//!    database.
//! 2. The claims about sync flushing and single-page flushing use the subject's counters. A missing counter is not
//!    zero: the claim reports it and does not hold.
//! 3. A commit waits for a sync of the log, whose time depends on the device. So the worst second is shown with its log
//!    syncs and those of the median second, with the processor time that the hypervisor withheld in it, and with the
//!    worst of the seconds in which it withheld little, to show the reason of a slow second. The claim is about all
//!    seconds nevertheless.
//! 4. The seconds of the warm-up, during which the pool fills and the log wraps around for the first time, are not
//!    judged.

mod claims;
mod figures;
mod plan;
mod seconds;

use super::{About, Cell, CellResult, Claim, Experiment, Figure, Plan, Row, SubjectKind, Workspace, metric};
use highwater_bench::Result;

/// The experiment.
#[derive(Debug)]
pub(super) struct Stall;

const ABOUT: About = About {
    name: "stall",
    summary: "Throughput of every second of a write-only load whose redo log is an eighth of the dirty volume",
    source: "stalls reported by InnoDB users (no source document)",
    subjects: &SubjectKind::WITH_PLUGIN,
    devices: &["local", "samsung-850-pro-256gb", "samsung-960-pro-512gb", "datacenter-nvme"],
    repetitions: [1; 4],
    server_repetitions: None,
    required: &[metric::SECONDS, metric::TPS_MEDIAN_SECOND],
};

impl Experiment for Stall {
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

    fn claims(&self, _: &Plan, rows: &[Row]) -> Vec<Claim> {
        claims::claims(rows)
    }

    fn figures(&self, rows: &[Row]) -> Vec<Figure> {
        figures::figures(rows)
    }

    fn notes(&self, plan: &Plan) -> Vec<String> {
        plan::notes(plan)
    }
}

#[cfg(test)]
mod stall_test;
