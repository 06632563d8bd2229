//! An index built in one batch and of many runs is the same index; what goes wrong with the temporary file is an error,
//! and nothing else.

use super::*;
use crate::btree::Seek;
use crate::db::Database;
use crate::db::testing::{TestDb, by_id, commit_all};
use crate::row::format::ENTRY_VALUE_BYTES;
use crate::table::catalog::Catalog;
use crate::table::version::Secondary;
use crate::table::{IndexColumn, IndexDefinition, Schema, TableDefinition, Type, ValueRef};
use crate::testing::{assert_free_classes, small_options};
use crate::txn::ReadView;
use crate::values;
use highwater_storage::{Device, FaultKind, Faults, MemoryDevice, Operation, Request, StorageSet, TestDevice};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

fn filled(rows: u32) -> (TestDb, Table) {
    let db = TestDb::new(small_options());
    let schema = Schema::new().column("id", Type::U32).column("x", Type::Text(40)).nullable("n", Type::U32);
    let table = db.create_table("t", schema.primary_key(&["id"])).unwrap();
    commit_all(&db, 0..rows, |txn, id| {
        let x = format!("value {:05}", u64::from(id) * 7919 % 10_007);
        txn.insert(&table, &values![id, x.as_str(), (id % 3 == 0).then_some(id / 6)])
    });
    (db, table)
}

/// Builds an index on `columns` that is not used and covers column 2; returns its keys and values.
fn built(
    db: &Database,
    table: &Table,
    columns: &[usize],
    unique: bool,
    batch_bytes: usize,
) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let catalog: &Arc<Catalog> = db.catalog();
    let before = table.shared.current.read().clone();
    let added = IndexDefinition {
        name: "i".to_string(),
        columns: columns.iter().map(|column| IndexColumn::from(*column)).collect(),
        covered: if columns.contains(&2) { Vec::new() } else { vec![2] },
        unique,
    };
    let definition = Arc::new(TableDefinition { indexes: vec![added.clone()], ..(*before.definition).clone() });
    let record = catalog.create_index(&table.shared.entry.lock(), &definition, &added).unwrap();
    let tree = catalog.open_index_tree(&record);
    let always = (0, ReadView::default());
    let index = Secondary::new(&definition, &added, catalog.collations(), tree.clone(), always, None);
    let rows = before.with_indexes(definition, vec![Arc::new(index)]);
    let (ctx, runs) = (db.context(), Runs::new(db.storage(), &db.context().stats));
    let mut filling =
        IndexFill { ctx, version: &rows, batch_bytes, runs, between: &mut |_| Ok(()), duplicate: Vec::new() };
    filling.fill(&mut db.begin().unwrap(), table)?;
    assert_free_classes(db.context(), db.space(), &tree);
    let (mut entries, mut next) = (Vec::new(), None::<Vec<u8>>);
    loop {
        let leaf = tree.leaf(db.context(), next.as_deref().map_or(Seek::First, Seek::Covers))?;
        for slot in 0..leaf.len() {
            let mut key = Vec::new();
            leaf.key_into(slot, &mut key);
            entries.push((key, leaf.value(slot).to_vec()));
        }
        match leaf.upper() {
            Some(upper) => next = Some(upper.to_vec()),
            None => return Ok(entries),
        }
    }
}

#[test]
fn batches_make_no_difference() {
    let (db, table) = filled(3000);
    let whole = built(&db, &table, &[1], true, MAX_BATCH_BYTES).unwrap();
    assert!(whole.len() == 3000 && whole.is_sorted());
    let covers = |least: usize| whole.iter().filter(|(_, value)| value.len() > ENTRY_VALUE_BYTES + least).count();
    assert_eq!((covers(0), covers(1)), (3000, 998), "a byte for NULL and for 0, more for each other number");
    for batch_bytes in [2000, 20_000, 60_000, 200_000] {
        assert!(built(&db, &table, &[1], true, batch_bytes).unwrap() == whole, "{batch_bytes}");
    }
}

#[test]
fn duplicates_are_found_across_batches_and_nulls_are_none() {
    let (db, table) = filled(1000);
    for batch_bytes in [5000, MAX_BATCH_BYTES] {
        let error = built(&db, &table, &[2], true, batch_bytes).unwrap_err();
        assert!(matches!(&error, Error::DuplicateKey { index, table } if index == "i" && table == "t"), "{error}");
        assert_eq!(built(&db, &table, &[2], false, batch_bytes).unwrap().len(), 1000);
        assert_eq!(built(&db, &table, &[2, 0], true, batch_bytes).unwrap().len(), 1000);
    }
}

