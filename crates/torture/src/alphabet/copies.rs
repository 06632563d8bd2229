//! Copies of a database: backups and restores, salvage, dumps, and a read-only opening.

use super::choices::Choices;
use super::found;
use super::oracle::Oracle;
use super::played::{Played, call};
use super::player::Player;
use super::whole::expect_sound;
use highwater::config::Doublewrite;
use highwater::{
    BackupManifest, BackupOptions, Database, Dump, Error as Engine, Options, RestoreOptions, Until, salvage,
};
use highwater_bench::{Error, Result};
use highwater_storage::{Device, StorageSet};
use std::ops::ControlFlow::Continue;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A backup in the chain, and its expected contents.
struct Taken {
    folder: PathBuf,
    /// Changes that were acknowledged before it ended.
    changes: usize,
    manifest: BackupManifest,
}

/// A chain of backups.
pub(crate) struct Backups {
    /// Folder of the backups, created with the first one.
    folder: Option<TempDir>,
    chain: Vec<Taken>,
    /// Options of the restored databases.
    options: Options,
}

/// A temporary folder, in memory if the system has one.
fn temporary() -> Result<TempDir> {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.map_err(|error| Error::Data(format!("a temporary folder: {error}")))
}

impl Backups {
    /// An empty chain; restored databases are opened with these options.
    pub(crate) fn new(options: Options) -> Backups {
        Backups { folder: None, chain: Vec::new(), options }
    }

    /// Takes the next backup of the chain. Often it then restores the chain and begins a new one.
    ///
    /// # Errors
    /// The engine's; [`Error::Data`] if the restored database differs from the backed-up one.
    pub(crate) fn play(&mut self, player: &mut Player, db: &Database, rng: &mut Choices) -> Result<()> {
        if self.folder.is_none() {
            self.folder = Some(temporary()?);
        }
        let folder = self.path().join(self.chain.len().to_string());
        let base = self.chain.last().map(|taken| taken.folder.clone());
        let options = BackupOptions { base, max_bytes_per_s: 0, skip_damaged: false };
        let played = &player.played;
        let manifest = call!(played, Database::backup(db, &folder, &options, &mut |_| Continue(())))?;
        if call!(played, BackupManifest::read(&folder))? != manifest
            || call!(played, BackupManifest::is_full(&manifest)) != self.chain.is_empty()
            || call!(played, BackupManifest::bytes(&manifest)) == 0
            || call!(played, BackupManifest::is_encrypted(&manifest)) != self.options.encryption_key.is_some()
        {
            return Err(Error::Data(format!("the manifest of a backup: {manifest:?}")));
        }
        // It makes the end of the log durable.
        player.oracle.is_durable();
        self.chain.push(Taken { folder, changes: player.oracle.acknowledgements(), manifest });
        if rng.bool() {
            self.restore(&player.oracle, &player.played, rng)?;
            self.forget();
        }
        Ok(())
    }

    fn path(&self) -> &Path {
        self.folder.as_ref().map_or(Path::new(""), |folder| folder.path())
    }

    fn forget(&mut self) {
        // Files that remain are removed with the folder.
        self.chain.drain(..).for_each(|taken| drop(std::fs::remove_dir_all(taken.folder)));
    }

    /// Restores the chain up to one of its backups.
    fn restore(&self, oracle: &Oracle, played: &Played, rng: &mut Choices) -> Result<()> {
        let folders: Vec<PathBuf> = self.chain.iter().map(|taken| taken.folder.clone()).collect();
        let key = self.options.encryption_key.as_ref();
        let report = call!(played, Database::verify_backup(&folders, None, key, &mut |_| Continue(())))?;
        let wanted = &self.chain[rng.usize(..self.chain.len())];
        if report.backups != folders.len() {
            return Err(Error::Data(format!("of {} backups: {report:?}", folders.len())));
        }
        let options = RestoreOptions {
            database: self.options.clone(),
            until: Some(Until::Lsn(wanted.manifest.end_lsn)),
            check: rng.bool(),
            redo: None,
        };
        let folder = self.path().join("restored");
        let report = call!(played, Database::restore(&folders, &folder, &options, &mut |_| Continue(())))?;
        let mut expected = oracle.after(wanted.changes);
        if !found::names(&report.prepared).iter().eq(expected.prepared.keys()) {
            return Err(Error::Data(format!("a restore names these prepared transactions: {:?}", report.prepared)));
        }
        let db = call!(played, Database::open(&folder, self.options.clone()))?;
        expected.compare(&db).map_err(|error| named("a restored database", error))?;
        expect_sound(&db.check()?)?;
        call!(played, Database::close(db))?;
        let db = call!(played, Database::open_read_only(&folder, self.options.clone()))?;
        expected.compare(&db).map_err(|error| named("a restored database, opened to be read", error))?;
        drop(db);
        std::fs::remove_dir_all(&folder).map_err(|error| Error::Data(format!("{}: {error}", folder.display())))
    }
}

