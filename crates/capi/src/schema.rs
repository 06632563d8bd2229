//! Definitions of tables and indexes.
//!
//! Rule: errors of a definition are reported when the table is created; only an unreadable argument (a null pointer, an
//! unknown type) is refused at once.

use crate::failure::{Failure, Result, done, highwater_code, highwater_error};
use crate::handle::{self, new, opaque, slice, text, texts};
use crate::value::{highwater_value, values};
use highwater::{Index, Schema, Type};
use parking_lot::Mutex;
use std::ffi::c_char;

/// A table to be created.
pub struct highwater_schema {
    _opaque: [u8; 0],
}

opaque!(highwater_schema, Mutex<Schema>, b"hwschema");

/// Unlike other indexes it refuses a second row with the same values.
pub const HIGHWATER_INDEX_UNIQUE: u32 = 1;

/// A column of a key. Zeros after the name: the whole column, ascending.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct highwater_key_column {
    /// Its name.
    pub name: *const c_char,
    /// Whether greater values come first.
    pub descending: bool,
    /// Length of an indexed prefix of text or bytes; 0: the whole column. Not in a primary key.
    pub prefix_bytes: u16,
}

/// The index of these columns.
///
/// # Errors
/// A null pointer, a name that is not a text.
pub(crate) fn index_of(columns: *const highwater_key_column, count: usize) -> Result<Index> {
    let columns = slice(columns, count, "the columns")?;
    let names = columns.iter().map(|column| text(column.name, "a column's name")).collect::<Result<Vec<_>>>()?;
    let mut index = Index::new(&names);
    for (column, name) in columns.iter().zip(&names) {
        if column.descending {
            index = index.descending(name);
        }
        if column.prefix_bytes != 0 {
            index = index.prefix(name, column.prefix_bytes);
        }
    }
    Ok(index)
}

/// As [`index_of`], with the other properties of a secondary index.
///
/// # Errors
/// As [`index_of`].
pub(crate) fn secondary_index(
    columns: (*const highwater_key_column, usize),
    covered: (*const *const c_char, usize),
    flags: u32,
) -> Result<Index> {
    let index = index_of(columns.0, columns.1)?.covering(&texts(covered.0, covered.1, "the covered columns")?);
    match flags {
        0 => Ok(index),
        HIGHWATER_INDEX_UNIQUE => Ok(index.unique()),
        _ => Err(Failure::Usage(format!("an index has no flags {flags:#x}"))),
    }
}

/// Changes the schema of a handle.
fn change(
    schema: *mut highwater_schema,
    error: *mut *mut highwater_error,
    how: impl FnOnce(Schema) -> Result<Schema>,
) -> highwater_code {
    done(error, || {
        let mut schema = handle::get(schema)?.lock();
        *schema = how(schema.clone())?;
        Ok(())
    })
}

/// A table without columns yet. Free it with `highwater_schema_free`; tables that are created by it do not need it.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_schema_new() -> *mut highwater_schema {
    new(Mutex::new(Schema::new()))
}

/// Frees a schema; null is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_schema_free(schema: *mut highwater_schema) {
    handle::free(schema);
}

/// Adds a column. The type is one of `i8 i16 i24 i32 i64 u8 u16 u24 u32 u64 f32 f64 decimal(DIGITS,SCALE) text(BYTES)
/// binary(BYTES) fixed(BYTES) bool date time datetime uuid json(BYTES)`.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_schema_column(
    schema: *mut highwater_schema,
    name: *const c_char,
    type_name: *const c_char,
    nullable: bool,
    error: *mut *mut highwater_error,
) -> highwater_code {
    change(schema, error, |schema| {
        let (name, ty) = (text(name, "the column's name")?, text(type_name, "the type")?);
        let ty: Type = ty.parse().map_err(|reason| Failure::Usage(format!("column {name}: {reason}")))?;
        Ok(if nullable { schema.nullable(name, ty) } else { schema.column(name, ty) })
    })
}

/// Sets what a column has in rows that were inserted before it was added (`highwater_migrate`).
#[unsafe(no_mangle)]
pub extern "C" fn highwater_schema_default(
    schema: *mut highwater_schema,
    column: *const c_char,
    value: *const highwater_value,
    error: *mut *mut highwater_error,
) -> highwater_code {
    change(schema, error, |schema| {
        let value = values(value, 1, "the default")?[0];
        Ok(schema.default_value(text(column, "the column's name")?, value))
    })
}

/// Makes an integer column auto-increment: a NULL that is inserted there becomes the next number.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_schema_auto_increment(
    schema: *mut highwater_schema,
    column: *const c_char,
    error: *mut *mut highwater_error,
) -> highwater_code {
    change(schema, error, |schema| Ok(schema.auto_increment(text(column, "the column's name")?)))
}

/// Sets the columns that identify a row and in whose order rows are kept.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_schema_primary_key(
    schema: *mut highwater_schema,
    columns: *const highwater_key_column,
    count: usize,
    error: *mut *mut highwater_error,
) -> highwater_code {
    change(schema, error, |schema| Ok(schema.primary_key_with(index_of(columns, count)?)))
}

/// Adds a secondary index. `covered` names columns that its entries hold in addition to the index's columns and those
/// of the primary key. `flags` is 0 or `HIGHWATER_INDEX_UNIQUE`.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_schema_index(
    schema: *mut highwater_schema,
    name: *const c_char,
    columns: *const highwater_key_column,
    count: usize,
    covered: *const *const c_char,
    covered_count: usize,
    flags: u32,
    error: *mut *mut highwater_error,
) -> highwater_code {
    change(schema, error, |schema| {
        let index = secondary_index((columns, count), (covered, covered_count), flags)?;
        Ok(schema.index_with(text(name, "the index's name")?, index))
    })
}

/// Has the indexes of the table compare a text column by a collation, for example `ascii_ci`.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_schema_collation(
    schema: *mut highwater_schema,
    column: *const c_char,
    collation: *const c_char,
    error: *mut *mut highwater_error,
) -> highwater_code {
    change(schema, error, |schema| {
        Ok(schema.collation(text(column, "the column's name")?, text(collation, "the collation")?))
    })
}

/// Has rows expire at the moment that a column of type `datetime` has.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_schema_expires(
    schema: *mut highwater_schema,
    column: *const c_char,
    error: *mut *mut highwater_error,
) -> highwater_code {
    change(schema, error, |schema| Ok(schema.expires(text(column, "the column's name")?)))
}

/// Lets the keys of the table be longer than an eighth of a page: up to seven 32nds.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_schema_long_keys(
    schema: *mut highwater_schema,
    error: *mut *mut highwater_error,
) -> highwater_code {
    change(schema, error, |schema| Ok(schema.long_keys()))
}

/// Keeps the changes of the table's rows for `highwater_changes`.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_schema_log_changes(
    schema: *mut highwater_schema,
    error: *mut *mut highwater_error,
) -> highwater_code {
    change(schema, error, |schema| Ok(schema.log_changes()))
}
