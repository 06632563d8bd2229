//! Readers of a database that another process has open.
//!
//! Rule: a scan of a snapshot has its connection until its last row was read, or it is dropped. Meanwhile other calls
//! of the snapshot are refused: `same_snapshot` is for them.

use crate::failure::{Failure, Result};
use crate::table::{RowForm, key_columns};
use crate::values::{refs, to_key};
use highwater::{MetricsFormat, Row, TableDefinition, Value};
use parking_lot::Mutex;
use pyo3::prelude::*;
use self_cell::{MutBorrow, self_cell};
use std::sync::Arc;

/// Reads a database that another process has open, while that process writes.
#[pyclass(frozen, module = "highwater")]
pub struct Reader(pub highwater::Reader);

/// A snapshot of a database that another process has open: what had committed at its first read.
#[pyclass(frozen, module = "highwater")]
pub struct ReaderSnapshot(Arc<Place>);

/// Where a snapshot is kept.
type Place = Mutex<Slot>;

enum Slot {
    Free(Box<highwater::ReaderSnapshot>),
    /// A scan has it.
    Lent,
    Closed,
}

type EngineRows<'s> = highwater::ReaderRows<'s>;

self_cell!(
    /// A snapshot and the rows of its scan.
    struct Reading {
        owner: MutBorrow<Box<highwater::ReaderSnapshot>>,
        #[not_covariant]
        dependent: EngineRows,
    }
);

/// Rows of a scan of a reader's snapshot, as dicts.
#[pyclass(module = "highwater")]
pub struct ReaderRows {
    /// None at the end.
    reading: Mutex<Option<Reading>>,
    form: RowForm,
    place: Arc<Place>,
}

/// The ends of a scan.
struct Ends {
    low: Option<(Vec<Value>, bool)>,
    high: Option<(Vec<Value>, bool)>,
    prefix: Option<Vec<Value>>,
    starts_with: Option<Vec<Value>>,
}

impl ReaderSnapshot {
    fn new(snapshot: highwater::ReaderSnapshot) -> ReaderSnapshot {
        ReaderSnapshot(Arc::new(Mutex::new(Slot::Free(Box::new(snapshot)))))
    }

    fn with<R>(&self, work: impl FnOnce(&mut highwater::ReaderSnapshot) -> highwater::Result<R>) -> Result<R> {
        match &mut *self.slot()? {
            Slot::Free(snapshot) => Ok(work(snapshot)?),
            slot => Err(not_free(slot)),
        }
    }

    fn slot(&self) -> Result<parking_lot::MutexGuard<'_, Slot>> {
        let busy = || Failure::Usage("another thread uses the snapshot at this moment".to_string());
        self.0.try_lock().ok_or_else(busy)
    }

    /// What the snapshot knows of a table.
    fn definition(&self, py: Python<'_>, table: &str) -> Result<TableDefinition> {
        py.detach(|| self.with(|snapshot| Ok(snapshot.table(table)?.definition)))
    }

    /// The rows of a scan, which takes the snapshot with it.
    fn begin(&self, wanted: &Wanted<'_>, ends: &Ends) -> Result<Reading> {
        let mut slot = self.slot()?;
        let snapshot = match std::mem::replace(&mut *slot, Slot::Lent) {
            Slot::Free(snapshot) => snapshot,
            other => {
                *slot = other;
                return Err(not_free(&slot));
            }
        };
        Reading::try_new_or_recover(MutBorrow::new(snapshot), |snapshot| wanted.rows(snapshot.borrow_mut(), ends))
            .map_err(|(snapshot, error)| {
                *slot = Slot::Free(snapshot.into_inner());
                Failure::Engine(error)
            })
    }
}

fn not_free(slot: &Slot) -> Failure {
    Failure::Usage(match slot {
        Slot::Closed => "the snapshot has ended".to_string(),
        _ => "a scan of this snapshot is not at its end; same_snapshot() gives another one".to_string(),
    })
}

