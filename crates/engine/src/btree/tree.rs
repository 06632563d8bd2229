//! A tree: its search ([`super::search`]), and the state and calls that changes need in addition.

use super::estimate;
use super::found::LeafPosition;
use super::hint;
use super::leaf::{Leaf, LeafMut};
use super::non_resident::NonResidentLeaf;
use super::search::TreeSearch;
use super::seek::Seek;
use crate::context::Context;
use crate::error::Result;
use crate::mtr::{Mtr, PageHandle};
use crate::page::node::TreeLimits;
use crate::page::{Node, PageOp, PageType};
use crate::pool::SharedPage;
use crate::space::Space;
use crate::sync::RwLock;
use crate::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use crate::sync::sharded::CachePadded;
use crate::types::{IndexId, PageNo, SegmentId};
use std::sync::Arc;

/// A tree; cheap to share by reference.
pub(crate) struct BTree {
    search: TreeSearch,
    pub(super) space: Arc<Space>,
    pub(super) segment: SegmentId,
    /// Shared by threads that change the structure, for the latched part of a change; held by a thread that walks the
    /// whole tree. A thread that only reads or changes rows uses the fields next to it.
    pub(super) changes: CachePadded<RwLock<()>>,
    /// The extent maps say how much room its leaves have ([`crate::space`]'s free classes): those of an index whose
    /// changes may be buffered.
    pub(super) has_free_classes: bool,
    pub(super) limits: TreeLimits,
    /// Records of a leaf that a scan met lately; 0 if none has.
    leaf_records: AtomicUsize,
}

impl BTree {
    /// Allocates and formats the root (an empty leaf) in `mtr`, which needs one frame reserved; the caller has called
    /// [`Space::prepare`] before it.
    ///
    /// # Errors
    /// Those of [`Space::allocate`].
    pub(crate) fn create(space: Arc<Space>, mtr: &mut Mtr<'_>, id: IndexId, segment: SegmentId) -> Result<BTree> {
        let root = space.allocate(mtr, segment, None)?;
        let latched = mtr.new_page(root);
        mtr.apply(latched, &PageOp::Format { page_type: PageType::Leaf, level: 0, owner: id.0 });
        mtr.apply(latched, &PageOp::NodeFormat { lower: None, upper: None, upper_child: PageNo(0) });
        Ok(BTree::open(space, id, segment, root))
    }

    /// The tree whose root is `root`.
    pub(crate) fn open(space: Arc<Space>, id: IndexId, segment: SegmentId, root: PageNo) -> BTree {
        let search = TreeSearch::new(id, root, hint::new_serial(space.count_tree()));
        let (changes, leaf_records) = (CachePadded::default(), AtomicUsize::new(0));
        let limits = TreeLimits::usual(space.page_bytes());
        BTree { search, space, segment, changes, has_free_classes: false, limits, leaf_records }
    }

    /// The tree of an index that is not unique: its leaves' free classes are kept, so that changes can be buffered.
    pub(crate) fn with_free_classes(self) -> BTree {
        BTree { has_free_classes: true, ..self }
    }

    /// The tree of keys of up to this many bytes, all its life: what it holds has room by that.
    pub(crate) fn with_max_key_bytes(self, max_key_bytes: usize) -> BTree {
        BTree { limits: TreeLimits::of(self.space.page_bytes(), max_key_bytes), ..self }
    }

    /// How long its keys and records may be.
    #[inline]
    pub(crate) fn limits(&self) -> TreeLimits {
        self.limits
    }

    /// Whether its leaves' free classes are kept.
    #[inline]
    pub(crate) fn has_free_classes(&self) -> bool {
        self.has_free_classes
    }

    /// Records the least free space that the latched leaf will have after a change that takes up to `bytes`. The mtr
    /// has changed nothing yet.
    ///
    /// # Errors
    /// The extent map that has to say so, which is not in the pool.
    #[inline]
    pub(crate) fn note_growth(
        &self,
        mtr: &mut Mtr<'_>,
        leaf: LeafMut,
        bytes: usize,
    ) -> std::result::Result<(), PageNo> {
        if !self.has_free_classes {
            return Ok(());
        }
        let free_bytes = Node::new(mtr.page(leaf.latched)).free_bytes().saturating_sub(bytes);
        self.space.note_free_bytes(mtr, leaf.page_no(mtr), free_bytes)
    }

