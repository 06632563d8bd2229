//! Scans: what is read, and the iterators over it.
//!
//! Rules
//! 1. A scan is described when it is made, and begins when it is iterated; each iteration begins again.
//! 2. Rows of a snapshot are read in batches. A transaction's are read one by one: it may change what comes next, and
//!    lock what it is given.

use crate::arrow_out;
use crate::failure::{Failure, Result};
use crate::reading::{Kind, Reading, Shared};
use crate::table::{Opened, RowForm, TableOrName};
use crate::values::{refs, to_key};
use highwater::{LockMode, LockWait, Value, ValueRef};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Rows of a snapshot that are read at once.
const BATCH_ROWS: usize = 128;

/// Rows of a table, in the order of its primary key or of an index: iterate it, or call one of its ends.
#[pyclass(frozen, module = "highwater")]
pub struct Scan {
    txn: Arc<Shared>,
    described: Description,
}

/// What a scan reads.
pub struct Description {
    table: Arc<Opened>,
    index: Option<String>,
    low: Edge,
    high: Edge,
    prefix: Option<Vec<Value>>,
    starts_with: Option<Vec<Value>>,
    columns: Option<Vec<usize>>,
    reverse: bool,
    limit: Option<u64>,
    lock: LockMode,
    wait: LockWait,
}

#[derive(Default)]
struct Edge {
    values: Option<Vec<Value>>,
    is_exclusive: bool,
}

/// The keyword arguments of `scan`.
pub struct Arguments<'py> {
    /// Name of the index.
    pub index: Option<String>,
    /// Ends of the range.
    pub ge: Option<Bound<'py, PyAny>>,
    /// See `ge`.
    pub gt: Option<Bound<'py, PyAny>>,
    /// See `ge`.
    pub le: Option<Bound<'py, PyAny>>,
    /// See `ge`.
    pub lt: Option<Bound<'py, PyAny>>,
    /// What the key begins with.
    pub prefix: Option<Bound<'py, PyAny>>,
    /// As `prefix`; the last value is a prefix of its column.
    pub starts_with: Option<Bound<'py, PyAny>>,
    /// Names of the columns that are read.
    pub columns: Option<Vec<String>>,
    /// Backward.
    pub reverse: bool,
    /// Most rows.
    pub limit: Option<u64>,
}

/// What a read does about locks.
///
/// # Errors
/// Two of them, or a policy without a lock.
pub fn locks(
    for_update: bool,
    for_share: bool,
    nowait: bool,
    skip_locked: bool,
    lock_timeout: Option<f64>,
) -> Result<(LockMode, LockWait)> {
    let lock = match (for_update, for_share) {
        (true, true) => return Err(Failure::Usage("for_update or for_share, not both".to_string())),
        (true, false) => LockMode::Exclusive,
        (false, true) => LockMode::Shared,
        (false, false) => LockMode::None,
    };
    let wait = match (nowait, skip_locked, lock_timeout) {
        (false, false, None) => LockWait::Default,
        (true, false, None) => LockWait::NoWait,
        (false, true, None) => LockWait::SkipLocked,
        (false, false, Some(seconds)) => LockWait::Timeout(duration(seconds)?),
        _ => return Err(Failure::Usage("one of nowait, skip_locked and lock_timeout".to_string())),
    };
    Ok((lock, wait))
}

/// Seconds as a duration.
///
/// # Errors
/// It is negative, or no number.
pub fn duration(seconds: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| Failure::Usage(format!("{seconds} is no number of seconds")))
}

