//! Tests of the lock system without pages: hot rows, deadlocks against a plain model, memory, stopping.

mod model;

use super::holder::{Holder, LockMode, OwnerId, RowName};
use super::queue::MAX_PASSES;
use super::system::LockSystem;
use super::waits::WaitOutcome;
use crate::error::Error;
use crate::stats::Stats;
use crate::sync::poison::Poison;
use crate::types::{IndexId, TxnId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::{Duration, Instant};

const INDEX: IndexId = IndexId(7);
const LONG: Duration = Duration::from_secs(20);

fn system() -> Arc<LockSystem> {
    LockSystem::open(Arc::default(), &Arc::default())
}

fn active(id: u64) -> Arc<Holder> {
    let holder = Holder::default();
    holder.trx_id.store(id, SeqCst);
    Arc::new(holder)
}

fn row(key: &[u8]) -> RowName<'_> {
    RowName { index: INDEX, key }
}

fn steps(system: &LockSystem) -> u64 {
    system.waits().steps
}

/// Begins to wait and looks for deadlocks, as `wait_row` does.
fn wait(system: &LockSystem, me: &Arc<Holder>, key: &[u8], mode: LockMode) {
    assert!(system.begin_row_wait(me, row(key), mode, None));
    system.waits().resolve_deadlocks(me.owner);
}

/// What the thread of `of` finds when it runs.
fn outcome(system: &LockSystem, of: &Holder) -> Option<WaitOutcome> {
    system.waits().take_turn(of.owner)
}

/// Only the row that was locked last, and was not held before, is unlocked; those who wait for it continue.
#[test]
fn a_row_that_is_not_wanted_is_unlocked() {
    let system = system();
    let (me, other) = (active(1), active(2));
    for mode in [LockMode::Shared, LockMode::Exclusive] {
        assert!(system.try_lock_row(&me, row(b"kept"), mode));
        assert!(system.try_lock_row(&me, row(b"row"), mode));
        assert!(!system.unlock_row(&me, row(b"kept")) && !system.unlock_row(&me, row(b"row")));
        assert!(!system.try_lock_row(&other, row(b"row"), LockMode::Exclusive));
        system.release_all(&me);
    }
    assert!(system.try_lock_row(&me, row(b"kept"), LockMode::Shared));
    assert!(system.try_lock_row(&me, row(b"row"), LockMode::Exclusive));
    wait(&system, &other, b"row", LockMode::Exclusive);
    assert!(system.unlock_row(&me, row(b"row")) && !system.unlock_row(&me, row(b"row")));
    assert_eq!(outcome(&system, &other), Some(WaitOutcome::Granted));
    system.end_row_wait(&other, row(b"row"));
    assert!(system.try_lock_row(&me, row(b"kept"), LockMode::Exclusive), "a stronger mode is not a new lock");
    assert!(!system.unlock_row(&me, row(b"kept")));
    assert!(!system.try_lock_row(&other, row(b"kept"), LockMode::Shared));
    system.release_all(&me);
    system.release_all(&other);
    assert!(system.is_empty());
}

/// A row is free and the front of its queue has not run yet: others take it, each wakes the front again, and after
/// `MAX_PASSES` of them it is handed over.
#[test]
fn a_free_row_is_passed_on_a_limited_number_of_times() {
    let system = system();
    let (first, front, behind) = (active(1), active(2), active(3));
    let stands = |of: &Holder| system.waits().outcome(of.owner);
    assert!(system.try_lock_row(&first, row(b"hot"), LockMode::Exclusive));
    wait(&system, &front, b"hot", LockMode::Exclusive);
    wait(&system, &behind, b"hot", LockMode::Exclusive);
    let mut holds = first;
    for id in 0..u64::from(MAX_PASSES) {
        let passer = active(10 + id);
        assert!(system.blocks_row(&passer, row(b"hot"), LockMode::Shared), "it is held");
        system.release_all(&holds);
        assert_eq!(stands(&front), Some(WaitOutcome::Pending));
        assert_eq!(outcome(&system, &behind), Some(WaitOutcome::Pending), "it is not its turn");
        // By its id or explicitly, shared or not.
        let mode = if id % 2 == 0 { LockMode::Exclusive } else { LockMode::Shared };
        let passes = if id % 3 == 0 {
            system.try_lock_row(&passer, row(b"hot"), mode)
        } else {
            !system.blocks_row(&passer, row(b"hot"), mode)
        };
        assert!(passes && !system.try_lock_row(&active(9), row(b"hot"), LockMode::Shared), "{id}");
        assert_eq!(outcome(&system, &front), Some(WaitOutcome::Pending), "it came too late");
        holds = passer;
    }
    system.release_all(&holds);
    assert_eq!(stands(&front), Some(WaitOutcome::Granted), "it was handed over");
    assert!(system.blocks_row(&active(9), row(b"hot"), LockMode::Shared));
    system.end_row_wait(&front, row(b"hot"));
    system.release_all(&front);
    // The next one may be passed as often. If it gives up instead, nothing is left.
    assert_eq!(stands(&behind), Some(WaitOutcome::Pending));
    system.end_row_wait(&behind, row(b"hot"));
    assert!(system.is_empty());
}

