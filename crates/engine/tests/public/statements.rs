//! Statements of several calls, snapshots of the begin, sessions, ranges of numbers.

use crate::support::{memory, open, patient, sound};
use crate::testing::by_id;
use highwater::{Database, Error, Isolation, LockWait, NumberRange, Table, TxnOptions, Type, Value, WriteTxn, values};
use highwater_storage::StorageSet;
use std::sync::Barrier;
use std::thread;

fn table(db: &Database) -> Table {
    db.create_table("t", by_id().auto_increment("id").column("n", Type::U64).index("by_n", &["n"])).unwrap()
}

fn at(db: &Database, isolation: Isolation) -> WriteTxn {
    db.begin_with(TxnOptions { isolation, ..TxnOptions::default() }).unwrap()
}

/// A row that another transaction commits.
fn commit_one(db: &Database, table: &Table) {
    db.transact(|txn| txn.insert(table, &values![null, 7]).map(drop)).unwrap();
}

#[test]
fn reads_of_a_statement_see_one_moment() {
    for isolation in [Isolation::ReadUncommitted, Isolation::ReadCommitted, Isolation::RepeatableRead] {
        let db = memory();
        let table = table(&db);
        commit_one(&db, &table);
        let mut txn = at(&db, isolation);
        assert_eq!(txn.scan(&table).count().unwrap(), 1);
        let counts = |txn: &mut WriteTxn| {
            let by_scan = txn.scan(&table).count().unwrap();
            let by_index = txn.scan(&table).index("by_n").count().unwrap();
            let by_get = (1..9u64).filter(|id| txn.get(&table, &values![*id]).unwrap().is_some()).count() as u64;
            assert_eq!([by_index, by_get], [by_scan; 2]);
            by_scan
        };
        commit_one(&db, &table);
        txn.begin_statement().unwrap();
        assert!(matches!(txn.begin_statement(), Err(Error::Usage(_))));
        let first = counts(&mut txn);
        commit_one(&db, &table);
        let second = counts(&mut txn);
        txn.end_statement().unwrap();
        let after = counts(&mut txn);
        let right = match isolation {
            Isolation::ReadUncommitted => [2, 3, 3],
            Isolation::ReadCommitted => [2, 2, 3],
            _ => [1, 1, 1],
        };
        assert_eq!([first, second, after], right, "{isolation:?}");
        assert!(matches!(txn.end_statement(), Err(Error::Usage(_))));
        assert!(matches!(txn.undo_statement(), Err(Error::Usage(_))));
        // Own changes are seen at once.
        txn.begin_statement().unwrap();
        let before = counts(&mut txn);
        txn.insert(&table, &values![null, 1]).unwrap();
        assert_eq!(counts(&mut txn), before + 1);
        txn.undo_statement().unwrap();
        assert_eq!(counts(&mut txn), right[2]);
        txn.commit().unwrap();
        sound(&db);
    }
}

/// What a statement did is undone, not what the transaction did before; locks stay.
#[test]
fn a_statement_is_undone_as_a_whole() {
    for isolation in Isolation::ALL {
        let db = memory();
        let table = table(&db);
        let mut txn = at(&db, isolation);
        txn.insert(&table, &values![1, 1]).unwrap();
        let savepoint = txn.savepoint();
        let failed: Result<(), Error> = txn.statement(|txn| {
            txn.update(&table, &values![1], &[(1, 2.into())])?;
            txn.insert(&table, &values![2, 2])?;
            txn.insert(&table, &values![1, 3]).map(drop)
        });
        assert!(matches!(failed, Err(Error::DuplicateKey { .. })));
        assert_eq!(txn.get(&table, &values![1]).unwrap().unwrap().u64(1), 1);
        assert!(txn.get(&table, &values![2]).unwrap().is_none());
        txn.statement(|txn| txn.insert(&table, &values![3, 3])).unwrap();
        txn.rollback_to(savepoint).unwrap();
        txn.insert(&table, &values![4, 4]).unwrap();
        // The end of a transaction ends its statement.
        txn.begin_statement().unwrap();
        txn.commit().unwrap();
        let mut next = at(&db, isolation);
        next.begin_statement().unwrap();
        assert_eq!(next.scan(&table).count().unwrap(), 2);
        next.undo_statement().unwrap();
        next.commit().unwrap();
        sound(&db);
    }
}

