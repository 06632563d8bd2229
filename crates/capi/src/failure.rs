//! Codes and errors.
//!
//! Rules
//! 1. A function returns a code. A failed call also returns a `highwater_error`, which the caller owns. It is not
//!    stored in a thread or a handle, where another call would overwrite it and a program that changes threads would
//!    not find it.
//! 2. `HIGHWATER_NOT_FOUND` is an answer, not a failure: there is no error then.

use crate::handle::{self, Out, c_string, opaque};
use highwater::Error;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The result of a function.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum highwater_code {
    /// Done.
    HIGHWATER_OK = 0,
    /// There is no such row, or no further one. Not a failure.
    HIGHWATER_NOT_FOUND = 1,
    /// A unique key exists already.
    HIGHWATER_DUPLICATE_KEY = 2,
    /// Another transaction held a lock for too long. The call was undone; the transaction can continue.
    HIGHWATER_LOCK_TIMEOUT = 3,
    /// A lock that is not waited for is held by another transaction. The call was undone; the transaction can continue.
    HIGHWATER_LOCK_NOT_AVAILABLE = 4,
    /// The transaction was rolled back to end a deadlock: run it again.
    HIGHWATER_DEADLOCK = 5,
    /// Another thread has interrupted the call. It was undone; the transaction can continue.
    HIGHWATER_INTERRUPTED = 6,
    /// The row changed after the transaction's snapshot: run the transaction again.
    HIGHWATER_WRITE_CONFLICT = 7,
    /// There is no such table.
    HIGHWATER_NO_SUCH_TABLE = 8,
    /// There is such a table already.
    HIGHWATER_TABLE_EXISTS = 9,
    /// The table was dropped or changed since its handle was made: open it again.
    HIGHWATER_TABLE_CHANGED = 10,
    /// The table has no such column.
    HIGHWATER_NO_SUCH_COLUMN = 11,
    /// The table has no such index.
    HIGHWATER_NO_SUCH_INDEX = 12,
    /// A table or an index cannot be as it is described.
    HIGHWATER_SCHEMA = 13,
    /// A value does not fit its column.
    HIGHWATER_BAD_VALUE = 14,
    /// A key is too long for its index.
    HIGHWATER_KEY_TOO_LONG = 15,
    /// A row is too large.
    HIGHWATER_ROW_TOO_LARGE = 16,
    /// There is no such option, or it does not take the value.
    HIGHWATER_BAD_OPTION = 17,
    /// The folder cannot be opened: it is in use, missing, incomplete or not writable.
    HIGHWATER_OPEN = 18,
    /// The files are not a database, or of another version.
    HIGHWATER_INCOMPATIBLE = 19,
    /// Something in the files is damaged.
    HIGHWATER_CORRUPT = 20,
    /// An input or output operation failed.
    HIGHWATER_IO = 21,
    /// There is no space left.
    HIGHWATER_DISK_FULL = 22,
    /// An earlier failure stopped the database: close it and open it again.
    HIGHWATER_STOPPED = 23,
    /// The database was closed.
    HIGHWATER_CLOSED = 24,
    /// The database was opened before this process was forked: open it after fork.
    HIGHWATER_FORKED = 25,
    /// Changes after the position are no longer kept.
    HIGHWATER_CHANGES_TRIMMED = 26,
    /// A wrong call: a null pointer, a wrong handle, a transaction that has ended, a handle that another thread uses.
    HIGHWATER_USAGE = 27,
    /// Something else; the message says what.
    HIGHWATER_OTHER = 28,
    /// A mistake in the library. The handles that were given can be freed.
    HIGHWATER_PANIC = 29,
}

use highwater_code::*;

/// The error of a failed call.
pub struct highwater_error {
    _opaque: [u8; 0],
}

opaque!(highwater_error, Described, b"hw_error");

/// The contents of an error.
pub(crate) struct Described {
    code: highwater_code,
    message: CString,
    table: Option<CString>,
    index: Option<CString>,
    is_retryable: bool,
}

