//! Reads of a transaction or a snapshot, compared with the rows that it must see.

use super::choices::Choices;
use super::content::{
    Content, PRIMARY, PROJECTIONS, Rows, columns_of, compare, content, content_of, content_of_columns, id_key, key_of,
    value_of,
};
use super::oracle::Model;
use super::played::{Played, call};
use super::raw;
use super::scan::{IDS, Lock, Look, Wait};
use super::walk::walk;
use highwater::{LockMode, LockWait, ReadTxn, Row, Scan, Table, Value, WriteTxn};
use highwater_bench::{Error, Result};

/// Maximum number of keys of one call.
const MAX_KEYS: usize = 12;

/// The reader: a transaction or a snapshot.
pub(super) enum Reader<'t> {
    Snapshot(&'t mut ReadTxn),
    Txn(&'t mut WriteTxn),
}

/// A call that both kinds of readers have.
macro_rules! call_either {
    ($played:expr, $reader:expr, $method:ident($($argument:expr),*)) => {
        match $reader {
            Reader::Snapshot(read) => call!($played, ReadTxn::$method(read, $($argument),*)),
            Reader::Txn(txn) => call!($played, WriteTxn::$method(txn, $($argument),*)),
        }
    };
}

/// A read.
#[derive(Clone, Debug)]
pub(super) enum Query {
    Get(u64),
    GetWith(u64),
    GetColumns(u64, &'static [usize]),
    GetForUpdate(u64),
    GetForShare(u64),
    GetLocked(u64, LockMode, LockWait),
    GetMany(Vec<u64>),
    Prefetch(Vec<u64>),
    /// By a key of an index, which may have no row.
    GetBy(&'static str, Vec<Option<u64>>),
    Scan(Look),
    /// By a cursor over this index.
    Walk(&'static str),
    /// By the raw API.
    RawGet(u64),
    /// By a cursor of the raw API: the index, the id of a row whose key is the range, whether odd ids are passed.
    RawWalk(&'static str, Option<u64>, bool),
}

fn random_ids(model: &Model, rng: &mut Choices) -> Vec<u64> {
    (0..rng.usize(1..MAX_KEYS)).map(|_| random_id(model, rng)).collect()
}

/// A random id, often of an existing or deleted row.
pub(super) fn random_id(model: &Model, rng: &mut Choices) -> u64 {
    let id = rng.u64(..IDS);
    let near = if rng.bool() { model.id_from(id) } else { None };
    // Ids that the table gave are greater.
    let given = if rng.u32(..8) == 0 { model.id_from(IDS + rng.u64(..IDS)) } else { None };
    given.or(near).unwrap_or(id)
}

impl Query {
    /// A random read of a table; a locking one only if `may_lock`.
    pub(super) fn random(model: &Model, rows: &Rows, may_lock: bool, rng: &mut Choices) -> Query {
        match rng.u32(..20) {
            0..=2 => Query::Get(random_id(model, rng)),
            3 => Query::GetWith(random_id(model, rng)),
            4 if may_lock && rng.bool() => {
                let mode = if rng.bool() { LockMode::Exclusive } else { LockMode::Shared };
                let wait = if rng.bool() { LockWait::SkipLocked } else { Wait::random(rng).policy() };
                Query::GetLocked(random_id(model, rng), mode, wait)
            }
            4 if may_lock => Query::GetForUpdate(random_id(model, rng)),
            5 if may_lock => Query::GetForShare(random_id(model, rng)),
            6 => Query::GetColumns(random_id(model, rng), PROJECTIONS[rng.usize(..PROJECTIONS.len())]),
            7 => Query::GetMany(random_ids(model, rng)),
            8 => Query::Prefetch(random_ids(model, rng)),
            9 | 10 => {
                let index = rng.choice(model.indexes.iter()).copied().unwrap_or(PRIMARY);
                let id = rng.u64(..IDS);
                let content = rows.range(id..).next().map(|(_, content)| *content);
                let content = content.unwrap_or(Content { a: 3, b: 7, ..Content::default() });
                let key = key_of(index, id, &content);
                Query::GetBy(index, key[..rng.usize(1..=columns_of(index).len())].to_vec())
            }
            11 if rng.bool() => Query::RawGet(random_id(model, rng)),
            11 => {
                let index = rng.choice(model.indexes.iter()).copied().unwrap_or(PRIMARY);
                match rng.u32(..3) {
                    0 => Query::Walk(index),
                    whole => Query::RawWalk(index, (whole == 1).then(|| random_id(model, rng)), rng.bool()),
                }
            }
            _ => Query::Scan(Look::random(model, may_lock, rng)),
        }
    }

    /// Whether it locks what it reads.
    pub(super) fn locks(&self) -> bool {
        match self {
            Query::GetForUpdate(_) | Query::GetForShare(_) | Query::GetLocked(..) => true,
            Query::Scan(look) => look.lock != Lock::Plain,
            _ => false,
        }
    }

    /// Whether it passes rows that others have locked.
    pub(super) fn skips(&self) -> bool {
        match self {
            Query::GetLocked(_, _, wait) => *wait == LockWait::SkipLocked,
            Query::Scan(look) => look.skips(),
            _ => false,
        }
    }

    /// Reads, and compares the result with the rows that the reader must see; all of them must be found if none may be
    /// missing.
    ///
    /// # Errors
    /// [`Error::Data`] for a wrong answer; the engine's.
    pub(super) fn compare(
        &self,
        reader: &mut Reader<'_>,
        table: &Table,
        (rows, may_miss): (&Rows, bool),
        played: &Played,
    ) -> Result<()> {
        let right = |id: &u64| rows.get(id).map(|content| (*id, *content));
        let expect = |found: Found, right: Found| match found == right {
            true => Ok(()),
            false => Err(Error::Data(format!("{self:?} is {found:?}, {right:?} is right"))),
        };
        match self {
            Query::GetMany(ids) => {
                let keys: Vec<_> = ids.iter().map(|id| id_key(*id)).collect();
                let found = call_either!(played, reader, get_many(table, &keys))?;
                if found.len() != ids.len() {
                    return Err(Error::Data(format!("{self:?} has {} answers", found.len())));
                }
                ids.iter().zip(found).try_for_each(|(id, found)| expect(of_row(found)?, right(id)))
            }
            Query::Prefetch(ids) => {
                Ok(call_either!(played, reader, prefetch(table, ids.iter().map(|id| id_key(*id))))?)
            }
            Query::Walk(index) => {
                let scan = call_either!(played, reader, scan(table)).index(index);
                walk(call!(played, Scan::cursor(scan))?, reader, (index, rows), played)
            }
            Query::RawWalk(index, prefix_of, is_filtered) => {
                raw::walk(table, (index, *prefix_of, *is_filtered), (reader, rows), played)
            }
            Query::Scan(look) => {
                let scan = call_either!(played, reader, scan(table));
                look.compare(scan, (rows, may_miss), played)
            }
            _ => match self.find(reader, table, rows, played)? {
                Some((None, _)) if may_miss && matches!(self, Query::GetLocked(..)) => Ok(()),
                Some((found, right)) => expect(found, right),
                None => Ok(()),
            },
        }
    }

    /// The result of a query for one row and the expected result; `None` if the reader does not support the query.
    fn find(
        &self,
        reader: &mut Reader<'_>,
        table: &Table,
        rows: &Rows,
        played: &Played,
    ) -> Result<Option<(Found, Found)>> {
        let right = |id: &u64| rows.get(id).map(|content| (*id, *content));
        Ok(Some(match (self, reader) {
            (Query::Get(id), reader) => (of_row(call_either!(played, reader, get(table, &id_key(*id)))?)?, right(id)),
            (Query::GetWith(id), reader) => {
                let found = call_either!(played, reader, get_with(table, &id_key(*id), content_of))?;
                (found.transpose()?, right(id))
            }
            (Query::GetColumns(id, columns), reader) => {
                let found = call_either!(played, reader, get_columns(table, &id_key(*id), columns))?;
                let found = found.map(|row| content_of_columns(row.as_ref(), columns)).transpose()?;
                (found, right(id).map(|(id, content)| (id, content.only(columns))))
            }
            (Query::GetForUpdate(id), Reader::Txn(txn)) => {
                (of_row(call!(played, WriteTxn::get_for_update(txn, table, &id_key(*id)))?)?, right(id))
            }
            (Query::GetForShare(id), Reader::Txn(txn)) => {
                (of_row(call!(played, WriteTxn::get_for_share(txn, table, &id_key(*id)))?)?, right(id))
            }
            (Query::GetLocked(id, mode, wait), Reader::Txn(txn)) => {
                let found = call!(played, WriteTxn::get_locked(txn, table, &id_key(*id), *mode, *wait))?;
                (of_row(found)?, right(id))
            }
            (Query::GetBy(index, numbers), reader) => {
                let columns = columns_of(index).iter().zip(numbers);
                let values: Vec<Value> = columns.map(|(column, number)| value_of(column, *number)).collect();
                let values: Vec<_> = values.iter().map(Value::as_ref).collect();
                let found = of_row(call_either!(played, reader, get_by(table, index, &values))?)?;
                let keyed = rows.iter().map(|(id, content)| (key_of(index, *id, content), *id, *content));
                let first = keyed.filter(|(key, _, _)| key[..numbers.len()] == numbers[..]);
                let first = first.min_by(|a, b| compare(index, &a.0, &b.0).then(a.1.cmp(&b.1)));
                (found, first.map(|(_, id, content)| (id, content)))
            }
            (Query::RawGet(id), reader) => (raw::get(table, *id, reader, played)?, right(id)),
            _ => return Ok(None),
        }))
    }
}

/// A found row, or an expected row.
type Found = Option<(u64, Content)>;

fn of_row(row: Option<Row>) -> Result<Found> {
    row.as_ref().map(content).transpose()
}
