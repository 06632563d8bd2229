//! Reads of rows by keys; the parameters of scans.

use crate::failure::{Failure, Result, done, found, guarded, highwater_code, highwater_error};
use crate::handle::{self, Out, new, opaque, optional_text, slice, structure};
use crate::table::{highwater_table, table};
use crate::transaction::{Kind, highwater_txn, lock_mode, lock_wait};
use crate::value::{Values, ValuesOut, highwater_value, values};
use highwater::{LockMode, LockWait, Row, Scan};
use std::ffi::c_char;

/// A row that was read. It keeps what its values point to, whatever becomes of the transaction.
pub struct highwater_row {
    _opaque: [u8; 0],
}

opaque!(highwater_row, ReadRow, b"hw___row");

/// The contents of a row handle.
pub(crate) struct ReadRow {
    values: ValuesOut,
    _row: Row,
}

impl ReadRow {
    fn new(row: Row) -> ReadRow {
        let mut values = ValuesOut::default();
        // They point to what the row has on the heap, which stays where it is.
        values.set(row.values());
        ReadRow { values, _row: row }
    }
}

/// The values of a row, one for each column, and, if `count` is not null, their number. They live as long as the row.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_row_values(row: *const highwater_row, count: *mut usize) -> *const highwater_value {
    let values = handle::get(row).map_or(&[][..], |row| &row.values.0);
    if let Some(count) = Out::optional(count) {
        count.put(values.len());
    }
    values.as_ptr()
}

/// Frees a row; null is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_row_free(row: *mut highwater_row) {
    handle::free(row);
}

/// Puts a row into its place, if there is one.
fn put(out: Out<*mut highwater_row>, row: Option<Row>) -> highwater_code {
    let is_found = row.is_some();
    if let Some(row) = row {
        out.put(new(ReadRow::new(row)));
    }
    found(is_found)
}

/// Reads the row of a primary key, as the transaction sees it. `HIGHWATER_NOT_FOUND` if there is no such row.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_get(
    txn: *mut highwater_txn,
    from: *const highwater_table,
    key: *const highwater_value,
    key_count: usize,
    row: *mut *mut highwater_row,
    error: *mut *mut highwater_error,
) -> highwater_code {
    guarded(error, || {
        let out = Out::handle(row, "the row")?;
        let (table, key) = (table(from)?, values(key, key_count, "the key")?);
        let row = handle::get(txn)?.with(|kind| match kind {
            Kind::Write(txn) => Ok(txn.get(table, &key)?),
            Kind::Read(txn) => Ok(txn.get(table, &key)?),
        })?;
        Ok(put(out, row))
    })
}

/// Reads the first row, in the order of an index, whose leading columns of that index have these values.
/// `HIGHWATER_NOT_FOUND` if there is no such row.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_get_by(
    txn: *mut highwater_txn,
    from: *const highwater_table,
    index: *const c_char,
    key: *const highwater_value,
    key_count: usize,
    row: *mut *mut highwater_row,
    error: *mut *mut highwater_error,
) -> highwater_code {
    guarded(error, || {
        let out = Out::handle(row, "the row")?;
        let (table, key) = (table(from)?, values(key, key_count, "the key")?);
        let index = handle::text(index, "the index's name")?;
        let row = handle::get(txn)?.with(|kind| match kind {
            Kind::Write(txn) => Ok(txn.get_by(table, index, &key)?),
            Kind::Read(txn) => Ok(txn.get_by(table, index, &key)?),
        })?;
        Ok(put(out, row))
    })
}

/// Reads the newest committed row of a primary key and locks it: a `highwater_lock` and a `highwater_wait`, with
/// `timeout_ms` as of `highwater_set_lock_wait`. `HIGHWATER_NOT_FOUND` if there is no such row, or if it is locked and
/// skipped.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_get_locked(
    txn: *mut highwater_txn,
    from: *const highwater_table,
    key: *const highwater_value,
    key_count: usize,
    lock: i32,
    wait: i32,
    timeout_ms: u64,
    row: *mut *mut highwater_row,
    error: *mut *mut highwater_error,
) -> highwater_code {
    guarded(error, || {
        let out = Out::handle(row, "the row")?;
        let (table, key) = (table(from)?, values(key, key_count, "the key")?);
        let (lock, wait) = (lock_mode(lock)?, lock_wait(wait, timeout_ms)?);
        let row = handle::get(txn)?.write(|txn| match wait {
            LockWait::Default if lock == LockMode::Exclusive => Ok(txn.get_for_update(table, &key)?),
            LockWait::Default if lock == LockMode::Shared => Ok(txn.get_for_share(table, &key)?),
            _ => Ok(txn.get_locked(table, &key, lock, wait)?),
        })?;
        Ok(put(out, row))
    })
}

