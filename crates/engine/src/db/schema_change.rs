//! Creating and dropping tables and indexes.
//!
//! Rules
//! 1. Changes of a table run one at a time (`table/lock.rs`), those of different tables concurrently. They hold the
//!    schema mutex while they change the catalog and the registry, and not while they wait for transactions or fill an
//!    index.
//! 2. Each is inside the gate (`gate.rs`) from its begin to its end, so no schema change runs during a check.
//! 3. Each is atomic and durable: the catalog says what is in use. Dropped objects, and the remains of an interrupted
//!    change, are freed in the background (`dropping.rs`), after a crash by the next opening.
//! 4. Transactions that began after an index became current use it. So the version number that they compare is assigned
//!    at that time, under the schema mutex, not at the begin of the build.

use super::changes::{CHANGE_LOG, check_not_change_log};
use super::database::Database;
use super::table_ref::TableRef;
use crate::btree::BTree;
use crate::config::Collations;
use crate::error::{Error, Result};
use crate::sync::atomic::Ordering;
use crate::sync::event::event;
use crate::table::catalog_entry::Leftover;
use crate::table::handle::TableShared;
use crate::table::lock::Change;
use crate::table::record::{IndexRecord, ObjectState};
use crate::table::version::{Secondary, TableVersion};
use crate::table::{Schema, Table, TableDefinition};
use crate::txn::{EntryLog, ReadView};
use crate::types::TableId;
use std::sync::Arc;

impl Database {
    /// Whether there is a table of this name.
    pub fn has_table(&self, name: &str) -> bool {
        self.inner.table_named(name).is_ok()
    }

    /// The table of a name.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`].
    pub fn table(&self, name: &str) -> Result<Table> {
        self.inner.check_not_closed()?;
        Ok(Table { shared: self.inner.table_named(name)? })
    }

    /// Every table, by name.
    pub fn tables(&self) -> Vec<Table> {
        let tables = self.inner.registry.all().into_iter().filter(|shared| shared.name != CHANGE_LOG);
        tables.map(|shared| Table { shared }).collect()
    }

    /// Creates a table, atomically and durably.
    ///
    /// # Errors
    /// [`Error::TableExists`], [`Error::Schema`] if the schema is wrong, [`Error::DiskFull`], an I/O error.
    pub fn create_table(&self, name: &str, schema: Schema) -> Result<Table> {
        let definition = schema.check(name)?;
        check_not_change_log(name)?;
        let _gate = self.enter_schema_change()?;
        let _schema = self.inner.schema.lock();
        if self.inner.registry.get(name).is_ok() {
            return Err(Error::TableExists { table: name.to_string() });
        }
        if definition.log_changes {
            self.ensure_change_log()?;
        }
        let entry = self.inner.catalog.create_table(definition)?;
        let shared = TableShared::open(&self.inner.catalog, entry);
        self.inner.registry.add(shared.clone());
        event!(INFO, table = name, "a table was created");
        Ok(Table { shared })
    }

