//! Transactions that run again, tables opened or created, snapshots that share a point in time, durability of a commit.

use crate::support::{add, memory, memory_with, open, options, patient, people};
use crate::testing::by_id;
use highwater::config::{FlushLog, PageSize};
use highwater::{Database, Error, Isolation, Options, TxnOptions, Type, values};
use highwater_storage::StorageSet;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// A table with two counters.
fn counters(db: &Database) -> highwater::Table {
    let table = db.create_table("counters", by_id().column("n", Type::I64)).unwrap();
    db.transact(|txn| {
        txn.insert(&table, &values![1, 0])?;
        txn.insert(&table, &values![2, 0])
    })
    .unwrap();
    table
}

/// Two threads lock the two rows in opposite orders: each meets deadlocks, and no increment is lost.
#[test]
fn a_transaction_that_met_a_deadlock_runs_again() {
    let db = patient();
    let table = counters(&db);
    let attempts = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for order in [[1, 2], [2, 1]] {
            let (db, table, attempts) = (&db, &table, &attempts);
            scope.spawn(move || {
                for _ in 0..200 {
                    db.transact(|txn| {
                        attempts.fetch_add(1, Relaxed);
                        for id in order {
                            assert!(txn.modify(table, &values![id], |row, set| set.put(1, row.i64(1) + 1))?);
                            std::thread::yield_now();
                        }
                        Ok(())
                    })
                    .unwrap();
                }
            });
        }
    });
    let mut read = db.snapshot().unwrap();
    for id in [1, 2] {
        assert_eq!(read.get(&table, &values![id]).unwrap().unwrap().i64(1), 400);
    }
    assert!(attempts.load(Relaxed) >= 400);
}

#[test]
fn an_error_that_would_come_again_ends_it_and_leaves_nothing() {
    let db = memory();
    let table = counters(&db);
    let mut runs = 0;
    let error = db
        .transact(|txn| {
            runs += 1;
            txn.insert(&table, &values![3, 0])?;
            txn.insert(&table, &values![1, 0])
        })
        .unwrap_err();
    assert!(matches!(error, Error::DuplicateKey { .. }) && !error.is_retryable() && runs == 1);
    assert_eq!(db.snapshot().unwrap().get(&table, &values![3]).unwrap(), None);
}

#[test]
fn a_conflict_is_tried_again_until_it_is_gone_or_often_enough() {
    let db = memory_with(Options { lock_wait_timeout_ms: 1, ..options() });
    let table = counters(&db);
    let options = TxnOptions { first_committer_wins: true, ..TxnOptions::default() };
    let mut runs = 0;
    let done = db.transact_with(&options, |txn| {
        runs += 1;
        let row = txn.get(&table, &values![1])?.unwrap();
        if runs < 4 {
            // Somebody else is faster.
            db.transact(|other| other.update(&table, &values![1], &[(1, (10 * runs).into())])).unwrap();
        }
        txn.update(&table, &values![1], &[(1, (row.i64(1) + 1).into())])
    });
    assert!(done.unwrap() && runs == 4);
    assert_eq!(db.snapshot().unwrap().get(&table, &values![1]).unwrap().unwrap().i64(1), 31);

    let mut holder = db.begin().unwrap();
    holder.get_for_update(&table, &values![2]).unwrap();
    let mut runs = 0;
    let error = db.transact(|txn| {
        runs += 1;
        txn.delete(&table, &values![2])
    });
    assert!(matches!(error, Err(Error::LockWaitTimeout)) && runs == 1, "{runs}");
    let mut runs = 0;
    let error: Result<(), Error> = db.transact(|_| {
        runs += 1;
        Err(Error::Deadlock)
    });
    assert!(matches!(error, Err(Error::Deadlock)) && runs == 100, "{runs}");
}

/// An error of an application, of which no call of the engine knows.
#[derive(Debug)]
struct Opaque(String);

impl From<Error> for Opaque {
    fn from(error: Error) -> Opaque {
        Opaque(error.to_string())
    }
}

