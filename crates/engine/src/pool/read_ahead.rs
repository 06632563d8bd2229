//! Read-ahead: a thread requests the pages that it will need, and the read threads read them concurrently while it
//! works on. A disk answers many reads in little more than the time of one.
//!
//! Rules
//! 1. A request is a hint. A request that does not fit the queue is dropped. An error is ignored here: the thread that
//!    needs the page reads it again and gets the error.
//! 2. A page that was freed meanwhile is read nevertheless: a thread that recreates it takes over its frame, as after
//!    any late descent ([`PageLoader::install`]).
//! 3. Without read threads, and after [`ReadAhead::stop`], nothing is read ahead.
//! 4. Consecutive page numbers, requested in this order, are one read ([`run_of`]) if they are contiguous in the store.
//!    Otherwise each is a separate request.
//! 5. If the store supports batch reads, one thread takes all queued requests, up to its buffer. Otherwise a separate
//!    thread is woken for each. A thread that leaves requests in the queue while no other read thread is idle asks for
//!    one more thread.
//! 6. A thread that prefetches rows first checks whether the pool misses pages at all ([`ReadAhead::misses`]): while no
//!    page is read, all used pages are resident, and a lookup would cost as much as the use.

use super::load::PageLoader;
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use crate::sync::sharded::Sharded;
use crate::sync::{Condvar, Mutex};
use crate::types::PageNo;
use highwater_storage::AlignedBuf;
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

/// Most pages that wait to be read. More would be there before they are needed only if the pool were large.
const MAX_WANTED: usize = 256;
/// Most bytes that one thread reads at once: as many pages of 4 KiB as a scan names at once.
const MAX_BYTES: usize = 128 << 10;
/// One thread has at most one frame of this many on its way; all of them together, a quarter of the pool by default.
const FRAMES_OF_A_THREAD: usize = 64;

/// The requested pages.
#[derive(Default)]
pub(super) struct ReadAhead {
    has_threads: AtomicBool,
    wanted: Mutex<VecDeque<PageNo>>,
    /// Threads that wait for a request; changed under the lock of `wanted`.
    waiting: AtomicUsize,
    notify: Condvar,
    /// State of rule 6 of the threads of each shard.
    asked: Sharded<AtomicU64>,
}

/// Buffer into which a thread reads pages before they are copied to their frames.
#[derive(Default)]
pub(crate) struct ReadBuffer {
    bytes: AlignedBuf,
}

impl ReadBuffer {
    pub(super) fn of_bytes(&mut self, bytes: usize) -> &mut [u8] {
        if self.bytes.len() < bytes {
            self.bytes = AlignedBuf::zeroed(MAX_BYTES.max(bytes));
        }
        &mut self.bytes[..bytes]
    }
}

/// The part of the requests that one thread takes.
#[derive(Clone, Copy, Debug)]
struct Share {
    /// Most pages.
    pages: usize,
    /// Most pages of a run.
    run: usize,
    /// Not more than one run.
    is_one: bool,
}

/// Takes the first requested page together with the requests after it that continue a run of consecutive pages, at most
/// `max` pages; empty if there is no request. A scan requests its leaves in either direction.
fn run_of(wanted: &mut VecDeque<PageNo>, max: usize) -> Range<u32> {
    let Some(first) = wanted.pop_front() else { return 0..0 };
    // The last number of all, which no page has, may be named by a damaged page.
    let mut run = first.0..first.0.saturating_add(1);
    while run.len() < max
        && let Some(longer) = wanted.front().and_then(|next| with_next(&run, *next))
    {
        wanted.pop_front();
        run = longer;
    }
    run
}

/// Takes a share of the requests.
fn runs_of(wanted: &mut VecDeque<PageNo>, share: Share) -> Vec<Range<u32>> {
    let (mut runs, mut left) = (Vec::new(), share.pages);
    while left > 0 && !wanted.is_empty() {
        let run = run_of(wanted, left.min(share.run));
        left -= run.len().min(left);
        runs.push(run);
        if share.is_one {
            break;
        }
    }
    runs
}

/// The run extended by an adjacent page.
fn with_next(run: &Range<u32>, next: PageNo) -> Option<Range<u32>> {
    match next.0 {
        next if next == run.end => Some(run.start..run.end.saturating_add(1)),
        next if Some(next) == run.start.checked_sub(1) => Some(next..run.end),
        _ => None,
    }
}

/// This many rows asked for, while no page was read, show that no page is missing; a mask.
const ROWS: u64 = 63;

/// The new state of a shard: the number of pages read, and the rows that remain until the answer is "no". `before` is
/// the old state; `pages_read` pages have been read, and `rows` are requested.
fn ask(before: u64, pages_read: u64, rows: u64) -> u64 {
    let pages_read = pages_read << ROWS.count_ones();
    if before & !ROWS != pages_read { pages_read | ROWS } else { pages_read | (before & ROWS).saturating_sub(rows) }
}

/// The share of one thread (rules 4 and 5).
fn share(loader: &PageLoader) -> Share {
    let (in_order, at_once) = (loader.store().is_contiguous(), loader.store().supports_batch_reads());
    let max = (MAX_BYTES / loader.pages().frames().page_bytes())
        .min(loader.pages().frame_count() / FRAMES_OF_A_THREAD)
        .max(1);
    Share { pages: if in_order || at_once { max } else { 1 }, run: if in_order { max } else { 1 }, is_one: !at_once }
}

