//! The latch in every order of its threads' steps, and of memory (loom).

use crate::sync::checked::loom_primitives::{SPINS, atomic, parking, spin_loop, thread};
use crate::sync::checked::model;
#[allow(dead_code, reason = "the model needs no more of it")]
#[path = "../latch.rs"]
mod latch;

use atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use latch::Latch;
use loom::cell::UnsafeCell;
use std::sync::Arc;

/// Two words that a change makes equal again, as a page's bytes: latch-free readers may look at any time.
#[derive(Default)]
struct Page {
    latch: Latch,
    words: [AtomicU64; 2],
}

impl Page {
    fn change(&self) {
        self.latch.lock_exclusive();
        for word in &self.words {
            word.store(word.load(Relaxed) + 1, Relaxed);
        }
        self.latch.unlock_exclusive(true);
    }

    fn words(&self) -> [u64; 2] {
        [self.words[0].load(Relaxed), self.words[1].load(Relaxed)]
    }
}

/// A version that is confirmed after the reads brackets no part of a change (rules 2 and 3).
#[test]
fn what_a_version_confirms_is_whole() {
    model(3, || {
        let page = Arc::new(Page::default());
        let writer = page.clone();
        let writer = thread::spawn(move || writer.change());
        if let Some(version) = page.latch.version() {
            let [first, second] = page.words();
            if page.latch.is_version(version) {
                assert_eq!(first, second, "half of a change at version {version}");
                assert_eq!(first, version, "the change of another version");
            }
        }
        writer.join().unwrap();
        assert_eq!((page.words(), page.latch.version()), ([1, 1], Some(1)));
    });
}

/// Bytes behind the latch: loom notices if two holds that exclude each other are not ordered.
#[derive(Default)]
struct Guarded(Latch, UnsafeCell<u64>);
// SAFETY: the cell is touched only under the latch, exclusively for writes.
unsafe impl Sync for Guarded {}
// SAFETY: as above.
unsafe impl Send for Guarded {}

/// Holds exclude each other and see what holds before them did (rule 1); every waiting thread gets its turn (rule 4).
#[test]
fn holds_are_ordered_and_none_waits_for_ever() {
    model(2, || {
        let guarded = Arc::new(Guarded::default());
        let raise = |guarded: &Guarded| {
            guarded.0.lock_exclusive();
            // SAFETY: held exclusively.
            guarded.1.with_mut(|n| unsafe { *n += 1 });
            guarded.0.unlock_exclusive(true);
        };
        let (writer, reader) = (guarded.clone(), guarded.clone());
        let writer = thread::spawn(move || raise(&writer));
        let reader = thread::spawn(move || {
            reader.0.lock_shared();
            // SAFETY: held shared.
            let seen = reader.1.with(|n| unsafe { *n });
            reader.0.unlock_shared();
            assert!(seen <= 2);
        });
        raise(&guarded);
        writer.join().unwrap();
        reader.join().unwrap();
        assert_eq!(guarded.0.version(), Some(2));
    });
}

/// A thread that waits while a condition holds stops when it is ended, whatever it was about to do (rule 5).
#[test]
fn a_waiter_in_vain_is_woken() {
    model(3, || {
        let shared = Arc::new((Latch::new_exclusive(), AtomicBool::new(true)));
        let waiter = shared.clone();
        let waiter = thread::spawn(move || waiter.0.lock_shared_while(|| waiter.1.load(Relaxed)));
        shared.1.store(false, Relaxed);
        shared.0.nudge();
        assert!(!waiter.join().unwrap());
    });
}
