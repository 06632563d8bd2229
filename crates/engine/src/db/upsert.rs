//! Insertions that return, change or replace their duplicate.
//!
//! Rules
//! 1. When the insertion finds a row with its primary key or its key of a unique index, it locks that row at once in
//!    the final mode. Otherwise two insertions that wait for one row would both get a shared lock and wait for each
//!    other (a deadlock).
//! 2. Each call is a statement: it is done as a whole or not at all.

use super::write_txn::{HAS_NOT_ENDED, Inserted, WriteTxn};
use crate::error::{Error, Result};
use crate::lock::LockMode;
use crate::table::{Changes, NewColumns, Row, RowRef, Table, ValueRef};
use crate::txn::Wanted;

/// The result of [`WriteTxn::insert_or_get`].
#[derive(Debug)]
pub enum Insertion {
    /// There was no such row.
    Inserted(Inserted),
    /// Another row has the primary key, or the key of a unique index.
    Duplicate {
        /// The index in which the keys are equal, the first one if there are several; "PRIMARY" for the primary key.
        index: String,
        /// The other row, which is locked now.
        row: Row,
    },
}

/// The result of [`WriteTxn::upsert`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upserted {
    /// There was no such row.
    Inserted(Inserted),
    /// There was one, and `change` has seen it.
    Changed,
}

/// The result of [`WriteTxn::replace`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// The result of the insertion.
    pub inserted: Inserted,
    /// Number of rows that had its primary key or its key of a unique index, and were deleted.
    pub deleted: u64,
}

/// The duplicate of an insertion: the index in which the keys are equal, and the row's key.
struct Duplicate {
    index: String,
    key: Vec<u8>,
}