/// The parameters of a scan. With all zeros it reads all rows in the order of the primary key. Values are of the first
/// columns of the index, in its order.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct highwater_scan {
    /// Name of the index; null: the primary key.
    pub index: *const c_char,
    /// Start: the first row whose key begins with these values or is greater; a count of 0: the beginning.
    pub from: *const highwater_value,
    /// Their number.
    pub from_count: usize,
    /// End: the last row whose key begins with these values or is smaller; a count of 0: the end.
    pub to: *const highwater_value,
    /// Their number.
    pub to_count: usize,
    /// Instead of `from` and `to`: all rows whose first key columns have these values.
    pub prefix: *const highwater_value,
    /// Their number.
    pub prefix_count: usize,
    /// Positions of the columns that are read, in this order; a count of 0: all.
    pub columns: *const usize,
    /// Their number.
    pub column_count: usize,
    /// Most rows that it delivers; 0: all.
    pub limit: u64,
    /// Longest wait for each lock, in milliseconds, with `HIGHWATER_WAIT_DEFAULT`; 0: as the transaction's.
    pub lock_timeout_ms: u64,
    /// A `highwater_lock`.
    pub lock: i32,
    /// A `highwater_wait`.
    pub wait: i32,
    /// Whether rows whose key begins with the values of `from` are excluded.
    pub from_exclusive: bool,
    /// Whether rows whose key begins with the values of `to` are excluded.
    pub to_exclusive: bool,
    /// Whether the last column of `prefix`, text or bytes, only begins with the last value.
    pub starts_with: bool,
    /// Whether it reads backward, from the last row to the first.
    pub reverse: bool,
}

/// A scan that C has described, with its values as the engine takes them.
pub(crate) struct ScanValues<'a> {
    given: Option<&'a highwater_scan>,
    index: Option<&'a str>,
    from: Values<'a>,
    to: Values<'a>,
    prefix: Values<'a>,
    columns: &'a [usize],
    lock: LockMode,
    wait: LockWait,
}

impl<'a> ScanValues<'a> {
    /// Of a structure of C; null: all rows.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn of(scan: *const highwater_scan) -> Result<ScanValues<'a>> {
        let Some(given) = structure(scan, "the scan")? else {
            let (from, to, prefix) = (Values::new(), Values::new(), Values::new());
            let (lock, wait) = (LockMode::None, LockWait::Default);
            return Ok(ScanValues { given: None, index: None, from, to, prefix, columns: &[], lock, wait });
        };
        let prefix = values(given.prefix, given.prefix_count, "the prefix")?;
        let has_ends = given.from_count > 0 || given.to_count > 0;
        if has_ends && !prefix.is_empty() {
            return Err(Failure::Usage("a scan has ends or a prefix, not both".to_string()));
        }
        if given.starts_with && prefix.is_empty() {
            return Err(Failure::Usage("a scan with starts_with has a prefix".to_string()));
        }
        Ok(ScanValues {
            given: Some(given),
            index: optional_text(given.index, "the index's name")?,
            from: values(given.from, given.from_count, "the scan's begin")?,
            to: values(given.to, given.to_count, "the scan's end")?,
            prefix,
            columns: slice(given.columns, given.column_count, "the scan's columns")?,
            lock: lock_mode(given.lock)?,
            wait: lock_wait(given.wait, given.lock_timeout_ms)?,
        })
    }

    /// Most rows that it delivers.
    pub(crate) fn limit(&self) -> u64 {
        self.given.map(|given| given.limit).filter(|limit| *limit != 0).unwrap_or(u64::MAX)
    }

    /// Whether it reads backward.
    pub(crate) fn is_reverse(&self) -> bool {
        self.given.is_some_and(|given| given.reverse)
    }

    /// Describes a scan of the engine's so.
    pub(crate) fn describe<'s, 'v>(&'v self, mut scan: Scan<'s, 'v>) -> Scan<'s, 'v> {
        let Some(given) = self.given else { return scan };
        if let Some(index) = self.index {
            scan = scan.index(index);
        }
        scan = match (self.prefix.is_empty(), given.starts_with) {
            (false, true) => scan.starts_with(&self.prefix),
            (false, false) => scan.prefix(&self.prefix),
            (true, _) => scan,
        };
        if !self.from.is_empty() {
            scan = if given.from_exclusive { scan.from_exclusive(&self.from) } else { scan.from(&self.from) };
        }
        if !self.to.is_empty() {
            scan = if given.to_exclusive { scan.to_exclusive(&self.to) } else { scan.to(&self.to) };
        }
        if !self.columns.is_empty() {
            scan = scan.columns(self.columns);
        }
        if self.is_reverse() {
            scan = scan.rev();
        }
        scan = match self.lock {
            LockMode::None => scan,
            LockMode::Shared => scan.for_share(),
            LockMode::Exclusive => scan.for_update(),
        };
        scan = match self.wait {
            LockWait::Default => scan,
            LockWait::Timeout(timeout) => scan.lock_timeout(timeout),
            LockWait::NoWait => scan.nowait(),
            LockWait::SkipLocked => scan.skip_locked(),
        };
        scan.limit(usize::try_from(self.limit()).unwrap_or(usize::MAX))
    }
}

/// Counts the rows of a scan (null: all rows).
#[unsafe(no_mangle)]
pub extern "C" fn highwater_count(
    txn: *mut highwater_txn,
    of: *const highwater_table,
    scan: *const highwater_scan,
    count: *mut u64,
    error: *mut *mut highwater_error,
) -> highwater_code {
    done(error, || {
        let (out, table, scan) = (Out::new(count, "the count")?, table(of)?, ScanValues::of(scan)?);
        let count = handle::get(txn)?.with(|kind| match kind {
            Kind::Write(txn) => Ok(scan.describe(txn.scan(table)).count()?),
            Kind::Read(txn) => Ok(scan.describe(txn.scan(table)).count()?),
        })?;
        out.put(count);
        Ok(())
    })
}
