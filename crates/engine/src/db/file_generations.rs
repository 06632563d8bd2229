//! The check whether `data` and `redo` belong together. Page 0 has a mark ([`LogMark`]) with the generation of the log
//! that last used the data file, so an opening recognizes files of different ages.
//!
//! A generation of the log is a number that grows by one at each opening and at each clean close, so no two histories
//! of the same files have the same number.
//!
//! Rules (crash order)
//! 1. Opening, after recovery has ended at LSN `e` of generation `g`: the mark *opening* `g + 1, e` is durable before
//!    the log's header says `g + 1`; the mark *open* is durable before anything is appended.
//! 2. Closing at LSN `e`, the end of the log, with nothing dirty: the mark *closed* `g + 1, e` is durable before the
//!    log's header says `g + 1`. If a thread appended meanwhile, the log keeps its generation and the next opening
//!    recovers.
//! 3. So the data file is one generation ahead of the log exactly after a crash within these steps, and then its mark
//!    has the LSN at which the log must end. Any other difference means that one of the files is an older version of
//!    itself.
//!
//! 4. A mark is a change without redo, so page 0 keeps its LSN. The page counts such changes, and the stores
//!    distinguish its versions by that count.
//!
//! Not recognized: two versions of a file from the same opening (a copy made while the database was open) before
//! the database was closed. Copies made while a database is open are not a backup.

use crate::error::{Error, Result};
use crate::log::{Log, RecoveryScan};
use crate::page;
use crate::pool::Pool;
use crate::space::header::{self, LogMark, MarkState};
use crate::store::PageSource;
use crate::types::{Lsn, PageNo};
use highwater_storage::AlignedBuf;

/// The file, of two, that is an older version of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Older {
    Data,
    Redo,
}

/// Compares the data file's mark with a log of `generation` that ends at `end`.
fn older(mark: &LogMark, generation: u64, end: Lsn) -> Option<Older> {
    use MarkState::{Closed, Open, Opening};
    if mark.generation < generation {
        return Some(Older::Data);
    }
    if mark.generation == generation {
        // A log that was closed has no group after its last checkpoint.
        return match mark.state {
            Closed if end < mark.lsn => Some(Older::Redo),
            Closed if end > mark.lsn => Some(Older::Data),
            Opening | Open | Closed => None,
        };
    }
    let is_crash_window = mark.generation == generation + 1
        && match mark.state {
            Opening => end == mark.lsn,
            // A thread may have appended after the mark was written.
            Closed => end >= mark.lsn,
            Open => false,
        };
    (!is_crash_window).then_some(Older::Redo)
}

/// Refuses a data file and a log of different ages. If a crash tore page 0, this is checked after it has been repaired.
///
/// # Errors
/// [`Error::Corrupt`] says which file is the older one.
pub(super) fn check(pages: &dyn PageSource, redo: &str, log: &Log, scan: &RecoveryScan) -> Result<()> {
    let Some(mark) = stored_mark(pages)? else { return Ok(()) };
    let Some(older) = older(&mark, log.generation(), scan.end_lsn) else { return Ok(()) };
    let data = &*pages.name();
    let (old, new) = match older {
        Older::Data => (data, redo),
        Older::Redo => (redo, data),
    };
    Err(Error::Corrupt(format!(
        "{old} is older than {new}: {data} was last used in generation {} of the redo log (from LSN {}), {redo} is in \
         generation {} and ends at LSN {}; put back the {} that belongs to it, or all three files of one backup",
        mark.generation,
        mark.lsn,
        log.generation(),
        scan.end_lsn,
        if older == Older::Data { "data file" } else { "redo log" },
    )))
}

