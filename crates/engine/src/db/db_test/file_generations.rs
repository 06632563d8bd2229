//! Files of different ages: each mixture of a database's versions is refused and says which file is the older one;
//! every crash of an opening or a closing is let through.

use crate::config::{Doublewrite, Options};
use crate::db::Database;
use crate::db::testing::{by_id, commit_all};
use crate::error::Error;
use crate::testing::{is_tried, small_options};
use crate::{Type, values};
use highwater_storage::{Faults, StorageSet};
use std::sync::Arc;

/// What the three devices hold: data, redo, doublewrite.
type Files = [Vec<u8>; 3];

fn files(storage: &StorageSet) -> Files {
    storage.memory_devices().unwrap().each_ref().map(|device| device.image())
}

fn set_of(files: &Files) -> StorageSet {
    let set = StorageSet::memory();
    for (device, bytes) in set.memory_devices().unwrap().iter().zip(files) {
        device.damage(|image| image.clone_from(bytes));
    }
    set
}

fn open(storage: &StorageSet) -> Result<Database, Error> {
    open_with(storage, Doublewrite::On)
}

fn open_with(storage: &StorageSet, doublewrite: Doublewrite) -> Result<Database, Error> {
    Database::open_storage(storage.clone(), Options { doublewrite, ..small_options() })
}

fn insert(db: &Database, from: u64) {
    let table = db.table("t").unwrap();
    commit_all(db, from..from + 50, |txn, id| txn.insert(&table, &values![id, "x".repeat(100).as_str()]));
}

fn rows(db: &Database) -> usize {
    db.snapshot().unwrap().scan(&db.table("t").unwrap()).iter().unwrap().count()
}

/// A database closed with 0, 50 and 100 rows, and a copy of it open with 150.
fn versions(doublewrite: Doublewrite) -> Vec<Files> {
    let storage = StorageSet::memory();
    let open = |storage| open_with(storage, doublewrite);
    let db = open(&storage).unwrap();
    db.create_table("t", by_id().column("x", Type::Text(200))).unwrap();
    db.close().unwrap();
    let mut versions = vec![files(&storage)];
    for from in [0, 50] {
        let db = open(&storage).unwrap();
        insert(&db, from);
        db.close().unwrap();
        versions.push(files(&storage));
    }
    let db = open(&storage).unwrap();
    insert(&db, 100);
    versions.push(files(&storage));
    db.close().unwrap();
    versions.push(files(&storage));
    versions
}

/// Only the doublewrite file may be of any age, which does no harm: a copy from before the last checkpoint is never
/// looked at, and one newer than the log is refused.
#[test]
fn an_older_file_with_newer_ones_is_refused_and_named() {
    let versions = versions(Doublewrite::On);
    for (i, [data, ..]) in versions.iter().enumerate() {
        for (j, [_, redo, _]) in versions.iter().enumerate() {
            for (k, [_, _, doublewrite]) in versions.iter().enumerate() {
                let set = set_of(&[data.clone(), redo.clone(), doublewrite.clone()]);
                let opened = open(&set);
                match (i.cmp(&j), opened) {
                    // The redo from just before the closing has everything in it.
                    (_, Ok(db)) if i == j || (i, j) == (4, 3) => {
                        assert_eq!(rows(&db), [0, 50, 100, 150, 150][i], "version {i}");
                        assert!(db.check().unwrap().is_sound());
                    }
                    (std::cmp::Ordering::Equal, Err(Error::Corrupt(text))) if k > i => {
                        assert!(text.contains("doublewrite has a copy of page"), "{text}");
                    }
                    (std::cmp::Ordering::Less, Err(Error::Corrupt(text))) => {
                        assert!(text.contains("data is older than redo"), "data {i}, redo {j}: {text}");
                    }
                    (std::cmp::Ordering::Greater, Err(Error::Corrupt(text))) => {
                        assert!(text.contains("redo is older than data"), "data {i}, redo {j}: {text}");
                    }
                    (_, Ok(_)) => panic!("data {i} and redo {j} were opened"),
                    (_, Err(error)) => panic!("data {i}, redo {j}: {error}"),
                }
            }
        }
    }
}

