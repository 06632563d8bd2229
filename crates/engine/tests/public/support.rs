//! Small databases and tables for tests.

use crate::testing::{TestDb, by_id};
use highwater::config::PageSize;
use highwater::{Database, Options, Row, Scan, Table, Type, Value, values};
use highwater_storage::StorageSet;
use std::time::{Duration, Instant};

/// 4 KiB pages, a pool of 512 of them, a short lock wait.
pub(crate) fn options() -> Options {
    Options {
        page_size: PageSize::Bytes(4096),
        buffer_pool_size: 2 << 20,
        log_file_size: 4 << 20,
        log_buffer_size: 1 << 20,
        lock_wait_timeout_ms: 300,
        ..Options::default()
    }
}

pub(crate) fn open(storage: &StorageSet) -> TestDb {
    TestDb::on(storage, options())
}

pub(crate) fn memory() -> TestDb {
    memory_with(options())
}

/// Locks are waited for as long as it takes: for threads that wait for each other, and are not to give up.
pub(crate) fn patient() -> TestDb {
    memory_with(Options { lock_wait_timeout_ms: 120_000, ..options() })
}

pub(crate) fn memory_with(options: Options) -> TestDb {
    TestDb::new(options)
}

/// id (counts by itself) | last | first | age? ; indexes by_name (last, first) and by_age (age).
pub(crate) fn people(db: &Database) -> Table {
    let schema = by_id()
        .auto_increment("id")
        .column("last", Type::Text(64))
        .column("first", Type::Text(64))
        .nullable("age", Type::I32)
        .index("by_name", &["last", "first"])
        .index("by_age", &["age"]);
    db.create_table("people", schema).unwrap()
}

pub(crate) fn add(db: &Database, people: &Table, last: &str, first: &str, age: Option<i32>) -> u64 {
    let mut txn = db.begin().unwrap();
    let id = txn.insert(people, &values![null, last, first, age]).unwrap().auto_increment.unwrap();
    txn.commit().unwrap();
    id
}

/// Every row of a table as values, in the order of an index ("PRIMARY" for the rows themselves).
pub(crate) fn all(db: &Database, table: &Table, index: &str) -> Vec<Vec<Value>> {
    let mut read = db.snapshot().unwrap();
    rows(read.scan(table).index(index))
}

fn rows(scan: Scan<'_, '_>) -> Vec<Vec<Value>> {
    scan.iter().unwrap().map(|row| row.unwrap().to_values()).collect()
}

/// Every index of a table has exactly the rows of one snapshot, forward as backward.
pub(crate) fn check_indexes(db: &Database, table: &Table) {
    let mut read = db.snapshot().unwrap();
    let sorted = |mut rows: Vec<Vec<Value>>| {
        rows.sort_by_cached_key(|row| format!("{row:?}"));
        rows
    };
    let expected = sorted(rows(read.scan(table)));
    for index in &table.definition().indexes {
        let forward = rows(read.scan(table).index(&index.name));
        let mut backward = rows(read.scan(table).index(&index.name).rev());
        backward.reverse();
        assert!(forward == backward, "index {}: {} rows, backward {}", index.name, forward.len(), backward.len());
        let found = sorted(forward);
        let missing = expected.iter().find(|row| !found.contains(row));
        let surplus = found.iter().find(|row| !expected.contains(row));
        assert!(found == expected, "index {}: missing {missing:?}, too many {surplus:?}", index.name);
    }
}

pub(crate) fn names(rows: impl Iterator<Item = highwater::Result<Row>>) -> Vec<String> {
    rows.map(|row| row.map(|row| format!("{} {}", row.str(1), row.str(2))).unwrap()).collect()
}

/// The whole database passes its check.
pub(crate) fn sound(db: &Database) {
    let report = db.check().unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
}

/// Waits until nothing is left to purge.
pub(crate) fn await_purge(db: &Database) {
    let since = Instant::now();
    while db.stats().history_list_length > 0 {
        assert!(since.elapsed() < Duration::from_secs(120), "{} are not purged", db.stats().history_list_length);
        std::thread::sleep(Duration::from_millis(1));
    }
}
