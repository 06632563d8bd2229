//! Opening a database: the parts below transactions, then catalog, tables and transactions.
//!
//! Order: open parts (files, recovery), catalog, tables, transactions, threads of the pool, the end of the change
//! buffer's opening, rollback of active transactions (it needs the tables; prepared transactions stay), purge, removal
//! of dropped tables and of interrupted schema changes.

use super::changes::{self, ChangeLog};
use super::database::{Database, DatabaseInner, FreedMemory, OpenGuard};
use super::dropping::Dropping;
use super::expiry_thread::ExpiryThread;
use super::gate::Gate;
use super::open_parts::OpenParts;
use super::prepared_list::PreparedTxns;
use super::readers::ReaderServer;
use super::recovery_report::RecoveryReport;
use super::txn_scratch::MAX_TXN_SCRATCHES;
use crate::change_buffer::IndexPlace;
use crate::config::{Doublewrite, FlushLog, Options};
use crate::context::Context;
use crate::error::Result;
use crate::mtr::MTR_REDO_BYTES;
use crate::space::ROOT_UNDO;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicU64};
use crate::sync::event::event;
use crate::sync::sharded::{ObjectPool, Sharded};
use crate::table::catalog::Catalog;
use crate::table::catalog_entry::Leftover;
use crate::table::handle::{Registry, TableShared};
use crate::table::record::{IndexRecord, TreeRecord};
use crate::txn::{LagLimits, Tables, TxnSystem};
use crate::types::IndexId;
use highwater_storage::StorageSet;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

impl Database {
    /// The report of the recovery at this opening; `None` if there was nothing to recover.
    pub fn recovery_report(&self) -> Option<&RecoveryReport> {
        self.inner.recovered.as_ref()
    }

    /// Opens the database in the folder `dir`, creating both if necessary (unless `options.create_if_missing` is off),
    /// recovering from a crash if there was one.
    ///
    /// # Errors
    /// `Open`, `Incompatible`, `Corrupt`, `BadOption`, an I/O error. An existing database is then unchanged or
    /// recovered; nothing is lost.
    pub fn open(dir: impl AsRef<Path>, options: Options) -> Result<Database> {
        Database::open_core(OpenParts::open_dir(dir.as_ref(), options)?)
    }

