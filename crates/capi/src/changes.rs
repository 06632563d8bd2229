//! The stream of committed changes of tables that log them.

use crate::database::highwater_db;
use crate::failure::{Failure, Result, done, found, guarded, highwater_code, highwater_error};
use crate::handle::{self, Out, c_string, new, opaque};
use crate::value::{ValuesOut, highwater_value};
use highwater::{Change, ChangeKind, ChangeStream};
use parking_lot::Mutex;
use std::ffi::{CString, c_char};
use std::time::Duration;

/// A stream of changes. One thread at a time may use it.
pub struct highwater_changes {
    _opaque: [u8; 0],
}

opaque!(highwater_changes, Mutex<OpenStream>, b"hwchange");

/// The contents of a stream's handle.
pub(crate) struct OpenStream {
    stream: ChangeStream,
    /// Memory to which the last returned change points.
    change: Option<Change>,
    table: CString,
    key: ValuesOut,
    row: ValuesOut,
}

/// The kind of a change, of a row or of a table.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum highwater_change_kind {
    /// The row is new.
    HIGHWATER_CHANGE_INSERT = 0,
    /// The row was there, and has other values.
    HIGHWATER_CHANGE_UPDATE = 1,
    /// The row was deleted.
    HIGHWATER_CHANGE_DELETE = 2,
    /// The table itself was changed, dropped, renamed or truncated: a copy of it has to be made again.
    HIGHWATER_CHANGE_TABLE = 3,
}

/// A change that a committed transaction made.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct highwater_change {
    /// Number of the transaction: they ascend, with gaps. It is the position from which to continue, once all changes
    /// of the transaction were taken.
    pub sequence: u64,
    /// Time immediately before the commit, or of the prepare: microseconds since 1970-01-01T00:00:00Z.
    pub unix_us: i64,
    /// Name of the table, as it was then.
    pub table: *const c_char,
    /// Values of the primary key's columns.
    pub key: *const highwater_value,
    /// Their number; 0 if the table was changed.
    pub key_count: usize,
    /// The row as it was then; null if it was deleted or the table was changed.
    pub row: *const highwater_value,
    /// Number of its values.
    pub row_count: usize,
    /// A `highwater_change_kind`.
    pub kind: i32,
    /// Whether this is the last change of its transaction.
    pub ends_transaction: bool,
}

impl OpenStream {
    /// Takes the next change, and keeps the memory of the returned values.
    fn next(&mut self) -> Result<Option<highwater_change>> {
        self.change = self.stream.next().transpose()?;
        let Some(change) = &self.change else { return Ok(None) };
        self.table = c_string(&change.table);
        self.key.set_owned(&change.key);
        self.row.0.clear();
        let kind = match change.kind {
            ChangeKind::Insert => highwater_change_kind::HIGHWATER_CHANGE_INSERT,
            ChangeKind::Update => highwater_change_kind::HIGHWATER_CHANGE_UPDATE,
            ChangeKind::Delete => highwater_change_kind::HIGHWATER_CHANGE_DELETE,
            _ => highwater_change_kind::HIGHWATER_CHANGE_TABLE,
        };
        let row = change.row.as_ref().map_or(std::ptr::null(), |row| {
            self.row.set(row.values());
            self.row.0.as_ptr()
        });
        Ok(Some(highwater_change {
            sequence: change.sequence,
            unix_us: change.time.unix_us(),
            table: self.table.as_ptr(),
            key: self.key.0.as_ptr(),
            key_count: self.key.0.len(),
            row,
            row_count: self.row.0.len(),
            kind: kind as i32,
            ends_transaction: change.ends_transaction,
        }))
    }
}

/// Works with the stream of a handle.
fn with(
    stream: *mut highwater_changes,
    error: *mut *mut highwater_error,
    work: impl FnOnce(&mut OpenStream) -> Result<highwater_code>,
) -> highwater_code {
    guarded(error, || {
        let busy = || Failure::Usage("another thread uses the stream at this moment".to_string());
        let mut stream = handle::get(stream)?.try_lock().ok_or_else(busy)?;
        work(&mut stream)
    })
}

/// The changes that transactions have committed, after the transaction `since`, in tables that log them
/// (`highwater_schema_log_changes`); 0 begins with all that are kept. Free it with `highwater_changes_free`.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_changes_open(
    db: *mut highwater_db,
    since: u64,
    changes: *mut *mut highwater_changes,
    error: *mut *mut highwater_error,
) -> highwater_code {
    done(error, || {
        let (out, db) = (Out::handle(changes, "the stream")?, handle::get(db)?);
        let (stream, change, table) = (db.changes(since)?, None, CString::default());
        let (key, row) = (ValuesOut::default(), ValuesOut::default());
        out.put(new(Mutex::new(OpenStream { stream, change, table, key, row })));
        Ok(())
    })
}

/// The next change. What it points to lives until the next call of the stream. `HIGHWATER_NOT_FOUND` at the end of what
/// is committed by now: later there may be more.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_changes_next(
    changes: *mut highwater_changes,
    change: *mut highwater_change,
    error: *mut *mut highwater_error,
) -> highwater_code {
    with(changes, error, |stream| {
        let (out, next) = (Out::new(change, "the change")?, stream.next()?);
        let is_found = next.is_some();
        if let Some(change) = next {
            out.put(change);
        }
        Ok(found(is_found))
    })
}

/// Waits until there is a change; `HIGHWATER_NOT_FOUND` if there is none after this many milliseconds.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_changes_wait(
    changes: *mut highwater_changes,
    timeout_ms: u64,
    error: *mut *mut highwater_error,
) -> highwater_code {
    with(changes, error, |stream| Ok(found(stream.stream.wait(Duration::from_millis(timeout_ms))?)))
}

/// Removes the changes up to a transaction, which all consumers have taken.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_trim_changes(
    db: *mut highwater_db,
    up_to: u64,
    error: *mut *mut highwater_error,
) -> highwater_code {
    done(error, || {
        handle::get(db)?.trim_changes(up_to)?;
        Ok(())
    })
}

/// Frees a stream; null is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_changes_free(changes: *mut highwater_changes) {
    handle::free(changes);
}
