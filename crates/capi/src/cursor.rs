//! Cursors: the rows of a scan, one after another.
//!
//! Rules
//! 1. A cursor shares its transaction, and is usable until the transaction ends. Freeing one of the two handles does
//!    not affect the other.
//! 2. The values of a row are in the cursor's memory and valid until its next call: nothing is copied.

use crate::failure::{Failure, Result, done, found, guarded, highwater_code, highwater_error};
use crate::handle::{self, Out, chosen, new, opaque};
use crate::query::{ScanValues, highwater_scan};
use crate::table::{highwater_table, table};
use crate::transaction::{Kind, Transaction, highwater_txn};
use crate::value::{ValuesOut, highwater_value, values};
use highwater::{Cursor, Seek};
use parking_lot::Mutex;
use std::sync::Arc;

/// A place in the rows of a scan. It stays open while its transaction does other things, changes included.
pub struct highwater_cursor {
    _opaque: [u8; 0],
}

opaque!(highwater_cursor, Mutex<OpenCursor>, b"hwcursor");

/// The contents of a cursor handle.
pub(crate) struct OpenCursor {
    cursor: Cursor,
    txn: Arc<Transaction>,
    is_reverse: bool,
    /// It is before the first row of the scan; in a backward scan the first row is the last one in key order.
    is_at_begin: bool,
    /// Number of rows that it may still deliver.
    left: u64,
    values: ValuesOut,
}

/// The target of `highwater_cursor_seek`. Values are of the first columns of the cursor's index.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum highwater_seek {
    /// To the first row whose key begins with the values or is greater.
    HIGHWATER_SEEK_AT_LEAST = 0,
    /// To the first row whose key is greater and does not begin with the values.
    HIGHWATER_SEEK_ABOVE = 1,
    /// To the last row whose key begins with the values or is smaller.
    HIGHWATER_SEEK_AT_MOST = 2,
    /// To the last row whose key is smaller than the values.
    HIGHWATER_SEEK_BELOW = 3,
    /// To the first row.
    HIGHWATER_SEEK_FIRST = 4,
    /// To the last row.
    HIGHWATER_SEEK_LAST = 5,
}

use highwater_seek::*;

impl OpenCursor {
    /// Moves by a row, in the direction of the scan or against it.
    fn go(&mut self, forward: bool) -> Result<bool> {
        if self.is_at_begin && self.is_reverse {
            return if forward { self.seek(Seek::Last) } else { Ok(false) };
        }
        let OpenCursor { cursor, txn, is_reverse, .. } = self;
        let downward = forward == *is_reverse;
        txn.with(|kind| {
            Ok(match (kind, downward) {
                (Kind::Write(txn), false) => cursor.next(&mut **txn)?,
                (Kind::Write(txn), true) => cursor.prev(&mut **txn)?,
                (Kind::Read(txn), false) => cursor.next(&mut **txn)?,
                (Kind::Read(txn), true) => cursor.prev(&mut **txn)?,
            })
        })
    }

    fn seek(&mut self, to: Seek<'_>) -> Result<bool> {
        let OpenCursor { cursor, txn, .. } = self;
        let found = txn.with(|kind| {
            Ok(match kind {
                Kind::Write(txn) => cursor.seek(&mut **txn, to)?,
                Kind::Read(txn) => cursor.seek(&mut **txn, to)?,
            })
        })?;
        self.is_at_begin = false;
        Ok(found)
    }
}

/// The outputs for the values of a row.
struct RowOut {
    values: Out<*const highwater_value>,
    count: Option<Out<usize>>,
}

impl RowOut {
    fn new(values: *mut *const highwater_value, count: *mut usize) -> Result<RowOut> {
        Ok(RowOut { values: Out::new(values, "the values")?, count: Out::optional(count) })
    }

    fn put(self, cursor: &mut OpenCursor, is_found: bool) -> Result<highwater_code> {
        cursor.values.0.clear();
        if is_found && let Some(row) = cursor.cursor.row()? {
            cursor.values.set(row.values());
        }
        if let Some(count) = self.count {
            count.put(cursor.values.0.len());
        }
        self.values.put(if is_found { cursor.values.0.as_ptr() } else { std::ptr::null() });
        Ok(found(is_found))
    }
}

