//! The page for the browser.

use super::{file_name, write_amplification};
use crate::error::{DeviceError, Result};
use crate::preset;
use crate::replay::result::{Sample, StreamResult};
use crate::replay::{Pace, ReplayResult};
use crate::trace::ranges::NamedRange;
use highwater_report::numbers::{bytes, bytes_and_unit, figure, short};
use highwater_report::{Bar, Bars, Chart, Line, Markup, Page, Scale, Table, Tile, Width, card, pairs};

const GIB: f64 = (1u64 << 30) as f64;
/// Bars of the wear and heat charts between two ticks.
const HEAT_TICK: usize = 64;
const WEAR_TICKS: usize = 8;

/// The page as text.
pub fn html(result: &ReplayResult) -> Result<String> {
    let json = serde_json::to_string(result).map_err(|e| DeviceError::Config(format!("as JSON: {e}")))?;
    let trace = file_name(&result.trace);
    let page = Page {
        title: &format!("{trace}: Highwater device"),
        brand: "Highwater device",
        heading: trace,
        lead: &lead(result),
        tiles: tiles(result),
        groups: vec![charts(result), tables(result)],
        footer: "Figures are those of the last pass.",
        json: &json,
    };
    Ok(page.html())
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
    let (name, size) = (result.device.name(), bytes(result.capacity_bytes));
    format!("Replayed {} time(s) on {name}, {size}, {aged}, {pace}.", result.passes.len())
}

fn tiles(result: &ReplayResult) -> Vec<Tile> {
    let totals = &result.totals;
    let amount = |name: &str, count: u64| {
        let (amount, unit) = bytes_and_unit(count);
        Tile::new(name, amount, unit)
    };
    let waf = write_amplification(totals.write_amplification);
    let mut tiles = vec![
        Tile::new("Write amplification", waf, "").note("medium writes over host writes"),
        amount("Host written", totals.host_written_bytes).note(format!("{} flushes", totals.flushes)),
        amount("Medium written", totals.media_written_bytes).note(format!("{} copied", bytes(totals.copied_bytes))),
    ];
    if let Some(wear) = &result.wear {
        let note = format!("{} to {} of {} units", wear.min_erases, wear.max_erases, wear.units);
        tiles.push(Tile::new("Erases of a unit", format!("{:.1}", wear.mean_erases), "").note(note));
    }
    if let Some(timing) = &result.timing {
        for (name, latency) in [("Write latency", &timing.write), ("Flush latency", &timing.flush)] {
            let note = format!("99 %: {} us", figure(latency.p99_us));
            tiles.push(Tile::new(name, figure(latency.mean_us), "us").note(note));
        }
    }
    let rate = format!("{:.1}", result.speed.host_blocks_per_s / 1e6);
    tiles.push(Tile::new("Replay speed", rate, "M/s").note("4 KiB writes, ageing and parsing included"));
    tiles
}

fn charts(result: &ReplayResult) -> Vec<Markup> {
    let over_time = |name: &str, value: fn(&Sample) -> f64| {
        let point = |s: &Sample| [s.host_written_bytes as f64 / GIB, value(s)];
        Line { name: name.into(), points: result.samples.iter().map(point).collect(), paper: false }
    };
    let waf = Chart {
        title: "Write amplification".into(),
        x_label: "GiB written by the host, all passes".into(),
        y_label: "medium writes over host writes".into(),
        lines: vec![
            over_time("since the sample before", |s| s.write_amplification),
            over_time("since the beginning", |s| s.write_amplification_so_far),
        ],
        ..Chart::default()
    };
    let mut charts = vec![waf.card(), streams_chart(result).card(), heat_chart(result).card()];
    charts.extend(wear_chart(result).map(|chart| chart.card()));
    charts
}

fn streams_chart(result: &ReplayResult) -> Bars {
    let gib = |n: u64| n as f64 / GIB;
    let bar = |s: &StreamResult| Bar {
        label: s.stream.clone(),
        tick: Some(s.stream.clone()),
        parts: vec![gib(s.host_written_bytes), gib(s.copied_bytes), gib(s.padded_bytes)],
        colour: 0,
    };
    Bars {
        title: "Writes by stream".into(),
        x_label: "stream".into(),
        y_label: "GiB".into(),
        scale: Scale::Linear,
        parts: ["host", "copied", "padded"].map(String::from).to_vec(),
        bars: result.streams.iter().map(bar).collect(),
    }
}

