//! The wait-for graph: the rows with waiters, the waiters, and the search for deadlocks. Plain data under the lock
//! system's mutex of waits.
//!
//! Rules
//! 1. A waiter waits for all waiters before it in its queue and for every holder that excludes its mode: these are its
//!    edges in the wait-for graph, exactly what keeps it from being granted. The front of a free row has none: it runs
//!    soon.
//! 2. The search does not walk a queue. The waiters before a waiter are in the same queue, so their edges lead only to
//!    its holders. One edge to the predecessor represents all of them and is followed together with its continuation
//!    (`RowQueue::mode_up_to`). So the search follows edges to holders, and checks whether the transaction searched for
//!    is itself one of the waiters before.
//! 3. A cycle closes when a transaction with waiters begins to wait, or when a waiting transaction gets a lock for
//!    which others already wait (its implicit lock becomes explicit). After either, a search looks for a cycle through
//!    that transaction: every new cycle contains it. A transaction without waiters needs no search.
//! 4. A victim is removed from its queue at once, by the thread that found the cycle: its edges are gone before the
//!    next search.
//! 5. An insert waits for the owners of the ranges that cover its key when it begins to wait. It finds later ranges
//!    when it checks again.
//! 6. A waiter whose lock is granted is woken once; a front is woken each time it may take its row. The system call
//!    that wakes it is made after the mutex of the waits is released. Where locks or waits end, no shard's mutex is
//!    held any more at that time ([`WaitsGuard`]).

use super::deadlock;
use super::holder::{Holder, LockMode, OwnerId};
use super::queue::{Granted, RowQueue};
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::interrupt::Interrupt;
use crate::sync::{Mutex, MutexGuard};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The outcome of a wait that ended without the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitOutcome {
    /// Still waiting.
    Pending,
    /// Nothing is in the way any more.
    Granted,
    /// Chosen as deadlock victim.
    Deadlock,
}

/// Most transactions that are reported as those a waiter waits for. The limit keeps every waiter of a long queue from
/// walking all of it.
const MAX_REPORTED: usize = 64;

/// The request of a waiting transaction.
#[derive(Debug)]
enum Request {
    /// Nothing: its wait is over.
    None,
    Row {
        queue: u32,
        ticket: i64,
        mode: LockMode,
    },
    /// That these have ended: their ranges cover the key of an insert.
    Insert {
        blockers: HashSet<OwnerId>,
    },
}

#[derive(Debug)]
struct Waiter {
    holder: Arc<Holder>,
    request: Request,
    outcome: WaitOutcome,
    interrupt: Option<Arc<Interrupt>>,
}

/// The waits, locked when they are first asked for. Declared before a shard's guard, it is dropped after it (rule 6).
pub(crate) struct WaitsGuard<'w> {
    waits: &'w Mutex<Waits>,
    locked: Option<MutexGuard<'w, Waits>>,
}

impl<'w> WaitsGuard<'w> {
    pub(crate) fn new(waits: &'w Mutex<Waits>) -> WaitsGuard<'w> {
        WaitsGuard { waits, locked: None }
    }

    pub(crate) fn get(&mut self) -> &mut Waits {
        self.locked.get_or_insert_with(|| self.waits.lock())
    }

    pub(crate) fn is_locked(&self) -> bool {
        self.locked.is_some()
    }
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    /// Every transaction that waits or has not yet looked at how its wait ended.
    waiters: HashMap<OwnerId, Waiter>,
    queues: Vec<RowQueue>,
    free_queues: Vec<u32>,
    /// In how many queues a transaction is a holder.
    holds: HashMap<OwnerId, u32>,
    /// Inserts that wait for a transaction's ranges.
    blocked_inserts: HashMap<OwnerId, HashSet<OwnerId>>,
    /// Edges looked at.
    #[cfg(test)]
    pub(crate) steps: u64,
}

impl Waits {
    // ---- queues

    /// Makes a queue for a row with these holders.
    pub(crate) fn open_queue(&mut self, granted: Granted) -> u32 {
        for owner in granted.owners() {
            *self.holds.entry(owner).or_default() += 1;
        }
        let queue = RowQueue::new(granted);
        match self.free_queues.pop() {
            Some(at) => {
                let before = std::mem::replace(&mut self.queues[at as usize], queue);
                debug_assert!(before.granted.is_empty() && !before.has_waiters(), "queue {at} is in use: {before:?}");
                at
            }
            None => {
                self.queues.push(queue);
                self.queues.len() as u32 - 1
            }
        }
    }

