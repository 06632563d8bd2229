//! The expected contents of the database: every table with every committed version of its rows.
//!
//! Rules
//! 1. A change that was not acknowledged may survive or not, but only as a whole.
//! 2. A crash may lose the last acknowledged changes that need not be durable.

use super::content::{Content, INDEXES, Rows};
use super::expiring::{BriefChanges, Briefs};
use super::found::Found;
use highwater::Database;
use highwater_bench::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// The changes of a transaction; `None`: deleted.
pub(crate) type Changes = BTreeMap<(String, u64), Option<Content>>;

/// A table: versions by id, each with the number of commits after which it is visible.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    versions: BTreeMap<u64, Vec<(u64, Option<Content>)>>,
    /// Commits before its last truncation, which restarted its auto-increment numbers.
    truncated_at: u64,
    pub indexes: BTreeSet<&'static str>,
}

impl Model {
    /// The rows after this many commits.
    pub(crate) fn at(&self, commits: u64) -> Rows {
        let newest = |versions: &[(u64, Option<Content>)]| versions.iter().rev().find(|(from, _)| *from <= commits)?.1;
        self.versions.iter().filter_map(|(id, versions)| Some((*id, newest(versions)?))).collect()
    }

    /// The row after this many commits.
    pub(crate) fn newest(&self, commits: u64, id: u64) -> Option<Content> {
        self.versions.get(&id)?.iter().rev().find(|(from, _)| *from <= commits)?.1
    }

    /// The first id from this one on that ever had a row.
    pub(crate) fn id_from(&self, id: u64) -> Option<u64> {
        self.versions.range(id..).next().map(|(id, _)| *id)
    }

    /// The first id from this one on that had a row since the numbers restarted.
    pub(crate) fn number_from(&self, id: u64) -> Option<u64> {
        let is_taken = |(from, content): &(u64, Option<Content>)| *from > self.truncated_at && content.is_some();
        let mut taken = self.versions.range(id..).filter(|(_, versions)| versions.iter().any(is_taken));
        taken.next().map(|(id, _)| *id)
    }

    /// Removes all rows from this number of commits on.
    fn truncate(&mut self, commits: u64) {
        self.truncated_at = commits;
        self.at(commits).into_keys().for_each(|id| self.put(id, commits, None));
    }

    fn put(&mut self, id: u64, commit: u64, content: Option<Content>) {
        self.versions.entry(id).or_default().push((commit, content));
    }
}

