//! Part of the crash test: a table is renamed, gets columns and loses them, is dropped and created, beside a writer;
//! the data file is compacted meanwhile.
//!
//! Rules
//! 1. One thread changes the table, so that at any moment it has at most one of its [`NAMES`].
//! 2. All rows are inserted by one transaction, and each transaction gives all of them one generation.
//! 3. The added column has its default in each row: nobody changes it.

use crate::error::Result;
use fastrand::Rng;
use highwater::{Database, Error as Engine, Schema, Table, TableChange, Type, values};
use std::ops::ControlFlow;
use std::time::Duration;

/// The table's names in turn. Its columns: id, generation, filler; now and then one more.
const NAMES: [&str; 2] = ["torture_changed", "torture_renamed"];
const ROWS: u64 = 300;
const GENERATION: [&str; 2] = ["generation", "version"];
const ADDED: &str = "added";
const ADDED_AT: usize = 3;
const DEFAULT: u64 = 7;

/// The table and which name it has.
fn find(db: &Database) -> Result<Vec<(usize, Table)>> {
    let mut found = Vec::new();
    for (at, name) in NAMES.iter().enumerate() {
        match db.table(name) {
            Ok(table) => found.push((at, table)),
            Err(Engine::NoSuchTable { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(found)
}

/// One change of the table; creates it if it is not there.
pub(super) fn change_table(db: &Database, random: &mut Rng) -> Result<()> {
    std::thread::sleep(Duration::from_millis(random.u64(..10)));
    let Some((at, table)) = find(db)?.pop() else { return create(db) };
    let has = |name: &str| table.columns().iter().any(|column| column.name == name);
    match random.u32(..12) {
        0 => db.drop_table(NAMES[at])?,
        1..=4 => drop(db.rename_table(NAMES[at], NAMES[1 - at])?),
        5..=7 => {
            let (from, to) = if has(GENERATION[0]) { (0, 1) } else { (1, 0) };
            db.alter_table(NAMES[at], &[TableChange::rename_column(GENERATION[from], GENERATION[to])])?;
        }
        _ if has(ADDED) => drop(db.alter_table(NAMES[at], &[TableChange::drop_column(ADDED)])?),
        _ => drop(db.alter_table(NAMES[at], &[TableChange::add_column(ADDED, Type::U64, DEFAULT)])?),
    }
    Ok(())
}

fn create(db: &Database) -> Result<()> {
    let schema = Schema::new().column("id", Type::U64).column(GENERATION[0], Type::U64);
    let table = db.create_table(NAMES[0], schema.column("filler", Type::Text(1000)).primary_key(&["id"]))?;
    let (mut txn, filler) = (db.begin()?, "z".repeat(500));
    for id in 0..ROWS {
        txn.insert(&table, &values![id, 0, filler.as_str()])?;
    }
    Ok(txn.commit()?)
}

/// Gives every row the next generation.
pub(super) fn write(db: &Database, random: &mut Rng) -> Result<()> {
    std::thread::sleep(Duration::from_millis(random.u64(..10)));
    let Some((_, table)) = find(db)?.pop() else { return Ok(()) };
    let mut txn = db.begin()?;
    let Some(row) = txn.get_for_update(&table, &values![0])? else { return Ok(txn.rollback()?) };
    let generation = row.u64(1) + 1;
    for id in 0..ROWS {
        txn.update(&table, &values![id], &[(1, generation.into())])?;
    }
    if random.u32(..5) == 0 {
        return Ok(txn.rollback()?);
    }
    Ok(txn.commit()?)
}

/// Makes the data file as short as it can be.
pub(super) fn compact(db: &Database, random: &mut Rng) -> Result<()> {
    std::thread::sleep(Duration::from_millis(random.u64(20..300)));
    db.compact(&mut |_| ControlFlow::Continue(()))?;
    Ok(())
}

/// What is wrong with the table after a crash, one line each.
pub(super) fn verify(db: &Database) -> Result<Vec<String>> {
    let found = find(db)?;
    let mut problems = Vec::new();
    if found.len() > 1 {
        problems.push(format!("half of a renaming: {} and {} are there", NAMES[0], NAMES[1]));
    }
    for (at, table) in found {
        let (name, columns) = (NAMES[at], table.columns());
        let is_added = columns.get(ADDED_AT).is_some_and(|column| column.name == ADDED);
        if columns.len() != ADDED_AT + usize::from(is_added) || !GENERATION.contains(&columns[1].name.as_str()) {
            problems.push(format!("half of a change: table {name} has the columns {columns:?}"));
            continue;
        }
        let mut read = db.snapshot()?;
        let row = |row: highwater::Row| (row.u64(1), if is_added { row.u64(ADDED_AT) } else { DEFAULT });
        let rows = read.scan(&table).iter()?.map(|one| Ok(row(one?))).collect::<Result<Vec<_>>>()?;
        if ![0, ROWS].contains(&(rows.len() as u64)) {
            problems.push(format!("table {name} has {} rows, neither none nor {ROWS}", rows.len()));
        }
        let wrong = rows.iter().find(|(generation, added)| *generation != rows[0].0 || *added != DEFAULT);
        problems.extend(wrong.map(|row| format!("table {name}: a row has {row:?}, the first one {:?}", rows[0])));
    }
    Ok(problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_half_done_is_found() -> Result<()> {
        let db = Database::in_memory()?;
        let mut random = Rng::with_seed(1);
        for _ in 0..60 {
            change_table(&db, &mut random)?;
            write(&db, &mut random)?;
            assert_eq!(verify(&db)?, Vec::<String>::new());
        }
        if find(&db)?.is_empty() {
            create(&db)?;
        }
        let (at, table) = find(&db)?.remove(0);
        db.transact(|txn| txn.update(&table, &values![3], &[(1, 1_000_000.into())]).map(drop))?;
        assert_eq!(verify(&db)?.len(), 1, "a generation");
        db.transact(|txn| txn.delete(&table, &values![3]).map(drop))?;
        assert_eq!(verify(&db)?.len(), 1, "a row");
        db.create_table(NAMES[1 - at], Schema::new().column("id", Type::U64).primary_key(&["id"]))?;
        assert_eq!(verify(&db)?.len(), 3, "a name and its columns");
        Ok(())
    }
}
