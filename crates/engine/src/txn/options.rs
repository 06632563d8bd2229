//! What a transaction is begun with.

/// What a transaction sees of others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// Each read sees what had committed when it began.
    ReadCommitted,
    /// All snapshot reads see what had committed at the first one; writes and locking reads see the newest committed
    /// row, locking range reads keep others from inserting into the range.
    #[default]
    RepeatableRead,
}

/// How a transaction behaves; see [`Database::begin_with`](crate::Database::begin_with).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TxnOptions {
    /// What it sees of others.
    pub isolation: Isolation,
    /// Milliseconds it waits for a lock; `None` = as the database's option `lock_wait_timeout_ms` says.
    pub lock_wait_timeout_ms: Option<u64>,
    /// Under REPEATABLE READ, a write to a row that another transaction changed after this transaction's snapshot fails
    /// with [`Error::WriteConflict`](crate::Error::WriteConflict) instead of writing over the newest version.
    pub first_committer_wins: bool,
}

/// What a transaction may do with rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Snapshot reads only: writes and locking reads are refused.
    ReadOnly,
    #[default]
    ReadWrite,
}
