//! `highwater check`: verifies a database and reports the findings.
//!
//! Rules
//! 1. The database is opened and checked as a whole. If it cannot be opened, its data file is scanned page by page, so
//!    that the damage is located anyway.
//! 2. Unless it is to be repaired, its files are only read, so it also works on a file system mounted read-only. A
//!    database that was not closed is first recovered in memory, so the check is of the state after the next opening.
//! 3. Exit status: 0 sound, 1 findings or a database that cannot be opened, 2 the check could not run: no database
//!    there, in use, no permission to read it, an option that does not fit it.

use crate::at_rest::{AtRest, is_damage};
use crate::engine_options::EngineOptions;
use crate::failure::Failure;
use crate::output::{Json, Lines, json_must_be_writable, write_json};
use crate::progress::Progress;
use crate::salvage;
use clap::Args;
use highwater::{CheckReport, Error, RepairReport};
use highwater_storage::{OpenError, SetFile};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Instant;

const EXAMPLES: &str = "\
Examples:
  highwater check /srv/shop
  highwater check /srv/shop --log-dir /srv/redo --json report.json
  highwater check --repair /srv/shop
  highwater check --salvage /srv/shop-new /srv/shop

The check writes nothing: a database that was not closed is recovered in memory. With --repair the database is opened
as a program opens it, and each secondary index about which the check found something is built again from the rows.
All other damage stays as it is. With --salvage all rows that can be read are copied into a new database, also from a
database that cannot be opened; what is lost is named.
Exit status: 0 sound; 1 something is wrong; 2 the check could not run (no database there, in use, not readable).";

/// Verify every page, tree and cross-reference of a database
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CheckArgs {
    /// Folder of the database
    dir: PathBuf,
    /// Rebuild damaged secondary indexes from the rows, then check again
    #[arg(long)]
    repair: bool,
    /// Copy all rows that can be read into a new database in this folder, which must be missing or empty
    #[arg(long, value_name = "OUT", conflicts_with_all = ["repair", "json"])]
    salvage: Option<PathBuf>,
    /// Write the report as JSON; - is stdout, and nothing else goes there
    #[arg(long, value_name = "FILE")]
    json: Option<Json>,
    #[command(flatten)]
    engine: EngineOptions,
}

/// A check's result.
struct Checked {
    report: CheckReport,
    /// The error of the opening or the check, if it failed; then the report is that of a scan of the data file.
    cannot_open: Option<String>,
    /// Bytes of redo that were replayed first: in memory, unless the database was to be repaired.
    replayed_bytes: u64,
    /// The result of a repair; `None` if none was requested.
    repaired: Option<Repaired>,
}

/// The result of a repair.
struct Repaired {
    /// Table and index of each that was rebuilt.
    rebuilt: Vec<(String, String)>,
    /// Table and index of each that could not be, and why.
    refused: Vec<(String, String, String)>,
}

impl Checked {
    fn is_sound(&self) -> bool {
        self.cannot_open.is_none() && self.report.is_sound()
    }
}

/// Runs `check`.
///
/// # Errors
/// [`Failure::NotFine`] when the database is not sound (which has been printed), [`Failure::Usage`] when there is none.
pub(crate) fn run(args: &CheckArgs) -> Result<(), Failure> {
    if let Some(out) = &args.salvage {
        return salvage::run(&args.dir, out, &args.engine);
    }
    json_must_be_writable(args.json.as_ref())?;
    let started = Instant::now();
    let checked = check(args)?;
    let elapsed_s = started.elapsed().as_secs_f64();
    print(&checked, elapsed_s, Lines { stdout_taken: args.json == Some(Json::Stdout) });
    if let Some(json) = &args.json {
        write_json(json, &format!("{:#}", to_json(&args.dir, &checked, elapsed_s)))?;
    }
    if checked.is_sound() { Ok(()) } else { Err(Failure::NotFine) }
}

fn check(args: &CheckArgs) -> Result<Checked, Failure> {
    let mut progress = None;
    let mut tell = |done, total| {
        let bar = progress.get_or_insert_with(|| Progress::new("checking", total).counting("pages"));
        bar.at(done, done);
    };
    let checked = if args.repair { repair(args, &mut tell) } else { look(args, &mut tell) };
    match checked {
        Ok(checked) => Ok(checked),
        Err(error) if is_damage(&error) => scan(args, &error),
        Err(in_use @ Error::Open(OpenError::InUse { .. })) => Err(in_use.into()),
        Err(error) => Err(Failure::Usage(error.to_string())),
    }
}

fn look(args: &CheckArgs, tell: &mut dyn FnMut(u64, u64)) -> Result<Checked, Error> {
    let db = args.engine.open_read_only(&args.dir)?;
    let report = db.check_with(&mut |done, total| tell(done, total))?;
    let replayed_bytes = db.stats().recovery_redo_bytes;
    db.close()?;
    Ok(Checked { report, cannot_open: None, replayed_bytes, repaired: None })
}

