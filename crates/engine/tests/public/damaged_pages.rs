//! One damaged page of each kind: it is reported with file, page and reason, and rows on other pages can be read and
//! written.

use crate::support::{memory, options};
use crate::testing::{by_id, commit_all};
use highwater::config::{ChangeBuffering, MergeAtClose};
use highwater::inspect::RawFile;
use highwater::{Database, Options, PageNo, Table, Type, salvage, values};
use highwater_storage::{MemoryDevice, StorageSet};

const ROWS: u64 = 24_000;
/// Every Nth row is read and written one by one.
const EVERY: u64 = 97;
/// Bytes of a page, and the one that is damaged.
const PAGE_BYTES: usize = 4096;
const FLIPPED: usize = 1111;

fn buffering() -> Options {
    Options {
        change_buffering: ChangeBuffering::Disk,
        change_buffer_merge_at_close: MergeAtClose::Off,
        buffer_pool_size: 1 << 20,
        ..options()
    }
}

fn code(id: u64) -> u64 {
    id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20
}

fn note(id: u64) -> String {
    "n".repeat(if id % 1000 == 1 { 6000 } else { 3 })
}

/// A closed database with pages of every kind: `big` has three levels, overflow rows, an index with changes that wait,
/// and undo that is not purged; `other` is small.
fn with_every_kind() -> [Vec<u8>; 3] {
    let storage = StorageSet::memory();
    let db = Database::open_storage(storage.clone(), buffering()).unwrap();
    let schema = by_id().column("code", Type::U64).column("note", Type::Text(9000));
    let schema = schema.column("count", Type::U64).index("by_code", &["code"]);
    let big = db.create_table("big", schema.clone()).unwrap();
    let other = db.create_table("other", schema).unwrap();
    for first in (0..ROWS).step_by(1000) {
        let mut txn = db.begin().unwrap();
        for id in first..first + 1000 {
            let note = note(id);
            txn.insert(&big, &values![id, code(id) / 2, note.as_str(), 0u64]).unwrap();
        }
        txn.insert(&other, &values![first, code(first), "n", 0u64]).unwrap();
        txn.commit().unwrap();
    }
    db.close().unwrap();
    // Nothing is purged, and most leaves of the index are not in the pool.
    let db = Database::open_storage_idle(storage.clone(), buffering()).unwrap();
    let big = db.table("big").unwrap();
    commit_all(&db, 0..ROWS / 4, |txn, id| txn.update(&big, &values![id], &[(1, code(id).into())]));
    commit_all(&db, ROWS / 4..ROWS, |txn, id| txn.update(&big, &values![id], &[(1, code(id).into())]));
    db.close().unwrap();
    storage.memory_devices().unwrap().each_ref().map(MemoryDevice::image)
}

fn set(files: &[Vec<u8>; 3]) -> StorageSet {
    StorageSet::of_memory(files.each_ref().map(|image| MemoryDevice::holding(image.clone())))
}

/// A page of a kind, from the middle of them: type and owner, as `inspect` names them.
fn page_of(file: &RawFile<'_>, page_type: &str, owner: &str) -> PageNo {
    let is_it = |page: &PageNo| {
        let look = file.look_at(*page).unwrap();
        let is_type = look.page_type.is_some_and(|found| format!("{found:?}") == page_type);
        // Not a root: a leaf, or an inner page below one.
        let is_below = page_type != "Inner" || look.level == 1;
        is_type && is_below && file.name_of(*page).is_some_and(|name| name.contains(owner))
    };
    let pages: Vec<PageNo> = (0..file.page_count() as u32).map(PageNo).filter(is_it).collect();
    *pages.get(pages.len() / 2).unwrap_or_else(|| panic!("no page of {page_type} of {owner}"))
}

/// Whether the text names the page and the reason.
fn names(text: &str, page: PageNo) -> bool {
    let number = format!("page {page}");
    let is_whole = |(at, _): (usize, &str)| !text[at + number.len()..].starts_with(|c: char| c.is_ascii_digit());
    text.match_indices(&number).any(is_whole) && text.contains("checksum")
}

