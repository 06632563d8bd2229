//! Bugs of the lock waits, which the models of `crates/engine/src/models/locks.rs` are to find.

use super::concurrency::of_whole;
use super::{Edit, Mutant, of_engine};

const LOCKS: &str = "crates/engine/src/lock/system.rs";
const ROW_LOCKS: &str = "crates/engine/src/lock/row_locks.rs";
const WAITS: &str = "crates/engine/src/lock/waits.rs";
const QUEUE: &str = "crates/engine/src/lock/queue.rs";
const DUPLICATES: &str = "crates/engine/src/txn/write/duplicates.rs";
const AUTO_INCREMENT: &str = "crates/engine/src/table/auto_increment.rs";
const AUTO_INCREMENT_LOCK: &str = "crates/engine/src/txn/auto_increment_lock.rs";
const UPSERT: &str = "crates/engine/src/db/upsert.rs";

pub(super) const MUTANTS: &[Mutant] = &[
    of_whole(
        "granted-not-woken",
        "a transaction whose lock is granted is not woken",
        &[Edit {
            file: WAITS,
            find: "            (waiter.request, waiter.outcome) = (Request::None, outcome);\n            \
                   waiter.holder.wake.notify_one();\n",
            replace: "            (waiter.request, waiter.outcome) = (Request::None, outcome);\n            \
                      if MUTANT && outcome == WaitOutcome::Granted {\n                \
                      return;\n            \
                      }\n            \
                      waiter.holder.wake.notify_one();\n",
        }],
        &["a_row_is_taken", "inserts_wait"],
    ),
    of_whole(
        "front-not-woken",
        "a row becomes free and the front of its queue sleeps on",
        &[Edit {
            file: WAITS,
            find: "                front.holder.wake.notify_one();\n",
            replace: "                if !MUTANT {\n                    \
                      front.holder.wake.notify_one();\n                }\n",
        }],
        &["a_row_is_taken"],
    ),
    of_whole(
        "front-gives-up-alone",
        "the front of a queue gives up when the row is free, and the next one sleeps on",
        &[Edit {
            file: WAITS,
            find: "                self.queues[queue as usize].leave(ticket);\n                self.promote(queue);\n",
            replace: "                self.queues[queue as usize].leave(ticket);\n                \
                      if !MUTANT {\n                    self.promote(queue);\n                }\n",
        }],
        &["a_row_is_taken"],
    ),
    of_engine(
        "upgrade-queues-behind",
        "a holder that asks for a stronger mode waits behind those that wait for it",
        &[Edit {
            file: QUEUE,
            find: "        let ticket = match self.granted.mode_of(me) {\n",
            replace: "        let ticket = match self.granted.mode_of(me).filter(|_| !MUTANT) {\n",
        }],
        &["db_test::schedules::row_locks"],
    ),
    of_engine(
        "readers-pass-writers",
        "a row that is locked shared is granted to readers while a writer waits",
        &[Edit {
            file: QUEUE,
            find: "        let behind_others = self.has_waiters()",
            replace: "        let is_read = MUTANT && mode == LockMode::Shared;\n        \
                      let behind_others = !is_read && self.has_waiters()",
        }],
        &["db_test::schedules::row_locks"],
    ),
    of_engine(
        "passes-not-counted",
        "the front of a queue is passed again and again and never served",
        &[Edit {
            file: QUEUE,
            find: "        self.passes += u32::from(self.granted",
            replace: "        self.passes += u32::from(!MUTANT && self.granted",
        }],
        &["lock_test::a_free_row"],
    ),
    of_engine(
        "passer-does-not-let-go",
        "who has passed the front of a queue holds the row for ever",
        &[Edit {
            file: ROW_LOCKS,
            find: "                if granted == Some(true) {\n",
            replace: "                if granted == Some(true) && !MUTANT {\n",
        }],
        &["lock_test::a_free_row"],
    ),
    of_whole(
        "implicit-lock-not-announced",
        "a transaction that ends does not look for locks that were just made explicit for it",
        &[Edit {
            file: LOCKS,
            find: "            shard.announce(holder);\n",
            replace: "            if !MUTANT {\n                shard.announce(holder);\n            }\n",
        }],
        &["an_implicit_lock"],
    ),
    of_whole(
        "timed-out-waiter-stays-in-queue",
        "a lock is granted to one that has given up",
        &[Edit {
            file: ROW_LOCKS,
            find: "        waits.end(me.owner);\n",
            replace: "        let is_over = waits.outcome(me.owner) != \
                Some(super::waits::WaitOutcome::Pending);\n        \
                      if !MUTANT || is_over {\n            \
                      waits.end(me.owner);\n        \
                      }\n",
        }],
        &["granted_and_timed_out", "sessions_come"],
    ),
    of_whole(
        "victim-stays-in-queue",
        "a deadlock's victim is told so and keeps its place in the queue",
        &[Edit {
            file: WAITS,
            find: "        self.leave(victim);\n",
            replace: "        if !MUTANT {\n            self.leave(victim);\n        }\n",
        }],
        &["a_victim"],
    ),
    of_whole(
        "inserts-asked-for-too-early",
        "a transaction that ends asks whether inserts wait before its ranges are gone",
        &[Edit {
            file: LOCKS,
            find: "            indexes.into_iter().for_each(|index| self.release_ranges(me, index));\n            \
                   if self.waiting_inserts.load(SeqCst) > 0 {\n",
            replace: "            let early = self.waiting_inserts.load(SeqCst);\n            \
                      indexes.into_iter().for_each(|index| self.release_ranges(me, index));\n            \
                      let waiting = if MUTANT { early } else { self.waiting_inserts.load(SeqCst) };\n            \
                      if waiting > 0 {\n",
        }],
        &["inserts_wait"],
    ),
    of_whole(
        "stop-wakes-no-waiter",
        "who waits for a lock waits on when the database has stopped",
        &[Edit {
            file: LOCKS,
            find: "        self.waits.lock().wake_all();\n",
            replace: "        if !MUTANT {\n            self.waits.lock().wake_all();\n        }\n",
        }],
        &["stopping_wakes"],
    ),
    of_engine(
        "duplicate-waited-for-shared",
        "two upserts that wait for one row get it shared both, and wait for each other",
        &[Edit {
            file: DUPLICATES,
            find: "                let mode = if mode == LockMode::None {",
            replace: "                let mode = if MUTANT || mode == LockMode::None {",
        }],
        &["db_test::upsert::concurrent_upserts"],
    ),
    of_engine(
        "half-a-replacement-stays",
        "a replacement that fails leaves rows deleted",
        &[Edit {
            file: UPSERT,
            find: "        if deleted > 0 && self",
            replace: "        if !MUTANT && deleted > 0 && self",
        }],
        &["db_test::upsert::a_replacement"],
    ),
    of_engine(
        "locked-numbers-given-to-others",
        "a transaction takes numbers between those of a statement that has locked them",
        &[Edit {
            file: AUTO_INCREMENT,
            find: "if locked_by.is_none_or(|owner| owner == me)",
            replace: "if MUTANT || locked_by.is_none_or(|owner| owner == me)",
        }],
        &["statements::numbers_of_a_statement", "only_the_owner_moves"],
    ),
    of_engine(
        "numbers-stay-locked",
        "a statement's lock of auto-increment numbers lasts until its transaction ends",
        &[Edit {
            file: AUTO_INCREMENT_LOCK,
            find: "        system.locks.release_row(&txn.holder, RowName { index, key: &[] });\n",
            replace: "            if !MUTANT {\n                \
                  system.locks.release_row(&txn.holder, RowName { index, key: &[] });\n            }\n",
        }],
        &["statements::numbers_are_locked"],
    ),
];
