//! A table of the subjects, and charts over time.

use crate::experiment::Row;
use crate::experiment::figure::{Columns, Figure, cells, heads, measured, series, table as table_of};
use crate::experiment::judge::{Rows, number};
use crate::experiment::metric::{self, info, series};
use crate::experiment::outcome::title_of;
use highwater_report::{Chart, Table};

const COLUMNS: &Columns<'_> = &[
    ("Median second", metric::TPS_MEDIAN_SECOND),
    ("Worst second", metric::TPS_WORST_SECOND),
    ("Flushed: list", metric::PAGES_FLUSHED_FLUSH_LIST),
    ("Sync flush", metric::PAGES_FLUSHED_SYNC),
    ("Single page", metric::PAGES_FLUSHED_SINGLE_PAGE),
    ("Log waits", metric::LOG_WAITS),
    ("p99 us", metric::LATENCY_P99_US),
];

pub(super) fn figures(rows: &[Row]) -> Vec<Figure> {
    let of = |name: metric::Series| move |row: &Row| series(row, name);
    let over_time = |points: &dyn Fn(&Row) -> Vec<[f64; 2]>, title, unit| over_time(rows, points, title, unit);
    vec![
        Figure::Table(table(rows)),
        over_time(&of(series::TPS), "Throughput", "transactions per second"),
        over_time(&share_of_log, "Checkpoint age", "percent of the log"),
        over_time(&of(series::FLUSHED), "Pages flushed", "pages per second"),
        over_time(&of(series::CPU_WITHHELD_PCT), "Withheld by the hypervisor", "percent of the processors' time"),
        over_time(&of(series::LOG_SYNC_US), "A sync of the redo log", "microseconds, mean of the second"),
    ]
}

fn table(rows: &[Row]) -> Table {
    let caption = "Throughput in transactions per second.";
    let mut table = table_of("Steadiness", caption, &["Subject"], &heads(COLUMNS));
    for of in Rows::of_each(rows) {
        table
            .rows
            .push(cells(&[title_of(of.subject)], COLUMNS.iter().map(|(_, metric)| number(of.value(&[], *metric)))));
    }
    table
}

fn over_time(rows: &[Row], points: &dyn Fn(&Row) -> Vec<[f64; 2]>, title: &str, unit: &str) -> Figure {
    Figure::Chart(Chart {
        title: title.into(),
        x_label: "seconds since the warm-up".into(),
        y_label: unit.into(),
        lines: rows.iter().map(|row| measured(title_of(&row.subject), points(row))).collect(),
        ..Chart::default()
    })
}

fn share_of_log(row: &Row) -> Vec<[f64; 2]> {
    let log: f64 = row.info(info::LOG_BYTES).and_then(|text| text.parse().ok()).unwrap_or(f64::NAN);
    series(row, series::CHECKPOINT_AGE_BYTES).into_iter().map(|[at, age]| [at, age * 100.0 / log]).collect()
}
