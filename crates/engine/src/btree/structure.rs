//! What splits and merges have in common: latching the pages of a change, verifying them, moving records.
//!
//! Rules
//! 1. The structure mutex is held; inner pages cannot change under us, leaves can until they are latched.
//! 2. Every page of a structure change is known to be sound (the pool checked it when it was read, operations keep it so),
//!    so that an operation that does not fit is never recorded. That it is the expected page is checked here.
//! 3. On a missing page the mini-transaction, which has changed nothing yet, releases everything, reads it, and
//!    latches again.

use super::BTree;
use super::search::Restarts;
use crate::error::{Error, Result};
use crate::mtr::{Context, Latched, MTR_REDO_BYTES, Mtr};
use crate::page::header::{self, MAX_TRX_ID_OFFSET};
use crate::page::op::pack_record;
use crate::page::{Node, PageBytes, PageOp, PageType, node};
use crate::types::PageNo;
use std::ops::Range;

/// Fences and right-most child of a node, copied out.
#[derive(Clone)]
pub(super) struct Bounds {
    pub(super) lower: Option<Vec<u8>>,
    pub(super) upper: Option<Vec<u8>>,
    pub(super) upper_child: PageNo,
}

impl Bounds {
    /// No fences.
    pub(super) fn infinite(upper_child: PageNo) -> Bounds {
        Bounds { lower: None, upper: None, upper_child }
    }

    /// Those of a node.
    pub(super) fn of(node: Node<'_>) -> Bounds {
        let upper_child = if node.is_leaf() { PageNo(0) } else { node.child(node.count()) };
        Bounds { lower: node.lower().map(<[u8]>::to_vec), upper: node.upper().map(<[u8]>::to_vec), upper_child }
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
    let mut key = Vec::new();
    for slot in range {
        node.key_into(slot, &mut key);
        pack_record(packed, key.get(prefix_len..).unwrap_or(&[]), node.value(slot));
    }
}

/// What a page is to become.
pub(super) struct Contents<'a> {
    pub(super) level: u8,
    pub(super) bounds: &'a Bounds,
    pub(super) packed: &'a [u8],
    pub(super) max_trx_id: u64,
}

impl BTree {
    /// Starts the mini-transaction of a structure change that allocates up to `frames` pages.
    pub(super) fn structure_mtr<'c>(&self, ctx: &'c Context, frames: usize) -> Result<Mtr<'c>> {
        if frames > 0 {
            self.space.prepare(ctx)?;
        }
        ctx.mtr_with(MTR_REDO_BYTES, frames)
    }

    /// X-latches pages in the order given, reading those that are missing, and verifies them as nodes of this tree at
    /// the levels given. `mtr` has changed nothing yet and holds nothing.
    pub(super) fn latch_nodes<const N: usize>(
        &self,
        mtr: &mut Mtr<'_>,
        pages: [(PageNo, u8); N],
    ) -> Result<[Latched; N]> {
        let mut restarts = Restarts::new(mtr.context());
        'again: loop {
            let mut latched = [None; N];
            for (place, (page, _)) in latched.iter_mut().zip(pages) {
                *place = mtr.try_fix_x(page);
                if place.is_none() {
                    mtr.restart();
                    mtr.context().pool.load(page)?;
                    restarts.again()?;
                    continue 'again;
                }
            }
            let latched = latched.map(|latched| latched.expect("every page was latched"));
            for (latched, (page, level)) in latched.iter().zip(pages) {
                self.expect_node(mtr.page(*latched), page, level)?;
            }
            return Ok(latched);
        }
    }

    /// Verifies that a page is a sound node of this tree.
    pub(super) fn verify_node(&self, page: &[u8], page_no: PageNo, level: u8) -> Result<()> {
        node::check(page, page_no)?;
        self.expect_node(page, page_no, level)
    }

    /// Verifies that a sound page is the node of this tree that it is expected to be.
    pub(super) fn expect_node(&self, page: &[u8], page_no: PageNo, level: u8) -> Result<()> {
        let page_type = if level == 0 { PageType::Leaf } else { PageType::Inner };
        if page.u64_at(header::TYPE) != header::identity(page_type, level, self.id.0) {
            let (found, owner, expected) = (header::level(page), header::owner(page), self.id.0);
            let kind = page.u8_at(header::TYPE);
            let reason = format!(
                "type {kind} level {found} of index {owner} where {page_type:?} level {level} of index {expected} belongs"
            );
            return Err(Error::corrupt_page(page_no, reason));
        }
        Ok(())
    }

    /// Writes a page anew.
    pub(super) fn write_node(&self, mtr: &mut Mtr<'_>, latched: Latched, contents: &Contents<'_>) {
        let page_type = if contents.level == 0 { PageType::Leaf } else { PageType::Inner };
        mtr.apply(latched, &PageOp::Format { page_type, level: contents.level, owner: self.id.0 });
        if contents.max_trx_id != 0 {
            let bytes = contents.max_trx_id.to_le_bytes();
            mtr.apply(latched, &PageOp::Write { offset: MAX_TRX_ID_OFFSET as u16, bytes: &bytes });
        }
        mtr.apply(latched, &contents.bounds.node_format());
        if !contents.packed.is_empty() {
            mtr.apply(latched, &PageOp::NodeAppend { packed: contents.packed });
        }
    }

    /// Gives a page back. It is formatted as free first, so that a late descent knows it for dead.
    pub(super) fn free_node(&self, mtr: &mut Mtr<'_>, latched: Latched) {
        mtr.apply(latched, &PageOp::Format { page_type: PageType::Free, level: 0, owner: 0 });
        let page = mtr.page_no(latched);
        self.space.free(mtr, page);
    }

    /// Position of `child` in its parent on the way to `key`.
    pub(super) fn child_slot(&self, parent: &[u8], parent_no: PageNo, child: PageNo, key: &[u8]) -> Result<usize> {
        let slot = node::child_slot_covering(parent, key);
        if node::child_at(parent, slot) != child {
            return Err(Error::corrupt_page(parent_no, format!("it does not lead to page {child} where it did")));
        }
        Ok(slot)
    }
}
