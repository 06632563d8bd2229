//! The operations whose growth is measured.

use super::{Growing, timed};
use highwater::internals::{BackgroundStep, DeterministicDb, OpenOverrides};
use highwater::{
    BackupOptions, Database, Isolation, Options, RestoreOptions, Schema, Table, TxnOptions, Type, WriteTxn, values,
};
use highwater_bench::{Error, Result};
use highwater_storage::StorageSet;
use std::ops::ControlFlow::Continue;
use std::path::PathBuf;
use std::sync::{Arc, Barrier};
use std::time::Duration;

/// Every operation.
pub const OPERATIONS: &[Growing] = &[
    Growing { name: "rollback", of: "updates of one row", size: 2000, run: rollback },
    Growing { name: "savepoints", of: "updates of one row, and rollbacks to savepoints", size: 1000, run: savepoints },
    Growing { name: "recovery", of: "updates of one row, cut off by a crash", size: 2000, run: recovery },
    Growing { name: "purge", of: "updates of one row, half of them kept by a snapshot", size: 2000, run: purge },
    Growing { name: "versions", of: "versions of a row under an old snapshot", size: 5000, run: versions },
    Growing {
        name: "duplicates",
        of: "times a unique value is taken while a snapshot is open",
        size: 2000,
        run: duplicates,
    },
    Growing { name: "bulk-recovery", of: "rows inserted, cut off by a crash", size: 8000, run: bulk_recovery },
    Growing { name: "create-tables", of: "tables created", size: 300, run: create_tables },
    Growing { name: "drop-tables", of: "tables dropped", size: 300, run: drop_tables },
    Growing { name: "rename-table", of: "renamings of one table", size: 300, run: rename_table },
    Growing { name: "index-build", of: "rows of which an index is built", size: 8000, run: index_build },
    Growing { name: "open-tables", of: "tables at an opening", size: 2000, run: open_tables },
    Growing { name: "backup-chain", of: "incremental backups, restored", size: 4, run: backup_chain },
    Growing { name: "waiting", of: "sessions that wait for one row", size: 100, run: waiting },
    Growing { name: "ranges", of: "sessions that hold one range", size: 500, run: ranges },
];

pub(super) fn options() -> Options {
    Options { buffer_pool_size: 96 << 20, log_file_size: 64 << 20, ..Options::default() }
}

pub(super) fn open(storage: StorageSet) -> Result<DeterministicDb> {
    Ok(DeterministicDb::open(storage, options(), &OpenOverrides::default(), Arc::default())?)
}

/// A table of a key, a number that is indexed, and a name that is unique.
pub(super) fn table(db: &Database) -> Result<Table> {
    let schema = Schema::new()
        .column("id", Type::U64)
        .column("number", Type::U64)
        .column("name", Type::Text(100))
        .primary_key(&["id"])
        .index("by_number", &["number"])
        .unique_index("by_name", &["name"]);
    Ok(db.create_table("growing", schema)?)
}

/// A new database with the table, which has one row, of key 1.
fn one_row() -> Result<(DeterministicDb, Table)> {
    let db = open(StorageSet::memory())?;
    let table = table(db.database())?;
    db.database().transact(|txn| txn.insert(&table, &values![1u64, 0u64, "the row"]).map(drop))?;
    Ok((db, table))
}

/// Updates the row, each time by another transaction.
fn commit_updates(db: &Database, table: &Table, numbers: std::ops::Range<usize>) -> Result<()> {
    for n in numbers {
        db.transact(|txn| txn.update(table, &values![1u64], &[(1, (n as u64).into())]).map(drop))?;
    }
    Ok(())
}

fn rollback(n: usize) -> Result<Duration> {
    let (db, table) = one_row()?;
    let mut txn = db.database().begin()?;
    for number in 1..=n as u64 {
        txn.update(&table, &values![1u64], &[(1, number.into())])?;
    }
    timed(|| Ok(txn.rollback()?))
}

