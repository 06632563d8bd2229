//! Latch-free views of pages, and the one trait through which latched and latch-free bytes are searched alike.
//!
//! Rules
//! 1. Bytes read through [`OptimisticPage`] may be torn or belong to another page; they mean nothing until
//!    [`OptimisticPage::validate`] has said `true` after the reads.
//! 2. Reads are volatile, so the compiler loads each value once and cannot use a second, different load after a check.
//! 3. A read outside the page yields 0, `Less` or nothing; it never leaves the frame.

use super::frame::{Frame, FrameNo, Frames};
use crate::page::PageBytes;
use crate::types::PageNo;
use std::cmp::Ordering;

/// A latch-free view of a resident page.
#[derive(Clone, Copy)]
pub struct OptimisticPage<'p> {
    state: &'p Frame,
    /// The frame's first byte; all `page_bytes` behind it are readable while the pool lives.
    start: *const u8,
    page_bytes: usize,
    pub(super) frame: FrameNo,
    page_no: PageNo,
    pub(super) version: u64,
}

impl<'p> OptimisticPage<'p> {
    /// A view of a frame at a version.
    #[inline]
    pub(super) fn new(frames: &'p Frames, frame: FrameNo, page_no: PageNo, version: u64) -> OptimisticPage<'p> {
        let page_bytes = frames.page_bytes();
        let start = frames.racy(frame, 0, page_bytes).expect("the whole page lies inside its frame");
        OptimisticPage { state: frames.get(frame), start, page_bytes, frame, page_no, version }
    }

    /// Whether `len` bytes at `offset` lie inside the page.
    #[inline(always)]
    fn is_inside(&self, offset: usize, len: usize) -> bool {
        offset <= self.page_bytes && len <= self.page_bytes - offset
    }

    /// Whether the page has neither changed nor moved since the view was taken.
    #[inline]
    pub fn validate(&self) -> bool {
        self.state.latch.is_version(self.version)
    }

    /// Which page.
    pub fn page_no(&self) -> PageNo {
        self.page_no
    }

    #[inline(always)]
    fn load<T: Copy + Default>(&self, offset: usize) -> T {
        if !self.is_inside(offset, size_of::<T>()) {
            return T::default();
        }
        // SAFETY: the range was just checked to lie inside the frame, whose memory is always initialised and lives as
        // long as `frames`; the packed wrapper asks for no alignment; T is a plain integer, so any bytes are a value. A
        // concurrent writer makes the value meaningless, which `validate` reveals (rules 1 and 2).
        unsafe { std::ptr::read_volatile(self.start.add(offset).cast::<Unaligned<T>>()).0 }
    }
}

#[derive(Clone, Copy)]
#[repr(C, packed)]
struct Unaligned<T>(T);

impl PageBytes for OptimisticPage<'_> {
    #[inline]
    fn page_len(&self) -> usize {
        self.page_bytes
    }

    #[inline]
    fn u8_at(&self, offset: usize) -> u8 {
        self.load(offset)
    }

    #[inline]
    fn u16_at(&self, offset: usize) -> u16 {
        u16::from_le(self.load(offset))
    }

    #[inline]
    fn u32_at(&self, offset: usize) -> u32 {
        u32::from_le(self.load(offset))
    }

    #[inline]
    fn u64_at(&self, offset: usize) -> u64 {
        u64::from_le(self.load(offset))
    }

    #[inline]
    fn lower_bound<const STRIDE: usize>(&self, offset: usize, count: usize, value: u32) -> usize {
        let room = self.page_bytes.saturating_sub(offset.saturating_add(4));
        let count = count.min(room / STRIDE);
        let at = |index: usize| {
            // SAFETY: `index < count`, and `count` strides and four bytes from `offset` on lie inside the page; otherwise
            // as in `load`.
            u32::from_le(unsafe { self.start.add(offset + index * STRIDE).cast::<Unaligned<u32>>().read_volatile().0 })
        };
        let (mut low, mut size) = (0, count);
        while size > 0 {
            let half = size / 2;
            let is_below = at(low + half) < value;
            low = if is_below { low + half + 1 } else { low };
            size = if is_below { size - half - 1 } else { half };
        }
        low
    }

