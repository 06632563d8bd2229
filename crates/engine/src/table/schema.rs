//! Declarations of tables.

use super::definition::{Column, TableDefinition};
use super::index::Index;
use super::types::Type;
use super::value::{Value, ValueRef};
use crate::error::{Error, Result};

/// A table to be created.
///
/// ```
/// use highwater::{Schema, Type};
/// let schema = Schema::new()
///     .column("id", Type::U64)
///     .auto_increment("id")
///     .column("name", Type::Text(64))
///     .nullable("note", Type::Text(4000))
///     .primary_key(&["id"])
///     .index("by_name", &["name"]);
/// # let _ = schema;
/// ```
#[derive(Clone, Debug, Default)]
pub struct Schema {
    columns: Vec<Column>,
    collations: Vec<(String, String)>,
    primary_key: Index,
    auto_increment: Option<String>,
    expires: Option<String>,
    long_keys: bool,
    log_changes: bool,
    indexes: Vec<(String, Index)>,
    defaults: Vec<(String, Value)>,
    attachment: Vec<u8>,
}

impl Schema {
    /// No columns yet.
    pub fn new() -> Schema {
        Schema::default()
    }

    /// Adds a column that is never NULL.
    pub fn column(mut self, name: &str, ty: Type) -> Schema {
        let (name, default, collation) = (name.to_string(), None, None);
        self.columns.push(Column { name, ty, nullable: false, default, collation });
        self
    }

    /// Adds a column that may be NULL.
    pub fn nullable(mut self, name: &str, ty: Type) -> Schema {
        let (name, default, collation) = (name.to_string(), None, None);
        self.columns.push(Column { name, ty, nullable: true, default, collation });
        self
    }

    /// Makes an integer column auto-increment: inserting NULL there takes the next number, from 1. Numbers are never
    /// reused; a rolled back insert or a crash leaves a gap. A [nullable](Schema::nullable) column keeps an inserted
    /// NULL; its numbers are those of [`reserve_numbers`](crate::WriteTxn::reserve_numbers).
    pub fn auto_increment(mut self, column: &str) -> Schema {
        self.auto_increment = Some(column.to_string());
        self
    }

    /// Rows expire at the moment that a column of type [`DateTime`](Type::DateTime) has: from then on no read finds
    /// them, an update or a deletion finds nothing, and an insertion takes their place. NULL is never. A transaction
    /// compares all rows with one time, that of its first call of such a table, so that no row goes while it reads.
    ///
    /// An index that begins with the column, ascending, lets the engine find expired rows: a thread deletes them, a few
    /// at a time. Without one they stay where they are, unread ([`Table::warnings`](crate::Table::warnings) says so).
    /// Estimates and statistics count them until they are deleted, and a unique index is not built over two of them.
    ///
    /// ```
    /// use highwater::{Database, DateTime, Schema, Type, values};
    /// # let db = Database::in_memory()?;
    /// let schema = Schema::new()
    ///     .column("id", Type::U64)
    ///     .nullable("until", Type::DateTime)
    ///     .primary_key(&["id"])
    ///     .index("by_until", &["until"])
    ///     .expires("until");
    /// let sessions = db.create_table("sessions", schema)?;
    /// let [past, future] = [1, i64::MAX].map(DateTime::from_unix_us);
    /// let mut txn = db.begin()?;
    /// txn.insert(&sessions, &values![1u64, past])?;
    /// txn.insert(&sessions, &values![2u64, future])?;
    /// txn.insert(&sessions, &values![3u64, null])?;
    /// assert!(txn.get(&sessions, &values![1u64])?.is_none());
    /// assert_eq!(txn.scan(&sessions).count()?, 2);
    /// txn.insert(&sessions, &values![1u64, future])?;
    /// # Ok::<(), highwater::Error>(())
    /// ```
    pub fn expires(mut self, column: &str) -> Schema {
        self.expires = Some(column.to_string());
        self
    }

