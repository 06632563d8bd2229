//! Scans: rows in the order of the primary key or of an index, between two bounds, forward or backward.
//!
//! Rules
//! 1. Bounds are values of the first columns of the index. They become one half-open range of key bytes `[low, high)`:
//!    an inclusive upper or exclusive lower bound covers every key that begins with its values. The order is that of
//!    the index: descending columns go from large to small. A prefix column compares only its first bytes: a truncated
//!    bound is inclusive.
//! 2. A plain scan shows rows as the transaction's level says; a locking scan, and every scan under SERIALIZABLE, reads
//!    the newest committed rows and locks them.
//! 3. Keys, a count, and columns of the index are read from the index alone where its leaves were not changed lately;
//!    otherwise rows are looked up.
//! 4. An iterator copies a row out of its page. Only [`Scan::visit`] shows rows under a page's latch: its closure ends
//!    before the page can change, and cannot call the engine.

use super::write_txn::WriteTxn;
use crate::error::{Error, Result};
use crate::lock::{LockMode, LockWait};
use crate::table::key::{EdgePlace, KeyLayout, successor};
use crate::table::version::TableVersion;
use crate::table::{Row, RowLayouts, RowRef, Table, TableDefinition, Value, ValueRef};
use crate::txn::RowCursor;
use std::sync::Arc;

/// A range of key bytes and how to go through it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Range {
    pub(crate) low: Vec<u8>,
    /// First key beyond; `None` = to the end.
    pub(crate) high: Option<Vec<u8>>,
    pub(crate) reverse: bool,
    pub(crate) lock: LockMode,
    pub(crate) lock_wait: Option<LockWait>,
    pub(crate) one_by_one: bool,
    pub(crate) limit: usize,
    pub(crate) keys_only: bool,
    /// Columns that are read of the rows; `None`: all.
    pub(crate) columns: Option<Vec<usize>>,
}

/// A bound of a scan.
#[derive(Clone, Copy, Debug)]
enum Edge<'v> {
    Open,
    /// All keys that begin with what the columns keep for these values.
    Prefix(&'v [ValueRef<'v>]),
    Inclusive(&'v [ValueRef<'v>]),
    Exclusive(&'v [ValueRef<'v>]),
}

/// A scan being described; see [`iter`](Scan::iter).
#[must_use = "a scan does nothing until iter(), visit() or another of its ends is called"]
pub struct Scan<'s, 'v> {
    pub(super) txn: &'s mut WriteTxn,
    pub(super) table: Table,
    pub(super) index: Option<&'v str>,
    from: Edge<'v>,
    to: Edge<'v>,
    starts_with: Option<&'v [ValueRef<'v>]>,
    reverse: bool,
    limit: usize,
    pub(super) lock: LockMode,
    pub(super) columns: Option<&'v [usize]>,
    pub(super) lock_wait: Option<LockWait>,
    pub(super) one_by_one: bool,
}

impl<'s, 'v> Scan<'s, 'v> {
    pub(crate) fn new(txn: &'s mut WriteTxn, table: &Table) -> Scan<'s, 'v> {
        Scan {
            txn,
            table: table.clone(),
            index: None,
            from: Edge::Open,
            to: Edge::Open,
            starts_with: None,
            reverse: false,
            limit: usize::MAX,
            lock: LockMode::None,
            columns: None,
            lock_wait: None,
            one_by_one: false,
        }
    }

    /// In the order of this index instead of the primary key.
    pub fn index(mut self, name: &'v str) -> Self {
        self.index = Some(name);
        self
    }

