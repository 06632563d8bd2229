//! Cursors of the raw API.

use super::ahead::ReadAheadRows;
use super::entry::EntryColumns;
use super::filter::RawFilter;
use super::{RawColumn, RawRead, RawRow, RawTable, RawVerdict};
use crate::db::cursor::{Cursor, CursorTxn};
use crate::db::scan::Range;
use crate::db::write_txn::WriteTxn;
use crate::error::{Error, Result};
use crate::lock::LockMode;
use crate::table::key::successor;

/// The target of a [`RawCursor`], by the beginning of a key; all keys begin with the empty one.
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
    /// Decodes rows from entries without a look-up, if the entries have all columns.
    entry_columns: Option<EntryColumns>,
    filter: Option<RawFilter>,
    /// The rows that it reads ahead, if it does.
    ahead: Option<ReadAheadRows>,
}

impl RawTable {
    /// A cursor over an index; `"PRIMARY"`: over the rows. It has no position yet; a wrong index name is an error of
    /// its first [`seek`](RawCursor::seek).
    pub fn cursor(&self, index: &str, read: RawRead) -> RawCursor {
        RawCursor::new(self.clone(), index, read)
    }
}

impl RawCursor {
    fn new(table: RawTable, index: &str, read: RawRead) -> RawCursor {
        let index = index.to_string();
        let (low, high) = (Vec::new(), None);
        RawCursor { table, index, read, low, high, cursor: None, entry_columns: None, filter: None, ahead: None }
    }

    /// Filters entries before their rows are read: `judge` gets a row that has these columns (by position) and no
    /// others. An entry that it refuses is passed: its row is neither read nor locked. For cursors over an index that
    /// [has](RawTable::index_has) the columns.
    ///
    /// ```
    /// use highwater::raw::{RawRead, RawSeek, RawTable, RawVerdict};
    /// use highwater::{Database, Options, Schema, Type};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Database::open(dir.path(), Options::default())?;
    /// let schema = Schema::new().column("id", Type::U8).column("day", Type::U8).column("hour", Type::U8)
    ///     .column("note", Type::Text(900)).primary_key(&["id"]).index("by_time", &["day", "hour"]);
    /// let notes = RawTable::create(&db, "notes", schema)?;
    /// let mut txn = db.begin()?;
    /// for id in 0..20 {
    ///     notes.insert(&mut txn, &[Some(&[id]), Some(&[id / 10]), Some(&[id % 10]), Some(b"rain")])?;
    /// }
    /// let mut cursor = notes.cursor("by_time", RawRead::default());
    /// cursor.set_filter(&[2], |entry| match entry.column(2) {
    ///     Some(&[hour]) if hour < 8 => RawVerdict::Skip,
    ///     _ => RawVerdict::Take,
    /// });
    /// let mut rows = u32::from(cursor.seek(&mut txn, RawSeek::AtLeast, &[])?);
    /// while cursor.next(&mut txn)? {
    ///     rows += 1;
    /// }
    /// assert_eq!(rows, 4);
    /// # Ok::<(), highwater::Error>(())
    /// ```
    pub fn set_filter(&mut self, columns: &[usize], judge: impl FnMut(&RawRow) -> RawVerdict + Send + 'static) {
        self.filter = Some(RawFilter::new(columns, Box::new(judge)));
        self.cursor = None;
    }

    /// The keys that the seeks after it and their moves come to: from `low` on, below `high`. A locking cursor locks no
    /// range outside. A new cursor comes to all keys.
    pub fn set_range(&mut self, low: &[u8], high: Option<&[u8]>) {
        (self.low, self.high) = (low.to_vec(), high.map(<[u8]>::to_vec));
    }

