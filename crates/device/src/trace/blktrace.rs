//! blktrace's binary output, as described by the kernel's `include/uapi/linux/blktrace_api.h`.
//!
//! A record is 48 bytes, then `pdu_len` bytes that are skipped:
//!
//! | bytes | field |
//! |---|---|
//! | 0..4 | magic 0x656174 in the upper three bytes, version 7 in the lowest |
//! | 4..8 | sequence |
//! | 8..16 | time, ns |
//! | 16..24 | sector (512 bytes) |
//! | 24..28 | bytes |
//! | 28..32 | action: event in the lowest byte, categories in the upper half |
//! | 32..44 | process, device, processor |
//! | 44..46, 46..48 | error, `pdu_len` |
//!
//! Rules
//! 1. The byte order is that of the recording machine; the magic number shows it.
//! 2. A request counts at its issue event; in a file without issue events it counts at its queue event.
//! 3. `NAME.blktrace.0` stands for all of `NAME.blktrace.*`: one file a processor, merged by time.
//! 4. A write that carries a flush (a queue event may) counts as a flush and a write.
//! 5. A request that is not aligned to 4 KiB covers every block that it touches.

use super::{Event, plain_reader, read_error};
use crate::error::{DeviceError, Result};
use crate::model::Op;
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

const MAGIC: u32 = 0x6561_7400;
const VERSION: u32 = 7;
const RECORD_BYTES: usize = 48;

const EVENT_QUEUE: u32 = 1;
const EVENT_ISSUE: u32 = 7;

const CATEGORY_WRITE: u32 = 1 << 1;
const CATEGORY_FLUSH: u32 = 1 << 2;
const CATEGORY_NOTIFY: u32 = 1 << 10;
const CATEGORY_DISCARD: u32 = 1 << 13;

/// Whether a file starts with a record's magic, in either byte order.
pub fn is_magic(start: &[u8]) -> bool {
    order_of(start).is_some()
}

#[derive(Clone, Copy, PartialEq)]
enum Order {
    Little,
    Big,
}

fn order_of(start: &[u8]) -> Option<Order> {
    let word: [u8; 4] = start.get(..4)?.try_into().ok()?;
    match (u32::from_le_bytes(word) & !0xFF == MAGIC, u32::from_be_bytes(word) & !0xFF == MAGIC) {
        (true, _) => Some(Order::Little),
        (_, true) => Some(Order::Big),
        _ => None,
    }
}

/// Reads a trace, and the files of its other processors, sorted by time.
pub fn read_all(path: &Path) -> Result<Vec<Event>> {
    let mut records = Vec::new();
    for file in siblings(path)? {
        read_file(&file, &mut records)?;
    }
    let issued = records.iter().any(|r| r.0 == EVENT_ISSUE);
    let wanted = if issued { EVENT_ISSUE } else { EVENT_QUEUE };
    let mut events: Vec<Event> = records.into_iter().filter(|r| r.0 == wanted).map(|r| r.1).collect();
    events.sort_by_key(|e| e.time_ns);
    Ok(events)
}

/// The files of all processors, if `path` is one of them; else only `path`.
pub(super) fn siblings(path: &Path) -> Result<Vec<PathBuf>> {
    let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("");
    let Some((stem, _)) = name.rsplit_once('.').filter(|(s, n)| s.ends_with(".blktrace") && n.parse::<u32>().is_ok())
    else {
        return Ok(vec![path.to_path_buf()]);
    };
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|e| read_error(folder, e))? {
        let entry = entry.map_err(|e| read_error(folder, e))?;
        let processor = entry.file_name().to_str().and_then(|n| Some(n.rsplit_once('.')?.0 == stem));
        let number = entry.file_name().to_str().and_then(|n| n.rsplit_once('.')?.1.parse::<u32>().ok());
        if let (Some(true), Some(number)) = (processor, number) {
            files.push((number, entry.path()));
        }
    }
    files.sort();
    Ok(files.into_iter().map(|f| f.1).collect())
}

fn read_file(path: &Path, records: &mut Vec<(u32, Event)>) -> Result<()> {
    let mut reader = plain_reader(path)?;
    let mut number = 0;
    while !reader.fill_buf().map_err(|e| read_error(path, e))?.is_empty() {
        number += 1;
        if let Some(record) = read_record(&mut reader, path, number)? {
            let (code, event, with_flush) = record;
            if with_flush {
                records.push((code, Event { op: Op::Flush, lba: 0, blocks: 0, ..event }));
            }
            records.push((code, event));
        }
    }
    Ok(())
}

