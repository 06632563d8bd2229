//! `highwater import DIR TABLE FILE.csv`: rows of a CSV file into a table, new or old.
//!
//! How it goes
//! 1. The file is read once to check every line (and to guess types that were not given). With `--on-error stop`, the default, a bad
//!    line ends it here: nothing was changed.
//! 2. The file is read again and inserted, committing every `--commit-every` rows (0 = once, at the end). What only shows now (a
//!    duplicate key, a key too long) ends it too: a table made by this import is dropped again; rows already committed to a
//!    table that was there stay, and the message says up to which line.
//! 3. With `--on-error skip` bad lines are reported and left out; the exit status is 1 if there was one.
//! 4. Indexes that are not unique are built at the end, in a new table.
//!
//! Without `--primary-key` a new table gets a first column `row_id` that counts by itself.

use crate::csv_field::{Field, read_field, shortened};
use crate::csv_quotes::Quotes;
use crate::engine_options::EngineOptions;
use crate::infer::Guess;
use crate::progress::Progress;
use highwater::{Database, Error, Schema, Table, Type, ValueRef, WriteTxn};
use std::fmt;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

/// Name of the column that stands in for a missing primary key.
pub const ROW_ID: &str = "row_id";
/// Bad lines reported one by one; the rest is counted.
const REPORTED: u64 = 20;

/// What to do about a bad line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnError {
    /// Import nothing.
    Stop,
    /// Report it, leave it out, go on.
    Skip,
}

/// What to import, and how.
#[derive(Clone, Debug)]
pub struct ImportArgs {
    /// The database's folder.
    pub dir: PathBuf,
    /// The table.
    pub table: String,
    /// The CSV file.
    pub file: PathBuf,
    /// `name:type` or `name:type?` (nullable), for a new table. With a header line: any of its columns, by name; the others are
    /// guessed. Without: all columns, in order, or none.
    pub columns: Vec<String>,
    /// `a,b`: the primary key of a new table.
    pub primary_key: Option<String>,
    /// `name=a,b`: indexes of a new table.
    pub indexes: Vec<String>,
    /// `name=a,b`: unique indexes of a new table.
    pub unique: Vec<String>,
    /// Whether the first line names the columns.
    pub header: bool,
    /// Between fields.
    pub delimiter: u8,
    /// How NULL is written.
    pub null: String,
    /// Rows of one transaction; 0 = all.
    pub commit_every: u64,
    /// What to do about a bad line.
    pub on_error: OnError,
    /// The database's options.
    pub engine: EngineOptions,
}

/// What was imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The table.
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

