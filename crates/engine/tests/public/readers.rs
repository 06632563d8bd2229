//! Readers of a database that is open: their answers are those of the database itself, and neither side keeps the
//! other waiting.

use super::support::{add, options, people};
use crate::testing::{by_id, commit_all};
use highwater::{Database, Error, MetricsFormat, Options, Reader, Row, Schema, Table, Type, Value, ValueRef, values};
use std::io::{BufRead, BufReader};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Rows of [`filled`].
const ROWS: u64 = 3000;
/// The folder, in a process that reads it.
const FOLDER: &str = "HIGHWATER_TEST_READER_FOLDER";
const TIMEOUT: Duration = Duration::from_secs(30);

fn opened(folder: &Path) -> Database {
    Database::open(folder, options()).unwrap()
}

fn filled() -> (TempDir, Database, Table) {
    let folder = tempfile::tempdir().unwrap();
    let db = opened(folder.path());
    let people = people(&db);
    commit_all(&db, 0..ROWS, |txn, n| {
        let age = (n % 7 != 0).then_some(n as i32 % 90);
        txn.insert(&people, &values![null, format!("last{}", n % 100).as_str(), format!("first{n}").as_str(), age])
    });
    (folder, db, people)
}

fn reader(folder: &TempDir) -> Reader {
    Database::open_reader(folder.path()).unwrap()
}

fn all(rows: impl Iterator<Item = highwater::Result<Row>>) -> Vec<Vec<Value>> {
    rows.map(|row| row.unwrap().to_values()).collect()
}

#[track_caller]
fn wait_until(mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < TIMEOUT, "it does not come");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A scan with these ends, by both ways.
macro_rules! same {
    ($db:ident, $people:ident, $reader:ident $(, $end:ident($($argument:expr),*))*) => {{
        let mut own = $db.snapshot().unwrap();
        let mut served = $reader.snapshot().unwrap();
        let rows = all(own.scan(&$people)$(.$end($($argument),*))*.iter().unwrap());
        assert_eq!(all(served.scan("people")$(.$end($($argument),*))*.iter().unwrap()), rows);
        assert_eq!(served.scan("people")$(.$end($($argument),*))*.count().unwrap(), rows.len() as u64);
        let first = served.scan("people")$(.$end($($argument),*))*.first().unwrap();
        assert_eq!(first.map(|row| row.to_values()).as_ref(), rows.first());
        let estimate = own.scan(&$people)$(.$end($($argument),*))*.estimate().unwrap();
        assert_eq!(served.scan("people")$(.$end($($argument),*))*.estimate().unwrap(), estimate);
        let names = ["first", "id"];
        let some = all(own.scan(&$people)$(.$end($($argument),*))*.select(&names).unwrap());
        assert_eq!(all(served.scan("people")$(.$end($($argument),*))*.select(&names).unwrap()), some);
    }};
}

#[test]
fn answers_are_those_of_the_database() {
    let (folder, db, people) = filled();
    let reader = reader(&folder);
    same!(db, people, reader);
    same!(db, people, reader, rev(), limit(10));
    same!(db, people, reader, limit(0));
    same!(db, people, reader, from(&values![20u64]), to(&values![2000u64]));
    same!(db, people, reader, from_exclusive(&values![20u64]), to_exclusive(&values![2000u64]), rev());
    same!(db, people, reader, index("by_name"), prefix(&values!["last7"]));
    same!(db, people, reader, index("by_name"), starts_with(&values!["last7", "first1"]));
    same!(db, people, reader, index("by_age"), from(&values![null]), to(&values![30]), limit(500));
    same!(db, people, reader, from(&values![ROWS + 1]));
    let (mut own, mut served) = (db.snapshot().unwrap(), reader.snapshot().unwrap());
    for id in [0, 1, 7, ROWS, ROWS + 1] {
        let row = own.get(&people, &values![id]).unwrap().map(|row| row.to_values());
        assert_eq!(served.get("people", &values![id]).unwrap().map(|row| row.to_values()), row);
        let row = own.get_columns(&people, &values![id], &[3, 0]).unwrap().map(|row| row.to_values());
        assert_eq!(served.get_columns("people", &values![id], &[3, 0]).unwrap().map(|row| row.to_values()), row);
    }
    let by_name = served.get_by("people", "by_name", &values!["last3", "first3"]).unwrap().unwrap();
    assert_eq!((by_name.str("first"), by_name.u64("id")), ("first3", 4));
}

