//! Sorted runs of entries in a temporary file.
//!
//! A run is a sequence of blocks of [`BLOCK_BYTES`], each of which holds whole entries:
//!
//! | block | |
//! |---|---|
//! | 0 | CRC-32C of the bytes that follow and of the block's number |
//! | 4 | bytes used, these eight counted |
//! | 8 | entries: length of the key, of the index columns, of the covered bytes (each `u16`), key, covered bytes |
//!
//! Rules
//! 1. The file is created for the first run. It grows before a block is written beyond its end, so a full disk is an
//!    error of the growth.
//! 2. Blocks are never written twice. Those of runs that have been merged are discarded.

use super::batch::{BuildEntry, EntryBatch, first_word};
use crate::error::{Error, Result};
use crate::stats::Stats;
use highwater_storage::{AlignedBuf, Device, Placement, StorageSet};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Bytes that are read or written at once. The longest entry, half of the largest page, is an eighth of it.
pub(super) const BLOCK_BYTES: usize = 64 << 10;
const HEAD_BYTES: usize = 8;
/// The three lengths of an entry.
const LENGTHS_BYTES: usize = 6;
/// The file grows by this many blocks.
const GROWTH_BLOCKS: u32 = 64;

/// A run: the numbers of its blocks.
pub(super) type SortedRun = Range<u32>;

/// The temporary file and what is in it.
pub(super) struct Runs<'s> {
    storage: &'s StorageSet,
    stats: &'s Stats,
    device: Option<Arc<dyn Device>>,
    /// Number of blocks in the file, and the next block to be written.
    room: u32,
    next: u32,
    /// The runs to be merged, the oldest first.
    runs: VecDeque<SortedRun>,
}

impl<'s> Runs<'s> {
    /// No runs, and no file.
    pub(super) fn new(storage: &'s StorageSet, stats: &'s Stats) -> Runs<'s> {
        Runs { storage, stats, device: None, room: 0, next: 0, runs: VecDeque::new() }
    }

    /// Whether there is no run.
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Runs that there are.
    pub(super) fn count(&self) -> usize {
        self.runs.len()
    }

    /// Sorts a batch, writes it as a run, and empties it.
    ///
    /// # Errors
    /// A full disk, another I/O error.
    pub(super) fn write(&mut self, batch: &mut EntryBatch) -> Result<()> {
        batch.sort();
        let mut writer = self.writer();
        batch.entries().try_for_each(|entry| writer.push(entry))?;
        writer.finish()?;
        batch.clear();
        Ok(())
    }

    pub(super) fn writer(&mut self) -> RunWriter<'_, 's> {
        RunWriter { start: self.next, runs: self, block: AlignedBuf::zeroed(BLOCK_BYTES), used: HEAD_BYTES }
    }

    /// The oldest runs, `max` together: no runs of this any more.
    pub(super) fn take(&mut self, max: usize) -> Vec<SortedRun> {
        self.runs.drain(..max.min(self.runs.len())).collect()
    }

    /// Reads a run.
    ///
    /// # Errors
    /// A damaged block, an I/O error.
    pub(super) fn reader(&self, run: &SortedRun) -> Result<RunReader> {
        let device = self.device.clone().ok_or_else(|| Error::Usage("there is no run yet".to_string()))?;
        RunReader::open(device, run.clone())
    }

    /// Frees the blocks of a run (rule 2).
    ///
    /// # Errors
    /// An I/O error.
    pub(super) fn discard(&self, run: &SortedRun) -> Result<()> {
        let waits = self.runs.iter().any(|other| other.start < run.end && run.start < other.end);
        debug_assert!(!waits, "rule 2: blocks {run:?} are discarded, and a run waits there");
        let Some(device) = &self.device else { return Ok(()) };
        Ok(device.discard(offset_of(run.start), u64::from(run.end - run.start) * BLOCK_BYTES as u64)?)
    }

    /// Writes a block after the others.
    fn write_block(&mut self, block: &[u8]) -> Result<()> {
        let device = match &self.device {
            Some(device) => device,
            None => self.device.insert(self.storage.temporary()?),
        };
        if self.next == self.room {
            let room = self.room.checked_add(GROWTH_BLOCKS).ok_or_else(|| too_many(&**device))?;
            device.set_len_bytes(offset_of(room))?;
            self.room = room;
        }
        debug_assert!(self.next < self.room, "rule 1: block {} is written beyond the end of the file", self.next);
        device.write_at(offset_of(self.next), block, Placement::Other)?;
        self.stats.sort_bytes_written.add(block.len() as u64);
        self.next += 1;
        Ok(())
    }
}

#[cold]
fn too_many(device: &dyn Device) -> Error {
    Error::Usage(format!("{} cannot have more blocks of {BLOCK_BYTES} bytes", device.name()))
}

fn offset_of(block: u32) -> u64 {
    u64::from(block) * BLOCK_BYTES as u64
}

fn checksum(block: &[u8], number: u32) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&block[size_of::<u32>()..]), &number.to_le_bytes())
}

/// A run that is being written.
pub(super) struct RunWriter<'r, 's> {
    runs: &'r mut Runs<'s>,
    start: u32,
    block: AlignedBuf,
    used: usize,
}

