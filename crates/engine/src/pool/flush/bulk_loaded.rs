//! Pages that a load has filled: they hardly change again soon, so they are written while the load continues.
//!
//! Rules
//! 1. A name is a hint. Its page may have changed since, been written or left the pool, and its number may be that of
//!    another page: only a page that was recreated since it was last in the store is written.
//! 2. They are written [`UNIT`] at a time, because each write first makes the redo of its newest page durable, and
//!    commits wait for that sync. Fewer pages wait like other dirty pages.
//! 3. A name that finds no room is dropped: the page is written when it is old, like every page.
//!
//! The mutex is a leaf in the lock order: no other lock is taken under it.
//!
//! InnoDB's bulk load of an index writes its pages too (`BtrBulk`), instead of logging them.

use super::FlushReason;
use crate::error::Result;
use crate::pool::{FrameNo, Pool};
use crate::store::BATCH_PAGES;
use crate::sync::Mutex;
use crate::types::PageNo;
use std::collections::VecDeque;

/// Pages that are written together.
const UNIT: usize = 4 * BATCH_PAGES;
/// Names that wait at most: what a load fills while the cleaner writes.
const MAX_WAITING: usize = 8 * UNIT;

/// Names of filled pages, in the order in which they were filled.
#[derive(Default)]
pub struct BulkLoadedPages {
    waiting: Mutex<VecDeque<PageNo>>,
}

impl BulkLoadedPages {
    /// Adds a name; returns whether another unit of them waits now.
    fn add(&self, page_no: PageNo) -> bool {
        let mut waiting = self.waiting.lock();
        if waiting.len() == MAX_WAITING {
            return false;
        }
        debug_assert!(waiting.len() < MAX_WAITING, "{} names wait", waiting.len());
        waiting.push_back(page_no);
        waiting.len().is_multiple_of(UNIT)
    }

    /// The names of a unit, if there are this many.
    fn take(&self) -> Vec<PageNo> {
        let mut waiting = self.waiting.lock();
        if waiting.len() < UNIT { Vec::new() } else { waiting.drain(..UNIT).collect() }
    }
}

impl Pool {
    /// Names a page that a load has filled; the page cleaner writes it soon. The caller may hold latches.
    pub(crate) fn note_bulk_loaded(&self, page_no: PageNo) {
        if self.flush.filled.add(page_no) {
            self.cleaner_notify().wake();
        }
    }

    /// Flushes the pages named first, if enough wait; returns how many.
    ///
    /// # Errors
    /// As [`flush_oldest`](Self::flush_oldest).
    pub(in crate::pool) fn flush_bulk_loaded(&self) -> Result<usize> {
        let named = self.flush.filled.take();
        let frames: Vec<_> = named.into_iter().filter_map(|page_no| self.bulk_loaded_frame(page_no)).collect();
        if frames.is_empty() { Ok(0) } else { self.flush_frames(&frames, FlushReason::BulkLoad) }
    }

    #[cfg(test)]
    pub(in crate::pool) fn bulk_loaded_count(&self) -> usize {
        self.flush.filled.waiting.lock().len()
    }

    fn bulk_loaded_frame(&self, page_no: PageNo) -> Option<FrameNo> {
        let frame = self.table.peek(&self.frames, page_no)?;
        let state = self.frames.get(frame);
        (state.oldest_lsn().is_some() && state.dirty.is_recreated_by_redo()).then_some(frame)
    }
}
