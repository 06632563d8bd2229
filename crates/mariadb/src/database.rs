//! The database, and operations on tables by name.

use crate::abi::{
    Array, Bytes, ColumnDefinition, Columns, ColumnsOut, Context, IndexDefinition, TableChanges, TableDefinition,
};
use crate::definition::{schema_of, secondary_index, type_of};
use crate::failure::{Code, found, guarded};
use crate::information::Connections;
use crate::row_count::RowCount;
use crate::table::Table;
use crate::temporary::{PostponedDrops, TEMPORARY};
use highwater::raw::RawTable;
use highwater::{BackupOptions, Error, LockWaitEvent, Options, Result, TableChange, Type, Value};
use parking_lot::{Mutex, RwLock};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// An open database.
pub struct Database {
    pub(crate) db: highwater::Database,
    tables: Mutex<HashMap<String, Arc<SharedTable>>>,
    pub(crate) connections: Connections,
    pub(crate) postponed: Arc<PostponedDrops>,
}

/// What all handlers of a table share.
pub struct SharedTable {
    raw: RwLock<RawTable>,
    /// Counts the tables that it has been.
    generation: AtomicU64,
    /// The next number of a hidden primary key; 0: not known yet.
    pub(crate) next_row: Mutex<u64>,
    pub(crate) rows: RowCount,
}

impl SharedTable {
    fn new(raw: RawTable) -> SharedTable {
        SharedTable {
            raw: RwLock::new(raw),
            generation: AtomicU64::new(0),
            next_row: Mutex::new(0),
            rows: RowCount::default(),
        }
    }

    /// The table as it is, and which one it is.
    pub fn current(&self) -> (RawTable, u64) {
        let raw = self.raw.read();
        (raw.clone(), self.generation.load(Ordering::Acquire))
    }

    /// Which one it is.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// From now on it is another one.
    pub fn exchange(&self, table: RawTable) {
        *self.raw.write() = table;
        *self.next_row.lock() = 0;
        self.rows.forget();
        self.generation.fetch_add(1, Ordering::AcqRel);
    }
}

impl Database {
    fn open(folder: &str, options: &[(String, String)]) -> Result<Database> {
        let mut all = Options::default();
        for (name, value) in options {
            all.set(name, value)?;
        }
        std::fs::create_dir_all(folder).map_err(|error| Error::Usage(format!("{folder}: {error}")))?;
        let db = highwater::Database::open(PathBuf::from(folder), all)?;
        let postponed = Arc::new(PostponedDrops::new(&db));
        let (tables, connections) = (Mutex::default(), Connections::default());
        let database = Database { db, tables, connections, postponed };
        database.drop_tables(|name| name.contains(TEMPORARY))?;
        Ok(database)
    }

    /// What the handlers of a table share.
    ///
    /// # Errors
    /// There is no such table.
    pub fn shared(&self, name: &str) -> Result<Arc<SharedTable>> {
        let mut tables = self.tables.lock();
        if let Some(found) = tables.get(name) {
            return Ok(Arc::clone(found));
        }
        let shared = Arc::new(SharedTable::new(RawTable::open(&self.db, name)?));
        tables.insert(name.to_string(), Arc::clone(&shared));
        Ok(shared)
    }

    fn forget(&self, name: &str) {
        self.tables.lock().remove(name);
    }

    fn refresh(&self, name: &str, table: RawTable) {
        if let Some(shared) = self.tables.lock().get(name) {
            shared.exchange(table);
        }
    }

    fn drop_table(&self, name: &str) -> Result<()> {
        self.forget(name);
        if name.contains(TEMPORARY) { self.postponed.drop_table(name) } else { self.db.drop_table(name) }
    }

    fn drop_tables(&self, is_meant: impl Fn(&str) -> bool) -> Result<()> {
        for table in self.db.tables() {
            if is_meant(table.name()) {
                self.drop_table(table.name())?;
            }
        }
        Ok(())
    }

    fn create(&self, name: &str, definition: &TableDefinition) -> Result<()> {
        let table = RawTable::create(&self.db, name, schema_of(definition)?)?;
        if definition.next_number > 1 && definition.auto_increment >= 0 {
            self.db.transact(|txn| txn.set_next_number(table.table(), definition.next_number))?;
        }
        Ok(())
    }