/// Why import or export failed.
#[derive(Debug, thiserror::Error)]
pub enum CsvError {
    /// The command line asks for what cannot be (exit status 2).
    #[error("{0}")]
    Usage(String),
    /// A line of the file is wrong; the message names it (exit status 1).
    #[error("{0}")]
    Data(String),
    /// A file cannot be read or written (exit status 1).
    #[error("{path}: {source}")]
    File {
        /// Which file.
        path: PathBuf,
        /// The operating system's answer.
        source: std::io::Error,
    },
    /// The database refused.
    #[error(transparent)]
    Database(#[from] Error),
}

type Result<T> = std::result::Result<T, CsvError>;

/// A column of the file: where it goes and what it holds.
#[derive(Clone, Debug)]
struct Target {
    name: String,
    /// Position in the table.
    column: usize,
    ty: Type,
    nullable: bool,
}

/// Imports a file.
///
/// # Errors
/// See the top of this file.
pub fn run(args: &ImportArgs) -> Result<Imported> {
    // Before anything is created.
    let mut file = open(args)?;
    let header = read_header(args, &mut file)?;
    let db = args.engine.open(&args.dir, &[], true)?;
    let done = match db.table(&args.table) {
        Ok(table) => import_into(args, &db, &table, &header),
        Err(_) => import_new(args, &db, &header),
    };
    let closed = db.close();
    let done = done?;
    closed?;
    Ok(done)
}

fn import_into(args: &ImportArgs, db: &Database, table: &Table, header: &Header) -> Result<Imported> {
    let given =
        !args.columns.is_empty() || args.primary_key.is_some() || !args.indexes.is_empty() || !args.unique.is_empty();
    if given {
        let reason = format!("table {} exists: its columns and indexes are not given again", args.table);
        return Err(CsvError::Usage(reason));
    }
    let targets = existing_targets(table, header)?;
    if args.on_error == OnError::Stop {
        survey(args, &mut targets.iter().cloned().map(Known::Given).collect::<Vec<_>>())?;
    }
    insert_all(args, db, table, &targets, false)
}

fn import_new(args: &ImportArgs, db: &Database, header: &Header) -> Result<Imported> {
    let mut known = given_columns(args, header)?;
    if args.on_error == OnError::Stop || known.iter().any(|k| matches!(k, Known::Guessed(..))) {
        survey(args, &mut known)?;
    }
    let keys = args.primary_key.as_deref().map(split_list).unwrap_or_default();
    let shift = usize::from(keys.is_empty());
    let targets: Vec<Target> = known.iter().enumerate().map(|(i, known)| known.target(i + shift, &keys)).collect();
    let table = db.create_table(&args.table, schema(args, &targets, &keys)?)?;
    let done = insert_all(args, db, &table, &targets, true).and_then(|done| {
        for index in &args.indexes {
            let (name, columns) = parse_index(index)?;
            db.create_index(&args.table, name, &columns, false)?;
        }
        Ok(done)
    });
    if done.is_err() {
        db.drop_table(&args.table)?;
    }
    done
}

// ---- the file

/// Names of the file's columns: from its first line, or `c1`, `c2` and so on.
struct Header {
    names: Vec<String>,
    from_file: bool,
}

fn open(args: &ImportArgs) -> Result<csv::Reader<Quotes<File>>> {
    let file = File::open(&args.file).map_err(|source| CsvError::File { path: args.file.clone(), source })?;
    let mut builder = csv::ReaderBuilder::new();
    builder.has_headers(false).flexible(true).delimiter(args.delimiter).buffer_capacity(1 << 18);
    Ok(builder.from_reader(Quotes::new(file, args.delimiter)))
}

fn csv_error(args: &ImportArgs, error: csv::Error) -> CsvError {
    match error.into_kind() {
        csv::ErrorKind::Io(source) => CsvError::File { path: args.file.clone(), source },
        other => CsvError::Data(format!("{}: {other:?}", args.file.display())),
    }
}

/// Reads the next record; false at the end. A record that ends the file inside a quote has swallowed the rest of it: an error.
fn next_record(args: &ImportArgs, file: &mut csv::Reader<Quotes<File>>, record: &mut csv::ByteRecord) -> Result<bool> {
    let open = |line: u64| {
        CsvError::Data(format!(
            "{}: line {line}: the quote that opens a field here is never closed",
            args.file.display()
        ))
    };
    let read = file.read_byte_record(record);
    match file.get_ref().unclosed() {
        Some(line) => Err(open(line)),
        None => read.map_err(|error| csv_error(args, error)),
    }
}

fn read_header(args: &ImportArgs, file: &mut csv::Reader<Quotes<File>>) -> Result<Header> {
    let mut record = csv::ByteRecord::new();
    if !next_record(args, file, &mut record)? {
        return Err(CsvError::Data(format!("{} is empty", args.file.display())));
    }
    let names = if args.header {
        // A byte order mark is not part of a name.
        record.iter().enumerate().map(|(i, field)| column_name(args, i, field)).collect::<Result<_>>()?
    } else {
        (1..=record.len()).map(|i| format!("c{i}")).collect()
    };
    Ok(Header { names, from_file: args.header })
}

/// The name of the file's column `i` (from 0).
fn column_name(args: &ImportArgs, i: usize, field: &[u8]) -> Result<String> {
    let wrong = |error: std::str::Utf8Error| {
        let (file, column, byte) = (args.file.display(), i + 1, error.valid_up_to() + 1);
        CsvError::Data(format!("{file}: line 1: the name of column {column} is not UTF-8 text (byte {byte} of it)"))
    };
    Ok(std::str::from_utf8(field).map_err(wrong)?.trim_start_matches('\u{feff}').trim().to_string())
}

/// Where the reader was before it read a record: up to the line ends before it.
#[derive(Clone, Copy, Default)]
struct Place {
    line: u64,
    byte: u64,
}

impl Place {
    /// Number of the record's first line. The reader counts neither the second byte of the line end before it nor empty lines.
    fn line(self, args: &ImportArgs) -> u64 {
        let mut ends = Vec::new();
        let read = File::open(&args.file).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.byte))?;
            file.take(4096).read_to_end(&mut ends)
        });
        let ends = ends.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).filter(|byte| **byte == b'\n').count();
        if read.is_ok() { self.line + ends as u64 } else { self.line }
    }
}

