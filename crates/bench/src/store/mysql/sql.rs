//! The text of SQL statements, from tables' specifications.

use super::table::MysqlTable;
use crate::store::{Column, TableSpec};
use highwater::Type;
use std::fmt::Write;

/// Longest column declared as VARCHAR. Longer ones are TEXT, which InnoDB can store off-page.
const MAX_VARCHAR: u32 = 1024;

/// A name, quoted.
pub(super) fn name(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Names with commas.
pub(super) fn names<'a>(all: impl IntoIterator<Item = &'a str>) -> String {
    all.into_iter().map(name).collect::<Vec<_>>().join(", ")
}

/// The server's type.
fn type_name(ty: Type) -> String {
    match ty {
        Type::I8 => "TINYINT".into(),
        Type::I16 => "SMALLINT".into(),
        Type::I32 => "INT".into(),
        Type::I64 => "BIGINT".into(),
        Type::U8 => "TINYINT UNSIGNED".into(),
        Type::U16 => "SMALLINT UNSIGNED".into(),
        Type::I24 => "MEDIUMINT".into(),
        Type::U24 => "MEDIUMINT UNSIGNED".into(),
        Type::U32 => "INT UNSIGNED".into(),
        Type::U64 => "BIGINT UNSIGNED".into(),
        Type::F32 => "FLOAT".into(),
        Type::F64 => "DOUBLE".into(),
        Type::Decimal(digits, scale) => format!("DECIMAL({digits}, {scale})"),
        Type::Text(bytes) if bytes <= MAX_VARCHAR => format!("VARCHAR({bytes})"),
        Type::Text(bytes) if bytes <= 0xFFFF => "TEXT".into(),
        Type::Text(_) => "LONGTEXT".into(),
        Type::Fixed(bytes) => format!("BINARY({bytes})"),
        Type::Binary(bytes) if bytes <= MAX_VARCHAR => format!("VARBINARY({bytes})"),
        Type::Binary(bytes) if bytes <= 0xFFFF => "BLOB".into(),
        Type::Binary(_) => "LONGBLOB".into(),
        Type::DateTime => "DATETIME(6)".into(),
        Type::Bool => "BOOLEAN".into(),
        Type::Date => "DATE".into(),
        Type::Time => "TIME(6)".into(),
        Type::Uuid => "BINARY(16)".into(),
        Type::Json(_) => "JSON".into(),
    }
}

/// CREATE TABLE, in the server's default engine.
pub(super) fn create_table(spec: &TableSpec) -> String {
    let column = |column: &Column| {
        let null = if column.nullable { "NULL" } else { "NOT NULL" };
        let auto = if spec.auto_increment == Some(column.name) { " AUTO_INCREMENT" } else { "" };
        format!("{} {} {null}{auto}", name(column.name), type_name(column.ty))
    };
    let mut parts: Vec<String> = spec.columns.iter().map(column).collect();
    parts.push(format!("PRIMARY KEY ({})", names(spec.primary_key.iter().copied())));
    for index in spec.indexes {
        parts.push(format!("KEY {} ({})", name(index.name), names(index.columns.iter().copied())));
    }
    let body = parts.join(", ");
    format!("CREATE TABLE {} ({body}) DEFAULT CHARACTER SET latin1 COLLATE latin1_bin", name(&spec.name))
}

/// The shape of a statement: a table has one prepared statement of each shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Shape {
    /// The row of a primary key.
    Get { for_update: bool },
    /// Rows in the order of an index.
    Scan {
        index: Option<&'static str>,
        prefix: usize,
        from: bool,
        to: bool,
        reverse: bool,
        for_update: bool,
        limit: bool,
    },
    /// One row with all its columns.
    Insert,
    /// Some columns of one row: bit i of `columns` is column i.
    Update { columns: u64 },
    /// One row.
    Delete,
}

fn columns(table: &MysqlTable) -> String {
    names(table.columns.iter().map(String::as_str))
}

fn equal<'a>(columns: impl IntoIterator<Item = &'a String>) -> Vec<String> {
    columns.into_iter().map(|column| format!("{} = ?", name(column))).collect()
}

fn by_key(table: &MysqlTable) -> String {
    equal(table.primary_key()).join(" AND ")
}

/// The text of a statement.
pub(super) fn statement(table: &MysqlTable, shape: Shape) -> String {
    let target = name(&table.name);
    match shape {
        Shape::Get { for_update } => {
            let lock = if for_update { " FOR UPDATE" } else { "" };
            format!("SELECT {} FROM {target} WHERE {}{lock}", columns(table), by_key(table))
        }
        Shape::Scan { .. } => scan(table, shape),
        Shape::Insert => {
            let values = vec!["?"; table.columns.len()].join(", ");
            format!("INSERT INTO {target} ({}) VALUES ({values})", columns(table))
        }
        Shape::Update { columns } => {
            let set = table.columns.iter().enumerate().filter(|(n, _)| columns >> n & 1 == 1).map(|(_, column)| column);
            format!("UPDATE {target} SET {} WHERE {}", equal(set).join(", "), by_key(table))
        }
        Shape::Delete => format!("DELETE FROM {target} WHERE {}", by_key(table)),
    }
}

fn scan(table: &MysqlTable, shape: Shape) -> String {
    let Shape::Scan { index, prefix, from, to, reverse, for_update, limit } = shape else { return String::new() };
    let index = index.unwrap_or("PRIMARY");
    let key = table.indexes.get(index).map_or(&[][..], Vec::as_slice);
    let mut conditions = equal(key.iter().take(prefix));
    if let Some(next) = key.get(prefix) {
        conditions.extend(from.then(|| format!("{} >= ?", name(next))));
        conditions.extend(to.then(|| format!("{} <= ?", name(next))));
    }
    let mut text = format!("SELECT {} FROM {} FORCE INDEX ({})", columns(table), name(&table.name), name(index));
    if !conditions.is_empty() {
        // Writing to a String cannot fail.
        let _ = write!(text, " WHERE {}", conditions.join(" AND "));
    }
    let direction = if reverse { " DESC" } else { "" };
    let order: Vec<String> = key.iter().map(|column| format!("{}{direction}", name(column))).collect();
    let _ = write!(text, " ORDER BY {}", order.join(", "));
    text.push_str(if limit { " LIMIT ?" } else { "" });
    text.push_str(if for_update { " FOR UPDATE" } else { "" });
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{IndexSpec, column, nullable};

    #[test]
    fn tables_have_the_servers_types_and_the_same_keys() {
        const COLUMNS: &[Column] = &[
            column("id", Type::U64),
            column("name", Type::Text(256)),
            column("price", Type::Decimal(12, 2)),
            nullable("at", Type::DateTime),
            nullable("remark", Type::Text(65_535)),
        ];
        let spec = TableSpec {
            name: "t".into(),
            columns: COLUMNS,
            auto_increment: Some("id"),
            primary_key: &["id"],
            indexes: &[IndexSpec { name: "by_name", columns: &["name", "price"] }],
        };
        assert_eq!(
            create_table(&spec),
            "CREATE TABLE `t` (`id` BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, `name` VARCHAR(256) NOT NULL, \
             `price` DECIMAL(12, 2) NOT NULL, `at` DATETIME(6) NULL, `remark` TEXT NULL, PRIMARY KEY (`id`), \
             KEY `by_name` (`name`, `price`)) DEFAULT CHARACTER SET latin1 COLLATE latin1_bin"
        );
    }

    #[test]
    fn names_are_quoted() {
        assert_eq!(name("a`b"), "`a``b`");
    }
}
