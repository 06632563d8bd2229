//! The operation after the damage, and the expected contents.

use super::load::Known;
use super::{Hurt, HurtPage, Lives};
use crate::corruption::declared::PageKind;
use crate::corruption::whole::{INDEXES, TABLES, Whole, data, reads_right_but};
use highwater::{BackupOptions, Database, Error, RestoreOptions, salvage};
use highwater_storage::StorageSet;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Redo that fills the log.
const FULL_LOG_BYTES: u64 = 12 << 20;
/// Maximum wait for that: a slow machine is not a failure.
const FILLING: Duration = Duration::from_secs(20);

/// The operation after the damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Close,
    Crash,
    FullLog,
    Check,
    Repair,
    Drop,
    Backup,
    Incremental,
    Salvage,
    ReadOnly,
}

impl Act {
    pub(super) const ALL: [Act; 10] = [
        Act::Close,
        Act::Crash,
        Act::FullLog,
        Act::Check,
        Act::Repair,
        Act::Drop,
        Act::Backup,
        Act::Incremental,
        Act::Salvage,
        Act::ReadOnly,
    ];
}

/// The state that the load has left.
pub(super) struct Ended<'w> {
    pub(super) whole: &'w Whole,
    pub(super) storage: &'w StorageSet,
    pub(super) memory: &'w StorageSet,
    pub(super) hurt: Hurt,
    pub(super) known: &'w Known,
    /// The folder of backups; it has one from before the damage if the act needs it.
    pub(super) before: Option<Folder>,
}

/// A folder that is removed in the end.
pub(super) struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Act {
    /// Creates the folder of backups if the act needs one, and takes the backup from before the damage.
    pub(super) fn before(self, db: &Database) -> Result<Option<Folder>, Error> {
        if !matches!(self, Act::Backup | Act::Incremental) {
            return Ok(None);
        }
        let number = fastrand::u64(..);
        let folder = Folder(std::env::temp_dir().join(format!("highwater-under-load-{}-{number}", std::process::id())));
        let _ = std::fs::create_dir_all(&folder.0);
        if self == Act::Incremental {
            db.backup(folder.0.join("full"), &unlimited(BackupOptions::default()), &mut |_| ControlFlow::Continue(()))?;
        }
        Ok(Some(folder))
    }

    /// The part of the act that runs concurrently with the load; returns a violation.
    pub(super) fn run(self, db: &Database, hurt: &Hurt) -> Option<String> {
        let done = match self {
            Act::FullLog => {
                let (from, since) = (db.lsn(), Instant::now());
                while db.lsn() < from + FULL_LOG_BYTES && since.elapsed() < FILLING {
                    std::thread::sleep(Duration::from_millis(20));
                }
                Ok(())
            }
            Act::Check => db.check().map(drop),
            Act::Repair => db.repair_indexes(&mut |_, _| {}).map(drop),
            Act::Drop => db.drop_table(TABLES[hurt.table()]),
            _ => Ok(()),
        };
        let error = done.err().filter(|error| !error.is_damage() && !error.is_retryable())?;
        Some(format!("{self:?}: {error}"))
    }

    /// The rest of the act, and the reads after it.
    pub(super) fn finish(self, db: Database, ended: Ended<'_>, random: &mut fastrand::Rng, lives: &mut Lives) {
        let options = &ended.whole.options;
        match self {
            Act::Backup | Act::Incremental => {
                ended.restored(self, &db, lives);
                ended.close(db, lives);
            }
            Act::Salvage => {
                ended.close(db, lives);
                ended.salvaged(lives);
            }
            Act::Crash | Act::FullLog | Act::Drop | Act::ReadOnly => {
                let cut = ended.memory.cut(random.u64(..));
                drop(db);
                let cut = if self == Act::ReadOnly { cut.overlaid() } else { Ok(cut) };
                match cut {
                    Ok(cut) => ended.opened(Database::open_storage(cut, options.clone()), self, lives),
                    Err(error) => lives.failures.push(error.to_string()),
                }
            }
            Act::Close | Act::Check | Act::Repair => {
                ended.close(db, lives);
                ended.opened(Database::open_storage(ended.storage.clone(), options.clone()), self, lives);
            }
        }
    }
}

fn unlimited(options: BackupOptions) -> BackupOptions {
    BackupOptions { max_bytes_per_s: 0, ..options }
}

