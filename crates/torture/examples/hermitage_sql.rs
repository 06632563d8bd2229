//! The Hermitage schedules through SQL, on InnoDB and on Highwater in one MariaDB server, for
//! `scripts/test-mariadb-plugin hermitage`: `cargo run -p highwater-torture --example hermitage_sql SOCKET`.
//!
//! Rules
//! 1. Both tables of outcomes are printed, side by side. It fails where an outcome is not the promised one. Promises
//!    that differ are those of docs/design/isolation.md.
//! 2. It also fails where the engines' rows and waits are not the same although the same transactions failed. Which
//!    member of a deadlock is its victim is left to each engine.

mod sql;

use highwater_bench::store::mysql::{Flavor, MysqlStore};
use highwater_bench::{Error, Result};
use highwater_torture::isolation::Setting;
use highwater_torture::isolation::hermitage::{Outcome, SCRIPTS, Script, Seen, Server, ServerEngine, play};
use std::path::Path;
use std::process::ExitCode;

/// Of an outcome's column.
const WIDTH: usize = 9;

fn main() -> ExitCode {
    sql::run("the SOCKET of a MariaDB server that has the plugin", run)
}

fn run([socket]: [String; 1]) -> Result<()> {
    let store = MysqlStore::connect(Path::new(&socket), Flavor::Mariadb)?;
    let mut servers = [Server::new(store.clone(), ServerEngine::InnoDb)?, Server::new(store, ServerEngine::Highwater)?];
    head();
    let mut wrong = Vec::new();
    for script in &SCRIPTS {
        let [innodb, highwater] = &mut servers;
        let (innodb, highwater) = (line(innodb, script)?, line(highwater, script)?);
        println!("{:30}{}   {}", script.name, cells(script, &innodb), cells(script, &highwater).trim_end());
        wrong.extend(differences(script, &innodb, &highwater));
    }
    if wrong.is_empty() { Ok(()) } else { Err(Error::Data(wrong.join("\n"))) }
}

fn head() {
    let levels = ["RU", "RC", "RR", "RR, fcw", "SER"].map(|level| format!("{level:WIDTH$}")).concat();
    println!("fcw: first committer wins, with innodb_snapshot_isolation or highwater_snapshot_isolation");
    println!("{:30}{:half$}   Highwater\n{:30}{levels}   {levels}", "", "InnoDB", "", half = levels.len());
}

/// A script under every setting.
fn line(server: &mut Server, script: &'static Script) -> Result<Vec<Seen>> {
    Setting::ALL.into_iter().map(|setting| play(server, script, setting)).collect()
}

fn cells(script: &Script, line: &[Seen]) -> String {
    line.iter().map(|seen| format!("{:WIDTH$}", Outcome::of(script, seen).name())).collect()
}

/// What is not as promised, a line of text each.
fn differences(script: &Script, innodb: &[Seen], highwater: &[Seen]) -> Vec<String> {
    let mut found = Vec::new();
    let promises = Outcome::promised(script.innodb).into_iter().zip(Outcome::promised(script.highwater));
    for (((setting, promised), innodb), highwater) in Setting::ALL.into_iter().zip(promises).zip(innodb).zip(highwater)
    {
        let outcomes = (Outcome::of(script, innodb), Outcome::of(script, highwater));
        let place = format!("{} under {}", script.name, setting.name());
        if outcomes != promised {
            found.push(format!("{place}: InnoDB, Highwater {outcomes:?}, promised {promised:?}"));
        } else if innodb.failed == highwater.failed && innodb != highwater {
            found.push(format!("{place}: the answers differ\n  InnoDB {innodb:?}\n  Highwater {highwater:?}"));
        }
    }
    found
}
