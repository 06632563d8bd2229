//! Tables as SQL: their statements, and the catalog that describes them.

use super::sqlite;
use crate::failure::failed;
use highwater::Type;
use highwater_bench::Result;
use highwater_bench::store::{IndexSpec, Scan, TableSpec};
use rusqlite::Connection;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// Where tables are described.
pub(crate) const CATALOG: &str =
    "CREATE TABLE IF NOT EXISTS highwater_catalog (name TEXT PRIMARY KEY, definition TEXT)";

/// Rows up to this size belong into the tree of their key: a twentieth of a page.
const SMALL_ROW_BYTES: usize = 200;

/// A table and the statements on it.
#[derive(Serialize, Deserialize)]
pub(crate) struct SqlTable {
    name: String,
    columns: Vec<String>,
    primary: Vec<String>,
    indexes: Vec<(String, Vec<String>)>,
    create: Vec<String>,
    /// Column that numbers itself.
    pub(crate) auto_increment: Option<usize>,
    /// Reads a row by its key.
    pub(crate) get: String,
    /// Inserts a row.
    pub(crate) insert: String,
    /// Deletes a row by its key.
    pub(crate) delete: String,
}

/// The tables of a database.
pub(crate) fn read_catalog(connection: &Connection) -> Result<Vec<SqlTable>> {
    let mut statement = connection.prepare("SELECT definition FROM highwater_catalog").map_err(sqlite)?;
    let texts = statement.query_map([], |row| row.get::<_, String>(0)).map_err(sqlite)?;
    let table =
        |text: rusqlite::Result<String>| serde_json::from_str(&text.map_err(sqlite)?).map_err(|e| failed("sqlite", e));
    texts.map(table).collect()
}

fn is_integer(ty: Type) -> bool {
    ty.integer_range().is_some()
}

fn list(names: &[String]) -> String {
    names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}

fn index_sql(table: &str, name: &str, columns: &[String]) -> String {
    format!("CREATE INDEX \"{table}.{name}\" ON \"{table}\" ({})", list(columns))
}

