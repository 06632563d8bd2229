//! Prepared transactions: their names, their locks, how they end, what they keep others from.

use crate::support::{add, all, await_purge, check_indexes, memory, open, options, people, sound};
use crate::testing::by_id;
use highwater::{Database, Error, Options, PreparedTxn, Table, Value, WriteTxn, Xid, values};
use highwater_storage::{MemoryDevice, StorageSet};
use std::time::{Duration, Instant};

pub(crate) fn xid(name: &str) -> Xid {
    Xid::new(1, name.as_bytes(), b"here").unwrap()
}

/// The names of the prepared transactions, by name.
pub(crate) fn listed(db: &Database) -> Vec<String> {
    db.prepared().iter().map(|info| String::from_utf8(info.xid.global().to_vec()).unwrap()).collect()
}

pub(crate) fn ages(db: &Database, people: &Table) -> Vec<Option<i64>> {
    let rows = all(db, people, "PRIMARY");
    rows.iter().map(|row| if let Value::Int(age) = row[3] { Some(age) } else { None }).collect()
}

/// People 1 to 4 with age 0.
pub(crate) fn filled(db: &Database) -> Table {
    let people = people(db);
    for n in 1..=4 {
        add(db, &people, &format!("l{n}"), "f", Some(0));
    }
    people
}

/// Sets the age of these people and prepares.
pub(crate) fn prepared(db: &Database, people: &Table, name: &str, ids: &[u64], age: i32) -> PreparedTxn {
    let mut txn = db.begin().unwrap();
    for id in ids {
        assert!(txn.update(people, &values![*id], &[(3, age.into())]).unwrap());
    }
    txn.prepare(xid(name)).unwrap().unwrap()
}

