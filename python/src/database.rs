//! Databases: opening, tables by name, upkeep.
//!
//! Rule: a closed database holds nothing of the engine's, and neither do its transactions: its folder can be opened
//! again while its objects live.

use crate::definition::{Described, Index, index_of, secondary_index};
use crate::failure::{Failure, Result, class};
use crate::reader::Reader;
use crate::reading::{PATIENCE, Shared, Txns};
use crate::scan::duration;
use crate::table::{Opened, Table, TableOrName};
use crate::transaction::{Snapshot, Transaction};
use highwater::config::FlushLog;
use highwater::{BackupOptions, MetricsFormat, Options, RestoreOptions, TxnOptions};
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How often `transact` runs its function at most.
const MAX_ATTEMPTS: u32 = 100;
/// The longest pause before the third attempt; it doubles with each, up to the greatest.
const PAUSE: Duration = Duration::from_micros(100);
const MAX_PAUSE: Duration = Duration::from_millis(50);

/// An open database: `with Database("folder") as db:`. Any number of threads may use it.
#[pyclass(frozen, module = "highwater")]
pub struct Database {
    /// `None` once it is closed.
    db: Mutex<Option<highwater::Database>>,
    txns: Arc<Txns>,
}

/// Options that are keyword arguments: what the command line takes, as text, number or bool.
fn options_of(given: Option<&Bound<'_, PyDict>>) -> Result<Options> {
    let mut options = Options::default();
    for (name, value) in given.into_iter().flatten() {
        let text = match (value.cast::<PyBool>(), value.cast::<PyString>()) {
            (Ok(truth), _) => if truth.is_true() { "on" } else { "off" }.to_string(),
            (_, Ok(text)) => text.to_cow()?.into_owned(),
            _ => value.str()?.to_cow()?.into_owned(),
        };
        options.set(&name.extract::<String>()?, &text)?;
    }
    Ok(options)
}

fn txn_options(
    isolation: &str,
    lock_timeout: Option<f64>,
    first_committer_wins: bool,
    snapshot_at_begin: bool,
    durability: Option<&str>,
) -> Result<TxnOptions> {
    let flush_log_at_trx_commit = match durability {
        None => None,
        Some("sync") => Some(FlushLog::Sync),
        Some("write") => Some(FlushLog::Write),
        Some("none") => Some(FlushLog::EverySecond),
        Some(other) => {
            return Err(Failure::Usage(format!("durability {other:?} is not one of 'sync', 'write', 'none'")));
        }
    };
    let ms = |seconds: f64| duration(seconds).map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1));
    Ok(TxnOptions {
        isolation: isolation.parse().map_err(Failure::Usage)?,
        lock_wait_timeout_ms: lock_timeout.map(ms).transpose()?,
        first_committer_wins,
        snapshot_at_begin,
        flush_log_at_trx_commit,
    })
}

impl Database {
    fn open_with(py: Python<'_>, open: impl FnOnce() -> highwater::Result<highwater::Database> + Send) -> Result<Self> {
        Ok(Database { db: Mutex::new(Some(py.detach(open)?)), txns: Arc::default() })
    }

    /// The engine's.
    fn db(&self) -> Result<highwater::Database> {
        let db = self.db.try_lock_for(PATIENCE).and_then(|db| db.clone());
        db.ok_or(Failure::Engine(highwater::Error::Closed))
    }

    /// Runs a call without the GIL.
    fn without_gil<R: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&highwater::Database) -> highwater::Result<R> + Send,
    ) -> Result<R> {
        let db = self.db()?;
        Ok(py.detach(|| call(&db))?)
    }
}

#[pymethods]
impl Database {
    /// Opens the database in a folder, creating both if need be, recovering from a crash if there was one. Options are
    /// those of the engine, for example `buffer_pool_size="1GiB"`. `read_only` leaves every file as it is.
    #[new]
    #[pyo3(signature = (path, *, read_only = false, **options))]
    fn new(py: Python<'_>, path: PathBuf, read_only: bool, options: Option<&Bound<'_, PyDict>>) -> PyResult<Database> {
        let options = options_of(options)?;
        Ok(Database::open_with(py, || match read_only {
            true => highwater::Database::open_read_only(path, options),
            false => highwater::Database::open(path, options),
        })?)
    }

