//! When pending changes are merged or carried forward (logged again): pure functions of sizes and ages.
//!
//! A merge costs a page read and, later, a page write. A carry costs the bytes of the changes in the log, which is
//! written sequentially. So old changes are carried, unless their leaf has so many that a merge is cheaper. When the
//! buffer is full, the leaves with at least the mean bytes of changes are merged, in the order of their page numbers.

/// Pending changes take at most 1 / `AGE_SHARE` of the redo after which they are due: all of them may be carried
/// forward at once.
const AGE_SHARE: u64 = 4;
/// Share of the limit above which leaves are merged in the background, in per cent.
const MERGE_PCT: usize = 80;
/// Largest age at which changes are carried forward, in per cent of the log's capacity.
const MAX_DUE_PCT: u64 = 50;
/// A leaf is merged instead of carried if its changes take at least 1 / `MERGE_PART` of a page.
const MERGE_PART: usize = 8;

/// Bytes of the pool that pending changes may take.
pub(crate) fn pool_share_bytes(pool_bytes: usize, max_size_pct: u64) -> usize {
    pool_bytes / 100 * max_size_pct as usize
}

/// Most bytes of pending changes: the smaller of the pool's share and the log's.
pub(crate) fn limit_bytes(pool_share_bytes: usize, due_age_bytes: u64) -> usize {
    pool_share_bytes.min((due_age_bytes / AGE_SHARE) as usize)
}

/// Bytes above which leaves are merged in the background.
pub(crate) fn merge_above_bytes(limit_bytes: usize) -> usize {
    limit_bytes / 100 * MERGE_PCT
}

/// Most pages of the tree of operations.
pub(crate) fn limit_pages(frames: usize, max_size_pct: u64) -> usize {
    (frames * max_size_pct as usize / 100).max(2)
}

/// Pages of the tree above which leaves are merged in the background.
pub(crate) fn merge_above_pages(limit_pages: usize) -> usize {
    limit_pages * MERGE_PCT / 100
}

/// Bytes of redo after which changes are due to be merged or carried forward: two thirds of the way to the async
/// watermark, because the age of the oldest one slows writers above it; half of the log at most.
pub(crate) fn due_age_bytes(log_capacity_bytes: u64, checkpoint_age_async_pct: u64) -> u64 {
    log_capacity_bytes * (checkpoint_age_async_pct * 2 / 3).min(MAX_DUE_PCT) / 100
}

/// The way in which the changes of a leaf are handled so that the checkpoint can advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Advance {
    /// They are logged again.
    Carry,
    /// The leaf is read.
    Merge,
}

/// The cheaper way for a leaf with this many bytes of changes.
pub(crate) fn advance(change_bytes: usize, page_bytes: usize) -> Advance {
    if change_bytes * MERGE_PART >= page_bytes { Advance::Merge } else { Advance::Carry }
}

/// Whether a leaf is merged when the buffer is full: it has at least the mean bytes of changes.
pub(crate) fn is_worth_merging(leaf_bytes: usize, all_bytes: usize, leaves: usize) -> bool {
    leaf_bytes * leaves >= all_bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_a_share_of_the_pool_that_the_log_can_carry() {
        assert_eq!(limit_bytes(pool_share_bytes(1000 << 20, 25), 1 << 30), 250 * ((1000 << 20) / 1000));
        assert_eq!(limit_bytes(pool_share_bytes(1 << 30, 50), 32 << 20), 8 << 20);
    }

    #[test]
    fn the_tree_has_a_share_of_the_pool_and_two_pages_at_least() {
        assert_eq!(limit_pages(6400, 25), 1600);
        assert_eq!(limit_pages(64, 1), 2);
        assert_eq!(merge_above_pages(1600), 1280);
        assert_eq!(merge_above_pages(2), 1);
    }

    #[test]
    fn few_changes_are_carried_and_many_merged() {
        assert_eq!(advance(100, 16384), Advance::Carry);
        assert_eq!(advance(2047, 16384), Advance::Carry);
        assert_eq!(advance(2048, 16384), Advance::Merge);
        assert_eq!(advance(512, 4096), Advance::Merge);
    }

    #[test]
    fn changes_are_due_at_half_of_the_log_or_before_they_slow_writers() {
        assert_eq!(due_age_bytes(1000, 95), 500);
        assert_eq!(due_age_bytes(1000, 75), 500);
        assert_eq!(due_age_bytes(1000, 30), 200);
        assert!((20..=95).all(|async_pct| due_age_bytes(1000, async_pct) * 5 <= async_pct * 10 * 4));
    }

    #[test]
    fn a_leaf_with_the_mean_is_worth_its_merge() {
        assert!(is_worth_merging(10, 100, 10));
        assert!(!is_worth_merging(9, 100, 10));
        assert!(is_worth_merging(1, 3, 3));
    }
}
