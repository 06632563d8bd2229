//! Deleting the rows of a range, or those of it that a closure chooses.

use crate::support::{await_purge, check_indexes, memory, open, options, sound};
use crate::testing::by_id;
use highwater::{Database, Error, Isolation, Result, Table, TxnOptions, Type, values};
use highwater_storage::StorageSet;
use std::collections::BTreeMap;

const ROWS: u64 = 3000;

/// id | group; rows of a few to a page.
fn filled(db: &Database) -> Table {
    let schema = by_id().column("group", Type::U32).column("body", Type::Text(300)).index("by_group", &["group"]);
    let table = db.create_table("t", schema).unwrap();
    let body = "b".repeat(200);
    db.transact(|txn| txn.insert_many(&table, (0..ROWS).map(|id| values![id, (id % 7) as u32, body.as_str()])))
        .unwrap();
    table
}

fn ids(db: &Database, table: &Table) -> Vec<u64> {
    db.snapshot().unwrap().scan(table).iter().unwrap().map(|row| row.unwrap().u64("id")).collect()
}

#[test]
fn the_rows_of_a_range_are_deleted() {
    let db = memory();
    let table = filled(&db);
    let mut model: BTreeMap<u64, u64> = (0..ROWS).map(|id| (id, id % 7)).collect();
    let mut old = db.snapshot().unwrap();
    assert_eq!(old.scan(&table).limit(1).count().unwrap(), 1);
    let deleted = db.transact(|txn| txn.scan(&table).from(&values![100u64]).to_exclusive(&values![900u64]).delete());
    model.retain(|id, _| !(100..900).contains(id));
    assert_eq!((deleted.unwrap(), ids(&db, &table)), (800, model.keys().copied().collect()));
    // By an index, backward, some of them, only so many.
    let by_index = db.transact(|txn| txn.scan(&table).index("by_group").prefix(&values![3u32]).delete()).unwrap();
    let before = model.len();
    model.retain(|_, group| *group != 3);
    assert_eq!(by_index as usize, before - model.len());
    let last: Vec<u64> = model.keys().rev().take(40).copied().filter(|id| id % 2 == 0).collect();
    let some = db.transact(|txn| txn.scan(&table).rev().limit(40).delete_if(|row| row.u64("id") % 2 == 0)).unwrap();
    model.retain(|id, _| !last.contains(id));
    assert_eq!((some, ids(&db, &table)), (last.len() as u64, model.keys().copied().collect()));
    assert_eq!(db.transact(|txn| txn.scan(&table).from(&values![90_000u64]).delete()).unwrap(), 0);
    assert_eq!(old.scan(&table).count().unwrap(), ROWS);
    // A snapshot deletes nothing.
    assert!(matches!(old.scan(&table).delete(), Err(Error::Usage(_))));
    drop(old);
    assert_eq!(db.transact(|txn| txn.scan(&table).delete()).unwrap() as usize, model.len());
    await_purge(&db);
    check_indexes(&db, &table);
    assert!(ids(&db, &table).is_empty());
    sound(&db);
}

/// Of a call that fails nothing stays: a row that another transaction has locked, a panic, a deadlock.
#[test]
fn a_deletion_is_done_as_a_whole_or_not_at_all() {
    let db = memory();
    let table = filled(&db);
    let mut holder = db.begin().unwrap();
    holder.update(&table, &values![700u64], &[("group", 50.into())]).unwrap();
    let mut txn = db.begin().unwrap();
    txn.delete(&table, &values![1u64]).unwrap();
    let refused = txn.scan(&table).from(&values![600u64]).to(&values![800u64]).nowait().delete();
    assert!(matches!(refused, Err(Error::LockNotAvailable { .. })), "{refused:?}");
    assert_eq!(txn.scan(&table).count().unwrap(), ROWS - 1);
    let mut asked = 0;
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        txn.scan(&table).from(&values![100u64]).delete_if(|_| {
            asked += 1;
            if asked == 50 {
                panic!("of the test")
            }
            true
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(txn.scan(&table).count().unwrap(), ROWS - 1);
    // Locked rows can be skipped.
    assert_eq!(txn.scan(&table).from(&values![690u64]).to(&values![709u64]).skip_locked().delete().unwrap(), 19);
    txn.commit().unwrap();
    holder.rollback().unwrap();
    assert_eq!(ids(&db, &table).len() as u64, ROWS - 20);
    sound(&db);
}

/// It works on the newest rows, and under the levels that lock ranges nothing comes into what it has emptied.
#[test]
fn a_deletion_meets_others_as_its_level_says() -> Result<()> {
    let db = memory();
    let table = filled(&db);
    let level = |isolation| TxnOptions { isolation, lock_wait_timeout_ms: Some(20), ..TxnOptions::default() };
    let mut txn = db.begin()?;
    assert_eq!(txn.scan(&table).count()?, ROWS);
    db.transact(|other| other.insert(&table, &values![ROWS, 0u32, ""]).map(drop))?;
    assert_eq!(txn.scan(&table).from(&values![ROWS - 5]).delete()?, 6);
    let mut other = db.begin_with(level(Isolation::ReadCommitted))?;
    let inserted = other.insert(&table, &values![ROWS + 9, 0u32, ""]);
    assert!(matches!(inserted, Err(Error::LockWaitTimeout)), "{inserted:?}");
    txn.rollback()?;
    other.insert(&table, &values![ROWS + 9, 0u32, ""])?;
    other.commit()?;
    let mut conflict = db.begin_with(TxnOptions { first_committer_wins: true, ..level(Isolation::RepeatableRead) })?;
    conflict.scan(&table).limit(1).count()?;
    db.transact(|txn| txn.update(&table, &values![20u64], &[("group", 90.into())]))?;
    assert!(matches!(conflict.scan(&table).to(&values![30u64]).delete(), Err(Error::WriteConflict)));
    assert_eq!(conflict.scan(&table).count()?, ROWS + 2);
    Ok(())
}

/// The power goes at random moments while ranges are deleted: of each transaction all is there or nothing.
#[test]
fn a_power_cut_leaves_a_range_whole_or_deleted() {
    let storage = StorageSet::memory();
    let db = open(&storage);
    let table = filled(&db);
    let writer = std::thread::spawn(move || {
        for first in (0..ROWS).step_by(500) {
            let (from, to) = (values![first], values![first + 499]);
            assert_eq!(db.transact(|txn| txn.scan(&table).from(&from).to(&to).delete()).unwrap(), 500);
        }
        db
    });
    let cuts: Vec<_> = (0..6)
        .map(|seed| {
            std::thread::sleep(std::time::Duration::from_millis(60));
            storage.cut(seed)
        })
        .collect();
    drop(writer.join().unwrap());
    for cut in cuts {
        let db = Database::open_storage(cut, options()).unwrap();
        let table = db.table("t").unwrap();
        let left = ids(&db, &table);
        assert!(
            left.len().is_multiple_of(500) && left.iter().copied().eq(ROWS - left.len() as u64..ROWS),
            "{} rows",
            left.len()
        );
        sound(&db);
    }
}
