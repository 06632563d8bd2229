//! Read-ahead of a scan.
//!
//! Rules
//! 1. While pages are missing from the pool, the scan requests the rows of a batch of entries, and its next leaves:
//!    with a limit as many as it will need, otherwise an increasing number.
//! 2. A scan with a limit requests its leaves before it reads the first one; earlier scans of the tree give their
//!    number.

use super::scan::RowCursor;
use super::scan_batch::{Item, ItemKind};
use crate::btree::{BTree, max_leaves_ahead};
use crate::txn::system::TxnSystem;
use crate::types::PageNo;

impl RowCursor {
    /// Before the first leaf: requests the leaves that the scan will probably need.
    pub(super) fn expect_leaves(&mut self, system: &TxnSystem) {
        if self.is_limited && self.position.leaf_records() == 0 && system.ctx.pool.misses(1) {
            let expected = self.tree().leaves_of(self.remaining);
            self.name_leaves(system, expected.unwrap_or(0));
        }
    }

    /// The tree whose leaves the scan walks over.
    fn tree(&self) -> &BTree {
        self.index.map_or_else(|| self.table.clustered(), |i| self.table.index(i))
    }

    /// The number of leaves after the batch that are worth reading ahead.
    fn leaves_ahead(&self) -> usize {
        if self.position.done {
            0
        } else if self.is_limited {
            self.position.leaves_of(self.remaining.saturating_sub(self.batch.items.len()))
        } else {
            self.leaves
        }
    }

    /// Requests this many leaves, unless half of them are requested already.
    fn name_leaves(&mut self, system: &TxnSystem, expected: usize) {
        let max = expected.min(max_leaves_ahead(system.ctx.pool.frame_count()));
        if max > 1 && self.ahead * 2 < max {
            let (near, far) = (self.position.seek(), self.position.end());
            self.ahead = self.tree().request_leaves(&system.ctx, near, far, self.position.reverse, max);
        }
    }

    /// Rule 1.
    pub(super) fn read_ahead(&mut self, system: &TxnSystem) {
        let has_left = usize::from(self.position.has_left_leaf());
        self.leaves += has_left;
        self.ahead = self.ahead.saturating_sub(has_left);
        let pages_read = system.ctx.stats.pages_read.get();
        if std::mem::replace(&mut self.pages_read, pages_read) == pages_read {
            return;
        }
        self.tree().note_leaf_records(self.position.leaf_records());
        self.name_leaves(system, self.leaves_ahead());
        let clustered = self.table.clustered();
        // The first is needed at once.
        let row_ahead = |item: &Item| match item.kind {
            ItemKind::Entry { prefix_bytes, certain } if !self.is_of_entry(certain) => {
                clustered.leaf_ahead(&system.ctx, &self.batch.bytes[item.key.clone()][prefix_bytes..])
            }
            ItemKind::Entry { .. } | ItemKind::Row(_) => None,
        };
        let rows: Vec<PageNo> = self.batch.items.iter().skip(1).filter_map(row_ahead).collect();
        system.ctx.pool.request(&rows);
    }
}
