//! Merges and collapse of the root, which free pages.
//!
//! Rules
//! 1. Two neighbours under one parent are merged into the left one when the result leaves a quarter of the page free
//!    (an empty page: whenever it fits), so that a merge is not followed by a split.
//! 2. A parent that became underfull is merged in turn, and then the leaf is checked again with its new neighbours;
//!    a root with one child takes the child's records.
//! 3. A node below three eighths is underfull: two of them fit by rule 1, so after scattered deletions no two
//!    neighbours are underfull. A merge is tried when a change makes a leaf underfull, whenever the leaf has lost
//!    another thirty-second of the page, and when it is empty. So records of any size cause a bounded number of
//!    attempts for a leaf with full neighbours.
//! 4. A merge only saves space: if it is not possible, the preceding row operation is complete nevertheless.

use super::fill::is_underfull;
use super::structure::{Missing, NodeBounds, NodeContents, Repeats, StepResult, TreeStructure, pack};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::mtr::{Mtr, PageHandle};
use crate::page::header::{self, MAX_TRX_ID_OFFSET};
use crate::page::node::{CHILD_BYTES, record_bytes};
use crate::page::op::pack_record;
use crate::page::{Node, PageBytes, PageOp, node};

/// Two neighbours that were found to fit one page.
struct Fit {
    bounds: NodeBounds,
    packed: Vec<u8>,
    left_count: usize,
    max_trx_id: u64,
}

/// Merges the leaf that covers `key` with a neighbor if both fit one page, and so on upward.
///
/// # Errors
/// A corrupt page, an I/O error, no free frame.
pub(super) fn shrink(tree: &TreeStructure, ctx: &Context, key: &[u8]) -> Result<()> {
    let mut repeats = Repeats::new(ctx);
    // After inner pages were merged, the leaf has new neighbours.
    let mut merged_above = true;
    while merged_above {
        let mut level = 0;
        while repeats.until_done(|| merge_step(tree, ctx, key, level))? {
            level += 1;
        }
        merged_above = level > 1;
    }
    while repeats.until_done(|| collapse_root(tree, ctx))? {}
    Ok(())
}

/// [`shrink`], of which only what stops the database is an error.
///
/// # Errors
/// Those of [`tidy`](super::BTree::tidy).
pub(super) fn tidy(tree: &TreeStructure, ctx: &Context, key: &[u8]) -> Result<()> {
    match shrink(tree, ctx, key) {
        Err(error) if error.is_damage() || matches!(error, Error::PoolExhausted { .. } | Error::DiskFull { .. }) => {
            ctx.stats.btree_merges_abandoned.inc();
            Ok(())
        }
        result => result,
    }
}

/// Merges the page at `level` that covers `key` with its right or left neighbour; false when there is none, or it
/// is not underfull, or fits with neither.
fn merge_step(tree: &TreeStructure, ctx: &Context, key: &[u8], level: u8) -> StepResult<bool> {
    let path = tree.search().path(ctx, key)?;
    let depth = (path.len() - 1).saturating_sub(usize::from(level));
    if depth == 0 {
        return Ok(false);
    }
    let (mut mtr, _admitted) = tree.begin_step(ctx, 0)?;
    let parent = tree.latch_parent(&mut mtr, path[depth - 1], level + 1, key)?;
    let slot = node::child_slot_covering(mtr.page(parent), key);
    let page = tree.latch_child(&mut mtr, parent, slot, level)?;
    if !is_underfull(Node::new(mtr.page(page))) {
        return Ok(false);
    }
    if slot < node::count(mtr.page(parent)) {
        let right = tree.latch_child(&mut mtr, parent, slot + 1, level)?;
        if merge(tree, &mut mtr, (parent, slot), page, right)? {
            mtr.commit();
            return Ok(true);
        }
        mtr.release(right);
    }
    let Some(left_slot) = slot.checked_sub(1) else { return Ok(false) };
    // From left to right.
    mtr.release(page);
    let left = tree.latch_child(&mut mtr, parent, left_slot, level)?;
    let page = tree.latch_child(&mut mtr, parent, slot, level)?;
    let merged = is_underfull(Node::new(mtr.page(page))) && merge(tree, &mut mtr, (parent, left_slot), left, page)?;
    mtr.commit();
    Ok(merged)
}

