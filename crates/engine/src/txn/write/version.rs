//! A new version of a row: its stored value and its undo record.

use crate::btree::LeafMut;
use crate::error::{Error, Result};
use crate::mtr::{Mtr, PageHandle};
use crate::row::format::{OVERFLOW, OverflowRef, ROW_HEADER_BYTES, RowHeader};
use crate::sync::atomic::Ordering::Relaxed;
use crate::txn::overflow::{self, MAX_ROW_BYTES};
use crate::txn::overflow_columns::{ColumnRef, OverflowRow, REST, dropped_chains, put_refs, refs_bytes};
use crate::txn::row_op::RowOp;
use crate::types::TxnId;

/// Header bytes that every change rewrites: flags to roll pointer.
pub(super) const REWRITTEN_BYTES: usize = 14;

/// A record in a leaf that a mini-transaction has latched exclusively.
#[derive(Clone, Copy)]
pub(super) struct RecordPos {
    pub(super) leaf: LeafMut,
    pub(super) slot: usize,
}

/// Replaces `chains` with the overflow chains of a version that the next version, if any, does not have.
pub(super) fn name_chains(
    old: &RowHeader,
    old_payload: &[u8],
    new: Option<&OverflowRow<'_>>,
    chains: &mut Vec<OverflowRef>,
) -> Result<()> {
    chains.clear();
    if old.is_overflow() {
        dropped_chains(&OverflowRow::decode(old_payload)?, new, chains);
    }
    Ok(())
}

impl RowOp<'_> {
    /// Longest payload that stays in its leaf.
    pub(super) fn max_inline_bytes(&self) -> usize {
        self.table.clustered().limits().max_value_bytes(self.key.len()) - ROW_HEADER_BYTES
    }

    /// Replaces `buffers.value` with a stored value whose header is still to be written, writing overflow pages if need
    /// be. The row lacks the columns in `kept`, which are on such pages and stay there. Returns the row's flags.
    pub(super) fn store_row(&mut self, row: &[u8], kept: &[ColumnRef]) -> Result<u8> {
        let bytes = row.len() + kept.iter().map(|column| column.chain.total_bytes as usize).sum::<usize>();
        if bytes > MAX_ROW_BYTES {
            return Err(Error::RowTooLarge { bytes, limit_bytes: MAX_ROW_BYTES });
        }
        let inline = kept.is_empty() && row.len() <= self.max_inline_bytes();
        let moved = if inline { None } else { Some(self.move_columns(row, kept)?) };
        let value = &mut self.txn.buffers.value;
        value.clear();
        value.extend_from_slice(&[0; ROW_HEADER_BYTES]);
        value.extend_from_slice(moved.as_deref().unwrap_or(row));
        let (bytes, limit_bytes) = (value.len() - ROW_HEADER_BYTES, self.max_inline_bytes());
        debug_assert!(bytes <= limit_bytes, "a row of {bytes} bytes for a leaf, which takes {limit_bytes}");
        Ok(if inline { 0 } else { OVERFLOW })
    }

    /// The payload of a row that is too long for its leaf, or keeps columns on overflow pages; writes chains.
    fn move_columns(&mut self, row: &[u8], kept: &[ColumnRef]) -> Result<Vec<u8>> {
        let RowOp { system, table, .. } = *self;
        let room = self.max_inline_bytes();
        let numbers: Vec<u16> = kept.iter().map(|column| column.number).collect();
        let moved = table.overflow_columns(row, &numbers, room);
        debug_assert!(!moved.iter().any(|number| numbers.contains(number)), "rule 1: a column gets a second chain");
        let mut refs = kept.to_vec();
        for &number in &moved {
            let bytes = table.column_bytes(row, number);
            refs.push(ColumnRef { number, chain: overflow::write(system, self.txn, table, bytes)? });
        }
        refs.sort_unstable_by_key(|column| column.number);
        let mut cut = |number: u16, bytes: &[u8], out: &mut Vec<u8>| {
            if !moved.contains(&number) {
                out.extend_from_slice(bytes);
            }
        };
        let mut payload = Vec::new();
        match moved.is_empty() {
            true => payload.extend_from_slice(row),
            false => table.rebuild_columns(row, &mut cut, &mut payload)?,
        }
        if payload.len() + refs_bytes(refs.len()) > room {
            let chain = overflow::write(system, self.txn, table, &payload)?;
            refs.push(ColumnRef { number: REST, chain });
            payload.clear();
        }
        debug_assert!(!refs.is_empty(), "a row of {} bytes is moved to overflow pages, and is not", row.len());
        put_refs(&refs, &mut payload);
        if payload.len() > room {
            return Err(Error::Corrupt(format!("a row with {} columns on overflow pages does not fit", refs.len())));
        }
        Ok(payload)
    }

    /// Appends the undo record in `buffers.record`; returns the header of the version it leads back from.
    pub(super) fn append_undo(&mut self, mtr: &mut Mtr<'_>, undo_page: PageHandle, flags: u8) -> RowHeader {
        let txn = &mut *self.txn;
        let undo = txn.undo.as_mut().expect("`latch_undo` found the undo log");
        debug_assert_ne!(txn.id, TxnId(0), "a version without a transaction");
        let roll_ptr = undo.append(mtr, undo_page, txn.id, &txn.buffers.record);
        txn.holder.weight.store(undo.records, Relaxed);
        RowHeader { flags, trx_id: txn.id, roll_ptr }
    }
}
