//! The FUSE file system: one folder with one file, `disk`, whose bytes are the emulated disk.
//!
//! Rules
//! 1. A write is split where its blocks belong to different streams or regions; the reply waits for the slowest piece.
//! 2. A flush of the block device on top arrives as fsync (datasync 0); a discard as fallocate with a punched hole.
//! 3. `statfs` reports blocks of 4,096 bytes, which the loop device uses as its discard granularity.
//! 4. Each server thread handles one request at a time; with a real clock it sleeps until the model says the request is
//!    done, so there are as many threads as the device has outstanding requests.

use super::access::Access;
use super::traffic::{Region, Traffic};
use crate::disk::{Disk, Ticket};
use crate::error::{DeviceError, Result};
use crate::labels::Labels;
use crate::model::Op;
use crate::trace::record::Recorder;
use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, KernelConfig, LockOwner,
    OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite,
    Request, WriteFlags,
};
use parking_lot::RwLock;
use std::cell::RefCell;
use std::ffi::OsStr;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

/// Name of the file.
pub const FILE_NAME: &str = "disk";
const FILE: INodeNo = INodeNo(2);
const BLOCK: u64 = 4096;
/// Attributes never change.
const FOREVER: Duration = Duration::from_secs(86_400);
const WRITE_BYTES_MAX: u32 = 1 << 20;

/// The label of a block of the mounted disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// The stream its writes go to.
    pub stream: u8,
    /// The region that counts it.
    pub region: Region,
}

/// The state that the server shares with its owner.
pub struct Shared {
    /// The disk.
    pub disk: Disk,
    /// Streams and regions by block.
    pub labels: RwLock<Labels<Label>>,
    /// Accesses by block.
    pub access: Access,
    /// Counts by kind of page, if requested.
    pub traffic: Option<Traffic>,
    /// Records requests, if requested.
    pub recorder: Option<Recorder>,
}

impl Shared {
    fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        let mut all: Option<Ticket> = None;
        self.pieces(offset, data.len() as u64, |at, range, label| {
            let piece = &data[range];
            let ticket = self.disk.begin_write(at, piece, label.stream)?;
            all = Some(all.map_or(ticket, |before| before.and(ticket)));
            let (lba, blocks) = touched(at, piece.len() as u64);
            self.access.written(lba, blocks);
            if let Some(traffic) = &self.traffic {
                traffic.written(label.region, at / BLOCK, piece);
            }
            Ok(())
        })?;
        self.record(Op::Write, touched(offset, data.len() as u64));
        all.map_or(Ok(()), |ticket| self.disk.wait(ticket))
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.disk.read(offset, buf)?;
        self.record(Op::Read, touched(offset, buf.len() as u64));
        self.pieces(offset, buf.len() as u64, |at, range, label| {
            self.access.read(label.region, touched(at, range.len() as u64).1);
            if let Some(traffic) = &self.traffic {
                traffic.read(label.region, at / BLOCK, &buf[range]);
            }
            Ok(())
        })
    }

    fn flush(&self) -> Result<()> {
        self.record(Op::Flush, (0, 0));
        self.disk.flush()
    }

    fn discard(&self, offset: u64, len: u64) -> Result<()> {
        self.disk.discard(offset, len)?;
        match covered(offset, len) {
            (_, 0) => {}
            whole => self.record(Op::Discard, whole),
        }
        Ok(())
    }

    fn record(&self, op: Op, (lba, blocks): (u32, u32)) {
        if let Some(recorder) = &self.recorder {
            recorder.record(op, lba.into(), blocks.into());
        }
    }

    /// Calls `f` for each piece with one label: byte offset on the disk, range of the buffer, label.
    fn pieces(
        &self,
        offset: u64,
        len: u64,
        mut f: impl FnMut(u64, std::ops::Range<usize>, Label) -> Result<()>,
    ) -> Result<()> {
        let end = offset.checked_add(len).filter(|end| *end <= self.disk.capacity_bytes());
        let Some(end) = end else {
            let capacity_blocks = self.disk.capacity_bytes() / BLOCK;
            return Err(DeviceError::OutOfRange { lba: offset / BLOCK, blocks: len.div_ceil(BLOCK), capacity_blocks });
        };
        let (first, last) = ((offset / BLOCK) as u32, end.div_ceil(BLOCK) as u32);
        self.labels.read().split(first, last - first, |lba, blocks, label| {
            let start = (u64::from(lba) * BLOCK).max(offset);
            let stop = (u64::from(lba + blocks) * BLOCK).min(end);
            f(start, (start - offset) as usize..(stop - offset) as usize, label)
        })
    }
}

