//! The interface of stores for workloads, and its implementations.
//!
//! Rules
//! 1. Everything is dispatched statically: a workload compiled for the embedded store calls the engine directly.
//! 2. Tables are handles fetched once ([`Store::table`]); columns are positions in the order of [`TableSpec::columns`].
//! 3. A [`Session`] belongs to one client thread. It has at most one transaction at a time; dropping one rolls it back.
//! 4. Writes and locking reads see the newest committed row; [`Read::get`] and [`Read::scan`] without a lock read as
//!    the isolation level requires: a snapshot, unless an option of the store changes the level.
//! 5. After a retryable error (see [`Error::is_retryable`](crate::Error::is_retryable)) the caller drops the
//!    transaction.

pub mod embedded;
#[cfg(test)]
pub(crate) mod model;
pub mod mysql;
mod stats;

#[doc(hidden)]
pub use highwater::stats::StatsSnapshot;
pub use stats::StoreStats;

use crate::error::Result;
use highwater::{DateTime, Decimal, Type, ValueRef};
use highwater_device::disk::Disk;
use std::ops::ControlFlow;

/// A column of a [`TableSpec`].
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Name.
    pub name: &'static str,
    /// Type.
    pub ty: Type,
    /// Whether it takes NULL.
    pub nullable: bool,
}

/// A column that takes no NULL.
pub const fn column(name: &'static str, ty: Type) -> Column {
    Column { name, ty, nullable: false }
}

/// A column that takes NULL.
pub const fn nullable(name: &'static str, ty: Type) -> Column {
    Column { name, ty, nullable: true }
}

/// A secondary index (not unique) of a [`TableSpec`].
#[derive(Clone, Copy, Debug)]
pub struct IndexSpec {
    /// Name.
    pub name: &'static str,
    /// Columns, in key order.
    pub columns: &'static [&'static str],
}

/// A table, described for every store.
#[derive(Clone, Debug)]
pub struct TableSpec {
    /// Name.
    pub name: String,
    /// Columns, in order; their positions are how rows address them.
    pub columns: &'static [Column],
    /// The auto-increment column: an inserted NULL becomes the next number.
    pub auto_increment: Option<&'static str>,
    /// Primary key columns.
    pub primary_key: &'static [&'static str],
    /// Secondary indexes.
    pub indexes: &'static [IndexSpec],
}

/// A store under test. Cloning gives another handle of the same store.
pub trait Store: Clone + Send + Sync + 'static {
    /// A prepared table.
    type Table: Clone + Send + Sync + 'static;
    /// One client's connection.
    type Session: Session<Table = Self::Table>;

    /// Creates a table.
    fn create_table(&self, spec: &TableSpec) -> Result<Self::Table>;
    /// Adds an index to a table that may have rows.
    fn create_index(&self, table: &str, index: &IndexSpec) -> Result<()>;
    /// Prepares loaded rows for their use, for example by recomputing statistics.
    fn loaded(&self) -> Result<()> {
        Ok(())
    }
    /// The table of that name, if there is one.
    fn table(&self, name: &str) -> Result<Option<Self::Table>>;
    /// A connection for one client thread.
    fn session(&self) -> Result<Self::Session>;
    /// The counters that the store has, now.
    fn stats(&self) -> StoreStats;
    /// The emulated disk of the store, if it is on one.
    fn disk(&self) -> Option<&Disk> {
        None
    }
}

/// One client's connection.
pub trait Session: Send + 'static {
    /// A prepared table.
    type Table: Clone + Send + Sync + 'static;
    /// A transaction that may write.
    type Txn<'s>: Transaction<Table = Self::Table>
    where
        Self: 's;
    /// A transaction that only reads.
    type Snapshot<'s>: Read<Table = Self::Table>
    where
        Self: 's;

    /// Begins a transaction, under REPEATABLE READ unless an option of the store changes that.
    fn begin(&mut self) -> Result<Self::Txn<'_>>;
    /// Begins a transaction that inserts many rows and does nothing else. A store may collect inserts until the
    /// transaction ends, so that their errors occur at its end, and need not assign auto-increment numbers.
    fn begin_bulk(&mut self) -> Result<Self::Txn<'_>> {
        self.begin()
    }
    /// Begins a read-only transaction.
    fn snapshot(&mut self) -> Result<Self::Snapshot<'_>>;
}

/// The keys of a scan: they begin with `prefix`, and their next column is in `from..=to`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scan<'a> {
    /// Index name; `None` is the primary key.
    pub index: Option<&'static str>,
    /// Leading key columns that must be equal.
    pub prefix: &'a [ValueRef<'a>],
    /// Smallest value (inclusive) of the key column after the prefix.
    pub from: Option<ValueRef<'a>>,
    /// Largest value (inclusive) of the key column after the prefix.
    pub to: Option<ValueRef<'a>>,
    /// From the largest key down.
    pub reverse: bool,
    /// Lock the rows visited for a later change.
    pub for_update: bool,
    /// Stop after this many rows; 0 is no limit.
    pub limit: usize,
}