#[test]
fn every_type_of_value_arrives() {
    let folder = tempfile::tempdir().unwrap();
    let db = opened(folder.path());
    let (time, day) = ("2026-01-31T12:00:00.5", "2026-01-31");
    let typed = [
        ("i", Type::I64, Value::Int(-5)),
        ("u", Type::U64, Value::UInt(u64::MAX)),
        ("f", Type::F64, Value::F64(-0.25)),
        ("d", Type::Decimal(20, 3), Value::Decimal("-12345678901234.125".parse().unwrap())),
        ("t", Type::Text(20), Value::Text("\u{e9}t\u{e9}".to_string())),
        ("b", Type::Binary(20), Value::Bytes(vec![0, 255, 0])),
        ("at", Type::DateTime, Value::DateTime(time.parse().unwrap())),
        ("yes", Type::Bool, Value::Bool(true)),
        ("day", Type::Date, Value::Date(day.parse().unwrap())),
        ("time", Type::Time, Value::Time("23:59:59.999999".parse().unwrap())),
        ("id", Type::Uuid, Value::Uuid("67e55044-10b1-426f-9247-bb680e5fe0c8".parse().unwrap())),
    ];
    for (name, ty, value) in typed {
        let schema = Schema::new().column("key", ty).nullable("none", ty).primary_key(&["key"]);
        let table = db.create_table(name, schema).unwrap();
        db.transact(|txn| txn.insert(&table, &[value.as_ref(), ValueRef::Null]).map(drop)).unwrap();
        let mut snapshot = reader(&folder).snapshot().unwrap();
        let row = snapshot.get(name, &[value.as_ref()]).unwrap().unwrap();
        assert_eq!(row.to_values(), [value, Value::Null]);
    }
}

#[test]
fn a_snapshot_stays_and_the_next_one_is_newer() {
    let (folder, db, people) = filled();
    let reader = reader(&folder);
    let pets = db.create_table("pets", by_id()).unwrap();
    let mut snapshot = reader.snapshot().unwrap();
    assert_eq!(snapshot.scan("people").count().unwrap(), ROWS);
    db.transact(|txn| txn.insert(&pets, &values![1u64]).map(drop)).unwrap();
    add(&db, &people, "New", "Person", None);
    db.transact(|txn| txn.scan(&people).to(&values![100u64]).delete().map(drop)).unwrap();
    assert_eq!(snapshot.scan("people").count().unwrap(), ROWS);
    assert_eq!(snapshot.get("people", &values![50u64]).unwrap().unwrap().u64("id"), 50);
    // A table that it uses later is of the same moment.
    assert_eq!(snapshot.scan("pets").count().unwrap(), 0);
    assert_eq!(reader.snapshot().unwrap().scan("people").count().unwrap(), ROWS + 1 - 100);
}

