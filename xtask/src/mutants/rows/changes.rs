//! Bugs of the change log.

use super::{Mutant, edit, of_engine as mutant};

const CHANGED_ROWS: &str = "crates/engine/src/txn/changed_rows.rs";
const CHANGE_LOG: &str = "crates/engine/src/db/changes/change_log.rs";
const SEQUENCES: &str = "crates/engine/src/db/changes/sequences.rs";
const STREAM: &str = "crates/engine/src/db/changes/stream.rs";
const LOGGING: &str = "crates/engine/src/db/changes/logging.rs";
const TRIM: &str = "crates/engine/src/db/changes/trim.rs";
const PREPARED_LIST: &str = "crates/engine/src/db/prepared_list.rs";

pub(super) const MUTANTS: &[Mutant] = &[
    mutant(
        "changes-row-logged-for-each-record",
        "a row that a transaction has changed several times is as many changes",
        &[edit(
            CHANGED_ROWS,
            "        if newest.trx_id != own || newest.roll_ptr != pointer_to(record.place) {",
            "        if !MUTANT && (newest.trx_id != own || newest.roll_ptr != pointer_to(record.place)) {",
        )],
        &["changes::a_transaction_leaves"],
    ),
    mutant(
        "changes-read-beyond-open-numbers",
        "a consumer passes a transaction that commits later",
        &[edit(
            SEQUENCES,
            "        self.open.iter().min().map_or(self.last, |first| first - 1)",
            "        self.open.iter().filter(|_| !MUTANT).min().map_or(self.last, |first| first - 1)",
        )],
        &["changes::sequences", "changes::nothing_is_read_beyond"],
    ),
    mutant(
        "changes-handed-out-before-durable",
        "a consumer has changes that a crash undoes, and their number is reused",
        &[edit(CHANGE_LOG, "        if !is_read_only {", "        if !MUTANT && !is_read_only {")],
        &["changes_cuts::what_was_handed_out_survives"],
    ),
    mutant(
        "changes-number-of-prepared-forgotten",
        "after an opening a consumer passes a prepared transaction",
        &[edit(
            PREPARED_LIST,
            "            let sequence = changes.adopt(txns, &txn)?;",
            "            let sequence = changes.adopt(txns, &txn)?.filter(|_| !MUTANT);",
        )],
        &["changes::nothing_is_read_beyond"],
    ),
    mutant(
        "changes-trimmed-numbers-again",
        "after all was trimmed and an opening, numbers begin again",
        &[edit(
            LOGGING,
            "    Ok(last.max(trimmed(&mut read, table)?))",
            "    Ok(last.max(if MUTANT { 0 } else { trimmed(&mut read, table)? }))",
        )],
        &["changes::numbers_go_on"],
    ),
    mutant(
        "changes-trimmed-silently",
        "a consumer that comes too late misses changes and is not told",
        &[edit(STREAM, "        if self.since < trimmed {", "        if !MUTANT && self.since < trimmed {")],
        &["changes::numbers_go_on"],
    ),
    mutant(
        "changes-trimmed-before-their-age",
        "a bound by age removes changes that are younger",
        &[edit(TRIM, "            if !is_old {", "            if !MUTANT && !is_old {")],
        &["expiry::tests::changes_older"],
    ),
    mutant(
        "served-columns-not-sent-again",
        "a consumer in another process reads rows in the columns that their table had before",
        &[edit(
            "crates/engine/src/db/readers/served_changes.rs",
            "        let known = self.sent.get(table);\n",
            "        let known = self.sent.get(table);\n        if MUTANT && known.is_some() {\n            \
             return None;\n        }\n",
        )],
        &["reader_changes::the_stream_of_changes"],
    ),
    mutant(
        "served-position-ahead",
        "a consumer in another process takes the position of changes that it has not been given",
        &[edit(
            "crates/engine/src/db/readers/reader_changes.rs",
            "        if self.read == self.batch.len() {\n            self.since",
            "        if MUTANT || self.read == self.batch.len() {\n            self.since",
        )],
        &["reader_changes::the_stream_of_changes"],
    ),
    mutant(
        "expiry-thread-sleeps-on",
        "a table whose rows expire is made, and the thread that removes them sleeps",
        &[edit(
            "crates/engine/src/db/gate.rs",
            "        self.0.expiry_wake.wake();\n",
            "        if !MUTANT {\n            self.0.expiry_wake.wake();\n        }\n",
        )],
        &["expiry::tests::a_thread_removes"],
    ),
];
