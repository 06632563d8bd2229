//! Checks and schema changes while transactions wait for each other: none waits until a timeout.

use crate::support::*;
use crate::testing::{TestDb, by_id};
use highwater::{Database, Error, Isolation, Options, Table, TxnOptions, Type, values};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// Far longer than anything here takes.
const TIMEOUT: Duration = Duration::from_secs(60);

fn patient() -> TestDb {
    memory_with(Options { lock_wait_timeout_ms: TIMEOUT.as_millis() as u64, ..options() })
}

/// Two tables with the rows (1, 0) and (2, 0).
fn tables(db: &Database) -> [Table; 2] {
    ["a", "b"].map(|name| {
        let table = db.create_table(name, by_id().column("n", Type::U64)).unwrap();
        db.transact(|txn| txn.insert_many(&table, [values![1u64, 0u64], values![2u64, 0u64]])).unwrap();
        table
    })
}

/// Runs `call` on a thread; gives it time to begin to wait.
fn concurrently<R: Send + 'static>(
    db: &Database,
    call: impl FnOnce(&Database) -> R + Send + 'static,
) -> thread::JoinHandle<(R, Duration)> {
    let db = db.clone();
    let begin = Instant::now();
    let thread = thread::spawn(move || (call(&db), begin.elapsed()));
    thread::sleep(Duration::from_millis(50));
    thread
}

fn is_sound(db: &Database) {
    assert!(db.check().unwrap().is_sound());
}

/// The transaction holds a table that the check waits for, and needs one that the check would keep it out of.
#[test]
fn a_check_lets_a_transaction_over_two_tables_end() {
    let db = patient();
    let [a, b] = tables(&db);
    for repairs in [false, true] {
        let mut txn = db.begin().unwrap();
        txn.update(&b, &values![1], &[(1, 7u64.into())]).unwrap();
        let check = concurrently(&db, move |db| match repairs {
            true => assert!(db.repair_indexes(&mut |_, _| {}).unwrap().found.is_sound()),
            false => is_sound(db),
        });
        let begin = Instant::now();
        txn.update(&a, &values![1], &[(1, 7u64.into())]).unwrap();
        assert!(!check.is_finished());
        txn.commit().unwrap();
        let ((), waited) = check.join().unwrap();
        assert!(waited + begin.elapsed() < TIMEOUT / 2, "{waited:?}");
    }
}

/// A row that one transaction has locked, and not written, is waited for by one that has written.
#[test]
fn a_check_lets_a_transaction_that_others_wait_for_write() {
    let db = patient();
    let [a, b] = tables(&db);
    for isolation in [Isolation::RepeatableRead, Isolation::Serializable] {
        let mut locker = db.begin_with(TxnOptions { isolation, ..TxnOptions::default() }).unwrap();
        match isolation {
            Isolation::Serializable => assert!(locker.get(&a, &values![1]).unwrap().is_some()),
            _ => assert!(locker.get_for_update(&a, &values![1]).unwrap().is_some()),
        }
        let (a_there, b_there) = (a.clone(), b.clone());
        let writer = concurrently(&db, move |db| {
            db.transact(|txn| {
                txn.update(&b_there, &values![1], &[(1, 8u64.into())])?;
                txn.update(&a_there, &values![1], &[(1, 8u64.into())])
            })
        });
        let check = concurrently(&db, is_sound);
        locker.update(&b, &values![2], &[(1, 8u64.into())]).unwrap();
        locker.commit().unwrap();
        assert!(writer.join().unwrap().0.unwrap());
        assert!(check.join().unwrap().1 < TIMEOUT / 2);
    }
}

/// Transactions that lock and then write follow each other without a gap; the check comes nevertheless.
#[test]
fn a_check_gets_its_turn_among_transactions() {
    let db = patient();
    let [a, _] = tables(&db);
    let is_checked = Arc::new(AtomicBool::new(false));
    let busy: Vec<_> = (1..=2u64)
        .map(|id| {
            let (db, a, is_checked) = (db.clone(), a.clone(), is_checked.clone());
            thread::spawn(move || {
                let begin = Instant::now();
                while !is_checked.load(Relaxed) && begin.elapsed() < TIMEOUT {
                    let mut txn = db.begin().unwrap();
                    txn.get_for_update(&a, &values![id]).unwrap();
                    txn.update(&a, &values![id], &[(1, 9u64.into())]).unwrap();
                    thread::sleep(Duration::from_millis(2));
                    txn.commit().unwrap();
                }
            })
        })
        .collect();
    let ((), waited) = concurrently(&db, is_sound).join().unwrap();
    is_checked.store(true, Relaxed);
    assert!(waited < TIMEOUT / 2, "{waited:?}");
    busy.into_iter().for_each(|thread| thread.join().unwrap());
}

