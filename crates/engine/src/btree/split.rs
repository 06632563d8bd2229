//! Splits and growth of the root, which give a page free space.
//!
//! Rules
//! 1. A page is split only when its parent has space for the separator; a full parent is split first, in a separate
//!    mini-transaction. So each split changes one parent, one page and one new page, or the root and two new pages.
//! 2. The split checks again under its latch that the page has no space, so two threads that found it full split it
//!    once.
//! 3. Ascending insertions (`Node::ascent_at`) split at the insertion point, so pages filled in key order stay full. At
//!    the end of the page the right page starts empty. In the middle (keys that ascend within a prefix, such as the
//!    lines of an order) the following records are first moved to another page. If insertions come late (the lines of
//!    an order in another order), the page is split among the last records, at the shortest separator: there an order
//!    begins, and late insertions belong to the right page. All other splits are in the middle by bytes, the inserted
//!    record included, which matters on pages with few large records.
//! 4. Separators between leaves are as short as a window around the split point allows. A separator is a fence of both
//!    halves, and may be as long as a key: if a half would not fit its page with it, the leaf is split elsewhere.

use super::found::MAX_LEVEL;
use super::structure::{Missing, NodeBounds, NodeContents, Repeats, StepResult, TreeStructure, pack};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::mtr::{Mtr, PageHandle};
use crate::page::node::{Ascent, CHILD_BYTES, TreeLimits, common_prefix, prefix_of, record_bytes, shortest_separator};
use crate::page::op::pack_record;
use crate::page::{Node, PageOp, header, node};
use std::borrow::Cow;
use std::ops::Range;

/// The split point of a node.
struct SplitPoint {
    /// Records that stay.
    keep: usize,
    /// First record that goes to the new page (`keep`, or after the separator on an inner page).
    right_from: usize,
    /// Upper fence of the left page, lower fence of the right one.
    separator: Vec<u8>,
}

/// The outcome of a step.
#[derive(PartialEq)]
enum SplitStep {
    /// The page had enough free space, or the target page was split.
    Room,
    /// A page above it was split: check again.
    Above,
}

/// The halves of a node that is cut.
struct Halves {
    left: NodeBounds,
    right: NodeBounds,
    /// Records of the right one.
    packed: Vec<u8>,
}

/// Splits the leaf that covers `key` unless it has `bytes` of free space.
///
/// # Errors
/// Those of [`make_room`](super::BTree::make_room).
pub(super) fn make_room(tree: &TreeStructure, ctx: &Context, key: &[u8], bytes: usize) -> Result<()> {
    let TreeLimits { max_key_bytes, max_record_bytes } = tree.limits();
    if key.len() > max_key_bytes {
        return Err(Error::KeyTooLong { key: "a key".to_string(), bytes: key.len(), limit_bytes: max_key_bytes });
    }
    if bytes > max_record_bytes {
        return Err(Error::RowTooLarge { bytes, limit_bytes: max_record_bytes });
    }
    let mut repeats = Repeats::new(ctx);
    while repeats.until_done(|| split_step(tree, ctx, key, 0, bytes))? != SplitStep::Room {}
    Ok(())
}

/// Splits the page at `level` that covers `key` unless its free space suffices: in a leaf for a record or growth of
/// `bytes`, in an inner page for a separator of that many bytes.
fn split_step(tree: &TreeStructure, ctx: &Context, key: &[u8], level: u8, bytes: usize) -> StepResult<SplitStep> {
    let path = tree.search().path(ctx, key)?;
    let depth = (path.len() - 1).checked_sub(usize::from(level)).ok_or(Missing::Stale)?;
    let (mut mtr, admitted) = tree.begin_step(ctx, if depth == 0 { 2 } else { 1 })?;
    if depth == 0 {
        let root = tree.latch_root(&mut mtr, level)?;
        return match cut(&mtr, root, key, bytes)? {
            None => Ok(SplitStep::Room),
            Some(cut) => grow_root(tree, mtr, root, &cut),
        };
    }
    let parent = tree.latch_parent(&mut mtr, path[depth - 1], level + 1, key)?;
    let slot = node::child_slot_covering(mtr.page(parent), key);
    let page = tree.latch_child(&mut mtr, parent, slot, level)?;
    let Some(cut) = cut(&mtr, page, key, bytes)? else { return Ok(SplitStep::Room) };
    let separator_bytes = cut.separator.len();
    if Node::new(mtr.page(parent)).fits(separator_bytes, CHILD_BYTES) {
        return split(tree, mtr, (parent, slot), page, &cut);
    }
    drop((mtr, admitted));
    // There is space there now: check this page again.
    split_step(tree, ctx, key, level + 1, separator_bytes).map(|_| SplitStep::Above)
}

