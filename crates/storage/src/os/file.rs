//! A file as a device: buffered or direct, synced by fdatasync or by each write.
//!
//! Rules
//! 1. Growing reserves the blocks first, so that a full disk is an error of `set_len_bytes` and the file keeps the
//!    length and contents it had.
//! 2. The first failed sync is final: the kernel forgets which pages it could not write, so every later write and sync
//!    of the file fails too.
//! 3. Where a later write is not followed by a sync (O_DIRECT_NO_FSYNC), no write may need the file system's own records
//!    changed to be durable: growth is written with zeros, so that its blocks count as initialized, and discards are
//!    left out.
//! 4. A file system without direct I/O gets buffered I/O ([`FileDevice::is_direct`] says which).
//!
//! | method | data, doublewrite | redo |
//! |---|---|---|
//! | fsync | buffered, fdatasync | buffered, fdatasync |
//! | O_DSYNC | buffered, fdatasync | buffered, each write durable |
//! | O_DIRECT | direct, fdatasync | direct, fdatasync |
//! | O_DIRECT_NO_FSYNC | direct, fdatasync only after a change of length | direct, fdatasync |

use super::folder::failed;
use super::sys::{self, WriteLifetime};
use super::uring::BatchWriter;
use crate::aligned::is_aligned;
use crate::{ALIGNMENT_BYTES, AlignedBuf, Device, Placement, Result, StorageError, Write};
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// How files are written and made durable (InnoDB's names).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlushMethod {
    /// Buffered writes, then fdatasync.
    Fsync,
    /// As `Fsync`, with the redo opened so that each of its writes is durable when it returns.
    DSync,
    /// Writes bypass the page cache; fdatasync.
    #[default]
    Direct,
    /// As `Direct`; data and doublewrite are synced only when their length changed.
    DirectNoFsync,
}

/// Which of a database's files this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRole {
    /// Pages in place.
    Data,
    /// Copies of pages on their way to their place.
    Doublewrite,
    /// The redo ring, written and synced at each commit.
    Redo,
    /// The redo ring when a commit only writes it: through the page cache whatever the method, where a write is a copy.
    RedoCached,
}

/// Zeros written at once.
const ZEROS_BYTES: u64 = 1 << 20;

/// The flags that follow from role and method.
#[derive(Clone, Copy, Debug)]
struct Mode {
    direct: bool,
    each_write_durable: bool,
    sync_only_after_len_change: bool,
}

impl Mode {
    fn of(role: FileRole, method: FlushMethod) -> Mode {
        use FileRole::{Data, Doublewrite, Redo, RedoCached};
        let is_redo = matches!(role, Redo | RedoCached);
        let direct = matches!(method, FlushMethod::Direct | FlushMethod::DirectNoFsync) && role != RedoCached;
        let each_write_durable = method == FlushMethod::DSync && role == Redo;
        let unsynced_data = method == FlushMethod::DirectNoFsync && matches!(role, Data | Doublewrite);
        debug_assert!(!(is_redo && unsynced_data));
        Mode { direct, each_write_durable, sync_only_after_len_change: each_write_durable || unsynced_data }
    }

    /// Whether a write may never be followed by a sync.
    fn writes_unsynced(self) -> bool {
        self.sync_only_after_len_change && !self.each_write_durable
    }

    fn open_flags(self) -> i32 {
        let direct = if self.direct { libc::O_DIRECT } else { 0 };
        let dsync = if self.each_write_durable { libc::O_DSYNC } else { 0 };
        direct | dsync
    }
}

/// A file of the operating system.
#[derive(Debug)]
pub struct FileDevice {
    file: File,
    path: PathBuf,
    mode: Mode,
    batches: BatchWriter,
    len_changed: AtomicBool,
    sync_failed: AtomicBool,
}

impl FileDevice {
    /// Opens the file at `path`; makes an empty one if `create` and there is none.
    ///
    /// # Errors
    /// Whatever the operating system answers, with the path.
    pub fn open(path: &Path, role: FileRole, method: FlushMethod, create: bool) -> Result<FileDevice> {
        let wanted = Mode::of(role, method);
        let (file, mode) = match open_file(path, wanted, create) {
            Err(error) if wanted.direct && error.kind() == ErrorKind::InvalidInput => {
                let buffered = Mode { direct: false, ..wanted };
                (open_file(path, buffered, create), buffered)
            }
            other => (other, wanted),
        };
        let file = file.map_err(|source| failed("open", path, source))?;
        let short_lived = role != FileRole::Data;
        sys::hint_lifetime(&file, if short_lived { WriteLifetime::Short } else { WriteLifetime::Medium });
        Ok(FileDevice {
            file,
            path: path.to_path_buf(),
            mode,
            batches: BatchWriter::default(),
            len_changed: AtomicBool::new(true),
            sync_failed: AtomicBool::new(false),
        })
    }

