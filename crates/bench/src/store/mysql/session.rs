//! One connection and its transactions.
//!
//! Rules
//! 1. A transaction that is dropped is rolled back. After a deadlock the server has already rolled it back; a second
//!    rollback is harmless.
//! 2. Rows are streamed: a scan of a large table holds one row at a time. A scan that ends early reads the remaining
//!    rows and drops them.

use super::bulk::Bulk;
use super::row::{MysqlChanges, MysqlRow, to_value};
use super::sql::{Shape, statement};
use super::{MysqlTable, server_error};
use crate::error::{Error, Result};
use crate::store::{Read, Scan, Session, Transaction};
use highwater::ValueRef;
use mysql::prelude::Queryable;
use mysql::{Conn, Params, Statement, Value};
use std::collections::HashMap;
use std::ops::ControlFlow;

/// One client's connection.
#[derive(Debug)]
pub struct MysqlSession {
    conn: Conn,
    statements: HashMap<(u64, Shape), Statement>,
}

impl MysqlSession {
    pub(super) fn new(conn: Conn) -> MysqlSession {
        MysqlSession { conn, statements: HashMap::new() }
    }

    fn query(&mut self, text: &str) -> Result<()> {
        self.conn.query_drop(text).map_err(server_error)
    }

    fn start(&mut self, text: &str, bulk: Option<Bulk>) -> Result<MysqlTxn<'_>> {
        self.query(text)?;
        Ok(MysqlTxn { session: self, bulk, done: false })
    }

    fn prepared(&mut self, table: &MysqlTable, shape: Shape) -> Result<Statement> {
        if let Some(found) = self.statements.get(&(table.id, shape)) {
            return Ok(found.clone());
        }
        let prepared = self.conn.prep(statement(table, shape)).map_err(server_error)?;
        self.statements.insert((table.id, shape), prepared.clone());
        Ok(prepared)
    }

    /// Runs a statement without a result set; returns the number of rows that it found.
    fn execute(&mut self, table: &MysqlTable, shape: Shape, values: Vec<Value>) -> Result<u64> {
        let statement = self.prepared(table, shape)?;
        self.conn.exec_drop(&statement, parameters(values)).map_err(server_error)?;
        Ok(self.conn.affected_rows())
    }

    fn row(&mut self, table: &MysqlTable, for_update: bool, key: &[ValueRef<'_>]) -> Result<Option<MysqlRow>> {
        let statement = self.prepared(table, Shape::Get { for_update })?;
        let row = self.conn.exec_first(&statement, parameters(values(key))).map_err(server_error)?;
        Ok(row.map(MysqlRow))
    }
}

fn values(values: &[ValueRef<'_>]) -> Vec<Value> {
    values.iter().map(|&value| to_value(value)).collect()
}

fn parameters(values: Vec<Value>) -> Params {
    if values.is_empty() { Params::Empty } else { Params::Positional(values) }
}

impl Session for MysqlSession {
    type Table = MysqlTable;
    type Txn<'s> = MysqlTxn<'s>;
    type Snapshot<'s> = MysqlTxn<'s>;

    fn begin(&mut self) -> Result<MysqlTxn<'_>> {
        self.start("START TRANSACTION", None)
    }

    fn begin_bulk(&mut self) -> Result<MysqlTxn<'_>> {
        self.start("START TRANSACTION", Some(Bulk::default()))
    }

    fn snapshot(&mut self) -> Result<MysqlTxn<'_>> {
        self.start("START TRANSACTION READ ONLY", None)
    }
}

/// A transaction.
#[derive(Debug)]
pub struct MysqlTxn<'s> {
    session: &'s mut MysqlSession,
    bulk: Option<Bulk>,
    done: bool,
}

impl MysqlTxn<'_> {
    fn end(&mut self, statement: &str) -> Result<()> {
        self.done = true;
        self.session.query(statement)
    }

    /// Sends the collected rows.
    fn send(&mut self) -> Result<()> {
        let Some(bulk) = &mut self.bulk else { return Ok(()) };
        for statement in bulk.take() {
            self.session.query(&statement)?;
        }
        Ok(())
    }

    fn set(&mut self, table: &MysqlTable, key: &[ValueRef<'_>], set: Vec<(usize, Value)>) -> Result<bool> {
        let mut columns = 0;
        let mut parameters = Vec::with_capacity(set.len() + key.len());
        for (column, value) in set {
            columns |= 1u64.checked_shl(column as u32).unwrap_or(0);
            parameters.push(value);
        }
        parameters.extend(values(key));
        Ok(self.session.execute(table, Shape::Update { columns }, parameters)? > 0)
    }
}

