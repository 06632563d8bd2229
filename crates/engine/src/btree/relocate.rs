//! Moving a node to another page, to the front of the file.
//!
//! Rules
//! 1. A move is a structure change: parent and node are latched, the new page gets the node's records, the parent names
//!    it, and the old page is freed, all in one mini-transaction. A late reader finds the old page freed, as after a
//!    merge.
//! 2. The root stays where it is: the catalog names its page.

use super::structure::{NodeBounds, NodeContents, Repeats, StepResult, TreeStructure, pack};
use crate::context::Context;
use crate::error::Result;
use crate::page::header;
use crate::page::{Node, PageOp, node};
use crate::space::layout::EXTENT_PAGES;
use crate::types::PageNo;

/// The outcome of a move.
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

/// Moves a node to the lowest page below extent `end` that the tree can have.
///
/// # Errors
/// Those of [`relocate`](super::BTree::relocate).
pub(super) fn relocate(tree: &TreeStructure, ctx: &Context, place: NodePlace<'_>, end: u32) -> Result<Relocation> {
    Repeats::new(ctx).until_done(|| relocate_step(tree, ctx, place, end))
}

fn relocate_step(tree: &TreeStructure, ctx: &Context, place: NodePlace<'_>, end: u32) -> StepResult<Relocation> {
    let NodePlace { page, level, key } = place;
    let path = tree.search().path(ctx, key)?;
    let depth = (path.len() - 1).saturating_sub(usize::from(level));
    if depth == 0 || path[depth] != page {
        return Ok(Relocation::NotHere);
    }
    let (mut mtr, _admitted) = tree.begin_step(ctx, 1)?;
    let parent = tree.latch_parent(&mut mtr, path[depth - 1], level + 1, key)?;
    let slot = node::child_slot_covering(mtr.page(parent), key);
    let old = tree.latch_child(&mut mtr, parent, slot, level)?;
    if mtr.page_no(old) != page {
        return Ok(Relocation::NotHere);
    }
    tree.keep_map(&mut mtr, page)?;
    let Some(child) = tree.allocate_below(&mut mtr, end)? else { return Ok(Relocation::NoRoom) };
    debug_assert!(child.0 / EXTENT_PAGES < end, "page {page} moves to {child}, which is not below extent {end}");
    let (bounds, packed, max_trx_id) = {
        let found = Node::new(mtr.page(old));
        let (bounds, mut packed) = (NodeBounds::of(found), Vec::new());
        pack(found, 0..found.count(), bounds.prefix_len(), &mut packed);
        (bounds, packed, header::max_trx_id(mtr.page(old)))
    };
    let new = mtr.new_page(child);
    tree.write_node(&mut mtr, new, &NodeContents { level, bounds: &bounds, packed: &packed, max_trx_id });
    mtr.apply(parent, &PageOp::NodeSetChild { slot: slot as u16, child });
    debug_assert_eq!(node::count(mtr.page(new)), node::count(mtr.page(old)), "a move of {page} loses records");
    tree.check_child(&mtr, parent, slot, new);
    tree.free_node(&mut mtr, old);
    mtr.commit();
    Ok(Relocation::Done)
}
