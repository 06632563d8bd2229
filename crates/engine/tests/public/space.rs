//! Space that is not needed goes back to the file system, while transactions run and at a closing.

use crate::support::{open, sound};
use highwater::config::PageStoreKind;
use highwater::{Database, Options, Schema, Table, Type, values};
use highwater_storage::StorageSet;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

const ROWS: u64 = 20_000;

fn table(db: &Database) -> Table {
    let schema = Schema::new().column("id", Type::U64).column("x", Type::Text(200)).primary_key(&["id"]);
    db.create_table("t", schema.index("by_x", &["x"])).unwrap()
}

fn insert(db: &Database, table: &Table, ids: std::ops::Range<u64>) {
    let text = |id: u64| format!("{:08}{}", id * 7919 % ROWS, "x".repeat(100));
    db.transact(|txn| ids.clone().try_for_each(|id| txn.insert(table, &values![id, text(id).as_str()]).map(drop)))
        .unwrap();
}

fn data_bytes(storage: &StorageSet) -> u64 {
    storage.data.len_bytes().unwrap()
}

/// The file becomes shorter without a closing, also when nothing else happens.
#[test]
fn a_dropped_table_leaves_a_short_file() {
    let storage = StorageSet::memory();
    let db = open(&storage);
    let table = table(&db);
    (0..ROWS).step_by(1000).for_each(|first| insert(&db, &table, first..first + 1000));
    let full = data_bytes(&storage);
    drop(table);
    db.drop_table("t").unwrap();
    let since = Instant::now();
    while data_bytes(&storage) > full / 3 {
        assert!(since.elapsed() < Duration::from_secs(120), "{} of {full} bytes", data_bytes(&storage));
        std::thread::sleep(Duration::from_millis(20));
    }
    sound(&db);
    db.close().unwrap();
}

/// A closing frees what was dropped a moment before.
#[test]
fn a_closing_leaves_a_short_file() {
    let storage = StorageSet::memory();
    let db = open(&storage);
    let table = table(&db);
    (0..ROWS).step_by(1000).for_each(|first| insert(&db, &table, first..first + 1000));
    let full = data_bytes(&storage);
    drop(table);
    db.drop_table("t").unwrap();
    db.close().unwrap();
    let closed = data_bytes(&storage);
    assert!(closed < full / 3, "{closed} of {full} bytes");
    sound(&open(&storage));
    assert!(data_bytes(&storage) <= closed.max(4 << 20));
}

/// Writers and readers go on while pages are moved.
#[test]
fn a_compaction_beside_writers_loses_nothing() {
    for page_store in [PageStoreKind::InPlace, PageStoreKind::OutOfPlace] {
        let storage = StorageSet::memory();
        let options = Options { page_store, segment_size: 256 << 10, buffer_pool_size: 2 << 20, ..Options::default() };
        let db = Database::open_storage(storage.clone(), options).unwrap();
        let table = table(&db);
        (0..ROWS).step_by(1000).for_each(|first| insert(&db, &table, first..first + 1000));
        for first in (0..ROWS).step_by(1000) {
            let gone = || (first..first + 1000).filter(|id| !id.is_multiple_of(10));
            db.transact(|txn| gone().try_for_each(|id| txn.delete(&table, &values![id]).map(drop))).unwrap();
        }
        let done = AtomicBool::new(false);
        let (written, report) = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut next = ROWS;
                while !done.load(Relaxed) && next < 2 * ROWS {
                    insert(&db, &table, next..next + 10);
                    next += 10;
                    let mut txn = db.begin().unwrap();
                    assert!(txn.get(&table, &values![next - 1]).unwrap().is_some());
                    assert!(txn.get(&table, &values![next * 10 % ROWS]).unwrap().is_some());
                }
                next - ROWS
            });
            let mut report = db.compact(&mut |_| ControlFlow::Continue(())).unwrap();
            for _ in 0..3 {
                report = db.compact(&mut |_| ControlFlow::Continue(())).unwrap();
            }
            done.store(true, Relaxed);
            (writer.join().unwrap(), report)
        });
        let mut txn = db.begin().unwrap();
        let count = txn.scan(&table).iter().unwrap().count() as u64;
        assert_eq!(count, ROWS / 10 + written, "{page_store:?}: {report:?}");
        drop(txn);
        sound(&db);
        db.close().unwrap();
    }
}
