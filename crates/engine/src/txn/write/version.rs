//! A new version of a row: its stored value and its undo record.

use crate::btree::{BTree, LeafMut};
use crate::error::{Error, Result};
use crate::mtr::{Mtr, PageHandle};
use crate::sync::atomic::Ordering::Relaxed;
use crate::txn::overflow;
use crate::txn::row_format::{OVERFLOW, ROW_HEADER_BYTES, RowHeader};
use crate::txn::row_op::RowOp;

/// Largest row, in bytes.
pub const MAX_ROW_BYTES: usize = 16 << 20;

/// Header bytes that every change rewrites: flags to roll pointer.
pub(super) const REWRITTEN_BYTES: usize = 14;

/// A record in a leaf that a mini-transaction has latched exclusively.
#[derive(Clone, Copy)]
pub(super) struct RecordPos {
    pub(super) leaf: LeafMut,
    pub(super) slot: usize,
}

impl RowOp<'_> {
    /// Longest payload that stays in its leaf.
    pub(super) fn max_inline_bytes(&self) -> usize {
        BTree::max_value_bytes(self.system.ctx.pool.page_bytes(), self.key.len()) - ROW_HEADER_BYTES
    }

    /// Replaces `buffers.value` with a stored value whose header is still to be written, writing overflow pages if need
    /// be. Returns the row's flags.
    pub(super) fn store_payload(&mut self, payload: &[u8]) -> Result<u8> {
        if payload.len() > MAX_ROW_BYTES {
            return Err(Error::RowTooLarge { bytes: payload.len(), limit_bytes: MAX_ROW_BYTES });
        }
        let inline = payload.len() <= self.max_inline_bytes();
        let value = &mut self.txn.buffers.value;
        value.clear();
        value.extend_from_slice(&[0; ROW_HEADER_BYTES]);
        if inline {
            value.extend_from_slice(payload);
            return Ok(0);
        }
        let reference = overflow::write(self.system, self.txn, self.table, payload)?;
        self.txn.buffers.value.extend_from_slice(&reference.encode());
        Ok(OVERFLOW)
    }

    /// Appends the undo record in `buffers.record`; returns the header of the version it leads back from.
    pub(super) fn append_undo(&mut self, mtr: &mut Mtr<'_>, undo_page: PageHandle, flags: u8) -> RowHeader {
        let txn = &mut *self.txn;
        let undo = txn.undo.as_mut().expect("`latch_undo` found the undo log");
        let roll_ptr = undo.append(mtr, undo_page, txn.id, &txn.buffers.record);
        txn.holder.weight.store(undo.records, Relaxed);
        RowHeader { flags, trx_id: txn.id, roll_ptr }
    }
}