    /// Opens the file at `path` to read it only, through the page cache: no lock, no alignment, and nothing can be written.
    ///
    /// # Errors
    /// Whatever the operating system answers, with the path.
    pub fn open_read_only(path: &Path) -> Result<FileDevice> {
        let file = File::open(path).map_err(|source| failed("open", path, source))?;
        Ok(FileDevice {
            file,
            path: path.to_path_buf(),
            mode: Mode { direct: false, each_write_durable: false, sync_only_after_len_change: false },
            batches: BatchWriter::default(),
            len_changed: AtomicBool::new(false),
            sync_failed: AtomicBool::new(false),
        })
    }

    /// Whether reads and writes bypass the page cache.
    pub fn is_direct(&self) -> bool {
        self.mode.direct
    }

    fn error(&self, operation: &'static str, offset: u64, len: u64, source: Error) -> StorageError {
        StorageError { operation, device: self.name(), offset, len, source }
    }

    fn refuse_after_failed_sync(&self, operation: &'static str, offset: u64, len: u64) -> Result<()> {
        if self.sync_failed.load(Ordering::Acquire) {
            let source = Error::other("an earlier sync of this file failed");
            return Err(self.error(operation, offset, len, source));
        }
        Ok(())
    }

    fn check_alignment(&self, operation: &'static str, offset: u64, data: &[u8]) -> Result<()> {
        let unit = self.alignment_bytes();
        if is_aligned(offset, data, unit) {
            return Ok(());
        }
        let source = Error::new(ErrorKind::InvalidInput, format!("offset, length or buffer not aligned to {unit}"));
        Err(self.error(operation, offset, data.len() as u64, source))
    }

    fn grow(&self, from: u64, to: u64) -> std::io::Result<()> {
        let mut result = match sys::allocate(&self.file, from, to - from) {
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => self.file.set_len(to),
            other => other,
        };
        if result.is_ok() && self.mode.writes_unsynced() {
            result = self.write_zeros(from, to);
        }
        if result.is_err() {
            // A refused allocation may have extended the file part of the way.
            self.file.set_len(from)?;
        }
        result
    }

    /// Initializes the blocks of a grown range. What lies outside of whole blocks shares its block with older bytes.
    fn write_zeros(&self, from: u64, to: u64) -> std::io::Result<()> {
        let unit = ALIGNMENT_BYTES as u64;
        let (mut at, end) = (from.next_multiple_of(unit), to / unit * unit);
        let zeros = AlignedBuf::zeroed(ZEROS_BYTES.min(end.saturating_sub(at)) as usize);
        while at < end {
            let len = ZEROS_BYTES.min(end - at);
            self.file.write_all_at(&zeros[..len as usize], at)?;
            at += len;
        }
        Ok(())
    }
}

fn open_file(path: &Path, mode: Mode, create: bool) -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).create(create).truncate(false).custom_flags(mode.open_flags()).open(path)
}

impl Device for FileDevice {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn len_bytes(&self) -> Result<u64> {
        self.file.metadata().map(|m| m.len()).map_err(|source| self.error("look", 0, 0, source))
    }

    fn set_len_bytes(&self, len: u64) -> Result<()> {
        self.refuse_after_failed_sync("set length", 0, len)?;
        let present = self.len_bytes()?;
        let result = if len > present { self.grow(present, len) } else { self.file.set_len(len) };
        self.len_changed.store(true, Ordering::Release);
        result.map_err(|source| self.error("set length", present.min(len), present.abs_diff(len), source))
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.check_alignment("read", offset, buf)?;
        let result = self.file.read_exact_at(buf, offset);
        result.map_err(|source| self.error("read", offset, buf.len() as u64, source))
    }

    fn write_at(&self, offset: u64, data: &[u8], _placement: Placement) -> Result<()> {
        self.check_alignment("write", offset, data)?;
        self.refuse_after_failed_sync("write", offset, data.len() as u64)?;
        let result = self.file.write_all_at(data, offset);
        result.map_err(|source| self.error("write", offset, data.len() as u64, source))
    }

