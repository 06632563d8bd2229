//! The blocks of a dump. docs/format.md has the layout.
//!
//! Rules
//! 1. Blocks are numbered from 0; the checksum of a block covers its header, so a block elsewhere does not verify.
//! 2. A message names the byte of the dump where the block begins, and what the block holds.

use super::failed;
use super::packing::{Packer, Unpacker, most_packed_bytes, packer, unpacker};
use crate::error::{Error, Result};
use std::io::{ErrorKind, Read, Write};

const MAGIC: &[u8; 8] = b"HIGHWDMP";
/// The version that is written; all from 1 on are read.
pub(super) const VERSION: u16 = 1;
const HEAD_BYTES: usize = 16;
const HEADER_BYTES: usize = 24;
/// Most bytes of a block, compressed or not: a row has 16 MiB, a definition less.
const MAX_BLOCK_BYTES: usize = 64 << 20;

/// The kind of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// The head: the origin of the dump.
    Head = 1,
    /// The definition of a table.
    Table = 2,
    /// Rows of a table.
    Rows = 3,
    /// The end: the number of rows of each table.
    End = 4,
}

impl Kind {
    fn of(code: u8) -> Option<Kind> {
        [Kind::Head, Kind::Table, Kind::Rows, Kind::End].into_iter().find(|kind| *kind as u8 == code)
    }
}

/// A block that was read.
pub(super) struct Block {
    pub(super) kind: Kind,
    /// Position of the table, in the order of the definitions; 0 for a block of no table.
    pub(super) table: u32,
    pub(super) bytes: Vec<u8>,
    pub(super) place: Place,
}

/// The place of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) number: u32,
    pub(super) byte: u64,
}

impl Place {
    /// The error of a damaged block.
    pub(super) fn damaged(self, what: &str) -> Error {
        Error::BadDump(format!("the dump is damaged: block {} at byte {} {what}", self.number, self.byte))
    }

    fn cut_off(self, end: u64) -> Error {
        let Place { number, byte } = self;
        Error::BadDump(format!("the dump is cut off: it ends at byte {end}, in block {number} that begins at {byte}"))
    }
}

pub(super) struct BlockWriter<W> {
    out: W,
    packer: Packer,
    next: u32,
    pub(super) bytes: u64,
}

impl<W: Write> BlockWriter<W> {
    /// Writes the beginning of a dump.
    pub(super) fn new(out: W) -> Result<BlockWriter<W>> {
        let mut writer = BlockWriter { out, packer: packer()?, next: 0, bytes: 0 };
        let mut head = [0; HEAD_BYTES];
        head[..8].copy_from_slice(MAGIC);
        head[8..10].copy_from_slice(&VERSION.to_le_bytes());
        let sum = crc32c::crc32c(&head[..12]);
        head[12..].copy_from_slice(&sum.to_le_bytes());
        writer.put(&head)?;
        Ok(writer)
    }

    /// Writes a block.
    pub(super) fn block(&mut self, kind: Kind, table: u32, bytes: &[u8]) -> Result<()> {
        if bytes.len() > MAX_BLOCK_BYTES {
            return Err(Error::Usage(format!("{} bytes are more than a block of a dump has", bytes.len())));
        }
        debug_assert_eq!(Kind::of(kind as u8), Some(kind), "a block of a kind that no reader knows");
        debug_assert_eq!(self.next == 0, kind == Kind::Head, "block {} of a dump is of kind {kind:?}", self.next);
        let stored = self.packer.pack(bytes).map_err(|error| failed("compression", error))?;
        let packed = stored.len();
        debug_assert!(packed <= most_packed_bytes(MAX_BLOCK_BYTES), "a block of {packed} bytes, which no reader takes");
        let mut header = [0; HEADER_BYTES];
        header[0] = kind as u8;
        for (at, number) in [(4, self.next), (8, table), (12, bytes.len() as u32), (16, stored.len() as u32)] {
            header[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
        let sum = checksum(&header, &stored);
        header[20..].copy_from_slice(&sum.to_le_bytes());
        self.put(&header)?;
        self.put(&stored)?;
        let more = || Error::Usage("a dump has at most 4294967295 blocks".to_string());
        self.next = self.next.checked_add(1).ok_or_else(more)?;
        Ok(())
    }

    /// Ends the dump: flushes the writer.
    pub(super) fn finish(mut self) -> Result<u64> {
        self.out.flush().map_err(|error| failed("write", error))?;
        Ok(self.bytes)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes).map_err(|error| failed("write", error))?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }
}

/// The checksum of the header's bytes before the checksum, and of the stored bytes.
fn checksum(header: &[u8; HEADER_BYTES], stored: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&header[..20]), stored)
}

