//! A healthy database passes; each kind of damage is found and located; no damage makes a check panic or a reader be told
//! something wrong.

use super::CheckReport;
use crate::db::Database;
use crate::error::Result;
use crate::inspect;
use crate::inspect::RawFile;
use crate::page::{Node, PageOp, PageType, header};
use crate::space::SEGMENT_UNDO;
use crate::space::layout::Layout;
use crate::testing::small_options;
use crate::types::PageNo;
use crate::{Schema, Table, Type, values};
use highwater_storage::{MemoryDevice, StorageSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

const PAGE_BYTES: usize = 4096;

fn schema() -> Schema {
    Schema::new()
        .column("id", Type::U64)
        .auto_increment("id")
        .column("name", Type::Text(64))
        .nullable("code", Type::I32)
        .nullable("note", Type::Text(1 << 20))
        .primary_key(&["id"])
        .index("by_name", &["name"])
        .unique_index("by_code", &["code"])
}

fn name(n: u64) -> String {
    format!("name {:05}", n.wrapping_mul(7919) % 10_007)
}

/// Rows with and without overflow pages, updates that move entries, deletions, rollbacks.
fn fill(db: &Database, table: &Table, rows: u64) -> Result<()> {
    let long = "x".repeat(9000);
    let mut txn = db.begin()?;
    for n in 0..rows {
        let code = (n % 5 != 0).then_some(n as i32);
        let note = if n % 50 == 7 { long.as_str() } else { "short" };
        txn.insert(table, &values![null, name(n).as_str(), code, note])?;
    }
    txn.commit()?;
    let mut txn = db.begin()?;
    for n in (1..=rows).step_by(7) {
        txn.update(table, &values![n], &[(1, name(n + 1000).as_str().into()), (3, long[..n as usize % 6000].into())])?;
    }
    for n in (1..=rows).step_by(11) {
        txn.delete(table, &values![n])?;
    }
    txn.commit()?;
    let mut txn = db.begin()?;
    for n in (2..=rows).step_by(13) {
        txn.update(table, &values![n], &[(1, "nobody".into()), (3, long.as_str().into())])?;
        txn.insert(table, &values![rows + n, "nobody", null, null])?;
    }
    txn.rollback()
}

/// A closed database in memory. Purge has run at most in part.
fn closed(rows: u64) -> StorageSet {
    let storage = StorageSet::memory();
    let db = Database::open_storage(storage.clone(), small_options()).unwrap();
    fill_new(&db, rows);
    db.close().unwrap();
    forget_doublewrite(&storage);
    storage
}

fn fill_new(db: &Database, rows: u64) {
    let table = db.create_table("person", schema()).unwrap();
    db.create_table("empty", schema()).unwrap();
    fill(db, &table, rows).unwrap();
}

/// A closed database of which nothing is purged.
fn closed_idle(rows: u64) -> StorageSet {
    let storage = StorageSet::memory();
    Database::open_storage(storage.clone(), small_options()).unwrap().close().unwrap();
    let db = Database::open_storage_idle(storage.clone(), small_options()).unwrap();
    fill_new(&db, rows);
    db.close().unwrap();
    forget_doublewrite(&storage);
    storage
}

/// Lest opening repairs the damage from the last batch.
fn forget_doublewrite(storage: &StorageSet) {
    storage.memory_devices().unwrap()[2].damage(|bytes| bytes[..PAGE_BYTES].fill(0));
}

/// The same with everything purged.
fn purged(rows: u64) -> StorageSet {
    let storage = closed(rows);
    let db = Database::open_storage_idle(storage.clone(), small_options()).unwrap();
    while db.transactions().purge_step(1000).unwrap() > 0 {}
    db.close().unwrap();
    forget_doublewrite(&storage);
    storage
}

/// A copy of the set in memory, whose changes leave the original alone.
fn copy(storage: &StorageSet) -> StorageSet {
    storage.cut(0)
}

fn data(storage: &StorageSet) -> &MemoryDevice {
    &storage.memory_devices().unwrap()[0]
}

fn check(storage: &StorageSet) -> Result<CheckReport> {
    Database::open_storage_idle(storage.clone(), small_options())?.check()
}

/// Changes a page in the file and seals it again, so that only what is on it is wrong.
fn change_page(storage: &StorageSet, page: PageNo, change: impl FnOnce(&mut [u8])) {
    data(storage).damage(|bytes| {
        let page_bytes = &mut bytes[page.0 as usize * PAGE_BYTES..][..PAGE_BYTES];
        change(page_bytes);
        header::seal(page_bytes, page);
    });
}

fn apply(storage: &StorageSet, page: PageNo, op: &PageOp<'_>) {
    change_page(storage, page, |bytes| op.apply(bytes).unwrap());
}

/// The first used page that fits.
fn find_page(storage: &StorageSet, fits: impl Fn(&[u8]) -> bool) -> PageNo {
    let file = RawFile::open(&*storage.data).unwrap();
    let mut used = (0..file.page_count() as u32).map(PageNo).filter(|page| file.owner(*page).is_some());
    used.find(|page_no| fits(&page(storage, *page_no))).unwrap()
}

fn page(storage: &StorageSet, page: PageNo) -> Vec<u8> {
    data(storage).image()[page.0 as usize * PAGE_BYTES..][..PAGE_BYTES].to_vec()
}

/// Number of an index of table person: 0 = the rows.
fn index_id(storage: &StorageSet, index: usize) -> u32 {
    let db = Database::open_storage_idle(copy(storage), small_options()).unwrap();
    let rows = db.table("person").unwrap().rows();
    if index == 0 { rows.clustered().id().0 } else { rows.index(index - 1).id().0 }
}

fn is_leaf_of(page: &[u8], index: u32) -> bool {
    header::page_type(page).unwrap() == PageType::Leaf && header::owner(page) == index && Node::new(page).count() > 4
}

/// A finding that mentions all of this (in its text as shown, place included).
#[track_caller]
fn expect(report: &CheckReport, parts: &[&str]) {
    let found = report.findings.iter().any(|finding| parts.iter().all(|part| finding.to_string().contains(part)));
    assert!(found, "nothing with {parts:?} in {:#?}", report.findings);
}

#[test]
fn a_healthy_database_passes() {
    for storage in [closed(3000), purged(3000)] {
        let report = check(&storage).unwrap();
        assert_eq!(report.findings, [], "{:?}", report.counts);
        assert_eq!(report.counts.tables, 2);
        assert_eq!(report.counts.trees, 7);
        assert_eq!(report.counts.rows, 3000 - 3000u64.div_ceil(11));
        assert_eq!(report.counts.entries, 2 * report.counts.rows);
        assert_eq!(report.counts.pages_verified, report.counts.pages_used);
        let scanned = inspect::scan(&*storage.data, &mut |_, _| {}).unwrap();
        assert_eq!(scanned.findings, []);
        assert_eq!(scanned.counts.pages_verified, scanned.counts.pages_used);
    }
}

#[test]
fn what_a_power_cut_leaves_passes() {
    for seed in 0..8 {
        let storage = StorageSet::memory();
        let db = Database::open_storage(storage.clone(), small_options()).unwrap();
        let table = db.create_table("person", schema()).unwrap();
        fill(&db, &table, 300 + seed * 100).unwrap();
        let mut open = db.begin().unwrap();
        for id in (2..100u64).step_by(3) {
            open.update(&table, &values![id], &[(1, "cut off".into()), (3, "z".repeat(5000).as_str().into())]).unwrap();
        }
        db.flush_log().unwrap();
        let left = storage.cut(seed);
        drop(open);
        let db = Database::open_storage_idle(left, small_options()).unwrap();
        assert_eq!(db.check().unwrap().findings, [], "seed {seed}");
        while db.transactions().purge_step(100).unwrap() > 0 {}
        assert_eq!(db.check().unwrap().findings, [], "seed {seed}, purged");
    }
}

/// Its rollback writes more redo than fits between two checkpoints.
#[test]
fn a_long_transaction_is_rolled_back_at_opening() {
    let storage = StorageSet::memory();
    let db = Database::open_storage(storage.clone(), small_options()).unwrap();
    let table = db.create_table("person", schema()).unwrap();
    let mut txn = db.begin().unwrap();
    for n in 0..8000u64 {
        txn.insert(&table, &values![null, name(n).as_str(), null, "a".repeat(800).as_str()]).unwrap();
    }
    txn.commit().unwrap();
    let mut txn = db.begin().unwrap();
    for n in 1..=8000u64 {
        txn.update(&table, &values![n], &[(3, "b".repeat(800).as_str().into())]).unwrap();
    }
    db.flush_log().unwrap();
    let left = storage.cut(3);
    drop((txn, db));
    let report = check(&left).unwrap();
    assert_eq!((report.findings.len(), report.counts.rows), (0, 8000));
}

#[test]
fn a_check_runs_beside_readers_and_after_writers() {
    let storage = StorageSet::memory();
    let db = Database::open_storage(storage, small_options()).unwrap();
    let table = db.create_table("person", schema()).unwrap();
    let mut reader = db.snapshot().unwrap();
    assert!(reader.get(&table, &values![1]).unwrap().is_none());
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2).map(|_| scope.spawn(|| write_some(&db, &table))).collect();
        for _ in 0..5 {
            assert_eq!(db.check().unwrap().findings, []);
        }
        writers.into_iter().for_each(|writer| writer.join().unwrap());
    });
    assert_eq!(db.check().unwrap().counts.rows, 2 * 40 * 10);
    drop(reader);
}

