//! Memory for the buffer: frames of the pool are reserved, so that pages and changes together do not exceed its size.
//! The changes are in separate memory; the memory of the frames is released to the system meanwhile.

use crate::error::Result;
use crate::pool::{FrameNo, MIN_FRAMES, Pool};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Frames taken or freed at once: a 64th of a small pool.
fn step(pool: &Pool) -> usize {
    (pool.frame_count() / 64).min(16)
}

#[derive(Default)]
pub(super) struct BufferFrames {
    taken: Mutex<Vec<FrameNo>>,
    /// Bytes that they represent.
    bytes: AtomicUsize,
}

impl BufferFrames {
    /// Whether enough frames are reserved for changes of this size.
    pub(super) fn are_enough_for(&self, bytes: usize) -> bool {
        bytes < self.bytes.load(Relaxed)
    }

    /// Reserves frames for changes of this size and some more. A pool of the smallest size has none to give; then none
    /// is requested. The caller holds no latch.
    ///
    /// # Errors
    /// No frame could be freed.
    pub(super) fn cover(&self, pool: &Pool, bytes: usize) -> Result<()> {
        let mut taken = self.taken.lock();
        if self.are_enough_for(bytes) {
            return Ok(());
        }
        let wanted = bytes / pool.page_bytes() + step(pool);
        let possible = pool.frame_count() - MIN_FRAMES;
        let more = wanted.min(possible).saturating_sub(taken.len());
        // One by one: where few frames are freed at a time, other threads would take them before there are enough.
        let done = (0..more).try_for_each(|_| pool.reserve_frames(1, &mut taken));
        debug_assert!(more == 0 || taken.len() <= possible, "{} of {possible} frames are reserved", taken.len());
        let is_all = done.is_ok() && wanted > possible;
        self.bytes.store(if is_all { usize::MAX } else { taken.len() * pool.page_bytes() }, Relaxed);
        done
    }

    /// Frees frames that changes of this size do not need. Does nothing while another thread takes frames: it may
    /// be waiting for free ones, and the thread of the steps does not wait for it.
    pub(super) fn shrink_to(&self, pool: &Pool, bytes: usize) {
        let Some(mut taken) = self.taken.try_lock() else { return };
        let keep = if bytes == 0 { 0 } else { (bytes / pool.page_bytes() + 2 * step(pool)).min(taken.len()) };
        if keep < taken.len() {
            pool.return_frames(taken.drain(keep..));
            self.bytes.store(taken.len() * pool.page_bytes(), Relaxed);
        }
    }
}
