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

/// Little-endian u64 at `offset` of a latched page, 0 beyond its end.
#[inline]
pub(crate) fn u64_at(page: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(array_at(page, offset))
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
