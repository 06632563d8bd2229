//! A table's definition and its row layouts as bytes, which the catalog stores in parts.
//!
//! Rules
//! 1. Columns have ids, which do not change when other columns are added or dropped, and are never reused.
//! 2. A column's default is stored in row format.
//! 3. A decoded record encodes to the same bytes; any other record is `Corrupt`.

use super::definition::{Column, IndexColumn, IndexDefinition, MAX_COLUMNS, MAX_DEFAULT_BYTES, TableDefinition};
use super::record::{DefinitionCopy, Reader, Writer, decode};
use super::types::Type;
use super::value_form::{stored_bytes, stored_value};
use crate::error::Result;
use std::collections::HashMap;

/// The ids of a table's columns, by position: numbers that stay when other columns come and go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ColumnIds {
    pub(crate) ids: Vec<u16>,
    /// The next id; an id is never reused.
    pub(crate) next: u16,
}

/// A table's definition without its secondary indexes, which have records of their own.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DefinitionRecord {
    /// Not validated yet, since its indexes are missing.
    pub(crate) definition: TableDefinition,
    pub(crate) columns: ColumnIds,
}

impl DefinitionCopy {
    pub(crate) fn other(self) -> DefinitionCopy {
        match self {
            DefinitionCopy::First => DefinitionCopy::Second,
            DefinitionCopy::Second => DefinitionCopy::First,
        }
    }
}

/// Layout of a new table's rows.
pub(crate) const FIRST_LAYOUT: u8 = 1;

/// A column as rows of a layout have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LayoutColumn {
    pub(crate) id: u16,
    pub(crate) ty: Type,
    pub(crate) nullable: bool,
}

impl ColumnIds {
    /// The column ids of a new table.
    pub(crate) fn first(columns: usize) -> ColumnIds {
        ColumnIds { ids: (0..columns as u16).collect(), next: columns as u16 }
    }

    fn are_distinct(&self) -> bool {
        let mut ids = self.ids.clone();
        ids.sort_unstable();
        ids.is_sorted_by(|a, b| a < b)
    }

    /// An index with the ids of its columns.
    pub(crate) fn with_ids(&self, index: &IndexDefinition) -> IndexDefinition {
        let id = |position: usize| usize::from(self.ids[position]);
        let columns = index.columns.iter().map(|part| IndexColumn { column: id(part.column), ..*part }).collect();
        let covered = index.covered.iter().map(|&position| id(position)).collect();
        let named = IndexDefinition { columns, covered, ..index.clone() };
        debug_assert_eq!(self.with_positions(&named).as_ref(), Some(index), "an index loses its columns");
        named
    }

    /// An index with the positions of its columns, if all of them are there.
    pub(crate) fn with_positions(&self, index: &IndexDefinition) -> Option<IndexDefinition> {
        let position = |id: usize| self.ids.iter().position(|own| usize::from(*own) == id);
        let part = |part: &IndexColumn| Some(IndexColumn { column: position(part.column)?, ..*part });
        let columns = index.columns.iter().map(part).collect::<Option<_>>()?;
        let covered = index.covered.iter().map(|&id| position(id)).collect::<Option<_>>()?;
        Some(IndexDefinition { columns, covered, ..index.clone() })
    }
}

/// A definition with the ids of its columns.
pub(crate) fn encode_definition(definition: &TableDefinition, columns: &ColumnIds) -> Vec<u8> {
    debug_assert_eq!(definition.columns.len(), columns.ids.len(), "each column has an id");
    debug_assert!(columns.are_distinct(), "rule 1: two columns have one id: {:?}", columns.ids);
    debug_assert!(columns.ids.iter().all(|id| *id < columns.next), "rule 1: an id is reused: {columns:?}");
    let mut out = Writer::new();
    out.text(&definition.name);
    out.u16(columns.next);
    out.u16(definition.columns.len() as u16);
    for (column, id) in definition.columns.iter().zip(&columns.ids) {
        out.text(&column.name);
        put_layout_column(&LayoutColumn { id: *id, ty: column.ty, nullable: column.nullable }, &mut out);
        put_default(column, &mut out);
        out.text(column.collation.as_deref().unwrap_or_default());
    }
    out.key_columns(&definition.primary_key);
    out.u16(definition.auto_increment.map_or(u16::MAX, |column| column as u16));
    out.u16(definition.expires.map_or(u16::MAX, |column| column as u16));
    out.u8(u8::from(definition.long_keys));
    out.u8(u8::from(definition.log_changes));
    out.u32(definition.attachment.len() as u32);
    out.0.extend_from_slice(&definition.attachment);
    out.0
}

