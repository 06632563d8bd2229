//! A table of load speeds with the measured sizes, and a chart for each subject.

use super::claims::rate;
use super::plan::{METHODS, POOL, POOLS};
use crate::experiment::Row;
use crate::experiment::figure::{Figure, cells, measured, table as table_of};
use crate::experiment::judge::{Rows, number};
use crate::experiment::metric;
use crate::experiment::outcome::title_of;
use highwater_report::{Chart, Table};

const HEADS: [&str; 8] = [
    "Data MiB",
    "Pool MiB",
    "Log MiB",
    "Pool, % of data",
    "Log, % of data",
    "fsync (fdatasync)",
    "O_DIRECT",
    "O_DSYNC",
];

pub(super) fn figures(rows: &[Row]) -> Vec<Figure> {
    let charts = Rows::of_each(rows).map(|of| Figure::Chart(chart(rows, &of)));
    [Figure::Table(table(rows))].into_iter().chain(charts).collect()
}

/// Pools of which there are rows.
fn present(rows: &[Row]) -> Vec<&'static str> {
    POOLS.into_iter().filter(|pool| rows.iter().any(|row| row.get(POOL) == *pool)).collect()
}

pub(super) fn table(rows: &[Row]) -> Table {
    let caption = "Pools by their size in the document, and what data, pool and log really had.";
    let mut table = table_of("Load speed, MB of values per second", caption, &["Subject", "Pool"], &HEADS);
    for of in Rows::of_each(rows) {
        for (pool, row) in present(rows).into_iter().filter_map(|pool| Some((pool, of.find(&[(POOL, pool)])?))) {
            let mib = |metric| number(row.value(metric) / f64::from(1 << 20));
            let sizes = [metric::DATA_BYTES, metric::POOL_BYTES, metric::LOG_BYTES].map(mib);
            let shares = [metric::POOL_TO_DATA_PCT, metric::LOG_TO_DATA_PCT].map(|metric| number(row.value(metric)));
            let rates = METHODS.map(|method| number(rate(&of, pool, method)));
            table.rows.push(cells(&[title_of(of.subject), pool], sizes.into_iter().chain(shares).chain(rates)));
        }
    }
    table
}

fn chart(rows: &[Row], of: &Rows<'_>) -> Chart {
    let pools = present(rows);
    let points = |method: &str| {
        let all = pools.iter().enumerate().map(|(n, pool)| [n as f64, rate(of, pool, method)]);
        all.filter(|point| point[1].is_finite()).collect()
    };
    Chart {
        title: format!("{}: load speed", title_of(of.subject)),
        x_label: "buffer pool in the document (500 MB of data)".into(),
        y_label: "MB of values per second".into(),
        categories: pools.iter().map(ToString::to_string).collect(),
        lines: METHODS.iter().map(|method| measured(*method, points(method))).collect(),
        ..Chart::default()
    }
}
