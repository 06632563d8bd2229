//! Errors of other engines as the bench's.
//!
//! Rule: what can be tried again is the engine's own [`WriteConflict`](highwater::Error::WriteConflict), which
//! workloads know; everything else is a text with the name of what failed.

use highwater_bench::Error;

/// Something failed for good.
pub(crate) fn failed(what: &str, reason: impl std::fmt::Display) -> Error {
    Error::Server(format!("{what}: {reason}"))
}

/// The transaction can be tried again.
pub(crate) fn conflict() -> Error {
    highwater::Error::WriteConflict.into()
}

/// The primary key is there already.
pub(crate) fn duplicate(table: &str) -> Error {
    highwater::Error::DuplicateKey { table: table.into(), index: "PRIMARY".into() }.into()
}
