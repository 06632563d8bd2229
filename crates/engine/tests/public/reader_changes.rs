//! The stream of changes from another process: it is that of the database, waits for changes, and ends with that
//! process.

use super::changes::schema;
use super::support::options;
use highwater::{Change, Column, Database, Error, TableChange, Type, Value, values};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(30);

/// Each change, as a consumer in this process gets it.
fn brief(changes: impl Iterator<Item = highwater::Result<Change>>) -> Vec<String> {
    changes.map(|change| format!("{:?}", change.unwrap())).collect()
}

#[test]
fn the_stream_of_changes_is_that_of_the_database() {
    let folder = tempfile::tempdir().unwrap();
    let db = Database::open(folder.path(), options()).unwrap();
    let table = db.create_table("t", schema()).unwrap();
    let reader = Database::open_reader(folder.path()).unwrap();
    let mut stream = reader.changes(0).unwrap();
    assert!(!stream.wait(Duration::from_millis(1)).unwrap() && stream.next().is_none());
    let long = vec![7; 200_000];
    for round in 0..30u64 {
        let mut txn = db.begin().unwrap();
        for id in 10 * round..10 * round + 10 {
            let long = (id % 7 == 0).then_some(&long[..]);
            txn.insert(&table, &values![id, format!("name {id}").as_str(), null, long]).unwrap();
        }
        txn.delete(&table, &values![round * 5]).unwrap();
        txn.commit().unwrap();
    }
    assert!(stream.wait(TIMEOUT).unwrap());
    assert_eq!(brief(&mut stream), brief(db.changes(0).unwrap()));
    // Rows of other columns.
    let position = stream.position();
    let added = TableChange::AddColumn(Column {
        name: "extra".to_string(),
        ty: Type::U32,
        nullable: false,
        default: Some(Value::UInt(5)),
        collation: None,
    });
    db.alter_table("t", &[added]).unwrap();
    let table = db.table("t").unwrap();
    db.transact(|txn| txn.insert(&table, &values![1000u64, "last", 3, null, 9u32])).unwrap();
    let expected = brief(db.changes(position).unwrap());
    assert!(stream.wait(TIMEOUT).unwrap());
    assert_eq!(brief(&mut stream), expected);
    assert_eq!((stream.position(), reader.last_change().unwrap()), (db.last_change().unwrap(), stream.position()));
    reader.flush_log().unwrap();

    // From the middle on; the position moves with the transactions that were taken whole.
    let mut stream = reader.changes(3).unwrap();
    let first = stream.next().unwrap().unwrap();
    assert_eq!((stream.position(), first.sequence > 3, first.ends_transaction), (3, true, false));
    let names: Vec<&str> = first.row.as_ref().unwrap().names().collect();
    assert_eq!(names, ["id", "name", "note", "long", "extra"]);
    assert!(matches!(reader.changes(9999).map(drop), Err(Error::Usage(reason)) if reason.contains("9999")));

    db.trim_changes(4).unwrap();
    let refused = reader.changes(3).map(drop).unwrap_err();
    assert!(matches!(refused, Error::ChangesTrimmed { since: 3, trimmed: 4 }), "{refused}");
}

#[test]
fn a_stream_waits_for_changes_and_ends_with_the_database() {
    let folder = tempfile::tempdir().unwrap();
    let db = Database::open(folder.path(), options()).unwrap();
    let table = db.create_table("t", schema()).unwrap();
    let reader = Database::open_reader(folder.path()).unwrap();
    let mut stream = reader.changes(0).unwrap();
    let waiting = std::thread::spawn(move || {
        let mut ids = Vec::new();
        loop {
            match stream.wait(Duration::from_secs(600)) {
                Ok(true) => ids.push(stream.next().unwrap().unwrap().key[0].clone()),
                Ok(false) => panic!("it has waited too long"),
                Err(error) => return (ids, error, stream.wait(Duration::from_secs(600)), stream.next().is_none()),
            }
        }
    });
    for id in 0..5u64 {
        std::thread::sleep(Duration::from_millis(5));
        db.transact(|txn| txn.insert(&table, &values![id, "x", null, null])).unwrap();
    }
    std::thread::sleep(Duration::from_millis(50));
    db.close().unwrap();
    let (ids, error, after, is_at_end) = waiting.join().unwrap();
    assert_eq!(ids, (0..5u64).map(Value::UInt).collect::<Vec<_>>());
    assert!(matches!(error, Error::ReaderDisconnected { .. }), "{error}");
    assert!(!after.unwrap() && is_at_end);
}

/// Also where the next request meets a connection that has ended already.
#[test]
fn a_stream_of_a_database_that_was_closed_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path(), options()).unwrap();
    let mut changes = Database::open_reader(dir.path()).unwrap().changes(0).unwrap();
    assert!(changes.next().is_none());
    db.close().unwrap();
    let error = changes.wait(Duration::ZERO).unwrap_err();
    assert!(error.to_string().ends_with("it has closed the database, or has ended"), "{error}");
}
