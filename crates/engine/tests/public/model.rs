//! Random transactions against a model: a sorted map for each state to come back to.

use crate::support::{all, check_indexes, open, sound};
use highwater::{Database, Error, Index, Schema, Table, Type, Value, values};
use highwater_storage::StorageSet;
use proptest::prelude::*;
use std::collections::BTreeMap;

type Key = (u8, String);
type Rest = (Option<i64>, Vec<u8>);
type Rows = BTreeMap<Key, Rest>;

#[derive(Clone, Debug)]
enum Step {
    Insert(u8, String, Option<i64>, usize),
    SetNumber(u8, String, Option<i64>),
    SetBytes(u8, String, usize),
    Move(u8, String, u8),
    Delete(u8, String),
    Savepoint,
    RollbackTo,
    Commit,
    Rollback,
    Reopen,
    Crash(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let key = || (0u8..6, "[ab\u{0}]{0,2}");
    let number = || prop::option::of(-3i64..3);
    let bytes = || prop_oneof![4 => 0usize..50, 1 => 500usize..9000];
    prop_oneof![
        12 => (key(), number(), bytes()).prop_map(|((a, b), n, len)| Step::Insert(a, b, n, len)),
        4 => (key(), number()).prop_map(|((a, b), n)| Step::SetNumber(a, b, n)),
        4 => (key(), bytes()).prop_map(|((a, b), len)| Step::SetBytes(a, b, len)),
        2 => (key(), 0u8..6).prop_map(|((a, b), to)| Step::Move(a, b, to)),
        4 => key().prop_map(|(a, b)| Step::Delete(a, b)),
        1 => Just(Step::Savepoint),
        1 => Just(Step::RollbackTo),
        2 => Just(Step::Commit),
        1 => Just(Step::Rollback),
        1 => Just(Step::Reopen),
        1 => any::<u64>().prop_map(Step::Crash),
    ]
}

fn create(db: &Database) {
    let schema = Schema::new()
        .column("a", Type::U8)
        .column("b", Type::Text(10))
        .nullable("n", Type::I64)
        .column("bytes", Type::Binary(10_000))
        .primary_key(&["a", "b"])
        .index("by_n", &["n"])
        .index_with("by_bytes", Index::new(&["bytes"]).prefix("bytes", 2).descending("bytes").covering(&["n"]))
        .unique_index("by_n_a", &["n", "a"]);
    db.create_table("t", schema).unwrap();
}

fn content(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + len) as u8).collect()
}

fn expected(rows: &Rows) -> Vec<Vec<Value>> {
    let value = |((a, b), (n, bytes)): (&Key, &Rest)| {
        vec![(*a).into(), b.clone().into(), n.map_or(Value::Null, Value::from), bytes.clone().into()]
    };
    rows.iter().map(value).collect()
}

/// Whether a row with this number breaks the unique index.
fn clashes(rows: &Rows, key: &Key, n: Option<i64>) -> bool {
    n.is_some() && rows.iter().any(|(other, (m, _))| other != key && other.0 == key.0 && *m == n)
}

fn run(steps: Vec<Step>) {
    let mut storage = StorageSet::memory();
    let mut db = open(&storage);
    create(&db);
    let mut committed = Rows::new();
    let mut steps = steps.into_iter().peekable();
    while steps.peek().is_some() {
        let table = db.table("t").unwrap();
        let (rows, end) = transaction(&db, &table, &committed, &mut steps);
        if let Some(rows) = rows {
            committed = rows;
        }
        drop(table);
        match end {
            Some(Step::Reopen) => {
                db.close().unwrap();
                db = open(&storage);
            }
            Some(Step::Crash(seed)) => {
                storage = storage.cut(seed);
                db = open(&storage);
            }
            _ => {}
        }
        let table = db.table("t").unwrap();
        assert_eq!(all(&db, &table, "PRIMARY"), expected(&committed));
        check_indexes(&db, &table);
    }
    sound(&db);
}

