//! Page cleaner: keeps frames free, pages clean enough, the checkpoint moving.
//!
//! One [`Cleaner::step`] does a bounded amount of work: plan ([`super::policy`]), LRU-list flushing, flush-list
//! flushing, checkpoint. A thread calls it in production; tests and simulators call it directly.
//!
//! Rules
//! 1. The LRU part runs first and again after every flush-list batch, so that it never waits behind the other.
//! 2. The checkpoint never passes the oldest change that is not in the data file.

use super::doublewrite::BATCH_PAGES;
use super::policy::{self, Plan, Snapshot};
use super::{FlushReason, Pool};
use crate::config::Options;
use crate::error::Result;
use crate::log::Log;
use crate::types::Lsn;
use parking_lot::{Condvar, Mutex};
use std::time::Duration;

/// Wakes the cleaner before its time.
#[derive(Default)]
pub struct Wake {
    asked: Mutex<bool>,
    bell: Condvar,
}

impl Wake {
    /// Asks for a step now.
    pub fn wake(&self) {
        let mut asked = self.asked.lock();
        if !*asked {
            *asked = true;
            self.bell.notify_one();
        }
    }

    /// Waits until asked or until `timeout` has passed.
    pub fn wait(&self, timeout: Duration) {
        let mut asked = self.asked.lock();
        if !*asked {
            self.bell.wait_for(&mut asked, timeout);
        }
        *asked = false;
    }
}

impl Pool {
    /// The bell that wakes the cleaner.
    pub fn cleaner_wake(&self) -> &Wake {
        &self.cleaner
    }
}

/// The cleaner's memory between steps.
#[derive(Debug)]
pub struct Cleaner {
    redo_bytes_per_s: f64,
    last_end_lsn: Lsn,
    last_ms: u64,
    max_dirty_pages_pct: u64,
    io_capacity: u64,
}

impl Cleaner {
    /// A cleaner that has seen nothing yet.
    pub fn new(options: &Options, end_lsn: Lsn, now_ms: u64) -> Cleaner {
        Cleaner {
            redo_bytes_per_s: 0.0,
            last_end_lsn: end_lsn,
            last_ms: now_ms,
            max_dirty_pages_pct: options.max_dirty_pages_pct,
            io_capacity: options.io_capacity,
        }
    }

    /// One bounded step; `now_ms` is any clock that never goes back. Says how many pages it flushed.
    ///
    /// # Errors
    /// An I/O error, after which the database is poisoned.
    pub fn step(&mut self, pool: &Pool, log: &Log, now_ms: u64) -> Result<usize> {
        pool.set_now_ms(now_ms);
        let plan = policy::plan(&self.snapshot(pool, log, now_ms));
        let mut flushed = refill_free_list(pool, plan.free_pages)?;
        flushed += flush_for_log(pool, plan)?;
        move_checkpoint(pool, log)?;
        pool.publish_gauges();
        Ok(flushed)
    }

    fn snapshot(&mut self, pool: &Pool, log: &Log, now_ms: u64) -> Snapshot {
        let end_lsn = log.end_lsn();
        let elapsed_ms = now_ms.saturating_sub(self.last_ms);
        if elapsed_ms > 0 {
            let redo = end_lsn.0 - self.last_end_lsn.0;
            self.redo_bytes_per_s = policy::smooth(self.redo_bytes_per_s, redo, elapsed_ms);
            (self.last_end_lsn, self.last_ms) = (end_lsn, now_ms);
            pool.stats.redo_bytes_per_s.set(self.redo_bytes_per_s as u64);
        }
        Snapshot {
            end_lsn,
            oldest_lsn: pool.oldest_dirty_lsn().unwrap_or(end_lsn).min(end_lsn),
            log_capacity_bytes: log.capacity_bytes(),
            redo_bytes_per_s: self.redo_bytes_per_s,
            elapsed_ms,
            frames: pool.frame_count(),
            dirty: pool.dirty_count(),
            free: pool.free_count(),
            free_target: pool.free_target(),
            max_dirty_pages_pct: self.max_dirty_pages_pct,
            io_capacity_pages_per_s: self.io_capacity,
        }
    }
}

/// Evicts clean pages and flushes dirty ones at the LRU tail until `want` frames came free or nothing moves.
fn refill_free_list(pool: &Pool, want: usize) -> Result<usize> {
    let (mut freed, mut flushed) = (0, 0);
    while freed < want {
        let evicted = pool.evict_clean(pool.lru_scan_depth, want - freed);
        freed += evicted;
        if freed >= want {
            break;
        }
        let dirty = pool.dirty_tail(pool.lru_scan_depth, BATCH_PAGES.min(want - freed));
        let wrote = pool.flush_frames(&dirty, FlushReason::LruList)?;
        flushed += wrote;
        if evicted == 0 && wrote == 0 {
            break;
        }
    }
    Ok(flushed)
}

fn flush_for_log(pool: &Pool, plan: Plan) -> Result<usize> {
    let mut flushed = 0;
    loop {
        let by_age = pool.flush_oldest(plan.flush_before, BATCH_PAGES, plan.reason)?;
        let short = plan.flush_pages.saturating_sub(flushed + by_age).min(BATCH_PAGES);
        let by_share = if short > 0 { pool.flush_oldest(Lsn(u64::MAX), short, FlushReason::DirtyPct)? } else { 0 };
        flushed += by_age + by_share;
        if by_age + by_share == 0 || (by_age < BATCH_PAGES && flushed >= plan.flush_pages) {
            return Ok(flushed);
        }
        let missing = pool.free_target().saturating_sub(pool.free_count());
        flushed += refill_free_list(pool, missing)?;
    }
}

/// Moves the checkpoint if that gives a worthwhile part of the log back, or if the log is more than half full.
fn move_checkpoint(pool: &Pool, log: &Log) -> Result<()> {
    let target = checkpoint_target(pool, log);
    let (gain, age) = (target.0.saturating_sub(log.checkpoint_lsn().0), log.end_lsn().0 - log.checkpoint_lsn().0);
    let capacity = log.capacity_bytes();
    pool.stats.checkpoint_age_bytes.set(age);
    if gain >= capacity / 32 || (gain > 0 && age > capacity / 2) {
        log.checkpoint(target)?;
        pool.stats.checkpoint_age_bytes.set(log.end_lsn().0 - target.0);
    }
    Ok(())
}

/// The newest LSN recovery may start from. (The log's end is read first: whatever is appended later is newer.)
pub fn checkpoint_target(pool: &Pool, log: &Log) -> Lsn {
    let end = log.end_lsn();
    pool.oldest_dirty_lsn().unwrap_or(end).min(end)
}
