//! The lock table: queues of row locks, range locks, who holds and who waits. Plain data under the lock system's mutex.

use super::deadlock;
use super::lock::{Counters, Holder, LockMode, NO_SLOT, Outcome, RowName};
use super::lock_range::{IndexRanges, Range};
use crate::types::{IndexId, TrxId};
use std::collections::{HashMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

const NO_QUEUE: u32 = u32::MAX;

/// What a transaction waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Request {
    /// Nothing.
    #[default]
    None,
    /// A row lock, in this queue.
    Row { queue: u32, mode: LockMode },
    /// That no other transaction's range covers the key.
    Insert { index: IndexId, key: Vec<u8> },
}

#[derive(Debug)]
struct Slot {
    holder: Arc<Holder>,
    /// Queues in which the transaction has granted locks.
    rows: Vec<u32>,
    /// Indexes in which it has range locks.
    ranges: Vec<IndexId>,
    request: Request,
    outcome: Outcome,
}

/// All locks on one row.
#[derive(Debug, Default)]
struct Queue {
    index: IndexId,
    key: Vec<u8>,
    hash: u64,
    next_of_hash: u32,
    granted: Vec<(u32, LockMode)>,
    waiting: VecDeque<(u32, LockMode)>,
}

/// See the rules in `lock.rs`.
#[derive(Debug)]
pub(crate) struct LockTable {
    slots: Vec<Option<Slot>>,
    free_slots: Vec<u32>,
    queues: Vec<Queue>,
    free_queues: Vec<u32>,
    by_hash: HashMap<u64, u32>,
    ranges: HashMap<IndexId, IndexRanges>,
    next_range: u64,
    counters: Arc<Counters>,
}

impl LockTable {
    pub(crate) fn new(counters: Arc<Counters>) -> LockTable {
        LockTable {
            slots: Vec::new(),
            free_slots: Vec::new(),
            queues: Vec::new(),
            free_queues: Vec::new(),
            by_hash: HashMap::new(),
            ranges: HashMap::new(),
            next_range: 0,
            counters,
        }
    }

    fn slot(&self, slot: u32) -> &Slot {
        self.slots[slot as usize].as_ref().expect("a transaction's slot stays until it releases its locks")
    }

    fn slot_mut(&mut self, slot: u32) -> &mut Slot {
        self.slots[slot as usize].as_mut().expect("a transaction's slot stays until it releases its locks")
    }

    /// The holder's slot, given now if it has none.
    fn take_slot(&mut self, holder: &Arc<Holder>) -> u32 {
        let slot = holder.slot.load(Relaxed);
        if slot != NO_SLOT {
            return slot;
        }
        let state = Slot {
            holder: Arc::clone(holder),
            rows: Vec::new(),
            ranges: Vec::new(),
            request: Request::None,
            outcome: Outcome::Pending,
        };
        let slot = self.free_slots.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        self.slots[slot as usize] = Some(state);
        holder.slot.store(slot, SeqCst);
        slot
    }

    fn give_slot_back(&mut self, slot: u32) {
        if let Some(state) = self.slots[slot as usize].take() {
            state.holder.slot.store(NO_SLOT, SeqCst);
            self.free_slots.push(slot);
        }
    }

    // ---- row locks

    fn find_queue(&self, row: RowName<'_>, hash: u64) -> Option<u32> {
        let mut at = self.by_hash.get(&hash).copied().unwrap_or(NO_QUEUE);
        while at != NO_QUEUE {
            let queue = &self.queues[at as usize];
            if queue.index == row.index && queue.key == row.key {
                return Some(at);
            }
            at = queue.next_of_hash;
        }
        None
    }

    fn queue_of(&mut self, row: RowName<'_>) -> u32 {
        let hash = row.hash();
        if let Some(at) = self.find_queue(row, hash) {
            return at;
        }
        let at = self.free_queues.pop().unwrap_or_else(|| {
            self.queues.push(Queue::default());
            self.queues.len() as u32 - 1
        });
        let next_of_hash = self.by_hash.insert(hash, at).unwrap_or(NO_QUEUE);
        let queue = &mut self.queues[at as usize];
        queue.index = row.index;
        queue.key.clear();
        queue.key.extend_from_slice(row.key);
        (queue.hash, queue.next_of_hash) = (hash, next_of_hash);
        self.counters.add_row(hash);
        at
    }

