//! Explicit locks on rows and ranges of keys, and the waits for them.
//!
//! | file | concept |
//! |---|---|
//! | `system.rs`, `counters.rs` | the lock system and its fast paths |
//! | `holder.rs` | owners of locks, names of rows |
//! | `row_locks.rs` | row locks, in shards |
//! | `range_locks.rs`, `interval_tree.rs` | range locks, by index |
//! | `queue.rs`, `waits.rs` | the queue of a row; the waiting transactions |
//! | `wait_policy.rs` | whether and how long a statement waits |
//! | `deadlock.rs` | cycles in the wait-for graph |
//!
//! Terms. A *row lock* (shared or exclusive) is on a clustered row, named by index and key. A row's own transaction id
//! is its *implicit* exclusive lock while that transaction is active; it becomes a lock object here only when another
//! transaction waits for the row. A *range lock* is on an interval of keys of one index and keeps other transactions
//! from inserting there; range locks never conflict with each other.
//!
//! In InnoDB's terms: a row lock is S or X with `LOCK_REC_NOT_GAP`; a range lock is `LOCK_GAP`, on the interval that
//! was read; what a locking scan takes of a row and the range before it is a next-key lock (`LOCK_ORDINARY`); an insert
//! that waits for a range is an insert intention. Plain reads under SERIALIZABLE take S;
//! [`Isolation`](crate::txn::Isolation) says which levels lock ranges.
//!
//! Rules
//! 1. Mutexes: one for each shard of rows (by hash of the row), one for each shard of ranges (by index), and one of the
//!    *waits*: the rows with waiters, and who waits for whom. Order: one shard, then the waits; never two shards. All
//!    are taken last: under page latches, never around them, never around I/O, and no code of other modules runs under
//!    them. Row operations take none unless a counter shows that there may be an explicit lock on their row or a range
//!    in their index; the mutex of the waits is taken only where a transaction waits. So a thread that holds the waits
//!    sees the whole wait-for graph.
//! 2. A transaction that locks a row for reading enters the lock while it has the row's leaf latched; one that changes
//!    a row checks for locks while it has the leaf latched exclusively. So neither misses the other. The same holds for
//!    ranges and inserts.
//! 3. After a wait, the granted explicit lock does not prove that the row has no implicit lock, so the row is read
//!    again.
//! 4. Requests on a row queue first in, first out. A holder that requests a stronger mode is put before the waiters.
//!    A thread that runs may take a free row while the front of its queue wakes, a limited number of times
//!    (`queue.rs`). A transaction that takes a row past waiters takes it explicitly, so that its end wakes them.
//! 5. A waiter holds no latch; it parks on its own condition variable. When a wait begins, the wait-for graph is
//!    searched for a cycle through the new waiter, and through the one whose implicit lock became explicit for it; the
//!    victim is the member with the fewest undo records.
//! 6. Locks are kept until the transaction ends, and released in batches, so that no mutex is held for long. Only the
//!    lock of the row read last may be released earlier: if the transaction did not hold it before, the caller does not
//!    want the row, and no range is locked (`unlock_row`). A table's auto-increment lock is on a name that no row has,
//!    and ends with its statement (`release_row`).
//! 7. When the database stops, every waiter is woken and gets an error. An interrupted waiter is woken, unless its lock
//!    was already granted; then the interruption ends its next wait.
//!
//! Differs from InnoDB: range locks by key instead of gap locks by record (nothing to inherit when records move or are
//! purged), one queue per row instead of bitmaps per page, insert intentions are not locks (an insert that found no
//! conflicting range is complete before the latch is released).

mod counters;
mod deadlock;
mod holder;
mod interval_tree;
mod key_bound;
mod queue;
mod range_locks;
mod row_locks;
mod system;
mod wait_policy;
mod waits;

pub use holder::LockMode;
pub(crate) use holder::{Holder, OwnerId, RowLock, RowName};
pub(crate) use system::LockSystem;
pub use system::LockWaitEvent;
pub use wait_policy::LockWait;

#[cfg(test)]
mod lock_test;
