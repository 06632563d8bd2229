//! `highwater-peers`: measures one storage engine in this process, as the laboratory asks.
//!
//! Rules
//! 1. `cell REQUEST ANSWER` reads the request and writes the answer, both JSON (`highwater_bench::peers`). One
//!    process takes one measurement, so that memory and counters are the engine's.
//! 2. `list` prints the engines that this program was built with, and their versions.
//! 3. Exit status 1 is a failure, 2 wrong use; the reason goes to stderr.

#![cfg_attr(not(all(feature = "rocksdb", feature = "wiredtiger")), allow(dead_code, reason = "is theirs only"))]

mod definition;
mod failure;
mod kv;
mod layout;
mod peer;
#[cfg(test)]
mod peers_test;
mod settings;

use highwater_bench::peers::{self, Answer, Request};
use highwater_bench::store::embedded::Embedded;
use highwater_bench::{Error, Result};
use kv::KvStore;
use settings::Peer;
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: highwater-peers cell REQUEST.json ANSWER.json    take one measurement
       highwater-peers list                             the engines and their versions

`highwater lab run peers` writes requests and starts this program.";

/// An engine: its name, its version, what measures it.
struct Engine {
    name: &'static str,
    version: fn() -> String,
    measure: fn(&Request) -> Result<Answer>,
}

const fn engine<P: Peer>(name: &'static str) -> Engine {
    Engine { name, version: P::version, measure: settings::measure::<P> }
}

const ENGINES: &[Engine] = &[
    engine::<Embedded>("highwater"),
    #[cfg(feature = "rocksdb")]
    engine::<KvStore<peer::rocksdb::RocksDb>>("rocksdb"),
    #[cfg(feature = "wiredtiger")]
    engine::<KvStore<peer::wiredtiger::WiredTiger>>("wiredtiger"),
    engine::<KvStore<peer::lmdb::Lmdb>>("lmdb"),
    engine::<peer::sqlite::Sqlite>("sqlite"),
    engine::<KvStore<peer::redb::Redb>>("redb"),
    engine::<KvStore<peer::fjall::Fjall>>("fjall"),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["cell", request, answer] => report(measure(Path::new(request), Path::new(answer))),
        ["list"] => {
            ENGINES.iter().for_each(|engine| println!("{} {}", engine.name, (engine.version)()));
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn measure(request: &Path, answer: &Path) -> Result<()> {
    let request: Request = peers::read(request)?;
    let names = || ENGINES.iter().map(|engine| engine.name).collect::<Vec<_>>().join(", ");
    let unknown = || Error::Usage(format!("there is no engine {:?} here; there are: {}", request.subject, names()));
    let engine = ENGINES.iter().find(|engine| engine.name == request.subject).ok_or_else(unknown)?;
    peers::write(answer, &(engine.measure)(&request)?)
}

fn report(result: Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
