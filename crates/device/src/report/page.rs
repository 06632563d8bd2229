//! The page for the browser.

use super::svg::{self, Bar, Line, Scale};
use super::{bytes, escape, file_name};
use crate::error::{DeviceError, Result};
use crate::preset;
use crate::replay::{Pace, ReplayResult};
use crate::trace::ranges::NamedRange;
use std::fmt::Write;

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("style.css");
const GIB: f64 = (1u64 << 30) as f64;

/// The page as text.
pub fn html(result: &ReplayResult) -> Result<String> {
    let json = serde_json::to_string(result).map_err(|e| DeviceError::Config(format!("as JSON: {e}")))?;
    let trace = escape(file_name(&result.trace));
    let parts = [
        ("title", format!("{trace}: Highwater device")),
        ("style", STYLE.to_string()),
        ("heading", trace.clone()),
        ("lead", lead(result)),
        ("tiles", tiles(result)),
        ("charts", charts(result)),
        ("tables", tables(result)),
        ("data", json.replace('<', "\\u003c")),
    ];
    Ok(fill(PAGE, &parts))
}

/// The template with each `{{name}}` replaced. What is put in is not looked at again.
fn fill(template: &str, parts: &[(&str, String)]) -> String {
    let mut pieces = template.split("{{");
    let mut page = pieces.next().unwrap_or("").to_string();
    for piece in pieces {
        let (name, rest) = piece.split_once("}}").unwrap_or(("", piece));
        page += parts.iter().find(|(part, _)| *part == name).map_or("", |(_, text)| text);
        page += rest;
    }
    page
}

fn lead(result: &ReplayResult) -> String {
    let pace = match result.pace {
        Pace::Untimed => "without time (wear only)".to_string(),
        Pace::AsRecorded => "at the recorded times".to_string(),
        Pace::QueueDepth(depth) => format!("with {depth} requests outstanding"),
    };
    let aged = match (result.age.fill, result.age.overwrites) {
        (false, _) => "new".to_string(),
        (true, 0.0) => "filled once before".to_string(),
        (true, times) => format!("filled once and overwritten at random {times} times before"),
    };
    let (name, size) = (escape(result.device.name()), bytes(result.capacity_bytes));
    let passes = result.passes.len();
    format!("Replayed {passes} time(s) on {name}, {size}, {aged}, {pace}. Figures are those of the last pass.")
}

fn tiles(result: &ReplayResult) -> String {
    let totals = &result.totals;
    let mut tiles = vec![
        (
            "Write amplification",
            format!("{:.3}", totals.write_amplification),
            "medium writes over host writes".to_string(),
        ),
        ("Host written", bytes(totals.host_written_bytes), format!("{} flushes", totals.flushes)),
        ("Medium written", bytes(totals.media_written_bytes), format!("{} copied", bytes(totals.copied_bytes))),
    ];
    if let Some(wear) = &result.wear {
        let note = format!("{} to {} of {} units", wear.min_erases, wear.max_erases, wear.units);
        tiles.push(("Erases of a unit", format!("{:.1}", wear.mean_erases), note));
    }
    if let Some(timing) = &result.timing {
        let note = format!("p99 {} us", svg::number(timing.write.p99_us));
        tiles.push(("Write latency", format!("{} us", svg::number(timing.write.mean_us)), note));
        let note = format!("p99 {} us", svg::number(timing.flush.p99_us));
        tiles.push(("Flush latency", format!("{} us", svg::number(timing.flush.mean_us)), note));
    }
    let rate = format!("{:.1} M/s", result.speed.host_blocks_per_s / 1e6);
    tiles.push(("Replay speed", rate, "4 KiB writes, ageing and parsing included".into()));
    let tile = |(name, value, note): (&str, String, String)| {
        format!(
            "<div class=\"tile\"><div class=\"name\">{name}</div><div class=\"value\">{value}</div><div class=\"note\">{note}</div></div>"
        )
    };
    tiles.into_iter().map(tile).collect()
}

fn card(title: &str, wide: bool, body: &str) -> String {
    let class = if wide { "card wide" } else { "card" };
    format!("<div class=\"{class}\"><h2>{}</h2><div class=\"scroll\">{body}</div></div>", escape(title))
}

fn charts(result: &ReplayResult) -> String {
    let over_time = |value: fn(&crate::replay::result::Sample) -> f64| -> Vec<(f64, f64)> {
        result.samples.iter().map(|s| (s.host_written_bytes as f64 / GIB, value(s))).collect()
    };
    let waf = [
        Line { name: "since the sample before".into(), points: over_time(|s| s.write_amplification) },
        Line { name: "since the beginning".into(), points: over_time(|s| s.write_amplification_so_far) },
    ];
    let mut out = card(
        "Write amplification",
        false,
        &svg::lines(&waf, "GiB written by the host, all passes", "write amplification"),
    );
    out += &card("GiB by stream", false, &streams_chart(result));
    out += &card("Host writes per 4 KiB block, over the address space", false, &heat_chart(result));
    if let Some(wear) = &result.wear {
        let classes = wear.histogram_units.len() as f64;
        let width = f64::from(wear.max_erases - wear.min_erases + 1) / classes;
        let every = wear.histogram_units.len().div_ceil(8);
        let bar = |(i, units): (usize, &u32)| {
            let label = format!("{:.0}", f64::from(wear.min_erases) + i as f64 * width);
            let tick = i.is_multiple_of(every).then(|| label.clone());
            Bar { label, tick, parts: vec![f64::from(*units)], class: None }
        };
        let bars: Vec<Bar> = wear.histogram_units.iter().enumerate().map(bar).collect();
        out += &card(
            "Wear: erase units by erases",
            false,
            &svg::bars(&bars, &["erase units"], Scale::Linear, "erases of a unit", "erase units"),
        );
    }
    out
}

