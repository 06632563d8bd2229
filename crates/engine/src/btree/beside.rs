//! From a leaf to the one beside it, through their parent, without another descent.
//!
//! Rules
//! 1. A [`Way`] says which child of which version of its parent a leaf is. While the parent is unchanged, the child
//!    beside it begins where the leaf ends: separators change with their parent.
//! 2. The leaf beside is the one sought if the parent is still unchanged when that leaf is latched (rule 1 of
//!    [`super::search`] holds: nothing else is latched).
//! 3. Whatever is not so, missing or not compared with its parent is left to a descent by key.

use super::search::{Found, is_leaf_of};
use super::{BTree, Leaf};
use crate::context::Context;
use crate::page::node;
use crate::pool::PageVersion;

/// Where a descent found a leaf.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    parent: PageVersion,
    slot: usize,
}

impl Way {
    /// The way to a leaf that has a parent.
    #[inline]
    pub(super) fn to(found: &Found<'_>) -> Option<Way> {
        let parent = found.parent.as_ref()?;
        Some(Way { parent: parent.page_version(), slot: found.slot.min(node::count(parent)) })
    }
}

impl BTree {
    /// S-latches the leaf behind (`reverse`: before) the one that `way` led to, and says which way it is to it.
    #[inline]
    pub fn leaf_beside<'c>(&self, ctx: &'c Context, way: Way, reverse: bool) -> Option<(Leaf<'c>, Way)> {
        let found = self.beside(ctx, way, reverse)?;
        let page = ctx.pool.try_fix_s(found.leaf)?;
        let way = Way::to(&found)?;
        let is_sought = is_leaf_of(&page, self.id) && found.is_known(ctx, page.frame()) && found.is_current();
        is_sought.then(|| (Leaf::new(page), way))
    }

    /// Has the memory of the leaf that [`BTree::leaf_beside`] would find fetched into the processor's cache.
    #[inline]
    pub fn warm_beside(&self, ctx: &Context, way: Way, reverse: bool) {
        if let Some(found) = self.beside(ctx, way, reverse) {
            ctx.pool.warm(found.leaf);
        }
    }

    #[inline]
    fn beside<'c>(&self, ctx: &'c Context, way: Way, reverse: bool) -> Option<Found<'c>> {
        let parent = ctx.pool.optimistic_at(way.parent)?;
        let slot = if reverse { way.slot.checked_sub(1)? } else { way.slot + 1 };
        let leaf = (slot <= node::count(&parent)).then(|| node::child_at(&parent, slot))?;
        parent.validate().then_some(Found { leaf, parent: Some(parent), slot })
    }
}
