//! Keys and records of the longest lengths that tables are declared to have.

use crate::support::{await_purge, check_indexes, memory, sound};
use crate::testing::by_id;
use highwater::{Error, Index, Schema, Table, TableChange, Type, Value, values};
use std::collections::BTreeMap;

#[test]
fn long_keys_take_what_they_are_declared_to_take() {
    let db = memory();
    let keys =
        |schema: Schema| schema.column("k", Type::Binary(3000)).column("v", Type::Binary(3000)).primary_key(&["k"]);
    let usual = db.create_table("usual", keys(Schema::new())).unwrap();
    let long = db.create_table("long", keys(Schema::new().long_keys()).index("by_v", &["v"])).unwrap();
    let mut txn = db.begin().unwrap();
    let bytes = |n: usize| vec![7u8; n];
    let mut insert = |table: &Table, k: usize, v: usize| txn.insert(table, &values![&bytes(k), &bytes(v)]);
    assert!(insert(&usual, 511, 10).is_ok());
    assert!(matches!(insert(&usual, 512, 10), Err(Error::KeyTooLong { bytes: 513, limit_bytes: 512, .. })));
    assert!(insert(&long, 600, 100).is_ok());
    assert!(matches!(insert(&long, 896, 0), Err(Error::KeyTooLong { bytes: 897, limit_bytes: 896, .. })));
    let named = insert(&long, 896, 0).unwrap_err().to_string();
    assert!(named.starts_with("the primary key (k) of table long has 897 bytes; in its tree at most 896 "), "{named}");
    // The entry has both.
    let named = insert(&long, 601, 400).unwrap_err().to_string();
    assert!(named.starts_with("the key of index by_v (v) of table long has 1003 bytes; "), "{named}");
    assert!(matches!(insert(&long, 601, 400), Err(Error::KeyTooLong { bytes: 1003, limit_bytes: 896, .. })));
    txn.commit().unwrap();
    assert!(matches!(db.table_or_create("long", keys(Schema::new())), Err(Error::Schema(_))));
    // The entry of the longest key has no room for five bytes of it more.
    let covering = || Index::new(&["k"]).prefix("k", 5).covering(&["v"]);
    let refused = db.create_index_with("usual", "covering", covering()).unwrap_err();
    assert!(
        matches!(&refused, Error::KeyTooLong { key, .. } if key == "the key of index covering (k(5)) of table usual")
    );
    db.transact(|txn| txn.delete(&usual, &values![&bytes(511)])).unwrap();
    db.create_index_with("usual", "covering", covering()).unwrap();
    let mut txn = db.begin().unwrap();
    let error = txn.insert(&usual, &values![&bytes(3), &bytes(2000)]).unwrap_err();
    assert!(matches!(&error, Error::EntryTooLong { index, .. } if index == "covering"), "{error}");
    txn.insert(&usual, &values![&bytes(3), &bytes(1400)]).unwrap();
    txn.commit().unwrap();
    sound(&db);
}

/// A tree keeps the limit that it was created with; an index that is created again takes the longer values.
#[test]
fn a_widened_key_is_as_long_as_its_tree_takes() {
    let db = memory();
    let schema = Schema::new().column("k", Type::Binary(20)).column("v", Type::Binary(20)).primary_key(&["k"]);
    db.create_table("t", schema.index("by_v", &["v"])).unwrap();
    let widen = ["k", "v"].map(|name| TableChange::widen_column(name, Type::Binary(3000)));
    let table = db.alter_table("t", &widen).unwrap();
    let insert =
        |k: usize, v: usize| db.transact(|txn| txn.insert(&table, &values![&vec![7u8; k], &vec![7u8; v]]).map(drop));
    // Twice the bytes and one: as if each had to be escaped.
    insert(40, 20).unwrap();
    assert!(matches!(insert(41, 0), Err(Error::KeyTooLong { bytes: 42, limit_bytes: 41, .. })));
    assert!(matches!(insert(3, 100), Err(Error::KeyTooLong { limit_bytes: 82, .. })));
    db.drop_index("t", "by_v").unwrap();
    db.create_index("t", "by_v", &["v"], false).unwrap();
    insert(3, 100).unwrap();
    assert!(matches!(insert(41, 0), Err(Error::KeyTooLong { bytes: 42, limit_bytes: 41, .. })));
    check_indexes(&db, &table);
    sound(&db);
}

/// Keys that can be too long are known before a row says so.
#[test]
fn a_table_warns_of_keys_that_can_be_too_long() {
    let db = memory();
    let schema = || by_id().column("url", Type::Text(600)).nullable("at", Type::U32);
    let table = db.create_table("t", schema().index("by_at", &["at"])).unwrap();
    assert!(table.warnings().is_empty());
    db.create_index(&table, "by_url", &["url", "at"], false).unwrap();
    db.create_index_with(&table, "by_start", Index::new(&["url"]).prefix("url", 100)).unwrap();
    // 600 and their end, a NULL's byte and 4, the row's 8.
    let warning = "the key of index by_url (url, at) of table t can have 614 bytes, and at most 512 are allowed";
    assert!(table.warnings().len() == 1 && table.warnings()[0].starts_with(warning), "{:?}", table.warnings());
    let long = db.create_table("long", schema().long_keys().index("by_url", &["url"])).unwrap();
    assert!(long.warnings().is_empty());
}

/// Thousands of rows with long keys of every kind, and large rows between them, split and merge without end.
#[test]
fn long_keys_and_large_rows_live_together() {
    let db = memory();
    let schema = Schema::new().column("k", Type::Binary(440)).column("v", Type::Binary(4000)).long_keys();
    let schema = schema.primary_key(&["k"]).index_with("by_v", Index::new(&["v"]).prefix("v", 3).descending("v"));
    let table = db.create_table("t", schema).unwrap();
    let mut random = fastrand::Rng::with_seed(5);
    let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    for round in 0..30 {
        let mut txn = db.begin().unwrap();
        for _ in 0..40 {
            let mut key = vec![random.u8(..3); random.usize(1..440)];
            let last = key.len() - 1;
            key[last] = random.u8(..);
            if round % 3 == 2 || random.u8(..4) == 0 {
                if let Some(key) = model.range(key..).next().map(|(key, _)| key.clone()) {
                    assert!(txn.delete(&table, &values![&key]).unwrap());
                    model.remove(&key);
                }
                continue;
            }
            let longest = [20, 1200, 3000][random.usize(..3)];
            let value = vec![random.u8(..5); random.usize(..longest)];
            match model.contains_key(&key) {
                true => assert!(txn.update(&table, &values![&key], &[(1, value.as_slice().into())]).unwrap()),
                false => drop(txn.insert(&table, &values![&key, &value]).unwrap()),
            }
            model.insert(key, value);
        }
        txn.commit().unwrap();
        let mut read = db.snapshot().unwrap();
        let found = read.scan(&table).iter().unwrap().map(|row| row.unwrap().to_values());
        let expected = model.iter().map(|(key, value)| vec![Value::from(key.clone()), Value::from(value.clone())]);
        assert!(found.eq(expected), "round {round}");
    }
    await_purge(&db);
    check_indexes(&db, &table);
    sound(&db);
}