/// Those who wait to read are not passed: they are handed the row together.
#[test]
fn readers_are_handed_a_row_together() {
    let system = system();
    let (first, readers, writer) = (active(1), [active(2), active(3)], active(4));
    assert!(system.try_lock_row(&first, row(b"hot"), LockMode::Exclusive));
    readers.iter().for_each(|reader| wait(&system, reader, b"hot", LockMode::Shared));
    wait(&system, &writer, b"hot", LockMode::Exclusive);
    system.release_all(&first);
    for reader in &readers {
        assert_eq!(system.waits().outcome(reader.owner), Some(WaitOutcome::Granted));
        system.end_row_wait(reader, row(b"hot"));
        system.release_all(reader);
    }
    assert_eq!(outcome(&system, &writer), Some(WaitOutcome::Granted));
    system.end_row_wait(&writer, row(b"hot"));
    system.release_all(&writer);
    assert!(system.is_empty());
}

/// The first locks the row explicitly without the leaf's latch; meanwhile the second, which changed it, holds it
/// implicitly. Once that lock is explicit too, the first has to wait: it would try for ever without waiting, where no
/// deadlock detector sees it.
#[test]
fn a_row_holder_waits_for_an_implicit_lock_besides_its_own() {
    let system = system();
    let (first, second, third) = (active(1), active(2), active(3));
    assert!(system.try_lock_row(&first, row(b"row"), LockMode::Exclusive));
    assert!(!system.blocks_row(&first, row(b"row"), LockMode::Exclusive), "its own lock is not in its way");
    assert!(system.begin_row_wait(&third, row(b"row"), LockMode::Shared, Some((TxnId(2), &second))));
    assert!(system.blocks_row(&first, row(b"row"), LockMode::Exclusive));
    assert!(system.blocks_row(&first, row(b"row"), LockMode::Shared));
    assert!(!system.try_lock_row(&first, row(b"row"), LockMode::Exclusive), "it takes nothing it holds for granted");
    system.end_row_wait(&third, row(b"row"));
    assert!(!system.begin_row_wait(&third, row(b"other"), LockMode::Shared, Some((TxnId(9), &second))), "9 has ended");
    [first, second, third].iter().for_each(|holder| system.release_all(holder));
    assert!(system.is_empty());
}

#[test]
fn thousands_wait_for_one_row_and_each_costs_the_same() {
    let n = 5000;
    let system = system();
    let holders: Vec<_> = (1..=n).map(active).collect();
    for (i, holder) in holders.iter().enumerate() {
        // Each has a row of its own, as after other work, and none waits for that.
        assert!(system.try_lock_row(holder, row(&i.to_be_bytes()), LockMode::Exclusive));
    }
    assert!(system.try_lock_row(&holders[0], row(b"hot"), LockMode::Exclusive));
    holders[1..].iter().for_each(|holder| wait(&system, holder, b"hot", LockMode::Exclusive));
    assert!(steps(&system) <= 2 * n, "{} steps of searches", steps(&system));
    // One in three gives up, from the middle of the queue.
    let gives_up = |i: usize| i.is_multiple_of(3);
    for (_, holder) in holders.iter().enumerate().filter(|(i, _)| *i > 0 && gives_up(*i)) {
        system.end_row_wait(holder, row(b"hot"));
    }
    // A transaction waits for each of them now, so that each search has to look further.
    let others: Vec<_> = (n + 1..=2 * n).map(active).collect();
    for (i, other) in others.iter().enumerate() {
        wait(&system, other, &i.to_be_bytes(), LockMode::Shared);
    }
    assert!(steps(&system) <= 4 * n, "{} steps of searches", steps(&system));
    let served = |i: &usize| *i == 0 || !gives_up(*i);
    let order: Vec<usize> = (0..n as usize).filter(served).collect();
    for (at, next) in order.iter().enumerate().skip(1) {
        system.release_all(&holders[order[at - 1]]);
        assert_eq!(outcome(&system, &holders[*next]), Some(WaitOutcome::Granted));
        if let Some(behind) = order.get(at + 1) {
            assert_eq!(outcome(&system, &holders[*behind]), Some(WaitOutcome::Pending), "one at a time");
        }
        system.end_row_wait(&holders[*next], row(b"hot"));
    }
    holders.iter().for_each(|holder| system.release_all(holder));
    for (i, other) in others.iter().enumerate() {
        assert_eq!(outcome(&system, other), Some(WaitOutcome::Granted));
        system.end_row_wait(other, row(&i.to_be_bytes()));
        system.release_all(other);
    }
    assert!(system.is_empty());
}