/// The 4 KiB blocks that a range of bytes touches: the first one and their number.
fn touched(offset: u64, len: u64) -> (u32, u32) {
    let (first, end) = (offset / BLOCK, (offset + len).div_ceil(BLOCK));
    (first as u32, (end - first) as u32)
}

/// The 4 KiB blocks that a range of bytes covers completely: the first one and their number. A discard frees only
/// these.
fn covered(offset: u64, len: u64) -> (u32, u32) {
    let (first, end) = (offset.div_ceil(BLOCK), (offset + len) / BLOCK);
    (first as u32, end.saturating_sub(first) as u32)
}

/// The file system.
pub struct DiskFileSystem {
    shared: Arc<Shared>,
}

impl DiskFileSystem {
    /// Serves the shared disk.
    pub fn new(shared: Arc<Shared>) -> DiskFileSystem {
        DiskFileSystem { shared }
    }

    fn attributes(&self, inode: INodeNo) -> Option<FileAttr> {
        let size = self.shared.disk.capacity_bytes();
        let (kind, perm, nlink, size) = match inode {
            INodeNo::ROOT => (FileType::Directory, 0o755, 2, 0),
            FILE => (FileType::RegularFile, 0o600, 1, size),
            _ => return None,
        };
        let time = UNIX_EPOCH;
        let (ino, blocks, blksize) = (inode, size / 512, BLOCK as u32);
        let (uid, gid, rdev, flags) = (0, 0, 0, 0);
        let (atime, mtime, ctime, crtime) = (time, time, time, time);
        Some(FileAttr {
            ino,
            size,
            blocks,
            atime,
            mtime,
            ctime,
            crtime,
            kind,
            perm,
            nlink,
            uid,
            gid,
            rdev,
            blksize,
            flags,
        })
    }
}

fn errno(error: &DeviceError) -> Errno {
    match error {
        DeviceError::OutOfRange { .. } | DeviceError::Config(_) => Errno::EINVAL,
        DeviceError::Io { source, .. } => source.raw_os_error().map_or(Errno::EIO, Errno::from_i32),
        _ => Errno::EIO,
    }
}

fn answer(result: Result<()>, reply: ReplyEmpty) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(errno(&error)),
    }
}

impl Filesystem for DiskFileSystem {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        // Refusals answer with the nearest value the kernel allows, which then holds.
        let _ = config.set_max_write(WRITE_BYTES_MAX);
        let _ = config.set_max_background(256);
        let _ = config.set_congestion_threshold(192);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.attributes(FILE) {
            Some(attr) if parent == INodeNo::ROOT && name == FILE_NAME => reply.entry(&FOREVER, &attr, Generation(0)),
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(inode) {
            Some(attr) => reply.attr(&FOREVER, &attr),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        thread_local! {
            static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
        }
        BUFFER.with_borrow_mut(|buffer| {
            let left = self.shared.disk.capacity_bytes().saturating_sub(offset);
            buffer.resize(u64::from(size).min(left) as usize, 0);
            match self.shared.read(offset, buffer) {
                Ok(()) => reply.data(buffer),
                Err(error) => reply.error(errno(&error)),
            }
        });
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.shared.write(offset, data) {
            Ok(()) => reply.written(data.len() as u32),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        answer(self.shared.flush(), reply);
    }

    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        if mode & (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE) == 0 {
            return reply.error(Errno::EOPNOTSUPP);
        }
        answer(self.shared.discard(offset, length), reply);
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let blocks = self.shared.disk.capacity_bytes() / BLOCK;
        reply.statfs(blocks, 0, 0, 2, 0, BLOCK as u32, 255, BLOCK as u32);
    }

    fn readdir(&self, _: &Request, inode: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        if inode != INodeNo::ROOT {
            return reply.error(Errno::ENOTDIR);
        }
        let entries = [
            (INodeNo::ROOT, FileType::Directory, "."),
            (INodeNo::ROOT, FileType::Directory, ".."),
            (FILE, FileType::RegularFile, FILE_NAME),
        ];
        for (i, (inode, kind, name)) in entries.into_iter().enumerate().skip(offset as usize) {
            if reply.add(inode, i as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_touches_blocks_and_a_discard_frees_whole_ones() {
        assert_eq!((touched(512, 8192), covered(512, 8192)), ((0, 3), (1, 1)));
        assert_eq!((touched(4096, 4096), covered(4096, 4096)), ((1, 1), (1, 1)));
        assert_eq!(covered(512, 4096).1, 0);
        assert_eq!(covered(1024, 512).1, 0);
    }
}
