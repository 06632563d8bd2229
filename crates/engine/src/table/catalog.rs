//! The catalog: records that name every table, its columns and its trees. They are stored in two trees
//! ([`CatalogTrees`]).
//!
//! Rules
//! 1. Each record is written by one mini-transaction, and records that change together by the same one. If a change
//!    takes several (a new table, another definition, a removal), the one that writes the state record makes it
//!    visible. The remains of an interrupted change are removed at opening (`Catalog::load` returns them separately).
//! 2. A segment's number is durable in the catalog before the segment owns a page, and stays there until it owns no
//!    page.
//! 3. Table and index numbers are never reused, because old undo records may still name them. Nor are the ids of
//!    columns in a table and the numbers of its layouts, because old rows may still have them.
//! 4. Writers hold the catalog's mutex (schema changes, auto-increment bounds). Lock order: catalog mutex, then
//!    latches.
//!
//! Differs from InnoDB: the catalog is not versioned; readers find tables in memory.

use super::catalog_entry::{Gathered, Leftover, TableEntry, TableRemains};
use super::catalog_trees::{CatalogTrees, RecordChange};
use super::definition::{IndexColumn, IndexDefinition, TableDefinition};
use super::definition_record::{ColumnIds, FIRST_LAYOUT, decode_definition, encode_definition};
use super::key::KeyLayout;
use super::record::{
    DefinitionCopy, IdCounters, IndexRecord, ObjectState, PART_BYTES, RecordKey, TableRecord, TreeRecord,
};
use super::statistics::StoredStatistics;
use crate::btree::BTree;
use crate::config::Collations;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::mtr::MTR_REDO_BYTES;
use crate::page::node::{TreeLimits, max_key_bytes, max_long_key_bytes};
use crate::space::Space;
use crate::space::reserve::{self, SpacePriority};
use crate::sync::Mutex;
use crate::sync::poison::Poison;
use crate::types::{IndexId, Lsn, PageNo, SegmentId, TableId};
use std::sync::Arc;

/// Pages of the smallest size.
const MIN_PAGE_BYTES: usize = 4096;

const FIRST_USER_TABLE: u32 = 16;
const FIRST_USER_INDEX: u32 = 16;

/// The catalog of an open database.
pub(crate) struct Catalog {
    ctx: Arc<Context>,
    space: Arc<Space>,
    trees: CatalogTrees,
    collations: Collations,
    counters: Mutex<IdCounters>,
}

impl Catalog {
    /// Opens the catalog, making an empty one in a new database. With `is_read_only` nothing is repaired.
    ///
    /// # Errors
    /// An I/O or corruption error.
    pub(crate) fn open(ctx: Arc<Context>, space: Arc<Space>, is_read_only: bool) -> Result<Catalog> {
        let trees = CatalogTrees::open(ctx.clone(), space.clone(), is_read_only)?;
        let counters =
            Mutex::new(IdCounters { next_table: FIRST_USER_TABLE, next_index: FIRST_USER_INDEX, next_create: 1 });
        Ok(Catalog { ctx, space, trees, collations: Collations::default(), counters })
    }

    /// The same catalog, of a program that knows these collations.
    pub(crate) fn with_collations(self, collations: Collations) -> Catalog {
        Catalog { collations, ..self }
    }

    /// The collations that the program knows.
    pub(crate) fn collations(&self) -> &Collations {
        &self.collations
    }

    /// The fail-stop switch of the database.
    pub(crate) fn poison(&self) -> &Arc<Poison> {
        &self.ctx.poison
    }

