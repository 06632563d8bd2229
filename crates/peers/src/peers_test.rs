//! What every engine must do, on the same small table: the same test for all.
//!
//! Rules
//! 1. Rows, scans and a secondary index read as they were written; an index follows every change of its rows.
//! 2. What was rolled back, or dropped, is not there. A snapshot does not see what was committed after it was taken.
//! 3. What was committed is there after the database was closed and opened again; what was committed durably, also when
//!    its process was killed.
//! 4. Writers of the same row lose no update: a writer that cannot continue may try again.

use crate::kv::KvStore;
use crate::peer;
use crate::settings::{Peer, Settings};
use highwater::{Error as EngineError, Type, values};
use highwater_bench::peers::{self, Verify};
use highwater_bench::store::embedded::Embedded;
use highwater_bench::store::{
    Column, IndexSpec, Read, RowChanges, RowView, Scan, Session, TableSpec, Transaction, column, nullable,
};
use highwater_bench::{Error, Result};
use std::ops::ControlFlow;
use std::path::Path;

const COLUMNS: &[Column] = &[
    column("part", Type::U32),
    column("name", Type::Text(20)),
    column("n", Type::I32),
    nullable("note", Type::Text(40)),
    column("sum", Type::I64),
];
const INDEXES: &[IndexSpec] = &[IndexSpec { name: "by_n", columns: &["n"] }];

pub(crate) fn spec() -> TableSpec {
    TableSpec {
        name: "things".into(),
        columns: COLUMNS,
        auto_increment: None,
        primary_key: &["part", "name"],
        indexes: INDEXES,
    }
}

pub(crate) fn settings(durable: bool) -> Settings {
    Settings { cache_bytes: 32 << 20, durable, clients: 4, beyond_memory: false, options: Vec::new() }
}

/// The part and name of the rows that a scan visits.
fn names<R: Read>(read: &mut R, table: &R::Table, scan: &Scan<'_>) -> Result<Vec<String>> {
    let mut names = Vec::new();
    read.scan(table, scan, |row| {
        names.push(format!("{}{}", row.u64(0), row.str(1)));
        ControlFlow::Continue(())
    })?;
    Ok(names)
}

fn seen<P: Peer>(store: &P, scan: &Scan<'_>) -> Vec<String> {
    let table = store.table("things").unwrap().unwrap();
    let mut session = store.session().unwrap();
    let mut read = session.snapshot().unwrap();
    let found = names(&mut read, &table, scan).unwrap();
    read.finish().unwrap();
    found
}

pub(crate) fn load<P: Peer>(store: &P) {
    let table = store.create_table(&spec()).unwrap();
    let mut session = store.session().unwrap();
    let mut txn = session.begin().unwrap();
    for (part, name, n) in [(1u32, "b", 30), (1, "a", -10), (2, "c", 20), (2, "a", 30), (300, "a", 0)] {
        txn.insert(&table, &values![part, name, n, null, 0]).unwrap();
    }
    txn.finish().unwrap();
}

