//! Concurrent structure changes: by several threads in tall trees, and while another thread reads a page slowly.

use crate::btree::Seek;
use crate::btree::btree_test::{Fixture, Pairs, backward, forward, put};
use crate::testing::{ReadGate, small_options, small_parts};
use crate::types::PageNo;
use fastrand::Rng;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::time::Duration;

const THREADS: u32 = 4;
/// Numbers of one thread.
const NUMBERS: u32 = 2048;

/// A key of 494 bytes, 38 for each bit of its number: separators are long, pages hold few, trees are tall.
fn key(number: u32) -> Vec<u8> {
    (0..13).rev().flat_map(|bit| [(number >> bit & 1) as u8; 38]).collect()
}

/// Fills and empties the tree with its own numbers again and again; empty at the end.
fn change(fixture: &Fixture, thread: u32, seed: u64) {
    let mut rng = Rng::with_seed(seed << 8 | u64::from(thread));
    let mut own: Vec<u32> = Vec::new();
    for deletes in [0.2, 0.8, 0.1, 1.0] {
        let steps = if deletes == 1.0 { usize::MAX } else { 1200 };
        for _ in 0..steps {
            if rng.f64() < deletes {
                if own.is_empty() {
                    break;
                }
                let number = own.swap_remove(rng.usize(0..own.len()));
                assert!(fixture.delete(&key(number)).unwrap(), "{number} is gone");
            } else {
                let number = rng.u32(0..NUMBERS) * THREADS + thread;
                let value = vec![thread as u8; rng.usize(0..300)];
                fixture.put(&key(number), &value).unwrap();
                if !own.contains(&number) {
                    own.push(number);
                }
            }
        }
    }
}

fn assert_ascending(pairs: &Pairs) {
    assert!(pairs.windows(2).all(|pair| pair[0].0 < pair[1].0), "out of order");
}

/// Splits, merges, growth and collapse of the root by several threads, concurrently with scans in both directions and
/// with checks of the tree, in a pool smaller than the data. In the end only an empty root is left.
#[test]
fn threads_that_split_and_merge_leave_a_sound_tree() {
    for seed in 0..3 {
        let mut parts = small_parts();
        parts.start_threads().unwrap();
        let mut fixture = Fixture::over(parts);
        let (ctx, tree) = (fixture.ctx(), &fixture.tree);
        let (done, mut levels) = (AtomicBool::new(false), 0);
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let fixture = &fixture;
                    scope.spawn(move || change(fixture, thread, seed))
                })
                .collect();
            scope.spawn(|| {
                while !done.load(Relaxed) {
                    assert_ascending(&forward(ctx, tree, Seek::First));
                    let mut reversed = backward(ctx, tree, Seek::Last);
                    reversed.reverse();
                    assert_ascending(&reversed);
                }
            });
            while !writers.iter().all(|writer| writer.is_finished()) {
                let report = tree.check(ctx).unwrap();
                assert_eq!(report.problems, vec![]);
                levels = levels.max(report.levels);
                std::thread::sleep(Duration::from_millis(5));
            }
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            done.store(true, Relaxed);
        });
        assert!(levels >= 3, "{levels} levels");
        fixture.assert_is(&BTreeMap::new());
        assert_eq!(fixture.parts.space.pages_of(tree.segment()), vec![tree.root()]);
        let stats = ctx.stats.snapshot();
        assert!(stats.btree_splits > 300 && stats.btree_merges > 300, "{stats:?}");
        fixture.parts.close().unwrap();
    }
}

/// A tree whose pages are all out of the pool, its first leaf, and the gate before its reads.
fn cold_tree() -> (Fixture, PageNo, ReadGate) {
    let gate = ReadGate::default();
    let fixture = Fixture::over(gate.open(small_options()));
    (0..100u32).for_each(|n| fixture.put(&n.to_be_bytes(), &[1; 200]).unwrap());
    let first = fixture.tree.leaf(fixture.ctx(), Seek::First).unwrap().page_no();
    fixture.ctx().pool.flush_all().unwrap();
    fixture.ctx().pool.evict_all_clean();
    (fixture, first, gate)
}

/// While one thread's split waits for its leaf to be read, another's goes through, under the same parent.
#[test]
fn a_split_that_waits_for_a_read_holds_up_no_thread() {
    let (fixture, first, gate) = cold_tree();
    let (ctx, tree) = (fixture.ctx(), &fixture.tree);
    gate.hold(first, ctx.pool.page_bytes());
    let splits = ctx.stats.snapshot().btree_splits;
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| tree.make_room(ctx, &0u32.to_be_bytes(), 1000));
        gate.await_reader();
        let (send, finished) = channel();
        scope.spawn(move || {
            (0..40u32).for_each(|n| put(ctx, tree, &(1000 + n).to_be_bytes(), &[2; 200]).unwrap());
            tree.make_room(ctx, &50u32.to_be_bytes(), 1000).unwrap();
            tree.shrink(ctx, &99u32.to_be_bytes()).unwrap();
            send.send(ctx.stats.snapshot().btree_splits).unwrap();
        });
        let after = finished.recv_timeout(Duration::from_secs(60));
        gate.release();
        slow.join().unwrap().unwrap();
        assert!(after.expect("held up by the other split") > splits);
    });
    assert_eq!(tree.check(ctx).unwrap().problems, vec![]);
}

/// With a latch held no thread may wait for a read: a page that another thread is reading counts as missing.
#[test]
fn a_page_being_read_is_not_waited_for_with_latches_held() {
    let (fixture, first, gate) = cold_tree();
    let ctx = fixture.ctx();
    let pool = &ctx.pool;
    gate.hold(first, pool.page_bytes());
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| pool.fix_s(first).map(drop));
        gate.await_reader();
        let (send, finished) = channel();
        scope.spawn(move || {
            let shared = pool.try_fix_s(first).is_some();
            let exclusive = ctx.mtr().unwrap().try_fix_x(first).is_some();
            send.send(([shared, exclusive], pool.peek_u64(first, 16))).unwrap();
        });
        let found = finished.recv_timeout(Duration::from_secs(60));
        // A thread that may wait does so, and the page is read once.
        let waiter = scope.spawn(|| pool.fix_s(first).map(drop));
        let reads = fixture.ctx().stats.snapshot().pages_read;
        gate.release();
        reader.join().unwrap().unwrap();
        waiter.join().unwrap().unwrap();
        assert_eq!(found.expect("waits for the read"), ([false; 2], None));
        assert_eq!(fixture.ctx().stats.snapshot().pages_read, reads + 1);
    });
    assert!(pool.try_fix_s(first).is_some());
}

/// Two threads that found the same page full split it once.
#[test]
fn room_that_another_has_made_is_not_made_again() {
    let (fixture, ..) = cold_tree();
    let (ctx, tree) = (fixture.ctx(), &fixture.tree);
    let middle = 50u32.to_be_bytes();
    tree.make_room(ctx, &middle, 1000).unwrap();
    let splits = ctx.stats.snapshot().btree_splits;
    std::thread::scope(|scope| {
        (0..4).for_each(|_| drop(scope.spawn(|| tree.make_room(ctx, &middle, 1000).unwrap())));
    });
    assert_eq!(ctx.stats.snapshot().btree_splits, splits);
}
