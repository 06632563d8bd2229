//! Damaged images of a killed database whose pages are out of place: each page is recovered or named, and is never
//! silently an older one. The batch that was written last is called durable by no batch header; only the redo log's
//! header proves that it was.

use crate::config::{ChangeBuffering, PageCompression, PageStoreKind};
use crate::db::deterministic::{DeterministicDb, OpenOverrides};
use crate::db::testing::{by_id, commit_all};
use crate::error::Error;
use crate::pool::FlushReason;
use crate::pool::cleaner::{checkpoint, checkpoint_target};
use crate::store::{PageLocation, bootstrap};
use crate::testing::small_options;
use crate::types::{Lsn, PageNo};
use crate::{Options, Row, Table, Type, WriteTxn, values};
use highwater_storage::StorageSet;
use std::sync::Arc;

const ROWS: u64 = 800;
/// Pages of the batch that is written last.
const LAST_BATCH: usize = 40;

fn options(page_compression: PageCompression) -> Options {
    let page_store = PageStoreKind::OutOfPlace;
    let (segment_size, change_buffering) = (256 << 10, ChangeBuffering::Off);
    Options { page_store, page_compression, segment_size, change_buffering, ..small_options() }
}

fn open(storage: &StorageSet, options: &Options) -> Result<DeterministicDb, Error> {
    let overrides = OpenOverrides { recovery_threads: 1, finding_threads: 1, ..OpenOverrides::default() };
    DeterministicDb::open(storage.clone(), options.clone(), &overrides, Arc::default())
}

fn update(txn: &mut WriteTxn, table: &Table, rows: impl Iterator<Item = u64>, version: u64) {
    for n in rows {
        let name = format!("name {:05}", n * 7919 % 10_007 + version);
        txn.update(table, &values![n], &[(1, name.as_str().into()), (2, note(n, version).as_str().into())]).unwrap();
    }
}

fn note(n: u64, version: u64) -> String {
    format!("{version} {n} {}", "x".repeat(150))
}

/// A database that was killed: pages of its last batch have changes from before and after the checkpoint.
fn killed(options: &Options) -> StorageSet {
    let storage = StorageSet::memory();
    let deterministic = open(&storage, options).unwrap();
    let db = deterministic.database();
    let schema = by_id().column("name", Type::Text(40)).column("note", Type::Text(400));
    let table = db.create_table("t", schema.index("by_name", &["name"])).unwrap();
    commit_all(db, 0..ROWS, |txn, n| txn.insert(&table, &values![n, "new", note(n, 0).as_str()]));
    let change = |rows: std::iter::StepBy<std::ops::Range<u64>>, version| {
        let mut txn = db.begin().unwrap();
        update(&mut txn, &table, rows, version);
        txn.commit().unwrap();
    };
    let (pool, log) = (&db.context().pool, &db.context().log);
    change((0..ROWS).step_by(1), 1);
    pool.flush_all().unwrap();
    checkpoint(pool, log, checkpoint_target(pool, log)).unwrap();
    // The first half of the rows is changed before the others and after them: its pages are the oldest dirty ones.
    change((0..ROWS / 2).step_by(9), 2);
    change((ROWS / 2..ROWS).step_by(9), 3);
    change((1..ROWS / 2).step_by(9), 4);
    pool.flush_oldest(Lsn(u64::MAX), LAST_BATCH, FlushReason::CheckpointAge).unwrap();
    checkpoint(pool, log, checkpoint_target(pool, log)).unwrap();
    change((5..ROWS).step_by(90), 5);
    storage.cut(0)
}

fn read_all(storage: &StorageSet, options: &Options) -> Result<[Vec<Row>; 2], Error> {
    let deterministic = open(storage, options)?;
    let table = deterministic.database().table("t")?;
    let mut read = deterministic.database().snapshot()?;
    let by_id = read.scan(&table).iter()?.collect::<Result<_, _>>()?;
    let by_name = read.scan(&table).index("by_name").iter()?.collect::<Result<_, _>>()?;
    Ok([by_id, by_name])
}

/// Where the newest image of each page is.
fn images(storage: &StorageSet) -> Vec<(PageNo, PageLocation)> {
    let found = bootstrap::find(storage).unwrap();
    let pages = found.pages();
    let all = (0..pages.pages().unwrap() as u32).map(PageNo);
    all.filter_map(|page| Some((page, pages.place(page).unwrap()?))).collect()
}

fn sweep(compression: PageCompression) {
    let options = options(compression);
    let storage = killed(&options);
    let expected = read_all(&storage.cut(0), &options).unwrap();
    assert_eq!(expected.each_ref().map(Vec::len), [ROWS as usize; 2]);
    let (mut right, mut named) = (0, 0);
    for (page, place) in images(&storage) {
        let damaged = storage.cut(0);
        let at = (place.offset + place.bytes / 2) as usize;
        damaged.memory_devices().unwrap()[0].damage(|bytes| bytes[at] ^= 4);
        match read_all(&damaged, &options) {
            Ok(rows) => {
                assert!(rows == expected, "{compression:?}: page {page}: wrong rows and no word of it");
                right += 1;
            }
            Err(error) => {
                let text = error.to_string();
                let names_it = [" ", ":", ","].iter().any(|end| text.contains(&format!("page {page}{end}")));
                assert!(names_it && !text.contains("does not fit"), "{compression:?}: page {page}: {text}");
                named += 1;
            }
        }
    }
    println!("{compression:?}: {right} pages read right, {named} were named");
    assert!(right > 5 && named > LAST_BATCH, "{right} pages read right, {named} were named");
}

#[test]
fn a_damaged_image_of_a_killed_database_is_recovered_or_named() {
    sweep(PageCompression::Off);
    sweep(PageCompression::Lz4);
}
