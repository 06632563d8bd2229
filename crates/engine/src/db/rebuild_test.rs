//! Indexes with damaged pages or wrong entries are rebuilt, concurrently with writers; nothing else is touched; any
//! crash leaves the old index or the new one.

use super::*;
use crate::check::check_test::{closed, find_page, forget_doublewrite, index_id, is_leaf_of, name, page};
use crate::db::testing::TestDb;
use crate::page::{Node, PageOp, header};
use crate::testing::small_options;
use crate::types::{IndexId, PageNo};
use crate::{Row, Table, WriteTxn, values};
use highwater_storage::{Faults, StorageSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

const PAGE_BYTES: usize = 4096;

fn open(storage: &StorageSet) -> TestDb {
    TestDb::on(storage, small_options())
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
    let db = db.reopen();
    assert_eq!(db.check().unwrap().findings, []);
    assert_same_rows(&db);
    assert_eq!(repair(&db).rebuilt, []);
}

/// Pending changes of the old tree are discarded with it: the new tree has them already.
#[test]
fn a_damaged_root_is_replaced_and_other_indexes_stay() {
    let storage = closed(1500);
    let id = index_id(&storage, 1);
    let db = open(&storage);
    let root = db.table("person").unwrap().shared.current.read().indexes[0].tree.root();
    // While the index is damaged purge skips its records, and their overflow pages too.
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

/// The tree that an index has.
fn tree_of(db: &Database, index: &str) -> IndexId {
    let version = db.table("person").unwrap().shared.current.read().clone();
    version.indexes[version.index_position(index).unwrap().unwrap()].tree.id()
}

/// Nothing is missing or left, and purge leaves nothing behind.
fn clean(db: &Database) {
    assert_same_rows(db);
    while db.purge_state().history_list_length > 0 {
        std::thread::yield_now();
    }
    let report = db.check().unwrap();
    assert_eq!((report.findings, report.counts.entries_delete_marked), (vec![], 0));
    assert_same_rows(db);
}

/// Every kind of change, of rows from `id` on; no row has the code `n` or the two after it.
fn change(txn: &mut WriteTxn, table: &Table, id: u64, n: i32) -> Result<()> {
    let name = format!("concurrent {n}");
    txn.update(table, &values![id], &[(1, name.as_str().into()), (2, n.into())])?;
    if let Some(row) = txn.get(table, &values![id + 1])? {
        txn.update(table, &values![id + 1], &[(1, "for a moment".into())])?;
        txn.update(table, &values![id + 1], &[(1, row.str(1).into())])?;
    }
    txn.delete(table, &values![id + 2])?;
    txn.insert(table, &values![id + 2, name.as_str(), n + 1, null])?;
    txn.insert(table, &values![null, name.as_str(), n + 2, "new"])?;
    txn.delete(table, &values![id + 3]).map(drop)
}

/// A transaction that commits, one that is rolled back, and one that is rolled back in part.
fn write_concurrently(db: &Database, table: &Table, step: u64) -> Result<()> {
    let (id, n) = (1 + 40 * step, 1_000_000 + 100 * step as i32);
    db.transact(|txn| change(txn, table, id, n))?;
    let mut undone = db.begin()?;
    change(&mut undone, table, id + 10, n + 20)?;
    undone.rollback()?;
    let mut partly = db.begin()?;
    change(&mut partly, table, id + 20, n + 40)?;
    let savepoint = partly.savepoint();
    change(&mut partly, table, id + 30, n + 60)?;
    partly.rollback_to(savepoint)?;
    partly.commit()
}

/// The thread that rebuilds writes itself, so nothing waits.
#[test]
fn writers_go_on_in_each_part_of_a_rebuild() {
    for index in ["by_name", "by_code"] {
        let db = open(&closed(1500));
        let (table, before, mut calls, mut at) = (db.table("person").unwrap(), tree_of(&db, index), 0, [0, 0, 0]);
        let rebuilt = db.rebuild("person".into(), index, &mut |progress| {
            calls += 1;
            assert_eq!((table.definition().indexes.len(), tree_of(&db, index)), (2, before));
            at[if progress.entries == 0 { 0 } else { 1 + usize::from(progress.changes_left > 0) }] += 1;
            if calls < 14 { write_concurrently(&db, &table, calls) } else { Ok(()) }
        });
        rebuilt.unwrap();
        assert!(at.iter().all(|calls| *calls > 0), "{at:?}");
        assert_ne!(tree_of(&db, index), before);
        clean(&db);
        let twin = db.transact(|txn| txn.insert(&table, &values![null, "twin", 1_000_100i32, null]));
        assert!(matches!(twin, Err(Error::DuplicateKey { .. })), "{twin:?}");
    }
}

#[test]
fn rebuilds_with_busy_writers_and_readers() {
    let db = open(&closed(1500));
    let table = db.table("person").unwrap();
    let (stop, [step, reads, longest_us]) = (AtomicBool::new(false), [const { AtomicU64::new(0) }; 3]);
    let write = || {
        while !stop.load(Relaxed) {
            let begin = Instant::now();
            let number = step.fetch_add(1, Relaxed);
            let written =
                db.transact(|txn| change(txn, &table, 1 + 5 * (number % 300), 1_000_000 + 10 * number as i32));
            longest_us.fetch_max(begin.elapsed().as_micros() as u64, Relaxed);
            written.unwrap();
        }
    };
    let read = || {
        while !stop.load(Relaxed) {
            let mut read = db.snapshot().unwrap();
            match read.scan(&table).index("by_name").count() {
                Ok(count) => {
                    assert_eq!(read.scan(&table).count().unwrap(), count);
                    reads.fetch_add(1, Relaxed);
                }
                // It began before the swap.
                Err(error) => assert!(matches!(error, Error::Usage(_)), "{error}"),
            }
        }
    };
    std::thread::scope(|scope| {
        let others = [scope.spawn(write), scope.spawn(write), scope.spawn(read)];
        let rebuilt = ["by_name", "by_code", "by_name", "by_code"].map(|index| {
            let (written, seen) = (step.load(Relaxed), reads.load(Relaxed));
            let rebuilt = db.rebuild_index("person", index);
            let none_has_failed = || others.iter().all(|other| !other.is_finished());
            while (step.load(Relaxed) < written + 10 || reads.load(Relaxed) == seen) && none_has_failed() {
                std::thread::yield_now();
            }
            rebuilt
        });
        stop.store(true, Relaxed);
        rebuilt.into_iter().for_each(Result::unwrap);
    });
    println!("{step:?} transactions, the longest took {longest_us:?} us");
    clean(&db);
}

/// The old tree is in use until then: a rebuild that does not get the table leaves it.
#[test]
fn a_rebuild_ends_when_no_transaction_uses_the_table() {
    let db = open(&closed(600)).with_lock_wait_timeout(Duration::from_millis(250));
    let (table, before) = (db.table("person").unwrap(), tree_of(&db, "by_name"));
    let mut older = db.snapshot().unwrap();
    let mut read = db.snapshot().unwrap();
    let count = |read: &mut crate::ReadTxn, index: &str| read.scan(&table).index(index).count();
    let all = count(&mut read, "by_name").unwrap();
    let refused = db.rebuild_index("person", "by_name");
    assert!(matches!(refused, Err(Error::LockWaitTimeout)), "{refused:?}");
    assert_eq!((count(&mut read, "by_name").unwrap(), tree_of(&db, "by_name")), (all, before));
    drop(read);
    db.finish_drops().unwrap();
    write_concurrently(&db, &table, 1).unwrap();
    db.rebuild_index("person", "by_name").unwrap();
    // A snapshot from before it reads the rows.
    let error = count(&mut older, "by_name").unwrap_err();
    assert!(matches!(error, Error::Usage(_)), "{error}");
    assert_eq!(count(&mut older, "by_code").unwrap(), count(&mut older, PRIMARY).unwrap());
    drop(older);
    clean(&db);
}

#[test]
fn a_rebuild_that_is_stopped_leaves_the_index() {
    let db = open(&closed(1500));
    let (table, before) = (db.table("person").unwrap(), tree_of(&db, "by_code"));
    for stop_at in [1, 6, 12] {
        let mut calls = 0;
        let stopped = db.rebuild("person".into(), "by_code", &mut |_| {
            calls += 1;
            write_concurrently(&db, &table, 10 * stop_at + calls)?;
            if calls == stop_at { Err(Error::Usage("enough".to_string())) } else { Ok(()) }
        });
        assert!(matches!(stopped, Err(Error::Usage(_))), "{stopped:?}");
        assert_eq!(tree_of(&db, "by_code"), before);
    }
    clean(&db);
}

/// Writers meet the damage of the old tree, as before the rebuild; what they do elsewhere is in the new one.
#[test]
fn writers_with_the_rebuild_of_a_damaged_index() {
    let storage = closed(1500);
    let broken = leaf(&storage, 1);
    damage(&storage, broken, |page| page[100] ^= 1);
    let db = open(&storage);
    let table = db.table("person").unwrap();
    let (mut calls, mut written, mut refused) = (0, 0, 0);
    let rebuilt = db.rebuild("person".into(), "by_name", &mut |_| {
        calls += 1;
        for id in (100 * calls..100 * calls + 100).filter(|_| calls < 13) {
            let name = name(id + 3000);
            match db.transact(|txn| txn.update(&table, &values![id], &[(1, name.as_str().into())])) {
                Ok(_) => written += 1,
                Err(error) => {
                    assert!(error.is_damage() && error.to_string().contains(&broken.to_string()), "{error}");
                    refused += 1;
                }
            }
        }
        Ok(())
    });
    rebuilt.unwrap();
    assert!(written > 500 && refused > 0, "{written} written, {refused} refused");
    drop(table);
    let db = db.reopen();
    assert_same_rows(&db);
    assert_eq!(db.check().unwrap().findings, []);
}

#[test]
fn every_crash_of_a_rebuild_with_writers_leaves_one_whole_index() {
    let intact = closed(600);
    let (mut step, mut crashes) = (0, 0);
    loop {
        let storage = intact.cut(0);
        let faults = Faults::new();
        let db = Database::open_storage(storage.map(|device| faults.wrap(device)), small_options()).unwrap();
        let (table, before, mut calls) = (db.table("person").unwrap(), tree_of(&db, "by_name"), 0);
        faults.power_off_after(step);
        let rebuilt = db.rebuild("person".into(), "by_name", &mut |_| {
            calls += 1;
            if calls < 8 { write_concurrently(&db, &table, calls) } else { Ok(()) }
        });
        let is_off = faults.is_power_off();
        let after = storage.cut(step);
        drop((table, db));
        let db = open(&after);
        assert!(rebuilt.is_err() || tree_of(&db, "by_name") != before, "step {step}");
        assert_eq!(db.table("person").unwrap().definition().indexes.len(), 2, "step {step}");
        clean(&db);
        if rebuilt.is_ok() && !is_off {
            break;
        }
        crashes += 1;
        step += 1 + step / 8;
    }
    assert!(crashes > 8, "{crashes}");
}
