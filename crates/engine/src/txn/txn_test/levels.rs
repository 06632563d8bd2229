//! What the schedules of `db/db_test/schedules` do not show of the levels: changes that fail, dirty reads in the midst
//! of a scan, statements of several reads.

use super::*;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

fn at(db: &Db, isolation: Isolation) -> Session {
    db.begin_with(TxnOptions { isolation, ..TxnOptions::default() })
}

fn serializable(db: &Db) -> Session {
    at(db, Isolation::Serializable)
}

fn uncommitted(db: &Db) -> Session {
    at(db, Isolation::ReadUncommitted)
}

/// Two rows: 1 and 2.
fn two() -> Db {
    let db = Db::new();
    db.fill(&[("1", row("a1", "u1", "x")), ("2", row("a2", "u2", "x"))]);
    db
}

/// After the last transaction no lock is left.
fn done(db: &Db) {
    assert!(db.system.locks.is_empty());
    db.purge_all();
    db.check(true);
}

// ---- SERIALIZABLE

/// A change that fails on the row it was shown has read it; so it stays.
#[test]
fn a_change_that_fails_is_a_read() {
    let db = two();
    let mut first = serializable(&db);
    let refused = first.op(b"1").update(&mut |_, _, _| Err(Error::Usage("not like this".into())));
    assert!(matches!(refused, Err(Error::Usage(_))));
    let one = db.begin().run_blocked(|writer| writer.update("1", &row("a", "u", "")).unwrap());
    first.commit();
    one.finish().0.commit();
    done(&db);
}

// ---- READ UNCOMMITTED

#[test]
fn a_dirty_read_opens_no_view() {
    let db = two();
    let mut reader = uncommitted(&db);
    assert_eq!(reader.keys(), ["1", "2"]);
    assert_eq!(db.system.oldest_view_age_ms(), 0);
    reader.commit();
    done(&db);
}

/// An entry whose row has moved on is passed over.
#[test]
fn a_dirty_index_scan_returns_no_row_that_does_not_match_its_entry() {
    let db = Db::new();
    let keys: Vec<String> = (0..20).map(|n| format!("k{n:02}")).collect();
    let rows: Vec<_> = keys.iter().map(|key| (key.as_str(), row("old", key, ""))).collect();
    db.fill(&rows);
    let mut reader = uncommitted(&db);
    let range = entries_of("old");
    let mut cursor = reader.cursor(&by(0, &range)).unwrap();
    assert!(reader.next(&mut cursor).unwrap());
    // The batch that was read holds entries of rows that move now.
    let mut writer = db.begin();
    keys.iter().skip(1).for_each(|key| assert!(writer.update(key, &row("new", key, "")).unwrap()));
    assert!(!reader.next(&mut cursor).unwrap());
    writer.rollback();
    assert_eq!(reader.scan(&by(0, &range)).unwrap().len(), 20);
    drop(reader);
    done(&db);
}

/// A batch holds a reference to overflow pages that others use by the time the row is delivered.
#[test]
fn a_dirty_scan_reads_a_row_anew_whose_overflow_pages_are_gone() {
    let db = Db::new();
    let large = |byte: u8| Row { rest: vec![byte; 30_000], ..row("a", "", "") };
    db.fill(&[("j", row("a", "", "first")), ("k", large(b'0'))]);
    let (mut writer, mut reader) = (db.begin(), uncommitted(&db));
    writer.update("k", &large(b'1')).unwrap();
    let mut cursor = reader.cursor(&ScanOptions::default()).unwrap();
    assert!(reader.next(&mut cursor).unwrap());
    writer.rollback();
    db.fill(&[("l", large(b'2')), ("m", large(b'3'))]);
    assert!(reader.next(&mut cursor).unwrap());
    assert_eq!(Row::decode(cursor.payload()), large(b'0'));
    drop(reader);
    done(&db);
}

/// The overflow pages of a version that is rolled back are given to others while they are read.
#[test]
fn dirty_reads_of_overflow_rows_are_whole_with_rollbacks() {
    let db = Arc::new(Db::new());
    let large = |byte: u8, bytes: usize| Row { rest: vec![byte; bytes], ..row("a", "", "") };
    db.fill(&[("k", large(b'0', 30_000)), ("l", large(b'1', 30_000))]);
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = ["k", "l"]
        .map(|key| {
            let (db, stop) = (db.clone(), stop.clone());
            std::thread::spawn(move || {
                for n in (0..60u8).cycle() {
                    let mut session = db.begin();
                    session.update(key, &large(b'a' + n % 20, 20_000 + 3_000 * usize::from(n % 7))).unwrap();
                    if n % 3 == 0 {
                        session.commit()
                    } else {
                        session.rollback()
                    }
                    if stop.load(Relaxed) {
                        return;
                    }
                }
            })
        })
        .into();
    let mut reader = uncommitted(&db);
    let whole = |row: &Row| row.rest.iter().all(|byte| *byte == row.rest[0]);
    for _ in 0..300 {
        assert!(whole(&reader.get("k").unwrap()));
        assert!(reader.scan_rows(&ScanOptions::default()).unwrap().iter().all(|(_, row)| whole(row)));
        let range = entries_of("a");
        assert!(reader.scan_rows(&by(0, &range)).unwrap().iter().all(|(_, row)| whole(row)));
    }
    stop.store(true, Relaxed);
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    drop(reader);
    done(&db);
}

// ---- statements

#[test]
fn reads_of_a_statement_see_one_moment() {
    for isolation in Isolation::ALL {
        let db = two();
        let mut txn = at(&db, isolation);
        txn.txn().begin_statement().unwrap();
        let first = (txn.get("1"), txn.keys().len());
        if isolation != Isolation::Serializable {
            db.fill(&[("77", row("a77", "u77", ""))]);
            let mut other = db.read_committed();
            other.update("1", &row("a1", "u1", "new")).unwrap();
            other.commit();
        }
        let second = (txn.get("1"), txn.keys().len());
        assert_eq!(first == second, isolation != Isolation::ReadUncommitted, "{isolation:?}");
        db.system.end_statement(txn.txn(), true).unwrap();
        txn.commit();
        done(&db);
    }
}
