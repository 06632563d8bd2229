//! Named ranges of a trace's device: files, ext4's journal, InnoDB's doublewrite buffer; and the stream rules that use
//! them.
//!
//! A trace `NAME.csv.zst` may have a file `NAME.files.csv` next to it, lines of
//! `first_lba,blocks,file,first_block_in_file`.
//! - `journal` is not a file. If the file map lacks it, it is derived from the trace: ext4 writes its journal
//!   cyclically, so the journal is the contiguous range outside all files, of at least 1,024 blocks (the minimum of
//!   jbd2), that is written most often.
//! - `doublewrite` is pages 64 to 191 (16 KiB) of the file `ibdata1`.
//!
//! A rule is `STREAM=WHAT`; WHAT is a name, a file name pattern (`*` matches any characters), `FIRST-LAST` or
//! `FIRST+COUNT` in 4 KiB blocks. A later rule overrides earlier ones; blocks that no rule names are in stream 0.

use super::{Trace, read_text};
use crate::error::{DeviceError, Result};
use crate::model::Op;
use crate::ssd::table::too_large;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A named range of the device's blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedRange {
    /// `journal`, or a file's name.
    pub name: String,
    /// First 4 KiB block.
    pub first_lba: u32,
    /// Number of 4 KiB blocks.
    pub blocks: u32,
    /// The block of the file at which the range begins.
    pub first_block_in_file: u32,
}

impl NamedRange {
    fn end(&self) -> u32 {
        self.first_lba.saturating_add(self.blocks)
    }

    /// Refuses a range that exceeds a device of this many blocks.
    pub fn check(&self, capacity_blocks: u32) -> Result<()> {
        let (lba, blocks, capacity_blocks) = (self.first_lba.into(), self.blocks.into(), u64::from(capacity_blocks));
        if lba + blocks > capacity_blocks {
            return Err(DeviceError::OutOfRange { lba, blocks, capacity_blocks });
        }
        Ok(())
    }
}

impl std::str::FromStr for NamedRange {
    type Err = DeviceError;

    /// `NAME=FIRST+COUNT` or `NAME=FIRST-LAST`, in 4 KiB blocks.
    fn from_str(text: &str) -> Result<NamedRange> {
        let parts = text.split_once('=').and_then(|(name, place)| Some((name.trim(), parse_range(place.trim())?)));
        match parts {
            Some((name, (first_lba, blocks))) if !name.is_empty() => {
                Ok(NamedRange { name: name.into(), first_lba, blocks, first_block_in_file: 0 })
            }
            _ => {
                let what = "expected NAME=FIRST+COUNT or NAME=FIRST-LAST in blocks of 4 KiB".into();
                Err(DeviceError::Rule { rule: text.into(), what })
            }
        }
    }
}

/// Reads `first_lba,blocks,file,first_block_in_file` lines.
pub fn read_files(path: &Path) -> Result<Vec<NamedRange>> {
    let mut ranges = Vec::new();
    for (number, line) in read_text(path)?.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()) {
        match parse_file_line(line) {
            Some(range) => ranges.push(range),
            None if number == 0 && line.starts_with(|c: char| c.is_ascii_alphabetic()) => {}
            None => {
                let what = format!("expected first_lba,blocks,file,first_block_in_file, found \"{line}\"");
                return Err(DeviceError::Trace { path: path.into(), at: number as u64 + 1, what });
            }
        }
    }
    Ok(ranges)
}

fn parse_file_line(line: &str) -> Option<NamedRange> {
    let (first_lba, rest) = line.split_once(',')?;
    let (blocks, rest) = rest.split_once(',')?;
    let (name, first_block) = rest.rsplit_once(',')?;
    let (first_lba, blocks): (u32, u32) = (first_lba.trim().parse().ok()?, blocks.trim().parse().ok()?);
    let first_block_in_file: u32 = first_block.trim().parse().ok()?;
    if blocks == 0 {
        return None;
    }
    // Blocks have numbers of 32 bits, on the device and in a file.
    first_lba.max(first_block_in_file).checked_add(blocks)?;
    Some(NamedRange { name: name.trim().into(), first_lba, blocks, first_block_in_file })
}

