//! The raw door and the types of columns that it brings.

use super::{Mutant, edit, of_engine as mutant};

const VALUE_FORM: &str = "crates/engine/src/table/value_form.rs";
const KEY: &str = "crates/engine/src/table/key_part.rs";
const RAW_CURSOR: &str = "crates/engine/src/db/raw/cursor.rs";

pub const MUTANTS: &[Mutant] = &[
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
        "a cursor that looks for the keys with a beginning goes on to others",
        &[edit(
            RAW_CURSOR,
            "        if matches!(to, RawSeek::Exact | RawSeek::ExactLast) {",
            "        if !MUTANT && matches!(to, RawSeek::Exact | RawSeek::ExactLast) {",
        )],
        &["raw::a_cursor_stays_in_its_range_and_goes_both_ways", "raw_calls"],
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
