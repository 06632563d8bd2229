//! Any system: files through its cache, one read or write at a time, durable by the standard library's syncs.
//!
//! Rules
//! 1. Features of other systems are answered as by a file system without them: not supported, not known, none. The
//!    device compensates by writing zeros and by syncing ([`FileDevice`](crate::FileDevice), rules 1, 3 and 7).
//! 2. Growth is written with zeros: a full disk is an error of the growth. A discard frees nothing.

use super::{OpenFlags, WriteLifetime};
use crate::{Read, Write};
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Result};

/// Whether files can be read and written past the page cache.
pub(crate) const HAS_DIRECT_IO: bool = false;
/// Whether a file can be opened so that each of its writes is durable when it returns.
pub(crate) const HAS_DURABLE_WRITES: bool = false;

/// Has a file opened with these flags. A block device may be open elsewhere too: only Linux of 64 bits refuses that.
pub(crate) fn with_flags(options: &mut OpenOptions, flags: OpenFlags) -> &mut OpenOptions {
    let OpenFlags { direct, each_write_durable, exclusive } = flags;
    debug_assert!(!direct && !each_write_durable);
    let _ = exclusive;
    options
}

/// Creates a file without a name: not supported on any Unix but Linux. (Windows has its own.)
#[cfg(unix)]
pub(crate) fn create_unnamed(_: &std::path::Path, _: OpenFlags) -> Result<File> {
    unsupported()
}

/// No rings: a batch is written and read by its caller, one after another.
#[derive(Debug, Default)]
pub(crate) struct Rings;

impl Rings {
    /// There is no queue.
    pub(crate) fn set_write_depth(&self, _writes: u32) {}

    /// Writes nothing.
    pub(crate) fn write(
        &self,
        _: &File,
        _: &[Write<'_>],
        _is_untorn: bool,
    ) -> Option<std::result::Result<(), (usize, Error)>> {
        None
    }

    /// Reads nothing and reports nothing.
    pub(crate) fn read(&self, _: &File, _: &mut [Read<'_>], _done: impl FnMut(usize, Result<&[u8]>)) {}

    /// No ring is available.
    pub(crate) fn may_be_had(&self) -> bool {
        false
    }
}

fn unsupported<T>() -> Result<T> {
    Err(Error::from(ErrorKind::Unsupported))
}

/// Whether the error means that the system does not support the call.
pub(crate) fn is_unsupported(error: &Error) -> bool {
    error.kind() == ErrorKind::Unsupported
}

/// Minimum and maximum size of an untorn write: not supported.
pub(crate) fn untorn_limits(_: &File) -> Option<(u32, u32)> {
    None
}

/// Not supported.
pub(crate) fn write_untorn_at(_: &File, _data: &[u8], _offset: u64) -> Result<()> {
    unsupported()
}

/// The next sync writes all.
pub(crate) fn begin_write_back(_: &File, _offset: u64, _len: u64) -> Result<()> {
    Ok(())
}

/// Not supported: the caller writes zeros.
pub(crate) fn allocate(_: &File, _offset: u64, _len: u64) -> Result<()> {
    unsupported()
}

/// Not supported: the blocks stay the file's.
pub(crate) fn punch_hole(_: &File, _offset: u64, _len: u64) -> Result<()> {
    unsupported()
}

/// Bytes of the largest file that this process may write: not queried.
pub(crate) fn file_size_limit() -> Option<u64> {
    None
}

/// Whether a part of the range has no initialized blocks: not known.
pub(crate) fn has_hole(_: &File, _offset: u64, _len: u64) -> bool {
    false
}

/// Whether an overwrite changes no metadata of the file system: not known.
pub(crate) fn overwrites_in_place(_: &File, _len: u64) -> bool {
    false
}

/// Whether writing allocates no block: not known.
pub(crate) fn is_allocated(_: &File, _offset: u64, _len: u64) -> bool {
    false
}

/// Advice that is not given here.
pub fn forget_cached(_: &File) {}

/// A hint that is not given here.
pub(crate) fn hint_lifetime(_: &File, _: WriteLifetime) {}

/// The lifetime hint that the file system has: none.
#[cfg(test)]
pub(crate) fn hinted_lifetime(_: &File) -> Option<u64> {
    None
}
