//! A full disk at the commit of changes that are logged: the commit is refused, and neither the rows nor the log have
//! anything of it.

use super::changes::Replica;
use crate::testing::{by_id, commit_all};
use highwater::config::PageSize;
use highwater::{Database, Error, Options, Table, Type, values};
use highwater_storage::{MemoryDevice, StorageSet};

const ROWS: u64 = 20;
const BYTES: usize = 1500;

fn disk(limit_bytes: u64) -> StorageSet {
    StorageSet::of_memory([MemoryDevice::limited(limit_bytes), MemoryDevice::new(), MemoryDevice::new()])
}

fn open(set: &StorageSet) -> Database {
    let options = Options {
        page_size: PageSize::Bytes(4096),
        buffer_pool_size: 4 << 20,
        log_file_size: 4 << 20,
        log_buffer_size: 1 << 20,
        lock_wait_timeout_ms: 500,
        ..Options::default()
    };
    Database::open_storage(set.clone(), options).unwrap()
}

/// The copy by the whole log equals the table.
fn agree(db: &Database, table: &Table, at: &str) {
    let mut replica = Replica::default();
    replica.take(db, usize::MAX).unwrap();
    replica.check(db, table, at);
}

#[test]
fn a_commit_that_finds_no_room_for_its_changes_is_refused_as_a_whole() {
    let set = disk(6 << 20);
    let db = open(&set);
    let table = db.create_table("t", by_id().column("v", Type::Text(BYTES as u32)).log_changes()).unwrap();
    let text = |n: u64| format!("{n:0BYTES$}");
    commit_all(&db, 0..ROWS, |txn, id| txn.insert(&table, &values![id, text(0).as_str()]));
    // The rows need no more room; their changes do.
    let mut refused = [0, 0];
    for round in 1..100_000u64 {
        let (id, before) = (round % ROWS, db.last_change().unwrap());
        let mut txn = db.begin().unwrap();
        let old = txn.get(&table, &values![id]).unwrap().unwrap().to_values();
        let updated = txn.update(&table, &values![id], &[(1, text(round).as_str().into())]);
        let (statement, done) = match updated {
            Ok(_) => (0, txn.commit()),
            Err(error) => (1, txn.rollback().and(Err(error))),
        };
        match done {
            Ok(()) => continue,
            Err(Error::DiskFull { .. }) => refused[statement] += 1,
            Err(error) => panic!("round {round}: {error}"),
        }
        assert_eq!(db.last_change().unwrap(), before, "round {round}");
        assert_eq!(db.snapshot().unwrap().get(&table, &values![id]).unwrap().unwrap().to_values(), old);
        if refused[0] == 3 {
            break;
        }
    }
    assert_eq!(refused[0], 3, "{refused:?}");
    agree(&db, &table, "full");
    drop((table, db));

    let db = open(&set.cut(1));
    let table = db.table("t").unwrap();
    agree(&db, &table, "after a crash");
    let mut replica = Replica::default();
    replica.take(&db, usize::MAX).unwrap();
    // What consumers have makes room.
    db.trim_changes(db.last_change().unwrap()).unwrap();
    let begun = std::time::Instant::now();
    while let Err(error) = db.transact(|txn| txn.update(&table, &values![3u64], &[(1, "again".into())]).map(drop)) {
        assert!(matches!(error, Error::DiskFull { .. }) && begun.elapsed().as_secs() < 60, "{error}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    replica.take(&db, usize::MAX).unwrap();
    replica.check(&db, &table, "continues");
    assert!(db.check().unwrap().is_sound());
}
