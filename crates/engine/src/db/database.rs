//! The database handle: opening, tables, transactions, closing.
//!
//! Rules
//! 1. Opening: core (files, recovery), catalog, tables, cleaner, transactions (which need the tables to roll back what a crash cut
//!    short), then what interrupted schema changes left is removed, then purge.
//! 2. Schema changes come one at a time: the schema mutex.
//! 3. Closing waits for nobody: transactions still open then find the database closed in their next call, whatever it is, and are rolled
//!    back at the next opening.
//!    The files stay locked until they are dropped too.
//! 4. Fail-stop: once the redo cannot be made durable (or anything else has stopped the database) every call is
//!    [`Error::Poisoned`], reads of snapshots that began before included: memory may show commits that were answered with
//!    an error, and what became of them only the next opening knows.

use super::core::Core;
use super::index_build;
use super::read_txn::ReadTxn;
use super::write_txn::WriteTxn;
use crate::check::{self, CheckReport, OnProgress, Subject};
use crate::config::Options;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::inspect::ListLengths;
use crate::mtr::MTR_REDO_BYTES;
use crate::probe::Record;
use crate::space::{ROOT_UNDO, Space};
use crate::stats::{LatencySnapshot, StatsSnapshot};
use crate::sync::poison::CLOSED;
use crate::sync::wake::Wake;
use crate::table::catalog::{Catalog, Leftover};
use crate::table::handle::{Registry, TableShared};
use crate::table::key::KeyLayout;
use crate::table::record::State;
use crate::table::version::Secondary;
use crate::table::{IndexDefinition, Schema, Table, TableDefinition};
use crate::txn::{Access, LagLimits, PurgeState, Tables, TxnOptions, TxnSystem};
use highwater_storage::StorageSet;
use parking_lot::Mutex;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Undo records in a purge step.
const PURGE_BATCH: usize = 300;
/// The purge thread's pause when it has caught up.
const PURGE_PAUSE: Duration = Duration::from_millis(20);

/// An open database. Clones share it; it is closed by [`close`](Database::close) or when the last clone and transaction are dropped.
#[derive(Clone)]
pub struct Database {
    inner: Arc<Inner>,
}

/// What all handles and transactions of a database share.
pub(crate) struct Inner {
    /// `None` once closed.
    core: Mutex<Option<Core>>,
    ctx: Arc<Context>,
    space: Arc<Space>,
    txns: Arc<TxnSystem>,
    catalog: Arc<Catalog>,
    registry: Arc<Registry>,
    options: Options,
    /// What `auto` was found to mean.
    probe: Option<Record>,
    /// Set when closing begins: no call of a transaction does anything from then on.
    closed: AtomicBool,
    /// Keeps the files locked.
    storage: StorageSet,
    /// Held by a schema change.
    schema: Mutex<()>,
    /// Counts finished index builds.
    schema_version: AtomicU64,
}

impl Inner {
    pub(crate) fn txn_system(&self) -> &Arc<TxnSystem> {
        &self.txns
    }

    pub(crate) fn schema_version(&self) -> u64 {
        self.schema_version.load(Ordering::Acquire)
    }

    pub(crate) fn owns(&self, table: &TableShared) -> bool {
        Arc::ptr_eq(&self.catalog, table.catalog())
    }

    /// Refuses a call once closing has begun.
    #[inline]
    pub(crate) fn check_not_closed(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) { Err(Error::Closed) } else { Ok(()) }
    }

    /// Refuses what begins in a database that is closed or has stopped. Asked after a read too: what it found may be a commit
    /// whose redo could not be made durable.
    #[inline]
    pub(crate) fn check_running(&self) -> Result<()> {
        self.check_not_closed()?;
        self.ctx.poison.check()
    }

    fn timeout(&self) -> Duration {
        Duration::from_millis(self.options.lock_wait_timeout_ms)
    }

    fn close(&self) -> Result<()> {
        let Some(mut core) = self.core.lock().take() else { return Ok(()) };
        self.closed.store(true, Ordering::Release);
        let settled = match self.ctx.poison.is_set() {
            true => Ok(()),
            false if self.storage.is_read_only() => Ok(()),
            false => self.registry.all().iter().try_for_each(|table| table.settle()),
        };
        let closed = core.close();
        self.ctx.poison.set(CLOSED);
        settled.and(closed)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Who wants to know of errors calls `close`.
        let _ = self.close();
    }
}

