//! Secondary indexes: the user's declaration ([`Index`]) and the checked definition ([`IndexDefinition`]).

use super::schema::TableDefinition;
use super::types::Type;

/// Most columns of an index.
pub(crate) const MAX_INDEX_COLUMNS: usize = 16;
/// Most columns that an index covers in addition to its own.
pub(crate) const MAX_COVERED_COLUMNS: usize = 64;
/// Longest beginning of a column that an index can have, in bytes.
pub(crate) const MAX_PREFIX_BYTES: u16 = 3072;

/// A column of an index or of the primary key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexColumn {
    /// Position of the column in its table.
    pub column: usize,
    /// Whether greater values come first.
    pub descending: bool,
    /// How many bytes of it count; `None`: all.
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
    /// Positions of the columns that its entries have in addition to the key; see [`Index::covering`].
    pub covered: Vec<usize>,
    /// Whether two rows may have the same (not NULL) values in its columns.
    pub unique: bool,
}

impl IndexDefinition {
    /// Whether its entries are made of this column.
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

/// An index to be made: its columns, and how they are kept. See [`Schema::index_with`](super::Schema::index_with) and
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
    /// they may end within a character), or of the weights if it has a collation. The order behind them is that of the
    /// primary key, and to a unique index two values with the same beginning are equal. A bound of a scan is cut as the
    /// values are: what has the same beginning as it is within the range.
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

    /// The same, unique or not.
    #[must_use]
    pub(crate) fn unique_if(self, unique: bool) -> Index {
        Index { unique, ..self }
    }

    /// How a definition would be written.
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

    /// Whether it says nothing in addition to its columns.
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

impl TableDefinition {
    /// A key in words, for messages: of an index, by position, or of the rows.
    pub(crate) fn key_in_words(&self, index: Option<usize>) -> String {
        let index = index.and_then(|i| self.indexes.get(i));
        let what = index.map_or("the primary key".to_string(), |index| format!("the key of index {}", index.name));
        let columns = self.columns_in_words(index.map_or(&self.primary_key, |index| &index.columns));
        format!("{what} ({columns}) of table {}", self.name)
    }

    /// What is wrong with the columns of a key, if anything.
    pub(super) fn validate_key_columns(&self, parts: &[IndexColumn]) -> std::result::Result<(), String> {
        if parts.is_empty() || parts.len() > MAX_INDEX_COLUMNS {
            return Err(format!("an index has 1 to {MAX_INDEX_COLUMNS} columns, not {}", parts.len()));
        }
        for (i, part) in parts.iter().enumerate() {
            let Some(found) = self.columns.get(part.column) else {
                return Err(format!("there is no column {}", part.column));
            };
            if parts[..i].iter().any(|other| other.column == part.column) {
                return Err(format!("column {} is named twice", found.name));
            }
            if let Type::Json(_) = found.ty {
                let reason = "JSON has no order of its own; keep what rows are looked up by in a column beside it";
                return Err(format!("column {}: {reason}", found.name));
            }
            match part.prefix_bytes {
                Some(_) if found.ty.fixed_bytes().is_some() => {
                    return Err(format!("column {}: only text and binary columns have a prefix", found.name));
                }
                Some(bytes) if bytes == 0 || bytes > MAX_PREFIX_BYTES => {
                    return Err(format!("column {}: a prefix has 1 to {MAX_PREFIX_BYTES} bytes", found.name));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// What is wrong with what an index covers, if anything.
    pub(super) fn validate_covered(&self, index: &IndexDefinition) -> std::result::Result<(), String> {
        if index.covered.len() > MAX_COVERED_COLUMNS {
            return Err(format!("an index covers up to {MAX_COVERED_COLUMNS} columns, not {}", index.covered.len()));
        }
        for (i, &column) in index.covered.iter().enumerate() {
            let Some(found) = self.columns.get(column) else { return Err(format!("there is no column {column}")) };
            let is_whole_part = index.columns.iter().any(|part| part.column == column && part.prefix_bytes.is_none());
            if index.covered[..i].contains(&column) || is_whole_part || self.is_key(column) {
                return Err(format!("it has column {} without covering it", found.name));
            }
        }
        Ok(())
    }
}
