//! Part of the crash test: a table whose rows expire, and a table that keeps the same rows; both log their changes.
//!
//! Rules
//! 1. Each transaction makes the same changes in both tables, so at any moment they have the same rows, except that
//!    expired ones are read in the first table only.
//! 2. A reader takes the rows of the first table first: a row that expired before is in neither then, or in the first
//!    one only.

use super::{begin, end};
use fastrand::Rng;
use highwater::{Database, DateTime, ReaderSnapshot, Row, Schema, Table, TableChange, Type, values};
use highwater_bench::Result;
use highwater_bench::store::Store;
use highwater_bench::store::embedded::Embedded;
use highwater_bench::workload::tpcc::acknowledge::Acknowledger;
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// The table that keeps the rows: id, until, note; now and then one column more.
const KEPT: &str = "torture_kept";
/// The table whose rows expire.
pub(super) const EXPIRING: &str = "torture_expiring";
/// The expiry column.
pub(super) const UNTIL: &str = "until";
const IDS: u64 = 500;
const NOTE_BYTES: usize = 1500;
const EXTRA: &str = "extra";

/// Rows by id: expiry time and note.
type Rows = BTreeMap<u64, (Option<DateTime>, String)>;

pub(super) fn now() -> DateTime {
    let us = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_micros());
    DateTime::from_unix_us(us.try_into().unwrap_or(i64::MAX))
}

/// Creates the tables unless they exist.
pub(super) fn prepare(store: &Embedded) -> Result<()> {
    let db = store.database();
    for name in [KEPT, EXPIRING] {
        if store.table(name)?.is_some() {
            continue;
        }
        let schema = Schema::new().column("id", Type::U64).nullable(UNTIL, Type::DateTime);
        let schema = schema.column("note", Type::Text(NOTE_BYTES as u32)).primary_key(&["id"]).log_changes();
        let schema = if name == EXPIRING { schema.index("by_until", &[UNTIL]).expires(UNTIL) } else { schema };
        db.create_table(name, schema)?;
    }
    Ok(())
}

/// A random expiry time: in the past, soon, later, or never.
fn random_until(random: &mut Rng) -> Option<DateTime> {
    let from_now_ms = match random.u32(..8) {
        0 => -random.i64(0..2000),
        1..=4 => random.i64(0..1000),
        5..=6 => random.i64(0..3_600_000),
        _ => return None,
    };
    Some(DateTime::from_unix_us(now().unix_us() + 1000 * from_now_ms))
}

/// Runs one transaction, which puts and deletes rows in both tables; rarely all of them.
pub(super) fn change(db: &Database, ack: &mut Acknowledger<Table>, random: &mut Rng) -> Result<()> {
    let tables = [db.table(KEPT)?, db.table(EXPIRING)?];
    let mut txn = begin(db, random)?;
    let ids = match random.u32(..30) {
        0 => (0..IDS).collect::<Vec<_>>(),
        _ => (0..random.u32(1..12)).map(|_| random.u64(..IDS)).collect(),
    };
    for id in ids {
        let (deletes, until, note) =
            (random.u32(..4) == 0, random_until(random), "n".repeat(random.usize(..NOTE_BYTES)));
        for table in &tables {
            let (key, until, note) = (values![id], until.into(), note.as_str().into());
            if deletes {
                txn.delete(table, &key)?;
            } else if !txn.update(table, &key, &[(1, until), (2, note)])? {
                let extra = (table.columns().len() > 3).then_some(5u64.into());
                txn.insert(table, &[&[key[0], until, note][..], extra.as_slice()].concat())?;
            }
        }
    }
    ack.mark(&mut txn)?;
    end(txn, ack, random)
}

