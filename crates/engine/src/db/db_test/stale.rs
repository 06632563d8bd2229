//! Single pages that are older versions of themselves, as a write that a device lost or a restored block leaves them:
//! their checksums are right. Each page of a small database in turn becomes what it was before; every read of every row
//! is then right, or an error that names the page, or one of the few that cannot be recognized, which are listed in
//! [`can_be_told`] and in `check`.

use crate::db::Database;
use crate::db::testing::{by_id, commit_all};
use crate::error::Error;
use crate::page::{Node, PageType, header};
use crate::testing::small_options;
use crate::types::PageNo;
use crate::{Row, Table, Type, values};
use highwater_storage::{MemoryDevice, StorageSet};
use std::collections::BTreeMap;

const PAGE_BYTES: usize = 4096;
const ROWS: u64 = 500;

fn open(storage: &StorageSet) -> Database {
    Database::open_storage_idle(storage.clone(), small_options()).unwrap()
}

fn close(db: Database, storage: &StorageSet) -> Vec<u8> {
    while db.transactions().purge_step(1000).unwrap() > 0 {}
    db.close().unwrap();
    data(storage).image()
}

fn data(storage: &StorageSet) -> &MemoryDevice {
    &storage.memory_devices().unwrap()[0]
}

fn note(n: u64, version: u64) -> String {
    let long = if n.is_multiple_of(9) { 9000 } else { 150 };
    format!("{version:04} {n:06} {}", "x".repeat(long))
}

/// A database as it was, and as it is: rows were inserted between the others, changed, deleted; pages were split,
/// merged and given to other chains. With `active`, a transaction is open at the end, for the next opening to roll
/// back.
fn before_and_after(active: bool) -> (Vec<u8>, StorageSet) {
    let storage = StorageSet::memory();
    let db = Database::open_storage(storage.clone(), small_options()).unwrap();
    let schema = by_id().column("name", Type::Text(40)).column("note", Type::Text(1 << 20));
    let table = db.create_table("t", schema.index("by_name", &["name"])).unwrap();
    commit_all(&db, (0..ROWS).step_by(2), |txn, n| {
        txn.insert(&table, &values![n, format!("name {:04}", n * 7 % ROWS).as_str(), note(n, 1).as_str()])
    });
    drop(table);
    let before = close(db, &storage);
    let db = open(&storage);
    let table = db.table("t").unwrap();
    change(&db, &table, 2);
    while db.transactions().purge_step(1000).unwrap() > 0 {}
    change(&db, &table, 3);
    let mut txn = db.begin().unwrap();
    for n in (0..ROWS).step_by(5).filter(|_| active) {
        txn.update(&table, &values![n], &[(2, note(n, 9).as_str().into())]).unwrap();
    }
    close(db, &storage);
    drop(txn);
    storage.memory_devices().unwrap()[2].damage(|bytes| bytes.fill(0));
    (before, storage)
}

fn change(db: &Database, table: &Table, version: u64) {
    let mut txn = db.begin().unwrap();
    for n in (1..ROWS).step_by(2).filter(|n| n % 3 == version % 3) {
        txn.insert(table, &values![n, format!("name {:04}", n * 7 % ROWS).as_str(), note(n, version).as_str()])
            .unwrap();
    }
    for n in (0..ROWS).step_by(9).filter(|n| n % 4 == 2 * (version % 2)) {
        txn.update(table, &values![n], &[(1, "moved".into()), (2, note(n + 9, version).as_str().into())]).unwrap();
    }
    for n in (0..ROWS / 8).step_by(2) {
        txn.delete(table, &values![n]).unwrap();
    }
    txn.commit().unwrap();
}