/// Sessions with something that others wait for queue for one row: their searches look at its holders, not at the
/// queue.
#[test]
fn a_search_does_not_walk_a_queue_and_looks_at_holders_once() {
    let n = 2000;
    let system = system();
    let holders: Vec<_> = (1..=n).map(active).collect();
    let waiters: Vec<_> = (n + 1..=2 * n).map(active).collect();
    holders.iter().for_each(|holder| assert!(system.try_lock_row(holder, row(b"shared"), LockMode::Shared)));
    for (i, waiter) in waiters.iter().enumerate() {
        assert!(system.try_lock_row(waiter, row(&i.to_be_bytes()), LockMode::Exclusive));
        wait(&system, waiter, b"shared", LockMode::Exclusive);
    }
    assert_eq!(steps(&system), 0, "no thread waits for the waiters but those behind them");
    // Every holder waits for a waiter: each of these closes a cycle, found in one search over the holders.
    for (i, holder) in holders.iter().take(5).enumerate() {
        let before = steps(&system);
        assert!(system.begin_row_wait(holder, row(&i.to_be_bytes()), LockMode::Exclusive, None));
        assert_eq!(system.waits().resolve_deadlocks(holder.owner), 1);
        assert!(steps(&system) - before <= 2 * (n + 10), "{} steps", steps(&system) - before);
        system.end_row_wait(holder, row(&i.to_be_bytes()));
        system.release_all(holder);
    }
}

/// `holder` waits already when its implicit lock becomes explicit on a row for which `waiter` waits: the cycle of the
/// two is closed by a third, and does not go through it.
#[test]
fn a_cycle_closed_by_an_implicit_lock_that_becomes_explicit_is_found() {
    let system = system();
    let (blocker, waiter, holder, third) = (active(1), active(2), active(3), active(4));
    assert!(system.try_lock_row(&blocker, row(b"a"), LockMode::Exclusive));
    assert!(system.try_lock_row(&waiter, row(b"b"), LockMode::Exclusive));
    let run = |me: &Arc<Holder>, key: &'static [u8], implicit: Option<(TxnId, &Arc<Holder>)>| {
        let result = system.wait_row(me, row(key), LockMode::Exclusive, implicit, LONG);
        if matches!(result, Err(Error::Deadlock)) {
            system.release_all(me);
        }
        result
    };
    let wait_for = |who: &Holder| {
        while !system.is_waiting(who) {
            std::thread::yield_now();
        }
    };
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| run(&waiter, b"a", None));
        wait_for(&waiter);
        let holds = scope.spawn(|| run(&holder, b"b", None));
        wait_for(&holder);
        let comes = scope.spawn(|| run(&third, b"a", Some((TxnId(3), &holder))));
        // Of equal weight: the one through which it is searched. Then all are served.
        assert!(matches!(holds.join().unwrap(), Err(Error::Deadlock)));
        system.release_all(&blocker);
        waits.join().unwrap().unwrap();
        system.release_all(&waiter);
        comes.join().unwrap().unwrap();
    });
    system.release_all(&third);
    assert!(system.is_empty());
}

#[test]
fn a_lock_takes_little_memory_and_releases_it() {
    let n = 50_000u64;
    let system = system();
    let (me, other) = (active(1), active(2));
    for i in 0..64u64 {
        assert!(system.try_lock_row(&other, row(&[b'o', i as u8]), LockMode::Exclusive));
    }
    for i in 0..n {
        assert!(system.try_lock_row(&me, row(&i.to_be_bytes()), LockMode::Exclusive));
    }
    let bytes = system.row_bytes();
    assert!(bytes < n as usize * 110, "{bytes} bytes for {n} locks");
    assert!(system.blocks_row(&other, row(&7u64.to_be_bytes()), LockMode::Shared));
    system.release_all(&me);
    assert!(system.row_bytes() < 128 << 10, "{} bytes are kept for 64 locks", system.row_bytes());
    assert!(!system.blocks_row(&other, row(&7u64.to_be_bytes()), LockMode::Shared));
    for i in 0..64u64 {
        assert!(system.blocks_row(&me, row(&[b'o', i as u8]), LockMode::Exclusive));
    }
    system.release_all(&other);
    assert!(system.is_empty());
}

