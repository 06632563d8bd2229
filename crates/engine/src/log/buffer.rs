//! The log buffer: two of equal size, one appended to, one being written.
//!
//! Rules
//! 1. The active buffer begins at a block boundary of the LSN and has the blocks of the device: bytes `[base, end)` are
//!    redo, and the mark of a block is written together with the block.
//! 2. A write takes the whole active buffer and replaces it by the spare one, with a copy of the last, partly filled
//!    block. So appends continue while the taken buffer is written to the device, and the two share no byte.
//! 3. `end` becomes visible to others after `in_order` ran (the checkpointer relies on it: a change below the visible
//!    end is on the flush list).

use super::format::{self, BLOCK_BYTES, DATA_BYTES, LogHeader, MARK_BYTES, block_floor};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard};
use crate::types::Lsn;
use highwater_storage::AlignedBuf;

/// The buffer that is appended to, and its end: what every append changes, small enough for one cache line.
pub(super) struct LogBuffer {
    active: Mutex<Active>,
    end: AtomicU64,
}

/// The inside of the buffer mutex.
pub(super) struct Active {
    memory: Box<AlignedBuf>,
    base: u64,
    end: u64,
    /// Mixed into the checksum of every group.
    pub(super) generation: u64,
}

/// Log bytes `[base, end)` at the beginning of a taken buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogBatch {
    pub(super) base: u64,
    pub(super) end: u64,
}

impl LogBuffer {
    /// A buffer for groups of up to `longest_group` bytes, ending at `end`.
    pub(super) fn new(longest_group: usize, end: Lsn) -> LogBuffer {
        let active =
            Active { memory: Box::new(LogBuffer::memory(longest_group)), base: end.0, end: end.0, generation: 0 };
        LogBuffer { active: Mutex::new(active), end: AtomicU64::new(end.0) }
    }

    /// Memory for one buffer: in addition to the longest group the partly filled block in front of it.
    pub(super) fn memory(longest_group: usize) -> AlignedBuf {
        AlignedBuf::zeroed((format::blocks_of(longest_group as u64 + DATA_BYTES) * BLOCK_BYTES) as usize)
    }

    #[inline]
    pub(super) fn lock(&self) -> MutexGuard<'_, Active> {
        self.active.lock()
    }

    #[inline]
    pub(super) fn end_lsn(&self) -> Lsn {
        Lsn(self.end.load(Ordering::Acquire))
    }

    /// Makes the end visible; the caller holds the lock (`active`).
    #[inline]
    pub(super) fn publish(&self, active: &MutexGuard<'_, Active>, end: Lsn) {
        debug_assert_eq!(active.end, end.0, "rule 3: what becomes visible is the end");
        debug_assert!(self.end.load(Ordering::Relaxed) <= end.0, "the end of the log moves back to {end}");
        self.end.store(end.0, Ordering::Release);
    }
}

impl Active {
    /// Rule 1, while the database has not stopped: it begins at a block, and its bytes are in the memory.
    #[inline]
    fn check_state(&self) {
        let (base, end) = (self.base, self.end);
        // Before the first generation begins, it is where the scan ended.
        debug_assert!(self.generation == 0 || block_floor(base) == base, "the buffer begins inside a block, at {base}");
        debug_assert!(base <= end, "the buffer from {base} ends before its begin, at {end}");
        debug_assert!(self.fits(0), "{} bytes are in a buffer of {}", end - base, self.memory.len());
    }

    /// Whether `bytes` more fit.
    #[inline]
    pub(super) fn fits(&self, bytes: usize) -> bool {
        self.end - self.base + bytes as u64 <= self.memory.len() as u64 / BLOCK_BYTES * DATA_BYTES
    }

    #[inline]
    pub(super) fn end(&self) -> Lsn {
        Lsn(self.end)
    }

    /// Appends bytes that fit.
    #[inline]
    pub(super) fn push(&mut self, bytes: &[u8]) {
        debug_assert!(self.fits(bytes.len()), "{} bytes more do not fit", bytes.len());
        self.check_state();
        let (mut at, mut rest) = (format::place_in_blocks(self.end - self.base), bytes);
        self.end += bytes.len() as u64;
        loop {
            let in_block = rest.len().min(BLOCK_BYTES as usize - at % BLOCK_BYTES as usize);
            let (now, later) = rest.split_at(in_block);
            self.memory[at..at + in_block].copy_from_slice(now);
            if later.is_empty() {
                return;
            }
            (at, rest) = (at + in_block + MARK_BYTES as usize, later);
        }
    }

    /// Assigns LSNs to bytes that will never be written: the database has stopped.
    pub(super) fn skip(&mut self, bytes: usize) {
        self.end += bytes as u64;
    }

    /// Begins a generation at a block boundary.
    pub(super) fn restart(&mut self, start: Lsn, generation: u64) {
        debug_assert!(generation > self.generation, "generation {generation} follows {}", self.generation);
        debug_assert!(start.0 >= self.end, "a generation begins at {start}, before the end of the last");
        (self.base, self.end, self.generation) = (start.0, start.0, generation);
        self.check_state();
    }

