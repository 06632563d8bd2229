//! Tables of a run's report: kinds of transactions, consistency conditions, bytes and pages, the device, options and
//! counters.

use crate::result::{Condition, RunResult};
use highwater_device::usage::DeviceUsage;
use highwater_report::numbers::{bytes, figure, ms, percent, thousands};
use highwater_report::{Markup, Table, Tone, Width, bar, folded, mark, pairs};
use maud::html;
use std::collections::BTreeMap;

pub(super) fn tables(r: &RunResult) -> Vec<Markup> {
    let mut cards = vec![kinds(r)];
    cards.extend(r.consistency.as_deref().map(conditions));
    cards.extend([written(r), pages(r)]);
    cards.extend(r.device.as_ref().map(device));
    let counters = r.counters.iter().map(|(name, value)| (name.clone(), thousands(*value))).collect();
    cards.extend([
        names_and_values("Configuration", true, &r.config),
        names_and_values("Engine counters", false, &counters),
    ]);
    cards
}

/// The name of a field with blanks instead of underscores.
fn words(name: &str) -> String {
    name.replace('_', " ")
}

fn kinds(r: &RunResult) -> Markup {
    let head = ["Kind", "Transactions", "Share", "Rolled back", "Median ms", "95 % ms", "99 % ms", "Worst ms"];
    let rows = r.kinds.iter().map(|(name, kind)| {
        let share = format!("{:.1} %", percent(kind.transactions, r.transactions));
        let (done, rolled_back) = (thousands(kind.transactions), thousands(kind.rolled_back));
        let l = &kind.latency_us;
        vec![words(name), done, share, rolled_back, ms(l.p50), ms(l.p95), ms(l.p99), ms(l.max)]
    });
    Table::new("Transactions", 1, &head).with(rows).card(Width::Full)
}

fn written(r: &RunResult) -> Markup {
    let total = r.bytes_written.values().sum();
    let rows = r.bytes_written.iter().map(|(placement, &count)| {
        let share = percent(count, total);
        let share_text = format!("{share:.1} %");
        vec![html! { (words(placement)) }, bar(share), html! { (bytes(count)) }, html! { (share_text) }]
    });
    let head = ["Placement", "", "Amount", "Share"];
    Table::new("Bytes written by placement", 2, &head).with(rows).card(Width::Half)
}

fn device(usage: &DeviceUsage) -> Markup {
    let line = |name: &str, host: u64, copied: u64, waf: f64| {
        vec![name.to_string(), bytes(host), bytes(copied), format!("{waf:.3}")]
    };
    let streams = usage.streams.iter();
    let rows = streams.map(|s| line(&s.stream, s.host_written_bytes, s.copied_bytes, s.write_amplification));
    let t = &usage.totals;
    let all = line("all", t.host_written_bytes, t.copied_bytes, t.write_amplification);
    let title = format!("Device: {}, {}", usage.device, bytes(usage.capacity_bytes));
    let head = ["Stream", "Host writes", "Copied by collection", "Write amplification"];
    Table::new(&title, 1, &head).with(rows.chain([all])).card(Width::Half)
}

fn pages(r: &RunResult) -> Markup {
    let p = &r.pages;
    let rows = [
        ("Read", p.read),
        ("Flushed", p.flushed),
        ("– from the LRU list", p.flushed_lru_list),
        ("– from the flush list: dirty percentage", p.flushed_dirty_pct),
        ("– from the flush list: checkpoint age", p.flushed_checkpoint_age),
        ("– from the flush list: idle", p.flushed_idle),
        ("– from the flush list: filled by a load", p.flushed_filled),
        ("– from the flush list: sync flush", p.flushed_sync),
        ("– neighbors", p.flushed_neighbor),
        ("– single pages, by waiting threads", p.flushed_single_page),
    ];
    let counted = rows.into_iter().filter_map(|(name, count)| Some((name, count?)));
    let rows = counted.map(|(name, count)| {
        let rate = format!("{} per s", figure(count as f64 / r.elapsed_s.max(1e-9)));
        vec![name.to_string(), thousands(count), rate]
    });
    Table::new("Pages", 1, &["", "Pages", "Rate"]).with(rows).card(Width::Half)
}

fn conditions(conditions: &[Condition]) -> Markup {
    let all_hold = conditions.iter().all(|c| c.holds);
    let rows = conditions.iter().map(|c| {
        let verdict = mark(Tone::of(c.holds), if c.holds { "holds" } else { "violated" });
        let mut cells = vec![html! { (c.condition) }, html! { (c.text) }, verdict];
        if !all_hold {
            cells.push(html! { (c.detail) });
        }
        cells
    });
    let head = ["Clause", "Condition", "", "First violation found"];
    let head = &head[..if all_hold { 3 } else { 4 }];
    Table::new("Consistency conditions", head.len(), head).with(rows).card(Width::Full)
}

fn names_and_values(title: &str, open: bool, values: &BTreeMap<String, String>) -> Markup {
    folded(title, open, pairs(values.iter().map(|(name, value)| (name.as_str(), value.as_str()))))
}
