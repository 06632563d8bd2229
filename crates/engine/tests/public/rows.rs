//! Rows, scans, types, limits, auto-increment.

use crate::support::{add, all, check_indexes, memory, names, people};
use crate::testing::{by_id, commit_all};
use highwater::{
    Database, Date, DateTime, Decimal, Error, Index, Schema, TableChange, Time, Type, Uuid, Value, ValueRef, values,
};

#[test]
fn rows_are_inserted_read_changed_and_deleted() {
    let db = memory();
    let people = people(&db);
    let (last, age) = (people.column("last").unwrap(), people.column("age").unwrap());
    let mut txn = db.begin().unwrap();
    let ada = txn.insert(&people, &values![null, "Lovelace", "Ada", 36]).unwrap().auto_increment.unwrap();
    assert_eq!((ada, txn.insert(&people, &values![7, "Hopper", "Grace", null]).unwrap().auto_increment), (1, None));
    txn.commit().unwrap();

    let mut txn = db.begin().unwrap();
    let row = txn.get(&people, &values![ada]).unwrap().unwrap();
    assert_eq!((row.u64(0), row.str(1), row.i64(3)), (1, "Lovelace", 36));
    assert!(txn.get(&people, &values![99]).unwrap().is_none());
    assert!(txn.update(&people, &values![ada], &[(last, "King".into()), (age, ValueRef::Null)]).unwrap());
    assert!(!txn.update(&people, &values![99], &[(last, "Nobody".into())]).unwrap());
    assert!(txn.modify(&people, &values![7], |row, set| set.put(age, row.i64(age) + 85)).unwrap());
    assert_eq!(txn.get_with(&people, &values![7], |row| row.i64(age)).unwrap(), Some(85));
    assert!(txn.get_for_share(&people, &values![7]).unwrap().is_some());
    assert!(txn.delete(&people, &values![7]).unwrap());
    assert!(!txn.delete(&people, &values![7]).unwrap());
    assert!(txn.get_for_update(&people, &values![7]).unwrap().is_none());
    txn.commit().unwrap();
    assert_eq!(
        all(&db, &people, "by_name"),
        [[1u64.into(), "King".to_string().into(), "Ada".to_string().into(), Value::Null]]
    );
    check_indexes(&db, &people);
    // The explicit 7 moved the counter.
    assert_eq!(add(&db, &people, "x", "y", None), 8);
}

#[test]
fn scans_keep_their_bounds() {
    let db = memory();
    let people = people(&db);
    let ages = [Some(30), None, Some(10), Some(20), Some(20), Some(-5)];
    for (i, age) in ages.into_iter().enumerate() {
        add(&db, &people, ["Ander", "Anderson", "Bo"][i % 3], &format!("f{i}"), age);
    }
    let mut read = db.snapshot().unwrap();
    let by_age = |from: Option<(i32, bool)>, to: Option<(i32, bool)>, rev: bool| -> Vec<Option<i64>> {
        let (low, high) = (values![from.map_or(0, |f| f.0)], values![to.map_or(0, |t| t.0)]);
        let mut read = db.snapshot().unwrap();
        let mut scan = read.scan(&people).index("by_age");
        scan = match from {
            Some((_, true)) => scan.from(&low),
            Some((_, false)) => scan.from_exclusive(&low),
            None => scan,
        };
        scan = match to {
            Some((_, true)) => scan.to(&high),
            Some((_, false)) => scan.to_exclusive(&high),
            None => scan,
        };
        if rev {
            scan = scan.rev();
        }
        scan.iter().unwrap().map(|row| row.map(|r| (!r.is_null(3)).then(|| r.i64(3))).unwrap()).collect()
    };
    assert_eq!(by_age(None, None, false), [None, Some(-5), Some(10), Some(20), Some(20), Some(30)]);
    assert_eq!(by_age(Some((10, true)), Some((20, true)), false), [Some(10), Some(20), Some(20)]);
    assert_eq!(by_age(Some((10, false)), Some((30, false)), true), [Some(20), Some(20)]);
    assert_eq!(by_age(Some((20, false)), None, true), [Some(30)]);
    assert!(by_age(Some((30, true)), Some((10, true)), false).is_empty());
    assert!(by_age(Some((11, true)), Some((19, true)), true).is_empty());

    let name = |scan: highwater::Scan<'_, '_>| names(scan.iter().unwrap());
    assert_eq!(name(read.scan(&people).index("by_name").prefix(&values!["Ander"])), ["Ander f0", "Ander f3"]);
    let starts = name(read.scan(&people).index("by_name").starts_with(&values!["Ander"]).rev());
    assert_eq!(starts, ["Anderson f4", "Anderson f1", "Ander f3", "Ander f0"]);
    assert_eq!(name(read.scan(&people).index("by_name").starts_with(&values!["Bo", "f"]).limit(1)), ["Bo f2"]);
    assert_eq!(name(read.scan(&people).rev().limit(2)), ["Bo f5", "Anderson f4"]);
    assert!(name(read.scan(&people).limit(0)).is_empty());
    let from = values![3];
    assert_eq!(name(read.scan(&people).from(&from).to_exclusive(&values![5])), ["Bo f2", "Ander f3"]);
}

