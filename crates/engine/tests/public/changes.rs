//! The change log: what a transaction leaves there, in which order it is read, what tables that change say, what is
//! trimmed.

use crate::support::{add, all, memory, open, options, patient, people, sound};
use crate::testing::by_id;
use highwater::{
    Change, ChangeKind, Database, Error, Isolation, Options, Result, Schema, Table, TableChange, TxnOptions, Type,
    Value, Xid, values,
};
use highwater_storage::StorageSet;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use ChangeKind::{Delete, Insert, TableChanged, Update};

/// id | name | note? | long?
pub(crate) fn schema() -> Schema {
    let schema = by_id().column("name", Type::Text(100)).nullable("note", Type::I32);
    schema.nullable("long", Type::Binary(300_000)).index("by_name", &["name"]).log_changes()
}

/// What a consumer keeps: rows by table and key, and how far it has come.
#[derive(Clone, Debug, Default)]
pub(crate) struct Replica {
    pub position: u64,
    pub rows: BTreeMap<(String, String), Vec<Value>>,
}

impl Replica {
    /// Takes this many changes at most; keeps those of whole transactions, as a consumer that is killed does.
    pub(crate) fn take(&mut self, db: &Database, most: usize) -> Result<()> {
        let mut open = Vec::new();
        for change in db.changes(self.position)?.take(most) {
            let change = change?;
            let last = change.ends_transaction.then_some(change.sequence);
            open.push(change);
            if let Some(sequence) = last {
                assert!(sequence > self.position && open.iter().all(|change| change.sequence == sequence), "{open:?}");
                open.drain(..).for_each(|change| self.apply(change));
                self.position = sequence;
            }
        }
        Ok(())
    }

    fn apply(&mut self, change: Change) {
        let key = (change.table, format!("{:?}", change.key));
        match change.kind {
            TableChanged => self.rows.retain(|(table, _), _| *table != key.0),
            _ => match change.row {
                Some(row) => drop(self.rows.insert(key, row.to_values())),
                None => drop(self.rows.remove(&key)),
            },
        }
    }

    pub(crate) fn check(&self, db: &Database, table: &Table, at: &str) {
        let of_table = self.rows.iter().filter(|((name, _), _)| name == table.name()).map(|(_, row)| row.clone());
        let (mut copied, mut rows) = (of_table.collect::<Vec<_>>(), all(db, table, "PRIMARY"));
        copied.sort_by_cached_key(|row| format!("{row:?}"));
        rows.sort_by_cached_key(|row| format!("{row:?}"));
        assert!(copied == rows, "{at}: the copy at {} has {} rows of {}", self.position, copied.len(), rows.len());
    }
}

fn changes(db: &Database, since: u64) -> Vec<Change> {
    db.changes(since).unwrap().collect::<Result<_>>().unwrap()
}

/// Kind, key, name of the row, whether it is the last.
fn brief(changes: &[Change]) -> Vec<(ChangeKind, u64, String, bool)> {
    let of = |change: &Change| {
        let key = match change.key[..] {
            [Value::UInt(id)] => id,
            _ => 0,
        };
        let name = change.row.as_ref().map_or(String::new(), |row| row.str("name").to_string());
        (change.kind, key, name, change.ends_transaction)
    };
    changes.iter().map(of).collect()
}

fn expect(db: &Database, since: u64, expected: &[(ChangeKind, u64, &str, bool)]) -> u64 {
    let found = changes(db, since);
    let expected: Vec<_> =
        expected.iter().map(|(kind, key, name, last)| (*kind, *key, name.to_string(), *last)).collect();
    assert_eq!(brief(&found), expected);
    found.last().map_or(since, |change| change.sequence)
}