    /// Makes sure that [`BTree::note_room`] will succeed for a latched page, if it is a leaf. The mtr has changed
    /// nothing yet.
    ///
    /// # Errors
    /// The leaf's extent map, which is not in the pool.
    pub(crate) fn keep_free_class(&self, mtr: &mut Mtr<'_>, latched: PageHandle) -> std::result::Result<(), PageNo> {
        match self.has_free_class(mtr, latched) {
            true => self.space.try_keep_map(mtr, mtr.page_no(latched)),
            false => Ok(()),
        }
    }

    /// Notes how much room a latched page has, if it is a leaf. Its map is kept ([`BTree::keep_free_class`]), or the
    /// page is a new leaf or the root.
    pub(crate) fn note_room(&self, mtr: &mut Mtr<'_>, latched: PageHandle) {
        if self.has_free_class(mtr, latched) {
            let free_bytes = Node::new(mtr.page(latched)).free_bytes();
            self.space.note_free_bytes_if_kept(mtr, mtr.page_no(latched), free_bytes);
        }
    }

    fn has_free_class(&self, mtr: &Mtr<'_>, latched: PageHandle) -> bool {
        self.has_free_classes && Node::new(mtr.page(latched)).is_leaf()
    }

    /// Estimated number of leaves for this many records, from recent scans; `None` before the first scan.
    pub(crate) fn leaves_of(&self, records: usize) -> Option<usize> {
        match self.leaf_records.load(Relaxed) {
            0 => None,
            leaf_records => Some(records.div_ceil(leaf_records)),
        }
    }

    /// A scan has met a leaf of this many records. (A similar number is not stored: many scans read it.)
    pub(crate) fn note_leaf_records(&self, records: usize) {
        let known = self.leaf_records.load(Relaxed);
        if records > 0 && known.abs_diff(records) > known / 4 {
            let expected = if known == 0 { records } else { (known + records).div_ceil(2) };
            self.leaf_records.store(expected, Relaxed);
        }
    }

    #[inline]
    pub(crate) fn id(&self) -> IndexId {
        self.search.id()
    }

    #[inline]
    pub(crate) fn root(&self) -> PageNo {
        self.search.root()
    }

    /// The segment its pages are allocated from.
    pub(crate) fn segment(&self) -> SegmentId {
        self.segment
    }

    /// The tree, to be read.
    #[inline]
    pub(super) fn search(&self) -> &TreeSearch {
        &self.search
    }
}

/// Reading the tree: each call is one of its search.
impl BTree {
    /// S-latches a leaf. The caller holds no latch.
    ///
    /// # Errors
    /// [`Error::CorruptPage`], an I/O error, [`Error::PoolExhausted`].
    #[inline]
    pub(crate) fn leaf<'c>(&self, ctx: &'c Context, seek: Seek<'_>) -> Result<Leaf<'c>> {
        self.search.leaf(ctx, seek)
    }

