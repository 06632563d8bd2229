//! Schema changes concurrent with transactions that have read the table before and write it afterwards.

use crate::support::{check_indexes, memory, patient, sound};
use crate::testing::{by_id, commit_all};
use highwater::{Database, Error, Isolation, Result, Table, TxnOptions, Type, ValueRef, WriteTxn, values};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// id | a | b, a hundred rows with all three the same; index by_b.
fn hundred(db: &Database) -> Table {
    let schema = by_id().column("a", Type::U64).column("b", Type::U64).index("by_b", &["b"]);
    let table = db.create_table("t", schema).unwrap();
    commit_all(db, 0..100u64, |txn, i| txn.insert(&table, &values![i, i, i]));
    table
}

/// A transaction that has read the table, in one of the ways there are.
fn reader(db: &Database, table: &Table, way: usize) -> WriteTxn {
    let isolation = if way.is_multiple_of(2) { Isolation::RepeatableRead } else { Isolation::ReadCommitted };
    let mut txn = db.begin_with(TxnOptions { isolation, ..TxnOptions::default() }).unwrap();
    match way / 2 {
        0 => drop(txn.get(table, &values![0]).unwrap()),
        1 => assert_eq!(txn.scan(table).iter().unwrap().count(), 100),
        2 => drop(txn.get_for_update(table, &values![3]).unwrap()),
        _ => assert_eq!(txn.scan(table).index("by_b").for_update().limit(5).iter().unwrap().count(), 5),
    }
    txn
}

const WAYS: usize = 8;

fn write(txn: &mut WriteTxn, table: &Table) {
    assert!(txn.update(table, &values![3], &[(1, ValueRef::UInt(1003))]).unwrap());
    txn.insert(table, &values![500, 508, 8]).unwrap();
    assert!(txn.delete(table, &values![50]).unwrap());
    assert!(txn.update(table, &values![7], &[(0, ValueRef::UInt(700))]).unwrap());
}

/// The rows of these keys can be changed, and every index is whole.
fn usable(db: &Database, table: &Table) {
    check_indexes(db, table);
    commit_all(db, [3, 7, 50, 500, 700u64], |txn, id| {
        txn.update(table, &values![id], &[(1, ValueRef::UInt(2000 + id))])
    });
    check_indexes(db, table);
    sound(db);
}

#[test]
fn what_is_written_after_a_build_is_in_the_new_index() {
    for way in 0..WAYS {
        let db = memory();
        let table = hundred(&db);
        let mut txn = reader(&db, &table, way);
        db.create_index("t", "by_a", &["a"], way % 3 == 0).unwrap();
        db.create_index("t", "by_a_b", &["a", "b"], false).unwrap();
        write(&mut txn, &table);
        txn.commit().unwrap();
        usable(&db, &table);
        db.drop_index("t", "by_a").unwrap();
        usable(&db, &table);
    }
}

#[test]
fn what_is_undone_after_a_build_is_not_in_the_new_index() {
    for way in 0..WAYS {
        let db = memory();
        let table = hundred(&db);
        let mut txn = reader(&db, &table, way);
        let before = txn.savepoint();
        db.create_index("t", "by_a", &["a"], true).unwrap();
        write(&mut txn, &table);
        txn.rollback_to(before).unwrap();
        write(&mut txn, &table);
        let between = txn.savepoint();
        assert!(txn.update(&table, &values![3], &[(1, ValueRef::UInt(3003))]).unwrap());
        txn.rollback_to(between).unwrap();
        if way % 3 == 0 {
            txn.rollback_to(before).unwrap();
            txn.commit().unwrap();
        } else {
            txn.rollback().unwrap();
        }
        usable(&db, &table);
    }
}

#[test]
fn a_new_unique_index_binds_those_who_read_before() {
    for way in 0..WAYS {
        let db = memory();
        let table = hundred(&db);
        let mut txn = reader(&db, &table, way);
        db.create_index("t", "by_a", &["a"], true).unwrap();
        let refused = |error: Error| matches!(error, Error::DuplicateKey { index, .. } if index == "by_a");
        assert!(refused(txn.update(&table, &values![3], &[(1, ValueRef::UInt(7))]).unwrap_err()));
        assert!(refused(txn.insert(&table, &values![500, 8, 8]).unwrap_err()));
        assert!(txn.update(&table, &values![3], &[(1, ValueRef::UInt(1007))]).unwrap());
        txn.commit().unwrap();
        usable(&db, &table);
    }
}