#[test]
fn a_transaction_leaves_what_it_has_made_of_each_row() {
    let db = memory();
    let table = db.create_table("t", schema()).unwrap();
    let other = people(&db);
    assert!(changes(&db, 0).is_empty());
    let mut txn = db.begin().unwrap();
    for id in 1..=4u64 {
        txn.insert(&table, &values![id, "first", null, null]).unwrap();
    }
    txn.update(&table, &values![2], &[("name", "second".into())]).unwrap();
    txn.update(&table, &values![2], &[("name", "third".into())]).unwrap();
    txn.delete(&table, &values![3]).unwrap();
    txn.insert(&other, &values![null, "Lovelace", "Ada", null]).unwrap();
    txn.commit().unwrap();
    let first = [(Insert, 1, "first", false), (Insert, 4, "first", false), (Insert, 2, "third", true)];
    let position = expect(&db, 0, &first);

    // A row that comes back, one that changes its key, one that does not change.
    let mut txn = db.begin().unwrap();
    txn.delete(&table, &values![1]).unwrap();
    txn.insert(&table, &values![1, "again", null, null]).unwrap();
    txn.update(&table, &values![2], &[("id", 20u64.into())]).unwrap();
    txn.update(&table, &values![4], &[("name", "first".into())]).unwrap();
    assert!(!txn.delete(&table, &values![99]).unwrap());
    txn.commit().unwrap();
    let position =
        expect(&db, position, &[(Update, 1, "again", false), (Delete, 2, "", false), (Insert, 20, "third", true)]);

    // What did not happen: a failed statement, a rollback, a transaction that changes nothing, other tables.
    let mut txn = db.begin().unwrap();
    assert!(txn.insert_many(&table, [values![5, "x", null, null], values![4, "x", null, null]]).is_err());
    txn.delete(&table, &values![4]).unwrap();
    txn.rollback().unwrap();
    let mut txn = db.begin().unwrap();
    txn.insert(&table, &values![6, "x", null, null]).unwrap();
    txn.delete(&table, &values![6]).unwrap();
    txn.commit().unwrap();
    add(&db, &other, "Hopper", "Grace", None);
    expect(&db, position, &[]);
    assert_eq!((db.last_change().unwrap(), changes(&db, position).len()), (position, 0));
    sound(&db);
}

#[test]
fn savepoints_that_are_rolled_back_take_their_changes_along() {
    let db = memory();
    let table = db.create_table("t", schema()).unwrap();
    db.transact(|txn| txn.insert(&table, &values![1, "one", null, null])).unwrap();
    let since = db.last_change().unwrap();
    let mut txn = db.begin().unwrap();
    txn.update(&table, &values![1], &[("name", "kept".into())]).unwrap();
    let savepoint = txn.savepoint();
    txn.update(&table, &values![1], &[("name", "lost".into())]).unwrap();
    txn.insert_many(&table, (2..400u64).map(|id| values![id, "lost", null, null])).unwrap();
    txn.rollback_to(savepoint).unwrap();
    txn.insert(&table, &values![3, "three", null, null]).unwrap();
    txn.commit().unwrap();
    let since = expect(&db, since, &[(Update, 1, "kept", false), (Insert, 3, "three", true)]);

    let mut txn = db.begin().unwrap();
    let savepoint = txn.savepoint();
    txn.delete(&table, &values![1]).unwrap();
    txn.rollback_to(savepoint).unwrap();
    txn.commit().unwrap();
    expect(&db, since, &[]);
}

#[test]
fn every_level_and_call_is_logged() {
    let db = memory();
    let table = db.create_table("t", schema()).unwrap();
    let mut replica = Replica::default();
    let levels =
        [Isolation::ReadUncommitted, Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable];
    for (n, isolation) in (0..).zip(levels) {
        let options = TxnOptions { isolation, first_committer_wins: n % 2 == 0, ..TxnOptions::default() };
        let mut txn = db.begin_with(options).unwrap();
        txn.insert_many(&table, (n * 10..n * 10 + 9u64).map(|id| values![id, "many", 1, null])).unwrap();
        txn.replace(&table, &values![n * 10, "upserted", 2, null]).unwrap();
        txn.scan(&table).from(&values![n * 10 + 5]).delete().unwrap();
        txn.modify(&table, &values![n * 10 + 1], |_, set| set.put("note", 9)).unwrap();
        if n % 2 == 0 { txn.commit().unwrap() } else { assert!(txn.commit_lsn().unwrap() > 0) }
    }
    let mut session = db.session();
    session.txn().unwrap().delete(&table, &values![0]).unwrap();
    session.commit().unwrap();
    replica.take(&db, usize::MAX).unwrap();
    replica.check(&db, &table, "at the end");
    assert_eq!(replica.rows.len(), 19);
}

