//! A database that is opened with a smaller redo log than it has, or closed with a larger one than its data are worth:
//! cut off at any write, it has everything, and a log of the old size or of the new one.

use super::super::deterministic::{BackgroundStep, DeterministicDb, OpenOverrides};
use crate::config::Options;
use crate::db::testing::by_id;
use crate::error::Result;
use crate::pool::cleaner::{checkpoint, checkpoint_target};
use crate::testing::small_options;
use crate::{Type, values};
use highwater_storage::{Faults, StorageSet};
use std::sync::Arc;

const SMALL: u64 = 4 << 20;
const LARGE: u64 = 8 << 20;

fn open(storage: &StorageSet, log_file_size: u64) -> Result<DeterministicDb> {
    let overrides =
        OpenOverrides { database_id: 7, recovery_threads: 1, finding_threads: 1, ..OpenOverrides::default() };
    DeterministicDb::open(storage.clone(), Options { log_file_size, ..small_options() }, &overrides, Arc::default())
}

fn insert(deterministic: &DeterministicDb, from: u64, to: u64) {
    let table = deterministic.database().table("t").unwrap();
    let text = "redo ".repeat(160);
    let mut txn = deterministic.database().begin().unwrap();
    txn.insert_many(&table, (from..to).map(|id| values![id, text.as_str()])).unwrap();
    txn.commit().unwrap();
}

fn rows(deterministic: &DeterministicDb) -> u64 {
    let table = deterministic.database().table("t").unwrap();
    let mut read = deterministic.database().snapshot().unwrap();
    read.scan(&table).count().unwrap()
}

fn redo_bytes(storage: &StorageSet) -> u64 {
    storage.redo.len_bytes().unwrap()
}

/// A database whose log has grown; not closed, with some redo after its checkpoint. How many rows it has.
fn grown() -> (StorageSet, u64) {
    let storage = StorageSet::memory();
    let deterministic = open(&storage, LARGE).unwrap();
    deterministic.database().create_table("t", by_id().column("text", Type::Text(900))).unwrap();
    for from in (0..3000).step_by(100) {
        insert(&deterministic, from, from + 100);
    }
    deterministic.step(BackgroundStep::Cleaner).unwrap();
    assert_eq!(redo_bytes(&storage), LARGE);
    let ctx = &deterministic.database().inner.ctx;
    ctx.pool.flush_all().unwrap();
    checkpoint(&ctx.pool, &ctx.log, checkpoint_target(&ctx.pool, &ctx.log)).unwrap();
    insert(&deterministic, 3000, 3020);
    (storage.cut(1), 3020)
}

#[test]
fn an_opening_that_shrinks_the_log_can_be_cut_off_anywhere() {
    let (image, expected) = grown();
    let mut found = [0; 2];
    for at in 0.. {
        let (storage, faults) = (image.cut(0), Faults::new());
        faults.power_off_after(at);
        let opened = open(&storage.map(|device| faults.wrap(device)), SMALL);
        for seed in 0..3 {
            let cut = storage.cut(at << 8 | seed);
            found[usize::from(redo_bytes(&cut) == SMALL)] += 1;
            // An opening with the old size finds a smaller log, or the old one.
            let again =
                open(&cut, [SMALL, LARGE][seed as usize % 2]).unwrap_or_else(|error| panic!("cut {at}: {error}"));
            assert_eq!(rows(&again), expected, "cut {at}, seed {seed}");
            insert(&again, 5000, 5050);
            again.close().unwrap();
            let again = open(&cut, SMALL).unwrap();
            assert_eq!((rows(&again), redo_bytes(&cut)), (expected + 50, SMALL), "cut {at}, seed {seed}");
            assert!(again.database().check().unwrap().is_sound(), "cut {at}, seed {seed}");
        }
        if opened.is_ok() {
            break;
        }
    }
    assert!(found.iter().all(|count| *count > 5), "{found:?}");
}

#[test]
fn a_closing_that_shrinks_the_log_can_be_cut_off_anywhere() {
    let (image, expected) = grown();
    let mut found = [0; 2];
    for at in 0.. {
        let (storage, faults) = (image.cut(0), Faults::new());
        let opened = open(&storage.map(|device| faults.wrap(device)), LARGE).unwrap();
        faults.power_off_after(at);
        let is_closed = opened.close().is_ok();
        assert!(!is_closed || redo_bytes(&storage) == SMALL, "a quarter of the data is less than that");
        // The file is cut last, and not synced: each other power cut leaves it long.
        for seed in 0..if is_closed { 16 } else { 3 } {
            let cut = storage.cut(at << 8 | seed);
            found[usize::from(redo_bytes(&cut) == SMALL)] += 1;
            let again = open(&cut, LARGE).unwrap_or_else(|error| panic!("cut {at}: {error}"));
            assert_eq!(rows(&again), expected, "cut {at}, seed {seed}");
            insert(&again, 5000, 5050);
            again.close().unwrap();
            let again = open(&cut, LARGE).unwrap();
            assert_eq!(rows(&again), expected + 50, "cut {at}, seed {seed}");
            assert!(again.database().check().unwrap().is_sound(), "cut {at}, seed {seed}");
        }
        if is_closed {
            break;
        }
    }
    assert!(found[0] > 5 && found[1] > 0, "{found:?}");
}

/// A log that is larger than the option stays as it is where nothing may be written.
#[test]
fn opening_to_read_leaves_the_log_as_large_as_it_is() {
    let (storage, expected) = grown();
    let folder = tempfile::tempdir().unwrap();
    for (device, name) in storage.memory_devices().unwrap().iter().zip(["data", "redo", "doublewrite"]) {
        std::fs::write(folder.path().join(name), device.image()).unwrap();
    }
    let db = crate::Database::open_read_only(folder.path(), small_options()).unwrap();
    let table = db.table("t").unwrap();
    assert_eq!(db.snapshot().unwrap().scan(&table).count().unwrap(), expected);
    assert_eq!(db.options().log_file_size, LARGE);
    db.close().unwrap();
    assert_eq!(std::fs::metadata(folder.path().join("redo")).unwrap().len(), LARGE);
    let db = crate::Database::open(folder.path(), small_options()).unwrap();
    assert_eq!(db.options().log_file_size, SMALL);
    db.close().unwrap();
    assert_eq!(std::fs::metadata(folder.path().join("redo")).unwrap().len(), SMALL);
}
