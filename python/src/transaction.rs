//! Transactions and snapshots.
//!
//! Rules
//! 1. A transaction that is left as a context manager is committed, or rolled back if an exception leaves it. One that
//!    has ended already stays as it ended.
//! 2. One that is forgotten is rolled back.

use crate::arrow_in;
use crate::failure::{Failure, Result};
use crate::reading::{Kind, Shared};
use crate::scan::{Arguments, Scan, locks};
use crate::table::{Opened, RowForm, TableOrName};
use crate::values::{refs, to_key};
use highwater::{LockMode, LockWait, Row, Upserted, Value, ValueRef};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;

/// Rows that an insertion of many takes from Python at once.
const BATCH_ROWS: usize = 1024;

/// A transaction that reads and writes: `with db.transaction() as txn:`. One thread at a time uses it.
#[pyclass(frozen, module = "highwater")]
pub struct Transaction(pub Arc<Shared>);

/// A transaction that reads one snapshot: what had committed at its first read. It takes no locks.
#[pyclass(frozen, module = "highwater")]
pub struct Snapshot(pub Arc<Shared>);

/// A point of a transaction to roll back to.
#[pyclass(frozen, module = "highwater")]
pub struct Savepoint(highwater::Savepoint);

/// A row as a dict.
fn dict<'py>(py: Python<'py>, table: &Opened, row: Option<Row>) -> Result<Option<Bound<'py, PyAny>>> {
    let Some(row) = row else { return Ok(None) };
    let names = table.table.columns().iter().map(|column| column.name.as_str());
    RowForm::new(py, names, false).row(py, row.values()).map(Some)
}

fn get<'py>(
    py: Python<'py>,
    txn: &Shared,
    table: &TableOrName<'_>,
    key: &Bound<'_, PyAny>,
) -> Result<Option<Bound<'py, PyAny>>> {
    let table = table.open(|| txn.db())?;
    let key = to_key(key, &table.key_columns(None)?)?;
    let row = py.detach(|| {
        txn.with(|kind| match kind {
            Kind::Write(txn) => Ok(txn.get(&table.table, &refs(&key))?),
            Kind::Read(txn) => Ok(txn.get(&table.table, &refs(&key))?),
        })
    })?;
    dict(py, &table, row)
}

fn get_by<'py>(
    py: Python<'py>,
    txn: &Shared,
    table: &TableOrName<'_>,
    index: &str,
    key: &Bound<'_, PyAny>,
) -> Result<Option<Bound<'py, PyAny>>> {
    let table = table.open(|| txn.db())?;
    let key = to_key(key, &table.key_columns(Some(index))?)?;
    let row = py.detach(|| {
        txn.with(|kind| match kind {
            Kind::Write(txn) => Ok(txn.get_by(&table.table, index, &refs(&key))?),
            Kind::Read(txn) => Ok(txn.get_by(&table.table, index, &refs(&key))?),
        })
    })?;
    dict(py, &table, row)
}

/// Ends a transaction; the engine does it without the GIL.
fn end(py: Python<'_>, txn: &Shared, commits: bool) -> Result<()> {
    py.detach(|| match txn.take()? {
        Kind::Write(txn) if commits => Ok(txn.commit()?),
        Kind::Write(txn) => Ok(txn.rollback()?),
        Kind::Read(txn) => {
            drop(txn);
            Ok(())
        }
    })
}

