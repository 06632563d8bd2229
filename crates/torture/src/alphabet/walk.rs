//! Walks of a cursor: to the end of an index and back, and to both ends by seeks.

use super::content::{Content, Rows, compare, content_of, key_of};
use super::played::{Played, call};
use super::reads::Reader;
use highwater::{Cursor, Seek};
use highwater_bench::{Error, Result};

fn step(cursor: &mut Cursor, reader: &mut Reader<'_>, down: bool, played: &Played) -> Result<bool> {
    let found = match (reader, down) {
        (Reader::Snapshot(read), false) => call!(played, Cursor::next(cursor, *read)),
        (Reader::Snapshot(read), true) => call!(played, Cursor::prev(cursor, *read)),
        (Reader::Txn(txn), false) => call!(played, Cursor::next(cursor, *txn)),
        (Reader::Txn(txn), true) => call!(played, Cursor::prev(cursor, *txn)),
    };
    Ok(found?)
}

fn current(cursor: &Cursor, played: &Played) -> Result<(u64, Content)> {
    let has_key = call!(played, Cursor::key(cursor))?.is_some();
    match call!(played, Cursor::row(cursor))? {
        Some(row) if has_key => content_of(row),
        _ => Err(Error::Data("a cursor is on a row and has none".into())),
    }
}

/// Walks, and compares the rows with those that the reader must see.
///
/// # Errors
/// [`Error::Data`] for a wrong answer; the engine's.
pub(super) fn walk(
    mut cursor: Cursor,
    reader: &mut Reader<'_>,
    (index, rows): (&str, &Rows),
    played: &Played,
) -> Result<()> {
    let mut keyed: Vec<_> = rows.iter().map(|(id, content)| (key_of(index, *id, content), *id, *content)).collect();
    keyed.sort_unstable_by(|a, b| compare(index, &a.0, &b.0).then(a.1.cmp(&b.1)));
    let mut right: Vec<(u64, Content)> = keyed.into_iter().map(|(_, id, content)| (id, content)).collect();
    let table = call!(played, Cursor::table(&cursor)).name().to_string();
    for down in [false, true] {
        let mut found = Vec::new();
        while step(&mut cursor, reader, down, played)? {
            found.push(current(&cursor, played)?);
        }
        if found != right {
            return Err(Error::Data(format!("a walk by {index} of {table}, {down}: {found:?}, {right:?} is right")));
        }
        right.reverse();
    }
    for (to, right) in [(Seek::First, right.first()), (Seek::Last, right.last())] {
        let is_there = match reader {
            Reader::Snapshot(read) => call!(played, Cursor::seek(&mut cursor, *read, to)),
            Reader::Txn(txn) => call!(played, Cursor::seek(&mut cursor, *txn, to)),
        }?;
        let found = if is_there { Some(current(&cursor, played)?) } else { None };
        // Under READ COMMITTED a seek is another read, and no other transaction does anything meanwhile.
        if found.as_ref() != right {
            return Err(Error::Data(format!("{to:?} by {index} of {table}: {found:?}, {right:?} is right")));
        }
    }
    Ok(())
}
