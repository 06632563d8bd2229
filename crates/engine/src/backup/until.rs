//! The moment to which a database is restored, and the end of the replayed redo.
//!
//! Rules
//! 1. Redo is replayed up to exactly one group. If less than requested is replayed, that is an error, or (rule 4) noted
//!    in the report.
//! 2. The replay for a time ends before the first mini-transaction that logs a later one. A commit logs its time after
//!    the call and before the acknowledgement. So the restore has every commit acknowledged before the time, and none
//!    that was called after it. Schema changes log the time too. If the clock goes back, the latest time is logged
//!    again until the clock has caught up: times never decrease, and commits meanwhile count as committed at that time.
//! 3. Times are of the clock of the machine on which the database was used. Only redo that was made while it was
//!    archived has them.
//! 4. After the last archived commit, either no transaction committed or redo was not archived. So for a later time all
//!    redo is restored, and the report says that the redo ends before it.

use super::maps::Maps;
use crate::error::{Error, Result};
use crate::page::PageOp;
use crate::space::header;
use crate::space::layout::MAX_EXTENTS;
use crate::table::DateTime;
use crate::types::{EXTENT_PAGES, Lsn, PageNo, unix_us};
use std::fmt;
use std::str::FromStr;

/// A moment in the history of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// All redo up to this LSN ([`Database::lsn`](crate::Database::lsn)).
    Lsn(u64),
    /// All commits up to this time, in UTC.
    Time(DateTime),
    /// All commits up to this transaction's commit, this one included ([`WriteTxn::id`](crate::WriteTxn::id)).
    Transaction(u64),
}

/// A commit that redo holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The transaction's id.
    pub transaction: u64,
    /// When, in UTC.
    pub time: DateTime,
    /// The LSN up to which the log has it.
    pub lsn: u64,
}

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Until::Lsn(lsn) => write!(f, "LSN {lsn}"),
            Until::Time(time) => write!(f, "{time}Z"),
            Until::Transaction(id) => write!(f, "the commit of transaction {id}"),
        }
    }
}

impl FromStr for Until {
    type Err = String;

    /// Reads an LSN (`123456`), `txn:` and the id of a transaction, or a date and time in UTC as [`DateTime`] reads it.
    fn from_str(text: &str) -> std::result::Result<Until, String> {
        let number = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| text.parse().ok()).flatten()
        };
        let wrong = || {
            format!(
                "{text:?} is neither an LSN such as 123456, nor a UTC time such as 2026-01-31T12:00:00.5, nor txn:789"
            )
        };
        match (text.strip_prefix("txn:"), number(text)) {
            (Some(id), _) => number(id).map(Until::Transaction).ok_or_else(wrong),
            (None, Some(lsn)) => Ok(Until::Lsn(lsn)),
            (None, None) => text.parse().map(Until::Time).map_err(|_| wrong()),
        }
    }
}

/// Decodes an operation, of a page that a data file can have.
fn decode(end: Lsn, payload: &[u8]) -> Result<(PageNo, PageOp<'_>, usize)> {
    let decoded = PageOp::decode(payload)
        .map_err(|error| Error::Corrupt(format!("redo ending at LSN {end} does not decode: {error}")))?;
    match decoded.0.0 < MAX_EXTENTS * EXTENT_PAGES {
        true => Ok(decoded),
        false => Err(Error::Corrupt(format!("redo ending at LSN {end} changes page {}, which no file has", decoded.0))),
    }
}

/// Follows redo, group by group, up to a moment.
#[derive(Debug)]
pub(super) struct Target {
    until: Option<Until>,
    is_reached: bool,
    /// The highest id of a transaction whose commit was seen.
    newest_transaction: u64,
    /// The last commit that belongs to the restored database.
    pub last_commit: Option<Commit>,
    /// Pages that the database has, as far as the redo says: those that it changes are among them.
    pub pages: u32,
    /// The maps of extents among the pages that the redo changes.
    pub maps: Maps,
}

impl Target {
    pub(super) fn new(until: Option<Until>) -> Target {
        Target { until, is_reached: false, newest_transaction: 0, last_commit: None, pages: 0, maps: Maps::default() }
    }

