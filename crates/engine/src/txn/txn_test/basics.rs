//! One transaction at a time: rows, scans, rollback, savepoints.

use super::*;
use crate::lock::LockMode;

fn three() -> Db {
    let db = Db::new();
    db.fill(&[("k1", row("x", "1", "one")), ("k2", row("y", "2", "two")), ("k3", row("x", "3", "three"))]);
    db
}

#[test]
fn rows_are_there_after_commit() {
    let db = three();
    let mut session = db.begin();
    assert_eq!(session.get("k2"), Some(row("y", "2", "two")));
    assert_eq!(session.get("k4"), None);
    assert_eq!(session.keys(), ["k1", "k2", "k3"]);
    assert_eq!(session.scan(&by(0, &entries_of("x"))).unwrap(), ["k1", "k3"]);
    assert_eq!(session.scan(&by(1, &entries_of("3"))).unwrap(), ["k3"]);
    session.commit();
    db.check(false);
}

#[test]
fn a_transaction_sees_its_own_changes() {
    let db = three();
    let mut session = db.begin();
    session.get("k1");
    session.insert("k0", &row("x", "0", "zero")).unwrap();
    assert!(session.update("k1", &row("z", "1", "one!")).unwrap());
    assert!(session.delete("k3").unwrap());
    assert!(!session.delete("k3").unwrap() && !session.update("k9", &row("", "", "")).unwrap());
    assert_eq!(session.keys(), ["k0", "k1", "k2"]);
    assert_eq!(session.scan(&by(0, &entries_of("x"))).unwrap(), ["k0"]);
    assert_eq!(session.scan(&by(0, &entries_of("z"))).unwrap(), ["k1"]);
    session.insert("k3", &row("n", "3", "again")).unwrap();
    assert_eq!(session.get("k3"), Some(row("n", "3", "again")));
    session.commit();
    assert_eq!(db.check(false).len(), 4);
    db.purge_all();
    assert_eq!(db.check(true).len(), 4);
}

#[test]
fn duplicates_are_refused_and_leave_no_trace() {
    let db = three();
    let before = db.check(true);
    let mut session = db.begin();
    assert!(is_duplicate(session.insert("k1", &row("q", "q", ""))));
    assert!(is_duplicate(session.insert("k5", &row("q", "2", ""))));
    assert!(is_duplicate(session.update("k1", &row("q", "2", "")).map(drop)));
    assert_eq!(session.get("k5"), None);
    // NULL is no duplicate of NULL.
    session.insert("k6", &row("q", "", "")).unwrap();
    session.insert("k7", &row("q", "", "")).unwrap();
    // A value given up is free.
    session.delete("k2").unwrap();
    session.insert("k5", &row("q", "2", "")).unwrap();
    session.rollback();
    assert_eq!(db.check(true), before);
}

#[test]
fn rollback_leaves_no_trace() {
    let db = three();
    let before: Vec<_> = (0..3).map(|i| db.records(i)).collect();
    let mut session = db.begin();
    for i in 0..200 {
        session.insert(&format!("n{i}"), &row(&format!("a{}", i % 7), &format!("b{i}"), &"r".repeat(i))).unwrap();
    }
    for i in 0..200 {
        session.update(&format!("n{i}"), &row(&format!("a{}", i % 5), &format!("c{i}"), &"s".repeat(200 - i))).unwrap();
    }
    for key in ["k1", "k2", "k3"] {
        session.update(key, &row("new", key, "new")).unwrap();
        session.update(key, &row("x", key, "newer")).unwrap();
        session.delete(key).unwrap();
        session.insert(key, &row("y", key, "reborn")).unwrap();
    }
    session.rollback();
    let after: Vec<_> = (0..3).map(|i| db.records(i)).collect();
    assert_eq!(after, before);
    db.check(true);
    db.purge_all();
    db.check(true);
}

/// Each rollback reads what was written since the last one, not all that was undone before; the parts merge.
#[test]
fn going_back_to_a_savepoint_again_and_again_reads_each_record_once() {
    let db = three();
    let before: Vec<_> = (0..3).map(|i| db.records(i)).collect();
    let mut session = db.begin();
    let outer = session.savepoint();
    for round in 0..40 {
        session.insert(&format!("kept {round}"), &row("kept", "", "")).unwrap();
        let inner = session.savepoint();
        for again in 0..3 {
            for i in 0..20 {
                session.insert(&format!("gone {i}"), &row("gone", &format!("{round} {again} {i}"), "x")).unwrap();
                session.update("k1", &row("changed", &format!("u {round} {again} {i}"), &"y".repeat(60))).unwrap();
            }
            session.rollback_to(inner).unwrap();
            let parts = round % 10 + 1 + usize::from(round >= 10);
            assert_eq!(session.txn().undo.as_ref().unwrap().undone.len(), parts);
        }
        if round % 10 == 9 {
            session.rollback_to(outer).unwrap();
            assert_eq!(session.txn().undo.as_ref().unwrap().undone.len(), 1);
            session.insert(&format!("kept {round}"), &row("kept", "", "")).unwrap();
            session.rollback_to(outer).unwrap();
        }
    }
    session.rollback();
    assert_eq!((0..3).map(|i| db.records(i)).collect::<Vec<_>>(), before);
    db.check(true);
}

#[test]
fn dropping_a_transaction_rolls_it_back() {
    let db = three();
    drop({
        let mut session = db.begin();
        session.delete("k1").unwrap();
        session
    });
    assert_eq!(db.begin().keys(), ["k1", "k2", "k3"]);
    assert_eq!(db.system.active_count(), 0);
    assert!(db.system.locks.is_empty());
}

