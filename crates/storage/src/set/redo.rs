//! The path of the redo, a file in its folder or a block device, and the removal of database files that may be block
//! devices.

use crate::error::UNUSED_ZEROS_BYTES;
use crate::os::folder::{self, failed};
use crate::os::sys;
use crate::{Device, FileDevice, FileRole, FlushMethod, OpenError, Placement, StorageError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

pub(super) fn is_block_device(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| sys::is_block_device(&metadata))
}

/// The path of the redo: a file in the folder `log_dir`, or `log_dir` itself if it is a block device.
pub fn redo_path(log_dir: &Path) -> PathBuf {
    if is_block_device(log_dir) { log_dir.to_path_buf() } else { log_dir.join("redo") }
}

/// Removes the redo file in the folder `log_dir`; a block device of that name is marked as unused by zeros.
///
/// # Errors
/// The operating system's, except that there is no such file.
pub fn forget_redo(log_dir: &Path) -> Result<(), StorageError> {
    forget(&redo_path(log_dir), FileRole::Redo)
}

/// Removes the data file in the folder `dir`; a block device in its place gets the zeros of an unused device, and stays
/// in its place.
///
/// # Errors
/// The operating system's, except that there is no such file.
pub fn forget_data(dir: &Path) -> Result<(), StorageError> {
    forget(&dir.join("data"), FileRole::Data)
}

fn forget(path: &Path, role: FileRole) -> Result<(), StorageError> {
    if is_block_device(path) {
        let device = FileDevice::open(path, role, FlushMethod::Fsync, false)?;
        device.write_at(0, &[0; UNUSED_ZEROS_BYTES], Placement::Other)?;
        return device.sync();
    }
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed("remove", path, error)),
        _ => Ok(()),
    }
}

pub(super) fn create_log_dir(log_dir: &Path) -> Result<(), OpenError> {
    if is_block_device(log_dir) { Ok(()) } else { folder::create(log_dir) }
}

pub(super) fn sync_log_dir(log_dir: &Path) -> Result<(), OpenError> {
    if is_block_device(log_dir) { Ok(()) } else { folder::sync(log_dir) }
}
