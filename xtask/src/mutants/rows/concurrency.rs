//! Bugs of concurrent threads: a missing memory order, a lost wake-up, a missing second check. Small parts are checked
//! by loom in the engine's own tests, the others by the models under shuttle.

use super::{Edit, Mutant, edit, of_engine};

const LATCH: &str = "crates/engine/src/sync/latch.rs";
const REACH: &str = "crates/engine/src/pool/frames/lookup.rs";
const EVICT: &str = "crates/engine/src/pool/lru/evict.rs";
const DIRTY: &str = "crates/engine/src/pool/frames/dirty.rs";
const ACTIVE: &str = "crates/engine/src/txn/active.rs";
const GROUP: &str = "crates/engine/src/log/group.rs";
const COMMIT: &str = "crates/engine/src/log/commit.rs";
const WRITER: &str = "crates/engine/src/log/writer.rs";

/// Caught by a model under shuttle.
pub(super) const fn of_whole(
    name: &'static str,
    breaks: &'static str,
    edits: &'static [Edit],
    tests: &'static [&'static str],
) -> Mutant {
    Mutant { package: "highwater-models", ..of_engine(name, breaks, edits, tests) }
}

const TABLE_LOCK: &str = "crates/engine/src/table/lock.rs";
const GATE: &str = "crates/engine/src/db/gate.rs";
const OBSERVE: &str = "crates/engine/src/db/observe.rs";
const POISON: &str = "crates/engine/src/sync/poison.rs";
const ONLINE: &str = "crates/engine/src/db/index_build/online.rs";
const LOAD_RUNS: &str = "crates/engine/src/pool/load/load_runs.rs";
const RUNS: &str = "crates/engine/src/db/index_build/runs.rs";

const ENTRY_LOG: &str = "crates/engine/src/txn/entry_log.rs";
const CATCH_UP: &str = "crates/engine/src/db/index_build/catch_up.rs";
const OPENING: &str = "crates/engine/src/db/opening.rs";
const THREADS: &str = "crates/engine/src/db/threads.rs";
const PROBE: &str = "crates/engine/src/db/probe.rs";

