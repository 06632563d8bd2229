//! Row locks, range locks, waits, deadlocks, timeouts.

use super::*;
use crate::lock::LockMode;

fn numbered(n: u32) -> Db {
    let db = Db::new();
    let mut session = db.begin();
    for i in 0..n {
        session.insert(&format!("k{i}"), &row(&format!("a{i}"), &format!("b{i}"), "")).unwrap();
    }
    session.commit();
    db
}

fn impatient() -> TxnOptions {
    TxnOptions { lock_wait_timeout_ms: Some(5), ..TxnOptions::default() }
}

fn set(session: &mut Session, key: &str, rest: &str) -> Result<bool> {
    let (a, b) = (key.replace('k', "a"), key.replace('k', "b"));
    session.update(key, &row(&a, &b, rest))
}

#[test]
fn shared_locks_go_together_and_exclude_writers() {
    let db = numbered(2);
    let (mut t1, mut t2, mut t3) = (db.begin(), db.begin(), db.begin_with(impatient()));
    assert!(t1.get_with("k0", LockMode::Shared).unwrap().is_some());
    assert!(t2.get_with("k0", LockMode::Shared).unwrap().is_some());
    assert!(matches!(set(&mut t3, "k0", "x"), Err(Error::LockWaitTimeout)));
    assert!(matches!(t3.get_with("k0", LockMode::Exclusive), Err(Error::LockWaitTimeout)));
    // The transaction lives, and everything else is free.
    assert!(set(&mut t3, "k1", "x").unwrap());
    t2.commit();
    // The last holder of a shared lock may write.
    assert!(set(&mut t1, "k0", "y").unwrap());
    t1.commit();
    assert!(t3.get_with("k0", LockMode::Exclusive).unwrap().is_some());
    t3.commit();
    assert!(db.system.locks.is_empty());
    assert_eq!(db.parts.ctx.stats.row_lock_timeouts.get(), 2);
}

#[test]
fn a_timed_out_statement_leaves_no_trace() {
    let db = numbered(3);
    let mut t1 = db.begin();
    t1.delete("k1").unwrap();
    let mut t2 = db.begin_with(impatient());
    assert!(set(&mut t2, "k0", "mine").unwrap());
    // Waits in the unique index, after its row is written.
    assert!(matches!(t2.insert("k9", &row("a9", "b1", "")), Err(Error::LockWaitTimeout)));
    assert_eq!(t2.get("k9"), None);
    t1.rollback();
    assert!(is_duplicate(t2.insert("k9", &row("a9", "b1", ""))));
    t2.commit();
    assert_eq!(db.check(false).len(), 3);
    db.purge_all();
    db.check(true);
}

#[test]
fn a_unique_insert_waits_for_the_row_that_may_come_or_go() {
    for commit in [false, true] {
        let db = numbered(2);
        let mut t1 = db.begin();
        t1.delete("k1").unwrap();
        t1.insert("n1", &row("a", "new", "")).unwrap();
        let (t2, t3) = (db.begin(), db.begin());
        let t2 = t2.run_blocked(|t2| t2.insert("k5", &row("a5", "b1", "")));
        let t3 = t3.run_blocked(|t3| t3.insert("k6", &row("a6", "new", "")));
        if commit {
            t1.commit()
        } else {
            t1.rollback()
        }
        let ((t2, r2), (t3, r3)) = (t2.finish(), t3.finish());
        assert_eq!((r2.is_ok(), r3.is_ok()), (commit, !commit));
        t2.commit();
        t3.commit();
        db.check(false);
        db.purge_all();
        assert_eq!(db.check(true).len(), 3);
    }
}

#[test]
fn an_insert_waits_for_the_transaction_that_has_the_key() {
    let db = numbered(1);
    let mut t1 = db.begin();
    t1.insert("new", &row("a", "t1", "")).unwrap();
    let t2 = db.begin().run_blocked(|t2| t2.insert("new", &row("a", "t2", "")));
    t1.rollback();
    let (t2, inserted) = t2.finish();
    inserted.unwrap();
    let t3 = db.begin().run_blocked(|t3| t3.insert("new", &row("a", "t3", "")));
    t2.commit();
    assert!(is_duplicate(t3.finish().1));
    assert_eq!(db.check(false).len(), 2);
}

