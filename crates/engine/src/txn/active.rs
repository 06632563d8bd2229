//! The active set: ids and numbers, who is active, and the cut that a view is made by.
//!
//! Terms. The *clock* ticks once for every transaction that leaves the set and once for every cut. A cut of tick C sees
//! the transactions that left before C, no others.
//!
//! Rules
//! 1. A transaction is in one shard. Its id, its number and its tick are taken with that shard's mutex held. So a
//!    thread that reads `next` or the clock first and locks the shard afterwards finds all that was given before.
//! 2. No id and no number is given from the durable limit on; numbers by which `next` passes the limit are lost.
//! 3. No transaction builds on another's rows before the other has its tick (a transaction leaves `holders` later). So
//!    if T2 built on T1, T1 has the earlier tick, and a cut that sees T2 sees T1.
//! 4. A transaction that leaves while a cut is being made stays in `left` until the cut has passed: it is active for
//!    that cut.
//! 5. One cut is made at a time (the caller's mutex). Shards are locked one at a time, and nothing is locked inside.
//!
//! `txn_test/active_model.rs` checks rules 1, 3 and 4 for every order of the threads' steps; atomics and mutex are the
//! parent's.

use super::atomic::{AtomicBool, AtomicU64, Mutex, Ordering::AcqRel, Ordering::Acquire, Ordering::Release};
use crate::sync::spread::Apart;

/// One active transaction; `number` is 0 until its end begins.
#[derive(Debug)]
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

type Shard = Apart<Mutex<Members>>;

#[derive(Debug, Default)]
struct Members {
    /// Ascending by id.
    active: Vec<Member>,
    left: Vec<Left>,
}

impl Members {
    fn find(&self, id: u64) -> Option<usize> {
        self.active.binary_search_by_key(&id, |member| member.id).ok()
    }
}

/// What a cut found, besides the active ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Ids from here on were not given yet.
    pub(crate) low_limit_id: u64,
    /// Every transaction with a number below it is seen.
    pub(crate) low_limit_no: u64,
    /// The clock after the cut: while it shows this, a new cut would see the same.
    pub(crate) clock: u64,
}

/// See the file's head.
#[derive(Debug)]
pub(crate) struct ActiveSet {
    next: AtomicU64,
    limit: AtomicU64,
    clock: AtomicU64,
    cutting: AtomicBool,
    shards: Box<[Shard]>,
}

impl ActiveSet {
    /// An empty set of `shards` shards that gives numbers from `next` on, none before the limit is raised.
    pub(crate) fn new(next: u64, shards: usize) -> ActiveSet {
        ActiveSet {
            next: AtomicU64::new(next),
            limit: AtomicU64::new(next),
            clock: AtomicU64::new(1),
            cutting: AtomicBool::new(false),
            shards: (0..shards).map(|_| Shard::default()).collect(),
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
        self.clock.load(Acquire)
    }

    /// `None` at the limit.
    fn take(&self) -> Option<u64> {
        let taken = self.next.fetch_add(1, AcqRel);
        (taken < self.limit.load(Acquire)).then_some(taken)
    }

    /// Makes a transaction active; `None` if the limit must be raised first.
    pub(crate) fn enter(&self, shard: usize) -> Option<u64> {
        let mut members = self.shards[shard].lock();
        let id = self.take()?;
        members.active.push(Member { id, number: 0 });
        Some(id)
    }

    /// Makes a transaction active that was active when the database went down. To be called in the order of their ids.
    pub(crate) fn enter_again(&self, shard: usize, id: u64) {
        self.shards[shard].lock().active.push(Member { id, number: 0 });
    }

    /// Gives an ending transaction its number; `None` if the limit must be raised first.
    pub(crate) fn begin_end(&self, shard: usize, id: u64) -> Option<u64> {
        let mut members = self.shards[shard].lock();
        let number = self.take()?;
        if let Some(at) = members.find(id) {
            members.active[at].number = number;
        }
        Some(number)
    }

    /// Takes the number back of a transaction whose end could not be written.
    pub(crate) fn abort_end(&self, shard: usize, id: u64) {
        let mut members = self.shards[shard].lock();
        if let Some(at) = members.find(id) {
            members.active[at].number = 0;
        }
    }

    /// Takes an ended transaction out of the set.
    pub(crate) fn leave(&self, shard: usize, id: u64) {
        let mut members = self.shards[shard].lock();
        let Some(at) = members.find(id) else { return };
        let member = members.active.remove(at);
        let tick = self.clock.fetch_add(1, AcqRel);
        if self.cutting.load(Acquire) {
            members.left.push(Left { member, tick });
        }
    }

    /// Makes a cut: replaces `ids` with those it does not see, ascending.
    pub(crate) fn cut(&self, ids: &mut Vec<u64>) -> Cut {
        ids.clear();
        self.cutting.store(true, Release);
        let tick = self.clock.fetch_add(1, AcqRel);
        // After the tick: a transaction that left before it has an id and a number below this.
        let low_limit_id = self.next();
        let mut low_limit_no = low_limit_id;
        for shard in &self.shards {
            let mut members = shard.lock();
            let Members { active, left } = &mut *members;
            let late = left.drain(..).filter(|left| left.tick > tick);
            let late: Vec<Member> = late.map(|left| left.member).collect();
            for member in active.iter().chain(&late) {
                if member.id < low_limit_id {
                    ids.push(member.id);
                }
                if member.number != 0 {
                    low_limit_no = low_limit_no.min(member.number);
                }
            }
        }
        self.cutting.store(false, Release);
        // The stable sort finds the shards' ascending runs and merges them.
        ids.sort();
        Cut { low_limit_id, low_limit_no, clock: tick + 1 }
    }

    /// Number of active transactions, in tests.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().active.len()).sum()
    }
}
