//! A device that is only read, with changes kept in memory above it: a database that is only looked at can be
//! recovered first.
//!
//! Rules
//! 1. Nothing but reads reaches the device below.
//! 2. Memory grows with the blocks that were changed and are not discarded, never with what was read.
//! 3. Changes are lost with the last handle; `sync` promises nothing.
//! 4. The lock is held during reads from the device below, shared by readers: only writes, which go to memory, wait for
//!    them.

use crate::{Device, Placement, Result, StorageError};
use parking_lot::RwLock;
use std::collections::HashMap;
use std::io::{Error, ErrorKind};
use std::sync::Arc;

/// Unit of what is kept in memory.
const BLOCK_BYTES: u64 = 4096;

/// Changes in memory over a device that is only read.
pub struct Overlay {
    below: Arc<dyn Device>,
    changes: RwLock<Changes>,
}

struct Changes {
    len: u64,
    /// How much of the device below still counts: it shrinks when the length is cut.
    below_len: u64,
    /// Changed blocks by number.
    blocks: HashMap<u64, Box<[u8]>>,
}

impl Overlay {
    /// Nothing changed yet.
    ///
    /// # Errors
    /// The device below does not report its length.
    pub fn new(below: Arc<dyn Device>) -> Result<Overlay> {
        let len = below.len_bytes()?;
        Ok(Overlay { below, changes: RwLock::new(Changes { len, below_len: len, blocks: HashMap::new() }) })
    }

    /// Bytes of memory that changes take.
    pub fn changed_bytes(&self) -> u64 {
        self.changes.read().blocks.len() as u64 * BLOCK_BYTES
    }

    fn error(&self, operation: &'static str, offset: u64, len: usize, kind: ErrorKind) -> StorageError {
        StorageError { operation, device: self.name(), offset, len: len as u64, source: Error::from(kind) }
    }

    /// Reads what lies below; zeros where that does not count (any more).
    fn read_below(&self, changes: &Changes, offset: u64, buf: &mut [u8]) -> Result<()> {
        let there = changes.below_len.saturating_sub(offset).min(buf.len() as u64) as usize;
        let (old, new) = buf.split_at_mut(there);
        new.fill(0);
        if old.is_empty() { Ok(()) } else { self.below.read_at(offset, old) }
    }

    /// The block, changed from now on.
    fn block<'c>(&self, changes: &'c mut Changes, number: u64) -> Result<&'c mut [u8]> {
        if !changes.blocks.contains_key(&number) {
            let mut bytes = vec![0; BLOCK_BYTES as usize].into_boxed_slice();
            self.read_below(changes, number * BLOCK_BYTES, &mut bytes)?;
            changes.blocks.insert(number, bytes);
        }
        Ok(changes.blocks.entry(number).or_default())
    }
}

/// The part of `offset..end` in the block `offset` lies in: the block, where the part starts in it, its length.
fn part(offset: u64, end: u64) -> (u64, usize, usize) {
    let (number, start) = (offset / BLOCK_BYTES, offset % BLOCK_BYTES);
    (number, start as usize, (BLOCK_BYTES - start).min(end - offset) as usize)
}

impl Device for Overlay {
    fn name(&self) -> String {
        self.below.name()
    }

    fn len_bytes(&self) -> Result<u64> {
        Ok(self.changes.read().len)
    }

    fn set_len_bytes(&self, len: u64) -> Result<()> {
        let mut changes = self.changes.write();
        if len < changes.len {
            let (number, start, _) = part(len, u64::MAX);
            changes.blocks.retain(|block, _| *block <= number);
            if let Some(bytes) = changes.blocks.get_mut(&number) {
                bytes[start..].fill(0);
            }
            changes.below_len = changes.below_len.min(len);
        }
        changes.len = len;
        Ok(())
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let changes = self.changes.read();
        let end = offset.saturating_add(buf.len() as u64);
        if end > changes.len {
            return Err(self.error("read", offset, buf.len(), ErrorKind::UnexpectedEof));
        }
        let mut at = offset;
        while at < end {
            let (number, start, mut len) = part(at, end);
            let out = (at - offset) as usize;
            if let Some(bytes) = changes.blocks.get(&number) {
                buf[out..out + len].copy_from_slice(&bytes[start..start + len]);
            } else {
                // As many unchanged blocks as follow each other, at once.
                while at + (len as u64) < end && !changes.blocks.contains_key(&((at + len as u64) / BLOCK_BYTES)) {
                    len += part(at + len as u64, end).2;
                }
                self.read_below(&changes, at, &mut buf[out..out + len])?;
            }
            at += len as u64;
        }
        Ok(())
    }