#[test]
fn waiters_are_served_in_order() {
    let db = numbered(1);
    let mut t1 = db.begin();
    set(&mut t1, "k0", "1").unwrap();
    let t2 = db.begin().run_blocked(|t2| t2.get_with("k0", LockMode::Exclusive));
    let t3 = db.begin().run_blocked(|t3| t3.get_with("k0", LockMode::Shared));
    let t4 = db.begin().run_blocked(|t4| t4.get_with("k0", LockMode::Shared));
    t1.commit();
    let (t2, seen) = t2.finish();
    assert_eq!(seen.unwrap().unwrap().rest, b"1");
    t3.await_block();
    t2.commit();
    let ((t3, _), (t4, _)) = (t3.finish(), t4.finish());
    t3.commit();
    t4.commit();
    assert!(db.system.locks.is_empty());
}

#[test]
fn a_deadlock_of_two_costs_the_cheaper_one() {
    let db = numbered(4);
    let (mut t1, mut t2) = (db.begin(), db.begin());
    set(&mut t1, "k2", "weight").unwrap();
    set(&mut t1, "k0", "t1").unwrap();
    set(&mut t2, "k1", "t2").unwrap();
    let t2 = t2.run_blocked(|t2| set(t2, "k0", "t2"));
    // t1 closes the cycle; t2 has written less.
    assert!(set(&mut t1, "k1", "t1").unwrap());
    let (mut t2, result) = t2.finish();
    assert!(matches!(result, Err(Error::Deadlock)));
    assert!(t2.txn().check_active().is_err());
    assert!(matches!(t2.insert("k9", &row("", "", "")), Err(Error::Usage(_))));
    t2.rollback();
    t1.commit();
    let rests: Vec<_> = db.check(false).into_values().map(|row| String::from_utf8(row.rest).unwrap()).collect();
    assert_eq!(rests, ["t1", "t1", "weight", ""]);
    assert_eq!(db.parts.ctx.stats.deadlocks.get(), 1);
    assert!(db.system.locks.is_empty());
}

#[test]
fn a_deadlock_of_three_is_found() {
    let db = numbered(3);
    let mut sessions: Vec<_> = (0..3).map(|_| db.begin()).collect();
    for (i, session) in sessions.iter_mut().enumerate() {
        set(session, &format!("k{i}"), "own").unwrap();
    }
    let mut t2 = sessions.pop().unwrap();
    let t1 = sessions.pop().unwrap().run_blocked(|t1| set(t1, "k2", "t1"));
    let t0 = sessions.pop().unwrap().run_blocked(|t0| set(t0, "k1", "t0"));
    // Equal weights: the one that closes the cycle goes.
    assert!(matches!(set(&mut t2, "k0", "t2"), Err(Error::Deadlock)));
    drop(t2);
    let (t1, result) = t1.finish();
    assert!(result.unwrap());
    t1.commit();
    let (t0, result) = t0.finish();
    assert!(result.unwrap());
    t0.commit();
    let rests: Vec<_> = db.check(false).into_values().map(|row| String::from_utf8(row.rest).unwrap()).collect();
    assert_eq!(rests, ["own", "t0", "t1"]);
}

#[test]
fn two_upgrades_of_a_shared_lock_deadlock() {
    let db = numbered(1);
    let (mut t1, mut t2) = (db.begin(), db.begin());
    t1.get_with("k0", LockMode::Shared).unwrap();
    t2.get_with("k0", LockMode::Shared).unwrap();
    let t1 = t1.run_blocked(|t1| set(t1, "k0", "t1"));
    assert!(matches!(set(&mut t2, "k0", "t2"), Err(Error::Deadlock)));
    let (t1, result) = t1.finish();
    assert!(result.unwrap());
    t1.commit();
}

