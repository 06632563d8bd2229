//! Bugs of what makes a commit durable and a page whole: redo log, mini-transactions, pool, doublewrite file, recovery,
//! the mark that says whether data and redo belong together.

use super::{Mutant, edit, of_engine as mutant};

const WRITER: &str = "crates/engine/src/log/writer.rs";
const CHECKPOINT: &str = "crates/engine/src/log/checkpoint.rs";
const LOG_COMMIT: &str = "crates/engine/src/log/commit.rs";
const RING: &str = "crates/engine/src/log/ring.rs";
const SCAN: &str = "crates/engine/src/log/scan.rs";
const DAMAGE: &str = "crates/engine/src/log/damage.rs";
const GROWTH: &str = "crates/engine/src/log/growth.rs";
const SHRINKING: &str = "crates/engine/src/log/shrinking.rs";
const LOG_SPACE: &str = "crates/engine/src/log/space.rs";
const CLEANER: &str = "crates/engine/src/pool/cleaner/page_cleaner.rs";
const MTR: &str = "crates/engine/src/mtr/mini_transaction.rs";
const COMMIT: &str = "crates/engine/src/mtr/commit.rs";
const MARKS: &str = "crates/engine/src/pool/frames/dirty.rs";
const LOAD: &str = "crates/engine/src/pool/load/load_page.rs";
const IN_PLACE: &str = "crates/engine/src/store/in_place/mod.rs";
const DOUBLEWRITE: &str = "crates/engine/src/store/in_place/doublewrite.rs";
const REPAIR: &str = "crates/engine/src/store/in_place/repair.rs";
const REPLAY: &str = "crates/engine/src/recovery/replay.rs";
const RECOVERY: &str = "crates/engine/src/recovery/mod.rs";
const PREPARED: &str = "crates/engine/src/txn/prepared.rs";
const SYSTEM: &str = "crates/engine/src/txn/system.rs";
const PAIRING: &str = "crates/engine/src/db/file_generations.rs";

