//! Bounds-checked reads of integers and byte strings in a page.
//!
//! Rules
//! 1. An offset beyond the page reads as 0 (`Less`, nothing) on a latched page and as any value on an optimistic view:
//!    such a page may change during the read, and the caller detects that afterwards by validation. No read panics or
//!    leaves the pool's memory.

use std::cmp::Ordering;

/// Bounds-checked reads of page bytes, so that one search runs on latched and on optimistic pages.
/// Out-of-range reads return 0 / `Ordering::Less` / copy nothing on latched pages, anything on optimistic ones (whose
/// validation will fail, unless the page is corrupt).
pub(crate) trait PageBytes {
    fn page_len(&self) -> usize;
    fn u8_at(&self, offset: usize) -> u8;
    /// Little-endian u16 at `offset`.
    fn u16_at(&self, offset: usize) -> u16;
    /// Little-endian u32 at `offset`.
    fn u32_at(&self, offset: usize) -> u32;
    /// Little-endian u64 at `offset`.
    fn u64_at(&self, offset: usize) -> u64;
    /// Number of values below `value` among the `count` ascending little-endian u32s at `offset`, `offset + STRIDE`,
    /// ...
    fn lower_bound<const STRIDE: usize>(&self, offset: usize, count: usize, value: u32) -> usize;
    /// The first `len` (at most 8) bytes at `offset` as a big-endian number, padded with zeros at the end.
    fn word_at(&self, offset: usize, len: usize) -> u64;
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

/// Fewer than eight bytes as a big-endian number, padded with zeros at the end.
#[inline(always)]
fn short_word(bytes: &[u8]) -> u64 {
    let (mut word, mut rest, mut room) = (0, bytes, 64);
    if let Some((four, behind)) = rest.split_first_chunk() {
        room -= 32;
        word |= u64::from(u32::from_be_bytes(*four)) << room;
        rest = behind;
    }
    if let Some((two, behind)) = rest.split_first_chunk() {
        room -= 16;
        word |= u64::from(u16::from_be_bytes(*two)) << room;
        rest = behind;
    }
    rest.first().map_or(word, |one| word | u64::from(*one) << (room - 8))
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
    fn word_at(&self, offset: usize, len: usize) -> u64 {
        let len = len.min(8);
        if len == 0 {
            return 0;
        }
        let unused = 64 - 8 * len as u32;
        let tail = self.get(offset..).unwrap_or(&[]);
        match tail.first_chunk() {
            Some(bytes) => u64::from_be_bytes(*bytes) >> unused << unused,
            None => short_word(tail) >> unused << unused,
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_padded_behind() {
        let bytes = *b"abcdefghij";
        for offset in 0..12 {
            for len in 0..=8 {
                let mut expected = [0; 8];
                let there = &bytes[offset.min(10)..(offset + len).min(10)];
                expected[..there.len()].copy_from_slice(there);
                assert_eq!(bytes[..].word_at(offset, len), u64::from_be_bytes(expected), "{offset} {len}");
            }
        }
    }

    #[test]
    fn lower_bound_counts_what_is_below() {
        let page: Vec<u8> = (0..20u32).flat_map(|n| [&(n * 2).to_le_bytes()[..], &[9; 6]].concat()).collect();
        for value in 0..45 {
            assert_eq!(page.lower_bound::<10>(0, 20, value), (value as usize).div_ceil(2).min(20));
        }
        assert_eq!(page.lower_bound::<10>(500, 20, 7), 0);
    }
}