/// Reads the file's data lines one by one; `visit` gets the record and where it begins.
fn each_line(args: &ImportArgs, mut visit: impl FnMut(&csv::ByteRecord, Place) -> Result<()>) -> Result<()> {
    let mut file = open(args)?;
    let mut record = csv::ByteRecord::new();
    let mut first = args.header;
    while next_record(args, &mut file, &mut record)? {
        let place = record.position().map_or(Place::default(), |p| Place { line: p.line(), byte: p.byte() });
        if !std::mem::take(&mut first) {
            visit(&record, place)?;
        }
    }
    Ok(())
}

fn file_bytes(args: &ImportArgs) -> u64 {
    std::fs::metadata(&args.file).map_or(0, |m| m.len())
}

// ---- columns

/// A column of the file before the first reading is done.
enum Known {
    Given(Target),
    Guessed(String, Guess),
}

impl Known {
    fn name(&self) -> &str {
        match self {
            Known::Given(target) => &target.name,
            Known::Guessed(name, _) => name,
        }
    }

    fn target(&self, column: usize, keys: &[&str]) -> Target {
        match self {
            Known::Given(target) => Target { column, ..target.clone() },
            Known::Guessed(name, guess) => {
                let (ty, nullable) = guess.result();
                let nullable = nullable && !keys.contains(&name.as_str());
                Target { name: name.clone(), column, ty, nullable }
            }
        }
    }

    /// Checks one field against the type, or learns from it.
    fn see(&mut self, field: &[u8], null: &str) -> std::result::Result<(), String> {
        match self {
            Known::Given(target) => target.read(field, null).map(drop),
            Known::Guessed(_, guess) => {
                guess.see(std::str::from_utf8(field).map_err(|_| "the field is not UTF-8 text".to_string())?, null);
                Ok(())
            }
        }
    }
}

impl Target {
    fn read<'f>(&self, field: &'f [u8], null: &str) -> std::result::Result<Field<'f>, String> {
        let value = read_field(field, self.ty, null)?;
        let too_long = |len: usize, max: u32| format!("{len} bytes are longer than the {max} allowed");
        match (value.value(), self.ty) {
            (ValueRef::Null, _) if !self.nullable => Err("NULL in a column that is never NULL".to_string()),
            (ValueRef::Text(text), Type::Text(max)) if text.len() > max as usize => Err(too_long(text.len(), max)),
            (ValueRef::Bytes(bytes), Type::Binary(max)) if bytes.len() > max as usize => {
                Err(too_long(bytes.len(), max))
            }
            (ValueRef::Int(_) | ValueRef::UInt(_), ty) => match ty.integer_range() {
                Some((low, high)) if !(low..=high).contains(&integer(value.value())) => {
                    Err(format!("{} does not fit type {ty}", value.value()))
                }
                _ => Ok(value),
            },
            (ValueRef::Decimal(d), Type::Decimal(precision, scale)) => match d.rescale(scale) {
                Some(d) if d.unscaled().unsigned_abs() < 10u128.pow(precision.into()) => Ok(value),
                _ => Err(format!("{d} does not fit type {}", self.ty)),
            },
            _ => Ok(value),
        }
    }
}

fn integer(value: ValueRef<'_>) -> i128 {
    match value {
        ValueRef::Int(n) => n.into(),
        ValueRef::UInt(n) => n.into(),
        _ => 0,
    }
}

/// The file's columns for a new table: as given on the command line, the rest to be guessed.
fn given_columns(args: &ImportArgs, header: &Header) -> Result<Vec<Known>> {
    let given = args.columns.iter().map(|column| parse_column(column)).collect::<Result<Vec<Target>>>()?;
    if !header.from_file && !given.is_empty() {
        if given.len() != header.names.len() {
            let reason = format!("{} columns given, but the first line has {} fields", given.len(), header.names.len());
            return Err(CsvError::Usage(reason));
        }
        return Ok(given.into_iter().map(Known::Given).collect());
    }
    if let Some(unknown) = given.iter().find(|column| !header.names.contains(&column.name)) {
        return Err(CsvError::Usage(format!("the file has no column {}", unknown.name)));
    }
    let known = |name: &String| match given.iter().find(|column| column.name == *name) {
        Some(column) => Known::Given(column.clone()),
        None => Known::Guessed(name.clone(), Guess::default()),
    };
    Ok(header.names.iter().map(known).collect())
}

