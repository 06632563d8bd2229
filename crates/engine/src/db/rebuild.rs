//! Rebuilding a secondary index from the rows.
//!
//! Rules
//! 1. The index keeps its name and its columns; it gets a new tree, which is built online like that of a new index
//!    (`index_build/online.rs`). One mini-transaction writes both catalog records, so after any crash the table has the
//!    old tree or the new one, and the next opening removes the other.
//! 2. The build reads nothing of the old tree: its pages may be damaged. Transactions use it until the new one is in
//!    use, and its damage causes the same errors as before. An error of a writer does not affect the new tree: the log
//!    has the changes of the failed statement and those of its rollback.
//! 3. The new tree replaces the old one while no transaction uses the table: from the last logged change until the
//!    table's version has only the new tree. So no thread uses the old one when it is freed.
//! 4. An index is rebuilt only if all rows of the table are readable.

use super::database::Database;
use super::index_build::{BuildProgress, Built};
use super::table_ref::TableRef;
use crate::check::{CheckReport, Finding};
use crate::error::{Error, Result};
use crate::inspect::OnProgress;
use crate::table::TableDefinition;
use crate::table::definition::PRIMARY;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The result of a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepairReport {
    /// Report of the check before the repair.
    pub found: CheckReport,
    /// Indexes that were rebuilt: table, index.
    pub rebuilt: Vec<(String, String)>,
    /// Indexes that could not be rebuilt: table, index, and why.
    pub refused: Vec<(String, String, String)>,
    /// Report of the check after the repair; the same as `found` if nothing was rebuilt.
    pub left: CheckReport,
}

impl Database {
    /// Checks the database and rebuilds every secondary index with a finding from the rows. An index of a table with
    /// damaged rows is not rebuilt, and no other damage is repaired. Checks again afterwards. Transactions that write
    /// wait for the checks, not for the rebuilds.
    ///
    /// # Errors
    /// As [`check`](Database::check); [`Error::Usage`] if the database was opened to be read only; an I/O error.
    /// Indexes that were rebuilt before the error stay.
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

    /// Makes an index again from the rows of its table, while transactions read and write the table, as
    /// [`create_index`](Self::create_index) makes a new one. At its end it waits until no transaction uses the table,
    /// and those that come meanwhile wait for it, less than half a second at a stretch. Until then they use the index
    /// as it was. A crash before it is complete leaves it as it was. A snapshot that is older than the rebuilt index
    /// cannot use it.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`], [`Error::NoSuchIndex`]; [`Error::Schema`] if it is the primary key;
    /// [`Error::DuplicateKey`] if it is unique and two rows are equal when the rebuild begins or at its end;
    /// [`Error::LockWaitTimeout`] if a transaction uses the table for longer than that; a damaged row; an I/O error.
    /// The index is as it was then.
    pub fn rebuild_index<'t>(&self, table: impl Into<TableRef<'t>>, name: &str) -> Result<()> {
        self.rebuild(table.into(), name, &mut |_| Ok(()))
    }

    fn rebuild(
        &self,
        table: TableRef<'_>,
        name: &str,
        on_progress: &mut (dyn FnMut(BuildProgress) -> Result<()> + '_),
    ) -> Result<()> {
        let _gate = self.enter_schema_change()?;
        let shared = self.inner.table_of(table)?;
        let change = self.change(&shared)?;
        let before = shared.current.read().clone();
        let Some(at) = before.index_position(name)? else {
            return Err(Error::Schema(format!(
                "the primary key of table {} holds the rows and cannot be rebuilt",
                shared.name
            )));
        };
        // The new tree is one of an index of the same name, the last one, until it takes the place of the old tree.
        let mut definition: TableDefinition = (*before.definition).clone();
        definition.indexes.push(definition.indexes[at].clone());
        self.build_index(&shared, &change, Arc::new(definition), Built::Again(at), on_progress, &mut None)
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