impl Database {
    /// Opens the database in the folder `dir`, creating both if need be (unless `options.create_if_missing` is off), recovering
    /// from a crash if there was one.
    ///
    /// # Errors
    /// [`Error::Open`], [`Error::Incompatible`], [`Error::Corrupt`], [`Error::BadOption`], an I/O error. Nothing was changed then.
    pub fn open(dir: impl AsRef<Path>, options: Options) -> Result<Database> {
        Database::open_core(Core::open_dir(dir.as_ref(), options)?)
    }

    /// As [`open`](Database::open), on devices of your own.
    ///
    /// # Errors
    /// As [`open`](Database::open).
    pub fn open_storage(storage: StorageSet, options: Options) -> Result<Database> {
        Database::open_core(Core::open(storage, options)?)
    }

    /// Opens an existing database to read it only: not a byte of its files is written, so they may lie on a file system mounted
    /// read-only. A database that was not closed is recovered in memory, which then takes as much memory as the pages that
    /// recovery and rollbacks change; the files stay as they are. Others may read it at the same time. There is no purge, so a
    /// damaged page is met by nobody but the one who asks for it.
    ///
    /// # Errors
    /// As [`open`](Database::open).
    pub fn open_read_only(dir: impl AsRef<Path>, options: Options) -> Result<Database> {
        Database::assemble(Core::open_dir_read_only(dir.as_ref(), options)?)
    }

    /// Opens an existing database on devices of your own, recovering it if need be, but does not purge: for programs that look
    /// at it. A set that is read only stays as it is (see [`open_read_only`](Database::open_read_only)).
    ///
    /// # Errors
    /// As [`open`](Database::open).
    pub fn open_storage_idle(storage: StorageSet, options: Options) -> Result<Database> {
        let options = Options { create_if_missing: false, ..options };
        Database::assemble(Core::open(storage, options)?)
    }

    fn open_core(core: Core) -> Result<Database> {
        let database = Database::assemble(core)?;
        if let Some(core) = database.inner.core.lock().as_mut() {
            start_purge(core, &database.inner.txns)?;
        }
        Ok(database)
    }

    /// Everything but purge.
    fn assemble(mut core: Core) -> Result<Database> {
        let (ctx, space) = (core.ctx.clone(), core.space.clone());
        let catalog = Arc::new(Catalog::open(ctx.clone(), space.clone())?);
        let (tables, leftovers) = catalog.load()?;
        let registry = Arc::new(Registry::default());
        for entry in tables {
            registry.add(TableShared::open(&catalog, entry, ctx.pool.page_bytes()));
        }
        let txns = open_transactions(&core)?;
        // The rollbacks that follow may need more redo than fits between two checkpoints.
        core.start_threads()?;
        let tables: Arc<dyn Tables> = registry.clone();
        txns.recover(&tables)?;
        for leftover in leftovers {
            match leftover {
                Leftover::Table(remains) => catalog.finish_drop(&remains)?,
                Leftover::Index(table, index) => catalog.finish_drop_index(table, &index)?,
            }
        }
        let inner = Inner {
            space,
            ctx,
            txns,
            catalog,
            registry,
            options: core.options.clone(),
            probe: core.probe.clone(),
            storage: core.storage().clone(),
            core: Mutex::new(Some(core)),
            schema: Mutex::new(()),
            schema_version: AtomicU64::new(0),
            closed: AtomicBool::new(false),
        };
        Ok(Database { inner: Arc::new(inner) })
    }

    /// The devices.
    pub fn storage(&self) -> &StorageSet {
        &self.inner.storage
    }

    /// The options in force: those it was opened with, but page and log have the size they were created with, the pool that of its
    /// whole pages, and `lru_scan_depth` is what so large a pool uses.
    pub fn options(&self) -> &Options {
        &self.inner.options
    }

    /// The probe of the data device and what it chose; `None` if no option is `auto` or the device is memory.
    pub fn probe(&self) -> Option<&Record> {
        self.inner.probe.as_ref()
    }

