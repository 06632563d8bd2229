//! Transactions that read and write tables.
//!
//! Rules
//! 1. A failed call leaves the transaction in its state before the call. Only after [`Error::Deadlock`] all of it is
//!    already rolled back, and only `rollback` or a drop may follow.
//! 2. Dropping a transaction rolls it back; inside the closure of a `modify` or a `visit`, when that call is over
//!    (`deferred_end`).
//! 3. Once the database is closed every call is [`Error::Closed`], also a call that would need nothing of the database.
//! 4. Keys and rows are built in buffers that the next transaction reuses: a call allocates only the returned row.

use super::counter_wait::move_counter;
use super::database::{DatabaseInner, OpenGuard};
use super::locked_tables::check_since;
use super::row_change::apply;
use super::txn_scratch::TxnScratch;
use crate::error::{Error, Result};
use crate::lock::LockMode;
use crate::table::handle::TableShared;
use crate::table::lock::TableLockMode;
use crate::table::version::TableVersion;
use crate::table::{Changes, ColumnIndex, Row, RowRef, Table, ValueRef};
use crate::txn::{Access, ReadView, RowOp, Savepoint, Txn, TxnOptions, TxnSystem, Wanted, check_outside_row_closure};
use std::sync::Arc;

pub(super) const HAS_NOT_ENDED: &str =
    "only `commit`, `rollback` and `drop` take the transaction, and they take its owner";

/// A transaction that reads and writes.
#[must_use = "a transaction that is dropped is rolled back"]
pub struct WriteTxn {
    /// `None` once it has ended.
    pub(super) txn: Option<Box<Txn>>,
    /// The database's schema version when the transaction began.
    pub(super) schema_version: u64,
    /// It is inside the database's gate: it has written.
    pub(super) is_inside: bool,
    /// Counts the runs of the closure of a `transact`, from 1.
    pub(super) attempt: u32,
    /// `None` only while it is dropped.
    pub(super) scratch: Option<Box<TxnScratch>>,
    // Dropped last: it may be what keeps the database open.
    pub(super) inner: OpenGuard,
}

/// The parts of a call, borrowed apart.
pub(super) struct StatementContext<'a> {
    pub(super) inner: &'a DatabaseInner,
    pub(super) system: &'a TxnSystem,
    pub(super) txn: &'a mut Txn,
    pub(super) version: &'a Arc<TableVersion>,
    pub(super) key: &'a mut Vec<u8>,
    pub(super) row: &'a mut Vec<u8>,
}

/// The result of an insertion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inserted {
    /// The number the auto-increment column got, if it was NULL in the values.
    pub auto_increment: Option<u64>,
}

impl WriteTxn {
    pub(crate) fn begin(inner: &OpenGuard, options: &TxnOptions, access: Access) -> Result<WriteTxn> {
        inner.check_running()?;
        let schema_version = inner.schema_version();
        Ok(WriteTxn {
            txn: Some(inner.txn_system().begin(options, access)?),
            inner: inner.clone(),
            schema_version,
            is_inside: false,
            attempt: 1,
            scratch: Some(inner.txn_scratches.take().unwrap_or_default()),
        })
    }

    /// Expired rows do not exist for it.
    pub(super) fn hide_expired(&mut self) {
        self.txn.as_mut().expect(HAS_NOT_ENDED).hide_expired();
    }

    /// A read-only transaction that sees what this read-only one sees: its view, and the indexes that were there when
    /// it began.
    pub(crate) fn same_snapshot(&mut self) -> Result<WriteTxn> {
        let system = self.inner.txn_system();
        let mut other = WriteTxn::begin(&self.inner, &TxnOptions::default(), Access::ReadOnly)?;
        other.schema_version = self.schema_version;
        let txn = self.txn.as_mut().expect(HAS_NOT_ENDED);
        let of_other = other.txn.as_mut().expect(HAS_NOT_ENDED);
        of_other.take_expiry_time_of(txn, system);
        of_other.share_view(system, txn);
        let [scratch, of_other] =
            [&mut self.scratch, &mut other.scratch].map(|scratch| scratch.as_mut().expect(HAS_NOT_ENDED));
        scratch.tables.share_with(&mut of_other.tables);
        Ok(other)
    }

