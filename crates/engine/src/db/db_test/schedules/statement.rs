//! The statements of a script: how they are written, and what they do to the table `(id, k, u, v)`.

use crate::Upserted;
use crate::db::WriteTxn;
use crate::error::{Error, Result};
use crate::lock::{LockMode, LockWait};
use crate::raw::{RawRead, RawRow, RawSeek, RawTable};
use crate::table::{Changes, RowRef, Table, ValueRef};
use crate::txn::Savepoint;
use std::collections::HashMap;
use std::ops::{Bound, RangeBounds};
use std::time::Duration;

const COLUMNS: [&str; 4] = ["id", "k", "u", "v"];
/// The index of each column; a condition on `v` is a scan of the rows with a filter.
const INDEXES: [&str; 3] = ["PRIMARY", "k", "u"];
const V: usize = 3;

/// A short time to wait.
pub(super) const SHORT: Duration = Duration::from_millis(5);

type Parsed<T> = std::result::Result<T, String>;

/// The values of a row.
pub(super) type NewRow = [Option<u64>; COLUMNS.len()];

/// The rows that a statement is for: those whose column is between two values.
#[derive(Debug)]
pub(super) struct Condition {
    column: usize,
    low: Bound<u64>,
    high: Bound<u64>,
}

/// What an update sets: a column, a number, and whether it is added.
type Assignment = (usize, Option<u64>, bool);

/// How rows are read.
#[derive(Clone, Copy, Debug)]
struct Select {
    lock: LockMode,
    limit: usize,
    /// No more rows are asked for.
    take: usize,
    reverse: bool,
    one_by_one: bool,
}

impl Select {
    fn all(lock: LockMode) -> Select {
        Select { lock, limit: usize::MAX, take: usize::MAX, reverse: false, one_by_one: false }
    }
}

#[derive(Debug)]
enum Kind {
    Select(Condition, Select),
    Update(Condition, Vec<Assignment>),
    Delete(Condition),
    Insert(NewRow),
    Upsert(NewRow),
    Replace(NewRow),
    Savepoint(String),
    RollbackTo(String),
    Commit,
    Rollback,
}

/// A statement, and what it does about locks of others.
#[derive(Debug)]
pub(super) struct Statement {
    kind: Kind,
    wait: LockWait,
}

// ---- how they are written

/// `5 k=1 v=2`
pub(super) fn parse_row(words: &[&str]) -> Parsed<NewRow> {
    let (id, rest) = words.split_first().ok_or("a row begins with its id")?;
    let mut row = [Some(number(id)?), None, None, Some(0)];
    for word in rest {
        let (column, value, adds) = parse_assignment(word)?;
        if adds || column == 0 {
            return Err(format!("`{word}` is no value of a new row"));
        }
        row[column] = value;
    }
    Ok(row)
}

fn number(word: &str) -> Parsed<u64> {
    word.parse().map_err(|_| format!("`{word}` is not a number"))
}

fn column(name: &str) -> Parsed<usize> {
    COLUMNS.iter().position(|column| *column == name).ok_or_else(|| format!("`{name}` is not a column"))
}

/// `v=3`, `v+=1`, `k=null`
fn parse_assignment(word: &str) -> Parsed<Assignment> {
    let (name, value) = word.split_once('=').ok_or_else(|| format!("`{word}` is not an assignment"))?;
    let adds = name.ends_with('+');
    let value = if value == "null" { None } else { Some(number(value)?) };
    Ok((column(name.trim_end_matches('+'))?, value, adds))
}