#[test]
fn large_transactions_and_long_columns_come_whole() {
    let db = memory();
    let table = db.create_table("t", schema()).unwrap();
    let long = |n: u64, bytes: usize| (0..bytes).map(|at| (at as u64 * 7 + n) as u8).collect::<Vec<u8>>();
    let mut txn = db.begin().unwrap();
    txn.insert_many(&table, (0..2000u64).map(|id| values![id, "a name that is not short", id, null])).unwrap();
    for (id, bytes) in [(5000u64, 250_000), (5001, 3000), (5002, 0)] {
        txn.insert(&table, &values![id, "long", null, &long(id, bytes)[..]]).unwrap();
    }
    txn.commit().unwrap();
    // The long columns stay where they are.
    db.transact(|txn| txn.update(&table, &values![5000], &[("name", "other".into())])).unwrap();
    let mut replica = Replica::default();
    replica.take(&db, 1999).unwrap();
    assert_eq!((replica.position, replica.rows.len()), (0, 0));
    replica.take(&db, usize::MAX).unwrap();
    replica.check(&db, &table, "after a large transaction");
    let last = changes(&db, 1).pop().unwrap();
    assert_eq!(last.row.unwrap().bytes("long"), long(5000, 250_000));
    let db = db.reopen();
    let mut again = Replica::default();
    again.take(&db, usize::MAX).unwrap();
    again.check(&db, &db.table("t").unwrap(), "after another opening");
    sound(&db);
}

#[test]
fn nothing_is_read_beyond_a_prepared_transaction() {
    let storage = StorageSet::memory();
    let db = open(&storage);
    let table = db.create_table("t", schema()).unwrap();
    let xid = |n: u8| Xid::new(1, &[n], b"").unwrap();
    let prepare = |db: &Database, id: u64| {
        let mut txn = db.begin().unwrap();
        txn.insert(&db.table("t").unwrap(), &values![id, "prepared", null, null]).unwrap();
        txn.prepare(xid(id as u8)).unwrap().unwrap()
    };
    db.transact(|txn| txn.insert(&table, &values![1, "one", null, null])).unwrap();
    let (first, second) = (prepare(&db, 2), prepare(&db, 3));
    db.transact(|txn| txn.insert(&table, &values![4, "four", null, null])).unwrap();
    expect(&db, 0, &[(Insert, 1, "one", true)]);
    first.rollback().unwrap();
    expect(&db, 0, &[(Insert, 1, "one", true)]);
    second.detach();
    drop(db);

    let db = open(&storage.cut(7));
    assert_eq!(db.prepared()[0].tables, ["t"]);
    assert!(db.tables().iter().all(|table| table.name() == "t"));
    let table = db.table("t").unwrap();
    db.transact(|txn| txn.insert(&table, &values![5, "five", null, null])).unwrap();
    let one = expect(&db, 0, &[(Insert, 1, "one", true)]);
    db.finish_prepared(&xid(3), true).unwrap();
    let rest = [(Insert, 3, "prepared", true), (Insert, 4, "four", true), (Insert, 5, "five", true)];
    expect(&db, one, &rest);
    sound(&db);
}

#[test]
fn a_copy_of_concurrent_writers_equals_the_table() {
    const WRITERS: u64 = 3;
    let db = patient();
    let table = db.create_table("t", schema()).unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let (db, table, is_over) = (&db, &table, &is_over);
        let consumer = scope.spawn(move || {
            let (mut replica, mut stream) = (Replica::default(), db.changes(0).unwrap());
            let mut open = Vec::new();
            while stream.wait(Duration::from_millis(20)).unwrap() || !is_over.load(SeqCst) {
                let Some(change) = stream.next() else { continue };
                let change = change.unwrap();
                let last = change.ends_transaction.then_some(change.sequence);
                open.push(change);
                if let Some(sequence) = last {
                    assert!(sequence > replica.position);
                    assert_eq!(stream.position(), sequence);
                    open.drain(..).for_each(|change| replica.apply(change));
                    replica.position = sequence;
                }
            }
            replica
        });
        let writers: Vec<_> = (0..WRITERS).map(|writer| scope.spawn(move || write(db, table, writer))).collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        is_over.store(true, SeqCst);
        consumer.join().unwrap().check(db, table, "after all writers");
    });
    sound(&db);
}

