//! Explicit locks: what the lock system keeps, and its fast paths.
//!
//! Terms. A *row lock* (shared or exclusive) is on a clustered row, named by index and key. A row's own transaction id is its
//! *implicit* exclusive lock while that transaction is active; it becomes an object here only when somebody has to wait for
//! it. A *range lock* is on an interval of keys of one index and keeps other transactions from inserting there; range locks
//! never conflict with each other.
//!
//! Rules
//! 1. One mutex guards the table. It is taken last: under page latches, never around them, never around I/O. Row operations
//!    do not touch it unless a counter says that there may be an explicit lock on their row or a range in their index.
//! 2. Whoever locks a row for reading enters the lock while he has the row's leaf latched; whoever changes a row checks
//!    while he has it latched exclusively. So neither misses the other. The same holds for ranges and inserts.
//! 3. A lock that was waited for says nothing about the implicit lock: after a wait the row is looked at again.
//! 4. Requests on a row queue first in, first out; only a holder who asks for more goes ahead of the queue.
//! 5. A waiter parks on its own condition variable. When a wait begins, the wait-for graph is searched for a cycle
//!    through the new waiter; the victim is the member with the fewest undo records.
//! 6. Locks are kept until the transaction ends.
//!
//! Differs from InnoDB: range locks by key instead of gap locks by record (nothing to inherit when records move or are
//! purged), one queue per row instead of bitmaps per page, insert intentions are no locks (an insert that found no
//! conflicting range is done before the latch is released).

use super::lock_table::LockTable;
#[cfg(test)]
use super::lock_table::Request;
use crate::error::{Error, Result};
use crate::stats::Stats;
use crate::types::{IndexId, TrxId};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// How a read locks the rows it returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LockMode {
    /// Not at all: a snapshot read.
    #[default]
    None,
    /// Shared: others may read and lock shared, nobody may change.
    Shared,
    /// Exclusive: as if about to change.
    Exclusive,
}

impl LockMode {
    /// Whether locks of two transactions on one row exclude each other.
    pub(crate) fn conflicts(self, other: LockMode) -> bool {
        self != LockMode::None
            && other != LockMode::None
            && (self == LockMode::Exclusive || other == LockMode::Exclusive)
    }

    /// Whether a holder of `self` need not ask for `other`.
    pub(crate) fn covers(self, other: LockMode) -> bool {
        self == other || self == LockMode::Exclusive
    }
}

/// No slot in the lock table.
pub(crate) const NO_SLOT: u32 = u32::MAX;

/// A transaction as the lock system sees it.
#[derive(Debug)]
pub(crate) struct Holder {
    /// Its id while it is active, 0 before and after.
    pub(crate) trx_id: AtomicU64,
    /// Its slot in the lock table, [`NO_SLOT`] while it has none. Written under the table's mutex.
    pub(crate) slot: AtomicU32,
    /// Undo records written: what a rollback costs.
    pub(crate) weight: AtomicU64,
    pub(crate) wake: Condvar,
}

impl Default for Holder {
    fn default() -> Holder {
        Holder {
            trx_id: AtomicU64::new(0),
            slot: AtomicU32::new(NO_SLOT),
            weight: AtomicU64::new(0),
            wake: Condvar::new(),
        }
    }
}

/// A clustered row, as lock requests name it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowName<'k> {
    pub(crate) index: IndexId,
    pub(crate) key: &'k [u8],
}

const ROW_COUNTERS: usize = 4096;
const RANGE_COUNTERS: usize = 256;

impl RowName<'_> {
    /// A hash of index and key.
    pub(crate) fn hash(&self) -> u64 {
        const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut hash = u64::from(self.index.0).wrapping_mul(FACTOR) ^ self.key.len() as u64;
        let mut chunks = self.key.chunks_exact(8);
        for chunk in &mut chunks {
            let word = chunk.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
            hash = (hash ^ word).wrapping_mul(FACTOR).rotate_left(29);
        }
        for byte in chunks.remainder() {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(FACTOR).rotate_left(29);
        }
        (hash ^ hash >> 32).wrapping_mul(FACTOR)
    }
}