    fn drop_queue_if_empty(&mut self, at: u32) {
        let queue = &self.queues[at as usize];
        if !queue.granted.is_empty() || !queue.waiting.is_empty() {
            return;
        }
        let (hash, next) = (queue.hash, queue.next_of_hash);
        let first = self.by_hash.get(&hash).copied().unwrap_or(NO_QUEUE);
        if first != at {
            let mut before = first;
            while self.queues[before as usize].next_of_hash != at {
                before = self.queues[before as usize].next_of_hash;
            }
            self.queues[before as usize].next_of_hash = next;
        } else if next == NO_QUEUE {
            self.by_hash.remove(&hash);
        } else {
            self.by_hash.insert(hash, next);
        }
        self.free_queues.push(at);
        self.counters.remove_row(hash);
    }

    /// Whether `slot` has to wait in this queue for `mode`.
    fn must_wait(queue: &Queue, slot: u32, mode: LockMode) -> bool {
        let holds_some = queue.granted.iter().any(|(owner, _)| *owner == slot);
        let conflicts = |&(owner, held): &(u32, LockMode)| owner != slot && held.conflicts(mode);
        queue.granted.iter().any(conflicts) || (!holds_some && queue.waiting.iter().any(conflicts))
    }

    /// As [`super::lock::LockSystem::blocks_row`], by slot.
    pub(crate) fn blocks_row(&self, slot: u32, row: RowName<'_>, mode: LockMode) -> bool {
        self.find_queue(row, row.hash()).is_some_and(|at| {
            // Also for one who holds the row: an explicit lock is granted without the leaf's latch, so another's implicit
            // lock may stand beside it once that is made explicit. Then the row is theirs first, and we wait.
            Self::must_wait(&self.queues[at as usize], slot, mode)
        })
    }

    /// Grants a row lock at once, or says no.
    pub(crate) fn try_lock_row(&mut self, me: &Arc<Holder>, row: RowName<'_>, mode: LockMode) -> bool {
        if self.blocks_row(me.slot.load(Relaxed), row, mode) {
            return false;
        }
        let slot = self.take_slot(me);
        let at = self.queue_of(row);
        self.grant(at, slot, mode);
        true
    }

    fn grant(&mut self, at: u32, slot: u32, mode: LockMode) {
        let granted = &mut self.queues[at as usize].granted;
        match granted.iter_mut().find(|(owner, _)| *owner == slot) {
            Some((_, held)) if held.covers(mode) => {}
            Some((_, held)) => *held = mode,
            None => {
                granted.push((slot, mode));
                self.slot_mut(slot).rows.push(at);
            }
        }
    }

    /// Makes the implicit lock of transaction `id` on the row explicit. False if it has ended.
    pub(crate) fn make_explicit(&mut self, holder: &Arc<Holder>, id: TrxId, row: RowName<'_>) -> bool {
        let fresh = holder.slot.load(Relaxed) == NO_SLOT;
        let slot = self.take_slot(holder);
        if holder.trx_id.load(SeqCst) != id.0 {
            if fresh {
                self.give_slot_back(slot);
            }
            return false;
        }
        let at = self.queue_of(row);
        self.grant(at, slot, LockMode::Exclusive);
        true
    }

    /// Puts `me` into the row's queue; returns its slot.
    pub(crate) fn enqueue_row(&mut self, me: &Arc<Holder>, row: RowName<'_>, mode: LockMode) -> u32 {
        let slot = self.take_slot(me);
        let at = self.queue_of(row);
        let queue = &mut self.queues[at as usize];
        if queue.granted.iter().any(|(owner, _)| *owner == slot) {
            queue.waiting.push_front((slot, mode));
        } else {
            queue.waiting.push_back((slot, mode));
        }
        self.begin_wait(slot, Request::Row { queue: at, mode });
        slot
    }

