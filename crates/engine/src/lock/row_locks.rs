//! One shard of the row locks: a hash table of rows with their holders, and for each holder its rows in this shard.
//!
//! Rules
//! 1. A row is here while it has a holder or a waiter. While it has waiters, its holders are in a queue in
//!    [`super::waits`]; they return here after the last waiter has left.
//! 2. A lock needs little memory: the rows are in one vector without gaps, with short keys and a single holder inline;
//!    a holder's list has 4 bytes for each row, the row's hash. Memory is released with the rows.
//! 3. Every operation of a shard takes at most time proportional to the number of holders, or works in batches.

use super::counters::LockCounters;
use super::holder::{Holder, LockMode, OwnerId, RowLock, RowName};
use super::queue::Granted;
use super::waits::{Waits, WaitsGuard};
use crate::sync::Mutex;
use crate::sync::atomic::Ordering::{Relaxed, SeqCst};
use crate::types::IndexId;
use std::collections::HashMap;
use std::sync::Arc;

const NO_ROW: u32 = u32::MAX;
/// Fewest rows and buckets that memory is kept for.
const KEPT: usize = 16;
/// Longest key that needs no memory of its own.
const SHORT_KEY_BYTES: usize = 22;

#[derive(Debug)]
enum Key {
    Short(u8, [u8; SHORT_KEY_BYTES]),
    Long(Box<[u8]>),
}

impl Key {
    fn new(key: &[u8]) -> Key {
        let mut short = [0; SHORT_KEY_BYTES];
        match short.get_mut(..key.len()) {
            Some(bytes) => {
                bytes.copy_from_slice(key);
                // It is at most SHORT_KEY_BYTES.
                Key::Short(key.len() as u8, short)
            }
            None => Key::Long(key.into()),
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Key::Short(length, bytes) => &bytes[..usize::from(*length)],
            Key::Long(bytes) => bytes,
        }
    }
}

/// The holders of a row.
#[derive(Debug)]
enum Holders {
    One(OwnerId, LockMode),
    Many(Box<Granted>),
    /// The holders are stored in this queue of the waits.
    Queue(u32),
}

impl Holders {
    fn of(granted: Granted) -> Holders {
        match granted.single() {
            Some((owner, mode)) => Holders::One(owner, mode),
            None => Holders::Many(Box::new(granted)),
        }
    }
}

