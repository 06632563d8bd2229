//! Linux of 64 bits: direct I/O, batches through io_uring, blocks reserved and released, untorn writes, hints. Nothing
//! here is needed for correctness: if a kernel or a file system refuses a call, `portable`'s way is used.

use super::{OpenFlags, WriteLifetime};
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Result};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

mod uring;

pub(crate) use uring::Rings;

/// Whether files can be read and written past the page cache.
pub(crate) const HAS_DIRECT_IO: bool = true;
/// Whether a file can be opened so that each of its writes is durable when it returns.
pub(crate) const HAS_DURABLE_WRITES: bool = true;

/// `fallocate` mode: reserve blocks and extend the file's size.
const ALLOCATE: libc::c_int = 0;
/// `fallocate` mode: release the range's blocks, keep the size.
const PUNCH: libc::c_int = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;

fn bits(flags: OpenFlags) -> i32 {
    let OpenFlags { direct, each_write_durable, exclusive } = flags;
    let bits = [(direct, libc::O_DIRECT), (each_write_durable, libc::O_DSYNC), (exclusive, libc::O_EXCL)];
    bits.into_iter().filter(|(is_set, _)| *is_set).fold(0, |all, (_, bit)| all | bit)
}

/// Has a file opened with these flags.
pub(crate) fn with_flags(options: &mut OpenOptions, flags: OpenFlags) -> &mut OpenOptions {
    options.custom_flags(bits(flags))
}

/// Creates a file without a name.
///
/// # Errors
/// The system's; the file system or the kernel may not know of such files ([`is_unsupported`]).
pub(crate) fn create_unnamed(folder: &Path, flags: OpenFlags) -> Result<File> {
    let made = OpenOptions::new().read(true).write(true).custom_flags(bits(flags) | libc::O_TMPFILE).open(folder);
    made.map_err(|error| match error.kind() {
        // A kernel that does not know them takes it for the opening of a folder.
        ErrorKind::IsADirectory => Error::from_raw_os_error(libc::EOPNOTSUPP),
        _ => error,
    })
}

/// Minimum and maximum size of an untorn write to the file; `None` if the kernel does not support such writes.
pub(crate) fn untorn_limits(file: &File) -> Option<(u32, u32)> {
    // SAFETY: all its fields are integers, for which zeros are a value.
    let mut found: libc::statx = unsafe { std::mem::zeroed() };
    let (path, flags) = (c"".as_ptr(), libc::AT_EMPTY_PATH);
    // SAFETY: the descriptor is open while `file` is borrowed; the path is a string that ends with zero, and the kernel
    // writes no more than a `statx` through the pointer, which outlives the call.
    let failed = unsafe { libc::statx(file.as_raw_fd(), path, flags, libc::STATX_WRITE_ATOMIC, &raw mut found) };
    let is_known = failed == 0 && found.stx_mask & libc::STATX_WRITE_ATOMIC != 0;
    is_known.then_some((found.stx_atomic_write_unit_min, found.stx_atomic_write_unit_max))
}

/// Writes the bytes in one write that no power cut tears.
pub(crate) fn write_untorn_at(file: &File, data: &[u8], offset: u64) -> Result<()> {
    let at = libc::off_t::try_from(offset).map_err(|_| Error::from(ErrorKind::FileTooLarge))?;
    let piece = libc::iovec { iov_base: data.as_ptr().cast_mut().cast(), iov_len: data.len() };
    loop {
        // SAFETY: the descriptor is open while `file` is borrowed; the kernel only reads the bytes of `data`, through
        // one vector that outlives the call.
        let written = unsafe { libc::pwritev2(file.as_raw_fd(), &raw const piece, 1, at, libc::RWF_ATOMIC) };
        match usize::try_from(written) {
            Ok(bytes) if bytes == data.len() => return Ok(()),
            Ok(_) => return Err(Error::from(ErrorKind::WriteZero)),
            Err(_) => {}
        }
        let error = Error::last_os_error();
        if error.kind() != ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Has the kernel begin to write the dirty pages of the range, and waits for none of them. Where it cannot, the next
/// sync writes them.
pub(crate) fn begin_write_back(file: &File, offset: u64, len: u64) -> Result<()> {
    let (offset, len) = signed(offset, len)?;
    // SAFETY: the descriptor is open while `file` is borrowed; sync_file_range touches no memory of ours.
    if unsafe { libc::sync_file_range(file.as_raw_fd(), offset, len, libc::SYNC_FILE_RANGE_WRITE) } == 0 {
        return Ok(());
    }
    let error = Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EINTR | libc::EINVAL | libc::ENOSYS | libc::EOPNOTSUPP | libc::ESPIPE) => Ok(()),
        _ => Err(error),
    }
}

