//! The statements of a script: how they are written, and what they do to the table `(id, k, u, v)`.

use crate::db::WriteTxn;
use crate::error::{Error, Result};
use crate::lock::{LockMode, LockWait};
use crate::raw::{RawRead, RawRow, RawSeek, RawTable};
use crate::table::{Changes, Row, RowRef, Table, ValueRef};
use crate::txn::Savepoint;
use crate::Upserted;
use std::collections::HashMap;
use std::ops::{Bound, RangeBounds};

const COLUMNS: [&str; 4] = ["id", "k", "u", "v"];
/// The index of each column; a condition on `v` is a scan of the rows with a filter.
const INDEXES: [&str; 3] = ["PRIMARY", "k", "u"];
const V: usize = 3;

/// The values of a row.
pub(super) type NewRow = [Option<u64>; COLUMNS.len()];

/// The rows that a statement is for: those whose column is between two values.
#[derive(Debug)]
pub(super) struct Condition {
    column: usize,
    low: Bound<u64>,
    high: Bound<u64>,
}

impl Condition {
    fn point(&self) -> Option<u64> {
        match (self.low, self.high) {
            (Bound::Included(low), Bound::Included(high)) if low == high => Some(low),
            _ => None,
        }
    }

    fn has(&self, value: u64) -> bool {
        (self.low, self.high).contains(&value)
    }
}

/// What an update sets: a column, a number, and whether it is added.
type Assignment = (usize, Option<u64>, bool);

#[derive(Clone, Copy, Debug)]
struct Select {
    lock: LockMode,
    limit: usize,
    /// As many rows are asked for.
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
enum What {
    Select(Select),
    Update(Vec<Assignment>),
    Delete,
}

#[derive(Debug)]
enum Kind {
    Rows(Condition, What),
    Insert(NewRow),
    Upsert(NewRow),
    Replace(NewRow),
    Savepoint(String),
    RollbackTo(String),
    Commit,
    Rollback,
}

/// A statement, and what it does about locks of others if not what its transaction does.
#[derive(Debug)]
pub(super) struct Statement {
    kind: Kind,
    wait: Option<LockWait>,
}

// ---- how they are written

/// `5 k=1 v=2`
pub(super) fn parse_row(words: &[&str]) -> std::result::Result<NewRow, String> {
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

fn number(word: &str) -> std::result::Result<u64, String> {
    word.parse().map_err(|_| format!("`{word}` is no number"))
}

fn column(name: &str) -> std::result::Result<usize, String> {
    COLUMNS.iter().position(|column| *column == name).ok_or_else(|| format!("`{name}` is no column"))
}

/// `v=3`, `v+=1`, `k=null`
fn parse_assignment(word: &str) -> std::result::Result<Assignment, String> {
    let (name, value) = word.split_once('=').ok_or_else(|| format!("`{word}` is no assignment"))?;
    let adds = name.ends_with('+');
    let value = if value == "null" { None } else { Some(number(value)?) };
    Ok((column(name.trim_end_matches('+'))?, value, adds))
}

/// `id=5`, `k>=3 k<6`, `all`; returns how many words these are.
fn parse_condition(words: &[&str]) -> std::result::Result<(Condition, usize), String> {
    let mut found = Condition { column: 0, low: Bound::Unbounded, high: Bound::Unbounded };
    if words.first() == Some(&"all") {
        return Ok((found, 1));
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
            other => return Err(format!("`{other}` is no comparison")),
        }
        count += 1;
    }
    if count == 0 { Err("a condition is missing: `all`, `id=5`, `k>=3 k<6`".to_string()) } else { Ok((found, count)) }
}

impl Statement {
    pub(super) fn parse(text: &str) -> std::result::Result<Statement, String> {
        let mut words: Vec<&str> = text.split_whitespace().collect();
        let wait = match words[..] {
            [.., "nowait"] => (LockWait::NoWait, 1),
            [.., "skip", "locked"] => (LockWait::SkipLocked, 2),
            _ => (LockWait::Default, 0),
        };
        words.truncate(words.len() - wait.1);
        let kind = match words[..] {
            ["commit"] => Kind::Commit,
            ["rollback"] => Kind::Rollback,
            ["savepoint", name] => Kind::Savepoint(name.to_string()),
            ["rollback", "to", name] => Kind::RollbackTo(name.to_string()),
            ["insert", ref row @ ..] => Kind::Insert(parse_row(row)?),
            ["upsert", ref row @ ..] => Kind::Upsert(parse_row(row)?),
            ["replace", ref row @ ..] => Kind::Replace(parse_row(row)?),
            [verb @ ("select" | "update" | "delete"), ref rest @ ..] => {
                let (condition, count) = parse_condition(rest)?;
                Kind::Rows(condition, What::parse(verb, &rest[count..])?)
            }
            _ => return Err(format!("`{text}` is no statement")),
        };
        Ok(Statement { kind, wait: (wait.1 > 0).then_some(wait.0) })
    }