/// How many of the calls for single rows of a table met the page; the others were right.
fn met(db: &Database, table: &Table, page: PageNo, every: u64) -> usize {
    let mut met = 0;
    let mut expect = |result: highwater::Result<bool>| match result {
        Ok(is_right) => assert!(is_right, "page {page}"),
        Err(error) => {
            assert!(names(&error.to_string(), page), "{error}");
            met += 1;
        }
    };
    for id in (0..ROWS).step_by(every as usize) {
        let got = db.snapshot().unwrap().get(table, &values![id]);
        expect(got.map(|row| row.is_some_and(|row| row.u64(1) == code(id) && row.u64(3) == 0)));
        let mut txn = db.begin().unwrap();
        expect(txn.update(table, &values![id], &[(3, 1u64.into())]));
        expect(txn.get(table, &values![id]).map(|row| row.is_some_and(|row| row.u64(1) == code(id))));
        txn.rollback().unwrap();
    }
    met
}

/// What a damaged page costs.
#[derive(Debug, PartialEq, Eq)]
enum Cost {
    /// This many calls met it; all others, and all of the other table, were right.
    Calls(usize),
    /// The database is not opened, and the error names the page; this many rows of each table can be salvaged.
    Opening { salvaged: Vec<u64> },
}

/// Damages the page; the check names it, and no answer is wrong.
fn with_damage(files: &[Vec<u8>; 3], page: PageNo) -> Cost {
    let mut damaged = files.clone();
    damaged[0][page.0 as usize * PAGE_BYTES + FLIPPED] ^= 0x10;
    let db = match Database::open_storage_idle(set(&damaged), buffering()) {
        Ok(db) => db,
        Err(error) => {
            assert!(names(&error.to_string(), page) || page == PageNo(0), "page {page}: {error}");
            assert!(error.to_string().contains("data") || names(&error.to_string(), page), "page {page}: {error}");
            let into = memory();
            let report = salvage(&MemoryDevice::holding(damaged[0].clone()), &into, &mut |_, _| {}).unwrap();
            assert!(page == PageNo(0) || report.losses.iter().any(|loss| names(&loss.to_string(), page)));
            return Cost::Opening { salvaged: report.tables.iter().map(|table| table.rows).collect() };
        }
    };
    let findings: Vec<String> = db.check().unwrap().findings.iter().map(ToString::to_string).collect();
    assert!(findings.iter().any(|finding| names(finding, page)), "page {page}: {findings:?}");
    let (big, other) = (db.table("big").unwrap(), db.table("other").unwrap());
    assert_eq!(met(&db, &other, page, 1000), 0, "the other table");
    let mut txn = db.begin().unwrap();
    txn.insert(&other, &values![ROWS, 1u64, "n", 0u64]).unwrap();
    txn.commit().unwrap();
    Cost::Calls(met(&db, &big, page, EVERY))
}

#[test]
fn a_damaged_page_of_each_kind_is_reported_and_costs_what_lies_on_it() {
    let files = with_every_kind();
    let data = MemoryDevice::holding(files[0].clone());
    let file = RawFile::open(&data).unwrap();
    let calls = (ROWS / EVERY + 1) as usize * 3;
    let sound = Database::open_storage_idle(set(&files), buffering()).unwrap();
    assert_eq!(met(&sound, &sound.table("big").unwrap(), PageNo(0), EVERY), 0);
    drop(sound);
    for (page_type, owner, max_met) in [
        ("Leaf", "table big, index PRIMARY", 30),
        ("Leaf", "table big, index by_code", 30),
        ("Inner", "table big, index PRIMARY", calls),
        ("Inner", "table big, index by_code", calls),
        ("Overflow", "table big", 6),
        ("Undo", "undo", 30),
        // There are two trees, of one page each here.
        ("Leaf", "catalog", 0),
        ("Leaf", "catalog copy", 0),
    ] {
        let cost = with_damage(&files, page_of(&file, page_type, owner));
        assert!(matches!(cost, Cost::Calls(met) if met <= max_met), "{page_type} of {owner}: {cost:?}");
    }
    let all = vec![ROWS, ROWS / 1000];
    for (page_type, owner, salvaged) in [
        ("FileHeader", "file header", all.clone()),
        ("ExtentMap", "extent maps", all.clone()),
        ("UndoDirectory", "undo", all),
    ] {
        let cost = with_damage(&files, page_of(&file, page_type, owner));
        assert_eq!(cost, Cost::Opening { salvaged }, "{page_type} of {owner}");
    }
}