    /// Opens the transaction's view, if it has none: a copy of it.
    pub(super) fn open_view(&mut self) -> ReadView {
        self.txn.as_mut().expect(HAS_NOT_ENDED).open_view(self.inner.txn_system()).view.as_ref().clone()
    }

    /// Inserts a row: a value for each column, in order.
    ///
    /// # Errors
    /// `DuplicateKey`, `BadValue` (names the column), `RowTooLarge`, `KeyTooLong`, a lock or I/O error.
    #[inline]
    pub fn insert(&mut self, table: &Table, values: &[ValueRef<'_>]) -> Result<Inserted> {
        self.insert_columns(table, values)
    }

    /// The row of a primary key, as the transaction's level ([`Isolation`](crate::Isolation)) shows it.
    ///
    /// # Errors
    /// `BadValue` if the key does not fit, an I/O error; under SERIALIZABLE those of
    /// [`get_for_share`](Self::get_for_share).
    #[inline]
    pub fn get(&mut self, table: &Table, key: &[ValueRef<'_>]) -> Result<Option<Row>> {
        self.read_row(table, key, LockMode::None)
    }

    /// As [`get`](Self::get), but hands the row to `look` in place instead of copying it.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    #[inline]
    pub fn get_with<R>(
        &mut self,
        table: &Table,
        key: &[ValueRef<'_>],
        look: impl FnOnce(RowRef<'_>) -> R,
    ) -> Result<Option<R>> {
        let found = self.read(table, key, LockMode::None, Wanted::ALL)?;
        found.map(|(version, row)| version.layouts.read(row).map(look)).transpose()
    }

    /// The newest committed row, locked exclusively until the transaction ends.
    ///
    /// # Errors
    /// As [`get`](Self::get); a lock wait timeout, a deadlock, a write conflict.
    #[inline]
    pub fn get_for_update(&mut self, table: &Table, key: &[ValueRef<'_>]) -> Result<Option<Row>> {
        self.read_row(table, key, LockMode::Exclusive)
    }

    /// The newest committed row, locked shared until the transaction ends.
    ///
    /// # Errors
    /// As [`get_for_update`](Self::get_for_update).
    pub fn get_for_share(&mut self, table: &Table, key: &[ValueRef<'_>]) -> Result<Option<Row>> {
        self.read_row(table, key, LockMode::Shared)
    }

    /// Sets columns (by position or by name) of the row of a primary key; false if there is no such row.
    ///
    /// # Errors
    /// As [`insert`](Self::insert); a lock wait timeout, a deadlock, a write conflict.
    #[inline]
    pub fn update<C: ColumnIndex>(
        &mut self,
        table: &Table,
        key: &[ValueRef<'_>],
        columns: &[(C, ValueRef<'_>)],
    ) -> Result<bool> {
        self.modify(table, key, |_, set| columns.iter().for_each(|&(column, value)| set.put(column, value)))
    }

    /// Reads the newest committed row and changes it, in one descent; false if there is no such row.
    ///
    /// `change` gets the row and where to put new values. It may run more than once, and while a page is latched: it
    /// computes, it does not use the database. Of the columns that are too long for the row's page, those are read that
    /// it looks at, and those are written that it puts.
    ///
    /// # Errors
    /// As [`update`](Self::update).
    #[inline]
    pub fn modify(
        &mut self,
        table: &Table,
        key: &[ValueRef<'_>],
        change: impl FnMut(RowRef<'_>, &mut Changes<'_>),
    ) -> Result<bool> {
        self.change_row(table, |call| call.encode_key(key), change)
    }

    /// Deletes the row of a primary key; false if there is no such row.
    ///
    /// # Errors
    /// `BadValue` if the key does not fit, a lock wait timeout, a deadlock, a write conflict, an I/O error.
    #[inline]
    pub fn delete(&mut self, table: &Table, key: &[ValueRef<'_>]) -> Result<bool> {
        self.delete_row(table, |call| call.encode_key(key))
    }

    /// Marks this point of the transaction.
    pub fn savepoint(&mut self) -> Savepoint {
        self.txn.as_mut().expect(HAS_NOT_ENDED).savepoint()
    }

    /// Undoes what was done since the savepoint. Locks stay, except those of rows that were changed since, under READ
    /// COMMITTED and READ UNCOMMITTED.
    ///
    /// # Errors
    /// The savepoint is of another transaction, or gone since a rollback to an earlier one; an I/O error.
    pub fn rollback_to(&mut self, savepoint: Savepoint) -> Result<()> {
        self.inner.check_not_closed()?;
        self.inner.txn_system().rollback_to(self.txn.as_mut().expect(HAS_NOT_ENDED), savepoint)
    }

    /// Makes the changes visible, and durable as `flush_log_at_trx_commit` says.
    ///
    /// # Errors
    /// An I/O error: then whether the changes are durable is unknown until the database is opened again.
    /// [`Error::Usage`] inside the closure of a `modify` or a `visit`: it is rolled back when that call is over.
    pub fn commit(mut self) -> Result<()> {
        self.end_as_committed()
    }

    /// As [`commit`](Self::commit); says the LSN up to which the log has the commit, or its end if nothing was changed.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn commit_lsn(mut self) -> Result<u64> {
        self.check_may_end()?;
        let _open = self.log_changes()?;
        let lsn = self.inner.txn_system().commit_lsn(self.txn.take().expect(HAS_NOT_ENDED))?;
        Ok(lsn.unwrap_or_else(|| self.inner.ctx.log.end_lsn()).0)
    }

    pub(super) fn check_may_end(&self) -> Result<()> {
        self.inner.check_not_closed()?;
        check_outside_row_closure()
    }

    /// Number of the transaction, given at its first write; `None` before. It is the transaction that
    /// [`Until::Transaction`](crate::Until::Transaction) names.
    pub fn id(&self) -> Option<u64> {
        self.txn.as_ref().and_then(|txn| txn.number())
    }

    /// Undoes everything.
    ///
    /// # Errors
    /// An I/O or corruption error; as [`commit`](Self::commit) inside a closure.
    pub fn rollback(mut self) -> Result<()> {
        self.end_as_rolled_back()
    }

    /// Locks the table at its first use; returns its place among the tables in use. Every call that reads or writes a
    /// table begins here: inside a row closure it is refused before it waits for anything or takes a number.
    #[inline]
    fn using(&mut self, table: &Table, mode: TableLockMode) -> Result<usize> {
        self.lock_table(table, mode).map_err(|error| self.table_wait_error(table.name(), error))
    }

    #[inline]
    fn lock_table(&mut self, table: &Table, mode: TableLockMode) -> Result<usize> {
        check_outside_row_closure()?;
        self.inner.check_not_closed()?;
        let txn = self.txn.as_ref().expect(HAS_NOT_ENDED);
        let patience = txn.patience();
        if mode == TableLockMode::Write && !self.is_inside {
            self.inner.gate.enter_writer(patience, || txn.holds_rows())?;
            self.is_inside = true;
        }
        let tables = &mut self.scratch.as_mut().expect(HAS_NOT_ENDED).tables;
        if let Some(at) = tables.find(&table.shared, mode, patience)? {
            return Ok(at);
        }
        self.inner.check_owns(&table.shared)?;
        tables.add(&table.shared, mode, patience)
    }

    /// Before rows are read that will be locked: rule 3 of the gate.
    #[inline]
    pub(super) fn before_read(&self, table: &str, lock: LockMode) -> Result<()> {
        let txn = self.txn.as_ref().expect(HAS_NOT_ENDED);
        if self.is_inside || txn.lock_of_read(lock) == LockMode::None {
            return Ok(());
        }
        let waited = self.inner.gate.await_turn(txn.patience(), || txn.holds_rows());
        waited.map_err(|error| self.table_wait_error(table, error))
    }

    #[inline]
    pub(super) fn call(&mut self, table: &Table, mode: TableLockMode) -> Result<StatementContext<'_>> {
        let at = self.using(table, mode)?;
        debug_assert!(mode == TableLockMode::Read || self.is_inside, "a transaction writes outside of the gate");
        debug_assert!(self.inner.owns(&table.shared), "table {} of another database is used", table.name());
        if mode == TableLockMode::Write {
            self.scratch.as_ref().expect(HAS_NOT_ENDED).tables.version(at).check_writable()?;
        }
        let TxnScratch { tables, key, row } = &mut **self.scratch.as_mut().expect(HAS_NOT_ENDED);
        let (txn, version) = (self.txn.as_mut().expect(HAS_NOT_ENDED), tables.version(at));
        if mode == TableLockMode::Write {
            check_since(version, txn, LockMode::Exclusive, self.schema_version)?;
            txn.logs_changes |= version.definition.log_changes;
        }
        Ok(StatementContext { inner: &self.inner, system: self.inner.txn_system(), txn, version, key, row })
    }

    /// Reads the row of a key; it is in the transaction's buffer.
    #[inline]
    pub(super) fn read(
        &mut self,
        table: &Table,
        key: &[ValueRef<'_>],
        lock: LockMode,
        wanted: Wanted<'_>,
    ) -> Result<Option<(&Arc<TableVersion>, &[u8])>> {
        self.read_by(table, |call| call.encode_key(key), lock, wanted)
    }

    /// As [`read`](Self::read), by a key that `set_key` puts into the call.
    #[inline]
    pub(in crate::db) fn read_by(
        &mut self,
        table: &Table,
        set_key: impl FnOnce(&mut StatementContext<'_>) -> Result<()>,
        lock: LockMode,
        wanted: Wanted<'_>,
    ) -> Result<Option<(&Arc<TableVersion>, &[u8])>> {
        self.before_read(table.name(), lock)?;
        let schema_version = self.schema_version;
        let mut call = self.call(table, TableLockMode::Read)?;
        check_since(call.version, call.txn, lock, schema_version)?;
        set_key(&mut call)?;
        let StatementContext { inner, system, txn, version, key, row } = call;
        let found = RowOp { system, txn, table: &**version, key }.get(lock, wanted, row)?;
        inner.check_running()?;
        Ok(found.then_some((version, row)))
    }

    #[inline]
    pub(super) fn read_row(&mut self, table: &Table, key: &[ValueRef<'_>], lock: LockMode) -> Result<Option<Row>> {
        let found = self.read(table, key, lock, Wanted::ALL)?;
        found.map(|(version, row)| version.layouts.to_row(row)).transpose()
    }

    /// Starts to use a table for a scan by this index; returns its version and the index's position (`None` = the rows
    /// themselves).
    pub(crate) fn use_for_scan(
        &mut self,
        table: &Table,
        index: Option<&str>,
    ) -> Result<(Arc<TableVersion>, Option<usize>)> {
        let at = self.using(table, TableLockMode::Read)?;
        let tables = &mut self.scratch.as_mut().expect(HAS_NOT_ENDED).tables;
        let index = match index {
            Some(name) => tables.index_position(at, name)?,
            None => None,
        };
        Ok((tables.version(at).clone(), index))
    }
}

impl StatementContext<'_> {
    #[inline]
    pub(super) fn encode_key(&mut self, key: &[ValueRef<'_>]) -> Result<()> {
        self.key.clear();
        self.version.key.encode_full(&self.version.definition, key, self.key)
    }

    /// Changes a row in its key, or in its auto-increment number: as a deletion and an insertion.
    #[cold]
    pub(super) fn relocate(
        &mut self,
        table: &TableShared,
        change: &mut dyn FnMut(RowRef<'_>, &mut Changes<'_>),
    ) -> Result<bool> {
        let StatementContext { system, txn, version, key, row, .. } = self;
        let (system, version) = (*system, *version);
        if !(RowOp { system, txn, table: &**version, key }.get(LockMode::Exclusive, Wanted::ALL, row)?) {
            return Ok(false);
        }
        let (mut new_row, mut new_key) = (Vec::new(), Vec::new());
        crate::txn::closed(|| apply(version, row, &mut new_row, None, change))?;
        version.key_of(&new_row, &mut new_key);
        version.check_keys(&new_key, &new_row)?;
        move_counter((system, txn), (table, &**version), |me| table.observe(me, version, &new_row))?;
        let before = txn.savepoint();
        let deleted = RowOp { system, txn, table: &**version, key }.delete();
        debug_assert!(!matches!(deleted, Ok(false)), "a row that is locked was removed by another transaction");
        let done = deleted.and_then(|_| RowOp { system, txn, table: &**version, key: &new_key }.insert(&new_row));
        match done {
            Ok(()) => Ok(true),
            Err(Error::Deadlock) => Err(Error::Deadlock),
            Err(error) => {
                system.rollback_to(txn, before)?;
                Err(error)
            }
        }
    }
}
