//! The operations of mode `disk`: a B+tree whose pages are read and written like those of any other tree.
//!
//! ```text
//! key   = leaf's page number u32, sequence number u32 (big-endian)
//! value = index u32, transaction number u64 (little-endian), one change as `LeafChange` encodes it
//! ```
//!
//! Rules
//! 1. The sequence numbers of a leaf's operations ascend in the order in which they must be applied. The first are
//!    merged first, so exactly the remaining ones wait after a crash.
//! 2. A walk that removes operations visits leaf after leaf of the tree; the next begins at the upper fence of the
//!    last. Operations only move within the part that is still to be visited, or to the leaf that is visited next.
//! 3. While `structure` is held the tree's pages stay as they are: merges leave sparse pages alone.

use crate::btree::{BTree, Leaf, LeafMut, Seek};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::mtr::{MTR_REDO_BYTES, Mtr};
use crate::page::node::LeafChange;
use crate::page::{Node, PageBytes};
use crate::space::{ROOT_CHANGE_BUFFER, SEGMENT_CHANGE_BUFFER, Space};
use crate::sync::RwLock;
use crate::types::{CHANGE_BUFFER_INDEX, IndexId, PageNo, TxnId};
use std::sync::{Arc, Weak};

const KEY_BYTES: usize = 8;
pub(super) const VALUE_HEAD_BYTES: usize = 12;

/// The tree of waiting operations.
pub(super) struct OperationTree {
    /// Weak: the pool, which asks for merges, belongs to the context.
    ctx: Weak<Context>,
    pub(super) space: Arc<Space>,
    pub(super) tree: BTree,
    /// Held by a check (rule 3).
    pub(super) structure: RwLock<()>,
}

/// The key of an operation.
pub(super) fn key_of(page: PageNo, sequence: u32) -> [u8; KEY_BYTES] {
    (u64::from(page.0) << 32 | u64::from(sequence)).to_be_bytes()
}

/// The value of an operation.
pub(super) fn value_of(index: IndexId, trx_id: TxnId, change: &LeafChange<'_>) -> Vec<u8> {
    let mut value = Vec::with_capacity(64);
    value.extend_from_slice(&index.0.to_le_bytes());
    value.extend_from_slice(&trx_id.0.to_le_bytes());
    change.encode(&mut value);
    value
}

/// A waiting operation, as read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operation<'a> {
    /// The leaf.
    pub page: PageNo,
    pub sequence: u32,
    pub index: IndexId,
    pub trx_id: TxnId,
    /// A list of one change.
    pub change: &'a [u8],
}

