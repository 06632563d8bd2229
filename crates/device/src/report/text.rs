//! The table for the terminal.

use super::file_name;
use crate::histogram::Latency;
use crate::replay::ReplayResult;
use highwater_report::numbers::bytes;
use std::fmt::Write;

/// The result of a replay as plain text of at most 100 columns, apart from file names.
pub fn text(result: &ReplayResult) -> String {
    let mut out = String::new();
    head(&mut out, result);
    streams(&mut out, result);
    groups(&mut out, result);
    over_time(&mut out, result);
    wear(&mut out, result);
    timing(&mut out, result);
    if result.requests == 0 {
        return out + "warning: the trace has no requests\n";
    }
    let speed = &result.speed;
    let _ =
        writeln!(out, "replayed in {:.1} s, {:.1} million 4 KiB writes/s", speed.wall_s, speed.host_blocks_per_s / 1e6);
    out
}

fn head(out: &mut String, result: &ReplayResult) {
    let totals = &result.totals;
    let _ = writeln!(out, "{} on {}, {}", file_name(&result.trace), result.device.name(), bytes(result.capacity_bytes));
    if let Some(journal) = result.ranges.iter().find(|r| r.name == "journal") {
        let found = if result.journal_found { " (found from the trace)" } else { "" };
        let last = journal.first_lba + journal.blocks - 1;
        let _ = writeln!(out, "journal at LBA {} to {last}{found}", journal.first_lba);
    }
    let _ = writeln!(out);
    for (name, value) in [
        ("write amplification", format!("{:.3}", totals.write_amplification)),
        ("host written (hbmw)", bytes(totals.host_written_bytes)),
        ("media written (mbmw)", bytes(totals.media_written_bytes)),
        ("media erased (mbe)", bytes(totals.media_erased_bytes)),
        ("copied by collection", bytes(totals.copied_bytes)),
        ("absorbed in the buffer", bytes(totals.absorbed_bytes)),
        ("waiting in the buffer", bytes(totals.waiting_bytes)),
    ] {
        let _ = writeln!(out, "  {name:<22} {value:>12}");
    }
    if result.passes.len() > 1 {
        let passes: Vec<_> = result.passes.iter().map(|p| format!("{:.3}", p.write_amplification)).collect();
        let _ = writeln!(out, "  {:<22} {}", "by pass", passes.join(", "));
    }
}

fn streams(out: &mut String, result: &ReplayResult) {
    let _ = writeln!(out, "\n{:>8} {:>12} {:>12} {:>12} {:>8}", "stream", "host", "copied", "padded", "WAF");
    for s in &result.streams {
        let _ = writeln!(
            out,
            "{:>8} {:>12} {:>12} {:>12} {:>8.3}",
            s.stream,
            bytes(s.host_written_bytes),
            bytes(s.copied_bytes),
            bytes(s.padded_bytes),
            s.write_amplification
        );
    }
}

fn groups(out: &mut String, result: &ReplayResult) {
    if result.groups.len() < 2 {
        return;
    }
    let _ = writeln!(out, "\n{:<24} {:>12} {:>12} {:>24}", "range", "size", "written", "writes per written block");
    for g in &result.groups {
        let (size, written) = (bytes(g.bytes), bytes(g.written_bytes));
        let _ = writeln!(out, "{:<24} {size:>12} {written:>12} {:>24.1}", g.name, g.writes_per_written_block);
    }
}

/// At most twelve lines, evenly spread.
fn over_time(out: &mut String, result: &ReplayResult) {
    let samples = &result.samples;
    if samples.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{:>6} {:>14} {:>10} {:>10}", "pass", "host written", "WAF", "so far");
    let lines = samples.len().min(12);
    for i in 1..=lines {
        let s = &samples[i * samples.len() / lines - 1];
        let written = bytes(s.host_written_bytes);
        let (waf, so_far) = (s.write_amplification, s.write_amplification_so_far);
        let _ = writeln!(out, "{:>6} {written:>14} {waf:>10.3} {so_far:>10.3}", s.pass);
    }
}

fn wear(out: &mut String, result: &ReplayResult) {
    if let Some(wear) = &result.wear {
        let (min, mean, max) = (wear.min_erases, wear.mean_erases, wear.max_erases);
        let _ = writeln!(out, "\nwear of {} erase units: {min} to {max} erases, mean {mean:.1}", wear.units);
    }
}

fn timing(out: &mut String, result: &ReplayResult) {
    let Some(timing) = &result.timing else { return };
    let _ = writeln!(
        out,
        "\n{:>8} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "latency", "requests", "mean us", "p50 us", "p99 us", "max us"
    );
    let mut line = |name: &str, l: &Latency| {
        let (n, mean, p50, p99, max) = (l.requests, l.mean_us, l.p50_us, l.p99_us, l.max_us);
        let _ = writeln!(out, "{name:>8} {n:>10} {mean:>10.1} {p50:>10.1} {p99:>10.1} {max:>10.1}");
    };
    line("read", &timing.read);
    line("write", &timing.write);
    line("flush", &timing.flush);
    let _ = writeln!(out, "device time {:.1} s", timing.device_s);
}
