//! The calls.

use crate::world::{ROWS, Shared, World};
use highwater::{BackupOptions, Database, Isolation, ReadTxn, RestoreOptions, Result, TxnOptions, WriteTxn, values};
use std::ops::ControlFlow::Continue;
use std::path::PathBuf;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// What makes a call wait.
pub(crate) enum Held {
    Writes(WriteTxn),
    Reads(ReadTxn),
    Runs(JoinHandle<Result<()>>),
}

impl Held {
    /// Ends it. Whether it can still end well depends on the event.
    pub(crate) fn release(self) {
        match self {
            Held::Writes(txn) => drop(txn.rollback()),
            Held::Reads(txn) => drop(txn),
            Held::Runs(thread) => drop(thread.join().unwrap()),
        }
    }
}

pub(crate) struct Call {
    pub name: &'static str,
    /// What is done before it, to make it wait.
    pub hold: fn(&World) -> Vec<Held>,
    pub run: fn(&Shared) -> Result<()>,
    /// Waits for a transaction that stays open until the event is over. A call that waits for another call is not: that
    /// other call may end by itself, or by the event, and then the waiting call continues.
    pub waits: bool,
    /// Only reads while no one can write: a failure of the redo log may come too late for it.
    pub keeps_writers_out: bool,
    /// Uses the database that the event strikes.
    pub uses_database: bool,
}

const PLAIN: Call = Call {
    name: "",
    hold: |_| Vec::new(),
    run: |_| Ok(()),
    waits: false,
    keeps_writers_out: false,
    uses_database: true,
};

const WAIT: Call = Call { waits: true, ..PLAIN };

pub(crate) const CALLS: &[Call] = &[
    Call { name: "check", run: check, keeps_writers_out: true, ..PLAIN },
    Call { name: "repair", run: repair, keeps_writers_out: true, ..PLAIN },
    Call { name: "backup", run: backup, ..PLAIN },
    Call { name: "incremental backup", run: incremental_backup, ..PLAIN },
    Call { name: "dump", run: |the| the.db.dump(std::io::sink()).map(drop), ..PLAIN },
    Call { name: "restore", run: restore, uses_database: false, ..PLAIN },
    Call { name: "index build", run: |the| the.db.create_index("rows", "by_text", &["text", "n"], false), ..PLAIN },
    Call { name: "rebuild", run: rebuild, ..PLAIN },
    Call { name: "scan", run: scan, ..PLAIN },
    Call { name: "visit", run: visit, ..PLAIN },
    Call { name: "deletion of many rows", run: delete_many, ..PLAIN },
    Call { name: "wait of an insert for a range", hold: a_range, run: insert, ..WAIT },
    Call { name: "wait for a row", hold: a_writer, run: update, ..WAIT },
    Call { name: "wait of a schema change for a reader", hold: a_reader, run: drop_index, ..WAIT },
    Call { name: "wait of an index build for a writer", hold: a_writer, run: create_index, ..WAIT },
    Call { name: "wait of a check for a writer", hold: a_writer, run: check, ..WAIT },
    Call { name: "wait of a check for a rebuild", hold: a_rebuild, run: check, keeps_writers_out: true, ..PLAIN },
    Call { name: "wait of a writer for a check", hold: a_check, run: update, keeps_writers_out: true, ..PLAIN },
    Call {
        name: "wait of a schema change for a check",
        hold: a_check,
        run: drop_index,
        keeps_writers_out: true,
        ..PLAIN
    },
];

fn rebuild(the: &Shared) -> Result<()> {
    the.db.rebuild_index("rows", "by_n")
}

fn check(the: &Shared) -> Result<()> {
    let report = the.db.check()?;
    assert!(report.is_sound(), "{:?}", report.findings);
    Ok(())
}

fn repair(the: &Shared) -> Result<()> {
    let report = the.db.repair_indexes(&mut |_, _| {})?;
    assert!(report.found.is_sound() && report.rebuilt.is_empty(), "{report:?}");
    Ok(())
}

