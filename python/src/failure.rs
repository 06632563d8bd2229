//! Errors of the engine as exceptions.

use highwater::Error;
use pyo3::prelude::*;
use pyo3::types::PyType;

/// How a call can fail.
pub enum Failure {
    /// The engine refused it.
    Engine(Error),
    /// It is wrong.
    Usage(String),
    /// A value does not fit its column.
    Value(String),
    /// Python has raised it.
    Python(PyErr),
}

/// Result of a call.
pub type Result<T> = std::result::Result<T, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Engine(error)
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Failure {
        Failure::Python(error)
    }
}

/// The class of an error in `highwater._errors`.
fn class_of(error: &Error) -> &'static str {
    match error {
        Error::DuplicateKey { .. } => "DuplicateKey",
        Error::LockWaitTimeout => "LockTimeout",
        Error::LockNotAvailable { .. } => "LockNotAvailable",
        Error::Deadlock => "Deadlock",
        Error::Interrupted => "Interrupted",
        Error::WriteConflict => "WriteConflict",
        Error::NoSuchTable { .. } => "NoSuchTable",
        Error::TableExists { .. } => "TableExists",
        Error::TableDropped { .. } | Error::TableChanged { .. } => "TableChanged",
        Error::NoSuchColumn { .. } => "NoSuchColumn",
        Error::NoSuchIndex { .. } => "NoSuchIndex",
        Error::Schema(_) | Error::Collation { .. } => "SchemaError",
        Error::BadValue { .. } | Error::Conversion(_) => "BadValue",
        Error::KeyTooLong { .. } | Error::EntryTooLong { .. } => "KeyTooLong",
        Error::RowTooLarge { .. } => "RowTooLarge",
        Error::BadOption { .. } => "BadOption",
        Error::Open(_) | Error::Incompatible(_) => "OpenError",
        Error::CorruptPage { .. } | Error::Corrupt(_) => "Corrupt",
        Error::Storage(_) => "StorageError",
        Error::DiskFull { .. } => "DiskFull",
        Error::Poisoned(_) => "Stopped",
        Error::Closed => "Closed",
        Error::Forked => "Forked",
        Error::NotServed { .. } => "NotServed",
        Error::ReaderDisconnected { .. } => "ReaderDisconnected",
        Error::Usage(_) => "UsageError",
        _ => "Error",
    }
}

/// The table and the index that an error is about.
fn place_of(error: &Error) -> (Option<&str>, Option<&str>) {
    match error {
        Error::DuplicateKey { table, index } | Error::NoSuchIndex { table, index } => (Some(table), Some(index)),
        Error::LockNotAvailable { table, index } => (Some(table), index.as_deref()),
        Error::NoSuchTable { table }
        | Error::TableExists { table }
        | Error::TableDropped { table }
        | Error::TableChanged { table }
        | Error::NoSuchColumn { table, .. } => (Some(table), None),
        _ => (None, None),
    }
}

/// A class of `highwater._errors`.
///
/// # Errors
/// The package is not whole.
pub fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyType>> {
    Ok(py.import("highwater._errors")?.getattr(name)?.cast_into::<PyType>()?)
}

fn raised(py: Python<'_>, name: &str, message: String, place: (Option<&str>, Option<&str>)) -> PyResult<PyErr> {
    let exception = class(py, name)?.call1((message,))?;
    if let Some(table) = place.0 {
        exception.setattr("table", table)?;
    }
    if let Some(index) = place.1 {
        exception.setattr("index", index)?;
    }
    Ok(PyErr::from_value(exception))
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> PyErr {
        let (name, message, place) = match &failure {
            Failure::Python(_) => ("", String::new(), (None, None)),
            Failure::Usage(message) => ("UsageError", message.clone(), (None, None)),
            Failure::Value(message) => ("BadValue", message.clone(), (None, None)),
            Failure::Engine(error) => (class_of(error), error.to_string(), place_of(error)),
        };
        match failure {
            Failure::Python(error) => error,
            _ => Python::attach(|py| raised(py, name, message, place).unwrap_or_else(|error| error)),
        }
    }
}