/// Of one moment, on several threads, whichever ends first; and a snapshot that was offered ends with its connection.
#[test]
fn connections_share_a_snapshot() {
    let (folder, db, people) = filled();
    let reader = reader(&folder);
    let mut first = reader.snapshot().unwrap();
    let mut second = first.same_snapshot().unwrap();
    db.transact(|txn| txn.insert(&people, &values![null, "later", "row", 1]).map(drop)).unwrap();
    let mut third = second.same_snapshot().unwrap();
    assert_eq!(reader.snapshot().unwrap().scan("people").count().unwrap(), ROWS + 1);
    let counts = std::thread::scope(|scope| {
        let counts = [&mut first, &mut second, &mut third]
            .map(|snapshot| scope.spawn(|| snapshot.scan("people").count().unwrap()));
        counts.map(|count| count.join().unwrap())
    });
    assert_eq!(counts, [ROWS; 3]);
    // A scan of one while another looks rows up; the first may go.
    let mut rows = first.scan("people").limit(10).iter().unwrap();
    let row = rows.next().unwrap().unwrap();
    assert!(second.get("people", &values![row.u64("id")]).unwrap().is_some());
    drop(rows);
    drop(first);
    drop(second);
    wait_until(|| db.stats().readers == 1);
    assert_eq!(third.scan("people").count().unwrap(), ROWS);
    assert_eq!(third.same_snapshot().unwrap().scan("people").count().unwrap(), ROWS);
    db.close().unwrap();
    assert!(matches!(third.same_snapshot().err(), Some(Error::ReaderDisconnected { .. })));
}

#[test]
fn a_dropped_iterator_keeps_no_writer_waiting() {
    let (folder, db, people) = filled();
    let mut snapshot = reader(&folder).snapshot().unwrap();
    for taken in [0, 1, 200, 1500] {
        let mut rows = snapshot.scan("people").iter().unwrap();
        assert_eq!(rows.by_ref().take(taken).count(), taken);
        // Every page is changed while the iterator is in its middle.
        commit_all(&db, 1..=ROWS, |txn, id| txn.update(&people, &values![id], &[(3, 1.into())]));
        drop(rows);
        // The connection is ready for the next request.
        assert_eq!(snapshot.scan("people").iter().unwrap().count() as u64, ROWS);
    }
}

#[test]
fn tables_and_counters_are_told() {
    let (folder, db, people) = filled();
    let reader = reader(&folder);
    let tables = reader.tables().unwrap();
    assert_eq!(tables.len(), 1);
    assert_eq!(tables[0].definition, *people.definition());
    assert_eq!(tables[0].next_number, Some(ROWS + 1));
    assert_eq!(tables[0].approximate_rows, db.approximate_rows(&people).unwrap());
    assert_eq!(reader.snapshot().unwrap().table("people").unwrap(), tables[0]);
    let text = reader.metrics_text(MetricsFormat::OpenMetrics).unwrap();
    assert!(text.contains("\nhighwater_readers ") && text.ends_with("# EOF\n"), "{text}");
}

#[test]
fn a_dump_is_that_of_the_database() {
    let (folder, db, people) = filled();
    let (mut own, mut served) = (Vec::new(), Vec::new());
    let report = db.dump(&mut own).unwrap();
    assert_eq!(reader(&folder).dump(&mut served).unwrap(), report);
    assert!(own == served && report.bytes == own.len() as u64);
    // Who leaves a dump in its middle holds nothing.
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    assert!(matches!(reader(&folder).dump(Full), Err(Error::Storage(_))));
    drop(people);
    db.with_lock_wait_timeout(TIMEOUT).drop_table("people").unwrap();
    let mut empty = Vec::new();
    assert_eq!(reader(&folder).dump(&mut empty).unwrap().tables, []);
}

#[test]
fn what_is_wrong_is_an_error_and_the_snapshot_goes_on() {
    let (folder, _db, _) = filled();
    let mut snapshot = reader(&folder).snapshot().unwrap();
    assert!(matches!(snapshot.get("peple", &values![1u64]), Err(Error::NoSuchTable { table }) if table == "peple"));
    let by = snapshot.scan("people").index("by_mail").iter().err();
    assert!(matches!(&by, Some(Error::NoSuchIndex { index, .. }) if index == "by_mail"), "{by:?}");
    let wrong = snapshot.get("people", &values!["one"]);
    assert!(matches!(&wrong, Err(Error::BadValue { column, .. }) if column == "id"), "{wrong:?}");
    let wrong = snapshot.scan("people").from(&values!["one"]).count();
    assert!(matches!(&wrong, Err(Error::BadValue { column, .. }) if column == "id"), "{wrong:?}");
    let missing = snapshot.scan("people").select(&["first", "mail"]).err();
    assert!(matches!(missing, Some(Error::NoSuchColumn { column, .. }) if column == "mail"));
    assert_eq!(snapshot.get("people", &values![9u64]).unwrap().unwrap().u64("id"), 9);
}

