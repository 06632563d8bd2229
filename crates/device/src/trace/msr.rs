//! The CSV of the MSR Cambridge traces (Narayanan, Donnelly and Rowstron, "Write Off-Loading", FAST 2008):
//! `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`. Times are Windows file times, in 100 ns; offset and
//! size are in bytes. The first line may be a heading.
//!
//! Rules
//! 1. A file is of one disk of one host.
//! 2. Times are counted from the first request of the file; an earlier request is at time 0.
//! 3. A request that is not aligned to 4 KiB covers every block that it touches.

use super::text::{Lines, blocks_of, number};
use super::{Event, impossible_time};
use crate::model::Op;

const FIELDS: usize = 7;
const HEADING: &[u8] = b"timestamp,hostname,";

/// Whether a file that begins with these bytes is such a trace.
pub fn is_start(start: &[u8]) -> bool {
    let first = start.split(|byte| *byte == b'\n').next().unwrap_or_default();
    is_heading(first) || fields(first).is_some_and(|fields| op_of(fields[3]).is_some())
}

fn is_heading(line: &[u8]) -> bool {
    line.get(..HEADING.len()).is_some_and(|start| start.eq_ignore_ascii_case(HEADING))
}

fn fields(line: &[u8]) -> Option<[&[u8]; FIELDS]> {
    let mut all = line.split(|byte| *byte == b',');
    let found = [(); FIELDS].map(|()| all.next());
    let whole = all.next().is_none() && found.iter().all(Option::is_some);
    whole.then(|| found.map(Option::unwrap_or_default))
}

fn op_of(field: &[u8]) -> Option<Op> {
    match field {
        _ if field.eq_ignore_ascii_case(b"read") => Some(Op::Read),
        _ if field.eq_ignore_ascii_case(b"write") => Some(Op::Write),
        _ => None,
    }
}

/// The lines of such a trace.
#[derive(Debug, Default)]
pub struct MsrTrace {
    /// Host, disk and time of the first request.
    first: Option<(Vec<u8>, Vec<u8>, u64)>,
}

impl Lines for MsrTrace {
    fn event(&mut self, line: &[u8], number_of_line: u64) -> std::result::Result<Option<Event>, String> {
        if number_of_line == 1 && is_heading(line) {
            return Ok(None);
        }
        let shown = line.escape_ascii();
        let Some([time, host, disk, kind, offset, size, _]) = fields(line) else {
            return Err(format!("\"{shown}\" does not have the {FIELDS} fields of an MSR Cambridge trace"));
        };
        let op = op_of(kind).ok_or_else(|| format!("Type \"{}\" is neither Read nor Write", kind.escape_ascii()))?;
        let time = number(time, "Timestamp")?;
        let (first_host, first_disk, started) = self.first.get_or_insert_with(|| (host.to_vec(), disk.to_vec(), time));
        if (&**first_host, &**first_disk) != (host, disk) {
            let [host, disk, first_host, first_disk] =
                [host, disk, first_host, first_disk].map(|field| field.escape_ascii().to_string());
            return Err(format!(
                "disk {disk} of {host} in a trace of disk {first_disk} of {first_host}: a trace is of one disk"
            ));
        }
        let time_ns = time.saturating_sub(*started).saturating_mul(100);
        if let Some(what) = impossible_time(time_ns) {
            return Err(what);
        }
        let (lba, blocks) = blocks_of(number(offset, "Offset")?, number(size, "Size")?)?;
        Ok(Some(Event { time_ns, op, lba, blocks }))
    }

    /// The last field is not used.
    fn is_whole_without_end(&self, _: &Event) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Result;
    use crate::trace::{Format, Trace};

    fn read(text: &str) -> Result<Vec<Event>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("src1_0.csv");
        std::fs::write(&path, text).unwrap();
        let trace = Trace::open(&path)?;
        assert_eq!(trace.format(), Format::MsrCambridge);
        trace.events()?.collect()
    }

    const FIRST: &str = "128166372003061629,src1,0,Read,7014609920,24576,41286\n";

    #[test]
    fn lines_become_events() {
        let more = "128166372016382155,src1,0,Write,2657792512,512,1963\r\n128166372003061600,src1,0,write,0,4097,1";
        for text in
            [format!("{FIRST}{more}"), format!("Timestamp,Hostname,DiskNumber,Type,Offset,Size,R\n{FIRST}{more}")]
        {
            let events = read(&text).unwrap();
            assert_eq!(events[0], Event { time_ns: 0, op: Op::Read, lba: 1_712_551, blocks: 7 });
            assert_eq!(events[1], Event { time_ns: 1_332_052_600, op: Op::Write, lba: 648_875, blocks: 1 });
            assert_eq!(events[2], Event { time_ns: 0, op: Op::Write, lba: 0, blocks: 2 });
        }
    }

    #[test]
    fn each_kind_of_damage_is_named_with_its_line() {
        for (line, message) in [
            ("128166372016382155,src1,1,Write,0,512,1963\n", "disk 1 of src1 in a trace of disk 0 of src1"),
            ("128166372016382155,src2,0,Write,0,512,1963\n", "disk 0 of src2 in a trace of disk 0 of src1"),
            ("128166372016382155,src1,0,Erase,0,512,1963\n", "Type \"Erase\" is neither Read nor Write"),
            ("128166372016382155,src1,0,Write,0\n", "does not have the 7 fields"),
            ("128166372016382155,src1,0,Write,x,512,1\n", "Offset \"x\" is not a number"),
            ("128166372016382155,src1,0,Write,0,0,1\n", "0 bytes"),
            ("soon,src1,0,Write,0,512,1\n", "Timestamp \"soon\" is not a number"),
            ("228166372016382155,src1,0,Write,0,512,1\n", "more than ten years"),
        ] {
            let error = read(&format!("{FIRST}{line}")).unwrap_err().to_string();
            assert!(error.contains(message) && error.contains("line or record 2"), "{line:?}: {error}");
        }
    }
}
