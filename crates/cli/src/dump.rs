//! `highwater dump` and `highwater load`: a whole database as one stream, and back.
//!
//! Rules
//! 1. The database is only read by `dump`; if it was not closed, it is recovered in memory; if another process has it
//!    open, that process dumps it (`source.rs`).
//! 2. A dump file appears whole or not at all. A dump in a pipe may end early; a load refuses an incomplete dump. A
//!    dump is not written to a terminal.
//! 3. The head of a dump is read before a load creates its database. A failed load removes the database that it
//!    created.
//! 4. The next load drops the tables of a killed one (named `highwater_load/N`), and reports that.

use crate::engine_options::EngineOptions;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::source::Source;
use crate::{fresh, signals};
use clap::Args;
use highwater::{Database, Dump, DumpReport, UNFINISHED_LOAD};
use highwater_bench::interrupt;
use highwater_storage::OutputFile;
use std::fs::File;
use std::io::{BufReader, BufWriter, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

const DUMP_EXAMPLES: &str = "\
Examples:
  highwater dump /srv/shop shop.hwdump
  highwater dump /srv/shop | ssh other.example highwater load - /srv/shop

A dump has every table with its indexes, attachment and numbers, and the rows of one snapshot; also of a database that
another process has open. docs/format.md describes the format and promises that every later version reads it.
A dump is plain, of an encrypted database (--key-file) too: send it through a program that encrypts it.";

const LOAD_EXAMPLES: &str = "\
Examples:
  highwater load shop.hwdump /srv/shop
  highwater load - /srv/shop --page-size 4096

A new database gets the page size of the dumped one. Into a database that is there only tables are loaded whose
names are not in use. If the dump is damaged or cut off, nothing is loaded.";

/// Bytes that are read or written at once.
const BUFFER_BYTES: usize = 1 << 18;

/// Write a whole database as one stream
#[derive(Args, Debug)]
#[command(after_help = DUMP_EXAMPLES)]
pub(crate) struct DumpArgs {
    /// Folder of the database
    dir: PathBuf,
    /// File to write [default: stdout]
    file: Option<PathBuf>,
    #[command(flatten)]
    engine: EngineOptions,
}

/// Load a database from a dump
#[derive(Args, Debug)]
#[command(after_help = LOAD_EXAMPLES)]
pub(crate) struct LoadArgs {
    /// The dump; - = stdin
    file: PathBuf,
    /// Folder of the database; created if it is missing
    dir: PathBuf,
    #[command(flatten)]
    engine: EngineOptions,
}

/// Runs `dump`.
///
/// # Errors
/// [`Failure::Usage`] if there is no such database, or stdout is a terminal; those of the engine and the output.
pub(crate) fn dump(args: &DumpArgs) -> Result<(), Failure> {
    signals::stop(None)?;
    let file = args.file.as_deref().filter(|file| file.as_os_str() != "-");
    if file.is_none() && std::io::stdout().is_terminal() {
        return Err(Failure::Usage("a dump is not text: name a file for it, or send it into a pipe".to_string()));
    }
    let source = Source::of(&args.dir, args.engine.open_read_only(&args.dir))?;
    let written = match file {
        Some(path) => dump_to_file(&source, path),
        None => dump_to(&source, &mut std::io::stdout().lock()),
    };
    let closed = source.close();
    let report = written?;
    closed?;
    tell!("dumped {}", summary(&report));
    Ok(())
}

fn dump_to_file(source: &Source, path: &Path) -> Result<DumpReport, Failure> {
    let failed = |error| Failure::Failed(format!("{}: {error}", path.display()));
    let mut file = OutputFile::create(path).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
    let report = dump_to(source, &mut file)?;
    file.finish().map_err(failed)?;
    Ok(report)
}

fn dump_to(source: &Source, out: &mut dyn Write) -> Result<DumpReport, Failure> {
    let (mut progress, mut written) = (None, 0);
    let out = BufWriter::with_capacity(BUFFER_BYTES, out);
    Ok(match source {
        Source::Own(db) => db.dump_with(Stoppable { stream: out, on_bytes: |_: usize| {} }, &mut |rows, about| {
            progress.get_or_insert_with(|| Progress::new("dumping", about)).at(rows, rows);
        })?,
        Source::Served { reader, .. } => {
            let on_bytes = |bytes: usize| {
                written += bytes as u64;
                let progress = progress.get_or_insert_with(|| Progress::new("dumping", 0).counting("bytes"));
                progress.at(written, written);
            };
            reader.dump(Stoppable { stream: out, on_bytes })?
        }
    })
}

/// Runs `load`.
///
/// # Errors
/// [`Failure::Usage`] if the dump cannot be opened or the database is in use; those of [`Dump`].
pub(crate) fn load(args: &LoadArgs) -> Result<(), Failure> {
    signals::stop(None)?;
    let (stream, bytes): (Box<dyn Read>, u64) = match args.file.as_os_str() == "-" {
        true => (Box::new(std::io::stdin()), 0),
        false => {
            let refuse = |error| Failure::Usage(format!("{}: {error}", args.file.display()));
            let file = File::open(&args.file).map_err(refuse)?;
            let bytes = file.metadata().map_or(0, |found| found.len());
            (Box::new(file), bytes)
        }
    };
    let (mut progress, mut passed) = (None, 0);
    let on_bytes = |read: usize| {
        passed += read as u64;
        progress.get_or_insert_with(|| Progress::new("loading", bytes).counting("bytes")).at(passed, passed);
    };
    let stream = Stoppable { stream: BufReader::with_capacity(BUFFER_BYTES, stream), on_bytes };
    let loaded = load_from(args, stream);
    drop(progress);
    match loaded {
        Ok(report) => {
            tell!("loaded {}", summary(&report));
            Ok(())
        }
        Err(Failure::Failed(what)) => Err(Failure::Failed(format!("{what}; nothing was loaded"))),
        Err(other) => Err(other),
    }
}

fn load_from(args: &LoadArgs, stream: impl Read) -> Result<DumpReport, Failure> {
    let dump = Dump::read(stream)?;
    let is_new = !args.dir.join("data").exists();
    let page_size = dump.page_bytes().to_string();
    let defaults: &[(&str, &str)] = if is_new { &[("page_size", &page_size)] } else { &[] };
    let db = args.engine.open(&args.dir, defaults, true)?;
    let loaded = drop_unfinished(&db).and_then(|()| Ok(dump.load_into(&db)?));
    let closed = db.close();
    if loaded.is_err() && is_new {
        fresh::remove(&args.dir, args.engine.options(&[])?.log_dir.as_deref())?;
        // It has other files, or is not this process's to remove.
        let _ = std::fs::remove_dir(&args.dir);
    }
    let report = loaded?;
    closed?;
    Ok(report)
}

/// Rule 4.
fn drop_unfinished(db: &Database) -> Result<(), Failure> {
    for table in db.tables().iter().filter(|table| table.name().starts_with(UNFINISHED_LOAD)) {
        tell!("table {} is what a load that was cut off left: it is dropped", table.name());
        db.drop_table(table.name())?;
    }
    Ok(())
}

fn summary(report: &DumpReport) -> String {
    let (rows, tables) = (report.rows(), report.tables.len());
    let plural = |count: u64| if count == 1 { "" } else { "s" };
    format!("{rows} row{} of {tables} table{}, {} bytes", plural(rows), plural(tables as u64), report.bytes)
}

/// A stream whose next call fails when a stop was requested.
struct Stoppable<S, F> {
    stream: S,
    on_bytes: F,
}

fn must_go_on() -> std::io::Result<()> {
    match interrupt::is_requested() {
        true => Err(std::io::Error::other("interrupted")),
        false => Ok(()),
    }
}

impl<S: Read, F: FnMut(usize)> Read for Stoppable<S, F> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        must_go_on()?;
        let read = self.stream.read(bytes)?;
        (self.on_bytes)(read);
        Ok(read)
    }
}

impl<S: Write, F: FnMut(usize)> Write for Stoppable<S, F> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        must_go_on()?;
        let written = self.stream.write(bytes)?;
        (self.on_bytes)(written);
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.stream.flush()
    }
}
