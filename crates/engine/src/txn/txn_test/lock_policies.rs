//! What statements do about locks of other transactions: NOWAIT, SKIP LOCKED, timeouts, rows that are locked one by
//! one.

use super::*;
use crate::lock::{LockMode, LockWait};
use std::time::{Duration, Instant};

fn settings() -> Vec<TxnOptions> {
    let level = |isolation| TxnOptions { isolation, ..TxnOptions::default() };
    Isolation::ALL.into_iter().map(level).collect()
}

/// Rows 0 to 9; the column with an index descends.
fn ten() -> Db {
    let db = Db::new();
    let rows: Vec<_> = (0..10).map(|n| (n.to_string(), row(&format!("a{}", 9 - n), &format!("u{n}"), "x"))).collect();
    db.fill(&rows.iter().map(|(key, row)| (key.as_str(), row.clone())).collect::<Vec<_>>());
    db
}

/// A transaction that has locked rows in every way.
fn holder(db: &Db) -> Session {
    let mut holder = db.read_committed();
    holder.update("1", &row("a8", "u1", "y")).unwrap();
    assert!(holder.delete("3").unwrap());
    assert!(holder.get_with("5", LockMode::Exclusive).unwrap().is_some());
    assert!(holder.get_with("7", LockMode::Shared).unwrap().is_some());
    holder.insert("75", &row("a1x", "u75", "")).unwrap();
    holder
}

fn skipping<'k>(lock: LockMode) -> ScanOptions<'k> {
    ScanOptions { lock, lock_wait: Some(LockWait::SkipLocked), one_by_one: true, ..ScanOptions::default() }
}

fn done(db: &Db) {
    assert!(db.system.locks.is_empty());
    db.purge_all();
    db.check(true);
}

#[test]
fn a_skipping_scan_returns_exactly_the_rows_that_others_have_not_locked() {
    for options in settings() {
        let db = ten();
        let holder = holder(&db);
        for (lock, free) in [(LockMode::Exclusive, "024689"), (LockMode::Shared, "0246789")] {
            for (index, reverse) in [(None, false), (None, true), (Some(0), false), (Some(0), true)] {
                let mut worker = db.begin_with(options.clone());
                let found = worker.scan(&ScanOptions { index, reverse, ..skipping(lock) }).unwrap();
                let mut right: Vec<String> = free.chars().map(String::from).collect();
                if reverse != index.is_some() {
                    right.reverse();
                }
                assert_eq!(found, right, "{options:?} {lock:?} {index:?}");
                worker.commit();
            }
        }
        holder.commit();
        done(&db);
    }
}

#[test]
fn a_row_that_is_skipped_is_not_locked() {
    for options in settings() {
        let db = ten();
        let holder = holder(&db);
        let mut worker = db.begin_with(options);
        worker.scan(&skipping(LockMode::Exclusive)).unwrap();
        holder.rollback();
        let mut next = db.read_committed();
        next.txn().lock_wait = LockWait::NoWait;
        for key in ["1", "3", "5", "7"] {
            assert!(next.delete(key).unwrap(), "{key}");
        }
        for key in ["0", "2", "9"] {
            assert!(matches!(next.delete(key), Err(Error::LockNotAvailable { .. })), "{key}");
        }
        worker.commit();
        next.commit();
        done(&db);
    }
}

/// An insertion into the range of a skipping scan waits under SERIALIZABLE only.
#[test]
fn a_skipping_scan_locks_ranges_under_serializable_only() {
    for options in settings() {
        let db = ten();
        let holder = holder(&db);
        let mut worker = db.begin_with(options.clone());
        assert_eq!(worker.scan(&skipping(LockMode::Exclusive)).unwrap().len(), 6);
        assert!(worker.get_with("66", LockMode::None).unwrap().is_none());
        let get = |worker: &mut Session| {
            let own = Some(LockWait::SkipLocked);
            let txn = worker.txn.as_mut().unwrap();
            let op = |txn: &mut Txn| {
                let op = RowOp { system: &db.system, txn, table: &*db.table, key: b"77" };
                op.get(LockMode::Exclusive, Wanted::ALL, &mut vec![])
            };
            txn.with_lock_wait(own, op).unwrap()
        };
        assert!(!get(&mut worker));
        let mut inserter = db.read_committed();
        inserter.txn().lock_wait = LockWait::NoWait;
        for key in ["00", "45", "77", "99"] {
            let inserted = inserter.insert(key, &row(key, key, ""));
            let is_refused = matches!(inserted, Err(Error::LockNotAvailable { .. }));
            assert_eq!(is_refused, options.isolation == Isolation::Serializable, "{options:?} {key} {inserted:?}");
        }
        inserter.commit();
        worker.commit();
        holder.commit();
        done(&db);
    }
}

#[test]
fn a_skipping_get_finds_no_row_that_is_locked() {
    for options in settings() {
        let db = ten();
        let holder = holder(&db);
        let mut worker = db.begin_with(options);
        worker.txn().lock_wait = LockWait::SkipLocked;
        let mut found = String::new();
        for key in ["0", "1", "3", "5", "7", "75", "8"] {
            if worker.get_with(key, LockMode::Exclusive).unwrap().is_some() {
                found += key;
            }
        }
        assert_eq!(found, "08");
        assert!(worker.get_with("7", LockMode::Shared).unwrap().is_some());
        // A write has nothing to skip.
        assert!(matches!(worker.update("1", &row("a", "b", "")), Err(Error::LockNotAvailable { .. })));
        worker.commit();
        holder.commit();
        done(&db);
    }
}

