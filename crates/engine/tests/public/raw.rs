//! The raw API: columns and keys as bytes; compared with the typed API.

use crate::support::{await_purge, check_indexes, memory, open, sound};
use highwater::raw::{RawColumn, RawDuplicate, RawRead, RawRow, RawSeek, RawTable};
use highwater::{
    Database, DateTime, Decimal, Error, LockMode, LockWait, Schema, TableChange, Type, Value, ValueRef, WriteTxn,
    salvage, values,
};

/// id | day | code? | note? | size | long? ; by_day (day), by_code (code) unique
fn files(db: &Database) -> RawTable {
    let schema = Schema::new()
        .column("id", Type::U24)
        .column("day", Type::Fixed(3))
        .nullable("code", Type::Text(20))
        .nullable("note", Type::Binary(300))
        .column("size", Type::I24)
        .nullable("long", Type::Binary(1 << 20))
        .primary_key(&["id"])
        .index("by_day", &["day"])
        .unique_index("by_code", &["code"])
        .attachment(b"front end");
    RawTable::create(db, "files", schema).unwrap()
}

/// A row of `files`.
fn file<'c>(id: &'c [u8; 3], day: &'c [u8; 3], code: RawColumn<'c>) -> [RawColumn<'c>; 6] {
    [Some(id), Some(day), code, None, Some(&[0xff, 0xff, 0xff]), None]
}

