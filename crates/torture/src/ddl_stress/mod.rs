//! The load that the crash test runs concurrently with TPC-C: schema changes, writers that have read before, and large
//! transactions.
//!
//! Threads: `WRITERS` that read a table, wait a little, then write it; one whose every transaction changes all rows of
//! another table; `WIDE_WRITERS` that change rows of a table whose indexes do not fit the pool; one that creates and
//! drops indexes on the first two, and whole tables; one that flushes the log; one that changes options (`options`);
//! those of `tables`, which rename a table and change its columns while a writer runs, and compact the data file;
//! `EXPIRING_WRITERS` that change a table whose rows expire and its twin, whose rows do not (`expiring`). Both log
//! their changes, and a consumer follows them (`change_copy`).
//!
//! Rules
//! 1. Writers commit through an `Acknowledger`, as TPC-C's clients do; their client numbers follow TPC-C's.
//! 2. Every large transaction gives all rows one generation. So after any crash all rows have the same one.
//! 3. Transactions have any level of isolation.
//! 4. Calls that make everything durable (flushes of the log and schema changes) are recorded (`DurableCalls`).
//! 5. Work that fails because of another transaction, a schema change or a full disk is retried; any other error ends
//!    the run.

mod change_copy;
mod expiring;
mod options;
mod readers;
mod table_shape;
mod tables;
mod wide_index;

pub use change_copy::ChangeCopy;
pub use readers::read_snapshots;

use fastrand::Rng;
use highwater::{Database, Isolation, Schema, Table, TxnOptions, Type, WriteTxn, values};
use highwater_bench::store::Store;
use highwater_bench::store::embedded::Embedded;
use highwater_bench::workload::open_table;
use highwater_bench::workload::random::rng;
use highwater_bench::workload::tpcc::acknowledge::Acknowledger;
use highwater_bench::workload::tpcc::losses::DurableCalls;
use highwater_bench::{Error, Result};
use options::change_option;
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tables::TableChanger;

/// Threads that read, then write.
const WRITERS: u64 = 3;
/// Threads that change random rows of large indexes.
const WIDE_WRITERS: u64 = 2;
/// Threads that change the table whose rows expire.
const EXPIRING_WRITERS: u64 = 2;
/// Number of clients that it has in the record of acknowledged commits.
pub const CLIENTS: u64 = WRITERS + 1 + WIDE_WRITERS + EXPIRING_WRITERS;

/// The writers' table: id, a, b. Half of its ids have no row.
const SIDE: &str = "torture_side";
const SIDE_IDS: u64 = 600;
/// The large transactions' table: id, generation, filler.
pub(super) const LARGE: &str = "torture_large";
const LARGE_ROWS: u64 = 3000;
const FILLER_BYTES: usize = 400;

/// The additional load of one process.
#[derive(Clone, Debug)]
pub struct DdlStress {
    /// Folder of the record of acknowledged commits.
    pub acknowledgements: PathBuf,
    /// Its first client number in that record.
    pub first_client: u64,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Options that the user has set, which are not changed.
    pub given_options: Vec<String>,
}

/// Creates the tables unless they exist.
///
/// # Errors
/// The store's.
pub fn prepare(store: &Embedded) -> Result<()> {
    wide_index::prepare(store)?;
    expiring::prepare(store)?;
    if store.table(LARGE)?.is_some() {
        return Ok(());
    }
    let db = store.database();
    let schema = Schema::new().column("id", Type::U64).column("a", Type::U64).column("b", Type::U64);
    let side = db.create_table(SIDE, schema.primary_key(&["id"]).index("by_b", &["b"]))?;
    let mut txn = db.begin()?;
    for id in (0..SIDE_IDS).step_by(2) {
        txn.insert(&side, &values![id, id, id])?;
    }
    txn.commit()?;
    let schema =
        Schema::new().column("id", Type::U64).column("generation", Type::U64).column("filler", Type::Text(1000));
    let large = db.create_table(LARGE, schema.primary_key(&["id"]))?;
    let mut txn = db.begin()?;
    for id in 0..LARGE_ROWS {
        txn.insert(&large, &values![id, 0, ""])?;
    }
    Ok(txn.commit()?)
}

/// The problems of the tables after a crash, one line each; `folder` has the record.
///
/// # Errors
/// The store's.
pub fn verify(store: &Embedded, folder: &Path) -> Result<Vec<String>> {
    Ok([of_large(store)?, tables::verify(store.database(), folder, false)?].concat())
}

/// The same check after a crash that may have lost the last commits. If there is no problem, the record continues from
/// the database's contents.
///
/// # Errors
/// The store's, or a record that cannot be written.
pub fn accept_losses(store: &Embedded, folder: &Path) -> Result<Vec<String>> {
    let problems = tables::verify(store.database(), folder, true)?;
    if problems.is_empty() {
        TableChanger::open(store.database(), folder)?;
    }
    Ok(problems)
}

