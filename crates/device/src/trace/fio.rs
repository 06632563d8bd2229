//! Traces in fio's iolog format, versions 2 and 3, which `--write_iolog` writes. The first line is `fio version N
//! iolog`; each other line is `FILE ACTION [OFFSET LENGTH]`, in version 3 with a time in microseconds before it.
//! Offsets and lengths are in bytes.
//!
//! Rules
//! 1. read, write and trim are requests; sync and its variants are flushes; add, open, close and unlink are ignored.
//! 2. In version 2 only `wait` advances the time, by its offset in microseconds.
//! 3. The files are placed on the device in the order of their first mention, each at a multiple of 1 MiB. A first pass
//!    over the log finds the length of each file.
//! 4. A request that is not aligned to 4 KiB covers every block that it touches.

use super::text::{Lines, TextEvents, blocks_of, number};
use super::{Event, impossible_time, plain_reader};
use crate::error::{DeviceError, Result};
use crate::model::Op;
use std::path::Path;

const HEAD: &[u8] = b"fio version ";
/// Alignment of a file's first block: 1 MiB.
const ALIGN_BLOCKS: u64 = 256;

/// Whether a file that begins with these bytes is an iolog.
pub fn is_start(start: &[u8]) -> bool {
    start.starts_with(HEAD)
}

/// A file that the log names.
#[derive(Clone, Debug, PartialEq, Eq)]
struct File {
    name: Vec<u8>,
    first_block: u64,
    /// Blocks up to the end of the last request.
    blocks: u64,
}

/// The lines of an iolog.
#[derive(Clone, Debug, Default)]
pub struct FioLog {
    version: u64,
    time_us: u64,
    files: Vec<File>,
    /// Index of the previous line's file, which is usually the next line's file too.
    last: usize,
}

impl FioLog {
    /// Reads the log once, to place its files on the device.
    ///
    /// # Errors
    /// [`DeviceError::Io`], and [`DeviceError::Trace`] names the first line that is wrong.
    pub fn look(path: &Path) -> Result<FioLog> {
        let mut events = TextEvents::new(plain_reader(path)?, path.into(), FioLog::default());
        events.by_ref().try_for_each(|event| event.map(drop))?;
        let mut files = events.into_lines().files;
        let mut next = 0_u64;
        for file in &mut files {
            file.first_block = next;
            next = next.saturating_add(file.blocks.next_multiple_of(ALIGN_BLOCKS));
        }
        if files.is_empty() {
            return Err(DeviceError::Trace { path: path.into(), at: 1, what: "an iolog without a request".into() });
        }
        Ok(FioLog { files, ..FioLog::default() })
    }

    /// The file of this name; a file that is named for the first time is added, with first block 0.
    fn file(&mut self, name: &[u8]) -> &mut File {
        if self.files.get(self.last).is_none_or(|file| file.name != name) {
            let known = self.files.iter().position(|file| file.name == name);
            self.last = known.unwrap_or(self.files.len());
        }
        if self.last == self.files.len() {
            self.files.push(File { name: name.to_vec(), first_block: 0, blocks: 0 });
        }
        &mut self.files[self.last]
    }

    fn head(&mut self, line: &[u8]) -> std::result::Result<(), String> {
        let version = line.strip_prefix(HEAD).and_then(|rest| rest.strip_suffix(b" iolog"));
        self.version = match version {
            Some(b"2") => 2,
            Some(b"3") => 3,
            _ => {
                let found = line.escape_ascii();
                return Err(format!("\"{found}\": fio's iolog is read in versions 2 and 3"));
            }
        };
        Ok(())
    }

    fn request(&mut self, op: Op, name: &[u8], place: [u64; 2]) -> std::result::Result<Event, String> {
        let time_ns = self.time_us.saturating_mul(1000);
        if let Some(what) = impossible_time(time_ns) {
            return Err(what);
        }
        if op == Op::Flush {
            return Ok(Event { time_ns, op, lba: 0, blocks: 0 });
        }
        let (block, blocks) = blocks_of(place[0], place[1])?;
        let file = self.file(name);
        file.blocks = file.blocks.max(block + blocks);
        Ok(Event { time_ns, op, lba: file.first_block.saturating_add(block), blocks })
    }
}

