//! The threads that write pages: the page cleaner (for the log and the share of dirty pages) and the LRU flusher (for
//! free frames), and the redo rate that users may have meanwhile.
//!
//! | file | what |
//! |---|---|
//! | `page_cleaner` | one step of the page cleaner; the checkpoint |
//! | `lru_flusher` | one step of the LRU flusher |
//! | `policy` | how much to flush, how fast users may write: pure functions |
//! | `pace` | slowing users above the async watermark |
//! | `pacing_model` | a model of users and a device around the policy |

mod lru_flusher;
mod pace;
pub mod pacing_model;
mod page_cleaner;
pub mod policy;

pub use lru_flusher::LruFlusher;
#[cfg(test)]
pub use page_cleaner::flush;
pub use page_cleaner::{Cleaner, checkpoint, checkpoint_target};

use super::Pool;
use crate::sync::atomic::{AtomicBool, Ordering::Relaxed};
use crate::sync::wake::Wake;
use pace::Pace;

/// The part of the pool that belongs to this folder.
#[derive(Default)]
pub struct CleanerPart {
    page_cleaner: Wake,
    pub lru_flusher: Wake,
    /// Threads keep frames free; without them, a thread that needs a frame does everything alone.
    threads: AtomicBool,
    pace: Pace,
}

impl CleanerPart {
    pub fn threads_run(&self) -> bool {
        self.threads.load(Relaxed)
    }
}

impl Pool {
    /// The bell that wakes the page cleaner.
    pub fn cleaner_wake(&self) -> &Wake {
        &self.cleaner.page_cleaner
    }

    /// The bell that wakes the LRU flusher.
    pub fn lru_wake(&self) -> &Wake {
        &self.cleaner.lru_flusher
    }

    /// Slows users above the async watermark. The caller holds no latch.
    #[inline]
    pub(crate) fn keep_pace(&self) {
        if let Some(waited) = self.cleaner.pace.wait(|| self.log.end_lsn()) {
            self.stats.sync_flush_waits.inc();
            self.stats.sync_flush_wait_us.add(waited.as_micros() as u64);
        }
    }

    /// Says whether threads run that call the steps of the page cleaner and of the LRU flusher.
    pub(crate) fn set_threads(&self, run: bool) {
        self.cleaner.threads.store(run, Relaxed);
        if !run {
            self.cleaner.pace.set(None, self.log.end_lsn());
        }
    }
}
