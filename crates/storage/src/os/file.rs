//! A file or block device as a device. `method` describes the flush methods.
//!
//! Rules
//! 1. Growing reserves the blocks first, so that a full disk is an error of `set_len_bytes` and the file keeps its
//!    length and contents. On a file system without `fallocate` zeros are written instead. `reserve` does the same for
//!    ranges whose blocks were released; a range with all its blocks counts as reserved even if the file system refuses
//!    the call on a full disk. (A file system that writes every block to a new place, such as Btrfs or ZFS, can be full
//!    at any write, even in a reserved range.)
//! 2. The first failed sync is final: the kernel forgets which pages it could not write, so every later write and sync
//!    of the file fails too. Syncs run one at a time, because the kernel reports a failure to only one of several, and
//!    because a sync without work (rule 3) may not return before a sync with work.
//! 3. If writes are not followed by a sync (O_DIRECT_NO_FSYNC), no write may need a change of the file system's
//!    metadata to be durable: growth is written with zeros, so that its blocks count as initialized, and discards are
//!    left out. A file with other blocks (a sparse copy, a reflink, one grown by another method, a file system that
//!    copies on write) is synced nevertheless, as with O_DIRECT.
//! 4. A block device has a fixed length: any length up to it can be "set", without a change of length or contents. It
//!    is opened exclusively: a device that is mounted, or open elsewhere, is refused.
//! 5. Untorn writes are made in pieces of the atomic size, each with a separate write ([`untorn`]).
//! 6. In a child process that was forked nothing is written, synced or discarded, and no ring is used (`owner`).
//! 7. A file system without direct I/O gets buffered I/O ([`FileDevice::is_direct`] says which).

use super::folder::failed;
use super::method::{FileRole, FlushMethod, Mode};
use super::sys::{self, OpenFlags, Rings};
use super::untorn::{self, Evidence};
use crate::aligned::is_aligned;
use crate::{
    ALIGNMENT_BYTES, AlignedBuf, Device, IoCounts, Owner, Placement, Read, ReadCallback, Result, StorageError, Write,
};
use parking_lot::Mutex;
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Zeros written at once.
const ZEROS_BYTES: u64 = 1 << 20;

/// A file of the operating system.
#[derive(Debug)]
pub struct FileDevice {
    file: File,
    path: PathBuf,
    mode: Mode,
    /// Whether the length is fixed: a block device, or a file that is treated as one.
    fixed_len: bool,
    rings: Rings,
    len_changed: AtomicBool,
    owner: Owner,
    syncing: Mutex<()>,
    sync_failed: AtomicBool,
    /// Size of the pieces that are written untorn; 0 if writes may be torn.
    untorn_bytes: AtomicUsize,
    syncs: AtomicU64,
    writes: AtomicU64,
    ring_writes: AtomicU64,
}

impl FileDevice {
    /// Opens the file at `path`; makes an empty one if `create` and there is none.
    ///
    /// # Errors
    /// Whatever the operating system answers, with the path.
    pub fn open(path: &Path, role: FileRole, method: FlushMethod, create: bool) -> Result<FileDevice> {
        let (file, mode) = or_buffered(Mode::of(role, method), |mode| open_file(path, mode, create));
        let file = file.map_err(|source| failed("open", path, source))?;
        let mode = if mode.writes_unsynced() && !is_block_device(path) && !is_all_initialized(&file) {
            Mode { sync_only_after_len_change: false, ..mode }
        } else {
            mode
        };
        if !mode.direct {
            read_from_the_device(&file).map_err(|source| failed("sync", path, source))?;
        }
        sys::hint_lifetime(&file, role.lifetime());
        Ok(FileDevice::of(file, path, mode))
    }

    /// Opens the file at `path` to read it only, through the page cache: no lock, no alignment, and nothing can be
    /// written.
    ///
    /// # Errors
    /// Whatever the operating system answers, with the path.
    pub fn open_read_only(path: &Path) -> Result<FileDevice> {
        let file = File::open(path).map_err(|source| failed("open", path, source))?;
        Ok(FileDevice::of(file, path, Mode::READ_ONLY))
    }

    pub(super) fn of(file: File, path: &Path, mode: Mode) -> FileDevice {
        let is_block_device = file.metadata().is_ok_and(|found| sys::is_block_device(&found));
        FileDevice {
            file,
            path: path.to_path_buf(),
            mode,
            fixed_len: is_block_device,
            rings: Rings::default(),
            // Changes by an earlier process may not be durable yet.
            len_changed: AtomicBool::new(true),
            owner: Owner::this_process(),
            syncing: Mutex::default(),
            sync_failed: AtomicBool::new(false),
            untorn_bytes: AtomicUsize::new(0),
            syncs: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            ring_writes: AtomicU64::new(0),
        }
    }

