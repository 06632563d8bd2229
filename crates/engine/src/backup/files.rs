//! Files of a backup: their length and checksum are taken while they are written, and compared while they are read.
//! They are dropped from the page cache ([`SequentialFile`]). Files of an encrypted database are encrypted; length and
//! checksum are those of the plain bytes.

use crate::error::{Error, Result};
use highwater_storage::{
    CopyKey, CopyReader, SEALED_RECORD_BYTES, Sealer, SequentialFile, StorageError, forget_cached, is_lock_file,
    sealed_bytes,
};
use serde::{Deserialize, Serialize};
use std::fs::{DirEntry, File};
use std::io::{BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Bytes that are read at once.
const READ_BYTES: usize = 1 << 20;

/// An I/O error of a file or folder.
pub(super) fn failed(operation: &'static str, path: &Path, source: std::io::Error) -> Error {
    Error::Storage(StorageError { operation, device: path.display().to_string(), offset: 0, len: 0, source })
}

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSum {
    /// Its name in the folder.
    pub name: String,
    /// Its length, before it was encrypted.
    pub bytes: u64,
    /// Its CRC-32C, in hexadecimal.
    pub crc32c: String,
}

/// A file being written.
pub(super) struct NewFile {
    file: SequentialFile,
    path: PathBuf,
    name: &'static str,
    bytes: u64,
    crc: u32,
    sealing: Option<Sealing>,
}

/// The encryption of a file, record by record.
struct Sealing {
    sealer: Sealer,
    /// The begin of the next record.
    plain: Vec<u8>,
    sealed: Vec<u8>,
}

impl NewFile {
    /// Makes the file, which must not exist; encrypted if there is a key.
    pub(super) fn create(dir: &Path, name: &'static str, key: Option<&CopyKey>) -> Result<NewFile> {
        let path = dir.join(name);
        let file = SequentialFile::create(&path).map_err(|error| failed("create", &path, error))?;
        let mut new = NewFile { file, path, name, bytes: 0, crc: 0, sealing: None };
        if let Some(key) = key {
            let (sealer, head) = key.new_file()?;
            new.put(&head)?;
            let plain = Vec::with_capacity(SEALED_RECORD_BYTES);
            new.sealing = Some(Sealing { sealer, plain, sealed: Vec::new() });
        }
        Ok(new)
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.crc = crc32c::crc32c_append(self.crc, bytes);
        self.bytes += bytes.len() as u64;
        match &mut self.sealing {
            None => self.put(bytes),
            Some(_) => self.seal(bytes),
        }
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write(bytes).map_err(|error| failed("write", &self.path, error))
    }

    /// Adds bytes to the next encrypted record, and writes the records that are full.
    fn seal(&mut self, mut bytes: &[u8]) -> Result<()> {
        while let (Some(Sealing { plain, .. }), false) = (&mut self.sealing, bytes.is_empty()) {
            let (now, later) = bytes.split_at(bytes.len().min(SEALED_RECORD_BYTES - plain.len()));
            plain.extend_from_slice(now);
            bytes = later;
            if plain.len() == SEALED_RECORD_BYTES {
                self.put_record()?;
            }
        }
        let kept = self.sealing.as_ref().map_or(0, |sealing| sealing.plain.len());
        debug_assert!(kept < SEALED_RECORD_BYTES, "a whole record of {kept} bytes is not written");
        Ok(())
    }

    /// Writes the next record, unless it is empty.
    fn put_record(&mut self) -> Result<()> {
        let Some(Sealing { sealer, plain, sealed }) = &mut self.sealing else { return Ok(()) };
        if plain.is_empty() {
            return Ok(());
        }
        sealed.clear();
        sealer.seal(plain, sealed);
        plain.clear();
        self.file.write(sealed).map_err(|error| failed("write", &self.path, error))
    }

    /// Makes the file durable (its folder's entry is not yet).
    pub(super) fn finish(mut self) -> Result<FileSum> {
        self.put_record()?;
        let left = self.sealing.as_ref().map_or(0, |sealing| sealing.plain.len());
        debug_assert_eq!(left, 0, "the last record of a file is not written");
        self.file.finish().map_err(|error| failed("sync", &self.path, error))?;
        Ok(FileSum { name: self.name.into(), bytes: self.bytes, crc32c: format!("{:08x}", self.crc) })
    }
}

/// A file being read from its begin to its end.
pub(super) struct SummedFile {
    file: CopyReader<BufReader<File>>,
    path: PathBuf,
    crc: u32,
    wanted: FileSum,
}

impl SummedFile {
    /// Opens the file, which has its length and is encrypted if there is a key.
    pub(super) fn open(dir: &Path, wanted: &FileSum, key: Option<&CopyKey>) -> Result<SummedFile> {
        let path = dir.join(&wanted.name);
        let file = File::open(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => Error::Corrupt(format!("{} is missing", path.display())),
            _ => failed("open", &path, error),
        })?;
        let len = file.metadata().map_err(|error| failed("look at", &path, error))?.len();
        let made = if key.is_some() { sealed_bytes(wanted.bytes) } else { wanted.bytes };
        if len != made {
            let what = format!("{} has {len} bytes; its backup was made with {made}", path.display());
            return Err(Error::Corrupt(what));
        }
        let file = open_copy(BufReader::with_capacity(READ_BYTES, file), len, key, &path)?;
        Ok(SummedFile { file, path, crc: 0, wanted: wanted.clone() })
    }

    /// An error that names the file.
    pub(super) fn corrupt(&self, what: impl std::fmt::Display) -> Error {
        Error::Corrupt(format!("{} is damaged: {what}", self.path.display()))
    }

    /// Fills `bytes`.
    pub(super) fn read_all(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.read_exact(bytes).map_err(|error| read_failed(&self.path, error))
    }

    /// Compares the checksum, once everything was read.
    pub(super) fn finish(self) -> Result<()> {
        forget_cached(self.file.get_ref().get_ref());
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

/// Reads the plain bytes of a copy of `len` bytes.
pub(super) fn open_copy<R: Read>(from: R, len: u64, key: Option<&CopyKey>, path: &Path) -> Result<CopyReader<R>> {
    CopyReader::new(from, len, key).map_err(|error| read_failed(path, error))
}

/// The error of a read of a copy: an I/O error, or invalid encrypted bytes.
pub(super) fn read_failed(path: &Path, error: std::io::Error) -> Error {
    match error.kind() {
        ErrorKind::InvalidData => Error::Corrupt(format!("{} is damaged: {error}", path.display())),
        _ => failed("read", path, error),
    }
}

/// Makes the entries of a folder durable.
pub(super) fn sync_folder(dir: &Path) -> Result<()> {
    Ok(highwater_storage::sync_folder(dir)?)
}

/// Creates the folder `dir` unless it exists and is empty; returns whether it was created.
///
/// # Errors
/// [`Error::Usage`] if it is not empty or no folder, an I/O error.
pub(super) fn make_empty(dir: &Path) -> Result<bool> {
    match std::fs::read_dir(dir) {
        Ok(mut entries) => match entries.find(|entry| !entry.as_ref().is_ok_and(is_of_a_lock)) {
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

fn is_of_a_lock(entry: &DirEntry) -> bool {
    entry.file_name().to_str().is_some_and(is_lock_file)
}

/// Makes the entry of `dir` in its parent durable.
pub(super) fn sync_parent(dir: &Path) -> Result<()> {
    match dir.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync_folder(parent),
        _ => sync_folder(Path::new(".")),
    }
}