/// Transactions on few rows, which wait for each other.
fn write(db: &Database, table: &Table, writer: u64) {
    for n in 0..60u64 {
        let _met_another = db.transact(|txn| {
            let ids = [(n * 7 + writer) % 5, (n * 3 + writer * 2) % 5];
            for id in ids {
                match (n + id) % 4 {
                    0 => drop(txn.delete(table, &values![id])?),
                    _ => drop(txn.replace(table, &values![id, "w", (n * 10 + writer) as i64, null])?),
                }
            }
            if n % 9 == 0 { Err(Error::Usage("rolled back".to_string())) } else { Ok(()) }
        });
    }
}

#[test]
fn tables_that_change_say_so_between_their_rows() {
    let db = memory();
    let table = db.create_table("t", schema()).unwrap();
    let names = |since: u64| -> Vec<(ChangeKind, String)> {
        changes(&db, since).iter().map(|change| (change.kind, change.table.clone())).collect()
    };
    let of =
        |kinds: &[(ChangeKind, &str)]| kinds.iter().map(|(kind, table)| (*kind, table.to_string())).collect::<Vec<_>>();
    db.transact(|txn| txn.insert(&table, &values![1, "old", null, null])).unwrap();
    let added = db.alter_table("t", &[TableChange::add_column("more", Type::U8, 7u8)]).unwrap();
    db.transact(|txn| txn.insert(&added, &values![2, "new", null, null, 8])).unwrap();
    assert_eq!(names(0), of(&[(Insert, "t"), (TableChanged, "t"), (Insert, "t")]));
    // Rows of before are shown in the columns of now.
    let found = changes(&db, 0);
    assert_eq!(
        found.iter().filter_map(|change| change.row.as_ref()).map(|row| row.u64("more")).collect::<Vec<_>>(),
        [7, 8]
    );
    let since = found.last().unwrap().sequence;

    let renamed = db.rename_table("t", "u").unwrap();
    db.transact(|txn| txn.delete(&renamed, &values![1])).unwrap();
    assert_eq!(names(since), of(&[(TableChanged, "t"), (TableChanged, "u"), (Delete, "u")]));
    let last_of_rename = changes(&db, since)[1].clone();
    assert!(last_of_rename.ends_transaction && last_of_rename.key.is_empty());

    // Rows of a table that was truncated or dropped since are not shown.
    let emptied = db.truncate_table("u").unwrap();
    db.transact(|txn| txn.insert(&emptied, &values![3, "three", null, null, 1])).unwrap();
    assert_eq!(names(since), of(&[(TableChanged, "t"), (TableChanged, "u"), (TableChanged, "u"), (Insert, "u")]));
    db.drop_table("u").unwrap();
    assert_eq!(names(since), of(&[(TableChanged, "t"), (TableChanged, "u"), (TableChanged, "u"), (TableChanged, "u")]));
    sound(&db);
}

#[test]
fn a_table_that_is_not_used_can_begin_and_end_to_log() {
    let db = memory();
    let plain = db.create_table("p", by_id()).unwrap();
    db.transact(|txn| txn.insert(&plain, &values![1])).unwrap();
    let wanted = || by_id().log_changes();
    let refused = db.table_or_create("p", wanted()).unwrap_err();
    assert!(refused.to_string().contains("no log of its changes"), "{refused}");
    let migrated = db.migrate("p", wanted()).unwrap();
    assert_eq!(migrated.changes, [TableChange::LogChanges(true)]);
    assert!(migrated.table.definition().log_changes);
    db.transact(|txn| txn.insert(&migrated.table, &values![2])).unwrap();
    let kinds = |since| changes(&db, since).iter().map(|change| change.kind).collect::<Vec<_>>();
    assert_eq!(kinds(0), [TableChanged, Insert]);
    let plain = db.alter_table("p", &[TableChange::LogChanges(false)]).unwrap();
    db.transact(|txn| txn.insert(&plain, &values![3])).unwrap();
    assert_eq!(kinds(0), [TableChanged, Insert, TableChanged]);
}

