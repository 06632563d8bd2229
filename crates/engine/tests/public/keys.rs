//! Keys without their rows; rows of several keys; read-ahead.

use crate::support::{add, await_purge, check_indexes, memory, open, options, people};
use crate::testing::{by_id, commit_all};
use highwater::{
    Database, Error, Isolation, Options, ReadTxn, Schema, Table, TxnOptions, Type, Value, WriteTxn, values,
};
use highwater_storage::{Request, StorageSet, TestDevice};
use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

/// The keys in the order of an index, as the rows have them.
fn of_rows(txn: &mut WriteTxn, people: &Table, index: &str) -> Vec<Vec<Value>> {
    let columns: &[usize] = match index {
        "by_name" => &[1, 2, 0],
        "by_age" => &[3, 0],
        _ => &[0],
    };
    let rows = txn.scan(people).index(index).iter().unwrap();
    let key = |values: Vec<Value>| columns.iter().map(|column| values[*column].clone()).collect();
    rows.map(|row| key(row.unwrap().to_values())).collect()
}

fn keys(txn: &mut WriteTxn, people: &Table, index: &str) -> Vec<Vec<Value>> {
    txn.scan(people).index(index).keys().unwrap().map(|key| key.unwrap().to_values()).collect()
}

#[test]
fn keys_are_those_of_the_rows_that_a_transaction_sees() {
    let db = memory();
    let people = people(&db);
    let mut random = fastrand::Rng::with_seed(3);
    let ids: Vec<u64> = (0..300).map(|i| add(&db, &people, &format!("l{}", i % 9), "f", Some(i))).collect();
    let levels =
        [Isolation::ReadUncommitted, Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable];
    for _ in 0..30 {
        // Each holds what it saw, or sees more and more, while rows move in the indexes.
        let begun = levels[..3].iter().map(|isolation| {
            let mut txn = db.begin_with(TxnOptions { isolation: *isolation, ..TxnOptions::default() }).unwrap();
            txn.get(&people, &values![ids[0]]).unwrap();
            txn
        });
        let mut before: Vec<WriteTxn> = begun.collect();
        let mut txn = db.begin().unwrap();
        for _ in 0..20 {
            let id = ids[random.usize(..ids.len())];
            match random.u32(..4) {
                0 => drop(txn.delete(&people, &values![id]).unwrap()),
                1 => drop(txn.insert(&people, &values![id, "again", "x", random.i32(..300)])),
                _ => drop(txn.update(&people, &values![id], &[(3, random.i32(..300).into())]).unwrap()),
            }
        }
        before.push(txn);
        for txn in &mut before {
            for index in ["PRIMARY", "by_name", "by_age"] {
                let expected = of_rows(txn, &people, index);
                assert_eq!(txn.scan(&people).index(index).count().unwrap(), expected.len() as u64);
                assert_eq!(keys(txn, &people, index), expected, "{index}");
            }
        }
        before.pop().unwrap().commit().unwrap();
    }
    let mut last = db.begin_with(TxnOptions { isolation: levels[3], ..TxnOptions::default() }).unwrap();
    let expected = of_rows(&mut last, &people, "by_age");
    assert_eq!(keys(&mut last, &people, "by_age"), expected);
    let backward: Vec<_> =
        last.scan(&people).index("by_age").rev().limit(3).keys().unwrap().map(|key| key.unwrap().to_values()).collect();
    assert!(backward.iter().eq(expected.iter().rev().take(3)));
}

/// A closed database of 5000 rows, in an order that has nothing to do with that of their ages.
fn filled() -> StorageSet {
    let storage = StorageSet::memory();
    let db = open(&storage);
    let table = people(&db);
    for i in 0..5000 {
        add(&db, &table, &"n".repeat(60), &"m".repeat(60), Some(i * 7919 % 5000));
    }
    await_purge(&db);
    db.close().unwrap();
    storage
}

/// Pages that are read to go through a new database's index.
fn pages_read(storage: &StorageSet, look: impl FnOnce(&mut ReadTxn, &Table)) -> u64 {
    let db = open(storage);
    let people = db.table("people").unwrap();
    let before = db.stats().pages_read;
    look(&mut db.snapshot().unwrap(), &people);
    let read = db.stats().pages_read - before;
    db.close().unwrap();
    read
}