/// Every row: by the primary key in both directions, one by one, and by the index.
fn read_all(storage: &StorageSet) -> Result<[Vec<Row>; 4], Error> {
    let db = Database::open_storage_idle(storage.clone(), small_options())?;
    let table = db.table("t")?;
    let mut read = db.snapshot()?;
    let forward = read.scan(&table).iter()?.collect::<Result<Vec<_>, _>>()?;
    let mut backward = read.scan(&table).rev().iter()?.collect::<Result<Vec<_>, _>>()?;
    backward.reverse();
    let mut single = Vec::new();
    for n in 0..ROWS {
        single.extend(read.get(&table, &values![n])?);
    }
    let by_name = read.scan(&table).index("by_name").iter()?.collect::<Result<Vec<_>, _>>()?;
    Ok([forward, backward, single, by_name])
}

/// The outcomes of reads of a database with one stale page.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    pages: u32,
    right: u32,
    refused: u32,
    /// Wrong rows and no word.
    wrong: u32,
    /// Of the wrong ones: `check` finds it.
    seen_by_check: u32,
}

/// Which older versions cannot be recognized: a leaf (or a root) with the same fences as now does not show which rows
/// it had since; the last page of an undo stream nothing of the records it had since.
fn can_be_told(old: &[u8], new: &[u8]) -> bool {
    let [was, is] = [old, new].map(|page| header::page_type(page).unwrap());
    match is {
        PageType::Leaf if was == PageType::Leaf => {
            let ([was, is], same_owner) = ([old, new].map(Node::new), header::owner(old) == header::owner(new));
            !same_owner || was.lower() != is.lower() || was.upper() != is.upper()
        }
        PageType::Undo | PageType::UndoDirectory => false,
        _ => true,
    }
}

fn sweep(active: bool) -> BTreeMap<String, Tally> {
    let (before, storage) = before_and_after(active);
    let expected = read_all(&storage.cut(0)).unwrap();
    assert!(expected[0].len() > 300 && expected[..3].iter().all(|rows| *rows == expected[0]));
    let after = data(&storage).image();
    let mut tallies = BTreeMap::<String, Tally>::new();
    for (n, (old, new)) in before.chunks_exact(PAGE_BYTES).zip(after.chunks_exact(PAGE_BYTES)).enumerate() {
        let page_no = PageNo(n as u32);
        // The place of a free page of a small database that is closed may hold anything.
        let is_page = |bytes: &[u8]| header::verify(bytes, page_no).is_ok();
        if old == new || old.iter().all(|byte| *byte == 0) || !is_page(old) || !is_page(new) {
            continue;
        }
        let stale = storage.cut(0);
        data(&stale).damage(|bytes| bytes[n * PAGE_BYTES..][..PAGE_BYTES].copy_from_slice(old));
        let kind = header::page_type(new).unwrap();
        let tally = tallies.entry(format!("{kind:?}")).or_default();
        tally.pages += 1;
        match read_all(&stale.cut(0)) {
            Ok(rows) if rows == expected => tally.right += 1,
            Ok(_) => {
                tally.wrong += 1;
                let report = open(&stale.cut(0)).check().unwrap();
                tally.seen_by_check += u32::from(!report.is_sound());
                assert!(!can_be_told(old, new), "page {page_no}, {kind:?}: wrong rows and no word of it");
            }
            Err(error) => {
                tally.refused += 1;
                let text = error.to_string();
                let names_it = [" ", ":", ","].iter().any(|end| text.contains(&format!("page {page_no}{end}")));
                // What the page itself does not show is found where it leads to, if at all.
                let is_exempt = !can_be_told(old, new) || page_no == PageNo(0) && text.contains("is older than");
                assert!(names_it || is_exempt, "page {page_no}, {kind:?}: {text}");
            }
        }
    }
    tallies
}

#[test]
fn older_versions_of_single_pages_are_told_or_harmless() {
    for active in [false, true] {
        let tallies = sweep(active);
        println!("{tallies:#?}");
        for (kind, min_refused) in [("Leaf", 10), ("Inner", 1), ("Overflow", 10), ("FileHeader", 1)] {
            let tally = tallies.get(kind).copied().unwrap_or_default();
            assert!(tally.refused >= min_refused, "{kind}: {tally:?}");
        }
    }
}