impl RunWriter<'_, '_> {
    /// The next entry, in ascending order.
    ///
    /// # Errors
    /// A full disk, another I/O error.
    pub(super) fn push(&mut self, entry: BuildEntry<'_>) -> Result<()> {
        let (key_bytes, covered_bytes) = (entry.key.len(), entry.covered.len());
        let bytes = LENGTHS_BYTES + key_bytes + covered_bytes;
        if self.used + bytes > BLOCK_BYTES {
            self.end_block()?;
        }
        debug_assert!(HEAD_BYTES + bytes <= BLOCK_BYTES, "an entry of {bytes} bytes has no room in a block");
        let longest = key_bytes.max(covered_bytes);
        debug_assert!(longest <= usize::from(u16::MAX), "a key or covered columns of {longest} bytes");
        let (lengths, room) = self.block[self.used..][..bytes].split_at_mut(LENGTHS_BYTES);
        for (at, length) in [key_bytes, entry.columns_bytes, covered_bytes].into_iter().enumerate() {
            lengths[2 * at..][..2].copy_from_slice(&(length as u16).to_le_bytes());
        }
        room[..key_bytes].copy_from_slice(entry.key);
        room[key_bytes..].copy_from_slice(entry.covered);
        self.used += bytes;
        Ok(())
    }

    /// Ends the run, which waits to be merged from then on. A run without entries is not kept.
    ///
    /// # Errors
    /// A full disk, another I/O error.
    pub(super) fn finish(mut self) -> Result<()> {
        if self.used > HEAD_BYTES {
            self.end_block()?;
        }
        let before = self.runs.runs.back().map_or(0, |run| run.end);
        debug_assert!(before <= self.start, "rule 2: a run at {} overlaps the previous one, to {before}", self.start);
        if self.runs.next > self.start {
            self.runs.runs.push_back(self.start..self.runs.next);
        }
        Ok(())
    }

    fn end_block(&mut self) -> Result<()> {
        let used = self.used;
        debug_assert!((HEAD_BYTES + 1..=BLOCK_BYTES).contains(&used), "a block of {used} bytes is written");
        self.block[4..HEAD_BYTES].copy_from_slice(&(self.used as u32).to_le_bytes());
        let checksum = checksum(&self.block, self.runs.next);
        self.block[..4].copy_from_slice(&checksum.to_le_bytes());
        self.used = HEAD_BYTES;
        self.runs.write_block(&self.block)
    }
}

/// A run that is being read: at one of its entries, or at its end.
pub(super) struct RunReader {
    device: Arc<dyn Device>,
    /// Blocks that have not been read.
    left: SortedRun,
    block: AlignedBuf,
    used: usize,
    /// Offset of the next entry.
    next: usize,
    key: Range<usize>,
    columns_bytes: usize,
    covered: Range<usize>,
    word: u64,
}

impl RunReader {
    fn open(device: Arc<dyn Device>, run: SortedRun) -> Result<RunReader> {
        let (block, none) = (AlignedBuf::zeroed(BLOCK_BYTES), HEAD_BYTES);
        let (key, columns_bytes, covered) = (0..0, 0, 0..0);
        let mut reader =
            RunReader { device, left: run, block, used: none, next: none, key, columns_bytes, covered, word: 0 };
        reader.advance()?;
        Ok(reader)
    }

    /// The present entry.
    pub(super) fn entry(&self) -> BuildEntry<'_> {
        let [key, covered] = [&self.key, &self.covered].map(|range| &self.block[range.clone()]);
        BuildEntry { key, columns_bytes: self.columns_bytes, covered }
    }

    /// Its first bytes as a number.
    pub(super) fn word(&self) -> u64 {
        self.word
    }

    /// Goes to the next entry; false after the last one.
    ///
    /// # Errors
    /// A damaged block, an I/O error.
    pub(super) fn advance(&mut self) -> Result<bool> {
        if self.next == self.used {
            let Some(block) = self.left.next() else { return Ok(false) };
            self.read(block)?;
        }
        let lengths = &self.block[self.next..][..LENGTHS_BYTES];
        let length = |at: usize| usize::from(u16::from_le_bytes([lengths[at], lengths[at + 1]]));
        let (start, columns_bytes) = (self.next + LENGTHS_BYTES, length(2));
        let end = start + length(0);
        let next = end + length(4);
        (self.key, self.columns_bytes, self.covered, self.next) = (start..end, columns_bytes, end..next, next);
        self.word = first_word(&self.block[self.key.clone()]);
        Ok(true)
    }

    /// Reads a block. If the checksum is right, the block is as it was written, so its lengths are right too.
    fn read(&mut self, block: u32) -> Result<()> {
        self.device.read_at(offset_of(block), &mut self.block)?;
        let word = |at: usize| u32::from_le_bytes(self.block[at..at + 4].try_into().expect("four bytes"));
        if word(0) != checksum(&self.block, block) {
            return Err(Error::Corrupt(format!("block {block} of {} is damaged", self.device.name())));
        }
        (self.used, self.next) = (word(4) as usize, HEAD_BYTES);
        Ok(())
    }
}
