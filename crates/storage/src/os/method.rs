//! Flush methods: which flags a file is opened with and which system call makes its writes durable.
//!
//! | method | data, doublewrite | redo |
//! |---|---|---|
//! | fsync | buffered, fsync | buffered, fsync |
//! | O_DSYNC | buffered, fdatasync | buffered, each write durable: no call after it |
//! | O_DIRECT | direct, fdatasync | direct, fdatasync |
//! | O_DIRECT_NO_FSYNC | direct, fdatasync only after a change of length | direct, fdatasync |
//!
//! The meanings are InnoDB's, but for the redo, which InnoDB keeps in the page cache with O_DIRECT too.

/// How files are written and made durable (InnoDB's names).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlushMethod {
    /// Buffered writes, then fsync.
    Fsync,
    /// Buffered writes, then fdatasync; the redo is opened so that each of its writes is durable when it returns.
    DSync,
    /// Writes bypass the page cache; fdatasync.
    #[default]
    Direct,
    /// As `Direct`; data and doublewrite are synced only when their length changed.
    DirectNoFsync,
}

/// Which of a database's files this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRole {
    /// Pages in place.
    Data,
    /// Copies of pages on their way to their place.
    Doublewrite,
    /// The redo ring, written and synced at each commit.
    Redo,
    /// The redo ring when a commit only writes it: through the page cache whatever the method, where a write is a copy.
    RedoCached,
}

/// The flags that follow from role and method.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mode {
    pub(super) direct: bool,
    pub(super) each_write_durable: bool,
    pub(super) sync_only_after_len_change: bool,
    /// fsync instead of fdatasync.
    pub(super) whole_sync: bool,
}

impl Mode {
    /// For reading only.
    pub(super) const READ_ONLY: Mode =
        Mode { direct: false, each_write_durable: false, sync_only_after_len_change: false, whole_sync: false };

    pub(super) fn of(role: FileRole, method: FlushMethod) -> Mode {
        use FileRole::{Data, Doublewrite, Redo, RedoCached};
        let is_redo = matches!(role, Redo | RedoCached);
        let direct = matches!(method, FlushMethod::Direct | FlushMethod::DirectNoFsync) && role != RedoCached;
        let each_write_durable = method == FlushMethod::DSync && role == Redo;
        let unsynced_data = method == FlushMethod::DirectNoFsync && matches!(role, Data | Doublewrite);
        debug_assert!(!(is_redo && unsynced_data));
        let sync_only_after_len_change = each_write_durable || unsynced_data;
        Mode { direct, each_write_durable, sync_only_after_len_change, whole_sync: method == FlushMethod::Fsync }
    }

    /// Whether a write may never be followed by a sync.
    pub(super) fn writes_unsynced(self) -> bool {
        self.sync_only_after_len_change && !self.each_write_durable
    }

    pub(super) fn open_flags(self) -> i32 {
        let direct = if self.direct { libc::O_DIRECT } else { 0 };
        let dsync = if self.each_write_durable { libc::O_DSYNC } else { 0 };
        direct | dsync
    }
}