/// The file map next to a trace, if there is one: `x.csv.zst`, `x.csv` -> `x.files.csv`.
pub fn file_map_of(trace: &Path) -> Option<std::path::PathBuf> {
    let name = trace.file_name()?.to_str()?;
    let stem = name.strip_suffix(".zst").unwrap_or(name);
    let stem = stem.strip_suffix(".csv").unwrap_or(stem);
    let path = trace.with_file_name(format!("{stem}.files.csv"));
    path.is_file().then_some(path)
}

/// Minimum number of blocks of a jbd2 journal.
const JOURNAL_BLOCKS_MIN: usize = 1024;

/// Finds ext4's journal on a device of this many blocks: the most-written contiguous range outside all files. `None` if
/// no range is written cyclically.
pub fn find_journal(trace: &Trace, files: &[NamedRange], capacity_blocks: u32) -> Result<Option<NamedRange>> {
    let mut writes: Vec<u32> = Vec::new();
    for event in trace.events()? {
        let event = event?;
        let end = event.lba.saturating_add(event.blocks);
        // The replay refuses what is beyond the device.
        if event.op != Op::Write || end > u64::from(capacity_blocks) {
            continue;
        }
        if writes.len() < end as usize {
            let more = end as usize - writes.len();
            writes.try_reserve(more).map_err(|_| too_large(end as f64 * 4.0))?;
            writes.resize(end as usize, 0);
        }
        writes[event.lba as usize..end as usize].iter_mut().for_each(|w| *w = w.saturating_add(1));
    }
    for file in files {
        let end = (file.end() as usize).min(writes.len());
        writes[(file.first_lba as usize).min(end)..end].fill(0);
    }
    Ok(busiest_run(&writes))
}

fn busiest_run(writes: &[u32]) -> Option<NamedRange> {
    let mut best: Option<(u64, usize, usize)> = None;
    let mut at = 0;
    for run in writes.split(|w| *w == 0) {
        let total: u64 = run.iter().map(|w| u64::from(*w)).sum();
        let often = run.len() >= JOURNAL_BLOCKS_MIN && total >= 2 * run.len() as u64;
        if often && best.is_none_or(|b| total > b.0) {
            best = Some((total, at, run.len()));
        }
        at += run.len() + 1;
    }
    best.map(|(_, first, len)| NamedRange {
        name: "journal".into(),
        first_lba: first as u32,
        blocks: len as u32,
        first_block_in_file: 0,
    })
}

/// The first and last page (16 KiB) of InnoDB's doublewrite buffer in `ibdata1`, as blocks of 4 KiB.
const DOUBLEWRITE_BLOCKS: std::ops::Range<u32> = 64 * 4..192 * 4;

/// The ranges of the doublewrite buffer, derived from the ranges of `ibdata1`.
pub fn doublewrite(files: &[NamedRange]) -> Vec<NamedRange> {
    let system = files.iter().filter(|f| f.name.rsplit('/').next() == Some("ibdata1"));
    let pieces = system.filter_map(|f| {
        let from = f.first_block_in_file.max(DOUBLEWRITE_BLOCKS.start);
        let to = (f.first_block_in_file + f.blocks).min(DOUBLEWRITE_BLOCKS.end);
        (from < to).then(|| NamedRange {
            name: "doublewrite".into(),
            first_lba: f.first_lba + (from - f.first_block_in_file),
            blocks: to - from,
            first_block_in_file: from,
        })
    });
    pieces.collect()
}

/// A rule that assigns blocks to a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamRule {
    /// The stream.
    pub stream: u8,
    /// A name, a pattern or a range of blocks.
    pub what: String,
}

impl std::str::FromStr for StreamRule {
    type Err = DeviceError;

