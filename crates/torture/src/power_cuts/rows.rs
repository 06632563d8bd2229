//! The expected rows, the transactions that change them, and the comparison.
//!
//! Rules
//! 1. If a mode may lose acknowledged commits, a prefix of them must survive that includes all durable ones.
//! 2. Each commit records the number of changes that the player had acknowledged before it ([`Rows::survived`]).
//!
//! Tables: `t` with an id and two columns, each with an index that is not unique: one of nearly unique texts, one of
//! few. `filler`: texts that are replaced to write much redo.

use fastrand::Rng;
use highwater::config::FlushLog;
use highwater::{Database, Schema, Table, Type, WriteTxn, values};
use highwater_bench::{Error, Result};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Rows of `filler`, and the bytes of their texts.
const FILLERS: u64 = 60;
const FILLER_BYTES: usize = 1500;
/// Different values of the second column.
const SMALL_TABLE_ROWS: u32 = 400;

type Map = BTreeMap<u64, (u32, u32)>;

/// The contents of the tables.
#[derive(Clone, Debug, PartialEq)]
struct Contents {
    /// The rows of `t`: the numbers that their texts begin with.
    rows: Map,
    /// The letter that each row of `filler` is full of; 0 for none.
    fillers: Vec<u8>,
}

/// The state after a commit.
struct Commit {
    contents: Contents,
    /// Number of the player's acknowledged changes when it was acknowledged.
    others: usize,
}

/// The expected contents.
pub(super) struct Rows {
    /// The last durable commit, and those after it.
    commits: Vec<Commit>,
    /// The contents after the transaction that was committing at the power cut.
    in_doubt: Option<Contents>,
}

/// The text for a number: wide, so that few entries fit in a leaf, and ordered as the numbers are.
fn text(number: u32) -> String {
    format!("{number:010} is a number, and this is what makes the entries of the index wide")
}

fn number(text: &str) -> Result<u32> {
    let digits = text.get(..10).and_then(|digits| digits.parse().ok());
    digits.filter(|number| text == self::text(*number)).ok_or_else(|| Error::Data(format!("a column has {text:?}")))
}

impl Rows {
    /// Creates the tables with this many rows.
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
        Ok(Rows { commits: vec![Commit { contents: committed, others: 0 }], in_doubt: None })
    }

    fn newest(&self) -> &Contents {
        &self.commits[self.commits.len() - 1].contents
    }

    /// Notes that all commits so far are durable.
    pub(super) fn are_durable(&mut self) {
        self.commits.drain(..self.commits.len() - 1);
    }

    /// Runs one random transaction: committed, rolled back, or rolled back to a savepoint and committed. `others`:
    /// number of the player's acknowledged changes.
    pub(super) fn transact(&mut self, db: &Database, others: usize, rng: &mut Rng) -> Result<()> {
        let mut txn = db.begin()?;
        let (table, mut changed) = (db.table("t")?, self.newest().clone());
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
        // One that has changed nothing syncs nothing.
        let is_durable = db.options().flush_log_at_trx_commit == FlushLog::Sync && kept != *self.newest();
        txn.commit()?;
        self.in_doubt = None;
        self.commits.push(Commit { contents: kept, others });
        if is_durable {
            self.are_durable();
        }
        Ok(())
    }

    /// Compares the database with the rows, and each of its indexes with its rows. Returns the range of the player's
    /// acknowledged changes that may have survived.
    ///
    /// # Errors
    /// [`Error::Data`] names the first difference.
    pub(super) fn compare(&mut self, db: &Database) -> Result<RangeInclusive<usize>> {
        let rows = in_order_of(db, "PRIMARY")?.into_iter().map(|(id, a, b)| (id, (a, b))).collect();
        let found = Contents { rows, fillers: fillers_of(db)? };
        let survived = self.survived(&found);
        let Contents { rows, fillers } = self.newest();
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
            None => Ok(survived),
        }
    }

    /// Continues from the commit whose state was found; returns the range of the player's acknowledged changes that may
    /// have survived: all before that commit, none after the next one. If no commit has that state, nothing changes.
    fn survived(&mut self, found: &Contents) -> RangeInclusive<usize> {
        let is_in_doubt = self.in_doubt.take().is_some_and(|contents| contents == *found);
        let equals: Vec<usize> = (0..self.commits.len()).filter(|at| self.commits[*at].contents == *found).collect();
        let newest = self.commits.len() - 1;
        let least = equals.first().map_or(if is_in_doubt { newest } else { 0 }, |first| *first);
        let next = equals.last().filter(|_| !is_in_doubt).and_then(|last| self.commits.get(last + 1));
        let (least, most) = (self.commits[least].others, next.map_or(usize::MAX, |next| next.others));
        if is_in_doubt || !equals.is_empty() {
            self.commits = vec![Commit { contents: found.clone(), others: 0 }];
        }
        least..=most
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

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(letter: u8) -> Contents {
        Contents { rows: Map::new(), fillers: vec![letter] }
    }

    /// Three commits, of which the first is durable.
    fn rows(in_doubt: Option<u8>) -> Rows {
        let commits =
            [(b'a', 3), (b'b', 5), (b'c', 9)].map(|(letter, others)| Commit { contents: contents(letter), others });
        Rows { commits: commits.into(), in_doubt: in_doubt.map(contents) }
    }

    #[test]
    fn what_others_have_acknowledged_survives_up_to_the_same_moment() {
        assert_eq!(rows(None).survived(&contents(b'b')), 5..=9);
        assert_eq!(rows(None).survived(&contents(b'c')), 9..=usize::MAX);
        assert_eq!(rows(Some(b'd')).survived(&contents(b'd')), 9..=usize::MAX);
        assert_eq!(rows(Some(b'd')).survived(&contents(b'a')), 3..=5);
        let mut durable = rows(None);
        durable.are_durable();
        assert_eq!((durable.survived(&contents(b'a')), durable.newest()), (9..=usize::MAX, &contents(b'c')));
    }
}
