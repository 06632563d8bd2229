//! A table whose rows expire, and its expected contents at any time. The other letters do not use it.
//!
//! Rules
//! 1. A letter is a complete transaction on this table alone, or a read; only snapshots stay open. So only the removal
//!    of expired rows locks rows of it.
//! 2. The time with which a transaction compares is between two readings of the clock. If a row expires between them
//!    too, both answers are right, and the oracle adopts the engine's.
//! 3. An open snapshot always reads the same rows, whatever expires and is removed meanwhile.
//! 4. The oracle keeps expired rows: no read finds them, and an insertion replaces them.

use super::World;
use super::actor::{is_refusal, random_options};
use super::choices::Choices;
use super::oracle::{Change, Oracle};
use super::played::{Played, call};
use highwater::config::FlushLog;
use highwater::internals::clock_us;
use highwater::{
    Database, DateTime, Error as Engine, ReadTxn, Row, Scan, Schema, Table, Type, ValueRef, WriteTxn, values,
};
use highwater_bench::{Error, Result};
use std::collections::BTreeMap;

/// The table: id, until, code. It logs its changes.
pub(super) const EXPIRING: &str = "expiring";
const IDS: u64 = 24;
const CODES: u64 = 40;
const CODE: &str = "by_code";
/// Maximum number of statements of a transaction.
const STATEMENTS: u32 = 6;
/// Maximum number of open snapshots.
const HELD: usize = 2;

/// A row without its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Brief {
    /// Expiry time in microseconds; `None`: the row never expires.
    until_us: Option<i64>,
    code: u64,
}

/// Rows by id.
pub(super) type Briefs = BTreeMap<u64, Brief>;
/// The changes of a transaction; `None`: deleted.
pub(super) type BriefChanges = BTreeMap<u64, Option<Brief>>;

/// Two readings of the clock.
pub(super) type Between = [i64; 2];

impl Brief {
    /// Whether the row has not expired; `None` if that is uncertain (rule 2).
    fn lives(&self, [begun, ended]: Between) -> Option<bool> {
        match self.until_us {
            Some(until) if until <= begun => Some(false),
            Some(until) if until <= ended => None,
            _ => Some(true),
        }
    }

    fn random(now: i64, rng: &mut Choices) -> Brief {
        let until_us = match rng.u32(..6) {
            0 => None,
            1 => Some(now - 1000 * i64::from(rng.u32(..200))),
            _ => Some(now + 1000 * i64::from(rng.u32(..600))),
        };
        Brief { until_us, code: rng.u64(..CODES) }
    }

    fn until(&self) -> ValueRef<'static> {
        self.until_us.map(DateTime::from_unix_us).into()
    }
}

/// A row of the table.
pub(super) fn brief(row: &Row) -> (u64, Brief) {
    let until_us = (!row.is_null(1)).then(|| row.datetime(1).unix_us());
    (row.u64(0), Brief { until_us, code: row.u64(2) })
}

/// The difference between the rows that were read, in order, and the expected rows, as text.
pub(super) fn differs(found: &[(u64, Brief)], rows: &Briefs, between: Between) -> Option<String> {
    let of = |id: &u64| found.iter().find(|(found, _)| found == id);
    let wrong = found.iter().find(|(id, row)| rows.get(id) != Some(row) || row.lives(between) == Some(false));
    if let Some((id, row)) = wrong {
        return Some(format!("row {id} is {row:?} between {between:?}, of {:?}", rows.get(id)));
    }
    let gone = rows.iter().find(|(id, row)| row.lives(between) == Some(true) && of(id).is_none());
    gone.map(|(id, row)| format!("row {id} is gone between {between:?}, and is {row:?}"))
}

fn wrong<T>(what: &str, text: &str) -> Result<T> {
    Err(Error::Data(format!("table {EXPIRING}: {what}: {text}")))
}

/// Reads the table's rows in an order; returns them and the times before and after the read.
pub(super) fn read_rows(db: &Database, read: &mut ReadTxn, table: &Table) -> Result<(Vec<(u64, Brief)>, Between)> {
    let begun = clock_us(db);
    let rows = read.scan(table).iter()?.map(|row| Ok(brief(&row?))).collect::<Result<Vec<_>>>()?;
    Ok((rows, [begun, clock_us(db)]))
}