    /// Grants what can be granted at the front of a queue.
    fn promote(&mut self, at: u32) {
        while let Some(&(slot, mode)) = self.queues[at as usize].waiting.front() {
            let queue = &mut self.queues[at as usize];
            if queue.granted.iter().any(|&(owner, held)| owner != slot && held.conflicts(mode)) {
                return;
            }
            queue.waiting.pop_front();
            self.grant(at, slot, mode);
            self.finish_wait(slot, Outcome::Granted);
        }
    }

    // ---- range locks

    /// As [`super::lock::LockSystem::blocks_insert`], by slot.
    pub(crate) fn blocks_insert(&self, slot: u32, index: IndexId, key: &[u8]) -> bool {
        self.ranges.get(&index).is_some_and(|ranges| ranges.blockers(slot, key).next().is_some())
    }

    /// Whether a range of `slot` covers `key`.
    pub(crate) fn has_range_over(&self, slot: u32, index: IndexId, key: &[u8]) -> bool {
        self.ranges.get(&index).is_some_and(|ranges| ranges.has_range_over(slot, key))
    }

    /// As [`super::lock::LockSystem::lock_range`].
    pub(crate) fn lock_range(
        &mut self,
        me: &Arc<Holder>,
        at: &mut Option<u64>,
        index: IndexId,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
    ) {
        let slot = self.take_slot(me);
        let ranges = self.ranges.entry(index).or_default();
        if let Some(range) = at.and_then(|number| ranges.find(slot, number)) {
            range.extend(lower, upper);
            return;
        }
        self.next_range += 1;
        *at = Some(self.next_range);
        ranges.add(Range::new(slot, self.next_range, lower, upper));
        self.counters.add_range(index);
        let held = &mut self.slot_mut(slot).ranges;
        if !held.contains(&index) {
            held.push(index);
        }
    }

    /// Makes `me` wait for the ranges that cover `key`; returns its slot.
    pub(crate) fn enqueue_insert(&mut self, me: &Arc<Holder>, index: IndexId, key: &[u8]) -> u32 {
        let slot = self.take_slot(me);
        self.ranges.entry(index).or_default().waiting.push(slot);
        self.begin_wait(slot, Request::Insert { index, key: key.to_vec() });
        slot
    }

    fn release_ranges(&mut self, slot: u32, index: IndexId) {
        let Some(ranges) = self.ranges.get_mut(&index) else { return };
        for _ in 0..ranges.remove_all_of(slot) {
            self.counters.remove_range(index);
        }
        self.promote_inserts(index);
    }

    fn promote_inserts(&mut self, index: IndexId) {
        let Some(ranges) = self.ranges.get(&index) else { return };
        let free = |slot: &u32| match &self.slot(*slot).request {
            Request::Insert { key, .. } => ranges.blockers(*slot, key).next().is_none(),
            _ => true,
        };
        let woken: Vec<u32> = ranges.waiting.iter().copied().filter(free).collect();
        if let Some(ranges) = self.ranges.get_mut(&index) {
            ranges.waiting.retain(|slot| !woken.contains(slot));
            if ranges.is_empty() {
                self.ranges.remove(&index);
            }
        }
        woken.into_iter().for_each(|slot| self.finish_wait(slot, Outcome::Granted));
    }

    // ---- waiting

    fn begin_wait(&mut self, slot: u32, request: Request) {
        let state = self.slot_mut(slot);
        (state.request, state.outcome) = (request, Outcome::Pending);
    }

    fn finish_wait(&mut self, slot: u32, outcome: Outcome) {
        let state = self.slot_mut(slot);
        (state.request, state.outcome) = (Request::None, outcome);
        state.holder.wake.notify_one();
    }

    /// How the wait of `slot` stands.
    pub(crate) fn outcome(&self, slot: u32) -> Outcome {
        self.slot(slot).outcome
    }

    /// What `slot` waits for.
    #[cfg(test)]
    pub(crate) fn request(&self, slot: u32) -> Request {
        self.slot(slot).request.clone()
    }

