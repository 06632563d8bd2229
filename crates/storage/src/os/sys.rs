//! The system calls that the standard library does not offer. Every `libc` call of this crate is here.

use std::fs::File;
use std::io::{Error, Result};
use std::os::fd::AsRawFd;

/// `fallocate` mode: reserve blocks and extend the file's size.
const ALLOCATE: libc::c_int = 0;
/// `fallocate` mode: give the range's blocks back, keep the size.
const PUNCH: libc::c_int = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;

/// How long written bytes are expected to live, as the kernel's `RWH_WRITE_LIFE_*` numbers them.
#[derive(Clone, Copy, Debug)]
#[repr(u64)]
pub(super) enum WriteLifetime {
    /// Overwritten soon (`RWH_WRITE_LIFE_SHORT`).
    Short = 2,
    /// Overwritten some day (`RWH_WRITE_LIFE_MEDIUM`).
    Medium = 3,
}

/// Extends the file to `offset + len` with blocks reserved, so that writing them cannot run out of space.
pub(super) fn allocate(file: &File, offset: u64, len: u64) -> Result<()> {
    fallocate(file, ALLOCATE, offset, len)
}

/// Gives the blocks of the range back to the file system.
pub(super) fn punch_hole(file: &File, offset: u64, len: u64) -> Result<()> {
    fallocate(file, PUNCH, offset, len)
}

fn fallocate(file: &File, mode: libc::c_int, offset: u64, len: u64) -> Result<()> {
    let too_large = |_| Error::from(std::io::ErrorKind::FileTooLarge);
    let (offset, len) = (i64::try_from(offset).map_err(too_large)?, i64::try_from(len).map_err(too_large)?);
    loop {
        // SAFETY: the descriptor is open while `file` is borrowed; fallocate touches no memory of ours.
        if unsafe { libc::fallocate(file.as_raw_fd(), mode, offset, len) } == 0 {
            return Ok(());
        }
        let error = Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Tells the file system how long this file's bytes live. A hint: most refuse, nothing depends on it.
pub(super) fn hint_lifetime(file: &File, lifetime: WriteLifetime) {
    const F_LINUX_SPECIFIC_BASE: libc::c_int = 1024;
    const F_SET_RW_HINT: libc::c_int = F_LINUX_SPECIFIC_BASE + 12;
    let value = lifetime as u64;
    // SAFETY: the descriptor is open while `file` is borrowed; the kernel reads one u64 through the pointer, which
    // outlives the call. The result is ignored: a refused hint changes nothing.
    unsafe { libc::fcntl(file.as_raw_fd(), F_SET_RW_HINT, std::ptr::from_ref(&value)) };
}
