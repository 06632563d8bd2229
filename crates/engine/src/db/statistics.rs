//! Numbers for a planner: sizes and distinct values of a table, without reading all of it.
//!
//! Rules
//! 1. Changes of rows update no counter: the number of rows comes from the fan-out of the tree along two descents,
//!    bytes from the extent maps, distinct values from random leaves. So a crash makes no number wrong.
//! 2. In a sampled leaf a value counts where it differs from the previous one: a value with many entries in several
//!    leaves counts at most once for each leaf.

use super::database::Database;
use super::table_ref::TableRef;
use crate::btree::BTree;
use crate::error::Result;
use crate::page::Node;
use crate::table::handle::TableShared;
use crate::table::lock::TableLockMode;
use crate::table::statistics::{StoredIndexStatistics, StoredSizes, StoredStatistics, TableStatistics};
use crate::table::value::Value;
use crate::table::version::TableVersion;
use crate::table::{Table, TableDefinition};
use crate::types::{IndexId, SegmentId};

const SAMPLE_LEAVES: usize = 20;

/// Blocks schema changes of a table until it is dropped.
pub(super) struct InUse<'t>(&'t TableShared);

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        self.0.lock.unlock(TableLockMode::Read);
    }
}

impl Database {
    /// About how many rows a table has, from two descents: no row is read one by one. Rows that were deleted and are
    /// not purged count.
    ///
    /// # Errors
    /// [`Error::TableDropped`](crate::Error::TableDropped), an I/O error.
    pub fn approximate_rows(&self, table: &Table) -> Result<u64> {
        let _in_use = self.in_use(&table.shared)?;
        let version = table.shared.current.read().clone();
        version.clustered.estimate_between(&self.inner.ctx, &[], None)
    }

    /// About how many entries of an index are in a range of key bytes.
    pub(super) fn approximate_entries(
        &self,
        table: &Table,
        index: &str,
        low: &[u8],
        high: Option<&[u8]>,
    ) -> Result<u64> {
        let _in_use = self.in_use(&table.shared)?;
        let version = table.shared.current.read().clone();
        let index = version.index_position(index)?;
        let tree = version.tree_of_index(index);
        if high.is_some_and(|high| high <= low) { Ok(0) } else { tree.estimate_between(&self.inner.ctx, low, high) }
    }

    /// Estimates the sizes of a table and of its indexes, and the numbers of distinct values, from a few pages of each.
    /// The result is stored; [`Table::statistics`] returns it.
    ///
    /// ```
    /// # use highwater::{Database, Options, Schema, Type, values};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Database::open(dir.path(), Options::default())?;
    /// let schema = Schema::new().column("id", Type::U64).column("town", Type::U32).primary_key(&["id"]);
    /// let table = db.create_table("t", schema.index("by_town", &["town"]))?;
    /// db.transact(|txn| (0..90u64).try_for_each(|id| txn.insert(&table, &values![id, id % 3]).map(drop)))?;
    /// let found = db.analyze("t")?;
    /// assert_eq!((found.rows, &found.indexes[0].distinct[..]), (90, &[3][..]));
    /// assert_eq!(table.statistics(), Some(found));
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoSuchTable`](crate::Error::NoSuchTable), a full disk, a damaged page, an I/O error.
    pub fn analyze<'t>(&self, table: impl Into<TableRef<'t>>) -> Result<TableStatistics> {
        self.inner.check_not_closed()?;
        let shared = self.inner.table_of(table.into())?;
        let _in_use = self.in_use(&shared)?;
        let version = shared.current.read().clone();
        let definition = version.complete_definition();
        let rows = version.clustered.estimate_between(&self.inner.ctx, &[], None)?;
        let (named, trees) = (definition.indexes.len(), version.indexes.len());
        debug_assert!(named <= trees, "table {} has {named} indexes and {trees} trees", definition.name);
        let index = |i| self.analyze_index(&version, &definition, i, rows);
        let found = StoredStatistics {
            sizes: StoredSizes {
                rows,
                row_bytes: self.bytes_of(version.clustered.segment()),
                overflow_bytes: self.bytes_of(version.overflow),
            },
            indexes: (0..definition.indexes.len()).map(index).collect::<Result<_>>()?,
        };
        let mut entry = shared.entry.lock();
        if !self.inner.storage.is_read_only() {
            self.inner.catalog.put_statistics(version.id, &found)?;
        }
        let indexes = version.indexes.iter().map(|index| index.tree.id()).zip(&definition.indexes);
        let named = found.named(indexes);
        entry.statistics = Some(found);
        Ok(named)
    }

    pub(super) fn in_use<'t>(&self, table: &'t TableShared) -> Result<InUse<'t>> {
        self.check_open()?;
        table.lock.lock(&table.name, TableLockMode::Read, self.patience())?;
        Ok(InUse(table))
    }

    fn bytes_of(&self, segment: SegmentId) -> u64 {
        u64::from(self.inner.space.pages_in(segment)) * self.inner.ctx.pool.page_bytes() as u64
    }

    fn analyze_index(
        &self,
        version: &TableVersion,
        definition: &TableDefinition,
        i: usize,
        rows: u64,
    ) -> Result<(IndexId, StoredIndexStatistics)> {
        let (index, tree): (_, &BTree) = (&definition.indexes[i], &version.indexes[i].tree);
        let mut changes = vec![0; index.columns.len()];
        let (mut entries, mut values_before): (u64, Option<Vec<Value>>) = (0, None);
        for leaf in 0..SAMPLE_LEAVES {
            // Places are spread evenly over the tree, not random, so that unchanged pages give the same numbers.
            let mut at = leaf;
            let mut pick = |children: usize| {
                let child = at * children / SAMPLE_LEAVES;
                at = (at * children) % SAMPLE_LEAVES;
                child
            };
            let Some(page) = tree.sample_leaf(&self.inner.ctx, &mut pick)? else { continue };
            let node = Node::new(&page);
            for slot in 0..node.count() {
                let (values, _) = version.indexes[i].key.decode(&node.key(slot))?;
                let same = values_before.as_ref().map_or(0, |before| common_columns(before, &values));
                changes.iter_mut().skip(same).for_each(|changes| *changes += 1);
                values_before = Some(values);
                entries += 1;
            }
        }
        let is_finer = changes.is_sorted() && changes.iter().all(|changes| *changes <= entries);
        debug_assert!(is_finer, "rule 2: fewer values of more columns: {changes:?} of {entries} entries");
        let distinct = changes.iter().map(|changes| scaled(*changes, entries, rows)).collect();
        Ok((tree.id(), StoredIndexStatistics { bytes: self.bytes_of(tree.segment()), distinct }))
    }
}

/// The number of leading columns that are equal.
fn common_columns(one: &[Value], other: &[Value]) -> usize {
    one.iter().zip(other).take_while(|(a, b)| a == b).count()
}

/// The number of a sample's rows or values, scaled to all rows.
fn scaled(part: u64, sample: u64, rows: u64) -> u64 {
    if sample == 0 { 0 } else { (u128::from(part) * u128::from(rows) / u128::from(sample)).max(1) as u64 }
}
