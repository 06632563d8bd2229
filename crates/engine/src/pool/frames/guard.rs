//! Shared page guards, and the version by which a page can be latched again if it is unchanged. (Exclusive latches live
//! in mini-transactions.)

use super::frame::{FrameNo, Frames};
use super::held_latches;
use crate::types::PageNo;
use std::ops::Deref;

/// A page latched shared; unlatched on drop. Derefs to the page's bytes, header included.
pub(crate) struct SharedPage<'p> {
    frames: &'p Frames,
    frame: FrameNo,
}

/// A page as it was seen: [`Pool::fix_s_if`](crate::pool::Pool::fix_s_if) finds it again iff it has not left its frame
/// and not changed. Nothing else can match: a frame never has a version twice (`frame`, rule 2), but two frames may
/// have the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageVersion {
    pub(in crate::pool) page_no: PageNo,
    pub(in crate::pool) frame: FrameNo,
    pub(in crate::pool) version: u64,
}

impl<'p> SharedPage<'p> {
    /// A guard of a shared latch that the caller holds.
    pub(super) fn adopt(frames: &'p Frames, frame: FrameNo) -> SharedPage<'p> {
        debug_assert!(frames.get(frame).latch.is_held(), "a guard of frame {frame}, which is not latched");
        held_latches::add(1);
        SharedPage { frames, frame }
    }

    pub(crate) fn page_no(&self) -> PageNo {
        self.frames.get(self.frame).page_no()
    }

    #[inline]
    pub(crate) fn frame(&self) -> FrameNo {
        self.frame
    }

    /// The present version of the page, to latch the page again later.
    pub(crate) fn version(&self) -> PageVersion {
        let state = self.frames.get(self.frame);
        PageVersion { page_no: state.page_no(), frame: self.frame, version: state.latch.held_version() }
    }
}

impl Deref for SharedPage<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: this guard holds the frame's latch shared until it is dropped.
        unsafe { self.frames.bytes(self.frame) }
    }
}

impl Drop for SharedPage<'_> {
    fn drop(&mut self) {
        self.frames.get(self.frame).latch.unlock_shared();
        held_latches::add(-1);
    }
}
