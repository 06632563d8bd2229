//! Insertions that return, change or replace their duplicate: what they answer, what they lock, how they are undone.

use crate::db::testing::{TestDb, by_id};
use crate::db::{Database, Insertion, Replaced, Upserted, WriteTxn};
use crate::error::{Error, Result};
use crate::lock::{LockMode, LockWait};
use crate::table::{Table, Type, ValueRef};
use crate::testing::small_options;
use crate::txn::{Isolation, TxnOptions};
use crate::values;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

const LOCK_WAIT_MS: u64 = 60_000;

/// id (counts by itself) | mail | name | visits; mail and name are unique.
fn users() -> (TestDb, Table) {
    let options = crate::Options { lock_wait_timeout_ms: LOCK_WAIT_MS, ..small_options() };
    let db = TestDb::new(options);
    let schema = by_id()
        .auto_increment("id")
        .column("mail", Type::Text(80))
        .column("name", Type::Text(80))
        .column("visits", Type::U64)
        .unique_index("by_mail", &["mail"])
        .unique_index("by_name", &["name"]);
    let users = db.create_table("users", schema).unwrap();
    (db, users)
}

/// The same with rows 1 to 3.
fn three() -> (TestDb, Table) {
    let (db, users) = users();
    let rows = [values![1, "a", "A", 1], values![2, "b", "B", 1], values![3, "c", "C", 1]];
    db.transact(|txn| txn.insert_many(&users, rows)).unwrap();
    (db, users)
}

fn at(db: &Database, isolation: Isolation) -> WriteTxn {
    db.begin_with(TxnOptions { isolation, ..TxnOptions::default() }).unwrap()
}

