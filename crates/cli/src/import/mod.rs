//! `highwater import DIR TABLE FILE`: rows of a CSV file, or of JSON lines, into a new or existing table.
//!
//! How it goes
//! 1. The file is read once to check every line (and to infer types that were not given). With `--on-error stop`, the
//!    default, a bad line ends the import here, without any change. Because of the two passes a pipe is first copied
//!    into a temporary file.
//! 2. The file is read again and inserted, committing every `--commit-every` rows (0 = once, at the end; a new table,
//!    in which batches do not show, gets 10,000 at a time unless the option says otherwise). An error of an insertion
//!    (a duplicate key, a key too long) ends it too: a table that this import created is dropped; rows committed to an
//!    existing table stay, and the message names the last committed line. So does a request to stop (Ctrl-C).
//! 3. With `--on-error skip` bad lines are reported and left out; the exit status is 1 if there was one.
//! 4. Indexes that are not unique are built at the end, in a new table.
//! 5. The next import drops a new table that a killed import left, and begins again (see `unfinished`). Rows committed
//!    to an existing table stay.
//!
//! Without `--primary-key` a new table gets a first column `row_id` with auto-increment.

mod columns;
mod file;
mod infer;
mod json_lines;
mod load;
mod quotes;
mod unfinished;

use crate::engine_options::EngineOptions;
use columns::{Known, Target, existing_targets, given_columns, parse_index, parse_key, schema};
pub(crate) use file::{Header, read_header};
use highwater::{Database, Error, Schema, Table};
use highwater_bench::interrupt;
use load::{insert_all, survey};
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use unfinished::{Unfinished, drop_leftover};

/// Name of the column that stands in for a missing primary key.
pub(crate) const ROW_ID: &str = "row_id";

/// What to do when a line is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnError {
    /// Stop, and import no row at all.
    Stop,
    /// Report the line, skip it and continue.
    Skip,
}

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Fields between delimiters (RFC 4180)
    Csv,
    /// A JSON object in each line
    Jsonl,
}

/// The arguments of an import.
#[derive(Clone, Debug)]
pub(crate) struct ImportArgs {
    /// The database's folder.
    pub dir: PathBuf,
    /// The table.
    pub table: String,
    /// The file; `-` is stdin.
    pub file: PathBuf,
    /// The file's name in messages, if it is not the path.
    pub name: Option<String>,
    /// The format; `None`: by the file's name.
    pub format: Option<Format>,
    /// `name:type` or `name:type?` (nullable), for a new table. With a header line: any of its columns, by name; the
    /// others are inferred. Without: all columns, in order, or none.
    pub columns: Vec<String>,
    /// `a=ascii_ci`: collations of columns of a new table.
    pub collations: Vec<String>,
    /// Whether the keys of a new table may be long.
    pub long_keys: bool,
    /// `a,b desc`: the primary key of a new table.
    pub primary_key: Option<String>,
    /// `name=a,b(40) desc covering c`: indexes of a new table.
    pub indexes: Vec<String>,
    /// `name=a,b`: unique indexes of a new table.
    pub unique: Vec<String>,
    /// Whether the first line names the columns.
    pub header: bool,
    /// Between fields; `None`: a comma, and a file that seems to have another one is refused.
    pub delimiter: Option<u8>,
    /// Text that stands for NULL.
    pub null: String,
    /// Rows of one transaction; 0 = all; `None`: all, but into a new table in batches.
    pub commit_every: Option<u64>,
    /// What to do when a line is invalid.
    pub on_error: OnError,
    /// The database's options.
    pub engine: EngineOptions,
}

impl ImportArgs {
    fn delimiter(&self) -> u8 {
        self.delimiter.unwrap_or(b',')
    }

    fn format(&self) -> Format {
        let ending = self.file.extension().unwrap_or_default();
        let is_json = ending == "jsonl" || ending == "ndjson";
        self.format.unwrap_or(if is_json { Format::Jsonl } else { Format::Csv })
    }

    /// The file's name in messages.
    fn shown(&self) -> PathBuf {
        self.name.as_ref().map_or_else(|| self.file.clone(), PathBuf::from)
    }
}

/// The result of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Imported {
    pub table: String,
    /// Rows inserted.
    pub rows: u64,
    /// Bad lines left out.
    pub skipped: u64,
}

impl fmt::Display for Imported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "imported {} rows into table {}", self.rows, self.table)?;
        if self.skipped > 0 { write!(f, ", left out {} bad lines", self.skipped) } else { Ok(()) }
    }
}

/// An error of an import or export.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CsvError {
    /// The command line is wrong (exit status 2).
    #[error("{0}")]
    Usage(String),
    /// A line of the file is wrong; the message names it (exit status 1).
    #[error("{0}")]
    Data(String),
    /// A file cannot be read or written (exit status 1).
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The operating system's answer.
        source: std::io::Error,
    },
    /// The database refused.
    #[error(transparent)]
    Database(#[from] Error),
}

type Result<T> = std::result::Result<T, CsvError>;

/// Imports a file.
///
/// # Errors
/// See the top of this file.
pub(crate) fn run(args: &ImportArgs) -> Result<Imported> {
    // Before anything is created.
    let spooled = spool(args)?;
    let of_pipe;
    let args = match &spooled {
        Some((file, name)) => {
            of_pipe = ImportArgs { file: file.path().to_path_buf(), name: Some(name.clone()), ..args.clone() };
            &of_pipe
        }
        None => args,
    };
    let header = read_header(args)?;
    let db = args.engine.open(&args.dir, &[], true)?;
    let done = import(args, &db, &header);
    let closed = db.close();
    let done = done?;
    closed?;
    Ok(done)
}