#[test]
fn a_snapshot_of_the_begin_does_not_see_what_commits_after_it() {
    for isolation in Isolation::ALL {
        for first_committer_wins in [false, true] {
            let db = memory();
            let table = table(&db);
            let options =
                TxnOptions { isolation, first_committer_wins, snapshot_at_begin: true, ..TxnOptions::default() };
            let mut txn = db.begin_with(options).unwrap();
            commit_one(&db, &table);
            let sees = u64::from(isolation != Isolation::RepeatableRead);
            assert_eq!(txn.scan(&table).count().unwrap(), sees, "{isolation:?}");
            txn.commit().unwrap();
        }
    }
}

#[test]
fn a_session_has_one_transaction_after_the_other() {
    let db = memory();
    let table = table(&db);
    let mut session = db.session();
    let handle = session.interrupt_handle();
    assert!(!session.is_open());
    session.commit().unwrap();
    for isolation in Isolation::ALL {
        session.set_options(TxnOptions { isolation, ..TxnOptions::default() });
        let n = session.txn().unwrap().scan(&table).count().unwrap();
        session.txn().unwrap().insert(&table, &values![null, 1]).unwrap();
        assert!(session.is_open());
        session.rollback().unwrap();
        assert!(!session.is_open());
        // No lock of the table is left, between two transactions.
        db.create_index("t", "again", &["n"], false).unwrap();
        db.drop_index("t", "again").unwrap();
        session.txn().unwrap().insert(&table, &values![null, 1]).unwrap();
        session.commit().unwrap();
        assert_eq!(db.snapshot().unwrap().scan(&table).count().unwrap(), n + 1);
        // An interruption reaches the transaction that is begun next.
        handle.interrupt();
        assert!(matches!(session.txn().unwrap().scan(&table).count(), Err(Error::Interrupted)));
        assert_eq!(session.txn().unwrap().scan(&table).count().unwrap(), n + 1);
        session.rollback().unwrap();
    }
    let mut holder = db.begin().unwrap();
    let id = holder.scan(&table).for_update().first().unwrap().unwrap().u64(0);
    session.set_lock_wait(LockWait::NoWait);
    for _ in 0..2 {
        let refused = session.txn().unwrap().delete(&table, &values![id]);
        assert!(matches!(refused, Err(Error::LockNotAvailable { .. })));
        session.rollback().unwrap();
    }
    // A session that is dropped rolls back.
    session.set_lock_wait(LockWait::Default);
    session.txn().unwrap().insert(&table, &values![1000, 1]).unwrap();
    drop(session);
    assert!(db.snapshot().unwrap().get(&table, &values![1000]).unwrap().is_none());
    drop(holder);
    sound(&db);
}

#[test]
fn a_session_ends_with_its_database() {
    let db = memory();
    let table = table(&db);
    let mut session = db.session();
    session.txn().unwrap().insert(&table, &values![1, 1]).unwrap();
    db.close().unwrap();
    assert!(matches!(session.commit(), Err(Error::Closed)));
}

