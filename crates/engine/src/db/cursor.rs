//! Cursors: positions in a table or an index that persist between calls and move both ways.
//!
//! Rules
//! 1. A cursor belongs to the transaction that opened it and borrows it only in a call. It holds no latch, and no page,
//!    between calls; its position is a key.
//! 2. It reads by a scan in the direction of the last move. A move the other way, and one after an error or after a
//!    change by the own transaction, begins another scan at the current key, with the same view.
//! 3. It shows rows as its isolation level does. Under READ COMMITTED an opening and each seek are reads: later moves
//!    use the same view, so the cursor holds purge back. The next move sees changes of the own transaction.
//! 4. A locking cursor locks each row that it reaches.

use super::read_txn::ReadTxn;
use super::scan::{Range, Scan, decode_entry, edge};
use super::session::Session;
use super::write_txn::WriteTxn;
use crate::error::{Error, Result};
use crate::table::version::TableVersion;
use crate::table::{RowLayouts, RowRef, Table, Value, ValueRef};
use crate::txn::{EntryFilter, RowCursor, RowVisitor, ViewHandle};
use std::sync::Arc;

/// A transaction that a cursor can use: a [`WriteTxn`], a [`ReadTxn`] or a [`Session`].
pub trait CursorTxn: sealed::Sealed {}

impl CursorTxn for WriteTxn {}
impl CursorTxn for ReadTxn {}
impl CursorTxn for Session {}

pub(super) mod sealed {
    use super::{ReadTxn, Result, Session, WriteTxn};

    pub trait Sealed {
        fn open_txn(&mut self) -> Result<&mut WriteTxn>;
    }

    impl Sealed for WriteTxn {
        fn open_txn(&mut self) -> Result<&mut WriteTxn> {
            Ok(self)
        }
    }

    impl Sealed for ReadTxn {
        fn open_txn(&mut self) -> Result<&mut WriteTxn> {
            Ok(&mut self.txn)
        }
    }

    impl Sealed for Session {
        fn open_txn(&mut self) -> Result<&mut WriteTxn> {
            self.txn()
        }
    }
}

/// The target of a [`Cursor`]. Values are of the first columns of its index, as those of a scan.
#[derive(Clone, Copy, Debug)]
pub enum Seek<'v> {
    /// To the first row whose key begins with these values or is greater.
    AtLeast(&'v [ValueRef<'v>]),
    /// To the first row whose key is greater and does not begin with these values.
    Above(&'v [ValueRef<'v>]),
    /// To the last row whose key begins with these values or is smaller.
    AtMost(&'v [ValueRef<'v>]),
    /// To the last row whose key is smaller than these values.
    Below(&'v [ValueRef<'v>]),
    /// To the first row.
    First,
    /// To the last row.
    Last,
}

/// Position of a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    BeforeFirst,
    /// At the key, whether a row is there or not.
    Key,
    BehindLast,
}

/// A place in a table or an index, opened by [`Scan::cursor`](crate::Scan::cursor): it goes both ways, and stays open
/// while its transaction does other things. It begins before the first row.
///
/// ```
/// # use highwater::{Database, Options, Schema, Seek, Type, values};
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = Database::open(dir.path(), Options::default())?;
/// let schema = Schema::new().column("id", Type::U64).column("n", Type::U64).primary_key(&["id"]);
/// let table = db.create_table("t", schema)?;
/// db.transact(|txn| txn.insert_many(&table, (1..9u64).map(|id| values![id, id * id])))?;
///
/// let mut txn = db.begin()?;
/// let mut cursor = txn.scan(&table).for_update().cursor()?;
/// assert!(cursor.seek(&mut txn, Seek::AtLeast(&values![5]))?);
/// txn.delete(&table, &values![6])?;
/// txn.insert(&table, &values![0, 0])?;
/// assert!(cursor.next(&mut txn)?);
/// assert_eq!(cursor.row()?.unwrap().u64(0), 7);
/// while cursor.prev(&mut txn)? {}
/// assert!(cursor.next(&mut txn)?);
/// assert_eq!(cursor.row()?.unwrap().u64(0), 0);
/// txn.commit()?;
/// # Ok::<(), highwater::Error>(())
/// ```
pub struct Cursor {
    table: Table,
    version: Arc<TableVersion>,
    /// Rows of some columns.
    projected: Option<Arc<RowLayouts>>,
    index: Option<usize>,
    /// All it may come to; `low` and `high` are its bounds, the rest says how it reads.
    range: Range,
    /// Of the transaction that opened it.
    txn_serial: u64,
    at: At,
    /// Key of the current entry, or of its last position.
    key: Vec<u8>,
    is_on_row: bool,
    /// Its scan, and whether that goes down.
    scan: Option<(RowCursor, bool)>,
    /// The read view of its scans, under READ COMMITTED.
    view: Option<ViewHandle>,
    /// Changes of the transaction until the last move.
    changes: u64,
}