fn write_some(db: &Database, table: &Table) {
    for _ in 0..40 {
        let mut txn = db.begin().unwrap();
        for _ in 0..10 {
            let id = txn.insert(table, &values![null, "a", null, "x".repeat(3000).as_str()]).unwrap();
            txn.update(table, &values![id.auto_increment.unwrap()], &[(1, "b".into())]).unwrap();
        }
        txn.commit().unwrap();
    }
}

#[test]
fn progress_ends_where_it_said() {
    let storage = closed(1000);
    let db = Database::open_storage_idle(storage, small_options()).unwrap();
    let mut calls = Vec::new();
    db.check_with(&mut |done, total| calls.push((done, total))).unwrap();
    let (done, total) = *calls.last().unwrap();
    assert!(done <= total && total - done < 64, "{done} of {total}");
    assert!(calls.is_sorted());
}

#[test]
fn a_flipped_byte_is_found_on_its_page() {
    let storage = closed(2000);
    let index = index_id(&storage, 1);
    let page = find_page(&storage, |page| is_leaf_of(page, index));
    data(&storage).damage(|bytes| bytes[page.0 as usize * PAGE_BYTES + 2000] ^= 4);
    let report = check(&storage).unwrap();
    expect(&report, &[&format!("page {page}: table person: index by_name: checksum")]);
    expect(&report, &["index by_name", "a page on the way is damaged"]);
    let scanned = inspect::scan(&*storage.data, &mut |_, _| {}).unwrap();
    expect(&scanned, &[&format!("page {page}"), "by_name", "checksum"]);
}

