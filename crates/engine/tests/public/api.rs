//! What the API promises, call by call.

use crate::support::{add, all, check_indexes, memory, names, open, options, people};
use highwater::{
    Database, DateTime, Decimal, Error, Isolation, Options, Schema, Table, TxnOptions, Type, Value, ValueRef, values,
};
use highwater_storage::StorageSet;

#[test]
fn rows_are_inserted_read_changed_and_deleted() {
    let db = memory();
    let people = people(&db);
    let (last, age) = (people.column("last").unwrap(), people.column("age").unwrap());
    let mut txn = db.begin().unwrap();
    let ada = txn.insert(&people, &values![null, "Lovelace", "Ada", 36]).unwrap().auto_increment.unwrap();
    assert_eq!((ada, txn.insert(&people, &values![7, "Hopper", "Grace", null]).unwrap().auto_increment), (1, None));
    txn.commit().unwrap();

    let mut txn = db.begin().unwrap();
    let row = txn.get(&people, &values![ada]).unwrap().unwrap();
    assert_eq!((row.u64(0), row.str(1), row.i64(3)), (1, "Lovelace", 36));
    assert!(txn.get(&people, &values![99]).unwrap().is_none());
    assert!(txn.update(&people, &values![ada], &[(last, "King".into()), (age, ValueRef::Null)]).unwrap());
    assert!(!txn.update(&people, &values![99], &[(last, "Nobody".into())]).unwrap());
    assert!(txn.modify(&people, &values![7], |row, set| set.put(age, row.i64(age) + 85)).unwrap());
    assert_eq!(txn.get_with(&people, &values![7], |row| row.i64(age)).unwrap(), Some(85));
    assert!(txn.get_for_share(&people, &values![7]).unwrap().is_some());
    assert!(txn.delete(&people, &values![7]).unwrap());
    assert!(!txn.delete(&people, &values![7]).unwrap());
    assert!(txn.get_for_update(&people, &values![7]).unwrap().is_none());
    txn.commit().unwrap();
    assert_eq!(
        all(&db, &people, "by_name"),
        [[1u64.into(), "King".to_string().into(), "Ada".to_string().into(), Value::Null]]
    );
    check_indexes(&db, &people);
    // The explicit 7 moved the counter.
    assert_eq!(add(&db, &people, "x", "y", None), 8);
}

#[test]
fn scans_keep_their_bounds() {
    let db = memory();
    let people = people(&db);
    let ages = [Some(30), None, Some(10), Some(20), Some(20), Some(-5)];
    for (i, age) in ages.into_iter().enumerate() {
        add(&db, &people, ["Ander", "Anderson", "Bo"][i % 3], &format!("f{i}"), age);
    }
    let mut read = db.snapshot().unwrap();
    let by_age = |from: Option<(i32, bool)>, to: Option<(i32, bool)>, rev: bool| -> Vec<Option<i64>> {
        let (low, high) = (values![from.map_or(0, |f| f.0)], values![to.map_or(0, |t| t.0)]);
        let mut read = db.snapshot().unwrap();
        let mut scan = read.scan(&people).index("by_age");
        scan = match from {
            Some((_, true)) => scan.from(&low),
            Some((_, false)) => scan.from_exclusive(&low),
            None => scan,
        };
        scan = match to {
            Some((_, true)) => scan.to(&high),
            Some((_, false)) => scan.to_exclusive(&high),
            None => scan,
        };
        if rev {
            scan = scan.rev();
        }
        scan.iter().unwrap().map(|row| row.map(|r| (!r.is_null(3)).then(|| r.i64(3))).unwrap()).collect()
    };
    assert_eq!(by_age(None, None, false), [None, Some(-5), Some(10), Some(20), Some(20), Some(30)]);
    assert_eq!(by_age(Some((10, true)), Some((20, true)), false), [Some(10), Some(20), Some(20)]);
    assert_eq!(by_age(Some((10, false)), Some((30, false)), true), [Some(20), Some(20)]);
    assert_eq!(by_age(Some((20, false)), None, true), [Some(30)]);
    assert!(by_age(Some((30, true)), Some((10, true)), false).is_empty());
    assert!(by_age(Some((11, true)), Some((19, true)), true).is_empty());

    let name = |scan: highwater::Scan<'_, '_>| names(scan.iter().unwrap());
    assert_eq!(name(read.scan(&people).index("by_name").prefix(&values!["Ander"])), ["Ander f0", "Ander f3"]);
    let starts = name(read.scan(&people).index("by_name").starts_with(&values!["Ander"]).rev());
    assert_eq!(starts, ["Anderson f4", "Anderson f1", "Ander f3", "Ander f0"]);
    assert_eq!(name(read.scan(&people).index("by_name").starts_with(&values!["Bo", "f"]).limit(1)), ["Bo f2"]);
    assert_eq!(name(read.scan(&people).rev().limit(2)), ["Bo f5", "Anderson f4"]);
    assert!(name(read.scan(&people).limit(0)).is_empty());
    let from = values![3];
    assert_eq!(name(read.scan(&people).from(&from).to_exclusive(&values![5])), ["Bo f2", "Ander f3"]);
}

