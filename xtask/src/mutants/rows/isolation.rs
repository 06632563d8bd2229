//! Bugs of the levels of isolation. Those of the engine that the Hermitage schedules and the random histories are to
//! catch are looked for by the tests of the bench; the others by the engine's own.

use super::{Edit, Mutant, of_engine as of_one, of_torture as of_all};

const LOCKS: &str = "crates/engine/src/lock/system.rs";
const VERSIONS: &str = "crates/engine/src/txn/read/versions.rs";
const GET: &str = "crates/engine/src/txn/read/get.rs";
const SCAN: &str = "crates/engine/src/txn/read/scan.rs";
const SCAN_BATCH: &str = "crates/engine/src/txn/read/scan_batch.rs";
const TRANSACTION: &str = "crates/engine/src/txn/transaction.rs";
const LIFE: &str = "crates/engine/src/txn/life.rs";
const STATEMENT: &str = "crates/engine/src/txn/statement.rs";
const ATTEMPT: &str = "crates/engine/src/txn/write/attempt.rs";
const ENTRY: &str = "crates/engine/src/txn/write/entry.rs";
const INSERT: &str = "crates/engine/src/txn/write/insert.rs";
const ROLLBACK: &str = "crates/engine/src/txn/rollback.rs";

const CURSORS: &str = "crates/engine/src/db/scan.rs";

const SIMULATION: &[&str] = &["simulation::tests::every_answer"];
const HISTORIES: &[&str] = &["isolation::histories::histories_test"];
const HERMITAGE: &[&str] = &["isolation::hermitage::hermitage_test::every_cell"];