    #[cfg(test)]
    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.inner.ctx
    }

    #[cfg(test)]
    pub(crate) fn catalog(&self) -> &Arc<Catalog> {
        &self.inner.catalog
    }

    #[cfg(test)]
    pub(crate) fn transactions(&self) -> &Arc<TxnSystem> {
        &self.inner.txns
    }

    /// The table of a name.
    ///
    /// # Errors
    /// [`Error::Schema`] if there is none.
    pub fn table(&self, name: &str) -> Result<Table> {
        self.inner.check_not_closed()?;
        Ok(Table { shared: self.inner.registry.get(name)? })
    }

    /// Every table, by name.
    pub fn tables(&self) -> Vec<Table> {
        self.inner.registry.all().into_iter().map(|shared| Table { shared }).collect()
    }

    /// Creates a table, atomically and durably.
    ///
    /// # Errors
    /// [`Error::Schema`] if the name is taken or the schema is wrong, [`Error::DiskFull`], an I/O error.
    pub fn create_table(&self, name: &str, schema: Schema) -> Result<Table> {
        let definition = schema.check(name)?;
        let _one_at_a_time = self.inner.schema.lock();
        self.check_writable()?;
        if self.inner.registry.get(name).is_ok() {
            return Err(Error::Schema(format!("there is a table {name} already")));
        }
        let entry = self.inner.catalog.create_table(definition)?;
        let shared = TableShared::open(&self.inner.catalog, entry, self.inner.ctx.pool.page_bytes());
        self.inner.registry.add(shared.clone());
        Ok(Table { shared })
    }

    /// Drops a table, atomically and durably, once no transaction uses it any more. Its handles are errors from then on.
    ///
    /// # Errors
    /// [`Error::Schema`] if there is none, [`Error::LockWaitTimeout`] if transactions use it for longer than that, an I/O error.
    pub fn drop_table(&self, name: &str) -> Result<()> {
        let inner = &self.inner;
        let _one_at_a_time = inner.schema.lock();
        self.check_writable()?;
        let table = inner.registry.get(name)?;
        let guard = table.lock.exclusive(inner.timeout())?;
        let mut entry = table.entry.lock();
        inner.catalog.set_table_state(&mut entry, State::Dropping)?;
        guard.set_dropped();
        inner.registry.remove(&table);
        inner.catalog.finish_drop(&entry.remains())
    }

    /// Adds an index to a table and fills it from the rows there are. Meanwhile transactions read the table; who writes waits.
    /// A crash before it is complete leaves no trace of it.
    ///
    /// # Errors
    /// [`Error::Schema`] for a wrong name or column, [`Error::DuplicateKey`] if a unique index finds equal rows,
    /// [`Error::LockWaitTimeout`] if transactions write the table for longer than that, [`Error::KeyTooLong`], an I/O error.
    pub fn create_index(&self, table: &str, name: &str, columns: &[&str], unique: bool) -> Result<()> {
        let inner = &self.inner;
        let _one_at_a_time = inner.schema.lock();
        self.check_writable()?;
        let shared = inner.registry.get(table)?;
        let before = shared.current.read().clone();
        let definition = Arc::new(with_index(&before.definition, name, columns, unique)?);
        let _readers_only = shared.lock.no_write(inner.timeout())?;
        let added = definition.indexes[definition.indexes.len() - 1].clone();
        let mut record = inner.catalog.create_index(before.id, added)?;
        let secondary = Secondary {
            key: KeyLayout::new(&definition, &record.definition.columns),
            tree: inner.catalog.open_tree(record.tree),
            since: inner.schema_version() + 1,
        };
        let indexes = before.indexes.iter().cloned().chain([Arc::new(secondary)]).collect();
        let after = before.with_indexes(definition, indexes);
        let txn = WriteTxn::begin(inner, &TxnOptions::default(), Access::ReadWrite)?;
        let built =
            index_build::build(&inner.ctx, txn, &Table { shared: shared.clone() }, &after, index_build::BATCH_BYTES)
                .and_then(|()| inner.catalog.set_index_state(before.id, &mut record, State::Ready));
        if let Err(error) = built {
            // What cannot be removed now is removed when the database is opened next.
            let _ = inner.catalog.finish_drop_index(before.id, &record);
            return Err(error);
        }
        let mut entry = shared.entry.lock();
        entry.definition = (*after.definition).clone();
        entry.indexes.push(record);
        // In this order: whoever can see the index has begun at its version, or is told that he is too old.
        inner.schema_version.fetch_add(1, Ordering::Release);
        inner.registry.replace(&shared, after);
        Ok(())
    }

    /// Drops an index, atomically and durably, once no transaction uses its table any more.
    ///
    /// # Errors
    /// [`Error::Schema`] if there is none, [`Error::LockWaitTimeout`] if transactions use the table for longer than that, an I/O error.
    pub fn drop_index(&self, table: &str, name: &str) -> Result<()> {
        let inner = &self.inner;
        let _one_at_a_time = inner.schema.lock();
        self.check_writable()?;
        let shared = inner.registry.get(table)?;
        let before = shared.current.read().clone();
        let Some(at) = before.index_position(name)? else {
            return Err(Error::Schema(format!("the primary key of table {table} cannot be dropped")));
        };
        let _nobody = shared.lock.exclusive(inner.timeout())?;
        let mut entry = shared.entry.lock();
        inner.catalog.set_index_state(before.id, &mut entry.indexes[at], State::Dropping)?;
        let record = entry.indexes.remove(at);
        entry.definition.indexes.remove(at);
        let mut indexes = before.indexes.clone();
        indexes.remove(at);
        inner.registry.replace(&shared, before.with_indexes(Arc::new(entry.definition.clone()), indexes));
        inner.catalog.finish_drop_index(before.id, &record)
    }

    /// Begins a transaction under REPEATABLE READ.
    ///
    /// # Errors
    /// The database is closed or has stopped after a failure.
    pub fn begin(&self) -> Result<WriteTxn> {
        self.begin_with(TxnOptions::default())
    }

    /// Begins a transaction.
    ///
    /// # Errors
    /// As [`begin`](Database::begin); [`Error::Usage`] if the database was opened to be read only.
    pub fn begin_with(&self, options: TxnOptions) -> Result<WriteTxn> {
        self.check_writes_wanted()?;
        WriteTxn::begin(&self.inner, &options, Access::ReadWrite)
    }

    /// Begins a transaction that reads one snapshot.
    ///
    /// # Errors
    /// As [`begin`](Database::begin).
    pub fn snapshot(&self) -> Result<ReadTxn> {
        WriteTxn::begin(&self.inner, &TxnOptions::default(), Access::ReadOnly).map(ReadTxn::new)
    }

    /// The counters.
    pub fn stats(&self) -> StatsSnapshot {
        let _sets_gauges = self.purge_state();
        let (stats, storage) = (&self.inner.ctx.stats, &self.inner.storage);
        let calls = [&storage.data, &storage.redo, &storage.doublewrite].map(|device| device.io_counts());
        stats.os_syncs.set(calls.iter().map(|c| c.syncs).sum());
        stats.os_writes.set(calls.iter().map(|c| c.writes).sum());
        stats.os_ring_writes.set(calls.iter().map(|c| c.ring_writes).sum());
        stats.snapshot()
    }

    /// How far purge is behind, and what damage it went around; [`PurgeWatch`](crate::PurgeWatch) turns it into warnings.
    pub fn purge_state(&self) -> PurgeState {
        self.inner.txns.purge_state()
    }

    /// How long page misses took since the opening: from finding that a page is not in the buffer pool until it is readable, the wait
    /// for a free frame included.
    pub fn page_read_latency(&self) -> LatencySnapshot {
        self.inner.ctx.pool.page_read_latency()
    }

    /// How long threads waited since the opening that found no free frame.
    pub fn free_frame_wait_latency(&self) -> LatencySnapshot {
        self.inner.ctx.pool.free_frame_wait_latency()
    }

    /// Lengths of the pool's lists and of the history list.
    pub fn list_lengths(&self) -> ListLengths {
        let pool = &self.inner.ctx.pool;
        ListLengths {
            frames: pool.frame_count(),
            free: pool.free_count(),
            lru: pool.lru_count(),
            dirty: pool.dirty_count(),
            history: self.inner.txns.history_list_length(),
        }
    }

    /// Verifies every page, tree and cross-reference. Meanwhile transactions read; who writes or changes a schema waits, and so
    /// does the check until transactions that write have ended.
    ///
    /// # Errors
    /// [`Error::LockWaitTimeout`] if transactions write for longer than that, and what keeps the check from going on.
    /// Damage is no error but in the report.
    pub fn check(&self) -> Result<CheckReport> {
        self.check_with(&mut |_, _| {})
    }

    /// As [`check`](Database::check), telling how far it is.
    ///
    /// # Errors
    /// As [`check`](Database::check).
    pub fn check_with(&self, on_progress: &mut OnProgress<'_>) -> Result<CheckReport> {
        let inner = &self.inner;
        let _one_at_a_time = inner.schema.lock();
        self.check_open()?;
        let tables = inner.registry.all();
        let _readers_only =
            tables.iter().map(|table| table.lock.no_write(inner.timeout())).collect::<Result<Vec<_>>>()?;
        let _no_purge = inner.txns.hold_purge();
        let subject = Subject {
            ctx: &inner.ctx,
            space: &inner.space,
            txns: &inner.txns,
            catalog: &inner.catalog,
            tables: tables.clone(),
        };
        check::run(&subject, on_progress)
    }

    #[cfg(test)]
    pub(crate) fn space(&self) -> &Arc<Space> {
        &self.inner.space
    }

    /// Makes every commit so far durable, whatever `flush_log_at_trx_commit` says.
    ///
    /// # Errors
    /// An I/O error; the database has stopped then.
    pub fn flush_log(&self) -> Result<()> {
        self.inner.check_not_closed()?;
        self.inner.catalog.flush()
    }

    /// Closes the database: stops the threads, writes every changed page. Every handle finds it closed from then on.
    ///
    /// # Errors
    /// An I/O error; nothing committed is lost then, the next opening recovers it.
    pub fn close(self) -> Result<()> {
        self.inner.close()
    }

    fn check_open(&self) -> Result<()> {
        self.inner.check_running()
    }

    fn check_writable(&self) -> Result<()> {
        self.check_writes_wanted()?;
        self.check_open()
    }

    fn check_writes_wanted(&self) -> Result<()> {
        match self.inner.storage.is_read_only() {
            true => Err(Error::Usage("the database was opened to be read only".to_string())),
            false => Ok(()),
        }
    }
}