    /// S-latches a leaf, and says which way a descent found it. The caller holds no latch.
    ///
    /// # Errors
    /// As [`BTree::leaf`].
    #[inline]
    pub(crate) fn sought_leaf<'c>(&self, ctx: &'c Context, seek: Seek<'_>) -> Result<(Leaf<'c>, Option<LeafPosition>)> {
        self.search.sought_leaf(ctx, seek)
    }

    /// X-latches the leaf that covers `key`. `mtr` and thread hold no latch yet.
    ///
    /// # Errors
    /// [`Error::CorruptPage`], an I/O error, [`Error::PoolExhausted`].
    #[inline]
    pub(crate) fn leaf_mut(&self, mtr: &mut Mtr<'_>, key: &[u8]) -> Result<LeafMut> {
        self.search.leaf_mut(mtr, key)
    }

    /// X-latches the page if it is in the pool and the leaf that covers `key`; never reads, so that other leaves may be
    /// latched.
    #[inline]
    pub(crate) fn leaf_mut_at(&self, mtr: &mut Mtr<'_>, page: PageNo, key: &[u8]) -> Option<LeafMut> {
        self.search.leaf_mut_at(mtr, page, key)
    }

    /// Finds the leaf that covers `key` without reading a page; the memory of it is then on its way to the processor's
    /// cache, as after each descent. The way is for [`BTree::leaf_of`], soon after.
    #[inline]
    pub(crate) fn prefetch_leaf(&self, ctx: &Context, key: &[u8]) -> Option<LeafPosition> {
        self.search.prefetch_leaf(ctx, key)
    }

    /// Has the record of `key` on the leaf that `position` led to fetched into the processor's cache.
    #[inline]
    pub(crate) fn prefetch_record(&self, ctx: &Context, position: LeafPosition, key: &[u8]) {
        self.search.prefetch_record(ctx, position, key);
    }

    /// S-latches the leaf that `position` led to, if it is in the pool and still the leaf of the same keys.
    #[inline]
    pub(crate) fn leaf_of<'c>(&self, ctx: &'c Context, position: LeafPosition) -> Option<Leaf<'c>> {
        self.search.leaf_of(ctx, position)
    }

    /// S-latches the leaf behind (`reverse`: before) the one that `position` led to, and says which way it is to it.
    #[inline]
    pub(crate) fn sibling_leaf<'c>(
        &self,
        ctx: &'c Context,
        position: LeafPosition,
        reverse: bool,
    ) -> Option<(Leaf<'c>, LeafPosition)> {
        self.search.sibling_leaf(ctx, position, reverse)
    }

    /// Prefetches into the processor's cache: the records of the leaf that [`BTree::sibling_leaf`] would find, the
    /// header of the leaf after it, which says where its records begin, and the page table's slot of the third leaf. So
    /// the next call finds all of it in the cache.
    #[inline]
    pub(crate) fn prefetch_sibling(&self, ctx: &Context, position: LeafPosition, reverse: bool) {
        self.search.prefetch_sibling(ctx, position, reverse);
    }

    /// X-latches the leaf that covers `key` if it is in the pool, as [`BTree::leaf_mut`] does. Otherwise it is not
    /// read; the inner error has its number.
    ///
    /// # Errors
    /// Those of [`BTree::leaf_mut`].
    #[inline]
    pub(crate) fn leaf_if_resident<'c>(
        &self,
        mtr: &mut Mtr<'c>,
        key: &[u8],
    ) -> Result<std::result::Result<LeafMut, NonResidentLeaf<'c>>> {
        self.search.leaf_if_resident(mtr, key)
    }

    /// The leaf that covers `key` if it is not in the pool.
    ///
    /// # Errors
    /// A corrupt page on the way, an I/O error.
    #[inline]
    pub(crate) fn non_resident_leaf<'c>(&self, ctx: &'c Context, key: &[u8]) -> Result<Option<NonResidentLeaf<'c>>> {
        self.search.non_resident_leaf(ctx, key)
    }

    /// As [`BTree::non_resident_leaf`], with an mtr that has done nothing yet.
    ///
    /// # Errors
    /// Those of [`BTree::non_resident_leaf`].
    #[inline]
    pub(crate) fn non_resident_leaf_in<'c>(
        &self,
        mtr: &mut Mtr<'c>,
        key: &[u8],
    ) -> Result<Option<NonResidentLeaf<'c>>> {
        self.search.non_resident_leaf_in(mtr, key)
    }

    /// The leaf that covers `key`, to be read ahead, together with others, by
    /// [`Pool::request`](crate::pool::Pool::request).
    #[inline]
    pub(crate) fn leaf_ahead(&self, ctx: &Context, key: &[u8]) -> Option<PageNo> {
        self.search.leaf_ahead(ctx, key)
    }

    /// Requests the leaves after that of `near` (`reverse`: before it) up to that of `far`, as far as they have the
    /// same parent, at most `max` counting the leaf of `near`. Returns their number.
    #[inline]
    pub(crate) fn request_leaves(
        &self,
        ctx: &Context,
        near: Seek<'_>,
        far: Seek<'_>,
        reverse: bool,
        max: usize,
    ) -> usize {
        self.search.request_leaves(ctx, near, far, reverse, max)
    }

    /// About how many records have a key from `low` on and below `high` (`None`: to the end).
    ///
    /// # Errors
    /// A page that cannot be read.
    #[inline]
    pub(crate) fn estimate_between(&self, ctx: &Context, low: &[u8], high: Option<&[u8]>) -> Result<u64> {
        estimate::estimate_between(&self.search, ctx, low, high)
    }

    /// A leaf that `pick` leads to: it gets how many children there are, and says which one is next. `None` if a page
    /// on the way had changed.
    ///
    /// # Errors
    /// A page that cannot be read.
    #[inline]
    pub(crate) fn sample_leaf<'c>(
        &self,
        ctx: &'c Context,
        pick: &mut dyn FnMut(usize) -> usize,
    ) -> Result<Option<SharedPage<'c>>> {
        estimate::sample_leaf(&self.search, ctx, pick)
    }
}