/// `id=5`, `k>=3 k<6`, `all`; returns the words after it.
fn parse_condition<'w>(words: &'w [&'w str]) -> Parsed<(Condition, &'w [&'w str])> {
    let mut found = Condition { column: 0, low: Bound::Unbounded, high: Bound::Unbounded };
    if words.first() == Some(&"all") {
        return Ok((found, &words[1..]));
    }
    let mut count = 0;
    for word in words {
        let Some(at) = word.find(['<', '>', '=']) else { break };
        let of = column(&word[..at])?;
        if count > 0 && of != found.column {
            return Err("the conditions of a statement are on one column".to_string());
        }
        found.column = of;
        let value = number(word[at..].trim_start_matches(['<', '>', '=']))?;
        match &word[at..word.len() - value.to_string().len()] {
            "=" => (found.low, found.high) = (Bound::Included(value), Bound::Included(value)),
            ">" => found.low = Bound::Excluded(value),
            ">=" => found.low = Bound::Included(value),
            "<" => found.high = Bound::Excluded(value),
            "<=" => found.high = Bound::Included(value),
            other => return Err(format!("`{other}` is not a comparison")),
        }
        count += 1;
    }
    match count {
        0 => Err("a condition is missing: `all`, `id=5`, `k>=3 k<6`".to_string()),
        _ => Ok((found, &words[count..])),
    }
}

fn parse_update(words: &[&str]) -> Parsed<Kind> {
    let (condition, rest) = parse_condition(words)?;
    match rest {
        ["set", first, others @ ..] => {
            let assignments = std::iter::once(first).chain(others).map(|word| parse_assignment(word));
            Ok(Kind::Update(condition, assignments.collect::<Parsed<_>>()?))
        }
        _ => Err("an update needs `set COLUMN=NUMBER`".to_string()),
    }
}

fn parse_select(words: &[&str]) -> Parsed<Kind> {
    let (condition, mut rest) = parse_condition(words)?;
    let mut select = Select::all(LockMode::None);
    loop {
        rest = match rest {
            [] => return Ok(Kind::Select(condition, select)),
            ["for", "update", rest @ ..] => (rest, select.lock = LockMode::Exclusive).0,
            ["for", "share", rest @ ..] => (rest, select.lock = LockMode::Shared).0,
            ["desc", rest @ ..] => (rest, select.reverse = true).0,
            ["one-by-one", rest @ ..] => (rest, select.one_by_one = true).0,
            ["limit", count, rest @ ..] => (rest, select.limit = number(count)? as usize).0,
            ["take", count, rest @ ..] => (rest, select.take = number(count)? as usize).0,
            [word, ..] => return Err(format!("`{word}` is no part of a select")),
        }
    }
}

impl Statement {
    pub(super) fn parse(text: &str) -> Parsed<Statement> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (words, wait) = match &words[..] {
            [words @ .., "nowait"] => (words, LockWait::NoWait),
            [words @ .., "skip", "locked"] => (words, LockWait::SkipLocked),
            [words @ .., "timeout"] => (words, LockWait::Timeout(SHORT)),
            words => (words, LockWait::Default),
        };
        let kind = match words {
            ["commit"] => Kind::Commit,
            ["rollback"] => Kind::Rollback,
            ["savepoint", name] => Kind::Savepoint(name.to_string()),
            ["rollback", "to", name] => Kind::RollbackTo(name.to_string()),
            ["insert", row @ ..] => Kind::Insert(parse_row(row)?),
            ["upsert", row @ ..] => Kind::Upsert(parse_row(row)?),
            ["replace", row @ ..] => Kind::Replace(parse_row(row)?),
            ["select", rest @ ..] => parse_select(rest)?,
            ["update", rest @ ..] => parse_update(rest)?,
            ["delete", rest @ ..] => match parse_condition(rest)? {
                (condition, []) => Kind::Delete(condition),
                (_, [word, ..]) => return Err(format!("`{word}` is no part of a delete")),
            },
            _ => return Err(format!("`{text}` is not a statement")),
        };
        Ok(Statement { kind, wait })
    }

    /// Whether its waits end by themselves.
    pub(super) fn times_out(&self) -> bool {
        matches!(self.wait, LockWait::Timeout(_))
    }

    /// Whether it makes no sense outside of a transaction.
    pub(super) fn needs_transaction(&self) -> bool {
        matches!(self.kind, Kind::Commit | Kind::Rollback | Kind::Savepoint(_) | Kind::RollbackTo(_))
    }
}

