//! After a failure that stops the database no call pretends that all is well.

use crate::config::FlushLog;
use crate::db::testing::{by_id, commit_all};
use crate::error::{Error, Result};
use crate::testing::small_options;
use crate::{Database, Options, Table, Type, values};
use highwater_storage::{FaultKind, Faults, Operation, StorageSet};

fn is_stopped<T>(result: Result<T>) -> bool {
    matches!(result, Err(Error::Poisoned(_)))
}

/// A database of 2,000 rows whose redo device can fail.
fn database(mode: FlushLog) -> (Database, Table, Faults) {
    let (faults, mut storage) = (Faults::new(), StorageSet::memory());
    storage.redo = faults.wrap(storage.redo.clone());
    let options = Options { flush_log_at_trx_commit: mode, ..small_options() };
    let db = Database::open_storage(storage, options).unwrap();
    let table = db.create_table("t", by_id().column("n", Type::U64)).unwrap();
    commit_all(&db, 0..2000u64, |txn, id| txn.insert(&table, &values![id, 0u64]));
    db.flush_log().unwrap();
    (db, table, faults)
}

#[test]
fn after_a_failed_sync_every_call_is_an_error_reads_included() {
    for kind in [FaultKind::ErrorOnce, FaultKind::ErrorForGood] {
        let (db, table, faults) = database(FlushLog::Sync);
        let (mut before, mut scanning, mut idle) =
            (db.snapshot().unwrap(), db.snapshot().unwrap(), db.begin().unwrap());
        assert!(before.get(&table, &values![7u64]).unwrap().is_some());
        let mut scan = scanning.scan(&table).iter().unwrap();
        assert!(scan.next().unwrap().is_ok());
        assert!(idle.get(&table, &values![7u64]).unwrap().is_some());

        let mut txn = db.begin().unwrap();
        txn.update(&table, &values![7u64], &[(1, 1u64.into())]).unwrap();
        faults.fail(Operation::Sync, 1, kind);
        assert!(txn.commit().is_err());

        assert!(is_stopped(before.get(&table, &values![7u64])) && is_stopped(before.get(&table, &values![5000u64])));
        assert!(is_stopped(scan.next().unwrap()), "a batch that was read before");
        assert!(is_stopped(before.scan(&table).iter().and_then(|mut rows| rows.next_ref().map(drop))));
        assert!(is_stopped(idle.get_for_update(&table, &values![8u64])));
        assert!(is_stopped(idle.update(&table, &values![8u64], &[(1, 1u64.into())])));
        assert!(is_stopped(idle.delete(&table, &values![5000u64])));
        assert!(is_stopped(idle.insert(&table, &values![5000u64, 1u64])));
        assert!(is_stopped(idle.commit()));
        assert!(is_stopped(db.begin().map(drop)) && is_stopped(db.snapshot().map(drop)));
        assert!(is_stopped(db.flush_log()) && is_stopped(db.drop_table("t")));
        assert!(is_stopped(db.close()));
    }
}

#[test]
fn a_failed_write_of_the_log_stops_the_readers_too() {
    for mode in [FlushLog::EverySecond, FlushLog::Write] {
        let (db, table, faults) = database(mode);
        let mut reader = db.snapshot().unwrap();
        let mut txn = db.begin().unwrap();
        txn.update(&table, &values![7u64], &[(1, 1u64.into())]).unwrap();
        faults.fail(Operation::Write, 1, FaultKind::ErrorForGood);
        let committed = txn.commit();
        assert_eq!(committed.is_ok(), mode == FlushLog::EverySecond, "{committed:?}");
        assert!(db.flush_log().is_err());
        assert!(is_stopped(reader.get(&table, &values![7u64])));
    }
}
