//! Changes of pages that are not resident, as the pool sees them. *Pending* changes (mode `memory`) are in the log, and
//! are applied when the page is read. *Waiting operations* (mode `disk`) are in the change buffer's tree; a
//! mini-transaction merges them into the page.
//!
//! Rules
//! 1. A change becomes pending, an operation begins to wait, only while its page is not in the page table, under a lock
//!    that [`PendingChanges::merge`] takes too. A page that is read enters the page table first and merges then, so it
//!    misses none.
//! 2. A pending change holds the checkpoint back, as a dirty page does. A merge first marks the page as dirty since the
//!    start of the change's redo and then removes the pending change. So a thread that reads the oldest pending change
//!    first and the oldest dirty page afterwards misses neither.
//! 3. A pending change that was logged again lets the checkpoint pass its first redo. Then only the log has it, so the
//!    second redo is durable before such a checkpoint is written ([`PendingChanges::carried_lsn`]).
//! 4. A leaf with waiting operations is *unmerged* from its arrival until they are merged. It is resident, so no
//!    further operations are buffered for it, but every lookup treats it as missing, so no thread latches or sees it.
//!    [`Pool::load`] merges it, or waits while another thread does. It may be evicted meanwhile.

use super::frames::Content;
use super::{FrameNo, Pool};
use crate::error::Result;
use crate::page::{PageType, header};
use crate::types::{IndexId, Lsn, PageNo};
use std::sync::Arc;

/// The change buffer, for the pool.
pub trait PendingChanges: Send + Sync {
    /// Start of the oldest pending change's redo.
    fn oldest_lsn(&self) -> Option<Lsn>;

    /// How far the log has to be durable before a checkpoint that relies on `oldest_lsn`, asked before, is written.
    fn carried_lsn(&self) -> Lsn;

    /// Applies the changes of a leaf that has just been read to its bytes, and its LSN; calls `note_dirty` with the
    /// start of their redo. An error leaves them pending. Says whether the leaf is whole, or unmerged: operations wait
    /// for it ([`PendingChanges::merge_waiting`]).
    ///
    /// # Errors
    /// The page does not take its changes: it is damaged.
    fn merge(&self, page: PageNo, bytes: &mut [u8], note_dirty: &mut dyn FnMut(Lsn)) -> Result<Content>;

    /// Merges the operations that wait for an unmerged leaf, which may have been merged or evicted meanwhile. The
    /// caller holds no latch and no redo space.
    ///
    /// # Errors
    /// A damaged page, an I/O error, no free frame; what is not merged waits still.
    fn merge_waiting(&self, page: PageNo) -> Result<()>;
}

impl Pool {
    /// Sets what is asked for pending changes; once, when the database is recovered.
    pub(crate) fn set_pending(&self, pending: Arc<dyn PendingChanges>) {
        assert!(self.pending.set(pending).is_ok(), "one change buffer for a pool");
    }

    /// Smallest LSN a checkpoint may not pass; `None` when nothing is dirty or pending.
    pub fn oldest_lsn(&self) -> Option<Lsn> {
        // In this order: rule 2.
        let pending = self.pending.get().and_then(|pending| pending.oldest_lsn());
        [pending, self.oldest_dirty_lsn()].into_iter().flatten().min()
    }

    /// How far the log has to be durable before a checkpoint at [`Pool::oldest_lsn`], asked before: rule 3.
    pub fn carried_lsn(&self) -> Lsn {
        self.pending.get().map_or(Lsn(0), |pending| pending.carried_lsn())
    }

    /// Applies the pending changes of a page that was read into the frame, which the caller holds exclusively; says
    /// what there is of the page then.
    pub(super) fn apply_pending(&self, page: PageNo, frame: FrameNo) -> Result<Content> {
        let Some(pending) = self.pending.get() else { return Ok(Content::Whole) };
        // SAFETY: the caller holds the frame's latch exclusively.
        let bytes = unsafe { self.frames.bytes_mut(frame) };
        if header::page_type(bytes)? != PageType::Leaf {
            return Ok(Content::Whole);
        }
        pending.merge(page, bytes, &mut |lsn| self.note_changes(std::iter::once(frame), lsn))
    }

    /// Merges what waits for an unmerged leaf.
    #[cold]
    pub(super) fn merge_waiting(&self, page: PageNo) -> Result<()> {
        self.pending.get().map_or(Ok(()), |pending| pending.merge_waiting(page))
    }

    /// Marks a leaf of this index, if it is resident, as unmerged: operations that wait for it were found at opening.
    /// No thread uses the pool yet.
    pub(crate) fn mark_unmerged(&self, page: PageNo, index: IndexId) {
        let Some(frame) = self.try_latch_x(page) else { return };
        // SAFETY: the frame was just latched exclusively.
        let bytes = unsafe { self.frames.bytes(frame) };
        let is_leaf = matches!(header::page_type(bytes), Ok(PageType::Leaf)) && header::owner(bytes) == index.0;
        if is_leaf {
            self.frames.get(frame).set_content(Content::Unmerged);
        }
        self.frames.get(frame).latch.unlock_exclusive(is_leaf);
    }

    /// An unmerged leaf, which the caller has latched exclusively, has everything now.
    pub(crate) fn mark_merged(&self, frame: FrameNo) {
        let state = self.frames.get(frame);
        debug_assert!(state.latch.is_held_exclusively(), "the merged leaf in frame {frame} is not latched");
        debug_assert!(
            state.has_only(state.page_no(), Content::Unmerged),
            "the leaf in frame {frame} was merged before"
        );
        self.frames.get(frame).set_content(Content::Whole);
    }
}