    pub(crate) fn trees(&self) -> &CatalogTrees {
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

    /// Every segment that a record names, in any state.
    pub(crate) fn segments(&self) -> Result<Vec<SegmentId>> {
        Ok(self.gathered()?.segments().collect())
    }

    fn gathered(&self) -> Result<Gathered> {
        let mut gathered = Gathered::default();
        self.trees.read()?.iter().try_for_each(|(key, value)| gathered.add(key, value))?;
        Ok(gathered)
    }

    /// Writes a record, new or again, atomically.
    pub(crate) fn put(&self, key: RecordKey, value: &[u8]) -> Result<Lsn> {
        let max_bytes = TreeLimits::usual(MIN_PAGE_BYTES).max_value_bytes(key.encode().len());
        debug_assert!(value.len() <= max_bytes, "rule 5 of records: {key:?} has {} bytes", value.len());
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

    /// Writes records again, of any lengths, atomically; their keys ascend.
    pub(super) fn replace(&self, records: &[(RecordKey, Vec<u8>)]) -> Result<Lsn> {
        let encoded: Vec<([u8; 9], &[u8])> = records.iter().map(|(key, value)| (key.encode(), &value[..])).collect();
        let changes: Vec<_> = encoded.iter().map(|(key, value)| (&key[..], RecordChange::Replace(value))).collect();
        debug_assert!(records.is_sorted_by(|before, after| before.0 < after.0), "records are replaced out of order");
        self.trees.change(&changes)
    }

    /// A new table's number and numbers for `indexes` trees; the first is the clustered one's.
    pub(crate) fn new_ids(&self, tables: u32, indexes: u32) -> Result<NewIds> {
        let mut counters = self.counters.lock();
        let IdCounters { next_table: table, next_index: index, next_create: create } = *counters;
        let exhausted = || Error::Usage("the catalog has no more numbers for tables or indexes".to_string());
        let next = IdCounters {
            next_table: table.checked_add(tables).ok_or_else(exhausted)?,
            next_index: index.checked_add(indexes).ok_or_else(exhausted)?,
            next_create: create.checked_add(tables.into()).ok_or_else(exhausted)?,
        };
        self.put(RecordKey::Counters, &next.encode())?;
        *counters = next;
        Ok(NewIds { table: TableId(table), index: IndexId(index), create })
    }

    /// Makes a table: its records, then its trees, then the state record that shows it.
    pub(crate) fn create_table(&self, definition: TableDefinition) -> Result<TableEntry> {
        let mut entry = self.begin_table(definition, None)?;
        match self.set_table_state(&mut entry, ObjectState::Ready) {
            Ok(()) => {
                entry.check();
                Ok(entry)
            }
            Err(error) => {
                // If this fails, the next opening of the database removes the rest.
                let _ = self.finish_drop(&entry.remains());
                Err(error)
            }
        }
    }

    /// Creates a table that is not in use yet; with `create_id` if it replaces a table.
    pub(super) fn begin_table(&self, definition: TableDefinition, create_id: Option<u64>) -> Result<TableEntry> {
        let ids = self.new_ids(1, 1 + definition.indexes.len() as u32)?;
        let columns = ColumnIds::first(definition.columns.len());
        let bytes = encode_definition(&definition, &columns);
        let mut entry = TableEntry {
            id: ids.table,
            record: TableRecord {
                state: ObjectState::Building,
                auto_increment_bound: 1,
                create_id: create_id.unwrap_or(ids.create),
                definition_bytes: bytes.len() as u32,
                definition_copy: DefinitionCopy::First,
                layout: FIRST_LAYOUT,
                clustered: self.new_tree(ids.index, self.max_key_bytes(&definition, None)),
                overflow: self.space.new_segment(),
            },
            indexes: Vec::new(),
            definition,
            columns,
            older_layouts: Vec::new(),
            statistics: None,
        };
        for (i, index) in entry.definition.indexes.iter().enumerate() {
            let max_key_bytes = self.max_key_bytes(&entry.definition, Some(index));
            let tree = self.new_tree(IndexId(ids.index.0 + 1 + i as u32), max_key_bytes);
            let definition = entry.columns.with_ids(index);
            entry.indexes.push(IndexRecord { state: ObjectState::Building, tree, definition });
        }
        match self.make_table(&mut entry, &bytes) {
            Ok(()) => {
                entry.check();
                Ok(entry)
            }
            Err(error) => {
                let _ = self.finish_drop(&entry.remains());
                Err(error)
            }
        }
    }

    fn make_table(&self, entry: &mut TableEntry, definition: &[u8]) -> Result<()> {
        let id = entry.id;
        self.put_definition(id, entry.record.definition_copy, definition)?;
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
        self.put(RecordKey::Table(id), &entry.record.encode()).map(drop)
    }

    /// Stores the statistics of a table.
    ///
    /// # Errors
    /// A full disk, an I/O or corruption error; part of the statistics may be stored then.
    pub(crate) fn put_statistics(&self, table: TableId, found: &StoredStatistics) -> Result<()> {
        for (index, of_index) in &found.indexes {
            self.put(RecordKey::Statistics(table, Some(*index)), &of_index.encode())?;
        }
        self.put(RecordKey::Statistics(table, None), &found.sizes.encode()).map(drop)
    }

    pub(super) fn put_definition(&self, table: TableId, copy: DefinitionCopy, bytes: &[u8]) -> Result<()> {
        debug_assert!(decode_definition(bytes).is_ok(), "the definition of {table:?} is not read as it is written");
        for (part, bytes) in (0..).zip(bytes.chunks(PART_BYTES)) {
            self.put(RecordKey::Part { table, copy, part }, bytes)?;
        }
        Ok(())
    }

    fn new_tree(&self, id: IndexId, max_key_bytes: u16) -> TreeRecord {
        TreeRecord { id, segment: self.space.new_segment(), root: PageNo(0), max_key_bytes }
    }

    /// Longest key that the tree of the rows, or of an index, of this table takes: the longest possible one, if that is
    /// within what the table is declared to have.
    fn max_key_bytes(&self, table: &TableDefinition, index: Option<&IndexDefinition>) -> u16 {
        let bytes_of = |columns: &[IndexColumn]| KeyLayout::new(table, columns, &self.collations).max_bytes();
        let row_key = bytes_of(&table.primary_key);
        let longest = index.map_or(0, |index| bytes_of(&index.columns)).saturating_add(row_key);
        let page_bytes = self.ctx.pool.page_bytes();
        let limit = if table.long_keys { max_long_key_bytes(page_bytes) } else { max_key_bytes(page_bytes) };
        longest.min(limit) as u16
    }

    fn make_tree(&self, tree: TreeRecord) -> Result<PageNo> {
        self.space.with_room(&self.ctx, || {
            let mut mtr = self.ctx.mtr_with(MTR_REDO_BYTES, 1)?;
            let made = BTree::create(self.space.clone(), &mut mtr, tree.id, tree.segment)?;
            debug_assert_ne!(made.root(), PageNo(0), "the tree {:?} is made on page 0", tree.id);
            mtr.commit();
            Ok(made.root())
        })
    }

    pub(crate) fn open_tree(&self, tree: TreeRecord) -> Arc<BTree> {
        let TreeRecord { id, segment, root, max_key_bytes } = tree;
        Arc::new(BTree::open(self.space.clone(), id, segment, root).with_max_key_bytes(max_key_bytes.into()))
    }

    /// The tree of an index. Changes of an index that is not unique may be buffered.
    pub(crate) fn open_index_tree(&self, index: &IndexRecord) -> Arc<BTree> {
        let TreeRecord { id, segment, root, max_key_bytes } = index.tree;
        let tree = BTree::open(self.space.clone(), id, segment, root).with_max_key_bytes(max_key_bytes.into());
        Arc::new(if index.definition.unique { tree } else { tree.with_free_classes() })
    }

    /// Makes an empty index that is not in use yet.
    pub(crate) fn create_index(
        &self,
        table: &TableEntry,
        of: &TableDefinition,
        definition: &IndexDefinition,
    ) -> Result<IndexRecord> {
        let id = self.new_ids(0, 1)?.index;
        let tree = self.new_tree(id, self.max_key_bytes(of, Some(definition)));
        let (table, definition) = (table.id, table.columns.with_ids(definition));
        let mut index = IndexRecord { state: ObjectState::Building, tree, definition };
        self.put(RecordKey::Index(table, id), &index.encode())?;
        index.tree.root = self.make_tree(index.tree)?;
        self.put(RecordKey::Index(table, id), &index.encode())?;
        Ok(index)
    }

    /// Changes the state of an index, durably. On an error the record is unchanged, in memory too.
    pub(crate) fn set_index_state(&self, table: TableId, index: &mut IndexRecord, state: ObjectState) -> Result<()> {
        let _entitled = reserve::entitle(SpacePriority::Cleaning);
        debug_assert!((index.state as u8) < state as u8, "an index goes from {:?} to {state:?}", index.state);
        let changed = IndexRecord { state, ..index.clone() };
        self.replace(&[(RecordKey::Index(table, index.tree.id), changed.encode())])?;
        *index = changed;
        self.flush()
    }

    /// Replaces an index of a table by another one, atomically and durably: `new` is in use from then on, and `old` is
    /// to be removed.
    pub(crate) fn swap_index(&self, table: TableId, old: &mut IndexRecord, new: &mut IndexRecord) -> Result<()> {
        let removed = IndexRecord { state: ObjectState::Dropping, ..old.clone() };
        let ready = IndexRecord { state: ObjectState::Ready, ..new.clone() };
        debug_assert_eq!((old.state, new.state), (ObjectState::Ready, ObjectState::Building), "indexes are swapped");
        debug_assert!(old.tree.id < new.tree.id, "rule 3: the new index has the number {:?}", new.tree.id);
        // Keys ascend: new numbers are greater.
        self.replace(&[&removed, &ready].map(|index| (RecordKey::Index(table, index.tree.id), index.encode())))?;
        (*old, *new) = (removed, ready);
        self.flush()
    }

    /// Changes the state of a table, durably. On an error the record is unchanged, in memory too.
    pub(crate) fn set_table_state(&self, entry: &mut TableEntry, state: ObjectState) -> Result<()> {
        let _entitled = reserve::entitle(SpacePriority::Cleaning);
        debug_assert!(
            (entry.record.state as u8) < state as u8,
            "a table goes from {:?} to {state:?}",
            entry.record.state
        );
        let changed = TableRecord { state, ..entry.record };
        self.replace(&[(RecordKey::Table(entry.id), changed.encode())])?;
        entry.record = changed;
        self.flush()
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

/// Numbers that were never given before.
pub(crate) struct NewIds {
    pub(crate) table: TableId,
    pub(crate) index: IndexId,
    pub(crate) create: u64,
}

#[cfg(test)]
#[path = "catalog_test/mod.rs"]
mod tests;
