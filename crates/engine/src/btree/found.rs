//! Results of descents: a leaf and its position below its parent, or the damage of a page.

use super::seek::Seek;
use crate::context::Context;
use crate::error::Error;
use crate::page::header::{TYPE, identity};
use crate::page::{PageBytes, PageType, node};
use crate::pool::{FrameNo, OptimisticPage, PageVersion};
use crate::types::{IndexId, PageNo};

const REASON: &str = "changes of its index that waited in the change buffer cannot be read, so the index is damaged; \
                      rebuild it (highwater check --repair)";

/// Greatest height of a tree; a higher one is damage.
pub(super) const MAX_LEVEL: u8 = 32;

/// The leaf a descent arrived at, not latched yet.
pub(super) struct FoundLeaf<'c> {
    pub(super) leaf: PageNo,
    /// The page that named it; `None` when the root is the leaf.
    pub(super) parent: Option<OptimisticPage<'c>>,
    /// Its slot in the parent.
    pub(super) slot: usize,
}

impl FoundLeaf<'_> {
    /// Whether the parent still names this leaf.
    #[inline]
    pub(super) fn is_current(&self) -> bool {
        self.parent.is_none_or(|parent| parent.validate())
    }

    /// Whether the page in `frame`, latched, was compared with its parent; a root has none.
    #[inline]
    pub(super) fn is_known(&self, ctx: &Context, frame: FrameNo) -> bool {
        self.parent.as_ref().is_none_or(|parent| ctx.pool.is_known_child(parent, frame))
    }
}

/// The verdict of a descent on a page.
pub(super) enum PageVerdict {
    Sought,
    Stale,
    Corrupt(String),
}

/// The position of a leaf below its parent, from a descent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeafPosition {
    pub(super) parent: PageVersion,
    pub(super) slot: usize,
    pub(super) leaf: PageNo,
}

impl LeafPosition {
    /// The way to a leaf that has a parent.
    #[inline]
    pub(super) fn to(found: &FoundLeaf<'_>) -> Option<LeafPosition> {
        let parent = found.parent.as_ref()?;
        Some(LeafPosition {
            parent: parent.page_version(),
            slot: found.slot.min(node::count(parent)),
            leaf: found.leaf,
        })
    }
}

/// Whether a latched page is a leaf of this tree.
#[inline]
pub(super) fn is_leaf_of(page: &[u8], tree: IndexId) -> bool {
    page.u64_at(TYPE) == identity(PageType::Leaf, 0, tree.0)
}

/// The slot of the child for the key in an inner page, if the page's fences cover the key.
#[inline]
pub(super) fn child_slot(view: &OptimisticPage<'_>, seek: Seek<'_>) -> usize {
    match seek {
        Seek::Covers(key) => node::child_slot_covering(view, key),
        Seek::Before(key) => node::child_slot_before(view, key),
        Seek::First => 0,
        Seek::Last => usize::MAX,
    }
}

/// The error of a given-up tree, if the identity of its root says that it is one.
pub(super) fn error_of(root: PageNo, found: u64, index: IndexId) -> Option<Error> {
    (found == identity(PageType::Free, 0, index.0)).then(|| Error::corrupt_page(root, REASON))
}

/// The text of the damage of a root that has fences.
pub(super) fn bounded_root(root: PageNo) -> String {
    format!("its root, page {root}, has fences: no page covers the keys outside of them")
}