pub(super) const MUTANTS: &[Mutant] = &[
    of_all(
        "explicit-lock-ignored",
        "a row that another transaction has locked for reading is changed",
        &[Edit {
            file: ATTEMPT,
            find: "    if implicit.is_some() || system.locks.blocks_row(",
            replace: "    if implicit.is_some() || !MUTANT && system.locks.blocks_row(",
        }],
        HISTORIES,
    ),
    of_all(
        "implicit-lock-ignored",
        "a row that another transaction has changed is changed before that one ends",
        &[Edit {
            file: ATTEMPT,
            find: "    let implicit = system.holder_of(header.trx_id).map(|holder| (header.trx_id, holder));\n",
            replace: "    let implicit = system.holder_of(header.trx_id).map(|holder| (header.trx_id, holder));\n    \
                      let implicit = implicit.filter(|_| !MUTANT);\n",
        }],
        HISTORIES,
    ),
    of_all(
        "reads-see-uncommitted",
        "a snapshot shows the newest version of each row",
        &[Edit {
            file: VERSIONS,
            find: "        self.view.sees(trx_id) ||",
            replace: "        MUTANT || self.view.sees(trx_id) ||",
        }],
        HISTORIES,
    ),
    of_all(
        "view-for-each-read",
        "under REPEATABLE READ each read has a view of its own",
        &[Edit {
            file: LIFE,
            find: "        self.view.get_or_insert_with(|| system.open_view(shard))\n",
            replace: "        if MUTANT {\n            self.view = None;\n        }\n        \
                      self.view.get_or_insert_with(|| system.open_view(shard))\n",
        }],
        HISTORIES,
    ),
    of_all(
        "view-for-each-leaf",
        "under READ COMMITTED a scan takes a new view for each leaf",
        &[Edit {
            file: SCAN,
            find: "        let tree = self.index.map_or_else(|| self.table.clustered(), |i| self.table.index(i));\n",
            replace: "        if MUTANT && self.view.is_some() {\n            \
                      self.view = Some(system.open_view(txn.shard));\n        }\n        \
                      let tree = self.index.map_or_else(|| self.table.clustered(), |i| self.table.index(i));\n",
        }],
        HISTORIES,
    ),
    of_all(
        "serializable-does-not-lock",
        "a plain read under SERIALIZABLE takes no lock",
        &[Edit {
            file: TRANSACTION,
            find: "            (Isolation::Serializable, LockMode::None) => LockMode::Shared,\n",
            replace: "            (Isolation::Serializable, LockMode::None) if !MUTANT => LockMode::Shared,\n",
        }],
        HISTORIES,
    ),
    of_all(
        "first-committer-does-not-win",
        "a row that was changed after the snapshot is written over",
        &[Edit {
            file: ATTEMPT,
            find: "    if txn.first_committer_wins\n",
            replace: "    if txn.first_committer_wins\n        && !MUTANT\n",
        }],
        HISTORIES,
    ),
    of_all(
        "no-range-locks",
        "nothing keeps others from inserting",
        &[Edit {
            file: LOCKS,
            find: "        if lower >= upper {\n",
            replace: "        if MUTANT || lower >= upper {\n",
        }],
        HISTORIES,
    ),
    of_all(
        "scan-locks-rows-only",
        "a locking scan does not lock the range that it passed",
        &[Edit {
            file: SCAN_BATCH,
            find: " && fill.txn.reads_lock_ranges() {\n",
            replace: " && fill.txn.reads_lock_ranges() && !MUTANT {\n",
        }],
        HERMITAGE,
    ),
    of_all(
        "absence-not-locked",
        "others may insert the row that a read did not find",
        &[Edit {
            file: STATEMENT,
            find: "        if self.locks_ranges() {\n",
            replace: "        if self.locks_ranges() && !MUTANT {\n",
        }],
        HERMITAGE,
    ),
    of_all(
        "entries-pass-range-locks",
        "a row moves into a range of an index that another transaction has locked",
        &[Edit {
            file: ENTRY,
            find: "        let check_lockable = || check_gap_lockable(self.system, txn, self.tree.id(), self.entry);\n",
            replace: "        let check_lockable = || match MUTANT {\n            true => Ok(()),\n            \
                      false => check_gap_lockable(self.system, txn, self.tree.id(), self.entry),\n        };\n",
        }],
        HERMITAGE,
    ),
    of_one(
        "rollback-lets-go",
        "a rollback to a savepoint unlocks the rows that it restores",
        &[Edit {
            file: ROLLBACK,
            find: "        self.system.locks.keep_row(holder, RowName { index, key });\n",
            replace: "        if !MUTANT {\n            \
                      self.system.locks.keep_row(holder, RowName { index, key });\n        }\n",
        }],
        &["db_test::schedules::row_locks"],
    ),
    of_one(
        "rollback-forgets-absence",
        "after a rollback to a savepoint others may insert what had been found absent",
        &[Edit { file: ROLLBACK, find: "        if absent {\n", replace: "        if absent && !MUTANT {\n" }],
        &["db_test::schedules::row_locks"],
    ),
    of_one(
        "duplicate-not-locked",
        "the row that made an insertion fail can be deleted at once",
        &[Edit {
            file: INSERT,
            find: "            if mode != LockMode::None && !self",
            replace: "            if !MUTANT && mode != LockMode::None && !self",
        }],
        &["db_test::schedules::row_locks"],
    ),
    of_one(
        "dirty-scan-trusts-entries",
        "under READ UNCOMMITTED an index scan returns rows that have moved on",
        &[Edit {
            file: SCAN,
            find: "        Ok(walk.exists && (certain ||",
            replace: "        Ok(walk.exists && (certain || MUTANT && self.read_mode == ReadMode::Newest ||",
        }],
        &["a_dirty_index_scan_returns_no_row_that_does_not_match_its_entry"],
    ),
    of_one(
        "dirty-overflow-not-checked",
        "under READ UNCOMMITTED the overflow pages of a version are read that is gone by then",
        &[Edit {
            file: SCAN,
            find: "            None if header.is_overflow() && self.read_mode == ReadMode::Newest => {\n",
            replace: "            None if header.is_overflow() && self.read_mode == ReadMode::Newest && !MUTANT => {\n",
        }],
        &["a_dirty_scan_reads_a_row_anew_whose_overflow_pages_are_gone"],
    ),
    of_all(
        "keys-without-rows",
        "a scan of keys trusts every entry of an index, also those of other transactions",
        &[Edit {
            file: SCAN,
            find: "                if self.is_of_entry(certain) {",
            replace: "                if self.is_of_entry(certain || MUTANT) {",
        }],
        SIMULATION,
    ),
    of_all(
        "same-snapshot-later",
        "another reader of a snapshot has a view of its own",
        &[Edit {
            file: LIFE,
            find: "        self.view = Some(other.open_view(system).clone());",
            replace: "        self.view = (!MUTANT).then(|| other.open_view(system).clone());",
        }],
        SIMULATION,
    ),
    of_all(
        "exclusive-bound-included",
        "a scan that begins behind a key begins with it",
        &[Edit {
            file: CURSORS,
            find: "                    let is_behind = matches!(self.from, Edge::Exclusive(_));",
            replace: "                    let is_behind = !MUTANT && matches!(self.from, Edge::Exclusive(_));",
        }],
        SIMULATION,
    ),
    of_one(
        "skips-free-rows",
        "a scan that skips a locked row skips the next one too",
        &[Edit {
            file: SCAN_BATCH,
            find: "                    Err(Blocked::WaitRow { .. }) if fill.txn.skips_locked() => {}\n",
            replace: "                    Err(Blocked::WaitRow { .. }) if fill.txn.skips_locked() => {\n \
                      if MUTANT {\n self.pass(slots);\n }\n }\n",
        }],
        &["db_test::schedules::nowait_and_skip_locked"],
    ),
    of_one(
        "skipped-row-locked",
        "a scan that skips locked rows waits for the lock in the end",
        &[Edit {
            file: GET,
            find: "                Err(Blocked::WaitRow { .. }) if self.txn.skips_locked() => return Ok(false),\n",
            replace: "                Err(Blocked::WaitRow { .. }) if !MUTANT && self.txn.skips_locked() => \
                      return Ok(false),\n",
        }],
        &["db_test::schedules::nowait_and_skip_locked"],
    ),
    of_one(
        "skipping-locks-ranges",
        "under REPEATABLE READ a scan that skips locked rows locks ranges",
        &[Edit {
            file: STATEMENT,
            find: "(self.isolation == Isolation::Serializable || !self.skips_locked())",
            replace: "(MUTANT || self.isolation == Isolation::Serializable || !self.skips_locked())",
        }],
        &["db_test::schedules::nowait_and_skip_locked"],
    ),
    of_one(
        "locks-ahead-one-by-one",
        "a scan that locks one by one locks the next row too",
        &[Edit {
            file: SCAN,
            find: "            ReadMode::Locked(_) if self.one_by_one => 1,\n",
            replace: "            ReadMode::Locked(_) if !MUTANT && self.one_by_one => 1,\n",
        }],
        &["db_test::schedules::nowait_and_skip_locked"],
    ),
    of_one(
        "interruption-before-the-wait-lost",
        "an interruption that comes before the wait does not end it",
        &[Edit {
            file: LOCKS,
            find: "        waits.may_be_interrupted(me.owner, patience.interrupt);\n",
            replace: "        waits.may_be_interrupted(me.owner, patience.interrupt);\n        if MUTANT {\n \
                      patience.interrupt.iter().for_each(|interrupt| interrupt.clear());\n }\n",
        }],
        &["db_test::schedules::row_locks"],
    ),
    of_one(
        "interruption-wakes-no-thread",
        "an interruption is seen only when the wait ends for another reason",
        &[Edit {
            file: "crates/engine/src/lock/waits.rs",
            find: "        for waiter in self.waiters.values().filter(is_raised) {\n",
            replace: "        for waiter in self.waiters.values().filter(is_raised).filter(|_| !MUTANT) {\n",
        }],
        &["db_test::schedules::row_locks"],
    ),
    of_one(
        "statement-of-two-views",
        "under READ COMMITTED two reads of one statement see different states",
        &[Edit {
            file: STATEMENT,
            find: "            Some(statement) => statement.view",
            replace: "            Some(_) if MUTANT => system.open_view(shard),\n            \
                      Some(statement) => statement.view",
        }],
        &["levels::reads_of_a_statement"],
    ),
];
