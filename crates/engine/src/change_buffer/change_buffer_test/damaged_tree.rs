//! A damaged page of the tree of operations costs indexes at most: the database opens, no read is wrong, and a repair
//! makes everything whole.

use super::disk::{closed_with_tree_pages, closed_with_waiting, disk};
use super::*;
use crate::error::Error;
use crate::space::SEGMENT_CHANGE_BUFFER;
use crate::types::PageNo;

/// Pages of a tree in which pages hold operations of one index alone.
const PAGES: u32 = 12;

/// The database with one byte of a page flipped.
fn damaged(storage: &StorageSet, page: PageNo) -> StorageSet {
    let copy = storage.cut(0);
    copy.memory_devices().unwrap()[0].damage(|bytes| bytes[page.0 as usize * 4096 + 77] ^= 4);
    copy
}

fn open(storage: &StorageSet) -> Database {
    Database::open_storage_idle(storage.clone(), disk()).unwrap()
}

fn pages_of_tree(storage: &StorageSet) -> Vec<PageNo> {
    open(&storage.overlaid().unwrap()).space().pages_of(SEGMENT_CHANGE_BUFFER)
}

fn read(db: &Database, index: &str) -> Result<Vec<Vec<Value>>, Error> {
    let table = db.table("t")?;
    let mut read = db.snapshot()?;
    read.scan(&table).index(index).iter()?.map(|row| Ok(row?.to_values())).collect()
}

/// The indexes that are damaged; the rows are right, and so is what any other index reads.
fn damaged_indexes(db: &Database, expected: &[Vec<Vec<Value>>; 3], note: &str) -> Vec<&'static str> {
    let mut damaged = Vec::new();
    for (index, expected) in ["PRIMARY", "by_a", "by_b"].into_iter().zip(expected) {
        match read(db, index) {
            Ok(rows) => assert!(rows == *expected, "{note}: {index} reads wrong rows"),
            Err(error) => {
                assert!(error.to_string().contains("rebuild it"), "{note}: {index}: {error}");
                damaged.push(index);
            }
        }
    }
    assert!(!damaged.contains(&"PRIMARY"), "{note}");
    damaged
}

fn all(storage: &StorageSet) -> [Vec<Vec<Value>>; 3] {
    let db = open(&storage.cut(0));
    ["PRIMARY", "by_a", "by_b"].map(|index| read(&db, index).unwrap())
}

#[test]
fn a_damaged_page_of_the_operation_tree_costs_indexes_that_a_repair_makes_again() {
    let (storage, rows) = closed_with_tree_pages(21, PAGES);
    let (expected, pages) = (all(&storage), pages_of_tree(&storage));
    assert!(pages.len() > 5, "{pages:?}");
    let mut costs = [0; 3];
    for page in pages {
        let (note, storage) = (format!("page {page}"), damaged(&storage, page));
        let db = open(&storage);
        let found = damaged_indexes(&db, &expected, &note);
        assert!(!found.is_empty(), "{note}: its operations are lost");
        costs[found.len()] += 1;
        let report = db.check().unwrap();
        let about = report.findings.iter().map(|finding| finding.index.clone());
        assert!(about.flatten().all(|index| found.contains(&&*index)), "{note}: {report:?}");
        // The findings and the empty tree are durable.
        let cut = storage.cut(u64::from(page.0));
        drop(db);
        let db = open(&cut);
        assert_eq!(damaged_indexes(&db, &expected, &format!("{note}, after a power cut")), found);
        let report = db.repair_indexes(&mut |_, _| {}).unwrap();
        assert!(report.left.is_sound() && report.rebuilt.len() == found.len(), "{note}: {report:?}");
        assert_same(&db, &rows, &note);
    }
    println!("cost no index, one, both: {costs:?}");
    assert!(costs[1] > 0 && costs[2] > 0, "{costs:?}");
}

/// Changes continue to wait in the tree after it was emptied.
#[test]
fn the_tree_is_used_again_after_it_was_damaged() {
    let (storage, mut rows) = closed_with_waiting(22);
    let root = pages_of_tree(&storage)[0];
    let storage = damaged(&storage, root);
    let db = open(&storage);
    db.repair_indexes(&mut |_, _| {}).unwrap();
    let (table, mut rng) = (db.table("t").unwrap(), Rng::with_seed(3));
    let before = db.stats().change_buffer_ops_buffered;
    (0..60).for_each(|_| transact(&db, &table, &mut rows, &mut rng));
    assert!(db.stats().change_buffer_ops_buffered > before);
    let cut = storage.cut(4);
    assert_same(&db, &rows, "running");
    assert_same(&open(&cut), &rows, "after a power cut");
}

#[test]
fn a_database_that_is_only_read_opens_with_a_damaged_tree_and_is_not_changed() {
    let (storage, _) = closed_with_waiting(23);
    let expected = all(&storage);
    for page in pages_of_tree(&storage).into_iter().step_by(5) {
        let storage = damaged(&storage, page);
        let before = storage.memory_devices().unwrap()[0].image();
        let db = open(&storage.overlaid().unwrap());
        assert!(!damaged_indexes(&db, &expected, &format!("page {page}")).is_empty());
        db.close().unwrap();
        assert!(storage.memory_devices().unwrap()[0].image() == before);
    }
}