    fn column_names(&self, table: &str) -> Result<Vec<String>> {
        Ok(self.db.table(table)?.definition().columns.iter().map(|column| column.name.clone()).collect())
    }

    fn alter(&self, name: &str, changes: &TableChanges) -> Result<()> {
        let before = self.column_names(name)?;
        let column = |at: u32| {
            let found = before.get(at as usize).map(String::as_str);
            found.ok_or_else(|| Error::Schema(format!("there is no column {at}")))
        };
        let mut all = Vec::new();
        for at in changes.dropped.elements() {
            all.push(TableChange::drop_column(column(*at)?));
        }
        for rename in changes.names.elements() {
            all.push(TableChange::rename_column(column(rename.column)?, &rename.name.text()));
        }
        for (column, default) in changes.added.elements().iter().zip(changes.defaults.elements()) {
            all.push(added(column, default.get())?);
        }
        all.push(TableChange::SetAttachment(changes.version.elements().to_vec()));
        let table = self.db.alter_table(name, &all)?;
        self.refresh(name, table.into());
        Ok(())
    }
}

/// A column to be added, with what the rows that are there have in it.
fn added(column: &ColumnDefinition, default: Option<&[u8]>) -> Result<TableChange> {
    let (name, ty) = (column.name.text(), type_of(column)?);
    let Some(bytes) = default else { return Ok(TableChange::add_nullable(&name, ty)) };
    let value = value_of(ty, bytes)?;
    let default = Some(value);
    let nullable = column.nullable != 0;
    Ok(TableChange::AddColumn(highwater::Column { name, ty, nullable, default, collation: None }))
}

