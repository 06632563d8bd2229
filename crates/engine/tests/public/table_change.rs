//! Tables change in their names and columns, and are truncated: with rows of several layouts, with open snapshots,
//! across crashes.

use crate::support::{all, await_purge, check_indexes, memory, open, sound};
use crate::testing::{by_id, commit_all};
use highwater::{Database, Error, Schema, Table, TableChange, Type, Value, values};
use highwater_storage::{Faults, StorageSet};

fn text(len: usize) -> String {
    "t".repeat(len)
}

/// id | name | note? (long in each tenth row) | age; by_name (name).
fn things(db: &Database, rows: u64) -> Table {
    let schema = by_id().auto_increment("id").column("name", Type::Text(30)).nullable("note", Type::Text(9000));
    let schema = schema.column("age", Type::U8).index("by_name", &["name"]);
    let table = db.create_table("things", schema).unwrap();
    commit_all(db, 0..rows, |txn, id| {
        let note = (id % 3 > 0).then(|| text(if id % 10 == 7 { 7000 } else { id as usize % 50 }));
        txn.insert(&table, &values![null, format!("n{}", id % 40).as_str(), note.as_deref(), id % 100])
    });
    table
}

fn rows(db: &Database, table: &Table) -> Vec<Vec<Value>> {
    all(db, table, "PRIMARY")
}

#[test]
fn rows_of_every_layout_read_as_the_table_is_now() {
    let db = memory();
    let before = things(&db, 300);
    let mut expected = rows(&db, &before);
    let added = [
        TableChange::add_column("size", Type::Decimal(6, 2), 5u8),
        TableChange::add_nullable("more", Type::Text(5000)),
        TableChange::widen_column("age", Type::U32),
    ];
    let table = db.alter_table("things", &added).unwrap();
    let five = Value::Decimal(highwater::Decimal::new(500, 2));
    expected.iter_mut().for_each(|row| row.extend([five.clone(), Value::Null]));
    assert_eq!(rows(&db, &table), expected);
    // Each second row gets the present layout; long columns that are left alone stay where they are.
    for (i, row) in expected.iter_mut().enumerate().filter(|(i, _)| i % 2 == 0) {
        row[3] = Value::UInt(100_000 + i as u64);
        row[5] = Value::Text(text(i * 10));
        let (id, age, more) = (row[0].clone(), row[3].clone(), row[5].clone());
        let set = [(3, (&age).into()), (5, (&more).into())];
        assert!(db.transact(|txn| txn.update(&table, &[(&id).into()], &set)).unwrap());
    }
    assert_eq!(rows(&db, &table), expected);
    db.create_index("things", "by_age", &["age", "size"], false).unwrap();
    check_indexes(&db, &table);
    sound(&db);
    let error = db.alter_table("things", &[TableChange::drop_column("size")]).unwrap_err();
    assert!(matches!(&error, Error::Schema(reason) if reason.contains("in index by_age")), "{error}");
    db.drop_index("things", "by_age").unwrap();
    let dropped =
        [TableChange::drop_column("note"), TableChange::drop_column("size"), TableChange::make_nullable("age")];
    let table = db.alter_table("things", &dropped).unwrap();
    for row in &mut expected {
        *row = [0, 1, 3, 5].map(|column| row[column].clone()).to_vec();
    }
    assert_eq!(rows(&db, &table), expected);
    for row in expected.iter_mut().skip(5).step_by(3) {
        row[2] = Value::Null;
        let id = row[0].clone();
        assert!(db.transact(|txn| txn.update(&table, &[(&id).into()], &[(2, ().into_null())])).unwrap());
    }
    await_purge(&db);
    assert_eq!(rows(&db, &table), expected);
    check_indexes(&db, &table);
    sound(&db);
    let db = db.reopen();
    let table = db.table("things").unwrap();
    assert_eq!(rows(&db, &table), expected);
    db.create_index("things", "by_more", &["age"], false).unwrap();
    check_indexes(&db, &table);
    sound(&db);
}

trait IntoNull {
    fn into_null(self) -> highwater::ValueRef<'static>;
}

impl IntoNull for () {
    fn into_null(self) -> highwater::ValueRef<'static> {
        highwater::ValueRef::Null
    }
}