impl Lines for FioLog {
    fn event(&mut self, line: &[u8], number_of_line: u64) -> std::result::Result<Option<Event>, String> {
        if number_of_line == 1 {
            return self.head(line).map(|()| None);
        }
        let mut fields = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
        let mut field =
            |name| fields.next().ok_or_else(|| format!("no field \"{name}\" in \"{}\"", line.escape_ascii()));
        if self.version == 3 {
            self.time_us = number(field("timestamp")?, "timestamp")?;
        }
        let (name, action) = (field("filename")?, field("action")?);
        let op = match action {
            b"read" => Op::Read,
            b"write" => Op::Write,
            b"trim" => Op::Discard,
            b"sync" | b"datasync" | b"sync_file_range" | b"syncfs" => Op::Flush,
            b"add" | b"open" | b"close" | b"unlink" => return Ok(None),
            b"wait" if self.version == 2 => {
                self.time_us = self.time_us.saturating_add(number(field("offset")?, "offset")?);
                return Ok(None);
            }
            other => {
                let other = other.escape_ascii();
                return Err(format!(
                    "action \"{other}\" is not one of read, write, trim, sync, datasync, sync_file_range, syncfs, add, \
                     open, close, unlink, and wait in version 2"
                ));
            }
        };
        let place = match op {
            Op::Flush => [0, 0],
            _ => [number(field("offset")?, "offset")?, number(field("length")?, "length")?],
        };
        self.request(op, name, place).map(Some)
    }

    fn is_whole_without_end(&self, event: &Event) -> bool {
        event.op == Op::Flush
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Format, Trace};

    fn read(text: &str) -> Result<Vec<Event>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.log");
        std::fs::write(&path, text).unwrap();
        let trace = Trace::open(&path)?;
        assert_eq!(trace.format(), Format::FioLog);
        trace.events()?.collect()
    }

    fn event(time_us: u64, op: Op, lba: u64, blocks: u64) -> Event {
        Event { time_ns: time_us * 1000, op, lba, blocks }
    }

    #[test]
    fn version_3_has_times() {
        let text = "fio version 3 iolog\n2 /dev/vdb add\n872 /dev/vdb open\n878 /dev/vdb write 0 16384\n\
                    888 /dev/vdb read 8192 4096\n891 /dev/vdb trim 1048576 8192\n900 /dev/vdb datasync 0 0\n\
                    901 /dev/vdb sync\n10001677 /dev/vdb close\n";
        let expected = [
            event(878, Op::Write, 0, 4),
            event(888, Op::Read, 2, 1),
            event(891, Op::Discard, 256, 2),
            event(900, Op::Flush, 0, 0),
            event(901, Op::Flush, 0, 0),
        ];
        assert_eq!(read(text).unwrap(), expected);
    }

    #[test]
    fn version_2_waits() {
        let text = "fio version 2 iolog\nf add\nf open\nf write 100 5000\nf wait 250 0\nf write 4096 4096\nf wait 250\n\
                    f read 0 1\nf close\n";
        let expected = [event(0, Op::Write, 0, 2), event(250, Op::Write, 1, 1), event(500, Op::Read, 0, 1)];
        assert_eq!(read(text).unwrap(), expected);
    }

    #[test]
    fn files_lie_one_after_the_other() {
        let text = "fio version 2 iolog\na add\nb add\na write 0 4096\nb write 8192 4096\na write 1048576 4096\n\
                    c write 0 4096\nb read 0 4096\n";
        let places: Vec<u64> = read(text).unwrap().iter().map(|event| event.lba).collect();
        assert_eq!(places, [0, 512 + 2, 256, 768, 512]);
    }

    #[test]
    fn each_kind_of_damage_is_named_with_its_line() {
        for (text, message) in [
            (
                "fio version 1 iolog\n",
                "line or record 1: \"fio version 1 iolog\": fio's iolog is read in versions 2 and 3",
            ),
            ("fio version 3 iolog\n1 f write 0\n", "line or record 2: no field \"length\""),
            ("fio version 3 iolog\nf write 0 4096\n", "timestamp \"f\" is not a number"),
            ("fio version 3 iolog\n1 f wait 5 0\n", "action \"wait\" is not one of"),
            ("fio version 2 iolog\nf erase 0 4096\n", "action \"erase\" is not one of read, write"),
            ("fio version 2 iolog\nf write -1 4096\n", "offset \"-1\" is not a number"),
            ("fio version 2 iolog\nf write 0 0\n", "0 bytes"),
            ("fio version 2 iolog\nf write 0 40", "truncated"),
            ("fio version 3 iolog\n999999999999999999 f read 0 1\n", "more than ten years"),
            ("fio version 2 iolog\nf add\n", "without a request"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(message), "{text:?}: {error}");
        }
    }
}
