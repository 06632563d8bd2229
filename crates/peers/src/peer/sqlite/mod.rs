//! SQLite, through rusqlite, with its write-ahead log.
//!
//! Rules
//! 1. A table is a table of SQL, an index an index of SQL; statements are prepared once for each connection.
//! 2. A client has a connection that reads. Writers take turns at one connection, which a lock of this process
//!    protects: SQLite has one writer at a time, its own way of waiting for the turn is to sleep, and a connection that
//!    meets a commit of another one forgets its cache. That connection is open until the database is closed, which
//!    moves what is in the log then.
//! 3. Durable is `synchronous=FULL`: the log is synced at each commit. Relaxed is `NORMAL`, with a checkpoint's sync of
//!    the log only.
//! 4. Each connection has a cache of its own: the writer's is a half, the readers share the other; the file is also
//!    mapped.
//! 5. Small rows with a key of several columns or of text are kept in the tree of the key (`WITHOUT ROWID`), as
//!    SQLite's documentation advises; numbers that are a key are the row's number.

mod sql;
#[cfg(test)]
mod sqlite_test;

use crate::failure::{duplicate, failed};
use crate::settings::{Peer, Settings};
use highwater::ValueRef;
use highwater_bench::Result;
use highwater_bench::store::{
    IndexSpec, Read, RowChanges, RowView, Scan, Session, Store, StoreStats, TableSpec, Transaction,
};
use parking_lot::{Mutex, MutexGuard, RwLock};
use rusqlite::types::{ToSqlOutput, Value, ValueRef as Sql};
use rusqlite::{CachedStatement, Connection, Error as SqlError, ErrorCode, Row, ToSql};
use sql::SqlTable;
use std::collections::BTreeMap;
use std::ops::{ControlFlow, Deref};
use std::path::Path;
use std::sync::Arc;

const STATEMENTS: usize = 128;

fn sqlite(error: SqlError) -> highwater_bench::Error {
    failed("sqlite", error)
}

/// An open database.
#[derive(Clone)]
pub(crate) struct Sqlite {
    shared: Arc<Shared>,
}

struct Shared {
    path: std::path::PathBuf,
    settings: Settings,
    tables: RwLock<BTreeMap<String, Arc<SqlTable>>>,
    writer: Mutex<Connection>,
}

/// A connection with so much cache.
fn connect(path: &Path, settings: &Settings, cache_bytes: u64) -> Result<Connection> {
    let connection = Connection::open(path).map_err(sqlite)?;
    // Where an index is sorted.
    let temp_store = if settings.beyond_memory { "FILE" } else { "MEMORY" };
    let synchronous = if settings.durable { "FULL" } else { "NORMAL" };
    let pragmas = format!(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous={synchronous}; PRAGMA cache_size=-{};
         PRAGMA mmap_size={}; PRAGMA temp_store={temp_store}; PRAGMA busy_timeout=10000;",
        cache_bytes >> 10,
        settings.cache_bytes
    );
    connection.execute_batch(&pragmas).map_err(sqlite)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(connection)
}

impl Peer for Sqlite {
    fn open(folder: &Path, settings: &Settings) -> Result<Sqlite> {
        std::fs::create_dir_all(folder).map_err(|e| failed("sqlite", e))?;
        let path = folder.join("sqlite");
        let writer = connect(&path, settings, settings.cache_bytes / 2)?;
        writer.execute_batch(sql::CATALOG).map_err(sqlite)?;
        let tables = sql::read_catalog(&writer)?;
        let tables = tables.into_iter().map(|table| (table.name().to_string(), Arc::new(table))).collect();
        let (tables, writer) = (RwLock::new(tables), Mutex::new(writer));
        Ok(Sqlite { shared: Arc::new(Shared { path, settings: settings.clone(), tables, writer }) })
    }

    /// The last connection that closes moves the log into the database.
    fn close(self) -> Result<()> {
        let shared = Arc::into_inner(self.shared).ok_or_else(|| failed("sqlite", "closed while it is used"))?;
        shared.writer.into_inner().close().map_err(|(_, error)| sqlite(error))
    }

    fn version() -> String {
        rusqlite::version().into()
    }
}

impl Store for Sqlite {
    type Table = Arc<SqlTable>;
    type Session = SqliteSession;

    fn create_table(&self, spec: &TableSpec) -> Result<Arc<SqlTable>> {
        let table = Arc::new(SqlTable::new(spec));
        table.create(&self.shared.writer.lock())?;
        self.shared.tables.write().insert(spec.name.clone(), table.clone());
        Ok(table)
    }

    fn create_index(&self, table: &str, index: &IndexSpec) -> Result<()> {
        let old = self.table(table)?.ok_or_else(|| failed("sqlite", format!("there is no table {table}")))?;
        let new = old.with_index(&self.shared.writer.lock(), index)?;
        self.shared.tables.write().insert(table.into(), Arc::new(new));
        Ok(())
    }

