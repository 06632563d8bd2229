//! The database handle: tables, transactions, closing.
//!
//! Rules
//! 1. A close waits for no transaction: the next call of an open transaction fails, because the database is closed, and
//!    the next opening rolls it back. The files stay locked until the transaction is dropped.
//! 2. Fail-stop: once the redo cannot be made durable (or anything else has stopped the database) every call fails with
//!    [`Error::Poisoned`], reads of snapshots that began before included: memory may show commits that returned an
//!    error, and only the next opening decides whether they happened.
//! 3. In a forked child process every call is [`Error::Forked`] before it takes a lock, because a thread of the parent
//!    may have held the lock; handles that are dropped there do nothing (rule 5 of `sync/poison.rs`).

use super::archiving::Archiving;
use super::changes::ChangeLog;
use super::dropping::Dropping;
use super::expiry_thread::ExpiryThread;
use super::gate::{Gate, SchemaChange};
use super::open_parts::OpenParts;
use super::prepared_list::PreparedTxns;
use super::readers::ReaderServer;
use super::recovery_report::RecoveryReport;
use super::txn_scratch::TxnScratch;
use crate::config::Options;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::pool::release_freed_memory;
use crate::probe::ProbeRecord;
use crate::space::Space;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::event::event;
use crate::sync::interrupt::{Interrupt, Patience};
use crate::sync::poison::CLOSED;
use crate::sync::sharded::{CachePadded, ObjectPool, Sharded};
use crate::table::catalog::Catalog;
use crate::table::handle::{Registry, TableShared};
use crate::txn::{KEPT_ROW_BYTES, TxnOptions, TxnSystem, check_outside_closures, check_outside_row_closure};
use highwater_storage::StorageSet;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

/// An open database. Clones share it; it is closed by [`close`](Database::close) or when the last clone and transaction
/// are dropped.
///
/// Its calls block their thread. In an async program a whole transaction is one piece of blocking work
/// (`tokio::task::spawn_blocking(move || db.transact(...))`), and none lives across an `.await`: docs/async.md has an
/// example with axum.
#[derive(Clone)]
pub struct Database {
    /// Serves readers of other processes, until the program's last handle is dropped (so before `inner`).
    pub(super) readers: Option<Arc<ReaderServer>>,
    /// Removes expired rows, as long.
    pub(super) expiry: Option<Arc<ExpiryThread>>,
    pub(super) inner: Arc<DatabaseInner>,
    /// Lock wait timeout of this handle, if it overrides the option.
    pub(super) lock_wait_timeout: Option<Duration>,
    /// Interrupts calls of this handle.
    pub(super) interrupt: Option<Arc<Interrupt>>,
    /// Transactions hold this instead of `inner`, whose reference count all threads would change.
    pub(super) open: Arc<Sharded<OpenGuard>>,
}

/// Keeps a database open. Clones are counted by themselves: what has one count for each shard keeps threads apart.
#[derive(Clone)]
pub(crate) struct OpenGuard(Arc<CachePadded<Arc<DatabaseInner>>>);

impl OpenGuard {
    pub(crate) fn new(inner: &Arc<DatabaseInner>) -> OpenGuard {
        OpenGuard(Arc::new(CachePadded(inner.clone())))
    }
}

impl Deref for OpenGuard {
    type Target = DatabaseInner;

    #[inline]
    fn deref(&self) -> &DatabaseInner {
        &self.0
    }
}

