//! Threads that write and threads that scan, concurrently with merging, carrying forward and purge.

use super::*;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

const WRITERS: u64 = 3;
const IDS: u64 = 18_000;

/// Changes the rows of one writer: those whose ids are its number modulo the writers.
fn write(db: &Database, table: &Table, writer: u64, all: &Rows) -> Rows {
    let mut rng = Rng::with_seed(50 + writer);
    let mut rows: Rows = all.iter().filter(|(id, _)| *id % WRITERS == writer).map(|(id, row)| (*id, *row)).collect();
    for _ in 0..250 {
        let mut txn = db.begin().unwrap();
        let mut changed = rows.clone();
        for _ in 0..rng.u64(1..25) {
            let id = rng.u64(..IDS / WRITERS) * WRITERS + writer;
            let (a, b) = (rng.u64(..), rng.u64(..5000));
            if rng.u32(..5) == 0 {
                assert_eq!(txn.delete(table, &values![id]).unwrap(), changed.remove(&id).is_some());
            } else if changed.insert(id, (a, b)).is_none() {
                txn.insert(table, &values![id, a, b]).unwrap();
            } else {
                assert!(txn.update(table, &values![id], &[(1, a.into()), (2, b.into())]).unwrap());
            }
        }
        if rng.u32(..5) == 0 {
            txn.rollback().unwrap();
        } else {
            txn.commit().unwrap();
            rows = changed;
        }
    }
    rows
}

/// A scan of an index sees each row once, in order, and as many as a scan of the rows.
fn scan(db: &Database, table: &Table, column: usize, index: &str) {
    let mut read = db.snapshot().unwrap();
    let count = read.scan(table).iter().unwrap().map(|row| drop(row.unwrap())).count();
    let entries = read.scan(table).index(index).iter().unwrap();
    let entries: Vec<(u64, u64)> = entries.map(|row| row.map(|row| (row.u64(column), row.u64(0))).unwrap()).collect();
    assert!(entries.is_sorted() && entries.len() == count, "{index}: {} entries of {count} rows", entries.len());
}

#[test]
fn writers_and_readers_agree() {
    for mode in MODES {
        let (db, all) = filled(options_of(mode), IDS, &mut Rng::with_seed(49));
        let table = db.table("t").unwrap();
        let is_done = AtomicBool::new(false);
        let rows: Rows = std::thread::scope(|scope| {
            let (db, table, is_done, all) = (&db, &table, &is_done, &all);
            let writers: Vec<_> = (0..WRITERS).map(|n| scope.spawn(move || write(db, table, n, all))).collect();
            for (column, index) in [(1, "by_a"), (2, "by_b")] {
                scope.spawn(move || {
                    while !is_done.load(Relaxed) {
                        scan(db, table, column, index);
                        std::thread::sleep(std::time::Duration::from_millis(30));
                    }
                });
            }
            let rows = writers.into_iter().map(|writer| writer.join()).collect::<Vec<_>>();
            is_done.store(true, Relaxed);
            rows.into_iter().flat_map(Result::unwrap).collect()
        });
        assert!(db.stats().change_buffer_ops_buffered > 1000, "{:?}", db.stats());
        assert_same(&db, &rows, &format!("{mode:?}"));
    }
}
