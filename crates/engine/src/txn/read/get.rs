//! Reading one row: by the snapshot, the newest version with a lock, or the newest version as it is.

use super::versions::{StoredRow, Visibility, resolve};
use crate::btree::Seek;
use crate::error::Result;
use crate::lock::{LockMode, RowName};
use crate::row::format::{ROW_HEADER_BYTES, RowHeader};
use crate::txn::options::Isolation;
use crate::txn::overflow_columns::Wanted;
use crate::txn::row_op::RowOp;
use crate::txn::system::TxnSystem;
use crate::txn::table_trees::TableTrees;
use crate::txn::transaction::Txn;
use crate::txn::write::{Attempt, Blocked, check_lockable};

impl RowOp<'_> {
    /// Reads the row into `out` (replacing it), with the requested columns: as the transaction's level says, or the
    /// newest version with a lock. Returns whether the row exists.
    ///
    /// # Errors
    /// Lock waits, `WriteConflict`, I/O, corruption.
    #[inline]
    pub(crate) fn get(self, lock: LockMode, wanted: Wanted<'_>, out: &mut Vec<u8>) -> Result<bool> {
        let RowOp { system, txn, table, key } = self;
        txn.check_active()?;
        system.stats.rows_read.inc();
        let now = txn.time_for(system, table);
        let lock = txn.lock_of_read(lock);
        if lock != LockMode::None {
            txn.prepare_locking_read(system)?;
            let read = RowOp { system, txn, table, key }.get_locked(lock, wanted, out);
            return read.map_err(|error| txn.after_read_error(system, error));
        }
        let row = StoredRow { wanted, now, ..StoredRow::new(&system.ctx, table, key) };
        let walk = match txn.isolation {
            Isolation::RepeatableRead => {
                let own = txn.id;
                row.visible(Visibility { view: &txn.open_view(system).view, own }, out)
            }
            Isolation::ReadUncommitted => return row.uncommitted(out),
            _ => {
                let own = txn.id;
                row.visible(Visibility { view: &txn.open_read_view(system).view, own }, out)
            }
        };
        Ok(walk?.exists)
    }

    /// Reads the newest version into `out` (replacing it), locked for this transaction. False if there is none (then
    /// its absence is locked, where reads lock ranges), or if it is to be skipped.
    pub(super) fn get_locked(&mut self, mode: LockMode, wanted: Wanted<'_>, out: &mut Vec<u8>) -> Result<bool> {
        let header = loop {
            match self.try_lock(mode, out) {
                Ok(Some(header)) => break header,
                Ok(None) => return Ok(false),
                Err(Blocked::WaitRow { .. }) if self.txn.skips_locked() => return Ok(false),
                Err(blocked) => self.unblock(blocked)?,
            }
        };
        resolve(&self.system.ctx, self.table, wanted, &header, out)?;
        Ok(true)
    }

    fn try_lock(&self, mode: LockMode, out: &mut Vec<u8>) -> Attempt<Option<RowHeader>> {
        let leaf = self.table.clustered().leaf(&self.system.ctx, Seek::Covers(self.key))?;
        let Ok(slot) = leaf.search(self.key) else {
            self.lock_absence_read();
            return Ok(None);
        };
        let value = leaf.value(slot);
        let header = RowHeader::decode(value)?;
        lock_latched_row(self.system, self.txn, self.name(), &header, mode)?;
        if header.is_delete_marked() || self.is_expired(&header, &value[ROW_HEADER_BYTES..])? {
            self.lock_absence_read();
            return Ok(None);
        }
        out.clear();
        out.extend_from_slice(&value[ROW_HEADER_BYTES..]);
        Ok(Some(header))
    }

    /// Keeps others from inserting the row, where a read does so.
    fn lock_absence_read(&self) {
        if self.txn.reads_lock_ranges() {
            self.lock_absence();
        }
    }
}

impl TxnSystem {
    /// Releases the lock of the row that a locking read of this transaction has read last, if the transaction did not
    /// hold the row before and its reads lock no ranges; whether it did.
    pub(crate) fn unlock_row(&self, txn: &Txn, table: &dyn TableTrees, key: &[u8]) -> bool {
        let row = RowName { index: table.clustered().id(), key };
        !txn.reads_lock_ranges() && self.locks.unlock_row(&txn.holder, row)
    }
}

/// Locks a row whose leaf is latched; a delete-marked one only has to be free.
pub(super) fn lock_latched_row(
    system: &TxnSystem,
    txn: &Txn,
    row: RowName<'_>,
    header: &RowHeader,
    mode: LockMode,
) -> Attempt<()> {
    check_lockable(system, txn, row, header, mode)?;
    if txn.wrote(header) || header.is_delete_marked() || system.locks.try_lock_row(&txn.holder, row, mode) {
        return Ok(());
    }
    Err(Blocked::WaitRow { index: row.index, mode, implicit: None })
}
