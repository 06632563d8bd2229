//! Text columns with collations, and programs that do not have their functions.

use crate::support::{await_purge, check_indexes, memory_with, open, options, sound};
use crate::testing::{by_id, commit_all};
use highwater::{Collations, Database, Error, Options, Schema, Type, Value, values};
use highwater_storage::StorageSet;

fn logins() -> Schema {
    let schema = by_id().column("login", Type::Text(40)).column("n", Type::U64);
    schema.collation("login", "dashes").unique_index("by_login", &["login"])
}

/// Options of a program that knows the collation: dashes do not count, and a `!` makes its function panic.
fn knowing() -> Options {
    let weights = |text: &str, out: &mut Vec<u8>| {
        assert!(!text.contains('!'), "a text that the function cannot take");
        out.extend(text.bytes().filter(|byte| *byte != b'-'));
    };
    Options { collations: Collations::new().with("dashes", weights), ..options() }
}

#[test]
fn a_panic_in_a_collation_is_an_error_of_its_call_alone() {
    let db = memory_with(knowing());
    let table = db.create_table("t", logins()).unwrap();
    let mut txn = db.begin().unwrap();
    txn.insert(&table, &values![1u64, "a-b", 1u64]).unwrap();
    let is_of_collation = |error: Error| matches!(error, Error::Collation { collation, .. } if collation == "dashes");
    assert!(is_of_collation(txn.insert(&table, &values![2u64, "c!", 1u64]).unwrap_err()));
    assert!(is_of_collation(txn.update(&table, &values![1u64], &[(1, "c!".into())]).unwrap_err()));
    assert!(is_of_collation(
        txn.insert_many(&table, [values![3u64, "d", 1u64], values![4u64, "e!", 1u64]]).unwrap_err()
    ));
    assert!(is_of_collation(txn.get_by(&table, "by_login", &values!["!"]).err().unwrap()));
    assert!(matches!(txn.insert(&table, &values![5u64, "ab", 1u64]), Err(Error::DuplicateKey { .. })));
    txn.commit().unwrap();
    let mut read = db.snapshot().unwrap();
    assert_eq!(read.get_by(&table, "by_login", &values!["-a--b"]).unwrap().unwrap().str(1), "a-b");
    let keys: Vec<_> =
        read.scan(&table).index("by_login").keys().unwrap().map(|key| key.unwrap().to_values()).collect();
    assert_eq!(keys, [[Value::from("a-b".to_string()), Value::from(1u64)]]);
    drop(read);
    sound(&db);
}

/// A program without the function reads, checks and exports; it writes nothing of such a table, and leaves a
/// transaction active that it cannot roll back.
#[test]
fn a_program_without_the_collation_does_what_needs_no_weights() {
    let storage = StorageSet::memory();
    let db = Database::open_storage(storage.clone(), knowing()).unwrap();
    let table = db.create_table("t", logins()).unwrap();
    let other = db.create_table("other", by_id()).unwrap();
    let rows = || (0..20u64).map(|id| (id, format!("a-{id}")));
    commit_all(&db, rows(), |txn, (id, login)| txn.insert(&table, &values![id, login.as_str(), id]));
    db.transact(|txn| txn.delete(&table, &values![7u64]).map(drop)).unwrap();
    let mut unfinished = db.begin().unwrap();
    unfinished.update(&table, &values![3u64], &[(1, "changed".into())]).unwrap();
    db.transact(|txn| txn.insert(&other, &values![1u64]).map(drop)).unwrap();
    let storage = storage.cut(3);
    std::mem::forget(unfinished);

    let db = open(&storage);
    let (table, other) = (db.table("t").unwrap(), db.table("other").unwrap());
    let needs = |error: Error| assert!(error.to_string().contains("index by_login of table t"), "{error}");
    let mut txn = db.begin().unwrap();
    needs(txn.insert(&table, &values![50u64, "x", 1u64]).unwrap_err());
    needs(txn.update(&table, &values![5u64], &[(2, 1u64.into())]).unwrap_err());
    needs(txn.delete(&table, &values![5u64]).unwrap_err());
    txn.insert(&other, &values![2u64]).unwrap();
    txn.commit().unwrap();
    let mut read = db.snapshot().unwrap();
    assert!(read.get_by(&table, "by_login", &values!["a1"]).is_err());
    assert_eq!(read.scan(&table).iter().unwrap().map(Result::unwrap).count(), 19);
    assert_eq!(read.get(&table, &values![3u64]).unwrap().unwrap().str(1), "a-3");
    drop(read);
    let report = db.check().unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
    let said: Vec<String> = report.not_compared.iter().map(ToString::to_string).collect();
    assert_eq!(said.len(), 1);
    assert!(said[0].starts_with("table t: index by_login: not compared with the rows"), "{said:?}");
    assert_eq!(db.stats().rollbacks_skipped, 1);
    assert!(db.create_index("t", "again", &["login"], false).is_err());
    db.close().unwrap();

    // A program that knows it finds all as it was.
    let db = Database::open_storage(storage, knowing()).unwrap();
    let table = db.table("t").unwrap();
    await_purge(&db);
    db.transact(|txn| txn.update(&table, &values![3u64], &[(2, 9u64.into())]).map(drop)).unwrap();
    check_indexes(&db, &table);
    let report = db.check().unwrap();
    assert!(report.is_sound() && report.not_compared.is_empty(), "{report:?}");
    assert_eq!(report.counts.entries_delete_marked, 0);
}
