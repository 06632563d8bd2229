//! A table as the transaction layer sees it: trees, and the secondary entries of a row.
//!
//! Rules
//! 1. `TableVersion` never changes. Adding or dropping an index creates a new one (`db/locked_tables.rs` says which one
//!    a transaction uses).
//! 2. An index that is being built is the last one. Writers note its changes (`txn/entry_log.rs`), no reader finds it.
//! 3. The clustered key, the entry keys and the covered columns of entries depend only on the row's bytes and the
//!    collations.
//! 4. Before it changes anything, an insertion or update computes the keys that can fail (`check_keys`): those that may
//!    be too long, and those with weights; an update only those that it changes. So a failing collation function is an
//!    error without effects.

use super::catalog_entry::TableEntry;
use super::covered::CoveredLayout;
use super::definition::{IndexDefinition, PRIMARY, TableDefinition};
use super::key::KeyLayout;
use super::record::IndexRecord;
use super::row::RowRef;
use super::row_layouts::RowLayouts;
use super::types::Type;
use super::value::ValueRef;
use crate::btree::BTree;
use crate::config::{Collation, Collations};
use crate::error::{Error, Result};
use crate::row::format::ENTRY_VALUE_BYTES;
use crate::txn::{ColumnRewrite, EntryLog, IndexEntry, ReadView, TableTrees};
use crate::types::{SegmentId, TableId, TxnId};
use std::sync::Arc;

/// A secondary index in use.
#[derive(Clone)]
pub(crate) struct Secondary {
    pub(crate) key: KeyLayout,
    pub(crate) covered: CoveredLayout,
    pub(crate) tree: Arc<BTree>,
    /// Schema version of the database when the index was complete: older snapshots cannot use it.
    pub(crate) since: u64,
    /// The view with which its rows were read; empty if that was before the database was opened.
    pub(crate) birth: ReadView,
    /// The log of changes of its entries while it is being built concurrently with writers. No reader uses the index
    /// then.
    pub(crate) log: Option<Arc<EntryLog>>,
}

impl Secondary {
    /// An index of a table, complete since the schema version `since`.
    pub(crate) fn new(
        table: &TableDefinition,
        index: &IndexDefinition,
        collations: &Collations,
        tree: Arc<BTree>,
        (since, birth): (u64, ReadView),
        log: Option<Arc<EntryLog>>,
    ) -> Secondary {
        let key = KeyLayout::new(table, &index.columns, collations);
        Secondary { key, covered: CoveredLayout::new(table, index), tree, since, birth, log }
    }

