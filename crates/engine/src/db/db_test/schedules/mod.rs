//! Schedules of sessions: which session waits for which, which is refused, what each one sees. The schedules are
//! scripts, one for each subject, in the text files of this folder; `HIGHWATER_WRITE=1` writes the answers that they
//! get into them.
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
//! Steps
//! - `begin [LEVEL] [snapshot] [first-committer-wins] [timeout]`, of several sessions too. `snapshot`: the view is of
//!   the begin; `timeout`: waits end after some milliseconds.
//! - `select WHERE [for update | for share] [desc] [limit N] [take N] [one-by-one]`, `delete WHERE`,
//!   `update WHERE set v=1 k+=2 u=null`. `WHERE` is `all` or comparisons of one column, as `k>=10 k<20`, and the column
//!   is the index; for `v` all rows are looked at, those that are not wanted are unlocked, and of the options of a
//!   `select` only `for update` and `for share` count. `take`: no more rows are asked for.
//! - `insert 5 k=1`, `upsert 5 v=1` (changes `v` of its duplicate), `replace 5 u=1`
//! - `commit`, `rollback`, `savepoint NAME`, `rollback to NAME`
//! - `nowait`, `skip locked` and `timeout` after a statement
//! - `interrupt T1`; `locks`: explicit row locks and requests for them; `purge`: waits until nothing is left to purge
//!
//! Rules
//! 1. An answer is the outcome of the step's statement and, after `;`, of statements that have waited and continue.
//!    Where levels differ, an answer for each group of levels follows. A session without a transaction autocommits.
//! 2. A step begins when each session is idle or parked for a lock. That is known by events, not by time: a session's
//!    thread tells when a wait begins and ends (`observe_lock_waits`), the list of locks shows that no row with waiters
//!    is free, and the list of waiters that nothing was granted to them. If no event came meanwhile, no thread runs.
//! 3. Transactions that continue after the same step do not conflict with each other: otherwise their order would be
//!    that of their threads.
//! 4. At the end of a schedule no statement waits, no transaction is open, and the lock system is empty; at the end of
//!    a script nothing is left to purge and the database passes its check. A schedule that breaks this, or a step that
//!    cannot be read, is named with file and line.

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
    'schedules: for schedule in &schedules {
        let mut played: Vec<Vec<String>> = Vec::new();
        for level in &schedule.levels {
            let (answers, result) = player.play(schedule, *level);
            if let Err((line, wrong)) = result {
                let _ = writeln!(findings, "{path}:{line}: {wrong}, at {}", script::short(*level));
                if wrong == player::HANGS {
                    break 'schedules;
                }
            }
            played.push(answers);
        }
        let steps = played.iter().map(Vec::len).min().unwrap_or(0);
        let of_step = |at: usize| played.iter().map(|answers| &answers[at][..]).collect::<Vec<_>>();
        let answers = (0..steps).map(|at| script::merge(&schedule.levels, &of_step(at))).collect();
        findings += &differences(path, schedule, &answers);
        answered.push((schedule, answers));
    }
    if findings.is_empty() {
        player.check();
    }
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
    let path = format!("src/db/db_test/schedules/{name}.txt");
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

/// What is wrong with a script is named with its file and line.
#[test]
fn wrong_scripts() {
    let waits = "schedule s\nrows 1\nT1 T2: begin\nT2: delete id=1 -> 1 row\nT1: delete id=1 -> waits for T2\n";
    for (text, wrong) in [
        ("T1: begin", "1: a script begins with `schedule NAME`"),
        ("schedule s\nlevels RX", "2: `RX` is not a level"),
        ("schedule s\nrows x", "2: `x` is not a number"),
        ("schedule s\n-> 1 row", "2: an answer without a step"),
        ("schedule s\nT1 begin", "2: `T1 begin` is not a step: `T1: STATEMENT`"),
        ("schedule s\nS1: begin", "2: `S1` is not a session: T1, T2 and so on"),
        ("schedule s\nT1: begin XX", "2: `XX` is no option of a transaction"),
        ("schedule s\n# a comment\nT1: bgin", "3: `bgin` is not a statement"),
        ("schedule s\nT1: select x=1", "2: `x` is not a column"),
        ("schedule s\nT1: select id=1 for ever", "2: `for` is no part of a select"),
        ("schedule s\nT1: update id=1", "2: an update needs `set COLUMN=NUMBER`"),
        ("schedule s\nT1: commit", "2: T1 has no transaction, at RR"),
        ("schedule s\ninterrupt T1", "2: T1 has no transaction, at RR"),
        ("schedule s\nT1: begin\nT1: begin", "3: T1 has begun in line 2, at RR"),
        ("schedule s\nT1: begin", "2: the transaction of T1 is left open, at RR"),
        (&format!("{waits}T2: commit"), "3: the transaction of T1 is left open, at RR"),
        (&format!("{waits}T1: commit"), "6: T1 still waits in line 5, at RR"),
        (waits, "5: T1 waits until the end of the schedule, at RR"),
    ] {
        let found = play("x", text).0;
        assert!(found.starts_with(&format!("x:{wrong}\n")), "{text}\n{found}");
    }
}

/// Answers that differ are shown among those that do not, and the script that is written back has the right ones.
#[test]
fn wrong_answers() {
    let head = "# Comment.\nschedule s\nlevels RC RR\nrows 1\nT1: begin\n";
    let steps = "T1: select id=1 -> 2\nT2: delete id=1 -> 1 row\nT1: select id=1\n   -> none\nT1: commit -> ok\n";
    let column = |step: &str, answer: &str| format!("{step:<44}-> {answer}\n");
    let (first, deletion) = (column("T1: select id=1", "1"), column("T2: delete id=1", "1 row"));
    let (last, end) = (column("T1: select id=1", "RC: none") + &column("", "RR: 1"), column("T1: commit", "ok"));
    let (found, right) = play("x", &format!("{head}{steps}"));
    let words = |line: &str| line.split_whitespace().map(str::to_string).collect::<Vec<_>>();
    for line in ["- T1: select id=1 -> 2", "+ T1: select id=1 -> 1", "- T1: select id=1 -> none", "+ -> RR: 1"] {
        assert!(found.lines().any(|other| words(other) == words(line)), "{found}");
    }
    assert!(found.starts_with("x:6: s\n  T1: begin\n- T1: select id=1"), "{found}");
    assert_eq!(right, format!("{head}{first}{deletion}{last}{end}"));
    assert_eq!(play("x", &right), (String::new(), right));
}
