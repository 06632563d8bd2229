//! Free extents of which something is logged, in the order in which they may be discarded.

use crate::types::Lsn;
use std::collections::{BTreeMap, BTreeSet};

/// Free extents by the end of the log when they became free.
#[derive(Default)]
pub struct FreedExtents {
    at: BTreeMap<u32, Lsn>,
    in_order: BTreeSet<(Lsn, u32)>,
}

impl FreedExtents {
    pub fn note(&mut self, extent: u32, end_of_log: Lsn) {
        self.remove(extent);
        self.at.insert(extent, end_of_log);
        self.in_order.insert((end_of_log, extent));
    }

    pub fn remove(&mut self, extent: u32) {
        if let Some(lsn) = self.at.remove(&extent) {
            self.in_order.remove(&(lsn, extent));
        }
    }

    pub fn next_due(&mut self, checkpoint: Lsn) -> Option<u32> {
        let (_, extent) = self.in_order.first().copied().filter(|(lsn, _)| *lsn <= checkpoint)?;
        self.remove(extent);
        Some(extent)
    }
}
