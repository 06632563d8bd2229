//! Results as text, in sysbench's style.
//!
//! Source of the formats: sysbench 1.0.20, `db_report_intermediate` and `db_report_cumulative` (`src/db_driver.c`),
//! `sb_report_cumulative` (`src/sysbench.c`).
//!
//! Rules
//! 1. What sysbench also prints has sysbench's names and columns, so that scripts for its output read this one.
//! 2. What sysbench does not have (kinds, pages, bytes, conditions) comes after it.

use crate::result::{Interval, RunResult};
use std::fmt::Write;

pub(crate) fn interval_line(interval: &Interval, threads: usize) -> String {
    let queries = &interval.queries;
    let per_s = |count: u64| count as f64 / interval.length_s;
    format!(
        "[ {:.0}s ] thds: {threads} tps: {:.2} qps: {:.2} (r/w/o: {:.2}/{:.2}/{:.2}) lat (ms,95%): {:.2} err/s: \
         {:.2} reconn/s: 0.00",
        interval.at_s,
        interval.tps,
        per_s(queries.total()),
        per_s(queries.read),
        per_s(queries.write),
        per_s(queries.other),
        interval.latency_us.p95 / 1000.0,
        interval.errors_per_s,
    )
}

fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / count;
    (mean, variance.sqrt())
}

/// Whether counters that are 0 are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zeros {
    /// Not at all.
    Hidden,
    /// As all others.
    Shown,
}

/// The whole summary.
pub fn summary(result: &RunResult, zeros: Zeros) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = sysbench_part(&mut out, result).and_then(|()| our_part(&mut out, result, zeros));
    out
}

/// The summary of a load of `rows` rows.
pub fn load_summary(result: &RunResult, rows: u64, zeros: Zeros) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = load_part(&mut out, result, rows, zeros);
    out
}

fn load_part(out: &mut String, r: &RunResult, rows: u64, zeros: Zeros) -> std::fmt::Result {
    writeln!(out, "Load:")?;
    writeln!(out, "    rows:                                {rows}")?;
    writeln!(out, "    total time:                          {:.4}s", r.elapsed_s)?;
    writeln!(out, "    rows per second:                     {:.0}\n", rows as f64 / r.elapsed_s)?;
    pages_part(out, r)?;
    device_part(out, r)?;
    counters_part(out, r, zeros)
}

fn sysbench_part(out: &mut String, r: &RunResult) -> std::fmt::Result {
    let row = |name: &str, count: u64| format!("    {name:<37}{count:<6} ({:.2} per sec.)", count as f64 / r.elapsed_s);
    writeln!(out, "SQL statistics:\n    queries performed:")?;
    let queries = [
        ("read", r.queries.read),
        ("write", r.queries.write),
        ("other", r.queries.other),
        ("total", r.queries.total()),
    ];
    for (name, count) in queries {
        writeln!(out, "        {:<33}{count}", format!("{name}:"))?;
    }
    writeln!(out, "{}", row("transactions:", r.transactions))?;
    writeln!(out, "{}", row("queries:", r.queries.total()))?;
    writeln!(out, "{}", row("ignored errors:", r.errors))?;
    writeln!(out, "{}\n", row("reconnects:", 0))?;
    writeln!(out, "General statistics:")?;
    writeln!(out, "    total time:                          {:.4}s", r.elapsed_s)?;
    writeln!(out, "    total number of events:              {}\n", r.transactions)?;
    let ms = |us: f64| us / 1000.0;
    let busy_ms = r.execution_s_by_thread.iter().sum::<f64>() * 1000.0;
    writeln!(out, "Latency (ms):")?;
    writeln!(out, "         min: {:39.2}", ms(r.latency_us.min))?;
    writeln!(out, "         avg: {:39.2}", ms(r.latency_us.mean))?;
    writeln!(out, "         max: {:39.2}", ms(r.latency_us.max))?;
    writeln!(out, "         95th percentile: {:27.2}", ms(r.latency_us.p95))?;
    writeln!(out, "         sum: {busy_ms:39.2}\n")?;
    let events: Vec<f64> = r.transactions_by_thread.iter().map(|&t| t as f64).collect();
    let (events, times) = (mean_and_deviation(&events), mean_and_deviation(&r.execution_s_by_thread));
    writeln!(out, "Threads fairness:")?;
    writeln!(out, "    events (avg/stddev):           {:.4}/{:.2}", events.0, events.1)?;
    writeln!(out, "    execution time (avg/stddev):   {:.4}/{:.2}\n", times.0, times.1)
}

