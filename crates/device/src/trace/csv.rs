//! The CSV trace format: `time_us,op,lba,blocks`. The first line may be a heading: it begins with a letter and has four
//! fields or more.

use super::Event;
use super::text::{Lines, number};
use crate::error::{DeviceError, Result};
use crate::model::Op;
use std::path::Path;

/// The lines of a trace in the CSV format.
pub struct CsvTrace;

impl Lines for CsvTrace {
    fn event(&mut self, line: &[u8], number_of_line: u64) -> std::result::Result<Option<Event>, String> {
        if number_of_line == 1 && is_heading(line) { Ok(None) } else { parse(line).map(Some) }
    }

    fn is_whole_without_end(&self, event: &Event) -> bool {
        event.op == Op::Flush
    }
}

fn is_heading(line: &[u8]) -> bool {
    line.first().is_some_and(u8::is_ascii_alphabetic) && commas(line) >= 3
}

fn commas(line: &[u8]) -> usize {
    line.iter().filter(|b| **b == b',').count()
}

/// Whether a file that begins with these bytes can be a trace in the CSV format. A first line with commas is treated as
/// damaged, and the damage is reported.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::text::TextEvents;
    use std::io::Cursor;

    fn read(text: &'static str) -> Result<Vec<Event>> {
        TextEvents::new(Box::new(Cursor::new(text)), "t.csv".into(), CsvTrace).collect()
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
            assert!(start(foreign).unwrap_err().contains("is not a trace: neither CSV"), "{foreign:?}");
        }
        assert!(start(b"1,X,2,3\n").unwrap_err().contains("line or record 1: op \"X\""));
        assert!(start(b"\n1,R,2\n").unwrap_err().contains("line or record 2: no field \"blocks\""));
    }
}