fn is_locked(db: &Database, people: &Table, id: u64) -> bool {
    let mut txn = db.begin().unwrap();
    match txn.update(people, &values![id], &[(3, 77.into())]) {
        Ok(found) => {
            assert!(found);
            false
        }
        Err(Error::LockWaitTimeout) => true,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_prepared_transaction_is_neither_seen_nor_passed_until_it_ends() {
    fn can_move<T: Send + 'static>(_: &T) {}
    let db = memory();
    let people = filled(&db);
    let first = prepared(&db, &people, "a", &[1], 10);
    let second = prepared(&db, &people, "b", &[2], 20);
    can_move(&first);
    assert_eq!((listed(&db), ages(&db, &people)[..2].to_vec()), (vec!["a".into(), "b".into()], vec![Some(0); 2]));
    assert!(is_locked(&db, &people, 1) && is_locked(&db, &people, 2) && !is_locked(&db, &people, 3));
    let info = &db.prepared()[0];
    assert_eq!((info.undo_records, &info.tables[..], info.is_detached), (1, &["people".to_string()][..], false));
    assert!(info.transaction > 0 && *info.time.to_string() > *"2026-01-01");
    sound(&db);
    std::thread::scope(|scope| scope.spawn(|| first.commit_ordered().unwrap()).join().unwrap());
    assert_eq!(ages(&db, &people)[..2], [Some(10), Some(0)]);
    assert!(!is_locked(&db, &people, 1) && is_locked(&db, &people, 2));
    second.rollback().unwrap();
    assert_eq!((ages(&db, &people)[..2].to_vec(), listed(&db).len()), (vec![Some(10), Some(0)], 0));
    assert!(!is_locked(&db, &people, 2));
    check_indexes(&db, &people);
    await_purge(&db);
    sound(&db);
}

#[test]
fn names_are_unique_and_a_transaction_without_changes_ends_at_once() {
    let db = memory();
    let people = filled(&db);
    let first = prepared(&db, &people, "a", &[1], 10);
    let mut twice = db.begin().unwrap();
    twice.update(&people, &values![2], &[(3, 9.into())]).unwrap();
    assert!(matches!(twice.prepare(xid("a")), Err(Error::DuplicateXid { xid: of }) if of == xid("a").to_string()));
    assert!(!is_locked(&db, &people, 2), "it was rolled back");
    let owned = db.finish_prepared(&xid("a"), true).unwrap_err();
    assert!(owned.to_string().contains("has an owner"), "{owned}");
    first.detach();
    assert!(db.prepared()[0].is_detached);
    let again = db.take_prepared(&xid("a")).unwrap();
    assert!(!db.prepared()[0].is_detached && again.xid() == &xid("a"));
    drop(again);
    db.finish_prepared(&xid("a"), true).unwrap();
    assert_eq!(ages(&db, &people)[0], Some(10));
    for commit in [true, false] {
        assert!(matches!(db.finish_prepared(&xid("a"), commit), Err(Error::NoSuchXid { .. })));
    }
    // The name is free again, and a transaction that only locked rows has nothing to prepare.
    let mut reader = db.begin().unwrap();
    reader.get_for_update(&people, &values![1]).unwrap();
    assert!(reader.prepare(xid("a")).unwrap().is_none() && listed(&db).is_empty() && !is_locked(&db, &people, 1));
    let mut undone = db.begin().unwrap();
    let savepoint = undone.savepoint();
    undone.update(&people, &values![1], &[(3, 1.into())]).unwrap();
    undone.rollback_to(savepoint).unwrap();
    undone.prepare(xid("a")).unwrap().unwrap().commit().unwrap();
    assert_eq!(ages(&db, &people)[0], Some(10));
    sound(&db);
}

/// A drop, a rollback of a savepoint before, several tables, large rows: all of it is there after every opening.
#[test]
fn prepared_transactions_outlive_openings_in_order_and_after_cuts() {
    for crashes in [false, true] {
        let mut storage = StorageSet::memory();
        let db = open(&storage);
        let people = filled(&db);
        prepared(&db, &people, "stays", &[1, 2], 5).detach();
        drop(prepared(&db, &people, "undone", &[3], 6));
        for life in 0..6u64 {
            let db = match life {
                0 => db.clone(),
                _ => open(&storage),
            };
            let people = db.table("people").unwrap();
            assert_eq!(listed(&db), ["stays", "undone"], "life {life}");
            let info = &db.prepared()[0];
            assert_eq!((info.undo_records, &info.tables[..], info.is_detached), (2, &["people".into()][..], true));
            assert!(is_locked(&db, &people, 1) && is_locked(&db, &people, 2) && is_locked(&db, &people, 3));
            assert_eq!(ages(&db, &people), [Some(0); 4]);
            // Other transactions continue, and purge too.
            for _ in 0..30 {
                let mut txn = db.begin().unwrap();
                txn.update(&people, &values![4], &[(3, 1.into()), (1, "much longer".into())]).unwrap();
                txn.update(&people, &values![4], &[(3, 0.into()), (1, "l4".into())]).unwrap();
                txn.commit().unwrap();
            }
            await_purge(&db);
            assert_eq!(db.check().unwrap().counts.transactions_prepared, 2);
            sound(&db);
            if crashes {
                storage = storage.cut(life);
            }
            db.close().unwrap();
        }
        drop(db);
        let db = open(&storage);
        let people = db.table("people").unwrap();
        db.finish_prepared(&xid("stays"), true).unwrap();
        db.finish_prepared(&xid("undone"), false).unwrap();
        let expected = [Some(5), Some(5), Some(0), Some(0)];
        assert_eq!(ages(&db, &people), expected);
        drop(db);
        let db = open(&storage.cut(99));
        assert!(listed(&db).is_empty() && ages(&db, &people_of(&db)) == expected);
        check_indexes(&db, &people_of(&db));
        await_purge(&db);
        sound(&db);
    }
}

fn people_of(db: &Database) -> Table {
    db.table("people").unwrap()
}

#[test]
fn a_schema_change_of_its_table_is_refused_and_names_it() {
    let storage = StorageSet::memory();
    let db = open(&storage);
    let people = filled(&db);
    let owned = prepared(&db, &people, "a", &[1], 5);
    assert!(matches!(db.drop_table("people"), Err(Error::LockWaitTimeout)), "an owner may end it soon");
    owned.detach();
    drop(db);
    let db = open(&storage.cut(1));
    let refused = |done: highwater::Result<()>| match done {
        Err(Error::TableInPrepared { table, xid: of }) => {
            assert_eq!((table.as_str(), of), ("people", xid("a").to_string()))
        }
        other => panic!("{other:?}"),
    };
    let (patient, since) = (db.with_lock_wait_timeout(Duration::from_secs(120)), Instant::now());
    refused(patient.drop_table("people"));
    refused(patient.drop_index("people", "by_name"));
    assert!(since.elapsed() < Duration::from_secs(60), "they do not wait");
    drop(patient);
    db.finish_prepared(&xid("a"), false).unwrap();
    db.drop_table("people").unwrap();
    sound(&db);
}

#[test]
fn a_table_that_it_only_read_can_be_dropped() {
    let db = memory();
    let people = filled(&db);
    let other = db.create_table("other", by_id()).unwrap();
    let mut txn = db.begin().unwrap();
    txn.get(&other, &values![1]).unwrap();
    txn.update(&people, &values![1], &[(3, 5.into())]).unwrap();
    let prepared = txn.prepare(xid("a")).unwrap().unwrap();
    db.drop_table("other").unwrap();
    prepared.commit().unwrap();
    sound(&db);
}

#[test]
fn a_read_only_opening_lists_and_ends_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let db = Database::open(folder.path(), options()).unwrap();
    let people = filled(&db);
    drop(prepared(&db, &people, "a", &[1], 5));
    assert!(matches!(db.clone().close(), Ok(())) && listed(&db).is_empty(), "a closed database lists none");
    drop((people, db));
    let db = Database::open_read_only(folder.path(), options()).unwrap();
    assert_eq!(listed(&db), ["a"]);
    assert!(matches!(db.finish_prepared(&xid("a"), true), Err(Error::Usage(_))));
    assert_eq!((ages(&db, &people_of(&db))[0], listed(&db)), (Some(0), vec!["a".to_string()]));
    drop(db);
    let db = Database::open(folder.path(), options()).unwrap();
    db.finish_prepared(&xid("a"), true).unwrap();
    assert_eq!(ages(&db, &people_of(&db))[0], Some(5));
}

/// Whatever commits wait for, a prepared transaction is durable.
#[test]
fn prepare_waits_for_its_sync_whatever_commits_do() {
    let storage = StorageSet::memory();
    let lazy = Options { flush_log_at_trx_commit: highwater::config::FlushLog::EverySecond, ..options() };
    let db = Database::open_storage(storage.clone(), lazy).unwrap();
    let people = filled(&db);
    db.flush_log().unwrap();
    let first = prepared(&db, &people, "a", &[1], 5);
    let after = open(&storage.cut(1));
    assert_eq!(listed(&after), ["a"]);
    let lsn = first.commit_ordered().unwrap();
    db.wait_durable(lsn).unwrap();
    let after = open(&storage.cut(2));
    assert_eq!((listed(&after).len(), ages(&after, &people_of(&after))[0]), (0, Some(5)));
    assert!(matches!(db.wait_durable(lsn + (1 << 40)), Err(Error::Usage(_))));
}

#[test]
fn calls_inside_a_row_closure_are_refused() {
    let db = memory();
    let people = filled(&db);
    let mut first = Some(prepared(&db, &people, "a", &[1], 5));
    let mut inner: Option<WriteTxn> = Some(db.begin().unwrap());
    let mut txn = db.begin().unwrap();
    txn.modify(&people, &values![3], |_, set| {
        if let (Some(first), Some(inner)) = (first.take(), inner.take()) {
            assert!(matches!(first.commit(), Err(Error::Usage(_))));
            assert!(matches!(inner.prepare(xid("b")), Err(Error::Usage(_))));
            assert!(db.wait_durable(1).is_err() && db.take_prepared(&xid("a")).is_err());
        }
        set.put(3, 8);
    })
    .unwrap();
    txn.commit().unwrap();
    assert_eq!(listed(&db), ["a"]);
    db.finish_prepared(&xid("a"), true).unwrap();
    assert_eq!(ages(&db, &people), [Some(5), Some(0), Some(8), Some(0)]);
}

/// The disk is filled after they were prepared: both ends succeed.
#[test]
fn both_ends_work_on_a_full_disk() {
    let data = MemoryDevice::limited(3 << 20);
    let storage = StorageSet::of_memory([data, MemoryDevice::new(), MemoryDevice::new()]);
    let db = open(&storage);
    let people = people(&db);
    for n in 0..600 {
        add(&db, &people, &format!("a long last name {n:040}"), &"f".repeat(60), Some(n));
    }
    let mut group = Vec::new();
    for n in 0..6u64 {
        let mut txn = db.begin().unwrap();
        for id in (n * 100 + 1)..=(n * 100 + 90) {
            match id % 3 {
                0 => assert!(txn.delete(&people, &values![id]).unwrap()),
                _ => assert!(txn.update(&people, &values![id], &[(1, "s".into()), (3, 7.into())]).unwrap()),
            }
        }
        group.push(txn.prepare(xid(&n.to_string())).unwrap().unwrap());
    }
    let before = all(&db, &people, "PRIMARY");
    let mut is_full = false;
    while !is_full {
        let mut txn = db.begin().unwrap();
        for _ in 0..20 {
            match txn.insert(&people, &values![null, &*"x".repeat(60), &*"y".repeat(60), null]) {
                Ok(_) => {}
                Err(Error::DiskFull { .. }) => is_full = true,
                Err(error) => panic!("{error}"),
            }
        }
        txn.commit().unwrap();
    }
    for (n, prepared) in group.into_iter().enumerate() {
        match n % 3 {
            0 => prepared.commit().unwrap(),
            1 => prepared.rollback().unwrap(),
            _ => prepared.detach(),
        }
    }
    drop(db);
    let db = open(&storage.cut(4));
    assert_eq!(listed(&db), ["2", "5"]);
    db.finish_prepared(&xid("2"), false).unwrap();
    db.finish_prepared(&xid("5"), true).unwrap();
    let after = all(&db, &people_of(&db), "PRIMARY");
    let kept = |id: u64| after.iter().any(|row| row[0] == Value::UInt(id) && row[3] != Value::Int(7));
    for n in [1, 2, 4] {
        assert!((n * 100 + 1..=n * 100 + 90).all(kept), "transaction {n} was rolled back");
    }
    for n in [0, 3, 5] {
        assert!(!(n * 100 + 1..=n * 100 + 90).any(kept), "transaction {n} was committed");
    }
    assert!(before.len() == 600 && after.len() > 500);
    check_indexes(&db, &people_of(&db));
    await_purge(&db);
    sound(&db);
}
