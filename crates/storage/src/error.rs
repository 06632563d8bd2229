//! Errors of storage operations, and of opening a set of files.

use crate::EncryptionError;
use std::path::PathBuf;

/// Result of a storage operation.
pub type Result<T> = std::result::Result<T, StorageError>;

/// A failed I/O operation, with the operation, device and range for the message.
#[derive(Debug, thiserror::Error)]
#[error("{} failed: {source}", self.what())]
pub struct StorageError {
    /// The operation: "read", "write", "sync", "open" and so on.
    pub operation: &'static str,
    /// The device's [`name`](crate::Device::name).
    pub device: String,
    /// First byte of the range, 0 where there is none.
    pub offset: u64,
    /// Length of the range, 0 where there is none.
    pub len: u64,
    /// The operating system's error.
    #[source]
    pub source: std::io::Error,
}

impl StorageError {
    /// The operation, its range if it has one, and the device.
    fn what(&self) -> String {
        let StorageError { operation, device, offset, len, .. } = self;
        match (len, offset) {
            (0, 0) => format!("{operation} of {device}"),
            _ => format!("{operation} of {len} bytes at offset {offset} of {device}"),
        }
    }

    /// Whether the failed operation is a read.
    pub fn is_failed_read(&self) -> bool {
        self.operation == "read"
    }

    /// Whether the file cannot grow: the device or file system is full, a quota is used up, or the file has reached the
    /// limit of its size.
    pub fn is_full(&self) -> bool {
        use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        matches!(self.source.kind(), StorageFull | QuotaExceeded | FileTooLarge)
    }
}

/// Zeros at the start of a block device that is not in use: every common file system has its first block there.
pub const UNUSED_ZEROS_BYTES: usize = 128 << 10;

/// The process that has a folder open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    /// Not known: another process, or another handle of this one.
    Unknown,
    /// Another handle of this process.
    ThisProcess,
    /// A process.
    Process {
        /// Its number.
        id: u32,
        /// Its program.
        program: String,
    },
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Holder::Unknown => write!(f, "another process, or another handle of this one,"),
            Holder::ThisProcess => write!(f, "another handle of this process"),
            Holder::Process { id, program } => write!(f, "process {id} ({program})"),
        }
    }
}

/// The reason why the files of a database cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process, or another handle of this one, has the folder or device open.
    #[error("{} is in use: {by} has it open", .path.display())]
    InUse {
        /// The folder or device.
        path: PathBuf,
        /// The process that has it open, if it is known.
        by: Holder,
    },
    /// The folder has no database, and the caller did not request its creation.
    #[error("there is no database in {}", .0.display())]
    NotFound(PathBuf),
    /// The path of the folder leads to something else.
    #[error("{} is not a folder", .0.display())]
    NotAFolder(PathBuf),
    /// One of the files is missing, although others exist.
    #[error("{} is missing, but {} exists: this database is incomplete", .missing.display(), .present.display())]
    Incomplete {
        /// The first file that is missing.
        missing: PathBuf,
        /// A file that exists.
        present: PathBuf,
    },
    /// A block device for new files holds something.
    #[error(
        "{} holds something already: a database is made only on a block device that begins with {UNUSED_ZEROS_BYTES} \
         zero bytes (clear it with blkdiscard --zeroout --length {UNUSED_ZEROS_BYTES} if its contents are not needed)",
        .0.display()
    )]
    NotEmpty(PathBuf),
    /// The folder cannot be written.
    #[error("{} cannot be written: {source}", .path.display())]
    NotWritable {
        /// The folder or file.
        path: PathBuf,
        /// The operating system's error.
        #[source]
        source: std::io::Error,
    },
    /// A key that is wrong, missing or not needed.
    #[error(transparent)]
    Encryption(EncryptionError),
    /// Any other failure of the operating system.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_named_where_there_is_one() {
        let of = |offset, len| {
            let source = std::io::Error::other("a reason");
            StorageError { operation: "read", device: "/db/data".into(), offset, len, source }.to_string()
        };
        assert_eq!(of(0, 0), "read of /db/data failed: a reason");
        assert_eq!(of(0, 8), "read of 8 bytes at offset 0 of /db/data failed: a reason");
        assert_eq!(of(8, 0), "read of 0 bytes at offset 8 of /db/data failed: a reason");
    }
}