#[test]
fn savepoints_undo_what_came_after() {
    let db = three();
    let mut session = db.begin();
    let start = session.savepoint();
    session.insert("s1", &row("a", "s1", "")).unwrap();
    let first = session.savepoint();
    session.insert("s2", &row("a", "s2", "")).unwrap();
    session.update("k1", &row("moved", "1", "")).unwrap();
    let second = session.savepoint();
    session.delete("k1").unwrap();
    session.rollback_to(second).unwrap();
    assert_eq!(session.get("k1"), Some(row("moved", "1", "")));
    session.rollback_to(first).unwrap();
    assert_eq!(session.keys(), ["k1", "k2", "k3", "s1"]);
    session.insert("s3", &row("a", "s3", "")).unwrap();
    session.rollback_to(first).unwrap();
    assert_eq!(session.keys(), ["k1", "k2", "k3", "s1"]);
    session.rollback_to(start).unwrap();
    assert_eq!(session.keys(), ["k1", "k2", "k3"]);
    session.insert("s4", &row("a", "s4", "")).unwrap();
    let mut other = db.begin();
    let foreign = other.savepoint();
    assert!(session.rollback_to(foreign).is_err());
    session.commit();
    assert_eq!(db.check(false).len(), 4);
    db.purge_all();
    db.check(true);
}

#[test]
fn scans_go_both_ways_within_bounds() {
    let db = Db::new();
    let mut session = db.begin();
    for i in 0..500 {
        session
            .insert(&format!("{i:04}"), &row(&format!("a{}", i % 10), &format!("b{i:04}"), &"r".repeat(i % 90)))
            .unwrap();
    }
    session.commit();
    let mut session = db.begin();
    let keys = |range: std::ops::Range<usize>| range.map(|i| format!("{i:04}")).collect::<Vec<_>>();
    for reverse in [false, true] {
        for lock in [LockMode::None, LockMode::Shared, LockMode::Exclusive] {
            let mut scan = |lower, upper, limit| {
                let options = ScanOptions { lower, upper, reverse, lock, limit, ..ScanOptions::default() };
                let mut keys = session.scan(&options).unwrap();
                if reverse {
                    keys.reverse();
                }
                keys
            };
            let (a, b) = (&b"0100"[..], &b"0300"[..]);
            assert_eq!(scan(Bound::Unbounded, Bound::Unbounded, usize::MAX), keys(0..500));
            assert_eq!(scan(Bound::Included(a), Bound::Excluded(b), usize::MAX), keys(100..300));
            assert_eq!(scan(Bound::Excluded(a), Bound::Included(b), usize::MAX), keys(101..301));
            assert_eq!(scan(Bound::Included(a), Bound::Included(a), usize::MAX), keys(100..101));
            assert!(scan(Bound::Excluded(a), Bound::Included(a), usize::MAX).is_empty());
            assert!(scan(Bound::Included(b), Bound::Included(a), usize::MAX).is_empty());
            let some = scan(Bound::Included(b"0100x"), Bound::Unbounded, 7);
            assert_eq!(some, if reverse { keys(493..500) } else { keys(101..108) });
            let range = entries_of("a3");
            let options = ScanOptions { reverse, lock, ..by(0, &range) };
            let mut found = session.scan(&options).unwrap();
            if reverse {
                found.reverse();
            }
            assert_eq!(found, (0..50).map(|i| format!("{:04}", i * 10 + 3)).collect::<Vec<_>>());
        }
    }
}

#[test]
fn misuse_is_an_error() {
    let db = three();
    let mut session = db.begin_as(TxnOptions::default(), Access::ReadOnly);
    assert!(matches!(session.insert("k9", &row("", "", "")), Err(Error::Usage(_))));
    assert!(matches!(session.get_with("k1", LockMode::Shared), Err(Error::Usage(_))));
    assert_eq!(session.keys().len(), 3);
    session.commit();
    let mut session = db.begin();
    let long = "k".repeat(1000);
    assert!(matches!(session.insert(&long, &row("", "", "")), Err(Error::KeyTooLong { .. })));
    let system = db.system.clone();
    let mut refused = false;
    session
        .op(b"k1")
        .update(&mut |_, _, _| {
            refused = matches!(system.begin(&TxnOptions::default(), Access::ReadWrite), Err(Error::Usage(_)));
            Ok(false)
        })
        .unwrap();
    assert!(refused, "a row closure must not get into the engine");
    let mut other = db.begin();
    let mut cursor = session.cursor(&ScanOptions::default()).unwrap();
    assert!(matches!(other.next(&mut cursor), Err(Error::Usage(_))));
    let failed = session.op(b"k2").update(&mut |_, _, _| Err(Error::Usage("no".into())));
    assert!(matches!(failed, Err(Error::Usage(_))));
    session.commit();
    db.check(true);
}

#[test]
fn history_is_counted() {
    let db = three();
    assert_eq!(db.system.history_list_length(), 1);
    let mut session = db.begin();
    session.delete("k1").unwrap();
    session.commit();
    assert_eq!((db.system.purge_state().history_list_length, db.parts.ctx.stats.history_list_length.get()), (2, 2));
    db.purge_all();
    assert_eq!((db.system.purge_state().history_list_length, db.parts.ctx.stats.history_list_length.get()), (0, 0));
}
