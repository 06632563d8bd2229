//! A healthy database passes; each kind of damage is found and located; no damage makes a check panic or gives a reader
//! a wrong result.

mod around_damage;
mod closing;
mod damage;
mod flipped_bytes;
mod healthy;

use super::CheckReport;
use crate::db::Database;
use crate::db::testing::by_id;
use crate::error::Result;
use crate::inspect;
use crate::inspect::RawFile;
use crate::page::{Node, PageOp, PageType, header};
use crate::space::SEGMENT_UNDO;
use crate::space::layout::SpaceLayout;
use crate::testing::small_options;
use crate::types::PageNo;
use crate::{Schema, Table, Type, values};
use highwater_storage::{MemoryDevice, StorageSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

pub(crate) const PAGE_BYTES: usize = 4096;

pub(crate) fn schema() -> Schema {
    by_id()
        .auto_increment("id")
        .column("name", Type::Text(64))
        .nullable("code", Type::I32)
        .nullable("note", Type::Text(1 << 20))
        .index("by_name", &["name"])
        .unique_index("by_code", &["code"])
}

pub(crate) fn name(n: u64) -> String {
    format!("name {:05}", n.wrapping_mul(7919) % 10_007)
}

/// Rows with and without overflow pages, updates that move entries, deletions, rollbacks.
pub(crate) fn fill(db: &Database, table: &Table, rows: u64) -> Result<()> {
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
pub(crate) fn closed(rows: u64) -> StorageSet {
    let storage = StorageSet::memory();
    let db = Database::open_storage(storage.clone(), small_options()).unwrap();
    fill_new(&db, rows);
    db.close().unwrap();
    forget_doublewrite(&storage);
    storage
}

pub(crate) fn fill_new(db: &Database, rows: u64) {
    let table = db.create_table("person", schema()).unwrap();
    db.create_table("empty", schema()).unwrap();
    fill(db, &table, rows).unwrap();
}

/// A closed database of which nothing is purged.
pub(crate) fn closed_idle(rows: u64) -> StorageSet {
    let storage = StorageSet::memory();
    Database::open_storage(storage.clone(), small_options()).unwrap().close().unwrap();
    let db = Database::open_storage_idle(storage.clone(), small_options()).unwrap();
    fill_new(&db, rows);
    db.close().unwrap();
    forget_doublewrite(&storage);
    storage
}

/// So that opening cannot repair the damage from the last batch.
pub(crate) fn forget_doublewrite(storage: &StorageSet) {
    storage.memory_devices().unwrap()[2].damage(|bytes| bytes[..PAGE_BYTES].fill(0));
}

/// The same with everything purged.
pub(crate) fn purged(rows: u64) -> StorageSet {
    let storage = closed(rows);
    let db = Database::open_storage_idle(storage.clone(), small_options()).unwrap();
    while db.transactions().purge_step(1000).unwrap() > 0 {}
    db.close().unwrap();
    forget_doublewrite(&storage);
    storage
}

/// A copy of the set in memory, whose changes leave the original alone.
pub(crate) fn copy(storage: &StorageSet) -> StorageSet {
    storage.cut(0)
}

pub(crate) fn data(storage: &StorageSet) -> &MemoryDevice {
    &storage.memory_devices().unwrap()[0]
}

pub(crate) fn check(storage: &StorageSet) -> Result<CheckReport> {
    Database::open_storage_idle(storage.clone(), small_options())?.check()
}

/// Changes a page in the file and stamps it again, so that only its contents are wrong.
pub(crate) fn change_page(storage: &StorageSet, page: PageNo, change: impl FnOnce(&mut [u8])) {
    data(storage).damage(|bytes| {
        let page_bytes = &mut bytes[page.0 as usize * PAGE_BYTES..][..PAGE_BYTES];
        change(page_bytes);
        header::stamp(page_bytes, page);
    });
}

pub(crate) fn apply(storage: &StorageSet, page: PageNo, op: &PageOp<'_>) {
    change_page(storage, page, |bytes| op.apply(bytes).unwrap());
}

/// The first used page that fits.
pub(crate) fn find_page(storage: &StorageSet, fits: impl Fn(&[u8]) -> bool) -> PageNo {
    let file = RawFile::open(&*storage.data).unwrap();
    let mut used = (0..file.page_count() as u32).map(PageNo).filter(|page| file.owner(*page).is_some());
    used.find(|page_no| fits(&page(storage, *page_no))).unwrap()
}

pub(crate) fn page(storage: &StorageSet, page: PageNo) -> Vec<u8> {
    data(storage).image()[page.0 as usize * PAGE_BYTES..][..PAGE_BYTES].to_vec()
}

/// Number of an index of table person: 0 = the rows.
pub(crate) fn index_id(storage: &StorageSet, index: usize) -> u32 {
    let db = Database::open_storage_idle(copy(storage), small_options()).unwrap();
    let rows = db.table("person").unwrap().shared.current.read().clone();
    if index == 0 { rows.clustered.id().0 } else { rows.indexes[index - 1].tree.id().0 }
}

pub(crate) fn is_leaf_of(page: &[u8], index: u32) -> bool {
    header::page_type(page).unwrap() == PageType::Leaf && header::owner(page) == index && Node::new(page).count() > 4
}

/// A finding that mentions all of this (in its text as shown, place included).
#[track_caller]
pub(crate) fn expect(report: &CheckReport, parts: &[&str]) {
    let found = report.findings.iter().any(|finding| parts.iter().all(|part| finding.to_string().contains(part)));
    assert!(found, "nothing with {parts:?} in {:#?}", report.findings);
}
