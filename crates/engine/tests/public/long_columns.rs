//! Long columns: what changes and reads of the others cost, versions that share their pages, indexes over them.

use crate::support::{await_purge, check_indexes, memory, memory_with, open, options, sound};
use crate::testing::by_id;
use highwater::inspect::RawFile;
use highwater::{
    Database, Error, Isolation, Options, PageNo, Table, TableChange, TxnOptions, Type, Value, ValueRef, WriteTxn,
    values,
};
use highwater_storage::{MemoryDevice, StorageSet};
use std::ops::ControlFlow;

const MIB: usize = 1 << 20;

/// id | seen | picture | note? | text
fn album(db: &Database) -> Table {
    let schema = by_id()
        .column("seen", Type::U64)
        .column("picture", Type::Binary(16 << 20))
        .nullable("note", Type::Text(4000))
        .column("text", Type::Text(16 << 20));
    db.create_table("album", schema).unwrap()
}

fn bytes(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|i| (i as u8).wrapping_mul(37).wrapping_add(seed)).collect()
}

fn text(len: usize, seed: u8) -> String {
    char::from(b'a' + seed % 26).to_string().repeat(len)
}

/// Pages in use by the overflow pages of all tables.
fn overflow_pages(db: &Database) -> u64 {
    db.check().unwrap().counts.overflow_pages
}

/// Redo bytes, page bytes written and pages read by what `run` does; everything is written before and afterwards.
fn cost(db: &Database, run: impl FnOnce()) -> (u64, u64, u64) {
    sound(db);
    let before = db.stats();
    run();
    let reads = db.stats().pages_read - before.pages_read;
    let redo = db.stats().redo_bytes - before.redo_bytes;
    sound(db);
    let written = (db.stats().pages_flushed - before.pages_flushed) * 4096;
    (redo, written, reads)
}

#[test]
fn a_change_of_a_short_column_with_a_mebibyte_writes_two_pages() {
    let db = memory_with(Options { buffer_pool_size: 8 << 20, ..options() });
    let album = album(&db);
    db.transact(|txn| txn.insert(&album, &values![1, 0, &bytes(MIB, 1)[..], "note", &text(MIB, 2)]).map(drop)).unwrap();
    await_purge(&db);
    let key = values![1];
    let update = |n: u64| db.transact(|txn| txn.update(&album, &key, &[(1, n.into())]).map(drop)).unwrap();
    let (redo, written, _) = cost(&db, || update(7));
    assert!(redo < 1000 && redo + written < 10_000, "{redo} bytes of redo, {written} of pages");
    let modify =
        || db.transact(|txn| txn.modify(&album, &key, |row, set| set.put(1, row.u64(1) + 1)).map(drop)).unwrap();
    let (redo, written, _) = cost(&db, modify);
    assert!(redo < 1000 && redo + written < 10_000, "{redo} bytes of redo, {written} of pages");
    let note = || db.transact(|txn| txn.update(&album, &key, &[(3, ValueRef::Null)]).map(drop)).unwrap();
    let (redo, written, _) = cost(&db, note);
    assert!(redo < 1000 && redo + written < 10_000, "{redo} bytes of redo, {written} of pages");
    // A long column that is changed does not write the other.
    let picture = bytes(100_000, 9);
    let change = || db.transact(|txn| txn.update(&album, &key, &[(2, (&picture[..]).into())]).map(drop)).unwrap();
    let (redo, ..) = cost(&db, change);
    assert!((100_000..130_000).contains(&redo), "{redo} bytes of redo");
    let row = db.snapshot().unwrap().get(&album, &key).unwrap().unwrap();
    assert_eq!((row.u64(1), row.bytes(2), row.is_null(3)), (8, &picture[..], true));
    assert_eq!(row.str(4), text(MIB, 2));
}

