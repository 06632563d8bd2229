//! Removing old changes from the change log: on request, and by age.
//!
//! Rules
//! 1. The trim position is committed before any deletion. Rows before it that remain after a crash are not read, and
//!    the next call deletes them.
//! 2. Trimming by age removes a prefix of the log: the first transaction that is younger than the option and all later
//!    ones stay, even if the clock has gone back meanwhile.

use super::entry::{self, Entry};
use crate::db::database::Database;
use crate::db::write_txn::WriteTxn;
use crate::error::{Error, Result};
use crate::space::reserve::{self, SpacePriority};
use crate::table::{Table, ValueRef};
use crate::txn::{Isolation, TxnOptions};

/// Parts that are deleted by one transaction.
const BATCH: usize = 1000;

/// The time before the commit, in the first part of a transaction.
fn begin_us(part: &[u8]) -> Option<i64> {
    match entry::read(part) {
        Ok(Some((Entry::Begin { unix_us }, _))) => Some(unix_us),
        _ => None,
    }
}

/// Up to which number the log was trimmed, as this transaction sees it.
pub(super) fn trimmed(read: &mut WriteTxn, table: &Table) -> Result<u64> {
    let mark = read.get(table, &[ValueRef::UInt(0), ValueRef::UInt(0)])?;
    let number = mark.map(|row| row.bytes(2).first_chunk().map(|bytes| u64::from_be_bytes(*bytes)));
    number.map_or(Ok(0), |number| number.ok_or_else(|| Error::Corrupt("the change log: no mark".to_string())))
}

impl Database {
    /// Removes the changes of the transactions up to this number from the change log, once all consumers have them.
    /// Those of transactions that have not ended, and of all later ones, stay. Returns the number up to which changes
    /// were removed.
    ///
    /// ```
    /// # use highwater::{Database, Error, Schema, Type, values};
    /// # let db = Database::in_memory()?;
    /// # let schema = Schema::new().column("id", Type::U64).primary_key(&["id"]).log_changes();
    /// # let table = db.create_table("t", schema)?;
    /// for id in 0..3 {
    ///     db.transact(|txn| txn.insert(&table, &values![id]))?;
    /// }
    /// db.trim_changes(2)?;
    /// assert!(matches!(db.changes(1), Err(Error::ChangesTrimmed { trimmed: 2, .. })));
    /// assert_eq!(db.changes(2)?.count(), 1);
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// As of a transaction that deletes rows; [`Error::Usage`](crate::Error::Usage) if the database was opened to be
    /// read only.
    pub fn trim_changes(&self, upto: u64) -> Result<u64> {
        self.check_writable()?;
        let Some(table) = self.inner.changes.table()? else { return Ok(0) };
        let upto = upto.min(self.inner.changes.readable(false)?);
        if upto == 0 {
            return Ok(0);
        }
        let upto = {
            // On a full disk too: that frees space.
            let _entitled = reserve::entitle(SpacePriority::Deletes);
            self.set_trim_mark(table, upto)?
        };
        // It locks no ranges: commits insert after them.
        let options = TxnOptions { isolation: Isolation::ReadCommitted, ..TxnOptions::default() };
        let (from, to) = ([ValueRef::UInt(1)], [ValueRef::UInt(upto)]);
        loop {
            let mut txn = self.begin_with(options.clone())?;
            let deleted = txn.scan(table).from(&from).to(&to).limit(BATCH).delete()?;
            txn.commit()?;
            if deleted < BATCH as u64 {
                return Ok(upto);
            }
        }
    }

    /// Removes some of the changes that are older than `change_log_expire_seconds`. Returns whether there may be more;
    /// `None` if the option has no limit.
    pub(in crate::db) fn trim_by_age(&self) -> Result<Option<bool>> {
        let seconds = self.options().change_log_expire_seconds;
        let Some(table) = self.inner.changes.table()?.filter(|_| seconds > 0) else { return Ok(None) };
        let before_us = self.inner.ctx.unix_us().saturating_sub(seconds * 1_000_000) as i64;
        let (upto, are_more) = self.last_before(table, before_us)?;
        if upto > 0 {
            self.trim_changes(upto)?;
        }
        Ok(Some(are_more))
    }

    /// Of the log's first `BATCH` parts, the last number of the prefix that is older than this, 0 if it is empty; and
    /// whether all of them are older, so that there may be more (rule 2).
    fn last_before(&self, table: &Table, before_us: i64) -> Result<(u64, bool)> {
        let (from, mut last, mut parts) = ([ValueRef::UInt(1)], 0, 0);
        let mut read = self.snapshot()?;
        let mut rows = read.scan(table).from(&from).limit(BATCH).iter()?;
        while let Some(row) = rows.next_ref()? {
            // A later part belongs to a transaction found old, or to one whose first parts were deleted.
            let is_old = row.u64(1) != 0 || begin_us(row.bytes(2)).is_some_and(|begin_us| begin_us <= before_us);
            if !is_old {
                return Ok((last, false));
            }
            (last, parts) = (row.u64(0), parts + 1);
        }
        Ok((last, parts == BATCH))
    }

    /// Raises the trim position to this number, if it is lower; returns the position.
    fn set_trim_mark(&self, table: &Table, upto: u64) -> Result<u64> {
        let key = [ValueRef::UInt(0), ValueRef::UInt(0)];
        self.transact(|txn| {
            let number = |bytes: &[u8]| bytes.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
            let old = txn.get_for_update(table, &key)?.map(|row| number(row.bytes(2)));
            let bytes = upto.to_be_bytes();
            match old {
                Some(old) if old >= upto => return Ok(old),
                Some(_) => drop(txn.update(table, &key, &[(2, ValueRef::Bytes(&bytes))])?),
                None => drop(txn.insert(table, &[key[0], key[1], ValueRef::Bytes(&bytes)])?),
            }
            Ok(upto)
        })
    }
}
