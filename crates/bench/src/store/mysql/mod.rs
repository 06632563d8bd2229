//! MySQL and MariaDB as a store: every call is a statement over the server's socket.
//!
//! Rules
//! 1. Statements are prepared once for each session, table and shape, and kept.
//! 2. A transaction is START TRANSACTION, its statements, COMMIT or ROLLBACK, under REPEATABLE READ.
//! 3. `modify` is SELECT ... FOR UPDATE and an UPDATE of the columns put.
//! 4. Deadlocks and lock wait timeouts are returned as the engine's errors of that name, so that callers retry them in
//!    the same way.
//! 5. After a load the optimizer's statistics are recomputed. With those of empty tables MariaDB changes a row by its
//!    primary key through a secondary index that has some of the key's columns.
//! 6. Text columns are `latin1_bin`: one byte a character, compared as bytes. So a key of two VARCHAR(256) stays within
//!    the 767 bytes that MySQL 5.6 takes, and the sizes are those of the engine. Bytes of UTF-8 pass through unchanged.

mod bulk;
mod row;
mod session;
mod sql;
mod status;
mod table;

pub use row::{MysqlChanges, MysqlRow};
pub use session::{MysqlSession, MysqlTxn};
pub use table::MysqlTable;

use super::{IndexSpec, Store, StoreStats, TableSpec};
use crate::error::{Error, Result};
use highwater::Error as EngineError;
use mysql::consts::CapabilityFlags;
use mysql::prelude::Queryable;
use mysql::{Conn, Opts, OptsBuilder};
use parking_lot::Mutex;
use std::path::Path;
use std::sync::Arc;

/// The database that holds the tables.
pub const DATABASE: &str = "lab";

/// The product of a server, because the products name some counters differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavor {
    /// MySQL 5.6.
    Mysql,
    /// MariaDB 10.11.
    Mariadb,
    /// MariaDB 10.11 with MyRocks and without InnoDB.
    Myrocks,
    /// MariaDB 10.11 with Highwater and without InnoDB.
    Highwater,
}

impl Flavor {
    /// Whether it has InnoDB and InnoDB's metrics.
    fn has_innodb(self) -> bool {
        matches!(self, Flavor::Mysql | Flavor::Mariadb)
    }
}

/// A running server as a store.
#[derive(Clone, Debug)]
pub struct MysqlStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    flavor: Flavor,
    opts: Opts,
    /// The connection that is not a session's, and the last counters that it read.
    control: Mutex<(Conn, StoreStats)>,
}

/// Converts the server's error.
pub fn server_error(error: mysql::Error) -> Error {
    const DUPLICATE_KEY: u16 = 1062;
    const LOCK_WAIT_TIMEOUT: u16 = 1205;
    const DEADLOCK: u16 = 1213;
    const RECORD_CHANGED: u16 = 1020;
    match error {
        mysql::Error::MySqlError(error) => match error.code {
            DEADLOCK => EngineError::Deadlock.into(),
            LOCK_WAIT_TIMEOUT => EngineError::LockWaitTimeout.into(),
            RECORD_CHANGED => EngineError::WriteConflict.into(),
            DUPLICATE_KEY => duplicate_key(&error.message),
            code => Error::Server(format!("the server says: {} (error {code})", error.message)),
        },
        other => Error::Server(format!("the connection to the server: {other}")),
    }
}

/// The error of "Duplicate entry '1' for key 'PRIMARY'", which names only the key.
fn duplicate_key(message: &str) -> Error {
    let index = message.rsplit('\'').nth(1).unwrap_or(message);
    EngineError::DuplicateKey { table: DATABASE.into(), index: index.into() }.into()
}

impl MysqlStore {
    /// Connects to the server's socket; makes the database if there is none.
    ///
    /// # Errors
    /// [`Error::Server`] when the server does not answer.
    pub fn connect(socket: &Path, flavor: Flavor) -> Result<MysqlStore> {
        let base = OptsBuilder::new()
            .socket(Some(socket.display().to_string()))
            .user(Some("root"))
            .prefer_socket(false)
            .stmt_cache_size(Some(0))
            .additional_capabilities(CapabilityFlags::CLIENT_FOUND_ROWS)
            .init(vec!["SET NAMES latin1 COLLATE latin1_bin"]);
        let mut control = Conn::new(base.clone()).map_err(server_error)?;
        control.query_drop(format!("CREATE DATABASE IF NOT EXISTS {DATABASE}")).map_err(server_error)?;
        control.query_drop(format!("USE {DATABASE}")).map_err(server_error)?;
        if flavor.has_innodb() {
            // In 5.6 `all` in the configuration leaves the counters of written page types off.
            control.query_drop("SET GLOBAL innodb_monitor_enable = 'module_buffer_page'").map_err(server_error)?;
        }
        let opts = base.db_name(Some(DATABASE)).into();
        Ok(MysqlStore {
            shared: Arc::new(Shared { flavor, opts, control: Mutex::new((control, StoreStats::default())) }),
        })
    }

