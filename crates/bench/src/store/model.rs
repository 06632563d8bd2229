//! A store of `BTreeMap`s, to test workloads without an engine.
//!
//! Rules
//! 1. One lock serializes transactions, so every schedule is serial and nothing ever deadlocks.
//! 2. A transaction keeps the old version of each row that it changes, and restores it unless it commits.
//! 3. [`Model::fail_next`] makes the next write fail as a deadlock would, to test the callers.

use super::{IndexSpec, Read, RowChanges, RowView, Scan, Session, Store, StoreStats, TableSpec, Transaction};
use crate::counter;
use crate::error::{Error, Result};
use highwater::Error as EngineError;
use highwater::{DateTime, ValueRef};
use parking_lot::{Mutex, MutexGuard};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// An owned value with a total order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cell {
    Null,
    Number(i128),
    Text(String),
    Bytes(Vec<u8>),
    Time(i64),
}

impl From<ValueRef<'_>> for Cell {
    fn from(value: ValueRef<'_>) -> Cell {
        match value {
            ValueRef::Null => Cell::Null,
            ValueRef::Int(n) => Cell::Number(n.into()),
            ValueRef::UInt(n) => Cell::Number(n.into()),
            ValueRef::F64(x) => Cell::Number(x as i128),
            ValueRef::Decimal(d) => Cell::Number(d.unscaled()),
            ValueRef::Text(text) => Cell::Text(text.to_string()),
            ValueRef::Bytes(bytes) => Cell::Bytes(bytes.to_vec()),
            ValueRef::DateTime(t) => Cell::Time(DateTime::unix_us(t)),
            ValueRef::Bool(b) => Cell::Number(b.into()),
            ValueRef::Date(d) => Cell::Number(d.unix_days().into()),
            ValueRef::Time(t) => Cell::Number(t.us_since_midnight().into()),
            ValueRef::Uuid(u) => Cell::Bytes(u.as_bytes().to_vec()),
        }
    }
}

type Key = Vec<Cell>;
type Cells = Vec<Cell>;

#[derive(Debug, Default)]
struct Data {
    tables: Vec<TableData>,
    names: BTreeMap<String, usize>,
    fail_next: bool,
    commits: u64,
    rollbacks: u64,
}

#[derive(Debug)]
struct TableData {
    rows: BTreeMap<Key, Cells>,
    key: Vec<usize>,
    auto_increment: Option<usize>,
    next_number: u64,
    columns: Vec<(&'static str, bool)>,
    indexes: BTreeMap<&'static str, Vec<usize>>,
    name: String,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    data: Arc<Mutex<Data>>,
}

impl Model {
    /// The next write of any transaction fails as a deadlock victim.
    pub(crate) fn fail_next(&self) {
        self.data.lock().fail_next = true;
    }

