//! Expired rows are not read, do not block insertions, and are removed; also in a database whose power is cut.

use crate::db::Database;
use crate::db::deterministic::{DeterministicDb, OpenOverrides};
use crate::db::expiry::{BUSY_PAUSE, Expired::*, IDLE_PAUSE};
use crate::db::testing::by_id;
use crate::error::{Error, Result};
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};
use crate::table::{DateTime, Schema, Table, TableChange, Type};
use crate::testing::small_options;
use crate::txn::{Isolation, TxnOptions};
use crate::{ValueRef, values};
use highwater_storage::{Faults, StorageSet};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Rows of [`Clocked::filled`]: row n expires at second n, and each third one never.
const ROWS: u64 = 30;

/// A database whose clock the test moves on.
struct Clocked {
    clocked: DeterministicDb,
    now_ms: Arc<AtomicU64>,
}

impl Clocked {
    fn open(storage: &StorageSet) -> Clocked {
        let now_ms = Arc::new(AtomicU64::new(0));
        let overrides = OpenOverrides::default();
        let clocked = DeterministicDb::open(storage.clone(), small_options(), &overrides, now_ms.clone()).unwrap();
        Clocked { clocked, now_ms }
    }

    fn filled(storage: &StorageSet) -> (Clocked, Table) {
        let clocked = Clocked::open(storage);
        let table = clocked.db().create_table("t", schema()).unwrap();
        clocked.db().transact(|txn| txn.insert_many(&table, (0..ROWS).map(|n| row(n, n)))).unwrap();
        (clocked, table)
    }

    fn db(&self) -> &Database {
        self.clocked.database()
    }

    fn at_second(&self, second: u64) -> &Database {
        self.now_ms.store(second * 1000, Relaxed);
        self.db()
    }
}

fn schema() -> Schema {
    by_id()
        .nullable("until", Type::DateTime)
        .column("code", Type::U64)
        .column("text", Type::Text(20_000))
        .unique_index("by_code", &["code"])
        .index("by_until", &["until"])
        .expires("until")
}

fn second(n: u64) -> DateTime {
    DateTime::from_unix_us(n as i64 * 1_000_000)
}

/// A third of the rows never expires, and some have overflow pages.
fn row(id: u64, code: u64) -> [ValueRef<'static>; 4] {
    static LONG: &str = match std::str::from_utf8(&[b'x'; 9000]) {
        Ok(text) => text,
        Err(_) => "",
    };
    let until = if id.is_multiple_of(3) { ValueRef::Null } else { ValueRef::DateTime(second(id)) };
    [ValueRef::UInt(id), until, ValueRef::UInt(code), ValueRef::Text(if id % 4 == 1 { LONG } else { "short" })]
}

/// The rows that there are at a second.
fn alive(at: u64) -> Vec<u64> {
    (0..ROWS).filter(|n| n.is_multiple_of(3) || *n > at).collect()
}