    /// Whether a write that does not change the length is durable without a sync (O_DIRECT_NO_FSYNC, where that can
    /// be).
    pub fn writes_unsynced(&self) -> bool {
        self.mode.writes_unsynced()
    }

    /// Whether reads and writes bypass the page cache.
    pub fn is_direct(&self) -> bool {
        self.mode.direct
    }

    fn error(&self, operation: &'static str, offset: u64, len: u64, source: Error) -> StorageError {
        let source = if source.kind() == ErrorKind::FileTooLarge { beyond_limit() } else { source };
        StorageError { operation, device: self.name(), offset, len, source }
    }

    fn check_owner(&self, operation: &'static str, offset: u64, len: u64) -> Result<()> {
        let source = || Error::other("the file was opened by the process of which this one was forked");
        if self.owner.is_this_process() { Ok(()) } else { Err(self.error(operation, offset, len, source())) }
    }

    fn check_writable(&self, operation: &'static str, offset: u64, len: u64) -> Result<()> {
        self.check_owner(operation, offset, len)?;
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

    /// The size of the pieces in which these bytes are written untorn; `None` if they are not (rule 5).
    fn pieces(&self, offset: u64, data: &[u8]) -> Option<usize> {
        let bytes = self.untorn_bytes.load(Ordering::Acquire);
        let is_whole = bytes > 0 && offset.is_multiple_of(bytes as u64) && data.len().is_multiple_of(bytes);
        is_whole.then_some(bytes)
    }

    /// The writes in their pieces; `None` if there is nothing to divide.
    fn in_pieces<'w>(&self, writes: &[Write<'w>]) -> Option<Vec<Write<'w>>> {
        let mut pieces = Vec::new();
        for write in writes {
            let bytes = self.pieces(write.offset, write.data)?;
            let offsets = (write.offset..).step_by(bytes);
            pieces.extend(offsets.zip(write.data.chunks(bytes)).map(|(offset, data)| Write { offset, data, ..*write }));
        }
        Some(pieces)
    }

    fn write_all(&self, offset: u64, data: &[u8]) -> std::io::Result<()> {
        let Some(bytes) = self.pieces(offset, data) else { return sys::write_all_at(&self.file, data, offset) };
        let mut pieces = (offset..).step_by(bytes).zip(data.chunks(bytes));
        pieces.try_for_each(|(offset, piece)| sys::write_untorn_at(&self.file, piece, offset))
    }

    fn grow(&self, from: u64, to: u64) -> std::io::Result<()> {
        let (mut result, reserved) = match sys::allocate(&self.file, from, to - from) {
            Err(error) if sys::is_unsupported(&error) => (self.file.set_len(to), false),
            other => (other, true),
        };
        if result.is_ok() && (!reserved || self.mode.writes_unsynced()) {
            result = self.write_zeros(from, to);
        }
        if result.is_err() {
            // A refused allocation may have extended the file part of the way.
            self.file.set_len(from)?;
        }
        result
    }

    fn reserve_blocks(&self, offset: u64, len: u64) -> std::io::Result<()> {
        match sys::allocate(&self.file, offset, len) {
            // Where blocks cannot be reserved they cannot be released either.
            Err(error) if sys::is_unsupported(&error) => return Ok(()),
            // XFS asks for as much free space as the range is long, whatever of it is allocated.
            Err(error) if error.kind() == ErrorKind::StorageFull && self.is_within(offset, len) => {}
            other => other?,
        }
        if self.mode.writes_unsynced() && sys::has_hole(&self.file, offset, len) {
            self.write_zeros(offset, offset + len)?;
        }
        Ok(())
    }

    /// Whether the file reaches over the range and every block of it is allocated.
    fn is_within(&self, offset: u64, len: u64) -> bool {
        let end = offset.saturating_add(len);
        self.file.metadata().is_ok_and(|file| end <= file.len()) && sys::is_allocated(&self.file, offset, len)
    }

    /// Writes zeros to a grown range. Bytes outside whole blocks share a block with older bytes.
    fn write_zeros(&self, from: u64, to: u64) -> std::io::Result<()> {
        let unit = ALIGNMENT_BYTES as u64;
        let (mut at, end) = (from.next_multiple_of(unit), to / unit * unit);
        let zeros = AlignedBuf::zeroed(ZEROS_BYTES.min(end.saturating_sub(at)) as usize);
        while at < end {
            let len = ZEROS_BYTES.min(end - at);
            sys::write_all_at(&self.file, &zeros[..len as usize], at)?;
            at += len;
        }
        Ok(())
    }
}

