//! Indexes with damaged pages or wrong entries are rebuilt; nothing else is touched; any crash leaves the old index or
//! the new one.

use super::*;
use crate::Row;
use crate::check::check_test::{closed, find_page, forget_doublewrite, index_id, is_leaf_of, page};
use crate::page::{Node, PageOp, header};
use crate::testing::small_options;
use crate::types::PageNo;
use crate::values;
use highwater_storage::{Faults, StorageSet};

const PAGE_BYTES: usize = 4096;

fn open(storage: &StorageSet) -> Database {
    Database::open_storage(storage.clone(), small_options()).unwrap()
}

fn damage(storage: &StorageSet, page: PageNo, change: impl FnOnce(&mut [u8])) {
    let data = &storage.memory_devices().unwrap()[0];
    data.damage(|bytes| change(&mut bytes[page.0 as usize * PAGE_BYTES..][..PAGE_BYTES]));
}

fn leaf(storage: &StorageSet, index: usize) -> PageNo {
    let id = index_id(storage, index);
    find_page(storage, |page| is_leaf_of(page, id))
}

fn rows(db: &Database, index: &str) -> Vec<Row> {
    let table = db.table("person").unwrap();
    let mut read = db.snapshot().unwrap();
    read.scan(&table).index(index).iter().unwrap().collect::<Result<Vec<_>>>().unwrap()
}

/// The rows by each index, in the order of the primary key.
fn assert_same_rows(db: &Database) {
    let all = rows(db, PRIMARY);
    for index in ["by_name", "by_code"] {
        let mut found = rows(db, index);
        found.sort_by_key(|row| row.u64(0));
        assert_eq!(found, all, "{index}");
    }
}

fn repair(db: &Database) -> RepairReport {
    db.repair_indexes(&mut |_, _| {}).unwrap()
}

#[test]
fn a_damaged_page_and_a_lost_entry_are_repaired() {
    let storage = closed(1500);
    let (first, second) = (leaf(&storage, 1), leaf(&storage, 2));
    damage(&storage, first, |page| page[100] ^= 1);
    damage(&storage, second, |page| {
        PageOp::NodeRemove { slot: 2 }.apply(page).unwrap();
        header::stamp(page, second);
    });
    let db = open(&storage);
    let report = repair(&db);
    let expected = ["by_code", "by_name"].map(|index| ("person".to_string(), index.to_string()));
    assert_eq!((report.rebuilt, report.refused), (expected.to_vec(), vec![]));
    assert!(!report.found.is_sound() && report.left.is_sound(), "{:#?}", report.left.findings);
    assert_same_rows(&db);
    let table = db.table("person").unwrap();
    let mut txn = db.begin().unwrap();
    txn.update(&table, &values![3], &[(1, "after".into()), (2, 77_777i32.into())]).unwrap();
    let twin = txn.insert(&table, &values![null, "twin", 77_777i32, null]);
    assert!(matches!(twin, Err(Error::DuplicateKey { .. })), "{twin:?}");
    txn.commit().unwrap();
    db.close().unwrap();
    let db = open(&storage);
    assert_eq!(db.check().unwrap().findings, []);
    assert_same_rows(&db);
    assert_eq!(repair(&db).rebuilt, []);
}

/// What was pending for the old tree is forgotten with it: the new one has it already.
#[test]
fn a_damaged_root_is_replaced_and_other_indexes_stay() {
    let storage = closed(1500);
    let id = index_id(&storage, 1);
    let db = open(&storage);
    let root = db.table("person").unwrap().shared.current.read().indexes[0].tree.root();
    // What purge meets while the index is damaged it passes over, overflow pages and all.
    while db.stats().history_list_length > 0 {
        std::thread::yield_now();
    }
    db.close().unwrap();
    assert_eq!(header::owner(&page(&storage, root)), id);
    forget_doublewrite(&storage);
    damage(&storage, root, |page| page.fill(7));
    let db = open(&storage);
    assert_eq!(repair(&db).rebuilt, [("person".to_string(), "by_name".to_string())]);
    assert_same_rows(&db);
    assert_eq!(db.check().unwrap().findings, []);
}

