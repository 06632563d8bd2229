//! The definition of a table in JSON, for dumps and for readers in other processes.
//!
//! Rules
//! 1. Columns and indexes are named; a type is written as its text; bytes are hexadecimal digits.
//! 2. A member with the default value is left out. An unknown member is an error, because the loaded table would lack
//!    it.
//! 3. A definition is destructured member by member, so a new member does not compile until it is handled here.

use super::definition::{Column, IndexColumn, IndexDefinition, TableDefinition};
use super::types::Type;
use super::value::ValueRef;
use super::value_form::{stored_bytes, stored_value};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::ops::Not;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TableForm {
    pub(crate) name: String,
    columns: Vec<ColumnForm>,
    primary_key: Vec<PartForm>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    auto_increment: Option<CounterForm>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
    #[serde(default, skip_serializing_if = "Not::not")]
    long_keys: bool,
    #[serde(default, skip_serializing_if = "Not::not")]
    log_changes: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    indexes: Vec<IndexForm>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    attachment: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ColumnForm {
    name: String,
    r#type: String,
    #[serde(default, skip_serializing_if = "Not::not")]
    nullable: bool,
    /// As a row keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    default: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    collation: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CounterForm {
    column: String,
    /// The next number; none: all are used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
}

/// A column of a key.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PartForm {
    column: String,
    #[serde(default, skip_serializing_if = "Not::not")]
    descending: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prefix_bytes: Option<u16>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct IndexForm {
    name: String,
    columns: Vec<PartForm>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    covering: Vec<String>,
    #[serde(default, skip_serializing_if = "Not::not")]
    unique: bool,
}

/// The number that follows the last one of an auto-increment column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextNumber {
    NoColumn,
    Next(u64),
    NoneLeft,
}

/// A table as the dump describes it.
pub(crate) struct Described {
    pub(crate) definition: TableDefinition,
    pub(crate) next_number: NextNumber,
}

pub(crate) fn to_json(form: &impl Serialize) -> Vec<u8> {
    // Texts, numbers and lists of them: no value of these forms is refused.
    serde_json::to_vec(form).unwrap_or_default()
}

/// Reads a form; the inner error says what is wrong.
pub(crate) fn from_json<'j, T: Deserialize<'j>>(json: &'j [u8]) -> std::result::Result<T, String> {
    serde_json::from_slice(json).map_err(|error| error.to_string())
}

impl TableForm {
    pub(crate) fn of(definition: &TableDefinition, next: Option<u64>) -> TableForm {
        let TableDefinition {
            name,
            columns,
            primary_key,
            auto_increment: counter,
            expires,
            long_keys,
            log_changes,
            indexes,
            attachment,
        } = definition;
        let column_name = |column: usize| columns[column].name.clone();
        let part = |part: &IndexColumn| {
            let IndexColumn { column, descending, prefix_bytes } = *part;
            PartForm { column: column_name(column), descending, prefix_bytes }
        };
        let index = |index: &IndexDefinition| {
            let IndexDefinition { name, columns, covered, unique } = index;
            IndexForm {
                name: name.clone(),
                columns: columns.iter().map(part).collect(),
                covering: covered.iter().map(|column| column_name(*column)).collect(),
                unique: *unique,
            }
        };
        TableForm {
            name: name.clone(),
            columns: columns.iter().map(ColumnForm::of).collect(),
            primary_key: primary_key.iter().map(part).collect(),
            auto_increment: counter.map(|column| CounterForm { column: column_name(column), next }),
            expires: expires.map(column_name),
            long_keys: *long_keys,
            log_changes: *log_changes,
            indexes: indexes.iter().map(index).collect(),
            attachment: hex(attachment),
        }
    }

    /// The table that the form describes.
    ///
    /// # Errors
    /// [`Error::Schema`] says why there can be none.
    pub(crate) fn describe(self) -> Result<Described> {
        let wrong = |reason: String| Error::Schema(format!("the definition of table {}: {reason}", self.name));
        let columns = self.columns.iter().map(ColumnForm::column).collect::<std::result::Result<Vec<_>, _>>();
        let mut definition = TableDefinition {
            name: self.name.clone(),
            columns: columns.map_err(wrong)?,
            primary_key: Vec::new(),
            auto_increment: None,
            expires: None,
            long_keys: self.long_keys,
            log_changes: self.log_changes,
            indexes: Vec::new(),
            attachment: unhex(&self.attachment).ok_or_else(|| wrong(NOT_HEX.to_string()))?,
        };
        definition.primary_key = parts(&self.primary_key, &definition).map_err(wrong)?;
        let mut next_number = NextNumber::NoColumn;
        if let Some(counter) = &self.auto_increment {
            definition.auto_increment = Some(definition.position(&counter.column).map_err(wrong)?);
            next_number = counter.next.map_or(NextNumber::NoneLeft, NextNumber::Next);
        }
        definition.expires = definition.position_of(self.expires.as_deref()).map_err(wrong)?;
        for index in &self.indexes {
            let index = index.define(&definition).map_err(wrong)?;
            definition.indexes.push(index);
        }
        definition.validate().map_err(wrong)?;
        Ok(Described { definition, next_number })
    }
}

impl ColumnForm {
    fn of(column: &Column) -> ColumnForm {
        let Column { name, ty, nullable, default, collation } = column;
        let default = default.as_ref().and_then(|value| stored_bytes(*ty, value)).map(|bytes| hex(&bytes));
        let (name, r#type) = (name.clone(), ty.to_string());
        ColumnForm { name, r#type, nullable: *nullable, default, collation: collation.clone() }
    }

    fn column(&self) -> std::result::Result<Column, String> {
        let ty: Type = self.r#type.parse().map_err(|reason| format!("column {}: {reason}", self.name))?;
        let value = |text: &String| {
            let bytes = unhex(text).ok_or(NOT_HEX)?;
            stored_value(ty, &bytes).ok_or("its default is no value of its type")
        };
        let default = self.default.as_ref().map(value).transpose();
        let default = default.map_err(|reason| format!("column {}: {reason}", self.name))?;
        let (name, nullable, collation) = (self.name.clone(), self.nullable, self.collation.clone());
        Ok(Column { name, ty, nullable, default, collation })
    }
}

impl IndexForm {
    fn define(&self, table: &TableDefinition) -> std::result::Result<IndexDefinition, String> {
        let columns = parts(&self.columns, table)?;
        let covered =
            self.covering.iter().map(|column| table.position(column)).collect::<std::result::Result<_, _>>()?;
        Ok(IndexDefinition { name: self.name.clone(), columns, covered, unique: self.unique })
    }
}

fn parts(forms: &[PartForm], table: &TableDefinition) -> std::result::Result<Vec<IndexColumn>, String> {
    let part = |form: &PartForm| {
        let PartForm { column, descending, prefix_bytes } = form;
        let column = table.position(column)?;
        Ok(IndexColumn { column, descending: *descending, prefix_bytes: *prefix_bytes })
    };
    forms.iter().map(part).collect()
}

const NOT_HEX: &str = "bytes are not written as hexadecimal digits";

fn hex(bytes: &[u8]) -> String {
    ValueRef::Bytes(bytes).to_string()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let nibble = |digit: u8| char::from(digit).to_digit(16).map(|n| n as u8);
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    pairs.iter().map(|[high, low]| Some(nibble(*high)? << 4 | nibble(*low)?)).collect()
}