    fn table(&self, name: &str) -> Result<Option<Arc<SqlTable>>> {
        Ok(self.shared.tables.read().get(name).cloned())
    }

    fn session(&self) -> Result<SqliteSession> {
        let Shared { path, settings, .. } = &*self.shared;
        let reader = connect(path, settings, settings.cache_bytes / 2 / settings.clients.max(1) as u64)?;
        Ok(SqliteSession { reader, shared: self.shared.clone(), text: String::new() })
    }

    fn stats(&self) -> StoreStats {
        StoreStats::default()
    }
}

/// A client: its connection, and its turns at the writer's.
pub(crate) struct SqliteSession {
    reader: Connection,
    shared: Arc<Shared>,
    text: String,
}

impl Session for SqliteSession {
    type Table = Arc<SqlTable>;
    type Txn<'s> = SqliteTxn<'s>;
    type Snapshot<'s> = SqliteTxn<'s>;

    fn begin(&mut self) -> Result<SqliteTxn<'_>> {
        SqliteTxn::begin(Handle::Writer(self.shared.writer.lock()), &mut self.text, "BEGIN IMMEDIATE")
    }

    fn snapshot(&mut self) -> Result<SqliteTxn<'_>> {
        SqliteTxn::begin(Handle::Reader(&self.reader), &mut self.text, "BEGIN")
    }
}

/// A transaction. It is rolled back unless it is finished; only then the next writer has its turn.
pub(crate) struct SqliteTxn<'s> {
    connection: Handle<'s>,
    text: &'s mut String,
    is_open: bool,
}

/// The connection of a transaction.
enum Handle<'s> {
    Reader(&'s Connection),
    Writer(MutexGuard<'s, Connection>),
}

impl Deref for Handle<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        match self {
            Handle::Reader(connection) => connection,
            Handle::Writer(connection) => connection,
        }
    }
}

/// A value as SQL has it: decimals as whole numbers of their smallest unit, times as microseconds.
struct Bound<'v>(ValueRef<'v>);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self.0 {
            ValueRef::Null => ToSqlOutput::Owned(Value::Null),
            ValueRef::Int(n) => ToSqlOutput::Owned(Value::Integer(n)),
            ValueRef::UInt(n) => ToSqlOutput::Owned(Value::Integer(n as i64)),
            ValueRef::F64(x) => ToSqlOutput::Owned(Value::Real(x)),
            ValueRef::Decimal(d) => ToSqlOutput::Owned(Value::Integer(d.unscaled() as i64)),
            ValueRef::Text(text) => ToSqlOutput::Borrowed(Sql::Text(text.as_bytes())),
            ValueRef::Bytes(bytes) => ToSqlOutput::Borrowed(Sql::Blob(bytes)),
            ValueRef::DateTime(t) => ToSqlOutput::Owned(Value::Integer(t.unix_us())),
            ValueRef::Bool(b) => ToSqlOutput::Owned(Value::Integer(b.into())),
            ValueRef::Date(d) => ToSqlOutput::Owned(Value::Integer(d.unix_days().into())),
            ValueRef::Time(t) => ToSqlOutput::Owned(Value::Integer(t.us_since_midnight() as i64)),
            ValueRef::Uuid(u) => ToSqlOutput::Owned(Value::Blob(u.as_bytes().to_vec())),
        })
    }
}

fn bind<'v>(
    statement: &mut CachedStatement<'_>,
    first: usize,
    values: impl Iterator<Item = ValueRef<'v>>,
) -> Result<()> {
    for (n, value) in values.enumerate() {
        statement.raw_bind_parameter(first + n, Bound(value)).map_err(sqlite)?;
    }
    Ok(())
}

impl<'s> SqliteTxn<'s> {
    fn begin(connection: Handle<'s>, text: &'s mut String, begin: &str) -> Result<SqliteTxn<'s>> {
        run(&connection, begin)?;
        Ok(SqliteTxn { connection, text, is_open: true })
    }

    /// Prepares a statement and binds its parameters.
    fn prepare(&self, sql: &str, values: &[ValueRef<'_>]) -> Result<CachedStatement<'_>> {
        let mut statement = self.connection.prepare_cached(sql).map_err(sqlite)?;
        bind(&mut statement, 1, values.iter().copied())?;
        Ok(statement)
    }
}

fn run(connection: &Connection, sql: &str) -> Result<()> {
    connection.prepare_cached(sql).and_then(|mut statement| statement.raw_execute()).map(drop).map_err(sqlite)
}

impl Drop for SqliteTxn<'_> {
    fn drop(&mut self) {
        if self.is_open {
            let _ = run(&self.connection, "ROLLBACK");
        }
    }
}

