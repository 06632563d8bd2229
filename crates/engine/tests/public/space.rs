//! Space that is not needed goes back to the file system, while transactions run and at a closing.

use crate::support::{await_purge, memory, open, sound};
use crate::testing::{by_id, commit_all};
use highwater::config::{FlushLog, PageSize, PageStoreKind};
use highwater::{Database, Options, Table, Type, values};
use highwater_storage::{Faults, MemoryDevice, StorageSet};
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

const ROWS: u64 = 20_000;

fn table(db: &Database) -> Table {
    db.create_table("t", by_id().column("x", Type::Text(200)).index("by_x", &["x"])).unwrap()
}

fn insert(db: &Database, table: &Table, ids: std::ops::Range<u64>) {
    let text = |id: u64| format!("{:08}{}", id * 7919 % ROWS, "x".repeat(100));
    commit_all(db, ids.clone(), |txn, id| txn.insert(table, &values![id, text(id).as_str()]));
}

fn data_bytes(storage: &StorageSet) -> u64 {
    storage.data.len_bytes().unwrap()
}

/// The file becomes shorter without a closing, also when nothing else happens.
#[test]
fn a_dropped_table_leaves_a_short_file() {
    let db = memory();
    let table = table(&db);
    (0..ROWS).step_by(1000).for_each(|first| insert(&db, &table, first..first + 1000));
    let full = data_bytes(&db.storage);
    drop(table);
    db.drop_table("t").unwrap();
    let since = Instant::now();
    while data_bytes(&db.storage) > full / 3 {
        assert!(since.elapsed() < Duration::from_secs(120), "{} of {full} bytes", data_bytes(&db.storage));
        std::thread::sleep(Duration::from_millis(20));
    }
    sound(&db);
    db.close().unwrap();
}

/// A closing frees what was dropped a moment before.
#[test]
fn a_closing_leaves_a_short_file() {
    let storage = StorageSet::memory();
    let db = open(&storage);
    let table = table(&db);
    (0..ROWS).step_by(1000).for_each(|first| insert(&db, &table, first..first + 1000));
    let full = data_bytes(&storage);
    drop(table);
    db.drop_table("t").unwrap();
    db.close().unwrap();
    let closed = data_bytes(&storage);
    assert!(closed < full / 3, "{closed} of {full} bytes");
    sound(&open(&storage));
    assert!(data_bytes(&storage) <= closed.max(4 << 20));
}

/// Rows keep pointers to undo that is purged: its page may be beyond the present end of the file.
#[test]
fn rows_whose_undo_was_behind_the_end_are_sound() {
    let db = memory();
    let table = table(&db);
    insert(&db, &table, 0..1000);
    let mut old = db.snapshot().unwrap();
    old.get(&table, &values![0u64]).unwrap().unwrap();
    for round in 0..20 {
        let text = format!("{round}{}", "y".repeat(150));
        commit_all(&db, 0..1000u64, |txn, id| txn.update(&table, &values![id], &[(1, text.as_str().into())]));
    }
    let full = data_bytes(&db.storage);
    drop(old);
    await_purge(&db);
    db.compact(&mut |_| ControlFlow::Continue(())).unwrap();
    assert!(data_bytes(&db.storage) < full / 2, "{} of {full} bytes", data_bytes(&db.storage));
    sound(&db);
    db.close().unwrap();
}

