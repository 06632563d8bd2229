//! The storage error: which operation, on what, where, and why.

/// Result of a storage operation.
pub type Result<T> = std::result::Result<T, StorageError>;

/// An I/O operation that failed, with all that is needed to say so to a user.
#[derive(Debug, thiserror::Error)]
#[error("{operation} of {len} bytes at offset {offset} of {device} failed: {source}")]
pub struct StorageError {
    /// What was tried: "read", "write", "sync", "open" and so on.
    pub operation: &'static str,
    /// The device's [`name`](crate::Device::name).
    pub device: String,
    /// First byte of the range, 0 where there is none.
    pub offset: u64,
    /// Length of the range, 0 where there is none.
    pub len: u64,
    /// The operating system's answer.
    #[source]
    pub source: std::io::Error,
}

impl StorageError {
    /// Whether the device or file system is full.
    pub fn is_full(&self) -> bool {
        matches!(self.source.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded)
    }
}