/// The file's columns for a table that is there: by name, or by position if the file has no header.
fn existing_targets(table: &Table, header: &Header) -> Result<Vec<Target>> {
    let columns = table.columns();
    if !header.from_file && header.names.len() != columns.len() {
        let (fields, columns) = (header.names.len(), columns.len());
        return Err(CsvError::Data(format!(
            "the first line has {fields} fields, table {} has {columns} columns",
            table.name()
        )));
    }
    let counting = table.definition().auto_increment;
    let target = |(i, name): (usize, &String)| {
        let column = if header.from_file { table.column(name)? } else { i };
        let found = &columns[column];
        let nullable = found.nullable || counting == Some(column);
        Ok(Target { name: found.name.clone(), column, ty: found.ty, nullable })
    };
    let targets = header.names.iter().enumerate().map(target).collect::<Result<Vec<Target>>>()?;
    for (position, column) in columns.iter().enumerate() {
        let named = targets.iter().filter(|target| target.column == position).count();
        if named > 1 {
            return Err(CsvError::Data(format!("the file has two columns {}", column.name)));
        }
        if named == 0 && !column.nullable && counting != Some(position) {
            return Err(CsvError::Data(format!("the file has no column {}, which is never NULL", column.name)));
        }
    }
    Ok(targets)
}

fn parse_column(text: &str) -> Result<Target> {
    let wrong = |reason: String| CsvError::Usage(format!("--column {text}: {reason}"));
    let (name, ty) = text.rsplit_once(':').ok_or_else(|| wrong("write NAME:TYPE or NAME:TYPE?".to_string()))?;
    let (ty, nullable) = ty.strip_suffix('?').map_or((ty, false), |ty| (ty, true));
    Ok(Target { name: name.to_string(), column: 0, ty: ty.parse().map_err(wrong)?, nullable })
}

fn parse_index(text: &str) -> Result<(&str, Vec<&str>)> {
    let (name, columns) =
        text.split_once('=').ok_or_else(|| CsvError::Usage(format!("index {text}: write NAME=COLUMN,COLUMN")))?;
    Ok((name, split_list(columns)))
}

fn split_list(text: &str) -> Vec<&str> {
    text.split(',').map(str::trim).collect()
}

/// The new table with its unique indexes; the others are checked here and built after the rows.
fn schema(args: &ImportArgs, targets: &[Target], keys: &[&str]) -> Result<Schema> {
    let mut schema = Schema::new();
    if keys.is_empty() {
        if targets.iter().any(|target| target.name == ROW_ID) {
            let reason = format!("the file has a column {ROW_ID} itself: name a primary key with --primary-key");
            return Err(CsvError::Usage(reason));
        }
        schema = schema.column(ROW_ID, Type::U64).auto_increment(ROW_ID);
    }
    for target in targets {
        schema = match target.nullable {
            true => schema.nullable(&target.name, target.ty),
            false => schema.column(&target.name, target.ty),
        };
    }
    schema = schema.primary_key(if keys.is_empty() { &[ROW_ID] } else { keys });
    for index in &args.unique {
        let (name, columns) = parse_index(index)?;
        schema = schema.unique_index(name, &columns);
    }
    let mut whole = schema.clone();
    for index in &args.indexes {
        let (name, columns) = parse_index(index)?;
        whole = whole.index(name, &columns);
    }
    whole.check(&args.table).map_err(|error| CsvError::Usage(error.to_string()))?;
    Ok(schema)
}

// ---- first reading

/// Reads the whole file: checks fields of given types, learns about the others. With `OnError::Stop` a bad line is an error.
fn survey(args: &ImportArgs, columns: &mut [Known]) -> Result<()> {
    let mut progress = Progress::new("checking", file_bytes(args));
    let (mut rows, mut bad) = (0u64, BadLines::default());
    each_line(args, |record, place| {
        rows += 1;
        if rows.is_multiple_of(1024) {
            progress.at(place.byte, rows);
        }
        if let Err(reason) = check_line(columns, record, &args.null)
            && args.on_error == OnError::Stop
        {
            bad.report(args, &progress, place, &reason);
        }
        Ok(())
    })?;
    match bad.count {
        0 => Ok(()),
        count => Err(CsvError::Data(format!("{count} bad lines in {}; nothing was imported", args.file.display()))),
    }
}

fn check_line(columns: &mut [Known], record: &csv::ByteRecord, null: &str) -> std::result::Result<(), String> {
    check_count(columns.len(), record)?;
    for (known, field) in columns.iter_mut().zip(record) {
        known.see(field, null).map_err(|reason| format!("column {}: {reason}", known.name()))?;
    }
    Ok(())
}