/// Writers and readers continue while pages are moved.
#[test]
fn a_compaction_with_writers_loses_nothing() {
    for page_store in [PageStoreKind::InPlace, PageStoreKind::OutOfPlace] {
        let storage = StorageSet::memory();
        let options = Options { page_store, segment_size: 256 << 10, buffer_pool_size: 2 << 20, ..Options::default() };
        let db = Database::open_storage(storage.clone(), options).unwrap();
        let table = table(&db);
        (0..ROWS).step_by(1000).for_each(|first| insert(&db, &table, first..first + 1000));
        for first in (0..ROWS).step_by(1000) {
            let gone = || (first..first + 1000).filter(|id| !id.is_multiple_of(10));
            commit_all(&db, gone(), |txn, id| txn.delete(&table, &values![id]));
        }
        let done = AtomicBool::new(false);
        let (written, report) = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut next = ROWS;
                while !done.load(Relaxed) && next < 2 * ROWS {
                    insert(&db, &table, next..next + 10);
                    next += 10;
                    let mut txn = db.begin().unwrap();
                    assert!(txn.get(&table, &values![next - 1]).unwrap().is_some());
                    assert!(txn.get(&table, &values![next * 10 % ROWS]).unwrap().is_some());
                }
                next - ROWS
            });
            let mut report = db.compact(&mut |_| ControlFlow::Continue(())).unwrap();
            for _ in 0..3 {
                report = db.compact(&mut |_| ControlFlow::Continue(())).unwrap();
            }
            done.store(true, Relaxed);
            (writer.join().unwrap(), report)
        });
        let mut txn = db.begin().unwrap();
        let count = txn.scan(&table).iter().unwrap().count() as u64;
        assert_eq!(count, ROWS / 10 + written, "{page_store:?}: {report:?}");
        drop(txn);
        sound(&db);
        db.close().unwrap();
    }
}

/// Bytes that the files of a folder have on their file system; each file is printed for a test that fails.
fn allocated_bytes(folder: &Path) -> u64 {
    let bytes_of = |file: std::io::Result<std::fs::DirEntry>| {
        let file = file.unwrap();
        let (name, metadata) = (file.file_name(), file.metadata().unwrap());
        println!("{name:?}: {} bytes, allocated {}", metadata.len(), metadata.blocks() * 512);
        metadata.blocks() * 512
    };
    std::fs::read_dir(folder).unwrap().map(bytes_of).sum()
}

/// An empty database takes 256 KiB at most when it is closed; its files are as long as before.
#[test]
fn a_small_database_that_is_closed_takes_little_room() {
    let stores = [PageStoreKind::InPlace, PageStoreKind::OutOfPlace].into_iter();
    let sizes = [PageSize::Bytes(4096), PageSize::Bytes(16384)];
    for (page_store, page_size) in stores.flat_map(|store| sizes.map(|size| (store, size))) {
        let folder = tempfile::tempdir().unwrap();
        let options = Options { page_size, page_store, buffer_pool_size: 8 << 20, ..Options::default() };
        let open = || Database::open(folder.path(), options.clone()).unwrap();
        for _ in 0..3 {
            open().close().unwrap();
            let allocated = allocated_bytes(folder.path());
            assert!(allocated <= 256 << 10, "{allocated} bytes: {page_store:?}, {page_size:?}");
        }
        let db = open();
        let table = table(&db);
        insert(&db, &table, 0..10);
        let in_use = allocated_bytes(folder.path());
        assert!(in_use > 4 << 20, "{in_use} bytes: what may be written has its place");
        sound(&db);
        db.close().unwrap();
        assert!(allocated_bytes(folder.path()) < 512 << 10);
        let db = open();
        sound(&db);
        assert_eq!(db.snapshot().unwrap().scan(&db.table("t").unwrap()).iter().unwrap().count(), 10);
    }
}

