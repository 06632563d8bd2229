//! The CSV file: its header, and its records one after another.
//!
//! Rules
//! 1. A message names a record by the number of its first line, counted as an editor counts.
//! 2. A quote that is never closed is an error that names the line where it opens. So is a record longer than any row,
//!    which is not read to its end.

use super::quotes::{Quotes, Wrong};
use super::{CsvError, Format, ImportArgs, Result, json_lines};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

/// Names of the file's columns: from its first line, or `c1`, `c2` and so on.
pub(crate) struct Header {
    pub(super) names: Vec<String>,
    pub(super) from_file: bool,
}

fn open(args: &ImportArgs) -> Result<csv::Reader<Quotes<File>>> {
    let file = File::open(&args.file).map_err(|source| CsvError::File { path: args.shown(), source })?;
    let mut builder = csv::ReaderBuilder::new();
    builder.has_headers(false).flexible(true).delimiter(args.delimiter()).buffer_capacity(1 << 18);
    Ok(builder.from_reader(Quotes::new(file, args.delimiter())))
}

fn csv_error(args: &ImportArgs, error: csv::Error) -> CsvError {
    match error.into_kind() {
        csv::ErrorKind::Io(source) => CsvError::File { path: args.shown(), source },
        other => CsvError::Data(format!("{}: {other:?}", args.shown().display())),
    }
}

/// Reads the next record; false at the end. A record that ends the file inside a quote contains the rest of the file,
/// one without line ends too: both are errors.
fn next_record(args: &ImportArgs, file: &mut csv::Reader<Quotes<File>>, record: &mut csv::ByteRecord) -> Result<bool> {
    let read = file.read_byte_record(record);
    let (line, what) = match file.get_ref().wrong() {
        None => return read.map_err(|error| csv_error(args, error)),
        Some(Wrong::Unclosed(line)) => (line, "the quote that opens a field here is never closed"),
        Some(Wrong::TooLong(line)) => (line, "the record that begins here has no end within 64 MiB: no row is so long"),
        Some(Wrong::TooManyFields(line)) => (line, "the record that begins here has more fields than any table"),
    };
    Err(CsvError::Data(format!("{}: line {line}: {what}", args.shown().display())))
}

/// Reads the first line, if it names the columns, or counts its fields.
///
/// # Errors
/// [`CsvError::Data`] for an empty file or a name that is not a text, [`CsvError::File`].
pub(crate) fn read_header(args: &ImportArgs) -> Result<Header> {
    if args.format() == Format::Jsonl {
        return json_lines::read_header(args);
    }
    let mut file = open(args)?;
    let mut record = csv::ByteRecord::new();
    if !next_record(args, &mut file, &mut record)? {
        return Err(CsvError::Data(format!("{} is empty", args.shown().display())));
    }
    must_be_separated(args, &record)?;
    let names = if args.header {
        // A byte order mark is not part of a name.
        record.iter().enumerate().map(|(i, field)| column_name(args, i, field)).collect::<Result<_>>()?
    } else {
        (1..=record.len()).map(|i| format!("c{i}")).collect()
    };
    Ok(Header { names, from_file: args.header })
}

/// Refuses a file that seems to have another delimiter or to be JSON lines, unless the command line gives the
/// delimiter.
fn must_be_separated(args: &ImportArgs, first: &csv::ByteRecord) -> Result<()> {
    let start = first.get(0).unwrap_or_default();
    let file = args.shown();
    if args.format.is_none() && start.trim_ascii_start().starts_with(b"{") {
        let hint = "it begins as JSON lines do: add --format jsonl (or --format csv)";
        return Err(CsvError::Usage(format!("{}: {hint}", file.display())));
    }
    if args.delimiter.is_some() || first.len() > 1 {
        return Ok(());
    }
    for (other, written) in [(b';', "';'"), (b'\t', "tab"), (b'|', "'|'")] {
        let count = start.iter().filter(|byte| **byte == other).count();
        if count > 0 {
            let hint = format!("the first line would be one column, and has {written} in it {count} times");
            let options = format!("add --delimiter {written} (or --delimiter , if it is one column)");
            return Err(CsvError::Usage(format!("{}: {hint}: {options}", file.display())));
        }
    }
    Ok(())
}

/// The name of the file's column `i` (from 0).
fn column_name(args: &ImportArgs, i: usize, field: &[u8]) -> Result<String> {
    let wrong = |error: std::str::Utf8Error| {
        let (file, column, byte) = (args.shown(), i + 1, error.valid_up_to() + 1);
        let file = file.display();
        CsvError::Data(format!("{file}: line 1: the name of column {column} is not UTF-8 text (byte {byte} of it)"))
    };
    Ok(std::str::from_utf8(field).map_err(wrong)?.trim_start_matches('\u{feff}').trim().to_string())
}

/// The reader's place before it read a record, which may be before preceding line ends.
#[derive(Clone, Copy, Default)]
pub(super) struct Place {
    pub(super) line: u64,
    pub(super) byte: u64,
}

impl Place {
    /// Number of the record's first line. The reader counts neither the second byte of the line end before it nor empty
    /// lines.
    pub(super) fn line(self, args: &ImportArgs) -> u64 {
        let mut ends = Vec::new();
        let read = File::open(&args.file).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.byte))?;
            file.take(4096).read_to_end(&mut ends)
        });
        let ends = ends.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).filter(|byte| **byte == b'\n').count();
        if read.is_ok() { self.line + ends as u64 } else { self.line }
    }
}

/// The fields of a line.
#[derive(Debug, Default)]
pub(super) struct Record {
    pub(super) fields: csv::ByteRecord,
    /// For each field, whether it was written as a text; empty if the format does not say.
    pub(super) is_text: Vec<bool>,
    /// The error of a line that could not be parsed.
    pub(super) wrong: Option<String>,
}

/// Reads the file's data lines one by one; `visit` gets the record and where it begins.
pub(super) fn each_line(
    args: &ImportArgs,
    header: &Header,
    mut visit: impl FnMut(&Record, Place) -> Result<()>,
) -> Result<()> {
    if args.format() == Format::Jsonl {
        return json_lines::each_line(args, header, visit);
    }
    let mut file = open(args)?;
    let mut record = Record::default();
    let mut first = args.header;
    while next_record(args, &mut file, &mut record.fields)? {
        let place = record.fields.position().map_or(Place::default(), |p| Place { line: p.line(), byte: p.byte() });
        if !std::mem::take(&mut first) {
            visit(&record, place)?;
        }
    }
    Ok(())
}

pub(super) fn file_bytes(args: &ImportArgs) -> u64 {
    std::fs::metadata(&args.file).map_or(0, |m| m.len())
}
