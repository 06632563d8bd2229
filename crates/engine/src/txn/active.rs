//! The active set: transaction ids, commit numbers, the active transactions, and the cut from which a view is created.
//!
//! Terms. A *cut* is one consistent reading of the active set. The *clock* is even after a cut and odd once a
//! transaction has left afterwards, so transactions seldom write it. The *tick* of a transaction is the value of the
//! clock when it leaves, an odd number; that of a cut is even. A cut of tick C sees exactly the transactions with a
//! tick before C. An *allotment* is the range of numbers that a shard has taken from `next` and not yet assigned. A
//! shard is *marked* when it may have changed since the last cut that visited it.
//!
//! Rules
//! 1. A transaction is in one shard. Its id, its number and its tick are taken with that shard's mutex held. So a
//!    thread that reads `next` or the clock first and locks the shard afterwards finds every id, number and tick
//!    assigned before.
//! 2. Ids and numbers are below the durable limit; numbers by which `next` passes the limit are lost. A cut that visits
//!    a shard also discards the rest of its allotment, so numbers assigned there afterwards are above the cut's reading
//!    of `next`. The size of an allotment is the number of assignments since the last cut that visited the shard, or
//!    between the two before it; about as many numbers are lost.
//! 3. No transaction uses another's changed rows before the other has its tick (a transaction leaves `holders` later).
//!    So if T2 depends on T1, T1 has the earlier tick, and a cut that sees T2 sees T1.
//! 4. A transaction that leaves during a cut stays in `left` until the cut is done: it is active for that cut.
//! 5. A transaction takes its number before it reads the clock, a cut takes its tick before it reads `next`, and both
//!    have a fence between the two. So either the cut does not see the transaction, or the transaction's id and number
//!    are below the `next` that the cut read.
//! 6. A cut visits only marked shards. Between cuts a shard without a mark has no allotment and no transaction in
//!    `left`, and its active transactions are those in `known`. So the cost of a cut depends on the changes, not on the
//!    number of shards.
//! 7. A thread marks an unmarked shard before it changes it, with the mutex held. A cut clears the marks after it has
//!    read `next`, and locks the shards afterwards, so it also finds the changes of threads that saw a mark just before
//!    it was cleared. A change in a shard that the cut does not visit began after the cut had taken its tick and read
//!    `next`. So a transaction that enters or ends there has a higher id or number, and one that leaves there is active
//!    for the cut.
//! 8. One cut is made at a time: it holds `known`. Meanwhile it locks one shard at a time, and no other lock under it.
//!
//! `txn_test/active_model.rs` checks rules 1 to 7 for every order of two threads' steps; atomics and mutex are the
//! parent's.

use super::atomic::{AtomicBool, AtomicU64, Mutex, MutexGuard, fence};
use super::atomic::{Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, Ordering::SeqCst};
use crate::sync::sharded::CachePadded;

/// One active transaction; `number` is 0 until its end begins.
#[derive(Clone, Copy, Debug)]
struct Member {
    id: u64,
    number: u64,
}

/// A transaction that left while a cut was being made.
#[derive(Debug)]
struct Left {
    member: Member,
    tick: u64,
}

/// A transaction that was active when a cut last came to its shard.
#[derive(Debug)]
struct Known {
    shard: usize,
    member: Member,
}

/// Ids and numbers of a shard that are not given yet.
#[derive(Debug, Default)]
struct Allotment {
    next: u64,
    end: u64,
    /// Number of ids assigned since the last cut reached the shard, and between the two previous cuts.
    given: u64,
    given_before: u64,
}

/// Most that a shard takes at once.
const MAX_ALLOTMENT: u64 = 64;
/// The most shards there are.
pub(crate) const MAX_SHARDS: usize = 128;
const MARKS_PER_WORD: usize = u64::BITS as usize;
const MARK_WORDS: usize = MAX_SHARDS / MARKS_PER_WORD;

/// A shard's word of the marks, and its bit there.
#[inline]
fn mark_of(shard: usize) -> (usize, u64) {
    (shard / MARKS_PER_WORD, 1 << (shard % MARKS_PER_WORD))
}

type Shard = CachePadded<Mutex<Members>>;

#[derive(Debug, Default)]
struct Members {
    /// Ascending by id.
    active: Vec<Member>,
    left: Vec<Left>,
    allotment: Allotment,
}

impl Members {
    fn find(&self, id: u64) -> Option<usize> {
        self.active.binary_search_by_key(&id, |member| member.id).ok()
    }
}

/// The result of a cut, in addition to the active ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Ids from here on were not given yet.
    pub(crate) low_limit_id: u64,
    /// Every transaction with a number below it is seen.
    pub(crate) low_limit_no: u64,
    /// The cut's tick: while the clock shows this, a new cut would see the same.
    pub(crate) clock: u64,
}

