//! Charts of the run over time.

use super::option;
use crate::result::{Interval, RunResult};
use highwater_report::{Chart, Kind, Line, Markup};

const PAGE_BYTES: f64 = 16384.0;
const MIB: f64 = (1 << 20) as f64;

pub(super) fn charts(r: &RunResult) -> Vec<Markup> {
    let size = |name: &str| option(r, name).parse().unwrap_or(0.0);
    let page_bytes = if size("page_size") > 0.0 { size("page_size") } else { PAGE_BYTES };
    let charts = [
        throughput(r),
        latency(r),
        pool(r, size("buffer_pool_size") / page_bytes),
        checkpoint_age(r, size("log_file_size") / MIB),
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

/// A line through a value of each interval, at the middle of the interval. Fewer than two intervals give no line.
fn line(r: &RunResult, name: &str, value: impl Fn(&Interval) -> f64) -> Line {
    let intervals = if r.intervals.len() < 2 { &[] } else { r.intervals.as_slice() };
    let points = intervals.iter().map(|i| [i.at_s - i.length_s / 2.0, value(i)]).collect();
    Line { name: name.into(), points, paper: false }
}

/// A count as a number; NaN, which draws no point, if the store does not count it.
fn number(count: Option<u64>) -> f64 {
    count.map_or(f64::NAN, |count| count as f64)
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
        line(r, "holding data", |i| number(i.pool_pages_data)),
        line(r, "dirty", |i| number(i.pool_pages_dirty)),
        line(r, "free", |i| number(i.pool_pages_free)),
    ];
    Chart { limit: Some((pool_pages, "pool size".into())), ..chart(r, "Buffer pool", "pages", Kind::Lines, lines) }
}

fn checkpoint_age(r: &RunResult, log_mib: f64) -> Chart {
    let lines = vec![line(r, "age", |i| number(i.checkpoint_age_bytes) / MIB)];
    let chart = chart(r, "Checkpoint age", "MiB of redo since the last checkpoint", Kind::Area, lines);
    Chart { limit: Some((log_mib, "log size".into())), ..chart }
}

fn flushed(r: &RunResult) -> Chart {
    let per_second =
        |name: &str, pages: fn(&Interval) -> Option<u64>| line(r, name, move |i| number(pages(i)) / i.length_s);
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
    let mib_per_second =
        |i: &Interval, key: &str| i.bytes_written.get(key).copied().unwrap_or(0) as f64 / MIB / i.length_s;
    let lines = placements.map(|(key, name)| line(r, name, |i| mib_per_second(i, key)));
    chart(r, "Bytes written by placement", "MiB per second", Kind::Stack, lines.to_vec())
}
