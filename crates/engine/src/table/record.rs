//! Catalog records as bytes.
//!
//! Keys: table id (u32 big-endian) | kind u8 | number (u32 big-endian). Kinds: 0 the table's state, 1 a part of its
//! definition, 2 a secondary index (number = index id). Table id 0, kind 0 holds the counters.
//!
//! Rules
//! 1. Every value starts with its version; an unknown version is an error.
//! 2. State records and index records keep their length when they are written again, so that they are overwritten in
//!    place.
//! 3. Decoding checks every length; what does not decode is `Corrupt`.

use super::schema::{Column, IndexDefinition, TableDefinition};
use super::types::Type;
use crate::error::{Error, Result};
use crate::types::{IndexId, PageNo, SegmentId, TableId};

const VERSION: u8 = 1;
/// Longest part of a definition kept in one record.
pub(crate) const PART_BYTES: usize = 512;

/// Which catalog record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RecordKey {
    Counters,
    /// A table's state and trees.
    Table(TableId),
    /// A part of a table's definition.
    Part(TableId, u32),
    Index(TableId, IndexId),
}

impl RecordKey {
    pub(crate) fn encode(self) -> [u8; 9] {
        let (table, kind, number) = match self {
            RecordKey::Counters => (0, 0, 0),
            RecordKey::Table(table) => (table.0, 0, 0),
            RecordKey::Part(table, part) => (table.0, 1, part),
            RecordKey::Index(table, index) => (table.0, 2, index.0),
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
                (1.., 1) => Some(RecordKey::Part(TableId(table), number)),
                (1.., 2) => Some(RecordKey::Index(TableId(table), IndexId(number))),
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
    /// Length of the definition, all parts together.
    pub(crate) definition_bytes: u32,
    pub(crate) clustered: TreeRecord,
    pub(crate) overflow: SegmentId,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexRecord {
    pub(crate) state: ObjectState,
    pub(crate) tree: TreeRecord,
    pub(crate) definition: IndexDefinition,
}

impl IdCounters {
    pub(crate) fn encode(self) -> Vec<u8> {
        let mut out = Writer::new();
        out.u32(self.next_table);
        out.u32(self.next_index);
        out.0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<IdCounters> {
        decode("counters", bytes, |r| Some(IdCounters { next_table: r.u32()?, next_index: r.u32()? }))
    }
}

impl TableRecord {
    pub(crate) fn encode(self) -> Vec<u8> {
        let mut out = Writer::new();
        out.u8(self.state as u8);
        out.u64(self.auto_increment_bound);
        out.u32(self.definition_bytes);
        out.tree(self.clustered);
        out.u32(self.overflow.0);
        out.0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<TableRecord> {
        decode("table", bytes, |r| {
            Some(TableRecord {
                state: r.state()?,
                auto_increment_bound: r.u64()?,
                definition_bytes: r.u32()?,
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

/// A table's definition without its secondary indexes, which have records of their own.
pub(crate) fn encode_definition(definition: &TableDefinition) -> Vec<u8> {
    let mut out = Writer::new();
    out.text(&definition.name);
    out.u16(definition.columns.len() as u16);
    for column in &definition.columns {
        let (code, parameter) = column.ty.code();
        out.text(&column.name);
        out.u8(code);
        out.u32(parameter);
        out.u8(u8::from(column.nullable));
    }
    out.positions(&definition.primary_key);
    out.u16(definition.auto_increment.map_or(u16::MAX, |column| column as u16));
    out.0
}

/// Reads what [`encode_definition`] wrote; not validated yet, since its indexes are missing.
pub(crate) fn decode_definition(bytes: &[u8]) -> Result<TableDefinition> {
    decode("definition", bytes, |r| {
        let name = r.text()?;
        let columns = (0..r.u16()?).map(|_| r.column()).collect::<Option<Vec<Column>>>()?;
        let primary_key = r.positions()?;
        let auto_increment = Some(usize::from(r.u16()?)).filter(|&column| column != usize::from(u16::MAX));
        Some(TableDefinition { name, columns, primary_key, auto_increment, indexes: Vec::new() })
    })
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
    /// Names are at most 192 bytes, so a byte holds the length.
    fn text(&mut self, text: &str) {
        debug_assert!(text.len() <= usize::from(u8::MAX));
        self.u8(text.len() as u8);
        self.0.extend(text.as_bytes());
    }
    fn positions(&mut self, columns: &[usize]) {
        self.u8(columns.len() as u8);
        columns.iter().for_each(|&column| self.u16(column as u16));
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
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
    fn text(&mut self) -> Option<String> {
        let len = usize::from(self.u8()?);
        let (head, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        String::from_utf8(head.to_vec()).ok()
    }
    fn positions(&mut self) -> Option<Vec<usize>> {
        (0..self.u8()?).map(|_| self.u16().map(usize::from)).collect()
    }
    fn column(&mut self) -> Option<Column> {
        let (name, code, parameter, nullable) = (self.text()?, self.u8()?, self.u32()?, self.bool()?);
        Some(Column { name, ty: Type::from_code(code, parameter)?, nullable })
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
mod tests {
    use super::super::testing::any_table;
    use super::*;
    use proptest::prelude::*;

    fn tree() -> TreeRecord {
        TreeRecord { id: IndexId(17), segment: SegmentId(18), root: PageNo(19) }
    }

    fn index(unique: bool) -> IndexRecord {
        let definition = IndexDefinition { name: "by_näme".to_string(), columns: vec![3, 0, 1016], unique };
        IndexRecord { state: ObjectState::Building, tree: tree(), definition }
    }

    #[test]
    fn records_round_trip() {
        let counters = IdCounters { next_table: 7, next_index: u32::MAX };
        assert_eq!(IdCounters::decode(&counters.encode()).unwrap(), counters);
        let table = TableRecord {
            state: ObjectState::Dropping,
            auto_increment_bound: u64::MAX,
            definition_bytes: 900,
            clustered: tree(),
            overflow: SegmentId(20),
        };
        assert_eq!(TableRecord::decode(&table.encode()).unwrap(), table);
        for unique in [false, true] {
            assert_eq!(IndexRecord::decode(&index(unique).encode()).unwrap(), index(unique));
        }
    }

    #[test]
    fn keys_round_trip_and_sort_by_table() {
        let keys = [
            RecordKey::Counters,
            RecordKey::Table(TableId(1)),
            RecordKey::Part(TableId(1), 0),
            RecordKey::Part(TableId(1), 300),
            RecordKey::Index(TableId(1), IndexId(16)),
            RecordKey::Table(TableId(256)),
        ];
        assert!(keys.map(RecordKey::encode).is_sorted());
        for key in keys {
            assert_eq!(RecordKey::decode(&key.encode()).unwrap(), key);
        }
        for wrong in [&[0u8; 9][..8], &[0; 10], &[0, 0, 0, 1, 3, 0, 0, 0, 0], &[0, 0, 0, 0, 1, 0, 0, 0, 0]] {
            assert!(RecordKey::decode(wrong).is_err());
        }
    }

    #[test]
    fn a_newer_version_says_so() {
        let mut bytes = index(true).encode();
        bytes[0] = 2;
        let error = IndexRecord::decode(&bytes).unwrap_err();
        assert!(matches!(&error, Error::Incompatible(text) if text.contains("version 2")), "{error}");
    }

    #[test]
    fn every_cut_and_every_tail_is_refused() {
        let bytes = index(true).encode();
        (0..bytes.len()).for_each(|len| assert!(IndexRecord::decode(&bytes[..len]).is_err()));
        assert!(IndexRecord::decode(&[&bytes[..], &[0]].concat()).is_err());
    }

    proptest! {
        #[test]
        fn definitions_round_trip(mut table in any_table(), auto in any::<bool>()) {
            table.auto_increment = auto.then_some(0);
            prop_assert_eq!(decode_definition(&encode_definition(&table)).unwrap(), table);
        }

        #[test]
        fn garbage_never_panics(mut bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            for versioned in [false, true] {
                if versioned && !bytes.is_empty() {
                    bytes[0] = VERSION;
                }
                let _ = (IdCounters::decode(&bytes), TableRecord::decode(&bytes), IndexRecord::decode(&bytes));
                let _ = (decode_definition(&bytes), RecordKey::decode(&bytes));
            }
        }
    }
}
