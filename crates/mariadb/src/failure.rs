//! Codes of results, and the last failure of a thread.

use crate::abi::Bytes;
use highwater::{Error, Result};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a function returns: `hw_code` of the header.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Done.
    Ok = 0,
    /// There is no such row.
    NotFound = 1,
    /// A unique key exists already.
    Duplicate = 2,
    /// Waited too long for a lock.
    LockTimeout = 3,
    /// A lock is not granted at once.
    LockRefused = 4,
    /// The transaction was rolled back.
    Deadlock = 5,
    /// Another thread interrupted the call.
    Interrupted = 6,
    /// The row changed after the snapshot.
    Conflict = 7,
    /// There is no such table.
    NoTable = 8,
    /// There is such a table already.
    TableExists = 9,
    /// The table is not what it was.
    TableChanged = 10,
    /// There is no space left.
    DiskFull = 11,
    /// A row is too large.
    RowTooLarge = 12,
    /// A key is too long.
    KeyTooLong = 13,
    /// A value does not fit its column.
    BadValue = 14,
    /// Something is damaged.
    Corrupt = 15,
    /// The database has stopped.
    Stopped = 16,
    /// A table cannot be so.
    Schema = 17,
    /// There is no such prepared transaction.
    NoXid = 18,
    /// There is such a prepared transaction already.
    DuplicateXid = 19,
    /// A prepared transaction has changed the table.
    InPrepared = 20,
    /// Something else.
    Other = 21,
    /// A mistake in the engine.
    Panic = 22,
}

fn code_of(error: &Error) -> Code {
    match error {
        Error::DuplicateKey { .. } => Code::Duplicate,
        Error::LockWaitTimeout => Code::LockTimeout,
        Error::LockNotAvailable { .. } => Code::LockRefused,
        Error::Deadlock => Code::Deadlock,
        Error::Interrupted => Code::Interrupted,
        Error::WriteConflict => Code::Conflict,
        Error::NoSuchTable { .. } => Code::NoTable,
        Error::TableExists { .. } => Code::TableExists,
        Error::TableDropped { .. } | Error::TableChanged { .. } => Code::TableChanged,
        Error::DiskFull { .. } => Code::DiskFull,
        Error::RowTooLarge { .. } | Error::EntryTooLong { .. } => Code::RowTooLarge,
        Error::KeyTooLong { .. } => Code::KeyTooLong,
        Error::BadValue { .. } => Code::BadValue,
        Error::CorruptPage { .. } | Error::Corrupt(_) => Code::Corrupt,
        Error::Poisoned(_) | Error::Closed | Error::Forked => Code::Stopped,
        Error::Schema(_) => Code::Schema,
        Error::NoSuchXid { .. } => Code::NoXid,
        Error::DuplicateXid { .. } => Code::DuplicateXid,
        Error::TableInPrepared { .. } => Code::InPrepared,
        _ => Code::Other,
    }
}

#[derive(Default)]
struct Last {
    text: String,
    index: String,
}

thread_local! {
    static LAST: RefCell<Last> = RefCell::default();
}

fn remember(text: String, index: &str) {
    LAST.with_borrow_mut(|last| {
        last.text = text;
        last.index.clear();
        last.index.push_str(index);
    });
}

/// The code of an error, which the thread remembers.
#[cold]
pub fn code_and_remember(error: &Error) -> Code {
    let index = match error {
        Error::DuplicateKey { index, .. } | Error::LockNotAvailable { index: Some(index), .. } => index,
        _ => "",
    };
    remember(error.to_string(), index);
    code_of(error)
}

/// Runs a call: its errors become codes, and so does a panic.
#[inline]
pub fn guarded(call: impl FnOnce() -> Result<Code>) -> i32 {
    let code = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(code)) => code,
        Ok(Err(error)) => code_and_remember(&error),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("(no text)");
            remember(format!("a mistake in the engine: {text}"), "");
            Code::Panic
        }
    };
    code as i32
}

/// Found or not.
#[inline]
pub fn found(is_found: bool) -> Code {
    if is_found { Code::Ok } else { Code::NotFound }
}

/// What the thread's last failure was, as text.
#[unsafe(no_mangle)]
pub extern "C" fn hw_error_text() -> Bytes {
    LAST.with_borrow(|last| Bytes::of(last.text.as_bytes()))
}

/// The index that it was about.
#[unsafe(no_mangle)]
pub extern "C" fn hw_error_index() -> Bytes {
    LAST.with_borrow(|last| Bytes::of(last.index.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_with_its_text() {
        assert_eq!(guarded(|| panic!("row {}", 7)), Code::Panic as i32);
        assert_eq!(hw_error_text().text(), "a mistake in the engine: row 7");
    }

    #[test]
    fn a_duplicate_names_its_index() {
        let error = || Error::DuplicateKey { table: "t".into(), index: "by_name".into() };
        assert_eq!(guarded(|| Err(error())), Code::Duplicate as i32);
        assert_eq!(hw_error_index().text(), "by_name");
        assert_eq!(guarded(|| Err(Error::Deadlock)), Code::Deadlock as i32);
        assert_eq!(hw_error_index().text(), "");
    }
}
