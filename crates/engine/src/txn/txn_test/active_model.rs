//! Every order in which transactions that come and go and a cut of the active set can take their steps (loom).

mod atomic {
    pub(crate) use crate::sync::checked::loom_primitives::{Mutex, MutexGuard};
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
}
#[allow(dead_code, reason = "the model needs no more of it")]
#[path = "../active.rs"]
mod active;

use active::{ActiveSet, Cut};
use loom::sync::Arc;

/// A set of two shards, with space for ids.
fn set() -> Arc<ActiveSet> {
    let set = ActiveSet::new(1, 2);
    set.raise_limit(100);
    Arc::new(set)
}

/// Whether a cut sees `id`.
fn sees(cut: &Cut, ids: &[u64], id: u64) -> bool {
    id < cut.low_limit_id && !ids.contains(&id)
}

fn model(threads: impl Fn() + Sync + Send + 'static) {
    crate::sync::checked::model(3, threads);
}

/// T2 builds on what T1 left behind. A cut never sees T2 without T1, wherever their shards are, and purge's limit is
/// not above the number of one that is not seen.
#[test]
fn what_a_cut_sees_is_whole() {
    for (first, second, is_known) in [(0, 1, false), (1, 0, false), (0, 1, true), (1, 0, true)] {
        model(move || {
            let set = set();
            let (t1, t2) = (set.enter(first).unwrap(), set.enter(second).unwrap());
            if is_known {
                set.cut(&mut Vec::new());
            }
            let writers = set.clone();
            let writers = loom::thread::spawn(move || {
                let n1 = writers.begin_end(first, t1).unwrap();
                writers.leave(first, t1);
                let n2 = writers.begin_end(second, t2).unwrap();
                writers.leave(second, t2);
                (n1, n2)
            });
            let mut ids = Vec::new();
            let cut = set.cut(&mut ids);
            let (n1, n2) = writers.join().unwrap();
            assert!(sees(&cut, &ids, t1) || !sees(&cut, &ids, t2), "{ids:?} {cut:?}");
            for (id, number) in [(t1, n1), (t2, n2)] {
                assert!(sees(&cut, &ids, id) || cut.low_limit_no <= number, "{ids:?} {cut:?} {number}");
            }
            // A second cut sees all transactions that left before it, whatever the first one left in the set.
            let cut = set.cut(&mut ids);
            assert!(ids.is_empty() && sees(&cut, &ids, t1) && sees(&cut, &ids, t2));
        });
    }
}

/// A transaction that enters during a cut is not seen by it before it has left; a cut made after it has left sees it.
#[test]
fn a_transaction_that_enters_during_a_cut_is_not_taken_for_ended() {
    model(|| {
        let set = set();
        let other = set.clone();
        let writer = loom::thread::spawn(move || {
            let id = other.enter(1).unwrap();
            let asked = other.clock();
            other.leave(1, id);
            (id, asked, other.clock())
        });
        let mut ids = Vec::new();
        let cut = set.cut(&mut ids);
        let (id, before, after) = writer.join().unwrap();
        assert!(!sees(&cut, &ids, id) || cut.clock > before, "{ids:?} {cut:?}");
        assert!(sees(&cut, &ids, id) || cut.clock < after, "{ids:?} {cut:?}");
        let cut = set.cut(&mut ids);
        assert!(sees(&cut, &ids, id), "{ids:?} {cut:?}");
    });
}

/// The same when others have left since the last cut, so that who leaves only reads the clock (rule 5).
#[test]
fn a_transaction_that_comes_and_goes_during_a_cut_is_seen_by_it_or_makes_it_old() {
    model(|| {
        let set = set();
        let first = set.enter(0).unwrap();
        set.leave(0, first);
        let other = set.clone();
        let writer = loom::thread::spawn(move || {
            let id = other.enter(1).unwrap();
            other.leave(1, id);
            (id, other.clock())
        });
        let mut ids = Vec::new();
        let cut = set.cut(&mut ids);
        let (id, after) = writer.join().unwrap();
        assert!(sees(&cut, &ids, id) || cut.clock < after, "{ids:?} {cut:?} {id} {after}");
    });
}

/// Ids that a shard has taken and not given are not given after a cut that has read `next` beyond them: a transaction
/// that gets an id during a cut is not seen by it, though others of its shard were.
#[test]
fn an_allotment_ends_with_a_cut() {
    model(|| {
        let set = set();
        let before: Vec<u64> = (0..3).map(|_| set.enter(0).unwrap()).collect();
        before.iter().for_each(|id| set.leave(0, *id));
        let other = set.clone();
        let writer = loom::thread::spawn(move || {
            let id = other.enter(0).unwrap();
            (id, other.begin_end(0, id).unwrap())
        });
        let mut ids = Vec::new();
        let cut = set.cut(&mut ids);
        let (id, number) = writer.join().unwrap();
        assert!(before.iter().all(|id| sees(&cut, &ids, *id)), "{ids:?} {cut:?}");
        assert!(!sees(&cut, &ids, id) && cut.low_limit_no <= number, "{ids:?} {cut:?} {id} {number}");
        // It is still active for later cuts, whether a cut comes to its shard again or not.
        for _ in 0..2 {
            let cut = set.cut(&mut ids);
            assert!(ids == [id] && cut.low_limit_no == number, "{ids:?} {cut:?} {id} {number}");
        }
    });
}

/// No number is given from the limit on.
#[test]
fn the_limit_holds() {
    model(|| {
        let set = Arc::new(ActiveSet::new(7, 2));
        set.raise_limit(8);
        let other = set.clone();
        let thread = loom::thread::spawn(move || other.enter(1));
        let given: Vec<u64> = [set.enter(0), thread.join().unwrap()].into_iter().flatten().collect();
        assert_eq!(given, [7]);
    });
}
