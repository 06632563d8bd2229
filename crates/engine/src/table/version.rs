//! A table as the transaction layer sees it: trees, and the secondary entries of a row.
//!
//! Rules
//! 1. `TableVersion` never changes. An index that comes or goes makes a new one (`db/locked_tables.rs` says which one a
//!    transaction uses).
//! 2. An index that is being built is the last one. Writers note its changes (`txn/entry_log.rs`), no reader finds it.
//! 3. The clustered key and the entry keys are functions of the row's bytes alone.

use super::catalog_entry::TableEntry;
use super::key::KeyLayout;
use super::row::RowRef;
use super::row_layouts::RowLayouts;
use super::schema::{IndexDefinition, PRIMARY, TableDefinition};
use super::types::Type;
use super::value::ValueRef;
use crate::btree::BTree;
use crate::error::{Error, Result};
use crate::txn::{ColumnRewrite, EntryLog, IndexEntry, ReadView, TableTrees};
use crate::types::{SegmentId, TableId, TxnId};
use std::sync::Arc;

/// A secondary index in use.
#[derive(Clone)]
pub(crate) struct Secondary {
    pub(crate) key: KeyLayout,
    pub(crate) tree: Arc<BTree>,
    /// Schema version of the database when the index was complete: older snapshots cannot use it.
    pub(crate) since: u64,
    /// What had been committed when its rows were read; nothing if that was before the database was opened.
    pub(crate) birth: ReadView,
    /// Where changes of its entries go while it is being built beside writers. No reader finds it then.
    pub(crate) log: Option<Arc<EntryLog>>,
}

/// One version of a table's trees and layouts.
#[derive(Clone)]
pub(crate) struct TableVersion {
    pub(crate) id: TableId,
    pub(crate) definition: Arc<TableDefinition>,
    pub(crate) layouts: Arc<RowLayouts>,
    pub(crate) key: KeyLayout,
    pub(crate) clustered: Arc<BTree>,
    pub(crate) overflow: SegmentId,
    /// Schema version of the database when the table was truncated: older snapshots cannot read it.
    pub(crate) since: u64,
    /// As `definition.indexes`.
    pub(crate) indexes: Vec<Arc<Secondary>>,
    /// Longest key a tree takes.
    limit_bytes: usize,
    /// Indexes (position; `None` = the clustered one) whose keys can be longer than that.
    long_keys: Vec<Option<usize>>,
}

impl TableVersion {
    /// Puts the parts together; `indexes` are those of `definition`, in order.
    pub(crate) fn new(
        id: TableId,
        definition: Arc<TableDefinition>,
        layouts: Arc<RowLayouts>,
        clustered: Arc<BTree>,
        overflow: SegmentId,
        indexes: Vec<Arc<Secondary>>,
        limit_bytes: usize,
    ) -> TableVersion {
        let key = KeyLayout::new(&definition, &definition.primary_key);
        let too_long = |index: &Option<usize>| {
            let prefix = index.map_or(0, |i| indexes[i].key.max_bytes());
            prefix + key.max_bytes() > limit_bytes
        };
        let long_keys = std::iter::once(None).chain((0..indexes.len()).map(Some)).filter(too_long).collect();
        TableVersion { id, definition, layouts, key, clustered, overflow, since: 0, indexes, limit_bytes, long_keys }
    }

    /// The same table with another set of indexes.
    pub(crate) fn with_indexes(&self, definition: Arc<TableDefinition>, indexes: Vec<Arc<Secondary>>) -> TableVersion {
        let (layouts, clustered) = (self.layouts.clone(), self.clustered.clone());
        let version =
            TableVersion::new(self.id, definition, layouts, clustered, self.overflow, indexes, self.limit_bytes);
        TableVersion { since: self.since, ..version }
    }

    /// The same trees with other columns or names, as the catalog has the table now.
    pub(crate) fn altered(&self, entry: &TableEntry) -> TableVersion {
        let definition = Arc::new(entry.definition.clone());
        let secondary = |(old, index): (&Arc<Secondary>, &IndexDefinition)| {
            let key = KeyLayout::new(&definition, &index.columns);
            Arc::new(Secondary { key, ..Secondary::clone(old) })
        };
        let indexes = self.indexes.iter().zip(&definition.indexes).map(secondary).collect();
        let version = self.with_indexes(definition.clone(), indexes);
        TableVersion { layouts: Arc::new(RowLayouts::of_table(entry)), ..version }
    }

    /// The definition without an index that is being built.
    pub(crate) fn complete_definition(&self) -> Arc<TableDefinition> {
        match self.indexes.last().is_some_and(|index| index.log.is_some()) {
            true => {
                let mut definition = (*self.definition).clone();
                definition.indexes.pop();
                Arc::new(definition)
            }
            false => self.definition.clone(),
        }
    }

