//! Tests of the lock system without pages: hot rows, deadlocks against a plain model, memory, stopping.

use super::system::{Holder, LockMode, LockSystem, Outcome, OwnerId, RowName};
use crate::error::Error;
use crate::stats::Stats;
use crate::sync::poison::Poison;
use crate::types::{IndexId, TxnId};
use proptest::prelude::*;
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

fn outcome(system: &LockSystem, of: &Holder) -> Option<Outcome> {
    system.waits().outcome(of.owner)
}

/// The first locks the row explicitly without the leaf's latch; meanwhile the second, which changed it, holds it implicitly.
/// Once that lock is explicit too, the first has to wait: it would try for ever without waiting, where no deadlock detector
/// sees it.
#[test]
fn who_holds_a_row_waits_for_an_implicit_lock_beside_its_own() {
    let system = system();
    let (first, second, third) = (active(1), active(2), active(3));
    assert!(system.try_lock_row(&first, row(b"row"), LockMode::Exclusive));
    assert!(!system.blocks_row(&first, row(b"row"), LockMode::Exclusive), "its own lock is none in its way");
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
        // Each has a row of its own, as after other work, and nobody waits for that.
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
    // Somebody waits for each of them now, so that each search has to look around.
    let others: Vec<_> = (n + 1..=2 * n).map(active).collect();
    for (i, other) in others.iter().enumerate() {
        wait(&system, other, &i.to_be_bytes(), LockMode::Shared);
    }
    assert!(steps(&system) <= 4 * n, "{} steps of searches", steps(&system));
    let served = |i: &usize| *i == 0 || !gives_up(*i);
    let order: Vec<usize> = (0..n as usize).filter(served).collect();
    for (at, next) in order.iter().enumerate().skip(1) {
        system.release_all(&holders[order[at - 1]]);
        assert_eq!(outcome(&system, &holders[*next]), Some(Outcome::Granted));
        if let Some(behind) = order.get(at + 1) {
            assert_eq!(outcome(&system, &holders[*behind]), Some(Outcome::Pending), "one at a time");
        }
        system.end_row_wait(&holders[*next], row(b"hot"));
    }
    holders.iter().for_each(|holder| system.release_all(holder));
    for (i, other) in others.iter().enumerate() {
        assert_eq!(outcome(&system, other), Some(Outcome::Granted));
        system.end_row_wait(other, row(&i.to_be_bytes()));
        system.release_all(other);
    }
    assert!(system.is_empty());
}

/// Sessions with something that others wait for queue for one row: their searches look at its holders, not at the queue.
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
    assert_eq!(steps(&system), 0, "nobody waits for the waiters but those behind them");
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

