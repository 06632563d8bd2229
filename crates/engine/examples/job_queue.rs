//! A queue of jobs in a table: several workers take jobs with SKIP LOCKED while a producer adds more. A job is done
//! once even if a worker dies: what a worker does to a job, and that the job is done, are one transaction.
//!
//! ```text
//! cargo run --release --example job_queue
//! ```

use highwater::{Database, Options, Result, Schema, Table, Type, values};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

const JOBS: u64 = 2_000;
const WORKERS: u64 = 4;

/// Takes the oldest job that no other worker has, and does it; false if there is none. A worker that stops before the
/// commit leaves the job to the others.
fn work(db: &Database, jobs: &Table, results: &Table, worker: u64, dies: bool) -> Result<bool> {
    let mut txn = db.begin()?;
    let Some(job) = txn.scan(jobs).for_update().skip_locked().first()? else { return Ok(false) };
    txn.insert(results, &values![job.u64(0), worker, job.u64(1) * job.u64(1)])?;
    txn.delete(jobs, &values![job.u64(0)])?;
    if dies {
        return Ok(true); // the transaction is rolled back
    }
    txn.commit()?;
    Ok(true)
}

fn main() -> Result<()> {
    let folder = tempfile::tempdir().expect("a folder for the database");
    let db = Database::open(folder.path(), Options::default())?;
    let jobs = Schema::new().column("id", Type::U64).auto_increment("id").column("number", Type::U64);
    let jobs = db.create_table("jobs", jobs.primary_key(&["id"]))?;
    let results = Schema::new().column("job", Type::U64).column("worker", Type::U64).column("square", Type::U64);
    let results = db.create_table("results", results.primary_key(&["job"]))?;

    let (produced, deaths) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let producer = scope.spawn(|| {
            let added = (0..JOBS).try_for_each(|n| db.transact(|txn| txn.insert(&jobs, &values![null, n]).map(drop)));
            produced.store(true, Relaxed);
            added
        });
        let serve = |worker: u64| -> Result<u64> {
            let mut turns = 0;
            loop {
                let is_last = produced.load(Relaxed);
                let dies = turns % 100 == 99;
                match work(&db, &jobs, &results, worker, dies)? {
                    true => turns += 1,
                    false if is_last => return Ok(turns),
                    false => thread::sleep(Duration::from_millis(1)),
                }
                deaths.fetch_add(u64::from(dies), Relaxed);
            }
        };
        let workers: Vec<_> = (0..WORKERS).map(|worker| scope.spawn(move || serve(worker))).collect();
        for (number, worker) in workers.into_iter().enumerate() {
            println!("worker {number} took {} jobs", worker.join().expect("it does not panic")?);
        }
        producer.join().expect("it does not panic")
    })?;
    let mut read = db.snapshot()?;
    println!("{} results, {} deaths", read.scan(&results).count()?, deaths.load(Relaxed));
    assert_eq!((read.scan(&results).count()?, read.scan(&jobs).count()?), (JOBS, 0));
    Ok(())
}