#[test]
fn swapped_pages_are_found() {
    let storage = closed(2000);
    let index = index_id(&storage, 0);
    let first = find_page(&storage, |page| is_leaf_of(page, index));
    let second = find_page(&storage, |page| is_leaf_of(page, index) && header::stored_page_no(page) != first);
    data(&storage).damage(|bytes| {
        let (low, high) = bytes.split_at_mut(second.0 as usize * PAGE_BYTES);
        low[first.0 as usize * PAGE_BYTES..][..PAGE_BYTES].swap_with_slice(&mut high[..PAGE_BYTES]);
    });
    let report = check(&storage).unwrap();
    expect(&report, &[&format!("page {first}: "), "PRIMARY", &format!("it says it is page {second}")]);
    expect(&report, &[&format!("page {second}: "), "PRIMARY", &format!("it says it is page {first}")]);
}

#[test]
fn an_old_copy_of_a_page_is_found() {
    let storage = purged(2000);
    let index = index_id(&storage, 0);
    let leaf = find_page(&storage, |page| is_leaf_of(page, index));
    let old = page(&storage, leaf);
    let db = Database::open_storage(storage.clone(), small_options()).unwrap();
    let table = db.table("person").unwrap();
    let mut txn = db.begin().unwrap();
    for id in 1..2000u64 {
        txn.update(&table, &values![id], &[(1, "new".into())]).unwrap();
    }
    txn.commit().unwrap();
    db.close().unwrap();
    forget_doublewrite(&storage);
    data(&storage).damage(|bytes| bytes[leaf.0 as usize * PAGE_BYTES..][..PAGE_BYTES].copy_from_slice(&old));
    expect(&check(&storage).unwrap(), &["index by_name"]);
}