#[test]
fn neighbouring_keys_spread_over_shards_and_buckets() {
    let n = 40_000u64;
    let keys: [fn(u64) -> Vec<u8>; 4] = [
        |i| i.to_be_bytes().to_vec(),
        |i| (i as u32).to_be_bytes().to_vec(),
        |i| (i << 20).to_be_bytes().to_vec(),
        |i| format!("user{i:08}").into_bytes(),
    ];
    for (kind, key) in keys.iter().enumerate() {
        for shift in [0, 32] {
            let mut counts = vec![0u64; 64];
            let mut fine = vec![0u64; 4096];
            for i in 0..n {
                let bits = (row(&key(i)).hash() >> shift) as usize;
                counts[bits % 64] += 1;
                fine[bits % 4096] += 1;
            }
            // Of hashes at random: 625 in each of 64, and about 10 in each of 4096.
            let (least, max) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
            assert!(*least > 400 && *max < 850, "keys {kind}, bits from {shift}: {least} to {max}");
            assert!(*fine.iter().max().unwrap() < 50, "keys {kind}, bits from {shift}: {:?}", fine.iter().max());
        }
    }
}

#[test]
fn long_keys_and_many_holders_are_told_apart() {
    let system = system();
    let holders: Vec<_> = (1..=40).map(active).collect();
    let key = |i: usize| vec![i as u8; i];
    for i in 0..40 {
        holders.iter().for_each(|holder| assert!(system.try_lock_row(holder, row(&key(i)), LockMode::Shared)));
        assert!(!system.try_lock_row(&holders[i], row(&key(i)), LockMode::Exclusive));
        assert!(!system.blocks_row(&holders[i], RowName { index: IndexId(8), key: &key(i) }, LockMode::Exclusive));
    }
    holders[1..].iter().for_each(|holder| system.release_all(holder));
    for i in 0..40 {
        assert!(!system.try_lock_row(&holders[1], row(&key(i)), LockMode::Exclusive));
        assert!(system.try_lock_row(&holders[0], row(&key(i)), LockMode::Exclusive));
    }
    system.release_all(&holders[0]);
    assert!(system.is_empty());
}

/// Threads that lock, wait and release at random; nothing is left, none hangs, and no two hold a row at once.
#[test]
fn many_threads_exclude_each_other() {
    use std::sync::atomic::AtomicU32;
    let system = system();
    let inside: Vec<AtomicU32> = (0..5).map(|_| AtomicU32::new(0)).collect();
    std::thread::scope(|scope| {
        for me in 0..4u64 {
            let (system, inside) = (&system, &inside);
            scope.spawn(move || {
                let holder = active(0);
                let mut random = fastrand::Rng::with_seed(me);
                for _ in 0..2000 {
                    let mut held = BTreeSet::new();
                    for _ in 0..random.u64(0..4) {
                        let at = random.usize(0..5);
                        match system.wait_row(&holder, row(&[at as u8]), LockMode::Exclusive, None, LONG) {
                            // Granted, or there was nothing to wait for.
                            Ok(()) => {
                                if held.insert(at) {
                                    assert_eq!(inside[at].fetch_add(1, SeqCst), 0, "row {at}");
                                }
                            }
                            Err(Error::Deadlock) => break,
                            Err(error) => panic!("{error}"),
                        }
                    }
                    for at in &held {
                        inside[*at].fetch_sub(1, SeqCst);
                    }
                    system.release_all(&holder);
                }
            });
        }
    });
    assert!(system.is_empty());
}

#[test]
fn stopping_wakes_waiters_for_rows_and_ranges() {
    let poison = Arc::<Poison>::default();
    let system = LockSystem::open(Arc::<Stats>::default(), &poison);
    let holders: Vec<_> = (1..=5).map(active).collect();
    assert!(system.try_lock_row(&holders[0], row(b"a"), LockMode::Exclusive));
    system.lock_point(&holders[0], INDEX, b"k");
    let started = Instant::now();
    std::thread::scope(|scope| {
        let waiting: Vec<_> = holders[1..]
            .iter()
            .enumerate()
            .map(|(i, me)| {
                let system = &system;
                scope.spawn(move || match i % 2 {
                    0 => system.wait_row(me, row(b"a"), LockMode::Exclusive, None, LONG),
                    _ => system.wait_insert(me, INDEX, b"k", LONG),
                })
            })
            .collect();
        while !holders[1..].iter().all(|holder| system.is_waiting(holder)) {
            std::thread::yield_now();
        }
        poison.set("a test");
        for waiter in waiting {
            let error = waiter.join().unwrap().unwrap_err();
            assert!(matches!(&error, Error::Poisoned(why) if why == "a test"), "{error}");
        }
    });
    // A later request does not wait either.
    let late = system.wait_row(&holders[1], row(b"a"), LockMode::Shared, None, LONG);
    assert!(matches!(late, Err(Error::Poisoned(_))));
    assert!(started.elapsed() < LONG);
    system.release_all(&holders[0]);
    assert!(system.is_empty());
}
