//! Latch-free views of pages. Latched and latch-free bytes are searched by the same code (`PageBytes`).
//!
//! Rules
//! 1. Bytes read through [`OptimisticPage`] may be torn or belong to another page; they are used only if
//!    [`OptimisticPage::validate`] returns `true` after the reads.
//! 2. Reads are volatile, so the compiler loads each value once and cannot use a second, different load after a check.
//! 3. An offset beyond the page wraps around: the bytes read are wrong, but in the pool's memory. A read that begins at
//!    the page's end may reach up to 7 bytes beyond its frame, into the next frame or the slack after the last one.

use super::frame::{Frame, FrameNo, Frames, READ_SLACK_BYTES};
use super::guard::PageVersion;
use super::memory::fetch;
use crate::page::PageBytes;
use crate::types::PageNo;
use std::cmp::Ordering;

const LINE_BYTES: usize = 64;
/// Lines of a record that are fetched; the processor continues by itself with those after them.
const PREFETCH_RECORD_LINES: usize = 4;
/// Lines of a page that are fetched together: all of a page of 4 KiB. More would push each other out of the fetches
/// that the processor has open.
const PREFETCH_PAGE_LINES: usize = 64;

/// A latch-free view of a resident page.
#[derive(Clone, Copy)]
pub(crate) struct OptimisticPage<'p> {
    state: &'p Frame,
    /// The frame's first byte; `mask + 1 + READ_SLACK_BYTES` bytes from there are readable while the pool lives.
    start: *const u8,
    /// Bytes of the page (a power of two) minus one.
    mask: usize,
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
        OptimisticPage { state: frames.get(frame), start, mask: page_bytes - 1, frame, page_no, version }
    }

    /// Whether the page has neither changed nor moved since the view was taken.
    #[inline]
    pub(crate) fn validate(&self) -> bool {
        self.state.latch.is_version(self.version)
    }

    /// The page as this view sees it, if it turns out to be valid.
    #[inline]
    pub(crate) fn page_version(&self) -> PageVersion {
        PageVersion { page_no: self.page_no, frame: self.frame, version: self.version }
    }

    #[inline]
    pub(crate) fn page_no(&self) -> PageNo {
        self.page_no
    }

    #[inline(always)]
    pub(super) fn frame_state(&self) -> &Frame {
        self.state
    }

    /// The frame the page was in.
    #[inline]
    pub(crate) fn frame(&self) -> FrameNo {
        self.frame
    }

    /// Has a record of `len` bytes at `offset` fetched into the processor's cache, its first few lines.
    #[inline]
    pub(crate) fn prefetch_record(&self, offset: usize, len: usize) {
        self.prefetch_bytes(offset, len.min(PREFETCH_RECORD_LINES * LINE_BYTES));
    }

    /// Has the bytes from `start` to the end of a small page fetched into the processor's cache.
    #[inline]
    pub(super) fn prefetch_from(&self, start: usize) {
        let start = start.min(self.mask) & !(LINE_BYTES - 1);
        self.prefetch_bytes(start, (self.mask + 1 - start).min(PREFETCH_PAGE_LINES * LINE_BYTES));
    }

    #[inline]
    fn prefetch_bytes(&self, offset: usize, len: usize) {
        (0..len).step_by(LINE_BYTES).for_each(|at| fetch(self.start.wrapping_add((offset + at) & self.mask)));
    }

    /// Has the frame's state and both ends of the page fetched into the processor's cache.
    #[inline]
    pub(super) fn prefetch(&self) {
        fetch(std::ptr::from_ref(self.state).cast());
        for at in [0, LINE_BYTES, self.mask + 1 - LINE_BYTES] {
            fetch(self.start.wrapping_add(at));
        }
    }

    #[inline(always)]
    fn load<T: Copy>(&self, offset: usize) -> T {
        const { assert!(size_of::<T>() <= READ_SLACK_BYTES) };
        // SAFETY: the masked offset is inside the frame and the read ends inside the slack after it (`Frames::new`);
        // that memory is always initialised and lives as long as `state`; the packed wrapper asks for no alignment; T
        // is a plain integer, so any bytes are a value. A concurrent writer makes the value meaningless, which
        // `validate` reveals (rules 1 and 2).
        unsafe { self.start.add(offset & self.mask).cast::<Unaligned<T>>().read_volatile().0 }
    }
}

#[derive(Clone, Copy)]
#[repr(C, packed)]
struct Unaligned<T>(T);

impl PageBytes for OptimisticPage<'_> {
    #[inline]
    fn page_len(&self) -> usize {
        self.mask + 1
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
        if count == 0 {
            return 0;
        }
        let (mut low, mut size) = (0, count);
        while size > 1 {
            let half = size / 2;
            let is_below = self.u32_at(offset + (low + half - 1) * STRIDE) < value;
            low = if is_below { low + half } else { low };
            size -= half;
        }
        low + usize::from(self.u32_at(offset + low * STRIDE) < value)
    }

    #[inline]
    fn word_at(&self, offset: usize, len: usize) -> u64 {
        if len == 0 {
            return 0;
        }
        // The eight bytes that end with the last requested byte: later bytes may be of a frame that was not used yet,
        // and memory that is read before it is written is mapped twice.
        let len = len.min(8);
        u64::from_be(self.load(offset.wrapping_add(len).wrapping_sub(8))) << (64 - 8 * len as u32)
    }

    #[inline]
    fn cmp_at(&self, offset: usize, len: usize, key: &[u8]) -> Ordering {
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
        out.extend((0..len).map(|n| self.u8_at(offset.wrapping_add(n))));
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
        let _ = (
            view.u32_at(4093),
            view.u8_at(usize::MAX),
            view.cmp_at(4090, 70, b"x"),
            view.lower_bound::<10>(1, 9999, 5),
        );
        assert_eq!(view.cmp_at(4091, 5, b"\0\0\0\0\0"), Ordering::Equal);
        assert_eq!(view.lower_bound::<10>(100, 1, u32::from_le_bytes(*b"abcd")), 0);
        assert_eq!(view.lower_bound::<10>(100, 1, u32::MAX), 1);
        assert_eq!(view.word_at(100, 3), u64::from_be_bytes(*b"abc\0\0\0\0\0"));
        assert_eq!((view.word_at(117, 8), view.word_at(4095, 1)), (u64::from_be_bytes(*b"rst\0\0\0\0\0"), 0));
        assert_eq!(view.word_at(100, 0), 0);
        let mut out = vec![];
        view.copy_at(100, 3, &mut out);
        assert_eq!(out, b"abc");
    }
}
