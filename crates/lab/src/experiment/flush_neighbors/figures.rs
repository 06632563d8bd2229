//! Tables and charts, compared with the paper's.

use super::claims::key;
use super::plan::{AUTO, OPTION, SIZE, SIZES};
use crate::experiment::Row;
use crate::experiment::figure::{Figure, cells, measured, of_paper, places, table as table_of};
use crate::experiment::judge::{Rows, number};
use crate::experiment::metric::{self, Metric};
use crate::experiment::outcome::title_of;
use highwater_report::{Chart, Table};

const OPTIONS: [&str; 4] = ["0", "1", "2", AUTO];

pub(super) fn figures(rows: &[Row]) -> Vec<Figure> {
    let single = "Flushed as single pages by user threads, % of the pages flushed";
    let tables = [
        (metric::PAGES_FLUSHED, "Pages flushed"),
        (metric::TPS, "Transactions per second"),
        (metric::SINGLE_PAGE_PCT, single),
    ];
    let charts = [(metric::PAGES_FLUSHED, "Pages flushed"), (metric::TPS, "TPS")];
    let tables = tables.into_iter().map(|(metric, title)| Figure::Table(table(rows, metric, title)));
    let charts =
        Rows::of_each(rows).flat_map(|of| charts.map(|(metric, what)| Figure::Chart(chart(&of, metric, what))));
    tables.chain(charts).collect()
}

/// Sizes of which the subject has rows.
fn present(rows: &Rows<'_>) -> Vec<&'static str> {
    SIZES.into_iter().filter(|size| rows.find(&[(SIZE, size)]).is_some()).collect()
}

/// Ours and the paper's, a line a subject and size.
fn table(rows: &[Row], metric: Metric, title: &str) -> Table {
    let mut table = table_of(title, "", &["Subject", "Size in the paper"], &OPTIONS);
    let first = Rows::of_first(rows);
    let sizes = present(&first);
    for size in &sizes {
        let papers = OPTIONS.map(|option| first.paper(&key(size, option), metric).map_or("–".into(), number));
        table.rows.push(cells(&["Paper: MySQL 5.6.25", size], papers));
    }
    for of in Rows::of_each(rows) {
        for size in &sizes {
            let numbers = OPTIONS.map(|option| number(of.value(&key(size, option), metric)));
            table.rows.push(cells(&[title_of(of.subject), size], numbers));
        }
    }
    table
}

/// Relative to option 0, as the paper's figures.
fn chart(rows: &Rows<'_>, metric: Metric, what: &str) -> Chart {
    let sizes = present(rows);
    let relative = |value: &dyn Fn(&str, &str) -> f64, option: &str| {
        places(sizes.iter().map(|size| value(size, option) / value(size, "0")))
    };
    let ours = |size: &str, option: &str| rows.value(&key(size, option), metric);
    let papers = |size: &str, option: &str| rows.paper(&key(size, option), metric).unwrap_or(f64::NAN);
    let mut lines = Vec::new();
    for option in ["1", "2"] {
        lines.push(measured(format!("option {option}"), relative(&ours, option)));
        lines.push(of_paper(format!("option {option}"), relative(&papers, option)));
    }
    if rows.find(&[(OPTION, AUTO)]).is_some() {
        lines.push(measured(AUTO, relative(&ours, AUTO)));
    }
    let lowest = lines.iter().flat_map(|line| &line.points).map(|p| p[1]).fold(1.0, f64::min);
    Chart {
        title: format!("{}: {what} relative to option 0", title_of(rows.subject)),
        x_label: "database size in the paper".into(),
        y_label: "option 0 = 1".into(),
        categories: sizes.iter().map(ToString::to_string).collect(),
        y_from: Some((lowest * 20.0).floor() / 20.0),
        lines,
        ..Chart::default()
    }
}
