//! Common code of splits and merges: latching the pages of a change, verifying them, moving records.
//!
//! Rules
//! 1. Any number of threads change a tree concurrently. Only page latches synchronize them, taken top-down, then left
//!    to right: a thread that creates a page, frees it or changes its fences holds it *and its parent* exclusively
//!    until the change is in the log. So a latched page whose header names this tree is a node of it; its parent, level
//!    and fences do not change while it is latched; and the child that it names for a key is the right one.
//! 2. A step is: descend without latches; reserve frames and redo space; latch the parent and verify that it is (still)
//!    the right one for the key; latch its children; verify; change; commit. If a page has changed or a resource is
//!    missing, the step ends ([`Missing`]): it releases everything, [`Repeats::provide`] gets the missing resource, and
//!    the step is repeated from the root.
//! 3. No latch, frame or reserved redo space is held across I/O or across a wait for frames or redo space.
//! 4. Before a thread waits for a page under its parent's latch, it checks the page's level, so damaged links cannot
//!    make it wait for a page further up.
//! 5. Every page of a structure change is valid (the pool checked it when it was read, and operations preserve that),
//!    so an operation that does not fit is never logged. This file checks that it is the expected page; a page that
//!    does not match its latched parent is damage.
//! 6. A walk over the whole tree excludes structure changes. A structure change is admitted after it has reserved its
//!    resources; if it is not admitted at once, it releases them before it waits.

use super::found::bounded_root;
use super::free_classes::FreeClasses;
use super::hint;
use super::restarts::Restarts;
use super::search::TreeSearch;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::mtr::{MTR_REDO_BYTES, Mtr, PageHandle};
use crate::page::header::{self, MAX_TRX_ID_OFFSET, TYPE, identity};
use crate::page::node::TreeLimits;
use crate::page::op::pack_record;
use crate::page::{Node, PageBytes, PageOp, PageType, node};
use crate::space::Space;
use crate::sync::sharded::CachePadded;
use crate::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use crate::types::{IndexId, PageNo, SegmentId};
use std::ops::Range;
use std::sync::Arc;

/// The reason why a step ended without a change.
#[derive(Debug)]
pub(super) enum Missing {
    /// The tree has changed on the way down, or other threads have taken what was reserved.
    Stale,
    /// A page that its parent names is not in the pool.
    Absent(PageNo),
    /// For good.
    Failed(Error),
}

impl From<Error> for Missing {
    fn from(error: Error) -> Missing {
        Missing::Failed(error)
    }
}

pub(super) type StepResult<T> = std::result::Result<T, Missing>;

/// Repeats a step, with what it lacked, until it succeeds.
pub(super) struct Repeats<'c> {
    ctx: &'c Context,
    restarts: Restarts<'c>,
    /// A page that could not be read. It counts if it is lacking again: it may have been freed meanwhile.
    doubt: Option<(PageNo, Error)>,
}

impl<'c> Repeats<'c> {
    pub(super) fn new(ctx: &'c Context) -> Self {
        Repeats { ctx, restarts: Restarts::new(ctx), doubt: None }
    }

    /// The result of the first step that succeeds. The caller holds no latch.
    pub(super) fn until_done<T>(&mut self, mut step: impl FnMut() -> StepResult<T>) -> Result<T> {
        loop {
            match step() {
                Ok(done) => return Ok(done),
                Err(missing) => self.provide(missing)?,
            }
        }
    }

    fn provide(&mut self, missing: Missing) -> Result<()> {
        match missing {
            Missing::Failed(error) => return Err(error),
            Missing::Stale => {}
            Missing::Absent(page) => {
                let doubt = self.doubt.take();
                match (self.ctx.pool.load(page), doubt) {
                    (Ok(()), _) => {}
                    (Err(error), Some((doubted, _))) if doubted == page => return Err(error),
                    (Err(error @ (Error::CorruptPage { .. } | Error::Incompatible(_))), _) => {
                        self.doubt = Some((page, error));
                    }
                    (Err(error), _) => return Err(error),
                }
            }
        }
        self.restarts.again()
    }
}

/// Fences and right-most child of a node, copied out.
#[derive(Clone)]
pub(super) struct NodeBounds {
    pub(super) lower: Option<Vec<u8>>,
    pub(super) upper: Option<Vec<u8>>,
    pub(super) upper_child: PageNo,
}

impl NodeBounds {
    /// No fences.
    pub(super) fn infinite(upper_child: PageNo) -> NodeBounds {
        NodeBounds { lower: None, upper: None, upper_child }
    }