fn our_part(out: &mut String, r: &RunResult, zeros: Zeros) -> std::fmt::Result {
    if r.kinds.len() > 1 {
        writeln!(out, "Transactions (latency in ms):")?;
        writeln!(
            out,
            "    {:<18}{:>12}{:>8}{:>10}{:>10}{:>10}{:>10}{:>13}",
            "kind", "count", "share", "p50", "p95", "p99", "max", "rolled back"
        )?;
        for (name, kind) in &r.kinds {
            let share = kind.transactions as f64 * 100.0 / r.transactions.max(1) as f64;
            let l = &kind.latency_us;
            writeln!(
                out,
                "    {name:<18}{:>12}{share:>7.1}%{:>10.3}{:>10.3}{:>10.3}{:>10.3}{:>13}",
                kind.transactions,
                l.p50 / 1000.0,
                l.p95 / 1000.0,
                l.p99 / 1000.0,
                l.max / 1000.0,
                kind.rolled_back
            )?;
        }
        writeln!(out)?;
    }
    if let Some(rate) = r.new_orders_per_min {
        writeln!(out, "New orders per minute:                   {rate:.0}\n")?;
    }
    pages_part(out, r)?;
    device_part(out, r)?;
    counters_part(out, r, zeros)?;
    consistency_part(out, r)
}

fn pages_part(out: &mut String, r: &RunResult) -> std::fmt::Result {
    let p = &r.pages;
    let n = |pages: Option<u64>| pages.map_or("–".to_string(), |pages| pages.to_string());
    writeln!(out, "Pages:")?;
    writeln!(out, "    read:                                {}", n(p.read))?;
    let (lru_list, flush_list) = (n(p.flushed_lru_list), n(p.flushed_flush_list));
    let (neighbor, single_page) = (n(p.flushed_neighbor), n(p.flushed_single_page));
    writeln!(
        out,
        "    flushed:                             {} (LRU list {lru_list}, flush list {flush_list}, neighbor \
         {neighbor}, single page {single_page})",
        n(p.flushed)
    )?;
    let (dirty_pct, checkpoint_age) = (n(p.flushed_dirty_pct), n(p.flushed_checkpoint_age));
    let (idle, filled, sync) = (n(p.flushed_idle), n(p.flushed_filled), n(p.flushed_sync));
    writeln!(
        out,
        "    flush list:                          dirty percentage {dirty_pct}, checkpoint age {checkpoint_age}, \
         idle {idle}, filled by a load {filled}, sync {sync}\n",
    )?;
    let total: u64 = r.bytes_written.values().sum();
    writeln!(out, "Written (MiB):                           {:.1}", mib(total))?;
    for (placement, bytes) in r.bytes_written.iter().filter(|(_, bytes)| **bytes > 0) {
        writeln!(out, "    {:<37}{:.1}", format!("{placement}:"), mib(*bytes))?;
    }
    if let Some(each) = total.checked_div(r.transactions) {
        writeln!(out, "    bytes per transaction:               {each}")?;
    }
    Ok(())
}

