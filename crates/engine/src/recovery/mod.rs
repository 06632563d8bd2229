//! Redo recovery: brings the data file to the end of the log.
//!
//! Steps
//! 1. Decode every mini-transaction of the scan into (page, end LSN, operation), sorted by page, log order within a page.
//! 2. Per page: skip what precedes its last `Format` (the page is made anew there), read the page unless it starts with
//!    one, apply each operation whose end LSN is above the page's LSN.
//! 3. Flush everything. Only then may the log start a new generation.
//!
//! Rules
//! 1. No page is read twice: a page's operations are applied together. Workers take disjoint page ranges.
//! 2. Recovery writes no redo, so a crash during it starts it again from the same log: replay is idempotent by page LSN.
//! 3. Bytes that make no sense are an error that names the page; nothing is guessed.

use crate::error::{Error, Result};
use crate::log::Scan;
use crate::page::{self, PageOp};
use crate::pool::Pool;
use crate::types::{Lsn, PageNo};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Threads that read and apply pages.
const WORKERS: usize = 4;
/// Pages a worker takes at once.
const PAGES_PER_TURN: usize = 64;

/// What recovery did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Bytes of redo scanned.
    pub redo_bytes: u64,
    /// Operations in them.
    pub operations: usize,
    /// Pages they touch.
    pub pages: usize,
}

/// One operation and where it is in the scan.
#[derive(Clone, Copy)]
struct Change<'s> {
    page: PageNo,
    end_lsn: Lsn,
    op: PageOp<'s>,
}

/// Applies the scan's operations and makes the result durable in the data file.
///
/// # Errors
/// [`Error::Corrupt`] for redo that does not decode, [`Error::CorruptPage`] for a page that does not take its redo, I/O.
pub fn replay(pool: &Pool, scan: &Scan) -> Result<Replayed> {
    let mut changes = decode(scan)?;
    changes.sort_by_key(|c| c.page);
    let pages: Vec<&[Change<'_>]> = changes.chunk_by(|a, b| a.page == b.page).map(since_format).collect();
    let next = AtomicUsize::new(0);
    let work = || -> Result<()> {
        loop {
            let from = next.fetch_add(PAGES_PER_TURN, Relaxed);
            if from >= pages.len() {
                return Ok(());
            }
            for page in &pages[from..(from + PAGES_PER_TURN).min(pages.len())] {
                replay_page(pool, page, scan.checkpoint_lsn)?;
            }
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|w| w.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    pool.flush_all()?;
    let redo_bytes = scan.end_lsn.0 - scan.checkpoint_lsn.0;
    Ok(Replayed { redo_bytes, operations: changes.len(), pages: pages.len() })
}

fn decode(scan: &Scan) -> Result<Vec<Change<'_>>> {
    let mut changes = Vec::new();
    for (end_lsn, range) in &scan.groups {
        let mut rest = &scan.bytes[range.clone()];
        while !rest.is_empty() {
            let (page, op, used) = PageOp::decode(rest)
                .map_err(|e| Error::Corrupt(format!("redo ending at LSN {end_lsn} does not decode: {e}")))?;
            changes.push(Change { page, end_lsn: *end_lsn, op });
            rest = &rest[used..];
        }
    }
    Ok(changes)
}

/// The changes from the page's last `Format` on, or all of them.
fn since_format<'c, 's>(changes: &'c [Change<'s>]) -> &'c [Change<'s>] {
    let last = changes.iter().rposition(|c| matches!(c.op, PageOp::Format { .. }));
    &changes[last.unwrap_or(0)..]
}

fn replay_page(pool: &Pool, changes: &[Change<'_>], checkpoint_lsn: Lsn) -> Result<()> {
    let first = changes[0];
    let fresh = matches!(first.op, PageOp::Format { .. });
    pool.change_unlogged(first.page, fresh, checkpoint_lsn, |bytes| {
        let mut lsn = if fresh { Lsn(0) } else { page::header::lsn(bytes) };
        let start = lsn;
        for change in changes.iter().filter(|c| c.end_lsn > start) {
            change.op.apply(bytes).map_err(|e| {
                let reason = format!("redo ending at LSN {} does not fit it: {e}", change.end_lsn);
                Error::corrupt_page(change.page, reason)
            })?;
            lsn = change.end_lsn;
        }
        page::header::set_lsn(bytes, lsn);
        Ok(lsn != start)
    })
}

#[cfg(test)]
mod tests;
