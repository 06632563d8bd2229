//! The write buffer: written blocks that are not yet programmed to flash. A rewrite of a buffered block is absorbed.
//!
//! Rules
//! 1. A block waits at most once. It keeps its place when rewritten and takes the stream of the last write.
//! 2. Blocks leave oldest first. A trimmed block leaves its place empty.
//! 3. No allocation after construction.

use super::table::{table, too_large};
use crate::error::Result;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Multiplicative hash of a block number.
#[derive(Default)]
pub struct LbaHasher(u64);

impl Hasher for LbaHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.write_u32(u32::from(*b)));
    }
    fn write_u32(&mut self, lba: u32) {
        self.0 = (self.0 ^ u64::from(lba)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

const EMPTY: u32 = u32::MAX;

/// A bounded queue of dirty blocks.
pub struct WriteBuffer {
    ring: Box<[(u32, u8)]>,
    head: u32,
    queued: u32,
    place: HashMap<u32, u32, BuildHasherDefault<LbaHasher>>,
}

impl WriteBuffer {
    /// An empty buffer for `blocks` blocks, at least 1.
    pub fn new(blocks: u32) -> Result<WriteBuffer> {
        let ring = table(blocks.max(1) as usize, (EMPTY, 0))?;
        let mut place = HashMap::default();
        place.try_reserve(blocks as usize * 2).map_err(|_| too_large(f64::from(blocks) * 2.0 * 9.0))?;
        Ok(WriteBuffer { ring, head: 0, queued: 0, place })
    }

    /// Puts a block in. True if it was there already: the earlier write is absorbed.
    /// The buffer must not be [full](Self::is_full).
    pub fn put(&mut self, lba: u32, stream: u8) -> bool {
        assert!(!self.is_full(), "put into a full write buffer");
        if let Some(&at) = self.place.get(&lba) {
            self.ring[at as usize].1 = stream;
            return true;
        }
        let at = (self.head + self.queued) % self.ring.len() as u32;
        self.ring[at as usize] = (lba, stream);
        self.place.insert(lba, at);
        self.queued += 1;
        false
    }

    /// Whether the oldest block must leave before another one can enter.
    pub fn is_full(&self) -> bool {
        self.queued == self.ring.len() as u32
    }

    /// Whether the block is in the buffer.
    pub fn contains(&self, lba: u32) -> bool {
        !self.place.is_empty() && self.place.contains_key(&lba)
    }

    /// Removes the oldest block; returns it and its stream.
    pub fn take(&mut self) -> Option<(u32, u8)> {
        while self.queued > 0 {
            let (lba, stream) = std::mem::replace(&mut self.ring[self.head as usize], (EMPTY, 0));
            self.head = (self.head + 1) % self.ring.len() as u32;
            self.queued -= 1;
            if lba != EMPTY {
                self.place.remove(&lba);
                return Some((lba, stream));
            }
        }
        None
    }

    /// Removes a block that was trimmed or lost.
    pub fn forget(&mut self, lba: u32) {
        if let Some(at) = self.place.remove(&lba) {
            self.ring[at as usize] = (EMPTY, 0);
        }
    }

    /// Number of buffered blocks.
    pub fn len(&self) -> usize {
        self.place.len()
    }

    /// Whether no block is buffered.
    pub fn is_empty(&self) -> bool {
        self.place.is_empty()
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.ring.len() * 8 + self.place.capacity() * 9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rewrites_are_absorbed_and_order_kept() {
        let mut buffer = WriteBuffer::new(3).unwrap();
        assert!(!buffer.put(7, 0) && !buffer.put(8, 0) && buffer.put(7, 2));
        assert_eq!((buffer.len(), buffer.is_full()), (2, false));
        buffer.put(9, 0);
        assert!(buffer.is_full() && buffer.contains(9));
        assert_eq!([buffer.take(), buffer.take()], [Some((7, 2)), Some((8, 0))]);
        buffer.put(10, 1);
        assert_eq!([buffer.take(), buffer.take(), buffer.take()], [Some((9, 0)), Some((10, 1)), None]);
    }

    #[test]
    fn forgotten_blocks_do_not_come_out() {
        let mut buffer = WriteBuffer::new(4).unwrap();
        (0..4).for_each(|lba| _ = buffer.put(lba, 0));
        buffer.forget(1);
        buffer.forget(99);
        assert!(buffer.is_full() && !buffer.contains(1));
        assert_eq!(std::iter::from_fn(|| buffer.take()).map(|b| b.0).collect::<Vec<_>>(), [0, 2, 3]);
        assert!(buffer.is_empty() && !buffer.is_full());
    }
}