    /// Gives a column a default: what rows have there that were inserted before the column was added to the table.
    /// Rows that are inserted name a value for each column; it has no effect on them.
    pub fn default_value<'v>(mut self, column: &str, value: impl Into<ValueRef<'v>>) -> Schema {
        self.defaults.push((column.to_string(), value.into().to_value()));
        self
    }

    /// Keeps bytes of the application with the definition, at most 1 MiB. The engine does not read them.
    pub fn attachment(mut self, bytes: &[u8]) -> Schema {
        self.attachment = bytes.to_vec();
        self
    }

    /// The columns that identify a row and in whose order rows are kept. A key, also one of an index with the primary
    /// key after it, has an eighth of a page at most (512 bytes of 4 KiB) as it is stored: numbers as wide as their
    /// type, texts and bytes one byte longer, and one more for each byte of the value 0 or 1; a nullable column has one
    /// byte more. Insertions of longer ones fail with [`KeyTooLong`](crate::Error::KeyTooLong);
    /// [`Table::warnings`](crate::Table::warnings) says where that can happen.
    pub fn primary_key(self, columns: &[&str]) -> Schema {
        self.primary_key_with(Index::new(columns))
    }

    /// As [`primary_key`](Self::primary_key), with descending columns: see [`Index::descending`]. It has no prefixes,
    /// covers nothing (a row has all columns), and its columns have no collation: it distinguishes rows byte by byte.
    pub fn primary_key_with(mut self, key: Index) -> Schema {
        self.primary_key = key;
        self
    }

    /// Has the indexes of the table compare a text column by a collation: see [`Collations`](crate::Collations). It
    /// cannot be a column of the primary key.
    ///
    /// ```
    /// # use highwater::{Database, Error, Options, Schema, Type, values};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Database::open(dir.path(), Options::default())?;
    /// let schema = Schema::new()
    ///     .column("id", Type::U64)
    ///     .column("login", Type::Text(40))
    ///     .collation("login", "ascii_ci")
    ///     .primary_key(&["id"])
    ///     .unique_index("by_login", &["login"]);
    /// let users = db.create_table("users", schema)?;
    /// let mut txn = db.begin()?;
    /// txn.insert(&users, &values![1u64, "Ada"])?;
    /// assert_eq!(txn.get_by(&users, "by_login", &values!["ADA"])?.unwrap().str(1), "Ada");
    /// let refused = txn.insert(&users, &values![2u64, "ada"]);
    /// assert!(matches!(refused, Err(Error::DuplicateKey { .. })));
    /// # Ok::<(), highwater::Error>(())
    /// ```
    pub fn collation(mut self, column: &str, collation: &str) -> Schema {
        self.collations.push((column.to_string(), collation.to_string()));
        self
    }

    /// Lets the keys of the table be long: up to seven 32nds of a page (3,584 bytes of 16 KiB, 896 of 4 KiB) instead of
    /// an eighth. Rows and entries then have less space in their pages: the longer the longest possible key, the
    /// smaller the rows that need overflow pages.
    pub fn long_keys(mut self) -> Schema {
        self.long_keys = true;
        self
    }

    /// Keeps the changes of the table's rows in the database's change log, with the transactions that make them:
    /// [`Database::changes`](crate::Database::changes) reads them. Each row that a transaction has changed is written
    /// once more when it commits, so a commit can be [`DiskFull`](crate::Error::DiskFull) too.
    pub fn log_changes(mut self) -> Schema {
        self.log_changes = true;
        self
    }

    /// Adds a secondary index.
    pub fn index(self, name: &str, columns: &[&str]) -> Schema {
        self.index_with(name, Index::new(columns))
    }

    /// Adds a secondary index that is more than ascending columns: descending ones, prefixes, covered columns.
    pub fn index_with(mut self, name: &str, index: Index) -> Schema {
        self.indexes.push((name.to_string(), index));
        self
    }

    /// Adds a secondary index that refuses a second row with the same values (rows with a NULL among them are not
    /// compared).
    pub fn unique_index(self, name: &str, columns: &[&str]) -> Schema {
        self.index_with(name, Index::new(columns).unique())
    }

    /// The schema of an existing table.
    ///
    /// ```
    /// # use highwater::{Database, Options, Schema, Type};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Database::open(dir.path(), Options::default())?;
    /// let table = db.create_table("t", Schema::new().column("id", Type::U64).primary_key(&["id"]))?;
    /// let copy = db.create_table("copy", Schema::of(&table.definition()))?;
    /// assert_eq!(copy.columns(), table.columns());
    /// # Ok::<(), highwater::Error>(())
    /// ```
    pub fn of(table: &TableDefinition) -> Schema {
        let name = |column: usize| table.columns[column].name.clone();
        Schema {
            columns: table.columns.clone(),
            collations: Vec::new(),
            primary_key: Index::of_columns(table, &table.primary_key),
            auto_increment: table.auto_increment.map(name),
            expires: table.expires.map(name),
            long_keys: table.long_keys,
            log_changes: table.log_changes,
            indexes: table.indexes.iter().map(|index| (index.name.clone(), Index::of(table, index))).collect(),
            defaults: Vec::new(),
            attachment: table.attachment.clone(),
        }
    }

    /// The definition of table `name`.
    ///
    /// # Errors
    /// [`Error::Schema`] says what is wrong with it.
    pub fn check(&self, name: &str) -> Result<TableDefinition> {
        let wrong = |reason: String| Error::Schema(format!("table {name}: {reason}"));
        let mut definition = TableDefinition {
            name: name.to_string(),
            columns: self.columns.clone(),
            primary_key: Vec::new(),
            auto_increment: None,
            expires: None,
            long_keys: self.long_keys,
            log_changes: self.log_changes,
            indexes: Vec::new(),
            attachment: self.attachment.clone(),
        };
        for (column, value) in &self.defaults {
            let position = definition.position(column).map_err(wrong)?;
            definition.columns[position].default = Some(value.clone());
            definition.columns[position].take_canonical_default();
        }
        for (column, collation) in &self.collations {
            let position = definition.position(column).map_err(wrong)?;
            definition.columns[position].collation = Some(collation.clone());
        }
        if !self.primary_key.is_of_columns() {
            return Err(wrong("a primary key covers no columns and is not declared unique".to_string()));
        }
        definition.primary_key = self.primary_key.define_columns(&definition).map_err(wrong)?;
        definition.auto_increment = definition.position_of(self.auto_increment.as_deref()).map_err(wrong)?;
        definition.expires = definition.position_of(self.expires.as_deref()).map_err(wrong)?;
        for (name, index) in &self.indexes {
            let index = index.define(name, &definition).map_err(|reason| wrong(format!("index {name}: {reason}")))?;
            definition.indexes.push(index);
        }
        definition.validate().map_err(wrong)?;
        Ok(definition)
    }
}

#[cfg(test)]
#[path = "schema_test.rs"]
mod tests;