impl Transaction {
    fn locked<'py>(
        &self,
        py: Python<'py>,
        table: &TableOrName<'_>,
        key: &Bound<'_, PyAny>,
        (lock, wait): (LockMode, LockWait),
    ) -> Result<Option<Bound<'py, PyAny>>> {
        let table = table.open(|| self.0.db())?;
        let key = to_key(key, &table.key_columns(None)?)?;
        let row = py.detach(|| {
            self.0.write(|txn| match (lock, wait) {
                (LockMode::Shared, LockWait::Default) => Ok(txn.get_for_share(&table.table, &refs(&key))?),
                (_, LockWait::Default) => Ok(txn.get_for_update(&table.table, &refs(&key))?),
                _ => Ok(txn.get_locked(&table.table, &refs(&key), lock, wait)?),
            })
        })?;
        dict(py, &table, row)
    }

    /// Inserts rows in batches, within a statement that the caller undoes if it fails.
    fn insert_batches(&self, py: Python<'_>, table: &Opened, rows: &Bound<'_, PyAny>) -> Result<u64> {
        let (mut batch, mut inserted) = (Vec::with_capacity(BATCH_ROWS), 0);
        let mut insert = |batch: &mut Vec<Vec<Value>>| {
            let done =
                py.detach(|| self.0.write(|txn| Ok(txn.insert_many(&table.table, batch.iter().map(|row| refs(row)))?)));
            batch.clear();
            done.map(|rows| inserted += rows)
        };
        for row in rows.try_iter()? {
            batch.push(table.row(&row?)?);
            if batch.len() == BATCH_ROWS {
                insert(&mut batch)?;
            }
        }
        insert(&mut batch)?;
        Ok(inserted)
    }

    /// Does the work as a whole or not at all.
    fn as_one<R>(&self, work: impl FnOnce() -> Result<R>) -> Result<R> {
        let before = self.0.write(|txn| Ok(txn.savepoint()))?;
        let done = work();
        if let Err(failure) = &done {
            // After a deadlock all is undone already.
            let undone = matches!(failure, Failure::Engine(highwater::Error::Deadlock));
            if !undone {
                self.0.write(|txn| Ok(txn.rollback_to(before)?))?;
            }
        }
        done
    }
}

#[pymethods]
impl Transaction {
    /// Inserts a row: a dict, or a tuple or list with a value for each column. The number of its auto-increment column
    /// if that was None, else None.
    fn insert(&self, py: Python<'_>, table: TableOrName<'_>, row: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
        let table = table.open(|| self.0.db())?;
        let row = table.row(row)?;
        let inserted = py.detach(|| self.0.write(|txn| Ok(txn.insert(&table.table, &refs(&row))?)))?;
        Ok(inserted.auto_increment)
    }

    /// Inserts rows of an iterable; how many there were. All of them or, if it fails, none.
    fn insert_many(&self, py: Python<'_>, table: TableOrName<'_>, rows: &Bound<'_, PyAny>) -> PyResult<u64> {
        let table = table.open(|| self.0.db())?;
        Ok(self.as_one(|| self.insert_batches(py, &table, rows))?)
    }

    /// Inserts the rows of an object with the Arrow PyCapsule interface (a table of pyarrow or polars, a DataFrame of
    /// pandas), whose columns are named as the table's; columns that it lacks are None. How many there were. All of
    /// them or, if it fails, none.
    fn insert_arrow(&self, py: Python<'_>, table: TableOrName<'_>, data: &Bound<'_, PyAny>) -> PyResult<u64> {
        let table = table.open(|| self.0.db())?;
        let stream = arrow_in::stream(data)?;
        Ok(py.detach(|| self.0.write(|txn| arrow_in::insert(txn, &table, stream)))?)
    }

    /// Inserts a row or, if another one has its primary key or its key of a unique index, changes that one: the columns
    /// that `columns` names, or those that a dict has, or all, but for those of the primary key and the auto-increment
    /// column. Whether there was no such row.
    #[pyo3(signature = (table, row, columns = None))]
    fn upsert(
        &self,
        py: Python<'_>,
        table: TableOrName<'_>,
        row: &Bound<'_, PyAny>,
        columns: Option<Vec<String>>,
    ) -> PyResult<bool> {
        let table = table.open(|| self.0.db())?;
        let values = table.row(row)?;
        let definition = table.table.definition();
        let is_set = |at: &usize| !definition.is_key(*at) && definition.auto_increment != Some(*at);
        let set: Vec<usize> = match (columns, row.cast::<PyDict>()) {
            (Some(names), _) => names.iter().map(|name| table.position(name)).collect::<Result<_>>()?,
            (None, Ok(dict)) => {
                let named = table.changes(dict)?.into_iter().map(|(at, _)| at);
                named.filter(is_set).collect()
            }
            (None, Err(_)) => (0..values.len()).filter(is_set).collect(),
        };
        let upserted = py.detach(|| {
            self.0.write(|txn| {
                let change = |_: highwater::RowRef<'_>, changes: &mut highwater::Changes<'_>| {
                    set.iter().for_each(|&at| changes.put(at, &values[at]));
                };
                Ok(txn.upsert(&table.table, &refs(&values), change)?)
            })
        })?;
        Ok(matches!(upserted, Upserted::Inserted(_)))
    }

