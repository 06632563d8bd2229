//! The threads that write pages: the page cleaner (for the log and the share of dirty pages) and the LRU flusher (for
//! free frames), and the redo rate that users may have meanwhile.
//!
//! | file | what |
//! |---|---|
//! | `page_cleaner` | one step of the page cleaner; the checkpoint |
//! | `lru_flusher` | one step of the LRU flusher |
//! | `policy` | how much to flush, how fast users may write: pure functions |
//! | `throttle` | slowing users above the async watermark |
//! | `pacing_model` | a model of users and a device around the policy |

mod lru_flusher;
pub mod pacing_model;
mod page_cleaner;
pub mod policy;
mod throttle;

pub use lru_flusher::LruFlusher;
#[cfg(test)]
pub use page_cleaner::flush;
pub use page_cleaner::{Cleaner, checkpoint, checkpoint_target};

use super::Pool;
use crate::config::Options;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering::Relaxed};
use crate::sync::notify::Notify;
use policy::Limits;
use throttle::Throttle;

/// The part of the pool that belongs to this folder.
#[derive(Default)]
pub struct CleanerPart {
    page_cleaner: Notify,
    pub lru_flusher: Notify,
    /// Threads keep frames free; without them, a thread that needs a frame does everything alone.
    threads: AtomicBool,
    throttle: Throttle,
    /// Limits that the page cleaner takes up at its next step.
    new_limits: Mutex<Option<Limits>>,
}

impl CleanerPart {
    pub fn threads_run(&self) -> bool {
        self.threads.load(Relaxed)
    }
}

impl Pool {
    /// The notification that wakes the page cleaner.
    pub fn cleaner_notify(&self) -> &Notify {
        &self.cleaner.page_cleaner
    }

    /// Changes what steers flushing.
    pub(crate) fn set_flush_limits(&self, options: &Options) {
        *self.cleaner.new_limits.lock() = Some(Limits::new(options));
        self.cleaner.page_cleaner.wake();
    }

    /// The notification that wakes the LRU flusher.
    pub fn lru_notify(&self) -> &Notify {
        &self.cleaner.lru_flusher
    }

    /// Slows users above the async watermark. The caller holds no latch.
    #[inline]
    pub(crate) fn throttle(&self) {
        if let Some(waited) = self.cleaner.throttle.wait(|| self.log.end_lsn()) {
            self.stats.sync_flush_waits.inc();
            self.stats.sync_flush_wait_us.add(waited.as_micros() as u64);
        }
    }

    /// Sets the redo that users may write per second. Without threads there is no limit: no thread would advance it
    /// while the caller waits.
    fn set_pace(&self, bytes_per_s: Option<f64>) {
        let limit = bytes_per_s.filter(|_| self.cleaner.threads.load(Relaxed));
        self.cleaner.throttle.set(limit, self.log.end_lsn());
    }

    /// Says whether threads run that call the steps of the page cleaner and of the LRU flusher.
    pub(crate) fn set_threads(&self, run: bool) {
        self.cleaner.threads.store(run, Relaxed);
        if !run {
            self.cleaner.throttle.set(None, self.log.end_lsn());
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::small_parts;

    /// One thread that does all steps itself waits for none of them.
    #[test]
    fn without_threads_no_user_is_slowed() {
        let parts = small_parts();
        let (pool, ctx) = (&parts.ctx.pool, &parts.ctx);
        for (threads, waits) in [(false, 0), (true, 1)] {
            parts.space.prepare(ctx).unwrap();
            pool.set_threads(threads);
            pool.set_pace(Some(1.0));
            let mut mtr = ctx.mtr_with(1000, 1).unwrap();
            parts.space.allocate(&mut mtr, crate::types::SegmentId(0x63), None).unwrap();
            mtr.commit();
            pool.throttle();
            assert_eq!(ctx.stats.sync_flush_waits.get(), waits);
        }
        pool.set_threads(false);
    }
}