/// The mark on disk; `None` if page 0 does not verify.
fn stored_mark(pages: &dyn PageSource) -> Result<Option<LogMark>> {
    if pages.pages()? == 0 {
        return Ok(None);
    }
    let mut first = AlignedBuf::zeroed(pages.page_bytes());
    pages.read(PageNo(0), &mut first)?;
    match page::header::verify(&first, PageNo(0)) {
        Ok(()) => header::log_mark(&first).map(Some),
        Err(_) => Ok(None),
    }
}

/// Starts the log after what recovery has made durable (rule 1). Nothing has been appended yet.
///
/// # Errors
/// An I/O error.
pub(super) fn start(pool: &Pool, log: &Log, end: Lsn) -> Result<()> {
    let generation = log.generation() + 1;
    put_mark(pool, LogMark { state: MarkState::Opening, generation, lsn: end })?;
    log.note_store_mark(pool.store().mark());
    log.start(end)?;
    debug_assert_eq!(log.generation(), generation, "rule 1: the log begins another generation than the data file");
    debug_assert_eq!(log.checkpoint_lsn(), log.end_lsn(), "rule 1: redo is appended before the mark *open*");
    put_mark(pool, LogMark { state: MarkState::Open, generation, lsn: end })
}

/// Ends the log (rule 2), and may leave only `keep_bytes` of it. Nothing is dirty, and the checkpoint is at the log's
/// end, unless a thread continues appending. Returns where the log has ended, if it has.
///
/// # Errors
/// An I/O error, or the database has stopped.
pub(super) fn finish(pool: &Pool, log: &Log, keep_bytes: u64) -> Result<Option<Lsn>> {
    let end = log.end_lsn();
    if log.checkpoint_lsn() < end {
        return Ok(None);
    }
    let mark = LogMark { state: MarkState::Closed, generation: log.generation() + 1, lsn: end };
    put_mark(pool, mark)?;
    pool.store().sync_places()?;
    log.note_store_mark(pool.store().mark());
    let has_ended = log.finish(end, keep_bytes)?;
    let expected = mark.generation - u64::from(!has_ended);
    debug_assert_eq!(log.generation(), expected, "rule 2: the log is not in the generation of the mark *closed*");
    Ok(has_ended.then_some(end))
}

/// Writes a mark into page 0, durable on return.
fn put_mark(pool: &Pool, mark: LogMark) -> Result<()> {
    pool.change_unlogged(PageNo(0), false, mark.lsn, |page| {
        header::put_log_mark(page, mark);
        page::header::count_unlogged_change(page);
        Ok(true)
    })?;
    pool.flush_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_crash_explains_is_let_through() {
        use MarkState::{Closed, Open, Opening};
        let verdict = |state, generation, lsn, end| older(&LogMark { state, generation, lsn: Lsn(lsn) }, 5, Lsn(end));
        for (mark, expected) in [
            // The generation of both: opened, or opened and crashed at any later LSN, or closed.
            (verdict(Opening, 5, 100, 100), None),
            (verdict(Open, 5, 100, 900), None),
            (verdict(Closed, 5, 100, 100), None),
            (verdict(Closed, 5, 100, 99), Some(Older::Redo)),
            (verdict(Closed, 5, 100, 101), Some(Older::Data)),
            // The data file is one generation ahead: a crash between the mark and the log's header.
            (verdict(Opening, 6, 100, 100), None),
            (verdict(Opening, 6, 100, 99), Some(Older::Redo)),
            (verdict(Opening, 6, 100, 101), Some(Older::Redo)),
            (verdict(Closed, 6, 100, 100), None),
            (verdict(Closed, 6, 100, 101), None),
            (verdict(Closed, 6, 100, 99), Some(Older::Redo)),
            (verdict(Open, 6, 100, 100), Some(Older::Redo)),
            // Further apart.
            (verdict(Closed, 7, 100, 100), Some(Older::Redo)),
            (verdict(Closed, 4, 100, 100), Some(Older::Data)),
            (verdict(Opening, 1, 100, 100), Some(Older::Data)),
        ] {
            assert_eq!(mark, expected);
        }
    }
}