#[test]
fn snapshots_and_rollbacks_go_on_over_a_change() {
    let db = memory();
    let table = things(&db, 60);
    let mut read = db.snapshot().unwrap();
    // Uses another table, so that the change does not wait for it.
    let other = db.create_table("other", Schema::new().column("id", Type::U8).primary_key(&["id"])).unwrap();
    assert!(read.get(&other, &values![1u8]).unwrap().is_none());
    db.transact(|txn| txn.update(&table, &values![1u64], &[(3, 99u8.into())])).unwrap();
    db.transact(|txn| txn.delete(&table, &values![2u64])).unwrap();
    let change = [TableChange::widen_column("age", Type::U16), TableChange::add_column("new", Type::U8, 7u8)];
    let after = db.alter_table("things", &change).unwrap();
    db.transact(|txn| txn.update(&after, &values![1u64], &[(3, 500u16.into()), (4, 8u8.into())])).unwrap();
    let mut txn = db.begin().unwrap();
    txn.update(&after, &values![3u64], &[(3, 501u16.into())]).unwrap();
    txn.delete(&after, &values![4u64]).unwrap();
    txn.rollback().unwrap();
    // The rows of its time, in the columns of now.
    let old = |id: u64| values![id].map(|id| id.to_value());
    for (id, age) in [(1u64, 0u64), (2, 1), (3, 2), (4, 3)] {
        let row = read.get(&after, &[(&old(id)[0]).into()]).unwrap().unwrap();
        assert_eq!((row.u64(3), row.u64(4)), (age, 7));
    }
    let error = read.get(&table, &values![1u64]).unwrap_err();
    assert!(matches!(error, Error::TableChanged { .. }), "{error}");
    let now = db.snapshot().unwrap().get(&after, &values![1u64]).unwrap().unwrap();
    assert_eq!((now.u64(3), now.u64(4)), (500, 8));
    drop(read);
    await_purge(&db);
    check_indexes(&db, &after);
    sound(&db);
}

#[test]
fn a_renamed_table_is_the_same_table() {
    let db = memory();
    let table = things(&db, 50);
    let (id, expected) = (table.create_id(), rows(&db, &table));
    assert!(matches!(db.rename_table("nothing", "x"), Err(Error::NoSuchTable { .. })));
    db.create_table("other", Schema::new().column("id", Type::U8).primary_key(&["id"])).unwrap();
    assert!(matches!(db.rename_table("things", "other"), Err(Error::TableExists { .. })));
    assert!(matches!(db.rename_table("things", ""), Err(Error::Schema(_))));
    let long = "a long name ".repeat(150);
    let table = db.rename_table("things", &long).unwrap();
    assert!(matches!(db.table("things"), Err(Error::NoSuchTable { .. })));
    let change = [TableChange::rename_index("by_name", "names"), TableChange::rename_column("name", "title")];
    let table = db.alter_table(table.name(), &change).unwrap();
    assert_eq!((table.name(), table.create_id(), table.column("title").unwrap()), (&*long, id, 1));
    // Auto-increment leaves out no number.
    let next = db.transact(|txn| txn.insert(&table, &values![null, "x", null, 1u8])).unwrap();
    assert_eq!(next.auto_increment, Some(51));
    db.transact(|txn| txn.delete(&table, &values![51u64])).unwrap();
    let db = db.reopen();
    let table = db.table(&long).unwrap();
    assert_eq!((rows(&db, &table), table.create_id()), (expected, id));
    assert_eq!(all(&db, &table, "names").len(), 50);
    // The name is free.
    things(&db, 5);
    sound(&db);
}

