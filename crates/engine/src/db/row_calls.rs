//! The calls that change one row, common to both APIs: the key and the new columns are values or bytes.

use super::deferred_end::ClosureCall;
use super::row_change::apply;
use super::write_txn::{Inserted, StatementContext, WriteTxn};
use crate::error::{Error, Result};
use crate::table::lock::TableLockMode;
use crate::table::{Changes, NewColumns, RowRef, Table};
use crate::txn::RowOp;

impl WriteTxn {
    /// See [`insert`](Self::insert).
    #[inline]
    pub(super) fn insert_columns<N: NewColumns + ?Sized>(&mut self, table: &Table, new: &N) -> Result<Inserted> {
        let mut call = self.call(table, TableLockMode::Write)?;
        let inserted = call.encode_new(&table.shared, new)?;
        let StatementContext { system, txn, version, key, row, .. } = call;
        RowOp { system, txn, table: &**version, key }.insert(row)?;
        Ok(inserted)
    }

    /// See [`modify`](Self::modify); `set_key` puts the row's key into the call.
    #[inline]
    pub(super) fn change_row(
        &mut self,
        table: &Table,
        set_key: impl FnOnce(&mut StatementContext<'_>) -> Result<()>,
        mut change: impl FnMut(RowRef<'_>, &mut Changes<'_>),
    ) -> Result<bool> {
        let _over = ClosureCall;
        let mut call = self.call(table, TableLockMode::Write)?;
        set_key(&mut call)?;
        let StatementContext { system, version, .. } = call;
        let mut moves = false;
        let op = RowOp { system, txn: call.txn, table: &**version, key: call.key };
        let found = op.update(&mut |old, new, mut outside| {
            moves = apply(version, old, new, outside.as_deref_mut(), &mut change)?;
            if moves {
                return Err(Error::Usage("the update would change the primary key".to_string()));
            }
            version.check_changed_keys(call.key, old, new)?;
            Ok(old != new.as_slice() || outside.is_some_and(|outside| outside.is_changed()))
        });
        let found = if moves { call.relocate(&table.shared, &mut change) } else { found }?;
        call.inner.check_running()?;
        Ok(found)
    }

    /// See [`delete`](Self::delete); `set_key` puts the row's key into the call.
    #[inline]
    pub(super) fn delete_row(
        &mut self,
        table: &Table,
        set_key: impl FnOnce(&mut StatementContext<'_>) -> Result<()>,
    ) -> Result<bool> {
        let mut call = self.call(table, TableLockMode::Write)?;
        set_key(&mut call)?;
        let StatementContext { inner, system, txn, version, key, .. } = call;
        let found = RowOp { system, txn, table: &**version, key }.delete()?;
        inner.check_running()?;
        Ok(found)
    }
}