impl SqlTable {
    /// The statements of a table.
    pub(crate) fn new(spec: &TableSpec) -> SqlTable {
        let name = spec.name.clone();
        let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let (columns, primary) = (spec.columns.iter().map(|c| c.name.to_string()).collect(), owned(spec.primary_key));
        let bytes: usize = spec.columns.iter().map(|column| column.ty.max_bytes()).sum();
        let is_row_number =
            primary.len() == 1 && spec.columns.iter().any(|column| column.name == primary[0] && is_integer(column.ty));
        let definitions = spec.columns.iter().map(|column| {
            let ty = match column.ty {
                Type::Text(_) | Type::Json(_) => "TEXT",
                Type::Binary(_) => "BLOB",
                _ => "INTEGER",
            };
            let key = if is_row_number && column.name == primary[0] { " PRIMARY KEY" } else { "" };
            let null = if column.nullable || !key.is_empty() { "" } else { " NOT NULL" };
            format!("\"{}\" {ty}{key}{null}", column.name)
        });
        let definitions = definitions.collect::<Vec<_>>().join(", ");
        let (key, kind) = match is_row_number {
            true => (String::new(), ""),
            false => {
                let kind = if bytes <= SMALL_ROW_BYTES { " WITHOUT ROWID" } else { "" };
                (format!(", PRIMARY KEY ({})", list(&primary)), kind)
            }
        };
        let mut create = vec![format!("CREATE TABLE \"{name}\" ({definitions}{key}){kind}")];
        create.extend(spec.indexes.iter().map(|index| index_sql(&name, index.name, &owned(index.columns))));
        let by_key = primary.iter().enumerate().map(|(n, column)| format!("\"{column}\"=?{}", n + 1));
        let by_key = by_key.collect::<Vec<_>>().join(" AND ");
        let parameters = vec!["?"; spec.columns.len()].join(", ");
        SqlTable {
            get: format!("SELECT * FROM \"{name}\" WHERE {by_key}"),
            insert: format!("INSERT INTO \"{name}\" VALUES ({parameters})"),
            delete: format!("DELETE FROM \"{name}\" WHERE {by_key}"),
            auto_increment: spec.auto_increment.and_then(|column| spec.columns.iter().position(|c| c.name == column)),
            indexes: spec.indexes.iter().map(|index| (index.name.into(), owned(index.columns))).collect(),
            name,
            columns,
            primary,
            create,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Makes it.
    pub(crate) fn create(&self, connection: &Connection) -> Result<()> {
        self.create.iter().try_for_each(|sql| connection.execute_batch(sql)).map_err(sqlite)?;
        self.keep(connection)
    }

    fn keep(&self, connection: &Connection) -> Result<()> {
        let text = serde_json::to_string(self).map_err(|e| failed("sqlite", e))?;
        let sql = "INSERT OR REPLACE INTO highwater_catalog VALUES (?, ?)";
        connection.execute(sql, [&self.name, &text]).map(drop).map_err(sqlite)
    }

    /// The same table with an index, which is made.
    pub(crate) fn with_index(&self, connection: &Connection, index: &IndexSpec) -> Result<SqlTable> {
        let columns: Vec<String> = index.columns.iter().map(ToString::to_string).collect();
        connection.execute_batch(&index_sql(&self.name, index.name, &columns)).map_err(sqlite)?;
        let text = serde_json::to_string(self).map_err(|e| failed("sqlite", e))?;
        let mut table: SqlTable = serde_json::from_str(&text).map_err(|e| failed("sqlite", e))?;
        table.indexes.push((index.name.into(), columns));
        table.keep(connection)?;
        Ok(table)
    }

    /// A scan: its parameters are the prefix, the bounds that there are, and the limit, -1 for none.
    pub(crate) fn write_scan(&self, scan: &Scan<'_>, out: &mut String) -> Result<()> {
        let (by, columns) = match scan.index {
            None => (None, &self.primary),
            Some(name) => {
                let index = self.indexes.iter().find(|index| index.0 == name);
                let index = index.ok_or_else(|| failed("sqlite", format!("there is no index {name}")))?;
                (Some(name), &index.1)
            }
        };
        out.clear();
        // Writing to a String cannot fail.
        let _ = write!(out, "SELECT * FROM \"{}\"", self.name);
        if let Some(index) = by {
            let _ = write!(out, " INDEXED BY \"{}.{index}\"", self.name);
        }
        let equal = (0..scan.prefix.len()).map(|n| (n, "="));
        let next = scan.prefix.len();
        let bounds = [(scan.from, ">="), (scan.to, "<=")].into_iter().filter(|(bound, _)| bound.is_some());
        let conditions = equal.chain(bounds.map(|(_, compares)| (next, compares)));
        for (n, (column, compares)) in conditions.enumerate() {
            let joined = if n == 0 { "WHERE" } else { "AND" };
            let _ = write!(out, " {joined} \"{}\"{compares}?{}", columns[column], n + 1);
        }
        let direction = if scan.reverse { " DESC" } else { "" };
        out.push_str(" ORDER BY ");
        let rest = self.primary.iter().filter(|column| by.is_some() && !columns.contains(column));
        for (n, column) in columns.iter().chain(rest).enumerate() {
            let comma = if n == 0 { "" } else { ", " };
            let _ = write!(out, "{comma}\"{column}\"{direction}");
        }
        let parameters = next + usize::from(scan.from.is_some()) + usize::from(scan.to.is_some());
        let _ = write!(out, " LIMIT ?{}", parameters + 1);
        Ok(())
    }

    /// An update of columns: its parameters are the key, then the new values.
    pub(crate) fn write_update(&self, columns: impl Iterator<Item = usize>, out: &mut String) {
        out.clear();
        let _ = write!(out, "UPDATE \"{}\" SET ", self.name);
        for (n, column) in columns.enumerate() {
            let comma = if n == 0 { "" } else { ", " };
            let _ = write!(out, "{comma}\"{}\"=?{}", self.columns[column], self.primary.len() + n + 1);
        }
        for (n, column) in self.primary.iter().enumerate() {
            let joined = if n == 0 { "WHERE" } else { "AND" };
            let _ = write!(out, " {joined} \"{column}\"=?{}", n + 1);
        }
    }
}
