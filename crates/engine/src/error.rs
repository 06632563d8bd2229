//! The engine's one error type.

use crate::types::PageNo;
use highwater_storage::{OpenError, StorageError};
use std::path::PathBuf;

/// The kind of damage of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PageDamage {
    /// Its bytes do not verify, or contradict each other or other pages.
    Contents,
    /// It has a change beyond the end of the redo log, so the log has lost its end.
    BeyondLog,
    /// It was overwritten since it could not be read when its changes had to be applied: its contents are lost.
    Lost,
}

/// Result of an engine operation.
pub type Result<T> = std::result::Result<T, Error>;

/// Everything that can go wrong, in words a user can act on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An I/O operation failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A page does not verify, or its contents are inconsistent.
    #[error("page {page} of the data file is corrupt: {reason}")]
    CorruptPage {
        /// The page.
        page: PageNo,
        /// The kind of damage.
        kind: PageDamage,
        /// The damage as text.
        reason: String,
    },
    /// The files of the database are inconsistent, or one of them is damaged.
    #[error("database is corrupt: {0}")]
    Corrupt(String),
    /// The files are no Highwater database, or have another format version.
    #[error("{0}")]
    Incompatible(String),
    /// The folder cannot be opened: it is in use, missing, incomplete or not writable.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// An earlier failure stopped the database: every call fails, reads too. Close it and open it again.
    #[error("the database stopped because of an earlier failure ({0}); close it and open it again")]
    Poisoned(String),
    /// The database was closed, through this handle or another one.
    #[error("the database is closed; open it again")]
    Closed,
    /// The database was opened by the process of which this one was forked. There it continues; here every call is this
    /// error, nothing is written, and a handle can only be dropped. (That forgets it: its memory and its open files
    /// stay until the process ends or runs another program.) Open databases after `fork`.
    #[error("the database was opened before this process was forked and belongs to the parent; open it after fork")]
    Forked,
    /// No frame became free: the buffer pool is too small for the threads that hold pages.
    #[error("no free frame in a buffer pool of {frames} frames after {waited_ms} ms; increase --buffer-pool-size")]
    PoolExhausted {
        /// Frames in the pool.
        frames: usize,
        /// Time that the caller waited.
        waited_ms: u64,
    },
    /// One atomic change is too large for the redo log.
    #[error("an atomic change of {bytes} bytes does not fit in the redo log; increase --log-file-size")]
    LogTooSmall {
        /// Size of the change.
        bytes: u64,
    },
    /// An option has a value that is not accepted.
    #[error("option {option}: {reason}")]
    BadOption {
        /// The option's name on the command line.
        option: String,
        /// The problem with the value.
        reason: String,
    },
    /// A key is too long for its tree, whose limit follows from the page size and the definition at its creation
    /// ([`Schema::primary_key`](crate::Schema::primary_key)). [`Table::warnings`](crate::Table::warnings) says which
    /// keys of a table can be too long.
    #[error(
        "{key} has {bytes} bytes; in its tree at most {limit_bytes} are allowed (more in a table with long keys; an \
         index can be of a prefix of a column)"
    )]
    KeyTooLong {
        /// The key as text: its index, columns and table.
        key: String,
        /// Length of the encoded key.
        bytes: usize,
        /// The limit.
        limit_bytes: usize,
    },
    /// A row is too large.
    #[error("the row has {bytes} bytes; at most {limit_bytes} are allowed")]
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
    /// Waited too long for a lock on a row, or for a table that others use. The statement was rolled back; the
    /// transaction can continue.
    #[error(
        "lock wait timeout: another transaction, or an open one of this thread, uses the row or table; the statement \
         was rolled back, try again"
    )]
    LockWaitTimeout,
    /// Another transaction has locked a row, a range of keys or a table that a statement needs which does not wait
    /// ([`LockWait::NoWait`](crate::LockWait)). The statement was rolled back; the transaction can continue.
    #[error("{} is locked by another transaction, and the statement does not wait", lock_name(table, index.as_deref()))]
    LockNotAvailable {
        /// Table name.
        table: String,
        /// Name of the index whose row or range is locked ("PRIMARY" for the clustered one); `None`: the table.
        index: Option<String>,
    },
    /// Chosen as deadlock victim. The whole transaction was rolled back.
    #[error("deadlock; the transaction was rolled back, try again")]
    Deadlock,
    /// Another thread interrupted the call ([`InterruptHandle`](crate::InterruptHandle)). The statement was rolled
    /// back; the transaction can continue.
    #[error("the call was interrupted; the statement was rolled back")]
    Interrupted,
    /// The row changed after this transaction's snapshot (only with first-committer-wins).
    #[error("the row was changed by a transaction that committed after this snapshot")]
    WriteConflict,
    /// There is no table of this name.
    #[error("there is no table {table}")]
    NoSuchTable {
        /// Its name.
        table: String,
    },
    /// There is a table of this name already.
    #[error("there is a table {table} already")]
    TableExists {
        /// Its name.
        table: String,
    },
    /// The table was dropped after the handle was opened.
    #[error("table {table} was dropped")]
    TableDropped {
        /// Its name.
        table: String,
    },
    /// The table was renamed or truncated, or its columns were changed, after the handle was opened.
    /// [`Database::table`](crate::Database::table) returns a new handle.
    #[error("table {table} was changed since its handle was made; get a new one from the database")]
    TableChanged {
        /// The name it had.
        table: String,
    },
    /// The table has no column of this name.
    #[error("table {table} has no column {column}")]
    NoSuchColumn {
        /// The table's name.
        table: String,
        /// The column's.
        column: String,
    },
    /// The table has no index of this name.
    #[error("table {table} has no index {index}")]
    NoSuchIndex {
        /// The table's name.
        table: String,
        /// The index's.
        index: String,
    },
    /// An impossible definition of a table or index.
    #[error("{0}")]
    Schema(String),
    /// An entry of an index, its covered columns included, is too long for its tree.
    #[error("an entry of index {index} has {bytes} bytes; in its tree at most {limit_bytes} are allowed")]
    EntryTooLong {
        /// The index.
        index: String,
        /// Length of the entry.
        bytes: usize,
        /// The limit.
        limit_bytes: usize,
    },
    /// The function of a collation is needed, and is not known or has panicked.
    #[error("collation {collation}: {reason}")]
    Collation {
        /// The collation's name.
        collation: String,
        /// The problem.
        reason: String,
    },
    /// A value does not fit its column, or the type as which it is read.
    #[error("column {column}: {reason}")]
    BadValue {
        /// Column name.
        column: String,
        /// The problem.
        reason: String,
    },
    /// A value has no counterpart in another type; see [`FromValue`](crate::FromValue) and
    /// [`conversions`](crate::conversions).
    #[error("{0}")]
    Conversion(String),
    /// This cannot be the name of a prepared transaction.
    #[error("wrong transaction name: {reason}")]
    BadXid {
        /// The problem.
        reason: String,
    },
    /// A transaction of this name is prepared already, or is being prepared.
    #[error("a transaction named {xid} is prepared already")]
    DuplicateXid {
        /// The name.
        xid: String,
    },
    /// No transaction of this name is prepared.
    #[error("no transaction named {xid} is prepared; it has ended, or never was prepared here")]
    NoSuchXid {
        /// The name.
        xid: String,
    },
    /// A prepared transaction has changed the table, which therefore cannot be changed itself.
    #[error("table {table} was changed by the prepared transaction {xid}: commit that or roll it back first")]
    TableInPrepared {
        /// The table's name.
        table: String,
        /// The transaction's.
        xid: String,
    },
    /// Changes after this number are no longer kept ([`Database::trim_changes`](crate::Database::trim_changes)): the
    /// consumer must begin again with a new copy.
    #[error(
        "the consumer asked for changes after number {since}, but only changes after {trimmed} are kept; make the \
         copy again"
    )]
    ChangesTrimmed {
        /// The requested position.
        since: u64,
        /// The first position that is available.
        trimmed: u64,
    },
    /// A dump cannot be loaded: it is damaged, cut off, or of a format that this version does not know. The message
    /// names the place.
    #[error("{0}")]
    BadDump(String),
    /// The database refuses a row of a dump.
    #[error("row {row} of table {table} in the dump: {source}")]
    DumpedRow {
        /// The table's name.
        table: String,
        /// Number of the row in the order of the primary key, from 1.
        row: u64,
        /// Why.
        source: Box<Error>,
    },
    /// No process that serves readers has the database open ([`Database::open_reader`](crate::Database::open_reader)).
    #[error(
        "{}: no process that serves readers has this database open ({reason}); a database that is not open is read \
         with Database::open_read_only (--read-only)",
        folder.display()
    )]
    NotServed {
        /// The database's folder.
        folder: PathBuf,
        /// The reason why it cannot be reached.
        reason: String,
    },
    /// The connection to the process that has the database open has ended, and the snapshot with it. Take another
    /// snapshot.
    #[error("{}: the connection to the process that has this database open has ended: {reason}", folder.display())]
    ReaderDisconnected {
        /// The database's folder.
        folder: PathBuf,
        /// Why.
        reason: String,
    },
    /// An error of the process that has the database open, which this reader has no other form for.
    #[error("the process that has the database open answers: {0}")]
    Served(String),
    /// A call that is not possible in the present state of the transaction or database.
    #[error("{0}")]
    Usage(String),
    /// A file of the database, usually the data file, has no free space and cannot grow: its file system is full, or a
    /// limit of its size is reached.
    #[error(
        "{file} has no free space and cannot grow ({source}): free space on its file system, raise the limit if it is \
         one of this process, or delete rows or drop tables; their space is used again"
    )]
    DiskFull {
        /// The file.
        file: String,
        /// The error of the device.
        source: StorageError,
    },
}