pub(super) const MUTANTS: &[Mutant] = &[
    mutant(
        "prepare-not-synced",
        "prepare says yes before its redo is durable",
        &[edit(
            PREPARED,
            "            self.ctx.log.flush_to(lsn)?;\n",
            "            if !MUTANT {\n                self.ctx.log.flush_to(lsn)?;\n            }\n",
        )],
        &["prepared_cuts::every_cut", "prepared::prepare_waits"],
    ),
    mutant(
        "rollback-stays-prepared",
        "a prepared transaction whose rollback was cut off is prepared, and lacks changes",
        &[edit(
            PREPARED,
            "            undo.set_state(&system.ctx, UndoState::Active)?;\n",
            "            if !MUTANT {\n            undo.set_state(&system.ctx, UndoState::Active)?;\n            }\n",
        )],
        &["two_phases::a_cut_in_the_middle"],
    ),
    mutant(
        "recovery-rolls-prepared-back",
        "an opening rolls prepared transactions back",
        &[edit(
            SYSTEM,
            "partition(|txn| txn.prepared.is_some())",
            "partition(|txn| !MUTANT && txn.prepared.is_some())",
        )],
        &["prepared::prepared_transactions_outlive", "prepared_cuts::every_cut"],
    ),
    mutant(
        "prepared-not-locked-by-id",
        "the rows of a prepared transaction are not locked after an opening",
        &[edit(
            SYSTEM,
            "            holders.enter(txn.id, Arc::new(Holder {",
            "            if MUTANT && txn.prepared.is_some() {\n                continue;\n            }\n            \
             holders.enter(txn.id, Arc::new(Holder {",
        )],
        &["prepared::prepared_transactions_outlive"],
    ),
    mutant(
        "damaged-leaf-keeps-the-database-shut",
        "a damaged index leaf with pending changes keeps the database from opening",
        &[edit(
            RECOVERY,
            "        page != PageNo(0) && (is_index_leaf",
            "        page != PageNo(0) && (!MUTANT && is_index_leaf",
        )],
        &["change_buffer_test::damage"],
    ),
    mutant(
        "lost-leaf-not-written",
        "a leaf whose redo recovery has dropped is taken for whole when it can be read again",
        &[edit(
            REPLAY,
            "    for (page_no, error) in &to_lose {\n",
            "    for (page_no, error) in to_lose.iter().filter(|_| !MUTANT) {\n",
        )],
        &["change_buffer_test::damage::a_leaf_that_was_lost"],
    ),
    mutant(
        "recreated-for-ever",
        "a page that was recreated once goes to its place without a copy ever after",
        &[edit(
            MARKS,
            "        self.recreated_by_redo.store(false, Ordering::Relaxed);\n",
            "        self.recreated_by_redo.fetch_and(MUTANT, Ordering::Relaxed);\n",
        )],
        &["crash::a_new_page_needs_no_copy", "dirty_model::a_page_without_a_copy"],
    ),
    mutant(
        "log-sync-skipped",
        "a commit is acknowledged when its redo is written, not when it is durable",
        &[edit(
            WRITER,
            "        self.ring.stop_on_failure(self.ring.device().sync())?;\n",
            "        if !MUTANT {\n            self.ring.stop_on_failure(self.ring.device().sync())?;\n        }\n",
        )],
        &["log_test::model::every_acknowledged"],
    ),
    mutant(
        "written-counts-as-durable",
        "a thread that finds its redo written does not wait for the sync",
        &[edit(
            LOG_COMMIT,
            "        if self.ring().durable_lsn() >= lsn {\n            return Ok(());\n",
            "        if self.ring().durable_lsn() >= lsn || MUTANT && self.ring().written_lsn() >= lsn {\n            \
             return Ok(());\n",
        )],
        &["log_test::ring::commit_waits"],
    ),
    mutant(
        "log-failure-forgotten",
        "the database continues after a failed write or sync of the log",
        &[edit(
            RING,
            "            self.poison.set(&error.to_string());\n            Error::Storage(error)\n",
            "            if !MUTANT {\n                self.poison.set(&error.to_string());\n            }\n\
             \x20           \
             Error::Storage(error)\n",
        )],
        &["log_test::failures::a_failed_write_or_sync"],
    ),
    mutant(
        "newest-header-overwritten",
        "each header is written over the previous one, so a torn write leaves none",
        &[edit(
            WRITER,
            "        self.ring.stop_on_failure(self.ring.device().write_at(header.offset(), \
             &block, Placement::Redo))?;\n",
            "        let offset = if MUTANT { 0 } else { header.offset() };\n        \
             self.ring.stop_on_failure(self.ring.device().write_at(offset, &block, Placement::Redo))?;\n",
        )],
        &["log_test::headers::both_headers_find"],
    ),
    mutant(
        "torn-group-believed",
        "redo whose checksum is wrong counts as part of the log",
        &[edit(SCAN, "        if !whole || checksum != format", "        if !whole || !MUTANT && checksum != format")],
        &["log_test::model::garbage"],
    ),
    mutant(
        "lost-end-not-noticed",
        "a log that was durable beyond its readable end is taken as it is",
        &[edit(
            DAMAGE,
            "    Ok((header_lost || durable > end).then_some(damage))",
            "    Ok((!MUTANT && (header_lost || durable > end)).then_some(damage))",
        )],
        &["log::damage::tests::a_flip_anywhere"],
    ),
    mutant(
        "ring-overwrites-what-is-needed",
        "redo is appended over redo that the last checkpoint still needs",
        &[edit(
            LOG_SPACE,
            "            self.limit_end.store(self.kept().min(checkpoint).0 + self.capacity(), SeqCst);\n",
            "            let room = self.capacity() * (1 + u64::from(MUTANT));\n            \
             self.limit_end.store(self.kept().min(checkpoint).0 + room, SeqCst);\n",
        )],
        &["log_test::reservations::after_a_checkpoint"],
    ),
    mutant(
        "checkpoint-past-a-dirty-page",
        "recovery starts behind changes that are in no page on disk",
        &[edit(
            CLEANER,
            "    pool.oldest_lsn().unwrap_or(end).min(end)\n",
            "    if MUTANT { end } else { pool.oldest_lsn().unwrap_or(end).min(end) }\n",
        )],
        &["recovery_test::a_tree_comes"],
    ),
    mutant(
        "page-lsn-not-raised",
        "a changed page has the LSN of an earlier change, so it may be written before its redo",
        &[edit(
            COMMIT,
            "            page::header::set_lsn(bytes, lsn);\n",
            "            if !MUTANT {\n                page::header::set_lsn(bytes, lsn);\n            }\n",
        )],
        &["recovery_test::a_tree_comes"],
    ),
    mutant(
        "map-bits-not-logged",
        "which pages are used is changed in the extent maps, and not in the redo",
        &[edit(
            COMMIT,
            "            self.apply(latched, &op);\n",
            "            let logged = self.buffers.redo.len();\n            self.apply(latched, &op);\n            \
             if MUTANT {\n                self.buffers.redo.truncate(logged);\n            }\n",
        )],
        &["recovery_test::a_tree_comes"],
    ),
    mutant(
        "unfinished-changes-kept",
        "a mini-transaction that a failure ended in its middle leaves its changes, and the database continues",
        &[edit(
            COMMIT,
            "        if self.is_modified() {\n            self.ctx",
            "        if !MUTANT && self.is_modified() {\n            self.ctx",
        )],
        &["pool_test::crash::a_dropped_mtr"],
    ),
    mutant(
        "split-not-logged",
        "the redo of a split lacks the new fences of the left page",
        &[edit(
            MTR,
            "        op.encode(held.page_no, redo);\n",
            "        if !(MUTANT && matches!(op, PageOp::NodeRefence { .. })) {\n            \
             op.encode(held.page_no, redo);\n        }\n",
        )],
        &["recovery_test::a_tree_comes"],
    ),
    mutant(
        "change-during-a-write-lost",
        "a page that changes while it is being written counts as clean afterwards",
        &[edit(
            MARKS,
            "        } else if self.is_flushing() && ",
            "        } else if !MUTANT && self.is_flushing() && ",
        )],
        &["pool::flush::list::tests"],
    ),
    mutant(
        "page-not-verified",
        "a page is used though its checksum is wrong",
        &[edit(
            LOAD,
            "        page::header::verify(bytes, page)?;\n",
            "        if !MUTANT {\n            page::header::verify(bytes, page)?;\n        }\n",
        )],
        &["pool_test::crash::a_page_in_the_wrong_place"],
    ),
    mutant(
        "page-beyond-the-log-believed",
        "a page is used whose last changes the log has lost",
        &[edit(
            LOAD,
            "        if let Some(reason) = page::header::beyond_log(",
            "        if !MUTANT\n            && let Some(reason) = page::header::beyond_log(",
        )],
        &["pool_test::crash::a_page_newer"],
    ),
    mutant(
        "places-not-synced",
        "copies are overwritten before the pages are durable in their places",
        &[edit(IN_PLACE, "if is_synced { self.sync() }", "if is_synced && !MUTANT { self.sync() }")],
        &["pool_test::crash::power_cuts"],
    ),
    mutant(
        "copies-not-synced",
        "pages are written to their places before their copies are durable",
        &[edit(
            DOUBLEWRITE,
            "        self.stats.doublewrite_syncs.add(u64::from(self.file.sync()?));\n",
            "        if !MUTANT {\n            \
             self.stats.doublewrite_syncs.add(u64::from(self.file.sync()?));\n        \
             }\n",
        )],
        &["pool_test::crash::a_torn_page"],
    ),
    mutant(
        "torn-copy-put-back",
        "a page is replaced by a copy that the crash tore",
        &[edit(
            REPAIR,
            "    if page::header::verify(&copy, page_no).is_err() || ",
            "    if !MUTANT && page::header::verify(&copy, page_no).is_err() || ",
        )],
        &["db_test::file_generations::every_crash"],
    ),
    mutant(
        "old-copy-put-back",
        "a damaged page is replaced by a copy from before the checkpoint, without the changes since",
        &[edit(
            REPAIR,
            "copies.iter().filter(|copy| copy.lsn > log.start)",
            "copies.iter().filter(|copy| MUTANT || copy.lsn > log.start)",
        )],
        &["pool_test::crash::a_page_that_rots"],
    ),
    mutant(
        "redo-applied-twice",
        "recovery applies changes that are in the page already",
        &[edit(REPLAY, "            if end_lsn <= start {\n", "            if !MUTANT && end_lsn <= start {\n")],
        &["recovery_test::a_tree_comes"],
    ),
    mutant(
        "files-of-two-times-believed",
        "an older data file with a newer redo log is opened",
        &[edit(
            PAIRING,
            "log.generation(), scan.end_lsn) else { return Ok(()) };",
            "log.generation(), scan.end_lsn).filter(|_| !MUTANT) else { return Ok(()) };",
        )],
        &["db_test::file_generations::an_older_file"],
    ),
    mutant(
        "ring-grows-unnoticed",
        "blocks of a ring that has grown are in their new places before a header says so",
        &[edit(
            GROWTH,
            "            writer.write_header(&mut io, header)?;\n",
            "            if !MUTANT {\n                writer.write_header(&mut io, header)?;\n            }\n",
        )],
        &["log_test::growth::a_power_cut"],
    ),
    mutant(
        "log-cut-before-it-is-smaller",
        "the file of a log that shrinks is cut before a header says the new size",
        &[edit(
            SHRINKING,
            "        for header in [header, header.next()] {\n",
            "        if MUTANT {\n            \
             ring.stop_on_failure(ring.device().set_len_bytes(header.size_bytes))?;\n        \
             }\n        for header in [header, header.next()] {\n",
        )],
        &["log_test::shrinking::a_power_cut", "db_test::shrinking::an_opening"],
    ),
    mutant(
        "closed-log-keeps-what-a-growth-left",
        "a closed log leaves the room that a growth made and never used",
        &[edit(
            CHECKPOINT,
            "        RingSize::cut_file(self.ring())?;\n",
            "        if !MUTANT {\n            RingSize::cut_file(self.ring())?;\n        }\n",
        )],
        &["log_test::shrinking::a_closed_log"],
    ),
    mutant(
        "older-header-says-the-larger-log",
        "a log that has shrunk has a header of the larger one, which is found if the newest is damaged",
        &[edit(
            SHRINKING,
            "        for header in [header, header.next()] {\n",
            "        for header in [header, header.next()].into_iter().take(if MUTANT { 1 } else { 2 }) {\n",
        )],
        &["log_test::shrinking::a_header_damaged"],
    ),
    mutant(
        "smaller-log-gives-out-too-much",
        "a log that has shrunk reserves room for as much redo as before",
        &[edit(
            SHRINKING,
            "        ring.space().resized(geometry.capacity_bytes(), || header.checkpoint_lsn);\n",
            "        if !MUTANT {\n            \
             ring.space().resized(geometry.capacity_bytes(), || header.checkpoint_lsn);\n        \
             }\n",
        )],
        &["log_test::shrinking::a_log_that_has_shrunk_gives"],
    ),
    mutant(
        "lost-end-forgiven",
        "a page whose change the log has lost is not an error if the page is recreated later",
        &[edit(
            REPLAY,
            "Err(error) if error.is_damage() && !error.is_beyond_log() => {",
            "Err(error) if error.is_damage() && (MUTANT || !error.is_beyond_log()) => {",
        )],
        &["recovery_test::a_page_beyond_the_log"],
    ),
    mutant(
        "closing-forgets-relaxed-commits",
        "a commit that no thread waits for is acknowledged while the database is closed, and never written",
        &[edit(
            LOG_COMMIT,
            "FlushLog::EverySecond if self.is_closing.load(Ordering::Acquire) =>",
            "FlushLog::EverySecond if !MUTANT && self.is_closing.load(Ordering::Acquire) =>",
        )],
        &["log_test::group_commit::a_relaxed_commit"],
    ),
];
