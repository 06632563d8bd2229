//! Writing rows.
//!
//! Rule: a row is an array of values, one for each column in order; a key is one of the primary key's columns.

use crate::failure::{Failure, Result, done, found, guarded, highwater_code, highwater_error};
use crate::handle::{self, Out, slice};
use crate::query::{ScanValues, highwater_scan};
use crate::table::{highwater_table, table};
use crate::transaction::highwater_txn;
use crate::value::{highwater_value, values};
use highwater::{Inserted, Table, Upserted, ValueRef};

/// Value of `number` for a row whose insertion assigned no auto-increment number.
const NO_NUMBER: u64 = 0;

fn put_number(number: Option<Out<u64>>, inserted: Inserted) {
    if let Some(number) = number {
        number.put(inserted.auto_increment.unwrap_or(NO_NUMBER));
    }
}

/// Inserts a row. If `number` is not null, it gets the number that the auto-increment column was assigned because its
/// value was NULL, else 0.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_insert(
    txn: *mut highwater_txn,
    into: *const highwater_table,
    row: *const highwater_value,
    count: usize,
    number: *mut u64,
    error: *mut *mut highwater_error,
) -> highwater_code {
    done(error, || {
        let (table, row) = (table(into)?, values(row, count, "the row")?);
        let inserted = handle::get(txn)?.write(|txn| Ok(txn.insert(table, &row)?))?;
        put_number(Out::optional(number), inserted);
        Ok(())
    })
}

/// Inserts `row_count` rows of `column_count` values each, one row after another. A call that fails inserts none of
/// them. Rows in the order of their keys are inserted fastest.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_insert_many(
    txn: *mut highwater_txn,
    into: *const highwater_table,
    rows: *const highwater_value,
    column_count: usize,
    row_count: usize,
    error: *mut *mut highwater_error,
) -> highwater_code {
    done(error, || {
        let table = table(into)?;
        let count = column_count.checked_mul(row_count).filter(|count| *count > 0 || row_count == 0);
        let count = count.ok_or_else(|| Failure::Usage(format!("{row_count} rows of {column_count} values")))?;
        let rows = slice(rows, count, "the rows")?;
        handle::get(txn)?.write(|txn| {
            txn.insert_many_with(table, |into| {
                for row in rows.chunks_exact(column_count.max(1)) {
                    into.push(&values(row.as_ptr(), row.len(), "a row")?)?;
                }
                Ok::<(), Failure>(())
            })
            .map(drop)
        })
    })
}

/// The columns that an upsert changes: those that are named, or all but the key's and the auto-increment column.
fn changed(table: &Table, named: &[usize], count: usize) -> Result<Vec<usize>> {
    let definition = table.definition();
    if let Some(wrong) = named.iter().find(|column| **column >= count.min(definition.columns.len())) {
        return Err(Failure::Usage(format!("table {} has no column {wrong}, or the row has none", table.name())));
    }
    let is_other = |at: &usize| !definition.is_key(*at) && definition.auto_increment != Some(*at);
    Ok(if named.is_empty() { (0..count).filter(is_other).collect() } else { named.to_vec() })
}

/// Inserts a row or, if another one has its primary key or its key of a unique index, changes that one: its columns at
/// the positions `changed` get the values of the row; with `changed_count` 0 all columns but those of the primary key
/// and the auto-increment column. `inserted`, if not null, gets whether there was no such row.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_upsert(
    txn: *mut highwater_txn,
    into: *const highwater_table,
    row: *const highwater_value,
    count: usize,
    changed_columns: *const usize,
    changed_count: usize,
    inserted: *mut bool,
    error: *mut *mut highwater_error,
) -> highwater_code {
    done(error, || {
        let (table, row) = (table(into)?, values(row, count, "the row")?);
        let columns = changed(table, slice(changed_columns, changed_count, "the changed columns")?, row.len())?;
        let upserted = handle::get(txn)?.write(|txn| {
            Ok(txn.upsert(table, &row, |_, set| columns.iter().for_each(|&column| set.put(column, row[column])))?)
        })?;
        if let Some(out) = Out::optional(inserted) {
            out.put(matches!(upserted, Upserted::Inserted(_)));
        }
        Ok(())
    })
}

/// Deletes the rows that have the primary key of a row or its key of a unique index, and inserts it. `number` as of
/// `highwater_insert`.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_replace(
    txn: *mut highwater_txn,
    into: *const highwater_table,
    row: *const highwater_value,
    count: usize,
    number: *mut u64,
    error: *mut *mut highwater_error,
) -> highwater_code {
    done(error, || {
        let (table, row) = (table(into)?, values(row, count, "the row")?);
        let replaced = handle::get(txn)?.write(|txn| Ok(txn.replace(table, &row)?))?;
        put_number(Out::optional(number), replaced.inserted);
        Ok(())
    })
}

/// Sets columns, by their positions, of the row of a primary key. `HIGHWATER_NOT_FOUND` if there is no such row.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_update(
    txn: *mut highwater_txn,
    of: *const highwater_table,
    key: *const highwater_value,
    key_count: usize,
    columns: *const usize,
    new_values: *const highwater_value,
    count: usize,
    error: *mut *mut highwater_error,
) -> highwater_code {
    guarded(error, || {
        let (table, key) = (table(of)?, values(key, key_count, "the key")?);
        let (columns, new) = (slice(columns, count, "the columns")?, values(new_values, count, "the values")?);
        let set: Vec<(usize, ValueRef<'_>)> = columns.iter().copied().zip(new).collect();
        handle::get(txn)?.write(|txn| Ok(found(txn.update(table, &key, &set)?)))
    })
}

/// Deletes the row of a primary key. `HIGHWATER_NOT_FOUND` if there is no such row.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_delete(
    txn: *mut highwater_txn,
    from: *const highwater_table,
    key: *const highwater_value,
    key_count: usize,
    error: *mut *mut highwater_error,
) -> highwater_code {
    guarded(error, || {
        let (table, key) = (table(from)?, values(key, key_count, "the key")?);
        handle::get(txn)?.write(|txn| Ok(found(txn.delete(table, &key)?)))
    })
}

/// Deletes the rows of a scan (null: all rows). `deleted`, if not null, gets their number. A call that fails deletes
/// none of them.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_delete_rows(
    txn: *mut highwater_txn,
    from: *const highwater_table,
    scan: *const highwater_scan,
    deleted: *mut u64,
    error: *mut *mut highwater_error,
) -> highwater_code {
    done(error, || {
        let (table, scan) = (table(from)?, ScanValues::of(scan)?);
        let count = handle::get(txn)?.write(|txn| Ok(scan.describe(txn.scan(table)).delete()?))?;
        if let Some(out) = Out::optional(deleted) {
            out.put(count);
        }
        Ok(())
    })
}
