//! Statements and reads by the raw API. Their effects and answers must equal those of the typed API.

use super::content::{
    BODY, Content, PRIMARY, Rows, columns_of, compare, content_of, key_of, row_of, value_of, values_of,
};
use super::played::{Played, call};
use super::reads::Reader;
use super::writes::Statement;
use highwater::raw::{RawColumn, RawCursor, RawRead, RawRow, RawSeek, RawTable, RawVerdict};
use highwater::{Inserted, Table, Type, Value, WriteTxn};
use highwater_bench::{Error, Result};

/// The answer of a statement by the raw API.
pub(super) enum RawAnswer {
    Inserted(Inserted),
    InsertedMany(u64),
    Found(bool),
}

/// The bytes that a column of this type stores for a value.
fn bytes_of(value: &Value, ty: Type) -> Option<Vec<u8>> {
    match value {
        Value::Null => None,
        Value::Text(text) => Some(text.as_bytes().to_vec()),
        Value::UInt(number) => {
            let bytes = match ty {
                Type::U16 => 2,
                Type::U32 => 4,
                _ => 8,
            };
            Some(number.to_le_bytes()[..bytes].to_vec())
        }
        value => unreachable!("no column has {value}"),
    }
}

fn row_bytes(table: &Table, id: Option<u64>, content: &Content) -> Vec<Option<Vec<u8>>> {
    let columns = table.columns();
    row_of(table, id, content).iter().zip(columns).map(|(value, column)| bytes_of(value, column.ty)).collect()
}

fn refs(bytes: &[Option<Vec<u8>>]) -> Vec<RawColumn<'_>> {
    bytes.iter().map(Option::as_deref).collect()
}

/// The encoded key of a row.
fn row_key(raw: &RawTable, id: u64, played: &Played) -> highwater::Result<Vec<u8>> {
    let mut key = Vec::new();
    call!(played, RawTable::append_key(raw, PRIMARY, &[Some(&id.to_le_bytes())], &mut key))?;
    Ok(key)
}

impl Statement {
    /// Whether the raw API has a call for this statement.
    pub(super) fn has_raw_call(&self) -> bool {
        use Statement::{Delete, Insert, InsertMany, Move, Update};
        matches!(self, Insert(..) | InsertMany(..) | Update(..) | Move(..) | Delete(..))
    }

    /// Runs the statement by the raw API; `None` if it has no such call.
    ///
    /// # Errors
    /// The engine's.
    pub(super) fn run_raw(
        &self,
        txn: &mut WriteTxn,
        table: &Table,
        played: &Played,
    ) -> highwater::Result<Option<RawAnswer>> {
        let raw = &RawTable::from(table.clone());
        let columns = table.columns();
        Ok(Some(match self {
            Statement::Insert(id, content) => {
                let row = row_bytes(table, *id, content);
                RawAnswer::Inserted(call!(played, RawTable::insert(raw, txn, &refs(&row)))?)
            }
            Statement::InsertMany(rows) => {
                let rows: Vec<_> = rows.iter().map(|(id, content)| row_bytes(table, Some(*id), content)).collect();
                let rows = rows.iter().map(|row| refs(row));
                RawAnswer::InsertedMany(call!(played, RawTable::insert_many(raw, txn, rows))?)
            }
            Statement::Update(id, content, set) => {
                let (key, values) = (row_key(raw, *id, played)?, values_of(Some(*id), content));
                let bytes = set.iter().map(|column| (*column, bytes_of(&values[*column], columns[*column].ty)));
                let bytes: Vec<_> = bytes.collect();
                let set: Vec<_> = bytes.iter().map(|(column, bytes)| (*column, bytes.as_deref())).collect();
                RawAnswer::Found(call!(played, RawTable::update(raw, txn, &key, &set))?)
            }
            Statement::Move(id, to) => {
                let (key, to) = (row_key(raw, *id, played)?, to.to_le_bytes());
                RawAnswer::Found(call!(played, RawTable::update(raw, txn, &key, &[(0, Some(&to))]))?)
            }
            Statement::Delete(id) => {
                let key = row_key(raw, *id, played)?;
                RawAnswer::Found(call!(played, RawTable::delete(raw, txn, &key))?)
            }
            _ => return Ok(None),
        }))
    }
}

/// The row of an id, by the raw API.
///
/// # Errors
/// [`Error::Data`] for columns that are no row of the oracle's; the engine's.
pub(super) fn get(table: &Table, id: u64, reader: &mut Reader<'_>, played: &Played) -> Result<Option<(u64, Content)>> {
    let raw = &RawTable::from(table.clone());
    let (key, read, mut row) = (row_key(raw, id, played)?, RawRead::default(), RawRow::default());
    let is_there = match reader {
        Reader::Snapshot(txn) => call!(played, RawTable::get(raw, *txn, &key, &read, &mut row)),
        Reader::Txn(txn) => call!(played, RawTable::get(raw, *txn, &key, &read, &mut row)),
    }?;
    if is_there { read_row(&row, played).map(Some) } else { Ok(None) }
}

