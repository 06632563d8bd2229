//! The number of pages to flush, and the limit of users' redo: pure functions of the present and earlier snapshots.
//!
//! Two budgets that are independent of each other: [`free_target`] for the thread that frees frames from the LRU tail,
//! [`AdaptiveFlusher`] for the flush list.
//!
//! The flush list. With `x` = checkpoint age / log capacity:
//! - below `adaptive_flushing_lwm` nothing is flushed for the log, because a page that is written early often changes
//!   again;
//! - above it the flush list's tail moves with the redo rate times a square: as fast as the redo at [`EVEN_PCT`],
//!   slower below, faster above;
//! - above the async watermark old pages are flushed as fast as the device allows, and users may write redo at a
//!   multiple of the speed at which the tail moves: 4 times at the async watermark, once halfway, a quarter at the sync
//!   watermark. So the load converges to the device's speed between the two, and never fills the log;
//! - above the sync watermark the same flushing counts as sync flush.
//!
//! In addition, the share of dirty pages is kept between its two marks, and dirty pages of an idle database are written
//! slowly.

use crate::config::Options;
use crate::pool::flush::FlushReason;
use crate::types::Lsn;

/// Checkpoint age, in per cent of the log, at which flushing is exactly as fast as the redo.
pub(crate) const EVEN_PCT: f64 = 60.0;
/// Share of `io_capacity` spent while nothing is changed.
const IDLE_SHARE: f64 = 0.1;
/// The log counts as idle after this many seconds without redo.
const IDLE_AFTER_S: f64 = 1.0;
/// Below the async watermark pages are flushed this many at a time: a batch costs two syncs, for any size.
const SMALL_BATCH: f64 = 32.0;

/// The options that steer flushing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Per cent of dirty frames at which all of `io_capacity` is used.
    pub max_dirty_pages_pct: f64,
    /// Per cent of dirty frames at which flushing for this share begins; 0 = at the maximum.
    pub max_dirty_pages_pct_lwm: f64,
    /// Pages per second.
    pub io_capacity: f64,
    /// Per cent of the log at which flushing for the log begins.
    pub adaptive_flushing_lwm: f64,
    /// Per cent of the log at which users are slowed.
    pub async_pct: f64,
    /// Per cent of the log above which flushing counts as sync flush.
    pub sync_pct: f64,
}

impl Limits {
    /// As the options say; marks in a wrong order are put in order.
    pub fn new(options: &Options) -> Limits {
        let max_dirty_pages_pct = options.max_dirty_pages_pct as f64;
        let lwm = options.max_dirty_pages_pct_lwm as f64;
        let async_pct = options.checkpoint_age_async_pct as f64;
        Limits {
            max_dirty_pages_pct,
            max_dirty_pages_pct_lwm: if lwm == 0.0 { max_dirty_pages_pct } else { lwm.min(max_dirty_pages_pct) },
            io_capacity: options.io_capacity as f64,
            adaptive_flushing_lwm: (options.adaptive_flushing_lwm as f64).min(async_pct - 1.0),
            async_pct,
            sync_pct: (options.checkpoint_age_sync_pct as f64).max(async_pct + 1.0),
        }
    }
}

/// The state at one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Snapshot {
    /// A monotonic clock, in seconds.
    pub now_s: f64,
    pub end_lsn: Lsn,
    /// Start of the oldest change not in the data file (or the log's end).
    pub oldest_lsn: Lsn,
    /// The LSN that limits the checkpoint: the same, or that of the oldest pending change (`pool::pending`), if older.
    pub held_lsn: Lsn,
    /// Bytes the log can hold between checkpoint and end.
    pub log_capacity_bytes: u64,
    pub frames: usize,
    pub dirty: usize,
    /// Pages written so far, for any reason.
    pub flushed: u64,
}

/// Bytes per second: lately, and over a few seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Rate {
    fast: f64,
    slow: f64,
}

impl Rate {
    fn add(&mut self, bytes: u64, elapsed_s: f64) {
        let now = bytes as f64 / elapsed_s;
        self.fast += (now - self.fast) * (1.0 - (-elapsed_s / 0.25).exp());
        self.slow += (now - self.slow) * (1.0 - (-elapsed_s / 2.0).exp());
    }