/// Extends the file to `offset + len` with blocks reserved, so that writing them cannot run out of space.
pub(crate) fn allocate(file: &File, offset: u64, len: u64) -> Result<()> {
    fallocate(file, ALLOCATE, offset, len)
}

/// Whether the error means that the file system or the kernel does not support the call.
pub(crate) fn is_unsupported(error: &Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS))
}

/// Bytes of the largest file that this process may write; `None` without a limit.
pub(crate) fn file_size_limit() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the kernel writes one `rlimit` through the pointer, which outlives the call.
    let answer = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) };
    (answer == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

/// Whether a part of the range has no initialized blocks; `false` where the file system does not know.
pub(crate) fn has_hole(file: &File, offset: u64, len: u64) -> bool {
    let Ok(from) = libc::off_t::try_from(offset) else { return false };
    // SAFETY: the descriptor is open while `file` is borrowed; lseek touches no memory of ours. No one relies on the
    // file's position: reads and writes name their offsets.
    let hole = unsafe { libc::lseek(file.as_raw_fd(), from, libc::SEEK_HOLE) };
    u64::try_from(hole).is_ok_and(|hole| hole < offset.saturating_add(len))
}

/// Releases the blocks of the range to the file system.
pub(crate) fn punch_hole(file: &File, offset: u64, len: u64) -> Result<()> {
    fallocate(file, PUNCH, offset, len)
}

/// A range as system calls take it.
fn signed(offset: u64, len: u64) -> Result<(i64, i64)> {
    let too_large = |_| Error::from(ErrorKind::FileTooLarge);
    Ok((i64::try_from(offset).map_err(too_large)?, i64::try_from(len).map_err(too_large)?))
}

fn fallocate(file: &File, mode: libc::c_int, offset: u64, len: u64) -> Result<()> {
    let (offset, len) = signed(offset, len)?;
    loop {
        // SAFETY: the descriptor is open while `file` is borrowed; fallocate touches no memory of ours.
        if unsafe { libc::fallocate(file.as_raw_fd(), mode, offset, len) } == 0 {
            return Ok(());
        }
        let error = Error::last_os_error();
        if error.kind() != ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Flags of extents of which an overwrite may allocate blocks: FIEMAP_EXTENT_UNKNOWN, _DELALLOC, _ENCODED,
/// _DATA_INLINE, _DATA_TAIL, _SHARED.
const TAKES_BLOCKS: u32 = 0x2 | 0x4 | 0x8 | 0x200 | 0x400 | 0x2000;
/// FIEMAP_EXTENT_UNWRITTEN: blocks that are there, but read as zeros.
const UNWRITTEN: u32 = 0x800;

/// Whether overwriting any byte of the file up to `len` changes no metadata of the file system: its blocks are
/// allocated, initialized and not shared, and the file system does not copy on write. False if the file system does not
/// report this.
pub(crate) fn overwrites_in_place(file: &File, len: u64) -> bool {
    is_mapped(file, 0, len, TAKES_BLOCKS | UNWRITTEN)
}

/// Whether writing the range allocates no block: all its blocks are allocated and not shared. False if the file system
/// does not report this.
pub(crate) fn is_allocated(file: &File, offset: u64, len: u64) -> bool {
    is_mapped(file, offset, offset.saturating_add(len), TAKES_BLOCKS)
}

/// Whether every byte from `from` to `end` is in blocks that have none of the flags, on a file system that writes in
/// place.
fn is_mapped(file: &File, from: u64, end: u64, refused: u32) -> bool {
    /// Extents of one request.
    const BATCH: usize = 128;
    if copies_on_write(file) {
        return false;
    }
    let mut known = from;
    while known < end {
        let mut map = FileMap { start: known, length: end - known, flags: FileMap::SYNC, ..FileMap::default() };
        let mut extents = [Extent::default(); BATCH];
        map.extent_count = BATCH as u32;
        let mut request = MapRequest { map, extents };
        // SAFETY: the descriptor is open while `file` is borrowed; the kernel reads the header and writes at most
        // `extent_count` extents after it, which is what `MapRequest` has space for, laid out as the kernel lays it
        // out.
        let asked = unsafe { libc::ioctl(file.as_raw_fd(), FileMap::REQUEST, &raw mut request) };
        (map, extents) = (request.map, request.extents);
        if asked != 0 || map.mapped_extents == 0 {
            return false;
        }
        for extent in &extents[..(map.mapped_extents as usize).min(BATCH)] {
            if extent.logical > known || extent.flags & refused != 0 {
                return false;
            }
            known = known.max(extent.logical.saturating_add(extent.length));
        }
    }
    true
}

/// Whether the file is on a file system that writes changed blocks to other places.
fn copies_on_write(file: &File) -> bool {
    /// Magic numbers of Btrfs, ZFS and bcachefs.
    const NUMBERS: [u32; 3] = [0x9123_683E, 0x2FC1_2FC1, 0xCA45_1A4E];
    let mut found = std::mem::MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the descriptor is open while `file` is borrowed; the kernel fills the struct, which is read only if it
    // did.
    let number = unsafe {
        if libc::fstatfs(file.as_raw_fd(), found.as_mut_ptr()) != 0 {
            return false;
        }
        found.assume_init().f_type as u32
    };
    NUMBERS.contains(&number)
}

/// The kernel's `struct fiemap`, followed by space for extents.
#[repr(C)]
struct MapRequest<const N: usize> {
    map: FileMap,
    extents: [Extent; N],
}

/// `struct fiemap`, without the extents after it.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct FileMap {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
}

impl FileMap {
    /// `FS_IOC_FIEMAP`.
    const REQUEST: libc::Ioctl = 0xC020_660B_u32 as libc::Ioctl;
    /// `FIEMAP_FLAG_SYNC`: write dirty pages first.
    const SYNC: u32 = 1;
}

/// `struct fiemap_extent`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved_64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

const _: () = assert!(size_of::<FileMap>() == 32 && size_of::<Extent>() == 56);

const F_LINUX_SPECIFIC_BASE: libc::c_int = 1024;

/// Drops the clean pages of a file from the page cache. It is advice; a refusal changes nothing.
pub fn forget_cached(file: &File) {
    // SAFETY: the descriptor is open as long as `file`; the call touches no memory of this process.
    let _ = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
}

#[cfg(test)]
const F_GET_RW_HINT: libc::c_int = F_LINUX_SPECIFIC_BASE + 11;
const F_SET_RW_HINT: libc::c_int = F_LINUX_SPECIFIC_BASE + 12;

/// The lifetime hint that the file system has, as a number; `None` if it keeps no hints.
#[cfg(test)]
pub(crate) fn hinted_lifetime(file: &File) -> Option<u64> {
    let mut value = u64::MAX;
    // SAFETY: the descriptor is open while `file` is borrowed; the kernel writes one u64 through the pointer, which
    // outlives the call.
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), F_GET_RW_HINT, std::ptr::from_mut(&mut value)) };
    (answer == 0).then_some(value)
}

/// Passes the expected lifetime of this file's bytes to the file system. It is a hint: most file systems refuse it, and
/// nothing depends on it.
pub(crate) fn hint_lifetime(file: &File, lifetime: WriteLifetime) {
    let value = lifetime as u64;
    // SAFETY: the descriptor is open while `file` is borrowed; the kernel reads one u64 through the pointer, which
    // outlives the call. The result is ignored: a refused hint changes nothing.
    unsafe { libc::fcntl(file.as_raw_fd(), F_SET_RW_HINT, std::ptr::from_ref(&value)) };
}
