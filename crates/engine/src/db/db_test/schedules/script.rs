//! A script: its schedules, read from text and written back with other answers. The language is at the head of
//! `mod.rs`.

use super::statement::{NewRow, SHORT, Statement, parse_row};
use crate::txn::{Isolation, TxnOptions};
use std::sync::Arc;

/// Where answers begin in a line.
const ANSWER_COLUMN: usize = 44;

/// An error of a script: the line, from 1, and what is wrong.
pub(super) type Wrong = (usize, String);

/// What a step does.
#[derive(Debug)]
pub(super) enum Action {
    /// Sessions begin transactions, at a level of their own or the schedule's.
    Begin(Vec<String>, Option<Isolation>, TxnOptions),
    /// A session runs a statement.
    Run(String, Arc<Statement>),
    /// The statement of a session is interrupted.
    Interrupt(String),
    /// The list of row locks.
    Locks,
    /// Waits until nothing is left to purge.
    Purge,
}

/// A step, and its answers: one, or one for each group of levels. The lines are those of the script, from 1.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) line: usize,
    text: String,
    pub(super) action: Action,
    pub(super) answers: Vec<String>,
    answer_lines: usize,
}

impl Step {
    /// The step with these answers.
    pub(super) fn with(&self, answers: &[String]) -> String {
        let Some((first, rest)) = answers.split_first() else { return self.text.clone() };
        let first = format!("{:<ANSWER_COLUMN$}-> {first}", self.text.clone() + " ");
        rest.iter().fold(first, |text, answer| text + &format!("\n{:ANSWER_COLUMN$}-> {answer}", ""))
    }
}

/// A schedule: it is played once for each of its levels, on a table of these rows.
#[derive(Debug)]
pub(super) struct Schedule {
    pub(super) line: usize,
    pub(super) name: String,
    pub(super) levels: Vec<Isolation>,
    pub(super) rows: Vec<NewRow>,
    pub(super) steps: Vec<Step>,
}

/// The short name of a level.
pub(super) fn short(level: Isolation) -> &'static str {
    match level {
        Isolation::ReadUncommitted => "RU",
        Isolation::ReadCommitted => "RC",
        Isolation::RepeatableRead => "RR",
        Isolation::Serializable => "SER",
    }
}

fn level(name: &str) -> Option<Isolation> {
    Isolation::ALL.into_iter().find(|level| short(*level) == name)
}

/// The schedules of a script.
pub(super) fn parse(text: &str) -> Result<Vec<Schedule>, Wrong> {
    let mut schedules: Vec<Schedule> = Vec::new();
    for (line, text) in text.lines().enumerate().map(|(at, text)| (at + 1, text)) {
        if text.trim().is_empty() || text.starts_with('#') {
            continue;
        }
        let last = schedules.last_mut();
        let parsed = match (text.split_once(' ').unwrap_or((text, "")), last) {
            (("schedule", name), _) => {
                let (levels, rows, steps) = (vec![Isolation::RepeatableRead], Vec::new(), Vec::new());
                schedules.push(Schedule { line, name: name.to_string(), levels, rows, steps });
                Ok(())
            }
            (_, None) => Err("a script begins with `schedule NAME`".to_string()),
            ((word @ ("levels" | "rows"), rest), Some(schedule)) if schedule.steps.is_empty() => {
                schedule.parse_setting(word, rest)
            }
            (_, Some(schedule)) => schedule.parse_step(line, text),
        };
        parsed.map_err(|wrong| (line, wrong))?;
    }
    Ok(schedules)
}

impl Schedule {
    fn parse_setting(&mut self, word: &str, rest: &str) -> Result<(), String> {
        if word == "levels" {
            let levels = rest.split_whitespace().map(|name| level(name).ok_or(format!("`{name}` is not a level")));
            self.levels = levels.collect::<Result<_, _>>()?;
            return Ok(());
        }
        for row in rest.split(',') {
            match row.trim().split_once("..") {
                Some((first, last)) => {
                    let [first, last] = [first, last].map(|number| number.parse::<u64>().map_err(|_| row.to_string()));
                    self.rows.extend((first?..=last?).map(|id| [Some(id), None, None, Some(0)]));
                }
                None => self.rows.push(parse_row(&row.split_whitespace().collect::<Vec<_>>())?),
            }
        }
        Ok(())
    }

