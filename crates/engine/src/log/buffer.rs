//! The log buffer: two of equal size, one appended to, one being written.
//!
//! Rules
//! 1. The active buffer begins at a block boundary of the LSN; bytes `[base, end)` are the log's.
//! 2. Writing takes the active buffer whole and leaves the spare in its place, which inherits only the last, partly
//!    filled block. So appends go on while the taken one is on its way to the device, and no byte is ever shared.
//! 3. `end` becomes visible to others after `in_order` ran (the checkpointer relies on it: a change below the visible end
//!    is on the flush list).

use super::format::{BLOCK_BYTES, block_ceil, block_floor};
use crate::types::Lsn;
use highwater_storage::AlignedBuf;
use parking_lot::{Mutex, MutexGuard};
use std::sync::atomic::{AtomicU64, Ordering};

/// The buffer that is appended to, and its end.
pub(super) struct LogBuffer {
    active: Mutex<Active>,
    end: AtomicU64,
}

/// The inside of the buffer mutex.
pub(super) struct Active {
    memory: AlignedBuf,
    base: u64,
    end: u64,
    /// Mixed into the checksum of every group.
    pub(super) generation: u64,
}

/// Log bytes `[base, end)` at the beginning of a taken buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Batch {
    pub(super) base: u64,
    pub(super) end: u64,
}

impl LogBuffer {
    /// A buffer for groups of up to `longest_group` bytes, ending at `end`.
    pub(super) fn new(longest_group: usize, end: Lsn) -> LogBuffer {
        let active = Active { memory: LogBuffer::memory(longest_group), base: end.0, end: end.0, generation: 0 };
        LogBuffer { active: Mutex::new(active), end: AtomicU64::new(end.0) }
    }

    /// Memory for one buffer: beside the longest group the partly filled block in front of it.
    pub(super) fn memory(longest_group: usize) -> AlignedBuf {
        AlignedBuf::zeroed(block_ceil(longest_group as u64 + BLOCK_BYTES) as usize)
    }

    #[inline]
    pub(super) fn lock(&self) -> MutexGuard<'_, Active> {
        self.active.lock()
    }

    #[inline]
    pub(super) fn end_lsn(&self) -> Lsn {
        Lsn(self.end.load(Ordering::Acquire))
    }

    /// Makes the end visible; the caller holds the lock, as `_active` proves.
    #[inline]
    pub(super) fn publish(&self, _active: &MutexGuard<'_, Active>, end: Lsn) {
        self.end.store(end.0, Ordering::Release);
    }
}

impl Active {
    /// Whether `bytes` more fit.
    #[inline]
    pub(super) fn fits(&self, bytes: usize) -> bool {
        (self.end - self.base) as usize + bytes <= self.memory.len()
    }

    #[inline]
    pub(super) fn end(&self) -> Lsn {
        Lsn(self.end)
    }

    /// Appends bytes that fit.
    #[inline]
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let at = (self.end - self.base) as usize;
        self.memory[at..at + bytes.len()].copy_from_slice(bytes);
        self.end += bytes.len() as u64;
    }

    /// Gives out LSNs for bytes that nobody will ever write: the log is poisoned.
    pub(super) fn skip(&mut self, bytes: usize) {
        self.end += bytes as u64;
    }

    /// Begins a generation at a block boundary.
    pub(super) fn restart(&mut self, start: Lsn, generation: u64) {
        debug_assert_eq!(block_floor(start.0), start.0);
        (self.base, self.end, self.generation) = (start.0, start.0, generation);
    }

    /// Exchanges the memory for `spare`; afterwards `spare` holds the batch.
    pub(super) fn take(&mut self, spare: &mut AlignedBuf) -> Batch {
        let batch = Batch { base: self.base, end: self.end };
        std::mem::swap(&mut self.memory, spare);
        self.base = block_floor(self.end);
        let tail = (self.base - batch.base) as usize..(self.end - batch.base) as usize;
        self.memory[..tail.len()].copy_from_slice(&spare[tail]);
        batch
    }
}

impl Batch {
    /// The batch's blocks in `taken`; what follows its end in the last block becomes zeros.
    pub(super) fn blocks(self, taken: &mut AlignedBuf) -> &[u8] {
        let (used, whole) = ((self.end - self.base) as usize, (block_ceil(self.end) - self.base) as usize);
        taken[used..whole].fill(0);
        &taken[..whole]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_buffer_leaves_its_last_block_behind() {
        let buffer = LogBuffer::new(8192, Lsn(4096));
        let mut spare = LogBuffer::memory(8192);
        spare.fill(0xEE);
        let mut active = buffer.lock();
        active.push(&[1; 5000]);
        let batch = active.take(&mut spare);
        assert_eq!(batch, Batch { base: 4096, end: 9096 });
        let blocks = batch.blocks(&mut spare);
        assert_eq!(blocks.len(), 8192);
        assert!(blocks[..5000].iter().all(|&b| b == 1) && blocks[5000..].iter().all(|&b| b == 0));
        active.push(&[2; 10]);
        let batch = active.take(&mut spare);
        assert_eq!(batch, Batch { base: 8192, end: 9106 });
        let blocks = batch.blocks(&mut spare);
        assert!(blocks[..904].iter().all(|&b| b == 1) && blocks[904..914].iter().all(|&b| b == 2));
    }

    #[test]
    fn the_longest_group_fits_after_any_tail() {
        let buffer = LogBuffer::new(10_000, Lsn(4096));
        let mut active = buffer.lock();
        active.push(&[1; 4095]);
        assert!(active.fits(10_000));
        active.push(&[2; 10_000]);
        assert!(!active.fits(10_000));
        active.take(&mut LogBuffer::memory(10_000));
        assert!(active.fits(10_000));
    }

    #[test]
    fn a_take_at_a_block_boundary_leaves_nothing() {
        let buffer = LogBuffer::new(8192, Lsn(4096));
        let mut spare = LogBuffer::memory(8192);
        let mut active = buffer.lock();
        active.push(&[1; 4096]);
        assert_eq!(active.take(&mut spare), Batch { base: 4096, end: 8192 });
        assert_eq!(active.take(&mut spare), Batch { base: 8192, end: 8192 });
    }
}
