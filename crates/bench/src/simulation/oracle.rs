//! What the database must hold: every table with every committed version of its rows.

use crate::error::{Error, Result};
use highwater::{Database, Row};
use std::collections::{BTreeMap, BTreeSet};

/// What a row holds beside its id. Texts follow from numbers, so that a row is small here and may be large there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Content {
    pub a: u32,
    pub b: u32,
    /// Bytes of its body: more than a page holds go to overflow pages.
    pub body_bytes: u32,
}

/// The index on `a`, which has few values, and on `b`, which has many: at first those of every table.
pub const INDEXES: [(&str, &str); 2] = [("by_a", "a"), ("by_b", "b")];

/// Digits of a number in a text.
const DIGITS: usize = 10;
/// What follows them.
const WIDE: &str = " and what makes an entry wide";

/// Wide, so that few entries fit a leaf, and in the order of the numbers.
pub fn text(number: u32) -> String {
    format!("{number:0DIGITS$}{WIDE}")
}

/// The number that makes this text, if one does.
fn number_of(text: &str) -> Option<u32> {
    let digits = text.strip_suffix(WIDE).filter(|digits| digits.len() == DIGITS)?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

fn letter(content: &Content) -> u8 {
    b'a' + (content.a.wrapping_add(content.b) % 26) as u8
}

pub fn body(content: &Content) -> String {
    char::from(letter(content)).to_string().repeat(content.body_bytes as usize)
}

/// Rows by id.
pub type Rows = BTreeMap<u64, Content>;
/// What a transaction changed: `None` = deleted.
pub type Changes = BTreeMap<(String, u64), Option<Content>>;

/// A table: versions by id, each with the number of commits that came before it is seen.
#[derive(Clone, Debug, Default)]
pub struct Model {
    versions: BTreeMap<u64, Vec<(u64, Option<Content>)>>,
    pub indexes: BTreeSet<&'static str>,
}

impl Model {
    /// The rows after so many commits.
    pub fn at(&self, commits: u64) -> Rows {
        let newest = |versions: &[(u64, Option<Content>)]| versions.iter().rev().find(|(from, _)| *from <= commits)?.1;
        self.versions.iter().filter_map(|(id, versions)| Some((*id, newest(versions)?))).collect()
    }

    /// The row after so many commits.
    pub fn newest(&self, commits: u64, id: u64) -> Option<Content> {
        self.versions.get(&id)?.iter().rev().find(|(from, _)| *from <= commits)?.1
    }

    fn put(&mut self, id: u64, commit: u64, content: Option<Content>) {
        self.versions.entry(id).or_default().push((commit, content));
    }
}

/// A change whose end was not acknowledged before the power went off.
#[derive(Clone, Debug)]
pub enum InDoubt {
    Transaction(Changes),
    CreateTable(String),
    DropTable(String),
    CreateIndex(String, &'static str),
    DropIndex(String, &'static str),
}

/// All tables.
#[derive(Clone, Debug, Default)]
pub struct Oracle {
    pub tables: BTreeMap<String, Model>,
    /// Transactions that were acknowledged.
    pub commits: u64,
    pub in_doubt: Option<InDoubt>,
}

impl Oracle {
    pub fn committed(&mut self, changes: Changes) {
        self.commits += 1;
        for ((table, id), content) in changes {
            if let Some(model) = self.tables.get_mut(&table) {
                model.put(id, self.commits, content);
            }
        }
    }

    pub fn created(&mut self, table: String) {
        let indexes = INDEXES.iter().map(|(name, _)| *name).collect();
        self.tables.insert(table, Model { versions: BTreeMap::new(), indexes });
    }

    /// Carries out what was in doubt.
    pub fn settle(&mut self, change: InDoubt) {
        match change {
            InDoubt::Transaction(changes) => self.committed(changes),
            InDoubt::CreateTable(table) => self.created(table),
            InDoubt::DropTable(table) => drop(self.tables.remove(&table)),
            InDoubt::CreateIndex(table, index) => {
                self.tables.get_mut(&table).map(|model| model.indexes.insert(index));
            }
            InDoubt::DropIndex(table, index) => {
                self.tables.get_mut(&table).map(|model| model.indexes.remove(index));
            }
        }
    }

    /// Compares the database, just opened, with what must be there; what was in doubt may be there or not.
    ///
    /// # Errors
    /// [`Error::Data`] names the first difference.
    pub fn compare(&mut self, db: &Database) -> Result<()> {
        let as_it_was = self.differs(db)?;
        // An error in between decides nothing: the change is still in doubt at the next opening.
        let Some(change) = self.in_doubt.clone() else {
            return as_it_was.map_or(Ok(()), |text| Err(Error::Data(text)));
        };
        let Some(before) = as_it_was else {
            self.in_doubt = None;
            return Ok(());
        };
        let mut done = self.clone();
        done.in_doubt = None;
        done.settle(change);
        match done.differs(db)? {
            None => *self = done,
            Some(after) => {
                let text = format!("without the change in doubt: {before}; with it: {after}");
                return Err(Error::Data(text));
            }
        }
        Ok(())
    }

    /// The first difference, in words.
    fn differs(&self, db: &Database) -> Result<Option<String>> {
        let found: BTreeSet<String> = db.tables().iter().map(|table| table.name().to_string()).collect();
        let expected: BTreeSet<String> = self.tables.keys().cloned().collect();
        if found != expected {
            return Ok(Some(format!("the tables are {found:?}, {expected:?} are right")));
        }
        let mut read = db.snapshot()?;
        for (name, model) in &self.tables {
            let table = db.table(name)?;
            let definition = table.definition();
            let indexes: BTreeSet<&str> = definition.indexes.iter().map(|index| index.name.as_str()).collect();
            let right: BTreeSet<&str> = model.indexes.iter().copied().collect();
            if indexes != right {
                return Ok(Some(format!("table {name} has the indexes {indexes:?}, {right:?} are right")));
            }
            let rows = model.at(self.commits);
            for index in std::iter::once("PRIMARY").chain(right) {
                let found =
                    read.scan(&table).index(index).iter()?.map(|row| content(&row?)).collect::<Result<Vec<_>>>()?;
                if let Some(text) = differs(index, &found, &rows) {
                    return Ok(Some(format!("table {name}: {text}")));
                }
            }
        }
        Ok(None)
    }
}

/// A row as the oracle knows it.
///
/// # Errors
/// [`Error::Data`] for a text that no number makes.
pub fn content(row: &Row) -> Result<(u64, Content)> {
    let number = |column: usize| -> Result<u32> {
        let found = row.str(column);
        number_of(found).ok_or_else(|| Error::Data(format!("column {column} of row {} has {found:?}", row.u64(0))))
    };
    let body = row.str(3).as_bytes();
    let content = Content { a: number(1)?, b: number(2)?, body_bytes: body.len() as u32 };
    let letter = letter(&content);
    // Without a branch for each byte: most bytes that are compared are those of bodies.
    match body.iter().fold(0, |differing, byte| differing | (byte ^ letter)) == 0 {
        true => Ok((row.u64(0), content)),
        false => Err(Error::Data(format!("row {} has another body than was written", row.u64(0)))),
    }
}

/// How rows in the order of an index differ from the right ones, in words.
pub fn differs(index: &str, found: &[(u64, Content)], rows: &Rows) -> Option<String> {
    let mut right: Vec<(u64, Content)> = rows.iter().map(|(id, content)| (*id, *content)).collect();
    match index {
        "by_a" => right.sort_unstable_by_key(|(id, content)| (content.a, *id)),
        "by_b" => right.sort_unstable_by_key(|(id, content)| (content.b, *id)),
        _ => {}
    }
    if found == right {
        return None;
    }
    let at = found.iter().zip(&right).take_while(|(a, b)| a == b).count();
    Some(format!(
        "{index} has {} rows, {} are right; at place {at} it has {:?}, {:?} is right",
        found.len(),
        right.len(),
        found.get(at),
        right.get(at)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_text_of_a_number_is_one() {
        assert!([0, 1, 7_654_321, u32::MAX].iter().all(|number| number_of(&text(*number)) == Some(*number)));
        let right = text(12);
        let wrong = [right.replacen('0', "+", 1), right.replacen('0', "", 1), right.clone() + "r", "4294967296".into()];
        assert!(wrong.iter().all(|text| number_of(text).is_none()));
        assert_eq!(number_of(&text(0).replacen("0000000000", "4294967296", 1)), None);
    }
}
