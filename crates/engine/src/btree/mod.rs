//! B+trees over byte strings.
//!
//! Terms
//! - *leaf*: covers the half-open range of keys between its fences `[lower, upper)`. No sibling links: the next leaf is found
//!   by descending to `upper`, the previous one by descending to "just below `lower`".
//! - *structure change*: a split, a merge, growth or collapse of the root. Each is a mini-transaction of its own, made
//!   before a row operation (`make_room`) or after it (`shrink`).
//!
//! Rules
//! 1. Row operations latch one leaf and change nothing else. Structure changes latch a parent and the children concerned; those of
//!    different parents go on side by side (`structure`).
//! 2. A descent reads inner pages without latches; it trusts a child number once the page it came from has validated.
//! 3. A latched leaf is the one sought if the parent still validates, or if its type, owner and fences say so; otherwise the
//!    descent starts again. A page given back is formatted as free in the mtr that frees it, so that a late descent
//!    knows it for dead.
//! 4. Levels fall by one at every step and every page carries the index number, so no damage can make a descent loop: what
//!    does not match while nothing has changed is [`crate::error::Error::CorruptPage`].
//! 5. The root never moves: it grows by giving its records to two new children and collapses by taking a lone child's.
//!
//! Latch order within a tree: top-down, then left to right. Nothing is held across I/O or a wait for frames or log space, but for
//! the lock that keeps structure changes out while the whole tree is walked (`check`); it comes before every latch.
//!
//! Crash: every mini-transaction leaves a whole tree, so any prefix of the log does.

pub mod build;
pub mod check;
mod hint;
mod leaf;
mod merge;
mod search;
mod split;
mod structure;

#[cfg(test)]
mod btree_test;

pub use leaf::{Leaf, LeafMut};

use crate::error::Result;
use crate::mtr::Mtr;
use crate::page::{PageOp, PageType, node};
use crate::space::Space;
use crate::types::{IndexId, PageNo, SegmentId};
use parking_lot::RwLock;
use std::sync::Arc;

/// A tree; cheap to share by reference. `root` never moves.
pub struct BTree {
    space: Arc<Space>,
    id: IndexId,
    segment: SegmentId,
    root: PageNo,
    /// Shared by those who change the structure, for the latched part of a change; held by whoever walks the whole tree.
    changes: RwLock<()>,
    /// Whose leaf hints are whose.
    serial: u64,
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
    /// Allocates and formats the root (an empty leaf) in `mtr`, which needs one frame set aside; the caller has called
    /// [`Space::prepare`] before it.
    ///
    /// # Errors
    /// Those of [`Space::allocate`].
    pub fn create(space: Arc<Space>, mtr: &mut Mtr<'_>, id: IndexId, segment: SegmentId) -> Result<BTree> {
        let root = space.allocate(mtr, segment, None)?;
        let latched = mtr.new_page(root);
        mtr.apply(latched, &PageOp::Format { page_type: PageType::Leaf, level: 0, owner: id.0 });
        mtr.apply(latched, &PageOp::NodeFormat { lower: None, upper: None, upper_child: PageNo(0) });
        Ok(BTree::open(space, id, segment, root))
    }

    /// The tree whose root is `root`.
    pub fn open(space: Arc<Space>, id: IndexId, segment: SegmentId, root: PageNo) -> BTree {
        BTree { space, id, segment, root, changes: RwLock::new(()), serial: hint::new_serial() }
    }

    pub fn id(&self) -> IndexId {
        self.id
    }

    pub fn root(&self) -> PageNo {
        self.root
    }

    /// The segment its pages are allocated from.
    pub fn segment(&self) -> SegmentId {
        self.segment
    }

    /// Longest key a page of this size takes.
    pub const fn max_key_bytes(page_bytes: usize) -> usize {
        node::max_key_bytes(page_bytes)
    }

    /// Longest value (longer rows go to overflow pages).
    pub const fn max_value_bytes(page_bytes: usize) -> usize {
        node::max_value_bytes(page_bytes)
    }
}
