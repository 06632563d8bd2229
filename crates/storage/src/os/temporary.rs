//! Temporary files: they have no name and exist only while they are open, so a crash leaves none.
//!
//! Rules
//! 1. No existing file in the folder is followed, opened or changed.
//! 2. Where the file system cannot create a file without a name (`O_TMPFILE`), the file has the name `temporary` for a
//!    moment. A crash in that moment leaves an empty file, which the next temporary file replaces. Anything else of
//!    that name is an error. (On Windows it has another name as long as it is open; a power cut leaves it.)

use super::file::{FileDevice, or_buffered};
use super::folder::failed;
use super::method::{FileRole, FlushMethod, Mode};
use super::sys;
use crate::Result;
use parking_lot::Mutex;
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind};
use std::path::Path;

/// Name of a temporary file until it is removed.
const TEMPORARY: &str = "temporary";

impl FileDevice {
    /// Creates a temporary file in `folder`, which the caller has locked.
    ///
    /// # Errors
    /// The operating system's answer, with the path.
    pub fn temporary(folder: &Path, method: FlushMethod) -> Result<FileDevice> {
        // Never synced, so it is no matter how its syncs are saved.
        let method = if method == FlushMethod::DirectNoFsync { FlushMethod::Direct } else { method };
        let path = folder.join(TEMPORARY);
        let (file, mode) = or_buffered(Mode::of(FileRole::Temporary, method), |mode| create(folder, &path, mode));
        let file = file.map_err(|source| failed("create", &path, source))?;
        sys::hint_lifetime(&file, FileRole::Temporary.lifetime());
        Ok(FileDevice::of(file, &path, mode))
    }
}

fn create(folder: &Path, path: &Path, mode: Mode) -> std::io::Result<File> {
    match sys::create_unnamed(folder, mode.open_flags()) {
        Err(error) if sys::is_unsupported(&error) => create_named(path, mode),
        created => created,
    }
}

fn create_named(path: &Path, mode: Mode) -> std::io::Result<File> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _name = ONE_AT_A_TIME.lock();
    remove_leftover(path)?;
    let mut options = OpenOptions::new();
    let file = sys::with_flags(options.read(true).write(true).create_new(true), mode.open_flags()).open(path)?;
    std::fs::remove_file(path)?;
    Ok(file)
}

fn remove_leftover(path: &Path) -> std::io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_file() && found.len() == 0 => std::fs::remove_file(path),
        Ok(_) => Err(Error::new(ErrorKind::AlreadyExists, "something else has this name: move it to another folder")),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
#[path = "temporary_test.rs"]
mod tests;
