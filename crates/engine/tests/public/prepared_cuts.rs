//! Power cuts at every change of the devices around prepare, commit, rollback and the end of what recovery has found:
//! the list of prepared transactions is exact, and either end leaves no trace.

use crate::prepared::{listed, xid};
use crate::support::{all, await_purge, check_indexes, open, options, sound};
use crate::testing::by_id;
use highwater::{Database, Error, Result, Table, Type, Value, WriteTxn, values};
use highwater_storage::{Faults, StorageSet};
use std::collections::BTreeMap;

/// What is known of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// Whether it is prepared is open.
    Preparing,
    Prepared,
    /// How it ends, and whether that is certain.
    Ending {
        commit: bool,
        is_acknowledged: bool,
    },
}

/// Transactions by number; the `n`th sets rows 10n to 10n + 9.
type Journal = BTreeMap<u64, Known>;

const ROWS: u64 = 10;

fn name(n: u64) -> String {
    format!("t{n}")
}

fn table(db: &Database) -> Table {
    let schema = by_id().column("value", Type::Text(400)).index("by_value", &["value"]);
    db.table_or_create("rows", schema).unwrap()
}

fn old_value(n: u64) -> String {
    format!("old {n} {}", "o".repeat(n as usize % 3 * 90))
}

fn new_value(n: u64) -> String {
    format!("new {n} {}", "n".repeat(n as usize % 4 * 80))
}

fn fill(db: &Database, transactions: u64) {
    let table = table(db);
    let mut txn = db.begin().unwrap();
    for id in 0..transactions * ROWS {
        // Of every ten rows eight are there; the other two are inserted.
        if id % ROWS < 8 {
            txn.insert(&table, &values![id, &*old_value(id)]).unwrap();
        }
    }
    txn.commit().unwrap();
}

fn change(txn: &mut WriteTxn, table: &Table, n: u64) -> Result<()> {
    for id in n * ROWS..(n + 1) * ROWS {
        match id % ROWS {
            0 => assert!(txn.delete(table, &values![id])?),
            1..8 => assert!(txn.update(table, &values![id], &[(1, (&*new_value(id)).into())])?),
            _ => drop(txn.insert(table, &values![id, &*new_value(id)])?),
        }
    }
    Ok(())
}

/// The rows of the `n`th transaction, before it or after it.
fn rows_of(n: u64, is_committed: bool) -> Vec<Vec<Value>> {
    let row = |id: u64, value: String| vec![Value::UInt(id), Value::Text(value)];
    (n * ROWS..(n + 1) * ROWS)
        .filter_map(|id| match (is_committed, id % ROWS) {
            (true, 0) | (false, 8..) => None,
            (true, _) => Some(row(id, new_value(id))),
            (false, _) => Some(row(id, old_value(id))),
        })
        .collect()
}

const TRANSACTIONS: u64 = 6;

/// Prepares all and ends all but two, in several ways; notes what is known until the power goes off.
fn play(db: &Database, journal: &mut Journal) -> Result<()> {
    let table = table(db);
    let mut all = Vec::new();
    for n in 0..TRANSACTIONS {
        let mut txn = db.begin()?;
        change(&mut txn, &table, n)?;
        journal.insert(n, Known::Preparing);
        all.extend(txn.prepare(xid(&name(n)))?);
        journal.insert(n, Known::Prepared);
    }
    all.drain(4..).for_each(|prepared| prepared.detach());
    let mut last = 0;
    for (n, prepared) in (0..).zip(all) {
        let commit = n % 2 == 0;
        journal.insert(n, Known::Ending { commit, is_acknowledged: false });
        match n {
            0 => prepared.commit()?,
            2 => last = prepared.commit_ordered()?,
            _ => prepared.rollback()?,
        }
        if n != 2 {
            journal.insert(n, Known::Ending { commit, is_acknowledged: true });
        }
    }
    db.wait_durable(last)?;
    journal.insert(2, Known::Ending { commit: true, is_acknowledged: true });
    end_listed(db, journal, 5)
}

