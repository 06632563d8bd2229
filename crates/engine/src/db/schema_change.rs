//! Creating and dropping tables and indexes.
//!
//! Rules
//! 1. Schema changes come one at a time: the schema mutex.
//! 2. Each is atomic and durable: the catalog says what is in use, and the next opening removes what a change that did
//!    not end has left.

use super::database::{Database, Open};
use super::index_build;
use super::write_txn::WriteTxn;
use crate::error::{Error, Result};
use crate::sync::atomic::Ordering;
use crate::table::handle::TableShared;
use crate::table::key::KeyLayout;
use crate::table::record::State;
use crate::table::version::Secondary;
use crate::table::{IndexDefinition, Schema, Table, TableDefinition};
use crate::txn::{Access, TxnOptions};
use std::sync::Arc;

impl Database {
    /// Creates a table, atomically and durably.
    ///
    /// # Errors
    /// [`Error::TableExists`], [`Error::Schema`] if the schema is wrong, [`Error::DiskFull`], an I/O error.
    pub fn create_table(&self, name: &str, schema: Schema) -> Result<Table> {
        let definition = schema.check(name)?;
        let _one_at_a_time = self.inner.schema.lock();
        self.check_writable()?;
        if self.inner.registry.get(name).is_ok() {
            return Err(Error::TableExists { table: name.to_string() });
        }
        let entry = self.inner.catalog.create_table(definition)?;
        let shared = TableShared::open(&self.inner.catalog, entry, self.inner.ctx.pool.page_bytes());
        self.inner.registry.add(shared.clone());
        Ok(Table { shared })
    }

