//! Empty extents with logged changes, in the order in which they may be discarded.

use crate::types::Lsn;
use std::collections::{BTreeMap, BTreeSet};

/// Empty extents by the end of the log when they were emptied.
#[derive(Default)]
pub(super) struct FreedExtents {
    at: BTreeMap<u32, Lsn>,
    in_order: BTreeSet<(Lsn, u32)>,
}

impl FreedExtents {
    pub(super) fn note(&mut self, extent: u32, end_of_log: Lsn) {
        self.remove(extent);
        self.at.insert(extent, end_of_log);
        self.in_order.insert((end_of_log, extent));
        debug_assert_eq!(self.at.len(), self.in_order.len(), "one LSN for each extent");
    }

    /// Whether the extent has logged changes that a checkpoint has to pass.
    pub(super) fn contains(&self, extent: u32) -> bool {
        self.at.contains_key(&extent)
    }

    pub(super) fn remove(&mut self, extent: u32) {
        if let Some(lsn) = self.at.remove(&extent) {
            let was_there = self.in_order.remove(&(lsn, extent));
            debug_assert!(was_there, "extent {extent} is not in order at {lsn}");
        }
    }

    /// Whether the extent has logged changes that `checkpoint` has not passed.
    pub(super) fn is_behind(&self, extent: u32, checkpoint: Lsn) -> bool {
        self.at.get(&extent).is_some_and(|lsn| *lsn > checkpoint)
    }

    /// Whether a checkpoint at `up_to` passes extents that a checkpoint at `behind` does not.
    pub(super) fn any_in(&self, behind: Lsn, up_to: Lsn) -> bool {
        self.in_order.range((Lsn(behind.0 + 1), 0)..).next().is_some_and(|(lsn, _)| *lsn <= up_to)
    }

    pub(super) fn next_due(&mut self, checkpoint: Lsn) -> Option<u32> {
        let (_, extent) = self.in_order.first().copied().filter(|(lsn, _)| *lsn <= checkpoint)?;
        self.remove(extent);
        Some(extent)
    }
}
