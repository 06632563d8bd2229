//! One interface for system calls and other differences between operating systems. Every `libc` call of this crate is
//! here.
//!
//! | file | of which systems | what is in it |
//! |---|---|---|
//! | `linux`, `uring` | Linux of 64 bits | direct I/O, io_uring, blocks reserved and released, untorn writes, hints |
//! | `portable` | all others | the same calls, each with the answer of a system that has none of that |
//! | `unix` | every Unix | reads and writes at an offset, kinds and identities of files, locks of folders, forks |
//! | `windows` | Windows | the same |
//!
//! What is durable when a sync returns:
//!
//! | system | a file: `File::sync_data`, `File::sync_all` | the entries of a folder |
//! |---|---|---|
//! | Linux and other Unix | `fdatasync`, `fsync`: past the cache of the device | `fsync` of the folder |
//! | macOS, iOS | `F_FULLFSYNC`: past the cache of the device (`fsync` is not, there) | the same of the folder |
//! | Windows | `FlushFileBuffers`: past the cache of the device | no call for it: NTFS and ReFS log them in order |
//!
//! A build with `--cfg highwater_portable` takes `portable` on Linux of 64 bits too: `cargo xtask targets` runs the
//! tests over it.

#[cfg_attr(
    all(
        target_os = "linux",
        target_pointer_width = "64",
        any(
            target_arch = "x86_64",
            target_arch = "aarch64",
            target_arch = "riscv64",
            target_arch = "loongarch64",
            target_arch = "powerpc64"
        ),
        not(highwater_portable)
    ),
    path = "linux.rs"
)]
#[cfg_attr(
    not(all(
        target_os = "linux",
        target_pointer_width = "64",
        any(
            target_arch = "x86_64",
            target_arch = "aarch64",
            target_arch = "riscv64",
            target_arch = "loongarch64",
            target_arch = "powerpc64"
        ),
        not(highwater_portable)
    )),
    path = "portable.rs"
)]
mod backend;
#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod family;

pub use backend::*;
pub(crate) use family::*;

/// Ways to open a file that the standard library does not offer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OpenFlags {
    /// Bypass the page cache; only if [`HAS_DIRECT_IO`].
    pub direct: bool,
    /// Each write is durable when it returns; only if [`HAS_DURABLE_WRITES`].
    pub each_write_durable: bool,
    /// It is a block device, which no other process may have open.
    pub exclusive: bool,
}

/// Expected lifetime of written bytes, with the numbers of Linux's `RWH_WRITE_LIFE_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum WriteLifetime {
    /// Nothing is known (`RWH_WRITE_LIFE_NOT_SET`).
    NotSet = 0,
    /// Overwritten soon (`RWH_WRITE_LIFE_SHORT`).
    Short = 2,
}

/// Fills the buffer with random bytes of the operating system, waiting until it has some.
///
/// # Errors
/// The system's.
pub(crate) fn fill_random(buf: &mut [u8]) -> std::io::Result<()> {
    getrandom::fill(buf).map_err(std::io::Error::from)
}