fn lock_name(table: &str, index: Option<&str>) -> String {
    match index {
        Some(index) => format!("a row or range of index {index} of table {table}"),
        None => format!("table {table}"),
    }
}

impl Error {
    /// [`Error::CorruptPage`], in one line.
    pub fn corrupt_page(page: PageNo, reason: impl Into<String>) -> Error {
        Error::damaged_page(page, PageDamage::Contents, reason)
    }

    /// [`Error::CorruptPage`] of this kind.
    pub(crate) fn damaged_page(page: PageNo, kind: PageDamage, reason: impl Into<String>) -> Error {
        Error::CorruptPage { page, kind, reason: reason.into() }
    }

    /// The kind of damage, if the error is damage of a page.
    pub(crate) fn page_damage(&self) -> Option<PageDamage> {
        match self {
            Error::CorruptPage { kind, .. } => Some(*kind),
            _ => None,
        }
    }

    /// The error of a device that cannot reserve space: [`Error::DiskFull`] if it has none.
    pub(crate) fn of_room(source: StorageError) -> Error {
        match source.is_full() {
            true => Error::DiskFull { file: source.device.clone(), source },
            false => source.into(),
        }
    }

    /// Whether the same transaction may succeed when it is run again: it met other transactions. Roll it back first
    /// (after [`Error::Deadlock`] that has happened already). [`Database::transact`](crate::Database::transact) does
    /// all of it, but for [`Error::LockWaitTimeout`] and [`Error::LockNotAvailable`], which it returns.
    ///
    /// ```
    /// use highwater::Error;
    /// assert!(Error::Deadlock.is_retryable() && !Error::Closed.is_retryable());
    /// ```
    pub fn is_retryable(&self) -> bool {
        matches!(self, Error::Deadlock | Error::WriteConflict) || self.is_lock_refused()
    }

