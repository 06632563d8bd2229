//! Opening, closing, and calls that are mistakes.

use crate::support::{add, all, await_purge, check_indexes, memory, open, options, people};
use crate::testing::commit_all;
use highwater::config::PageStoreKind;
use highwater::inspect::RawFile;
use highwater::{Database, Error, Options, Schema, Type, values};
use highwater_storage::StorageSet;

#[test]
fn mistakes_are_errors_that_say_so() {
    let (db, other) = (memory(), memory());
    let table = people(&db);
    let schema = |error: Error, expected: &str| assert_eq!(error.to_string(), expected);
    schema(db.table("nope").unwrap_err(), "there is no table nope");
    schema(table.column("nope").unwrap_err(), "table people has no column nope");
    let again = Schema::new().column("id", Type::U8).primary_key(&["id"]);
    schema(db.create_table("people", again).unwrap_err(), "there is a table people already");
    let mut txn = db.begin().unwrap();
    schema(txn.scan(&table).index("nope").iter().err().unwrap(), "table people has no index nope");
    assert!(matches!(txn.scan(&table).from(&values![1, 2]).iter().err(), Some(Error::BadValue { .. })));
    assert!(matches!(txn.scan(&table).from(&values![null]).iter().err(), Some(Error::BadValue { .. })));
    assert!(matches!(other.begin().unwrap().get(&table, &values![1]), Err(Error::Usage(_))));
    let inside = db.clone();
    let nested = txn.insert(&table, &values![1, "a", "b", null]).and_then(|_| {
        txn.modify(&table, &values![1], |_, set| {
            assert!(inside.begin().is_err());
            set.put(3, 1);
        })
    });
    assert!(nested.unwrap());
}

/// A crash leaves redo and an open transaction; a closing leaves nothing to say.
#[test]
fn an_opening_says_what_it_recovered() {
    let db = memory();
    assert_eq!(db.recovery_report(), None, "a new database");
    let table = people(&db);
    let mut never_committed = db.begin().unwrap();
    never_committed.insert(&table, &values![null, "a", "b", null]).unwrap();
    // Its sync makes the redo of the other one durable.
    add(&db, &table, "c", "d", None);
    let killed = db.storage.cut(0);
    let again = open(&killed);
    let report = again.recovery_report().expect("the database was not closed");
    assert!(report.redo_bytes > 0 && report.redo_operations > report.redo_pages && report.redo_pages > 0, "{report:?}");
    assert_eq!((report.rolled_back, report.repaired_pages, report.lost_pages, report.prepared), (1, 0, 0, 0));
    assert!(report.total_time() >= report.redo_time && !report.redo_time.is_zero(), "{report:?}");
    assert!(report.to_string().ends_with(", 1 transaction rolled back"), "{report}");
    again.close().unwrap();
    assert_eq!(open(&killed).recovery_report(), None, "it was closed");
}

/// Pages that are freed one by one, and a table that is dropped after that, leave no owner in the extent maps that it
/// is not known.
#[test]
fn every_owner_of_pages_has_a_name() {
    let storage = StorageSet::memory();
    let db = open(&storage);
    let table = people(&db);
    commit_all(&db, 0..3000, |txn, n| {
        txn.insert(&table, &values![null, "x".repeat(50).as_str(), format!("{n}").as_str(), n])
    });
    commit_all(&db, 1..=3000_u64, |txn, id| txn.delete(&table, &values![id]));
    await_purge(&db);
    drop(table);
    db.drop_table("people").unwrap();
    db.finish_drops().unwrap();
    db.close().unwrap();
    let file = RawFile::open(&*storage.data).unwrap();
    let extents = file.extent_use();
    let without_name = extents.segments.keys().filter(|number| file.segment_name(**number).is_none());
    assert_eq!(without_name.count(), 0, "{:?}", extents.segments);
}