fn reads<P: Peer>(store: &P) {
    let table = store.table("things").unwrap().unwrap();
    assert!(store.table("nothing").unwrap().is_none());
    assert_eq!(seen(store, &Scan::all()), ["1a", "1b", "2a", "2c", "300a"]);
    assert_eq!(seen(store, &Scan { reverse: true, limit: 2, ..Scan::all() }), ["300a", "2c"]);
    assert_eq!(seen(store, &Scan::prefix(&values![2])), ["2a", "2c"]);
    assert_eq!(seen(store, &Scan { from: Some("b".into()), ..Scan::prefix(&values![1]) }), ["1b"]);
    let by_n = Scan { index: Some("by_n"), ..Scan::all() };
    assert_eq!(seen(store, &by_n), ["1a", "300a", "2c", "1b", "2a"]);
    assert_eq!(seen(store, &Scan { from: Some(0.into()), to: Some(20.into()), ..by_n }), ["300a", "2c"]);
    assert_eq!(seen(store, &Scan { prefix: &values![30], reverse: true, ..by_n }), ["2a", "1b"]);
    let mut session = store.session().unwrap();
    let mut txn = session.begin().unwrap();
    let row = txn.get(&table, &values![1, "a"], |row| (row.i64(2), row.is_null(3))).unwrap();
    assert_eq!(row, Some((-10, true)));
    assert_eq!(txn.get(&table, &values![1, "c"], |_| ()).unwrap(), None);
    let mut locked = 0;
    let prefix = values![2];
    let wanted = Scan { for_update: true, limit: 1, ..Scan::prefix(&prefix) };
    txn.scan(&table, &wanted, |row| {
        locked += row.i64(2);
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(locked, 30);
    txn.rollback().unwrap();
}

fn changes<P: Peer>(store: &P) {
    let table = store.table("things").unwrap().unwrap();
    let by_n = Scan { index: Some("by_n"), ..Scan::all() };
    let mut session = store.session().unwrap();
    let mut txn = session.begin().unwrap();
    assert!(txn.modify(&table, &values![2, "c"], |row, set| set.put(2, (row.i64(2) + 5).into())).unwrap());
    assert!(txn.update(&table, &values![1, "b"], &[(3, "a note".into()), (4, 7.into())]).unwrap());
    assert!(!txn.update(&table, &values![9, "b"], &[(3, "a note".into())]).unwrap());
    assert!(txn.delete(&table, &values![2, "a"]).unwrap() && !txn.delete(&table, &values![2, "a"]).unwrap());
    assert_eq!(names(&mut txn, &table, &by_n).unwrap(), ["1a", "300a", "2c", "1b"], "its own changes");
    for (for_update, reverse) in [(false, false), (false, true), (true, false), (true, true)] {
        // Its own changes are before and after these.
        for (part, limit, expected) in [(2, 0, &["2c"][..]), (2, 1, &["2c"]), (300, 1, &["300a"]), (7, 1, &[])] {
            let prefix = values![part];
            let scan = Scan { limit, for_update, reverse, ..Scan::prefix(&prefix) };
            assert_eq!(names(&mut txn, &table, &scan).unwrap(), expected, "part {part}");
        }
    }
    let duplicate = txn.insert(&table, &values![1, "a", 1, null, 0]).unwrap_err();
    assert!(matches!(duplicate, Error::Engine(EngineError::DuplicateKey { .. })), "{duplicate}");
    drop(txn);
    assert_eq!(seen(store, &by_n), ["1a", "300a", "2c", "1b", "2a"], "dropped");
    let mut txn = session.begin().unwrap();
    txn.update(&table, &values![1, "a"], &[(2, 99.into())]).unwrap();
    txn.rollback().unwrap();
    assert_eq!(seen(store, &by_n), ["1a", "300a", "2c", "1b", "2a"], "rolled back");
    let mut txn = session.begin().unwrap();
    txn.update(&table, &values![1, "a"], &[(2, 99.into()), (3, "noted".into())]).unwrap();
    txn.delete(&table, &values![300, "a"]).unwrap();
    txn.insert(&table, &values![4, "d", 21, "new", 0]).unwrap();
    txn.finish().unwrap();
    assert_eq!(seen(store, &by_n), ["2c", "4d", "1b", "2a", "1a"]);
}

/// A snapshot keeps what it saw while another client commits.
fn snapshots<P: Peer>(store: &P) {
    let table = store.table("things").unwrap().unwrap();
    let (mut reader, mut writer) = (store.session().unwrap(), store.session().unwrap());
    let mut read = reader.snapshot().unwrap();
    assert_eq!(read.get(&table, &values![1, "b"], |row| row.i64(4)).unwrap(), Some(0));
    // The writer has a thread of its own: an engine may bind a snapshot to its thread.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut txn = writer.begin().unwrap();
            assert!(txn.modify(&table, &values![1, "b"], |_, set| set.put(4, 11.into())).unwrap());
            txn.insert(&table, &values![1, "z", 5, null, 0]).unwrap();
            txn.finish().unwrap();
        });
    });
    assert_eq!(read.get(&table, &values![1, "b"], |row| row.i64(4)).unwrap(), Some(0), "changed under a snapshot");
    assert_eq!(names(&mut read, &table, &Scan::prefix(&values![1])).unwrap(), ["1a", "1b"]);
    read.finish().unwrap();
    let mut later = store.session().unwrap();
    let mut read = later.snapshot().unwrap();
    assert_eq!(read.get(&table, &values![1, "b"], |row| row.i64(4)).unwrap(), Some(11));
    read.finish().unwrap();
}