    /// The table of a name; created if there is none. One that is there may have more indexes than the schema.
    ///
    /// ```
    /// # use highwater::{Database, Options, Schema, Type};
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = Database::open(dir.path(), Options::default())?;
    /// let schema = || Schema::new().column("id", Type::U64).primary_key(&["id"]);
    /// let table = db.table_or_create("seen", schema())?;
    /// assert_eq!(db.table_or_create("seen", schema())?.name(), table.name());
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Schema`] if the table there differs from the schema; those of [`create_table`](Self::create_table).
    pub fn table_or_create(&self, name: &str, schema: Schema) -> Result<Table> {
        let wanted = schema.check(name)?;
        let created = match self.table(name) {
            Err(Error::NoSuchTable { .. }) => self.create_table(name, schema),
            found => found,
        };
        let table = match created {
            Err(Error::TableExists { .. }) => self.table(name)?,
            other => other?,
        };
        match table.definition().lacks(&wanted) {
            Some(what) => Err(Error::Schema(format!("there is a table {name} already, with {what} than asked for"))),
            None => Ok(table),
        }
    }

    /// Drops a table, atomically and durably, once no transaction uses it any more. Its handles are errors from then
    /// on.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`], [`Error::LockWaitTimeout`] if transactions use it for longer than that, an I/O error.
    pub fn drop_table(&self, name: &str) -> Result<()> {
        let inner = &self.inner;
        let _one_at_a_time = inner.schema.lock();
        self.check_writable()?;
        let table = inner.registry.get(name)?;
        let guard = table.lock.exclusive(inner.timeout())?;
        let mut entry = table.entry.lock();
        inner.catalog.set_table_state(&mut entry, State::Dropping)?;
        guard.set_dropped();
        inner.registry.remove(&table);
        entry.indexes.iter().try_for_each(|index| inner.txns.changes.discard(index.tree.id))?;
        inner.catalog.finish_drop(&entry.remains())
    }

    /// Adds an index to a table and fills it from the rows there are. Meanwhile transactions can read the table;
    /// writers wait. A crash before it is complete leaves no trace of it.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`], [`Error::Schema`] for a wrong name or column, [`Error::DuplicateKey`] if a unique index
    /// finds equal rows, [`Error::LockWaitTimeout`] if transactions write the table for longer than that,
    /// [`Error::KeyTooLong`], an I/O error.
    pub fn create_index(&self, table: &str, name: &str, columns: &[&str], unique: bool) -> Result<()> {
        let inner = &self.inner;
        let _one_at_a_time = inner.schema.lock();
        self.check_writable()?;
        let shared = inner.registry.get(table)?;
        let before = shared.current.read().clone();
        let definition = Arc::new(with_index(&before.definition, name, columns, unique)?);
        let _readers_only = shared.lock.no_write(inner.timeout())?;
        let added = definition.indexes[definition.indexes.len() - 1].clone();
        let mut record = inner.catalog.create_index(before.id, added)?;
        let secondary = Secondary {
            key: KeyLayout::new(&definition, &record.definition.columns),
            tree: inner.catalog.open_index_tree(&record),
            since: inner.schema_version() + 1,
        };
        let indexes = before.indexes.iter().cloned().chain([Arc::new(secondary)]).collect();
        let after = before.with_indexes(definition, indexes);
        let txn = WriteTxn::begin(&Open::new(inner), &TxnOptions::default(), Access::ReadWrite)?;
        let batch_bytes = index_build::batch_bytes(&inner.ctx);
        let built = index_build::build(&inner.ctx, txn, &Table { shared: shared.clone() }, &after, batch_bytes)
            .and_then(|()| inner.catalog.set_index_state(before.id, &mut record, State::Ready));
        if let Err(error) = built {
            // What cannot be removed now is removed when the database is opened next.
            let discarded = inner.txns.changes.discard(record.tree.id);
            let _ = discarded.and_then(|()| inner.catalog.finish_drop_index(before.id, &record));
            return Err(error);
        }
        let mut entry = shared.entry.lock();
        entry.definition = (*after.definition).clone();
        entry.indexes.push(record);
        // In this order: a transaction that can see the index began at its version, or gets an error that it is too
        // old.
        inner.schema_version.fetch_add(1, Ordering::Release);
        inner.registry.replace(&shared, after);
        Ok(())
    }

    /// Drops an index, atomically and durably, once no transaction uses its table any more.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`], [`Error::NoSuchIndex`], [`Error::LockWaitTimeout`] if transactions use the table for
    /// longer than that, an I/O error.
    pub fn drop_index(&self, table: &str, name: &str) -> Result<()> {
        let inner = &self.inner;
        let _one_at_a_time = inner.schema.lock();
        self.check_writable()?;
        let shared = inner.registry.get(table)?;
        let before = shared.current.read().clone();
        let Some(at) = before.index_position(name)? else {
            return Err(Error::Schema(format!("the primary key of table {table} cannot be dropped")));
        };
        let _nobody = shared.lock.exclusive(inner.timeout())?;
        let mut entry = shared.entry.lock();
        inner.catalog.set_index_state(before.id, &mut entry.indexes[at], State::Dropping)?;
        let record = entry.indexes.remove(at);
        entry.definition.indexes.remove(at);
        let mut indexes = before.indexes.clone();
        indexes.remove(at);
        inner.registry.replace(&shared, before.with_indexes(Arc::new(entry.definition.clone()), indexes));
        inner.txns.changes.discard(record.tree.id)?;
        inner.catalog.finish_drop_index(before.id, &record)
    }
}

/// The table with one more index, checked.
fn with_index(table: &TableDefinition, name: &str, columns: &[&str], unique: bool) -> Result<TableDefinition> {
    let wrong = |reason: String| Error::Schema(format!("table {}: index {name}: {reason}", table.name));
    let columns =
        columns.iter().map(|column| table.position(column)).collect::<std::result::Result<_, _>>().map_err(wrong)?;
    let mut definition = table.clone();
    definition.indexes.push(IndexDefinition { name: name.to_string(), columns, unique });
    definition.validate().map_err(|reason| Error::Schema(format!("table {}: {reason}", table.name)))?;
    Ok(definition)
}
