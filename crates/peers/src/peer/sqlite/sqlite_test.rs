//! Connections of SQLite.

use super::*;
use crate::peers_test::{load, settings, spec};
use highwater::values;

fn insert(store: &Sqlite, part: u32) {
    let table = store.table(&spec().name).unwrap().unwrap();
    let mut session = store.session().unwrap();
    let mut txn = session.begin().unwrap();
    txn.insert(&table, &values![part, "x", 1, null, 0]).unwrap();
    txn.finish().unwrap();
}

#[test]
fn all_clients_write_through_one_connection() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(folder.path(), &settings(false)).unwrap();
    load(&store);
    let changes = || -> i64 {
        let mut session = store.session().unwrap();
        let txn = session.begin().unwrap();
        txn.connection.query_row("SELECT total_changes()", [], |row| row.get(0)).unwrap()
    };
    let before = changes();
    (10..13).for_each(|part| insert(&store, part));
    assert_eq!(changes() - before, 3);
    store.close().unwrap();
}

#[test]
fn the_log_is_moved_when_the_database_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(folder.path(), &settings(true)).unwrap();
    load(&store);
    insert(&store, 10);
    let log = folder.path().join("sqlite-wal");
    assert!(log.metadata().unwrap().len() > 0, "no client is left, and the log is there");
    store.close().unwrap();
    assert!(!log.exists());
}
