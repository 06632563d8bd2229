//! Snapshots, rollback and purge while changes are pending.

use super::*;
use crate::ReadTxn;
use std::time::{Duration, Instant};

/// The ids in the order of `by_a`, as a snapshot sees them.
fn ids_by_a(read: &mut ReadTxn, table: &Table) -> Vec<u64> {
    read.scan(table).index("by_a").iter().unwrap().map(|row| row.unwrap().u64(0)).collect()
}

fn expected_by_a(rows: &Rows) -> Vec<u64> {
    let mut order: Vec<(u64, u64)> = rows.iter().map(|(id, (a, _))| (*a, *id)).collect();
    order.sort_unstable();
    order.into_iter().map(|(_, id)| id).collect()
}

fn await_purge(db: &Database) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while db.stats().history_list_length > 0 {
        assert!(Instant::now() < deadline, "purge does not end: {:?}", db.purge_state());
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A snapshot is not touched by changes that became pending after it, nor by purge, which waits for it; once it is
/// released purge makes removals pending, too.
#[test]
fn a_held_snapshot_reads_what_was_and_purge_waits_for_it() {
    for mode in MODES {
        let mut rng = Rng::with_seed(11);
        let (db, mut rows) = filled(options_of(mode), 12_000, &mut rng);
        let table = db.table("t").unwrap();
        let (mut held, then) = (db.snapshot().unwrap(), expected_by_a(&rows));
        assert_eq!(ids_by_a(&mut held, &table), then);
        (0..150).for_each(|_| transact(&db, &table, &mut rows, &mut rng));
        assert!(db.stats().history_list_length > 50);
        assert_eq!(ids_by_a(&mut held, &table), then, "{mode:?}");
        let mut now = db.snapshot().unwrap();
        assert_eq!(ids_by_a(&mut now, &table), expected_by_a(&rows), "{mode:?}");
        (0..150).for_each(|_| transact(&db, &table, &mut rows, &mut rng));
        drop((held, now));
        await_purge(&db);
        assert_same(&db, &rows, "purged");
        let entries = db.check().unwrap().counts.entries;
        assert_eq!(entries, 2 * rows.len() as u64, "{mode:?}: purge left entries behind");
    }
}

/// Rollback makes entries pending again, marks them, removes them: whole transactions and parts of them.
#[test]
fn rollbacks_undo_pending_changes() {
    for mode in MODES {
        let mut rng = Rng::with_seed(12);
        let (db, mut rows) = filled(options_of(mode), 12_000, &mut rng);
        let table = db.table("t").unwrap();
        for round in 0..30 {
            let mut txn = db.begin().unwrap();
            let mut changed = rows.clone();
            (0..40).for_each(|_| change(&mut txn, &table, &mut changed, &mut rng));
            let kept = changed.clone();
            let savepoint = txn.savepoint();
            (0..40).for_each(|_| change(&mut txn, &table, &mut changed, &mut rng));
            txn.rollback_to(savepoint).unwrap();
            if round % 2 == 0 {
                txn.rollback().unwrap();
            } else {
                txn.commit().unwrap();
                rows = kept;
            }
        }
        assert!(db.stats().change_buffer_ops_buffered > 2000);
        assert_same(&db, &rows, &format!("{mode:?}"));
    }
}

/// The same entry is made, marked, removed and made again while its leaf is out of the pool and purge runs.
#[test]
fn an_entry_that_goes_and_comes_back_is_there() {
    for mode in MODES {
        let mut rng = Rng::with_seed(13);
        let (db, mut rows) = filled(options_of(mode), 12_000, &mut rng);
        let table = db.table("t").unwrap();
        let ids: Vec<u64> = (0..200).map(|_| rng.u64(0..12_000)).collect();
        for turn in 0..12_u64 {
            for id in &ids {
                let mut txn = db.begin().unwrap();
                let row = (id * 1_000_003 + turn % 2, turn % 3);
                txn.update(&table, &values![*id], &[(1, row.0.into()), (2, row.1.into())]).unwrap();
                txn.commit().unwrap();
                rows.insert(*id, row);
            }
            if turn % 4 == 3 {
                await_purge(&db);
            }
        }
        assert_same(&db, &rows, &format!("{mode:?}"));
    }
}