fn backup(the: &Shared) -> Result<()> {
    take_backup(the, "backup", None)
}

fn incremental_backup(the: &Shared) -> Result<()> {
    take_backup(the, "incremental", Some(the.backup.clone()))
}

fn take_backup(the: &Shared, name: &str, base: Option<PathBuf>) -> Result<()> {
    let dest = the.folder.join(name);
    let options = BackupOptions { base, ..BackupOptions::default() };
    let taken = the.db.backup(&dest, &options, &mut |_| Continue(()));
    assert_eq!(dest.join("backup.json").exists(), taken.is_ok());
    taken.map(drop)
}

fn restore(the: &Shared) -> Result<()> {
    let options = RestoreOptions { check: true, ..RestoreOptions::default() };
    let chain = [the.backup.clone()];
    // Slow, so that the event comes in between.
    let tell = &mut |_| {
        thread::sleep(Duration::from_millis(20));
        Continue(())
    };
    Database::restore(&chain, the.folder.join("restored"), &options, tell).map(drop)
}

fn scan(the: &Shared) -> Result<()> {
    let mut read = the.db.snapshot()?;
    let rows = read.scan(&the.rows).iter()?.try_fold(0, |count, row| row.map(|_| count + 1))?;
    assert_eq!(rows, ROWS);
    Ok(())
}

fn visit(the: &Shared) -> Result<()> {
    let (mut read, mut rows) = (the.db.snapshot()?, 0);
    read.scan(&the.rows).visit(|_| {
        rows += 1;
        Continue(())
    })?;
    assert_eq!(rows, ROWS);
    Ok(())
}

fn update(the: &Shared) -> Result<()> {
    let mut txn = the.db.begin()?;
    assert!(txn.update(&the.rows, &values![1u64], &[(1, 7u64.into())])?);
    txn.rollback()
}

/// They are all there again afterwards.
fn delete_many(the: &Shared) -> Result<()> {
    let mut txn = the.db.begin()?;
    assert_eq!(txn.scan(&the.rows).delete()?, ROWS);
    txn.rollback()
}

fn insert(the: &Shared) -> Result<()> {
    let mut txn = the.db.begin()?;
    txn.insert(&the.rows, &values![ROWS + 7, 1u64, "x"])?;
    txn.rollback()
}

fn drop_index(the: &Shared) -> Result<()> {
    the.db.drop_index("rows", "by_n")
}

fn create_index(the: &Shared) -> Result<()> {
    the.db.create_index("rows", "by_text", &["text"], false)
}

fn a_writer(world: &World) -> Vec<Held> {
    let mut txn = world.shared().db.begin().unwrap();
    txn.update(&world.shared().rows, &values![1u64], &[(1, 9u64.into())]).unwrap();
    vec![Held::Writes(txn)]
}

/// A transaction into whose range nothing can be inserted.
fn a_range(world: &World) -> Vec<Held> {
    let options = TxnOptions { isolation: Isolation::Serializable, ..TxnOptions::default() };
    let mut txn = world.shared().db.begin_with(options).unwrap();
    assert!(txn.get(&world.shared().rows, &values![ROWS + 7]).unwrap().is_none());
    vec![Held::Writes(txn)]
}

fn a_reader(world: &World) -> Vec<Held> {
    let mut read = world.shared().db.snapshot().unwrap();
    read.get(&world.shared().rows, &values![1u64]).unwrap().unwrap();
    vec![Held::Reads(read)]
}

fn a_rebuild(world: &World) -> Vec<Held> {
    concurrently(world, rebuild)
}

fn a_check(world: &World) -> Vec<Held> {
    concurrently(world, check)
}

/// A long call that another one waits for.
fn concurrently(world: &World, call: fn(&Shared) -> Result<()>) -> Vec<Held> {
    world.reads.slow_down();
    let the = world.share();
    let held = vec![Held::Runs(thread::spawn(move || call(&the)))];
    world.await_progress();
    held
}
