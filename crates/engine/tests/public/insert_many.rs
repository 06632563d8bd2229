//! Many rows inserted by one call are what single insertions make of them, and the call is one statement.

use crate::support::{add, all, check_indexes, memory, memory_with, open, options, people};
use crate::testing::{by_id, commit_all};
use highwater::{
    Database, Error, Isolation, Options, Result, Schema, Table, TxnOptions, Type, Value, ValueRef, values,
};
use highwater_storage::StorageSet;
use std::time::Duration;

/// id | mail, unique | text, which may be too long for a leaf.
fn users(db: &Database) -> Table {
    let schema = Schema::new()
        .column("id", Type::U32)
        .column("mail", Type::Text(40))
        .column("text", Type::Text(20_000))
        .primary_key(&["id"])
        .unique_index("by_mail", &["mail"])
        .index("by_text", &["text", "mail"]);
    db.create_table("user", schema).unwrap()
}

fn ids(db: &Database, table: &Table) -> Vec<u64> {
    all(db, table, "PRIMARY").iter().map(|row| if let Value::UInt(id) = row[0] { id } else { u64::MAX }).collect()
}

/// `n` numbers below a prime, all different, in disorder.
fn disorder(n: u32) -> impl Iterator<Item = u32> {
    (1..=n).map(|id| id * 7_919 % 10_007)
}

#[test]
fn the_rows_are_those_of_single_insertions() {
    let (one, many) = (memory(), memory());
    let (by_one, by_many) = (people(&one), people(&many));
    let name = |n: u32| format!("{:05}{}", n, "x".repeat(n as usize % 50));
    commit_all(&one, disorder(3000), |txn, n| {
        txn.insert(&by_one, &values![n + 1, name(n).as_str(), "f", (n % 7 != 0).then_some(n as i32)])
    });
    let mut txn = many.begin().unwrap();
    let inserted = txn.insert_many_with(&by_many, |rows| {
        disorder(3000).try_for_each(|n| {
            rows.push(&values![n + 1, name(n).as_str(), "f", (n % 7 != 0).then_some(n as i32)])?;
            Result::Ok(())
        })
    });
    assert_eq!(inserted.unwrap(), 3000);
    txn.commit().unwrap();
    for index in ["PRIMARY", "by_name", "by_age"] {
        assert!(all(&one, &by_one, index) == all(&many, &by_many, index), "{index}");
    }
    check_indexes(&many, &by_many);
    assert_eq!(many.stats().rows_inserted, one.stats().rows_inserted);
    assert!(many.check().unwrap().findings.is_empty());
}

