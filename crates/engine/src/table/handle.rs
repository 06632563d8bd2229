//! Open tables: the handle users hold, and the registry that finds tables by name and by number.
//!
//! Rules
//! 1. A table is in the registry iff its state in the catalog is Ready. Schema changes alone write the registry.
//! 2. A handle belongs to one name and one set of columns: a change of these creates another `TableShared` with the
//!    same trees ([`Registry::exchange`]), and the lock of the old one says that the table was changed.
//! 3. `current` and the registry's entry for rollback and purge change together, and the schema change waits until
//!    rollback and purge no longer use the old version ([`Registry::replace`]). The table's lock excludes writers
//!    meanwhile, except at the end of an index build, when the old and the new version write the same.
//! 4. Lock order: gate of the database, table lock, schema mutex, registry, `entry` mutex, catalog.

use super::auto_increment::{AutoIncrement, Moved, NumberRange};
use super::catalog::Catalog;
use super::catalog_entry::TableEntry;
use super::definition::{Column, IndexDefinition, TableDefinition};
use super::lock::TableLock;
use super::record::{IndexRecord, RecordKey};
use super::row_layouts::RowLayouts;
use super::statistics::TableStatistics;
use super::version::{Secondary, TableVersion, last_number};
use crate::error::{Error, Result};
use crate::lock::OwnerId;
use crate::sync::atomic::{AtomicU64, Ordering::Release};
use crate::sync::poison::OnStop;
use crate::sync::{Mutex, RwLock};
use crate::txn::{ReadView, TableTrees, Tables};
use crate::types::TableId;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A table of an open database. Cheap to clone; valid in every thread and transaction until the table is dropped, or
/// until it gets another name or other columns, or is truncated. Then calls with the handle fail with
/// [`Error::TableChanged`], since the positions of columns may be others, and
/// [`Database::table`](crate::Database::table) has a new one. Indexes come and go without that.
#[derive(Clone)]
pub struct Table {
    pub(crate) shared: Arc<TableShared>,
}

/// State that all handles of a table share.
///
/// Aligned to cache lines, because all threads read it.
#[repr(align(128))]
pub(crate) struct TableShared {
    pub(crate) name: String,
    pub(crate) lock: TableLock,
    pub(crate) current: RwLock<Arc<TableVersion>>,
    /// Counts the versions that became current.
    pub(crate) versions: AtomicU64,
    /// The catalog's records.
    pub(crate) entry: Mutex<TableEntry>,
    columns: Vec<Column>,
    auto_increment: Option<(usize, AutoIncrement)>,
    catalog: Arc<Catalog>,
}

impl OnStop for TableShared {
    fn stopped(&self) {
        self.lock.wake_all();
    }

    fn interrupted(&self) {
        self.lock.wake_all();
    }
}

impl TableShared {
    /// Opens a table the catalog has.
    pub(crate) fn open(catalog: &Arc<Catalog>, entry: TableEntry) -> Arc<TableShared> {
        let definition = Arc::new(entry.definition.clone());
        let secondary = |(record, index): (&IndexRecord, &IndexDefinition)| {
            let (tree, always) = (catalog.open_index_tree(record), (0, ReadView::default()));
            Arc::new(Secondary::new(&definition, index, catalog.collations(), tree, always, None))
        };
        let indexes = entry.indexes.iter().zip(&definition.indexes).map(secondary).collect();
        let clustered = catalog.open_tree(entry.record.clustered);
        let (overflow, layouts) = (entry.record.overflow, Arc::new(RowLayouts::of_table(&entry)));
        let version = TableVersion::new(entry.id, definition, layouts, clustered, overflow, indexes);
        TableShared::of(catalog, entry, version)
    }

    /// The table whose trees and layouts are those of `version`.
    pub(crate) fn of(catalog: &Arc<Catalog>, entry: TableEntry, version: TableVersion) -> Arc<TableShared> {
        entry.check();
        debug_assert_eq!(entry.id, version.id, "the table {} is opened as another", version.definition.name);
        debug_assert_eq!(entry.indexes.len(), version.indexes.len(), "the indexes of {}", version.definition.name);
        let definition = version.definition.clone();
        let counter = |column: usize| {
            let last = last_number(definition.columns[column].ty);
            (column, AutoIncrement::new(entry.record.auto_increment_bound.max(1), last))
        };
        let poison = catalog.poison();
        let table = Arc::new(TableShared {
            name: definition.name.clone(),
            lock: TableLock::new(Arc::clone(poison)),
            current: RwLock::new(Arc::new(version)),
            versions: AtomicU64::new(0),
            columns: definition.columns.clone(),
            auto_increment: definition.auto_increment.map(counter),
            entry: Mutex::new(entry),
            catalog: catalog.clone(),
        });
        poison.wake_on_stop(&table);
        table
    }

