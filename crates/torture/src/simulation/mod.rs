//! The whole engine on one thread, in simulated time, on simulated devices: one seed determines everything.
//!
//! How a life goes
//! 1. A fault is chosen: a power cut at some write or sync, an operation that fails (a sync may lose the unsynced
//!    writes), or none (the database closes).
//! 2. The database is opened and compared with the oracle. Then random steps follow: statements of several open
//!    transactions, reads by held snapshots, commits and rollbacks, schema changes, and the steps that background
//!    threads do otherwise, until the fault shows. Every answer is compared with the oracle's.
//! 3. Unsynced writes are kept, lost or torn as the seed determines; often the next openings are cut as well. The next
//!    life continues from there. Other outcomes of the same cut are tried on copies of the disks: each is opened,
//!    sometimes after cuts of openings, and compared with the oracle.
//! 4. Sometimes a life runs on a copy of the disks with one silent fault (`silent_faults.rs`).
//!
//! In addition every operation of one short life fails, one after another ([`every_failure`]).
//!
//! Rules
//! 1. A transaction or a schema change that was not acknowledged may survive or not, but only as a whole.
//! 2. After a failed write or sync no change is acknowledged any more.
//! 3. The same seed gives the same history ([`History`]): position and bytes of every change of the devices, in order,
//!    and every outcome. Reads are not part of it. A full disk may break this, because the engine retries after some
//!    time.

mod every_failure;
mod observed;
mod setting;
mod silent_faults;
mod verdict;

use crate::alphabet::choices::Choices;
use crate::alphabet::copies::{Backups, read_only, salvage_all};
use crate::alphabet::played::Played;
use crate::alphabet::whole::expect_sound;
use crate::alphabet::{Player, Scene, Stage};
pub use every_failure::every_failure;
use highwater::Error as Engine;
use highwater::internals::DeterministicDb;
use highwater_bench::{Error, Result};
use highwater_storage::{Device, FaultKind, Faults, Operation, StorageSet};
use observed::Event;
pub use observed::History;
use setting::Setting;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Maximum number of steps of a life by default.
pub const MAX_STEPS: u32 = 400;
/// Fewest steps of a life.
const MIN_STEPS: u32 = 20;
/// Pages of a new data file.
const NEW_PAGES: u64 = 512;
/// Maximum number of consecutive cuts of openings.
const MAX_RECOVERIES: u32 = 3;
/// Maximum number of other outcomes of a power cut that are tried.
const MAX_OTHERS: u32 = 2;

/// The counts of a simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Lives, each ended by a fault or a close.
    pub lives: u64,
    /// Power cuts while transactions ran or the database closed; each tried outcome counts.
    pub cuts: u64,
    /// Power cuts of openings.
    pub recovery_cuts: u64,
    /// Reads, writes and syncs that were made to fail.
    pub failures: u64,
    /// Commits and schema changes that were acknowledged.
    pub acknowledged: u64,
    /// Lives with a silent fault.
    pub silent_faults: u64,
    /// Of `silent_faults`, those in which something was reported.
    pub silent_faults_reported: u64,
    /// Of `silent_faults`, lost writes after which an old version was read without any report.
    pub silent_faults_unseen: u64,
    /// Openings after a silent fault that skipped a rollback.
    pub rollbacks_skipped: u64,
    /// Maximum number of extent maps of a database.
    pub extent_maps: u32,
}

impl Tally {
    /// Adds another tally.
    pub fn add(&mut self, other: &Tally) {
        self.lives += other.lives;
        self.cuts += other.cuts;
        self.recovery_cuts += other.recovery_cuts;
        self.failures += other.failures;
        self.acknowledged += other.acknowledged;
        self.silent_faults += other.silent_faults;
        self.silent_faults_reported += other.silent_faults_reported;
        self.silent_faults_unseen += other.silent_faults_unseen;
        self.rollbacks_skipped += other.rollbacks_skipped;
        self.extent_maps = self.extent_maps.max(other.extent_maps);
    }
}

/// The end of a life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Cut,
    Failure(Operation, FaultKind),
    Close,
}

/// A database and its oracle.
pub struct Simulation {
    storage: StorageSet,
    setting: Arc<Setting>,
    player: Player,
    rng: Choices,
    now_ms: Arc<AtomicU64>,
    history: History,
    tally: Tally,
    max_steps: u32,
    has_small_disks: bool,
    /// The backups of some databases.
    backups: Option<Backups>,
}

impl Simulation {
    /// A new database, as the seed chooses it, with at most this many steps in a life.
    pub fn new(seed: u64, max_steps: u32) -> Simulation {
        Simulation::choosing(seed, Choices::of_seed(seed), max_steps)
    }

    /// A new database with the decisions of these bytes; the simulation ends with the last byte.
    pub fn of_bytes(bytes: &[u8]) -> Simulation {
        Simulation::choosing(0, Choices::of_bytes(bytes), MAX_STEPS)
    }

