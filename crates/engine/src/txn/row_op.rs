//! A row operation: its parameters, its begin and its failure.
//!
//! Rule: a row operation is a statement. If it fails, its changes are undone before the error is returned.

use super::overflow_columns::Outside;
use super::system::TxnSystem;
use super::table_trees::TableTrees;
use super::transaction::Txn;
use super::write::{Attempt, Blocked, check_lockable, unblock};
use crate::error::Result;
use crate::lock::{LockMode, RowName};
use crate::row::format::RowHeader;
use crate::space::reserve::{self, SpacePriority};

/// A row closure: gets the present row, writes the new one, returns whether there is a change. With [`Outside`] it runs
/// under no latch, and the row lacks columns on overflow pages: it says which of them the new row keeps.
pub(super) type RowChange<'f> = dyn FnMut(&[u8], &mut Vec<u8>, Option<&mut Outside<'_>>) -> Result<bool> + 'f;

/// A row operation of a transaction: the table and the row's clustered key.
pub(crate) struct RowOp<'a> {
    /// The system the transaction belongs to.
    pub system: &'a TxnSystem,
    /// The transaction.
    pub txn: &'a mut Txn,
    pub table: &'a dyn TableTrees,
    /// The row's key.
    pub key: &'a [u8],
}

impl RowOp<'_> {
    /// Inserts the row.
    ///
    /// # Errors
    /// `DuplicateKey`, `KeyTooLong`, `RowTooLarge`, lock waits, `WriteConflict`, I/O.
    pub(crate) fn insert(self, payload: &[u8]) -> Result<()> {
        self.statement(|op| op.insert_row(payload))
    }

    /// Changes the row: `change` gets the present row and writes the new one; it returns whether there is a change at
    /// all. It may be called more than once, and may run under a page latch: it must not call into the database.
    /// Returns whether the row exists.
    ///
    /// # Errors
    /// As [`RowOp::insert`], and those of `change`.
    pub(crate) fn update(self, change: &mut RowChange<'_>) -> Result<bool> {
        self.statement(|op| op.update_row(change))
    }

    /// Deletes the row. Returns whether there was one.
    ///
    /// # Errors
    /// Lock waits, `WriteConflict`, I/O.
    pub(crate) fn delete(self) -> Result<bool> {
        let _entitled = reserve::entitle(SpacePriority::Deletes);
        self.statement(RowOp::delete_row)
    }

    fn statement<R>(mut self, run: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        self.txn.check_active()?;
        self.system.delay_for_purge();
        self.txn.prepare_write(self.system)?;
        self.txn.time_for(self.system, self.table);
        let before = self.txn.position();
        run(&mut self).map_err(|error| self.txn.undo_statement(self.system, before, error))
    }

    /// The row, as lock requests name it.
    #[inline]
    pub(super) fn name(&self) -> RowName<'_> {
        RowName { index: self.table.clustered().id(), key: self.key }
    }

    /// Provides what an attempt at the row lacked. The caller holds no latch.
    pub(super) fn unblock(&mut self, blocked: Blocked) -> Result<()> {
        unblock(self.system, self.txn, self.table, (self.table.clustered(), self.key), blocked)
    }

    /// Whether the transaction may change the row, whose leaf is latched and whose newest version is `header`'s.
    #[inline]
    pub(super) fn check_lockable(&self, header: &RowHeader) -> Attempt<()> {
        check_lockable(self.system, self.txn, self.name(), header, LockMode::Exclusive)
    }

    /// Keeps others from inserting the row, which does not exist for this transaction. Its leaf is latched.
    pub(super) fn lock_absence(&self) {
        self.txn.lock_absence(self.system, self.table, self.key);
    }
}
