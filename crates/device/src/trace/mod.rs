//! Traces: recorded requests, read in the order of their arrival.
//!
//! Formats, recognized by content:
//! - CSV: `time_us,op,lba,blocks` a line, lba and blocks in units of 4 KiB; op is R, W, D (discard) or F (flush). A
//!   first line that starts with a letter is a heading. See [`csv`].
//! - blktrace's binary output, per processor or merged. See [`blktrace`].
//! - fio's iolog, versions 2 and 3. See [`fio`].
//! - The CSV of the MSR Cambridge traces. See [`msr`].
//!
//! Each may be compressed with zstd. All but blktrace's are read line by line.
//!
//! Rules
//! 1. A malformed line or record is an error that names the file, the position and the text found.
//! 2. Addresses are not checked against the size of the device here; the replay does that.

pub mod blktrace;
pub mod csv;
pub mod fio;
pub mod msr;
pub mod ranges;
pub mod record;
mod text;

use crate::error::{DeviceError, Result};
use crate::model::Op;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// One recorded request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Time of its arrival, in nanoseconds since the start of the recording.
    pub time_ns: u64,
    /// The operation.
    pub op: Op,
    /// First 4 KiB block.
    pub lba: u64,
    /// Number of 4 KiB blocks.
    pub blocks: u64,
}

/// The format of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated text.
    Csv,
    /// blktrace's binary records.
    Blktrace,
    /// fio's iolog.
    FioLog,
    /// The CSV of the MSR Cambridge traces.
    MsrCambridge,
}

/// A trace on disk whose format is known.
#[derive(Clone, Debug)]
pub struct Trace {
    path: PathBuf,
    format: Format,
}

/// The events of a trace, in order of arrival.
pub struct Events {
    inner: Box<dyn Iterator<Item = Result<Event>>>,
    extent: Extent,
}

/// The size of a trace, of which a share has been read.
enum Extent {
    /// Bytes of the file read so far, and all of them.
    Bytes(Arc<AtomicU64>, u64),
    /// All events; they are in memory already.
    Events(usize),
}

impl Events {
    /// The share of the trace that has been read: 0 to 1.
    pub fn share(&self) -> f64 {
        let (read, all) = match &self.extent {
            Extent::Bytes(read, all) => (read.load(Ordering::Relaxed) as f64, *all as f64),
            Extent::Events(all) => ((all - self.inner.size_hint().0.min(*all)) as f64, *all as f64),
        };
        if all > 0.0 { (read / all).min(1.0) } else { 1.0 }
    }
}

impl Iterator for Events {
    type Item = Result<Event>;

    #[inline]
    fn next(&mut self) -> Option<Result<Event>> {
        self.inner.next()
    }
}

impl Trace {
    /// Reads the first bytes to recognize the format: those of the file, or if it is empty those of another
    /// processor's.
    pub fn open(path: impl Into<PathBuf>) -> Result<Trace> {
        let path = path.into();
        let mut start = first_bytes(&path)?;
        for other in blktrace::siblings(&path)? {
            if start.is_empty() {
                start = first_bytes(&other)?;
            }
        }
        let format = match &*start {
            start if blktrace::is_magic(start) => Format::Blktrace,
            start if fio::is_start(start) => Format::FioLog,
            start if msr::is_start(start) => Format::MsrCambridge,
            start => csv::check_start(start, &path).map(|()| Format::Csv)?,
        };
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
        match self.format {
            Format::Csv => self.text_events(csv::CsvTrace),
            Format::FioLog => self.text_events(fio::FioLog::look(&self.path)?),
            Format::MsrCambridge => self.text_events(msr::MsrTrace::default()),
            Format::Blktrace => {
                let events = blktrace::read_all(&self.path)?;
                Ok(Events { extent: Extent::Events(events.len()), inner: Box::new(events.into_iter().map(Ok)) })
            }
        }
    }

    fn text_events(&self, lines: impl text::Lines + 'static) -> Result<Events> {
        let file = open(&self.path)?;
        let all = file.metadata().map_err(|e| read_error(&self.path, e))?.len();
        let read = Arc::new(AtomicU64::new(0));
        let reader = decompressed(Counted { file, read: read.clone() }, &self.path)?;
        let inner = Box::new(text::TextEvents::new(reader, self.path.clone(), lines));
        Ok(Events { inner, extent: Extent::Bytes(read, all) })
    }
}

/// The start of a file's content.
fn first_bytes(path: &Path) -> Result<Vec<u8>> {
    let mut reader = plain_reader(path)?;
    Ok(reader.fill_buf().map_err(|e| read_error(path, e))?.to_vec())
}

/// The problem with an impossible recorded time: no recording lasts ten years, and sums of longer times would overflow.
fn impossible_time(time_ns: u64) -> Option<String> {
    const TEN_YEARS_NS: u64 = 10 * 366 * 86_400 * 1_000_000_000;
    (time_ns > TEN_YEARS_NS).then(|| format!("a time of {} s is more than ten years", time_ns / 1_000_000_000))
}

const ZSTD_MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

/// A file that counts the bytes read from it.
struct Counted {
    file: File,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let n = self.file.read(buf)?;
        self.read.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

fn open(path: &Path) -> Result<File> {
    File::open(path).map_err(|e| DeviceError::io(format!("opening {}", path.display()), e))
}

/// A reader of the file's content, decompressed if it is zstd.
pub(crate) fn plain_reader(path: &Path) -> Result<Box<dyn BufRead>> {
    decompressed(open(path)?, path)
}

fn decompressed(file: impl Read + 'static, path: &Path) -> Result<Box<dyn BufRead>> {
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let compressed = reader.fill_buf().map_err(|e| read_error(path, e))?.starts_with(&ZSTD_MAGIC);
    if !compressed {
        return Ok(Box::new(reader));
    }
    let decoder = zstd::stream::read::Decoder::with_buffer(reader).map_err(|e| read_error(path, e))?;
    Ok(Box::new(BufReader::with_capacity(1 << 18, decoder)))
}

pub(crate) fn read_error(path: &Path, source: std::io::Error) -> DeviceError {
    // zstd has no kind of error of its own for a frame that does not end.
    let ends_early = source.kind() == std::io::ErrorKind::UnexpectedEof || source.to_string() == "incomplete frame";
    let why = if ends_early { ": the file is truncated" } else { "" };
    DeviceError::io(format!("reading {}{why}", path.display()), source)
}

/// Largest text that is read as a whole.
const TEXT_BYTES: u64 = 256 << 20;

/// All of a (small) file's text.
pub(crate) fn read_text(path: &Path) -> Result<String> {
    text_of(plain_reader(path)?, path, TEXT_BYTES)
}

fn text_of(reader: impl Read, path: &Path, max_bytes: u64) -> Result<String> {
    let mut text = String::new();
    let read = reader.take(max_bytes + 1).read_to_string(&mut text).map_err(|e| read_error(path, e))?;
    if read as u64 > max_bytes {
        let too_large = std::io::Error::other(format!("more than {max_bytes} bytes of text"));
        return Err(read_error(path, too_large));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A few bytes of a compressed file can be any amount of text.
    #[test]
    fn a_text_is_read_up_to_a_limit() {
        let read = |bytes| text_of(std::io::repeat(b'x').take(bytes), Path::new("x"), 100).map_err(|e| e.to_string());
        assert_eq!(read(100).unwrap().len(), 100);
        assert!(read(101).unwrap_err().contains("more than 100 bytes of text"));
    }
}