impl Description {
    /// Of the arguments of a call.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn new(table: Arc<Opened>, arguments: Arguments<'_>, locks: (LockMode, LockWait)) -> Result<Description> {
        let Arguments { index, ge, gt, le, lt, prefix, starts_with, columns, reverse, limit } = arguments;
        let given = [&prefix, &starts_with].into_iter().flatten().count()
            + usize::from([&ge, &gt, &le, &lt].into_iter().flatten().count() > 0);
        if given > 1 || (ge.is_some() && gt.is_some()) || (le.is_some() && lt.is_some()) {
            let what = "a scan has one begin (ge, gt) and one end (le, lt), or a prefix, or starts_with";
            return Err(Failure::Usage(what.to_string()));
        }
        let columns = match columns {
            None => None,
            Some(names) => Some(names.iter().map(|name| table.position(name)).collect::<Result<Vec<_>>>()?),
        };
        let (low, high, prefix, starts_with) = {
            let of_key = table.key_columns(index.as_deref())?;
            let key = |object: Option<Bound<'_, PyAny>>| object.map(|object| to_key(&object, &of_key)).transpose();
            let low = Edge { is_exclusive: gt.is_some(), values: key(ge.or(gt))? };
            let high = Edge { is_exclusive: lt.is_some(), values: key(le.or(lt))? };
            (low, high, key(prefix)?, key(starts_with)?)
        };
        let (lock, wait) = locks;
        Ok(Description { table, index, low, high, prefix, starts_with, columns, reverse, limit, lock, wait })
    }

    /// The columns of its rows, in order.
    pub fn columns(&self) -> Vec<&highwater::Column> {
        let all = self.table.table.columns();
        self.columns.as_ref().map_or(all.iter().collect(), |at| at.iter().filter_map(|at| all.get(*at)).collect())
    }

    /// Does something with the scan.
    ///
    /// # Errors
    /// As [`Shared::with`]; those of `end`.
    fn with<R>(&self, txn: &Shared, end: impl FnOnce(highwater::Scan<'_, '_>) -> highwater::Result<R>) -> Result<R> {
        let [low, high, prefix, starts_with] = [&self.low.values, &self.high.values, &self.prefix, &self.starts_with]
            .map(|values| values.as_deref().map(refs));
        txn.with(|kind| {
            let table = &self.table.table;
            let mut scan = match kind {
                Kind::Write(txn) => txn.scan(table),
                Kind::Read(txn) => txn.scan(table),
            };
            if let Some(index) = self.index.as_deref().filter(|index| *index != "PRIMARY") {
                scan = scan.index(index);
            }
            scan = described(scan, (&low, self.low.is_exclusive), (&high, self.high.is_exclusive));
            if let Some(values) = &prefix {
                scan = scan.prefix(values);
            }
            if let Some(values) = &starts_with {
                scan = scan.starts_with(values);
            }
            if let Some(columns) = &self.columns {
                scan = scan.columns(columns);
            }
            if self.reverse {
                scan = scan.rev();
            }
            scan = match self.lock {
                LockMode::None => scan,
                LockMode::Shared => scan.for_share(),
                LockMode::Exclusive => scan.for_update(),
            };
            scan = match self.wait {
                LockWait::Default => scan,
                LockWait::Timeout(timeout) => scan.lock_timeout(timeout),
                LockWait::NoWait => scan.nowait(),
                LockWait::SkipLocked => scan.skip_locked(),
            };
            let limit = self.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
            Ok(end(scan.limit(limit))?)
        })
    }
}

/// The scan within its ends.
fn described<'s, 'v>(
    mut scan: highwater::Scan<'s, 'v>,
    (low, is_low_exclusive): (&'v Option<Vec<ValueRef<'v>>>, bool),
    (high, is_high_exclusive): (&'v Option<Vec<ValueRef<'v>>>, bool),
) -> highwater::Scan<'s, 'v> {
    if let Some(values) = low {
        scan = if is_low_exclusive { scan.from_exclusive(values) } else { scan.from(values) };
    }
    if let Some(values) = high {
        scan = if is_high_exclusive { scan.to_exclusive(values) } else { scan.to(values) };
    }
    scan
}

impl Scan {
    /// A scan of a table.
    ///
    /// # Errors
    /// What is wrong with the arguments.
    pub fn new(
        txn: &Arc<Shared>,
        table: &TableOrName<'_>,
        arguments: Arguments<'_>,
        locks: (LockMode, LockWait),
    ) -> Result<Scan> {
        let described = Description::new(table.open(|| txn.db())?, arguments, locks)?;
        Ok(Scan { txn: Arc::clone(txn), described })
    }

