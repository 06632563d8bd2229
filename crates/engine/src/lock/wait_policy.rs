//! The wait policy of a statement at a conflicting lock.

use std::time::Duration;

/// What a statement does when another transaction has locked a row, or a range of keys, that it needs.
///
/// A transaction has a policy of its own ([`WriteTxn::set_lock_wait`](crate::WriteTxn::set_lock_wait)); a scan, a
/// cursor or a [`get_locked`](crate::WriteTxn::get_locked) may have another one. Plain reads of a snapshot meet no
/// lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LockWait {
    /// It waits as long as the transaction's `lock_wait_timeout_ms` says, then it fails with
    /// [`Error::LockWaitTimeout`](crate::Error::LockWaitTimeout).
    #[default]
    Default,
    /// It waits this long at most.
    Timeout(Duration),
    /// It fails at once with [`Error::LockNotAvailable`](crate::Error::LockNotAvailable), which names the table and
    /// the index: SQL's NOWAIT. It does not wait for a schema change of the table either.
    NoWait,
    /// A locking read passes a locked row as if it were not there: SQL's SKIP LOCKED. Rows that it passes are not
    /// locked. Ranges of keys are locked under SERIALIZABLE only, so under REPEATABLE READ no insertion waits for such
    /// a read. (InnoDB locks the gaps before the rows it returns at both levels.) What such a read shows is no
    /// state of the table, at no level: it is for queues of work. A write cannot skip its row: it does as with
    /// [`NoWait`](LockWait::NoWait).
    SkipLocked,
}