    /// A new database in memory, which is gone when it is closed.
    #[staticmethod]
    #[pyo3(signature = (**options))]
    fn in_memory(py: Python<'_>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Database> {
        let options = options_of(options)?;
        Ok(Database::open_with(py, || highwater::Database::in_memory_with(options))?)
    }

    /// Reads a database that another process has open, or this one, without keeping its writers waiting.
    #[staticmethod]
    fn open_reader(py: Python<'_>, path: PathBuf) -> PyResult<Reader> {
        Ok(Reader(py.detach(|| highwater::Database::open_reader(path)).map_err(Failure::from)?))
    }

    /// Makes a database, in a new or empty folder, of a full backup and the incremental ones that follow it, in order.
    #[staticmethod]
    #[pyo3(signature = (backups, path, **options))]
    fn restore(
        py: Python<'_>,
        backups: Vec<PathBuf>,
        path: PathBuf,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let restore = RestoreOptions { database: options_of(options)?, check: true, ..RestoreOptions::default() };
        let work = || highwater::Database::restore(&backups, path, &restore, &mut |_| ControlFlow::Continue(()));
        py.detach(work).map_err(Failure::from)?;
        Ok(())
    }

    /// Closes the database: rolls open transactions back, writes every changed page. Every later call of it and its
    /// transactions raises `Closed`; another `close` does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let Ok(db) = self.db() else { return Ok(()) };
        let closed = py.detach(|| {
            self.txns.close();
            drop(self.db.try_lock_for(PATIENCE).and_then(|mut db| db.take()));
            db.close()
        });
        Ok(closed.map_err(Failure::from)?)
    }

    /// The table of a name.
    fn table(&self, name: &str) -> PyResult<Table> {
        Ok(Table(Opened::new(self.db()?.table(name).map_err(Failure::from)?)))
    }

    /// Every table, by name.
    fn tables(&self) -> PyResult<Vec<Table>> {
        Ok(self.db()?.tables().into_iter().map(|table| Table(Opened::new(table))).collect())
    }

    /// Creates a table. `columns` maps names to types such as "u64", "text(40)" or "decimal(12,2) null"; `primary_key`
    /// and the values of `indexes` are columns, with " desc" after a name in descending order, or an `Index`.
    #[pyo3(signature = (name, columns, primary_key, *, indexes = None, auto_increment = None, expires = None,
        collations = None, defaults = None, long_keys = false, log_changes = false))]
    #[allow(clippy::too_many_arguments, reason = "each is a keyword argument in Python")]
    fn create_table<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        columns: Bound<'py, PyDict>,
        primary_key: Bound<'py, PyAny>,
        indexes: Option<Bound<'py, PyDict>>,
        auto_increment: Option<String>,
        expires: Option<String>,
        collations: Option<HashMap<String, String>>,
        defaults: Option<Bound<'py, PyDict>>,
        long_keys: bool,
        log_changes: bool,
    ) -> PyResult<Table> {
        let described = Described::new(
            columns,
            primary_key,
            indexes,
            auto_increment,
            expires,
            collations,
            defaults,
            long_keys,
            log_changes,
        );
        let schema = described.schema()?;
        Ok(Table(Opened::new(self.without_gil(py, |db| db.create_table(name, schema))?)))
    }

    /// The table of a name; it is created if there is none, and refused if it is not as described. Arguments are those
    /// of `create_table`.
    #[pyo3(signature = (name, columns, primary_key, *, indexes = None, auto_increment = None, expires = None,
        collations = None, defaults = None, long_keys = false, log_changes = false))]
    #[allow(clippy::too_many_arguments, reason = "each is a keyword argument in Python")]
    fn table_or_create<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        columns: Bound<'py, PyDict>,
        primary_key: Bound<'py, PyAny>,
        indexes: Option<Bound<'py, PyDict>>,
        auto_increment: Option<String>,
        expires: Option<String>,
        collations: Option<HashMap<String, String>>,
        defaults: Option<Bound<'py, PyDict>>,
        long_keys: bool,
        log_changes: bool,
    ) -> PyResult<Table> {
        let described = Described::new(
            columns,
            primary_key,
            indexes,
            auto_increment,
            expires,
            collations,
            defaults,
            long_keys,
            log_changes,
        );
        let schema = described.schema()?;
        Ok(Table(Opened::new(self.without_gil(py, |db| db.table_or_create(name, schema))?)))
    }

    /// Makes a table what the arguments, those of `create_table`, say: creates it, or adds the columns and indexes that
    /// it lacks, and widens types. Nothing is dropped.
    #[pyo3(signature = (name, columns, primary_key, *, indexes = None, auto_increment = None, expires = None,
        collations = None, defaults = None, long_keys = false, log_changes = false))]
    #[allow(clippy::too_many_arguments, reason = "each is a keyword argument in Python")]
    fn migrate<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        columns: Bound<'py, PyDict>,
        primary_key: Bound<'py, PyAny>,
        indexes: Option<Bound<'py, PyDict>>,
        auto_increment: Option<String>,
        expires: Option<String>,
        collations: Option<HashMap<String, String>>,
        defaults: Option<Bound<'py, PyDict>>,
        long_keys: bool,
        log_changes: bool,
    ) -> PyResult<Table> {
        let described = Described::new(
            columns,
            primary_key,
            indexes,
            auto_increment,
            expires,
            collations,
            defaults,
            long_keys,
            log_changes,
        );
        let schema = described.schema()?;
        Ok(Table(Opened::new(self.without_gil(py, |db| db.migrate(name, schema))?.table)))
    }

    /// Drops a table. It waits until the transactions that use it have ended.
    fn drop_table(&self, py: Python<'_>, table: TableOrName<'_>) -> PyResult<()> {
        let name = table.name();
        Ok(self.without_gil(py, |db| db.drop_table(&name))?)
    }

    /// Gives a table another name.
    fn rename_table(&self, py: Python<'_>, table: TableOrName<'_>, to: &str) -> PyResult<Table> {
        let name = table.name();
        Ok(Table(Opened::new(self.without_gil(py, |db| db.rename_table(&name, to))?)))
    }

    /// Empties a table at once.
    fn truncate_table(&self, py: Python<'_>, table: TableOrName<'_>) -> PyResult<Table> {
        let name = table.name();
        Ok(Table(Opened::new(self.without_gil(py, |db| db.truncate_table(&name))?)))
    }

    /// Builds an index while others read and write the table: columns, or an `Index`.
    fn create_index(
        &self,
        py: Python<'_>,
        table: TableOrName<'_>,
        name: &str,
        columns: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let opened = table.open(|| self.db())?;
        let of_table: Vec<String> = opened.table.columns().iter().map(|column| column.name.clone()).collect();
        let index = match columns.cast::<Index>() {
            Ok(index) => {
                let (columns, unique, covering) = index.get().parts();
                secondary_index(columns, unique, covering, &of_table)
            }
            Err(_) => index_of(&columns.extract::<Vec<String>>()?, &of_table),
        };
        Ok(self.without_gil(py, |db| db.create_index_with(&opened.table, name, index).map(drop))?)
    }

    /// Drops an index.
    fn drop_index(&self, py: Python<'_>, table: TableOrName<'_>, name: &str) -> PyResult<()> {
        let table = table.name();
        Ok(self.without_gil(py, |db| db.drop_index(&table, name))?)
    }

    /// Begins a transaction. `isolation` is "read-uncommitted", "read-committed", "repeatable-read" or "serializable";
    /// `lock_timeout` is in seconds; `durability` is "sync", "write" or "none", or None: as the database's option
    /// `flush_log_at_trx_commit` says.
    #[pyo3(signature = (*, isolation = "repeatable-read", lock_timeout = None, first_committer_wins = false,
        snapshot_at_begin = false, durability = None))]
    fn transaction(
        &self,
        py: Python<'_>,
        isolation: &str,
        lock_timeout: Option<f64>,
        first_committer_wins: bool,
        snapshot_at_begin: bool,
        durability: Option<&str>,
    ) -> PyResult<Transaction> {
        let options = txn_options(isolation, lock_timeout, first_committer_wins, snapshot_at_begin, durability)?;
        let txn = self.without_gil(py, |db| db.begin_with(options))?;
        Ok(Transaction(Shared::writing(&self.db()?, &self.txns, txn)))
    }

    /// Begins a transaction that reads one snapshot: what had committed at its first read.
    fn snapshot(&self, py: Python<'_>) -> PyResult<Snapshot> {
        let txn = self.without_gil(py, |db| db.snapshot())?;
        Ok(Snapshot(Shared::reading(&self.db()?, &self.txns, txn)))
    }

    /// Runs `work(txn)` in a transaction and commits it; returns what it returns. If it raises, the transaction is
    /// rolled back; after a deadlock or a write conflict it is run again, up to 100 times. So it changes nothing but
    /// the database. Options are those of `transaction`.
    #[pyo3(signature = (work, **options))]
    fn transact<'py>(
        slf: &Bound<'py, Self>,
        work: &Bound<'py, PyAny>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let mut attempt = 1;
        loop {
            let txn = slf.call_method("transaction", (), options)?;
            let done = work.call1((&txn,)).and_then(|done| {
                if txn.getattr("is_open")?.is_truthy()? {
                    txn.call_method0("commit")?;
                }
                Ok(done)
            });
            let error = match done {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            if txn.getattr("is_open")?.is_truthy()? {
                // The exception of `work` is the one to be seen.
                let _ = txn.call_method0("rollback");
            }
            let is_met = |name| Ok::<_, PyErr>(error.matches(py, class(py, name)?)?);
            if attempt == MAX_ATTEMPTS || !(is_met("Deadlock")? || is_met("WriteConflict")?) {
                return Err(error);
            }
            py.check_signals()?;
            let greatest = (PAUSE * 2_u32.saturating_pow(attempt.min(20) - 1)).min(MAX_PAUSE);
            py.detach(|| std::thread::sleep(greatest.mul_f64(fastrand::f64())));
            attempt += 1;
        }
    }

    /// Makes every commit so far durable, whatever its transaction's durability.
    fn flush_log(&self, py: Python<'_>) -> PyResult<()> {
        Ok(self.without_gil(py, |db| db.flush_log())?)
    }

    /// Takes a backup into a new or empty folder while transactions run. With `base`, a backup of the same database,
    /// only what has changed since. `max_bytes_per_s` limits reading; 0 is no limit.
    #[pyo3(signature = (path, *, base = None, max_bytes_per_s = 0))]
    fn backup(&self, py: Python<'_>, path: PathBuf, base: Option<PathBuf>, max_bytes_per_s: u64) -> PyResult<()> {
        let options = BackupOptions { base, max_bytes_per_s, ..BackupOptions::default() };
        Ok(self.without_gil(py, |db| db.backup(path, &options, &mut |_| ControlFlow::Continue(())).map(drop))?)
    }

    /// Verifies every page, tree and cross-reference: what is wrong, as text; an empty list is a sound database.
    fn check(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let report = self.without_gil(py, |db| db.check())?;
        Ok(report.findings.iter().map(ToString::to_string).collect())
    }

    /// Every counter as text, in Prometheus' format.
    #[pyo3(signature = (*, openmetrics = false))]
    fn metrics(&self, openmetrics: bool) -> PyResult<String> {
        let format = if openmetrics { MetricsFormat::OpenMetrics } else { MetricsFormat::Prometheus };
        Ok(self.db()?.metrics_text(format))
    }

    /// Name and present value of every option.
    #[getter]
    fn options(&self) -> PyResult<HashMap<&'static str, String>> {
        Ok(self.db()?.options().values().into_iter().collect())
    }

    /// Changes an option of the open database; not every option can be changed.
    fn set_option(&self, py: Python<'_>, name: &str, value: &str) -> PyResult<()> {
        Ok(self.without_gil(py, |db| db.set_option(name, value))?)
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
