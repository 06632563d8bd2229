//! Making room: splits and growth of the root.
//!
//! Rules
//! 1. A page is split only when its parent has room for the separator; a full parent is split first, in a mini-transaction of
//!    its own. So each one changes one parent, one page and one new page.
//! 2. Ascending insertions (`Node::is_ascending_at`) split where the insertion goes, so that pages filled in key order stay
//!    full: at the very end the right page starts empty; in the middle (keys that ascend within a prefix, such as the
//!    lines of an order) what lies behind is moved off first. All others split in the middle, by bytes.
//! 3. Separators between leaves are as short as a window around the split point allows.

use super::BTree;
use super::search::MAX_LEVEL;
use super::structure::{Bounds, Contents, pack};
use crate::error::{Error, Result};
use crate::mtr::{Context, Latched, Mtr};
use crate::page::node::{common_prefix, max_key_bytes, max_value_bytes, shortest_separator};
use crate::page::{Node, PageOp, header};
use crate::types::PageNo;

/// Where a node is cut.
struct Cut {
    /// Records that stay.
    keep: usize,
    /// First record that goes to the new page (`keep`, or behind the separator on an inner page).
    right_from: usize,
    /// Upper fence of the left page, lower fence of the right one.
    separator: Vec<u8>,
}

/// What a step did.
#[derive(PartialEq)]
enum Step {
    /// There was room.
    Room,
    /// Something was split, or others took the extents made ready: look again.
    Split,
}

impl BTree {
    /// Splits until the leaf that covers `key` has room for a record (or for growth) of `bytes` more: key and value of a new
    /// record, or additional bytes of a value. Holds no latch before or after. Call again after
    /// re-latching: another thread may have taken the room.
    ///
    /// # Errors
    /// [`Error::RowTooLarge`] or [`Error::KeyTooLong`] if no page could ever take it; a corrupt page, no free frame, a
    /// full disk.
    pub fn make_room(&self, ctx: &Context, key: &[u8], bytes: usize) -> Result<()> {
        let page_bytes = ctx.pool.page_bytes();
        let (key_limit, limit) = (max_key_bytes(page_bytes), max_key_bytes(page_bytes) + max_value_bytes(page_bytes));
        if key.len() > key_limit {
            return Err(Error::KeyTooLong { bytes: key.len(), limit_bytes: key_limit });
        }
        if bytes > limit {
            return Err(Error::RowTooLarge { bytes, limit_bytes: limit });
        }
        let _structure = self.structure.lock();
        loop {
            let path = self.path(ctx, key)?;
            if self.split_leaf_step(ctx, &path, key, bytes)? == Step::Room {
                return Ok(());
            }
        }
    }

    fn split_leaf_step(&self, ctx: &Context, path: &[PageNo], key: &[u8], bytes: usize) -> Result<Step> {
        let mut mtr = self.structure_mtr(ctx, 1)?;
        let depth = path.len() - 1;
        let Some(parent_no) = depth.checked_sub(1).map(|depth| path[depth]) else {
            let [root] = self.latch_nodes(&mut mtr, [(path[0], 0)])?;
            if has_room(Node::new(mtr.page(root)), bytes) {
                return Ok(Step::Room);
            }
            return self.grow_root(mtr, root);
        };
        let [parent, leaf] = self.latch_nodes(&mut mtr, [(parent_no, 1), (path[depth], 0)])?;
        let node = Node::new(mtr.page(leaf));
        if has_room(node, bytes) {
            return Ok(Step::Room);
        }
        if node.count() < 2 {
            return Err(Error::RowTooLarge { bytes: node.used_bytes() + bytes, limit_bytes: node.capacity_bytes() });
        }
        let cut = cut_leaf(node, key);
        self.split(mtr, path, depth, (parent, leaf), cut, key)
    }

    /// Splits the inner page at `depth`, whatever room it has.
    fn split_inner(&self, ctx: &Context, path: &[PageNo], depth: usize, key: &[u8]) -> Result<Step> {
        let mut mtr = self.structure_mtr(ctx, 1)?;
        let level = (path.len() - 1 - depth) as u8;
        if depth == 0 {
            let [root] = self.latch_nodes(&mut mtr, [(path[0], level)])?;
            return self.grow_root(mtr, root);
        }
        let [parent, inner] = self.latch_nodes(&mut mtr, [(path[depth - 1], level + 1), (path[depth], level)])?;
        let node = Node::new(mtr.page(inner));
        let Some(cut) = cut_inner(node, key) else {
            return Err(Error::corrupt_page(path[depth], "it has no separator and no room for one"));
        };
        self.split(mtr, path, depth, (parent, inner), cut, key)
    }

