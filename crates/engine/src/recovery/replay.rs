//! Replay, one window of the log after the other. The rules are those of [`super`].

use super::Replayed;
use crate::error::{Error, Result};
use crate::log::{Log, Scan, Window};
use crate::page::{self, PageOp};
use crate::pool::Pool;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use crate::types::{Lsn, PageNo};
use std::collections::BTreeMap;

/// Threads that read and apply pages.
const WORKERS: usize = 4;
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

/// Applies the scan's operations and makes the result durable in the data file.
///
/// # Errors
/// [`Error::Corrupt`] for redo that does not decode, [`Error::CorruptPage`] for a page that does not take its redo,
/// I/O.
pub fn replay(pool: &Pool, log: &Log, scan: &Scan) -> Result<Replayed> {
    let window_bytes = (pool.frame_count() * pool.page_bytes() / 4).clamp(LEAST_WINDOW_BYTES, MOST_WINDOW_BYTES);
    let mut replayed = Replayed { redo_bytes: scan.end_lsn.0 - scan.checkpoint_lsn.0, ..Replayed::default() };
    let mut unreadable = Unreadable::default();
    let (mut windows, mut window, mut changes) = (log.windows(scan), Window::default(), Vec::new());
    while windows.read(window_bytes, &mut window)? {
        decode(&window, &mut changes)?;
        changes.sort_unstable_by_key(|c| (c.page, c.at));
        replayed.pages += replay_window(pool, &window, &changes, scan.checkpoint_lsn, &unreadable)?;
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

/// Applies a window's changes, sorted by page; says to how many pages.
fn replay_window(
    pool: &Pool,
    window: &Window,
    changes: &[Change],
    checkpoint_lsn: Lsn,
    unreadable: &Unreadable,
) -> Result<usize> {
    let pages: Vec<&[Change]> = changes.chunk_by(|a, b| a.page == b.page).map(since_format).collect();
    let next = AtomicUsize::new(0);
    let work = || -> Result<()> {
        loop {
            let from = next.fetch_add(PAGES_PER_TURN, Relaxed);
            if from >= pages.len() {
                return Ok(());
            }
            for page in &pages[from..(from + PAGES_PER_TURN).min(pages.len())] {
                replay_if_readable(pool, window, page, checkpoint_lsn, unreadable)?;
            }
        }
    };
    crate::sync::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|w| w.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    Ok(pages.len())
}

/// The changes from the page's last `Format` on, or all of them.
fn since_format(changes: &[Change]) -> &[Change] {
    let last = changes.iter().rposition(|c| c.is_format);
    &changes[last.unwrap_or(0)..]
}

/// Rule 4.
fn replay_if_readable(
    pool: &Pool,
    window: &Window,
    changes: &[Change],
    checkpoint_lsn: Lsn,
    unreadable: &Unreadable,
) -> Result<()> {
    let page = changes[0].page;
    if changes[0].is_format {
        unreadable.lock().remove(&page);
    } else {
        if unreadable.lock().contains_key(&page) {
            return Ok(());
        }
        match pool.load(page) {
            Err(error @ Error::CorruptPage { .. }) => {
                unreadable.lock().insert(page, error);
                return Ok(());
            }
            loaded => loaded?,
        }
    }
    replay_page(pool, window, changes, checkpoint_lsn)
}

fn replay_page(pool: &Pool, window: &Window, changes: &[Change], checkpoint_lsn: Lsn) -> Result<()> {
    let (page, fresh) = (changes[0].page, changes[0].is_format);
    pool.change_unlogged(page, fresh, checkpoint_lsn, |bytes| {
        let mut lsn = if fresh { Lsn(0) } else { page::header::lsn(bytes) };
        let start = lsn;
        for change in changes {
            let end_lsn = window.end_lsn(change.group as usize);
            if end_lsn <= start {
                continue;
            }
            let applied = PageOp::decode(&window.bytes()[change.at as usize..]).and_then(|(_, op, _)| op.apply(bytes));
            applied
                .map_err(|e| Error::corrupt_page(page, format!("redo ending at LSN {end_lsn} does not fit it: {e}")))?;
            lsn = end_lsn;
        }
        page::header::set_lsn(bytes, lsn);
        Ok(lsn != start)
    })
}