fn savepoints(n: usize) -> Result<Duration> {
    let (db, table) = one_row()?;
    let mut txn = db.database().begin()?;
    for number in 1..=n as u64 {
        txn.update(&table, &values![1u64], &[(1, number.into())])?;
    }
    timed(|| {
        for number in 1..=n as u64 {
            let savepoint = txn.savepoint();
            txn.update(&table, &values![1u64], &[(1, (number * 7).into())])?;
            txn.rollback_to(savepoint)?;
        }
        Ok(())
    })
}

/// Opens a database after a power cut during the transaction that `work` began, whose redo is durable.
fn cut_off(work: impl FnOnce(&Database, &Table) -> Result<WriteTxn>) -> Result<Duration> {
    let storage = StorageSet::memory();
    let db = open(storage.clone())?;
    let txn = work(db.database(), &table(db.database())?)?;
    db.database().flush_log()?;
    let left = storage.cut(1);
    drop(txn);
    let mut opened = None;
    let took = timed(|| {
        opened = Some(open(left)?);
        Ok(())
    })?;
    Ok(took)
}

fn recovery(n: usize) -> Result<Duration> {
    cut_off(|db, table| {
        db.transact(|txn| txn.insert(table, &values![1u64, 0u64, "the row"]).map(drop))?;
        let mut txn = db.begin()?;
        for number in 1..=n as u64 {
            txn.update(table, &values![1u64], &[(1, number.into())])?;
        }
        Ok(txn)
    })
}

fn bulk_recovery(n: usize) -> Result<Duration> {
    cut_off(|db, table| {
        let mut txn = db.begin()?;
        for id in 1..=n as u64 {
            // In no order.
            let key = id.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            txn.insert(table, &values![key, id, format!("name {id}").as_str()])?;
        }
        Ok(txn)
    })
}

/// Purges until nothing can be purged; the row is changed meanwhile.
fn purge(n: usize) -> Result<Duration> {
    let (db, table) = one_row()?;
    commit_updates(db.database(), &table, 1..n / 2)?;
    let mut old = db.database().snapshot()?;
    old.get(&table, &values![1u64])?;
    commit_updates(db.database(), &table, n / 2..n)?;
    timed(|| {
        let (mut before, mut number) = (usize::MAX, n);
        loop {
            let left = db.database().purge_state().history_list_length as usize;
            if left >= before {
                return Ok(());
            }
            before = left;
            db.step(BackgroundStep::Purge)?;
            commit_updates(db.database(), &table, number..number + 20)?;
            number += 20;
        }
    })
}

fn versions(n: usize) -> Result<Duration> {
    let (db, table) = one_row()?;
    let mut old = db.database().snapshot()?;
    old.get(&table, &values![1u64])?;
    commit_updates(db.database(), &table, 1..n)?;
    timed(|| (0..10).try_for_each(|_| Ok(old.get(&table, &values![1u64]).map(drop)?)))
}

fn duplicates(n: usize) -> Result<Duration> {
    let (db, table) = one_row()?;
    let mut old = db.database().snapshot()?;
    old.get(&table, &values![1u64])?;
    timed(|| {
        for id in 2..n as u64 {
            db.database().transact(|txn| txn.insert(&table, &values![id, id, "the name"]).map(drop))?;
            db.database().transact(|txn| txn.delete(&table, &values![id]).map(drop))?;
            if id % 50 == 0 {
                db.step(BackgroundStep::Purge)?;
            }
        }
        Ok(())
    })
}

fn create(db: &Database, tables: usize) -> Result<()> {
    for n in 0..tables {
        let schema = Schema::new().column("id", Type::U64).primary_key(&["id"]);
        db.create_table(&format!("table_{n}"), schema)?;
    }
    Ok(())
}

fn create_tables(n: usize) -> Result<Duration> {
    let db = open(StorageSet::memory())?;
    timed(|| create(db.database(), n))
}

fn drop_tables(n: usize) -> Result<Duration> {
    let db = open(StorageSet::memory())?;
    create(db.database(), n)?;
    timed(|| (0..n).try_for_each(|n| Ok(db.database().drop_table(&format!("table_{n}"))?)))
}

fn rename_table(n: usize) -> Result<Duration> {
    let (db, _) = one_row()?;
    let name = |number: usize| if number == 0 { "growing".to_string() } else { format!("growing_{number}") };
    timed(|| {
        (0..n).try_for_each(|number| Ok(db.database().rename_table(&*name(number), &name(number + 1)).map(drop)?))
    })
}

