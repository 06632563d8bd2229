//! A reader whose page moves to another frame, in every order of the threads' steps, and of memory (loom).

use crate::sync::checked::loom_primitives::{self as sync, SPINS, atomic, parking, spin_loop, thread};
use crate::sync::checked::model;
#[allow(dead_code, reason = "the model needs no more of it")]
#[path = "../../sync/latch.rs"]
mod latch;
use latch::Latch;
#[allow(dead_code, reason = "the model needs no more of it")]
#[path = "../frames/dirty.rs"]
mod dirty;
#[allow(dead_code, reason = "the model needs no more of it")]
#[path = "../frames/frame.rs"]
mod frame;
#[allow(dead_code, reason = "the model needs no more of it")]
#[path = "../frames/lookup.rs"]
mod lookup;
#[allow(dead_code, reason = "the model needs no more of it")]
#[path = "../frames/memory.rs"]
mod memory;
#[allow(dead_code, reason = "the model needs no more of it")]
#[path = "../frames/page_table.rs"]
mod page_table;

use crate::types::PageNo;
use atomic::{AtomicU64, Ordering::Relaxed};
use frame::{FrameNo, Frames};
use page_table::PageTable;
use std::sync::Arc;

const PAGE: PageNo = PageNo(1);
const OTHER: PageNo = PageNo(2);

type Latching = fn(&PageTable, &Frames, PageNo) -> Option<FrameNo>;

/// Frames and their page table; the bytes of each page are two words with its number.
struct Pool {
    frames: Frames,
    table: PageTable,
    words: [AtomicU64; 2],
}

impl Pool {
    /// The page is in the only frame.
    fn new() -> Arc<Pool> {
        let pool = Pool {
            frames: Frames::new(1, 4096).unwrap(),
            table: PageTable::new(1).unwrap(),
            words: [AtomicU64::new(0), AtomicU64::new(0)],
        };
        pool.bring(PAGE);
        Arc::new(pool)
    }

    /// Brings a page into the frame, which is free.
    fn bring(&self, page: PageNo) {
        assert_eq!(self.table.enter(&self.frames, page, 0), None);
        self.words.iter().for_each(|word| word.store(u64::from(page.0), Relaxed));
        self.frames.get(0).latch.unlock_exclusive(true);
    }

    /// Evicts the page unless it is latched; whether it is gone.
    fn evict(&self) -> bool {
        let gone = self.frames.get(0).latch.try_lock_exclusive();
        if gone {
            self.table.unmap(&self.frames, 0);
        }
        gone
    }

    fn words(&self) -> [u64; 2] {
        [self.words[0].load(Relaxed), self.words[1].load(Relaxed)]
    }

    fn is_of(&self, page: PageNo) -> bool {
        self.words() == [u64::from(page.0); 2]
    }

    /// A thread that evicts the page, and gives its frame to the other one if `to_other`.
    fn mover(self: &Arc<Pool>, to_other: bool) -> thread::JoinHandle<()> {
        let pool = self.clone();
        thread::spawn(move || {
            if pool.evict() && to_other {
                pool.bring(OTHER);
            }
        })
    }
}

/// What a view reads and confirms is its page's.
#[test]
fn a_confirmed_view_is_of_its_page() {
    model(2, || {
        let pool = Pool::new();
        let mover = pool.mover(true);
        if let Some((frame, version)) = pool.table.view(&pool.frames, PAGE) {
            let words = pool.words();
            if pool.frames.get(frame).latch.is_version(version) {
                assert_eq!(words, [1, 1], "another page's bytes, or half of them");
            }
        }
        mover.join().unwrap();
    });
}

/// A page that was latched is that page, and stays.
#[test]
fn a_latched_page_is_the_page_asked_for() {
    let ways: [(Latching, bool); 2] = [(PageTable::latch_s, true), (PageTable::latch_x, false)];
    for (latch, shared) in ways {
        model(2, move || {
            let pool = Pool::new();
            let mover = pool.mover(true);
            if let Some(frame) = latch(&pool.table, &pool.frames, PAGE) {
                assert!(pool.is_of(PAGE), "{:?}", pool.words());
                let latch = &pool.frames.get(frame).latch;
                if shared { latch.unlock_shared() } else { latch.unlock_exclusive(false) }
            }
            mover.join().unwrap();
        });
    }
}

/// A page that was seen is found again only where it was, unchanged.
#[test]
fn a_page_seen_before_is_found_again_unchanged_only() {
    model(2, || {
        let pool = Pool::new();
        let seen = pool.frames.get(0).latch.version().unwrap();
        let mover = pool.mover(true);
        if pool.frames.get(0).latch_s_at(PAGE, seen) {
            assert!(pool.is_of(PAGE), "{:?}", pool.words());
            pool.frames.get(0).latch.unlock_shared();
        }
        mover.join().unwrap();
    });
}

/// A page is evicted and its frame stays free, so its latch is never released: no thread waits for it. (Loom finds a
/// thread that does: a deadlock.)
#[test]
fn no_thread_waits_for_a_free_frame() {
    model(3, || {
        let pool = Pool::new();
        let reader = {
            let pool = pool.clone();
            thread::spawn(move || match pool.table.latch_s(&pool.frames, PAGE) {
                Some(frame) => pool.frames.get(frame).latch.unlock_shared(),
                None => assert_eq!(pool.table.find(&pool.frames, PAGE), None),
            })
        };
        pool.evict();
        reader.join().unwrap();
    });
}