fn of_large(store: &Embedded) -> Result<Vec<String>> {
    let large = open_table(store, LARGE)?;
    let mut read = store.database().snapshot()?;
    let generations = read.scan(&large).iter()?.map(|row| Ok(row?.u64(1))).collect::<Result<Vec<_>>>()?;
    let mut problems = expiring::verify(store.database())?;
    if generations.len() as u64 != LARGE_ROWS {
        problems.push(format!("table {LARGE} has {} rows, not {LARGE_ROWS}", generations.len()));
    }
    if let Some(other) = generations.iter().find(|one| **one != generations[0]) {
        problems.push(format!("half of a transaction: rows of table {LARGE} are of {} and of {other}", generations[0]));
    }
    Ok(problems)
}

/// Whether work continues after this error.
fn is_passing(error: &Error) -> bool {
    use highwater::Error as Engine;
    let Error::Engine(engine) = error else { return error.is_retryable() };
    engine.is_retryable()
        || matches!(engine, Engine::DuplicateKey { .. } | Engine::DiskFull { .. } | Engine::Schema(_))
        || matches!(engine, Engine::NoSuchTable { .. } | Engine::NoSuchIndex { .. } | Engine::TableExists { .. })
        || matches!(engine, Engine::TableDropped { .. } | Engine::TableChanged { .. })
}

impl DdlStress {
    /// Runs until the process ends, or an error.
    ///
    /// # Errors
    /// The first error that is not temporary; [`Error::Data`] when the record of acknowledged commits contradicts the
    /// database.
    pub fn run(&self, store: &Embedded) -> Result<()> {
        let db = store.database();
        let failure = Mutex::new(None);
        let others = |first, clients| {
            let open = |n| Acknowledger::open(store, &self.acknowledgements, self.first_client + first + n);
            (0..clients).map(open).collect::<Result<Vec<_>>>()
        };
        let writers = others(0, WRITERS)?;
        let large = Acknowledger::open(store, &self.acknowledgements, self.first_client + WRITERS)?;
        let wide = others(WRITERS + 1, WIDE_WRITERS)?;
        let expiring = others(WRITERS + 1 + WIDE_WRITERS, EXPIRING_WRITERS)?;
        let durable = DurableCalls::open(&self.acknowledgements)?;
        let mut changer = TableChanger::open(db, &self.acknowledgements)?;
        let tables = [open_table(store, SIDE)?, open_table(store, LARGE)?, open_table(store, wide_index::WIDE)?];
        std::thread::scope(|scope| {
            for (n, mut ack) in (0..).zip(writers) {
                let (table, mut random) = (&tables[0], rng(self.seed, 1 << 40 | n));
                scope.spawn(until_failed(&failure, move || read_then_write(db, table, &mut ack, &mut random)));
            }
            for (n, mut ack) in (0..).zip(wide) {
                let (table, mut random) = (&tables[2], rng(self.seed, 4 << 40 | n));
                scope.spawn(until_failed(&failure, move || wide_index::change(db, table, &mut ack, &mut random)));
            }
            for (n, mut ack) in (0..).zip(expiring) {
                let mut random = rng(self.seed, 6 << 40 | n);
                scope.spawn(until_failed(&failure, move || expiring::change(db, &mut ack, &mut random)));
            }
            let (table, mut ack, mut random) = (&tables[1], large, rng(self.seed, 2 << 40));
            scope.spawn(until_failed(&failure, move || change_all(db, table, &mut ack, &mut random)));
            let durable = &durable;
            for (n, work) in (0..).zip([change_schemas, flush]) {
                let mut random = rng(self.seed, 3 << 40 | n);
                scope.spawn(until_failed(&failure, move || work(db, durable, &mut random)));
            }
            let mut random = rng(self.seed, 8 << 40);
            scope.spawn(until_failed(&failure, move || changer.change(db, durable, &mut random)));
            let (given, mut random) = (&self.given_options, rng(self.seed, 7 << 40));
            scope.spawn(until_failed(&failure, move || change_option(db, given, &mut random)));
            for (n, work) in (0..).zip([tables::write, tables::compact]) {
                let mut random = rng(self.seed, 5 << 40 | n);
                scope.spawn(until_failed(&failure, move || work(db, &mut random)));
            }
        });
        failure.into_inner().map_or(Ok(()), Err)
    }
}

/// Repeats `work` until it, or that of another thread, fails for good; the first failure stays in `failure`.
fn until_failed(failure: &Mutex<Option<Error>>, mut work: impl FnMut() -> Result<()>) -> impl FnOnce() {
    move || {
        while failure.lock().is_none() {
            match work() {
                Err(error) if is_passing(&error) => std::thread::sleep(Duration::from_millis(1)),
                Err(error) => {
                    failure.lock().get_or_insert(error);
                }
                Ok(()) => {}
            }
        }
    }
}

