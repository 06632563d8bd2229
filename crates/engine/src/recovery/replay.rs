//! Replay, one window of the log after the other. The rules are those of [`super`].

use super::{Losses, Replayed};
use crate::error::{Error, Result};
use crate::log::{Log, RecoveryScan, Window};
use crate::page::{self, PageOp, lost};
use crate::pool::Pool;
use crate::store::fixed_fields;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use crate::types::{Lsn, PageNo};
use std::collections::BTreeMap;

/// Threads that read and apply pages, at most.
pub(crate) const THREADS: usize = 4;
/// Pages a worker takes at once.
const PAGES_PER_TURN: usize = 64;
/// Bytes of redo in a window: a quarter of the pool, within these bounds.
const MIN_WINDOW_BYTES: usize = 64 << 10;
const MAX_WINDOW_BYTES: usize = 64 << 20;

/// One operation and where it is in the window.
#[derive(Clone, Copy)]
struct Change {
    page: PageNo,
    /// Offset of the operation in the window's bytes.
    at: u32,
    /// Its mini-transaction.
    group: u32,
    is_format: bool,
    /// It names its record by key: the page is a leaf of a secondary index.
    is_by_key: bool,
}

/// Applies the scan's operations, with this many threads at most, and makes the result durable in the data file.
/// `losses` says which pages may be lost.
///
/// # Errors
/// [`Error::Corrupt`] for redo that does not decode, [`Error::CorruptPage`] for a page that does not take its redo and
/// may not be lost, I/O.
pub(crate) fn replay(pool: &Pool, log: &Log, scan: &RecoveryScan, threads: usize, losses: Losses) -> Result<Replayed> {
    let window_bytes = (pool.frame_count() * pool.page_bytes() / 4).clamp(MIN_WINDOW_BYTES, MAX_WINDOW_BYTES);
    let log_end = log.end_lsn();
    debug_assert!(scan.checkpoint_lsn <= scan.end_lsn, "{} to {} is scanned", scan.checkpoint_lsn, scan.end_lsn);
    let mut replayed = Replayed { redo_bytes: scan.end_lsn.0 - scan.checkpoint_lsn.0, ..Replayed::default() };
    let unreadable = AllUnreadable::default();
    let (mut windows, mut window, mut changes) = (log.windows(scan), Window::default(), Vec::new());
    while windows.read(window_bytes, &mut window)? {
        decode(&window, &mut changes)?;
        changes.sort_unstable_by_key(|c| (c.page, c.at));
        let window = Changed { pool, window: &window, scan, unreadable: &unreadable, losses };
        replayed.pages += window.replay(&changes, threads)?;
        replayed.operations += changes.len();
        replayed.windows += 1;
    }
    replayed.lost_pages = finish(pool, scan, std::mem::take(&mut *unreadable.lock()), losses)?;
    debug_assert_eq!(log.end_lsn(), log_end, "rule 3: recovery wrote redo");
    Ok(replayed)
}

/// A page that could not be read, or did not take its redo; its `Format` may still come.
struct Unreadable {
    error: Error,
    /// Its redo says that it is a leaf of a secondary index.
    is_index_leaf: bool,
}

type AllUnreadable = Mutex<BTreeMap<PageNo, Unreadable>>;

/// Makes the result durable: rule 4. Returns how many pages were lost.
fn finish(pool: &Pool, scan: &RecoveryScan, unreadable: BTreeMap<PageNo, Unreadable>, losses: Losses) -> Result<usize> {
    let mut to_lose = Vec::new();
    for (page_no, page) in unreadable {
        if page.error.is_lost() {
            continue;
        }
        if !losses.may_lose(page_no, page.is_index_leaf) {
            return Err(page.error);
        }
        to_lose.push((page_no, page.error));
        debug_assert_ne!(page_no, PageNo(0), "rule 4: page 0 is lost");
    }
    for (page_no, error) in &to_lose {
        pool.change_unlogged(*page_no, true, scan.checkpoint_lsn, |bytes| {
            lose(bytes, scan.end_lsn, error);
            Ok(true)
        })?;
    }
    pool.flush_all()?;
    to_lose.iter().for_each(|(page_no, _)| pool.drop_clean(*page_no));
    Ok(to_lose.len())
}

fn lose(bytes: &mut [u8], end: Lsn, error: &Error) {
    let reason = format!("it could not be read, or did not take its redo, when the database was opened ({error})");
    lost::format(bytes, 0, end, &reason);
}

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
            let is_by_key = matches!(op, PageOp::LeafChanges { .. });
            changes.push(Change { page, at: at as u32, group: group as u32, is_format, is_by_key });
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
    scan: &'a RecoveryScan,
    unreadable: &'a AllUnreadable,
    losses: Losses,
}