/// A small database out of place grows while it is written, and is small again once it is closed, whether its rows
/// were updated or deleted; what it has is there.
#[test]
fn a_small_database_out_of_place_grows_and_shrinks() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { page_store: PageStoreKind::OutOfPlace, buffer_pool_size: 2 << 20, ..Options::default() };
    let open = || Database::open(folder.path(), options.clone()).unwrap();
    let db = open();
    let rows = table(&db);
    (0..ROWS).step_by(1000).for_each(|first| insert(&db, &rows, first..first + 1000));
    db.close().unwrap();
    let full = allocated_bytes(folder.path());
    let db = open();
    let rows = db.table("t").unwrap();
    for first in (0..ROWS).step_by(1000) {
        let gone = || (first..first + 1000).filter(|id| *id >= 100);
        commit_all(&db, gone(), |txn, id| txn.delete(&rows, &values![id]));
    }
    await_purge(&db);
    db.compact(&mut |_| ControlFlow::Continue(())).unwrap();
    for _ in 0..3 {
        for id in 0..100u64 {
            db.transact(|txn| txn.update(&rows, &values![id], &[("x", "again".into())]).map(drop)).unwrap();
        }
    }
    sound(&db);
    db.close().unwrap();
    let small = allocated_bytes(folder.path());
    assert!(full > 4 << 20 && small < 1 << 20, "{full} bytes, then {small}");
    let db = open();
    sound(&db);
    assert_eq!(db.snapshot().unwrap().scan(&db.table("t").unwrap()).iter().unwrap().count(), 100);
    let rows = db.table("t").unwrap();
    (ROWS..2 * ROWS).step_by(1000).for_each(|first| insert(&db, &rows, first..first + 1000));
    sound(&db);
    db.close().unwrap();
    assert!(allocated_bytes(folder.path()) > 4 << 20);
}

/// It needs room to be opened, and on a full disk it is as it was.
#[test]
fn a_small_database_opens_once_there_is_room() {
    for (at, page_store) in
        [(0, PageStoreKind::OutOfPlace)].into_iter().chain((0..3).map(|at| (at, PageStoreKind::InPlace)))
    {
        let devices = [0; 3].map(|_| MemoryDevice::limited(16 << 20));
        let storage = StorageSet::of_memory(devices.clone());
        let options = Options { page_store, segment_size: 256 << 10, ..Options::default() };
        let open = |storage: &StorageSet| Database::open_storage(storage.clone(), options.clone()).unwrap();
        let db = open(&storage);
        insert(&db, &table(&db), 0..10);
        db.close().unwrap();
        devices[at].fill_up();
        let error = Database::open_storage(storage.clone(), options.clone()).err().unwrap();
        assert!(matches!(&error, highwater::Error::DiskFull { .. }), "{at}: {error}");
        devices[at].others_leave();
        let db = open(&storage);
        devices[at].fill_up();
        let table = db.table("t").unwrap();
        commit_all(&db, 0..10u64, |txn, id| txn.delete(&table, &values![id]));
        sound(&db);
        db.close().unwrap();
    }
}

/// The power is cut at every change of an opening, a commit and a closing of a small database.
#[test]
fn a_power_cut_with_the_rest_of_a_small_database_loses_nothing() {
    for page_store in [PageStoreKind::InPlace, PageStoreKind::OutOfPlace] {
        cut_with_the_rest(&Options {
            flush_log_at_trx_commit: FlushLog::Sync,
            buffer_pool_size: 4 << 20,
            page_store,
            segment_size: 256 << 10,
            ..Options::default()
        });
    }
}

fn cut_with_the_rest(options: &Options) {
    let storage = StorageSet::memory();
    let open = |storage: StorageSet| Database::open_storage_idle(storage, options.clone());
    let db = Database::open_storage(storage.clone(), options.clone()).unwrap();
    insert(&db, &table(&db), 0..10);
    db.close().unwrap();
    for changes in 0.. {
        let (memory, faults) = (storage.cut(0), Faults::new());
        faults.power_off_after(changes);
        let life = || {
            let db = open(memory.map(|device| faults.wrap(device)))?;
            let table = db.table("t")?;
            db.transact(|txn| txn.insert(&table, &values![10u64, "x"]).map(drop))?;
            Ok::<Database, highwater::Error>(db)
        };
        let (mut is_committed, mut is_closed) = (false, false);
        if let Ok(db) = life() {
            is_committed = true;
            is_closed = db.close().is_ok();
        }
        let db = open(memory.cut(changes)).unwrap_or_else(|error| panic!("power off after {changes} changes: {error}"));
        sound(&db);
        let rows = db.snapshot().unwrap().scan(&db.table("t").unwrap()).iter().unwrap().count();
        assert!(rows == 11 || rows == 10 && !is_committed, "power off after {changes} changes: {rows} rows");
        if is_closed && !faults.is_power_off() {
            assert!(changes > 10, "{changes}");
            break;
        }
    }
}
