//! JSON columns: what is written is JSON, byte for byte, whichever way it comes and goes.

use crate::support::{memory, open, sound};
use crate::testing::by_id;
use highwater::{Column, Database, Error, Index, Schema, TableChange, Type, Value, values};
use highwater_storage::StorageSet;

const DOC: usize = 1;

fn documents(db: &Database) -> highwater::Table {
    db.create_table("documents", by_id().column("doc", Type::Json(1 << 20)).nullable("more", Type::Json(50))).unwrap()
}

/// Longer than a page.
fn long(n: usize) -> String {
    format!("{{\"letters\": [\"{}\"]}}", "x".repeat(n))
}

#[test]
fn what_is_no_json_is_refused_and_changes_nothing() {
    let db = memory();
    let table = documents(&db);
    let mut txn = db.begin().unwrap();
    let refusal = "column doc: no JSON: expected `,` or `}` at byte 8";
    let refused = txn.insert(&table, &values![1u64, "{\"a\": 1 2}", null]).unwrap_err();
    assert_eq!(refused.to_string(), refusal);
    assert!(matches!(refused, Error::BadValue { column, .. } if column == "doc"));
    assert_eq!(txn.get(&table, &values![1u64]).unwrap(), None);
    txn.insert(&table, &values![1u64, " {\"b\":1, \"a\": 1.00} ", null]).unwrap();
    for (column, text, reason) in [
        ("doc", "{\"a\": 1 2}", refusal),
        ("doc", "", "column doc: no JSON: EOF while parsing a value at byte 0"),
        ("more", "[[", "column more: no JSON: EOF while parsing a list at byte 2"),
        (
            "more",
            "\"123456789012345678901234567890123456789012345678901\"",
            "column more: 53 bytes are longer than the 50",
        ),
    ] {
        let refused = txn.update(&table, &values![1u64], &[(column, text.into())]).unwrap_err();
        assert!(refused.to_string().starts_with(reason), "{refused}");
        let put = |_: highwater::RowRef<'_>, set: &mut highwater::Changes<'_>| set.put(column, text);
        assert!(txn.modify(&table, &values![1u64], put).unwrap_err().to_string().starts_with(reason));
        let put = |_: highwater::RowRef<'_>, set: &mut highwater::Changes<'_>| set.put(column, text);
        assert!(txn.upsert(&table, &values![1u64, "0", null], put).is_err());
    }
    let many = [values![2u64, "2", "[]"], values![3u64, "three", null]];
    assert!(txn.insert_many(&table, many).unwrap_err().to_string().contains("at byte 1"));
    let row = txn.get(&table, &values![1u64]).unwrap().unwrap();
    assert_eq!(
        (row.str("doc"), row.bytes(DOC), row.is_null("more")),
        (" {\"b\":1, \"a\": 1.00} ", row.str(1).as_bytes(), true)
    );
    assert_eq!(txn.scan(&table).count().unwrap(), 1);
    let nested = "[".repeat(1 << 20);
    assert!(txn.update(&table, &values![1u64], &[("doc", nested[1..].into())]).is_err());
}

#[test]
fn no_key_has_json_and_entries_may() {
    let db = memory();
    let columns = || Schema::new().column("id", Type::U64).column("doc", Type::Json(80));
    for (schema, place) in [
        (columns().primary_key(&["doc"]), "primary key: column doc: JSON has no order"),
        (columns().primary_key(&["id"]).index("i", &["doc"]), "index i: column doc: JSON has no order"),
        (
            columns().primary_key(&["id"]).index_with("i", Index::new(&["doc"]).prefix("doc", 8)),
            "index i: column doc: JSON has no order",
        ),
        (columns().collation("doc", "ascii_ci").primary_key(&["id"]), "column doc: only text has a collation"),
        (columns().default_value("doc", "{").primary_key(&["id"]), "column doc: the default: no JSON: EOF while"),
    ] {
        let refused = db.create_table("t", schema).unwrap_err().to_string();
        assert!(refused.contains(place), "{refused}");
    }
    let covering = Index::new(&["id"]).covering(&["doc"]);
    let table = db.create_table("t", columns().primary_key(&["id"]).index_with("i", covering)).unwrap();
    assert!(db.create_index(&table, "late", &["doc"], false).unwrap_err().to_string().contains("JSON has no order"));
    let mut txn = db.begin().unwrap();
    txn.insert(&table, &values![1u64, "[true]"]).unwrap();
    let mut found = txn.scan(&table).index("i").select(&["doc"]).unwrap();
    assert_eq!(found.next().unwrap().unwrap().str("doc"), "[true]");
    drop(found);
    txn.commit().unwrap();
    sound(&db);
}

#[test]
fn documents_survive_whatever_keeps_them() {
    let storage = StorageSet::memory();
    let db = open(&storage);
    let table = documents(&db);
    for n in 0..40 {
        let document = long(n * n * 10);
        db.transact(|txn| txn.insert(&table, &values![n as u64, &document[..], null]).map(drop)).unwrap();
    }
    let more = Column { name: "tags".into(), ty: Type::Json(40), nullable: false, default: None, collation: None };
    let more = Column { default: Some(Value::Text("[]".into())), ..more };
    let changes = [TableChange::AddColumn(more), TableChange::widen_column("more", Type::Json(90))];
    let table = db.alter_table(&table, &changes).unwrap();
    let wider = db.alter_table(&table, &[TableChange::widen_column("doc", Type::Text(2 << 20))]).unwrap_err();
    assert!(wider.to_string().contains("column doc"), "{wider}");
    db.transact(|txn| txn.update(&table, &values![3u64], &[("tags", "[\"new\"]".into())]).map(drop)).unwrap();
    sound(&db);
    let rows = |db: &Database| -> Vec<Vec<Value>> {
        let table = db.table("documents").unwrap();
        db.snapshot().unwrap().scan(&table).iter().unwrap().map(|row| row.unwrap().to_values()).collect()
    };
    let (before, mut dump) = (rows(&db), Vec::new());
    assert_eq!((&before[5][DOC], &before[5][3]), (&Value::Text(long(250)), &Value::Text("[]".into())));
    db.dump(&mut dump).unwrap();
    let cut = open(&storage.cut(7));
    assert_eq!(rows(&cut), before);
    sound(&cut);
    cut.close().unwrap();
    let loaded = memory();
    loaded.load(&dump[..]).unwrap();
    assert_eq!((rows(&loaded), loaded.table("documents").unwrap().columns()), (before.clone(), table.columns()));
    db.close().unwrap();
    let salvaged = memory();
    highwater::salvage(&*storage.data, &salvaged, &mut |_, _| {}).unwrap();
    assert_eq!(rows(&salvaged), before);
}
