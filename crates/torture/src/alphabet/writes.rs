//! Statements that change rows: their expected effects, and the comparison with their answers.

use super::choices::Choices;
use super::content::{
    A, B, BODY, C, Content, NOTE, Rows as Contents, content, id_key, number_of, row_of, text, values_of,
};
use super::played::{Played, call};
use super::random_writes::SETS;
use super::raw::RawAnswer;
use super::scan::FIRST_TEXT_VALUES;
use highwater::{
    Changes, Inserted, Insertion, LockMode, RowRef, Rows, Scan, Table, Upserted, Value, ValueRef, WriteTxn, values,
};
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
pub(super) enum Statement {
    /// Inserts a row; without an id the table assigns one.
    Insert(Option<u64>, Content),
    InsertMany(Vec<(u64, Content)>),
    InsertManyWith(Vec<(Option<u64>, Content)>),
    /// Inserts the row, or locks its duplicate.
    InsertOrGet(u64, Content, LockMode),
    /// Inserts the row, or sets these columns of its duplicate.
    Upsert(u64, Content, &'static [usize]),
    /// Deletes the rows that have one of its keys, and inserts the row.
    Replace(u64, Content),
    /// Sets these columns.
    Update(u64, Content, &'static [usize]),
    /// Sets the first text to its next value.
    Modify(u64),
    /// Changes the id of a row.
    Move(u64, u64),
    Delete(u64),
    /// Deletes the rows of these ids, all or those with an even number in the first text.
    DeleteRange(u64, u64, bool),
    /// By the raw API.
    Raw(Box<Statement>),
}

/// The answer of a statement.
#[derive(Debug)]
pub(super) struct Answer {
    /// Whether the row existed; true for inserts.
    found: bool,
    /// Number of rows that it inserted or deleted, if it returns that.
    inserted: Option<u64>,
    /// The ids that the table assigned.
    given: Vec<u64>,
    duplicates: Duplicates,
}

/// A statement's answer about the rows that had a key of the row to insert.
#[derive(Debug)]
enum Duplicates {
    Unsaid,
    /// It returned this row.
    Row(u64, Content),
    /// It changed or deleted this many rows.
    Count(usize),
}

/// Rows that a statement changed: `None` = deleted.
pub(super) type Changed = BTreeMap<u64, Option<Content>>;

/// The effect of a statement without conflicts with other transactions.
enum Effect {
    Changed(Changed),
    NotFound,
    Duplicate,
}

impl Content {
    /// A row with a body of this length and unused texts.
    pub(crate) fn with_body(body_bytes: u32, rng: &mut Choices) -> Content {
        let letter = if body_bytes > 0 { b'a' + rng.u32(..26) as u8 } else { 0 };
        Content { body_bytes, letter, ..Content::default() }
    }
}

impl Statement {
    /// Inserts a row, or sets all its columns if it exists.
    pub(super) fn put(rows: &Contents, id: u64, content: Content) -> Statement {
        match rows.contains_key(&id) {
            true => Statement::Update(id, content, SETS[0]),
            false => Statement::Insert(Some(id), content),
        }
    }

    /// Runs it.
    ///
    /// # Errors
    /// The engine's.
    pub(super) fn run(&self, txn: &mut WriteTxn, table: &Table, played: &Played) -> highwater::Result<Answer> {
        let found = |found| Answer { found, inserted: None, given: Vec::new(), duplicates: Duplicates::Unsaid };
        let inserted = |inserted, given: Vec<Inserted>| {
            let given = given.iter().filter_map(|inserted| inserted.auto_increment).collect();
            Answer { found: true, inserted, given, duplicates: Duplicates::Unsaid }
        };
        match self {
            Statement::Raw(statement) => Ok(match statement.run_raw(txn, table, played)? {
                Some(RawAnswer::Inserted(done)) => inserted(None, vec![done]),
                Some(RawAnswer::InsertedMany(count)) => inserted(Some(count), Vec::new()),
                Some(RawAnswer::Found(is_found)) => found(is_found),
                None => return statement.run(txn, table, played),
            }),
            Statement::Insert(id, content) => {
                let done = call!(played, WriteTxn::insert(txn, table, &refs(&row_of(table, *id, content))))?;
                Ok(inserted(None, vec![done]))
            }
            Statement::InsertMany(rows) => {
                let rows: Vec<_> = rows.iter().map(|(id, content)| row_of(table, Some(*id), content)).collect();
                let count = call!(played, WriteTxn::insert_many(txn, table, rows.iter().map(|values| refs(values))))?;
                Ok(inserted(Some(count), Vec::new()))
            }
            Statement::InsertManyWith(rows) => {
                let (count, given) = insert_many_with(rows, txn, table, played)?;
                Ok(inserted(Some(count), given))
            }
            Statement::InsertOrGet(..) | Statement::Upsert(..) | Statement::Replace(..) => {
                self.run_upsert(txn, table, played).map(|duplicates| Answer { duplicates, ..found(true) })
            }
            Statement::Update(id, content, set) => {
                let values = values_of(Some(*id), content);
                let columns: Vec<_> = set.iter().map(|column| (*column, values[*column].as_ref())).collect();
                call!(played, WriteTxn::update(txn, table, &id_key(*id), &columns)).map(found)
            }
            Statement::Modify(id) => {
                let done = call!(
                    played,
                    WriteTxn::modify(txn, table, &id_key(*id), |row, set| {
                        let next = text(next_of(number_of(row.str(A)).unwrap_or(0)));
                        call!(played, Changes::put(set, A, next.as_str()));
                    })
                );
                done.map(found)
            }
            Statement::Move(id, to) => {
                call!(played, WriteTxn::update(txn, table, &id_key(*id), &[(0, (*to).into())])).map(found)
            }
            Statement::Delete(id) => call!(played, WriteTxn::delete(txn, table, &values![*id])).map(found),
            Statement::DeleteRange(first, last, are_all) => {
                let (first, last) = (values![*first], values![*last]);
                let scan = call!(played, WriteTxn::scan(txn, table)).from(&first).to(&last);
                let is_even = |row: RowRef<'_>| number_of(row.str(A)).is_ok_and(|a| a.is_multiple_of(2));
                let deleted = match are_all {
                    true => call!(played, Scan::delete(scan)),
                    false => call!(played, Scan::delete_if(scan, is_even)),
                };
                deleted.map(|count| inserted(Some(count), Vec::new()))
            }
        }
    }

    /// Runs a statement that handles duplicates.
    fn run_upsert(&self, txn: &mut WriteTxn, table: &Table, played: &Played) -> highwater::Result<Duplicates> {
        match self {
            Statement::InsertOrGet(id, new, lock) => {
                let row = row_of(table, Some(*id), new);
                Ok(match call!(played, WriteTxn::insert_or_get(txn, table, &refs(&row), *lock))? {
                    Insertion::Inserted(_) => Duplicates::Count(0),
                    Insertion::Duplicate { row, .. } => {
                        let (id, content) =
                            content(&row).map_err(|error| highwater::Error::Corrupt(error.to_string()))?;
                        Duplicates::Row(id, content)
                    }
                })
            }
            Statement::Upsert(id, new, set) => {
                let (row, new) = (row_of(table, Some(*id), new), values_of(Some(*id), new));
                let done = call!(
                    played,
                    WriteTxn::upsert(txn, table, &refs(&row), |_, changes| {
                        set.iter().for_each(|column| changes.put(*column, new[*column].as_ref()));
                    })
                )?;
                Ok(Duplicates::Count(usize::from(done == Upserted::Changed)))
            }
            Statement::Replace(id, new) => {
                let row = row_of(table, Some(*id), new);
                let done = call!(played, WriteTxn::replace(txn, table, &refs(&row)))?;
                Ok(Duplicates::Count(done.deleted as usize))
            }
            _ => Ok(Duplicates::Unsaid),
        }
    }

    /// Ids of the duplicates of the row that it inserts: the one with its primary key first.
    fn duplicates(&self, rows: &Contents, is_unique: bool) -> Vec<u64> {
        let (Statement::InsertOrGet(id, new, _) | Statement::Upsert(id, new, _) | Statement::Replace(id, new)) = self
        else {
            return Vec::new();
        };
        let has_c = |content: &Content| is_unique && new.c.is_some() && content.c == new.c;
        let others = rows.iter().filter(|(other, content)| *other != id && has_c(content)).map(|(other, _)| *other);
        rows.contains_key(id).then_some(*id).into_iter().chain(others).collect()
    }

    /// As [`Statement::effect`], for a statement that handles duplicates; returns whether it is possible.
    fn upsert(&self, after: &mut After<'_>) -> bool {
        let others = self.duplicates(after.rows, after.is_unique);
        match (self, others.first()) {
            (Statement::InsertOrGet(..), Some(_)) => true,
            (Statement::Upsert(_, new, set), Some(other)) => after.replace(*other, set_in(after.rows[other], new, set)),
            (Statement::InsertOrGet(id, new, _) | Statement::Upsert(id, new, _) | Statement::Replace(id, new), _) => {
                after.changed.extend(others.iter().map(|other| (*other, None)));
                after.insert(*id, *new)
            }
            _ => true,
        }
    }

    /// Whether its answer about the duplicates is right.
    fn is_right(&self, said: &Duplicates, rows: &Contents, is_unique: bool) -> bool {
        let right = self.duplicates(rows, is_unique);
        match said {
            Duplicates::Unsaid => true,
            Duplicates::Row(id, content) => right.first() == Some(id) && rows.get(id) == Some(content),
            Duplicates::Count(count) if matches!(self, Statement::Replace(..)) => right.len() == *count,
            Duplicates::Count(count) => right.len().min(1) == *count,
        }
    }

    /// Its effect on these rows; auto-increment ids are taken from `given`, in order.
    fn effect(&self, rows: &Contents, is_unique: bool, given: &[u64]) -> Effect {
        if let Statement::Raw(statement) = self {
            return statement.effect(rows, is_unique, given);
        }
        let mut given = given.iter().copied();
        // Unknown ids are greater than all others.
        let unknown = std::cell::Cell::new(u64::MAX);
        let mut id_of =
            |id: &Option<u64>| id.or_else(|| given.next()).unwrap_or_else(|| unknown.replace(unknown.get() - 1));
        let mut after = After { rows, changed: Changed::new(), is_unique };
        let done = match self {
            Statement::Insert(id, content) => after.insert(id_of(id), *content),
            Statement::InsertMany(rows) => rows.iter().all(|(id, content)| after.insert(*id, *content)),
            Statement::InsertManyWith(rows) => rows.iter().all(|(id, content)| after.insert(id_of(id), *content)),
            Statement::InsertOrGet(..) | Statement::Upsert(..) | Statement::Replace(..) => self.upsert(&mut after),
            Statement::Update(id, new, set) => match rows.get(id) {
                Some(old) => after.replace(*id, set_in(*old, new, set)),
                None => return Effect::NotFound,
            },
            Statement::Modify(id) => match rows.get(id) {
                Some(old) => after.replace(*id, Content { a: next_of(old.a), ..*old }),
                None => return Effect::NotFound,
            },
            Statement::Move(id, to) => match rows.get(id) {
                Some(old) if id == to => after.replace(*id, *old),
                Some(old) => {
                    after.changed.insert(*id, None);
                    after.insert(*to, *old)
                }
                None => return Effect::NotFound,
            },
            Statement::Delete(id) => match rows.contains_key(id) {
                true => after.changed.insert(*id, None).is_none(),
                false => return Effect::NotFound,
            },
            Statement::DeleteRange(first, last, are_all) => {
                let chosen = rows.range(*first..=*last).filter(|(_, row)| *are_all || row.a.is_multiple_of(2));
                after.changed.extend(chosen.map(|(id, _)| (*id, None)));
                true
            }
            Statement::Raw(_) => true,
        };
        if done { Effect::Changed(after.changed) } else { Effect::Duplicate }
    }
}

fn refs(values: &[Value]) -> Vec<ValueRef<'_>> {
    values.iter().map(Value::as_ref).collect()
}

fn next_of(a: u32) -> u32 {
    (a + 1) % FIRST_TEXT_VALUES
}

fn set_in(old: Content, new: &Content, set: &[usize]) -> Content {
    let sets = |column| set.contains(&column);
    Content {
        a: if sets(A) { new.a } else { old.a },
        b: if sets(B) { new.b } else { old.b },
        c: if sets(C) { new.c } else { old.c },
        body_bytes: if sets(BODY) { new.body_bytes } else { old.body_bytes },
        letter: if sets(BODY) { new.letter } else { old.letter },
        note_bytes: if sets(NOTE) { new.note_bytes } else { old.note_bytes },
        note_letter: if sets(NOTE) { new.note_letter } else { old.note_letter },
    }
}

/// Rows after a part of a statement.
struct After<'r> {
    rows: &'r Contents,
    changed: Changed,
    is_unique: bool,
}

