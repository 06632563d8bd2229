//! Indexes that are more than ascending columns: descending ones, prefixes, covered columns, collations.

use crate::support::{await_purge, check_indexes, memory, open, sound};
use crate::testing::by_id;
use highwater::{Error, Index, Isolation, Scan, Schema, Table, TxnOptions, Type, Value, ValueRef, WriteTxn, values};
use highwater_storage::StorageSet;
use std::cmp::Ordering;
use std::collections::BTreeMap;

const COLUMNS: [&str; 5] = ["id", "name", "body", "n", "total"];

/// An index of these tests: its columns with direction and prefix, and what it covers.
struct Form {
    name: &'static str,
    parts: &'static [(usize, bool, usize)],
    covered: &'static [&'static str],
}

const WHOLE: usize = usize::MAX;
const FORMS: [Form; 3] = [
    Form { name: "by_name", parts: &[(1, false, WHOLE), (3, true, WHOLE)], covered: &["total"] },
    Form { name: "by_body", parts: &[(2, true, 3), (4, false, WHOLE)], covered: &["body"] },
    Form { name: "newest", parts: &[(3, true, WHOLE), (1, true, 2)], covered: &["body", "total"] },
];

fn schema() -> Schema {
    let schema = Schema::new()
        .column("id", Type::U64)
        .column("name", Type::Text(20))
        .collation("name", "ascii_ci")
        .nullable("body", Type::Text(300))
        .nullable("n", Type::I32)
        .column("total", Type::U64)
        .primary_key_with(Index::new(&["id"]).descending("id"));
    FORMS.iter().fold(schema, |schema, form| {
        let names: Vec<&str> = form.parts.iter().map(|part| COLUMNS[part.0]).collect();
        let index =
            form.parts.iter().fold(Index::new(&names).covering(form.covered), |index, (column, desc, prefix)| {
                let index = if *prefix == WHOLE { index } else { index.prefix(COLUMNS[*column], *prefix as u16) };
                if *desc { index.descending(COLUMNS[*column]) } else { index }
            });
        schema.index_with(form.name, index)
    })
}

type Rows = BTreeMap<u64, Vec<Value>>;

impl Form {
    fn compare(&self, a: &Value, b: &Value, (column, descending, prefix): (usize, bool, usize)) -> Ordering {
        let key = |value: &Value| match value {
            Value::Text(text) => {
                let text = if column == 1 { text.to_ascii_lowercase() } else { text.clone() };
                (1, 0, text.bytes().take(prefix).collect())
            }
            Value::Int(n) => (1, i128::from(*n), Vec::new()),
            Value::UInt(n) => (1, i128::from(*n), Vec::new()),
            _ => (0, 0, Vec::new()),
        };
        let order = key(a).cmp(&key(b));
        if descending { order.reverse() } else { order }
    }

    /// The order of a row and the end of a range; `None`: it begins as the end does, of which only the beginning
    /// counts.
    fn to_bound(&self, row: &[Value], bound: &[Value]) -> Option<Ordering> {
        for (part, value) in self.parts.iter().zip(bound) {
            let order = self.compare(&row[part.0], value, *part);
            if order.is_ne() {
                return Some(order);
            }
            if matches!(value, Value::Text(text) if text.len() > part.2) {
                return None;
            }
        }
        Some(Ordering::Equal)
    }

    fn sorted(&self, rows: &Rows) -> Vec<Vec<Value>> {
        let mut sorted: Vec<_> = rows.values().cloned().collect();
        sorted.sort_by(|a, b| {
            let by_part = self.parts.iter().map(|part| self.compare(&a[part.0], &b[part.0], *part));
            by_part.fold(Ordering::Equal, Ordering::then).then(self.compare(&b[0], &a[0], (0, false, WHOLE)))
        });
        sorted
    }
}

