//! Folders: exclusive locks and durable entries.
//!
//! Rules
//! 1. The lock is the kernel's (`flock` on the folder itself): it vanishes with the process, leaves no file behind and
//!    needs no cleaning up after a crash.
//! 2. A handle that only reads shares the lock with others that only read.
//! 3. A file made or removed is durable only after [`sync`] of its folder.

use crate::Owner;
use crate::error::{OpenError, StorageError};
use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::Path;

/// What a folder is locked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// One handle alone.
    Write,
    /// Any number of handles, none of which writes.
    Read,
}

/// A locked folder; unlocked on drop.
#[derive(Debug)]
pub struct FolderLock {
    folder: File,
    owner: Owner,
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        // A program started meanwhile may hold a copy of the descriptor for a moment, a forked process for long:
        // closing ours would not unlock the folder yet. In the forked process itself the lock is the parent's.
        if self.owner.is_this_process() {
            let _ = self.folder.unlock();
        }
    }
}

/// Locks `folder` for this handle alone, as an open [`StorageSet`](crate::StorageSet) does.
///
/// # Errors
/// [`OpenError::InUse`] if it is locked; it is not there, no folder, or cannot be locked.
pub fn lock_alone(folder: &Path) -> Result<FolderLock, OpenError> {
    lock(folder, Access::Write)
}

/// Locks `folder` for this handle alone, or together with other readers.
pub(crate) fn lock(folder: &Path, access: Access) -> Result<FolderLock, OpenError> {
    let handle = open(folder)?;
    let locked = match access {
        Access::Write => handle.try_lock(),
        Access::Read => handle.try_lock_shared(),
    };
    match locked {
        Ok(()) => Ok(FolderLock { folder: handle, owner: Owner::this_process() }),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse(folder.to_path_buf())),
        Err(TryLockError::Error(source)) => Err(failed("lock", folder, source).into()),
    }
}

/// Makes the folder's entries durable.
pub(crate) fn sync(folder: &Path) -> Result<(), OpenError> {
    open(folder)?.sync_all().map_err(|source| failed("sync", folder, source).into())
}

/// Makes the folder if it is not there, and the entry that names it durable.
pub(crate) fn create(folder: &Path) -> Result<(), OpenError> {
    if folder.is_dir() {
        return Ok(());
    }
    std::fs::create_dir_all(folder).map_err(|source| match source.kind() {
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => OpenError::NotAFolder(folder.to_path_buf()),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            OpenError::NotWritable { path: folder.to_path_buf(), source }
        }
        _ => failed("create", folder, source).into(),
    })?;
    match folder.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync(parent),
        _ => sync(Path::new(".")),
    }
}

fn open(folder: &Path) -> Result<File, OpenError> {
    let handle = File::open(folder).map_err(|source| match source.kind() {
        ErrorKind::NotFound => OpenError::NotFound(folder.to_path_buf()),
        ErrorKind::NotADirectory => OpenError::NotAFolder(folder.to_path_buf()),
        _ => failed("open", folder, source).into(),
    })?;
    let is_folder = handle.metadata().map_err(|source| failed("look at", folder, source))?.is_dir();
    if is_folder { Ok(handle) } else { Err(OpenError::NotAFolder(folder.to_path_buf())) }
}

/// A storage error about a whole file or folder.
pub(crate) fn failed(operation: &'static str, path: &Path, source: std::io::Error) -> StorageError {
    StorageError { operation, device: path.display().to_string(), offset: 0, len: 0, source }
}
