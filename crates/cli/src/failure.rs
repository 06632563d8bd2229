//! The failure of a command, with its exit status.

use crate::import::CsvError;
use highwater::Error as EngineError;
use highwater_bench::Error as BenchError;
use highwater_storage::{EncryptionError, OpenError};

/// A command's failure.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Wrong use: exit status 2.
    #[error("{0}")]
    Usage(String),
    /// Another process has the database open: exit status 2.
    #[error("{0}")]
    InUse(String),
    /// Something went wrong: exit status 1.
    #[error("{0}")]
    Failed(String),
    /// The result is negative (a check found something) and has been reported already: exit status 1.
    #[error("")]
    NotFine,
}

impl Failure {
    /// The exit status.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Failure::Usage(_) | Failure::InUse(_) => 2,
            Failure::Failed(_) | Failure::NotFine => 1,
        }
    }

    /// With what to do `instead` while another process has the database open.
    pub(crate) fn with_instead(self, instead: &str) -> Failure {
        match self {
            Failure::InUse(reason) => Failure::InUse(format!("{reason}: {instead}")),
            other => other,
        }
    }

    /// The line for the user, if there is still something to say.
    pub(crate) fn message(&self) -> Option<String> {
        match self {
            Failure::NotFine => None,
            other => Some(other.to_string().replace('\n', " ")),
        }
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Failure {
        use OpenError::{Encryption, InUse, NotAFolder, NotFound};
        match error {
            EngineError::Open(Encryption(EncryptionError::Table { .. })) => Failure::Failed(error.to_string()),
            EngineError::Open(InUse { .. }) => Failure::InUse(error.to_string()),
            EngineError::BadOption { .. } | EngineError::Open(NotAFolder(_) | NotFound(_) | Encryption(_)) => {
                Failure::Usage(error.to_string())
            }
            error => Failure::Failed(error.to_string()),
        }
    }
}

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Failure {
        match error {
            BenchError::Engine(error) => error.into(),
            BenchError::Usage(reason) => Failure::Usage(reason),
            error => Failure::Failed(error.to_string()),
        }
    }
}

impl From<CsvError> for Failure {
    fn from(error: CsvError) -> Failure {
        match error {
            CsvError::Usage(reason) => Failure::Usage(reason),
            CsvError::Database(error) => error.into(),
            error => Failure::Failed(error.to_string()),
        }
    }
}
