//! Undo streams: pages, links, records, and the overflow chains that records own.
//!
//! Rules
//! 1. A chain belongs to the row that refers to it; an Update record that is not dead owns the chains that it names,
//!    and every record does once purge or rollback has begun to free them.
//! 2. No transaction is active on a quiet database. One may be prepared.

use super::checker::{Checker, FindingPlace};
use crate::btree::check::reason_of;
use crate::error::{Error, Result};
use crate::space::SEGMENT_UNDO;
use crate::types::{PageNo, SegmentId, TableId};
use crate::undo::record::{TxnState, UndoKind, UndoRecord};
use crate::undo::{self, RECORDS_AT, StreamEntry, UndoFields, read_directories, record_at};
use std::collections::HashMap;

/// The position of the walk of a stream.
struct At {
    page: PageNo,
    /// The page before; 0 on the first one.
    previous: PageNo,
    /// End of records on it.
    previous_end: usize,
    /// Transactions begun so far; `None` before the first page was read.
    begun: Option<u64>,
    /// The newest header record.
    header: Option<undo::UndoPlace>,
}

/// Overflow segment and place of each table.
type Chains = HashMap<TableId, (SegmentId, FindingPlace)>;

impl Checker<'_> {
    pub(super) fn check_undo(&mut self) -> Result<()> {
        let (entries, pages) = match read_directories(self.subject.ctx, self.subject.space) {
            Ok((entries, pages, _)) => (entries, pages),
            Err(error) => return self.undo_damage(PageNo(0), error),
        };
        for page in pages {
            self.claim(page, SEGMENT_UNDO, &FindingPlace::default());
        }
        let of = |table: &std::sync::Arc<crate::table::handle::TableShared>| {
            let rows = table.current.read().clone();
            (rows.id, (rows.overflow, FindingPlace { table: Some(table.name.clone()), index: None }))
        };
        let chains: Chains = self.subject.tables.iter().map(of).collect();
        self.report.counts.undo_streams = entries.len() as u64;
        for (number, entry) in entries.iter().enumerate().filter(|(_, entry)| **entry != StreamEntry::VACANT) {
            self.check_stream(number, entry, &chains)?;
        }
        Ok(())
    }

    /// Reports damage of the undo log, on the page the error names.
    fn undo_damage(&mut self, page: PageNo, error: Error) -> Result<()> {
        let page = if let Error::CorruptPage { page, .. } = &error { *page } else { page };
        let reason = reason_of(error)?;
        // Chains that undo records own may not have been reached.
        let overflow = self.owners.iter().filter(|(_, owner)| owner.kind == super::checker::OwnerKind::Overflow);
        let overflow: Vec<_> = overflow.map(|(segment, _)| SegmentId(*segment)).collect();
        self.damaged.extend(overflow);
        self.find_on_page(page, SEGMENT_UNDO, &FindingPlace::default(), reason);
        Ok(())
    }

    fn check_stream(&mut self, number: usize, entry: &StreamEntry, chains: &Chains) -> Result<()> {
        let mut at = At { page: entry.first, previous: PageNo(0), previous_end: 0, begun: None, header: None };
        loop {
            if !self.claim(at.page, SEGMENT_UNDO, &FindingPlace::default()) {
                let text = format!("undo stream {number} reaches this page twice");
                self.find_on_page(at.page, SEGMENT_UNDO, &FindingPlace::default(), text);
                return Ok(());
            }
            let next = match self.check_undo_page(&mut at, chains) {
                Ok(next) => next,
                Err(error) => return self.undo_damage(at.page, error),
            };
            match (at.page == entry.last, next) {
                (true, PageNo(0)) => break,
                (false, PageNo(0)) => {
                    let text = format!("undo stream {number} ends here, not on page {}", entry.last);
                    return self.undo_damage(at.page, Error::corrupt_page(at.page, text));
                }
                (true, _) => {
                    let text = format!("undo stream {number} continues after its last page");
                    return self.undo_damage(at.page, Error::corrupt_page(at.page, text));
                }
                (false, next) => (at.previous, at.page) = (at.page, next),
            }
        }
        if entry.ended_at != 0 && entry.ended_at != at.previous_end {
            let text = format!("undo stream {number} ends at {}, not at {}", at.previous_end, entry.ended_at);
            self.find(Some(entry.last), &FindingPlace::default(), text);
        }
        if at.begun.unwrap_or(0) < entry.purged {
            let text = format!("undo stream {number} has purged more transactions than it began");
            self.find(Some(entry.last), &FindingPlace::default(), text);
        }
        Ok(())
    }

    /// Checks one page; returns the next one.
    fn check_undo_page(&mut self, at: &mut At, chains: &Chains) -> Result<PageNo> {
        let page = self.subject.ctx.pool.fix_s(at.page)?.to_vec();
        let fields = UndoFields::read(&page, at.page)?;
        if let Some(begun) = at.begun {
            let links =
                (fields.previous, fields.previous_end, fields.begun_before) == (at.previous, at.previous_end, begun);
            if !links || fields.header.is_some_and(|header| Some(header) != at.header) {
                return Err(Error::corrupt_page(at.page, "its fields do not match the undo page before it"));
            }
        }
        if at.begun.is_none() {
            at.header = fields.header;
        }
        let mut begun = fields.begun_before;
        let mut offset = RECORDS_AT;
        while let Some(record) = record_at(&page, at.page, offset)? {
            if record.kind == UndoKind::Header {
                begun += 1;
                at.header = Some(undo::UndoPlace { page: at.page, offset });
            }
            self.check_undo_record(&record, chains).map_err(|error| self.located(error, at.page, offset))?;
            self.report.counts.undo_records += 1;
            offset += record.bytes;
        }
        (at.begun, at.previous_end) = (Some(begun), offset);
        Ok(fields.next)
    }

    fn located(&self, error: Error, page: PageNo, offset: usize) -> Error {
        match error {
            Error::Corrupt(reason) => Error::corrupt_page(page, format!("{reason} (at {offset})")),
            other => other,
        }
    }

    fn check_undo_record(&mut self, record: &UndoRecord<'_>, chains: &Chains) -> Result<()> {
        match record.kind {
            UndoKind::Header => {
                let (id, state, number) = record.header()?;
                let next = self.subject.txns.next_id();
                let is_left = state == TxnState::Active && !self.subject.txns.waits_for_collation(id);
                if is_left || id.0 >= next || number >= next {
                    let text = format!(
                        "transaction {id} is {state:?} with number {number}, but transaction ids are below {next}"
                    );
                    return Err(Error::Corrupt(text));
                }
                self.report.counts.transactions_prepared += u64::from(state == TxnState::Prepared);
                Ok(())
            }
            UndoKind::Insert => record.row().map(drop),
            UndoKind::Overflow => record.overflow().map(drop),
            UndoKind::Xid => record.xid().map(drop),
            UndoKind::Update | UndoKind::Delete => self.check_undo_change(record, chains),
        }
    }

    fn check_undo_change(&mut self, record: &UndoRecord<'_>, chains: &Chains) -> Result<()> {
        let change = record.change()?;
        let owns = record.freeing || (record.kind == UndoKind::Update && !record.dead);
        if owns && let Some((segment, place)) = chains.get(&change.table) {
            for (_, reference) in change.chains() {
                self.check_chain(reference, *segment, place, !record.freeing, &mut Vec::new())?;
            }
        }
        Ok(())
    }
}
