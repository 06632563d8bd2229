//! Row operations of the raw API, one row at a time.
//!
//! Rules
//! 1. Stored rows and keys are made from columns by the table's layouts (`row_layout.rs`, `key.rs`), which check them.
//!    A key in the caller's bytes is only searched for.
//! 2. Each call is the typed call of the same name, with bytes instead of values: one statement.

use super::table::encode_key;
use super::{RawColumn, RawRead, RawRow, RawTable};
use crate::db::cursor::CursorTxn;
use crate::db::write_txn::{StatementContext, WriteTxn};
use crate::db::{Inserted, Rows};
use crate::error::{Error, Result};
use crate::lock::LockMode;
use crate::table::key::KeyLayout;
use crate::table::lock::TableLockMode;
use crate::table::version::TableVersion;
use crate::txn::Wanted;

/// A row that has what a new one may not have too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawDuplicate {
    /// Position of the index among the definition's; `None`: the primary key.
    pub index: Option<usize>,
    /// Key of the other row.
    pub key: Vec<u8>,
}

impl RawTable {
    /// Inserts a row: its columns, in order. NULL in the auto-increment column takes the next number.
    ///
    /// # Errors
    /// As [`WriteTxn::insert`]; `BadValue` says what is wrong with a column's bytes. After `DuplicateKey` see
    /// [`duplicate_of`](Self::duplicate_of).
    #[inline]
    pub fn insert(&self, txn: &mut WriteTxn, columns: &[RawColumn<'_>]) -> Result<Inserted> {
        txn.insert_columns(&self.table, columns)
    }

    /// Inserts rows; returns how many. If one cannot be inserted, none is. Rows in the order of their keys cost least.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn insert_many<'c, R: AsRef<[RawColumn<'c>]>>(
        &self,
        txn: &mut WriteTxn,
        rows: impl IntoIterator<Item = R>,
    ) -> Result<u64> {
        let insert =
            |into: &mut Rows<'_>| rows.into_iter().try_for_each(|row| into.push_columns(row.as_ref()).map(drop));
        txn.insert_many_with(&self.table, insert)
    }

    /// Reads the row of a primary key into `row`; false if there is none (or if it is locked and to be skipped): then
    /// `row` is what it was.
    ///
    /// # Errors
    /// As [`WriteTxn::get_locked`].
    #[inline]
    pub fn get(&self, txn: &mut impl CursorTxn, key: &[u8], read: &RawRead, row: &mut RawRow) -> Result<bool> {
        let wanted = Wanted { columns: read.columns.as_deref(), ..Wanted::ALL };
        let set_key = |call: &mut StatementContext<'_>| {
            call.version.layouts.check_columns(wanted.columns.unwrap_or(&[]))?;
            call.take_key(key)
        };
        txn.open_txn()?.with_lock_wait(read.lock_wait, |txn| {
            match txn.read_by(&self.table, set_key, read.lock, wanted)? {
                Some((version, bytes)) => row.fill(&version.layouts, bytes).map(|()| true),
                None => Ok(false),
            }
        })
    }

    /// Sets columns (by position) of the row of a primary key; false if there is no such row. Columns that are not
    /// named keep their bytes, and long ones among them are neither read nor written.
    ///
    /// # Errors
    /// As [`WriteTxn::update`].
    pub fn update(&self, txn: &mut WriteTxn, key: &[u8], columns: &[(usize, RawColumn<'_>)]) -> Result<bool> {
        txn.change_row(
            &self.table,
            |call| call.take_key(key),
            |_, set| columns.iter().for_each(|&(column, bytes)| set.put_stored(column, bytes)),
        )
    }

    /// Deletes the row of a primary key; false if there is no such row.
    ///
    /// # Errors
    /// As [`WriteTxn::delete`].
    pub fn delete(&self, txn: &mut WriteTxn, key: &[u8]) -> Result<bool> {
        txn.delete_row(&self.table, |call| call.take_key(key))
    }

    /// Releases the lock of a row that a locking read has just delivered (the last one of the transaction: a cursor's
    /// move, or a [`get`](Self::get)) and that the caller does not need; false if it stays locked: because the
    /// transaction has locked it before, or because its level locks ranges too (REPEATABLE READ, SERIALIZABLE).
    ///
    /// # Errors
    /// [`Error::TableDropped`](crate::Error::TableDropped), [`Error::Closed`](crate::Error::Closed).
    pub fn unlock(&self, txn: &mut WriteTxn, key: &[u8]) -> Result<bool> {
        let StatementContext { system, txn, version, .. } = txn.call(&self.table, TableLockMode::Read)?;
        Ok(system.unlock_row(txn, &**version, key))
    }

    /// After `DuplicateKey`: the first row that has the primary key of these columns, or in a unique index the same as
    /// they, locked as asked; the indexes are looked at in the order of the definition. `None` if there is none (any
    /// more): then the insertion may be tried again. It reads the newest rows if it locks them, else what the
    /// transaction sees.
    ///
    /// # Errors
    /// As [`insert`](Self::insert) and [`get`](Self::get).
    pub fn duplicate_of(
        &self,
        txn: &mut WriteTxn,
        columns: &[RawColumn<'_>],
        lock: LockMode,
    ) -> Result<Option<RawDuplicate>> {
        let unique = self.unique_keys(txn, columns)?;
        for (index, name, start) in unique {
            let mut cursor = self.cursor(&name, RawRead { lock, ..RawRead::default() });
            if cursor.seek(txn, super::RawSeek::Exact, &start)? {
                return Ok(cursor.key().map(|key| RawDuplicate { index, key: key.to_vec() }));
            }
        }
        Ok(None)
    }

    /// The unique indexes in which a row has a place of its own: position, name, the beginning of its key there.
    fn unique_keys(&self, txn: &mut WriteTxn, columns: &[RawColumn<'_>]) -> Result<Vec<UniqueKey>> {
        let version: &TableVersion = txn.call(&self.table, TableLockMode::Read)?.version;
        let definition = &*version.complete_definition();
        let of_index = |(i, index): (usize, &crate::table::IndexDefinition)| (Some(i), index.name.clone());
        let unique = definition.indexes.iter().enumerate().filter(|(_, index)| index.unique).map(of_index);
        let all = std::iter::once((None, crate::table::definition::PRIMARY.to_string())).chain(unique);
        let mut found = Vec::new();
        for (index, name) in all {
            let layout = version.key_of_index(index);
            let parts = key_columns(layout, columns)?;
            if parts.iter().any(Option::is_none) {
                continue;
            }
            let mut start = Vec::new();
            encode_key(definition, layout, &parts, &mut start)?;
            found.push((index, name, start));
        }
        Ok(found)
    }
}

/// Of a unique index: its position (`None` = the clustered one), its name, how a row's key begins there.
type UniqueKey = (Option<usize>, String, Vec<u8>);

/// The columns of a row that a key has, in the key's order.
fn key_columns<'c>(layout: &KeyLayout, columns: &[RawColumn<'c>]) -> Result<Vec<RawColumn<'c>>> {
    let of = |column: usize| {
        columns.get(column).copied().ok_or_else(|| Error::BadValue {
            column: "(row)".to_string(),
            reason: format!("{} columns given", columns.len()),
        })
    };
    layout.parts().iter().map(|part| of(part.column)).collect()
}

impl StatementContext<'_> {
    /// Makes bytes the key of the call.
    #[inline]
    pub(in crate::db) fn take_key(&mut self, key: &[u8]) -> Result<()> {
        self.key.clear();
        self.key.extend_from_slice(key);
        Ok(())
    }
}