    /// Whether the group that ends at `end` is replayed; once one is not, none is.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for redo that does not decode.
    pub(super) fn admits(&mut self, end: Lsn, payload: &[u8]) -> Result<bool> {
        let is_behind = matches!(self.until, Some(Until::Lsn(lsn)) if end.0 > lsn);
        if self.is_reached || is_behind {
            self.is_reached = true;
            return Ok(false);
        }
        let is_next = self.last_commit.is_none_or(|last| last.lsn < end.0);
        debug_assert!(is_next, "rule 1: the group up to {end} comes behind {:?}", self.last_commit);
        let (mut commit, mut pages, mut rest) = (None, self.pages, payload);
        while !rest.is_empty() {
            let (page, op, bytes) = decode(end, rest)?;
            if let PageOp::CommitTime { trx_id, unix_us } = op {
                let time = DateTime::from_unix_us(i64::try_from(unix_us).unwrap_or(i64::MAX));
                if matches!(self.until, Some(Until::Time(until)) if time > until) {
                    self.is_reached = true;
                    return Ok(false);
                }
                commit = (trx_id != 0).then_some(Commit { transaction: trx_id, time, lsn: end.0 }).or(commit);
            }
            let extents = Some(page).filter(|page| *page == PageNo(0)).and_then(|_| header::extents_set_by(&op));
            self.maps.note(page);
            pages = pages.max(page.0 + 1).max(extents.unwrap_or(0).saturating_mul(EXTENT_PAGES));
            rest = &rest[bytes..];
        }
        self.newest_transaction = self.newest_transaction.max(commit.map_or(0, |commit| commit.transaction));
        (self.pages, self.last_commit) = (pages, commit.or(self.last_commit));
        self.is_reached = match self.until {
            Some(Until::Lsn(lsn)) => end.0 == lsn,
            Some(Until::Transaction(id)) => commit.is_some_and(|commit| commit.transaction == id),
            Some(Until::Time(_)) | None => false,
        };
        Ok(true)
    }

    /// Notes a group that is replayed for any moment.
    ///
    /// # Errors
    /// As [`admits`](Self::admits).
    pub(super) fn note(&mut self, end: Lsn, payload: &[u8]) -> Result<()> {
        let mut rest = payload;
        while !rest.is_empty() {
            let (page, _, bytes) = decode(end, rest)?;
            self.maps.note(page);
            rest = &rest[bytes..];
        }
        Ok(())
    }

    /// No group after the last admitted one is restored.
    pub(super) fn is_reached(&self) -> bool {
        self.is_reached
    }

    /// The archive ends at `end`. True if that is before the requested time: nothing after it was archived, and perhaps
    /// nothing happened (rule 4).
    ///
    /// # Errors
    /// As [`end_at`](Self::end_at) for other moments, and for a time that has not come.
    pub(super) fn archive_ends_at(&self, end: Lsn) -> std::result::Result<bool, String> {
        match self.until {
            Some(Until::Time(time)) if !self.is_reached && time <= now() => Ok(true),
            Some(Until::Time(time)) if !self.is_reached => {
                let missed = self.missed(end, Until::Time(time));
                Err(format!("{missed}; that time has not come (times are in UTC: it is {}Z)", now()))
            }
            _ => self.end_at(end).map(|()| false),
        }
    }

    /// The end of all redo is reached at `end`.
    ///
    /// # Errors
    /// A message that this is before the requested moment.
    pub(super) fn end_at(&self, end: Lsn) -> std::result::Result<(), String> {
        match self.until {
            None => Ok(()),
            Some(_) if self.is_reached => Ok(()),
            Some(Until::Lsn(lsn)) if lsn <= end.0 => Ok(()),
            Some(until) => Err(self.missed(end, until)),
        }
    }

    fn missed(&self, end: Lsn, until: Until) -> String {
        let last = self.last_commit.map_or(String::new(), |commit| {
            format!("; its last commit is that of transaction {} at {}Z", commit.transaction, commit.time)
        });
        match until {
            Until::Transaction(id) if id <= self.newest_transaction => format!(
                "the redo after its pages, up to LSN {end}, lacks {until}: it came before them, or was rolled \
                 back{last}"
            ),
            _ => format!("the redo ends at LSN {end}, before {until}{last}"),
        }
    }
}

/// The present time.
fn now() -> DateTime {
    DateTime::from_unix_us(i64::try_from(unix_us()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redo_of_a_page_that_no_file_has_is_an_error() {
        for (page, is_right) in [(MAX_EXTENTS * EXTENT_PAGES - 1, true), (MAX_EXTENTS * EXTENT_PAGES, false)] {
            let mut redo = Vec::new();
            PageOp::SetBits { offset: 100, mask: 1 }.encode(PageNo(page), &mut redo);
            assert_eq!(Target::new(None).admits(Lsn(9), &redo).is_ok(), is_right);
            assert_eq!(Target::new(None).note(Lsn(9), &redo).is_ok(), is_right);
        }
    }
}