#[test]
fn a_crash_after_a_build_leaves_the_new_index_right() {
    for way in 0..WAYS {
        let db = memory();
        let table = hundred(&db);
        let mut txn = reader(&db, &table, way);
        db.create_index("t", "by_a", &["a"], true).unwrap();
        write(&mut txn, &table);
        if way % 3 == 0 {
            txn.commit().unwrap();
        } else {
            // Its changes are in the log, its end is not.
            db.flush_log().unwrap();
            std::mem::forget(txn);
        }
        let db = db.after_power_cut(way as u64);
        usable(&db, &db.table("t").unwrap());
    }
}

#[test]
fn an_index_younger_than_a_transaction_is_named_as_such_before_and_after_its_writes() {
    let db = memory();
    let table = hundred(&db);
    let begin = |isolation| db.begin_with(TxnOptions { isolation, ..TxnOptions::default() }).unwrap();
    let (mut repeatable, mut committed) = (begin(Isolation::RepeatableRead), begin(Isolation::ReadCommitted));
    let mut snapshot = db.snapshot().unwrap();
    assert_eq!(snapshot.scan(&table).iter().unwrap().count(), 100);
    for txn in [&mut repeatable, &mut committed] {
        assert_eq!(txn.scan(&table).iter().unwrap().count(), 100);
    }
    let mut other = db.begin().unwrap();
    other.update(&table, &values![1], &[(1, ValueRef::UInt(9000))]).unwrap();
    other.commit().unwrap();
    db.create_index("t", "by_a", &["a"], false).unwrap();
    let young = "index by_a was created or rebuilt after this transaction began; begin a new transaction to use it";
    for write in [false, true] {
        if write {
            repeatable.update(&table, &values![2], &[(1, ValueRef::UInt(9001))]).unwrap();
            // Below the range of the new index that the other has locked.
            committed.update(&table, &values![4], &[(1, ValueRef::UInt(4000))]).unwrap();
        }
        assert_eq!(snapshot.scan(&table).index("by_a").iter().err().unwrap().to_string(), young);
        assert_eq!(repeatable.scan(&table).index("by_a").iter().err().unwrap().to_string(), young);
        // A locking scan reads what is newest, and so does every statement of the other.
        let high = repeatable.scan(&table).index("by_a").from(&values![9000]).for_share().iter().unwrap().count();
        assert_eq!(high, if write { 2 } else { 1 });
        let high = committed.scan(&table).index("by_a").from(&values![4000]).iter().unwrap().count();
        assert_eq!(high, if write { 2 } else { 1 });
        // The snapshot stays, in the order of an index that is old enough.
        let old = |row: &highwater::Row| (row.u64(0), row.u64(1));
        let rows: Vec<_> =
            repeatable.scan(&table).index("by_b").limit(3).iter().unwrap().map(|r| old(&r.unwrap())).collect();
        assert_eq!(rows, [(0, 0), (1, 1), (2, if write { 9001 } else { 2 })]);
    }
    drop(snapshot);
    repeatable.commit().unwrap();
    committed.commit().unwrap();
    usable(&db, &table);
}

/// A removal waits for one reader of a snapshot; another one, made before or after, need not wait for it.
#[test]
fn who_reads_the_same_snapshot_does_not_wait_for_a_removal() {
    let db = patient();
    let table = hundred(&db);
    for first_reads in [false, true] {
        let mut read = db.snapshot().unwrap();
        let mut early = read.same_snapshot().unwrap();
        std::thread::scope(|scope| {
            // One of the two is the first to use the table.
            let reader = if first_reads { &mut read } else { &mut early };
            assert!(reader.get(&table, &values![1]).unwrap().is_some());
            let removal = scope.spawn(|| db.drop_index("t", "by_b"));
            std::thread::sleep(Duration::from_millis(50));
            let mut late = reader.same_snapshot().unwrap();
            for other in [&mut read, &mut early, &mut late] {
                assert!(other.get(&table, &values![2]).unwrap().is_some());
                assert_eq!(other.scan(&table).index("by_b").iter().unwrap().count(), 100);
            }
            // Each of them keeps the table.
            drop((read, early));
            assert!(late.get(&table, &values![3]).unwrap().is_some() && !removal.is_finished());
            drop(late);
            removal.join().unwrap().unwrap();
        });
        assert!(db.snapshot().unwrap().scan(&table).index("by_b").iter().is_err());
        db.create_index("t", "by_b", &["b"], false).unwrap();
    }
    usable(&db, &table);
}

