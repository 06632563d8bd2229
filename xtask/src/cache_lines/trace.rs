//! Reads what valgrind's tool lackey writes with `--trace-mem=yes`, and the marks that `examples/turns.rs` writes
//! between it.
//!
//! ```text
//! I  04001234,3        an instruction: its address, its length
//!  L 1ffeffe7d8,8      a load; ` S` a store, ` M` both: address and bytes, hexadecimal and decimal
//! @ 5                  the turn of core 5 begins; `@ end` ends it
//! @ measured           the rounds that count begin
//! @ base 108000        where the program is in memory
//! ```
//! Rules
//! 1. Outside of turns nothing counts.
//! 2. A place in the code is the newest instruction of the engine: what it calls (the allocator, copying) works for it.

use super::directory::{Access, Directory, LINE_BYTES};
use std::io::BufRead;

/// Instructions that are looked through for one of the engine.
const REMEMBERED: usize = 4096;

/// What a trace said.
#[derive(Debug)]
pub(super) struct Trace {
    /// The lines and who has them.
    pub directory: Directory,
    /// What was written between the trace's lines: messages of the program and of valgrind.
    pub messages: Vec<String>,
}

struct Reader<'a> {
    trace: Trace,
    is_engine: &'a dyn Fn(u64) -> bool,
    in_turn: bool,
    base: u64,
    instructions: u64,
    recent: Vec<u64>,
}

/// Reads a trace of this many cores; those after them take background steps. `is_engine` says whether an instruction,
/// as the program's file has its address, is one of the engine.
///
/// # Errors
/// The trace cannot be read, or a line of it makes no sense.
pub(super) fn read(mut lines: impl BufRead, cores: u8, is_engine: &dyn Fn(u64) -> bool) -> Result<Trace, String> {
    let trace = Trace { directory: Directory::new(cores), messages: Vec::new() };
    let recent = vec![0; REMEMBERED];
    let mut reader = Reader { trace, is_engine, in_turn: false, base: 0, instructions: 0, recent };
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line).map_err(|error| error.to_string())? > 0 {
        let text = line.trim_ascii_end();
        reader.line(text).ok_or_else(|| format!("the trace has the line {:?}", String::from_utf8_lossy(text)))?;
        line.clear();
    }
    Ok(reader.trace)
}

impl Reader<'_> {
    fn line(&mut self, line: &[u8]) -> Option<()> {
        match line {
            [b'I', b' ', b' ', rest @ ..] if self.in_turn => self.instruction(address(rest)?.0),
            [b' ', b'L', b' ', rest @ ..] if self.in_turn => self.access(&[Access::Load], rest)?,
            [b' ', b'S', b' ', rest @ ..] if self.in_turn => self.access(&[Access::Store], rest)?,
            [b' ', b'M', b' ', rest @ ..] if self.in_turn => self.access(&[Access::Load, Access::Store], rest)?,
            [b'I', b' ', ..] | [b' ', b'L' | b'S' | b'M', b' ', ..] => {}
            [b'@', b' ', mark @ ..] => self.mark(std::str::from_utf8(mark).ok()?)?,
            message => self.trace.messages.push(String::from_utf8_lossy(message).into_owned()),
        }
        Some(())
    }

    fn mark(&mut self, mark: &str) -> Option<()> {
        match mark.split_once(' ') {
            Some(("base", base)) => self.base = u64::from_str_radix(base, 16).ok()?,
            _ if mark == "end" => self.in_turn = false,
            _ if mark == "measured" => self.trace.directory.measure(),
            _ => {
                self.in_turn = true;
                self.trace.directory.begin(mark.parse().ok().filter(|core| *core < 128)?);
            }
        }
        Some(())
    }

    fn instruction(&mut self, address: u64) {
        self.instructions += 1;
        self.recent[self.instructions as usize % REMEMBERED] = address.wrapping_sub(self.base);
    }

    fn access(&mut self, kinds: &[Access], rest: &[u8]) -> Option<()> {
        let (first, bytes) = address(rest)?;
        let (now, recent, is_engine) = (self.instructions, &self.recent, self.is_engine);
        let place = || {
            let back = (0..REMEMBERED.min(now as usize)).map(|back| recent[(now as usize - back) % REMEMBERED]);
            back.into_iter().find(|address| is_engine(*address)).unwrap_or(0)
        };
        for line in first / LINE_BYTES..=(first + bytes.max(1) - 1) / LINE_BYTES {
            kinds.iter().for_each(|kind| self.trace.directory.access(*kind, line * LINE_BYTES, now, place));
        }
        Some(())
    }
}

/// `HEX,DECIMAL`: an address and a number of bytes.
fn address(text: &[u8]) -> Option<(u64, u64)> {
    let (address, bytes) = std::str::from_utf8(text.trim_ascii_start()).ok()?.split_once(',')?;
    Some((u64::from_str_radix(address, 16).ok()?, bytes.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "==1== Lackey\n\
        @ base 1000\n\
        I  00001010,4\n\
        \x20S 00002000,8\n\
        @ 0\n\
        I  00001020,4\n\
        I  00900000,2\n\
        \x20M 0000203c,8\n\
        @ end\n\
        @ measured\n\
        @ 1\n\
        I  00001030,4\n\
        I  00900000,2\n\
        \x20L 00002040,4\n\
        @ end\n";

    #[test]
    fn turns_count_and_places_are_the_engines() {
        let trace = read(TRACE.as_bytes(), 2, &|address| address < 0x100).unwrap();
        assert_eq!(trace.messages, ["==1== Lackey"]);
        let shared = trace.directory.shared();
        // The access that crosses a boundary used both lines; the store outside of a turn counts nothing.
        assert_eq!((shared.len(), shared[0].address), (1, 0x2040));
        assert_eq!((shared[0].places[0].0, shared[0].count.transfers), (0x30, 1));
    }

    #[test]
    fn a_line_that_makes_no_sense_is_an_error_that_shows_it() {
        let failure = read(&b"@ 0\n L 12\n"[..], 2, &|_| true).unwrap_err();
        assert!(failure.contains(" L 12"), "{failure}");
        assert!(read(&b"@ 500\n"[..], 2, &|_| true).is_err());
    }
}
