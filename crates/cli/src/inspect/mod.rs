//! `highwater inspect`: shows a database's header, tables, pages, redo log and extents.
//!
//! Rules
//! 1. All views except `lists` read the files without opening, recovering or writing the database, so that a damaged
//!    one can be examined. The pages lack changes that are only in the redo log. The folders are locked meanwhile: a
//!    database that is in use is refused, since its files look damaged while they change.
//! 2. Every view is made as JSON and as text from the same data; `--json` chooses.
//! 3. Exit status 1: the requested data cannot be read.

mod files;
mod flush;
mod log;
mod page;
mod segments;

use crate::at_rest::AtRest;
use crate::failure::Failure;
use crate::output::{Json, Lines, json_must_be_writable, write_json};
use clap::{Args, Subcommand};
use highwater::Options;
use serde_json::Value;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  highwater inspect /srv/shop
  highwater inspect /srv/shop page 70 --hex
  highwater inspect /srv/shop log --limit 20
  highwater inspect /srv/shop lists --json -";

const SUMMARY_EXAMPLES: &str = "\
Examples:
  highwater inspect /srv/shop summary
  highwater inspect /srv/shop summary --log-dir /srv/redo --json -";

const TABLES_EXAMPLES: &str = "\
Examples:
  highwater inspect /srv/shop tables
  highwater inspect /srv/shop tables --json tables.json";

const PAGE_EXAMPLES: &str = "\
Examples:
  highwater inspect /srv/shop page 70
  highwater inspect /srv/shop page 70 --hex";

const LOG_EXAMPLES: &str = "\
Examples:
  highwater inspect /srv/shop log --limit 20
  highwater inspect /srv/shop log --log-dir /srv/redo --json -";

const SEGMENTS_EXAMPLES: &str = "\
Examples:
  highwater inspect /srv/shop segments
  highwater inspect /srv/shop segments --limit 100 --json segments.json";

const LISTS_EXAMPLES: &str = "\
Examples:
  highwater inspect /srv/shop lists
  highwater inspect /srv/shop lists --json -";

/// Look at a database's tables, pages, redo log and lists
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InspectArgs {
    /// Folder of the database
    dir: PathBuf,
    #[command(subcommand)]
    what: Option<What>,
    /// Write the result as JSON to FILE; with -, to stdout
    #[arg(long, value_name = "FILE", global = true)]
    json: Option<Json>,
    /// Folder of the redo log, if it is not the folder of the database
    #[arg(long, value_name = "DIR", global = true)]
    log_dir: Option<PathBuf>,
    /// File with the key of an encrypted database
    #[arg(long, value_name = "FILE", global = true)]
    key_file: Option<PathBuf>,
}

#[derive(Clone, Debug, Subcommand)]
enum What {
    /// File header, sizes, log, tables (the default)
    #[command(after_help = SUMMARY_EXAMPLES)]
    Summary,
    /// Tables with their columns and trees
    #[command(after_help = TABLES_EXAMPLES)]
    Tables,
    /// A page: header and contents
    #[command(after_help = PAGE_EXAMPLES)]
    Page {
        /// Number of the page
        number: u32,
        /// Also show the bytes of the page
        #[arg(long)]
        hex: bool,
    },
    /// The redo log: headers, and the groups since the checkpoint
    #[command(after_help = LOG_EXAMPLES)]
    Log {
        /// Show this many groups, the newest
        #[arg(long, default_value_t = 50)]
        limit: usize,
    },
    /// Segments of a page store out of place: fill, age, group
    #[command(after_help = SEGMENTS_EXAMPLES)]
    Segments {
        /// Show this many segments, the emptiest first
        #[arg(long, default_value_t = 50)]
        limit: usize,
    },
    /// Extents and the segment that owns each; then the buffer pool's lists after the database was opened in memory
    #[command(after_help = LISTS_EXAMPLES)]
    Lists,
}

/// A view: the same as text and as JSON.
pub(crate) struct View {
    pub text: String,
    pub json: Value,
    /// The error, if the requested data could not be read.
    pub problem: Option<String>,
}

/// Runs `inspect`.
///
/// # Errors
/// [`Failure::Usage`] when there is no database, [`Failure::Failed`] when what was to be shown cannot be read.
pub(crate) fn run(args: &InspectArgs) -> Result<(), Failure> {
    json_must_be_writable(args.json.as_ref())?;
    let options = Options { log_dir: args.log_dir.clone(), key_file: args.key_file.clone(), ..Options::default() };
    let files = AtRest::lock(&args.dir, args.log_dir.as_deref(), options.read_key()?.as_ref())?;
    let view = match args.what.clone().unwrap_or(What::Summary) {
        What::Summary => files::summary(&files)?,
        What::Tables => files::tables(&files)?,
        What::Page { number, hex } => page::view(&files, number, hex)?,
        What::Log { limit } => log::view(&files, limit)?,
        What::Segments { limit } => segments::view(&files, limit)?,
        What::Lists => files::lists(&files, options)?,
    };
    match &args.json {
        Some(json) => write_json(json, &format!("{:#}", view.json))?,
        None => Lines { stdout_taken: false }.write(view.text.trim_end()),
    }
    match view.problem {
        None => Ok(()),
        Some(problem) => Err(Failure::Failed(problem)),
    }
}

/// Lines of cells as columns: the first column to the left, the others to the right.
fn columns(rows: &[Vec<String>]) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let cells = |row: &Vec<String>, i: usize| row.get(i).map_or(0, |cell| cell.chars().count());
    let widths: Vec<usize> = (0..count).map(|i| rows.iter().map(|row| cells(row, i)).max().unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(i, (cell, &width))| match i {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
