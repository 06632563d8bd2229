//! Flush methods: the flags with which a file is opened, and the system call that makes its writes durable.
//!
//! | method | data, doublewrite | redo |
//! |---|---|---|
//! | fsync | buffered, fsync | buffered, fsync |
//! | O_DSYNC | buffered, fdatasync | buffered, each write durable: no call after it |
//! | O_DIRECT | direct, fdatasync | direct, fdatasync |
//! | O_DIRECT_NO_FSYNC | direct, fdatasync only after a change of length | direct, fdatasync |
//!
//! The meanings are InnoDB's, but for the redo, which InnoDB keeps in the page cache with O_DIRECT too.

use super::sys::{self, OpenFlags, WriteLifetime};
use std::str::FromStr;

/// The flush method: the way in which files are written and made durable (InnoDB's names).
///
/// # File systems
/// Tried on Linux with ext4 (blocks of 1 and 4 KiB), XFS, Btrfs, tmpfs, and overlayfs over ext4; every method works on
/// each.
/// - A file system that refuses direct I/O (as tmpfs did for long) gets buffered I/O with the same syncs instead;
///   [`FileDevice::is_direct`](crate::FileDevice::is_direct) says so. Direct I/O needs offsets, lengths and addresses
///   that are multiples of 4,096 bytes, which is enough for every device with sectors up to that size; one with larger
///   sectors fails at the first read or write, with the operating system's message.
/// - `DirectNoFsync` is only for devices whose write cache survives a power cut (with power-loss protection, or none:
///   `/sys/block/DEVICE/queue/write_cache` says `write through`). It sends no flush: on any other device a power cut
///   can lose or tear pages that count as durable.
/// - `DirectNoFsync` needs a file whose blocks are all allocated and initialized, shared with no other file, on a file
///   system that overwrites in place: a file that this method has made and grown on ext4 or XFS. Any other (a sparse
///   copy, a copy by reflink, a file that another method has grown, anything on Btrfs, ZFS or bcachefs) is synced as
///   with `Direct`: without the sync a power cut could lose writes that the file system had not entered in its own
///   records. A reflink made while a database is open is not seen: make none.
/// - Btrfs copies each overwritten block, which fragments the files; `chattr +C` on the folder while it is empty avoids
///   that.
/// - A database that is closed may be copied, moved, archived and restored with any tool (`cp`, `rsync`, `tar`, sparse
///   or not, by reflink), to any other of these file systems, and opened with any method: all its files together. A
///   copy of the files of an open database is not a backup.
/// - Direct I/O and writes that are durable when they return are Linux's (of 64 bits). Other systems, macOS and Windows
///   among them, have files in the page cache, and a sync after each write that has to be durable, with every method.
/// - Network file systems (NFS, SMB) are neither tried nor supported: what a lock and a sync promise there depends on
///   the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlushMethod {
    /// Buffered writes, then fsync.
    Fsync,
    /// Buffered writes, then fdatasync; the redo is opened so that each of its writes is durable when it returns.
    DSync,
    /// Writes bypass the page cache; fdatasync.
    #[default]
    Direct,
    /// As `Direct`; data and doublewrite are synced only when their length changed. Only for devices whose cache
    /// survives a power cut.
    DirectNoFsync,
}

crate::names!(FlushMethod {
    Fsync => "fsync",
    DSync => "O_DSYNC",
    Direct => "O_DIRECT",
    DirectNoFsync => "O_DIRECT_NO_FSYNC",
});

crate::shown_by_name!(FlushMethod);

impl FromStr for FlushMethod {
    type Err = String;

    /// Reads a name, in capital or small letters; the error has all names.
    fn from_str(text: &str) -> Result<FlushMethod, String> {
        let found = FlushMethod::ALL.into_iter().find(|method| method.name().eq_ignore_ascii_case(text));
        let hint = match text.eq_ignore_ascii_case("fdatasync") {
            true => "; what older InnoDB calls fdatasync is fsync",
            false => "",
        };
        found.ok_or_else(|| format!("{text:?} is not one of {}{hint}", FlushMethod::names()))
    }
}

/// The role of a file in a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRole {
    /// Pages in place.
    Data,
    /// The doublewrite file.
    Doublewrite,
    /// The redo ring, written and synced at each commit.
    Redo,
    /// The redo ring if a commit only writes and does not sync: its writes go to the page cache with every method.
    RedoCached,
    /// A temporary file, such as the runs of a sort; it is never synced.
    Temporary,
}

impl FileRole {
    /// The expected lifetime of its bytes. Pages of all lifetimes are in one file.
    ///
    /// | file | its bytes |
    /// |---|---|
    /// | redo | are overwritten once for each lap of the ring |
    /// | doublewrite, with the journal | are overwritten by the next batch, or once for each lap |
    /// | temporary | are read once and then removed |
    /// | data | not known |
    pub(super) fn lifetime(self) -> WriteLifetime {
        match self {
            FileRole::Redo | FileRole::RedoCached | FileRole::Doublewrite | FileRole::Temporary => WriteLifetime::Short,
            FileRole::Data => WriteLifetime::NotSet,
        }
    }
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
    pub(super) const READ_ONLY: Mode =
        Mode { direct: false, each_write_durable: false, sync_only_after_len_change: false, whole_sync: false };

    pub(super) fn of(role: FileRole, method: FlushMethod) -> Mode {
        use FileRole::{Data, Doublewrite, Redo, RedoCached};
        let is_redo = matches!(role, Redo | RedoCached);
        let wants_direct = matches!(method, FlushMethod::Direct | FlushMethod::DirectNoFsync);
        let direct = sys::HAS_DIRECT_IO && wants_direct && role != RedoCached;
        let each_write_durable = sys::HAS_DURABLE_WRITES && method == FlushMethod::DSync && role == Redo;
        let unsynced_data = method == FlushMethod::DirectNoFsync && matches!(role, Data | Doublewrite);
        debug_assert!(!(is_redo && unsynced_data));
        let sync_only_after_len_change = each_write_durable || unsynced_data;
        Mode { direct, each_write_durable, sync_only_after_len_change, whole_sync: method == FlushMethod::Fsync }
    }

    /// Whether a write may never be followed by a sync.
    pub(super) fn writes_unsynced(self) -> bool {
        self.sync_only_after_len_change && !self.each_write_durable
    }

    pub(super) fn open_flags(self) -> OpenFlags {
        OpenFlags { direct: self.direct, each_write_durable: self.each_write_durable, exclusive: false }
    }
}