#[test]
fn a_lost_entry_and_a_stray_one_are_found() {
    let storage = purged(2000);
    let index = index_id(&storage, 1);
    let leaf = find_page(&storage, |page| is_leaf_of(page, index));
    let lost = copy(&storage);
    apply(&lost, leaf, &PageOp::NodeRemove { slot: 2 });
    let report = check(&lost).unwrap();
    assert_eq!(report.findings.len(), 1, "{:#?}", report.findings);
    expect(&report, &["table person: index by_name: row (", "it has no entry"]);

    let before = page(&storage, leaf);
    let (key, value) = (Node::new(&before).key(2), Node::new(&before).value(2).to_vec());
    let marked = copy(&storage);
    apply(&marked, leaf, &PageOp::NodeSplice { slot: 2, at: 0, remove: 1, bytes: &[1] });
    expect(&check(&marked).unwrap(), &["by_name", "its entry is delete-marked"]);

    let stray = copy(&storage);
    let other_row = [&key[..key.len() - 8], &77_777u64.to_be_bytes()].concat();
    apply(&stray, leaf, &PageOp::NodeInsert { slot: 3, key: &other_row, value: &value });
    let report = check(&stray).unwrap();
    assert_eq!(report.findings.len(), 1, "{:#?}", report.findings);
    expect(&report, &[&format!("page {leaf}: "), "by_name", "of row (77777): there is no such row"]);
}

#[test]
fn two_rows_with_one_unique_entry_are_found() {
    let storage = purged(500);
    let index = index_id(&storage, 2);
    let leaf = find_page(&storage, |page| is_leaf_of(page, index) && Node::new(page).key(0)[0] == 1);
    let before = page(&storage, leaf);
    let (key, value) = (Node::new(&before).key(2), Node::new(&before).value(2).to_vec());
    let twin = [&key[..key.len() - 8], &77_777u64.to_be_bytes()].concat();
    apply(&storage, leaf, &PageOp::NodeInsert { slot: 3, key: &twin, value: &value });
    expect(&check(&storage).unwrap(), &[&format!("page {leaf}: "), "by_code", "two rows have this entry"]);
}

#[test]
fn changed_rows_are_found() {
    let storage = purged(2000);
    let index = index_id(&storage, 0);
    let leaf = find_page(&storage, |page| is_leaf_of(page, index));
    let splice = |at, bytes: &[u8], expected: &[&str]| {
        let storage = copy(&storage);
        apply(&storage, leaf, &PageOp::NodeSplice { slot: 2, at, remove: bytes.len() as u16, bytes });
        expect(&check(&storage).unwrap(), expected);
    };
    let on_page = format!("page {leaf}: table person: index PRIMARY: row (");
    splice(0, &[8], &[&on_page, "bits of no meaning"]);
    splice(2, &[0xff; 6], &[&on_page, "ids are below"]);
    splice(8, &[0xff; 6], &[&on_page, "its roll pointer leads to page"]);
    // The key column behind the row header and the NULL bitmap.
    splice(17, &[0xee], &[&on_page, "its columns make the key"]);
    // The nullable columns' bits: a NULL with a value.
    splice(16, &[3], &[&on_page, "does not decode"]);
}

#[test]
fn pages_marked_wrongly_are_found() {
    let storage = purged(2000);
    let layout = Layout::new(PAGE_BYTES);
    let index = index_id(&storage, 1);
    let leaf = find_page(&storage, |page| is_leaf_of(page, index));
    let (map, bits_at, _) = layout.entry_of(leaf);
    let freed = copy(&storage);
    apply(&freed, map, &PageOp::ClearBits { offset: bits_at, mask: 1 << (leaf.0 % 64) });
    expect(&check(&freed).unwrap(), &[&format!("page {leaf}: "), "by_name", "but marked as free"]);

    let free = {
        let db = Database::open_storage_idle(copy(&storage), small_options()).unwrap();
        let extent = db.space().extent(leaf.0 / 64).unwrap();
        let owner = extent.owners[(leaf.0 % 64 / 8) as usize];
        let free = |bit: &u32| extent.used >> bit & 1 == 0 && extent.owners[(bit / 8) as usize] == owner;
        (0..64).find(free).map(|bit| PageNo(leaf.0 / 64 * 64 + bit))
    };
    if let Some(free) = free {
        let leaked = copy(&storage);
        apply(&leaked, map, &PageOp::SetBits { offset: bits_at, mask: 1 << (free.0 % 64) });
        change_page(&leaked, free, |bytes| {
            PageOp::Format { page_type: PageType::Leaf, level: 0, owner: index }.apply(bytes).unwrap();
        });
        expect(&check(&leaked).unwrap(), &[&format!("page {free}: "), "by_name", "nothing leads to it"]);
    }

    let given_away = copy(&storage);
    let owner_at = layout.entry_of(leaf).2;
    change_page(&given_away, map, |bytes| {
        bytes[owner_at as usize..owner_at as usize + 4].copy_from_slice(&SEGMENT_UNDO.0.to_le_bytes());
    });
    expect(&check(&given_away).unwrap(), &[&format!("page {leaf}: "), "by_name", "gives it to segment 2"]);
}