fn named(what: &str, error: Error) -> Error {
    match error {
        Error::Data(text) => Error::Data(format!("{what}: {text}")),
        error => error,
    }
}

/// Salvages the data file of a database that was closed; the copy must have every row.
///
/// # Errors
/// [`Error::Data`] for a loss; the engine's.
pub(crate) fn salvage_all(data: &dyn Device, options: &Options, oracle: &Oracle, played: &Played) -> Result<()> {
    let set = StorageSet::memory();
    let into = call!(played, Database::open_storage(set, options.clone()))?;
    played.note("salvage");
    let report = salvage(data, &into, &mut |_, _| {})?;
    if let Some(loss) = report.losses.first() {
        return Err(Error::Data(format!("a salvage of a sound database lost something: {loss}")));
    }
    // It copies what was committed.
    let mut right = oracle.clone();
    right.prepared.clear();
    let found = found::names(&report.prepared);
    if !found.iter().eq(oracle.prepared.keys()) {
        let right = oracle.prepared.keys();
        return Err(Error::Data(format!("a salvage found {found:?} prepared, {right:?} are right")));
    }
    right.compare(&into).map_err(|error| named("a salvaged database", error))?;
    Ok(call!(played, Database::close(into))?)
}

/// Dumps an open database and loads the dump; the copy must have every acknowledged change.
///
/// # Errors
/// [`Error::Data`] for a difference; the engine's.
pub(crate) fn dumped(db: &Database, oracle: &Oracle, played: &Played, rng: &mut Choices) -> Result<()> {
    let mut stream = Vec::new();
    let written = match rng.bool() {
        true => call!(played, Database::dump(db, &mut stream))?,
        false => call!(played, Database::dump_with(db, &mut stream, &mut |_, _| {}))?,
    };
    // A database without threads has a timeout that none is opened with; devices in memory promise no atomic writes.
    let (lock_wait_timeout_ms, doublewrite) = (1000, Doublewrite::On);
    let options = Options::clone(&db.options());
    let options = Options { log_dir: None, redo_archive: None, lock_wait_timeout_ms, doublewrite, ..options };
    let copy = call!(played, Database::open_storage(StorageSet::memory(), options))?;
    let loaded = match rng.bool() {
        true => call!(played, Database::load(&copy, &stream[..]))?,
        false => {
            let dump = call!(played, Dump::read(&stream[..]))?;
            call!(played, Dump::load_into(dump, &copy))?
        }
    };
    if loaded != written {
        return Err(Error::Data(format!("a dump of {written:?} was loaded as {loaded:?}")));
    }
    // It has what was committed.
    let mut right = oracle.clone();
    right.prepared.clear();
    right.compare(&copy).map_err(|error| named("a loaded dump", error))?;
    Ok(call!(played, Database::close(copy))?)
}

/// Opens a database read-only, in any state; it must have the contents that a later read-write opening will find.
///
/// # Errors
/// [`Error::Data`] for a difference, and for a write that is not refused; the engine's.
pub(crate) fn read_only(set: &StorageSet, options: &Options, oracle: &mut Oracle, played: &Played) -> Result<()> {
    let set = set.overlaid().map_err(|error| Error::Engine(error.into()))?;
    let db = call!(played, Database::open_storage_idle(set, options.clone()))?;
    oracle.compare(&db).map_err(|error| named("opened to be read", error))?;
    let refusals = [
        db.begin().map(drop),
        db.create_table("refused", super::content::schema(played, &Default::default())).map(drop),
        db.set_change_buffering(highwater::config::ChangeBuffering::Off),
        db.repair_indexes(&mut |_, _| {}).map(drop),
    ];
    match refusals.iter().position(|done| !matches!(done, Err(Engine::Usage(_)))) {
        Some(at) => Err(Error::Data(format!("write {at} of a database opened to be read: {:?}", refusals[at]))),
        None => Ok(db.close()?),
    }
}