#[test]
fn a_scan_reads_in_place_too() {
    let db = memory();
    let people = people(&db);
    for i in 0..500 {
        add(&db, &people, &format!("{i:04}"), "", Some(i));
    }
    let mut txn = db.begin().unwrap();
    let mut scan = txn.scan(&people).index("by_name").iter().unwrap();
    let mut sum = 0;
    while let Some(row) = scan.next_ref().unwrap() {
        sum += row.i64(3);
    }
    assert_eq!(sum, 499 * 500 / 2);
    assert!(scan.next_ref().unwrap().is_none() && scan.next().is_none());
    // Locking scans of what the transaction itself changes.
    assert_eq!(txn.scan(&people).from(&values![250]).for_update().iter().unwrap().count(), 251);
    assert_eq!(txn.scan(&people).for_share().limit(3).iter().unwrap().count(), 3);
}

#[test]
fn changing_the_key_moves_the_row() {
    let db = memory();
    let people = people(&db);
    for i in 1..=5 {
        add(&db, &people, &format!("l{i}"), "f", Some(i));
    }
    let mut txn = db.begin().unwrap();
    assert!(txn.update(&people, &values![2], &[(0, 50.into()), (1, "moved".into())]).unwrap());
    assert!(txn.modify(&people, &values![3], |row, set| set.put(0, row.u64(0) + 100)).unwrap());
    // Named, but not changed.
    assert!(txn.update(&people, &values![4], &[(0, 4.into()), (3, 44.into())]).unwrap());
    assert!(!txn.update(&people, &values![2], &[(0, 60.into())]).unwrap());
    txn.commit().unwrap();
    let ids: Vec<Value> = all(&db, &people, "PRIMARY").into_iter().map(|mut row| row.swap_remove(0)).collect();
    assert_eq!(ids, [1u64, 4, 5, 50, 103].map(Value::from));
    check_indexes(&db, &people);
}

