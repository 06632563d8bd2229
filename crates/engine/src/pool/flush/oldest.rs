//! Flushing the oldest pages, which hold the checkpoint back.
//!
//! A page whose latch is not available at once is skipped. If the oldest page was skipped often
//! ([`super::starvation`]), this thread waits for its latch and holds nothing else: the holder of the latch never waits
//! for this thread.

use super::flusher::PageFlusher;
use super::reason::FlushReason;
use super::select::FlushTarget;
use super::write::LatchMode;
use crate::error::Result;
use crate::pool::frames::FrameNo;
use crate::store::{BATCH_PAGES, FlushLane};
use crate::sync::Mutex;
use crate::types::Lsn;
use std::thread::{Builder, ScopedJoinHandle};

/// For this many dirty pages one more thread helps to flush all, up to [`MAX_HELPERS`].
const PAGES_OF_A_HELPER: usize = 8 * BATCH_PAGES;
/// Maximum number of helper threads: a store has space for one batch in flight of each lane.
const MAX_HELPERS: usize = FlushLane::COUNT - 1;

impl PageFlusher {
    /// Flushes up to `limit` of the oldest pages whose first change is before `before`, and their neighbors; returns
    /// how many. The caller holds no latch.
    pub(crate) fn flush_oldest(&self, before: Lsn, limit: usize, reason: FlushReason) -> Result<usize> {
        let (frames, oldest) = {
            let list = self.list.lock();
            (list.oldest(self.pages.frames(), before, limit), list.tail(self.pages.frames()))
        };
        let flushed = self.flush_frames(&frames, reason)?;
        let Some((frame, lsn)) = oldest.filter(|(frame, _)| frames.first() == Some(frame)) else { return Ok(flushed) };
        // It is not a miss if another thread writes it.
        let is_missed = || {
            let state = self.pages.get(frame);
            state.oldest_lsn() == Some(lsn) && !state.dirty.is_flushing()
        };
        if !self.oldest_starvation.lock().note((frame, lsn), is_missed()) {
            return Ok(flushed);
        }
        Ok(flushed + self.flush_targets(&self.still_dirty(&frames), reason, LatchMode::Wait)?)
    }

    /// The frames of `frames` that are dirty and not being written, by page number.
    fn still_dirty(&self, frames: &[FrameNo]) -> Vec<FlushTarget> {
        let is_dirty = |frame: &&FrameNo| {
            let state = self.pages.get(**frame);
            state.oldest_lsn().is_some() && !state.dirty.is_flushing()
        };
        let mut targets: Vec<FlushTarget> =
            frames.iter().filter(is_dirty).map(|frame| FlushTarget::new(&self.pages, *frame)).collect();
        targets.sort_unstable_by_key(|target| target.page_no);
        targets
    }

    /// Flushes every dirty page (close, recovery, tests). Pages changed meanwhile by others may stay dirty.
    ///
    /// # Errors
    /// An I/O or poison error.
    pub(crate) fn flush_all(&self) -> Result<()> {
        let helpers = (self.dirty_count() / PAGES_OF_A_HELPER).min(MAX_HELPERS);
        if helpers > 0 {
            self.flush_side_by_side(helpers)?;
        }
        self.flush_before(Lsn(u64::MAX))
    }

    /// Flushes the pages that are dirty now in the order of their numbers, so that a batch is few and long writes. A
    /// batch is mostly waits for the device, one after another: those of several threads overlap.
    fn flush_side_by_side(&self, helpers: usize) -> Result<()> {
        let mut frames = self.list.lock().oldest(self.pages.frames(), Lsn(u64::MAX), usize::MAX);
        // A frame may get another page meanwhile: each frame is read once.
        frames.sort_by_cached_key(|frame| self.pages.get(*frame).page_no());
        let batches = Mutex::new(frames.chunks(BATCH_PAGES));
        let flush = &|reason: FlushReason| -> Result<()> {
            loop {
                let Some(batch) = batches.lock().next() else { return Ok(()) };
                self.flush_frames(batch, reason)?;
            }
        };
        let reasons = [FlushReason::ShutdownHelper, FlushReason::Shutdown].into_iter().cycle();
        std::thread::scope(|scope| {
            // One that the system cannot start is done without.
            let start = |reason| Builder::new().name("hw-flush".into()).spawn_scoped(scope, move || flush(reason)).ok();
            let started: Vec<_> = reasons.take(helpers).filter_map(start).collect();
            let own = flush(FlushReason::Shutdown);
            let join = |helper: ScopedJoinHandle<'_, Result<()>>| {
                helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            started.into_iter().map(join).fold(own, Result::and)
        })
    }

    /// Flushes every page whose first change is before `before`. It ends however many pages others change meanwhile.
    ///
    /// # Errors
    /// An I/O or poison error.
    pub(crate) fn flush_before(&self, before: Lsn) -> Result<()> {
        while self.oldest_dirty_lsn().is_some_and(|oldest| oldest < before) {
            if self.flush_oldest(before, BATCH_PAGES, FlushReason::Shutdown)? == 0 {
                crate::sync::thread::yield_now();
                self.poison.check()?;
            }
        }
        Ok(())
    }
}
