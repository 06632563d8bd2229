//! `highwater import` and `highwater export` on the command line; the work is in `import/` and `export.rs`.

use crate::engine_options::EngineOptions;
use crate::export::{self, ExportArgs};
use crate::failure::Failure;
use crate::import::{self, Format, ImportArgs, OnError};
use crate::signals;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

const IMPORT_EXAMPLES: &str = "\
Examples:
  highwater import world city cities.csv --primary-key id --index by_name=name --index by_place=country,name
  highwater import world city more.tsv --delimiter tab --column id:u32 --column name:text(200) --column note:text(4000)?
  highwater import world city cities.csv --collation name=ascii_ci --index 'newest=name,founded desc covering note'
  highwater import world city cities.csv --on-error skip
  highwater import world visit - --format jsonl --primary-key id

Types: i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 decimal(P,S) text(BYTES) binary(BYTES) bool date
time datetime uuid json(BYTES); a ? after it takes NULL.
JSON lines have an object in each line; its members are the columns.";

const EXPORT_EXAMPLES: &str = "\
Examples:
  highwater export world city cities.csv
  highwater export world city --delimiter tab --null NULL | less

The rows are those of one snapshot, also of a database that another process has open.";

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OnErrorOption {
    /// Stop, and import no row at all
    Stop,
    /// Report the line, skip it and continue
    Skip,
}

/// One byte, or `tab`.
fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        &[byte] if byte != b'"' && byte != b'\n' && byte != b'\r' => Ok(byte),
        _ => Err("one character, or tab".into()),
    }
}

/// Import a CSV file or JSON lines into a new or existing table
#[derive(Args, Debug)]
#[command(after_help = IMPORT_EXAMPLES)]
pub(crate) struct ImportOptions {
    /// Folder of the database; created if it is missing
    dir: PathBuf,
    /// Table; created if it is missing
    table: String,
    /// The file; - = stdin, which is copied into a temporary file first
    file: PathBuf,
    /// How the file is written [default: jsonl if its name ends in .jsonl or .ndjson, else csv]
    #[arg(long)]
    format: Option<Format>,
    /// A column of a new table: `name:type`, or `name:type?` if it may be NULL; the types of all other columns are
    /// inferred from the file
    #[arg(long = "column", value_name = "NAME:TYPE")]
    columns: Vec<String>,
    /// Collation of a text column of a new table, by which its indexes compare: ascii_ci
    #[arg(long = "collation", value_name = "COLUMN=COLLATION")]
    collations: Vec<String>,
    /// Let the keys of a new table be long: up to seven 32nds of a page
    #[arg(long)]
    long_keys: bool,
    /// Primary key of a new table; `A desc` = from great to small [default: a first column row_id that numbers the
    /// rows]
    #[arg(long, value_name = "A,B")]
    primary_key: Option<String>,
    /// Index of a new table; `A desc` = from great to small, `A(40)` = its first 40 bytes; `A,B covering C,D` = its
    /// entries have C and D too
    #[arg(long = "index", value_name = "NAME=A,B")]
    indexes: Vec<String>,
    /// Unique index of a new table
    #[arg(long = "unique", value_name = "NAME=A,B")]
    unique: Vec<String>,
    /// The first line is a row; the file has no line with column names
    #[arg(long)]
    no_header: bool,
    /// Delimiter between fields: one character, or tab [default: a comma]
    #[arg(long, value_parser = delimiter)]
    delimiter: Option<u8>,
    /// Text that stands for NULL
    #[arg(long, default_value = "")]
    null: String,
    /// Rows per transaction; 0 = all rows in one transaction [default: 0; 10000 into a new table, which is dropped if
    /// the import fails]
    #[arg(long, value_name = "ROWS", value_parser = crate::engine_options::size)]
    commit_every: Option<u64>,
    /// What to do when a line is invalid
    #[arg(long, default_value = "stop")]
    on_error: OnErrorOption,
    #[command(flatten)]
    engine: EngineOptions,
}

/// Runs `import`.
///
/// # Errors
/// Those of [`import::run`]; [`Failure::NotFine`] when bad lines were left out.
pub(crate) fn import(options: ImportOptions) -> Result<(), Failure> {
    if options.format == Some(Format::Jsonl) && (options.no_header || options.delimiter.is_some()) {
        return Err(Failure::Usage("--no-header and --delimiter are for CSV files".to_string()));
    }
    signals::stop(None)?;
    let imported = import::run(&ImportArgs {
        engine: options.engine,
        dir: options.dir,
        table: options.table,
        file: options.file,
        name: None,
        format: options.format,
        columns: options.columns,
        collations: options.collations,
        long_keys: options.long_keys,
        primary_key: options.primary_key,
        indexes: options.indexes,
        unique: options.unique,
        header: !options.no_header,
        delimiter: options.delimiter,
        null: options.null,
        commit_every: options.commit_every,
        on_error: match options.on_error {
            OnErrorOption::Stop => OnError::Stop,
            OnErrorOption::Skip => OnError::Skip,
        },
    })?;
    tell!("{imported}");
    if imported.skipped > 0 { Err(Failure::NotFine) } else { Ok(()) }
}

/// Export a table as CSV
#[derive(Args, Debug)]
#[command(after_help = EXPORT_EXAMPLES)]
pub(crate) struct ExportOptions {
    /// Folder of the database
    dir: PathBuf,
    /// Table
    table: String,
    /// File to write [default: stdout]
    file: Option<PathBuf>,
    /// Do not write a first line with the column names
    #[arg(long)]
    no_header: bool,
    /// Delimiter between fields: one character, or tab
    #[arg(long, default_value = ",", value_parser = delimiter)]
    delimiter: u8,
    /// Text that stands for NULL
    #[arg(long, default_value = "")]
    null: String,
    #[command(flatten)]
    engine: EngineOptions,
}

/// Runs `export`.
///
/// # Errors
/// Those of [`export::run`].
pub(crate) fn export(options: ExportOptions) -> Result<(), Failure> {
    signals::stop(None)?;
    let rows = export::run(&ExportArgs {
        engine: options.engine,
        dir: options.dir,
        table: options.table,
        file: options.file.filter(|file| file.as_os_str() != "-"),
        header: !options.no_header,
        delimiter: options.delimiter,
        null: options.null,
    })?;
    tell!("exported {rows} rows");
    Ok(())
}