    /// A row of this table.
    #[inline]
    pub(crate) fn row<'a>(&'a self, bytes: &'a [u8]) -> RowRef<'a> {
        self.layouts.row(bytes)
    }

    /// Appends the clustered key of a row.
    #[inline]
    pub(crate) fn key_of(&self, row: &[u8], out: &mut Vec<u8>) {
        self.key.encode_row(self.row(row), out);
    }

    /// Whether all keys of a row are short enough for their trees.
    ///
    /// # Errors
    /// `KeyTooLong`.
    #[inline]
    pub(crate) fn check_keys(&self, key: &[u8], row: &[u8]) -> Result<()> {
        self.long_keys.iter().try_for_each(|index| self.check_key(*index, key, row))
    }

    #[cold]
    fn check_key(&self, index: Option<usize>, key: &[u8], row: &[u8]) -> Result<()> {
        let mut entry = Vec::new();
        let bytes = match index {
            Some(i) => {
                self.entry(i, key, row, &mut entry);
                entry.len()
            }
            None => key.len(),
        };
        if bytes > self.limit_bytes { Err(Error::KeyTooLong { bytes, limit_bytes: self.limit_bytes }) } else { Ok(()) }
    }

    /// Position of an index by name.
    ///
    /// # Errors
    /// `NoSuchIndex`.
    pub(crate) fn index_position(&self, name: &str) -> Result<Option<usize>> {
        if name == PRIMARY {
            return Ok(None);
        }
        let missing = || Error::NoSuchIndex { table: self.definition.name.clone(), index: name.to_string() };
        let at = self.definition.index_position(name).filter(|at| self.indexes[*at].log.is_none());
        at.map(Some).ok_or_else(missing)
    }

    /// The auto-increment column's value in a row, if it is one the counter has to know (not negative).
    #[inline]
    pub(crate) fn counted(&self, row: &[u8], column: usize) -> Option<u64> {
        match self.row(row).get(column) {
            ValueRef::UInt(n) => Some(n),
            ValueRef::Int(n) => u64::try_from(n).ok(),
            _ => None,
        }
    }
}

/// The largest number of an integer type.
pub(crate) fn last_number(ty: Type) -> u64 {
    ty.integer_range().map_or(0, |(_, high)| high as u64)
}

impl TableTrees for TableVersion {
    fn id(&self) -> TableId {
        self.id
    }
    fn name(&self) -> &str {
        &self.definition.name
    }
    fn clustered(&self) -> &BTree {
        &self.clustered
    }
    fn overflow_segment(&self) -> SegmentId {
        self.overflow
    }
    fn index_count(&self) -> usize {
        self.indexes.len()
    }
    fn index(&self, i: usize) -> &BTree {
        &self.indexes[i].tree
    }
    fn is_before_index(&self, i: usize, id: TxnId) -> bool {
        self.indexes[i].birth.sees(id)
    }
    #[inline]
    fn entry_log(&self, i: usize) -> Option<&EntryLog> {
        self.indexes[i].log.as_deref()
    }
    fn index_name(&self, i: usize) -> &str {
        &self.definition.indexes[i].name
    }
    #[inline]
    fn entry(&self, i: usize, key: &[u8], row: &[u8], out: &mut Vec<u8>) -> IndexEntry {
        let start = out.len();
        let has_null = self.indexes[i].key.encode_row(self.row(row), out);
        let prefix_bytes = out.len() - start;
        out.extend_from_slice(key);
        IndexEntry { prefix_bytes, unique: self.definition.indexes[i].unique && !has_null }
    }
    #[inline]
    fn entry_changes(&self, i: usize, old_row: &[u8], new_row: &[u8]) -> bool {
        self.indexes[i].key.differs(self.row(old_row), self.row(new_row))
    }
    fn entry_needs(&self, i: usize, row: &[u8], number: u16) -> bool {
        // What is on overflow pages is a whole column.
        self.layouts
            .of(row)
            .column_of(number)
            .is_some_and(|column| self.definition.indexes[i].columns.contains(&column))
    }
    fn column_of(&self, row: &[u8], number: u16) -> Option<usize> {
        self.layouts.of(row).column_of(number)
    }
    fn column_bytes<'r>(&'r self, row: &'r [u8], number: u16) -> &'r [u8] {
        self.layouts.of(row).variable_column(row, number)
    }
    fn rebuild_columns(&self, row: &[u8], column: &mut ColumnRewrite<'_>, out: &mut Vec<u8>) -> Result<()> {
        self.layouts.of(row).rebuild_columns(row, column, out)
    }
    fn overflow_columns(&self, row: &[u8], moved: &[u16], room: usize) -> Vec<(u16, usize)> {
        self.choose_overflow_columns(row, moved, room)
    }
}
