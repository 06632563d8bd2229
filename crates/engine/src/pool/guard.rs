//! Shared page guards. (Exclusive latches live in mini-transactions.)

use super::Pool;
use super::frame::FrameNo;
use crate::types::PageNo;
use std::ops::Deref;

/// A page latched shared; unlatched on drop. Derefs to the page's bytes, header included.
pub struct SharedPage<'p> {
    pool: &'p Pool,
    frame: FrameNo,
}

impl<'p> SharedPage<'p> {
    /// Takes over a shared hold.
    pub(super) fn adopt(pool: &'p Pool, frame: FrameNo) -> SharedPage<'p> {
        SharedPage { pool, frame }
    }

    /// Which page.
    pub fn page_no(&self) -> PageNo {
        self.pool.frames.get(self.frame).page_no()
    }

    /// Version of the frame: an equal version later (see [`Pool::fix_s_if`]) means unchanged bytes.
    pub fn version(&self) -> u64 {
        self.pool.frames.get(self.frame).latch.held_version()
    }
}

impl Deref for SharedPage<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: this guard holds the frame's latch shared until it is dropped.
        unsafe { self.pool.frames.bytes(self.frame) }
    }
}

impl Drop for SharedPage<'_> {
    fn drop(&mut self) {
        self.pool.frames.get(self.frame).latch.unlock_shared();
    }
}