#[test]
fn a_truncated_table_has_no_rows_and_no_older_snapshots() {
    let db = memory();
    let table = things(&db, 400);
    let (mut read, mut unused) = (db.snapshot().unwrap(), db.snapshot().unwrap());
    let other = db.create_table("other", Schema::new().column("id", Type::U8).primary_key(&["id"])).unwrap();
    assert!(read.get(&other, &values![1u8]).unwrap().is_none());
    let table_before = table.create_id();
    let table = db.alter_table("things", &[TableChange::add_nullable("x", Type::U8)]).unwrap();
    let fresh = db.truncate_table("things").unwrap();
    assert_eq!((rows(&db, &fresh).len(), fresh.create_id()), (0, table_before));
    for snapshot in [&mut read, &mut unused] {
        let found = [
            snapshot.get(&fresh, &values![1u64]).map(drop),
            snapshot.scan(&fresh).count().map(drop),
            snapshot.scan(&fresh).index("by_name").iter().map(drop),
        ];
        for error in found.map(Result::unwrap_err) {
            assert!(matches!(&error, Error::Usage(reason) if reason.contains("was truncated")), "{error}");
        }
        let error = snapshot.get(&table, &values![1u64]).unwrap_err();
        assert!(matches!(error, Error::TableChanged { .. }));
    }
    let first = db.transact(|txn| txn.insert(&fresh, &values![null, "x", null, 1u8, 2u8])).unwrap();
    assert_eq!(first.auto_increment, Some(1));
    assert_eq!(db.snapshot().unwrap().scan(&fresh).count().unwrap(), 1);
    drop((read, unused));
    await_purge(&db);
    check_indexes(&db, &fresh);
    sound(&db);
}

#[test]
fn a_table_has_at_most_255_layouts() {
    let db = memory();
    let schema = Schema::new().column("id", Type::U32).nullable("t", Type::Text(10)).primary_key(&["id"]);
    let mut table = db.create_table("t", schema).unwrap();
    for n in 0..254u32 {
        db.transact(|txn| txn.insert(&table, &values![n, "text"]).map(drop)).unwrap();
        table = db.alter_table("t", &[TableChange::widen_column("t", Type::Text(11 + n))]).unwrap();
    }
    let error = db.alter_table("t", &[TableChange::widen_column("t", Type::Text(9000))]).unwrap_err();
    assert!(matches!(&error, Error::Schema(reason) if reason.contains("254 times")), "{error}");
    // Names are no matter of layouts.
    let table = db.alter_table("t", &[TableChange::rename_column("t", "u")]).unwrap();
    assert_eq!(rows(&db, &table).len(), 254);
    let db = db.reopen();
    assert_eq!(rows(&db, &db.table("t").unwrap()).len(), 254);
    sound(&db);
    db.truncate_table("t").unwrap();
    db.alter_table("t", &[TableChange::widen_column("u", Type::Text(9000))]).unwrap();
}

/// Columns and rows of the table, whatever its name is.
type State = (Vec<(String, Type, bool)>, Vec<Vec<Value>>);

fn state(db: &Database) -> Option<State> {
    let table = db.tables().into_iter().next()?;
    let column = |column: &highwater::Column| (column.name.clone(), column.ty, column.nullable);
    Some((table.columns().iter().map(column).collect(), rows(db, &table)))
}

/// One step of the program that is interrupted.
fn step(db: &Database, n: u64) -> highwater::Result<()> {
    let table = db.tables().remove(0);
    let (name, last) = (table.name(), table.columns().len() - 1);
    let is_there = |column: &str| table.column(column).is_ok();
    match n % 9 {
        0 if last < 7 => {
            let name_of = format!("c{n}");
            db.alter_table(name, &[TableChange::add_column(&name_of, Type::U16, n % 1000)]).map(drop)
        }
        2 => db.rename_table(name, &format!("things{n}")).map(drop),
        4 if is_there("note") && n > 30 => db.alter_table(name, &[TableChange::drop_column("note")]).map(drop),
        4 if last > 4 => db.alter_table(name, &[TableChange::drop_column(&table.columns()[4].name)]).map(drop),
        6 => {
            let longer = [
                TableChange::widen_column("name", Type::Text(30 + n as u32)),
                TableChange::SetAttachment(vec![9; 700]),
            ];
            db.alter_table(name, &longer).map(drop)
        }
        8 if n.is_multiple_of(5) => db.truncate_table(name).map(drop),
        8 => db
            .alter_table(name, &[TableChange::rename_index(&table.definition().indexes[0].name, &format!("i{n}"))])
            .map(drop),
        _ => db.transact(|txn| {
            let id = 1 + n * 7 % 40;
            txn.delete(&table, &values![id])?;
            txn.modify(&table, &values![id + 1], |row, set| set.put(last, u64::from(row.is_null(last)) + n % 7))?;
            let mut row = vec![Value::Null, Value::Text(format!("n{n}"))];
            for column in &table.columns()[2..] {
                row.push(if column.name == "note" { Value::Text(text(n as usize * 90)) } else { Value::UInt(n % 50) });
            }
            txn.insert(&table, &row.iter().map(Into::into).collect::<Vec<_>>()).map(drop)
        }),
    }
}

