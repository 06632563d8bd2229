//! Giving room back: merges and collapse of the root.
//!
//! Rules
//! 1. Two neighbours under one parent are merged into the left one when the result leaves a quarter of the page free (an empty
//!    page: whenever it fits), so that a merge is not followed by a split.
//! 2. A parent that became underfull is merged in turn; a root with a lone child takes the child's records.

use super::BTree;
use super::structure::{Bounds, Contents, pack};
use crate::error::{Error, Result};
use crate::mtr::{Context, Latched, Mtr};
use crate::page::header::{self, MAX_TRX_ID_OFFSET};
use crate::page::node::{CHILD_BYTES, record_bytes};
use crate::page::op::pack_record;
use crate::page::{Node, PageOp, node};
use crate::types::PageNo;

/// Whether a node is below a quarter.
pub(super) fn is_underfull(node: Node<'_>) -> bool {
    node.used_bytes() < node.capacity_bytes() / 4
}

/// Two neighbours that were found to fit one page.
struct Fit {
    bounds: Bounds,
    packed: Vec<u8>,
    left_count: usize,
    max_trx_id: u64,
}

impl BTree {
    /// Merges the leaf that covers `key` with a neighbour if both fit one page (and so on upward, collapsing the root when it
    /// has one child). Holds no latch before or after.
    ///
    /// # Errors
    /// A corrupt page, an I/O error, no free frame.
    pub fn shrink(&self, ctx: &Context, key: &[u8]) -> Result<()> {
        let _structure = self.structure.lock();
        let path = self.path(ctx, key)?;
        let mut depth = path.len() - 1;
        while depth > 0 && self.merge_at(ctx, &path, depth, key)? {
            depth -= 1;
        }
        while path.len() > 1 && self.collapse_root(ctx)? {}
        Ok(())
    }

    /// Merges the page at `depth` with its right or left neighbour; false when it is not underfull or fits with neither.
    fn merge_at(&self, ctx: &Context, path: &[PageNo], depth: usize, key: &[u8]) -> Result<bool> {
        for with_right in [true, false] {
            let mut mtr = self.structure_mtr(ctx, 0)?;
            if self.merge_with(&mut mtr, path, depth, key, with_right)? {
                mtr.commit();
                ctx.stats.btree_merges.inc();
                return Ok(true);
            }
            mtr.abandon();
        }
        Ok(false)
    }

    fn merge_with(
        &self,
        mtr: &mut Mtr<'_>,
        path: &[PageNo],
        depth: usize,
        key: &[u8],
        with_right: bool,
    ) -> Result<bool> {
        let (parent_no, page_no, level) = (path[depth - 1], path[depth], (path.len() - 1 - depth) as u8);
        let [parent] = self.latch_nodes(mtr, [(parent_no, level + 1)])?;
        let slot = self.child_slot(mtr.page(parent), parent_no, page_no, key)?;
        let Some(left_slot) = (if with_right { Some(slot) } else { slot.checked_sub(1) }) else { return Ok(false) };
        if left_slot >= node::count(mtr.page(parent)) {
            return Ok(false);
        }
        let parent_node = Node::new(mtr.page(parent));
        let (left_no, right_no) = (parent_node.child(left_slot), parent_node.child(left_slot + 1));
        mtr.release(parent);
        let pages = [(parent_no, level + 1), (left_no, level), (right_no, level)];
        let [parent, left, right] = self.latch_nodes(mtr, pages)?;
        let underfull = if with_right { left } else { right };
        if !is_underfull(Node::new(mtr.page(underfull))) {
            return Ok(false);
        }
        let Some(fit) = fit_together(mtr, left, right, right_no)? else { return Ok(false) };
        self.merge(mtr, (parent, left, right), left_slot, &fit);
        Ok(true)
    }

    fn merge(
        &self,
        mtr: &mut Mtr<'_>,
        (parent, left, right): (Latched, Latched, Latched),
        left_slot: usize,
        fit: &Fit,
    ) {
        mtr.apply(left, &fit.bounds.refence(0..fit.left_count));
        if !fit.packed.is_empty() {
            mtr.apply(left, &PageOp::NodeAppend { packed: &fit.packed });
        }
        if fit.max_trx_id > header::max_trx_id(mtr.page(left)) {
            let bytes = fit.max_trx_id.to_le_bytes();
            mtr.apply(left, &PageOp::Write { offset: MAX_TRX_ID_OFFSET as u16, bytes: &bytes });
        }
        let child = mtr.page_no(left);
        mtr.apply(parent, &PageOp::NodeRemove { slot: left_slot as u16 });
        mtr.apply(parent, &PageOp::NodeSetChild { slot: left_slot as u16, child });
        self.free_node(mtr, right);
    }

    /// Lets a root with a lone child take the child's place; false when there is nothing to collapse.
    fn collapse_root(&self, ctx: &Context) -> Result<bool> {
        let mut mtr = self.structure_mtr(ctx, 0)?;
        let root = mtr.fix_x(self.root)?;
        let (level, count) = (header::level(mtr.page(root)), node::count(mtr.page(root)));
        self.expect_node(mtr.page(root), self.root, level)?;
        if level == 0 || count > 0 {
            return Ok(false);
        }
        let child_no = node::child_at(mtr.page(root), 0);
        mtr.release(root);
        let [root, child] = self.latch_nodes(&mut mtr, [(self.root, level), (child_no, level - 1)])?;
        let child_node = Node::new(mtr.page(child));
        let bounds = Bounds::of(child_node);
        if bounds.lower.is_some() || bounds.upper.is_some() {
            return Err(Error::corrupt_page(child_no, "a lone child with fences"));
        }
        let mut packed = Vec::new();
        pack(child_node, 0..child_node.count(), 0, &mut packed);
        let max_trx_id = header::max_trx_id(mtr.page(child));
        self.write_node(&mut mtr, root, &Contents { level: level - 1, bounds: &bounds, packed: &packed, max_trx_id });
        self.free_node(&mut mtr, child);
        mtr.commit();
        ctx.stats.btree_merges.inc();
        Ok(true)
    }
}

/// What the left page becomes when it takes the right one's records; `None` if that is too much.
fn fit_together(mtr: &Mtr<'_>, left: Latched, right: Latched, right_no: PageNo) -> Result<Option<Fit>> {
    let (left_page, right_page) = (mtr.page(left), mtr.page(right));
    let (left, right) = (Node::new(left_page), Node::new(right_page));
    let Some(separator) = left.upper().filter(|upper| right.lower() == Some(*upper)) else {
        return Err(Error::corrupt_page(right_no, "its lower fence is not its left neighbour's upper fence"));
    };
    let mut bounds = Bounds::of(right);
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
