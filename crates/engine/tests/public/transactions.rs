//! Transactions: savepoints, snapshots, conflicts, threads.

use crate::support::{add, all, check_indexes, memory, patient, people};
use crate::testing::by_id;
use highwater::{Database, Error, Isolation, Schema, Table, TxnOptions, Type, Value, ValueRef, WriteTxn, values};

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

/// A transaction with `first_committer_wins` that has read one of two rows; the id of the other one.
fn late_reader(db: &Database, people: &Table) -> (WriteTxn, u64) {
    let [id, other] = ["a", "b"].map(|name| add(db, people, name, name, Some(1)));
    let options = TxnOptions { first_committer_wins: true, ..TxnOptions::default() };
    let mut late = db.begin_with(options).unwrap();
    assert!(late.get(people, &values![other]).unwrap().is_some());
    (late, id)
}

/// An index that is younger than the snapshot has no entries of rows that were deleted since, so the snapshot cannot
/// use it.
#[test]
fn a_locking_scan_does_not_use_an_index_that_is_younger_than_its_snapshot() {
    let db = memory();
    let people = people(&db);
    let (mut late, id) = late_reader(&db, &people);
    db.transact(|txn| txn.delete(&people, &values![id]).map(drop)).unwrap();
    db.create_index("people", "young", &["age"], false).unwrap();
    let people = db.table("people").unwrap();
    let met = late.scan(&people).index("young").for_share().iter().and_then(|rows| rows.collect::<Result<Vec<_>, _>>());
    assert!(matches!(&met, Err(Error::Usage(text)) if text.contains("young")), "{met:?}");
    let met = late.scan(&people).for_share().iter().and_then(|rows| rows.collect::<Result<Vec<_>, _>>());
    assert!(matches!(met, Err(Error::WriteConflict)), "{met:?}");
}

/// Nothing is undone while a page is latched: it is once the call with the closure is over, whatever ends it.
#[test]
fn a_transaction_that_ends_inside_a_closure_is_rolled_back_after_it() {
    let db = memory();
    let table = people(&db);
    add(&db, &table, "one", "first", None);
    let other = memory();
    let elsewhere = people(&other);
    let begun = |db: &Database, table: &Table| {
        let mut txn = db.begin().unwrap();
        txn.insert(table, &values![9, "nine", "last", 9]).unwrap();
        Some(txn)
    };
    let usage = |ended: highwater::Result<()>| assert!(matches!(ended, Err(Error::Usage(_))), "{ended:?}");
    let end: [&dyn Fn(WriteTxn); 4] =
        [&drop, &|txn| usage(txn.commit()), &|txn| usage(txn.commit_lsn().map(drop)), &|txn| usage(txn.rollback())];
    for end in end {
        for (db_of_ended, table_of_ended) in [(&db, &table), (&other, &elsewhere)] {
            let mut ended = begun(db_of_ended, table_of_ended);
            db.transact(|txn| {
                txn.modify(&table, &values![1], |_, set| {
                    ended.take().into_iter().for_each(end);
                    set.put(1, ValueRef::from("changed"));
                })
            })
            .unwrap();
            // Its row is neither there nor locked.
            let mut txn = begun(db_of_ended, table_of_ended).unwrap();
            txn.delete(table_of_ended, &values![9]).unwrap();
            txn.commit().unwrap();
        }
    }
    // A change of the key runs its closure again: it has no more rights then.
    let mut runs = 0;
    let moved = db.transact(|txn| {
        txn.modify(&table, &values![1], |row, set| {
            runs += 1;
            assert!(matches!(db.begin(), Err(Error::Usage(_))), "run {runs}");
            assert!(matches!(db.flush_log(), Err(Error::Usage(_))), "run {runs}");
            set.put(0, ValueRef::from(row.u64(0) + 100));
        })
    });
    assert!(moved.unwrap() && runs > 1);
    db.transact(|txn| txn.modify(&table, &values![101], |_, set| set.put(0, ValueRef::from(1u64)))).unwrap();
    // A closure that panics, too.
    let mut ended = begun(&db, &table);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut txn = db.begin().unwrap();
        txn.modify(&table, &values![1], |_, _| {
            drop(ended.take());
            panic!("as planned");
        })
    }));
    assert!(panicked.is_err());
    begun(&db, &table).unwrap().rollback().unwrap();
    check_indexes(&db, &table);
    db.close().unwrap();
}

