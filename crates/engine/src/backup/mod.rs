//! Backups: a full or incremental copy of a database in use; and restores.
//!
//! Terms
//! - A *full* backup has every page; an *incremental* one has the pages whose LSN is above the end LSN of its *base*,
//!   another backup of the same database. A *chain* is a full backup and the incremental ones that follow, each based
//!   on the previous one.
//! - *start LSN*: the checkpoint when the backup began. *pages LSN*: the durable LSN of the log when the last page had
//!   been copied. *end LSN*: the end of the backup's redo; the backup has exactly the commits before it.
//!
//! Taking a backup (`take`), in this order; the database's files are not written
//! 1. DEST is a new or empty folder outside of the database's.
//! 2. No page is discarded until the end ([`Space::hold_discards`](crate::space::Space::hold_discards)), then the log
//!    keeps its redo from the checkpoint on ([`crate::log::KeptRedo`]): the start LSN.
//! 3. A thread copies redo, as soon as it is durable, to `redo`, and releases it in the ring.
//! 4. Meanwhile the pages are read from the store, an extent at a time, not from the pool, and appended to `pages`.
//!    Each is verified. A page that does not verify may be being written: it is read again, or copied from the pool.
//!    Transactions and schema changes continue; the copies are of different moments.
//! 5. When the last page is copied, the end of the log is made durable: the end LSN. The redo is copied up to there.
//! 6. Files and folder are synced, and the redo is read back and verified. Then the manifest `backup.json` is written,
//!    last. A folder without one is not a backup.
//!
//! Why it is complete: pages and redo are the state after a crash at the end LSN, if the checkpoint had stayed at the
//! start LSN and each page had been flushed last when it was copied. So recovery makes the database at the end LSN from
//! them, independent of the store, the change buffer, schema changes and growth. It needs each page that the redo
//! changes without formatting it. Such a page was in use at the start LSN or later, and was not discarded (2), so it
//! verified. A page that does not verify is left out if it is not in use and not in the pool. If it is in use, it is
//! damaged, and the backup is refused, or the manifest names the page if the caller requested that.
//!
//! Why an incremental backup is complete: a base with its redo applied has every page as of the base's end LSN, so only
//! pages with a later LSN differ. Page 0 is always copied, because it also changes without redo.
//!
//! Restoring (`restore`)
//! 1. The whole chain is verified before anything is written: manifests, their order, the checksum of every file, page
//!    and group of redo.
//! 2. The database is made in the folder `restoring` inside the empty target. For each backup: its pages are written,
//!    the log is rebuilt with its redo, and recovery brings every page to its end LSN. Transactions are rolled back
//!    only at the end, by a plain opening (`db`).
//! 3. It gets a new database id, because its history differs from that of its source: backups of the two never form a
//!    chain.
//! 4. The files are synced and then moved up, `data` last. Before that the target is not treated as a database.
//! 5. The target is locked until the end. `restoring` has a marker, created first and removed last: a folder that is
//!    not empty and lacks the marker belongs to the user, and is not changed.
//!
//! | file | what |
//! |---|---|
//! | `manifest` | `backup.json` |
//! | `files` | files that are summed while they are written and read; folders |
//! | `pages` | pages out of a store that is in use |
//! | `take` | taking a backup |
//! | `archive` | the archive of redo |
//! | `maps` | the number of pages in a chain |
//! | `chain` | backups that belong together, verified |
//! | `until` | the moment to which redo is replayed |
//! | `plan` | the backups and the redo for that |
//! | `restore` | making a database of them |

pub(crate) mod archive;
mod chain;
mod files;
mod manifest;
mod maps;
mod pages;
mod plan;
pub(crate) mod restore;
pub(crate) mod take;
mod until;

pub use files::FileSum;
pub use manifest::{BackupManifest, Base};
pub use until::{Commit, Until};

use std::ops::ControlFlow;
use std::path::PathBuf;

/// Options of [`Database::backup`](crate::Database::backup).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupOptions {
    /// A backup of the same database: only the pages that changed since are copied. `None` for a full backup.
    pub base: Option<PathBuf>,
    /// Bytes of pages that are read in a second at most, so that users of the database are not slowed; 0 = no limit.
    /// The default is 32 MiB.
    pub max_bytes_per_s: u64,
    /// Leave damaged pages out and name them in the manifest; of a full backup only. Without it a damaged page ends the
    /// backup.
    pub skip_damaged: bool,
}

impl Default for BackupOptions {
    fn default() -> BackupOptions {
        BackupOptions { base: None, max_bytes_per_s: 32 << 20, skip_damaged: false }
    }
}

/// Options of [`Database::restore`](crate::Database::restore).
#[derive(Clone, Debug, Default)]
pub struct RestoreOptions {
    /// Options of the restored database; options that are fixed at the creation are the backup's.
    pub database: crate::config::Options,
    /// The archive of the database's redo ([`Options::redo_archive`](crate::Options::redo_archive)), to continue after
    /// the last backup.
    pub redo: Option<PathBuf>,
    /// Restore the database as it was at this moment. Backups of later moments are left out. `None`: the end of all
    /// redo.
    pub until: Option<Until>,
    /// Check the whole database before it takes its place.
    pub check: bool,
}

/// The result of a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreReport {
    /// The LSN up to which the database was restored.
    pub end_lsn: u64,
    /// Number of backups of the chain that were used.
    pub backups: usize,
    /// The last commit in the redo after the last backup's pages, if the redo notes commits: it does while it is
    /// archived.
    pub last_commit: Option<Commit>,
    /// The archive ends before the requested time, and everything in it was restored. What was committed between the
    /// last commit and that time, if anything was, is not in the archive.
    pub ends_before_until: bool,
    /// The transactions that are prepared in it, by name: each waits for its coordinator, with its rows locked
    /// ([`Database::finish_prepared`](crate::Database::finish_prepared)). Empty in the report of a verification, which
    /// makes nothing.
    pub prepared: Vec<crate::Xid>,
}

/// The progress of a backup or restore: its present phase and the completed part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupProgress {
    /// In a word or two.
    pub step: &'static str,
    /// Pages done.
    pub pages: u64,
    /// Of how many.
    pub total: u64,
}

/// Is called with the progress, now and then; breaking ends the work with an error.
pub type OnBackupProgress<'a> = dyn FnMut(BackupProgress) -> ControlFlow<()> + 'a;

/// The error of work that the progress callback ended.
fn interrupted() -> crate::error::Error {
    crate::error::Error::Usage("interrupted".into())
}
