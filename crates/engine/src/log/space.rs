//! Space in the ring: the bytes reserved since the last checkpoint. (The reservations themselves: `reservation`.)
//!
//! Rules
//! 1. `reserved_end` = end of the log + all outstanding reservations + the spare space in the threads' shards. It is
//!    never above `limit_end` = the older of the checkpoint and the LSN kept for readers (`keep`), + capacity.
//! 2. `limit_end` is 0 while nothing may be reserved: before the start, and after the database has stopped. The common
//!    case takes spare space of the thread's shard: one uncontended atomic operation, and two loads of words that
//!    rarely change. A thread that finds no space first gathers the spare space of all shards.
//! 3. Waiting threads queue for `turn`; only the first of them waits for space, and while a thread is in the queue no
//!    other passes it. So a large reservation is not starved by small ones.
//! 4. A thread that frees space (a checkpoint, a released reservation) checks for waiters afterwards, and leaves no
//!    spare space if there are any. A waiter registers before it checks for space. Both orders are sequentially
//!    consistent, so no wake-up is lost.
//! 5. Space for the end of a prepared transaction is reserved from its prepare on, for any time and thread, so an end
//!    never waits for space. Together these reservations take at most a sixteenth of the ring; further prepares wait.
//! 6. The last checkpoint is read under `state` when the limit moves, so of two concurrent checkpoints the newer one
//!    counts, in either order of arrival.

use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use crate::sync::sharded::{CachePadded, Sharded, shard_count};
use crate::sync::{Condvar, Mutex, RwLock};
use crate::types::Lsn;
use std::time::Duration;

/// Time that a waiter sleeps before it requests a checkpoint again.
const ASK_AGAIN: Duration = Duration::from_millis(20);

/// Bytes of a batch, which is reserved in advance. Also the largest reservation whose unused rest stays in the shard.
const BATCH_BYTES: u64 = 66 << 10;
/// The spare of all shards together is at most one part in this many of the ring; in a smaller ring nothing is
/// spare.
const SPARE_SHARE: u64 = 4;

/// Bytes of a batch in a ring of this capacity.
fn batch_in(capacity: u64) -> u64 {
    // A place has a batch and the rest of a reservation at most.
    let max = shard_count() as u64 * BATCH_BYTES * 2;
    if max <= capacity / SPARE_SHARE { BATCH_BYTES } else { 0 }
}

/// The part of the ring that is kept for ends at most.
const ENDS_SHARE: u64 = 16;

/// The reader has no redo kept.
const NOTHING_KEPT: u64 = u64::MAX;

/// A reader that follows the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedoReader {
    /// A backup, while it lasts.
    Backup = 0,
    /// The archive of redo, as long as the database is open.
    Archive = 1,
}

type Pressure = Box<dyn Fn() + Send + Sync>;

/// The state of rule 1, and the waiting threads.
pub(super) struct LogSpace {
    reserved_end: CachePadded<AtomicU64>,
    /// Reserved at once for the next reservations of each place.
    spare: Sharded<AtomicU64>,
    /// Bytes of a batch; 0 in a ring that is too small for batches.
    batch: AtomicU64,
    limit_end: AtomicU64,
    /// Bytes that are kept for ends of transactions (rule 5).
    ends: CachePadded<AtomicU64>,
    /// The redo from here on is kept for each [`RedoReader`]; `NOTHING_KEPT` if there is none. Changes under `state`.
    kept: [AtomicU64; 2],
    waiting: AtomicUsize,
    longest_group: u64,
    /// Changes with the ring.
    capacity: AtomicU64,
    turn: Mutex<()>,
    state: Mutex<ReservationState>,
    room: Condvar,
    pressure: RwLock<Option<Pressure>>,
}

/// The state of reservations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReservationState {
    NotStarted,
    Open,
    Closed,
}

impl LogSpace {
    pub(super) fn new(longest_group: u64, capacity: u64) -> LogSpace {
        LogSpace {
            reserved_end: CachePadded(AtomicU64::new(0)),
            spare: Sharded::default(),
            batch: AtomicU64::new(batch_in(capacity)),
            limit_end: AtomicU64::new(0),
            ends: CachePadded(AtomicU64::new(0)),
            kept: [AtomicU64::new(NOTHING_KEPT), AtomicU64::new(NOTHING_KEPT)],
            waiting: AtomicUsize::new(0),
            longest_group,
            capacity: AtomicU64::new(capacity),
            turn: Mutex::new(()),
            state: Mutex::new(ReservationState::NotStarted),
            room: Condvar::new(),
            pressure: RwLock::new(None),
        }
    }