fn streams_chart(result: &ReplayResult) -> String {
    let gib = |n: u64| n as f64 / GIB;
    let bar = |s: &crate::replay::result::StreamResult| Bar {
        label: s.stream.clone(),
        tick: Some(s.stream.clone()),
        parts: vec![gib(s.host_written_bytes), gib(s.copied_bytes), gib(s.padded_bytes)],
        class: None,
    };
    let bars: Vec<Bar> = result.streams.iter().map(bar).collect();
    svg::bars(&bars, &["host", "copied", "padded"], Scale::Linear, "stream", "GiB")
}

/// Writes per block over the address space; stretches that lie mostly in the journal have a colour of their own.
fn heat_chart(result: &ReplayResult) -> String {
    let heat = &result.heat_written_blocks;
    let per_stretch = result.capacity_bytes as f64 / 4096.0 / heat.len().max(1) as f64;
    let in_journal = |i: usize| {
        let middle = (i as f64 + 0.5) * per_stretch;
        let holds = |r: &NamedRange| middle >= f64::from(r.first_lba) && middle < f64::from(r.first_lba + r.blocks);
        result.ranges.iter().any(|r| r.name == "journal" && holds(r))
    };
    let bar = |(i, writes): (usize, &u64)| Bar {
        label: format!("from LBA {:.0}", i as f64 * per_stretch),
        tick: i.is_multiple_of(64).then(|| svg::number((i as f64 * per_stretch).round())),
        parts: vec![*writes as f64 / per_stretch],
        class: in_journal(i).then_some(1),
    };
    let bars: Vec<Bar> = heat.iter().enumerate().map(bar).collect();
    let journal = result.ranges.iter().any(|r| r.name == "journal");
    let series: &[&str] = if journal { &["elsewhere", "journal"] } else { &["writes per 4 KiB block"] };
    svg::bars(&bars, series, Scale::Logarithmic, "LBA (4 KiB)", "writes per 4 KiB block")
}

/// A table: headings (right-aligned after the first) and rows.
fn table(headings: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let class = |i: usize| if i == 0 { "" } else { " class=\"n\"" };
    let mut out = "<table><tr>".to_string();
    for (i, heading) in headings.iter().enumerate() {
        let _ = write!(out, "<th{}>{}</th>", class(i), escape(heading));
    }
    for row in rows {
        out += "</tr><tr>";
        for (i, cell) in row.iter().enumerate() {
            let _ = write!(out, "<td{}>{}</td>", class(i), escape(cell));
        }
    }
    out + "</tr></table>"
}

fn tables(result: &ReplayResult) -> String {
    let streams = result.streams.iter().map(|s| {
        let waf = format!("{:.3}", s.write_amplification);
        vec![s.stream.clone(), bytes(s.host_written_bytes), bytes(s.copied_bytes), s.collected_units.to_string(), waf]
    });
    let mut out = card("Streams", false, &table(&["stream", "host", "copied", "units collected", "WAF"], streams));
    let groups = result.groups.iter().map(|g| {
        let often = format!("{:.1}", g.writes_per_written_block);
        vec![g.name.clone(), bytes(g.bytes), bytes(g.written_bytes), bytes(g.read_bytes), often]
    });
    out += &card("Ranges", false, &table(&["range", "size", "written", "read", "writes per written block"], groups));
    let passes = result.passes.iter().enumerate().map(|(i, p)| {
        let waf = format!("{:.3}", p.write_amplification);
        vec![
            (i + 1).to_string(),
            bytes(p.host_written_bytes),
            bytes(p.media_written_bytes),
            bytes(p.media_erased_bytes),
            waf,
        ]
    });
    out += &card("Passes", false, &table(&["pass", "host (hbmw)", "media (mbmw)", "erased (mbe)", "WAF"], passes));
    out += &card("Device", false, &parameters(result));
    if let Ok(preset) = preset::find(result.device.name()) {
        let rows = preset
            .sources
            .iter()
            .map(|s| format!("<tr><td>{}</td><td>{:?}</td><td>{}</td></tr>", escape(s.0), s.1, escape(s.2)));
        let body = format!(
            "<table><tr><th>parameter</th><th>basis</th><th>where, or why</th></tr>{}</table>",
            rows.collect::<String>()
        );
        out += &card("Where the preset's values come from", true, &body);
    }
    out
}

/// Every parameter of the device as it was built.
fn parameters(result: &ReplayResult) -> String {
    let mut rows = Vec::new();
    if let Ok(serde_json::Value::Object(kinds)) = serde_json::to_value(&result.device) {
        kinds.into_iter().for_each(|(kind, value)| flatten(&kind, &value, &mut rows));
    }
    table(&["parameter", "value"], rows.into_iter())
}

fn flatten(name: &str, value: &serde_json::Value, rows: &mut Vec<Vec<String>>) {
    match value {
        serde_json::Value::Object(fields) => {
            fields.iter().for_each(|(field, value)| flatten(&format!("{name}.{field}"), value, rows));
        }
        serde_json::Value::String(text) => rows.push(vec![name.into(), text.clone()]),
        other => rows.push(vec![name.into(), other.to_string()]),
    }
}