    /// Removes a queue that has no waiter any more; returns its holders.
    pub(crate) fn close_queue(&mut self, at: u32) -> Option<Granted> {
        if self.queues[at as usize].has_waiters() {
            return None;
        }
        let queue = std::mem::take(&mut self.queues[at as usize]);
        self.free_queues.push(at);
        for owner in queue.granted.owners() {
            self.uncount(owner);
        }
        if self.free_queues.len() == self.queues.len() {
            (self.queues, self.free_queues) = (Vec::new(), Vec::new());
        }
        Some(queue.granted)
    }

    fn uncount(&mut self, owner: OwnerId) {
        debug_assert!(self.holds.contains_key(&owner), "{owner:?} is a holder in no queue");
        if let Some(count) = self.holds.get_mut(&owner) {
            *count -= 1;
            if *count == 0 {
                self.holds.remove(&owner);
            }
        }
    }

    /// Whether `owner` is a holder of a queue's row.
    pub(crate) fn holds(&self, queue: u32, owner: OwnerId) -> bool {
        self.queues[queue as usize].granted.mode_of(owner).is_some()
    }

    /// Makes `owner` a holder; whether it is a new one. If it waits in this queue, it goes to the front, as holders do.
    pub(crate) fn grant(&mut self, at: u32, owner: OwnerId, mode: LockMode) -> bool {
        let queue = &mut self.queues[at as usize];
        let new = queue.grant(owner, mode);
        if !new {
            return false;
        }
        *self.holds.entry(owner).or_default() += 1;
        if let Some(Waiter { request: Request::Row { queue: waited_for, ticket, mode }, .. }) =
            self.waiters.get_mut(&owner)
            && *waited_for == at
        {
            queue.leave(*ticket);
            *ticket = queue.push(owner, *mode);
            self.promote(at);
        }
        true
    }

    /// As [`Waits::grant`], unless [`RowQueue::must_wait`]. (At once: a front takes its turn with no shard's mutex
    /// held.)
    pub(crate) fn try_grant(&mut self, at: u32, owner: OwnerId, mode: LockMode) -> Option<bool> {
        let free = !self.queues[at as usize].must_wait(owner, mode);
        free.then(|| self.grant(at, owner, mode))
    }

    /// Takes a holder out and grants what has become free.
    pub(crate) fn release(&mut self, at: u32, owner: OwnerId) {
        if self.queues[at as usize].granted.remove(owner) {
            self.uncount(owner);
            self.promote(at);
        }
    }

    /// Wakes the front of a queue to take the row, or hands it over.
    fn promote(&mut self, at: u32) {
        match self.queues[at as usize].front_to_wake().and_then(|front| self.waiters.get(&front)) {
            Some(front) => {
                front.holder.wake.notify_one();
            }
            None => self.grant_front(at),
        }
    }

    /// Grants what can be granted at the front of a queue.
    fn grant_front(&mut self, at: u32) {
        while let Some((owner, new)) = self.queues[at as usize].grant_front() {
            if new {
                *self.holds.entry(owner).or_default() += 1;
            }
            self.finish(owner, WaitOutcome::Granted);
        }
    }

    // ---- waiting

    /// Puts `me` into a queue.
    pub(crate) fn begin_row(&mut self, me: &Arc<Holder>, at: u32, mode: LockMode) {
        let ticket = self.queues[at as usize].push(me.owner, mode);
        self.begin(me, Request::Row { queue: at, ticket, mode });
    }

    /// Makes `me` wait until none of `blockers` has ranges any more.
    pub(crate) fn begin_insert(&mut self, me: &Arc<Holder>, blockers: HashSet<OwnerId>) {
        debug_assert!(!blockers.is_empty(), "{:?} waits for no range", me.owner);
        debug_assert!(!blockers.contains(&me.owner), "{:?} waits for its own range", me.owner);
        for blocker in &blockers {
            self.blocked_inserts.entry(*blocker).or_default().insert(me.owner);
        }
        self.begin(me, Request::Insert { blockers });
    }

    fn begin(&mut self, me: &Arc<Holder>, request: Request) {
        let waiter = Waiter { holder: Arc::clone(me), request, outcome: WaitOutcome::Pending, interrupt: None };
        let before = self.waiters.insert(me.owner, waiter);
        debug_assert!(before.is_none(), "a transaction waits for two things: {before:?}");
    }

