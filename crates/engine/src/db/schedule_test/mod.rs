//! Schedules of sessions: who waits for whom, who is refused, what each one sees. The schedules are scripts, one for
//! each subject, in the text files of this folder; `HIGHWATER_WRITE=1` writes the answers that they get into them.
//!
//! A script has schedules, each with its table `t (id primary key, k index, u unique, v)`:
//!
//! ```text
//! # What the schedule shows.
//! schedule a writer waits for a writer
//! levels RC RR                        the levels at which it is played, RR by default; of RU RC RR SER
//! rows 1 k=10, 5 v=7, 20..29          k and u are NULL by default, v is 0
//! T1 T2: begin
//! T1: update id=5 set v=1             -> 1 row
//! T2: update id=5 set v+=1            -> waits for T1
//! T1: commit                          -> ok; T2: 1 row
//! T2: commit                          -> ok
//! T3: select id=5                     -> 5 v=2
//! ```
//!
//! | step | |
//! |---|---|
//! | `begin [LEVEL] [snapshot] [first-committer-wins] [timeout]` | several sessions may. `snapshot`: its view is of the begin; `timeout`: its waits end after some milliseconds |
//! | `select WHERE [for update, for share] [desc] [limit N] [take N] [one-by-one]` | `WHERE`: `all`, or comparisons of one column: `id=5`, `k>=10 k<20`. The column is the index; on `v` all rows are looked at, and those that are not wanted are unlocked. `take`: no more rows are asked for |
//! | `update WHERE set v=1 k+=2 u=null`, `delete WHERE` | |
//! | `insert 5 k=1`, `upsert 5 v=1`, `replace 5 u=1` | an upsert changes `v` of its duplicate |
//! | `commit`, `rollback`, `savepoint NAME`, `rollback to NAME` | |
//! | `... nowait`, `... skip locked`, `... timeout` | after any statement |
//! | `interrupt T1` | |
//! | `locks`, `purge` | the explicit row locks and the requests for them; a wait until nothing is left to purge |
//!
//! Rules
//! 1. An answer says what came of the step's statement, then, after `;`, of those that have waited and continue. Where
//!    levels differ, an answer for each group of levels follows. A session without a transaction autocommits.
//! 2. A step begins when each session is idle or parked for a lock. That is known by events, not by time: a session's
//!    thread tells when a wait begins and ends (`observe_lock_waits`), the list of locks shows that no row with waiters
//!    is free, and the list of waiters that nothing was granted to them. If no event came meanwhile, no thread runs.
//! 3. A step lets at most one transaction continue that another one of those could wait for: else their order is not
//!    the script's.
//! 4. At the end of a schedule no statement waits, no transaction is open, and the lock system is empty; at the end of
//!    a script nothing is left to purge and the database passes its check. What breaks this, as a step that cannot be
//!    read, is an error with file and line.

mod player;
mod script;
mod statement;

use player::Player;
use script::Schedule;
use std::fmt::Write;
use std::path::Path;

/// What is wrong with a script, as text; and the script as it would be right.
fn play(path: &str, text: &str) -> (String, String) {
    let schedules = match script::parse(text) {
        Ok(schedules) => schedules,
        Err((line, wrong)) => return (format!("{path}:{line}: {wrong}\n"), text.to_string()),
    };
    let (mut player, mut findings, mut answered) = (Player::new(), String::new(), Vec::new());
    for schedule in &schedules {
        let mut played: Vec<Vec<String>> = Vec::new();
        for level in &schedule.levels {
            let (answers, result) = player.play(schedule, *level);
            if let Err((line, wrong)) = result {
                let _ = writeln!(findings, "{path}:{line}: {wrong}, at {}", script::short(*level));
            }
            played.push(answers);
        }
        let steps = played.iter().map(Vec::len).min().unwrap_or(0);
        let of_step = |at: usize| played.iter().map(|answers| &answers[at][..]).collect::<Vec<_>>();
        let answers = (0..steps).map(|at| script::merge(&schedule.levels, &of_step(at))).collect();
        findings += &differences(path, schedule, &answers);
        answered.push((schedule, answers));
    }
    player.check();
    (findings, script::rewrite(text, &answered))
}

/// A schedule with the answers expected (`-`) and got (`+`), if they differ.
fn differences(path: &str, schedule: &Schedule, answers: &Vec<Vec<String>>) -> String {
    let (mut text, mut first) = (String::new(), None);
    for (step, answers) in schedule.steps.iter().zip(answers) {
        if *answers == step.answers {
            let _ = writeln!(text, "  {}", step.with(answers).replace('\n', "\n  "));
        } else {
            first = first.or(Some(step.line));
            let _ = writeln!(text, "- {}", step.with(&step.answers).replace('\n', "\n- "));
            let _ = writeln!(text, "+ {}", step.with(answers).replace('\n', "\n+ "));
        }
    }
    first.map_or(String::new(), |line| format!("{path}:{line}: {}\n{text}", schedule.name))
}

fn check(name: &str) {
    let path = format!("src/db/schedule_test/{name}.txt");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(&path);
    let (findings, right) = play(&path, &std::fs::read_to_string(&file).unwrap());
    if std::env::var_os("HIGHWATER_WRITE").is_some() {
        std::fs::write(&file, right).unwrap();
    }
    assert!(findings.is_empty(), "answers differ (-: the script's); HIGHWATER_WRITE=1 writes these\n{findings}");
}

#[test]
fn row_locks() {
    check("row_locks");
}

#[test]
fn ranges() {
    check("ranges");
}

#[test]
fn deadlocks() {
    check("deadlocks");
}

#[test]
fn nowait_and_skip_locked() {
    check("nowait_and_skip_locked");
}

#[test]
fn levels() {
    check("levels");
}
