//! Highwater in this process: every call is a call of the engine.

use super::{IndexSpec, Read, RowChanges, RowView, Scan, Session, Store, StoreStats, TableSpec, Transaction};
use crate::error::Result;
use highwater::{Changes, Database, ReadTxn, RowRef, Schema, Table, TxnOptions, ValueRef, WriteTxn};
use highwater_device::disk::Disk;
use std::ops::ControlFlow;
use std::sync::Arc;

/// An open database as a store.
#[derive(Clone)]
pub struct Embedded {
    db: Database,
    disk: Option<Arc<Disk>>,
    transactions: TxnOptions,
}

impl Embedded {
    /// The store of this database.
    pub fn new(db: Database) -> Embedded {
        Embedded { db, disk: None, transactions: TxnOptions::default() }
    }

    /// The store of this database, which is on an emulated disk.
    pub fn on_disk(db: Database, disk: Arc<Disk>) -> Embedded {
        Embedded { db, disk: Some(disk), transactions: TxnOptions::default() }
    }

    /// The same store, with these options for the transactions of its sessions.
    #[must_use]
    pub fn with_transactions(self, transactions: TxnOptions) -> Embedded {
        Embedded { transactions, ..self }
    }

    /// The database.
    pub fn database(&self) -> &Database {
        &self.db
    }
}

fn schema(spec: &TableSpec) -> Schema {
    let mut schema = Schema::new();
    for column in spec.columns {
        schema = match column.nullable {
            true => schema.nullable(column.name, column.ty),
            false => schema.column(column.name, column.ty),
        };
    }
    if let Some(column) = spec.auto_increment {
        schema = schema.auto_increment(column);
    }
    schema = schema.primary_key(spec.primary_key);
    spec.indexes.iter().fold(schema, |schema, index| schema.index(index.name, index.columns))
}

impl Store for Embedded {
    type Table = Table;
    type Session = EmbeddedSession;

    fn create_table(&self, spec: &TableSpec) -> Result<Table> {
        Ok(self.db.create_table(&spec.name, schema(spec))?)
    }

    fn create_index(&self, table: &str, index: &IndexSpec) -> Result<()> {
        Ok(self.db.create_index(table, index.name, index.columns, false)?)
    }

    fn table(&self, name: &str) -> Result<Option<Table>> {
        Ok(self.db.tables().into_iter().find(|table| table.name() == name))
    }

    fn session(&self) -> Result<EmbeddedSession> {
        Ok(EmbeddedSession { db: self.db.clone(), transactions: self.transactions.clone() })
    }

    fn stats(&self) -> StoreStats {
        self.db.stats().into()
    }

    fn disk(&self) -> Option<&Disk> {
        self.disk.as_deref()
    }
}

/// A client of the embedded engine: a handle of the database.
#[derive(Clone)]
pub struct EmbeddedSession {
    db: Database,
    transactions: TxnOptions,
}

impl Session for EmbeddedSession {
    type Table = Table;
    type Txn<'s> = WriteTxn;
    type Snapshot<'s> = ReadTxn;

    #[inline]
    fn begin(&mut self) -> Result<WriteTxn> {
        Ok(self.db.begin_with(self.transactions.clone())?)
    }

    #[inline]
    fn snapshot(&mut self) -> Result<ReadTxn> {
        Ok(self.db.snapshot()?)
    }
}

/// Maximum number of columns in a scan's bounds.
const MAX_KEY: usize = 8;

/// The prefix and the next column's bound, as one key.
fn bound<'a>(
    buffer: &'a mut [ValueRef<'a>; MAX_KEY],
    prefix: &[ValueRef<'a>],
    next: ValueRef<'a>,
) -> &'a [ValueRef<'a>] {
    buffer[..prefix.len()].copy_from_slice(prefix);
    buffer[prefix.len()] = next;
    &buffer[..=prefix.len()]
}