/// The failure of a call.
pub(crate) enum Failure {
    /// The engine refused it.
    Engine(Error),
    /// It is wrong.
    Usage(String),
}

/// Result of a call.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Engine(error)
    }
}

fn code_of(error: &Error) -> highwater_code {
    match error {
        Error::DuplicateKey { .. } => HIGHWATER_DUPLICATE_KEY,
        Error::LockWaitTimeout => HIGHWATER_LOCK_TIMEOUT,
        Error::LockNotAvailable { .. } => HIGHWATER_LOCK_NOT_AVAILABLE,
        Error::Deadlock => HIGHWATER_DEADLOCK,
        Error::Interrupted => HIGHWATER_INTERRUPTED,
        Error::WriteConflict => HIGHWATER_WRITE_CONFLICT,
        Error::NoSuchTable { .. } => HIGHWATER_NO_SUCH_TABLE,
        Error::TableExists { .. } => HIGHWATER_TABLE_EXISTS,
        Error::TableDropped { .. } | Error::TableChanged { .. } => HIGHWATER_TABLE_CHANGED,
        Error::NoSuchColumn { .. } => HIGHWATER_NO_SUCH_COLUMN,
        Error::NoSuchIndex { .. } => HIGHWATER_NO_SUCH_INDEX,
        Error::Schema(_) | Error::Collation { .. } => HIGHWATER_SCHEMA,
        Error::BadValue { .. } | Error::Conversion(_) => HIGHWATER_BAD_VALUE,
        Error::KeyTooLong { .. } | Error::EntryTooLong { .. } => HIGHWATER_KEY_TOO_LONG,
        Error::RowTooLarge { .. } => HIGHWATER_ROW_TOO_LARGE,
        Error::BadOption { .. } => HIGHWATER_BAD_OPTION,
        Error::Open(_) => HIGHWATER_OPEN,
        Error::Incompatible(_) => HIGHWATER_INCOMPATIBLE,
        Error::CorruptPage { .. } | Error::Corrupt(_) => HIGHWATER_CORRUPT,
        Error::Storage(_) => HIGHWATER_IO,
        Error::DiskFull { .. } => HIGHWATER_DISK_FULL,
        Error::Poisoned(_) => HIGHWATER_STOPPED,
        Error::Closed => HIGHWATER_CLOSED,
        Error::Forked => HIGHWATER_FORKED,
        Error::ChangesTrimmed { .. } => HIGHWATER_CHANGES_TRIMMED,
        Error::Usage(_) => HIGHWATER_USAGE,
        _ => HIGHWATER_OTHER,
    }
}

impl Described {
    fn of(failure: &Failure) -> Described {
        let (mut table, mut index) = (None, None);
        let (code, message, is_retryable) = match failure {
            Failure::Usage(message) => (HIGHWATER_USAGE, c_string(message), false),
            Failure::Engine(error) => {
                match error {
                    Error::DuplicateKey { table: of, index: by } => {
                        (table, index) = (Some(c_string(of)), Some(c_string(by)));
                    }
                    Error::LockNotAvailable { table: of, index: by } => {
                        (table, index) = (Some(c_string(of)), by.as_deref().map(c_string));
                    }
                    Error::NoSuchTable { table: of }
                    | Error::TableExists { table: of }
                    | Error::TableDropped { table: of }
                    | Error::TableChanged { table: of }
                    | Error::NoSuchColumn { table: of, .. } => table = Some(c_string(of)),
                    Error::NoSuchIndex { table: of, index: by } => {
                        (table, index) = (Some(c_string(of)), Some(c_string(by)));
                    }
                    _ => {}
                }
                (code_of(error), c_string(&error.to_string()), error.is_retryable())
            }
        };
        Described { code, message, table, index, is_retryable }
    }

    fn of_panic(panic: &(dyn std::any::Any + Send)) -> Described {
        let said = panic.downcast_ref::<&str>().copied();
        let said = said.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
        let message = c_string(&format!("a mistake in the library: {said}"));
        Described { code: HIGHWATER_PANIC, message, table: None, index: None, is_retryable: false }
    }
}