impl After<'_> {
    fn get(&self, id: u64) -> Option<Content> {
        self.changed.get(&id).copied().unwrap_or_else(|| self.rows.get(&id).copied())
    }

    /// Whether another row has the value of a unique column.
    fn has_other(&self, id: u64, c: Option<u32>) -> bool {
        let ids = self.rows.keys().chain(self.changed.keys());
        self.is_unique
            && c.is_some()
            && ids.filter(|other| **other != id).any(|other| self.get(*other).is_some_and(|content| content.c == c))
    }

    /// Inserts a row; returns whether that is possible.
    fn insert(&mut self, id: u64, content: Content) -> bool {
        self.get(id).is_none() && self.replace(id, content)
    }

    fn replace(&mut self, id: u64, content: Content) -> bool {
        let fits = !self.has_other(id, content.c);
        self.changed.insert(id, Some(content));
        fits
    }
}

/// A statement, and the state of the database when it ran.
pub(super) struct Judge<'a> {
    pub statement: &'a Statement,
    /// The newest committed rows, with the transaction's changes.
    pub rows: &'a Contents,
    /// Uncommitted changes of other transactions.
    pub others: &'a Changed,
    /// Whether the column that may be NULL is unique.
    pub is_unique: bool,
}

impl Judge<'_> {
    /// Whether a row has its key, or its key of a unique index.
    pub(super) fn is_duplicate(&self) -> bool {
        matches!(self.statement.effect(self.rows, self.is_unique, &[]), Effect::Duplicate)
    }

    /// The changes of a statement with this answer; the error is a text that says why the answer is wrong.
    pub(super) fn changes(&self, answer: &Answer) -> std::result::Result<Changed, String> {
        let taken = |id: &u64| self.rows.keys().chain(self.others.keys()).any(|other| other >= id);
        if let Some(id) = answer.given.iter().find(|id| taken(id)) {
            return Err(format!("it got the id {id}, and there is a row with that one or a greater one"));
        }
        let changed = match self.statement.effect(self.rows, self.is_unique, &answer.given) {
            Effect::Duplicate => return Err("done though such a key is there".into()),
            Effect::NotFound if answer.found => return Err("changed though there is no such row".into()),
            Effect::NotFound => return Ok(Changed::new()),
            Effect::Changed(_) if !answer.found => return Err("the row was not found".into()),
            Effect::Changed(changed) => changed,
        };
        if let Some(id) = changed.keys().find(|id| self.others.contains_key(id)) {
            return Err(format!("row {id} was changed though another transaction has changed it"));
        }
        let mut new = changed.values().flatten().filter_map(|content| content.c).filter(|_| self.is_unique);
        if let Some(c) = new.find(|c| self.others.values().flatten().any(|other| other.c == Some(*c))) {
            return Err(format!("{c} is in a unique index though another transaction has put it there"));
        }
        if !self.statement.is_right(&answer.duplicates, self.rows, self.is_unique) {
            let right = self.statement.duplicates(self.rows, self.is_unique);
            return Err(format!("rows {right:?} have one of its keys, and it says {:?}", answer.duplicates));
        }
        match answer.inserted {
            Some(count) if count != changed.len() as u64 => Err(format!("it says that it changed {count} rows")),
            // A row that an update leaves as it is has no new version.
            _ => Ok(changed.into_iter().filter(|(id, content)| self.rows.get(id) != content.as_ref()).collect()),
        }
    }
}

/// Inserts rows that a closure creates; returns their number and the answer of each insertion.
fn insert_many_with(
    rows: &[(Option<u64>, Content)],
    txn: &mut WriteTxn,
    table: &Table,
    played: &Played,
) -> highwater::Result<(u64, Vec<Inserted>)> {
    let mut given = Vec::new();
    let fill = |into: &mut Rows<'_>| {
        rows.iter().try_for_each(|(id, content)| {
            given.push(call!(played, Rows::push(into, &refs(&row_of(table, *id, content))))?);
            Ok::<(), highwater::Error>(())
        })
    };
    let count = call!(played, WriteTxn::insert_many_with(txn, table, fill))?;
    Ok((count, given))
}
