//! `highwater check DIR`: verifies every page, tree, free list and cross-reference.
//!
//! Rules
//! 1. Opening a database that was not closed recovers it first; a check looks at what recovery makes of it.
//! 2. Findings come first, one line each, then the counts. The last line says whether the database is sound.
//! 3. Exit status 0 sound, 1 not.

use crate::engine_options::EngineOptions;
use crate::failure::Failure;
use crate::output::{Json, Lines, must_be_writable, write_json};
use crate::progress::Progress;
use clap::Args;
use highwater::{CheckReport, Database, Options};
use serde_json::{Map, Value, json};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  highwater check /tmp/tpcc
  highwater check /tmp/tpcc --json - | head";

/// Verify every page, tree, free list and cross-reference
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct CheckArgs {
    /// Folder of the database
    dir: PathBuf,
    /// Write findings and counts as JSON to FILE; - is stdout, and nothing else goes there
    #[arg(long, value_name = "FILE")]
    json: Option<Json>,
    #[command(flatten)]
    engine: EngineOptions,
}

/// Runs the command.
///
/// # Errors
/// [`Failure::NotFine`] when something is wrong with the database; [`Failure::Failed`] when it cannot be checked.
pub fn run(args: &CheckArgs) -> Result<(), Failure> {
    if let Some(Json::File(path)) = &args.json {
        must_be_writable(path)?;
    }
    let options = Options { create_if_missing: false, ..args.engine.options(&[])? };
    let db = Database::open(&args.dir, options)?;
    let mut progress = None;
    let report = db.check_with(&mut |done, total| {
        progress.get_or_insert_with(|| Progress::new("checking", total).counting("pages")).at(done, done);
    });
    drop(progress);
    let closed = db.close();
    let report = report?;
    print(&report, Lines { stdout_taken: args.json == Some(Json::Stdout) });
    if let Some(json) = &args.json {
        write_json(json, &to_json(&report))?;
    }
    if !report.is_sound() {
        return Err(Failure::NotFine);
    }
    Ok(closed?)
}

fn print(report: &CheckReport, lines: Lines) {
    for finding in &report.findings {
        lines.write(&finding.to_string());
    }
    if report.findings_omitted > 0 {
        lines.write(&format!("... and {} more", report.findings_omitted));
    }
    for (name, value) in report.counts.values() {
        lines.write(&format!("{name:<24}{value:>16}"));
    }
    match report.findings.len() as u64 + report.findings_omitted {
        0 => lines.write("sound"),
        1 => lines.write("NOT SOUND: 1 finding"),
        count => lines.write(&format!("NOT SOUND: {count} findings")),
    }
}

fn to_json(report: &CheckReport) -> String {
    let findings = report.findings.iter().map(|finding| {
        json!({
            "page": finding.page.map(|page| page.0),
            "table": finding.table,
            "index": finding.index,
            "text": finding.text,
        })
    });
    let counts: Map<String, Value> =
        report.counts.values().into_iter().map(|(name, value)| (name.to_string(), value.into())).collect();
    let value = json!({
        "sound": report.is_sound(),
        "findings": findings.collect::<Vec<_>>(),
        "findings_omitted": report.findings_omitted,
        "counts": counts,
    });
    format!("{value:#}")
}