/// Reads that leave a long column out do not load its pages: all of them together load a few.
#[test]
fn what_is_not_asked_for_is_not_read() {
    let storage = StorageSet::memory();
    let key = values![1];
    {
        let db = open(&storage);
        let album = album(&db);
        let picture = bytes(MIB, 1);
        let row = [1.into(), 5.into(), (&picture[..]).into(), ValueRef::Null, "short".into()];
        db.transact(|txn| txn.insert(&album, &row).map(drop)).unwrap();
        db.close().unwrap();
    }
    let db = open(&storage);
    let album = db.table("album").unwrap();
    let before = db.stats().pages_read;
    let few = |what: &str| {
        let read = db.stats().pages_read - before;
        assert!(read < 40, "{what}: {read} pages");
    };
    let mut read = db.snapshot().unwrap();
    let row = read.get_columns(&album, &key, &[4, 1]).unwrap().unwrap();
    assert_eq!((row.columns(), row.str(0), row.u64(1)), (2, "short", 5));
    few("get_columns");
    let rows: Vec<_> = read.scan(&album).columns(&[1]).iter().unwrap().map(|row| row.unwrap().to_values()).collect();
    assert_eq!(rows, [[Value::from(5u64)]]);
    few("a scan");
    let mut seen = Vec::new();
    let look = |row: highwater::RowRef<'_>| {
        seen.push((row.str(0).to_string(), row.u64(1)));
        ControlFlow::Continue(())
    };
    read.scan(&album).columns(&[4, 0]).visit(look).unwrap();
    assert_eq!(seen, [("short".to_string(), 1)]);
    few("a visit");
    assert_eq!((read.scan(&album).count().unwrap(), read.scan(&album).keys().unwrap().count()), (1, 1));
    few("keys");
    let mut txn = db.begin().unwrap();
    assert!(txn.update(&album, &key, &[(1, 6.into())]).unwrap());
    assert!(txn.modify(&album, &key, |row, set| set.put(1, row.u64(1) + 1)).unwrap());
    few("changes");
    assert!(txn.modify(&album, &key, |row, set| set.put(1, row.bytes(2).len() as u64)).unwrap());
    assert!(db.stats().pages_read - before > 250, "a closure that looks at the column gets it");
    assert_eq!(txn.get_columns(&album, &key, &[1]).unwrap().unwrap().u64(0), MIB as u64);
    assert!(matches!(txn.get_columns(&album, &key, &[5]), Err(Error::BadValue { .. })));
    assert!(matches!(txn.scan(&album).columns(&[0, 9]).iter().err(), Some(Error::BadValue { .. })));
    txn.rollback().unwrap();
}