/// A change of the database as a whole.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Transaction(Changes),
    /// A transaction is prepared under this name.
    Prepare(String, Changes),
    /// The prepared transaction of this name ends.
    EndPrepared {
        name: String,
        commit: bool,
    },
    CreateTable(String, BTreeSet<&'static str>),
    DropTable(String),
    RenameTable(String, String),
    TruncateTable(String),
    CreateIndex(String, &'static str),
    DropIndex(String, &'static str),
    /// The table whose rows expire is made.
    CreateExpiring,
    /// A transaction of that table.
    Expiring(BriefChanges),
}

/// All tables.
#[derive(Clone, Debug, Default)]
pub(crate) struct Oracle {
    pub tables: BTreeMap<String, Model>,
    /// The rows of the table with expiry, including expired ones; `None`: the table does not exist.
    pub expiring: Option<Briefs>,
    /// Transactions that were acknowledged.
    pub commits: u64,
    /// The prepared transactions, by name, and what each has changed.
    pub prepared: BTreeMap<String, Changes>,
    /// A change whose end was not acknowledged before the power went off.
    pub in_doubt: Option<Change>,
    /// The acknowledged changes, in order.
    log: Vec<Change>,
    /// The number of them that no crash can lose.
    durable: usize,
    /// Whether a commit was ordered since, whose redo no call has synced.
    pub has_unasked_commit: bool,
}

impl Oracle {
    /// Notes an acknowledged change.
    pub(crate) fn acknowledged(&mut self, change: Change) {
        self.apply(&change);
        self.log.push(change);
    }

    /// Notes that all acknowledged changes are durable.
    pub(crate) fn is_durable(&mut self) {
        (self.durable, self.has_unasked_commit) = (self.log.len(), false);
    }

    /// Number of changes that no crash can lose.
    pub(crate) fn durable(&self) -> usize {
        self.durable
    }

    /// Number of acknowledged changes.
    pub(crate) fn acknowledgements(&self) -> usize {
        self.log.len()
    }

    /// The database after this many changes, all durable.
    pub(crate) fn after(&self, changes: usize) -> Oracle {
        let mut oracle = Oracle::default();
        self.log[..changes].iter().for_each(|change| oracle.acknowledged(change.clone()));
        oracle.is_durable();
        oracle
    }

    fn apply(&mut self, change: &Change) {
        match change {
            Change::Transaction(changes) => {
                self.commits += 1;
                for ((table, id), content) in changes {
                    if let Some(model) = self.tables.get_mut(table) {
                        model.put(*id, self.commits, *content);
                    }
                }
            }
            Change::Prepare(name, changes) => drop(self.prepared.insert(name.clone(), changes.clone())),
            Change::EndPrepared { name, commit } => {
                let changes = self.prepared.remove(name).filter(|_| *commit);
                changes.into_iter().for_each(|changes| self.apply(&Change::Transaction(changes)));
            }
            Change::CreateTable(table, indexes) => {
                let model = Model { indexes: indexes.clone(), ..Model::default() };
                self.tables.insert(table.clone(), model);
            }
            Change::DropTable(table) => drop(self.tables.remove(table)),
            Change::RenameTable(table, to) => {
                let renamed = self.tables.remove(table).map(|model| self.tables.insert(to.clone(), model));
                debug_assert!(matches!(renamed, Some(None)), "there was no table of the new name");
            }
            Change::TruncateTable(table) => {
                let commits = self.commits;
                self.tables.get_mut(table).into_iter().for_each(|model| model.truncate(commits));
            }
            Change::CreateIndex(table, index) => {
                self.tables.get_mut(table).map(|model| model.indexes.insert(index));
            }
            Change::DropIndex(table, index) => {
                self.tables.get_mut(table).map(|model| model.indexes.remove(index));
            }
            Change::CreateExpiring => self.expiring = Some(Briefs::new()),
            Change::Expiring(changes) => {
                let rows = self.expiring.get_or_insert_default();
                for (id, row) in changes {
                    match row {
                        Some(row) => drop(rows.insert(*id, *row)),
                        None => drop(rows.remove(id)),
                    }
                }
            }
        }
    }

    /// Compares the opened database with the oracle. The change in doubt may have survived, and the last changes that
    /// are not durable may be lost. The oracle continues with the contents of the database.
    ///
    /// # Errors
    /// [`Error::Data`] names the first difference.
    pub(crate) fn compare(&mut self, db: &Database) -> Result<()> {
        self.compare_within(db, 0..=usize::MAX)
    }

    /// As [`compare`](Self::compare); the number of surviving changes must be in this range, because a surviving prefix
    /// outside the oracle implies it.
    ///
    /// # Errors
    /// [`Error::Data`] names the first difference.
    pub(crate) fn compare_within(&mut self, db: &Database, survived: RangeInclusive<usize>) -> Result<()> {
        let found = Found::read(db)?;
        let all = self.log.len();
        // An error in between decides nothing: the change is still in doubt at the next opening.
        let mut text = match found.differs(self) {
            None if survived.contains(&all) => {
                self.in_doubt = None;
                self.is_durable();
                return Ok(());
            }
            None => format!("all of {all} changes are there, {survived:?} are right"),
            Some(text) => text,
        };
        let in_doubt = self.in_doubt.clone().filter(|_| survived.contains(&(all + 1)));
        let with_it = in_doubt.map(|change| {
            let mut done = Oracle { in_doubt: None, ..self.clone() };
            done.acknowledged(change);
            done
        });
        let fewer = (self.durable.max(*survived.start())..all.min(survived.end().saturating_add(1))).rev();
        let mut others = with_it.into_iter().chain(fewer.map(|count| self.after(count)));
        let right = others.find_map(|mut other| match found.differs(&other) {
            None => {
                other.is_durable();
                Some(other)
            }
            Some(difference) => {
                text += &format!("; as it may be too: {difference}");
                None
            }
        });
        drop(others);
        *self = right.ok_or(Error::Data(text))?;
        Ok(())
    }
}

/// A set of secondary indexes; each bit of the number selects an index.
pub(crate) fn indexes_of(bits: u32) -> BTreeSet<&'static str> {
    (0..).zip(INDEXES).filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, index)| index.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_oracle_goes_back_to_any_number_of_changes() {
        let mut oracle = Oracle::default();
        let content = |a| Content { a, ..Content::default() };
        let write = |id, content| Change::Transaction(Changes::from([(("t".to_string(), id), content)]));
        oracle.acknowledged(Change::CreateTable("t".into(), indexes_of(1)));
        oracle.acknowledged(write(1, Some(content(1))));
        oracle.acknowledged(write(2, Some(content(2))));
        oracle.acknowledged(write(1, None));
        let rows = |changes| oracle.after(changes).tables["t"].at(u64::MAX).into_keys().collect::<Vec<_>>();
        assert_eq!([1, 2, 3, 4].map(rows), [vec![], vec![1], vec![1, 2], vec![2]]);
        assert!(oracle.after(0).tables.is_empty());
        assert_eq!(oracle.tables["t"].indexes, BTreeSet::from(["by_a"]));
        let Change::Transaction(changes) = write(3, Some(content(3))) else { unreachable!() };
        for (name, commit) in [("x", true), ("y", false)] {
            oracle.acknowledged(Change::Prepare(name.into(), changes.clone()));
            oracle.acknowledged(Change::EndPrepared { name: name.into(), commit });
        }
        assert!(oracle.after(5).prepared.contains_key("x") && oracle.after(6).prepared.is_empty());
        assert_eq!([5, 6, 8].map(|changes| oracle.after(changes).commits), [3, 4, 4]);
    }
}
