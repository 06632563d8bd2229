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
use crate::page::{PageBytes, node};
use crate::pool::{FrameNo, OptimisticPage};
use crate::types::PageNo;

impl BTree {
    /// Judges a leaf that has not been compared with its parent yet.
    #[cold]
    pub(super) fn judge_unknown(&self, ctx: &Context, page: &[u8], frame: FrameNo, found: &Found<'_>) -> Verdict {
        let Some(parent) = &found.parent else { return Verdict::Stale };
        let difference = self.difference(parent, found.slot, page);
        let kinship = ctx.pool.kinship(parent, frame);
        match (parent.validate(), difference) {
            (false, _) => Verdict::Stale,
            (true, None) => {
                ctx.pool.note_child(frame, kinship);
                Verdict::Sought
            }
            (true, Some(reason)) => Verdict::Corrupt(reason),
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
        let difference = self.difference(parent, slot, child);
        let kinship = ctx.pool.kinship(parent, child.frame());
        if !child.validate() || !parent.validate() {
            return Ok(false);
        }
        if let Some(reason) = difference {
            return Err(Error::corrupt_page(child.page_no(), reason));
        }
        ctx.pool.note_child(child.frame(), kinship);
        Ok(true)
    }

    /// What is wrong with a child and its parent, if anything is (rules 1 and 2).
    fn difference<C: PageBytes + ?Sized>(&self, parent: &OptimisticPage<'_>, slot: usize, child: &C) -> Option<String> {
        let page = parent.page_no();
        if !node::fences_child(parent, slot, child) {
            return Some(format!(
                "its fences are not what its parent, page {page}, says: one of the two pages is an older version of \
                 itself"
            ));
        }
        (page == self.root && !node::is_unbounded(parent)).then(|| bounded_root(self.root))
    }
}

pub(super) fn bounded_root(root: PageNo) -> String {
    format!("its root, page {root}, has fences: no page covers the keys outside of them")
}
