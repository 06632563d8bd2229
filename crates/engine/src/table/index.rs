//! Declarations of secondary indexes.

use super::definition::{IndexColumn, IndexDefinition, TableDefinition};

/// The definition of a new index: its columns and their order and form. See
/// [`Schema::index_with`](super::Schema::index_with) and
/// [`Database::create_index_with`](crate::Database::create_index_with).
///
/// ```
/// # use highwater::{Database, Index, Options, Schema, Type, values};
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = Database::open(dir.path(), Options::default())?;
/// // The newest orders of a customer first; a list of them needs no row.
/// let newest = Index::new(&["customer", "placed"]).descending("placed").covering(&["total"]);
/// let schema = Schema::new()
///     .column("id", Type::U64)
///     .column("customer", Type::U64)
///     .column("placed", Type::U64)
///     .column("total", Type::U64)
///     .column("notes", Type::Text(2000))
///     .primary_key(&["id"])
///     .index_with("newest", newest);
/// let orders = db.create_table("orders", schema)?;
/// db.transact(|txn| {
///     txn.insert(&orders, &values![1u64, 7u64, 100u64, 250u64, "by the door"])?;
///     txn.insert(&orders, &values![2u64, 7u64, 200u64, 990u64, ""]).map(drop)
/// })?;
/// let mut read = db.snapshot()?;
/// let found = read.scan(&orders).index("newest").prefix(&values![7u64]).select(&["placed", "total"])?;
/// let found = found.map(|row| row.map(|row| (row.u64("placed"), row.u64("total")))).collect::<Result<Vec<_>, _>>()?;
/// assert_eq!(found, [(200, 990), (100, 250)]);
/// # Ok::<(), highwater::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Index {
    columns: Vec<String>,
    descending: Vec<String>,
    prefixes: Vec<(String, u16)>,
    covered: Vec<String>,
    unique: bool,
}

impl Index {
    /// An index with these columns, whole and ascending.
    pub fn new(columns: &[&str]) -> Index {
        Index { columns: strings(columns), ..Index::default() }
    }

    /// Keeps one of its columns in descending order: greater values come first, NULL last. A scan by the index goes in
    /// that order; so do its bounds: [`from`](crate::Scan::from) a value is from it downward.
    #[must_use]
    pub fn descending(mut self, column: &str) -> Index {
        self.descending.push(column.to_string());
        self
    }

    /// Keeps only the beginning of one of its columns (text or binary): the first `bytes` bytes (also of text, where
    /// they may end within a character), or of the weights if it has a collation. The order after them is that of the
    /// primary key, and to a unique index two values with the same beginning are equal. A bound of a scan is truncated
    /// like the values: values with the same beginning as the bound are in the range.
    #[must_use]
    pub fn prefix(mut self, column: &str, bytes: u16) -> Index {
        self.prefixes.push((column.to_string(), bytes));
        self
    }

    /// Keeps these columns in the entries, in addition to its own and those of the primary key:
    /// [`Scan::select`](crate::Scan::select) that names only such columns reads no rows, except where the index was
    /// changed lately. Each change of such a column changes the entry.
    #[must_use]
    pub fn covering(mut self, columns: &[&str]) -> Index {
        self.covered.extend(strings(columns));
        self
    }

    /// Refuses a second row with the same values (rows with a NULL among them are not compared).
    #[must_use]
    pub fn unique(mut self) -> Index {
        self.unique = true;
        self
    }

    /// This index, unique or not.
    #[must_use]
    pub(crate) fn unique_if(self, unique: bool) -> Index {
        Index { unique, ..self }
    }

    /// The [`Index`] that gives a definition.
    pub fn of(table: &TableDefinition, index: &IndexDefinition) -> Index {
        Index {
            covered: index.covered.iter().map(|column| table.columns[*column].name.clone()).collect(),
            unique: index.unique,
            ..Index::of_columns(table, &index.columns)
        }
    }

    /// As [`of`](Self::of), for the columns of a key.
    pub(crate) fn of_columns(table: &TableDefinition, columns: &[IndexColumn]) -> Index {
        let name = |part: &IndexColumn| table.columns[part.column].name.clone();
        Index {
            columns: columns.iter().map(name).collect(),
            descending: columns.iter().filter(|part| part.descending).map(name).collect(),
            prefixes: columns.iter().filter_map(|part| Some((name(part), part.prefix_bytes?))).collect(),
            ..Index::default()
        }
    }

    /// Whether it has only column names.
    pub(super) fn is_of_columns(&self) -> bool {
        self.covered.is_empty() && !self.unique
    }

    /// The definition of the index, for this table.
    pub(crate) fn define(&self, name: &str, table: &TableDefinition) -> std::result::Result<IndexDefinition, String> {
        let covered = self.covered.iter().map(|column| table.position(column)).collect::<Result<_, _>>()?;
        let (name, columns, unique) = (name.to_string(), self.define_columns(table)?, self.unique);
        Ok(IndexDefinition { name, columns, covered, unique })
    }

    /// The columns of the key, for this table.
    pub(crate) fn define_columns(&self, table: &TableDefinition) -> std::result::Result<Vec<IndexColumn>, String> {
        let described = self.descending.iter().chain(self.prefixes.iter().map(|(column, _)| column));
        if let Some(column) = described.into_iter().find(|column| !self.columns.contains(column)) {
            return Err(format!("column {column} is described, and is not one of its columns"));
        }
        let part = |name: &String| {
            let prefix = self.prefixes.iter().find(|(column, _)| column == name);
            Ok(IndexColumn {
                column: table.position(name)?,
                descending: self.descending.contains(name),
                prefix_bytes: prefix.map(|(_, bytes)| *bytes),
            })
        };
        self.columns.iter().map(part).collect()
    }
}

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| name.to_string()).collect()
}