impl Changed<'_> {
    /// Applies the window's changes, sorted by page; says to how many pages.
    fn replay(&self, changes: &[Change], threads: usize) -> Result<usize> {
        let pages: Vec<&[Change]> = changes.chunk_by(|a, b| a.page == b.page).map(since_format).collect();
        let are_apart = pages.is_sorted_by(|before, after| before[0].page < after[0].page);
        debug_assert!(are_apart, "rule 1: a page is applied twice in a window");
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
            return self.replay_page(changes);
        }
        if let Some(known) = self.unreadable.lock().get_mut(&page) {
            known.is_index_leaf |= is_index_leaf(changes);
            return Ok(());
        }
        match self.load(page) {
            // That the log has lost its end is not this page's damage: nothing that follows undoes it.
            Err(error) if error.is_damage() && !error.is_beyond_log() => {
                self.note_unreadable(changes, error);
                Ok(())
            }
            loaded => loaded.and_then(|()| self.replay_page(changes)),
        }
    }

    /// A read that failed, or found damage, may succeed the next time.
    fn load(&self, page: PageNo) -> Result<()> {
        match self.pool.load(page) {
            Err(error) if error.is_damage() && !error.is_lost() => self.pool.load(page),
            loaded => loaded,
        }
    }

    fn note_unreadable(&self, changes: &[Change], error: Error) {
        let unreadable = Unreadable { error, is_index_leaf: is_index_leaf(changes) };
        self.unreadable.lock().insert(changes[0].page, unreadable);
    }

    fn replay_page(&self, changes: &[Change]) -> Result<()> {
        let (page, fresh) = (changes[0].page, changes[0].is_format);
        let may_be_lost = self.losses.may_lose(page, is_index_leaf(changes));
        let mut misfit = None;
        self.pool.change_unlogged(page, fresh, self.scan.checkpoint_lsn, |bytes| match self.apply(changes, bytes) {
            // A version of it that is written meanwhile must not be taken for the page before its redo.
            Err(error @ Error::CorruptPage { .. }) if may_be_lost => {
                lose(bytes, self.scan.end_lsn, &error);
                misfit = Some(error);
                Ok(true)
            }
            applied => applied,
        })?;
        if let Some(error) = misfit {
            self.note_unreadable(changes, error);
        }
        Ok(())
    }

    /// Applies a page's changes to its bytes; returns whether there were any that they lack.
    fn apply(&self, changes: &[Change], bytes: &mut [u8]) -> Result<bool> {
        let (page, fresh) = (changes[0].page, changes[0].is_format);
        debug_assert!(changes.iter().all(|change| change.page == page), "changes of other pages come to page {page}");
        debug_assert!(changes.is_sorted_by_key(|change| change.at), "step 1: the log order of page {page}");
        debug_assert!(!changes[1..].iter().any(|change| change.is_format), "step 2: page {page} is recreated within");
        let mut lsn = if fresh { Lsn(0) } else { page::header::lsn(bytes) };
        let start = lsn;
        let header_before = (page == PageNo(0)).then(|| bytes.to_vec());
        for change in changes {
            let end_lsn = self.window.end_lsn(change.group as usize);
            if end_lsn <= start {
                continue;
            }
            let op = &self.window.bytes()[change.at as usize..];
            PageOp::decode(op)
                .and_then(|(_, op, _)| op.apply(bytes))
                .map_err(|e| Error::corrupt_page(page, format!("redo ending at LSN {end_lsn} does not fit it: {e}")))?;
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
        debug_assert!(start <= lsn && lsn <= self.scan.end_lsn, "rule 3: page {page} goes from {start} to {lsn}");
        page::header::set_lsn(bytes, lsn);
        if lsn != start {
            page::check_contents(bytes, page).map_err(|e| {
                Error::corrupt_page(page, format!("redo ending at LSN {lsn} spoils it: {}", e.into_reason()))
            })?;
        }
        Ok(lsn != start)
    }
}

fn is_index_leaf(changes: &[Change]) -> bool {
    changes.iter().any(|change| change.is_by_key)
}

/// The changes from the page's last `Format` on, or all of them.
fn since_format(changes: &[Change]) -> &[Change] {
    let last = changes.iter().rposition(|c| c.is_format);
    &changes[last.unwrap_or(0)..]
}
