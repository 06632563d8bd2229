//! The free classes of a tree's leaves: lower bounds of their free space, stored in the extent maps ([`crate::space`]).
//! They are kept for a tree whose changes may be buffered.

use super::leaf::LeafMut;
use crate::context::Context;
use crate::mtr::{Mtr, PageHandle};
use crate::page::Node;
use crate::space::Space;
use crate::types::PageNo;
use std::sync::Arc;

/// Maintains the free classes of a tree, if they are kept.
pub(super) struct FreeClasses {
    space: Arc<Space>,
    are_kept: bool,
}

impl FreeClasses {
    /// The free classes of a tree whose changes are not buffered: they are not kept.
    pub(super) fn unkept(space: Arc<Space>) -> FreeClasses {
        FreeClasses { space, are_kept: false }
    }

    /// The free classes of a tree whose changes may be buffered: they are kept.
    pub(super) fn kept(self) -> FreeClasses {
        FreeClasses { are_kept: true, ..self }
    }

    /// Whether they are kept.
    #[inline]
    pub(super) fn are_kept(&self) -> bool {
        self.are_kept
    }

    /// Records a lower bound of the latched leaf's free space after a change that uses at most `bytes`. The mtr has
    /// changed nothing yet.
    ///
    /// # Errors
    /// The leaf's extent map, which is not in the pool.
    #[inline]
    pub(super) fn note_growth(
        &self,
        mtr: &mut Mtr<'_>,
        leaf: LeafMut,
        bytes: usize,
    ) -> std::result::Result<(), PageNo> {
        if !self.are_kept {
            return Ok(());
        }
        let free_bytes = Node::new(mtr.page(leaf.latched)).free_bytes().saturating_sub(bytes);
        self.space.note_free_bytes(mtr, leaf.page_no(mtr), free_bytes)
    }

    /// Makes sure that [`FreeClasses::note`] will succeed for a latched page, if it is a leaf. The mtr has changed
    /// nothing yet.
    ///
    /// # Errors
    /// The leaf's extent map, which is not in the pool.
    pub(super) fn keep(&self, mtr: &mut Mtr<'_>, latched: PageHandle) -> std::result::Result<(), PageNo> {
        match self.has_one(mtr, latched) {
            true => self.space.try_keep_map(mtr, mtr.page_no(latched)),
            false => Ok(()),
        }
    }

    /// Notes the free space of a latched page, if it is a leaf. Its map is kept ([`FreeClasses::keep`]), or the page is
    /// a new leaf or the root.
    pub(super) fn note(&self, mtr: &mut Mtr<'_>, latched: PageHandle) {
        if self.has_one(mtr, latched) {
            let free_bytes = Node::new(mtr.page(latched)).free_bytes();
            self.space.note_free_bytes_if_kept(mtr, mtr.page_no(latched), free_bytes);
        }
    }

    /// A lower bound of a leaf's free bytes, from its extent map; 0 if no class is kept. The error is the extent map,
    /// which is not in the pool.
    pub(super) fn min_free_bytes(&self, ctx: &Context, page: PageNo) -> std::result::Result<usize, PageNo> {
        if self.are_kept { self.space.min_free_bytes(ctx, page) } else { Ok(0) }
    }

    fn has_one(&self, mtr: &Mtr<'_>, latched: PageHandle) -> bool {
        self.are_kept && Node::new(mtr.page(latched)).is_leaf()
    }
}
