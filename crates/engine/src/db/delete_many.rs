//! Deleting the rows of a scan.
//!
//! Rules
//! 1. The call is one statement: if it fails, or the caller's closure panics, it deletes no row, and the state of the
//!    transaction is as before, except its locks.
//! 2. It is a locking scan that deletes its rows: so it deletes the newest committed rows, and under REPEATABLE READ
//!    and SERIALIZABLE no other transaction inserts into its range until the transaction ends. It keeps a few rows in
//!    memory at a time.

use super::scan::{Scan, ScanIter};
use super::write_txn::WriteTxn;
use crate::error::Result;
use crate::lock::LockMode;
use crate::table::{RowLayouts, RowRef, Table};
use crate::txn::RowCursor;

impl Scan<'_, '_> {
    /// Deletes the rows of the scan: its range, index, limit and lock waits ([`nowait`](Self::nowait),
    /// [`skip_locked`](Self::skip_locked)) apply. Returns how many. If one cannot be deleted, none is.
    /// ([`Database::truncate_table`](crate::Database::truncate_table) empties a whole table at once.)
    ///
    /// ```
    /// # use highwater::{Database, Schema, Type, values};
    /// # let db = Database::in_memory()?;
    /// let schema = Schema::new().column("at", Type::U64).column("what", Type::Text(80)).primary_key(&["at"]);
    /// let log = db.create_table("log", schema)?;
    /// db.transact(|txn| txn.insert_many(&log, (0..100u64).map(|at| values![at, "came by"])))?;
    /// let deleted = db.transact(|txn| txn.scan(&log).to_exclusive(&values![90]).delete())?;
    /// assert_eq!((deleted, db.snapshot()?.scan(&log).count()?), (90, 10));
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`iter`](Self::iter) and [`ScanIter::next_ref`]; [`Error::Usage`](crate::Error::Usage) of a snapshot.
    pub fn delete(self) -> Result<u64> {
        self.delete_if(|_| true)
    }

    /// As [`delete`](Self::delete), but only the rows for which `is_deleted` returns true. All rows that are passed to
    /// it stay locked until the transaction ends.
    ///
    /// ```
    /// # use highwater::{Database, Schema, Type, values};
    /// # let db = Database::in_memory()?;
    /// # let schema = Schema::new().column("id", Type::U64).column("left", Type::U64).primary_key(&["id"]);
    /// # let stock = db.create_table("stock", schema)?;
    /// # db.transact(|txn| txn.insert_many(&stock, (0..9u64).map(|id| values![id, id % 3])))?;
    /// let sold_out = db.transact(|txn| txn.scan(&stock).delete_if(|row| row.u64("left") == 0))?;
    /// assert_eq!(sold_out, 3);
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`delete`](Self::delete).
    pub fn delete_if(mut self, mut is_deleted: impl FnMut(RowRef<'_>) -> bool) -> Result<u64> {
        self.lock = LockMode::Exclusive;
        let table = self.table.clone();
        let (rows, _) = self.start(false)?;
        let ScanIter { txn, version, projected, cursor } = rows;
        let Some(cursor) = cursor else { return Ok(0) };
        let layouts = projected.as_ref().unwrap_or(&version.layouts);
        txn.all_or_nothing(|txn| txn.delete_passed(cursor, &table, layouts, &mut is_deleted))
    }
}

impl WriteTxn {
    /// Deletes the rows that a cursor passes and `is_deleted` chooses.
    fn delete_passed(
        &mut self,
        mut cursor: RowCursor,
        table: &Table,
        layouts: &RowLayouts,
        is_deleted: &mut impl FnMut(RowRef<'_>) -> bool,
    ) -> Result<u64> {
        let (mut key, mut deleted) = (Vec::new(), 0);
        while self.next(&mut cursor)? {
            if is_deleted(layouts.read(cursor.payload())?) {
                key.clear();
                key.extend_from_slice(cursor.key());
                deleted += u64::from(self.delete_row(table, |call| call.take_key(&key))?);
            }
        }
        Ok(deleted)
    }
}
