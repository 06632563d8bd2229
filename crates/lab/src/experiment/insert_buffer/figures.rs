//! The paper's tables, with measured and published values.

use super::claims::{key, per_transaction};
use super::paper;
use super::plan::{BUFFERINGS, DISK, MEDIA, MEDIUM, OFF};
use crate::experiment::figure::{Figure, cells, measured, of_paper, places, table};
use crate::experiment::judge::{Rows, number};
use crate::experiment::metric::{self, Metric};
use crate::experiment::outcome::title_of;
use crate::experiment::{Row, SubjectKind};
use highwater_report::{Chart, Table};

const PAPER: &str = "Paper: InnoDB";
const PAGES: [(&str, Metric); 4] = [
    ("INDEX reads", metric::INDEX_PAGES_READ),
    ("INDEX writes", metric::INDEX_PAGES_WRITTEN),
    ("IBUF_INDEX reads", metric::CHANGE_BUFFER_PAGES_READ),
    ("IBUF_INDEX writes", metric::CHANGE_BUFFER_PAGES_WRITTEN),
];

pub(super) fn figures(rows: &[Row]) -> Vec<Figure> {
    let media: Vec<&str> =
        MEDIA.into_iter().filter(|medium| rows.iter().any(|row| row.get(MEDIUM) == *medium)).collect();
    let tables = [throughput(rows, &media), pages(rows, &media), each_transaction(rows, &media), merges(rows, &media)];
    let charts = media.iter().flat_map(|medium| {
        [
            chart(rows, medium, "transactions per second", &speed, &|b| paper::figure(medium, b, metric::TPS)),
            chart(rows, medium, "index pages written a transaction", &index_writes, &|b| {
                paper_per_transaction(medium, b, metric::INDEX_PAGES_WRITTEN)
            }),
        ]
    });
    tables.into_iter().map(Figure::Table).chain(charts.map(Figure::Chart)).collect()
}

/// The setting as the subject has it.
fn name_of(subject: &str, buffering: &str) -> String {
    let is_own = subject.parse().is_ok_and(SubjectKind::is_highwater);
    match buffering {
        OFF => buffering.into(),
        _ if is_own => buffering.into(),
        DISK => "disk: all".into(),
        _ => "memory: all, on a ramdisk".into(),
    }
}

/// A line for each medium, subject and setting, the paper's first.
fn lines(
    table: &mut Table,
    rows: &[Row],
    media: &[&str],
    papers: &dyn Fn(&str, &str) -> Option<Vec<String>>,
    ours: &dyn Fn(&Rows<'_>, &str, &str) -> Vec<String>,
) {
    for medium in media {
        for buffering in BUFFERINGS {
            if let Some(numbers) = papers(medium, buffering) {
                table.rows.push(cells(&[medium, PAPER, &name_of("", buffering)], numbers));
            }
        }
        for of in Rows::of_each(rows) {
            for buffering in BUFFERINGS.into_iter().filter(|buffering| of.find(&key(medium, buffering)).is_some()) {
                let texts = [medium, title_of(of.subject), &name_of(of.subject, buffering)];
                table.rows.push(cells(&texts, ours(&of, medium, buffering)));
            }
        }
    }
}

const TEXTS: [&str; 3] = ["Medium", "Subject", "Change buffering"];

fn shown(value: Option<f64>) -> String {
    value.map_or("–".into(), number)
}

fn speed(rows: &Rows<'_>, medium: &str, buffering: &str) -> f64 {
    rows.value(&key(medium, buffering), metric::TPS)
}

fn index_writes(rows: &Rows<'_>, medium: &str, buffering: &str) -> f64 {
    per_transaction(rows, medium, buffering, metric::INDEX_PAGES_WRITTEN)
}

fn throughput(rows: &[Row], media: &[&str]) -> Table {
    let caption = "Highwater: by the device's own time, one request after the other. Servers: by the machine's time.";
    let mut table = table("Throughput", caption, &TEXTS, &["TPS", "Times off", "R/W requests/s", "Transactions", "s"]);
    let papers = |medium: &str, buffering: &str| {
        let (tps, off) = [buffering, OFF].map(|b| paper::figure(medium, b, metric::TPS)).into();
        let requests = paper::figure(medium, buffering, metric::REQUESTS_PER_S);
        let ratio = tps.zip(off).map(|(tps, off)| tps / off);
        tps?;
        let numbers = [tps, ratio, requests, paper::transactions(medium, buffering), Some(paper::SECONDS)];
        Some(numbers.map(shown).to_vec())
    };
    let ours = |of: &Rows<'_>, medium: &str, buffering: &str| {
        let value = |metric| of.value(&key(medium, buffering), metric);
        let ratio = speed(of, medium, buffering) / speed(of, medium, OFF);
        let (requests, all) = (value(metric::REQUESTS_PER_S), value(metric::TRANSACTIONS));
        [speed(of, medium, buffering), ratio, requests, all, value(metric::ELAPSED_S)].map(number).to_vec()
    };
    lines(&mut table, rows, media, &papers, &ours);
    table
}