/// Four clients add to the same two rows.
fn no_update_is_lost<P: Peer>(store: &P) {
    const ADDS: i64 = 60;
    let table = store.table("things").unwrap().unwrap();
    let add = |name: &str, session: &mut P::Session| -> Result<()> {
        let mut txn = session.begin()?;
        txn.modify(&table, &values![1, name], |row, set| set.put(4, (row.i64(4) + 1).into()))?;
        txn.finish()
    };
    std::thread::scope(|scope| {
        for n in 0..4 {
            let (mut session, name) = (store.session().unwrap(), if n % 2 == 0 { "a" } else { "z" });
            scope.spawn(move || {
                for _ in 0..ADDS {
                    while let Err(error) = add(name, &mut session) {
                        assert!(error.is_retryable(), "{error}");
                    }
                }
            });
        }
    });
    let mut session = store.session().unwrap();
    let mut read = session.snapshot().unwrap();
    for name in ["a", "z"] {
        assert_eq!(read.get(&table, &values![1, name], |row| row.i64(4)).unwrap(), Some(2 * ADDS), "{name}");
    }
    read.finish().unwrap();
}

/// Tables that are made at the same time do not share rows.
fn tables_at_once<P: Peer>(store: &P) {
    const TABLES: u32 = 6;
    let name = |n: u32| format!("at_once_{n}");
    std::thread::scope(|scope| {
        for n in 0..TABLES {
            scope.spawn(move || {
                let table = store.create_table(&TableSpec { name: name(n), ..spec() }).unwrap();
                let mut session = store.session().unwrap();
                let mut txn = session.begin().unwrap();
                txn.insert(&table, &values![n, "row", n as i32, null, 0]).unwrap();
                txn.finish().unwrap();
            });
        }
    });
    for n in 0..TABLES {
        let table = store.table(&name(n)).unwrap().unwrap();
        let mut session = store.session().unwrap();
        let mut read = session.snapshot().unwrap();
        for index in [None, Some("by_n")] {
            assert_eq!(names(&mut read, &table, &Scan { index, ..Scan::all() }).unwrap(), [format!("{n}row")]);
        }
        read.finish().unwrap();
    }
}

fn whole<P: Peer>(folder: &Path, durable: bool) {
    let store = P::open(folder, &settings(durable)).unwrap();
    load(&store);
    reads(&store);
    changes(&store);
    snapshots(&store);
    no_update_is_lost(&store);
    tables_at_once(&store);
    let (kept, found) = peers::contents(&store, &[spec()], Verify::Indexes).unwrap();
    assert!(kept.rows == 6 && kept.entries == Some(6) && found.iter().all(|one| one.holds), "{kept:?} {found:?}");
    store.close().unwrap();
    let store = P::open(folder, &settings(durable)).unwrap();
    assert_eq!(peers::contents(&store, &[spec()], Verify::Indexes).unwrap(), (kept, found), "after it was closed");
    // An index of rows that are there, and an auto-increment column that continues.
    store.create_index("things", &IndexSpec { name: "by_note", columns: &["note", "n"] }).unwrap();
    assert_eq!(seen(&store, &Scan { index: Some("by_note"), limit: 3, ..Scan::all() }), ["1z", "2c", "1b"]);
    store.close().unwrap();
}

/// What a process committed before it was killed is there. The process is this test's program, started again.
fn killed<P: Peer>(name: &str, folder: &Path) {
    const CHILD: &str = "HIGHWATER_PEERS_KILLED";
    if let Some(folder) = std::env::var_os(CHILD) {
        let store = P::open(Path::new(&folder), &settings(true)).unwrap();
        load(&store);
        // SAFETY: ends this process at once, which is what is tested.
        unsafe { libc::_exit(9) };
    }
    let test = format!("peers_test::{name}");
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    let status = child.args([&test, "--exact", "--quiet"]).env(CHILD, folder).status().unwrap();
    assert_eq!(status.code(), Some(9));
    let store = P::open(folder, &settings(true)).unwrap();
    reads(&store);
    store.close().unwrap();
}

macro_rules! engines {
    ($($(#[$feature:meta])? $name:ident: $Peer:ty,)*) => { $(
        $(#[$feature])?
        #[test]
        fn $name() {
            let folder = tempfile::tempdir().unwrap();
            killed::<$Peer>(stringify!($name), &folder.path().join("killed"));
            whole::<$Peer>(&folder.path().join("durable"), true);
            whole::<$Peer>(&folder.path().join("relaxed"), false);
        }
    )* };
}

engines! {
    highwater: Embedded,
    lmdb: KvStore<peer::lmdb::Lmdb>,
    sqlite: peer::sqlite::Sqlite,
    redb: KvStore<peer::redb::Redb>,
    fjall: KvStore<peer::fjall::Fjall>,
    #[cfg(feature = "rocksdb")]
    rocksdb: KvStore<peer::rocksdb::RocksDb>,
    #[cfg(feature = "wiredtiger")]
    wiredtiger: KvStore<peer::wiredtiger::WiredTiger>,
}
