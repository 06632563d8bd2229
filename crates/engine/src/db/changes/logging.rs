//! Use of the change log: an opening continues its numbers, a transaction logs its changes before it ends, and a
//! creation or change of a table that logs its changes is logged.

use super::change_log::OpenSequence;
use super::trim::trimmed;
use crate::db::database::{Database, OpenGuard};
use crate::db::write_txn::{HAS_NOT_ENDED, WriteTxn};
use crate::error::Result;
use crate::txn::{Access, Isolation, TxnOptions};
use crate::types::TableId;

/// Continues the numbers of the change log; the database is open.
pub(in crate::db) fn finish_opening(open: &OpenGuard) -> Result<()> {
    open.changes.go_on_behind(last_in_table(open))
}

/// The last number in the table, of a prepared transaction too, or up to which it was trimmed.
fn last_in_table(open: &OpenGuard) -> Result<u64> {
    let Some(table) = open.changes.table()? else { return Ok(0) };
    let options = TxnOptions { isolation: Isolation::ReadUncommitted, ..TxnOptions::default() };
    let mut read = WriteTxn::begin(open, &options, Access::ReadOnly)?;
    let last = read.scan(table).rev().first()?.map_or(0, |row| row.u64(0));
    Ok(last.max(trimmed(&mut read, table)?))
}

impl WriteTxn {
    /// Before the transaction is committed or prepared: writes what it has changed to the change log. The number that
    /// is returned is kept until the transaction has ended. After an error it is rolled back.
    #[inline]
    pub(in crate::db) fn log_changes(&mut self) -> Result<Option<OpenSequence>> {
        match self.txn.as_ref().is_some_and(|txn| txn.logs_changes) {
            true => self.append_changes(),
            false => Ok(None),
        }
    }

    #[cold]
    fn append_changes(&mut self) -> Result<Option<OpenSequence>> {
        let (system, txn) = (self.inner.txn_system(), self.txn.as_mut().expect(HAS_NOT_ENDED));
        // Else the end says why it cannot be committed.
        if txn.check_active().is_err() {
            return Ok(None);
        }
        let appended = self.inner.changes.append(system, txn);
        appended.or_else(|error| match self.txn.take() {
            Some(txn) => system.rollback(txn).and(Err(error)),
            None => Err(error),
        })
    }
}

impl Database {
    /// Creates the change log if it does not exist, before a table that logs its changes is created. The caller holds
    /// the schema mutex.
    pub(in crate::db) fn ensure_change_log(&self) -> Result<()> {
        debug_assert!(
            self.inner.schema.try_lock().is_none(),
            "rule 1 of schema changes: the change log is created without their mutex"
        );
        self.inner.changes.create(&self.inner.catalog, &self.inner.registry)
    }

    /// Logs the coming change of a table that logs its changes now, or will do so afterwards, under each of its names.
    /// No transaction uses the table; the caller holds the schema mutex.
    pub(in crate::db) fn log_table_change(&self, table: TableId, names: &[&str]) -> Result<()> {
        self.ensure_change_log()?;
        self.inner.changes.append_table_change(self.inner.txn_system(), table, names)
    }
}
