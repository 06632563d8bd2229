//! Cursors that live between calls, in both directions, while their transaction and others change the table.

use crate::support::{memory, sound};
use crate::testing::{TestDb, by_id};
use highwater::{Cursor, Database, Error, Isolation, LockWait, Seek, Table, TxnOptions, Type, Value, WriteTxn, values};
use std::collections::BTreeMap;

/// id | n, with an index.
fn database() -> (TestDb, Table) {
    let db = memory();
    let table = db.create_table("t", by_id().column("n", Type::U64).index("by_n", &["n"])).unwrap();
    (db, table)
}

fn at(db: &Database, isolation: Isolation) -> WriteTxn {
    db.begin_with(TxnOptions { isolation, ..TxnOptions::default() }).unwrap()
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

/// The position of the model's cursor: before the first key, at a key, or after the last.
#[derive(Clone, Copy, Debug)]
enum At {
    First,
    Key((u64, u64)),
    Last,
}

/// The model: the rows in the order of the index, (n, id) or (id, 0).
fn ordered(rows: &BTreeMap<u64, u64>, by_n: bool) -> Vec<(u64, u64)> {
    let mut keys: Vec<_> = rows.iter().map(|(id, n)| if by_n { (*n, *id) } else { (*id, 0) }).collect();
    keys.sort_unstable();
    keys
}

fn moved(keys: &[(u64, u64)], at: At, down: bool) -> At {
    let found = match (at, down) {
        (At::First, true) | (At::Last, false) => None,
        (At::First, false) => keys.first(),
        (At::Last, true) => keys.last(),
        (At::Key(key), false) => keys.iter().find(|other| **other > key),
        (At::Key(key), true) => keys.iter().rev().find(|other| **other < key),
    };
    found.map_or(if down { At::First } else { At::Last }, |key| At::Key(*key))
}

/// Random moves and own changes between them: the cursor is where the model is.
fn wander(isolation: Isolation, by_n: bool, locks: bool, seed: u64) {
    let (db, table) = database();
    let mut rows: BTreeMap<u64, u64> = (0..60).map(|n| (n * 3, (n * 7) % 40)).collect();
    db.transact(|txn| txn.insert_many(&table, rows.iter().map(|(id, n)| values![*id, *n]))).unwrap();
    let (mut txn, mut random) = (at(&db, isolation), Random(seed));
    let scan = txn.scan(&table).index(if by_n { "by_n" } else { "PRIMARY" });
    let mut cursor = if locks { scan.for_update() } else { scan }.cursor().unwrap();
    let mut at = At::First;
    for _ in 0..400 {
        let keys = ordered(&rows, by_n);
        let key = random.below(200);
        let (first, id) = (random.below(if by_n { 42 } else { 190 }), random.below(190));
        let found = match random.below(12) {
            0..=3 => {
                at = moved(&keys, at, false);
                cursor.next(&mut txn)
            }
            4..=6 => {
                at = moved(&keys, at, true);
                cursor.prev(&mut txn)
            }
            7 => {
                rows.entry(key).or_insert_with(|| {
                    txn.insert(&table, &values![key, first % 42]).unwrap();
                    first % 42
                });
                continue;
            }
            8 => {
                assert_eq!(txn.delete(&table, &values![id]).unwrap(), rows.remove(&id).is_some());
                continue;
            }
            9 => {
                if let Some(n) = rows.get_mut(&id) {
                    *n = first % 42;
                    txn.update(&table, &values![id], &[(1, (*n).into())]).unwrap();
                }
                continue;
            }
            kind => {
                let value = values![first];
                let (lowest, highest) = ((first, 0), (first, u64::MAX));
                let up = |key: (u64, u64)| moved(&keys, At::Key(key), false);
                let down = |key: (u64, u64)| moved(&keys, At::Key(key), true);
                let before =
                    |key: (u64, u64)| keys.iter().copied().find(|other| *other >= key).map_or(At::Last, At::Key);
                let (to, model) = match (kind, random.below(4)) {
                    (10, 0) => (Seek::AtLeast(&value), before(lowest)),
                    (10, 1) => (Seek::Above(&value), up(highest)),
                    (10, 2) => (Seek::First, moved(&keys, At::First, false)),
                    (10, _) => (Seek::Last, moved(&keys, At::Last, true)),
                    (_, 0 | 1) => (Seek::Below(&value), down(lowest)),
                    _ => (Seek::AtMost(&value), down((first, u64::MAX))),
                };
                at = model;
                cursor.seek(&mut txn, to)
            }
        };
        check(&cursor, found.unwrap(), at, by_n, &rows);
    }
    txn.commit().unwrap();
    sound(&db);
}

fn check(cursor: &Cursor, found: bool, at: At, by_n: bool, rows: &BTreeMap<u64, u64>) {
    let row = cursor.row().unwrap().map(|row| (row.u64(0), row.u64(1)));
    let At::Key(key) = at else {
        assert!(!found && row.is_none(), "{at:?} is {row:?}");
        return assert_eq!(cursor.key().unwrap(), None);
    };
    let id = if by_n { key.1 } else { key.0 };
    assert_eq!((found, row), (true, Some((id, rows[&id]))), "{at:?}");
    let right = if by_n { vec![Value::UInt(key.0), Value::UInt(id)] } else { vec![Value::UInt(id)] };
    assert_eq!(cursor.key().unwrap().unwrap(), right);
}

#[test]
fn a_cursor_is_where_its_moves_and_the_own_changes_say() {
    for isolation in Isolation::ALL {
        for (by_n, locks) in [(false, false), (false, true), (true, false), (true, true)] {
            (0..3).for_each(|seed| wander(isolation, by_n, locks, seed));
        }
    }
}

/// Goes over many leaves, and inserts a row right after the cursor's before each move: each is the next one.
fn follow(isolation: Isolation, by_n: bool, locks: bool, down: bool) {
    let (db, table) = database();
    db.transact(|txn| txn.insert_many(&table, (1..600u64).map(|n| values![n * 2, n * 2]))).unwrap();
    let mut txn = at(&db, isolation);
    let scan = txn.scan(&table);
    let scan = if by_n { scan.index("by_n") } else { scan };
    let mut cursor = if locks { scan.for_update() } else { scan }.cursor().unwrap();
    let start = if down { Seek::Last } else { Seek::First };
    let mut is_there = cursor.seek(&mut txn, start).unwrap();
    let mut expected = if down { 1198 } else { 2 };
    while is_there {
        assert_eq!(cursor.row().unwrap().unwrap().u64("id"), expected, "{isolation:?} {by_n} {locks} {down}");
        expected = if down { expected - 1 } else { expected + 1 };
        if expected % 2 == 1 {
            txn.insert(&table, &values![expected, expected]).unwrap();
        }
        is_there = if down { cursor.prev(&mut txn) } else { cursor.next(&mut txn) }.unwrap();
    }
    assert_eq!(expected, if down { 0 } else { 1200 }, "{isolation:?} {by_n} {locks} {down}");
    txn.commit().unwrap();
    sound(&db);
}

#[test]
fn a_row_that_is_put_right_ahead_of_a_cursor_is_the_next_one() {
    for isolation in [Isolation::RepeatableRead, Isolation::ReadCommitted, Isolation::Serializable] {
        for n in 0..8 {
            follow(isolation, n & 1 == 1, n & 2 == 2, n & 4 == 4);
        }
    }
}

/// What others commit between two moves.
#[test]
fn a_cursor_sees_what_its_level_sees() {
    for isolation in [Isolation::ReadUncommitted, Isolation::ReadCommitted, Isolation::RepeatableRead] {
        let (db, table) = database();
        db.transact(|txn| txn.insert_many(&table, (0..9u64).map(|id| values![id * 10, id]))).unwrap();
        let mut txn = at(&db, isolation);
        let mut cursor = txn.scan(&table).cursor().unwrap();
        assert!(cursor.seek(&mut txn, Seek::AtLeast(&values![30])).unwrap());
        db.transact(|other| other.insert(&table, &values![25, 1]).map(drop)).unwrap();
        db.transact(|other| other.delete(&table, &values![20])).unwrap();
        // The other way: the same view, but for dirty reads.
        assert!(cursor.prev(&mut txn).unwrap());
        let is_dirty = isolation == Isolation::ReadUncommitted;
        assert_eq!(cursor.row().unwrap().unwrap().u64(0), if is_dirty { 25 } else { 20 }, "{isolation:?}");
        // A seek is another read.
        assert!(cursor.seek(&mut txn, Seek::Below(&values![30])).unwrap());
        let sees = isolation != Isolation::RepeatableRead;
        assert_eq!(cursor.row().unwrap().unwrap().u64(0), if sees { 25 } else { 20 }, "{isolation:?}");
    }
}

#[test]
fn a_cursor_that_has_to_wait_can_be_asked_again() {
    let (db, table) = database();
    db.transact(|txn| txn.insert_many(&table, (0..5u64).map(|id| values![id, id]))).unwrap();
    let (mut holder, mut txn) = (db.begin().unwrap(), db.begin().unwrap());
    holder.update(&table, &values![2], &[(1, 9.into())]).unwrap();
    let mut cursor = txn.scan(&table).for_update().nowait().cursor().unwrap();
    assert!(cursor.next(&mut txn).unwrap() && cursor.next(&mut txn).unwrap());
    for _ in 0..2 {
        assert!(matches!(cursor.next(&mut txn), Err(Error::LockNotAvailable { .. })));
        assert!(cursor.row().unwrap().is_none());
    }
    // Rows that it has not reached are not locked.
    holder.set_lock_wait(LockWait::NoWait);
    assert!(holder.delete(&table, &values![3]).unwrap());
    assert!(matches!(holder.delete(&table, &values![1]), Err(Error::LockNotAvailable { .. })));
    holder.commit().unwrap();
    assert!(cursor.next(&mut txn).unwrap());
    assert_eq!(cursor.row().unwrap().unwrap().u64(1), 9);
    assert!(cursor.prev(&mut txn).unwrap());
    assert_eq!(cursor.row().unwrap().unwrap().u64(0), 1);
}

#[test]
fn a_cursor_of_another_transaction_is_refused() {
    let (db, table) = database();
    db.transact(|txn| txn.insert(&table, &values![1, 1]).map(drop)).unwrap();
    let mut txn = db.begin().unwrap();
    let mut cursor = txn.scan(&table).cursor().unwrap();
    assert!(cursor.next(&mut txn).unwrap());
    let mut other = db.begin().unwrap();
    assert!(matches!(cursor.next(&mut other), Err(Error::Usage(_))));
    txn.commit().unwrap();
    let mut next = db.begin().unwrap();
    assert!(matches!(cursor.prev(&mut next), Err(Error::Usage(_))));
    assert!(matches!(cursor.seek(&mut db.session(), Seek::First), Err(Error::Usage(_))));
    // A snapshot has cursors too, and a session.
    let mut read = db.snapshot().unwrap();
    let mut cursor = read.scan(&table).columns(&[1]).cursor().unwrap();
    assert!(cursor.next(&mut read).unwrap() && !cursor.next(&mut read).unwrap() && cursor.prev(&mut read).unwrap());
    assert_eq!(cursor.row().unwrap().unwrap().u64(0), 1);
    let mut session = db.session();
    let mut cursor = session.txn().unwrap().scan(&table).cursor().unwrap();
    assert!(cursor.next(&mut session).unwrap());
    assert_eq!(cursor.table().name(), "t");
}

#[test]
fn bounds_of_a_cursor_hold_for_moves_and_seeks() {
    let (db, table) = database();
    db.transact(|txn| txn.insert_many(&table, (0..9u64).map(|id| values![id, id]))).unwrap();
    let mut txn = db.begin().unwrap();
    let mut cursor = txn.scan(&table).from(&values![3]).to(&values![5]).cursor().unwrap();
    let mut seek = |to: Seek<'_>| match cursor.seek(&mut txn, to).unwrap() {
        true => cursor.row().unwrap().map(|row| row.u64(0)),
        false => None,
    };
    assert_eq!([Seek::First, Seek::Last].map(&mut seek), [Some(3), Some(5)]);
    assert_eq!([seek(Seek::AtLeast(&values![1])), seek(Seek::AtMost(&values![8]))], [Some(3), Some(5)]);
    assert_eq!([seek(Seek::AtLeast(&values![6])), seek(Seek::Below(&values![3]))], [None, None]);
    assert_eq!([seek(Seek::Above(&values![4])), seek(Seek::AtMost(&values![4]))], [Some(5), Some(4)]);
    assert!(matches!(cursor.seek(&mut txn, Seek::AtLeast(&values!["x"])), Err(Error::BadValue { .. })));
}
