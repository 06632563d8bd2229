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
//!    [`Pool::load`](super::Pool::load) merges it, or waits while another thread does. It may be evicted meanwhile.

use super::frames::Content;
use crate::error::Result;
use crate::types::{Lsn, PageNo};

/// The change buffer, for the pool.
pub(crate) trait PendingChanges: Send + Sync {
    /// Start of the oldest pending change's redo.
    fn oldest_lsn(&self) -> Option<Lsn>;

    /// The LSN up to which the log has to be durable before a checkpoint at `oldest_lsn` is written; the caller reads
    /// `oldest_lsn` first.
    fn carried_lsn(&self) -> Lsn;

    /// Applies the changes of a leaf that has just been read to its bytes, and its LSN; calls `note_dirty` with the
    /// start of their redo. An error leaves them pending. Returns whether the leaf is whole, or unmerged: operations
    /// wait for it ([`PendingChanges::merge_waiting`]).
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
