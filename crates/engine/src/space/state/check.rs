//! The rules of [`super`] as assertions, for one extent after each change of it, and for all of them.

use super::super::layout::CHUNKS;
use super::SpaceState;
use std::collections::BTreeSet;

impl SpaceState {
    /// Checks rules 1 and 2 for one extent, and rule 4: an extent that waits for a checkpoint is empty.
    pub(super) fn check_extent(&self, number: u32) {
        if !cfg!(debug_assertions) {
            return;
        }
        let extent = self.extents[number as usize];
        let (unowned, holds) = (extent.chunks_of(0), |set: &BTreeSet<u32>| set.contains(&number));
        debug_assert_eq!(holds(&self.free) || holds(&self.untouched), unowned == 0xff, "extent {number}: {extent:?}");
        debug_assert!(!(holds(&self.free) && holds(&self.untouched)), "extent {number} can be taken and cannot");
        debug_assert_eq!(holds(&self.shared), !matches!(unowned, 0 | 0xff), "extent {number}: {extent:?}");
        for owner in extent.owners.into_iter().filter(|owner| *owner != 0) {
            let segment = self.segments.get(&owner);
            debug_assert!(segment.is_some_and(|segment| holds(&segment.extents)), "segment {owner} lacks {number}");
            let is_partial = segment.is_some_and(|segment| holds(&segment.partial));
            debug_assert_eq!(is_partial, extent.free_pages(owner) != 0, "segment {owner} in extent {number}");
        }
        debug_assert!(!self.freed.contains(number) || self.is_empty_extent(number), "extent {number} is in use");
    }

    /// The rules for all extents, and the sums.
    pub(crate) fn check_state(&self) {
        if !cfg!(debug_assertions) {
            return;
        }
        (0..self.extents()).for_each(|number| self.check_extent(number));
        let untouched = self.untouched.len() as u32 * CHUNKS;
        let unowned: u32 = self.extents.iter().map(|extent| extent.chunks_of(0).count_ones()).sum();
        debug_assert_eq!(self.unowned_chunks, unowned - untouched, "rule 1: the count of chunks without owner");
        let used: u32 = self.extents.iter().map(|extent| extent.used.count_ones()).sum();
        let of_segments: u32 = self.segments.values().map(|segment| segment.pages).sum();
        debug_assert_eq!(used, of_segments, "each used page has one segment");
        let last = [&self.free, &self.untouched, &self.shared].into_iter().filter_map(|set| set.last()).max();
        debug_assert!(last.is_none_or(|last| *last < self.extents()), "extent {last:?} is beyond the end");
    }
}