#[test]
fn a_scan_reads_in_place_too() {
    let db = memory();
    let people = people(&db);
    for i in 0..500 {
        add(&db, &people, &format!("{i:04}"), "", Some(i));
    }
    let mut txn = db.begin().unwrap();
    let mut scan = txn.scan(&people).index("by_name").iter().unwrap();
    let mut sum = 0;
    while let Some(row) = scan.next_ref().unwrap() {
        sum += row.i64(3);
    }
    assert_eq!(sum, 499 * 500 / 2);
    assert!(scan.next_ref().unwrap().is_none() && scan.next().is_none());
    // Locking scans of what the transaction itself changes.
    assert_eq!(txn.scan(&people).from(&values![250]).for_update().iter().unwrap().count(), 251);
    assert_eq!(txn.scan(&people).for_share().limit(3).iter().unwrap().count(), 3);
}

#[test]
fn a_failed_call_changes_nothing() {
    let db = memory();
    let schema = Schema::new()
        .column("id", Type::U32)
        .column("mail", Type::Text(40))
        .nullable("nick", Type::Text(10))
        .primary_key(&["id"])
        .index("by_nick", &["nick"])
        .unique_index("by_mail", &["mail"])
        .unique_index("by_nick_once", &["nick"]);
    let users = db.create_table("user", schema).unwrap();
    let mut txn = db.begin().unwrap();
    txn.insert(&users, &values![1, "a@x", "a"]).unwrap();
    txn.insert(&users, &values![2, "b@x", null]).unwrap();
    txn.insert(&users, &values![3, "c@x", null]).unwrap();
    let duplicate = |error: Error, expected: &str| match error {
        Error::DuplicateKey { index, table } => assert_eq!((index.as_str(), table.as_str()), (expected, "user")),
        other => panic!("{other}"),
    };
    duplicate(txn.insert(&users, &values![1, "d@x", null]).unwrap_err(), "PRIMARY");
    duplicate(txn.insert(&users, &values![4, "b@x", null]).unwrap_err(), "by_mail");
    duplicate(txn.update(&users, &values![2], &[(1, "a@x".into())]).unwrap_err(), "by_mail");
    duplicate(txn.update(&users, &values![2], &[(1, "z@x".into()), (2, "a".into())]).unwrap_err(), "by_nick_once");
    duplicate(txn.update(&users, &values![2], &[(0, 3.into())]).unwrap_err(), "PRIMARY");
    let bad = txn.update(&users, &values![2], &[(1, "z@x".into()), (2, "longer than ten".into())]).unwrap_err();
    assert_eq!(bad.to_string(), "column nick: 15 bytes are longer than the 10 allowed");
    assert!(txn.modify(&users, &values![2], |_, set| set.put(9, 1)).is_err());
    assert!(txn.insert(&users, &values![4]).is_err());
    assert!(txn.get(&users, &values!["x"]).is_err());
    txn.commit().unwrap();
    let text = |s: &str| Value::Text(s.to_string());
    let id = |n: u64| Value::UInt(n);
    assert_eq!(
        all(&db, &users, "PRIMARY"),
        [[id(1), text("a@x"), text("a")], [id(2), text("b@x"), Value::Null], [id(3), text("c@x"), Value::Null]]
    );
    check_indexes(&db, &users);
}

#[test]
fn changing_the_key_moves_the_row() {
    let db = memory();
    let people = people(&db);
    for i in 1..=5 {
        add(&db, &people, &format!("l{i}"), "f", Some(i));
    }
    let mut txn = db.begin().unwrap();
    assert!(txn.update(&people, &values![2], &[(0, 50.into()), (1, "moved".into())]).unwrap());
    assert!(txn.modify(&people, &values![3], |row, set| set.put(0, row.u64(0) + 100)).unwrap());
    // Named, but not changed.
    assert!(txn.update(&people, &values![4], &[(0, 4.into()), (3, 44.into())]).unwrap());
    assert!(!txn.update(&people, &values![2], &[(0, 60.into())]).unwrap());
    txn.commit().unwrap();
    let ids: Vec<Value> = all(&db, &people, "PRIMARY").into_iter().map(|mut row| row.swap_remove(0)).collect();
    assert_eq!(ids, [1u64, 4, 5, 50, 103].map(Value::from));
    check_indexes(&db, &people);
}

