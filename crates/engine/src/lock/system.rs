//! The lock system: its state and its fast paths. The rules are at the head of the folder's `mod.rs`.

use super::counters::LockCounters;
use super::holder::{Holder, LockMode, OwnerId, RowLock, RowName};
use super::key_bound::KeyBound;
use super::range_locks::IndexRanges;
use super::row_locks::{LockReply, RowLockShard};
use super::waits::{WaitOutcome, Waits, WaitsGuard};
use crate::error::{Error, Result};
use crate::stats::Stats;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use crate::sync::interrupt::Patience;
use crate::sync::poison::{OnStop, Poison};
use crate::types::{IndexId, TxnId};
use std::collections::HashMap;
use std::ops::Bound;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Shards of rows: as many as [`Holder::shards`] has bits.
const ROW_SHARDS: usize = 64;
const RANGE_SHARDS: usize = 64;
/// Locks released in one hold of a mutex.
const RELEASE_BATCH: usize = 128;

/// The range locks of some indexes.
type RangeShard = HashMap<IndexId, IndexRanges>;

/// An event of a lock wait, reported by the thread that waits: see
/// [`Database::observe_lock_waits`](crate::Database::observe_lock_waits).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockWaitEvent<'o> {
    /// It begins to wait.
    Begins {
        /// The transactions it waits for, at most 64: the [owners](crate::TxnWatch::owner) of the locks that block it,
        /// then those that wait before it in the queue. It may wait for others later.
        owners: &'o [u64],
    },
    /// It has ended its wait, with the lock or without.
    Ends,
}

