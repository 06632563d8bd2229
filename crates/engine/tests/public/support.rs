//! Small databases and tables for tests.

use highwater::{Database, Options, Row, Schema, Table, Type, Value, values};
use highwater_storage::StorageSet;

/// 4 KiB pages, a pool of 512 of them, a short lock wait.
pub fn options() -> Options {
    Options {
        page_size: 4096,
        buffer_pool_size: 2 << 20,
        log_file_size: 4 << 20,
        log_buffer_size: 1 << 20,
        lock_wait_timeout_ms: 300,
        ..Options::default()
    }
}

pub fn open(storage: &StorageSet) -> Database {
    Database::open_storage(storage.clone(), options()).unwrap()
}

pub fn memory() -> Database {
    open(&StorageSet::memory())
}

/// id (counts by itself) | last | first | age? ; indexes by_name (last, first) and by_age (age).
pub fn people(db: &Database) -> Table {
    let schema = Schema::new()
        .column("id", Type::U64)
        .auto_increment("id")
        .column("last", Type::Text(64))
        .column("first", Type::Text(64))
        .nullable("age", Type::I32)
        .primary_key(&["id"])
        .index("by_name", &["last", "first"])
        .index("by_age", &["age"]);
    db.create_table("people", schema).unwrap()
}

pub fn add(db: &Database, people: &Table, last: &str, first: &str, age: Option<i32>) -> u64 {
    let mut txn = db.begin().unwrap();
    let id = txn.insert(people, &values![null, last, first, age]).unwrap().auto_increment.unwrap();
    txn.commit().unwrap();
    id
}

/// Every row of a table as values, in the order of an index ("PRIMARY" for the rows themselves).
pub fn all(db: &Database, table: &Table, index: &str) -> Vec<Vec<Value>> {
    let mut read = db.snapshot().unwrap();
    read.scan(table).index(index).iter().unwrap().map(|row| row.unwrap().to_values()).collect()
}

/// Every index of a table has exactly its rows, forward as backward.
pub fn check_indexes(db: &Database, table: &Table) {
    let sorted = |mut rows: Vec<Vec<Value>>| {
        rows.sort_by_key(|row| format!("{row:?}"));
        rows
    };
    let rows = sorted(all(db, table, "PRIMARY"));
    for index in &table.definition().indexes {
        assert_eq!(sorted(all(db, table, &index.name)), rows, "index {}", index.name);
        let mut backward: Vec<Vec<Value>> = {
            let mut read = db.snapshot().unwrap();
            read.scan(table).index(&index.name).rev().iter().unwrap().map(|row| row.unwrap().to_values()).collect()
        };
        backward.reverse();
        assert_eq!(backward, all(db, table, &index.name), "index {} backward", index.name);
    }
}

pub fn names(rows: impl Iterator<Item = highwater::Result<Row>>) -> Vec<String> {
    rows.map(|row| row.map(|row| format!("{} {}", row.str(1), row.str(2))).unwrap()).collect()
}