impl ReadAhead {
    /// Requests the read-ahead of those of the pages that are not resident.
    pub(super) fn request(&self, loader: &PageLoader, pages: &[PageNo]) {
        if !self.has_threads() {
            return;
        }
        let missing: Vec<PageNo> = pages.iter().copied().filter(|page| loader.pages().find(*page).is_none()).collect();
        if missing.is_empty() {
            return;
        }
        let (in_order, at_once) = (loader.store().is_contiguous(), loader.store().supports_batch_reads());
        let mut rings = 0;
        let mut wanted = self.wanted.lock();
        for page in missing {
            if wanted.len() < MAX_WANTED && !wanted.contains(&page) {
                let goes_on = in_order && wanted.back().is_some_and(|last| last.0.abs_diff(page.0) == 1);
                wanted.push_back(page);
                if !goes_on {
                    rings = if at_once { 1 } else { rings + 1 };
                }
            }
        }
        for _ in 0..rings {
            self.notify.notify_one();
        }
    }

    /// Whether pages were read into the pool lately: since this thread asked for one of the last few rows before these.
    /// `pages_read` counts all reads.
    pub(super) fn misses(&self, pages_read: u64, rows: usize) -> bool {
        let asked = self.asked.local();
        let before = asked.load(Relaxed);
        let now = ask(before, pages_read, rows as u64);
        if now != before {
            // Another thread of this place may overwrite it: then both ask a few times more or less.
            asked.store(now, Relaxed);
        }
        now & ROWS != 0 && self.has_threads()
    }

    /// Reads the first requested pages, if there are any (rules 4 and 5); returns the number of pages that it read.
    /// `one_more` is to start another thread.
    pub(super) fn step(&self, loader: &PageLoader, buffer: &mut ReadBuffer, one_more: impl FnOnce()) -> usize {
        let page_bytes = loader.pages().frames().page_bytes();
        let share = share(loader);
        let mut wanted = self.wanted.lock();
        let runs = runs_of(&mut wanted, share);
        // Pages that were requested together were announced by one notification.
        if share.pages > 1 && !wanted.is_empty() {
            self.notify.notify_one();
        }
        let are_few = !wanted.is_empty() && self.waiting.load(Relaxed) == 0;
        drop(wanted);
        if are_few {
            one_more();
        }
        let read = match runs.iter().map(Range::len).sum() {
            0 => return 0,
            1 if loader.pages().find(PageNo(runs[0].start)).is_some() => return 0,
            1 => loader.load(PageNo(runs[0].start)).map(|()| 1),
            pages => loader.load_runs(&runs, buffer.of_bytes(pages * page_bytes)),
        };
        // Rule 1.
        read.unwrap_or(0)
    }

    /// Waits until a page is requested, or [`ReadAhead::stop`].
    pub(super) fn await_request(&self, timeout: Duration) {
        let mut wanted = self.wanted.lock();
        if wanted.is_empty() && self.has_threads() {
            self.waiting.fetch_add(1, Relaxed);
            self.notify.wait_for(&mut wanted, timeout);
            self.waiting.fetch_sub(1, Relaxed);
        }
    }

    /// Threads run that call [`ReadAhead::step`].
    pub(super) fn start(&self) {
        self.has_threads.store(true, Relaxed);
    }

    /// Discards the requests, and ends the pauses of the read threads for good.
    pub(super) fn stop(&self) {
        let mut wanted = self.wanted.lock();
        wanted.clear();
        self.has_threads.store(false, Relaxed);
        self.notify.notify_all();
    }

    /// Whether read-ahead threads run.
    #[inline]
    pub(super) fn has_threads(&self) -> bool {
        self.has_threads.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_follow_each_other_are_one_run() {
        let mut wanted = VecDeque::from([7, 8, 9, 11, 12, 3, 4, 5, 6, 30, 29, 28, 27, 0, 1].map(PageNo));
        let mut runs = Vec::new();
        while !wanted.is_empty() {
            runs.push(run_of(&mut wanted, 3));
        }
        assert_eq!(runs, [7..10, 11..13, 3..6, 6..7, 28..31, 27..28, 0..2]);
        assert!(run_of(&mut wanted, 3).is_empty());
        let all = || VecDeque::from([7, 8, 9, 11, 3, 4, 5].map(PageNo));
        let share = |pages, run| Share { pages, run, is_one: false };
        let one = Share { is_one: true, ..share(32, 32) };
        assert_eq!(runs_of(&mut all(), one).as_slice(), std::slice::from_ref(&(7..10)));
        assert_eq!(runs_of(&mut all(), share(32, 32)), [7..10, 11..12, 3..6]);
        assert_eq!(runs_of(&mut all(), share(5, 5)), [7..10, 11..12, 3..4]);
        assert_eq!(runs_of(&mut all(), share(5, 1)), [7..8, 8..9, 9..10, 11..12, 3..4]);
        assert!(runs_of(&mut VecDeque::new(), share(5, 5)).is_empty());
        let mut last = VecDeque::from([u32::MAX, u32::MAX - 1, 0].map(PageNo));
        assert_eq!((run_of(&mut last, 3), run_of(&mut last, 3)), (u32::MAX - 1..u32::MAX, 0..1));
    }

    #[test]
    fn while_nothing_is_read_the_answer_becomes_no() {
        for rows in [1, 9, 63] {
            let asked = |state: &mut u64, pages_read| {
                *state = ask(*state, pages_read, rows);
                *state & ROWS != 0
            };
            let mut state = 0;
            assert!(!asked(&mut state, 0));
            for _ in 0..ROWS / rows {
                assert!(asked(&mut state, 7));
            }
            assert!(!asked(&mut state, 7) && !asked(&mut state, 7));
            assert!(asked(&mut state, 8));
        }
    }
}