#[test]
fn rows_are_not_read_for_their_keys() {
    let storage = filled();
    let rows = pages_read(&storage, |read, people| {
        assert_eq!(read.scan(people).index("by_age").iter().unwrap().count(), 5000);
    });
    let of_keys = pages_read(&storage, |read, people| {
        assert_eq!(read.scan(people).index("by_age").keys().unwrap().count(), 5000);
    });
    let of_count = pages_read(&storage, |read, people| {
        assert_eq!(read.scan(people).index("by_age").count().unwrap(), 5000);
    });
    assert!(of_keys * 4 < rows && of_count * 4 < rows, "{rows} pages for rows, {of_keys} for keys, {of_count}");
}

/// The database, on devices whose reads take their time, as those of a disk do.
pub(crate) fn open_slow(storage: &StorageSet, read_io_threads: u64, time: Duration) -> Database {
    let slow = storage.map(|inner| {
        Arc::new(TestDevice::over(inner).before(move |request| {
            if matches!(request, Request::Read { .. }) {
                std::thread::sleep(time);
            }
            Ok(())
        }))
    });
    Database::open_storage(slow, Options { read_io_threads, ..options() }).unwrap()
}

/// Whether an attempt succeeds. A page is read ahead if a read thread gets the processor before it is needed: on a
/// busy machine not always, but in one attempt of many.
fn one_of_many(mut attempt: impl FnMut() -> bool) -> bool {
    (0..10).any(|_| attempt())
}

/// Reopens the database, with nothing in the pool; what `look` finds and how many pages were read ahead.
fn cold<R>(storage: &StorageSet, read_io_threads: u64, look: impl FnOnce(&mut ReadTxn, &Table) -> R) -> (R, u64) {
    let db = open_slow(storage, read_io_threads, Duration::from_micros(100));
    let people = db.table("people").unwrap();
    let found = look(&mut db.snapshot().unwrap(), &people);
    let ahead = db.stats().pages_read_ahead;
    db.close().unwrap();
    (found, ahead)
}

#[test]
fn what_is_read_ahead_changes_no_answer() {
    let storage = filled();
    let by_age = |read: &mut ReadTxn, people: &Table| -> Vec<u64> {
        read.scan(people).index("by_age").rev().iter().unwrap().map(|row| row.unwrap().u64(0)).collect()
    };
    let all = |read: &mut ReadTxn, people: &Table| -> Vec<u64> {
        read.scan(people).iter().unwrap().map(|row| row.unwrap().u64(0)).collect()
    };
    let mut random = fastrand::Rng::with_seed(5);
    let wanted: Vec<u64> = (0..700).map(|_| random.u64(1..5500)).collect();
    let keys: Vec<_> = wanted.iter().map(|id| values![*id]).collect();
    let many = |read: &mut ReadTxn, people: &Table| -> Vec<u64> {
        let rows = read.get_many(people, &keys).unwrap();
        rows.into_iter().map(|row| row.map_or(0, |row| row.u64(0))).collect()
    };
    let expected: Vec<u64> = wanted.iter().map(|id| if *id <= 5000 { *id } else { 0 }).collect();
    assert_eq!(cold(&storage, 0, many), (expected.clone(), 0));
    let has_read_ahead = |look: &dyn Fn(&mut ReadTxn, &Table) -> Vec<u64>, expected: &[u64]| {
        one_of_many(|| {
            let (rows, ahead) = cold(&storage, 4, look);
            assert_eq!(rows, expected);
            ahead > 20
        })
    };
    assert!(has_read_ahead(&many, &expected));
    let named = |read: &mut ReadTxn, people: &Table| -> Vec<u64> {
        let mut ids = Vec::new();
        for keys in keys.chunks(32) {
            read.prefetch(people, keys).unwrap();
            ids.extend(keys.iter().map(|key| read.get(people, key).unwrap().map_or(0, |row| row.u64(0))));
        }
        // The last reads have shown that pages are missing, so the key is looked at.
        assert!(matches!(read.prefetch(people, [values!["no number"]]), Err(Error::BadValue { .. })));
        ids
    };
    assert!(has_read_ahead(&named, &expected));
    let (without, _) = cold(&storage, 0, by_age);
    assert!(without.len() == 5000 && has_read_ahead(&by_age, &without));
    assert!(has_read_ahead(&all, &(1..=5000).collect::<Vec<_>>()));
}

