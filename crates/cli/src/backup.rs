//! `highwater backup` and `highwater restore`.
//!
//! Rules
//! 1. A cleanly closed database is only read. Any other database is first opened, and so recovered, because the LSNs of
//!    a recovery in memory would differ from those of the files.
//! 2. A database that another process has open is refused: its own process takes the backup (`Database::backup`).
//! 3. The remains of a killed backup or restore are not used: the backup lacks a manifest, the restored database is in
//!    a folder `restoring`. The next restore into the same target begins again.

use crate::engine_options::{EngineOptions, size};
use crate::failure::Failure;
use crate::output::{Json, Lines, json_must_be_writable, write_json};
use crate::progress::Progress;
use clap::Args;
use highwater::{BackupManifest, BackupOptions, BackupProgress, Database, RestoreOptions, RestoreReport, Until};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

const BACKUP_EXAMPLES: &str = "\
Examples:
  highwater backup /srv/shop /backup/monday
  highwater backup /srv/shop /backup/tuesday --base /backup/monday
  highwater backup /srv/shop /backup/wednesday --base /backup/tuesday --max-rate 64M --json -

A database that a program has open is backed up by that program: Database::backup, while transactions run.
docs/design/backup.md says how a backup is made and what it promises.";

const RESTORE_EXAMPLES: &str = "\
Examples:
  highwater restore /backup/monday --to /srv/copy
  highwater restore /backup/monday /backup/tuesday /backup/wednesday --to /srv/copy
  highwater restore /backup/monday /backup/tuesday --verify

Any moment, if the redo was archived (--redo-archive /backup/redo at every opening of the database):
  highwater restore /backup/monday --redo /backup/redo --to /srv/copy
  highwater restore /backup/monday --redo /backup/redo --until 2026-01-31T11:59:30 --to /srv/copy
  highwater restore /backup/monday --redo /backup/redo --until txn:4711 --to /srv/copy
  highwater restore /backup/monday --redo /backup/redo --verify

Everything in the backups is verified before anything is written. The new database is checked before it takes its
place. It has a history of its own: archive its redo in another folder.";

/// Copy a database into a backup
#[derive(Args, Debug)]
#[command(after_help = BACKUP_EXAMPLES)]
pub(crate) struct BackupArgs {
    /// Folder of the database
    dir: PathBuf,
    /// Folder for the backup: new or empty, outside of the database's
    dest: PathBuf,
    /// An earlier backup of the same database: only pages that changed since are copied
    #[arg(long, value_name = "BACKUP")]
    base: Option<PathBuf>,
    /// Bytes of pages to read in a second at most; 0 = no limit
    #[arg(long, default_value = "0", value_name = "BYTES", value_parser = size)]
    max_rate: u64,
    /// Leave damaged pages out, and name them, instead of stopping at the first one; not with --base
    #[arg(long)]
    skip_damaged: bool,
    /// Write the manifest as JSON; - is stdout, and nothing else goes there
    #[arg(long, value_name = "FILE")]
    json: Option<Json>,
    #[command(flatten)]
    engine: EngineOptions,
}

/// Runs `backup`.
///
/// # Errors
/// [`Failure::NotFine`] if damaged pages were left out; that of the engine.
pub(crate) fn backup(args: &BackupArgs) -> Result<(), Failure> {
    json_must_be_writable(args.json.as_ref())?;
    let started = Instant::now();
    let database = args.engine.open_read_only(&args.dir)?;
    let database = match database.is_recovered_in_memory() {
        false => database,
        true => {
            database.close()?;
            tell!("the database was not closed: it is recovered first");
            args.engine.open(&args.dir, &[], false)?
        }
    };
    let options =
        BackupOptions { base: args.base.clone(), max_bytes_per_s: args.max_rate, skip_damaged: args.skip_damaged };
    let taken = database.backup(&args.dest, &options, &mut progress());
    let closed = database.close();
    let manifest = taken?;
    closed?;
    let lines = Lines { stdout_taken: args.json == Some(Json::Stdout) };
    lines.write(&describe(&manifest, started.elapsed().as_secs_f64()));
    for page in &manifest.damaged_pages {
        lines.write(&format!("page {page} is damaged and not in the backup"));
    }
    if let Some(json) = &args.json {
        let text = serde_json::to_string_pretty(&manifest).map_err(|error| Failure::Failed(error.to_string()))?;
        write_json(json, &text)?;
    }
    if manifest.damaged_pages.is_empty() { Ok(()) } else { Err(Failure::NotFine) }
}

