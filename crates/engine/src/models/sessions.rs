//! Sessions on an open database concurrently with its background steps.

use super::device::taking_turns;
use super::{explore, small_database};
use crate::db::deterministic::{BackgroundStep, DeterministicDb, OpenOverrides};
use crate::error::{Error, Result};
use crate::sync::thread;
use crate::table::{Schema, Table, Type};
use crate::{Database, values};
use std::sync::Arc;

const START: u64 = 100;

fn open() -> (Arc<DeterministicDb>, Table) {
    let storage = small_database().map(taking_turns);
    let deterministic =
        DeterministicDb::open(storage, super::options(), &OpenOverrides::default(), Arc::default()).unwrap();
    let db = deterministic.database();
    let schema = Schema::new().column("id", Type::U64).column("amount", Type::U64).primary_key(&["id"]);
    let table = db.create_table("accounts", schema).unwrap();
    let mut txn = db.begin().unwrap();
    for id in 0..2u64 {
        txn.insert(&table, &values![id, START]).unwrap();
    }
    txn.commit().unwrap();
    (Arc::new(deterministic), table)
}

/// Moves one from an account to the other; whether it could.
fn transfer(db: &Database, table: &Table, from: u64, to: u64) -> Result<bool> {
    let mut txn = db.begin()?;
    let amount = table.column("amount")?;
    for (id, change) in [(from, -1i64), (to, 1)] {
        let moved = txn.modify(table, &values![id], |row, set| {
            set.put(amount, row.u64(amount).wrapping_add_signed(change));
        });
        match moved {
            Ok(found) => assert!(found),
            // Dropped: rolled back while others may wait for its rows.
            Err(Error::Deadlock | Error::LockWaitTimeout | Error::WriteConflict) => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    txn.commit()?;
    Ok(true)
}

fn sum(db: &Database, table: &Table) -> u64 {
    let amount = table.column("amount").unwrap();
    let mut read = db.snapshot().unwrap();
    (0..2u64).map(|id| read.get(table, &values![id]).unwrap().unwrap().u64(amount)).sum()
}

/// Transfers in both directions, deadlocks and timeouts among them, a reader with a snapshot, and all background steps.
/// Nothing is lost or made, every session ends, no lock is left.
pub fn transfers_concurrently_with_readers_and_background_steps() {
    explore(60, || {
        let (deterministic, table) = open();
        let threads: Vec<_> = [(0, 1), (1, 0)]
            .into_iter()
            .map(|(from, to)| {
                let (deterministic, table) = (deterministic.clone(), table.clone());
                thread::spawn(move || {
                    (0..2).filter(|_| transfer(deterministic.database(), &table, from, to).unwrap()).count() as u64
                })
            })
            .collect();
        let steps = {
            let deterministic = deterministic.clone();
            thread::spawn(move || BackgroundStep::ALL.into_iter().for_each(|step| deterministic.step(step).unwrap()))
        };
        assert_eq!(sum(deterministic.database(), &table), 2 * START);
        let moved: Vec<u64> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        steps.join().unwrap();
        let db = deterministic.database();
        assert_eq!(sum(db, &table), 2 * START);
        let amount = table.column("amount").unwrap();
        let mut txn = db.begin().unwrap();
        let first = txn.get(&table, &values![0u64]).unwrap().unwrap().u64(amount);
        assert_eq!(first, START + moved[1] - moved[0]);
        txn.rollback().unwrap();
        assert_eq!(db.stats().row_lock_current_waits, 0);
    });
}