impl Read for SqliteTxn<'_> {
    type Table = Arc<SqlTable>;
    type Row<'r> = SqlRow<'r>;

    fn get<R>(
        &mut self,
        table: &Arc<SqlTable>,
        key: &[ValueRef<'_>],
        look: impl FnOnce(&SqlRow<'_>) -> R,
    ) -> Result<Option<R>> {
        let mut statement = self.prepare(&table.get, key)?;
        let mut rows = statement.raw_query();
        Ok(rows.next().map_err(sqlite)?.map(|row| look(&SqlRow(row))))
    }

    fn scan(
        &mut self,
        table: &Arc<SqlTable>,
        scan: &Scan<'_>,
        mut visit: impl FnMut(&SqlRow<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        table.write_scan(scan, self.text)?;
        let mut statement = self.prepare(self.text, scan.prefix)?;
        let limit = if scan.limit > 0 { scan.limit as i64 } else { -1 };
        let bounds = [scan.from, scan.to, Some(limit.into())].into_iter().flatten();
        bind(&mut statement, scan.prefix.len() + 1, bounds)?;
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next().map_err(sqlite)? {
            if visit(&SqlRow(row)).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        run(&self.connection, "COMMIT")?;
        self.is_open = false;
        Ok(())
    }
}

impl Transaction for SqliteTxn<'_> {
    type Changes<'c> = SqlChanges;

    fn insert(&mut self, table: &Arc<SqlTable>, row: &[ValueRef<'_>]) -> Result<Option<u64>> {
        match self.prepare(&table.insert, row)?.raw_execute() {
            Ok(_) => {}
            Err(SqlError::SqliteFailure(failure, _)) if failure.code == ErrorCode::ConstraintViolation => {
                return Err(duplicate(table.name()));
            }
            Err(error) => return Err(sqlite(error)),
        }
        let numbered = table.auto_increment.is_some_and(|column| row[column].is_null());
        Ok(numbered.then(|| self.connection.last_insert_rowid() as u64))
    }

    fn update(&mut self, table: &Arc<SqlTable>, key: &[ValueRef<'_>], set: &[(usize, ValueRef<'_>)]) -> Result<bool> {
        table.write_update(set.iter().map(|(column, _)| *column), self.text);
        let mut statement = self.prepare(self.text, key)?;
        bind(&mut statement, key.len() + 1, set.iter().map(|(_, value)| *value))?;
        Ok(statement.raw_execute().map_err(sqlite)? > 0)
    }

    fn modify<F>(&mut self, table: &Arc<SqlTable>, key: &[ValueRef<'_>], mut change: F) -> Result<bool>
    where
        F: FnMut(&SqlRow<'_>, &mut SqlChanges),
    {
        let mut changes = SqlChanges::default();
        if self.get(table, key, |row| change(row, &mut changes))?.is_none() {
            return Ok(false);
        }
        let set: Vec<_> = changes.set.iter().map(|(column, value)| (*column, value.as_ref())).collect();
        if set.is_empty() { Ok(true) } else { self.update(table, key, &set) }
    }

    fn delete(&mut self, table: &Arc<SqlTable>, key: &[ValueRef<'_>]) -> Result<bool> {
        Ok(self.prepare(&table.delete, key)?.raw_execute().map_err(sqlite)? > 0)
    }

    fn rollback(mut self) -> Result<()> {
        self.is_open = false;
        run(&self.connection, "ROLLBACK")
    }
}

/// New values of a row.
#[derive(Default)]
pub(crate) struct SqlChanges {
    set: Vec<(usize, highwater::Value)>,
}

impl RowChanges for SqlChanges {
    fn put(&mut self, column: usize, value: ValueRef<'_>) {
        self.set.retain(|(other, _)| *other != column);
        self.set.push((column, value.to_value()));
    }
}

/// A row of a statement.
pub(crate) struct SqlRow<'r>(&'r Row<'r>);

impl SqlRow<'_> {
    fn sql(&self, column: usize) -> Sql<'_> {
        self.0.get_ref(column).unwrap_or(Sql::Null)
    }
}

impl RowView for SqlRow<'_> {
    fn u64(&self, column: usize) -> u64 {
        self.i64(column) as u64
    }

    fn i64(&self, column: usize) -> i64 {
        if let Sql::Integer(n) = self.sql(column) { n } else { 0 }
    }

    fn str(&self, column: usize) -> &str {
        if let Sql::Text(text) = self.sql(column) { simdutf8::basic::from_utf8(text).unwrap_or_default() } else { "" }
    }

    fn bytes(&self, column: usize) -> &[u8] {
        if let Sql::Text(bytes) | Sql::Blob(bytes) = self.sql(column) { bytes } else { b"" }
    }

    fn unscaled(&self, column: usize) -> i64 {
        self.i64(column)
    }

    fn is_null(&self, column: usize) -> bool {
        self.sql(column) == Sql::Null
    }
}
