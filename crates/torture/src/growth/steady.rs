//! Skewed loads, under which the purge backlog must not grow.
//!
//! Rules
//! 1. Purge runs a step for every few transactions, as its thread does during a load. A load grows if its backlog or
//!    its cost is larger at the end than at the beginning.
//! 2. Two equal parts of one load are compared: the second quarter, at whose end the level is reached, and the last
//!    quarter.

use super::operations::{open, table};
use super::timed;
use highwater::internals::{BackgroundStep, DeterministicDb};
use highwater::{ReadTxn, Table, values};
use highwater_bench::Result;
use highwater_storage::StorageSet;
use std::time::Duration;

/// Maximum ratio of the costs of the last and the second quarter.
const MAX_RATIO: f64 = 3.0;
/// Maximum history list length after the load and the last steps of purge.
const MAX_LEFT: u64 = 400;
/// Rounds of a load; a multiple of four.
const ROUNDS: usize = 40;
/// Maximum number of trials of a load that costs too much, because the machine may be busy.
const MAX_TRIES: u32 = 3;

/// A load.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Name.
    pub name: &'static str,
    /// Description of a round.
    pub what: &'static str,
    round: fn(&mut World, usize) -> Result<()>,
}

/// Every load.
pub const STEADY: &[Load] = &[
    Load { name: "hot-key", what: "an indexed column of one row is updated 500 times", round: hot_key },
    Load { name: "queue", what: "250 rows are inserted at one end and deleted at the other", round: queue },
    Load { name: "snapshot", what: "as hot-key, with a snapshot held for ten rounds", round: snapshot },
];

/// The result of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steady {
    /// History list length after the second quarter and after the last.
    pub left: [u64; 2],
    /// Pages of undo and of the table, in bytes, after each of them.
    pub undo_bytes: [u64; 2],
    /// Costs of the two quarters.
    pub times: [Duration; 2],
}

impl Steady {
    /// Whether the load has not grown.
    pub fn is_steady(&self) -> bool {
        self.left.iter().all(|left| *left <= MAX_LEFT) && self.costs_the_same()
    }

    fn costs_the_same(&self) -> bool {
        self.times[1].as_secs_f64() <= MAX_RATIO * self.times[0].as_secs_f64().max(0.01)
    }
}

struct World {
    db: DeterministicDb,
    table: Table,
    snapshot: Option<ReadTxn>,
}

impl Load {
    /// Runs it.
    ///
    /// # Errors
    /// The engine's.
    pub fn run(&self) -> Result<Steady> {
        let mut steady = self.try_once()?;
        for _ in 1..MAX_TRIES {
            if steady.is_steady() {
                break;
            }
            steady = self.try_once()?;
        }
        Ok(steady)
    }

    fn try_once(&self) -> Result<Steady> {
        let db = open(StorageSet::memory())?;
        let table = table(db.database())?;
        db.database().transact(|txn| txn.insert(&table, &values![0u64, 0u64, "the row"]).map(drop))?;
        let mut world = World { db, table, snapshot: None };
        let mut steady = Steady { left: [0; 2], undo_bytes: [0; 2], times: [Duration::ZERO; 2] };
        for quarter in 0..4 {
            let rounds = quarter * ROUNDS / 4..(quarter + 1) * ROUNDS / 4;
            let took = timed(|| rounds.clone().try_for_each(|round| (self.round)(&mut world, round)))?;
            if quarter % 2 == 1 {
                let state = world.db.database().purge_state();
                let part = quarter / 2;
                (steady.left[part], steady.undo_bytes[part]) = (state.history_list_length, state.undo_bytes);
                steady.times[part] = took;
            }
        }
        Ok(steady)
    }
}

impl World {
    /// The steps of purge in a round: twice what 500 transactions need.
    fn purge(&self) -> Result<()> {
        (0..10).try_for_each(|_| Ok(self.db.step(BackgroundStep::Purge)?))
    }

    fn update(&self, numbers: std::ops::Range<usize>) -> Result<()> {
        for number in numbers {
            let number = number as u64;
            self.db
                .database()
                .transact(|txn| txn.update(&self.table, &values![0u64], &[(1, number.into())]).map(drop))?;
        }
        Ok(())
    }
}

fn hot_key(world: &mut World, round: usize) -> Result<()> {
    for part in 0..10 {
        let from = round * 500 + part * 50 + 1;
        world.update(from..from + 50)?;
        world.db.step(BackgroundStep::Purge)?;
    }
    Ok(())
}

fn queue(world: &mut World, round: usize) -> Result<()> {
    let db = world.db.database();
    for n in 0..250 {
        let id = (round * 250 + n + 1) as u64;
        db.transact(|txn| txn.insert(&world.table, &values![id, id, format!("name {id}").as_str()]).map(drop))?;
        if id > 100 {
            db.transact(|txn| txn.delete(&world.table, &values![id - 100]).map(drop))?;
        }
    }
    world.purge()
}

/// The snapshot is held in the first and the third quarter.
fn snapshot(world: &mut World, round: usize) -> Result<()> {
    let quarter = round / (ROUNDS / 4);
    if quarter % 2 == 1 {
        world.snapshot = None;
    } else if world.snapshot.is_none() {
        let mut held = world.db.database().snapshot()?;
        held.get(&world.table, &values![0u64])?;
        world.snapshot = Some(held);
    }
    hot_key(world, round)?;
    world.purge()
}
