//! Read views: which transactions a snapshot sees.
//!
//! Terms (InnoDB's): `up_limit_id` is the smallest id active when the view was made, everything below is visible;
//! `low_limit_id` the next id to be given, everything from there on is invisible; `ids` the active ones between.
//! `low_limit_no`: every transaction whose commit number is below it had ended when the view was made, so purge may
//! drop what only older views needed.
//!
//! Rules
//! 1. Views are made under the mutex of the list, one after the other; what an older view sees, a newer one sees too. A
//!    transaction that only writes does not take that mutex.
//! 2. A view never changes. The newest is shared by all that ask for one until a transaction leaves the active set, and
//!    by those that waited for it while it was made, since it was begun after they had asked.
//! 3. A view is open while it has a holder besides the list. Handles of it are made under the mutex, of the newest
//!    only, or copied from one that is held: a view that is found closed under the mutex, and is not the newest, stays
//!    closed.

use crate::txn::active::ActiveSet;
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
    /// The active set's clock when the view was made.
    clock: u64,
    /// When it was first opened, in milliseconds since the database was opened.
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

/// The newest view and every older one that is open, oldest first.
#[derive(Debug, Default)]
pub(crate) struct ViewList {
    views: VecDeque<Arc<ReadView>>,
    /// How many there were after closed ones were last removed.
    kept: usize,
    spare: Vec<Arc<ReadView>>,
}

/// Closed views kept for their memory.
const SPARE_VIEWS: usize = 8;

fn is_open(view: &Arc<ReadView>) -> bool {
    Arc::strong_count(view) > 1
}

impl ViewList {
    /// Opens a view that sees all transactions that had left `set` when its clock showed `asked`.
    pub(crate) fn open(&mut self, set: &ActiveSet, asked: u64, now_ms: u64) -> ViewHandle {
        self.refresh(set, asked);
        let newest = self.views.back_mut().expect("`refresh` leaves a view");
        if let Some(unused) = Arc::get_mut(newest) {
            unused.opened_ms = now_ms;
        }
        ViewHandle { view: Arc::clone(newest) }
    }

    /// Makes a new view unless the newest is of `asked` or later. Returns it.
    pub(crate) fn refresh(&mut self, set: &ActiveSet, asked: u64) -> &ReadView {
        if self.views.back().is_none_or(|newest| newest.clock < asked) {
            self.take_closed_out();
            let mut view = self.spare.pop().unwrap_or_default();
            Arc::make_mut(&mut view).fill(set);
            self.views.push_back(view);
        }
        self.views.back().expect("there is one now")
    }

    fn take_closed_out(&mut self) {
        while self.views.front().is_some_and(|view| !is_open(view)) {
            let closed = self.views.pop_front();
            self.spare.extend(closed.filter(|_| self.spare.len() < SPARE_VIEWS));
        }
        // Closed views behind an open one are looked for when there may be as many of them as of open ones.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A set in which ids 1 to `n` were given and those in `active` are left.
    fn set(n: u64, active: &[u64]) -> ActiveSet {
        let set = ActiveSet::new(1, 3);
        set.raise_limit(10_000);
        for id in 1..=n {
            assert_eq!(set.enter(id as usize % 3), Some(id));
        }
        (1..=n).filter(|id| !active.contains(id)).for_each(|id| set.leave(id as usize % 3, id));
        set
    }

    #[test]
    fn a_view_sees_what_had_committed() {
        let set = set(9, &[5, 8, 9]);
        set.leave(0, 9);
        assert_eq!(set.begin_end(5 % 3, 5), Some(10));
        let mut view = ReadView::default();
        view.fill(&set);
        let seen: Vec<u64> = (0..12).filter(|id| view.sees(TxnId(*id))).collect();
        assert_eq!(seen, [0, 1, 2, 3, 4, 6, 7, 9, 10]);
        assert_eq!((view.up_limit_id, view.low_limit_id, view.low_limit_no), (5, 11, 10));
        set.leave(5 % 3, 5);
        set.leave(8 % 3, 8);
        view.fill(&set);
        assert!(view.sees(TxnId(10)) && !view.sees(TxnId(11)));
        assert_eq!((view.up_limit_id, view.low_limit_no), (11, 11));
    }

    #[test]
    fn views_of_one_moment_are_shared_and_the_oldest_is_known() {
        let set = set(4, &[3, 4]);
        let mut list = ViewList::default();
        let a = list.open(&set, set.clock(), 10);
        set.enter(0).unwrap();
        let b = list.open(&set, set.clock(), 11);
        assert!(Arc::ptr_eq(&a.view, &b.view), "who only enters changes nothing for views");
        let asked_before = set.clock();
        set.leave(0, 3);
        let c = list.open(&set, set.clock(), 12);
        assert!(!Arc::ptr_eq(&a.view, &c.view) && c.view.sees(TxnId(3)));
        assert!(Arc::ptr_eq(&c.view, &list.open(&set, asked_before, 13).view), "a newer view than asked for will do");
        drop(a);
        assert_eq!((list.oldest().unwrap().ids.clone(), list.oldest_age_ms(30)), (vec![3, 4], 20));
        drop(b);
        assert_eq!((list.oldest().unwrap().ids.clone(), list.oldest_age_ms(30)), (vec![4, 5], 18));
        drop(c);
        assert!(list.oldest().is_none());
        list.open(&set, set.clock(), 40);
        assert_eq!(list.oldest_age_ms(50), 0, "it is closed again");
        let again = list.open(&set, set.clock(), 60);
        assert_eq!(list.oldest_age_ms(70), 10, "a view nobody used is not old");
        drop(again);
    }

    /// Behind a view that stays open the list must not grow with every view that is made.
    #[test]
    fn closed_views_behind_an_open_one_are_not_kept() {
        let set = set(3000, &(1..=3000).collect::<Vec<_>>());
        let mut list = ViewList::default();
        let old = list.open(&set, set.clock(), 0);
        for id in 1..=3000 {
            set.leave(id as usize % 3, id);
            drop(list.open(&set, set.clock(), 0));
        }
        assert!(list.views.len() < 20, "{}", list.views.len());
        assert_eq!(list.oldest(), Some(&*old.view));
    }
}
