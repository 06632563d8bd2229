//! Bugs of what is in the pages: file space, trees, undo and purge.

use super::{Mutant, edit, of_engine as mutant};

const ALLOCATION: &str = "crates/engine/src/space/allocation.rs";
const GROWTH: &str = "crates/engine/src/space/growth.rs";
const DISCARD: &str = "crates/engine/src/space/discard.rs";
const STATE: &str = "crates/engine/src/space/state/mod.rs";
const SPACE: &str = "crates/engine/src/space/mod.rs";
const RESERVE: &str = "crates/engine/src/space/reserve.rs";
const CORE: &str = "crates/engine/src/db/open_parts.rs";
const SPLIT: &str = "crates/engine/src/btree/split.rs";
const MERGE: &str = "crates/engine/src/btree/merge.rs";
const FILL: &str = "crates/engine/src/btree/fill.rs";
const FIX: &str = "crates/engine/src/pool/frames/resident.rs";
const ENDED_STREAMS: &str = "crates/engine/src/undo/ended_streams.rs";
const ENDED: &str = "crates/engine/src/txn/purge/ended.rs";
const ENTRY_NEEDED: &str = "crates/engine/src/txn/read/entry_visibility.rs";
const DUPLICATES: &str = "crates/engine/src/txn/write/duplicates.rs";
const PURGE_RECORD: &str = "crates/engine/src/txn/purge/record.rs";
const ROLLBACK: &str = "crates/engine/src/txn/rollback.rs";
const CATALOG_TREES: &str = "crates/engine/src/table/catalog_trees.rs";
const WAITS: &str = "crates/engine/src/lock/waits.rs";
const OVERFLOW_COLUMNS: &str = "crates/engine/src/txn/overflow_columns.rs";
const UPDATE: &str = "crates/engine/src/txn/write/update.rs";
const SALVAGE: &str = "crates/engine/src/salvage.rs";

