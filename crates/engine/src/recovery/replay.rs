//! Replay, one window of the log after the other. The rules are those of [`super`].

use super::Replayed;
use crate::error::{Error, Result};
use crate::log::{Log, Scan, Window};
use crate::page::{self, PageOp};
use crate::pool::Pool;
use crate::store::fixed_fields;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use crate::types::{Lsn, PageNo};
use std::collections::BTreeMap;

/// Threads that read and apply pages, at most.
pub const THREADS: usize = 4;
/// Pages a worker takes at once.
const PAGES_PER_TURN: usize = 64;
/// Bytes of redo in a window: a quarter of the pool, within these bounds.
const LEAST_WINDOW_BYTES: usize = 64 << 10;
const MOST_WINDOW_BYTES: usize = 64 << 20;

/// One operation and where it is in the window.
#[derive(Clone, Copy)]
struct Change {
    page: PageNo,
    /// Offset of the operation in the window's bytes.
    at: u32,
    /// Its mini-transaction.
    group: u32,
    is_format: bool,
}

/// Applies the scan's operations, with so many threads at most, and makes the result durable in the data file.
///
/// # Errors
/// [`Error::Corrupt`] for redo that does not decode, [`Error::CorruptPage`] for a page that does not take its redo,
/// I/O.
pub fn replay(pool: &Pool, log: &Log, scan: &Scan, threads: usize) -> Result<Replayed> {
    let window_bytes = (pool.frame_count() * pool.page_bytes() / 4).clamp(LEAST_WINDOW_BYTES, MOST_WINDOW_BYTES);
    let mut replayed = Replayed { redo_bytes: scan.end_lsn.0 - scan.checkpoint_lsn.0, ..Replayed::default() };
    let mut unreadable = Unreadable::default();
    let (mut windows, mut window, mut changes) = (log.windows(scan), Window::default(), Vec::new());
    while windows.read(window_bytes, &mut window)? {
        decode(&window, &mut changes)?;
        changes.sort_unstable_by_key(|c| (c.page, c.at));
        let window = Changed { pool, window: &window, checkpoint_lsn: scan.checkpoint_lsn, unreadable: &unreadable };
        replayed.pages += window.replay(&changes, threads)?;
        replayed.operations += changes.len();
        replayed.windows += 1;
    }
    match unreadable.get_mut().pop_first() {
        Some((_, error)) => Err(error),
        None => pool.flush_all().map(|()| replayed),
    }
}

/// Pages that could not be read, whose `Format` is still to come.
type Unreadable = Mutex<BTreeMap<PageNo, Error>>;

/// Replaces `changes` by those of the window.
fn decode(window: &Window, changes: &mut Vec<Change>) -> Result<()> {
    changes.clear();
    let mut at = 0;
    for (group, (end_lsn, payload)) in window.groups().enumerate() {
        let mut rest = payload;
        while !rest.is_empty() {
            let (page, op, used) = PageOp::decode(rest)
                .map_err(|e| Error::Corrupt(format!("redo ending at LSN {end_lsn} does not decode: {e}")))?;
            let is_format = matches!(op, PageOp::Format { .. });
            changes.push(Change { page, at: at as u32, group: group as u32, is_format });
            at += used;
            rest = &rest[used..];
        }
    }
    Ok(())
}

/// A window that is being replayed.
struct Changed<'a> {
    pool: &'a Pool,
    window: &'a Window,
    checkpoint_lsn: Lsn,
    unreadable: &'a Unreadable,
}

impl Changed<'_> {
    /// Applies the window's changes, sorted by page; says to how many pages.
    fn replay(&self, changes: &[Change], threads: usize) -> Result<usize> {
        let pages: Vec<&[Change]> = changes.chunk_by(|a, b| a.page == b.page).map(since_format).collect();
        let next = AtomicUsize::new(0);
        let work = || -> Result<()> {
            loop {
                let from = next.fetch_add(PAGES_PER_TURN, Relaxed);
                if from >= pages.len() {
                    return Ok(());
                }
                for page in &pages[from..(from + PAGES_PER_TURN).min(pages.len())] {
                    self.replay_if_readable(page)?;
                }
            }
        };
        // One turn is work for this thread.
        let threads = threads.min(pages.len().div_ceil(PAGES_PER_TURN));
        if threads <= 1 {
            return work().map(|()| pages.len());
        }
        crate::sync::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            workers.into_iter().try_for_each(|w| w.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })?;
        Ok(pages.len())
    }

    /// Rule 4.
    fn replay_if_readable(&self, changes: &[Change]) -> Result<()> {
        let page = changes[0].page;
        if changes[0].is_format {
            self.unreadable.lock().remove(&page);
        } else {
            if self.unreadable.lock().contains_key(&page) {
                return Ok(());
            }
            match self.pool.load(page) {
                // That the log has lost its end is not this page's damage: nothing that follows undoes it.
                Err(error @ Error::CorruptPage { .. }) if !error.is_beyond_log() => {
                    self.unreadable.lock().insert(page, error);
                    return Ok(());
                }
                loaded => loaded?,
            }
        }
        self.replay_page(changes)
    }

    fn replay_page(&self, changes: &[Change]) -> Result<()> {
        let (page, fresh) = (changes[0].page, changes[0].is_format);
        self.pool.change_unlogged(page, fresh, self.checkpoint_lsn, |bytes| {
            let mut lsn = if fresh { Lsn(0) } else { page::header::lsn(bytes) };
            let start = lsn;
            let header_before = (page == PageNo(0)).then(|| bytes.to_vec());
            for change in changes {
                let end_lsn = self.window.end_lsn(change.group as usize);
                if end_lsn <= start {
                    continue;
                }
                let op = &self.window.bytes()[change.at as usize..];
                PageOp::decode(op).and_then(|(_, op, _)| op.apply(bytes)).map_err(|e| {
                    Error::corrupt_page(page, format!("redo ending at LSN {end_lsn} does not fit it: {e}"))
                })?;
                lsn = end_lsn;
            }
            // Rule 6.
            if let Some(before) = header_before
                && (fresh || fixed_fields(&before) != fixed_fields(bytes))
            {
                // It may be written before the database stops.
                bytes.copy_from_slice(&before);
                let reason = format!("redo ending at LSN {lsn} spoils it: it changes what page 0 says of the file");
                return Err(Error::corrupt_page(page, reason));
            }
            page::header::set_lsn(bytes, lsn);
            if lsn != start {
                page::check_contents(bytes, page).map_err(|e| {
                    Error::corrupt_page(page, format!("redo ending at LSN {lsn} spoils it: {}", e.into_reason()))
                })?;
            }
            Ok(lsn != start)
        })
    }
}

/// The changes from the page's last `Format` on, or all of them.
fn since_format(changes: &[Change]) -> &[Change] {
    let last = changes.iter().rposition(|c| c.is_format);
    &changes[last.unwrap_or(0)..]
}
