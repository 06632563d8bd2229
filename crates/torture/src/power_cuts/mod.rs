//! Power cuts of a database whose secondary indexes do not fit its pool, on disks in memory.
//!
//! How a life goes
//! 1. Random transactions change rows (some in a way that fills the redo log), and between them a player plays the
//!    alphabet of the tortures on tables of its own, until the power is cut: at any write or
//!    sync, or a few of them after leaves were merged, after changes were carried forward, after a checkpoint, while
//!    the database closes.
//! 2. Unsynced writes are kept, lost or torn at random. Often recovery is cut as well, up to three times in a row.
//! 3. The database is opened. Every row must be that of the last commit, each secondary index must have exactly the
//!    rows' entries in their order, the player's tables must hold what its oracle says, and the check must find
//!    nothing. The next life continues from there.
//!
//! Rules
//! 1. A transaction whose commit was not acknowledged may survive or not, but only as a whole. The last acknowledged
//!    transactions that need not be durable (`flush_log_at_trx_commit` 0 and 2) may be lost, those of the rows and of
//!    the player from the same moment on.
//! 2. The seed determines all random choices, but not the scheduling of background threads: a seed repeats the choices,
//!    not the states.
//! 3. The same trial holds for every mode of change buffering.

mod rows;

use crate::alphabet::choices::Choices;
use crate::alphabet::{Player, Scene, Stage};
use fastrand::Rng;
use highwater::config::MergeAtClose;
use highwater::{Database, Options, StatsSnapshot};
use highwater_bench::{Error, Result};
use highwater_storage::{Faults, StorageSet};
use rows::Rows;

/// Initial number of rows: their indexes are several times as large as the smallest pool.
const ROWS: u64 = 3000;
/// Maximum number of transactions of a life.
const MAX_TRANSACTIONS: u32 = 120;
/// Number of letters played after a transaction.
const LETTERS: u32 = 4;
/// Lock wait timeout: the only thread is the one that could release the lock.
const LOCK_WAIT_TIMEOUT_MS: u64 = 1;
/// Maximum number of consecutive cuts of recovery.
const MAX_RECOVERIES: u32 = 3;

/// The moment of the power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// At a write or sync chosen beforehand.
    Any,
    /// Soon after a leaf was merged.
    Merge,
    /// Soon after changes were carried forward, or a page of the change buffer was written.
    Carry,
    /// Soon after a checkpoint.
    Checkpoint,
    /// While the database closes.
    Close,
}

const MOMENTS: [Moment; 5] = [Moment::Any, Moment::Merge, Moment::Carry, Moment::Checkpoint, Moment::Close];

impl Moment {
    /// The counter whose growth is awaited.
    fn counter(self, stats: &StatsSnapshot) -> u64 {
        match self {
            Moment::Any | Moment::Close => 0,
            Moment::Merge => stats.change_buffer_merges,
            Moment::Carry => stats.change_buffer_relogged_ops + stats.change_buffer_pages_written,
            Moment::Checkpoint => stats.checkpoints,
        }
    }
}

/// Counts over lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Cuts while transactions ran or the database closed.
    pub cuts: u64,
    /// Cuts of recovery.
    pub recovery_cuts: u64,
    /// Changes that were buffered.
    pub buffered: u64,
    /// Leaves that were merged.
    pub merges: u64,
    /// Changes that were carried forward.
    pub carried: u64,
}

impl Tally {
    /// All cuts.
    pub fn all_cuts(&self) -> u64 {
        self.cuts + self.recovery_cuts
    }

    /// Adds another tally.
    pub fn add(&mut self, other: &Tally) {
        self.cuts += other.cuts;
        self.recovery_cuts += other.recovery_cuts;
        self.buffered += other.buffered;
        self.merges += other.merges;
        self.carried += other.carried;
    }

    fn add_stats(&mut self, stats: &StatsSnapshot) {
        self.buffered += stats.change_buffer_ops_buffered;
        self.merges += stats.change_buffer_merges;
        self.carried += stats.change_buffer_relogged_ops;
    }
}

/// A database and its expected contents.
pub struct Trial {
    storage: StorageSet,
    options: Options,
    rows: Rows,
    player: Player,
    rng: Rng,
    /// The counts so far.
    pub tally: Tally,
}

impl Trial {
    /// A new database in memory, filled and closed.
    ///
    /// # Errors
    /// The engine's.
    pub fn new(options: Options, seed: u64) -> Result<Trial> {
        let mut rng = Rng::with_seed(seed);
        let storage = StorageSet::memory();
        let db = Database::open_storage(storage.clone(), options.clone())?;
        let rows = Rows::create(&db, ROWS, &mut rng)?;
        db.close()?;
        Ok(Trial { storage, options, rows, player: Player::default(), rng, tally: Tally::default() })
    }

