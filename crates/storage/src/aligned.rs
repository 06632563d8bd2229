//! Buffers for direct I/O: owned, zeroed, and aligned to [`ALIGNMENT_BYTES`].
//!
//! Rules
//! 1. The first byte's address is a multiple of [`ALIGNMENT_BYTES`] for the buffer's whole life: the heap block that
//!    holds it never moves and never grows.
//! 2. Large buffers cost no memory until they are touched (the allocator returns untouched zero pages).

use std::ops::{Deref, DerefMut};

/// Alignment that satisfies every device: the largest logical block size in use.
pub const ALIGNMENT_BYTES: usize = 4096;

/// Whether offset, length and address are multiples of `unit`.
pub(crate) fn is_aligned(offset: u64, data: &[u8], unit: usize) -> bool {
    let address = data.as_ptr() as usize;
    offset.is_multiple_of(unit as u64) && data.len().is_multiple_of(unit) && address.is_multiple_of(unit)
}

/// A zeroed byte buffer whose address is a multiple of [`ALIGNMENT_BYTES`].
pub struct AlignedBuf {
    heap: Vec<u8>,
    start: usize,
    len: usize,
}

impl AlignedBuf {
    /// `len` zero bytes.
    pub fn zeroed(len: usize) -> AlignedBuf {
        let heap = vec![0; len + ALIGNMENT_BYTES];
        let start = heap.as_ptr().align_offset(ALIGNMENT_BYTES);
        debug_assert!(start < ALIGNMENT_BYTES);
        AlignedBuf { heap, start, len }
    }

    /// A copy of `bytes`.
    pub fn copy_of(bytes: &[u8]) -> AlignedBuf {
        let mut buf = AlignedBuf::zeroed(bytes.len());
        buf.copy_from_slice(bytes);
        buf
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.heap[self.start..self.start + self.len]
    }
}

impl DerefMut for AlignedBuf {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.heap[self.start..self.start + self.len]
    }
}

impl Default for AlignedBuf {
    fn default() -> AlignedBuf {
        AlignedBuf::zeroed(0)
    }
}

impl std::fmt::Debug for AlignedBuf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AlignedBuf({} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_buffer_is_zeroed_and_aligned() {
        for len in [0, 1, 511, 4096, 5000, 1 << 20] {
            let buf = AlignedBuf::zeroed(len);
            assert_eq!(buf.len(), len);
            assert_eq!(buf.as_ptr() as usize % ALIGNMENT_BYTES, 0);
            assert!(buf.iter().all(|&b| b == 0));
        }
    }

    #[test]
    fn a_moved_buffer_keeps_its_bytes_and_alignment() {
        let boxed = Box::new(AlignedBuf::copy_of(b"redo"));
        let moved = *boxed;
        assert_eq!(&moved[..], b"redo");
        assert_eq!(moved.as_ptr() as usize % ALIGNMENT_BYTES, 0);
    }
}
