//! `highwater device list`: the presets, their main figures, and the source of each parameter; a preset as a file that
//! `--device` reads.

use crate::failure::Failure;
use crate::output::{Json, Lines, json_must_be_writable, write_json};
use clap::Args;
use highwater_device::hdd::HddConfig;
use highwater_device::preset::{self, Basis, DeviceConfig, PRESETS, Preset, Source};
use highwater_device::ssd::config::SsdConfig;
use serde_json::{Map, Value, json};
use std::fmt::Write;

const EXAMPLES: &str = "\
Examples:
  highwater device list
  highwater device list samsung-pm953-960gb
  highwater device list --verbose
  highwater device list wd10ezex-1tb --config > mine.json
  highwater device list --json -";

/// List the presets and the source of each figure
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct ListOptions {
    /// Show every parameter of this preset with its source
    preset: Option<String>,
    /// Show every parameter of every preset with its source
    #[arg(long, short)]
    verbose: bool,
    /// Print the preset as a file to change: --device of bench, replay and mount reads it. Its name must be changed too
    #[arg(long, requires = "preset", conflicts_with_all = ["verbose", "json"])]
    config: bool,
    /// Write every preset as JSON to FILE; with -, write only the JSON to stdout
    #[arg(long, value_name = "FILE")]
    json: Option<Json>,
}

/// Runs the command.
///
/// # Errors
/// [`Failure::Usage`] for a preset that there is not.
pub(super) fn run(options: &ListOptions) -> Result<(), Failure> {
    let shown: Vec<&Preset> = match &options.preset {
        Some(name) => vec![preset::find(name)?],
        None => PRESETS.iter().collect(),
    };
    if let ([preset], true) = (shown.as_slice(), options.config) {
        let text = serde_json::to_string_pretty(&preset.config()).map_err(|e| Failure::Failed(e.to_string()))?;
        Lines { stdout_taken: false }.write(&text);
        return Ok(());
    }
    json_must_be_writable(options.json.as_ref())?;
    let lines = Lines { stdout_taken: options.json == Some(Json::Stdout) };
    let detailed = options.verbose || options.preset.is_some();
    if !lines.stdout_taken {
        let text =
            if detailed { shown.iter().map(|p| details(p)).collect::<Vec<_>>().join("\n") } else { table(&shown) };
        lines.write(text.trim_end());
    }
    match &options.json {
        Some(json) => write_json(json, &format!("{:#}", Value::Array(shown.iter().map(|p| to_json(p)).collect()))),
        None => Ok(()),
    }
}

/// Capacity in the decimal units of labels.
fn decimal(bytes: u64) -> String {
    let gb = bytes as f64 / 1e9;
    if gb >= 1000.0 { format!("{:.2} TB", gb / 1000.0) } else { format!("{gb:.0} GB") }
}

fn table(presets: &[&Preset]) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{:<22} {:>8} {:>7}  {:<44} what it is", "preset", "capacity", "streams", "main figures");
    for preset in presets {
        let config = preset.config();
        let capacity = decimal(u64::from(config.capacity_blocks()) * 4096);
        let (streams, figures) = match &config {
            DeviceConfig::Ssd(ssd) => (ssd.streams, ssd_figures(ssd)),
            DeviceConfig::Hdd(hdd) => (1, hdd_figures(hdd)),
        };
        let _ = writeln!(out, "{:<22} {capacity:>8} {streams:>7}  {figures:<44} {}", preset.name, preset.summary);
    }
    out + "\nSources of the figures: `highwater device list PRESET`, or --verbose for all presets."
}

fn ssd_figures(ssd: &SsdConfig) -> String {
    let unit_mib = f64::from(ssd.geometry.slots_per_unit()) / 256.0;
    let spare = ssd.overprovisioning() * 100.0;
    format!("{} dies, erase unit {unit_mib:.0} MiB, {spare:.1} % spare", ssd.geometry.dies())
}

fn hdd_figures(hdd: &HddConfig) -> String {
    let (seek_ms, outer, inner) = (hdd.average_seek_ns as f64 / 1e6, hdd.outer_mb_per_s, hdd.inner_mb_per_s);
    format!("{} rpm, seek {seek_ms:.1} ms, {outer} to {inner} MB/s", hdd.rpm)
}

/// Every parameter as (path, value), in the order of the configuration.
fn parameters(config: &DeviceConfig) -> Vec<(String, Value)> {
    let value = serde_json::to_value(config).unwrap_or_default();
    // The outer object has one member: the kind of device.
    let fields = value.as_object().and_then(|kinds| kinds.values().next()).and_then(Value::as_object).cloned();
    let mut rows = Vec::new();
    flatten("", &fields.unwrap_or_default(), &mut rows);
    rows.retain(|(path, _)| path != "name");
    rows
}

fn flatten(prefix: &str, fields: &Map<String, Value>, rows: &mut Vec<(String, Value)>) {
    for (name, value) in fields {
        match value {
            Value::Object(inner) => flatten(&format!("{prefix}{name}."), inner, rows),
            value => rows.push((format!("{prefix}{name}"), value.clone())),
        }
    }
}

/// A preset, a line for each parameter; a source is shown at its parameter or group.
fn details(preset: &Preset) -> String {
    let mut out = format!("{}: {}\n", preset.name, preset.summary);
    let _ = writeln!(out, "  {:<37} {:>12}  {:<9} where, or why", "parameter", "value", "basis");
    for (path, value) in parameters(&preset.config()) {
        let (basis, note) = preset.source_of(&path).map_or(("", ""), |s| (basis_name(s.1), s.2));
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_string);
        let _ = writeln!(out, "  {path:<37} {text:>12}  {basis:<9} {note}");
    }
    out
}

fn basis_name(basis: Basis) -> &'static str {
    match basis {
        Basis::Published => "published",
        Basis::Assumed => "assumed",
    }
}

fn to_json(preset: &Preset) -> Value {
    let config = preset.config();
    let source = |s: &Source| json!({"parameter": s.0, "basis": s.1, "note": s.2});
    json!({
        "name": preset.name,
        "summary": preset.summary,
        "capacity_bytes": u64::from(config.capacity_blocks()) * 4096,
        "config": config,
        "sources": preset.sources.iter().map(source).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_is_shown_with_its_basis() {
        for preset in PRESETS {
            for line in details(preset).lines().skip(2) {
                assert!(line.contains(" published ") || line.contains(" assumed "), "{}: {line}", preset.name);
            }
        }
        assert!(details(&PRESETS[0]).contains("timing.program_ns"));
    }
}
