//! Folders: exclusive locks and durable entries.
//!
//! Rules
//! 1. The lock is the kernel's (`flock` on the folder itself, on Windows a file in it that is open): it vanishes with
//!    the process, and needs no cleaning up after a crash.
//! 2. A handle that only reads shares the lock with others that only read.
//! 3. A creation or removal of a file is durable only after a [`sync`] of its folder.
//! 4. Two names are of one folder if device and inode are the same (on Windows: the path without links): links, mounts
//!    and `..` give it many names.

use super::holder;
use super::sys::{self, FolderId, LockedFolder};
use crate::Owner;
use crate::error::{OpenError, StorageError};
use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// The mode of a folder's lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Exclusive: one handle.
    Write,
    /// Shared: any number of handles that only read.
    Read,
}

/// A locked folder; unlocked on drop.
#[derive(Debug)]
pub struct FolderLock {
    locked: LockedFolder,
    id: FolderId,
    owner: Owner,
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        // A program started meanwhile may hold a copy of the descriptor for a moment, a forked process for long:
        // closing ours would not unlock the folder yet. In the forked process itself the lock is the parent's.
        if self.owner.is_this_process() {
            self.locked.unlock();
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

/// Locks `folder` together with others that only read it, as a [`StorageSet`](crate::StorageSet) that is read
/// only does.
///
/// # Errors
/// As [`lock_alone`].
pub fn lock_shared(folder: &Path) -> Result<FolderLock, OpenError> {
    lock(folder, Access::Read)
}

/// Locks `folder` for this handle alone, or together with other readers.
pub(crate) fn lock(folder: &Path, access: Access) -> Result<FolderLock, OpenError> {
    let handle = open(folder)?;
    let found = handle.metadata().map_err(|source| failed("look at", folder, source))?;
    let id = sys::folder_id(folder, &found).map_err(|source| failed("look at", folder, source))?;
    match sys::lock_folder(handle, folder, access == Access::Write) {
        Ok(locked) => Ok(FolderLock { locked, id, owner: Owner::this_process() }),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse { path: folder.to_path_buf(), by: holder::of(&found) }),
        Err(TryLockError::Error(source)) => Err(failed("lock", folder, source).into()),
    }
}

/// Whether a file of this name in a folder is the folder's lock, or is left from one.
pub fn is_lock_file(name: &str) -> bool {
    sys::LOCK_NAME == Some(name)
}

impl FolderLock {
    /// Whether `path`, which need not exist, is this folder or is in it.
    pub(crate) fn encloses(&self, path: &Path) -> bool {
        is_below(path, &self.id)
    }
}

/// Whether `path`, which need not exist, is the folder or is in it, by whatever names.
pub fn is_within(path: &Path, folder: &Path) -> bool {
    match identified(folder) {
        Ok(folder) => is_below(path, &folder),
        Err(_) => real_path(path).starts_with(real_path(folder)),
    }
}

fn identified(folder: &Path) -> std::io::Result<FolderId> {
    std::fs::metadata(folder).and_then(|found| sys::folder_id(folder, &found))
}

fn is_below(path: &Path, folder: &FolderId) -> bool {
    real_path(path).ancestors().any(|part| identified(part).is_ok_and(|found| found == *folder))
}

/// The absolute path without links, as far as it exists, and without `..`: the rest of it may have to be made.
pub fn real_path(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let real = path.ancestors().find_map(|part| Some((part.canonicalize().ok()?, path.strip_prefix(part).ok()?)));
    let Some((mut real, rest)) = real else { return path };
    for part in rest.components() {
        match part {
            Component::ParentDir => drop(real.pop()),
            part => real.push(part),
        }
    }
    real
}

/// Makes the folder's entries durable. On Windows the file system does this without a call.
///
/// # Errors
/// It is not there, no folder, or the operating system's error.
pub fn sync(folder: &Path) -> Result<(), OpenError> {
    sys::sync_folder(&open(folder)?).map_err(|source| failed("sync", folder, source).into())
}

/// Creates the folder if it does not exist, and makes its entry in the parent durable.
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
    let handle = sys::open_folder(folder).map_err(|source| match source.kind() {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_known_by_every_name() {
        let root = tempfile::tempdir().unwrap();
        let [db, other, link] = ["db", "other", "link"].map(|name| root.path().join(name));
        std::fs::create_dir_all(db.join("sub")).unwrap();
        std::fs::create_dir(&other).unwrap();
        std::os::unix::fs::symlink(&db, &link).unwrap();
        let locked = lock_alone(&db).unwrap();
        for (path, is_within_db) in [
            (db.clone(), true),
            (link.join("new/newer"), true),
            (other.join("../db/new"), true),
            (other.join("new/../../db"), true),
            (other.clone(), false),
            (root.path().to_path_buf(), false),
            (root.path().join("db-2"), false),
        ] {
            assert_eq!(is_within(&path, &db), is_within_db, "{path:?}");
            assert_eq!(locked.encloses(&path), is_within_db, "{path:?}");
        }
        // By its own identity, whatever its name is by now.
        std::fs::rename(&db, root.path().join("renamed")).unwrap();
        assert!(locked.encloses(&root.path().join("renamed/new")) && !locked.encloses(&db));
    }
}
