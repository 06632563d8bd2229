//! Reading integers and byte strings out of a page, checked.
//!
//! Rules
//! 1. An offset beyond the page reads as 0 (`Less`, nothing): the caller may be looking at a page that changes under it
//!    and learns afterwards, by validation, that what it read means nothing. No read panics.

use std::cmp::Ordering;

/// Bounds-checked reads of page bytes, so that one search runs on latched and on optimistic pages.
/// Out-of-range reads return 0 / `Ordering::Less` / copy nothing (the validation will fail or the page is corrupt).
pub trait PageBytes {
    /// Bytes of the page.
    fn page_len(&self) -> usize;
    /// Byte at `offset`.
    fn u8_at(&self, offset: usize) -> u8;
    /// Little-endian u16 at `offset`.
    fn u16_at(&self, offset: usize) -> u16;
    /// Little-endian u32 at `offset`.
    fn u32_at(&self, offset: usize) -> u32;
    /// Little-endian u64 at `offset`.
    fn u64_at(&self, offset: usize) -> u64 {
        u64::from(self.u32_at(offset)) | u64::from(self.u32_at(offset.wrapping_add(4))) << 32
    }
    /// How many of the `count` ascending little-endian u32s at `offset`, `offset + STRIDE`, ... are below `value`.
    fn lower_bound<const STRIDE: usize>(&self, offset: usize, count: usize, value: u32) -> usize {
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = (low + high) / 2;
            if self.u32_at(offset + middle * STRIDE) < value { low = middle + 1 } else { high = middle }
        }
        low
    }
    /// Compares `len` bytes at `offset` with `key` as byte strings (`stored.cmp(key)`).
    fn cmp_at(&self, offset: usize, len: usize, key: &[u8]) -> Ordering;
    /// Appends `len` bytes at `offset` to `out`.
    fn copy_at(&self, offset: usize, len: usize, out: &mut Vec<u8>);
}

/// The `N` bytes at `offset`, zeros when they are not all inside.
#[inline(always)]
fn array_at<const N: usize>(page: &[u8], offset: usize) -> [u8; N] {
    match page.get(offset..).and_then(|tail| tail.first_chunk::<N>()) {
        Some(bytes) => *bytes,
        None => [0; N],
    }
}

/// Bytes `offset..offset + len`, empty when they are not all inside.
#[inline(always)]
pub(crate) fn slice_at(page: &[u8], offset: usize, len: usize) -> &[u8] {
    page.get(offset..offset.wrapping_add(len)).unwrap_or(&[])
}

impl PageBytes for [u8] {
    #[inline(always)]
    fn page_len(&self) -> usize {
        self.len()
    }
    #[inline(always)]
    fn u8_at(&self, offset: usize) -> u8 {
        self.get(offset).copied().unwrap_or(0)
    }
    #[inline(always)]
    fn u16_at(&self, offset: usize) -> u16 {
        u16::from_le_bytes(array_at(self, offset))
    }
    #[inline(always)]
    fn u32_at(&self, offset: usize) -> u32 {
        u32::from_le_bytes(array_at(self, offset))
    }
    #[inline(always)]
    fn u64_at(&self, offset: usize) -> u64 {
        u64::from_le_bytes(array_at(self, offset))
    }
    #[inline(always)]
    fn lower_bound<const STRIDE: usize>(&self, offset: usize, count: usize, value: u32) -> usize {
        let all = self.get(offset..).unwrap_or(&[]);
        let (chunks, _) = all.as_chunks::<STRIDE>();
        let is_below =
            |chunk: &[u8; STRIDE]| chunk.first_chunk().is_some_and(|bytes| u32::from_le_bytes(*bytes) < value);
        chunks.get(..count).unwrap_or(chunks).partition_point(is_below)
    }
    #[inline(always)]
    fn cmp_at(&self, offset: usize, len: usize, key: &[u8]) -> Ordering {
        match self.get(offset..offset.wrapping_add(len)) {
            Some(stored) => stored.cmp(key),
            None => Ordering::Less,
        }
    }
    #[inline]
    fn copy_at(&self, offset: usize, len: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(slice_at(self, offset, len));
    }
}

/// Stores a little-endian u16. The caller has checked the range.
#[inline(always)]
pub(crate) fn put_u16(page: &mut [u8], offset: usize, value: u16) {
    page[offset..offset + 2].copy_from_slice(&value.to_le_bytes());
}

/// Stores a little-endian u32. The caller has checked the range.
#[inline(always)]
pub(crate) fn put_u32(page: &mut [u8], offset: usize, value: u32) {
    page[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
}

/// Stores a little-endian u64. The caller has checked the range.
#[inline(always)]
pub(crate) fn put_u64(page: &mut [u8], offset: usize, value: u64) {
    page[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
}
