//! Schedules on a MariaDB server, as SQL, on tables of one of its storage engines.

use super::play::{Client, Rows, Subject};
use super::script::{Operation, Which};
use crate::isolation::Setting;
use highwater_bench::store::mysql::{MysqlStore, server_error};
use highwater_bench::{Error, Result};
use mysql::Conn;
use mysql::prelude::Queryable;
use parking_lot::Mutex;
use std::time::Duration;

/// A storage engine of the server. The name begins those of its variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerEngine {
    /// The server's own.
    InnoDb,
    /// This engine, as a plugin.
    Highwater,
}

highwater_storage::names!(ServerEngine {
    InnoDb => "InnoDB",
    Highwater => "Highwater",
});

/// A running server, with tables of one engine.
pub struct Server {
    store: MysqlStore,
    engine: ServerEngine,
    /// The connection that creates the tables and counts the waits.
    conn: Mutex<Conn>,
    tables: u32,
}

impl Server {
    /// A server with this store.
    ///
    /// # Errors
    /// The server's.
    pub fn new(store: MysqlStore, engine: ServerEngine) -> Result<Server> {
        Ok(Server { conn: Mutex::new(store.connection()?), store, engine, tables: 0 })
    }

    fn table(&self) -> String {
        format!("hermitage_{}_{}", self.engine.name(), self.tables)
    }

    /// Makes the table, with its two rows.
    fn make(&self, index: &str) -> mysql::Result<()> {
        let (mut conn, table, engine) = (self.conn.lock(), self.table(), self.engine.name());
        let columns = "id BIGINT PRIMARY KEY, value BIGINT NOT NULL";
        conn.query_drop(format!("DROP TABLE IF EXISTS {table}"))?;
        conn.query_drop(format!("CREATE TABLE {table} ({columns}{index}) ENGINE = {engine}"))?;
        conn.query_drop(format!("INSERT INTO {table} VALUES (1, 10), (2, 20)"))
    }
}

impl Subject for Server {
    type Client = Session;
    // A session whose lock was granted counts as waiting until its thread has run.
    const STEADY: Duration = Duration::from_millis(40);

    fn prepare(&mut self, indexed: bool) -> Result<()> {
        self.tables += 1;
        let index = if indexed { ", KEY by_value (value)" } else { "" };
        self.make(index).map_err(server_error)
    }

    fn begin(&self, setting: Setting) -> Result<Session> {
        let mut conn = self.store.connection()?;
        for statement in setting.statements(self.engine.name()).iter().map(String::as_str).chain(["START TRANSACTION"])
        {
            conn.query_drop(statement).map_err(server_error)?;
        }
        Ok(Session { conn, table: self.table() })
    }

    fn waiting(&self) -> Result<u64> {
        let name = format!("{}_row_lock_current_waits", self.engine.name());
        let said = self.conn.lock().query_first(format!("SHOW GLOBAL STATUS LIKE '{name}'")).map_err(server_error)?;
        let (_, waits): (String, u64) =
            said.ok_or_else(|| Error::Server(format!("the server has no status variable {name}")))?;
        Ok(waits)
    }
}

/// A connection with its transaction.
pub struct Session {
    conn: Conn,
    table: String,
}

/// The condition, and the hint before it.
fn condition(which: Which) -> (&'static str, String) {
    match which {
        Which::All => ("", String::new()),
        Which::Value(value) => ("", format!("WHERE value = {value}")),
        Which::DivisibleBy(number) => ("", format!("WHERE value % {number} = 0")),
        Which::Between(low, high) => ("FORCE INDEX (by_value)", format!("WHERE value BETWEEN {low} AND {high}")),
    }
}

/// A step as SQL.
pub(super) fn sql(operation: Operation, table: &str) -> String {
    match operation {
        Operation::Read(id) => format!("SELECT id, value FROM {table} WHERE id = {id}"),
        Operation::ReadWhere(which) => {
            let (hint, condition) = condition(which);
            format!("SELECT id, value FROM {table} {hint} {condition}")
        }
        Operation::Write(id, value) => format!("UPDATE {table} SET value = {value} WHERE id = {id}"),
        Operation::WriteWhere(which, value) => {
            let (hint, condition) = condition(which);
            format!("UPDATE {table} {hint} SET value = {value} {condition}")
        }
        Operation::AddToAll(number) => format!("UPDATE {table} SET value = value + {number}"),
        Operation::Insert(id, value) => format!("INSERT INTO {table} VALUES ({id}, {value})"),
        Operation::DeleteWhere(which) => format!("DELETE FROM {table} {}", condition(which).1),
        Operation::Commit => "COMMIT".into(),
        Operation::Abort => "ROLLBACK".into(),
    }
}

impl Client for Session {
    fn step(&mut self, operation: Operation) -> Result<Rows> {
        let mut rows: Rows = self.conn.query(sql(operation, &self.table)).map_err(server_error)?;
        rows.sort_unstable();
        Ok(rows)
    }

    fn roll_back(&mut self) {
        // The connection is given up; the server rolls back what is left.
        let _ = self.conn.query_drop("ROLLBACK");
    }
}