impl<'a> Operation<'a> {
    /// Decodes a record of the tree; `None` if it is not one.
    pub(crate) fn decode(key: &[u8], value: &'a [u8]) -> Option<Operation<'a>> {
        let key = u64::from_be_bytes(key.try_into().ok()?);
        let change = value.get(VALUE_HEAD_BYTES..)?;
        // The next operation has a greater number.
        (key as u32 != u32::MAX).then_some(())?;
        Some(Operation {
            page: PageNo((key >> 32) as u32),
            sequence: key as u32,
            index: IndexId(value.u32_at(0)),
            trx_id: TxnId(value.u64_at(4)),
            change,
        })
    }
}

fn damaged(page: PageNo) -> Error {
    Error::corrupt_page(page, "a record of the change buffer cannot be decoded")
}

/// The first slot and the number of the operations on a latched leaf of the tree that `is_sought` applies to and that
/// follow each other; `visit` sees them.
pub(super) fn run_of<'m>(
    mtr: &'m Mtr<'_>,
    at: LeafMut,
    first: usize,
    is_sought: impl Fn(&Operation<'_>) -> bool,
    mut visit: impl FnMut(&Operation<'m>),
) -> Result<usize> {
    let node = Node::new(mtr.page(at.latched));
    let mut key = Vec::with_capacity(KEY_BYTES);
    let mut count = 0;
    while first + count < node.count() {
        node.key_into(first + count, &mut key);
        let value = node.value(first + count);
        let operation = Operation::decode(&key, value).ok_or_else(|| damaged(at.page_no(mtr)))?;
        if !is_sought(&operation) {
            break;
        }
        visit(&operation);
        count += 1;
    }
    Ok(count)
}

/// Shows the operations of `page` from a slot of a latched leaf of the tree on.
pub(super) fn run_of_shared(
    leaf: &Leaf<'_>,
    first: usize,
    page: PageNo,
    mut visit: impl FnMut(&Operation<'_>),
) -> Result<()> {
    let mut key = Vec::with_capacity(KEY_BYTES);
    for slot in first..leaf.len() {
        leaf.key_into(slot, &mut key);
        let operation = Operation::decode(&key, leaf.value(slot)).ok_or_else(|| damaged(leaf.page_no()))?;
        if operation.page != page {
            break;
        }
        visit(&operation);
    }
    Ok(())
}

impl OperationTree {
    /// The tree of a database that has one.
    pub(super) fn open(ctx: &Arc<Context>, space: &Arc<Space>) -> Option<OperationTree> {
        let root = space.root(ROOT_CHANGE_BUFFER)?;
        let tree = BTree::open(space.clone(), CHANGE_BUFFER_INDEX, SEGMENT_CHANGE_BUFFER, root);
        Some(OperationTree { ctx: Arc::downgrade(ctx), space: space.clone(), tree, structure: RwLock::new(()) })
    }

    /// Gives a database that has no tree an empty one.
    pub(super) fn create(ctx: &Context, space: &Arc<Space>) -> Result<()> {
        space.with_room(ctx, || {
            let mut mtr = ctx.mtr_with(MTR_REDO_BYTES, 1)?;
            let tree = BTree::create(space.clone(), &mut mtr, CHANGE_BUFFER_INDEX, SEGMENT_CHANGE_BUFFER)?;
            space.set_root(&mut mtr, ROOT_CHANGE_BUFFER, tree.root());
            mtr.commit();
            Ok(())
        })
    }

    /// The context; an error once the database is closed.
    pub(super) fn context(&self) -> Result<Arc<Context>> {
        self.ctx.upgrade().ok_or(Error::Closed)
    }

    /// Removes the operations of the indexes that `is_gone` names; returns how many.
    pub(super) fn remove_of(&self, ctx: &Context, is_gone: impl Fn(IndexId) -> bool) -> Result<u64> {
        let (mut removed, mut from) = (0, Vec::new());
        loop {
            let mut mtr = ctx.mtr()?;
            let at = self.tree.leaf_mut(&mut mtr, &from)?;
            let (mut slot, before) = (0, at.used_bytes(&mtr));
            while slot < Node::new(mtr.page(at.latched)).count() {
                slot += run_of(&mtr, at, slot, |operation| !is_gone(operation.index), |_| {})?;
                let gone = run_of(&mtr, at, slot, |operation| is_gone(operation.index), |_| {})?;
                remove(&mut mtr, at, slot, gone);
                removed += gone as u64;
            }
            let (is_sparse, upper) = (at.underfull(&mtr, before), at.upper(&mtr).map(<[u8]>::to_vec));
            mtr.commit();
            if is_sparse {
                self.tidy(ctx, &from)?;
            }
            let Some(upper) = upper else { return Ok(removed) };
            from = upper;
        }
    }

    /// Frees what sparse leaves of the tree leave free.
    pub(super) fn compact(&self, ctx: &Context) -> Result<()> {
        let upper_at = |key: &[u8]| -> Result<Option<Vec<u8>>> {
            Ok(self.tree.leaf(ctx, Seek::Covers(key))?.upper().map(<[u8]>::to_vec))
        };
        let mut from = Vec::new();
        while let Some(upper) = upper_at(&from)? {
            self.tidy(ctx, &from)?;
            // A leaf that has taken its neighbor's operations may take those of the next leaf, too.
            if upper_at(&from)?.is_none_or(|now| now == upper) {
                from = upper;
            }
        }
        self.tidy(ctx, &from)
    }

    /// Merges sparse pages around `key` after operations were removed. A damaged page there is not merged.
    pub(super) fn tidy(&self, ctx: &Context, key: &[u8]) -> Result<()> {
        let Some(_structure_may_change) = self.structure.try_read() else { return Ok(()) };
        self.tree.tidy(ctx, key).or_else(|error| if error.is_damage() { Ok(()) } else { Err(error) })
    }
}

/// Removes some operations that follow each other.
pub(super) fn remove(mtr: &mut Mtr<'_>, at: LeafMut, first: usize, count: usize) {
    debug_assert!(first + count <= Node::new(mtr.page(at.latched)).count(), "operations from {first}, {count}");
    (first..first + count).rev().for_each(|slot| at.remove(mtr, slot));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_what_was_encoded_and_keys_sort_by_leaf_and_sequence() {
        let change = LeafChange::Put { key: b"key", value: b"value" };
        let value = value_of(IndexId(7), TxnId(99), &change);
        let operation = Operation::decode(&key_of(PageNo(258), 3), &value).unwrap();
        assert_eq!((operation.page, operation.sequence), (PageNo(258), 3));
        assert_eq!((operation.index, operation.trx_id), (IndexId(7), TxnId(99)));
        let changes: Vec<_> = crate::page::node::changes(operation.change).collect();
        assert_eq!(changes, [Ok(change)]);
        assert_eq!(Operation::decode(&[0; 7], &value), None);
        assert_eq!(Operation::decode(&[0; 8], &value[..11]), None);
        assert_eq!(Operation::decode(&key_of(PageNo(258), u32::MAX), &value), None);
        assert!(key_of(PageNo(1), u32::MAX) < key_of(PageNo(2), 0));
        assert!(key_of(PageNo(2), 255) < key_of(PageNo(2), 256));
    }
}