/// A copy of what comes out of a pipe, and its name: a file is read more than once. `None` for a regular file.
fn spool(args: &ImportArgs) -> Result<Option<(NamedTempFile, String)>> {
    let is_stdin = args.file == Path::new("-");
    let failed = |source| CsvError::File { path: args.file.clone(), source };
    if !is_stdin && std::fs::metadata(&args.file).map_err(failed)?.is_file() {
        return Ok(None);
    }
    let name = if is_stdin { "stdin".to_string() } else { args.file.display().to_string() };
    let mut pipe: Box<dyn Read> = match is_stdin {
        true => Box::new(std::io::stdin()),
        false => Box::new(File::open(&args.file).map_err(failed)?),
    };
    // Of the same ending, by which the format is known.
    let ending = args.file.extension().map(|ending| format!(".{}", ending.display())).unwrap_or_default();
    let copy = tempfile::Builder::new().suffix(&ending).tempfile();
    let mut copy = copy.map_err(|source| CsvError::File { path: std::env::temp_dir(), source })?;
    let mut part = vec![0; 1 << 18];
    loop {
        must_go_on()?;
        let read = pipe.read(&mut part).map_err(|source| CsvError::File { path: name.clone().into(), source })?;
        if read == 0 {
            return Ok(Some((copy, name)));
        }
        let written = std::io::Write::write_all(&mut copy, &part[..read]);
        written.map_err(|source| CsvError::File { path: copy.path().to_path_buf(), source })?;
    }
}

/// Imports a file, whose header was read, into an open database.
///
/// # Errors
/// As [`run`].
pub(crate) fn import(args: &ImportArgs, db: &Database, header: &Header) -> Result<Imported> {
    if drop_leftover(db, &args.table)? {
        tell!("table {} is what an import that was cut off left: it is imported again", args.table);
    }
    match db.table(&args.table) {
        Ok(table) => import_into(args, db, &table, header),
        Err(_) => import_new(args, db, header),
    }
}

fn import_into(args: &ImportArgs, db: &Database, table: &Table, header: &Header) -> Result<Imported> {
    let given = !args.columns.is_empty()
        || !args.collations.is_empty()
        || args.long_keys
        || args.primary_key.is_some()
        || !args.indexes.is_empty()
        || !args.unique.is_empty();
    if given {
        let reason = format!(
            "table {} exists: --column, --collation, --long-keys, --primary-key, --index and --unique are only for a \
             new table",
            args.table
        );
        return Err(CsvError::Usage(reason));
    }
    let targets = existing_targets(table, header)?;
    if args.on_error == OnError::Stop {
        survey(args, header, &mut targets.iter().cloned().map(Known::Given).collect::<Vec<_>>())?;
    }
    insert_all(args, db, table, (header, &targets), None)
}

/// An error if a stop was requested.
fn must_go_on() -> Result<()> {
    match interrupt::is_requested() {
        false => Ok(()),
        true => Err(CsvError::Data("interrupted; nothing was imported".into())),
    }
}

fn import_new(args: &ImportArgs, db: &Database, header: &Header) -> Result<Imported> {
    let mut known = given_columns(args, header)?;
    if args.on_error == OnError::Stop || known.iter().any(|k| matches!(k, Known::Guessed(..))) {
        survey(args, header, &mut known)?;
    }
    let keys = args.primary_key.as_deref().map(parse_key).transpose()?.map(|(_, names)| names).unwrap_or_default();
    let shift = usize::from(keys.is_empty());
    let targets: Vec<Target> = known.iter().enumerate().map(|(i, known)| known.target(i + shift, &keys)).collect();
    let schema = schema(args, &targets)?;
    let definition = schema.check(&args.table)?;
    let unfinished = Unfinished::begin(db, &definition)?;
    let done = fill(args, db, schema, (header, &targets), &unfinished);
    if done.is_err() && db.has_table(&args.table) {
        db.drop_table(&args.table)?;
    }
    let finished = unfinished.finish();
    let done = done?;
    finished.map(|()| done)
}

/// Makes the new table, with its rows and indexes.
fn fill(
    args: &ImportArgs,
    db: &Database,
    schema: Schema,
    columns: (&Header, &[Target]),
    unfinished: &Unfinished<'_>,
) -> Result<Imported> {
    let table = db.create_table(&args.table, schema)?;
    let mut told = warn(&table, &[]);
    insert_all(args, db, &table, columns, Some(unfinished)).and_then(|done| {
        for index in &args.indexes {
            must_go_on()?;
            let (name, index) = parse_index(index)?;
            db.create_index_with(&table, name, index)?;
            told = warn(&table, &told);
        }
        must_go_on().map(|()| done)
    })
}

/// Prints the warnings about a table's definition that are not in `told`; returns all of them.
fn warn(table: &Table, told: &[String]) -> Vec<String> {
    let warnings = table.warnings();
    warnings.iter().filter(|warning| !told.contains(warning)).for_each(|warning| tell!("warning: {warning}"));
    warnings
}

#[cfg(test)]
mod import_test;