/// A journal must be that of the data file and the log, or at least not be needed: then it counts for nothing.
#[test]
fn an_older_journal_is_refused_or_not_needed() {
    let versions = versions(Doublewrite::Journal);
    for (i, [data, redo, _]) in versions.iter().enumerate() {
        for (k, [_, _, journal]) in versions.iter().enumerate() {
            let set = set_of(&[data.clone(), redo.clone(), journal.clone()]);
            let is_closed = i != 3;
            match open_with(&set, [Doublewrite::Journal, Doublewrite::On][k % 2]) {
                Ok(db) => {
                    // The journal of the closing, without the closing of the log: as if the power was cut between them.
                    let is_allowed = k == i || k < i && is_closed || (i, k) == (3, 4);
                    assert!(is_allowed, "data and redo {i}, journal {k}");
                    assert_eq!(rows(&db), [0, 50, 100, 150, 150][i], "version {i}, journal {k}");
                    assert!(db.check().unwrap().is_sound());
                }
                Err(Error::Corrupt(text)) if k < i => {
                    assert!(!is_closed && text.contains("journal of pages in doublewrite is needed"), "{text}");
                }
                Err(Error::Corrupt(text)) => {
                    let is_named = ["doublewrite has a copy of page", "redo is older than data"];
                    assert!(k > i && is_named.iter().any(|part| text.contains(part)), "{i}, {k}: {text}");
                }
                Err(error) => panic!("data and redo {i}, journal {k}: {error}"),
            }
        }
    }
}

#[test]
fn every_crash_of_an_opening_and_a_closing_is_let_through() {
    every_crash_is_let_through(Doublewrite::On, Doublewrite::On);
}

#[test]
fn every_crash_of_an_opening_and_a_closing_is_let_through_with_a_journal() {
    every_crash_is_let_through(Doublewrite::Journal, Doublewrite::Journal);
    every_crash_is_let_through(Doublewrite::Journal, Doublewrite::On);
    every_crash_is_let_through(Doublewrite::On, Doublewrite::Journal);
}

/// Outcomes of a power cut that are tried at each step: few of them tear both a page and its doublewrite copy.
const CUTS: u64 = 40;

/// Cuts a life that is opened in one way, at every step, and opens it in the other way.
fn every_crash_is_let_through(before: Doublewrite, after_it: Doublewrite) {
    let open = |storage: &StorageSet| open_with(storage, after_it);
    let [_, closed, _, crashed, _] = versions(before).try_into().unwrap();
    for (files, expected) in [(closed, 50), (crashed, 150)] {
        for step in 0.. {
            let set = set_of(&files);
            let faults = Faults::new();
            faults.power_off_after(step);
            let whole = open(&set.map(|device| faults.wrap(device))).is_ok_and(|db| {
                let done = db.close().is_ok();
                done && !faults.is_power_off()
            });
            for seed in (0..CUTS).filter(|seed| is_tried(*seed)) {
                let after = set.cut(step * CUTS + seed);
                let db = open(&after).unwrap_or_else(|error| panic!("step {step}, seed {seed}: {error}"));
                assert_eq!(rows(&db), expected);
            }
            if whole {
                break;
            }
        }
    }
}

#[test]
fn a_commit_during_a_closing_that_was_acknowledged_is_found_again() {
    for round in 0..8u64 {
        let storage = StorageSet::memory();
        let db = open(&storage).unwrap();
        let table = Arc::new(db.create_table("t", by_id()).unwrap());
        let (other, of_other) = (db.clone(), table.clone());
        let writer = std::thread::spawn(move || {
            let commit = |id: u64| {
                let mut txn = other.begin()?;
                txn.insert(&of_other, &values![id])?;
                txn.commit()
            };
            (0..).take_while(|id| commit(*id).is_ok()).count()
        });
        std::thread::sleep(std::time::Duration::from_millis(3 + round));
        db.close().unwrap();
        let acknowledged = writer.join().unwrap();
        drop(table);
        let db = open(&storage).unwrap();
        assert!(rows(&db) >= acknowledged, "{} rows of {acknowledged}", rows(&db));
    }
}
