//! Heading, lead and summary tiles.

use super::option;
use crate::result::RunResult;
use highwater_report::numbers::{bytes, bytes_and_unit, figure, ms, thousands};
use highwater_report::{Tile, Tone};

pub(super) fn heading(result: &RunResult) -> String {
    match result.workload.split_once(' ') {
        Some(("ycsb", letter)) => format!("YCSB workload {}", letter.to_uppercase()),
        None if result.workload == "tpcc" => "TPC-C-like load".into(),
        None if result.workload == "user-table" => "Insert load of the user table".into(),
        _ => result.workload.clone(),
    }
}

/// The workload, the store, and the durability of its commits.
pub(super) fn lead(result: &RunResult) -> String {
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
    parts.join(" · ").replace("tables of · ", "tables of ") + "."
}

pub(super) fn tiles(r: &RunResult) -> Vec<Tile> {
    let transactions = format!("{} transactions", thousands(r.transactions));
    let mut tiles = vec![Tile::new("Throughput", figure(r.tps), "/s").note(transactions)];
    if let Some(rate) = r.new_orders_per_min {
        tiles.push(Tile::new("New orders", figure(rate), "/min").note(format!("mix {}", option(r, "mix"))));
    }
    let l = &r.latency_us;
    tiles.push(Tile::new("Latency, 95 %", ms(l.p95), "ms").note(format!("median {} ms", ms(l.p50))));
    tiles.push(Tile::new("Latency, worst", ms(l.max), "ms").note(format!("99 %: {} ms", ms(l.p99))));
    let written: u64 = r.bytes_written.values().sum();
    let (amount, unit) = bytes_and_unit(written);
    let each = written.checked_div(r.transactions).map(|each| format!("{} a transaction", bytes(each)));
    tiles.push(Tile::new("Written", amount, unit).note(each.unwrap_or_default()));
    if let Some(device) = &r.device {
        let waf = format!("{:.2}", device.totals.write_amplification);
        let media = format!("{} to the medium", bytes(device.totals.media_written_bytes));
        tiles.push(Tile::new("Device write amplification", waf, "").note(media));
    }
    let tone = if r.errors == 0 { Tone::Plain } else { Tone::Bad };
    tiles.push(Tile::new("Errors", thousands(r.errors), "").note("retried transactions").tone(tone));
    if let Some(conditions) = &r.consistency {
        let holding = conditions.iter().filter(|c| c.holds).count();
        let value = format!("{holding} of {}", conditions.len());
        let tone = Tone::of(r.is_consistent());
        tiles.push(Tile::new("Consistency", value, "").note("conditions hold").tone(tone));
    }
    tiles
}