/// Moves the records of the right page to the left one, which is at `left_slot` of the parent, if they fit.
fn merge(
    tree: &TreeStructure,
    mtr: &mut Mtr<'_>,
    (parent, left_slot): (PageHandle, usize),
    left: PageHandle,
    right: PageHandle,
) -> StepResult<bool> {
    let Some(fit) = fit_together(mtr, left, right)? else { return Ok(false) };
    let right_no = mtr.page_no(right);
    let children = node::count(mtr.page(parent));
    tree.keep_map(mtr, right_no)?;
    tree.free_classes().keep(mtr, left).map_err(Missing::Absent)?;
    let had = fit.left_count + node::count(mtr.page(right)) + usize::from(header::level(mtr.page(left)) > 0);
    mtr.apply(left, &fit.bounds.refence(0..fit.left_count));
    if !fit.packed.is_empty() {
        mtr.apply(left, &PageOp::NodeAppend { packed: &fit.packed });
    }
    if fit.max_trx_id > header::max_trx_id(mtr.page(left)) {
        let bytes = fit.max_trx_id.to_le_bytes();
        mtr.apply(left, &PageOp::Write { offset: MAX_TRX_ID_OFFSET as u16, bytes: &bytes });
    }
    tree.free_classes().note(mtr, left);
    let child = mtr.page_no(left);
    mtr.apply(parent, &PageOp::NodeRemove { slot: left_slot as u16 });
    mtr.apply(parent, &PageOp::NodeSetChild { slot: left_slot as u16, child });
    debug_assert_eq!(node::count(mtr.page(left)), had, "a merge to page {child} loses records");
    debug_assert_eq!(node::count(mtr.page(parent)) + 1, children, "a merge takes one separator");
    [parent, left].into_iter().for_each(|page| tree.check_node(mtr, page));
    tree.check_child(mtr, parent, left_slot, left);
    tree.free_node(mtr, right);
    mtr.context().stats.btree_merges.inc();
    Ok(true)
}

/// Moves the records of a root's only child into the root; false if there is nothing to collapse.
fn collapse_root(tree: &TreeStructure, ctx: &Context) -> StepResult<bool> {
    let Some(view) = ctx.pool.optimistic(tree.root()) else { return Err(Missing::Absent(tree.root())) };
    let (level, count) = (view.u8_at(header::LEVEL), node::count(&view));
    if !view.validate() {
        return Err(Missing::Stale);
    }
    if level == 0 || count > 0 {
        return Ok(false);
    }
    let (mut mtr, _admitted) = tree.begin_step(ctx, 0)?;
    let root = tree.latch_root(&mut mtr, level)?;
    if node::count(mtr.page(root)) > 0 {
        return Ok(false);
    }
    let child = tree.latch_child(&mut mtr, root, 0, level - 1)?;
    debug_assert!(node::is_unbounded(mtr.page(child)), "an only child has fences");
    let child_no = mtr.page_no(child);
    tree.keep_map(&mut mtr, child_no)?;
    let child_node = Node::new(mtr.page(child));
    let bounds = NodeBounds::of(child_node);
    let mut packed = Vec::new();
    pack(child_node, 0..child_node.count(), 0, &mut packed);
    let max_trx_id = header::max_trx_id(mtr.page(child));
    tree.write_node(&mut mtr, root, &NodeContents { level: level - 1, bounds: &bounds, packed: &packed, max_trx_id });
    debug_assert!(node::is_unbounded(mtr.page(root)), "rule 5: the root {} has fences", tree.root());
    debug_assert_eq!(node::count(mtr.page(root)), node::count(mtr.page(child)), "a collapse loses records");
    tree.free_node(&mut mtr, child);
    mtr.commit();
    ctx.stats.btree_merges.inc();
    Ok(true)
}

/// The left page with the right page's records added; `None` if they do not fit.
fn fit_together(mtr: &Mtr<'_>, left: PageHandle, right: PageHandle) -> Result<Option<Fit>> {
    let right_no = mtr.page_no(right);
    let (left_page, right_page) = (mtr.page(left), mtr.page(right));
    let (left, right) = (Node::new(left_page), Node::new(right_page));
    let Some(separator) = left.upper().filter(|upper| right.lower() == Some(*upper)) else {
        return Err(Error::corrupt_page(right_no, "its lower fence is not its left neighbour's upper fence"));
    };
    let mut bounds = NodeBounds::of(right);
    bounds.lower = left.lower().map(<[u8]>::to_vec);
    let prefix_len = bounds.prefix_len();
    let mut bytes = bounds.bytes();
    bytes += left.rebuilt_bytes(0..left.count(), prefix_len) + right.rebuilt_bytes(0..right.count(), prefix_len);
    if !left.is_leaf() {
        bytes += record_bytes(separator.len() - prefix_len, CHILD_BYTES);
    }
    let one_is_empty = left.count() == 0 || right.count() == 0;
    let limit = if one_is_empty { left.capacity_bytes() } else { left.capacity_bytes() / 4 * 3 };
    if bytes > limit {
        return Ok(None);
    }
    let mut packed = Vec::new();
    if !left.is_leaf() {
        let child = left.child(left.count()).0.to_le_bytes();
        pack_record(&mut packed, &separator[prefix_len..], &child);
    }
    pack(right, 0..right.count(), prefix_len, &mut packed);
    let max_trx_id = header::max_trx_id(left_page).max(header::max_trx_id(right_page));
    Ok(Some(Fit { bounds, packed, left_count: left.count(), max_trx_id }))
}