impl<'a> Scan<'a> {
    /// Every row of the table in primary key order.
    pub const fn all() -> Scan<'static> {
        Scan { index: None, prefix: &[], from: None, to: None, reverse: false, for_update: false, limit: 0 }
    }

    /// The rows whose leading primary key columns are `prefix`.
    pub const fn prefix(prefix: &'a [ValueRef<'a>]) -> Scan<'a> {
        Scan { index: None, prefix, from: None, to: None, reverse: false, for_update: false, limit: 0 }
    }
}

/// Reading.
pub trait Read {
    /// A prepared table.
    type Table: Clone + Send + Sync + 'static;
    /// A row read, in place.
    type Row<'r>: RowView;

    /// Shows the row with that primary key, in this transaction's snapshot, to `look`; `None` when there is none.
    fn get<R>(
        &mut self,
        table: &Self::Table,
        key: &[ValueRef<'_>],
        look: impl FnOnce(&Self::Row<'_>) -> R,
    ) -> Result<Option<R>>;
    /// Prefetches rows that will soon be read or changed, by their primary keys. It is a hint that most stores ignore.
    fn prefetch<'v, K: AsRef<[ValueRef<'v>]>>(
        &mut self,
        _table: &Self::Table,
        _keys: impl IntoIterator<Item = K>,
    ) -> Result<()> {
        Ok(())
    }
    /// Shows rows to `visit` in key order until it breaks. `visit` is short, and calls no store: a page may be latched.
    fn scan(
        &mut self,
        table: &Self::Table,
        scan: &Scan<'_>,
        visit: impl FnMut(&Self::Row<'_>) -> ControlFlow<()>,
    ) -> Result<()>;
    /// Ends a reading transaction. For a writing one this is a commit.
    fn finish(self) -> Result<()>;
}

/// Reading and writing.
pub trait Transaction: Read {
    /// New values of a row that is being changed.
    type Changes<'c>: RowChanges;

    /// Inserts a row; returns the auto-increment number if one was assigned.
    fn insert(&mut self, table: &Self::Table, row: &[ValueRef<'_>]) -> Result<Option<u64>>;
    /// Inserts this many rows, in one statement if the store can. `row` calls the function that it is given with the
    /// values of the next row.
    fn insert_many(
        &mut self,
        table: &Self::Table,
        rows: u64,
        mut row: impl FnMut(&mut dyn FnMut(&[ValueRef<'_>]) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        (0..rows).try_for_each(|_| row(&mut |values| self.insert(table, values).map(drop)))
    }
    /// Sets columns of a row; returns false if no row has that key.
    fn update(&mut self, table: &Self::Table, key: &[ValueRef<'_>], set: &[(usize, ValueRef<'_>)]) -> Result<bool>;
    /// Reads the newest row and changes it in one step; returns false if there is none. `change` may run more than
    /// once: it must overwrite the values of its earlier run, not add to them.
    fn modify<F>(&mut self, table: &Self::Table, key: &[ValueRef<'_>], change: F) -> Result<bool>
    where
        F: FnMut(&Self::Row<'_>, &mut Self::Changes<'_>);
    /// Deletes a row; returns false if there is none.
    fn delete(&mut self, table: &Self::Table, key: &[ValueRef<'_>]) -> Result<bool>;
    /// Undoes everything.
    fn rollback(self) -> Result<()>;
}

/// Columns of a row by position. A value of another type than the requested one reads as zero or empty: the workloads
/// created the tables.
pub trait RowView {
    /// An unsigned integer.
    fn u64(&self, column: usize) -> u64;
    /// A signed integer.
    fn i64(&self, column: usize) -> i64;
    /// Text.
    fn str(&self, column: usize) -> &str;
    /// Bytes, or the bytes of a text.
    fn bytes(&self, column: usize) -> &[u8] {
        self.str(column).as_bytes()
    }
    /// A decimal with `scale` digits after the point, as an integer of its smallest unit.
    fn unscaled(&self, column: usize) -> i64;
    /// Whether the value is NULL.
    fn is_null(&self, column: usize) -> bool;
    /// Hundredths of a decimal with two digits after the point.
    #[inline]
    fn cents(&self, column: usize) -> i64 {
        self.unscaled(column)
    }
}

/// New values of a row that is being changed.
pub trait RowChanges {
    /// Sets a column.
    fn put(&mut self, column: usize, value: ValueRef<'_>);
}

/// An amount of money from cents, for a decimal with two digits after the point.
#[inline]
pub fn money<'a>(cents: i64) -> ValueRef<'a> {
    ValueRef::Decimal(Decimal::new(cents as i128, 2))
}

/// A rate from ten-thousandths, for a decimal with four digits after the point.
#[inline]
pub fn rate<'a>(ten_thousandths: i64) -> ValueRef<'a> {
    ValueRef::Decimal(Decimal::new(ten_thousandths as i128, 4))
}

/// A point in time from microseconds since 1970.
#[inline]
pub fn time<'a>(unix_us: i64) -> ValueRef<'a> {
    ValueRef::DateTime(DateTime::from_unix_us(unix_us))
}
