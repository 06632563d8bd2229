//! The archive of redo of an open database: at opening, meanwhile, at closing.

use super::background::Turn;
use super::core::Core;
use crate::backup::archive::{Archiver, Position};
use crate::config::Options;
use crate::error::{Error, Result};
use crate::log::{Log, Scan};
use crate::stats::Stats;
use crate::sync::Mutex;
use crate::sync::wake::Wake;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Pause of the thread when the archive has everything, or could not be written.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);

/// An archive that is written while the database is open.
pub(super) struct Archiving {
    archiver: Mutex<Archiver>,
    problem: Mutex<Option<String>>,
    wake: Wake,
}

impl Archiving {
    /// Archives what a crash has left out and begins the generation of the log that [`Log::start`] will begin; `None`
    /// if no archive is wanted.
    ///
    /// # Errors
    /// As [`Archiver::open`] and [`Archiver::catch_up`].
    pub fn open(options: &Options, log: &Log, scan: &Scan, id: u64, stats: &Stats) -> Result<Option<Archiving>> {
        let Some(dir) = &options.redo_archive else { return Ok(None) };
        let mut archiver = Archiver::open(dir, id)?;
        archiver.catch_up(log, scan, stats)?;
        let (generation, lsn) = log.next_generation(scan.end_lsn);
        archiver.begin(Position { generation, lsn })?;
        let problem = Mutex::new(archiver.problem().map(String::from));
        Ok(Some(Archiving { archiver: Mutex::new(archiver), problem, wake: Wake::default() }))
    }

    /// Follows the log, which has just been started.
    pub fn follow(&self, log: &Arc<Log>, stats: &Arc<Stats>) -> Result<()> {
        self.archiver.lock().follow(log.clone(), stats.clone())
    }

    /// The latest time that the archive has.
    pub fn noted_us(&self) -> u64 {
        self.archiver.lock().noted_us()
    }

    pub fn problem(&self) -> Option<String> {
        self.problem.lock().clone()
    }

    pub fn wake(&self) -> &Wake {
        &self.wake
    }

    /// Archives some; a failure is tried again later.
    fn step(&self, failures: impl Fn() -> u64) {
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
    pub fn finish(&self) -> Result<()> {
        self.archiver.lock().finish()
    }
}

/// The folder of the archive, if one is wanted, is not within that of the database.
///
/// # Errors
/// [`Error::BadOption`].
pub(super) fn check_outside(options: &Options, folder: &Path) -> Result<()> {
    let Some(dir) = &options.redo_archive else { return Ok(()) };
    match real_path(dir).starts_with(real_path(folder)) {
        false => Ok(()),
        true => Err(Error::BadOption {
            option: "redo-archive".into(),
            reason: format!("{} lies in the database's folder; name a folder on another device", dir.display()),
        }),
    }
}

/// The path without links, as far as it exists, and without `..`: the rest of it may have to be made.
fn real_path(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let real = path.ancestors().find_map(|part| Some((part.canonicalize().ok()?, path.strip_prefix(part).ok()?)));
    let Some((mut real, rest)) = real else { return path };
    for part in rest.components() {
        match part {
            Component::ParentDir => drop(real.pop()),
            part => real.push(part),
        }
    }
    real
}

impl Core {
    /// Starts the thread that archives redo.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub(super) fn start_archiving(&mut self) -> Result<()> {
        let Some(archiving) = self.archiving.clone() else { return Ok(()) };
        let (ctx, pauser, waker) = (self.ctx.clone(), archiving.clone(), archiving.clone());
        let step = move || {
            archiving.step(|| ctx.stats.redo_archive_failures.get());
            Ok(())
        };
        let pause = move || pauser.wake.wait(PAUSE);
        self.background.spawn("archive", Turn::Last, self.ctx.clone(), step, pause, move || waker.wake.wake())
    }
}