/// Runs steps until one ends the transaction; returns the rows if it committed.
fn transaction(
    db: &Database,
    table: &Table,
    committed: &Rows,
    steps: &mut impl Iterator<Item = Step>,
) -> (Option<Rows>, Option<Step>) {
    let mut txn = db.begin().unwrap();
    let mut rows = committed.clone();
    let mut savepoint = None;
    for step in steps {
        match step {
            Step::Insert(a, b, n, len) => {
                let key = (a, b);
                let refused = rows.contains_key(&key) || clashes(&rows, &key, n);
                let done = txn.insert(table, &values![key.0, &key.1, n, &content(len)]);
                assert_eq!(matches!(done, Err(Error::DuplicateKey { .. })), refused, "{done:?}");
                if !refused {
                    rows.insert(key, (n, content(len)));
                }
            }
            Step::SetNumber(a, b, n) => {
                let key = (a, b);
                let done = txn.update(table, &values![key.0, &key.1], &[(2, n.into())]);
                if rows.contains_key(&key) && clashes(&rows, &key, n) {
                    assert!(matches!(done, Err(Error::DuplicateKey { .. })), "{done:?}");
                } else {
                    assert_eq!(done.unwrap(), rows.contains_key(&key));
                    rows.entry(key).and_modify(|row| row.0 = n);
                }
            }
            Step::SetBytes(a, b, len) => {
                let key = (a, b);
                let done = txn.modify(table, &values![key.0, &key.1], |_, set| set.put(3, &content(len)));
                assert_eq!(done.unwrap(), rows.contains_key(&key));
                rows.entry(key).and_modify(|row| row.1 = content(len));
            }
            Step::Move(a, b, to) => {
                let (key, target) = ((a, b.clone()), (to, b));
                let done = txn.update(table, &values![key.0, &key.1], &[(0, to.into())]);
                let found = rows.get(&key).cloned();
                let taken = key != target && rows.contains_key(&target);
                match found {
                    None => assert!(!done.unwrap()),
                    Some(row) if taken || clashes(&rows, &key, None.or(row.0)) && a == to => {
                        assert!(matches!(done, Err(Error::DuplicateKey { .. })), "{done:?}");
                    }
                    Some(row) => {
                        let mut without = rows.clone();
                        without.remove(&key);
                        if clashes(&without, &target, row.0) {
                            assert!(matches!(done, Err(Error::DuplicateKey { .. })), "{done:?}");
                        } else {
                            assert!(done.unwrap());
                            rows = without;
                            rows.insert(target, row);
                        }
                    }
                }
            }
            Step::Delete(a, b) => {
                let key = (a, b);
                assert_eq!(txn.delete(table, &values![key.0, &key.1]).unwrap(), rows.remove(&key).is_some());
            }
            Step::Savepoint => savepoint = Some((txn.savepoint(), rows.clone())),
            Step::RollbackTo => {
                if let Some((at, then)) = savepoint.take() {
                    txn.rollback_to(at).unwrap();
                    rows = then;
                }
            }
            Step::Commit => {
                txn.commit().unwrap();
                return (Some(rows), None);
            }
            Step::Rollback => {
                txn.rollback().unwrap();
                return (None, None);
            }
            end @ (Step::Reopen | Step::Crash(_)) => {
                drop(txn);
                return (None, Some(end));
            }
        }
        let own: Vec<Vec<Value>> = txn.scan(table).iter().unwrap().map(|row| row.unwrap().to_values()).collect();
        assert_eq!(own, expected(&rows));
    }
    txn.commit().unwrap();
    (Some(rows), None)
}

proptest! {
    #![proptest_config(ProptestConfig { ..ProptestConfig::with_cases(48) })]

    #[test]
    fn the_database_is_its_model(steps in prop::collection::vec(step(), 1..120)) {
        run(steps);
    }
}