impl Scan<'_, '_> {
    /// A cursor over the rows of the scan; [`rev`](Self::rev) and [`limit`](Self::limit) are ignored.
    ///
    /// # Errors
    /// As [`iter`](Self::iter).
    pub fn cursor(mut self) -> Result<Cursor> {
        let (version, index) = self.used()?;
        let columns = self.columns.map(<[usize]>::to_vec);
        let range = Range { columns, ..self.range(version.key_of_index(index), &version.definition)? };
        let projected = self.columns.map(|columns| version.layouts.projected(columns)).transpose()?;
        Ok(Cursor::open(self.txn, (self.table, version, projected), index, range))
    }
}

/// For the raw API.
impl Cursor {
    /// A cursor over an index by its name, in a range of key bytes.
    pub(super) fn over(txn: &mut WriteTxn, table: &Table, index: &str, range: Range) -> Result<Cursor> {
        let used = txn.with_lock_wait(range.lock_wait, |txn| txn.use_for_scan(table, Some(index)));
        let (version, index) = used?;
        version.layouts.check_columns(range.columns.as_deref().unwrap_or(&[]))?;
        Ok(Cursor::open(txn, (table.clone(), version, None), index, range))
    }

    /// Whether it belongs to this transaction.
    pub(super) fn is_of(&self, txn: &WriteTxn) -> bool {
        txn.serial() == self.txn_serial
    }

    /// Gives it another range, before a seek.
    pub(super) fn set_bounds(&mut self, low: Vec<u8>, high: Option<Vec<u8>>) {
        (self.range.low, self.range.high) = (low, high);
    }

    /// The current entry of its index, and the key of its row.
    pub(super) fn entry_and_key(&self) -> Option<(&[u8], &[u8])> {
        let (scan, _) = self.scan.as_ref().filter(|_| self.is_on_row)?;
        Some((scan.entry(), scan.key()))
    }

    /// Key of the current entry, or of its last position, or the key that was sought.
    pub(super) fn place(&self) -> &[u8] {
        &self.key
    }

    /// The covered columns of the current entry, if it was delivered without its row.
    pub(super) fn covered(&self) -> Option<&[u8]> {
        self.scan.as_ref().filter(|_| self.is_on_row).and_then(|(scan, _)| scan.covered())
    }

    /// The bytes of the current row, unless it was delivered without.
    pub(super) fn row_bytes(&self) -> Option<(&RowLayouts, &[u8])> {
        let (scan, _) = self.scan.as_ref().filter(|_| self.is_on_row)?;
        Some((&self.version.layouts, scan.payload()))
    }

    /// The table as the cursor reads it, and the position of its index.
    pub(super) fn version_and_index(&self) -> (&Arc<TableVersion>, Option<usize>) {
        (&self.version, self.index)
    }

    /// Whether it reads rows upward, and has none that it has copied and not delivered.
    #[inline]
    pub(super) fn may_look_ahead(&self) -> bool {
        self.index.is_none() && self.scan.as_ref().is_some_and(|(scan, is_down)| !is_down && !scan.is_ahead())
    }

    /// Whether this is its transaction, and has changed nothing since the last move.
    #[inline]
    pub(super) fn is_unchanged(&self, txn: &WriteTxn) -> bool {
        self.is_of(txn) && self.changes == txn.changes()
    }

    /// Calls `look` for the next rows upward, those of one leaf at most; false at the end, or when `look` stops. If it
    /// was called, the caller calls [`stand_at`](Self::stand_at) afterwards.
    pub(super) fn look_ahead(&mut self, txn: &mut WriteTxn, look: &mut RowVisitor<'_>) -> Result<bool> {
        self.check(txn)?;
        (self.changes, self.is_on_row) = (txn.changes(), false);
        let Some((scan, _)) = &mut self.scan else { return Ok(false) };
        let goes_on = txn.look_on(scan, look);
        if goes_on.is_err() {
            self.scan = None;
        }
        goes_on
    }