/// While a check runs rows can be read, and locked.
#[test]
fn rows_can_be_locked_while_a_check_is_at_work() {
    let db = memory();
    let [a, b] = tables(&db);
    let other = db.clone();
    let mut looks = 0;
    let report = db.check_with(&mut |_, _| {
        looks += 1;
        let options = TxnOptions { isolation: Isolation::Serializable, ..TxnOptions::default() };
        let mut txn = other.begin_with(options).unwrap();
        assert!(txn.get(&a, &values![1]).unwrap().is_some());
        assert!(txn.get_for_update(&b, &values![1]).unwrap().is_some());
        assert!(matches!(txn.update(&b, &values![1], &[(1, 5u64.into())]), Err(Error::LockWaitTimeout)));
    });
    assert!(report.unwrap().is_sound() && looks > 0);
    db.transact(|txn| txn.update(&b, &values![1], &[(1, 6u64.into())])).unwrap();
}

/// A thread that has a transaction open calls for a schema change while a check waits for that transaction.
#[test]
fn a_check_lets_a_schema_change_of_a_thread_that_it_waits_for_go_first() {
    let db = patient();
    let [a, _] = tables(&db);
    let mut txn = db.begin().unwrap();
    txn.update(&a, &values![1], &[(1, 1u64.into())]).unwrap();
    let check = concurrently(&db, is_sound);
    let begin = Instant::now();
    db.create_table("c", by_id()).unwrap();
    assert!(begin.elapsed() < TIMEOUT / 2, "{:?}", begin.elapsed());
    txn.commit().unwrap();
    check.join().unwrap();
}

/// A reader that stays open delays a schema change, and no other transaction for long.
#[test]
fn transactions_pass_a_schema_change_that_waits_for_an_idle_reader() {
    let db = patient();
    let [a, _] = tables(&db);
    let mut idle = db.snapshot().unwrap();
    idle.get(&a, &values![1]).unwrap();
    let impatient = db.with_lock_wait_timeout(Duration::from_secs(4));
    let drops = concurrently(&impatient, |db| db.drop_table("a"));
    let mut longest = Duration::ZERO;
    while !drops.is_finished() {
        let begin = Instant::now();
        db.transact(|txn| txn.update(&a, &values![1], &[(1, 1u64.into())])).unwrap();
        db.snapshot().unwrap().get(&a, &values![1]).unwrap();
        longest = longest.max(begin.elapsed());
    }
    let (dropped, waited) = drops.join().unwrap();
    assert!(matches!(dropped, Err(Error::LockWaitTimeout)), "{dropped:?}");
    assert!(longest < waited / 2, "{longest:?} of {waited:?}");
    drop(idle);
    db.drop_table("a").unwrap();
}

/// The timeout of a handle is that of its transactions too, unless they have one of their own.
#[test]
fn a_handle_has_a_timeout_of_its_own() {
    let db = patient();
    let [a, _] = tables(&db);
    let mut holder = db.begin().unwrap();
    holder.update(&a, &values![1], &[(1, 1u64.into())]).unwrap();
    let impatient = db.with_lock_wait_timeout(Duration::from_millis(20));
    let own = TxnOptions { lock_wait_timeout_ms: Some(10), ..TxnOptions::default() };
    for mut txn in [impatient.begin().unwrap(), impatient.begin_with(own).unwrap()] {
        let updated = txn.update(&a, &values![1], &[(1, 2u64.into())]);
        assert!(matches!(updated, Err(Error::LockWaitTimeout)));
    }
    for waited in [
        impatient.check().map(drop),
        impatient.create_index("a", "by_n", &["n"], false),
        impatient.drop_table("a"),
        impatient.repair_indexes(&mut |_, _| {}).map(drop),
    ] {
        assert!(matches!(waited, Err(Error::LockWaitTimeout)), "{waited:?}");
    }
    holder.rollback().unwrap();
    impatient.check().unwrap();
}