#[test]
fn every_type_comes_back() {
    let db = memory();
    let schema = Schema::new()
        .column("id", Type::I8)
        .nullable("u", Type::U64)
        .nullable("i", Type::I64)
        .nullable("f", Type::F64)
        .nullable("g", Type::F32)
        .nullable("d", Type::Decimal(38, 10))
        .nullable("t", Type::Text(100))
        .nullable("b", Type::Binary(100))
        .nullable("at", Type::DateTime)
        .primary_key(&["id"])
        .index("every", &["f", "d", "b", "at"]);
    let table = db.create_table("t", schema).unwrap();
    let time = DateTime::from_date(2026, 1, 31).unwrap();
    let rows: [[ValueRef<'_>; 9]; 3] = [
        values![-128, u64::MAX, i64::MIN, f64::NEG_INFINITY, 0.5f32, Decimal::new(-1, 10), "\u{0}é", b"\0\xff", time],
        values![0, null, null, null, null, null, null, null, null],
        values![127, 0, 0, 1.5, -1.5, 7, "", b"", DateTime::from_unix_us(i64::MIN)],
    ];
    commit_all(&db, &rows, |txn, row| txn.insert(&table, row));
    let found = all(&db, &table, "PRIMARY");
    for (row, found) in rows.iter().zip(&found) {
        for (i, (value, found)) in row.iter().zip(found).enumerate() {
            match (value, found) {
                (ValueRef::Int(a), Value::UInt(b)) => assert_eq!(u64::try_from(*a).unwrap(), *b, "column {i}"),
                (ValueRef::Int(a), Value::Decimal(b)) => assert_eq!(Decimal::from(*a), *b, "column {i}"),
                (value, found) => assert_eq!(*value, found.as_ref(), "column {i}"),
            }
        }
    }
    check_indexes(&db, &table);
}

#[test]
fn rows_may_be_larger_than_pages_and_the_pool() {
    let db = memory();
    let schema = Schema::new()
        .column("id", Type::U32)
        .column("blob", Type::Binary(16 << 20))
        .column("n", Type::U32)
        .primary_key(&["id"]);
    let table = db.create_table("t", schema).unwrap();
    let blob: Vec<u8> = (0..8u32 << 20).map(|i| (i ^ (i >> 8)) as u8).collect();
    for (id, len) in [(1, 8 << 20), (2, 5000), (3, 100_000), (4, 0)] {
        let mut txn = db.begin().unwrap();
        txn.insert(&table, &values![id, &blob[..len], 0]).unwrap();
        txn.commit().unwrap();
    }
    let mut txn = db.begin().unwrap();
    assert!(txn.modify(&table, &values![1], |_, set| set.put(2, 7)).unwrap());
    assert!(txn.update(&table, &values![4], &[(1, (&blob[..70_000]).into())]).unwrap());
    assert!(txn.delete(&table, &values![3]).unwrap());
    txn.commit().unwrap();
    let mut read = db.snapshot().unwrap();
    let row = read.get(&table, &values![1]).unwrap().unwrap();
    assert!(row.bytes(1) == blob && row.u64(2) == 7);
    let lengths: Vec<usize> = read.scan(&table).iter().unwrap().map(|row| row.unwrap().bytes(1).len()).collect();
    assert_eq!(lengths, [8 << 20, 5000, 70_000]);
}

#[test]
fn keys_and_rows_have_limits() {
    let db = memory();
    let schema = Schema::new()
        .column("k", Type::Text(4000))
        .column("v", Type::Binary(16 << 20))
        .column("s", Type::Text(4000))
        .primary_key(&["k"])
        .index("by_s", &["s"]);
    let table = db.create_table("t", schema).unwrap();
    let long = "x".repeat(4000);
    let mut txn = db.begin().unwrap();
    let too_long = |error: Error| {
        assert!(matches!(error, Error::KeyTooLong { bytes, limit_bytes, .. } if bytes > limit_bytes), "{error}")
    };
    too_long(txn.insert(&table, &values![long.as_str(), b"", ""]).unwrap_err());
    too_long(txn.insert(&table, &values!["k", b"", long.as_str()]).unwrap_err());
    txn.insert(&table, &values!["k", b"", "s"]).unwrap();
    too_long(txn.update(&table, &values!["k"], &[(2, long.as_str().into())]).unwrap_err());
    too_long(txn.update(&table, &values!["k"], &[(0, long.as_str().into())]).unwrap_err());
    assert!(txn.get(&table, &values![long.as_str()]).unwrap().is_none());
    let huge = vec![1; 16 << 20];
    assert!(matches!(txn.insert(&table, &values!["h", &huge, "s"]), Err(Error::RowTooLarge { .. })));
    txn.commit().unwrap();
    assert_eq!(all(&db, &table, "by_s").len(), 1);
}

#[test]
fn auto_increment_never_repeats() {
    let db = memory();
    let table = people(&db);
    assert_eq!((1..=3).map(|_| add(&db, &table, "a", "b", None)).collect::<Vec<_>>(), [1, 2, 3]);
    // After a crash: a gap, nothing twice.
    let crashed = db.after_power_cut(1);
    let after = add(&crashed, &crashed.table("people").unwrap(), "a", "b", None);
    assert!(after > 3, "{after}");
    drop(crashed);
    // After a clean close: no gap.
    let db = db.reopen();
    let table = db.table("people").unwrap();
    assert_eq!(add(&db, &table, "a", "b", None), 4);
    let mut txn = db.begin().unwrap();
    assert_eq!(txn.insert(&table, &values![1_000_000, "a", "b", null]).unwrap().auto_increment, None);
    txn.commit().unwrap();
    assert_eq!(add(&db, &table, "a", "b", None), 1_000_001);

    let small = Schema::new().column("id", Type::I8).auto_increment("id").primary_key(&["id"]);
    let small = db.create_table("small", small).unwrap();
    let mut txn = db.begin().unwrap();
    txn.insert(&small, &values![-5]).unwrap();
    txn.insert(&small, &values![126]).unwrap();
    assert_eq!(txn.insert(&small, &values![null]).unwrap().auto_increment, Some(127));
    let full = txn.insert(&small, &values![null]).unwrap_err().to_string();
    assert_eq!(full, "column id: auto-increment has reached 127, the last number of the column's type");
}

/// A number that an update sets is not assigned again, even after a crash.
#[test]
fn an_update_of_the_auto_increment_column_moves_the_counter() {
    let schema = || by_id().column("n", Type::U64).auto_increment("n");
    for (columns, name) in [(["id", "n"], "key"), (["n", "id"], "plain")] {
        let db = memory();
        let schema = match name {
            "plain" => schema(),
            _ => by_id().column("n", Type::U64).auto_increment("id"),
        };
        let table = db.create_table("t", schema).unwrap();
        let counter = table.column(columns[0]).unwrap();
        let row = |other: u64| if counter == 0 { values![null, other] } else { values![other, null] };
        db.transact(|txn| txn.insert(&table, &row(1))).unwrap();
        assert!(db.transact(|txn| txn.update(&table, &values![1], &[(counter, 5000.into())])).unwrap(), "{name}");
        assert_eq!(db.check().unwrap().findings, []);
        let db = db.after_power_cut(0);
        let table = db.table("t").unwrap();
        let given = db.transact(|txn| txn.insert(&table, &row(2))).unwrap().auto_increment.unwrap();
        assert!(given > 5000, "{name}: {given}");
        assert_eq!(db.check().unwrap().findings, []);
    }
}

/// By name as by position; what is not there is an error where values are put, and a mistake where they are read.
#[test]
fn columns_have_names() {
    let db = memory();
    let schema = by_id().column("name", Type::Text(20)).nullable("age", Type::U8);
    let table = db.create_table("t", schema.index("by_name", &["name"])).unwrap();
    let mut txn = db.begin().unwrap();
    txn.insert(&table, &values![1u64, "Ada", null]).unwrap();
    assert!(txn.update(&table, &values![1u64], &[("age", 36.into()), ("name", "Ada King".into())]).unwrap());
    let (name, age) = ("name".to_string(), table.column("age").unwrap());
    assert!(txn.modify(&table, &values![1u64], |row, set| set.put("age", row.u64(age) + 1)).unwrap());
    let row = txn.get(&table, &values![1u64]).unwrap().unwrap();
    assert_eq!((row.str(&name), row.u64("age"), row.get("id"), row.is_null(age)), ("Ada King", 37, 1u64.into(), false));
    let refused = txn.update(&table, &values![1u64], &[("ages", 1.into())]).unwrap_err();
    assert_eq!(refused.to_string(), "column ages: there is no such column");
    let refused = txn.modify(&table, &values![1u64], |_, set| set.put(3, 1)).unwrap_err();
    assert_eq!(refused.to_string(), "column number 3: there is no such column");
    let missing = std::panic::catch_unwind(|| row.u64("Age")).unwrap_err();
    assert_eq!(missing.downcast_ref::<String>().unwrap(), "a row of 3 columns has no column Age");
    // What a scan makes of some columns has their names, and no others.
    let keys = txn.scan(&table).index("by_name").keys().unwrap().next().unwrap().unwrap();
    assert_eq!((keys.str("name"), keys.u64("id"), keys.columns()), ("Ada King", 1, 2));
    let some = txn.scan(&table).select(&["age", "name"]).unwrap().next().unwrap().unwrap();
    assert_eq!((some.u64("age"), some.str(1), some.columns()), (37, "Ada King", 2));
}

/// Truth values, dates, times of day and UUIDs: in rows, keys, entries and defaults, in their order.
#[test]
fn days_times_truth_and_uuids_are_values() {
    let db = memory();
    let newest = Index::new(&["born", "id"]).descending("born").covering(&["wakes", "active"]);
    let schema = Schema::new()
        .column("id", Type::Uuid)
        .column("active", Type::Bool)
        .nullable("born", Type::Date)
        .column("wakes", Type::Time)
        .primary_key(&["id"])
        .index("by_state", &["active", "wakes"])
        .index_with("newest", newest);
    let table = db.create_table("t", schema).unwrap();
    let uuid = |n: u8| Uuid::from_bytes([n.wrapping_mul(37); 16]);
    let born = |n: u8| (!n.is_multiple_of(5)).then(|| Date::from_unix_days(i32::from(n) * 300 - 20_000));
    let wakes = |n: u8| Time::new(n % 24, 30, 0, u32::from(n)).unwrap();
    let row = |n: u8| values![uuid(n), n.is_multiple_of(2), born(n), wakes(n)];
    db.transact(|txn| txn.insert_many(&table, (0..200).map(row))).unwrap();
    let is_in_order = |db: &Database| {
        let table = db.table("t").unwrap();
        let mut read = db.snapshot().unwrap();
        let ids: Vec<Uuid> = read.scan(&table).iter().unwrap().map(|row| row.unwrap().uuid("id")).collect();
        assert!(ids.len() == 200 && ids.is_sorted());
        let states = read.scan(&table).index("by_state").keys().unwrap();
        let states: Vec<_> =
            states.map(|key| key.unwrap()).map(|key| (key.bool("active"), key.time("wakes"))).collect();
        assert!(states.is_sorted() && states.iter().filter(|(active, _)| *active).count() == 100);
        let days = read.scan(&table).index("newest").select(&["born", "wakes", "active"]).unwrap();
        let days: Vec<_> = days.map(Result::unwrap).collect();
        let known: Vec<_> = days.iter().take_while(|row| !row.is_null("born")).map(|row| row.date("born")).collect();
        assert!(known.len() == 160 && known.is_sorted_by(|a, b| a >= b));
        check_indexes(db, &table);
    };
    is_in_order(&db);
    let mut read = db.snapshot().unwrap();
    let found = read.get(&table, &values![uuid(7)]).unwrap().unwrap();
    assert_eq!(found.to_values(), row(7).map(|value| value.to_value()));
    // From a day on, to a time of day.
    let (from, to) = (values![Date::new(1970, 1, 1).unwrap()], values![true, "12:00".parse::<Time>().unwrap()]);
    let young = (0..200).filter(|n| born(*n).is_some_and(|day| day.unix_days() >= 0)).count() as u64;
    assert_eq!(read.scan(&table).index("newest").to(&from).count().unwrap(), young);
    let early = (0..200u8).filter(|n| n % 2 == 0 && wakes(*n).us_since_midnight() <= 12 * 3_600_000_000).count() as u64;
    let active = values![true];
    assert_eq!(read.scan(&table).index("by_state").from(&active).to(&to).count().unwrap(), early);
    drop(read);
    // 16 bytes are a UUID, 0 and 1 are truth values; what is not is refused.
    let mut txn = db.begin().unwrap();
    let mut bytes = [9u8; 16];
    bytes[15] = 1;
    txn.insert(&table, &values![&bytes, 1, null, wakes(1)]).unwrap();
    assert!(txn.get(&table, &values![Uuid::from(bytes)]).unwrap().unwrap().bool("active"));
    let wrong = |error: Error, what: &str| assert!(error.to_string().contains(what), "{error}");
    wrong(txn.insert(&table, &values![&bytes[1..], 1, null, wakes(1)]).unwrap_err(), "column id: 15 bytes for a UUID");
    wrong(txn.update(&table, &values![uuid(7)], &[("active", 2.into())]).unwrap_err(), "column active: 2 does not fit");
    wrong(
        txn.update(&table, &values![uuid(7)], &[("born", "1815".into())]).unwrap_err(),
        "column born: text does not go",
    );
    txn.rollback().unwrap();
    // Rows that are older than a column have its default, also after the power has gone.
    let since = Date::new(2026, 1, 31).unwrap();
    let added =
        [TableChange::add_column("since", Type::Date, since), TableChange::add_column("free", Type::Bool, true)];
    let table = db.alter_table(&table, &added).unwrap();
    db.transact(|txn| txn.update(&table, &values![uuid(7)], &[("free", false.into())])).unwrap();
    let db = db.after_power_cut(3);
    let table = db.table("t").unwrap();
    let mut read = db.snapshot().unwrap();
    let [seven, eight] = [7, 8].map(|n| read.get(&table, &values![uuid(n)]).unwrap().unwrap());
    assert_eq!(
        (seven.date("since"), seven.bool("free"), eight.date("since"), eight.bool("free")),
        (since, false, since, true)
    );
    assert_eq!(seven.date("since").at(seven.time("wakes")).unwrap().to_string(), "2026-01-31T07:30:00.000007");
    drop(read);
    is_in_order(&db);
    crate::support::sound(&db);
}
