//! The parts of the page that need no script: heading, summary tiles, tables.
//!
//! Rules
//! 1. Every text that comes from the run passes [`escape`].
//! 2. Numbers carry their unit beside them; thousands are set apart by a narrow space.

use crate::result::{Condition, RunResult};
use highwater_device::usage::DeviceUsage;
use std::collections::BTreeMap;

/// Text as HTML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// 1234567 as `1 234 567`, with narrow spaces that do not break.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

/// Three digits that mean something.
fn short(number: f64) -> String {
    match number {
        n if n >= 100.0 => thousands(n.round() as u64),
        n if n >= 10.0 => format!("{n:.1}"),
        n if n >= 1.0 => format!("{n:.2}"),
        n => format!("{n:.3}"),
    }
}

fn ms(us: f64) -> String {
    short(us / 1000.0)
}

fn bytes(count: u64) -> (String, &'static str) {
    let units = [(1u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = units.iter().find(|(size, _)| count >= *size);
    unit.map_or((count.to_string(), "bytes"), |(size, name)| (short(count as f64 / *size as f64), name))
}

fn option<'r>(result: &'r RunResult, name: &str) -> &'r str {
    result.config.get(name).map_or("", String::as_str)
}

/// The page's heading.
pub(crate) fn heading(result: &RunResult) -> String {
    let name = match result.workload.split_once(' ') {
        Some(("ycsb", letter)) => format!("YCSB workload {}", letter.to_uppercase()),
        None if result.workload == "tpcc" => "TPC-C-like load".into(),
        None if result.workload == "user-table" => "Insert load of the user table".into(),
        _ => result.workload.clone(),
    };
    escape(&name)
}

/// What was run, on what, and what was durable.
pub(crate) fn lead(result: &RunResult) -> String {
    let mut parts = vec![option(result, "subject").to_string()];
    let size = [("warehouses", "warehouses"), ("tables", "tables of"), ("table_size", "rows"), ("records", "records")];
    for (name, label) in size {
        if let Some(value) = result.config.get(name) {
            parts.push(format!("{value} {label}"));
        }
    }
    parts.push(format!("{} client threads", option(result, "threads")));
    parts.push(format!("{:.1} s", result.elapsed_s));
    parts.push(option(result, "durability").to_string());
    parts.retain(|part| !part.is_empty());
    escape(&parts.join(" · ").replace("tables of · ", "tables of ")) + "."
}

fn tile(name: &str, value: &str, unit: &str, note: &str, class: &str) -> String {
    let unit = if unit.is_empty() { String::new() } else { format!("<small>{}</small>", escape(unit)) };
    let (name, value, note) = (escape(name), escape(value), escape(note));
    format!(
        "<div class=\"tile {class}\"><div class=\"name\">{name}</div><div class=\"value\">{value}{unit}</div><div class=\"note\">{note}</div></div>\n"
    )
}

/// The summary.
pub(crate) fn tiles(r: &RunResult) -> String {
    let mut out = tile("Throughput", &short(r.tps), "/s", &format!("{} transactions", thousands(r.transactions)), "");
    if let Some(rate) = r.new_orders_per_min {
        out += &tile("New orders", &short(rate), "/min", &format!("mix {}", option(r, "mix")), "");
    }
    out += &tile("Latency, 95 %", &ms(r.latency_us.p95), "ms", &format!("median {} ms", ms(r.latency_us.p50)), "");
    out += &tile("Latency, worst", &ms(r.latency_us.max), "ms", &format!("99 %: {} ms", ms(r.latency_us.p99)), "");
    let written: u64 = r.bytes_written.values().sum();
    let (amount, unit) = bytes(written);
    let each = written.checked_div(r.transactions).map(bytes);
    let each = each.map_or(String::new(), |(amount, unit)| format!("{amount} {unit} a transaction"));
    out += &tile("Written", &amount, unit, &each, "");
    if let Some(device) = &r.device {
        let (media, unit) = bytes(device.totals.media_written_bytes);
        let waf = format!("{:.2}", device.totals.write_amplification);
        out += &tile("Device write amplification", &waf, "", &format!("{media} {unit} to the medium"), "");
    }
    let errors = if r.errors == 0 { "" } else { "bad" };
    out += &tile("Errors", &thousands(r.errors), "", "retried transactions", errors);
    if let Some(conditions) = &r.consistency {
        let holding = conditions.iter().filter(|c| c.holds).count();
        let class = if r.is_consistent() { "good" } else { "bad" };
        out += &tile("Consistency", &format!("{holding} of {}", conditions.len()), "", "conditions hold", class);
    }
    out
}

fn card(title: &str, class: &str, body: &str) -> String {
    format!("<section class=\"card {class}\"><h2>{title}</h2><div class=\"scroll\">{body}</div></section>\n")
}

/// A table; columns whose head begins with `#` hold numbers.
fn table(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let class = |n: usize| if head[n].starts_with('#') { " class=\"n\"" } else { "" };
    let cells = |tag: &str, cells: Vec<String>| -> String {
        cells.iter().enumerate().map(|(n, cell)| format!("<{tag}{}>{cell}</{tag}>", class(n))).collect()
    };
    let names = head.iter().map(|name| escape(name.trim_start_matches('#'))).collect();
    let rows: String = rows.map(|row| format!("<tr>{}</tr>\n", cells("td", row))).collect();
    format!("<table><thead><tr>{}</tr></thead><tbody>\n{rows}</tbody></table>", cells("th", names))
}

