//! Reading the log back: first its end, then its groups in windows of bounded size.
//!
//! Rules
//! 1. The log ends at the first group that does not verify: zeros, bytes of another lap or generation, a torn or lost
//!    write. So the scan finds a prefix of the appended redo.
//! 2. Memory is one chunk, and in a window the window's bytes: a length is used only after its group has verified.
//! 3. The device is read front to back, [`CHUNK_BYTES`] at a time, at most once around.
//! 4. An end below the synced LSN is damage ([`super::damage`]).

use super::damage::{self, LogDamage};
use super::format::{self, BLOCK_BYTES, DATA_BYTES, FRAME_BYTES, LogGeometry, LogHeader, MARK_BYTES};
use crate::error::{Error, Result};
use crate::types::Lsn;
use highwater_storage::{AlignedBuf, Device};
use std::ops::Range;

/// Bytes read at once.
const CHUNK_BYTES: u64 = 1 << 20;

/// The result of a scan from the last checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveryScan {
    /// LSN of the checkpoint recovery starts from.
    pub checkpoint_lsn: Lsn,
    /// End of the last whole mini-transaction.
    pub end_lsn: Lsn,
    /// Whole mini-transactions from the checkpoint to the end.
    pub groups: u64,
    /// The damage because of which `end_lsn` is not the end of the log.
    pub damage: Option<LogDamage>,
}

impl RecoveryScan {
    /// Finds the end of the log. `is_sure` is false if another header than this one may have been the newest.
    pub(crate) fn run(
        device: &dyn Device,
        geometry: LogGeometry,
        header: &LogHeader,
        is_sure: bool,
    ) -> Result<RecoveryScan> {
        let mut groups = Groups::new(device, geometry, header, header.checkpoint_lsn);
        let mut count = 0;
        while groups.next(|_| {})?.is_some() {
            count += 1;
        }
        let end_lsn = groups.at;
        let damage = damage::behind(device, geometry, header, end_lsn, is_sure)?;
        Ok(RecoveryScan { checkpoint_lsn: header.checkpoint_lsn, end_lsn, groups: count, damage })
    }
}

/// Hands the mini-transactions of `lsns`, written in the generation of `header`, to `take`, each with its frame; says
/// up to where the ring still has them. Nothing is appended meanwhile.
///
/// # Errors
/// An I/O error, that of `take`.
pub(super) fn copy_groups(
    device: &dyn Device,
    geometry: LogGeometry,
    header: &LogHeader,
    lsns: Range<Lsn>,
    mut take: impl FnMut(Lsn, &[u8]) -> Result<()>,
) -> Result<Lsn> {
    let mut groups = Groups::new(device, geometry, header, lsns.start);
    let mut payload = Vec::new();
    while groups.at < lsns.end {
        let start = groups.at;
        payload.clear();
        let max = (lsns.end.0 - start.0) as usize;
        // The payload of a group that claims to be longer is not kept (rule 2).
        let next = groups.next(|piece| {
            if payload.len() + piece.len() <= max {
                payload.extend_from_slice(piece);
            }
        })?;
        let Some(end) = next.filter(|end| *end <= lsns.end) else { return Ok(start) };
        let frame = format::frame(crc32c::crc32c(&payload), payload.len() as u32, start, header.generation);
        take(end, &[&frame, &payload[..]].concat())?;
    }
    Ok(groups.at)
}

/// Consecutive mini-transactions in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Their payloads, one after another.
    bytes: Vec<u8>,
    /// Of each, its end LSN and the end of its payload in `bytes`.
    ends: Vec<(Lsn, usize)>,
}

impl Window {
    /// Each mini-transaction: its end LSN and its payload.
    pub fn groups(&self) -> impl DoubleEndedIterator<Item = (Lsn, &[u8])> + ExactSizeIterator {
        (0..self.ends.len()).map(|n| {
            let start = if n == 0 { 0 } else { self.ends[n - 1].1 };
            (self.ends[n].0, &self.bytes[start..self.ends[n].1])
        })
    }

    /// End LSN of the mini-transaction with this number.
    pub fn end_lsn(&self, group: usize) -> Lsn {
        self.ends[group].0
    }

    /// The payloads, one after another.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads windows of the part of the log that a scan found.
pub struct Windows<'d> {
    groups: Groups<'d>,
    end: Lsn,
}