fn text(random: &mut fastrand::Rng, max: usize) -> String {
    let letters = ["a", "B", "A", "b", "\u{0}", "\u{1}", "ä", "~"];
    (0..random.usize(..=max)).map(|_| letters[random.usize(..letters.len())]).collect()
}

fn row(random: &mut fastrand::Rng, id: u64) -> Vec<Value> {
    let body = (random.u8(..5) > 0).then(|| text(random, 6) + &"x".repeat([0, 0, 0, 200][random.usize(..4)]));
    let n = (random.u8(..4) > 0).then(|| random.i64(-2..3));
    let null = || Value::Null;
    vec![
        id.into(),
        text(random, 3).into(),
        body.map_or_else(null, Value::from),
        n.map_or_else(null, Value::from),
        random.u64(..4).into(),
    ]
}

fn refs(row: &[Value]) -> Vec<ValueRef<'_>> {
    row.iter().map(Value::as_ref).collect()
}

/// One change of a random row; the model follows.
fn change(txn: &mut WriteTxn, table: &Table, rows: &mut Rows, random: &mut fastrand::Rng) {
    let id = random.u64(..60);
    let new = row(random, id);
    match random.u8(..8) {
        0 => {
            assert_eq!(txn.delete(table, &values![id]).unwrap(), rows.remove(&id).is_some());
        }
        1..3 => match txn.insert(table, &refs(&new)) {
            Ok(_) => assert!(rows.insert(id, new).is_none()),
            Err(Error::DuplicateKey { .. }) => assert!(rows.contains_key(&id)),
            Err(error) => panic!("{error}"),
        },
        _ => {
            let columns: Vec<usize> = (1..5).filter(|_| random.bool()).collect();
            let set: Vec<_> = columns.iter().map(|column| (*column, new[*column].as_ref())).collect();
            let found = txn.update(table, &values![id], &set).unwrap();
            assert_eq!(found, rows.contains_key(&id));
            if let Some(row) = rows.get_mut(&id) {
                columns.iter().for_each(|column| row[*column] = new[*column].clone());
            }
        }
    }
}

/// Every index gives these rows: whole, and their columns, by any bounds.
fn compare(txn: &mut WriteTxn, table: &Table, rows: &Rows, random: &mut fastrand::Rng) {
    for form in &FORMS {
        let sorted = form.sorted(rows);
        let all: Vec<_> =
            txn.scan(table).index(form.name).iter().unwrap().map(|row| row.unwrap().to_values()).collect();
        assert_eq!(all, sorted, "{}", form.name);
        let wanted: Vec<usize> = (0..5).filter(|_| random.bool()).collect();
        let names: Vec<&str> = wanted.iter().map(|column| COLUMNS[*column]).collect();
        let pick = |row: &Vec<Value>| wanted.iter().map(|column| row[*column].clone()).collect::<Vec<_>>();
        let (bound, other) = (row(random, 0), row(random, 0));
        let count = random.usize(1..=form.parts.len());
        let [low, high] =
            [&bound, &other].map(|of| form.parts[..count].iter().map(|part| of[part.0].clone()).collect());
        let (low, high): (Vec<Value>, Vec<Value>) = (low, high);
        let (includes_low, includes_high) = (random.bool(), random.bool());
        let inside = |row: &&Vec<Value>| {
            let above = form.to_bound(row, &low).is_none_or(|order| order.is_gt() || includes_low && order.is_eq());
            above && form.to_bound(row, &high).is_none_or(|order| order.is_lt() || includes_high && order.is_eq())
        };
        let expected: Vec<_> = sorted.iter().filter(inside).map(pick).collect();
        let (low, high) = (refs(&low), refs(&high));
        let ranged = |scan: Scan<'_, '_>| -> Vec<Vec<Value>> {
            scan.select(&names).unwrap().map(|row| row.unwrap().to_values()).collect()
        };
        let scan = txn.scan(table).index(form.name);
        let scan = if includes_low { scan.from(&low) } else { scan.from_exclusive(&low) };
        let scan = if includes_high { scan.to(&high) } else { scan.to_exclusive(&high) };
        assert_eq!(ranged(scan), expected, "{} {low:?} {high:?}", form.name);
        let equal = |row: &&Vec<Value>| form.to_bound(row, &bound_of(form, &bound, count)).is_none_or(Ordering::is_eq);
        let expected: Vec<_> = sorted.iter().filter(equal).map(pick).rev().collect();
        let prefix = bound_of(form, &bound, count);
        let found = ranged(txn.scan(table).index(form.name).prefix(&refs(&prefix)).rev());
        let all_parts_count = form.parts[..count].iter().rev().skip(1).all(|part| part.2 == WHOLE);
        assert!(!all_parts_count || found == expected, "{} {prefix:?}: {found:?}, not {expected:?}", form.name);
        let keys = txn.scan(table).index(form.name).keys().unwrap().map(|key| key.unwrap().to_values());
        let columns = form.parts.iter().map(|part| part.0).chain([0]);
        let of_rows = sorted.iter().map(|row| columns.clone().map(|column| row[column].clone()).collect::<Vec<_>>());
        assert!(keys.eq(of_rows), "{}", form.name);
    }
}