    /// The larger one: a burst counts at once and for a while after.
    fn cautious(&self) -> f64 {
        self.fast.max(self.slow)
    }
}

/// The present plan of flushing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FlushPlan {
    /// Flush pages whose oldest change is before this, oldest first, a batch at a time.
    pub flush_before: Lsn,
    pub reason: FlushReason,
    /// If those are fewer: flush this many of the oldest pages in all.
    pub pages: usize,
    pub pages_reason: FlushReason,
    /// Bytes of redo that users may write per second; `None` = no limit.
    pub user_redo_bytes_per_s: Option<f64>,
}

/// The memory between steps.
#[derive(Clone, Debug)]
pub(crate) struct AdaptiveFlusher {
    limits: Limits,
    last: Option<Snapshot>,
    redo: Rate,
    flushed: Rate,
    idle_s: f64,
    due_lsn: f64,
    credit_pages: f64,
}

impl AdaptiveFlusher {
    /// A pacer before its first snapshot.
    pub(crate) fn new(limits: Limits) -> AdaptiveFlusher {
        let (redo, flushed) = (Rate::default(), Rate::default());
        AdaptiveFlusher { limits, last: None, redo, flushed, idle_s: 0.0, due_lsn: 0.0, credit_pages: 0.0 }
    }

    /// Continues with other limits.
    pub(crate) fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Redo per second, smoothed, in bytes.
    pub(crate) fn redo_bytes_per_s(&self) -> f64 {
        self.redo.fast
    }

    /// Learns from a snapshot and says what to do.
    pub(crate) fn decide(&mut self, now: &Snapshot) -> FlushPlan {
        let elapsed_s = self.last.map_or(0.0, |last| now.now_s - last.now_s);
        if self.last.is_none() || elapsed_s >= 0.005 {
            self.learn(now, elapsed_s);
        }
        let age_pct = age_pct(now);
        let (pages, pages_reason) = self.extra_pages(now);
        let reason = if age_pct >= self.limits.sync_pct { FlushReason::Sync } else { FlushReason::CheckpointAge };
        let flush_before = if age_pct >= self.limits.async_pct { now.end_lsn } else { self.due(now) };
        let user_redo_bytes_per_s = self.user_limit(age_of(now, now.held_lsn), now);
        FlushPlan { flush_before, reason, pages, pages_reason, user_redo_bytes_per_s }
    }

    /// The LSN up to which the redo rate requires pages to be flushed, once they make a batch. Dirty pages are assumed
    /// to be spread evenly over the log.
    fn due(&self, now: &Snapshot) -> Lsn {
        let (due, age) = (self.due_lsn - now.oldest_lsn.0 as f64, (now.end_lsn.0 - now.oldest_lsn.0) as f64);
        let pages = now.dirty as f64 * due / age.max(1.0);
        if pages >= SMALL_BATCH.min(now.dirty as f64 / 4.0) { Lsn(self.due_lsn as u64) } else { now.oldest_lsn }
    }

    fn learn(&mut self, now: &Snapshot, elapsed_s: f64) {
        let Some(last) = self.last.replace(*now) else {
            self.due_lsn = now.oldest_lsn.0 as f64;
            return;
        };
        let redo = now.end_lsn.0 - last.end_lsn.0;
        self.redo.add(redo, elapsed_s);
        self.flushed.add(now.flushed - last.flushed, elapsed_s);
        self.idle_s = if redo == 0 { self.idle_s + elapsed_s } else { 0.0 };
        let advance = self.redo.cautious() * speed(age_pct(now), &self.limits) * elapsed_s;
        let keep = now.log_capacity_bytes as f64 * self.limits.adaptive_flushing_lwm / 100.0;
        let due = self.due_lsn.max(now.oldest_lsn.0 as f64) + advance;
        self.due_lsn = due.min((now.end_lsn.0 as f64 - keep).max(now.oldest_lsn.0 as f64));
        let (pages_per_s, _) = self.extra_rate(now);
        self.credit_pages = (self.credit_pages + pages_per_s * elapsed_s).min(4.0 * SMALL_BATCH);
        if pages_per_s == 0.0 {
            self.credit_pages = 0.0;
        }
    }