fn key(table: &RawTable, index: &str, columns: &[RawColumn<'_>]) -> Vec<u8> {
    let mut key = Vec::new();
    table.append_key(index, columns, &mut key).unwrap();
    key
}

fn get(table: &RawTable, txn: &mut WriteTxn, key: &[u8]) -> Option<RawRow> {
    let mut row = RawRow::default();
    table.get(txn, key, &RawRead::default(), &mut row).unwrap().then_some(row)
}

#[test]
fn both_doors_lead_to_the_same_rows() {
    let (db, at) = (memory(), DateTime::from_unix_us(-5));
    let types = [
        (Type::I8, Value::Int(-1), vec![0xff]),
        (Type::I16, Value::Int(-2), vec![0xfe, 0xff]),
        (Type::I24, Value::Int(-3), vec![0xfd, 0xff, 0xff]),
        (Type::I32, Value::Int(i32::MIN.into()), vec![0, 0, 0, 0x80]),
        (Type::I64, Value::Int(1), vec![1, 0, 0, 0, 0, 0, 0, 0]),
        (Type::U8, Value::UInt(200), vec![200]),
        (Type::U16, Value::UInt(258), vec![2, 1]),
        (Type::U24, Value::UInt(0x03_0201), vec![1, 2, 3]),
        (Type::U32, Value::UInt(1 << 31), vec![0, 0, 0, 0x80]),
        (Type::U64, Value::UInt(u64::MAX), vec![0xff; 8]),
        (Type::F32, Value::F64(1.5), 1.5f32.to_le_bytes().to_vec()),
        (Type::F64, Value::F64(-1.5), (-1.5f64).to_le_bytes().to_vec()),
        (Type::Decimal(9, 2), Value::Decimal(Decimal::new(-150, 2)), (-150i64).to_le_bytes().to_vec()),
        (Type::Decimal(30, 2), Value::Decimal(Decimal::new(150, 2)), 150i128.to_le_bytes().to_vec()),
        (Type::DateTime, Value::DateTime(at), (-5i64).to_le_bytes().to_vec()),
        (Type::Fixed(4), Value::Bytes(vec![0, 1, 2, 255]), vec![0, 1, 2, 255]),
        (Type::Text(9), Value::Text("wörld".to_string()), "wörld".into()),
        (Type::Binary(9), Value::Bytes(vec![0, 1]), vec![0, 1]),
    ];
    for (n, (ty, value, bytes)) in types.into_iter().enumerate() {
        let schema = Schema::new().column("k", ty).nullable("v", ty).primary_key(&["k"]).index("by_v", &["v", "k"]);
        let raw = RawTable::create(&db, &format!("t{n}"), schema).unwrap();
        let (table, mut txn) = (raw.table().clone(), db.begin().unwrap());
        raw.insert(&mut txn, &[Some(&bytes), Some(&bytes)]).unwrap();
        let read = txn.get(&table, &[value.as_ref()]).unwrap().unwrap();
        assert_eq!(read.to_values(), [value.clone(), value.clone()], "{ty}");
        assert!(txn.delete(&table, &[value.as_ref()]).unwrap());

        txn.insert(&table, &[value.as_ref(), ValueRef::Null]).unwrap();
        txn.update(&table, &[value.as_ref()], &[(1, value.as_ref())]).unwrap();
        let row = get(&raw, &mut txn, &key(&raw, "PRIMARY", &[Some(&bytes)])).unwrap();
        assert_eq!((row.column(0), row.column(1), row.columns()), (Some(&bytes[..]), Some(&bytes[..]), 2), "{ty}");
        assert_eq!((row.typed().unwrap().get(1), row.column(2)), (value.as_ref(), None), "{ty}");
        txn.commit().unwrap();
        check_indexes(&db, &table);

        // As the index has them, without the row.
        let mut txn = db.begin().unwrap();
        let mut cursor = raw.cursor("by_v", RawRead { columns: Some(vec![1]), covering: true, ..RawRead::default() });
        let mut row = RawRow::default();
        assert!(cursor.seek(&mut txn, RawSeek::AtLeast, &[]).unwrap() && cursor.read_row(&mut row).unwrap());
        assert!(row.typed().is_none() && row.column(0).is_none());
        assert_eq!((row.column(1), row.columns()), (Some(&bytes[..]), 2), "{ty}");
    }
    sound(&db);
}

#[test]
fn bytes_that_are_no_value_of_their_column_are_refused() {
    let db = memory();
    let files = files(&db);
    let mut txn = db.begin().unwrap();
    let good = file(&[1, 0, 0], &[1, 1, 1], Some(b"one"));
    let with = |n: usize, bytes: RawColumn<'static>| {
        let mut row = good;
        row[n] = bytes;
        row
    };
    let long: &[u8] = &[7; 301];
    let cases = [
        (with(0, Some(&[1, 0])), "id", "2 bytes for type u24, which has 3"),
        (with(0, None), "id", "NULL"),
        (with(1, Some(&[1; 4])), "day", "4 bytes for type fixed(3), which has 3"),
        (with(2, Some(b"\xff")), "code", "not UTF-8"),
        (with(2, Some(&[b'x'; 21])), "code", "21 bytes are longer than the 20 allowed"),
        (with(3, Some(long)), "note", "301 bytes are longer than the 300 allowed"),
        (with(4, Some(&[])), "size", "0 bytes for type i24"),
    ];
    for (row, name, why) in cases {
        match files.insert(&mut txn, &row) {
            Err(Error::BadValue { column, reason }) => assert!(column == name && reason.contains(why), "{reason}"),
            other => panic!("{name}: {other:?}"),
        }
        assert!(matches!(files.insert_many(&mut txn, [good, row]), Err(Error::BadValue { .. })));
    }
    assert!(matches!(files.insert(&mut txn, &good[..5]), Err(Error::BadValue { .. })));
    assert!(matches!(files.append_key("by_day", &[Some(&[1; 2])], &mut Vec::new()), Err(Error::BadValue { .. })));
    assert!(matches!(
        files.append_key("by_day", &[Some(&[1; 3][..]); 2], &mut Vec::new()),
        Err(Error::BadValue { .. })
    ));
    assert!(matches!(files.append_key("by_size", &[], &mut Vec::new()), Err(Error::NoSuchIndex { .. })));
    files.insert(&mut txn, &good).unwrap();
    let one = key(&files, "PRIMARY", &[Some(&[1, 0, 0])]);
    for (n, bytes) in [(1, Some(&b"x"[..])), (1, None), (6, None), (usize::MAX, None)] {
        assert!(matches!(files.update(&mut txn, &one, &[(n, bytes)]), Err(Error::BadValue { .. })), "{n}");
    }
    let unknown = RawRead { columns: Some(vec![6]), ..RawRead::default() };
    assert!(matches!(files.get(&mut txn, &one, &unknown, &mut RawRow::default()), Err(Error::BadValue { .. })));
    assert!(matches!(
        files.cursor("by_day", unknown).seek(&mut txn, RawSeek::AtLeast, &[]),
        Err(Error::BadValue { .. })
    ));
    txn.commit().unwrap();
    assert_eq!(db.snapshot().unwrap().scan(files.table()).count().unwrap(), 1);
    sound(&db);
}