    fn finish(&mut self, owner: OwnerId, outcome: WaitOutcome) {
        if let Some(waiter) = self.waiters.get_mut(&owner) {
            debug_assert_eq!(waiter.outcome, WaitOutcome::Pending, "the wait of {owner:?} ends twice");
            (waiter.request, waiter.outcome) = (Request::None, outcome);
            waiter.holder.wake.notify_one();
        }
    }

    /// The ranges of `owner` are gone: inserts that waited for no other owner continue.
    pub(crate) fn unblock_inserts(&mut self, owner: OwnerId) {
        for waiter in self.blocked_inserts.remove(&owner).unwrap_or_default() {
            if let Some(Waiter { request: Request::Insert { blockers }, .. }) = self.waiters.get_mut(&waiter)
                && blockers.remove(&owner)
                && blockers.is_empty()
            {
                self.finish(waiter, WaitOutcome::Granted);
            }
        }
    }

    /// Grants the row to `owner` if it is free and `owner` is the first waiter; returns the outcome of the wait.
    pub(crate) fn take_turn(&mut self, owner: OwnerId) -> Option<WaitOutcome> {
        if let Request::Row { queue, ticket, .. } = self.waiters.get(&owner)?.request
            && self.queues[queue as usize].is_front(ticket)
        {
            self.grant_front(queue);
        }
        self.outcome(owner)
    }

    /// The present outcome of the wait of `owner`.
    pub(crate) fn outcome(&self, owner: OwnerId) -> Option<WaitOutcome> {
        self.waiters.get(&owner).map(|waiter| waiter.outcome)
    }

    pub(crate) fn queue(&self, at: u32) -> &RowQueue {
        &self.queues[at as usize]
    }

    /// The transactions that wait: for rows, or to insert into others' ranges.
    pub(crate) fn waiting(&self) -> Vec<OwnerId> {
        let pending = |(owner, waiter): (&OwnerId, &Waiter)| (waiter.outcome == WaitOutcome::Pending).then_some(*owner);
        self.waiters.iter().filter_map(pending).collect()
    }

    /// The transactions that `owner` waits for, [`MAX_REPORTED`] at most: the holders of its row, then the waiters
    /// before it in the queue; or the owners of ranges.
    pub(crate) fn waits_for(&self, owner: OwnerId) -> Vec<u64> {
        match self.waiters.get(&owner).map(|waiter| &waiter.request) {
            None | Some(Request::None) => Vec::new(),
            Some(Request::Insert { blockers }) => blockers.iter().map(|blocker| blocker.0).take(MAX_REPORTED).collect(),
            Some(&Request::Row { queue, ticket, .. }) => {
                let queue = &self.queues[queue as usize];
                let holders = queue.granted.conflicting(queue.mode_up_to(ticket));
                let others = holders.chain(queue.ahead_of(ticket)).filter(|other| *other != owner);
                others.map(|other| other.0).take(MAX_REPORTED).collect()
            }
        }
    }

    /// Number of waiting transactions.
    pub(crate) fn pending(&self) -> u64 {
        self.waiters.values().filter(|waiter| waiter.outcome == WaitOutcome::Pending).count() as u64
    }

    /// Withdraws the request of `owner`, if it still waits.
    pub(crate) fn leave(&mut self, owner: OwnerId) {
        let Some(waiter) = self.waiters.get_mut(&owner) else { return };
        match std::mem::replace(&mut waiter.request, Request::None) {
            Request::None => {}
            Request::Row { queue, ticket, .. } => {
                self.queues[queue as usize].leave(ticket);
                self.promote(queue);
            }
            Request::Insert { blockers } => {
                for blocker in blockers {
                    if let Some(blocked) = self.blocked_inserts.get_mut(&blocker) {
                        blocked.remove(&owner);
                        if blocked.is_empty() {
                            self.blocked_inserts.remove(&blocker);
                        }
                    }
                }
            }
        }
    }

    /// Removes the wait of `owner`, which has ended or ends now.
    pub(crate) fn end(&mut self, owner: OwnerId) {
        self.leave(owner);
        self.waiters.remove(&owner);
        if self.waiters.is_empty() {
            self.release_memory();
        }
    }

    /// Releases memory after many have waited.
    fn release_memory(&mut self) {
        const KEPT: usize = 64;
        self.waiters.shrink_to(KEPT);
        self.holds.shrink_to(KEPT);
        self.blocked_inserts.shrink_to(KEPT);
    }

    /// Notes which interruption may end the wait of `owner`.
    pub(crate) fn may_be_interrupted(&mut self, owner: OwnerId, interrupt: Option<&Arc<Interrupt>>) {
        if let (Some(waiter), Some(interrupt)) = (self.waiters.get_mut(&owner), interrupt) {
            waiter.interrupt = Some(Arc::clone(interrupt));
        }
    }