/// Adds a column to one of the tables, or drops it.
pub(super) fn change_table(db: &Database, random: &mut Rng) -> Result<()> {
    let name = if random.bool() { KEPT } else { EXPIRING };
    let has_extra = db.table(name)?.columns().iter().any(|column| column.name == EXTRA);
    let change =
        if has_extra { TableChange::drop_column(EXTRA) } else { TableChange::add_column(EXTRA, Type::U64, 5u64) };
    db.alter_table(name, &[change])?;
    Ok(())
}

fn row(row: highwater::Result<Row>) -> Result<(u64, (Option<DateTime>, String))> {
    let row = row?;
    let until = (!row.is_null(UNTIL)).then(|| row.datetime(UNTIL));
    Ok((row.u64("id"), (until, row.str("note").to_string())))
}

/// The problems of the tables after a crash, one line each.
pub(super) fn verify(db: &Database) -> Result<Vec<String>> {
    let (tables, begun, mut read) = ([db.table(KEPT)?, db.table(EXPIRING)?], now(), db.snapshot()?);
    let kept = read.scan(&tables[0]).iter()?.map(row).collect::<Result<_>>()?;
    let expiring = read.scan(&tables[1]).iter()?.map(row).collect::<Result<_>>()?;
    Ok(differences(&kept, &expiring, [begun, now()]))
}

/// The problems of a reader's snapshot.
pub(super) fn verify_snapshot(snapshot: &mut ReaderSnapshot) -> Result<Vec<String>> {
    let begun = now();
    let kept = snapshot.scan(KEPT).iter()?.map(row).collect::<Result<_>>()?;
    let expiring = snapshot.scan(EXPIRING).iter()?.map(row).collect::<Result<_>>()?;
    Ok(differences(&kept, &expiring, [begun, now()]))
}

/// The violations of rule 1 in rows that were read between two times.
fn differences(kept: &Rows, expiring: &Rows, [begun, ended]: [DateTime; 2]) -> Vec<String> {
    let mut problems = Vec::new();
    for (id, row) in expiring {
        match kept.get(id) {
            _ if row.0.is_some_and(|until| until <= begun) => {
                problems.push(format!("table {EXPIRING}: row {id} was read at {begun}, and it had expired: {row:?}"));
            }
            Some(same) if same == row => {}
            other => problems.push(format!("table {EXPIRING}: row {id} is {row:?}, in table {KEPT} {other:?}")),
        }
    }
    let lives = |row: &(Option<DateTime>, String)| row.0.is_none_or(|until| until > ended);
    let gone = kept.iter().filter(|(id, row)| lives(row) && !expiring.contains_key(id));
    problems.extend(gone.map(|(id, row)| format!("table {EXPIRING}: row {id} has not expired and is gone: {row:?}")));
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_are_gone_or_expired_are_found() {
        let [past, soon, future] = [5, 15, 25].map(DateTime::from_unix_us);
        let row = |until| (until, "note".to_string());
        let rows = |ids: &[(u64, Option<DateTime>)]| ids.iter().map(|(id, until)| (*id, row(*until))).collect::<Rows>();
        let between = [10, 20].map(DateTime::from_unix_us);
        let kept = rows(&[(1, Some(past)), (2, Some(soon)), (3, Some(future)), (4, None)]);
        for right in [rows(&[(3, Some(future)), (4, None)]), rows(&[(2, Some(soon)), (3, Some(future)), (4, None)])] {
            assert_eq!(differences(&kept, &right, between), Vec::<String>::new());
        }
        for (wrong, what) in [
            (rows(&[(1, Some(past)), (3, Some(future)), (4, None)]), "had expired"),
            (rows(&[(3, Some(future))]), "row 4 has not expired and is gone"),
            (rows(&[(4, None)]), "row 3 has not expired and is gone"),
            (rows(&[(3, Some(future)), (4, Some(future))]), "row 4 is"),
            (rows(&[(3, Some(future)), (4, None), (5, None)]), "row 5 is"),
        ] {
            let found = differences(&kept, &wrong, between);
            assert!(found.len() == 1 && found[0].contains(what), "{found:?}");
        }
    }
}