/// What is read of a table, and how.
struct Wanted<'a> {
    table: &'a str,
    index: Option<&'a str>,
    columns: Option<&'a [String]>,
    reverse: bool,
    limit: Option<u64>,
}

impl Wanted<'_> {
    fn rows<'s>(
        &self,
        snapshot: &'s mut highwater::ReaderSnapshot,
        ends: &Ends,
    ) -> highwater::Result<highwater::ReaderRows<'s>> {
        let [low, high] =
            [&ends.low, &ends.high].map(|end| end.as_ref().map(|(values, is_open)| (refs(values), *is_open)));
        let [prefix, starts_with] = [&ends.prefix, &ends.starts_with].map(|values| values.as_deref().map(refs));
        let mut scan = snapshot.scan(self.table);
        if let Some(index) = self.index {
            scan = scan.index(index);
        }
        if let Some((values, is_exclusive)) = &low {
            scan = if *is_exclusive { scan.from_exclusive(values) } else { scan.from(values) };
        }
        if let Some((values, is_exclusive)) = &high {
            scan = if *is_exclusive { scan.to_exclusive(values) } else { scan.to(values) };
        }
        if let Some(values) = &prefix {
            scan = scan.prefix(values);
        }
        if let Some(values) = &starts_with {
            scan = scan.starts_with(values);
        }
        if self.reverse {
            scan = scan.rev();
        }
        let limit = self.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let scan = scan.limit(limit);
        match self.columns {
            None => scan.iter(),
            Some(names) => scan.select(&names.iter().map(String::as_str).collect::<Vec<_>>()),
        }
    }
}

fn dict<'py>(py: Python<'py>, row: &Row) -> Result<Bound<'py, PyAny>> {
    RowForm::new(py, row.names(), false).row(py, row.values())
}

#[pymethods]
impl Reader {
    /// A snapshot: what had committed at its first read.
    fn snapshot(&self, py: Python<'_>) -> PyResult<ReaderSnapshot> {
        Ok(ReaderSnapshot::new(py.detach(|| self.0.snapshot()).map_err(Failure::from)?))
    }

    /// Names of all tables, in order.
    fn tables(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let tables = py.detach(|| self.0.tables()).map_err(Failure::from)?;
        Ok(tables.into_iter().map(|table| table.definition.name).collect())
    }

    /// The counters of the process that has the database open, as `Database.metrics` has them.
    #[pyo3(signature = (*, openmetrics = false))]
    fn metrics(&self, py: Python<'_>, openmetrics: bool) -> PyResult<String> {
        let format = if openmetrics { MetricsFormat::OpenMetrics } else { MetricsFormat::Prometheus };
        Ok(py.detach(|| self.0.metrics_text(format)).map_err(Failure::from)?)
    }
}

