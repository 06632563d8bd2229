//! The store of an emulated device's bytes, in sparse memory or a file. It knows no model, no time and no crashes.
//!
//! Rules
//! 1. A range that was never written, or was punched out, reads as zeros.
//! 2. Ranges are within the store's length; the caller has checked.
//! 3. Concurrent calls on disjoint ranges do not disturb each other.
//! 4. A file belongs to one store at a time: it is locked as long as the store lives.

use crate::error::{DeviceError, Result};
use parking_lot::Mutex;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Keeps bytes.
pub trait Store: Send + Sync {
    /// Fills `buf` from `offset`.
    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()>;
    /// Writes `data` at `offset`.
    fn write(&self, offset: u64, data: &[u8]) -> Result<()>;
    /// Makes a range read as zeros, and frees its memory or blocks where they are punched out as a whole.
    fn punch(&self, offset: u64, len: u64) -> Result<()>;
    /// Approximate bytes of memory or file that are allocated.
    fn stored_bytes(&self) -> u64;
}

const CHUNK_BYTES: u64 = 256 << 10;

/// A chunk of memory, allocated by the first write to it.
type Chunk = Mutex<Option<Box<[u8]>>>;

/// Sparse memory.
pub struct MemoryStore {
    chunks: Box<[Chunk]>,
    allocated: AtomicU64,
}

impl MemoryStore {
    /// `len` bytes of zeros.
    pub fn new(len: u64) -> MemoryStore {
        let chunks = (0..len.div_ceil(CHUNK_BYTES)).map(|_| Mutex::new(None)).collect();
        MemoryStore { chunks, allocated: AtomicU64::new(0) }
    }
}

/// Calls `f` with (chunk, offset in the chunk, range of the buffer) for each chunk a range touches.
fn split(offset: u64, len: u64, mut f: impl FnMut(usize, usize, std::ops::Range<usize>)) {
    let (mut at, end) = (offset, offset + len);
    while at < end {
        let stop = end.min((at / CHUNK_BYTES + 1) * CHUNK_BYTES);
        let part = (at - offset) as usize..(stop - offset) as usize;
        f((at / CHUNK_BYTES) as usize, (at % CHUNK_BYTES) as usize, part);
        at = stop;
    }
}

impl Store for MemoryStore {
    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        split(offset, buf.len() as u64, |chunk, at, part| match &*self.chunks[chunk].lock() {
            Some(bytes) => buf[part.clone()].copy_from_slice(&bytes[at..at + part.len()]),
            None => buf[part].fill(0),
        });
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        split(offset, data.len() as u64, |chunk, at, part| {
            let mut bytes = self.chunks[chunk].lock();
            let bytes = bytes.get_or_insert_with(|| {
                self.allocated.fetch_add(CHUNK_BYTES, Ordering::Relaxed);
                vec![0; CHUNK_BYTES as usize].into_boxed_slice()
            });
            bytes[at..at + part.len()].copy_from_slice(&data[part]);
        });
        Ok(())
    }

    fn punch(&self, offset: u64, len: u64) -> Result<()> {
        split(offset, len, |chunk, at, part| {
            let mut bytes = self.chunks[chunk].lock();
            if part.len() as u64 == CHUNK_BYTES && bytes.take().is_some() {
                self.allocated.fetch_sub(CHUNK_BYTES, Ordering::Relaxed);
            } else if let Some(bytes) = &mut *bytes {
                bytes[at..at + part.len()].fill(0);
            }
        });
        Ok(())
    }

    fn stored_bytes(&self) -> u64 {
        self.allocated.load(Ordering::Relaxed)
    }
}

/// A sparse file.
pub struct FileStore {
    file: File,
    path: String,
}

/// A file opened and locked for a store, its contents and length unchanged. If it is dropped before it becomes a store,
/// a file that was created for it is removed.
pub struct FileClaim {
    store: FileStore,
    made: Made,
}

/// The path of a new file, which is removed if the claim is dropped.
struct Made(Option<PathBuf>);

impl Drop for Made {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl FileClaim {
    /// Opens or creates the file and locks it.
    pub fn new(path: &Path) -> Result<FileClaim> {
        let name = path.display().to_string();
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        let (file, made) = match options.clone().create_new(true).open(path) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => (options.open(path), None),
            made => (made, Some(path.into())),
        };
        let file = file.map_err(|e| DeviceError::io(format!("opening {name}"), e))?;
        match file.try_lock() {
            Ok(()) => Ok(FileClaim { store: FileStore { file, path: name }, made: Made(made) }),
            Err(TryLockError::WouldBlock) => Err(DeviceError::InUse { path: path.into() }),
            Err(TryLockError::Error(e)) => Err(DeviceError::io(format!("locking {name}"), e)),
        }
    }

    /// Makes the file `len` bytes long.
    pub fn into_store(mut self, len: u64) -> Result<FileStore> {
        let resized = self.store.file.set_len(len);
        resized.map_err(|e| DeviceError::io(format!("resizing {} to {len} bytes", self.store.path), e))?;
        self.made.0 = None;
        Ok(self.store)
    }
}

