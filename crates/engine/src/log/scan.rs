//! The scan: whole mini-transactions from the last checkpoint to the end of the log.
//!
//! Rules
//! 1. The log ends at the first group that does not verify: zeros, another lap's or generation's bytes, a torn or lost
//!    write. What is found is a prefix of what was appended.
//! 2. A length is believed only so far as the ring goes on, and memory grows only with bytes that were read.
//! 3. The device is read front to back, [`CHUNK_BYTES`] at a time, each block once.

use super::format::{self, FRAME_BYTES, Geometry, Header};
use crate::error::Result;
use crate::types::Lsn;
use highwater_storage::{AlignedBuf, Device};
use std::ops::Range;

/// Bytes read at once.
const CHUNK_BYTES: u64 = 1 << 20;

/// What a scan from the last checkpoint found.
#[derive(Debug)]
pub struct Scan {
    /// LSN of the checkpoint recovery starts from.
    pub checkpoint_lsn: Lsn,
    /// End of the last whole mini-transaction.
    pub end_lsn: Lsn,
    /// Every mini-transaction's payload after the checkpoint, in LSN order: its end LSN and its place in `bytes`.
    pub groups: Vec<(Lsn, Range<usize>)>,
    /// The log bytes the ranges point into.
    pub bytes: Vec<u8>,
}

impl Scan {
    pub(super) fn run(device: &dyn Device, geometry: Geometry, header: &Header) -> Result<Scan> {
        let mut reader = Reader::new(device, geometry, header.checkpoint_lsn);
        let mut groups = Vec::new();
        let mut at = reader.skip;
        while let Some(payload) = reader.group_at(at, header)? {
            at = payload.end;
            groups.push((reader.lsn_of(at), payload));
        }
        let end_lsn = reader.lsn_of(at);
        let mut bytes = reader.bytes;
        bytes.truncate(at);
        Ok(Scan { checkpoint_lsn: header.checkpoint_lsn, end_lsn, groups, bytes })
    }
}

/// Reads the ring from a block on, as far as needed, at most once around.
struct Reader<'d> {
    device: &'d dyn Device,
    geometry: Geometry,
    chunk: AlignedBuf,
    /// LSN of `bytes[0]`, a block boundary.
    base: u64,
    /// Bytes between the block boundary and the checkpoint.
    skip: usize,
    bytes: Vec<u8>,
}

impl<'d> Reader<'d> {
    fn new(device: &'d dyn Device, geometry: Geometry, checkpoint: Lsn) -> Reader<'d> {
        let base = format::block_floor(checkpoint.0);
        let chunk = AlignedBuf::zeroed(CHUNK_BYTES.min(geometry.ring_bytes()) as usize);
        Reader { device, geometry, chunk, base, skip: (checkpoint.0 - base) as usize, bytes: Vec::new() }
    }

    fn lsn_of(&self, at: usize) -> Lsn {
        Lsn(self.base + at as u64)
    }

    /// The payload's place, if a group that verifies starts at `at`.
    fn group_at(&mut self, at: usize, header: &Header) -> Result<Option<Range<usize>>> {
        let body = at + FRAME_BYTES;
        if !self.read_up_to(body)? {
            return Ok(None);
        }
        let (len, checksum) = format::split_frame(&self.bytes[at..body]);
        let end = body.saturating_add(len as usize);
        if len == 0 || !self.read_up_to(end)? {
            return Ok(None);
        }
        let crc = crc32c::crc32c(&self.bytes[body..end]);
        let expected = format::group_checksum(crc, len, self.lsn_of(at), header.generation);
        Ok((checksum == expected).then_some(body..end))
    }

    /// Reads until `bytes` has `end` bytes; false if the ring does not go on that far.
    fn read_up_to(&mut self, end: usize) -> Result<bool> {
        if end as u64 > self.geometry.ring_bytes() {
            return Ok(false);
        }
        while self.bytes.len() < end {
            let (offset, before_end) = self.geometry.place(self.base + self.bytes.len() as u64);
            let once_around = self.geometry.ring_bytes() - self.bytes.len() as u64;
            let len = CHUNK_BYTES.min(before_end).min(once_around) as usize;
            self.device.read_at(offset, &mut self.chunk[..len])?;
            self.bytes.extend_from_slice(&self.chunk[..len]);
        }
        Ok(true)
    }
}