    /// Moves to the key of a returned row: the last one, or one after which the cursor continues.
    pub(super) fn stand_at(&mut self, key: &[u8], is_last: bool) {
        self.key.clear();
        self.key.extend_from_slice(key);
        (self.at, self.is_on_row) = (At::Key, false);
        if !is_last {
            self.scan = None;
        }
        self.check_place();
    }

    /// Has rows read only where the index was changed lately.
    pub(super) fn read_entries(&mut self) {
        self.range.keys_only = true;
    }
}

impl Cursor {
    fn open(
        txn: &WriteTxn,
        (table, version, projected): (Table, Arc<TableVersion>, Option<Arc<RowLayouts>>),
        index: Option<usize>,
        range: Range,
    ) -> Cursor {
        let range = Range { limit: usize::MAX, reverse: false, one_by_one: true, ..range };
        Cursor {
            table,
            version,
            projected,
            index,
            range,
            txn_serial: txn.serial(),
            at: At::BeforeFirst,
            key: Vec::new(),
            is_on_row: false,
            scan: None,
            view: None,
            changes: txn.changes(),
        }
    }

    /// Its table.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Moves to the next row; false at the end: then it is after the last row.
    ///
    /// # Errors
    /// Errors of a scan: a lock that is not granted, an interruption, a write conflict, I/O. The cursor then keeps its
    /// position, but has no row, and the call may be repeated. [`Error::Usage`] in another transaction than its own.
    #[inline]
    pub fn next(&mut self, txn: &mut impl CursorTxn) -> Result<bool> {
        self.go(txn.open_txn()?, false, None)
    }

    /// Moves to the previous row; false at the end: then it is before the first row.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    #[inline]
    pub fn prev(&mut self, txn: &mut impl CursorTxn) -> Result<bool> {
        self.go(txn.open_txn()?, true, None)
    }

    /// Moves to a place. If there is no such row, returns false, and the position is after the last row, or before the
    /// first one after a search downward.
    ///
    /// # Errors
    /// As [`next`](Self::next); [`Error::BadValue`] for a value that does not fit its column.
    pub fn seek(&mut self, txn: &mut impl CursorTxn, to: Seek<'_>) -> Result<bool> {
        let txn = txn.open_txn()?;
        self.check(txn)?;
        let layout = self.version.key_of_index(self.index);
        let edge = |values, is_behind, is_upper| edge(layout, &self.version.definition, values, is_behind, is_upper);
        // A half-open range from or up to an edge; no edge means the end of the index.
        let (at, reverse) = match to {
            Seek::First => (Some(Vec::new()), false),
            Seek::Last => (None, true),
            Seek::AtLeast(values) => (edge(values, false, false)?, false),
            Seek::Above(values) => (edge(values, true, false)?, false),
            Seek::AtMost(values) => (edge(values, true, true)?, true),
            Seek::Below(values) => (edge(values, false, true)?, true),
        };
        self.seek_key(txn, at, reverse, None)
    }

    /// Goes to the first entry from a key on, or to the last one before it; without a key, the end of the index.
    pub(super) fn seek_key(
        &mut self,
        txn: &mut WriteTxn,
        at: Option<Vec<u8>>,
        reverse: bool,
        filter: Option<&mut EntryFilter<'_>>,
    ) -> Result<bool> {
        self.check(txn)?;
        (self.scan, self.view, self.is_on_row) = (None, None, false);
        let Some(at) = at else {
            self.at = At::BehindLast;
            return if reverse { self.go(txn, true, filter) } else { Ok(false) };
        };
        let is_before = at <= self.range.low;
        self.at = if is_before { At::BeforeFirst } else { At::Key };
        if is_before && reverse {
            return Ok(false);
        }
        self.key = at;
        self.changes = txn.changes();
        self.begin_scan(txn, reverse, true)?;
        self.go(txn, reverse, filter)
    }

    /// Checks the position, when a move has begun or ended.
    fn check_place(&self) {
        debug_assert!(!self.is_on_row || self.at == At::Key, "rule 1: it is on a row, and {:?}", self.at);
        let entry = || self.scan.as_ref().map(|(scan, _)| scan.entry());
        debug_assert!(!self.is_on_row || entry() == Some(&self.key[..]), "rule 1: its place is not the entry it shows");
        let Range { limit, reverse, one_by_one, .. } = self.range;
        debug_assert!(limit == usize::MAX && !reverse && one_by_one, "rule 2: its range has a limit or a direction");
    }