// ---- what they do

fn value(value: Option<u64>) -> ValueRef<'static> {
    value.map_or(ValueRef::Null, ValueRef::UInt)
}

/// The values of a row.
pub(super) fn values_of(row: &NewRow) -> [ValueRef<'static>; COLUMNS.len()] {
    row.map(value)
}

fn rows(count: u64) -> String {
    if count == 1 { "1 row".to_string() } else { format!("{count} rows") }
}

/// A row as answers show it: its id and what is not NULL or 0 otherwise.
fn shown(row: &NewRow) -> String {
    let columns = COLUMNS.iter().zip(row).enumerate().skip(1);
    let others = columns.filter_map(|(i, (name, value))| value.filter(|value| i != V || *value > 0).map(|v| (name, v)));
    let id = row[0].unwrap_or_default().to_string();
    others.fold(id, |text, (name, value)| format!("{text} {name}={value}"))
}

fn columns_of(row: RowRef<'_>) -> NewRow {
    std::array::from_fn(|i| (!row.is_null(i)).then(|| row.u64(i)))
}

fn assign(assignments: &[Assignment], old: RowRef<'_>, set: &mut Changes<'_>) {
    for (column, number, adds) in assignments {
        let before = if *adds { old.u64(*column) } else { 0 };
        set.put(*column, value(number.map(|number| number + before)));
    }
}

/// What a session keeps of its transaction.
pub(super) struct Running<'t> {
    pub(super) table: &'t Table,
    pub(super) txn: &'t mut Option<WriteTxn>,
    pub(super) savepoints: &'t mut HashMap<String, Savepoint>,
}

impl Running<'_> {
    /// Runs a statement; returns its answer.
    pub(super) fn run(&mut self, statement: &Statement) -> Result<String> {
        let ended = || Error::Usage("the transaction has ended".to_string());
        let ok = |()| "ok".to_string();
        match statement.kind {
            Kind::Commit => return self.txn.take().ok_or_else(ended)?.commit().map(ok),
            Kind::Rollback => return self.txn.take().ok_or_else(ended)?.rollback().map(ok),
            _ => {}
        }
        let (table, txn, wait) = (self.table, self.txn.as_mut().ok_or_else(ended)?, statement.wait);
        match &statement.kind {
            Kind::Savepoint(name) => {
                self.savepoints.insert(name.clone(), txn.savepoint());
                Ok(ok(()))
            }
            Kind::RollbackTo(name) => {
                let none = || Error::Usage(format!("there is no savepoint {name}"));
                txn.rollback_to(*self.savepoints.get(name).ok_or_else(none)?).map(ok)
            }
            Kind::Select(condition, select) => {
                let found: Vec<String> = condition.find(*select, wait, txn, table)?.iter().map(shown).collect();
                Ok(if found.is_empty() { "none".to_string() } else { found.join(", ") })
            }
            write => {
                txn.set_lock_wait(wait);
                let done = write.run_write(txn, table);
                txn.set_lock_wait(LockWait::Default);
                done
            }
        }
    }
}

