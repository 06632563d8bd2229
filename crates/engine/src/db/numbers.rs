//! Numbers of auto-increment columns: reserved in ranges, read, set.
//!
//! Rule: numbers are not part of a transaction. A reserved number is not assigned again, even after a rollback; a crash
//! leaves a gap and assigns no number twice.

use super::write_txn::WriteTxn;
use crate::error::{Error, Result};
use crate::table::lock::TableLockMode;
use crate::table::{NumberRange, Table};

impl WriteTxn {
    /// Reserves `count` consecutive numbers of the table's auto-increment column: rows with them are inserted as rows
    /// with explicit values. With `every` greater than 1 they are `every` apart, and `offset` more than a multiple of
    /// it: servers of which each inserts for itself so give different numbers (`auto_increment_increment` and
    /// `auto_increment_offset` of MariaDB). Else [`NumberRange::default`] is what to ask with.
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
    /// [`Error::BadValue`] if the column's type has not that many numbers left: none is taken then. [`Error::Usage`] if
    /// the table has no such column, or for `count` or `every` 0. Lock and I/O errors.
    pub fn reserve_numbers(&mut self, table: &Table, range: NumberRange) -> Result<u64> {
        self.call(table, TableLockMode::Write)?;
        if range.count == 0 || range.every == 0 {
            return Err(Error::Usage("a range of numbers has a count and a distance of at least 1".to_string()));
        }
        table.shared.reserve(range)
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
