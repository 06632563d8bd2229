//! Noting that pages are dirty, and how many are.

use crate::pool::{FrameNo, Pool};
use crate::types::Lsn;

impl Pool {
    /// Smallest LSN a checkpoint may not pass; `None` when nothing is dirty.
    pub fn oldest_dirty_lsn(&self) -> Option<Lsn> {
        self.flush.list.lock().oldest_lsn(&self.frames)
    }

    pub fn dirty_count(&self) -> usize {
        self.flush.list.lock().len()
    }

    /// Notes in the flush list that the mini-transaction starting at `lsn` changed these frames, which the caller holds
    /// exclusively. Called in log order.
    pub(crate) fn note_changes(&self, changed: impl Iterator<Item = FrameNo> + Clone, lsn: Lsn) {
        // A frame that is dirty and not being written stays so while its latch is held: nothing to note.
        if changed.clone().any(|f| !self.frames.get(f).dirty.is_noted()) {
            let mut list = self.flush.list.lock();
            changed.for_each(|f| list.note_change(&self.frames, f, lsn));
        }
    }

    /// Whether the page is resident with bytes that differ from the store's.
    pub fn is_dirty(&self, page_no: crate::types::PageNo) -> bool {
        self.table.find(&self.frames, page_no).is_some_and(|f| self.frames.get(f).oldest_lsn().is_some())
    }
}
