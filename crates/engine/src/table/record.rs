//! Catalog records as bytes.
//!
//! Keys: table id (u32 big-endian) | kind u8 | number (u32 big-endian). Kinds: 0 the table's state, 1 a part of its
//! definition (copy << 31 | part), 2 a secondary index (number = index id), 4 a part of a layout that rows of the table
//! may still have (layout << 16 | part). Table id 0, kind 0 holds the counters.
//!
//! Rules
//! 1. Every value starts with its version, but for parts: those of a definition or a layout make one value together.
//!    An unknown version is an error.
//! 2. The table's state record says which of two copies of the definition counts, and the number of the layout that is
//!    made of it. So a new definition of any length takes one record to come into use. Parts of the other copy, and
//!    layouts that are not older than that number, are what a change has left that did not end.
//! 3. State records of tables keep their length.
//! 4. An index record names columns by their ids, which stay when columns before them are dropped; in memory
//!    [`IndexDefinition`] has positions.
//! 5. Texts are preceded by their length in two bytes. The longest record of each kind fits the catalog's trees at the
//!    smallest page size.
//! 6. Decoding checks every length; what does not decode is `Corrupt`.

use super::schema::{Column, IndexDefinition, MAX_DEFAULT_BYTES, TableDefinition};
use super::types::Type;
use super::value::Value;
use super::value_form::{Stored, fit, unfit};
use crate::error::{Error, Result};
use crate::types::{IndexId, PageNo, SegmentId, TableId};

const VERSION: u8 = 1;
/// Longest part of a definition or a layout kept in one record.
pub(crate) const PART_BYTES: usize = 512;

/// Which of the two copies of a definition: one counts, the other one is being written or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DefinitionCopy {
    First,
    Second,
}

/// The bit of a part's number that names its copy.
const SECOND_COPY: u32 = 1 << 31;

/// Which catalog record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RecordKey {
    Counters,
    /// A table's state and trees.
    Table(TableId),
    /// A part of one of the two copies of a table's definition.
    Part {
        table: TableId,
        copy: DefinitionCopy,
        part: u32,
    },
    Index(TableId, IndexId),
    /// A part of a layout of a table's rows.
    Layout {
        table: TableId,
        layout: u8,
        part: u16,
    },
}

impl RecordKey {
    pub(crate) fn encode(self) -> [u8; 9] {
        let (table, kind, number) = match self {
            RecordKey::Counters => (0, 0, 0),
            RecordKey::Table(table) => (table.0, 0, 0),
            RecordKey::Part { table, copy: DefinitionCopy::First, part } => (table.0, 1, part),
            RecordKey::Part { table, copy: DefinitionCopy::Second, part } => (table.0, 1, SECOND_COPY | part),
            RecordKey::Index(table, index) => (table.0, 2, index.0),
            RecordKey::Layout { table, layout, part } => (table.0, 4, u32::from(layout) << 16 | u32::from(part)),
        };
        let mut out = [0; 9];
        out[..4].copy_from_slice(&table.to_be_bytes());
        out[4] = kind;
        out[5..].copy_from_slice(&number.to_be_bytes());
        out
    }

    pub(crate) fn decode(key: &[u8]) -> Result<RecordKey> {
        let fields = || {
            let (table, rest) = key.split_first_chunk()?;
            let (&kind, number) = rest.split_first()?;
            let (table, number) = (u32::from_be_bytes(*table), u32::from_be_bytes(number.try_into().ok()?));
            match (table, kind) {
                (0, 0) if number == 0 => Some(RecordKey::Counters),
                (1.., 0) if number == 0 => Some(RecordKey::Table(TableId(table))),
                (1.., 1) => {
                    let is_first = number & SECOND_COPY == 0;
                    let copy = if is_first { DefinitionCopy::First } else { DefinitionCopy::Second };
                    Some(RecordKey::Part { table: TableId(table), copy, part: number & !SECOND_COPY })
                }
                (1.., 2) => Some(RecordKey::Index(TableId(table), IndexId(number))),
                (1.., 4) => {
                    let layout = u8::try_from(number >> 16).ok()?;
                    Some(RecordKey::Layout { table: TableId(table), layout, part: number as u16 })
                }
                _ => None,
            }
        };
        fields().ok_or_else(|| Error::Corrupt(format!("the catalog has a record under the unknown key {key:02x?}")))
    }
}

