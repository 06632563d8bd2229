//! Writing dirty pages: copy under the latch, then log, doublewrite, data, and only then clean.
//!
//! Order of one batch (each step needs the one before)
//! 1. Per page, under its shared latch: mark as being written, copy, seal the copy.
//! 2. Make the redo durable up to the newest page LSN in the batch (log before data).
//! 3. Write the copies ([`super::doublewrite`]); durable when this returns.
//! 4. Take the pages off the flush list, or move them up if they changed meanwhile.
//!
//! An error in 2 or 3 stops the database: what reached the disk is not known.

use super::Pool;
use super::doublewrite::{BATCH_PAGES, Batch};
use super::frame::FrameNo;
use crate::error::Result;
use crate::page;
use crate::types::Lsn;

/// Why pages are flushed; each flushed page is counted once under its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushReason {
    /// They are at the tail of the LRU list and frames are needed.
    LruList,
    /// They are the oldest of the flush list (checkpoint or dirty percentage).
    FlushList,
    /// A thread found no free frame.
    SinglePage,
}

impl Pool {
    /// Flushes those of `frames` that are dirty and not latched exclusively right now; says how many.
    ///
    /// # Errors
    /// An I/O error, after which the database is poisoned.
    pub(crate) fn flush_frames(&self, frames: &[FrameNo], reason: FlushReason) -> Result<usize> {
        let mut sorted: Vec<FrameNo> = frames.to_vec();
        sorted.sort_unstable_by_key(|f| self.frames.get(*f).page_no());
        let mut flushed = 0;
        for chunk in sorted.chunks(BATCH_PAGES) {
            self.poison.check()?;
            let mut batch = self.copy_dirty(chunk);
            if batch.entries().is_empty() {
                self.writer.recycle(batch);
                continue;
            }
            if let Err(error) = self.write_batch(&mut batch) {
                self.poison.set(&error.to_string());
                self.log.poison(&error.to_string());
                return Err(error);
            }
            self.finish(&batch);
            flushed += batch.entries().len();
            self.writer.recycle(batch);
        }
        self.count(flushed, reason);
        Ok(flushed)
    }

    fn copy_dirty(&self, frames: &[FrameNo]) -> Batch {
        let mut batch = self.writer.batch(frames.len(), self.page_bytes());
        for &frame in frames {
            let state = self.frames.get(frame);
            if state.oldest_lsn().is_none() || !state.latch.try_lock_shared() {
                continue;
            }
            if self.flush_list.lock().begin_write(&self.frames, frame) {
                // SAFETY: the frame's latch is held shared until the end of this block.
                batch.push(unsafe { self.frames.bytes(frame) }, state.page_no(), frame);
            }
            state.latch.unlock_shared();
        }
        batch
    }

    fn write_batch(&self, batch: &mut Batch) -> Result<()> {
        let newest = batch.entries().iter().map(|e| e.lsn).max().unwrap_or(Lsn(0));
        self.log.flush_to(newest)?;
        self.writer.write(batch)
    }

    fn finish(&self, batch: &Batch) {
        let mut list = self.flush_list.lock();
        batch.entries().iter().for_each(|e| list.end_write(&self.frames, e.frame));
    }

    fn count(&self, flushed: usize, reason: FlushReason) {
        let flushed = flushed as u64;
        self.stats.pages_flushed.add(flushed);
        match reason {
            FlushReason::LruList => self.stats.pages_flushed_lru_list.add(flushed),
            FlushReason::FlushList => self.stats.pages_flushed_flush_list.add(flushed),
            FlushReason::SinglePage => self.stats.pages_flushed_single_page.add(flushed),
        }
    }

    /// Flushes up to `limit` of the oldest pages whose first change is before `before`; says how many.
    ///
    /// # Errors
    /// An I/O error, after which the database is poisoned.
    pub fn flush_oldest(&self, before: Lsn, limit: usize) -> Result<usize> {
        let frames = self.flush_list.lock().oldest(&self.frames, before, limit);
        self.flush_frames(&frames, FlushReason::FlushList)
    }

    /// Flushes every dirty page (close, recovery, tests). Pages changed meanwhile by others may stay dirty.
    ///
    /// # Errors
    /// An I/O error, after which the database is poisoned.
    pub fn flush_all(&self) -> Result<()> {
        while self.dirty_count() > 0 {
            if self.flush_oldest(Lsn(u64::MAX), BATCH_PAGES)? == 0 {
                std::thread::yield_now();
                self.poison.check()?;
            }
        }
        Ok(())
    }

    /// Whether the page is resident with bytes that differ from the data file's.
    pub fn is_dirty(&self, page_no: crate::types::PageNo) -> bool {
        self.table.find(&self.frames, page_no).is_some_and(|f| self.frames.get(f).oldest_lsn().is_some())
    }

    /// LSN of a resident page, if it is resident.
    pub fn resident_lsn(&self, page_no: crate::types::PageNo) -> Option<Lsn> {
        self.try_fix_s(page_no).map(|guard| page::header::lsn(&guard))
    }
}
