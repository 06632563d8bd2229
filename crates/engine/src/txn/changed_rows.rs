//! The rows that a transaction has changed in tables that log their changes, in their final state.
//!
//! Rules
//! 1. The undo log has these rows; changes of rows record nothing else. Records that a partial rollback has undone are
//!    dead, and are skipped.
//! 2. A row that was changed several times appears once, at the undo record to which its newest version points. The
//!    version before the transaction's own says whether the row existed before. A row that the transaction has inserted
//!    and deleted does not appear.
//! 3. The transaction has not ended, so its rows are locked, and its undo records exist. Records that are appended
//!    meanwhile are not read.
//! 4. One page of records is in memory at a time.

use super::read::StoredRow;
use super::system::TxnSystem;
use super::table_trees::TableTrees;
use super::transaction::{Txn, TxnState};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::row::format::RowHeader;
use crate::types::{PageNo, RollPtr, TableId, TxnId};
use crate::undo::record::UndoKind;
use crate::undo::{RECORDS_AT, UndoPlace, place_of, pointer_to, scan_page, with_record};
use std::sync::Arc;

/// A row that a transaction has changed.
pub(crate) struct ChangedRow<'a> {
    pub(crate) table: &'a dyn TableTrees,
    pub(crate) key: &'a [u8],
    /// Whether it was there before the transaction.
    pub(crate) existed: bool,
    /// As the transaction leaves it, with the columns that are on overflow pages; `None`: deleted.
    pub(crate) row: Option<&'a [u8]>,
}

/// A record of the undo log that names a row.
struct NamedRow {
    place: UndoPlace,
    table: TableId,
    key: Vec<u8>,
}

/// See the file's head.
pub(crate) struct ChangedRows {
    /// The position of the next unread record.
    next: Option<UndoPlace>,
    end: UndoPlace,
    pages_read: u32,
    records: std::vec::IntoIter<NamedRow>,
    record: Option<NamedRow>,
    /// The table that was looked for last, if it logs changes.
    table: Option<(TableId, Option<Arc<dyn TableTrees>>)>,
    row: Vec<u8>,
}

impl Txn {
    /// The rows that it has changed so far.
    pub(crate) fn changed_rows(&self) -> ChangedRows {
        let goes_on = matches!(self.state, TxnState::Active | TxnState::Prepared);
        debug_assert!(goes_on, "rule 3: the rows of a transaction that is {:?}", self.state);
        let next = self.undo.as_ref().and_then(|undo| undo.start());
        let nowhere = UndoPlace { page: PageNo(0), offset: 0 };
        ChangedRows {
            next,
            end: self.undo.as_ref().map_or(nowhere, |undo| undo.tail()),
            pages_read: 0,
            records: Vec::new().into_iter(),
            record: None,
            table: None,
            row: Vec::new(),
        }
    }
}

impl ChangedRows {
    /// The next one.
    ///
    /// # Errors
    /// I/O, corruption.
    pub(crate) fn next(&mut self, system: &TxnSystem, txn: &Txn) -> Result<Option<ChangedRow<'_>>> {
        let (existed, exists) = loop {
            let Some(record) = self.next_record(system)? else { return Ok(None) };
            if self.find_table(system, record.table)? {
                let found = self.look(&system.ctx, txn.id, &record)?;
                self.record = Some(record);
                if let Some(found) = found {
                    break found;
                }
            }
        };
        let (Some(record), Some((_, Some(table)))) = (&self.record, &self.table) else { return Ok(None) };
        let row = exists.then_some(&self.row[..]);
        Ok(Some(ChangedRow { table: &**table, key: &record.key, existed, row }))
    }

    /// The key of the first row of this table, in any state.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub(crate) fn first_key_of(mut self, system: &TxnSystem, table: TableId) -> Result<Option<Vec<u8>>> {
        while let Some(record) = self.next_record(system)? {
            if record.table == table {
                return Ok(Some(record.key));
            }
        }
        Ok(None)
    }

    /// Rule 2: whether the row was there before, and whether it is there now, if this is its record. Its row is in
    /// `row` then.
    fn look(&mut self, ctx: &Context, own: TxnId, record: &NamedRow) -> Result<Option<(bool, bool)>> {
        let Some((_, Some(table))) = &self.table else { return Ok(None) };
        let stored = StoredRow::new(ctx, &**table, &record.key);
        let Some(newest) = stored.newest(&mut self.row)? else { return Ok(None) };
        if newest.trx_id != own || newest.roll_ptr != pointer_to(record.place) {
            return Ok(None);
        }
        let (existed, exists) = (existed_before(ctx, own, newest)?, !newest.is_delete_marked());
        if exists {
            stored.resolve(&newest, &mut self.row)?;
        }
        Ok((existed || exists).then_some((existed, exists)))
    }

    /// Whether the table of this number logs changes; it is in `table` then.
    fn find_table(&mut self, system: &TxnSystem, id: TableId) -> Result<bool> {
        if self.table.as_ref().is_none_or(|(known, _)| *known != id) {
            self.table = Some((id, system.table(id)?.filter(|table| table.logs_changes())));
        }
        Ok(self.table.as_ref().is_some_and(|(_, table)| table.is_some()))
    }

    fn next_record(&mut self, system: &TxnSystem) -> Result<Option<NamedRow>> {
        loop {
            if let Some(record) = self.records.next() {
                return Ok(Some(record));
            }
            let Some(from) = self.next else { return Ok(None) };
            self.read_page(system, from)?;
        }
    }

    fn read_page(&mut self, system: &TxnSystem, from: UndoPlace) -> Result<()> {
        self.pages_read += 1;
        if self.pages_read > system.space.page_count() {
            return Err(Error::corrupt_page(from.page, "an undo stream has a cycle"));
        }
        let (mut records, end) = (Vec::new(), self.end);
        let (_, next) = scan_page(&system.ctx, from, |offset, record, _| {
            let place = UndoPlace { page: from.page, offset };
            if place == end {
                return Ok(false);
            }
            if !record.dead && matches!(record.kind, UndoKind::Insert | UndoKind::Update | UndoKind::Delete) {
                let (table, key) = record.row()?;
                records.push(NamedRow { place, table, key: key.to_vec() });
            }
            Ok(true)
        })?;
        let ends = from.page == end.page || next == PageNo(0);
        self.next = (!ends).then_some(UndoPlace { page: next, offset: RECORDS_AT });
        self.records = records.into_iter();
        Ok(())
    }
}

/// Whether a row, whose newest version is one of the transaction's, was there before it.
fn existed_before(ctx: &Context, own: TxnId, mut version: RowHeader) -> Result<bool> {
    while version.trx_id == own {
        if version.roll_ptr == RollPtr::NONE {
            return Ok(false);
        }
        let before = with_record(ctx, place_of(version.roll_ptr), |record| match record.kind {
            UndoKind::Insert => Ok(None),
            _ => record.change().map(|change| Some(change.old)),
        })?;
        match before {
            Some(before) => version = before,
            None => return Ok(false),
        }
    }
    Ok(!version.is_delete_marked())
}