    /// The catalog that has it.
    pub(crate) fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// The next number of the auto-increment column for `me`, if `is_null` says that the row has none there and it
    /// cannot stay so; (column, number).
    #[inline]
    pub(crate) fn generate(
        &self,
        me: OwnerId,
        is_null: impl FnOnce(usize) -> bool,
    ) -> Result<Moved<Option<(usize, u64)>>> {
        let Some((column, counter)) = &self.auto_increment else { return Ok(Moved::To(None)) };
        if !is_null(*column) || self.columns[*column].nullable {
            return Ok(Moved::To(None));
        }
        Ok(match counter.take(me, &self.columns[*column].name, |bound| self.persist_bound(bound))? {
            Moved::To(number) => Moved::To(Some((*column, number))),
            Moved::IsLocked => Moved::IsLocked,
        })
    }

    fn counter(&self) -> Result<(&str, &AutoIncrement)> {
        let none = || Error::Usage(format!("table {} has no auto-increment column", self.name));
        let (column, counter) = self.auto_increment.as_ref().ok_or_else(none)?;
        Ok((&self.columns[*column].name, counter))
    }

    /// Takes the numbers of a range for `me`; returns the first.
    pub(crate) fn reserve(&self, me: OwnerId, range: NumberRange) -> Result<Moved<u64>> {
        let (column, counter) = self.counter()?;
        counter.reserve(me, column, range, |bound| self.persist_bound(bound))
    }

    /// From now on only `owner` moves the counter, which has the table's auto-increment lock; `None`: everyone does.
    pub(crate) fn set_counter_locked_by(&self, owner: Option<OwnerId>) -> Result<()> {
        self.counter().map(|(_, counter)| counter.set_locked_by(owner))
    }

    pub(crate) fn set_next_number(&self, next: u64) -> Result<()> {
        let (column, counter) = self.counter()?;
        counter.set_next(column, next, |bound| self.persist_bound(bound))
    }

    /// Moves the counter past the value that a row of `me` has in the auto-increment column.
    #[inline]
    pub(crate) fn observe(&self, me: OwnerId, version: &TableVersion, row: &[u8]) -> Result<Moved<()>> {
        let Some((column, counter)) = &self.auto_increment else { return Ok(Moved::To(())) };
        match version.counted(row, *column) {
            Some(value) => counter.observe(me, value, |bound| self.persist_bound(bound)),
            None => Ok(Moved::To(())),
        }
    }

    fn persist_bound(&self, bound: u64) -> Result<()> {
        let mut entry = self.entry.lock();
        let mut record = entry.record;
        record.auto_increment_bound = bound;
        self.catalog.put(RecordKey::Table(entry.id), &record.encode())?;
        entry.record = record;
        Ok(())
    }

    /// Writes the counter's exact value, at a clean close.
    pub(crate) fn persist_exact(&self) -> Result<()> {
        let Some((_, counter)) = &self.auto_increment else { return Ok(()) };
        counter.persist_exact(|bound| self.persist_bound(bound))
    }
}

impl Table {
    /// The table's name.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Its columns, by position.
    pub fn columns(&self) -> &[Column] {
        &self.shared.columns
    }

    /// Position of a column.
    ///
    /// # Errors
    /// [`Error::NoSuchColumn`].
    pub fn column(&self, name: &str) -> Result<usize> {
        let missing = || Error::NoSuchColumn { table: self.shared.name.clone(), column: name.to_string() };
        self.shared.columns.iter().position(|column| column.name == name).ok_or_else(missing)
    }

    /// The next number that its auto-increment column gives; `None` if it has none, or none left.
    pub fn next_number(&self) -> Option<u64> {
        self.shared.auto_increment.as_ref().and_then(|(_, counter)| counter.next())
    }

    /// Warnings about the table's definition, as text: each key that is too long for its tree when the values are as
    /// long as their columns allow. Rows with such keys are refused ([`Error::KeyTooLong`]); a shorter column, an index
    /// of a prefix ([`Index::prefix`](crate::Index::prefix)) or [`long_keys`](crate::Schema::long_keys) avoids it. And
    /// rows that [expire](crate::Schema::expires), but that no index finds.
    ///
    /// ```
    /// # use highwater::{Database, Schema, Type};
    /// # let db = Database::in_memory()?;
    /// let schema = Schema::new().column("id", Type::U64).column("url", Type::Text(5000)).primary_key(&["id"]);
    /// let pages = db.create_table("pages", schema.index("by_url", &["url"]))?;
    /// assert!(pages.warnings()[0].starts_with("the key of index by_url (url) of table pages can have 5009 bytes"));
    /// # Ok::<(), highwater::Error>(())
    /// ```
    pub fn warnings(&self) -> Vec<String> {
        let version = Arc::clone(&*self.shared.current.read());
        version.warnings()
    }

    /// The statistics of the last [`analyze`](crate::Database::analyze), without indexes that were created since. They
    /// are stored in the database.
    pub fn statistics(&self) -> Option<TableStatistics> {
        self.shared.entry.lock().named_statistics()
    }

    /// Number of its creation, unique in the database; it stays when the table is renamed, changed or truncated.
    pub fn create_id(&self) -> u64 {
        self.shared.entry.lock().record.create_id
    }

