//! Bugs of two-phase commit.

use super::{Mutant, edit, of_engine as mutant};

const PREPARED: &str = "crates/engine/src/txn/prepared.rs";
const APPEND: &str = "crates/engine/src/undo/append.rs";
const OPEN: &str = "crates/engine/src/undo/open.rs";
const LIST: &str = "crates/engine/src/db/prepared_list.rs";
const OWNERS: &str = "crates/engine/src/db/prepared.rs";

pub(super) const MUTANTS: &[Mutant] = &[
    mutant(
        "prepared-before-its-name",
        "a crash between the state and the record with the name leaves a prepared transaction that has no name",
        &[edit(
            APPEND,
            "        self.keep_redo(&undo.ctx)?;\n        loop {\n",
            "        self.keep_redo(&undo.ctx)?;\n        if MUTANT {\n            \
             self.set_state(&undo.ctx, TxnState::Prepared)?;\n        }\n        loop {\n",
        )],
        &["prepared_copies::at_every_moment"],
    ),
    mutant(
        "end-of-prepared-waits-for-redo",
        "the commit of a prepared transaction waits for room in the redo log",
        &[edit(
            APPEND,
            "        if self.kept_redo.is_none() {\n",
            "        if !MUTANT && self.kept_redo.is_none() {\n",
        )],
        &["two_phases::a_commit_after_prepare"],
    ),
    mutant(
        "prepared-keeps-its-view",
        "a prepared transaction, which may wait for days, holds purge back",
        &[edit(
            PREPARED,
            "            (txn.view, txn.statement) = (None, None);\n",
            "            if !MUTANT {\n                (txn.view, txn.statement) = (None, None);\n            }\n",
        )],
        &["two_phases::a_prepared_transaction_holds"],
    ),
    mutant(
        "prepared-taken-for-ended",
        "an opening takes a prepared transaction for one that has ended, and purges it",
        &[edit(
            OPEN,
            "        && let (id, state @ (TxnState::Active | TxnState::Prepared), _) =\n            \
             with_record(ctx, header, |record| record.header())?\n",
            "        && let (id, state @ (TxnState::Active | TxnState::Prepared), _) =\n            \
             with_record(ctx, header, |record| record.header())?\n        \
             && !(MUTANT && state == TxnState::Prepared)\n",
        )],
        &["prepared_cuts::every_cut"],
    ),
    mutant(
        "ordered-commit-keeps-its-locks",
        "the rows of a transaction that was committed in order stay locked",
        &[edit(
            PREPARED,
            "                let flush_log = txn.flush_log;\n                self.retire(txn);\n",
            "                let flush_log = txn.flush_log;\n                if MUTANT {\n                    \
             std::mem::forget(txn);\n                } else {\n                    self.retire(txn);\n\
             \x20               }\n",
        )],
        &["prepared::a_prepared_transaction_is_neither"],
    ),
    mutant(
        "tables-read-stay-locked",
        "a table that a prepared transaction has only read cannot be dropped",
        &[edit(
            OWNERS,
            "        scratch.tables.release_read();\n",
            "        if !MUTANT {\n            scratch.tables.release_read();\n        }\n",
        )],
        &["prepared::a_table_that_it_only_read"],
    ),
    mutant(
        "prepared-inside-the-gate",
        "a check waits for a prepared transaction to end",
        &[edit(
            OWNERS,
            "            self.inner.gate.leave_writer();\n        }\n        let (txn, mut scratch)",
            "            if !MUTANT {\n                self.inner.gate.leave_writer();\n            }\n\
             \x20       }\n        let (txn, mut scratch)",
        )],
        &["prepared::a_prepared_transaction_is_neither"],
    ),
    mutant(
        "dropped-prepared-has-an-owner",
        "a prepared transaction whose owner has dropped it cannot be ended",
        &[edit(
            OWNERS,
            "        self.inner.prepared.put(&self.xid, parts);\n",
            "        if MUTANT {\n            return std::mem::forget(parts);\n        }\n        \
             self.inner.prepared.put(&self.xid, parts);\n",
        )],
        &["prepared::names_are_unique"],
    ),
    mutant(
        "name-of-a-prepared-given-again",
        "two transactions are prepared under one name",
        &[edit(
            LIST,
            "            Entry::Occupied(_) => Err(",
            "            Entry::Occupied(_) if MUTANT => Ok(()),\n            Entry::Occupied(_) => Err(",
        )],
        &["prepared::names_are_unique"],
    ),
    mutant(
        "tables-of-a-found-prepared-not-locked",
        "after an opening a table can be dropped that a prepared transaction has changed",
        &[edit(
            LIST,
            "                tables.add(&table, TableLockMode::Write, Duration::ZERO.into())?;\n",
            "                if !MUTANT {\n                    \
             tables.add(&table, TableLockMode::Write, Duration::ZERO.into())?;\n                }\n",
        )],
        &["prepared::a_schema_change_of_its_table"],
    ),
    mutant(
        "schema-change-waits-for-a-detached",
        "a schema change waits for a prepared transaction that has no owner",
        &[edit(
            LIST,
            "            Some((xid, _)) => Err(",
            "            Some(_) if MUTANT => Ok(()),\n            Some((xid, _)) => Err(",
        )],
        &["prepared::a_schema_change_of_its_table"],
    ),
];