    /// Wakes the waiters that are interrupted.
    pub(crate) fn wake_interrupted(&self) {
        let is_raised = |waiter: &&Waiter| waiter.interrupt.as_ref().is_some_and(|interrupt| interrupt.is_raised());
        for waiter in self.waiters.values().filter(is_raised) {
            waiter.holder.wake.notify_one();
        }
    }

    /// Wakes every waiter; each looks for the reason.
    pub(crate) fn wake_all(&self) {
        for waiter in self.waiters.values() {
            waiter.holder.wake.notify_one();
        }
    }

    /// Whether no waiter and no queue is left.
    #[cfg(any(test, shuttle))]
    pub(crate) fn is_empty(&self) -> bool {
        self.waiters.is_empty() && self.queues.is_empty() && self.holds.is_empty() && self.blocked_inserts.is_empty()
    }

    // ---- deadlocks

    /// Breaks every cycle through `owner`, which has begun to wait, or to hold. Returns how many there were.
    pub(crate) fn resolve_deadlocks(&mut self, owner: OwnerId) -> u64 {
        let mut found = 0;
        while self.resolve_one(owner).is_some() {
            found += 1;
        }
        found
    }

    /// Breaks one cycle through `owner`, if there is one; returns the victim.
    pub(crate) fn resolve_one(&mut self, owner: OwnerId) -> Option<OwnerId> {
        if !self.is_waited_for(owner) {
            return None;
        }
        #[cfg(test)]
        let mut steps = 0;
        let mut seen_queues = HashSet::new();
        let cycle = deadlock::find_cycle(owner, |member, out| {
            self.edges(member, owner, &mut seen_queues, out);
            #[cfg(test)]
            {
                steps += 1 + out.len() as u64;
            }
        });
        #[cfg(test)]
        {
            self.steps += steps;
        }
        let weight = |member| self.waiters.get(&member).map_or(u64::MAX, |waiter| waiter.holder.weight.load(Relaxed));
        let victim = deadlock::choose_victim(&cycle?, weight)?;
        self.leave(victim);
        self.finish(victim, WaitOutcome::Deadlock);
        Some(victim)
    }

    /// Whether `owner` waits and another transaction waits for it: otherwise it is on no cycle.
    fn is_waited_for(&self, owner: OwnerId) -> bool {
        let Some(waiter) = self.waiters.get(&owner) else { return false };
        let behind = match waiter.request {
            Request::None => return false,
            Request::Row { queue, ticket, .. } => self.queues[queue as usize].waits_behind(ticket),
            Request::Insert { .. } => false,
        };
        behind || self.holds.contains_key(&owner) || self.blocked_inserts.contains_key(&owner)
    }

    /// Appends those that `member` waits for, as far as they may lead back to `start`; see rule 2. Holders of a queue
    /// come once in a search, for each mode that is waited for.
    fn edges(
        &self,
        member: OwnerId,
        start: OwnerId,
        seen_queues: &mut HashSet<(u32, LockMode)>,
        out: &mut Vec<OwnerId>,
    ) {
        match self.waiters.get(&member).map(|waiter| &waiter.request) {
            None | Some(Request::None) => {}
            Some(Request::Insert { blockers }) => out.extend(blockers),
            Some(&Request::Row { queue: at, ticket, .. }) => {
                let queue = &self.queues[at as usize];
                let mode = queue.mode_up_to(ticket);
                if seen_queues.insert((at, mode)) {
                    out.extend(queue.granted.conflicting(mode).filter(|owner| *owner != member));
                }
                let holds_it = member != start && queue.granted.mode_of(start).is_some_and(|held| held.conflicts(mode));
                if holds_it || self.is_ahead(start, member, at, ticket) {
                    out.push(start);
                }
            }
        }
    }

    /// Whether `start` waits in this queue before `member`; or, if they are the same, whether a waiter before it waits
    /// for a lock that it holds.
    fn is_ahead(&self, start: OwnerId, member: OwnerId, at: u32, ticket: i64) -> bool {
        if start == member {
            let queue = &self.queues[at as usize];
            return queue.granted.mode_of(start).is_some_and(|held| queue.waits_before(ticket, held));
        }
        match self.waiters.get(&start).map(|waiter| &waiter.request) {
            Some(Request::Row { queue, ticket: of_start, .. }) => *queue == at && *of_start < ticket,
            _ => false,
        }
    }
}
