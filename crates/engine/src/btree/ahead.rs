//! Leaves that will be needed soon: the pool is told which they are, and reads them ahead.
//!
//! Rule: what is found here is a hint. Pages may change meanwhile, and errors are left to the descent that needs the
//! leaf. Nothing is read or waited for here.

use super::search::Found;
use super::{BTree, Seek};
use crate::context::Context;
use crate::error::Error;
use crate::page::node;
use crate::types::PageNo;

/// Descents before a hint is given up.
const TRIES: u32 = 3;

impl BTree {
    /// Has the leaf that covers `key` read ahead.
    pub fn want_leaf(&self, ctx: &Context, key: &[u8]) {
        if let Some(found) = self.hint_to(ctx, Seek::Covers(key)) {
            ctx.pool.want(found.leaf);
        }
    }

    /// Has the leaf sought and those behind it (`reverse`: before it) read ahead, as far as they have the same parent,
    /// `most` together.
    pub fn want_leaves(&self, ctx: &Context, seek: Seek<'_>, reverse: bool, most: usize) {
        let Some(Found { parent: Some(parent), slot, .. }) = self.hint_to(ctx, seek) else { return };
        let last = node::count(&parent);
        let slot = slot.min(last);
        let slots = if reverse { (slot + 1).saturating_sub(most)..slot + 1 } else { slot..(slot + most).min(last + 1) };
        let mut leaves: Vec<PageNo> = slots.map(|slot| node::child_at(&parent, slot)).collect();
        if parent.validate() {
            if reverse {
                leaves.reverse();
            }
            leaves.into_iter().for_each(|leaf| ctx.pool.want(leaf));
        }
    }

    /// An inner page that is missing is read ahead as well, and then there is no hint.
    fn hint_to<'c>(&self, ctx: &'c Context, seek: Seek<'_>) -> Option<Found<'c>> {
        let want = |page| {
            ctx.pool.want(page);
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