#[test]
fn a_scan_reads_ahead_what_it_will_deliver_and_no_more() {
    let storage = filled();
    let pages = |read_io_threads: u64, rows: std::ops::RangeInclusive<u64>, limit: usize, backward: bool| {
        let db = open_slow(&storage, read_io_threads, Duration::from_millis(1));
        let people = db.table("people").unwrap();
        let before = db.stats().pages_read;
        let mut read = db.snapshot().unwrap();
        let (from, to) = (values![*rows.start()], values![*rows.end()]);
        let mut scan = read.scan(&people).from(&from).to(&to).limit(limit);
        if backward {
            scan = scan.rev();
        }
        let ids: Vec<u64> = scan.iter().unwrap().map(|row| row.unwrap().u64(0)).collect();
        let mut expected: Vec<u64> = rows.take(limit).collect();
        if backward {
            expected.reverse();
        }
        assert_eq!(ids, expected);
        drop(read);
        // Remaining requests would be read now.
        std::thread::sleep(Duration::from_millis(20));
        let stats = db.stats();
        db.close().unwrap();
        (stats.pages_read - before, stats.pages_read_ahead)
    };
    for (rows, limit, backward, min_ahead) in [
        (1000..=5000, 500, false, 4),
        (1000..=1500, usize::MAX, false, 2),
        (1000..=1500, usize::MAX, true, 2),
        (1000..=1060, 5000, false, 0),
    ] {
        let (without, none) = pages(0, rows.clone(), limit, backward);
        let is_enough = one_of_many(|| {
            let (with, ahead) = pages(8, rows.clone(), limit, backward);
            assert!(with <= without + 1, "{rows:?}, {limit}: {with} pages instead of {without}");
            ahead >= min_ahead
        });
        assert!(none == 0 && is_enough, "{rows:?}, {limit}");
    }
}

#[test]
fn rows_up_to_half_a_page_stay_in_their_leaves() {
    let db = memory();
    let table = db.create_table("bodies", by_id().column("body", Type::Text(4000))).unwrap();
    let fill = |bytes: usize, ids: std::ops::Range<u64>| {
        let body = "b".repeat(bytes);
        commit_all(&db, ids, |txn, id| txn.insert(&table, &values![id, body.as_str()]));
        let report = db.check().unwrap();
        (report.counts.rows_overflow, report.counts.overflow_pages)
    };
    assert_eq!(fill(1940, 0..20), (0, 0));
    assert_eq!(fill(1980, 20..30), (10, 10));
    db.close().unwrap();
}

/// The pages of a tree are read ahead while they are checked.
#[test]
fn a_check_reads_ahead() {
    let storage = filled();
    let ahead = |read_io_threads| {
        let db = open_slow(&storage, read_io_threads, Duration::from_micros(20));
        let report = db.check().unwrap();
        assert!(report.is_sound(), "{:?}", report.findings);
        let (ahead, read) = (db.stats().pages_read_ahead, db.stats().pages_read);
        db.close().unwrap();
        (ahead, read)
    };
    assert_eq!(ahead(0).0, 0);
    let most = || {
        let (ahead, read) = ahead(4);
        ahead > read / 2
    };
    assert!(one_of_many(most), "most pages are read when they are needed");
}

