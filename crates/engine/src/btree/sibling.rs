//! Access to the same leaf again, or to its sibling, through their parent, without another descent.
//!
//! Rules
//! 1. A [`LeafPosition`] names the leaf's position in a version of its parent. While the parent is unchanged, the next
//!    child begins where the leaf ends, because separators are in the parent.
//! 2. The leaf is the right one if the parent is still unchanged when the leaf is latched. Rule 1 of [`super::search`]
//!    holds: no other page is latched.
//! 3. If the parent has changed, or the leaf is not resident or not compared with its parent, a descent by key follows.

use super::found::{FoundLeaf, LeafPosition, is_leaf_of};
use super::leaf::Leaf;
use super::search::TreeSearch;
use super::seek::Seek;
use crate::context::Context;
use crate::error::Error;
use crate::page::node;
use crate::pool::OptimisticPage;
use crate::types::PageNo;

impl TreeSearch {
    /// Finds the leaf that covers `key` if that needs no I/O, and prefetches it into the processor's cache, as each
    /// descent does. The position is for a call of [`TreeSearch::leaf_of`] soon after.
    #[inline]
    pub(super) fn prefetch_leaf(&self, ctx: &Context, key: &[u8]) -> Option<LeafPosition> {
        let missing = |_| Err(Error::Usage(String::new()));
        let found = self.descend(ctx, Seek::Covers(key), |_| {}, missing).ok()??;
        LeafPosition::to(&found)
    }

    /// Prefetches the record of `key` on the leaf of `position` into the processor's cache.
    #[inline]
    pub(super) fn prefetch_record(&self, ctx: &Context, position: LeafPosition, key: &[u8]) {
        if let Some(leaf) = ctx.pool.optimistic(position.leaf)
            && let Ok(slot) = node::search(&leaf, key)
        {
            let record = node::record(&leaf, slot);
            leaf.prefetch_record(record.offset, record.heap_bytes());
        }
    }

    /// S-latches the leaf of `position`, if it is in the pool and still covers the same keys.
    #[inline]
    pub(super) fn leaf_of<'c>(&self, ctx: &'c Context, position: LeafPosition) -> Option<Leaf<'c>> {
        let parent = Some(ctx.pool.optimistic_at(position.parent)?);
        self.latched(ctx, &FoundLeaf { leaf: position.leaf, parent, slot: position.slot })
    }

    /// S-latches the leaf after (`reverse`: before) that of `position`, and returns its position.
    #[inline]
    pub(super) fn sibling_leaf<'c>(
        &self,
        ctx: &'c Context,
        position: LeafPosition,
        reverse: bool,
    ) -> Option<(Leaf<'c>, LeafPosition)> {
        let found = self.sibling(ctx, position, reverse)?;
        let leaf = self.latched(ctx, &found)?;
        Some((leaf, LeafPosition::to(&found)?))
    }

    /// Prefetches into the processor's cache: the records of the leaf that [`TreeSearch::sibling_leaf`] would find, the
    /// header of the leaf after it, which says where its records begin, and the page table's slot of the third leaf. So
    /// the next call finds all of it in the cache.
    #[inline]
    pub(super) fn prefetch_sibling(&self, ctx: &Context, position: LeafPosition, reverse: bool) {
        let Some(parent) = ctx.pool.optimistic_at(position.parent) else { return };
        let [next, behind, far] = [1, 2, 3].map(|steps| sibling_child(&parent, position.slot, steps, reverse));
        if !parent.validate() {
            return;
        }
        if let Some((_, leaf)) = next {
            ctx.pool.prefetch_from(leaf, |page| node::heap_start(page));
        }
        if let Some((_, leaf)) = behind {
            ctx.pool.prefetch(leaf);
        }
        if let Some((_, leaf)) = far {
            ctx.pool.prefetch_table_slot(leaf);
        }
    }

    #[inline]
    fn sibling<'c>(&self, ctx: &'c Context, position: LeafPosition, reverse: bool) -> Option<FoundLeaf<'c>> {
        let parent = ctx.pool.optimistic_at(position.parent)?;
        let (slot, leaf) = sibling_child(&parent, position.slot, 1, reverse)?;
        parent.validate().then_some(FoundLeaf { leaf, parent: Some(parent), slot })
    }

    /// S-latches the leaf found, if it is in the pool and the one sought (rule 2).
    #[inline]
    fn latched<'c>(&self, ctx: &'c Context, found: &FoundLeaf<'c>) -> Option<Leaf<'c>> {
        let page = ctx.pool.try_fix_s(found.leaf)?;
        let is_sought = is_leaf_of(&page, self.id()) && found.is_known(ctx, page.frame()) && found.is_current();
        is_sought.then(|| Leaf::new(page))
    }
}

/// The child `steps` after (`reverse`: before) the one at `slot`, and its slot.
#[inline]
fn sibling_child(parent: &OptimisticPage<'_>, slot: usize, steps: usize, reverse: bool) -> Option<(usize, PageNo)> {
    let slot = if reverse { slot.checked_sub(steps)? } else { slot + steps };
    (slot <= node::count(parent)).then(|| (slot, node::child_at(parent, slot)))
}
