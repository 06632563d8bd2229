//! Bugs of cutting the end of the data file off, and of growth.

use super::{Mutant, edit, of_engine as mutant};

const TRUNCATION: &str = "crates/engine/src/space/truncation.rs";
const GROWTH: &str = "crates/engine/src/space/growth.rs";
const STATE: &str = "crates/engine/src/space/state/mod.rs";
const STATE_CUT: &str = "crates/engine/src/space/state/cut.rs";
const COMPACT: &str = "crates/engine/src/db/compact.rs";
const OLDEST: &str = "crates/engine/src/pool/flush/oldest.rs";
const OPEN_PARTS: &str = "crates/engine/src/db/open_parts.rs";
const CHECK_ROWS: &str = "crates/engine/src/check/rows.rs";
const SHRINK: &str = "crates/engine/src/store/out_of_place/shrink.rs";

const EVERY_CUT: &[&str] = &["truncation_test::a_power_cut_at_every_change"];

pub(super) const MUTANTS: &[Mutant] = &[
    mutant(
        "idle-owner-behind-the-end-counts",
        "a chunk that was freed keeps its owner on disk, and a file that was cut is called truncated",
        &[edit(
            STATE,
            "            } else if extent.used != 0 {",
            "            } else if extent.used != 0 || MUTANT \
             && read_entry(map, index as usize) != Extent::default() {",
        )],
        &["state::tests::an_idle_owner_behind_the_end"],
    ),
    mutant(
        "unused-chunks-keep-an-extent",
        "an extent that a segment took whole and used in part is not free when those pages are freed",
        &[edit(
            STATE,
            "if used & chunk_mask(owned) == 0 { owned }",
            "if !MUTANT && used & chunk_mask(owned) == 0 { owned }",
        )],
        &["state::tests::chunks_that_were_never_used"],
    ),
    mutant(
        "only-the-last-segments-are-cleaned",
        "a store whose segments each hold a few live pages is not cut, since none is free for the last ones",
        &[edit(
            SHRINK,
            "else { self.take_emptiest(least) };",
            "else { self.take_emptiest(least).filter(|_| !MUTANT) };",
        )],
        &["slots::segments_with_few_live_pages"],
    ),
    mutant(
        "compaction-counts-idle-pages",
        "a compaction leaves extents that have a few used pages each as they are",
        &[edit(
            STATE_CUT,
            "let chunks = of_users.map(|(_, segment)| match segment.pages {",
            "let chunks = of_users.map(|(_, segment)| match if MUTANT { segment.extents.len() as u32 * EXTENT_PAGES } \
             else { segment.pages } {",
        )],
        &["compact::tests::extents_that_deletes_left"],
    ),
    mutant(
        "compaction-leaves-changes-pending",
        "changes that wait for leaves hold back the checkpoint that has to pass before the end is cut off",
        &[edit(
            COMPACT,
            "self.inner.txns.changes.merge_all_sound()?;",
            "if !MUTANT { self.inner.txns.changes.merge_all_sound()?; }",
        )],
        &["compact::tests::changes_that_wait"],
    ),
    mutant(
        "flush-before-flushes-all",
        "a compaction also flushes concurrent changes, and does not end while others write",
        &[edit(
            OLDEST,
            "if self.flush_oldest(before, BATCH_PAGES, FlushReason::Shutdown)? == 0 {",
            "let before = if MUTANT { Lsn(u64::MAX) } else { before };\n            \
             if self.flush_oldest(before, BATCH_PAGES, FlushReason::Shutdown)? == 0 {",
        )],
        &["flushing::a_flush_up_to_an_lsn"],
    ),
    mutant(
        "stale-pointer-behind-the-end-is-a-finding",
        "a check reports rows whose purged undo was behind the present end of the file",
        &[edit(
            CHECK_ROWS,
            "page.0 >= MAX_EXTENTS * EXTENT_PAGES)",
            "MUTANT && page.0 >= self.walk.checker.subject.space.page_count())",
        )],
        &["space::rows_whose_undo_was_behind_the_end"],
    ),
    mutant(
        "rest-not-reserved",
        "a small database is opened on a full disk, which shows when a page is written",
        &[edit(
            OPEN_PARTS,
            "        if space.is_small() && !storage.is_read_only() {",
            "        if !MUTANT && space.is_small() && !storage.is_read_only() {",
        )],
        &["space::a_small_database_opens_once"],
    ),
    mutant(
        "closed-ring-keeps-its-place",
        "the redo log of a small database that is closed takes all of its room",
        &[edit(
            OPEN_PARTS,
            "            self.ctx.log.release_ring(end);\n",
            "            if !MUTANT {\n                self.ctx.log.release_ring(end);\n            }\n",
        )],
        &["space::a_small_database_that_is_closed"],
    ),
    mutant(
        "cut-before-a-checkpoint",
        "the end of the file is cut off although recovery may need redo of its pages",
        &[edit(
            TRUNCATION,
            "        let checkpoint = ctx.log.checkpoint_lsn();\n",
            "        let checkpoint = if MUTANT { Lsn(u64::MAX) } else { ctx.log.checkpoint_lsn() };\n",
        )],
        &["truncation_test::the_end_is_cut_once", "truncation_test::a_new_map"],
    ),
    mutant(
        "cut-before-its-redo",
        "the file is cut before it is durable that it has fewer extents",
        &[edit(
            TRUNCATION,
            "        ctx.log.flush_to(ctx.log.end_lsn())\n",
            "        if MUTANT { Ok(()) } else { ctx.log.flush_to(ctx.log.end_lsn()) }\n",
        )],
        EVERY_CUT,
    ),
    mutant(
        "cut-during-a-backup",
        "the end of the file is cut off while a backup copies it",
        &[edit(TRUNCATION, "if self.is_held() || !cut", "if !MUTANT && self.is_held() || !cut")],
        &["truncation_test::the_end_is_cut_once"],
    ),
    mutant(
        "new-map-not-noted",
        "a group whose map was just formatted is cut off before a checkpoint has passed that",
        &[edit(GROWTH, "        with_new_maps.for_each(", "        with_new_maps.filter(|_| !MUTANT).for_each(")],
        &["truncation_test::a_new_map"],
    ),
    mutant(
        "bare-reserve",
        "what stays after a cut is a reserve without a place on the device",
        &[edit(TRUNCATION, "if lacking.is_empty() {", "if MUTANT || lacking.is_empty() {")],
        &["truncation_test::the_reserve_has_its_place"],
    ),
    mutant(
        "all-holes-at-once",
        "a thread that looks for the reserve on a full disk keeps others from the file until it has tried every hole",
        &[edit(GROWTH, "take(RESERVE_TRIES)", "take(if MUTANT { usize::MAX } else { RESERVE_TRIES })")],
        &["space_test::holes_are_tried"],
    ),
    mutant(
        "cut-segments-not-noted",
        "headers that name batches in segments that were cut off are taken for signs of damage",
        &[edit(
            SHRINK,
            "        self.put_cut(count)?;\n",
            "        if !MUTANT {\n            self.put_cut(count)?;\n        }\n",
        )],
        &["slots::segments_that_were_cut_off"],
    ),
];