fn pages(rows: &[Row], media: &[&str]) -> Table {
    let caption = "Pages at their places: without doublewrite copies. Every setting of a subject and medium ran the \
                   same number of transactions; the paper's ran for an hour.";
    let mut table = table("Pages read and written, by type", caption, &TEXTS, &PAGES.map(|(head, _)| head));
    let papers = |medium: &str, buffering: &str| {
        paper::figure(medium, buffering, metric::TPS)?;
        Some(PAGES.iter().map(|(_, metric)| shown(paper::figure(medium, buffering, *metric))).collect())
    };
    let ours = |of: &Rows<'_>, medium: &str, buffering: &str| {
        PAGES.iter().map(|(_, metric)| number(of.value(&key(medium, buffering), *metric))).collect()
    };
    lines(&mut table, rows, media, &papers, &ours);
    table
}

fn paper_per_transaction(medium: &str, buffering: &str, metric: Metric) -> Option<f64> {
    Some(paper::figure(medium, buffering, metric)? / paper::transactions(medium, buffering)?)
}

fn each_transaction(rows: &[Row], media: &[&str]) -> Table {
    let heads = PAGES.map(|(head, _)| head);
    let mut table = table("The same for each transaction", "", &TEXTS, &heads);
    let papers = |medium: &str, buffering: &str| {
        paper::figure(medium, buffering, metric::TPS)?;
        Some(PAGES.iter().map(|(_, metric)| shown(paper_per_transaction(medium, buffering, *metric))).collect())
    };
    let ours = |of: &Rows<'_>, medium: &str, buffering: &str| {
        PAGES.iter().map(|(_, metric)| number(per_transaction(of, medium, buffering, *metric))).collect()
    };
    lines(&mut table, rows, media, &papers, &ours);
    table
}

fn merges(rows: &[Row], media: &[&str]) -> Table {
    let caption = "The merge ratio is operations merged by leaves they were merged into. A server does not count the \
                   operations that it buffers; only Highwater carries any forward in its log.";
    let heads = [
        "Buffered",
        "Merged",
        "Leaves merged",
        "Merge ratio",
        "Carried forward, bytes",
        "Redo, bytes",
        "Buffer at the end, KiB",
    ];
    let mut table = table("Operations buffered and merged", caption, &TEXTS, &heads);
    let ours = |of: &Rows<'_>, medium: &str, buffering: &str| {
        let value = |metric| of.value(&key(medium, buffering), metric);
        let numbers = [
            value(metric::CHANGE_BUFFER_OPS_BUFFERED),
            value(metric::CHANGE_BUFFER_OPS_MERGED),
            value(metric::CHANGE_BUFFER_MERGES),
            value(metric::OPS_PER_MERGED_LEAF),
            value(metric::CHANGE_BUFFER_CARRIED_BYTES),
            value(metric::REDO_BYTES),
            value(metric::CHANGE_BUFFER_BYTES) / 1024.0,
        ];
        numbers.map(number).to_vec()
    };
    lines(&mut table, rows, media, &|_, _| None, &ours);
    table
}

/// Relative to off, a line a subject and one of the paper's.
fn chart(
    rows: &[Row],
    medium: &str,
    what: &str,
    ours: &dyn Fn(&Rows<'_>, &str, &str) -> f64,
    papers: &dyn Fn(&str) -> Option<f64>,
) -> Chart {
    let relative = |value: &dyn Fn(&str) -> f64| places(BUFFERINGS.map(|buffering| value(buffering) / value(OFF)));
    let mut lines: Vec<_> = Rows::of_each(rows)
        .map(|of| measured(title_of(of.subject), relative(&|buffering| ours(&of, medium, buffering))))
        .collect();
    let of_papers = relative(&|buffering| papers(buffering).unwrap_or(f64::NAN));
    lines.push(of_paper(PAPER, of_papers.into_iter().filter(|point| point[1].is_finite()).collect()));
    Chart {
        title: format!("{medium}: {what}"),
        x_label: "change buffering".into(),
        y_label: "off = 1".into(),
        categories: BUFFERINGS.iter().map(ToString::to_string).collect(),
        lines,
        ..Chart::default()
    }
}