    /// As a file does, a write beyond the end grows the device.
    fn write_at(&self, offset: u64, data: &[u8], _placement: Placement) -> Result<()> {
        let end = offset.checked_add(data.len() as u64);
        let end = end.ok_or_else(|| self.error("write", offset, data.len(), ErrorKind::InvalidInput))?;
        let mut changes = self.changes.write();
        let mut at = offset;
        while at < end {
            let (number, start, len) = part(at, end);
            let from = (at - offset) as usize;
            self.block(&mut changes, number)?[start..start + len].copy_from_slice(&data[from..from + len]);
            at += len as u64;
        }
        changes.len = changes.len.max(end);
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn discard(&self, offset: u64, len: u64) -> Result<()> {
        let whole = offset.div_ceil(BLOCK_BYTES)..offset.saturating_add(len) / BLOCK_BYTES;
        self.changes.write().blocks.retain(|block, _| !whole.contains(block));
        Ok(())
    }

    fn alignment_bytes(&self) -> usize {
        self.below.alignment_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FaultKind, Faults, MemoryDevice, Operation};

    /// 5 blocks of ones on a device that refuses every change.
    fn overlay() -> (Overlay, MemoryDevice) {
        let below = MemoryDevice::holding(vec![1; 5 * 4096]);
        let faults = Faults::new();
        for operation in [Operation::Write, Operation::Sync, Operation::SetLen, Operation::Discard] {
            faults.fail(operation, 1, FaultKind::ErrorForGood);
        }
        (Overlay::new(faults.wrap(Arc::new(below.clone()))).unwrap(), below)
    }

    fn read(overlay: &Overlay, offset: u64, len: usize) -> Vec<u8> {
        let mut buf = vec![9; len];
        overlay.read_at(offset, &mut buf).unwrap();
        buf
    }

    #[test]
    fn changes_are_seen_and_do_not_reach_the_device_below() {
        let (overlay, below) = overlay();
        overlay.write_at(4096, &[2; 4096], Placement::Other).unwrap();
        overlay.write_at(3 * 4096 - 1, &[3; 2], Placement::Other).unwrap();
        overlay.sync().unwrap();
        let expected = [vec![1; 4096], vec![2; 4096], vec![1; 4095], vec![3; 2], vec![1; 2 * 4096 - 1]].concat();
        assert_eq!(read(&overlay, 0, 5 * 4096), expected);
        assert_eq!(read(&overlay, 4000, 9000), expected[4000..13000]);
        assert_eq!(below.image(), vec![1; 5 * 4096]);
        assert_eq!(overlay.changed_bytes(), 3 * 4096);
    }

    #[test]
    fn what_was_cut_off_is_zeros_when_it_grows_again() {
        let (overlay, _) = overlay();
        overlay.write_at(4 * 4096, &[2; 4096], Placement::Other).unwrap();
        overlay.set_len_bytes(2 * 4096 + 10).unwrap();
        assert!(overlay.read_at(2 * 4096, &mut [0; 11]).is_err());
        overlay.set_len_bytes(6 * 4096).unwrap();
        let expected = [vec![1; 2 * 4096 + 10], vec![0; 4 * 4096 - 10]].concat();
        assert_eq!(read(&overlay, 0, 6 * 4096), expected);
        overlay.write_at(6 * 4096, &[5; 10], Placement::Other).unwrap();
        assert_eq!((overlay.len_bytes().unwrap(), read(&overlay, 6 * 4096, 10)), (6 * 4096 + 10, vec![5; 10]));
    }

    #[test]
    fn discarded_blocks_take_no_memory() {
        let (overlay, _) = overlay();
        overlay.write_at(0, &[2; 4 * 4096], Placement::Other).unwrap();
        overlay.discard(4000, 3 * 4096).unwrap();
        assert_eq!(overlay.changed_bytes(), 2 * 4096);
        assert_eq!(read(&overlay, 0, 4096), vec![2; 4096]);
    }
}