    fn from_str(text: &str) -> Result<StreamRule> {
        let error = |what: &str| DeviceError::Rule { rule: text.into(), what: what.into() };
        let (stream, what) = text.split_once('=').ok_or_else(|| error("expected STREAM=WHAT, as in 1=journal"))?;
        let stream = match stream.trim().parse::<u64>() {
            // The device checks whether it has that stream.
            Ok(stream) if stream <= u8::MAX.into() => stream as u8,
            Ok(_) => return Err(error("the streams of a device are 0 to 15")),
            Err(_) => return Err(error("the stream is not a number")),
        };
        match what.trim() {
            "" => Err(error("nothing after the equals sign")),
            what if is_meant_as_range(what) && parse_range(what).is_none() => {
                Err(error("no range: expected FIRST-LAST or FIRST+COUNT in blocks of 4 KiB, not empty and below 2^32"))
            }
            what => Ok(StreamRule { stream, what: what.into() }),
        }
    }
}

/// Reads a rules file: one rule a line, `#` begins a comment.
pub fn read_rules(path: &Path) -> Result<Vec<StreamRule>> {
    let text = read_text(path)?;
    let lines = text.lines().map(|l| l.split('#').next().unwrap_or("").trim());
    let rules = lines.enumerate().filter(|(_, l)| !l.is_empty());
    let parse = |(number, line): (usize, &str)| {
        line.parse().map_err(|error| match error {
            DeviceError::Rule { rule, what } => {
                let rule = format!("{}: line {}: {rule}", path.display(), number + 1);
                DeviceError::Rule { rule, what }
            }
            error => error,
        })
    };
    rules.map(parse).collect()
}

impl StreamRule {
    /// The ranges the rule names.
    pub fn resolve(&self, named: &[NamedRange]) -> Result<Vec<NamedRange>> {
        if let Some((first_lba, blocks)) = parse_range(&self.what) {
            return Ok(vec![NamedRange { name: self.what.clone(), first_lba, blocks, first_block_in_file: 0 }]);
        }
        let found: Vec<_> = named.iter().filter(|r| matches(&self.what, &r.name)).cloned().collect();
        match found.is_empty() {
            false => Ok(found),
            true => Err(DeviceError::Rule { rule: format!("{}={}", self.stream, self.what), what: unknown(named) }),
        }
    }
}

fn unknown(named: &[NamedRange]) -> String {
    let mut names: Vec<_> = named.iter().map(|r| r.name.as_str()).collect();
    // Files are many; what is not a file comes first.
    names.sort_unstable_by_key(|name| (!["journal", "doublewrite"].contains(name), *name));
    names.dedup();
    match names.len() {
        0 => "no range of that name, and no other has a name; say where it lies, as in FIRST+COUNT".into(),
        n => format!(
            "no range of that name; there are: {}{}",
            names[..n.min(12)].join(", "),
            [", ...", ""][(n <= 12) as usize]
        ),
    }
}

/// `FIRST-LAST` or `FIRST+COUNT`.
fn parse_range(text: &str) -> Option<(u32, u32)> {
    if let Some((first, count)) = text.split_once('+') {
        return Some((first.parse().ok()?, count.parse().ok().filter(|c| *c > 0)?));
    }
    let (first, last) = text.split_once('-')?;
    let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
    Some((first, last.checked_sub(first)?.checked_add(1)?))
}

/// Whether a text is two numbers with a sign between them.
fn is_meant_as_range(text: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    text.split_once(['+', '-']).is_some_and(|(first, rest)| digits(first) && digits(rest))
}

/// Whether `name` matches `pattern`, in which `*` matches any characters. Each part between two `*` is matched at its
/// first occurrence, which leaves the longest rest.
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|head| name.strip_prefix(head)) else { return false };
    let Some(tail) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(tail)
}

#[cfg(test)]
#[path = "ranges_test.rs"]
mod tests;