/// The split point of a latched page without enough free space for an insertion at `key`; `None` if it has enough.
fn cut(mtr: &Mtr<'_>, page: PageHandle, key: &[u8], bytes: usize) -> Result<Option<SplitPoint>> {
    let node = Node::new(mtr.page(page));
    if !node.is_leaf() {
        if node.fits(bytes, CHILD_BYTES) {
            return Ok(None);
        }
        let damaged = || Error::corrupt_page(mtr.page_no(page), "it has no separator and no room for one");
        return cut_inner(node, key).ok_or_else(damaged).map(Some);
    }
    if has_room(node, bytes) {
        return Ok(None);
    }
    if node.count() < 2 {
        return Err(Error::RowTooLarge { bytes: node.used_bytes() + bytes, limit_bytes: node.capacity_bytes() });
    }
    let too_large = || Error::RowTooLarge { bytes, limit_bytes: node.capacity_bytes() };
    cut_leaf(node, key, bytes).ok_or_else(too_large).map(Some)
}

/// Moves the records after the split point to a new page and inserts the separator into the parent, which has space for
/// it.
fn split(
    tree: &TreeStructure,
    mut mtr: Mtr<'_>,
    (parent, slot): (PageHandle, usize),
    left: PageHandle,
    cut: &SplitPoint,
) -> StepResult<SplitStep> {
    let ctx = mtr.context();
    let halves = halve(Node::new(mtr.page(left)), cut);
    let (level, max_trx_id) = (header::level(mtr.page(left)), header::max_trx_id(mtr.page(left)));
    let had = node::count(mtr.page(left)) + cut.keep - cut.right_from;
    let left_no = mtr.page_no(left);
    // The left page may have less space than before: it gets a longer fence, and in the end keeps every record.
    tree.free_classes().keep(&mut mtr, left).map_err(Missing::Absent)?;
    let right_no = tree.allocate(&mut mtr, Some(left_no))?;
    let right = mtr.new_page(right_no);
    let contents = NodeContents { level, bounds: &halves.right, packed: &halves.packed, max_trx_id };
    tree.write_node(&mut mtr, right, &contents);
    mtr.apply(left, &halves.left.refence(0..cut.keep));
    tree.free_classes().note(&mut mtr, left);
    let child = left_no.0.to_le_bytes();
    mtr.apply(parent, &PageOp::NodeInsert { slot: slot as u16, key: &cut.separator, value: &child });
    mtr.apply(parent, &PageOp::NodeSetChild { slot: slot as u16 + 1, child: right_no });
    let have = node::count(mtr.page(left)) + node::count(mtr.page(right));
    debug_assert_eq!(have, had, "a split of page {left_no} loses records");
    [parent, left].into_iter().for_each(|page| tree.check_node(&mtr, page));
    [(slot, left), (slot + 1, right)].into_iter().for_each(|(at, child)| tree.check_child(&mtr, parent, at, child));
    mtr.commit();
    ctx.stats.btree_splits.inc();
    Ok(SplitStep::Room)
}

/// Gives the root's records to two new children: the tree is one level higher, the root's number the same.
fn grow_root(tree: &TreeStructure, mut mtr: Mtr<'_>, root: PageHandle, cut: &SplitPoint) -> StepResult<SplitStep> {
    let ctx = mtr.context();
    let node = Node::new(mtr.page(root));
    let level = node.level();
    let (had, mut have) = (node.count() + cut.keep - cut.right_from, 0);
    if level >= MAX_LEVEL {
        return Err(Error::corrupt_page(tree.root(), format!("a tree of {level} levels is not possible")).into());
    }
    let halves = halve(node, cut);
    let mut packed = Vec::new();
    pack(node, 0..cut.keep, halves.left.prefix_len(), &mut packed);
    let max_trx_id = header::max_trx_id(mtr.page(root));
    let near = Some(tree.root());
    let left_no = tree.allocate(&mut mtr, near)?;
    let right_no = tree.allocate(&mut mtr, Some(left_no))?;
    for (page_no, bounds, packed) in [(left_no, &halves.left, &packed), (right_no, &halves.right, &halves.packed)] {
        let child = mtr.new_page(page_no);
        tree.write_node(&mut mtr, child, &NodeContents { level, bounds, packed, max_trx_id });
        have += node::count(mtr.page(child));
    }
    let bounds = NodeBounds::infinite(right_no);
    let mut packed = Vec::new();
    pack_record(&mut packed, &cut.separator, &left_no.0.to_le_bytes());
    let contents = NodeContents { level: level + 1, bounds: &bounds, packed: &packed, max_trx_id: 0 };
    tree.write_node(&mut mtr, root, &contents);
    debug_assert_eq!(have, had, "a root that grows loses records");
    debug_assert!(node::is_unbounded(mtr.page(root)), "rule 5 of the tree: the root {} has fences", tree.root());
    mtr.commit();
    ctx.stats.btree_splits.inc();
    Ok(SplitStep::Room)
}

