//! The process that follows the change log of the database under test, and keeps a copy.
//!
//! Rules
//! 1. It is killed at random moments while the database is open, and continues from the position that it keeps. When
//!    the database's process is killed it waits for the next one, and is killed after that, also in the middle of a
//!    recovery.
//! 2. It ends by itself only with an error, which is a finding.
//! 3. After each recovery the rest of the log is applied to the copy, which equals the tables then. Changes that the
//!    copy has are trimmed.

use super::{CrashOptions, End, file_failure, kill, spawn_process};
use crate::failure::Failure;
use fastrand::Rng;
use highwater::Database;
use highwater_torture::ddl_stress::ChangeCopy;
use std::process::{Child, Stdio};
use std::time::Duration;

/// Most kills of the follower in a run, without the last one.
const KILLS: u64 = 2;

/// See the file's head.
pub(super) struct Follower<'o> {
    options: &'o CrashOptions,
    process: Option<Child>,
    kills: u64,
}

impl<'o> Follower<'o> {
    /// Starts it, unless there is nothing to follow.
    pub(super) fn start(options: &'o CrashOptions) -> Result<Follower<'o>, Failure> {
        let mut follower = Follower { options, process: None, kills: 0 };
        follower.spawn()?;
        Ok(follower)
    }

    fn spawn(&mut self) -> Result<(), Failure> {
        if !self.options.tpcc_only {
            let mut command = spawn_process("follower", self.options)?;
            self.process = Some(command.stdin(Stdio::piped()).spawn().map_err(super::not_started)?);
        }
        Ok(())
    }

    /// Lets this time pass, and kills it meanwhile, up to [`KILLS`] times, and starts it again.
    pub(super) fn sleep_and_kill(&mut self, pause_ms: u64, rng: &mut Rng) -> Result<(), Failure> {
        let kills = rng.u64(..=KILLS);
        for _ in 0..kills {
            std::thread::sleep(Duration::from_millis(pause_ms / (kills + 1)));
            self.kill()?;
            self.spawn()?;
        }
        std::thread::sleep(Duration::from_millis(pause_ms / (kills + 1)));
        Ok(())
    }

    /// Kills it; how often that was done.
    pub(super) fn kill(&mut self) -> Result<u64, Failure> {
        let Some(mut process) = self.process.take() else { return Ok(0) };
        let ended = process.try_wait().map_err(|e| Failure::Failed(format!("the follower: {e}")))?;
        if let Some(status) = ended {
            return Err(Failure::Failed(format!("the follower of the change log ended by itself: {status}")));
        }
        kill(&mut process)?;
        self.kills += 1;
        Ok(self.kills)
    }
}

impl Drop for Follower<'_> {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            // After an error that says more.
            let _ = kill(&mut process);
        }
    }
}

/// The process: follows until it is killed.
pub(crate) fn run(options: &CrashOptions) -> Result<(), Failure> {
    super::end_with_parent();
    let copy = ChangeCopy::open(&options.copy())?;
    Ok(copy.follow(&options.database(), options.ends() == End::PowerCut)?)
}

/// Rule 3; the position of the copy before.
pub(super) fn verify(options: &CrashOptions, db: &Database) -> Result<u64, Failure> {
    let copy = ChangeCopy::open(&options.copy())?;
    let position = copy.position()?;
    copy.catch_up(db)?;
    if let Some(difference) = copy.differences(db)?.first() {
        return Err(Failure::Failed(format!("{difference} (it was at {position} when its process was killed)")));
    }
    db.trim_changes(copy.position()?)?;
    Ok(position)
}

/// Removes the copy of an earlier database.
pub(super) fn forget(options: &CrashOptions) -> Result<(), Failure> {
    let folder = options.copy();
    if folder.exists() { std::fs::remove_dir_all(&folder).map_err(file_failure(&folder)) } else { Ok(()) }
}
