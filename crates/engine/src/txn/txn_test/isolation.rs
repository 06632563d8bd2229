//! The anomalies of the literature (names as in Adya's thesis and the Hermitage tests), under both isolation levels:
//! which must not happen, and what happens instead.

use super::*;
use crate::lock::LockMode;

fn two() -> Db {
    let db = Db::new();
    db.fill(&[("1", value(10)), ("2", value(20))]);
    db
}

fn value(n: u32) -> Row {
    row(&format!("v{n}"), "", "")
}

fn set(session: &mut Session, key: &str, n: u32) {
    assert!(session.update(key, &value(n)).unwrap());
}

fn with(db: &Db, isolation: Isolation) -> Session {
    db.begin_with(TxnOptions { isolation, ..TxnOptions::default() })
}

fn each_level(test: impl Fn(&Db, Isolation)) {
    for level in [Isolation::ReadCommitted, Isolation::RepeatableRead] {
        let db = two();
        test(&db, level);
        assert!(db.system.locks.is_empty(), "{level:?} leaves locks");
        db.purge_all();
        db.check(true);
    }
}

#[test]
fn g0_dirty_writes() {
    each_level(|db, level| {
        let (mut t1, t2) = (with(db, level), with(db, level));
        set(&mut t1, "1", 11);
        let t2 = t2.run_blocked(|t2| set(t2, "1", 12));
        set(&mut t1, "2", 21);
        t1.commit();
        let (mut t2, ()) = t2.finish();
        set(&mut t2, "2", 22);
        t2.commit();
        let mut check = db.begin();
        assert_eq!((check.get("1"), check.get("2")), (Some(value(12)), Some(value(22))));
    });
}

#[test]
fn g1a_aborted_reads() {
    each_level(|db, level| {
        let (mut t1, mut t2) = (with(db, level), with(db, level));
        set(&mut t1, "1", 101);
        assert_eq!(t2.get("1"), Some(value(10)));
        t1.rollback();
        assert_eq!(t2.get("1"), Some(value(10)));
    });
}

#[test]
fn g1b_intermediate_reads() {
    each_level(|db, level| {
        let (mut t1, mut t2) = (with(db, level), with(db, level));
        set(&mut t1, "1", 101);
        assert_eq!(t2.get("1"), Some(value(10)));
        set(&mut t1, "1", 11);
        t1.commit();
        let seen = if level == Isolation::ReadCommitted { 11 } else { 10 };
        assert_eq!(t2.get("1"), Some(value(seen)));
    });
}

#[test]
fn g1c_circular_information_flow() {
    each_level(|db, level| {
        let (mut t1, mut t2) = (with(db, level), with(db, level));
        set(&mut t1, "1", 11);
        set(&mut t2, "2", 22);
        assert_eq!(t1.get("2"), Some(value(20)));
        assert_eq!(t2.get("1"), Some(value(10)));
        t1.commit();
        t2.commit();
    });
}

#[test]
fn otv_observed_transaction_vanishes() {
    each_level(|db, level| {
        let (mut t1, t2, mut t3) = (with(db, level), with(db, level), with(db, level));
        set(&mut t1, "1", 11);
        set(&mut t1, "2", 19);
        let t2 = t2.run_blocked(|t2| set(t2, "1", 12));
        t1.commit();
        let (mut t2, ()) = t2.finish();
        assert_eq!(t3.get("1"), Some(value(11)));
        set(&mut t2, "2", 18);
        assert_eq!(t3.get("2"), Some(value(19)));
        t2.commit();
        let (one, two) = if level == Isolation::ReadCommitted { (12, 18) } else { (11, 19) };
        assert_eq!((t3.get("1"), t3.get("2")), (Some(value(one)), Some(value(two))));
    });
}

#[test]
fn pmp_predicate_many_preceders() {
    each_level(|db, level| {
        let (mut t1, mut t2) = (with(db, level), with(db, level));
        let range = entries_of("v30");
        assert!(t1.scan(&by(0, &range)).unwrap().is_empty());
        t2.insert("3", &value(30)).unwrap();
        t2.commit();
        let seen = if level == Isolation::ReadCommitted { vec!["3"] } else { vec![] };
        assert_eq!(t1.scan(&by(0, &range)).unwrap(), seen);
        assert_eq!(t1.keys().len(), 2 + seen.len());
        // A locking read sees the newest rows in either case.
        assert_eq!(t1.scan(&ScanOptions { lock: LockMode::Shared, ..by(0, &range) }).unwrap(), ["3"]);
    });
}