    /// A new, empty database in memory, with the options' defaults: for tests, and for data that is needed only as long
    /// as the program runs. It has everything that a database in a folder has except durability: it ends with its last
    /// handle, and no other process can open it. Its pages are in memory in addition to the buffer pool's frames;
    /// [`backup`](Database::backup) makes a copy on disk.
    ///
    /// ```
    /// use highwater::{Database, Schema, Type, values};
    /// let db = Database::in_memory()?;
    /// let words = db.create_table("words", Schema::new().column("word", Type::Text(40)).primary_key(&["word"]))?;
    /// db.transact(|txn| txn.insert_many(&words, [values!["river"], values!["delta"]]))?;
    /// assert_eq!(db.snapshot()?.scan(&words).first()?.unwrap().str("word"), "delta");
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`in_memory_with`](Database::in_memory_with).
    pub fn in_memory() -> Result<Database> {
        Database::in_memory_with(Options::default())
    }

    /// As [`in_memory`](Database::in_memory), with options. Options about durability have no effect here: there is no
    /// doublewrite, and no commit waits for a sync.
    ///
    /// # Errors
    /// `BadOption`; a thread that cannot be started.
    pub fn in_memory_with(options: Options) -> Result<Database> {
        let (doublewrite, flush_log_at_trx_commit) = (Doublewrite::Off, FlushLog::EverySecond);
        let options = Options { doublewrite, flush_log_at_trx_commit, create_if_missing: true, ..options };
        Database::open_storage(StorageSet::memory(), options)
    }

    /// As [`open`](Database::open), on devices of your own.
    ///
    /// # Errors
    /// As [`open`](Database::open).
    pub fn open_storage(storage: StorageSet, options: Options) -> Result<Database> {
        Database::open_core(OpenParts::open(storage, options)?)
    }

    /// Opens an existing database to read it only: not a byte of its files is written, so they may be on a file system
    /// mounted read-only. A database that was not closed is recovered without changes to its files: what recovery and
    /// rollbacks change is kept in memory, and beyond 32 MiB for each file in a temporary file in the folder `TMPDIR`,
    /// or `/var/tmp`. Others may read it at the same time. There is no purge, so a damaged page is an error only for a
    /// call that reads it.
    ///
    /// # Errors
    /// As [`open`](Database::open).
    pub fn open_read_only(dir: impl AsRef<Path>, options: Options) -> Result<Database> {
        Database::assemble_idle(OpenParts::open_dir_read_only(dir.as_ref(), options)?)
    }

    /// Opens an existing database on devices of your own, recovering it if necessary, but does not purge: for programs
    /// that inspect it. A read-only set is not written (see [`open_read_only`](Database::open_read_only)).
    ///
    /// # Errors
    /// As [`open`](Database::open).
    pub fn open_storage_idle(storage: StorageSet, options: Options) -> Result<Database> {
        let options = Options { create_if_missing: false, ..options };
        Database::assemble_idle(OpenParts::open(storage, options)?)
    }

    /// Without the threads of purge and of drops: what dropped tables have left is freed here.
    fn assemble_idle(parts: OpenParts) -> Result<Database> {
        let database = Database::assemble(parts, OpenParts::start_threads)?;
        // A damaged page of a dropped table stops nothing else (rule 4 of `dropping.rs`).
        while let Err(error) = database.inner.dropping.finish() {
            database.inner.ctx.poison.check().map_err(|_| error)?;
            database.inner.ctx.stats.drops_postponed.inc();
        }
        Ok(database)
    }

    fn open_core(parts: OpenParts) -> Result<Database> {
        let mut database = Database::assemble(parts, OpenParts::start_threads)?;
        if let Some(parts) = database.inner.parts.lock().as_mut() {
            super::background::start_purge(parts, &database.inner.txns)?;
            super::background::start_dropping(parts, &database.inner.dropping)?;
        }
        database.readers = ReaderServer::start(&database);
        database.expiry = ExpiryThread::start(&database);
        Ok(database)
    }

    /// Everything but purge and drops; `start` starts the threads of the parts below.
    pub(super) fn assemble(mut parts: OpenParts, start: impl FnOnce(&mut OpenParts) -> Result<()>) -> Result<Database> {
        let (ctx, space) = (parts.ctx.clone(), parts.space.clone());
        let OpenTables { catalog, registry, indexes, leftovers } = open_tables(&parts)?;
        let txns = open_transactions(&parts)?;
        // The rollbacks that follow may need more redo than fits between two checkpoints.
        start(&mut parts)?;
        catalog.trees().make_missing()?;
        parts.changes.finish_opening(&indexes, parts.storage().is_read_only())?;
        let tables: Arc<dyn Tables> = registry.clone();
        let mut recovered = parts.recovery_report();
        roll_back(&txns, &tables, &ctx, &mut recovered)?;
        let changes = ChangeLog::open(&ctx, &registry);
        let prepared = PreparedTxns::recovered(&txns, &registry, &changes)?;
        recovered.prepared = prepared.count() as u64;
        let dropping = Dropping::new(&ctx, &space, &catalog, &parts.changes);
        queue_leftovers(leftovers, &catalog, &dropping);
        let gate = Gate::new(&ctx.poison);
        let inner = DatabaseInner {
            space,
            ctx,
            txns,
            catalog,
            dropping,
            registry,
            options: Mutex::new(Arc::new(parts.options.clone())),
            options_change: Mutex::new(()),
            probe: parts.probe.clone(),
            recovered: recovered.filter(),
            archiving: parts.archiving.clone(),
            storage: parts.storage().clone(),
            _freed: FreedMemory { pool_bytes: parts.options.buffer_pool_size },
            parts: Mutex::new(Some(parts)),
            gate,
            schema: Mutex::new(()),
            schema_version: AtomicU64::new(0),
            changes,
            prepared,
            txn_scratches: ObjectPool::new(MAX_TXN_SCRATCHES),
            closed: AtomicBool::new(false),
        };
        let inner = Arc::new(inner);
        changes::finish_opening(&OpenGuard::new(&inner))?;
        event!(INFO, data = inner.storage.data.name(), "the database is open");
        Ok(Database {
            readers: None,
            expiry: None,
            lock_wait_timeout: None,
            interrupt: None,
            open: Arc::new(Sharded::of(|| OpenGuard::new(&inner))),
            inner,
        })
    }
}

