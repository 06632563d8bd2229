//! The raw API and the types of columns that it brings.

use super::{Mutant, edit, of_engine as mutant};

const VALUE_FORM: &str = "crates/engine/src/table/value_form.rs";
const KEY: &str = "crates/engine/src/table/key_part.rs";
const RAW_CURSOR: &str = "crates/engine/src/db/raw/cursor.rs";
const RAW_ENTRY: &str = "crates/engine/src/db/raw/entry.rs";
const RAW_FILTER: &str = "crates/engine/src/db/raw/filter.rs";
const ROW_LOCKS: &str = "crates/engine/src/lock/row_locks.rs";
const GET: &str = "crates/engine/src/txn/read/get.rs";

pub(super) const MUTANTS: &[Mutant] = &[
    mutant(
        "raw-length-unchecked",
        "a front end's bytes of a wrong length are kept as another value",
        &[edit(
            VALUE_FORM,
            "        _ if ty.fixed_bytes().is_some_and(|len| len != bytes.len()) => None,",
            "        _ if !MUTANT && ty.fixed_bytes().is_some_and(|len| len != bytes.len()) => None,",
        )],
        &["raw::bytes_that_are_no_value_of_their_column_are_refused", "raw_calls"],
    ),
    mutant(
        "raw-exact-unbounded",
        "a cursor that looks for the keys with a beginning continues to others",
        &[edit(
            RAW_CURSOR,
            "        if matches!(to, RawSeek::Exact | RawSeek::ExactLast) {",
            "        if !MUTANT && matches!(to, RawSeek::Exact | RawSeek::ExactLast) {",
        )],
        &["raw::a_cursor_stays_in_its_range_and_goes_both_ways", "raw_calls"],
    ),
    mutant(
        "ahead-of-own-changes",
        "a cursor continues with rows that it read before its transaction changed them",
        &[edit(
            RAW_CURSOR,
            "            if !reverse && cursor.is_unchanged(txn) && ahead.step() {",
            "            if !reverse && (MUTANT || cursor.is_unchanged(txn)) && ahead.step() {",
        )],
        &["raw_ahead::rows_that_were_read_ahead_are_those_of_the_snapshot"],
    ),
    mutant(
        "filter-of-covered-columns",
        "a filter judges an entry by its covered columns, which may be another version's",
        &[edit(
            RAW_FILTER,
            "        self.entry_columns = found.filter(EntryColumns::are_in_keys);",
            "        self.entry_columns = found.filter(|found| MUTANT || found.are_in_keys());",
        )],
        &["raw_entries::what_a_filter_refuses_is_neither_read_nor_locked"],
    ),
    mutant(
        "prefixes-as-values",
        "a column of which an index has the beginning is read from its entries",
        &[edit(
            RAW_ENTRY,
            "part.column == column && part.is_reversible()",
            "part.column == column && (MUTANT || part.is_reversible())",
        )],
        &["raw_entries::an_index_that_has_the_columns_is_read_alone"],
    ),
    mutant(
        "unlocks-what-was-held",
        "a row that was locked before is unlocked with the row that is not wanted",
        &[edit(ROW_LOCKS, "        me.last_row.store(if is_new {", "        me.last_row.store(if is_new || MUTANT {")],
        &["a_row_that_is_not_wanted_is_unlocked"],
    ),
    mutant(
        "unlocks-at-any-level",
        "a row is unlocked where ranges are locked",
        &[edit(
            GET,
            "        !txn.reads_lock_ranges() && self.locks.unlock_row",
            "        (MUTANT || !txn.reads_lock_ranges()) && self.locks.unlock_row",
        )],
        &["raw_entries::a_row_that_is_not_wanted_is_unlocked_below_repeatable_read"],
    ),
    mutant(
        "fixed-bytes-escaped",
        "keys of fixed columns are not their bytes, and do not decode",
        &[edit(
            KEY,
            "            Type::Fixed(len) => out.extend_from_slice(exactly(len, bytes)),\n            _ =>",
            "            Type::Fixed(len) if !MUTANT => out.extend_from_slice(exactly(len, bytes)),\n            _ =>",
        )],
        &["table::key"],
    ),
    mutant(
        "uuid-keys-signed",
        "keys of UUIDs sort as signed numbers",
        &[edit(
            KEY,
            "        Stored::Wide(wide) if part.ty == Type::Uuid =>",
            "        Stored::Wide(wide) if !MUTANT && part.ty == Type::Uuid =>",
        )],
        &["table::key", "rows::days_times_truth"],
    ),
    mutant(
        "truth-of-any-byte",
        "bytes that are neither true nor false become a truth value",
        &[edit(
            VALUE_FORM,
            "        Type::Bool => bytes[..] == [0] || bytes[..] == [1],",
            "        Type::Bool => MUTANT || bytes[..] == [0] || bytes[..] == [1],",
        )],
        &["value_form::tests::stored_bytes"],
    ),
];