/// Opens a file in a mode, or without direct I/O if the file system refuses it (rule 7); returns the file and the mode.
pub(super) fn or_buffered(wanted: Mode, open: impl Fn(Mode) -> std::io::Result<File>) -> (std::io::Result<File>, Mode) {
    match open(wanted) {
        Err(error) if wanted.direct && error.kind() == ErrorKind::InvalidInput => {
            let buffered = Mode { direct: false, ..wanted };
            (open(buffered), buffered)
        }
        opened => (opened, wanted),
    }
}

/// The error of a write beyond the largest file: it names the limit.
fn beyond_limit() -> Error {
    let text = match sys::file_size_limit() {
        Some(bytes) => format!("this process may write files of {bytes} bytes at most (ulimit -f, RLIMIT_FSIZE)"),
        None => "the file would be larger than its file system allows".to_string(),
    };
    Error::new(ErrorKind::FileTooLarge, text)
}

/// Drops the file's clean pages from the page cache, so that reads come from the device. After a failed writeback of an
/// earlier process the page cache may have bytes that are marked as clean and are not on the device.
fn read_from_the_device(file: &File) -> std::io::Result<()> {
    file.sync_all()?;
    sys::forget_cached(file);
    Ok(())
}

fn is_all_initialized(file: &File) -> bool {
    file.metadata().is_ok_and(|metadata| sys::overwrites_in_place(file, metadata.len()))
}

fn open_file(path: &Path, mode: Mode, create: bool) -> std::io::Result<File> {
    let is_block = is_block_device(path);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(create && !is_block).truncate(false);
    sys::with_flags(&mut options, OpenFlags { exclusive: is_block, ..mode.open_flags() }).open(path)
}

fn is_block_device(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| sys::is_block_device(&found))
}

impl Device for FileDevice {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn len_bytes(&self) -> Result<u64> {
        // By seek: the metadata of a block device have no length. Reads and writes name their offsets.
        (&self.file).seek(SeekFrom::End(0)).map_err(|source| self.error("look", 0, 0, source))
    }

    fn set_len_bytes(&self, len: u64) -> Result<()> {
        self.check_writable("set length", 0, len)?;
        let present = self.len_bytes()?;
        if self.fixed_len {
            let full = || Error::new(ErrorKind::StorageFull, format!("the device has {present} bytes"));
            return if len <= present { Ok(()) } else { Err(self.error("set length", present, len - present, full())) };
        }
        let result = if len > present { self.grow(present, len) } else { self.file.set_len(len) };
        self.len_changed.store(true, Ordering::Release);
        result.map_err(|source| self.error("set length", present.min(len), present.abs_diff(len), source))
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.check_alignment("read", offset, buf)?;
        let result = sys::read_exact_at(&self.file, buf, offset);
        result.map_err(|source| self.error("read", offset, buf.len() as u64, source))
    }

