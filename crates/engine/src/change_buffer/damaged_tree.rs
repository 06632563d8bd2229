//! The consequences of a damaged page in the tree of operations, detected and handled at the opening.
//!
//! Rules
//! 1. Operations in the undamaged leaves of the tree wait as usual. The keys that no undamaged leaf covers are *lost*:
//!    changes of every index leaf in those ranges of page numbers may have been there.
//! 2. An index whose changes may be buffered, and that owns a page in a lost range, is given up ([`BTree::give_up`]),
//!    durably, before its first use. So no read uses a leaf that lacks its changes, and a rebuild recreates the index.
//! 3. All other waiting operations are merged, and the tree is emptied. An index with a leaf that cannot be read then
//!    is given up too, because the leaf's operations are removed with the tree.
//! 4. The tree does not change before that, so an interrupted opening is repeated completely.
//! 5. In a read-only database indexes are given up in memory only, and the tree is not emptied.

use super::buffer::Buffer;
use super::tree::Operation;
use super::{ChangeBuffer, Lost};
use crate::btree::BTree;
use crate::btree::check::Visitor;
use crate::error::Result;
use crate::page::Node;
use crate::types::{IndexId, PageNo, SegmentId};
use std::collections::{HashMap, HashSet};

/// The place of an index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexPlace {
    pub segment: SegmentId,
    pub root: PageNo,
    /// Whether its changes may be buffered.
    pub is_buffered: bool,
}

/// Finds the operations in the tree, and the ranges in which they are lost.
pub(super) struct Finding<'b> {
    buffer: &'b Buffer,
    entered: HashSet<PageNo>,
    /// The upper fence of the last sound leaf; `None` after the last one.
    reached: Option<Vec<u8>>,
    lost: Lost,
}

impl<'b> Finding<'b> {
    pub(super) fn new(buffer: &'b Buffer) -> Finding<'b> {
        Finding { buffer, entered: HashSet::new(), reached: Some(Vec::new()), lost: Lost::new() }
    }

    /// The loss, after the walk.
    pub(super) fn finish(mut self) -> Lost {
        if let Some(reached) = self.reached.take() {
            self.lost.push(page_of(&reached)..=PageNo(u32::MAX));
        }
        self.lost
    }

    /// Notes the operations of a leaf of the tree; false if one does not decode.
    fn note(&self, node: Node<'_>) -> bool {
        let mut key = Vec::new();
        (0..node.count()).all(|slot| {
            node.key_into(slot, &mut key);
            let Some(operation) = Operation::decode(&key, node.value(slot)) else { return false };
            let mut shard = self.buffer.lock(operation.page);
            let place = (operation.sequence, operation.change.len());
            self.buffer.note_waiting(&mut shard, operation.page, operation.index, place, None);
            true
        })
    }
}

/// The page of a key of the tree, or of a fence, which may be shorter.
fn page_of(key: &[u8]) -> PageNo {
    PageNo(u32::from_be_bytes(std::array::from_fn(|i| key.get(i).copied().unwrap_or(0))))
}

impl Visitor for Finding<'_> {
    fn enter(&mut self, page: PageNo) -> Result<bool> {
        Ok(self.entered.insert(page))
    }

    fn leaf(&mut self, _page: PageNo, page_bytes: &[u8]) -> Result<()> {
        let node = Node::new(page_bytes);
        let (lower, upper) = (node.lower().unwrap_or_default(), node.upper());
        let reached = self.reached.take().unwrap_or_default();
        if lower != reached {
            let (from, to) = (page_of(lower), page_of(&reached));
            self.lost.push(from.min(to)..=from.max(to));
        }
        if !self.note(node) {
            self.lost.push(page_of(lower)..=upper.map_or(PageNo(u32::MAX), page_of));
        }
        self.reached = upper.map(<[u8]>::to_vec);
        Ok(())
    }

    /// The keys of a damaged page are those that no leaf covers.
    fn problem(&mut self, _page: PageNo, _reason: String) {}
}

impl ChangeBuffer {
    /// Rules 2 to 5.
    pub(super) fn give_up_lost(
        &self,
        lost: &Lost,
        indexes: &HashMap<IndexId, IndexPlace>,
        is_read_only: bool,
    ) -> Result<()> {
        let is_lost = |page: &PageNo| lost.iter().any(|range| range.contains(page));
        let is_hit = |index: &IndexPlace| index.is_buffered && self.space.pages_of(index.segment).iter().any(is_lost);
        let hit = indexes.iter().filter(|(_, index)| is_hit(index)).map(|(id, _)| *id).collect();
        self.give_up(&hit, indexes)?;
        self.buffer.discard(|index| hit.contains(&index) || !indexes.contains_key(&index));
        if is_read_only {
            return Ok(());
        }
        self.merge_all_sound()?;
        let left = self.buffer.all_waiting().into_iter().map(|(_, leaf)| leaf.index).collect();
        self.give_up(&left, indexes)?;
        self.buffer.discard(|index| left.contains(&index));
        let waiting = self.buffer.waiting_operations();
        debug_assert_eq!(waiting, 0, "rule 3: the tree is emptied while operations wait");
        self.ctx.log.flush_to(self.ctx.log.end_lsn())?;
        self.buffer.operations().map_or(Ok(()), |operations| operations.tree.make_empty(&self.ctx))
    }

    fn give_up(&self, gone: &HashSet<IndexId>, indexes: &HashMap<IndexId, IndexPlace>) -> Result<()> {
        gone.iter().filter_map(|id| Some((id, indexes.get(id)?))).try_for_each(|(id, index)| {
            BTree::open(self.space.clone(), *id, index.segment, index.root).give_up(&self.ctx)
        })
    }
}