#[test]
fn what_a_transaction_met_is_known_whatever_error_its_closure_returns() {
    let db = memory();
    let table = counters(&db);
    // The caller's own error ends it, and nothing of it stays.
    let mut runs = 0;
    let refused = db.try_transact(|txn| {
        runs += 1;
        txn.insert(&table, &values![3, 0])?;
        Err::<(), _>(Opaque("no".into()))
    });
    assert!(matches!(refused, Err(Opaque(text)) if text == "no") && runs == 1);
    assert_eq!(db.snapshot().unwrap().get(&table, &values![3]).unwrap(), None);
    // A conflict leads to another run, also where the closure has made another error of it.
    let options = TxnOptions { first_committer_wins: true, ..TxnOptions::default() };
    let attempt = db.try_transact_with(&options, |txn| {
        txn.get(&table, &values![1])?;
        if txn.attempt() < 3 {
            db.transact(|other| other.modify(&table, &values![1], |row, set| set.put("n", row.i64("n") + 1)))?;
        }
        txn.update(&table, &values![1], &[("n", 50.into())]).map_err(|_| Opaque("hidden".into()))?;
        Ok::<_, Opaque>(txn.attempt())
    });
    assert_eq!(attempt.unwrap(), 3);
    assert_eq!(db.snapshot().unwrap().get(&table, &values![1]).unwrap().unwrap().i64("n"), 50);
    // An error that others would not have caused ends it at once, whatever it is made of.
    let mut runs = 0;
    let refused = db.try_transact(|txn| {
        runs += 1;
        Ok::<_, Opaque>(txn.insert(&table, &values![1, 0])?)
    });
    assert!(refused.is_err_and(|error| error.0.contains("duplicate key")) && runs == 1);
}

/// The victim of a deadlock: its closure hides what happened, and says that it is done.
#[test]
fn a_transaction_that_a_deadlock_has_undone_is_never_done() {
    let db = memory();
    let table = counters(&db);
    let together = std::sync::Barrier::new(2);
    let runs = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for order in [[1, 2], [2, 1]] {
            let (db, table, together, runs) = (&db, &table, &together, &runs);
            scope.spawn(move || {
                let patient = TxnOptions { lock_wait_timeout_ms: Some(60_000), ..TxnOptions::default() };
                let done = db.try_transact_with(&patient, |txn| {
                    runs.fetch_add(1, Relaxed);
                    for (n, id) in order.into_iter().enumerate() {
                        // Its errors are lost.
                        let lost = txn.modify(table, &values![id], |row, set| set.put("n", row.i64("n") + 1));
                        assert!(matches!(lost, Ok(true) | Err(Error::Deadlock | Error::Usage(_))), "{lost:?}");
                        if n == 0 && txn.attempt() == 1 {
                            together.wait();
                        }
                    }
                    Ok::<_, Opaque>(())
                });
                done.unwrap();
            });
        }
    });
    assert!(runs.load(Relaxed) >= 3);
    let mut read = db.snapshot().unwrap();
    assert_eq!([1, 2].map(|id| read.get(&table, &values![id]).unwrap().unwrap().i64("n")), [2, 2]);
}

#[test]
fn a_table_is_opened_or_created() {
    let db = patient();
    let columns = || by_id().auto_increment("id").nullable("x", Type::U8);
    let schema = || columns().index("by_x", &["x"]);
    assert!(!db.has_table("t"));
    let table = db.table_or_create("t", schema()).unwrap();
    assert!(db.has_table("t"));
    add_one(&db, &table);
    db.create_index("t", "more", &["x", "id"], false).unwrap();
    let again = db.table_or_create("t", schema()).unwrap();
    assert_eq!(db.snapshot().unwrap().scan(&again).count().unwrap(), 1);
    for (other, what) in [
        (schema().index("another", &["x"]), "no index another, and the index another (x) was asked for"),
        (by_id(), "column x (u8, nullable), and no column was asked for"),
        (by_id().nullable("x", Type::U8), "the auto-increment column id, and none was asked for"),
        (columns().unique_index("by_x", &["x"]), "the index by_x (x), and the unique index by_x (x) was asked for"),
    ] {
        let error = db.table_or_create("t", other).unwrap_err();
        assert!(matches!(error, Error::Schema(_)) && error.to_string().contains(what), "{error}");
    }
    // Many at once: one creates it, and all get it.
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| add_one(&db, &db.table_or_create("u", schema()).unwrap()));
        }
    });
    assert_eq!(db.snapshot().unwrap().scan(&db.table("u").unwrap()).count().unwrap(), 8);
}

fn add_one(db: &Database, table: &highwater::Table) {
    db.transact(|txn| txn.insert(table, &values![null, 1])).unwrap();
}

