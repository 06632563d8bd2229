//! The tables that the catalog's records describe.
//!
//! Rules
//! 1. A table exists if its state record says that it is in use; then each part of its definition, each of its older
//!    layouts and each column of its indexes must exist, otherwise the table is damaged.
//! 2. All other records are remains of an interrupted change.

use super::definition::TableDefinition;
use super::definition_record::{
    ColumnIds, DefinitionRecord, FIRST_LAYOUT, LayoutColumn, check_resolvable, decode_definition, decode_layout,
    encode_layout,
};
use super::record::{
    DefinitionCopy, IdCounters, IndexRecord, ObjectState, PART_BYTES, RecordKey, TableRecord, TreeRecord,
};
use super::statistics::{StoredIndexStatistics, StoredSizes, StoredStatistics, TableStatistics};
use crate::error::{Error, Result};
use crate::types::{IndexId, PageNo, SegmentId, TableId};
use std::collections::{BTreeMap, BTreeSet};

/// A table as the catalog describes it.
#[derive(Clone, Debug)]
pub(crate) struct TableEntry {
    pub(crate) id: TableId,
    pub(crate) record: TableRecord,
    /// Includes the definitions of all ready indexes, in the order of `indexes`.
    pub(crate) definition: TableDefinition,
    /// Ready indexes, by number.
    pub(crate) indexes: Vec<IndexRecord>,
    pub(crate) columns: ColumnIds,
    /// The layouts that rows may have in addition to the one of the definition, by number from [`FIRST_LAYOUT`].
    pub(crate) older_layouts: Vec<Vec<LayoutColumn>>,
    /// Statistics of the last analysis of the table.
    pub(crate) statistics: Option<StoredStatistics>,
}

/// The remains of an interrupted schema change.
#[derive(Clone, Debug)]
pub(crate) enum Leftover {
    /// A partially created or removed table.
    Table(TableRemains),
    /// An index half built or half removed.
    Index(TableId, IndexRecord),
    /// Records of a definition or layout that is not yet, or no longer, in use.
    Records(Vec<RecordKey>),
}

/// All parts of a table that are to be removed.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableRemains {
    pub(crate) segments: Vec<SegmentId>,
    /// In the order in which they are removed: the state record last.
    pub(crate) keys: Vec<RecordKey>,
}

/// The records of one table, as read.
#[derive(Default)]
struct Records {
    table: Option<TableRecord>,
    /// By copy, then part.
    parts: BTreeMap<(DefinitionCopy, u32), Vec<u8>>,
    indexes: Vec<IndexRecord>,
    /// By number, then part.
    layouts: BTreeMap<(u8, u16), Vec<u8>>,
    /// Of the rows, and of indexes, in use or not.
    statistics: BTreeMap<Option<IndexId>, Vec<u8>>,
}

/// The part of a table that a record describes.
enum Found {
    Table(TableRecord),
    Part((DefinitionCopy, u32)),
    Index(IndexRecord),
    Layout((u8, u16)),
    Statistics(Option<IndexId>),
}

/// Records read one after another, in any order.
#[derive(Default)]
pub(crate) struct Gathered {
    pub(super) counters: Option<IdCounters>,
    by_table: BTreeMap<TableId, Records>,
}

