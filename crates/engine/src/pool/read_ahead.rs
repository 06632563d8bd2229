//! Reading ahead: whoever knows which pages will be needed names them, and threads of their own read them side by side,
//! while the one that will need them works on. A disk answers many reads in little more than the time of one.
//!
//! Rules
//! 1. A name is a wish. What does not fit the queue is forgotten; an error is left to the thread that needs the page,
//!    which meets it itself.
//! 2. A page that was given back meanwhile is read as it is: who makes it anew takes its frame over, as after any
//!    descent that is late ([`Pool::adopt_new`](super::Pool)).
//! 3. Without threads nothing is read ahead, nor after [`Pool::stop_readers`].
//! 4. Who names rows before they are needed asks first whether pages are missing at all ([`Pool::misses`]): while none
//!    is read, all that is used is there, and to look for it would cost as much as to use it.

use super::Pool;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use crate::sync::spread::Spread;
use crate::sync::{Condvar, Mutex};
use crate::types::PageNo;
use std::collections::VecDeque;
use std::time::Duration;

/// Most pages that wait to be read. More would be there before they are needed only if the pool were large.
const MOST_WANTED: usize = 128;

/// The pages that are wanted.
#[derive(Default)]
pub(super) struct ReadAhead {
    has_threads: AtomicBool,
    wanted: Mutex<VecDeque<PageNo>>,
    bell: Condvar,
    /// What the threads of each place know of rule 4.
    asked: Spread<AtomicU64>,
}

/// So many rows asked for, while no page was read, say that none is missing; a mask.
const ROWS: u64 = 63;

/// What a place knows: the pages read, and behind them the rows that are left until "no". Before, and now that so many
/// pages have been read and `rows` are asked for.
fn ask(before: u64, pages_read: u64, rows: u64) -> u64 {
    let pages_read = pages_read << ROWS.count_ones();
    if before & !ROWS != pages_read { pages_read | ROWS } else { pages_read | (before & ROWS).saturating_sub(rows) }
}

impl Pool {
    /// Has the page read ahead if it is not resident.
    pub(crate) fn want(&self, page: PageNo) {
        let ahead = &self.read_ahead;
        if !self.reads_ahead() || self.is_resident(page) {
            return;
        }
        let mut wanted = ahead.wanted.lock();
        if wanted.len() < MOST_WANTED && !wanted.contains(&page) {
            wanted.push_back(page);
            ahead.bell.notify_one();
        }
    }

    /// Whether pages were read into the pool lately: since this thread asked for one of the last few rows before these.
    pub(crate) fn misses(&self, rows: usize) -> bool {
        let asked = self.read_ahead.asked.own();
        let before = asked.load(Relaxed);
        let now = ask(before, self.stats.pages_read.get(), rows as u64);
        if now != before {
            // Another thread of this place may overwrite it: then both ask a few times more or less.
            asked.store(now, Relaxed);
        }
        now & ROWS != 0 && self.reads_ahead()
    }

    /// Reads a page that is wanted, if there is one.
    pub(crate) fn read_ahead_step(&self) {
        let page = self.read_ahead.wanted.lock().pop_front();
        if let Some(page) = page.filter(|page| !self.is_resident(*page))
            && self.load(page).is_ok()
        {
            self.stats.pages_read_ahead.inc();
        }
    }

    /// Waits until a page is wanted, or [`Pool::stop_readers`].
    pub(crate) fn await_wish(&self, timeout: Duration) {
        let mut wanted = self.read_ahead.wanted.lock();
        if wanted.is_empty() && self.reads_ahead() {
            self.read_ahead.bell.wait_for(&mut wanted, timeout);
        }
    }

    /// Threads run that call [`Pool::read_ahead_step`].
    pub(crate) fn start_readers(&self) {
        self.read_ahead.has_threads.store(true, Relaxed);
    }

    /// Forgets what is wanted, and ends the pauses of those threads for good.
    pub(crate) fn stop_readers(&self) {
        let mut wanted = self.read_ahead.wanted.lock();
        wanted.clear();
        self.read_ahead.has_threads.store(false, Relaxed);
        self.read_ahead.bell.notify_all();
    }

    /// Whether threads run that read ahead.
    #[inline]
    pub(crate) fn reads_ahead(&self) -> bool {
        self.read_ahead.has_threads.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