    fn choosing(seed: u64, mut rng: Choices, max_steps: u32) -> Simulation {
        let setting = Setting::random(seed, &mut rng).expect("every value of an option is accepted");
        let (storage, has_small_disks) = setting.disks(&mut rng);
        let has_backups = !setting.grows && rng.u32(..4) == 0;
        let backups = has_backups.then(|| Backups::new(setting.restored()));
        Simulation {
            storage,
            has_small_disks,
            setting: Arc::new(setting),
            player: Player::default(),
            rng,
            now_ms: Arc::default(),
            history: History::default(),
            tally: Tally::default(),
            max_steps: max_steps.max(MIN_STEPS + 1),
            backups,
        }
    }

    /// The same database on a copy of the disks, as a power cut may leave them.
    fn copied(&mut self) -> Simulation {
        Simulation {
            storage: self.storage.cut(self.rng.u64(..)),
            has_small_disks: self.has_small_disks,
            setting: self.setting.clone(),
            player: self.player.clone(),
            rng: self.rng.fork(),
            now_ms: Arc::new(AtomicU64::new(self.now_ms.load(Relaxed))),
            history: self.history.clone(),
            tally: Tally::default(),
            max_steps: self.max_steps,
            backups: None,
        }
    }

    /// The counts so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Whether a disk may become full, so that the same seed may give another history (rule 3).
    pub fn has_small_disks(&self) -> bool {
        self.has_small_disks
    }

    /// The calls of the engine that were played so far.
    pub fn played(&self) -> &Played {
        &self.player.played
    }

    /// The history so far.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Runs this many lives, and a comparison at the end.
    ///
    /// # Errors
    /// As [`live`](Simulation::live); it names the life.
    pub fn run(&mut self, lives: u32) -> Result<()> {
        for life in 1..=lives {
            if life > 1 && self.rng.is_at_end() {
                break;
            }
            let named = |error| Error::During { what: format!("life {life}"), source: Box::new(error) };
            self.live().map_err(named)?;
        }
        self.verify()
    }

    /// Runs one life.
    ///
    /// # Errors
    /// [`Error::Data`] says what was lost or wrong; the engine's error if the database cannot be opened.
    pub fn live(&mut self) -> Result<()> {
        self.tally.lives += 1;
        let (faults, ending) = (Faults::new(), self.ending());
        let stops = matches!(ending, Ending::Failure(Operation::Write | Operation::Sync, _));
        let db = self.open(&faults)?;
        self.player.oracle.compare(db.database())?;
        self.plan(&faults, ending);
        let lived = self.work(&db, &faults, stops).and_then(|()| {
            // It may be off already, unnoticed: that discards fail is not an error.
            if ending == Ending::Cut && !faults.is_power_off() {
                faults.power_off_after(self.rng.u64(..30));
            }
            Ok(db.close()?)
        });
        verdict::of_life(&lived, &faults, stops)?;
        let is_closed = lived.is_ok();
        self.note_end(lived, &faults, ending)?;
        if is_closed {
            self.player.oracle.is_durable();
            self.salvage_closed()?;
        }
        if faults.is_power_off() {
            for _ in 0..self.rng.u32(..=MAX_OTHERS) {
                self.try_another_outcome()?;
            }
            self.tally.cuts += 1;
            self.cut();
            self.cut_openings();
        }
        self.read_only()?;
        if self.rng.u32(..4) == 0 { self.live_with_silent_fault() } else { Ok(()) }
    }

    /// Sometimes salvages the closed database.
    fn salvage_closed(&mut self) -> Result<()> {
        if !self.opens_as_users_do() || self.rng.u32(..4) > 0 {
            return Ok(());
        }
        let Player { oracle, played, .. } = &self.player;
        let disks = self.setting.over(self.storage.clone());
        salvage_all(&*disks.data, &self.setting.elsewhere(), oracle, played)
    }

    /// Sometimes opens the database read-only.
    fn read_only(&mut self) -> Result<()> {
        if !self.opens_as_users_do() || self.rng.u32(..12) > 0 {
            return Ok(());
        }
        let Player { oracle, played, .. } = &self.player;
        let disks = self.setting.over(self.storage.clone());
        read_only(&disks, &self.setting.elsewhere(), &mut oracle.clone(), played)
    }

    /// Whether it can be opened without the simulation's overrides.
    fn opens_as_users_do(&self) -> bool {
        !self.setting.grows
    }

    /// Compares the database with the oracle, and checks all of it.
    ///
    /// # Errors
    /// As [`live`](Simulation::live).
    pub fn verify(&mut self) -> Result<()> {
        let db = self.open(&Faults::new())?;
        self.player.oracle.compare(db.database())?;
        expect_sound(&db.database().check()?)?;
        Ok(db.close()?)
    }

    fn ending(&mut self) -> Ending {
        match self.rng.u32(..10) {
            0..=6 => Ending::Cut,
            7 => match self.rng.u32(..3) {
                0 => Ending::Failure(Operation::Write, FaultKind::ErrorOnce),
                1 => Ending::Failure(Operation::Sync, FaultKind::ErrorOnce),
                _ => Ending::Failure(Operation::Sync, FaultKind::LostSync),
            },
            8 => Ending::Failure(Operation::Read, FaultKind::ErrorOnce),
            _ => Ending::Close,
        }
    }

