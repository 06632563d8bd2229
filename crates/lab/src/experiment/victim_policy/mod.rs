//! `victim-policy`: the handling of a dirty victim page when a frame is needed.
//!
//! Source: "LRU-C: Parallelizing Database I/Os for Flash SSDs" (VLDB 2023), whose figures against stock MySQL (which
//! writes, then reads: `raw`) and against WAR (write after read) are compared with ours.
//!
//! Choices
//! 1. Data are ten times the pool, sysbench's read-write mix with uniform rows and many threads: nearly every
//!    transaction needs frames.
//! 2. Highwater runs on the emulated SSD in process: no file system, no other user of the device.

mod claims;
mod notes;
mod plan;

use super::figure::{Along, Columns};
use super::{About, Cell, CellResult, Claim, Experiment, Figure, Plan, Row, SubjectKind, Workspace, metric};
use highwater_bench::Result;

/// The experiment.
#[derive(Debug)]
pub(super) struct VictimPolicy;

const ABOUT: About = About {
    name: "victim-policy",
    summary: "Throughput, page read latency and waits for a frame with the victim policies raw, war and lru-clean, \
              data ten times the pool",
    source: "LRU-C, VLDB 2023 (by the group behind the source documents)",
    subjects: &[SubjectKind::Highwater],
    devices: &["samsung-850-pro-256gb", "samsung-960-pro-512gb", "samsung-pm953-960gb", "datacenter-nvme", "local"],
    repetitions: [1, 2, 3, 3],
    server_repetitions: None,
    required: &[metric::TPS],
};

const POLICIES: Along<'_> =
    Along { axis: plan::POLICY, values: &plan::POLICIES, head: "Policy", x_label: "victim policy", paper: None };

const COLUMNS: &Columns<'_> = &[
    ("TPS", metric::TPS),
    ("Page read p50 us", metric::PAGE_READ_US_P50),
    ("p95 us", metric::PAGE_READ_US_P95),
    ("p99 us", metric::PAGE_READ_US_P99),
    ("Frame waits", metric::FREE_FRAME_WAITS),
    ("us waited a transaction", metric::FREE_FRAME_WAIT_US_PER_TRANSACTION),
    ("Dirty victims", metric::DIRTY_VICTIMS),
    ("Single-page flushes", metric::PAGES_FLUSHED_SINGLE_PAGE),
];

impl Experiment for VictimPolicy {
    fn about(&self) -> &About {
        &ABOUT
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
        let chart = |metric, title, unit| POLICIES.chart(rows, metric, title, unit);
        let latency = "microseconds from the miss to the page, the wait for a frame included";
        vec![
            POLICIES.table(rows, "By victim policy", COLUMNS),
            chart(metric::TPS, "Throughput", "transactions per second"),
            chart(metric::PAGE_READ_US_P99, "Page read latency, 99 %", latency),
            chart(metric::FREE_FRAME_WAIT_US_PER_TRANSACTION, "Waits for a frame", "microseconds a transaction"),
        ]
    }

    fn notes(&self, plan: &Plan) -> Vec<String> {
        notes::notes(plan)
    }
}

#[cfg(test)]
mod victim_policy_test;
