//! The catalog: records that name every table, its columns and its trees. They stand in two trees ([`CatalogTrees`]).
//!
//! Rules
//! 1. Each record is written by one mini-transaction. What takes several (a new table, a removal) is made visible or
//!    invisible by the one that writes the state record; what a crash leaves half made or half removed is removed at
//!    opening (`Catalog::load` returns it apart).
//! 2. A segment's number stands in the catalog, durable, before the segment owns a page, and stays there until it owns
//!    none.
//! 3. Table and index numbers are never given twice: old undo records may still name them.
//! 4. Writers hold the catalog's mutex (schema changes, auto-increment bounds). Lock order: catalog mutex, then
//!    latches.
//!
//! Differs from InnoDB: the catalog is not versioned; readers find tables in memory.

use super::catalog_trees::CatalogTrees;
use super::record::{
    IdCounters, IndexRecord, ObjectState, PART_BYTES, RecordKey, TableRecord, TreeRecord, decode_definition,
    encode_definition,
};
use super::schema::{IndexDefinition, TableDefinition};
use crate::btree::BTree;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::mtr::MTR_REDO_BYTES;
use crate::space::Space;
use crate::space::reserve::{self, SpacePriority};
use crate::sync::Mutex;
use crate::sync::poison::Poison;
use crate::types::{IndexId, Lsn, PageNo, SegmentId, TableId};
use std::collections::BTreeMap;
use std::sync::Arc;

const FIRST_USER_TABLE: u32 = 16;
const FIRST_USER_INDEX: u32 = 16;

/// The catalog of an open database.
pub struct Catalog {
    ctx: Arc<Context>,
    space: Arc<Space>,
    trees: CatalogTrees,
    counters: Mutex<IdCounters>,
}

/// A table as the catalog describes it.
#[derive(Clone, Debug)]
pub(crate) struct TableEntry {
    pub(crate) id: TableId,
    pub(crate) record: TableRecord,
    /// Includes the definitions of all ready indexes, in the order of `indexes`.
    pub(crate) definition: TableDefinition,
    /// Ready indexes, by number.
    pub(crate) indexes: Vec<IndexRecord>,
}

/// What an interrupted schema change left.
#[derive(Clone, Debug)]
pub(crate) enum Leftover {
    /// A table half made or half removed.
    Table(TableRemains),
    /// An index half built or half removed.
    Index(TableId, IndexRecord),
}

/// Everything of a table that is to be removed.
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
    parts: Vec<(u32, Vec<u8>)>,
    indexes: Vec<IndexRecord>,
}

impl Catalog {
    /// Opens the catalog, making an empty one in a new database; `is_read_only`: the database is only looked at.
    ///
    /// # Errors
    /// An I/O or corruption error.
    pub fn open(ctx: Arc<Context>, space: Arc<Space>, is_read_only: bool) -> Result<Catalog> {
        let trees = CatalogTrees::open(ctx.clone(), space.clone(), is_read_only)?;
        let counters = Mutex::new(IdCounters { next_table: FIRST_USER_TABLE, next_index: FIRST_USER_INDEX });
        Ok(Catalog { ctx, space, trees, counters })
    }

    /// The fail-stop switch of the database.
    pub(crate) fn poison(&self) -> &Arc<Poison> {
        &self.ctx.poison
    }

    pub fn trees(&self) -> &CatalogTrees {
        &self.trees
    }

    /// Reads every record: the tables in use, and what interrupted schema changes left to be removed.
    pub(crate) fn load(&self) -> Result<(Vec<TableEntry>, Vec<Leftover>)> {
        let gathered = self.gathered()?;
        if let Some(counters) = gathered.counters {
            *self.counters.lock() = counters;
        }
        gathered.segments().for_each(|segment| self.space.note_segment(segment));
        gathered.finish()
    }

    /// Every segment that a record names, whatever its state.
    pub(crate) fn segments(&self) -> Result<Vec<SegmentId>> {
        Ok(self.gathered()?.segments().collect())
    }

