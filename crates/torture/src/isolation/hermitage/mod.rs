//! The Hermitage table: the anomalies that each isolation level prevents, and the ways in which it does.
//!
//! | file | what |
//! |---|---|
//! | `script.rs` | the schedules, and the outcomes promised |
//! | `play.rs` | plays a schedule with a thread for each session |
//! | `embedded.rs`, `server.rs` | the same schedules on Highwater and, as SQL, on an engine of MariaDB |
//!
//! Rule: both subjects play the same data. Each schedule states its expected outcome, once for each subject; a test
//! plays them all, and the table in docs/design/isolation.md is made from the promises.

mod embedded;
mod play;
mod script;
mod server;

pub use embedded::Highwater;
pub use play::{Failed, Seen, Subject, play};
pub use script::{SCRIPTS, Script};
pub use server::{Server, ServerEngine};

use super::Setting;
use highwater_bench::Result;
use std::fmt::Write;

/// The outcome of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The anomaly.
    Occurs,
    /// No anomaly: the reads saw another version.
    Reads,
    /// No anomaly: a transaction waited for another.
    Waits,
    /// No anomaly: a transaction was a deadlock's victim.
    Deadlock,
    /// No anomaly: a transaction failed with a write conflict.
    Conflict,
    /// A transaction waited for too long.
    Timeout,
}

highwater_storage::names!(Outcome {
    Occurs => "occurs",
    Reads => "reads",
    Waits => "waits",
    Deadlock => "deadlock",
    Conflict => "conflict",
    Timeout => "timeout",
});

impl Outcome {
    /// The outcome of a play.
    pub fn of(script: &Script, seen: &Seen) -> Outcome {
        let has = |failed| seen.failed.values().any(|one| *one == failed);
        match () {
            () if (script.anomaly)(seen) => Outcome::Occurs,
            () if has(Failed::LockWaitTimeout) => Outcome::Timeout,
            () if has(Failed::WriteConflict) => Outcome::Conflict,
            () if has(Failed::Deadlock) => Outcome::Deadlock,
            () if !seen.waited.is_empty() => Outcome::Waits,
            () => Outcome::Reads,
        }
    }

    /// The outcomes that a script promises.
    pub fn promised(text: &str) -> Vec<Outcome> {
        text.split_whitespace().filter_map(Outcome::named).collect()
    }
}

/// The outcomes of a script, one for each setting in order.
pub type Line = Vec<Outcome>;

/// Plays every script under every setting; `promises` selects the promise of a script that the subject must keep.
///
/// # Errors
/// The subject's.
pub fn play_all<S: Subject>(subject: &mut S) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    for script in &SCRIPTS {
        let mut line = Line::new();
        for setting in Setting::ALL {
            line.push(Outcome::of(script, &play::play(subject, script, setting)?));
        }
        lines.push(line);
    }
    Ok(lines)
}

/// The outcomes that differ from the promised ones, a line of text each.
pub fn differences(lines: &[Line], promised: fn(&Script) -> &'static str) -> Vec<String> {
    let mut found = Vec::new();
    for (script, line) in SCRIPTS.iter().zip(lines) {
        let promised = Outcome::promised(promised(script));
        for ((setting, outcome), promise) in Setting::ALL.into_iter().zip(line).zip(&promised) {
            if outcome != promise {
                let (setting, outcome, promise) = (setting.name(), outcome.name(), promise.name());
                found.push(format!("{} under {setting}: {outcome}, not {promise}", script.name));
            }
        }
        if promised.len() != line.len() {
            found.push(format!("{}: {} outcomes, {} promised", script.name, line.len(), promised.len()));
        }
    }
    found
}

/// The outcomes as a table in Markdown.
pub fn table(lines: &[Line]) -> String {
    let mut text = String::from("| anomaly |");
    for setting in Setting::ALL {
        let _ = write!(text, " {} |", setting.name());
    }
    text.push_str("\n|---|");
    Setting::ALL.iter().for_each(|_| text.push_str("---|"));
    for (script, line) in SCRIPTS.iter().zip(lines) {
        let _ = write!(text, "\n| **{}**: {} |", script.name, script.what);
        for outcome in line {
            let _ = match outcome {
                Outcome::Occurs => write!(text, " **occurs** |"),
                prevented => write!(text, " {} |", prevented.name()),
            };
        }
    }
    text.push('\n');
    text
}

/// The table of the promised outcomes.
pub fn promised_table(promised: fn(&Script) -> &'static str) -> String {
    let lines: Vec<Line> = SCRIPTS.iter().map(|script| Outcome::promised(promised(script))).collect();
    table(&lines)
}

#[cfg(test)]
mod hermitage_test;