/// Runs a call: what it fails with, and a panic too, becomes a code and an error of the caller.
pub(crate) fn guarded(
    error: *mut *mut highwater_error,
    call: impl FnOnce() -> Result<highwater_code>,
) -> highwater_code {
    let error = Out::handle(error, "").ok();
    let described = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(code)) => return code,
        Ok(Err(failure)) => Described::of(&failure),
        Err(panic) => Described::of_panic(&*panic),
    };
    let code = described.code;
    if let Some(error) = error {
        error.put(handle::new(described));
    }
    code
}

/// As [`guarded`], of a call that is done or fails.
pub(crate) fn done(error: *mut *mut highwater_error, call: impl FnOnce() -> Result<()>) -> highwater_code {
    guarded(error, || call().map(|()| HIGHWATER_OK))
}

/// `HIGHWATER_OK` if something was found.
pub(crate) fn found(found: bool) -> highwater_code {
    if found { HIGHWATER_OK } else { HIGHWATER_NOT_FOUND }
}

/// The code of an error; `HIGHWATER_OK` of null.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_error_code(error: *const highwater_error) -> highwater_code {
    handle::get(error).map_or(HIGHWATER_OK, |described| described.code)
}

/// The message of an error, with the remedy, in UTF-8; "" for null. It lives as long as the error.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_error_message(error: *const highwater_error) -> *const c_char {
    handle::get(error).map_or(c"".as_ptr(), |described| described.message.as_ptr())
}

/// Name of the table that the error is about; NULL if it names none. It lives as long as the error.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_error_table(error: *const highwater_error) -> *const c_char {
    let table = handle::get(error).ok().and_then(|described| described.table.as_ref());
    table.map_or(std::ptr::null(), |name| name.as_ptr())
}

/// Name of the index that the error is about, "PRIMARY" for the primary key; NULL if it names none. It lives as long as
/// the error.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_error_index(error: *const highwater_error) -> *const c_char {
    let index = handle::get(error).ok().and_then(|described| described.index.as_ref());
    index.map_or(std::ptr::null(), |name| name.as_ptr())
}

/// Whether the same transaction may succeed when it is rolled back and run again: it met other transactions.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_error_is_retryable(error: *const highwater_error) -> bool {
    handle::get(error).is_ok_and(|described| described.is_retryable)
}

/// Frees an error; null is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_error_free(error: *mut highwater_error) {
    handle::free(error);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn failed(call: impl FnOnce() -> Result<highwater_code>) -> (highwater_code, String) {
        let mut error = std::ptr::null_mut();
        let code = guarded(&mut error, call);
        assert_eq!(code, highwater_error_code(error));
        // SAFETY: a message ends with a NUL and lives as long as its error.
        let message = unsafe { CStr::from_ptr(highwater_error_message(error)) }.to_string_lossy().into_owned();
        highwater_error_free(error);
        (code, message)
    }

    #[test]
    fn a_panic_becomes_an_error() {
        let said = |message| (HIGHWATER_PANIC, format!("a mistake in the library: {message}"));
        assert_eq!(failed(|| panic!("one and {}", 1)), said("one and 1"));
        assert_eq!(failed(|| panic!("plain")), said("plain"));
        assert_eq!(failed(|| std::panic::panic_any(7)), said("no message"));
        assert_eq!(guarded(std::ptr::null_mut(), || panic!("no caller asks")), HIGHWATER_PANIC);
    }

    #[test]
    fn what_succeeds_clears_the_place_of_its_error() {
        let mut error = std::ptr::dangling_mut();
        assert_eq!(guarded(&mut error, || Ok(HIGHWATER_NOT_FOUND)), HIGHWATER_NOT_FOUND);
        assert!(error.is_null() && highwater_error_code(error) == HIGHWATER_OK);
    }

    #[test]
    fn a_message_is_cut_by_no_nul() {
        let (code, message) = failed(|| Err(Failure::Usage("a\0b".to_string())));
        assert_eq!((code, message.as_str()), (HIGHWATER_USAGE, "a b"));
    }
}
