//! The rows that should be there, the transactions that change them, and the comparison.
//!
//! Tables: `t` with an id and two columns, each with an index that is not unique: one of nearly unique texts, one of
//! few. `filler`: texts that are replaced to write much redo.

use crate::error::{Error, Result};
use fastrand::Rng;
use highwater::{Database, Schema, Table, Type, WriteTxn, values};
use std::collections::BTreeMap;

/// Rows of `filler`, and the bytes of their texts.
const FILLERS: u64 = 60;
const FILLER_BYTES: usize = 1500;
/// Different values of the second column.
const SMALL_TABLE_ROWS: u32 = 400;

type Map = BTreeMap<u64, (u32, u32)>;

/// What the tables hold.
#[derive(Clone, Debug, PartialEq)]
struct Contents {
    /// The rows of `t`: the numbers that their texts begin with.
    rows: Map,
    /// The letter that each row of `filler` is full of; 0 for none.
    fillers: Vec<u8>,
}

/// What should be there.
pub(super) struct Rows {
    committed: Contents,
    /// As the transaction that was committing when the power went off leaves them.
    in_doubt: Option<Contents>,
}

/// Wide, so that few entries fit a leaf, and in the order of the numbers.
fn text(number: u32) -> String {
    format!("{number:010} is a number, and this is what makes the entries of the index wide")
}

fn number(text: &str) -> Result<u32> {
    let digits = text.get(..10).and_then(|digits| digits.parse().ok());
    digits.filter(|number| text == self::text(*number)).ok_or_else(|| Error::Data(format!("a column has {text:?}")))
}

impl Rows {
    /// Makes the tables, with this many rows.
    pub(super) fn create(db: &Database, rows: u64, rng: &mut Rng) -> Result<Rows> {
        let schema = Schema::new().column("id", Type::U64).column("a", Type::Text(100)).column("b", Type::Text(100));
        let schema = schema.primary_key(&["id"]).index("by_a", &["a"]).index("by_b", &["b"]);
        let table = db.create_table("t", schema)?;
        let schema = Schema::new().column("id", Type::U64).column("text", Type::Text(2000)).primary_key(&["id"]);
        let filler = db.create_table("filler", schema)?;
        let mut txn = db.begin()?;
        for id in 0..FILLERS {
            txn.insert(&filler, &values![id, ""])?;
        }
        let mut committed = Contents { rows: Map::new(), fillers: vec![0; FILLERS as usize] };
        for id in 0..rows {
            insert(&mut txn, &table, &mut committed.rows, id, rng)?;
            if id % 200 == 0 {
                txn.commit()?;
                txn = db.begin()?;
            }
        }
        txn.commit()?;
        Ok(Rows { committed, in_doubt: None })
    }

    /// One random transaction: committed, rolled back, or rolled back to a savepoint and committed.
    pub(super) fn transact(&mut self, db: &Database, rng: &mut Rng) -> Result<()> {
        let mut txn = db.begin()?;
        let (table, mut changed) = (db.table("t")?, self.committed.clone());
        let (writes_redo, changes) = [(true, 0), (true, 5), (false, 20)][rng.usize(..3)];
        if writes_redo {
            write_redo(&mut txn, db, &mut changed.fillers, rng)?;
        }
        for _ in 0..rng.usize(..=changes) {
            change(&mut txn, &table, &mut changed.rows, rng)?;
        }
        let kept = changed.clone();
        if rng.u32(..4) == 0 {
            let savepoint = txn.savepoint();
            for _ in 0..rng.usize(1..10) {
                change(&mut txn, &table, &mut changed.rows, rng)?;
            }
            txn.rollback_to(savepoint)?;
        }
        if rng.u32(..6) == 0 {
            return Ok(txn.rollback()?);
        }
        self.in_doubt = Some(kept.clone());
        txn.commit()?;
        (self.committed, self.in_doubt) = (kept, None);
        Ok(())
    }

