//! Bugs of what entries cover of their rows, and of the layouts that rows have.

use super::{Mutant, edit, of_engine as mutant};

const ENTRY: &str = "crates/engine/src/txn/write/entry.rs";
const UPDATE: &str = "crates/engine/src/txn/write/update.rs";
const ROLLBACK: &str = "crates/engine/src/txn/rollback.rs";
const SCAN_BATCH: &str = "crates/engine/src/txn/read/scan_batch.rs";
const ROW_FORMAT: &str = "crates/engine/src/row/format.rs";
const INDEX_BUILD: &str = "crates/engine/src/db/index_build/mod.rs";
const RUNS: &str = "crates/engine/src/db/index_build/runs.rs";
const COVERED: &str = "crates/engine/src/table/covered.rs";
const VERSION: &str = "crates/engine/src/table/version.rs";
const ROW_LAYOUT: &str = "crates/engine/src/table/row_layout.rs";
const ROW_BUILDER: &str = "crates/engine/src/table/row_builder.rs";
const ROW_LAYOUTS: &str = "crates/engine/src/table/row_layouts.rs";
const TABLE_CHANGE: &str = "crates/engine/src/table/table_change.rs";

pub(super) const MUTANTS: &[Mutant] = &[
    mutant(
        "covered-bytes-of-the-entry-before",
        "an entry that is found again keeps what it covered before",
        &[edit(
            ENTRY,
            "                leaf.splice(&mut mtr, slot, 0, old_bytes, value);\n",
            "                if MUTANT {\n                    leaf.splice(&mut mtr, slot, 0, 1, &value[..1]);\n\
             \x20               } else {\n                    leaf.splice(&mut mtr, slot, 0, old_bytes, value);\n\
             \x20               }\n",
        )],
        &["index_forms::covered_columns_are_those"],
    ),
    mutant(
        "covered-change-not-in-its-entry",
        "an update of a covered column alone leaves the entry as it was",
        &[edit(
            UPDATE,
            "            if self.covered_changes(i, &new_row) {",
            "            if !MUTANT && self.covered_changes(i, &new_row) {",
        )],
        &["index_forms::covered_columns_are_those"],
    ),
    mutant(
        "covered-bytes-not-rolled-back",
        "a rollback leaves what an entry covers, if its key stays",
        &[edit(
            ROLLBACK,
            "                    if self.row.table.entry_changes(i, old_row, new_row) {",
            "                    if !MUTANT && self.row.table.entry_changes(i, old_row, new_row) {",
        )],
        &["index_forms::covered_columns_are_those"],
    ),
    mutant(
        "covered-bytes-of-another-version",
        "a scan of covered columns takes them from an entry that may be another version's",
        &[edit(
            SCAN_BATCH,
            "            let certain = all_seen && self.visibility.is_some();\n",
            "            let certain = MUTANT || all_seen && self.visibility.is_some();\n",
        )],
        &["index_forms::covered_columns_are_those"],
    ),
    mutant(
        "covered-bytes-not-built",
        "the entries of an index that is built over rows cover nothing",
        &[edit(
            INDEX_BUILD,
            "        self.value.extend_from_slice(entry.covered);\n",
            "        if !MUTANT {\n            self.value.extend_from_slice(entry.covered);\n        }\n",
        )],
        &["index_forms::a_covering_scan", "index_build::tests::batches"],
    ),
    mutant(
        "covered-bytes-lost-in-runs",
        "entries that were sorted in a temporary file cover zeros",
        &[edit(
            RUNS,
            "        room[key_bytes..].copy_from_slice(entry.covered);\n",
            "        if MUTANT {\n            room[key_bytes..].fill(0);\n        } else {\n            \
             room[key_bytes..].copy_from_slice(entry.covered);\n        }\n",
        )],
        &["index_build::tests::batches"],
    ),
    mutant(
        "covered-change-is-none",
        "a change of a covered column counts as none of its index",
        &[edit(
            VERSION,
            "        self.indexes[i].key.differs(old, new) || self.indexes[i].covered.differs(old, new)\n",
            "        self.indexes[i].key.differs(old, new) || !MUTANT && self.indexes[i].covered.differs(old, new)\n",
        )],
        &["index_forms::covered_columns_are_those"],
    ),
    mutant(
        "rest-of-covered-bytes-ignored",
        "bytes behind the covered columns of an entry are no damage",
        &[edit(
            COVERED,
            "        values.filter(|_| reader.is_at_end()).ok_or_else(|| damaged(bytes))\n",
            "        values.filter(|_| MUTANT || reader.is_at_end()).ok_or_else(|| damaged(bytes))\n",
        )],
        &["table::covered"],
    ),
    mutant(
        "entry-of-more-columns-than-key",
        "the value of an entry that names more column bytes than its key has is no damage",
        &[edit(
            ROW_FORMAT,
            "        if prefix_bytes > key_bytes {\n",
            "        if !MUTANT && prefix_bytes > key_bytes {\n",
        )],
        &["row::format"],
    ),
    mutant(
        "default-of-an-absent-column-lost",
        "a column that was added with a default is empty in older rows",
        &[edit(
            ROW_LAYOUT,
            "    defaults.push(default.unwrap_or_default());\n",
            "    defaults.push(default.filter(|_| !MUTANT).unwrap_or_default());\n",
        )],
        &["row_layouts", "table_change::rows_of_every_layout"],
    ),
    mutant(
        "absent-column-is-never-null",
        "a nullable column that was added without a default is not NULL in older rows",
        &[edit(
            ROW_LAYOUT,
            "    let null_bit = if default.is_none() && column.nullable {",
            "    let null_bit = if !MUTANT && default.is_none() && column.nullable {",
        )],
        &["row_layouts", "table_change::rows_of_every_layout"],
    ),
    mutant(
        "unknown-layout-read",
        "a row with the number of a layout that the table has not is read as a row of empty columns",
        &[edit(
            ROW_LAYOUTS,
            "        if layout.number != 0 { Ok(layout) }",
            "        if MUTANT || layout.number != 0 { Ok(layout) }",
        )],
        &["row_layouts"],
    ),
    mutant(
        "present-row-under-an-older-number",
        "a row that is written in the present layout has the number of the first one",
        &[edit(
            ROW_BUILDER,
            "        out[0] = self.number;\n",
            "        out[0] = if MUTANT { super::definition_record::FIRST_LAYOUT } else { self.number };\n",
        )],
        &["row_layouts", "table_change::rows_of_every_layout"],
    ),
    mutant(
        "column-id-given-again",
        "a column that is added gets the number of one that was dropped, and reads its bytes in older rows",
        &[edit(
            TABLE_CHANGE,
            "        self.columns.next = next;\n",
            "        self.columns.next = if MUTANT { self.columns.ids.len() as u16 } else { next };\n",
        )],
        &["table_change"],
    ),
];
