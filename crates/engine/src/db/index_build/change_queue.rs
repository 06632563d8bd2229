//! Logged changes that wait until the tree is filled: in memory while they are few, otherwise in a temporary file.
//!
//! Rules
//! 1. The queue returns pieces in the order of their insertion.
//! 2. The file is useless after a crash, so it is never synced. A damaged piece is an error.

use crate::error::{Error, Result};
use crate::stats::Stats;
use crate::txn::LoggedChanges;
use highwater_storage::{AlignedBuf, Device, Placement, StorageSet};
use std::collections::VecDeque;
use std::sync::Arc;

/// Pieces are written at multiples of this many bytes.
const BLOCK_BYTES: usize = 4096;

/// A piece in the file.
struct Piece {
    at: u64,
    bytes: usize,
    count: usize,
    checksum: u32,
}

/// See the file's head.
pub(super) struct ChangeQueue<'s> {
    storage: &'s StorageSet,
    stats: &'s Stats,
    device: Option<Arc<dyn Device>>,
    /// File offset of the next piece.
    end: u64,
    pieces: VecDeque<Piece>,
}

impl<'s> ChangeQueue<'s> {
    /// An empty queue, without a file.
    pub(super) fn new(storage: &'s StorageSet, stats: &'s Stats) -> ChangeQueue<'s> {
        ChangeQueue { storage, stats, device: None, end: 0, pieces: VecDeque::new() }
    }

    /// Writes a piece after the others.
    ///
    /// # Errors
    /// A full disk, another I/O error.
    pub(super) fn push(&mut self, changes: &LoggedChanges) -> Result<()> {
        if changes.count == 0 {
            return Ok(());
        }
        let device = match &self.device {
            Some(device) => device,
            None => self.device.insert(self.storage.temporary()?),
        };
        let mut block = AlignedBuf::zeroed(changes.bytes.len().next_multiple_of(BLOCK_BYTES));
        block[..changes.bytes.len()].copy_from_slice(&changes.bytes);
        let end = self.end + block.len() as u64;
        device.set_len_bytes(end)?;
        device.write_at(self.end, &block, Placement::Other)?;
        self.stats.sort_bytes_written.add(block.len() as u64);
        let (bytes, count, checksum) = (changes.bytes.len(), changes.count, crc32c::crc32c(&block));
        self.pieces.push_back(Piece { at: self.end, bytes, count, checksum });
        self.end = end;
        debug_assert!(self.pieces.iter().is_sorted_by_key(|piece| piece.at), "rule 1: the pieces are out of order");
        Ok(())
    }

    /// The oldest piece; `None` if the queue is empty.
    ///
    /// # Errors
    /// A damaged piece, an I/O error.
    pub(super) fn pop(&mut self) -> Result<Option<LoggedChanges>> {
        let (Some(piece), Some(device)) = (self.pieces.pop_front(), &self.device) else { return Ok(None) };
        let mut block = AlignedBuf::zeroed(piece.bytes.next_multiple_of(BLOCK_BYTES));
        device.read_at(piece.at, &mut block)?;
        if crc32c::crc32c(&block) != piece.checksum {
            return Err(Error::Corrupt(format!("{}: noted changes of an index are damaged", device.name())));
        }
        let end = piece.at + block.len() as u64;
        debug_assert!(end <= self.end, "a piece ends at {end}, after the last one, at {}", self.end);
        debug_assert!(self.pieces.front().is_none_or(|next| end <= next.at), "rule 1: a piece is discarded that waits");
        device.discard(piece.at, block.len() as u64)?;
        if self.pieces.is_empty() {
            self.end = 0;
        }
        Ok(Some(LoggedChanges { bytes: block[..piece.bytes].to_vec(), count: piece.count }))
    }
}
