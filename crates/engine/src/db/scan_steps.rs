//! The steps of a scan in a transaction: describing it, opening its cursor, moving it, and showing rows in place.

use super::deferred_end::ClosureCall;
use super::locked_tables::check_since;
use super::scan::{Range, Scan};
use super::write_txn::{HAS_NOT_ENDED, WriteTxn};
use crate::error::{Error, Result};
use crate::lock::LockMode;
use crate::table::version::TableVersion;
use crate::table::{Row, Table, ValueRef};
use crate::txn::{EntryFilter, Isolation, RowCursor, RowVisitor, ScanOptions, TableTrees};
use std::ops::Bound;
use std::sync::Arc;

impl WriteTxn {
    /// The first row, in the order of an index, whose leading columns of that index have these values, as
    /// [`ReadTxn::get_by`](super::ReadTxn::get_by).
    ///
    /// # Errors
    /// [`Error::NoSuchIndex`], or as [`get`](Self::get).
    pub fn get_by(&mut self, table: &Table, index: &str, values: &[ValueRef<'_>]) -> Result<Option<Row>> {
        self.scan(table).index(index).prefix(values).first()
    }

    /// A scan of a table, to be described further.
    pub fn scan<'v>(&mut self, table: &Table) -> Scan<'_, 'v> {
        Scan::new(self, table)
    }

    /// Opens a cursor over an index (`None` = the rows themselves) of a table in use.
    pub(crate) fn cursor(
        &mut self,
        version: &Arc<TableVersion>,
        index: Option<usize>,
        range: &Range,
    ) -> Result<RowCursor> {
        let txn = self.txn.as_mut().expect(HAS_NOT_ENDED);
        check_since(version, txn, range.lock, self.schema_version)?;
        if let Some(i) = index
            && txn.isolation() == Isolation::RepeatableRead
            && (range.lock == LockMode::None || txn.first_committer_wins)
            && version.indexes[i].since > self.schema_version
        {
            let name = &version.definition.indexes[i].name;
            let reason = format!(
                "index {name} was created or rebuilt after this transaction began; begin a new transaction to use it"
            );
            return Err(Error::Usage(reason));
        }
        let is_empty = range.high.as_ref().is_some_and(|high| *high <= range.low);
        debug_assert!(!is_empty && range.limit > 0, "a cursor is opened over no row: {range:?}");
        let options = ScanOptions {
            index,
            lower: if range.low.is_empty() { Bound::Unbounded } else { Bound::Included(&range.low) },
            upper: range.high.as_deref().map_or(Bound::Unbounded, Bound::Excluded),
            reverse: range.reverse,
            lock: range.lock,
            lock_wait: range.lock_wait,
            one_by_one: range.one_by_one,
            limit: range.limit,
            keys_only: range.keys_only,
            columns: range.columns.as_deref(),
        };
        self.before_read(version.name(), range.lock)?;
        let txn = self.txn.as_mut().expect(HAS_NOT_ENDED);
        self.inner.txn_system().scan(txn, version.clone(), &options)
    }

    /// Moves a cursor to its next row.
    #[inline]
    pub(crate) fn next(&mut self, cursor: &mut RowCursor) -> Result<bool> {
        self.next_where(cursor, None)
    }

    /// As [`next`](Self::next), past the entries that the filter refuses.
    #[inline]
    pub(crate) fn next_where(&mut self, cursor: &mut RowCursor, filter: Option<&mut EntryFilter<'_>>) -> Result<bool> {
        self.inner.check_not_closed()?;
        let found = cursor.next_where(self.inner.txn_system(), self.txn.as_mut().expect(HAS_NOT_ENDED), filter);
        let found = found.map_err(|error| cursor.name_damage(error))?;
        self.inner.check_running()?;
        Ok(found)
    }

    /// Hands the rows that are left of a scan to `look`, until it says stop.
    pub(crate) fn look(&mut self, cursor: &mut RowCursor, look: &mut RowVisitor<'_>) -> Result<()> {
        let _over = ClosureCall;
        while self.look_on(cursor, look)? {}
        Ok(())
    }

    /// As [`look`](Self::look), those of one leaf at most; false at the end, or when it says stop.
    pub(crate) fn look_on(&mut self, cursor: &mut RowCursor, look: &mut RowVisitor<'_>) -> Result<bool> {
        self.inner.check_not_closed()?;
        let goes_on = cursor.look(self.inner.txn_system(), self.txn.as_mut().expect(HAS_NOT_ENDED), look);
        let goes_on = goes_on.map_err(|error| cursor.name_damage(error))?;
        self.inner.check_running()?;
        Ok(goes_on)
    }
}