/// Rows and entries do not fit the pool, nor do the entries fit one batch. The rows are read ahead; the tree is not
/// read, nor to check uniqueness.
#[test]
fn an_index_is_built_with_read_ahead() {
    let storage = StorageSet::memory();
    let db = open(&storage);
    let table = db.create_table("long", by_id().column("text", Type::Text(250))).unwrap();
    let text = |id: u64| format!("{:05}{}", id * 7_919 % 20_011, "x".repeat(200));
    let fill = |rows: &mut highwater::Rows<'_>| {
        (0..12_000).try_for_each(|id| rows.push(&values![id, text(id).as_str()]).map(drop))
    };
    db.transact(|txn| txn.insert_many_with(&table, fill)).unwrap();
    db.close().unwrap();
    let built = |read_io_threads: u64, unique: bool| {
        let db = open_slow(&storage, read_io_threads, Duration::from_micros(20));
        db.create_index("long", "by_text", &["text"], unique).unwrap();
        let ahead = db.stats().pages_read_ahead;
        let table = db.table("long").unwrap();
        let ids: Vec<u64> = db
            .snapshot()
            .unwrap()
            .scan(&table)
            .index("by_text")
            .iter()
            .unwrap()
            .map(|row| row.unwrap().u64(0))
            .collect();
        check_indexes(&db, &table);
        db.drop_index("long", "by_text").unwrap();
        db.close().unwrap();
        (ids, ahead)
    };
    let mut expected: Vec<u64> = (0..12_000).collect();
    expected.sort_by_key(|id| text(*id));
    assert_eq!(built(0, true), (expected.clone(), 0));
    let leaves = 12_000 / 16;
    let rows_alone = || {
        let [(plain, of_rows), (checked, of_both)] = [false, true].map(|unique| built(4, unique));
        assert!(plain == expected && checked == expected);
        println!("{of_rows} and {of_both} pages of {leaves} leaves");
        of_rows > leaves / 2 && of_both < of_rows + leaves / 4
    };
    assert!(one_of_many(rows_alone));
}

/// The end of a range is its exact value, not that value rounded to F32; equality rounds, as a row that is written
/// does.
#[test]
fn the_ends_of_a_range_of_floats_are_not_rounded() {
    let db = open(&StorageSet::memory());
    let schema = Schema::new().column("ratio", Type::F32).column("id", Type::U64).primary_key(&["ratio", "id"]);
    let table = db.create_table("ratios", schema).unwrap();
    let written = [f64::NEG_INFINITY, -3e38, -0.2, -0.1, -1e-40, 0.0, 0.1, 0.2, 0.3, 3e38, f64::INFINITY, f64::NAN];
    let rows = || written.iter().flat_map(|ratio| [(*ratio, 1u64), (*ratio, 2)]);
    commit_all(&db, rows(), |txn, (ratio, id)| txn.insert(&table, &values![ratio, id]));
    let mut read = db.snapshot().unwrap();
    let kept: Vec<f64> = written.iter().map(|x| f64::from(*x as f32)).collect();
    // NaN sorts last.
    let order = |a: f64, b: f64| a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()));
    let bounds = written.iter().chain(&kept).copied().chain([-1e300, 1e300, 0.15, 1e-320]);
    for bound in bounds {
        let mut count = |scan: &dyn Fn(highwater::Scan<'_, '_>) -> usize| scan(read.scan(&table));
        let expected =
            |is_wanted: &dyn Fn(Ordering) -> bool| kept.iter().filter(|x| is_wanted(order(**x, bound))).count() * 2;
        let found = [
            count(&|scan| scan.from(&values![bound]).iter().unwrap().count()),
            count(&|scan| scan.from_exclusive(&values![bound]).iter().unwrap().count()),
            count(&|scan| scan.to(&values![bound]).iter().unwrap().count()),
            count(&|scan| scan.to_exclusive(&values![bound]).rev().iter().unwrap().count()),
        ];
        let wanted = [
            expected(&|order| order.is_ge()),
            expected(&|order| order.is_gt()),
            expected(&|order| order.is_le()),
            expected(&|order| order.is_lt()),
        ];
        assert_eq!(found, wanted, "{bound}");
        // Behind a value that no row has, further columns make no difference.
        let first = read.scan(&table).from(&values![bound, 2u64]).iter().unwrap().count();
        let is_kept = kept.iter().any(|x| order(*x, bound).is_eq());
        assert_eq!(first, wanted[0] - usize::from(is_kept), "{bound}");
    }
    for ratio in written {
        assert_eq!(read.scan(&table).prefix(&values![ratio]).iter().unwrap().count(), 2, "{ratio}");
        assert!(read.get(&table, &values![ratio, 1u64]).unwrap().is_some(), "{ratio}");
    }
}