    /// Runs one life, up to the comparison after its cut.
    ///
    /// # Errors
    /// [`Error::Data`] names a lost or wrong row; the engine's error if the database cannot be opened.
    pub fn live(&mut self) -> Result<()> {
        let moment = MOMENTS[self.rng.usize(..MOMENTS.len())];
        let faults = Faults::new();
        let db = Database::open_storage(self.storage.map(|device| faults.wrap(device)), self.options())?;
        self.work(&db, &faults, moment)?;
        self.tally.add_stats(&db.stats());
        match db.close() {
            // Where the power was cut, closing fails.
            Err(error) if !faults.is_power_off() => return Err(self.explain(moment, 0, error.into())),
            Ok(()) => self.is_closed(),
            Err(_) => {}
        }
        self.tally.cuts += 1;
        self.storage = self.storage.cut(self.rng.u64(..));
        let recoveries = if self.rng.bool() { self.rng.u32(1..=MAX_RECOVERIES) } else { 0 };
        (0..recoveries).for_each(|_| self.cut_recovery());
        let db = Database::open_storage(self.storage.clone(), self.options())?;
        let compared = self.rows.compare(&db);
        let compared = compared.and_then(|survived| self.player.oracle.compare_within(&db, survived));
        compared.map_err(|error| self.explain(moment, recoveries, error))?;
        Ok(db.close()?)
    }

    fn is_closed(&mut self) {
        self.rows.are_durable();
        self.player.oracle.is_durable();
    }

    fn options(&mut self) -> Options {
        let change_buffer_merge_at_close = if self.rng.bool() { MergeAtClose::On } else { MergeAtClose::Off };
        let lock_wait_timeout_ms = LOCK_WAIT_TIMEOUT_MS;
        Options { change_buffer_merge_at_close, lock_wait_timeout_ms, ..self.options.clone() }
    }

    /// Runs transactions until the power is off, or until the database is to be closed.
    fn work(&mut self, db: &Database, faults: &Faults, moment: Moment) -> Result<()> {
        let (mut scene, mut choices) = (Scene::default(), Choices::of_seed(self.rng.u64(..)));
        let before = moment.counter(&db.stats());
        let mut is_set = false;
        if moment == Moment::Any {
            faults.power_off_after(self.rng.u64(..400));
            is_set = true;
        }
        let transactions = if moment == Moment::Close { self.rng.u32(1..60) } else { MAX_TRANSACTIONS };
        for _ in 0..transactions {
            let done = self.rows.transact(db, self.player.oracle.acknowledgements(), &mut self.rng);
            match done.and_then(|()| self.play(db, &mut scene, &mut choices)) {
                Err(error @ Error::Data(_)) => return Err(error),
                _ if faults.is_power_off() => return Ok(()),
                done => done?,
            }
            if !is_set && moment != Moment::Close && moment.counter(&db.stats()) > before {
                faults.power_off_after(self.rng.u64(..12));
                is_set = true;
            }
        }
        faults.power_off_after(if moment == Moment::Close { self.rng.u64(..40) } else { 0 });
        Ok(())
    }

    fn play(&mut self, db: &Database, scene: &mut Scene, choices: &mut Choices) -> Result<()> {
        let stage = Stage { db, stepped: None, fills: false, is_sound: false };
        let durable = self.player.oracle.durable();
        (0..LETTERS).try_for_each(|_| self.player.play(&stage, scene, choices))?;
        // What made those changes durable did the same for all before.
        if self.player.oracle.durable() > durable {
            self.rows.are_durable();
        }
        Ok(())
    }

    fn cut_recovery(&mut self) {
        let faults = Faults::new();
        faults.power_off_after(self.rng.u64(..150));
        // With few changes to recover it may be open before the power is cut.
        drop(Database::open_storage(self.storage.map(|device| faults.wrap(device)), self.options()));
        self.storage = self.storage.cut(self.rng.u64(..));
        self.tally.recovery_cuts += 1;
    }

    fn explain(&self, moment: Moment, recoveries: u32, error: Error) -> Error {
        let (cut, mode) = (self.tally.cuts, self.options.change_buffering);
        let what = format!("cut {cut} ({moment:?}, {recoveries} in recovery, change buffering {mode:?})");
        Error::During { what, source: Box::new(error) }
    }
}
