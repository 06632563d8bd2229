//! The workloads, each written once for every store.
//!
//! Rules
//! 1. A workload loads its tables, then creates one client per thread. Clients share only the store.
//! 2. A client's call runs exactly one transaction, committed when it returns `Ok`. A transaction that fails with a
//!    retryable error has no effect. The driver counts it and calls again: TPC-C retries the same transaction; sysbench
//!    (like the original) and YCSB draw another one.
//! 3. Statements are counted as sysbench counts them: reads, writes (that found a row), everything else.
//! 4. Clients keep their buffers between calls: no allocation per row.
//! 5. Everything random comes from the seed: client `n` draws from `Rng::with_seed(mix(seed, n))`.

mod load;
pub mod random;
pub mod sysbench;
pub mod tpcc;
pub mod user_table;
pub mod ycsb;

pub use load::Load;

use crate::error::{Error, Result};
use crate::interrupt;
use crate::result::Condition;
use crate::store::{Column, Read, RowView, Scan, Session, Store, TableSpec, Transaction, column};
use crate::threads;
use highwater::values;
use highwater::{Type, ValueRef};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// The outcome of one transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Kind of the transaction, an index into [`Workload::kinds`].
    pub kind: usize,
    /// Statements that read.
    pub reads: u32,
    /// Statements that changed a row.
    pub writes: u32,
    /// Other statements: begin, commit, changes that found no row.
    pub other: u32,
    /// The workload itself demanded a rollback (TPC-C's unused item).
    pub rolled_back: bool,
}

impl Outcome {
    /// Counts a change that found a row or not (sysbench 1.0.20, `drv_mysql.c`: no affected rows counts as "other").
    pub fn changed(&mut self, found: bool) {
        if found { self.writes += 1 } else { self.other += 1 }
    }
}

/// Shows the progress of a load. It is called by many threads.
pub trait Progress: Sync {
    /// `units` more of the total given at the start are done.
    fn advance(&self, units: u64);
}

/// Name and value of options, for [`Workload::options`].
pub(crate) fn options<const N: usize>(pairs: [(&str, String); N]) -> BTreeMap<String, String> {
    pairs.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
}

/// Shows nothing.
#[derive(Clone, Copy, Debug)]
pub struct Silent;

impl Progress for Silent {
    fn advance(&self, _units: u64) {}
}

/// A workload over stores of type `S`.
pub trait Workload<S: Store>: Sync {
    /// Name in results.
    fn name(&self) -> String;
    /// The kinds of transactions.
    fn kinds(&self) -> &'static [&'static str];
    /// The options on which the loaded data depend: name and value. A loaded database can be used by runs with equal
    /// identity.
    fn identity(&self) -> BTreeMap<String, String>;
    /// Every option of the workload: name and value.
    fn options(&self) -> BTreeMap<String, String>;
    /// Units of work (rows) of a load, for progress.
    fn load_units(&self) -> u64;
    /// Creates and fills the tables with `threads` threads.
    fn load(&self, store: &S, threads: usize, progress: &dyn Progress) -> Result<()>;
    /// A client for thread `number` of a run.
    fn client(&self, store: &S, number: usize) -> Result<Box<dyn Client>>;
    /// Checks the data after a run.
    fn conditions(&self, _store: &S) -> Result<Vec<Condition>> {
        Ok(Vec::new())
    }
    /// Whether a run removes loaded rows, so that later runs should not use the data.
    fn spoils_data(&self) -> bool {
        false
    }
    /// Whether the work of the clients is limited.
    fn is_bounded(&self) -> bool {
        false
    }
    /// Position in [`Workload::kinds`] of the transaction that new orders per minute count.
    fn new_order_kind(&self) -> Option<usize> {
        None
    }
}

/// One thread's client.
pub trait Client: Send {
    /// Runs one transaction; `None` when the workload has no more work.
    fn run(&mut self) -> Result<Option<Outcome>>;
}

