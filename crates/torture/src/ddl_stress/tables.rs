//! Part of the crash test: schema changes of one table while a writer changes its rows. The table is renamed,
//! truncated, dropped and created; columns are added, widened and dropped, an index is created and dropped; the data
//! file is compacted meanwhile.
//!
//! Rules
//! 1. One thread changes the table, so that at any moment it has at most one of its names. Its changes are recorded
//!    outside the database ([`super::table_shape`]).
//! 2. All rows are inserted by one transaction, and each transaction gives all of them one generation.
//! 3. The added column has its default in each row: no client changes it.

use super::table_shape::{
    ADDED, ADDED_AT, ADDED_TYPES, GENERATION, INDEX, NAMES, ROWS, Shape, ShapeRecord, WIDTHS, filler_type, find,
    problem,
};
use fastrand::Rng;
use highwater::{Database, Schema, Table, TableChange, Type, ValueRef, values};
use highwater_bench::workload::tpcc::losses::DurableCalls;
use highwater_bench::{Error, Result};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

const DEFAULT: u64 = 7;

pub(super) struct TableChanger {
    shape: Shape,
    record: ShapeRecord,
}

impl TableChanger {
    /// Continues with the table as it is, and records its shape.
    pub(super) fn open(db: &Database, folder: &Path) -> Result<TableChanger> {
        let mut changer = TableChanger { shape: Shape::of(db)?, record: ShapeRecord::open(folder)? };
        changer.record.present(changer.shape)?;
        Ok(changer)
    }

    /// Makes one change of the table; creates it if it does not exist.
    pub(super) fn change(&mut self, db: &Database, durable: &DurableCalls, random: &mut Rng) -> Result<()> {
        std::thread::sleep(Duration::from_millis(random.u64(..10)));
        let wanted = self.next(random);
        self.record.wanted(wanted)?;
        let done = if wanted.is_filled && !self.shape.is_filled {
            fill(db, NAMES[usize::from(wanted.name)])
        } else {
            durable.call(|| make(db, self.shape, wanted))
        };
        if done.is_ok() {
            self.shape = wanted;
        }
        self.record.present(self.shape)?;
        done?;
        match Shape::of(db)? {
            found if found == self.shape => Ok(()),
            found => Err(Error::Data(format!("the table that changes is {found:?}, {:?} is right", self.shape))),
        }
    }

    fn next(&self, random: &mut Rng) -> Shape {
        let now = self.shape;
        if !now.is_there {
            return Shape { is_there: true, ..Shape::default() };
        }
        if !now.is_filled {
            return Shape { is_filled: true, ..now };
        }
        match random.u32(..20) {
            0 => Shape::default(),
            1 => Shape { is_filled: false, ..now },
            2..=5 => Shape { name: 1 - now.name, ..now },
            6..=8 => Shape { generation: 1 - now.generation, ..now },
            9..=11 => Shape { has_index: !now.has_index, ..now },
            12 | 13 if now.width < WIDTHS => Shape { width: now.width + 1, ..now },
            14..=16 if (1..ADDED_TYPES.len() as u8).contains(&now.added) => Shape { added: now.added + 1, ..now },
            _ => Shape { added: u8::from(now.added == 0), ..now },
        }
    }
}

/// Changes the table to another shape, which differs in one property.
fn make(db: &Database, from: Shape, to: Shape) -> highwater::Result<()> {
    let name = NAMES[usize::from(from.name)];
    let alter = |change| db.alter_table(name, &[change]).map(drop);
    let generation = |shape: Shape| GENERATION[usize::from(shape.generation)];
    match to {
        _ if !from.is_there => {
            let schema = Schema::new().column("id", Type::U64).column(GENERATION[0], Type::U64);
            db.create_table(name, schema.column("filler", filler_type(0)).primary_key(&["id"])).map(drop)
        }
        _ if !to.is_there => db.drop_table(name),
        _ if to.name != from.name => db.rename_table(name, NAMES[usize::from(to.name)]).map(drop),
        _ if to.generation != from.generation => alter(TableChange::rename_column(generation(from), generation(to))),
        _ if to.width != from.width => alter(TableChange::widen_column("filler", filler_type(to.width))),
        _ if to.has_index && !from.has_index => db.create_index(name, INDEX, &[generation(to)], false),
        _ if !to.has_index && from.has_index => db.drop_index(name, INDEX),
        _ if from.added == 0 && to.added == 1 => alter(TableChange::add_column(ADDED, ADDED_TYPES[0], DEFAULT)),
        _ if from.added > 0 && to.added == 0 => alter(TableChange::drop_column(ADDED)),
        _ if to.added > from.added => alter(TableChange::widen_column(ADDED, ADDED_TYPES[usize::from(from.added)])),
        _ => db.truncate_table(name).map(drop),
    }
}

