//! Latch-free views of pages, and the one trait through which latched and latch-free bytes are searched alike.
//!
//! Rules
//! 1. Bytes read through [`OptimisticPage`] may be torn or belong to another page; they mean nothing until
//!    [`OptimisticPage::validate`] has said `true` after the reads.
//! 2. Reads are volatile, so the compiler loads each value once and cannot use a second, different load after a check.
//! 3. A read outside the page yields 0, `Less` or nothing; it never leaves the frame.

use super::frame::{FrameNo, Frames};
use crate::page::PageBytes;
use crate::types::PageNo;
use std::cmp::Ordering;

/// A latch-free view of a resident page.
#[derive(Clone, Copy)]
pub struct OptimisticPage<'p> {
    pub(super) frames: &'p Frames,
    pub(super) frame: FrameNo,
    pub(super) page_no: PageNo,
    pub(super) version: u64,
}

impl OptimisticPage<'_> {
    /// Whether the page has neither changed nor moved since the view was taken.
    #[inline]
    pub fn validate(&self) -> bool {
        self.frames.get(self.frame).latch.is_version(self.version)
    }

    /// Which page.
    pub fn page_no(&self) -> PageNo {
        self.page_no
    }

    #[inline]
    fn load<T: Copy + Default>(&self, offset: usize) -> T {
        match self.frames.racy(self.frame, offset, size_of::<T>()) {
            None => T::default(),
            // SAFETY: `racy` has checked that the range lies inside the frame, whose memory is always initialised; the
            // packed wrapper asks for no alignment; T is a plain integer, so any bytes are a value. A concurrent
            // writer makes the value meaningless, which `validate` reveals (rules 1 and 2).
            Some(at) => unsafe { std::ptr::read_volatile(at.cast::<Unaligned<T>>()).0 },
        }
    }
}

#[derive(Clone, Copy)]
#[repr(C, packed)]
struct Unaligned<T>(T);

impl PageBytes for OptimisticPage<'_> {
    #[inline]
    fn page_len(&self) -> usize {
        self.frames.page_bytes()
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
    fn cmp_at(&self, offset: usize, len: usize, key: &[u8]) -> Ordering {
        if self.frames.racy(self.frame, offset, len).is_none() {
            return Ordering::Less;
        }
        let common = len.min(key.len());
        let words = common / 8;
        for (word, theirs) in key.chunks_exact(8).take(words).enumerate() {
            let mine = u64::from_be(self.load(offset + word * 8));
            let theirs = u64::from_be_bytes(theirs.try_into().expect("chunks of eight"));
            if mine != theirs {
                return mine.cmp(&theirs);
            }
        }
        for (at, theirs) in key.iter().enumerate().take(common).skip(words * 8) {
            let mine = self.u8_at(offset + at);
            if mine != *theirs {
                return mine.cmp(theirs);
            }
        }
        len.cmp(&key.len())
    }

    fn copy_at(&self, offset: usize, len: usize, out: &mut Vec<u8>) {
        if self.frames.racy(self.frame, offset, len).is_some() {
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
        let view = OptimisticPage { frames: &frames, frame: 0, page_no: PageNo(0), version: 0 };
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
        let mut out = vec![];
        view.copy_at(100, 3, &mut out);
        view.copy_at(4095, 2, &mut out);
        assert_eq!(out, b"abc");
    }
}
