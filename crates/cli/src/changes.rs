//! `highwater changes`: the change log of a database, as JSON lines.
//!
//! Rule: the database is only read; one that was not closed is recovered in memory.

use crate::engine_options::EngineOptions;
use crate::failure::Failure;
use crate::shell::printer::{json_text, json_value};
use clap::Args;
use highwater::{Change, ChangeKind, Database, Row, Table};
use std::io::{BufWriter, ErrorKind, Write};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  highwater changes /srv/shop
  highwater changes /srv/shop --since 4711

Each line is a change of a row in a table that logs its changes (Schema::log_changes): number of the transaction,
table, kind (insert, update, delete, table_changed), primary key, the row as it was then. The last change of a
transaction has \"last\": true; its number is the position to go on from. A program that has the database open follows
it with Database::changes.";

/// Print the changes that are in the change log
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct ChangesArgs {
    /// Folder of the database
    dir: PathBuf,
    /// Only changes of the transactions behind this number
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    since: u64,
    #[command(flatten)]
    engine: EngineOptions,
}

/// Runs `changes`.
///
/// # Errors
/// [`Failure::Usage`] if there is no such database; those of [`Database::changes`] and the output.
pub fn run(args: &ChangesArgs) -> Result<(), Failure> {
    let db = args.engine.open_read_only(&args.dir)?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    for change in db.changes(args.since)? {
        let written = writeln!(out, "{}", line(&db, &change?));
        if ends(written)? {
            return Ok(());
        }
    }
    ends(out.flush())?;
    Ok(db.close()?)
}

/// Whether nobody reads the output any more.
fn ends(written: std::io::Result<()>) -> Result<bool, Failure> {
    match written {
        Ok(()) => Ok(false),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(true),
        Err(error) => Err(Failure::Failed(format!("stdout: {error}"))),
    }
}

fn line(db: &Database, change: &Change) -> String {
    let kind = match change.kind {
        ChangeKind::Insert => "insert",
        ChangeKind::Update => "update",
        ChangeKind::Delete => "delete",
        _ => "table_changed",
    };
    let mut field = String::new();
    let key: Vec<String> = change.key.iter().map(|value| json_value(value.as_ref(), &mut field)).collect();
    let mut line = format!(
        "{{\"sequence\": {}, \"table\": {}, \"kind\": \"{kind}\", \"key\": [{}]",
        change.sequence,
        json_text(&change.table),
        key.join(", ")
    );
    if let Some(row) = &change.row {
        line += &format!(", \"row\": {}", row_in_json(db.table(&change.table).ok().as_ref(), row));
    }
    line + &format!(", \"last\": {}}}", change.ends_transaction)
}

/// The row as an object, or as an array if no table has the name any more.
fn row_in_json(table: Option<&Table>, row: &Row) -> String {
    let mut field = String::new();
    let values: Vec<String> = row.values().map(|value| json_value(value, &mut field)).collect();
    match table.filter(|table| table.columns().len() == values.len()) {
        Some(table) => {
            let names = table.columns().iter().map(|column| json_text(&column.name));
            let members: Vec<String> = names.zip(&values).map(|(name, value)| format!("{name}: {value}")).collect();
            format!("{{{}}}", members.join(", "))
        }
        None => format!("[{}]", values.join(", ")),
    }
}
