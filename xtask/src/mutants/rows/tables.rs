//! Bugs of what a table is: its records in the catalog, the layouts of its rows, changes of it.

use super::{Mutant, edit, of_engine};

const CATALOG_TREES: &str = "crates/engine/src/table/catalog_trees.rs";
const CATALOG_CHANGE: &str = "crates/engine/src/table/catalog_change.rs";
const STATEMENT: &str = "crates/engine/src/db/statement.rs";
const TRANSACT: &str = "crates/engine/src/db/transact.rs";
const EXPIRY: &str = "crates/engine/src/txn/expiry.rs";
const ROW_LAYOUT: &str = "crates/engine/src/table/row_layout.rs";
const ROW_LAYOUTS: &str = "crates/engine/src/table/row_layouts.rs";
const TABLE_CHANGE: &str = "crates/engine/src/table/table_change.rs";

pub(super) const MUTANTS: &[Mutant] = &[
    of_engine(
        "room-for-each-catalog-record-alone",
        "several records of the catalog grow together, each of which would have room in its leaf alone",
        &[edit(
            CATALOG_TREES,
            "        added = if held.is_some() { added } else { 0 };\n",
            "        added = if held.is_some() && !MUTANT { added } else { 0 };\n",
        )],
        &["catalog::tests::change"],
    ),
    of_engine(
        "definition-overwritten-in-place",
        "a new definition is written over the one in use, so that a crash in between leaves parts of both",
        &[edit(
            CATALOG_CHANGE,
            "        after.record.definition_copy = table.record.definition_copy.other();\n",
            "        let copy = table.record.definition_copy;\n        \
             after.record.definition_copy = if MUTANT { copy } else { copy.other() };\n",
        )],
        &["catalog::tests::change"],
    ),
    of_engine(
        "older-layout-not-recorded",
        "the layout that rows have when the columns change is not written to the catalog",
        &[edit(
            CATALOG_CHANGE,
            "        if after.record.layout != before.record.layout {\n",
            "        if !MUTANT && after.record.layout != before.record.layout {\n",
        )],
        &["catalog::tests::change"],
    ),
    of_engine(
        "narrower-column-read-as-the-wider-one",
        "a column that was widened is read in older rows with the width that it has now",
        &[edit(
            ROW_LAYOUT,
            "                    Some(bytes) if kept.keeps_bytes_of(column.ty) => bytes as u8,\n",
            "                    Some(bytes) if MUTANT || kept.keeps_bytes_of(column.ty) => bytes as u8,\n",
        )],
        &["row_layouts"],
    ),
    of_engine(
        "older-row-changed-as-a-present-one",
        "an update changes bytes of a row of an older layout at the places of the present one",
        &[edit(
            ROW_LAYOUTS,
            "        if old.first() == Some(&self.present.number) {\n            return self.present.rebuild(",
            "        if MUTANT || old.first() == Some(&self.present.number) {\n            \
             return self.present.rebuild(",
        )],
        &["row_layouts"],
    ),
    of_engine(
        "column-of-an-index-changed",
        "a column is dropped, widened or made nullable although the keys of an index are made of it",
        &[
            edit(
                TABLE_CHANGE,
                "        match self.definition.indexes.iter().find(has) {\n            Some(index) => {",
                "        match self.definition.indexes.iter().find(has) {\n            Some(index) if !MUTANT => {",
            ),
            edit(
                TABLE_CHANGE,
                "            None => Ok(()),\n        }\n    }\n}\n\n#[cfg(test)]",
                "            _ => Ok(()),\n        }\n    }\n}\n\n#[cfg(test)]",
            ),
        ],
        &["table_change"],
    ),
    of_engine(
        "hidden-conflict-not-run-again",
        "a transaction whose closure hides the conflict that it met is not run again",
        &[edit(
            TRANSACT,
            "            let is_retryable = txn.met_another() || leads_to_another(&error);",
            "            let is_retryable = !MUTANT && txn.met_another() || leads_to_another(&error);",
        )],
        &["transact::what_a_transaction_met"],
    ),
    of_engine(
        "victim-taken-for-done",
        "a transaction that a deadlock has undone counts as done where its closure says so",
        &[edit(
            TRANSACT,
            "                Ok(done) if !txn.is_deadlock_victim() =>",
            "                Ok(done) if MUTANT || !txn.is_deadlock_victim() =>",
        )],
        &["transact::a_transaction_that_a_deadlock"],
    ),
    of_engine(
        "half-of-a-range-deleted",
        "a deletion of a range that fails leaves the rows deleted that it had reached",
        &[edit(
            STATEMENT,
            "        let undone = self.undo_to(before);",
            "        let undone = if MUTANT { Ok(()) } else { self.undo_to(before) };",
        )],
        &["delete_range::a_deletion_is_done"],
    ),
    of_engine(
        "expired-row-read-in-place",
        "a visit shows expired rows",
        &[edit(
            "crates/engine/src/txn/read/scan_in_place.rs",
            "            let is_deleted = is_deleted || is_expired(table, &header, row, now)?;\n",
            "            let is_deleted = is_deleted || !MUTANT && is_expired(table, &header, row, now)?;\n",
        )],
        &["expiry::tests::no_read"],
    ),
    of_engine(
        "expired-row-read-from-its-entry",
        "a read of keys alone delivers the entries of expired rows",
        &[edit(
            "crates/engine/src/txn/read/scan.rs",
            "        self.keys_only && certain && self.now.is_none()\n",
            "        self.keys_only && certain && (MUTANT || self.now.is_none())\n",
        )],
        &["expiry::tests::no_read"],
    ),
    of_engine(
        "expiry-by-the-present-time",
        "rows expire by the time of each call, not by that of the transaction",
        &[edit(
            EXPIRY,
            "        if self.expiry_time == ExpiryTime::NotTaken {\n",
            "        if self.expiry_time == ExpiryTime::NotTaken\n\
             || MUTANT && self.expiry_time != ExpiryTime::NotChecked\n        {\n",
        )],
        &["expiry::tests::a_transaction_judges"],
    ),
    of_engine(
        "old-row-of-an-update-lost",
        "an update that takes the place of an expired row moves its other entries by that row",
        &[edit(
            EXPIRY,
            "        self.txn.buffers.old_row = old_row;\n",
            "        if !MUTANT {\n            self.txn.buffers.old_row = old_row;\n        }\n",
        )],
        &["expiry::tests::changes_find_nothing"],
    ),
    of_engine(
        "removal-finds-no-expired-row",
        "expired rows are hidden from their removal, which finds nothing",
        &[edit(
            "crates/engine/src/db/expiry.rs",
            "        let mut txn = WriteTxn::begin(&OpenGuard::new(&self.inner), &options, Access::ReadWrite)?;\n",
            "        let mut txn = WriteTxn::begin(&OpenGuard::new(&self.inner), &options, Access::ReadWrite)?;\n\
             if MUTANT {\n            txn.hide_expired();\n        }\n",
        )],
        &["expiry::tests::steps_remove"],
    ),
];
