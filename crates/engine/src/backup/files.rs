//! Files of a backup: their length and checksum are taken while they are written, and compared while they are read.
//! They do not stay in the page cache, which others need ([`SequentialFile`]).

use super::manifest::FileSum;
use crate::error::{Error, Result};
use highwater_storage::{SequentialFile, StorageError, forget_cached};
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Bytes that are read at once.
const READ_BYTES: usize = 1 << 20;

/// An I/O error of a file or folder.
pub(super) fn failed(operation: &'static str, path: &Path, source: std::io::Error) -> Error {
    Error::Storage(StorageError { operation, device: path.display().to_string(), offset: 0, len: 0, source })
}

/// A file being written.
pub(super) struct NewFile {
    file: SequentialFile,
    path: PathBuf,
    name: &'static str,
    bytes: u64,
    crc: u32,
}

impl NewFile {
    /// Makes the file, which must not exist.
    pub fn create(dir: &Path, name: &'static str) -> Result<NewFile> {
        let path = dir.join(name);
        let file = SequentialFile::create(&path).map_err(|error| failed("create", &path, error))?;
        Ok(NewFile { file, path, name, bytes: 0, crc: 0 })
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write(bytes).map_err(|error| failed("write", &self.path, error))?;
        self.crc = crc32c::crc32c_append(self.crc, bytes);
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Makes the file durable (its folder's entry is not yet).
    pub fn finish(self) -> Result<FileSum> {
        self.file.finish().map_err(|error| failed("sync", &self.path, error))?;
        Ok(FileSum { name: self.name.into(), bytes: self.bytes, crc32c: format!("{:08x}", self.crc) })
    }
}

/// A file being read from its begin to its end.
pub(super) struct SummedFile {
    file: BufReader<File>,
    path: PathBuf,
    crc: u32,
    wanted: FileSum,
}

impl SummedFile {
    /// Opens the file, which has its length.
    pub fn open(dir: &Path, wanted: &FileSum) -> Result<SummedFile> {
        let path = dir.join(&wanted.name);
        let file = File::open(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => Error::Corrupt(format!("{} is missing", path.display())),
            _ => failed("open", &path, error),
        })?;
        let len = file.metadata().map_err(|error| failed("look at", &path, error))?.len();
        if len != wanted.bytes {
            let what = format!("{} has {len} bytes; its backup was made with {}", path.display(), wanted.bytes);
            return Err(Error::Corrupt(what));
        }
        Ok(SummedFile { file: BufReader::with_capacity(READ_BYTES, file), path, crc: 0, wanted: wanted.clone() })
    }

    /// An error that names the file.
    pub fn corrupt(&self, what: impl std::fmt::Display) -> Error {
        Error::Corrupt(format!("{} is damaged: {what}", self.path.display()))
    }

    /// Fills `bytes`.
    pub fn read_all(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.read_exact(bytes).map_err(|error| failed("read", &self.path, error))
    }

    /// Compares the checksum, once everything was read.
    pub fn finish(self) -> Result<()> {
        forget_cached(self.file.get_ref());
        let crc32c = format!("{:08x}", self.crc);
        match crc32c == self.wanted.crc32c {
            true => Ok(()),
            false => Err(self.corrupt(format!("its checksum is {crc32c}, its backup has {}", self.wanted.crc32c))),
        }
    }
}

impl Read for SummedFile {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read(bytes)?;
        self.crc = crc32c::crc32c_append(self.crc, &bytes[..read]);
        Ok(read)
    }
}

/// Makes the entries of a folder durable.
pub(super) fn sync_folder(dir: &Path) -> Result<()> {
    File::open(dir).and_then(|folder| folder.sync_all()).map_err(|error| failed("sync", dir, error))
}

/// Makes the folder `dir` unless it is there and empty; says whether it was made.
///
/// # Errors
/// [`Error::Usage`] if it is not empty or no folder, an I/O error.
pub(super) fn make_empty(dir: &Path) -> Result<bool> {
    match std::fs::read_dir(dir) {
        Ok(mut entries) => match entries.next() {
            None => Ok(false),
            Some(_) => Err(Error::Usage(format!("{} is not empty; name a new folder", dir.display()))),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => {
            std::fs::create_dir_all(dir).map_err(|error| failed("create", dir, error))?;
            sync_parent(dir).map(|()| true)
        }
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            Err(Error::Usage(format!("{} is not a folder", dir.display())))
        }
        Err(error) => Err(failed("look at", dir, error)),
    }
}

/// Makes the entry of `dir` in its parent durable.
pub(super) fn sync_parent(dir: &Path) -> Result<()> {
    match dir.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync_folder(parent),
        _ => sync_folder(Path::new(".")),
    }
}