#[test]
fn every_call_finds_a_closed_database_closed() {
    let db = memory();
    let table = people(&db);
    add(&db, &table, "a", "b", None);
    let begin = || db.begin().unwrap();
    let (mut wrote, mut read, mut idle, untouched) = (begin(), begin(), begin(), begin());
    let mut snapshot = db.snapshot().unwrap();
    let before = wrote.savepoint();
    wrote.update(&table, &values![1], &[(1, "c".into())]).unwrap();
    for txn in [&mut read, &mut idle] {
        txn.get(&table, &values![1]).unwrap();
    }
    let mut rows = snapshot.scan(&table).iter().unwrap();
    db.clone().close().unwrap();

    fn closed<T>(result: highwater::Result<T>) {
        let error = result.err().unwrap();
        assert!(matches!(error, Error::Closed), "{error}");
        assert_eq!(error.to_string(), "the database is closed; open it again");
    }
    closed(rows.next().unwrap());
    drop(rows);
    closed(snapshot.get(&table, &values![1]));
    closed(read.get(&table, &values![1]));
    closed(read.get_for_update(&table, &values![1]));
    closed(read.scan(&table).iter());
    closed(read.insert(&table, &values![null, "x", "", null]));
    closed(read.update(&table, &values![1], &[(1, "d".into())]));
    closed(read.delete(&table, &values![1]));
    closed(wrote.rollback_to(before));
    closed(wrote.commit());
    closed(idle.commit());
    closed(untouched.rollback());
    closed(db.begin());
    closed(db.snapshot());
    closed(db.table("people"));
    closed(db.create_table("t", Schema::new().column("id", Type::U8).primary_key(&["id"])));
    closed(db.drop_table("people"));
    closed(db.create_index("people", "i", &["first"], false));
    closed(db.drop_index("people", "by_name"));
    closed(db.check());
    closed(db.flush_log());
    db.close().unwrap();
}

#[test]
fn a_closed_database_stays_closed() {
    let storage = StorageSet::memory();
    let db = open(&storage);
    let table = people(&db);
    add(&db, &table, "a", "b", None);
    let mut open_txn = db.begin().unwrap();
    open_txn.insert(&table, &values![null, "lost", "", null]).unwrap();
    db.clone().close().unwrap();
    assert!(open_txn.insert(&table, &values![null, "lost", "", null]).is_err());
    assert!(db.create_table("t", Schema::new().column("id", Type::U8).primary_key(&["id"])).is_err());
    assert!(db.drop_table("people").is_err());
    drop((open_txn, table, db));
    let db = open(&storage);
    let table = db.table("people").unwrap();
    assert_eq!(all(&db, &table, "by_name").len(), 1);
}

/// The store, and the size of its segments, are those of the creation: an opening that asks for others is refused.
#[test]
fn another_store_than_that_of_the_creation_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let out_of_place = Options { page_store: PageStoreKind::OutOfPlace, segment_size: 256 << 10, ..options() };
    let refused = |folder: &str, options: &Options, parts: [&str; 2]| {
        let error = Database::open(dir.path().join(folder), options.clone()).err().unwrap().to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    };
    Database::open(dir.path().join("in"), options()).unwrap().close().unwrap();
    refused("in", &out_of_place, ["option page-store: out-of-place", "created with in-place"]);
    Database::open(dir.path().join("out"), out_of_place.clone()).unwrap().close().unwrap();
    let larger = Options { segment_size: 1 << 20, ..out_of_place.clone() };
    refused("out", &larger, ["option segment-size: 1048576 bytes", "created with 262144"]);
    // Without the option the store is that of the creation.
    for options in [out_of_place, options()] {
        Database::open(dir.path().join("out"), options).unwrap().close().unwrap();
    }
}

#[test]
fn a_folder_is_a_database() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("db");
    let missing = Options { create_if_missing: false, ..options() };
    assert!(Database::open(&folder, missing).is_err() && !folder.exists());
    {
        let db = Database::open(&folder, options()).unwrap();
        let table = people(&db);
        add(&db, &table, "a", "b", Some(1));
        let in_use = Database::open(&folder, options()).err().unwrap();
        assert!(in_use.to_string().contains("in use"), "{in_use}");
    }
    let db = Database::open(&folder, options()).unwrap();
    let names: Vec<String> = db.tables().iter().map(|table| table.name().to_string()).collect();
    assert_eq!(names, ["people"]);
    check_indexes(&db, &db.table("people").unwrap());
    db.flush_log().unwrap();
    db.close().unwrap();
}
