//! What row and range locks cost: hand-over of one hot row, upserts that lock what is absent, memory and release of
//! many locks.
//!
//! `cargo bench -p highwater --bench locks`. In memory, so that nothing but the engine is measured. The hot row: one
//! session holds it until all others wait, then each takes it and releases it; the time of one hand-over is that of all
//! by their number. `cargo test` runs each part once with small numbers, so that it keeps working.

use highwater::config::FlushLog;
use highwater::{Database, Isolation, Options, Result, Schema, Table, TxnOptions, Type, values};
use highwater_storage::StorageSet;
use std::process::exit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// Long enough for every wait there is here.
const TIMEOUT_MS: u64 = 3_600_000;
/// After this time the benchmark gives up on sessions that do not all wait, or were not all served.
const GIVE_UP: Duration = Duration::from_secs(60);
const STACK_BYTES: usize = 256 << 10;
const ROWS_A_LOAD: u64 = 10_000;

struct Sizes {
    sessions: &'static [usize],
    upserts: u64,
    locks: u64,
    pool_bytes: u64,
    log_bytes: u64,
}

const FULL: Sizes = Sizes {
    sessions: &[16, 1_000, 5_000],
    upserts: 20_000,
    locks: 500_000,
    pool_bytes: 128 << 20,
    log_bytes: 64 << 20,
};
const SMALL: Sizes = Sizes { sessions: &[4], upserts: 50, locks: 200, pool_bytes: 4 << 20, log_bytes: 4 << 20 };

fn main() {
    let sizes = if std::env::args().any(|arg| arg == "--bench") { FULL } else { SMALL };
    // First, while no memory has been released that it could take again unseen.
    many_locks(&sizes);
    for isolation in [Isolation::ReadCommitted, Isolation::RepeatableRead] {
        let took = upserts(&sizes, isolation);
        println!(
            "{} upserts of absent rows in one transaction, {isolation:?}: {:.3} s",
            sizes.upserts,
            took.as_secs_f64()
        );
    }
    for &sessions in sizes.sessions {
        match hot_row(&sizes, sessions) {
            Some((begun, served)) => println!(
                "one hot row, {sessions} sessions: all wait after {:.3} s, then {:.1} us a hand-over",
                begun.as_secs_f64(),
                served.as_secs_f64() * 1e6 / sessions as f64
            ),
            None => {
                println!("one hot row, {sessions} sessions: not done after {} s", GIVE_UP.as_secs());
                // The sessions still run.
                exit(0);
            }
        }
    }
}

fn table(sizes: &Sizes) -> (Database, Table) {
    let options = Options {
        buffer_pool_size: sizes.pool_bytes,
        log_file_size: sizes.log_bytes,
        log_buffer_size: 1 << 20,
        flush_log_at_trx_commit: FlushLog::EverySecond,
        ..Options::default()
    };
    let db = Database::open_storage(StorageSet::memory(), options).expect("memory can be opened");
    let schema = Schema::new().column("id", Type::U64).column("v", Type::Text(40)).primary_key(&["id"]);
    let table = db.create_table("t", schema).expect("the name is free");
    (db, table)
}

fn load(db: &Database, table: &Table, rows: u64) -> Result<()> {
    for from in (0..rows).step_by(ROWS_A_LOAD as usize) {
        let mut txn = db.begin()?;
        for id in from..rows.min(from + ROWS_A_LOAD) {
            txn.insert(table, &values![id, "x"])?;
        }
        txn.commit()?;
    }
    Ok(())
}

/// How long "update, and insert if it was not there" takes for this many new keys in one transaction.
fn upserts(sizes: &Sizes, isolation: Isolation) -> Duration {
    let (db, table) = table(sizes);
    let started = Instant::now();
    let mut txn = db.begin_with(TxnOptions { isolation, ..TxnOptions::default() }).expect("the database is open");
    for id in 0..sizes.upserts {
        if !txn.update(&table, &values![id], &[(1, "y".into())]).expect("there is no other lock") {
            txn.insert(&table, &values![id, "x"]).expect("the row was absent");
        }
    }
    txn.commit().expect("memory does not fail");
    started.elapsed()
}

