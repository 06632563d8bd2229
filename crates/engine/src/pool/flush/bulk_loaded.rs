//! Pages that a bulk load has filled. They rarely change again soon, so they are written while the load continues.
//!
//! Rules
//! 1. A page number in the list is a hint. The page may have changed since, been written or evicted, and the number may
//!    be that of a new page: only a page that redo recreates since its last write is written.
//! 2. Pages are written [`UNIT`] at a time, because each write first makes the redo of its newest page durable, and
//!    commits wait for that sync. Fewer pages wait like other dirty pages.
//! 3. If the list is full, a page is not added: it is flushed when it is old, like every page.
//!
//! The mutex is a leaf in the lock order: no other lock is taken under it.
//!
//! InnoDB's bulk load of an index writes its pages too (`BtrBulk`), instead of logging them.

use crate::pool::frames::{FrameNo, ResidentPages};
use crate::store::BATCH_PAGES;
use crate::sync::Mutex;
use crate::types::PageNo;
use std::collections::VecDeque;

/// Pages that are written together.
const UNIT: usize = 4 * BATCH_PAGES;
/// Most pages in the list: about as many as a load fills while the cleaner writes.
const MAX_WAITING: usize = 8 * UNIT;

/// Numbers of filled pages, in the order in which they were filled.
#[derive(Default)]
pub(super) struct BulkLoadedPages {
    waiting: Mutex<VecDeque<PageNo>>,
}

impl BulkLoadedPages {
    /// Adds a page; returns whether this completes another unit.
    pub(super) fn add(&self, page_no: PageNo) -> bool {
        let mut waiting = self.waiting.lock();
        if waiting.len() == MAX_WAITING {
            return false;
        }
        debug_assert!(waiting.len() < MAX_WAITING, "{} names wait", waiting.len());
        waiting.push_back(page_no);
        waiting.len().is_multiple_of(UNIT)
    }

    /// Takes a unit of pages, if there is one: the frames of those that still have to be written.
    pub(super) fn take(&self, pages: &ResidentPages) -> Vec<FrameNo> {
        let named: Vec<PageNo> = {
            let mut waiting = self.waiting.lock();
            if waiting.len() < UNIT { Vec::new() } else { waiting.drain(..UNIT).collect() }
        };
        named.into_iter().filter_map(|page_no| bulk_loaded_frame(pages, page_no)).collect()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.waiting.lock().len()
    }
}

fn bulk_loaded_frame(pages: &ResidentPages, page_no: PageNo) -> Option<FrameNo> {
    let frame = pages.peek(page_no)?;
    let state = pages.get(frame);
    (state.oldest_lsn().is_some() && state.dirty.is_recreated_by_redo()).then_some(frame)
}
