//! Every row that is on a page that verifies is copied; the others are named.

use super::*;
use crate::Type;
use crate::check::check_test::{closed, find_page, forget_doublewrite, index_id, is_leaf_of};
use crate::config::{Options, PageSize};
use crate::db::testing::{TestDb, by_id, commit_all};
use crate::table::catalog::Catalog;
use crate::table::catalog_trees::CATALOG_TREES;
use crate::table::record::{DefinitionCopy, RecordKey};
use crate::testing::{open, small_options};
use highwater_storage::{FaultKind, Faults, Operation, StorageSet};

const PAGE_BYTES: usize = 4096;

fn flip(storage: &StorageSet, page: PageNo) {
    storage.memory_devices().unwrap()[0].damage(|bytes| bytes[page.0 as usize * PAGE_BYTES + 300] ^= 1);
}

fn rows(db: &Database) -> Vec<String> {
    let table = db.table("person").unwrap();
    let mut read = db.snapshot().unwrap();
    read.scan(&table).iter().unwrap().map(|row| format!("{:?}", row.unwrap())).collect()
}

fn salvaged(storage: &StorageSet) -> (Vec<String>, SalvageReport) {
    let out = TestDb::new(small_options());
    let report = salvage(&*storage.data, &out, &mut |_, _| {}).unwrap();
    assert!(out.check().unwrap().is_sound());
    (rows(&out), report)
}

fn whole() -> (StorageSet, Vec<String>) {
    let storage = closed(1500);
    let all = rows(&Database::open_storage_idle(storage.cut(0), small_options()).unwrap());
    (storage, all)
}

#[test]
fn a_sound_database_is_copied_whole_without_its_log() {
    let (storage, all) = whole();
    storage.memory_devices().unwrap()[1].damage(Vec::clear);
    let (found, report) = salvaged(&storage);
    assert_eq!(found, all);
    assert_eq!(report.losses, []);
    let names: Vec<_> = report.tables.iter().map(|table| (&*table.name, table.rows)).collect();
    assert_eq!(names, [("person", all.len() as u64), ("empty", 0)]);
}

#[test]
fn a_database_is_copied_whole_without_page_0() {
    let (storage, all) = whole();
    storage.memory_devices().unwrap()[0].damage(|bytes| bytes[..PAGE_BYTES].fill(7));
    let (found, report) = salvaged(&storage);
    assert_eq!(found, all);
    assert!(report.losses.iter().all(|loss| loss.table.is_none()), "{:?}", report.losses);
}

/// Page 0 names the trees; without it their leaves are found.
#[test]
fn a_damaged_page_of_the_catalog_costs_nothing() {
    for page_0_too in [false, true] {
        for tree in CATALOG_TREES {
            let (storage, all) = whole();
            let only = find_page(&storage, |page| is_leaf_of(page, tree.id.0));
            flip(&storage, only);
            if page_0_too {
                flip(&storage, PageNo(0));
            }
            let (found, report) = salvaged(&storage);
            assert_eq!(found, all);
            let texts: Vec<String> = report.losses.iter().map(ToString::to_string).collect();
            assert!(texts.iter().any(|text| text.contains(&format!("page {only}:"))), "{texts:?}");
        }
    }
}

/// Both trees of the catalog are unreadable: nothing is copied, and that is not a success.
#[test]
fn without_any_definition_there_is_nothing_to_copy() {
    let (storage, _) = whole();
    for tree in CATALOG_TREES {
        flip(&storage, find_page(&storage, |page| is_leaf_of(page, tree.id.0)));
    }
    let out = TestDb::new(small_options());
    let error = salvage(&*storage.data, &out, &mut |_, _| {}).unwrap_err().to_string();
    assert!(error.contains("no definition of a table can be read"), "{error}");
}

/// Both trees lack what defines one table: the others are copied.
#[test]
fn a_table_without_its_definition_costs_itself_alone() {
    let (storage, all) = whole();
    let mut parts = open(storage.clone(), small_options());
    let catalog = Catalog::open(parts.ctx.clone(), parts.space.clone(), false).unwrap();
    let tables = catalog.load().unwrap().0;
    let table = tables.iter().find(|table| table.definition.name == "empty").unwrap().id;
    let part = RecordKey::Part { table, copy: DefinitionCopy::First, part: 0 };
    catalog.remove(part).unwrap();
    parts.close().unwrap();
    assert!(Database::open_storage(storage.cut(0), small_options()).is_err());
    let (found, report) = salvaged(&storage);
    assert_eq!(found, all);
    let texts: Vec<String> = report.losses.iter().map(ToString::to_string).collect();
    assert!(texts.iter().any(|text| text.contains(&format!("definition of table {table}"))), "{texts:?}");
}

#[test]
fn a_damaged_leaf_costs_its_rows_and_a_damaged_root_none() {
    let (storage, all) = whole();
    let id = index_id(&storage, 0);
    let inner =
        find_page(&storage, |page| header::page_type(page).unwrap() == PageType::Inner && header::owner(page) == id);
    flip(&storage, inner);
    let (found, report) = salvaged(&storage);
    assert_eq!(found, all);
    assert!(report.losses.iter().any(|loss| loss.page == Some(inner)), "{:?}", report.losses);

    let leaf = find_page(&storage, |page| {
        is_leaf_of(page, id) && Node::new(page).lower().is_some() && Node::new(page).upper().is_some()
    });
    let image = storage.memory_devices().unwrap()[0].image();
    let on_leaf = Node::new(&image[leaf.0 as usize * PAGE_BYTES..][..PAGE_BYTES]).count();
    flip(&storage, leaf);
    let (found, report) = salvaged(&storage);
    assert!(found.len() < all.len() && all.len() - found.len() <= on_leaf, "{} of {}", found.len(), all.len());
    assert!(found.iter().all(|row| all.contains(row)));
    let texts: Vec<String> = report.losses.iter().map(ToString::to_string).collect();
    assert!(texts.iter().any(|text| text.contains(&format!("page {leaf}:"))), "{texts:?}");
    assert!(texts.iter().any(|text| text.contains("table person") && text.contains("rows from (")), "{texts:?}");
}

