//! Rows that expire: for a transaction they do not exist from their moment on.
//!
//! Rules
//! 1. A transaction compares all moments with one time: that of its first call on a table whose rows expire. So no row
//!    expires during a transaction, at any level.
//! 2. A row is expired when that time is its moment or later. Reads, updates and deletions do not find it, and an
//!    insertion that meets it, by its key or by a unique index, deletes it first.
//! 3. Only transactions of users check the moment; rollback, purge and index builds treat expired rows like all rows.
//!
//! A row of a table without an expiry costs one branch.

use super::overflow_columns::OverflowRow;
use super::row_op::RowOp;
use super::system::TxnSystem;
use super::table_trees::TableTrees;
use super::transaction::{ExpiryTime, Txn};
use crate::error::Result;
use crate::row::format::RowHeader;

impl Txn {
    /// Expired rows do not exist for it from now on.
    pub(crate) fn hide_expired(&mut self) {
        debug_assert_eq!(self.expiry_time, ExpiryTime::NotChecked, "rule 1: a transaction takes its time again");
        self.expiry_time = ExpiryTime::NotTaken;
    }

    /// Rows are expired for it as for `other`.
    pub(crate) fn take_expiry_time_of(&mut self, other: &mut Txn, system: &TxnSystem) {
        let is_new = !matches!(self.expiry_time, ExpiryTime::At(_));
        debug_assert!(is_new, "rule 1: a transaction changes its time: {:?}", self.expiry_time);
        other.take_time(system);
        self.expiry_time = other.expiry_time;
    }

    /// Before rows of a table are read or changed: the time with which their moments are compared, if they have any.
    #[inline]
    pub(super) fn time_for(&mut self, system: &TxnSystem, table: &dyn TableTrees) -> Option<i64> {
        if !table.has_expiry() {
            return None;
        }
        self.take_time(system);
        self.time_of(table)
    }

    fn take_time(&mut self, system: &TxnSystem) {
        if self.expiry_time == ExpiryTime::NotTaken {
            self.expiry_time = ExpiryTime::At(system.ctx.unix_us() as i64);
        }
    }

    /// As [`time_for`](Self::time_for), after it.
    #[inline]
    pub(super) fn time_of(&self, table: &dyn TableTrees) -> Option<i64> {
        match self.expiry_time {
            ExpiryTime::At(now) if table.has_expiry() => Some(now),
            _ => None,
        }
    }
}

/// Whether a stored version of a row is expired at a time.
#[inline]
pub(super) fn is_expired(table: &dyn TableTrees, header: &RowHeader, payload: &[u8], now: Option<i64>) -> Result<bool> {
    let Some(now) = now else { return Ok(false) };
    let row = if header.is_overflow() { OverflowRow::decode(payload)?.row } else { payload };
    Ok(table.expiry(row).is_some_and(|moment| moment <= now))
}

impl RowOp<'_> {
    /// Whether the stored version of a row is expired for the transaction.
    #[inline]
    pub(super) fn is_expired(&self, header: &RowHeader, payload: &[u8]) -> Result<bool> {
        is_expired(self.table, header, payload, self.txn.time_of(self.table))
    }

    /// Deletes the row if it still is expired: an insertion needs its place.
    #[cold]
    pub(super) fn delete_expired(&mut self) -> Result<()> {
        // An update that moves entries continues with its old row.
        let old_row = std::mem::take(&mut self.txn.buffers.old_row);
        let deleted = self.delete_row_if(true);
        self.txn.buffers.old_row = old_row;
        deleted.map(drop)
    }
}
