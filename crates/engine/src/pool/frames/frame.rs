//! Frames: the pool's memory and the state word of each page in it.
//!
//! Rules
//! 1. A frame's bytes are read under its latch (shared or exclusive) and written under the exclusive latch, or read
//!    optimistically: by volatile loads whose values are used only after the latch's version is confirmed.
//! 2. `page_no` changes only under the exclusive latch, and the change raises its version: a frame and a version
//!    identify one page, unchanged, during one stay in the pool, for ever. A free frame has `PageNo::MAX` and is
//!    latched exclusively by the free list (or the thread that took it from there), so no other thread can latch it; a
//!    thread that waits for the latch of a page's frame waits only while the frame holds that page.
//! 3. The dirty marks change under the flush-list mutex ([`super::dirty`]). `oldest_lsn` is set iff the
//!    frame is on the flush list (the frame is *dirty*).
//! 4. `arrival` numbers the page's arrivals in the pool; it changes under the exclusive latch. `known_child_of` says
//!    whether a tree page was compared with its parent since it was read in ([`super::parent_check`]).
//! 5. Frame memory is mapped as long as the pool exists; a reader with an old view may read other bytes, never unmapped
//!    memory.
//! 6. A frame's state is one cache line and shares it with no other frame: writing the latch or the marks of
//!    one page does not slow users of other pages, and finding, latching and touching a page loads one line.

use super::Latch;
use super::dirty::DirtyMarks;
use super::memory::{self, Mapped};
use super::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering};
use crate::error::{Error, Result};
use crate::types::{Lsn, PageNo};
use memmap2::MmapMut;

/// Index of a frame.
pub(crate) type FrameNo = u32;

pub(crate) const NIL: FrameNo = u32::MAX;
/// The page number of a frame that holds none.
pub(crate) const NO_PAGE: PageNo = PageNo(u32::MAX);

/// After the return of this part, 1/N, of the pool's memory the allocator releases freed memory to the system.
const FREED_SHARE: usize = 64;

/// The state of a frame's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Content {
    Whole,
    /// The page is being read from the store; its latch is held until the read ends.
    Reading,
    /// The leaf as it was in the store: operations of it wait in the change buffer's tree ([`crate::pool::pending`]).
    Unmerged,
}

/// The state of one frame.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Frame {
    pub latch: Latch,
    page_no: AtomicU32,
    /// Next frame in the page table's chain.
    pub hash_next: AtomicU32,
    /// Value of the LRU clock when the frame last went to the head; 0 while on the old sublist.
    pub young_stamp: AtomicU32,
    /// Pool time (ms, never 0) of the first access since the page came in; 0 before.
    pub first_access_ms: AtomicU32,
    /// The marks of the page's unwritten changes.
    pub dirty: DirtyMarks,
    /// Serial number of the page's arrival in the pool.
    pub arrival: AtomicU32,
    /// See [`super::parent_check`].
    pub known_child_of: AtomicU32,
    /// The page stays resident until the pool is dropped. Set under the exclusive latch.
    pub kept: AtomicBool,
    /// A [`Content`]. Changed under the exclusive latch.
    content: AtomicU8,
    /// Mini-transactions that will change the page at their commit: it stays resident until then. Raised under the
    /// latch, so that an evicting thread, which holds it exclusively, sees every pin.
    pub pins: AtomicU32,
}

impl Frame {
    fn new() -> Frame {
        Frame {
            latch: Latch::new_exclusive(),
            page_no: AtomicU32::new(NO_PAGE.0),
            hash_next: AtomicU32::new(NIL),
            young_stamp: AtomicU32::new(0),
            first_access_ms: AtomicU32::new(0),
            dirty: DirtyMarks::default(),
            arrival: AtomicU32::new(0),
            known_child_of: AtomicU32::new(0),
            kept: AtomicBool::new(false),
            content: AtomicU8::new(Content::Whole as u8),
            pins: AtomicU32::new(0),
        }
    }

    #[inline]
    pub(crate) fn page_no(&self) -> PageNo {
        PageNo(self.page_no.load(Ordering::Acquire))
    }

    /// Gives the frame to a page (rule 2). The caller holds it exclusively.
    pub(crate) fn set_page_no(&self, page: PageNo) {
        self.latch.raise_version();
        // A thread that sees the number also sees the marks made before it.
        self.page_no.store(page.0, Ordering::Release);
    }

    /// Whether this is the frame of `page`, and the page is whole: waiting for its latch is not waiting for I/O.
    #[inline]
    pub(crate) fn has(&self, page: PageNo) -> bool {
        self.page_no() == page && self.content.load(Ordering::Acquire) == Content::Whole as u8
    }