impl Kind {
    fn run_write(&self, txn: &mut WriteTxn, table: &Table) -> Result<String> {
        let change = |txn: &mut WriteTxn, key: &[ValueRef<'_>]| match self {
            Kind::Update(_, set) => txn.modify(table, key, |old, new| assign(set, old, new)),
            _ => txn.delete(table, key),
        };
        match self {
            Kind::Insert(row) => txn.insert(table, &values_of(row)).map(|_| "ok".to_string()),
            Kind::Replace(row) => {
                txn.replace(table, &values_of(row)).map(|replaced| format!("ok, {} deleted", replaced.deleted))
            }
            Kind::Upsert(row) => {
                let done = txn.upsert(table, &values_of(row), |_, set| set.put(V, value(row[V])))?;
                Ok(if matches!(done, Upserted::Changed) { "changed" } else { "inserted" }.to_string())
            }
            Kind::Update(condition, _) | Kind::Delete(condition) => {
                if let Some(id) = condition.id() {
                    return change(txn, &[ValueRef::UInt(id)]).map(|found| rows(u64::from(found)));
                }
                // As a server does: a locking scan, then a change of each row.
                txn.statement(|txn| {
                    let found = condition.find(Select::all(LockMode::Exclusive), LockWait::Default, txn, table)?;
                    found.iter().try_for_each(|row| change(txn, &[value(row[0])]).map(drop))?;
                    Ok(rows(found.len() as u64))
                })
            }
            _ => Ok(String::new()),
        }
    }
}

impl Condition {
    /// The id, if it is one of a single row.
    fn id(&self) -> Option<u64> {
        match (self.column, self.low, self.high) {
            (0, Bound::Included(low), Bound::Included(high)) if low == high => Some(low),
            _ => None,
        }
    }

    fn find(&self, select: Select, wait: LockWait, txn: &mut WriteTxn, table: &Table) -> Result<Vec<NewRow>> {
        if let Some(id) = self.id() {
            let found = txn.get_locked(table, &[ValueRef::UInt(id)], select.lock, wait)?;
            return Ok(found.iter().map(|row| columns_of(row.as_ref())).collect());
        }
        if self.column == V {
            return self.filter(select.lock, txn, table);
        }
        let [low, high] = [self.low, self.high].map(|edge| match edge {
            Bound::Included(value) | Bound::Excluded(value) => [ValueRef::UInt(value)],
            Bound::Unbounded => [ValueRef::Null],
        });
        let mut scan = txn.scan(table).index(INDEXES[self.column]).limit(select.limit);
        scan = match self.low {
            Bound::Included(_) => scan.from(&low),
            Bound::Excluded(_) => scan.from_exclusive(&low),
            Bound::Unbounded => scan,
        };
        scan = match self.high {
            Bound::Included(_) => scan.to(&high),
            Bound::Excluded(_) => scan.to_exclusive(&high),
            Bound::Unbounded => scan,
        };
        scan = match select.lock {
            LockMode::None => scan,
            LockMode::Shared => scan.for_share(),
            LockMode::Exclusive => scan.for_update(),
        };
        scan = match wait {
            LockWait::Default => scan,
            LockWait::NoWait => scan.nowait(),
            LockWait::SkipLocked => scan.skip_locked(),
            LockWait::Timeout(timeout) => scan.lock_timeout(timeout),
        };
        scan = if select.reverse { scan.rev() } else { scan };
        scan = if select.one_by_one { scan.one_by_one() } else { scan };
        scan.iter()?.take(select.take).map(|row| row.map(|row| columns_of(row.as_ref()))).collect()
    }

    /// As a server does without an index: it looks at each row, locked, and unlocks those that it does not want.
    fn filter(&self, lock: LockMode, txn: &mut WriteTxn, table: &Table) -> Result<Vec<NewRow>> {
        let raw = RawTable::from(table.clone());
        let mut cursor = raw.cursor(INDEXES[0], RawRead { lock, ..RawRead::default() });
        let (mut found, mut row) = (Vec::new(), RawRow::default());
        let mut is_at_row = cursor.seek(txn, RawSeek::AtLeast, &[])?;
        while is_at_row {
            cursor.read_row(&mut row)?;
            let columns = row.typed().map(columns_of).unwrap_or_default();
            if columns[V].is_some_and(|v| (self.low, self.high).contains(&v)) {
                found.push(columns);
            } else if lock != LockMode::None {
                let key = cursor.key().unwrap_or_default().to_vec();
                raw.unlock(txn, &key)?;
            }
            is_at_row = cursor.next(txn)?;
        }
        Ok(found)
    }
}