    /// From the first row whose key begins with these values or is greater. The ends of a range are not rounded: the
    /// 0.1 of an `F32` column is greater than the `f64` 0.1.
    pub fn from(mut self, values: &'v [ValueRef<'v>]) -> Self {
        self.from = Edge::Inclusive(values);
        self
    }

    /// From the first row whose key is greater and does not begin with these values.
    pub fn from_exclusive(mut self, values: &'v [ValueRef<'v>]) -> Self {
        self.from = Edge::Exclusive(values);
        self
    }

    /// To the last row whose key begins with these values or is smaller.
    pub fn to(mut self, values: &'v [ValueRef<'v>]) -> Self {
        self.to = Edge::Inclusive(values);
        self
    }

    /// To the last row whose key is smaller than these values.
    pub fn to_exclusive(mut self, values: &'v [ValueRef<'v>]) -> Self {
        self.to = Edge::Exclusive(values);
        self
    }

    /// All rows whose first key columns have these values. Floats are rounded to the column's width, as they are when
    /// a row is written.
    pub fn prefix(mut self, values: &'v [ValueRef<'v>]) -> Self {
        self.from = Edge::Prefix(values);
        self.to = Edge::Prefix(values);
        self
    }

    /// All rows whose first key columns have these values, except that the last column (text or binary) only begins
    /// with the last value: `starts_with(&values!["SE", "Lund"])` finds `SE, Lund` and `SE, Lundby`. Overrides other
    /// bounds.
    pub fn starts_with(mut self, values: &'v [ValueRef<'v>]) -> Self {
        self.starts_with = Some(values);
        self
    }

    /// Backward, from the last row to the first.
    pub fn rev(mut self) -> Self {
        self.reverse = true;
        self
    }

    /// At most this many rows.
    pub fn limit(mut self, rows: usize) -> Self {
        self.limit = rows;
        self
    }

    /// Locks every row it returns exclusively (and, under REPEATABLE READ and SERIALIZABLE, the gaps between them).
    pub fn for_update(mut self) -> Self {
        self.lock = LockMode::Exclusive;
        self
    }

    /// As [`for_update`](Self::for_update), but shared.
    pub fn for_share(mut self) -> Self {
        self.lock = LockMode::Shared;
        self
    }

    /// Number of rows in the scan. By an index no row is read, except rows whose entries were changed recently.
    ///
    /// # Errors
    /// As [`iter`](Self::iter) and [`ScanIter::next_ref`].
    pub fn count(self) -> Result<u64> {
        let (mut rows, mut count) = (self.start(true)?.0, 0);
        while rows.advance()? {
            count += 1;
        }
        Ok(count)
    }

    /// The first row of the scan.
    ///
    /// # Errors
    /// As [`iter`](Self::iter) and [`ScanIter::next_ref`].
    pub fn first(self) -> Result<Option<Row>> {
        let max = self.limit.min(1);
        self.limit(max).iter()?.next().transpose()
    }

    /// Starts the scan.
    ///
    /// # Errors
    /// `NoSuchIndex`, `TableDropped`, `BadValue` for a bound that does not fit its column, or for a column that the
    /// table does not have.
    pub fn iter(self) -> Result<ScanIter<'s>> {
        self.start(false).map(|(rows, _)| rows)
    }

    /// The version of the table that the scan uses, and the number of its index.
    pub(super) fn used(&mut self) -> Result<(Arc<TableVersion>, Option<usize>)> {
        let Scan { txn, table, index, lock_wait, .. } = self;
        txn.with_lock_wait(*lock_wait, |txn| txn.use_for_scan(table, *index))
    }

    /// About how many rows the scan would deliver, without reading them: from two descents to the ends of its range,
    /// for any length. Exact for a range within one page; beyond that usually within a third. Rows that were deleted
    /// and are not purged count, and what others have not committed counts too.
    ///
    /// ```
    /// # use highwater::{Database, Options, Schema, Type, values};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Database::open(dir.path(), Options::default())?;
    /// let table = db.create_table("t", Schema::new().column("id", Type::U64).primary_key(&["id"]))?;
    /// db.transact(|txn| (0..100u64).try_for_each(|id| txn.insert(&table, &values![id]).map(drop)))?;
    /// let mut read = db.snapshot()?;
    /// assert_eq!(read.scan(&table).from(&values![20]).to_exclusive(&values![50]).estimate()?, 30);
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`iter`](Self::iter); an I/O error.
    pub fn estimate(mut self) -> Result<u64> {
        let (version, index) = self.used()?;
        let Range { low, high, .. } = self.range(version.key_of_index(index), &version.definition)?;
        let rows = version.tree_of_index(index).estimate_between(&self.txn.inner.ctx, &low, high.as_deref())?;
        Ok(rows.min(self.limit as u64))
    }

    /// The scan, and the number of its index.
    pub(super) fn start(mut self, keys_only: bool) -> Result<(ScanIter<'s>, Option<usize>)> {
        let (version, index) = self.used()?;
        let columns = self.columns.map(<[usize]>::to_vec);
        Ok((self.start_in(version, index, keys_only, columns)?, index))
    }

    /// The scan, of which these columns are read.
    pub(super) fn start_in(
        self,
        version: Arc<TableVersion>,
        index: Option<usize>,
        keys_only: bool,
        columns: Option<Vec<usize>>,
    ) -> Result<ScanIter<'s>> {
        let range = Range { keys_only, columns, ..self.range(version.key_of_index(index), &version.definition)? };
        let projected = self.columns.map(|columns| version.layouts.projected(columns)).transpose()?;
        let empty = self.limit == 0 || range.high.as_ref().is_some_and(|high| *high <= range.low);
        let (wait, txn) = (self.lock_wait, self.txn);
        let open = |txn: &mut WriteTxn| txn.cursor(&version, index, &range);
        let cursor = if empty { None } else { Some(txn.with_lock_wait(wait, open)?) };
        Ok(ScanIter { txn, version, projected, cursor })
    }

    pub(super) fn range(&self, layout: &KeyLayout, table: &TableDefinition) -> Result<Range> {
        let (mut low, high);
        if let Some(values) = self.starts_with {
            low = Vec::new();
            layout.encode_start(table, values, &mut low)?;
            high = successor(low.clone());
            debug_assert!(high.as_ref().is_none_or(|high| *high > low), "rule 1: no key begins with {low:?}");
        } else {
            low = match self.from {
                Edge::Open => Vec::new(),
                Edge::Prefix(values) => encode(layout, table, values)?,
                Edge::Inclusive(values) | Edge::Exclusive(values) => {
                    let is_behind = matches!(self.from, Edge::Exclusive(_));
                    // Nothing is greater than the greatest key: an empty range.
                    match edge(layout, table, values, is_behind, false)? {
                        Some(low) => low,
                        None => return Ok(self.nothing()),
                    }
                }
            };
            high = match self.to {
                Edge::Open => None,
                Edge::Prefix(values) => successor(encode(layout, table, values)?),
                Edge::Inclusive(values) => edge(layout, table, values, true, true)?,
                Edge::Exclusive(values) => edge(layout, table, values, false, true)?,
            };
        }
        Ok(Range { low, high, limit: self.limit, ..self.nothing() })
    }

    fn nothing(&self) -> Range {
        let (low, high) = (Vec::new(), Some(Vec::new()));
        let Scan { reverse, lock, lock_wait, one_by_one, .. } = *self;
        Range { low, high, reverse, lock, lock_wait, one_by_one, limit: 0, keys_only: false, columns: None }
    }
}

