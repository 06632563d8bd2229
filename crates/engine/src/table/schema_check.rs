//! The validity of a table definition.
//!
//! Rule: names are unique, columns exist, primary key columns are not nullable, and each declaration of a column is
//! possible for its type.

use super::definition::{
    Column, IndexColumn, IndexDefinition, MAX_ATTACHMENT_BYTES, MAX_COLUMNS, MAX_COVERED_COLUMNS, MAX_DEFAULT_BYTES,
    MAX_INDEX_COLUMNS, MAX_INDEXES, MAX_NAME_BYTES, MAX_PREFIX_BYTES, MAX_TABLE_NAME_BYTES, PRIMARY, TableDefinition,
};
use super::types::Type;
use super::value_form::{misfit, stored_bytes};

impl TableDefinition {
    pub(crate) fn validate(&self) -> std::result::Result<(), String> {
        check_name("table", &self.name, MAX_TABLE_NAME_BYTES)?;
        if self.attachment.len() > MAX_ATTACHMENT_BYTES {
            let bytes = self.attachment.len();
            return Err(format!("an attachment of {bytes} bytes; it may have {MAX_ATTACHMENT_BYTES}"));
        }
        if self.columns.is_empty() || self.columns.len() > MAX_COLUMNS {
            return Err(format!("a table has 1 to {MAX_COLUMNS} columns, not {}", self.columns.len()));
        }
        for (i, column) in self.columns.iter().enumerate() {
            check_name("column", &column.name, MAX_NAME_BYTES)?;
            if self.columns[..i].iter().any(|other| other.name == column.name) {
                return Err(format!("there are two columns {}", column.name));
            }
            if let Some(reason) = column.ty.invalid() {
                return Err(format!("column {}: {reason}", column.name));
            }
            check_default(column)?;
            if let Some(collation) = &column.collation {
                check_name("collation", collation, MAX_NAME_BYTES)?;
                if !matches!(column.ty, Type::Text(_)) {
                    return Err(format!("column {}: only text has a collation", column.name));
                }
            }
        }
        self.validate_primary_key()?;
        self.validate_auto_increment()?;
        self.validate_expiry()?;
        if self.indexes.len() > MAX_INDEXES {
            return Err(format!("a table has at most {MAX_INDEXES} secondary indexes, not {}", self.indexes.len()));
        }
        (0..self.indexes.len()).try_for_each(|i| self.validate_index(i))
    }

    fn validate_primary_key(&self) -> std::result::Result<(), String> {
        if self.primary_key.is_empty() {
            return Err("there is no primary key".to_string());
        }
        self.validate_key_columns(&self.primary_key).map_err(|reason| format!("primary key: {reason}"))?;
        for part in &self.primary_key {
            let Column { name, nullable, collation, .. } = &self.columns[part.column];
            let wrong = match (nullable, collation, part.prefix_bytes) {
                (true, _, _) => "is nullable",
                (_, Some(_), _) => "has a collation: a primary key compares by bytes (a unique index does not)",
                (_, _, Some(_)) => "is not whole",
                (false, None, None) => continue,
            };
            return Err(format!("primary key: column {name} {wrong}"));
        }
        Ok(())
    }

    fn validate_auto_increment(&self) -> std::result::Result<(), String> {
        let Some(position) = self.auto_increment else { return Ok(()) };
        let column = self.columns.get(position).ok_or("the auto-increment column does not exist")?;
        if column.ty.integer_range().is_none() {
            return Err(format!("column {}: auto-increment needs an integer column, not {}", column.name, column.ty));
        }
        Ok(())
    }

    fn validate_expiry(&self) -> std::result::Result<(), String> {
        let Some(position) = self.expires else { return Ok(()) };
        let column = self.columns.get(position).ok_or("the expiry column does not exist")?;
        match column.ty {
            Type::DateTime => Ok(()),
            ty => Err(format!("column {}: rows expire by a column of type datetime, not {ty}", column.name)),
        }
    }

    fn validate_index(&self, i: usize) -> std::result::Result<(), String> {
        let index = &self.indexes[i];
        check_name("index", &index.name, MAX_NAME_BYTES)?;
        if index.name == PRIMARY {
            return Err(format!("an index cannot be named {PRIMARY}"));
        }
        if self.indexes[..i].iter().any(|other| other.name == index.name) {
            return Err(format!("there are two indexes {}", index.name));
        }
        let columns = self.validate_key_columns(&index.columns).and_then(|()| self.validate_covered(index));
        columns.map_err(|reason| format!("index {}: {reason}", index.name))
    }

    /// The problem with the columns of a key, if any.
    fn validate_key_columns(&self, parts: &[IndexColumn]) -> std::result::Result<(), String> {
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
                let reason = "JSON has no order of its own; keep what rows are looked up by in a column next to it";
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

    /// The problem with the covered columns of an index, if any.
    fn validate_covered(&self, index: &IndexDefinition) -> std::result::Result<(), String> {
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

fn check_default(column: &Column) -> std::result::Result<(), String> {
    let Some(value) = &column.default else { return Ok(()) };
    match stored_bytes(column.ty, value) {
        Some(stored) if stored.len() <= MAX_DEFAULT_BYTES => Ok(()),
        Some(stored) => {
            Err(format!("column {}: a default of {} bytes; it may have {MAX_DEFAULT_BYTES}", column.name, stored.len()))
        }
        None if value.as_ref().is_null() => Err(format!("column {}: the default is NULL; leave it out", column.name)),
        None => Err(format!("column {}: the default: {}", column.name, misfit(column.ty, value.as_ref()))),
    }
}

fn check_name(what: &str, name: &str, max_bytes: usize) -> std::result::Result<(), String> {
    if name.is_empty() || name.len() > max_bytes {
        return Err(format!("{what} name {name:?} has {} bytes; it may have 1 to {max_bytes}", name.len()));
    }
    if name.chars().any(char::is_control) {
        return Err(format!("{what} name {name:?} holds a control character, which no name may"));
    }
    Ok(())
}