    /// Whether this is the frame of `page`, of which there is not more than this.
    pub(crate) fn has_only(&self, page: PageNo, content: Content) -> bool {
        self.content.load(Ordering::Acquire) == content as u8 && self.page_no() == page
    }

    /// Whether this is the frame of `page`, but the page is not whole.
    #[inline]
    pub(crate) fn lacks(&self, page: PageNo) -> bool {
        self.content.load(Ordering::Acquire) != Content::Whole as u8 && self.page_no() == page
    }

    /// Notes what there is of the page: before the page is in the page table or before the latch is released.
    pub(crate) fn set_content(&self, content: Content) {
        self.content.store(content as u8, Ordering::Release);
    }

    /// Start of the oldest change not in the store; `None` = clean.
    #[inline]
    pub(crate) fn oldest_lsn(&self) -> Option<Lsn> {
        match self.dirty.oldest() {
            0 => None,
            lsn => Some(Lsn(lsn)),
        }
    }
}

/// Readable bytes after the last frame: a latch-free read may begin at the last byte of a page.
pub(super) const READ_SLACK_BYTES: usize = 8;

/// Frame numbers are 32 bits wide, and [`NIL`] is not a frame.
fn check_count(count: usize) -> Result<()> {
    if count < NIL as usize {
        return Ok(());
    }
    let reason = format!("{count} frames are too many: a pool has at most {}", NIL - 1);
    Err(Error::BadOption { option: "buffer-pool-size".into(), reason })
}

/// The system has no memory for this many frames.
pub(super) fn no_memory(count: usize) -> Error {
    let reason = format!("the system cannot provide memory for {count} frames");
    Error::BadOption { option: "buffer-pool-size".into(), reason }
}

/// All frames and their memory.
pub(crate) struct Frames {
    frames: Mapped<Frame>,
    /// First byte of `mapping`, taken once so that frames are reached without borrowing it.
    memory: *mut u8,
    page_bytes: usize,
    mapping: MmapMut,
    /// Frames whose memory was released. One thread at a time changes it.
    without_memory: AtomicUsize,
    /// Bytes of frames that returned since the allocator last released what was freed.
    returned_bytes: AtomicUsize,
}

// SAFETY: the memory is only reached through the accessors below, whose callers hold the frame's latch or read by
// volatile loads (rule 1); everything else is atomic.
unsafe impl Send for Frames {}
// SAFETY: as above.
unsafe impl Sync for Frames {}