fn repair(args: &CheckArgs, tell: &mut dyn FnMut(u64, u64)) -> Result<Checked, Error> {
    let db = args.engine.open(&args.dir, &[], false)?;
    let RepairReport { found, rebuilt, refused, left } = db.repair_indexes(&mut |done, total| tell(done, total))?;
    let replayed_bytes = db.stats().recovery_redo_bytes;
    db.close()?;
    found.findings.iter().for_each(|finding| tell!("found: {finding}"));
    let repaired = Some(Repaired { rebuilt, refused });
    Ok(Checked { report: left, cannot_open: None, replayed_bytes, repaired })
}

/// Scans the data file of a database that cannot be opened.
fn scan(args: &CheckArgs, why: &Error) -> Result<Checked, Failure> {
    // Without a data file the error says what the folder holds, such as a restore that was cut short.
    if matches!(why, Error::Incompatible(_)) && !args.dir.join("data").exists() {
        return Err(Failure::Usage(why.to_string()));
    }
    let key = args.engine.options(&[])?.read_key()?;
    let files = AtRest::lock(&args.dir, None, key.as_ref())?;
    let mut progress = None;
    let mut tell = |done, total| {
        let bar = progress.get_or_insert_with(|| Progress::new("scanning", total).counting("pages"));
        bar.at(done, done);
    };
    let cannot_open = Some(why.to_string());
    let data = files.open(SetFile::Data).map_err(Error::from);
    let scanned = data.and_then(|data| highwater::inspect::scan(&*data, &mut tell));
    match scanned {
        Ok(report) => Ok(Checked { report, cannot_open, replayed_bytes: 0, repaired: None }),
        // No page of a database: some other file.
        Err(Error::Incompatible(_)) if matches!(why, Error::Incompatible(_)) => Err(Failure::Usage(why.to_string())),
        Err(_) => Ok(Checked { report: CheckReport::default(), cannot_open, replayed_bytes: 0, repaired: None }),
    }
}

fn print(checked: &Checked, elapsed_s: f64, lines: Lines) {
    let Checked { report, cannot_open, replayed_bytes, repaired } = checked;
    if *replayed_bytes > 0 && repaired.is_none() {
        lines.write(&format!(
            "the database was not closed: {replayed_bytes} bytes of redo were replayed in memory; its files are \
             unchanged"
        ));
    }
    if let Some(reason) = cannot_open {
        lines.write(&format!("the database cannot be opened: {reason}"));
        lines.write("its data file was scanned page by page; trees and cross-references were not checked");
    }
    if let Some(repaired) = repaired {
        print_repaired(repaired, lines);
    }
    for (name, value) in report.counts.values() {
        if value > 0 || cannot_open.is_none() {
            lines.write(&format!("{:<24}{value:>16}", name.replace('_', " ")));
        }
    }
    for index in &report.not_compared {
        lines.write(&index.to_string());
    }
    for finding in &report.findings {
        lines.write(&format!("finding: {finding}"));
    }
    if report.findings_omitted > 0 {
        lines.write(&format!("and {} more findings", report.findings_omitted));
    }
    let count = report.findings.len() as u64 + report.findings_omitted;
    let verdict = match (count, cannot_open) {
        (0, None) => "sound".to_string(),
        (0, Some(_)) => "not sound: no page is damaged, but the database cannot be opened".to_string(),
        (1, _) => "not sound: 1 finding".to_string(),
        (n, _) => format!("not sound: {n} findings"),
    };
    lines.write(&format!("{verdict} ({elapsed_s:.1} s)"));
}

fn print_repaired(repaired: &Repaired, lines: Lines) {
    for (table, index) in &repaired.rebuilt {
        lines.write(&format!("rebuilt: index {index} of table {table}"));
    }
    for (table, index, reason) in &repaired.refused {
        lines.write(&format!("not rebuilt: index {index} of table {table}: {reason}"));
    }
    if repaired.rebuilt.is_empty() && repaired.refused.is_empty() {
        lines.write("no secondary index had to be rebuilt");
    }
}

fn to_json(dir: &Path, checked: &Checked, elapsed_s: f64) -> Value {
    let report = &checked.report;
    let counts: serde_json::Map<String, Value> =
        report.counts.values().into_iter().map(|(name, value)| (name.to_string(), value.into())).collect();
    let findings: Vec<Value> = report
        .findings
        .iter()
        .map(|f| json!({ "page": f.page.map(|page| page.0), "table": f.table, "index": f.index, "text": f.text }))
        .collect();
    let not_compared = report.not_compared.iter();
    let not_compared: Vec<Value> =
        not_compared.map(|of| json!({ "table": of.table, "index": of.index, "collation": of.collation })).collect();
    json!({
        "dir": dir.display().to_string(),
        "sound": checked.is_sound(),
        "cannot_open": checked.cannot_open,
        "replayed_bytes": checked.replayed_bytes,
        "rebuilt": checked.repaired.as_ref().map(|repaired| &repaired.rebuilt),
        "not_rebuilt": checked.repaired.as_ref().map(|repaired| &repaired.refused),
        "elapsed_s": elapsed_s,
        "counts": counts,
        "findings": findings,
        "findings_omitted": report.findings_omitted,
        "not_compared": not_compared,
    })
}
