//! The CSV trace format: `time_us,op,lba,blocks`. The first line may be a heading: it begins with a letter and has four
//! fields or more.

use super::{Event, read_error};
use crate::error::{DeviceError, Result};
use crate::model::Op;
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

/// Longest line: four numbers, or a heading.
const LINE_BYTES: u64 = 4096;

/// Reads events from CSV text.
pub struct CsvEvents {
    reader: Box<dyn BufRead>,
    path: PathBuf,
    line: Vec<u8>,
    number: u64,
    failed: bool,
}

impl CsvEvents {
    /// Reads from `reader`; `path` is for messages.
    pub fn new(reader: Box<dyn BufRead>, path: PathBuf) -> CsvEvents {
        CsvEvents { reader, path, line: Vec::with_capacity(64), number: 0, failed: false }
    }

    fn next_line(&mut self) -> Result<Option<Event>> {
        loop {
            self.line.clear();
            let mut limited = self.reader.as_mut().take(LINE_BYTES);
            let read = limited.read_until(b'\n', &mut self.line).map_err(|e| read_error(&self.path, e))?;
            self.number += 1;
            if read as u64 == LINE_BYTES {
                return Err(self.error(format!("a line of {LINE_BYTES} bytes or more")));
            }
            if read == 0 {
                return Ok(None);
            }
            let text = self.line.trim_ascii();
            if text.is_empty() || self.number == 1 && is_heading(text) {
                continue;
            }
            return match parse(text) {
                Ok(event) if self.line.ends_with(b"\n") || event.op == Op::Flush => Ok(Some(event)),
                Ok(_) => Err(self.error("the last line does not end: the trace is truncated".into())),
                Err(what) => Err(self.error(what)),
            };
        }
    }

    fn error(&self, what: String) -> DeviceError {
        DeviceError::Trace { path: self.path.clone(), at: self.number, what }
    }
}

impl Iterator for CsvEvents {
    type Item = Result<Event>;

    fn next(&mut self) -> Option<Result<Event>> {
        if self.failed {
            return None;
        }
        let next = self.next_line().transpose();
        self.failed = matches!(next, Some(Err(_)));
        next
    }
}

fn is_heading(line: &[u8]) -> bool {
    line.first().is_some_and(u8::is_ascii_alphabetic) && commas(line) >= 3
}

fn commas(line: &[u8]) -> usize {
    line.iter().filter(|b| **b == b',').count()
}

/// Whether the start of a file can be such a trace. A first line with commas is taken for one that is damaged, and the
/// damage is named.
pub fn check_start(start: &[u8], path: &Path) -> Result<()> {
    let mut lines = start.split(|b| *b == b'\n').map(<[u8]>::trim_ascii).enumerate().filter(|(_, l)| !l.is_empty());
    let Some((number, first)) = lines.next() else { return Err(DeviceError::NotATrace { path: path.into() }) };
    match parse(first) {
        Ok(_) => Ok(()),
        Err(_) if number == 0 && is_heading(first) => Ok(()),
        Err(what) if commas(first) > 0 && first.is_ascii() => {
            Err(DeviceError::Trace { path: path.into(), at: number as u64 + 1, what })
        }
        Err(_) => Err(DeviceError::NotATrace { path: path.into() }),
    }
}

fn parse(line: &[u8]) -> std::result::Result<Event, String> {
    let mut fields = line.split(|b| *b == b',');
    let mut field = |name| fields.next().ok_or_else(|| format!("no field \"{name}\" in \"{}\"", line.escape_ascii()));
    let time_us = number(field("time_us")?, "time_us")?;
    let op = operation(field("op")?)?;
    let lba = number(field("lba")?, "lba")?;
    let blocks = number(field("blocks")?, "blocks")?;
    if fields.next().is_some() {
        return Err(format!("more than four fields in \"{}\"", line.escape_ascii()));
    }
    if blocks == 0 && op != Op::Flush {
        return Err("a request of 0 blocks".into());
    }
    let time_ns = time_us.saturating_mul(1000);
    if let Some(what) = super::impossible_time(time_ns) {
        return Err(what);
    }
    Ok(Event { time_ns, op, lba, blocks })
}

fn operation(field: &[u8]) -> std::result::Result<Op, String> {
    match field {
        b"W" => Ok(Op::Write),
        b"R" => Ok(Op::Read),
        b"D" => Ok(Op::Discard),
        b"F" => Ok(Op::Flush),
        other => Err(format!("op \"{}\" is not one of R, W, D, F", other.escape_ascii())),
    }
}

fn number(field: &[u8], name: &str) -> std::result::Result<u64, String> {
    let digits = !field.is_empty() && field.len() <= 18 && field.iter().all(u8::is_ascii_digit);
    if !digits {
        return Err(format!("{name} \"{}\" is not a number", field.escape_ascii()));
    }
    Ok(field.iter().fold(0, |n, digit| n * 10 + u64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn read(text: &'static str) -> Result<Vec<Event>> {
        CsvEvents::new(Box::new(Cursor::new(text)), "t.csv".into()).collect()
    }

    /// Such a line can be a few bytes of a compressed file.
    const LONG_LINE: &str = match str::from_utf8(&[b'1'; 5000]) {
        Ok(line) => line,
        Err(_) => "",
    };

    #[test]
    fn lines_become_events() {
        let events = read("time_us,op,lba,blocks\n7,R,100,4\n\n8,W,5,1\r\n9,F,0,0").unwrap();
        assert_eq!(events.len(), 3);
        assert_eq!(events[0], Event { time_ns: 7000, op: Op::Read, lba: 100, blocks: 4 });
        assert_eq!((events[1].op, events[2].op), (Op::Write, Op::Flush));
    }

    #[test]
    fn each_kind_of_damage_is_named_with_its_line() {
        for (text, message) in [
            ("1,R,2,3\n1,R,2\n", "line or record 2: no field \"blocks\""),
            ("1,R,2,3,4\n", "more than four fields"),
            ("1,X,2,3\n", "op \"X\""),
            ("1,R,-2,3\n", "lba \"-2\" is not a number"),
            ("1,R,2,99999999999999999999\n", "blocks \"99999999999999999999\" is not a number"),
            ("1,W,2,0\n", "0 blocks"),
            ("999999999999999999,W,2,1\n", "more than ten years"),
            ("1,R,2,3\n2,W,100,1", "truncated"),
            (LONG_LINE, "line or record 1: a line of 4096 bytes or more"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(message), "{text:?}: {error}");
        }
    }

    #[test]
    fn foreign_files_are_recognised() {
        let start = |text: &[u8]| check_start(text, Path::new("t.csv")).map_err(|e| e.to_string());
        start(b"14985933,R,134457,8\n1498").unwrap();
        start(b"time_us,op,lba,blocks\n").unwrap();
        start(b"Time,Operation,LBA,Blocks,Process\n").unwrap();
        for foreign in [&b"<html><body>"[..], b"\x7fELF\x02\x01", b"", b"\x89PNG,,,,", b"garbage"] {
            assert!(start(foreign).unwrap_err().contains("neither a CSV trace"), "{foreign:?}");
        }
        assert!(start(b"1,X,2,3\n").unwrap_err().contains("line or record 1: op \"X\""));
        assert!(start(b"\n1,R,2\n").unwrap_err().contains("line or record 2: no field \"blocks\""));
    }
}