const META_TABLE: &str = "lab_load";

const META_COLUMNS: &[Column] = &[column("option", Type::Text(64)), column("value", Type::Text(255))];

/// The identity of a database's load; `None` if no load has finished.
///
/// # Errors
/// The store's.
pub fn loaded_identity<S: Store>(store: &S) -> Result<Option<BTreeMap<String, String>>> {
    let Some(table) = store.table(META_TABLE)? else { return Ok(None) };
    let mut session = store.session()?;
    let mut read = session.snapshot()?;
    let mut found = BTreeMap::new();
    read.scan(&table, &Scan::all(), |row| {
        found.insert(row.str(0).to_string(), row.str(1).to_string());
        ControlFlow::Continue(())
    })?;
    read.finish()?;
    Ok((!found.is_empty()).then_some(found))
}

/// Whether a workload creates a table of that name.
type Makes = fn(&str) -> bool;

/// The first of the store's tables that the loaded workload does not create; with an unfinished load, the first that no
/// workload creates; without a load, the first.
///
/// # Errors
/// The store's.
pub fn foreign_table<'t, S: Store>(store: &S, tables: &'t [String]) -> Result<Option<&'t str>> {
    let loaded = loaded_identity(store)?.and_then(|identity| identity.get("workload").cloned());
    let has_load = store.table(META_TABLE)?.is_some();
    let makers: [(&str, Makes); 4] = [
        ("sysbench", sysbench::makes),
        ("tpcc", tpcc::makes),
        ("user-table", |name| name == user_table::table_spec().name),
        ("ycsb", |name| name == ycsb::table_spec().name),
    ];
    let may_have_made = |workload| loaded.as_deref().is_none_or(|loaded| loaded == workload);
    let is_own =
        |name| name == META_TABLE || makers.iter().any(|(workload, makes)| may_have_made(*workload) && makes(name));
    Ok(tables.iter().map(String::as_str).find(|name| !has_load || !is_own(name)))
}

/// Creates the table with the load's identity, which is empty until the load is finished.
fn create_meta<S: Store>(store: &S) -> Result<S::Table> {
    store.create_table(&TableSpec {
        name: META_TABLE.into(),
        columns: META_COLUMNS,
        auto_increment: None,
        primary_key: &["option"],
        indexes: &[],
    })
}

fn remember_identity<S: Store>(store: &S, table: &S::Table, identity: &BTreeMap<String, String>) -> Result<()> {
    let mut session = store.session()?;
    let mut txn = session.begin()?;
    for (option, value) in identity {
        txn.insert(table, &values![option.as_str(), value.as_str()])?;
    }
    txn.finish()
}

/// Loads the workload unless the store holds its data already. Returns whether it loaded.
///
/// # Errors
/// [`Error::Usage`] when the store holds another workload's data or half a load; the store's.
pub fn load_or_reuse<S: Store>(
    store: &S,
    workload: &dyn Workload<S>,
    threads: usize,
    progress: &dyn Progress,
) -> Result<bool> {
    load_once(store, &workload.identity(), || workload.load(store, threads, progress))
}

/// Calls `load` unless the store holds the data of that identity already. Returns whether it loaded.
///
/// # Errors
/// As [`load_or_reuse`].
pub fn load_once<S: Store>(
    store: &S,
    wanted: &BTreeMap<String, String>,
    load: impl FnOnce() -> Result<()>,
) -> Result<bool> {
    match loaded_identity(store)? {
        Some(found) if found == *wanted => Ok(false),
        Some(found) => Err(Error::Usage(format!(
            "the database was loaded for {}; this run needs {}; take another folder or load again (--fresh)",
            describe(&found),
            describe(wanted)
        ))),
        None => {
            let meta = create_meta(store)?;
            load()?;
            store.loaded()?;
            remember_identity(store, &meta, wanted)?;
            Ok(true)
        }
    }
}