/// `holder` waits already when its implicit lock becomes explicit on a row for which `waiter` waits: the cycle of the two is
/// closed by a third, and does not go through it.
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
        // Of equal weight: the one through which it is searched. Then everybody is served.
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
fn a_lock_takes_little_memory_and_gives_it_back() {
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
            let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
            assert!(*least > 400 && *most < 850, "keys {kind}, bits from {shift}: {least} to {most}");
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

/// Threads that lock, wait and let go at random; nothing is left, nobody hangs, and no two hold a row at once.
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
                let mut random = crate::txn::txn_test::Random(me);
                for _ in 0..2000 {
                    let mut held = BTreeSet::new();
                    for _ in 0..random.below(4) {
                        let at = random.below(5) as usize;
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
fn stopping_wakes_who_waits_for_rows_and_ranges() {
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
    // Who comes later does not wait either.
    let late = system.wait_row(&holders[1], row(b"a"), LockMode::Shared, None, LONG);
    assert!(matches!(late, Err(Error::Poisoned(_))));
    assert!(started.elapsed() < LONG);
    system.release_all(&holders[0]);
    assert!(system.is_empty());
}

// ---- against a model

const TRANSACTIONS: usize = 6;
const ROWS: usize = 3;

#[derive(Clone, Debug)]
enum Step {
    Lock {
        who: usize,
        at: usize,
        exclusive: bool,
    },
    /// `who` wants a row that `holder` holds by its id.
    Explicit {
        who: usize,
        at: usize,
        holder: usize,
        exclusive: bool,
    },
    Range {
        who: usize,
        at: usize,
    },
    Insert {
        who: usize,
        at: usize,
    },
    TimeOut {
        who: usize,
    },
    End {
        who: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let who = || 0..TRANSACTIONS;
    let at = || 0..ROWS;
    prop_oneof![
        8 => (who(), at(), any::<bool>()).prop_map(|(who, at, exclusive)| Step::Lock { who, at, exclusive }),
        3 => (who(), at(), who(), any::<bool>())
            .prop_map(|(who, at, holder, exclusive)| Step::Explicit { who, at, holder, exclusive }),
        1 => (who(), at()).prop_map(|(who, at)| Step::Range { who, at }),
        2 => (who(), at()).prop_map(|(who, at)| Step::Insert { who, at }),
        1 => who().prop_map(|who| Step::TimeOut { who }),
        2 => who().prop_map(|who| Step::End { who }),
    ]
}

/// What a transaction waits for, in the model.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Wait {
    No,
    Row(usize),
    Insert(BTreeSet<usize>),
}

#[derive(Default)]
struct PlainRow {
    granted: BTreeMap<usize, LockMode>,
    waiting: Vec<(usize, LockMode)>,
}

impl PlainRow {
    fn conflicts(&self, who: usize, mode: LockMode) -> bool {
        self.granted.iter().any(|(owner, held)| *owner != who && held.conflicts(mode))
    }

    fn queue(&mut self, who: usize, mode: LockMode) {
        let at = if self.granted.contains_key(&who) { 0 } else { self.waiting.len() };
        self.waiting.insert(at, (who, mode));
    }

    fn grant(&mut self, who: usize, mode: LockMode) {
        let held = self.granted.entry(who).or_insert(mode);
        if !held.covers(mode) {
            *held = mode;
        }
    }
}

/// Lists that are walked through, and a graph of every edge.
struct Plain {
    rows: Vec<PlainRow>,
    ranges: Vec<BTreeSet<usize>>,
    waits: Vec<Wait>,
}

impl Plain {
    fn new() -> Plain {
        Plain {
            rows: (0..ROWS).map(|_| PlainRow::default()).collect(),
            ranges: vec![BTreeSet::new(); ROWS],
            waits: vec![Wait::No; TRANSACTIONS],
        }
    }

    /// Whether it has to wait.
    fn lock(&mut self, who: usize, at: usize, mode: LockMode) -> bool {
        let row = &mut self.rows[at];
        let holds = row.granted.contains_key(&who);
        let ahead = row.waiting.iter().any(|(_, waits_for)| waits_for.conflicts(mode));
        let waits = row.conflicts(who, mode) || (!holds && ahead);
        if waits {
            row.queue(who, mode);
            self.waits[who] = Wait::Row(at);
        } else {
            row.grant(who, mode);
        }
        waits
    }

    fn make_explicit(&mut self, holder: usize, at: usize) {
        let row = &mut self.rows[at];
        let new = !row.granted.contains_key(&holder);
        row.grant(holder, LockMode::Exclusive);
        if new && let Some(place) = row.waiting.iter().position(|(waiter, _)| *waiter == holder) {
            let (_, mode) = row.waiting.remove(place);
            row.queue(holder, mode);
            self.promote(at);
        }
    }

    fn promote(&mut self, at: usize) {
        while let Some(&(who, mode)) = self.rows[at].waiting.first() {
            if self.rows[at].conflicts(who, mode) {
                return;
            }
            self.rows[at].waiting.remove(0);
            self.rows[at].grant(who, mode);
            self.waits[who] = Wait::No;
        }
    }

    fn insert(&mut self, who: usize, at: usize) -> bool {
        let blockers: BTreeSet<usize> = self.ranges[at].iter().copied().filter(|owner| *owner != who).collect();
        let waits = !blockers.is_empty();
        if waits {
            self.waits[who] = Wait::Insert(blockers);
        }
        waits
    }

    fn leave(&mut self, who: usize) {
        if let Wait::Row(at) = std::mem::replace(&mut self.waits[who], Wait::No) {
            self.rows[at].waiting.retain(|(waiter, _)| *waiter != who);
            self.promote(at);
        }
    }

    fn release(&mut self, who: usize) {
        for at in 0..ROWS {
            if self.rows[at].granted.remove(&who).is_some() {
                self.promote(at);
            }
            self.ranges[at].remove(&who);
        }
        for waits in &mut self.waits {
            if let Wait::Insert(blockers) = waits
                && blockers.remove(&who)
                && blockers.is_empty()
            {
                *waits = Wait::No;
            }
        }
    }

    fn waits_for(&self, who: usize) -> BTreeSet<usize> {
        match &self.waits[who] {
            Wait::No => BTreeSet::new(),
            Wait::Insert(blockers) => blockers.clone(),
            Wait::Row(at) => {
                let row = &self.rows[*at];
                let (place, mode) = row
                    .waiting
                    .iter()
                    .enumerate()
                    .find(|(_, (waiter, _))| *waiter == who)
                    .map(|(i, (_, m))| (i, *m))
                    .unwrap();
                let ahead = row.waiting[..place].iter().map(|(waiter, _)| *waiter);
                let holders = row.granted.iter().filter(|(owner, held)| **owner != who && held.conflicts(mode));
                ahead.chain(holders.map(|(owner, _)| *owner)).collect()
            }
        }
    }

    /// Whether a way leads from one to the other.
    fn reaches(&self, from: usize, to: usize) -> bool {
        let mut seen = BTreeSet::new();
        let mut todo = vec![from];
        while let Some(who) = todo.pop() {
            for next in self.waits_for(who) {
                if next == to {
                    return true;
                }
                if seen.insert(next) {
                    todo.push(next);
                }
            }
        }
        false
    }
}

/// The lock system and the model, side by side.
struct Pair {
    system: Arc<LockSystem>,
    holders: Vec<Arc<Holder>>,
    /// What each has asked for and not yet looked after: the row, or an insert.
    asked: Vec<Option<Option<usize>>>,
    plain: Plain,
}

fn key(at: usize) -> [u8; 1] {
    [at as u8]
}

fn mode(exclusive: bool) -> LockMode {
    if exclusive { LockMode::Exclusive } else { LockMode::Shared }
}

impl Pair {
    fn who(&self, owner: OwnerId) -> usize {
        self.holders.iter().position(|holder| holder.owner == owner).unwrap()
    }

    /// What the thread of `who` does when it runs on. False: it waits.
    fn look(&mut self, who: usize) -> bool {
        let Some(asked) = self.asked[who] else { return true };
        let ended = match outcome(&self.system, &self.holders[who]).unwrap() {
            Outcome::Pending => return false,
            Outcome::Granted => true,
            Outcome::Deadlock => false,
        };
        self.end_wait(who, asked);
        if !ended {
            self.end(who);
        }
        true
    }

    fn end_wait(&mut self, who: usize, asked: Option<usize>) {
        self.asked[who] = None;
        match asked {
            Some(at) => self.system.end_row_wait(&self.holders[who], row(&key(at))),
            None => self.system.end_insert_wait(&self.holders[who]),
        }
    }

    fn end(&mut self, who: usize) {
        if let Some(asked) = self.asked[who] {
            self.end_wait(who, asked);
            self.plain.leave(who);
        }
        self.system.release_all(&self.holders[who]);
        self.plain.release(who);
        self.holders[who].trx_id.store(who as u64 + 1, SeqCst);
    }

    /// Searches through `who`; each victim must be on a cycle through it, and break it.
    fn resolve(&mut self, who: usize) {
        while let Some(victim) = self.system.waits().resolve_one(self.holders[who].owner) {
            let victim = self.who(victim);
            let weight = |i: usize| self.holders[i].weight.load(Relaxed);
            assert!(self.plain.reaches(who, who), "there is no cycle through {who}");
            assert!(victim == who || (self.plain.reaches(who, victim) && self.plain.reaches(victim, who)));
            assert!(weight(victim) <= weight(who));
            self.plain.leave(victim);
        }
    }

    fn run(&mut self, step: &Step) {
        let (Step::Lock { who, .. }
        | Step::Explicit { who, .. }
        | Step::Range { who, .. }
        | Step::Insert { who, .. }
        | Step::TimeOut { who }
        | Step::End { who }) = *step;
        let runs = self.look(who);
        match *step {
            Step::TimeOut { .. } if !runs => {
                self.end_wait(who, self.asked[who].unwrap());
                self.plain.leave(who);
            }
            Step::End { .. } => self.end(who),
            _ if !runs => {}
            Step::TimeOut { .. } => {}
            Step::Lock { at, exclusive, .. } => self.lock(who, at, mode(exclusive), None),
            Step::Explicit { at, holder, exclusive, .. } if holder != who => {
                self.lock(who, at, mode(exclusive), Some(holder));
            }
            Step::Explicit { .. } => {}
            Step::Range { at, .. } => {
                self.system.lock_point(&self.holders[who], INDEX, &key(at));
                self.plain.ranges[at].insert(who);
            }
            Step::Insert { at, .. } => {
                let waits = self.system.begin_insert_wait(&self.holders[who], INDEX, &key(at));
                assert_eq!(waits, self.plain.insert(who, at));
                if waits {
                    self.asked[who] = Some(None);
                    self.resolve(who);
                }
            }
        }
    }

    fn lock(&mut self, who: usize, at: usize, mode: LockMode, implicit: Option<usize>) {
        let holder = implicit.map(|holder| (TxnId(holder as u64 + 1), &self.holders[holder]));
        let waits = self.system.begin_row_wait(&self.holders[who], row(&key(at)), mode, holder);
        if let Some(holder) = implicit {
            self.plain.make_explicit(holder, at);
        }
        assert_eq!(waits, self.plain.lock(who, at, mode));
        if waits {
            self.asked[who] = Some(Some(at));
            self.resolve(who);
            implicit.into_iter().for_each(|holder| self.resolve(holder));
        }
    }

    fn check(&self) {
        for (who, holder) in self.holders.iter().enumerate() {
            let pending = outcome(&self.system, holder) == Some(Outcome::Pending);
            assert_eq!(pending, self.plain.waits[who] != Wait::No, "transaction {who}");
            assert!(!self.plain.reaches(who, who), "a cycle through {who} was not found");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    /// Locks are granted as in the model, and after each step no cycle is left in the model's graph.
    #[test]
    fn every_deadlock_is_found_and_nothing_else(
        weights in proptest::collection::vec(0u64..3, TRANSACTIONS),
        steps in proptest::collection::vec(step(), 1..80),
    ) {
        let holders: Vec<_> = (1..=TRANSACTIONS as u64).map(active).collect();
        holders.iter().zip(&weights).for_each(|(holder, weight)| holder.weight.store(*weight, Relaxed));
        let mut pair = Pair { system: system(), holders, asked: vec![None; TRANSACTIONS], plain: Plain::new() };
        for step in &steps {
            pair.run(step);
            pair.check();
        }
        (0..TRANSACTIONS).for_each(|who| pair.end(who));
        prop_assert!(pair.system.is_empty());
    }
}
