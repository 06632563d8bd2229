//! The checks of the database after a kill, and of its restore from a backup and the archive of redo.

use super::{CrashOptions, file_failure, follower};
use crate::failure::Failure;
use highwater::{BackupOptions, Database, Options, RestoreOptions};
use highwater_bench::store::embedded::Embedded;
use highwater_bench::workload::tpcc::{self, Acknowledged};
use highwater_torture::ddl_stress;
use std::ops::ControlFlow::Continue;
use std::time::Instant;

/// The results of the checks after a kill.
pub(super) struct Found {
    pub(super) recovery_s: f64,
    pub(super) redo_mib: f64,
    pub(super) pages_read: u64,
    pub(super) acknowledged: Acknowledged,
}

/// Recovers the database and checks all of it. If commits may be lost, those that are leave the record.
pub(super) fn verify(options: &CrashOptions, may_lose_commits: bool) -> Result<Found, Failure> {
    let started = Instant::now();
    let store = options.open()?;
    let recovery_s = started.elapsed().as_secs_f64();
    let stats = store.database().stats();
    let (redo_bytes, pages_read) = (stats.recovery_redo_bytes, stats.recovery_pages_read);
    if !options.tpcc_only {
        follower::verify(options, store.database())?;
    }
    let lost = if may_lose_commits { accept_losses(options, &store)? } else { 0 };
    let acknowledged = Acknowledged { lost, ..verify_open(options, &store)? };
    Ok(Found { recovery_s, redo_mib: redo_bytes as f64 / f64::from(1 << 20), pages_read, acknowledged })
}

/// Takes commits that were acknowledged and lost out of the record, if that is right; how many.
pub(super) fn accept_losses(options: &CrashOptions, store: &Embedded) -> Result<u64, Failure> {
    let (folder, clients) = (options.acknowledgements(), options.recorders());
    let mut found = tpcc::verify_prefix(store, &folder, clients)?;
    if !options.tpcc_only {
        found.problems.extend(ddl_stress::accept_losses(store, &folder)?);
    }
    match found.problems.first() {
        Some(problem) => Err(Failure::Failed(problem.clone())),
        None => tpcc::accept_losses(store, &folder, clients).map(|()| found.lost).map_err(Failure::from),
    }
}

/// Checks all of an open database, and closes it.
fn verify_open(options: &CrashOptions, store: &Embedded) -> Result<Acknowledged, Failure> {
    let mut acknowledged = tpcc::verify(store, &options.acknowledgements(), options.recorders())?;
    if !options.tpcc_only {
        acknowledged.problems.extend(ddl_stress::verify(store, &options.acknowledgements())?);
    }
    if let Some(problem) = acknowledged.problems.first() {
        return Err(Failure::Failed(problem.clone()));
    }
    let conditions = options.workload(0).conditions(store)?;
    if let Some(broken) = conditions.iter().find(|c| !c.holds) {
        let reason = format!("condition {} ({}) is violated: {}", broken.condition, broken.text, broken.detail);
        return Err(Failure::Failed(reason));
    }
    let report = store.database().check()?;
    if let Some(finding) = report.findings.first() {
        return Err(Failure::Failed(format!("the check found: {finding}")));
    }
    store.database().clone().close()?;
    Ok(acknowledged)
}

/// Backs the database up if its redo is archived and there is no backup yet.
pub(super) fn back_up(options: &CrashOptions, db: &Database) -> Result<(), Failure> {
    if !options.engine.has("redo_archive") || options.backup().exists() {
        return Ok(());
    }
    db.backup(options.backup(), &BackupOptions::default(), &mut |_| Continue(()))?;
    Ok(())
}

/// Removes the backup of an earlier database.
pub(super) fn forget_backup(options: &CrashOptions) -> Result<(), Failure> {
    let folder = options.backup();
    if folder.exists() { std::fs::remove_dir_all(&folder).map_err(file_failure(&folder)) } else { Ok(()) }
}

/// Restores the backup and all archived redo next to the database, and checks the copy like the database; returns its
/// contents. `None`: the redo is not archived.
pub(super) fn restore(options: &CrashOptions) -> Result<Option<String>, Failure> {
    let own = options.engine.options(super::ENGINE_DEFAULTS)?;
    let Some(redo) = own.redo_archive.clone() else { return Ok(None) };
    let copy = options.dir.join("restored");
    let database = Options { log_dir: None, redo_archive: None, ..own };
    let with = RestoreOptions { database: database.clone(), redo: Some(redo), ..RestoreOptions::default() };
    Database::restore(&[options.backup()], &copy, &with, &mut |_| Continue(()))?;
    let store = Embedded::new(Database::open(&copy, database)?);
    let acknowledged = verify_open(options, &store).map_err(|error| match error {
        Failure::Failed(reason) => Failure::Failed(format!("the restored copy in {}: {reason}", copy.display())),
        other => other,
    })?;
    std::fs::remove_dir_all(&copy).map_err(file_failure(&copy))?;
    let commits = acknowledged.commits;
    Ok(Some(format!("restored from the backup and the archive of redo: {commits} commits acknowledged, all present")))
}
