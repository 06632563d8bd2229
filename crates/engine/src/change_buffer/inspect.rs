//! Calls for the check of a database.

use super::ChangeBuffer;
use super::buffer::WaitingLeaf;
use super::tree::{OperationTree, key_of, run_of_shared};
use crate::btree::{BTree, Seek};
use crate::error::Result;
use crate::sync::RwLockWriteGuard;
use crate::types::PageNo;

impl ChangeBuffer {
    /// The tree of operations, if the database has one.
    pub(crate) fn operation_tree(&self) -> Option<&BTree> {
        self.buffer.operations().map(|operations| &operations.tree)
    }

    /// Keeps merges from changing the shape of the tree of operations until the guard is dropped.
    pub(crate) fn freeze(&self) -> Option<RwLockWriteGuard<'_, ()>> {
        self.buffer.operations().map(|operations| operations.structure.write())
    }

    /// Makes up for what merges have left while the tree was frozen.
    ///
    /// # Errors
    /// An I/O error.
    pub(crate) fn compact(&self) -> Result<()> {
        let compacted = self.buffer.operations().map_or(Ok(()), |operations| operations.compact(&self.ctx));
        compacted.or_else(|error| if error.is_damage() { Ok(()) } else { Err(error) })
    }

    /// Every leaf for which operations wait, as far as is known without the tree.
    pub(crate) fn all_waiting(&self) -> Vec<(PageNo, WaitingLeaf)> {
        self.buffer.all_waiting()
    }

    /// Number of known waiting operations of a leaf.
    pub(crate) fn waiting_count(&self, page: PageNo) -> u32 {
        self.waiting(page).count
    }

    fn waiting(&self, page: PageNo) -> WaitingLeaf {
        self.buffer.lock(page).waiting.get(&page).copied().unwrap_or_default()
    }

    /// Compares what is known of the operations that wait for a leaf with the tree; how many are known, and how many
    /// are there, if that or their sequence numbers differ.
    ///
    /// # Errors
    /// A damaged page of the tree, an I/O error.
    pub(crate) fn waiting_differs(&self, page: PageNo) -> Result<Option<(u32, u32)>> {
        let Some(operations) = self.buffer.operations() else { return Ok(None) };
        loop {
            let known = self.waiting(page);
            let (found, last) = self.count_operations(operations, page)?;
            if self.waiting(page) == known {
                let is_same = known.count == found && last.is_none_or(|last| last < known.next);
                return Ok((!is_same).then_some((known.count, found)));
            }
        }
    }

    /// Number of waiting operations of a leaf in the tree, and the last one's sequence number.
    fn count_operations(&self, operations: &OperationTree, page: PageNo) -> Result<(u32, Option<u32>)> {
        let (mut count, mut last, mut from) = (0, None, key_of(page, 0).to_vec());
        let end = key_of(page, u32::MAX);
        loop {
            let leaf = operations.tree.leaf(&self.ctx, Seek::Covers(&from))?;
            let first = leaf.search(&from).unwrap_or_else(|slot| slot);
            run_of_shared(&leaf, first, page, |operation| {
                count += 1;
                last = Some(operation.sequence);
            })?;
            match leaf.upper() {
                Some(upper) if upper <= &end[..] => from = upper.to_vec(),
                _ => return Ok((count, last)),
            }
        }
    }
}