    /// The bounds of a node.
    pub(super) fn of(node: Node<'_>) -> NodeBounds {
        let upper_child = if node.is_leaf() { PageNo(0) } else { node.child(node.count()) };
        NodeBounds { lower: node.lower().map(<[u8]>::to_vec), upper: node.upper().map(<[u8]>::to_vec), upper_child }
    }

    /// Length of the prefix of a node so bounded.
    pub(super) fn prefix_len(&self) -> usize {
        match (&self.lower, &self.upper) {
            (Some(lower), Some(upper)) => node::common_prefix(lower, upper),
            _ => 0,
        }
    }

    /// Bytes the fences take.
    pub(super) fn bytes(&self) -> usize {
        self.lower.as_ref().map_or(0, Vec::len) + self.upper.as_ref().map_or(0, Vec::len)
    }

    /// The operation that makes a formatted page an empty node so bounded.
    pub(super) fn node_format(&self) -> PageOp<'_> {
        let upper_child = self.upper_child;
        PageOp::NodeFormat { lower: self.lower.as_deref(), upper: self.upper.as_deref(), upper_child }
    }

    /// The operation that keeps some records and gives a node these bounds.
    pub(super) fn refence(&self, kept: Range<usize>) -> PageOp<'_> {
        PageOp::NodeRefence {
            from: kept.start as u16,
            to: kept.end as u16,
            lower: self.lower.as_deref(),
            upper: self.upper.as_deref(),
            upper_child: self.upper_child,
        }
    }
}

/// Appends records of a node to `packed`, for a page whose prefix has `prefix_len` bytes.
pub(super) fn pack(node: Node<'_>, range: Range<usize>, prefix_len: usize, packed: &mut Vec<u8>) {
    let prefix = node.prefix();
    let (kept, dropped) = (prefix.get(prefix_len..).unwrap_or(&[]), prefix_len.saturating_sub(prefix.len()));
    packed.reserve(node.rebuilt_bytes(range.clone(), prefix_len));
    let mut suffix = Vec::new();
    for slot in range {
        suffix.clear();
        suffix.extend_from_slice(kept);
        let value = node.append_record(slot, &mut suffix).unwrap_or(&[]);
        pack_record(packed, suffix.get(dropped..).unwrap_or(&[]), value);
    }
}

/// The new contents of a page.
pub(super) struct NodeContents<'a> {
    pub(super) level: u8,
    pub(super) bounds: &'a NodeBounds,
    pub(super) packed: &'a [u8],
    pub(super) max_trx_id: u64,
}

/// The structure changes of a tree: its search, its space for new pages, and the lock of running changes.
pub(super) struct TreeStructure {
    search: TreeSearch,
    space: Arc<Space>,
    segment: SegmentId,
    /// Shared by threads that change the structure, for the latched part of a change; held by a thread that walks the
    /// whole tree. A thread that only reads or changes rows uses the fields next to it.
    changes: CachePadded<RwLock<()>>,
    free_classes: FreeClasses,
    limits: TreeLimits,
}

/// A page that could not be taken; stale if other threads have taken what was reserved.
fn missing_page(error: Error) -> Missing {
    match error {
        Error::Usage(_) => Missing::Stale,
        error => Missing::Failed(error),
    }
}

impl TreeStructure {
    /// The structure of the tree whose root is `root`; its leaves' free classes are not kept.
    pub(super) fn new(space: Arc<Space>, id: IndexId, segment: SegmentId, root: PageNo) -> TreeStructure {
        let search = TreeSearch::new(id, root, hint::new_serial(space.count_tree()));
        let (free_classes, limits) = (FreeClasses::unkept(space.clone()), TreeLimits::usual(space.page_bytes()));
        TreeStructure { search, space, segment, changes: CachePadded::default(), free_classes, limits }
    }

    /// With the free classes of its leaves kept.
    pub(super) fn with_free_classes(self) -> TreeStructure {
        TreeStructure { free_classes: self.free_classes.kept(), ..self }
    }

    /// With keys of up to this many bytes.
    pub(super) fn with_max_key_bytes(self, max_key_bytes: usize) -> TreeStructure {
        TreeStructure { limits: TreeLimits::of(self.space.page_bytes(), max_key_bytes), ..self }
    }

    /// The tree, to be read.
    #[inline]
    pub(super) fn search(&self) -> &TreeSearch {
        &self.search
    }

    #[inline]
    pub(super) fn id(&self) -> IndexId {
        self.search.id()
    }

    #[inline]
    pub(super) fn root(&self) -> PageNo {
        self.search.root()
    }