    /// Rows of a table.
    pub(crate) fn count(&self, table: &str) -> usize {
        let data = self.data.lock();
        data.names.get(table).map_or(0, |&i| data.tables[i].rows.len())
    }
}

fn positions(columns: &[(&'static str, bool)], names: &[&'static str]) -> Vec<usize> {
    names.iter().map(|n| columns.iter().position(|c| c.0 == *n).expect("column of the table")).collect()
}

impl Store for Model {
    type Table = usize;
    type Session = ModelSession;

    fn create_table(&self, spec: &TableSpec) -> Result<usize> {
        let columns: Vec<_> = spec.columns.iter().map(|c| (c.name, c.nullable)).collect();
        let mut data = self.data.lock();
        if data.names.contains_key(&spec.name) {
            return Err(EngineError::Schema(format!("table {} exists", spec.name)).into());
        }
        let id = data.tables.len();
        data.tables.push(TableData {
            rows: BTreeMap::new(),
            key: positions(&columns, spec.primary_key),
            auto_increment: spec.auto_increment.map(|c| positions(&columns, &[c])[0]),
            next_number: 1,
            indexes: spec.indexes.iter().map(|i| (i.name, positions(&columns, i.columns))).collect(),
            columns,
            name: spec.name.clone(),
        });
        data.names.insert(spec.name.clone(), id);
        Ok(id)
    }

    fn create_index(&self, table: &str, index: &IndexSpec) -> Result<()> {
        let mut data = self.data.lock();
        let id = data.names[table];
        let table = &mut data.tables[id];
        let columns = positions(&table.columns, index.columns);
        table.indexes.insert(index.name, columns);
        Ok(())
    }

    fn table(&self, name: &str) -> Result<Option<usize>> {
        Ok(self.data.lock().names.get(name).copied())
    }

    fn session(&self) -> Result<ModelSession> {
        Ok(ModelSession { data: self.data.clone() })
    }

    fn stats(&self) -> StoreStats {
        let data = self.data.lock();
        [(counter!(trx_commits), Some(data.commits)), (counter!(trx_rollbacks), Some(data.rollbacks))]
            .into_iter()
            .collect()
    }
}

#[derive(Debug)]
pub(crate) struct ModelSession {
    data: Arc<Mutex<Data>>,
}

impl Session for ModelSession {
    type Table = usize;
    type Txn<'s> = ModelTxn<'s>;
    type Snapshot<'s> = ModelTxn<'s>;

    fn begin(&mut self) -> Result<ModelTxn<'_>> {
        Ok(ModelTxn { data: self.data.lock(), undo: Vec::new(), done: false })
    }

    fn snapshot(&mut self) -> Result<ModelTxn<'_>> {
        self.begin()
    }
}

#[derive(Debug)]
pub(crate) struct ModelTxn<'s> {
    data: MutexGuard<'s, Data>,
    undo: Vec<(usize, Key, Option<Cells>)>,
    done: bool,
}

impl Drop for ModelTxn<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.data.rollbacks += 1;
            while let Some((table, key, old)) = self.undo.pop() {
                match old {
                    Some(row) => self.data.tables[table].rows.insert(key, row),
                    None => self.data.tables[table].rows.remove(&key),
                };
            }
        }
    }
}

fn cells(values: &[ValueRef<'_>]) -> Cells {
    values.iter().map(|&v| Cell::from(v)).collect()
}

impl ModelTxn<'_> {
    fn change(&mut self, table: usize, key: Key, new: Option<Cells>) -> Result<bool> {
        if std::mem::take(&mut self.data.fail_next) {
            return Err(EngineError::Deadlock.into());
        }
        let rows = &mut self.data.tables[table].rows;
        let old = match new {
            Some(row) => rows.insert(key.clone(), row),
            None => rows.remove(&key),
        };
        let found = old.is_some();
        self.undo.push((table, key, old));
        Ok(found)
    }

    fn check_nulls(&self, table: usize, row: &[Cell]) {
        let table = &self.data.tables[table];
        assert_eq!(table.columns.len(), row.len(), "columns of {}", table.name);
        for (cell, (name, nullable)) in row.iter().zip(&table.columns) {
            assert!(*nullable || *cell != Cell::Null, "{}.{name} is NULL", table.name);
        }
    }
}

fn in_scan(scan: &Scan<'_>, prefix: &[Cell], key: &[Cell]) -> bool {
    let bound = |value: Option<ValueRef<'_>>, wrong: Ordering| {
        value.is_some_and(|v| key[prefix.len()].cmp(&Cell::from(v)) == wrong)
    };
    key.starts_with(prefix) && !bound(scan.from, Ordering::Less) && !bound(scan.to, Ordering::Greater)
}

