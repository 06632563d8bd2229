//! How much to flush: pure functions of a snapshot.
//!
//! Two budgets that never touch: `free_pages` refills the free list from the LRU tail; `flush_before`/`flush_pages` move
//! the checkpoint and hold the dirty share. The first is never reduced by the second.
//!
//! Flushing follows the redo rate. With `x` = checkpoint age / log capacity:
//! - below 1/8 nothing is flushed for the log's sake (pages change again; writing them early is waste);
//! - at 1/2 the flush list's tail moves exactly as fast as the log grows;
//! - between, and above, the speed goes with the square, so a burst is met early and gently;
//! - above 7/8 everything older than 3/4 of the capacity goes at once.

use super::FlushReason;
use crate::types::Lsn;

/// What the cleaner knows when it plans a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Snapshot {
    /// End of the log.
    pub end_lsn: Lsn,
    /// Start of the oldest change not in the data file (or the log's end).
    pub oldest_lsn: Lsn,
    /// Bytes the log can hold between checkpoint and end.
    pub log_capacity_bytes: u64,
    /// Redo written per second, smoothed.
    pub redo_bytes_per_s: f64,
    /// Milliseconds since the step before.
    pub elapsed_ms: u64,
    /// Frames in the pool.
    pub frames: usize,
    /// Dirty frames.
    pub dirty: usize,
    /// Free frames.
    pub free: usize,
    /// Free frames wanted.
    pub free_target: usize,
    /// The option.
    pub max_dirty_pages_pct: u64,
    /// The option.
    pub io_capacity_pages_per_s: u64,
}

/// What the cleaner does in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Frames to free from the LRU tail.
    pub free_pages: usize,
    /// Flush every page whose oldest change is before this.
    pub flush_before: Lsn,
    /// Why: the checkpoint age, or the sync watermark.
    pub reason: FlushReason,
    /// Flush at least so many of the oldest pages, whatever their LSN.
    pub flush_pages: usize,
}

/// Plans a step.
pub fn plan(now: &Snapshot) -> Plan {
    Plan {
        free_pages: now.free_target.saturating_sub(now.free),
        flush_before: flush_before(now),
        reason: if share_of_log(now) >= SYNC_SHARE { FlushReason::Sync } else { FlushReason::CheckpointAge },
        flush_pages: pages_over_dirty_limit(now),
    }
}

/// Share of the log above which the oldest changes are flushed at once.
const SYNC_SHARE: f64 = 0.875;

/// Checkpoint age as a share of the log.
fn share_of_log(now: &Snapshot) -> f64 {
    now.end_lsn.0.saturating_sub(now.oldest_lsn.0) as f64 / now.log_capacity_bytes as f64
}

fn flush_before(now: &Snapshot) -> Lsn {
    let capacity = now.log_capacity_bytes as f64;
    let share = share_of_log(now);
    if share >= SYNC_SHARE {
        return Lsn(now.end_lsn.0 - (capacity * 0.75) as u64);
    }
    let speed = ((share - 0.125).max(0.0) / 0.375).powi(2);
    let advance = now.redo_bytes_per_s * now.elapsed_ms as f64 / 1000.0 * speed;
    Lsn(now.oldest_lsn.0 + advance as u64)
}

fn pages_over_dirty_limit(now: &Snapshot) -> usize {
    let limit = now.frames * now.max_dirty_pages_pct as usize / 100;
    let budget = (now.io_capacity_pages_per_s * now.elapsed_ms).div_ceil(1000) as usize;
    now.dirty.saturating_sub(limit).min(budget.max(1))
}

/// Smooths the redo rate: three parts of the past, one part of now.
pub fn smooth(past: f64, redo_bytes: u64, elapsed_ms: u64) -> f64 {
    let now = redo_bytes as f64 * 1000.0 / elapsed_ms.max(1) as f64;
    if past == 0.0 { now } else { past * 0.75 + now * 0.25 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calm() -> Snapshot {
        Snapshot {
            end_lsn: Lsn(1000 << 20),
            oldest_lsn: Lsn(1000 << 20),
            log_capacity_bytes: 256 << 20,
            redo_bytes_per_s: (64 << 20) as f64,
            elapsed_ms: 100,
            frames: 8192,
            dirty: 100,
            free: 1024,
            free_target: 1024,
            max_dirty_pages_pct: 75,
            io_capacity_pages_per_s: 2000,
        }
    }

    fn advance_at(share: f64) -> u64 {
        let now = calm();
        let age = (now.log_capacity_bytes as f64 * share) as u64;
        let now = Snapshot { oldest_lsn: Lsn(now.end_lsn.0 - age), ..now };
        plan(&now).flush_before.0 - now.oldest_lsn.0
    }

    #[test]
    fn flushing_follows_the_redo_rate() {
        let per_step = (64 << 20) / 10;
        assert_eq!(advance_at(0.10), 0);
        assert!(advance_at(0.25) < per_step / 4);
        assert!(advance_at(0.5).abs_diff(per_step) < per_step / 100);
        assert!(advance_at(0.75) > per_step * 5 / 2);
        assert!(advance_at(0.95) >= (256 << 20) / 5);
        let speeds: Vec<u64> = (0..=100).map(|pct| advance_at(f64::from(pct) / 100.0)).collect();
        assert!(speeds.is_sorted(), "more age must never mean less flushing: {speeds:?}");
    }

    #[test]
    fn budgets_are_apart() {
        let pressed = Snapshot { free: 24, dirty: 8000, oldest_lsn: Lsn(760 << 20), ..calm() };
        let plan_pressed = plan(&pressed);
        assert_eq!(plan_pressed.free_pages, 1000);
        assert_eq!(plan_pressed.flush_pages, 200);
        assert_eq!(plan(&Snapshot { free: 24, ..calm() }).free_pages, 1000);
        assert_eq!(
            plan(&calm()),
            Plan { free_pages: 0, flush_before: calm().oldest_lsn, reason: FlushReason::CheckpointAge, flush_pages: 0 }
        );
    }

    #[test]
    fn rate_is_smoothed() {
        assert_eq!(smooth(0.0, 1000, 1000), 1000.0);
        assert_eq!(smooth(1000.0, 2000, 1000), 1250.0);
        assert_eq!(smooth(1000.0, 0, 0), 750.0);
    }
}
