//! Files that users name: exports, results, reports, traces. Every command that writes one writes it
//! through here.
//!
//! Rules
//! 1. A regular file is replaced whole or not at all: it is written under an unpredictable name in the same folder,
//!    which no other file has, synced, given the permissions of the file it replaces, and renamed; then the folder is
//!    synced. Until [`OutputFile::finish`] the file under the requested name does not change, and a drop before that
//!    leaves no file.
//! 2. A device, a pipe, a terminal, and a file that is named by an open descriptor (`/dev/stdout`, `/proc/self/fd/N`),
//!    is written in place. A folder is refused.
//! 3. A symbolic link is followed: its target is replaced.
//! 4. A file of a database is refused under any path: it is recognized by its magic number ([`mark`]), or by its name
//!    in the folder of such a file.
//! 5. A [`stream`](OutputFile::stream) can be read while it is written: it is written in place, with the same refusals.

use crate::mark;
use crate::os::{folder, sys};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::path::{Path, PathBuf};

/// Maximum number of consecutive links that are followed, as in the kernel.
const MAX_LINKS: usize = 40;
/// Names of a database's files.
const NAMES: [&str; 4] = ["data", "redo", "doublewrite", "keys"];

/// An output file being written.
#[derive(Debug)]
pub struct OutputFile {
    file: File,
    replaces: Option<Replaces>,
}

/// A complete replacement of a regular file, before the rename.
#[derive(Debug)]
struct Replaces {
    temporary: PathBuf,
    target: PathBuf,
}

/// The target of an output.
enum Place {
    /// A target that is written in place.
    InPlace,
    /// A regular file at the end of all links, or none yet; with what is known of it if there is one.
    Regular(PathBuf, Option<Metadata>),
}

impl OutputFile {
    /// Begins an output.
    ///
    /// # Errors
    /// What rules 2 and 4 refuse; the operating system's. The message does not name the file.
    pub fn create(path: &Path) -> Result<OutputFile> {
        match find(path)? {
            Place::InPlace => Ok(OutputFile { file: open_in_place(path)?, replaces: None }),
            Place::Regular(target, before) => {
                if before.is_some() {
                    // A user who may not write it may not replace it either.
                    OpenOptions::new().write(true).open(&target)?;
                }
                let (temporary, file) = make_temporary_next_to(&target)?;
                let made = OutputFile { file, replaces: Some(Replaces { temporary, target }) };
                if let Some(before) = before {
                    sys::take_owner(&made.file, &before);
                    made.file.set_permissions(before.permissions())?;
                }
                Ok(made)
            }
        }
    }

    /// Begins an output that is read while it is written: a regular file is emptied and filled in place.
    ///
    /// # Errors
    /// As [`create`](OutputFile::create).
    pub fn stream(path: &Path) -> Result<OutputFile> {
        let file = match find(path)? {
            Place::InPlace => open_in_place(path)?,
            Place::Regular(target, _) => File::create(target)?,
        };
        Ok(OutputFile { file, replaces: None })
    }

    /// Checks whether an output could be created, without changing anything. A pipe is not opened, because its reader
    /// would see its end.
    ///
    /// # Errors
    /// As [`create`](OutputFile::create).
    pub fn check(path: &Path) -> Result<()> {
        if std::fs::metadata(path).is_ok_and(|found| sys::is_pipe(&found)) {
            return Ok(());
        }
        OutputFile::create(path).map(drop)
    }

    /// Writes a whole file.
    ///
    /// # Errors
    /// As [`create`](OutputFile::create) and [`finish`](OutputFile::finish).
    pub fn write(path: &Path, contents: &[u8]) -> Result<()> {
        let mut file = OutputFile::create(path)?;
        file.write_all(contents)?;
        file.finish()
    }

    /// Ends the output: a regular file replaces the old file, durably.
    ///
    /// # Errors
    /// The operating system's: the old file is unchanged.
    pub fn finish(mut self) -> Result<()> {
        self.file.flush()?;
        let Some(Replaces { temporary, target }) = &self.replaces else { return Ok(()) };
        self.file.sync_all()?;
        std::fs::rename(temporary, target)?;
        let synced = folder::sync(folder_of(target)).map_err(Error::other);
        self.replaces = None;
        synced
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        self.file.flush()
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if let Some(Replaces { temporary, .. }) = &self.replaces {
            // No caller is left to get the error.
            let _ = std::fs::remove_file(temporary);
        }
    }
}

/// The target of an output to `path`, unless it is refused.
fn find(path: &Path) -> Result<Place> {
    if path.as_os_str().as_encoded_bytes().ends_with(b"/") || path.is_dir() {
        return Err(Error::new(ErrorKind::IsADirectory, "is a folder"));
    }
    let (target, by_descriptor) = follow(path)?;
    let found = match std::fs::metadata(if by_descriptor { path } else { &target }) {
        Ok(found) => Some(found),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let place = match &found {
        Some(found) if by_descriptor || !found.is_file() => Place::InPlace,
        Some(found) => Place::Regular(target.clone(), Some(found.clone())),
        None => Place::Regular(target.clone(), None),
    };
    let holds_bytes = found.is_some_and(|found| found.is_file() || sys::is_block_device(&found));
    let owned = (holds_bytes && is_marked(path)) || is_next_to_a_marked(&target);
    if owned {
        Err(Error::new(ErrorKind::InvalidInput, "is a file of a database and is not overwritten"))
    } else {
        Ok(place)
    }
}

/// The end of the symbolic links, and whether one of them is a process's descriptor.
fn follow(path: &Path) -> Result<(PathBuf, bool)> {
    let (mut at, mut by_descriptor) = (path.to_path_buf(), false);
    for _ in 0..MAX_LINKS {
        let Ok(to) = std::fs::read_link(&at) else { return Ok((at, by_descriptor)) };
        by_descriptor |= folder_of(&at).canonicalize().is_ok_and(|folder| folder.starts_with("/proc"));
        at = folder_of(&at).join(to);
    }
    Err(Error::other("too many symbolic links"))
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Whether a file begins like a database's file. A file that cannot be read is not recognized.
fn is_marked(path: &Path) -> bool {
    let mut start = [0; mark::LENGTH];
    File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && mark::is_of_a_database(&start)
}

/// Whether a file has the name of a database's file, and its folder has a file of a database.
fn is_next_to_a_marked(path: &Path) -> bool {
    let named = path.file_name().is_some_and(|name| NAMES.iter().any(|one| name == *one));
    let is_regular = |path: &Path| path.metadata().is_ok_and(|found| found.is_file());
    named && NAMES.iter().map(|name| folder_of(path).join(name)).any(|other| is_regular(&other) && is_marked(&other))
}

/// Opens an output of rule 2; a file that is named by an open descriptor is appended to.
fn open_in_place(path: &Path) -> Result<File> {
    let is_file = std::fs::metadata(path)?.is_file();
    OpenOptions::new().write(true).append(is_file).open(path)
}

/// Makes a file of an unpredictable name in the folder of `target`.
fn make_temporary_next_to(target: &Path) -> Result<(PathBuf, File)> {
    loop {
        let temporary = folder_of(target).join(format!(".highwater-{:016x}.part", random()));
        match OpenOptions::new().write(true).create_new(true).open(&temporary) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => return made.map(|file| (temporary, file)),
        }
    }
}

fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    // The standard library seeds this from the operating system's randomness.
    std::hash::RandomState::new().build_hasher().finish()
}

#[cfg(test)]
#[path = "output_test.rs"]
mod tests;
