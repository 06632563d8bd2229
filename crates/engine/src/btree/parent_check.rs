//! Detection of lost writes: a page that was read in is compared with its parent.
//!
//! Rules
//! 1. A child's fences equal the separators left and right of it in its parent. An older version of a page has a right
//!    checksum, but other fences if the page was split or merged since. Without the comparison a search in it would
//!    miss rows that are in another leaf.
//! 2. A root has no fences. So, by rule 1, the leaf at the end of a descent covers the key.
//! 3. Both pages are validated after the comparison, and mini-transactions that change both hold both latches until
//!    they commit. So a difference is damage.
//! 4. A child is compared once, and again after it or its parent was read in again: the pool remembers the comparison
//!    (`pool/frames/parent_check.rs`).

use super::found::{FoundLeaf, PageVerdict, bounded_root};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::page::{PageBytes, node};
use crate::pool::{FrameNo, OptimisticPage};
use crate::types::PageNo;

/// Judges a leaf that has not been compared with its parent yet.
#[cold]
pub(super) fn judge_unknown(
    root: PageNo,
    ctx: &Context,
    page: &[u8],
    frame: FrameNo,
    found: &FoundLeaf<'_>,
) -> PageVerdict {
    let Some(parent) = &found.parent else { return PageVerdict::Stale };
    let difference = difference(root, parent, found.slot, page);
    let parent_check = ctx.pool.parent_check(parent, frame);
    match (parent.validate(), difference) {
        (false, _) => PageVerdict::Stale,
        (true, None) => {
            ctx.pool.note_checked_child(frame, parent_check);
            PageVerdict::Sought
        }
        (true, Some(reason)) => PageVerdict::Corrupt(reason),
    }
}

/// Compares an inner page with its parent; false = start again.
#[cold]
pub(super) fn compare(
    root: PageNo,
    ctx: &Context,
    parent: &OptimisticPage<'_>,
    slot: usize,
    child: &OptimisticPage<'_>,
) -> Result<bool> {
    let difference = difference(root, parent, slot, child);
    let parent_check = ctx.pool.parent_check(parent, child.frame());
    if !child.validate() || !parent.validate() {
        return Ok(false);
    }
    if let Some(reason) = difference {
        return Err(Error::corrupt_page(child.page_no(), reason));
    }
    ctx.pool.note_checked_child(child.frame(), parent_check);
    Ok(true)
}

/// The violation of rule 1 or 2 by a child and its parent, as text.
fn difference<C: PageBytes + ?Sized>(
    root: PageNo,
    parent: &OptimisticPage<'_>,
    slot: usize,
    child: &C,
) -> Option<String> {
    let page = parent.page_no();
    if !node::fences_child(parent, slot, child) {
        return Some(format!(
            "its fences are not what its parent, page {page}, says: one of the two pages is an older version of \
             itself"
        ));
    }
    (page == root && !node::is_unbounded(parent)).then(|| bounded_root(root))
}
