//! The whole engine on one thread, in simulated time, on simulated devices: one seed decides everything that happens.
//!
//! How a life goes
//! 1. A fault is chosen: a power cut at some write or sync, an operation that fails, or none (the database closes).
//! 2. The database is opened and compared with the oracle. Then random steps follow: statements of several open
//!    transactions, reads by held snapshots, commits and rollbacks, schema changes, and the steps that background
//!    threads do otherwise, until the fault shows. Every answer is compared with the oracle's.
//! 3. What was not synced is kept, lost or torn as the seed says; often the next opening is cut as well, and the one
//!    after it. The next life goes on from there.
//!
//! Rules
//! 1. A transaction, or a schema change, whose end was not acknowledged may be there or not, but not by half.
//! 2. After a failed write or sync no change is acknowledged any more.
//! 3. The same seed gives the same history ([`History`]): the place and length of every change that was asked of the
//!    devices, in order, and every outcome. Contents and reads are no part of it. A disk that is full may break this:
//!    the engine looks again after some time.

mod actors;
mod choices;
mod observed;
mod oracle;

use crate::error::{Error, Result};
use actors::{Actor, Snapshot, is_refusal};
use choices::Choices;
use highwater::config::{ChangeBuffering, MergeAtClose, PageCompression, PageSize, PageStoreKind, VictimPolicy};
use highwater::internals::{Step, Stepped};
use highwater::{Database, Error as Engine, Options, Schema, Type};
use highwater_storage::{FaultKind, Faults, MemoryDevice, Operation, StorageSet};
pub use observed::History;
use observed::Observed;
use oracle::{INDEXES, InDoubt, Oracle};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Most steps of a life, unless another number is asked for.
pub const MOST_STEPS: u32 = 400;
/// Fewest steps of a life.
const LEAST_STEPS: u32 = 20;
/// Open transactions, and held snapshots, at most.
const ACTORS: usize = 5;
const SNAPSHOTS: usize = 2;
const TABLES: u32 = 4;
/// Pages of a new data file.
const NEW_PAGES: u64 = 512;
/// Most cuts of openings in a row.
const MOST_RECOVERIES: u32 = 3;

/// What happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Lives, each ended by a fault or a close.
    pub lives: u64,
    /// Power cuts while transactions ran or the database closed.
    pub cuts: u64,
    /// Power cuts of openings.
    pub recovery_cuts: u64,
    /// Reads, writes and syncs that were made to fail.
    pub failures: u64,
    /// Commits and schema changes that were acknowledged.
    pub acknowledged: u64,
}

impl Tally {
    /// Adds what happened elsewhere.
    pub fn add(&mut self, other: &Tally) {
        self.lives += other.lives;
        self.cuts += other.cuts;
        self.recovery_cuts += other.recovery_cuts;
        self.failures += other.failures;
        self.acknowledged += other.acknowledged;
    }
}

/// How a life ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Cut,
    Failure(Operation),
    Close,
}

/// A database, and everything that is known of it.
pub struct Simulation {
    storage: StorageSet,
    options: Options,
    oracle: Oracle,
    rng: Choices,
    now_ms: Arc<AtomicU64>,
    history: History,
    tally: Tally,
    next_table: u32,
    most_steps: u32,
}

impl Simulation {
    /// A new database, as the seed chooses it, with at most so many steps in a life.
    pub fn new(seed: u64, most_steps: u32) -> Simulation {
        Simulation::choosing(Choices::of_seed(seed), most_steps)
    }

    /// A new database, as these bytes choose it; they also choose what happens, which ends with them.
    pub fn of_bytes(bytes: &[u8]) -> Simulation {
        Simulation::choosing(Choices::of_bytes(bytes), MOST_STEPS)
    }

    fn choosing(mut rng: Choices, most_steps: u32) -> Simulation {
        let options = random_options(&mut rng);
        // A third of the disks are small.
        let created = options.page_size.bytes().unwrap_or(0) * NEW_PAGES;
        let limit = if rng.u32(..3) == 0 { 2 * created + (rng.u64(4..10) << 20) } else { u64::MAX };
        let data = if limit == u64::MAX { MemoryDevice::new() } else { MemoryDevice::limited(limit) };
        Simulation {
            storage: StorageSet::of_memory([data, MemoryDevice::new(), MemoryDevice::new()]),
            options,
            oracle: Oracle::default(),
            rng,
            now_ms: Arc::default(),
            history: History::default(),
            tally: Tally::default(),
            next_table: 0,
            most_steps: most_steps.max(LEAST_STEPS + 1),
        }
    }