#[test]
fn broken_overflow_chains_are_found() {
    let storage = purged(500);
    let is_overflow = |page: &[u8]| header::page_type(page).unwrap() == PageType::Overflow;
    let next_of = |page: &[u8]| u32::from_le_bytes(page[32..36].try_into().unwrap());
    let chained = find_page(&storage, |page| is_overflow(page) && next_of(page) != 0);
    let cut = copy(&storage);
    change_page(&cut, chained, |bytes| bytes[32..36].fill(0));
    let report = check(&cut).unwrap();
    expect(&report, &["table person", "the overflow chain from here has"]);
    expect(&report, &["PRIMARY", "its overflow pages are damaged"]);
    let circle = copy(&storage);
    change_page(&circle, chained, |bytes| bytes[32..36].copy_from_slice(&chained.0.to_le_bytes()));
    expect(&check(&circle).unwrap(), &[&format!("page {chained}: table person: "), "more than one overflow chain"]);
    let astray = copy(&storage);
    change_page(&astray, chained, |bytes| bytes[32..36].copy_from_slice(&u32::MAX.to_le_bytes()));
    expect(&check(&astray).unwrap(), &["table person", "beyond the end of the data file"]);
}

#[test]
fn damaged_undo_is_found() {
    let storage = closed_idle(500);
    let undo = find_page(&storage, |page| {
        header::page_type(page).unwrap() == PageType::Undo && u32::from_le_bytes(page[36..40].try_into().unwrap()) != 0
    });
    let broken = copy(&storage);
    change_page(&broken, undo, |bytes| bytes[66] = 0x1f);
    match check(&broken) {
        Ok(report) => expect(&report, &[&format!("page {undo}: "), "undo record"]),
        Err(error) => assert!(error.to_string().contains("undo record"), "{error}"),
    }
}

#[test]
fn a_cut_file_is_found() {
    let storage = closed(2000);
    let len = data(&storage).image().len();
    data(&storage).damage(|bytes| bytes.truncate(len / 3 / PAGE_BYTES * PAGE_BYTES + 100));
    let error = check(&storage).unwrap_err();
    assert!(error.to_string().contains("cut"), "{error}");
    let scanned = inspect::scan(&*storage.data, &mut |_, _| {}).unwrap();
    expect(&scanned, &["the data file is cut"]);
}

#[test]
fn without_file_header_or_maps_the_scan_goes_on() {
    let storage = closed(500);
    let index = index_id(&storage, 1);
    let leaf = find_page(&storage, |page| is_leaf_of(page, index));
    data(&storage).damage(|bytes| {
        bytes[..2 * PAGE_BYTES].fill(7);
        bytes[leaf.0 as usize * PAGE_BYTES + 99] ^= 1;
    });
    assert!(check(&storage).is_err());
    let scanned = inspect::scan(&*storage.data, &mut |_, _| {}).unwrap();
    expect(&scanned, &["page 0: ", "not a Highwater database"]);
    expect(&scanned, &["page 1: ", "checksum"]);
    expect(&scanned, &[&format!("page {leaf}: "), "checksum"]);
    assert!(inspect::scan(&MemoryDevice::holding(vec![3; 1 << 20]), &mut |_, _| {}).is_err());
}

#[test]
fn damage_below_an_inner_page_is_said_once() {
    let storage = purged(3000);
    let index = index_id(&storage, 0);
    let root =
        find_page(&storage, |page| header::page_type(page).unwrap() == PageType::Inner && header::owner(page) == index);
    data(&storage).damage(|bytes| bytes[root.0 as usize * PAGE_BYTES + 77] ^= 1);
    let report = check(&storage).unwrap();
    expect(&report, &[&format!("page {root}: table person: index PRIMARY: checksum")]);
    expect(&report, &["PRIMARY", "lie behind the damage"]);
    assert!(report.findings.len() < 20, "{:#?}", report.findings);
}