    /// Pages per second in addition to those the log asks for, and why.
    fn extra_rate(&self, now: &Snapshot) -> (f64, FlushReason) {
        let limits = &self.limits;
        let dirty_pct = now.dirty as f64 * 100.0 / now.frames.max(1) as f64;
        if dirty_pct >= limits.max_dirty_pages_pct {
            return (limits.io_capacity, FlushReason::DirtyPct);
        }
        let idle = if self.idle_s >= IDLE_AFTER_S && now.dirty > 0 { limits.io_capacity * IDLE_SHARE } else { 0.0 };
        let span = limits.max_dirty_pages_pct - limits.max_dirty_pages_pct_lwm;
        let share = if span > 0.0 { ((dirty_pct - limits.max_dirty_pages_pct_lwm) / span).max(0.0) } else { 0.0 };
        let gradual = limits.io_capacity * share;
        if gradual > idle { (gradual, FlushReason::DirtyPct) } else { (idle, FlushReason::Idle) }
    }

    fn extra_pages(&mut self, now: &Snapshot) -> (usize, FlushReason) {
        let reason = self.extra_rate(now).1;
        let least = SMALL_BATCH.min(now.dirty as f64);
        if self.credit_pages < least.max(1.0) {
            return (0, reason);
        }
        let pages = self.credit_pages.floor();
        self.credit_pages -= pages;
        (pages as usize, reason)
    }

    /// The tail's speed is taken from the whole flush list, not from how its tail moves just now: many pages that
    /// were changed at the same time would stop all users until they are written.
    fn user_limit(&self, age_pct: f64, now: &Snapshot) -> Option<f64> {
        let (from, to) = (self.limits.async_pct, self.limits.sync_pct);
        if age_pct < from {
            return None;
        }
        let bytes_per_page = (now.end_lsn.0 - now.oldest_lsn.0) as f64 / now.dirty.max(1) as f64;
        // Without a measurement the device is assumed to write the log's worth of pages in four minutes.
        let least = now.log_capacity_bytes as f64 / 256.0;
        let above = ((age_pct - from) / (to - from)).min(1.5);
        Some((self.flushed.slow * bytes_per_page).max(least) * 4_f64.powf(1.0 - 2.0 * above))
    }
}

/// Age of the oldest dirty page in per cent of the log.
pub(crate) fn age_pct(now: &Snapshot) -> f64 {
    age_of(now, now.oldest_lsn)
}

fn age_of(now: &Snapshot, lsn: Lsn) -> f64 {
    now.end_lsn.0.saturating_sub(lsn.0) as f64 * 100.0 / now.log_capacity_bytes as f64
}

/// Speed of the flush list's tail below the async watermark, in units of the redo rate.
pub fn speed(age_pct: f64, limits: &Limits) -> f64 {
    let even = EVEN_PCT.min(limits.async_pct).max(limits.adaptive_flushing_lwm + 1.0);
    ((age_pct - limits.adaptive_flushing_lwm).max(0.0) / (even - limits.adaptive_flushing_lwm)).powi(2)
}

/// Free frames to keep ready: as many as are taken while two batches are written and a thread is woken. No more than a
/// 64th of a large pool: empty frames hold nothing, and pages cleaned long before they go are changed and written
/// again.
pub(crate) fn free_target(demand_per_s: f64, batch_us: u64, frames: usize, lru_scan_depth: usize) -> usize {
    let lead_s = 2.0 * batch_us as f64 / 1e6 + 0.02;
    let share = (frames / 64).max(64.min(frames / 8));
    let max = lru_scan_depth.min(share).max(4);
    ((demand_per_s * lead_s) as usize).clamp(64.min(max), max)
}

/// Pages of a batch so that it takes about `aim_us`, when a batch of `pages` took `took_us`.
pub(crate) fn batch_pages(max: usize, took_us: u64, aim_us: u64) -> usize {
    if took_us <= aim_us { max } else { ((max as u64 * aim_us / took_us) as usize).clamp(8.min(max), max) }
}

#[cfg(test)]
#[path = "policy_test.rs"]
mod tests;