    fn write_batch(&self, writes: &[Write<'_>]) -> Result<()> {
        if !self.mode.direct || writes.len() < 2 {
            return writes.iter().try_for_each(|w| self.write_at(w.offset, w.data, w.placement));
        }
        for write in writes {
            self.check_alignment("write", write.offset, write.data)?;
        }
        self.refuse_after_failed_sync("write", writes[0].offset, writes.iter().map(|w| w.data.len() as u64).sum())?;
        match self.batches.write(&self.file, writes) {
            Some(result) => result.map_err(|(failed, source)| {
                let write = &writes[failed];
                self.error("write", write.offset, write.data.len() as u64, source)
            }),
            None => writes.iter().try_for_each(|w| self.write_at(w.offset, w.data, w.placement)),
        }
    }

    fn sync(&self) -> Result<()> {
        self.refuse_after_failed_sync("sync", 0, 0)?;
        let len_changed = self.len_changed.swap(false, Ordering::AcqRel);
        if self.mode.sync_only_after_len_change && !len_changed {
            return Ok(());
        }
        self.file.sync_data().map_err(|source| {
            self.sync_failed.store(true, Ordering::Release);
            self.error("sync", 0, 0, source)
        })
    }

    fn discard(&self, offset: u64, len: u64) -> Result<()> {
        if len == 0 || self.mode.writes_unsynced() {
            return Ok(());
        }
        match sys::punch_hole(&self.file, offset, len) {
            // Nothing but space is lost where a file system cannot punch holes.
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(()),
            other => other.map_err(|source| self.error("discard", offset, len, source)),
        }
    }

    fn alignment_bytes(&self) -> usize {
        if self.mode.direct { ALIGNMENT_BYTES } else { 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const METHODS: [FlushMethod; 4] =
        [FlushMethod::Fsync, FlushMethod::DSync, FlushMethod::Direct, FlushMethod::DirectNoFsync];
    const ROLES: [FileRole; 4] = [FileRole::Data, FileRole::Doublewrite, FileRole::Redo, FileRole::RedoCached];

    fn device(folder: &tempfile::TempDir, role: FileRole, method: FlushMethod) -> FileDevice {
        FileDevice::open(&folder.path().join("file"), role, method, true).unwrap()
    }

    fn block(fill: u8) -> AlignedBuf {
        AlignedBuf::copy_of(&[fill; ALIGNMENT_BYTES])
    }

    #[test]
    fn what_is_written_is_read_with_every_method_and_role() {
        for (method, role) in METHODS.iter().flat_map(|&m| ROLES.map(|r| (m, r))) {
            let folder = tempfile::tempdir().unwrap();
            let device = device(&folder, role, method);
            device.set_len_bytes(16 * 4096).unwrap();
            let data: Vec<AlignedBuf> = (0..8).map(|i| block(i + 1)).collect();
            device.write_at(8 * 4096, &data[0], Placement::Redo).unwrap();
            let write = |i: usize| Write { offset: i as u64 * 4096, data: &data[i], placement: Placement::Other };
            device.write_batch(&(1..8).map(write).collect::<Vec<_>>()).unwrap();
            device.sync().unwrap();
            let mut all = AlignedBuf::zeroed(16 * 4096);
            device.read_at(0, &mut all).unwrap();
            for i in 0..16 {
                let want = [0, 2, 3, 4, 5, 6, 7, 8, 1].get(i).copied().unwrap_or(0);
                assert!(all[i * 4096..(i + 1) * 4096].iter().all(|&b| b == want), "{method:?} {role:?} block {i}");
            }
        }
    }

    #[test]
    fn a_large_batch_is_written_whole() {
        let folder = tempfile::tempdir().unwrap();
        let device = device(&folder, FileRole::Data, FlushMethod::Direct);
        device.set_len_bytes(1000 * 4096).unwrap();
        let blocks: Vec<AlignedBuf> = (0..1000).map(|i| block((i % 251) as u8)).collect();
        let write = |(i, b)| Write { offset: i as u64 * 4096, data: b, placement: Placement::IndexLeaf };
        let writes: Vec<Write<'_>> = blocks.iter().map(|b| &b[..]).enumerate().map(write).collect();
        device.write_batch(&writes).unwrap();
        let mut all = AlignedBuf::zeroed(1000 * 4096);
        device.read_at(0, &mut all).unwrap();
        assert!(all.chunks(4096).enumerate().all(|(i, c)| c.iter().all(|&b| b == (i % 251) as u8)));
    }

    #[test]
    fn reading_past_the_end_says_where() {
        let folder = tempfile::tempdir().unwrap();
        let device = device(&folder, FileRole::Data, FlushMethod::Fsync);
        device.set_len_bytes(100).unwrap();
        let error = device.read_at(90, &mut [0; 20]).unwrap_err();
        assert_eq!((error.operation, error.offset, error.len), ("read", 90, 20));
    }

    #[test]
    fn growing_reads_as_zeros_and_cutting_forgets() {
        let folder = tempfile::tempdir().unwrap();
        let device = device(&folder, FileRole::Data, FlushMethod::Fsync);
        device.set_len_bytes(4096).unwrap();
        device.write_at(0, &[7; 4096], Placement::Other).unwrap();
        device.set_len_bytes(100).unwrap();
        device.set_len_bytes(8192).unwrap();
        let mut bytes = [1; 8192];
        device.read_at(0, &mut bytes).unwrap();
        assert!(bytes[..100].iter().all(|&b| b == 7) && bytes[100..].iter().all(|&b| b == 0));
        assert_eq!(device.len_bytes().unwrap(), 8192);
    }

    #[test]
    fn growing_beyond_the_disk_is_an_error_and_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let device = device(&folder, FileRole::Data, FlushMethod::Fsync);
        device.set_len_bytes(4096).unwrap();
        device.write_at(0, &[7; 4096], Placement::Other).unwrap();
        assert!(device.set_len_bytes(1 << 62).is_err());
        assert_eq!(device.len_bytes().unwrap(), 4096);
        let mut bytes = [0; 4096];
        device.read_at(0, &mut bytes).unwrap();
        assert_eq!(bytes, [7; 4096]);
    }

    #[test]
    fn a_discarded_range_keeps_the_length() {
        let folder = tempfile::tempdir().unwrap();
        let device = device(&folder, FileRole::Data, FlushMethod::Fsync);
        device.set_len_bytes(64 * 4096).unwrap();
        device.write_at(0, &[7; 4096], Placement::Other).unwrap();
        device.discard(4096, 8 * 4096).unwrap();
        device.discard(0, 0).unwrap();
        assert_eq!(device.len_bytes().unwrap(), 64 * 4096);
        let mut bytes = [0; 4096];
        device.read_at(0, &mut bytes).unwrap();
        assert_eq!(bytes, [7; 4096]);
    }

    #[test]
    fn direct_io_refuses_what_is_not_aligned() {
        let folder = tempfile::tempdir().unwrap();
        let device = device(&folder, FileRole::Data, FlushMethod::Direct);
        if !device.is_direct() {
            assert_eq!(device.alignment_bytes(), 1);
            return;
        }
        let data = block(1);
        assert!(device.write_at(100, &data, Placement::Other).is_err());
        assert!(device.write_at(0, &data[..100], Placement::Other).is_err());
    }

    #[test]
    fn without_syncs_growth_is_initialized_and_nothing_is_punched() {
        use std::os::unix::fs::MetadataExt;
        let folder = tempfile::tempdir().unwrap();
        let device = device(&folder, FileRole::Data, FlushMethod::DirectNoFsync);
        device.set_len_bytes(3 << 20).unwrap();
        device.write_at(0, &block(7), Placement::Other).unwrap();
        device.set_len_bytes((3 << 20) + 5 * 4096).unwrap();
        device.discard(0, 1 << 20).unwrap();
        device.sync().unwrap();
        assert!(device.file.metadata().unwrap().blocks() * 512 >= (3 << 20) + 5 * 4096);
        let mut bytes = AlignedBuf::zeroed((3 << 20) + 5 * 4096);
        device.read_at(0, &mut bytes).unwrap();
        assert!(bytes[..4096].iter().all(|&b| b == 7) && bytes[4096..].iter().all(|&b| b == 0));
    }

    #[test]
    fn opening_what_is_not_there_names_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("none");
        let error = FileDevice::open(&path, FileRole::Data, FlushMethod::Direct, false).unwrap_err();
        assert!(error.to_string().contains("none"), "{error}");
    }
}
