//! The run over time.

use super::option;
use crate::result::{Interval, RunResult};
use highwater_report::numbers::mib;
use highwater_report::{Chart, Kind, Line, Markup};

const PAGE_BYTES: f64 = 16384.0;

/// Every chart.
pub(super) fn charts(r: &RunResult) -> Vec<Markup> {
    let size = |name: &str| option(r, name).parse().unwrap_or(0.0);
    let page_bytes = if size("page_size") > 0.0 { size("page_size") } else { PAGE_BYTES };
    let charts = [
        throughput(r),
        latency(r),
        pool(r, size("buffer_pool_size") / page_bytes),
        checkpoint_age(r, size("log_file_size") / (1 << 20) as f64),
        flushed(r),
        written(r),
    ];
    charts.iter().map(Chart::card).collect()
}

fn chart(r: &RunResult, title: &str, unit: &str, kind: Kind, lines: Vec<Line>) -> Chart {
    Chart {
        title: title.into(),
        y_label: unit.into(),
        x_label: "seconds since the start".into(),
        x_to: r.intervals.last().map_or(0.0, |last| last.at_s),
        kind,
        lines,
        ..Chart::default()
    }
}

/// A value of every interval, in its middle. Fewer than two intervals make no line.
fn line(r: &RunResult, name: &str, value: impl Fn(&Interval) -> f64) -> Line {
    let intervals = if r.intervals.len() < 2 { &[] } else { r.intervals.as_slice() };
    let points = intervals.iter().map(|i| [i.at_s - i.length_s / 2.0, value(i)]).collect();
    Line { name: name.into(), points, paper: false }
}

fn throughput(r: &RunResult) -> Chart {
    let lines = vec![line(r, "all kinds", |i| i.tps)];
    chart(r, "Throughput", "transactions per second", Kind::Area, lines)
}

fn latency(r: &RunResult) -> Chart {
    let lines = vec![
        line(r, "median", |i| i.latency_us.p50 / 1000.0),
        line(r, "95 %", |i| i.latency_us.p95 / 1000.0),
        line(r, "99 %", |i| i.latency_us.p99 / 1000.0),
    ];
    chart(r, "Latency", "milliseconds", Kind::Lines, lines)
}

fn pool(r: &RunResult, pool_pages: f64) -> Chart {
    let lines = vec![
        line(r, "holding data", |i| i.pool_pages_data as f64),
        line(r, "dirty", |i| i.pool_pages_dirty as f64),
        line(r, "free", |i| i.pool_pages_free as f64),
    ];
    Chart { limit: Some((pool_pages, "pool size".into())), ..chart(r, "Buffer pool", "pages", Kind::Lines, lines) }
}

fn checkpoint_age(r: &RunResult, log_mib: f64) -> Chart {
    let lines = vec![line(r, "age", |i| mib(i.checkpoint_age_bytes))];
    let chart = chart(r, "Checkpoint age", "MiB of redo since the last checkpoint", Kind::Area, lines);
    Chart { limit: Some((log_mib, "log size".into())), ..chart }
}

fn flushed(r: &RunResult) -> Chart {
    let per_second = |name: &str, pages: fn(&Interval) -> u64| line(r, name, move |i| pages(i) as f64 / i.length_s);
    let lines = vec![
        per_second("flush list", |i| i.pages.flushed_flush_list),
        per_second("LRU list", |i| i.pages.flushed_lru_list),
        per_second("single page", |i| i.pages.flushed_single_page),
    ];
    chart(r, "Pages flushed by kind", "pages per second", Kind::Stack, lines)
}

fn written(r: &RunResult) -> Chart {
    let placements = [
        ("redo", "redo"),
        ("doublewrite", "doublewrite"),
        ("index_leaf", "index leaves"),
        ("index_inner", "inner pages"),
        ("undo", "undo"),
        ("change_buffer", "change buffer"),
        ("other", "other"),
    ];
    let mib_per_second = |i: &Interval, key: &str| mib(i.bytes_written.get(key).copied().unwrap_or(0)) / i.length_s;
    let lines = placements.map(|(key, name)| line(r, name, |i| mib_per_second(i, key)));
    chart(r, "Bytes written by placement", "MiB per second", Kind::Stack, lines.to_vec())
}