    /// Deletes the rows that have a row's primary key or its key of a unique index, and inserts it. The number as of
    /// `insert`.
    fn replace(&self, py: Python<'_>, table: TableOrName<'_>, row: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
        let table = table.open(|| self.0.db())?;
        let row = table.row(row)?;
        let replaced = py.detach(|| self.0.write(|txn| Ok(txn.replace(&table.table, &refs(&row))?)))?;
        Ok(replaced.inserted.auto_increment)
    }

    /// Sets columns of the row of a primary key; False if there is no such row.
    fn update(
        &self,
        py: Python<'_>,
        table: TableOrName<'_>,
        key: &Bound<'_, PyAny>,
        changes: &Bound<'_, PyDict>,
    ) -> PyResult<bool> {
        let table = table.open(|| self.0.db())?;
        let key = to_key(key, &table.key_columns(None)?)?;
        let changes = table.changes(changes)?;
        let set: Vec<(usize, ValueRef<'_>)> = changes.iter().map(|(at, value)| (*at, value.as_ref())).collect();
        Ok(py.detach(|| self.0.write(|txn| Ok(txn.update(&table.table, &refs(&key), &set)?)))?)
    }

    /// Deletes the row of a primary key; False if there is no such row.
    fn delete(&self, py: Python<'_>, table: TableOrName<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let table = table.open(|| self.0.db())?;
        let key = to_key(key, &table.key_columns(None)?)?;
        Ok(py.detach(|| self.0.write(|txn| Ok(txn.delete(&table.table, &refs(&key))?)))?)
    }

    /// The row of a primary key (a value, or a tuple of them), as the transaction sees it; None if there is none.
    fn get<'py>(
        &self,
        py: Python<'py>,
        table: TableOrName<'_>,
        key: &Bound<'_, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(get(py, &self.0, &table, key)?)
    }

    /// The first row, in the order of an index, whose leading columns of that index have these values.
    fn get_by<'py>(
        &self,
        py: Python<'py>,
        table: TableOrName<'_>,
        index: &str,
        key: &Bound<'_, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(get_by(py, &self.0, &table, index, key)?)
    }

    /// The newest committed row of a primary key, locked exclusively until the transaction ends. `lock_timeout` is in
    /// seconds.
    #[pyo3(signature = (table, key, *, nowait = false, skip_locked = false, lock_timeout = None))]
    fn get_for_update<'py>(
        &self,
        py: Python<'py>,
        table: TableOrName<'_>,
        key: &Bound<'_, PyAny>,
        nowait: bool,
        skip_locked: bool,
        lock_timeout: Option<f64>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.locked(py, &table, key, locks(true, false, nowait, skip_locked, lock_timeout)?)?)
    }

    /// As `get_for_update`, but shared.
    #[pyo3(signature = (table, key, *, nowait = false, skip_locked = false, lock_timeout = None))]
    fn get_for_share<'py>(
        &self,
        py: Python<'py>,
        table: TableOrName<'_>,
        key: &Bound<'_, PyAny>,
        nowait: bool,
        skip_locked: bool,
        lock_timeout: Option<f64>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.locked(py, &table, key, locks(false, true, nowait, skip_locked, lock_timeout)?)?)
    }

    /// Rows in the order of the primary key or of an index: from those whose key is at least `ge` (or greater than
    /// `gt`), to those whose key is at most `le` (or less than `lt`); or all whose key begins with the values of
    /// `prefix`, or of `starts_with`, whose last one may be the begin of its column.
    #[pyo3(signature = (table, index = None, *, ge = None, gt = None, le = None, lt = None, prefix = None,
        starts_with = None, columns = None, reverse = false, limit = None, for_update = false, for_share = false,
        nowait = false, skip_locked = false, lock_timeout = None))]
    #[allow(clippy::too_many_arguments, reason = "each is a keyword argument in Python")]
    fn scan<'py>(
        &self,
        table: TableOrName<'_>,
        index: Option<String>,
        ge: Option<Bound<'py, PyAny>>,
        gt: Option<Bound<'py, PyAny>>,
        le: Option<Bound<'py, PyAny>>,
        lt: Option<Bound<'py, PyAny>>,
        prefix: Option<Bound<'py, PyAny>>,
        starts_with: Option<Bound<'py, PyAny>>,
        columns: Option<Vec<String>>,
        reverse: bool,
        limit: Option<u64>,
        for_update: bool,
        for_share: bool,
        nowait: bool,
        skip_locked: bool,
        lock_timeout: Option<f64>,
    ) -> PyResult<Scan> {
        let arguments = Arguments { index, ge, gt, le, lt, prefix, starts_with, columns, reverse, limit };
        let locks = locks(for_update, for_share, nowait, skip_locked, lock_timeout)?;
        Ok(Scan::new(&self.0, &table, arguments, locks)?)
    }

    /// Marks this point of the transaction.
    fn savepoint(&self) -> PyResult<Savepoint> {
        Ok(self.0.write(|txn| Ok(Savepoint(txn.savepoint())))?)
    }

    /// Undoes what was done since a savepoint. Locks stay.
    fn rollback_to(&self, py: Python<'_>, savepoint: &Savepoint) -> PyResult<()> {
        let point = savepoint.0;
        Ok(py.detach(|| self.0.write(|txn| Ok(txn.rollback_to(point)?)))?)
    }

    /// Commits: the changes are visible and, as the transaction's durability says, durable when it returns.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        Ok(end(py, &self.0, true)?)
    }

    /// Undoes everything.
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        Ok(end(py, &self.0, false)?)
    }

    /// Interrupts the call that waits or scans in another thread, or the next one that does.
    fn interrupt(&self) {
        self.0.interrupt.interrupt();
    }

    /// Whether it has not ended.
    #[getter]
    fn is_open(&self) -> bool {
        self.0.is_open()
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        exc_type: Option<Bound<'_, PyAny>>,
        exc_value: Option<Bound<'_, PyAny>>,
        traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        drop((exc_value, traceback));
        if self.0.is_open() {
            match exc_type {
                None => end(py, &self.0, true)?,
                // The exception continues; one of the rollback would hide it.
                Some(_) => drop(end(py, &self.0, false)),
            }
        }
        Ok(false)
    }
}

