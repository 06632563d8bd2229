//! Cursors of the raw API that read rows ahead show the same rows as cursors that read row by row.

use crate::support::{memory, sound};
use crate::testing::commit_all;
use highwater::raw::{RawColumn, RawCursor, RawRead, RawRow, RawSeek, RawTable};
use highwater::{Database, Isolation, LockMode, Schema, TableChange, TxnOptions, Type, WriteTxn};
use std::ops::Range;

const ROWS: u16 = 2000;

/// id | name? | body ; then also: late?
fn table(db: &Database) -> RawTable {
    let schema =
        Schema::new().column("id", Type::U16).nullable("name", Type::Text(20)).column("body", Type::Binary(9000));
    RawTable::create(db, "t", schema.primary_key(&["id"])).unwrap();
    // Each third number is free. Some bodies are on pages of their own.
    let insert = |ids: Range<u16>, late: Option<RawColumn<'_>>| {
        commit_all(db, ids.filter(|id| id % 3 > 0), |txn, id| {
            let (key, name) = (id.to_le_bytes(), (id % 7 > 0).then_some(&b"name"[..]));
            let body = vec![id as u8; if id % 50 == 1 { 8000 } else { usize::from(id % 90) }];
            let columns: Vec<RawColumn<'_>> = [Some(&key[..]), name, Some(&body)].into_iter().chain(late).collect();
            RawTable::open(db, "t").unwrap().insert(txn, &columns)
        });
    };
    insert(0..ROWS / 2, None);
    db.alter_table("t", &[TableChange::add_nullable("late", Type::U8)]).unwrap();
    insert(ROWS / 2..ROWS, Some(Some(&[7])));
    RawTable::open(db, "t").unwrap()
}

fn key(table: &RawTable, id: u16) -> Vec<u8> {
    let mut key = Vec::new();
    table.append_key("PRIMARY", &[Some(&id.to_le_bytes())], &mut key).unwrap();
    key
}

/// The row and key at a cursor's position.
#[derive(Debug, PartialEq)]
struct Shown {
    key: Option<Vec<u8>>,
    place: Option<Vec<u8>>,
    columns: Vec<Option<Vec<u8>>>,
}

fn shown(cursor: &RawCursor) -> Shown {
    let mut row = RawRow::default();
    let is_there = cursor.read_row(&mut row).unwrap();
    let columns: Vec<_> = [0, 1, 3].iter().map(|at| row.column(*at).filter(|_| is_there).map(<[u8]>::to_vec)).collect();
    if let Some(values) = cursor.values() {
        assert_eq!(values.map(|value| value.map(<[u8]>::to_vec)).collect::<Vec<_>>(), columns);
    }
    Shown { key: cursor.key().map(<[u8]>::to_vec), place: cursor.place().map(<[u8]>::to_vec), columns }
}

/// Walks both cursors, changes rows between the moves, and says how many rows were read ahead.
fn walk(table: &RawTable, txn: &mut WriteTxn, seed: u64, changes: bool) -> usize {
    let read = |covering| RawRead { columns: Some(vec![0, 1, 3]), covering, ..RawRead::default() };
    let mut cursors = [table.cursor("PRIMARY", read(true)), table.cursor("PRIMARY", read(false))];
    let mut random = seed;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let mut ahead = 0;
    for step in 0..6000 {
        let choice = if step == 0 { 0 } else { next(200) };
        let id = next(u64::from(ROWS)) as u16;
        let found: Vec<bool> = match choice {
            0..3 => {
                let to = [RawSeek::AtLeast, RawSeek::Above, RawSeek::AtMost, RawSeek::Below][next(4) as usize];
                cursors.iter_mut().map(|cursor| cursor.seek(txn, to, &key(table, id)).unwrap()).collect()
            }
            3..6 => cursors.iter_mut().map(|cursor| cursor.prev(txn).unwrap()).collect(),
            6..9 if changes => {
                let id = if choice == 6 { id } else { near(&cursors[1], id) };
                let columns: [RawColumn<'_>; 4] = [Some(&id.to_le_bytes()), Some(b"own"), Some(b""), None];
                if !table.delete(txn, &key(table, id)).unwrap() {
                    table.insert(txn, &columns).unwrap();
                }
                continue;
            }
            _ => cursors.iter_mut().map(|cursor| cursor.next(txn).unwrap()).collect(),
        };
        assert_eq!(found[0], found[1], "step {step}");
        assert_eq!(shown(&cursors[0]), shown(&cursors[1]), "step {step}");
        ahead += usize::from(cursors[0].values().is_some());
        assert!(cursors[1].values().is_none());
        if !found[0] {
            for cursor in &mut cursors {
                cursor.seek(txn, RawSeek::AtLeast, &[]).unwrap();
            }
        }
    }
    ahead
}

/// A number shortly after a cursor's position.
fn near(cursor: &RawCursor, otherwise: u16) -> u16 {
    let at = cursor.key().and_then(|key| key.try_into().ok()).map(u16::from_be_bytes);
    at.map_or(otherwise, |at| (at + 1 + otherwise % 5) % ROWS)
}

#[test]
fn rows_that_were_read_ahead_are_those_of_the_snapshot() {
    let db = memory();
    let table = table(&db);
    let mut reader = db.begin().unwrap();
    assert_eq!(walk(&table, &mut reader, 1, false).min(4000), 4000);
    // Another transaction's changes, committed or not: older versions have to be made.
    let mut other = db.begin().unwrap();
    for id in (0..ROWS).filter(|id| id % 40 < 3) {
        table.delete(&mut other, &key(&table, id)).unwrap();
    }
    assert!(walk(&table, &mut reader, 2, false) > 3000);
    other.commit().unwrap();
    assert!(walk(&table, &mut reader, 3, false) > 3000);
    reader.commit().unwrap();
    for isolation in [Isolation::ReadUncommitted, Isolation::ReadCommitted, Isolation::RepeatableRead] {
        let mut txn = db.begin_with(TxnOptions { isolation, ..TxnOptions::default() }).unwrap();
        assert!(walk(&table, &mut txn, 4, true) > 2000, "{isolation}");
        txn.rollback().unwrap();
    }
    sound(&db);
}

#[test]
fn a_cursor_that_locks_reads_nothing_ahead() {
    let db = memory();
    let table = table(&db);
    let mut txn = db.begin().unwrap();
    let read = RawRead { columns: Some(vec![0]), covering: true, lock: LockMode::Exclusive, ..RawRead::default() };
    let mut cursor = table.cursor("PRIMARY", read);
    assert!(cursor.seek(&mut txn, RawSeek::AtLeast, &[]).unwrap());
    for _ in 0..20 {
        assert!(cursor.next(&mut txn).unwrap() && cursor.values().is_none());
    }
    // 21 rows are locked: the next one is not.
    let mut other = db.begin().unwrap();
    let mut row = RawRow::default();
    let locking =
        RawRead { lock: LockMode::Exclusive, lock_wait: Some(highwater::LockWait::NoWait), ..RawRead::default() };
    assert!(table.get(&mut other, cursor.key().unwrap(), &locking, &mut row).is_err());
    assert!(table.get(&mut other, &key(&table, 32), &locking, &mut row).unwrap());
    sound(&db);
}