/// The words that a cut writes, on one cache line. Other threads write them once after a cut: the next thread that
/// changes a shard, and the next one that leaves.
#[derive(Debug)]
struct Cuts {
    clock: AtomicU64,
    marks: [AtomicU64; MARK_WORDS],
    cutting: AtomicBool,
    /// Ascending by id.
    known: Mutex<Vec<Known>>,
}

/// See the file's head.
#[derive(Debug)]
pub(crate) struct ActiveSet {
    next: CachePadded<AtomicU64>,
    limit: CachePadded<AtomicU64>,
    cuts: CachePadded<Cuts>,
    shards: Box<[Shard]>,
}

impl ActiveSet {
    /// An empty set of `shards` shards, [`MAX_SHARDS`] at most, that gives numbers from `next` on, none before the
    /// limit is raised.
    pub(crate) fn new(next: u64, shards: usize) -> ActiveSet {
        ActiveSet {
            next: CachePadded(AtomicU64::new(next)),
            limit: CachePadded(AtomicU64::new(next)),
            cuts: CachePadded(Cuts {
                clock: AtomicU64::new(2),
                marks: std::array::from_fn(|_| AtomicU64::new(0)),
                cutting: AtomicBool::new(false),
                known: Mutex::default(),
            }),
            shards: (0..shards.min(MAX_SHARDS)).map(|_| Shard::default()).collect(),
        }
    }

    pub(crate) fn shards(&self) -> usize {
        self.shards.len()
    }

    /// All ids and numbers in use are below this.
    pub(crate) fn next(&self) -> u64 {
        self.next.load(Acquire)
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit.load(Acquire)
    }

    /// Raises the limit, which is durable as soon as what is logged from now on is.
    pub(crate) fn raise_limit(&self, limit: u64) {
        self.limit.fetch_max(limit, AcqRel);
    }

    /// The clock: a cut that shows at least this sees all transactions that have left by now.
    pub(crate) fn clock(&self) -> u64 {
        self.cuts.clock.load(Acquire)
    }

