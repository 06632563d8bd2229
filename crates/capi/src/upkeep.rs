//! Durability, backups, checks, counters.

use crate::database::{highwater_db, highwater_option, options_of};
use crate::failure::{Result, done, highwater_code, highwater_error};
use crate::handle::{self, Out, c_string, path, slice};
use highwater::{BackupOptions, Database, MetricsFormat, RestoreOptions};
use std::ffi::c_char;
use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// Makes every commit so far durable, whatever its transaction's options said.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_flush_log(db: *mut highwater_db, error: *mut *mut highwater_error) -> highwater_code {
    done(error, || Ok(handle::get(db)?.flush_log()?))
}

/// Takes a backup into a new or empty folder while transactions run. With `base`, a backup of the same database, it has
/// only the pages that have changed since; null: a full one. At most `max_bytes_per_s` bytes are read in a second; 0:
/// no limit.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_backup(
    db: *mut highwater_db,
    folder: *const c_char,
    base: *const c_char,
    max_bytes_per_s: u64,
    error: *mut *mut highwater_error,
) -> highwater_code {
    done(error, || {
        let (db, folder) = (handle::get(db)?, path(folder, "the folder")?);
        let base = if base.is_null() { None } else { Some(path(base, "the base")?.to_path_buf()) };
        let options = BackupOptions { base, max_bytes_per_s, ..BackupOptions::default() };
        db.backup(folder, &options, &mut |_| ControlFlow::Continue(()))?;
        Ok(())
    })
}

/// Makes a database, in a new or empty folder, of a full backup and the incremental ones that follow it, in order. It
/// is checked, and closed when the call returns.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_restore(
    backups: *const *const c_char,
    backup_count: usize,
    folder: *const c_char,
    options: *const highwater_option,
    option_count: usize,
    error: *mut *mut highwater_error,
) -> highwater_code {
    done(error, || {
        let backups = slice(backups, backup_count, "the backups")?;
        let chain = backups.iter().map(|backup| path(*backup, "a backup").map(PathBuf::from));
        let (chain, folder) = (chain.collect::<Result<Vec<_>>>()?, path(folder, "the folder")?);
        let database = options_of(options, option_count)?;
        let restore = RestoreOptions { database, check: true, ..RestoreOptions::default() };
        Database::restore(&chain, folder, &restore, &mut |_| ControlFlow::Continue(()))?;
        Ok(())
    })
}

/// Verifies every page, tree and cross-reference; writers wait meanwhile. `findings` gets how many things are wrong: 0
/// in a sound database. `report`, if not null, gets them as text, a line each, to be freed with
/// `highwater_string_free`.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_check(
    db: *mut highwater_db,
    findings: *mut u64,
    report: *mut *mut c_char,
    error: *mut *mut highwater_error,
) -> highwater_code {
    done(error, || {
        let (db, out) = (handle::get(db)?, Out::new(findings, "the number of findings")?);
        let text_out = Out::handle(report, "the report").ok();
        let found = db.check()?;
        let mut text = String::new();
        for finding in &found.findings {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{finding}");
        }
        if let Some(report) = text_out {
            report.put(c_string(&text).into_raw());
        }
        out.put(found.findings.len() as u64 + found.findings_omitted);
        Ok(())
    })
}

/// Every counter as text, in Prometheus' format or, if `openmetrics`, in that of OpenMetrics, to be freed with
/// `highwater_string_free`.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_metrics(
    db: *mut highwater_db,
    openmetrics: bool,
    metrics: *mut *mut c_char,
    error: *mut *mut highwater_error,
) -> highwater_code {
    done(error, || {
        let (out, db) = (Out::handle(metrics, "the text")?, handle::get(db)?);
        let format = if openmetrics { MetricsFormat::OpenMetrics } else { MetricsFormat::Prometheus };
        out.put(c_string(&db.metrics_text(format)).into_raw());
        Ok(())
    })
}