#[test]
fn decimals_and_floats_are_kept_as_the_typed_door_keeps_them() {
    let db = memory();
    let schema = Schema::new()
        .column("d", Type::Decimal(4, 2))
        .column("f", Type::F64)
        .column("g", Type::F32)
        .primary_key(&["f"]);
    let table = RawTable::create(&db, "t", schema).unwrap();
    let mut txn = db.begin().unwrap();
    let (nan, one) = ((-f64::NAN).to_le_bytes(), 100i64.to_le_bytes());
    let too_large = 10_000i64.to_le_bytes();
    let zero = (-0.0f32).to_le_bytes();
    let refused = table.insert(&mut txn, &[Some(&too_large), Some(&nan), Some(&zero)]);
    assert!(matches!(refused, Err(Error::BadValue { column, .. }) if column == "d"));
    table.insert(&mut txn, &[Some(&one), Some(&nan), Some(&zero)]).unwrap();
    let row = txn.get(table.table(), &values![f64::NAN]).unwrap().unwrap();
    assert!(row.f64(1).is_nan() && row.f64(2).is_sign_positive());
    let found = get(&table, &mut txn, &key(&table, "PRIMARY", &[Some(&nan)]));
    assert!(found.is_none() || found.unwrap().column(1) == Some(&f64::NAN.to_le_bytes()));
}

#[test]
fn keys_that_are_none_and_handles_of_others_are_harmless() {
    let (db, other) = (memory(), memory());
    let (table, foreign) = (files(&db), files(&other));
    let mut txn = db.begin().unwrap();
    table.insert(&mut txn, &file(&[1, 0, 0], &[1, 1, 1], None)).unwrap();
    let long = vec![0xff; 100_000];
    for wrong in [&[][..], &[0], &[0, 0, 1, 0], &[0xff; 9], &long] {
        for lock in [LockMode::None, LockMode::Exclusive] {
            let read = RawRead { lock, ..RawRead::default() };
            assert!(!table.get(&mut txn, wrong, &read, &mut RawRow::default()).unwrap());
        }
        assert!(!table.update(&mut txn, wrong, &[(3, None)]).unwrap());
        assert!(!table.delete(&mut txn, wrong).unwrap());
        for to in [RawSeek::Exact, RawSeek::Above, RawSeek::AtMost, RawSeek::Below, RawSeek::ExactLast] {
            table.cursor("by_day", RawRead::default()).seek(&mut txn, to, wrong).unwrap();
        }
    }
    let one = key(&table, "PRIMARY", &[Some(&[1, 0, 0])]);
    assert!(matches!(foreign.delete(&mut txn, &one), Err(Error::Usage(_))));
    assert!(matches!(foreign.insert(&mut txn, &file(&[1, 0, 0], &[1; 3], None)), Err(Error::Usage(_))));
    let mut cursor = foreign.cursor("by_day", RawRead::default());
    assert!(matches!(cursor.seek(&mut txn, RawSeek::AtLeast, &[]), Err(Error::Usage(_))));
    let mut cursor = table.cursor("no such", RawRead::default());
    assert!(matches!(cursor.seek(&mut txn, RawSeek::AtLeast, &[]), Err(Error::NoSuchIndex { .. })));
    assert!(matches!(cursor.next(&mut txn), Err(Error::Usage(_))));
    txn.commit().unwrap();

    let mut cursor = table.cursor("by_day", RawRead { keys_only: true, ..RawRead::default() });
    let mut read = db.snapshot().unwrap();
    assert!(cursor.seek(&mut read, RawSeek::AtLeast, &[]).unwrap());
    assert_eq!(cursor.key(), Some(&one[..]));
    assert!(matches!(cursor.read_row(&mut RawRow::default()), Err(Error::Usage(_))));
    let mut txn = db.begin().unwrap();
    assert!(matches!(cursor.next(&mut txn), Err(Error::Usage(_))));
    assert!(cursor.seek(&mut txn, RawSeek::AtMost, &[]).unwrap() && !cursor.next(&mut txn).unwrap());
    drop((read, txn));
    db.drop_table("files").unwrap();
    let mut txn = db.begin().unwrap();
    assert!(matches!(table.delete(&mut txn, &one), Err(Error::TableDropped { .. })));
    drop(txn);
    sound(&db);
}

