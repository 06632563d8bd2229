//! Many connections to a MariaDB server on tables of one engine, for `scripts/test-mariadb-plugin connections`:
//! `cargo run -p highwater-torture --example connections_sql SOCKET PROCESS ENGINE CONNECTIONS`.
//!
//! Rules
//! 1. Each connection has a thread, and all do the same step: open a transaction that reads a row, then wait for the
//!    row's lock and add 1 to it, then commit. A step ends when all connections have done it, or wait.
//! 2. The server's resident memory is printed after each step. A connection with its transaction and its wait needs no
//!    more than [`MAX_KIB`]. Each transaction counts: the row has the sum in the end.

mod sql;

use highwater_bench::store::mysql::{Flavor, MysqlStore, server_error};
use highwater_bench::{Error, Result};
use mysql::Conn;
use mysql::prelude::Queryable;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Barrier};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A client's thread needs little.
const STACK_BYTES: usize = 128 << 10;
/// Most memory for an open transaction that has read and waits for a lock, the server's part included: twice what it
/// is on InnoDB.
const MAX_KIB: f64 = 72.0;
/// Longest time for all connections to wait for the lock.
const PATIENCE: Duration = Duration::from_secs(300);

fn main() -> ExitCode {
    sql::run("SOCKET PROCESS ENGINE CONNECTIONS", run)
}

fn run([socket, process, engine, connections]: [String; 4]) -> Result<()> {
    let connections = connections.parse().map_err(|_| Error::Usage("CONNECTIONS is not a number".into()))?;
    let store = MysqlStore::connect(Path::new(&socket), Flavor::Mariadb)?;
    Test { store, process, connections, before: 0, begun: Instant::now() }.run(&engine)
}

struct Test {
    store: MysqlStore,
    process: String,
    connections: usize,
    /// Resident KiB of the server in the step before.
    before: i64,
    begun: Instant,
}

impl Test {
    fn run(&mut self, engine: &str) -> Result<()> {
        let mut control = self.store.connection()?;
        for statement in [
            "create or replace database c",
            &format!("create table c.t (id int primary key, n int not null) engine={engine}"),
            "insert into c.t values (1, 0), (2, 0)",
            "select * from c.t",
        ] {
            control.query_drop(statement).map_err(server_error)?;
        }
        self.step("a table")?;
        let turns = Arc::new(Barrier::new(self.connections + 1));
        let threads = self.start(&turns)?;
        turns.wait();
        self.step("connected")?;
        turns.wait();
        turns.wait();
        let reading = self.step("each in a transaction that has read a row")?;
        control.query_drop("begin").map_err(server_error)?;
        control.query_drop("update c.t set n = n + 1 where id = 1").map_err(server_error)?;
        turns.wait();
        self.await_waits(&mut control, engine)?;
        let waiting = self.step("each waits for the row's lock")?;
        control.query_drop("commit").map_err(server_error)?;
        for thread in threads {
            thread.join().map_err(|_| Error::Data("a connection's thread panicked".into()))??;
        }
        self.step("all have the lock, commit, are closed")?;
        if reading + waiting > MAX_KIB {
            return Err(Error::Data(format!("{:.1} KiB a connection, not at most {MAX_KIB}", reading + waiting)));
        }
        self.check_sum(&mut control)
    }

    fn start(&self, turns: &Arc<Barrier>) -> Result<Vec<JoinHandle<Result<()>>>> {
        let start = |_| {
            let (store, turns) = (self.store.clone(), turns.clone());
            let client = move || client(&store, &turns);
            std::thread::Builder::new()
                .stack_size(STACK_BYTES)
                .spawn(client)
                .map_err(|error| Error::Server(format!("a client's thread: {error}")))
        };
        (0..self.connections).map(start).collect()
    }

    /// Until every connection waits for a lock.
    fn await_waits(&self, control: &mut Conn, engine: &str) -> Result<()> {
        let begun = Instant::now();
        let status = format!("show global status like '{engine}_row_lock_current_waits'");
        loop {
            let waits: Option<(String, usize)> = control.query_first(&status).map_err(server_error)?;
            let waits = waits.map_or(0, |(_, waits)| waits);
            if waits == self.connections {
                return Ok(());
            }
            if begun.elapsed() > PATIENCE {
                return Err(Error::Data(format!("{waits} of {} connections wait for the lock", self.connections)));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Prints what the server holds, and returns how many KiB more for each connection than in the step before.
    fn step(&mut self, what: &str) -> Result<f64> {
        let path = PathBuf::from(format!("/proc/{}/status", self.process));
        let status = std::fs::read_to_string(&path).map_err(|source| Error::File { path, source })?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"));
        let missing = || Error::Data(format!("process {} has no resident memory", self.process));
        let resident: i64 = resident.and_then(|text| text.parse().ok()).ok_or_else(missing)?;
        let more = (resident - self.before) as f64 / self.connections as f64;
        let seconds = self.begun.elapsed().as_secs_f64();
        println!("{resident:>9} KiB, {more:>7.1} KiB more a connection, {seconds:>5.1} s: {what}");
        (self.before, self.begun) = (resident, Instant::now());
        Ok(more)
    }

    fn check_sum(&self, control: &mut Conn) -> Result<()> {
        let sum: Option<usize> = control.query_first("select n from c.t where id = 1").map_err(server_error)?;
        if sum == Some(self.connections + 1) {
            return Ok(());
        }
        Err(Error::Data(format!("the row has {sum:?} after {} additions of 1", self.connections + 1)))
    }
}

fn client(store: &MysqlStore, turns: &Barrier) -> Result<()> {
    let conn = store.connection();
    turns.wait();
    turns.wait();
    let read = conn.and_then(|mut conn| {
        conn.query_drop("begin").map_err(server_error)?;
        let _: Vec<(i64, i64)> = conn.query("select * from c.t where id = 2").map_err(server_error)?;
        Ok(conn)
    });
    turns.wait();
    turns.wait();
    let mut conn = read?;
    conn.query_drop("update c.t set n = n + 1 where id = 1").map_err(server_error)?;
    conn.query_drop("commit").map_err(server_error)
}