/// The transaction system, laid out first in a new database.
fn open_transactions(core: &Core) -> Result<Arc<TxnSystem>> {
    let (ctx, space) = (&core.ctx, &core.space);
    if space.root(ROOT_UNDO).is_none() {
        space.with_room(ctx, || {
            let mut mtr = ctx.mtr_with(MTR_REDO_BYTES, 1)?;
            TxnSystem::format(space, &mut mtr)?;
            mtr.commit();
            Ok(())
        })?;
    }
    let Options { max_purge_lag, max_purge_lag_delay: max_delay_us, .. } = core.options;
    let system = TxnSystem::open(ctx.clone(), space.clone())?;
    let system = system.with_lag_limits(LagLimits { max_purge_lag, max_delay_us });
    Ok(Arc::new(system.with_lock_timeout(Duration::from_millis(core.options.lock_wait_timeout_ms))))
}

/// Starts the purge threads. Each pauses when a step finds nothing to do; all but the first also while too few streams wait.
/// What a step cannot do it does later: purge alone never stops the database.
fn start_purge(core: &mut Core, txns: &Arc<TxnSystem>) -> Result<()> {
    for others in 0..core.options.purge_threads as usize {
        let (system, ctx, bell) = (txns.clone(), core.ctx.clone(), Arc::new(Wake::default()));
        let (again, waker) = (bell.clone(), bell.clone());
        let step = move || {
            if others > 0 && !system.purge_needs(others) {
                return Ok(());
            }
            match system.purge_round(PURGE_BATCH, others == 0) {
                Ok(0) => {}
                Ok(_) => again.wake(),
                Err(error) if ctx.poison.is_set() => return Err(error),
                Err(_) => ctx.stats.purge_retries.inc(),
            }
            Ok(())
        };
        let name = format!("purge-{others}");
        core.background.spawn(&name, core.ctx.clone(), step, move || bell.wait(PURGE_PAUSE), move || waker.wake())?;
    }
    Ok(())
}

/// The table with one more index, checked.
fn with_index(table: &TableDefinition, name: &str, columns: &[&str], unique: bool) -> Result<TableDefinition> {
    let wrong = |reason: String| Error::Schema(format!("table {}: index {name}: {reason}", table.name));
    let columns =
        columns.iter().map(|column| table.position(column)).collect::<std::result::Result<_, _>>().map_err(wrong)?;
    let mut definition = table.clone();
    definition.indexes.push(IndexDefinition { name: name.to_string(), columns, unique });
    definition.validate().map_err(|reason| Error::Schema(format!("table {}: {reason}", table.name)))?;
    Ok(definition)
}