#[derive(Debug)]
struct Row {
    key: Key,
    index: IndexId,
    hash: u32,
    /// The next row of the same bucket.
    next: u32,
    holders: Holders,
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockReply {
    /// Another one is in the way.
    MustWait,
    /// No thread is.
    Free,
    /// No thread was, and it is granted.
    Granted,
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct RowLockShard {
    /// The shard's bit in [`Holder::shards`].
    bit: u64,
    rows: Vec<Row>,
    /// First row of each bucket; a power of two of them.
    buckets: Vec<u32>,
    /// Hashes of the rows each transaction holds here.
    owners: HashMap<OwnerId, Vec<u32>>,
    counters: Arc<LockCounters>,
}

impl RowLockShard {
    pub(crate) fn new(number: usize, counters: Arc<LockCounters>) -> RowLockShard {
        RowLockShard { bit: 1 << number, rows: Vec::new(), buckets: Vec::new(), owners: HashMap::new(), counters }
    }

    // ---- the hash table

    fn bucket(&self, hash: u32) -> usize {
        hash as usize & (self.buckets.len() - 1)
    }

    fn first(&self, hash: u32) -> u32 {
        if self.buckets.is_empty() { NO_ROW } else { self.buckets[self.bucket(hash)] }
    }

    fn find(&self, row: RowName<'_>) -> Option<usize> {
        let hash = row.hash();
        let mut at = self.first(hash as u32);
        while at != NO_ROW {
            let found = &self.rows[at as usize];
            if found.hash == hash as u32 && found.index == row.index && found.key.bytes() == row.key {
                return Some(at as usize);
            }
            at = found.next;
        }
        None
    }

    fn add_row(&mut self, row: RowName<'_>, holders: Holders) {
        if self.rows.len() >= self.buckets.len() {
            self.rehash((self.buckets.len() * 2).max(KEPT));
        }
        let hash = row.hash() as u32;
        let (at, bucket) = (self.rows.len() as u32, self.bucket(hash));
        let next = std::mem::replace(&mut self.buckets[bucket], at);
        self.rows.push(Row { key: Key::new(row.key), index: row.index, hash, next, holders });
        self.counters.add_row(hash);
        self.check_row(at as usize);
    }

    /// The row is found by its name, and the table has a bucket for each row.
    fn check_row(&self, at: usize) {
        if cfg!(debug_assertions) {
            let Row { key, index, hash, .. } = &self.rows[at];
            let name = RowName { index: *index, key: key.bytes() };
            debug_assert_eq!(name.hash() as u32, *hash, "the hash of row {at}");
            debug_assert_eq!(self.find(name), Some(at), "row {at} is not in its chain, or there twice");
            debug_assert!(self.rows.len() <= self.buckets.len(), "there are {} rows", self.rows.len());
        }
    }

    fn rehash(&mut self, buckets: usize) {
        self.buckets = vec![NO_ROW; buckets];
        for at in 0..self.rows.len() {
            let bucket = self.bucket(self.rows[at].hash);
            self.rows[at].next = std::mem::replace(&mut self.buckets[bucket], at as u32);
        }
    }

    /// The link that points to row `at`.
    fn link_to(&mut self, at: u32) -> &mut u32 {
        let bucket = self.bucket(self.rows[at as usize].hash);
        let mut before = NO_ROW;
        let mut current = self.buckets[bucket];
        while current != at {
            (before, current) = (current, self.rows[current as usize].next);
        }
        if before == NO_ROW { &mut self.buckets[bucket] } else { &mut self.rows[before as usize].next }
    }

    /// Removes a row; the last one takes its place.
    fn remove_row(&mut self, at: usize) {
        let last = self.rows.len() - 1;
        *self.link_to(at as u32) = self.rows[at].next;
        if at != last {
            *self.link_to(last as u32) = at as u32;
        }
        let row = self.rows.swap_remove(at);
        self.counters.remove_row(row.hash);
        if at < self.rows.len() {
            self.check_row(at);
        }
    }

    fn release_memory(&mut self) {
        if self.rows.len() < self.rows.capacity() / 4 {
            self.rows.shrink_to((self.rows.len() * 2).max(KEPT));
        }
        if self.rows.len() < self.buckets.len() / 4 && self.buckets.len() > KEPT {
            self.rehash((self.rows.len() * 2).next_power_of_two().max(KEPT));
        }
        if self.owners.len() < self.owners.capacity() / 4 {
            self.owners.shrink_to((self.owners.len() * 2).max(KEPT));
        }
    }

    // ---- locks

    /// Whether `me` may have `mode` on the row. If the row has a queue, `me` holds it then.
    pub(crate) fn ask(&mut self, waits: &Mutex<Waits>, me: &Holder, row: RowName<'_>, mode: LockMode) -> LockReply {
        let waits_for = match self.find(row).map(|at| &self.rows[at].holders) {
            None => false,
            // Also if we hold the row: an explicit lock is granted without the leaf's latch, so another transaction's
            // implicit lock may exist together with ours once it is made explicit. Then the other one comes first, and
            // we wait.
            Some(Holders::One(owner, held)) => *owner != me.owner && held.conflicts(mode),
            Some(Holders::Many(granted)) => granted.conflicts(me.owner, mode),
            Some(&Holders::Queue(queue)) => {
                let granted = waits.lock().try_grant(queue, me.owner, mode);
                if granted == Some(true) {
                    self.note(me, row);
                }
                return if granted.is_some() { LockReply::Granted } else { LockReply::MustWait };
            }
        };
        if waits_for { LockReply::MustWait } else { LockReply::Free }
    }

    /// Makes `me` a holder of the row unless it has to wait for `mode`; whether it is one.
    pub(crate) fn try_grant(&mut self, waits: &Mutex<Waits>, me: &Holder, row: RowName<'_>, mode: LockMode) -> bool {
        let asked = self.ask(waits, me, row, mode);
        let is_new = asked == LockReply::Free && self.grant(waits, me, row, mode);
        me.last_row.store(if is_new { row.hash() } else { 0 }, Relaxed);
        asked != LockReply::MustWait
    }

    /// Makes `owner` a holder of the row, in addition to the others; whether it is a new one.
    pub(crate) fn grant(&mut self, waits: &Mutex<Waits>, owner: &Holder, row: RowName<'_>, mode: LockMode) -> bool {
        let me = owner.owner;
        let new = match self.find(row) {
            None => {
                self.add_row(row, Holders::One(me, mode));
                true
            }
            Some(at) => match &mut self.rows[at].holders {
                Holders::One(other, held) if *other == me => {
                    if !held.covers(mode) {
                        *held = mode;
                    }
                    false
                }
                holders @ Holders::One(..) => {
                    let mut granted = Box::<Granted>::default();
                    if let Holders::One(other, held) = *holders {
                        granted.add(other, held);
                    }
                    granted.add(me, mode);
                    *holders = Holders::Many(granted);
                    true
                }
                Holders::Many(granted) => granted.add(me, mode),
                Holders::Queue(queue) => waits.lock().grant(*queue, me, mode),
            },
        };
        if new {
            self.note(owner, row);
        }
        new
    }

    /// Makes `owner` look at this shard when it ends.
    pub(crate) fn announce(&self, owner: &Holder) {
        owner.shards.fetch_or(self.bit, SeqCst);
    }

    /// Remembers that `owner` holds the row, so that it is released at the end.
    fn note(&mut self, owner: &Holder, row: RowName<'_>) {
        self.announce(owner);
        self.owners.entry(owner.owner).or_default().push(row.hash() as u32);
    }

    /// Makes `me` wait for the row, after the other waiters.
    pub(crate) fn begin_wait(&mut self, waits: &mut Waits, me: &Arc<Holder>, row: RowName<'_>, mode: LockMode) {
        let found = self.find(row);
        debug_assert!(found.is_some(), "a wait begins for a row that no transaction holds");
        let Some(at) = found else { return };
        let queue = match std::mem::replace(&mut self.rows[at].holders, Holders::Queue(0)) {
            Holders::Queue(queue) => queue,
            Holders::One(owner, held) => waits.open_queue(Granted::one(owner, held)),
            Holders::Many(granted) => waits.open_queue(*granted),
        };
        self.rows[at].holders = Holders::Queue(queue);
        waits.begin_row(me, queue, mode);
    }

    /// Ends the wait of `me` for the row, however it ended; remembers the lock if it was granted.
    pub(crate) fn end_wait(&mut self, waits: &mut Waits, me: &Holder, row: RowName<'_>) {
        waits.end(me.owner);
        let Some(at) = self.find(row) else { return };
        let (holds, queue) = match &self.rows[at].holders {
            Holders::One(owner, _) => (*owner == me.owner, None),
            Holders::Many(granted) => (granted.mode_of(me.owner).is_some(), None),
            Holders::Queue(queue) => (waits.holds(*queue, me.owner), Some(*queue)),
        };
        if holds {
            self.note(me, row);
        }
        if let Some(queue) = queue {
            self.dequeue_if_idle(waits, at, queue);
        }
    }

    /// Takes the holders of a queue back if it has no waiter any more; removes the row if there are none.
    fn dequeue_if_idle(&mut self, waits: &mut Waits, at: usize, queue: u32) {
        let Some(granted) = waits.close_queue(queue) else { return };
        if granted.is_empty() {
            self.remove_row(at);
        } else {
            self.rows[at].holders = Holders::of(granted);
        }
    }

    /// Releases up to `limit` locks of `owner`, at most one for which others wait; returns whether it has more here.
    pub(crate) fn release_some(&mut self, waits: &mut WaitsGuard<'_>, owner: OwnerId, limit: usize) -> bool {
        let Some(mut held) = self.owners.remove(&owner) else { return false };
        for _ in 0..limit {
            let Some(hash) = held.pop() else { break };
            self.release(waits, owner, hash);
            if waits.is_locked() {
                break;
            }
        }
        let more = !held.is_empty();
        if more {
            self.owners.insert(owner, held);
        }
        // Not while others wait for the mutex of the waits, but for the last time.
        if !(more && waits.is_locked()) {
            self.release_memory();
        }
        more
    }

    /// Appends the locks and the requests of its rows, until there are `max` or more.
    pub(crate) fn list(&self, waits: &Mutex<Waits>, max: usize, out: &mut Vec<RowLock>) {
        for Row { key, index, holders, .. } in &self.rows {
            if out.len() >= max {
                return;
            }
            let lock = |is_waiting| {
                move |(owner, mode)| RowLock { index: *index, key: key.bytes().to_vec(), owner, mode, is_waiting }
            };
            match holders {
                Holders::One(owner, mode) => out.push(lock(false)((*owner, *mode))),
                Holders::Many(granted) => out.extend(granted.modes().iter().copied().map(lock(false))),
                Holders::Queue(queue) => {
                    let waits = waits.lock();
                    let queue = waits.queue(*queue);
                    out.extend(queue.granted.modes().iter().copied().map(lock(false)));
                    out.extend(queue.waiting().map(lock(true)));
                }
            }
        }
    }

    /// Releases the lock of `owner` on a row; whether it had one.
    pub(crate) fn release_one(&mut self, waits: &mut WaitsGuard<'_>, owner: OwnerId, row: RowName<'_>) -> bool {
        let (Some(at), Some(held)) = (self.find(row), self.owners.get_mut(&owner)) else { return false };
        // Seldom far from the end: it was locked last.
        let Some(place) = held.iter().rposition(|hash| *hash == row.hash() as u32) else { return false };
        held.swap_remove(place);
        if held.is_empty() {
            self.owners.remove(&owner);
        }
        self.release_row(waits, owner, at);
        true
    }

    /// Takes `owner` out of the holders of every row with this hash. (They are all in its list.)
    fn release(&mut self, waits: &mut WaitsGuard<'_>, owner: OwnerId, hash: u32) {
        let mut at = self.first(hash);
        while at != NO_ROW {
            let row = &self.rows[at as usize];
            let next = row.next;
            if row.hash == hash && self.release_row(waits, owner, at as usize) {
                // Another row may have moved.
                at = self.first(hash);
            } else {
                at = next;
            }
        }
    }

    /// Takes `owner` out of the holders of a row; whether the row is gone.
    fn release_row(&mut self, waits: &mut WaitsGuard<'_>, owner: OwnerId, at: usize) -> bool {
        let rows = self.rows.len();
        match &mut self.rows[at].holders {
            Holders::One(other, _) => {
                if *other == owner {
                    self.remove_row(at);
                }
            }
            Holders::Many(granted) => {
                if granted.remove(owner) && granted.single().is_some() {
                    self.rows[at].holders = Holders::of(std::mem::take(&mut **granted));
                }
            }
            Holders::Queue(queue) => {
                let queue = *queue;
                let waits = waits.get();
                waits.release(queue, owner);
                self.dequeue_if_idle(waits, at, queue);
            }
        }
        self.rows.len() < rows
    }

    #[cfg(any(test, shuttle))]
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.owners.is_empty()
    }

    /// Bytes of memory in use, but for those of the holders' lists' own table.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        let lists: usize = self.owners.values().map(|list| list.capacity() * 4).sum();
        self.rows.capacity() * size_of::<Row>() + self.buckets.capacity() * 4 + lists
    }
}