#[test]
fn savepoints_and_rollback_leave_no_trace() {
    let db = memory();
    let people = people(&db);
    add(&db, &people, "a", "1", Some(1));
    let before = all(&db, &people, "PRIMARY");
    let mut txn = db.begin().unwrap();
    txn.update(&people, &values![1], &[(1, "b".into())]).unwrap();
    let savepoint = txn.savepoint();
    txn.insert(&people, &values![null, "c", "2", null]).unwrap();
    txn.delete(&people, &values![1]).unwrap();
    txn.rollback_to(savepoint).unwrap();
    assert_eq!(txn.get(&people, &values![1]).unwrap().unwrap().str(1), "b");
    assert_eq!(txn.scan(&people).iter().unwrap().count(), 1);
    txn.rollback().unwrap();
    assert_eq!(all(&db, &people, "PRIMARY"), before);
    {
        let mut dropped = db.begin().unwrap();
        dropped.delete(&people, &values![1]).unwrap();
    }
    assert_eq!(all(&db, &people, "by_name"), before);
    check_indexes(&db, &people);
}

#[test]
fn a_snapshot_stays_and_read_committed_follows() {
    let db = memory();
    let people = people(&db);
    let id = add(&db, &people, "a", "1", Some(1));
    let mut snapshot = db.snapshot().unwrap();
    let options = TxnOptions { isolation: Isolation::ReadCommitted, ..TxnOptions::default() };
    let mut follower = db.begin_with(options).unwrap();
    assert_eq!(snapshot.get(&people, &values![id]).unwrap().unwrap().i64(3), 1);
    assert_eq!(follower.get(&people, &values![id]).unwrap().unwrap().i64(3), 1);
    let mut txn = db.begin().unwrap();
    txn.update(&people, &values![id], &[(3, 2.into())]).unwrap();
    txn.insert(&people, &values![null, "b", "2", 3]).unwrap();
    assert_eq!(follower.get(&people, &values![id]).unwrap().unwrap().i64(3), 1);
    txn.commit().unwrap();
    assert_eq!(follower.get(&people, &values![id]).unwrap().unwrap().i64(3), 2);
    assert_eq!(follower.scan(&people).index("by_age").iter().unwrap().count(), 2);
    assert_eq!(snapshot.get(&people, &values![id]).unwrap().unwrap().i64(3), 1);
    assert_eq!(snapshot.scan(&people).index("by_age").iter().unwrap().count(), 1);
}

#[test]
fn write_conflicts_and_lock_waits_are_errors() {
    let db = memory();
    let people = people(&db);
    let id = add(&db, &people, "a", "1", Some(1));
    let options = TxnOptions { first_committer_wins: true, lock_wait_timeout_ms: Some(50), ..TxnOptions::default() };
    let mut late = db.begin_with(options).unwrap();
    assert!(late.get(&people, &values![id]).unwrap().is_some());
    let mut first = db.begin().unwrap();
    first.update(&people, &values![id], &[(3, 2.into())]).unwrap();
    assert!(matches!(late.update(&people, &values![id], &[(3, 3.into())]), Err(Error::LockWaitTimeout)));
    first.commit().unwrap();
    assert!(matches!(late.update(&people, &values![id], &[(3, 3.into())]), Err(Error::WriteConflict)));
    late.rollback().unwrap();
    assert_eq!(db.stats().row_lock_timeouts, 1);
}