#[test]
fn numbers_are_reserved_once_also_over_a_crash() {
    let db = memory();
    let table = table(&db);
    let mut txn = db.begin().unwrap();
    let range = NumberRange { count: 4, every: 10, offset: 3 };
    assert_eq!(txn.reserve_numbers(&table, range).unwrap(), 3);
    assert_eq!(table.next_number(), Some(34));
    assert_eq!(txn.insert(&table, &values![null, 1]).unwrap().auto_increment, Some(34));
    assert_eq!(txn.reserve_numbers(&table, range).unwrap(), 43);
    let last = txn.reserve_numbers(&table, NumberRange { count: 5000, ..NumberRange::default() }).unwrap() + 4999;
    txn.rollback().unwrap();
    for wrong in [NumberRange { count: 0, ..range }, NumberRange { every: 0, ..range }] {
        assert!(matches!(db.begin().unwrap().reserve_numbers(&table, wrong), Err(Error::Usage(_))));
    }
    // Reserved numbers are not assigned again, even if the redo log lost the reservation.
    db.transact(|txn| txn.insert(&table, &values![1, 1]).map(drop)).unwrap();
    let after = db.after_power_cut(3);
    let table = after.table("t").unwrap();
    assert!(table.next_number().unwrap() > last);
    let mut txn = after.begin().unwrap();
    txn.set_next_number(&table, 77).unwrap();
    assert_eq!(txn.insert(&table, &values![null, 1]).unwrap().auto_increment, Some(77));
    txn.set_next_number(&table, u64::MAX - 2).unwrap();
    let error = txn.reserve_numbers(&table, NumberRange { count: 3, ..NumberRange::default() }).unwrap_err();
    assert!(error.to_string().contains("3 numbers are asked for, 2 of that kind are left"), "{error}");
    assert_eq!(txn.reserve_numbers(&table, NumberRange { count: 2, ..NumberRange::default() }).unwrap(), u64::MAX - 2);
    assert_eq!(table.next_number(), None);
    assert!(matches!(txn.insert(&table, &values![null, 1]), Err(Error::BadValue { .. })));
    assert!(matches!(txn.set_next_number(&table, 0), Err(Error::BadValue { .. })));
    let other = by_id().auto_increment("id");
    let other = after.create_table("other", other).unwrap();
    let far = NumberRange { count: 1, every: u64::MAX, offset: u64::MAX - 1 };
    assert_eq!(txn.reserve_numbers(&other, far).unwrap(), u64::MAX - 1);
    let error = txn.reserve_numbers(&other, far).unwrap_err();
    assert!(error.to_string().contains("0 of that kind are left"), "{error}");
    let plain = after.create_table("plain", by_id()).unwrap();
    assert_eq!(plain.next_number(), None);
    assert!(matches!(txn.set_next_number(&plain, 5), Err(Error::Usage(_))));
    txn.commit().unwrap();
    sound(&after);
}

#[test]
fn a_counted_column_that_may_be_null_keeps_null_and_counts() {
    let storage = StorageSet::memory();
    let db = open(&storage);
    let table = db.create_table("t", by_id().nullable("n", Type::U8).auto_increment("n")).unwrap();
    let mut txn = db.begin().unwrap();
    assert_eq!(txn.insert(&table, &values![1, null]).unwrap().auto_increment, None);
    assert_eq!(txn.get(&table, &values![1]).unwrap().unwrap().to_values()[1], Value::Null);
    assert_eq!(txn.reserve_numbers(&table, NumberRange::default()).unwrap(), 1);
    txn.insert(&table, &values![2, 41]).unwrap();
    assert_eq!(txn.reserve_numbers(&table, NumberRange::default()).unwrap(), 42);
    txn.commit().unwrap();
    drop((table, db));
    assert!(open(&storage).table("t").unwrap().next_number().unwrap() >= 43);
}

#[test]
fn a_deadlock_in_a_statement_is_its_error() {
    let db = patient();
    let table = table(&db);
    db.transact(|txn| txn.insert(&table, &values![1, 1]).map(drop)).unwrap();
    let both = std::sync::Barrier::new(2);
    let add = || {
        let mut txn = db.begin().unwrap();
        txn.get_for_share(&table, &values![1]).unwrap();
        both.wait();
        let done = txn.statement(|txn| txn.update(&table, &values![1], &[(1, 2.into())]).map(drop));
        match done {
            Ok(()) => txn.commit().unwrap(),
            Err(_) => {
                txn.undo_statement().unwrap();
                txn.rollback().unwrap();
            }
        }
        done
    };
    let done = std::thread::scope(|scope| [(); 2].map(|()| scope.spawn(add)).map(|one| one.join().unwrap()));
    let failed: Vec<_> = done.into_iter().filter_map(Result::err).collect();
    assert!(matches!(failed[..], [Error::Deadlock]), "{failed:?}");
}

