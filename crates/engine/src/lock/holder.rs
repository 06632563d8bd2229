//! Lock modes, owners of locks, names of rows.

use crate::sync::IdGenerator;
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};
use crate::sync::{Condvar, Mutex};
use crate::types::IndexId;

/// The mode in which a read locks the rows that it returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LockMode {
    /// Not at all: a snapshot read.
    #[default]
    None,
    /// Shared: others may read and lock shared, none may change.
    Shared,
    /// Exclusive: as if about to change.
    Exclusive,
}

highwater_storage::names!(LockMode { None => "none", Shared => "shared", Exclusive => "exclusive" });
highwater_storage::shown_by_name!(LockMode);
highwater_storage::read_by_name!(LockMode);

impl LockMode {
    /// Whether locks of two transactions on one row exclude each other.
    pub(crate) fn conflicts(self, other: LockMode) -> bool {
        self != LockMode::None
            && other != LockMode::None
            && (self == LockMode::Exclusive || other == LockMode::Exclusive)
    }

    /// Whether a holder of `self` has `other` already.
    pub(crate) fn covers(self, other: LockMode) -> bool {
        self == other || self == LockMode::Exclusive
    }
}

/// A transaction, as the owner of locks. Numbers are never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct OwnerId(pub(crate) u64);

/// A transaction as the lock system sees it.
#[derive(Debug)]
pub(crate) struct Holder {
    pub(crate) owner: OwnerId,
    /// Its id while it is active, 0 before and after.
    pub(crate) trx_id: AtomicU64,
    /// The shards in which it may have row locks, a bit each. Set under the shard's mutex.
    pub(crate) shards: AtomicU64,
    /// The indexes in which it has ranges. Only its own thread takes this mutex, inside that of a shard of ranges.
    pub(crate) ranges: Mutex<Vec<IndexId>>,
    /// Hash of the row that it has locked last, if it did not hold that row before; else 0. Its own thread's.
    pub(crate) last_row: AtomicU64,
    /// Undo records written: what a rollback costs.
    pub(crate) weight: AtomicU64,
    pub(crate) wake: Condvar,
}

impl Default for Holder {
    fn default() -> Holder {
        static NEXT: IdGenerator = IdGenerator::new();
        Holder {
            owner: OwnerId(NEXT.next()),
            trx_id: AtomicU64::new(0),
            shards: AtomicU64::new(0),
            ranges: Mutex::default(),
            last_row: AtomicU64::new(0),
            weight: AtomicU64::new(0),
            wake: Condvar::new(),
        }
    }
}

impl Holder {
    /// Whether it may have locks. Asked by its own thread.
    pub(crate) fn has_locks(&self) -> bool {
        self.shards.load(Relaxed) != 0 || !self.ranges.lock().is_empty()
    }
}

/// An explicit lock on a row, or a request that waits for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowLock {
    pub(crate) index: IndexId,
    pub(crate) key: Vec<u8>,
    pub(crate) owner: OwnerId,
    pub(crate) mode: LockMode,
    pub(crate) is_waiting: bool,
}

/// A clustered row, as lock requests name it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowName<'k> {
    pub(crate) index: IndexId,
    pub(crate) key: &'k [u8],
}

impl RowName<'_> {
    /// A hash of index and key that is well distributed in all bits: shards, buckets and counters use different ones.
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
        // A product's low bits do not depend on its factors' high ones: shift those down, twice.
        hash = (hash ^ hash >> 32).wrapping_mul(FACTOR);
        hash = (hash ^ hash >> 29).wrapping_mul(FACTOR);
        hash ^ hash >> 32
    }
}
