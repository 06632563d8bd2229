//! Cursors of the raw API that read entries alone, and those that judge them before they read rows.

use crate::support::{memory, sound};
use highwater::raw::{RawColumn, RawCursor, RawRead, RawRow, RawSeek, RawTable, RawVerdict};
use highwater::{Database, Error, Index, Isolation, LockMode, LockWait, Schema, TxnOptions, Type, WriteTxn};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// id | kind | size? | name? | note ; by_kind (kind, size descending), by_name (prefix of name) covering size
fn things(db: &Database) -> RawTable {
    let schema = Schema::new()
        .column("id", Type::U8)
        .column("kind", Type::U8)
        .nullable("size", Type::I16)
        .nullable("name", Type::Text(20))
        .column("note", Type::Binary(900))
        .primary_key(&["id"])
        .index_with("by_kind", Index::new(&["kind", "size"]).descending("size"))
        .index_with("by_name", Index::new(&["name"]).prefix("name", 3).covering(&["size"]));
    let table = RawTable::create(db, "things", schema).unwrap();
    db.transact(|txn| {
        for id in 0..40u8 {
            let (kind, size) = ([id / 10], (i16::from(id % 10) - 3).to_le_bytes());
            let size: RawColumn<'_> = if id % 10 == 9 { None } else { Some(&size) };
            table.insert(txn, &[Some(&[id]), Some(&kind), size, Some(b"name"), Some(&[id; 300])])?;
        }
        Ok::<(), Error>(())
    })
    .unwrap();
    table
}

fn covering(columns: &[usize]) -> RawRead {
    RawRead { columns: Some(columns.to_vec()), covering: true, ..RawRead::default() }
}

/// Id, size, and whether the row came from an entry, of all that the cursor comes to.
fn all(cursor: &mut RawCursor, txn: &mut WriteTxn) -> Vec<(u8, Option<i16>, bool)> {
    let (mut row, mut found) = (RawRow::default(), Vec::new());
    let mut goes_on = cursor.seek(txn, RawSeek::AtLeast, &[]).unwrap();
    while goes_on {
        assert!(cursor.read_row(&mut row).unwrap());
        let size = row.column(2).map(|size| i16::from_le_bytes(size.try_into().unwrap()));
        found.push((row.column(0).unwrap()[0], size, row.typed().is_none()));
        goes_on = cursor.next(txn).unwrap();
    }
    found
}

#[test]
fn an_index_that_has_the_columns_is_read_alone() {
    let db = memory();
    let things = things(&db);
    for (index, columns, has) in [
        ("by_kind", &[0, 1, 2][..], true),
        ("by_kind", &[2, 3], false),
        ("by_name", &[0], true),
        ("by_name", &[3], false),
        ("by_name", &[2], false), // covered
        ("PRIMARY", &[0], true),
        ("PRIMARY", &[1], false),
    ] {
        assert_eq!(things.index_has(index, columns).unwrap(), has, "{index} {columns:?}");
    }
    assert!(matches!(things.index_has("none", &[]), Err(Error::NoSuchIndex { .. })));

    let mut txn = db.begin().unwrap();
    for index in ["by_kind", "by_name"] {
        let found = all(&mut things.cursor(index, covering(&[0, 2])), &mut txn);
        assert_eq!(found.len(), 40);
        for (id, size, is_of_entry) in found {
            assert!(is_of_entry && size == (id % 10 != 9).then_some(i16::from(id % 10) - 3), "{index} {id} {size:?}");
        }
    }
    // Columns that the index does not have, all columns, and locking reads are read from rows.
    let reads = [covering(&[0, 4]), RawRead { covering: true, ..RawRead::default() }];
    let locking = RawRead { lock: LockMode::Shared, ..covering(&[0, 2]) };
    for read in reads.into_iter().chain([locking]) {
        let found = all(&mut things.cursor("by_kind", read), &mut txn);
        assert!(found.len() == 40 && found.iter().all(|(_, _, is_of_entry)| !is_of_entry));
    }
    txn.commit().unwrap();
    sound(&db);
}

#[test]
fn an_index_that_was_changed_lately_shows_what_the_snapshot_sees() {
    let db = memory();
    let things = things(&db);
    let mut reader = db.begin().unwrap();
    let before = all(&mut things.cursor("by_kind", covering(&[0, 2])), &mut reader);
    let mut writer = db.begin().unwrap();
    for id in 0..9u8 {
        things.update(&mut writer, &[id], &[(2, Some(&[100 + id, 0]))]).unwrap();
    }
    things.delete(&mut writer, &[20]).unwrap();
    for _ in 0..2 {
        for index in ["by_kind", "by_name"] {
            let mut found = all(&mut things.cursor(index, covering(&[0, 2])), &mut reader);
            found.sort();
            let mut before = before.iter().map(|(id, size, _)| (*id, *size, false)).collect::<Vec<_>>();
            before.sort();
            found.iter_mut().for_each(|row| row.2 = false);
            assert_eq!(found, before, "{index}");
        }
        if writer.id().is_some() {
            std::mem::replace(&mut writer, db.begin().unwrap()).commit().unwrap();
        }
    }
    drop(writer);
    let mut later = db.begin().unwrap();
    let sizes: Vec<_> = all(&mut things.cursor("by_name", covering(&[0, 2])), &mut later)
        .iter()
        .filter(|(id, ..)| *id < 9)
        .map(|(_, size, _)| size.unwrap())
        .collect();
    assert_eq!(sizes, (100..109).collect::<Vec<i16>>());
    drop((reader, later));
    sound(&db);
}

