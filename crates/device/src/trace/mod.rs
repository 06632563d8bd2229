//! Traces: requests recorded elsewhere, read one after the other in order of arrival.
//!
//! Formats, told apart by content:
//! - CSV: `time_us,op,lba,blocks` a line, lba and blocks in units of 4 KiB; op is R, W, D (discard) or F (flush). A first line that starts
//!   with a letter is a heading. See [`csv`].
//! - blktrace's binary output, per processor or merged. See [`blktrace`].
//!
//! Either may be compressed with zstd.
//!
//! Rules
//! 1. A line or record that is not what it should be is an error that names the file, the place and what was found.
//! 2. Nothing here knows how large the device is; the replay checks addresses.

pub mod blktrace;
pub mod csv;
pub mod ranges;
pub mod record;

use crate::error::{DeviceError, Result};
use crate::model::Op;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// One recorded request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When it arrived, nanoseconds from a start of the recorder's choice.
    pub time_ns: u64,
    /// What it does.
    pub op: Op,
    /// First 4 KiB block.
    pub lba: u64,
    /// Number of 4 KiB blocks.
    pub blocks: u64,
}

/// How a trace is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated text.
    Csv,
    /// blktrace's binary records.
    Blktrace,
}

/// A trace on disk whose format is known.
#[derive(Clone, Debug)]
pub struct Trace {
    path: PathBuf,
    format: Format,
}

/// The events of a trace, in order of arrival.
pub type Events = Box<dyn Iterator<Item = Result<Event>>>;

impl Trace {
    /// Looks at the file's first bytes to tell its format.
    pub fn open(path: impl Into<PathBuf>) -> Result<Trace> {
        let path = path.into();
        let mut reader = plain_reader(&path)?;
        let start = reader.fill_buf().map_err(|e| read_error(&path, e))?;
        let format = if blktrace::is_magic(start) { Format::Blktrace } else { Format::Csv };
        if format == Format::Csv && !csv::looks_right(start) {
            let what = "neither a CSV trace (time_us,op,lba,blocks) nor blktrace output".into();
            return Err(DeviceError::Trace { path, at: 1, what });
        }
        Ok(Trace { path, format })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Reads from the start.
    pub fn events(&self) -> Result<Events> {
        Ok(match self.format {
            Format::Csv => Box::new(csv::CsvEvents::new(plain_reader(&self.path)?, self.path.clone())),
            Format::Blktrace => Box::new(blktrace::read_all(&self.path)?.into_iter().map(Ok)),
        })
    }
}

const ZSTD_MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

/// A reader of the file's content, decompressed if it is zstd.
pub(crate) fn plain_reader(path: &Path) -> Result<Box<dyn BufRead>> {
    let file = File::open(path).map_err(|e| DeviceError::io(format!("opening {}", path.display()), e))?;
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let compressed = reader.fill_buf().map_err(|e| read_error(path, e))?.starts_with(&ZSTD_MAGIC);
    if !compressed {
        return Ok(Box::new(reader));
    }
    let decoder = zstd::stream::read::Decoder::with_buffer(reader).map_err(|e| read_error(path, e))?;
    Ok(Box::new(BufReader::with_capacity(1 << 18, decoder)))
}

pub(crate) fn read_error(path: &Path, source: std::io::Error) -> DeviceError {
    DeviceError::io(format!("reading {}", path.display()), source)
}

/// All of a (small) file's text.
pub(crate) fn read_text(path: &Path) -> Result<String> {
    let mut text = String::new();
    plain_reader(path)?.read_to_string(&mut text).map_err(|e| read_error(path, e))?;
    Ok(text)
}
