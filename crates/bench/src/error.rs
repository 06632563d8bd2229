//! The error type of the bench and of the crates above it.

use std::path::PathBuf;

/// Result of a workload operation.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of a workload or a measurement.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store under test refused.
    #[error(transparent)]
    Engine(#[from] highwater::Error),
    /// Options that contradict each other or the database found.
    #[error("{0}")]
    Usage(String),
    /// The database does not hold what the workload loaded.
    #[error("{0}")]
    Data(String),
    /// A database server does not start, does not stop or refuses a statement.
    #[error("{0}")]
    Server(String),
    /// A file of the bench (report, result, acknowledgements) cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// An emulated device refused.
    #[error(transparent)]
    Device(#[from] highwater_device::DeviceError),
    /// A step of longer work failed.
    #[error("{what}: {source}")]
    During {
        /// The step.
        what: String,
        /// The error.
        source: Box<Error>,
    },
}

impl Error {
    /// Whether the transaction can be retried: deadlock, a lock wait that timed out or was refused, write conflict.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Error::Engine(error) if error.is_retryable())
    }

    /// A failed file operation.
    pub fn file(path: impl Into<PathBuf>, source: std::io::Error) -> Error {
        Error::File { path: path.into(), source }
    }
}
