//! Merging the operations that wait for a leaf (mode `disk`).
//!
//! Rules
//! 1. A merge is one or more ordinary mini-transactions. Each latches a leaf of the tree, then the unmerged leaf;
//!    applies the operations found, in the order of their sequence numbers; and removes them. So at every point of the
//!    log an operation is either waiting or applied.
//! 2. The last mini-transaction, which reaches the end of the leaf's operations, sets the leaf's free class, and
//!    removes its mark and its entry before it releases the latches: then no operation of the leaf waits, and none is
//!    added, because the leaf is in the pool. The others do not change the free class, which includes the waiting
//!    operations.
//! 3. An operation of another index than the leaf's is dropped: the leaf was freed and is used again.
//! 4. A merge checks that all operations fit before it changes anything; an operation that does not fit is damage, and
//!    the leaf stays unmerged.

use super::buffer::Buffer;
use super::tree::{self, OperationTree, key_of, run_of};
use crate::btree::LeafMut;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::mtr::{Mtr, PageHandle};
use crate::page::{Node, PageOp, header, node};
use crate::types::{IndexId, PageNo};

/// The result of a mini-transaction of a merge.
enum Merged {
    All,
    /// There may be more operations from this key on.
    More(Vec<u8>),
    /// Nothing is done yet, because this extent map is not resident.
    Lacks(PageNo),
}

/// The operations of a leaf on one leaf of the tree.
#[derive(Default)]
struct Found {
    first: usize,
    count: usize,
    bytes: usize,
    /// Operations of the leaf's index, as one list, and their largest transaction number.
    changes: Vec<u8>,
    max_trx_id: u64,
    /// Operations of other indexes.
    foreign: u64,
    /// The key from which to continue.
    next: Option<Vec<u8>>,
}

impl Buffer {
    /// Merges the operations of an unmerged leaf; does nothing if it was merged or evicted meanwhile.
    pub(super) fn merge_operations(&self, page: PageNo) -> Result<()> {
        let Some(operations) = self.operations() else { return Ok(()) };
        let ctx = operations.context()?;
        let mut from = key_of(page, 0).to_vec();
        loop {
            match self.merge_some_operations(&ctx, operations, page, &from)? {
                Merged::All => return Ok(()),
                Merged::More(next) => from = next,
                Merged::Lacks(map) => ctx.pool.load(map)?,
            }
        }
    }

    /// Merges the operations on the leaf of the tree that covers `from`.
    fn merge_some_operations(
        &self,
        ctx: &Context,
        operations: &OperationTree,
        page: PageNo,
        from: &[u8],
    ) -> Result<Merged> {
        let mut mtr = ctx.mtr()?;
        let at = operations.tree.leaf_mut(&mut mtr, from)?;
        let Some(leaf) = mtr.try_fix_unmerged(page) else { return Ok(Merged::All) };
        let found = find(&mtr, at, page, IndexId(header::owner(mtr.page(leaf))))?;
        let free_bytes = room_after(mtr.page(leaf), page, &found)?;
        debug_assert!(found.next.as_deref().is_none_or(|next| from < next), "rule 1: a merge does not move on");
        if found.next.is_none()
            && let Err(map) = operations.space.note_free_bytes(&mut mtr, page, free_bytes)
        {
            return Ok(Merged::Lacks(map));
        }
        let before = at.used_bytes(&mtr);
        apply(&mut mtr, at, leaf, &found);
        let have = Node::new(mtr.page(leaf)).free_bytes();
        debug_assert_eq!(have, free_bytes, "rule 2: the free class of page {page} is of other bytes");
        self.note_merged(page, found.count, found.bytes, found.next.is_none());
        if found.next.is_none() {
            ctx.pool.mark_merged(mtr.frame(leaf));
        }
        let is_sparse = at.underfull(&mtr, before);
        mtr.commit();
        self.count_changes(&found.changes, found.next.is_none());
        ctx.stats.change_buffer_discarded_ops.add(found.foreign);
        if is_sparse {
            operations.tidy(ctx, from)?;
        }
        Ok(found.next.map_or(Merged::All, Merged::More))
    }
}

/// The operations of a leaf of index `owner` on a latched leaf of the tree.
fn find(mtr: &Mtr<'_>, at: LeafMut, page: PageNo, owner: IndexId) -> Result<Found> {
    let first = at.search(mtr, &key_of(page, 0)).unwrap_or_else(|slot| slot);
    let mut found = Found { first, ..Found::default() };
    let Found { changes, max_trx_id, foreign, bytes, .. } = &mut found;
    let count = run_of(
        mtr,
        at,
        first,
        |operation| operation.page == page,
        |operation| {
            *bytes += operation.change.len();
            if operation.index == owner {
                changes.extend_from_slice(operation.change);
                *max_trx_id = operation.trx_id.0.max(*max_trx_id);
            } else {
                *foreign += 1;
            }
        },
    )?;
    let is_at_end = first + count == Node::new(mtr.page(at.latched)).count();
    let may_have_more = |upper: &&[u8]| *upper <= &key_of(page, u32::MAX)[..];
    found.next = at.upper(mtr).filter(|_| is_at_end).filter(may_have_more).map(<[u8]>::to_vec);
    found.count = count;
    Ok(found)
}

/// Bytes that the leaf will have free with its operations applied.
fn room_after(bytes: &[u8], page: PageNo, found: &Found) -> Result<usize> {
    if found.changes.is_empty() {
        return Ok(Node::new(bytes).free_bytes());
    }
    let mut copy = bytes.to_vec();
    match node::apply_changes_in_place(&mut copy, &found.changes) {
        Ok(()) => Ok(Node::new(&copy).free_bytes()),
        Err(misfit) => {
            let reason = format!("it does not take the {} operations that wait for it: {misfit}", found.count);
            Err(Error::corrupt_page(page, reason))
        }
    }
}

fn apply(mtr: &mut Mtr<'_>, at: LeafMut, leaf: PageHandle, found: &Found) {
    let Found { max_trx_id, changes, .. } = found;
    if !changes.is_empty() {
        mtr.apply(leaf, &PageOp::LeafChanges { max_trx_id: *max_trx_id, canonical: false, changes });
    }
    tree::remove(mtr, at, found.first, found.count);
}