fn bound_of(form: &Form, row: &[Value], count: usize) -> Vec<Value> {
    form.parts[..count].iter().map(|part| row[part.0].clone()).collect()
}

/// Random transactions, some rolled back in part or in whole, concurrent snapshots, and power cuts: each reader finds
/// its rows by each index, with what the entries cover.
#[test]
fn every_index_agrees_with_the_rows_that_a_transaction_sees() {
    for seed in 0..12 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut storage = StorageSet::memory();
        let mut db = open(&storage);
        let mut table = db.create_table("t", schema()).unwrap();
        let mut committed = Rows::new();
        for round in 0..8 {
            let mut before =
                db.begin_with(TxnOptions { isolation: Isolation::RepeatableRead, ..TxnOptions::default() }).unwrap();
            before.get(&table, &values![0u64]).unwrap();
            let (mut txn, mut rows) = (db.begin().unwrap(), committed.clone());
            for _ in 0..random.usize(..60) {
                change(&mut txn, &table, &mut rows, &mut random);
                if random.u8(..10) == 0 {
                    let (point, rows_then) = (txn.savepoint(), rows.clone());
                    (0..5).for_each(|_| change(&mut txn, &table, &mut rows, &mut random));
                    txn.rollback_to(point).unwrap();
                    rows = rows_then;
                }
            }
            compare(&mut txn, &table, &rows, &mut random);
            match random.u8(..4) {
                0 => txn.rollback().unwrap(),
                _ => {
                    txn.commit().unwrap();
                    compare(&mut before, &table, &committed, &mut random);
                    committed = rows;
                }
            }
            drop(before);
            compare(&mut db.begin().unwrap(), &table, &committed, &mut random);
            if round % 3 == 2 {
                let mut open_txn = db.begin().unwrap();
                let mut lost = committed.clone();
                (0..20).for_each(|_| change(&mut open_txn, &table, &mut lost, &mut random));
                drop(db.begin().unwrap().commit());
                storage = storage.cut(seed * 100 + round);
                std::mem::forget(open_txn);
                db = open(&storage);
                table = db.table("t").unwrap();
            }
        }
        await_purge(&db);
        compare(&mut db.begin().unwrap(), &table, &committed, &mut random);
        check_indexes(&db, &table);
        sound(&db);
        let copy = Schema::of(&table.definition());
        assert_eq!(copy.check("t").unwrap(), *table.definition());
    }
}

