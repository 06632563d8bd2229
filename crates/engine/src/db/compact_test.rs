//! Pages move to the front of the file; the power is cut in the middle; nothing is lost.

use crate::config::{Options, PageStoreKind};
use crate::db::deterministic::{BackgroundStep, DeterministicDb, OpenOverrides};
use crate::db::testing::{by_id, commit_all};
use crate::db::{CompactionProgress, Database};
use crate::sync::atomic::AtomicU64;
use crate::table::Type;
use crate::testing::small_options;
use crate::values;
use highwater_storage::{Faults, StorageSet};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Rows of the table that is dropped, and of the one that stays.
const GONE: u64 = 4000;
const ROWS: u64 = 600;

fn stores() -> [Options; 2] {
    let out_of_place = Options { page_store: PageStoreKind::OutOfPlace, segment_size: 256 << 10, ..small_options() };
    [small_options(), out_of_place]
}

fn deterministic(storage: &StorageSet, options: &Options) -> crate::Result<DeterministicDb> {
    let overrides = OpenOverrides { group_extents: 12, ..OpenOverrides::default() };
    DeterministicDb::open(storage.clone(), options.clone(), &overrides, Arc::new(AtomicU64::new(0)))
}

/// A database whose rows are after those of a table that was dropped.
fn behind_a_gap(options: &Options) -> StorageSet {
    let storage = StorageSet::memory();
    let stepped = deterministic(&storage, options).unwrap();
    let db = stepped.database();
    let text = "x".repeat(1200);
    let schema = || by_id().column("k", Type::U64).column("x", Type::Text(2000));
    let stays = db.create_table("t", schema().index("by_k", &["k"])).unwrap();
    let gone = db.create_table("gone", schema()).unwrap();
    for (table, rows) in [(&gone, GONE), (&stays, ROWS)] {
        for first in (0..rows).step_by(200) {
            let row = |id: u64| values![id, id * 7919 % GONE, text.as_str()];
            commit_all(db, first..first + 200, |txn, id| txn.insert(table, &row(id)));
            stepped.step(BackgroundStep::Cleaner).unwrap();
        }
    }
    (0..100).for_each(|_| stepped.step(BackgroundStep::Purge).unwrap());
    db.drop_table("gone").unwrap();
    stepped.close().unwrap();
    storage
}

fn expect_rows(db: &Database, case: &str) {
    let table = db.table("t").unwrap();
    let mut txn = db.begin().unwrap();
    assert_eq!(txn.scan(&table).iter().unwrap().count() as u64, ROWS, "{case}");
    assert_eq!(txn.scan(&table).index("by_k").iter().unwrap().count() as u64, ROWS, "{case}");
    drop(txn);
    let report = db.check().unwrap();
    assert!(report.is_sound(), "{case}: {:?}", report.findings);
}

#[test]
fn what_is_left_of_a_database_takes_its_share_of_the_disk() {
    for options in stores() {
        let storage = behind_a_gap(&options);
        let stepped = deterministic(&storage, &options).unwrap();
        let db = stepped.database();
        let (mut calls, case) = (0, format!("{:?}", options.page_store));
        let report = db
            .compact(&mut |_| {
                calls += 1;
                ControlFlow::Continue(())
            })
            .unwrap();
        assert!(report.moved_pages > 50 && calls > 0, "{case}: {report:?}");
        assert!(report.bytes_after < report.bytes_before, "{case}: {report:?}");
        let left = db.space().segments().iter().map(|(_, pages)| pages).sum::<u32>();
        assert!(db.space().page_count() < left + 10 * 64, "{case}: {report:?}, {left} of {}", db.space().page_count());
        expect_rows(db, &case);
        let again = db.compact(&mut |_| ControlFlow::Continue(())).unwrap();
        assert!(again.moved_pages < 5, "{case}: {again:?}");
        stepped.close().unwrap();
        expect_rows(deterministic(&storage, &options).unwrap().database(), &case);
    }
}

