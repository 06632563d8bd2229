//! Catalog records as bytes.
//!
//! Keys: table id (u32 big-endian) | kind u8 | number (u32 big-endian). Kinds: 0 the table's state, 1 a part of its
//! definition (copy << 31 | part), 2 a secondary index (number = index id), 4 a part of a layout that rows of the table
//! may still have (layout << 16 | part). Table id 0, kind 0 holds the counters.
//!
//! Rules
//! 1. Every value starts with its version, but for parts: those of a definition or a layout make one value together.
//!    An unknown version is an error.
//! 2. The table's state record names the valid one of the two copies of the definition, and the number of its layout.
//!    So one record puts a new definition of any length in use. Parts of the other copy, and layouts that are not older
//!    than that number, are remains of an interrupted change.
//! 3. State records of tables keep their length.
//! 4. An index record names columns by their ids, which do not change when earlier columns are dropped; in memory
//!    [`IndexDefinition`] has positions.
//! 5. Texts are preceded by their length in two bytes. The longest record of each kind fits the catalog's trees at the
//!    smallest page size.
//! 6. Decoding checks every length; bytes that do not decode are `Corrupt`.

use super::definition::{IndexColumn, IndexDefinition};
use crate::error::{Error, Result};
use crate::types::{IndexId, PageNo, SegmentId, TableId};

const VERSION: u8 = 1;
/// Longest part of a definition or a layout kept in one record.
pub(crate) const PART_BYTES: usize = 512;

/// One of the two copies of a definition: one is valid, the other one is being written or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DefinitionCopy {
    First,
    Second,
}

/// The bit of a part's number that names its copy.
const SECOND_COPY: u32 = 1 << 31;

/// The key of a catalog record.
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
    /// Statistics of a table's rows, or of an index, from the last analysis.
    Statistics(TableId, Option<IndexId>),
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
            RecordKey::Statistics(table, index) => (table.0, 3, index.map_or(0, |index| index.0)),
            RecordKey::Layout { table, layout, part } => (table.0, 4, u32::from(layout) << 16 | u32::from(part)),
        };
        let mut out = [0; 9];
        out[..4].copy_from_slice(&table.to_be_bytes());
        out[4] = kind;
        out[5..].copy_from_slice(&number.to_be_bytes());
        debug_assert_eq!(RecordKey::decode(&out).ok(), Some(self), "a key is not read as it is written");
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
                (1.., 3) => {
                    let index = Some(IndexId(number)).filter(|index| index.0 != 0);
                    Some(RecordKey::Statistics(TableId(table), index))
                }
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
    /// Being created; an opening removes it.
    Building = 1,
    /// In use.
    Ready = 2,
    /// Being removed; when it is found at opening, the removal continues.
    Dropping = 3,
}

/// The next numbers; a number is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IdCounters {
    pub(crate) next_table: u32,
    pub(crate) next_index: u32,
    /// The next create id.
    pub(crate) next_create: u64,
}

/// The place of a tree. Root 0: not yet created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TreeRecord {
    pub(crate) id: IndexId,
    pub(crate) segment: SegmentId,
    pub(crate) root: PageNo,
    /// Longest key that the tree takes. It bounds the tree's records too, and never changes.
    pub(crate) max_key_bytes: u16,
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

impl IdCounters {
    pub(crate) fn encode(self) -> Vec<u8> {
        let mut out = Writer::new();
        out.u32(self.next_table);
        out.u32(self.next_index);
        out.u64(self.next_create);
        debug_assert_eq!(IdCounters::decode(&out.0).ok(), Some(self), "counters are not read as they are written");
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
        debug_assert_eq!(TableRecord::decode(&out.0).ok(), Some(self), "a table is not read as it is written");
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
                overflow: r.segment()?,
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
        out.key_columns(&self.definition.columns);
        out.positions(&self.definition.covered);
        debug_assert_eq!(
            IndexRecord::decode(&out.0).ok().as_ref(),
            Some(self),
            "an index is not read as it is written"
        );
        out.0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<IndexRecord> {
        decode("index", bytes, |r| {
            let (state, tree, unique) = (r.state()?, r.tree()?, r.bool()?);
            Some(IndexRecord {
                state,
                tree,
                definition: IndexDefinition {
                    unique,
                    name: r.text()?,
                    columns: r.key_columns()?,
                    covered: r.positions()?,
                },
            })
        })
    }
}

pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    pub(super) fn new() -> Writer {
        Writer(vec![VERSION])
    }