pub(super) const MUTANTS: &[Mutant] = &[
    of_engine(
        "late-thread-outlives-the-closing",
        "a thread that is started while the others end is not joined, and works on a closed database",
        &[edit(
            THREADS,
            "        if stop.load(Ordering::Acquire) {\n",
            "        if !MUTANT && stop.load(Ordering::Acquire) {\n",
        )],
        &["threads::tests::a_group_grows"],
    ),
    of_engine(
        "probe-of-a-busy-disk-kept",
        "what was measured while others used the disk decides for good how pages are flushed",
        &[edit(PROBE, "|| !record.is_settled();", "|| !MUTANT && !record.is_settled();")],
        &["probe_test::a_measurement_of_a_busy_disk"],
    ),
    of_engine(
        "change-during-an-index-build-lost",
        "what a rollback takes away while an index is being built stays in the index",
        &[edit(
            ENTRY_LOG,
            "                TO_LOG => noted.push(LoggedChange { entry, change }),\n",
            "                TO_LOG if MUTANT && matches!(change, EntryChange::Remove) => {}\n TO_LOG => \
             noted.push(LoggedChange { entry, change }),\n",
        )],
        &["online_index::what_writers_do_meanwhile"],
    ),
    of_engine(
        "duplicates-during-an-index-build-unseen",
        "a unique index is built although a writer has inserted an equal row meanwhile",
        &[edit(
            CATCH_UP,
            "                    self.suspects.insert(columns.to_vec());\n",
            "                    if !MUTANT {\n self.suspects.insert(columns.to_vec());\n                    \
             }\n",
        )],
        &["online_index::a_unique_index_is_refused"],
    ),
    of_engine(
        "dropped-index-forgotten-after-a-crash",
        "an opening does not free what a dropped index has left",
        &[edit(
            OPENING,
            "            other => dropping.add(other),\n",
            "            Leftover::Index(..) if MUTANT => {}\n            other => dropping.add(other),\n",
        )],
        &["dropping::tests::a_drop_returns"],
    ),
    of_engine(
        "old-tree-freed-under-readers",
        "a rebuilt index takes the place of the old one while a transaction reads that one",
        &[edit(
            ONLINE,
            "            (Some(_), _) => KeptOut::All,\n",
            "            (Some(_), _) => if MUTANT { KeptOut::Writers } else { KeptOut::All },\n",
        )],
        &["rebuild::tests::a_rebuild_ends_when"],
    ),
    of_engine(
        "rebuilt-index-in-use-with-the-old-one",
        "after a crash a table has both trees of an index that was rebuilt",
        &[edit(
            ONLINE,
            "                Some(old) => inner.catalog.swap_index(self.table, old, self.record),\n",
            "                Some(_) if MUTANT => {\n                    \
             inner.catalog.set_index_state(self.table, self.record, ObjectState::Ready)\n                }\n\
             Some(old) => inner.catalog.swap_index(self.table, old, self.record),\n",
        )],
        &["rebuild::tests::every_crash_of_a_rebuild"],
    ),
    of_engine(
        "change-of-a-table-not-alone",
        "two schema changes of one table continue side by side",
        &[edit(
            TABLE_LOCK,
            "        self.wait(&mut state, patience.into(), |s| !s.changing)?;\n",
            "        self.wait(&mut state, patience.into(), |s| MUTANT || !s.changing)?;\n",
        )],
        &["index_build::tests::schema_changes_of_other_tables"],
    ),
    of_engine(
        "schema-change-bars-all-the-time",
        "a schema change that waits for a transaction lets no other one pass",
        &[edit(
            TABLE_LOCK,
            "            self.set(state, |s| bar(s, false));\n",
            "            self.set(state, |s| bar(s, MUTANT));\n",
        )],
        &["table::lock::tests::others_pass"],
    ),
    of_engine(
        "check-bars-whom-it-waits-for",
        "a transaction that has locked rows waits for a check, which waits for one that waits for these rows",
        &[edit(
            GATE,
            "            false if holds_rows() => self.lock.lock_first(WRITER, patience),\n",
            "            false if !MUTANT && holds_rows() => self.lock.lock_first(WRITER, patience),\n",
        )],
        &["gate::tests::who_has_locked_rows"],
    ),
    of_engine(
        "check-of-a-closed-database",
        "a check during which the database closes continues and reports",
        &[edit(
            OBSERVE,
            "            goes_on: &|| inner.check_running(),\n",
            "            goes_on: &|| if MUTANT { Ok(()) } else { inner.check_running() },\n",
        )],
        &["check_test::closing"],
    ),
    of_engine(
        "fork-not-noticed",
        "a child process uses the database that its parent opened",
        &[edit(
            POISON,
            "        if self.owner.is_this_process() { Ok(()) } else { Err(Error::Forked) }\n",
            "        if MUTANT || self.owner.is_this_process() { Ok(()) } else { Err(Error::Forked) }\n",
        )],
        &["db_test::forked"],
    ),
    of_engine(
        "run-over-a-resident-page",
        "a page that was read with others replaces a newer resident page",
        &[edit(
            LOAD_RUNS,
            "run.clone().map(PageNo).filter(",
            "run.clone().map(PageNo).inspect(|page| if MUTANT { \
             self.pages().find(*page).into_iter().for_each(|frame| self.pages().unmap(frame)) }).filter(",
        )],
        &["load_runs::a_run_brings_all"],
    ),
    of_engine(
        "damaged-run-believed",
        "a block of the temporary file of an index build is used although its checksum is wrong",
        &[edit(
            RUNS,
            "        if word(0) != checksum(&self.block, block) {",
            "        if !MUTANT && word(0) != checksum(&self.block, block) {",
        )],
        &["index_build::tests::a_damaged_or_full"],
    ),
    of_engine(
        "latch-reads-not-ordered",
        "a reader without a latch may confirm the version before it has read",
        &[Edit {
            file: LATCH,
            find: "        fence(Ordering::Acquire);\n",
            replace: "        if !MUTANT {\n            fence(Ordering::Acquire);\n        }\n",
        }],
        &["lookup_model"],
    ),
    of_engine(
        "latch-shared-release-not-ordered",
        "a shared holder's reads may come after the next exclusive holder's writes",
        &[Edit {
            file: LATCH,
            find: "fetch_sub(1, Ordering::Release)",
            replace: "fetch_sub(1, if MUTANT { Ordering::Relaxed } else { Ordering::Release })",
        }],
        &["latch_model"],
    ),
    of_engine(
        "latch-waiters-not-woken",
        "who waits for an exclusive holder is not woken at its end",
        &[Edit {
            file: LATCH,
            find: "        if before & WAITERS != 0 {\n",
            replace: "        if before & WAITERS != 0 && !MUTANT {\n",
        }],
        &["latch_model"],
    ),
    of_engine(
        "frame-not-nudged",
        "who waits for the latch of a page that was evicted is not told",
        &[Edit {
            file: REACH,
            find: "        state.latch.nudge();\n",
            replace: "        if !MUTANT {\n            state.latch.nudge();\n        }\n",
        }],
        &["lookup_model"],
    ),
    of_engine(
        "page-not-compared-under-latch",
        "a frame that was found is latched and taken for the page's, whatever came into it meanwhile",
        &[Edit {
            file: REACH,
            find: "                if state.has(page) {\n                    \
                   return Some(frame);\n                \
                   }\n                \
                   state.latch.unlock_shared();\n",
            replace: "                if MUTANT || state.has(page) {\n                    \
                      return Some(frame);\n                \
                      }\n                \
                      state.latch.unlock_shared();\n",
        }],
        &["lookup_model"],
    ),
    of_engine(
        "version-not-compared",
        "a page that was seen before is found again though it has changed",
        &[Edit {
            file: REACH,
            find: "        let same = self.latch.held_version() == version;\n",
            replace: "        let same = MUTANT || self.latch.held_version() == version;\n",
        }],
        &["lookup_model"],
    ),
    of_engine(
        "write-ended-in-wrong-order",
        "a page is said not to be written any more before its newer changes are noted",
        &[Edit {
            file: DIRTY,
            find: "        self.rewrite.store(0, Ordering::Relaxed);\n",
            replace: "        if MUTANT {\n            \
                      self.flushing.store(false, Ordering::Release);\n        \
                      }\n        \
                      self.rewrite.store(0, Ordering::Relaxed);\n",
        }],
        &["dirty_model"],
    ),
    of_engine(
        "left-not-kept-for-a-cut",
        "a view does not know a transaction that ends while it is made",
        &[Edit {
            file: ACTIVE,
            find: "        if self.cuts.cutting.load(Acquire) {\n",
            replace: "        if self.cuts.cutting.load(Acquire) && !MUTANT {\n",
        }],
        &["active_model"],
    ),
    of_engine(
        "allotment-outlives-a-cut",
        "a transaction that begins after a view was made gets an id that the view sees",
        &[Edit {
            file: ACTIVE,
            find: "                *allotment = Allotment { given_before",
            replace: "                let allotment = \
                      if MUTANT { &mut Allotment::default() } else { allotment };\n                \
                      *allotment = Allotment { given_before",
        }],
        &["active_model"],
    ),
    of_engine(
        "marks-taken-before-the-next-id",
        "a transaction that begins while a view is made gets an id that the view sees",
        &[Edit {
            file: ACTIVE,
            find: "        let late = self.come_to_marked(tick, &mut known);\n",
            replace: "        let late = self.come_to_marked(tick, &mut known);\n        \
                      let low_limit_id = if MUTANT { self.next() } else { low_limit_id };\n",
        }],
        &["active_model"],
    ),
    of_engine(
        "leaves-without-a-mark",
        "a view does not see a transaction that ended before it was made",
        &[Edit {
            file: ACTIVE,
            find: "        if word.load(Relaxed) & mark == 0 {\n",
            replace: "        if word.load(Relaxed) & mark == 0 && !(MUTANT && members.active.len() == 1) {\n",
        }],
        &["active_model"],
    ),
    of_engine(
        "tick-without-fence",
        "a view sees a transaction whose id is above what it takes for the next one",
        &[Edit {
            file: ACTIVE,
            find: "        fence(SeqCst);\n        let tick = self.tick();\n",
            replace: "        if !MUTANT {\n            \
                      fence(SeqCst);\n        \
                      }\n        \
                      let tick = self.tick();\n",
        }],
        &["active_model"],
    ),
    of_engine(
        "lead-not-handed-on",
        "the next leader of a group commit is not woken",
        &[Edit {
            file: GROUP,
            find: "        if let Some((_, slot)) = next {\n",
            replace: "        if let Some((_, slot)) = next.filter(|_| !MUTANT) {\n",
        }],
        &["group_model"],
    ),
    of_engine(
        "served-taken-for-durable",
        "a commit that was woken because the log failed is acknowledged",
        &[Edit {
            file: GROUP,
            find: "                Role::Served => {}\n",
            replace: "                Role::Served if MUTANT => return Ok(()),\n                \
                      Role::Served => {}\n",
        }],
        &["group_model"],
    ),
    of_whole(
        "durable-before-sync",
        "commits are acknowledged while the sync that makes them durable runs",
        &[Edit {
            file: WRITER,
            find: "        self.ring.stop_on_failure(self.ring.device().sync())?;\n",
            replace: "        if MUTANT {\n            \
                      self.ring.set_durable(written);\n        \
                      }\n        \
                      self.ring.stop_on_failure(self.ring.device().sync())?;\n",
        }],
        &["commits_that_share", "a_failed_sync"],
    ),
    of_whole(
        "failed-sync-wakes-no-thread",
        "who waits for a sync that fails waits for ever",
        &[
            Edit {
                file: GROUP,
                find: "                    let result = log.write_and_sync(lsn);\n",
                replace: "                    let result = log.write_and_sync(lsn);\n                    \
                          if MUTANT && result.is_err() {\n                        \
                          return result;\n                    \
                          }\n",
            },
            Edit {
                file: COMMIT,
                find: "        self.group.wake_all();\n",
                replace: "        if !MUTANT {\n            self.group.wake_all();\n        }\n",
            },
        ],
        &["a_failed_sync"],
    ),
    of_whole(
        "evicted-without-second-look",
        "a page that became dirty while the evicting thread came to its latch is evicted",
        &[Edit {
            file: EVICT,
            find: "    if stays || state.oldest_lsn().is_some() || state.dirty.is_flushing() {\n",
            replace: "    if stays || !MUTANT && (state.oldest_lsn().is_some() || state.dirty.is_flushing()) {\n",
        }],
        &["a_page_that_becomes"],
    ),
];