    /// Whether the entry of a row whose key has up to `row_key_bytes` can be too long for the tree, or impossible to
    /// make.
    fn can_fail(&self, row_key_bytes: usize) -> bool {
        let (limits, key_bytes) = (self.tree.limits(), self.key.max_bytes().saturating_add(row_key_bytes));
        let value_bytes = ENTRY_VALUE_BYTES + self.covered.max_bytes();
        self.key.has_collation()
            || key_bytes > limits.max_key_bytes
            || key_bytes + value_bytes > limits.max_record_bytes
    }
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
    /// Indexes (position; `None`: the clustered one) whose keys can be too long for their trees, or need a collation
    /// (rule 4).
    checked_keys: Vec<Option<usize>>,
    /// A collation that an index needs and the program does not know, and the index.
    unknown_collation: Option<(Collation, usize)>,
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
    ) -> TableVersion {
        let key = KeyLayout::new(&definition, &definition.primary_key, &Collations::default());
        debug_assert_eq!(indexes.len(), definition.indexes.len(), "the indexes of {}", definition.name);
        let is_complete = |index: &Arc<Secondary>| index.log.is_none();
        let are_complete = indexes.iter().rev().skip(1).all(is_complete);
        debug_assert!(are_complete, "rule 2: an index of {} is being built that is not the last", definition.name);
        debug_assert_eq!(layouts.columns(), definition.columns.len(), "the columns of {}", definition.name);
        debug_assert_ne!(clustered.segment(), overflow, "rows and overflow pages of {}", definition.name);
        let is_own = |i: usize| indexes[..i].iter().all(|other| other.tree.id() != indexes[i].tree.id());
        debug_assert!((0..indexes.len()).all(is_own), "two indexes of {} have one tree", definition.name);
        let key_bytes = key.max_bytes();
        let can_fail = |index: &Option<usize>| match index {
            Some(i) => indexes[*i].can_fail(key_bytes),
            None => key_bytes > clustered.limits().max_key_bytes,
        };
        let checked_keys = std::iter::once(None).chain((0..indexes.len()).map(Some)).filter(can_fail).collect();
        let unknown = |(i, index): (usize, &Arc<Secondary>)| Some((index.key.unknown_collation()?.clone(), i));
        let unknown_collation = indexes.iter().enumerate().find_map(unknown);
        TableVersion {
            id,
            definition,
            layouts,
            key,
            clustered,
            overflow,
            since: 0,
            indexes,
            checked_keys,
            unknown_collation,
        }
    }

    /// The same table with another set of indexes.
    pub(crate) fn with_indexes(&self, definition: Arc<TableDefinition>, indexes: Vec<Arc<Secondary>>) -> TableVersion {
        let (layouts, clustered) = (self.layouts.clone(), self.clustered.clone());
        let version = TableVersion::new(self.id, definition, layouts, clustered, self.overflow, indexes);
        TableVersion { since: self.since, ..version }
    }

    /// The same trees with other columns or names, as the catalog has the table now.
    pub(crate) fn altered(&self, entry: &TableEntry, collations: &Collations) -> TableVersion {
        debug_assert_eq!(self.id, entry.id, "the table {} becomes another one", entry.definition.name);
        let is_tree = |(own, record): (&Arc<Secondary>, &IndexRecord)| own.tree.id() == record.tree.id;
        let are_trees =
            self.indexes.len() == entry.indexes.len() && self.indexes.iter().zip(&entry.indexes).all(is_tree);
        debug_assert!(are_trees, "the indexes of {} are not those of its trees", entry.definition.name);
        let definition = Arc::new(entry.definition.clone());
        let secondary = |(old, index): (&Arc<Secondary>, &IndexDefinition)| {
            let key = KeyLayout::new(&definition, &index.columns, collations);
            let covered = CoveredLayout::new(&definition, index);
            Arc::new(Secondary { key, covered, ..Secondary::clone(old) })
        };
        let indexes = self.indexes.iter().zip(&definition.indexes).map(secondary).collect();
        let (layouts, clustered) = (Arc::new(RowLayouts::of_table(entry)), self.clustered.clone());
        let version = TableVersion::new(self.id, definition.clone(), layouts, clustered, self.overflow, indexes);
        TableVersion { since: self.since, ..version }
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
        let made = self.key.encode_row(self.row(row), out);
        debug_assert!(made.is_ok(), "a primary key has no collation");
    }

    /// Whether the program knows everything that a write of a row needs.
    ///
    /// # Errors
    /// `Collation`.
    #[inline]
    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.unknown_collation.is_some() { Err(self.not_writable()) } else { Ok(()) }
    }

    #[cold]
    fn not_writable(&self) -> Error {
        let Some((collation, i)) = &self.unknown_collation else { return Error::Usage("it is writable".to_string()) };
        let (table, index) = (&self.definition.name, &self.definition.indexes[*i].name);
        match collation.unknown() {
            Error::Collation { collation, reason } => {
                Error::Collation { collation, reason: format!("index {index} of table {table}: {reason}") }
            }
            other => other,
        }
    }

    /// Whether the entries of index `i` can be encoded from rows: the program has all collations that it needs.
    pub(crate) fn is_comparable(&self, i: usize) -> bool {
        self.indexes[i].key.unknown_collation().is_none()
    }

    /// Checks that all keys of a row can be encoded and are short enough for their trees.
    ///
    /// # Errors
    /// `KeyTooLong`, `EntryTooLong`, `Collation`.
    #[inline]
    pub(crate) fn check_keys(&self, key: &[u8], row: &[u8]) -> Result<()> {
        self.checked_keys.iter().try_for_each(|index| self.check_key(*index, key, row))
    }

    /// As [`check_keys`](Self::check_keys), for a row that is changed in place: a key that it has already is in its
    /// tree.
    ///
    /// # Errors
    /// As `check_keys`.
    #[inline]
    pub(crate) fn check_changed_keys(&self, key: &[u8], old: &[u8], new: &[u8]) -> Result<()> {
        let needs_check = |i: usize| !self.is_comparable(i) || self.entry_changes(i, old, new);
        let checked = self.checked_keys.iter().filter(|index| index.is_some_and(needs_check));
        checked.copied().try_for_each(|index| self.check_key(index, key, new))
    }

    #[cold]
    fn check_key(&self, index: Option<usize>, key: &[u8], row: &[u8]) -> Result<()> {
        let too_long = |bytes: usize, limit_bytes: usize| {
            Err(Error::KeyTooLong { key: self.definition.key_in_words(index), bytes, limit_bytes })
        };
        let Some(i) = index else {
            let limit_bytes = self.clustered.limits().max_key_bytes;
            return if key.len() > limit_bytes { too_long(key.len(), limit_bytes) } else { Ok(()) };
        };
        let (mut entry, limits) = (Vec::new(), self.indexes[i].tree.limits());
        self.entry(i, key, row, &mut entry)?;
        if entry.len() > limits.max_key_bytes {
            return too_long(entry.len(), limits.max_key_bytes);
        }
        self.covered(i, row, &mut entry);
        let (bytes, limit_bytes) = (entry.len() + ENTRY_VALUE_BYTES, limits.max_record_bytes);
        if bytes > limit_bytes {
            return Err(Error::EntryTooLong { index: self.index_name(i).to_string(), bytes, limit_bytes });
        }
        Ok(())
    }

    /// Warnings about the definition, as text; see [`Table::warnings`](super::handle::Table::warnings).
    pub(crate) fn warnings(&self) -> Vec<String> {
        let row_key = self.key.unescaped_bytes();
        let complete = self.complete_definition();
        let in_words = |index: Option<usize>| {
            let bytes = index.map_or(row_key, |i| self.indexes[i].key.unescaped_bytes() + row_key);
            let limit = self.tree_of_index(index).limits().max_key_bytes;
            (bytes > limit).then(|| {
                let key = complete.key_in_words(index);
                format!(
                    "{key} can have {bytes} bytes, and at most {limit} are allowed: rows with longer keys are refused"
                )
            })
        };
        let never_removed = complete.expires.filter(|_| complete.expiry_index().is_none()).map(|column| {
            let (table, column) = (&complete.name, &complete.columns[column].name);
            format!("no index of table {table} begins with column {column}: its expired rows are not removed")
        });
        let keys = std::iter::once(None).chain((0..complete.indexes.len()).map(Some)).filter_map(in_words);
        keys.chain(never_removed).collect()
    }

    /// The key of an index, or of the clustered one.
    pub(crate) fn key_of_index(&self, index: Option<usize>) -> &KeyLayout {
        index.map_or(&self.key, |i| &self.indexes[i].key)
    }

    /// The tree of an index, or the clustered one.
    pub(crate) fn tree_of_index(&self, index: Option<usize>) -> &Arc<BTree> {
        index.map_or(&self.clustered, |i| &self.indexes[i].tree)
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

    fn logs_changes(&self) -> bool {
        self.definition.log_changes
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
    fn has_expiry(&self) -> bool {
        self.definition.expires.is_some()
    }

    #[inline]
    fn expiry(&self, row: &[u8]) -> Option<i64> {
        match self.row(row).get(self.definition.expires?) {
            ValueRef::DateTime(moment) => Some(moment.unix_us()),
            _ => None,
        }
    }

    #[inline]
    fn entry_log(&self, i: usize) -> Option<&EntryLog> {
        self.indexes[i].log.as_deref()
    }

    fn index_name(&self, i: usize) -> &str {
        &self.definition.indexes[i].name
    }

    fn check_entries(&self) -> Result<()> {
        self.check_writable()
    }

    #[inline]
    fn entry(&self, i: usize, key: &[u8], row: &[u8], out: &mut Vec<u8>) -> Result<IndexEntry> {
        let start = out.len();
        let has_null = self.indexes[i].key.encode_row(self.row(row), out)?;
        let prefix_bytes = out.len() - start;
        out.extend_from_slice(key);
        Ok(IndexEntry { prefix_bytes, unique: self.definition.indexes[i].unique && !has_null })
    }

    #[inline]
    fn covered(&self, i: usize, row: &[u8], out: &mut Vec<u8>) {
        self.indexes[i].covered.encode_row(self.row(row), out);
    }

    #[inline]
    fn entry_changes(&self, i: usize, old_row: &[u8], new_row: &[u8]) -> bool {
        let (old, new) = (self.row(old_row), self.row(new_row));
        self.indexes[i].key.differs(old, new) || self.indexes[i].covered.differs(old, new)
    }

    fn may_keep_key(&self, i: usize) -> bool {
        let Secondary { key, covered, .. } = &*self.indexes[i];
        !covered.is_empty() || key.parts().iter().any(|part| !part.is_reversible())
    }

    fn entry_needs(&self, i: usize, row: &[u8], number: u16) -> bool {
        // What is on overflow pages is a whole column.
        self.layouts.of(row).column_of(number).is_some_and(|column| self.definition.indexes[i].has(column))
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

    fn overflow_columns(&self, row: &[u8], moved: &[u16], room: usize) -> Vec<u16> {
        self.choose_overflow_columns(row, moved, room)
    }
}
