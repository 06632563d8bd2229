//! READ UNCOMMITTED and SERIALIZABLE: what plain reads see, lock, and keep others from doing.

use super::*;
use crate::lock::LockMode;
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

#[test]
fn a_plain_get_locks_the_row_shared() {
    let db = two();
    let (mut reader, mut other) = (serializable(&db), serializable(&db));
    assert!(reader.get("1").is_some() && other.get("1").is_some());
    other.commit();
    let writer = db.begin().run_blocked(|writer| writer.update("1", &row("a1", "u1", "y")).unwrap());
    assert_eq!(reader.get("1"), Some(row("a1", "u1", "x")));
    reader.commit();
    writer.finish().0.commit();
    done(&db);
}

#[test]
fn two_that_read_and_then_write_the_same_row_are_a_deadlock() {
    let db = two();
    let (mut first, mut second) = (serializable(&db), serializable(&db));
    assert_eq!(first.get("1"), second.get("1"));
    let first = first.run_blocked(|first| first.update("1", &row("a1", "u1", "first")));
    let lost = second.update("1", &row("a1", "u1", "second"));
    let (first, won) = first.finish();
    let deadlocks = [&lost, &won].into_iter().filter(|r| matches!(r, Err(Error::Deadlock))).count();
    assert_eq!(deadlocks, 1);
    if won.is_ok() {
        first.commit()
    } else {
        second.commit()
    }
    done(&db);
}

#[test]
fn what_was_not_found_is_not_inserted() {
    let db = two();
    let mut reader = serializable(&db);
    assert!(reader.get("15").is_none());
    let by_row = db.begin().run_blocked(|writer| writer.insert("15", &row("a9", "u9", "")).unwrap());
    // The range of an index: neither a new row nor a row that moves there.
    let range = entries_of("a5");
    assert!(reader.scan(&by(0, &range)).unwrap().is_empty());
    let inserted = db.begin().run_blocked(|writer| writer.insert("3", &row("a5", "u3", "")).unwrap());
    let moved = db.begin().run_blocked(|writer| writer.update("2", &row("a5", "u2", "")).unwrap());
    assert!(reader.get("15").is_none() && reader.scan(&by(0, &range)).unwrap().is_empty());
    reader.commit();
    by_row.finish().0.commit();
    inserted.finish().0.commit();
    moved.finish().0.commit();
    assert_eq!(db.begin().scan(&by(0, &range)).unwrap(), ["2", "3"]);
    done(&db);
}

#[test]
fn a_scan_keeps_its_range_as_it_was() {
    for reverse in [false, true] {
        let db = two();
        let mut reader = serializable(&db);
        let all = ScanOptions { reverse, ..ScanOptions::default() };
        assert_eq!(reader.scan(&all).unwrap().len(), 2);
        let writers: Vec<_> = ["0", "15", "9"]
            .map(|key| db.begin().run_blocked(move |writer| writer.insert(key, &row(key, key, "")).unwrap()))
            .into();
        assert_eq!(reader.scan(&all).unwrap().len(), 2);
        reader.commit();
        writers.into_iter().for_each(|writer| writer.finish().0.commit());
        done(&db);
    }
}

/// A limited scan locks the entries that it has read, not later ones.
#[test]
fn a_limited_scan_leaves_the_rest_free() {
    let db = Db::new();
    let keys: Vec<String> = (0..60).map(|n| format!("{n:02}")).collect();
    let rows: Vec<_> = keys.iter().map(|key| (key.as_str(), row("a", key, ""))).collect();
    db.fill(&rows);
    let mut reader = serializable(&db);
    assert_eq!(reader.scan(&ScanOptions { limit: 1, ..ScanOptions::default() }).unwrap(), ["00"]);
    let mut writer = db.begin();
    writer.insert("500", &row("a", "n", "")).unwrap();
    assert!(writer.delete("59").unwrap());
    writer.commit();
    let writer = db.begin().run_blocked(|writer| writer.delete("00").unwrap());
    reader.commit();
    writer.finish().0.commit();
    done(&db);
}