/// A value out of the bytes that a column keeps.
fn value_of(ty: Type, bytes: &[u8]) -> Result<Value> {
    let wrong = || Error::Schema(format!("a default of {} bytes for {ty}", bytes.len()));
    let word = || {
        let mut word = [0; 8];
        word.get_mut(..bytes.len()).ok_or_else(wrong)?.copy_from_slice(bytes);
        Ok::<u64, Error>(u64::from_le_bytes(word))
    };
    let unused = 64 - 8 * bytes.len().clamp(1, 8) as u32;
    Ok(match ty {
        Type::U8 | Type::U16 | Type::U24 | Type::U32 | Type::U64 => Value::UInt(word()?),
        Type::I8 | Type::I16 | Type::I24 | Type::I32 | Type::I64 => Value::Int((word()? << unused) as i64 >> unused),
        Type::F32 => Value::F64(f64::from(f32::from_bits(word()? as u32))),
        Type::F64 => Value::F64(f64::from_bits(word()?)),
        _ => Value::Bytes(bytes.to_vec()),
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_database_open(folder: Bytes, options: Columns, out: &mut Option<Box<Database>>) -> i32 {
    guarded(|| {
        let pairs = options.elements().chunks_exact(2).map(|pair| (pair[0].text(), pair[1].text()));
        *out = Some(Box::new(Database::open(&folder.text(), &pairs.collect::<Vec<_>>())?));
        Ok(Code::Ok)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_database_close(database: Option<Box<Database>>) -> i32 {
    guarded(|| {
        if let Some(database) = database {
            database.tables.lock().clear();
            database.db.close()?;
        }
        Ok(Code::Ok)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_on_lock_wait(database: &Database, tell: extern "C" fn(u32, *const u64, usize)) -> i32 {
    let told = move |event: LockWaitEvent<'_>| match event {
        LockWaitEvent::Begins { owners } => tell(1, owners.as_ptr(), owners.len()),
        LockWaitEvent::Ends => tell(0, std::ptr::null(), 0),
    };
    guarded(|| database.db.observe_lock_waits(told).map(|()| Code::Ok))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_option_set(database: &Database, name: Bytes, value: Bytes) -> i32 {
    guarded(|| database.db.set_option(&name.text(), &value.text()).map(|()| Code::Ok))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_options(
    database: &Database,
    visit: extern "C" fn(Context, Bytes, Bytes),
    context: Context,
) -> i32 {
    guarded(|| {
        for (name, value) in database.db.options().values() {
            visit(context, Bytes::of(name.as_bytes()), Bytes::of(value.as_bytes()));
        }
        Ok(Code::Ok)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_counters(database: &Database, visit: extern "C" fn(Context, Bytes, u64), context: Context) -> i32 {
    guarded(|| {
        for row in database.db.stats().table() {
            visit(context, Bytes::of(row.name.as_bytes()), row.value);
        }
        Ok(Code::Ok)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_status(database: &Database, visit: extern "C" fn(Context, Bytes), context: Context) -> i32 {
    guarded(|| {
        let db = &database.db;
        let mut lines = vec![format!("redo log ends at {}", db.lsn())];
        lines.extend(db.prepared().iter().map(|prepared| {
            format!(
                "prepared: {} ({} undo records; {})",
                prepared.xid,
                prepared.undo_records,
                prepared.tables.join(", ")
            )
        }));
        let counters = db.stats().table();
        lines.extend(counters.iter().filter(|row| row.value != 0).map(|row| format!("{:<36}{}", row.name, row.value)));
        lines.iter().for_each(|line| visit(context, Bytes::of(line.as_bytes())));
        Ok(Code::Ok)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_flush_log(database: &Database) -> i32 {
    guarded(|| database.db.flush_log().map(|()| Code::Ok))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_backup(database: &Database, folder: Bytes) -> i32 {
    guarded(|| {
        let options = BackupOptions { max_bytes_per_s: 0, ..BackupOptions::default() };
        database.db.backup(folder.text(), &options, &mut |_| ControlFlow::Continue(()))?;
        Ok(Code::Ok)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_lsn(database: &Database, lsn: &mut u64) -> i32 {
    guarded(|| {
        *lsn = database.db.lsn();
        Ok(Code::Ok)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_table_create(database: &Database, name: Bytes, definition: &TableDefinition) -> i32 {
    guarded(|| database.create(&name.text(), definition).map(|()| Code::Ok))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_table_drop(database: &Database, name: Bytes) -> i32 {
    guarded(|| database.drop_table(&name.text()).map(|()| Code::Ok))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_tables_drop(database: &Database, prefix: Bytes) -> i32 {
    guarded(|| {
        let prefix = prefix.text();
        database.drop_tables(|name| name.starts_with(&prefix)).map(|()| Code::Ok)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_table_rename(database: &Database, name: Bytes, to: Bytes) -> i32 {
    guarded(|| {
        let (name, to) = (name.text(), to.text());
        database.forget(&name);
        database.forget(&to);
        database.db.rename_table(&name, &to).map(|_| Code::Ok)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_index_create(
    table: &mut Table,
    database: &Database,
    index: &IndexDefinition,
    wanted: Array<u32>,
    mut duplicate: ColumnsOut,
) -> i32 {
    guarded(|| {
        table.refresh();
        let columns = secondary_index(index, &database.column_names(&table.name)?)?;
        let made = table.raw.create_index(&database.db, &index.name.text(), &columns, &mut table.row);
        if let Err(Error::DuplicateKey { .. }) = &made {
            table.hand_out(wanted.elements(), duplicate.elements());
        }
        made?;
        database.refresh(&table.name, RawTable::open(&database.db, &table.name)?);
        Ok(Code::Ok)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_index_drop(database: &Database, table: Bytes, index: Bytes) -> i32 {
    guarded(|| {
        let table = table.text();
        database.db.drop_index(&table, &index.text())?;
        database.refresh(&table, RawTable::open(&database.db, &table)?);
        Ok(Code::Ok)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_table_alter(database: &Database, table: Bytes, changes: &TableChanges) -> i32 {
    guarded(|| database.alter(&table.text(), changes).map(|()| Code::Ok))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_table_has_version(database: &Database, table: Bytes, version: Bytes) -> i32 {
    guarded(|| {
        let definition = database.db.table(&table.text())?.definition();
        Ok(found(definition.attachment == version.elements()))
    })
}