pub(super) struct BlockReader<R> {
    from: R,
    unpacker: Unpacker,
    next: u32,
    pub(super) bytes: u64,
}

impl<R: Read> BlockReader<R> {
    /// Reads the beginning of a dump.
    pub(super) fn new(from: R) -> Result<BlockReader<R>> {
        let mut reader = BlockReader { from, unpacker: unpacker()?, next: 0, bytes: 0 };
        let head = reader.take(HEAD_BYTES)?;
        if !head.starts_with(MAGIC) {
            return Err(Error::BadDump("this is no dump of a Highwater database: it does not begin as one".into()));
        }
        if head.len() < HEAD_BYTES {
            return Err(Error::BadDump(format!("the dump is cut off: it ends at byte {}", head.len())));
        }
        let sum = u32::from_le_bytes([head[12], head[13], head[14], head[15]]);
        if sum != crc32c::crc32c(&head[..12]) {
            return Err(Error::BadDump("the dump is damaged: its first 16 bytes have a wrong checksum".into()));
        }
        match u16::from_le_bytes([head[8], head[9]]) {
            1..=VERSION => Ok(reader),
            version => Err(Error::BadDump(format!(
                "the dump has format version {version}; this program reads versions 1 to {VERSION}. The program that \
                 wrote it, or a later one, loads it"
            ))),
        }
    }

    /// The next block.
    pub(super) fn block(&mut self) -> Result<Block> {
        let place = Place { number: self.next, byte: self.bytes };
        let header = self.take(HEADER_BYTES)?;
        let Ok(header) = <[u8; HEADER_BYTES]>::try_from(header) else { return Err(place.cut_off(self.bytes)) };
        let u32_at = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let [number, table, raw_bytes, stored_bytes, sum] = [4, 8, 12, 16, 20].map(u32_at);
        let is_long = |bytes: u32| bytes as usize > most_packed_bytes(MAX_BLOCK_BYTES);
        if is_long(raw_bytes) || is_long(stored_bytes) {
            return Err(place.damaged("has a header with a wrong length"));
        }
        let stored = self.take(stored_bytes as usize)?;
        if stored.len() < stored_bytes as usize {
            return Err(place.cut_off(self.bytes));
        }
        if sum != checksum(&header, &stored) {
            return Err(place.damaged("has a wrong checksum"));
        }
        let Some(kind) = Kind::of(header[0]).filter(|_| header[1..4] == [0; 3]) else {
            return Err(place.damaged(&format!("is of kind {}, which this program does not know", header[0])));
        };
        if number != self.next {
            return Err(place.damaged(&format!("has the number {number}: blocks are missing, or in another order")));
        }
        self.next = self.next.wrapping_add(1);
        let bytes = self.unpacker.unpack(&stored, raw_bytes as usize);
        match bytes.ok().filter(|bytes| bytes.len() == raw_bytes as usize) {
            Some(bytes) => Ok(Block { kind, table, bytes, place }),
            None => Err(place.damaged("does not decompress to its length")),
        }
    }

    /// An error if anything follows.
    pub(super) fn must_end(&mut self) -> Result<()> {
        let end = self.bytes;
        match self.take(1)?.is_empty() {
            true => Ok(()),
            false => Err(Error::BadDump(format!("the dump is damaged: bytes follow its end at byte {end}"))),
        }
    }

    /// Reads `bytes` bytes; fewer at the end.
    fn take(&mut self, bytes: usize) -> Result<Vec<u8>> {
        let mut taken = Vec::new();
        let read = (&mut self.from).take(bytes as u64).read_to_end(&mut taken);
        match read {
            Err(error) if error.kind() != ErrorKind::UnexpectedEof => return Err(failed("read", error)),
            _ => self.bytes += taken.len() as u64,
        }
        Ok(taken)
    }
}