/// All that a reader gets out of a database.
fn dump(db: &Database) -> Result<Vec<String>> {
    let mut out = Vec::new();
    for table in db.tables() {
        let mut read = db.snapshot()?;
        for row in read.scan(&table).iter()? {
            out.push(format!("{}: {:?}", table.name(), row?.as_ref().as_bytes()));
        }
        for index in &table.definition().indexes {
            for row in read.scan(&table).index(&index.name).iter()? {
                out.push(format!("{} {}: {:?}", table.name(), index.name, row?.as_ref().as_bytes()));
            }
        }
    }
    Ok(out)
}

/// Flips one byte after the other. What comes of it is an error, a finding, or dead space: then readers get what they got
/// before.
fn sweep(device: usize, step: usize) {
    let storage = closed(150);
    if device == 2 {
        // With its last batch.
        let db = Database::open_storage(storage.clone(), small_options()).unwrap();
        fill(&db, &db.table("empty").unwrap(), 100).unwrap();
        db.close().unwrap();
    }
    let whole = dump(&Database::open_storage_idle(copy(&storage), small_options()).unwrap()).unwrap();
    let len = storage.memory_devices().unwrap()[device].image().len();
    let mut found = [0; 3];
    for (n, at) in (0..len).step_by(step).enumerate() {
        let damaged = copy(&storage);
        damaged.memory_devices().unwrap()[device].damage(|bytes| bytes[at] ^= 1 << (n % 8));
        let outcome = catch_unwind(AssertUnwindSafe(|| -> Result<_> {
            let db = Database::open_storage_idle(damaged.clone(), small_options())?;
            let report = db.check()?;
            Ok((report.is_sound(), dump(&db)))
        }));
        match outcome.unwrap_or_else(|_| panic!("byte {at} of device {device}: a panic")) {
            Err(_) => found[0] += 1,
            Ok((false, _)) => found[1] += 1,
            Ok((true, now)) => {
                assert!(now.is_ok_and(|now| now == whole), "byte {at} of device {device}: not found, but not the same");
                found[2] += 1;
            }
        }
        let _ = inspect::scan(&*damaged.data, &mut |_, _| {});
    }
    assert!(device != 0 || found.iter().all(|&n| n > 0), "errors, findings, dead space: {found:?}");
}

#[test]
fn any_flipped_byte_of_the_data_file_is_found_or_dead_space() {
    sweep(0, 5_003);
}

#[test]
fn any_flipped_byte_of_the_redo_is_found_or_dead_space() {
    sweep(1, 41_011);
}

#[test]
fn any_flipped_byte_of_the_doublewrite_file_is_found_or_dead_space() {
    sweep(2, 7_001);
}

/// A database of two tables with much to purge, on which purge has not run.
fn unpurged() -> StorageSet {
    let storage = closed(1500);
    let db = Database::open_storage_idle(storage.clone(), small_options()).unwrap();
    let (table, other) = (db.table("person").unwrap(), db.table("empty").unwrap());
    for n in 0..200u64 {
        let mut txn = db.begin().unwrap();
        txn.insert(&other, &values![null, name(n).as_str(), null, "short"]).unwrap();
        for id in (n * 7 + 2..n * 7 + 9).filter(|id| id % 11 != 1) {
            txn.update(&table, &values![id], &[(1, "moved".into())]).unwrap();
        }
        txn.commit().unwrap();
    }
    let mut txn = db.begin().unwrap();
    txn.delete(&other, &values![7]).unwrap();
    txn.commit().unwrap();
    db.close().unwrap();
    forget_doublewrite(&storage);
    storage
}

fn break_page(storage: &StorageSet, page: PageNo) {
    data(storage).damage(|bytes| bytes[page.0 as usize * PAGE_BYTES + 200] ^= 1);
}