#[test]
fn p4_lost_update() {
    each_level(|db, level| {
        let (mut t1, mut t2) = (with(db, level), with(db, level));
        assert_eq!((t1.get("1"), t2.get("1")), (Some(value(10)), Some(value(10))));
        set(&mut t1, "1", 11);
        let t2 = t2.run_blocked(|t2| set(t2, "1", 12));
        t1.commit();
        t2.finish().0.commit();
        assert_eq!(db.begin().get("1"), Some(value(12)));
    });
    // Nothing is lost where the first committer wins, or where the reads lock.
    let db = two();
    let options = TxnOptions { first_committer_wins: true, ..TxnOptions::default() };
    let (mut t1, mut t2) = (db.begin_with(options.clone()), db.begin_with(options));
    assert_eq!((t1.get("1"), t2.get("1")), (Some(value(10)), Some(value(10))));
    set(&mut t1, "1", 11);
    let t2 = t2.run_blocked(|t2| t2.update("1", &value(12)));
    t1.commit();
    let (mut t2, result) = t2.finish();
    assert!(matches!(result, Err(Error::WriteConflict)));
    assert!(matches!(t2.delete("1"), Err(Error::WriteConflict)));
    set(&mut t2, "2", 22);
    t2.commit();
    let mut check = db.begin();
    assert_eq!((check.get("1"), check.get("2")), (Some(value(11)), Some(value(22))));
}

#[test]
fn g_single_read_skew() {
    each_level(|db, level| {
        let (mut t1, mut t2) = (with(db, level), with(db, level));
        assert_eq!(t1.get("1"), Some(value(10)));
        set(&mut t2, "1", 12);
        set(&mut t2, "2", 18);
        t2.commit();
        let seen = if level == Isolation::ReadCommitted { 18 } else { 20 };
        assert_eq!(t1.get("2"), Some(value(seen)));
        let range = entries_of(&format!("v{seen}"));
        assert_eq!(t1.scan(&by(0, &range)).unwrap(), ["2"]);
        let other = entries_of(&format!("v{}", 38 - seen));
        assert!(t1.scan(&by(0, &other)).unwrap().is_empty());
    });
}

#[test]
fn a_snapshot_stays_whole_while_everything_changes() {
    let db = Db::new();
    let mut session = db.begin();
    for i in 0..300 {
        session.insert(&format!("{i:03}"), &row(&format!("a{}", i % 3), &format!("b{i}"), "old")).unwrap();
    }
    session.commit();
    let mut snapshot = db.begin();
    snapshot.open_view();
    for round in 0..4 {
        let mut session = db.begin();
        for i in 0..300 {
            let key = format!("{i:03}");
            match (i + round) % 4 {
                0 => drop(session.delete(&key).unwrap()),
                1 => drop(session.insert(&key, &row("new", &format!("n{i}"), &"x".repeat(round * 40)))),
                _ => drop(session.update(&key, &row(&format!("a{round}"), &format!("c{i}"), "changed")).unwrap()),
            }
        }
        if round == 2 {
            session.rollback()
        } else {
            session.commit()
        }
        db.purge_all();
        let expected: Vec<String> = (0..300).map(|i| format!("{i:03}")).collect();
        assert_eq!(snapshot.keys(), expected);
        let reverse = ScanOptions { reverse: true, ..ScanOptions::default() };
        assert!(snapshot.scan(&reverse).unwrap().iter().rev().eq(expected.iter()));
        let range = entries_of("a1");
        assert_eq!(snapshot.scan(&by(0, &range)).unwrap().len(), 100);
        assert_eq!(snapshot.get("007"), Some(row("a1", "b7", "old")));
    }
    drop(snapshot);
    db.purge_all();
    db.check(true);
}