/// Counters that let row operations skip the table.
#[derive(Debug)]
pub(crate) struct Counters {
    all_rows: AtomicU32,
    rows: Box<[AtomicU32]>,
    ranges: Box<[AtomicU32]>,
}

impl Default for Counters {
    fn default() -> Counters {
        let zeros = |n| (0..n).map(|_| AtomicU32::new(0)).collect();
        Counters { all_rows: AtomicU32::new(0), rows: zeros(ROW_COUNTERS), ranges: zeros(RANGE_COUNTERS) }
    }
}

impl Counters {
    pub(crate) fn add_row(&self, hash: u64) {
        self.rows[hash as usize % ROW_COUNTERS].fetch_add(1, SeqCst);
        self.all_rows.fetch_add(1, SeqCst);
    }

    pub(crate) fn remove_row(&self, hash: u64) {
        self.all_rows.fetch_sub(1, SeqCst);
        self.rows[hash as usize % ROW_COUNTERS].fetch_sub(1, SeqCst);
    }

    pub(crate) fn add_range(&self, index: IndexId) {
        self.ranges[index.0 as usize % RANGE_COUNTERS].fetch_add(1, SeqCst);
    }

    pub(crate) fn remove_range(&self, index: IndexId) {
        self.ranges[index.0 as usize % RANGE_COUNTERS].fetch_sub(1, SeqCst);
    }

    /// Whether the row may have explicit locks.
    #[inline]
    fn may_have_row(&self, row: RowName<'_>) -> bool {
        self.all_rows.load(SeqCst) != 0 && self.rows[row.hash() as usize % ROW_COUNTERS].load(SeqCst) != 0
    }

    /// Whether the index may have range locks.
    #[inline]
    fn may_have_range(&self, index: IndexId) -> bool {
        self.ranges[index.0 as usize % RANGE_COUNTERS].load(SeqCst) != 0
    }
}

/// The lock system of one database.
pub(crate) struct LockSystem {
    table: Mutex<LockTable>,
    counters: Arc<Counters>,
    stats: Arc<Stats>,
}

/// How a wait ended, if not with the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Still waiting.
    Pending,
    /// Nothing is in the way any more.
    Granted,
    /// Chosen as deadlock victim.
    Deadlock,
}

impl LockSystem {
    pub(crate) fn new(stats: Arc<Stats>) -> LockSystem {
        let counters = Arc::<Counters>::default();
        LockSystem { table: Mutex::new(LockTable::new(Arc::clone(&counters))), counters, stats }
    }

    /// Whether an explicit lock of another transaction keeps `me` from locking the row in `mode`. Takes nothing.
    #[inline]
    pub(crate) fn blocks_row(&self, me: &Holder, row: RowName<'_>, mode: LockMode) -> bool {
        self.counters.may_have_row(row) && self.table.lock().blocks_row(me.slot.load(Relaxed), row, mode)
    }

    /// Takes an explicit row lock unless one of another transaction is in the way. The caller has the row's leaf latched.
    pub(crate) fn try_lock_row(&self, me: &Arc<Holder>, row: RowName<'_>, mode: LockMode) -> bool {
        self.table.lock().try_lock_row(me, row, mode)
    }

    /// Waits for an explicit row lock. `implicit` is the transaction that holds the row by its id, if one does: its lock
    /// is made explicit first. The caller holds no latch and looks at the row again afterwards.
    ///
    /// # Errors
    /// [`Error::LockWaitTimeout`], [`Error::Deadlock`].
    pub(crate) fn wait_row(
        &self,
        me: &Arc<Holder>,
        row: RowName<'_>,
        mode: LockMode,
        implicit: Option<(TrxId, &Arc<Holder>)>,
        timeout: Duration,
    ) -> Result<()> {
        let mut table = self.table.lock();
        if let Some((id, holder)) = implicit
            && !table.make_explicit(holder, id, row)
        {
            return Ok(());
        }
        if table.try_lock_row(me, row, mode) {
            return Ok(());
        }
        let slot = table.enqueue_row(me, row, mode);
        self.park(table, me, slot, timeout)
    }