    fn check(&self, txn: &WriteTxn) -> Result<()> {
        match txn.serial() == self.txn_serial {
            true => Ok(()),
            false => Err(Error::Usage("the cursor belongs to another transaction".to_string())),
        }
    }

    /// The keys that are before it in this direction, with its own if that is to be met; `None` if there are none.
    fn range_from(&self, reverse: bool, with_key: bool) -> Option<Range> {
        let Range { mut low, mut high, .. } = self.range.clone();
        match (self.at, reverse) {
            (At::BeforeFirst, true) | (At::BehindLast, false) => return None,
            (At::BeforeFirst, false) | (At::BehindLast, true) => {}
            (At::Key, true) => high = Some(high.map_or(self.key.clone(), |high| high.min(self.key.clone()))),
            (At::Key, false) => {
                let mut from = self.key.clone();
                from.extend((!with_key).then_some(0));
                low = low.max(from);
            }
        }
        let is_empty = high.as_ref().is_some_and(|high| *high <= low);
        (!is_empty).then(|| Range { low, high, reverse, ..self.range.clone() })
    }

    /// Begins to read in a direction, by the view of the scan before.
    fn begin_scan(&mut self, txn: &mut WriteTxn, reverse: bool, with_key: bool) -> Result<()> {
        self.scan = None;
        let Some(range) = self.range_from(reverse, with_key) else { return Ok(()) };
        let open = |txn: &mut WriteTxn| txn.cursor(&self.version, self.index, &range);
        let mut scan = txn.with_lock_wait(range.lock_wait, open)?;
        scan.share_view(&mut self.view);
        self.scan = Some((scan, reverse));
        Ok(())
    }

    /// Moves by one row, past the entries that the filter refuses.
    #[inline]
    pub(super) fn go(
        &mut self,
        txn: &mut WriteTxn,
        reverse: bool,
        filter: Option<&mut EntryFilter<'_>>,
    ) -> Result<bool> {
        self.check(txn)?;
        self.check_place();
        self.is_on_row = false;
        let changes = txn.changes();
        let has_changed = std::mem::replace(&mut self.changes, changes) != changes;
        let goes_on =
            |(scan, is_down): &(RowCursor, bool)| *is_down == reverse && !(has_changed && scan.may_be_past_new_rows());
        if !self.scan.as_ref().is_some_and(goes_on) {
            self.begin_scan(txn, reverse, false)?;
        }
        let found = match &mut self.scan {
            Some((scan, _)) => txn.next_where(scan, filter),
            None => Ok(false),
        };
        match &self.scan {
            Some((scan, _)) if matches!(found, Ok(true)) => {
                self.key.clear();
                self.key.extend_from_slice(scan.entry());
                (self.at, self.is_on_row) = (At::Key, true);
            }
            _ => self.scan = None,
        }
        if matches!(found, Ok(false)) {
            self.at = if reverse { At::BeforeFirst } else { At::BehindLast };
        }
        self.check_place();
        found
    }

    /// The current row; `None` at the ends, after an error, and before the first move.
    ///
    /// # Errors
    /// Damage.
    pub fn row(&self) -> Result<Option<RowRef<'_>>> {
        let Some((scan, _)) = self.scan.as_ref().filter(|_| self.is_on_row) else { return Ok(None) };
        self.projected.as_deref().unwrap_or(&self.version.layouts).read(scan.payload()).map(Some)
    }

    /// The values of its index's columns, then those of the primary key, of the current row.
    ///
    /// # Errors
    /// Damage.
    pub fn key(&self) -> Result<Option<Vec<Value>>> {
        if !self.is_on_row {
            return Ok(None);
        }
        decode_entry(&self.version, self.index, &self.key).map(Some)
    }
}

impl WriteTxn {
    /// Tells it apart from all others; 0 once it has ended.
    fn serial(&self) -> u64 {
        self.txn.as_ref().map_or(0, |txn| txn.serial)
    }

    /// Counts what may have changed rows.
    fn changes(&self) -> u64 {
        self.txn.as_ref().map_or(0, |txn| txn.changes)
    }
}