/// The state of a table or an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ObjectState {
    /// Being made; removed when it is found at opening.
    Building = 1,
    /// In use.
    Ready = 2,
    /// Being removed; when it is found at opening, the removal goes on.
    Dropping = 3,
}

/// The next numbers, none of which is given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IdCounters {
    pub(crate) next_table: u32,
    pub(crate) next_index: u32,
    /// The next create id.
    pub(crate) next_create: u64,
}

/// Where a tree is. Root 0 = not made yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TreeRecord {
    pub(crate) id: IndexId,
    pub(crate) segment: SegmentId,
    pub(crate) root: PageNo,
}

/// A table's state and trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableRecord {
    pub(crate) state: ObjectState,
    /// No number of the auto-increment column at or above this one was ever given.
    pub(crate) auto_increment_bound: u64,
    /// Number of the creation, unique in the database; it stays when the table changes.
    pub(crate) create_id: u64,
    /// Length of the definition, all parts together.
    pub(crate) definition_bytes: u32,
    /// The copy of the definition that counts.
    pub(crate) definition_copy: DefinitionCopy,
    /// Number of the layout of rows that the definition makes; those before it have records.
    pub(crate) layout: u8,
    pub(crate) clustered: TreeRecord,
    pub(crate) overflow: SegmentId,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexRecord {
    pub(crate) state: ObjectState,
    pub(crate) tree: TreeRecord,
    /// With the ids of its columns in the place of their positions (rule 4).
    pub(crate) definition: IndexDefinition,
}

/// The ids of a table's columns, by position: numbers that stay when other columns come and go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ColumnIds {
    pub(crate) ids: Vec<u16>,
    /// The next id; none is given again.
    pub(crate) next: u16,
}

/// A table's definition without its secondary indexes, which have records of their own.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DefinitionRecord {
    /// Not validated yet, since its indexes are missing.
    pub(crate) definition: TableDefinition,
    pub(crate) columns: ColumnIds,
}

/// A column as rows of a layout have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LayoutColumn {
    pub(crate) id: u16,
    pub(crate) ty: Type,
    pub(crate) nullable: bool,
}

impl IdCounters {
    pub(crate) fn encode(self) -> Vec<u8> {
        let mut out = Writer::new();
        out.u32(self.next_table);
        out.u32(self.next_index);
        out.u64(self.next_create);
        out.0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<IdCounters> {
        decode("counters", bytes, |r| {
            Some(IdCounters { next_table: r.u32()?, next_index: r.u32()?, next_create: r.u64()? })
        })
    }
}

impl TableRecord {
    pub(crate) fn encode(self) -> Vec<u8> {
        let mut out = Writer::new();
        out.u8(self.state as u8);
        out.u64(self.auto_increment_bound);
        out.u64(self.create_id);
        out.u32(self.definition_bytes);
        out.u8(self.definition_copy as u8);
        out.u8(self.layout);
        out.tree(self.clustered);
        out.u32(self.overflow.0);
        out.0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<TableRecord> {
        decode("table", bytes, |r| {
            Some(TableRecord {
                state: r.state()?,
                auto_increment_bound: r.u64()?,
                create_id: r.u64()?,
                definition_bytes: r.u32()?,
                definition_copy: if r.bool()? { DefinitionCopy::Second } else { DefinitionCopy::First },
                layout: r.u8().filter(|layout| *layout != 0)?,
                clustered: r.tree()?,
                overflow: SegmentId(r.u32()?),
            })
        })
    }
}

impl IndexRecord {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.u8(self.state as u8);
        out.tree(self.tree);
        out.u8(u8::from(self.definition.unique));
        out.text(&self.definition.name);
        out.positions(&self.definition.columns);
        out.0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<IndexRecord> {
        decode("index", bytes, |r| {
            let (state, tree, unique) = (r.state()?, r.tree()?, r.bool()?);
            Some(IndexRecord {
                state,
                tree,
                definition: IndexDefinition { unique, name: r.text()?, columns: r.positions()? },
            })
        })
    }
}

impl ColumnIds {
    /// Those of a new table.
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
        let ids = index.columns.iter().map(|&position| usize::from(self.ids[position]));
        IndexDefinition { columns: ids.collect(), ..index.clone() }
    }