/// An entry that is found again gets its whole value; a rollback puts the old one back; what an entry covers counts
/// only where it is surely that of the visible version.
#[test]
fn covered_columns_are_those_of_the_version_that_is_seen() {
    let db = memory();
    let schema = by_id()
        .column("a", Type::U64)
        .column("b", Type::Text(30))
        .index_with("by_a", Index::new(&["a"]).covering(&["b"]));
    let table = db.create_table("t", schema).unwrap();
    let covered = |txn: &mut WriteTxn| -> Vec<String> {
        let found = txn.scan(&table).index("by_a").select(&["b"]).unwrap();
        found.map(|row| row.unwrap().str("b").to_string()).collect()
    };
    let set = |txn: &mut WriteTxn, b: &str| assert!(txn.update(&table, &values![1u64], &[(2, b.into())]).unwrap());
    db.transact(|txn| txn.insert(&table, &values![1u64, 5u64, "first"]).map(drop)).unwrap();
    await_purge(&db);
    let mut old = db.begin().unwrap();
    assert_eq!(covered(&mut old), ["first"]);
    // Longer and shorter values, in place.
    for b in ["second, and longer", "3"] {
        db.transact(|txn| {
            set(txn, b);
            Ok::<_, Error>(())
        })
        .unwrap();
        assert_eq!(covered(&mut db.begin().unwrap()), [b]);
    }
    // A rollback, of a part and of the whole.
    let mut txn = db.begin().unwrap();
    set(&mut txn, "mine");
    let point = txn.savepoint();
    set(&mut txn, "not mine");
    txn.rollback_to(point).unwrap();
    assert_eq!(covered(&mut txn), ["mine"]);
    txn.rollback().unwrap();
    assert_eq!(covered(&mut db.begin().unwrap()), ["3"]);
    // Deleted, and inserted again with the same key and another value: the marked entry is found again.
    let mut txn = db.begin().unwrap();
    txn.delete(&table, &values![1u64]).unwrap();
    txn.insert(&table, &values![1u64, 5u64, "again"]).unwrap();
    assert_eq!((covered(&mut txn), covered(&mut db.begin().unwrap())), (vec!["again".into()], vec!["3".into()]));
    txn.commit().unwrap();
    assert_eq!(covered(&mut db.begin().unwrap()), ["again"]);
    // The rollback of a deletion.
    let mut txn = db.begin().unwrap();
    txn.delete(&table, &values![1u64]).unwrap();
    txn.rollback().unwrap();
    assert_eq!(covered(&mut db.begin().unwrap()), ["again"]);
    assert_eq!(covered(&mut old), ["first"]);
    drop(old);
    await_purge(&db);
    assert_eq!(covered(&mut db.begin().unwrap()), ["again"]);
    sound(&db);
}

/// A scan of covered columns reads no rows.
#[test]
fn a_covering_scan_reads_the_index_alone() {
    let storage = StorageSet::memory();
    let db = open(&storage);
    let schema = by_id().column("a", Type::U32).column("b", Type::U64).column("fat", Type::Text(200));
    let table = db.create_table("t", schema).unwrap();
    let fat = "f".repeat(150);
    let row = |id: u64| values![id, (id * 7919 % 5000) as u32, id * 3, fat.as_str()];
    db.transact(|txn| txn.insert_many(&table, (0..5000).map(row)).map(drop)).unwrap();
    db.create_index_with("t", "by_a", Index::new(&["a"]).covering(&["b"])).unwrap();
    await_purge(&db);
    db.close().unwrap();
    let pages_read = |columns: &[&str]| {
        let db = open(&storage);
        let table = db.table("t").unwrap();
        let before = db.stats().pages_read;
        let rows =
            db.snapshot().unwrap().scan(&table).index("by_a").select(columns).unwrap().map(Result::unwrap).count();
        assert_eq!(rows, 5000);
        let read = db.stats().pages_read - before;
        db.close().unwrap();
        read
    };
    let (covered, whole) = (pages_read(&["b", "id", "a"]), pages_read(&["b", "fat"]));
    assert!(covered * 4 < whole, "{covered} pages for covered columns, {whole} for others");
}