    /// What happened so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// A hash of what happened so far.
    pub fn hash(&self) -> u64 {
        self.history.hash()
    }

    /// So many lives, and a look at the end.
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

    /// One life.
    ///
    /// # Errors
    /// [`Error::Data`] says what was lost or wrong; the engine's error if the database cannot be opened.
    pub fn live(&mut self) -> Result<()> {
        self.tally.lives += 1;
        let (faults, ending) = (Faults::new(), self.ending());
        let lived = self.open(&faults).and_then(|db| {
            self.oracle.compare(db.database())?;
            self.plan(&faults, ending);
            self.work(&db, &faults)?;
            if ending == Ending::Cut {
                faults.power_off_after(self.rng.u64(..30));
            }
            Ok(db.close()?)
        });
        self.note_end(lived, &faults, ending)?;
        if faults.is_power_off() {
            self.tally.cuts += 1;
            self.cut();
            if self.rng.u32(..3) == 0 {
                (0..self.rng.u32(1..=MOST_RECOVERIES)).for_each(|_| self.cut_opening());
            }
        }
        Ok(())
    }

    /// Compares the database with the oracle, and checks all of it.
    ///
    /// # Errors
    /// As [`live`](Simulation::live).
    pub fn verify(&mut self) -> Result<()> {
        let db = self.open(&Faults::new())?;
        self.oracle.compare(db.database())?;
        if let Some(finding) = db.database().check()?.findings.first() {
            return Err(Error::Data(format!("the check found: {finding}")));
        }
        Ok(db.close()?)
    }

    fn ending(&mut self) -> Ending {
        match self.rng.u32(..10) {
            0..=6 => Ending::Cut,
            7 => Ending::Failure([Operation::Write, Operation::Sync][self.rng.usize(..2)]),
            8 => Ending::Failure(Operation::Read),
            _ => Ending::Close,
        }
    }

    fn plan(&mut self, faults: &Faults, ending: Ending) {
        match ending {
            Ending::Cut => faults.power_off_after(self.rng.u64(..600)),
            Ending::Failure(operation) => faults.fail(operation, self.rng.u64(1..80), FaultKind::ErrorOnce),
            Ending::Close => {}
        }
    }

    fn open(&mut self, faults: &Faults) -> Result<Stepped> {
        let mut number = 0;
        let devices = self.storage.map(|device| {
            number += 1;
            Observed::wrap(faults.wrap(device), number, &self.history)
        });
        let change_buffer_merge_at_close = if self.rng.bool() { MergeAtClose::On } else { MergeAtClose::Off };
        let options = Options { change_buffer_merge_at_close, ..self.options.clone() };
        Ok(Stepped::open(devices, options, self.now_ms.clone())?)
    }

