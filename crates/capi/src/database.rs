//! Opening and closing; options; tables by their names.

use crate::failure::{Result, done, highwater_code, highwater_error};
use crate::handle::{self, Out, c_string, new, opaque, path, slice, text};
use crate::schema::{highwater_key_column, highwater_schema, secondary_index};
use crate::table::{Opened, highwater_table};
use highwater::{Database, Options};
use std::ffi::{CString, c_char};

/// An open database. Any number of threads may use it at a time; `highwater_close` is the last call.
pub struct highwater_db {
    _opaque: [u8; 0],
}

opaque!(highwater_db, Database, b"hwdatabs");

/// An option by its name, with its value as text: what the command line takes, `{"buffer_pool_size", "64MiB"}`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct highwater_option {
    /// Its name; dashes and underscores are the same.
    pub name: *const c_char,
    /// Its value.
    pub value: *const c_char,
}

/// Options of an array.
///
/// # Errors
/// A null pointer; an unknown option, a value that is not accepted.
pub(crate) fn options_of(options: *const highwater_option, count: usize) -> Result<Options> {
    let mut all = Options::default();
    for option in slice(options, count, "the options")? {
        all.set(text(option.name, "an option's name")?, text(option.value, "an option's value")?)?;
    }
    Ok(all)
}

type Error = *mut *mut highwater_error;

/// Version of the library, such as "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn highwater_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// Opens the database in a folder, creating both if necessary, recovering from a crash if there was one. Options that
/// are not named have their defaults.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_open(
    folder: *const c_char,
    options: *const highwater_option,
    option_count: usize,
    db: *mut *mut highwater_db,
    error: *mut *mut highwater_error,
) -> highwater_code {
    done(error, || {
        let db = Out::handle(db, "the database")?;
        db.put(new(Database::open(path(folder, "the folder")?, options_of(options, option_count)?)?));
        Ok(())
    })
}

/// Opens an existing database to read it only: not a byte of its files is written, and no other process may have it
/// open for writing. Transactions are begun by `highwater_snapshot`.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_open_read_only(
    folder: *const c_char,
    options: *const highwater_option,
    option_count: usize,
    db: *mut *mut highwater_db,
    error: *mut *mut highwater_error,
) -> highwater_code {
    done(error, || {
        let db = Out::handle(db, "the database")?;
        db.put(new(Database::open_read_only(path(folder, "the folder")?, options_of(options, option_count)?)?));
        Ok(())
    })
}

/// A new database in memory, which is gone when it is closed.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_open_in_memory(
    options: *const highwater_option,
    option_count: usize,
    db: *mut *mut highwater_db,
    error: *mut *mut highwater_error,
) -> highwater_code {
    done(error, || {
        let db = Out::handle(db, "the database")?;
        db.put(new(Database::in_memory_with(options_of(options, option_count)?)?));
        Ok(())
    })
}

/// Closes a database and frees its handle, also when it fails; null is ignored. Calls of its tables, transactions and
/// cursors fail with `HIGHWATER_CLOSED` from then on; they are freed as before, and the folder can be opened again once
/// its transactions are.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_close(db: *mut highwater_db, error: *mut *mut highwater_error) -> highwater_code {
    done(error, || match handle::take(db)? {
        Some(db) => Ok(db.close()?),
        None => Ok(()),
    })
}

/// Changes an option of the open database; not every option can be changed.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_set_option(
    db: *mut highwater_db,
    name: *const c_char,
    value: *const c_char,
    error: *mut *mut highwater_error,
) -> highwater_code {
    done(error, || Ok(handle::get(db)?.set_option(text(name, "the name")?, text(value, "the value")?)?))
}

/// The value of an option that is in force, as text, to be freed with `highwater_string_free`.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_get_option(
    db: *mut highwater_db,
    name: *const c_char,
    value: *mut *mut c_char,
    error: *mut *mut highwater_error,
) -> highwater_code {
    done(error, || {
        let (out, db) = (Out::handle(value, "the value")?, handle::get(db)?);
        let name = text(name, "the name")?;
        let wanted = name.trim_start_matches('-').replace('-', "_");
        let found = db.options().values().into_iter().find(|(name, _)| *name == wanted);
        let (_, value) = found.ok_or_else(|| highwater::Error::BadOption {
            option: name.to_string(),
            reason: "no such option".to_string(),
        })?;
        out.put(c_string(&value).into_raw());
        Ok(())
    })
}

/// Creates a table.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_create_table(
    db: *mut highwater_db,
    name: *const c_char,
    schema: *const highwater_schema,
    table: *mut *mut highwater_table,
    error: *mut *mut highwater_error,
) -> highwater_code {
    named(db, name, table, error, |db, name| Ok(db.create_table(name, handle::get(schema)?.lock().clone())?))
}

