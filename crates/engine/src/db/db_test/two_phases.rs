//! Two-phase commit while the redo log is full, and the number of syncs that a group commit costs. The engine runs by
//! steps, without threads.

use crate::Options;
use crate::db::deterministic::DeterministicDb;
use crate::db::open_overrides::OpenOverrides;
use crate::db::testing::{by_id, commit_all};
use crate::db::{Database, PreparedTxn};
use crate::error::Result;
use crate::log::Log;
use crate::mtr::MTR_REDO_BYTES;
use crate::table::{Table, Type};
use crate::testing::small_options;
use crate::txn::{Isolation, TxnOptions};
use crate::undo::Xid;
use crate::values;
use highwater_storage::{Request, StorageSet, TestDevice};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::{Sender, channel};
use std::thread::Scope;
use std::time::Duration;

fn open(storage: StorageSet) -> DeterministicDb {
    let options = Options { lock_wait_timeout_ms: 300, ..small_options() };
    DeterministicDb::open(storage, options, &OpenOverrides::default(), Arc::default()).unwrap()
}

fn numbers(db: &Database) -> Table {
    db.create_table("numbers", by_id()).unwrap()
}

fn prepare(db: &Database, table: &Table, id: u64) -> Result<PreparedTxn> {
    let mut txn = db.begin()?;
    txn.insert(table, &values![id])?;
    txn.prepare(Xid::new(1, &id.to_le_bytes(), b"")?).map(|prepared| prepared.expect("it has written"))
}

/// Fills the redo log except for the space of `room` mini-transactions, until the sender is dropped.
fn fill_log<'s>(scope: &'s Scope<'s, '_>, log: &'s Log, room: usize) -> Sender<()> {
    let (fill, full) = channel();
    let (release, released) = channel();
    scope.spawn(move || {
        let sizes = [MTR_REDO_BYTES as u64, 4 << 10, 64, 1];
        let mut hog: Vec<_> =
            sizes.into_iter().flat_map(|n| std::iter::from_fn(move || log.reserve_at_once(n))).collect();
        hog.drain(..room);
        fill.send(()).unwrap();
        let _ = released.recv();
    });
    full.recv().unwrap();
    release
}

/// No thread makes a checkpoint, and the ring is full: a commit that had to wait for space would wait for ever.
#[test]
fn a_commit_after_prepare_waits_for_no_redo_space() {
    let storage = StorageSet::memory();
    let db = open(storage.clone());
    let table = numbers(db.database());
    let prepared: Vec<_> = (0..5).map(|id| prepare(db.database(), &table, id).unwrap()).collect();
    let log = &db.database().context().log;
    let ended = std::thread::scope(|scope| {
        let release = fill_log(scope, log, 0);
        assert!(log.reserve_at_once(1).is_none());
        let (end, ended) = channel();
        scope.spawn(move || {
            for prepared in prepared {
                prepared.commit_ordered().unwrap();
            }
            end.send(()).unwrap();
        });
        let ended = ended.recv_timeout(Duration::from_secs(20));
        drop(release);
        ended
    });
    assert!(ended.is_ok(), "a commit waited for redo space");
    assert_eq!(db.database().snapshot().unwrap().scan(&table).count().unwrap(), 5);
    db.close().unwrap();
    let db = open(storage);
    assert!(db.database().prepared().is_empty());
}

/// The log is full in the middle of a rollback, and durable up to there when the power goes off: the transaction is not
/// prepared, and the opening undoes the rest.
#[test]
fn a_cut_in_the_middle_of_a_rollback_leaves_no_prepared_transaction() {
    const ROWS: u64 = 400;
    let storage = StorageSet::memory();
    let db = open(storage.clone());
    let database = db.database();
    let table = database.create_table("rows", by_id().column("value", Type::Text(400))).unwrap();
    let (old, new) = ("o".repeat(400), "n".repeat(400));
    commit_all(database, 0..ROWS, |txn, id| txn.insert(&table, &values![id, &*old]));
    let mut txn = database.begin().unwrap();
    for id in 0..ROWS {
        txn.update(&table, &values![id], &[(1, (&*new).into())]).unwrap();
    }
    let prepared = txn.prepare(Xid::new(1, b"order-17", b"").unwrap()).unwrap().unwrap();
    let log = &database.context().log;
    let after = std::thread::scope(|scope| {
        let release = fill_log(scope, log, 2);
        let begin = log.end_lsn();
        let rollback = scope.spawn(|| prepared.rollback().unwrap());
        // Its first change is undone long before.
        while log.end_lsn().0 < begin.0 + (16 << 10) {
            assert!(!rollback.is_finished(), "all of it is undone");
            std::thread::yield_now();
        }
        log.flush_to(log.end_lsn()).unwrap();
        let after = storage.cut(7);
        assert!(!rollback.is_finished(), "there was room for all of it");
        drop(release);
        after
    });
    for db in [db, open(after)] {
        let database = db.database();
        assert_eq!(database.prepared(), [], "it lacks changes and is prepared");
        let (table, mut read) = (database.table("rows").unwrap(), database.snapshot().unwrap());
        for id in 0..ROWS {
            assert_eq!(read.get(&table, &values![id]).unwrap().unwrap().str(1), old, "row {id}");
        }
        assert_eq!(database.check().unwrap().findings, []);
    }
}

