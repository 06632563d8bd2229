//! Statements of a transaction, each compared with the model.

use super::read::{self, Range, over};
use super::shape::Shape;
use super::{Actor, Rows, Session, World, is_conflict};
use crate::input::Input;
use crate::values::{Key, are_equal, compare_first, refs};
use highwater::{Error, Isolation, Table, Value, ValueRef};
use std::rc::Rc;

/// Savepoints of a transaction at most.
const SAVEPOINTS: usize = 4;

/// A transaction and what is around it.
struct Statement<'w> {
    actor: &'w mut Actor,
    others: &'w [Actor],
    committed: &'w Rc<Rows>,
    shape: &'w Shape,
    table: &'w Table,
}

impl World {
    pub(super) fn act(&mut self, session: &mut Session, at: usize, input: &mut Input<'_>) {
        let mut actor = session.actors.swap_remove(at);
        let (committed, shape, table) = (&self.committed, &self.shape, &session.table);
        Statement { actor: &mut actor, others: &session.actors, committed, shape, table }.act(input);
        session.actors.push(actor);
    }
}

impl Statement<'_> {
    fn act(&mut self, input: &mut Input<'_>) {
        match input.byte() % 16 {
            0..=3 => self.insert(input),
            4..=7 => self.update(input),
            8 | 9 => self.delete(input),
            10 => self.get(input),
            11 => self.get_locking(input),
            12 | 13 => self.scan(input),
            14 if self.actor.savepoints.len() < SAVEPOINTS => {
                let savepoint = self.actor.txn.savepoint();
                self.actor.savepoints.push((savepoint, self.actor.own.clone()));
            }
            _ if !self.actor.savepoints.is_empty() => {
                let at = input.below(self.actor.savepoints.len());
                self.actor.savepoints.truncate(at + 1);
                let (savepoint, own) = self.actor.savepoints.remove(at);
                self.actor.txn.rollback_to(savepoint).expect("a part is rolled back");
                self.actor.own = own;
            }
            _ => {}
        }
    }

    /// What a write or a locking read works on.
    fn newest(&self) -> Rows {
        over(self.committed, &self.actor.own)
    }

    /// A view begins with the first plain read, under first-committer-wins with any.
    fn keep_view(&mut self, is_plain: bool) {
        let keeps = self.actor.options.isolation == Isolation::RepeatableRead;
        if keeps && (is_plain || self.actor.options.first_committer_wins) {
            self.actor.view.get_or_insert_with(|| self.committed.clone());
        }
    }

    /// What a plain read finds.
    fn visible(&self) -> Rows {
        match self.actor.options.isolation {
            Isolation::ReadUncommitted => {
                let dirty = self.others.iter().fold((**self.committed).clone(), |rows, other| over(&rows, &other.own));
                over(&dirty, &self.actor.own)
            }
            Isolation::RepeatableRead => over(self.actor.view.as_ref().unwrap_or(self.committed), &self.actor.own),
            Isolation::ReadCommitted | Isolation::Serializable => self.newest(),
        }
    }

    /// Law 2: the refusal has a reason.
    fn refused(&self, error: &Error, has_duplicate: bool) {
        match error {
            Error::DuplicateKey { .. } => assert!(has_duplicate, "{error}, but there is none"),
            error if is_conflict(error) => {
                let has_reason = !self.others.is_empty() || self.actor.options.first_committer_wins;
                assert!(has_reason, "{error}, but there is no other transaction");
            }
            error => panic!("{error}"),
        }
    }

    /// Law 3: no other transaction has changed the row without committing. Under first-committer-wins no other has
    /// committed a change since the view.
    fn passes(&self, key: &Key) {
        assert!(
            self.others.iter().all(|other| !other.own.contains_key(key)),
            "a change that is not committed: {key:?}"
        );
        if let (true, Some(view)) = (self.actor.options.first_committer_wins, &self.actor.view) {
            let is_same = match (view.get(key), self.committed.get(key)) {
                (Some(before), Some(now)) => are_equal(before, now),
                (before, now) => before.is_none() == now.is_none(),
            };
            assert!(is_same, "the row was changed after the snapshot: {key:?}");
        }
    }

    /// Whether the row meets another one in a unique index, without the row of `own_key`.
    fn meets(&self, rows: &Rows, row: &[Value], own_key: Option<&Key>) -> bool {
        let key = self.shape.key(row);
        let others = || rows.iter().filter(|(other, _)| Some(*other) != own_key);
        let unique = self.shape.indexes().into_iter().skip(1).filter(|index| index.unique);
        let mut unique = unique.map(|index| index.columns.to_vec());
        others().any(|(other, _)| *other == key)
            || unique.any(|columns| {
                let of = |row: &[Value]| columns.iter().map(|column| row[*column].clone()).collect::<Vec<Value>>();
                let own = of(row);
                let has_null = own.iter().any(|value| matches!(value, Value::Null));
                !has_null && others().any(|(_, other)| compare_first(&of(other), &own).is_eq())
            })
    }

    /// A row that was written meets none that is committed, own, or on its way.
    fn fits(&self, row: &[Value], own_key: Option<&Key>) {
        assert!(!self.meets(&self.newest(), row, own_key), "a duplicate was accepted: {row:?}");
        for other in self.others {
            let dirty = other.own.iter().filter_map(|(key, row)| Some((key.clone(), row.clone()?))).collect();
            assert!(!self.meets(&dirty, row, own_key), "a duplicate of a row on its way was accepted: {row:?}");
        }
    }

    fn insert(&mut self, input: &mut Input<'_>) {
        let mut row = self.shape.row(input);
        let counts = self.shape.counts && input.byte() & 1 != 0;
        if counts {
            row[0] = Value::Null;
        }
        self.keep_view(false);
        match self.actor.txn.insert(self.table, &refs(&row)) {
            Ok(inserted) => {
                if counts {
                    row[0] = Value::UInt(inserted.auto_increment.expect("a number was given"));
                }
                self.fits(&row, None);
                self.actor.own.insert(self.shape.key(&row), Some(row));
            }
            Err(error) => self.refused(&error, self.meets(&self.newest(), &row, None)),
        }
    }

    /// The key of a row that may be there.
    fn key(&self, input: &mut Input<'_>) -> Key {
        let newest = self.newest();
        match input.byte() % 4 {
            0 => self.shape.key(&self.shape.row(input)),
            _ if newest.is_empty() => self.shape.key(&self.shape.row(input)),
            _ => newest.keys().nth(input.below(newest.len())).expect("it is one of them").clone(),
        }
    }

    fn update(&mut self, input: &mut Input<'_>) {
        let (key, which, how) = (self.key(input), input.byte(), input.byte());
        let set: Vec<(usize, Value)> = (0..self.shape.len())
            .filter(|column| which >> column & 1 != 0 && (which & 0x80 != 0 || !self.is_key(*column)))
            .map(|column| (column, self.shape.value(column, input)))
            .collect();
        let old = self.newest().get(&key).cloned();
        let mut row = old.clone().unwrap_or_default();
        if old.is_some() {
            set.iter().for_each(|(column, value)| row[*column] = value.clone());
        }
        self.keep_view(false);
        let columns: Vec<(usize, ValueRef<'_>)> = set.iter().map(|(column, value)| (*column, value.as_ref())).collect();
        let done = match how & 1 {
            0 => self.actor.txn.update(self.table, &refs(&key.0), &columns),
            _ => self.actor.txn.modify(self.table, &refs(&key.0), |found, set| {
                let found: Vec<Value> = found.values().map(ValueRef::to_value).collect();
                assert!(
                    old.as_ref().is_some_and(|old| are_equal(old, &found)),
                    "{found:?} is changed, {old:?} is right"
                );
                columns.iter().for_each(|(column, value)| set.put(*column, *value));
            }),
        };
        match done {
            Ok(found) => {
                self.found(&key, found);
                if found && !are_equal(&row, old.as_ref().unwrap_or(&row)) {
                    self.fits(&row, Some(&key));
                    self.actor.own.insert(key, None);
                    self.actor.own.insert(self.shape.key(&row), Some(row));
                }
            }
            Err(error) => {
                let has_duplicate = old.is_some() && self.meets(&self.newest(), &row, Some(&key));
                self.refused(&error, has_duplicate);
            }
        }
    }

    fn is_key(&self, column: usize) -> bool {
        self.shape.indexes()[0].columns.contains(&column)
    }

    /// A write said whether there is such a row.
    fn found(&self, key: &Key, found: bool) {
        assert_eq!(found, self.newest().contains_key(key), "whether there is a row {key:?}");
        if found {
            self.passes(key);
        }
    }

    fn delete(&mut self, input: &mut Input<'_>) {
        let key = self.key(input);
        self.keep_view(false);
        match self.actor.txn.delete(self.table, &refs(&key.0)) {
            Ok(found) => {
                self.found(&key, found);
                if found {
                    self.actor.own.insert(key, None);
                }
            }
            Err(error) => self.refused(&error, false),
        }
    }

    fn get(&mut self, input: &mut Input<'_>) {
        let key = self.key(input);
        self.keep_view(true);
        match self.actor.txn.get(self.table, &refs(&key.0)) {
            Ok(row) => self.same_row(&key, row.map(|row| row.to_values()), &self.visible()),
            Err(error) => return self.refused_read(&error, false),
        }
        let columns: Vec<usize> = (0..self.shape.len()).rev().filter(|_| input.byte() & 1 == 0).collect();
        match self.actor.txn.get_columns(self.table, &refs(&key.0), &columns) {
            Ok(row) => {
                let only = |row: &Vec<Value>| columns.iter().map(|column| row[*column].clone()).collect::<Vec<_>>();
                let rows = self.visible().iter().map(|(key, row)| (key.clone(), only(row))).collect();
                self.same_row(&key, row.map(|row| row.to_values()), &rows);
            }
            Err(error) => self.refused_read(&error, false),
        }
    }

    fn get_locking(&mut self, input: &mut Input<'_>) {
        let (key, how) = (self.key(input), input.byte());
        self.keep_view(false);
        let row = match how & 1 {
            0 => self.actor.txn.get_for_update(self.table, &refs(&key.0)),
            _ => self.actor.txn.get_for_share(self.table, &refs(&key.0)),
        };
        match row {
            Ok(row) => {
                if row.is_some() {
                    self.passes(&key);
                }
                self.same_row(&key, row.map(|row| row.to_values()), &self.newest());
            }
            Err(error) => self.refused_read(&error, true),
        }
    }

    fn same_row(&self, key: &Key, found: Option<Vec<Value>>, rows: &Rows) {
        let right: Vec<Vec<Value>> = rows.get(key).cloned().into_iter().collect();
        read::same(&found.into_iter().collect::<Vec<_>>(), &right, &format!("{:?}", self.actor.options));
    }

    /// A plain read waits for no transaction, except under SERIALIZABLE.
    fn refused_read(&self, error: &Error, is_locking: bool) {
        let may = is_locking || self.actor.options.isolation == Isolation::Serializable;
        assert!(may, "a plain read was refused: {error}");
        self.refused(error, false);
    }

    fn scan(&mut self, input: &mut Input<'_>) {
        let (range, how) = (Range::choose(input, self.shape), input.byte());
        let (lock, in_place, wait) = (how % 4, how & 0x80 != 0, how >> 2 & 3);
        let (bounds, is_locking) = (range.bounds(), lock >= 2);
        if range.may_read_nothing() && self.actor.view.is_none() {
            self.get(input);
        }
        self.keep_view(!is_locking);
        let scan = range.apply(&bounds, self.actor.txn.scan(self.table));
        let scan = match lock {
            2 => scan.for_update(),
            3 => scan.for_share(),
            _ => scan,
        };
        let scan = match wait {
            _ if !is_locking => scan,
            1 => scan.nowait(),
            2 => scan.skip_locked(),
            3 => scan.one_by_one(),
            _ => scan,
        };
        let found = match read::all(scan, in_place) {
            Ok(found) => found,
            Err(error) => return self.refused_read(&error, is_locking),
        };
        let level = self.actor.options.isolation;
        // An entry on its way to another place of the index may be missed.
        if !is_locking && level == Isolation::ReadUncommitted && range.index != "PRIMARY" {
            return;
        }
        if is_locking && wait == 2 {
            return self.skipped(&found, &range);
        }
        let rows = if is_locking { self.newest() } else { self.visible() };
        read::same(&found, &range.of(&rows, self.shape), &format!("{:?}, lock {lock}", self.actor.options));
    }

    /// A scan that skips locked rows finds some of the newest ones, and none that another transaction has changed.
    fn skipped(&self, found: &[Vec<Value>], range: &Range) {
        let all = range.without_limit().of(&self.newest(), self.shape);
        let mut rest = all.iter();
        let is_part = found.iter().all(|row| rest.any(|other| are_equal(other, row)));
        assert!(is_part, "{found:?} is no part of {all:?}");
        found.iter().for_each(|row| self.passes(&self.shape.key(row)));
    }
}