/// Versions whose long columns differ, each as its snapshot sees it, at every level; their pages go with the last.
#[test]
fn snapshots_see_the_long_columns_of_their_time() {
    let db = memory();
    let album = album(&db);
    let key = values![1];
    let put =
        |columns: &[(usize, ValueRef<'_>)]| db.transact(|txn| txn.update(&album, &key, columns).map(drop)).unwrap();
    db.transact(|txn| txn.insert(&album, &values![1, 0, &bytes(9000, 0)[..], null, &text(9000, 0)]).map(drop)).unwrap();
    let mut expected = vec![(0u64, bytes(9000, 0), text(9000, 0))];
    let mut snapshots = vec![db.snapshot().unwrap()];
    assert!(snapshots[0].get(&album, &key).unwrap().is_some());
    for n in 1..9u8 {
        let (mut seen, mut picture, mut words) = expected.last().unwrap().clone();
        match n % 4 {
            0 => picture = bytes(usize::from(n) * 2000, n),
            1 => seen = n.into(),
            2 => words = text(usize::from(n) * 1500, n),
            _ => (picture, words) = (bytes(10, n), text(20_000, n)),
        }
        match n % 4 {
            0 => put(&[(2, (&picture[..]).into())]),
            1 => put(&[(1, seen.into())]),
            2 => put(&[(4, (&*words).into())]),
            _ => put(&[(2, (&picture[..]).into()), (4, (&*words).into())]),
        }
        expected.push((seen, picture, words));
        let mut snapshot = db.snapshot().unwrap();
        assert!(snapshot.get(&album, &key).unwrap().is_some());
        snapshots.push(snapshot);
        let level = TxnOptions { isolation: Isolation::ReadUncommitted, ..TxnOptions::default() };
        let mut dirty = db.begin_with(level).unwrap();
        let row = dirty.get(&album, &key).unwrap().unwrap();
        assert_eq!(row.bytes(2), expected.last().unwrap().1);
    }
    while let (Some(mut read), Some((seen, picture, words))) = (snapshots.pop(), expected.pop()) {
        let row = read.get(&album, &key).unwrap().unwrap();
        assert_eq!((row.u64(1), row.bytes(2), row.str(4)), (seen, &picture[..], &*words));
        let row = read.scan(&album).columns(&[4]).first().unwrap().unwrap();
        assert_eq!(row.str(0), words);
        sound(&db);
    }
    db.transact(|txn| txn.delete(&album, &key).map(drop)).unwrap();
    await_purge(&db);
    assert_eq!(overflow_pages(&db), 0);
    sound(&db);
}

/// Columns of an index stay in the row; an index that comes later over columns that went out is right as well.
#[test]
fn indexes_over_columns_that_went_out_are_right() {
    let db = memory();
    let wide = || (0..8).map(|i| format!("c{i}"));
    let schema = wide().fold(by_id(), |schema, name| schema.column(&name, Type::Text(450)));
    let table = db.create_table("wide", schema.index("by_c0", &["c0"])).unwrap();
    let insert = |id: u64, seed: u8| {
        let texts: Vec<String> = (0..8).map(|i| text(400 + i, seed + i as u8)).collect();
        let row: Vec<ValueRef<'_>> =
            std::iter::once(id.into()).chain(texts.iter().map(|text| (&**text).into())).collect();
        db.transact(|txn| txn.insert(&table, &row).map(drop)).unwrap();
    };
    (0..20).for_each(|id| insert(id, id as u8));
    db.create_index("wide", "by_c7", &["c7"], false).unwrap();
    check_indexes(&db, &table);
    for id in 0..20u64 {
        let key = values![id];
        db.transact(|txn| match id % 4 {
            0 => txn.update(&table, &key, &[(3, "changed".into())]).map(drop),
            1 => txn.update(&table, &key, &[(8, (&*text(420, id as u8)).into())]).map(drop),
            2 => txn.delete(&table, &key).map(drop),
            _ => txn.modify(&table, &key, |row, set| set.put(1, format!("{}x", &row.str(8)[..9]).as_str())).map(drop),
        })
        .unwrap();
    }
    check_indexes(&db, &table);
    let mut txn = db.begin().unwrap();
    for id in 0..20u64 {
        txn.update(&table, &values![id], &[(8, "gone".into()), (2, "again".into())]).unwrap();
    }
    txn.rollback().unwrap();
    check_indexes(&db, &table);
    await_purge(&db);
    sound(&db);
}

/// A page of the long column is damaged: statements that do not need the column work; statements that need it name the
/// page, and change nothing.
#[test]
fn a_damaged_long_column_costs_the_reads_that_need_it() {
    let storage = StorageSet::memory();
    let db = open(&storage);
    let table = album(&db);
    let (picture, words) = (bytes(50_000, 1), text(30_000, 2));
    for id in 1..=2u64 {
        db.transact(|txn| txn.insert(&table, &values![id, 0, &picture[..], null, &words]).map(drop)).unwrap();
    }
    db.close().unwrap();
    let files = storage.memory_devices().unwrap().each_ref().map(MemoryDevice::image);
    let data = MemoryDevice::holding(files[0].clone());
    let file = RawFile::open(&data).unwrap();
    let chained = (2..file.page_count() as u32).map(PageNo).find(|page| {
        let look = file.look_at(*page).unwrap();
        look.page_type.is_some_and(|found| format!("{found:?}") == "Overflow")
    });
    let page = chained.unwrap();
    let mut damaged = files.clone();
    damaged[0][page.0 as usize * 4096 + 500] ^= 1;
    // Lest the opening repairs the page from its copy.
    damaged[2].fill(0);
    let storage = StorageSet::of_memory(damaged.map(MemoryDevice::holding));
    let db = open(&storage);
    let album = db.table("album").unwrap();
    let mut txn = db.begin().unwrap();
    let is_broken = |txn: &mut WriteTxn, id: u64, column: usize| {
        let found = txn.get_columns(&album, &values![id], &[column]);
        matches!(found, Err(Error::CorruptPage { page: at, .. }) if at == page)
    };
    let cells: Vec<_> =
        [(1, 2), (1, 4), (2, 2), (2, 4)].into_iter().filter(|(id, column)| is_broken(&mut txn, *id, *column)).collect();
    let [(id, column)] = cells[..] else { panic!("{cells:?} are broken") };
    let key = values![id];
    assert!(txn.get(&album, &key).is_err() && txn.get(&album, &values![3 - id]).unwrap().is_some());
    assert_eq!(txn.scan(&album).columns(&[1, 6 - column]).iter().unwrap().filter(Result::is_ok).count(), 2);
    assert!(txn.update(&album, &key, &[(1, 5.into())]).unwrap());
    let failed = txn.modify(&album, &key, |row, set| set.put(1, row.get(column).to_value().to_string().len() as u64));
    assert!(matches!(failed, Err(Error::CorruptPage { page: at, .. }) if at == page), "{failed:?}");
    assert_eq!(txn.get_columns(&album, &key, &[1]).unwrap().unwrap().u64(0), 5);
    assert!(txn.modify(&album, &key, |row, set| set.put(1, row.u64(1) + 1)).unwrap());
    txn.commit().unwrap();
    let report = db.check().unwrap();
    assert!(report.findings.iter().any(|finding| finding.page == Some(page)), "{:?}", report.findings);
    db.close().unwrap();

    let into = memory();
    let salvaged = highwater::salvage(&*storage.data, &into, &mut |_, _| {}).unwrap();
    assert_eq!((salvaged.tables[0].rows, salvaged.tables[0].rows_lost), (1, 1), "{:?}", salvaged.losses);
    let mut read = into.snapshot().unwrap();
    let saved = into.table("album").unwrap();
    let row = read.get(&saved, &values![3 - id]).unwrap().unwrap();
    assert!(row.bytes(2) == picture && row.str(4) == words && read.get(&saved, &key).unwrap().is_none());
}

/// Setting a long column to what it is writes nothing; to an empty value or NULL it does.
#[test]
fn equal_long_values_are_no_change() {
    let db = memory();
    let table =
        db.create_table("notes", by_id().nullable("note", Type::Text(9000)).column("more", Type::Text(9000))).unwrap();
    let (key, note, other) = (values![1], text(8000, 1), text(8000, 2));
    db.transact(|txn| txn.insert(&table, &values![1, &note, &other]).map(drop)).unwrap();
    let put = |value: ValueRef<'_>| db.transact(|txn| txn.update(&table, &key, &[(1, value)]).map(drop)).unwrap();
    let redo = |run: &dyn Fn()| cost(&db, run).0;
    await_purge(&db);
    assert!(redo(&|| put((&*note).into())) < 200, "the same");
    assert!(redo(&|| put((&*other).into())) > 8000, "one as long");
    let get = || db.snapshot().unwrap().get(&table, &key).unwrap().unwrap().to_values();
    assert_eq!(get()[1..], [Value::from(other.clone()), Value::from(other.clone())]);
    for (value, right) in
        [(ValueRef::Null, Value::Null), ("".into(), "".to_string().into()), (ValueRef::Null, Value::Null)]
    {
        put(value);
        assert_eq!(get()[1..], [right, Value::from(other.clone())]);
        put((&*note).into());
        assert_eq!(get()[1], Value::from(note.clone()));
    }
    await_purge(&db);
    sound(&db);
}

/// A table that changes: a long column that was dropped is read no more, and its pages go when the row is changed next;
/// the other long column keeps its pages, though the row gets another layout.
#[test]
fn long_columns_of_a_table_that_changes() {
    let db = memory();
    let (table, words) = (album(&db), text(30_000, 2));
    for id in 1..=3u64 {
        db.transact(|txn| txn.insert(&table, &values![id, 0, &bytes(50_000, 1)[..], null, &words]).map(drop)).unwrap();
    }
    await_purge(&db);
    let before = overflow_pages(&db);
    let mut old = db.snapshot().unwrap();
    let changes = [TableChange::drop_column("picture"), TableChange::add_column("city", Type::Text(90), "Lund")];
    let table = db.alter_table("album", &changes).unwrap();
    let right = |seen: u64| [Value::from(seen), Value::Null, words.clone().into(), "Lund".to_string().into()];
    assert_eq!(old.get(&table, &values![1]).unwrap().unwrap().to_values()[1..], right(0));
    let change = || db.transact(|txn| txn.update(&table, &values![1], &[(1, 7.into())]).map(drop)).unwrap();
    let (redo, ..) = cost(&db, change);
    assert!(redo < 2000, "{redo} bytes of redo");
    assert_eq!(overflow_pages(&db), before, "the snapshot is open");
    assert_eq!(old.get(&table, &values![1]).unwrap().unwrap().to_values()[1..], right(0));
    drop(old);
    await_purge(&db);
    assert_eq!(overflow_pages(&db), before - 13, "50,000 bytes of 4,040 a page");
    let mut txn = db.begin().unwrap();
    assert!(txn.update(&table, &values![2], &[(1, 7.into())]).unwrap());
    txn.rollback().unwrap();
    assert!(db.transact(|txn| txn.delete(&table, &values![3])).unwrap());
    await_purge(&db);
    let mut read = db.snapshot().unwrap();
    assert_eq!(read.get(&table, &values![1]).unwrap().unwrap().to_values()[1..], right(7));
    assert_eq!(read.get(&table, &values![2]).unwrap().unwrap().to_values()[1..], right(0));
    sound(&db);
}

#[test]
fn rows_at_every_limit_come_back() {
    let db = memory_with(Options { buffer_pool_size: 16 << 20, log_file_size: 64 << 20, ..options() });
    let album = album(&db);
    // In addition to the value: 24 bytes of numbers and ends, a byte of the NULL bitmap.
    let most = (16 << 20) - 64;
    let large = bytes(most, 3);
    db.transact(|txn| txn.insert(&album, &values![1, 0, &large[..], null, ""]).map(drop)).unwrap();
    let too_long = db.transact(|txn| txn.update(&album, &values![1], &[(4, (&*text(100, 1)).into())]));
    assert!(matches!(too_long, Err(Error::RowTooLarge { .. })), "{too_long:?}");
    assert!(db.transact(|txn| txn.update(&album, &values![1], &[(1, 9.into())])).unwrap());
    let row = db.snapshot().unwrap().get(&album, &values![1]).unwrap().unwrap();
    assert!(row.u64(1) == 9 && row.bytes(2) == large);
    db.transact(|txn| txn.delete(&album, &values![1]).map(drop)).unwrap();

    // Hundreds of short columns: what is left of the row goes to a chain too.
    let schema = (0..300).fold(by_id(), |schema, i| schema.column(&format!("d{i}"), Type::Decimal(30, 2)));
    let schema = schema.column("picture", Type::Binary(1 << 20)).index("by_d7", &["d7"]);
    let numbers = db.create_table("numbers", schema).unwrap();
    let picture = bytes(200_000, 4);
    let row = |n: i64| -> Vec<Value> {
        let decimals = (0..300).map(move |i| Value::from(highwater::Decimal::new(i128::from(n + i), 2)));
        std::iter::once(Value::from(n as u64)).chain(decimals).chain([Value::from(bytes(200_000, 4))]).collect()
    };
    for n in 0..3 {
        let values = row(n);
        let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
        db.transact(|txn| txn.insert(&numbers, &values).map(drop)).unwrap();
    }
    await_purge(&db);
    let one = highwater::Decimal::new(-5, 2);
    let change = || db.transact(|txn| txn.update(&numbers, &values![1], &[(8, one.into())]).map(drop)).unwrap();
    let (redo, ..) = cost(&db, change);
    assert!(redo < 8000, "{redo} bytes of redo: the picture is not written");
    let found = db.snapshot().unwrap().get(&numbers, &values![1]).unwrap().unwrap();
    assert!(found.decimal(8) == one && found.bytes(301) == picture && found.get(2) == row(1)[2].as_ref());
    check_indexes(&db, &numbers);
    await_purge(&db);
    sound(&db);
}