fn visit(txn: &mut WriteTxn, users: &Table, values: &[ValueRef<'_>]) -> Result<Upserted> {
    txn.upsert(users, values, |row, set| set.put(3, row.u64(3) + 1))
}

/// Every row as text, in the order of ids.
fn all(db: &Database, users: &Table) -> Vec<String> {
    let mut read = db.snapshot().unwrap();
    let row_text = |row: crate::Row| format!("{} {} {} {}", row.u64(0), row.str(1), row.str(2), row.u64(3));
    read.scan(users).iter().unwrap().map(|row| row_text(row.unwrap())).collect()
}

fn sound(db: &Database) {
    let report = db.check().unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
}

fn await_waits(db: &Database, count: u64) {
    let since = Instant::now();
    while db.stats().row_lock_waits < count {
        assert!(since.elapsed() < Duration::from_secs(50), "{} waits", db.stats().row_lock_waits);
        thread::yield_now();
    }
}

#[test]
fn a_duplicate_names_its_index_and_is_locked_as_asked() {
    for isolation in Isolation::ALL {
        let (db, users) = three();
        for (lock, is_shared) in [(LockMode::None, true), (LockMode::Shared, true), (LockMode::Exclusive, false)] {
            let duplicates = [
                (values![2, "x", "X", 0], "PRIMARY", 2),
                (values![9, "c", "X", 0], "by_mail", 3),
                (values![null, "x", "A", 0], "by_name", 1),
                // The first index of several.
                (values![1, "b", "C", 0], "PRIMARY", 1),
                (values![9, "b", "C", 0], "by_mail", 2),
            ];
            for (values, right_index, right_id) in duplicates {
                let mut txn = at(&db, isolation);
                let Insertion::Duplicate { index, row } = txn.insert_or_get(&users, &values, lock).unwrap() else {
                    panic!("{values:?} was inserted");
                };
                assert_eq!((&*index, row.u64(0)), (right_index, right_id), "{isolation:?} {values:?}");
                let mut other = db.begin().unwrap();
                let [shared, exclusive] = [LockMode::Shared, LockMode::Exclusive].map(|lock| {
                    let found = other.get_locked(&users, &values![right_id], lock, LockWait::NoWait);
                    if let Err(error) = &found {
                        assert!(matches!(error, Error::LockNotAvailable { .. }), "{error}");
                    }
                    found.is_ok()
                });
                assert_eq!((shared, exclusive), (is_shared, false), "{isolation:?} {lock:?} {values:?}");
                other.rollback().unwrap();
                txn.commit().unwrap();
            }
        }
        let mut txn = at(&db, isolation);
        let inserted = txn.insert_or_get(&users, &values![null, "d", "D", 0], LockMode::Shared).unwrap();
        assert!(matches!(inserted, Insertion::Inserted(inserted) if inserted.auto_increment.is_some()));
        // Its own row is a duplicate too.
        let own = txn.insert_or_get(&users, &values![null, "d", "E", 0], LockMode::Exclusive).unwrap();
        assert!(matches!(own, Insertion::Duplicate { row, .. } if row.str(2) == "D"));
        // A row that it has deleted is not a duplicate.
        assert!(txn.delete(&users, &values![1]).unwrap());
        let inserted = txn.insert_or_get(&users, &values![1, "a", "A", 7], LockMode::Exclusive).unwrap();
        assert!(matches!(inserted, Insertion::Inserted(_)));
        // An insertion that does not say so locks no row outside of SERIALIZABLE.
        assert!(matches!(txn.insert(&users, &values![2, "y", "Y", 0]), Err(Error::DuplicateKey { .. })));
        let mut other = db.begin().unwrap();
        let found = other.get_locked(&users, &values![2], LockMode::Exclusive, LockWait::NoWait);
        assert_eq!(found.is_ok(), isolation != Isolation::Serializable, "{isolation:?}");
        other.rollback().unwrap();
        txn.commit().unwrap();
        sound(&db);
    }
}

/// Two wait for the row that a third one has inserted and not committed: each gets it exclusively, one after another.
#[test]
fn concurrent_upserts_of_one_key_all_count() {
    for isolation in Isolation::ALL {
        for (is_by_id, commits) in [(true, true), (true, false), (false, true), (false, false)] {
            let (db, users) = users();
            let mut first = db.begin().unwrap();
            first.insert(&users, &values![1, "a", "A", 1]).unwrap();
            let waits = db.stats().row_lock_waits;
            let done: Vec<Upserted> = thread::scope(|scope| {
                let threads: Vec<_> = (1..3u64)
                    .map(|n| {
                        let (db, users) = (&db, &users);
                        scope.spawn(move || {
                            let (id, name) = if is_by_id { (1, "A".to_string()) } else { (1 + n, format!("A{n}")) };
                            let mut txn = at(db, isolation);
                            let done = visit(&mut txn, users, &values![id, "a", &*name, 1]);
                            done.and_then(|done| txn.commit().map(|()| done))
                        })
                    })
                    .collect();
                await_waits(&db, waits + 2);
                if commits {
                    first.commit().unwrap()
                } else {
                    first.rollback().unwrap()
                }
                threads.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect()
            });
            let inserted = done.iter().filter(|done| matches!(done, Upserted::Inserted(_))).count();
            assert_eq!(inserted, usize::from(!commits), "{isolation:?}");
            let mut read = db.snapshot().unwrap();
            let row = read.get_by(&users, "by_mail", &values!["a"]).unwrap().unwrap();
            assert_eq!(row.u64(3), if commits { 3 } else { 2 }, "{isolation:?}");
            drop(read);
            sound(&db);
        }
    }
}

#[test]
fn upserts_that_wait_for_each_other_are_a_deadlock_and_one_is_undone() {
    let (db, users) = three();
    let both = Barrier::new(2);
    let done: Vec<Result<()>> = thread::scope(|scope| {
        let threads: Vec<_> = [("a", "b"), ("b", "a")]
            .into_iter()
            .map(|(one, other)| {
                let (db, users, both) = (&db, &users, &both);
                scope.spawn(move || {
                    let mut txn = db.begin().unwrap();
                    visit(&mut txn, users, &values![null, one, "X", 0]).unwrap();
                    both.wait();
                    match txn.replace(users, &values![null, other, &*other.to_uppercase(), 10]) {
                        Ok(replaced) => assert_eq!(replaced.deleted, 1),
                        Err(error) => return Err(error),
                    }
                    txn.commit()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(done.iter().filter(|done| matches!(done, Err(Error::Deadlock))).count(), 1, "{done:?}");
    assert_eq!(done.iter().filter(|done| done.is_ok()).count(), 1, "{done:?}");
    // One row was visited, the other one replaced.
    let (a, b) = if done[0].is_ok() { (2, 10) } else { (10, 2) };
    let mut read = db.snapshot().unwrap();
    let visits = ["a", "b"].map(|mail| read.get_by(&users, "by_mail", &values![mail]).unwrap().unwrap().u64(3));
    assert_eq!(visits, [a, b]);
    drop(read);
    sound(&db);
}

#[test]
fn an_upsert_that_fails_changes_nothing() {
    let (db, users) = three();
    let mut txn = db.begin().unwrap();
    let rename = |txn: &mut WriteTxn, to: &str| txn.upsert(&users, &values![1, "x", "X", 0], |_, set| set.put(2, to));
    assert!(matches!(rename(&mut txn, "B"), Err(Error::DuplicateKey { index, .. }) if index == "by_name"));
    assert_eq!(rename(&mut txn, "Z").unwrap(), Upserted::Changed);
    // A change of the primary key.
    let moved = txn.upsert(&users, &values![9, "b", "X", 0], |_, set| set.put(0, 8)).unwrap();
    assert_eq!(moved, Upserted::Changed);
    txn.commit().unwrap();
    assert_eq!(all(&db, &users), ["1 a Z 1", "3 c C 1", "8 b B 1"]);
    sound(&db);
}

#[test]
fn a_replacement_is_done_as_a_whole_or_not_at_all() {
    for isolation in Isolation::ALL {
        let (db, users) = three();
        let mut holder = db.begin().unwrap();
        assert!(holder.get_for_update(&users, &values![3]).unwrap().is_some());
        let mut txn = at(&db, isolation);
        txn.insert(&users, &values![7, "g", "G", 1]).unwrap();
        txn.set_lock_wait(LockWait::NoWait);
        // Rows 1 and 2 are deleted when it comes to row 3.
        let refused = txn.replace(&users, &values![1, "b", "C", 9]);
        assert!(matches!(refused, Err(Error::LockNotAvailable { index: Some(_), .. })), "{refused:?}");
        for id in [1, 2, 7] {
            assert!(txn.get(&users, &values![id]).unwrap().is_some(), "{isolation:?} {id}");
        }
        holder.rollback().unwrap();
        let before = txn.savepoint();
        let replaced = txn.replace(&users, &values![1, "b", "C", 9]).unwrap();
        assert_eq!(replaced, Replaced { inserted: Default::default(), deleted: 3 });
        txn.rollback_to(before).unwrap();
        let replaced = txn.replace(&users, &values![null, "b", "A", 9]).unwrap();
        assert_eq!((replaced.deleted, replaced.inserted.auto_increment.is_some()), (2, true));
        assert_eq!(txn.replace(&users, &values![100, "h", "H", 1]).unwrap().deleted, 0);
        assert!(txn.replace(&users, &values![null]).is_err());
        txn.commit().unwrap();
        let rows: Vec<String> = all(&db, &users).iter().map(|row| row[row.len() - 5..].to_string()).collect();
        assert_eq!(rows, ["c C 1", "g G 1", "b A 9", "h H 1"], "{isolation:?}");
        sound(&db);
    }
}