impl Read for ModelTxn<'_> {
    type Table = usize;
    type Row<'r> = Cells;

    fn get<R>(&mut self, table: &usize, key: &[ValueRef<'_>], look: impl FnOnce(&Cells) -> R) -> Result<Option<R>> {
        Ok(self.data.tables[*table].rows.get(&cells(key)).map(look))
    }

    fn scan(&mut self, table: &usize, scan: &Scan<'_>, mut visit: impl FnMut(&Cells) -> ControlFlow<()>) -> Result<()> {
        let table = &self.data.tables[*table];
        let prefix = cells(scan.prefix);
        let mut found: Vec<(Key, &Cells)> = match scan.index {
            None => {
                let rows = table.rows.range(prefix.clone()..).take_while(|(key, _)| key.starts_with(&prefix));
                rows.filter(|(key, _)| in_scan(scan, &prefix, key)).map(|(key, row)| (key.clone(), row)).collect()
            }
            Some(name) => {
                let columns = &table.indexes[name];
                let rows = table.rows.iter().filter(|(_, row)| prefix.iter().zip(columns).all(|(p, &c)| *p == row[c]));
                let keys = rows.map(|(key, row)| {
                    (columns.iter().map(|&c| row[c].clone()).chain(key.clone()).collect::<Key>(), row)
                });
                keys.filter(|(key, _)| in_scan(scan, &prefix, key)).collect()
            }
        };
        found.sort();
        if scan.reverse {
            found.reverse();
        }
        let limit = if scan.limit == 0 { usize::MAX } else { scan.limit };
        for (_, row) in found.into_iter().take(limit) {
            if visit(row).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        self.done = true;
        self.data.commits += 1;
        Ok(())
    }
}

impl Transaction for ModelTxn<'_> {
    type Changes<'c> = Cells;

    fn insert(&mut self, table: &usize, row: &[ValueRef<'_>]) -> Result<Option<u64>> {
        let mut row = cells(row);
        let data = &mut self.data.tables[*table];
        let mut number = None;
        if let Some(column) = data.auto_increment.filter(|&c| row[c] == Cell::Null) {
            number = Some(data.next_number);
            row[column] = Cell::Number(data.next_number.into());
            data.next_number += 1;
        }
        let key: Key = data.key.iter().map(|&c| row[c].clone()).collect();
        if data.rows.contains_key(&key) {
            return Err(EngineError::DuplicateKey { table: data.name.clone(), index: "PRIMARY".into() }.into());
        }
        self.check_nulls(*table, &row);
        self.change(*table, key, Some(row))?;
        Ok(number)
    }

    fn update(&mut self, table: &usize, key: &[ValueRef<'_>], set: &[(usize, ValueRef<'_>)]) -> Result<bool> {
        self.modify(table, key, |_, changes| set.iter().for_each(|&(column, value)| changes.put(column, value)))
    }

    fn modify<F>(&mut self, table: &usize, key: &[ValueRef<'_>], mut change: F) -> Result<bool>
    where
        F: FnMut(&Cells, &mut Cells),
    {
        let key = cells(key);
        let Some(mut new) = self.data.tables[*table].rows.get(&key).cloned() else { return Ok(false) };
        let old = new.clone();
        change(&old, &mut new);
        self.check_nulls(*table, &new);
        self.change(*table, key, Some(new))
    }

    fn delete(&mut self, table: &usize, key: &[ValueRef<'_>]) -> Result<bool> {
        self.change(*table, cells(key), None)
    }

    fn rollback(self) -> Result<()> {
        drop(self);
        Ok(())
    }
}

impl RowView for Cells {
    fn u64(&self, column: usize) -> u64 {
        self.unscaled(column) as u64
    }

    fn i64(&self, column: usize) -> i64 {
        self.unscaled(column)
    }

    fn str(&self, column: usize) -> &str {
        match &self[column] {
            Cell::Text(text) => text,
            other => panic!("column {column} is {other:?}, not text"),
        }
    }

    fn unscaled(&self, column: usize) -> i64 {
        match &self[column] {
            Cell::Number(n) => *n as i64,
            other => panic!("column {column} is {other:?}, not a number"),
        }
    }

    fn is_null(&self, column: usize) -> bool {
        self[column] == Cell::Null
    }
}

impl RowChanges for Cells {
    fn put(&mut self, column: usize, value: ValueRef<'_>) {
        self[column] = Cell::from(value);
    }
}

/// Whether an error is a deadlock.
pub(crate) fn is_deadlock(error: &Error) -> bool {
    matches!(error, Error::Engine(EngineError::Deadlock))
}
