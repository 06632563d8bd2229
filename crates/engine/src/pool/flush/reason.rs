//! Why pages are flushed.

use crate::store::FlushLane;

/// The reason of a flush; each flushed page is counted once under its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlushReason {
    /// They are at the tail of the LRU list and frames are needed.
    LruList,
    /// Too many frames are dirty.
    DirtyPct,
    /// The checkpoint has to keep up with the redo.
    CheckpointAge,
    /// Nothing is being changed.
    Idle,
    /// A load has filled them.
    BulkLoad,
    /// The checkpoint age is above its sync watermark.
    Sync,
    /// A thread found no free frame.
    SinglePage,
    /// Closing, or the end of recovery.
    Shutdown,
    /// As `Shutdown`, by a helper thread.
    ShutdownHelper,
}

impl FlushReason {
    /// The lane of the batches: threads with different lanes do not wait for each other.
    pub(crate) fn lane(self) -> FlushLane {
        match self {
            FlushReason::SinglePage => FlushLane::SinglePage,
            // When a database is closed no other thread flushes the LRU list.
            FlushReason::LruList | FlushReason::ShutdownHelper => FlushLane::LruList,
            _ => FlushLane::FlushList,
        }
    }
}