/// The state that all handles and transactions of a database share. Aligned against false sharing: it is read all the
/// time, and neighboring data may change as often.
#[repr(align(128))]
pub(crate) struct DatabaseInner {
    /// `None` once closed.
    pub(super) parts: Mutex<Option<OpenParts>>,
    pub(super) ctx: Arc<Context>,
    pub(super) space: Arc<Space>,
    pub(super) txns: Arc<TxnSystem>,
    pub(super) catalog: Arc<Catalog>,
    pub(super) dropping: Arc<Dropping>,
    pub(super) registry: Arc<Registry>,
    pub(super) options: Mutex<Arc<Options>>,
    /// The probe of the device, which determines the meaning of `auto`.
    pub(super) probe: Option<ProbeRecord>,
    /// The recovery report of the opening.
    pub(super) recovered: Option<RecoveryReport>,
    /// Set when closing begins: every call of a transaction is an error from then on.
    pub(super) closed: AtomicBool,
    /// The archive of its redo, if one is kept.
    pub(super) archiving: Option<Arc<Archiving>>,
    /// Held while options are changed.
    pub(super) options_change: Mutex<()>,
    /// Keeps the files locked.
    pub(super) storage: StorageSet,
    pub(super) gate: Arc<Gate>,
    /// Held while the catalog and the registry are changed, and never while a lock is waited for.
    pub(super) schema: Mutex<()>,
    /// Counts finished index builds.
    pub(super) schema_version: AtomicU64,
    pub(super) changes: Arc<ChangeLog>,
    /// Transactions that are prepared.
    pub(super) prepared: PreparedTxns,
    /// Buffers of ended transactions, for the next ones.
    pub(super) txn_scratches: ObjectPool<TxnScratch>,
    /// Dropped when all else is gone.
    pub(super) _freed: FreedMemory,
}

/// Returns the allocator's free memory to the system after a large database was closed: the process may continue
/// without it, or open it again within the same limit.
pub(crate) struct FreedMemory {
    pub(super) pool_bytes: u64,
}

/// A smaller pool leaves little.
const LARGE_POOL_BYTES: u64 = 16 << 20;

impl Drop for FreedMemory {
    fn drop(&mut self) {
        if self.pool_bytes >= LARGE_POOL_BYTES {
            release_freed_memory();
        }
    }
}

impl DatabaseInner {
    pub(crate) fn txn_system(&self) -> &Arc<TxnSystem> {
        &self.txns
    }

    pub(crate) fn schema_version(&self) -> u64 {
        self.schema_version.load(Ordering::Acquire)
    }

    pub(crate) fn owns(&self, table: &TableShared) -> bool {
        Arc::ptr_eq(&self.catalog, table.catalog())
    }

    /// An error once closing has begun, and in a forked process.
    #[inline]
    pub(crate) fn check_not_closed(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) { Err(Error::Closed) } else { self.ctx.poison.check_owner() }
    }

    /// An error if the database is closed or has stopped. Checked after a read too: the read may have found a commit
    /// whose redo could not be made durable.
    #[inline]
    pub(crate) fn check_running(&self) -> Result<()> {
        self.check_not_closed()?;
        self.ctx.poison.check()
    }

    /// Keeps what an ended transaction worked with for the next one.
    pub(super) fn keep_scratch(&self, scratch: Box<TxnScratch>) {
        debug_assert!(!scratch.tables.holds_any(), "memory of an ended transaction locks a table");
        if scratch.row.capacity() <= KEPT_ROW_BYTES {
            self.txn_scratches.keep(scratch);
        }
    }

    fn close(&self) -> Result<()> {
        self.ctx.poison.check_owner()?;
        // Kept until the end: a thread that closes at the same time returns when the database is closed.
        let mut slot = self.parts.lock();
        let Some(mut parts) = slot.take() else { return Ok(()) };
        self.closed.store(true, Ordering::Release);
        let written = self.write_at_closing();
        let closed = written.and(parts.close());
        self.ctx.poison.set(CLOSED);
        match &closed {
            Ok(()) => event!(INFO, data = self.storage.data.name(), "the database is closed"),
            Err(error) => event!(ERROR, data = self.storage.data.name(), error = error, "closing failed"),
        }
        closed
    }

    /// Writes what needs all parts running, before they close: numbers of tables, freed pages of dropped trees, unused
    /// undo streams. Where a damaged page prevents it, the next opening does it.
    fn write_at_closing(&self) -> Result<()> {
        debug_assert!(self.closed.load(Ordering::Acquire), "rule 1: calls still come while the database closes");
        if self.ctx.poison.is_set() || self.storage.is_read_only() {
            return Ok(());
        }
        let unless_stopped = |done: Result<()>| done.or_else(|error| self.ctx.poison.check().map_err(|_| error));
        let numbers = self.registry.all().iter().try_for_each(|table| table.persist_exact());
        let freed = unless_stopped(self.free_dropped());
        // Last: nothing frees a stream afterwards.
        let noted = freed.and_then(|()| unless_stopped(self.txns.undo.note_ended_streams()));
        numbers.and(noted)
    }

    fn free_dropped(&self) -> Result<()> {
        self.dropping.finish_at_closing()?;
        if self.space.has_gaps() { self.txns.free_idle_streams() } else { Ok(()) }
    }
}

