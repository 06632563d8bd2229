//! Read views: which transactions a snapshot sees.
//!
//! Terms (InnoDB's): `up_limit_id` is the smallest id active when the view was made, everything below is visible;
//! `low_limit_id` the next id to be given, everything from there on is invisible; `ids` the active ones between.
//! `low_limit_no`: every transaction whose commit number is below it had ended when the view was made, so purge may
//! drop what only older views needed.
//!
//! Rules
//! 1. Views are made under the system's mutex, one after the other; what an older view sees, a newer one sees too.
//! 2. Sessions that ask between two changes of the active set share one view.

use crate::types::TrxId;
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
}

impl ReadView {
    /// Whether the view sees what transaction `id` wrote.
    #[inline]
    pub(crate) fn sees(&self, id: TrxId) -> bool {
        id.0 < self.up_limit_id || (id.0 < self.low_limit_id && self.ids.binary_search(&id.0).is_err())
    }

    /// Makes this the view of a moment with these active `ids` (ascending), numbers in commit and next id.
    pub(crate) fn fill(&mut self, ids: &[u64], first_no_in_commit: Option<u64>, next_id: u64) {
        self.up_limit_id = ids.first().copied().unwrap_or(next_id);
        self.low_limit_id = next_id;
        self.low_limit_no = first_no_in_commit.unwrap_or(next_id);
        self.ids.clear();
        self.ids.extend_from_slice(ids);
    }

    /// Makes this a copy of `other`, keeping its memory.
    pub(crate) fn copy_from(&mut self, other: &ReadView) {
        self.clone_from(other);
    }
}

/// An open view; give it back with [`ViewList::close`].
#[derive(Clone, Debug)]
pub(crate) struct ViewHandle {
    /// The view.
    pub(crate) view: Arc<ReadView>,
    serial: u64,
}

#[derive(Debug)]
struct Listed {
    serial: u64,
    users: u32,
    version: u64,
    view: Arc<ReadView>,
}

/// Every open view, oldest first.
#[derive(Debug, Default)]
pub(crate) struct ViewList {
    open: VecDeque<Listed>,
    next_serial: u64,
    spare: Vec<Arc<ReadView>>,
}

impl ViewList {
    /// Opens a view; `version` changes whenever the active set does, `fill` writes the view of the moment.
    pub(crate) fn open(&mut self, version: u64, fill: impl FnOnce(&mut ReadView)) -> ViewHandle {
        if let Some(last) = self.open.back_mut().filter(|last| last.version == version) {
            last.users += 1;
            return ViewHandle { view: Arc::clone(&last.view), serial: last.serial };
        }
        let mut view = self.spare.pop().unwrap_or_default();
        match Arc::get_mut(&mut view) {
            Some(view) => fill(view),
            None => fill(Arc::make_mut(&mut view)),
        }
        let serial = self.next_serial;
        self.next_serial += 1;
        self.open.push_back(Listed { serial, users: 1, version, view: Arc::clone(&view) });
        ViewHandle { view, serial }
    }

    /// Closes a view.
    pub(crate) fn close(&mut self, handle: ViewHandle) {
        let Ok(at) = self.open.binary_search_by_key(&handle.serial, |listed| listed.serial) else {
            debug_assert!(false, "view {} is not open", handle.serial);
            return;
        };
        drop(handle);
        self.open[at].users -= 1;
        if self.open[at].users == 0
            && let Some(listed) = self.open.remove(at)
            && self.spare.len() < 64
        {
            self.spare.push(listed.view);
        }
    }

    /// The oldest open view.
    pub(crate) fn oldest(&self) -> Option<&ReadView> {
        self.open.front().map(|listed| &*listed.view)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_sees_what_had_committed() {
        let mut view = ReadView::default();
        view.fill(&[5, 8], Some(7), 10);
        let seen: Vec<u64> = (0..12).filter(|id| view.sees(TrxId(*id))).collect();
        assert_eq!(seen, [0, 1, 2, 3, 4, 6, 7, 9]);
        assert_eq!(view.low_limit_no, 7);
        view.fill(&[], None, 10);
        assert!(view.sees(TrxId(9)) && !view.sees(TrxId(10)));
    }

    #[test]
    fn views_of_one_moment_are_shared_and_the_oldest_is_known() {
        let mut list = ViewList::default();
        let a = list.open(1, |v| v.fill(&[], None, 3));
        let b = list.open(1, |_| panic!("the moment has a view already"));
        let c = list.open(2, |v| v.fill(&[], None, 4));
        assert!(Arc::ptr_eq(&a.view, &b.view) && !Arc::ptr_eq(&b.view, &c.view));
        list.close(a);
        assert_eq!(list.oldest().unwrap().low_limit_id, 3);
        list.close(b);
        assert_eq!(list.oldest().unwrap().low_limit_id, 4);
        list.close(c);
        assert!(list.oldest().is_none());
        let d = list.open(3, |v| v.fill(&[1], None, 9));
        assert_eq!(d.view.up_limit_id, 1);
    }
}