impl Ended<'_> {
    fn close(&self, db: Database, lives: &mut Lives) {
        if let Err(error) = db.close()
            && !error.is_damage()
        {
            lives.failures.push(format!("close: {error}"));
        }
    }

    fn opened(&self, opened: Result<Database, Error>, act: Act, lives: &mut Lives) {
        let is_stopped = matches!(act, Act::Crash | Act::FullLog | Act::Drop | Act::ReadOnly);
        match opened {
            Ok(db) => self.read(&db, act, lives),
            Err(error) => {
                lives.unopened += 1;
                let text = error.to_string();
                if !self.hurt.pages.iter().any(|page| self.may_be_refused(page, &text, is_stopped)) {
                    lives.failures.push(format!("it does not open: {text}"));
                }
            }
        }
    }

    /// Whether an opening with this page damaged may end with this error; `is_stopped`: the database was not closed.
    fn may_be_refused(&self, page: &HurtPage, error: &str, is_stopped: bool) -> bool {
        // An index costs no more than the index.
        let may_be_changed = is_stopped && page.row.kind != PageKind::Index;
        !page.row.opens() || page.is_named_in(error) && (may_be_changed || page.is_end_in_use(self.memory))
    }

    /// Reads everything.
    fn read(&self, db: &Database, act: Act, lives: &mut Lives) {
        for (at, name) in TABLES.iter().enumerate() {
            if act == Act::Drop && at == self.hurt.table() {
                continue;
            }
            for index in INDEXES {
                let read = reads_right_but(db, name, index, &self.known.models[at], &self.known.doubtful[at]);
                match read {
                    Ok(true) => {}
                    Ok(false) if self.hurt.may_be_old(at) => {}
                    Ok(false) => lives.failures.push(format!("{name}.{index}: wrong rows")),
                    Err(error)
                        if error.is_damage() && (self.hurt.may_refuse(at, index) || self.hurt.may_be_old(at)) =>
                    {
                        lives.met += 1;
                    }
                    Err(error) => lives.failures.push(format!("{name}.{index}: {error}")),
                }
            }
        }
    }

    /// Takes a backup, restores it and reads it.
    fn restored(&self, act: Act, db: &Database, lives: &mut Lives) {
        let Some(folder) = &self.before else { return };
        let (full, second, target) = (folder.0.join("full"), folder.0.join("second"), folder.0.join("restored"));
        let is_incremental = act == Act::Incremental;
        let base = is_incremental.then(|| full.clone());
        let options = unlimited(BackupOptions { base, skip_damaged: !is_incremental, ..BackupOptions::default() });
        let chain = if is_incremental { vec![full, second.clone()] } else { vec![second.clone()] };
        match db.backup(&second, &options, &mut |_| ControlFlow::Continue(())) {
            Ok(_) => {}
            Err(error) if error.is_damage() => return,
            Err(error) => return lives.failures.push(format!("backup: {error}")),
        }
        let restore = RestoreOptions { database: self.whole.options.clone(), ..RestoreOptions::default() };
        match Database::restore(&chain, &target, &restore, &mut |_| ControlFlow::Continue(())) {
            Ok(_) => self.opened(Database::open(&target, self.whole.options.clone()), Act::Crash, lives),
            Err(error) if self.hurt.may_be_needed_to_open() && error.is_damage() => {}
            Err(error) => lives.failures.push(format!("restore: {error}")),
        }
    }

    /// Salvages the closed database: the undamaged table must be complete.
    fn salvaged(&self, lives: &mut Lives) {
        let saved = || -> highwater_bench::Result<Database> {
            let into = Database::open_storage(StorageSet::memory(), self.whole.options.clone())?;
            salvage(data(self.memory)?, &into, &mut |_, _| {})?;
            Ok(into)
        };
        let into = match saved() {
            Ok(into) => into,
            Err(error) => return lives.failures.push(format!("salvage: {error}")),
        };
        for (at, name) in TABLES.iter().enumerate().filter(|(at, _)| !self.hurt.is_of(*at)) {
            let read = reads_right_but(&into, name, INDEXES[0], &self.known.models[at], &self.known.doubtful[at]);
            if !read.is_ok_and(|is_right| is_right) {
                lives.failures.push(format!("a salvage lacks rows of {name}"));
            }
        }
    }
}
