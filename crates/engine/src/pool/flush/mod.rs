//! Flushing: which pages are dirty, and how dirty pages reach the store.
//!
//! | file | what |
//! |---|---|
//! | `dirty` | the marks of one page that differs from the store |
//! | `list` | the flush list |
//! | `note` | noting changes; how much is dirty |
//! | `neighbors`, `jobs` | what is flushed together |
//! | `write` | copy, redo, store, clean: the order of one batch |
//! | `oldest` | the pages that hold the checkpoint back |
//! | `filled` | the pages that a load has filled |
//! | `batches` | batches between uses, and how long they take |

mod batches;
pub(super) mod dirty;
mod filled;
mod jobs;
mod list;
mod neighbors;
mod note;
mod oldest;
mod write;
/// The atomics of [`dirty`]; a model checker puts its own in their place.
mod atomic {
    pub(super) use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
}

use crate::store::Lane;
use crate::sync::Mutex;
use crate::sync::atomic::AtomicU8;
use crate::sync::spread::Apart;
use batches::Batches;
use filled::Filled;
use list::FlushList;
use oldest::PassedBy;

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
    Filled,
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
    fn lane(self) -> Lane {
        match self {
            FlushReason::SinglePage => Lane::SinglePage,
            // When a database is closed nobody else flushes the LRU list.
            FlushReason::LruList | FlushReason::ShutdownBeside => Lane::LruList,
            _ => Lane::FlushList,
        }
    }
}

/// The part of the pool that belongs to this folder.
pub struct FlushPart {
    list: Apart<Mutex<FlushList>>,
    /// A leaf in the lock order: no other lock is taken under it.
    passed_by: Mutex<PassedBy>,
    filled: Filled,
    batches: Batches,
    /// 0, 1 or 2; see `flush_neighbors`.
    neighbors: AtomicU8,
}

impl FlushPart {
    pub fn new(frames: usize, page_bytes: usize) -> FlushPart {
        FlushPart {
            list: Apart(Mutex::new(FlushList::new(frames))),
            passed_by: Mutex::default(),
            filled: Filled::default(),
            batches: Batches::new(page_bytes),
            neighbors: AtomicU8::new(0),
        }
    }

    /// Microseconds that writing a batch took lately, smoothed; 0 when there was none yet.
    pub fn batch_us(&self, lane: Lane) -> u64 {
        self.batches.us(lane)
    }
}