/// An open snapshot, and the rows of its first read.
pub(super) struct Held {
    read: ReadTxn,
    rows: Vec<(u64, Brief)>,
}

/// Makes the table.
pub(super) fn create(db: &Database, played: &Played) -> highwater::Result<()> {
    let schema = Schema::new().column("id", Type::U64).nullable("until", Type::DateTime).column("code", Type::U64);
    let schema = schema.primary_key(&["id"]).unique_index(CODE, &["code"]).index("by_until", &["until"]).log_changes();
    let schema = call!(played, Schema::expires(schema, "until"));
    db.create_table(EXPIRING, schema).map(drop)
}

/// Plays one letter.
pub(super) fn play(oracle: &mut Oracle, world: &World<'_>, held: &mut Vec<Held>, rng: &mut Choices) -> Result<()> {
    let table = world.db.table(EXPIRING)?;
    match rng.u32(..8) {
        0..=3 => unless_refused(change(oracle, world, &table, rng)),
        4 if held.len() < HELD => {
            let mut read = world.db.snapshot()?;
            let rows = compare(oracle, world, &mut read, &table)?;
            held.push(Held { read, rows });
            Ok(())
        }
        5 if !held.is_empty() => {
            let at = rng.usize(..held.len());
            let rows = read_rows(world.db, &mut held[at].read, &table)?.0;
            match rows == held[at].rows {
                true => Ok(()),
                false => wrong("a snapshot", &format!("it read {:?}, and reads {rows:?}", held[at].rows)),
            }
        }
        6 if !held.is_empty() => {
            held.swap_remove(0);
            Ok(())
        }
        _ => compare(oracle, world, &mut world.db.snapshot()?, &table).map(drop),
    }
}

/// Ignores an error that the removal of expired rows explains.
fn unless_refused(done: Result<()>) -> Result<()> {
    match done {
        Err(Error::Engine(error)) if is_refusal(&error) || matches!(error, Engine::Deadlock) => Ok(()),
        done => done,
    }
}

/// Reads all rows by both indexes, and counts them.
fn compare(oracle: &Oracle, world: &World<'_>, read: &mut ReadTxn, table: &Table) -> Result<Vec<(u64, Brief)>> {
    let right = oracle.expiring.as_ref().ok_or_else(|| Error::Data(format!("there is a table {EXPIRING}")))?;
    let (rows, between) = read_rows(world.db, read, table)?;
    if let Some(text) = differs(&rows, right, between) {
        return wrong("a snapshot", &text);
    }
    let scan = call!(world.played, ReadTxn::scan(read, table)).index(CODE).iter()?;
    let mut by_code = scan.map(|row| Ok(brief(&row?))).collect::<Result<Vec<_>>>()?;
    by_code.sort_by_key(|(id, _)| *id);
    let count = call!(world.played, Scan::count(read.scan(table)))?;
    match by_code == rows && count == rows.len() as u64 {
        true => Ok(rows),
        false => wrong("a snapshot", &format!("it has {rows:?}, by code {by_code:?}, and counts {count}")),
    }
}

/// Runs a transaction that changes rows.
fn change(oracle: &mut Oracle, world: &World<'_>, table: &Table, rng: &mut Choices) -> Result<()> {
    let options = random_options(rng);
    let mut txn = world.db.begin_with(options.clone())?;
    let mut work = Work { begun: clock_us(world.db), ended: None, db: world.db, table, own: BriefChanges::new() };
    for _ in 0..rng.u32(1..=STATEMENTS) {
        work.act(&mut txn, oracle.expiring.as_ref().unwrap_or(&Briefs::new()), rng)?;
    }
    if rng.u32(..5) == 0 {
        return Ok(txn.rollback()?);
    }
    let change = Change::Expiring(work.own.clone());
    oracle.in_doubt = Some(change.clone());
    txn.commit()?;
    oracle.in_doubt = None;
    oracle.acknowledged(change);
    let flush_log = options.flush_log_at_trx_commit.unwrap_or(world.flush_log);
    if flush_log == FlushLog::Sync && !work.own.is_empty() {
        oracle.is_durable();
    }
    Ok(())
}

struct Work<'w> {
    /// The clock before its first statement, and after that.
    begun: i64,
    ended: Option<i64>,
    db: &'w Database,
    table: &'w Table,
    own: BriefChanges,
}

