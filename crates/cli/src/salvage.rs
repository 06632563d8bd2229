//! `highwater check --salvage OUT DIR`: copies the rows that can be read into a new database.
//!
//! Rules
//! 1. If the database can be recovered, that is done in memory first, so that its last commits are copied and what was
//!    not committed is not. Else the data file is read as it is.
//! 2. The files in DIR are only read. OUT must not exist or be an empty folder, and neither folder may lie in the
//!    other.
//! 3. Exit status: 0 every row was copied, 1 something is lost or damaged, which has been printed, 2 wrong use.

use crate::engine_options::EngineOptions;
use crate::failure::Failure;
use crate::output::{Lines, must_be_empty};
use crate::progress::Progress;
use highwater::{Database, Error, Options, SalvageReport};
use highwater_storage::{Device, FileDevice, StorageSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Runs `check --salvage`.
///
/// # Errors
/// [`Failure::Usage`] if the folders do not fit, [`Failure::NotFine`] if something is lost, those of the engine.
pub fn run(dir: &Path, out: &Path, engine: &EngineOptions) -> Result<(), Failure> {
    must_fit(dir, out)?;
    let lines = Lines { stdout_taken: false };
    let options = engine.options(&[])?;
    let (data, why) = source(dir, &options)?;
    if let Some(why) = &why {
        lines.write(&format!("the database cannot be opened: {why}"));
        lines.write("its data file is read as it is: what was in the redo log only is lost");
    }
    let database = Database::open(out, Options { create_if_missing: true, log_dir: None, ..options })?;
    let mut progress = None;
    let report = highwater::salvage(&*data, &database, &mut |done, total| {
        progress.get_or_insert_with(|| Progress::new("reading", total).counting("pages")).at(done, done);
    });
    drop(progress);
    let report = report?;
    database.close()?;
    print(&report, lines);
    if report.losses.is_empty() && why.is_none() { Ok(()) } else { Err(Failure::NotFine) }
}

/// Refuses an output folder that is in use, or that lies in the damaged database's or around it.
fn must_fit(dir: &Path, out: &Path) -> Result<(), Failure> {
    let refuse = |text: String| Err(Failure::Usage(text));
    if !dir.join("data").exists() {
        return refuse(format!("{} holds no database: there is no file named data", dir.display()));
    }
    let (dir_path, out_path) = (absolute(dir), absolute(out));
    if out_path.starts_with(&dir_path) || dir_path.starts_with(&out_path) {
        return refuse(format!("{} and {} must not lie in each other", out.display(), dir.display()));
    }
    must_be_empty(out)
}

/// The path without links, as far as it exists.
fn absolute(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Ok(real), _, _) => real,
        (Err(_), Some(parent), Some(name)) => absolute(parent).join(name),
        _ => path,
    }
}

/// The data file, recovered in memory if that is possible; else why it is not.
fn source(dir: &Path, options: &Options) -> Result<(Arc<dyn Device>, Option<String>), Failure> {
    let recovered = || -> Result<Arc<dyn Device>, Error> {
        let set = StorageSet::open_read_only(dir, options.log_dir.as_deref())?;
        let database = Database::open_storage_idle(set.clone(), options.clone())?;
        // It writes what recovery changed to the set, which keeps it in memory. What it finds is found again.
        database.check()?;
        database.close()?;
        Ok(set.data)
    };
    match recovered() {
        Ok(data) => Ok((data, None)),
        Err(error @ (Error::BadOption { .. } | Error::PoolExhausted { .. })) => Err(error.into()),
        Err(error) => {
            let data = FileDevice::open_read_only(&dir.join("data")).map_err(Error::from)?;
            Ok((Arc::new(data), Some(error.to_string())))
        }
    }
}

fn print(report: &SalvageReport, lines: Lines) {
    for table in &report.tables {
        lines.write(&format!("table {}: {} rows copied, {} lost", table.name, table.rows, table.rows_lost));
        if table.older_versions > 0 {
            lines.write(&format!("  of {} the newest version was not committed", table.older_versions));
        }
    }
    report.losses.iter().for_each(|loss| lines.write(&format!("lost or damaged: {loss}")));
}