fn device_part(out: &mut String, r: &RunResult) -> std::fmt::Result {
    let Some(device) = &r.device else { return Ok(()) };
    let totals = &device.totals;
    writeln!(out, "\nDevice ({}, {:.0} MiB):", device.device, mib(device.capacity_bytes))?;
    writeln!(out, "    write amplification:                 {:.3}", totals.write_amplification)?;
    for (name, bytes) in [
        ("host written (MiB):", totals.host_written_bytes),
        ("media written (MiB):", totals.media_written_bytes),
        ("copied by collection (MiB):", totals.copied_bytes),
        ("host read (MiB):", totals.host_read_bytes),
    ] {
        writeln!(out, "    {name:<37}{:.1}", mib(bytes))?;
    }
    writeln!(out, "    flushes:                             {}", totals.flushes)?;
    for s in &device.streams {
        let (host, copied, waf) = (mib(s.host_written_bytes), mib(s.copied_bytes), s.write_amplification);
        let name = format!("stream {}:", s.stream);
        writeln!(out, "    {name:<37}host {host:.1}, copied {copied:.1}, write amplification {waf:.3}")?;
    }
    Ok(())
}

/// The counters of the engine's table (gauges: their last value).
fn counters_part(out: &mut String, r: &RunResult, zeros: Zeros) -> std::fmt::Result {
    let shown = || r.counters.iter().filter(|(_, value)| zeros == Zeros::Shown || **value > 0);
    if shown().next().is_none() {
        return Ok(());
    }
    let hidden = r.counters.len() - shown().count();
    let rest = if hidden > 0 { format!(" (without {hidden} that are 0)") } else { String::new() };
    writeln!(out, "\nCounters{rest}:")?;
    shown().try_for_each(|(name, value)| writeln!(out, "    {:<37}{value}", format!("{name}:")))
}

fn consistency_part(out: &mut String, r: &RunResult) -> std::fmt::Result {
    let Some(conditions) = &r.consistency else { return Ok(()) };
    writeln!(out, "\nConsistency conditions:")?;
    for c in conditions {
        let verdict = if c.holds { "holds" } else { "VIOLATED" };
        writeln!(out, "    {:<10}{verdict:<10}{}", c.condition, c.text)?;
        if !c.holds {
            writeln!(out, "              {}", c.detail)?;
        }
    }
    Ok(())
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / (1 << 20) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Condition, LatencyUs, Queries};

    #[test]
    fn interval_line_is_sysbenchs() {
        let latency_us = LatencyUs { p95: 5_500.0, ..LatencyUs::default() };
        let queries = Queries { read: 1400, write: 400, other: 200 };
        let interval = Interval { at_s: 10.001, length_s: 2.0, tps: 50.0, queries, latency_us, ..Interval::default() };
        assert_eq!(
            interval_line(&interval, 4),
            "[ 10s ] thds: 4 tps: 50.00 qps: 1000.00 (r/w/o: 700.00/200.00/100.00) lat (ms,95%): 5.50 err/s: 0.00 \
             reconn/s: 0.00"
        );
    }

    #[test]
    fn summary_has_sysbenchs_lines_and_names_a_violation() {
        let broken =
            Condition { condition: "3.3.2.1".into(), text: "W_YTD".into(), holds: false, detail: "warehouse 1".into() };
        let result =
            RunResult { elapsed_s: 2.0, transactions: 100, consistency: Some(vec![broken]), ..RunResult::default() };
        let text = summary(&result, Zeros::Hidden);
        for line in [
            "    transactions:                        100    (50.00 per sec.)",
            "    total time:                          2.0000s",
            "         95th percentile:                        0.00",
            "    3.3.2.1   VIOLATED  W_YTD",
            "              warehouse 1",
        ] {
            assert!(text.lines().any(|l| l == line), "{line:?} not in\n{text}");
        }
    }

    #[test]
    fn counters_that_are_0_are_hidden_unless_they_are_asked_for() {
        let counters = [("checkpoints".to_string(), 7), ("drops_postponed".to_string(), 0)].into();
        let result = RunResult { counters, elapsed_s: 1.0, ..RunResult::default() };
        let (short, whole) = (summary(&result, Zeros::Hidden), summary(&result, Zeros::Shown));
        assert!(
            short.contains("Counters (without 1 that are 0):\n    checkpoints: ") && !short.contains("drops_postponed")
        );
        assert!(whole.contains("Counters:\n    checkpoints: ") && whole.contains("    drops_postponed: "), "{whole}");
    }
}