/// Decodes a row for the comparison with the oracle, and verifies the bytes of its columns.
fn read_row(row: &RawRow, played: &Played) -> Result<(u64, Content)> {
    let typed = call!(played, RawRow::typed(row));
    let (id, content) = content_of(typed.ok_or_else(|| Error::Data("a row that was read has no values".into()))?)?;
    let body = values_of(Some(id), &content)[BODY].clone();
    let right = [Some(id.to_le_bytes().to_vec()), bytes_of(&body, Type::Text(0))];
    let found = [0, BODY].map(|column| call!(played, RawRow::column(row, column)));
    match found == [right[0].as_deref(), right[1].as_deref()] && call!(played, RawRow::columns(row)) > found.len() {
        true => Ok((id, content)),
        false => Err(Error::Data(format!("row {id} has the columns {found:?}, {right:?} are right"))),
    }
}

/// Walks an index by a cursor of the raw API, up and down, over all of it or the range of one row's key. With
/// `is_filtered` a filter rejects odd ids before their rows are read. Compares with the rows that must be seen.
///
/// # Errors
/// [`Error::Data`] for a wrong answer; the engine's.
pub(super) fn walk(
    table: &Table,
    (index, prefix_of, is_filtered): (&str, Option<u64>, bool),
    (reader, rows): (&mut Reader<'_>, &Rows),
    played: &Played,
) -> Result<()> {
    let raw = RawTable::from(table.clone());
    let is_filtered = is_filtered && call!(played, RawTable::index_has(&raw, index, &[0]))?;
    let first = prefix_of.and_then(|id| rows.range(id..).next()).map(|(id, content)| key_of(index, *id, content)[0]);
    let is_right = |id: u64, content: &Content| {
        first.is_none_or(|first| key_of(index, id, content)[0] == first) && !(is_filtered && id % 2 == 1)
    };
    let right = rows.iter().filter(|(id, content)| is_right(**id, content)).map(|(id, content)| (*id, *content));
    let mut right: Vec<_> = right.collect();
    right.sort_unstable_by(|(a, of_a), (b, of_b)| {
        compare(index, &key_of(index, *a, of_a), &key_of(index, *b, of_b)).then(a.cmp(b))
    });
    let mut key = Vec::new();
    if let Some(first) = first {
        let (name, columns) = (columns_of(index)[0], table.columns());
        let ty = columns.iter().find(|column| column.name == name).map_or(Type::U64, |column| column.ty);
        let bytes = bytes_of(&value_of(name, first), ty);
        call!(played, RawTable::append_key(&raw, index, &[bytes.as_deref()], &mut key))?;
    }
    let mut cursor = call!(played, RawTable::cursor(&raw, index, RawRead::default()));
    if is_filtered {
        let is_odd = |row: &RawRow| row.column(0).is_some_and(|id| id[0] % 2 == 1);
        let judge = move |row: &RawRow| if is_odd(row) { RawVerdict::Skip } else { RawVerdict::Take };
        call!(played, RawCursor::set_filter(&mut cursor, &[0], judge));
    }
    for (to, is_down) in [(RawSeek::Exact, false), (RawSeek::ExactLast, true)] {
        let found = walk_from((&mut cursor, to, is_down), &key, reader, played)?;
        if found != right {
            let table = table.name();
            return Err(Error::Data(format!("raw {to:?} by {index} of {table}: {found:?}, {right:?} is right")));
        }
        right.reverse();
    }
    Ok(())
}

/// The rows from a position on.
fn walk_from(
    (cursor, to, is_down): (&mut RawCursor, RawSeek, bool),
    key: &[u8],
    reader: &mut Reader<'_>,
    played: &Played,
) -> Result<Vec<(u64, Content)>> {
    let (mut found, mut row) = (Vec::new(), RawRow::default());
    let mut is_there = match reader {
        Reader::Snapshot(txn) => call!(played, RawCursor::seek(cursor, *txn, to, key)),
        Reader::Txn(txn) => call!(played, RawCursor::seek(cursor, *txn, to, key)),
    }?;
    while is_there {
        let has_key = call!(played, RawCursor::key(cursor)).is_some();
        let entry = call!(played, RawCursor::entry(cursor));
        if entry.is_none() || entry != call!(played, RawCursor::place(cursor)) {
            return Err(Error::Data("a raw cursor on a row is at another place".into()));
        }
        if !call!(played, RawCursor::read_row(cursor, &mut row))? || !has_key {
            return Err(Error::Data("a raw cursor is on a row and has none".into()));
        }
        found.push(read_row(&row, played)?);
        is_there = match (&mut *reader, is_down) {
            (Reader::Snapshot(txn), false) => call!(played, RawCursor::next(cursor, *txn)),
            (Reader::Snapshot(txn), true) => call!(played, RawCursor::prev(cursor, *txn)),
            (Reader::Txn(txn), false) => call!(played, RawCursor::next(cursor, *txn)),
            (Reader::Txn(txn), true) => call!(played, RawCursor::prev(cursor, *txn)),
        }?;
    }
    Ok(found)
}
