//! Open tables.
//!
//! Rule: a table handle has the names and types of the table's definition when the handle was opened. After a change of
//! the table calls with the handle are refused.

use crate::failure::{Result, done, highwater_code, highwater_error};
use crate::handle::{self, Out, c_string, opaque, text};
use highwater::Table;
use std::ffi::{CString, c_char};

/// A table of an open database. Any number of threads and transactions may use it at a time. It is valid until the
/// table is dropped, renamed or truncated, or its columns are changed; then calls fail with `HIGHWATER_TABLE_CHANGED`.
pub struct highwater_table {
    _opaque: [u8; 0],
}

opaque!(highwater_table, Opened, b"hw_table");

/// The contents of a table handle.
pub(crate) struct Opened {
    pub(crate) table: Table,
    name: CString,
    columns: Vec<Column>,
}

struct Column {
    name: CString,
    type_name: CString,
    nullable: bool,
}

impl Opened {
    /// The handle's.
    pub(crate) fn new(table: Table) -> Opened {
        let column = |column: &highwater::Column| Column {
            name: c_string(&column.name),
            type_name: c_string(&column.ty.to_string()),
            nullable: column.nullable,
        };
        Opened { name: c_string(table.name()), columns: table.columns().iter().map(column).collect(), table }
    }
}

/// The table of a handle.
///
/// # Errors
/// The handle is null, freed or of another type.
pub(crate) fn table<'a>(pointer: *const highwater_table) -> Result<&'a Table> {
    handle::get(pointer).map(|opened| &opened.table)
}

fn column<'a>(table: *const highwater_table, at: usize) -> Option<&'a Column> {
    handle::get(table).ok().and_then(|opened| opened.columns.get(at))
}

/// The table's name, which lives as long as the handle; NULL of null.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_table_name(table: *const highwater_table) -> *const c_char {
    handle::get(table).map_or(std::ptr::null(), |opened| opened.name.as_ptr())
}

/// Number of columns of the table; 0 for null.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_table_columns(table: *const highwater_table) -> usize {
    handle::get(table).map_or(0, |opened| opened.columns.len())
}

/// Name of a column, from 0 on, which lives as long as the handle; NULL if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_table_column_name(table: *const highwater_table, at: usize) -> *const c_char {
    column(table, at).map_or(std::ptr::null(), |column| column.name.as_ptr())
}

/// Type of a column, from 0 on, as `highwater_schema_column` takes it; it lives as long as the handle. NULL if there is
/// no such column.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_table_column_type(table: *const highwater_table, at: usize) -> *const c_char {
    column(table, at).map_or(std::ptr::null(), |column| column.type_name.as_ptr())
}

/// Whether a column, from 0 on, may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_table_column_nullable(table: *const highwater_table, at: usize) -> bool {
    column(table, at).is_some_and(|column| column.nullable)
}

/// Position of the column of a name, from 0 on.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_table_column(
    table: *const highwater_table,
    name: *const c_char,
    at: *mut usize,
    error: *mut *mut highwater_error,
) -> highwater_code {
    done(error, || {
        let (opened, at) = (handle::get(table)?, Out::new(at, "the position")?);
        at.put(opened.table.column(text(name, "the column's name")?)?);
        Ok(())
    })
}

/// Frees a table handle; null is ignored. The table stays.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_table_free(table: *mut highwater_table) {
    handle::free(table);
}
