//! Traces that are text: one request a line.
//!
//! Rules
//! 1. Nothing but a line is in memory, and no line is longer than [`LINE_BYTES`].
//! 2. A file that ends within a line is truncated, unless the format's last field is unused.

use super::{Event, read_error};
use crate::error::{DeviceError, Result};
use std::io::{BufRead, Read};
use std::path::PathBuf;

/// Longest line: some numbers and a name, or a heading.
const LINE_BYTES: u64 = 4096;

/// The parser of a format's lines.
pub(super) trait Lines {
    /// The request of a line, which is trimmed and not empty; `None` if it has none. Lines count from 1.
    ///
    /// # Errors
    /// What is wrong with it.
    fn event(&mut self, line: &[u8], number: u64) -> std::result::Result<Option<Event>, String>;

    /// Whether an event is whole although its line does not end.
    fn is_whole_without_end(&self, event: &Event) -> bool;
}

/// Reads events from text.
pub(super) struct TextEvents<L> {
    reader: Box<dyn BufRead>,
    path: PathBuf,
    line: Vec<u8>,
    number: u64,
    failed: bool,
    lines: L,
}

impl<L: Lines> TextEvents<L> {
    /// Reads from `reader`; `path` is for messages.
    pub(super) fn new(reader: Box<dyn BufRead>, path: PathBuf, lines: L) -> TextEvents<L> {
        TextEvents { reader, path, line: Vec::with_capacity(64), number: 0, failed: false, lines }
    }

    /// The parser, with its state after the lines read.
    pub(super) fn into_lines(self) -> L {
        self.lines
    }

    fn next_event(&mut self) -> Result<Option<Event>> {
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
            if text.is_empty() {
                continue;
            }
            match self.lines.event(text, self.number) {
                Ok(None) => {}
                Ok(Some(event)) if self.line.ends_with(b"\n") || self.lines.is_whole_without_end(&event) => {
                    return Ok(Some(event));
                }
                Ok(Some(_)) => return Err(self.error("the last line does not end: the trace is truncated".into())),
                Err(what) => return Err(self.error(what)),
            }
        }
    }

    fn error(&self, what: String) -> DeviceError {
        DeviceError::Trace { path: self.path.clone(), at: self.number, what }
    }
}

impl<L: Lines> Iterator for TextEvents<L> {
    type Item = Result<Event>;

    fn next(&mut self) -> Option<Result<Event>> {
        if self.failed {
            return None;
        }
        let next = self.next_event().transpose();
        self.failed = matches!(next, Some(Err(_)));
        next
    }
}

/// A field of digits alone.
pub(super) fn number(field: &[u8], name: &str) -> std::result::Result<u64, String> {
    let digits = !field.is_empty() && field.len() <= 18 && field.iter().all(u8::is_ascii_digit);
    if !digits {
        return Err(format!("{name} \"{}\" is not a number", field.escape_ascii()));
    }
    Ok(field.iter().fold(0, |n, digit| n * 10 + u64::from(digit - b'0')))
}

/// The 4 KiB blocks that bytes touch: the first one, and how many.
///
/// # Errors
/// There are no bytes.
pub(super) fn blocks_of(offset: u64, bytes: u64) -> std::result::Result<(u64, u64), String> {
    if bytes == 0 {
        return Err("a request of 0 bytes".into());
    }
    let first = offset / 4096;
    Ok((first, (offset + bytes).div_ceil(4096) - first))
}
