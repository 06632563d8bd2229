//! A tree: its structure ([`super::structure`]), which has its search ([`super::search`]), and every call of both.

use super::build::Builder;
use super::check::{TreeCounts, Visitor};
use super::found::LeafPosition;
use super::leaf::{Leaf, LeafMut};
use super::non_resident::NonResidentLeaf;
use super::relocate::{NodePlace, Relocation};
use super::search::TreeSearch;
use super::seek::Seek;
use super::structure::TreeStructure;
use super::{estimate, given_up, merge, relocate, split};
use crate::context::Context;
use crate::error::Result;
use crate::mtr::Mtr;
use crate::page::node::TreeLimits;
use crate::page::{PageOp, PageType};
use crate::pool::SharedPage;
use crate::space::Space;
use crate::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use crate::types::{IndexId, PageNo, SegmentId};
use std::sync::Arc;

/// A tree; cheap to share by reference.
pub(crate) struct BTree {
    structure: TreeStructure,
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
        BTree { structure: TreeStructure::new(space, id, segment, root), leaf_records: AtomicUsize::new(0) }
    }

    /// The tree of an index that is not unique: its leaves' free classes are kept, so that changes can be buffered.
    pub(crate) fn with_free_classes(self) -> BTree {
        BTree { structure: self.structure.with_free_classes(), ..self }
    }

    /// Sets the maximum key length of the tree, which never changes: the size of records depends on it.
    pub(crate) fn with_max_key_bytes(self, max_key_bytes: usize) -> BTree {
        BTree { structure: self.structure.with_max_key_bytes(max_key_bytes), ..self }
    }

    /// The maximum lengths of its keys and records.
    #[inline]
    pub(crate) fn limits(&self) -> TreeLimits {
        self.structure.limits()
    }

    /// Whether its leaves' free classes are kept.
    #[inline]
    pub(crate) fn has_free_classes(&self) -> bool {
        self.structure.free_classes().are_kept()
    }

    /// Records a lower bound of the latched leaf's free space after a change that uses at most `bytes`. The mtr has
    /// changed nothing yet.
    ///
    /// # Errors
    /// The leaf's extent map, which is not in the pool.
    #[inline]
    pub(crate) fn note_growth(
        &self,
        mtr: &mut Mtr<'_>,
        leaf: LeafMut,
        bytes: usize,
    ) -> std::result::Result<(), PageNo> {
        self.structure.free_classes().note_growth(mtr, leaf, bytes)
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
        self.structure.id()
    }

    #[inline]
    pub(crate) fn root(&self) -> PageNo {
        self.structure.root()
    }

    /// The segment its pages are allocated from.
    pub(crate) fn segment(&self) -> SegmentId {
        self.structure.segment()
    }

    /// The tree, to be read.
    #[inline]
    pub(super) fn search(&self) -> &TreeSearch {
        self.structure.search()
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
        self.search().leaf(ctx, seek)
    }

    /// S-latches a leaf, and says which way a descent found it. The caller holds no latch.
    ///
    /// # Errors
    /// As [`BTree::leaf`].
    #[inline]
    pub(crate) fn sought_leaf<'c>(&self, ctx: &'c Context, seek: Seek<'_>) -> Result<(Leaf<'c>, Option<LeafPosition>)> {
        self.search().sought_leaf(ctx, seek)
    }

    /// X-latches the leaf that covers `key`. `mtr` and thread hold no latch yet.
    ///
    /// # Errors
    /// [`Error::CorruptPage`], an I/O error, [`Error::PoolExhausted`].
    #[inline]
    pub(crate) fn leaf_mut(&self, mtr: &mut Mtr<'_>, key: &[u8]) -> Result<LeafMut> {
        self.search().leaf_mut(mtr, key)
    }

    /// X-latches the page if it is in the pool and the leaf that covers `key`; never reads, so that other leaves may be
    /// latched.
    #[inline]
    pub(crate) fn leaf_mut_at(&self, mtr: &mut Mtr<'_>, page: PageNo, key: &[u8]) -> Option<LeafMut> {
        self.search().leaf_mut_at(mtr, page, key)
    }

    /// Finds the leaf that covers `key` without reading a page; the memory of it is then on its way to the processor's
    /// cache, as after each descent. The way is for [`BTree::leaf_of`], soon after.
    #[inline]
    pub(crate) fn prefetch_leaf(&self, ctx: &Context, key: &[u8]) -> Option<LeafPosition> {
        self.search().prefetch_leaf(ctx, key)
    }

    /// Has the record of `key` on the leaf that `position` led to fetched into the processor's cache.
    #[inline]
    pub(crate) fn prefetch_record(&self, ctx: &Context, position: LeafPosition, key: &[u8]) {
        self.search().prefetch_record(ctx, position, key);
    }

    /// S-latches the leaf that `position` led to, if it is in the pool and still the leaf of the same keys.
    #[inline]
    pub(crate) fn leaf_of<'c>(&self, ctx: &'c Context, position: LeafPosition) -> Option<Leaf<'c>> {
        self.search().leaf_of(ctx, position)
    }

    /// S-latches the sibling after (`reverse`: before) the leaf at `position`; returns it with its position.
    #[inline]
    pub(crate) fn sibling_leaf<'c>(
        &self,
        ctx: &'c Context,
        position: LeafPosition,
        reverse: bool,
    ) -> Option<(Leaf<'c>, LeafPosition)> {
        self.search().sibling_leaf(ctx, position, reverse)
    }

    /// Prefetches into the processor's cache: the records of the leaf that [`BTree::sibling_leaf`] would find, the
    /// header of the leaf after it, which says where its records begin, and the page table's slot of the third leaf. So
    /// the next call finds all of it in the cache.
    #[inline]
    pub(crate) fn prefetch_sibling(&self, ctx: &Context, position: LeafPosition, reverse: bool) {
        self.search().prefetch_sibling(ctx, position, reverse);
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
        self.search().leaf_if_resident(mtr, key)
    }

    /// The leaf that covers `key` if it is not in the pool.
    ///
    /// # Errors
    /// A corrupt page on the way, an I/O error.
    #[inline]
    pub(crate) fn non_resident_leaf<'c>(&self, ctx: &'c Context, key: &[u8]) -> Result<Option<NonResidentLeaf<'c>>> {
        self.search().non_resident_leaf(ctx, key)
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
        self.search().non_resident_leaf_in(mtr, key)
    }

    /// The leaf that covers `key`, to be read ahead, together with others, by
    /// [`Pool::request`](crate::pool::Pool::request).
    #[inline]
    pub(crate) fn leaf_ahead(&self, ctx: &Context, key: &[u8]) -> Option<PageNo> {
        self.search().leaf_ahead(ctx, key)
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
        self.search().request_leaves(ctx, near, far, reverse, max)
    }

    /// About how many records have a key from `low` on and below `high` (`None`: to the end).
    ///
    /// # Errors
    /// A page that cannot be read.
    #[inline]
    pub(crate) fn estimate_between(&self, ctx: &Context, low: &[u8], high: Option<&[u8]>) -> Result<u64> {
        estimate::estimate_between(self.search(), ctx, low, high)
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
        estimate::sample_leaf(self.search(), ctx, pick)
    }
}

