//! The engine's one error type.

use crate::types::PageNo;
use highwater_storage::{OpenError, StorageError};

/// Result of an engine operation.
pub type Result<T> = std::result::Result<T, Error>;

/// Everything that can go wrong, in words a user can act on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An I/O operation failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A page did not verify or its contents contradict themselves.
    #[error("page {page} of the data file is corrupt: {reason}")]
    CorruptPage {
        /// Which page.
        page: PageNo,
        /// What was found.
        reason: String,
    },
    /// The database's files contradict themselves.
    #[error("database is corrupt: {0}")]
    Corrupt(String),
    /// The files are not a database of ours, or of another version.
    #[error("{0}")]
    Incompatible(String),
    /// The folder cannot be opened: in use, missing, not whole, not writable.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// An earlier failure stopped the database: every call fails, reads included; reopen it.
    #[error("the database has stopped after an earlier failure ({0}); close it and open it again")]
    Poisoned(String),
    /// The database was closed, through this handle or another one.
    #[error("the database is closed; open it again")]
    Closed,
    /// No frame could be freed: too many threads hold pages of too small a pool.
    #[error("no free frame in a buffer pool of {frames} frames after {waited_ms} ms; raise --buffer-pool-size")]
    PoolExhausted {
        /// Frames in the pool.
        frames: usize,
        /// How long the caller waited.
        waited_ms: u64,
    },
    /// One atomic change is larger than the redo log allows.
    #[error("an atomic change of {bytes} bytes does not fit the redo log; raise --log-file-size")]
    LogTooSmall {
        /// Size of the change.
        bytes: u64,
    },
    /// An option has a value it cannot have.
    #[error("option {option}: {reason}")]
    BadOption {
        /// The option's name on the command line.
        option: String,
        /// What is wrong with the value.
        reason: String,
    },
    /// A key is too long for a page of this size.
    #[error("key of {bytes} bytes is longer than the {limit_bytes} allowed with this page size")]
    KeyTooLong {
        /// Length of the encoded key.
        bytes: usize,
        /// The limit.
        limit_bytes: usize,
    },
    /// A row is too large.
    #[error("row of {bytes} bytes is larger than the {limit_bytes} allowed")]
    RowTooLarge {
        /// Length of the encoded row.
        bytes: usize,
        /// The limit.
        limit_bytes: usize,
    },
    /// A unique key exists already.
    #[error("duplicate key in index {index} of table {table}")]
    DuplicateKey {
        /// Table name.
        table: String,
        /// Index name ("PRIMARY" for the clustered one).
        index: String,
    },
    /// Waited too long for a row lock. The statement was rolled back, the transaction lives.
    #[error("lock wait timeout; the statement was rolled back, try again")]
    LockWaitTimeout,
    /// Chosen as deadlock victim. The whole transaction was rolled back.
    #[error("deadlock; the transaction was rolled back, try again")]
    Deadlock,
    /// The row changed after this transaction's snapshot (only with first-committer-wins).
    #[error("the row was changed by a transaction that committed after this snapshot")]
    WriteConflict,
    /// A table, column or index that does not exist, or exists already.
    #[error("{0}")]
    Schema(String),
    /// A value does not fit its column.
    #[error("column {column}: {reason}")]
    BadValue {
        /// Column name.
        column: String,
        /// What is wrong.
        reason: String,
    },
    /// A call that this transaction or database cannot serve in its state.
    #[error("{0}")]
    Usage(String),
    /// The data file has no room left and cannot grow.
    #[error(
        "{file} has no room left and cannot grow ({source}): make room where it lies, or delete rows or drop tables, whose \
         room is used again"
    )]
    DiskFull {
        /// The data file.
        file: String,
        /// The device's answer.
        source: StorageError,
    },
}

impl Error {
    /// A corrupt page, in one line.
    pub fn corrupt_page(page: PageNo, reason: impl Into<String>) -> Error {
        Error::CorruptPage { page, reason: reason.into() }
    }

    /// Whether it says that bytes on the device are not what was written there, which trying again does not change.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Error::CorruptPage { .. } | Error::Corrupt(_) => true,
            Error::Storage(error) => error.operation == "read",
            _ => false,
        }
    }

    /// What is wrong, without the page's number where that is said otherwise.
    pub(crate) fn into_reason(self) -> String {
        match self {
            Error::CorruptPage { reason, .. } => reason,
            other => other.to_string(),
        }
    }
}