    /// Random steps, until an error or the end of the life.
    fn work(&mut self, db: &Stepped, faults: &Faults) -> Result<()> {
        let (mut actors, mut snapshots) = (Vec::new(), Vec::new());
        let failed_before = faults.failures();
        for _ in 0..self.rng.u32(LEAST_STEPS..self.most_steps) {
            if self.rng.is_at_end() {
                break;
            }
            self.now_ms.fetch_add(self.rng.u64(..20), Relaxed);
            let done = self.step(db, &mut actors, &mut snapshots);
            let outcome = match &done {
                Ok(()) => 0,
                Err(Error::Engine(Engine::DiskFull { .. })) => 1,
                Err(Error::Engine(_)) => 2,
                Err(_) => 3,
            };
            self.history.add(&[outcome]);
            match done {
                Ok(()) => {}
                // The statement was undone; the transaction that met it is rolled back with the others.
                Err(Error::Engine(Engine::DiskFull { .. })) => {
                    self.oracle.in_doubt = None;
                    actors.clear();
                }
                Err(error) => {
                    self.expect_stopped(db.database(), faults, failed_before)?;
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn step(&mut self, db: &Stepped, actors: &mut Vec<Actor>, snapshots: &mut Vec<Snapshot>) -> Result<()> {
        let (database, rng) = (db.database(), &mut self.rng);
        match rng.u32(..100) {
            0..=7 if actors.len() < ACTORS => actors.push(Actor::begin(database, rng)?),
            8..=64 if !actors.is_empty() => {
                let at = rng.usize(..actors.len());
                actors[at].act(database, &self.oracle, rng)?;
            }
            65..=75 if !actors.is_empty() => {
                let actor = actors.swap_remove(rng.usize(..actors.len()));
                actor.end(&mut self.oracle, rng)?;
                self.tally.acknowledged += 1;
            }
            76 | 77 if snapshots.len() < SNAPSHOTS => snapshots.extend(Snapshot::take(database, &self.oracle)?),
            78..=80 if !snapshots.is_empty() => {
                let at = rng.usize(..snapshots.len());
                snapshots[at].look(database, &self.oracle, rng)?;
            }
            81 if !snapshots.is_empty() => drop(snapshots.swap_remove(0)),
            82..=84 => self.change_schema(database)?,
            _ => {
                let step = Step::ALL[rng.usize(..Step::ALL.len())];
                db.step(step)?;
            }
        }
        Ok(())
    }

    /// Creates or drops a table or an index; transactions that use it may be in its way.
    fn change_schema(&mut self, db: &Database) -> Result<()> {
        let (count, rng) = (self.oracle.tables.len() as u32, &mut self.rng);
        let table = rng.choice(self.oracle.tables.keys()).cloned();
        let (index, column) = INDEXES[rng.usize(..INDEXES.len())];
        let (change, result) = match (table, rng.u32(..4)) {
            (None, _) | (_, 0) if count < TABLES => {
                self.next_table += 1;
                let name = format!("t{}", self.next_table);
                let result = db.create_table(&name, schema()).map(drop);
                (InDoubt::CreateTable(name), result)
            }
            (Some(name), 1) if count > 1 => {
                let result = db.drop_table(&name);
                (InDoubt::DropTable(name), result)
            }
            (Some(name), _) if self.oracle.tables[&name].indexes.contains(index) => {
                let result = db.drop_index(&name, index);
                (InDoubt::DropIndex(name, index), result)
            }
            (Some(name), _) => {
                let result = db.create_index(&name, index, &[column], false);
                (InDoubt::CreateIndex(name, index), result)
            }
            (None, _) => return Ok(()),
        };
        match result {
            Ok(()) => {
                self.oracle.settle(change);
                self.tally.acknowledged += 1;
                Ok(())
            }
            Err(error) if is_refusal(&error) => Ok(()),
            Err(error) => {
                self.oracle.in_doubt = Some(change);
                Err(error.into())
            }
        }
    }

    /// After a failed write or sync the database acknowledges nothing any more (rule 2).
    fn expect_stopped(&self, db: &Database, faults: &Faults, failed_before: u64) -> Result<()> {
        if faults.failures() == failed_before || faults.is_power_off() {
            return Ok(());
        }
        let name = "after_a_failure";
        match db.create_table(name, schema()) {
            Ok(_) => Err(Error::Data("a table was created though a write or sync had failed".into())),
            Err(_) => Ok(()),
        }
    }

    /// An error is right where a fault was planned, and only there.
    fn note_end(&mut self, lived: Result<()>, faults: &Faults, ending: Ending) -> Result<()> {
        match (lived, ending) {
            (Err(Error::Data(text)), _) => Err(Error::Data(text)),
            (Ok(()), _) => Ok(()),
            (Err(_), Ending::Cut) if faults.is_power_off() => Ok(()),
            (Err(_), Ending::Failure(_)) => {
                self.tally.failures += 1;
                Ok(())
            }
            (Err(error), _) => Err(error),
        }
    }

    fn cut(&mut self) {
        self.storage = self.storage.cut(self.rng.u64(..));
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

fn schema() -> Schema {
    let text = |schema: Schema, name: &str, bytes| schema.column(name, Type::Text(bytes));
    let schema = Schema::new().column("id", Type::U64);
    let schema = text(text(text(schema, "a", 60), "b", 60), "body", 10_000).primary_key(&["id"]);
    INDEXES.iter().fold(schema, |schema, (name, column)| schema.index(name, &[column]))
}

fn random_options(rng: &mut Choices) -> Options {
    let page_store = if rng.bool() { PageStoreKind::InPlace } else { PageStoreKind::OutOfPlace };
    let packed = [PageCompression::Off, PageCompression::Lz4, PageCompression::Zstd][rng.usize(..3)];
    Options {
        page_size: PageSize::Bytes([4096, 4096, 8192, 16384][rng.usize(..4)]),
        page_store,
        page_compression: if page_store == PageStoreKind::InPlace { PageCompression::Off } else { packed },
        segment_size: 256 << 10,
        buffer_pool_size: 2 << 20,
        log_file_size: 4 << 20,
        log_buffer_size: 1 << 20,
        lock_wait_timeout_ms: 1,
        change_buffering: [ChangeBuffering::Off, ChangeBuffering::Disk, ChangeBuffering::Memory][rng.usize(..3)],
        victim_policy: VictimPolicy::ALL[rng.usize(..VictimPolicy::ALL.len())],
        ..Options::default()
    }
}

#[cfg(test)]
#[path = "simulation_test.rs"]
mod tests;
