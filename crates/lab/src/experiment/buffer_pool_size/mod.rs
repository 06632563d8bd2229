//! `buffer-pool-size`: LRU-list and flush-list flushing, and the requests to both devices, with pools of 15 to 75 % of
//! a TPC-C database.
//!
//! Source: Ahn, Lee, "buffer pool size": MySQL 5.7.21, tpcc-mysql, 100 warehouses (10 GB), 64 clients, O_DIRECT, data
//! on a Samsung 960 PRO, log on an 850 PRO.
//!
//! Choices
//! 1. The log keeps the paper's ratio to the data: MySQL 5.7's default, 2 x 48 MiB for 10 GB, but no less than the 4
//!    MiB every subject takes.
//! 2. `flush_neighbors` is 0, so that every flushed page belongs to one list.
//! 3. Requests are counted as pages read and flushed and as writes to the log, by the subjects themselves: the same on
//!    every device. The copies that go to the doublewrite area are not in them.
//! 4. Two claims, that data writes and log writes rise, are judged with one client. With many clients, group commit
//!    writes the log once for all waiting commits, and two processors are saturated long before a server of 24 threads.
//!    The figures of many clients are shown too.
//! 5. The utilization of the processors is measured in every cell. Only if it is at the limit does a note name it as
//!    the reason why writes of many clients do not rise.

mod claims;
mod notes;
mod plan;

use super::figure::{Along, Columns};
use super::{About, Cell, CellResult, Claim, Experiment, Figure, Plan, Row, SubjectKind, Workspace, metric};
use highwater_bench::Result;
use std::collections::BTreeMap;

/// The experiment.
#[derive(Debug)]
pub(super) struct BufferPoolSize;

const ABOUT: About = About {
    name: "buffer-pool-size",
    summary: "Flushing from the LRU list and from the flush list, and requests to data and log, with pools of 15 to \
              75 % of a TPC-C database",
    source: "Ahn, Lee",
    subjects: &SubjectKind::WITH_PLUGIN,
    devices: &["samsung-960-pro-512gb", "samsung-850-pro-256gb", "datacenter-nvme", "local"],
    repetitions: [1, 1, 2, 1],
    server_repetitions: Some([1; 4]),
    required: &[metric::TPS, metric::TRANSACTIONS, metric::PAGES_READ, metric::PAGES_FLUSHED],
};

const POOLS: Along<'_> = Along {
    axis: plan::POOL,
    values: &plan::SHARES,
    head: "Pool",
    x_label: "buffer pool, share of the database",
    paper: Some("MySQL 5.7.21"),
};

const COLUMNS: &Columns<'_> = &[
    ("LRU list %", metric::LRU_LIST_PCT),
    ("Flush list %", metric::FLUSH_LIST_PCT),
    ("Data reads/s", metric::DATA_READS_PER_S),
    ("Data writes/s", metric::DATA_WRITES_PER_S),
    ("Log writes/s", metric::LOG_WRITES_PER_S),
    ("New orders/min", metric::NEW_ORDERS_PER_MIN),
    ("Processors busy %", metric::CPU_PCT),
];

impl Experiment for BufferPoolSize {
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

    fn claims(&self, _: &Plan, rows: &[Row]) -> Vec<Claim> {
        claims::claims(rows)
    }

    fn figures(&self, rows: &[Row]) -> Vec<Figure> {
        let with = |clients: &str| -> Vec<Row> {
            rows.iter().filter(|row| row.get(plan::CLIENTS) == clients).cloned().collect()
        };
        let (many, one) = (with(plan::MANY), with(plan::ONE));
        let chart = |metric, title, unit| POOLS.chart(&many, metric, title, unit);
        let of_one = Along { values: &plan::ONE_SHARES, paper: None, ..POOLS };
        vec![
            POOLS.table(&many, "Flushing and requests by pool size, many clients", COLUMNS),
            of_one.table(&one, "Flushing and requests by pool size, one client", COLUMNS),
            chart(metric::LRU_LIST_PCT, "Flushed from the LRU list", "percent of the pages of both lists"),
            chart(metric::DATA_READS_PER_S, "Data reads", "pages per second"),
            chart(metric::DATA_WRITES_PER_S, "Data writes", "pages per second"),
            chart(metric::LOG_WRITES_PER_S, "Log writes", "writes per second"),
            chart(metric::NEW_ORDERS_PER_MIN, "New orders", "per minute"),
        ]
    }

    fn explanations(&self, rows: &[Row]) -> Vec<String> {
        notes::explanations(rows)
    }

    fn notes(&self, plan: &Plan) -> Vec<String> {
        notes::notes(plan)
    }
}

#[cfg(test)]
mod buffer_pool_size_test;