#[test]
fn every_type_comes_back() {
    let db = memory();
    let schema = Schema::new()
        .column("id", Type::I8)
        .nullable("u", Type::U64)
        .nullable("i", Type::I64)
        .nullable("f", Type::F64)
        .nullable("g", Type::F32)
        .nullable("d", Type::Decimal(38, 10))
        .nullable("t", Type::Text(100))
        .nullable("b", Type::Binary(100))
        .nullable("at", Type::DateTime)
        .primary_key(&["id"])
        .index("every", &["f", "d", "b", "at"]);
    let table = db.create_table("t", schema).unwrap();
    let time = DateTime::from_date(2026, 1, 31).unwrap();
    let rows: [[ValueRef<'_>; 9]; 3] = [
        values![-128, u64::MAX, i64::MIN, f64::NEG_INFINITY, 0.5f32, Decimal::new(-1, 10), "\u{0}é", b"\0\xff", time],
        values![0, null, null, null, null, null, null, null, null],
        values![127, 0, 0, 1.5, -1.5, 7, "", b"", DateTime::from_unix_us(i64::MIN)],
    ];
    let mut txn = db.begin().unwrap();
    for row in &rows {
        txn.insert(&table, row).unwrap();
    }
    txn.commit().unwrap();
    let found = all(&db, &table, "PRIMARY");
    for (row, found) in rows.iter().zip(&found) {
        for (i, (value, found)) in row.iter().zip(found).enumerate() {
            match (value, found) {
                (ValueRef::Int(a), Value::UInt(b)) => assert_eq!(u64::try_from(*a).unwrap(), *b, "column {i}"),
                (ValueRef::Int(a), Value::Decimal(b)) => assert_eq!(Decimal::from(*a), *b, "column {i}"),
                (value, found) => assert_eq!(*value, found.as_ref(), "column {i}"),
            }
        }
    }
    check_indexes(&db, &table);
}

#[test]
fn rows_may_be_larger_than_pages_and_the_pool() {
    let db = memory();
    let schema = Schema::new()
        .column("id", Type::U32)
        .column("blob", Type::Binary(16 << 20))
        .column("n", Type::U32)
        .primary_key(&["id"]);
    let table = db.create_table("t", schema).unwrap();
    let blob: Vec<u8> = (0..8u32 << 20).map(|i| (i ^ (i >> 8)) as u8).collect();
    for (id, len) in [(1, 8 << 20), (2, 5000), (3, 100_000), (4, 0)] {
        let mut txn = db.begin().unwrap();
        txn.insert(&table, &values![id, &blob[..len], 0]).unwrap();
        txn.commit().unwrap();
    }
    let mut txn = db.begin().unwrap();
    assert!(txn.modify(&table, &values![1], |_, set| set.put(2, 7)).unwrap());
    assert!(txn.update(&table, &values![4], &[(1, (&blob[..70_000]).into())]).unwrap());
    assert!(txn.delete(&table, &values![3]).unwrap());
    txn.commit().unwrap();
    let mut read = db.snapshot().unwrap();
    let row = read.get(&table, &values![1]).unwrap().unwrap();
    assert!(row.bytes(1) == blob && row.u64(2) == 7);
    let lengths: Vec<usize> = read.scan(&table).iter().unwrap().map(|row| row.unwrap().bytes(1).len()).collect();
    assert_eq!(lengths, [8 << 20, 5000, 70_000]);
}

#[test]
fn keys_and_rows_have_limits() {
    let db = memory();
    let schema = Schema::new()
        .column("k", Type::Text(4000))
        .column("v", Type::Binary(16 << 20))
        .column("s", Type::Text(4000))
        .primary_key(&["k"])
        .index("by_s", &["s"]);
    let table = db.create_table("t", schema).unwrap();
    let long = "x".repeat(4000);
    let mut txn = db.begin().unwrap();
    let too_long = |error: Error| {
        assert!(matches!(error, Error::KeyTooLong { bytes, limit_bytes } if bytes > limit_bytes), "{error}")
    };
    too_long(txn.insert(&table, &values![long.as_str(), b"", ""]).unwrap_err());
    too_long(txn.insert(&table, &values!["k", b"", long.as_str()]).unwrap_err());
    txn.insert(&table, &values!["k", b"", "s"]).unwrap();
    too_long(txn.update(&table, &values!["k"], &[(2, long.as_str().into())]).unwrap_err());
    too_long(txn.update(&table, &values!["k"], &[(0, long.as_str().into())]).unwrap_err());
    assert!(txn.get(&table, &values![long.as_str()]).unwrap().is_none());
    let huge = vec![1; 16 << 20];
    assert!(matches!(txn.insert(&table, &values!["h", &huge, "s"]), Err(Error::RowTooLarge { .. })));
    txn.commit().unwrap();
    assert_eq!(all(&db, &table, "by_s").len(), 1);
}

#[test]
fn auto_increment_never_repeats() {
    let storage = StorageSet::memory();
    let db = open(&storage);
    let table = people(&db);
    assert_eq!((1..=3).map(|_| add(&db, &table, "a", "b", None)).collect::<Vec<_>>(), [1, 2, 3]);
    // After a crash: a gap, nothing twice.
    let crashed = open(&storage.cut(1));
    let after = add(&crashed, &crashed.table("people").unwrap(), "a", "b", None);
    assert!(after > 3, "{after}");
    drop(crashed);
    // After a clean close: no gap.
    db.close().unwrap();
    let db = open(&storage);
    let table = db.table("people").unwrap();
    assert_eq!(add(&db, &table, "a", "b", None), 4);
    let mut txn = db.begin().unwrap();
    assert_eq!(txn.insert(&table, &values![1_000_000, "a", "b", null]).unwrap().auto_increment, None);
    txn.commit().unwrap();
    assert_eq!(add(&db, &table, "a", "b", None), 1_000_001);

    let small = Schema::new().column("id", Type::I8).auto_increment("id").primary_key(&["id"]);
    let small = db.create_table("small", small).unwrap();
    let mut txn = db.begin().unwrap();
    txn.insert(&small, &values![-5]).unwrap();
    txn.insert(&small, &values![126]).unwrap();
    assert_eq!(txn.insert(&small, &values![null]).unwrap().auto_increment, Some(127));
    let full = txn.insert(&small, &values![null]).unwrap_err().to_string();
    assert_eq!(full, "column id: auto-increment has reached 127, the last number of the column's type");
}

#[test]
fn mistakes_are_errors_that_say_so() {
    let (db, other) = (memory(), memory());
    let table = people(&db);
    let schema = |error: Error, expected: &str| match error {
        Error::Schema(text) => assert_eq!(text, expected),
        error => panic!("{error}"),
    };
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

#[test]
fn a_savepoint_that_a_rollback_went_past_is_gone() {
    let db = memory();
    let people = people(&db);
    let mut txn = db.begin().unwrap();
    let add = |txn: &mut highwater::WriteTxn, name: &str| txn.insert(&people, &values![null, name, "", null]).unwrap();
    let first = txn.savepoint();
    add(&mut txn, "a");
    let second = txn.savepoint();
    let twin = txn.savepoint();
    add(&mut txn, "b");
    txn.rollback_to(second).unwrap();
    txn.rollback_to(second).unwrap();
    let gone = |error: highwater::Error| matches!(&error, Error::Usage(text) if text.contains("the savepoint is gone"));
    assert!(gone(txn.rollback_to(twin).unwrap_err()));
    txn.rollback_to(first).unwrap();
    add(&mut txn, "kept");
    let third = txn.savepoint();
    add(&mut txn, "c");
    for removed in [second, twin] {
        assert!(gone(txn.rollback_to(removed).unwrap_err()));
    }
    // What was refused has undone nothing.
    assert_eq!(txn.scan(&people).iter().unwrap().count(), 2);
    txn.rollback_to(third).unwrap();
    for _ in 0..3 {
        let inner = txn.savepoint();
        add(&mut txn, "inner");
        txn.rollback_to(inner).unwrap();
        assert!(gone(txn.rollback_to(twin).unwrap_err()));
    }
    let mut other = db.begin().unwrap();
    assert!(
        matches!(other.rollback_to(third), Err(Error::Usage(text)) if text.contains("not one of this transaction"))
    );
    txn.commit().unwrap();
    assert_eq!(all(&db, &people, "by_name").len(), 1);
    check_indexes(&db, &people);
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

#[test]
fn threads_count_right() {
    let db = memory();
    let table = people(&db);
    let ids: Vec<u64> = (0..4).map(|i| add(&db, &table, &format!("n{i}"), "", Some(0))).collect();
    let work = |seed: usize, db: &Database, table: &Table, ids: &[u64]| {
        for i in 0..200 {
            let mut txn = db.begin().unwrap();
            // One row each time: no deadlocks here.
            txn.modify(table, &values![ids[(seed + i) % ids.len()]], |row, set| set.put(3, row.i64(3) + 1)).unwrap();
            txn.insert(table, &values![null, "other", "", null]).unwrap();
            txn.commit().unwrap();
        }
    };
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let (db, table, ids) = (&db, &table, &ids);
            scope.spawn(move || work(seed, db, table, ids));
        }
    });
    let mut read = db.snapshot().unwrap();
    let sum: i64 = ids.iter().map(|id| read.get(&table, &values![*id]).unwrap().unwrap().i64(3)).sum();
    assert_eq!(sum, 800);
    assert_eq!(read.scan(&table).iter().unwrap().count(), 804);
    check_indexes(&db, &table);
}