#[pymethods]
impl ReaderSnapshot {
    /// The row of a primary key (a value, or a tuple of them); None if there is none.
    fn get<'py>(&self, py: Python<'py>, table: &str, key: &Bound<'_, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let definition = self.definition(py, table)?;
        let key = to_key(key, &key_columns(&definition, &definition.columns, None)?)?;
        let row = py.detach(|| self.with(|snapshot| snapshot.get(table, &refs(&key))))?;
        Ok(row.map(|row| dict(py, &row)).transpose()?)
    }

    /// The first row, in the order of an index, whose leading columns of that index have these values.
    fn get_by<'py>(
        &self,
        py: Python<'py>,
        table: &str,
        index: &str,
        key: &Bound<'_, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let definition = self.definition(py, table)?;
        let key = to_key(key, &key_columns(&definition, &definition.columns, Some(index))?)?;
        let row = py.detach(|| self.with(|snapshot| snapshot.get_by(table, index, &refs(&key))))?;
        Ok(row.map(|row| dict(py, &row)).transpose()?)
    }

    /// Rows, as `Transaction.scan` describes them. The snapshot is the scan's until its last row was read.
    #[pyo3(signature = (table, index = None, *, ge = None, gt = None, le = None, lt = None, prefix = None,
        starts_with = None, columns = None, reverse = false, limit = None))]
    #[allow(clippy::too_many_arguments, reason = "each is a keyword argument in Python")]
    fn scan<'py>(
        &self,
        py: Python<'py>,
        table: &str,
        index: Option<&str>,
        ge: Option<Bound<'py, PyAny>>,
        gt: Option<Bound<'py, PyAny>>,
        le: Option<Bound<'py, PyAny>>,
        lt: Option<Bound<'py, PyAny>>,
        prefix: Option<Bound<'py, PyAny>>,
        starts_with: Option<Bound<'py, PyAny>>,
        columns: Option<Vec<String>>,
        reverse: bool,
        limit: Option<u64>,
    ) -> PyResult<ReaderRows> {
        let definition = self.definition(py, table)?;
        let of_key = key_columns(&definition, &definition.columns, index)?;
        let key = |object: Option<Bound<'py, PyAny>>| object.map(|object| to_key(&object, &of_key)).transpose();
        if (ge.is_some() && gt.is_some()) || (le.is_some() && lt.is_some()) {
            return Err(Failure::Usage("a scan has one begin (ge, gt) and one end (le, lt)".to_string()).into());
        }
        let (is_above, is_below) = (gt.is_some(), lt.is_some());
        let ends = Ends {
            low: key(ge.or(gt))?.map(|values| (values, is_above)),
            high: key(le.or(lt))?.map(|values| (values, is_below)),
            prefix: key(prefix)?,
            starts_with: key(starts_with)?,
        };
        let wanted = Wanted { table, index, columns: columns.as_deref(), reverse, limit };
        let reading = py.detach(|| self.begin(&wanted, &ends))?;
        let all = || definition.columns.iter().map(|column| column.name.clone()).collect();
        let names: Vec<String> = columns.clone().unwrap_or_else(all);
        let form = RowForm::new(py, names.iter().map(String::as_str), false);
        Ok(ReaderRows { reading: Mutex::new(Some(reading)), form, place: Arc::clone(&self.0) })
    }

    /// How many rows a table has; the other process counts them.
    fn count(&self, py: Python<'_>, table: &str) -> PyResult<u64> {
        Ok(py.detach(|| self.with(|snapshot| snapshot.scan(table).count()))?)
    }

    /// Another one of the same moment, by a connection of its own.
    fn same_snapshot(&self, py: Python<'_>) -> PyResult<ReaderSnapshot> {
        Ok(ReaderSnapshot::new(py.detach(|| self.with(|snapshot| snapshot.same_snapshot()))?))
    }

    /// Ends it. A scan of it continues to its end.
    fn close(&self) -> PyResult<()> {
        *self.slot()? = Slot::Closed;
        Ok(())
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        exc_type: Option<Bound<'_, PyAny>>,
        exc_value: Option<Bound<'_, PyAny>>,
        traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        drop((exc_type, exc_value, traceback));
        self.close()?;
        Ok(false)
    }
}

impl ReaderRows {
    /// Returns the snapshot to its place, unless that was closed.
    fn end(&mut self) {
        let Some(reading) = self.reading.get_mut().take() else { return };
        let snapshot = reading.into_owner().into_inner();
        if let Some(mut slot) = self.place.try_lock().filter(|slot| matches!(**slot, Slot::Lent)) {
            *slot = Slot::Free(snapshot);
        }
    }
}

impl Drop for ReaderRows {
    fn drop(&mut self) {
        self.end();
    }
}

#[pymethods]
impl ReaderRows {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let reading = self.reading.get_mut();
        let Some(reading) = reading else { return Ok(None) };
        let next = py.detach(|| reading.with_dependent_mut(|_, rows| rows.next()));
        match next {
            Some(Ok(row)) => Ok(Some(self.form.row(py, row.values())?)),
            ended => {
                self.end();
                Ok(ended.transpose().map(|_| None).map_err(Failure::from)?)
            }
        }
    }
}
