//! Schema changes: atomic, on existing rows, concurrent with transactions, across crashes.

use crate::support::{add, all, check_indexes, memory, open, people, sound};
use crate::testing::{by_id, commit_all};
use highwater::{Database, Error, Schema, TxnOptions, Type, values};
use highwater_storage::{Faults, StorageSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Stops the threads of a test when it ends, also when it fails.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn fill(db: &Database, rows: i32) -> highwater::Table {
    let table = people(db);
    commit_all(db, 0..rows, |txn, i| {
        let age = (i % 7 != 0).then_some(i * 7919 % 1000);
        txn.insert(&table, &values![null, format!("last{}", i % 50).as_str(), format!("first{i}").as_str(), age])
    });
    table
}

#[test]
fn an_index_is_built_on_the_rows_there_are() {
    let db = memory();
    let table = fill(&db, 3000);
    db.create_index("people", "by_first", &["first"], true).unwrap();
    db.create_index("people", "by_age_name", &["age", "last"], false).unwrap();
    check_indexes(&db, &table);
    // Maintained from now on.
    let mut txn = db.begin().unwrap();
    let twice = txn.insert(&table, &values![null, "x", "first7", null]);
    assert!(matches!(twice, Err(Error::DuplicateKey { index, .. }) if index == "by_first"));
    txn.update(&table, &values![5], &[(2, "changed".into())]).unwrap();
    txn.delete(&table, &values![6]).unwrap();
    txn.commit().unwrap();
    check_indexes(&db, &table);
    let db = db.reopen();
    let table = db.table("people").unwrap();
    assert_eq!(table.definition().indexes.len(), 4);
    check_indexes(&db, &table);
    db.drop_index("people", "by_first").unwrap();
    assert!(matches!(db.drop_index("people", "by_first"), Err(Error::NoSuchIndex { .. })));
    assert!(matches!(db.drop_index("people", "PRIMARY"), Err(Error::Schema(_))));
    let mut txn = db.begin().unwrap();
    txn.insert(&table, &values![null, "x", "first7", null]).unwrap();
    txn.commit().unwrap();
    check_indexes(&db, &table);
}

#[test]
fn an_index_that_cannot_be_leaves_no_trace() {
    let db = memory();
    let table = fill(&db, 200);
    let duplicate = db.create_index("people", "by_last", &["last"], true).unwrap_err();
    assert!(matches!(&duplicate, Error::DuplicateKey { index, .. } if index == "by_last"), "{duplicate}");
    for (name, columns) in [("by_name", &["first"][..]), ("x", &["nope"]), ("x", &[]), ("PRIMARY", &["first"])] {
        assert!(matches!(db.create_index("people", name, columns, false), Err(Error::Schema(_))), "{name}");
    }
    assert!(matches!(db.create_index("nope", "x", &["first"], false), Err(Error::NoSuchTable { .. })));
    assert_eq!(table.definition().indexes.len(), 2);
    let mut txn = db.begin().unwrap();
    txn.insert(&table, &values![null, "last1", "again", null]).unwrap();
    txn.commit().unwrap();
    check_indexes(&db, &table);
    // NULLs are not compared.
    let sparse = Schema::new().column("id", Type::U8).nullable("x", Type::U8).primary_key(&["id"]);
    let sparse = db.create_table("sparse", sparse).unwrap();
    commit_all(&db, 0..5, |txn, i| txn.insert(&sparse, &values![i, null]));
    db.create_index("sparse", "by_x", &["x"], true).unwrap();
}

#[test]
fn a_dropped_table_is_gone_and_its_name_free() {
    let db = memory();
    let old = fill(&db, 500);
    db.drop_table("people").unwrap();
    assert!(matches!(db.table("people"), Err(Error::NoSuchTable { .. })) && db.tables().is_empty());
    let mut txn = db.begin().unwrap();
    for error in [txn.get(&old, &values![1]).unwrap_err(), txn.insert(&old, &values![null, "", "", null]).unwrap_err()]
    {
        assert_eq!(error.to_string(), "table people was dropped");
    }
    drop(txn);
    assert!(matches!(db.drop_table("people"), Err(Error::NoSuchTable { .. })));
    let new = people(&db);
    assert_eq!(add(&db, &new, "a", "b", None), 1);
    assert_eq!(all(&db, &new, "by_name").len(), 1);
    let db = db.reopen();
    assert_eq!(all(&db, &db.table("people").unwrap(), "PRIMARY").len(), 1);
}

#[test]
fn space_of_dropped_tables_is_used_again() {
    let db = memory();
    fill(&db, 2000);
    db.drop_table("people").unwrap();
    let len = db.storage().data.len_bytes().unwrap();
    for _ in 0..20 {
        fill(&db, 2000);
        db.create_index("people", "by_first", &["first"], false).unwrap();
        db.drop_index("people", "by_first").unwrap();
        db.drop_table("people").unwrap();
        db.finish_drops().unwrap();
    }
    assert!(db.storage().data.len_bytes().unwrap() <= len * 2);
}

#[test]
fn schema_changes_wait_for_transactions_but_not_forever() {
    let db = memory();
    let table = fill(&db, 10);
    let mut reader = db.snapshot().unwrap();
    reader.get(&table, &values![1]).unwrap();
    assert!(matches!(db.drop_table("people"), Err(Error::LockWaitTimeout)));
    assert!(matches!(db.drop_index("people", "by_age"), Err(Error::LockWaitTimeout)));
    // Readers do not hinder a build.
    db.create_index("people", "by_first", &["first"], false).unwrap();
    // But this one is older than the index.
    assert!(matches!(reader.scan(&table).index("by_age").iter().map(|rows| rows.count()), Ok(10)));
    assert!(reader.scan(&table).index("by_first").iter().is_err());
    drop(reader);
    let mut writer = db.begin().unwrap();
    writer.delete(&table, &values![1]).unwrap();
    assert!(matches!(db.create_index("people", "again", &["first"], false), Err(Error::LockWaitTimeout)));
    let patient = db.with_lock_wait_timeout(Duration::from_secs(120));
    std::thread::scope(|scope| {
        let dropper = scope.spawn(|| patient.drop_index("people", "by_first"));
        std::thread::sleep(Duration::from_millis(50));
        writer.commit().unwrap();
        dropper.join().unwrap().unwrap();
    });
    check_indexes(&db, &table);
}

#[test]
fn an_index_comes_and_goes_under_load() {
    let db = memory();
    let table = fill(&db, 300);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stop = StopAtEnd(&stop);
        for seed in 0..2u64 {
            let (db, table, stop) = (&db, &table, &stop);
            scope.spawn(move || {
                let mut n = seed;
                while !stop.load(Ordering::Relaxed) {
                    n = n.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    let key = (n >> 33) % 300 + 1;
                    let patient = TxnOptions { lock_wait_timeout_ms: Some(20_000), ..TxnOptions::default() };
                    let mut txn = db.begin_with(patient).unwrap();
                    let first = format!("first{}", n >> 40);
                    let done = match n >> 60 {
                        0..4 => txn.delete(table, &values![key]).map(drop),
                        4..8 => match txn.insert(table, &values![key, "new", first.as_str(), null]) {
                            Err(Error::DuplicateKey { .. }) => Ok(()),
                            other => other.map(drop),
                        },
                        _ => txn.update(table, &values![key], &[(2, first.as_str().into())]).map(drop),
                    };
                    match done {
                        Ok(()) if n & 1 << 50 != 0 => txn.commit().unwrap(),
                        Ok(()) => txn.rollback().unwrap(),
                        Err(Error::Deadlock) => drop(txn),
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
        for _ in 0..15 {
            let tried = |change: &dyn Fn() -> highwater::Result<()>| loop {
                match change() {
                    Err(Error::LockWaitTimeout) => {}
                    other => return other.unwrap(),
                }
            };
            tried(&|| db.create_index("people", "by_first", &["first", "age"], false));
            std::thread::sleep(Duration::from_millis(10));
            check_indexes(&db, &table);
            tried(&|| db.drop_index("people", "by_first"));
        }
        tried_last(&db);
    });
    check_indexes(&db, &table);
}

fn tried_last(db: &Database) {
    while let Err(error) = db.create_index("people", "last_one", &["first"], false) {
        assert!(matches!(error, Error::LockWaitTimeout), "{error}");
    }
}

/// Creates and drops tables and indexes until the power is cut.
fn change_schemas(db: &Database) -> highwater::Result<()> {
    for i in 0.. {
        let name = format!("t{}", i % 3);
        let schema = Schema::new().column("id", Type::U32).column("x", Type::Text(20));
        let table = db.create_table(&name, schema.primary_key(&["id"]).index("i", &["x"]))?;
        let mut txn = db.begin()?;
        for id in 0..20 {
            txn.insert(&table, &values![id, "x"])?;
        }
        txn.commit()?;
        db.create_index("people", "extra", &["first"], true)?;
        db.drop_index("people", "extra")?;
        db.drop_table(&name)?;
    }
    Ok(())
}

#[test]
fn a_crash_leaves_whole_schemas() {
    for seed in 0..60u64 {
        let storage = StorageSet::memory();
        let faults = Faults::new();
        let db = open(&storage.map(|device| faults.wrap(device)));
        fill(&db, 300);
        faults.power_off_after(seed * seed % 211 + seed);
        change_schemas(&db).unwrap_err();
        drop(db);
        let db = open(&storage.cut(seed));
        assert!(db.table("people").is_ok() && db.tables().len() <= 2);
        for table in db.tables() {
            let rows = all(&db, &table, "PRIMARY").len();
            let expected: &[usize] = if table.name() == "people" { &[300] } else { &[0, 20] };
            assert!(expected.contains(&rows), "{} has {rows} rows", table.name());
            check_indexes(&db, &table);
        }
        sound(&db);
        for table in db.tables() {
            db.drop_table(table.name()).unwrap();
        }
        fill(&db, 50);
        sound(&db);
        db.close().unwrap();
    }
}

/// What changes a table takes its handle or its name; a handle that is no longer that of the table changes nothing.
#[test]
fn tables_are_changed_by_handle_or_by_name() {
    let db = memory();
    let schema = || by_id().column("x", Type::U64);
    let first = db.create_table("t", schema()).unwrap();
    db.create_index(&first, "by_x", &["x"], false).unwrap();
    db.rebuild_index(&first, "by_x").unwrap();
    assert_eq!(db.analyze(&first).unwrap().indexes.len(), 1);
    db.drop_index(&first, "by_x").unwrap();
    let renamed = db.rename_table(&first, "u").unwrap();
    assert!(matches!(db.drop_table(&first), Err(Error::TableChanged { .. })));
    let renamed = db.truncate_table(&renamed).unwrap();
    db.drop_table(&"u".to_string()).unwrap();
    let again = db.create_table("u", schema()).unwrap();
    // It has the name, and is another table.
    assert!(matches!(db.create_index(&renamed, "by_x", &["x"], false), Err(Error::TableDropped { .. })));
    assert!(matches!(memory().truncate_table(&again), Err(Error::Usage(_))));
    db.drop_table(&again).unwrap();
    assert!(db.tables().is_empty());
}