/// The backup in one line.
pub(crate) fn describe(manifest: &BackupManifest, elapsed_s: f64) -> String {
    let kind = if manifest.is_full() { "full" } else { "incremental" };
    let (pages, end, mib) = (manifest.pages_copied, manifest.end_lsn, manifest.bytes() as f64 / 1048576.0);
    format!("{kind} backup {}: {pages} pages, {mib:.1} MiB, up to LSN {end} ({elapsed_s:.1} s)", manifest.backup_id)
}

/// Shows each step as a bar of its own.
fn progress() -> impl FnMut(BackupProgress) -> ControlFlow<()> {
    let mut shown: Option<(&'static str, Progress)> = None;
    move |at: BackupProgress| {
        if shown.as_ref().is_none_or(|(step, _)| *step != at.step) {
            shown = Some((at.step, Progress::new(at.step, at.total).counting("pages")));
        }
        if let Some((_, bar)) = &mut shown {
            bar.at(at.pages, at.pages);
        }
        ControlFlow::Continue(())
    }
}

/// Make a database of backups
#[derive(Args, Debug)]
#[command(after_help = RESTORE_EXAMPLES)]
pub(crate) struct RestoreArgs {
    /// A full backup, then the incremental ones that follow it, in order
    #[arg(required = true, value_name = "BACKUP")]
    backups: Vec<PathBuf>,
    /// Folder of the new database: new or empty
    #[arg(long, value_name = "DIR", required_unless_present = "verify")]
    to: Option<PathBuf>,
    /// The archive of the database's redo: the restore continues after the last backup
    #[arg(long, value_name = "ARCHIVE")]
    redo: Option<PathBuf>,
    /// Restore what was committed up to this moment: an LSN, a date and time in UTC (2026-01-31 11:59:30), or a
    /// transaction (txn:4711, this one included); backups of later moments are left out [default: the end of the redo]
    #[arg(long, value_name = "MOMENT", conflicts_with = "verify")]
    until: Option<Until>,
    /// Do not check the new database; pages, redo and files of the backups are verified in any case
    #[arg(long)]
    skip_check: bool,
    /// Verify the backups and make nothing
    #[arg(long, conflicts_with = "to")]
    verify: bool,
    #[command(flatten)]
    engine: EngineOptions,
}

/// Runs `restore`.
///
/// # Errors
/// That of the engine.
pub(crate) fn restore(args: &RestoreArgs) -> Result<(), Failure> {
    let (started, lines) = (Instant::now(), Lines { stdout_taken: false });
    let Some(to) = args.to.as_ref().filter(|_| !args.verify) else {
        let key = args.engine.options(&[])?.read_key()?;
        let report = Database::verify_backup(&args.backups, args.redo.as_deref(), key.as_ref(), &mut progress())?;
        let elapsed_s = started.elapsed().as_secs_f64();
        lines.write(&format!("sound, up to {} ({elapsed_s:.1} s)", reached(&report)));
        return Ok(());
    };
    let options = RestoreOptions {
        database: args.engine.options(&[])?,
        redo: args.redo.clone(),
        until: args.until,
        check: !args.skip_check,
    };
    let report = Database::restore(&args.backups, to, &options, &mut progress())?;
    for unused in &args.backups[report.backups..] {
        lines.write(&format!("{} is of a later moment and was not used", unused.display()));
    }
    let elapsed_s = started.elapsed().as_secs_f64();
    lines.write(&format!("restored {} to {} ({elapsed_s:.1} s)", to.display(), reached(&report)));
    report
        .prepared
        .iter()
        .for_each(|xid| lines.write(&format!("transaction {xid} is prepared: highwater prepared ends it")));
    if report.ends_before_until {
        lines.write("the archive ends before that time: what was committed after its last commit is not in it");
    }
    Ok(())
}

/// The end of what was restored, as text.
fn reached(report: &RestoreReport) -> String {
    let commit = report.last_commit.map_or(String::new(), |commit| {
        format!("; the last commit: transaction {}, {}Z, LSN {}", commit.transaction, commit.time, commit.lsn)
    });
    format!("LSN {}{commit}", report.end_lsn)
}
