//! Insertion of a row.

use super::attempt::{Attempt, Blocked, check_gap_lockable, latch_undo};
use super::version::{RecordPos, name_chains};
use crate::error::{Error, Result};
use crate::lock::LockMode;
use crate::mtr::Mtr;
use crate::row::diff::DiffRange;
use crate::row::format::{ROW_HEADER_BYTES, RowHeader};
use crate::txn::row_op::RowOp;
use crate::txn::transaction::RowBuffers;
use crate::undo::{self, NewChange};

impl RowOp<'_> {
    pub(crate) fn insert_row(&mut self, row: &[u8]) -> Result<()> {
        let system = self.system;
        let limit_bytes = self.table.clustered().limits().max_key_bytes;
        if self.key.len() > limit_bytes {
            let key = format!("the primary key of table {}", self.table.name());
            return Err(Error::KeyTooLong { key, bytes: self.key.len(), limit_bytes });
        }
        let flags = self.store_row(row, &[])?;
        loop {
            let mut mtr = system.ctx.mtr()?;
            match self.try_insert(&mut mtr, flags) {
                Ok(()) => {
                    mtr.commit();
                    break;
                }
                Err(Blocked::Expired) => {
                    mtr.abandon();
                    self.delete_expired()?;
                }
                Err(blocked) => {
                    mtr.abandon();
                    self.unblock(blocked)?;
                }
            }
        }
        system.stats.rows_inserted.inc();
        self.insert_entries(row)
    }

    /// Inserts the entries of a row that has just been inserted.
    pub(super) fn insert_entries(&mut self, row: &[u8]) -> Result<()> {
        for i in 0..self.table.index_count() {
            let mut entry = std::mem::take(&mut self.txn.buffers.new_entry);
            entry.clear();
            let made = self.table.entry(i, self.key, row, &mut entry);
            let inserted = made.and_then(|made| self.insert_entry(i, &entry, made, row));
            self.txn.buffers.new_entry = entry;
            inserted?;
        }
        Ok(())
    }

    fn try_insert(&mut self, mtr: &mut Mtr<'_>, flags: u8) -> Attempt<()> {
        let tree = self.table.clustered();
        let leaf = tree.leaf_mut(mtr, self.key)?;
        let slot = match leaf.search(mtr, self.key) {
            Ok(slot) => return self.insert_over(mtr, RecordPos { leaf, slot }, flags),
            Err(slot) => slot,
        };
        check_gap_lockable(self.system, self.txn, tree.id(), self.key)?;
        let record = &mut self.txn.buffers.record;
        record.clear();
        undo::put_insert(record, self.table.id(), self.key);
        let undo_page = latch_undo(self.txn, mtr, self.txn.buffers.record.len())?;
        let value_bytes = self.txn.buffers.value.len();
        if !leaf.fits(mtr, self.key.len(), value_bytes) {
            return Err(Blocked::MakeRoom(self.key.len() + value_bytes));
        }
        let header = self.append_undo(mtr, undo_page, flags);
        let value = &mut self.txn.buffers.value;
        value[..ROW_HEADER_BYTES].copy_from_slice(&header.encode());
        leaf.insert(mtr, slot, self.key, value);
        Ok(())
    }

    /// Inserts where a row with this key is: an update if that row is delete-marked.
    fn insert_over(&mut self, mtr: &mut Mtr<'_>, RecordPos { leaf, slot }: RecordPos, flags: u8) -> Attempt<()> {
        let old_value = leaf.value(mtr, slot);
        let old = RowHeader::decode(old_value)?;
        let old_bytes = old_value.len();
        self.check_lockable(&old)?;
        if !old.is_delete_marked() && self.is_expired(&old, &old_value[ROW_HEADER_BYTES..])? {
            return Err(Blocked::Expired);
        }
        if !old.is_delete_marked() {
            // That there is such a row is a read.
            let (name, mode) = (self.name(), self.txn.lock_of_duplicate());
            if mode != LockMode::None && !self.system.locks.try_lock_row(&self.txn.holder, name, mode) {
                return Err(Blocked::WaitRow { index: name.index, mode, implicit: None });
            }
            self.txn.note_duplicate(self.key);
            let (table, index) = (self.table.name().to_string(), "PRIMARY".to_string());
            return Err(Blocked::Fail(Error::DuplicateKey { table, index }));
        }
        check_gap_lockable(self.system, self.txn, self.table.clustered().id(), self.key)?;
        let RowBuffers { record, chains, .. } = &mut self.txn.buffers;
        name_chains(&old, &old_value[ROW_HEADER_BYTES..], None, chains)?;
        record.clear();
        undo::put_change(
            record,
            &NewChange {
                delete: false,
                table: self.table.id(),
                key: self.key,
                old,
                entries_changed: self.table.index_count() > 0,
                middle: DiffRange::WHOLE,
                old_middle: &old_value[ROW_HEADER_BYTES..],
                chains,
                entries: None,
            },
        );
        let growth = self.txn.buffers.value.len().saturating_sub(old_bytes);
        let undo_page = latch_undo(self.txn, mtr, self.txn.buffers.record.len())?;
        if !leaf.fits_growth(mtr, slot, growth) {
            return Err(Blocked::MakeRoom(growth));
        }
        let header = self.append_undo(mtr, undo_page, flags);
        let value = &mut self.txn.buffers.value;
        value[..ROW_HEADER_BYTES].copy_from_slice(&header.encode());
        leaf.splice(mtr, slot, 0, old_bytes, value);
        debug_assert_eq!(leaf.value(mtr, slot), &value[..], "a row that is inserted over a deleted one is another");
        Ok(())
    }
}
