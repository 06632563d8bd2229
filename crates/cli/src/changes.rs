//! `highwater changes`: the change log of a database, as JSON lines.
//!
//! Rules
//! 1. The database is only read; a database that was not closed is recovered in memory. If another process has it open,
//!    that process reads its log.
//! 2. `--follow` requires that another process has the database open; the command ends when that process closes it.

use crate::engine_options::EngineOptions;
use crate::failure::Failure;
use crate::output::while_read;
use crate::shell::printer::{json_text, json_value};
use crate::source::Source;
use clap::Args;
use highwater::{Change, ChangeKind, Error, Row, ValueRef};
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::time::Duration;

/// The longest wait for further changes, of one request.
const FOLLOW_WAIT: Duration = Duration::from_secs(3600);

const EXAMPLES: &str = "\
Examples:
  highwater changes /srv/shop
  highwater changes /srv/shop --since 4711
  highwater changes /srv/shop --since 4711 --follow

Each line is a change of a row in a table that logs its changes (Schema::log_changes): number of the transaction, its
time, table, kind (insert, update, delete, table_changed), primary key, the row as it was then. The last change of a
transaction has \"last\": true; its number is the position to continue from. If another process has the database open,
the log is read through it; --follow continues with the changes to come, until that process closes the database. A
program follows with Database::changes, or from another process with Reader::changes.";

/// Print the changes that are in the change log
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ChangesArgs {
    /// Folder of the database
    dir: PathBuf,
    /// Only changes of the transactions after this number
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    since: u64,
    /// Wait for further changes, of a database that another process has open, until that process closes it
    #[arg(long)]
    follow: bool,
    #[command(flatten)]
    engine: EngineOptions,
}

/// Runs `changes`.
///
/// # Errors
/// [`Failure::Usage`] if there is no such database, or none that can be followed; those of
/// [`Reader::changes`](highwater::Reader::changes) and the output.
pub(crate) fn run(args: &ChangesArgs) -> Result<(), Failure> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    match Source::of(&args.dir, args.engine.open_read_only(&args.dir))? {
        Source::Own(_) if args.follow => {
            let reason = "no process has the database open: there is nothing to follow";
            Err(Failure::Usage(format!("{}: {reason}", args.dir.display())))
        }
        Source::Own(db) => {
            print(db.changes(args.since)?, &mut out)?;
            Ok(db.close()?)
        }
        Source::Served { reader, .. } => {
            let mut changes = reader.changes(args.since)?;
            while print(&mut changes, &mut out)? && args.follow {
                changes.wait(FOLLOW_WAIT)?;
            }
            Ok(())
        }
    }
}

/// Prints the changes that there are; false if their reader has gone.
fn print(changes: impl Iterator<Item = Result<Change, Error>>, out: &mut impl Write) -> Result<bool, Failure> {
    for change in changes {
        let change = change?;
        if while_read(writeln!(out, "{}", line(&change))).map_err(failed)?.is_none() {
            return Ok(false);
        }
    }
    Ok(while_read(out.flush()).map_err(failed)?.is_some())
}

fn failed(error: std::io::Error) -> Failure {
    Failure::Failed(format!("stdout: {error}"))
}

fn line(change: &Change) -> String {
    let kind = match change.kind {
        ChangeKind::Insert => "insert",
        ChangeKind::Update => "update",
        ChangeKind::Delete => "delete",
        _ => "table_changed",
    };
    let mut field = String::new();
    let key: Vec<String> = change.key.iter().map(|value| json_value(value.as_ref(), &mut field)).collect();
    let time = json_value(change.time.into(), &mut field);
    let mut line = format!(
        "{{\"sequence\": {}, \"time\": {time}, \"table\": {}, \"kind\": \"{kind}\", \"key\": [{}]",
        change.sequence,
        json_text(&change.table),
        key.join(", ")
    );
    if let Some(row) = &change.row {
        line += &format!(", \"row\": {}", row_in_json(row));
    }
    line + &format!(", \"last\": {}}}", change.ends_transaction)
}

fn row_in_json(row: &Row) -> String {
    let mut field = String::new();
    let member =
        |(name, value): (&str, ValueRef<'_>)| format!("{}: {}", json_text(name), json_value(value, &mut field));
    let members: Vec<String> = row.names().zip(row.values()).map(member).collect();
    format!("{{{}}}", members.join(", "))
}
