//! What must hold of a database whose files are damaged.
//!
//! Laws
//! 1. Every call returns: no panic, no hang, no memory without bounds. An error says what is wrong, in one line.
//! 2. If the check of the whole database finds nothing, then all reads agree with each other, also after writes, after
//!    the steps that threads do otherwise, and after it was closed and opened again.

use crate::bases::storage;
use highwater::inspect::{self, RawFile};
use highwater::internals::{BackgroundStep, DeterministicDb, OpenOverrides};
use highwater::{Database, Error, Options, PageNo, ReadTxn, Row, Table, ValueRef, salvage, values};
use highwater_storage::StorageSet;
use highwater_torture::corruption::Files;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Pages that are looked at one by one.
const LOOKED_PAGES: u32 = 200;
/// Rows that are read one by one.
const READ_ROWS: usize = 40;

/// An error says what is wrong (law 1).
pub fn precise(error: &Error) {
    let text = error.to_string();
    let is_clear = !text.is_empty() && !text.contains('\n') && !text.contains("panicked");
    assert!(is_clear, "not a precise error: {text:?}");
}

/// Looks at the files without opening the database.
pub fn look(files: &Files) {
    let storage = storage(files);
    if let Ok(file) = RawFile::open(&*storage.data) {
        let _ = (file.extents(), file.extent_use(), file.catalog_problem(), file.store_segments(), file.layout());
        for number in 0..file.page_count().min(LOOKED_PAGES.into()) as u32 {
            let _ = (file.look_at(PageNo(number)), file.place(PageNo(number)), file.name_of(PageNo(number)));
        }
        for tree in file.tables().iter().flat_map(|table| table.trees.iter()) {
            let _ = file.tree_size(tree, LOOKED_PAGES.into());
        }
    }
    if let Ok(look) = inspect::look(&*storage.redo) {
        let _ = look.each_window(&*storage.redo, 1 << 16, |window| {
            window.groups().for_each(|(_, payload)| drop(inspect::operations(payload)));
        });
    }
    let _ = inspect::scan(&*storage.data, &mut |_, _| {});
}

/// Copies what can be read into another database; what was copied must pass the check.
pub fn save(files: &Files, options: &Options) {
    let into = open(StorageSet::memory(), options).expect("a new database in memory opens");
    match salvage(&*storage(files).data, into.database(), &mut |_, _| {}) {
        Ok(_) => {
            let report = into.database().check().expect("the salvaged database is checked");
            assert!(report.is_sound(), "the salvaged database: {:?}", report.findings);
        }
        Err(error) => precise(&error),
    }
}

fn open(storage: StorageSet, options: &Options) -> Result<DeterministicDb, Error> {
    let now_ms: Arc<AtomicU64> = Arc::default();
    now_ms.store(1000, Relaxed);
    // A transaction that damage keeps from being rolled back holds its rows: a transaction that waits for them need not
    // wait long.
    let options = Options { lock_wait_timeout_ms: 1, ..options.clone() };
    DeterministicDb::open(storage, options, &OpenOverrides::default(), now_ms)
}

/// Opens the database and uses it.
pub fn open_and_use(files: &Files, options: &Options) {
    let storage = storage(files);
    let db = match open(storage.clone(), options) {
        Ok(db) => db,
        Err(error) => return precise(&error),
    };
    let is_sound = is_sound(db.database());
    let read = read_all(db.database());
    let written = write(db.database());
    let stepped = BackgroundStep::ALL.iter().try_for_each(|step| db.step(*step));
    let after = read_all(db.database());
    let closed = db.close();
    for error in [read.err(), after.err(), written.err(), stepped.err(), closed.err()].into_iter().flatten() {
        precise(&error);
        assert!(!is_sound, "the check found nothing: {error}");
    }
    if is_sound {
        let db = open(storage, options).expect("a sound database opens again");
        assert!(self::is_sound(db.database()), "a sound database has become damaged");
        read_all(db.database()).expect("a sound database can be read");
    }
}