impl<'d> Windows<'d> {
    pub(crate) fn new(
        device: &'d dyn Device,
        geometry: LogGeometry,
        header: &LogHeader,
        scan: &RecoveryScan,
    ) -> Windows<'d> {
        Windows { groups: Groups::new(device, geometry, header, scan.checkpoint_lsn), end: scan.end_lsn }
    }

    /// Replaces `window` by the mini-transactions that follow: at least one, and as many as `bytes` of memory hold.
    /// False, and an empty window, at the end.
    ///
    /// # Errors
    /// An I/O error, or [`Error::Corrupt`] if the device no longer gives what the scan found.
    pub fn read(&mut self, bytes: usize, window: &mut Window) -> Result<bool> {
        window.bytes.clear();
        window.ends.clear();
        window.bytes.reserve_exact(bytes.min((self.end.0 - self.groups.at.0) as usize));
        let used = |window: &Window| window.bytes.len() + size_of_val(&window.ends[..]);
        while self.groups.at < self.end && used(window) < bytes {
            let start = self.groups.at;
            let Some(end) = self.groups.next(|piece| window.bytes.extend_from_slice(piece))? else {
                let name = self.groups.ring.device.name();
                return Err(Error::Corrupt(format!("the redo at LSN {start} of {name} changed while it was read")));
            };
            window.ends.push((end, window.bytes.len()));
        }
        Ok(!window.ends.is_empty())
    }
}

/// Mini-transactions one after another.
struct Groups<'d> {
    ring: Ring<'d>,
    /// Start of the next one.
    at: Lsn,
    generation: u64,
}

impl<'d> Groups<'d> {
    fn new(device: &'d dyn Device, geometry: LogGeometry, header: &LogHeader, from: Lsn) -> Groups<'d> {
        Groups { ring: Ring::new(device, geometry, from), at: from, generation: header.generation }
    }

    /// End of the next group, whose payload goes to `keep` in pieces; `None` if there is none that verifies, after
    /// which there is nothing more to read.
    fn next(&mut self, mut keep: impl FnMut(&[u8])) -> Result<Option<Lsn>> {
        let mut frame = [0; FRAME_BYTES];
        let mut filled = 0;
        let whole = self.ring.pass(FRAME_BYTES as u64, |piece| {
            frame[filled..filled + piece.len()].copy_from_slice(piece);
            filled += piece.len();
        })?;
        let (len, checksum) = format::split_frame(&frame);
        if !whole || len == 0 {
            return Ok(None);
        }
        let mut crc = 0;
        let whole = self.ring.pass(u64::from(len), |piece| {
            crc = crc32c::crc32c_append(crc, piece);
            keep(piece);
        })?;
        if !whole || checksum != format::group_checksum(crc, len, self.at, self.generation) {
            return Ok(None);
        }
        self.at = Lsn(self.at.0 + FRAME_BYTES as u64 + u64::from(len));
        Ok(Some(self.at))
    }
}

/// The ring's groups as a stream of bytes, from an LSN on, at most once around.
struct Ring<'d> {
    device: &'d dyn Device,
    geometry: LogGeometry,
    chunk: AlignedBuf,
    /// Blocks in `chunk`, and what was passed of the bytes in them.
    blocks: u64,
    passed: u64,
    /// LSN of the next block to read, and of the block after a whole lap, which is not read.
    next: u64,
    last: u64,
}

impl<'d> Ring<'d> {
    fn new(device: &'d dyn Device, geometry: LogGeometry, from: Lsn) -> Ring<'d> {
        let first = format::block_floor(from.0);
        let chunk = AlignedBuf::zeroed(CHUNK_BYTES.min(geometry.ring_bytes()) as usize);
        // Nothing is read yet; the bytes in front of `from` count as passed once they are.
        Ring { device, geometry, chunk, blocks: 0, passed: from.0 - first, next: first, last: first + geometry.lap() }
    }

    /// Hands the next `len` bytes to `to`, in pieces; false if there are fewer.
    fn pass(&mut self, len: u64, mut to: impl FnMut(&[u8])) -> Result<bool> {
        if len > self.left() {
            return Ok(false);
        }
        let mut left = len;
        while left > 0 {
            if self.passed >= self.blocks * DATA_BYTES {
                self.read_chunk()?;
            }
            let in_block = (DATA_BYTES - self.passed % DATA_BYTES).min(left);
            let at = format::place_in_blocks(self.passed);
            to(&self.chunk[at..at + in_block as usize]);
            self.passed += in_block;
            left -= in_block;
        }
        Ok(true)
    }

    /// Bytes not passed yet.
    fn left(&self) -> u64 {
        (self.last - self.next) + self.blocks * DATA_BYTES - self.passed
    }

    fn read_chunk(&mut self) -> Result<()> {
        let (offset, before_end) = self.geometry.block_place(self.next);
        let once_around = (self.last - self.next) / DATA_BYTES * BLOCK_BYTES;
        let len = (self.chunk.len() as u64).min(before_end).min(once_around);
        self.device.read_at(offset, &mut self.chunk[..len as usize])?;
        self.passed -= self.blocks * DATA_BYTES;
        self.blocks = len / BLOCK_BYTES;
        self.next += self.blocks * DATA_BYTES;
        Ok(())
    }
}

const _: () = assert!(MARK_BYTES + DATA_BYTES == BLOCK_BYTES && CHUNK_BYTES.is_multiple_of(BLOCK_BYTES));