    fn gathered(&self) -> Result<Gathered> {
        let mut gathered = Gathered::default();
        self.trees.read()?.iter().try_for_each(|(key, value)| gathered.add(key, value))?;
        Ok(gathered)
    }

    /// Writes a record, new or again (of the same length), atomically.
    pub(crate) fn put(&self, key: RecordKey, value: &[u8]) -> Result<Lsn> {
        self.trees.put(&key.encode(), value)
    }

    /// Removes a record, if it is there.
    pub(crate) fn remove(&self, key: RecordKey) -> Result<()> {
        self.trees.remove(&key.encode())
    }

    /// Makes everything written before durable.
    pub(crate) fn flush(&self) -> Result<()> {
        self.ctx.log.flush_to(self.ctx.log.end_lsn())
    }

    /// A new table's number and numbers for `indexes` trees; the first is the clustered one's.
    pub(crate) fn new_ids(&self, tables: u32, indexes: u32) -> Result<(TableId, IndexId)> {
        let mut counters = self.counters.lock();
        let (table, index) = (counters.next_table, counters.next_index);
        let exhausted = || Error::Usage("the catalog has no more numbers for tables or indexes".to_string());
        let next = IdCounters {
            next_table: table.checked_add(tables).ok_or_else(exhausted)?,
            next_index: index.checked_add(indexes).ok_or_else(exhausted)?,
        };
        self.put(RecordKey::Counters, &next.encode())?;
        *counters = next;
        Ok((TableId(table), IndexId(index)))
    }

    /// Makes a table: its records, then its trees, then the state record that shows it.
    pub(crate) fn create_table(&self, definition: TableDefinition) -> Result<TableEntry> {
        let (id, first) = self.new_ids(1, 1 + definition.indexes.len() as u32)?;
        let bytes = encode_definition(&definition);
        let mut entry = TableEntry {
            id,
            record: TableRecord {
                state: ObjectState::Building,
                auto_increment_bound: 1,
                definition_bytes: bytes.len() as u32,
                clustered: self.new_tree(first),
                overflow: self.space.new_segment(),
            },
            indexes: Vec::new(),
            definition,
        };
        for (i, index) in entry.definition.indexes.iter().enumerate() {
            let tree = self.new_tree(IndexId(first.0 + 1 + i as u32));
            entry.indexes.push(IndexRecord { state: ObjectState::Building, tree, definition: index.clone() });
        }
        match self.make_table(&mut entry, &bytes) {
            Ok(()) => Ok(entry),
            Err(error) => {
                // What cannot be removed now is removed when the database is opened next.
                let _ = self.finish_drop(&entry.remains());
                Err(error)
            }
        }
    }

    fn make_table(&self, entry: &mut TableEntry, definition: &[u8]) -> Result<()> {
        let id = entry.id;
        for (i, part) in definition.chunks(PART_BYTES).enumerate() {
            self.put(RecordKey::Part(id, i as u32), part)?;
        }
        for index in &entry.indexes {
            self.put(RecordKey::Index(id, index.tree.id), &index.encode())?;
        }
        self.put(RecordKey::Table(id), &entry.record.encode())?;
        entry.record.clustered.root = self.make_tree(entry.record.clustered)?;
        for index in &mut entry.indexes {
            index.tree.root = self.make_tree(index.tree)?;
            index.state = ObjectState::Ready;
            self.put(RecordKey::Index(id, index.tree.id), &index.encode())?;
        }
        entry.record.state = ObjectState::Ready;
        self.put(RecordKey::Table(id), &entry.record.encode())?;
        self.flush()
    }

    fn new_tree(&self, id: IndexId) -> TreeRecord {
        TreeRecord { id, segment: self.space.new_segment(), root: PageNo(0) }
    }

    fn make_tree(&self, tree: TreeRecord) -> Result<PageNo> {
        self.space.with_room(&self.ctx, || {
            let mut mtr = self.ctx.mtr_with(MTR_REDO_BYTES, 1)?;
            let made = BTree::create(self.space.clone(), &mut mtr, tree.id, tree.segment)?;
            mtr.commit();
            Ok(made.root())
        })
    }

