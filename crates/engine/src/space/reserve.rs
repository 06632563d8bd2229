//! The reserve of a full disk, and the work that may use it. Pure functions, except for a mark on each thread with its
//! kind of work.
//!
//! Rules
//! 1. Users cannot use the reserve. Undo for their work may take half of it, undo of deletes half of the rest: so rows
//!    can be deleted when no row can be inserted, even if updates have filled their half (while a snapshot keeps purge
//!    from freeing it). Rollback, purge, recovery and drops may take all of it: they free space, and must not fail.
//! 2. The reserve grows with the file and is refilled when space is freed or the file grows.
//!
//! Differs from InnoDB: a sixteenth (at most 256 extents) instead of a hundredth, because extents are small.

use super::layout::CHUNKS;
use std::cell::Cell;

/// Free extents that even a small file reserves.
const MIN_KEPT_EXTENTS: u32 = 2;
/// The part of the file that is reserved in addition to those.
const SHARE: u32 = 16;
/// Most extents of that part.
const MAX_KEPT_EXTENTS: u32 = 256;

/// Purposes of a reservation; each may use more space than the previous ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SpacePriority {
    /// Rows, entries and tables of users.
    Users,
    /// Undo of users' changes.
    Undo,
    /// Deletes of rows: what they free in the end is more than they take.
    Deletes,
    /// Rollback, purge, recovery, drops.
    Cleaning,
}

/// Free extents that users leave in a file of `extents`.
pub(crate) fn reserve_extents(extents: u32) -> u32 {
    MIN_KEPT_EXTENTS + (extents / SHARE).min(MAX_KEPT_EXTENTS)
}

/// Chunks without owner that must be left in a file of `extents`.
pub(crate) fn kept_chunks(purpose: SpacePriority, extents: u32) -> u32 {
    let reserve = reserve_extents(extents) * CHUNKS;
    match purpose {
        SpacePriority::Users => reserve,
        SpacePriority::Undo => reserve / 2,
        SpacePriority::Deletes => reserve / 4,
        SpacePriority::Cleaning => 0,
    }
}

crate::sync::thread_local! {
    static PURPOSE: Cell<SpacePriority> = const { Cell::new(SpacePriority::Users) };
}

/// The present space priority of this thread.
pub(crate) fn purpose() -> SpacePriority {
    PURPOSE.with(Cell::get)
}

/// While the guard lives, this thread has the space priority `purpose`, or its earlier one if that is higher.
#[must_use]
pub(crate) fn entitle(purpose: SpacePriority) -> PriorityGuard {
    PriorityGuard { before: PURPOSE.with(|now| now.replace(now.get().max(purpose))) }
}

/// Ends an entitlement when dropped.
pub(crate) struct PriorityGuard {
    before: SpacePriority,
}

impl Drop for PriorityGuard {
    fn drop(&mut self) {
        PURPOSE.with(|now| now.set(self.before));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cleaning_may_take_more_than_filling() {
        for extents in [1, 8, 48, 1000, 1 << 26] {
            let purposes = [SpacePriority::Cleaning, SpacePriority::Deletes, SpacePriority::Undo, SpacePriority::Users];
            let kept = purposes.map(|purpose| kept_chunks(purpose, extents));
            assert!(kept[0] == 0 && kept.is_sorted_by(|less, more| less < more), "{extents}: {kept:?}");
            assert!(kept[3] <= (MIN_KEPT_EXTENTS + extents / 16) * CHUNKS, "{extents}: {kept:?}");
        }
        assert_eq!(reserve_extents(1 << 26), 258);
    }

    #[test]
    fn entitlements_nest_and_never_take_away() {
        assert_eq!(purpose(), SpacePriority::Users);
        let outer = entitle(SpacePriority::Cleaning);
        let inner = entitle(SpacePriority::Undo);
        assert_eq!(purpose(), SpacePriority::Cleaning);
        drop(inner);
        assert_eq!(purpose(), SpacePriority::Cleaning);
        drop(outer);
        assert_eq!(purpose(), SpacePriority::Users);
    }
}