    fn parse_step(&mut self, line: usize, text: &str) -> Result<(), String> {
        let (text, answer) = text.split_once("->").map_or((text, None), |(text, answer)| (text, Some(answer)));
        let text = text.trim_end();
        if text.is_empty() {
            let step = self.steps.last_mut().ok_or("an answer without a step")?;
            step.answer_lines += 1;
            step.answers.extend(answer.map(|answer| answer.trim().to_string()));
            return Ok(());
        }
        let action = parse_action(text)?;
        let answers = answer.iter().map(|answer| answer.trim().to_string()).collect();
        self.steps.push(Step { line, text: text.to_string(), action, answers, answer_lines: 1 });
        Ok(())
    }
}

fn parse_action(text: &str) -> Result<Action, String> {
    match text {
        "locks" => return Ok(Action::Locks),
        "purge" => return Ok(Action::Purge),
        _ => {}
    }
    if let Some(session) = text.strip_prefix("interrupt ") {
        return Ok(Action::Interrupt(session.to_string()));
    }
    let is_name =
        |name: &&str| name.len() > 1 && name.starts_with('T') && name[1..].bytes().all(|b| b.is_ascii_digit());
    let (sessions, statement) = text.split_once(": ").ok_or(format!("`{text}` is not a step: `T1: STATEMENT`"))?;
    let sessions: Vec<&str> = sessions.split(' ').collect();
    if let Some(wrong) = sessions.iter().find(|name| !is_name(name)) {
        return Err(format!("`{wrong}` is not a session: T1, T2 and so on"));
    }
    match (statement.strip_prefix("begin"), &sessions[..]) {
        (Some(options), _) => parse_begin(&sessions, options),
        (None, [session]) => Ok(Action::Run(session.to_string(), Arc::new(Statement::parse(statement)?))),
        (None, _) => Err("several sessions can begin in one step, not more".to_string()),
    }
}

fn parse_begin(sessions: &[&str], words: &str) -> Result<Action, String> {
    let (mut at, mut options) = (None, TxnOptions::default());
    for word in words.split_whitespace() {
        match (level(word), word) {
            (Some(level), _) => at = Some(level),
            (None, "first-committer-wins") => options.first_committer_wins = true,
            (None, "snapshot") => options.snapshot_at_begin = true,
            (None, "timeout") => options.lock_wait_timeout_ms = Some(SHORT.as_millis() as u64),
            _ => return Err(format!("`{word}` is no option of a transaction")),
        }
    }
    Ok(Action::Begin(sessions.iter().map(|name| name.to_string()).collect(), at, options))
}

/// The answers of a step as the script has them, from those at each level.
pub(super) fn merge(levels: &[Isolation], answers: &[&str]) -> Vec<String> {
    let mut groups: Vec<(String, &str)> = Vec::new();
    for (level, answer) in levels.iter().zip(answers) {
        match groups.iter_mut().find(|(_, other)| other == answer) {
            Some((names, _)) => names.extend([" ", short(*level)]),
            None => groups.push((short(*level).to_string(), answer)),
        }
    }
    match &groups[..] {
        [(_, "")] => Vec::new(),
        [(_, answer)] => vec![answer.to_string()],
        _ => groups.iter().map(|(names, answer)| format!("{names}: {answer}")).collect(),
    }
}

/// The script with these answers of its schedules.
pub(super) fn rewrite(text: &str, answered: &[(&Schedule, Vec<Vec<String>>)]) -> String {
    let mut lines: Vec<Option<String>> = text.lines().map(|line| Some(line.to_string())).collect();
    for (schedule, answers) in answered {
        for (step, answers) in schedule.steps.iter().zip(answers) {
            let at = step.line - 1;
            lines[at..at + step.answer_lines].fill(None);
            lines[at] = Some(step.with(answers));
        }
    }
    lines.into_iter().flatten().fold(String::new(), |text, line| text + &line + "\n")
}
