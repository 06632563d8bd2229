//! Rebuilding a secondary index from the rows.
//!
//! Rules
//! 1. The index keeps its name and its columns; it gets a new tree. One mini-transaction writes both catalog records,
//!    so after any crash the table has the old tree or the new one, and the next opening removes the other.
//! 2. Nothing of the old tree is read: its pages may be damaged.
//! 3. Nothing is written to the table from when its rows are read until the new tree is in use.
//! 4. The rows of tables with other damage are not touched: an index is rebuilt only from rows that are all readable.

use super::database::Database;
use super::table_ref::TableRef;
use crate::btree::BTree;
use crate::check::{CheckReport, Finding};
use crate::error::{Error, Result};
use crate::inspect::OnProgress;
use crate::table::TableDefinition;
use crate::table::catalog_entry::Leftover;
use crate::table::handle::TableShared;
use crate::table::lock::Change;
use crate::table::record::{IndexRecord, ObjectState};
use crate::table::schema::PRIMARY;
use crate::table::version::Secondary;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Times that an index is built before it is given up, since transactions write the table each time.
const MAX_BUILDS: usize = 3;

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
    pub fn rebuild_index<'t>(&self, table: impl Into<TableRef<'t>>, name: &str) -> Result<()> {
        let inner = &self.inner;
        let _gate = self.enter_schema_change()?;
        let shared = inner.table_of(table.into())?;
        let change = self.change(&shared)?;
        let before = shared.current.read().clone();
        let Some(at) = before.index_position(name)? else {
            return Err(Error::Schema(format!(
                "the primary key of table {} holds the rows and cannot be rebuilt",
                shared.name
            )));
        };
        let mut definition: TableDefinition = (*before.definition).clone();
        let moved = definition.indexes.remove(at);
        definition.indexes.push(moved);
        let definition = Arc::new(definition);
        let mut others = before.indexes.clone();
        others.remove(at);
        let (mut record, tree) = self.rebuilt(&change, &shared, &others, &definition)?;
        let _schema = inner.schema.lock();
        let mut entry = shared.entry.lock();
        if let Err(error) = inner.catalog.swap_index(before.id, &mut entry.indexes[at], &mut record) {
            drop(entry);
            self.discard_index(before.id, &record);
            return Err(error);
        }
        let old = entry.indexes.remove(at);
        entry.indexes.push(record);
        entry.definition = (*definition).clone();
        drop(entry);
        let birth = inner.txn_system().open_view(0).view.as_ref().clone();
        self.make_current(&shared, &others, definition, tree, birth);
        debug_assert_eq!(old.state, ObjectState::Dropping);
        inner.dropping.add(Leftover::Index(before.id, old));
        Ok(())
    }

    /// The new tree, once no thread uses the table any more: readers may still use the old one. A transaction that had
    /// read may write before that, and then it is built again.
    fn rebuilt(
        &self,
        change: &Change<'_>,
        table: &Arc<TableShared>,
        others: &[Arc<Secondary>],
        definition: &Arc<TableDefinition>,
    ) -> Result<(IndexRecord, Arc<BTree>)> {
        let patience = self.patience();
        for _ in 0..MAX_BUILDS {
            change.no_write(patience)?;
            let (record, tree) = self.build_index(table, others, definition)?;
            let was_written = change.exclusive(patience);
            if let Ok(false) = was_written {
                return Ok((record, tree));
            }
            change.open();
            self.discard_index(table.current.read().id, &record);
            was_written?;
        }
        Err(Error::LockWaitTimeout)
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