/// The row that a refused index on `column` shows; `meanwhile` is called when rows have been read.
fn shown(db: &Database, table: &Table, column: &str, mut meanwhile: impl FnMut()) -> Vec<Value> {
    let (mut duplicate, mut is_first) = (None, true);
    let mut between = |_| {
        if std::mem::take(&mut is_first) {
            meanwhile();
        }
        Ok(())
    };
    let index = crate::Index::new(&[column]).unique();
    let refused = db.make_index(table.into(), "i", &index, &mut between, &mut duplicate);
    assert!(matches!(refused, Err(Error::DuplicateKey { .. })), "{refused:?}");
    duplicate.unwrap().to_values()
}

#[test]
fn one_of_the_rows_that_are_equal_is_shown_as_it_was_when_it_was_met() {
    let (db, table) = filled(1000);
    let n = |id: u32| db.transact(|txn| txn.update(&table, &values![id], &[(2, ValueRef::Null)]).map(drop)).unwrap();
    // Of before: as the view sees it, whatever a writer does.
    assert_eq!(
        shown(&db, &table, "n", || n(3)),
        [Value::UInt(3), Value::Text("value 03743".to_string()), Value::UInt(0)]
    );
    // Of a writer: as it is at the end.
    let later = || db.transact(|txn| txn.insert(&table, &values![5000, "value 00000", null]).map(drop)).unwrap();
    assert_eq!(
        shown(&db, &table, "x", later),
        [Value::UInt(5000), Value::Text("value 00000".to_string()), Value::Null]
    );
    assert!(table.definition().indexes.is_empty());
}

#[test]
fn an_empty_table_has_an_empty_index() {
    let (db, table) = filled(0);
    assert!(built(&db, &table, &[1], true, MAX_BATCH_BYTES).unwrap().is_empty());
}

/// A database whose temporary devices `make` makes, with two tables whose indexes on `x` do not fit one batch.
fn large(make: impl Fn() -> Arc<dyn Device> + Send + Sync + 'static) -> Database {
    let storage = StorageSet::memory().with_temporary(move || Ok(make()));
    let db = Database::open_storage(storage, small_options()).unwrap();
    for name in ["a", "b"] {
        let schema = Schema::new().column("id", Type::U32).column("x", Type::Text(300));
        let table = db.create_table(name, schema.primary_key(&["id"])).unwrap();
        commit_all(&db, 0..6000u32, |txn, id| {
            txn.insert(&table, &values![id, format!("{:0250}", u64::from(id) * 7919 % 10_007).as_str()])
        });
    }
    assert!(batch_bytes(db.context()) < 6000 * 250);
    db
}

fn assert_indexed(db: &Database, table: &str) {
    let handle = db.table(table).unwrap();
    let mut read = db.snapshot().unwrap();
    let rows: Result<Vec<_>> = read.scan(&handle).index("by_x").iter().unwrap().collect();
    let rows = rows.unwrap();
    assert!(rows.len() == 6000 && rows.is_sorted_by_key(|row| row.str(1).to_string()), "{table}");
    assert_eq!(db.check().unwrap().findings, []);
}

#[test]
fn a_damaged_or_full_temporary_file_is_an_error_and_leaves_nothing() {
    for (operation, nth, kind) in [
        (Operation::Write, 3, FaultKind::DiskFull),
        (Operation::SetLen, 1, FaultKind::DiskFull),
        (Operation::Read, 2, FaultKind::ErrorOnce),
    ] {
        let faults = Faults::new();
        let wrapped = faults.clone();
        let db = large(move || wrapped.wrap(Arc::new(MemoryDevice::named("temporary", 1))));
        faults.fail(operation, nth, kind);
        let error = db.create_index("a", "by_x", &["x"], false).unwrap_err();
        assert!(matches!(&error, Error::Storage(_)) && error.to_string().contains("temporary"), "{error}");
        assert_eq!(faults.failures(), 1);
        faults.clear();
        db.create_index("a", "by_x", &["x"], true).unwrap();
        assert_indexed(&db, "a");
    }
    for at in [9, 70_000, 3 << 16] {
        let db = large(move || damaging(at));
        let error = db.create_index("a", "by_x", &["x"], false).unwrap_err();
        assert!(matches!(&error, Error::Corrupt(why) if why.contains("temporary is damaged")), "{error}");
    }
}

