//! What the fuzzing targets share.
//!
//! | module | what |
//! |---|---|
//! | `input` | decisions taken from the bytes of an input |
//! | `bases` | small databases and backups that inputs damage |
//! | `judge` | what must hold of a database whose files are damaged |
//! | `calls` | calls of the API and their model |
//! | `values` | values of columns and their order |
//!
//! Rules
//! 1. An input alone decides what happens, so that it can be replayed: what it damages is committed in `bases/`.
//! 2. A broken law is a panic.

pub mod bases;
pub mod calls;
pub mod input;
pub mod judge;
pub mod values;

/// Memory that may be reserved. What is used is limited by `cargo xtask fuzz`.
const ADDRESS_SPACE_BYTES: u64 = 8 << 30;

/// Limits what a target may reserve, so that a length out of damaged bytes that is believed ends it; keeps memory that
/// is released for the next input.
pub fn start() {
    for option in [libc::M_MMAP_THRESHOLD, libc::M_TRIM_THRESHOLD] {
        // SAFETY: it changes how memory is taken from the system, not what was taken.
        unsafe { libc::mallopt(option, 1 << 30) };
    }
    // The shadow memory of a sanitizer is larger than any limit.
    if std::env::var_os("HIGHWATER_FUZZ_SANITIZER").is_some() {
        return;
    }
    let limit = libc::rlimit { rlim_cur: ADDRESS_SPACE_BYTES, rlim_max: ADDRESS_SPACE_BYTES };
    // SAFETY: the pointer is to a value that lives during the call.
    let failed = unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) };
    assert_eq!(failed, 0, "the limit of memory is set");
}

/// A folder for this process's files, in memory where the system has that.
pub fn folder() -> tempfile::TempDir {
    let shm = std::path::Path::new("/dev/shm");
    let made = if shm.is_dir() { tempfile::tempdir_in(shm) } else { tempfile::tempdir() };
    made.expect("a folder for files is made")
}
