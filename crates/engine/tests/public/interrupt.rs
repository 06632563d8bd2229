//! Calls that another thread interrupts.

use crate::support::{memory_with, options, sound};
use crate::testing::{TestDb, by_id};
use highwater::{
    BuildProgress, Database, Error, InterruptHandle, Isolation, Options, Result, Table, TxnOptions, Type, WriteTxn,
    values,
};
use std::ops::ControlFlow;
use std::thread;
use std::time::{Duration, Instant};

const ROWS: u64 = 2_000;

fn database() -> (TestDb, Table) {
    let db = memory_with(Options { lock_wait_timeout_ms: 60_000, ..options() });
    let table = db.create_table("t", by_id().column("n", Type::U64).index("by_n", &["n"])).unwrap();
    db.transact(|txn| txn.insert_many(&table, (0..ROWS).map(|n| values![n * 10, n]))).unwrap();
    (db, table)
}

/// A call that waits for a lock.
type Wait<'w> = dyn Fn(&mut WriteTxn) -> Result<()> + 'w;

fn is_interrupted<T>(result: Result<T>) -> bool {
    matches!(result, Err(Error::Interrupted))
}

fn begin(db: &Database, isolation: Isolation) -> WriteTxn {
    db.begin_with(TxnOptions { isolation, ..TxnOptions::default() }).unwrap()
}

/// Interrupts when this many wait for a lock.
fn interrupt_when_waiting(db: &Database, handle: InterruptHandle) -> thread::JoinHandle<()> {
    let (db, before) = (db.clone(), db.stats().row_lock_waits);
    thread::spawn(move || {
        while db.stats().row_lock_waits == before {
            thread::yield_now();
        }
        thread::sleep(Duration::from_millis(2));
        handle.interrupt();
    })
}

#[test]
fn a_wait_for_a_lock_ends_at_once_and_the_transaction_goes_on() {
    for isolation in Isolation::ALL {
        let (db, table) = database();
        let mut holder = db.begin().unwrap();
        holder.update(&table, &values![10], &[(1, 7.into())]).unwrap();
        assert!(holder.get_for_update(&table, &values![15]).unwrap().is_none());
        let (mut txn, begin) = (begin(&db, isolation), Instant::now());
        txn.insert(&table, &values![1, 1]).unwrap();
        let handle = txn.interrupt_handle();
        let waits: [&Wait<'_>; 4] = [
            &|txn| txn.delete(&table, &values![10]).map(drop),
            &|txn| txn.get_for_share(&table, &values![10]).map(drop),
            &|txn| txn.insert(&table, &values![15, 15]).map(drop),
            &|txn| txn.scan(&table).for_update().count().map(drop),
        ];
        for wait in waits {
            let other = interrupt_when_waiting(&db, handle.clone());
            assert!(is_interrupted(wait(&mut txn)));
            other.join().unwrap();
            // It comes before the wait.
            handle.interrupt();
            assert!(handle.is_pending() && is_interrupted(wait(&mut txn)) && !handle.is_pending());
        }
        assert!(begin.elapsed() < Duration::from_secs(30), "they waited for their timeouts");
        // A call that does not wait keeps the interruption; it is cleared on request.
        handle.interrupt();
        txn.update(&table, &values![1], &[(1, 2.into())]).unwrap();
        assert!(handle.is_pending());
        handle.clear();
        holder.rollback().unwrap();
        txn.update(&table, &values![10], &[(1, 8.into())]).unwrap();
        txn.commit().unwrap();
        let mut read = db.snapshot().unwrap();
        assert_eq!(read.get(&table, &values![10]).unwrap().unwrap().u64(1), 8);
        assert!(read.get(&table, &values![1]).unwrap().is_some() && read.get(&table, &values![15]).unwrap().is_none());
        drop(read);
        sound(&db);
    }
}

#[test]
fn scans_and_insertions_of_many_rows_end_at_their_next_step() {
    for isolation in Isolation::ALL {
        let (db, table) = database();
        let mut txn = begin(&db, isolation);
        let handle = txn.interrupt_handle();
        for index in ["PRIMARY", "by_n"] {
            let mut seen = 0;
            let mut rows = txn.scan(&table).index(index).iter().unwrap();
            let error = loop {
                match rows.next().unwrap() {
                    Ok(_) => seen += 1,
                    Err(error) => break error,
                }
                if seen == 100 {
                    handle.interrupt();
                }
            };
            assert!(matches!(error, Error::Interrupted) && seen < 1000, "{seen}");
            assert!(rows.next().is_none());
            handle.interrupt();
            assert!(is_interrupted(txn.scan(&table).index(index).count()));
            let mut visited = 0;
            let looked = txn.scan(&table).index(index).visit(|_| {
                visited += 1;
                if visited == 50 {
                    handle.interrupt();
                }
                ControlFlow::Continue(())
            });
            assert!(is_interrupted(looked) && (50..1000).contains(&visited), "{visited}");
        }
        let new = (0..5_000u64).map(|n| {
            if n == 100 {
                handle.interrupt();
            }
            values![n * 10 + 1, n]
        });
        assert!(is_interrupted(txn.insert_many(&table, new)));
        assert_eq!(txn.scan(&table).count().unwrap(), ROWS, "none of them was inserted");
        txn.commit().unwrap();
        sound(&db);
    }
}