/// Ends what is listed: commits those with even numbers. Leaves `but`.
fn end_listed(db: &Database, journal: &mut Journal, but: u64) -> Result<()> {
    for text in listed(db) {
        let n = text[1..].parse().unwrap();
        if n == but {
            continue;
        }
        journal.insert(n, Known::Ending { commit: n % 2 == 0, is_acknowledged: false });
        db.finish_prepared(&xid(&text), n % 2 == 0)?;
        journal.insert(n, Known::Ending { commit: n % 2 == 0, is_acknowledged: true });
    }
    Ok(())
}

/// Compares with what is known; afterwards all is known.
fn compare(db: &Database, journal: &mut Journal, at: &str) {
    let (table, list) = (table(db), listed(db));
    let rows = all(db, &table, "PRIMARY");
    for n in 0..TRANSACTIONS {
        let is_listed = list.contains(&name(n));
        let found: Vec<_> = rows.iter().filter(|row| matches!(row[0], Value::UInt(id) if id / ROWS == n)).collect();
        let is = |committed: bool| found.iter().copied().eq(&rows_of(n, committed));
        let wrong = format!("{at}: transaction {n}, {:?}, listed {is_listed}: {found:?}", journal.get(&n));
        match journal.get(&n).copied() {
            None => assert!(!is_listed && is(false), "{wrong}"),
            Some(Known::Preparing) => assert!(is(false), "{wrong}"),
            Some(Known::Prepared) => assert!(is_listed && is(false), "{wrong}"),
            Some(Known::Ending { commit, is_acknowledged: true }) => assert!(!is_listed && is(commit), "{wrong}"),
            Some(Known::Ending { commit, is_acknowledged: false }) => {
                assert!(if is_listed { is(false) } else { is(commit) }, "{wrong}");
            }
        }
        if is_listed {
            journal.insert(n, Known::Prepared);
        } else if matches!(journal.get(&n), Some(Known::Preparing)) {
            journal.insert(n, Known::Ending { commit: false, is_acknowledged: true });
        } else if let Some(Known::Ending { is_acknowledged, .. }) = journal.get_mut(&n) {
            *is_acknowledged = true;
        }
    }
    check_indexes(db, &table);
    sound(db);
}

/// Plays with a cut after this many changes, recovers with another cut in the middle, compares, and ends all. False:
/// the play was over before the cut.
fn cut_at(changes: u64, second: u64) -> bool {
    let (storage, faults, mut journal) = (StorageSet::memory(), Faults::new(), Journal::new());
    let db = open(&storage);
    fill(&db, TRANSACTIONS);
    db.close().unwrap();
    let db = open(&storage.map(|device| faults.wrap(device)));
    faults.power_off_after(changes);
    let is_cut = play(&db, &mut journal).is_err();
    drop(db);
    let mut storage = storage.cut(changes);
    for life in 0..2 {
        let faults = Faults::new();
        faults.power_off_after(second + life * 7);
        if let Ok(db) = Database::open_storage(storage.map(|device| faults.wrap(device)), options()) {
            // Its end may be cut off as well.
            match end_listed(&db, &mut journal, 5 + life) {
                Ok(()) | Err(Error::Storage(_) | Error::Poisoned(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
        storage = storage.cut(changes * 3 + life);
    }
    let at = format!("cut after {changes}, then {second}");
    let db = open(&storage);
    compare(&db, &mut journal, &at);
    end_listed(&db, &mut journal, u64::MAX).unwrap();
    compare(&db, &mut journal, &at);
    await_purge(&db);
    sound(&db);
    assert_eq!(db.check().unwrap().counts.transactions_prepared, 0);
    is_cut
}

#[test]
fn every_cut_leaves_the_list_exact() {
    let mut changes = 0;
    while cut_at(changes, changes % 23) {
        changes += 1;
    }
    assert!(changes > 12, "{changes} changes");
}