    /// Locks a shard that is going to be changed.
    #[inline]
    fn change(&self, shard: usize) -> MutexGuard<'_, Members> {
        let members = self.shards[shard].lock();
        let (word, mark) = mark_of(shard);
        let word = &self.cuts.marks[word];
        // A mark that a cut is just taking may be seen here: then the cut locks the shard after this.
        if word.load(Relaxed) & mark == 0 {
            word.fetch_or(mark, AcqRel);
        }
        members
    }

    /// Takes the marks: the shards that have one.
    fn take_marks(&self) -> [u64; MARK_WORDS] {
        let words = self.shards.len().div_ceil(MARKS_PER_WORD);
        let mut taken = [0; MARK_WORDS];
        taken.iter_mut().zip(&self.cuts.marks).take(words).for_each(|(taken, word)| *taken = word.swap(0, AcqRel));
        taken
    }

    /// An id or a number; `None` at the limit.
    #[inline]
    fn take(&self, allotment: &mut Allotment) -> Option<u64> {
        if allotment.next == allotment.end {
            self.allot(allotment)?;
        }
        let taken = allotment.next;
        debug_assert!(taken < allotment.end && taken < self.limit(), "rule 2: {taken} is not below the durable limit");
        allotment.next += 1;
        allotment.given += 1;
        Some(taken)
    }

    fn allot(&self, allotment: &mut Allotment) -> Option<()> {
        let size = allotment.given.max(allotment.given_before).clamp(1, MAX_ALLOTMENT);
        let first = self.next.fetch_add(size, AcqRel);
        let end = self.limit.load(Acquire).min(first + size);
        (first < end).then(|| (allotment.next, allotment.end) = (first, end))
    }

    /// The tick of a transaction that leaves.
    fn tick(&self) -> u64 {
        let mut clock = self.cuts.clock.load(Acquire);
        while clock.is_multiple_of(2) {
            match self.cuts.clock.compare_exchange(clock, clock + 1, AcqRel, Acquire) {
                Ok(_) => clock += 1,
                Err(newer) => clock = newer,
            }
        }
        clock
    }

    fn tick_of_cut(&self) -> u64 {
        let even = |clock: u64| (clock | 1) + 1;
        let before = self.cuts.clock.fetch_update(AcqRel, Acquire, |clock| Some(even(clock)));
        before.map_or_else(even, even)
    }

    /// Makes a transaction active; `None` if the limit must be raised first.
    pub(crate) fn enter(&self, shard: usize) -> Option<u64> {
        let mut members = self.change(shard);
        let id = self.take(&mut members.allotment)?;
        debug_assert!(members.active.last().is_none_or(|last| last.id < id), "the id {id} is below an earlier one");
        members.active.push(Member { id, number: 0 });
        Some(id)
    }

    /// Makes a transaction active that was active when the database went down. To be called in the order of their ids.
    pub(crate) fn enter_again(&self, shard: usize, id: u64) {
        let mut members = self.change(shard);
        debug_assert!(members.active.last().is_none_or(|last| last.id < id), "the id {id} is below an earlier one");
        members.active.push(Member { id, number: 0 });
    }

    /// Gives an ending transaction its number; `None` if the limit must be raised first.
    pub(crate) fn begin_end(&self, shard: usize, id: u64) -> Option<u64> {
        let mut members = self.change(shard);
        let number = self.take(&mut members.allotment)?;
        debug_assert!(number > id, "the number {number} was given before the id {id}");
        if let Some(at) = members.find(id) {
            debug_assert_eq!(members.active[at].number, 0, "the transaction {id} ends twice");
            members.active[at].number = number;
        }
        Some(number)
    }

    /// Takes the number back of a transaction whose end could not be written.
    pub(crate) fn abort_end(&self, shard: usize, id: u64) {
        let mut members = self.change(shard);
        if let Some(at) = members.find(id) {
            debug_assert_ne!(members.active[at].number, 0, "the transaction {id} has no end to abort");
            members.active[at].number = 0;
        }
    }

    /// Takes an ended transaction out of the set.
    pub(crate) fn leave(&self, shard: usize, id: u64) {
        let mut members = self.change(shard);
        let found = members.find(id);
        debug_assert!(found.is_some(), "rule 1: the transaction {id} is not in the shard that it leaves");
        let Some(at) = found else { return };
        let member = members.active.remove(at);
        fence(SeqCst);
        let tick = self.tick();
        debug_assert!(!tick.is_multiple_of(2), "the tick {tick} of a transaction is one of a cut");
        if self.cuts.cutting.load(Acquire) {
            members.left.push(Left { member, tick });
        }
    }

    /// Makes a cut: replaces `ids` with those it does not see, ascending.
    pub(crate) fn cut(&self, ids: &mut Vec<u64>) -> Cut {
        ids.clear();
        let mut guard = self.cuts.known.lock();
        // Not in its place, on the line that others write meanwhile.
        let mut known = std::mem::take(&mut *guard);
        self.cuts.cutting.store(true, Release);
        let tick = self.tick_of_cut();
        fence(SeqCst);
        // After the tick: a transaction that left before it has an id and a number below this (rule 5).
        let low_limit_id = self.next();
        let late = self.come_to_marked(tick, &mut known);
        self.cuts.cutting.store(false, Release);
        let mut low_limit_no = low_limit_id;
        for member in known.iter().map(|known| &known.member).chain(&late) {
            if member.id < low_limit_id {
                ids.push(member.id);
            }
            if member.number != 0 {
                low_limit_no = low_limit_no.min(member.number);
            }
        }
        if !late.is_empty() {
            ids.sort();
        }
        debug_assert!(ids.is_sorted_by(|a, b| a < b), "the active ids are out of order: {ids:?}");
        debug_assert!(tick.is_multiple_of(2), "the tick {tick} of a cut is one of a transaction that leaves");
        *guard = known;
        Cut { low_limit_id, low_limit_no, clock: tick }
    }

    /// A cut with this tick comes to the marked shards: brings `known` up to date, ends their allotments, and returns
    /// a transaction that left after the tick.
    fn come_to_marked(&self, tick: u64, known: &mut Vec<Known>) -> Vec<Member> {
        let (marks, mut late) = (self.take_marks(), Vec::new());
        known.retain(|known| {
            let (word, mark) = mark_of(known.shard);
            marks[word] & mark == 0
        });
        for (word, mut marks) in marks.into_iter().enumerate() {
            while marks != 0 {
                let shard = word * MARKS_PER_WORD + marks.trailing_zeros() as usize;
                marks &= marks - 1;
                let mut members = self.shards[shard].lock();
                let Members { active, left, allotment } = &mut *members;
                *allotment = Allotment { given_before: allotment.given, ..Allotment::default() };
                late.extend(left.drain(..).filter(|left| left.tick > tick).map(|left| left.member));
                known.extend(active.iter().map(|member| Known { shard, member: *member }));
            }
        }
        // The kept entries are in order, and the entries of each shard are too.
        known.sort_by_key(|known| known.member.id);
        let are_apart = known.is_sorted_by(|before, after| before.member.id < after.member.id);
        debug_assert!(are_apart, "rule 1: a transaction is in two shards");
        late
    }

    /// Number of active transactions, in tests.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().active.len()).sum()
    }
}