impl Work<'_> {
    /// The row that the transaction leaves under an id.
    fn row(&self, rows: &Briefs, id: u64) -> Option<Brief> {
        self.own.get(&id).copied().unwrap_or_else(|| rows.get(&id).copied())
    }

    /// Whether the transaction sees a row; `None` if that is uncertain.
    fn lives(&self, row: Option<Brief>) -> Option<bool> {
        let ended = self.ended.unwrap_or_else(|| clock_us(self.db));
        row.map_or(Some(false), |row| row.lives([self.begun, ended]))
    }

    /// Runs a statement and verifies its answer.
    fn act(&mut self, txn: &mut WriteTxn, rows: &Briefs, rng: &mut Choices) -> Result<()> {
        let (id, new) = (rng.u64(..IDS), Brief::random(self.begun, rng));
        let (key, old) = (values![id], self.row(rows, id));
        let kind = rng.u32(..8);
        let (is_there, after) = match kind {
            0 => (txn.delete(self.table, &key)?, None),
            1 | 2 => {
                (txn.update(self.table, &key, &[(1, new.until())])?, old.map(|old| Brief { code: old.code, ..new }))
            }
            3 => return self.get(txn, id, old),
            _ => return self.insert(txn, rows, id, new),
        };
        let lives = self.lives(old);
        self.ended.get_or_insert(clock_us(self.db));
        // An update that leaves the row as it was is no change: a commit of nothing else syncs nothing.
        if is_there && after != old {
            self.own.insert(id, after);
        }
        match lives.is_none_or(|lives| lives == is_there) {
            true => Ok(()),
            false => {
                wrong("a change", &format!("kind {kind} of row {id}, {old:?}, from {} on: {is_there}", self.begun))
            }
        }
    }

    fn get(&mut self, txn: &mut WriteTxn, id: u64, old: Option<Brief>) -> Result<()> {
        let found = txn.get(self.table, &values![id])?.map(|row| brief(&row).1);
        let lives = self.lives(old);
        self.ended.get_or_insert(clock_us(self.db));
        let is_right = match found {
            Some(found) => lives != Some(false) && Some(found) == old,
            None => lives != Some(true),
        };
        if is_right { Ok(()) } else { wrong("a read", &format!("row {id} is {found:?}, of {old:?} at {}", self.begun)) }
    }

    fn insert(&mut self, txn: &mut WriteTxn, rows: &Briefs, id: u64, new: Brief) -> Result<()> {
        let inserted = txn.insert(self.table, &values![id, new.until(), new.code]);
        let with_code = (0..IDS).filter_map(|other| Some((other, self.row(rows, other)?)));
        let in_the_way: Vec<_> = with_code.filter(|(other, row)| *other == id || row.code == new.code).collect();
        let lives: Vec<_> = in_the_way.iter().map(|(_, row)| self.lives(Some(*row))).collect();
        self.ended.get_or_insert(clock_us(self.db));
        let is_right = match &inserted {
            Ok(_) => !lives.contains(&Some(true)),
            Err(Engine::DuplicateKey { .. }) => lives.iter().any(|lives| *lives != Some(false)),
            Err(_) => true,
        };
        if !is_right {
            let inserted = inserted.map(drop);
            return wrong(
                "an insertion",
                &format!("{inserted:?} of row {id}, {new:?}, at {}: {in_the_way:?}", self.begun),
            );
        }
        match inserted {
            Ok(_) => {
                self.own.insert(id, Some(new));
                Ok(())
            }
            Err(Engine::DuplicateKey { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_are_gone_or_expired_are_found() {
        let row = |until_us| Brief { until_us, code: 7 };
        let rows = Briefs::from([(1, row(Some(5))), (2, row(Some(15))), (3, row(None)), (4, row(Some(21)))]);
        let read = |ids: &[u64]| ids.iter().map(|id| (*id, rows[id])).collect::<Vec<_>>();
        let between = [10, 20];
        assert!([&[3, 4][..], &[2, 3, 4]].iter().all(|right| differs(&read(right), &rows, between).is_none()));
        assert!([&[1, 3, 4][..], &[3], &[4]].iter().all(|wrong| differs(&read(wrong), &rows, between).is_some()));
        assert!(differs(&[(3, row(Some(30))), (4, rows[&4])], &rows, between).is_some());
    }
}