/// Counts the syncs of a device, and holds them while it is closed.
#[derive(Default)]
struct Gate {
    is_closed: Mutex<bool>,
    opened: Condvar,
    syncs: AtomicU64,
}

impl Gate {
    fn set_closed(&self, is_closed: bool) {
        *self.is_closed.lock() = is_closed;
        self.opened.notify_all();
    }

    fn pass(&self) {
        self.syncs.fetch_add(1, SeqCst);
        let mut is_closed = self.is_closed.lock();
        while *is_closed {
            self.opened.wait(&mut is_closed);
        }
    }
}

/// Sixteen transactions that prepare while a sync is under way share the next one; their commits share another.
#[test]
fn a_group_costs_two_syncs() {
    const GROUP: u64 = 16;
    let storage = StorageSet::memory();
    let gate = Arc::new(Gate::default());
    let passed = gate.clone();
    let redo = TestDevice::over(storage.redo.clone()).before(move |request| {
        if matches!(request, Request::Sync) {
            passed.pass();
        }
        Ok(())
    });
    let db = open(StorageSet::of_devices(storage.data.clone(), Arc::new(redo), storage.doublewrite.clone()));
    let (database, table) = (db.database(), numbers(db.database()));
    let log = &database.context().log;
    for round in 1..4u64 {
        let before = gate.syncs.load(SeqCst);
        gate.set_closed(true);
        let group: Vec<PreparedTxn> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..=GROUP)
                .map(|n| {
                    let (database, table) = (&database, &table);
                    let thread = scope.spawn(move || prepare(database, table, round * 100 + n).unwrap());
                    // The first one leads alone; the others wait behind it.
                    while gate.syncs.load(SeqCst) == before || log.waiting_for_sync() < n as usize {
                        std::thread::yield_now();
                    }
                    thread
                })
                .collect();
            gate.set_closed(false);
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(gate.syncs.load(SeqCst) - before, 2, "one of the first, one of the group");
        let lsns: Vec<u64> = group.into_iter().map(|prepared| prepared.commit_ordered().unwrap()).collect();
        assert!(lsns.is_sorted());
        assert_eq!(gate.syncs.load(SeqCst) - before, 2, "commits are appended only");
        assert_eq!(database.snapshot().unwrap().scan(&table).count().unwrap(), round * (GROUP + 1));
        database.wait_durable(*lsns.last().unwrap()).unwrap();
        lsns.iter().for_each(|lsn| database.wait_durable(*lsn).unwrap());
        assert_eq!(
            gate.syncs.load(SeqCst) - before,
            3,
            "a group costs one sync for its prepares and one for its commits"
        );
    }
    assert_eq!(database.stats().trx_prepares, 3 * (GROUP + 1));
}

/// A prepared transaction may wait for days: it holds no view, also one of a statement that it was prepared in.
#[test]
fn a_prepared_transaction_holds_no_view() {
    let db = open(StorageSet::memory());
    let (database, table) = (db.database(), numbers(db.database()));
    let prepared_under = |isolation| {
        let mut txn = database.begin_with(TxnOptions { isolation, ..TxnOptions::default() }).unwrap();
        txn.begin_statement().unwrap();
        assert!(txn.get(&table, &values![1_000u64]).unwrap().is_none());
        txn.insert(&table, &values![isolation as u64]).unwrap();
        std::thread::sleep(Duration::from_millis(3));
        assert!(database.inner.txn_system().oldest_view_age_ms() > 0);
        let prepared = txn.prepare(Xid::new(1, &[isolation as u8], b"").unwrap()).unwrap().unwrap();
        assert_eq!(database.inner.txn_system().oldest_view_age_ms(), 0, "{isolation:?}");
        prepared
    };
    for isolation in [Isolation::ReadCommitted, Isolation::RepeatableRead] {
        prepared_under(isolation).commit().unwrap();
    }
}