/// Changes of the structure: each call is one of its file.
impl BTree {
    /// Splits the leaf that covers `key` unless its free space suffices for `bytes`: key and value of a new record, or
    /// additional bytes of a value. Holds no latch before or after. The call is repeated if the space does not suffice
    /// after re-latching: another thread may have used it, or halves with records of unequal size may need another
    /// split.
    ///
    /// # Errors
    /// [`RowTooLarge`](crate::Error::RowTooLarge) or [`KeyTooLong`](crate::Error::KeyTooLong) if no page could ever
    /// take it; a corrupt page, no free frame, a full disk.
    pub(crate) fn make_room(&self, ctx: &Context, key: &[u8], bytes: usize) -> Result<()> {
        split::make_room(&self.structure, ctx, key, bytes)
    }

    /// Merges the leaf that covers `key` with a neighbor if both fit one page (and so on upward, collapsing the root
    /// when it has one child), after a change that is committed. Holds no latch before or after. A merge only saves
    /// space, so an error that prevents it (damage of a neighbor, no free frame, a full device) is counted and does not
    /// fail the change.
    ///
    /// # Errors
    /// What stops the database.
    pub(crate) fn tidy(&self, ctx: &Context, key: &[u8]) -> Result<()> {
        merge::tidy(&self.structure, ctx, key)
    }

    /// As [`BTree::tidy`], and what keeps it from being done is an error.
    ///
    /// # Errors
    /// A corrupt page, an I/O error, no free frame.
    #[cfg(test)]
    pub(crate) fn shrink(&self, ctx: &Context, key: &[u8]) -> Result<()> {
        merge::shrink(&self.structure, ctx, key)
    }

    /// Moves a node to the lowest page below extent `end` that the tree can have. Holds no latch before or after.
    ///
    /// # Errors
    /// A corrupt page, an I/O error, no free frame.
    pub(crate) fn relocate(&self, ctx: &Context, place: NodePlace<'_>, end: u32) -> Result<Relocation> {
        relocate::relocate(&self.structure, ctx, place, end)
    }

    /// Gives the tree up: every descent ends with an error. No thread uses it yet; the caller makes that durable.
    ///
    /// # Errors
    /// An I/O error.
    pub(crate) fn give_up(&self, ctx: &Context) -> Result<()> {
        given_up::give_up(&self.structure, ctx)
    }

    /// Makes the tree an empty one, for any contents of its pages. No thread uses it.
    ///
    /// # Errors
    /// An I/O error.
    pub(crate) fn make_empty(&self, ctx: &Context) -> Result<()> {
        given_up::make_empty(&self.structure, ctx)
    }

    /// Starts building this empty tree. Pages are filled to `fill_percent` (10 to 100); leaves get `max_trx_id`.
    pub(crate) fn builder<'t, 'c>(&'t self, ctx: &'c Context, fill_percent: usize, max_trx_id: u64) -> Builder<'t, 'c> {
        Builder::new(&self.structure, ctx, fill_percent, max_trx_id)
    }

    /// Walks the whole tree and reports what is wrong with it.
    ///
    /// # Errors
    /// As [`BTree::walk`]. Damage is in the report.
    #[cfg(test)]
    pub(crate) fn check(&self, ctx: &Context) -> Result<super::check::TreeReport> {
        self.structure.check(ctx)
    }

    /// Walks the whole tree, left to right, parents first.
    ///
    /// # Errors
    /// The error that ends the walk: no free frame, a stopped database; those of the visitor. Damage is reported
    /// to the visitor.
    pub(crate) fn walk(&self, ctx: &Context, visitor: &mut impl Visitor) -> Result<TreeCounts> {
        self.structure.walk(ctx, visitor)
    }
}