/// A temporary device that gives the byte at `at` back as another one than was written; nothing of it is synced.
fn damaging(at: u64) -> Arc<dyn Device> {
    let device = TestDevice::over(Arc::new(MemoryDevice::named("temporary", 1))).before(|request| {
        assert!(!matches!(request, Request::Sync), "nothing of it is synced");
        Ok(())
    });
    Arc::new(device.after(move |request| {
        if let Request::Read { offset, buf } = request
            && let Some(byte) = at.checked_sub(offset).and_then(|at| buf.get_mut(at as usize))
        {
            *byte ^= 1;
        }
    }))
}

/// While an index is built, other tables are made, indexed and dropped; a check and a change of the same table wait.
#[test]
fn schema_changes_of_other_tables_go_on_during_a_build() {
    let (building, go_on) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let (first, at) = (AtomicBool::new(true), (building.clone(), go_on.clone()));
    let db = large(move || {
        if first.swap(false, Ordering::SeqCst) {
            at.0.wait();
            at.1.wait();
        }
        Arc::new(MemoryDevice::named("temporary", 1))
    });
    let (db, begun, ended) = (Arc::new(db), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let start = |run: fn(&Database) -> Result<()>| {
        let (db, begun, ended) = (db.clone(), begun.clone(), ended.clone());
        std::thread::spawn(move || {
            begun.fetch_add(1, Ordering::SeqCst);
            let done = run(&db);
            ended.fetch_add(1, Ordering::SeqCst);
            done
        })
    };
    let build = start(|db| db.create_index("a", "by_x", &["x"], true));
    building.wait();
    db.create_table("c", Schema::new().column("id", Type::U32).primary_key(&["id"])).unwrap();
    db.drop_table("c").unwrap();
    db.create_index("b", "by_x", &["x"], true).unwrap();
    db.rebuild_index("b", "by_x").unwrap();
    let twin = start(|db| db.create_index("a", "by_x", &["x"], true));
    let check = start(|db| db.check().map(|report| assert!(report.is_sound(), "{:?}", report.findings)));
    while begun.load(Ordering::SeqCst) < 3 {
        std::thread::yield_now();
    }
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(ended.load(Ordering::SeqCst), 0);
    go_on.wait();
    build.join().unwrap().unwrap();
    assert!(matches!(twin.join().unwrap(), Err(Error::Schema(_))));
    check.join().unwrap().unwrap();
    for table in ["a", "b"] {
        assert_indexed(&db, table);
    }
}

/// The index was built from the second version; a snapshot of the first one cannot use it. If a later change inserts an
/// entry that the first version would have had, its rollback removes the entry.
#[test]
fn an_entry_that_only_versions_before_the_build_have_is_removed_by_a_rollback() {
    for rebuilt in [false, true] {
        let db = TestDb::new(small_options());
        let schema = by_id().column("c", Type::U64);
        let table = db.create_table("t", if rebuilt { schema.index("by_c", &["c"]) } else { schema }).unwrap();
        let other = db.create_table("u", by_id()).unwrap();
        db.transact(|txn| txn.insert(&table, &values![1, 10]).map(drop)).unwrap();
        let mut snapshot = db.snapshot().unwrap();
        assert!(snapshot.get(&other, &values![1]).unwrap().is_none());
        // An older transaction that has to do with another table is no reason to keep it.
        let mut older = db.begin().unwrap();
        older.insert(&other, &values![5]).unwrap();
        db.transact(|txn| txn.update(&table, &values![1], &[(1, 20u64.into())])).unwrap();
        match rebuilt {
            true => db.rebuild_index("t", "by_c").unwrap(),
            false => db.create_index("t", "by_c", &["c"], false).unwrap(),
        }
        let mut txn = db.begin().unwrap();
        txn.update(&table, &values![1], &[(1, 10u64.into())]).unwrap();
        txn.rollback().unwrap();
        drop(snapshot);
        older.rollback().unwrap();
        while db.purge_state().history_list_length > 0 {
            std::thread::yield_now();
        }
        let report = db.check().unwrap();
        assert_eq!((report.counts.entries_delete_marked, report.findings.len()), (0, 0), "rebuilt: {rebuilt}");
    }
}
