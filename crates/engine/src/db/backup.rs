//! Backups of an open database, and databases made of backups.

use super::database::{Database, DatabaseInner};
use crate::backup::{self, BackupManifest, BackupOptions, OnBackupProgress, RestoreOptions, RestoreReport};
use crate::config::Options;
use crate::error::{Error, Result};
use highwater_storage::EncryptionKey;
use std::path::{Path, PathBuf};

impl Database {
    /// Takes a backup into `dest`, a new or empty folder, while transactions and schema changes continue. What was
    /// committed before the backup's end LSN is in it, nothing else. `tell` is called with the progress and may end it.
    ///
    /// That of an encrypted database is encrypted, and the key that opens the database at that time opens it.
    ///
    /// The thread that calls this copies the pages, a second one the redo. Meanwhile emptied space is not released to
    /// the device, and writers wait if `dest` takes their redo more slowly than they make it by a whole redo log.
    ///
    /// ```
    /// use highwater::{BackupOptions, Database, Options, RestoreOptions};
    /// use std::ops::ControlFlow::Continue;
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let (folder, monday, copy) = (dir.path().join("shop"), dir.path().join("monday"), dir.path().join("copy"));
    /// let db = Database::open(&folder, Options::default())?;
    /// let full = db.backup(&monday, &BackupOptions::default(), &mut |_| Continue(()))?;
    /// # db.close()?;
    /// Database::restore(&[monday], &copy, &RestoreOptions::default(), &mut |_| Continue(()))?;
    /// Database::open(&copy, Options::default())?.close()?;
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Usage`] if `dest` is not empty or is in the database's folder, if another backup is running, if `tell`
    /// ended it, or if the database was opened to be read only and had to be recovered. [`Error::Incompatible`] for a
    /// base that is no backup of this database. [`Error::CorruptPage`] names a damaged page. [`Error::Open`] if the
    /// keys of an encrypted database are in no file. An I/O error, a full disk for example. There is nothing in `dest`
    /// then, and the database continues.
    pub fn backup(
        &self,
        dest: impl AsRef<Path>,
        options: &BackupOptions,
        tell: &mut OnBackupProgress<'_>,
    ) -> Result<BackupManifest> {
        self.check_open()?;
        if self.is_recovered_in_memory() {
            let what = "the database was not closed: open it for writing, which recovers it, to take a backup";
            return Err(Error::Usage(what.into()));
        }
        let DatabaseInner { ctx, space, storage, .. } = &*self.inner;
        let source = backup::take::Source { ctx, space, storage };
        backup::take::take(&source, dest.as_ref(), options, tell)
    }

    /// Whether this database was opened to be read only and had to be recovered in memory: its files are older. There
    /// is no backup of it then, since the LSNs of such a recovery are not those of a later recovery of the files.
    pub fn is_recovered_in_memory(&self) -> bool {
        let (stats, log) = (&self.inner.ctx.stats, &self.inner.ctx.log);
        let has_appended = stats.redo_bytes.get() > 0 || log.end_lsn() > log.written_lsn();
        self.inner.storage.is_read_only() && (stats.recovery_redo_bytes.get() > 0 || has_appended)
    }

    /// Makes a database in `dir`, a new or empty folder, of a full backup and the incremental ones that follow it, in
    /// order, and of the archived redo that follows, up to the moment that the options say. Everything is verified
    /// before anything is written. The database has a new id; it is closed. Files in `dir` that an interrupted restore
    /// left are removed. `tell` is called with the progress and may end the work.
    ///
    /// Encrypted backups and archives are opened by the key in `options.database`, which becomes the new database's. If
    /// the key was changed between them, it is enough that it opens one of their folders.
    ///
    /// # Errors
    /// [`Error::Usage`] if `dir` is not empty, or for a moment that cannot be reached; [`Error::Open`] if another
    /// restore makes a database there; [`Error::Incompatible`] for a folder that is not a complete backup, or backups
    /// that do not follow each other; [`Error::Corrupt`] for a damaged one, or a database that does not pass its check.
    /// An I/O error.
    pub fn restore(
        chain: &[PathBuf],
        dir: impl AsRef<Path>,
        options: &RestoreOptions,
        tell: &mut OnBackupProgress<'_>,
    ) -> Result<RestoreReport> {
        options.database.validate()?;
        let restored = backup::restore::restore(chain, dir.as_ref(), options, tell)?;
        let own = options.database.clone();
        let opened = Options { create_if_missing: false, log_dir: None, redo_archive: None, ..own };
        let db = Database::open(&restored.work, opened)?;
        if options.check {
            let report = db.check()?;
            if let Some(finding) = report.findings.first() {
                return Err(Error::Corrupt(format!("the restored database does not pass its check: {finding}")));
            }
        }
        let prepared = db.prepared().into_iter().map(|info| info.xid).collect();
        db.close()?;
        let report = RestoreReport { prepared, ..restored.report.clone() };
        restored.finish().map(|()| report)
    }

    /// Verifies backups, and the archive of redo `redo`, as [`restore`](Database::restore) does, and makes nothing;
    /// says up to where they reach. `key` opens encrypted ones.
    ///
    /// # Errors
    /// As [`restore`](Database::restore).
    pub fn verify_backup(
        chain: &[PathBuf],
        redo: Option<&Path>,
        key: Option<&EncryptionKey>,
        tell: &mut OnBackupProgress<'_>,
    ) -> Result<RestoreReport> {
        backup::restore::verify(chain, redo, key, tell)
    }

    /// The present end of the log: what was committed before this call is before it. [`Until::Lsn`] restores to it.
    ///
    /// [`Until::Lsn`]: crate::Until::Lsn
    pub fn lsn(&self) -> u64 {
        self.inner.ctx.log.end_lsn().0
    }

    /// The last problem of the redo archive since the opening: a failed write, or a gap. The database continues; the
    /// missing redo is archived later, unless the text reports a gap.
    pub fn archive_problem(&self) -> Option<String> {
        self.inner.archiving.as_ref().and_then(|archiving| archiving.problem())
    }
}