/// The catalog, and what it says.
struct OpenTables {
    catalog: Arc<Catalog>,
    registry: Arc<Registry>,
    /// The place of each secondary index.
    indexes: HashMap<IndexId, IndexPlace>,
    leftovers: Vec<Leftover>,
}

fn open_tables(parts: &OpenParts) -> Result<OpenTables> {
    let catalog = Catalog::open(parts.ctx.clone(), parts.space.clone(), parts.storage().is_read_only())?;
    let catalog = Arc::new(catalog.with_collations(parts.options.collations.clone()));
    let (tables, leftovers) = catalog.load()?;
    let registry = Arc::new(Registry::default());
    let records = tables.iter().flat_map(|entry| &entry.indexes);
    let indexes = records.map(|index| (index.tree.id, place_of(index))).collect();
    for entry in tables {
        registry.add(TableShared::open(&catalog, entry));
    }
    Ok(OpenTables { catalog, registry, indexes, leftovers })
}

fn queue_leftovers(leftovers: Vec<Leftover>, catalog: &Catalog, dropping: &Dropping) {
    for leftover in leftovers {
        match leftover {
            // At once: a change of the table may write records under the same keys.
            Leftover::Records(keys) => catalog.remove_unused(keys),
            other => dropping.add(other),
        }
    }
}

fn place_of(index: &IndexRecord) -> IndexPlace {
    let TreeRecord { segment, root, .. } = index.tree;
    IndexPlace { segment, root, is_buffered: !index.definition.unique }
}

/// Rolls back what a crash interrupted.
fn roll_back(txns: &TxnSystem, tables: &Arc<dyn Tables>, ctx: &Context, report: &mut RecoveryReport) -> Result<()> {
    let started = Instant::now();
    let active = txns.recover(tables)? as u64;
    report.rollbacks_postponed = ctx.stats.rollbacks_skipped.get();
    report.rolled_back = active.saturating_sub(report.rollbacks_postponed);
    if active > 0 {
        report.rollback_time = started.elapsed();
    }
    Ok(())
}

/// The transaction system; in a new database it is created first.
fn open_transactions(parts: &OpenParts) -> Result<Arc<TxnSystem>> {
    let (ctx, space) = (&parts.ctx, &parts.space);
    if space.root(ROOT_UNDO).is_none() {
        space.with_room(ctx, || {
            let mut mtr = ctx.mtr_with(MTR_REDO_BYTES, 1)?;
            TxnSystem::format(space, &mut mtr)?;
            mtr.commit();
            Ok(())
        })?;
        debug_assert!(space.root(ROOT_UNDO).is_some(), "the undo directory has no root after it was made");
    }
    let Options { max_purge_lag, max_purge_lag_delay: max_delay_us, .. } = parts.options;
    let system = TxnSystem::open(ctx.clone(), space.clone(), parts.changes.clone())?;
    system.set_lag_limits(LagLimits { max_purge_lag, max_delay_us });
    system.set_lock_timeout(Duration::from_millis(parts.options.lock_wait_timeout_ms));
    Ok(Arc::new(system))
}