    /// The tree of a record.
    pub(crate) fn open_tree(&self, tree: TreeRecord) -> Arc<BTree> {
        Arc::new(BTree::open(self.space.clone(), tree.id, tree.segment, tree.root))
    }

    /// The tree of an index. Changes of an index that is not unique may be buffered.
    pub(crate) fn open_index_tree(&self, index: &IndexRecord) -> Arc<BTree> {
        let TreeRecord { id, segment, root } = index.tree;
        let tree = BTree::open(self.space.clone(), id, segment, root);
        Arc::new(if index.definition.unique { tree } else { tree.with_free_classes() })
    }

    /// Makes an empty index that is not in use yet.
    pub(crate) fn create_index(&self, table: TableId, definition: IndexDefinition) -> Result<IndexRecord> {
        let (_, id) = self.new_ids(0, 1)?;
        let mut index = IndexRecord { state: ObjectState::Building, tree: self.new_tree(id), definition };
        self.put(RecordKey::Index(table, id), &index.encode())?;
        index.tree.root = self.make_tree(index.tree)?;
        self.put(RecordKey::Index(table, id), &index.encode())?;
        Ok(index)
    }

    /// Changes the state of an index, durably; a record that cannot be written is left as it was, in memory too.
    pub(crate) fn set_index_state(&self, table: TableId, index: &mut IndexRecord, state: ObjectState) -> Result<()> {
        let _entitled = reserve::entitle(SpacePriority::Cleaning);
        let changed = IndexRecord { state, ..index.clone() };
        self.put(RecordKey::Index(table, index.tree.id), &changed.encode())?;
        *index = changed;
        self.flush()
    }

    /// Puts an index in the place of another one of its table, atomically and durably: `old` is to be removed, `new` is
    /// in use from then on.
    pub(crate) fn swap_index(&self, table: TableId, old: &mut IndexRecord, new: &mut IndexRecord) -> Result<()> {
        let removed = IndexRecord { state: ObjectState::Dropping, ..old.clone() };
        let ready = IndexRecord { state: ObjectState::Ready, ..new.clone() };
        // Keys ascend: new numbers are greater.
        let records = [&removed, &ready].map(|index| (RecordKey::Index(table, index.tree.id).encode(), index.encode()));
        self.trees.replace(&records.each_ref().map(|(key, value)| (&key[..], &value[..])))?;
        (*old, *new) = (removed, ready);
        self.flush()
    }

    /// Changes the state of a table, durably; a record that cannot be written is left as it was, in memory too.
    pub(crate) fn set_table_state(&self, entry: &mut TableEntry, state: ObjectState) -> Result<()> {
        let _entitled = reserve::entitle(SpacePriority::Cleaning);
        let changed = TableRecord { state, ..entry.record };
        self.put(RecordKey::Table(entry.id), &changed.encode())?;
        entry.record = changed;
        self.flush()
    }

    /// Frees the pages of an index whose state says that it is not in use, then removes its record.
    pub(crate) fn finish_drop_index(&self, table: TableId, index: &IndexRecord) -> Result<()> {
        let _entitled = reserve::entitle(SpacePriority::Cleaning);
        self.drop_segment(index.tree.segment)?;
        self.remove(RecordKey::Index(table, index.tree.id))
    }

    /// Frees the pages of a table whose state says that it is not in use, then removes its records.
    pub(crate) fn finish_drop(&self, remains: &TableRemains) -> Result<()> {
        let _entitled = reserve::entitle(SpacePriority::Cleaning);
        remains.segments.iter().try_for_each(|&segment| self.drop_segment(segment))?;
        remains.keys.iter().try_for_each(|&key| self.remove(key))
    }

    fn drop_segment(&self, segment: SegmentId) -> Result<()> {
        while !self.space.drop_segment_step(&self.ctx, segment, 16)? {}
        Ok(())
    }
}