    /// Goes to a place; false if there is no such row: then it is at that end of its range.
    ///
    /// # Errors
    /// Errors of a scan: [`Error::NoSuchIndex`], a lock that is not granted, an interruption, I/O.
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
        let cursor = match self.cursor.take() {
            Some(cursor) if cursor.is_of(txn) => cursor,
            _ => self.open(txn)?,
        };
        if let Some(ahead) = &mut self.ahead {
            ahead.restart();
        }
        let cursor = self.cursor.insert(cursor);
        cursor.set_bounds(low, high);
        match &mut self.filter {
            None => cursor.seek_key(txn, at, reverse, None),
            Some(filter) => cursor.seek_key(txn, at, reverse, Some(&mut |entry| filter.ask(entry))),
        }
    }

    fn open(&mut self, txn: &mut WriteTxn) -> Result<Cursor> {
        let RawRead { lock, lock_wait, columns, keys_only, covering } = self.read.clone();
        let range = Range { lock, lock_wait, columns, keys_only, ..Range::default() };
        let mut cursor = Cursor::over(txn, &self.table.table, &self.index, range)?;
        let (version, index) = cursor.version_and_index();
        if let Some(filter) = &mut self.filter {
            filter.open(version, index)?;
        }
        self.entry_columns = match (index, &self.read.columns) {
            (Some(index), Some(columns)) if covering => EntryColumns::new(version, index, columns),
            _ => None,
        };
        self.ahead = match (index, &self.read.columns) {
            (None, Some(columns)) if covering && lock == LockMode::None && !keys_only => {
                Some(ReadAheadRows::new(columns))
            }
            _ => None,
        };
        debug_assert!(
            self.ahead.is_none() || self.entry_columns.is_none() && self.read.lock == LockMode::None,
            "rule 1 of rows ahead: a cursor reads them from entries, or locks them"
        );
        if self.entry_columns.is_some() {
            cursor.read_entries();
        }
        Ok(cursor)
    }

    /// Goes to the next row; false at the end.
    ///
    /// # Errors
    /// As [`seek`](Self::seek); [`Error::Usage`] before the first seek, or in another transaction than that of the last
    /// one.
    #[inline]
    pub fn next(&mut self, txn: &mut impl CursorTxn) -> Result<bool> {
        self.go(txn.open_txn()?, false)
    }

    /// Moves to the previous row; false at the end.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    #[inline]
    pub fn prev(&mut self, txn: &mut impl CursorTxn) -> Result<bool> {
        self.go(txn.open_txn()?, true)
    }

    #[inline]
    fn go(&mut self, txn: &mut WriteTxn, reverse: bool) -> Result<bool> {
        let cursor = self.cursor.as_mut().ok_or_else(stands_nowhere)?;
        if let Some(ahead) = &mut self.ahead {
            if !reverse && cursor.is_unchanged(txn) && ahead.step() {
                return Ok(true);
            }
            ahead.leave(cursor);
            if !reverse && self.filter.is_none() && ahead.read(cursor, txn)? {
                return Ok(true);
            }
        }
        match &mut self.filter {
            None => cursor.go(txn, reverse, None),
            Some(filter) => cursor.go(txn, reverse, Some(&mut |entry| filter.ask(entry))),
        }
    }

    /// Key of the current row, which is that of its entry too, if the row was read ahead.
    #[inline]
    fn key_ahead(&self) -> Option<&[u8]> {
        self.ahead.as_ref()?.key()
    }

    /// Primary key of the current row: what [`RawTable::get`], `update` and `delete` take. `None` if it is on no row.
    #[inline]
    pub fn key(&self) -> Option<&[u8]> {
        self.key_ahead().or_else(|| self.cursor.as_ref()?.entry_and_key().map(|(_, key)| key))
    }

    /// Key of the current entry of the index: its columns, then those of the primary key.
    #[inline]
    pub fn entry(&self) -> Option<&[u8]> {
        self.key_ahead().or_else(|| self.cursor.as_ref()?.entry_and_key().map(|(entry, _)| entry))
    }

    /// Key of the entry at its position, or its last position: the next move continues after it. After a seek that
    /// found nothing the key that was sought; `None` before the first seek, and where there is none.
    pub fn place(&self) -> Option<&[u8]> {
        self.key_ahead().or_else(|| self.cursor.as_ref().map(Cursor::place).filter(|place| !place.is_empty()))
    }

    /// The requested columns of the current row ([`RawRead::columns`]), in that order, if the cursor has them at hand:
    /// a [covering](RawRead::covering) one over the rows may have read the row ahead. Else they are to be read by
    /// [`read_row`](Self::read_row), which reads both.
    #[inline]
    pub fn values(&self) -> Option<impl Iterator<Item = RawColumn<'_>>> {
        self.ahead.as_ref()?.values()
    }

    /// Copies the current row; false if it is on no row.
    ///
    /// # Errors
    /// [`Error::Usage`] if it reads [keys only](RawRead::keys_only); damage.
    pub fn read_row(&self, row: &mut RawRow) -> Result<bool> {
        if self.read.keys_only {
            return Err(Error::Usage("the cursor reads keys only".to_string()));
        }
        let Some(cursor) = &self.cursor else { return Ok(false) };
        if let Some(ahead) = &self.ahead
            && ahead.read_row(&cursor.version_and_index().0.layouts, row)
        {
            return Ok(true);
        }
        if let (Some(columns), Some(covered), Some((entry, _))) =
            (&self.entry_columns, cursor.covered(), cursor.entry_and_key())
        {
            return columns.read(entry, covered, row).map(|()| true);
        }
        match cursor.row_bytes() {
            Some((layouts, bytes)) => row.fill(layouts, bytes).map(|()| true),
            None => Ok(false),
        }
    }
}

#[cold]
fn stands_nowhere() -> Error {
    Error::Usage("the cursor has no position: seek first".to_string())
}
