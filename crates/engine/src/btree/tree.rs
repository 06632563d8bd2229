//! A tree: what identifies it, and where a descent in it ends.

use super::{LeafMut, hint};
use crate::error::Result;
use crate::mtr::{Mtr, PageHandle};
use crate::page::node::TreeLimits;
use crate::page::{Node, PageOp, PageType};
use crate::space::Space;
use crate::sync::RwLock;
use crate::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use crate::sync::sharded::CachePadded;
use crate::types::{IndexId, PageNo, SegmentId};
use std::sync::Arc;

/// A tree; cheap to share by reference. `root` never moves.
pub struct BTree {
    pub(super) space: Arc<Space>,
    pub(super) id: IndexId,
    pub(super) segment: SegmentId,
    pub(super) root: PageNo,
    /// Shared by threads that change the structure, for the latched part of a change; held by a thread that walks the
    /// whole tree. A thread that only reads or changes rows uses the fields next to it.
    pub(super) changes: CachePadded<RwLock<()>>,
    /// The extent maps say how much room its leaves have ([`crate::space`]'s free classes): those of an index whose
    /// changes may be buffered.
    pub(super) has_free_classes: bool,
    pub(super) limits: TreeLimits,
    /// Distinguishes the leaf hints of this tree from those of others.
    pub(super) serial: u64,
    /// Records of a leaf that a scan met lately; 0 if none has.
    leaf_records: AtomicUsize,
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
    /// Allocates and formats the root (an empty leaf) in `mtr`, which needs one frame reserved; the caller has called
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
        let serial = hint::new_serial(space.count_tree());
        let (changes, leaf_records) = (CachePadded::default(), AtomicUsize::new(0));
        let limits = TreeLimits::usual(space.page_bytes());
        BTree { space, id, segment, root, changes, has_free_classes: false, limits, serial, leaf_records }
    }

    /// The tree of an index that is not unique: its leaves' free classes are kept, so that changes can be buffered.
    pub fn with_free_classes(self) -> BTree {
        BTree { has_free_classes: true, ..self }
    }

    /// The tree of keys of up to this many bytes, all its life: what it holds has room by that.
    pub fn with_max_key_bytes(self, max_key_bytes: usize) -> BTree {
        BTree { limits: TreeLimits::of(self.space.page_bytes(), max_key_bytes), ..self }
    }

    /// How long its keys and records may be.
    #[inline]
    pub fn limits(&self) -> TreeLimits {
        self.limits
    }

    /// Whether its leaves' free classes are kept.
    #[inline]
    pub fn has_free_classes(&self) -> bool {
        self.has_free_classes
    }

    /// Notes how much room the latched leaf will have at least, after a change that takes up to `bytes`. The mtr has
    /// changed nothing yet.
    ///
    /// # Errors
    /// The extent map that has to say so, which is not in the pool.
    #[inline]
    pub fn note_growth(&self, mtr: &mut Mtr<'_>, leaf: LeafMut, bytes: usize) -> std::result::Result<(), PageNo> {
        if !self.has_free_classes {
            return Ok(());
        }
        let free_bytes = Node::new(mtr.page(leaf.latched)).free_bytes().saturating_sub(bytes);
        self.space.note_free_bytes(mtr, leaf.page_no(mtr), free_bytes)
    }

    /// Makes sure that [`BTree::note_room`] can note what changes to come leave of a latched page's room, if it is a
    /// leaf. The mtr has changed nothing yet.
    ///
    /// # Errors
    /// The leaf's extent map, which is not in the pool.
    pub fn keep_free_class(&self, mtr: &mut Mtr<'_>, latched: PageHandle) -> std::result::Result<(), PageNo> {
        match self.has_free_class(mtr, latched) {
            true => self.space.try_keep_map(mtr, mtr.page_no(latched)),
            false => Ok(()),
        }
    }

    /// Notes how much room a latched page has, if it is a leaf. Its map is kept ([`BTree::keep_free_class`]), or the
    /// page is a new leaf or the root.
    pub fn note_room(&self, mtr: &mut Mtr<'_>, latched: PageHandle) {
        if self.has_free_class(mtr, latched) {
            let free_bytes = Node::new(mtr.page(latched)).free_bytes();
            self.space.note_free_bytes_if_kept(mtr, mtr.page_no(latched), free_bytes);
        }
    }

    fn has_free_class(&self, mtr: &Mtr<'_>, latched: PageHandle) -> bool {
        self.has_free_classes && Node::new(mtr.page(latched)).is_leaf()
    }

    /// About how many leaves have this many records, by what scans met lately; `None` if no scan has told.
    pub fn leaves_of(&self, records: usize) -> Option<usize> {
        match self.leaf_records.load(Relaxed) {
            0 => None,
            leaf_records => Some(records.div_ceil(leaf_records)),
        }
    }

    /// A scan has met a leaf of this many records. (A similar number is not stored: many scans read it.)
    pub fn note_leaf_records(&self, records: usize) {
        let known = self.leaf_records.load(Relaxed);
        if records > 0 && known.abs_diff(records) > known / 4 {
            let expected = if known == 0 { records } else { (known + records).div_ceil(2) };
            self.leaf_records.store(expected, Relaxed);
        }
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
}