#[test]
fn nowait_names_table_and_index_and_undoes_the_statement_only() {
    for options in settings() {
        let db = ten();
        let holder = holder(&db);
        let mut ranges = db.begin();
        let range = entries_of("a5x");
        assert!(ranges.scan(&ScanOptions { lock: LockMode::Shared, ..by(0, &range) }).unwrap().is_empty());
        let mut txn = db.begin_with(TxnOptions { lock_wait_timeout_ms: Some(60_000), ..options });
        txn.txn().lock_wait = LockWait::NoWait;
        txn.insert("97", &row("a97", "u97", "kept")).unwrap();
        let begin = Instant::now();
        let of = |result: Result<bool>| match result {
            Err(Error::LockNotAvailable { table, index }) => (table, index.unwrap()),
            other => panic!("{other:?}"),
        };
        let name = |index: &str| (db.table.name().to_string(), index.to_string());
        assert_eq!(of(txn.delete("1")), name("PRIMARY"));
        assert_eq!(of(txn.update("5", &row("a4", "u5", ""))), name("PRIMARY"));
        assert_eq!(of(txn.get_with("7", LockMode::Exclusive).map(|row| row.is_some())), name("PRIMARY"));
        assert_eq!(of(txn.insert("98", &row("a5x", "u98", "")).map(|()| true)), name(db.table.index_name(0)));
        // The unique value is of a row that another transaction has changed.
        assert_eq!(of(txn.insert("98", &row("a98", "u75", "")).map(|()| true)), name("PRIMARY"));
        let all = ScanOptions { lock: LockMode::Exclusive, ..ScanOptions::default() };
        assert_eq!(of(txn.scan(&all).map(|_| true)), name("PRIMARY"));
        assert!(begin.elapsed() < Duration::from_secs(50), "it waited for its timeout");
        txn.commit();
        holder.commit();
        ranges.commit();
        assert!(db.begin().get("97").is_some() && db.begin().get("98").is_none());
        done(&db);
    }
}

#[test]
fn a_timeout_of_a_scan_is_that_of_its_waits_only() {
    for options in settings() {
        let db = ten();
        let holder = holder(&db);
        let mut txn = db.begin_with(options);
        let short = Some(LockWait::Timeout(Duration::from_millis(2)));
        let scan = ScanOptions { lock: LockMode::Exclusive, lock_wait: short, ..ScanOptions::default() };
        assert!(matches!(txn.scan(&scan), Err(Error::LockWaitTimeout)));
        let blocked = txn.run_blocked(|txn| txn.delete("5").unwrap());
        std::thread::sleep(Duration::from_millis(10));
        holder.commit();
        blocked.finish().0.commit();
        done(&db);
    }
}

#[test]
fn one_by_one_no_row_is_locked_that_was_not_asked_for() {
    for options in settings() {
        for (index, reverse) in [(None, false), (None, true), (Some(0), false), (Some(0), true)] {
            let db = ten();
            let mut txn = db.begin_with(options.clone());
            let scan =
                ScanOptions { lock: LockMode::Exclusive, one_by_one: true, index, reverse, ..ScanOptions::default() };
            let mut cursor = txn.cursor(&scan).unwrap();
            let mut seen = Vec::new();
            for _ in 0..5 {
                assert!(txn.next(&mut cursor).unwrap());
                seen.push(String::from_utf8(cursor.key().to_vec()).unwrap());
            }
            let mut other = db.read_committed();
            let free = other.scan(&skipping(LockMode::Exclusive)).unwrap();
            let right: Vec<String> = (0..10).map(|n| n.to_string()).filter(|key| !seen.contains(key)).collect();
            assert_eq!(free, right, "{index:?} {reverse}");
            other.commit();
            txn.commit();
            done(&db);
        }
    }
}

/// Also one that comes before the wait.
#[test]
fn an_interruption_ends_one_wait_and_undoes_one_statement() {
    for options in settings() {
        let db = ten();
        let holder = holder(&db);
        let mut txn = db.begin_with(TxnOptions { lock_wait_timeout_ms: Some(20_000), ..options });
        let interrupt = txn.txn().interrupt.get_or_insert_default().clone();
        txn.insert("97", &row("a97", "u97", "kept")).unwrap();
        let begin = Instant::now();
        let running = txn.run_blocked(|txn| txn.update("5", &row("a", "b", "")));
        interrupt.raise();
        db.parts.ctx.poison.wake_interrupted();
        let (mut txn, waited) = running.finish();
        assert!(matches!(waited, Err(Error::Interrupted)), "{waited:?}");
        interrupt.raise();
        assert!(matches!(txn.delete("1"), Err(Error::Interrupted)));
        assert!(begin.elapsed() < Duration::from_secs(15), "it waited for its timeout");
        holder.commit();
        assert!(txn.delete("1").unwrap());
        txn.commit();
        assert!(db.begin().get("97").is_some());
        done(&db);
    }
}

#[test]
fn reads_of_a_statement_see_one_moment() {
    for options in settings() {
        let db = ten();
        let mut txn = db.begin_with(options.clone());
        txn.txn().begin_statement().unwrap();
        let first = (txn.get("1"), txn.keys().len());
        if options.isolation != Isolation::Serializable {
            db.fill(&[("77", row("a77", "u77", ""))]);
            let mut other = db.read_committed();
            other.update("1", &row("a1", "u1", "new")).unwrap();
            other.commit();
        }
        let second = (txn.get("1"), txn.keys().len());
        assert_eq!(first == second, options.isolation != Isolation::ReadUncommitted, "{options:?}");
        db.system.end_statement(txn.txn(), true).unwrap();
        txn.commit();
        done(&db);
    }
}