fn is_sound(db: &Database) -> bool {
    match db.check() {
        Ok(report) => report.is_sound(),
        Err(error) => {
            precise(&error);
            false
        }
    }
}

/// Reads every table by every index, forward and backward; the first error, if there is one.
fn read_all(db: &Database) -> Result<(), Error> {
    let mut first: Result<(), Error> = Ok(());
    for table in db.tables() {
        let read = db.snapshot().and_then(|mut read| read_table(&mut read, &table));
        first = first.and(read);
    }
    first
}

fn bytes(rows: &[Row]) -> Vec<&[u8]> {
    rows.iter().map(|row| row.as_ref().as_bytes()).collect()
}

/// All reads that return agree.
fn read_table(read: &mut ReadTxn, table: &Table) -> Result<(), Error> {
    let forward: Result<Vec<Row>, Error> = read.scan(table).iter()?.collect();
    let backward: Result<Vec<Row>, Error> = read.scan(table).rev().iter()?.collect();
    let by_index = |read: &mut ReadTxn, name: &str| read.scan(table).index(name).iter()?.collect();
    let indexes: Vec<String> = table.definition().indexes.iter().map(|index| index.name.clone()).collect();
    let others: Vec<Result<Vec<Row>, Error>> = indexes.iter().map(|name| by_index(read, name)).collect();
    let (rows, mut backward) = (forward?, backward?);
    backward.reverse();
    if bytes(&rows) != bytes(&backward) {
        return Err(disagreement("a scan backward has other rows than one forward"));
    }
    let mut sorted = bytes(&rows);
    sorted.sort_unstable();
    for (found, name) in others.into_iter().zip(&indexes) {
        let found = found?;
        let mut found = bytes(&found);
        found.sort_unstable();
        if found != sorted {
            return Err(disagreement(&format!("index {name} has other rows")));
        }
    }
    let definition = table.definition();
    for row in rows.iter().take(READ_ROWS) {
        let key: Vec<ValueRef<'_>> = definition.primary_key.iter().map(|part| row.get(part.column)).collect();
        let found = read.get(table, &key)?;
        if found.as_ref().map(|found| found.as_ref().as_bytes()) != Some(row.as_ref().as_bytes()) {
            return Err(disagreement("a row that a scan returned is not found by its key"));
        }
    }
    Ok(())
}

/// Reads that contradict each other, as an error.
fn disagreement(what: &str) -> Error {
    Error::Corrupt(what.to_string())
}

/// Changes rows of the table that all bases have. The first error, if there is one; what other transactions hold, or
/// what is there already, is not an error.
fn write(db: &Database) -> Result<(), Error> {
    let Ok(table) = db.table("person") else { return Ok(()) };
    if table.columns().len() != 4 {
        return Ok(());
    }
    let mut first: Result<(), Error> = Ok(());
    let mut txn = db.begin()?;
    for id in [1, 7, 8, 49, 150, 5000] {
        let note = "y".repeat(if id % 7 == 0 { 6000 } else { 20 });
        let changes = [(1, "changed".into()), (3, note.as_str().into())];
        let done = [
            txn.insert(&table, &values![id, "new", null, "note"]).map(drop),
            txn.update(&table, &values![id], &changes).map(drop),
            if id % 2 == 0 { txn.delete(&table, &values![id]).map(drop) } else { Ok(()) },
        ];
        for done in done {
            first = first.and(done.or_else(refused));
        }
    }
    let committed = txn.commit();
    let mut txn = db.begin()?;
    for id in [2, 9, 77] {
        first = first.and(txn.delete(&table, &values![id]).map(drop).or_else(refused));
    }
    first.and(committed).and(txn.rollback())
}

fn refused(error: Error) -> Result<(), Error> {
    match error {
        Error::DuplicateKey { .. } | Error::LockWaitTimeout | Error::BadValue { .. } => Ok(()),
        other => Err(other),
    }
}