pub(super) fn begin(db: &Database, random: &mut Rng) -> Result<WriteTxn> {
    let isolation = Isolation::ALL[random.usize(..Isolation::ALL.len())];
    Ok(db.begin_with(TxnOptions { isolation, ..TxnOptions::default() })?)
}

/// Usually commits, sometimes rolls back.
pub(super) fn end(txn: WriteTxn, ack: &mut Acknowledger<Table>, random: &mut Rng) -> Result<()> {
    if random.u32(..5) == 0 {
        return Ok(txn.rollback()?);
    }
    txn.commit()?;
    ack.acknowledged()
}

fn read_then_write(db: &Database, table: &Table, ack: &mut Acknowledger<Table>, random: &mut Rng) -> Result<()> {
    let mut txn = begin(db, random)?;
    match random.u32(..3) {
        0 => drop(txn.get(table, &values![random.u64(..SIDE_IDS)])?),
        1 => drop(txn.get_for_update(table, &values![random.u64(..SIDE_IDS)])?),
        _ => txn.scan(table).limit(50).iter()?.try_for_each(|row| row.map(drop))?,
    }
    std::thread::sleep(Duration::from_micros(random.u64(..5000)));
    let before = txn.savepoint();
    for _ in 0..random.u32(1..6) {
        let (id, a) = (random.u64(..SIDE_IDS), random.u64(..200));
        let done = match random.u32(..4) {
            0 => txn.delete(table, &values![id]).map(drop),
            1 => txn.insert(table, &values![id, a, a]).map(drop),
            2 => txn.update(table, &values![id], &[(1, a.into()), (2, id.into())]).map(drop),
            _ => txn.update(table, &values![id], &[(0, random.u64(..SIDE_IDS).into())]).map(drop),
        };
        match done {
            Err(highwater::Error::DuplicateKey { .. }) | Ok(()) => {}
            Err(error) => return Err(error.into()),
        }
        if random.u32(..10) == 0 {
            txn.rollback_to(before)?;
        }
    }
    ack.mark(&mut txn)?;
    end(txn, ack, random)
}

/// Gives every row the next generation and another length; every tenth row is deleted and inserted.
fn change_all(db: &Database, table: &Table, ack: &mut Acknowledger<Table>, random: &mut Rng) -> Result<()> {
    let mut txn = begin(db, random)?;
    let row =
        txn.get_for_update(table, &values![0])?.ok_or_else(|| Error::Data(format!("table {LARGE} has no row 0")))?;
    let (generation, filler) = (row.u64(1) + 1, "x".repeat(random.usize(..FILLER_BYTES)));
    for id in 0..LARGE_ROWS {
        if id % 10 == 5 {
            txn.delete(table, &values![id])?;
            txn.insert(table, &values![id, generation, filler.as_str()])?;
        } else {
            txn.update(table, &values![id], &[(1, generation.into()), (2, filler.as_str().into())])?;
        }
    }
    ack.mark(&mut txn)?;
    end(txn, ack, random)
}

/// One schema change. An index or a table that a crash left is dropped by a later change.
fn change_schemas(db: &Database, durable: &DurableCalls, random: &mut Rng) -> Result<()> {
    match random.u32(..7) {
        0 => durable.call(|| db.create_index(SIDE, "by_a", &["a", "id"], random.bool()))?,
        1 => durable.call(|| db.drop_index(SIDE, "by_a"))?,
        2 => durable.call(|| db.create_index(LARGE, "by_generation", &["generation"], false))?,
        3 => durable.call(|| db.drop_index(LARGE, "by_generation"))?,
        4 => {
            let schema = Schema::new().column("id", Type::U64).column("x", Type::Text(1000));
            let schema = schema.primary_key(&["id"]).index("by_x", &["x"]);
            let table = durable.call(|| db.create_table("torture_brief", schema))?;
            let mut txn = db.begin()?;
            let text = "y".repeat(300);
            for id in 0..random.u64(..2000) {
                txn.insert(&table, &values![id, text.as_str()])?;
            }
            txn.commit()?;
        }
        5 => durable.call(|| db.drop_table("torture_brief"))?,
        _ => expiring::change_table(db, random)?,
    }
    std::thread::sleep(Duration::from_millis(random.u64(..10)));
    Ok(())
}

/// Sometimes makes everything durable, rarely enough that a crash can lose commits.
fn flush(db: &Database, durable: &DurableCalls, random: &mut Rng) -> Result<()> {
    std::thread::sleep(Duration::from_millis(random.u64(..400)));
    durable.call(|| db.flush_log())
}
