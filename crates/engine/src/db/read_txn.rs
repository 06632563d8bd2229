//! Transactions that read one snapshot.

use super::scan::Scan;
use super::write_txn::WriteTxn;
use crate::error::Result;
use crate::table::{Row, RowRef, Table, ValueRef};

/// A transaction that reads one snapshot.
pub struct ReadTxn {
    /// A read-only one; of its calls only the snapshot reads are offered.
    txn: WriteTxn,
}

impl ReadTxn {
    pub(crate) fn new(txn: WriteTxn) -> ReadTxn {
        ReadTxn { txn }
    }

    /// The row of a primary key, as the snapshot has it.
    ///
    /// # Errors
    /// `BadValue` if the key does not fit, an I/O error.
    #[inline]
    pub fn get(&mut self, table: &Table, key: &[ValueRef<'_>]) -> Result<Option<Row>> {
        self.txn.get(table, key)
    }

    /// As [`get`](Self::get), but hands the row to `look` in place instead of copying it.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    #[inline]
    pub fn get_with<R>(
        &mut self,
        table: &Table,
        key: &[ValueRef<'_>],
        look: impl FnOnce(RowRef<'_>) -> R,
    ) -> Result<Option<R>> {
        self.txn.get_with(table, key, look)
    }

    /// A scan of a table, to be described further.
    pub fn scan<'v>(&mut self, table: &Table) -> Scan<'_, 'v> {
        self.txn.scan(table)
    }
}
