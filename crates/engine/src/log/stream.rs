//! Redo as a stream of bytes outside a ring: consecutive groups without blocks and marks. A backup stores redo in this
//! form; a restore makes a ring of it.

use super::format::{self, BLOCK_BYTES, DATA_BYTES, FRAME_BYTES, LogGeometry, LogHeader, RING_START};
use super::headers;
use crate::error::{Error, Result};
use crate::types::Lsn;
use highwater_storage::{AlignedBuf, Device, Placement};
use std::io::{ErrorKind, Read};
use std::ops::Range;

/// Blocks written at once.
const WRITE_BLOCKS: u64 = 256;

/// Reads a stream group by group and verifies each.
pub(crate) struct StreamGroups<R> {
    from: R,
    at: Lsn,
    end: Lsn,
    generation: u64,
    frame: [u8; FRAME_BYTES],
    payload: Vec<u8>,
    failed_read: Option<std::io::Error>,
}

impl<R: Read> StreamGroups<R> {
    /// The redo of `lsns` in this generation, which `from` is about to give.
    pub(crate) fn new(from: R, lsns: Range<Lsn>, generation: u64) -> StreamGroups<R> {
        let (frame, payload, failed_read) = ([0; FRAME_BYTES], Vec::new(), None);
        StreamGroups { from, at: lsns.start, end: lsns.end, generation, frame, payload, failed_read }
    }

    /// End of the next group; `None` at the end of the stream.
    ///
    /// # Errors
    /// In words, what is wrong with the stream.
    pub(crate) fn next(&mut self) -> std::result::Result<Option<Lsn>, String> {
        if self.at == self.end {
            return Ok(None);
        }
        let (at, left) = (self.at, self.end.0 - self.at.0);
        let failed_read = &mut self.failed_read;
        let mut cut = |error: std::io::Error| match error.kind() {
            ErrorKind::UnexpectedEof => format!("it ends within the redo at LSN {at}"),
            // Of an encrypted copy.
            ErrorKind::InvalidData => format!("the redo at LSN {at} does not verify: {error}"),
            _ => failed_read.insert(error).to_string(),
        };
        let mut frame = [0; FRAME_BYTES];
        self.from.read_exact(&mut frame).map_err(&mut cut)?;
        let (len, checksum) = format::split_frame(&frame);
        if len == 0 || u64::from(len) + FRAME_BYTES as u64 > left {
            return Err(format!("the redo at LSN {at} has an impossible length of {len} bytes"));
        }
        self.payload.resize(len as usize, 0);
        self.from.read_exact(&mut self.payload).map_err(cut)?;
        if checksum != format::group_checksum(crc32c::crc32c(&self.payload), len, at, self.generation) {
            return Err(format!("the redo at LSN {at} does not verify"));
        }
        self.frame = frame;
        self.at = Lsn(at.0 + FRAME_BYTES as u64 + u64::from(len));
        Ok(Some(self.at))
    }

    /// The I/O error because of which the last group could not be read, if there was one.
    pub(crate) fn take_failed_read(&mut self) -> Option<std::io::Error> {
        self.failed_read.take()
    }

    /// The start of the next group.
    pub(crate) fn at(&self) -> Lsn {
        self.at
    }

    /// Bytes from there to the end of the stream.
    pub(crate) fn left_bytes(&self) -> u64 {
        self.end.0 - self.at.0
    }

    /// The frame of the last group: its length and checksum, which depends on its place and generation too.
    pub(crate) fn frame(&self) -> [u8; FRAME_BYTES] {
        self.frame
    }

    /// The payload of the last group.
    pub(crate) fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// The source of the groups.
    pub(crate) fn into_inner(self) -> R {
        self.from
    }
}

/// Bytes of the whole groups that `bytes`, the redo from `start` on, begins with. Each was verified; none is longer
/// than `longest_bytes`.
///
/// # Errors
/// In words, what is wrong with the redo.
pub(crate) fn whole_groups(
    bytes: &[u8],
    start: Lsn,
    generation: u64,
    longest_bytes: u64,
) -> std::result::Result<usize, String> {
    let mut whole = 0;
    while let Some((frame, rest)) = bytes[whole..].split_at_checked(FRAME_BYTES) {
        let (at, (len, checksum)) = (Lsn(start.0 + whole as u64), format::split_frame(frame));
        if len == 0 || u64::from(len) > longest_bytes {
            return Err(format!("the redo at LSN {at} has an impossible length of {len} bytes"));
        }
        let Some(payload) = rest.get(..len as usize) else { break };
        if checksum != format::group_checksum(crc32c::crc32c(payload), len, at, generation) {
            return Err(format!("the redo at LSN {at} does not verify"));
        }
        whole += FRAME_BYTES + payload.len();
    }
    Ok(whole)
}

/// Bytes of a log that holds this redo between its checkpoint and its end: at least `min_bytes`.
pub(super) fn size_for(lsns: &Range<Lsn>, min_bytes: u64) -> u64 {
    let blocks = format::blocks_of(lsns.end.0 - format::block_floor(lsns.start.0)) + 3;
    min_bytes.max(RING_START + blocks * BLOCK_BYTES)
}

/// Makes the device a log as a crash would leave it: of `wanted`'s size, database and generation, with its
/// checkpoint there and the groups up to `wanted.durable_lsn`, which `read` gives. Durable on return.
///
/// # Errors
/// An error of `read` or of the device.
pub(super) fn rebuild(
    device: &dyn Device,
    wanted: LogHeader,
    mut read: impl FnMut(&mut [u8]) -> Result<()>,
) -> Result<()> {
    let LogHeader { database_id, generation, .. } = wanted;
    headers::create(device, wanted.size_bytes, database_id)?;
    let (size_bytes, lsns) = (format::whole_blocks(wanted.size_bytes), wanted.checkpoint_lsn..wanted.durable_lsn);
    let geometry = LogGeometry::new(size_bytes);
    if lsns.end.0 - lsns.start.0 > geometry.capacity_bytes() {
        return Err(Error::LogTooSmall { bytes: lsns.end.0 - lsns.start.0 });
    }
    let mut base = format::block_floor(lsns.start.0);
    while base < lsns.end.0 {
        let (offset, before_end) = geometry.block_place(base);
        let count = format::blocks_of(lsns.end.0 - base).min(WRITE_BLOCKS).min(before_end / BLOCK_BYTES);
        let mut blocks = AlignedBuf::zeroed((count * BLOCK_BYTES) as usize);
        for block in blocks.chunks_exact_mut(BLOCK_BYTES as usize) {
            let (from, to) = (lsns.start.0.max(base) - base, lsns.end.0.min(base + DATA_BYTES) - base);
            let place = |lsn: u64| format::place_in_blocks(0) + lsn as usize;
            read(&mut block[place(from)..place(to)])?;
            format::put_mark(block, lsns.start, base, generation, database_id);
            base += DATA_BYTES;
        }
        device.write_at(offset, &blocks, Placement::Redo)?;
    }
    device.sync()?;
    // Creation has written the first two.
    for sequence in [3, 4] {
        let header = LogHeader { size_bytes, sequence, ring_base: Lsn(0), ..wanted };
        let mut block = AlignedBuf::zeroed(BLOCK_BYTES as usize);
        header.encode(&mut block);
        device.write_at(header.offset(), &block, Placement::Redo)?;
    }
    Ok(device.sync()?)
}
