//! Definitions of tables and indexes, made from the plain data of the plugin's interface ([`crate::abi`]).

use crate::abi::{ColumnDefinition, IndexDefinition, KeyPart, TableDefinition};
use highwater::{Error, Index, Result, Schema, Type};

/// Keys that may be longer than this get the longer limit.
const ORDINARY_KEY_BYTES: usize = 400;

/// The type of a column.
///
/// # Errors
/// There is no such type.
pub fn type_of(column: &ColumnDefinition) -> Result<Type> {
    const PLAIN: [Type; 12] = [
        Type::I8,
        Type::I16,
        Type::I24,
        Type::I32,
        Type::I64,
        Type::U8,
        Type::U16,
        Type::U24,
        Type::U32,
        Type::U64,
        Type::F32,
        Type::F64,
    ];
    let wrong =
        || Error::Schema(format!("column {}: type {} of {} bytes", column.name.text(), column.kind, column.size));
    match (PLAIN.get(column.kind as usize), column.kind) {
        (Some(plain), _) => Ok(*plain),
        (None, 12) => u8::try_from(column.size).map(Type::Fixed).map_err(|_| wrong()),
        (None, 13) => Ok(Type::Binary(column.size)),
        _ => Err(wrong()),
    }
}

/// The columns of an index, by the names that `name` has for positions.
///
/// # Errors
/// A position without a column.
pub fn index_of(parts: &[KeyPart], names: &[String]) -> Result<Index> {
    let name = |part: &KeyPart| {
        let name = names.get(part.column as usize).map(String::as_str);
        name.ok_or_else(|| Error::Schema(format!("there is no column {}", part.column)))
    };
    let columns = parts.iter().map(name).collect::<Result<Vec<_>>>()?;
    let mut index = Index::new(&columns);
    for (part, column) in parts.iter().zip(&columns) {
        if part.descending != 0 {
            index = index.descending(column);
        }
        if part.prefix != 0 {
            index = index.prefix(column, u16::try_from(part.prefix).unwrap_or(u16::MAX));
        }
    }
    Ok(index)
}

/// A secondary index.
///
/// # Errors
/// As [`index_of`].
pub fn secondary_index(index: &IndexDefinition, names: &[String]) -> Result<Index> {
    let columns = index_of(index.parts.elements(), names)?;
    Ok(if index.unique != 0 { columns.unique() } else { columns })
}

/// Longest possible key of these columns.
fn key_bytes(parts: &[KeyPart], columns: &[ColumnDefinition]) -> usize {
    let part = |part: &KeyPart| match columns.get(part.column as usize) {
        Some(column) if part.prefix != 0 => column.size.min(part.prefix) as usize + 2,
        Some(column) => column.size.max(8) as usize + 2,
        None => 0,
    };
    parts.iter().map(part).sum()
}

/// The schema of a table.
///
/// # Errors
/// A type or a position that is not there.
pub fn schema_of(table: &TableDefinition) -> Result<Schema> {
    let columns = table.columns.elements();
    let names: Vec<String> = columns.iter().map(|column| column.name.text()).collect();
    let mut schema = Schema::new();
    for (column, name) in columns.iter().zip(&names) {
        let ty = type_of(column)?;
        schema = if column.nullable != 0 { schema.nullable(name, ty) } else { schema.column(name, ty) };
    }
    schema = schema.primary_key_with(index_of(table.primary_key.elements(), &names)?);
    for index in table.indexes.elements() {
        schema = schema.index_with(&index.name.text(), secondary_index(index, &names)?);
    }
    if let Some(column) = usize::try_from(table.auto_increment).ok().and_then(|at| names.get(at)) {
        schema = schema.auto_increment(column);
    }
    let primary = key_bytes(table.primary_key.elements(), columns);
    let longest = table.indexes.elements().iter().map(|index| key_bytes(index.parts.elements(), columns)).max();
    if primary + longest.unwrap_or(0) > ORDINARY_KEY_BYTES {
        schema = schema.long_keys();
    }
    Ok(schema.attachment(table.version.elements()))
}
