//! Prefetching for a scan by an index: the leaves of the next rows are looked up in advance, so that the processor
//! fetches several from memory concurrently. The leaves are scattered, so without this the scan would wait for each
//! one.
//!
//! Rules
//! 1. A found position is a hint: if the leaf has changed, it is not used.
//! 2. Consecutive rows on one leaf are found faster by the leaf hint: a scan that meets such rows does not prefetch for
//!    a while.

use super::scan_batch::RowBatch;
use crate::btree::{BTree, LeafPosition};
use crate::context::Context;

/// Rows whose leaves are on their way to the processor's cache. It keeps about a dozen fetches open, and a leaf needs a
/// few.
const AHEAD: usize = 8;
/// This many rows before it is needed, the record of a row is looked for on its leaf.
const RECORD_AHEAD: usize = 3;
/// Number of rows without prefetching after two rows that shared a leaf.
const PAUSE: usize = 32;

/// The leaves that were looked for.
#[derive(Debug, Default)]
pub(crate) struct RowPrefetcher {
    /// Of item `n` of the batch at `n % AHEAD`.
    ways: [Option<LeafPosition>; AHEAD],
    /// Items of the batch that were looked for, or passed over.
    until: usize,
    last: Option<LeafPosition>,
    pause: usize,
}

impl RowPrefetcher {
    /// The batch was refilled.
    pub(crate) fn begin_batch(&mut self) {
        self.until = 0;
    }

    /// The position of the leaf of item `n`'s row, if it was found; looks up the positions of later items.
    #[inline]
    pub(crate) fn way(&mut self, n: usize, batch: &RowBatch, ctx: &Context, tree: &BTree) -> Option<LeafPosition> {
        let own = if n < self.until { self.ways[n % AHEAD].take() } else { None };
        self.until = self.until.max(n + 1);
        let end = batch.items.len().min(n + 1 + AHEAD);
        while self.until < end {
            let key = if self.pause > 0 { None } else { batch.row_key(self.until) };
            self.note(key.and_then(|key| tree.prefetch_leaf(ctx, key)));
        }
        let soon = n + RECORD_AHEAD;
        if soon < end
            && let Some(way) = self.ways[soon % AHEAD]
            && let Some(key) = batch.row_key(soon)
        {
            tree.prefetch_record(ctx, way, key);
        }
        own
    }

    fn note(&mut self, way: Option<LeafPosition>) {
        debug_assert!(self.pause <= PAUSE, "rule 2: a pause of {}", self.pause);
        self.ways[self.until % AHEAD] = way;
        self.until += 1;
        self.pause = match self.pause.checked_sub(1) {
            Some(left) => left,
            None if way.is_some() && way == self.last => PAUSE,
            None => 0,
        };
        self.last = way;
    }
}
