//! Page cleaner: flushes dirty pages and moves the checkpoint. (The LRU flusher frees frames.)
//!
//! One [`Cleaner::step`] does a bounded amount of work: take a snapshot, decide ([`crate::pool::pacing::policy`]),
//! flush what loads have filled unless writers are slowed, flush a batch, move the checkpoint, mark an idle log, set
//! the pace of users. A thread calls it in production; tests and simulators call it directly.
//!
//! Rule: the checkpoint never passes the oldest change that is not in the store, whether of a dirty page or pending.

use crate::config::Options;
use crate::error::Result;
use crate::log::Log;
use crate::pool::buffer_pool::Pool;
use crate::pool::pacing::policy::{AdaptiveFlusher, FlushPlan, Limits, Snapshot};
use crate::store::BATCH_PAGES;
use crate::types::Lsn;

/// Milliseconds without new redo after which the log notes its durable LSN.
const IDLE_LOG_MS: u64 = 1000;

/// The cleaner's memory between steps.
#[derive(Debug)]
pub(crate) struct Cleaner {
    flusher: AdaptiveFlusher,
    /// The log's end, and since when it has not moved; `None` once the durable LSN was noted.
    log_end: Lsn,
    log_idle_since_ms: Option<u64>,
}

impl Cleaner {
    /// A cleaner before its first step.
    pub(crate) fn new(options: &Options) -> Cleaner {
        Cleaner { flusher: AdaptiveFlusher::new(Limits::new(options)), log_end: Lsn(0), log_idle_since_ms: None }
    }

    /// One bounded step; `now_ms` is any monotonic clock. Returns how many pages it flushed; after a large batch it
    /// asks to be called again at once.
    pub(crate) fn step(&mut self, pool: &Pool, log: &Log, now_ms: u64) -> Result<usize> {
        pool.cache().lru().set_now_ms(now_ms);
        let is_log_growing = log.growth_step()?;
        if let Some(limits) = pool.cleaner_control().take_limits() {
            self.flusher.set_limits(limits);
        }
        let plan = self.flusher.decide(&snapshot(pool, log, now_ms));
        pool.stats().redo_bytes_per_s.set(self.flusher.redo_bytes_per_s() as u64);
        pool.set_pace(plan.user_redo_bytes_per_s);
        let slows_writers = plan.user_redo_bytes_per_s.is_some();
        let filled = if slows_writers { 0 } else { pool.flusher().flush_bulk_loaded()? };
        let flushed = filled + flush(pool, &plan)?;
        move_checkpoint(pool, log)?;
        self.mark_idle_log(log, now_ms)?;
        pool.publish_gauges();
        if flushed >= BATCH_PAGES / 2 || slows_writers || is_log_growing {
            pool.cleaner_notify().wake();
        }
        Ok(flushed)
    }
}

impl Cleaner {
    /// Writes the durable LSN of an idle log into its header, once: no later write would say it.
    fn mark_idle_log(&mut self, log: &Log, now_ms: u64) -> Result<()> {
        if log.end_lsn() != self.log_end {
            (self.log_end, self.log_idle_since_ms) = (log.end_lsn(), Some(now_ms));
        } else if self.log_idle_since_ms.is_some_and(|since| now_ms >= since + IDLE_LOG_MS) {
            self.log_idle_since_ms = None;
            log.mark_durable()?;
        }
        Ok(())
    }
}

fn snapshot(pool: &Pool, log: &Log, now_ms: u64) -> Snapshot {
    let end_lsn = log.end_lsn();
    Snapshot {
        now_s: now_ms as f64 / 1000.0,
        end_lsn,
        held_lsn: pool.oldest_lsn().unwrap_or(end_lsn).min(end_lsn),
        oldest_lsn: pool.oldest_dirty_lsn().unwrap_or(end_lsn).min(end_lsn),
        log_capacity_bytes: log.capacity_bytes(),
        frames: pool.frame_count(),
        dirty: pool.dirty_count(),
        flushed: pool.stats().pages_flushed.get(),
    }
}

/// Pages flushed for the log count for the other budget too.
pub(crate) fn flush(pool: &Pool, plan: &FlushPlan) -> Result<usize> {
    let for_log = pool.flush_oldest(plan.flush_before, BATCH_PAGES, plan.reason)?;
    let more = plan.pages.min(BATCH_PAGES).saturating_sub(for_log);
    if more == 0 {
        return Ok(for_log);
    }
    Ok(for_log + pool.flush_oldest(Lsn(u64::MAX), more, plan.pages_reason)?)
}

/// Moves the checkpoint if that frees a useful part of the log, or if the log is more than half full.
fn move_checkpoint(pool: &Pool, log: &Log) -> Result<()> {
    let target = checkpoint_target(pool, log);
    let (gain, age) = (target.0.saturating_sub(log.checkpoint_lsn().0), log.end_lsn().0 - log.checkpoint_lsn().0);
    let capacity = log.capacity_bytes();
    pool.stats().checkpoint_age_bytes.set(age);
    if gain >= capacity / 32 || (gain > 0 && age > capacity / 2) {
        checkpoint(pool, log, target)?;
        pool.stats().checkpoint_age_bytes.set(log.end_lsn().0 - target.0);
    }
    Ok(())
}

/// Makes `target`, a [`checkpoint_target`], the LSN at which recovery starts. Pending changes that were carried forward
/// become durable in the log first.
pub(crate) fn checkpoint(pool: &Pool, log: &Log, target: Lsn) -> Result<()> {
    log.flush_to(pool.carried_lsn())?;
    log.note_store_mark(pool.store().mark());
    // Later changes have LSNs above the target.
    let oldest = pool.oldest_lsn();
    debug_assert!(
        oldest.is_none_or(|oldest| target <= oldest),
        "the checkpoint {target} passes a change at {oldest:?}"
    );
    log.checkpoint(target)
}

/// The newest LSN recovery may start from. (The log's end is read first: later redo is newer.)
pub(crate) fn checkpoint_target(pool: &Pool, log: &Log) -> Lsn {
    let end = log.end_lsn();
    pool.oldest_lsn().unwrap_or(end).min(end)
}