    /// Whether it makes no sense outside of a transaction.
    pub(super) fn needs_transaction(&self) -> bool {
        matches!(self.kind, Kind::Commit | Kind::Rollback | Kind::Savepoint(_) | Kind::RollbackTo(_))
    }
}

impl What {
    fn parse(verb: &str, words: &[&str]) -> std::result::Result<What, String> {
        match (verb, words) {
            ("delete", []) => return Ok(What::Delete),
            ("update", ["set", first, rest @ ..]) => {
                let all = std::iter::once(first).chain(rest);
                return all.map(|word| parse_assignment(word)).collect::<std::result::Result<_, _>>().map(What::Update);
            }
            ("select", _) => {}
            _ => return Err(format!("`{}` does not end a {verb}", words.join(" "))),
        }
        let (mut rest, mut select) = (words, Select::all(LockMode::None));
        loop {
            rest = match rest {
                [] => return Ok(What::Select(select)),
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

fn lock_wait(txn: &WriteTxn) -> LockWait {
    txn.txn.as_ref().map_or(LockWait::Default, |txn| txn.lock_wait)
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
        match statement.kind {
            Kind::Commit => return self.txn.take().ok_or_else(ended)?.commit().map(|()| "ok".to_string()),
            Kind::Rollback => return self.txn.take().ok_or_else(ended)?.rollback().map(|()| "ok".to_string()),
            _ => {}
        }
        let (table, txn) = (self.table, self.txn.as_mut().ok_or_else(ended)?);
        match &statement.kind {
            Kind::Savepoint(name) => {
                self.savepoints.insert(name.clone(), txn.savepoint());
                return Ok("ok".to_string());
            }
            Kind::RollbackTo(name) => {
                let savepoint = self.savepoints.get(name).ok_or_else(|| Error::Usage(format!("no savepoint {name}")))?;
                return txn.rollback_to(*savepoint).map(|()| "ok".to_string());
            }
            _ => {}
        }
        txn.with_lock_wait(statement.wait, |txn| statement.run(txn, table))
    }
}

impl Statement {
    fn run(&self, txn: &mut WriteTxn, table: &Table) -> Result<String> {
        match &self.kind {
            Kind::Insert(row) => txn.insert(table, &values_of(row)).map(|_| "ok".to_string()),
            Kind::Replace(row) => {
                txn.replace(table, &values_of(row)).map(|replaced| format!("ok, {} deleted", replaced.deleted))
            }
            Kind::Upsert(row) => {
                let done = txn.upsert(table, &values_of(row), |_, set| set.put(V, value(row[V])))?;
                Ok(if matches!(done, Upserted::Changed) { "changed" } else { "inserted" }.to_string())
            }
            Kind::Rows(condition, what) => what.run(condition, txn, table),
            Kind::Savepoint(_) | Kind::RollbackTo(_) | Kind::Commit | Kind::Rollback => Ok(String::new()),
        }
    }
}

impl What {
    fn run(&self, condition: &Condition, txn: &mut WriteTxn, table: &Table) -> Result<String> {
        let point = condition.point().filter(|_| condition.column == 0).map(|id| [ValueRef::UInt(id)]);
        match (self, point) {
            (What::Select(select), Some(key)) => {
                let found = txn.get_locked(table, &key, select.lock, lock_wait(txn))?;
                Ok(found.map_or("none".to_string(), |row| shown(&columns_of(row.as_ref()))))
            }
            (What::Select(select), None) => {
                let found: Vec<String> = select.find(condition, txn, table)?.iter().map(shown).collect();
                Ok(if found.is_empty() { "none".to_string() } else { found.join(", ") })
            }
            (What::Update(set), Some(key)) => {
                txn.modify(table, &key, |old, new| assign(set, old, new)).map(|found| rows(found.into()))
            }
            (What::Delete, Some(key)) => txn.delete(table, &key).map(|found| rows(found.into())),
            // As a server does: a locking scan, then a change of each row.
            (What::Update(_) | What::Delete, None) => txn.statement(|txn| {
                let found = Select::all(LockMode::Exclusive).find(condition, txn, table)?;
                for row in &found {
                    let key = [value(row[0])];
                    match self {
                        What::Update(set) => drop(txn.modify(table, &key, |old, new| assign(set, old, new))?),
                        _ => drop(txn.delete(table, &key)?),
                    }
                }
                Ok(rows(found.len() as u64))
            }),
        }
    }

}

impl Select {
    fn find(&self, condition: &Condition, txn: &mut WriteTxn, table: &Table) -> Result<Vec<NewRow>> {
        let Select { lock, limit, take, reverse, one_by_one } = *self;
        let one_by_one = one_by_one || lock_wait(txn) == LockWait::SkipLocked;
        if condition.column == V {
            return find_by_filter(condition, lock, txn, table);
        }
        let [low, high] = [condition.low, condition.high].map(|edge| match edge {
            Bound::Included(value) | Bound::Excluded(value) => [ValueRef::UInt(value)],
            Bound::Unbounded => [ValueRef::Null],
        });
        let mut scan = txn.scan(table).index(INDEXES[condition.column]).limit(limit);
        scan = match condition.low {
            Bound::Included(_) => scan.from(&low),
            Bound::Excluded(_) => scan.from_exclusive(&low),
            Bound::Unbounded => scan,
        };
        scan = match condition.high {
            Bound::Included(_) => scan.to(&high),
            Bound::Excluded(_) => scan.to_exclusive(&high),
            Bound::Unbounded => scan,
        };
        scan = match lock {
            LockMode::None => scan,
            LockMode::Shared => scan.for_share(),
            LockMode::Exclusive => scan.for_update(),
        };
        let scan = if reverse { scan.rev() } else { scan };
        let scan = if one_by_one { scan.one_by_one() } else { scan };
        scan.iter()?.take(take).map(|row| row.map(|row: Row| columns_of(row.as_ref()))).collect()
    }
}

/// As a server does without an index: it looks at each row, locked, and unlocks those that it does not want.
fn find_by_filter(condition: &Condition, lock: LockMode, txn: &mut WriteTxn, table: &Table) -> Result<Vec<NewRow>> {
    let raw = RawTable::from(table.clone());
    let mut cursor = raw.cursor(INDEXES[0], RawRead { lock, ..RawRead::default() });
    let (mut found, mut row) = (Vec::new(), RawRow::default());
    let mut is_at_row = cursor.seek(txn, RawSeek::AtLeast, &[])?;
    while is_at_row {
        cursor.read_row(&mut row)?;
        let columns = columns_of(row.typed().ok_or(Error::TableDropped { table: table.name().to_string() })?);
        if columns[V].is_some_and(|v| condition.has(v)) {
            found.push(columns);
        } else if lock != LockMode::None {
            let key = cursor.key().unwrap_or_default().to_vec();
            raw.unlock(txn, &key)?;
        }
        is_at_row = cursor.next(txn)?;
    }
    Ok(found)
}