/// Runs the scan of a table that `wanted` describes, until `visit` breaks.
#[inline]
fn run(
    scan: highwater::Scan<'_, '_>,
    wanted: &Scan<'_>,
    mut visit: impl FnMut(&RowRef<'_>) -> ControlFlow<()>,
) -> Result<()> {
    let (mut from, mut to) = ([ValueRef::Null; MAX_KEY], [ValueRef::Null; MAX_KEY]);
    let mut scan = scan;
    if let Some(index) = wanted.index {
        scan = scan.index(index);
    }
    if !wanted.prefix.is_empty() {
        scan = scan.prefix(wanted.prefix);
    }
    if let Some(value) = wanted.from {
        scan = scan.from(bound(&mut from, wanted.prefix, value));
    }
    if let Some(value) = wanted.to {
        scan = scan.to(bound(&mut to, wanted.prefix, value));
    }
    if wanted.reverse {
        scan = scan.rev();
    }
    if wanted.for_update {
        scan = scan.for_update();
    }
    if wanted.limit > 0 {
        scan = scan.limit(wanted.limit);
    }
    scan.visit(|row| visit(&row))?;
    Ok(())
}

impl Read for WriteTxn {
    type Table = Table;
    type Row<'r> = RowRef<'r>;

    #[inline]
    fn get<R>(
        &mut self,
        table: &Table,
        key: &[ValueRef<'_>],
        look: impl FnOnce(&RowRef<'_>) -> R,
    ) -> Result<Option<R>> {
        Ok(self.get_with(table, key, |row| look(&row))?)
    }

    #[inline]
    fn scan(
        &mut self,
        table: &Table,
        scan: &Scan<'_>,
        visit: impl FnMut(&RowRef<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        run(WriteTxn::scan(self, table), scan, visit)
    }

    #[inline]
    fn prefetch<'v, K: AsRef<[ValueRef<'v>]>>(
        &mut self,
        table: &Table,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<()> {
        Ok(WriteTxn::prefetch(self, table, keys)?)
    }

    #[inline]
    fn finish(self) -> Result<()> {
        Ok(self.commit()?)
    }
}

impl Read for ReadTxn {
    type Table = Table;
    type Row<'r> = RowRef<'r>;

    #[inline]
    fn get<R>(
        &mut self,
        table: &Table,
        key: &[ValueRef<'_>],
        look: impl FnOnce(&RowRef<'_>) -> R,
    ) -> Result<Option<R>> {
        Ok(self.get_with(table, key, |row| look(&row))?)
    }

    #[inline]
    fn scan(
        &mut self,
        table: &Table,
        scan: &Scan<'_>,
        visit: impl FnMut(&RowRef<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        run(ReadTxn::scan(self, table), scan, visit)
    }

    #[inline]
    fn prefetch<'v, K: AsRef<[ValueRef<'v>]>>(
        &mut self,
        table: &Table,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<()> {
        Ok(ReadTxn::prefetch(self, table, keys)?)
    }

    /// A snapshot ends when it is dropped.
    #[inline]
    fn finish(self) -> Result<()> {
        Ok(())
    }
}

impl Transaction for WriteTxn {
    type Changes<'c> = Changes<'c>;

    #[inline]
    fn insert(&mut self, table: &Table, row: &[ValueRef<'_>]) -> Result<Option<u64>> {
        Ok(WriteTxn::insert(self, table, row)?.auto_increment)
    }

    fn insert_many(
        &mut self,
        table: &Table,
        rows: u64,
        mut row: impl FnMut(&mut dyn FnMut(&[ValueRef<'_>]) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        self.insert_many_with(table, |into| {
            (0..rows).try_for_each(|_| row(&mut |values| Ok(into.push(values).map(drop)?)))
        })
        .map(drop)
    }

    #[inline]
    fn update(&mut self, table: &Table, key: &[ValueRef<'_>], set: &[(usize, ValueRef<'_>)]) -> Result<bool> {
        Ok(WriteTxn::update(self, table, key, set)?)
    }

    #[inline]
    fn modify<F>(&mut self, table: &Table, key: &[ValueRef<'_>], mut change: F) -> Result<bool>
    where
        F: FnMut(&RowRef<'_>, &mut Changes<'_>),
    {
        Ok(WriteTxn::modify(self, table, key, |row, changes| change(&row, changes))?)
    }

    #[inline]
    fn delete(&mut self, table: &Table, key: &[ValueRef<'_>]) -> Result<bool> {
        Ok(WriteTxn::delete(self, table, key)?)
    }

    #[inline]
    fn rollback(self) -> Result<()> {
        Ok(WriteTxn::rollback(self)?)
    }
}

impl RowView for RowRef<'_> {
    #[inline]
    fn u64(&self, column: usize) -> u64 {
        RowRef::u64(*self, column)
    }

    #[inline]
    fn i64(&self, column: usize) -> i64 {
        RowRef::i64(*self, column)
    }

    #[inline]
    fn str(&self, column: usize) -> &str {
        RowRef::str(*self, column)
    }

    #[inline]
    fn bytes(&self, column: usize) -> &[u8] {
        RowRef::bytes(*self, column)
    }

    #[inline]
    fn unscaled(&self, column: usize) -> i64 {
        RowRef::decimal(*self, column).unscaled() as i64
    }

    #[inline]
    fn is_null(&self, column: usize) -> bool {
        RowRef::is_null(*self, column)
    }
}

impl RowChanges for Changes<'_> {
    #[inline]
    fn put(&mut self, column: usize, value: ValueRef<'_>) {
        Changes::put(self, column, value);
    }
}
