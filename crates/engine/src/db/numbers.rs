//! Numbers of auto-increment columns: reserved in ranges, read, set, and locked for a statement.
//!
//! Rules
//! 1. Numbers are not part of a transaction. A reserved number is not assigned again, even after a rollback; a crash
//!    leaves a gap and assigns no number twice.
//! 2. Every call that moves a counter uses [`move_counter`], which waits while the statement of another transaction has
//!    the numbers locked. Only [`WriteTxn::set_next_number`] waits for nothing.

use super::counter_wait::move_counter;
use super::write_txn::{StatementContext, WriteTxn};
use crate::error::{Error, Result};
use crate::table::lock::TableLockMode;
use crate::table::{NumberRange, Table};
use crate::txn::auto_increment_lock;

impl WriteTxn {
    /// Reserves `count` consecutive numbers of the table's auto-increment column: rows with them are inserted as rows
    /// with explicit values. With `every` greater than 1 they are `every` apart, and `offset` more than a multiple of
    /// it: servers of which each inserts for itself so give different numbers (`auto_increment_increment` and
    /// `auto_increment_offset` of MariaDB). Else the caller passes [`NumberRange::default`].
    ///
    /// ```
    /// # use highwater::{Database, NumberRange, Options, Schema, Type, values};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Database::open(dir.path(), Options::default())?;
    /// let schema = Schema::new().column("id", Type::U64).auto_increment("id").primary_key(&["id"]);
    /// let table = db.create_table("t", schema)?;
    /// let mut txn = db.begin()?;
    /// assert_eq!(txn.reserve_numbers(&table, NumberRange { count: 3, every: 10, offset: 5 })?, 5); // 5, 15, 25
    /// assert_eq!(txn.reserve_numbers(&table, NumberRange { count: 2, ..NumberRange::default() })?, 26);
    /// assert_eq!(table.next_number(), Some(28));
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::BadValue`] if the column's type has fewer numbers left: none is assigned then. [`Error::Usage`] if the
    /// table has no such column, or for `count` or `every` 0. Lock and I/O errors.
    pub fn reserve_numbers(&mut self, table: &Table, range: NumberRange) -> Result<u64> {
        let StatementContext { system, txn, version, .. } = self.call(table, TableLockMode::Write)?;
        if range.count == 0 || range.every == 0 {
            return Err(Error::Usage("a range of numbers has a count and a distance of at least 1".to_string()));
        }
        let shared = &*table.shared;
        move_counter((system, txn), (shared, &**version), |me| shared.reserve(me, range))
    }

    /// Locks the numbers of the table's auto-increment column until the statement ends, or outside of
    /// [statements](Self::begin_statement) until the transaction ends: InnoDB's `AUTO-INC` lock. Insertions of other
    /// transactions that take a number, or have a greater one than any before, wait for it; so the numbers that this
    /// statement takes are consecutive. A replica that repeats the statement needs to know only the first of them.
    ///
    /// ```
    /// # use highwater::{Database, Error, LockWait, NumberRange, Options, Schema, Type, values};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Database::open(dir.path(), Options::default())?;
    /// let schema = Schema::new().column("id", Type::U64).auto_increment("id").primary_key(&["id"]);
    /// let table = db.create_table("t", schema)?;
    /// let (mut one, mut other) = (db.begin()?, db.begin()?);
    /// other.set_lock_wait(LockWait::NoWait);
    /// one.statement(|txn| {
    ///     txn.lock_numbers(&table)?;
    ///     txn.insert(&table, &values![null])?;
    ///     assert!(matches!(other.insert(&table, &values![null]), Err(Error::LockNotAvailable { .. })));
    ///     txn.insert(&table, &values![null]).map(drop)
    /// })?;
    /// assert_eq!(other.insert(&table, &values![null])?.auto_increment, Some(3));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Usage`] if the table has no such column. Lock and I/O errors.
    pub fn lock_numbers(&mut self, table: &Table) -> Result<()> {
        let StatementContext { system, txn, version, .. } = self.call(table, TableLockMode::Write)?;
        if version.definition.auto_increment.is_none() {
            return Err(Error::Usage(format!("table {} has no auto-increment column", table.name())));
        }
        auto_increment_lock::lock_for_statement(system, txn, &**version)?;
        table.shared.set_counter_locked_by(Some(txn.holder.owner))
    }

    /// Makes `next` the next number of the table's auto-increment column. A smaller one than before is for tables whose
    /// rows with the numbers from there on are gone: else insertions will meet them
    /// ([`Error::DuplicateKey`], if the column is a key).
    ///
    /// # Errors
    /// [`Error::BadValue`] for 0, or a number that the column's type does not have; else as
    /// [`reserve_numbers`](Self::reserve_numbers).
    pub fn set_next_number(&mut self, table: &Table, next: u64) -> Result<()> {
        self.call(table, TableLockMode::Write)?;
        table.shared.set_next_number(next)
    }
}