    /// Whether a range lock of another transaction keeps `me` from inserting `key` into `index`. Called under the
    /// exclusive latch of the leaf that takes the key.
    #[inline]
    pub(crate) fn blocks_insert(&self, me: &Holder, index: IndexId, key: &[u8]) -> bool {
        self.counters.may_have_range(index) && self.table.lock().blocks_insert(me.slot.load(Relaxed), index, key)
    }

    /// Waits until no range lock of another transaction covers `key`. The caller holds no latch and checks again afterwards.
    ///
    /// # Errors
    /// [`Error::LockWaitTimeout`], [`Error::Deadlock`].
    pub(crate) fn wait_insert(&self, me: &Arc<Holder>, index: IndexId, key: &[u8], timeout: Duration) -> Result<()> {
        let mut table = self.table.lock();
        if !table.blocks_insert(me.slot.load(Relaxed), index, key) {
            return Ok(());
        }
        let slot = table.enqueue_insert(me, index, key);
        self.park(table, me, slot, timeout)
    }

    /// Locks a range of keys, or extends the range `at` to take it in (the two must touch). The caller has the leaf latched
    /// on which the newly covered keys are or would be.
    pub(crate) fn lock_range(
        &self,
        me: &Arc<Holder>,
        at: &mut Option<u64>,
        index: IndexId,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
    ) {
        self.table.lock().lock_range(me, at, index, lower, upper);
    }

    /// Locks the range that holds only `key`; as [`LockSystem::lock_range`].
    pub(crate) fn lock_point(&self, me: &Arc<Holder>, index: IndexId, key: &[u8]) {
        let mut table = self.table.lock();
        if !table.has_range_over(me.slot.load(Relaxed), index, key) {
            table.lock_range(me, &mut None, index, Bound::Included(key), Bound::Included(key));
        }
    }

    /// Gives up everything `me` holds. Its implicit locks must have ended before.
    pub(crate) fn release_all(&self, me: &Holder) {
        // Either a waiter that made our lock explicit is seen here, or it sees that we have ended.
        me.trx_id.store(0, SeqCst);
        if me.slot.load(SeqCst) != NO_SLOT {
            self.table.lock().release_all(me);
        }
    }

    fn park(&self, mut table: MutexGuard<'_, LockTable>, me: &Arc<Holder>, slot: u32, timeout: Duration) -> Result<()> {
        let started = Instant::now();
        self.stats.row_lock_waits.inc();
        self.stats.deadlocks.add(table.resolve_deadlocks(slot));
        // A duration too long for the clock waits for as long as the clock can tell.
        let deadline = started.checked_add(timeout).unwrap_or_else(|| started + Duration::from_secs(1 << 30));
        let result = loop {
            match table.outcome(slot) {
                Outcome::Granted => break Ok(()),
                Outcome::Deadlock => break Err(Error::Deadlock),
                Outcome::Pending if Instant::now() >= deadline => {
                    self.stats.row_lock_timeouts.inc();
                    break Err(Error::LockWaitTimeout);
                }
                Outcome::Pending => drop(me.wake.wait_until(&mut table, deadline)),
            }
        };
        table.end_wait(slot);
        self.stats.row_lock_wait_us.add(started.elapsed().as_micros() as u64);
        result
    }

    /// What a holder waits for, in tests.
    #[cfg(test)]
    pub(crate) fn is_waiting(&self, holder: &Holder) -> bool {
        let table = self.table.lock();
        let slot = holder.slot.load(Relaxed);
        slot != NO_SLOT && table.request(slot) != Request::None && table.outcome(slot) == Outcome::Pending
    }

    /// Whether no lock is left, in tests.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.table.lock().is_empty() && self.counters.all_rows.load(SeqCst) == 0
    }
}
