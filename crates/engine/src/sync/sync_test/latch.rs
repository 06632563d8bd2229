//! The latch with threads of the system.

use crate::sync::latch::Latch;
use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

#[test]
fn holds_exclude_each_other() {
    let latch = Latch::default();
    latch.lock_shared();
    assert!(latch.try_lock_shared());
    assert!(!latch.try_lock_exclusive());
    latch.unlock_shared();
    latch.unlock_shared();
    assert!(latch.try_lock_exclusive());
    assert!(!latch.try_lock_shared());
    assert_eq!(latch.version(), None);
    latch.unlock_exclusive(true);
    assert_eq!(latch.version(), Some(1));
}

#[test]
fn version_tells_of_changes_only() {
    let latch = Latch::default();
    let version = latch.version().unwrap();
    latch.lock_exclusive();
    assert!(!latch.is_version(version));
    latch.unlock_exclusive(false);
    assert!(latch.is_version(version));
    assert!(latch.lock_exclusive_if(version, || true));
    latch.unlock_exclusive(true);
    assert!(!latch.is_version(version));
    assert!(!latch.lock_exclusive_if(version, || true));
    latch.lock_shared();
    assert!(!latch.is_version(version));
    latch.unlock_shared();
}

#[test]
fn a_waiter_in_vain_leaves() {
    for round in 0..200 {
        let latch = Latch::new_exclusive();
        let wanted = AtomicBool::new(true);
        let still = || wanted.load(Ordering::Relaxed);
        thread::scope(|scope| {
            let shared = scope.spawn(|| latch.lock_shared_while(still));
            let exclusive = scope.spawn(|| latch.lock_exclusive_while(still));
            if round % 2 == 0 {
                while !latch.has_waiters() {
                    thread::yield_now();
                }
            }
            wanted.store(false, Ordering::Relaxed);
            latch.nudge();
            assert!(!shared.join().unwrap() && !exclusive.join().unwrap());
        });
        latch.unlock_exclusive(false);
        assert!(latch.lock_shared_while(|| false), "a free latch is taken whatever the condition");
    }
}

struct Guarded(Latch, UnsafeCell<[u64; 4]>, AtomicUsize);
// SAFETY: the cell is touched only under the latch, exclusively for writes.
unsafe impl Sync for Guarded {}

/// Also run under Miri: no data race, no lost wake-up.
#[test]
fn threads_see_whole_changes() {
    let rounds = if cfg!(miri) { 20 } else { 20_000 };
    let shared = Arc::new(Guarded(Latch::default(), UnsafeCell::new([0; 4]), AtomicUsize::new(0)));
    let threads: Vec<_> = (0..4)
        .map(|id| {
            let shared = shared.clone();
            thread::spawn(move || (0..rounds).for_each(|round| one_round(&shared, id, round)))
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
    assert_eq!(shared.2.load(Ordering::Relaxed), rounds * 2);
    assert_eq!(shared.0.version(), Some(rounds as u64 * 2));
}

fn one_round(shared: &Guarded, id: usize, round: usize) {
    if id.is_multiple_of(2) {
        shared.0.lock_exclusive();
        // SAFETY: held exclusively.
        unsafe { (*shared.1.get()).iter_mut().for_each(|n| *n += 1) };
        shared.2.fetch_add(1, Ordering::Relaxed);
        shared.0.unlock_exclusive(true);
    } else {
        shared.0.lock_shared();
        // SAFETY: held shared.
        let seen = unsafe { *shared.1.get() };
        shared.0.unlock_shared();
        assert!(seen.iter().all(|n| *n == seen[0]), "torn read {seen:?} in round {round}");
    }
}
