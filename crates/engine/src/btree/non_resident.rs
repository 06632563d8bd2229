//! The leaf that a change belongs to, if it is not in the pool.
//!
//! Rule: a [`NonResidentLeaf`] covers the descent's key as long as it is not in the pool and its parent is unchanged
//! ([`NonResidentLeaf::is_current`]), because a leaf is split, merged or freed only while it and its parent are
//! latched. A tree of one page has no non-resident leaf.

use super::found::FoundLeaf;
use super::leaf::LeafMut;
use super::restarts::Restarts;
use super::search::TreeSearch;
use super::seek::Seek;
use crate::context::Context;
use crate::error::Result;
use crate::mtr::Mtr;
use crate::pool::OptimisticPage;
use crate::types::{IndexId, PageNo};

/// A leaf that was not in the pool when the descent reached it.
#[derive(Clone, Copy)]
pub(crate) struct NonResidentLeaf<'c> {
    pub index: IndexId,
    pub page: PageNo,
    parent: OptimisticPage<'c>,
}

impl NonResidentLeaf<'_> {
    /// Whether the parent is unchanged. If it is, and the leaf is still not in the pool, the leaf covers the key.
    pub(crate) fn is_current(&self) -> bool {
        self.parent.validate()
    }
}

impl TreeSearch {
    /// X-latches the leaf that covers `key` if it is in the pool, as [`TreeSearch::leaf_mut`] does; otherwise it does
    /// not read the leaf; the inner error names it.
    ///
    /// # Errors
    /// Those of [`TreeSearch::leaf_mut`].
    pub(super) fn leaf_if_resident<'c>(
        &self,
        mtr: &mut Mtr<'c>,
        key: &[u8],
    ) -> Result<std::result::Result<LeafMut, NonResidentLeaf<'c>>> {
        self.leaf_mut_unless(mtr, key, |ctx, found| self.absent(ctx, found))
    }

    /// The leaf that covers `key` if it is not in the pool.
    ///
    /// # Errors
    /// A corrupt page on the way, an I/O error.
    pub(super) fn non_resident_leaf<'c>(&self, ctx: &'c Context, key: &[u8]) -> Result<Option<NonResidentLeaf<'c>>> {
        self.non_resident_leaf_by(ctx, key, |page| ctx.pool.load(page))
    }

    /// As [`TreeSearch::non_resident_leaf`], with an mtr that has done nothing yet.
    ///
    /// # Errors
    /// Those of [`TreeSearch::non_resident_leaf`].
    pub(super) fn non_resident_leaf_in<'c>(
        &self,
        mtr: &mut Mtr<'c>,
        key: &[u8],
    ) -> Result<Option<NonResidentLeaf<'c>>> {
        self.non_resident_leaf_by(mtr.context(), key, |page| mtr.load(page))
    }

    fn non_resident_leaf_by<'c>(
        &self,
        ctx: &'c Context,
        key: &[u8],
        mut load: impl FnMut(PageNo) -> Result<()>,
    ) -> Result<Option<NonResidentLeaf<'c>>> {
        let mut restarts = Restarts::new(ctx);
        loop {
            if let Some(found) = self.descend(ctx, Seek::Covers(key), |_| {}, &mut load)? {
                return Ok(self.absent(ctx, &found));
            }
            restarts.again()?;
        }
    }

    fn absent<'c>(&self, ctx: &Context, found: &FoundLeaf<'c>) -> Option<NonResidentLeaf<'c>> {
        let parent = found.parent.filter(|_| !ctx.pool.is_resident(found.leaf))?;
        Some(NonResidentLeaf { index: self.id(), page: found.leaf, parent })
    }
}