#[test]
fn a_crash_leaves_the_table_before_or_after_a_change() {
    let mut ends = [0; 2];
    for seed in 0..70u64 {
        let storage = StorageSet::memory();
        let faults = Faults::new();
        let db = open(&storage.map(|device| faults.wrap(device)));
        things(&db, 40);
        let mut before = state(&db).unwrap();
        faults.power_off_after(seed * seed % 331 + seed);
        let mut n = seed;
        let mut held = db.snapshot().ok();
        let (expected, failed) = loop {
            let done = step(&db, n);
            if done.is_err() {
                break (before, n);
            }
            match state(&db) {
                Some(after) => before = after,
                None => break (before, n),
            }
            if n % 11 == 0 {
                held = db.snapshot().ok();
            }
            n += 1;
        };
        drop((held, db));
        let db = open(&storage.cut(seed));
        let found = state(&db).unwrap();
        if found != expected {
            // All of the step that was interrupted: as it is when it is done again on what was there before.
            let replayed = memory();
            let table = things(&replayed, 40);
            drop(table);
            let mut after = state(&replayed).unwrap();
            for n in seed..=failed {
                step(&replayed, n).unwrap();
                after = state(&replayed).unwrap();
            }
            assert_eq!(found, after, "seed {seed}, step {failed}");
        }
        ends[usize::from(found != expected)] += 1;
        let table = db.tables().remove(0);
        check_indexes(&db, &table);
        await_purge(&db);
        sound(&db);
        for n in failed + 1..failed + 9 {
            step(&db, n).unwrap();
        }
        sound(&db);
        db.close().unwrap();
    }
    assert!(ends[0] > 10, "{ends:?}");
}

#[test]
fn a_schema_is_compared_and_migrated_to() {
    let db = memory();
    let first = || by_id().column("a", Type::Text(10));
    let done = db.migrate("t", first()).unwrap();
    assert!(done.created && done.changes.is_empty());
    db.transact(|txn| txn.insert(&done.table, &values![1u64, "x"]).map(drop)).unwrap();
    let cases = [
        (by_id(), "column a would be dropped"),
        (first().column("b", Type::U8), "column b: the rows that are there need a default"),
        (by_id().column("a", Type::Text(3)), "does not widen"),
        (by_id().column("b", Type::Text(10)), "is a and would be b"),
        (first().primary_key(&["a"]), "another primary key"),
        (first().collation("a", "ascii_ci"), "ascii_ci"),
        (first().long_keys(), "another limit of its keys"),
    ];
    for (schema, what) in cases {
        let error = db.migrate("t", schema).unwrap_err();
        assert!(matches!(&error, Error::Schema(reason) if reason.contains(what)), "{error}");
        assert_eq!(db.table("t").unwrap().columns().len(), 2);
    }
    let error = db.table_or_create("t", first().nullable("b", Type::U8)).unwrap_err().to_string();
    assert!(error.contains("no column, and column b (u8, nullable) was asked for"), "{error}");
    let second = || {
        let schema = by_id().nullable("a", Type::Text(99)).column("b", Type::I16);
        schema.default_value("b", -3).attachment(b"2").index("by_b", &["b"])
    };
    let done = db.migrate("t", second()).unwrap();
    assert_eq!((done.created, done.changes.len(), &done.indexes[..]), (false, 4, &["by_b".to_string()][..]));
    assert_eq!(rows(&db, &done.table), [vec![Value::UInt(1), Value::Text("x".into()), Value::Int(-3)]]);
    assert_eq!(all(&db, &done.table, "by_b").len(), 1);
    let again = db.migrate("t", second()).unwrap();
    assert!(again.changes.is_empty() && again.indexes.is_empty());
    let error = db.migrate("t", second().index("by_b", &["a"])).unwrap_err();
    assert!(matches!(error, Error::Schema(_)), "{error}");
    sound(&db);
}