    #[inline]
    fn word_at(&self, offset: usize, len: usize) -> u64 {
        let unused = (64 - 8 * len.min(8) as u32) % 64;
        if len == 0 {
            return 0;
        }
        if self.is_inside(offset, 8) {
            return u64::from_be(self.load(offset)) >> unused << unused;
        }
        // At the end of the page: its last eight bytes, less those before `offset`.
        let before = (offset + 8).saturating_sub(self.page_bytes);
        let last = u64::from_be(self.load(self.page_bytes - 8));
        if before < 8 { (last << (8 * before)) >> unused << unused } else { 0 }
    }

    #[inline]
    fn cmp_at(&self, offset: usize, len: usize, key: &[u8]) -> Ordering {
        if !self.is_inside(offset, len) {
            return Ordering::Less;
        }
        let common = len.min(key.len());
        let mut at = 0;
        while at < common {
            let step = (common - at).min(8);
            let (mine, theirs) = (self.word_at(offset + at, step), key[at..].word_at(0, step));
            if mine != theirs {
                return mine.cmp(&theirs);
            }
            at += step;
        }
        len.cmp(&key.len())
    }

    fn copy_at(&self, offset: usize, len: usize, out: &mut Vec<u8>) {
        if self.is_inside(offset, len) {
            out.extend((offset..offset + len).map(|at| self.u8_at(at)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compares_as_byte_strings_and_stays_inside() {
        let frames = Frames::new(1, 4096).unwrap();
        // SAFETY: a new frame is held exclusively by its creator, this test.
        let bytes = unsafe { frames.bytes_mut(0) };
        bytes[100..120].copy_from_slice(b"abcdefghijklmnopqrst");
        let view = OptimisticPage::new(&frames, 0, PageNo(0), 0);
        for (from, len) in [(0, 20), (1, 7), (3, 8), (2, 17), (5, 0)] {
            let stored = &b"abcdefghijklmnopqrst"[from..from + len];
            for key in
                [&b""[..], b"a", b"b", b"bcdefgh", b"cdefghijklmnopqrs", b"cdefghijklmnopqrsu", b"defghijk", b"zz"]
            {
                assert_eq!(view.cmp_at(100 + from, len, key), stored.cmp(key), "{stored:?} {key:?}");
            }
        }
        assert_eq!(view.u16_at(100), u16::from_le_bytes(*b"ab"));
        assert_eq!(view.u32_at(101), u32::from_le_bytes(*b"bcde"));
        assert_eq!((view.u32_at(4093), view.u8_at(usize::MAX)), (0, 0));
        assert_eq!(view.cmp_at(4090, 7, b"x"), Ordering::Less);
        assert_eq!(view.cmp_at(4091, 5, b"\0\0\0\0\0"), Ordering::Equal);
        assert_eq!(view.lower_bound::<10>(100, 1, u32::from_le_bytes(*b"abcd")), 0);
        assert_eq!(view.lower_bound::<10>(100, 1, u32::MAX), 1);
        assert!(view.lower_bound::<10>(4000, 5000, 1) < 11);
        assert_eq!(view.word_at(100, 3), u64::from_be_bytes(*b"abc\0\0\0\0\0"));
        assert_eq!((view.word_at(117, 8), view.word_at(4095, 1)), (u64::from_be_bytes(*b"rst\0\0\0\0\0"), 0));
        assert_eq!((view.word_at(5000, 8), view.word_at(100, 0)), (0, 0));
        let mut out = vec![];
        view.copy_at(100, 3, &mut out);
        view.copy_at(4095, 2, &mut out);
        assert_eq!(out, b"abc");
    }
}