/// Inserts all rows.
fn fill(db: &Database, name: &str) -> Result<()> {
    let table = db.table(name)?;
    let (mut txn, filler) = (db.begin()?, "z".repeat(500));
    let row = [0.into(), 0.into(), filler.as_str().into(), DEFAULT.into()];
    for id in 0..ROWS {
        let mut row: Vec<ValueRef<'_>> = row[..table.columns().len()].to_vec();
        row[0] = id.into();
        txn.insert(&table, &row)?;
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

/// Compacts the data file.
pub(super) fn compact(db: &Database, random: &mut Rng) -> Result<()> {
    std::thread::sleep(Duration::from_millis(random.u64(20..300)));
    db.compact(&mut |_| ControlFlow::Continue(()))?;
    Ok(())
}

/// The problems of the table after a crash, one line each.
pub(super) fn verify(db: &Database, folder: &Path, may_lose_commits: bool) -> Result<Vec<String>> {
    let mut problems: Vec<String> = problem(db, folder, may_lose_commits)?.into_iter().collect();
    for (at, table) in find(db)? {
        problems.extend(of_rows(db, NAMES[at], &table)?);
    }
    Ok(problems)
}

fn of_rows(db: &Database, name: &str, table: &Table) -> Result<Option<String>> {
    let is_added = table.columns().len() > ADDED_AT;
    let mut read = db.snapshot()?;
    let row = |row: highwater::Row| (row.u64(1), if is_added { row.u64(ADDED_AT) } else { DEFAULT });
    let rows = read.scan(table).iter()?.map(|one| Ok(row(one?))).collect::<Result<Vec<_>>>()?;
    let wrong = rows.iter().find(|(generation, added)| *generation != rows[0].0 || *added != DEFAULT);
    Ok(wrong.map(|row| format!("table {name}: a row has {row:?}, the first one {:?}", rows[0])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(db: &Database, folder: &Path) -> usize {
        verify(db, folder, false).unwrap().len()
    }

    #[test]
    fn what_is_half_done_or_lost_is_found() -> Result<()> {
        let (db, folder) = (Database::in_memory()?, tempfile::tempdir().unwrap());
        let folder = folder.path();
        let (mut random, durable) = (Rng::with_seed(1), DurableCalls::open(folder)?);
        let mut changer = TableChanger::open(&db, folder)?;
        let mut shapes = Vec::new();
        for _ in 0..200 {
            changer.change(&db, &durable, &mut random)?;
            write(&db, &mut random)?;
            assert_eq!(verify(&db, folder, false)?, Vec::<String>::new());
            shapes.push(changer.shape);
        }
        assert!(shapes.iter().any(|shape| shape.added == 3) && shapes.iter().any(|shape| shape.width > 1));
        while !changer.shape.is_filled {
            changer.change(&db, &durable, &mut random)?;
        }
        let (at, table) = find(&db)?.remove(0);
        db.transact(|txn| txn.update(&table, &values![3], &[(1, 1_000_000.into())]).map(drop))?;
        assert_eq!(count(&db, folder), 1, "a generation");
        db.transact(|txn| txn.delete(&table, &values![3]).map(drop))?;
        assert_eq!(count(&db, folder), 1, "a row");
        let table = db.truncate_table(&table)?;
        assert_eq!((count(&db, folder), verify(&db, folder, true)?.len()), (1, 0), "a commit");
        fill(&db, NAMES[at])?;
        assert_eq!(count(&db, folder), 0);
        db.rename_table(&table, NAMES[1 - at])?;
        assert_eq!((count(&db, folder), verify(&db, folder, true)?.len()), (1, 1), "an acknowledged name");
        db.create_table(NAMES[at], Schema::new().column("id", Type::U64).primary_key(&["id"]))?;
        assert_eq!(count(&db, folder), 1, "two names");
        Ok(())
    }
}
