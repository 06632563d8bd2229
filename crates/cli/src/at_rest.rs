//! The files of a database that no process has open for writing: for commands that read them without opening it.
//!
//! Rules
//! 1. The folders are locked while the files are read, because the files of an open database look damaged or lack
//!    commits: they change during the read, and the newest changes are only in the redo log and in memory.
//! 2. Files of an encrypted database are read through its keys.
//! 3. Only an error that says that the contents of the files are wrong counts as damage. Other errors (in use, no
//!    permission, no memory) are not damage.

use crate::failure::Failure;
use highwater::{EncryptionKey, Error};
use highwater_storage::{
    DataKeys, Device, FileDevice, FolderLock, OpenError, SetFile, StorageError, lock_shared, redo_path, unlock,
};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Locked folders.
#[derive(Debug)]
pub(crate) struct AtRest {
    dir: PathBuf,
    redo: PathBuf,
    keys: Option<Arc<DataKeys>>,
    _locks: Vec<FolderLock>,
}

impl AtRest {
    /// Locks the folder `dir`, which has a data file, and that of its redo, if it is another one. `key` opens an
    /// encrypted database.
    ///
    /// # Errors
    /// [`Failure::Usage`] if there is no database, it is in use or may not be read, or the key does not fit.
    pub(crate) fn lock(dir: &Path, log_dir: Option<&Path>, key: Option<&EncryptionKey>) -> Result<AtRest, Failure> {
        let refuse = |error: OpenError| match error {
            in_use @ OpenError::InUse { .. } => Error::Open(in_use).into(),
            error => Failure::Usage(error.to_string()),
        };
        let own = lock_shared(dir).map_err(refuse)?;
        let data = dir.join("data");
        match std::fs::metadata(&data) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let what = "there is no file named data";
                return Err(Failure::Usage(format!("there is no database in {}: {what}", dir.display())));
            }
            Err(error) => return Err(Failure::Usage(format!("{}: {error}", data.display()))),
        }
        // A block device has no lock; its database's folder has.
        let of_log = log_dir.filter(|log_dir| log_dir.is_dir() && !highwater_storage::is_within(log_dir, dir));
        let log = of_log.map(|log_dir| lock_shared(log_dir).map_err(refuse)).transpose()?;
        let keys = unlock(dir, key).map_err(refuse)?.map(Arc::new);
        let redo = redo_path(log_dir.unwrap_or(dir));
        Ok(AtRest { dir: dir.to_path_buf(), redo, keys, _locks: std::iter::once(own).chain(log).collect() })
    }

    /// The folder of the database.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The file of its redo.
    pub(crate) fn redo(&self) -> &Path {
        &self.redo
    }

    /// The keys of an encrypted database.
    pub(crate) fn keys(&self) -> Option<&Arc<DataKeys>> {
        self.keys.as_ref()
    }

    /// Opens `data` or `redo` to read it.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn open(&self, file: SetFile) -> Result<Arc<dyn Device>, StorageError> {
        let path = if file == SetFile::Redo { self.redo.clone() } else { self.dir.join(file.name()) };
        let device: Arc<dyn Device> = Arc::new(FileDevice::open_read_only(&path)?);
        Ok(self.keys.as_ref().map_or(device.clone(), |keys| keys.wrap(file, device)))
    }
}

/// Whether the error says that the files are damaged or incomplete (rule 3).
pub(crate) fn is_damage(error: &Error) -> bool {
    match error {
        Error::Open(OpenError::Incomplete { .. })
        | Error::Corrupt(_)
        | Error::CorruptPage { .. }
        | Error::Incompatible(_)
        | Error::Poisoned(_) => true,
        Error::Storage(error) | Error::Open(OpenError::Storage(error)) => {
            error.is_failed_read() && error.source.kind() != ErrorKind::PermissionDenied
        }
        _ => false,
    }
}
