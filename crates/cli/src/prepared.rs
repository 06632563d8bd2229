//! `highwater prepared`: lists, commits and rolls back prepared transactions.
//!
//! Rules
//! 1. A list only reads the files, even of a database that was not closed.
//! 2. Every name is looked up before the first transaction ends: a wrong name changes nothing.

use crate::engine_options::EngineOptions;
use crate::failure::Failure;
use crate::output::{Json, Lines, json_must_be_writable, write_json};
use clap::Args;
use highwater::{Database, PreparedInfo, Xid};
use serde_json::json;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  highwater prepared /srv/shop
  highwater prepared /srv/shop --json -
  highwater prepared /srv/shop --commit 1:order-17:stock --commit 1:order-18:stock
  highwater prepared /srv/shop --rollback 1:order-19:stock

A transaction that a program has prepared (the first phase of two) survives crashes with its rows locked, until its
coordinator says how it ends. End one by hand only if the coordinator cannot: what its other branches did decides.
A name is FORMAT:GLOBAL:BRANCH; bytes other than letters, digits, - _ and . are written as % and two digits.
Exit status: 0 done; 1 no such transaction, or an error; 2 the command line is wrong.";

/// List prepared transactions, commit them or roll them back
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PreparedArgs {
    /// Folder of the database
    dir: PathBuf,
    /// Commit the transaction of this name
    #[arg(long, value_name = "XID")]
    commit: Vec<Xid>,
    /// Roll the transaction of this name back
    #[arg(long, value_name = "XID")]
    rollback: Vec<Xid>,
    /// Write the list as JSON; - is stdout, and nothing else goes there
    #[arg(long, value_name = "FILE", conflicts_with_all = ["commit", "rollback"])]
    json: Option<Json>,
    #[command(flatten)]
    engine: EngineOptions,
}

/// Runs `prepared`.
///
/// # Errors
/// [`Failure::Failed`] for a name that no prepared transaction has; that of the engine.
pub(crate) fn run(args: &PreparedArgs) -> Result<(), Failure> {
    if args.commit.is_empty() && args.rollback.is_empty() { list(args) } else { finish(args) }
}

fn list(args: &PreparedArgs) -> Result<(), Failure> {
    json_must_be_writable(args.json.as_ref())?;
    let database = args.engine.open_read_only(&args.dir)?;
    let prepared = database.prepared();
    database.close()?;
    let lines = Lines { stdout_taken: args.json == Some(Json::Stdout) };
    if prepared.is_empty() {
        lines.write("no transaction is prepared");
    }
    prepared.iter().for_each(|info| lines.write(&describe(info)));
    let Some(json) = &args.json else { return Ok(()) };
    let list: Vec<_> = prepared.iter().map(as_json).collect();
    let text = serde_json::to_string_pretty(&list).map_err(|error| Failure::Failed(error.to_string()))?;
    write_json(json, &text)
}

fn describe(info: &PreparedInfo) -> String {
    let PreparedInfo { xid, transaction, time, undo_records, tables, .. } = info;
    let tables = tables.join(", ");
    format!("{xid}: transaction {transaction}, prepared {time}Z, {undo_records} undo records, tables: {tables}")
}

fn as_json(info: &PreparedInfo) -> serde_json::Value {
    let PreparedInfo { xid, transaction, time, undo_records, tables, .. } = info;
    json!({
        "xid": xid.to_string(),
        "transaction": transaction,
        "prepared_utc": time.to_string(),
        "undo_records": undo_records,
        "tables": tables,
    })
}

fn finish(args: &PreparedArgs) -> Result<(), Failure> {
    let ends = args.commit.iter().map(|xid| (xid, true)).chain(args.rollback.iter().map(|xid| (xid, false)));
    let ends: Vec<(&Xid, bool)> = ends.collect();
    for (at, (xid, _)) in ends.iter().enumerate() {
        if ends[..at].iter().any(|(other, _)| other == xid) {
            return Err(Failure::Usage(format!("{xid} is named twice")));
        }
    }
    let database = args.engine.open(&args.dir, &[], false)?;
    let finished = finish_all(&database, &ends);
    database.close()?;
    finished
}

fn finish_all(database: &Database, ends: &[(&Xid, bool)]) -> Result<(), Failure> {
    let prepared = database.prepared();
    if let Some((xid, _)) = ends.iter().find(|(xid, _)| !prepared.iter().any(|info| info.xid == **xid)) {
        return Err(highwater::Error::NoSuchXid { xid: xid.to_string() }.into());
    }
    let lines = Lines { stdout_taken: false };
    for (xid, commit) in ends {
        database.finish_prepared(xid, *commit)?;
        lines.write(&format!("{xid}: {}", if *commit { "committed" } else { "rolled back" }));
    }
    Ok(())
}
