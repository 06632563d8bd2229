//! The search for other rows with the columns of a unique index.
//!
//! Rules
//! 1. The search and the following insertion are one step under the stripe of the columns. The search waits for a row
//!    that another transaction is changing, in any state of its entry.
//! 2. An entry that an ended transaction has delete-marked stays so until purge removes it or its row is inserted with
//!    it again. So each stripe remembers, for the columns that were searched last, the entry up to which all entries
//!    are of that kind ([`Searched`]), and the next search for them begins there. Otherwise, while an old snapshot is
//!    open, a value that is repeatedly inserted and deleted would make each search longer.
//! 3. The remembered position does not pass a leaf that an active transaction has changed (its largest transaction id
//!    shows that), so it does not pass an entry that this transaction or its rollback inserts again. An insertion,
//!    which holds the stripe, moves the position back to its entry.

use super::attempt::{Attempt, Blocked};
use super::entry::EntryOp;
use super::unique::Searched;
use crate::btree::Seek;
use crate::error::{Error, Result};
use crate::lock::{LockMode, RowName};
use crate::row::format::{EntryValue, ROW_HEADER_BYTES, RowHeader};
use crate::txn::overflow_columns::Wanted;
use crate::txn::read::StoredRow;
use crate::txn::transaction::Txn;

/// The end of the entries that a search passes is remembered if there are more of them than this.
const MIN_PASSED_ENTRIES: usize = 8;

impl EntryOp<'_> {
    /// Looks for another row with these index columns, from where the stripe says. The error names the row at which the
    /// search stopped.
    pub(super) fn check_duplicates(
        &self,
        txn: &Txn,
        searched: &mut Searched,
    ) -> std::result::Result<(), (Vec<u8>, Blocked)> {
        debug_assert!(self.made.unique, "duplicates are searched that are none: {:?}", self.made);
        let others = self.other_rows(searched).map_err(|error| (Vec::new(), Blocked::Fail(error)))?;
        searched.begin_at(self.tree, self.columns(), self.entry);
        for other in others {
            if let Err(blocked) = self.check_other(txn, &other) {
                return Err((other, blocked));
            }
        }
        Ok(())
    }

    /// Keys of the other rows that have, had or may again have an entry with these index columns.
    fn other_rows(&self, searched: &mut Searched) -> Result<Vec<Vec<u8>>> {
        let columns = self.columns();
        let (mut found, mut entry) = (Vec::new(), Vec::new());
        let mut from = searched.start(self.tree, columns).to_vec();
        // The first entries, while they are of those that stay delete-marked: how many, and the last.
        let (mut is_first, mut passed, mut last) = (true, 0, Vec::new());
        'leaves: loop {
            let leaf = self.tree.leaf(&self.system.ctx, Seek::Covers(&from))?;
            let all_ended = leaf.max_trx_id() < self.system.min_active();
            is_first &= all_ended;
            let start = leaf.search(&from).unwrap_or_else(|slot| slot);
            for slot in start..leaf.len() {
                leaf.key_into(slot, &mut entry);
                if !entry.starts_with(columns) {
                    break 'leaves;
                }
                let value = EntryValue::decode(leaf.value(slot), entry.len())?;
                let other = &entry[value.prefix_bytes..];
                // A delete-mark that an ended transaction has set stays.
                let stays_marked = value.delete_marked && all_ended;
                is_first &= stays_marked && other != self.key;
                if is_first {
                    passed += 1;
                    std::mem::swap(&mut last, &mut entry);
                } else if value.prefix_bytes == columns.len() && other != self.key && !stays_marked {
                    found.push(other.to_vec());
                }
            }
            match leaf.upper() {
                Some(upper) if upper.starts_with(columns) || upper < columns => from = upper.to_vec(),
                _ => break,
            }
        }
        if passed > MIN_PASSED_ENTRIES {
            searched.remember(self.tree, columns, last);
        }
        Ok(found)
    }

    fn check_other(&self, txn: &Txn, other: &[u8]) -> Attempt<()> {
        let mut row = Vec::new();
        if !self.read_ended_row(txn, other, &mut row)? {
            return Ok(());
        }
        let mut entry = Vec::new();
        let made = self.table.entry(self.i, other, &row, &mut entry)?;
        if entry[..made.prefix_bytes] == *self.columns() {
            if let Some(now) = txn.time_of(self.table)
                && self.table.expiry(&row).is_some_and(|moment| moment <= now)
            {
                return Err(Blocked::Expired);
            }
            let (table, index) = (self.table.name().to_string(), self.table.index_name(self.i).to_string());
            return Err(Blocked::Fail(Error::DuplicateKey { table, index }));
        }
        Ok(())
    }

    /// Copies the newest version of a row that no other transaction holds, with the columns of its entry. Returns false
    /// if there is none.
    fn read_ended_row(&self, txn: &Txn, key: &[u8], row: &mut Vec<u8>) -> Attempt<bool> {
        let tree = self.table.clustered();
        let wanted = Wanted::entry(self.i);
        let stored = StoredRow { wanted, ..StoredRow::new(&self.system.ctx, self.table, key) };
        loop {
            let leaf = tree.leaf(&self.system.ctx, Seek::Covers(key))?;
            let Ok(slot) = leaf.search(key) else { return Ok(false) };
            let value = leaf.value(slot);
            let header = RowHeader::decode(value)?;
            // That there is such a row is a read.
            let (name, mode) = (RowName { index: tree.id(), key }, txn.lock_of_duplicate());
            // Asked under the latch: if its transaction has ended and the version is still here, it was committed.
            if header.trx_id != txn.id
                && let Some(holder) = self.system.holder_of(header.trx_id)
            {
                let mode = if mode == LockMode::None { LockMode::Shared } else { mode };
                return Err(Blocked::WaitRow { index: name.index, mode, implicit: Some((header.trx_id, holder)) });
            }
            if header.is_delete_marked() {
                return Ok(false);
            }
            if mode != LockMode::None && !txn.wrote(&header) && !self.system.locks.try_lock_row(&txn.holder, name, mode)
            {
                return Err(Blocked::WaitRow { index: name.index, mode, implicit: None });
            }
            row.clear();
            row.extend_from_slice(&value[ROW_HEADER_BYTES..]);
            drop(leaf);
            if stored.resolve_unlocked(&header, &header, row)? {
                return Ok(true);
            }
        }
    }
}
