//! Tables of the raw API.

use super::entry::EntryColumns;
use super::{RawColumn, RawRow};
use crate::db::Database;
use crate::error::{Error, Result};
use crate::table::key::KeyLayout;
use crate::table::{Index, Schema, Table, TableDefinition, ValueRef, key_value};
use smallvec::SmallVec;
use std::sync::Arc;

/// A table, for a front end. Cheap to clone; valid as long as a [`Table`] is.
#[derive(Clone, Debug)]
pub struct RawTable {
    pub(super) table: Table,
}

impl From<Table> for RawTable {
    fn from(table: Table) -> RawTable {
        RawTable { table }
    }
}

impl RawTable {
    /// The table of a name.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`].
    pub fn open(db: &Database, name: &str) -> Result<RawTable> {
        db.table(name).map(RawTable::from)
    }

    /// The table of a [create id](Self::create_id), under its present name. It looks through all tables.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`], with the number for the name.
    pub fn open_by_create_id(db: &Database, create_id: u64) -> Result<RawTable> {
        let found = db.tables().into_iter().map(RawTable::from).find(|table| table.create_id() == create_id);
        found.ok_or_else(|| Error::NoSuchTable { table: format!("(create id {create_id})") })
    }

    /// Creates a table. Its attachment ([`Schema::attachment`]) is the place for what the front end has to know about
    /// it; the engine keeps it, in backups too, and does not read it.
    ///
    /// # Errors
    /// As [`Database::create_table`].
    pub fn create(db: &Database, name: &str, schema: Schema) -> Result<RawTable> {
        db.create_table(name, schema).map(RawTable::from)
    }

    /// The same table, for the typed API.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Number of the table's creation, unique in the database: a table of the same name that is created later has
    /// another one, a table that is renamed, changed or truncated keeps it.
    pub fn create_id(&self) -> u64 {
        self.table.create_id()
    }

    /// The present definition of the table: columns, indexes, the attachment.
    pub fn definition(&self) -> Arc<TableDefinition> {
        self.table.definition()
    }

    /// Appends the key of an index that begins with these columns of it, in its order; `"PRIMARY"` is the rows' own.
    /// With fewer columns than the index has it is the beginning of keys, as cursors take it; [`get`](Self::get),
    /// [`update`](Self::update) and [`delete`](Self::delete) take whole primary keys. Texts and bytes may be longer
    /// than the column allows: such a key is between others.
    ///
    /// # Errors
    /// [`Error::NoSuchIndex`]; [`Error::BadValue`] names the column that does not fit; [`Error::Collation`].
    pub fn append_key(&self, index: &str, columns: &[RawColumn<'_>], out: &mut Vec<u8>) -> Result<()> {
        let version = Arc::clone(&*self.table.shared.current.read());
        let layout = version.key_of_index(version.index_position(index)?);
        encode_key(&version.definition, layout, columns, out)
    }

    /// About how many entries of an index have keys from `low` on and below `high` (`None`: to the end), from two
    /// descents. Entries of rows that were deleted and are not purged count.
    ///
    /// # Errors
    /// [`Error::NoSuchIndex`], [`Error::TableDropped`], an I/O error.
    pub fn approximate_entries(&self, db: &Database, index: &str, low: &[u8], high: Option<&[u8]>) -> Result<u64> {
        db.approximate_entries(&self.table, index, low, high)
    }

    /// Whether the keys of an index have the values of all of these columns (by position), as its own or as those of
    /// the primary key: neither as a prefix nor by a collation's weights.
    ///
    /// # Errors
    /// [`Error::NoSuchIndex`].
    pub fn index_has(&self, index: &str, columns: &[usize]) -> Result<bool> {
        let version = Arc::clone(&*self.table.shared.current.read());
        Ok(match version.index_position(index)? {
            Some(index) => EntryColumns::new(&version, index, columns).is_some_and(|found| found.are_in_keys()),
            None => columns.iter().all(|column| version.key.parts().iter().any(|part| part.column == *column)),
        })
    }

    /// Adds an index, as [`Database::create_index_with`] does. After [`Error::DuplicateKey`] `duplicate` is one of two
    /// rows that are equal in the columns of the index, as it was when they were met: it may have changed since.
    ///
    /// ```
    /// # use highwater::raw::{RawRow, RawTable};
    /// # use highwater::{Database, Error, Index, Options, Schema, Type, values};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Database::open(dir.path(), Options::default())?;
    /// let schema = Schema::new().column("id", Type::U64).column("mail", Type::Text(200)).primary_key(&["id"]);
    /// let users = db.create_table("users", schema)?;
    /// db.transact(|txn| (1..=2u64).try_for_each(|id| txn.insert(&users, &values![id, "ann"]).map(drop)))?;
    /// let mut duplicate = RawRow::default();
    /// let index = Index::new(&["mail"]).unique();
    /// let refused = RawTable::from(users).create_index(&db, "by_mail", &index, &mut duplicate);
    /// assert!(matches!(refused, Err(Error::DuplicateKey { .. })));
    /// assert_eq!(duplicate.column(1), Some(&b"ann"[..]));
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Database::create_index_with`].
    pub fn create_index(&self, db: &Database, name: &str, index: &Index, duplicate: &mut RawRow) -> Result<()> {
        let mut found = None;
        let made = db.make_index((&self.table).into(), name, index, &mut |_| Ok(()), &mut found);
        if let Some(row) = found {
            duplicate.set(row);
        }
        made
    }
}

/// Appends the encoding of the first columns of a key.
pub(super) fn encode_key(
    table: &TableDefinition,
    layout: &KeyLayout,
    columns: &[RawColumn<'_>],
    out: &mut Vec<u8>,
) -> Result<()> {
    let mut values: SmallVec<[ValueRef<'_>; 8]> = SmallVec::new();
    for (part, bytes) in layout.parts().iter().zip(columns) {
        let wrong = |reason| Error::BadValue { column: table.columns[part.column].name.clone(), reason };
        values.push(key_value(part.ty, *bytes).map_err(wrong)?);
    }
    // More columns than the key has are an error of the encoding.
    values.resize(columns.len(), ValueRef::Null);
    layout.encode_values(table, &values, out)
}