    fn plan(&mut self, faults: &Faults, ending: Ending) {
        match ending {
            Ending::Cut => faults.power_off_after(self.rng.u64(..600)),
            Ending::Failure(operation, kind) => faults.fail(operation, self.rng.u64(1..25), kind),
            Ending::Close => {}
        }
    }

    fn open(&mut self, faults: &Faults) -> Result<DeterministicDb> {
        let memory = self.storage.memory_devices().expect("its disks are in memory").clone();
        self.open_through(|number, _| faults.wrap_memory(memory[number as usize - 1].clone()))
    }

    /// Opens the database; `wrap` gets the number of each device (1 data, 2 redo, 3 doublewrite).
    fn open_through(&mut self, wrap: impl Fn(u64, Arc<dyn Device>) -> Arc<dyn Device>) -> Result<DeterministicDb> {
        let mut numbers = 1..;
        let mut number = || numbers.next().expect("a set has three devices");
        let disks = self.storage.map(|device| wrap(number(), device));
        let mut numbers = 1..;
        let mut number = || numbers.next().expect("a set has three devices");
        let devices = self.setting.over(disks).map(|device| self.history.observe(device, number()));
        let options = self.setting.at_opening(&mut self.rng)?;
        Ok(DeterministicDb::open(devices, options, &self.setting.overrides, self.now_ms.clone())?)
    }

    /// Runs random steps until an error or the end of the life, and judges the result. `stops`: a failure may stop the
    /// database.
    fn work(&mut self, db: &DeterministicDb, faults: &Faults, stops: bool) -> Result<()> {
        let count = self.rng.u32(MIN_STEPS..self.max_steps);
        let mut scene = Scene::with_backups(self.backups.take());
        let worked = self.steps(db, count, &mut scene, Some(faults));
        self.backups = scene.backups.take();
        drop(scene);
        verdict::of_work(worked, db.database(), faults, stops)
    }

    /// Runs this many random steps, or up to an error. Without `faults` any operation may have failed.
    fn steps(&mut self, db: &DeterministicDb, count: u32, scene: &mut Scene, faults: Option<&Faults>) -> Result<()> {
        let (database, fills) = (db.database(), self.setting.grows);
        let before = self.player.acknowledged;
        for _ in 0..count {
            if self.rng.is_at_end() {
                break;
            }
            self.now_ms.fetch_add(self.rng.u64(..20), Relaxed);
            let is_sound = faults.is_some_and(|faults| faults.failures() == 0);
            let stage = Stage { db: database, stepped: Some(db), fills, is_sound };
            let done = self.player.play(&stage, scene, &mut self.rng);
            let outcome = match &done {
                Ok(()) => 0,
                Err(Error::Engine(Engine::DiskFull { .. })) => 1,
                Err(Error::Engine(_)) => 2,
                Err(_) => 3,
            };
            self.history.add(Event::Step(outcome));
            match done {
                // The statement was undone; the transaction that met it is rolled back with the others.
                Err(Error::Engine(Engine::DiskFull { .. })) => {
                    self.player.oracle.in_doubt = None;
                    scene.roll_back(&self.player.played)?;
                }
                done => done?,
            }
        }
        self.tally.acknowledged += self.player.acknowledged - before;
        self.tally.extent_maps = self.tally.extent_maps.max(db.extent_maps());
        Ok(())
    }

    /// An error is right where a fault was planned, and only there.
    fn note_end(&mut self, lived: Result<()>, faults: &Faults, ending: Ending) -> Result<()> {
        match (lived, ending) {
            (Err(Error::Data(text)), _) => Err(Error::Data(text)),
            (Ok(()), _) => Ok(()),
            (Err(_), Ending::Cut) if faults.is_power_off() => Ok(()),
            (Err(_), Ending::Failure(..)) => {
                self.tally.failures += 1;
                Ok(())
            }
            (Err(error), _) => Err(error),
        }
    }

    /// Tries another outcome of the power cut on a copy of the disks.
    fn try_another_outcome(&mut self) -> Result<()> {
        let mut copy = self.copied();
        copy.tally.cuts += 1;
        copy.cut_openings();
        let faults = Faults::new();
        let db = copy.open(&faults)?;
        copy.player.oracle.compare(db.database())?;
        // No one looks at this copy again: it need not be closed.
        faults.power_off_after(0);
        self.tally.add(&copy.tally);
        Ok(())
    }

    fn cut(&mut self) {
        self.storage = self.storage.cut(self.rng.u64(..));
    }

    /// Cuts the next openings too, in a third of the cases.
    fn cut_openings(&mut self) {
        if self.rng.u32(..3) == 0 {
            (0..self.rng.u32(1..=MAX_RECOVERIES)).for_each(|_| self.cut_opening());
        }
    }

    fn cut_opening(&mut self) {
        let faults = Faults::new();
        faults.power_off_after(self.rng.u64(..150));
        // With few changes to recover it may be open before the power is cut.
        drop(self.open(&faults));
        self.cut();
        self.tally.recovery_cuts += 1;
    }
}

#[cfg(test)]
#[path = "simulation_test.rs"]
mod tests;
