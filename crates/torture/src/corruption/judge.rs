//! Trials of a database with damaged files.

use super::damage::{Damage, damaged};
use super::database::{Row, Rows, Small};
use highwater::internals::{DeterministicDb, OpenOverrides};
use highwater::{CheckReport, Database, Error, Options};
use highwater_storage::StorageSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// The result of an opening, a check and reads of everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing was found, and every row is right.
    Silent,
    /// Nothing was found, and the rows are those after an earlier commit: how many commits are missing.
    Earlier(usize),
    /// The database did not open, or a call returned an error, or the check had a finding; all rows that were read are
    /// right. The messages, a line each.
    Reported(Vec<String>),
    /// Rows are wrong, and only the check reports damage: its findings, a line each.
    CheckOnly(Vec<String>),
    /// A panic, or wrong rows without a report.
    Wrong(String),
}

/// Opens the database with this damage, checks it and reads everything.
pub(super) fn judge(small: &Small, damages: &[Damage]) -> Verdict {
    let outcome = catch_unwind(AssertUnwindSafe(|| open_and_read(small, damages)));
    outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
        Verdict::Wrong(format!("a panic: {}", text.unwrap_or_default()))
    })
}

/// Opens a database without threads, which is deterministic and fast.
fn open(set: StorageSet, options: &Options) -> Result<DeterministicDb, Error> {
    let options = Options { create_if_missing: false, ..options.clone() };
    let overrides = OpenOverrides { recovery_threads: 1, finding_threads: 1, ..OpenOverrides::default() };
    DeterministicDb::open(set, options, &overrides, Arc::new(AtomicU64::new(0)))
}

fn open_and_read(small: &Small, damages: &[Damage]) -> Verdict {
    let opened = damaged(&small.files, damages).map_err(Error::from).and_then(|set| open(set, &small.options));
    let db = match opened {
        Ok(db) => db,
        Err(error) => return reported(vec![error.to_string()]),
    };
    let db = db.database();
    let mut said = Vec::new();
    match db.check() {
        Ok(CheckReport { findings, .. }) => said.extend(findings.iter().map(ToString::to_string)),
        Err(error) => said.push(error.to_string()),
    }
    let by_check = said.len();
    let read = READS.iter().map(|how| read(db, *how)).collect::<Vec<_>>();
    said.extend(read.iter().filter_map(|rows| rows.as_ref().err().map(ToString::to_string)));
    let fits = |answer: &Answer| {
        let mut pairs = answer.0.iter().zip(&read);
        pairs.all(|(expected, rows)| rows.as_ref().map_or(true, |rows| rows == expected))
    };
    let earlier = small.answers.iter().rev().position(fits);
    match (earlier, said.is_empty()) {
        (Some(0), true) => Verdict::Silent,
        (Some(missing), true) => Verdict::Earlier(missing),
        (Some(_), false) => reported(said),
        (None, _) if by_check > 0 => Verdict::CheckOnly(said),
        (None, _) => Verdict::Wrong(format!("wrong rows; errors: {said:?}")),
    }
}

/// The verdict of these messages. A panic of a background thread, which stops the database, is not a report.
fn reported(said: Vec<String>) -> Verdict {
    match said.iter().find(|text| text.contains("panicked")) {
        Some(text) => Verdict::Wrong(text.clone()),
        None => Verdict::Reported(said),
    }
}

/// A way of reading everything: the index and the direction.
#[derive(Clone, Copy)]
struct Read {
    index: &'static str,
    backward: bool,
}

const READS: [Read; 4] = [
    Read { index: "PRIMARY", backward: false },
    Read { index: "PRIMARY", backward: true },
    Read { index: "by_name", backward: false },
    Read { index: "by_code", backward: false },
];

fn read(db: &Database, how: Read) -> Result<Vec<(u64, Row)>, Error> {
    let table = db.table("person")?;
    let mut snapshot = db.snapshot()?;
    let scan = snapshot.scan(&table).index(how.index);
    let rows = if how.backward { scan.rev().iter()? } else { scan.iter()? };
    rows.map(|row| {
        let row = row?;
        let code = (!row.is_null(2)).then(|| row.i64(2) as i32);
        Ok((row.u64(0), (row.str(1).to_string(), code, row.str(3).to_string())))
    })
    .collect()
}

/// The expected result of each of [`READS`].
pub(super) struct Answer([Vec<(u64, Row)>; READS.len()]);

impl Answer {
    pub(super) fn of(rows: &Rows) -> Answer {
        Answer(READS.map(|how| expected(rows, how)))
    }
}

/// The rows in the order in which a read must return them.
fn expected(rows: &Rows, how: Read) -> Vec<(u64, Row)> {
    let mut all: Vec<_> = rows.iter().map(|(id, row)| (*id, row.clone())).collect();
    match how.index {
        "by_name" => all.sort_by(|(a, x), (b, y)| (&x.0, a).cmp(&(&y.0, b))),
        "by_code" => all.sort_by(|(a, x), (b, y)| (x.1, a).cmp(&(y.1, b))),
        _ => {}
    }
    if how.backward {
        all.reverse();
    }
    all
}