/// Resident memory of this process, in bytes.
fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}

fn count(rows: impl Iterator<Item = Result<highwater::Row>>) -> Result<u64> {
    rows.map(|row| row.map(|_| 1)).sum()
}

/// Locks the rows of a table in a scan, then releases them, while another session takes and releases a lock of its
/// own.
fn many_locks(sizes: &Sizes) {
    let rows = sizes.locks;
    let (db, table) = table(sizes);
    load(&db, &table, rows + 1).expect("the table has room");
    // Every page is in the pool before memory is looked at.
    let mut read = db.snapshot().expect("the database is open");
    assert_eq!(
        count(read.scan(&table).iter().expect("a table can be scanned")).expect("memory does not fail"),
        rows + 1
    );
    drop(read);
    let before = resident_bytes();
    let started = Instant::now();
    let mut txn = db.begin().expect("the database is open");
    let all = txn.scan(&table).to_exclusive(&values![rows]).for_update().iter().expect("a table can be scanned");
    assert_eq!(count(all).expect("there is no other lock"), rows);
    let (locked, bytes) = (started.elapsed(), resident_bytes().saturating_sub(before));
    let stop = AtomicBool::new(false);
    let (released, longest) = thread::scope(|scope| {
        let other = scope.spawn(|| {
            let mut longest = Duration::ZERO;
            while !stop.load(Relaxed) {
                let started = Instant::now();
                let mut txn = db.begin().expect("the database is open");
                txn.get_for_update(&table, &values![rows]).expect("there is no other lock on this row");
                txn.rollback().expect("memory does not fail");
                longest = longest.max(started.elapsed());
            }
            longest
        });
        let started = Instant::now();
        txn.rollback().expect("memory does not fail");
        let released = started.elapsed();
        stop.store(true, Relaxed);
        (released, other.join().expect("the other session has no bug"))
    });
    println!(
        "{rows} row locks: taken in {:.3} s, {} bytes each, released in {:.3} s; another session's lock and release \
         meanwhile: at most {:.1} ms; {} bytes a lock still resident afterwards",
        locked.as_secs_f64(),
        bytes / rows,
        released.as_secs_f64(),
        longest.as_secs_f64() * 1e3,
        resident_bytes().saturating_sub(before) / rows
    );
}

/// This many sessions wait for one row and take it one after another: how long until all wait, and then until all had
/// it. `None` if they are not done in time.
fn hot_row(sizes: &Sizes, sessions: usize) -> Option<(Duration, Duration)> {
    let (db, table) = table(sizes);
    load(&db, &table, 1).expect("the table has room");
    let mut first = db.begin().expect("the database is open");
    first.get_for_update(&table, &values![0]).expect("there is no other lock");
    let served = Arc::new(AtomicUsize::new(0));
    let started = Instant::now();
    for _ in 0..sessions {
        let (db, table, served) = (db.clone(), table.clone(), served.clone());
        let session = move || {
            let options = TxnOptions { lock_wait_timeout_ms: Some(TIMEOUT_MS), ..TxnOptions::default() };
            let mut txn = db.begin_with(options).expect("the database is open");
            txn.get_for_update(&table, &values![0]).expect("everybody is served");
            drop(txn);
            served.fetch_add(1, Relaxed);
        };
        thread::Builder::new().stack_size(STACK_BYTES).spawn(session).expect("the system allows this many threads");
    }
    wait_until(started, || db.stats().row_lock_waits as usize >= sessions)?;
    let begun = started.elapsed();
    let started = Instant::now();
    drop(first);
    wait_until(started, || served.load(Relaxed) == sessions)?;
    Some((begun, started.elapsed()))
}

fn wait_until(since: Instant, done: impl Fn() -> bool) -> Option<()> {
    while !done() {
        if since.elapsed() > GIVE_UP {
            return None;
        }
        thread::sleep(Duration::from_micros(200));
    }
    Some(())
}