impl WriteTxn {
    /// Inserts a row, or returns the one that has its primary key or its key of a unique index, locked in this mode
    /// ([`LockMode::None`] locks shared too) until the transaction ends. A number of the auto-increment column is used
    /// up in both cases.
    ///
    /// ```
    /// # use highwater::{Database, Insertion, LockMode, Options, Schema, Type, values};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Database::open(dir.path(), Options::default())?;
    /// let schema = Schema::new().column("id", Type::U64).column("mail", Type::Text(80)).primary_key(&["id"]);
    /// let users = db.create_table("users", schema.unique_index("by_mail", &["mail"]))?;
    /// let mut txn = db.begin()?;
    /// txn.insert(&users, &values![7u64, "a@b.c"])?;
    /// match txn.insert_or_get(&users, &values![8u64, "a@b.c"], LockMode::Exclusive)? {
    ///     Insertion::Duplicate { index, row } => assert_eq!((&*index, row.u64(0)), ("by_mail", 7)),
    ///     Insertion::Inserted(_) => unreachable!(),
    /// }
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`insert`](Self::insert), but no `DuplicateKey`; as [`get_for_update`](Self::get_for_update).
    pub fn insert_or_get(&mut self, table: &Table, values: &[ValueRef<'_>], lock: LockMode) -> Result<Insertion> {
        let lock = if lock == LockMode::None { LockMode::Shared } else { lock };
        loop {
            let Duplicate { index, key } = match self.insert_or_lock(table, values, lock)? {
                Ok(inserted) => return Ok(Insertion::Inserted(inserted)),
                Err(duplicate) => duplicate,
            };
            if let Some((version, row)) = self.read_by(table, |call| call.take_key(&key), lock, Wanted::ALL)? {
                return version.layouts.to_row(row).map(|row| Insertion::Duplicate { index, row });
            }
        }
    }

    /// Inserts a row, or locks its duplicate.
    fn insert_or_lock<N: NewColumns + ?Sized>(
        &mut self,
        table: &Table,
        new: &N,
        lock: LockMode,
    ) -> Result<std::result::Result<Inserted, Duplicate>> {
        let before = self.txn.as_mut().expect(HAS_NOT_ENDED).duplicate_lock.replace(lock);
        debug_assert_eq!(before, None, "rule 1: an earlier insertion has left its mode");
        debug_assert_ne!(lock, LockMode::None, "rule 1: a duplicate is returned without a lock");
        let inserted = self.insert_columns(table, new);
        let txn = self.txn.as_mut().expect(HAS_NOT_ENDED);
        txn.duplicate_lock = None;
        match inserted {
            Err(Error::DuplicateKey { index, .. }) => {
                Ok(Err(Duplicate { index, key: std::mem::take(&mut txn.duplicate_key) }))
            }
            inserted => inserted.map(Ok),
        }
    }

    /// Inserts a row, or changes the one that has its primary key or its key of a unique index, as
    /// [`modify`](Self::modify) does: SQL's INSERT ... ON DUPLICATE KEY UPDATE. If several rows have its keys, it
    /// changes the one that [`insert_or_get`](Self::insert_or_get) returns.
    ///
    /// ```
    /// # use highwater::{Database, Options, Schema, Type, Upserted, values};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Database::open(dir.path(), Options::default())?;
    /// let schema = Schema::new().column("page", Type::U64).column("hits", Type::U64).primary_key(&["page"]);
    /// let hits = db.create_table("hits", schema)?;
    /// for _ in 0..3 {
    ///     db.transact(|txn| txn.upsert(&hits, &values![7, 1], |row, set| set.put(1, row.u64(1) + 1)))?;
    /// }
    /// assert_eq!(db.snapshot()?.get(&hits, &values![7])?.unwrap().u64(1), 3);
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`insert`](Self::insert) and [`modify`](Self::modify): `DuplicateKey` if `change` gives the row a key that
    /// another one has.
    pub fn upsert(
        &mut self,
        table: &Table,
        values: &[ValueRef<'_>],
        mut change: impl FnMut(RowRef<'_>, &mut Changes<'_>),
    ) -> Result<Upserted> {
        loop {
            match self.insert_or_lock(table, values, LockMode::Exclusive)? {
                Ok(inserted) => return Ok(Upserted::Inserted(inserted)),
                Err(Duplicate { key, .. }) => {
                    if self.change_row(table, |call| call.take_key(&key), &mut change)? {
                        return Ok(Upserted::Changed);
                    }
                }
            }
        }
    }

    /// Deletes the rows that have the primary key of a row or its key of a unique index, and inserts it: SQL's REPLACE.
    ///
    /// ```
    /// # use highwater::{Database, Options, Schema, Type, values};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Database::open(dir.path(), Options::default())?;
    /// let schema = Schema::new().column("id", Type::U64).column("mail", Type::Text(80)).primary_key(&["id"]);
    /// let users = db.create_table("users", schema.unique_index("by_mail", &["mail"]))?;
    /// let mut txn = db.begin()?;
    /// txn.insert_many(&users, [values![7u64, "a@b.c"], values![8u64, "d@e.f"]])?;
    /// assert_eq!(txn.replace(&users, &values![8u64, "a@b.c"])?.deleted, 2);
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`insert`](Self::insert), but no `DuplicateKey`; then nothing is deleted.
    pub fn replace(&mut self, table: &Table, values: &[ValueRef<'_>]) -> Result<Replaced> {
        let (before, mut deleted) = (self.savepoint(), 0);
        let error = loop {
            match self.insert_or_lock(table, values, LockMode::Exclusive) {
                Ok(Ok(inserted)) => return Ok(Replaced { inserted, deleted }),
                Ok(Err(Duplicate { key, .. })) => match self.delete_row(table, |call| call.take_key(&key)) {
                    Ok(found) => deleted += u64::from(found),
                    Err(error) => break error,
                },
                Err(error) => break error,
            }
        };
        // After a deadlock all is undone already.
        if deleted > 0 && self.txn.as_ref().expect(HAS_NOT_ENDED).check_active().is_ok() {
            self.rollback_to(before)?;
        }
        Err(error)
    }
}