#[test]
fn a_snapshot_is_interrupted_and_keeps_what_it_sees() {
    let (db, table) = database();
    let mut read = db.snapshot().unwrap();
    assert_eq!(read.scan(&table).count().unwrap(), ROWS);
    db.transact(|txn| txn.delete(&table, &values![0])).unwrap();
    let handle = read.interrupt_handle();
    handle.interrupt();
    assert!(is_interrupted(read.scan(&table).count()));
    assert_eq!(read.scan(&table).count().unwrap(), ROWS);
}

/// The memory of a transaction is used by the next one; a handle of the first does not reach it.
#[test]
fn a_handle_does_not_outlive_its_transaction() {
    let (db, table) = database();
    let mut txn = db.begin().unwrap();
    let handle = txn.interrupt_handle();
    txn.commit().unwrap();
    handle.interrupt();
    for _ in 0..10 {
        let mut txn = db.begin().unwrap();
        assert_eq!(txn.scan(&table).count().unwrap(), ROWS);
        handle.interrupt();
        assert_eq!(txn.scan(&table).for_update().count().unwrap(), ROWS);
        txn.commit().unwrap();
    }
}

/// Whatever waits for a table: a schema change for transactions, a transaction for a schema change, and one that would
/// write for an index build.
#[test]
fn waits_for_a_table_end_at_once() {
    let (db, table) = database();
    let handle = db.interrupt_handle();
    let changes = db.with_interrupt(&handle);
    let mut reader = db.snapshot().unwrap();
    reader.get(&table, &values![0]).unwrap();
    let begin = Instant::now();
    let dropped = {
        let changes = changes.clone();
        thread::spawn(move || changes.drop_table("t"))
    };
    let of_newcomer = db.interrupt_handle();
    let barred = {
        let (table, newcomers) = (table.clone(), db.with_interrupt(&of_newcomer));
        // The schema change bars others in turns: some pass.
        thread::spawn(move || {
            loop {
                if let Err(error) = newcomers.begin().unwrap().get(&table, &values![0]) {
                    break error;
                }
            }
        })
    };
    thread::sleep(Duration::from_millis(20));
    of_newcomer.interrupt();
    assert!(matches!(barred.join().unwrap(), Error::Interrupted));
    handle.interrupt();
    assert!(is_interrupted(dropped.join().unwrap()));
    assert!(begin.elapsed() < Duration::from_secs(30), "they waited for their timeouts");
    drop(reader);
    assert!(db.has_table("t"));
    sound(&db);
}

#[test]
fn an_index_build_ends_at_its_next_step_and_leaves_nothing() {
    let (db, table) = database();
    let handle = db.interrupt_handle();
    let changes = db.with_interrupt(&handle);
    handle.interrupt();
    assert!(is_interrupted(changes.create_index("t", "again", &["n"], false)));
    assert!(!handle.is_pending());
    assert!(matches!(db.drop_index("t", "again"), Err(Error::NoSuchIndex { .. })));
    // While rows are read, and while entries are written.
    let parts: [fn(BuildProgress) -> bool; 2] = [|at| at.entries == 0, |at| at.entries > 0];
    for part in parts {
        let mut when = |progress| {
            if part(progress) {
                handle.interrupt();
            }
            Ok(())
        };
        let built = changes.create_index_with_progress("t", "again", &["n"], false, &mut when);
        assert!(is_interrupted(built));
        handle.clear();
        assert!(matches!(db.drop_index("t", "again"), Err(Error::NoSuchIndex { .. })));
    }
    changes.create_index("t", "again", &["n"], true).unwrap();
    assert_eq!(db.snapshot().unwrap().scan(&table).index("again").count().unwrap(), ROWS);
    // Transactions of such a handle are interrupted with it.
    let mut txn = changes.begin().unwrap();
    handle.interrupt();
    assert!(is_interrupted(txn.scan(&table).count()));
    txn.commit().unwrap();
    sound(&db);
}