/// Called by a thread when it begins to wait, and when it has ended. It holds no mutex meanwhile.
pub(crate) type WaitObserver = Box<dyn Fn(LockWaitEvent<'_>) + Send + Sync>;

/// The lock system of one database.
pub(crate) struct LockSystem {
    rows: Box<[Mutex<RowLockShard>]>,
    ranges: Box<[Mutex<RangeShard>]>,
    waits: Mutex<Waits>,
    /// Inserts that wait. Raised under the mutex of the shard whose ranges they wait for.
    waiting_inserts: AtomicUsize,
    observer: OnceLock<WaitObserver>,
    counters: Arc<LockCounters>,
    stats: Arc<Stats>,
    poison: Arc<Poison>,
}

impl OnStop for LockSystem {
    fn stopped(&self) {
        self.waits.lock().wake_all();
    }

    fn interrupted(&self) {
        self.waits.lock().wake_interrupted();
    }
}

impl LockSystem {
    pub(crate) fn open(stats: Arc<Stats>, poison: &Arc<Poison>) -> Arc<LockSystem> {
        let counters = Arc::<LockCounters>::default();
        let system = Arc::new(LockSystem {
            rows: (0..ROW_SHARDS).map(|n| Mutex::new(RowLockShard::new(n, Arc::clone(&counters)))).collect(),
            ranges: (0..RANGE_SHARDS).map(|_| Mutex::default()).collect(),
            waits: Mutex::default(),
            waiting_inserts: AtomicUsize::new(0),
            observer: OnceLock::new(),
            counters,
            stats,
            poison: Arc::clone(poison),
        });
        poison.wake_on_stop(&system);
        system
    }

    /// The shard of a row. (The shard's table goes by the other end of the hash.)
    fn rows_of(&self, row: RowName<'_>) -> &Mutex<RowLockShard> {
        &self.rows[(row.hash() >> 32) as usize % ROW_SHARDS]
    }

    fn ranges_of(&self, index: IndexId) -> &Mutex<RangeShard> {
        &self.ranges[index.0 as usize % RANGE_SHARDS]
    }

    // ---- row locks

    /// Whether an explicit lock of another transaction keeps `me` from locking the row in `mode`. Takes no lock, except
    /// where the row has a queue that does not block `me`: then `me` gets an explicit lock, so that its end wakes the
    /// waiters.
    #[inline]
    pub(crate) fn blocks_row(&self, me: &Holder, row: RowName<'_>, mode: LockMode) -> bool {
        self.counters.may_have_row(row)
            && self.rows_of(row).lock().ask(&self.waits, me, row, mode) == LockReply::MustWait
    }

    /// Takes an explicit row lock unless one of another transaction is in the way. The caller has the row's leaf
    /// latched.
    pub(crate) fn try_lock_row(&self, me: &Holder, row: RowName<'_>, mode: LockMode) -> bool {
        self.rows_of(row).lock().try_grant(&self.waits, me, row, mode)
    }

    /// Releases the lock on a row that `me` has taken last, if it did not hold the row before; whether it did.
    pub(crate) fn unlock_row(&self, me: &Holder, row: RowName<'_>) -> bool {
        if me.last_row.swap(0, Relaxed) != row.hash() {
            return false;
        }
        let mut waits = WaitsGuard::new(&self.waits);
        self.rows_of(row).lock().release_one(&mut waits, me.owner, row)
    }

    /// Releases the lock of `me` on a name that is no row's: a table's auto-increment lock. (One on a row is kept until
    /// the transaction ends, rule 6.)
    pub(crate) fn release_row(&self, me: &Holder, name: RowName<'_>) {
        debug_assert!(name.key.is_empty(), "rule 6: a row's lock is released before its transaction ends");
        if me.last_row.load(Relaxed) == name.hash() {
            me.last_row.store(0, Relaxed);
        }
        let mut waits = WaitsGuard::new(&self.waits);
        self.rows_of(name).lock().release_one(&mut waits, me.owner, name);
    }

    /// Makes the implicit lock of `me` on the row an explicit one. The caller has the row's leaf latched exclusively,
    /// and the row still has the id of `me`.
    pub(crate) fn keep_row(&self, me: &Holder, row: RowName<'_>) {
        self.rows_of(row).lock().grant(&self.waits, me, row, LockMode::Exclusive);
    }

    /// Waits for an explicit row lock. `implicit` is the transaction that holds the row by its id, if one does: its
    /// lock is made explicit first. The caller holds no latch and looks at the row again afterwards.
    ///
    /// # Errors
    /// [`Error::LockWaitTimeout`], [`Error::Deadlock`], [`Error::Interrupted`]; [`Error::Closed`] or
    /// [`Error::Poisoned`] when the database stops.
    pub(crate) fn wait_row<'p>(
        &self,
        me: &Arc<Holder>,
        row: RowName<'_>,
        mode: LockMode,
        implicit: Option<(TxnId, &Arc<Holder>)>,
        patience: impl Into<Patience<'p>>,
    ) -> Result<()> {
        if !self.begin_row_wait(me, row, mode, implicit) {
            return Ok(());
        }
        self.resolve_deadlocks(me);
        // The holder may be waiting too, and earlier waiters of the row now wait for its explicit lock.
        if let Some((_, holder)) = implicit {
            self.resolve_deadlocks(holder);
        }
        let result = self.park(me, patience.into());
        self.end_row_wait(me, row);
        result
    }

    /// Begins to wait, if there is something to wait for.
    pub(crate) fn begin_row_wait(
        &self,
        me: &Arc<Holder>,
        row: RowName<'_>,
        mode: LockMode,
        implicit: Option<(TxnId, &Arc<Holder>)>,
    ) -> bool {
        let mut shard = self.rows_of(row).lock();
        if let Some((id, holder)) = implicit {
            // Announced first. The holder checks the announced shards when it ends: either it sees this announcement,
            // or this thread sees that it has ended.
            shard.announce(holder);
            if holder.trx_id.load(SeqCst) != id.0 {
                return false;
            }
            shard.grant(&self.waits, holder, row, LockMode::Exclusive);
        }
        let waits = !shard.try_grant(&self.waits, me, row, mode);
        if waits {
            shard.begin_wait(&mut self.waits.lock(), me, row, mode);
        }
        waits
    }

    /// Ends a wait that is over or is given up.
    pub(crate) fn end_row_wait(&self, me: &Holder, row: RowName<'_>) {
        let mut waits = WaitsGuard::new(&self.waits);
        let mut shard = self.rows_of(row).lock();
        shard.end_wait(waits.get(), me, row);
    }

    // ---- range locks

    /// Whether a range lock of another transaction keeps `me` from inserting `key` into `index`. Called under the
    /// exclusive latch of the leaf that takes the key.
    #[inline]
    pub(crate) fn blocks_insert(&self, me: &Holder, index: IndexId, key: &[u8]) -> bool {
        self.counters.may_have_range(index)
            && self.ranges_of(index).lock().get(&index).is_some_and(|ranges| ranges.is_blocked(me.owner, key))
    }

    /// Waits until no range lock of another transaction covers `key`. The caller holds no latch and checks again
    /// afterwards.
    ///
    /// # Errors
    /// As [`LockSystem::wait_row`].
    pub(crate) fn wait_insert<'p>(
        &self,
        me: &Arc<Holder>,
        index: IndexId,
        key: &[u8],
        patience: impl Into<Patience<'p>>,
    ) -> Result<()> {
        if !self.begin_insert_wait(me, index, key) {
            return Ok(());
        }
        self.resolve_deadlocks(me);
        let result = self.park(me, patience.into());
        self.end_insert_wait(me);
        result
    }

    /// Begins to wait, if there is something to wait for.
    pub(crate) fn begin_insert_wait(&self, me: &Arc<Holder>, index: IndexId, key: &[u8]) -> bool {
        let shard = self.ranges_of(index).lock();
        let blockers = shard.get(&index).map(|ranges| ranges.blockers(me.owner, key)).unwrap_or_default();
        let waits = !blockers.is_empty();
        if waits {
            self.waiting_inserts.fetch_add(1, SeqCst);
            self.waits.lock().begin_insert(me, blockers.into_iter().collect());
        }
        waits
    }

    /// Ends a wait that is over or is given up.
    pub(crate) fn end_insert_wait(&self, me: &Holder) {
        self.waits.lock().end(me.owner);
        let waiting = self.waiting_inserts.fetch_sub(1, SeqCst);
        debug_assert!(waiting > 0, "an insert ends its wait that was not counted");
    }

    /// Locks a range of keys. The caller has the leaf latched on which the newly covered keys are or would be.
    pub(crate) fn lock_range(&self, me: &Holder, index: IndexId, lower: Bound<&[u8]>, upper: Bound<&[u8]>) {
        let (lower, upper) = (KeyBound::lower(lower), KeyBound::upper(upper));
        if lower >= upper {
            return;
        }
        let mut shard = self.ranges_of(index).lock();
        let ranges = shard.entry(index).or_default();
        if !ranges.has_ranges_of(me.owner) {
            self.counters.add_range(index);
            debug_assert!(!me.ranges.lock().contains(&index), "{:?} lost its ranges in {index:?}", me.owner);
            me.ranges.lock().push(index);
        }
        ranges.add(me.owner, lower, upper);
    }

    /// Locks the range that holds only `key`; as [`LockSystem::lock_range`].
    pub(crate) fn lock_point(&self, me: &Holder, index: IndexId, key: &[u8]) {
        self.lock_range(me, index, Bound::Included(key), Bound::Included(key));
    }

    /// Locks the range of the keys that begin with `prefix`; as [`LockSystem::lock_range`].
    pub(crate) fn lock_prefix(&self, me: &Holder, index: IndexId, prefix: &[u8]) {
        let mut beyond = prefix.to_vec();
        while beyond.pop_if(|last| *last == u8::MAX).is_some() {}
        let upper = match beyond.last_mut() {
            Some(last) => {
                *last += 1;
                Bound::Excluded(&beyond[..])
            }
            None => Bound::Unbounded,
        };
        self.lock_range(me, index, Bound::Included(prefix), upper);
    }

    // ---- the end

    /// Releases every lock of `me`. Its implicit locks must have ended before.
    pub(crate) fn release_all(&self, me: &Holder) {
        debug_assert_eq!(self.waits.lock().outcome(me.owner), None, "{:?} ends while it waits", me.owner);
        // Either a waiter that made our lock explicit is seen here, or it sees that we have ended.
        me.trx_id.store(0, SeqCst);
        let mut shards = me.shards.swap(0, SeqCst);
        while shards != 0 {
            let number = shards.trailing_zeros() as usize;
            shards &= shards - 1;
            while self.release_rows(me, number) {}
        }
        let indexes = std::mem::take(&mut *me.ranges.lock());
        if !indexes.is_empty() {
            indexes.into_iter().for_each(|index| self.release_ranges(me, index));
            if self.waiting_inserts.load(SeqCst) > 0 {
                self.waits.lock().unblock_inserts(me.owner);
            }
        }
    }

    /// Releases a batch of row locks in a shard; whether there are more.
    fn release_rows(&self, me: &Holder, shard: usize) -> bool {
        let mut waits = WaitsGuard::new(&self.waits);
        let mut shard = self.rows[shard].lock();
        shard.release_some(&mut waits, me.owner, RELEASE_BATCH)
    }

    fn release_ranges(&self, me: &Holder, index: IndexId) {
        loop {
            let mut shard = self.ranges_of(index).lock();
            let Some(ranges) = shard.get_mut(&index) else { return };
            if ranges.remove_some_of(me.owner, RELEASE_BATCH) {
                continue;
            }
            self.counters.remove_range(index);
            if ranges.is_empty() {
                shard.remove(&index);
            }
            return;
        }
    }

    // ---- waiting

    /// Breaks the cycles through a transaction that has begun to wait, or has got an explicit lock.
    fn resolve_deadlocks(&self, holder: &Holder) {
        self.stats.deadlocks.add(self.waits.lock().resolve_deadlocks(holder.owner));
    }

    /// Installs the observer of lock waits, for the life of the lock system; false if there is one already.
    pub(crate) fn observe_waits(&self, observer: WaitObserver) -> bool {
        self.observer.set(observer).is_ok()
    }

    fn park(&self, me: &Arc<Holder>, patience: Patience<'_>) -> Result<()> {
        let Some(tell) = self.observer.get() else { return self.park_until_over(me, patience) };
        let owners = self.waits.lock().waits_for(me.owner);
        tell(LockWaitEvent::Begins { owners: &owners });
        let result = self.park_until_over(me, patience);
        tell(LockWaitEvent::Ends);
        result
    }

    fn park_until_over(&self, me: &Arc<Holder>, patience: Patience<'_>) -> Result<()> {
        let started = Instant::now();
        self.stats.row_lock_waits.inc();
        // A duration that the clock cannot add waits for a very long time instead.
        let deadline = started.checked_add(patience.timeout).unwrap_or_else(|| started + Duration::from_secs(1 << 30));
        let mut waits = self.waits.lock();
        waits.may_be_interrupted(me.owner, patience.interrupt);
        let mut timed_out = false;
        let result = loop {
            match waits.take_turn(me.owner) {
                None | Some(WaitOutcome::Granted) => break Ok(()),
                Some(WaitOutcome::Deadlock) => break Err(Error::Deadlock),
                Some(WaitOutcome::Pending) => {}
            }
            // The thread that stops the database takes the mutex of the waits afterwards, and wakes us.
            if let Err(stopped) = self.poison.check() {
                break Err(stopped);
            }
            // The same holds for the thread that interrupts us.
            if let Err(interrupted) = patience.check() {
                break Err(interrupted);
            }
            if timed_out {
                self.stats.row_lock_timeouts.inc();
                break Err(Error::LockWaitTimeout);
            }
            timed_out = me.wake.wait_until(&mut waits, deadline).timed_out();
        };
        drop(waits);
        self.stats.row_lock_wait_us.add(started.elapsed().as_micros() as u64);
        result
    }

    /// Explicit locks on rows, and requests that wait for them, about `max` at most: each shard as it is when it is
    /// looked at.
    pub(crate) fn list_rows(&self, max: usize) -> Vec<RowLock> {
        let mut found = Vec::new();
        self.rows.iter().for_each(|shard| shard.lock().list(&self.waits, max, &mut found));
        found
    }

    /// The owners that wait: for a row, or to insert into another's range.
    pub(crate) fn waiting(&self) -> Vec<OwnerId> {
        self.waits.lock().waiting()
    }

    /// Number of waiting transactions: for a row lock, or to insert into another transaction's range.
    pub(crate) fn current_waits(&self) -> u64 {
        self.waits.lock().pending()
    }

    /// Whether a holder waits, for tests.
    #[cfg(test)]
    pub(crate) fn is_waiting(&self, holder: &Holder) -> bool {
        self.waits.lock().outcome(holder.owner) == Some(WaitOutcome::Pending)
    }

    /// The wait-for graph, for tests.
    #[cfg(test)]
    pub(crate) fn waits(&self) -> crate::sync::MutexGuard<'_, Waits> {
        self.waits.lock()
    }

    /// Bytes of memory for row locks, in tests.
    #[cfg(test)]
    pub(crate) fn row_bytes(&self) -> usize {
        self.rows.iter().map(|shard| shard.lock().bytes()).sum()
    }

    /// Whether no lock is left, in tests.
    #[cfg(any(test, shuttle))]
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.iter().all(|shard| shard.lock().is_empty())
            && self.ranges.iter().all(|shard| shard.lock().is_empty())
            && self.waits.lock().is_empty()
            && self.counters.all_rows.load(SeqCst) == 0
    }
}