    /// Takes the request of `slot` back, if it still waits.
    pub(crate) fn end_wait(&mut self, slot: u32) {
        match std::mem::take(&mut self.slot_mut(slot).request) {
            Request::None => {}
            Request::Row { queue, .. } => {
                self.queues[queue as usize].waiting.retain(|(waiter, _)| *waiter != slot);
                self.promote(queue);
                self.drop_queue_if_empty(queue);
            }
            Request::Insert { index, .. } => {
                if let Some(ranges) = self.ranges.get_mut(&index) {
                    ranges.waiting.retain(|waiter| *waiter != slot);
                    if ranges.is_empty() {
                        self.ranges.remove(&index);
                    }
                }
            }
        }
    }

    /// Appends the transactions that `slot` waits for.
    pub(crate) fn waits_for(&self, slot: u32, out: &mut Vec<u32>) {
        match &self.slot(slot).request {
            Request::None => {}
            Request::Insert { index, key } => {
                out.extend(self.ranges.get(index).into_iter().flat_map(|ranges| ranges.blockers(slot, key)));
            }
            Request::Row { queue, mode } => {
                let queue = &self.queues[*queue as usize];
                let ahead = queue.waiting.iter().take_while(|(waiter, _)| *waiter != slot);
                let conflicting = queue.granted.iter().chain(ahead);
                out.extend(conflicting.filter(|(owner, held)| *owner != slot && held.conflicts(*mode)).map(|(o, _)| o));
            }
        }
    }

    /// Breaks every cycle through `slot`, which has just begun to wait. Returns how many there were.
    pub(crate) fn resolve_deadlocks(&mut self, slot: u32) -> u64 {
        let mut found = 0;
        while self.slot(slot).outcome == Outcome::Pending {
            let Some(cycle) = deadlock::find_cycle(slot, |node, out| self.waits_for(node, out)) else { break };
            let weight = |member: u32| self.slot(member).holder.weight.load(Relaxed);
            let victim = deadlock::choose_victim(&cycle, weight);
            self.end_wait(victim);
            self.finish_wait(victim, Outcome::Deadlock);
            found += 1;
        }
        found
    }

    /// Releases everything `holder` has, wakes who can go on, and gives its slot back.
    pub(crate) fn release_all(&mut self, holder: &Holder) {
        let slot = holder.slot.load(Relaxed);
        if slot == NO_SLOT {
            return;
        }
        self.end_wait(slot);
        for at in std::mem::take(&mut self.slot_mut(slot).rows) {
            self.queues[at as usize].granted.retain(|(owner, _)| *owner != slot);
            self.promote(at);
            self.drop_queue_if_empty(at);
        }
        for index in std::mem::take(&mut self.slot_mut(slot).ranges) {
            self.release_ranges(slot, index);
        }
        self.give_slot_back(slot);
    }

    /// Whether nothing is locked and nobody waits.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.by_hash.is_empty() && self.ranges.is_empty() && self.slots.iter().all(Option::is_none)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn active(id: u64) -> Arc<Holder> {
        let holder = Holder::default();
        holder.trx_id.store(id, SeqCst);
        Arc::new(holder)
    }

    /// The first locks the row explicitly without the leaf's latch; meanwhile the second, which changed it, holds it
    /// implicitly. Once that lock is explicit too, the first has to wait: it would try for ever without waiting, where no
    /// deadlock detector sees it.
    #[test]
    fn who_holds_a_row_waits_for_an_implicit_lock_beside_its_own() {
        let mut table = LockTable::new(Arc::new(Counters::default()));
        let (first, second) = (active(1), active(2));
        let row = RowName { index: IndexId(7), key: b"row" };
        assert!(table.try_lock_row(&first, row, LockMode::Exclusive));
        assert!(
            !table.blocks_row(first.slot.load(Relaxed), row, LockMode::Exclusive),
            "its own lock is none in its way"
        );
        assert!(table.make_explicit(&second, TrxId(2), row));
        assert!(table.blocks_row(first.slot.load(Relaxed), row, LockMode::Exclusive));
        assert!(table.blocks_row(first.slot.load(Relaxed), row, LockMode::Shared));
        assert!(
            !table.try_lock_row(&first, row, LockMode::Exclusive),
            "and takes nothing it holds already for granted"
        );
    }
}
