//! Scans that pass rows to a closure in their leaf, under its latch, without a copy.
//!
//! Rules
//! 1. During the closure its thread cannot call the engine ([`closed`]), because it holds a latch.
//! 2. Only scans of the clustered tree without locks work in place. A row is copied if its visible version is not the
//!    stored one, or if requested bytes are on overflow pages; then the scan continues in place. While all rows have to
//!    be copied, batches grow as in [`RowCursor::next`].
//! 3. Rows come in the same order, and are the same, as those of [`RowCursor::next`].

use super::scan::{RowCursor, visibility, wanted};
use super::scan_batch::{Fill, ReadMode, ScanPosition};
use crate::btree::Leaf;
use crate::error::Result;
use crate::row::format::{ROW_HEADER_BYTES, RowHeader};
use crate::txn::expiry::is_expired;
use crate::txn::overflow_columns::{OverflowRow, Wanted};
use crate::txn::row_closure::closed;
use crate::txn::system::TxnSystem;
use crate::txn::table_trees::TableTrees;
use crate::txn::transaction::Txn;
use std::ops::{ControlFlow, Range};

/// A row that is looked at.
pub(crate) struct RowInPlace<'r> {
    pub payload: &'r [u8],
    key: KeyInPlace<'r>,
}

enum KeyInPlace<'r> {
    Slot(&'r Leaf<'r>, usize),
    Copied(&'r [u8]),
}

impl RowInPlace<'_> {
    #[inline]
    pub(crate) fn append_key(&self, out: &mut Vec<u8>) {
        match self.key {
            KeyInPlace::Slot(leaf, slot) => leaf.append_key(slot, out),
            KeyInPlace::Copied(key) => out.extend_from_slice(key),
        }
    }
}

/// Looks at a row.
pub(crate) type RowVisitor<'l> = dyn FnMut(RowInPlace<'_>) -> ControlFlow<()> + 'l;

/// The result of the visit of a leaf's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// The closure said stop, or the limit is reached.
    Stopped,
    /// The next row has to be copied.
    MustCopy,
    /// All rows of the leaf were looked at.
    Exhausted,
}

impl RowCursor {
    /// Passes the next rows, at most those of one leaf, to `look`; returns false at the end, or when `look` stops the
    /// scan. `txn` is the transaction that opened the cursor.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub(crate) fn look(&mut self, system: &TxnSystem, txn: &mut Txn, look: &mut RowVisitor<'_>) -> Result<bool> {
        if self.is_in_place() {
            match self.look_in_place(system, txn, look)? {
                Ended::Stopped => return Ok(false),
                Ended::Exhausted => return Ok(true),
                Ended::MustCopy => {}
            }
        }
        let copied = |cursor: &RowCursor, look: &mut RowVisitor<'_>| {
            closed(|| look(RowInPlace { payload: cursor.payload(), key: KeyInPlace::Copied(cursor.key()) }))
        };
        Ok(self.next(system, txn)? && copied(self, look).is_continue())
    }

    /// Rule 2; nothing that was copied waits to be delivered.
    fn is_in_place(&self) -> bool {
        self.index.is_none() && !matches!(self.read_mode, ReadMode::Locked(_)) && self.batch.is_delivered()
    }

    fn look_in_place(&mut self, system: &TxnSystem, txn: &mut Txn, look: &mut RowVisitor<'_>) -> Result<Ended> {
        self.check(txn)?;
        txn.check_interrupt()?;
        self.batch.clear();
        if self.position.done || self.remaining == 0 {
            return Ok(Ended::Stopped);
        }
        self.expect_leaves(system);
        let (tree, visibility) = (self.table.clustered(), visibility(self.read_mode, self.view.as_ref(), txn));
        let (read_mode, limit) = (self.read_mode, self.remaining);
        let fill = Fill { system, txn, tree, clustered: true, read_mode, visibility, limit, keys_only: false };
        let of = (&*self.table, wanted(self.columns.as_deref(), None), self.now);
        let (rows, ended) = self.position.look(&fill, of, look).map_err(|error| txn.after_read_error(system, error))?;
        debug_assert!(rows <= limit, "{rows} rows are passed of {limit}");
        system.stats.rows_read.add(rows as u64);
        self.remaining -= rows;
        if ended != Ended::Stopped {
            self.read_ahead(system);
        }
        if rows > 0 {
            self.batch_limit = 1;
        }
        Ok(ended)
    }
}

impl ScanPosition {
    /// Hands the rows of one leaf to `look`, and says how many they were.
    fn look(
        &mut self,
        fill: &Fill<'_>,
        of: (&dyn TableTrees, Wanted<'_>, Option<i64>),
        look: &mut RowVisitor<'_>,
    ) -> Result<(usize, Ended)> {
        let (leaf, way, mut slots) = self.reach(fill)?;
        // The leaf may hold changes of a commit whose redo could not be made durable.
        fill.system.ctx.poison.check()?;
        self.leaf_records = leaf.len();
        let mut rows = 0;
        let ended = closed(|| {
            self.look_at(fill, of, &leaf, &mut slots, &mut |row| {
                rows += 1;
                if look(row).is_break() || rows == fill.limit {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            })
        })?;
        self.way = way;
        if slots.start >= slots.end {
            self.leave(&leaf);
        } else {
            self.stay(&leaf, slots);
        }
        Ok((rows, ended))
    }

    fn look_at(
        &self,
        fill: &Fill<'_>,
        (table, wanted, now): (&dyn TableTrees, Wanted<'_>, Option<i64>),
        leaf: &Leaf<'_>,
        slots: &mut Range<usize>,
        look: &mut RowVisitor<'_>,
    ) -> Result<Ended> {
        while slots.start < slots.end {
            let slot = self.next_of(slots);
            let value = leaf.value(slot);
            let header = RowHeader::decode(value)?;
            let (is_seen, is_deleted) = (fill.is_seen(&header), header.is_delete_marked());
            if !is_seen {
                return Ok(Ended::MustCopy);
            }
            let mut row = &value[ROW_HEADER_BYTES..];
            let is_deleted = is_deleted || is_expired(table, &header, row, now)?;
            if header.is_overflow() && !is_deleted {
                let stored = OverflowRow::decode(row)?;
                if !wanted.is_in_leaf(table, &stored) {
                    return Ok(Ended::MustCopy);
                }
                row = stored.row;
            }
            if !is_deleted && look(RowInPlace { payload: row, key: KeyInPlace::Slot(leaf, slot) }).is_break() {
                self.pass(slots);
                return Ok(Ended::Stopped);
            }
            self.pass(slots);
        }
        Ok(Ended::Exhausted)
    }
}
