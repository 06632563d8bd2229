//! Views and their lists. (Not in their files: loom's models have those as well.)

use super::active::{ActiveSet, MAX_SHARDS};
use super::view::{ReadView, ViewHandle, ViewList};
use super::views::Views;
use crate::types::TxnId;
use std::collections::BTreeMap;
use std::sync::Arc;

impl ViewList {
    fn open_of(&mut self, set: &ActiveSet, asked: u64, now_ms: u64) -> ViewHandle {
        self.open(asked, |view| view.fill(set), || now_ms)
    }
}

/// A set in which ids 1 to `n` were given and those in `active` are left.
fn set(n: u64, active: &[u64]) -> ActiveSet {
    let set = ActiveSet::new(1, 3);
    set.raise_limit(10_000);
    for id in 1..=n {
        assert_eq!(set.enter(id as usize % 3), Some(id));
        // So no shard has more ids allotted than it gave.
        set.cut(&mut Vec::new());
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
    let a = list.open_of(&set, set.clock(), 10);
    set.enter(0).unwrap();
    let b = list.open_of(&set, set.clock(), 11);
    assert!(Arc::ptr_eq(&a.view, &b.view), "who only enters changes nothing for views");
    let asked_before = set.clock();
    set.leave(0, 3);
    let c = list.open_of(&set, set.clock(), 12);
    assert!(!Arc::ptr_eq(&a.view, &c.view) && c.view.sees(TxnId(3)));
    assert!(Arc::ptr_eq(&c.view, &list.open_of(&set, asked_before, 13).view), "a newer view than asked for will do");
    drop(a);
    assert_eq!((list.oldest().unwrap().ids.clone(), list.oldest_age_ms(30)), (vec![3, 4], 20));
    drop(b);
    assert_eq!((list.oldest().unwrap().ids.clone(), list.oldest_age_ms(30)), (vec![4, 5], 18));
    drop(c);
    assert!(list.oldest().is_none());
    list.open_of(&set, set.clock(), 40);
    assert_eq!(list.oldest_age_ms(50), 0, "it is closed again");
    let again = list.open_of(&set, set.clock(), 60);
    assert_eq!(list.oldest_age_ms(70), 10, "a view that was not used is not old");
    drop(again);
}

/// Behind a view that stays open the list must not grow with every view that is made.
#[test]
fn closed_views_behind_an_open_one_are_not_kept() {
    let set = set(3000, &(1..=3000).collect::<Vec<_>>());
    let mut list = ViewList::default();
    let old = list.open_of(&set, set.clock(), 0);
    for id in 1..=3000 {
        set.leave(id as usize % 3, id);
        drop(list.open_of(&set, set.clock(), 0));
    }
    assert!(list.views.len() < 20, "{}", list.views.len());
    assert_eq!(list.oldest(), Some(&*old.view));
}

#[test]
fn the_oldest_of_all_lists_is_found_and_the_newest_is_shared() {
    let set = ActiveSet::new(1, 2);
    set.raise_limit(100);
    let views = Views::new(3);
    let ids: Vec<u64> = (0..4).map(|n| set.enter(n % 2).unwrap()).collect();
    let open = |list: usize, now: u64| views.open(&set, list, || now);
    let first = open(1, 10);
    set.leave(0, ids[0]);
    let second = open(2, 20);
    let third = open(0, 30);
    assert_eq!((&second.view.ids, second.view.clock), (&third.view.ids, third.view.clock), "one cut for both");
    assert!(first.view.clock < second.view.clock);
    let mut oldest = ReadView::default();
    assert_eq!(views.copy_oldest(&set, &mut oldest), ids[1]);
    assert_eq!((&oldest, views.oldest_age_ms(50)), (&*first.view, 40));
    let copy = first.clone();
    drop(first);
    views.copy_oldest(&set, &mut oldest);
    assert_eq!(oldest, *copy.view, "a copied handle keeps it open");
    drop(copy);
    views.copy_oldest(&set, &mut oldest);
    assert_eq!((oldest.clock, views.oldest_age_ms(50)), (second.view.clock, 30));
    drop((second, third));
    set.leave(1, ids[1]);
    views.copy_oldest(&set, &mut oldest);
    assert_eq!((oldest.ids.as_slice(), views.oldest_age_ms(50)), (&ids[2..], 0));
}

/// Cuts that come to the changed shards only find what cuts of all shards would.
#[test]
fn views_of_many_shards_know_who_is_active() {
    let (set, mut rng) = (ActiveSet::new(1, MAX_SHARDS), fastrand::Rng::with_seed(5));
    set.raise_limit(1 << 40);
    let (mut active, mut view) = (BTreeMap::new(), ReadView::default());
    for turn in 0..20_000 {
        let shard = rng.usize(0..MAX_SHARDS);
        match rng.u32(0..4) {
            0 | 1 if active.len() < 200 => drop(active.insert(set.enter(shard).unwrap(), (shard, 0))),
            _ if active.is_empty() => {}
            kind => {
                let nth = rng.usize(0..active.len());
                let (id, (shard, number)) = active.iter_mut().nth(nth).unwrap();
                let (id, shard) = (*id, *shard);
                match kind {
                    2 if *number == 0 => *number = set.begin_end(shard, id).unwrap(),
                    2 => {
                        set.abort_end(shard, id);
                        *number = 0;
                    }
                    _ => {
                        set.leave(shard, id);
                        active.remove(&id);
                    }
                }
            }
        }
        if turn % 3 == 0 {
            view.fill(&set);
            assert_eq!(view.ids, active.keys().copied().collect::<Vec<_>>());
            let numbers = active.values().map(|(_, number)| *number).filter(|number| *number > 0);
            assert_eq!(view.low_limit_no, numbers.min().unwrap_or(view.low_limit_id));
        }
    }
}
