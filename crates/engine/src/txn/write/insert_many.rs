//! Insertion of many rows by one statement.
//!
//! Rules
//! 1. Consecutive rows for one leaf are inserted under one latch and in one mini-transaction, with their undo records,
//!    up to the first obstacle: an existing row with the key, a lock, a full page. The row with the obstacle is the
//!    first of the next mini-transaction, which resolves it like a single insertion.
//! 2. Each row has its own undo record, so readers, rollback and purge see the same as after single insertions.
//! 3. A leaf that consecutive rows have filled is reported to the pool ([`LeafFill`]).
//! 4. The entries of these rows follow after the mini-transaction. Meanwhile the rows have implicit locks.

use super::attempt::{Attempt, Blocked, check_gap_lockable, latch_undo, unblock};
use crate::btree::LeafMut;
use crate::error::Result;
use crate::mtr::{MTR_REDO_BYTES, Mtr};
use crate::row::format::ROW_HEADER_BYTES;
use crate::txn::row_op::RowOp;
use crate::txn::system::TxnSystem;
use crate::txn::table_trees::TableTrees;
use crate::txn::transaction::Txn;
use crate::types::PageNo;
use crate::undo;
use std::ops::Range;

/// Redo after which a mini-transaction takes no further row, and the most that a row adds to its key and value.
const REDO_BYTES: usize = MTR_REDO_BYTES / 2;
const ROW_REDO_BYTES: usize = 128;

/// Rows to be inserted, one after another: the key, and the stored value, whose header is still to be written.
#[derive(Debug, Default)]
pub(crate) struct NewRows {
    bytes: Vec<u8>,
    /// The offset of a row, and the range of its value.
    places: Vec<(usize, Range<usize>)>,
    filling: LeafFill,
}

/// The leaf that got the newest rows, and how many bytes of rows it got without another leaf getting one in between.
#[derive(Debug, Default)]
struct LeafFill {
    leaf: PageNo,
    bytes: usize,
}

impl LeafFill {
    /// Notes bytes of rows for a leaf. Returns the leaf before, if this is another one and that one got at least half a
    /// page of rows: rows in the order of their keys fill one leaf and continue to the next, others do not.
    fn add(&mut self, leaf: PageNo, bytes: usize, page_bytes: usize) -> Option<PageNo> {
        if leaf == self.leaf {
            self.bytes += bytes;
            return None;
        }
        let before = std::mem::replace(self, LeafFill { leaf, bytes });
        (before.bytes >= page_bytes / 2).then_some(before.leaf)
    }
}

impl NewRows {
    /// An empty list with capacity for this many bytes.
    pub(crate) fn with_room(bytes: usize) -> NewRows {
        NewRows { bytes: Vec::with_capacity(bytes), places: Vec::new(), filling: LeafFill::default() }
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, key: &[u8], payload: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let value = self.bytes.len();
        self.bytes.extend_from_slice(&[0; ROW_HEADER_BYTES]);
        self.bytes.extend_from_slice(payload);
        self.places.push((start, value..self.bytes.len()));
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Bytes they take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Forgets them, not their memory.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.places.clear();
    }

    /// Bytes of some of them.
    fn bytes_of(&self, rows: Range<usize>) -> usize {
        self.places[rows].iter().map(|(start, value)| value.end - start).sum()
    }

    fn key(&self, at: usize) -> &[u8] {
        let (start, value) = &self.places[at];
        &self.bytes[*start..value.start]
    }

    fn value(&self, at: usize) -> &[u8] {
        &self.bytes[self.places[at].1.clone()]
    }

    fn payload(&self, at: usize) -> &[u8] {
        &self.value(at)[ROW_HEADER_BYTES..]
    }

    fn set_header(&mut self, at: usize, header: [u8; ROW_HEADER_BYTES]) {
        self.bytes[self.places[at].1.start..][..ROW_HEADER_BYTES].copy_from_slice(&header);
    }
}

/// The insertion of rows into a table.
pub(crate) struct RowsOp<'a> {
    /// The system the transaction belongs to.
    pub system: &'a TxnSystem,
    /// The transaction.
    pub txn: &'a mut Txn,
    pub table: &'a dyn TableTrees,
    pub rows: &'a mut NewRows,
}