fn kinds(r: &RunResult) -> String {
    let head = ["Kind", "#Transactions", "#Share", "#Rolled back", "#Median ms", "#95 % ms", "#99 % ms", "#Worst ms"];
    let rows = r.kinds.iter().map(|(name, kind)| {
        let share = kind.transactions as f64 * 100.0 / r.transactions.max(1) as f64;
        let l = &kind.latency_us;
        vec![
            escape(&name.replace('_', " ")),
            thousands(kind.transactions),
            format!("{share:.1} %"),
            thousands(kind.rolled_back),
            ms(l.p50),
            ms(l.p95),
            ms(l.p99),
            ms(l.max),
        ]
    });
    card("Transactions", "wide", &table(&head, rows))
}

fn written(r: &RunResult) -> String {
    let total = r.bytes_written.values().sum::<u64>().max(1);
    let rows = r.bytes_written.iter().map(|(placement, &count)| {
        let percent = count as f64 * 100.0 / total as f64;
        let (amount, unit) = bytes(count);
        vec![
            escape(&placement.replace('_', " ")),
            format!("<span class=\"bar\" style=\"width:{percent:.1}%\"></span>"),
            format!("{amount} {unit}"),
            format!("{percent:.1} %"),
        ]
    });
    card(
        "Bytes written by placement",
        "",
        &table(&["Placement", "", "#Amount", "#Share"], rows).replace("<td><span", "<td class=\"bars\"><span"),
    )
}

fn device(usage: &DeviceUsage) -> String {
    let amount = |count: u64| {
        let (amount, unit) = bytes(count);
        format!("{amount} {unit}")
    };
    let line = |name: &str, host: u64, copied: u64, waf: f64| {
        vec![escape(name), amount(host), amount(copied), format!("{waf:.3}")]
    };
    let streams = usage.streams.iter();
    let rows = streams.map(|s| line(&s.stream, s.host_written_bytes, s.copied_bytes, s.write_amplification));
    let t = &usage.totals;
    let all = line("all", t.host_written_bytes, t.copied_bytes, t.write_amplification);
    let title = format!("Device: {}, {}", escape(&usage.device), amount(usage.capacity_bytes));
    let head = ["Stream", "#Host writes", "#Copied by collection", "#Write amplification"];
    card(&title, "", &table(&head, rows.chain([all])))
}

fn pages(r: &RunResult) -> String {
    let p = &r.pages;
    let rows = [
        ("Read", p.read),
        ("Flushed", p.flushed),
        ("– from the LRU list", p.flushed_lru_list),
        ("– from the flush list: dirty percentage", p.flushed_dirty_pct),
        ("– from the flush list: checkpoint age", p.flushed_checkpoint_age),
        ("– from the flush list: idle", p.flushed_idle),
        ("– from the flush list: sync flush", p.flushed_sync),
        ("– neighbors", p.flushed_neighbor),
        ("– single pages, by waiting threads", p.flushed_single_page),
    ];
    let counted = rows.into_iter().filter_map(|(name, count)| Some((name, count?)));
    let rows = counted.map(|(name, count)| {
        let rate = format!("{} per s", short(count as f64 / r.elapsed_s.max(1e-9)));
        vec![name.to_string(), thousands(count), rate]
    });
    card("Pages", "", &table(&["", "#Pages", "#Rate"], rows))
}

fn conditions(conditions: &[Condition]) -> String {
    let all_hold = conditions.iter().all(|c| c.holds);
    let rows = conditions.iter().map(|c| {
        let (class, verdict) = if c.holds { ("mark", "holds") } else { ("mark bad", "violated") };
        let mark = format!("<span class=\"{class}\">{verdict}</span>");
        let detail = (!all_hold).then(|| escape(&c.detail));
        [escape(&c.condition), escape(&c.text), mark].into_iter().chain(detail).collect()
    });
    let head = ["Clause", "Condition", "", "First violation found"];
    card("Consistency conditions", "wide", &table(&head[..if all_hold { 3 } else { 4 }], rows))
}

fn pairs(title: &str, open: bool, pairs: &BTreeMap<String, String>) -> String {
    let rows: String = pairs
        .iter()
        .map(|(name, value)| {
            format!("<tr><td class=\"k\">{}</td><td class=\"v\">{}</td></tr>\n", escape(name), escape(value))
        })
        .collect();
    let open = if open { " open" } else { "" };
    format!(
        "<section class=\"card wide\"><details{open}><summary><h2>{title}</h2></summary><div class=\"columns\"><table>{rows}</table></div></details></section>\n"
    )
}

/// Every table.
pub(crate) fn tables(r: &RunResult) -> String {
    let counters = r.counters.iter().map(|(name, value)| (name.clone(), thousands(*value))).collect();
    let device = r.device.as_ref().map(device).unwrap_or_default();
    let conditions = r.consistency.as_deref().map(conditions).unwrap_or_default();
    format!(
        "<section class=\"tables\">\n{}{conditions}{}{}{device}{}{}</section>",
        kinds(r),
        written(r),
        pages(r),
        pairs("Configuration", true, &r.config),
        pairs("Engine counters", false, &counters)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(thousands(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(thousands(12), "12");
        assert_eq!(short(0.1234), "0.123");
        assert_eq!(short(1234.5), "1\u{202f}235");
        assert_eq!(bytes(3 << 20), ("3.00".into(), "MiB"));
        assert_eq!(bytes(7), ("7".into(), "bytes"));
    }
}