impl Gathered {
    pub(crate) fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let (id, found) = match RecordKey::decode(key)? {
            RecordKey::Counters => {
                self.counters = Some(IdCounters::decode(value)?);
                return Ok(());
            }
            RecordKey::Table(id) => (id, Found::Table(TableRecord::decode(value)?)),
            RecordKey::Part { table, copy, part } => (table, Found::Part((copy, part))),
            RecordKey::Index(id, _) => (id, Found::Index(IndexRecord::decode(value)?)),
            RecordKey::Layout { table, layout, part } => (table, Found::Layout((layout, part))),
            RecordKey::Statistics(table, index) => (table, Found::Statistics(index)),
        };
        let of = self.by_table.entry(id).or_default();
        match found {
            Found::Table(table) => of.table = Some(table),
            Found::Part(part) => drop(of.parts.insert(part, value.to_vec())),
            Found::Index(index) => of.indexes.push(index),
            Found::Layout(part) => drop(of.layouts.insert(part, value.to_vec())),
            Found::Statistics(of_what) => drop(of.statistics.insert(of_what, value.to_vec())),
        }
        Ok(())
    }

    /// Every segment that a record names.
    pub(super) fn segments(&self) -> impl Iterator<Item = SegmentId> + '_ {
        self.by_table.values().flat_map(Records::segments)
    }

    /// The tables in use, and what interrupted schema changes left.
    pub(crate) fn finish(self) -> Result<(Vec<TableEntry>, Vec<Leftover>)> {
        self.check_numbers()?;
        let (tables, leftovers) = self.finish_each();
        let tables: Vec<TableEntry> = tables.into_iter().collect::<Result<_>>()?;
        let mut named = BTreeMap::new();
        match tables.iter().find_map(|entry| Some((named.insert(&entry.definition.name, entry.id)?, entry))) {
            Some((other, TableEntry { id, definition, .. })) => {
                Err(Error::Corrupt(format!("the catalog has two tables named {}, {other} and {id}", definition.name)))
            }
            None => Ok((tables, leftovers)),
        }
    }

    /// The counters must be above every number of a table or a tree; otherwise that number would be reused.
    fn check_numbers(&self) -> Result<()> {
        let (next_table, next_index) = self.counters.map_or((0, 0), |next| (next.next_table, next.next_index));
        let last_table = self.by_table.iter().rfind(|(_, records)| records.table.is_some()).map(|(id, _)| id.0);
        let last_index = self.by_table.values().flat_map(Records::trees).map(|tree| tree.id.0).max();
        let passed = [("table", last_table, next_table), ("index", last_index, next_index)];
        match passed.into_iter().find(|(_, last, next)| *last >= Some(*next)) {
            Some((what, last, next)) => Err(Error::Corrupt(format!(
                "the catalog has {what} {}, and the next one is to be {next}: a part of it is an old version",
                last.unwrap_or_default()
            ))),
            None => Ok(()),
        }
    }

    /// As [`finish`](Self::finish), each table separately: a damaged table does not affect the others.
    pub(crate) fn finish_each(self) -> (Vec<Result<TableEntry>>, Vec<Leftover>) {
        let (mut tables, mut leftovers) = (Vec::new(), Vec::new());
        for (id, records) in self.by_table {
            match records.table {
                Some(table) if table.state == ObjectState::Ready => {
                    tables.push(records.into_entry(id, table, &mut leftovers));
                }
                _ => leftovers.push(Leftover::Table(records.remains(id))),
            }
        }
        (tables, leftovers)
    }
}