impl Frames {
    /// `count` free frames of `page_bytes` each, zeroed.
    ///
    /// # Errors
    /// [`Error::BadOption`] for more frames than can be numbered, or when the system has no such memory.
    pub(crate) fn new(count: usize, page_bytes: usize) -> Result<Frames> {
        assert!(
            count > 0 && page_bytes.is_power_of_two(),
            "a pool has at least MIN_FRAMES frames, pages of checked size"
        );
        check_count(count)?;
        let bytes = count
            .checked_mul(page_bytes)
            .and_then(|all| all.checked_add(READ_SLACK_BYTES))
            .ok_or_else(|| no_memory(count))?;
        let mut mapping = memory::map(bytes).map_err(|_| no_memory(count))?;
        let frames = Mapped::new(count, Frame::new).map_err(|_| no_memory(count))?;
        let memory = mapping.as_mut_ptr();
        Ok(Frames {
            frames,
            memory,
            page_bytes,
            mapping,
            without_memory: AtomicUsize::new(0),
            returned_bytes: AtomicUsize::new(0),
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }

    pub(crate) fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// The frame's state.
    #[inline]
    pub(crate) fn get(&self, frame: FrameNo) -> &Frame {
        &self.frames[frame as usize]
    }

    /// Address of the frame's bytes, always inside the pool's memory.
    #[inline]
    fn address(&self, frame: FrameNo) -> *mut u8 {
        assert!((frame as usize) < self.frames.len());
        // SAFETY: `frame` is in range, so the offset stays inside the one mapping.
        unsafe { self.memory.add(frame as usize * self.page_bytes) }
    }

    /// The frame's bytes.
    ///
    /// # Safety
    /// The caller holds the frame's latch, shared or exclusive, for as long as the slice lives.
    #[inline]
    pub(crate) unsafe fn bytes(&self, frame: FrameNo) -> &[u8] {
        debug_assert!(self.get(frame).latch.is_held(), "frame {frame} is read without its latch");
        // SAFETY: the range is inside the mapping and initialised (zeroed); the caller's latch keeps writers out.
        unsafe { std::slice::from_raw_parts(self.address(frame), self.page_bytes) }
    }

    /// The frame's bytes, to change.
    ///
    /// # Safety
    /// The caller holds the frame's latch exclusively for as long as the slice lives, and makes no second slice of it.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "the exclusive latch, not the borrow, guards frame memory")]
    pub(crate) unsafe fn bytes_mut(&self, frame: FrameNo) -> &mut [u8] {
        debug_assert!(self.get(frame).latch.is_held_exclusively(), "frame {frame} is changed without its latch");
        // SAFETY: as in `bytes`, and the exclusive latch keeps everyone else out.
        unsafe { std::slice::from_raw_parts_mut(self.address(frame), self.page_bytes) }
    }

    /// Returns the memory of these frames to the system until their bytes are next touched; they are then zero or
    /// unchanged. No more huge pages are requested until as many frames have [returned](Frames::note_returned).
    ///
    /// # Safety
    /// The caller holds the frames' latches exclusively and has no slice of them.
    pub(crate) unsafe fn release_memory(&self, frames: &[FrameNo]) {
        let had = self.without_memory.fetch_add(frames.len(), Ordering::Relaxed);
        if !memory::can_release(self.page_bytes) {
            return;
        }
        if had == 0 && !frames.is_empty() {
            memory::prefer_large_pieces(&self.mapping, false);
        }
        for frame in frames {
            assert!((*frame as usize) < self.frames.len());
            debug_assert!(self.get(*frame).latch.is_held_exclusively(), "frame {frame} loses its memory while in use");
            // SAFETY: the frame is in range; the exclusive latch keeps slices of it away, and others read it by
            // volatile loads (rule 1).
            unsafe { memory::release(&self.mapping, *frame as usize * self.page_bytes, self.page_bytes) };
        }
    }

    /// This many of the frames whose memory was released will be touched again: what was in other memory meanwhile is
    /// freed, and the system gets that first, now and then.
    pub(crate) fn note_returned(&self, frames: usize) {
        let bytes = frames * self.page_bytes;
        if self.returned_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > self.mapping.len() / FREED_SHARE {
            self.returned_bytes.store(0, Ordering::Relaxed);
            memory::release_freed_memory();
        }
        let had = self.without_memory.fetch_sub(frames, Ordering::Relaxed);
        debug_assert!(had >= frames, "{frames} frames returned, {had} were without memory");
        if frames > 0 && had == frames && memory::can_release(self.page_bytes) {
            memory::prefer_large_pieces(&self.mapping, true);
        }
    }

    /// Checks rule 2: the frame has no page, and only the thread that took it uses it.
    pub(crate) fn check_free(&self, frame: FrameNo) {
        if cfg!(debug_assertions) && !cfg!(shuttle) {
            let state = self.get(frame);
            debug_assert!(state.latch.is_held_exclusively(), "the free frame {frame} can be latched");
            debug_assert_eq!(state.page_no(), NO_PAGE, "the free frame {frame} holds a page");
            debug_assert!(!state.lacks(NO_PAGE), "the free frame {frame} is marked as if its page were not whole");
            debug_assert_eq!(state.oldest_lsn(), None, "the free frame {frame} is dirty");
            debug_assert!(!state.dirty.is_flushing(), "the free frame {frame} is being written");
            debug_assert_eq!(state.pins.load(Ordering::Relaxed), 0, "the free frame {frame} is pinned");
            debug_assert!(!state.kept.load(Ordering::Relaxed), "the free frame {frame} is one of a page that stays");
        }
    }

    /// Number of reserved frames.
    pub(crate) fn without_memory(&self) -> usize {
        self.without_memory.load(Ordering::Relaxed)
    }

    /// A pointer for optimistic reads of `len` bytes at `offset`; `None` if they leave the page.
    #[inline]
    pub(crate) fn racy(&self, frame: FrameNo, offset: usize, len: usize) -> Option<*const u8> {
        if offset > self.page_bytes || len > self.page_bytes - offset {
            return None;
        }
        // SAFETY: `offset + len <= page_bytes` was just checked, so the pointer stays inside the frame.
        Some(unsafe { self.address(frame).add(offset).cast_const() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_frames_than_numbers_are_refused() {
        for count in [NIL as usize, usize::try_from((900_u64 << 40) / 16384).unwrap_or(usize::MAX), usize::MAX] {
            let error = Frames::new(count, 16384).map(|frames| frames.len()).unwrap_err();
            assert!(matches!(&error, Error::BadOption { option, .. } if option == "buffer-pool-size"), "{error}");
            assert!(error.to_string().contains("at most 4294967294"), "{error}");
        }
    }
}
