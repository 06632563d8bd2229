//! `highwater check --salvage OUT DIR`: copies the rows that can be read into a new database.
//!
//! Rules
//! 1. The database is first recovered in memory if possible, so that all commits, and only these, are copied. If it
//!    cannot be opened although its redo was replayed, the replayed pages are read. Only if the redo is missing or
//!    cannot be replayed, the unrecovered data file is read, and a message reports that.
//! 2. An error that does not say that the files are damaged (in use, no permission, a wrong option) ends the command:
//!    the files of a database that another process has open are never read.
//! 3. The files in DIR are only read. OUT must not exist or be an empty folder, and neither folder may be in the other.
//! 4. The new database has pages of the same size, so that every key fits.
//! 5. Exit status: 0 every row was copied, 1 something is lost or damaged, which has been printed, 2 wrong use.

use crate::at_rest::{AtRest, is_damage};
use crate::engine_options::EngineOptions;
use crate::failure::Failure;
use crate::output::{Lines, must_be_empty};
use crate::progress::Progress;
use highwater::config::PageSize;
use highwater::inspect::{RawFile, look};
use highwater::{Database, Error, Options, SalvageReport};
use highwater_storage::{Device, FileDevice, MemoryDevice, SetFile, StorageSet, is_within};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

/// Runs `check --salvage`.
///
/// # Errors
/// [`Failure::Usage`] if the folders do not fit, [`Failure::NotFine`] if something is lost, those of the engine.
pub(crate) fn run(dir: &Path, out: &Path, engine: &EngineOptions) -> Result<(), Failure> {
    must_fit(dir, out)?;
    let lines = Lines { stdout_taken: false };
    let options = engine.options(&[])?;
    let key = options.read_key()?;
    let files = AtRest::lock(dir, options.log_dir.as_deref(), key.as_ref())?;
    let Source { data, problem } = source(&files, &options)?;
    problem.iter().for_each(|line| lines.write(line));
    let page_size = PageSize::Bytes(RawFile::open(&*data)?.page_bytes() as u64);
    let database = Database::open(
        out,
        Options { create_if_missing: true, log_dir: None, redo_archive: None, page_size, ..options },
    )?;
    let mut progress = None;
    let report = highwater::salvage(&*data, &database, &mut |done, total| {
        progress.get_or_insert_with(|| Progress::new("reading", total).counting("pages")).at(done, done);
    });
    drop(progress);
    let report = report?;
    database.close()?;
    print(&report, lines);
    if report.losses.is_empty() && problem.is_empty() { Ok(()) } else { Err(Failure::NotFine) }
}

/// Refuses an output folder that is in use, or that is in the damaged database's folder or contains it.
fn must_fit(dir: &Path, out: &Path) -> Result<(), Failure> {
    if is_within(out, dir) || is_within(dir, out) {
        return Err(Failure::Usage(format!("{} and {} must not be in each other", out.display(), dir.display())));
    }
    must_be_empty(out)
}

/// The source of the rows.
struct Source {
    /// The data file, recovered in memory as far as possible.
    data: Arc<dyn Device>,
    /// The reason why it is not recovered, in lines for the user; empty if it is.
    problem: Vec<String>,
}

fn source(files: &AtRest, options: &Options) -> Result<Source, Failure> {
    let (dir, redo) = (files.dir(), files.redo());
    if is_missing(redo)? {
        let data = files.open(SetFile::Data).map_err(Error::from)?;
        let hint = "if it is in another folder, name that with --log-dir";
        return Ok(Source::without_redo(data, format!("{} is missing; {hint}", redo.display())));
    }
    let (set, mut problem) =
        match StorageSet::open_read_only(dir, options.log_dir.as_deref(), options.read_key()?.as_ref()) {
            Ok(set) => (set, Vec::new()),
            Err(error) if is_missing(&dir.join("doublewrite"))? => {
                (without_doublewrite(files)?, vec![format!("pages that a crash tore are lost: {error}")])
            }
            Err(error) => return Err(Error::from(error).into()),
        };
    let Err(error) = recover(&set, options) else { return Ok(Source { data: set.data, problem }) };
    if !is_damage(&error) {
        return Err(error.into());
    }
    let is_replayed = match files.open(SetFile::Redo) {
        Ok(as_it_was) => generation(&*set.redo) > generation(&*as_it_was),
        Err(_) => false,
    };
    if !is_replayed {
        return Ok(Source::without_redo(set.data, error.to_string()));
    }
    problem.push(format!("the database cannot be opened: {error}"));
    problem.push("its redo log was replayed in memory".to_string());
    Ok(Source { data: set.data, problem })
}

impl Source {
    fn without_redo(data: Arc<dyn Device>, why: String) -> Source {
        let lost = "its data file is read as it is: what was in the redo log only is lost".to_string();
        Source { data, problem: vec![format!("the database cannot be opened: {why}"), lost] }
    }
}

/// Whether the file does not exist. A symbolic link, and a file without permission to read its metadata, are not
/// missing.
fn is_missing(path: &Path) -> Result<bool, Failure> {
    match (std::fs::symlink_metadata(path), std::fs::metadata(path)) {
        (Err(error), _) if error.kind() == ErrorKind::NotFound => Ok(true),
        (Ok(_), Ok(_)) => Ok(false),
        (Err(error), _) | (_, Err(error)) => Err(Failure::Usage(format!("{}: {error}", path.display()))),
    }
}

/// Recovers the database; what that changes stays in the set, which keeps it in memory.
fn recover(set: &StorageSet, options: &Options) -> Result<(), Error> {
    let database = Database::open_storage_idle(set.clone(), options.clone())?;
    // It writes what recovery changed to the set. What it finds is found again.
    database.check()?;
    database.close()
}

/// The set of a database whose doublewrite file is lost.
fn without_doublewrite(files: &AtRest) -> Result<StorageSet, Error> {
    let open = |path: &Path| FileDevice::open_read_only(path).map(|file| Arc::new(file) as Arc<dyn Device>);
    let empty = Arc::new(MemoryDevice::named("doublewrite", 1));
    let set = StorageSet::of_devices(open(&files.dir().join("data"))?, open(files.redo())?, empty);
    Ok(files.keys().map_or(set.clone(), |keys| set.encrypted(keys.clone())).overlaid()?)
}

/// The number of the log's generation. A new one begins when all redo is in the pages.
fn generation(redo: &dyn Device) -> Option<u64> {
    let log = look(redo).ok()?;
    log.headers[log.newest?].as_ref().ok().map(|header| header.generation)
}

fn print(report: &SalvageReport, lines: Lines) {
    for table in &report.tables {
        lines.write(&format!("table {}: {} rows copied, {} lost", table.name, table.rows, table.rows_lost));
        if table.older_versions > 0 {
            lines.write(&format!("  of {} the newest version was not committed", table.older_versions));
        }
    }
    report.losses.iter().for_each(|loss| lines.write(&format!("lost or damaged: {loss}")));
    for xid in &report.prepared {
        lines.write(&format!(
            "transaction {xid} was prepared: of the rows that it changed the version before was copied"
        ));
    }
}