impl Records {
    fn trees(&self) -> impl Iterator<Item = TreeRecord> + '_ {
        self.table.iter().map(|table| table.clustered).chain(self.indexes.iter().map(|index| index.tree))
    }

    fn segments(&self) -> impl Iterator<Item = SegmentId> + '_ {
        let own = self.table.iter().flat_map(|table| [table.clustered.segment, table.overflow]);
        own.chain(self.indexes.iter().map(|index| index.tree.segment))
    }

    fn remains(&self, id: TableId) -> TableRemains {
        let indexes = self.indexes.iter().map(|index| RecordKey::Index(id, index.tree.id));
        let statistics = self.statistics.keys().map(|index| RecordKey::Statistics(id, *index));
        let keys = statistics.chain(indexes).chain(part_keys(id, self.parts.keys()));
        let keys = keys.chain(layout_keys(id, self.layouts.keys()));
        TableRemains { segments: self.segments().collect(), keys: keys.chain([RecordKey::Table(id)]).collect() }
    }

    fn into_entry(mut self, id: TableId, record: TableRecord, leftovers: &mut Vec<Leftover>) -> Result<TableEntry> {
        leftovers.extend(self.take_unused(id, &record).map(Leftover::Records));
        let wrong = |reason: String| Error::Corrupt(format!("the definition of table {id} is wrong: {reason}"));
        let bytes: Vec<u8> = self.parts.into_values().flatten().collect();
        if bytes.len() != record.definition_bytes as usize {
            return Err(wrong(format!("it has {} bytes of {}", bytes.len(), record.definition_bytes)));
        }
        let DefinitionRecord { mut definition, columns } = decode_definition(&bytes)?;
        let (indexes, unfinished): (Vec<_>, Vec<_>) =
            self.indexes.into_iter().partition(|index| index.state == ObjectState::Ready);
        leftovers.extend(unfinished.into_iter().map(|index| Leftover::Index(id, index)));
        let positioned = indexes.iter().map(|index| columns.with_positions(&index.definition));
        let lacks = || wrong("an index has a column that the table has not".to_string());
        definition.indexes = positioned.collect::<Option<_>>().ok_or_else(lacks)?;
        definition.validate().map_err(wrong)?;
        let older_layouts = decode_layouts(record.layout, &self.layouts).map_err(|error| wrong(error.to_string()))?;
        let check = |kept: &Vec<LayoutColumn>| check_resolvable(kept, &definition, &columns);
        older_layouts.iter().try_for_each(check).map_err(wrong)?;
        let statistics = decode_statistics(&self.statistics, &indexes)?;
        let entry = TableEntry { id, record, definition, indexes, columns, older_layouts, statistics };
        entry.contradiction().map_or(Ok(entry), |reason| Err(wrong(reason.to_string())))
    }

    /// Removes unused records: the other copy of the definition, layouts that are not older than the one in use,
    /// statistics of dropped indexes.
    fn take_unused(&mut self, id: TableId, record: &TableRecord) -> Option<Vec<RecordKey>> {
        let parts = (record.definition_bytes as usize).div_ceil(PART_BYTES) as u32;
        let is_used = |&(copy, part): &(DefinitionCopy, u32)| copy == record.definition_copy && part < parts;
        let parts = self.parts.keys().filter(|key| !is_used(key));
        let layouts = self.layouts.keys().filter(|(layout, _)| *layout >= record.layout);
        let is_there = |of: IndexId| self.indexes.iter().any(|index| index.tree.id == of);
        let of_none = self.statistics.keys().filter(|of| of.is_some_and(|of| !is_there(of)));
        let statistics = of_none.map(|of| RecordKey::Statistics(id, *of));
        let unused: Vec<RecordKey> = part_keys(id, parts).chain(layout_keys(id, layouts)).chain(statistics).collect();
        self.parts.retain(|key, _| is_used(key));
        self.layouts.retain(|(layout, _), _| *layout < record.layout);
        Some(unused).filter(|unused| !unused.is_empty())
    }
}

fn part_keys<'k>(
    table: TableId,
    keys: impl Iterator<Item = &'k (DefinitionCopy, u32)>,
) -> impl Iterator<Item = RecordKey> {
    keys.map(move |&(copy, part)| RecordKey::Part { table, copy, part })
}

fn layout_keys<'k>(table: TableId, keys: impl Iterator<Item = &'k (u8, u16)>) -> impl Iterator<Item = RecordKey> {
    keys.map(move |&(layout, part)| RecordKey::Layout { table, layout, part })
}

/// The statistics of the rows and of these indexes.
fn decode_statistics(
    found: &BTreeMap<Option<IndexId>, Vec<u8>>,
    indexes: &[IndexRecord],
) -> Result<Option<StoredStatistics>> {
    let Some(sizes) = found.get(&None) else { return Ok(None) };
    let of_index = |index: &IndexRecord| {
        let bytes = found.get(&Some(index.tree.id))?;
        Some(StoredIndexStatistics::decode(bytes).map(|statistics| (index.tree.id, statistics)))
    };
    let indexes = indexes.iter().filter_map(of_index).collect::<Result<_>>()?;
    Ok(Some(StoredStatistics { sizes: StoredSizes::decode(sizes)?, indexes }))
}

/// The layouts before number `current`; each is there.
fn decode_layouts(current: u8, parts: &BTreeMap<(u8, u16), Vec<u8>>) -> Result<Vec<Vec<LayoutColumn>>> {
    let layout = |number: u8| {
        let bytes: Vec<u8> =
            parts.range((number, 0)..=(number, u16::MAX)).flat_map(|(_, part)| part).copied().collect();
        decode_layout(&bytes)
    };
    (FIRST_LAYOUT..current).map(layout).collect()
}

