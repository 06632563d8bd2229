//! Rebuilding a secondary index from the rows.
//!
//! Rules
//! 1. The index keeps its name and its columns; it gets a new tree. One mini-transaction writes both catalog records,
//!    so after any crash the table has the old tree or the new one, and the next opening removes the other.
//! 2. Nothing of the old tree is read: its pages may be damaged.
//! 3. The rows of tables with other damage are not touched: an index is rebuilt only from rows that are all readable.

use super::database::{Database, Open};
use super::index_build;
use super::write_txn::WriteTxn;
use crate::check::{CheckReport, Finding};
use crate::error::{Error, Result};
use crate::inspect::OnProgress;
use crate::sync::atomic::Ordering;
use crate::table::key::KeyLayout;
use crate::table::record::State;
use crate::table::schema::PRIMARY;
use crate::table::version::Secondary;
use crate::table::{Table, TableDefinition};
use crate::txn::{Access, TxnOptions};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What a repair did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepairReport {
    /// What the check found first.
    pub found: CheckReport,
    /// Indexes that were rebuilt: table, index.
    pub rebuilt: Vec<(String, String)>,
    /// Indexes that could not be rebuilt: table, index, and why.
    pub refused: Vec<(String, String, String)>,
    /// What the check found afterwards; the same as `found` if nothing was rebuilt.
    pub left: CheckReport,
}

impl Database {
    /// Checks the database and rebuilds every secondary index about which something was found, from the rows. An index
    /// of a table whose rows are damaged is left as it is, and so is all other damage. Checks again afterwards.
    ///
    /// # Errors
    /// As [`check`](Database::check); [`Error::Usage`] if the database was opened to be read only; an I/O error. What
    /// was rebuilt before stays.
    pub fn repair_indexes(&self, on_progress: &mut OnProgress<'_>) -> Result<RepairReport> {
        self.check_writable()?;
        let found = self.check_with(on_progress)?;
        let mut report = RepairReport { left: found.clone(), ..RepairReport::default() };
        let damaged_rows: BTreeSet<&str> = found.findings.iter().filter_map(rows_of).collect();
        for (table, index) in indexes_of(&found.findings) {
            let outcome = match damaged_rows.contains(&*table) {
                true => Err("the rows of the table are damaged".to_string()),
                false => self.rebuild_index(&table, &index).map_err(|error| error.to_string()),
            };
            self.check_writable()?;
            match outcome {
                Ok(()) => report.rebuilt.push((table, index)),
                Err(reason) => report.refused.push((table, index, reason)),
            }
        }
        if !report.rebuilt.is_empty() {
            report.left = self.check_with(on_progress)?;
        }
        Ok(RepairReport { found, ..report })
    }

    /// Makes an index again from the rows of its table, once no transaction uses the table any more. A crash before it
    /// is complete leaves the index as it was.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`], [`Error::NoSuchIndex`]; [`Error::Schema`] if it is the primary key;
    /// [`Error::DuplicateKey`] if it is unique and two rows are equal; [`Error::LockWaitTimeout`] if transactions use
    /// the table for longer than that; a damaged row; an I/O error. The index is as it was then.
    pub fn rebuild_index(&self, table: &str, name: &str) -> Result<()> {
        let inner = &self.inner;
        let _one_at_a_time = inner.schema.lock();
        self.check_writable()?;
        let shared = inner.registry.get(table)?;
        let before = shared.current.read().clone();
        let Some(at) = before.index_position(name)? else {
            return Err(Error::Schema(format!(
                "the primary key of table {table} holds the rows and cannot be rebuilt"
            )));
        };
        let readers_only = shared.lock.no_write(inner.timeout())?;
        let mut definition: TableDefinition = (*before.definition).clone();
        let moved = definition.indexes.remove(at);
        definition.indexes.push(moved.clone());
        let definition = Arc::new(definition);
        let mut record = inner.catalog.create_index(before.id, moved)?;
        let secondary = Secondary {
            key: KeyLayout::new(&definition, &record.definition.columns),
            tree: inner.catalog.open_index_tree(&record),
            since: inner.schema_version() + 1,
        };
        let mut indexes = before.indexes.clone();
        indexes.remove(at);
        indexes.push(Arc::new(secondary));
        let after = before.with_indexes(definition, indexes);
        let txn = WriteTxn::begin(&Open::new(inner), &TxnOptions::default(), Access::ReadWrite)?;
        let handle = Table { shared: shared.clone() };
        let built = index_build::build(&inner.ctx, txn, &handle, &after, index_build::batch_bytes(&inner.ctx));
        drop(readers_only);
        // Readers may still use the old tree.
        let guarded = built.and_then(|()| shared.lock.exclusive(inner.timeout()));
        let mut entry = shared.entry.lock();
        let swapped = guarded.and_then(|nobody| {
            inner.catalog.swap_index(before.id, &mut entry.indexes[at], &mut record).map(|()| nobody)
        });
        let _nobody = match swapped {
            Ok(nobody) => nobody,
            Err(error) => {
                drop(entry);
                // What cannot be removed now is removed when the database is opened next.
                let discarded = inner.txns.changes.discard(record.tree.id);
                let _ = discarded.and_then(|()| inner.catalog.finish_drop_index(before.id, &record));
                return Err(error);
            }
        };
        let old = entry.indexes.remove(at);
        entry.indexes.push(record);
        entry.definition = (*after.definition).clone();
        drop(entry);
        inner.schema_version.fetch_add(1, Ordering::Release);
        inner.registry.replace(&shared, after);
        debug_assert_eq!(old.state, State::Dropping);
        inner.txns.changes.discard(old.tree.id)?;
        inner.catalog.finish_drop_index(before.id, &old)
    }
}

/// The table whose rows a finding says to be damaged: anything of a table that is not one of its secondary indexes.
fn rows_of(finding: &Finding) -> Option<&str> {
    let is_secondary = finding.index.as_ref().is_some_and(|index| index != PRIMARY);
    finding.table.as_deref().filter(|_| !is_secondary)
}

/// The secondary indexes that findings are about.
fn indexes_of(findings: &[Finding]) -> BTreeSet<(String, String)> {
    let named = findings.iter().filter_map(|finding| Some((finding.table.clone()?, finding.index.clone()?)));
    named.filter(|(_, index)| index != PRIMARY).collect()
}

#[cfg(test)]
#[path = "rebuild_test.rs"]
mod tests;
