//! The change log under power cuts: a consumer that continues from its position has the same rows as the database.

use crate::changes::{Replica, schema};
use crate::support::{await_purge, open, options, sound};
use highwater::config::FlushLog;
use highwater::{Database, Error, Options, Result, Xid, values};
use highwater_storage::{Faults, StorageSet};

/// Transactions of several rows, some of them prepared, some rolled back, and trims; the consumer takes changes in
/// between, in steps that end in the middle of a transaction.
fn play(db: &Database, replica: &mut Replica, seed: u64) -> Result<()> {
    let table = db.table_or_create("t", schema())?;
    for n in 0..14u64 {
        let mut txn = db.begin()?;
        for at in 0..4 {
            let id = (n * 5 + at * 3 + seed) % 11;
            match (n + at) % 3 {
                0 => drop(txn.delete(&table, &values![id])?),
                _ => drop(txn.replace(&table, &values![id, &*"n".repeat(n as usize), n, &[at as u8; 900][..]])?),
            }
        }
        match n % 4 {
            1 => drop(txn.rollback()?),
            2 => {
                let name = Xid::new(1, &n.to_le_bytes(), b"")?;
                if let Some(prepared) = txn.prepare(name)? {
                    if n % 8 == 2 { prepared.commit()? } else { assert!(prepared.commit_ordered()? > 0) }
                }
            }
            _ => txn.commit()?,
        }
        replica.take(db, (n * 3 + seed) as usize % 9)?;
        if n % 5 == 4 {
            db.trim_changes(replica.position)?;
        }
    }
    Ok(())
}

/// False: the play was over before the cut.
fn cut_at(changes: u64, second: u64, flush_log: FlushLog) -> bool {
    let (storage, faults, mut replica) = (StorageSet::memory(), Faults::new(), Replica::default());
    let own = || Options { flush_log_at_trx_commit: flush_log, ..options() };
    open(&storage).close().unwrap();
    let db = Database::open_storage(storage.map(|device| faults.wrap(device)), own()).unwrap();
    faults.power_off_after(changes);
    let is_cut = play(&db, &mut replica, changes).is_err();
    drop(db);
    let mut storage = storage.cut(changes);
    let faults = Faults::new();
    faults.power_off_after(second);
    if let Ok(db) = Database::open_storage(storage.map(|device| faults.wrap(device)), own()) {
        match end_prepared(&db).and_then(|()| play(&db, &mut replica, second)) {
            Ok(()) | Err(Error::Storage(_) | Error::Poisoned(_)) => {}
            Err(error) => panic!("cut after {changes}, then {second}: {error}"),
        }
    }
    storage = storage.cut(changes * 3);
    let (db, at) = (open(&storage), format!("cut after {changes}, then {second}"));
    end_prepared(&db).unwrap();
    replica.take(&db, usize::MAX).unwrap_or_else(|error| panic!("{at}: {error}"));
    if let Ok(table) = db.table("t") {
        replica.check(&db, &table, &at);
        db.transact(|txn| txn.replace(&table, &values![100, "last", null, null]).map(drop)).unwrap();
        replica.take(&db, usize::MAX).unwrap();
        replica.check(&db, &table, &at);
    }
    await_purge(&db);
    sound(&db);
    is_cut
}

fn end_prepared(db: &Database) -> Result<()> {
    db.prepared().iter().try_for_each(|prepared| db.finish_prepared(&prepared.xid, prepared.transaction % 2 == 0))
}

#[test]
fn a_consumer_that_goes_on_after_any_cut_has_what_the_database_has() {
    let mut changes = 0;
    while cut_at(changes, changes * 7 % 31, FlushLog::Sync) {
        changes += 1;
    }
    assert!(changes > 40, "{changes} changes");
}

/// Commits are in the redo log, and only the consumer has made them durable.
#[test]
fn what_was_handed_out_survives_where_commits_do_not() {
    let mut changes = 0;
    while cut_at(changes, changes * 5 % 17, FlushLog::EverySecond) {
        changes += 1;
    }
    assert!(changes > 10, "{changes} changes");
}
