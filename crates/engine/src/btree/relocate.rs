//! Moving a node to another page, to the front of the file.
//!
//! Rules
//! 1. A move is a structure change: parent and node are latched, the new page gets the node's records, the parent names
//!    it, and the old page is freed, all in one mini-transaction. A late reader finds the old page freed, as after a
//!    merge.
//! 2. The root stays where it is: the catalog names its page.

use super::structure::{Missing, NodeBounds, NodeContents, Repeats, StepResult, pack};
use super::tree::BTree;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::page::header;
use crate::page::{Node, PageOp, node};
use crate::space::layout::EXTENT_PAGES;
use crate::types::PageNo;

/// What came of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relocation {
    /// The page is free.
    Done,
    /// No page below is free.
    NoRoom,
    /// The page is the root, or no node of the tree any more.
    NotHere,
}

/// A node: where a descent finds it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodePlace<'k> {
    pub page: PageNo,
    pub level: u8,
    /// A key that it covers.
    pub key: &'k [u8],
}

impl BTree {
    /// Moves a node to the lowest page below extent `end` that the tree can have. Holds no latch before or after.
    ///
    /// # Errors
    /// A corrupt page, an I/O error, no free frame.
    pub(crate) fn relocate(&self, ctx: &Context, place: NodePlace<'_>, end: u32) -> Result<Relocation> {
        Repeats::new(ctx).until_done(|| self.relocate_step(ctx, place, end))
    }

    fn relocate_step(&self, ctx: &Context, place: NodePlace<'_>, end: u32) -> StepResult<Relocation> {
        let NodePlace { page, level, key } = place;
        let path = self.search().path(ctx, key)?;
        let depth = (path.len() - 1).saturating_sub(usize::from(level));
        if depth == 0 || path[depth] != page {
            return Ok(Relocation::NotHere);
        }
        let (mut mtr, _admitted) = self.begin_step(ctx, 1)?;
        let parent = self.latch_parent(&mut mtr, path[depth - 1], level + 1, key)?;
        let slot = node::child_slot_covering(mtr.page(parent), key);
        let old = self.latch_child(&mut mtr, parent, slot, level)?;
        if mtr.page_no(old) != page {
            return Ok(Relocation::NotHere);
        }
        self.space.try_keep_map(&mut mtr, page).map_err(Missing::Absent)?;
        let taken = self.space.allocate_below(&mut mtr, self.segment, end).map_err(|error| match error {
            Error::Usage(_) => Missing::Stale,
            error => Missing::Failed(error),
        })?;
        let Some(child) = taken else { return Ok(Relocation::NoRoom) };
        debug_assert!(child.0 / EXTENT_PAGES < end, "page {page} moves to {child}, which is not below extent {end}");
        let (bounds, packed, max_trx_id) = {
            let found = Node::new(mtr.page(old));
            let (bounds, mut packed) = (NodeBounds::of(found), Vec::new());
            pack(found, 0..found.count(), bounds.prefix_len(), &mut packed);
            (bounds, packed, header::max_trx_id(mtr.page(old)))
        };
        let new = mtr.new_page(child);
        self.write_node(&mut mtr, new, &NodeContents { level, bounds: &bounds, packed: &packed, max_trx_id });
        mtr.apply(parent, &PageOp::NodeSetChild { slot: slot as u16, child });
        debug_assert_eq!(node::count(mtr.page(new)), node::count(mtr.page(old)), "a move of {page} loses records");
        self.check_child(&mtr, parent, slot, new);
        self.free_node(&mut mtr, old);
        mtr.commit();
        Ok(Relocation::Done)
    }
}