#[test]
fn a_cursor_stays_in_its_range_and_goes_both_ways() {
    let db = memory();
    let files = files(&db);
    let mut txn = db.begin().unwrap();
    let rows: Vec<([u8; 3], [u8; 3])> = (0..60u8).map(|n| ([n, 0, 0], [n / 10, 7, 0])).collect();
    assert_eq!(files.insert_many(&mut txn, rows.iter().map(|(id, day)| file(id, day, None))).unwrap(), 60);
    let day = |n: u8| key(&files, "by_day", &[Some(&[n, 7, 0])]);
    let mut cursor = files.cursor("by_day", RawRead::default());
    let mut row = RawRow::default();
    let id = |cursor: &mut _, row: &mut RawRow| {
        let cursor: &mut highwater::raw::RawCursor = cursor;
        assert!(cursor.read_row(row).unwrap());
        row.column(0).unwrap()[0]
    };
    assert!(cursor.seek(&mut txn, RawSeek::Exact, &day(2)).unwrap());
    assert_eq!(id(&mut cursor, &mut row), 20);
    assert!(!cursor.prev(&mut txn).unwrap());
    for n in 20..30 {
        assert!(cursor.next(&mut txn).unwrap());
        assert_eq!(id(&mut cursor, &mut row), n);
    }
    assert!(!cursor.next(&mut txn).unwrap() && cursor.key().is_none());
    assert!(!cursor.read_row(&mut row).unwrap());
    assert!(cursor.prev(&mut txn).unwrap());
    assert_eq!(id(&mut cursor, &mut row), 29);
    for (to, expected) in [
        (RawSeek::ExactLast, 29),
        (RawSeek::AtLeast, 20),
        (RawSeek::Above, 30),
        (RawSeek::AtMost, 29),
        (RawSeek::Below, 19),
    ] {
        assert!(cursor.seek(&mut txn, to, &day(2)).unwrap());
        assert_eq!(id(&mut cursor, &mut row), expected, "{to:?}");
    }
    cursor.set_range(&day(3), Some(&day(4)));
    assert!(cursor.seek(&mut txn, RawSeek::AtLeast, &[]).unwrap());
    let mut count = 1;
    while cursor.next(&mut txn).unwrap() {
        count += 1;
    }
    assert_eq!(count, 10);
    assert!(!cursor.seek(&mut txn, RawSeek::Above, &day(3)).unwrap());
}