/// What waits for others, or holds them up, is refused inside the closures that the engine runs.
#[test]
fn closures_do_not_close_or_change_the_database() {
    let db = memory();
    let table = people(&db);
    add(&db, &table, "one", "first", None);
    let refused = |what: &str, done: highwater::Result<()>| {
        assert!(matches!(done, Err(Error::Usage(_))), "{what}: {done:?}");
    };
    let try_all = || {
        refused("create", db.create_table("other", by_id()).map(drop));
        refused("drop", db.drop_table("people"));
        refused("index", db.create_index("people", "by_first", &["first"], false));
        refused("check", db.check().map(drop));
        refused("close", db.clone().close());
    };
    db.transact(|txn| {
        txn.modify(&table, &values![1], |_, set| {
            try_all();
            set.put(1, ValueRef::from("changed"));
        })
    })
    .unwrap();
    let mut told = 0;
    let report = db.check_with(&mut |_, _| {
        told += 1;
        try_all();
        assert_eq!(db.snapshot().unwrap().get(&table, &values![1]).unwrap().unwrap().str(1), "changed");
    });
    assert!(report.unwrap().findings.is_empty() && told > 0);
    db.check().unwrap();
    db.close().unwrap();
}

/// The engine's own thread-locals may be gone before it.
#[test]
fn a_transaction_that_a_thread_keeps_to_its_end_is_rolled_back() {
    thread_local! {
        static KEPT: std::cell::RefCell<Option<WriteTxn>> = const { std::cell::RefCell::new(None) };
    }
    let db = patient();
    let table = people(&db);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            KEPT.with(|kept| {
                let mut txn = db.begin().unwrap();
                txn.insert(&table, &values![7, "kept", "row", null]).unwrap();
                *kept.borrow_mut() = Some(txn);
            });
        });
    });
    // The scope ends before the thread's locals do.
    let mut txn = db.begin().unwrap();
    txn.insert(&table, &values![7, "mine", "row", null]).unwrap();
    txn.commit().unwrap();
    assert_eq!(all(&db, &table, "PRIMARY").len(), 1);
    db.close().unwrap();
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
    let reason = "the savepoint no longer exists";
    let gone = |error: highwater::Error| matches!(&error, Error::Usage(text) if text.contains(reason));
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
fn threads_count_right() {
    let db = patient();
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

/// A scan by an index has looked for the leaves of its next rows when their rows move to other leaves.
#[test]
fn rows_that_move_while_a_scan_goes_to_them_are_found() {
    let db = memory();
    let schema = by_id().column("n", Type::U64).column("pad", Type::Binary(200));
    let table = db.create_table("moving", schema.index("by_n", &["n"])).unwrap();
    let insert = |ids: Vec<u64>| {
        let rows = ids.into_iter().map(|id| values![id, id * 7_919 % 1_000_003, &[7u8; 180][..]]);
        db.transact(|txn| txn.insert_many(&table, rows.clone()).map(drop)).unwrap();
    };
    insert((0..3000).map(|n| n * 10).collect());
    let mut read = db.snapshot().unwrap();
    let mut rows = read.scan(&table).index("by_n").iter().unwrap();
    let mut found = 0;
    for round in 1..10 {
        found += rows.by_ref().take(30).map(Result::unwrap).count();
        insert((0..3000).map(|n| n * 10 + round).collect());
    }
    assert_eq!(found + rows.map(Result::unwrap).count(), 3000);
}
