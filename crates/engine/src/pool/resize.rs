//! Changing how many frames are in use, beside everybody who uses the pool.
//!
//! Rules
//! 1. The pool is made with as many frames as it can ever have. Those that are not in use are taken from the free list,
//!    as if a page were to be read into them, and their memory goes back to the system: no page is in them, so nothing
//!    is lost.
//! 2. To shrink takes frames a few at a time, from whoever is evicted and flushed for them, as each reader of a page
//!    does. If too few come free the pool gets back those of this change, and the caller an error.

use super::{MIN_FRAMES, Pool};
use crate::config::Options;
use crate::error::{Error, Result};
use crate::sync::atomic::Ordering::Relaxed;

/// Frames that are taken at once: few, since who takes frames gets all of them or waits.
const STEP_FRAMES: usize = 16;

impl Pool {
    /// Most frames that can be in use.
    pub(crate) fn max_frame_count(&self) -> usize {
        self.frames.len()
    }

    /// Changes what the LRU list goes by, to what the options say and the pool's size allows.
    pub(crate) fn set_lru_options(&self, options: &Options) {
        self.lru.set_options(options, self.frame_count());
    }

    /// Changes how many frames are in use. The caller holds no latch.
    ///
    /// # Errors
    /// [`Error::BadOption`] for more than there are, or too few; [`Error::PoolExhausted`] if too few come free: the
    /// pool is as it was then. An I/O error.
    pub(crate) fn resize(&self, frames: usize) -> Result<()> {
        let (most, page_bytes) = (self.max_frame_count(), self.page_bytes());
        if !(MIN_FRAMES..=most).contains(&frames) {
            let (least, most) = (MIN_FRAMES * page_bytes, most * page_bytes);
            let reason = format!(
                "while this database is open its pool can have {least} to {most} bytes; buffer-pool-size-max says how \
                 far it can grow, from the next opening on"
            );
            return Err(Error::BadOption { option: "buffer-pool-size".to_string(), reason });
        }
        let mut set_aside = self.set_aside.lock();
        let before = set_aside.len();
        while set_aside.len() > most - frames {
            let back = (set_aside.len() - (most - frames)).min(STEP_FRAMES);
            let at = set_aside.len() - back;
            self.return_frames(set_aside.drain(at..));
            self.in_use.store(most - set_aside.len(), Relaxed);
        }
        while set_aside.len() < most - frames {
            let missing = (most - frames - set_aside.len()).min(STEP_FRAMES);
            let taken = self.reserve_frames(missing, &mut set_aside);
            if let Err(error) = taken {
                self.return_frames(set_aside.drain(before.min(most)..));
                self.in_use.store(most - set_aside.len(), Relaxed);
                return Err(error);
            }
            self.in_use.store(most - set_aside.len(), Relaxed);
        }
        Ok(())
    }
}