#[test]
fn a_duplicate_is_found_and_locked() {
    let db = memory();
    let files = files(&db);
    let insert = |row: [RawColumn<'_>; 6]| db.transact(|txn| files.insert(txn, &row).map(drop));
    insert(file(&[1, 0, 0], &[1; 3], Some(b"one"))).unwrap();
    insert(file(&[2, 0, 0], &[1; 3], Some(b"two"))).unwrap();
    let [one, two] = [1, 2].map(|n| key(&files, "PRIMARY", &[Some(&[n, 0, 0])]));
    let mut txn = db.begin().unwrap();
    for (row, index, other) in [
        (file(&[1, 0, 0], &[2; 3], Some(b"two")), None, &one),
        (file(&[3, 0, 0], &[2; 3], Some(b"two")), Some(1), &two),
    ] {
        assert!(matches!(files.insert(&mut txn, &row), Err(Error::DuplicateKey { .. })));
        let found = files.duplicate_of(&mut txn, &row, LockMode::Exclusive).unwrap();
        assert_eq!(found, Some(RawDuplicate { index, key: other.clone() }));
        let read = RawRead { lock: LockMode::Shared, lock_wait: Some(LockWait::NoWait), ..RawRead::default() };
        let refused = files.get(&mut db.begin().unwrap(), other, &read, &mut RawRow::default());
        assert!(matches!(refused, Err(Error::LockNotAvailable { .. })), "{refused:?}");
    }
    assert_eq!(files.duplicate_of(&mut txn, &file(&[3, 0, 0], &[1; 3], None), LockMode::Shared).unwrap(), None);
    // As REPLACE does.
    files.delete(&mut txn, &two).unwrap();
    files.insert(&mut txn, &file(&[3, 0, 0], &[2; 3], Some(b"two"))).unwrap();
    txn.commit().unwrap();
    sound(&db);
}

#[test]
fn long_columns_stay_where_they_are() {
    let db = memory();
    let files = files(&db);
    let (id, long) = ([9, 0, 0], vec![7u8; 300_000]);
    let mut row = file(&id, &[1; 3], None);
    row[5] = Some(&long);
    db.transact(|txn| files.insert(txn, &row).map(drop)).unwrap();
    await_purge(&db);
    let one = key(&files, "PRIMARY", &[Some(&id)]);
    let before = db.stats().redo_bytes;
    db.transact(|txn| files.update(txn, &one, &[(1, Some(&[2; 3])), (3, Some(b"note"))]).map(drop)).unwrap();
    assert!(db.stats().redo_bytes - before < 10_000);
    let mut txn = db.begin().unwrap();
    let mut read = RawRow::default();
    let some = RawRead { columns: Some(vec![1, 3]), ..RawRead::default() };
    assert!(files.get(&mut txn, &one, &some, &mut read).unwrap());
    assert_eq!((read.column(1), read.column(3)), (Some(&[2; 3][..]), Some(&b"note"[..])));
    assert_eq!(get(&files, &mut txn, &one).unwrap().column(5), Some(&long[..]));
    drop(txn);
    sound(&db);
}

#[test]
fn a_power_cut_and_a_salvage_keep_raw_tables() {
    let db = memory();
    let table = files(&db);
    let create_id = table.create_id();
    db.transact(|txn| table.insert(txn, &file(&[1, 2, 3], &[9, 8, 7], Some(b"x"))).map(drop)).unwrap();
    let lost = db.begin().map(|mut txn| table.insert(&mut txn, &file(&[4; 3], &[5; 3], None)).map(|_| txn)).unwrap();
    let (lost, cut) = (lost.unwrap(), db.storage.cut(7));
    drop((lost, db));
    let db = open(&cut);
    let table = RawTable::open_by_create_id(&db, create_id).unwrap();
    assert_eq!((table.table().name(), &table.definition().attachment[..]), ("files", &b"front end"[..]));
    assert!(matches!(RawTable::open_by_create_id(&db, 999), Err(Error::NoSuchTable { .. })));
    let mut txn = db.begin().unwrap();
    assert!(get(&table, &mut txn, &key(&table, "PRIMARY", &[Some(&[1, 2, 3])])).is_some());
    assert!(get(&table, &mut txn, &key(&table, "PRIMARY", &[Some(&[4; 3])])).is_none());
    txn.rollback().unwrap();
    sound(&db);
    db.close().unwrap();
    let into = memory();
    let report = salvage(&*cut.data, &into, &mut |_, _| {}).unwrap();
    assert!(report.losses.is_empty() && report.tables[0].rows == 1, "{report:?}");
    let copy = RawTable::open(&into, "files").unwrap();
    assert_eq!(copy.definition(), table.definition());
    let row = get(&copy, &mut into.begin().unwrap(), &key(&copy, "PRIMARY", &[Some(&[1, 2, 3])])).unwrap();
    assert_eq!((row.column(1), row.column(2), row.column(3)), (Some(&[9, 8, 7][..]), Some(&b"x"[..]), None));
}

#[test]
fn rows_of_an_older_layout_read_as_those_of_the_present_one() {
    let db = memory();
    let old = files(&db);
    let (id, long) = ([1, 0, 0], vec![7u8; 20_000]);
    let mut row = file(&id, &[1; 3], Some(b"one"));
    row[5] = Some(&long);
    db.transact(|txn| old.insert(txn, &row).map(drop)).unwrap();
    let default = ValueRef::Bytes(&[8, 9]);
    let changes = [
        TableChange::add_column("kind", Type::Fixed(2), default),
        TableChange::add_nullable("more", Type::U24),
        TableChange::widen_column("size", Type::I32),
        TableChange::drop_column("note"),
    ];
    db.alter_table("files", &changes).unwrap();
    db.rename_table("files", "papers").unwrap();
    let one = key(&old, "PRIMARY", &[Some(&id)]);
    let stale = old.delete(&mut db.begin().unwrap(), &one);
    assert!(matches!(stale, Err(Error::TableChanged { .. })), "{stale:?}");
    let new = RawTable::open_by_create_id(&db, old.create_id()).unwrap();
    assert_eq!(new.table().name(), "papers");
    // id | day | code | size | long | kind | more
    let check = |row: &RawRow, more: RawColumn<'_>| {
        assert_eq!((row.columns(), row.column(3)), (7, Some(&[0xff; 4][..])));
        assert_eq!((row.column(4), row.column(5), row.column(6)), (Some(&long[..]), Some(&[8, 9][..]), more));
    };
    let mut txn = db.begin().unwrap();
    check(&get(&new, &mut txn, &one).unwrap(), None);
    let (mut cursor, mut row) = (new.cursor("by_code", RawRead::default()), RawRow::default());
    assert!(cursor.seek(&mut txn, RawSeek::Exact, &key(&new, "by_code", &[Some(b"one")])).unwrap());
    assert!(cursor.read_row(&mut row).unwrap());
    check(&row, None);
    assert!(new.update(&mut txn, &one, &[(6, Some(&[1, 2, 3]))]).unwrap());
    check(&get(&new, &mut txn, &one).unwrap(), Some(&[1, 2, 3]));
    txn.commit().unwrap();
    sound(&db);
}

#[test]
fn entries_of_a_range_are_estimated() {
    let db = memory();
    let files = files(&db);
    let rows: Vec<([u8; 3], [u8; 3])> = (0..200u8).map(|n| ([n, 0, 0], [n / 50, 0, 0])).collect();
    db.transact(|txn| files.insert_many(txn, rows.iter().map(|(id, day)| file(id, day, None)))).unwrap();
    let day = |n: u8| key(&files, "by_day", &[Some(&[n, 0, 0])]);
    let estimate = |low: &[u8], high: Option<&[u8]>| files.approximate_entries(&db, "by_day", low, high).unwrap();
    let (all, two) = (estimate(&[], None), estimate(&day(1), Some(&day(3))));
    assert!((150..=250).contains(&all) && (50..=150).contains(&two), "{all} {two}");
    assert_eq!(estimate(&day(3), Some(&day(1))), 0);
    assert!(matches!(files.approximate_entries(&db, "none", &[], None), Err(Error::NoSuchIndex { .. })));
}