    /// Compares the database with the rows, and each of its indexes with its rows.
    ///
    /// # Errors
    /// [`Error::Data`] names the first difference.
    pub(super) fn compare(&mut self, db: &Database) -> Result<()> {
        let rows = in_order_of(db, "PRIMARY")?.into_iter().map(|(id, a, b)| (id, (a, b))).collect();
        let found = Contents { rows, fillers: fillers_of(db)? };
        if self.in_doubt.take_if(|contents| *contents == found).is_some() {
            self.committed = found.clone();
        }
        self.in_doubt = None;
        let Contents { rows, fillers } = &self.committed;
        let expected = rows.iter().map(|(id, (a, b))| (*id, *a, *b)).collect();
        expect_equal("PRIMARY", in_order_of(db, "PRIMARY")?, expected)?;
        if let Some(id) = (0..fillers.len()).find(|id| found.fillers.get(*id) != fillers.get(*id)) {
            return Err(Error::Data(format!("row {id} of filler is not as it was committed")));
        }
        for index in ["by_a", "by_b"] {
            let mut expected: Vec<_> = rows.iter().map(|(id, (a, b))| (*id, *a, *b)).collect();
            expected.sort_unstable_by_key(|(id, a, b)| (if index == "by_a" { *a } else { *b }, *id));
            expect_equal(index, in_order_of(db, index)?, expected)?;
        }
        match db.check()?.findings.first() {
            Some(finding) => Err(Error::Data(format!("the check found: {finding}"))),
            None => Ok(()),
        }
    }
}

fn write_redo(txn: &mut WriteTxn, db: &Database, fillers: &mut [u8], rng: &mut Rng) -> Result<()> {
    let filler = db.table("filler")?;
    for (id, letter) in (0u64..).zip(fillers) {
        *letter = rng.u8(b'a'..=b'z');
        let text = char::from(*letter).to_string().repeat(FILLER_BYTES);
        txn.update(&filler, &values![id], &[(1, text.as_str().into())])?;
    }
    Ok(())
}

/// The letter of each row of `filler`, which is full of it; 0 where it is empty.
fn fillers_of(db: &Database) -> Result<Vec<u8>> {
    let filler = db.table("filler")?;
    let mut read = db.snapshot()?;
    let rows = read.scan(&filler).iter()?;
    let letter = |row: highwater::Row| match row.str(1).as_bytes() {
        [] => Ok(0),
        text if text.len() == FILLER_BYTES && text.iter().all(|byte| *byte == text[0]) => Ok(text[0]),
        _ => Err(Error::Data(format!("row {} of filler is torn", row.u64(0)))),
    };
    rows.map(|row| row.map_err(Error::from).and_then(letter)).collect()
}

fn insert(txn: &mut WriteTxn, table: &Table, rows: &mut Map, id: u64, rng: &mut Rng) -> Result<()> {
    let (a, b) = (rng.u32(..), rng.u32(..SMALL_TABLE_ROWS));
    txn.insert(table, &values![id, text(a).as_str(), text(b).as_str()])?;
    rows.insert(id, (a, b));
    Ok(())
}

fn change(txn: &mut WriteTxn, table: &Table, rows: &mut Map, rng: &mut Rng) -> Result<()> {
    let end = rows.last_key_value().map_or(0, |(id, _)| id + 1);
    let id = rng.u64(..end + 20);
    match rng.u32(..10) {
        0 | 1 => insert(txn, table, rows, end, rng)?,
        2..=6 => {
            let (a, b) = (rng.u32(..), rng.u32(..SMALL_TABLE_ROWS));
            let changed =
                txn.update(table, &values![id], &[(1, text(a).as_str().into()), (2, text(b).as_str().into())])?;
            if changed != rows.contains_key(&id) {
                return Err(Error::Data(format!("an update of row {id} says {changed}")));
            }
            rows.entry(id).and_modify(|row| *row = (a, b));
        }
        7 | 8 => {
            let (deleted, was_there) = (txn.delete(table, &values![id])?, rows.remove(&id).is_some());
            if deleted != was_there {
                return Err(Error::Data(format!("a delete of row {id} says {deleted}")));
            }
        }
        _ if !rows.contains_key(&id) => insert(txn, table, rows, id, rng)?,
        _ => {}
    }
    Ok(())
}

/// Every row, in the order of an index.
fn in_order_of(db: &Database, index: &str) -> Result<Vec<(u64, u32, u32)>> {
    let table = db.table("t")?;
    let mut read = db.snapshot()?;
    let rows = read.scan(&table).index(index).iter()?;
    rows.map(|row| row.map_err(Error::from).and_then(|row| Ok((row.u64(0), number(row.str(1))?, number(row.str(2))?))))
        .collect()
}

fn expect_equal(index: &str, found: Vec<(u64, u32, u32)>, expected: Vec<(u64, u32, u32)>) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    let at = found.iter().zip(&expected).take_while(|(a, b)| a == b).count();
    let (has, should) = (found.get(at), expected.get(at));
    let (count, right) = (found.len(), expected.len());
    Err(Error::Data(format!(
        "{index} has {count} rows, {right} are right; at place {at} it has {has:?}, {should:?} is right"
    )))
}
