//! Flushing: which pages are dirty, and how dirty pages reach the store.
//!
//! | file | what |
//! |---|---|
//! | `dirty` | the marks of one page that differs from the store |
//! | `list` | the flush list |
//! | `mark_dirty` | noting changes; how much is dirty |
//! | `neighbors`, `select` | what is flushed together |
//! | `write` | copy, redo, store, clean: the order of one batch |
//! | `oldest` | the pages that hold the checkpoint back |
//! | `bulk_loaded` | the pages that a load has filled |
//! | `in_flight` | where that is checked: a page is in one unfinished batch at most |
//! | `batches` | batches between uses, and how long they take |

mod batches;
mod bulk_loaded;
pub(super) mod dirty;
mod in_flight;
mod list;
mod mark_dirty;
mod neighbors;
mod oldest;
mod select;
mod write;
/// The atomics of [`dirty`]; a model checker puts its own in their place.
mod atomic {
    pub(super) use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
}

use crate::store::FlushLane;
use crate::sync::Mutex;
use crate::sync::atomic::AtomicU8;
use crate::sync::sharded::CachePadded;
use batches::Batches;
use bulk_loaded::BulkLoadedPages;
use in_flight::PagesInFlight;
use list::FlushList;
use oldest::OldestPageStarvation;

/// Why pages are flushed; each flushed page is counted once under its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushReason {
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
    /// The same, by every other thread that helps.
    ShutdownBeside,
}

impl FlushReason {
    /// Where the batches go: two threads that have different lanes do not wait for each other.
    fn lane(self) -> FlushLane {
        match self {
            FlushReason::SinglePage => FlushLane::SinglePage,
            // When a database is closed no other thread flushes the LRU list.
            FlushReason::LruList | FlushReason::ShutdownBeside => FlushLane::LruList,
            _ => FlushLane::FlushList,
        }
    }
}

/// The part of the pool that belongs to this folder.
pub struct FlushPart {
    list: CachePadded<Mutex<FlushList>>,
    /// A leaf in the lock order: no other lock is taken under it.
    oldest_starvation: Mutex<OldestPageStarvation>,
    filled: BulkLoadedPages,
    batches: Batches,
    in_flight: PagesInFlight,
    /// 0, 1 or 2; see `flush_neighbors`.
    neighbors: AtomicU8,
}

impl FlushPart {
    pub fn new(frames: usize, page_bytes: usize) -> FlushPart {
        FlushPart {
            list: CachePadded(Mutex::new(FlushList::new(frames))),
            oldest_starvation: Mutex::default(),
            filled: BulkLoadedPages::default(),
            batches: Batches::new(page_bytes),
            in_flight: PagesInFlight::default(),
            neighbors: AtomicU8::new(0),
        }
    }

    /// Microseconds that writing a batch took lately, smoothed; 0 when there was none yet.
    pub fn batch_us(&self, lane: FlushLane) -> u64 {
        self.batches.us(lane)
    }
}