/// The table with a name. It is created if it does not exist, and refused if it differs from the schema.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_table_or_create(
    db: *mut highwater_db,
    name: *const c_char,
    schema: *const highwater_schema,
    table: *mut *mut highwater_table,
    error: *mut *mut highwater_error,
) -> highwater_code {
    named(db, name, table, error, |db, name| Ok(db.table_or_create(name, handle::get(schema)?.lock().clone())?))
}

/// Makes a table what a schema says: creates it, or adds the columns and indexes that it lacks, and widens types.
/// Nothing is dropped.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_migrate(
    db: *mut highwater_db,
    name: *const c_char,
    schema: *const highwater_schema,
    table: *mut *mut highwater_table,
    error: *mut *mut highwater_error,
) -> highwater_code {
    named(db, name, table, error, |db, name| Ok(db.migrate(name, handle::get(schema)?.lock().clone())?.table))
}

/// The table of a name.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_open_table(
    db: *mut highwater_db,
    name: *const c_char,
    table: *mut *mut highwater_table,
    error: *mut *mut highwater_error,
) -> highwater_code {
    named(db, name, table, error, |db, name| Ok(db.table(name)?))
}

/// A call that takes a table's name and returns the table.
fn named(
    db: *mut highwater_db,
    name: *const c_char,
    table: *mut *mut highwater_table,
    error: Error,
    call: impl FnOnce(&Database, &str) -> Result<highwater::Table>,
) -> highwater_code {
    done(error, || {
        let (table, db) = (Out::handle(table, "the table")?, handle::get(db)?);
        table.put(new(Opened::new(call(db, text(name, "the table's name")?)?)));
        Ok(())
    })
}

/// Drops a table. It waits until the transactions that use it have ended.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_drop_table(
    db: *mut highwater_db,
    name: *const c_char,
    error: *mut *mut highwater_error,
) -> highwater_code {
    done(error, || Ok(handle::get(db)?.drop_table(text(name, "the table's name")?)?))
}

/// Gives a table another name. Its handles are no longer valid then.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_rename_table(
    db: *mut highwater_db,
    name: *const c_char,
    to: *const c_char,
    error: *mut *mut highwater_error,
) -> highwater_code {
    done(error, || {
        handle::get(db)?.rename_table(text(name, "the table's name")?, text(to, "the new name")?)?;
        Ok(())
    })
}

/// Empties a table at once. Its handles are no longer valid then.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_truncate_table(
    db: *mut highwater_db,
    name: *const c_char,
    error: *mut *mut highwater_error,
) -> highwater_code {
    done(error, || {
        handle::get(db)?.truncate_table(text(name, "the table's name")?)?;
        Ok(())
    })
}

/// Builds an index while others read and write the table. Parameters are those of `highwater_schema_index`.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_create_index(
    db: *mut highwater_db,
    table: *const c_char,
    name: *const c_char,
    columns: *const highwater_key_column,
    count: usize,
    covered: *const *const c_char,
    covered_count: usize,
    flags: u32,
    error: *mut *mut highwater_error,
) -> highwater_code {
    done(error, || {
        let index = secondary_index((columns, count), (covered, covered_count), flags)?;
        let (table, name) = (text(table, "the table's name")?, text(name, "the index's name")?);
        handle::get(db)?.create_index_with(table, name, index)?;
        Ok(())
    })
}

/// Drops an index.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_drop_index(
    db: *mut highwater_db,
    table: *const c_char,
    name: *const c_char,
    error: *mut *mut highwater_error,
) -> highwater_code {
    done(error, || Ok(handle::get(db)?.drop_index(text(table, "the table's name")?, text(name, "the index's name")?)?))
}

/// Names of tables.
pub struct highwater_names {
    _opaque: [u8; 0],
}

opaque!(highwater_names, Vec<CString>, b"hw_names");

/// The names of all tables, in order, to be freed with `highwater_names_free`.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_tables(
    db: *mut highwater_db,
    names: *mut *mut highwater_names,
    error: *mut *mut highwater_error,
) -> highwater_code {
    done(error, || {
        let (out, db) = (Out::handle(names, "the names")?, handle::get(db)?);
        out.put(new(db.tables().iter().map(|table| c_string(table.name())).collect()));
        Ok(())
    })
}

/// Number of names; 0 for null.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_names_count(names: *const highwater_names) -> usize {
    handle::get(names).map_or(0, Vec::len)
}

/// A name, from 0 on, which lives as long as the names do; NULL if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_names_get(names: *const highwater_names, at: usize) -> *const c_char {
    let name = handle::get(names).ok().and_then(|names| names.get(at));
    name.map_or(std::ptr::null(), |name| name.as_ptr())
}

/// Frees names; null is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_names_free(names: *mut highwater_names) {
    handle::free(names);
}