/// Event code, request, and whether a flush precedes it.
type Record = (u32, Event, bool);

fn read_record(reader: &mut dyn BufRead, path: &Path, number: u64) -> Result<Option<Record>> {
    let damaged = |what: String| DeviceError::Trace { path: path.into(), at: number, what };
    let mut bytes = [0; RECORD_BYTES];
    reader.read_exact(&mut bytes).map_err(|e| truncated(e, path, number))?;
    let order = order_of(&bytes).ok_or_else(|| damaged(format!("no blktrace magic but {:02x?}", &bytes[..4])))?;
    let version = word(&bytes, 0, order) & 0xFF;
    if version != VERSION {
        return Err(damaged(format!("blktrace version {version}; {VERSION} is understood")));
    }
    let pdu_bytes = u64::from(word(&bytes, 44, order) >> if order == Order::Little { 16 } else { 0 }) & 0xFFFF;
    let skipped = std::io::copy(&mut reader.take(pdu_bytes), &mut std::io::sink()).map_err(|e| read_error(path, e))?;
    if skipped < pdu_bytes {
        return Err(damaged("the file ends within a record: the trace is truncated".into()));
    }
    event(&bytes, order).map_err(damaged)
}

fn truncated(error: std::io::Error, path: &Path, number: u64) -> DeviceError {
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof => {
            let what = "the file ends within a record: the trace is truncated".into();
            DeviceError::Trace { path: path.into(), at: number, what }
        }
        _ => read_error(path, error),
    }
}

/// Decodes a record: `None` for a record that is not a request. The error says what is wrong with it.
fn event(bytes: &[u8; RECORD_BYTES], order: Order) -> std::result::Result<Option<Record>, String> {
    let action = word(bytes, 28, order);
    // Bit 8 only says that the record comes from a control group.
    let (code, category) = (action & 0xFF, action >> 16);
    let length = u64::from(word(bytes, 24, order));
    if !matches!(code, EVENT_QUEUE | EVENT_ISSUE) || category & CATEGORY_NOTIFY != 0 {
        return Ok(None);
    }
    let (sector, time_ns) = (long(bytes, 16, order), long(bytes, 8, order));
    let op = match () {
        () if length == 0 && category & CATEGORY_FLUSH != 0 => Op::Flush,
        () if length == 0 => return Ok(None),
        () if category & CATEGORY_DISCARD != 0 => Op::Discard,
        () if category & CATEGORY_WRITE != 0 => Op::Write,
        () => Op::Read,
    };
    let (lba, blocks) = match op {
        Op::Flush => (0, 0),
        _ => {
            let first = sector.checked_mul(512);
            let end = first.and_then(|first| first.checked_add(length));
            let (Some(first), Some(end)) = (first, end) else {
                return Err(format!("{length} bytes at sector {sector} are beyond any device"));
            };
            (first / 4096, end.div_ceil(4096) - first / 4096)
        }
    };
    if let Some(what) = super::impossible_time(time_ns) {
        return Err(what);
    }
    let with_flush = op == Op::Write && category & CATEGORY_FLUSH != 0;
    Ok(Some((code, Event { time_ns, op, lba, blocks }, with_flush)))
}

fn word(bytes: &[u8; RECORD_BYTES], at: usize, order: Order) -> u32 {
    let raw = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
    if order == Order::Little { u32::from_le_bytes(raw) } else { u32::from_be_bytes(raw) }
}

