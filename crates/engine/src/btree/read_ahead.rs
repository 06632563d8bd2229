//! Read-ahead of leaves: requests to the pool for leaves that will be needed soon.
//!
//! Rule: a request is a hint. Pages may change meanwhile, and errors are ignored: the descent that needs the leaf gets
//! them. This code reads no page and waits for none.

use super::found::{FoundLeaf, child_slot};
use super::search::TreeSearch;
use super::seek::Seek;
use crate::context::Context;
use crate::error::Error;
use crate::page::node;
use crate::pool::OptimisticPage;
use crate::types::PageNo;

/// Descents that are tried for one hint.
const TRIES: u32 = 3;
/// Most leaves that a scan requests ahead; a small pool has fewer ([`max_leaves_ahead`]).
const LEAVES_AHEAD: usize = 32;
const FRAMES_OF_A_LEAF_AHEAD: usize = 16;

/// Most leaves that are worth reading ahead in a pool of this many frames.
pub(crate) fn max_leaves_ahead(frames: usize) -> usize {
    LEAVES_AHEAD.min(frames / FRAMES_OF_A_LEAF_AHEAD)
}

impl TreeSearch {
    /// The leaf that covers `key`, to be read ahead, together with others, by
    /// [`Pool::request`](crate::pool::Pool::request).
    pub(super) fn leaf_ahead(&self, ctx: &Context, key: &[u8]) -> Option<PageNo> {
        self.hint_to(ctx, Seek::Covers(key)).map(|found| found.leaf)
    }

    /// Requests the leaves after that of `near` (`reverse`: before it) up to that of `far`, as far as they have the
    /// same parent, at most `max` counting the leaf of `near`. Returns their number.
    pub(super) fn request_leaves(
        &self,
        ctx: &Context,
        near: Seek<'_>,
        far: Seek<'_>,
        reverse: bool,
        max: usize,
    ) -> usize {
        let Some(FoundLeaf { parent: Some(parent), slot, .. }) = self.hint_to(ctx, near) else { return 0 };
        let last = node::count(&parent);
        let (near, far) = (slot.min(last), far_slot(&parent, far, reverse).min(last));
        let slots =
            if reverse { far.max((near + 1).saturating_sub(max))..near + 1 } else { near..(far + 1).min(near + max) };
        let mut leaves: Vec<PageNo> = slots.map(|slot| node::child_at(&parent, slot)).collect();
        if !parent.validate() {
            return 0;
        }
        if reverse {
            leaves.reverse();
        }
        // The first is needed at once.
        ctx.pool.request(leaves.get(1..).unwrap_or_default());
        leaves.len()
    }

    /// The leaf that a descent finds. None if an inner page is not resident; that page is requested instead.
    fn hint_to<'c>(&self, ctx: &'c Context, seek: Seek<'_>) -> Option<FoundLeaf<'c>> {
        let want = |page| {
            ctx.pool.request(&[page]);
            Err(Error::Usage(String::new()))
        };
        let tries = if ctx.pool.reads_ahead() { TRIES } else { 0 };
        for _ in 0..tries {
            if let Some(found) = self.descend(ctx, seek, |_| {}, want).ok()? {
                return Some(found);
            }
        }
        None
    }
}

/// The slot of a scan's last leaf in this parent; if that leaf has another parent, the last slot in the scan's
/// direction.
fn far_slot(parent: &OptimisticPage<'_>, far: Seek<'_>, reverse: bool) -> usize {
    match far {
        Seek::Covers(key) | Seek::Before(key) if !node::covers(parent, key) => {
            if reverse {
                0
            } else {
                usize::MAX
            }
        }
        far => child_slot(parent, far),
    }
}