#[test]
fn without_a_process_that_serves_it_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let not_served = |folder: &Path| match Database::open_reader(folder) {
        Err(Error::NotServed { folder: named, reason }) => {
            assert_eq!(named, folder.canonicalize().unwrap());
            reason
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(not_served(folder.path()), "no process listens");
    let db = opened(folder.path());
    let reader = reader(&folder);
    db.close().unwrap();
    assert!(matches!(reader.snapshot(), Err(Error::NotServed { .. })));
    assert!(!folder.path().join("readers").exists());
    let db = Database::open(folder.path(), Options { max_readers: 0, ..options() }).unwrap();
    assert_eq!(not_served(folder.path()), "no process listens");
    drop(db);
    let missing = folder.path().join("missing");
    assert!(Database::open_reader(&missing).unwrap_err().to_string().contains("missing"));
}

#[test]
fn a_closing_ends_snapshots_and_a_reader_goes_on_after_the_next_opening() {
    let (folder, db, _) = filled();
    let reader = reader(&folder);
    let (mut snapshot, mut idle) = (reader.snapshot().unwrap(), reader.snapshot().unwrap());
    assert_eq!(idle.get("people", &values![1u64]).unwrap().unwrap().u64("id"), 1);
    let mut rows = snapshot.scan("people").iter().unwrap();
    assert!(rows.next().unwrap().is_ok());
    db.close().unwrap();
    let db = opened(folder.path());
    // The batches that had come are read; then it is said.
    assert!(matches!(rows.find(Result::is_err), Some(Err(Error::ReaderDisconnected { .. }))));
    drop(rows);
    for _ in 0..2 {
        assert!(matches!(snapshot.scan("people").count(), Err(Error::ReaderDisconnected { .. })));
        assert!(matches!(idle.get("people", &values![1u64]), Err(Error::ReaderDisconnected { .. })));
    }
    assert_eq!(reader.snapshot().unwrap().scan("people").count().unwrap(), ROWS);
    drop(db);
}

#[test]
fn the_last_handle_closes_the_database_whatever_is_read() {
    let (folder, db, people) = filled();
    let mut snapshot = reader(&folder).snapshot().unwrap();
    let mut rows = snapshot.scan("people").iter().unwrap();
    assert!(rows.next().unwrap().is_ok());
    drop((people, db));
    opened(folder.path()).close().unwrap();
}

/// The row's page is latched, and a reader waits for it: the end of the server is not waited for then.
#[test]
fn the_last_handle_is_dropped_inside_of_a_row_closure() {
    let (folder, db, people) = filled();
    let reader = reader(&folder);
    let mut snapshot = reader.snapshot().unwrap();
    assert_eq!(snapshot.scan("people").limit(1).count().unwrap(), 1);
    let mut txn = db.begin().unwrap();
    let mut handle = Some(db);
    std::thread::scope(|scope| {
        let (begin, begun) = std::sync::mpsc::channel();
        scope.spawn(move || {
            begun.recv().unwrap();
            // Disconnected, or counted: it ends.
            drop(snapshot.scan("people").count());
        });
        let modified = txn.modify(&people, &values![1u64], |_, _| {
            begin.send(()).unwrap();
            std::thread::sleep(Duration::from_millis(50));
            drop(handle.take());
        });
        modified.unwrap();
    });
    drop((txn, people));
    wait_until(|| Database::open(folder.path(), options()).is_ok());
}

#[test]
fn no_more_readers_than_the_option_says() {
    let folder = tempfile::tempdir().unwrap();
    let db = Database::open(folder.path(), Options { max_readers: 2, ..options() }).unwrap();
    people(&db);
    let reader = reader(&folder);
    wait_until(|| db.stats().readers == 0);
    let snapshots = [reader.snapshot().unwrap(), reader.snapshot().unwrap()];
    let refused = reader.snapshot().err().unwrap().to_string();
    assert!(refused.contains("2 processes or snapshots read already") && refused.contains("max_readers"), "{refused}");
    drop(snapshots);
    wait_until(|| reader.snapshot().is_ok());
    // The server notices in its time that they have left.
    wait_until(|| db.stats().readers == 0);
    assert!(db.stats().readers_served >= 4, "{:?}", db.stats());
}

#[test]
fn a_table_that_a_snapshot_uses_is_not_changed_meanwhile() {
    let (folder, db, _) = filled();
    let mut snapshot = reader(&folder).snapshot().unwrap();
    // Asked for is used: its rows will have the columns that the answer names.
    assert_eq!(snapshot.table("people").unwrap().next_number, Some(ROWS + 1));
    assert!(matches!(db.drop_table("people"), Err(Error::LockWaitTimeout)));
    drop(snapshot);
    // The other side notices it in its time.
    db.with_lock_wait_timeout(TIMEOUT).drop_table("people").unwrap();
    assert!(matches!(reader(&folder).snapshot().unwrap().table("people"), Err(Error::NoSuchTable { .. })));
}

#[test]
fn a_socket_that_was_left_is_replaced_and_no_other_file() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("readers");
    // As a killed process leaves it.
    drop(UnixListener::bind(&socket).unwrap());
    assert!(UnixStream::connect(&socket).is_err());
    assert!(matches!(Database::open_reader(folder.path()), Err(Error::NotServed { .. })));
    let db = opened(folder.path());
    reader(&folder).tables().unwrap();
    db.close().unwrap();
    std::fs::write(&socket, "a file of the user's").unwrap();
    let db = opened(folder.path());
    assert!(matches!(Database::open_reader(folder.path()), Err(Error::NotServed { .. })));
    db.close().unwrap();
    assert_eq!(std::fs::read_to_string(&socket).unwrap(), "a file of the user's");
}

