//! Windows: reads and writes at an offset, kinds and identities of files, locks of folders.
//!
//! Rules
//! 1. Windows cannot lock a folder. A file `lock` in it represents it, opened so that no other process may open it, or
//!    only for reading. The system removes the file of an exclusive lock when its handle is closed, also when the
//!    process ends.
//! 2. Permissions are in access lists, which are not read: the permissions of other users are unknown.
//! 3. A folder's identity is its path without links.

use super::OpenFlags;
use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::hash::{BuildHasher, Hasher};
use std::io::{Error, ErrorKind, Result};
use std::os::windows::fs::{FileExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

/// Others may read the file meanwhile (`FILE_SHARE_READ`).
const SHARE_READ: u32 = 0x1;
/// The system removes the file when its last handle is closed (`FILE_FLAG_DELETE_ON_CLOSE`).
const DELETE_ON_CLOSE: u32 = 0x0400_0000;
/// Folders can be opened (`FILE_FLAG_BACKUP_SEMANTICS`).
const ALLOW_FOLDERS: u32 = 0x0200_0000;
/// `ERROR_FILE_NOT_FOUND`.
const NOT_FOUND: i32 = 2;
/// `ERROR_SHARING_VIOLATION`: another handle has the file open.
const SHARING_VIOLATION: i32 = 32;
/// `ERROR_DELETE_PENDING`: the file is being removed.
const DELETE_PENDING: i32 = 303;

/// Name of the file that represents its folder.
pub(crate) const LOCK_NAME: Option<&str> = Some(LOCK);
const LOCK: &str = "lock";

/// Fills the buffer from the offset.
///
/// # Errors
/// The system's; the file ends before.
pub(crate) fn read_exact_at(file: &File, mut buf: &mut [u8], mut offset: u64) -> Result<()> {
    while !buf.is_empty() {
        match file.seek_read(buf, offset) {
            Ok(0) => return Err(Error::from(ErrorKind::UnexpectedEof)),
            Ok(bytes) => (buf, offset) = (&mut buf[bytes..], offset + bytes as u64),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes all bytes at the offset.
///
/// # Errors
/// The system's.
pub(crate) fn write_all_at(file: &File, mut data: &[u8], mut offset: u64) -> Result<()> {
    while !data.is_empty() {
        match file.seek_write(data, offset) {
            Ok(0) => return Err(Error::from(ErrorKind::WriteZero)),
            Ok(bytes) => (data, offset) = (&data[bytes..], offset + bytes as u64),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// No device is opened as a file here.
pub(crate) fn is_block_device(_: &Metadata) -> bool {
    false
}

/// No pipe has a path among files.
pub(crate) fn is_pipe(_: &Metadata) -> bool {
    false
}

/// Not known (rule 2).
pub(crate) fn permissions_of_others(_: &Metadata) -> Option<String> {
    None
}

/// A new file has the owner that its folder gives it.
pub(crate) fn take_owner(_: &File, _of: &Metadata) {}

/// The drive or share with which the file's path begins.
pub(crate) fn device_name(path: &Path, _: &Metadata) -> Option<String> {
    match path.canonicalize().ok()?.components().next()? {
        Component::Prefix(prefix) => Some(format!("device {}", prefix.as_os_str().to_string_lossy())),
        _ => None,
    }
}

/// The identity of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FolderId(PathBuf);

/// The identity of the folder at a path.
///
/// # Errors
/// The system's.
pub(crate) fn folder_id(path: &Path, _: &Metadata) -> Result<FolderId> {
    path.canonicalize().map(FolderId)
}

/// Opens a folder.
///
/// # Errors
/// The system's.
pub(crate) fn open_folder(path: &Path) -> Result<File> {
    OpenOptions::new().read(true).custom_flags(ALLOW_FOLDERS).open(path)
}

/// The file system logs the entries of folders in order: there is nothing to call.
pub(crate) fn sync_folder(_: &File) -> Result<()> {
    Ok(())
}

/// The lock of a folder (rule 1).
#[derive(Debug)]
pub(crate) struct LockedFolder(#[expect(dead_code, reason = "it is the lock while it is open")] File);

/// Locks a folder, for this handle alone or together with others that are not.
///
/// # Errors
/// It is locked; the system's.
pub(crate) fn lock_folder(_: File, path: &Path, is_alone: bool) -> std::result::Result<LockedFolder, TryLockError> {
    let mut options = OpenOptions::new();
    options.read(true).write(is_alone).create(true).truncate(false);
    if is_alone {
        options.share_mode(0).custom_flags(DELETE_ON_CLOSE);
    } else {
        make_lock_file(path).map_err(TryLockError::Error)?;
        options.create(false).share_mode(SHARE_READ);
    }
    match options.open(path.join(LOCK)) {
        Ok(file) => Ok(LockedFolder(file)),
        // The last is the answer if it was removed since: by who had locked the folder until then.
        Err(error) if matches!(error.raw_os_error(), Some(SHARING_VIOLATION | DELETE_PENDING | NOT_FOUND)) => {
            Err(TryLockError::WouldBlock)
        }
        Err(error) => Err(TryLockError::Error(error)),
    }
}

/// Creates the lock file, unless it exists or another handle has it open.
fn make_lock_file(folder: &Path) -> Result<()> {
    match OpenOptions::new().write(true).create(true).truncate(false).open(folder.join(LOCK)) {
        Err(error) if !matches!(error.raw_os_error(), Some(SHARING_VIOLATION | DELETE_PENDING)) => Err(error),
        _ => Ok(()),
    }
}

impl LockedFolder {
    /// The handle's end unlocks the folder.
    pub(crate) fn unlock(&self) {}
}

/// Creates a file that the system removes when it is closed. Until then it has a name that nothing else has.
///
/// # Errors
/// The system's.
pub(crate) fn create_unnamed(folder: &Path, _: OpenFlags) -> Result<File> {
    loop {
        // The standard library seeds this from the operating system's randomness.
        let random = std::hash::RandomState::new().build_hasher().finish();
        let path = folder.join(format!("temporary-{random:016x}"));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).share_mode(0).custom_flags(DELETE_ON_CLOSE);
        match options.open(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => return made,
        }
    }
}

/// No process is forked.
pub(crate) fn call_after_fork(_: extern "C" fn()) {}
