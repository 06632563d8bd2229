//! A queue of jobs: workers take rows with SKIP LOCKED, producers add them meanwhile.

use crate::support::{memory, sound};
use crate::testing::by_id;
use highwater::{Database, Error, Isolation, LockWait, Result, Schema, Table, TxnOptions, Type, WriteTxn, values};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

const JOBS: u64 = 120;
const WORKERS: u64 = 4;

/// job: id, state | done: the job, and who did it.
fn tables(db: &Database) -> (Table, Table) {
    let jobs = by_id().auto_increment("id").column("state", Type::Text(8)).index("by_state", &["state"]);
    let jobs = db.create_table("job", jobs).unwrap();
    let done = Schema::new().column("job", Type::U64).column("worker", Type::U64).primary_key(&["job"]);
    (jobs, db.create_table("done", done).unwrap())
}

fn level(isolation: Isolation) -> TxnOptions {
    TxnOptions { isolation, ..TxnOptions::default() }
}

/// Takes a job and does it, in one transaction; false if there is none that is free.
fn work(txn: &mut WriteTxn, (jobs, done): &(Table, Table), worker: u64) -> Result<bool> {
    let free = txn.scan(jobs).index("by_state").prefix(&values!["ready"]).for_update().skip_locked().first()?;
    let Some(job) = free else { return Ok(false) };
    // A job that was done already is a duplicate.
    txn.insert(done, &values![job.u64(0), worker])?;
    txn.update(jobs, &values![job.u64(0)], &[(1, "done".into())])?;
    Ok(true)
}

fn produce(db: &Database, (jobs, _): &(Table, Table), isolation: Isolation) {
    for _ in 0..JOBS {
        loop {
            let mut txn = db.begin_with(level(isolation)).unwrap();
            if isolation != Isolation::Serializable {
                txn.set_lock_wait(LockWait::NoWait);
            }
            match txn.insert(jobs, &values![null, "ready"]) {
                Ok(_) => break txn.commit().unwrap(),
                Err(error) if isolation == Isolation::Serializable && error.is_retryable() => {}
                Err(error) => panic!("a producer waits for workers: {error}"),
            }
        }
    }
}

/// Works until all jobs are done; in every fifth transaction the worker dies.
fn serve(db: &Database, tables: &(Table, Table), isolation: Isolation, worker: u64, finished: &AtomicU32) {
    let mut turn = worker;
    while u64::from(finished.load(Relaxed)) < JOBS {
        turn += 1;
        let mut txn = db.begin_with(level(isolation)).unwrap();
        match work(&mut txn, tables, worker) {
            Ok(true) if turn.is_multiple_of(5) => drop(txn),
            Ok(true) => {
                txn.commit().unwrap();
                finished.fetch_add(1, Relaxed);
            }
            Ok(false) => thread::sleep(Duration::from_micros(200)),
            Err(error) if isolation == Isolation::Serializable && error.is_retryable() => {}
            Err(error) => panic!("{isolation:?}: {error}"),
        }
    }
}

#[test]
fn each_job_is_done_once_though_workers_die() {
    for isolation in Isolation::ALL {
        let db = memory();
        let (tables, finished) = (tables(&db), AtomicU32::new(0));
        thread::scope(|scope| {
            scope.spawn(|| produce(&db, &tables, isolation));
            let (db, tables, finished) = (&db, &tables, &finished);
            (0..WORKERS).for_each(|worker| drop(scope.spawn(move || serve(db, tables, isolation, worker, finished))));
        });
        let mut read = db.snapshot().unwrap();
        assert_eq!(read.scan(&tables.1).count().unwrap(), JOBS, "{isolation:?}");
        assert_eq!(read.scan(&tables.0).index("by_state").prefix(&values!["done"]).count().unwrap(), JOBS);
        drop(read);
        assert_eq!(db.stats().row_lock_timeouts, 0);
        sound(&db);
    }
}

/// The machine loses power while workers have jobs: what they had is free afterwards, what they did stays done.
#[test]
fn after_a_power_cut_the_jobs_in_work_are_free() {
    for seed in 0..6 {
        let db = memory();
        let tables = tables(&db);
        db.transact(|txn| txn.insert_many(&tables.0, (0..20u64).map(|_| values![null, "ready"]))).unwrap();
        for worker in 0..5 {
            assert!(db.transact(|txn| work(txn, &tables, worker)).unwrap());
        }
        let mut in_work: Vec<_> = (0..5).map(|_| db.begin().unwrap()).collect();
        for (txn, worker) in in_work.iter_mut().zip(5..) {
            assert!(work(txn, &tables, worker).unwrap());
        }
        let after = db.after_power_cut(seed);
        let tables = (after.table("job").unwrap(), after.table("done").unwrap());
        let mut left = 0;
        while after.transact(|txn| work(txn, &tables, 99)).unwrap() {
            left += 1;
        }
        assert_eq!(left, 15);
        sound(&after);
    }
}

#[test]
fn a_table_that_is_being_changed_is_not_waited_for() {
    let db = memory();
    let (jobs, _) = tables(&db);
    let mut reader = db.snapshot().unwrap();
    reader.scan(&jobs).count().unwrap();
    let remover = db.with_lock_wait_timeout(Duration::from_secs(20));
    let removed = thread::spawn(move || remover.drop_table("job"));
    let refused = loop {
        let mut txn = db.begin().unwrap();
        let found = txn.scan(&jobs).for_update().nowait().first();
        if let Err(error) = found {
            break error;
        }
    };
    assert!(matches!(&refused, Error::LockNotAvailable { table, index: None } if table == "job"), "{refused}");
    assert_eq!(refused.to_string(), "table job is locked by another transaction, and the statement does not wait");
    drop(reader);
    removed.join().unwrap().unwrap();
}