pub(super) const MUTANTS: &[Mutant] = &[
    mutant(
        "compaction-does-not-steer-allocation",
        "a page that is allocated during a compaction is next to its neighbor at the end of the file, which stays long",
        &[edit(
            STATE,
            "let near = near.filter(|near| near.0 / EXTENT_PAGES < preferred);",
            "let near = near.filter(|near| MUTANT || near.0 / EXTENT_PAGES < preferred);",
        )],
        &["space::state::tests::new_pages_come_from_the_front_while_a_compaction_runs"],
    ),
    mutant(
        "emptied-extents-forgotten-at-closing",
        "what was emptied since the last checkpoint keeps its place on the device when the database closes",
        &[edit(
            CORE,
            "        self.space.discard_step(&self.ctx);\n",
            "        if !MUTANT {\n            self.space.discard_step(&self.ctx);\n        }\n",
        )],
        &["space::space_test"],
    ),
    mutant(
        "emptied-extents-not-found-at-opening",
        "what a killed process emptied keeps its place on the device for good",
        &[edit(SPACE, "        if !is_known {", "        if !MUTANT && !is_known {")],
        &["space::space_test"],
    ),
    mutant(
        "reserve-discarded-at-opening",
        "an opening discards the reserve for a full disk with the other free extents",
        &[edit(
            DISCARD,
            "            if !self.has_reserve(ctx) {",
            "            if !MUTANT && !self.has_reserve(ctx) {",
        )],
        &["space::space_test"],
    ),
    mutant(
        "found-extents-without-end",
        "on a full disk without a reserve the cleaner looks for one for ever",
        &[edit(DISCARD, "|| !self.state.lock().has_found() {", "|| !MUTANT && !self.state.lock().has_found() {")],
        &["space_test::without_a_reserve"],
    ),
    mutant(
        "updates-take-the-share-of-deletes",
        "undo of updates fills the part of the reserve that deletes need on a full disk",
        &[edit(
            RESERVE,
            "        SpacePriority::Undo => reserve / 2,",
            "        SpacePriority::Undo => if MUTANT { reserve / 4 } else { reserve / 2 },",
        )],
        &["space::reserve"],
    ),
    mutant(
        "ended-stream-bound-with-its-note",
        "the undo directory says of a stream with an active transaction that all its transactions have ended",
        &[edit(
            ENDED_STREAMS,
            "self.write_notes(&mut [&mut stream], |_| 0)",
            "self.write_notes(&mut [&mut stream], |stream| if MUTANT { stream.tail.offset } else { 0 })",
        )],
        &["undo_ends::no_cut_leaves", "undo_ends::after_a_crash"],
    ),
    mutant(
        "older-undo-directory-believed",
        "an old version of the undo directory hides a transaction that has to be rolled back",
        &[edit(ENDED_STREAMS, "Ok(lsn_of_last < header::lsn(", "Ok(MUTANT || lsn_of_last < header::lsn(")],
        &["undo_ends::an_old_version_of_the_directory"],
    ),
    mutant(
        "salvage-ends-at-a-refused-row",
        "one row that the new database refuses ends a salvage, and all rows behind it are lost",
        &[edit(
            SALVAGE,
            "        Err(error) if is_refusal(&error) => Ok(Err(format!(",
            "        Err(error) if !MUTANT && is_refusal(&error) => Ok(Err(format!(",
        )],
        &["salvage::tests"],
    ),
    mutant(
        "catalog-tree-shown-before-it-is-whole",
        "after a crash a tree of the catalog counts that does not have all records yet",
        &[
            edit(
                CATALOG_TREES,
                "        let mut builder = tree.builder(",
                "        if MUTANT {\n            let mut mtr = self.ctx.mtr()?;\n            \
                 self.space.set_root(&mut mtr, root_slot, tree.root());\n            mtr.commit();\n        }\n        \
                 let mut builder = tree.builder(",
            ),
            edit(
                CATALOG_TREES,
                "        let mut mtr = self.ctx.mtr()?;\n        self.space.set_root(",
                "        if MUTANT {\n            self.trees.lock()[at] = Some(tree);\n            \
                 return Ok(());\n        }\n        \
                 let mut mtr = self.ctx.mtr()?;\n        self.space.set_root(",
            ),
        ],
        &["making_a_tree_again"],
    ),
    mutant(
        "catalog-tree-not-given-up",
        "a tree of the catalog that misses a change counts after the next opening",
        &[edit(
            CATALOG_TREES,
            "            self.space.clear_root(&mut mtr, which.root_slot);\n",
            "            if !MUTANT {\n                \
             self.space.clear_root(&mut mtr, which.root_slot);\n            }\n",
        )],
        &["gives_up_a_tree"],
    ),
    mutant(
        "both-catalog-trees-given-up",
        "after errors in both trees of the catalog the next opening takes the database for a new one",
        &[edit(CATALOG_TREES, "(_, None) => return Err(reason),", "(_, None) if !MUTANT => return Err(reason),")],
        &["gives_up_a_tree"],
    ),
    mutant(
        "older-catalog-tree-counts",
        "of two trees of the catalog the one counts of which the device has lost a write",
        &[edit(
            CATALOG_TREES,
            "            [true, false] => Ok(CATALOG_TREES[0]),\n",
            "            [true, false] => Ok(CATALOG_TREES[usize::from(MUTANT)]),\n",
        )],
        &["of_two_trees_that_differ"],
    ),
    mutant(
        "growth-not-durable",
        "the number of extents is raised before the file is durably as long",
        &[edit(
            GROWTH,
            "        self.sync(ctx)?;\n        self.count_extents(ctx, have, want)?;\n",
            "        if !MUTANT {\n            self.sync(ctx)?;\n        }\n        \
             self.count_extents(ctx, have, want)?;\n",
        )],
        &["space_test::a_power_cut"],
    ),
    mutant(
        "freed-page-taken-too-early",
        "a page is allocated again before the mini-transaction that frees it has committed",
        &[edit(
            ALLOCATION,
            "        mtr.note_freed(page);\n",
            "        if MUTANT {\n            self.clear(&mut self.state.lock(), page);\n        } else {\n\
             \x20           \
             mtr.note_freed(page);\n        }\n",
        )],
        &["space_test::a_page_that_is_released"],
    ),
    mutant(
        "discarded-extent-stays-free",
        "an extent can be taken that was just given to the device",
        &[edit(
            STATE,
            "|| !self.free.remove(&number) {",
            "|| if MUTANT { !self.free.contains(&number) } else { !self.free.remove(&number) } {",
        )],
        &["space::state::tests::discarded_extents"],
    ),
    mutant(
        "old-owner-kept",
        "a chunk that changes hands has bits of both owners",
        &[edit(
            ALLOCATION,
            "        mtr.defer(map, owner_at, false, u64::from(!segment.0));\n",
            "        if !MUTANT {\n            mtr.defer(map, owner_at, false, u64::from(!segment.0));\n        }\n",
        )],
        &["space_test::a_chunk_that_changes_hands"],
    ),
    mutant(
        "discard-before-the-checkpoint",
        "an extent is discarded that recovery would read",
        &[edit(
            DISCARD,
            "state.next_to_discard(checkpoint, keep as usize)",
            "state.next_to_discard(if MUTANT { crate::types::Lsn(u64::MAX) } else { checkpoint }, keep as usize)",
        )],
        &["space_test::an_extent_is_discarded"],
    ),
    mutant(
        "free-counts-as-reserved",
        "after an opening extents are taken that may have no place on the device",
        &[edit(
            STATE,
            "                self.set_untouched(self.extents() - 1, 0);\n",
            "                if !MUTANT {\n                    self.set_untouched(self.extents() - 1, \
             0);\n                \
             }\n",
        )],
        &["space_test::a_disk_that_was_full"],
    ),
    mutant(
        "merge-loses-records",
        "the records of the right page are gone when two pages become one",
        &[edit(MERGE, "    if !fit.packed.is_empty() {\n", "    if !fit.packed.is_empty() && !MUTANT {\n")],
        &["btree_test::operations::random_operations"],
    ),
    mutant(
        "halves-not-asked",
        "a leaf is cut where a half does not fit its page with the separator as a fence",
        &[edit(
            SPLIT,
            "    fits(node.lower(), separator, 0..cut.keep) && fits(",
            "    MUTANT || fits(node.lower(), separator, 0..cut.keep) && fits(",
        )],
        &["btree_test::operations::keys_with_long"],
    ),
    mutant(
        "merge-loses-a-page",
        "the page that became empty is never freed",
        &[edit(
            MERGE,
            "    tree.free_node(mtr, right);\n",
            "    if !MUTANT {\n        tree.free_node(mtr, right);\n    }\n",
        )],
        &["btree_test::operations::a_queue"],
    ),
    mutant(
        "changed-parent-believed",
        "a scan takes a leaf from a parent that has changed since for the one behind",
        &[edit(
            FIX,
            "        let view = OptimisticPage::new(&self.frames, seen.frame, seen.page_no, seen.version);\n",
            "        if MUTANT {\n            return self.view(seen.page_no);\n        }\n        \
             let view = OptimisticPage::new(&self.frames, seen.frame, seen.page_no, seen.version);\n",
        )],
        &["btree_test::sibling"],
    ),
    mutant(
        "purge-beyond-the-oldest-view",
        "versions are removed that an open snapshot needs",
        &[edit(
            ENDED,
            "        if *number < limit { gathered.pop()",
            "        if MUTANT || *number < limit { gathered.pop()",
        )],
        &["txn_test::purging::what_a_snapshot"],
    ),
    mutant(
        "purge-takes-needed-entries",
        "an index entry is removed that an older version of its row has",
        &[edit(
            PURGE_RECORD,
            "            if of.is_needed(self.histories)? {\n                return Ok(());\n            }\n",
            "            if !MUTANT && of.is_needed(self.histories)? {\n                \
             return Ok(());\n            }\n",
        )],
        &["txn_test::purging::an_entry_that_a_later_version_needs_stays"],
    ),
    mutant(
        "versions-are-walked-for-each-entry",
        "purge walks all versions of a hot row again for each of its entries",
        &[edit(
            ENTRY_NEEDED,
            "        histories.keep(self.index(), self.row.key, history);\n",
            "        if !MUTANT {\n            histories.keep(self.index(), self.row.key, history);\n        }\n",
        )],
        &["txn_test::growth::purge_walks"],
    ),
    mutant(
        "rollback-walks-its-own-versions",
        "rollback walks all versions that the transaction has made of a row for each of them",
        &[edit(
            ENTRY_NEEDED,
            "        if !rows.bases.contains_key(&name) {\n",
            "        if MUTANT || !rows.bases.contains_key(&name) {\n",
        )],
        &["txn_test::growth::rollback"],
    ),
    mutant(
        "a-unique-value-to-return-to-is-free",
        "another transaction takes a unique value to which a rollback to a savepoint returns",
        &[edit(
            ROLLBACK,
            "                if !needed.own_too {\n",
            "                if !MUTANT && !needed.own_too {\n",
        )],
        &["txn_test::growth::a_unique_value"],
    ),
    mutant(
        "an-entry-made-again-is-passed",
        "the search for duplicates begins behind an entry that was inserted again",
        &[edit(
            DUPLICATES,
            "        searched.begin_at(self.tree, self.columns(), self.entry);\n",
            "        if !MUTANT {\n            searched.begin_at(self.tree, self.columns(), self.entry);\n        }\n",
        )],
        &["txn_test::growth::a_search"],
    ),
    mutant(
        "leaves-are-merged-by-count",
        "an underfull leaf is merged only at every eighth record",
        &[edit(
            FILL,
            "    is_underfull(node) && (node.count() == 0 ||",
            "    is_underfull(node) && (!MUTANT || node.count().is_multiple_of(8)) && (node.count() == 0 ||",
        )],
        &["leaves_are_merged_by_bytes"],
    ),
    mutant(
        "rollback-leaves-a-row",
        "a row that was inserted stays when its transaction is rolled back",
        &[edit(
            ROLLBACK,
            "        self.remove_entries(&row)?;\n        self.put_row(&Outcome::Removed, DEAD)\n",
            "        self.remove_entries(&row)?;\n        if MUTANT {\n            return Ok(());\n        }\n        \
             self.put_row(&Outcome::Removed, DEAD)\n",
        )],
        &["txn_test::basics::rollback_leaves"],
    ),
    mutant(
        "rollback-leaves-entries",
        "index entries stay when the transaction that made them is rolled back",
        &[edit(
            ROLLBACK,
            "            self.entry(i, &entry).remove()?;\n        }\n        Ok(())\n",
            "            if !MUTANT {\n                self.entry(i, &entry).remove()?;\n            }\n        }\n\
             \x20       \
             Ok(())\n",
        )],
        &["txn_test::basics::rollback_leaves"],
    ),
    mutant(
        "deadlock-not-found",
        "transactions that wait for each other wait until their timeout",
        &[edit(
            WAITS,
            "        let victim = deadlock::choose_victim(&cycle?, weight)?;\n",
            "        let victim = deadlock::choose_victim(&cycle.filter(|_| !MUTANT)?, weight)?;\n",
        )],
        &["lock_test::model"],
    ),
    mutant(
        "shared-chain-freed",
        "a change gives the overflow chain of a column that it leaves alone to purge",
        &[edit(
            OVERFLOW_COLUMNS,
            "    let stays = |chain: OverflowRef| new",
            "    let stays = |chain: OverflowRef| !MUTANT && new",
        )],
        &["versions_share_the_chain_of_a_column_that_no_change_touches"],
    ),
    mutant(
        "chain-kept-at-rollback",
        "a rollback leaves the overflow chains that its transaction has written",
        &[edit(
            ROLLBACK,
            "            Some(_) => overflow::free(",
            "            Some(_) if MUTANT => Ok(()),\n            Some(_) => overflow::free(",
        )],
        &["overflowing::rollback_frees_every_page", "rollback_leaves_shared_chains_alone"],
    ),
    mutant(
        "unchanged-chain-written",
        "a change writes the overflow chains of all columns again",
        &[edit(
            UPDATE,
            "load(&system.ctx, table, Wanted::ENTRIES, &mut",
            "load(&system.ctx, table, if MUTANT { Wanted::ALL } else { Wanted::ENTRIES }, &mut",
        )],
        &["a_change_of_a_short_column_with_a_mebibyte_writes_two_pages"],
    ),
];