    fn begin(&self, py: Python<'_>) -> Result<Reading> {
        let cursor = py.detach(|| self.described.with(&self.txn, |scan| scan.cursor()))?;
        let limit = self.described.limit.unwrap_or(u64::MAX);
        Ok(Reading::new(cursor, Arc::clone(&self.txn), self.described.reverse, limit))
    }

    fn rows(&self, py: Python<'_>, as_tuples: bool) -> Result<Rows> {
        let reading = self.begin(py)?;
        let batch = if reading.is_of_snapshot()? { BATCH_ROWS } else { 1 };
        let names = self.described.columns().into_iter().map(|column| column.name.as_str());
        Ok(Rows { reading: Some(reading), form: RowForm::new(py, names, as_tuples), batch, read: VecDeque::new() })
    }
}

#[pymethods]
impl Scan {
    /// Begins to read: rows as dicts.
    fn __iter__(&self, py: Python<'_>) -> PyResult<Rows> {
        Ok(self.rows(py, false)?)
    }

    /// Begins to read: rows as tuples.
    fn tuples(&self, py: Python<'_>) -> PyResult<Rows> {
        Ok(self.rows(py, true)?)
    }

    /// The first row; None if there is none.
    fn first<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(py
            .detach(|| self.described.with(&self.txn, |scan| scan.first()))?
            .map(|row| {
                let names = self.described.columns().into_iter().map(|column| column.name.as_str());
                RowForm::new(py, names, false).row(py, row.values())
            })
            .transpose()?)
    }

    /// How many rows there are. By an index none of them is read.
    fn count(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(py.detach(|| self.described.with(&self.txn, |scan| scan.count()))?)
    }

    /// About how many rows there are, without reading them.
    fn estimate(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(py.detach(|| self.described.with(&self.txn, |scan| scan.estimate()))?)
    }

    /// Deletes the rows; how many there were. All of them or, if it fails, none.
    fn delete(&self, py: Python<'_>) -> PyResult<u64> {
        self.txn.write(|_| Ok(()))?;
        Ok(py.detach(|| self.described.with(&self.txn, |scan| scan.delete()))?)
    }

    /// The Arrow PyCapsule interface: the rows as a stream of record batches, read on request.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface lets a producer give its own schema.
        drop(requested_schema);
        arrow_out::stream(py, &self.described.columns(), self.begin(py)?)
    }

    /// The rows as a `pyarrow.Table`.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let reader = slf.py().import("pyarrow")?.getattr("RecordBatchReader")?;
        reader.call_method1("from_stream", (slf,))?.call_method0("read_all")
    }

    /// The rows as a `pandas.DataFrame`.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Scan::to_arrow(slf)?.call_method0("to_pandas")
    }
}

/// Rows of a scan, one after another.
#[pyclass(module = "highwater")]
pub struct Rows {
    /// None at the end.
    reading: Option<Reading>,
    form: RowForm,
    batch: usize,
    read: VecDeque<Vec<Value>>,
}

impl Rows {
    fn fill(&mut self) -> Result<()> {
        let Some(reading) = &mut self.reading else { return Ok(()) };
        let (read, batch) = (&mut self.read, self.batch);
        let more = reading.each(|row| {
            read.push_back(row.values().map(ValueRef::to_value).collect());
            Ok(read.len() < batch)
        });
        if !matches!(more, Ok(true)) {
            self.reading = None;
        }
        if more.is_err() {
            self.read.clear();
        }
        more.map(drop)
    }
}

#[pymethods]
impl Rows {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.read.is_empty() {
            py.detach(|| self.fill())?;
        }
        let Some(values) = self.read.pop_front() else { return Ok(None) };
        Ok(Some(self.form.row(py, values.iter().map(Value::as_ref))?))
    }
}