#[test]
fn locked_ranges_keep_inserts_out_under_repeatable_read() {
    let db = numbered(10);
    let range = (b"k3".to_vec(), b"k6".to_vec());
    let scan = |lock| ScanOptions {
        lower: Bound::Included(&range.0),
        upper: Bound::Excluded(&range.1),
        lock,
        ..ScanOptions::default()
    };
    let mut t1 = db.begin();
    assert_eq!(t1.scan(&scan(LockMode::Shared)).unwrap().len(), 3);
    let mut t2 = db.begin_with(impatient());
    t2.insert("k2x", &row("", "", "")).unwrap();
    t2.insert("k6x", &row("", "", "")).unwrap();
    assert!(matches!(t2.insert("k4x", &row("", "", "")), Err(Error::LockWaitTimeout)));
    // The owner of the range may insert.
    t1.insert("k4y", &row("", "", "")).unwrap();
    let t3 = db.begin().run_blocked(|t3| t3.insert("k5x", &row("", "", "")));
    t1.commit();
    t3.finish().1.unwrap();
    let mut t1 = db.read_committed();
    assert_eq!(t1.scan(&scan(LockMode::Exclusive)).unwrap().len(), 4);
    t2.insert("k3x", &row("", "", "")).unwrap();
    t2.commit();
    t1.commit();
    assert!(db.system.locks.is_empty());
}

#[test]
fn locked_ranges_of_an_index_keep_entries_out() {
    let db = numbered(10);
    let range = entries_of("a4");
    for reverse in [false, true] {
        let mut t1 = db.begin();
        let options = ScanOptions { lock: LockMode::Exclusive, reverse, ..by(0, &range) };
        assert_eq!(t1.scan(&options).unwrap(), ["k4"]);
        let mut t2 = db.begin_with(impatient());
        assert!(matches!(t2.insert("n", &row("a4", "", "")), Err(Error::LockWaitTimeout)));
        assert!(matches!(t2.update("k1", &row("a4", "b1", "")), Err(Error::LockWaitTimeout)));
        assert!(matches!(set(&mut t2, "k4", "x"), Err(Error::LockWaitTimeout)));
        t2.insert("n", &row("a40", "", "")).unwrap();
        assert!(set(&mut t2, "k5", "free").unwrap());
        t2.rollback();
        t1.rollback();
    }
    db.check(false);
}

#[test]
fn a_missing_row_can_be_locked() {
    let db = numbered(1);
    let mut t1 = db.begin();
    assert!(t1.get_with("new", LockMode::Exclusive).unwrap().is_none());
    let t2 = db.begin().run_blocked(|t2| t2.insert("new", &row("t2", "", "")));
    t1.insert("new", &row("t1", "", "")).unwrap();
    t1.commit();
    assert!(is_duplicate(t2.finish().1));
    // Both look for the row, both want to insert it: one of them must give way.
    let (mut t1, mut t2) = (db.begin(), db.begin());
    assert!(!t1.delete("other").unwrap());
    assert!(!t2.delete("other").unwrap());
    let t1 = t1.run_blocked(|t1| t1.insert("other", &row("t1", "", "")));
    assert!(matches!(t2.insert("other", &row("t2", "", "")), Err(Error::Deadlock)));
    t1.finish().1.unwrap();
}

#[test]
fn a_queue_at_the_end_of_a_range_takes_its_first_row() {
    // What TPC-C's delivery does: the oldest row, locked, then deleted.
    let db = numbered(5);
    let first = ScanOptions { lock: LockMode::Exclusive, limit: 1, ..ScanOptions::default() };
    let mut t1 = db.begin();
    assert_eq!(t1.scan(&first).unwrap(), ["k0"]);
    t1.delete("k0").unwrap();
    let t2 = db.begin().run_blocked(|t2| {
        let first = ScanOptions { lock: LockMode::Exclusive, limit: 1, ..ScanOptions::default() };
        t2.scan(&first)
    });
    let mut t3 = db.begin_with(impatient());
    t3.insert("k7", &row("", "", "")).unwrap();
    t3.commit();
    t1.commit();
    let (t2, found) = t2.finish();
    assert_eq!(found.unwrap(), ["k1"]);
    t2.commit();
}