/// Deletes that are spread over two tables leave every extent with some pages.
#[test]
fn extents_that_deletes_left_nearly_empty_become_few_full_ones() {
    for options in stores() {
        let storage = StorageSet::memory();
        let stepped = deterministic(&storage, &options).unwrap();
        let (db, text) = (stepped.database(), "x".repeat(1200));
        let schema = || by_id().column("k", Type::U64).column("x", Type::Text(2000)).index("by_k", &["k"]);
        let tables = ["t", "u"].map(|name| db.create_table(name, schema()).unwrap());
        let is_kept = |id: u64| id.is_multiple_of(GONE / ROWS);
        let kept = (0..GONE).filter(|id| is_kept(*id)).take(ROWS as usize).last().unwrap();
        for first in (0..GONE).step_by(100) {
            for table in &tables {
                let row = |id: u64| values![id, id % 97, text.as_str()];
                commit_all(db, first..first + 100, |txn, id| txn.insert(table, &row(id)));
            }
            stepped.step(BackgroundStep::Cleaner).unwrap();
        }
        for first in (0..GONE).step_by(100) {
            for table in &tables {
                let gone = |id: &u64| !is_kept(*id) || *id > kept;
                commit_all(db, (first..first + 100).filter(gone), |txn, id| txn.delete(table, &values![id]));
            }
            (0..4).for_each(|_| stepped.step(BackgroundStep::Purge).unwrap());
            stepped.step(BackgroundStep::Cleaner).unwrap();
        }
        (0..200).for_each(|_| stepped.step(BackgroundStep::Purge).unwrap());
        let case = format!("{:?}", options.page_store);
        let report = db.compact(&mut |_| ControlFlow::Continue(())).unwrap();
        let left = db.space().segments().iter().map(|(_, pages)| pages).sum::<u32>();
        assert!(db.space().page_count() < left + 12 * 64, "{case}: {report:?}, {left} of {}", db.space().page_count());
        expect_rows(db, &case);
        stepped.close().unwrap();
        expect_rows(deterministic(&storage, &options).unwrap().database(), &case);
    }
}

/// Changes that wait for leaves which are not in memory hold the checkpoint back that a cut waits for.
#[test]
fn changes_that_wait_for_leaves_do_not_keep_the_end_of_the_file() {
    let options = small_options();
    let stepped = deterministic(&behind_a_gap(&options), &options).unwrap();
    let db = stepped.database();
    let table = db.table("t").unwrap();
    for id in 0..20u64 {
        db.transact(|txn| txn.update(&table, &values![id * 29], &[(1, (GONE + id).into())]).map(drop)).unwrap();
    }
    assert!(db.stats().change_buffer_ops_buffered > 0);
    let report = db.compact(&mut |_| ControlFlow::Continue(())).unwrap();
    assert!(report.moved_pages > 50 && report.bytes_after < report.bytes_before / 2, "{report:?}");
    expect_rows(db, "changes that waited");
}

#[test]
fn a_compaction_that_is_ended_leaves_what_it_moved() {
    let options = small_options();
    let stepped = deterministic(&behind_a_gap(&options), &options).unwrap();
    let first_move = &mut |progress: CompactionProgress| match progress.moved_pages {
        0 => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    };
    let report = stepped.database().compact(first_move).unwrap();
    assert!(report.moved_pages > 0 && report.moved_pages <= 64, "{report:?}");
    expect_rows(stepped.database(), "ended");
}

#[test]
fn a_power_cut_in_a_compaction_loses_nothing() {
    for options in stores() {
        let storage = behind_a_gap(&options);
        let mut cuts = 0;
        for changes in (0..).step_by(9) {
            let memory = storage.cut(0);
            let faults = Faults::new();
            let stepped = deterministic(&memory.map(|device| faults.wrap(device)), &options).unwrap();
            faults.power_off_after(changes);
            let compacted = stepped.database().compact(&mut |_| ControlFlow::Continue(()));
            drop(stepped);
            let case = format!("{:?}, power off after {changes} changes", options.page_store);
            let again = deterministic(&memory.cut(changes), &options).unwrap_or_else(|error| panic!("{case}: {error}"));
            expect_rows(again.database(), &case);
            if !faults.is_power_off() {
                compacted.unwrap();
                break;
            }
            cuts += 1;
        }
        assert!(cuts > 3, "{cuts}");
    }
}