    pub(super) fn u8(&mut self, n: u8) {
        self.0.push(n);
    }

    pub(super) fn u16(&mut self, n: u16) {
        self.0.extend(n.to_le_bytes());
    }

    pub(super) fn u32(&mut self, n: u32) {
        self.0.extend(n.to_le_bytes());
    }

    pub(super) fn u64(&mut self, n: u64) {
        self.0.extend(n.to_le_bytes());
    }

    pub(super) fn tree(&mut self, tree: TreeRecord) {
        self.u32(tree.id.0);
        self.u32(tree.segment.0);
        self.u32(tree.root.0);
        self.u16(tree.max_key_bytes);
    }

    pub(super) fn text(&mut self, text: &str) {
        debug_assert!(text.len() <= usize::from(u16::MAX), "names are shorter");
        self.u16(text.len() as u16);
        self.0.extend(text.as_bytes());
    }

    pub(super) fn positions(&mut self, columns: &[usize]) {
        debug_assert!(columns.len() <= usize::from(u8::MAX), "{} columns are named", columns.len());
        self.u8(columns.len() as u8);
        columns.iter().for_each(|&column| self.u16(column as u16));
    }

    /// Each with flags and the length of its prefix, 0 for none.
    pub(super) fn key_columns(&mut self, columns: &[IndexColumn]) {
        debug_assert!(columns.len() <= usize::from(u8::MAX), "a key of {} columns", columns.len());
        self.u8(columns.len() as u8);
        for part in columns {
            self.u16(part.column as u16);
            self.u8(u8::from(part.descending));
            self.u16(part.prefix_bytes.unwrap_or(0));
        }
    }
}

pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[n]| n)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn bool(&mut self) -> Option<bool> {
        match self.u8()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    pub(super) fn state(&mut self) -> Option<ObjectState> {
        [ObjectState::Building, ObjectState::Ready, ObjectState::Dropping]
            .into_iter()
            .find(|s| Some(*s as u8) == self.0.first().copied())
            .inspect(|_| {
                self.0 = &self.0[1..];
            })
    }

    pub(super) fn tree(&mut self) -> Option<TreeRecord> {
        let (id, segment, root) = (IndexId(self.u32()?), self.segment()?, PageNo(self.u32()?));
        Some(TreeRecord { id, segment, root, max_key_bytes: self.u16()? })
    }

    /// A segment's number, which is below the greatest one.
    pub(super) fn segment(&mut self) -> Option<SegmentId> {
        self.u32().filter(|number| *number < u32::MAX).map(SegmentId)
    }

    pub(super) fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(head)
    }

    pub(super) fn text(&mut self) -> Option<String> {
        let len = usize::from(self.u16()?);
        String::from_utf8(self.bytes(len)?.to_vec()).ok()
    }

    pub(super) fn positions(&mut self) -> Option<Vec<usize>> {
        (0..self.u8()?).map(|_| self.u16().map(usize::from)).collect()
    }

    pub(super) fn key_columns(&mut self) -> Option<Vec<IndexColumn>> {
        let part = |r: &mut Self| {
            let (column, descending, prefix) = (r.u16()?.into(), r.bool()?, r.u16()?);
            Some(IndexColumn { column, descending, prefix_bytes: Some(prefix).filter(|bytes| *bytes > 0) })
        };
        (0..self.u8()?).map(|_| part(self)).collect()
    }
}

pub(super) fn decode<T>(what: &str, bytes: &[u8], read: impl FnOnce(&mut Reader<'_>) -> Option<T>) -> Result<T> {
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