/// Between two batches the leaf is changed, leaves the pool, and comes back into another frame. Both are the first page
/// their frames ever held, so that the frames' versions are alike.
#[test]
fn a_scan_does_not_take_a_leaf_that_came_back_changed_for_the_one_it_left() {
    let db = Db::new();
    let keys: Vec<String> = (0..12).map(|n| format!("k{n:02}0")).collect();
    let rows: Vec<Row> = (0..12).map(|n| row("a", &format!("u{n}"), "old")).collect();
    db.fill(&keys.iter().map(String::as_str).zip(rows).collect::<Vec<_>>());
    let ctx = db.parts.ctx.clone();
    let leaf = db.table.clustered().root();
    let mut busy = Vec::new();
    let mut come_back_after = |frames: usize| {
        ctx.pool.flush_all().unwrap();
        ctx.pool.evict_all_clean();
        ctx.pool.take_frames(frames - busy.len(), &mut busy).unwrap();
        ctx.pool.load(leaf).unwrap();
        ctx.pool.frame_of(leaf)
    };
    let first = come_back_after(100);
    let mut reader = db.begin();
    let mut cursor = reader.cursor(&ScanOptions::default()).unwrap();
    let mut seen = Vec::new();
    for _ in 0..4 {
        assert!(reader.next(&mut cursor).unwrap());
        seen.push(String::from_utf8(cursor.key().to_vec()).unwrap());
    }
    let mut writer = db.begin();
    (1..4).for_each(|n| writer.insert(&format!("k00{n}"), &row("a", &format!("v{n}"), "new")).unwrap());
    writer.commit();
    assert_ne!(come_back_after(200), first);
    while reader.next(&mut cursor).unwrap() {
        seen.push(String::from_utf8(cursor.key().to_vec()).unwrap());
    }
    assert_eq!(seen, keys);
    ctx.pool.release_frames(busy);
}

/// Every entry of every old version of a row leads to the row. The scan must not walk its whole chain for each of them.
#[test]
fn an_index_scan_walks_the_versions_of_a_row_once() {
    const ROWS: u64 = 40;
    const VERSIONS: u64 = 30;
    let db = Db::new();
    let key = |n: u64| format!("k{n:02}");
    let at = |n: u64, version: u64| row(&format!("a{:03}", (n * 7 + version * 11) % 997), "", "");
    let fill: Vec<_> = (0..ROWS).map(|n| (key(n), at(n, 0))).collect();
    fill.iter().for_each(|(key, row)| db.fill(&[(key, row.clone())]));
    let mut old = db.begin();
    old.open_view();
    for version in 1..=VERSIONS {
        for n in 0..ROWS {
            let mut session = db.begin();
            session.update(&key(n), &at(n, version)).unwrap();
            session.commit();
        }
    }
    let all = (vec![], vec![255]);
    let steps = || db.parts.ctx.stats.mvcc_versions_traversed.get();
    let before = steps();
    let found = old.scan_rows(&by(0, &all)).unwrap();
    let taken = steps() - before;
    let mut expected: Vec<_> = (0..ROWS).map(|n| (key(n), at(n, 0))).collect();
    expected.sort_by(|x, y| x.1.a.cmp(&y.1.a));
    assert_eq!(found, expected);
    // Once to learn which entry is the row's, once to deliver it; short walks besides.
    assert!(taken <= 3 * ROWS * VERSIONS, "{taken} steps");
}

/// What a scan remembers of a row must not outlive a change of its own transaction, nor a rollback of one.
#[test]
fn an_index_scan_with_own_changes() {
    for roll_back in [false, true] {
        let db = Db::new();
        db.fill(&[("k", row("m", "", ""))]);
        let mut own = db.begin();
        own.open_view();
        for version in 0..20 {
            let mut session = db.begin();
            session.update("k", &row(&format!("c{version:02}"), "", "")).unwrap();
            session.commit();
        }
        let mut session = db.begin();
        session.update("k", &row("x", "", "")).unwrap();
        session.commit();
        let mut other = db.begin();
        other.insert("l", &row("d", "", "")).unwrap();
        other.commit();
        own.insert("own", &row("c005", "", "")).unwrap();
        let all = (vec![], vec![255]);
        let mut cursor = own.cursor(&by(0, &all)).unwrap();
        // The entry c00 comes first: the row's visible one, m, is remembered. The batch ends soon after.
        assert!(own.next(&mut cursor).unwrap());
        assert_eq!(cursor.key(), b"own");
        let savepoint = own.savepoint();
        own.update("k", &row("y", "", "")).unwrap();
        if roll_back {
            own.rollback_to(savepoint).unwrap();
        }
        assert!(own.next(&mut cursor).unwrap());
        assert_eq!(cursor.entry()[0], if roll_back { b'm' } else { b'y' });
        assert!(!own.next(&mut cursor).unwrap());
    }
}
