//! Rows of a table by their primary keys.

use crate::abi::{Array, Bytes, Columns, ColumnsOut, Read};
use crate::failure::{Code, found, guarded};
use crate::session::Session;
use crate::table::{Table, values};
use highwater::raw::{RawColumn, RawRead};
use highwater::{LockMode, LockWait, Result};
use smallvec::SmallVec;

impl Read {
    /// As the engine takes it.
    pub(crate) fn raw(&self) -> RawRead {
        let columns = || self.wanted.elements().iter().map(|at| *at as usize).collect();
        RawRead {
            lock: match self.lock {
                0 => LockMode::None,
                1 => LockMode::Shared,
                _ => LockMode::Exclusive,
            },
            lock_wait: (self.skip_locked != 0).then_some(LockWait::SkipLocked),
            columns: (self.all_columns == 0 || self.covering != 0).then(columns),
            covering: self.covering != 0,
            ..RawRead::default()
        }
    }
}

impl Table {
    /// Hands out the wanted columns of the row.
    #[inline]
    pub(crate) fn hand_out(&self, wanted: &[u32], out: &mut [Bytes]) {
        for (at, place) in wanted.iter().zip(out) {
            *place = self.row.column(*at as usize).map_or(Bytes::null(), Bytes::of);
        }
    }

    fn get(&mut self, session: &mut Session, key: &[u8], read: &Read, out: &mut [Bytes]) -> Result<bool> {
        self.refresh();
        // The key may be this table's own.
        let key = key.to_vec();
        self.has_row = self.raw.get(session.txn()?, &key, &read.raw(), &mut self.row)?;
        self.is_of_cursor = false;
        if self.has_row {
            self.row_key = key;
            self.hand_out(read.wanted.elements(), out);
        }
        Ok(self.has_row)
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_insert(session: &mut Session, table: &mut Table, row: Columns) -> i32 {
    guarded(|| {
        table.refresh();
        table.raw.insert(session.txn()?, &values(&row))?;
        table.changes.note(&table.shared.rows);
        Ok(Code::Ok)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_update(
    session: &mut Session,
    table: &mut Table,
    key: Bytes,
    positions: Array<u32>,
    columns: Columns,
) -> i32 {
    guarded(|| {
        table.refresh();
        let positions = positions.elements().iter().map(|at| *at as usize);
        let changes: SmallVec<[(usize, RawColumn<'_>); 16]> = positions.zip(values(&columns)).collect();
        Ok(found(table.raw.update(session.txn()?, key.elements(), &changes)?))
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_delete(session: &mut Session, table: &mut Table, key: Bytes) -> i32 {
    guarded(|| {
        table.refresh();
        let is_deleted = table.raw.delete(session.txn()?, key.elements())?;
        table.changes.note(&table.shared.rows);
        Ok(found(is_deleted))
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_key(table: &mut Table, columns: Columns, key: &mut Bytes) -> i32 {
    guarded(|| {
        table.refresh();
        table.key.clear();
        table.raw.append_key("PRIMARY", &values(&columns), &mut table.key)?;
        *key = Bytes::of(&table.key);
        Ok(Code::Ok)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_get(
    session: &mut Session,
    table: &mut Table,
    key: Bytes,
    read: &Read,
    mut row: ColumnsOut,
) -> i32 {
    guarded(|| table.get(session, key.elements(), read, row.elements()).map(found))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_row_key(table: &Table, key: &mut Bytes) -> i32 {
    guarded(|| {
        let of_row = table.key_of_row();
        *key = of_row.map_or(Bytes::null(), Bytes::of);
        Ok(found(of_row.is_some()))
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_row_unlock(session: &mut Session, table: &mut Table) -> i32 {
    guarded(|| {
        let Some(key) = table.key_of_row() else { return Ok(Code::NotFound) };
        Ok(found(table.raw.unlock(session.txn()?, key)?))
    })
}