    pub(super) fn segment(&self) -> SegmentId {
        self.segment
    }

    #[inline]
    pub(super) fn limits(&self) -> TreeLimits {
        self.limits
    }

    #[inline]
    pub(super) fn free_classes(&self) -> &FreeClasses {
        &self.free_classes
    }

    /// Starts the mini-transaction of a structure change that allocates up to `frames` pages.
    pub(super) fn mtr<'c>(&self, ctx: &'c Context, frames: usize) -> Result<Mtr<'c>> {
        if frames > 0 {
            self.space.prepare(ctx)?;
        }
        ctx.mtr_with(MTR_REDO_BYTES, frames)
    }

    /// Takes a page for the tree; stale if other threads have taken what was reserved.
    pub(super) fn allocate(&self, mtr: &mut Mtr<'_>, near: Option<PageNo>) -> StepResult<PageNo> {
        self.space.allocate(mtr, self.segment, near).map_err(missing_page)
    }

    /// Takes the lowest free page below extent `end` that the tree can have, if there is one; stale as
    /// [`TreeStructure::allocate`].
    pub(super) fn allocate_below(&self, mtr: &mut Mtr<'_>, end: u32) -> StepResult<Option<PageNo>> {
        self.space.allocate_below(mtr, self.segment, end).map_err(missing_page)
    }

    /// Keeps the extent map of a page in the pool for `mtr`, which has changed nothing yet: the page can be freed then.
    pub(super) fn keep_map(&self, mtr: &mut Mtr<'_>, page: PageNo) -> StepResult<()> {
        self.space.try_keep_map(mtr, page).map_err(Missing::Absent)
    }

    /// As [`TreeStructure::keep_map`], and reads the map.
    ///
    /// # Errors
    /// Those of [`Space::keep_map`].
    pub(super) fn read_and_keep_map(&self, mtr: &mut Mtr<'_>, page: PageNo) -> Result<()> {
        self.space.keep_map(mtr, page)
    }

    /// The pages of its segment.
    pub(super) fn pages(&self) -> Vec<PageNo> {
        self.space.pages_of(self.segment)
    }

    /// Waits until no structure change runs, and admits none meanwhile (rule 6).
    pub(super) fn exclude_changes(&self) -> RwLockWriteGuard<'_, ()> {
        self.changes.write()
    }

    /// Starts a step that allocates up to `frames` pages, admitted among structure changes.
    pub(super) fn begin_step<'c>(&self, ctx: &'c Context, frames: usize) -> Result<(Mtr<'c>, RwLockReadGuard<'_, ()>)> {
        loop {
            let mtr = self.mtr(ctx, frames)?;
            if let Some(admitted) = self.changes.try_read() {
                return Ok((mtr, admitted));
            }
            drop(mtr);
            drop(self.changes.read());
        }
    }

    /// X-latches the root, which must be at `level`.
    pub(super) fn latch_root(&self, mtr: &mut Mtr<'_>, level: u8) -> StepResult<PageHandle> {
        let latched = mtr.try_fix_x(self.root()).ok_or(Missing::Absent(self.root()))?;
        if mtr.page(latched).u64_at(TYPE) != self.identity(level) {
            return Err(Missing::Stale);
        }
        if !node::is_unbounded(mtr.page(latched)) {
            return Err(Error::corrupt_page(self.root(), bounded_root(self.root())).into());
        }
        Ok(latched)
    }

    /// X-latches the inner page of `level` that covers `key`; a descent has led to `page`.
    pub(super) fn latch_parent(
        &self,
        mtr: &mut Mtr<'_>,
        page: PageNo,
        level: u8,
        key: &[u8],
    ) -> StepResult<PageHandle> {
        // Missing, it has just left the pool; the next descent reads it in.
        let latched = mtr.try_fix_x(page).ok_or(Missing::Stale)?;
        let found = mtr.page(latched);
        let is_sought = found.u64_at(TYPE) == self.identity(level) && node::covers(found, key);
        if is_sought { Ok(latched) } else { Err(Missing::Stale) }
    }

    /// X-latches the child of a latched page, which is at `level`, and verifies that it is what its parent says.
    pub(super) fn latch_child(
        &self,
        mtr: &mut Mtr<'_>,
        parent: PageHandle,
        slot: usize,
        level: u8,
    ) -> StepResult<PageHandle> {
        let child = node::child_at(mtr.page(parent), slot);
        match mtr.context().pool.peek_u64(child, TYPE) {
            None => return Err(Missing::Absent(child)),
            Some(found) if found != self.identity(level) => {
                let (parent, index) = (mtr.page_no(parent), self.id().0);
                let reason =
                    format!("page {parent} refers to it, but it is not a page of level {level} of index {index}");
                return Err(Error::corrupt_page(child, reason).into());
            }
            Some(_) => {}
        }
        let latched = mtr.try_fix_x(child).ok_or(Missing::Absent(child))?;
        self.expect_node(mtr.page(latched), child, level)?;
        if !node::fences_child(mtr.page(parent), slot, mtr.page(latched)) {
            return Err(Error::corrupt_page(child, "its fences differ from the separators in its parent").into());
        }
        Ok(latched)
    }

    /// The identity in the header of a node of this tree.
    pub(super) fn identity(&self, level: u8) -> u64 {
        let page_type = if level == 0 { PageType::Leaf } else { PageType::Inner };
        identity(page_type, level, self.id().0)
    }

    /// Verifies that a page is a sound node of this tree.
    pub(super) fn verify_node(&self, page: &[u8], page_no: PageNo, level: u8) -> Result<()> {
        node::check(page, page_no)?;
        self.expect_node(page, page_no, level)
    }

    /// Verifies that a sound page is the node of this tree that it is expected to be.
    pub(super) fn expect_node(&self, page: &[u8], page_no: PageNo, level: u8) -> Result<()> {
        if page.u64_at(TYPE) != self.identity(level) {
            let page_type = if level == 0 { PageType::Leaf } else { PageType::Inner };
            let (found, owner, expected) = (header::level(page), header::owner(page), self.id().0);
            let kind = page.u8_at(header::TYPE);
            let reason = format!(
                "type {kind}, level {found}, index {owner}; expected {page_type:?}, level {level}, index {expected}"
            );
            return Err(Error::corrupt_page(page_no, reason));
        }
        Ok(())
    }

    /// Formats a page and writes its records.
    pub(super) fn write_node(&self, mtr: &mut Mtr<'_>, latched: PageHandle, contents: &NodeContents<'_>) {
        let page_type = if contents.level == 0 { PageType::Leaf } else { PageType::Inner };
        let has_child = contents.bounds.upper_child != PageNo(0);
        debug_assert_eq!(has_child, contents.level > 0, "a node of level {} and its last child", contents.level);
        mtr.apply(latched, &PageOp::Format { page_type, level: contents.level, owner: self.id().0 });
        if contents.max_trx_id != 0 {
            let bytes = contents.max_trx_id.to_le_bytes();
            mtr.apply(latched, &PageOp::Write { offset: MAX_TRX_ID_OFFSET as u16, bytes: &bytes });
        }
        mtr.apply(latched, &contents.bounds.node_format());
        if !contents.packed.is_empty() {
            mtr.apply(latched, &PageOp::NodeAppend { packed: contents.packed });
        }
        self.check_node(mtr, latched);
        self.free_classes.note(mtr, latched);
    }

    /// Rule 5: a page that a structure change leaves is a valid node of this tree.
    pub(super) fn check_node(&self, mtr: &Mtr<'_>, latched: PageHandle) {
        if cfg!(debug_assertions) {
            let (page, page_no) = (mtr.page(latched), mtr.page_no(latched));
            let checked = self.verify_node(page, page_no, header::level(page));
            debug_assert!(checked.is_ok(), "a structure change leaves page {page_no} damaged: {checked:?}");
        }
    }

    /// Rule 1: the fences of a child are the separators in its parent, when both are as a structure change leaves them.
    pub(super) fn check_child(&self, mtr: &Mtr<'_>, parent: PageHandle, slot: usize, child: PageHandle) {
        debug_assert_eq!(node::child_at(mtr.page(parent), slot), mtr.page_no(child), "child {slot} of its parent");
        let is_fenced = node::fences_child(mtr.page(parent), slot, mtr.page(child));
        debug_assert!(is_fenced, "the fences of page {} are not those in its parent", mtr.page_no(child));
    }

    /// Frees a page. It is formatted as free first, so that a descent that comes late recognizes it as freed.
    pub(super) fn free_node(&self, mtr: &mut Mtr<'_>, latched: PageHandle) {
        debug_assert_ne!(mtr.page_no(latched), self.root(), "rule 5 of the tree: the root is freed");
        mtr.apply(latched, &PageOp::Format { page_type: PageType::Free, level: 0, owner: 0 });
        let page = mtr.page_no(latched);
        self.space.free(mtr, page);
    }
}

#[cfg(test)]
#[path = "structure_test.rs"]
mod tests;