/// Opens it with purge running, lets purge do what it can, and writes and reads what is not on the bad page.
fn use_around(storage: &StorageSet, what: &str, round: u64) -> Database {
    let db = Database::open_storage(storage.clone(), small_options()).unwrap();
    let started = std::time::Instant::now();
    while db.purge_state().history_list_length > 0 {
        assert!(started.elapsed().as_secs() < 30, "{what}: {:?}", db.purge_state());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(!db.context().poison.is_set(), "{what}");
    let (table, other) = (db.table("person").unwrap(), db.table("empty").unwrap());
    let mut txn = db.begin().unwrap();
    assert!(txn.get(&other, &values![3]).unwrap().is_some(), "{what}");
    txn.update(&other, &values![4], &[(1, format!("round {round}").as_str().into())]).unwrap();
    txn.insert(&table, &values![5000 + round, format!("zz {round}").as_str(), null, "new"]).unwrap();
    let readable = (1..1500u64).filter(|id| txn.get(&table, &values![*id]).is_ok()).count();
    assert!(readable >= 1350, "{what}: {readable} rows are readable");
    txn.commit().unwrap();
    db
}

/// Purge goes around a bad page: nothing stops, what is elsewhere is read and written, `check` names the page.
#[test]
fn purge_goes_around_a_damaged_page() {
    let intact = unpurged();
    for index in 0..2 {
        let id = index_id(&intact, index);
        let marked = |page: Node<'_>| (0..page.count()).filter(|slot| page.value(*slot)[0] & 1 == 1).count();
        let page = find_page(&intact, |bytes| is_leaf_of(bytes, id) && (index == 0 || marked(Node::new(bytes)) > 4));
        let storage = copy(&intact);
        break_page(&storage, page);
        let what = format!("leaf {page} of index {index}");
        let db = use_around(&storage, &what, 0);
        let state = db.purge_state();
        assert!(state.set_aside > 0 && state.damage.iter().any(|t| t.contains(&page.to_string())), "{what}: {state:?}");
        expect(&db.check().unwrap(), &[&format!("page {page}:")]);
        db.close().unwrap();
        use_around(&storage, &what, 1).close().unwrap();
    }
}

/// A stream whose own pages are bad is given up; transactions go on in others, also after an opening that meets it.
#[test]
fn purge_gives_up_a_damaged_stream() {
    let intact = unpurged();
    let undo = |bytes: &[u8]| {
        let fields = crate::txn::undo::UndoFields::read(bytes, PageNo(0));
        header::page_type(bytes).unwrap() == PageType::Undo && fields.is_ok_and(|fields| fields.next != PageNo(0))
    };
    let page = find_page(&intact, undo);
    break_page(&intact, page);
    for round in 0..2 {
        let db = use_around(&intact, "undo page", round);
        let state = db.purge_state();
        assert!(state.set_aside > 0 && state.damage.iter().any(|text| text.contains(&page.to_string())), "{state:?}");
        expect(&db.check().unwrap(), &[&format!("page {page}:")]);
        db.close().unwrap();
    }
}

/// A transaction that a crash cut off and that cannot be rolled back keeps its rows, and nobody else is stopped.
#[test]
fn a_rollback_at_opening_goes_around_a_damaged_page() {
    let storage = unpurged();
    let db = Database::open_storage_idle(storage.clone(), small_options()).unwrap();
    let (table, other) = (db.table("person").unwrap(), db.table("empty").unwrap());
    while db.transactions().purge_step(1000).unwrap() > 0 {}
    let mut open = db.begin().unwrap();
    for id in 2..10u64 {
        open.update(&table, &values![id], &[(1, "cut off".into())]).unwrap();
    }
    let (pool, log) = (&db.context().pool, &db.context().log);
    pool.flush_all().unwrap();
    let end = crate::pool::cleaner::checkpoint_target(pool, log);
    log.flush_to(end).unwrap();
    log.checkpoint(end).unwrap();
    let left = storage.cut(1);
    drop(open);
    // The rows' first leaf: behind the checkpoint replay has nothing to do on it, so it is not read before the rollback.
    forget_doublewrite(&left);
    let id = index_id(&storage, 0);
    let page = find_page(&left, |bytes| is_leaf_of(bytes, id) && Node::new(bytes).lower().is_none_or(<[u8]>::is_empty));
    break_page(&left, page);
    drop((db, other));
    let db = Database::open_storage(left, small_options()).unwrap();
    assert_eq!(db.stats().rollbacks_set_aside, 1, "{:?}", db.purge_state());
    let other = db.table("empty").unwrap();
    let mut txn = db.begin().unwrap();
    txn.update(&other, &values![4], &[(1, "after".into())]).unwrap();
    txn.commit().unwrap();
}