fn expect_sound(db: &Database) {
    let report = db.check().unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

fn levels() -> [TxnOptions; 4] {
    use Isolation::{ReadCommitted, ReadUncommitted, RepeatableRead, Serializable};
    [ReadUncommitted, ReadCommitted, RepeatableRead, Serializable]
        .map(|isolation| TxnOptions { isolation, ..TxnOptions::default() })
}

#[test]
fn no_read_finds_an_expired_row() -> Result<()> {
    let (clocked, table) = Clocked::filled(&StorageSet::memory());
    for at in [0, 1, 10, 11, 29, 40] {
        let (db, alive) = (clocked.at_second(at), alive(at));
        for options in levels() {
            let case = format!("second {at}, {:?}", options.isolation);
            let mut txn = db.begin_with(options)?;
            for id in 0..ROWS {
                let is_there = alive.contains(&id);
                let key = values![id];
                assert_eq!(txn.get(&table, &key)?.is_some(), is_there, "{case}, row {id}");
                assert_eq!(txn.get_for_update(&table, &key)?.is_some(), is_there, "{case}, row {id}");
                assert_eq!(txn.get_by(&table, "by_code", &key)?.is_some(), is_there, "{case}, row {id}");
            }
            let ids =
                |rows: crate::ScanIter<'_>| rows.map(|row| row.map(|row| row.u64(0))).collect::<Result<Vec<u64>>>();
            assert_eq!(ids(txn.scan(&table).iter()?)?, alive, "{case}");
            assert_eq!(ids(txn.scan(&table).for_share().iter()?)?, alive, "{case}");
            let mut back = ids(txn.scan(&table).rev().iter()?)?;
            back.reverse();
            assert_eq!(back, alive, "{case}");
            assert_eq!(ids(txn.scan(&table).index("by_code").iter()?)?, alive, "{case}");
            assert_eq!(txn.scan(&table).count()?, alive.len() as u64, "{case}");
            assert_eq!(txn.scan(&table).index("by_code").count()?, alive.len() as u64, "{case}");
            assert_eq!(txn.scan(&table).index("by_code").keys()?.count(), alive.len(), "{case}");
            let few: Vec<u64> = alive.iter().copied().take(5).collect();
            assert_eq!(ids(txn.scan(&table).limit(5).iter()?)?, few, "{case}");
            let mut visited = Vec::new();
            txn.scan(&table).visit(|row| {
                visited.push(row.u64(0));
                ControlFlow::Continue(())
            })?;
            assert_eq!(visited, alive, "{case}");
            txn.rollback()?;
        }
        let mut read = db.snapshot()?;
        assert_eq!(read.scan(&table).count()?, alive.len() as u64, "second {at}");
    }
    Ok(())
}

#[test]
fn a_transaction_judges_by_the_time_of_its_first_call() -> Result<()> {
    let (clocked, table) = Clocked::filled(&StorageSet::memory());
    for options in levels() {
        let db = clocked.at_second(3);
        let mut txn = db.begin_with(options)?;
        assert_eq!(txn.scan(&table).count()?, alive(3).len() as u64);
        clocked.at_second(50);
        assert_eq!(txn.scan(&table).count()?, alive(3).len() as u64);
        assert!(txn.get(&table, &values![4u64])?.is_some());
        assert!(txn.update(&table, &values![4u64], &[(1, second(4).into())])?);
        txn.rollback()?;
        assert_eq!(db.snapshot()?.scan(&table).count()?, alive(50).len() as u64);
    }
    Ok(())
}

#[test]
fn changes_find_nothing_and_insertions_take_the_place() -> Result<()> {
    let (clocked, table) = Clocked::filled(&StorageSet::memory());
    let db = clocked.at_second(20);
    let mut txn = db.begin()?;
    for id in [1u64, 5] {
        assert!(!txn.update(&table, &values![id], &[(1, ValueRef::Null)])?);
        assert!(!txn.modify(&table, &values![id], |_, _| panic!("there is no such row"))?);
        assert!(!txn.delete(&table, &values![id])?);
    }
    assert_eq!(txn.scan(&table).from(&values![1u64]).to(&values![2u64]).delete()?, 0);
    // By the primary key; a row on overflow pages too.
    txn.insert(&table, &[ValueRef::UInt(1), ValueRef::Null, ValueRef::UInt(1), ValueRef::Text("new")])?;
    txn.insert(&table, &[ValueRef::UInt(2), ValueRef::Null, ValueRef::UInt(2), ValueRef::Text("new")])?;
    // By the unique index, of a row with another key; as an update, too.
    txn.insert(&table, &[ValueRef::UInt(100), ValueRef::Null, ValueRef::UInt(4), ValueRef::Text("new")])?;
    assert!(txn.update(&table, &values![3u64], &[(2, 5u64.into()), (1, second(25).into())])?);
    let many = [[7u64, 7], [8, 8], [101, 10]];
    let many = many.map(|[id, code]| values![id, null, code, "new"]);
    txn.insert_many(&table, many)?;
    // A row that is not expired is a duplicate as ever.
    let wrong = txn.insert(&table, &row(22, 200)).unwrap_err();
    assert!(matches!(&wrong, Error::DuplicateKey { index, .. } if index == "PRIMARY"), "{wrong}");
    let wrong = txn.insert(&table, &row(102, 22)).unwrap_err();
    assert!(matches!(&wrong, Error::DuplicateKey { index, .. } if index == "by_code"), "{wrong}");
    txn.commit()?;
    let ids: Vec<u64> = db.snapshot()?.scan(&table).iter()?.map(|row| row.unwrap().u64(0)).collect();
    let expected = alive(20).into_iter().chain([1, 2, 7, 8, 100, 101]);
    let mut expected: Vec<u64> = expected.collect();
    expected.sort_unstable();
    assert_eq!(ids, expected);
    assert!(db.snapshot()?.get(&table, &values![4u64])?.is_none());
    expect_sound(db);
    Ok(())
}

#[test]
fn a_rollback_brings_back_the_row_whose_place_was_taken() -> Result<()> {
    let (clocked, table) = Clocked::filled(&StorageSet::memory());
    let db = clocked.at_second(20);
    let mut txn = db.begin()?;
    txn.insert(&table, &[ValueRef::UInt(100), ValueRef::Null, ValueRef::UInt(4), ValueRef::Text("new")])?;
    txn.insert(&table, &[ValueRef::UInt(5), ValueRef::Null, ValueRef::UInt(5), ValueRef::Text("new")])?;
    txn.rollback()?;
    expect_sound(db);
    // No transaction reads it now; it is visible again when the table forgets its expiry.
    assert_eq!(db.snapshot()?.scan(&table).count()?, alive(20).len() as u64);
    let table = db.alter_table("t", &[TableChange::never_expires()])?;
    assert_eq!(db.snapshot()?.scan(&table).count()?, ROWS);
    Ok(())
}

#[test]
fn steps_remove_what_is_expired_and_not_locked() -> Result<()> {
    let (clocked, table) = Clocked::filled(&StorageSet::memory());
    let db = clocked.at_second(3);
    let mut holds = db.begin()?;
    assert!(holds.get_for_update(&table, &values![4u64])?.is_some());
    clocked.at_second(10);
    assert_eq!(db.expire_step(), FewRows);
    let stats = |db: &Database| db.stats().rows_expired;
    assert_eq!(stats(db), 6);
    holds.commit()?;
    assert_eq!(db.expire_step(), FewRows);
    assert_eq!(stats(db), 7);
    expect_sound(db);
    clocked.at_second(0);
    assert_eq!(db.snapshot()?.scan(&table).count()?, ROWS - 7);
    assert_eq!(db.expire_step(), FewRows);
    assert_eq!(stats(db), 7);
    // As many as a step may, then the rest.
    db.transact(|txn| txn.insert_many(&table, (1000..1250).map(|id| values![id as u64, second(1), id as u64, "x"])))?;
    clocked.at_second(1);
    assert_eq!([(); 3].map(|()| db.expire_step()), [MoreRows, MoreRows, FewRows]);
    assert_eq!(stats(db), 7 + 250);
    Ok(())
}

#[test]
fn a_table_without_an_index_keeps_its_rows_and_says_so() -> Result<()> {
    let clocked = Clocked::open(&StorageSet::memory());
    let db = clocked.at_second(5);
    let schema = by_id().column("until", Type::DateTime);
    let wrong = db.create_table("w", schema.clone().expires("id")).unwrap_err().to_string();
    assert!(wrong.contains("rows expire by a column of type datetime, not u64"), "{wrong}");
    let table = db.create_table("t", schema.expires("until"))?;
    let warnings = table.warnings();
    assert!(warnings[0].contains("no index of table t begins with column until"), "{warnings:?}");
    db.transact(|txn| txn.insert(&table, &values![1u64, second(1)]).map(drop))?;
    assert_eq!(db.expire_step(), NoTable);
    assert_eq!((db.snapshot()?.scan(&table).count()?, db.stats().rows_expired), (0, 0));
    // An index that is built now has the expired row.
    db.create_index("t", "by_until", &["until"], false)?;
    expect_sound(db);
    assert!(db.table("t")?.warnings().is_empty());
    db.expire_step();
    assert_eq!(db.stats().rows_expired, 1);
    expect_sound(db);
    Ok(())
}

#[test]
fn an_expiry_is_declared_and_taken_back_at_once() -> Result<()> {
    let storage = StorageSet::memory();
    let clocked = Clocked::open(&storage);
    let db = clocked.at_second(10);
    let plain = by_id().nullable("until", Type::DateTime);
    let expiring = plain.clone().index("by_until", &["until"]).expires("until");
    let table = db.migrate("t", plain.clone())?.table;
    db.transact(|txn| txn.insert_many(&table, [values![1u64, second(1)], values![2u64, null]]))?;
    let done = db.migrate("t", expiring.clone())?;
    assert_eq!((&done.changes[..], done.indexes.len()), (&[TableChange::expires("until")][..], 1));
    assert_eq!(db.snapshot()?.scan(&done.table).count()?, 1);
    assert!(db.migrate("t", expiring)?.changes.is_empty());
    let wrong = db.alter_table("t", &[TableChange::drop_column("until")]).unwrap_err().to_string();
    assert!(wrong.contains("until"), "{wrong}");
    clocked.clocked.close()?;

    let clocked = Clocked::open(&storage);
    let db = clocked.at_second(10);
    let table = db.table("t")?;
    assert_eq!((table.definition().expires, db.snapshot()?.scan(&table).count()?), (Some(1), 1));
    // A dump has the declaration, and the rows that are there.
    let mut dump = Vec::new();
    assert_eq!(db.dump(&mut dump)?.rows(), 1);
    let copy = Database::in_memory()?;
    copy.load(&dump[..])?;
    assert_eq!(*copy.table("t")?.definition(), *table.definition());
    let done = db.migrate("t", plain.index("by_until", &["until"]))?;
    assert_eq!(done.changes, [TableChange::never_expires()]);
    assert_eq!(db.snapshot()?.scan(&done.table).count()?, 2);
    Ok(())
}

#[test]
fn a_power_cut_in_a_removal_loses_nothing() {
    let storage = StorageSet::memory();
    let (clocked, _) = Clocked::filled(&storage);
    clocked.clocked.close().unwrap();
    let mut cuts = 0;
    for changes in 0.. {
        let memory = storage.cut(0);
        let faults = Faults::new();
        let clocked = Clocked::open(&memory.map(|device| faults.wrap(device)));
        let db = clocked.at_second(20);
        faults.power_off_after(changes);
        db.expire_step();
        drop(clocked);
        let again = Clocked::open(&memory.cut(changes));
        let db = again.at_second(20);
        let table = db.table("t").unwrap();
        assert_eq!(db.snapshot().unwrap().scan(&table).count().unwrap(), alive(20).len() as u64, "{changes}");
        expect_sound(db);
        db.expire_step();
        again.at_second(0);
        assert_eq!(db.snapshot().unwrap().scan(&table).count().unwrap(), alive(20).len() as u64, "{changes}");
        expect_sound(db);
        if !faults.is_power_off() {
            break;
        }
        cuts += 1;
    }
    assert!(cuts > 0, "{cuts}");
}

/// The rows that a consumer has that took the whole log.
fn replayed(db: &Database) -> Vec<u64> {
    let mut rows = BTreeMap::new();
    for change in db.changes(0).unwrap() {
        let change = change.unwrap();
        match change.row {
            Some(row) => drop(rows.insert(row.u64(0), change.sequence)),
            None => {
                let crate::Value::UInt(id) = change.key[0] else { panic!("{:?}", change.key) };
                assert!(rows.remove(&id).is_some(), "row {id} is removed twice");
            }
        }
    }
    rows.into_keys().collect()
}

#[test]
fn a_removal_is_in_the_change_log_exactly_if_it_has_happened() {
    let storage = StorageSet::memory();
    let clocked = Clocked::open(&storage);
    let table = clocked.db().create_table("t", schema().log_changes()).unwrap();
    clocked.db().transact(|txn| txn.insert_many(&table, (0..ROWS).map(|n| row(n, n)))).unwrap();
    drop(clocked);
    // Nothing has expired at second 0: what is read then is what is there.
    let there = |db: &Database, table: &Table| {
        let mut read = db.snapshot().unwrap();
        read.scan(table).iter().unwrap().map(|row| row.unwrap().u64(0)).collect::<Vec<_>>()
    };
    let mut found = [0, 0];
    for changes in 0.. {
        let memory = storage.cut(0);
        let faults = Faults::new();
        let clocked = Clocked::open(&memory.map(|device| faults.wrap(device)));
        let db = clocked.at_second(20);
        faults.power_off_after(changes);
        db.expire_step();
        // An insertion takes the place of an expired row: an update, for a consumer.
        let table = db.table("t").unwrap();
        let _ = db.transact(|txn| txn.insert(&table, &row(1, 1)).map(drop));
        drop(clocked);
        let again = Clocked::open(&memory.cut(changes));
        let (db, table) = (again.at_second(0), again.db().table("t").unwrap());
        let rows = there(db, &table);
        assert_eq!(replayed(db), rows, "cut {changes}");
        found[usize::from(rows.len() < ROWS as usize)] += 1;
        again.at_second(20).expire_step();
        again.at_second(0);
        assert_eq!(replayed(db), there(db, &table), "cut {changes}, removed again");
        expect_sound(db);
        if !faults.is_power_off() {
            break;
        }
    }
    assert!(found[0] > 0 && found[1] > 0, "{found:?}");
}

#[test]
fn changes_older_than_the_bound_are_removed_and_a_consumer_behind_it_gets_an_error() -> Result<()> {
    let clocked = Clocked::open(&StorageSet::memory());
    let table = clocked.db().create_table("t", by_id().log_changes())?;
    let insert = |at: u64, id: u64| {
        let db = clocked.at_second(at);
        db.transact(|txn| txn.insert(&table, &values![id]).map(drop))?;
        db.last_change()
    };
    let numbers = (1..=5).map(|at| insert(at, at)).collect::<Result<Vec<u64>>>()?;
    let db = clocked.at_second(5);
    assert_eq!((db.expire_step(), db.changes(0)?.count()), (NoTable, 5));
    db.set_option("change_log_expire_seconds", "2")?;
    assert_eq!(db.expire_step(), FewRows);
    let refused = db.changes(numbers[1]).map(drop).unwrap_err();
    let expected = (numbers[1], numbers[2]);
    assert!(matches!(refused, Error::ChangesTrimmed { since, trimmed } if (since, trimmed) == expected), "{refused}");
    let times = |since| db.changes(since).unwrap().map(|change| change.unwrap().time).collect::<Vec<_>>();
    assert_eq!(times(numbers[2]), [second(4), second(5)]);
    // The clock goes back: changes after a younger one are kept until the younger one expires.
    insert(1, 6)?;
    clocked.at_second(6).expire_step();
    assert_eq!(times(numbers[3]), [second(5), second(1)]);
    clocked.at_second(7).expire_step();
    assert!(times(db.last_change()?).is_empty() && db.changes(numbers[3]).is_err());
    // As many as a step may, then the rest; one transaction has many parts.
    db.transact(|txn| txn.insert_many(&table, (0..40_000u64).map(|id| values![100 + id])))?;
    insert(7, 7)?;
    let db = clocked.at_second(9);
    assert_eq!([(); 2].map(|()| db.expire_step()), [MoreRows, FewRows]);
    assert!(db.changes(db.last_change()? - 1).is_err());
    expect_sound(db);
    Ok(())
}

#[test]
fn a_thread_removes_them_and_ends_with_the_database() {
    assert_eq!([NoTable, FewRows, MoreRows].map(|found| found.pause()), [None, Some(IDLE_PAUSE), Some(BUSY_PAUSE)]);
    let db = Database::in_memory().unwrap();
    let table = db.create_table("t", schema()).unwrap();
    db.alter_table("t", &[TableChange::never_expires()]).unwrap();
    let table = db.table(table.name()).unwrap();
    db.transact(|txn| txn.insert_many(&table, (0..ROWS).map(|n| row(n, n)))).unwrap();
    // It sleeps now; the change of the table ends that. The rows expired half a century ago.
    std::thread::sleep(std::time::Duration::from_millis(100));
    db.alter_table("t", &[TableChange::expires("until")]).unwrap();
    let begun = std::time::Instant::now();
    while db.stats().rows_expired < ROWS - ROWS / 3 {
        assert!(begun.elapsed().as_secs() < 60, "{}", db.stats().rows_expired);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    expect_sound(&db);
    db.close().unwrap();
}
