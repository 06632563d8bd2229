//! Drops return before anything is freed; closings, crashes and damage lose no removal.

use crate::db::Database;
use crate::db::deterministic::{BackgroundStep, DeterministicDb, OpenOverrides};
use crate::db::testing::{by_id, commit_all};
use crate::sync::atomic::AtomicU64;
use crate::table::Type;
use crate::testing::small_options;
use crate::{Error, values};
use highwater_storage::StorageSet;
use std::sync::Arc;

const ROWS: u64 = 800;

fn deterministic(storage: &StorageSet) -> DeterministicDb {
    let now_ms = Arc::new(AtomicU64::new(0));
    DeterministicDb::open(storage.clone(), small_options(), &OpenOverrides::default(), now_ms).unwrap()
}

/// Tables a, with an index, and b.
fn fill(db: &Database) {
    for name in ["a", "b"] {
        let table = db.create_table(name, by_id().column("x", Type::Text(200)).index("by_x", &["x"])).unwrap();
        commit_all(db, 0..ROWS, |txn, id| txn.insert(&table, &values![id, "x".repeat(150).as_str()]));
    }
}

/// Records of the catalog.
fn records(db: &Database) -> usize {
    db.catalog().trees().read().unwrap().len()
}

/// Segments that the catalog names or that own pages.
fn segments(db: &Database) -> [usize; 2] {
    [db.catalog().segments().unwrap().len(), db.space().segments().len()]
}

fn sound(db: &Database) {
    let report = db.check().unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
}

#[test]
fn a_drop_returns_before_pages_are_freed_and_every_crash_resumes() {
    let storage = StorageSet::memory();
    let deterministic = deterministic(&storage);
    let db = deterministic.database();
    let (empty, no_records) = (segments(db), records(db));
    fill(db);
    db.analyze("a").unwrap();
    db.analyze("b").unwrap();
    let before = segments(db);
    db.drop_index("b", "by_x").unwrap();
    db.drop_table("a").unwrap();
    assert_eq!(segments(db), before, "nothing is freed yet");
    assert!(matches!(db.table("a"), Err(Error::NoSuchTable { .. })));
    sound(db);
    let mut steps = 0;
    loop {
        // Before the first one too: then nothing of the index has gone.
        if steps % 3 == 0 {
            db.flush_log().unwrap();
            let cut = Database::open_storage(storage.cut(steps), small_options()).unwrap();
            assert!(cut.table("a").is_err() && cut.table("b").unwrap().definition().indexes.is_empty());
            cut.finish_drops().unwrap();
            assert_eq!(cut.catalog().segments().unwrap().len(), before[0] - 4, "after {steps} steps");
            sound(&cut);
            cut.close().unwrap();
        }
        if segments(db)[0] == before[0] - 4 {
            break;
        }
        deterministic.step(BackgroundStep::Drops).unwrap();
        steps += 1;
        sound(db);
    }
    assert!(steps > 6, "{steps} steps are no test");
    db.drop_table("b").unwrap();
    deterministic.close().unwrap();
    let db = Database::open_storage_idle(storage.clone(), small_options()).unwrap();
    assert_eq!(segments(&db)[0], empty[0], "what a closing left is freed by the next opening");
    assert_eq!(records(&db), no_records.max(1), "the counters are left");
    sound(&db);
}

/// The name is free at once, whatever is left of the old table. (An idle database frees nothing by itself.)
#[test]
fn a_name_is_used_again_before_the_old_table_is_freed() {
    let storage = StorageSet::memory();
    Database::open_storage(storage.clone(), small_options()).unwrap().close().unwrap();
    let db = Database::open_storage_idle(storage.clone(), small_options()).unwrap();
    for _ in 0..3 {
        fill(&db);
        db.drop_table("a").unwrap();
        db.drop_table("b").unwrap();
    }
    fill(&db);
    db.flush_log().unwrap();
    let cut = Database::open_storage(storage.cut(1), small_options()).unwrap();
    cut.finish_drops().unwrap();
    sound(&cut);
    assert_eq!(cut.tables().len(), 2);
    assert_eq!(cut.snapshot().unwrap().scan(&cut.table("a").unwrap()).count().unwrap(), ROWS);
}