    /// The table of a name; created if there is none. An existing table may have more indexes than the schema.
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
    /// [`Error::Schema`] says what of the table there differs from the schema ([`migrate`](Self::migrate) can make it
    /// so); those of [`create_table`](Self::create_table).
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
            Some(what) => Err(Error::Schema(format!("there is a table {name} already, with {what}"))),
            None => Ok(table),
        }
    }

    /// Drops a table, atomically and durably, once no transaction uses it any more. Its handles are errors from then
    /// on. Its pages are freed in the background ([`finish_drops`](Self::finish_drops)).
    ///
    /// While it waits it bars other transactions from the table, in turns: for a tenth of a second, then for twice as
    /// long and so on, and between two bars they pass for three times as long. So one that stays open delays the others
    /// and does not stop them, and no stream of short ones keeps the table. [`with_lock_wait_timeout`] says how long it
    /// waits. All schema changes do this.
    ///
    /// [`with_lock_wait_timeout`]: Self::with_lock_wait_timeout
    ///
    /// # Errors
    /// [`Error::NoSuchTable`], [`Error::LockWaitTimeout`] if transactions use it for longer than that, an I/O error.
    pub fn drop_table<'t>(&self, table: impl Into<TableRef<'t>>) -> Result<()> {
        let inner = &self.inner;
        let _gate = self.enter_schema_change()?;
        let table = inner.table_of(table.into())?;
        let change = self.change(&table)?;
        change.exclusive(self.patience())?;
        let _schema = inner.schema.lock();
        let mut entry = table.entry.lock();
        if entry.definition.log_changes {
            self.log_table_change(entry.id, &[&table.name])?;
        }
        inner.catalog.set_table_state(&mut entry, ObjectState::Dropping)?;
        debug_assert_eq!(entry.record.state, ObjectState::Dropping, "rule 3: table {} is in use", table.name);
        change.set_dropped();
        inner.registry.remove(&table);
        inner.dropping.add(Leftover::Table(entry.remains()));
        event!(INFO, table = table.name, "a table was dropped");
        Ok(())
    }

    /// Drops an index, atomically and durably, once no transaction uses its table any more. Its pages are freed in the
    /// background.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`], [`Error::NoSuchIndex`], [`Error::LockWaitTimeout`] if transactions use the table for
    /// longer than that, an I/O error.
    pub fn drop_index<'t>(&self, table: impl Into<TableRef<'t>>, name: &str) -> Result<()> {
        let inner = &self.inner;
        let _gate = self.enter_schema_change()?;
        let shared = inner.table_of(table.into())?;
        let change = self.change(&shared)?;
        let before = shared.current.read().clone();
        let Some(at) = before.index_position(name)? else {
            return Err(Error::Schema(format!("the primary key of table {} cannot be dropped", shared.name)));
        };
        change.exclusive(self.patience())?;
        let _schema = inner.schema.lock();
        let mut entry = shared.entry.lock();
        inner.catalog.set_index_state(before.id, &mut entry.indexes[at], ObjectState::Dropping)?;
        let record = entry.indexes.remove(at);
        entry.definition.indexes.remove(at);
        debug_assert_eq!(record.state, ObjectState::Dropping, "an index in use is removed");
        debug_assert_eq!(record.definition.name, name, "another index than the named one is removed");
        debug_assert_eq!(record.tree.id, before.indexes[at].tree.id(), "the catalog has another tree for index {name}");
        entry.check();
        let mut indexes = before.indexes.clone();
        indexes.remove(at);
        inner.registry.replace(&shared, before.with_indexes(Arc::new(entry.definition.clone()), indexes));
        inner.dropping.add(Leftover::Index(before.id, record));
        event!(INFO, table = shared.name, index = name, "an index was dropped");
        Ok(())
    }

    /// Frees the remains of dropped tables and indexes now, and returns when all are freed. A background thread does
    /// the same soon after each drop, and a close frees the rest. The remains of a killed process are freed after the
    /// next opening.
    ///
    /// ```
    /// # use highwater::{Database, Options, Schema, Type};
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = Database::open(dir.path(), Options::default())?;
    /// db.create_table("old", Schema::new().column("id", Type::U64).primary_key(&["id"]))?;
    /// db.drop_table("old")?;
    /// db.finish_drops()?;
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// A damaged page, after which the rest of that table or index is left for the next opening; an I/O error.
    pub fn finish_drops(&self) -> Result<()> {
        self.check_writable()?;
        self.inner.dropping.finish()
    }
}

/// Common code of changes of a table's indexes. The caller holds the schema gate.
impl Database {
    /// Keeps other changes of the table out.
    ///
    /// # Errors
    /// The table was dropped before it was this change's turn; [`Error::LockWaitTimeout`], [`Error::Interrupted`];
    /// [`Error::TableInPrepared`], at once.
    pub(super) fn change<'t>(&self, table: &'t Arc<TableShared>) -> Result<Change<'t>> {
        let alone = table.lock.change(self.patience())?;
        table.lock.check(&table.name)?;
        self.inner.prepared.refuse_change(table)?;
        Ok(alone)
    }

    /// Removes an index that never was in use, in the background.
    pub(super) fn discard_index(&self, table: TableId, index: &IndexRecord) {
        self.inner.dropping.add(Leftover::Index(table, index.clone()));
    }

    /// Makes a version current for transactions that begin from now on: the indexes of `definition` are `others` and,
    /// as the last one, this tree, built from the rows that `birth` sees. The caller holds the schema mutex, and the
    /// catalog has the index.
    pub(super) fn make_current(
        &self,
        table: &TableShared,
        others: &[Arc<Secondary>],
        definition: Arc<TableDefinition>,
        tree: Arc<BTree>,
        birth: ReadView,
    ) {
        debug_assert!(
            self.inner.schema.try_lock().is_none(),
            "rule 4: the version number is given outside of the schema mutex"
        );
        let before = table.current.read().clone();
        let index = definition.indexes.last().map_or("", |index| &index.name);
        event!(INFO, table = table.name, index = index, "an index was built");
        let (collations, since) = (self.inner.catalog.collations(), (self.inner.schema_version() + 1, birth));
        let after = with_new_tree(collations, &before, others, definition, tree, since, None);
        // In this order: a transaction that can see the index began at its version, or gets an error that it is too
        // old.
        self.inner.schema_version.fetch_add(1, Ordering::Release);
        let since = after.indexes.last().map(|index| index.since);
        debug_assert_eq!(since, Some(self.inner.schema_version()), "rule 4: the index has another version number");
        self.inner.registry.replace(table, after);
    }
}

/// The table with the indexes of `definition`: `others`, and a new one, for transactions that began at the schema
/// version `since`; see [`Secondary`].
pub(super) fn with_new_tree(
    collations: &Collations,
    table: &TableVersion,
    others: &[Arc<Secondary>],
    definition: Arc<TableDefinition>,
    tree: Arc<BTree>,
    since: (u64, ReadView),
    log: Option<Arc<EntryLog>>,
) -> TableVersion {
    debug_assert_eq!(definition.indexes.len(), others.len() + 1, "an index of {} has no tree", definition.name);
    let added = &definition.indexes[definition.indexes.len() - 1];
    let added = Secondary::new(&definition, added, collations, tree, since, log);
    let indexes = others.iter().cloned().chain([Arc::new(added)]).collect();
    table.with_indexes(definition, indexes)
}