fn long(bytes: &[u8; RECORD_BYTES], at: usize, order: Order) -> u64 {
    let (first, second) = (u64::from(word(bytes, at, order)), u64::from(word(bytes, at + 4, order)));
    if order == Order::Little { second << 32 | first } else { first << 32 | second }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(time: u64, sector: u64, bytes: u32, action: u32, pdu: &[u8], big: bool) -> Vec<u8> {
        let mut out = Vec::new();
        let w32 = |out: &mut Vec<u8>, v: u32| out.extend(if big { v.to_be_bytes() } else { v.to_le_bytes() });
        let w64 = |out: &mut Vec<u8>, v: u64| out.extend(if big { v.to_be_bytes() } else { v.to_le_bytes() });
        let w16 = |out: &mut Vec<u8>, v: u16| out.extend(if big { v.to_be_bytes() } else { v.to_le_bytes() });
        w32(&mut out, MAGIC | VERSION);
        w32(&mut out, 1);
        w64(&mut out, time);
        w64(&mut out, sector);
        w32(&mut out, bytes);
        w32(&mut out, action);
        (0..3).for_each(|_| w32(&mut out, 0));
        w16(&mut out, 0);
        w16(&mut out, pdu.len() as u16);
        out.extend(pdu);
        out
    }

    const WRITE_ISSUE: u32 = CATEGORY_WRITE << 16 | EVENT_ISSUE;
    const READ_QUEUE: u32 = 1 << 16 | EVENT_QUEUE;

    fn write(name: &str, folder: &Path, records: &[Vec<u8>]) -> PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, records.concat()).unwrap();
        path
    }

    #[test]
    fn both_byte_orders_and_payloads_are_read() {
        let folder = tempfile::tempdir().unwrap();
        for big in [false, true] {
            let path = write(
                "t",
                folder.path(),
                &[
                    record(5, 16, 8192, WRITE_ISSUE, b"command", big),
                    record(9, 9, 512, WRITE_ISSUE, b"", big),
                    record(11, 0, 0, (CATEGORY_FLUSH | CATEGORY_WRITE) << 16 | EVENT_ISSUE, b"", big),
                    record(12, 8, 4096, CATEGORY_DISCARD << 16 | EVENT_ISSUE, b"", big),
                    record(13, 8, 4096, READ_QUEUE, b"", big),
                    record(13, 8, 4096, CATEGORY_NOTIFY << 16 | EVENT_ISSUE, b"", big),
                ],
            );
            let trace = super::super::Trace::open(&path).unwrap();
            assert_eq!(trace.format(), super::super::Format::Blktrace);
            let events: Vec<_> = trace.events().unwrap().map(|e| e.unwrap()).collect();
            let expect = |time_ns, op, lba, blocks| Event { time_ns, op, lba, blocks };
            assert_eq!(
                events,
                [
                    expect(5, Op::Write, 2, 2),
                    expect(9, Op::Write, 1, 1),
                    expect(11, Op::Flush, 0, 0),
                    expect(12, Op::Discard, 1, 1)
                ]
            );
        }
    }

    #[test]
    fn control_groups_and_flushes_with_data_are_understood() {
        let folder = tempfile::tempdir().unwrap();
        let action = (CATEGORY_FLUSH | CATEGORY_WRITE) << 16 | EVENT_QUEUE | 1 << 8;
        let path = write("t", folder.path(), &[record(5, 8, 4096, action, b"12345678", false)]);
        let ops: Vec<_> = read_all(&path).unwrap().into_iter().map(|e| (e.op, e.blocks)).collect();
        assert_eq!(ops, [(Op::Flush, 0), (Op::Write, 1)]);
    }

    #[test]
    fn files_of_all_processors_are_merged_by_time() {
        let folder = tempfile::tempdir().unwrap();
        let first = write("sda.blktrace.0", folder.path(), &[record(5, 0, 4096, READ_QUEUE, b"", false)]);
        write("sda.blktrace.1", folder.path(), &[record(2, 8, 4096, READ_QUEUE, b"", false)]);
        write("sdb.blktrace.1", folder.path(), &[record(1, 80, 4096, READ_QUEUE, b"", false)]);
        let events = read_all(&first).unwrap();
        assert_eq!(events.iter().map(|e| e.lba).collect::<Vec<_>>(), [1, 0]);
    }

    #[test]
    fn damage_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let good = record(5, 0, 4096, READ_QUEUE, b"abc", false);
        let fails = |bytes: &[u8]| {
            let path = write("t", folder.path(), &[good.clone(), bytes.to_vec()]);
            read_all(&path).unwrap_err().to_string()
        };
        assert!(fails(&good[..20]).contains("record 2: the file ends within"));
        assert!(fails(&good[..49]).contains("truncated"));
        assert!(fails(&[0; 48]).contains("no blktrace magic"));
        let mut version = good.clone();
        version[0] = 6;
        assert!(fails(&version).contains("version 6"));
        let beyond = record(5, u64::MAX / 512, 4096, READ_QUEUE, b"", false);
        assert!(fails(&beyond).contains("record 2: 4096 bytes at sector"));
        assert!(fails(&record(u64::MAX, 0, 4096, READ_QUEUE, b"", false)).contains("more than ten years"));
    }

    /// The processor of the first file may have had nothing to do.
    #[test]
    fn an_empty_first_file_does_not_hide_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let first = write("sda.blktrace.0", folder.path(), &[]);
        write("sda.blktrace.1", folder.path(), &[record(2, 8, 4096, READ_QUEUE, b"", false)]);
        let trace = super::super::Trace::open(&first).unwrap();
        assert_eq!(trace.events().unwrap().count(), 1);
    }
}
