//! The files of one database: `data`, `redo`, `doublewrite`; of an encrypted one `keys` too.
//!
//! Rules
//! 1. A set is open at most once: its folder, and the folder of the redo, stay locked until the last clone is dropped.
//! 2. Opening never removes or shortens a file. New files are empty, and all three names are durable before anyone can
//!    write into one of them.
//! 3. So if a file is missing and another one has contents, the missing file was lost: the error names it. If all
//!    existing files are empty, a creation was interrupted or never begun, and can be repeated. The engine decides
//!    about an empty or half-written `data`.
//! 4. The redo may be a block device of its own (`log_dir` names it, or is a folder in which `redo` links to it), and
//!    so may `data` (as a link). It counts as empty while it begins with zeros; a database is never created over
//!    anything else. A link to nothing is an error: the device is missing, and no file takes its place.
//! 5. A read-only set opens no file for writing, creates no file, and shares its lock with other readers. Its devices
//!    are overlays: writes stay in memory and temporary files, and are discarded.
//! 6. An encrypted set has a fourth file, `keys`, without which the others cannot be read (`encryption`).
//! 7. Other files in the folder are not changed, except one named `temporary`: a temporary file has that name for a
//!    moment, so an existing one is left from a crash.

mod found;
mod redo;
mod storage_set;

pub use redo::{forget_data, forget_redo, redo_path};
pub use storage_set::{SetOptions, StorageSet};

#[cfg(test)]
mod set_test;
