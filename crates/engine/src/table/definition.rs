//! Tables, columns and indexes as they were checked, and their limits.
//!
//! Rules
//! 1. A [`TableDefinition`] is valid (`schema_check.rs`). Only [`Schema::check`](super::Schema::check) and the catalog
//!    (which runs the same checks on what it reads) make one.
//! 2. Columns have positions, from 0, in the order they were declared.
//! 3. Names compare exactly, byte for byte.

use super::types::Type;
use super::value::Value;
use super::value_form::{stored_bytes, stored_value};

/// Most columns of a table.
pub(crate) const MAX_COLUMNS: usize = 1017;
/// Most secondary indexes of a table.
pub(crate) const MAX_INDEXES: usize = 64;
/// Longest name of a table, in bytes.
pub(crate) const MAX_TABLE_NAME_BYTES: usize = 2048;
/// Longest name of a column, an index or a collation, in bytes.
pub(crate) const MAX_NAME_BYTES: usize = 256;
/// Maximum stored length of a column's default.
pub(crate) const MAX_DEFAULT_BYTES: usize = 4096;
/// Longest attachment of a table.
pub(crate) const MAX_ATTACHMENT_BYTES: usize = 1 << 20;
/// Most columns of an index.
pub(crate) const MAX_INDEX_COLUMNS: usize = 16;
/// Most columns that an index covers in addition to its own.
pub(crate) const MAX_COVERED_COLUMNS: usize = 64;
/// Longest beginning of a column that an index can have, in bytes.
pub(crate) const MAX_PREFIX_BYTES: u16 = 3072;
/// Name of the clustered index in messages.
pub(crate) const PRIMARY: &str = "PRIMARY";

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Name.
    pub name: String,
    /// The type of its values.
    pub ty: Type,
    /// Whether it may be NULL.
    pub nullable: bool,
    /// Value of the column in rows that were inserted before it was added to the table; `None`: NULL.
    pub default: Option<Value>,
    /// Of text: the name of the collation by which indexes compare it; `None`: by its bytes.
    pub collation: Option<String>,
}

impl Column {
    /// The column as text.
    pub(super) fn form(&self) -> String {
        let null = if self.nullable { ", nullable" } else { "" };
        let collation = self.collation.as_ref().map_or(String::new(), |collation| format!(", collation {collation}"));
        format!("column {} ({}{null}{collation})", self.name, self.ty)
    }

    /// Makes the default the value that is read where it is kept: `5` is an unsigned number in an unsigned column.
    pub(super) fn take_canonical_default(&mut self) {
        let kept = self.default.as_ref().and_then(|value| stored_bytes(self.ty, value));
        self.default = kept.and_then(|kept| stored_value(self.ty, &kept)).or_else(|| self.default.take());
    }
}

/// A column of an index or of the primary key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexColumn {
    /// Position of the column in its table.
    pub column: usize,
    /// Whether greater values come first.
    pub descending: bool,
    /// Length of an indexed prefix in bytes; `None`: the whole column.
    pub prefix_bytes: Option<u16>,
}

impl From<usize> for IndexColumn {
    /// The whole column, ascending.
    fn from(column: usize) -> IndexColumn {
        IndexColumn { column, descending: false, prefix_bytes: None }
    }
}

/// A secondary index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexDefinition {
    /// Name.
    pub name: String,
    /// Its columns, in order.
    pub columns: Vec<IndexColumn>,
    /// Positions of the columns that its entries have in addition to the key; see
    /// [`Index::covering`](super::Index::covering).
    pub covered: Vec<usize>,
    /// Whether two rows may have the same (not NULL) values in its columns.
    pub unique: bool,
}

impl IndexDefinition {
    /// Whether its entries contain this column.
    pub(crate) fn has(&self, column: usize) -> bool {
        self.columns.iter().any(|part| part.column == column) || self.covered.contains(&column)
    }

    /// The columns that its entries keep in addition to the key: those of which the key has the weights, and those that
    /// were asked for.
    pub(crate) fn kept_columns(&self, table: &TableDefinition) -> Vec<usize> {
        let weighed = self.columns.iter().filter(|part| part.prefix_bytes.is_none()).map(|part| part.column);
        let weighed = weighed.filter(|column| table.columns[*column].collation.is_some());
        weighed.chain(self.covered.iter().copied()).collect()
    }
}

/// A table as it was checked.
#[derive(Clone, Debug, PartialEq)]
pub struct TableDefinition {
    /// Name.
    pub name: String,
    /// Columns by position.
    pub columns: Vec<Column>,
    /// The primary key's columns, in order.
    pub primary_key: Vec<IndexColumn>,
    /// The auto-increment column.
    pub auto_increment: Option<usize>,
    /// The column that says when a row expires; see [`Schema::expires`](super::Schema::expires).
    pub expires: Option<usize>,
    /// Whether keys may be long; see [`Schema::long_keys`](super::Schema::long_keys).
    pub long_keys: bool,
    /// Whether changes of its rows are logged; see [`Schema::log_changes`](super::Schema::log_changes).
    pub log_changes: bool,
    /// Secondary indexes in the order of their creation.
    pub indexes: Vec<IndexDefinition>,
    /// Bytes that the application keeps with the definition.
    pub attachment: Vec<u8>,
}

impl TableDefinition {
    /// Position of a column.
    ///
    /// # Errors
    /// There is no such column.
    pub fn position(&self, column: &str) -> std::result::Result<usize, String> {
        self.columns.iter().position(|c| c.name == column).ok_or_else(|| format!("there is no column {column}"))
    }

    /// Position of the column, if one is named.
    ///
    /// # Errors
    /// There is no such column.
    pub(crate) fn position_of(&self, column: Option<&str>) -> std::result::Result<Option<usize>, String> {
        column.map(|column| self.position(column)).transpose()
    }

    /// Columns of a key as text, as they are declared: `name(40), born desc`.
    pub fn columns_in_words(&self, columns: &[IndexColumn]) -> String {
        let part = |part: &IndexColumn| {
            let prefix = part.prefix_bytes.map_or(String::new(), |bytes| format!("({bytes})"));
            format!("{}{prefix}{}", self.columns[part.column].name, if part.descending { " desc" } else { "" })
        };
        columns.iter().map(part).collect::<Vec<_>>().join(", ")
    }

    /// A key as text, for messages: of an index, by position, or of the rows.
    pub(crate) fn key_in_words(&self, index: Option<usize>) -> String {
        let index = index.and_then(|i| self.indexes.get(i));
        let what = index.map_or("the primary key".to_string(), |index| format!("the key of index {}", index.name));
        let columns = self.columns_in_words(index.map_or(&self.primary_key, |index| &index.columns));
        format!("{what} ({columns}) of table {}", self.name)
    }

    /// The index by which expired rows are found: its first column is the expiry column, ascending.
    pub(crate) fn expiry_index(&self) -> Option<&IndexDefinition> {
        let begins = |part: &IndexColumn| Some(part.column) == self.expires && !part.descending;
        self.indexes.iter().find(|index| index.columns.first().is_some_and(begins))
    }

    /// Position of a secondary index.
    pub fn index_position(&self, name: &str) -> Option<usize> {
        self.indexes.iter().position(|index| index.name == name)
    }

    /// Whether `column` is part of the primary key.
    pub fn is_key(&self, column: usize) -> bool {
        self.primary_key.iter().any(|part| part.column == column)
    }
}