#[test]
fn numbers_are_given_and_rows_that_are_long_or_were_deleted_are_no_exception() {
    let db = memory();
    let (people, users) = (people(&db), users(&db));
    let mut given = Vec::new();
    let mut txn = db.begin().unwrap();
    let filled = txn.insert_many_with(&people, |rows| {
        for id in [None, None, Some(10u32), None] {
            given.push(rows.push(&values![id, "l", "f", null])?.auto_increment);
        }
        Result::Ok(())
    });
    assert_eq!((filled.unwrap(), given), (4, vec![Some(1), Some(2), None, Some(11)]));
    let long = "l".repeat(9_000);
    let text = |id: u32| if id % 10 == 3 { long.as_str() } else { "short" };
    let mails: Vec<String> = (0..200).map(|id| format!("{id}@x")).collect();
    let rows = || (0..200u32).map(|id| values![id, mails[id as usize].as_str(), &text(id)[..text(id).len().min(60)]]);
    txn.insert_many(&users, rows()).unwrap();
    (0..200u32).for_each(|id| assert!(txn.delete(&users, &values![id]).unwrap()));
    let whole = (0..200u32).map(|id| values![id, mails[id as usize].as_str(), "again"]);
    assert_eq!(txn.insert_many(&users, whole).unwrap(), 200);
    assert_eq!(txn.insert_many(&users, Vec::<[ValueRef<'_>; 3]>::new()).unwrap(), 0);
    txn.commit().unwrap();
    assert_eq!(ids(&db, &users).len(), 200);
    check_indexes(&db, &users);
    let plain = Schema::new().column("id", Type::U32).column("text", Type::Text(20_000)).primary_key(&["id"]);
    let plain = db.create_table("plain", plain).unwrap();
    db.transact(|txn| txn.insert_many(&plain, (0..100u32).map(|id| values![id, text(id)]))).unwrap();
    let mut read = db.snapshot().unwrap();
    (0..100u32).for_each(|id| assert_eq!(read.get(&plain, &values![id]).unwrap().unwrap().str(1), text(id)));
    assert!(db.check().unwrap().findings.is_empty());
}

#[test]
fn a_call_that_fails_inserts_nothing() {
    let db = memory();
    let users = users(&db);
    let mails: Vec<String> = (0..5000).map(|id| format!("{id}@x")).collect();
    let row = |id: u32| values![id, mails[id as usize].as_str(), "t"];
    let mut txn = db.begin().unwrap();
    txn.insert(&users, &row(3000)).unwrap();
    let tries: [(&str, [ValueRef<'_>; 3]); 5] = [
        ("duplicate", row(3000)),
        ("duplicate", row(2)),
        ("duplicate", values![4000, "7@x", "t"]),
        ("duplicate", values![4000, "3000@x", "t"]),
        ("column mail", values![4000, null, "t"]),
    ];
    for (expected, bad) in tries {
        // Enough rows that some are inserted before the bad one comes.
        let rows = (0..2500).map(row).chain([bad]).chain((3001..3100).map(row));
        let error = txn.insert_many(&users, rows).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(txn.scan(&users).iter().unwrap().count(), 1, "{bad:?}");
    }
    txn.insert_many(&users, (0..2500).map(row)).unwrap();
    txn.commit().unwrap();
    assert_eq!(ids(&db, &users), (0..2500).chain([3000]).collect::<Vec<u64>>());
    check_indexes(&db, &users);
}

#[test]
fn an_error_of_the_caller_undoes_the_call_and_one_that_it_hides_does_too() {
    let db = memory();
    let people = people(&db);
    let mut txn = db.begin().unwrap();
    let stopped = txn.insert_many_with(&people, |rows| {
        (0..2000).try_for_each(|_| rows.push(&values![null, "l", "f", null]).map(drop))?;
        Err(Error::Usage("enough".to_string()))
    });
    assert_eq!(stopped.unwrap_err().to_string(), Error::Usage("enough".to_string()).to_string());
    let hidden = txn.insert_many_with(&people, |rows| {
        (0..2000).try_for_each(|_| rows.push(&values![null, "l", "f", null]).map(drop))?;
        assert!(rows.push(&values![null, null, "f", null]).is_err());
        assert!(matches!(rows.push(&values![null, "l", "f", null]), Err(Error::Usage(_))));
        Result::Ok(())
    });
    assert!(matches!(hidden, Err(Error::Usage(_))));
    txn.commit().unwrap();
    assert!(ids(&db, &people).is_empty());
    check_indexes(&db, &people);
}

#[test]
fn savepoints_rollbacks_and_snapshots_know_the_rows() {
    let db = memory();
    let people = people(&db);
    add(&db, &people, "first", "f", Some(1));
    let rows = |n: u32| (0..n).map(|n| values![null, "many", "f", n as i32]);
    let mut txn = db.begin().unwrap();
    txn.insert_many(&people, rows(700)).unwrap();
    let savepoint = txn.savepoint();
    txn.insert_many(&people, rows(800)).unwrap();
    assert_eq!(txn.scan(&people).iter().unwrap().count(), 1501);
    assert_eq!(ids(&db, &people).len(), 1, "a concurrent reader");
    txn.rollback_to(savepoint).unwrap();
    assert_eq!(txn.scan(&people).index("by_age").iter().unwrap().count(), 701);
    let mut before = db.snapshot().unwrap();
    assert_eq!(before.scan(&people).iter().unwrap().count(), 1);
    txn.commit().unwrap();
    assert_eq!(before.scan(&people).index("by_name").iter().unwrap().count(), 1);
    assert_eq!(ids(&db, &people).len(), 701);
    let mut undone = db.begin().unwrap();
    undone.insert_many(&people, rows(900)).unwrap();
    undone.rollback().unwrap();
    assert_eq!(ids(&db, &people).len(), 701);
    check_indexes(&db, &people);
}

#[test]
fn what_others_have_locked_is_waited_for() {
    let db = memory();
    let people = people(&db);
    db.transact(|txn| txn.insert_many(&people, (1..=100u32).map(|id| values![id * 10, "l", "f", null]))).unwrap();
    let serializable = TxnOptions { isolation: Isolation::Serializable, ..TxnOptions::default() };
    let mut reader = db.begin_with(serializable).unwrap();
    assert_eq!(reader.scan(&people).from(&values![500]).to(&values![600]).iter().unwrap().count(), 11);
    let row = |id: u32| values![id, "l", "f", null];
    let mut txn = db.begin().unwrap();
    let into_gap = txn.insert_many(&people, (481..490).map(row).chain((541..545).map(row)));
    assert!(matches!(into_gap, Err(Error::LockWaitTimeout)), "{into_gap:?}");
    assert_eq!(txn.scan(&people).iter().unwrap().count(), 100);
    txn.insert_many(&people, (481..490).map(row)).unwrap();
    let mut other = db.begin().unwrap();
    let same_rows = other.insert_many(&people, (471..480).map(row).chain((481..490).map(row)));
    assert!(matches!(same_rows, Err(Error::LockWaitTimeout)), "{same_rows:?}");
    drop((reader, other));
    txn.insert_many(&people, (541..545).map(row)).unwrap();
    txn.commit().unwrap();
    assert_eq!(ids(&db, &people).len(), 113);
    check_indexes(&db, &people);
}

/// The power goes while calls are made: what was committed is there, whole, and nothing else.
#[test]
fn a_power_cut_leaves_whole_transactions() {
    for seed in 0..12 {
        let storage = StorageSet::memory();
        let open = |storage: StorageSet| {
            let options = Options { page_size: highwater::config::PageSize::Bytes(4096), ..options() };
            Database::open_storage(storage, options).unwrap()
        };
        let db = open(storage.clone());
        let people = people(&db);
        let rows = |n: u64| (0..n).map(|n| values![null, "many", "f", n as i32]);
        let mut committed = 0;
        for round in 0..4 {
            db.transact(|txn| txn.insert_many(&people, rows(100 + seed * round))).unwrap();
            committed += 100 + seed * round;
        }
        let mut open_one = db.begin().unwrap();
        open_one.insert_many(&people, rows(50 + 60 * seed)).unwrap();
        if seed % 2 == 0 {
            // The rows of the open transaction are in the log.
            db.flush_log().unwrap();
        }
        let after = open(storage.cut(seed));
        let people = after.table("people").unwrap();
        assert_eq!(ids(&after, &people).len() as u64, committed, "seed {seed}");
        check_indexes(&after, &people);
        assert!(after.check().unwrap().findings.is_empty(), "seed {seed}");
        drop(open_one);
    }
}

/// A transaction that gets the memory of another one works with the indexes that the table has by now.
#[test]
fn an_index_made_between_two_transactions_gets_its_entries() {
    let db = memory();
    let people = people(&db);
    for index in ["one", "two", "three"] {
        add(&db, &people, index, "f", Some(3));
        db.snapshot().unwrap().get(&people, &values![1]).unwrap();
        db.create_index("people", index, &["first", "last"], false).unwrap();
        add(&db, &people, "later", "g", Some(4));
        db.transact(|txn| txn.insert_many(&people, (0..5).map(|n| values![null, "many", "f", n]))).unwrap();
        check_indexes(&db, &people);
        assert_eq!(db.snapshot().unwrap().scan(&people).index(index).iter().unwrap().count(), ids(&db, &people).len());
    }
    db.drop_table("people").unwrap();
    assert!(matches!(db.snapshot().unwrap().get(&people, &values![1]), Err(Error::TableDropped { .. })));
}

/// A panic of the code that makes the rows is a failure of the call: none of them stays.
#[test]
fn no_row_stays_after_a_panic_of_who_makes_them() {
    let db = memory();
    let users = users(&db);
    let mut txn = db.begin().unwrap();
    txn.insert(&users, &values![9_999, "first", ""]).unwrap();
    let mut fill = |from: u32| {
        let rows = (from..from + 4000).map(|id| {
            assert!(id < 8000, "no more rows");
            values![id, format!("mail {id}").as_str(), "text"].map(|value| value.to_value())
        });
        txn.insert_many_with(&users, |into| {
            rows.into_iter().try_for_each(|row| into.push(&row.each_ref().map(ValueRef::from)).map(drop))
        })
    };
    assert_eq!(fill(1).unwrap(), 4000);
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| fill(4500))).unwrap_err();
    txn.commit().unwrap();
    assert!(ids(&db, &users).into_iter().eq((1..=4000).chain([9_999])));
    check_indexes(&db, &users);
}

/// The leaves do not fit the pool: those of rows in disorder are read side by side; those of rows in order are not
/// named.
#[test]
fn leaves_of_rows_in_disorder_are_read_ahead() {
    let storage = StorageSet::memory();
    let db = open(&storage);
    let table = db.create_table("long", by_id().column("text", Type::Text(400))).unwrap();
    let text = "x".repeat(300);
    let rows = |ids: Vec<u64>| ids.into_iter().map(|id| values![id, text.as_str()]).collect::<Vec<_>>();
    db.transact(|txn| txn.insert_many(&table, rows((0..20_000).step_by(2).collect()))).unwrap();
    assert_eq!(db.stats().pages_read_ahead, 0);
    db.close().unwrap();
    let mut inserted = Vec::new();
    let mut ahead = |read_io_threads, remainder| {
        let db = crate::keys::open_slow(&storage, read_io_threads, Duration::from_micros(50));
        let table = db.table("long").unwrap();
        // Odd ones, each once.
        let ids: Vec<u64> = (0..2500).map(|n| n * 7_919 % 2500 * 8 + remainder).collect();
        assert_eq!(db.transact(|txn| txn.insert_many(&table, rows(ids.clone()))).unwrap(), 2500);
        inserted.push(remainder);
        let ahead = db.stats().pages_read_ahead;
        assert!(db.check().unwrap().findings.is_empty());
        db.close().unwrap();
        ahead
    };
    assert_eq!(ahead(0, 3), 0);
    // On a busy machine a read thread may get the processor too late.
    assert!([1, 5, 7].into_iter().any(|remainder| ahead(4, remainder) > 300));
    let db = open(&storage);
    let expected = (0..20_000u64).filter(|id| id % 2 == 0 || inserted.contains(&(id % 8)));
    assert!(self::ids(&db, &db.table("long").unwrap()).into_iter().eq(expected));
}

/// An index that is built later is written too while it is built; rows in disorder leave pages that change again.
#[test]
fn what_a_load_fills_is_written_while_it_goes_on() {
    let loaded = |ids: Vec<u64>| {
        let options = Options { buffer_pool_size: 32 << 20, ..options() };
        let db = memory_with(options);
        let table = db.create_table("long", by_id().column("text", Type::Text(400))).unwrap();
        let texts: Vec<_> = ids.iter().map(|id| format!("{id:x<300}")).collect();
        let rows = ids.iter().zip(&texts).map(|(id, text)| values![*id, text.as_str()]);
        db.transact(|txn| txn.insert_many(&table, rows.clone())).unwrap();
        db
    };
    let written = |db: &Database, least: u64| {
        let until = std::time::Instant::now() + Duration::from_secs(20);
        while db.stats().pages_flushed_bulk_load < least && std::time::Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        db.stats().pages_flushed_bulk_load
    };
    let db = loaded((0..20_000).collect());
    let of_rows = written(&db, 1000);
    assert!(of_rows >= 1000, "{of_rows} pages of about 1,600");
    db.create_index("long", "by_text", &["text"], false).unwrap();
    let of_index = written(&db, of_rows + 1000) - of_rows;
    assert!(of_index >= 1000, "{of_index} pages");
    assert!(db.check().unwrap().findings.is_empty());

    let db = loaded((0..20_000).map(|n| n * 7_919 % 20_000).collect());
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(db.stats().pages_flushed_bulk_load, 0);
}