/// Both have learned that there is a row; so it stays.
#[test]
fn a_duplicate_is_a_read() {
    let db = two();
    let mut first = serializable(&db);
    assert!(is_duplicate(first.insert("1", &row("a", "u", ""))));
    assert!(is_duplicate(first.insert("3", &row("a", "u2", ""))));
    let one = db.begin().run_blocked(|writer| writer.delete("1").unwrap());
    let two = db.begin().run_blocked(|writer| writer.update("2", &row("a2", "other", "")).unwrap());
    assert!(is_duplicate(first.insert("1", &row("a", "u", ""))));
    first.commit();
    one.finish().0.commit();
    two.finish().0.commit();
    done(&db);
}

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

/// Rows stay locked, and absent rows and unique columns absent, when what was done with them is undone.
#[test]
fn a_rollback_to_a_savepoint_keeps_what_was_learned() {
    for isolation in [Isolation::RepeatableRead, Isolation::Serializable] {
        let db = two();
        db.fill(&[("gone", row("a", "g", ""))]);
        let mut session = at(&db, isolation);
        let start = session.savepoint();
        session.update("1", &row("a1", "free", "y")).unwrap();
        session.insert("new", &row("a", "unused", "")).unwrap();
        session.delete("gone").unwrap();
        session.insert("gone", &row("b", "h", "")).unwrap();
        session.rollback_to(start).unwrap();
        assert_eq!(session.get_with("1", LockMode::Shared).unwrap(), Some(row("a1", "u1", "x")));
        let updated = db.begin().run_blocked(|other| other.update("1", &row("a1", "u1", "z")).unwrap());
        let inserted = db.begin().run_blocked(|other| other.insert("new", &row("a", "v", "")).unwrap());
        let deleted = db.begin().run_blocked(|other| other.delete("gone").unwrap());
        let unique = db.begin().run_blocked(|other| other.insert("5", &row("a", "unused", "")).unwrap());
        let moved = db.begin().run_blocked(|other| other.update("2", &row("a2", "free", "")).unwrap());
        session.insert("new", &row("a", "unused", "")).unwrap();
        session.commit();
        for other in [updated, deleted, moved] {
            let (other, found) = other.finish();
            assert!(found);
            other.commit();
        }
        let duplicate = |running: Running<()>| running.thread.join().is_err();
        assert!(duplicate(inserted) && duplicate(unique), "`new` is there now, with `unused`");
        done(&db);
    }
    // Under READ COMMITTED nothing is kept.
    let db = two();
    let mut session = db.read_committed();
    let start = session.savepoint();
    session.update("1", &row("a1", "u1", "y")).unwrap();
    session.rollback_to(start).unwrap();
    let mut other = db.begin();
    assert!(other.update("1", &row("a1", "u1", "z")).unwrap());
    other.commit();
    session.commit();
    done(&db);
}

// ---- READ UNCOMMITTED

#[test]
fn dirty_reads_see_the_newest_rows_and_lock_nothing() {
    let db = two();
    let (mut writer, mut reader) = (db.begin(), uncommitted(&db));
    writer.update("1", &row("a7", "u1", "new")).unwrap();
    writer.insert("3", &row("a3", "u3", "")).unwrap();
    writer.delete("2").unwrap();
    assert_eq!(reader.get("1"), Some(row("a7", "u1", "new")));
    assert_eq!((reader.get("2"), reader.keys()), (None, vec!["1".to_string(), "3".to_string()]));
    // By the index: a moved row under its new entry only.
    assert!(reader.scan(&by(0, &entries_of("a1"))).unwrap().is_empty());
    assert_eq!(reader.scan(&by(0, &entries_of("a7"))).unwrap(), ["1"]);
    assert!(reader.scan(&by(0, &entries_of("a2"))).unwrap().is_empty());
    assert_eq!(db.system.oldest_view_age_ms(), 0, "there is no view");
    writer.rollback();
    assert_eq!(reader.get("1"), Some(row("a1", "u1", "x")));
    assert_eq!(reader.keys(), ["1", "2"]);
    // It writes and locks as READ COMMITTED does.
    assert_eq!(reader.get_with("4", LockMode::Exclusive).unwrap(), None);
    db.fill(&[("4", row("a4", "u4", ""))]);
    assert!(reader.update("4", &row("a4", "u4", "mine")).unwrap());
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