/// Writes per block over the address space; stretches that lie mostly in the journal have a colour of their own.
fn heat_chart(result: &ReplayResult) -> Bars {
    let heat = &result.heat_written_blocks;
    let per_stretch = result.capacity_bytes as f64 / 4096.0 / heat.len().max(1) as f64;
    let in_journal = |i: usize| {
        let middle = (i as f64 + 0.5) * per_stretch;
        let holds = |r: &NamedRange| middle >= f64::from(r.first_lba) && middle < f64::from(r.first_lba + r.blocks);
        result.ranges.iter().any(|r| r.name == "journal" && holds(r))
    };
    let bar = |(i, writes): (usize, &u64)| Bar {
        label: format!("from LBA {:.0}", i as f64 * per_stretch),
        tick: i.is_multiple_of(HEAT_TICK).then(|| short((i as f64 * per_stretch).round())),
        parts: vec![*writes as f64 / per_stretch],
        colour: in_journal(i).into(),
    };
    let journal = result.ranges.iter().any(|r| r.name == "journal");
    let parts: &[&str] = if journal { &["elsewhere", "journal"] } else { &["writes"] };
    Bars {
        title: "Host writes over the address space".into(),
        x_label: "LBA (4 KiB)".into(),
        y_label: "writes per 4 KiB block".into(),
        scale: Scale::Logarithmic,
        parts: parts.iter().map(ToString::to_string).collect(),
        bars: heat.iter().enumerate().map(bar).collect(),
    }
}

fn wear_chart(result: &ReplayResult) -> Option<Bars> {
    let wear = result.wear.as_ref()?;
    let classes = &wear.histogram_units;
    let width = f64::from(wear.max_erases - wear.min_erases + 1) / classes.len() as f64;
    let bar = |(i, units): (usize, &u32)| {
        let label = format!("{:.0}", f64::from(wear.min_erases) + i as f64 * width);
        let tick = i.is_multiple_of(classes.len().div_ceil(WEAR_TICKS)).then(|| label.clone());
        Bar { label, tick, parts: vec![f64::from(*units)], colour: 0 }
    };
    Some(Bars {
        title: "Wear".into(),
        x_label: "erases of a unit".into(),
        y_label: "erase units".into(),
        scale: Scale::Linear,
        parts: vec!["erase units".into()],
        bars: classes.iter().enumerate().map(bar).collect(),
    })
}

fn tables(result: &ReplayResult) -> Vec<Markup> {
    let streams = result.streams.iter().map(|s| {
        let (host, copied) = (bytes(s.host_written_bytes), bytes(s.copied_bytes));
        vec![s.stream.clone(), host, copied, s.collected_units.to_string(), write_amplification(s.write_amplification)]
    });
    let groups = result.groups.iter().map(|g| {
        let often = format!("{:.1}", g.writes_per_written_block);
        vec![g.name.clone(), bytes(g.bytes), bytes(g.written_bytes), bytes(g.read_bytes), often]
    });
    let passes = result.passes.iter().enumerate().map(|(i, p)| {
        let [host, media] = [bytes(p.host_written_bytes), bytes(p.media_written_bytes)];
        let waf = write_amplification(p.write_amplification);
        vec![(i + 1).to_string(), host, media, bytes(p.media_erased_bytes), waf]
    });
    let parameters = parameters(result);
    let mut cards = vec![
        table("Streams", &["stream", "host", "copied", "units collected", "WAF"], streams),
        table("Ranges", &["range", "size", "written", "read", "writes per written block"], groups),
        table("Passes", &["pass", "host (hbmw)", "media (mbmw)", "erased (mbe)", "WAF"], passes),
        card("Device", Width::Full, pairs(parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())))),
    ];
    if let Ok(preset) = preset::find(result.device.name()) {
        let rows = preset.sources.iter().map(|s| vec![s.0.to_string(), format!("{:?}", s.1), s.2.to_string()]);
        let head = ["parameter", "basis", "where, or why"];
        cards.push(Table::new("Where the preset's values come from", 3, &head).with(rows).card(Width::Full));
    }
    cards
}

fn table(title: &str, head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> Markup {
    Table::new(title, 1, head).with(rows).card(Width::Half)
}

/// Every parameter of the device as it was built.
fn parameters(result: &ReplayResult) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    if let Ok(serde_json::Value::Object(kinds)) = serde_json::to_value(&result.device) {
        kinds.into_iter().for_each(|(kind, value)| flatten(&kind, &value, &mut rows));
    }
    rows
}

fn flatten(name: &str, value: &serde_json::Value, rows: &mut Vec<(String, String)>) {
    match value {
        serde_json::Value::Object(fields) => {
            fields.iter().for_each(|(field, value)| flatten(&format!("{name}.{field}"), value, rows));
        }
        serde_json::Value::String(text) => rows.push((name.into(), text.clone())),
        other => rows.push((name.into(), other.to_string())),
    }
}