#[test]
fn numbers_go_on_behind_what_was_trimmed() {
    let db = memory();
    assert_eq!((db.trim_changes(9).unwrap(), db.last_change().unwrap()), (0, 0));
    let table = db.create_table("t", schema()).unwrap();
    let add = |db: &Database, id: u64| {
        let table = db.table("t").unwrap();
        db.transact(|txn| txn.insert(&table, &values![id, &*"x".repeat(90), null, &[1u8; 9000][..]])).unwrap();
        db.last_change().unwrap()
    };
    let numbers: Vec<u64> = (0..10).map(|id| add(&db, id)).collect();
    let mut slow = db.changes(numbers[2]).unwrap();
    assert_eq!(db.trim_changes(numbers[4]).unwrap(), numbers[4]);
    assert_eq!(db.trim_changes(numbers[3]).unwrap(), numbers[4]);
    assert_eq!(changes(&db, numbers[4]).len(), 5);
    let refused = db.changes(numbers[3]).err().unwrap();
    assert!(
        matches!(refused, Error::ChangesTrimmed { since, trimmed } if (since, trimmed) == (numbers[3], numbers[4]))
    );
    let met = slow.find_map(|change| change.err());
    assert!(met.is_none_or(|error| matches!(error, Error::ChangesTrimmed { .. })));

    // Beyond the end nothing is trimmed.
    assert_eq!(db.trim_changes(u64::MAX).unwrap(), numbers[9]);
    assert_eq!((db.last_change().unwrap(), changes(&db, numbers[9]).len()), (numbers[9], 0));
    drop((slow, table));
    let db = db.reopen();
    assert_eq!(db.last_change().unwrap(), numbers[9]);
    assert!(add(&db, 50) > numbers[9]);
    assert_eq!(changes(&db, numbers[9]).len(), 1);
    let refused = db.changes(u64::MAX).err().unwrap();
    assert!(refused.to_string().contains("belongs to another state of the database"), "{refused}");
    sound(&db);
}

#[test]
fn the_log_is_no_table_of_users() {
    let db = memory();
    let table = db.create_table("t", schema()).unwrap();
    db.transact(|txn| txn.insert(&table, &values![1, "one", null, null])).unwrap();
    let name = "highwater.changes";
    assert!(db.tables().len() == 1 && !db.has_table(name) && db.table(name).is_err());
    assert!(db.drop_table(name).is_err() && db.truncate_table(name).is_err());
    assert!(matches!(db.create_table(name, schema()), Err(Error::Schema(_))));
    assert!(matches!(db.rename_table("t", name), Err(Error::Schema(_))));
    // A dump has the table and that it logs its changes; the loaded rows are new to consumers.
    let mut dump = Vec::new();
    db.dump(&mut dump).unwrap();
    let loaded = memory();
    loaded.load(&dump[..]).unwrap();
    assert!(loaded.tables().len() == 1 && loaded.table("t").unwrap().definition().log_changes);
    let found = changes(&loaded, 0);
    assert!(found.iter().all(|change| change.kind == TableChanged), "{found:?}");
    assert_eq!(found.last().unwrap().table, "t");
}

#[test]
fn a_wait_ends_with_a_change_an_interruption_or_the_end() {
    let storage = StorageSet::memory();
    let db = open(&storage);
    let table = db.create_table("t", schema()).unwrap();
    let long = Duration::from_secs(60);
    let handle = db.interrupt_handle();
    let mut stream = db.with_interrupt(&handle).changes(0).unwrap();
    thread::scope(|scope| {
        let waits = scope.spawn(|| stream.wait(long));
        thread::sleep(Duration::from_millis(30));
        db.transact(|txn| txn.insert(&table, &values![1, "one", null, null])).unwrap();
        assert!(waits.join().unwrap().unwrap());
    });
    assert_eq!((stream.position(), stream.next().unwrap().unwrap().kind), (0, Insert));
    assert_eq!(stream.position(), db.last_change().unwrap());
    let since = Instant::now();
    assert!(!stream.wait(Duration::from_millis(40)).unwrap() && since.elapsed() >= Duration::from_millis(40));
    thread::scope(|scope| {
        let waits = scope.spawn(|| stream.wait(long));
        thread::sleep(Duration::from_millis(30));
        handle.interrupt();
        assert!(matches!(waits.join().unwrap(), Err(Error::Interrupted)));
    });
    thread::scope(|scope| {
        let waits = scope.spawn(|| stream.wait(long));
        thread::sleep(Duration::from_millis(30));
        db.clone().close().unwrap();
        assert!(matches!(waits.join().unwrap(), Err(Error::Closed)));
    });
    drop((stream, table, db));
    let read_only = Database::open_storage_idle(storage, Options { read_io_threads: 1, ..options() }).unwrap();
    assert_eq!(changes(&read_only, 0).len(), 1);
}
