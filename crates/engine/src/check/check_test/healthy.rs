//! Undamaged databases pass the check.

use super::*;
use crate::db::testing::{TestDb, commit_all};

#[test]
fn a_healthy_database_passes() {
    for storage in [closed(3000), purged(3000)] {
        let report = check(&storage).unwrap();
        assert_eq!(report.findings, [], "{:?}", report.counts);
        assert_eq!(report.counts.tables, 2);
        assert_eq!(report.counts.trees, 8);
        assert_eq!(report.counts.rows, 3000 - 3000u64.div_ceil(11));
        assert_eq!(report.counts.entries, 2 * report.counts.rows);
        assert_eq!(report.counts.pages_verified, report.counts.pages_used);
        let scanned = inspect::scan(&*storage.data, &mut |_, _| {}).unwrap();
        assert_eq!(scanned.findings, []);
        assert_eq!(scanned.counts.pages_verified, scanned.counts.pages_used);
    }
}

#[test]
fn what_a_power_cut_leaves_passes() {
    for seed in 0..8 {
        let db = TestDb::new(small_options());
        let table = db.create_table("person", schema()).unwrap();
        fill(&db, &table, 300 + seed * 100).unwrap();
        let mut open = db.begin().unwrap();
        for id in (2..100u64).step_by(3) {
            open.update(&table, &values![id], &[(1, "cut off".into()), (3, "z".repeat(5000).as_str().into())]).unwrap();
        }
        db.flush_log().unwrap();
        let left = db.storage.cut(seed);
        drop(open);
        let db = Database::open_storage_idle(left, small_options()).unwrap();
        assert_eq!(db.check().unwrap().findings, [], "seed {seed}");
        while db.transactions().purge_step(100).unwrap() > 0 {}
        assert_eq!(db.check().unwrap().findings, [], "seed {seed}, purged");
    }
}

/// Its rollback writes more redo than fits between two checkpoints.
#[test]
fn a_long_transaction_is_rolled_back_at_opening() {
    let db = TestDb::new(small_options());
    let table = db.create_table("person", schema()).unwrap();
    commit_all(&db, 0..8000u64, |txn, n| {
        txn.insert(&table, &values![null, name(n).as_str(), null, "a".repeat(800).as_str()])
    });
    let mut txn = db.begin().unwrap();
    for n in 1..=8000u64 {
        txn.update(&table, &values![n], &[(3, "b".repeat(800).as_str().into())]).unwrap();
    }
    db.flush_log().unwrap();
    let left = db.storage.cut(3);
    drop((txn, db));
    let report = check(&left).unwrap();
    assert_eq!((report.findings.len(), report.counts.rows), (0, 8000));
}

#[test]
fn a_check_runs_with_readers_and_after_writers() {
    let db = TestDb::new(small_options());
    let table = db.create_table("person", schema()).unwrap();
    let mut reader = db.snapshot().unwrap();
    assert!(reader.get(&table, &values![1]).unwrap().is_none());
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2).map(|_| scope.spawn(|| write_some(&db, &table))).collect();
        for _ in 0..5 {
            assert_eq!(db.check().unwrap().findings, []);
        }
        writers.into_iter().for_each(|writer| writer.join().unwrap());
    });
    assert_eq!(db.check().unwrap().counts.rows, 2 * 40 * 10);
    drop(reader);
}

fn write_some(db: &Database, table: &Table) {
    for _ in 0..40 {
        commit_all(db, 0..10, |txn, _| {
            let id = txn.insert(table, &values![null, "a", null, "x".repeat(3000).as_str()]).unwrap();
            txn.update(table, &values![id.auto_increment.unwrap()], &[(1, "b".into())])
        });
    }
}

#[test]
fn progress_ends_where_it_said() {
    let storage = closed(1000);
    let db = Database::open_storage_idle(storage, small_options()).unwrap();
    let mut calls = Vec::new();
    db.check_with(&mut |done, total| calls.push((done, total))).unwrap();
    let (done, total) = *calls.last().unwrap();
    assert!(done <= total && total - done < 64, "{done} of {total}");
    assert!(calls.is_sorted());
}