#[pymethods]
impl Snapshot {
    /// The row of a primary key (a value, or a tuple of them); None if there is none.
    fn get<'py>(
        &self,
        py: Python<'py>,
        table: TableOrName<'_>,
        key: &Bound<'_, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(get(py, &self.0, &table, key)?)
    }

    /// The first row, in the order of an index, whose leading columns of that index have these values.
    fn get_by<'py>(
        &self,
        py: Python<'py>,
        table: TableOrName<'_>,
        index: &str,
        key: &Bound<'_, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(get_by(py, &self.0, &table, index, key)?)
    }

    /// Rows, as `Transaction.scan` describes them.
    #[pyo3(signature = (table, index = None, *, ge = None, gt = None, le = None, lt = None, prefix = None,
        starts_with = None, columns = None, reverse = false, limit = None))]
    #[allow(clippy::too_many_arguments, reason = "each is a keyword argument in Python")]
    fn scan<'py>(
        &self,
        table: TableOrName<'_>,
        index: Option<String>,
        ge: Option<Bound<'py, PyAny>>,
        gt: Option<Bound<'py, PyAny>>,
        le: Option<Bound<'py, PyAny>>,
        lt: Option<Bound<'py, PyAny>>,
        prefix: Option<Bound<'py, PyAny>>,
        starts_with: Option<Bound<'py, PyAny>>,
        columns: Option<Vec<String>>,
        reverse: bool,
        limit: Option<u64>,
    ) -> PyResult<Scan> {
        let arguments = Arguments { index, ge, gt, le, lt, prefix, starts_with, columns, reverse, limit };
        Ok(Scan::new(&self.0, &table, arguments, (LockMode::None, LockWait::Default))?)
    }

    /// Another one of the same moment, for another thread.
    fn same_snapshot(&self, py: Python<'_>) -> PyResult<Snapshot> {
        Ok(Snapshot(py.detach(|| self.0.same_snapshot())?))
    }

    /// Ends it: purge is held back no longer. Does nothing if it has ended.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.0.is_open() { Ok(end(py, &self.0, false)?) } else { Ok(()) }
    }

    /// Interrupts the scan of another thread, or the next one.
    fn interrupt(&self) {
        self.0.interrupt.interrupt();
    }

    /// Whether it has not ended.
    #[getter]
    fn is_open(&self) -> bool {
        self.0.is_open()
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        exc_type: Option<Bound<'_, PyAny>>,
        exc_value: Option<Bound<'_, PyAny>>,
        traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        drop((exc_type, exc_value, traceback));
        self.close(py)?;
        Ok(false)
    }
}