/// The halves of a node.
fn halve(node: Node<'_>, cut: &SplitPoint) -> Halves {
    debug_assert!(cut.keep <= cut.right_from && cut.right_from <= node.count(), "a cut of {}", node.count());
    let is_between = |at: &[u8]| node.lower().is_none_or(|low| low < at) && node.upper().is_none_or(|up| at < up);
    debug_assert!(is_between(&cut.separator), "rule 4: the separator is a fence of the page");
    let mut left = NodeBounds::of(node);
    let mut right = left.clone();
    right.lower = Some(cut.separator.clone());
    left.upper = Some(cut.separator.clone());
    if !node.is_leaf() {
        left.upper_child = node.child(cut.keep);
    }
    let mut packed = Vec::new();
    pack(node, cut.right_from..node.count(), right.prefix_len(), &mut packed);
    Halves { left, right, packed }
}

/// Whether a leaf takes `bytes` more, as a record with a whole key or as growth.
fn has_room(node: Node<'_>, bytes: usize) -> bool {
    node.fits(node.prefix_len() + 4, bytes)
}

/// The split point of a leaf with at least two records and without free space for `bytes` at `key`. `None` if no split
/// point gives two halves that fit their pages, which the limits of records and keys exclude.
fn cut_leaf(node: Node<'_>, key: &[u8], bytes: usize) -> Option<SplitPoint> {
    let found = node.search(key);
    if let Err(slot) = found
        && let Some(ascent) = node.ascent_at(slot)
        && let Some(cut) = cut_ascending(node, slot, key, ascent)
    {
        return Some(cut);
    }
    let (slot, is_between) = found.map_or_else(|slot| (slot, true), |slot| (slot, false));
    let new = SplitNeed { slot, is_between, bytes: if is_between { record_bytes(0, bytes) } else { bytes } };
    let cut_at = |(keep, is_left): (usize, bool)| {
        let is_at_cut = is_between && slot == keep;
        let last = if is_at_cut && is_left { Cow::Borrowed(key) } else { Cow::Owned(node.key(keep - 1)) };
        let first = if is_at_cut && !is_left { Cow::Borrowed(key) } else { Cow::Owned(node.key(keep)) };
        SplitPoint { keep, right_from: keep, separator: shortest_separator(&last, &first).to_vec() }
    };
    let range = 1..node.count();
    let cut = cut_at(middle(node, range.clone(), &new, |at| node.common_suffix_len(at - 1, at)));
    if halves_fit(node, &cut) {
        return Some(cut);
    }
    let mut cuts: Vec<_> = cuts(node, range, &new).collect();
    cuts.sort_unstable();
    cuts.into_iter().map(|(_, cut)| cut_at(cut)).find(|cut| halves_fit(node, cut))
}

/// The split point of a leaf that ascending insertions fill; the present insertion is of `key`, at `slot`. `None` if a
/// half would have no space for the separator.
fn cut_ascending(node: Node<'_>, slot: usize, key: &[u8], ascent: Ascent) -> Option<SplitPoint> {
    let count = node.count();
    let (keep, separator) = if ascent.end < count {
        // The records after the run move to the right page, and the run continues at the end of the left page.
        let last = if slot == ascent.end { Cow::Borrowed(key) } else { Cow::Owned(node.key(ascent.end - 1)) };
        (ascent.end, shortest_separator(&last, &node.key(ascent.end)).to_vec())
    } else {
        let from = slot.min((count - ascent.late_by).max(1));
        let shared: Vec<_> = (from..slot + 1).map(|at| shared_before(node, at, slot, key)).collect();
        let shortest = shared.iter().min()?;
        let keep = if shared.iter().all(|bytes| bytes == shortest) {
            // Keys without parts: what is late by half as much as expected still goes to the right.
            slot.min(count - ascent.late_by / 2)
        } else {
            from + shared.iter().rposition(|bytes| bytes == shortest)?
        };
        let first = if keep == slot { Cow::Borrowed(key) } else { Cow::Owned(node.key(keep)) };
        (keep, shortest_separator(&node.key(keep - 1), &first).to_vec())
    };
    let cut = SplitPoint { keep, right_from: keep, separator };
    halves_fit(node, &cut).then_some(cut)
}

