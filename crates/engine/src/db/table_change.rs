//! Tables that change: names and columns, and truncation.
//!
//! Rules
//! 1. A change waits until no transaction uses the table, writes the catalog, and replaces the old `TableShared` by a
//!    new one. Handles of the old one return errors from then on (`table/handle.rs`). No row is changed.
//! 2. The table has the same trees before and after, and rows of each layout, so rollback, purge and snapshots continue
//!    to work. Only a truncated table has new trees, and another number, so that undo of the old rows finds no table.
//! 3. A snapshot that is older than a truncation would miss the old rows. So it cannot read the table.

use super::changes::check_not_change_log;
use super::database::Database;
use super::table_ref::TableRef;
use crate::error::{Error, Result};
use crate::sync::atomic::Ordering;
use crate::sync::event::event;
use crate::table::catalog_entry::{Leftover, TableEntry};
use crate::table::handle::TableShared;
use crate::table::lock::Change;
use crate::table::table_change::Altered;
use crate::table::version::TableVersion;
use crate::table::{Table, TableChange};
use std::sync::Arc;

impl Database {
    /// Changes columns and names of a table, all together, atomically and durably. Its duration does not depend on the
    /// number of rows: no row is rewritten. Existing rows are read in the new form, and are converted when they are
    /// changed.
    ///
    /// It waits for transactions as [`drop_table`](Self::drop_table) does. Older handles of the table return
    /// [`Error::TableChanged`] afterwards; the returned handle has the new columns. Older snapshots see the rows of
    /// their time, in the new columns.
    ///
    /// ```
    /// use highwater::{Database, Options, Schema, TableChange, Type, values};
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = Database::open(dir.path(), Options::default())?;
    /// let schema = Schema::new().column("id", Type::U64).column("name", Type::Text(40)).column("age", Type::U8);
    /// let people = db.create_table("people", schema.primary_key(&["id"]))?;
    /// db.transact(|txn| txn.insert(&people, &values![1u64, "Ada", 36u8]).map(drop))?;
    ///
    /// let people = db.alter_table("people", &[
    ///     TableChange::drop_column("age"),
    ///     TableChange::widen_column("name", Type::Text(200)),
    ///     TableChange::add_column("country", Type::Text(2), "GB"),
    ///     TableChange::add_nullable("born", Type::U16),
    /// ])?;
    /// let row = db.snapshot()?.get(&people, &values![1u64])?.unwrap();
    /// assert_eq!((row.str(1), row.str(2), row.is_null(3)), ("Ada", "GB", true));
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoSuchTable`]; [`Error::Schema`] says which change cannot be and why (a column of a key or an index is
    /// not dropped, for one; a table's columns can be changed 254 times); [`Error::LockWaitTimeout`] if transactions
    /// use the table for longer than that; [`Error::DiskFull`], an I/O error. Nothing is changed then.
    pub fn alter_table<'t>(&self, table: impl Into<TableRef<'t>>, changes: &[TableChange]) -> Result<Table> {
        self.alter(table.into(), |table| {
            let wrong = |reason: String| Error::Schema(format!("table {}: {reason}", table.definition.name));
            Altered::by(&table.definition, &table.columns, changes).map_err(wrong)
        })
    }

    /// Gives a table another name, as [`alter_table`](Self::alter_table) changes it.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`]; [`Error::TableExists`] if there is a table of the new name; [`Error::Schema`] if that is
    /// no name; [`Error::LockWaitTimeout`], [`Error::DiskFull`], an I/O error. Nothing is changed then.
    pub fn rename_table<'t>(&self, table: impl Into<TableRef<'t>>, to: &str) -> Result<Table> {
        self.alter(table.into(), |table| {
            let mut altered = Altered { definition: table.definition.clone(), columns: table.columns.clone() };
            altered.definition.name = to.to_string();
            let wrong = |reason: String| Error::Schema(format!("table {}: {reason}", table.definition.name));
            altered.definition.validate().map_err(wrong)?;
            Ok(altered)
        })
    }

    fn alter(&self, table: TableRef<'_>, plan: impl FnOnce(&TableEntry) -> Result<Altered>) -> Result<Table> {
        let inner = &self.inner;
        let _gate = self.enter_schema_change()?;
        let before = inner.table_of(table)?;
        let change = self.change(&before)?;
        let altered = plan(&before.entry.lock())?;
        change.exclusive(self.patience())?;
        let _schema = inner.schema.lock();
        let name_after = &altered.definition.name;
        check_not_change_log(name_after)?;
        if *name_after != before.name && inner.registry.get(name_after).is_ok() {
            return Err(Error::TableExists { table: name_after.clone() });
        }
        // Else the numbers up to the bound would be left out.
        before.persist_exact()?;
        let (id, logged) = (before.current.read().id, before.entry.lock().definition.log_changes);
        if logged || altered.definition.log_changes {
            let is_renamed = *name_after != before.name;
            let names = [&before.name[..], name_after];
            self.log_table_change(id, &names[..1 + usize::from(is_renamed)])?;
        }
        let entry = inner.catalog.alter_table(&before.entry.lock(), altered)?;
        let version = before.current.read().altered(&entry, inner.catalog.collations());
        debug_assert_eq!(entry.id, id, "rule 2: table {} gets another number", before.name);
        event!(INFO, table = before.name, name = entry.definition.name, "a table was changed");
        Ok(self.exchange(&before, &change, entry, version))
    }

    /// Removes all rows of a table at once, atomically and durably, once no transaction uses it any more: it gets new
    /// trees, and the old ones are freed in the background. Auto-increment starts again. Handles of the table that
    /// were made before are errors afterwards. Snapshots that began before cannot read the table: they get an error
    /// that says so.
    ///
    /// ```
    /// # use highwater::{Database, Options, Schema, Type, values};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Database::open(dir.path(), Options::default())?;
    /// # let schema = Schema::new().column("id", Type::U64).auto_increment("id").primary_key(&["id"]);
    /// # let visits = db.create_table("visits", schema)?;
    /// db.transact(|txn| txn.insert(&visits, &values![null]).map(drop))?;
    /// let visits = db.truncate_table("visits")?;
    /// assert_eq!(db.transact(|txn| txn.insert(&visits, &values![null]))?.auto_increment, Some(1));
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoSuchTable`], [`Error::LockWaitTimeout`] if transactions use it for longer than that,
    /// [`Error::DiskFull`], an I/O error. The rows are all there then.
    pub fn truncate_table<'t>(&self, table: impl Into<TableRef<'t>>) -> Result<Table> {
        let inner = &self.inner;
        let _gate = self.enter_schema_change()?;
        let before = inner.table_of(table.into())?;
        let change = self.change(&before)?;
        change.exclusive(self.patience())?;
        let _schema = inner.schema.lock();
        let mut old = before.entry.lock();
        if old.definition.log_changes {
            self.log_table_change(old.id, &[&before.name])?;
        }
        let entry = inner.catalog.truncate_table(&mut old)?;
        debug_assert_ne!(entry.id, old.id, "rule 2: undo of the old rows finds the truncated table {}", before.name);
        let fresh = TableShared::open(&inner.catalog, entry.clone());
        let since = inner.schema_version() + 1;
        let mut version = TableVersion::clone(&fresh.current.read());
        version.since = since;
        // In this order: a transaction that can use the new trees began at their version, or gets an error.
        inner.schema_version.fetch_add(1, Ordering::Release);
        debug_assert_eq!(since, inner.schema_version(), "rule 3: older snapshots read the truncated table");
        let table = self.exchange(&before, &change, entry, version);
        inner.dropping.add(Leftover::Table(old.remains()));
        event!(INFO, table = before.name, "a table was truncated");
        Ok(table)
    }

    /// From now on the table is this one.
    fn exchange(&self, before: &TableShared, change: &Change<'_>, entry: TableEntry, version: TableVersion) -> Table {
        debug_assert!(
            self.inner.schema.try_lock().is_none(),
            "rule 1 of schema changes: the registry changes without its mutex"
        );
        let shared = TableShared::of(&self.inner.catalog, entry, version);
        change.set_changed();
        self.inner.registry.exchange(before, Arc::clone(&shared));
        Table { shared }
    }
}