#[test]
fn damaged_rows_are_refused() {
    let storage = closed(1500);
    let (rows, entries) = (leaf(&storage, 0), leaf(&storage, 1));
    damage(&storage, rows, |page| page[300] ^= 1);
    damage(&storage, entries, |page| page[300] ^= 1);
    let db = open(&storage);
    let report = repair(&db);
    assert_eq!(report.rebuilt, []);
    assert!(report.refused.iter().any(|(_, index, why)| index == "by_name" && why.contains("rows of the table")));
    assert_eq!(report.left, report.found);
}

#[test]
fn equal_rows_of_a_unique_index_are_refused() {
    let storage = closed(300);
    let rows = leaf(&storage, 0);
    // Two rows with the same code: the index, which has the entry once, is not the one that is wrong.
    let before = page(&storage, rows);
    let node = Node::new(&before);
    let code_at = |slot: usize| {
        let value = node.value(slot);
        let db = Database::open_storage_idle(storage.cut(0), small_options()).unwrap();
        let version = db.table("person").unwrap().shared.current.read().clone();
        let row = version.row(&value[16..]);
        (!row.is_null(2)).then(|| row.i64(2) as i32)
    };
    let codes: Vec<_> = (0..6).filter_map(|slot| Some((slot, code_at(slot)?))).collect();
    let [(slot, code), (_, other), ..] = codes[..] else { panic!("two rows with codes: {codes:?}") };
    let bytes = node.value(slot).to_vec();
    let find = |code: i32| bytes.windows(4).position(|word| word == code.to_le_bytes());
    let at = find(code).or_else(|| bytes.windows(4).position(|word| word == code.to_be_bytes())).unwrap();
    let new = if find(code).is_some() { other.to_le_bytes() } else { other.to_be_bytes() };
    damage(&storage, rows, |page| {
        PageOp::NodeSplice { slot: slot as u16, at: at as u16, remove: 4, bytes: &new }.apply(page).unwrap();
        header::stamp(page, rows);
    });
    let db = open(&storage);
    let report = repair(&db);
    assert_eq!(report.rebuilt, [], "{:#?}", report.found.findings);
    assert!(report.refused.iter().any(|(_, index, why)| index == "by_code" && why.contains("duplicate")), "{report:?}");
}

/// A transaction that has read writes while the rebuild waits for it to end: what it writes is in the new tree.
#[test]
fn a_write_between_the_build_and_the_swap_is_not_lost() {
    let db = open(&closed(1500));
    let table = db.table("person").unwrap();
    let mut txn = db.begin().unwrap();
    assert!(txn.get(&table, &values![3]).unwrap().is_some());
    std::thread::scope(|scope| {
        let rebuild = scope.spawn(|| db.rebuild_index("person", "by_name"));
        while !table.shared.lock.is_barred() {
            std::thread::yield_now();
        }
        // It waits while the tree is built.
        txn.update(&table, &values![3], &[(1, "written between".into())]).unwrap();
        txn.commit().unwrap();
        rebuild.join().unwrap().unwrap();
    });
    assert_eq!(db.check().unwrap().findings, []);
    assert_same_rows(&db);
}

#[test]
fn every_crash_of_a_repair_leaves_what_can_be_repaired() {
    let intact = closed(200);
    let broken = leaf(&intact, 1);
    damage(&intact, broken, |page| page[100] ^= 1);
    let (mut step, mut crashes) = (0, 0);
    loop {
        let storage = intact.cut(0);
        let faults = Faults::new();
        let db = Database::open_storage(storage.map(|device| faults.wrap(device)), small_options()).unwrap();
        faults.power_off_after(step);
        let done = db.repair_indexes(&mut |_, _| {}).is_ok_and(|report| report.left.is_sound());
        let is_off = faults.is_power_off();
        let after = storage.cut(step);
        drop(db);
        let db = open(&after);
        let report = repair(&db);
        assert!(report.left.is_sound(), "step {step}: {:#?}", report.left.findings);
        assert_same_rows(&db);
        assert_eq!(db.table("person").unwrap().definition().indexes.len(), 2, "step {step}");
        if done && !is_off {
            break;
        }
        crashes += 1;
        step += 1 + step / 8;
    }
    assert!(crashes > 8, "{crashes}");
}
