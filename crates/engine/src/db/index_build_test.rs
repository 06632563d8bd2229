//! An index built in one batch, in many, and with a bound of 0 bytes is the same index.

use super::*;
use crate::db::Database;
use crate::table::catalog::Catalog;
use crate::table::key::KeyLayout;
use crate::table::version::Secondary;
use crate::table::{IndexDefinition, Schema, TableDefinition, Type};
use crate::testing::{assert_free_classes, small_options};
use crate::values;
use highwater_storage::StorageSet;
use std::sync::Arc;

fn filled(rows: u32) -> (Database, Table) {
    let db = Database::open_storage(StorageSet::memory(), small_options()).unwrap();
    let schema = Schema::new().column("id", Type::U32).column("x", Type::Text(40)).nullable("n", Type::U32);
    let table = db.create_table("t", schema.primary_key(&["id"])).unwrap();
    let mut txn = db.begin().unwrap();
    for id in 0..rows {
        let x = format!("value {:05}", u64::from(id) * 7919 % 10_007);
        txn.insert(&table, &values![id, x.as_str(), (id % 3 == 0).then_some(id / 6)]).unwrap();
    }
    txn.commit().unwrap();
    (db, table)
}

/// Builds an index on `columns` that is not used; returns its keys.
fn built(db: &Database, table: &Table, columns: &[usize], unique: bool, batch_bytes: usize) -> Result<Vec<Vec<u8>>> {
    let catalog: &Arc<Catalog> = db.catalog();
    let before = table.shared.current.read().clone();
    let added = IndexDefinition { name: "i".to_string(), columns: columns.to_vec(), unique };
    let definition = Arc::new(TableDefinition { indexes: vec![added.clone()], ..(*before.definition).clone() });
    let record = catalog.create_index(before.id, added).unwrap();
    let tree = catalog.open_index_tree(&record);
    let key = KeyLayout::new(&definition, columns);
    let rows = before.with_indexes(definition, vec![Arc::new(Secondary { key, tree: tree.clone(), since: 0 })]);
    build(db.context(), db.begin().unwrap(), table, &rows, batch_bytes)?;
    assert_free_classes(db.context(), db.space(), &tree);
    let (mut keys, mut next) = (Vec::new(), None::<Vec<u8>>);
    loop {
        let leaf = tree.leaf(db.context(), next.as_deref().map_or(Seek::First, Seek::Covers))?;
        for slot in 0..leaf.len() {
            let mut key = Vec::new();
            leaf.key_into(slot, &mut key);
            keys.push(key);
        }
        match leaf.upper() {
            Some(upper) => next = Some(upper.to_vec()),
            None => return Ok(keys),
        }
    }
}

#[test]
fn batches_make_no_difference() {
    let (db, table) = filled(3000);
    let whole = built(&db, &table, &[1], true, MOST_BATCH_BYTES).unwrap();
    assert!(whole.len() == 3000 && whole.is_sorted());
    for batch_bytes in [1, 5000, 60_000] {
        assert!(built(&db, &table, &[1], true, batch_bytes).unwrap() == whole, "{batch_bytes}");
    }
}

#[test]
fn duplicates_are_found_across_batches_and_nulls_are_none() {
    let (db, table) = filled(1000);
    for batch_bytes in [1, MOST_BATCH_BYTES] {
        let error = built(&db, &table, &[2], true, batch_bytes).unwrap_err();
        assert!(matches!(&error, Error::DuplicateKey { index, table } if index == "i" && table == "t"), "{error}");
        assert_eq!(built(&db, &table, &[2], false, batch_bytes).unwrap().len(), 1000);
        assert_eq!(built(&db, &table, &[2, 0], true, batch_bytes).unwrap().len(), 1000);
    }
}

#[test]
fn an_empty_table_has_an_empty_index() {
    let (db, table) = filled(0);
    assert!(built(&db, &table, &[1], true, MOST_BATCH_BYTES).unwrap().is_empty());
}
