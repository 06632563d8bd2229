//! Overwriting a page that cannot be read with a lost page ([`crate::page::lost`]).
//!
//! Rules
//! 1. The lost page is written while the page table has the page as being read, so no thread sees it and no change
//!    becomes pending for it. Afterwards it is not in the pool, so each reader reads it and gets the error.
//! 2. Its redo is durable first, and a failed write stops the database, as with every page.

use super::loader::PageLoader;
use crate::error::{Error, Result};
use crate::pool::flush::FlushReason;
use crate::pool::frames::{Content, FrameNo, held_latches};
use crate::store::PageBatch;
use crate::types::PageNo;
use std::time::Instant;

impl PageLoader {
    /// Reads the page as [`PageLoader::load`] does. If it cannot be read, or its pending changes do not fit, `lose` may
    /// replace its bytes by those of a lost page; `lost` is called when that is durable.
    ///
    /// # Errors
    /// As [`PageLoader::load`], also when the page was lost; a failed write.
    pub(crate) fn load_or_lose(
        &self,
        page: PageNo,
        lose: impl FnOnce(&Error, &mut [u8]) -> bool,
        lost: impl FnOnce(),
    ) -> Result<()> {
        self.log.expect_nothing_reserved();
        held_latches::expect_none("a page is read");
        self.poison.check()?;
        let missed = Instant::now();
        let mut taken = Vec::with_capacity(1);
        self.supply.take_frames(1, &mut taken)?;
        let frame = taken[0];
        if let Some(other) = self.enter_to_read(page, frame) {
            return self.await_whole(page, other);
        }
        // SAFETY: the frame came from the free list, so this thread holds its latch exclusively.
        let bytes = unsafe { self.pages().frames().bytes_mut(frame) };
        let read = self.store.read(page, bytes);
        let content = self.take_in(page, frame, read);
        if let Err(error) = &content
            // SAFETY: as above; no other thread has used the frame since.
            && lose(error, unsafe { self.pages().frames().bytes_mut(frame) })
        {
            if let Err(failed) = self.write_lost(page, frame) {
                self.drop_unread(frame);
                return Err(failed);
            }
            lost();
        }
        match self.end_arrival(frame, content, missed)? {
            Content::Whole => Ok(()),
            _ => self.merge_waiting(page),
        }
    }

    fn write_lost(&self, page: PageNo, frame: FrameNo) -> Result<()> {
        let mut batch = PageBatch::new(1, self.pages().frames().page_bytes());
        // SAFETY: the caller holds the frame exclusively.
        batch.push(unsafe { self.pages().frames().bytes(frame) }, page);
        self.flusher()
            .write_batch(&mut batch, FlushReason::SinglePage)
            .inspect_err(|error| self.poison.set(&error.to_string()))?;
        self.stats.pages_lost.inc();
        Ok(())
    }

    /// Takes a clean page out of the pool, if it is there. For recovery: no other thread uses the pool.
    pub(crate) fn drop_clean(&self, page: PageNo) {
        let Some(frame) = self.cache().latch_x(page) else { return };
        debug_assert!(self.pages().get(frame).oldest_lsn().is_none());
        self.cache().lru().take_out(self.pages(), frame);
        self.drop_unread(frame);
    }
}