impl TableEntry {
    /// The contradiction in its trees: each must have a root, and a distinct number and segment.
    fn contradiction(&self) -> Option<&'static str> {
        let trees = || std::iter::once(&self.record.clustered).chain(self.indexes.iter().map(|index| &index.tree));
        let numbers: BTreeSet<IndexId> = trees().map(|tree| tree.id).collect();
        let segments = trees().map(|tree| tree.segment).chain([self.record.overflow]);
        let segments: BTreeSet<SegmentId> = segments.collect();
        if trees().any(|tree| tree.root == PageNo(0)) {
            return Some("a tree of it has no root");
        }
        let are_distinct = numbers.len() == trees().count() && segments.len() == numbers.len() + 1;
        (!are_distinct).then_some("two trees of it have one number or one segment")
    }

    /// Checks in addition to rule 1 that the parts of a table belong together.
    pub(crate) fn check(&self) {
        debug_assert_eq!(self.contradiction(), None, "the trees of {}", self.definition.name);
        let TableEntry { record, definition, indexes, columns, older_layouts, .. } = self;
        debug_assert_eq!(columns.ids.len(), definition.columns.len(), "each column of {} has an id", definition.name);
        debug_assert_eq!(indexes.len(), definition.indexes.len(), "the indexes of {}", definition.name);
        let layouts = older_layouts.len() + usize::from(FIRST_LAYOUT);
        debug_assert_eq!(usize::from(record.layout), layouts, "the layouts of {}", definition.name);
        debug_assert!(definition.validate().is_ok(), "the definition of {} is wrong", definition.name);
        let is_named = |index: &IndexRecord| columns.with_positions(&index.definition).is_some();
        debug_assert!(indexes.iter().all(is_named), "an index of {} has a column of none", definition.name);
    }

    /// Keys of the parts of its definition.
    pub(crate) fn definition_keys(&self) -> Vec<RecordKey> {
        let parts = (self.record.definition_bytes as usize).div_ceil(PART_BYTES) as u32;
        let parts: Vec<_> = (0..parts).map(|part| (self.record.definition_copy, part)).collect();
        part_keys(self.id, parts.iter()).collect()
    }

    fn statistics_keys(&self) -> impl Iterator<Item = RecordKey> + '_ {
        let indexes = self.statistics.iter().flat_map(|statistics| statistics.indexes.keys());
        let of_rows = self.statistics.iter().map(|_| None);
        of_rows.chain(indexes.map(|index| Some(*index))).map(|of| RecordKey::Statistics(self.id, of))
    }

    /// The statistics with the names of the indexes.
    pub(crate) fn named_statistics(&self) -> Option<TableStatistics> {
        let indexes = self.indexes.iter().map(|index| index.tree.id).zip(&self.definition.indexes);
        self.statistics.as_ref().map(|statistics| statistics.named(indexes))
    }

    /// Everything of the table.
    pub(crate) fn remains(&self) -> TableRemains {
        let layouts: Vec<_> = (FIRST_LAYOUT..=u8::MAX).zip(&self.older_layouts).flat_map(layout_parts).collect();
        let indexes = self.indexes.iter().map(|index| RecordKey::Index(self.id, index.tree.id));
        let keys = self.statistics_keys().chain(indexes).chain(self.definition_keys());
        let keys = keys.chain(layout_keys(self.id, layouts.iter()));
        let segments = [self.record.clustered.segment, self.record.overflow].into_iter();
        TableRemains {
            segments: segments.chain(self.indexes.iter().map(|index| index.tree.segment)).collect(),
            keys: keys.chain([RecordKey::Table(self.id)]).collect(),
        }
    }
}

/// The numbers of the parts of a layout.
fn layout_parts((number, columns): (u8, &Vec<LayoutColumn>)) -> impl Iterator<Item = (u8, u16)> + use<> {
    let parts = encode_layout(columns).len().div_ceil(PART_BYTES) as u16;
    (0..parts).map(move |part| (number, part))
}