impl RowsOp<'_> {
    /// Inserts the rows, as one statement.
    ///
    /// # Errors
    /// As [`RowOp::insert`]; then none of them is inserted.
    pub(crate) fn insert(mut self) -> Result<()> {
        self.txn.check_active()?;
        self.txn.check_interrupt()?;
        self.system.delay_for_purge();
        self.txn.prepare_write(self.system)?;
        self.txn.time_for(self.system, self.table);
        let before = self.txn.position();
        let mut done = 0;
        while done < self.rows.len() {
            match self.insert_from(done) {
                Ok(inserted) => {
                    let left = self.rows.len() - done;
                    debug_assert!((1..=left).contains(&inserted), "rule 1: {inserted} of {left} rows are inserted");
                    done += inserted;
                }
                Err(error) => return Err(self.txn.undo_statement(self.system, before, error)),
            }
        }
        Ok(())
    }

    /// Inserts row `first` and those after it that can be inserted with it; returns how many.
    fn insert_from(&mut self, first: usize) -> Result<usize> {
        let system = self.system;
        let inserted = loop {
            let mut mtr = system.ctx.mtr()?;
            match self.try_insert(&mut mtr, first) {
                Ok(0) => {
                    mtr.abandon();
                    let RowsOp { txn, table, rows, .. } = self;
                    RowOp { system, txn, table: *table, key: rows.key(first) }.insert_row(rows.payload(first))?;
                    return Ok(1);
                }
                Ok(inserted) => {
                    mtr.commit();
                    break inserted;
                }
                Err(blocked) => {
                    mtr.abandon();
                    let at = (self.table.clustered(), self.rows.key(first));
                    unblock(system, self.txn, self.table, at, blocked)?;
                }
            }
        };
        system.stats.rows_inserted.add(inserted as u64);
        if self.table.index_count() > 0 {
            for at in first..first + inserted {
                let RowsOp { txn, table, rows, .. } = self;
                RowOp { system, txn, table: *table, key: rows.key(at) }.insert_entries(rows.payload(at))?;
            }
        }
        Ok(inserted)
    }

    /// Rule 3.
    fn note_filling(&mut self, leaf: PageNo, inserted: Range<usize>) {
        let pool = &self.system.ctx.pool;
        let bytes = self.rows.bytes_of(inserted);
        if let Some(filled) = self.rows.filling.add(leaf, bytes, pool.page_bytes()) {
            pool.note_bulk_loaded(filled);
        }
    }

    /// One mini-transaction; returns how many rows it inserts. 0: the first row cannot be inserted this way.
    fn try_insert(&mut self, mtr: &mut Mtr<'_>, first: usize) -> Attempt<usize> {
        let leaf = self.table.clustered().leaf_mut(mtr, self.rows.key(first))?;
        if !self.try_insert_row(mtr, leaf, first)? {
            return Ok(0);
        }
        let mut redo_bytes = 0;
        let mut next = first + 1;
        while next < self.rows.len() {
            let (key, value) = (self.rows.key(next), self.rows.value(next));
            redo_bytes += 2 * key.len() + value.len() + ROW_REDO_BYTES;
            let is_in_reach = redo_bytes < REDO_BYTES && leaf.covers(mtr, key);
            // What stops it stops it again when it is the first.
            if !is_in_reach || !matches!(self.try_insert_row(mtr, leaf, next), Ok(true)) {
                break;
            }
            next += 1;
        }
        self.note_filling(leaf.page_no(mtr), first..next);
        Ok(next - first)
    }

    /// Inserts a row into its leaf, or changes nothing. False: a row has the key, or the key or the row is too long.
    fn try_insert_row(&mut self, mtr: &mut Mtr<'_>, leaf: LeafMut, at: usize) -> Attempt<bool> {
        let RowsOp { system, txn, table, rows } = self;
        let (key, value) = (rows.key(at), rows.value(at));
        let limits = table.clustered().limits();
        if key.len() > limits.max_key_bytes || value.len() > limits.max_value_bytes(key.len()) {
            return Ok(false);
        }
        let Err(slot) = leaf.search(mtr, key) else { return Ok(false) };
        check_gap_lockable(system, txn, table.clustered().id(), key)?;
        txn.buffers.record.clear();
        undo::put_insert(&mut txn.buffers.record, table.id(), key);
        let undo_page = latch_undo(txn, mtr, txn.buffers.record.len())?;
        if !leaf.fits(mtr, key.len(), value.len()) {
            return Err(Blocked::MakeRoom(key.len() + value.len()));
        }
        let header = RowOp { system, txn, table: *table, key }.append_undo(mtr, undo_page, 0);
        rows.set_header(at, header.encode());
        leaf.insert(mtr, slot, rows.key(at), rows.value(at));
        Ok(true)
    }
}