fn check_count(columns: usize, record: &csv::ByteRecord) -> std::result::Result<(), String> {
    if record.len() == columns {
        return Ok(());
    }
    let start = String::from_utf8_lossy(record.get(0).unwrap_or_default()).into_owned();
    Err(format!("{} fields instead of {columns} (the first is {:?})", record.len(), shortened(&start)))
}

/// Counts bad lines and reports the first of them.
#[derive(Default)]
struct BadLines {
    count: u64,
}

impl BadLines {
    fn report(&mut self, args: &ImportArgs, progress: &Progress, place: Place, reason: &str) {
        self.count += 1;
        if self.count <= REPORTED {
            progress.line(&format!("line {}: {reason}", place.line(args)));
        } else if self.count == REPORTED + 1 {
            progress.line("more bad lines follow");
        }
    }
}

// ---- second reading

fn insert_all(args: &ImportArgs, db: &Database, table: &Table, targets: &[Target], is_new: bool) -> Result<Imported> {
    let mut progress = Progress::new("importing", file_bytes(args));
    let mut bad = BadLines::default();
    let mut load = Load { args, db, table, txn: Some(db.begin()?), rows: 0, committed: 0, last: Place::default() };
    each_line(args, |record, place| {
        match load.insert(targets, record)? {
            Ok(()) => {}
            Err(reason) if args.on_error == OnError::Skip => bad.report(args, &progress, place, &reason),
            Err(reason) => return Err(load.stopped(place, &reason, is_new)),
        }
        if args.commit_every > 0 && load.rows - load.committed >= args.commit_every {
            load.commit(place)?;
        }
        if load.rows.is_multiple_of(1024) {
            progress.at(place.byte, load.rows);
        }
        Ok(())
    })?;
    load.commit(Place::default())?;
    Ok(Imported { table: args.table.clone(), rows: load.rows, skipped: bad.count })
}

/// Rows on their way into the table.
struct Load<'a> {
    args: &'a ImportArgs,
    db: &'a Database,
    table: &'a Table,
    txn: Option<WriteTxn>,
    rows: u64,
    committed: u64,
    /// The last line committed.
    last: Place,
}

impl Load<'_> {
    /// Inserts a line. The inner error is the line's fault.
    fn insert(&mut self, targets: &[Target], record: &csv::ByteRecord) -> Result<std::result::Result<(), String>> {
        let txn = match &mut self.txn {
            Some(txn) => txn,
            none => none.insert(self.db.begin()?),
        };
        let fields = match read_line(targets, record, &self.args.null) {
            Ok(fields) => fields,
            Err(reason) => return Ok(Err(reason)),
        };
        let mut values = vec![ValueRef::Null; self.table.columns().len()];
        for (target, field) in targets.iter().zip(&fields) {
            values[target.column] = field.value();
        }
        match txn.insert(self.table, &values) {
            Ok(_) => {
                self.rows += 1;
                Ok(Ok(()))
            }
            Err(
                error @ (Error::DuplicateKey { .. }
                | Error::BadValue { .. }
                | Error::KeyTooLong { .. }
                | Error::RowTooLarge { .. }),
            ) => Ok(Err(error.to_string())),
            Err(error) => Err(error.into()),
        }
    }

    fn commit(&mut self, place: Place) -> Result<()> {
        if let Some(txn) = self.txn.take() {
            txn.commit()?;
        }
        self.committed = self.rows;
        self.last = place;
        Ok(())
    }

    fn stopped(&mut self, place: Place, reason: &str, is_new: bool) -> CsvError {
        self.txn = None;
        let kept = match self.committed {
            0 => "nothing was imported".to_string(),
            _ if is_new => "nothing was imported".to_string(),
            rows => format!("the {rows} rows up to line {} were imported", self.last.line(self.args)),
        };
        CsvError::Data(format!("line {}: {reason}; {kept}", place.line(self.args)))
    }
}

fn read_line<'r>(
    targets: &[Target],
    record: &'r csv::ByteRecord,
    null: &str,
) -> std::result::Result<Vec<Field<'r>>, String> {
    check_count(targets.len(), record)?;
    let read = |(target, field): (&Target, &'r [u8])| {
        target.read(field, null).map_err(|reason| format!("column {}: {reason}", target.name))
    };
    targets.iter().zip(record).map(read).collect()
}

#[cfg(test)]
#[path = "import_test.rs"]
mod tests;