#[test]
fn a_damaged_overflow_page_costs_its_row() {
    let (storage, all) = whole();
    let overflow = find_page(&storage, |page| header::page_type(page).unwrap() == PageType::Overflow);
    flip(&storage, overflow);
    let (found, report) = salvaged(&storage);
    let lost = all.len() - found.len();
    let texts: Vec<String> = report.losses.iter().map(ToString::to_string).collect();
    assert!(lost <= 1 && report.tables[0].rows_lost == lost as u64, "{lost}: {texts:?}");
    assert!(texts.iter().any(|text| text.contains(&format!("page {overflow}:"))), "{texts:?}");
}

/// Changes of unfinished transactions are not copied: of a changed row the previous version is copied, of a new row
/// nothing.
#[test]
fn unfinished_transactions_are_left_out() {
    let (storage, all) = whole();
    let db = Database::open_storage(storage.clone(), small_options()).unwrap();
    let table = db.table("person").unwrap();
    let mut open = db.begin().unwrap();
    open.update(&table, &crate::values![3], &[(1, "unfinished".into())]).unwrap();
    open.insert(&table, &crate::values![77_777, "unfinished", null, null]).unwrap();
    open.delete(&table, &crate::values![4]).unwrap();
    db.context().pool.flush_all().unwrap();
    let left = storage.cut(0);
    drop((open, db));
    forget_doublewrite(&left);
    let (found, report) = salvaged(&left);
    assert_eq!(found, all);
    assert_eq!(report.tables[0].older_versions, 2, "{report:?}");
}

/// Keys of 1,200 bytes fit pages of 16 KiB, not those of 4 KiB: these rows are named, and all others are copied.
#[test]
fn rows_that_the_target_refuses_are_named_and_the_salvage_goes_on() {
    let pages = |bytes| Options { page_size: PageSize::Bytes(bytes), ..small_options() };
    let storage = StorageSet::memory();
    let db = Database::open_storage(storage.clone(), pages(16384)).unwrap();
    let schema = Schema::new().column("key", Type::Text(1500)).column("name", Type::Text(1500)).primary_key(&["key"]);
    let texts = db.create_table("person", schema.index("by_name", &["name"])).unwrap();
    let later = db.create_table("z", by_id()).unwrap();
    commit_all(&db, 0..20u64, |txn, n| {
        let key = format!("{n:0width$}", width = if n % 4 == 3 { 1200 } else { 20 });
        txn.insert(&texts, &crate::values![key.as_str(), "name"]).unwrap();
        txn.insert(&later, &crate::values![n])
    });
    db.close().unwrap();

    for (bytes, lost) in [(16384, 0), (4096, 5)] {
        let out = TestDb::new(pages(bytes));
        let report = salvage(&*storage.data, &out, &mut |_, _| {}).unwrap();
        let counts: Vec<_> = report.tables.iter().map(|table| (&*table.name, table.rows, table.rows_lost)).collect();
        assert_eq!(counts, [("person", 20 - lost, lost), ("z", 20, 0)]);
        let refused = report
            .losses
            .iter()
            .filter(|loss| loss.text.contains("the new database refuses it: the primary key (key)"));
        assert_eq!((refused.count() as u64, report.losses.len() as u64), (lost, lost), "{:?}", report.losses);
        assert_eq!(rows(&out).len() as u64, 20 - lost);
        assert!(out.check().unwrap().is_sound());
    }
}

/// A target that already has the table refuses it: its rows are counted, the other tables are copied.
#[test]
fn a_table_that_the_target_refuses_is_named() {
    let (storage, all) = whole();
    let out = TestDb::new(small_options());
    out.create_table("person", by_id()).unwrap();
    let report = salvage(&*storage.data, &out, &mut |_, _| {}).unwrap();
    let counts: Vec<_> = report.tables.iter().map(|table| (&*table.name, table.rows, table.rows_lost)).collect();
    assert_eq!(counts, [("person", 0, all.len() as u64), ("empty", 0, 0)]);
    assert!(report.losses[0].text.contains("the table and its rows are lost"), "{:?}", report.losses[0]);
}

/// A page that is read once and then not again costs its rows; the others are copied.
#[test]
fn a_page_that_cannot_be_read_again_costs_its_rows() {
    let (storage, all) = whole();
    let reads_of_copying = 2..6;
    let total = {
        let (faults, out) = (Faults::new(), TestDb::new(small_options()));
        salvage(&*faults.wrap(storage.data.clone()), &out, &mut |_, _| {}).unwrap();
        faults.count(Operation::Read)
    };
    for last in reads_of_copying {
        let (faults, out) = (Faults::new(), TestDb::new(small_options()));
        faults.fail(Operation::Read, total - last, FaultKind::ErrorOnce);
        let report = salvage(&*faults.wrap(storage.data.clone()), &out, &mut |_, _| {}).unwrap();
        let found = rows(&out);
        assert!(found.len() < all.len() && found.len() > all.len() / 2, "{} of {}", found.len(), all.len());
        assert!(report.losses.iter().any(|loss| loss.text.contains("read of")), "{:?}", report.losses);
    }
}