impl Drop for DatabaseInner {
    fn drop(&mut self) {
        if self.ctx.poison.check_owner().is_err() {
            // Rule 3. It holds everything else.
            return std::mem::forget(self.parts.get_mut().take());
        }
        // Errors are only returned by `close`.
        let _ = self.close();
    }
}

impl Database {
    #[cfg(test)]
    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.inner.ctx
    }

    #[cfg(test)]
    pub(crate) fn id(&self) -> u64 {
        crate::store::file_header(&self.inner.ctx.pool.fix_s(crate::types::PageNo(0)).unwrap()).unwrap().database_id
    }

    #[cfg(test)]
    pub(crate) fn catalog(&self) -> &Arc<Catalog> {
        &self.inner.catalog
    }

    #[cfg(test)]
    pub(crate) fn transactions(&self) -> &Arc<TxnSystem> {
        &self.inner.txns
    }

    #[cfg(test)]
    pub(crate) fn space(&self) -> &Arc<Space> {
        &self.inner.space
    }

    /// Makes every commit so far durable, independent of `flush_log_at_trx_commit`.
    ///
    /// # Errors
    /// An I/O error; the database has stopped then. [`Error::Usage`] inside the closure of a
    /// [`modify`](crate::WriteTxn::modify) or a [`visit`](crate::Scan::visit), whose page is latched.
    pub fn flush_log(&self) -> Result<()> {
        check_outside_row_closure()?;
        self.inner.check_not_closed()?;
        self.inner.catalog.flush()
    }

    /// Closes the database: stops the threads, writes every changed page. Every handle finds it closed from then on.
    /// Its folder can be opened again as soon as the other handles and the transactions have been dropped too.
    ///
    /// # Errors
    /// An I/O error; nothing committed is lost then, the next opening recovers it. [`Error::Usage`] inside the closure
    /// of a [`modify`](crate::WriteTxn::modify), a [`visit`](crate::Scan::visit) or a
    /// [`check_with`](Database::check_with).
    pub fn close(self) -> Result<()> {
        check_outside_closures()?;
        if let Some(readers) = &self.readers {
            readers.stop();
        }
        if let Some(expiry) = &self.expiry {
            expiry.stop();
        }
        self.inner.close()
    }

    /// Of calls that wait for others, or hold up others.
    pub(super) fn check_open(&self) -> Result<()> {
        check_outside_closures()?;
        self.inner.check_running()
    }

    pub(super) fn check_writable(&self) -> Result<()> {
        self.check_writes_wanted()?;
        self.check_open()
    }

    /// A schema change begins: no check runs until it ends.
    pub(super) fn enter_schema_change(&self) -> Result<SchemaChange<'_>> {
        self.check_writable()?;
        let inside = self.inner.gate.enter_schema_change(self.patience())?;
        self.check_writable()?;
        Ok(inside)
    }

    /// The lock wait timeout of this handle's calls, and the interrupt that ends a wait earlier.
    pub(super) fn patience(&self) -> Patience<'_> {
        let timeout = self.lock_wait_timeout.unwrap_or_else(|| self.inner.txns.lock_timeout());
        Patience { timeout, interrupt: self.interrupt.as_ref() }
    }

    #[inline]
    pub(super) fn with_own_timeout(&self, mut options: TxnOptions) -> TxnOptions {
        if let (None, Some(own)) = (options.lock_wait_timeout_ms, self.lock_wait_timeout) {
            options.lock_wait_timeout_ms = Some(own.as_millis().try_into().unwrap_or(u64::MAX));
        }
        options
    }

    pub(super) fn check_writes_wanted(&self) -> Result<()> {
        match self.inner.storage.is_read_only() {
            true => Err(Error::Usage("the database was opened to be read only".to_string())),
            false => Ok(()),
        }
    }
}