    /// Exchanges the memory for `spare`; afterwards `spare` holds the batch.
    pub(super) fn take(&mut self, spare: &mut AlignedBuf) -> LogBatch {
        self.check_state();
        debug_assert_eq!(self.memory.len(), spare.len(), "rule 2: two buffers of equal size");
        let batch = LogBatch { base: self.base, end: self.end };
        std::mem::swap(&mut *self.memory, spare);
        self.base = block_floor(self.end);
        let used = (self.end - self.base) as usize;
        if used > 0 {
            let tail = format::place_in_blocks(self.base - batch.base);
            self.memory[MARK_BYTES as usize..][..used].copy_from_slice(&spare[tail..tail + used]);
        }
        self.check_state();
        batch
    }
}

impl LogBatch {
    /// The batch's blocks in `taken`, each with its mark; what follows the batch's end in the last block becomes zeros.
    pub(super) fn blocks<'t>(self, taken: &'t mut AlignedBuf, header: &LogHeader, durable: Lsn) -> &'t [u8] {
        debug_assert!(durable.0 <= self.end, "a mark of {durable} in redo that ends at {}", self.end);
        let (used, count) = (self.end - self.base, format::blocks_of(self.end - self.base));
        let whole = (count * BLOCK_BYTES) as usize;
        if used % DATA_BYTES > 0 {
            taken[format::place_in_blocks(used)..whole].fill(0);
        }
        for (number, block) in taken[..whole].chunks_exact_mut(BLOCK_BYTES as usize).enumerate() {
            let lsn = self.base + number as u64 * DATA_BYTES;
            format::put_mark(block, durable, lsn, header.generation, header.database_id);
        }
        &taken[..whole]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: usize = BLOCK_BYTES as usize;

    #[test]
    fn an_append_changes_one_cache_line_besides_the_bytes() {
        assert!(size_of::<LogBuffer>() <= 64, "{}", size_of::<LogBuffer>());
    }

    /// The batch's bytes without the marks, which are checked.
    fn written(batch: LogBatch, taken: &mut AlignedBuf) -> Vec<u8> {
        let header = LogHeader {
            database_id: 7,
            size_bytes: 0,
            generation: 3,
            sequence: 1,
            checkpoint_lsn: Lsn(0),
            durable_lsn: Lsn(0),
            store_mark: 0,
            ring_base: Lsn(0),
        };
        let blocks = batch.blocks(taken, &header, Lsn(99)).chunks_exact(BLOCK).enumerate();
        let data = |(n, block): (usize, &[u8])| {
            let lsn = batch.base + n as u64 * DATA_BYTES;
            assert_eq!(format::mark(block, lsn, 3, 7), Some(Lsn(99)));
            block[MARK_BYTES as usize..].to_vec()
        };
        blocks.flat_map(data).collect()
    }

    #[test]
    fn a_taken_buffer_leaves_its_last_block_behind() {
        let buffer = LogBuffer::new(8192, Lsn(4080));
        let mut spare = LogBuffer::memory(8192);
        spare.fill(0xEE);
        let mut active = buffer.lock();
        active.push(&[1; 5000]);
        let batch = active.take(&mut spare);
        assert_eq!(batch, LogBatch { base: 4080, end: 9080 });
        let bytes = written(batch, &mut spare);
        assert_eq!(bytes.len(), 8160);
        assert!(bytes[..5000].iter().all(|&b| b == 1) && bytes[5000..].iter().all(|&b| b == 0));
        active.push(&[2; 10]);
        let batch = active.take(&mut spare);
        assert_eq!(batch, LogBatch { base: 8160, end: 9090 });
        let bytes = written(batch, &mut spare);
        assert!(bytes[..920].iter().all(|&b| b == 1) && bytes[920..930].iter().all(|&b| b == 2));
        assert!(bytes.len() == 4080 && bytes[930..].iter().all(|&b| b == 0));
    }

    #[test]
    fn the_longest_group_fits_after_any_tail() {
        let buffer = LogBuffer::new(10_000, Lsn(4080));
        let mut active = buffer.lock();
        active.push(&[1; 4079]);
        assert!(active.fits(10_000));
        active.push(&[2; 10_000]);
        assert!(!active.fits(10_000));
        active.take(&mut LogBuffer::memory(10_000));
        assert!(active.fits(10_000));
    }

    #[test]
    fn a_take_at_a_block_boundary_leaves_nothing() {
        let buffer = LogBuffer::new(8192, Lsn(4080));
        let mut spare = LogBuffer::memory(8192);
        let mut active = buffer.lock();
        active.push(&[1; 4080]);
        let batch = active.take(&mut spare);
        assert_eq!(batch, LogBatch { base: 4080, end: 8160 });
        assert_eq!(written(batch, &mut spare), [1; 4080]);
        assert_eq!(active.take(&mut spare), LogBatch { base: 8160, end: 8160 });
    }

    #[test]
    fn a_buffer_filled_to_its_last_byte_is_written_whole() {
        let buffer = LogBuffer::new(8160, Lsn(4080));
        let mut spare = LogBuffer::memory(8160);
        let mut active = buffer.lock();
        let room = spare.len() / BLOCK * DATA_BYTES as usize;
        active.push(&[1; 4000]);
        assert!(active.fits(room - 4000) && !active.fits(room - 3999));
        active.push(&vec![2; room - 4000]);
        let batch = active.take(&mut spare);
        let bytes = written(batch, &mut spare);
        assert!(bytes.len() == room && bytes[..4000].iter().all(|&b| b == 1) && bytes[4000..].iter().all(|&b| b == 2));
    }
}
