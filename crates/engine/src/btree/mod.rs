//! B+trees over byte strings. SKELETON
//!
//! No sibling links: a leaf knows the half-open range of keys it covers by its fences `[lower, upper)`;
//! the next leaf is found by descending to `upper`, the previous one by descending to "just below `lower`".
//! Row operations are optimistic: latch one leaf, change it. Structure changes (`make_room`, `shrink`) are mini-transactions
//! of their own, made before or after, under the tree's structure mutex.

use crate::error::Result;
use crate::mtr::{Context, Latched, Mtr};
use crate::pool::SharedPage;
use crate::space::Space;
use crate::types::{IndexId, PageNo, SegmentId};
use std::sync::Arc;

/// A tree; cheap to share by reference. `root` never moves.
pub struct BTree {
    _p: (),
}

/// Where a descent ends.
#[derive(Clone, Copy, Debug)]
pub enum Seek<'k> {
    /// The leaf that covers this key.
    Covers(&'k [u8]),
    /// The leaf that holds keys just below this one (for walking backward).
    Before(&'k [u8]),
    /// The left-most leaf.
    First,
    /// The right-most leaf.
    Last,
}

impl BTree {
    /// Allocates and formats the root (an empty leaf) in `mtr` (which needs one frame set aside).
    pub fn create(_space: Arc<Space>, _mtr: &mut Mtr<'_>, _id: IndexId, _segment: SegmentId) -> Result<BTree> {
        unimplemented!()
    }
    /// The tree whose root is `root`.
    pub fn open(_space: Arc<Space>, _id: IndexId, _segment: SegmentId, _root: PageNo) -> BTree {
        unimplemented!()
    }
    /// Its number.
    pub fn id(&self) -> IndexId {
        unimplemented!()
    }
    /// Its root page.
    pub fn root(&self) -> PageNo {
        unimplemented!()
    }
    /// Longest key a page of this size takes.
    pub fn max_key_bytes(_page_bytes: usize) -> usize {
        unimplemented!()
    }
    /// Longest value (longer rows go to overflow pages).
    pub fn max_value_bytes(_page_bytes: usize) -> usize {
        unimplemented!()
    }
    /// S-latches a leaf. The caller holds no latch.
    pub fn leaf<'c>(&self, _ctx: &'c Context, _seek: Seek<'_>) -> Result<Leaf<'c>> {
        unimplemented!()
    }
    /// X-latches the leaf that covers `key`. `mtr` holds no latch yet.
    pub fn leaf_mut(&self, _mtr: &mut Mtr<'_>, _key: &[u8]) -> Result<LeafMut> {
        unimplemented!()
    }
    /// Splits until the leaf that covers `key` has room for a record (or for growth) of `bytes` more. Holds no latch before or after.
    /// Call again after re-latching: another thread may have taken the room.
    pub fn make_room(&self, _ctx: &Context, _key: &[u8], _bytes: usize) -> Result<()> {
        unimplemented!()
    }
    /// Merges the leaf that covers `key` with a neighbour if both fit one page (collapsing the root when it has one child). Holds no latch before or after.
    pub fn shrink(&self, _ctx: &Context, _key: &[u8]) -> Result<()> {
        unimplemented!()
    }
}

/// A leaf latched shared.
pub struct Leaf<'c> {
    _page: SharedPage<'c>,
}

impl<'c> Leaf<'c> {
    /// Records on the leaf.
    pub fn len(&self) -> usize {
        unimplemented!()
    }
    /// `Ok(slot)` of the key, or `Err(slot)` where it would be.
    pub fn search(&self, _key: &[u8]) -> std::result::Result<usize, usize> {
        unimplemented!()
    }
    /// Replaces `out` with the whole key of `slot`.
    pub fn key_into(&self, _slot: usize, _out: &mut Vec<u8>) {
        unimplemented!()
    }
    /// Value of `slot`.
    pub fn value(&self, _slot: usize) -> &[u8] {
        unimplemented!()
    }
    /// First key the leaf may hold; `None` = no bound.
    pub fn lower(&self) -> Option<&[u8]> {
        unimplemented!()
    }
    /// First key beyond the leaf; `None` = no bound.
    pub fn upper(&self) -> Option<&[u8]> {
        unimplemented!()
    }
    /// Page number and frame version, for `Pool::fix_s_if` later.
    pub fn position(&self) -> (PageNo, u64) {
        unimplemented!()
    }
    /// The leaf again if its page is unchanged since `position`.
    pub fn reopen(_ctx: &'c Context, _position: (PageNo, u64)) -> Option<Leaf<'c>> {
        unimplemented!()
    }
    /// Largest transaction number that changed this (secondary) leaf.
    pub fn max_trx_id(&self) -> u64 {
        unimplemented!()
    }
}

/// A leaf latched exclusively in an mtr.
#[derive(Clone, Copy, Debug)]
pub struct LeafMut {
    pub(crate) latched: Latched,
}

impl LeafMut {
    /// Records on the leaf.
    pub fn len(self, _mtr: &Mtr<'_>) -> usize {
        unimplemented!()
    }
    /// `Ok(slot)` of the key, or `Err(slot)` where it would be.
    pub fn search(self, _mtr: &Mtr<'_>, _key: &[u8]) -> std::result::Result<usize, usize> {
        unimplemented!()
    }
    /// Replaces `out` with the whole key of `slot`.
    pub fn key_into(self, _mtr: &Mtr<'_>, _slot: usize, _out: &mut Vec<u8>) {
        unimplemented!()
    }
    /// Value of `slot`.
    pub fn value<'m>(self, _mtr: &'m Mtr<'_>, _slot: usize) -> &'m [u8] {
        unimplemented!()
    }
    /// Upper fence.
    pub fn upper<'m>(self, _mtr: &'m Mtr<'_>) -> Option<&'m [u8]> {
        unimplemented!()
    }
    /// Whether a record of this key and value length fits.
    pub fn fits(self, _mtr: &Mtr<'_>, _key_bytes: usize, _value_bytes: usize) -> bool {
        unimplemented!()
    }
    /// Whether the value of `slot` can grow by `bytes`.
    pub fn fits_growth(self, _mtr: &Mtr<'_>, _slot: usize, _bytes: usize) -> bool {
        unimplemented!()
    }
    /// Inserts (the caller has checked `fits`).
    pub fn insert(self, _mtr: &mut Mtr<'_>, _slot: usize, _key: &[u8], _value: &[u8]) {
        unimplemented!()
    }
    /// Removes.
    pub fn remove(self, _mtr: &mut Mtr<'_>, _slot: usize) {
        unimplemented!()
    }
    /// Replaces `remove` bytes at `at` of the value with `bytes` (the caller has checked `fits_growth`).
    pub fn splice(self, _mtr: &mut Mtr<'_>, _slot: usize, _at: usize, _remove: usize, _bytes: &[u8]) {
        unimplemented!()
    }
    /// Raises the page's max_trx_id to `id` (not redo-logged for every call: only when it grows).
    pub fn raise_max_trx_id(self, _mtr: &mut Mtr<'_>, _id: u64) {
        unimplemented!()
    }
    /// Whether the leaf is so empty that `BTree::shrink` is worth calling.
    pub fn underfull(self, _mtr: &Mtr<'_>) -> bool {
        unimplemented!()
    }
}
