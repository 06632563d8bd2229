//! Changes of the number of frames in use while threads use the pool.
//!
//! Rules
//! 1. The pool is created with its maximum number of frames. Unused frames are taken from the free list, as for a page
//!    read, and their memory is returned to the system. No page is in them, so nothing is lost.
//! 2. A shrinking pool withdraws a few frames at a time. It takes them like a reader of a page: pages are evicted and
//!    flushed for them. If too few become free, the frames of this change return to the pool, and the call is an error.

use super::frame_supply::FrameSupply;
use crate::error::{Error, Result};

/// Fewest frames a pool works with.
pub(crate) const MIN_FRAMES: usize = 64;
/// Frames that are taken at once: few, because a call waits until it has all frames that it requests.
const STEP_FRAMES: usize = 16;

impl FrameSupply {
    /// Most frames that can be in use.
    pub(crate) fn max_frame_count(&self) -> usize {
        self.pages().frames().len()
    }

    /// Changes how many frames are in use. The caller holds no latch.
    ///
    /// # Errors
    /// [`Error::BadOption`] for more than there are, or too few; [`Error::PoolExhausted`] if too few come free: the
    /// pool is as it was then. An I/O error.
    pub(crate) fn resize(&self, frames: usize) -> Result<()> {
        let (most, page_bytes) = (self.max_frame_count(), self.pages().frames().page_bytes());
        if !(MIN_FRAMES..=most).contains(&frames) {
            let (least, most) = (MIN_FRAMES * page_bytes, most * page_bytes);
            let reason = format!(
                "while this database is open its pool can have {least} to {most} bytes; buffer-pool-size-max says how \
                 far it can grow, from the next opening on"
            );
            return Err(Error::BadOption { option: "buffer-pool-size".to_string(), reason });
        }
        let mut withdrawn = self.withdrawn.lock();
        let before = withdrawn.len();
        while withdrawn.len() > most - frames {
            let back = (withdrawn.len() - (most - frames)).min(STEP_FRAMES);
            let at = withdrawn.len() - back;
            self.return_frames(withdrawn.drain(at..));
            self.pages().set_frame_count(most - withdrawn.len());
        }
        while withdrawn.len() < most - frames {
            let missing = (most - frames - withdrawn.len()).min(STEP_FRAMES);
            let taken = self.reserve_frames(missing, &mut withdrawn);
            if let Err(error) = taken {
                self.return_frames(withdrawn.drain(before..));
                self.pages().set_frame_count(most - withdrawn.len());
                return Err(error);
            }
            self.pages().set_frame_count(most - withdrawn.len());
        }
        debug_assert_eq!(
            (withdrawn.len(), self.pages().frame_count()),
            (most - frames, frames),
            "all frames are in use or not"
        );
        debug_assert!(self.pages().frames().without_memory() >= withdrawn.len(), "a withdrawn frame has its memory");
        Ok(())
    }
}