impl Drop for FileStore {
    fn drop(&mut self) {
        // A program started meanwhile may hold a copy of the descriptor for a moment: closing ours would not unlock the
        // file yet.
        let _ = self.file.unlock();
    }
}

impl FileStore {
    /// Opens or creates the file, locks it and makes it `len` bytes long. Contents are kept.
    pub fn open(path: &Path, len: u64) -> Result<FileStore> {
        FileClaim::new(path)?.into_store(len)
    }

    fn failed(&self, what: &str, offset: u64, source: std::io::Error) -> DeviceError {
        DeviceError::io(format!("{what} {} at byte {offset}", self.path), source)
    }

    #[cfg(target_os = "linux")]
    fn punch_hole(&self, offset: u64, len: u64) -> std::io::Result<()> {
        use std::os::fd::AsRawFd;
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: a system call on a descriptor that `self` keeps open; it touches no memory of ours.
        match unsafe { libc::fallocate(self.file.as_raw_fd(), mode, offset as i64, len as i64) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn punch_hole(&self, _: u64, _: u64) -> std::io::Result<()> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}

impl Store for FileStore {
    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.file.read_exact_at(buf, offset).map_err(|e| self.failed("reading", offset, e))
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.file.write_all_at(data, offset).map_err(|e| self.failed("writing", offset, e))
    }

    fn punch(&self, offset: u64, len: u64) -> Result<()> {
        if len == 0 || self.punch_hole(offset, len).is_ok() {
            return Ok(());
        }
        let zeros = vec![0; len.min(CHUNK_BYTES) as usize];
        let mut at = offset;
        while at < offset + len {
            let part = (offset + len - at).min(CHUNK_BYTES) as usize;
            self.write(at, &zeros[..part])?;
            at += part as u64;
        }
        Ok(())
    }

    fn stored_bytes(&self) -> u64 {
        use std::os::unix::fs::MetadataExt;
        self.file.metadata().map_or(0, |m| m.blocks() * 512)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    /// Random reads, writes and punches against a plain array.
    fn against_array(store: &dyn Store) {
        const LEN: usize = 3 * CHUNK_BYTES as usize + 1000;
        let (mut model, mut rng) = (vec![0u8; LEN], Rng::with_seed(1));
        for round in 0..400 {
            let offset = rng.usize(0..LEN);
            let len = rng.usize(0..(LEN - offset).min(400_000) + 1);
            let range = offset..offset + len;
            match rng.usize(0..4) {
                0 => {
                    store.punch(offset as u64, len as u64).unwrap();
                    model[range].fill(0);
                }
                1 => {
                    let data = vec![round as u8; len];
                    store.write(offset as u64, &data).unwrap();
                    model[range].copy_from_slice(&data);
                }
                _ => {
                    let mut buf = vec![7; len];
                    store.read(offset as u64, &mut buf).unwrap();
                    assert!(buf == model[range]);
                }
            }
        }
        store.punch(0, LEN as u64).unwrap();
    }

    #[test]
    fn memory_keeps_bytes() {
        let store = MemoryStore::new(4 * CHUNK_BYTES);
        against_array(&store);
        assert!(store.stored_bytes() <= CHUNK_BYTES, "punched chunks are freed");
    }

    #[test]
    fn a_file_keeps_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("backing");
        against_array(&FileStore::open(&path, 4 * CHUNK_BYTES).unwrap());
        let again = FileStore::open(&path, 4 * CHUNK_BYTES).unwrap();
        again.write(10, b"kept").unwrap();
        drop(again);
        let mut buf = [0; 4];
        FileStore::open(&path, 4 * CHUNK_BYTES).unwrap().read(10, &mut buf).unwrap();
        assert_eq!(&buf, b"kept");
        assert!(FileStore::open(&folder.path().join("no/such"), 1).is_err());
    }

    #[test]
    fn a_claim_given_up_leaves_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let (new, old) = (folder.path().join("new"), folder.path().join("old"));
        std::fs::write(&old, "something").unwrap();
        for path in [&new, &old] {
            let claim = FileClaim::new(path).unwrap();
            assert!(matches!(FileClaim::new(path), Err(DeviceError::InUse { .. })));
            drop(claim);
        }
        assert!(!new.exists());
        assert_eq!(std::fs::read(&old).unwrap(), b"something");
    }

    /// The second must not even resize the file.
    #[test]
    fn a_file_belongs_to_one_store_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("backing");
        let first = FileStore::open(&path, CHUNK_BYTES).unwrap();
        let error = FileStore::open(&path, 512).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("in use by another mount"), "{error}");
        assert_eq!(std::fs::metadata(&path).unwrap().len(), CHUNK_BYTES);
        drop(first);
        FileStore::open(&path, CHUNK_BYTES).unwrap();
    }
}