#[test]
fn what_a_filter_refuses_is_neither_read_nor_locked() {
    let db = memory();
    let things = things(&db);
    let mut txn = db.begin().unwrap();
    let locking = RawRead { lock: LockMode::Exclusive, ..RawRead::default() };
    let mut cursor = things.cursor("by_kind", locking);
    cursor.set_filter(&[1, 2], |entry| match (entry.column(1), entry.column(2)) {
        (Some(&[3]), _) => RawVerdict::End,
        (_, None) => RawVerdict::Take,
        _ => RawVerdict::Skip,
    });
    let ids: Vec<u8> = all(&mut cursor, &mut txn).iter().map(|(id, ..)| *id).collect();
    assert_eq!(ids, [9, 19, 29]);
    assert!(!cursor.next(&mut txn).unwrap());
    let mut other = db.begin().unwrap();
    other.set_lock_wait(LockWait::NoWait);
    for id in 0..40u8 {
        let done = things.update(&mut other, &[id], &[(4, Some(b"note"))]);
        assert_eq!(done.is_ok(), !ids.contains(&id), "{id}: {done:?}");
    }
    other.rollback().unwrap();

    // A filter of a covering cursor, in both directions, and an interruption after which the cursor continues.
    let mut cursor = things.cursor("by_kind", covering(&[0, 2]));
    let answer = Arc::new(AtomicU8::new(0));
    let asked = Arc::clone(&answer);
    cursor.set_filter(&[0], move |entry| match entry.column(0) {
        Some(&[id]) if id % 2 == 0 => RawVerdict::Skip,
        _ if asked.load(Relaxed) == 1 => RawVerdict::Interrupt,
        _ => RawVerdict::Take,
    });
    assert!(cursor.seek(&mut txn, RawSeek::AtMost, &[]).unwrap());
    let key = |cursor: &RawCursor| cursor.key().map(|key| key[0]);
    assert_eq!(key(&cursor), Some(39)); // sizes descend, NULL is last
    answer.store(1, Relaxed);
    assert!(matches!(cursor.prev(&mut txn), Err(Error::Interrupted)));
    answer.store(0, Relaxed);
    assert!(cursor.prev(&mut txn).unwrap());
    assert_eq!(key(&cursor), Some(31));

    for (index, columns) in [("by_name", &[3][..]), ("by_name", &[2]), ("by_kind", &[4]), ("PRIMARY", &[0])] {
        let mut cursor = things.cursor(index, RawRead::default());
        cursor.set_filter(columns, |_| RawVerdict::Take);
        assert!(matches!(cursor.seek(&mut txn, RawSeek::AtLeast, &[]), Err(Error::Usage(_))), "{index}");
    }
    txn.commit().unwrap();
    sound(&db);
}

#[test]
fn a_row_that_is_not_wanted_is_unlocked_below_repeatable_read() {
    let db = memory();
    let things = things(&db);
    let lock = RawRead { lock: LockMode::Exclusive, ..RawRead::default() };
    for isolation in Isolation::ALL {
        let mut txn = db.begin_with(TxnOptions { isolation, ..TxnOptions::default() }).unwrap();
        let unlocks = matches!(isolation, Isolation::ReadUncommitted | Isolation::ReadCommitted);
        assert!(things.get(&mut txn, &[12], &lock, &mut RawRow::default()).unwrap());
        for index in ["PRIMARY", "by_kind"] {
            let mut cursor = things.cursor(index, lock.clone());
            let mut found = cursor.seek(&mut txn, RawSeek::Exact, &[1]).unwrap();
            while found {
                let key = cursor.key().unwrap().to_vec();
                let is_new = !matches!(key[..], [12]);
                assert_eq!(things.unlock(&mut txn, &key).unwrap(), unlocks && is_new, "{isolation} {key:?}");
                found = cursor.next(&mut txn).unwrap();
            }
        }
        let mut other = db.begin().unwrap();
        other.set_lock_wait(LockWait::NoWait);
        for id in [1, 10, 12, 19] {
            let done = things.update(&mut other, &[id], &[(4, Some(b"note"))]);
            assert_eq!(done.is_ok(), unlocks && id != 12, "{isolation} {id}: {done:?}");
        }
        other.rollback().unwrap();
        txn.rollback().unwrap();
    }
    sound(&db);
}
