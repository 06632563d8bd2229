//! Deletion of a row: the row and its entries are delete-marked; purge removes them.

use super::attempt::{Attempt, latch_undo};
use super::version::{REWRITTEN_BYTES, name_chains};
use crate::error::Result;
use crate::mtr::Mtr;
use crate::row::diff::DiffRange;
use crate::row::format::{DELETE_MARKED, ROW_HEADER_BYTES, RowHeader};
use crate::txn::overflow_columns::Wanted;
use crate::txn::read::resolve;
use crate::txn::row_op::RowOp;
use crate::undo::{self, NewChange};

impl RowOp<'_> {
    pub(crate) fn delete_row(&mut self) -> Result<bool> {
        self.delete_row_if(false)
    }

    /// Deletes the row if it is expired, or if it is not.
    pub(crate) fn delete_row_if(&mut self, expired: bool) -> Result<bool> {
        let (system, table) = (self.system, self.table);
        let old = loop {
            let mut mtr = system.ctx.mtr()?;
            match self.try_delete(&mut mtr, expired) {
                Ok(Some(old)) => {
                    mtr.commit();
                    break old;
                }
                Ok(None) => return Ok(false),
                Err(blocked) => {
                    mtr.abandon();
                    self.unblock(blocked)?;
                }
            }
        };
        system.stats.rows_deleted.inc();
        if table.index_count() > 0 {
            resolve(&system.ctx, table, Wanted::ENTRIES, &old, &mut self.txn.buffers.old_row)?;
        }
        for i in 0..table.index_count() {
            let mut entry = std::mem::take(&mut self.txn.buffers.old_entry);
            entry.clear();
            let made = table.entry(i, self.key, &self.txn.buffers.old_row, &mut entry);
            let marked = made.and_then(|_| self.delete_mark_entry(i, &entry));
            self.txn.buffers.old_entry = entry;
            marked?;
        }
        Ok(true)
    }

    /// Delete-marks the row; leaves its payload in `old_row` if there are indexes.
    fn try_delete(&mut self, mtr: &mut Mtr<'_>, expired: bool) -> Attempt<Option<RowHeader>> {
        let leaf = self.table.clustered().leaf_mut(mtr, self.key)?;
        let Ok(slot) = leaf.search(mtr, self.key) else {
            self.lock_absence();
            return Ok(None);
        };
        let value = leaf.value(mtr, slot);
        let old = RowHeader::decode(value)?;
        self.check_lockable(&old)?;
        if old.is_delete_marked() || self.is_expired(&old, &value[ROW_HEADER_BYTES..])? != expired {
            self.lock_absence();
            return Ok(None);
        }
        let payload = &value[ROW_HEADER_BYTES..];
        let entries_changed = self.table.index_count() > 0;
        let buffers = &mut self.txn.buffers;
        if entries_changed {
            buffers.old_row.clear();
            buffers.old_row.extend_from_slice(payload);
        }
        name_chains(&old, payload, None, &mut buffers.chains)?;
        buffers.record.clear();
        undo::put_change(
            &mut buffers.record,
            &NewChange {
                delete: true,
                table: self.table.id(),
                key: self.key,
                old,
                entries_changed,
                middle: DiffRange::WHOLE,
                old_middle: &[],
                chains: &buffers.chains,
                entries: None,
            },
        );
        let undo_page = latch_undo(self.txn, mtr, self.txn.buffers.record.len())?;
        let header = self.append_undo(mtr, undo_page, old.flags | DELETE_MARKED).encode();
        leaf.splice(mtr, slot, 0, REWRITTEN_BYTES, &header[..REWRITTEN_BYTES]);
        let is_ours = |now: RowHeader| now.is_delete_marked() && self.txn.wrote(&now);
        debug_assert!(RowHeader::decode(leaf.value(mtr, slot)).is_ok_and(is_ours), "a deletion leaves another row");
        Ok(Some(old))
    }
}