/// Reads what [`encode_definition`] wrote.
pub(crate) fn decode_definition(bytes: &[u8]) -> Result<DefinitionRecord> {
    decode("definition", bytes, |r| {
        let (name, next) = (r.text()?, r.u16()?);
        let described = (0..r.u16()?).map(|_| read_column(r, next)).collect::<Option<Vec<(Column, u16)>>>()?;
        let (columns, ids): (Vec<_>, Vec<_>) = described.into_iter().unzip();
        let primary_key = r.key_columns()?;
        let column = |number: u16| Some(usize::from(number)).filter(|_| number != u16::MAX);
        let (auto_increment, expires) = (column(r.u16()?), column(r.u16()?));
        let (long_keys, log_changes) = (r.bool()?, r.bool()?);
        let attachment_bytes = r.u32()? as usize;
        let attachment = r.bytes(attachment_bytes)?.to_vec();
        let definition = TableDefinition {
            name,
            columns,
            primary_key,
            auto_increment,
            expires,
            long_keys,
            log_changes,
            indexes: Vec::new(),
            attachment,
        };
        let columns = ColumnIds { ids, next };
        columns.are_distinct().then_some(DefinitionRecord { definition, columns })
    })
}

/// A layout of rows: its columns in the order of the row.
pub(crate) fn encode_layout(columns: &[LayoutColumn]) -> Vec<u8> {
    debug_assert!(columns.len() <= MAX_COLUMNS, "a layout of {} columns", columns.len());
    let mut out = Writer::new();
    out.u16(columns.len() as u16);
    columns.iter().for_each(|column| put_layout_column(column, &mut out));
    debug_assert_eq!(decode_layout(&out.0).ok().as_deref(), Some(columns), "a layout is not read as it is written");
    out.0
}

/// Reads what [`encode_layout`] wrote.
pub(crate) fn decode_layout(bytes: &[u8]) -> Result<Vec<LayoutColumn>> {
    decode("layout", bytes, |r| {
        let count = r.u16().filter(|count| usize::from(*count) <= MAX_COLUMNS)?;
        (0..count).map(|_| read_layout_column(r)).collect()
    })
}

/// Whether rows of an older layout can be read as rows of the table (rule 3 of `row_layouts.rs`); else what is in the
/// way.
pub(crate) fn check_resolvable(
    kept: &[LayoutColumn],
    definition: &TableDefinition,
    columns: &ColumnIds,
) -> std::result::Result<(), String> {
    let kept: HashMap<u16, &LayoutColumn> = kept.iter().map(|column| (column.id, column)).collect();
    let check = |(column, id): (&Column, &u16)| {
        let is_readable = match kept.get(id) {
            Some(kept) => kept.ty.widens_to(column.ty) && (column.nullable || !kept.nullable),
            None => column.nullable || column.default.is_some(),
        };
        if is_readable { Ok(()) } else { Err(format!("older rows cannot be read in column {}", column.name)) }
    };
    definition.columns.iter().zip(&columns.ids).try_for_each(check)
}

fn put_layout_column(column: &LayoutColumn, out: &mut Writer) {
    let (code, parameter) = column.ty.code();
    out.u16(column.id);
    out.u8(code);
    out.u32(parameter);
    out.u8(u8::from(column.nullable));
}

/// Encodes a column's default: length u16 and bytes; the greatest length: no default.
fn put_default(column: &Column, out: &mut Writer) {
    let stored = column.default.as_ref().and_then(|value| stored_bytes(column.ty, value));
    out.u16(stored.as_ref().map_or(NO_DEFAULT, |bytes| bytes.len() as u16));
    let bytes = stored.as_ref().map_or(0, Vec::len);
    debug_assert!(bytes <= MAX_DEFAULT_BYTES, "a default of {bytes} bytes");
    out.0.extend(stored.unwrap_or_default());
}

/// In the place of a default's length.
const NO_DEFAULT: u16 = u16::MAX;
const _: () = assert!(MAX_DEFAULT_BYTES < NO_DEFAULT as usize);

fn read_layout_column(r: &mut Reader<'_>) -> Option<LayoutColumn> {
    let (id, code, parameter, nullable) = (r.u16()?, r.u8()?, r.u32()?, r.bool()?);
    Some(LayoutColumn { id, ty: Type::from_code(code, parameter)?, nullable })
}

/// A column and its id, which is below `next`.
fn read_column(r: &mut Reader<'_>, next: u16) -> Option<(Column, u16)> {
    let name = r.text()?;
    let LayoutColumn { id, ty, nullable } = read_layout_column(r)?;
    let default = match r.u16()? {
        NO_DEFAULT => None,
        len => Some(stored_value(ty, r.bytes(usize::from(len))?)?),
    };
    let collation = Some(r.text()?).filter(|collation| !collation.is_empty());
    (id < next).then_some((Column { name, ty, nullable, default, collation }, id))
}

#[cfg(test)]
#[path = "definition_record_test.rs"]
mod tests;
