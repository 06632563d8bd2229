//! Cursors of the raw door.

use super::{RawRead, RawRow, RawTable};
use crate::db::cursor::{Cursor, CursorTxn};
use crate::db::scan::Range;
use crate::db::write_txn::WriteTxn;
use crate::error::{Error, Result};
use crate::table::key::successor;

/// Where a [`RawCursor`] goes, by the beginning of a key; the empty one is the beginning of all keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawSeek {
    /// To the first key that begins so; its moves stay among those.
    Exact,
    /// To the last key that begins so; its moves stay among those.
    ExactLast,
    /// To the first key that begins so or is greater.
    AtLeast,
    /// To the first key that is greater and does not begin so.
    Above,
    /// To the last key that begins so or is smaller.
    AtMost,
    /// To the last key that is smaller.
    Below,
}

/// A place in an index or among the rows of a table, by encoded keys. It belongs to no transaction for good: a seek
/// opens it in the transaction that it is given, and the moves after it are in the same one. Between calls it holds no
/// latch and borrows nothing. All that [`Cursor`] says of moves, levels and locks holds for it.
pub struct RawCursor {
    table: RawTable,
    index: String,
    read: RawRead,
    low: Vec<u8>,
    high: Option<Vec<u8>>,
    /// Since the first seek.
    cursor: Option<Cursor>,
}

impl RawCursor {
    pub(super) fn new(table: RawTable, index: &str, read: RawRead) -> RawCursor {
        RawCursor { table, index: index.to_string(), read, low: Vec::new(), high: None, cursor: None }
    }

    /// The keys that the seeks after it and their moves come to: from `low` on, below `high`. A locking cursor locks no
    /// range outside. A new cursor comes to all keys.
    pub fn set_range(&mut self, low: &[u8], high: Option<&[u8]>) {
        (self.low, self.high) = (low.to_vec(), high.map(<[u8]>::to_vec));
    }

    /// Goes to a place; false if there is no such row: then it stands at that end of its range.
    ///
    /// # Errors
    /// Those of a scan: [`Error::NoSuchIndex`], a lock that is not granted, an interruption, I/O.
    pub fn seek(&mut self, txn: &mut impl CursorTxn, to: RawSeek, key: &[u8]) -> Result<bool> {
        let txn = txn.open_txn()?;
        let (mut low, mut high) = (self.low.clone(), self.high.clone());
        if matches!(to, RawSeek::Exact | RawSeek::ExactLast) {
            low = low.max(key.to_vec());
            high = match (high, successor(key.to_vec())) {
                (Some(high), Some(end)) => Some(high.min(end)),
                (high, end) => high.or(end),
            };
        }
        let (at, reverse) = match to {
            RawSeek::Exact | RawSeek::AtLeast => (Some(key.to_vec()), false),
            RawSeek::Above => (successor(key.to_vec()), false),
            RawSeek::AtMost => (successor(key.to_vec()), true),
            RawSeek::Below => (Some(key.to_vec()), true),
            RawSeek::ExactLast => (None, true),
        };
        let cursor = self.opened(txn)?;
        cursor.set_bounds(low, high);
        cursor.seek_key(txn, at, reverse)
    }

    fn opened(&mut self, txn: &mut WriteTxn) -> Result<&mut Cursor> {
        let opened = match self.cursor.take() {
            Some(cursor) if cursor.is_of(txn) => cursor,
            _ => {
                let RawRead { lock, lock_wait, columns, keys_only } = self.read.clone();
                let range = Range { lock, lock_wait, columns, keys_only, ..Range::default() };
                Cursor::over(txn, &self.table.table, &self.index, range)?
            }
        };
        Ok(self.cursor.insert(opened))
    }

    /// Goes to the next row; false at the end.
    ///
    /// # Errors
    /// As [`seek`](Self::seek); [`Error::Usage`] before the first seek, or in another transaction than that of the last
    /// one.
    #[inline]
    pub fn next(&mut self, txn: &mut impl CursorTxn) -> Result<bool> {
        self.cursor.as_mut().ok_or_else(stands_nowhere)?.next(txn)
    }

    /// Goes to the row before; false at the end.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    #[inline]
    pub fn prev(&mut self, txn: &mut impl CursorTxn) -> Result<bool> {
        self.cursor.as_mut().ok_or_else(stands_nowhere)?.prev(txn)
    }

    /// Primary key of the current row: what [`RawTable::get`], `update` and `delete` take. `None` if it is on no row.
    #[inline]
    pub fn key(&self) -> Option<&[u8]> {
        self.cursor.as_ref()?.entry_and_key().map(|(_, key)| key)
    }

    /// Key of the current entry of the index: its columns, then those of the primary key.
    #[inline]
    pub fn entry(&self) -> Option<&[u8]> {
        self.cursor.as_ref()?.entry_and_key().map(|(entry, _)| entry)
    }

    /// Copies the current row; false if it is on no row.
    ///
    /// # Errors
    /// [`Error::Usage`] if it reads [keys only](RawRead::keys_only); damage.
    pub fn read_row(&self, row: &mut RawRow) -> Result<bool> {
        if self.read.keys_only {
            return Err(Error::Usage("the cursor reads keys only".to_string()));
        }
        match self.cursor.as_ref().and_then(Cursor::row_bytes) {
            Some((layouts, bytes)) => row.fill(layouts, bytes).map(|()| true),
            None => Ok(false),
        }
    }
}

#[cold]
fn stands_nowhere() -> Error {
    Error::Usage("the cursor stands nowhere: seek first".to_string())
}