    /// An index with the positions of its columns, if all of them are there.
    pub(crate) fn with_positions(&self, index: &IndexDefinition) -> Option<IndexDefinition> {
        let position = |id: &usize| self.ids.iter().position(|own| usize::from(*own) == *id);
        let columns = index.columns.iter().map(position).collect::<Option<_>>()?;
        Some(IndexDefinition { columns, ..index.clone() })
    }
}

/// A definition with the ids of its columns.
pub(crate) fn encode_definition(definition: &TableDefinition, columns: &ColumnIds) -> Vec<u8> {
    let mut out = Writer::new();
    out.text(&definition.name);
    out.u16(columns.next);
    out.u16(definition.columns.len() as u16);
    for (column, id) in definition.columns.iter().zip(&columns.ids) {
        out.text(&column.name);
        out.layout_column(&LayoutColumn { id: *id, ty: column.ty, nullable: column.nullable });
        out.default(column);
    }
    out.positions(&definition.primary_key);
    out.u16(definition.auto_increment.map_or(u16::MAX, |column| column as u16));
    out.u32(definition.attachment.len() as u32);
    out.0.extend_from_slice(&definition.attachment);
    out.0
}

/// Reads what [`encode_definition`] wrote.
pub(crate) fn decode_definition(bytes: &[u8]) -> Result<DefinitionRecord> {
    decode("definition", bytes, |r| {
        let (name, next) = (r.text()?, r.u16()?);
        let described = (0..r.u16()?).map(|_| r.column(next)).collect::<Option<Vec<(Column, u16)>>>()?;
        let (columns, ids): (Vec<_>, Vec<_>) = described.into_iter().unzip();
        let primary_key = r.positions()?;
        let auto_increment = Some(usize::from(r.u16()?)).filter(|&column| column != usize::from(u16::MAX));
        let attachment_bytes = r.u32()? as usize;
        let attachment = r.bytes(attachment_bytes)?.to_vec();
        let definition =
            TableDefinition { name, columns, primary_key, auto_increment, indexes: Vec::new(), attachment };
        let columns = ColumnIds { ids, next };
        columns.are_distinct().then_some(DefinitionRecord { definition, columns })
    })
}

/// A layout of rows: its columns in the order of the row.
pub(crate) fn encode_layout(columns: &[LayoutColumn]) -> Vec<u8> {
    let mut out = Writer::new();
    out.u16(columns.len() as u16);
    columns.iter().for_each(|column| out.layout_column(column));
    out.0
}

/// Reads what [`encode_layout`] wrote.
pub(crate) fn decode_layout(bytes: &[u8]) -> Result<Vec<LayoutColumn>> {
    decode("layout", bytes, |r| (0..r.u16()?).map(|_| r.layout_column()).collect())
}

struct Writer(Vec<u8>);

impl Writer {
    fn new() -> Writer {
        Writer(vec![VERSION])
    }
    fn u8(&mut self, n: u8) {
        self.0.push(n);
    }
    fn u16(&mut self, n: u16) {
        self.0.extend(n.to_le_bytes());
    }
    fn u32(&mut self, n: u32) {
        self.0.extend(n.to_le_bytes());
    }
    fn u64(&mut self, n: u64) {
        self.0.extend(n.to_le_bytes());
    }
    fn tree(&mut self, tree: TreeRecord) {
        self.u32(tree.id.0);
        self.u32(tree.segment.0);
        self.u32(tree.root.0);
    }
    fn text(&mut self, text: &str) {
        debug_assert!(text.len() <= usize::from(u16::MAX), "names are shorter");
        self.u16(text.len() as u16);
        self.0.extend(text.as_bytes());
    }
    fn layout_column(&mut self, column: &LayoutColumn) {
        let (code, parameter) = column.ty.code();
        self.u16(column.id);
        self.u8(code);
        self.u32(parameter);
        self.u8(u8::from(column.nullable));
    }
    /// What the column keeps for its default: length u16 and bytes; the greatest length: it has none.
    fn default(&mut self, column: &Column) {
        let stored = column.default.as_ref().and_then(|value| stored_bytes(column.ty, value));
        self.u16(stored.as_ref().map_or(NO_DEFAULT, |bytes| bytes.len() as u16));
        self.0.extend(stored.unwrap_or_default());
    }
    fn positions(&mut self, columns: &[usize]) {
        self.u8(columns.len() as u8);
        columns.iter().for_each(|&column| self.u16(column as u16));
    }
}

/// In the place of a default's length.
const NO_DEFAULT: u16 = u16::MAX;
const _: () = assert!(MAX_DEFAULT_BYTES < NO_DEFAULT as usize);

/// What a column of this type keeps for a value, if it fits and is not NULL.
pub(crate) fn stored_bytes(ty: Type, value: &Value) -> Option<Vec<u8>> {
    match fit(ty, value.as_ref())? {
        Stored::Null => None,
        Stored::Word(word) => Some(word.to_le_bytes()[..ty.fixed_bytes()?].to_vec()),
        Stored::Wide(wide) => Some(wide.to_le_bytes().to_vec()),
        Stored::Bytes(bytes) => Some(bytes.to_vec()),
    }
}

/// The value for which a column of this type keeps these bytes, if there is one.
pub(crate) fn stored_value(ty: Type, bytes: &[u8]) -> Option<Value> {
    let value = unfit(ty, bytes).to_value();
    (stored_bytes(ty, &value)? == bytes).then_some(value)
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }
    fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[n]| n)
    }
    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }
    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }
    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
    fn bool(&mut self) -> Option<bool> {
        match self.u8()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
    fn state(&mut self) -> Option<ObjectState> {
        [ObjectState::Building, ObjectState::Ready, ObjectState::Dropping]
            .into_iter()
            .find(|s| Some(*s as u8) == self.0.first().copied())
            .inspect(|_| {
                self.0 = &self.0[1..];
            })
    }
    fn tree(&mut self) -> Option<TreeRecord> {
        Some(TreeRecord { id: IndexId(self.u32()?), segment: SegmentId(self.u32()?), root: PageNo(self.u32()?) })
    }
    fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(head)
    }
    fn text(&mut self) -> Option<String> {
        let len = usize::from(self.u16()?);
        String::from_utf8(self.bytes(len)?.to_vec()).ok()
    }
    fn positions(&mut self) -> Option<Vec<usize>> {
        (0..self.u8()?).map(|_| self.u16().map(usize::from)).collect()
    }
    fn layout_column(&mut self) -> Option<LayoutColumn> {
        let (id, code, parameter, nullable) = (self.u16()?, self.u8()?, self.u32()?, self.bool()?);
        Some(LayoutColumn { id, ty: Type::from_code(code, parameter)?, nullable })
    }
    /// A column and its id, which is below `next`.
    fn column(&mut self, next: u16) -> Option<(Column, u16)> {
        let name = self.text()?;
        let LayoutColumn { id, ty, nullable } = self.layout_column()?;
        let default = match self.u16()? {
            NO_DEFAULT => None,
            len => Some(stored_value(ty, self.bytes(usize::from(len))?)?),
        };
        (id < next).then_some((Column { name, ty, nullable, default }, id))
    }
}

fn decode<T>(what: &str, bytes: &[u8], read: impl FnOnce(&mut Reader<'_>) -> Option<T>) -> Result<T> {
    let mut reader = Reader(bytes);
    match reader.u8() {
        Some(VERSION) => {}
        Some(version) if version > VERSION => {
            let reason =
                format!("a catalog record ({what}) has version {version}; this program knows versions up to {VERSION}");
            return Err(Error::Incompatible(reason));
        }
        _ => return Err(Error::Corrupt(format!("a catalog record ({what}) has no version"))),
    }
    match read(&mut reader) {
        Some(found) if reader.0.is_empty() => Ok(found),
        _ => Err(Error::Corrupt(format!("a catalog record ({what}) of {} bytes does not decode", bytes.len()))),
    }
}

#[cfg(test)]
#[path = "record_test.rs"]
mod tests;