    /// This error with the key as text, which the caller knows.
    pub(crate) fn of_key(self, key: impl FnOnce() -> String) -> Error {
        match self {
            Error::KeyTooLong { bytes, limit_bytes, .. } => Error::KeyTooLong { key: key(), bytes, limit_bytes },
            other => other,
        }
    }

    /// Whether a lock of another transaction was in the way for too long, or at all.
    pub(crate) fn is_lock_refused(&self) -> bool {
        matches!(self, Error::LockWaitTimeout | Error::LockNotAvailable { .. })
    }

    /// Whether bytes on the device are not what was written there, or cannot be read.
    pub fn is_damage(&self) -> bool {
        match self {
            Error::CorruptPage { .. } | Error::Corrupt(_) => true,
            _ => self.is_failed_read(),
        }
    }

    /// Whether the function of a collation prevents the encoding of a row's entries.
    pub(crate) fn is_of_collation(&self) -> bool {
        matches!(self, Error::Collation { .. })
    }

    /// Whether a page has a change that the redo log has lost.
    pub(crate) fn is_beyond_log(&self) -> bool {
        self.page_damage() == Some(PageDamage::BeyondLog)
    }

    /// Whether the page was overwritten since it could not be read.
    pub(crate) fn is_lost(&self) -> bool {
        self.page_damage() == Some(PageDamage::Lost)
    }

    /// Whether the device failed to read; it may succeed the next time.
    pub(crate) fn is_failed_read(&self) -> bool {
        matches!(self, Error::Storage(error) if error.is_failed_read())
    }

    /// The page that is damaged, if it is known.
    pub(crate) fn page(&self) -> Option<PageNo> {
        match self {
            Error::CorruptPage { page, .. } => Some(*page),
            _ => None,
        }
    }

    /// The reason, without the number of the page.
    pub(crate) fn into_reason(self) -> String {
        match self {
            Error::CorruptPage { reason, .. } => reason,
            other => other.to_string(),
        }
    }
}