    /// Moves the records behind the cut to a new page and enters it in the parent; splits the parent instead if that has no
    /// room.
    fn split(
        &self,
        mut mtr: Mtr<'_>,
        path: &[PageNo],
        depth: usize,
        (parent, left): (Latched, Latched),
        cut: Cut,
        key: &[u8],
    ) -> Result<Step> {
        let ctx = mtr.context();
        let slot = self.child_slot(mtr.page(parent), path[depth - 1], path[depth], key)?;
        if !Node::new(mtr.page(parent)).fits(cut.separator.len(), 4) {
            drop(mtr);
            return self.split_inner(ctx, path, depth - 1, key);
        }
        let node = Node::new(mtr.page(left));
        let mut bounds = Bounds::of(node);
        let mut right_bounds = bounds.clone();
        right_bounds.lower = Some(cut.separator.clone());
        bounds.upper = Some(cut.separator.clone());
        if !node.is_leaf() {
            bounds.upper_child = node.child(cut.keep);
        }
        let mut packed = Vec::new();
        pack(node, cut.right_from..node.count(), right_bounds.prefix_len(), &mut packed);
        let (level, max_trx_id) = (node.level(), header::max_trx_id(mtr.page(left)));
        let Ok(right_no) = self.space.allocate(&mut mtr, self.segment, Some(path[depth])) else {
            return Ok(Step::Split);
        };
        let right = mtr.new_page(right_no);
        self.write_node(&mut mtr, right, &Contents { level, bounds: &right_bounds, packed: &packed, max_trx_id });
        mtr.apply(left, &bounds.refence(0..cut.keep));
        let child = path[depth].0.to_le_bytes();
        mtr.apply(parent, &PageOp::NodeInsert { slot: slot as u16, key: &cut.separator, value: &child });
        mtr.apply(parent, &PageOp::NodeSetChild { slot: slot as u16 + 1, child: right_no });
        mtr.commit();
        ctx.stats.btree_splits.inc();
        Ok(Step::Split)
    }

    /// Gives the root's records to a new child: the tree is one level higher, the root's number the same.
    fn grow_root(&self, mut mtr: Mtr<'_>, root: Latched) -> Result<Step> {
        let ctx = mtr.context();
        let node = Node::new(mtr.page(root));
        let level = node.level();
        if level >= MAX_LEVEL {
            return Err(Error::corrupt_page(self.root, format!("a tree of {level} levels cannot be")));
        }
        let bounds = Bounds::of(node);
        let mut packed = Vec::new();
        pack(node, 0..node.count(), 0, &mut packed);
        let max_trx_id = header::max_trx_id(mtr.page(root));
        let Ok(child_no) = self.space.allocate(&mut mtr, self.segment, Some(self.root)) else { return Ok(Step::Split) };
        let child = mtr.new_page(child_no);
        self.write_node(&mut mtr, child, &Contents { level, bounds: &bounds, packed: &packed, max_trx_id });
        let bounds = Bounds::infinite(child_no);
        self.write_node(&mut mtr, root, &Contents { level: level + 1, bounds: &bounds, packed: &[], max_trx_id: 0 });
        mtr.commit();
        ctx.stats.btree_splits.inc();
        Ok(Step::Split)
    }
}

/// Whether a leaf takes `bytes` more, as a record with a whole key or as growth.
fn has_room(node: Node<'_>, bytes: usize) -> bool {
    node.fits(node.prefix_len() + 4, bytes)
}

/// Where to cut a leaf of at least two records that has no room at `key`.
fn cut_leaf(node: Node<'_>, key: &[u8]) -> Cut {
    let count = node.count();
    if let Err(slot) = node.search(key)
        && node.is_ascending_at(slot)
    {
        let separator = if slot == count {
            shortest_separator(&node.key(count - 1), key).to_vec()
        } else {
            shortest_separator(key, &node.key(slot)).to_vec()
        };
        if left_fits(node, slot, &separator) {
            return Cut { keep: slot, right_from: slot, separator };
        }
    }
    let separator_at = |at: usize| shortest_separator(&node.key(at - 1), &node.key(at)).to_vec();
    let keep = middle(node, 1..count, |at| separator_at(at).len());
    Cut { keep, right_from: keep, separator: separator_at(keep) }
}

/// Whether the first `keep` records fit a page with this upper fence.
fn left_fits(node: Node<'_>, keep: usize, separator: &[u8]) -> bool {
    let lower = node.lower();
    let prefix_len = lower.map_or(0, |lower| common_prefix(lower, separator));
    let fences = lower.map_or(0, <[u8]>::len) + separator.len();
    fences + node.rebuilt_bytes(0..keep, prefix_len) <= node.capacity_bytes()
}

/// Where to cut an inner page on the way to `key`; `None` if it has no separator.
fn cut_inner(node: Node<'_>, key: &[u8]) -> Option<Cut> {
    let count = node.count();
    let last = count.checked_sub(1)?;
    let slot = node.search(key).map_or_else(|slot| slot, |slot| slot + 1);
    let keep = if node.is_ascending_at(slot) {
        slot.min(last)
    } else if count < 3 {
        count / 2
    } else {
        middle(node, 1..last, |at| node.key(at).len())
    };
    Some(Cut { keep, right_from: keep + 1, separator: node.key(keep) })
}

/// The cut in `range` with the shortest separator among those that halve the bytes to within a sixteenth of them.
fn middle(node: Node<'_>, range: std::ops::Range<usize>, separator_len: impl Fn(usize) -> usize) -> usize {
    let prefix_len = node.prefix_len();
    let total = node.rebuilt_bytes(0..node.count(), prefix_len);
    let mut left = node.rebuilt_bytes(0..range.start, prefix_len);
    let mut nearest = (usize::MAX, range.start);
    let mut best: Option<((usize, usize), usize)> = None;
    for at in range {
        let off = left.abs_diff(total / 2);
        nearest = nearest.min((off, at));
        if off <= total / 16 {
            let rank = (separator_len(at), off);
            if best.is_none_or(|(best, _)| rank < best) {
                best = Some((rank, at));
            }
        }
        left += node.rebuilt_bytes(at..at + 1, prefix_len);
    }
    best.map_or(nearest.1, |(_, at)| at)
}