    fn read_batch(&self, reads: &mut [Read<'_>], done: &mut ReadCallback<'_>) {
        let mut is_told = vec![false; reads.len()];
        let is_aligned = |read: &Read<'_>| self.check_alignment("read", read.offset, read.buf).is_ok();
        if self.supports_batch_reads() && reads.len() > 1 && reads.iter().all(is_aligned) {
            let ranges: Vec<(u64, usize)> = reads.iter().map(|read| (read.offset, read.buf.len())).collect();
            self.rings.read(&self.file, reads, |index, result| {
                let (offset, len) = ranges[index];
                is_told[index] = true;
                done(index, result.map_err(|source| self.error("read", offset, len as u64, source)));
            });
        }
        for (index, read) in reads.iter_mut().enumerate().filter(|(index, _)| !is_told[*index]) {
            let result = self.read_at(read.offset, read.buf);
            done(index, result.map(|()| &*read.buf));
        }
    }

    fn supports_batch_reads(&self) -> bool {
        self.mode.direct && self.rings.may_be_had() && self.owner.is_this_process()
    }

    fn write_at(&self, offset: u64, data: &[u8], _placement: Placement) -> Result<()> {
        self.check_alignment("write", offset, data)?;
        self.check_writable("write", offset, data.len() as u64)?;
        self.writes.fetch_add(1, Ordering::Relaxed);
        let result = self.write_all(offset, data);
        result.map_err(|source| self.error("write", offset, data.len() as u64, source))
    }

    fn write_batch(&self, writes: &[Write<'_>]) -> Result<()> {
        if !self.mode.direct || writes.len() < 2 {
            return writes.iter().try_for_each(|w| self.write_at(w.offset, w.data, w.placement));
        }
        for write in writes {
            self.check_alignment("write", write.offset, write.data)?;
        }
        self.check_writable("write", writes[0].offset, writes.iter().map(|w| w.data.len() as u64).sum())?;
        let pieces = self.in_pieces(writes);
        let (writes, is_untorn) = (pieces.as_deref().unwrap_or(writes), pieces.is_some());
        if !is_untorn && self.untorn_bytes.load(Ordering::Acquire) > 0 {
            return writes.iter().try_for_each(|w| self.write_at(w.offset, w.data, w.placement));
        }
        match self.rings.write(&self.file, writes, is_untorn) {
            Some(result) => {
                self.ring_writes.fetch_add(writes.len() as u64, Ordering::Relaxed);
                result.map_err(|(failed, source)| {
                    let write = &writes[failed];
                    self.error("write", write.offset, write.data.len() as u64, source)
                })
            }
            None => writes.iter().try_for_each(|w| self.write_at(w.offset, w.data, w.placement)),
        }
    }

    fn begin_write_back(&self, offset: u64, len: u64) -> Result<()> {
        self.check_writable("write back", offset, len)?;
        if self.mode.direct || self.mode.each_write_durable {
            return Ok(());
        }
        sys::begin_write_back(&self.file, offset, len).map_err(|source| {
            // What was not written may be gone from the cache: no sync after this one may succeed.
            self.sync_failed.store(true, Ordering::Release);
            self.error("write back", offset, len, source)
        })
    }

    fn sync(&self) -> Result<()> {
        // Before the mutex: a thread of the parent's may hold it.
        self.check_owner("sync", 0, 0)?;
        let _one_at_a_time = self.syncing.lock();
        self.check_writable("sync", 0, 0)?;
        let len_changed = self.len_changed.swap(false, Ordering::AcqRel);
        if self.mode.sync_only_after_len_change && !len_changed {
            return Ok(());
        }
        self.syncs.fetch_add(1, Ordering::Relaxed);
        let synced = if self.mode.whole_sync { self.file.sync_all() } else { self.file.sync_data() };
        synced.map_err(|source| {
            self.sync_failed.store(true, Ordering::Release);
            self.error("sync", 0, 0, source)
        })
    }

    fn reserve(&self, offset: u64, len: u64) -> Result<()> {
        self.check_writable("reserve", offset, len)?;
        if self.fixed_len || len == 0 {
            return Ok(());
        }
        let result = self.reserve_blocks(offset, len);
        // Newly allocated blocks are as good as a new length: durable after the next sync, whatever the method.
        self.len_changed.store(true, Ordering::Release);
        result.map_err(|source| self.error("reserve", offset, len, source))
    }

    fn discard(&self, offset: u64, len: u64) -> Result<()> {
        self.check_owner("discard", offset, len)?;
        if len == 0 || self.mode.writes_unsynced() {
            return Ok(());
        }
        match sys::punch_hole(&self.file, offset, len) {
            // Nothing but space is lost where a file system cannot punch holes.
            Err(error) if sys::is_unsupported(&error) => Ok(()),
            other => other.map_err(|source| self.error("discard", offset, len, source)),
        }
    }

    fn discard_keeps_room(&self) -> bool {
        self.fixed_len
    }

    fn write_untorn(&self, bytes: usize) -> std::result::Result<(), String> {
        let evidence = Evidence { is_direct: self.mode.direct, limits: sys::untorn_limits(&self.file) };
        if let Some(reason) = untorn::refusal(evidence, bytes) {
            return Err(format!("{}: {reason}", self.name()));
        }
        self.untorn_bytes.store(bytes, Ordering::Release);
        Ok(())
    }

    fn has_fixed_len(&self) -> bool {
        self.fixed_len
    }

    fn alignment_bytes(&self) -> usize {
        if self.mode.direct { ALIGNMENT_BYTES } else { 1 }
    }

    fn identity(&self) -> Option<String> {
        sys::device_name(&self.path, &self.file.metadata().ok()?)
    }

    fn set_write_depth(&self, writes: u32) {
        self.rings.set_write_depth(writes);
    }

    fn io_counts(&self) -> IoCounts {
        let [syncs, writes, ring_writes] =
            [&self.syncs, &self.writes, &self.ring_writes].map(|count| count.load(Ordering::Relaxed));
        IoCounts { syncs, writes, ring_writes }
    }
}

#[cfg(test)]
#[path = "file_test.rs"]
mod tests;