fn encode(layout: &KeyLayout, table: &TableDefinition, values: &[ValueRef<'_>]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    layout.encode_values(table, values, &mut out)?;
    Ok(out)
}

/// One end of a range: the first key that begins with these values or is greater, or the first key greater than all
/// that begin with them. `None` beyond the greatest key.
pub(super) fn edge(
    layout: &KeyLayout,
    table: &TableDefinition,
    values: &[ValueRef<'_>],
    is_behind: bool,
    is_upper: bool,
) -> Result<Option<Vec<u8>>> {
    let mut out = Vec::new();
    let is_behind = match layout.encode_edge(table, values, &mut out)? {
        EdgePlace::AsAsked => is_behind,
        EdgePlace::Behind => true,
        EdgePlace::Among => is_upper,
    };
    Ok(if is_behind { successor(out) } else { Some(out) })
}

/// The rows of a scan. After an error it ends.
pub struct ScanIter<'s> {
    pub(super) txn: &'s mut WriteTxn,
    pub(super) version: Arc<TableVersion>,
    /// Of its rows, if they have some of the columns only.
    pub(super) projected: Option<Arc<RowLayouts>>,
    /// `None` once there is no more row.
    pub(super) cursor: Option<RowCursor>,
}

impl ScanIter<'_> {
    /// The next row, read in place: as [`next`](Iterator::next) without a copy.
    ///
    /// # Errors
    /// Lock wait timeout, deadlock, write conflict, I/O or corruption.
    #[inline]
    pub fn next_ref(&mut self) -> Result<Option<RowRef<'_>>> {
        self.advance()?;
        self.cursor.as_ref().map(|cursor| self.layouts().read(cursor.payload())).transpose()
    }
}

impl ScanIter<'_> {
    #[inline]
    fn layouts(&self) -> &RowLayouts {
        self.projected.as_ref().unwrap_or(&self.version.layouts)
    }

    #[inline]
    pub(super) fn advance(&mut self) -> Result<bool> {
        let found = match &mut self.cursor {
            Some(cursor) => self.txn.next(cursor),
            None => Ok(false),
        };
        if !matches!(found, Ok(true)) {
            self.cursor = None;
        }
        found
    }
}

/// The values of the index's columns, then those of the primary key, of an entry.
pub(super) fn decode_entry(version: &TableVersion, index: Option<usize>, entry: &[u8]) -> Result<Vec<Value>> {
    let Some(index) = index else { return version.key.decode(entry).map(|(values, _)| values) };
    if !version.indexes[index].key.is_reversible() {
        let name = &version.definition.indexes[index].name;
        return Err(Error::Usage(format!("index {name} has only beginnings or weights of its columns: read the rows")));
    }
    let (mut values, bytes) = version.indexes[index].key.decode(entry)?;
    values.extend(version.key.decode(&entry[bytes..])?.0);
    Ok(values)
}

impl Iterator for ScanIter<'_> {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Result<Row>> {
        if let Err(error) = self.advance() {
            return Some(Err(error));
        }
        let next = self.cursor.as_ref().map(|cursor| self.layouts().to_row(cursor.payload()));
        if matches!(next, Some(Err(_))) {
            self.cursor = None;
        }
        next
    }
}