/// Bytes that the record before `at` has in common with the next one, which is `key` if `at` is its slot.
fn shared_before(node: Node<'_>, at: usize, slot: usize, key: &[u8]) -> usize {
    if at == slot {
        common_prefix(&node.key(at - 1), key)
    } else {
        node.prefix_len() + node.common_suffix_len(at - 1, at)
    }
}

/// Whether each half of a leaf fits a page with its fences.
fn halves_fit(node: Node<'_>, cut: &SplitPoint) -> bool {
    let fits = |lower: Option<&[u8]>, upper: Option<&[u8]>, records| {
        let fences = lower.map_or(0, <[u8]>::len) + upper.map_or(0, <[u8]>::len);
        fences + node.rebuilt_bytes(records, prefix_of(lower, upper)) <= node.capacity_bytes()
    };
    let separator = Some(&cut.separator[..]);
    fits(node.lower(), separator, 0..cut.keep) && fits(separator, node.upper(), cut.right_from..node.count())
}

/// The split point of an inner page on the path to `key`; `None` if it has no separator.
fn cut_inner(node: Node<'_>, key: &[u8]) -> Option<SplitPoint> {
    let count = node.count();
    let last = count.checked_sub(1)?;
    let slot = node.search(key).map_or_else(|slot| slot, |slot| slot + 1);
    let keep = if node.ascent_at(slot).is_some() {
        slot.min(last)
    } else if count < 3 {
        count / 2
    } else {
        middle(node, 1..last, &SplitNeed::default(), |at| node.record(at).suffix_len).0
    };
    Some(SplitPoint { keep, right_from: keep + 1, separator: node.key(keep) })
}

/// The need of a split: growth of the record in `slot` by this many bytes, or a new record of this size before it.
#[derive(Default)]
struct SplitNeed {
    slot: usize,
    is_between: bool,
    bytes: usize,
}

impl SplitNeed {
    /// Whether it goes to the left of a cut at `at`; right at the cut, to the half that is smaller.
    fn is_left_of(&self, at: usize, left_is_smaller: bool) -> bool {
        self.slot < at || (self.is_between && self.slot == at && left_is_smaller)
    }
}

/// The cut in `range` with the shortest separator among those that divide the bytes, those of `new` included, into
/// halves with a tolerance of a sixteenth; and whether `new` goes to its left. `separator_len` may leave out bytes that
/// all separators have in common.
fn middle(
    node: Node<'_>,
    range: Range<usize>,
    new: &SplitNeed,
    separator_len: impl Fn(usize) -> usize,
) -> (usize, bool) {
    let window = (node.rebuilt_bytes(0..node.count(), node.prefix_len()) + new.bytes) / 16;
    let mut nearest = (usize::MAX, (range.start, false));
    let mut best: Option<((usize, usize), (usize, bool))> = None;
    for (off, cut) in cuts(node, range, new) {
        nearest = nearest.min((off, cut));
        if off <= window {
            let rank = (separator_len(cut.0), off);
            if best.is_none_or(|(best, _)| rank < best) {
                best = Some((rank, cut));
            }
        }
    }
    best.map_or(nearest.1, |(_, cut)| cut)
}

/// Each cut in `range`: its distance in bytes from the middle, its place, and whether `new` goes to its left.
fn cuts<'n>(
    node: Node<'n>,
    range: Range<usize>,
    new: &'n SplitNeed,
) -> impl Iterator<Item = (usize, (usize, bool))> + use<'n> {
    let prefix_len = node.prefix_len();
    let present = node.rebuilt_bytes(0..node.count(), prefix_len);
    let half = (present + new.bytes) / 2;
    let mut present_left = node.rebuilt_bytes(0..range.start, prefix_len);
    range.map(move |at| {
        let is_left = new.is_left_of(at, present_left < present / 2);
        let left = present_left + if is_left { new.bytes } else { 0 };
        present_left += node.rebuilt_bytes(at..at + 1, prefix_len);
        (left.abs_diff(half), (at, is_left))
    })
}
