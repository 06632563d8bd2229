//! Read views: the transactions that a snapshot sees.
//!
//! Terms (InnoDB's): `up_limit_id` is the smallest id active when the view was made, everything below is visible;
//! `low_limit_id` the next id to be given, everything from there on is invisible; `ids` the active ones between.
//! `low_limit_no`: every transaction whose commit number is below it had ended when the view was made, so purge may
//! remove versions that only older views needed.
//!
//! Rules
//! 1. A view never changes. The newest of a list is shared by all that ask the list for one until a transaction leaves
//!    the active set.
//! 2. A view is open while it has a holder besides the list. A handle is made of the newest view, under the list's
//!    mutex, or copied from an existing handle. So a view that is closed and not the newest, as seen under the mutex,
//!    stays closed.
//!
//! Which views are made, and which list a transaction asks: `views.rs`.

use super::active::ActiveSet;
use crate::types::TxnId;
use std::collections::VecDeque;
use std::sync::Arc;

/// A snapshot's view of the transactions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadView {
    /// Ids below this are visible.
    pub(crate) up_limit_id: u64,
    /// Ids from here on are invisible.
    pub(crate) low_limit_id: u64,
    /// Commit numbers below this had ended.
    pub(crate) low_limit_no: u64,
    /// Active ids between the limits, ascending.
    pub(crate) ids: Vec<u64>,
    /// The active set's clock when the view was created.
    pub(super) clock: u64,
    /// Time of its first opening, in milliseconds since the opening of the database.
    opened_ms: u64,
}

impl ReadView {
    /// Whether the view sees what transaction `id` wrote.
    #[inline]
    pub(crate) fn sees(&self, id: TxnId) -> bool {
        id.0 < self.up_limit_id || (id.0 < self.low_limit_id && self.ids.binary_search(&id.0).is_err())
    }

    /// Makes this the view of this moment.
    pub(crate) fn fill(&mut self, set: &ActiveSet) {
        let cut = set.cut(&mut self.ids);
        self.up_limit_id = self.ids.first().copied().unwrap_or(cut.low_limit_id);
        self.low_limit_id = cut.low_limit_id;
        self.low_limit_no = cut.low_limit_no;
        self.clock = cut.clock;
        let (up, low, no) = (self.up_limit_id, self.low_limit_id, self.low_limit_no);
        debug_assert!(up <= low && no <= low, "a view from {up} to {low}, of numbers below {no}");
        debug_assert!(self.ids.iter().all(|id| (up..low).contains(id)), "ids outside of the view: {:?}", self.ids);
    }

    /// Whether a later view sees everything that `older` sees, by the limits.
    pub(crate) fn follows(&self, older: &ReadView) -> bool {
        let limits = |view: &ReadView| [view.clock, view.up_limit_id, view.low_limit_id, view.low_limit_no];
        limits(self).iter().zip(limits(older)).all(|(newer, older)| *newer >= older)
    }

    /// Makes this a copy of `other`, keeping its memory.
    pub(crate) fn copy_from(&mut self, other: &ReadView) {
        self.clone_from(other);
    }
}

/// An open view; dropping it closes it.
#[derive(Clone, Debug)]
pub(crate) struct ViewHandle {
    pub(crate) view: Arc<ReadView>,
}

/// A list's newest view and every older one of it that is open, oldest first.
#[derive(Debug, Default)]
pub(crate) struct ViewList {
    pub(super) views: VecDeque<Arc<ReadView>>,
    /// Number of views after closed ones were last removed.
    kept: usize,
    spare: Vec<Arc<ReadView>>,
}

/// Closed views kept for their memory.
const SPARE_VIEWS: usize = 8;

fn is_open(view: &Arc<ReadView>) -> bool {
    Arc::strong_count(view) > 1
}

impl ViewList {
    /// Opens a view that sees all transactions that had left the active set when its clock showed `asked`: the newest
    /// view, or a view by `fill`. `now_ms` is called when no transaction has the view open.
    pub(super) fn open(
        &mut self,
        asked: u64,
        fill: impl FnOnce(&mut ReadView),
        now_ms: impl FnOnce() -> u64,
    ) -> ViewHandle {
        if self.views.back().is_none_or(|newest| newest.clock < asked) {
            self.take_closed_out();
            let mut view = self.spare.pop().unwrap_or_default();
            debug_assert!(!is_open(&view), "rule 1: a view that is open is changed");
            fill(Arc::make_mut(&mut view));
            let follows = self.views.back().is_none_or(|before| before.clock < view.clock && view.follows(before));
            debug_assert!(follows, "rule 1: {view:?} does not follow {:?}", self.views.back());
            self.views.push_back(view);
        }
        let newest = self.views.back_mut().expect("there is one now");
        debug_assert!(newest.clock >= asked, "a view of {} is opened at {asked}", newest.clock);
        if let Some(unused) = Arc::get_mut(newest) {
            unused.opened_ms = now_ms();
        }
        ViewHandle { view: Arc::clone(newest) }
    }

    fn take_closed_out(&mut self) {
        while self.views.front().is_some_and(|view| !is_open(view)) {
            let closed = self.views.pop_front();
            self.spare.extend(closed.filter(|_| self.spare.len() < SPARE_VIEWS));
        }
        // Closed views after an open one are removed when there may be as many of them as of open ones.
        if self.views.len() > 2 * self.kept + SPARE_VIEWS {
            self.views.retain(is_open);
            self.kept = self.views.len();
        }
    }

    /// The oldest open view.
    pub(crate) fn oldest(&self) -> Option<&ReadView> {
        self.views.iter().find(|view| is_open(view)).map(|view| &**view)
    }

    /// Milliseconds for which the oldest open view has been open.
    pub(crate) fn oldest_age_ms(&self, now_ms: u64) -> u64 {
        self.oldest().map_or(0, |view| now_ms.saturating_sub(view.opened_ms))
    }
}