/// Works with the cursor of a handle.
fn with(
    cursor: *mut highwater_cursor,
    error: *mut *mut highwater_error,
    work: impl FnOnce(&mut OpenCursor) -> Result<highwater_code>,
) -> highwater_code {
    guarded(error, || {
        let busy = || Failure::Usage("another thread uses the cursor at this moment".to_string());
        let mut cursor = handle::get(cursor)?.try_lock().ok_or_else(busy)?;
        work(&mut cursor)
    })
}

/// Opens a cursor over the rows of a scan (null: all rows). It begins before the first row. Free it with
/// `highwater_cursor_free`, before its transaction or after it.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_cursor_open(
    txn: *mut highwater_txn,
    over: *const highwater_table,
    scan: *const highwater_scan,
    cursor: *mut *mut highwater_cursor,
    error: *mut *mut highwater_error,
) -> highwater_code {
    done(error, || {
        let (out, txn) = (Out::handle(cursor, "the cursor")?, handle::get(txn)?);
        let (table, scan) = (table(over)?, ScanValues::of(scan)?);
        let cursor = txn.with(|kind| {
            let engine_scan = match kind {
                Kind::Write(txn) => txn.scan(table),
                Kind::Read(txn) => txn.scan(table),
            };
            Ok(scan.describe(engine_scan).cursor()?)
        })?;
        let (txn, is_reverse, left) = (Arc::clone(txn), scan.is_reverse(), scan.limit());
        let values = ValuesOut::default();
        out.put(new(Mutex::new(OpenCursor { cursor, txn, is_reverse, is_at_begin: true, left, values })));
        Ok(())
    })
}

/// Moves to the next row and returns its values and, if `count` is not null, their number. They live until the next
/// call of the cursor. `HIGHWATER_NOT_FOUND` after the last row, or when the scan's limit is reached.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_cursor_next(
    cursor: *mut highwater_cursor,
    row: *mut *const highwater_value,
    count: *mut usize,
    error: *mut *mut highwater_error,
) -> highwater_code {
    with(cursor, error, |cursor| {
        let out = RowOut::new(row, count)?;
        let is_found = cursor.left > 0 && cursor.go(true)?;
        cursor.left -= u64::from(is_found);
        out.put(cursor, is_found)
    })
}

/// Moves to the previous row, as `highwater_cursor_next` moves to the next one; the limit does not count here.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_cursor_previous(
    cursor: *mut highwater_cursor,
    row: *mut *const highwater_value,
    count: *mut usize,
    error: *mut *mut highwater_error,
) -> highwater_code {
    with(cursor, error, |cursor| {
        let out = RowOut::new(row, count)?;
        let is_found = cursor.go(false)?;
        out.put(cursor, is_found)
    })
}

/// Goes to a place within the scan's range: a `highwater_seek`, in the order of the index, whatever the scan's
/// direction. `HIGHWATER_NOT_FOUND` if there is no such row: then it is at that end.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_cursor_seek(
    cursor: *mut highwater_cursor,
    seek: i32,
    key: *const highwater_value,
    key_count: usize,
    row: *mut *const highwater_value,
    count: *mut usize,
    error: *mut *mut highwater_error,
) -> highwater_code {
    with(cursor, error, |cursor| {
        let (out, key) = (RowOut::new(row, count)?, values(key, key_count, "the key")?);
        let seeks = [
            (HIGHWATER_SEEK_AT_LEAST as i32, Seek::AtLeast(&key)),
            (HIGHWATER_SEEK_ABOVE as i32, Seek::Above(&key)),
            (HIGHWATER_SEEK_AT_MOST as i32, Seek::AtMost(&key)),
            (HIGHWATER_SEEK_BELOW as i32, Seek::Below(&key)),
            (HIGHWATER_SEEK_FIRST as i32, Seek::First),
            (HIGHWATER_SEEK_LAST as i32, Seek::Last),
        ];
        let to = chosen(seek, "highwater_seek", &seeks)?;
        let is_found = cursor.seek(to)?;
        out.put(cursor, is_found)
    })
}

/// Frees a cursor; null is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_cursor_free(cursor: *mut highwater_cursor) {
    handle::free(cursor);
}