#[test]
fn removals_wait_for_those_who_have_read_and_then_write() {
    for table_goes in [false, true] {
        let db = memory();
        let table = hundred(&db);
        let mut txn = reader(&db, &table, 0);
        let remove = |db: &Database| if table_goes { db.drop_table("t") } else { db.drop_index("t", "by_b") };
        assert!(matches!(remove(&db), Err(Error::LockWaitTimeout)));
        let patient = db.with_lock_wait_timeout(Duration::from_secs(120));
        std::thread::scope(|scope| {
            let removal = scope.spawn(|| remove(&patient));
            std::thread::sleep(Duration::from_millis(50));
            // It waits; the one it waits for need not wait for it.
            write(&mut txn, &table);
            txn.commit().unwrap();
            removal.join().unwrap().unwrap();
        });
        if table_goes {
            let again = hundred(&db);
            let mut txn = db.begin().unwrap();
            assert_eq!(txn.delete(&table, &values![1]).unwrap_err().to_string(), "table t was dropped");
            write(&mut txn, &again);
            txn.commit().unwrap();
            usable(&db, &again);
        } else {
            assert!(table.definition().indexes.is_empty());
            usable(&db, &table);
        }
    }
}

/// Numbers at random, the same for the same seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % limit
    }
}

/// Reads, waits a moment, then writes, sometimes undoing part of it.
fn read_then_write(db: &Database, table: &Table, n: &mut Numbers) -> Result<()> {
    let isolation = if n.below(2) == 0 { Isolation::RepeatableRead } else { Isolation::ReadCommitted };
    let mut txn =
        db.begin_with(TxnOptions { isolation, lock_wait_timeout_ms: Some(20_000), ..TxnOptions::default() })?;
    match n.below(3) {
        0 => drop(txn.get(table, &values![n.below(120)])?),
        1 => drop(txn.get_for_update(table, &values![n.below(120)])?),
        _ => txn.scan(table).limit(30).iter()?.try_for_each(|row| row.map(drop))?,
    }
    std::thread::sleep(Duration::from_micros(n.below(4000)));
    let before = txn.savepoint();
    for _ in 0..1 + n.below(4) {
        let (id, a) = (n.below(120), n.below(40));
        let done = match n.below(4) {
            0 => txn.delete(table, &values![id]).map(drop),
            1 => txn.insert(table, &values![id, a, a]).map(drop),
            2 => txn.update(table, &values![id], &[(1, ValueRef::UInt(a))]).map(drop),
            _ => txn.update(table, &values![id], &[(0, ValueRef::UInt(n.below(120)))]).map(drop),
        };
        match done {
            Err(Error::DuplicateKey { .. }) | Ok(()) => {}
            Err(error) => return Err(error),
        }
        if n.below(8) == 0 {
            txn.rollback_to(before)?;
        }
    }
    if n.below(4) == 0 { txn.rollback() } else { txn.commit() }
}

#[test]
fn indexes_come_and_go_with_those_who_read_and_then_write() {
    let db = memory();
    let table = hundred(&db);
    let stop = AtomicBool::new(false);
    let patiently = |change: &dyn Fn() -> Result<()>| {
        (0..50).map(|_| change()).find(|tried| !matches!(tried, Err(Error::LockWaitTimeout))).unwrap_or_else(change)
    };
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|seed| {
                let (db, table, stop) = (&db, &table, &stop);
                scope.spawn(move || {
                    let mut n = Numbers(seed);
                    while !stop.load(Ordering::Relaxed) {
                        match read_then_write(db, table, &mut n) {
                            Ok(()) | Err(Error::Deadlock) => {}
                            Err(error) => return Err(error),
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        let changes = || -> Result<()> {
            for round in 0..12 {
                patiently(&|| db.create_index("t", "first", &["a"], false))?;
                patiently(&|| db.create_index("t", "second", &["a", "id"], round % 2 == 0))?;
                std::thread::sleep(Duration::from_millis(5));
                patiently(&|| db.check().map(|report| assert!(report.is_sound(), "{:?}", report.findings)))?;
                patiently(&|| db.drop_index("t", "first"))?;
                patiently(&|| db.drop_index("t", "second"))?;
            }
            patiently(&|| db.create_index("t", "first", &["a"], false))
        };
        let changed = changes();
        stop.store(true, Ordering::Relaxed);
        writers.into_iter().for_each(|writer| writer.join().unwrap().unwrap());
        changed.unwrap();
    });
    check_indexes(&db, &table);
    sound(&db);
}
