//! The redo archive of an open database: at opening, in use, at closing.

use crate::backup::archive::{ArchivePosition, Archiver};
use crate::config::Options;
use crate::error::{Error, Result};
use crate::log::{Log, RecoveryScan};
use crate::stats::Stats;
use crate::sync::Mutex;
use crate::sync::notify::Notify;
use highwater_storage::{KeyTable, StorageSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);

/// An archive that is written while the database is open.
pub(super) struct Archiving {
    archiver: Mutex<Archiver>,
    problem: Mutex<Option<String>>,
    wake: Notify,
}

impl Archiving {
    /// Archives what a crash has left out and begins the generation of the log that [`Log::start`] will begin; `None`
    /// without an archive.
    ///
    /// # Errors
    /// As [`Archiver::open`] and [`Archiver::catch_up`].
    pub(super) fn open(
        options: &Options,
        log: &Log,
        scan: &RecoveryScan,
        id: u64,
        stats: &Stats,
        storage: &StorageSet,
    ) -> Result<Option<Archiving>> {
        let Some(dir) = &options.redo_archive else { return Ok(None) };
        let mut archiver = Archiver::open(dir, id, storage.copy_key()?)?;
        archiver.catch_up(log, scan, stats)?;
        let (generation, lsn) = log.next_generation(scan.end_lsn);
        debug_assert!(lsn >= scan.end_lsn, "generation {generation} begins at {lsn}, before the end of the last one");
        archiver.begin(ArchivePosition { generation, lsn })?;
        let problem = Mutex::new(archiver.problem().map(String::from));
        Ok(Some(Archiving { archiver: Mutex::new(archiver), problem, wake: Notify::default() }))
    }

    /// Follows the log, which has just been started.
    pub(super) fn follow(&self, log: &Arc<Log>, stats: &Arc<Stats>) -> Result<()> {
        self.archiver.lock().follow(log.clone(), stats.clone())
    }

    /// The archive's folder gets this table of keys.
    ///
    /// # Errors
    /// An I/O error.
    pub(super) fn put_keys(&self, table: &KeyTable) -> Result<()> {
        self.archiver.lock().put_keys(table)
    }

    /// The latest time that the archive has.
    pub(super) fn noted_us(&self) -> u64 {
        self.archiver.lock().noted_us()
    }

    pub(super) fn problem(&self) -> Option<String> {
        self.problem.lock().clone()
    }

    pub(super) fn wake(&self) -> &Notify {
        &self.wake
    }

    /// Archives some; a failure is tried again later.
    pub(super) fn step(&self, failures: impl Fn() -> u64) {
        let before = failures();
        let mut archiver = self.archiver.lock();
        let is_more = archiver.step();
        *self.problem.lock() = archiver.problem().map(String::from);
        drop(archiver);
        match (is_more, failures() > before) {
            (true, _) => self.wake.wake(),
            (false, true) => self.wake.wait(PAUSE_AFTER_FAILURE),
            (false, false) => {}
        }
    }

    /// Archives the rest.
    ///
    /// # Errors
    /// The archive cannot be written: the next opening archives the rest.
    pub(super) fn finish(&self) -> Result<()> {
        self.archiver.lock().finish()
    }
}

/// The folder of the archive, if the options name one, is not within that of the database, as `is_within` says.
///
/// # Errors
/// [`Error::BadOption`].
pub(super) fn check_outside(options: &Options, is_within: impl FnOnce(&Path) -> bool) -> Result<()> {
    match options.redo_archive.as_deref().filter(|dir| is_within(dir)) {
        None => Ok(()),
        Some(dir) => Err(Error::BadOption {
            option: "redo-archive".into(),
            reason: format!("{} is in the database's folder; name a folder on another device", dir.display()),
        }),
    }
}
