//! A database whose indexes are many times as large as its pool: the indexes always match the rows, whatever is
//! pending.

mod advance;
mod closing;
mod crash;
mod damage;
mod damaged_tree;
mod disk;
mod life;
mod limits;
mod merging;
mod schema;
mod threads;
mod transactions;
mod watches;

use crate::config::{ChangeBuffering, Options};
use crate::db::testing::{TestDb, by_id};
use crate::db::{Database, WriteTxn};
use crate::table::Table;
use crate::testing::{assert_free_classes, small_options};
use crate::txn::TableTrees;
use crate::{Type, Value, values};
use fastrand::Rng;
use highwater_storage::StorageSet;
use std::collections::BTreeMap;

/// Rows by key: the two indexed columns.
pub(super) type Rows = BTreeMap<u64, (u64, u64)>;

/// The ways of buffering changes.
pub(super) const MODES: [ChangeBuffering; 2] = [ChangeBuffering::Memory, ChangeBuffering::Disk];

/// 4 KiB pages, a pool of 256 frames; changes are buffered in memory.
pub(super) fn options() -> Options {
    Options { change_buffering: ChangeBuffering::Memory, cleaner_interval_ms: 5, ..small_options() }
}

/// The same with another way of buffering.
pub(super) fn options_of(change_buffering: ChangeBuffering) -> Options {
    Options { change_buffering, ..options() }
}

pub(super) fn create(db: &Database) -> Table {
    let schema = by_id().column("a", Type::U64).column("b", Type::U64).index("by_a", &["a"]).index("by_b", &["b"]);
    db.create_table("t", schema).unwrap()
}

/// A new database with this many rows, and its rows.
pub(super) fn filled(options: Options, rows: u64, rng: &mut Rng) -> (TestDb, Rows) {
    let db = TestDb::new(options);
    let table = create(&db);
    let mut model = Rows::new();
    for ids in (0..rows).collect::<Vec<_>>().chunks(500) {
        let mut txn = db.begin().unwrap();
        for id in ids {
            insert(&mut txn, &table, &mut model, *id, rng);
        }
        txn.commit().unwrap();
    }
    (db, model)
}

pub(super) fn insert(txn: &mut WriteTxn, table: &Table, rows: &mut Rows, id: u64, rng: &mut Rng) {
    let (a, b) = (rng.u64(..), rng.u64(0..5000));
    txn.insert(table, &values![id, a, b]).unwrap();
    rows.insert(id, (a, b));
}

/// One random change.
pub(super) fn change(txn: &mut WriteTxn, table: &Table, rows: &mut Rows, rng: &mut Rng) {
    let id = rng.u64(0..rows.last_key_value().map_or(1, |(id, _)| id + 50));
    match rng.u32(0..10) {
        0..=3 => {
            let id = rows.last_key_value().map_or(0, |(id, _)| id + 1);
            insert(txn, table, rows, id, rng);
        }
        4..=7 => {
            let (a, b) = (rng.u64(..), rng.u64(0..5000));
            let changed = txn.update(table, &values![id], &[(1, a.into()), (2, b.into())]).unwrap();
            assert_eq!(changed, rows.contains_key(&id));
            rows.entry(id).and_modify(|row| *row = (a, b));
        }
        8 => assert_eq!(txn.delete(table, &values![id]).unwrap(), rows.remove(&id).is_some()),
        _ if !rows.contains_key(&id) => insert(txn, table, rows, id, rng),
        _ => {}
    }
}

/// One random transaction; committed, rolled back, or rolled back to a savepoint and committed.
pub(super) fn transact(db: &Database, table: &Table, rows: &mut Rows, rng: &mut Rng) {
    let mut txn = db.begin().unwrap();
    let mut changed = rows.clone();
    (0..rng.usize(1..20)).for_each(|_| change(&mut txn, table, &mut changed, rng));
    let kept = changed.clone();
    if rng.u32(0..4) == 0 {
        let savepoint = txn.savepoint();
        (0..rng.usize(1..10)).for_each(|_| change(&mut txn, table, &mut changed, rng));
        txn.rollback_to(savepoint).unwrap();
    }
    match rng.u32(0..5) {
        0 => txn.rollback().unwrap(),
        _ => {
            txn.commit().unwrap();
            *rows = kept;
        }
    }
}

/// Every row in the order of an index.
pub(super) fn in_order_of(db: &Database, table: &Table, index: &str) -> Vec<Vec<Value>> {
    let mut read = db.snapshot().unwrap();
    let rows = read.scan(table).index(index).iter().unwrap();
    rows.map(|row| row.unwrap().to_values()).collect()
}

/// Rows and indexes are what the model says, and the database is sound.
pub(super) fn assert_same(db: &Database, rows: &Rows, note: &str) {
    let table = db.table("t").unwrap();
    let value = |(id, (a, b)): (&u64, &(u64, u64))| vec![Value::UInt(*id), Value::UInt(*a), Value::UInt(*b)];
    let expected: Vec<Vec<Value>> = rows.iter().map(value).collect();
    assert_eq!(in_order_of(db, &table, "PRIMARY"), expected, "{note}: rows");
    for (index, column) in [("by_a", 1), ("by_b", 2)] {
        let mut expected: Vec<(u64, u64)> =
            rows.iter().map(|(id, (a, b))| (if column == 1 { *a } else { *b }, *id)).collect();
        expected.sort_unstable();
        let found = in_order_of(db, &table, index);
        let found: Vec<(u64, u64)> = found
            .iter()
            .map(|row| match (&row[column], &row[0]) {
                (Value::UInt(key), Value::UInt(id)) => (*key, *id),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(found, expected, "{note}: {index}");
    }
    let version = table.shared.current.read().clone();
    for i in 0..version.index_count() {
        assert_free_classes(db.context(), db.space(), version.index(i));
    }
    let report = db.check().unwrap();
    assert!(report.is_sound(), "{note}: {report:?}");
}