    /// Number of threads that wait for space.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(SeqCst)
    }

    pub(super) fn set_pressure(&self, wake: Pressure) {
        *self.pressure.write() = Some(wake);
    }

    /// The longest group that can ever be reserved for.
    #[inline]
    pub(super) fn longest_group(&self) -> u64 {
        self.longest_group
    }

    /// Counts `bytes` that are to be kept for an end; false, and not counted, if enough is kept for others.
    pub(super) fn count_end(&self, bytes: u64) -> bool {
        debug_assert!(bytes > 0, "an end of no bytes is prepared");
        let fits = self.ends.fetch_add(bytes, SeqCst) + bytes <= self.capacity() / ENDS_SHARE;
        if !fits {
            self.uncount_end(bytes);
        }
        fits
    }

    /// Counts `bytes` again, which were kept for an end that has not used them.
    pub(super) fn count_end_again(&self, bytes: u64) {
        self.ends.fetch_add(bytes, SeqCst);
    }

    /// `bytes` are not kept for an end any more.
    pub(super) fn uncount_end(&self, bytes: u64) {
        let ends = self.ends.fetch_sub(bytes, SeqCst);
        debug_assert!(ends >= bytes, "{ends} bytes are kept for ends, {bytes} are taken of them");
    }

    /// Allows reservations from `lsn` on.
    pub(super) fn open(&self, lsn: Lsn) {
        let mut state = self.state.lock();
        if *state == ReservationState::NotStarted {
            *state = ReservationState::Open;
            debug_assert_eq!(self.limit_end.load(SeqCst), 0, "rule 2: nothing is reserved before the start");
            self.reserved_end.store(lsn.0, SeqCst);
            self.limit_end.store(lsn.0 + self.capacity(), SeqCst);
        }
    }

    pub(super) fn capacity(&self) -> u64 {
        self.capacity.load(SeqCst)
    }

    /// The ring has another size.
    pub(super) fn resized(&self, capacity: u64, checkpoint: impl Fn() -> Lsn) {
        let state = self.state.lock();
        self.capacity.store(capacity, SeqCst);
        self.batch.store(batch_in(capacity), SeqCst);
        self.move_limit(*state, checkpoint());
    }

    /// End of the log, outstanding reservations and what is spare counted.
    pub(super) fn reserved_end(&self) -> Lsn {
        Lsn(self.reserved_end.load(SeqCst))
    }

    /// Moves the limit after a checkpoint.
    pub(super) fn checkpointed(&self, checkpoint: impl Fn() -> Lsn) {
        let state = self.state.lock();
        self.advance_limit(*state, checkpoint());
    }

    /// Moves the limit in a ring of the same size.
    fn advance_limit(&self, state: ReservationState, checkpoint: Lsn) {
        let before = self.limit_end.load(SeqCst);
        self.move_limit(state, checkpoint);
        if cfg!(debug_assertions) && state == ReservationState::Open {
            // A concurrent reservation is below the older or the newer limit.
            let (reserved, limit) = (self.reserved_end.load(SeqCst), self.limit_end.load(SeqCst));
            debug_assert!(before <= limit, "rule 6: the limit moves back from {before} to {limit}");
            debug_assert!(reserved <= limit, "rule 1: {reserved} is reserved, above the limit {limit}");
        }
    }

    /// Rule 1 of the log: what ends at `end` was reserved. After the database `has_stopped`, LSNs are assigned without
    /// space.
    #[inline]
    pub(super) fn check_reserved(&self, end: Lsn, has_stopped: impl Fn() -> bool) {
        if cfg!(debug_assertions) {
            let reserved = self.reserved_end();
            debug_assert!(end <= reserved || has_stopped(), "the log ends at {end}, reserved is up to {reserved} only");
        }
    }

    fn move_limit(&self, state: ReservationState, checkpoint: Lsn) {
        if state == ReservationState::Open {
            self.limit_end.store(self.kept().min(checkpoint).0 + self.capacity(), SeqCst);
            self.room.notify_all();
        }
    }

    /// Start of the redo that is kept for readers.
    pub(super) fn kept(&self) -> Lsn {
        Lsn(self.kept.iter().map(|kept| kept.load(SeqCst)).min().unwrap_or(NOTHING_KEPT))
    }

    /// Keeps the redo from the checkpoint on for a reader; `None` if it has some kept already.
    pub(super) fn keep(&self, reader: RedoReader, checkpoint: impl Fn() -> Lsn) -> Option<Lsn> {
        // A checkpoint is stored before the limit follows it under this lock: what is kept now is not overwritten.
        let _state = self.state.lock();
        let (kept, from) = (&self.kept[reader as usize], checkpoint());
        (kept.load(SeqCst) == NOTHING_KEPT).then(|| kept.store(from.0, SeqCst)).map(|()| from)
    }

    /// The reader needs the redo from here on only.
    pub(super) fn keep_from(&self, reader: RedoReader, from: Lsn, checkpoint: impl Fn() -> Lsn) {
        let state = self.state.lock();
        let kept = &self.kept[reader as usize];
        debug_assert!(kept.load(SeqCst) <= from.0, "{reader:?} keeps {from} again, which it had released");
        kept.store(from.0, SeqCst);
        self.advance_limit(*state, checkpoint());
    }

    /// The reader needs none any more.
    pub(super) fn keep_nothing(&self, reader: RedoReader, checkpoint: impl Fn() -> Lsn) {
        self.keep_from(reader, Lsn(NOTHING_KEPT), checkpoint);
    }

    /// Refuses every reservation from now on.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        *state = ReservationState::Closed;
        self.limit_end.store(0, SeqCst);
        self.room.notify_all();
    }

    #[inline]
    pub(super) fn take_at_once(&self, bytes: u64) -> bool {
        let less = |spare: u64| spare.checked_sub(bytes);
        let took = self.spare.local().fetch_update(SeqCst, SeqCst, less).is_ok();
        if took && self.limit_end.load(SeqCst) != 0 && self.waiting.load(SeqCst) == 0 {
            return true;
        }
        if took {
            self.release(bytes);
        }
        self.take_with_batch(bytes)
    }

    /// Takes `bytes` from the ring, with a batch in addition if the ring has space for it.
    fn take_with_batch(&self, bytes: u64) -> bool {
        if self.waiting.load(SeqCst) > 0 {
            return false;
        }
        let batch = self.batch.load(SeqCst);
        if batch > 0 && self.try_take(bytes + batch) {
            self.release(batch);
            return true;
        }
        self.try_take(bytes) || self.take_after_gathering(bytes)
    }

    #[cold]
    fn take_after_gathering(&self, bytes: u64) -> bool {
        self.gather_spare();
        let took = self.try_take(bytes);
        // Another thread may wait for the spare bytes.
        if self.waiting.load(SeqCst) > 0 {
            self.notify();
        }
        took
    }

    /// Releases space: it stays in reserve in the shard, unless the shard has much or a thread waits for space.
    #[inline]
    pub(super) fn release(&self, bytes: u64) {
        let (spare, batch) = (self.spare.local(), self.batch.load(SeqCst));
        if bytes > batch || spare.load(SeqCst) > batch {
            let reserved = self.reserved_end.fetch_sub(bytes, SeqCst);
            debug_assert!(reserved >= bytes, "{bytes} bytes are released of {reserved}");
        } else {
            spare.fetch_add(bytes, SeqCst);
        }
        if self.waiting.load(SeqCst) > 0 {
            self.notify();
        }
    }

    /// Releases what is spare.
    fn gather_spare(&self) {
        for spare in self.spare.iter() {
            let bytes = spare.swap(0, SeqCst);
            let reserved = self.reserved_end.fetch_sub(bytes, SeqCst);
            debug_assert!(reserved >= bytes, "{bytes} spare bytes are released of {reserved}");
        }
    }

    #[cold]
    fn notify(&self) {
        self.gather_spare();
        // The lock orders this against a waiter between its check and its sleep.
        let _state = self.state.lock();
        self.room.notify_all();
    }

    /// Waits until `bytes` were reserved or the log is not open.
    pub(super) fn wait_for(&self, bytes: u64) -> ReservationState {
        // A waiter registers before it checks for space (rule 4).
        self.waiting.fetch_add(1, SeqCst);
        let state = self.queue_for(bytes);
        let waiting = self.waiting.fetch_sub(1, SeqCst);
        debug_assert!(waiting > 0, "a wait ends that was not counted");
        state
    }

    fn queue_for(&self, bytes: u64) -> ReservationState {
        let _turn = self.turn.lock();
        loop {
            self.gather_spare();
            let mut state = self.state.lock();
            if *state != ReservationState::Open || self.try_take(bytes) {
                return *state;
            }
            drop(state);
            if let Some(wake) = &*self.pressure.read() {
                wake();
            }
            state = self.state.lock();
            if *state != ReservationState::Open || self.try_take(bytes) {
                return *state;
            }
            self.room.wait_for(&mut state, ASK_AGAIN);
        }
    }

    fn try_take(&self, bytes: u64) -> bool {
        let limit = self.limit_end.load(SeqCst);
        let fits = |end: u64| end.checked_add(bytes).filter(|&e| e <= limit);
        self.reserved_end.fetch_update(SeqCst, SeqCst, fits).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule 6: an LSN that was read earlier would undo the release of space by a concurrent checkpoint.
    #[test]
    fn the_last_checkpoint_is_asked_for_under_the_lock() {
        let space = LogSpace::new(1000, 1000);
        space.open(Lsn(100));
        let checkpoint = || {
            assert!(space.state.try_lock().is_none(), "another checkpoint may come in between");
            Lsn(600)
        };
        space.checkpointed(checkpoint);
        assert_eq!(space.limit_end.load(SeqCst), 1600);
        space.resized(2000, checkpoint);
        assert_eq!(space.limit_end.load(SeqCst), 2600);
        space.keep_nothing(RedoReader::Backup, checkpoint);
        assert_eq!(space.limit_end.load(SeqCst), 2600);
    }
}