/// A statement that takes a number for each of its rows, one after another, while other transactions insert: one call
/// for each row.
#[test]
fn numbers_of_a_statement_that_has_locked_them_are_consecutive() {
    const STATEMENTS: u64 = 40;
    let db = memory();
    let table = table(&db);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for at in 0..STATEMENTS {
                    let mut txn = db.begin().unwrap();
                    txn.begin_statement().unwrap();
                    txn.lock_numbers(&table).unwrap();
                    let numbers: Vec<_> = (0..9)
                        .map(|n| txn.insert(&table, &values![null, n]).unwrap().auto_increment.unwrap())
                        .collect();
                    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
                    // Half of them end the statement first, then the transaction.
                    if at % 2 == 0 {
                        txn.end_statement().unwrap();
                    }
                    txn.commit().unwrap();
                }
            });
            scope.spawn(|| {
                for at in 0..3 * STATEMENTS {
                    let mut txn = db.begin().unwrap();
                    match at % 3 {
                        0 => drop(txn.insert(&table, &values![null, at]).unwrap()),
                        // A number that has not been given.
                        1 => {
                            let far = table.next_number().unwrap() + 20;
                            match txn.insert(&table, &values![far, at]) {
                                Ok(_) | Err(Error::DuplicateKey { .. }) => {}
                                Err(error) => panic!("{error}"),
                            }
                        }
                        _ => drop(txn.reserve_numbers(&table, NumberRange::default()).unwrap()),
                    }
                    txn.commit().unwrap();
                }
            });
        }
    });
    sound(&db);
}

#[test]
fn numbers_are_locked_until_the_statement_ends() {
    let db = memory();
    let table = table(&db);
    let (mut one, mut other) = (db.begin().unwrap(), db.begin().unwrap());
    other.set_lock_wait(LockWait::NoWait);
    let is_locked = |txn: &mut WriteTxn| match txn.insert(&table, &values![null, 1]) {
        Ok(_) => false,
        Err(Error::LockNotAvailable { table, .. }) => table == "t",
        Err(error) => panic!("{error}"),
    };
    // Outside of a statement until the transaction ends; inside of one until it ends, whatever becomes of it.
    one.lock_numbers(&table).unwrap();
    assert!(is_locked(&mut other));
    assert!(other.lock_numbers(&table).is_err() && other.reserve_numbers(&table, NumberRange::default()).is_err());
    other.insert(&table, &values![50, 1]).unwrap_err();
    let locks = db.row_locks(10);
    assert!(locks.len() == 1 && locks[0].key.is_empty() && locks[0].owner == one.watch().owner(), "{locks:?}");
    one.commit().unwrap();
    assert!(!is_locked(&mut other));
    for keeps in [true, false] {
        let mut one = db.begin().unwrap();
        one.begin_statement().unwrap();
        one.lock_numbers(&table).unwrap();
        one.lock_numbers(&table).unwrap();
        one.insert(&table, &values![null, 2]).unwrap();
        assert!(is_locked(&mut other));
        if keeps {
            one.end_statement().unwrap()
        } else {
            one.undo_statement().unwrap()
        }
        assert!(!is_locked(&mut other));
        // A later statement of the same transaction, whose locks of rows stay.
        one.insert(&table, &values![null, 2]).unwrap();
        one.commit().unwrap();
    }
    assert!(db.row_locks(10).is_empty());
    let plain = db.create_table("plain", by_id()).unwrap();
    assert!(matches!(other.lock_numbers(&plain), Err(Error::Usage(_))));
    other.commit().unwrap();
    sound(&db);
}

/// One holds the auto-increment lock and waits for a row, the other holds the row and waits for the auto-increment
/// lock.
#[test]
fn a_deadlock_of_numbers_and_a_row_is_found() {
    let db = memory();
    let table = table(&db);
    commit_one(&db, &table);
    let barrier = Barrier::new(2);
    let ended = thread::scope(|scope| {
        let numbers = scope.spawn(|| {
            let mut txn = db.begin().unwrap();
            txn.begin_statement().unwrap();
            txn.lock_numbers(&table).unwrap();
            barrier.wait();
            let done = txn.update(&table, &values![1], &[(1, 8.into())]).map(drop);
            txn.end_statement().unwrap();
            done
        });
        let row = scope.spawn(|| {
            let mut txn = db.begin().unwrap();
            txn.update(&table, &values![1], &[(1, 9.into())]).unwrap();
            barrier.wait();
            txn.insert(&table, &values![null, 1]).map(drop)
        });
        [numbers.join().unwrap(), row.join().unwrap()]
    });
    let victims = ended.iter().filter(|done| matches!(done, Err(Error::Deadlock))).count();
    assert!(victims == 1 && ended.iter().any(Result::is_ok), "{ended:?}");
    assert!(db.row_locks(10).is_empty());
    commit_one(&db, &table);
    sound(&db);
}