    /// The present definition of the table, indexes included.
    pub fn definition(&self) -> Arc<TableDefinition> {
        self.shared.current.read().complete_definition()
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("name", &self.shared.name).finish_non_exhaustive()
    }
}

/// The tables in use.
#[derive(Default)]
pub(crate) struct Registry {
    tables: RwLock<Open>,
}

#[derive(Default)]
struct Open {
    by_name: HashMap<String, Arc<TableShared>>,
    /// Copies of the current versions for rollback and purge: these are their only users, so the number of references
    /// shows whether one is in use.
    by_id: HashMap<TableId, Arc<TableVersion>>,
}

impl Open {
    /// Rule 1: a table has its name and its number.
    fn check(&self) {
        debug_assert_eq!(self.by_name.len(), self.by_id.len(), "rule 1: a table has one of name and number");
    }

    /// Rules 1 and 3 for one table: it has its name, and what rollback and purge work with is its current version.
    fn check_table(&self, table: &TableShared) {
        if cfg!(debug_assertions) {
            let current = table.current.read();
            let named = self.by_name.get(&table.name);
            debug_assert!(
                named.is_some_and(|named| std::ptr::eq(&**named, table)),
                "rule 1: {} is another",
                table.name
            );
            let version = self.by_id.get(&current.id);
            let is_current = |version: &Arc<TableVersion>| Arc::ptr_eq(&version.definition, &current.definition);
            debug_assert!(
                version.is_some_and(is_current),
                "rule 3: purge works with another version of {}",
                table.name
            );
        }
        self.check();
    }
}

impl Registry {
    pub(crate) fn add(&self, table: Arc<TableShared>) {
        let version = TableVersion::clone(&table.current.read());
        let mut open = self.tables.write();
        let (id, name) = (version.id, table.name.clone());
        let others =
            (open.by_id.insert(id, Arc::new(version)).is_some(), open.by_name.insert(name, table.clone()).is_some());
        debug_assert_eq!(others, (false, false), "rule 1: the table {id:?} is there already");
        open.check_table(&table);
    }

    pub(crate) fn get(&self, name: &str) -> Result<Arc<TableShared>> {
        let missing = || Error::NoSuchTable { table: name.to_string() };
        self.tables.read().by_name.get(name).cloned().ok_or_else(missing)
    }

    /// The tables with these numbers that are there.
    pub(crate) fn with_ids(&self, ids: &BTreeSet<TableId>) -> Vec<Arc<TableShared>> {
        let mut all = self.all();
        all.retain(|table| ids.contains(&table.current.read().id));
        all
    }

    /// Every table, by name.
    pub(crate) fn all(&self) -> Vec<Arc<TableShared>> {
        let mut all: Vec<_> = self.tables.read().by_name.values().cloned().collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// Puts a table in the place of what it was before, perhaps under another name, and waits until rollback and purge
    /// no longer use that.
    pub(crate) fn exchange(&self, before: &TableShared, after: Arc<TableShared>) {
        let (id, version) = (before.current.read().id, TableVersion::clone(&after.current.read()));
        let old = {
            let mut open = self.tables.write();
            open.by_name.remove(&before.name);
            let old = open.by_id.remove(&id);
            open.by_id.insert(version.id, Arc::new(version));
            open.by_name.insert(after.name.clone(), after.clone());
            debug_assert!(old.is_some(), "rule 2: the table {id:?} is exchanged, and is not there");
            open.check_table(&after);
            old
        };
        wait_for_last(old);
    }

    /// Removes a table and waits until rollback and purge no longer use it.
    pub(crate) fn remove(&self, table: &TableShared) {
        let id = table.current.read().id;
        let old = {
            let mut open = self.tables.write();
            let named = open.by_name.remove(&table.name);
            debug_assert!(
                named.is_some_and(|named| std::ptr::eq(&*named, table)),
                "rule 1: another {} is removed",
                table.name
            );
            let old = open.by_id.remove(&id);
            open.check();
            old
        };
        wait_for_last(old);
    }

    /// Gives a table another set of indexes and waits until rollback and purge no longer use the previous one.
    pub(crate) fn replace(&self, table: &TableShared, version: TableVersion) {
        let old = {
            let mut open = self.tables.write();
            *table.current.write() = Arc::new(version.clone());
            table.versions.fetch_add(1, Release);
            let old = open.by_id.insert(version.id, Arc::new(version));
            debug_assert!(old.is_some(), "rule 3: a version of {} replaces none", table.name);
            open.check_table(table);
            old
        };
        wait_for_last(old);
    }
}

impl Tables for Registry {
    fn table(&self, id: TableId) -> Option<Arc<dyn TableTrees>> {
        let version: Arc<dyn TableTrees> = self.tables.read().by_id.get(&id)?.clone();
        Some(version)
    }
}

/// The steps of rollback and purge are short: looking again after a pause is enough.
fn wait_for_last(version: Option<Arc<TableVersion>>) {
    let Some(version) = version else { return };
    while Arc::strong_count(&version) > 1 {
        crate::sync::thread::sleep(Duration::from_micros(200));
    }
}
