//! TPC-C on a MariaDB server that is killed under it, with a record of each acknowledged commit outside the database:
//! `cargo run -p highwater-bench --example tpcc_server SOCKET FOLDER load|run|check`.
//!
//! `load` makes one warehouse, in the server's default engine, and begins a new record in `FOLDER`. `run` is the load:
//! it ends well when the connection is lost, and badly with any other error. `check` compares the record and the twelve
//! consistency conditions with the database.

use highwater_bench::run::{RunOptions, run};
use highwater_bench::store::mysql::{Flavor, MysqlStore};
use highwater_bench::workload::tpcc::{Config, Tpcc, forget, verify};
use highwater_bench::workload::{Silent, Workload, load_or_reuse};
use highwater_bench::{Error, Result};
use std::path::{Path, PathBuf};

const CLIENTS: usize = 4;
const USAGE: &str = "three arguments: SOCKET FOLDER load|run|check";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [socket, folder, command] = arguments.as_slice() else { return Err(Error::Usage(USAGE.into())) };
    let folder = PathBuf::from(folder);
    let store = MysqlStore::connect(Path::new(socket), Flavor::Highwater)?;
    // Each run has other transactions.
    let seed = fastrand::u64(..);
    let tpcc = Tpcc::new(Config { seed, acknowledgements: Some(folder.clone()), ..Config::default() });
    match command.as_str() {
        "load" => load(&store, &tpcc, &folder),
        "run" => run_until_killed(&store, &tpcc),
        "check" => check(&store, &tpcc, &folder),
        _ => Err(Error::Usage(USAGE.into())),
    }
}

fn load(store: &MysqlStore, tpcc: &Tpcc, folder: &Path) -> Result<()> {
    load_or_reuse(store, tpcc, CLIENTS, &Silent)?;
    forget(folder)?;
    tpcc.prepare_acknowledgements(store, CLIENTS)
}

fn run_until_killed(store: &MysqlStore, tpcc: &Tpcc) -> Result<()> {
    let options = RunOptions { threads: CLIENTS, seconds: 0.0, ..RunOptions::default() };
    match run(store, tpcc, &options, &mut |_| ()) {
        Err(Error::Server(text)) if text.starts_with("the connection to the server") => Ok(()),
        other => other.map(drop),
    }
}

fn check(store: &MysqlStore, tpcc: &Tpcc, folder: &Path) -> Result<()> {
    let acknowledged = verify(store, folder, CLIENTS as u64)?;
    let broken = tpcc.conditions(store)?.into_iter().filter(|condition| !condition.holds);
    let broken = broken.map(|c| format!("condition {}, {}: {}", c.condition, c.text, c.detail));
    let problems: Vec<String> = acknowledged.problems.into_iter().chain(broken).collect();
    if !problems.is_empty() {
        return Err(Error::Data(problems.join("; ")));
    }
    println!("{}", acknowledged.commits);
    Ok(())
}