impl Drop for MysqlTxn<'_> {
    fn drop(&mut self) {
        if !self.done {
            // A connection that is broken has nothing left to roll back.
            let _ = self.end("ROLLBACK");
        }
    }
}

/// Parameters of a scan, in the order of the statement's.
fn scan_values(scan: &Scan<'_>) -> Vec<Value> {
    let mut parameters = values(scan.prefix);
    parameters.extend(scan.from.map(to_value));
    parameters.extend(scan.to.map(to_value));
    parameters.extend((scan.limit > 0).then_some(Value::UInt(scan.limit as u64)));
    parameters
}

fn scan_shape(scan: &Scan<'_>) -> Shape {
    Shape::Scan {
        index: scan.index,
        prefix: scan.prefix.len(),
        from: scan.from.is_some(),
        to: scan.to.is_some(),
        reverse: scan.reverse,
        for_update: scan.for_update,
        limit: scan.limit > 0,
    }
}

impl Read for MysqlTxn<'_> {
    type Table = MysqlTable;
    type Row<'r> = MysqlRow;

    fn get<R>(
        &mut self,
        table: &MysqlTable,
        key: &[ValueRef<'_>],
        look: impl FnOnce(&MysqlRow) -> R,
    ) -> Result<Option<R>> {
        self.send()?;
        Ok(self.session.row(table, false, key)?.map(|row| look(&row)))
    }

    fn scan(
        &mut self,
        table: &MysqlTable,
        scan: &Scan<'_>,
        mut visit: impl FnMut(&MysqlRow) -> ControlFlow<()>,
    ) -> Result<()> {
        self.send()?;
        if let Some(index) = scan.index.filter(|index| !table.indexes.contains_key(*index)) {
            return Err(Error::Data(format!("table {} has no index {index}", table.name)));
        }
        let statement = self.session.prepared(table, scan_shape(scan))?;
        let rows = self.session.conn.exec_iter(&statement, parameters(scan_values(scan))).map_err(server_error)?;
        for row in rows {
            if visit(&MysqlRow(row.map_err(server_error)?)).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        self.send()?;
        self.end("COMMIT")
    }
}

impl Transaction for MysqlTxn<'_> {
    type Changes<'c> = MysqlChanges;

    fn insert(&mut self, table: &MysqlTable, row: &[ValueRef<'_>]) -> Result<Option<u64>> {
        if let Some(bulk) = &mut self.bulk {
            if let Some(statement) = bulk.add(table, row) {
                self.session.query(&statement)?;
            }
            return Ok(None);
        }
        self.session.execute(table, Shape::Insert, values(row))?;
        let numbered = table.auto_increment.is_some_and(|column| row.get(column).is_some_and(|value| value.is_null()));
        Ok(numbered.then(|| self.session.conn.last_insert_id()))
    }

    fn update(&mut self, table: &MysqlTable, key: &[ValueRef<'_>], set: &[(usize, ValueRef<'_>)]) -> Result<bool> {
        use crate::store::RowChanges;
        self.send()?;
        let mut changes = MysqlChanges::default();
        set.iter().for_each(|&(column, value)| changes.put(column, value));
        self.set(table, key, changes.set)
    }

    fn modify<F>(&mut self, table: &MysqlTable, key: &[ValueRef<'_>], mut change: F) -> Result<bool>
    where
        F: FnMut(&MysqlRow, &mut MysqlChanges),
    {
        self.send()?;
        let Some(row) = self.session.row(table, true, key)? else { return Ok(false) };
        let mut changes = MysqlChanges::default();
        change(&row, &mut changes);
        if changes.set.is_empty() {
            return Ok(true);
        }
        self.set(table, key, changes.set)
    }

    fn delete(&mut self, table: &MysqlTable, key: &[ValueRef<'_>]) -> Result<bool> {
        self.send()?;
        Ok(self.session.execute(table, Shape::Delete, values(key))? > 0)
    }

    fn rollback(mut self) -> Result<()> {
        if let Some(bulk) = &mut self.bulk {
            drop(bulk.take());
        }
        self.end("ROLLBACK")
    }
}
