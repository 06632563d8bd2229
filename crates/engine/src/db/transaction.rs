//! Transactions as users see them.
//!
//! Rules
//! 1. A failed call leaves the transaction as it was before the call, except [`Error::Deadlock`](crate::Error::Deadlock): then all of
//!    it is rolled back already, and only `rollback` or dropping it is left to do.
//! 2. Dropping a transaction rolls it back.

use super::scan::Scan;
use super::session::Session;
use crate::error::Result;
use crate::table::{Changes, Row, RowRef, Table, ValueRef};
use crate::txn::{Isolation, LockMode, Savepoint};

/// How a transaction behaves; see [`Database::begin_with`](crate::Database::begin_with).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxnOptions {
    /// What it sees of others.
    pub isolation: Isolation,
    /// Milliseconds it waits for a lock; `None` = as the database's option `lock_wait_timeout_ms` says.
    pub lock_wait_timeout_ms: Option<u64>,
    /// A write to a row that somebody else changed after this transaction's snapshot fails with
    /// [`Error::WriteConflict`](crate::Error::WriteConflict) instead of writing over the newest version.
    pub first_committer_wins: bool,
}

impl Default for TxnOptions {
    fn default() -> TxnOptions {
        TxnOptions { isolation: Isolation::RepeatableRead, lock_wait_timeout_ms: None, first_committer_wins: false }
    }
}

/// What an insert did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inserted {
    /// The number the auto-increment column got, if it was NULL in the values.
    pub auto_increment: Option<u64>,
}

/// Reading without locks: the same in both kinds of transaction.
macro_rules! snapshot_reads {
    () => {
        /// The row of a primary key, as the transaction's snapshot has it.
        ///
        /// # Errors
        /// `BadValue` if the key does not fit, an I/O error.
        #[inline]
        pub fn get(&mut self, table: &Table, key: &[ValueRef<'_>]) -> Result<Option<Row>> {
            self.session.get(table, key, LockMode::None)
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
            self.session.get_with(table, key, LockMode::None, look)
        }

        /// A scan of a table, to be described further.
        pub fn scan<'v>(&mut self, table: &Table) -> Scan<'_, 'v> {
            Scan::new(&mut self.session, table)
        }
    };
}

/// A transaction that reads and writes.
#[must_use = "a transaction that is dropped is rolled back"]
pub struct WriteTxn {
    session: Session,
}

impl WriteTxn {
    pub(crate) fn new(session: Session) -> WriteTxn {
        WriteTxn { session }
    }

    /// Inserts a row: a value for each column, in order.
    ///
    /// # Errors
    /// `DuplicateKey`, `BadValue` (names the column), `RowTooLarge`, `KeyTooLong`, a lock or I/O error.
    #[inline]
    pub fn insert(&mut self, table: &Table, values: &[ValueRef<'_>]) -> Result<Inserted> {
        Ok(Inserted { auto_increment: self.session.insert(table, values)? })
    }

    snapshot_reads!();

    /// The newest committed row, locked exclusively until the transaction ends.
    ///
    /// # Errors
    /// As [`get`](Self::get); a lock wait timeout, a deadlock, a write conflict.
    #[inline]
    pub fn get_for_update(&mut self, table: &Table, key: &[ValueRef<'_>]) -> Result<Option<Row>> {
        self.session.get(table, key, LockMode::Exclusive)
    }

    /// The newest committed row, locked shared until the transaction ends.
    ///
    /// # Errors
    /// As [`get_for_update`](Self::get_for_update).
    pub fn get_for_share(&mut self, table: &Table, key: &[ValueRef<'_>]) -> Result<Option<Row>> {
        self.session.get(table, key, LockMode::Shared)
    }

    /// Sets columns (by position) of the row of a primary key; false if there is no such row.
    ///
    /// # Errors
    /// As [`insert`](Self::insert); a lock wait timeout, a deadlock, a write conflict.
    #[inline]
    pub fn update(&mut self, table: &Table, key: &[ValueRef<'_>], columns: &[(usize, ValueRef<'_>)]) -> Result<bool> {
        self.session.modify(table, key, |_, set| columns.iter().for_each(|&(column, value)| set.put(column, value)))
    }

    /// Reads the newest committed row and changes it, in one descent; false if there is no such row.
    ///
    /// `change` gets the row and where to put new values. It may run more than once, and while a page is latched: it computes,
    /// it does not use the database.
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
        self.session.modify(table, key, change)
    }

    /// Deletes the row of a primary key; false if there is no such row.
    ///
    /// # Errors
    /// `BadValue` if the key does not fit, a lock wait timeout, a deadlock, a write conflict, an I/O error.
    #[inline]
    pub fn delete(&mut self, table: &Table, key: &[ValueRef<'_>]) -> Result<bool> {
        self.session.delete(table, key)
    }

    /// Marks this point of the transaction.
    pub fn savepoint(&mut self) -> Savepoint {
        self.session.savepoint()
    }

    /// Undoes what was done since the savepoint. Locks stay.
    ///
    /// # Errors
    /// The savepoint is of another transaction, or gone since a rollback to an earlier one; an I/O error.
    pub fn rollback_to(&mut self, savepoint: Savepoint) -> Result<()> {
        self.session.rollback_to(savepoint)
    }

    /// Makes the changes visible, and durable as `flush_log_at_trx_commit` says.
    ///
    /// # Errors
    /// An I/O error: then whether the changes are durable is unknown until the database is opened again.
    pub fn commit(self) -> Result<()> {
        self.session.commit()
    }

    /// Undoes everything.
    ///
    /// # Errors
    /// An I/O or corruption error.
    pub fn rollback(self) -> Result<()> {
        self.session.rollback()
    }
}

/// A transaction that reads one snapshot.
pub struct ReadTxn {
    session: Session,
}

impl ReadTxn {
    pub(crate) fn new(session: Session) -> ReadTxn {
        ReadTxn { session }
    }

    snapshot_reads!();
}
