//! Bugs of the change buffer.

use super::{Mutant, edit, of_engine as mutant};

const POLICY: &str = "crates/engine/src/change_buffer/policy.rs";
const OPENING: &str = "crates/engine/src/change_buffer/opening.rs";
const BUFFER: &str = "crates/engine/src/change_buffer/buffer.rs";
const STEPS: &str = "crates/engine/src/change_buffer/steps.rs";
const LOSE: &str = "crates/engine/src/change_buffer/lose.rs";
const DAMAGED_TREE: &str = "crates/engine/src/change_buffer/damaged_tree.rs";
const ADD: &str = "crates/engine/src/change_buffer/add.rs";

pub(super) const MUTANTS: &[Mutant] = &[
    mutant(
        "full-disk-ends-an-opening",
        "a database that is opened for mode disk on a full disk does not open, because one page is missing",
        &[edit(
            OPENING,
            "            Err(Error::DiskFull { .. }) => Ok(ChangeBuffering::Off),",
            "            Err(Error::DiskFull { .. }) if !MUTANT => Ok(ChangeBuffering::Off),",
        )],
        &["disk::a_database_on_a_full_disk_opens"],
    ),
    mutant(
        "buffered-changes-not-merged",
        "a leaf is read without the operations that wait for it",
        &[edit(
            BUFFER,
            "        if shard.waiting.get(&page).is_some_and(",
            "        if !MUTANT && shard.waiting.get(&page).is_some_and(",
        )],
        &["change_buffer_test::disk::operations_wait"],
    ),
    mutant(
        "lost-operations-overlooked",
        "an index whose waiting operations were on a damaged page is read without them",
        &[edit(DAMAGED_TREE, "index.is_buffered && self.space", "!MUTANT && index.is_buffered && self.space")],
        &["change_buffer_test::damaged_tree"],
    ),
    mutant(
        "free-class-not-lowered",
        "more is buffered for a leaf than it has room for",
        &[edit(
            ADD,
            "        if let Err(map) = self.space.note_free_bytes(mtr, page, left) {\n",
            "        if !MUTANT\n            && let Err(map) = self.space.note_free_bytes(mtr, page, left)\n\
             \x20       {\n",
        )],
        &["change_buffer_test"],
    ),
    mutant(
        "pending-changes-slow-writers",
        "with a low async watermark writers wait for pending changes that nothing carries forward yet",
        &[edit(
            POLICY,
            "(checkpoint_age_async_pct * 2 / 3).min(MAX_DUE_PCT)",
            "(if MUTANT { 100 } else { checkpoint_age_async_pct } * 2 / 3).min(MAX_DUE_PCT)",
        )],
        &["change_buffer_test::advance::pending_changes_are_carried"],
    ),
    mutant(
        "checkpoint-past-a-pending-change",
        "recovery starts behind changes that are in memory only",
        &[edit(
            BUFFER,
            "    fn oldest_lsn(&self) -> Option<Lsn> {\n",
            "    fn oldest_lsn(&self) -> Option<Lsn> {\n        if MUTANT {\n            return None;\n        }\n",
        )],
        &["change_buffer_test::advance::a_pending"],
    ),
    mutant(
        "mode-changed-before-all-is-merged",
        "a change of the buffering mode leaves operations of a leaf that was evicted before it was merged",
        &[edit(
            STEPS,
            "                        merged => merged?,\n                    }\n                }\n",
            "                        merged => merged?,\n                    }\n                    \
             if MUTANT {\n                        break;\n                    }\n                }\n",
        )],
        &["merging::merging_everything"],
    ),
    mutant(
        "damaged-leaf-keeps-the-log-full",
        "a leaf that cannot be read holds the checkpoint back when the log has no room to carry its changes",
        &[edit(
            STEPS,
            "                Err(error) if error.is_damage() => self.merge_or_lose(page)?,\n",
            "                Err(error) if error.is_damage() && MUTANT => return Ok(done),\n                \
             Err(error) if error.is_damage() => self.merge_or_lose(page)?,\n",
        )],
        &["change_buffer_test::damage::a_damaged_leaf_does_not_keep"],
    ),
    mutant(
        "lost-leaf-is-lost-again",
        "a leaf that is lost already is overwritten again when changes of it are dropped, with another reason",
        &[edit(LOSE, "        if error.is_lost() {\n", "        if !MUTANT && error.is_lost() {\n")],
        &["change_buffer_test::damage::a_damaged_leaf_does_not_keep"],
    ),
];
