//! A database that is only read: nothing reaches its devices, a crashed one is recovered in memory, nothing can be
//! written.

use crate::TxnOptions;
use crate::db::Database;
use crate::db::testing::{TestDb, by_id, commit_all};
use crate::error::Error;
use crate::testing::small_options;
use crate::{Type, values};
use highwater_storage::{FaultKind, Faults, Operation, StorageSet};

/// 300 committed rows, and a transaction that a power cut ended; with overflow rows.
fn crashed() -> StorageSet {
    let db = TestDb::new(small_options());
    let table = db.create_table("note", by_id().column("note", Type::Text(1 << 20))).unwrap();
    commit_all(&db, 0..300u64, |txn, n| {
        let note = "x".repeat(if n % 50 == 0 { 9000 } else { 200 });
        txn.insert(&table, &values![n, note.as_str()])
    });
    let mut open = db.begin().unwrap();
    for n in 300..400u64 {
        open.insert(&table, &values![n, "never committed"]).unwrap();
    }
    db.flush_log().unwrap();
    db.storage.cut(1)
}

/// The set on devices that refuse every change.
fn refusing(storage: &StorageSet) -> StorageSet {
    let faults = Faults::new();
    for operation in [Operation::Write, Operation::Sync, Operation::SetLen, Operation::Discard] {
        faults.fail(operation, 1, FaultKind::ErrorForGood);
    }
    storage.map(|device| faults.wrap(device))
}

#[test]
fn a_crashed_database_is_recovered_in_memory_on_devices_that_refuse_every_change() {
    let storage = crashed();
    let images = || storage.memory_devices().unwrap().each_ref().map(|device| device.image());
    let before = images();
    let set = refusing(&storage);
    assert!(Database::open_storage_idle(set.clone(), small_options()).is_err());
    for _ in 0..2 {
        let db = Database::open_storage_idle(set.overlaid().unwrap(), small_options()).unwrap();
        assert!(db.stats().recovery_redo_bytes > 0);
        let report = db.check().unwrap();
        assert!(report.is_sound(), "{report:?}");
        assert_eq!(report.counts.rows, 300);
        let table = db.table("note").unwrap();
        assert_eq!(db.snapshot().unwrap().scan(&table).iter().unwrap().count(), 300);
        db.close().unwrap();
    }
    assert!(images() == before, "something was written");
    let db = Database::open_storage_idle(storage.clone(), small_options()).unwrap();
    assert_eq!(db.check().unwrap().counts.rows, 300);
}

#[test]
fn what_is_only_read_cannot_be_written() {
    let storage = crashed();
    let db = Database::open_storage(storage.overlaid().unwrap(), small_options()).unwrap();
    let refused = |result: Result<(), Error>| {
        let error = result.unwrap_err();
        assert!(matches!(&error, Error::Usage(text) if text.contains("read only")), "{error}");
    };
    refused(db.begin().map(drop));
    refused(db.begin_with(TxnOptions::default()).map(drop));
    refused(db.create_table("more", by_id()).map(drop));
    refused(db.create_index("note", "by_note", &["note"], false));
    refused(db.drop_index("note", "by_note"));
    refused(db.drop_table("note"));
    db.close().unwrap();
    let empty = StorageSet::memory().overlaid().unwrap();
    assert!(matches!(Database::open_storage(empty, small_options()), Err(Error::Incompatible(_))));
}
