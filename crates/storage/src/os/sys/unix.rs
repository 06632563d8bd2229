//! System calls of every Unix: reads and writes at an offset, kinds and identities of files, locks of folders, forks.

use std::fs::{File, Metadata, TryLockError};
use std::io::Result;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, fchown};
use std::path::Path;

/// Fills the buffer from the offset.
///
/// # Errors
/// The system's; the file ends before.
pub(crate) fn read_exact_at(file: &File, buf: &mut [u8], offset: u64) -> Result<()> {
    file.read_exact_at(buf, offset)
}

/// Writes all bytes at the offset.
///
/// # Errors
/// The system's.
pub(crate) fn write_all_at(file: &File, data: &[u8], offset: u64) -> Result<()> {
    file.write_all_at(data, offset)
}

/// Whether this is a block device.
pub(crate) fn is_block_device(found: &Metadata) -> bool {
    found.file_type().is_block_device()
}

/// Whether this is a named pipe.
pub(crate) fn is_pipe(found: &Metadata) -> bool {
    found.file_type().is_fifo()
}

/// The permissions of others than the owner, in words with what to do, if there are any.
pub(crate) fn permissions_of_others(found: &Metadata) -> Option<String> {
    let mode = found.mode() & 0o777;
    (mode & 0o077 != 0).then(|| format!("others than its owner may use it (permissions {mode:03o}): chmod 600"))
}

/// Gives a file to the owner and the group of another, as far as this process may.
pub(crate) fn take_owner(file: &File, of: &Metadata) {
    // Only the superuser can give a file away; for others it stays their own.
    let _ = fchown(file, Some(of.uid()), Some(of.gid()));
}

/// The device numbers of the file's file system, or of the block device itself.
pub(crate) fn device_name(_path: &Path, found: &Metadata) -> Option<String> {
    let number = if is_block_device(found) { found.rdev() } else { found.dev() };
    #[cfg(target_os = "linux")]
    return Some(format!("device {}:{}", libc::major(number), libc::minor(number)));
    #[cfg(not(target_os = "linux"))]
    return Some(format!("device {number}"));
}

/// The identity of a folder, the same for all its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FolderId(u64, u64);

/// The identity of the folder at a path.
///
/// # Errors
/// The system's.
pub(crate) fn folder_id(_path: &Path, found: &Metadata) -> Result<FolderId> {
    Ok(FolderId(found.dev(), found.ino()))
}

/// Opens a folder.
///
/// # Errors
/// The system's.
pub(crate) fn open_folder(path: &Path) -> Result<File> {
    File::open(path)
}

/// Makes the entries of a folder durable.
///
/// # Errors
/// The system's.
pub(crate) fn sync_folder(folder: &File) -> Result<()> {
    folder.sync_all()
}

/// Name of the lock file in a folder: none, because the folder itself is locked.
pub(crate) const LOCK_NAME: Option<&str> = None;

/// The lock of a folder: the kernel's, on the folder itself (`flock`).
#[derive(Debug)]
pub(crate) struct LockedFolder(File);

/// Locks an open folder, for this handle alone or together with others that are not.
///
/// # Errors
/// It is locked; the system's.
pub(crate) fn lock_folder(
    folder: File,
    _path: &Path,
    is_alone: bool,
) -> std::result::Result<LockedFolder, TryLockError> {
    if is_alone {
        folder.try_lock()?
    } else {
        folder.try_lock_shared()?
    }
    Ok(LockedFolder(folder))
}

impl LockedFolder {
    /// Unlocks the folder, also if another process has a copy of the descriptor.
    pub(crate) fn unlock(&self) {
        let _ = self.0.unlock();
    }
}

unsafe extern "C" {
    /// POSIX; the crate `libc` declares it for Linux only.
    fn pthread_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> std::ffi::c_int;
}

/// Registers `call` to be called in each forked child process. It may only do what a signal handler may do.
#[cfg_attr(miri, expect(unused_variables, reason = "Miri forks nothing"))]
pub(crate) fn call_after_fork(call: extern "C" fn()) {
    // SAFETY: the handler is a function of this program, which is never unloaded. The call fails only if there is no
    // memory for a few bytes, at a time when nothing was opened yet.
    #[cfg(not(miri))]
    let _ = unsafe { pthread_atfork(None, None, Some(call)) };
}
