//! All views: several lists, so that threads that begin to read do not contend, and the newest view, which they copy.
//!
//! Rules
//! 1. Views are made from the active set one at a time, under the mutex of the newest. A newer view sees everything
//!    that an older view sees. A list gets a copy of the newest when its own is too old. A transaction that only writes
//!    takes no mutex of views.
//! 2. A list reads the clock under its own mutex. So after [`Views::copy_oldest`] has made its view and then read a
//!    list, no older view is opened there: either `copy_oldest` saw it, or it is too old for the clock.
//! 3. Order: a list, the newest; then the mutexes of the active set.
//!
//! `txn_test/views_model.rs` checks rule 2 for every order of the threads' steps (loom).

use super::active::ActiveSet;
use super::atomic::Mutex;
use super::view::{ReadView, ViewHandle, ViewList};
use crate::sync::sharded::CachePadded;

/// See the file's head.
#[derive(Debug)]
pub(crate) struct Views {
    newest: CachePadded<Mutex<ReadView>>,
    lists: Box<[CachePadded<Mutex<ViewList>>]>,
}

impl Views {
    /// No views, in this many lists.
    pub(crate) fn new(lists: usize) -> Views {
        Views { newest: CachePadded::default(), lists: (0..lists.max(1)).map(|_| CachePadded::default()).collect() }
    }

    /// Opens a view of this moment, in one of the lists. `now_ms` is the time since the database was opened, asked if
    /// need be.
    pub(crate) fn open(&self, set: &ActiveSet, list: usize, now_ms: impl FnOnce() -> u64) -> ViewHandle {
        let mut list = self.lists[list % self.lists.len()].lock();
        let asked = set.clock();
        list.open(asked, |view| self.copy_newest(set, asked, view), now_ms)
    }

    /// Makes `view` a copy of the newest view, which is rebuilt if it is older than `asked`.
    fn copy_newest(&self, set: &ActiveSet, asked: u64, view: &mut ReadView) {
        let mut newest = self.newest.lock();
        if newest.clock < asked {
            let older = if cfg!(debug_assertions) { newest.clone() } else { ReadView::default() };
            newest.fill(set);
            debug_assert!(newest.follows(&older), "rule 1: {newest:?} does not follow {older:?}");
        }
        view.copy_from(&newest);
    }

    /// Makes `view` a copy of the oldest open view, or a view of this moment when none is open. Returns the
    /// `up_limit_id` of the view of this moment.
    pub(crate) fn copy_oldest(&self, set: &ActiveSet, view: &mut ReadView) -> u64 {
        self.copy_newest(set, set.clock(), view);
        let up_limit_id = view.up_limit_id;
        for list in &self.lists {
            let list = list.lock();
            if let Some(oldest) = list.oldest().filter(|oldest| oldest.clock < view.clock) {
                view.copy_from(oldest);
            }
        }
        debug_assert!(view.up_limit_id <= up_limit_id, "rule 1: the oldest view sees more than the newest");
        up_limit_id
    }

    /// Milliseconds for which the oldest open view has been open.
    pub(crate) fn oldest_age_ms(&self, now_ms: u64) -> u64 {
        self.lists.iter().map(|list| list.lock().oldest_age_ms(now_ms)).max().unwrap_or(0)
    }
}