#[test]
fn the_path_of_the_folder_may_be_long() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("long".repeat(30)).join("longer".repeat(20));
    let db = opened(&folder);
    people(&db);
    let reader = Database::open_reader(&folder).unwrap();
    assert_eq!(reader.snapshot().unwrap().scan("people").count().unwrap(), 0);
    db.close().unwrap();
    assert!(!folder.join("readers").exists());
}

/// Not a test: what the process does that [`a_reader_that_is_killed_holds_nothing`] starts.
#[test]
fn a_process_that_reads() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let reader = Database::open_reader(folder).unwrap();
    let mut snapshot = reader.snapshot().unwrap();
    let mut rows = snapshot.scan("people").iter().unwrap();
    println!("\nread {}", rows.next().unwrap().unwrap().u64("id"));
    std::thread::sleep(10 * TIMEOUT);
}

#[test]
fn a_reader_that_is_killed_holds_nothing() {
    let (folder, db, people) = filled();
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "readers::a_process_that_reads", "--nocapture"])
        .env(FOLDER, folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line == "read 1"));
    // Its snapshot keeps what it sees; no thread waits for it.
    db.transact(|txn| txn.scan(&people).delete().map(drop)).unwrap();
    assert_eq!(db.stats().readers, 1);
    process.kill().unwrap();
    process.wait().unwrap();
    wait_until(|| db.stats().readers == 0);
    wait_until(|| db.purge_state().purge_pending_records == 0);
    db.with_lock_wait_timeout(TIMEOUT).drop_table("people").unwrap();
}