fn index_build(n: usize) -> Result<Duration> {
    let db = open(StorageSet::memory())?;
    let table = table(db.database())?;
    db.database().transact(|txn| {
        (0..n as u64).try_for_each(|id| txn.insert(&table, &values![id, id, format!("name {id}").as_str()]).map(drop))
    })?;
    timed(|| Ok(db.database().create_index("growing", "by_both", &["name", "number"], true)?))
}

fn open_tables(n: usize) -> Result<Duration> {
    let storage = StorageSet::memory();
    let db = open(storage.clone())?;
    create(db.database(), n)?;
    db.close()?;
    let mut opened = None;
    timed(|| {
        opened = Some(open(storage)?);
        Ok(())
    })
}

/// Takes a full backup and this many incremental ones, and restores them.
fn backup_chain(n: usize) -> Result<Duration> {
    let folder = Scratch::new()?;
    let db = Database::open_storage(StorageSet::memory(), options())?;
    let table = table(&db)?;
    timed(|| {
        let mut chain: Vec<PathBuf> = Vec::new();
        for id in 0..n as u64 {
            db.transact(|txn| txn.insert(&table, &values![id, id, format!("name {id}").as_str()]).map(drop))?;
            let backup = folder.0.join(format!("backup-{id}"));
            let options = BackupOptions { base: chain.last().cloned(), max_bytes_per_s: 0, ..BackupOptions::default() };
            db.backup(&backup, &options, &mut |_| Continue(()))?;
            chain.push(backup);
        }
        let options = RestoreOptions { database: options(), ..RestoreOptions::default() };
        Database::restore(&chain, folder.0.join("restored"), &options, &mut |_| Continue(()))?;
        Ok(())
    })
}

/// Sessions wait for one row, change it one after another and commit.
fn waiting(n: usize) -> Result<Duration> {
    let db = Database::open_storage(StorageSet::memory(), options())?;
    let table = table(&db)?;
    db.transact(|txn| txn.insert(&table, &values![1u64, 0u64, "the row"]).map(drop))?;
    let mut first = db.begin()?;
    first.update(&table, &values![1u64], &[(1, 1u64.into())])?;
    // The sessions' threads live until their time is known.
    let (done, known) = (Barrier::new(n + 1), Barrier::new(n + 1));
    let session = |number: u64| {
        let changed = db.transact(|txn| txn.update(&table, &values![1u64], &[(1, number.into())]));
        done.wait();
        known.wait();
        changed
    };
    let session = &session;
    std::thread::scope(|scope| {
        let sessions: Vec<_> = (0..n as u64).map(|number| scope.spawn(move || session(number))).collect();
        let took = timed(|| {
            while db.stats().row_lock_current_waits < n as u64 {
                std::thread::sleep(Duration::from_millis(1));
            }
            first.commit()?;
            done.wait();
            Ok(())
        });
        known.wait();
        for session in sessions {
            session.join().expect("a session does not panic")?;
        }
        took
    })
}

/// Sessions read one range under SERIALIZABLE; then rows are inserted next to it, and the sessions end.
fn ranges(n: usize) -> Result<Duration> {
    let (db, table) = one_row()?;
    timed(|| {
        let mut sessions = Vec::new();
        for _ in 0..n {
            let options = TxnOptions { isolation: Isolation::Serializable, ..TxnOptions::default() };
            let mut session = db.database().begin_with(options)?;
            session.get(&table, &values![500u64])?;
            sessions.push(session);
        }
        for id in 0..n as u64 {
            let key = 1000 + id;
            db.database().transact(|txn| txn.insert(&table, &values![key, id, format!("{id}").as_str()]).map(drop))?;
        }
        sessions.into_iter().try_for_each(|session| Ok(session.commit()?))
    })
}

/// A folder that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Scratch> {
        let path = std::env::temp_dir().join(format!("highwater-growth-{}-{}", std::process::id(), fastrand::u64(..)));
        std::fs::create_dir(&path).map_err(|source| Error::File { path: path.clone(), source })?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A file that cannot be removed is not a reason to fail.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