#[test]
fn two_transactions_share_a_snapshot_whatever_commits_between() {
    let db = memory();
    let table = people(&db);
    for n in 0..50 {
        add(&db, &table, &format!("last{n}"), "a", None);
    }
    let mut read = db.snapshot().unwrap();
    let mut other = read.same_snapshot().unwrap();
    for id in 1..=50 {
        db.transact(|txn| txn.update(&table, &values![id], &[(2, "changed".into())])).unwrap();
    }
    add(&db, &table, "late", "b", None);
    db.create_index("people", "by_first", &["first"], false).unwrap();
    let mut third = other.same_snapshot().unwrap();
    drop(other);
    let (mut rows, mut seen) = (read.scan(&table).iter().unwrap(), 0);
    while let Some(row) = rows.next_ref().unwrap() {
        let again = third.get(&table, &values![row.u64(0)]).unwrap().unwrap();
        assert_eq!((row.str(2), again.str(2)), ("a", "a"));
        seen += 1;
    }
    drop(rows);
    assert_eq!((seen, third.scan(&table).count().unwrap()), (50, 50));
    // An index that is younger than the snapshot lacks its rows, for the copies too.
    assert!(matches!(third.scan(&table).index("by_first").count(), Err(Error::Usage(_))));
    assert_eq!(third.scan(&table).index("by_name").rev().first().unwrap().unwrap().str(1), "last9");
    assert_eq!(db.snapshot().unwrap().scan(&table).limit(7).count().unwrap(), 7);
    // On another thread, after the first is gone.
    drop(read);
    std::thread::scope(|scope| {
        let counted = scope.spawn(|| third.scan(&table).count().unwrap());
        assert_eq!(counted.join().unwrap(), 50);
    });
}

/// A commit that does not wait leaves its redo unsynced; within seconds, or with the next commit that waits, it is.
#[test]
fn a_commit_waits_for_its_redo_as_the_transaction_says() {
    let db = memory();
    let table = counters(&db);
    let commit = |flush_log, n: i64| {
        let options = TxnOptions { flush_log_at_trx_commit: flush_log, ..TxnOptions::default() };
        db.transact_with(&options, |txn| txn.update(&table, &values![1], &[(1, n.into())])).unwrap();
    };
    let after_a_cut = |seed| {
        let db = db.after_power_cut(seed);
        let table = db.table("counters").unwrap();
        db.snapshot().unwrap().get(&table, &values![1]).unwrap().unwrap().i64(1)
    };
    commit(None, 1);
    assert_eq!(after_a_cut(0), 1);
    for flush_log in [FlushLog::EverySecond, FlushLog::Write] {
        // The log's thread syncs once a second, perhaps just now.
        let is_unsynced = |n: &i64| {
            let syncs = db.stats().log_syncs;
            commit(Some(flush_log), *n);
            db.stats().log_syncs == syncs
        };
        let n = (2..50).find(is_unsynced).unwrap_or_else(|| panic!("{flush_log:?}: each commit is synced"));
        let since = Instant::now();
        while after_a_cut(0) != n {
            assert!(since.elapsed() < Duration::from_secs(30), "{flush_log:?}: it is synced once a second");
            std::thread::sleep(Duration::from_millis(50));
        }
        commit(Some(FlushLog::EverySecond), n + 1);
        commit(Some(FlushLog::Sync), n + 2);
        assert_eq!(after_a_cut(0), n + 2);
    }
}

#[test]
fn another_page_size_than_the_database_has_is_refused() {
    let storage = StorageSet::memory();
    open(&storage).close().unwrap();
    let asking = |page_size| Database::open_storage(storage.clone(), Options { page_size, ..options() });
    let error = asking(PageSize::Bytes(8192)).err().unwrap();
    assert!(matches!(&error, Error::BadOption { option, .. } if option == "page-size"), "{error}");
    assert!(error.to_string().contains("8192") && error.to_string().contains("4096"), "{error}");
    asking(PageSize::Auto).unwrap().close().unwrap();
    asking(PageSize::Bytes(4096)).unwrap().close().unwrap();
}

#[test]
fn serializable_transactions_run_again_until_they_fit() {
    let db = patient();
    let table = counters(&db);
    let options = TxnOptions { isolation: Isolation::Serializable, ..TxnOptions::default() };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let add = |txn: &mut highwater::WriteTxn| {
                        let n = txn.get(&table, &values![1])?.unwrap().i64(1);
                        txn.update(&table, &values![1], &[(1, (n + 1).into())])
                    };
                    db.transact_with(&options, add).unwrap();
                }
            });
        }
    });
    assert_eq!(db.snapshot().unwrap().get(&table, &values![1]).unwrap().unwrap().i64(1), 200);
}