/// Records read one after the other, in any order.
#[derive(Default)]
pub(crate) struct Gathered {
    counters: Option<IdCounters>,
    by_table: BTreeMap<TableId, Records>,
}

impl Gathered {
    pub(crate) fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let (id, key) = match RecordKey::decode(key)? {
            RecordKey::Counters => {
                self.counters = Some(IdCounters::decode(value)?);
                return Ok(());
            }
            key @ (RecordKey::Table(id) | RecordKey::Part(id, _) | RecordKey::Index(id, _)) => (id, key),
        };
        let of = self.by_table.entry(id).or_default();
        match key {
            RecordKey::Part(_, part) => of.parts.push((part, value.to_vec())),
            RecordKey::Index(..) => of.indexes.push(IndexRecord::decode(value)?),
            _ => of.table = Some(TableRecord::decode(value)?),
        }
        Ok(())
    }

    /// Every segment that a record names.
    fn segments(&self) -> impl Iterator<Item = SegmentId> + '_ {
        self.by_table.values().flat_map(Records::segments)
    }

    /// The tables in use, and what interrupted schema changes left.
    pub(crate) fn finish(self) -> Result<(Vec<TableEntry>, Vec<Leftover>)> {
        let (tables, leftovers) = self.finish_each();
        Ok((tables.into_iter().collect::<Result<_>>()?, leftovers))
    }

    /// As [`finish`](Self::finish), each table for itself: one that is wrong leaves the others.
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
    fn segments(&self) -> impl Iterator<Item = SegmentId> + '_ {
        let own = self.table.iter().flat_map(|table| [table.clustered.segment, table.overflow]);
        own.chain(self.indexes.iter().map(|index| index.tree.segment))
    }

    fn remains(&self, id: TableId) -> TableRemains {
        let parts = self.parts.iter().map(|(part, _)| RecordKey::Part(id, *part));
        let indexes = self.indexes.iter().map(|index| RecordKey::Index(id, index.tree.id));
        let keys = indexes.chain(parts).chain([RecordKey::Table(id)]).collect();
        TableRemains { segments: self.segments().collect(), keys }
    }

    fn into_entry(self, id: TableId, record: TableRecord, leftovers: &mut Vec<Leftover>) -> Result<TableEntry> {
        let bytes: Vec<u8> = self.parts.into_iter().flat_map(|(_, part)| part).collect();
        if bytes.len() != record.definition_bytes as usize {
            let reason =
                format!("the definition of table {id} has {} bytes of {}", bytes.len(), record.definition_bytes);
            return Err(Error::Corrupt(reason));
        }
        let mut definition = decode_definition(&bytes)?;
        let (indexes, unfinished): (Vec<_>, Vec<_>) =
            self.indexes.into_iter().partition(|index| index.state == ObjectState::Ready);
        leftovers.extend(unfinished.into_iter().map(|index| Leftover::Index(id, index)));
        definition.indexes = indexes.iter().map(|index| index.definition.clone()).collect();
        let wrong = |reason| Error::Corrupt(format!("the definition of table {id} is wrong: {reason}"));
        definition.validate().map_err(wrong)?;
        Ok(TableEntry { id, record, definition, indexes })
    }
}

impl TableEntry {
    /// Everything of the table.
    pub(crate) fn remains(&self) -> TableRemains {
        let parts = (self.record.definition_bytes as usize).div_ceil(PART_BYTES) as u32;
        let indexes = self.indexes.iter().map(|index| RecordKey::Index(self.id, index.tree.id));
        let parts = (0..parts).map(|part| RecordKey::Part(self.id, part));
        let segments = [self.record.clustered.segment, self.record.overflow].into_iter();
        TableRemains {
            segments: segments.chain(self.indexes.iter().map(|index| index.tree.segment)).collect(),
            keys: indexes.chain(parts).chain([RecordKey::Table(self.id)]).collect(),
        }
    }
}

#[cfg(test)]
#[path = "catalog_test.rs"]
mod tests;
