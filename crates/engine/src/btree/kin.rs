//! Comparing a page that was read in with its parent.
//!
//! Rules
//! 1. The separators left and right of a child are its fences. So an older version of a page, whose checksum is right,
//!    hides no rows whose leaf it is not.
//! 2. A root has no fences. So, by rule 1, the leaf that a descent leads to covers the key that was sought.
//! 3. Both pages are validated after the comparison, and mini-transactions that change both hold both latches until
//!    they commit: what differs is damage.
//! 4. It is done once for a child and its parent: the pool remembers it (`pool/frames/kinship.rs`).

use super::BTree;
use super::search::{Found, Verdict};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::page::node;
use crate::pool::{FrameNo, OptimisticPage};
use crate::types::PageNo;

impl BTree {
    /// Judges a leaf that has not been compared with its parent yet.
    #[cold]
    pub(super) fn judge_unknown(&self, ctx: &Context, page: &[u8], frame: FrameNo, found: &Found<'_>) -> Verdict {
        let Some(parent) = &found.parent else { return Verdict::Stale };
        let (is_right, root_is_right) = (node::fences_child(parent, found.slot, page), self.covers_all(parent));
        let kinship = ctx.pool.kinship(parent, frame);
        match (parent.validate(), is_right, root_is_right) {
            (false, ..) => Verdict::Stale,
            (true, true, true) => {
                ctx.pool.note_child(frame, kinship);
                Verdict::Sought
            }
            (true, false, _) => Verdict::Corrupt(other_fences(parent.page_no())),
            (true, true, false) => Verdict::Corrupt(bounded_root(self.root)),
        }
    }

    /// Compares an inner page with its parent; false = start again.
    #[cold]
    pub(super) fn compare(
        &self,
        ctx: &Context,
        parent: &OptimisticPage<'_>,
        slot: usize,
        child: &OptimisticPage<'_>,
    ) -> Result<bool> {
        let (is_right, root_is_right) = (node::fences_child(parent, slot, child), self.covers_all(parent));
        let kinship = ctx.pool.kinship(parent, child.frame());
        if !child.validate() || !parent.validate() {
            return Ok(false);
        }
        if !is_right {
            return Err(Error::corrupt_page(child.page_no(), other_fences(parent.page_no())));
        }
        if !root_is_right {
            return Err(Error::corrupt_page(self.root, bounded_root(self.root)));
        }
        ctx.pool.note_child(child.frame(), kinship);
        Ok(true)
    }

    /// Whether a page, if it is the root, covers every key. Of other pages the comparisons above them say so.
    fn covers_all(&self, page: &OptimisticPage<'_>) -> bool {
        page.page_no() != self.root || node::is_unbounded(page)
    }
}

pub(super) fn bounded_root(root: PageNo) -> String {
    format!("its root, page {root}, has fences: no page covers the keys outside of them")
}

fn other_fences(parent: PageNo) -> String {
    format!(
        "its fences are not what its parent, page {parent}, says: one of the two pages is an older version of itself"
    )
}
