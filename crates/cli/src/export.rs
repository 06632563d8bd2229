//! `highwater export DIR TABLE [FILE]`: a table as CSV (RFC 4180), in the order of its primary key, of one snapshot.
//!
//! Rules
//! 1. `import` reads the exported values back unchanged; NULL and empty text are distinct (`csv_field.rs`).
//! 2. A file appears whole or not at all; pipes and devices are written in place; a file of a database is refused
//!    ([`OutputFile`]). Without a file, rows go to stdout. If the reader of a pipe ends early, the export
//!    ends too, without an error.
//! 3. The database is only read, so it also works on a file system mounted read-only; if it was not closed, it is
//!    recovered in memory; if another process has it open, it is read through that process (`source.rs`).

use crate::csv_field::write_field;
use crate::engine_options::EngineOptions;
use crate::import::CsvError;
use crate::output::while_read;
use crate::progress::Progress;
use crate::source::{Range, Source};
use highwater_bench::interrupt;
use highwater_storage::OutputFile;
use std::io::{BufWriter, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// The arguments of an export.
#[derive(Clone, Debug)]
pub(crate) struct ExportArgs {
    /// The database's folder.
    pub dir: PathBuf,
    /// The table.
    pub table: String,
    /// The output file; `None`: stdout.
    pub file: Option<PathBuf>,
    /// Whether to write the columns' names first.
    pub header: bool,
    /// Between fields.
    pub delimiter: u8,
    /// Text that stands for NULL.
    pub null: String,
    /// The database's options.
    pub engine: EngineOptions,
}

/// Exports a table; returns the number of rows written.
///
/// # Errors
/// [`CsvError::Database`] if there is no such database or table, [`CsvError::File`] if the file cannot be written.
pub(crate) fn run(args: &ExportArgs) -> Result<u64, CsvError> {
    let source = Source::of(&args.dir, args.engine.open_read_only(&args.dir))?;
    let mut rows = 0;
    let written = match &args.file {
        Some(file) => write_file(args, &source, file, &mut rows),
        None => whole(write_rows(args, &source, std::io::stdout().lock(), &mut rows))
            .map(drop)
            .map_err(|error| error.at(Path::new("stdout"))),
    };
    let closed = source.close();
    written?;
    closed?;
    Ok(rows)
}

fn write_file(args: &ExportArgs, source: &Source, file: &Path, rows: &mut u64) -> Result<(), CsvError> {
    let failed = |source| CsvError::File { path: file.to_path_buf(), source };
    let mut out = OutputFile::create(file).map_err(failed)?;
    match whole(write_rows(args, source, &mut out, rows)).map_err(|error| error.at(file))? {
        true => out.finish().map_err(failed),
        false => Ok(()),
    }
}

/// Whether all rows were written; false if the reader of the output has ended.
fn whole(written: Result<(), WriteError>) -> Result<bool, WriteError> {
    match written {
        Err(WriteError::Output(error)) => while_read::<()>(Err(error)).map(|_| false).map_err(WriteError::Output),
        written => written.map(|()| true),
    }
}

/// A failure while rows are written.
#[derive(Debug)]
pub(crate) enum WriteError {
    Database(highwater::Error),
    /// Of what they are written to.
    Output(std::io::Error),
    /// A request to stop.
    Interrupted,
}

impl WriteError {
    fn at(self, path: &Path) -> CsvError {
        match self {
            WriteError::Database(error) => error.into(),
            WriteError::Output(source) => CsvError::File { path: path.to_path_buf(), source },
            WriteError::Interrupted => CsvError::Data("interrupted".into()),
        }
    }
}

impl From<highwater::Error> for WriteError {
    fn from(error: highwater::Error) -> WriteError {
        WriteError::Database(error)
    }
}

impl From<csv::Error> for WriteError {
    fn from(error: csv::Error) -> WriteError {
        WriteError::Output(match error.into_kind() {
            csv::ErrorKind::Io(error) => error,
            other => std::io::Error::other(format!("{other:?}")),
        })
    }
}

/// Writes the table of a database to `out`, and counts its rows in `rows`.
///
/// # Errors
/// The first failure.
pub(crate) fn write_rows(
    args: &ExportArgs,
    source: &Source,
    out: impl Write,
    rows: &mut u64,
) -> Result<(), WriteError> {
    let mut snapshot = source.snapshot()?;
    let definition = snapshot.table(&args.table)?.definition;
    let mut progress = Progress::new("exporting", 0);
    let mut builder = csv::WriterBuilder::new();
    builder.delimiter(args.delimiter).terminator(csv::Terminator::CRLF);
    let mut writer = builder.from_writer(BufWriter::with_capacity(1 << 18, out));
    if args.header {
        writer.write_record(definition.columns.iter().map(|column| &column.name))?;
    }
    let mut field = String::new();
    snapshot.each_row(&args.table, &Range::default(), &[], |row| {
        if interrupt::is_requested() {
            return Err(WriteError::Interrupted);
        }
        for value in row {
            write_field(value, &args.null, &mut field);
            writer.write_field(&field)?;
        }
        writer.write_record(None::<&[u8]>)?;
        *rows += 1;
        if rows.is_multiple_of(1024) {
            progress.at(*rows, *rows);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    writer.flush().map_err(WriteError::Output)
}