    /// A new connection.
    ///
    /// # Errors
    /// The server's.
    pub fn connection(&self) -> Result<Conn> {
        Conn::new(self.shared.opts.clone()).map_err(server_error)
    }

    /// The names of all tables.
    ///
    /// # Errors
    /// The server's.
    pub fn table_names(&self) -> Result<Vec<String>> {
        self.shared.control.lock().0.query("SHOW TABLES").map_err(server_error)
    }

    /// Problems that the server's check of every table finds.
    ///
    /// # Errors
    /// The server's.
    pub fn check_tables(&self) -> Result<Vec<String>> {
        let mut problems = Vec::new();
        for name in self.table_names()? {
            let statement = format!("CHECK TABLE {} EXTENDED", sql::name(&name));
            let rows: Vec<(String, String, String, String)> =
                self.shared.control.lock().0.query(statement).map_err(server_error)?;
            let bad = rows.into_iter().filter(|(_, _, kind, text)| kind != "status" || text != "OK");
            problems.extend(bad.map(|(table, _, kind, text)| format!("{table}: {kind}: {text}")));
        }
        Ok(problems)
    }

    fn counters(&self) -> Result<StoreStats> {
        let mut control = self.shared.control.lock();
        let (status, metrics) = said(self.shared.flavor, &mut control.0)?;
        control.1 = status::stats(self.shared.flavor, status, metrics);
        Ok(control.1.clone())
    }
}

type Said = (Vec<(String, String)>, Vec<(String, i64)>);

/// The server's status variables and, if it has InnoDB, InnoDB's metrics.
fn said(flavor: Flavor, control: &mut Conn) -> Result<Said> {
    let status = control.query("SHOW GLOBAL STATUS").map_err(server_error)?;
    if !flavor.has_innodb() {
        return Ok((status, Vec::new()));
    }
    let metrics = control.query("SELECT NAME, COUNT FROM information_schema.INNODB_METRICS").map_err(server_error)?;
    Ok((status, metrics))
}

impl Store for MysqlStore {
    type Table = MysqlTable;
    type Session = MysqlSession;

    fn create_table(&self, spec: &TableSpec) -> Result<MysqlTable> {
        self.shared.control.lock().0.query_drop(sql::create_table(spec)).map_err(server_error)?;
        let missing = || Error::Data(format!("table {} is not there after it was created", spec.name));
        self.table(&spec.name)?.ok_or_else(missing)
    }

    fn create_index(&self, table: &str, index: &IndexSpec) -> Result<()> {
        let statement = format!(
            "CREATE INDEX {} ON {} ({})",
            sql::name(index.name),
            sql::name(table),
            sql::names(index.columns.iter().copied())
        );
        // A connection of its own: other clients continue meanwhile, and another index can be built concurrently.
        self.connection()?.query_drop(statement).map_err(server_error)
    }

    fn loaded(&self) -> Result<()> {
        let tables = self.table_names()?;
        let statement = format!("ANALYZE TABLE {}", sql::names(tables.iter().map(String::as_str)));
        let said: Vec<(String, String, String, String)> =
            self.shared.control.lock().0.query(statement).map_err(server_error)?;
        match said.into_iter().find(|(_, _, kind, _)| kind.eq_ignore_ascii_case("error")) {
            None => Ok(()),
            Some((table, _, _, text)) => Err(Error::Server(format!("statistics of {table}: {text}"))),
        }
    }

    fn table(&self, name: &str) -> Result<Option<MysqlTable>> {
        MysqlTable::find(&mut self.shared.control.lock().0, name)
    }

    fn session(&self) -> Result<MysqlSession> {
        Ok(MysqlSession::new(self.connection()?))
    }

    /// For a server that does not answer because it was killed, the last known counters.
    fn stats(&self) -> StoreStats {
        self.counters().unwrap_or_else(|_| self.shared.control.lock().1.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_that_can_be_retried_are() {
        let said = |code, message: &str| {
            server_error(mysql::Error::MySqlError(mysql::MySqlError {
                state: "HY000".into(),
                message: message.into(),
                code,
            }))
        };
        for code in [1213, 1205, 1020] {
            assert!(said(code, "x").is_retryable(), "{code}");
        }
        let duplicate = said(1062, "Duplicate entry '1' for key 'PRIMARY'");
        assert!(!duplicate.is_retryable());
        assert!(duplicate.to_string().contains("PRIMARY"), "{duplicate}");
        assert!(matches!(said(1146, "no such table"), Error::Server(text) if text.contains("no such table")));
    }
}