/// Records that the data are no longer those of the load, if the workload removes loaded rows.
///
/// # Errors
/// The store's.
pub fn note_spoiled<S: Store>(store: &S, workload: &dyn Workload<S>) -> Result<()> {
    if !workload.spoils_data() {
        return Ok(());
    }
    let by = BTreeMap::from([("spoiled_by".to_string(), workload.name())]);
    remember_identity(store, &open_table(store, META_TABLE)?, &by)
}

fn describe(identity: &BTreeMap<String, String>) -> String {
    identity.iter().map(|(option, value)| format!("{option}={value}")).collect::<Vec<_>>().join(" ")
}

/// The table, or a message that it is missing.
///
/// # Errors
/// [`Error::Data`] if it is missing; the store's.
pub fn open_table<S: Store>(store: &S, name: &str) -> Result<S::Table> {
    store.table(name)?.ok_or_else(|| Error::Data(format!("table {name} is missing; load the workload first")))
}

/// Inserts rows in transactions of [`Batch::ROWS`], so that a load never holds a long transaction.
pub(crate) struct Batch<'p> {
    progress: &'p dyn Progress,
}

impl<'p> Batch<'p> {
    /// Rows per transaction.
    pub(crate) const ROWS: u64 = 500;

    pub(crate) fn new(progress: &'p dyn Progress) -> Batch<'p> {
        Batch { progress }
    }

    /// Inserts this many rows into a table; `row` is as in [`Transaction::insert_many`].
    pub(crate) fn fill<S: Session>(
        &self,
        session: &mut S,
        table: &S::Table,
        rows: u64,
        mut row: impl FnMut(&mut dyn FnMut(&[ValueRef<'_>]) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        for first in (0..rows).step_by(Self::ROWS as usize) {
            interrupt::check()?;
            let some = Self::ROWS.min(rows - first);
            let mut txn = session.begin_bulk()?;
            txn.insert_many(table, some, &mut row)?;
            txn.finish()?;
            self.progress.advance(some);
        }
        Ok(())
    }

    /// Calls `insert` with every number of `range`, in order, and commits repeatedly. `insert` returns the number of
    /// rows that it inserted.
    pub(crate) fn run<S: Session>(
        &self,
        session: &mut S,
        range: std::ops::Range<u64>,
        mut insert: impl FnMut(&mut S::Txn<'_>, u64) -> Result<u64>,
    ) -> Result<()> {
        let mut next = range.start;
        while next < range.end {
            interrupt::check()?;
            let mut txn = session.begin_bulk()?;
            let mut rows = 0;
            while next < range.end && rows < Self::ROWS {
                rows += insert(&mut txn, next)?;
                next += 1;
            }
            txn.finish()?;
            self.progress.advance(rows);
        }
        Ok(())
    }
}

/// Runs `work(n)` for every `n` below `units`, on `threads` threads; stops at the first error.
pub(crate) fn in_parallel(units: usize, threads: usize, work: impl Fn(usize) -> Result<()> + Sync) -> Result<()> {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    let next = AtomicUsize::new(0);
    let first_error = parking_lot::Mutex::new(None);
    let turn = || {
        loop {
            let unit = next.fetch_add(1, Relaxed);
            if unit >= units {
                break;
            }
            if let Err(error) = work(unit) {
                next.store(units, Relaxed);
                first_error.lock().get_or_insert(error);
            }
        }
    };
    std::thread::scope(|scope| {
        let threads = threads.clamp(1, units.max(1));
        // This thread is one of them; if no other can be started it does the work alone.
        let _ = (1..threads).try_for_each(|n| threads::spawn(scope, n, threads, turn));
        turn();
    });
    first_error.into_inner().map_or(Ok(()), Err)
}

/// One key column as a key.
#[inline]
pub(crate) fn key1<'a>(a: impl Into<ValueRef<'a>>) -> [ValueRef<'a>; 1] {
    [a.into()]
}
