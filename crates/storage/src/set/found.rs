//! The state of a database's folder before its files are opened.

use super::redo::is_block_device;
use crate::OpenError;
use crate::error::UNUSED_ZEROS_BYTES;
use crate::os::folder::failed;
use crate::os::sys;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// The state of a database's folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// No file, or empty ones only.
    Nothing,
    /// All three files, and something in them.
    Files,
}

pub(super) fn look(paths: &[PathBuf; 3]) -> Result<Found, OpenError> {
    let mut missing = None;
    let mut with_contents = None;
    for path in paths {
        match contents_of(path)? {
            None => drop(missing.get_or_insert(path)),
            Some(0) => {}
            Some(_) => drop(with_contents.get_or_insert(path)),
        }
    }
    match (missing, with_contents) {
        (_, None) => Ok(Found::Nothing),
        (None, Some(_)) => Ok(Found::Files),
        (Some(_), Some(present)) if is_block_device(present) => Err(OpenError::NotEmpty(present.clone())),
        (Some(missing), Some(present)) => {
            Err(OpenError::Incomplete { missing: missing.clone(), present: present.clone() })
        }
    }
}

/// Length of the file, `None` if there is none. A block device without contents counts as 0 bytes long.
fn contents_of(path: &Path) -> Result<Option<u64>, OpenError> {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(Some(metadata.len())),
        Ok(metadata) if sys::is_block_device(&metadata) => {
            begins_with_zeros(path).map(|zeros| Some(if zeros { 0 } else { u64::MAX }))
        }
        Ok(_) => Ok(Some(u64::MAX)),
        // To make a file through a link that leads nowhere would make it where the device should be.
        Err(source) if std::fs::symlink_metadata(path).is_ok() => Err(failed("follow the link", path, source).into()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(failed("look at", path, source).into()),
    }
}

fn begins_with_zeros(path: &Path) -> Result<bool, OpenError> {
    let mut bytes = Vec::with_capacity(UNUSED_ZEROS_BYTES);
    let read = File::open(path).and_then(|file| file.take(UNUSED_ZEROS_BYTES as u64).read_to_end(&mut bytes));
    read.map_err(|source| failed("look at", path, source))?;
    Ok(bytes.iter().all(|byte| *byte == 0))
}
