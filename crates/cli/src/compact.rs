//! `highwater compact`: makes the data file as short as possible.
//!
//! Rules
//! 1. The result is one line on stdout, or JSON.
//! 2. A killed command leaves the moved pages moved; the next opening recovers as after any crash.

use crate::engine_options::EngineOptions;
use crate::failure::Failure;
use crate::output::{Json, Lines, json_must_be_writable, write_json};
use crate::progress::Progress;
use clap::Args;
use highwater::CompactionReport;
use serde_json::json;
use std::ops::ControlFlow;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  highwater compact /srv/shop
  highwater compact /srv/shop --json -

Pages are moved from the end of the data file to free pages before them; then the file is cut. No other process may
have the database open: a program that has it calls Database::compact while transactions run.
Roots of indexes, undo and pages of long columns are not moved; the file cannot end before the last of them.
Exit status: 0 done; 1 an error; 2 the command line is wrong, or the database is in use.";

/// Make the data file of a database as short as it can be
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompactArgs {
    /// Folder of the database
    dir: PathBuf,
    /// Write the result as JSON; - is stdout, and nothing else goes there
    #[arg(long, value_name = "FILE")]
    json: Option<Json>,
    #[command(flatten)]
    engine: EngineOptions,
}

/// Runs `compact`.
///
/// # Errors
/// That of the engine.
pub(crate) fn run(args: &CompactArgs) -> Result<(), Failure> {
    json_must_be_writable(args.json.as_ref())?;
    let database = args.engine.open(&args.dir, &[], false)?;
    let mut progress = Progress::new("moved", 0).counting("pages");
    let compacted = database.compact(&mut |at| {
        progress.at(at.moved_pages, at.moved_pages);
        ControlFlow::Continue(())
    });
    drop(progress);
    let storage = database.storage().clone();
    let closed = database.close();
    let CompactionReport { moved_pages, fixed_pages, bytes_before, .. } = compacted?;
    closed?;
    // A closing cuts more.
    let bytes_after = storage.data.len_bytes().map_err(highwater::Error::from)?;
    let lines = Lines { stdout_taken: args.json == Some(Json::Stdout) };
    lines.write(&format!(
        "{moved_pages} pages moved; the data file had {bytes_before} bytes and has {bytes_after}; {fixed_pages} pages \
         at its end cannot be moved"
    ));
    let Some(json) = &args.json else { return Ok(()) };
    let report = json!({
        "moved_pages": moved_pages,
        "fixed_pages": fixed_pages,
        "bytes_before": bytes_before,
        "bytes_after": bytes_after,
    });
    write_json(json, &format!("{report:#}"))
}
