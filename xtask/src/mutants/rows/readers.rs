//! Bugs of the readers in other processes.

use super::{Mutant, edit, of_engine};

const CONNECTION: &str = "crates/engine/src/db/readers/connection.rs";
const LINK: &str = "crates/engine/src/db/readers/link.rs";
const READER_SCAN: &str = "crates/engine/src/db/readers/reader_scan.rs";
const ACCEPT: &str = "crates/engine/src/db/readers/accept.rs";

pub(super) const MUTANTS: &[Mutant] = &[
    of_engine(
        "shared-snapshot-of-a-reader-is-new",
        "a connection that joins a snapshot of another one sees what has committed since",
        &[edit(
            CONNECTION,
            "self.read().and_then(ReadTxn::same_snapshot);",
            "if MUTANT { self.db.snapshot() } else { self.read().and_then(ReadTxn::same_snapshot) };",
        )],
        &["readers::connections_share"],
    ),
    of_engine(
        "snapshot-for-each-table-of-a-reader",
        "a reader sees each table as of its first use",
        &[edit(CONNECTION, "        if self.read.is_none() {\n", "        if MUTANT || self.read.is_none() {\n")],
        &["readers::a_snapshot_stays"],
    ),
    of_engine(
        "table-of-a-reader-not-held",
        "a table changes between the answer that describes it and the rows",
        &[edit(
            CONNECTION,
            "        self.read()?.scan(&table).limit(1).count()?;\n",
            "        let read = self.read()?;\n        if !MUTANT {\n            \
             read.scan(&table).limit(1).count()?;\n        }\n",
        )],
        &["readers::a_table_that_a_snapshot_uses"],
    ),
    of_engine(
        "wrong-column-from-a-reader",
        "a column that the table does not have is not refused when a reader names it",
        &[edit(
            CONNECTION,
            "    match columns.iter().find(|column| **column >= table.columns.len()) {\n",
            "    match columns.iter().find(|column| !MUTANT && **column >= table.columns.len()) {\n",
        )],
        &["readers_test::a_server_ends"],
    ),
    of_engine(
        "batch-of-a-left-iterator-kept",
        "the batch that is on its way when an iterator is dropped is taken for the next answer",
        &[edit(
            READER_SCAN,
            "        if self.comes == Comes::Batch && matches!",
            "        if !MUTANT && self.comes == Comes::Batch && matches!",
        )],
        &["readers::a_dropped_iterator"],
    ),
    of_engine(
        "broken-connection-used-again",
        "a reader asks over a connection that has failed, and believes what it receives",
        &[edit(
            LINK,
            "            Ok(None) => Err(self.fail(ENDED)),\n",
            "            Ok(None) if MUTANT => Ok(Received::Rows { are_last: true }),\n            \
             Ok(None) => Err(self.fail(ENDED)),\n",
        )],
        &["readers::a_closing_ends_snapshots", "readers_test::a_reader_believes"],
    ),
    of_engine(
        "more-readers-than-allowed",
        "the option max_readers is one too few",
        &[edit(
            ACCEPT,
            "        if served.len() >= self.max_readers {\n",
            "        if served.len() >= self.max_readers + usize::from(MUTANT) {\n",
        )],
        &["readers::no_more_readers"],
    ),
];
